//! Requests and answers of each format, as documented.
//!
//! Requests hold documented fields and no other, because some servers refuse the rest. Of the answers only
//! what is needed is read: servers add fields as they grow.

use crate::{Answer, Api, Question, ToolCall, Turn, Usage};
use serde_json::{Map, Value, json};

/// Calls that one answer may ask for.
const CALLS_MAX: usize = 16;

/// The body of a request.
pub(crate) fn request(api: Api, model: &str, is_openai: bool, question: &Question<'_>) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    let max = question.answer_tokens_max;
    match api {
        Api::OpenAi => {
            // The original refuses the old name for its newer models, and imitations know only that one.
            let name = if is_openai {
                "max_completion_tokens"
            } else {
                "max_tokens"
            };
            body.insert(name.to_owned(), max.into());
            if question.json {
                let form = json!({ "type": "json_object" });
                body.insert("response_format".to_owned(), form);
            }
        }
        Api::Anthropic => {
            body.insert("max_tokens".to_owned(), max.into());
            body.insert("system".to_owned(), question.system.into());
        }
        Api::Ollama => {
            body.insert("stream".to_owned(), false.into());
            body.insert("options".to_owned(), json!({ "num_predict": max }));
            if question.json {
                body.insert("format".to_owned(), "json".into());
            }
        }
    }
    body.insert("messages".to_owned(), messages(api, question).into());
    if !question.tools.is_empty() {
        let tools = question.tools.iter().map(|it| match api {
            Api::OpenAi | Api::Ollama => json!({
                "type": "function",
                "function": {
                    "name": it.name, "description": it.description, "parameters": it.schema,
                },
            }),
            Api::Anthropic => json!({
                "name": it.name, "description": it.description, "input_schema": it.schema,
            }),
        });
        body.insert("tools".to_owned(), tools.collect());
    }
    Value::Object(body)
}

fn messages(api: Api, question: &Question<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    if api != Api::Anthropic {
        all.push(json!({ "role": "system", "content": question.system }));
    }
    for turn in question.turns {
        match (api, turn) {
            (_, Turn::User(text)) => all.push(json!({ "role": "user", "content": text })),
            (Api::Anthropic, Turn::Model(text, calls)) => {
                let said = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
                let calls = calls.iter().map(|it| {
                    json!({
                        "type": "tool_use", "id": it.id, "name": it.name, "input": it.arguments,
                    })
                });
                let content: Vec<Value> = said.into_iter().chain(calls).collect();
                all.push(json!({ "role": "assistant", "content": content }));
            }
            (Api::Anthropic, Turn::Tool { id, answer, .. }) => {
                let block = json!({
                    "type": "tool_result", "tool_use_id": id, "content": answer,
                });
                // Results of one answer are one message.
                let last = all.last_mut().filter(|it| {
                    it.pointer("/content/0/type").and_then(Value::as_str) == Some("tool_result")
                });
                match last.and_then(|it| it["content"].as_array_mut()) {
                    Some(blocks) => blocks.push(block),
                    None => all.push(json!({ "role": "user", "content": [block] })),
                }
            }
            (Api::OpenAi | Api::Ollama, Turn::Model(text, calls)) => {
                let mut message = json!({ "role": "assistant", "content": text });
                let calls = calls.iter().map(|it| match api {
                    Api::Ollama => {
                        json!({ "function": { "name": it.name, "arguments": it.arguments } })
                    }
                    _ => json!({
                        "id": it.id, "type": "function",
                        "function": { "name": it.name, "arguments": it.arguments.to_string() },
                    }),
                });
                let calls: Vec<Value> = calls.collect();
                if !calls.is_empty() {
                    message["tool_calls"] = calls.into();
                }
                all.push(message);
            }
            (Api::OpenAi, Turn::Tool { id, answer, .. }) => {
                all.push(json!({ "role": "tool", "tool_call_id": id, "content": answer }));
            }
            (Api::Ollama, Turn::Tool { name, answer, .. }) => {
                all.push(json!({ "role": "tool", "tool_name": name, "content": answer }));
            }
        }
    }
    all
}

