//! The contract's routes in the OpenAPI document, with the schemas of the tools behind them.

use kenning_tools::{AnyTool, TOOLS};
use serde_json::{Map, Value, json};

/// The routes, if the tools behind them are among these.
pub(crate) fn paths(tools: &[&'static dyn AnyTool]) -> Map<String, Value> {
    let mut paths = Map::new();
    if !tools.iter().any(|it| it.name() == "memory_recall") {
        return paths;
    }
    let mut add = |path: &str, method: &str, operation: Value| {
        paths.insert(format!("/api/v1/{path}"), json!({ (method): operation }));
    };
    let (store, update) = (input("memory_store"), input("belief_update"));
    let many = json!({ "oneOf": [store, { "type": "array", "items": store }] });
    add(
        "health",
        "get",
        read("Whether memories can be reached", &[]),
    );
    add(
        "store",
        "post",
        write("Store a memory, or an array of them", &many, "201"),
    );
    add(
        "recall",
        "get",
        read("Recall memories", &of_tool("memory_recall")),
    );
    let belief = without(&store, "memory_type");
    add("beliefs", "post", write("Store a belief", &belief, "201"));
    let mut put = write("Bring evidence", &without(&update, "belief_id"), "200");
    put["parameters"] = json!([{
        "name": "id", "in": "path", "required": true, "schema": { "type": "string" },
    }]);
    add("beliefs/{id}", "put", put);
    let session = json!({
        "type": "object", "properties": { "session_id": { "type": "string" } },
    });
    add(
        "sessions/start",
        "post",
        write("Begin a session", &session, "200"),
    );
    add(
        "sessions/end",
        "post",
        write("End a session", &session, "200"),
    );
    add(
        "pending",
        "get",
        read("Memories that wait for a second key", &[]),
    );
    let id = json!([{
        "name": "id", "in": "path", "required": true, "schema": { "type": "string" },
    }]);
    let signed = json!({
        "type": "object", "required": ["key", "signature"],
        "properties": { "key": { "type": "string" }, "signature": { "type": "string" } },
    });
    let mut confirm = write("Store what waited: a second key signed it", &signed, "200");
    confirm["parameters"] = id.clone();
    add("pending/{id}/confirm", "post", confirm);
    let nothing = json!({ "type": "object" });
    let mut reject = write("Drop what waited", &nothing, "200");
    reject["parameters"] = id;
    add("pending/{id}/reject", "post", reject);
    let mut events = read(
        "Events as they happen",
        &[parameter("event_type", json!({ "type": "string" }))],
    );
    events["responses"]["200"]["content"] = json!({ "text/event-stream": { "schema": {} } });
    add("events", "get", events);
    for (name, summary) in [
        ("memories", "Memories by the page"),
        ("edges", "Edges by the page"),
        ("beliefs", "Beliefs by the page"),
        ("graph", "Memories by the page, with the edges between them"),
    ] {
        add(&format!("dashboard/{name}"), "get", read(summary, &page()));
    }
    add("dashboard/stats", "get", read("Counts", &[]));
    let search = read("Search memories", &of_tool("memory_recall"));
    add("dashboard/search", "get", search);
    let health = read("Whether memories can be reached", &[]);
    add("dashboard/health", "get", health);
    paths
}

fn input(tool: &str) -> Value {
    let tool = TOOLS.iter().find(|it| it.name() == tool);
    tool.map_or(Value::Null, |it| it.input_schema())
}

fn without(schema: &Value, field: &str) -> Value {
    let mut schema = schema.clone();
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.remove(field);
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|it| it != field);
    }
    schema
}

fn parameter(name: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "query", "schema": schema })
}

fn of_tool(tool: &str) -> Vec<Value> {
    let schema = input(tool);
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, property)| {
            let mut parameter = parameter(name, property.clone());
            parameter["required"] = required.iter().any(|it| it == name).into();
            parameter
        })
        .collect()
}

fn page() -> Vec<Value> {
    vec![
        parameter(
            "limit",
            json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 }),
        ),
        parameter(
            "offset",
            json!({ "type": "integer", "minimum": 0, "default": 0 }),
        ),
        parameter("order_by", json!({ "type": "string" })),
        parameter(
            "order_dir",
            json!({ "type": "string", "enum": ["asc", "desc"], "default": "desc" }),
        ),
    ]
}

fn read(summary: &str, parameters: &[Value]) -> Value {
    json!({
        "summary": summary, "tags": ["memory"], "parameters": parameters,
        "responses": responses("200"),
    })
}

fn write(summary: &str, body: &Value, status: &str) -> Value {
    json!({
        "summary": summary, "tags": ["memory"],
        "requestBody": { "required": true, "content": { "application/json": { "schema": body } } },
        "responses": responses(status),
    })
}

fn responses(status: &str) -> Value {
    json!({
        (status): {
            "description": "The answer",
            "content": { "application/json": { "schema": { "type": "object" } } },
        },
        "default": { "$ref": "#/components/responses/Error" },
    })
}
