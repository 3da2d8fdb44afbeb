//! The KOI tests of the board once more, through a second Kenning that asks the first over HTTP with a token.

use crate::place::{Place, Setup};
use kenning_engine::Scope;
use kenning_testing::Outside;
use kenning_tools::{Reply, Selection};
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// A server whose KOI tools are called at another server, which has no vault and asks this one.
pub(crate) struct Fixture {
    here: Place,
    near: kenning_testing::Fixture,
    runtime: Arc<Runtime>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::of(kenning_testing::Fixture::new(), runtime())
    }

    pub(crate) fn without_vault(selection: Selection) -> Self {
        Self::of(
            kenning_testing::Fixture::without_vault(selection),
            runtime(),
        )
    }

    pub(crate) fn without_vault_in(selection: Selection, outside: Outside) -> Self {
        let fixture = kenning_testing::Fixture::without_vault_in(selection, outside);
        Self::of(fixture, runtime())
    }

    pub(crate) fn in_world(selection: Selection, outside: Outside) -> Self {
        Self::of(
            kenning_testing::Fixture::in_world(selection, outside),
            runtime(),
        )
    }

    pub(crate) fn again(&self, selection: Selection) -> Self {
        Self::of(
            self.here.fixture.again(selection),
            Arc::clone(&self.runtime),
        )
    }

    fn of(fixture: kenning_testing::Fixture, runtime: Arc<Runtime>) -> Self {
        let setup = Setup {
            require_token: true,
            ..Setup::default()
        };
        let here = runtime.block_on(Place::of(fixture, setup));
        let token = here.token(&Scope::ALL, "default", None);
        let near = near(&format!("http://{}", here.address), &token);
        Self {
            here,
            near,
            runtime,
        }
    }

    /// Calls the tools of the KOI API at the other server and all others here.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Reply {
        let listed = self.here.fixture.board.find(tool);
        let is_far = listed.is_some_and(|it| it.toolset() == kenning_tools::Toolset::Koi)
            && !tool.starts_with("vault_");
        if !is_far {
            return self.here.fixture.call(tool, arguments);
        }
        let mut reply = self.near.call(tool, arguments);
        // What these tests look for is what the server says.
        if let Some((_, said)) = reply.text.split_once(" — ").filter(|_| reply.is_error()) {
            reply.text = said.to_owned();
        }
        reply
    }
}

impl Deref for Fixture {
    type Target = kenning_testing::Fixture;

    fn deref(&self) -> &Self::Target {
        &self.here.fixture
    }
}

fn runtime() -> Arc<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Arc::new(builder.worker_threads(1).enable_all().build().unwrap())
}

/// A server that asks another one.
fn near(endpoint: &str, token: &str) -> kenning_testing::Fixture {
    let (endpoint, token) = (endpoint.to_owned(), token.to_owned());
    let environment = move |name: &str| match name {
        "KOI_API_ENDPOINT" => Some(endpoint.clone()),
        "KOI_API_TOKEN" => Some(token.clone()),
        _ => None,
    };
    kenning_testing::Fixture::with_environment(Arc::new(environment))
}

#[test]
fn what_the_other_server_refuses_is_told_by_its_status_and_its_words() {
    let fixture = Fixture::new();
    let endpoint = format!("http://{}", fixture.here.address);
    for (endpoint, token, expected) in [
        (
            endpoint.as_str(),
            "wrong",
            "KOI API error (koi_search): Request failed with status code 401 — ",
        ),
        (
            "http://127.0.0.1:9",
            "",
            "the KOI server at 127.0.0.1:9, which KOI_API_ENDPOINT names, does not answer",
        ),
        (
            "nowhere",
            "",
            "KOI_API_ENDPOINT: `nowhere` is not the URL of a server",
        ),
    ] {
        let reply = near(endpoint, token).call("koi_search", json!({ "query": "herring" }));
        assert!(reply.is_error());
        assert!(reply.text.starts_with(expected), "{}", reply.text);
    }
    let near = near(
        &endpoint,
        &fixture.here.token(&[Scope::Read], "default", None),
    );
    let reply = near.call("resolve_entity", json!({ "label": "Bill Baue" }));
    assert!(!reply.is_error(), "{}", reply.text);
    // Bad arguments are refused before anything is sent.
    let reply = near.call("resolve_entity", json!({ "lable": "Bill Baue" }));
    assert!(
        reply.text.contains("unknown field `lable`"),
        "{}",
        reply.text
    );
    let reply = near.call("koi_search", json!({ "query": " " }));
    assert!(reply.text.contains("`query` is empty"), "{}", reply.text);
}

