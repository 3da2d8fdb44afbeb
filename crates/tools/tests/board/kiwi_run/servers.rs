//! Tools of other MCP servers.

use super::primitives::server;
use super::*;

/// A server that speaks over its standard streams.
const SERVER: &str = r#"
import json, os, sys, time

def send(message):
    print(json.dumps(message), flush=True)

print("a greeting that is no message", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message or "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    else:
        name, given = message["params"]["name"], message["params"]["arguments"]
        if name == "echo":
            answer["result"] = {"content": [{"type": "text", "text": json.dumps(given)}]}
        elif name == "structured":
            answer["result"] = {"content": [], "structuredContent": {"env": sorted(os.environ)}}
        elif name == "fail":
            answer["result"] = {"content": [{"type": "text", "text": "no luck"}], "isError": True}
        elif name == "ask":
            send({"jsonrpc": "2.0", "id": 2, "method": "roots/list"})
            reply = json.loads(sys.stdin.readline())
            answer["result"] = {"content": [{"type": "text", "text": str(reply["error"]["code"])}]}
        elif name == "peek":
            answer["result"] = {"content": [{"type": "text", "text": open(given["path"]).read()}]}
        elif name == "sleep":
            time.sleep(600)
        elif name == "noise":
            sys.stderr.write("x" * 1_000_000)
            answer["result"] = {"content": [{"type": "text", "text": "done"}]}
        else:
            answer["error"] = {"code": -32602, "message": "unknown tool"}
    send(answer)
"#;

impl Bench {
    fn server(&self) {
        let script = self.fixture.root.path().join("server.py");
        fs::write(&script, SERVER).unwrap();
        open(&script, 0o644);
        let script = script.display().to_string();
        self.policy(&format!(
            "[mcp.own]\ncommand = \"python3\"\nargs = [\"-u\", {script:?}]\nread = [{script:?}]\nenv = {{ GREETING = \"hi\" }}\n[mcp.broken]\ncommand = \"bash\"\nargs = [\"-c\", \"echo so sorry >&2\"]\n"
        ));
    }

    /// An item that is a tool of a server.
    fn foreign(&self, id: &str, config: &str) {
        let text = format!(
            "tool_id: {id}\nversion: 1.0.0\ntool_type: mcp_tool\nexecutor_id: mcp\nconfig: {{{config}}}\n"
        );
        self.put(&format!(".ai/tools/{id}/manifest.yaml"), &text);
        self.sign(id);
    }
}

#[test]
fn a_tool_of_a_configured_program_is_called() {
    let bench = Bench::new();
    bench.foreign("echo_it", "server: own, tool: echo");
    let refused = bench.failed("echo_it", json!({}));
    let hint = refused["hint"].as_str().unwrap();
    assert!(hint.contains("[mcp.own]"), "{refused:#}");
    bench.server();
    let given = json!({ "a": [1, "x y"] });
    let done = bench.ran("echo_it", given.clone());
    assert_eq!(done["result"], given);
    assert_eq!(done["metadata"]["primitive_type"], "mcp");
    bench.foreign("structured", "server: own, tool: structured");
    let done = bench.ran("structured", json!({}));
    let names = done["result"]["env"].to_string();
    assert!(
        names.contains("GREETING") && !names.contains("CARGO"),
        "{names}"
    );
    for (tool, result) in [("ask", json!(-32601)), ("noise", json!("done"))] {
        bench.foreign(tool, &format!("server: own, tool: {tool}"));
        assert_eq!(bench.ran(tool, json!({}))["result"], result, "{tool}");
    }
}

#[test]
fn what_a_server_cannot_do_is_an_error_and_nothing_stays() {
    let bench = Bench::new();
    bench.server();
    for (config, word) in [
        ("server: own, tool: fail", "no luck"),
        ("server: own, tool: gone", "unknown tool"),
        ("server: own, tool: sleep, timeout: 0.5", "in time"),
        ("server: broken, tool: echo", "so sorry"),
        (
            "command: bash, args: [\"-c\", \"echo too bad >&2\"], tool: echo",
            "too bad",
        ),
        (
            "url: \"http://127.0.0.1:9/mcp\", tool: echo",
            "may not reach `127.0.0.1:9`",
        ),
    ] {
        bench.foreign("foreign", config);
        let failed = bench.failed("foreign", json!({}));
        let error = failed["error"].as_str().unwrap();
        assert!(error.contains(word), "{config}: {error}");
    }
    let outside = bench.fixture.root.path().join("outside.txt");
    fs::write(&outside, "secret").unwrap();
    bench.foreign("peek", "server: own, tool: peek");
    let failed = bench.failed("peek", json!({ "path": outside.display().to_string() }));
    let error = failed["error"].as_str().unwrap();
    assert!(
        error.contains("Permission") || error.contains("denied"),
        "{error}"
    );
}

#[test]
fn a_tool_of_a_server_at_an_address_is_called() {
    let bench = Bench::new();
    let (port, told) = server(vec![
        (200, "{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {}}"),
        (202, ""),
        (
            200,
            "event: message\ndata: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/message\"}\n\nevent: message\ndata: {\"jsonrpc\": \"2.0\", \"id\": 2, \"result\": {\"content\": [{\"type\": \"text\", \"text\": \"hi\"}]}}\n\n",
        ),
        (200, ""),
    ]);
    bench.policy(&format!(
        "[mcp.far]\nurl = \"http://127.0.0.1:{port}/mcp\"\nheaders = {{ authorization = \"Bearer x\" }}\n"
    ));
    bench.foreign("far", "server: far, tool: echo");
    assert_eq!(bench.ran("far", json!({ "a": 1 }))["result"], "hi");
    let asked: Vec<String> = (0..4).map(|_| told.recv().unwrap()).collect();
    for (request, words) in asked.iter().zip([
        ["POST /mcp", "\"initialize\""],
        ["POST /mcp", "notifications/initialized"],
        ["POST /mcp", "\"arguments\":{\"a\":1}"],
        ["DELETE /mcp", "mcp-session-id: s1"],
    ]) {
        for word in words.iter().chain(&["authorization: Bearer x"]) {
            assert!(request.contains(word), "no {word} in {request}");
        }
    }
}

#[test]
fn a_tool_brings_a_server_of_its_own_which_has_the_tools_rights() {
    let bench = Bench::new();
    bench.put("data.txt", "of the project");
    bench.put("other/data.txt", "not for it");
    let manifest = "executor_id: mcp\npermissions: {read: [data.txt]}\n";
    let of = |tool: &str| {
        format!("{manifest}config: {{command: python3, args: [\"-u\"], tool: {tool}}}")
    };
    bench.made("echo_it", &of("echo"), "server.py", SERVER);
    let given = json!({ "a": [1, "x y"] });
    let done = bench.ran("echo_it", given.clone());
    assert_eq!(done["result"], given);
    assert_eq!(done["metadata"]["primitive_type"], "mcp");
    bench.made("peek", &of("peek"), "server.py", SERVER);
    let path = |name: &str| json!({ "path": bench.path(name).display().to_string() });
    assert_eq!(
        bench.ran("peek", path("data.txt"))["result"],
        "of the project"
    );
    let failed = bench.failed("peek", path("other/data.txt"));
    assert!(!failed.to_string().contains("not for it"), "{failed:#}");
}

#[test]
fn a_tool_names_the_address_of_a_server_that_it_may_reach() {
    let bench = Bench::new();
    let (port, told) = server(vec![
        (200, "{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {}}"),
        (202, ""),
        (
            200,
            "{\"jsonrpc\": \"2.0\", \"id\": 2, \"result\": {\"content\": [{\"type\": \"text\", \"text\": \"hi\"}]}}",
        ),
        (200, ""),
    ]);
    let host = format!("127.0.0.1:{port}");
    let text = format!(
        "tool_id: far\nversion: 1.0.0\ntool_type: mcp_tool\nexecutor_id: mcp\npermissions: {{net: [\"{host}\"]}}\nconfig: {{url: \"http://{host}/mcp\", tool: echo}}\n"
    );
    bench.put(".ai/tools/far/manifest.yaml", &text);
    bench.sign("far");
    let refused = bench.failed("far", json!({}));
    assert_eq!(refused["denied"], json!([format!("net.{host}")]));
    bench.policy(&format!("[ceiling]\nnet = [\"{host}\"]\n"));
    assert_eq!(bench.ran("far", json!({ "a": 1 }))["result"], "hi");
    let asked = told.recv().unwrap();
    assert!(asked.contains("POST /mcp"), "{asked}");
}
