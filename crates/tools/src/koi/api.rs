//! What a tool of the contract is over HTTP, declared beside the tool.
//!
//! A [`Route`] says how it is asked, whose permission it needs, and which request it takes. The fields of the
//! request are those of its type: the HTTP server reads bodies and queries by its schema, and a call that
//! another KOI server answers is the same request, written as JSON.

use super::Refusal;
use crate::schema;
use kenning_core::{Error, Result};
use kenning_engine::{Caller, Engine};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The HTTP method of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `GET`
    Get,
    /// `POST`
    Post,
}

/// Where a route has the fields of its request that are not in its path.
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
    /// Fields of the request that the path itself decides.
    pub fixed: &'static [(&'static str, &'static str)],
    /// Where the other fields are.
    pub place: Place,
    /// The JSON Schema of the request: see [`fields`].
    pub schema: fn() -> Value,
    /// Answers a request that fits the schema: see [`via`].
    pub answer: fn(&Engine, &Caller, Value) -> Result<Value, Refusal>,
}

impl Route {
    /// The field that is in the path.
    pub fn field_in_path(&self) -> Option<&'static str> {
        let (_, rest) = self.path.split_once('{')?;
        rest.split_once('}').map(|(name, _)| name)
    }

    /// The fields that the path itself decides.
    pub fn fixed_fields(&self) -> Map<String, Value> {
        let fixed = self.fixed.iter();
        fixed
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect()
    }
}

/// A tool of the contract as a part of the API.
pub struct Api<I> {
    /// Its routes. The first whose fixed fields the request has is the one that a call is sent to when another
    /// server answers it.
    pub routes: &'static [Route],
    /// The request that a call is, as JSON: see [`written`].
    pub request: fn(I) -> Result<Value>,
    /// Adds what follows from the rest of an answer, where other servers do not say it.
    pub complete: fn(&mut Map<String, Value>),
}

/// For a tool whose answers need nothing added.
pub(super) fn as_it_is(_: &mut Map<String, Value>) {}

/// A request without fields.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Nothing {}

/// The schema of a request.
pub fn fields<R: JsonSchema>() -> Value {
    schema::of_request::<R>()
}

/// Reads a request, asks, writes the answer.
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

/// A request as JSON, without the fields that say nothing.
pub(super) fn written(request: &impl Serialize) -> Result<Value> {
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