/// The original answers an unknown name with one that it has made up.
#[test]
fn what_a_server_made_up_is_nobody() {
    let runtime = runtime();
    let phantom = axum::Router::new().route(
        "/entity/resolve",
        axum::routing::post(|| async {
            let made_up = json!({ "name": "X", "uri": "orn:x", "type": "", "confidence": 0.9 });
            json!({ "candidates": [made_up], "is_new": true }).to_string()
        }),
    );
    let listener = runtime.block_on(kenning_rest::bind(([127, 0, 0, 1], 0).into()));
    let listener = listener.unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move {
        kenning_rest::serve(listener, phantom, std::future::pending()).await;
    });
    let near = near(&format!("http://{address}/"), "");
    for tool in ["get_entity_neighborhood", "get_entity_documents"] {
        let reply = near.call(tool, json!({ "entity_uri": "X" }));
        let expected = "Could not resolve \"X\" to a known entity";
        assert!(
            reply.is_error() && reply.text.starts_with(expected),
            "{}",
            reply.text
        );
    }
    let reply = near.call("resolve_entity", json!({ "label": "X" }));
    let said = &reply.to_json()["candidates"][0];
    assert_eq!(said["uri"], "orn:x", "what the server says is passed on");
}

#[test]
fn the_routes_of_a_house_that_asks_another_answer_for_that_one() {
    let fixture = Fixture::new();
    let endpoint = format!("http://{}", fixture.here.address);
    let token = fixture.here.token(&[Scope::Read], "default", None);
    let near = near(&endpoint, &token);
    let door = fixture.runtime.block_on(Place::of(near, Setup::default()));
    let get = |path: &str, headers: &str| fixture.runtime.block_on(door.get(path, headers));
    let found = get("/entity/resolve?label=Bill%20Baue", "").json();
    assert_eq!(found["candidates"][0]["name"], "Bill Baue");
    let path = "/entity/orn%3Apersonal-koi.entity%3Aperson-bill-baue-376ffc2e6245";
    assert_eq!(get(path, "").json()["entity"]["entity_text"], "Bill Baue");
    let unknown = get("/entity/orn:x/y", "");
    assert_eq!(
        (unknown.status, unknown.json()["detail"].as_str()),
        (404, Some("Entity not found"))
    );
    let wrong = get("/entity-search?limit=abc&query=x", "");
    assert_eq!(wrong.json()["detail"][0]["type"], "int_parsing");
    let body = json!({ "document_rid": "vault:a.md", "entities": [] }).to_string();
    let refused = fixture.runtime.block_on(door.post("/ingest", "", &body));
    assert_eq!(
        refused.status, 403,
        "the token there only reads: {refused:?}"
    );
    let ring = get("/stats", "kenning-forwarded: 1\r\n");
    assert_eq!(ring.status, 508, "{ring:?}");
}

/// A server of the API that notes what it is asked and answers everything alike.
struct Recorder {
    address: std::net::SocketAddr,
    /// Method, path with its query, and body.
    asked: Arc<std::sync::Mutex<Vec<(String, String, String)>>>,
}

impl Recorder {
    fn new(runtime: &Runtime, status: u16, body: &'static str) -> Self {
        let asked = Arc::default();
        let noted = Arc::clone(&asked);
        let answer = move |request: axum::extract::Request| {
            let noted: Arc<std::sync::Mutex<Vec<_>>> = Arc::clone(&noted);
            async move {
                let (parts, sent) = request.into_parts();
                let sent = axum::body::to_bytes(sent, usize::MAX).await.unwrap();
                let sent = String::from_utf8(sent.to_vec()).unwrap();
                let target = parts.uri.path_and_query().unwrap().to_string();
                let mut noted = noted.lock().unwrap();
                noted.push((parts.method.to_string(), target, sent));
                (axum::http::StatusCode::from_u16(status).unwrap(), body)
            }
        };
        let router = axum::Router::new().fallback(answer);
        let listener = runtime.block_on(kenning_rest::bind(([127, 0, 0, 1], 0).into()));
        let listener = listener.unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move {
            kenning_rest::serve(listener, router, std::future::pending()).await;
        });
        Self { address, asked }
    }

    fn last(&self) -> Option<(String, String, String)> {
        self.asked.lock().unwrap().pop()
    }
}

