//! Providers over a real line, against a server that replays the documented wire formats and refuses
//! a request with a field that is not in them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod server;

use kenning_core::{Code, Error};
use kenning_egress::Policy;
use kenning_embed::Embedder;
use kenning_embed::http::{Key, Kind, Patience, Provider, Settings};
use serde::Deserialize;
use serde_json::{Value, json};
use server::{Reply, Seen, Server};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KINDS: [Kind; 3] = [Kind::Ollama, Kind::OpenAi, Kind::Nim];
const SECRET: &str = "sk-very-secret";

/// `POST /api/embed` of Ollama's API documentation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "fields are named so that others are refused")]
struct OllamaRequest {
    model: String,
    input: Vec<String>,
    truncate: Option<bool>,
    options: Option<Value>,
    keep_alive: Option<Value>,
    dimensions: Option<usize>,
}

/// `POST /v1/embeddings` of OpenAI's API reference.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "fields are named so that others are refused")]
struct OpenAiRequest {
    model: String,
    input: Vec<String>,
    encoding_format: Option<String>,
    dimensions: Option<usize>,
    user: Option<String>,
}

/// The same of the NeMo Retriever Embedding NIM's API reference.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "fields are named so that others are refused")]
struct NimRequest {
    model: String,
    input: Vec<String>,
    encoding_format: Option<String>,
    input_type: Option<String>,
    truncate: Option<String>,
    dimensions: Option<usize>,
    user: Option<String>,
    modality: Option<Value>,
    embedding_type: Option<String>,
}

fn model(kind: Kind) -> &'static str {
    match kind {
        Kind::Ollama => "nomic-embed-text",
        Kind::OpenAi => "text-embedding-3-small",
        Kind::Nim => "nvidia/nv-embedqa-e5-v5",
    }
}

/// The texts of a request, if it is as documented.
fn texts(kind: Kind, seen: &Seen) -> Result<Vec<String>, String> {
    let body = &seen.body[..];
    let read = match kind {
        Kind::Ollama => serde_json::from_slice::<OllamaRequest>(body)
            .map(|request| (request.model, request.input)),
        Kind::OpenAi => serde_json::from_slice::<OpenAiRequest>(body)
            .map(|request| (request.model, request.input)),
        Kind::Nim => {
            serde_json::from_slice::<NimRequest>(body).map(|request| (request.model, request.input))
        }
    };
    let (name, input) = read.map_err(|err| err.to_string())?;
    let path = match kind {
        Kind::Ollama => "/api/embed",
        Kind::OpenAi | Kind::Nim => "/v1/embeddings",
    };
    let json = seen.headers.get("content-type").map(String::as_str);
    if seen.method != "POST" || seen.path != path || json != Some("application/json") {
        return Err(format!("{} {} {json:?}", seen.method, seen.path));
    }
    if name != model(kind) || input.iter().any(|it| it.trim().is_empty()) {
        return Err(format!("{name}: {input:?}"));
    }
    Ok(input)
}

/// A vector that tells its text: not of length 1, so that it has to be made so.
fn vector(text: &str) -> Vec<f32> {
    vec![3.0 * text.len() as f32, 4.0 * text.len() as f32, 0.0]
}

/// What the vector of a text must come back as.
const UNIT: [f32; 3] = [0.6, 0.8, 0.0];

/// A documented answer with these vectors.
fn answer(kind: Kind, vectors: &[Vec<f32>]) -> Value {
    match kind {
        Kind::Ollama => json!({
            "model": model(kind),
            "embeddings": vectors,
            "total_duration": 14143917,
            "load_duration": 1019500,
            "prompt_eval_count": 8,
        }),
        Kind::OpenAi | Kind::Nim => {
            let data = vectors.iter().enumerate();
            let data = data
                .map(|(idx, it)| json!({ "object": "embedding", "embedding": it, "index": idx }));
            json!({
                "object": "list",
                "data": data.collect::<Vec<_>>(),
                "model": model(kind),
                "usage": { "prompt_tokens": 8, "total_tokens": 8 },
            })
        }
    }
}

/// What an honest server does.
fn honest(kind: Kind, seen: &Seen) -> Reply {
    match texts(kind, seen) {
        Err(why) => Reply::Json(400, json!({ "error": { "message": why } }).to_string()),
        Ok(texts) => {
            let vectors: Vec<Vec<f32>> = texts.iter().map(|it| vector(it)).collect();
            Reply::Json(200, answer(kind, &vectors).to_string())
        }
    }
}

