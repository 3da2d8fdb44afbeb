//! A model that `config.yaml` chose: it is used when it answers and missed when it does not.

use kenning_testing::Fixture;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A server that speaks Ollama's format and knows two directions: what is about cats, and the rest.
struct Ollama {
    address: String,
    is_up: Arc<AtomicBool>,
    texts: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Ollama {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let is_up = Arc::new(AtomicBool::new(true));
        let texts = Arc::new(AtomicUsize::new(0));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (up, count) = (Arc::clone(&is_up), Arc::clone(&texts));
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                        break;
                    }
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let request: Value = serde_json::from_slice(&body).unwrap();
                let input = request["input"].as_array().unwrap();
                count.fetch_add(input.len(), Ordering::SeqCst);
                let read = input
                    .iter()
                    .filter_map(Value::as_str)
                    .map(ToOwned::to_owned);
                seen.lock().unwrap().extend(read);
                let answer = if up.load(Ordering::SeqCst) {
                    let vectors: Vec<Value> = input
                        .iter()
                        .map(|it| vector(it.as_str().unwrap()))
                        .collect();
                    let body =
                        json!({ "model": request["model"], "embeddings": vectors }).to_string();
                    format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                        body.len()
                    )
                } else {
                    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned()
                };
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self {
            address,
            is_up,
            texts,
            asked,
        }
    }
}

/// Words that share no letter with each other and still mean the same to this model.
fn vector(text: &str) -> Value {
    let is_cat = ["feline", "kitten", "purring"]
        .iter()
        .any(|it| text.contains(it));
    if is_cat {
        json!([1.0, 0.1, 0.0])
    } else {
        json!([0.0, 0.1, 1.0])
    }
}

fn fixture(address: &str) -> Fixture {
    let fixture = Fixture::new();
    let omi = fixture.root.path().join("omi");
    std::fs::create_dir_all(&omi).unwrap();
    std::fs::write(
        omi.join("config.yaml"),
        format!(
            "embedding:\n  provider: ollama\n  model: toy\n  dimensions: 3\n  endpoint: {address}\n"
        ),
    )
    .unwrap();
    fixture
}

