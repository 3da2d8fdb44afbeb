//! What each route answers.

use crate::place::{Place, get, post};
use kenning_core::CODES;
use kenning_rest::BODY_BYTES_MAX;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const READ: &str = "/tools/vault_read_note";
const GOOD: &str = r#"{"path":"People/Bill Baue.md"}"#;

#[tokio::test]
async fn a_tool_is_called_with_post() {
    let place = Place::new().await;
    let answer = place.post(READ, "", GOOD).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(
        answer.json(),
        json!({ "content": [{ "type": "text", "text": "# Bill Baue\n" }] })
    );
    let write = json!({ "path": "New \u{e9}.md", "content": "a\nb" }).to_string();
    let answer = place.post("/tools/vault_write_note", "", &write).await;
    assert_eq!(
        answer.json()["content"][0]["text"],
        "Written: New \u{e9}.md"
    );
}

#[tokio::test]
async fn a_wrong_call_is_told_what_is_wrong() {
    let place = Place::new().await;
    let check = async |path: &str, body: &str, code: &str, part: &str| {
        let answer = place.post(path, "", body).await;
        assert_eq!(answer.code(), code, "{path} {body}");
        assert!(answer.message().contains(part), "{body}: {answer:?}");
    };
    check(
        "/tools/nonsense",
        "{}",
        "not_found",
        "Unknown tool: nonsense",
    )
    .await;
    check("/tools/%ff", "{}", "not_found", "Unknown").await;
    check("/tools/vault_read_note%00", GOOD, "not_found", "Unknown").await;
    check("/tools/", GOOD, "not_found", "no route").await;
    check("/tools/vault_read_note/", GOOD, "not_found", "no route").await;
    check("//tools/vault_read_note", GOOD, "not_found", "no route").await;
    check(
        &format!("/tools/{}", "a".repeat(9_000)),
        "{}",
        "not_found",
        "Unknown",
    )
    .await;
    check(READ, r#"{"path":5}"#, "invalid_input", "`path`").await;
    check(READ, r#"{"path":null}"#, "invalid_input", "`path`").await;
    check(READ, "{}", "invalid_input", "missing field `path`").await;
    check(READ, "", "invalid_input", "missing field `path`").await;
    check(READ, "null", "invalid_input", "missing field `path`").await;
    check(
        READ,
        r#"{"path":"a","more":1}"#,
        "invalid_input",
        "unknown field `more`",
    )
    .await;
    check(READ, "[]", "invalid_input", "an array, not an object").await;
    check(READ, "7", "invalid_input", "a number, not an object").await;
    check(READ, "{", "invalid_input", "not JSON").await;
    check(READ, r#"{"path":"a"}x"#, "invalid_input", "not JSON").await;
    check(READ, &"[".repeat(100_000), "invalid_input", "not JSON").await;
    check(
        READ,
        r#"{"path":"People/Nobody.md"}"#,
        "not_found",
        "File not found",
    )
    .await;
    check(
        READ,
        r#"{"path":"../x.md"}"#,
        "denied",
        "Path traversal rejected",
    )
    .await;
    let answer = place.post(READ, "", "{}").await;
    assert_eq!(
        answer.json()["error"]["hint"],
        "takes `path` (string, required)"
    );
}

/// A form is what a page can send without asking first.
#[tokio::test]
async fn a_body_of_another_kind_is_refused() {
    let place = Place::new().await;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "text/plain, application/json",
        "",
    ] {
        let request = String::from_utf8(post(READ, "", GOOD.as_bytes())).unwrap();
        let request = request.replace(
            "Content-Type: application/json",
            &format!("Content-Type: {kind}"),
        );
        let answer = place.ask(request).await;
        assert_eq!(answer.code(), "invalid_input", "{kind}");
        assert!(answer.message().contains("content type"), "{answer:?}");
    }
    for kind in ["application/json; charset=utf-8", "APPLICATION/JSON"] {
        let request = String::from_utf8(post(READ, "", GOOD.as_bytes())).unwrap();
        let request = request.replace("application/json\r\nAccept", &format!("{kind}\r\nAccept"));
        assert_eq!(place.ask(request).await.status, 200, "{kind}");
    }
}

fn chunked(path: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    .into_bytes();
    for part in body.chunks(60_000) {
        request.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        request.extend_from_slice(part);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    request
}

#[tokio::test]
async fn a_body_may_be_four_mebibytes_and_not_one_byte_more() {
    let place = Place::new().await;
    // White space behind the value makes any length.
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for (path, body) in [(READ, GOOD), ("/mcp", call)] {
        let body = |n_bytes: usize| {
            let mut bytes = body.as_bytes().to_vec();
            bytes.resize(n_bytes, b' ');
            bytes
        };
        let fits = body(BODY_BYTES_MAX);
        let answer = place.ask(post(path, "", &fits)).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert_eq!(place.ask(chunked(path, &fits)).await.status, 200, "{path}");
        for n_bytes in [BODY_BYTES_MAX + 1, BODY_BYTES_MAX + 100_000] {
            let over = body(n_bytes);
            // The whole of it is sent before the answer is read: the answer must still be there.
            for request in [post(path, "", &over), chunked(path, &over)] {
                let answer = place.ask(request).await;
                assert_eq!(answer.code(), "too_large", "{path} {n_bytes}");
            }
        }
    }
    for path in ["/", "/nowhere", "/mcp", READ] {
        let over = vec![b' '; BODY_BYTES_MAX + 1];
        assert_eq!(place.ask(post(path, "", &over)).await.status, 413, "{path}");
    }
    // Who asks first is told before anything is sent.
    let head = format!(
        "POST {READ} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        99_999_999_999_u64
    );
    assert_eq!(place.ask(head).await.code(), "too_large");
}

/// A client that is cut off while it writes never reads why, so what is refused is still read.
#[tokio::test]
async fn a_large_body_to_the_wrong_door_is_read_and_answered() {
    let place = Place::new().await;
    let mut wire = place.connect().await;
    for (path, headers, n_bytes, expected) in [
        ("/nowhere", "", 3_000_000, 404),
        ("/healthz", "", 3_000_000, 405),
        (READ, "Origin: null\r\n", 3_000_000, 403),
        (READ, "Authorization: Bearer x\r\n", 3_000_000, 401),
        (READ, "", BODY_BYTES_MAX + 1, 413),
    ] {
        let sent = wire.send(post(path, headers, &vec![b' '; n_bytes])).await;
        let answer = wire.answer().await.expect("an answer");
        assert_eq!(answer.status, expected, "{path}: {answer:?}");
        answer.code();
        assert!(sent, "{path}");
        // The same connection goes on.
        wire.send(get("/healthz", "")).await;
        assert_eq!(
            wire.answer().await.expect("an answer").status,
            200,
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_one() {
    let place = Place::new().await;
    for (method, path, allow) in [
        ("POST", "/", "GET,HEAD"),
        ("POST", "/healthz", "GET,HEAD"),
        ("DELETE", "/metrics", "GET,HEAD"),
        ("PUT", "/openapi.json", "GET,HEAD"),
        ("PATCH", "/tools", "GET,HEAD"),
        ("OPTIONS", "/tools", "GET,HEAD"),
        ("PUT", READ, "POST,GET,HEAD"),
        ("DELETE", READ, "POST,GET,HEAD"),
        ("NONSENSE", READ, "POST,GET,HEAD"),
        ("GET", "/tools/vault_write_note?path=a&content=b", "POST"),
    ] {
        let answer = place
            .ask(format!(
                "{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
            ))
            .await;
        assert_eq!(answer.status, 405, "{method} {path}");
        assert_eq!(answer.code(), "invalid_input");
        assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
    }
    let answer = place
        .ask("GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    assert_eq!(answer.status, 405, "{answer:?}");
    assert_eq!(
        place.get("/healthz", "").await.json()["events"],
        0,
        "nothing was written"
    );
}

#[tokio::test]
async fn a_tool_that_only_looks_may_be_asked_with_get() {
    let place = Place::new().await;
    let check = async |query: &str, status: u16, part: &str| {
        let answer = place.get(&format!("{READ}{query}"), "").await;
        assert_eq!(answer.status, status, "{query}: {answer:?}");
        assert!(answer.body.contains(part), "{query}: {answer:?}");
    };
    check("?path=People/Bill%20Baue.md", 200, "# Bill Baue").await;
    check("?path=People%2FBill+Baue.md", 200, "# Bill Baue").await;
    check("?path=5", 404, "File not found: 5").await;
    check("", 422, "missing field `path`").await;
    check("?more=1&path=a", 422, "unknown field `more`").await;
    check("?path=a&path=b", 422, "`path` stands twice").await;
    check("?path=%ff%00", 422, "control character").await;
    check("?path=../x.md", 403, "Path traversal rejected").await;
    let answer = place.get("/tools/nonsense?path=a", "").await;
    assert!(answer.message().contains("Unknown"), "{answer:?}");
}

#[tokio::test]
async fn the_list_and_the_description_name_every_tool() {
    let place = Place::new().await;
    let names: BTreeSet<&str> = place
        .fixture
        .board
        .listed()
        .iter()
        .map(|it| it.name())
        .collect();
    let listed = place.get("/tools", "").await.json();
    let listed = listed["tools"].as_array().unwrap();
    assert_eq!(
        names,
        listed
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect()
    );
    for tool in listed {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(!tool["description"].as_str().unwrap().is_empty(), "{tool}");
    }
    let document = place.get("/openapi.json", "").await.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
    for field in ["title", "version"] {
        assert!(document["info"][field].is_string());
    }
    let paths = document["paths"].as_object().unwrap();
    let tools = paths.keys().filter_map(|it| it.strip_prefix("/tools/"));
    assert_eq!(names, tools.collect());
    let mut ids = BTreeSet::new();
    for (path, item) in paths {
        assert!(path.starts_with('/'), "{path}");
        for (method, operation) in item.as_object().unwrap() {
            assert!(
                ["get", "post", "put", "delete"].contains(&method.as_str()),
                "{path} {method}"
            );
            let responses = operation["responses"].as_object().expect("responses");
            for response in responses.values() {
                match response.get("$ref") {
                    Some(to) => assert!(resolve(&document, to.as_str().unwrap()).is_some(), "{to}"),
                    None => assert!(response["description"].is_string(), "{path}"),
                }
            }
            if let Some(id) = operation["operationId"].as_str() {
                assert!(ids.insert(id.to_owned()), "{id} stands twice");
            }
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let in_path =
                    path.contains(&format!("{{{}}}", parameter["name"].as_str().unwrap()));
                assert_eq!(parameter["in"], if in_path { "path" } else { "query" });
                assert!(parameter["schema"]["type"] != Value::Null, "{parameter}");
            }
        }
        if path.starts_with("/tools/") {
            let schema = &item["post"]["requestBody"]["content"]["application/json"]["schema"];
            assert_eq!(schema["type"], "object", "{path}");
        }
    }
    let reads = place
        .fixture
        .board
        .listed()
        .iter()
        .filter(|it| it.effect() == kenning_tools::Effect::Read);
    for tool in reads {
        let get = &paths[&format!("/tools/{}", tool.name())]["get"];
        assert!(
            get.is_object() && get.get("requestBody").is_none(),
            "{}",
            tool.name()
        );
    }
    assert!(paths["/tools/vault_write_note"].get("get").is_none());
    let codes = resolve(&document, "#/components/schemas/Error").unwrap();
    let codes = codes["properties"]["error"]["properties"]["code"]["enum"]
        .as_array()
        .unwrap();
    assert_eq!(codes.len(), CODES.len());
}

fn resolve<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    document.pointer(reference.strip_prefix('#')?)
}

/// The text form of Prometheus: a `# TYPE` before its samples, `name{label="value"} number`.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    let mut types = BTreeSet::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(types.insert(name.to_owned()), "{line}");
            if kind == "histogram" {
                let parts = ["bucket", "sum", "count"];
                types.extend(parts.map(|it| format!("{name}_{it}")));
            }
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let (family, labels) = name.split_once('{').unwrap_or((name, "}"));
            assert!(
                family
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '_'),
                "{line}"
            );
            assert!(types.contains(family) && labels.ends_with('}'), "{line}");
            assert!(
                found
                    .insert(name.to_owned(), value.parse().unwrap())
                    .is_none(),
                "{line}"
            );
        }
    }
    found
}

#[tokio::test]
async fn the_counters_count_calls_and_failures() {
    let place = Place::new().await;
    for _ in 0..3 {
        assert_eq!(place.post(READ, "", GOOD).await.status, 200);
    }
    place.post(READ, "", "{}").await;
    place.post("/tools/nonsense", "", "{}").await;
    let answer = place.get("/metrics", "").await;
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; version=0.0.4")
    );
    let samples = samples(&answer.body);
    assert_eq!(
        samples[r#"kenning_tool_calls_total{tool="vault_read_note"}"#],
        4.0
    );
    assert_eq!(
        samples[r#"kenning_tool_errors_total{tool="vault_read_note"}"#],
        1.0
    );
    assert!(samples[r#"kenning_tool_seconds_total{tool="vault_read_note"}"#] > 0.0);
    assert!(!answer.body.contains("nonsense"));
}

#[tokio::test]
async fn health_says_where_the_log_stands() {
    let place = Place::new().await;
    place.write("a.md");
    let answer = place.get("/healthz", "").await;
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        answer.json(),
        json!({ "status": "ok", "version": version, "events": 1 })
    );
    let mut wire = place.connect().await;
    wire.send("HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await;
    assert_eq!(wire.head().await.unwrap().status, 200);
    assert!(wire.closes().await, "a head has no body");
    let front = place.get("/", "").await;
    assert!(front.body.starts_with("Kenning\n"), "{front:?}");
    assert_eq!(
        front.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
}

#[tokio::test]
async fn requests_behind_each_other_are_answered_in_order() {
    let place = Place::new().await;
    let mut wire = place.connect().await;
    let mut all = Vec::new();
    for n in 0..200 {
        all.extend(post(READ, "", format!(r#"{{"path":"{n}.md"}}"#).as_bytes()));
    }
    wire.send(all).await;
    for n in 0..200 {
        let answer = wire.answer().await.expect("an answer");
        assert!(
            answer
                .message()
                .contains(&format!("File not found: {n}.md")),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn mcp_is_behind_the_same_door() {
    let place = Place::new().await;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "vault_read_note", "arguments": { "path": "People/Bill Baue.md" } } });
    let answer = place.post("/mcp", "", &call.to_string()).await;
    assert_eq!(
        answer.json()["result"]["content"][0]["text"],
        "# Bill Baue\n",
        "{answer:?}"
    );
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
}