fn settings(kind: Kind, server: &Server) -> Settings {
    let path = if kind == Kind::Ollama { "" } else { "/v1/" };
    Settings {
        base_url: format!("http://{}{path}", server.address),
        key: Some(Key::new(SECRET).unwrap()),
        ..Settings::new(kind, model(kind), 3)
    }
}

/// The waits that a provider asked for, instead of waiting.
type Waits = Arc<Mutex<Vec<Duration>>>;

fn provider(settings: Settings) -> (Provider, Waits) {
    let waits = Waits::default();
    let noted = waits.clone();
    let provider = Provider::new(settings, &Policy::default()).unwrap();
    let provider = provider.sleeping_by(move |it| noted.lock().unwrap().push(it));
    (provider, waits)
}

fn waited(waits: &Waits) -> Vec<Duration> {
    waits.lock().unwrap().clone()
}

/// What one text meets at a server that always answers so.
fn failure(kind: Kind, reply: impl Fn() -> Reply + Send + Sync + 'static) -> (Error, Server) {
    let server = Server::start(move |_, _| reply());
    let settings = settings(kind, &server);
    let mut shown = format!("{settings:?}");
    let (provider, _) = provider(settings);
    let error = provider.embed(&["text"]).unwrap_err();
    shown.push_str(&format!("{error} {error:?} {provider:?}"));
    assert!(!shown.contains(SECRET), "{shown}");
    (error, server)
}

#[test]
fn texts_become_vectors_of_length_one_in_their_order() {
    for kind in KINDS {
        let server = Server::start(move |_, seen| honest(kind, seen));
        let (provider, _) = provider(settings(kind, &server));
        let vectors = provider.embed(&["a", "", "long text", " \n"]).unwrap();
        let none = vec![0.0; 3];
        assert_eq!(
            vectors,
            [UNIT.to_vec(), none.clone(), UNIT.to_vec(), none],
            "{kind:?}"
        );
        let seen = server.seen();
        assert_eq!(texts(kind, &seen[0]).unwrap(), ["a", "long text"]);
        assert_eq!(seen[0].headers["authorization"], format!("Bearer {SECRET}"));
        assert_eq!(seen.len(), 1);
    }
}

#[test]
fn a_request_is_what_the_documentation_shows() {
    let fields = |kind: Kind, name: &str, query: bool| -> Value {
        let server = Server::start(|_, _| Reply::Json(500, String::new()));
        let settings = Settings {
            base_url: settings(kind, &server).base_url,
            patience: Patience {
                retries: 0,
                ..Patience::default()
            },
            ..Settings::new(kind, name, 3)
        };
        let (provider, _) = provider(settings);
        if query {
            provider.embed_query("text").unwrap_err();
        } else {
            provider.embed(&["text"]).unwrap_err();
        }
        let seen = server.seen();
        assert!(!seen[0].headers.contains_key("authorization"));
        serde_json::from_slice(&seen[0].body).unwrap()
    };
    let ollama = json!({ "model": "all-minilm", "input": ["text"], "truncate": true });
    assert_eq!(fields(Kind::Ollama, "all-minilm", false), ollama);
    assert_eq!(fields(Kind::Ollama, "all-minilm", true), ollama);
    let openai = json!({ "model": "m", "input": ["text"], "encoding_format": "float" });
    assert_eq!(fields(Kind::OpenAi, "m", false), openai);
    assert_eq!(fields(Kind::OpenAi, "m", true), openai);
    let nvidia = "nvidia/nv-embedqa-e5-v5";
    let nim = |role: &str| {
        json!({ "model": nvidia, "input": ["text"], "encoding_format": "float",
                "input_type": role, "truncate": "END" })
    };
    assert_eq!(fields(Kind::Nim, nvidia, false), nim("passage"));
    assert_eq!(fields(Kind::Nim, nvidia, true), nim("query"));
    // This one sees passages and queries alike.
    let bge = json!({ "model": "baai/bge-m3", "input": ["text"], "encoding_format": "float",
                      "truncate": "END" });
    assert_eq!(fields(Kind::Nim, "baai/bge-m3", true), bge);
}

