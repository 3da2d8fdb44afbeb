//! The tools that the suite calls.

use super::{Change, Fixtures, PNG, WAV, work};
use crate::listing::object;
use crate::server::is_modern;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomNotification,
    CustomRequest, ErrorCode, ProgressNotificationParam, ResourceContents, ServerNotification,
    ServerRequest, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use std::time::Duration;

/// The pause between two steps that a client should see apart.
const PAUSE: Duration = Duration::from_millis(50);

/// Names and descriptions, in the order of the listing.
const TOOLS: &[(&str, &str)] = &[
    ("test_simple_text", "Returns a text."),
    ("test_image_content", "Returns an image."),
    ("test_audio_content", "Returns a sound."),
    ("test_embedded_resource", "Returns an embedded resource."),
    (
        "test_multiple_content_types",
        "Returns a text, an image and a resource.",
    ),
    ("test_tool_with_logging", "Logs while it works."),
    ("test_logging_tool", "Logs while it works."),
    ("test_error_handling", "Fails."),
    ("test_tool_with_progress", "Tells how far it is."),
    ("test_sampling", "Asks the client's model."),
    ("test_elicitation", "Asks the user."),
    (
        "test_elicitation_sep1034_defaults",
        "Asks the user with defaults.",
    ),
    ("test_elicitation_sep1330_enums", "Asks the user to choose."),
    (
        "json_schema_2020_12_tool",
        "Has a schema with every keyword of JSON Schema 2020-12.",
    ),
    (
        "test_x_mcp_header",
        "Takes an argument that is a header too.",
    ),
    ("test_reconnection", "Answers after a pause."),
    ("test_missing_capability", "Needs a client that samples."),
    (
        "test_streaming_elicitation",
        "Asks the user on the stream of the call.",
    ),
    (
        "test_trigger_tool_change",
        "Says that the list of tools has changed.",
    ),
    (
        "test_trigger_prompt_change",
        "Says that the list of prompts has changed.",
    ),
    ("test_input_required_result_elicitation", "Asks for a name."),
    (
        "test_input_required_result_sampling",
        "Asks the client's model.",
    ),
    (
        "test_input_required_result_list_roots",
        "Asks for the client's roots.",
    ),
    (
        "test_input_required_result_request_state",
        "Asks and keeps a state.",
    ),
    (
        "test_input_required_result_tampered_state",
        "Asks and refuses a state that was altered.",
    ),
    (
        "test_input_required_result_multiple_inputs",
        "Asks three things at once.",
    ),
    ("test_input_required_result_multi_round", "Asks twice."),
    (
        "test_input_required_result_capabilities",
        "Asks what the client can answer.",
    ),
];

impl Fixtures {
    pub(crate) fn has_tool(name: &str) -> bool {
        TOOLS.iter().any(|(it, _)| *it == name)
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = Tool> {
        TOOLS.iter().chain(work::TOOLS).map(|(name, description)| {
            let hints = ToolAnnotations::with_title(*name)
                .read_only(true)
                .destructive(false)
                .idempotent(true)
                .open_world(false);
            Tool::new(*name, *description, object(schema(name)))
                .with_title(*name)
                .with_annotations(hints)
        })
    }

    pub(crate) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let argument = |name: &str| {
            let arguments = request.arguments.as_ref();
            let value = arguments
                .and_then(|it| it.get(name))
                .and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let content = match request.name.as_ref() {
            "test_simple_text" => {
                vec![ContentBlock::text(
                    "This is a simple text response for testing.",
                )]
            }
            "test_image_content" => vec![ContentBlock::image(PNG, "image/png")],
            "test_audio_content" => vec![ContentBlock::audio(WAV, "audio/wav")],
            "test_embedded_resource" => vec![resource(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content.",
            )],
            "test_multiple_content_types" => vec![
                ContentBlock::text("Multiple content types test:"),
                ContentBlock::image(PNG, "image/png"),
                resource(
                    "test://mixed-content-resource",
                    "application/json",
                    r#"{"test":"data","value":123}"#,
                ),
            ],
            "test_tool_with_logging" | "test_logging_tool" => self.log(&context).await,
            "test_error_handling" => {
                return Ok(failed(
                    "This tool intentionally returns an error for testing",
                ));
            }
            "test_tool_with_progress" => progress(&context).await,
            "test_reconnection" => {
                tokio::time::sleep(PAUSE).await;
                vec![ContentBlock::text("Reconnection test completed")]
            }
            "json_schema_2020_12_tool" => vec![ContentBlock::text("The schema is what matters.")],
            "test_x_mcp_header" => vec![ContentBlock::text(argument("region"))],
            "test_trigger_tool_change" => {
                self.announce(Change::Tools);
                vec![ContentBlock::text("Announced")]
            }
            "test_trigger_prompt_change" => {
                self.announce(Change::Prompts);
                vec![ContentBlock::text("Announced")]
            }
            "test_missing_capability" => {
                require_sampling(&context)?;
                vec![ContentBlock::text("The client samples")]
            }
            "test_sampling" => {
                let params = json!({
                    "messages": [{
                        "role": "user",
                        "content": { "type": "text", "text": argument("prompt") },
                    }],
                    "maxTokens": 100,
                });
                return ask(&context, "sampling/createMessage", params, |answer| {
                    let text = &answer["content"]["text"];
                    format!("LLM response: {}", text.as_str().unwrap_or_default())
                })
                .await;
            }
            "test_elicitation" => {
                let params = json!({
                    "message": argument("message"),
                    "requestedSchema": {
                        "type": "object",
                        "properties": {
                            "username": { "type": "string", "description": "User's response" },
                            "email": { "type": "string", "description": "User's email address" },
                        },
                        "required": ["username", "email"],
                    },
                });
                return elicit(&context, params, "User response").await;
            }
            "test_elicitation_sep1034_defaults" => {
                return elicit(&context, defaults(), "Elicitation completed").await;
            }
            "test_elicitation_sep1330_enums" => {
                return elicit(&context, choices(), "Elicitation completed").await;
            }
            _ => return self.need(&request, &context),
        };
        Ok(CallToolResult::success(content).into())
    }

    /// Logs three lines, as far as the client wants to hear of them: in the first era it sets a level
    /// once, in the second it does with every call.
    #[expect(deprecated, reason = "the suite still asks for logging")]
    async fn log(&self, context: &RequestContext<RoleServer>) -> Vec<ContentBlock> {
        let level = if is_modern(context) {
            context.meta.log_level()
        } else {
            Some(self.level())
        };
        let heard = level.is_some_and(|level| level as u8 <= rmcp::model::LoggingLevel::Info as u8);
        for text in [
            "Tool execution started",
            "Tool processing data",
            "Tool execution completed",
        ] {
            if heard {
                let params = json!({ "level": "info", "logger": "conformance", "data": text });
                let notification = CustomNotification::new("notifications/message", Some(params));
                let notification = ServerNotification::CustomNotification(notification);
                if let Err(error) = context.peer.send_notification(notification).await {
                    tracing::debug!(%error, "a log line was not sent");
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        vec![ContentBlock::text("Logging test completed")]
    }
}

fn resource(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime_type))
}

fn failed(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(text)]).into()
}