fn wait_until_embedded(fixture: &Fixture) {
    let began = Instant::now();
    loop {
        let status = fixture
            .board
            .engine()
            .embedding_status(&fixture.owner())
            .unwrap();
        if status.waiting == 0 {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{status:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn store(fixture: &Fixture, content: &str) {
    let reply = fixture.call("memory_store", json!({ "content": content }));
    assert!(!reply.is_error(), "{}", reply.text);
}

#[test]
fn the_chosen_model_decides_what_is_near() {
    let model = Ollama::start();
    let fixture = fixture(&model.address);
    for content in [
        "a kitten was adopted",
        "the invoice is overdue",
        "the roof leaks",
        "trains were late",
    ] {
        store(&fixture, content);
    }
    wait_until_embedded(&fixture);
    let asked = fixture.call(
        "memory_recall",
        json!({ "query": "purring", "min_relevance": 0 }),
    );
    assert_eq!(
        asked.to_json()[0]["content"],
        "a kitten was adopted",
        "{}",
        asked.text
    );
    assert!(asked.remarks.is_empty(), "{:?}", asked.remarks);
    let status = fixture
        .board
        .engine()
        .embedding_status(&fixture.owner())
        .unwrap();
    assert_eq!(
        (status.provider.as_str(), status.dimensions, status.passages),
        ("ollama", 3, 4)
    );
    assert!(status.model.contains("toy"), "{status:?}");
}

#[test]
fn the_same_text_is_embedded_once() {
    let model = Ollama::start();
    let fixture = fixture(&model.address);
    store(&fixture, "the roof leaks");
    wait_until_embedded(&fixture);
    let before = model.texts.load(Ordering::SeqCst);
    let fact = json!({ "content": "the roof leaks", "memory_type": "fact" });
    assert!(!fixture.call("memory_store", fact).is_error());
    wait_until_embedded(&fixture);
    assert_eq!(model.texts.load(Ordering::SeqCst), before);
}

/// [`kenning_engine`] refuses, in a build with debug assertions, to ask a model while a transaction is open: a
/// tool that did would fail here.
#[test]
fn a_query_is_embedded_once_a_call_and_before_any_transaction() {
    let model = Ollama::start();
    let fixture = fixture(&model.address);
    store(&fixture, "a kitten was adopted");
    let note = json!({ "path": "Concepts/kitten.md", "content": "# kitten\nIt purrs.\n" });
    assert!(!fixture.call("vault_write_note", note).is_error());
    fixture.put_document("docs/cats.md", "# Cats\nA kitten is a young cat.\n");
    assert!(!fixture.call("kg_graph_generate", json!({})).is_error());
    // Whoever asks has what is new embedded.
    fixture.call("memory_recall", json!({ "query": "kitten" }));
    wait_until_embedded(&fixture);
    for (tool, mut arguments) in [
        ("memory_recall", json!({})),
        ("koi_search", json!({})),
        ("knowledge_search", json!({})),
        ("kg_query", json!({})),
        ("kg_search_nodes", json!({})),
        ("kg_vector_search", json!({ "hybrid": true })),
        ("search", json!({ "item_type": "tool" })),
        ("resolve_entity", json!({ "type_hint": "Concept" })),
        ("resolve_entity", json!({ "type_hint": "Nonsense" })),
    ] {
        let field = match tool {
            "resolve_entity" => "label",
            _ => "query",
        };
        let query = format!("purring, as {tool} is asked with {arguments}");
        arguments[field] = query.as_str().into();
        let reply = fixture.call(tool, arguments);
        assert!(!reply.is_error(), "{tool}: {}", reply.text);
        let asked = model.asked.lock().unwrap();
        let times = asked.iter().filter(|it| **it == query).count();
        assert_eq!(times, 1, "{tool}");
    }
}

#[test]
fn a_model_that_is_away_costs_no_write_and_recall_says_so() {
    let model = Ollama::start();
    model.is_up.store(false, Ordering::SeqCst);
    let fixture = fixture(&model.address);
    store(&fixture, "the roof leaks above the kitchen");
    let asked = fixture.call(
        "memory_recall",
        json!({ "query": "where does the roof leak" }),
    );
    assert_eq!(
        asked.to_json()[0]["content"],
        "the roof leaks above the kitchen"
    );
    assert!(
        asked.remarks[0].contains("built-in table"),
        "{:?}",
        asked.remarks
    );
    let status = fixture
        .board
        .engine()
        .embedding_status(&fixture.owner())
        .unwrap();
    assert_eq!(status.waiting, 1);
    assert!(status.fault.is_some());
    // It comes back: whatever waits is embedded, here by asking for it.
    model.is_up.store(true, Ordering::SeqCst);
    let done = fixture.board.engine().reindex(&fixture.owner()).unwrap();
    // The thread in the background may have been quicker.
    assert!(done.nodes == 1 && done.embedded <= 1, "{done:?}");
    assert_eq!(
        fixture
            .board
            .engine()
            .embedding_status(&fixture.owner())
            .unwrap()
            .waiting,
        0
    );
}

#[test]
fn a_provider_that_cannot_be_is_a_remark_and_not_a_failure() {
    let fixture = Fixture::new();
    let omi = fixture.root.path().join("omi");
    std::fs::create_dir_all(&omi).unwrap();
    for (config, expected) in [
        (
            "embedding:\n  provider: nim\n  api_key: ${NO_SUCH_KEY}\n",
            "NO_SUCH_KEY",
        ),
        ("embedding:\n  provider: local\n  model: nowhere\n", ""),
        ("embedding:\n  provider: martian\n", "martian"),
    ] {
        std::fs::write(omi.join("config.yaml"), config).unwrap();
        store(&fixture, "the roof leaks");
        let asked = fixture.call("memory_recall", json!({ "query": "the roof leaks" }));
        assert_eq!(
            asked.to_json()[0]["content"],
            "the roof leaks",
            "{config}: {}",
            asked.text
        );
        assert!(
            asked.remarks.iter().any(|it| it.contains(expected)),
            "{config}: {:?}",
            asked.remarks
        );
    }
}

#[test]
fn the_time_constant_of_recency_is_a_setting() {
    let fixture = Fixture::new();
    store(&fixture, "the roof leaks");
    fixture.clock.advance(10 * 86_400_000);
    let score = || {
        let asked = fixture
            .call("memory_recall", json!({ "query": "the roof leaks" }))
            .to_json();
        asked[0]["final_score"].as_f64().unwrap()
    };
    let usual = score();
    let omi = fixture.root.path().join("omi");
    std::fs::create_dir_all(&omi).unwrap();
    std::fs::write(
        omi.join("config.yaml"),
        "storage:\n  recency_half_life_days: 1\n",
    )
    .unwrap();
    assert!(score() < usual);
}

#[test]
fn koi_a_concept_is_meant_by_words_that_share_no_letter_with_its_name_and_a_person_is_not() {
    let model = Ollama::start();
    let fixture = fixture(&model.address);
    let notes = [
        ("Concepts/kitten.md", "# kitten\n"),
        ("People/Kit kitten.md", "# Kit\n"),
        ("Organizations/Barn.md", "# Barn\n"),
    ];
    for (path, content) in notes {
        fixture.call(
            "vault_write_note",
            json!({ "path": path, "content": content }),
        );
    }
    let resolve = |label: &str, hint: Option<&str>| {
        let arguments = json!({ "label": label, "type_hint": hint });
        fixture.call("resolve_entity", arguments).to_json()
    };
    resolve("kitten", None);
    wait_until_embedded(&fixture);
    let found = resolve("purring feline", Some("Concept"));
    assert_eq!(found["candidates"][0]["name"], "kitten", "{found}");
    assert!(found["candidates"][0]["confidence"].as_f64().unwrap() > 0.88);
    // A meaning tells nobody from somebody else.
    let found = resolve("purring feline", Some("Person"));
    assert_eq!(found["is_new"], true, "{found}");
    let found = resolve("stable", Some("Organization"));
    assert_eq!(found["is_new"], true, "{found}");
    // A model that is silent takes nothing from the other tiers.
    model.is_up.store(false, Ordering::SeqCst);
    assert_eq!(resolve("Kitten", Some("Concept"))["is_new"], false);
    assert_eq!(resolve("another label", Some("Concept"))["is_new"], true);
}