#[test]
fn many_texts_go_in_batches_bounded_by_count_and_by_bytes() {
    let lines = ["1", "2", "3", "4444444444444", "55", "666", "7"];
    for kind in KINDS {
        let server = Server::start(move |_, seen| honest(kind, seen));
        let (provider, _) = provider(Settings {
            batch_texts_max: 3,
            batch_bytes_max: 5,
            ..settings(kind, &server)
        });
        assert_eq!(provider.embed(&lines).unwrap().len(), 7);
        let batches: Vec<Vec<String>> = server
            .seen()
            .iter()
            .map(|it| texts(kind, it).unwrap())
            .collect();
        let expected: [&[&str]; 4] = [&lines[..3], &lines[3..4], &lines[4..6], &lines[6..]];
        assert_eq!(batches, expected, "{kind:?}");
    }
}

#[test]
fn a_model_gets_the_prefixes_it_was_trained_with() {
    for kind in KINDS {
        let server = Server::start(move |_, seen| honest(kind, seen));
        let (provider, _) = provider(Settings {
            passage_prefix: "search_document: ".to_owned(),
            query_prefix: "search_query: ".to_owned(),
            batch_bytes_max: 40,
            ..settings(kind, &server)
        });
        let id = &provider.model().id;
        assert!(id.ends_with(":3:search_document:"), "{id}");
        assert_eq!(provider.embed(&["a", " ", "b", "c"]).unwrap().len(), 4);
        provider.embed_query("d").unwrap();
        let asked: Vec<Vec<String>> = server
            .seen()
            .iter()
            .map(|it| texts(kind, it).unwrap())
            .collect();
        let expected: [&[&str]; 3] = [
            &["search_document: a", "search_document: b"],
            &["search_document: c"],
            &["search_query: d"],
        ];
        assert_eq!(asked, expected, "{kind:?}");
    }
}

#[test]
fn nothing_to_embed_asks_nobody() {
    for kind in KINDS {
        let server = Server::start(move |_, seen| honest(kind, seen));
        let (provider, _) = provider(settings(kind, &server));
        assert!(provider.embed(&[]).unwrap().is_empty());
        assert_eq!(provider.embed_query(" ").unwrap(), [0.0; 3]);
        assert!(server.seen().is_empty());
    }
}

#[test]
fn vectors_that_come_out_of_order_are_put_in_order() {
    for kind in [Kind::OpenAi, Kind::Nim] {
        let server = Server::start(move |_, _| {
            let vectors = [
                vec![1.0, 0.0, 0.0],
                vec![0.0, 1.0, 0.0],
                vec![0.0, 0.0, 1.0],
            ];
            let mut answer = answer(kind, &vectors);
            answer["data"].as_array_mut().unwrap().rotate_left(1);
            Reply::Json(200, answer.to_string())
        });
        let (provider, _) = provider(settings(kind, &server));
        let vectors = provider.embed(&["a", "b", "c"]).unwrap();
        assert_eq!(vectors[0], [1.0, 0.0, 0.0], "{kind:?}");
        assert_eq!(vectors[1], [0.0, 1.0, 0.0], "{kind:?}");
        assert_eq!(vectors[2], [0.0, 0.0, 1.0], "{kind:?}");
    }
}

#[test]
fn a_busy_server_is_asked_again_after_the_wait_it_names() {
    for kind in KINDS {
        let server = Server::start(move |number, seen| match number {
            0 => Reply::With(429, "Retry-After: 7", "{}".to_owned()),
            1 => Reply::Json(503, "busy".to_owned()),
            _ => honest(kind, seen),
        });
        let (provider, waits) = provider(settings(kind, &server));
        assert_eq!(provider.embed(&["text"]).unwrap(), [UNIT]);
        // The second wait is our own: it is the second repetition, so twice the first wait.
        let expected = [Duration::from_secs(7), Duration::from_secs(1)];
        assert_eq!(waited(&waits), expected, "{kind:?}");
    }
}

#[test]
fn a_server_that_asks_for_too_long_a_wait_is_left_alone() {
    for kind in KINDS {
        let busy = || Reply::With(429, "Retry-After: 3600", "{}".to_owned());
        let (error, server) = failure(kind, busy);
        assert_eq!(error.code, Code::Unavailable);
        assert!(error.to_string().contains("3600 s"), "{error}");
        assert_eq!(server.seen().len(), 1, "{kind:?}");
    }
}