#[test]
fn a_request_reaches_nothing_but_the_routes_of_the_table_there() {
    let runtime = runtime();
    let far = Recorder::new(&runtime, 200, "{}");
    let near = near(&format!("http://{}/base", far.address), "OPERATOR");
    let setup = Setup {
        require_token: true,
        ..Setup::default()
    };
    let door = runtime.block_on(Place::of(near, setup));
    let token = |scopes: &[Scope]| {
        let token = door.token(scopes, "default", None);
        format!("Authorization: Bearer {token}\r\n")
    };
    let read = token(&[Scope::Read]);
    for (path, expected) in [
        ("/entity/orn:a/b", Some("/base/entity/orn%3Aa%2Fb")),
        (
            "/entity/%C3%A9%3F%23/mentioned-in?limit=2",
            Some("/base/entity/%C3%A9%3F%23/mentioned-in?limit=2"),
        ),
        (
            "/relationships/x%252e%252e?predicate=a%26b+c",
            Some("/base/relationships/x%252e%252e?predicate=a%26b%20c"),
        ),
        ("/stats", Some("/base/stats")),
        ("/entity/../../admin/tokens", None),
        ("/entity/%2e%2e/%2E%2E/admin/tokens", None),
        ("/entity/..%2f..%2fadmin", None),
        ("/entity/..%5c..%5cadmin", None),
        ("/entity/../mentioned-in", None),
        ("/entity/orn:x/../../y", None),
        ("/relationships/../../v1/x?y=1", None),
        ("/relationships/..", None),
    ] {
        let answer = runtime.block_on(door.get(path, &read));
        let asked = far.last().map(|it| it.1);
        assert_eq!(asked.as_deref(), expected, "{path}");
        let status = if expected.is_some() { 200 } else { 404 };
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
    let process = r#"{"url": "https://example.com/"}"#;
    let ingesting = r#"{"url": "https://example.com/", "auto_ingest": "yes"}"#;
    let fetch = token(&[Scope::Read, Scope::Fetch]);
    let write = token(&[Scope::Read, Scope::Fetch, Scope::Write]);
    let ingest = r#"{"document_rid": "a", "entities": []}"#;
    for (headers, path, body, sent) in [
        (&read, "/ingest", ingest, None),
        (&read, "/github/repos", r#"{"repo_url": "x"}"#, None),
        (&read, "/web/process", process, None),
        (&fetch, "/web/process", process, Some("false")),
        (&fetch, "/web/process", ingesting, None),
        (&write, "/web/process", ingesting, Some("true")),
        (&write, "/ingest", ingest, Some("document_rid")),
    ] {
        let answer = runtime.block_on(door.post(path, headers, body));
        let asked = far.last().map(|it| it.2);
        let Some(sent) = sent else {
            assert_eq!((answer.status, asked), (403, None), "{path} {body}");
            continue;
        };
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let asked = asked.unwrap_or_default();
        assert!(asked.contains(sent), "{path}: {asked}");
    }
}

/// The token for the other server is the operator's, and must not serve tokens of other spaces.
#[test]
fn a_token_of_another_space_reaches_no_route_and_no_tool_of_the_other_server() {
    let runtime = runtime();
    let far = Recorder::new(&runtime, 200, "{}");
    let near = near(&format!("http://{}", far.address), "OPERATOR");
    let setup = Setup {
        require_token: true,
        ..Setup::default()
    };
    let door = runtime.block_on(Place::of(near, setup));
    let token = |space: &str| {
        let token = door.token(&Scope::ALL, space, None);
        format!("Authorization: Bearer {token}\r\n")
    };
    let (own, other) = (token("default"), token("tenant"));
    let ingest = r#"{"document_rid": "a", "entities": []}"#;
    let search = r#"{"query": "x"}"#;
    for (path, body) in [
        ("/stats", None),
        ("/ingest", Some(ingest)),
        ("/tools/koi_search", Some(search)),
        ("/tools/federation_status", Some("{}")),
    ] {
        let ask = |headers: &str| {
            runtime.block_on(async {
                match body {
                    None => door.get(path, headers).await,
                    Some(body) => door.post(path, headers, body).await,
                }
            })
        };
        let refused = ask(&other);
        assert_eq!((refused.status, far.last()), (403, None), "{path}");
        assert!(refused.body.contains("space `tenant`"), "{refused:?}");
        ask(&own);
        assert!(far.last().is_some(), "{path}");
    }
}

#[test]
fn what_is_no_answer_of_a_koi_server_is_an_error() {
    let runtime = runtime();
    for (status, body) in [
        (200, "<html>login page</html>"),
        (200, "garbage"),
        (200, ""),
        (200, "null"),
        (200, "[]"),
        (204, ""),
        (302, "{}"),
    ] {
        let far = Recorder::new(&runtime, status, body);
        let near = near(&format!("http://{}", far.address), "hunter2");
        let reply = near.call("resolve_entity", json!({ "label": "X" }));
        assert!(reply.is_error(), "{status} {body}: {}", reply.text);
        assert!(reply.text.contains("KOI_API_ENDPOINT"), "{}", reply.text);
        assert!(!reply.text.contains("hunter2"), "{}", reply.text);
        let door = runtime.block_on(Place::of(near, Setup::default()));
        let answer = runtime.block_on(door.get("/stats", ""));
        assert_eq!(answer.status, 502, "{status} {body}: {answer:?}");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("KOI_API_ENDPOINT"), "{detail}");
    }
}

#[test]
fn a_password_in_the_address_of_the_other_server_is_told_to_nobody() {
    let runtime = runtime();
    let near = near("http://ann:hunter2@127.0.0.1:1", "");
    let reply = near.call("resolve_entity", json!({ "label": "X" }));
    let door = runtime.block_on(Place::of(near, Setup::default()));
    let answer = runtime.block_on(door.get("/stats", ""));
    assert_eq!(answer.status, 422, "{answer:?}");
    for said in [reply.text, answer.json().to_string()] {
        assert!(
            said.contains("KOI_API_ENDPOINT: the address has a user name or a password in it"),
            "{said}"
        );
        assert!(!said.contains("hunter2"), "{said}");
    }
}

/// Every recorded answer of the original server, through the tool that asks for it.
///
/// [`kenning_testing::Fixture::call`] validates each against the tool's output schema, as clients do.
#[test]
fn answers_of_an_original_server_fit_the_schemas_that_clients_validate() {
    const PAIRS: &str = include_str!("../../../../testing/vectors/koi-golden.jsonl");
    let runtime = runtime();
    let said = Arc::new(std::sync::Mutex::new(String::new()));
    let saying = Arc::clone(&said);
    let answer = move || {
        let said = saying.lock().unwrap().clone();
        async move { said }
    };
    let router = axum::Router::new().fallback(answer);
    let listener = runtime.block_on(kenning_rest::bind(([127, 0, 0, 1], 0).into()));
    let listener = listener.unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move {
        kenning_rest::serve(listener, router, std::future::pending()).await;
    });
    let near = near(&format!("http://{address}"), "");
    let mut asked = std::collections::BTreeSet::new();
    for pair in PAIRS.lines() {
        let pair: Value = serde_json::from_str(pair).unwrap();
        let path = pair["path"].as_str().unwrap();
        let path = path.split('?').next().unwrap();
        let (tool, arguments) = match path {
            "/entity/resolve" => ("resolve_entity", json!({ "label": "x" })),
            "/entity-search" => ("koi_search", json!({ "query": "x" })),
            "/search" => ("knowledge_search", json!({ "query": "x" })),
            "/web/preview" => ("preview_url", json!({ "url": "x" })),
            "/web/process" => ("process_url", json!({ "url": "x" })),
            "/web/ingest" => ("ingest_url", json!({ "url": "x" })),
            "/web/monitor/status" => ("monitor_url", json!({})),
            "/web/monitor/remove" => ("monitor_url", json!({ "action": "remove", "url": "x" })),
            "/github/status" => ("github_scan", json!({})),
            "/github/scan" => ("github_scan", json!({ "action": "scan" })),
            "/code/query" => ("code_query", json!({ "cypher": "x" })),
            "/koi-net/health" => ("federation_status", json!({})),
            _ if path.starts_with("/relationships/") => {
                ("get_entity_neighborhood", json!({ "entity_uri": "orn:x" }))
            }
            _ if path.ends_with("/mentioned-in") => {
                ("get_entity_documents", json!({ "entity_uri": "orn:x" }))
            }
            _ => continue,
        };
        if pair["status"] != 200 || !pair["response"].is_object() {
            continue;
        }
        *said.lock().unwrap() = pair["response"].to_string();
        let reply = near.call(tool, arguments);
        assert!(!reply.is_error(), "{}: {}", pair["name"], reply.text);
        let answer = reply.to_json();
        match tool {
            "koi_search" => assert_eq!(answer["documents"], json!([])),
            "knowledge_search" => {
                for row in answer["results"].as_array().unwrap() {
                    assert_eq!(row["metadata"]["repo"], "acme/demo", "{row}");
                }
            }
            "code_query" => {
                let first = answer["results"].get(0).and_then(Value::as_object);
                let n_columns = first.map_or(0, |it| it.len());
                assert_eq!(answer["columns"].as_array().unwrap().len(), n_columns);
            }
            "federation_status" => assert_eq!(answer["node"].get("did"), None),
            _ => {}
        }
        asked.insert(tool);
    }
    assert_eq!(asked.len(), 11, "{asked:?}");
    *said.lock().unwrap() = r#"{"results": [{"uri": 5}]}"#.to_owned();
    let reply = near.call("koi_search", json!({ "query": "x" }));
    assert!(reply.text.contains("KOI_API_ENDPOINT"), "{}", reply.text);
}
