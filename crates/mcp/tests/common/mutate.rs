//! Mutated messages, and what each deserves.

use super::meta;
use kenning_testing::{Source, mutate};
use serde_json::{Value, json};

/// What must come back.
#[derive(Debug, PartialEq)]
pub(crate) enum Expected {
    /// Nothing at all.
    Silence,
    /// An error with this code; the id is null where none can be known.
    Error(i32, Value),
    /// Some answer to this id, from this method.
    Answer(Value, String),
}

impl Expected {
    pub(crate) fn kind(&self) -> String {
        match self {
            Self::Silence => "silence".to_owned(),
            Self::Error(code, _) => code.to_string(),
            Self::Answer(..) => "answer".to_owned(),
        }
    }
}

/// What JSON-RPC says about a line.
pub(crate) fn expected(line: &[u8]) -> Expected {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Expected::Silence;
    }
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return Expected::Error(-32700, Value::Null);
    };
    let Some(object) = value.as_object() else {
        return Expected::Error(-32600, Value::Null);
    };
    let id = object.get("id");
    let usable = id.and_then(usable).unwrap_or(Value::Null);
    let method = object.get("method");
    if method.is_none() && object.contains_key("error") {
        return Expected::Silence;
    }
    let answers = object.contains_key("result") || object.contains_key("error");
    let valid = object.get("jsonrpc") == Some(&json!("2.0"));
    match method {
        _ if !valid => Expected::Error(-32600, usable),
        None if object.contains_key("result") && !usable.is_null() => Expected::Silence,
        Some(Value::String(_)) if answers => Expected::Error(-32600, usable),
        Some(Value::String(_)) if id.is_none() => Expected::Silence,
        Some(Value::String(_)) if usable.is_null() => Expected::Error(-32600, Value::Null),
        Some(Value::String(method)) => match object.get("params") {
            None | Some(Value::Null | Value::Object(_) | Value::Array(_)) => {
                Expected::Answer(usable, method.clone())
            }
            Some(_) => Expected::Error(-32600, usable),
        },
        _ => Expected::Error(-32600, usable),
    }
}

fn usable(id: &Value) -> Option<Value> {
    match id {
        Value::String(_) => Some(id.clone()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Some(json!(number)),
            (None, Some(number)) if number.fract() == 0.0 && number.abs() < 9e15 => {
                Some(json!(number as i64))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The methods that the server of the tests has, in either era.
pub(crate) const METHODS: &[&str] = &[
    "initialize",
    "ping",
    "server/discover",
    "subscriptions/listen",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
];

/// Why an answer is wrong, if it is.
pub(crate) fn fault(expected: &Expected, answer: Option<&Value>) -> Option<String> {
    let fault = || Some(format!("expected {expected:?}, got {answer:?}"));
    match (expected, answer) {
        (Expected::Silence, None) => None,
        (Expected::Error(code, id), Some(answer)) => {
            let right = answer["error"]["code"] == *code && answer["id"] == *id;
            if right { None } else { fault() }
        }
        (Expected::Answer(id, method), Some(answer)) => {
            let code = answer["error"]["code"].as_i64();
            let right = match code {
                None => answer["result"].is_object() && METHODS.contains(&method.as_str()),
                // A removed method of the other era does not exist either.
                Some(-32601) => {
                    !METHODS.contains(&method.as_str())
                        || matches!(
                            method.as_str(),
                            "ping"
                                | "initialize"
                                | "logging/setLevel"
                                | "resources/subscribe"
                                | "resources/unsubscribe"
                                | "subscriptions/listen"
                        )
                }
                // Wrong parameters, a resource that is not there, a version that is not spoken.
                Some(-32602 | -32002 | -32022) => true,
                // A second handshake.
                Some(-32600) => method == "initialize",
                Some(_) => false,
            };
            if right && answer["id"] == *id {
                None
            } else {
                fault()
            }
        }
        _ => fault(),
    }
}

/// Good messages to start from.
fn seeds() -> Vec<Value> {
    let request = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    vec![
        request("ping", json!({})),
        request("tools/list", json!({ "cursor": "test_simple_text" })),
        request("tools/list", json!({ "_meta": meta() })),
        request(
            "tools/call",
            json!({ "name": "test_simple_text", "arguments": {} }),
        ),
        request(
            "tools/call",
            json!({ "name": "test_image_content", "arguments": { "a": [1, 2.5e3, null, "\u{e9}\n"] } }),
        ),
        request(
            "tools/call",
            json!({ "name": "test_error_handling", "_meta": { "progressToken": 5 } }),
        ),
        request(
            "prompts/get",
            json!({ "name": "test_prompt_with_arguments", "arguments": { "arg1": "a", "arg2": "b" } }),
        ),
        request("resources/read", json!({ "uri": "test://static-text" })),
        request(
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "b" } }),
        ),
        request("logging/setLevel", json!({ "level": "info" })),
        request("server/discover", json!({ "_meta": meta() })),
        request(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "n", "version": "1" } }),
        ),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } }),
        json!({ "jsonrpc": "2.0", "id": 3, "result": { "roots": [] } }),
        json!({ "jsonrpc": "2.0", "id": 3, "error": { "code": -32601, "message": "no" } }),
    ]
}