#[test]
fn a_server_that_stays_broken_is_unavailable_in_the_end() {
    for kind in KINDS {
        let server = Server::start(|_, _| Reply::Json(500, "{}".to_owned()));
        let (provider, waits) = provider(settings(kind, &server));
        let error = provider.embed(&["text"]).unwrap_err();
        assert_eq!(error.code, Code::Unavailable);
        assert!(error.message.contains("answered 500"), "{error}");
        assert_eq!(server.seen().len(), 4, "{kind:?}");
        let millis: Vec<u128> = waited(&waits).iter().map(Duration::as_millis).collect();
        assert_eq!(millis, [500, 1000, 2000]);
    }
}

#[test]
fn a_query_is_asked_once_because_somebody_waits() {
    for kind in KINDS {
        let server = Server::start(move |number, seen| match number {
            0 => Reply::Json(503, "{}".to_owned()),
            _ => honest(kind, seen),
        });
        let (provider, waits) = provider(settings(kind, &server));
        let error = provider.embed_query("text").unwrap_err();
        assert_eq!(error.code, Code::Unavailable);
        assert_eq!(server.seen().len(), 1);
        assert!(waited(&waits).is_empty());
        assert_eq!(provider.embed_query("text").unwrap(), UNIT, "{kind:?}");
    }
}

#[test]
fn a_refusal_says_what_to_do_and_is_not_repeated() {
    let said = json!({ "error": { "message": format!("no `{SECRET}`\nhere") } }).to_string();
    for kind in KINDS {
        for (status, code, part, hint) in [
            (
                401,
                Code::Denied,
                "refuses the API key (401)",
                "embedding.api_key",
            ),
            (
                403,
                Code::Denied,
                "refuses the API key (403)",
                "embedding.api_key",
            ),
            (404, Code::NotFound, model(kind), model_hint(kind)),
            (
                400,
                Code::InvalidInput,
                "answered 400: no  ***  here",
                "configuration",
            ),
            (422, Code::InvalidInput, "answered 422", "configuration"),
        ] {
            let said = said.clone();
            let (error, server) = failure(kind, move || Reply::Json(status, said.clone()));
            assert_eq!(error.code, code, "{kind:?} {status}");
            assert!(error.message.contains(part), "{error}");
            assert!(error.hint.as_deref().unwrap().contains(hint), "{error}");
            assert_eq!(server.seen().len(), 1, "{kind:?} {status}");
        }
    }
}

fn model_hint(kind: Kind) -> &'static str {
    match kind {
        Kind::Ollama => "ollama pull nomic-embed-text",
        Kind::OpenAi | Kind::Nim => "embedding.model",
    }
}

#[test]
fn a_server_without_a_key_asks_for_one() {
    for kind in KINDS {
        let server = Server::start(|_, _| Reply::Json(401, "{}".to_owned()));
        let (provider, _) = provider(Settings {
            key: None,
            ..settings(kind, &server)
        });
        let error = provider.embed(&["text"]).unwrap_err();
        assert!(error.message.contains("asks for an API key"), "{error}");
    }
}

#[test]
fn a_silent_server_is_a_timeout_and_is_not_asked_again() {
    for kind in KINDS {
        let server = Server::start(|_, _| Reply::Silence);
        let (provider, waits) = provider(Settings {
            timeout: Duration::from_millis(100),
            query_timeout: Duration::from_millis(100),
            ..settings(kind, &server)
        });
        assert_eq!(provider.embed(&["text"]).unwrap_err().code, Code::Timeout);
        assert_eq!(
            provider.embed_query("text").unwrap_err().code,
            Code::Timeout
        );
        assert!(waited(&waits).is_empty(), "{kind:?}");
    }
}

