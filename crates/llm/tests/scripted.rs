//! Models over a real line, against a server on loopback that says what a test tells it to.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use kenning_core::Code;
use kenning_egress::{Key, Policy};
use kenning_llm::{Api, Budget, Model, Provider, Question, Settings, ToolSpec, Turn, Usage};
use kenning_testing_llm::{Reply, Scripted, TOKENS};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SECRET: &str = "sk-very-secret";

fn settings(api: Api, model: &Scripted) -> Settings {
    Settings {
        key: Some(Key::new(SECRET).unwrap()),
        ..Settings::new(api, model.url(""), "tiny")
    }
}

fn tools() -> Vec<ToolSpec> {
    vec![ToolSpec {
        name: "look".to_owned(),
        description: "looks".to_owned(),
        schema: json!({ "type": "object" }),
    }]
}

fn question<'a>(turns: &'a [Turn], tools: &'a [ToolSpec]) -> Question<'a> {
    Question {
        system: "be brief",
        turns,
        tools,
        json: false,
        answer_tokens_max: 500,
        deadline: Instant::now() + Duration::from_secs(30),
    }
}

fn turns() -> Vec<Turn> {
    let call = kenning_llm::ToolCall {
        id: "c1".to_owned(),
        name: "look".to_owned(),
        arguments: json!({ "at": 1 }),
    };
    vec![
        Turn::User("what is there?".to_owned()),
        Turn::Model("I look".to_owned(), vec![call]),
        Turn::Tool {
            id: "c1".to_owned(),
            name: "look".to_owned(),
            answer: "a cat".to_owned(),
        },
    ]
}

#[test]
fn each_format_carries_turns_tools_and_what_it_cost() {
    let anthropic = json!({
        "content": [
            { "type": "text", "text": "a cat" },
            { "type": "tool_use", "id": "t", "name": "look", "input": { "at": 2 } },
        ],
        "usage": { "input_tokens": 7, "output_tokens": 3 },
    });
    let ollama = json!({
        "message": {
            "content": "a cat",
            "tool_calls": [{ "function": { "name": "look", "arguments": { "at": 2 } } }],
        },
        "prompt_eval_count": 7, "eval_count": 3,
    });
    let openai = json!({
        "choices": [{ "message": { "content": "a cat", "tool_calls": [
            { "id": "t", "function": { "name": "look", "arguments": "{\"at\": 2}" } },
        ] } }],
        "usage": { "prompt_tokens": 7, "completion_tokens": 3 },
    });
    for (api, said, path, header) in [
        (
            Api::OpenAi,
            openai,
            "/chat/completions",
            ("authorization", "Bearer sk-very-secret"),
        ),
        (
            Api::Anthropic,
            anthropic,
            "/v1/messages",
            ("x-api-key", SECRET),
        ),
        (
            Api::Ollama,
            ollama,
            "/api/chat",
            ("authorization", "Bearer sk-very-secret"),
        ),
    ] {
        let model = Scripted::saying(vec![Reply::Status(200, "", said.to_string())]);
        let provider = Provider::new(settings(api, &model), Policy::default()).unwrap();
        let (turns, tools) = (turns(), tools());
        let answer = provider.ask(&question(&turns, &tools)).unwrap();
        assert_eq!(answer.text, "a cat", "{api:?}");
        let call = (answer.calls[0].name.as_str(), &answer.calls[0].arguments);
        assert_eq!(call, ("look", &json!({ "at": 2 })), "{api:?}");
        let usage = Usage {
            input: 7,
            output: 3,
            is_estimated: false,
        };
        assert_eq!(answer.usage, usage, "{api:?}");
        let seen = model.seen().remove(0);
        assert_eq!(
            (seen.path.as_str(), seen.header(header.0)),
            (path, Some(header.1))
        );
        let body = seen.body.to_string();
        for part in ["be brief", "what is there?", "a cat", "look", "tiny"] {
            assert!(body.contains(part), "{api:?}: {body}");
        }
        let n = seen.body["messages"].as_array().map(Vec::len);
        assert_eq!(
            n,
            Some(if api == Api::Anthropic { 3 } else { 4 }),
            "{api:?}"
        );
    }
}