async fn progress(context: &RequestContext<RoleServer>) -> Vec<ContentBlock> {
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let mut param = ProgressNotificationParam::new(token, done);
            param.total = Some(100.0);
            if let Err(error) = context.peer.notify_progress(param).await {
                tracing::debug!(%error, "progress was not sent");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    vec![ContentBlock::text("Progress test completed")]
}

fn require_sampling(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    if super::ask::client_has(context, "sampling") {
        return Ok(());
    }
    Err(ErrorData::new(
        ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
        "Missing required client capability",
        Some(json!({ "requiredCapabilities": { "sampling": {} } })),
    ))
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    params: Value,
    done: &str,
) -> Result<CallToolResponse, ErrorData> {
    ask(context, "elicitation/create", params, |answer| {
        let action = answer["action"].as_str().unwrap_or_default();
        format!("{done}: action={action}, content={}", answer["content"])
    })
    .await
}

/// Asks a client of the first era something back, and makes a text of its answer.
async fn ask(
    context: &RequestContext<RoleServer>,
    method: &str,
    params: Value,
    text: impl FnOnce(Value) -> String,
) -> Result<CallToolResponse, ErrorData> {
    let request = ServerRequest::CustomRequest(CustomRequest::new(method, Some(params)));
    let answer = match context.peer.send_request(request).await {
        Ok(answer) => serde_json::to_value(answer).unwrap_or_default(),
        Err(error) => return Ok(failed(format!("{method} failed: {error}"))),
    };
    Ok(CallToolResult::success(vec![ContentBlock::text(text(answer))]).into())
}

fn schema(name: &str) -> Value {
    let one = |name: &str, description: &str| {
        json!({
            "type": "object",
            "properties": { name: { "type": "string", "description": description } },
            "required": [name],
        })
    };
    match name {
        "test_sampling" => one("prompt", "What to ask the model."),
        "test_elicitation" => one("message", "What to ask the user."),
        "test_x_mcp_header" => json!({
            "type": "object",
            "properties": {
                "region": {
                    "type": "string",
                    "description": "A region.",
                    "x-mcp-header": "Region",
                },
            },
            "required": ["region"],
        }),
        "json_schema_2020_12_tool" => json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": {
                        "street": { "type": "string" },
                        "city": { "type": "string" },
                    },
                },
            },
            "properties": {
                "name": { "type": "string" },
                "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" },
                "email": { "type": "string" },
            },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": {
                "properties": { "contactMethod": { "const": "phone" } },
                "required": ["contactMethod"],
            },
            "then": { "required": ["phone"] },
            "else": { "required": ["email"] },
            "additionalProperties": false,
        }),
        _ => json!({ "type": "object", "properties": {} }),
    }
}

fn defaults() -> Value {
    json!({
        "message": "Please check the defaults",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": {
                    "type": "string",
                    "enum": ["active", "inactive", "pending"],
                    "default": "active",
                },
                "verified": { "type": "boolean", "default": true },
            },
        },
    })
}

fn choices() -> Value {
    let titled = |words: [&str; 3]| {
        let values = ["value1", "value2", "value3"];
        let pairs = values.iter().zip(words);
        let titled = pairs.map(|(value, title)| json!({ "const": value, "title": title }));
        titled.collect::<Value>()
    };
    let plain = json!(["option1", "option2", "option3"]);
    json!({
        "message": "Please choose",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "untitledSingle": { "type": "string", "enum": plain },
                "titledSingle": {
                    "type": "string",
                    "oneOf": titled(["First Option", "Second Option", "Third Option"]),
                },
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {
                    "type": "array",
                    "items": { "type": "string", "enum": plain },
                },
                "titledMulti": {
                    "type": "array",
                    "items": { "anyOf": titled(["First Choice", "Second Choice", "Third Choice"]) },
                },
            },
        },
    })
}
