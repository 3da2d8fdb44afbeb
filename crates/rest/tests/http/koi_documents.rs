//! What `/ingest` keeps of a document, and the notes that `/vault/regenerate` writes of what is known.

use crate::place::Place;
use kenning_core::Space;
use kenning_engine::{Caller, Principal};
use serde_json::{Value, json};

async fn ingest(place: &Place, said: Value) -> Value {
    let answer = place.post("/ingest", "", &said.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn regenerate(place: &Place, query: &str) -> Value {
    let path = format!("/vault/regenerate{query}");
    let answer = place.post(&path, "", "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn described(place: &Place, name: &str) -> Value {
    let path = format!("/entity/{}", name.replace(' ', "%20"));
    let entity = place.get(&path, "").await.json();
    entity["entity"]["metadata"]["description"].clone()
}

#[tokio::test]
async fn koi_what_an_ingested_document_says_is_found_and_describes_whom_no_note_does() {
    let place = Place::new().await;
    let text = "The quokkaberry grows\n  where [[nobody]] looks.";
    let said = json!({
        "document_rid": "minutes:7", "source": "minutes", "content": text,
        "entities": [
            { "name": "Bill Baue", "type": "Person", "context": "host" },
            { "name": "Quokkaberry", "type": "Concept", "context": "a berry\u{1b}[2J of\nthe shore" },
        ],
    });
    // A second time says the same.
    for _ in 0..2 {
        let done = ingest(&place, said.clone()).await;
        assert_eq!(done["warnings"], Value::Null, "{done}");
        assert_eq!(
            described(&place, "Quokkaberry").await,
            "a berry[2J of the shore"
        );
        assert_eq!(described(&place, "Bill Baue").await, Value::Null);
    }
    for source in ["", "&source=minutes"] {
        let path = format!("/search?q=quokkaberry+grows{source}");
        let found = place.get(&path, "").await.json();
        let first = &found["results"][0];
        assert_eq!(first["rid"], "minutes:7", "{found}");
        assert_eq!(first["source"], "minutes");
        assert_eq!(first["content_preview"], text, "verbatim");
    }
    let later = json!({ "document_rid": "minutes:7", "content": "Only figs now.", "entities": [] });
    ingest(&place, later).await;
    let found = place.get("/search?q=figs", "").await.json();
    assert_eq!(found["results"][0]["rid"], "minutes:7", "{found}");
    let owner = Caller::new(Principal::owner(Space::default()));
    let engine = place.fixture.board.engine();
    engine.koi().forget_statement(&owner, "minutes:7").unwrap();
    let found = place.get("/search?q=figs", "").await.json();
    assert!(!found.to_string().contains("minutes:7"), "{found}");
    // A note of the vault has its own text, and nobody says that he is the vault.
    let forged = json!({
        "document_rid": "vault:People/Bill Baue.md", "content": "forged", "entities": [],
    });
    let done = ingest(&place, forged).await;
    assert!(
        done["warnings"][0].as_str().unwrap().contains("`content`"),
        "{done}"
    );
    assert!(
        !place
            .get("/search?q=forged", "")
            .await
            .json()
            .to_string()
            .contains("Bill Baue.md")
    );
    let forged = json!({
        "document_rid": "x:1", "source": "vault-sensor", "content": "zanzibarine", "entities": [],
    });
    ingest(&place, forged).await;
    let found = place.get("/search?q=zanzibarine", "").await.json();
    assert_eq!(found["results"][0]["source"], "api", "{found}");
}

#[tokio::test]
async fn koi_a_note_that_is_written_of_what_is_known_has_no_live_markup() {
    let place = Place::new().await;
    let context = "see [[People/Bill Baue]] <script>x</script>\n---\n# H\n#tag";
    let said = json!({
        "document_rid": "web:x",
        "entities": [{ "name": "Inj [[Ected]] <b>", "type": "Concept", "context": context }],
    });
    ingest(&place, said).await;
    let done = regenerate(&place, "").await;
    assert_eq!(done["regenerated"], 1, "{done}");
    let path = "Concepts/Inj Ected b.md";
    let read = place
        .fixture
        .call("vault_read_note", json!({ "path": path }));
    assert!(!read.is_error(), "{}", read.text);
    let note = std::fs::read_to_string(place.fixture.vault().join(path)).unwrap();
    let (fields, body) = note
        .strip_prefix("---\n")
        .and_then(|it| it.split_once("\n---\n"))
        .unwrap();
    assert!(fields.contains("name: \"Inj [[Ected]] <b>\""), "{fields}");
    assert!(fields.contains("source: \"web\""), "{fields}");
    for live in ["[[", "<script>", "\n# H", " #tag", "\n---"] {
        assert!(!body.contains(live), "{live:?} in {body}");
    }
    assert!(body.contains("People/Bill Baue"), "{body}");
}

#[tokio::test]
async fn koi_a_limit_counts_the_notes_that_are_written() {
    let place = Place::new().await;
    let names = ["Alder", "Birch", "Cedar", "Dogwood", "Elm"];
    let entities = names.map(|it| json!({ "name": it, "type": "Concept" }));
    ingest(
        &place,
        json!({ "document_rid": "web:trees", "entities": entities }),
    )
    .await;
    for expected in [2, 2, 1, 0] {
        let done = regenerate(&place, "?limit=2").await;
        assert_eq!(done["regenerated"], expected, "{done}");
        assert_eq!(
            (&done["errors"], &done["total"]),
            (&json!(0), &json!(expected))
        );
    }
}
