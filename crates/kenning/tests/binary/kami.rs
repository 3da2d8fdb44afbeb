//! Installed tools through every door: the program `kami`, MCP on the standard streams, HTTP.

use crate::{Client, Place, Server};
use kenning_testing_wasm::probes;
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;
use std::time::Duration;

/// Limits that a test never reaches.
const FOREVER: &str = "max_fuel = 1000000000000000\nmax_execution_ms = 3600000";

impl Place {
    /// A package of `dev.example.NAME`, in a directory of that name.
    pub(crate) fn package(&self, name: &str, wasm: &[u8], security: &str) {
        let dir = self.0.path().join(name);
        fs::create_dir_all(&dir).unwrap();
        let manifest = format!(
            "[tool]\nid = \"dev.example.{name}\"\nname = \"{name}\"\nversion = \"1.0.0\"\n\
             wasm = \"tool.wasm\"\n[mcp]\ndescription = \"A probe\"\n[[mcp.arguments]]\n\
             name = \"message\"\ntype = \"string\"\ndescription = \"Anything\"\n\
             [security]\n{security}\n"
        );
        fs::write(dir.join("tool.toml"), manifest).unwrap();
        fs::write(dir.join("tool.wasm"), wasm).unwrap();
    }

    /// Exit code, standard output and standard error of `kami`.
    fn kami_run(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = self.kami(arguments);
        let output = command.stdin(Stdio::null()).output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }

    /// Standard output of `kami`, and that it succeeded.
    pub(crate) fn kami_good(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.kami_run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {err}");
        out
    }
}