#[test]
fn a_model_that_is_busy_is_asked_again_after_growing_waits() {
    let busy = |status| Reply::Status(status, "", json!({ "error": "busy" }).to_string());
    let asked = Reply::Status(429, "Retry-After: 7\r\n", "{}".to_owned());
    let script = vec![busy(500), asked, busy(429), Reply::Says("there".to_owned())];
    let model = Scripted::saying(script);
    let waits: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let kept = Arc::clone(&waits);
    let provider = Provider::new(settings(Api::OpenAi, &model), Policy::default()).unwrap();
    let provider = provider.sleeping_by(move |it| kept.lock().unwrap().push(it));
    let turns = [Turn::User("hello".to_owned())];
    let answer = provider.ask(&question(&turns, &[])).unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.usage.total()),
        ("there", TOKENS.0 + TOKENS.1)
    );
    let expected = [500, 7_000, 2_000].map(Duration::from_millis);
    assert_eq!(*waits.lock().unwrap(), expected);
    assert_eq!(model.seen().len(), 4);
}

#[test]
fn a_model_that_stays_busy_is_left_alone() {
    let model = Scripted::saying(vec![Reply::Status(500, "", "{}".to_owned())]);
    let provider = Provider::new(settings(Api::OpenAi, &model), Policy::default()).unwrap();
    let provider = provider.sleeping_by(|_| {});
    let turns = [Turn::User("hello".to_owned())];
    let error = provider.ask(&question(&turns, &[])).unwrap_err();
    assert_eq!((error.code, model.seen().len()), (Code::Unavailable, 4));
    assert!(error.message.contains("status 500"), "{error}");
}

#[test]
fn an_answer_without_an_end_is_cut_off() {
    let model = Scripted::saying(vec![Reply::Endless]);
    let provider = Provider::new(settings(Api::OpenAi, &model), Policy::default()).unwrap();
    let turns = [Turn::User("hello".to_owned())];
    let error = provider.ask(&question(&turns, &[])).unwrap_err();
    assert!(error.message.contains("was cut off"), "{error}");
    assert_eq!(model.seen().len(), 1, "it is not asked again");
}

#[test]
fn a_model_that_says_nothing_ends_with_the_time() {
    let model = Scripted::saying(vec![Reply::Silence]);
    let provider = Provider::new(settings(Api::OpenAi, &model), Policy::default()).unwrap();
    let turns = [Turn::User("hello".to_owned())];
    let deadline = Instant::now() + Duration::from_millis(200);
    let asked = Question {
        deadline,
        ..question(&turns, &[])
    };
    let error = provider.ask(&asked).unwrap_err();
    assert_eq!(error.code, Code::Timeout, "{error}");
}

#[test]
fn what_cannot_be_mended_by_asking_again_is_said_once_and_shows_no_key() {
    let refused = |status: u16| {
        Reply::Status(
            status,
            "",
            json!({ "error": { "message": format!("bad {SECRET}") } }).to_string(),
        )
    };
    for (reply, code) in [
        (refused(401), Code::Denied),
        (refused(404), Code::NotFound),
        (refused(400), Code::InvalidInput),
        (
            Reply::Status(200, "", "not json".to_owned()),
            Code::Unavailable,
        ),
        (Reply::Status(200, "", "{}".to_owned()), Code::Unavailable),
        (Reply::Says(" ".to_owned()), Code::Unavailable),
    ] {
        let model = Scripted::saying(vec![reply]);
        let provider = Provider::new(settings(Api::OpenAi, &model), Policy::default()).unwrap();
        let turns = [Turn::User("hello".to_owned())];
        let error = provider.ask(&question(&turns, &[])).unwrap_err();
        assert_eq!(error.code, code, "{error}");
        let shown = format!("{error} {error:?} {provider:?} {:?}", provider.settings());
        assert!(!shown.contains(SECRET), "{shown}");
        assert_eq!(model.seen().len(), 1);
    }
}

#[test]
fn what_a_server_does_not_count_is_estimated_and_said_to_be() {
    let said = json!({ "choices": [{ "message": { "content": "12345678" } }] });
    let model = Scripted::saying(vec![Reply::Status(200, "", said.to_string())]);
    let provider = Provider::new(settings(Api::OpenAi, &model), Policy::default()).unwrap();
    let turns = [Turn::User("hello".to_owned())];
    let mut budget = Budget::new(1_000, Instant::now() + Duration::from_secs(30));
    budget.ask(&provider, question(&turns, &[])).unwrap();
    let used = budget.used();
    assert_eq!((used.input, used.output, used.is_estimated), (4, 2, true));
    assert_eq!(model.seen()[0].body["max_tokens"], Value::from(500));
}
