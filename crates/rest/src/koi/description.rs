//! The KOI API in the OpenAPI document, from its table.

use super::fields::{self, Field, Need};
use super::table::{self, Entry, Takes};
use kenning_tools::AnyTool;
use kenning_tools::koi::api::Verb;
use serde_json::{Map, Value, json};

/// The paths of the routes whose tool is listed.
pub(crate) fn paths(tools: &[&'static dyn AnyTool]) -> Map<String, Value> {
    let mut paths: Map<String, Value> = Map::new();
    for entry in table::routes() {
        let route = entry.route;
        if !tools.iter().any(|it| it.name() == route.tool) {
            continue;
        }
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        let verb = match route.verb {
            Verb::Get => "get",
            Verb::Post => "post",
        };
        path[verb] = operation(entry);
    }
    paths
}

fn operation(entry: &Entry) -> Value {
    let mut parameters = Vec::new();
    if let Some(name) = entry.route.field_in_path() {
        let schema = json!({ "type": "string" });
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    let mut operation = json!({
        "summary": entry.route.summary,
        "tags": ["koi"],
        "responses": {
            "200": { "description": "The answer", "content": { "application/json": { "schema": {} } } },
            "422": {
                "description": "What is wrong with the request, thing by thing",
                "content": { "application/json": { "schema": {
                    "type": "object",
                    "properties": { "detail": { "type": ["array", "string"] } },
                } } },
            },
            "default": {
                "description": "What went wrong",
                "content": { "application/json": { "schema": {
                    "type": "object",
                    "properties": { "detail": { "type": "string" }, "hint": { "type": "string" } },
                } } },
            },
        },
    });
    match &entry.takes {
        Takes::Nothing => (),
        Takes::Query(fields) => parameters.extend(fields.iter().map(in_query)),
        Takes::Body(kind) => {
            operation["requestBody"] = json!({
                "required": true,
                "content": { "application/json": { "schema": fields::schema(kind) } },
            });
        }
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation
}

fn in_query(field: &Field) -> Value {
    json!({
        "name": field.name, "in": "query", "required": field.need == Need::Required,
        "schema": fields::schema(&field.kind),
    })
}