#[test]
fn exit_codes_and_messages_are_those_of_the_contract() {
    let place = Place::new();
    let hungry = kenning_testing_wasm::Tool::new(
        "(loop $on (drop (memory.grow (i32.const 16))) (br $on)) (unreachable)",
    );
    let plenty = "max_fuel = 1000000000000";
    for (name, wasm, security) in [
        (
            "echo",
            probes::echo().unwrap(),
            "max_fuel = 100000".to_owned(),
        ),
        (
            "refuse",
            probes::refuse().unwrap(),
            "max_fuel = 100000".to_owned(),
        ),
        (
            "fuel",
            probes::busy().unwrap(),
            "max_fuel = 1000".to_owned(),
        ),
        (
            "time",
            probes::busy().unwrap(),
            format!("{plenty}\nmax_execution_ms = 30"),
        ),
        (
            "memory",
            hungry.build().unwrap(),
            format!("{plenty}\nmax_memory_mb = 2"),
        ),
    ] {
        place.package(name, &wasm, &security);
        assert_eq!(
            place.kami_good(&["install", name]),
            "",
            "nothing but results"
        );
    }
    fs::create_dir(place.0.path().join("empty")).unwrap();
    place.package("gone", b"", "");
    fs::remove_file(place.0.path().join("gone/tool.wasm")).unwrap();
    let exec = |name: &'static str| vec!["exec", name];
    for (arguments, code, begins) in [
        (exec("dev.example.refuse"), 1, "error: {}"),
        (exec("dev.example.fuel"), 6, "error: fuel exhausted"),
        (exec("dev.example.time"), 7, "error: execution timed out"),
        (exec("dev.example.memory"), 6, "error: memory grow failure"),
        (
            exec("dev.example.none"),
            3,
            "error: tool not found: `dev.example.none`",
        ),
        (
            vec!["inspect", "dev.example.none"],
            3,
            "error: tool not found",
        ),
        (
            vec!["uninstall", "dev.example.none"],
            3,
            "error: tool not found",
        ),
        (
            vec!["install", "gone"],
            3,
            "error: WASM file missing: `tool.wasm`",
        ),
        (vec!["install", "empty"], 3, "error: tool.toml not found"),
        (
            vec!["install", "nowhere"],
            3,
            "error: no directory `nowhere`",
        ),
        (
            vec!["install", "echo"],
            4,
            "error: tool `dev.example.echo` v1.0.0 is already installed",
        ),
        (
            vec!["run", "none.wasm"],
            3,
            "error: WASM file missing: `none.wasm`",
        ),
        (
            vec!["exec", "dev.example.echo", "--input", "{"],
            2,
            "error: `--input`: not JSON",
        ),
        (
            vec!["exec", "dev.example.echo", "--input-file", "none.json"],
            3,
            "error: ",
        ),
        (
            vec!["exec", "dev.example.echo", "-i", "{}", "-f", "-"],
            2,
            "error: ",
        ),
        (
            vec!["exec", "dev.example.echo", "-i", r#"{"message":1}"#],
            2,
            "error: ",
        ),
        (vec!["exec"], 2, "error: "),
        (vec!["frobnicate"], 2, "error: "),
    ] {
        let (found, out, err) = place.kami_run(&arguments);
        assert_eq!(found, code, "{arguments:?}: {err}");
        assert_eq!(out, "", "{arguments:?}");
        assert!(err.starts_with(begins), "{arguments:?}: {err}");
    }
    let run = ["run", "echo/tool.wasm", "--input", r#"{"a":1}"#];
    assert_eq!(place.kami_good(&run), "{\"a\":1}\n");
    let under = place.good(&["kami", "exec", "dev.example.echo"]);
    assert_eq!(under, "{}\n", "`kenning kami` is the same");
    let starved = ["run", "echo/tool.wasm", "--fuel", "1"];
    let (code, _, err) = place.kami_run(&starved);
    assert!(
        code == 6 && err.starts_with("error: fuel exhausted"),
        "{err}"
    );
}

#[test]
fn what_a_tool_says_beside_its_answer_is_for_whoever_asks() {
    let place = Place::new();
    place.package("log", &probes::log().unwrap(), "");
    place.package("print", &probes::print().unwrap(), "");
    place.package("panic", &probes::panic().unwrap(), "");
    for name in ["log", "print", "panic"] {
        place.kami_good(&["install", name]);
    }
    let input = r#"{"message":"psst"}"#;
    for (name, line) in [("log", "warn  "), ("print", "tool  ")] {
        let id = format!("dev.example.{name}");
        for (verbose, is_shown) in [(None, false), (Some("-v"), true), (Some("-vv"), true)] {
            let mut arguments: Vec<&str> = verbose.into_iter().collect();
            arguments.extend(["exec", &id, "-i", input]);
            let (code, out, err) = place.kami_run(&arguments);
            assert_eq!((code, out), (0, format!("{input}\n")), "{arguments:?}");
            let has = err.contains(&format!("{line}{input}"));
            assert_eq!(has, is_shown, "{arguments:?}: {err}");
        }
        let logs = place.kami_good(&["logs", &id]);
        assert!(logs.contains("psst"), "{logs}");
    }
    let details = |verbose: &str| {
        let arguments = [verbose, "exec", "dev.example.panic", "-i", input];
        let (code, out, err) = place.kami_run(&arguments);
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(err.contains("error: tool panicked"), "{err}");
        err.contains("wasm backtrace")
    };
    assert_eq!((details("-v"), details("-vv")), (false, true));
}

#[test]
fn a_tool_has_a_life() {
    let place = Place::new();
    place.package("echo", &probes::echo().unwrap(), "");
    let id = "dev.example.echo";
    assert_eq!(place.kami_good(&["list"]), "");
    assert!(
        !place.0.path().join("data/kami").exists(),
        "looking makes nothing"
    );
    let key = place.kami_good(&["keygen", "--output", "my.key"]);
    let key = key.trim();
    place.kami_good(&["sign", "echo", "--keys", "my.key"]);
    let (code, _, err) = place.kami_run(&["install", "echo"]);
    assert!(code == 5 && err.contains("not trusted"), "{err}");
    let (code, out, err) = place.kami_run(&["validate", "echo"]);
    assert!(code == 5 && err.contains("not trusted"), "{err}");
    assert!(
        out.starts_with("dev.example.echo 1.0.0 cannot be installed\n  network:"),
        "{out}"
    );
    place.kami_good(&["trust", "add", key, "--name", "me"]);
    assert!(place.kami_good(&["trust", "list"]).contains(key));
    assert!(
        place
            .kami_good(&["validate", "echo"])
            .starts_with("dev.example.echo 1.0.0 can be installed\n")
    );
    place.kami_good(&["install", "echo"]);
    assert!(place.kami_good(&["validate", "echo"]).starts_with(
        "dev.example.echo 1.0.0 can be installed with `kami update dev.example.echo echo`, in place of 1.0.0\n"
    ));
    let verified = place.kami_good(&["verify", id, "--public-key", key]);
    assert!(verified.contains(&format!("signed by {key}")), "{verified}");
    let shown: Value = serde_json::from_str(&place.kami_good(&["--json", "inspect", id])).unwrap();
    assert_eq!(
        (&shown["id"], &shown["signed_by"]),
        (&json!(id), &json!(key))
    );
    place.kami_good(&["pin", id]);
    let (code, _, err) = place.kami_run(&["update", id]);
    assert!(code == 4 && err.contains("--unpin"), "{err}");
    place.kami_good(&["pin", id, "--unpin"]);
    place.kami_good(&["update", id]);
    place.kami_good(&["update", "--all"]);
    place.kami_good(&["disable", id]);
    let (code, _, err) = place.kami_run(&["exec", id]);
    assert!(code == 5 && err.contains("disabled"), "{err}");
    place.kami_good(&["enable", id]);
    assert_eq!(place.kami_good(&["exec", id]), "{}\n");
    fs::write(
        place.0.path().join("policy.toml"),
        "[default]\nmax_fuel = 1\n",
    )
    .unwrap();
    place.kami_good(&["policy", "--set", "policy.toml"]);
    assert_eq!(place.kami_good(&["policy"]), "[default]\nmax_fuel = 1\n");
    let (code, _, err) = place.kami_run(&["exec", id]);
    assert!(
        code == 6 && err.starts_with("error: fuel exhausted"),
        "{err}"
    );
    assert!(
        place
            .kami_good(&["status"])
            .starts_with("1 tools, 1 enabled")
    );
    let listed: Value = serde_json::from_str(&place.kami_good(&["list", "--json"])).unwrap();
    assert_eq!(listed[0]["granted"]["max_fuel"], 1);
    assert_eq!(
        place.kami_good(&["list", "--filter", "nothing like it"]),
        ""
    );
    place.kami_good(&["uninstall", id]);
    place.kami_good(&["trust", "remove", key]);
    assert_eq!(place.kami_good(&["list"]), "");
}

#[test]
fn what_is_installed_while_it_serves_is_announced() {
    let place = Place::new();
    let mut client = Client::of(place.kami(&["serve"]));
    let listed = client.request("tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"], json!([]));
    place.package("echo", &probes::echo().unwrap(), "");
    for (arguments, n_tools) in [
        (["install", "echo"], 1),
        (["disable", "dev.example.echo"], 0),
        (["enable", "dev.example.echo"], 1),
        (["uninstall", "dev.example.echo"], 0),
    ] {
        place.kami_good(&arguments);
        await_announcement(&mut client);
        let listed = client.request("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), n_tools, "{arguments:?}");
        let called = client.call("dev.example.echo", &json!({ "message": "hi" }));
        let text = &called["result"]["content"][0]["text"];
        match n_tools {
            0 => assert_eq!(called["error"]["code"], -32602, "{called}"),
            _ => assert_eq!(text, r#"{"message":"hi"}"#, "{called}"),
        }
    }
    assert_eq!(client.finish(), 0);
}

/// Reads until the announcement; requests in between, so that there is always something to read.
fn await_announcement(client: &mut Client) {
    for id in 0..300 {
        let id = format!("ping {id}");
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string());
        loop {
            let message = client.receive();
            if message["method"] == "notifications/tools/list_changed" {
                return;
            }
            if message["id"] == id.as_str() {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("no announcement");
}

#[test]
fn a_tool_that_logs_has_progress_to_tell() {
    let place = Place::new();
    place.package("log", &probes::log().unwrap(), "");
    place.kami_good(&["install", "log"]);
    let mut client = Client::of(place.kami(&["serve"]));
    let call = json!({ "jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {
        "name": "dev.example.log", "arguments": { "message": "step" },
        "_meta": { "progressToken": "token" },
    }});
    client.send(&call.to_string());
    let progress = client.receive();
    assert_eq!(progress["method"], "notifications/progress", "{progress}");
    assert_eq!(progress["params"]["progressToken"], "token");
    assert_eq!(progress["params"]["message"], r#"{"message":"step"}"#);
    assert_eq!(client.receive()["id"], "call");
    assert_eq!(client.finish(), 0);
}

#[test]
fn a_tool_that_takes_long_has_progress_to_tell() {
    let place = Place::new();
    // It waits a millisecond for each byte of its input.
    place.package("patient", &probes::patient().unwrap(), FOREVER);
    place.kami_good(&["install", "patient"]);
    let mut client = Client::of(place.kami(&["serve"]));
    let call = json!({ "jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {
        "name": "dev.example.patient", "arguments": { "message": "x".repeat(2_500) },
        "_meta": { "progressToken": "token" },
    }});
    client.send(&call.to_string());
    let mut steps = Vec::new();
    loop {
        let message = client.receive();
        if message["id"] == "call" {
            break;
        }
        steps.push(message["params"]["progress"].as_f64().unwrap());
        assert_eq!(message["params"]["message"], "running");
    }
    assert!(!steps.is_empty() && steps.is_sorted(), "{steps:?}");
    assert_eq!(client.finish(), 0);
}

/// The time of the processor that a process took, in ticks.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn a_cancelled_call_stops_the_tool() {
    let place = Place::new();
    place.package("busy", &probes::busy().unwrap(), FOREVER);
    place.kami_good(&["install", "busy"]);
    let mut client = Client::of(place.kami(&["serve"]));
    let pid = client.child.id();
    let before = ticks(pid);
    let call = json!({ "jsonrpc": "2.0", "id": "call", "method": "tools/call",
        "params": { "name": "dev.example.busy", "arguments": {} } });
    client.send(&call.to_string());
    let works = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        ticks(pid) > before + 20
    });
    assert!(works, "the tool never ran");
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": "call", "reason": "enough" } });
    client.send(&cancel.to_string());
    // Far less than the tool's own limit and the server's.
    let stops = (0..60).any(|_| {
        let before = ticks(pid);
        std::thread::sleep(Duration::from_millis(200));
        ticks(pid) <= before + 1
    });
    assert!(stops, "the tool still runs");
    let listed = client.request("tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(client.finish(), 0);
}

#[test]
fn installed_tools_are_called_over_http() {
    let place = Place::new();
    place.package("echo", &probes::echo().unwrap(), "");
    place.package("refuse", &probes::refuse().unwrap(), "");
    let server = Server::start(&place, &[]);
    place.kami_good(&["install", "echo"]);
    place.kami_good(&["install", "refuse"]);
    let (_, body) = server.get("/tools", "");
    let tools: Value = serde_json::from_str(&body).unwrap();
    let tools = tools["tools"].as_array().unwrap();
    let echo = tools.iter().find(|it| it["name"] == "dev.example.echo");
    let echo = echo.expect("the tool is listed");
    assert_eq!(
        (&echo["toolset"], &echo["effect"]),
        (&json!("kami"), &json!("run"))
    );
    assert_eq!(
        echo["inputSchema"]["properties"]["message"]["type"],
        "string"
    );
    let (_, body) = server.get("/openapi.json", "");
    let document: Value = serde_json::from_str(&body).unwrap();
    let path = &document["paths"]["/tools/dev.example.echo"];
    assert!(path["post"].is_object() && path["get"].is_null(), "{path}");
    let input = r#"{"message":"hi"}"#;
    let post = |name: &str, body: &str| server.post(&format!("/tools/{name}"), "", body);
    let (status, body) = post("dev.example.echo", input);
    assert_eq!((status, body.trim()), (200, input));
    assert_eq!(post("dev_example_echo", input).0, 200, "also without dots");
    let (status, body) = post("dev.example.refuse", input);
    assert_eq!(status, 422, "{body}");
    assert_eq!(post("dev.example.echo", r#"{"message":1}"#).0, 422);
    assert_eq!(post("dev.example.none", "{}").0, 404);
    assert_eq!(
        server.get("/tools/dev.example.echo", "").0,
        405,
        "a page cannot start it"
    );
    let token = place.good(&["token", "create", "--scopes", "read", "--name", "reader"]);
    let header = format!("Authorization: Bearer {}\r\n", token.trim());
    assert_eq!(
        server.post("/tools/dev.example.echo", &header, input).0,
        403
    );
}

#[test]
fn a_careful_server_shows_no_installed_tools() {
    let place = Place::new();
    place.package("echo", &probes::echo().unwrap(), "");
    place.kami_good(&["install", "echo"]);
    let names = |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.push("mcp");
        let mut client = Client::of(place.command(&all));
        let listed = client.request("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        assert_eq!(client.finish(), 0);
        let names = tools
            .iter()
            .map(|it| it["name"].as_str().unwrap().to_owned());
        names
            .filter(|it| it.contains("example"))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&["--read-only"]), [""; 0]);
    assert_eq!(names(&[]), ["dev.example.echo"]);
}

#[test]
fn a_first_start_without_tools_makes_nothing_for_them() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    assert_eq!(
        client.call("dev.example.echo", &json!({}))["error"]["code"],
        -32602
    );
    client.request("tools/list", &json!({}));
    assert_eq!(client.finish(), 0);
    assert!(place.0.path().join("data").is_dir());
    assert!(!place.0.path().join("data/kami").exists());
}
