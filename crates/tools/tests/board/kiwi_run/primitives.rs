//! Requests through the gate, and components in the sandbox.

use super::*;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

/// A server that answers each request with the next of these, and tells what was asked.
pub(super) fn server(answers: Vec<(u16, &'static str)>) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for (status, body) in answers {
            let (stream, _) = listener.accept().unwrap();
            let asked = asked(&stream);
            let mut stream = stream;
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nLocation: /other\r\nMcp-Session-Id: s1\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(body.as_bytes()).unwrap();
            if tell.send(asked).is_err() {
                return;
            }
        }
    });
    (port, told)
}

fn asked(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut all = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        all += &line;
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    all + &String::from_utf8(body).unwrap()
}

impl Bench {
    /// A tool that is a request.
    fn request(&self, id: &str, port: u16, manifest: &str) {
        let text = format!(
            "tool_id: {id}\nversion: 1.0.0\ntool_type: api\nexecutor_id: http_client\npermissions: {{net: [\"127.0.0.1:{port}\"]}}\n{manifest}\n"
        );
        self.put(&format!(".ai/tools/{id}/manifest.yaml"), &text);
        self.sign(id);
    }

    fn reach(&self, port: u16, more: &str) {
        self.policy(&format!(
            "{more}\n[ceiling]\nnet = [\"127.0.0.1:{port}\"]\nenv = [\"TOKEN\"]\n"
        ));
    }
}

#[test]
fn a_request_goes_where_tool_and_policy_allow() {
    let bench = Bench::new();
    let (port, told) = server(vec![(200, "{\"ok\": true}"), (404, "gone")]);
    let config = format!(
        "config:\n  url: \"http://127.0.0.1:{port}/items/{{id}}?n={{n}}\"\n  headers: {{X-Who: \"{{id}}\"}}\n"
    );
    bench.request("fetch", port, &config);
    let inputs = json!({ "id": "a/b c", "n": 5 });
    let refused = bench.failed("fetch", inputs.clone());
    assert_eq!(refused["denied"], json!([format!("net.127.0.0.1:{port}")]));
    bench.reach(port, "");
    let done = bench.ran("fetch", inputs.clone());
    assert_eq!(done["result"], json!({ "ok": true }));
    assert_eq!(done["data"]["status_code"], 200);
    assert_eq!(done["metadata"]["primitive_type"], "http_client");
    let asked = told.recv().unwrap().to_ascii_lowercase();
    assert!(asked.starts_with("get /items/a%2fb%20c?n=5 "), "{asked}");
    assert!(asked.contains("x-who: a/b c\r\n"), "{asked}");
    let failed = bench.failed("fetch", inputs);
    assert_eq!(failed["data"]["status_code"], 404);
    assert_eq!(failed["data"]["body"], "gone");
    assert_eq!(failed["http"], 422);
    // One that the policy allows and the tool does not ask for is not reached either.
    let (other, _told) = server(vec![]);
    bench.reach(other, "");
    bench.policy("[ceiling]\nnet = [\"127.0.0.1\"]\n");
    let config = format!("config: {{url: \"http://127.0.0.1:{other}/\"}}");
    bench.request("sly", port, &config);
    let refused = bench.failed("sly", json!({}));
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("may not reach"), "{error}");
    // A pattern is no permission for what is private.
    bench.policy("[ceiling]\nnet = [\"*\"]\n");
    let refused = bench.failed("fetch", json!({ "id": "a", "n": 1 }));
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("resolves to"), "{error}");
}

#[test]
fn bodies_credentials_retries_and_redirects() {
    let bench = Bench::new();
    let (port, told) = server(vec![
        (200, "made"),
        (500, "busy"),
        (200, "at last"),
        (302, ""),
        (200, "data: {\"a\": 1}\n\ndata: two\n"),
    ]);
    let secrets = bench.fixture.root.path().join("secrets.env");
    fs::write(&secrets, "TOKEN=hunter22hunter\n").unwrap();
    bench.reach(
        port,
        &format!("secrets = [{:?}]", secrets.display().to_string()),
    );
    let url = format!("url: \"http://127.0.0.1:{port}/\"");
    bench.request(
        "make",
        port,
        &format!("env: [TOKEN]\nconfig: {{method: POST, {url}, body: {{name: \"{{name}}\", n: \"{{n}}\", fixed: 1}}, auth: {{type: bearer, token: \"${{TOKEN}}\"}}}}"),
    );
    let done = bench.ran("make", json!({ "name": "x \"y\"", "n": 3 }));
    assert_eq!(done["result"], "made");
    let asked = told.recv().unwrap();
    let (head, body) = asked.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body, json!({ "name": "x \"y\"", "n": 3, "fixed": 1 }));
    let head = head.to_ascii_lowercase();
    assert!(
        head.contains("authorization: bearer hunter22hunter"),
        "{head}"
    );
    assert!(head.contains("content-type: application/json"), "{head}");
    bench.request(
        "again",
        port,
        &format!("config: {{{url}, retry: {{max_attempts: 2, backoff: exponential}}}}"),
    );
    assert_eq!(bench.ran("again", json!({}))["result"], "at last");
    bench.request("moved", port, &format!("config: {{{url}}}"));
    let done = bench.ran("moved", json!({}));
    assert_eq!(done["data"]["status_code"], 302);
    assert_eq!(done["data"]["headers"]["location"], "/other");
    bench.request("stream", port, &format!("config: {{{url}, mode: stream}}"));
    assert_eq!(
        bench.ran("stream", json!({}))["result"],
        json!([{ "a": 1 }, " two"])
    );
}

