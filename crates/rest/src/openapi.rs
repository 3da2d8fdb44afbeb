//! The OpenAPI document, from the tool table.

use crate::{koi, log, memory, registry};
use kenning_core::CODES;
use kenning_engine::kami::ToolFunction;
use kenning_tools::{AnyTool, Effect, Toolset};
use serde_json::{Map, Value, json};

/// The document for these tools.
pub fn document(tools: &[&'static dyn AnyTool]) -> Value {
    with_installed(tools, &[])
}

/// The document for these tools and those that are installed.
pub(crate) fn with_installed(tools: &[&'static dyn AnyTool], installed: &[ToolFunction]) -> Value {
    let mut paths = Map::new();
    for tool in installed {
        let post = json!({ "post": installed_operation(tool) });
        paths.insert(format!("/tools/{}", tool.name), post);
    }
    for tool in tools {
        let mut path = json!({ "post": operation(*tool) });
        if tool.effect() == Effect::Read {
            path["get"] = in_query(*tool);
        }
        paths.insert(format!("/tools/{}", tool.name()), path);
    }
    let get = |summary: &str, kind: &str| {
        let content = json!({ (kind): { "schema": {} } });
        let ok = json!({ "description": "The answer", "content": content });
        let error = json!({ "$ref": "#/components/responses/Error" });
        json!({ "get": { "summary": summary, "responses": { "200": ok, "default": error } } })
    };
    paths.insert("/tools".to_owned(), get("The tools", "application/json"));
    paths.insert(
        "/healthz".to_owned(),
        get(
            "Whether it is alive, and with a token how large the log is",
            "application/json",
        ),
    );
    paths.insert(
        "/readyz".to_owned(),
        get("Whether it can reach its store", "application/json"),
    );
    paths.insert(
        "/metrics".to_owned(),
        get("Counters for Prometheus", "text/plain"),
    );
    paths.insert(
        "/events".to_owned(),
        get(
            "The log as it grows, from the event that `Last-Event-ID` or `after` names: its `id`, or its number",
            "text/event-stream",
        ),
    );
    paths.extend(log::peers::paths());
    paths.extend(koi::description::paths(tools));
    paths.extend(memory::description::paths(tools));
    paths.extend(registry::description::paths(tools));
    let codes: Vec<&str> = CODES.iter().map(|row| row.name).collect();
    let error = json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["code", "message", "retryable"],
            "properties": {
                "code": { "type": "string", "enum": codes },
                "message": { "type": "string" },
                "hint": { "type": "string" },
                "retryable": { "type": "boolean" },
            },
        }},
    });
    let error_response = json!({
        "description": "What went wrong, and what to do about it",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
    });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Kenning", "version": env!("CARGO_PKG_VERSION"),
            "description": "Memory, knowledge and tools for AI agents.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": { "Error": error },
            "responses": { "Error": error_response },
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "apiKey": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
            },
        },
        "security": [{}, { "token": [] }, { "apiKey": [] }],
    })
}

/// The same call with its arguments in the query.
fn in_query(tool: &dyn AnyTool) -> Value {
    let schema = tool.input_schema();
    let required = |name: &str| {
        let names = schema["required"].as_array();
        names.is_some_and(|it| it.iter().any(|it| it == name))
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let parameters: Vec<Value> = properties
        .map(|(name, property)| {
            json!({ "name": name, "in": "query", "required": required(name), "schema": property })
        })
        .collect();
    let mut get = operation(tool);
    if let Some(get) = get.as_object_mut() {
        get.remove("requestBody");
        get.insert(
            "operationId".to_owned(),
            format!("{}_get", tool.name()).into(),
        );
        get.insert("parameters".to_owned(), parameters.into());
    }
    get
}

/// A call of an installed tool, whose response is not described.
fn installed_operation(tool: &ToolFunction) -> Value {
    json!({
        "operationId": tool.name,
        "summary": tool.title,
        "description": tool.description,
        "tags": [Toolset::Kami.as_str()],
        "requestBody": { "required": true, "content": { "application/json": {
            "schema": tool.input_schema,
        }}},
        "responses": {
            "200": { "description": "The answer", "content": { "application/json": { "schema": {} } } },
            "default": { "$ref": "#/components/responses/Error" },
        },
    })
}

fn operation(tool: &dyn AnyTool) -> Value {
    let text = json!({
        "type": "object",
        "properties": { "content": { "type": "array", "items": {
            "type": "object",
            "properties": { "type": { "const": "text" }, "text": { "type": "string" } },
        }}},
    });
    let examples: Map<String, Value> = tool
        .examples()
        .iter()
        .map(|example| {
            let value: Value = serde_json::from_str(example.input).unwrap_or_default();
            (example.title.to_owned(), json!({ "value": value }))
        })
        .collect();
    json!({
        "operationId": tool.name(),
        "summary": tool.title(),
        "description": tool.description(),
        "tags": [tool.toolset().as_str()],
        "requestBody": { "required": true, "content": { "application/json": {
            "schema": tool.input_schema(), "examples": examples,
        }}},
        "responses": {
            "200": { "description": "The answer", "content": { "application/json": {
                "schema": tool.output_schema().unwrap_or(text),
            }}},
            "default": { "$ref": "#/components/responses/Error" },
        },
    })
}