/// The answer, or what is wrong with it.
///
/// # Errors
/// What is wrong, in words that quote nothing of it.
pub fn read_answer(api: Api, body: &[u8]) -> Result<Answer, &'static str> {
    // The parser's message may quote the text, so only the fact is reported.
    let said: Value = serde_json::from_slice(body).map_err(|_| "it is not JSON")?;
    let (text, calls, usage) = match api {
        Api::OpenAi => {
            let message = said
                .pointer("/choices/0/message")
                .ok_or("it has no `choices`")?;
            let calls = message.get("tool_calls").and_then(Value::as_array);
            let calls = calls.into_iter().flatten().map(|it| {
                let function = it.get("function").unwrap_or(&Value::Null);
                let arguments = function.get("arguments");
                let arguments = match arguments {
                    Some(Value::String(text)) => serde_json::from_str(text).ok(),
                    other => other.cloned(),
                };
                call(it.get("id"), function.get("name"), arguments)
            });
            let text = message.get("content").and_then(Value::as_str);
            (
                text.unwrap_or_default().to_owned(),
                calls.take(CALLS_MAX).collect(),
                usage(said.get("usage"), "prompt_tokens", "completion_tokens"),
            )
        }
        Api::Anthropic => {
            let blocks = said.get("content").and_then(Value::as_array);
            let blocks = blocks.ok_or("it has no `content`")?;
            let of = |kind: &'static str| {
                blocks
                    .iter()
                    .filter(move |it| it.get("type").and_then(Value::as_str) == Some(kind))
            };
            let texts = of("text").filter_map(|it| it.get("text")?.as_str());
            let calls = of("tool_use")
                .map(|it| call(it.get("id"), it.get("name"), it.get("input").cloned()));
            (
                texts.collect::<Vec<_>>().join("\n"),
                calls.take(CALLS_MAX).collect(),
                usage(said.get("usage"), "input_tokens", "output_tokens"),
            )
        }
        Api::Ollama => {
            let message = said.get("message").ok_or("it has no `message`")?;
            let calls = message.get("tool_calls").and_then(Value::as_array);
            let calls = calls.into_iter().flatten().enumerate().map(|(n, it)| {
                let function = it.get("function").unwrap_or(&Value::Null);
                let id = Value::from(format!("call_{n}"));
                let arguments = function.get("arguments").cloned();
                call(Some(&id), function.get("name"), arguments)
            });
            let text = message.get("content").and_then(Value::as_str);
            (
                text.unwrap_or_default().to_owned(),
                calls.take(CALLS_MAX).collect(),
                usage(Some(&said), "prompt_eval_count", "eval_count"),
            )
        }
    };
    let calls: Vec<ToolCall> = calls;
    if text.trim().is_empty() && calls.is_empty() {
        return Err("it says nothing");
    }
    Ok(Answer {
        text,
        calls,
        usage: usage.unwrap_or_default(),
    })
}

fn call(id: Option<&Value>, name: Option<&Value>, arguments: Option<Value>) -> ToolCall {
    let text = |it: Option<&Value>| it.and_then(Value::as_str).unwrap_or_default().to_owned();
    ToolCall {
        id: text(id),
        name: text(name),
        arguments: arguments
            .filter(Value::is_object)
            .unwrap_or_else(|| Value::Object(Map::new())),
    }
}

/// What the server says it took; `None` if it says nothing.
fn usage(of: Option<&Value>, input: &str, output: &str) -> Option<Usage> {
    let of = of?;
    let number = |name: &str| of.get(name).and_then(Value::as_u64);
    Some(Usage {
        input: number(input)?,
        output: number(output)?,
        is_estimated: false,
    })
}

/// The server's reason for a refusal, as one short line.
pub fn read_refusal(body: &[u8]) -> Option<String> {
    const CHARS_MAX: usize = 160;
    let body: Value = serde_json::from_slice(body).ok()?;
    let places = ["/error/message", "/error", "/message", "/detail"];
    let said = places.iter().find_map(|it| body.pointer(it)?.as_str())?;
    let harmless = |c: char| if c.is_control() || c == '`' { ' ' } else { c };
    let line: String = said.chars().map(harmless).take(CHARS_MAX).collect();
    Some(line.trim().to_owned()).filter(|it| !it.is_empty())
}