/// Makes mutated lines from a seed.
pub(crate) struct Mutator {
    source: Source,
    seeds: Vec<Value>,
}

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            source: Source::new(seed),
            seeds: seeds(),
        }
    }

    fn below(&mut self, n: usize) -> usize {
        self.source.below(n)
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        self.source.pick(items)
    }

    /// One line, without a newline in it.
    pub(crate) fn line(&mut self) -> Vec<u8> {
        let at = self.below(self.seeds.len());
        let seed = self.seeds[at].clone();
        let mut line = match self.below(10) {
            0 => self.flipped(&seed),
            1 => self.truncated(&seed),
            2 => self.doubled(&seed),
            3 | 4 => self.retyped(seed),
            5 => self.nested(seed),
            6 => self.huge(seed),
            7 => self.bad_utf8(&seed),
            8 => self.batch(seed),
            _ => self.odd_id(seed),
        };
        for byte in &mut line {
            if *byte == b'\n' {
                *byte = b' ';
            }
        }
        line
    }

    fn flipped(&mut self, seed: &Value) -> Vec<u8> {
        let mut line = seed.to_string().into_bytes();
        for _ in 0..=self.below(4) {
            mutate::flip_bit(&mut line, &mut self.source);
        }
        line
    }

    fn truncated(&mut self, seed: &Value) -> Vec<u8> {
        let mut line = seed.to_string().into_bytes();
        mutate::cut_short(&mut line, &mut self.source);
        line
    }

    fn doubled(&mut self, seed: &Value) -> Vec<u8> {
        let text = seed.to_string();
        let more = *self.pick(&[
            r#""id":8"#,
            r#""id":null"#,
            r#""method":"ping""#,
            r#""method":5"#,
            r#""jsonrpc":"1.0""#,
            r#""params":{}"#,
            r#""params":[]"#,
            r#""result":{}"#,
            r#""error":{}"#,
        ]);
        let inner = &text[1..];
        if self.below(2) == 0 {
            format!("{{{more},{inner}").into_bytes()
        } else {
            format!("{},{more}}}", &text[..text.len() - 1]).into_bytes()
        }
    }

    fn retyped(&mut self, mut seed: Value) -> Vec<u8> {
        let odd = self
            .pick(&[
                json!(null),
                json!(true),
                json!(-1),
                json!(1.5),
                json!(""),
                json!("\u{0}\u{ffff}"),
                json!([]),
                json!([[]]),
                json!({}),
                json!({ "_meta": 5 }),
                json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": 5 } }),
                json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "1999-01-01" } }),
            ])
            .clone();
        // Walks down at random and replaces what it finds.
        let mut path = String::new();
        while let Some(Value::Object(object)) = seed.pointer(&path) {
            let keys: Vec<String> = object.keys().cloned().collect();
            if keys.is_empty() || !path.is_empty() && self.below(4) == 0 {
                break;
            }
            path = format!("{path}/{}", self.pick(&keys).replace('/', "~1"));
        }
        if let Some(place) = seed.pointer_mut(&path) {
            *place = odd;
        }
        seed.to_string().into_bytes()
    }

    fn nested(&mut self, mut seed: Value) -> Vec<u8> {
        let depth = *self.pick(&[10, 100, 126, 127, 128, 1_000, 100_000]);
        let deep = mutate::nested("1", depth, true, &mut self.source);
        if self.below(4) == 0 {
            return deep.into_bytes();
        }
        let key = *self.pick(&["params", "id", "method", "extra"]);
        seed[key] = json!("HERE");
        seed.to_string().replace("\"HERE\"", &deep).into_bytes()
    }

    fn huge(&mut self, mut seed: Value) -> Vec<u8> {
        let number = *self.pick(&[
            "1e999",
            "-1e999",
            "1e308",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775808",
            "-9223372036854775809",
            "9007199254740993.0",
            "1e-400",
            "0.1",
            "00",
            "1.0",
            "2e2",
            "NaN",
        ]);
        let key = *self.pick(&["id", "params", "extra"]);
        seed[key] = json!("HERE");
        seed.to_string().replace("\"HERE\"", number).into_bytes()
    }

    fn bad_utf8(&mut self, seed: &Value) -> Vec<u8> {
        let mut line = seed.to_string().into_bytes();
        mutate::insert_bad_utf8(&mut line, &mut self.source);
        line
    }

    fn batch(&mut self, seed: Value) -> Vec<u8> {
        let n = self.below(4);
        Value::Array(vec![seed; n]).to_string().into_bytes()
    }

    fn odd_id(&mut self, mut seed: Value) -> Vec<u8> {
        seed["id"] = self
            .pick(&[
                json!(null),
                json!(false),
                json!(0.5),
                json!([1]),
                json!({}),
                json!(""),
                json!("7"),
                json!(-7),
                json!("\u{1f600}".repeat(1000)),
            ])
            .clone();
        seed.to_string().into_bytes()
    }
}
