//! The memory contract's own routes.

use crate::place::{Answer, Place, Setup, Wire, get};
use kenning_engine::Scope;
use serde_json::{Value, json};

async fn put(place: &Place, path: &str, body: &str) -> Answer {
    let n_bytes = body.len();
    let request = format!(
        "PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {n_bytes}\r\n\r\n{body}"
    );
    place.ask(request).await
}

async fn stored(place: &Place, body: Value) -> String {
    let answer = place.post("/api/v1/store", "", &body.to_string()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["memory_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_is_stored_is_recalled() {
    let place = Place::new().await;
    let fact = json!({ "content": "SQLite has full-text search", "memory_type": "fact" });
    let id = stored(&place, fact).await;
    let many =
        json!([{ "content": "Deploys happen on Tuesdays" }, { "content": "The cache is warm" }]);
    let answer = place.post("/api/v1/store", "", &many.to_string()).await;
    assert_eq!((answer.status, &answer.json()["count"]), (201, &json!(2)));
    let path = "/api/v1/recall?query=full-text%20search&limit=5&memory_type=fact";
    let answer = place.get(path, "").await;
    assert_eq!(answer.status, 200);
    let answer = answer.json();
    assert_eq!(answer["count"], 1, "{answer}");
    assert_eq!(answer["memories"][0]["memory_id"], id);
    let none = place.get("/api/v1/recall?query=zebra", "").await.json();
    assert_eq!(none, json!({ "memories": [], "count": 0 }));
    let health = place.get("/api/v1/health", "").await.json();
    assert_eq!(
        (&health["status"], &health["memories"]),
        (&json!("healthy"), &json!(3))
    );
}

#[tokio::test]
async fn evidence_moves_a_belief_as_the_contract_says() {
    let place = Place::new().await;
    let answer = place
        .post(
            "/api/v1/beliefs",
            "",
            r#"{"content":"TypeScript prevents runtime errors"}"#,
        )
        .await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.json()["confidence"], 0.5);
    let belief = answer.json()["belief_id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/beliefs/{belief}");
    for (content, supports, strength, expected) in [
        ("Caught 15 type errors", true, 0.9, 0.5675),
        ("Still a runtime error", false, 0.6, 0.46535),
    ] {
        let evidence = stored(&place, json!({ "content": content })).await;
        let update = json!({
            "evidence_memory_id": evidence, "supports": supports, "strength": strength,
        });
        let answer = put(&place, &path, &update.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let new = answer.json()["new_confidence"].as_f64().unwrap();
        assert!((new - expected).abs() < 1e-9, "{new}");
    }
    let listed = place.get("/api/v1/dashboard/beliefs", "").await.json();
    assert_eq!(listed["total"], 1, "{listed}");
    let listed = &listed["beliefs"][0];
    assert_eq!(
        (&listed["supporting"], &listed["contradicting"]),
        (&json!(1), &json!(1))
    );
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_with_its_field() {
    let place = Place::new().await;
    let belief = stored(&place, json!({ "content": "b", "memory_type": "belief" })).await;
    let fact = stored(&place, json!({ "content": "f", "memory_type": "fact" })).await;
    let check = async |method: &str, path: &str, body: &str, status: u16, part: &str| {
        let answer = match method {
            "GET" => place.get(path, "").await,
            "PUT" => put(&place, path, body).await,
            _ => place.post(path, "", body).await,
        };
        assert_eq!(answer.status, status, "{method} {path} {body}: {answer:?}");
        let error = answer.json()["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(part), "{path} {body}: {message}");
        let expected = if status == 400 {
            "invalid_input"
        } else {
            "not_found"
        };
        assert_eq!(error["code"], expected, "{path}");
    };
    for (path, part) in [
        ("/api/v1/recall", "query"),
        ("/api/v1/recall?query=", "query"),
        ("/api/v1/recall?query=x&limit=0", "limit"),
        ("/api/v1/recall?query=x&limit=101", "limit"),
        ("/api/v1/recall?query=x&limit=ten", "limit"),
        ("/api/v1/recall?query=x&min_relevance=2", "min_relevance"),
        ("/api/v1/recall?query=x&memory_type=rumor", "rumor"),
        ("/api/v1/recall?query=x&query=y", "query"),
        ("/api/v1/recall?query=x&sort=up", "sort"),
        ("/api/v1/events?event_type=memory.lost", "memory.lost"),
        ("/api/v1/events?after=99", "after"),
        ("/api/v1/dashboard/memories?limit=0", "limit"),
        ("/api/v1/dashboard/memories?limit=1001", "limit"),
        ("/api/v1/dashboard/memories?offset=-1", "offset"),
        ("/api/v1/dashboard/memories?order_by=embedding", "order_by"),
        ("/api/v1/dashboard/memories?order_dir=sideways", "order_dir"),
        ("/api/v1/dashboard/memories?memory_type=rumor", "rumor"),
        ("/api/v1/dashboard/edges?order_by=content", "order_by"),
        ("/api/v1/dashboard/graph?limit=x", "limit"),
        ("/api/v1/dashboard/beliefs?nonsense=1", "nonsense"),
        ("/api/v1/dashboard/search?limit=5", "query"),
    ] {
        check("GET", path, "", 400, part).await;
    }
    for (path, body, status, part) in [
        ("store", "", 400, "content"),
        ("store", "{", 400, "not JSON"),
        ("store", r#"{"content":""}"#, 400, "content"),
        ("store", r#"{"content":5}"#, 400, "content"),
        (
            "store",
            r#"{"content":"x","memory_type":"rumor"}"#,
            400,
            "rumor",
        ),
        (
            "store",
            r#"{"content":"x","confidence":1.5}"#,
            400,
            "confidence",
        ),
        (
            "store",
            r#"{"content":"x","related_to":["mem_no"]}"#,
            404,
            "mem_no",
        ),
        (
            "store",
            r#"[{"content":"good"},{"content":""}]"#,
            400,
            "memory 2",
        ),
        ("store", "7", 400, "not an object"),
        (
            "beliefs",
            r#"{"content":"x","memory_type":"fact"}"#,
            400,
            "memory_type",
        ),
        ("beliefs", "[]", 400, "object"),
        ("sessions/start", r#"{"session_id":5}"#, 400, "session_id"),
        (
            "sessions/start",
            r#"{"session_id":"a b"}"#,
            400,
            "session_id",
        ),
        ("sessions/end", r#"{"id":"a"}"#, 400, "`id`"),
    ] {
        check("POST", &format!("/api/v1/{path}"), body, status, part).await;
    }
    let update = |strength: f64| {
        json!({ "evidence_memory_id": fact, "supports": true, "strength": strength }).to_string()
    };
    for (id, body, status, part) in [
        ("mem_no", update(0.5), 404, "mem_no"),
        (fact.as_str(), update(0.5), 400, "not a belief"),
        (belief.as_str(), update(1.5), 400, "strength"),
        (belief.as_str(), "{}".to_owned(), 400, "evidence_memory_id"),
        (
            belief.as_str(),
            r#"{"belief_id":"other"}"#.to_owned(),
            400,
            "belief_id",
        ),
        ("%ff", update(0.5), 400, "UTF-8"),
    ] {
        check("PUT", &format!("/api/v1/beliefs/{id}"), &body, status, part).await;
    }
    let count = place.get("/api/v1/health", "").await.json()["memories"].clone();
    assert_eq!(count, 2, "nothing of what was refused is kept");
}

#[tokio::test]
async fn a_session_has_a_length_and_an_entry_in_the_log_of_the_day() {
    let place = Place::new().await;
    let started = place.post("/api/v1/sessions/start", "", "").await;
    assert_eq!(started.status, 200, "{started:?}");
    let id = started.json()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(started.json()["now_integrity"], true);
    place.fixture.clock.advance(90_000);
    let end = json!({ "session_id": id }).to_string();
    let ended = place.post("/api/v1/sessions/end", "", &end).await.json();
    assert_eq!(ended["duration_seconds"], 90.0, "{ended}");
    let again = place.post("/api/v1/sessions/end", "", &end).await.json();
    assert_eq!(
        again["duration_seconds"],
        Value::Null,
        "it has ended already"
    );
    let log = place.fixture.omi().join(ended["log"].as_str().unwrap());
    let log = std::fs::read_to_string(log).unwrap();
    assert!(
        log.contains("Session ended at 2027-01-15T08:01:30\nLast task: none"),
        "{log}"
    );
}

#[tokio::test]
async fn a_dashboard_sees_pages_counts_and_the_graph() {
    let place = Place::new().await;
    let mut ids = Vec::new();
    for n in 0..5 {
        let related: Vec<&String> = ids.last().into_iter().collect();
        let memory = json!({
            "content": format!("memory number {n}"), "memory_type": "fact", "related_to": related,
        });
        ids.push(stored(&place, memory).await);
        place.fixture.clock.advance(1_000);
    }
    let path = "/api/v1/dashboard/memories?limit=2&offset=1&order_by=created_at&order_dir=asc";
    let page = place.get(path, "").await.json();
    assert_eq!(
        (&page["total"], &page["limit"], &page["offset"]),
        (&json!(5), &json!(2), &json!(1))
    );
    let listed: Vec<&str> = page["memories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["memory_id"].as_str().unwrap())
        .collect();
    assert_eq!(listed, [&ids[1], &ids[2]]);
    let newest = place
        .get("/api/v1/dashboard/memories?limit=1", "")
        .await
        .json();
    assert_eq!(newest["memories"][0]["memory_id"], ids[4]);
    let edges = place
        .get("/api/v1/dashboard/edges?edge_type=RELATED_TO", "")
        .await;
    assert_eq!(edges.json()["total"], 4);
    let graph = place
        .get("/api/v1/dashboard/graph?limit=2", "")
        .await
        .json();
    assert_eq!(graph["nodes"].as_array().unwrap().len(), 2);
    assert_eq!(graph["edges"].as_array().unwrap().len(), 1, "{graph}");
    let stats = place.get("/api/v1/dashboard/stats", "").await.json();
    assert_eq!(
        (&stats["memory_count"], &stats["edge_count"]),
        (&json!(5), &json!(4))
    );
    assert_eq!(stats["type_distribution"]["fact"], 5);
    let found = place
        .get("/api/v1/dashboard/search?q=number", "")
        .await
        .json();
    assert_eq!(found["total"], 5, "{found}");
    assert_eq!(place.get("/api/v1/dashboard/health", "").await.status, 200);
}

struct Follower {
    wire: Wire,
    text: String,
}

impl Follower {
    async fn new(place: &Place, query: &str, headers: &str) -> Self {
        let mut wire = place.connect().await;
        wire.send(get(&format!("/api/v1/events{query}"), headers))
            .await;
        let head = wire.head().await.expect("an answer");
        assert_eq!(head.status, 200, "{head:?}");
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        let text = String::new();
        let mut follower = Self { wire, text };
        let (id, hello) = follower.next().await;
        assert_eq!((id, &hello["type"]), (None, &json!("connected")));
        follower
    }

    async fn next(&mut self) -> (Option<String>, Value) {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let frame = frame.to_owned();
                self.text = rest.to_owned();
                let field = |name: &str| frame.lines().find_map(|it| it.strip_prefix(name));
                let id = field("id: ").map(str::to_owned);
                let data = field("data: ").expect("data");
                return (id, serde_json::from_str(data).unwrap());
            }
            let chunk = self.wire.chunk().await.expect("more");
            self.text += std::str::from_utf8(&chunk).unwrap();
        }
    }
}

#[tokio::test]
async fn events_are_those_of_the_contract_with_its_payload() {
    let place = Place::new().await;
    let mut all = Follower::new(&place, "", "").await;
    let mut recalls = Follower::new(&place, "?event_type=MemoryRecalledEvent", "").await;
    place.write("a note is none of its business.md");
    let id = stored(
        &place,
        json!({ "content": "the cache is cold", "memory_type": "fact" }),
    )
    .await;
    let (seq, event) = all.next().await;
    assert_eq!(
        event,
        json!({
            "event_type": "memory.stored", "memory_id": id, "content": "the cache is cold",
            "memory_type": "fact", "confidence": null,
            "timestamp": event["timestamp"], "metadata": {},
        })
    );
    place.get("/api/v1/recall?query=cache", "").await;
    let (_, event) = recalls.next().await;
    assert_eq!(event["event_type"], json!("memory.recalled"));
    let query = event["query"].as_str().unwrap();
    assert!(query.starts_with("hash:") && query.len() == 69, "{query}");
    assert_eq!(event["result_count"], 1);
    // A client that comes back says how far it came.
    let header = format!("Last-Event-ID: {}\r\n", seq.unwrap());
    let mut again = Follower::new(&place, "", &header).await;
    assert_eq!(again.next().await.1["event_type"], "memory.recalled");
}

#[tokio::test]
async fn a_key_in_its_own_header_is_a_token() {
    let setup = Setup {
        require_token: true,
        fixed_token: Some("secret".to_owned()),
        ..Setup::default()
    };
    let place = Place::with(setup).await;
    let reader = place.token(&[Scope::Read], "default", None);
    let path = "/api/v1/recall?query=x";
    let check = async |headers: &str, status: u16| {
        let answer = place.get(path, headers).await;
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
    };
    check("X-API-Key: secret\r\n", 200).await;
    check(&format!("x-api-key: {reader}\r\n"), 200).await;
    check("", 401).await;
    check("X-API-Key: wrong\r\n", 401).await;
    check("X-API-Key: \r\n", 401).await;
    check("X-API-Key: secret\r\nX-API-Key: secret\r\n", 401).await;
    check("X-API-Key: secret\r\nAuthorization: Bearer secret\r\n", 401).await;
    check("X-API-Key: Bearer secret\r\n", 401).await;
    let header = format!("X-API-Key: {reader}\r\n");
    let answer = place
        .post("/api/v1/store", &header, r#"{"content":"x"}"#)
        .await;
    assert_eq!(answer.status, 403, "it may only read: {answer:?}");
    for path in [
        "/api/v1/sessions/start",
        "/api/v1/sessions/end",
        "/api/v1/beliefs",
    ] {
        let answer = place.post(path, &header, r#"{"content":"x"}"#).await;
        assert!([400, 403].contains(&answer.status), "{path}: {answer:?}");
    }
    let answer = place.post("/api/v1/sessions/start", &header, "{}").await;
    assert_eq!(answer.status, 403, "{answer:?}");
}

#[tokio::test]
async fn what_the_operator_left_out_is_not_served() {
    let koi = kenning_tools::Selection {
        toolsets: vec!["koi".to_owned()],
        ..kenning_tools::Selection::default()
    };
    let read_only = kenning_tools::Selection {
        read_only: true,
        ..kenning_tools::Selection::default()
    };
    let no_recall = kenning_tools::Selection {
        exclude_tools: vec!["memory_recall".to_owned()],
        ..kenning_tools::Selection::default()
    };
    for (selection, recall, store, session) in [
        (koi, 404, 404, 404),
        (read_only, 200, 403, 403),
        (no_recall, 404, 201, 200),
    ] {
        let place = Place::choosing(selection).await;
        let answer = place.get("/api/v1/recall?query=x", "").await;
        assert_eq!(answer.status, recall, "{answer:?}");
        for path in ["dashboard/memories", "dashboard/stats", "health"] {
            let answer = place.get(&format!("/api/v1/{path}"), "").await;
            assert_eq!(answer.status, recall, "{path}: {answer:?}");
        }
        let answer = place.post("/api/v1/store", "", r#"{"content":"x"}"#).await;
        assert_eq!(answer.status, store, "{answer:?}");
        let answer = place.post("/api/v1/sessions/start", "", "").await;
        assert_eq!(answer.status, session, "{answer:?}");
    }
}

#[tokio::test]
async fn another_space_sees_nothing_of_it() {
    let place = Place::new().await;
    let id = stored(
        &place,
        json!({ "content": "ours", "memory_type": "belief" }),
    )
    .await;
    let token = place.token(&Scope::ALL, "theirs", None);
    let header = format!("X-API-Key: {token}\r\n");
    let recall = place.get("/api/v1/recall?query=ours&min_relevance=0", &header);
    assert_eq!(recall.await.json()["count"], 0);
    for (list, name) in [
        ("memories", "memories"),
        ("beliefs", "beliefs"),
        ("graph", "nodes"),
    ] {
        let path = format!("/api/v1/dashboard/{list}");
        let listed = place.get(&path, &header).await.json();
        assert_eq!(
            (&listed["total"], &listed[name]),
            (&json!(0), &json!([])),
            "{list}"
        );
    }
    let mut theirs = Follower::new(&place, "?event_type=memory.stored&after=0", &header).await;
    let theirs_too = json!({ "content": "theirs", "related_to": [id] }).to_string();
    let answer = place.post("/api/v1/store", &header, &theirs_too).await;
    assert_eq!(answer.status, 404, "{answer:?}");
    let answer = place
        .post("/api/v1/store", &header, r#"{"content":"theirs"}"#)
        .await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(
        theirs.next().await.1["content"],
        "theirs",
        "and nothing before it"
    );
    let answer = place.post("/api/v1/sessions/end", &header, "").await;
    assert_eq!(
        answer.status, 403,
        "the daily log is not theirs: {answer:?}"
    );
}
