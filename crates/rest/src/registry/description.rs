//! The registry's routes in the OpenAPI document.

use kenning_tools::{AnyTool, Toolset};
use serde_json::{Map, Value, json};

/// The routes, if items are served at all.
pub(crate) fn paths(tools: &[&'static dyn AnyTool]) -> Map<String, Value> {
    let mut paths = Map::new();
    if !tools.iter().any(|it| it.toolset() == Toolset::Kiwi) {
        return paths;
    }
    let text = || json!({ "type": "string" });
    let item_type = || json!({ "type": "string", "enum": ["directive", "tool", "knowledge"] });
    let of_item = || {
        vec![
            parameter("item_type", "path", true, item_type()),
            parameter("id", "path", true, text()),
        ]
    };
    let with_version = || {
        let mut parameters = of_item();
        parameters.push(parameter("version", "query", false, text()));
        parameters
    };
    let package = package();
    let mut add = |path: &str, method: &str, operation: Value| {
        paths.insert(
            format!("/registry/v1/{path}"),
            json!({ (method): operation }),
        );
    };
    add(
        "push",
        "post",
        operation("Publish a signed version", &[], Some(&package), "201"),
    );
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 10 });
    add(
        "search",
        "get",
        operation(
            "Find items",
            &[
                parameter("query", "query", true, text()),
                parameter("item_type", "query", false, item_type()),
                parameter("limit", "query", false, limit),
            ],
            None,
            "200",
        ),
    );
    add(
        "pull/{item_type}/{id}",
        "get",
        operation("A version with all its files", &with_version(), None, "200"),
    );
    add(
        "versions/{item_type}/{id}",
        "get",
        operation("All versions of an item", &of_item(), None, "200"),
    );
    let deprecation = json!({
        "type": "object", "required": ["version"],
        "properties": { "version": text(), "reason": text() },
    });
    add(
        "deprecate/{item_type}/{id}",
        "post",
        operation(
            "Say that a version should not be used",
            &of_item(),
            Some(&deprecation),
            "200",
        ),
    );
    add(
        "items/{item_type}/{id}",
        "delete",
        operation(
            "Remove a version, or all of them",
            &with_version(),
            None,
            "200",
        ),
    );
    paths
}

/// The body of a push and of a pull.
fn package() -> Value {
    let text = || json!({ "type": "string" });
    json!({
        "type": "object",
        "required": ["item_type", "item_id", "version", "scope", "main", "files"],
        "properties": {
            "item_type": { "type": "string", "enum": ["directive", "tool", "knowledge"] },
            "item_id": text(), "version": text(), "category": text(),
            "scope": { "type": "string", "enum": ["project", "user"] },
            "main": { "type": "string", "description": "The file that holds the signature" },
            "changelog": { "type": ["string", "null"] },
            "files": { "type": "array", "items": {
                "type": "object", "required": ["path", "content"],
                "properties": {
                    "path": text(), "sha256": text(),
                    "content": {
                        "type": "string",
                        "description": "`t:` and the text, or `x:` and the bytes in hexadecimal",
                    },
                },
            }},
        },
    })
}

fn parameter(name: &str, place: &str, required: bool, schema: Value) -> Value {
    json!({ "name": name, "in": place, "required": required, "schema": schema })
}

fn operation(summary: &str, parameters: &[Value], body: Option<&Value>, status: &str) -> Value {
    let object = json!({ "application/json": { "schema": { "type": "object" } } });
    let mut operation = json!({
        "summary": summary, "tags": ["registry"], "parameters": parameters,
        "responses": {
            (status): { "description": "Done", "content": object },
            "default": { "description": "What is wrong, and the remedy", "content": object },
        },
    });
    if let Some(schema) = body {
        operation["requestBody"] = json!({
            "required": true, "content": { "application/json": { "schema": schema } },
        });
    }
    operation
}
