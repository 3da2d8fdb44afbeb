//! The KOI API: what its routes take and answer, and what they say of bad input.

use crate::place::{Answer, Place, Setup};
use kenning_engine::Scope;
use kenning_tools::Selection;
use serde_json::{Value, json};

const BILL: &str = "orn:personal-koi.entity:person-bill-baue-376ffc2e6245";

/// Some people and what they have to do with each other.
async fn place() -> Place {
    let place = Place::new().await;
    fill(&place).await;
    place
}

async fn fill(place: &Place) {
    for (path, kind, name, fields) in [
        (
            "People/Ann Lee.md",
            "Person",
            "Ann Lee",
            json!({ "knows": "[[Bill Baue]]" }),
        ),
        (
            "Organizations/Works.md",
            "Organization",
            "Works",
            json!({ "founders": "[[Ann Lee]]" }),
        ),
    ] {
        let note = json!({
            "vault_rid": format!("orn:obsidian.entity:Notes/{path}"), "vault_path": path,
            "entity_type": kind, "name": name, "frontmatter": fields, "content_hash": "h",
        });
        let answer = place.post("/register-entity", "", &note.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let said = json!({
        "document_rid": "web:orn:web.page:x/1",
        "entities": [
            { "name": "Bill Baue", "type": "Person" }, { "name": "Ann Lee", "type": "Person" },
            { "name": "Tide Pools", "type": "Concept" },
        ],
        "relationships": [
            { "subject": "Bill Baue", "predicate": "knows", "object": "Ann Lee" },
            { "subject": "Bill Baue", "predicate": "no_such", "object": "Ann Lee" },
        ],
    });
    let answer = place.post("/ingest", "", &said.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let rows = answer.json()["relationships"].clone();
    assert_eq!(
        (&rows[0]["stored"], &rows[1]["stored"]),
        (&json!(true), &json!(false)),
        "one bad predicate loses nothing else: {rows}"
    );
}

async fn ask(place: &Place, method: &str, path: &str, body: &Value) -> Answer {
    match (method, body) {
        ("GET", _) => place.get(path, "").await,
        (_, Value::Null) => place.post(path, "", "").await,
        (_, body) => place.post(path, "", &body.to_string()).await,
    }
}

#[tokio::test]
async fn koi_routes_answer_in_the_forms_of_the_original() {
    let place = place().await;
    let bill = |path: &str| path.replace("BILL", &BILL.replace(':', "%3A"));
    for (method, path, body, pointer, expected) in [
        (
            "POST",
            "/entity/resolve",
            json!({ "label": "bill_baue", "context": { "associated_people": ["Ann Lee"] } }),
            "/candidates/0/uri",
            json!(BILL),
        ),
        (
            "GET",
            "/entity/resolve?label=Bill+Baue&type_hint=person",
            Value::Null,
            "/candidates/0/merged_with",
            Value::Null,
        ),
        (
            "GET",
            "/relationships/BILL",
            Value::Null,
            "/count",
            json!(2),
        ),
        (
            "GET",
            "/relationships/BILL?predicate=founded",
            Value::Null,
            "/count",
            json!(0),
        ),
        (
            "GET",
            "/relationships/Nobody",
            Value::Null,
            "/relationships",
            json!([]),
        ),
        (
            "GET",
            "/entity/BILL/mentioned-in?limit=1",
            Value::Null,
            "/documents/0/document_rid",
            json!("web:orn:web.page:x/1"),
        ),
        (
            "GET",
            "/entity/Nobody/mentioned-in",
            Value::Null,
            "/total_count",
            json!(0),
        ),
        (
            "GET",
            "/entity/BILL",
            Value::Null,
            "/entity/normalized_text",
            json!("bill baue"),
        ),
        (
            "GET",
            "/entity-search?query=ann&type_filter=Person",
            Value::Null,
            "/results/0/name",
            json!("Ann Lee"),
        ),
        (
            "POST",
            "/search",
            json!({ "query": "bill baue", "source": "vault", "limit": "1" }),
            "/results/0/rid",
            json!("vault:People/Bill Baue.md"),
        ),
        (
            "GET",
            "/search?q=bill+baue&source=vault",
            Value::Null,
            "/count",
            json!(1),
        ),
        (
            "POST",
            "/query",
            json!({ "question": "bill baue", "filters": { "source": "vault" } }),
            "/results/0/rid",
            json!("vault:People/Bill Baue.md"),
        ),
        (
            "POST",
            "/query",
            json!({ "query": "warmup" }),
            "/results",
            json!([]),
        ),
        (
            "GET",
            "/health",
            Value::Null,
            "/database",
            json!("connected"),
        ),
        (
            "GET",
            "/stats",
            Value::Null,
            "/by_type",
            json!({ "Person": 2, "Organization": 1, "Concept": 1 }),
        ),
        (
            "GET",
            "/relationship-stats",
            Value::Null,
            "/by_predicate/has_founder",
            json!(1),
        ),
        (
            "GET",
            "/entity-types",
            Value::Null,
            "/types/8/label",
            json!("Case Study"),
        ),
        (
            "POST",
            "/reload-schemas",
            Value::Null,
            "/phonetic_enabled",
            json!(["Person"]),
        ),
        (
            "GET",
            "/entities?entity_type=person&limit=1&offset=1",
            Value::Null,
            "/count",
            json!(1),
        ),
        (
            "GET",
            "/vault-entities?limit=2",
            Value::Null,
            "/count",
            json!(3),
        ),
        (
            "POST",
            "/resolve-to-vault",
            json!([BILL, "orn:no"]),
            "/mappings/0/wikilink",
            json!("[[People/Bill Baue]]"),
        ),
        (
            "POST",
            "/resolve-to-vault",
            json!([BILL, "orn:no"]),
            "/not_found",
            json!(["orn:no"]),
        ),
        (
            "POST",
            "/entities/mentioned-in",
            json!({ "uris": [BILL] }),
            "/total_entities",
            json!(1),
        ),
        (
            "POST",
            "/get-contextual-candidates",
            json!({ "attendees": ["Bill Baue"] }),
            "/candidates/0/name",
            json!("Ann Lee"),
        ),
        (
            "POST",
            "/get-contextual-candidates",
            json!({ "attendees": ["Bill Baue"], "entity_types": ["Concept"] }),
            "/candidates/0/name",
            json!("Tide Pools"),
        ),
        (
            "POST",
            "/sync-relationships",
            json!({ "vault_path": "People/Ann Lee.md", "entity_uri": "Ann Lee", "frontmatter": { "knows": ["Bill Baue", "Nobody"] } }),
            "/stats",
            json!({ "resolved": 1, "pending": 1 }),
        ),
        (
            "POST",
            "/vault/regenerate?limit=100",
            Value::Null,
            "/regenerated",
            json!(1),
        ),
        (
            "GET",
            "/entity/Tide%20Pools",
            Value::Null,
            "/entity/first_seen_rid",
            json!("orn:obsidian.entity:Notes/Concepts/Tide Pools.md"),
        ),
    ] {
        let path = bill(path);
        let answer = ask(&place, method, &path, &body).await;
        assert_eq!(answer.status, 200, "{method} {path}: {answer:?}");
        let json = answer.json();
        assert_eq!(
            json.pointer(pointer),
            Some(&expected),
            "{method} {path}: {json}"
        );
    }
}

#[tokio::test]
async fn koi_errors_are_details_and_those_of_other_routes_are_not() {
    let place = Place::new().await;
    for (method, path, body, status, detail) in [
        (
            "GET",
            "/entity/orn%3Ax%3Ay",
            Value::Null,
            404,
            "Entity not found",
        ),
        ("GET", "/entity/", Value::Null, 404, "Not Found"),
        ("GET", "/relationships", Value::Null, 404, "Not Found"),
        ("GET", "/search/nowhere", Value::Null, 404, "Not Found"),
        (
            "POST",
            "/entity/orn:x",
            json!({}),
            405,
            "Method Not Allowed",
        ),
        (
            "GET",
            "/register-entity",
            Value::Null,
            405,
            "Method Not Allowed",
        ),
        (
            "POST",
            "/entity/enrich",
            json!({}),
            503,
            "LLM enrichment not configured. Set LLM_ENRICHMENT_ENABLED=true and GEMINI_API_KEY.",
        ),
        (
            "POST",
            "/entity/resolve",
            json!({ "label": "   " }),
            422,
            "`label` is empty",
        ),
        (
            "POST",
            "/ingest",
            json!({ "document_rid": " ", "entities": [] }),
            422,
            "`document_rid` names no document",
        ),
    ] {
        let answer = ask(&place, method, path, &body).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert_eq!(answer.json()["detail"], detail, "{path}: {answer:?}");
    }
    for path in ["/nowhere", "/health/x", "/api/v1/nowhere", "/tools/nowhere"] {
        assert_eq!(place.get(path, "").await.code(), "not_found", "{path}");
    }
    assert_eq!(place.get("/api/v1/health", "").await.json()["memories"], 0);
    let bytes = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n\xff\xff";
    let answer = place.ask(bytes).await;
    let detail = answer.json()["detail"].clone();
    assert_eq!(
        (answer.status, detail),
        (400, json!("There was an error parsing the body"))
    );
    let form = "POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17\r\n\
                Content-Type: text/plain\r\n\r\n{\"query\": \"a b\"  }";
    let answer = place.ask(&form[..form.len() - 1]).await;
    assert_eq!(
        answer.json()["detail"][0]["type"],
        "model_attributes_type",
        "{answer:?}"
    );
}

#[tokio::test]
async fn koi_routes_of_pages_repositories_and_code_answer() {
    let place = Place::new().await;
    for (method, path, body, status, pointer, expected) in [
        (
            "POST",
            "/web/preview",
            json!({ "url": "http://10.0.0.1/" }),
            400,
            "/detail",
            json!("Blocked private IP: 10.0.0.1"),
        ),
        (
            "POST",
            "/web/preview",
            json!({ "url": "ftp://example.com/x" }),
            400,
            "/detail",
            json!("Blocked scheme: ftp"),
        ),
        (
            "POST",
            "/web/process",
            json!({ "url": "https://example.com/" }),
            404,
            "/detail",
            json!("URL not found. Preview it first with /web/preview."),
        ),
        (
            "POST",
            "/web/ingest",
            json!({ "url": "https://example.com/" }),
            404,
            "/detail",
            json!("URL not found. Preview it first."),
        ),
        (
            "POST",
            "/web/evaluate",
            json!({ "url": "https://example.com/", "decision": "ingest" }),
            404,
            "/detail",
            json!("URL not found. Preview it first with /web/preview."),
        ),
        (
            "GET",
            "/web/monitor/status",
            Value::Null,
            200,
            "/monitored_urls",
            json!(0),
        ),
        (
            "POST",
            "/web/monitor/remove",
            json!({ "url": "https://example.com/" }),
            200,
            "/status",
            json!("not_found"),
        ),
        (
            "POST",
            "/web/monitor/scan",
            Value::Null,
            200,
            "/checked",
            json!(0),
        ),
        (
            "GET",
            "/github/status",
            Value::Null,
            200,
            "/active_repos",
            json!(0),
        ),
        (
            "POST",
            "/github/scan?repo_name=no%2Fsuch",
            Value::Null,
            200,
            "/status",
            json!("no_repos"),
        ),
        (
            "GET",
            "/github/files?limit=5",
            Value::Null,
            200,
            "/count",
            json!(0),
        ),
        (
            "GET",
            "/github/files?limit=-5",
            Value::Null,
            200,
            "/count",
            json!(0),
        ),
        ("POST", "/code/query", json!({}), 200, "/count", json!(2)),
        (
            "GET",
            "/koi-net/health",
            Value::Null,
            200,
            "/status",
            json!("disabled"),
        ),
        (
            "GET",
            "/web/nowhere",
            Value::Null,
            404,
            "/detail",
            json!("Not Found"),
        ),
        (
            "GET",
            "/koi-net/nowhere",
            Value::Null,
            404,
            "/detail",
            json!("Not Found"),
        ),
        (
            "GET",
            "/github/scan",
            Value::Null,
            405,
            "/detail",
            json!("Method Not Allowed"),
        ),
    ] {
        let answer = ask(&place, method, path, &body).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        let json = answer.json();
        assert_eq!(
            json.pointer(pointer),
            Some(&expected),
            "{method} {path}: {json}"
        );
    }
    let read_only = Place::choosing(Selection {
        read_only: true,
        ..Selection::default()
    })
    .await;
    for path in ["/github/status", "/web/monitor/status", "/koi-net/health"] {
        assert_eq!(
            read_only.get(path, "").await.status,
            200,
            "{path} only looks"
        );
    }
    for path in ["/github/scan", "/web/monitor/scan", "/web/preview"] {
        assert_eq!(read_only.post(path, "", "").await.status, 403, "{path}");
    }
}

#[tokio::test]
async fn koi_uris_may_have_anything_in_them() {
    let place = Place::new().await;
    let name = "O'Brien's Café/X";
    let note = json!({
        "vault_rid": "r", "vault_path": "People/O.md", "entity_type": "Person", "name": name,
        "content_hash": "h",
    });
    let done = place
        .post("/register-entity", "", &note.to_string())
        .await
        .json();
    let uri = done["canonical_uri"].as_str().unwrap();
    assert_eq!(
        uri,
        "orn:personal-koi.entity:person-obriens-café/x-1886304c3393"
    );
    let escaped: String = uri.bytes().map(|it| format!("%{it:02x}")).collect();
    let raw = uri.replace('é', "%C3%A9");
    for shown in [escaped, raw] {
        let answer = place.get(&format!("/entity/{shown}"), "").await;
        assert_eq!(
            answer.json()["entity"]["entity_text"],
            name,
            "{shown}: {answer:?}"
        );
        let answer = place
            .get(&format!("/entity/{shown}/mentioned-in"), "")
            .await;
        assert_eq!(answer.json()["entity_uri"], uri, "{shown}: {answer:?}");
        let answer = place
            .get(&format!("/relationships/{shown}?predicate=knows"), "")
            .await;
        assert_eq!(answer.json()["count"], 0, "{shown}: {answer:?}");
    }
}

#[tokio::test]
async fn koi_limits_are_drawn_into_their_bounds() {
    let place = place().await;
    for (limit, expected) in [("0", 1), ("-1", 1), ("1", 1), ("99999999999999999999", 2)] {
        let path = format!("/entity-search?query=bill%20ann&limit={limit}&type_filter=Person");
        let answer = place.get(&path, "").await;
        assert_eq!(answer.json()["count"], expected, "{limit}: {answer:?}");
    }
}

#[tokio::test]
async fn koi_large_and_deep_input_is_refused_and_harms_nobody() {
    let place = Place::new().await;
    let label = "x".repeat(1024 * 1024);
    let body = json!({ "label": label }).to_string();
    let answer = place.post("/entity/resolve", "", &body).await;
    assert_eq!(
        answer.status,
        413,
        "{}",
        &answer.body[..200.min(answer.body.len())]
    );
    for deep in ["[".repeat(200_000), "{\"label\":".repeat(100_000)] {
        let answer = place.post("/entity/resolve", "", &deep).await;
        assert_eq!(answer.status, 422);
        assert_eq!(answer.json()["detail"][0]["type"], "json_invalid");
    }
    let closed = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let answer = place.post("/entity/resolve", "", &closed).await;
    assert_eq!(answer.status, 422);
    let answer = place
        .post("/entity/resolve", "", &"x".repeat(5 * 1024 * 1024))
        .await;
    assert_eq!(answer.status, 413);
    assert_eq!(place.get("/stats", "").await.status, 200);
}

#[tokio::test]
async fn koi_reading_and_writing_need_their_scopes() {
    let place = Place::with(Setup {
        require_token: true,
        ..Setup::default()
    })
    .await;
    let header = |scope: Scope| {
        let token = place.token(&[scope], "default", None);
        format!("Authorization: Bearer {token}\r\n")
    };
    let (read, write) = (header(Scope::Read), header(Scope::Write));
    let note = json!({
        "vault_rid": "r", "vault_path": "People/A.md", "entity_type": "Person", "name": "A",
        "content_hash": "h",
    })
    .to_string();
    let search = json!({ "query": "bill" }).to_string();
    for path in [
        "/health",
        "/stats",
        "/entity/x",
        "/entities",
        "/entity-search?query=a",
    ] {
        assert_eq!(place.get(path, "").await.status, 401, "{path}");
        assert_ne!(place.get(path, &read).await.status, 401, "{path}");
        assert_eq!(place.get(path, &write).await.status, 403, "{path}");
    }
    assert_eq!(place.post("/search", &read, &search).await.status, 200);
    // Whoever may not ask is not told what is wrong with the question.
    assert_eq!(
        place.post("/register-entity", &read, "{}").await.status,
        403
    );
    assert_eq!(place.post("/ingest", &read, &note).await.status, 403);
    let both = place.token(&[Scope::Read, Scope::Write], "elsewhere", None);
    let both = format!("X-API-Key: {both}\r\n");
    let done = place.post("/register-entity", &both, &note).await;
    assert_eq!(done.status, 200, "{done:?}");
    let count = |answer: Answer| answer.json()["total_entities"].clone();
    assert_eq!(count(place.get("/stats", &both).await), 1);
    assert_eq!(
        count(place.get("/stats", &read).await),
        1,
        "only Bill is in this space"
    );
}

#[tokio::test]
async fn koi_routes_follow_the_operators_choice() {
    let read_only = Place::choosing(Selection {
        read_only: true,
        ..Selection::default()
    })
    .await;
    assert_eq!(read_only.get("/stats", "").await.status, 200);
    assert_eq!(read_only.post("/ingest", "", "{}").await.status, 403);
    let other = Place::choosing(Selection {
        toolsets: vec!["omi".to_owned()],
        ..Selection::default()
    })
    .await;
    let answer = other.get("/stats", "").await;
    assert_eq!(
        (answer.status, answer.json()),
        (404, json!({ "detail": "Not Found" }))
    );
    let lean = Place::choosing(Selection {
        toolsets: vec!["lean".to_owned()],
        ..Selection::default()
    })
    .await;
    assert_eq!(lean.get("/stats", "").await.status, 200);
}

#[tokio::test]
async fn koi_routes_are_in_the_openapi_document() {
    let place = Place::new().await;
    let paths = place.get("/openapi.json", "").await.json()["paths"].clone();
    for (path, method) in [
        ("/entity/resolve", "post"),
        ("/entity/resolve", "get"),
        ("/relationships/{entity_uri}", "get"),
        ("/entity/{entity_uri}/mentioned-in", "get"),
        ("/search", "post"),
        ("/ingest", "post"),
        ("/health", "get"),
    ] {
        assert!(
            paths[path][method]["summary"].is_string(),
            "{method} {path}"
        );
    }
    let body = &paths["/entity/resolve"]["post"]["requestBody"]["content"]["application/json"];
    assert_eq!(body["schema"]["required"], json!(["label"]));
}

#[tokio::test]
async fn koi_notes_about_entities_say_how_they_stand() {
    let place = place().await;
    let found = place.get("/vault-entities", "").await.json();
    let of = |path: &str| {
        let rows = found["entities"].as_array().unwrap().iter();
        let row = rows.into_iter().find(|it| it["vault_path"] == path);
        row.unwrap_or_else(|| panic!("{path}: {found}")).clone()
    };
    let registered = of("People/Ann Lee.md");
    assert_eq!(
        (&registered["sync_status"], &registered["content_hash"]),
        (&json!("registered"), &json!("h"))
    );
    assert!(registered["last_synced"].is_string(), "{registered}");
    let noted = of("People/Bill Baue.md");
    assert_eq!(noted["sync_status"], "linked");
    assert_eq!(noted["content_hash"].as_str().unwrap().len(), 64);
    assert!(noted["last_synced"].is_string(), "{noted}");
    let health = place.get("/health", "").await.json();
    assert_eq!(health["github_sensor"], true, "{health}");
    assert!(health["warnings"].is_null(), "{health}");
}

#[tokio::test]
async fn koi_a_repository_is_unregistered_by_a_route() {
    let place = place().await;
    let added = json!({ "repo_url": "https://example.com/a/b" }).to_string();
    assert_eq!(place.post("/github/repos", "", &added).await.status, 200);
    let removed = json!({ "repo_name": "a/b", "keep_documents": true }).to_string();
    let answer = place.post("/github/repos/remove", "", &removed).await;
    assert_eq!(answer.json()["status"], "removed", "{answer:?}");
    let answer = place.post("/github/repos/remove", "", &removed).await;
    assert_eq!(answer.status, 404, "{answer:?}");
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("`a/b`"), "{detail}");
}

#[tokio::test]
async fn koi_a_model_describes_entities_that_nobody_described() {
    use kenning_testing_llm::{Reply, Scripted};
    let said = |text: &str| Reply::Says(json!({ "description": text }).to_string());
    let model = Scripted::saying(vec![said("Pools that the tide leaves."), said("")]);
    let endpoint = model.url("/v1");
    let outside = kenning_testing::Outside::of(&[
        ("KENNING_MODEL_ENDPOINT", &endpoint),
        ("KENNING_MODEL_NAME", "tiny"),
    ]);
    let fixture = kenning_testing::Fixture::in_world(Selection::default(), outside);
    let place = Place::of(fixture, Setup::default()).await;
    fill(&place).await;
    let text = json!({
        "document_rid": "web:orn:web.page:x/2", "content": "Tide Pools are left on the shore by the tide.",
        "entities": [{ "name": "Tide Pools", "type": "Concept" }],
    });
    assert_eq!(ask(&place, "POST", "/ingest", &text).await.status, 200);
    let answer = ask(
        &place,
        "POST",
        "/entity/enrich",
        &json!({ "entity_type": "Concept" }),
    )
    .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let found = answer.json();
    assert_eq!(
        (&found["enriched"], &found["model_used"]),
        (&json!(1), &json!("tiny")),
        "{found}"
    );
    assert_eq!(
        found["entities"][0]["description"],
        "Pools that the tide leaves."
    );
    assert!(found["tokens_used"].as_u64().unwrap() > 0, "{found}");
    let asked = model.seen()[0].body["messages"][1]["content"].to_string();
    assert!(asked.contains("left on the shore"), "{asked}");
    let uri = found["entities"][0]["uri"].as_str().unwrap().to_owned();
    let entity = ask(&place, "GET", &format!("/entity/{uri}"), &Value::Null)
        .await
        .json();
    assert!(
        entity.to_string().contains("Pools that the tide leaves."),
        "{entity}"
    );
    // It is described now, so nothing is asked about it again.
    let again = ask(
        &place,
        "POST",
        "/entity/enrich",
        &json!({ "entity_uri": uri }),
    )
    .await
    .json();
    assert_eq!(again["enriched"], 0, "{again}");
    assert_eq!(model.seen().len(), 1);
    let none = ask(
        &place,
        "POST",
        "/entity/describe",
        &json!({ "entity_type": "Person", "limit": 1 }),
    )
    .await;
    assert_eq!(none.status, 200, "{none:?}");
    assert_eq!(
        none.json()["skipped"][0]["reason"],
        "the model does not know it",
        "{none:?}"
    );
}