#[test]
fn a_dry_run_asks_nobody() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    bench.reach(port, "");
    bench.request(
        "fetch",
        port,
        &format!("config: {{url: \"http://127.0.0.1:{port}/{{id}}\"}}"),
    );
    let dry = |inputs: Value| {
        let rest = json!({ "dry_run": true, "parameters": { "inputs": inputs } });
        bench.execute("tool", "run", "fetch", rest)
    };
    assert_eq!(dry(json!({ "id": 1 }))["status"], "validation_passed");
    assert!(dry(json!({}))["error"].as_str().unwrap().contains("{id}"));
    assert!(listener.accept().is_err());
}

#[test]
fn a_component_of_the_tools_own_runs_with_nothing_granted() {
    let bench = Bench::new();
    let echo = kenning_testing_wasm::probes::echo().unwrap();
    let dir = bench.path(".ai/tools/shout");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("echo.wasm"), &echo).unwrap();
    fs::write(
        dir.join("manifest.yaml"),
        "tool_id: shout\nversion: 1.0.0\ntool_type: wasm\nmanifest: {entrypoint: echo.wasm}\n",
    )
    .unwrap();
    bench.sign("shout");
    let done = bench.ran("shout", json!({ "message": "hi" }));
    assert_eq!(done["metadata"]["chain"], json!(["shout", "wasm"]));
    assert!(done["result"].to_string().contains("hi"), "{done:#}");
    // One byte of it changed, and it is not what was signed.
    let mut changed = echo;
    changed.push(0);
    fs::write(dir.join("echo.wasm"), changed).unwrap();
    assert_eq!(bench.failed("shout", json!({}))["status"], "modified");
}

#[test]
fn an_installed_component_runs_by_its_id() {
    let bench = Bench::new();
    let package = bench.fixture.root.path().join("package");
    fs::create_dir(&package).unwrap();
    let manifest = "[tool]\nid = \"dev.example.echo\"\nname = \"echo\"\nversion = \"1.0.0\"\nwasm = \"tool.wasm\"\n[mcp]\ndescription = \"Repeats\"\n[security]\nmax_memory_mb = 16\n";
    fs::write(package.join("tool.toml"), manifest).unwrap();
    let echo = kenning_testing_wasm::probes::echo().unwrap();
    fs::write(package.join("tool.wasm"), echo).unwrap();
    let text = "tool_id: parrot\nversion: 1.0.0\ntool_type: wasm\nexecutor_id: wasm\nconfig: {tool: dev.example.echo}\n";
    bench.put(".ai/tools/parrot/manifest.yaml", text);
    bench.sign("parrot");
    let refused = bench.failed("parrot", json!({}));
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("dev.example.echo"),
        "{refused:#}"
    );
    let engine = bench.fixture.board.engine();
    let options = kenning_engine::kami::InstallOptions::default();
    let source = package.display().to_string();
    engine
        .kami()
        .install_tool(&bench.fixture.owner(), &source, &options)
        .unwrap();
    let done = bench.ran("parrot", json!({ "message": "hi" }));
    assert_eq!(done["result"], json!({ "message": "hi" }));
    assert_eq!(done["metadata"]["primitive_type"], "wasm");
    // An item is no way around what the server hides.
    for dry_run in [true, false] {
        let narrow = bench.fixture.again(kenning_tools::Selection {
            exclude_tools: vec!["dev.example.echo".to_owned()],
            ..kenning_tools::Selection::default()
        });
        let reply = narrow.call(
            "execute",
            json!({ "item_type": "tool", "action": "run", "item_id": "parrot", "dry_run": dry_run }),
        );
        assert!(reply.is_error(), "{}", reply.text);
        assert!(reply.text.contains("is not served here"), "{}", reply.text);
    }
}
