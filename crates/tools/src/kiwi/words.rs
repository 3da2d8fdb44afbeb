//! What the four tools share: types and errors of the contract.

use crate::Call;
use kenning_core::{Error, Result};
use kenning_engine::kiwi::{ItemFault, ItemResult, ItemType};
use kenning_engine::timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The types of the contract.
pub(super) const TYPES: [&str; 3] = ["directive", "tool", "knowledge"];

/// A reply whose fields depend on the request.
#[derive(Serialize)]
pub struct Answer(pub(super) Map<String, Value>);

impl Answer {
    /// With these fields and the time; null values are left out.
    pub(super) fn new(ctx: &Call<'_>, fields: Value) -> Self {
        let mut map = Map::new();
        if let Value::Object(fields) = fields {
            map.extend(fields.into_iter().filter(|it| !it.1.is_null()));
        }
        let now = timestamp(ctx.engine.now_ms());
        map.insert("timestamp".to_owned(), now.into());
        Self(map)
    }
}

impl JsonSchema for Answer {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Answer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": { "status": { "type": "string" }, "timestamp": { "type": "string" } },
            "required": ["status", "timestamp"],
        })
    }
}

/// Parses a type; the error has the contract's list.
pub(super) fn item_type(ctx: &Call<'_>, word: &str) -> Result<ItemType> {
    word.parse().map_err(|_: Error| {
        ctx.detail(json!({ "supported_types": TYPES }));
        Error::invalid(format!("Unknown item_type: {word}"))
            .hint("use `directive`, `tool` or `knowledge`")
    })
}

/// The result of an action; the fields of a fault are shown beside its error.
pub(super) fn with_details<T>(ctx: &Call<'_>, result: ItemResult<T>) -> Result<T> {
    result.map_err(|fault| {
        let ItemFault { error, details } = *fault;
        ctx.detail(Value::Object(details));
        error
    })
}
