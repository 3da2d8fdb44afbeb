//! Tools and a prompt that ask the client something before they answer.
//!
//! In the second era a server cannot call its client. It answers that input is required and what; the
//! client calls again with the input and the state that it was given.

use super::Fixtures;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult,
    InputResponses,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};

impl Fixtures {
    /// Calls a tool that needs input.
    pub(super) fn need(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = request.input_responses.as_ref();
        let state = match &request.request_state {
            Some(sealed) => Some(self.open(sealed)?),
            None => None,
        };
        match request.name.as_ref() {
            "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
                match accepted(given, "user_name", "name") {
                    Some(name) => Ok(done(format!("Hello, {name}!"))),
                    None => ask(
                        json!({ "user_name": name_form("What is your name?") }),
                        None,
                    ),
                }
            }
            "test_input_required_result_sampling" => match answer(given, "capital_question") {
                Some(it) => Ok(done(it["content"]["text"].as_str().unwrap_or_default())),
                None => ask(
                    json!({ "capital_question": sampling("What is the capital of France?", 100) }),
                    None,
                ),
            },
            "test_input_required_result_list_roots" => match answer(given, "client_roots") {
                Some(it) => Ok(done(format!("Roots: {}", it["roots"]))),
                None => ask(json!({ "client_roots": roots() }), None),
            },
            "test_input_required_result_request_state"
            | "test_input_required_result_tampered_state" => {
                match (accepted(given, "confirm", "ok"), state) {
                    (Some(_), Some("confirm")) => Ok(done("state-ok")),
                    _ => ask(
                        json!({ "confirm": form("Please confirm", "ok", "boolean") }),
                        Some(self.seal("confirm")),
                    ),
                }
            }
            "test_input_required_result_multiple_inputs" => {
                let keys = ["user_name", "greeting", "client_roots"];
                if state.is_some() && keys.iter().all(|key| answer(given, key).is_some()) {
                    return Ok(done("All three were answered"));
                }
                ask(
                    json!({
                        "user_name": name_form("What is your name?"),
                        "greeting": sampling("Generate a greeting", 50),
                        "client_roots": roots(),
                    }),
                    Some(self.seal("three")),
                )
            }
            "test_input_required_result_multi_round" => self.rounds(given, state),
            "test_input_required_result_capabilities" => {
                let mut requests = Map::new();
                if client_has(context, "sampling") {
                    requests.insert("greeting".into(), sampling("Generate a greeting", 50));
                }
                if client_has(context, "elicitation") {
                    requests.insert("user_name".into(), name_form("What is your name?"));
                }
                if client_has(context, "roots") {
                    requests.insert("client_roots".into(), roots());
                }
                let answered = requests.keys().all(|key| answer(given, key).is_some());
                if answered {
                    return Ok(done("Nothing more to ask"));
                }
                ask(Value::Object(requests), None)
            }
            name => Err(ErrorData::invalid_params(
                format!("Unknown tool: {name}"),
                None,
            )),
        }
    }

    fn rounds(
        &self,
        given: Option<&InputResponses>,
        state: Option<&str>,
    ) -> Result<CallToolResponse, ErrorData> {
        match state {
            Some("round-2") if accepted(given, "step2", "color").is_some() => {
                Ok(done("Both steps were answered"))
            }
            Some("round-1") if accepted(given, "step1", "name").is_some() => ask(
                json!({
                    "step2": form("Step 2: What is your favorite color?", "color", "string"),
                }),
                Some(self.seal("round-2")),
            ),
            _ => ask(
                json!({ "step1": name_form("Step 1: What is your name?") }),
                Some(self.seal("round-1")),
            ),
        }
    }
}

/// Whether the client said that it can do this.
pub(super) fn client_has(context: &RequestContext<RoleServer>, capability: &str) -> bool {
    let declared = serde_json::to_value(context.client_capabilities()).unwrap_or_default();
    declared[capability].is_object()
}

/// What the client answered to a question, if it is an object at all.
fn answer<'a>(given: Option<&'a InputResponses>, key: &str) -> Option<&'a Value> {
    given?.get(key).filter(|it| it.is_object())
}

/// A field of a form that the user has filled in.
pub(super) fn accepted(given: Option<&InputResponses>, key: &str, field: &str) -> Option<String> {
    let answer = answer(given, key)?;
    if answer["action"] != "accept" {
        return None;
    }
    match answer["content"].get(field)? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn ask(requests: Value, state: Option<String>) -> Result<CallToolResponse, ErrorData> {
    Ok(required(requests, state)?.into())
}

pub(super) fn required(
    requests: Value,
    state: Option<String>,
) -> Result<InputRequiredResult, ErrorData> {
    let requests = serde_json::from_value(requests)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(InputRequiredResult::new(Some(requests), state))
}

fn done(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn name_form(message: &str) -> Value {
    form(message, "name", "string")
}

pub(super) fn form(message: &str, field: &str, kind: &str) -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "message": message,
            "requestedSchema": {
                "type": "object",
                "properties": { field: { "type": kind } },
                "required": [field],
            },
        },
    })
}

fn sampling(text: &str, tokens_max: u32) -> Value {
    json!({
        "method": "sampling/createMessage",
        "params": {
            "messages": [{ "role": "user", "content": { "type": "text", "text": text } }],
            "maxTokens": tokens_max,
        },
    })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}
