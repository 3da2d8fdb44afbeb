//! The log over HTTP: its state, its checkpoints, proofs, metrics, and some of its events.

use crate::place::{Place, get};
use kenning_engine::check_proof;
use serde_json::{Value, json};

#[tokio::test]
async fn the_state_of_the_log_can_be_read() {
    let place = Place::new().await;
    place.write("a.md");
    let state = place.get("/log", "").await.json();
    assert_eq!(state["events"], 1);
    assert_eq!(state["kinds"], json!({ "NoteWritten": 1 }));
    assert_eq!(state["lastCheckpoint"], Value::Null);
    assert_eq!(state["lastVerified"], Value::Null);
    assert_eq!(state["eventRoot"].as_str().unwrap().len(), 64);
    place
        .post("/tools/kg_audit_checkpoint", "", r#"{"name": "first"}"#)
        .await;
    let owner = place.fixture.owner();
    let engine = place.fixture.board.engine();
    engine.verify(&owner.principal.space, &|_| ()).unwrap();
    let state = place.get("/log", "").await.json();
    assert_eq!(state["lastCheckpoint"]["height"], 0);
    assert_eq!(state["lastCheckpoint"]["size"], 1);
    assert_eq!(state["lastVerified"]["clean"], true);
    assert_eq!(state["lastVerified"]["events"], 2);
    let metrics = place.get("/metrics", "").await.body;
    for line in [
        "kenning_log_events 2",
        "kenning_log_checkpoint_height 0",
        "kenning_log_verified_events 2",
        "kenning_log_verified_clean 1",
    ] {
        assert!(
            metrics.contains(&format!("\n{line}\n")),
            "{line}: {metrics}"
        );
    }
}

#[tokio::test]
async fn checkpoints_are_listed_newest_first_and_in_pages() {
    let place = Place::new().await;
    for n in 0..3 {
        place.write(&format!("{n}.md"));
        let body = format!(r#"{{"name": "number {n}", "tags": ["t"]}}"#);
        place.post("/tools/kg_audit_checkpoint", "", &body).await;
    }
    let page = place.get("/log/checkpoints?limit=2", "").await.json();
    let names = |page: &Value| -> Vec<String> {
        let list = page["checkpoints"].as_array().unwrap().iter();
        list.map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&page), ["number 2", "number 1"]);
    assert_eq!(page["hasMore"], true);
    assert_eq!(page["checkpoints"][0]["validatorCount"], 1);
    assert_eq!(page["checkpoints"][0]["eventsSincePrevious"], 2);
    let below = page["checkpoints"][1]["height"].as_u64().unwrap();
    let rest = place
        .get(&format!("/log/checkpoints?below={below}"), "")
        .await;
    assert_eq!(names(&rest.json()), ["number 0"]);
    assert_eq!(rest.json()["hasMore"], false);
    for (query, expected) in [
        ("limit=0", "`limit`: 0 is not from 1 to 1000"),
        ("limit=1001", "`limit`: 1001 is not from 1 to 1000"),
        ("below=x", "`below`: `x` is not a number"),
    ] {
        let answer = place.get(&format!("/log/checkpoints?{query}"), "").await;
        assert_eq!(answer.status, 422, "{query}");
        assert!(answer.message().contains(expected), "{answer:?}");
    }
}

#[tokio::test]
async fn a_proof_is_served_once_a_checkpoint_covers_the_event() {
    let place = Place::new().await;
    place.write("a.md");
    // Who only looks signs nothing.
    let answer = place.get("/log/proof/1", "").await;
    assert_eq!(answer.status, 409, "{answer:?}");
    assert!(
        answer
            .message()
            .contains("no signed checkpoint covers event 1")
    );
    place.post("/tools/kg_audit_checkpoint", "", "{}").await;
    let answer = place.get("/log/proof/1", "").await;
    let key = place.fixture.log().signer().did().clone();
    let (seq, kind, size) = check_proof(&answer.body, &key).unwrap();
    assert_eq!((seq, kind.as_str(), size), (1, "NoteWritten", 1));
    assert_eq!(place.get("/log/proof/99", "").await.status, 422);
}

#[tokio::test]
async fn a_stream_can_be_of_some_types_only() {
    let place = Place::new().await;
    place.write("a.md");
    place.post("/tools/kg_audit_checkpoint", "", "{}").await;
    place.write("a.md");
    place.write("b.md");
    for (types, expected) in [
        ("CheckpointCreated", (2, "CheckpointCreated")),
        ("NodeCreated", (1, "NoteWritten")),
        ("EdgeDeleted,%20CheckpointCreated", (2, "CheckpointCreated")),
    ] {
        let mut wire = place.connect().await;
        let path = format!("/events?after=0&event_type={types}");
        wire.send(get(&path, "")).await;
        assert_eq!(wire.head().await.expect("an answer").status, 200);
        let mut text = String::new();
        while !text.contains("event: ") {
            text += std::str::from_utf8(&wire.chunk().await.expect("a frame")).unwrap();
        }
        let text = text.replace("retry: 1000\n\n", "");
        let (seq, kind) = expected;
        let mut lines = text.lines();
        let id = lines.next().unwrap_or_default();
        assert!(id.starts_with(&format!("id: {seq}-")), "{types}: {text}");
        let event = format!("event: {kind}");
        assert_eq!(lines.next(), Some(event.as_str()), "{types}: {text}");
    }
}
