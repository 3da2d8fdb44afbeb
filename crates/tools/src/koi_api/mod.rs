//! The HTTP API of the contract's tools, declared beside each tool.
//!
//! A [`Route`] has a method and a path, the tool whose permission it needs, and the type of its
//! request. The HTTP server reads bodies and queries by the schema of that type, and a call that
//! another KOI server answers is sent as the same request, written as JSON.

pub(crate) mod conform;
pub(crate) mod far;
mod refusal;

pub use refusal::Refusal;

use crate::schema;
use kenning_core::{Error, Result};
use kenning_engine::{Caller, Engine};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Where a name is resolved to a URI.
pub(crate) const RESOLVE_PATH: &str = "/entity/resolve";

/// The HTTP method of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `GET`
    Get,
    /// `POST`
    Post,
}

/// Where the fields of a request are that are not in its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It has none.
    Nowhere,
    /// In the query: texts, numbers and flags only.
    Query,
    /// In a JSON body.
    Body,
}

/// A route of the KOI API.
#[derive(Clone, Copy)]
pub struct Route {
    /// The method.
    pub verb: Verb,
    /// The path; `{field}` is a field of the request, whose value may have slashes.
    pub path: &'static str,
    /// One line for the manual.
    pub summary: &'static str,
    /// The tool whose permission it needs.
    pub tool: &'static str,
    /// Fields of the request that the path determines.
    pub fixed: &'static [(&'static str, &'static str)],
    /// Where the other fields are.
    pub place: Place,
    /// The JSON Schema of the request: see [`fields`].
    pub schema: fn() -> Value,
    /// Answers a request that matches the schema: see [`via`].
    pub answer: fn(&Engine, &Caller, Value) -> Result<Value, Refusal>,
}

impl Route {
    /// The field that is in the path.
    pub fn field_in_path(&self) -> Option<&'static str> {
        let (_, rest) = self.path.split_once('{')?;
        rest.split_once('}').map(|(name, _)| name)
    }

    /// The fields that the path determines.
    pub fn fixed_fields(&self) -> Map<String, Value> {
        let fixed = self.fixed.iter();
        fixed
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect()
    }
}

/// A tool of the contract as a part of the API.
pub struct Api<I> {
    /// Its routes. When another server answers a call, it is sent to the first route whose fixed
    /// fields match.
    pub routes: &'static [Route],
    /// Converts a call to the JSON of its request: see [`written`].
    pub request: fn(I) -> Result<Value>,
    /// Adds fields that can be derived from the rest of an answer, if another server leaves them out.
    pub complete: fn(&mut Map<String, Value>),
}

/// For tools whose answers need no additions.
pub(crate) fn as_it_is(_: &mut Map<String, Value>) {}

/// A request without fields.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Nothing {}

/// The schema of a request.
pub fn fields<R: JsonSchema>() -> Value {
    schema::of_request::<R>()
}

/// Reads a request, answers it and serializes the answer.
///
/// # Errors
/// What `answer` refuses.
pub fn via<R: DeserializeOwned, O: Serialize>(
    engine: &Engine,
    caller: &Caller,
    request: Value,
    answer: fn(&Engine, &Caller, R) -> Result<O, Refusal>,
) -> Result<Value, Refusal> {
    let request = serde_json::from_value(request)
        .map_err(|cause| Error::invalid(format!("the request cannot be read: {cause}")))?;
    let answered = answer(engine, caller, request)?;
    let written = serde_json::to_value(answered);
    Ok(written.map_err(|cause| Error::internal("an answer is not JSON").because(cause))?)
}

/// A request as JSON, without nulls.
pub(crate) fn written(request: &impl Serialize) -> Result<Value> {
    let mut written = serde_json::to_value(request)
        .map_err(|cause| Error::internal("a request is not JSON").because(cause))?;
    drop_nulls(&mut written);
    Ok(written)
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, it| !it.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