#[test]
fn an_answer_that_is_none_is_told_apart() {
    let odd = |kind: Kind, change: fn(&mut Value)| {
        let mut answer = answer(kind, &[vector("text")]);
        change(&mut answer);
        answer.to_string()
    };
    let whole = |kind: Kind| answer(kind, &[vector("text")]).to_string();
    for kind in KINDS {
        let cut = whole(kind)[..60].to_owned();
        let huge = whole(kind).replace("12.0", "1e39");
        let mut cases = vec![
            (cut, "the JSON is incomplete"),
            ("<html>".to_owned(), "line 1 column 1"),
            (r#"{"other": 1}"#.to_owned(), "the documented format"),
            (huge, "the documented format"),
            (whole(kind).replace("12.0", "null"), "the documented format"),
            (answer(kind, &[]).to_string(), "0 vectors for 1 texts"),
            (
                answer(kind, &[vector("a"), vector("b")]).to_string(),
                "2 vectors for 1 texts",
            ),
        ];
        if kind != Kind::Ollama {
            let shifted = odd(kind, |it| it["data"][0]["index"] = json!(1));
            cases.push((shifted, "the indices are not 0 to 0"));
        }
        for (body, why) in cases {
            let shown = body.clone();
            let (error, server) = failure(kind, move || Reply::Json(200, body.clone()));
            assert_eq!(error.code, Code::Unavailable, "{kind:?} {shown}");
            assert!(error.message.contains(why), "{kind:?} {shown}: {error}");
            assert_eq!(server.seen().len(), 1);
        }
    }
}

#[test]
fn a_body_that_breaks_off_is_asked_for_again() {
    for kind in KINDS {
        let server = Server::start(move |number, seen| match number {
            0 => Reply::BrokenOff("{\"data\": [".to_owned()),
            _ => honest(kind, seen),
        });
        let (provider, waits) = provider(settings(kind, &server));
        assert_eq!(provider.embed(&["text"]).unwrap(), [UNIT], "{kind:?}");
        assert_eq!(waited(&waits).len(), 1);
    }
}

#[test]
fn a_wrong_dimension_names_both_numbers() {
    for kind in KINDS {
        let body = answer(kind, &[vec![1.0; 5]]).to_string();
        let (error, _) = failure(kind, move || Reply::Json(200, body.clone()));
        assert_eq!(error.code, Code::InvalidInput);
        assert!(
            error.message.contains("`embedding.dimensions` is 3"),
            "{error}"
        );
        assert!(error.message.contains("answers with 5"), "{error}");
    }
}

#[test]
fn nobody_at_the_address_is_unavailable() {
    for kind in KINDS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let (provider, waits) = provider(Settings {
            base_url: format!("http://{address}"),
            ..Settings::new(kind, model(kind), 3)
        });
        let error = provider.embed(&["text"]).unwrap_err();
        assert_eq!(error.code, Code::Unavailable);
        assert!(error.message.contains("cannot be reached"), "{error}");
        assert_eq!(waited(&waits).len(), 3, "{kind:?}");
    }
}

#[test]
fn texts_are_not_sent_where_a_redirect_leads() {
    for kind in KINDS {
        let elsewhere = Arc::new(Server::start(move |_, seen| honest(kind, seen)));
        let to = format!("Location: http://{}/", elsewhere.address);
        let to: &'static str = to.leak();
        let (error, _) = failure(kind, move || Reply::With(307, to, String::new()));
        assert_eq!(error.code, Code::Denied, "{error}");
        assert!(elsewhere.seen().is_empty(), "{kind:?}");
    }
}

#[test]
fn a_model_is_named_by_provider_name_and_dimensions() {
    let id = |kind, name, dimensions| {
        let settings = Settings::new(kind, name, dimensions);
        let provider = Provider::new(settings, &Policy::default()).unwrap();
        let model = provider.model();
        assert_eq!(model.dimensions, dimensions);
        model.id.clone()
    };
    assert_eq!(
        id(Kind::Ollama, "nomic-embed-text", 768),
        "ollama:nomic-embed-text:768"
    );
    assert_eq!(id(Kind::Nim, "baai/bge-m3", 1024), "nim:baai/bge-m3:1024");
    assert_eq!(id(Kind::OpenAi, "m", 256), "openai:m:256");
}

#[test]
fn settings_that_cannot_work_are_refused_at_once() {
    let good = || Settings::new(Kind::Ollama, "m", 3);
    for (settings, field) in [
        (
            Settings {
                model: " ".to_owned(),
                ..good()
            },
            "embedding.model",
        ),
        (
            Settings {
                dimensions: 0,
                ..good()
            },
            "embedding.dimensions",
        ),
        (
            Settings {
                batch_texts_max: 0,
                ..good()
            },
            "embedding.batch_size",
        ),
        (
            Settings {
                names_roles: true,
                ..good()
            },
            "embedding.input_type",
        ),
        (
            Settings {
                base_url: "localhost".to_owned(),
                ..good()
            },
            "embedding.base_url",
        ),
    ] {
        let error = Provider::new(settings, &Policy::default()).unwrap_err();
        assert_eq!(error.code, Code::InvalidInput);
        assert!(error.message.contains(field), "{field}: {error}");
    }
}
