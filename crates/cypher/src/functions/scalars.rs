//! Functions of nodes, relationships and single values.

use super::{Entry, Give, Take, arg, between, lenient, strict, wrong};
use crate::context::Context;
use crate::error::Result;
use crate::value::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const TABLE: &[Entry] = &[
    strict("id", 1, Take::Any, Give::Int, id),
    strict("elementid", 1, Take::Any, Give::Str, element_id),
    lenient("coalesce", 1, usize::MAX, Give::Any, coalesce),
    strict("type", 1, Take::Rel, Give::Str, type_of),
    strict("labels", 1, Take::Node, Give::Strings, labels),
    strict("startnode", 1, Take::Rel, Give::Node, start_node),
    strict("endnode", 1, Take::Rel, Give::Node, end_node),
    strict("properties", 1, Take::Entries, Give::Map, properties),
    strict("keys", 1, Take::Entries, Give::Strings, keys),
    strict("size", 1, Take::Sized, Give::Int, size),
    strict("length", 1, Take::Path, Give::Int, length),
    strict("toboolean", 1, Take::Any, Give::Bool, to_boolean),
    strict("tointeger", 1, Take::Any, Give::Int, to_integer),
    strict("toint", 1, Take::Any, Give::Int, to_integer),
    strict("tofloat", 1, Take::Any, Give::Float, to_float),
    strict("tostring", 1, Take::Any, Give::Str, to_string),
    strict(
        "tobooleanornull",
        1,
        Take::Any,
        Give::Bool,
        |context, it| Ok(to_boolean(context, it).unwrap_or_default()),
    ),
    strict("tointegerornull", 1, Take::Any, Give::Int, |context, it| {
        Ok(to_integer(context, it).unwrap_or_default())
    }),
    strict("tofloatornull", 1, Take::Any, Give::Float, |context, it| {
        Ok(to_float(context, it).unwrap_or_default())
    }),
    strict("tostringornull", 1, Take::Any, Give::Str, |context, it| {
        Ok(to_string(context, it).unwrap_or_default())
    }),
    strict("isempty", 1, Take::Any, Give::Bool, is_empty),
    strict("nullif", 2, Take::Any, Give::First, null_if),
    between("timestamp", 0, 0, Give::Int, timestamp),
];

fn id(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        Value::Node(it) => Ok(Value::Int(it.0.cast_signed())),
        Value::Rel(it) => Ok(Value::Int(it.id.0.cast_signed())),
        other => Err(wrong("id", "a Node or a Relationship", other)),
    }
}

fn element_id(context: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        Value::Node(it) => Ok(Value::str(context.graph.node_name(*it))),
        Value::Rel(it) => Ok(Value::str(context.graph.rel_name(it))),
        other => Err(wrong("elementId", "a Node or a Relationship", other)),
    }
}

fn coalesce(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let first = arguments.iter().find(|it| !it.is_null());
    Ok(first.cloned().unwrap_or_default())
}

fn type_of(context: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        Value::Rel(it) => Ok(Value::Str(context.graph.type_name(it.kind))),
        other => Err(wrong("type", "a Relationship", other)),
    }
}

fn labels(context: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        Value::Node(it) => {
            let labels = context.graph.labels(*it)?.into_iter();
            let labels = labels.map(|it| Value::Str(context.graph.label_name(it)));
            context.list(labels.collect())
        }
        other => Err(wrong("labels", "a Node", other)),
    }
}

fn start_node(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        Value::Rel(it) => Ok(Value::Node(it.start)),
        other => Err(wrong("startNode", "a Relationship", other)),
    }
}

fn end_node(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        Value::Rel(it) => Ok(Value::Node(it.end)),
        other => Err(wrong("endNode", "a Relationship", other)),
    }
}

fn entries(context: &Context<'_>, function: &str, of: &Value) -> Result<BTreeMap<Arc<str>, Value>> {
    match of {
        Value::Node(it) => Ok(context.graph.node_properties(*it)?.into_iter().collect()),
        Value::Rel(it) => Ok(context.graph.rel_properties(it)?.into_iter().collect()),
        Value::Map(it) => Ok(it.entries().clone()),
        other => Err(wrong(function, "a Node, a Relationship or a Map", other)),
    }
}

fn properties(context: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let of = arg(arguments, 0);
    if let Value::Map(_) = of {
        return Ok(of.clone());
    }
    context.map(entries(context, "properties", of)?)
}

fn keys(context: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let entries = entries(context, "keys", arg(arguments, 0))?;
    context.list(entries.into_keys().map(Value::Str).collect())
}

fn size(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        Value::List(it) => Ok(Value::Int(it.items().len() as i64)),
        Value::Str(it) => Ok(Value::Int(it.chars().count() as i64)),
        other => Err(wrong("size", "a List or a String", other)),
    }
}

fn length(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        Value::Path(it) => Ok(Value::Int(it.rels.len() as i64)),
        other => Err(wrong("length", "a Path", other)),
    }
}

pub(super) fn to_boolean(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        it @ Value::Bool(_) => Ok(it.clone()),
        Value::Int(it) => Ok(Value::Bool(*it != 0)),
        Value::Str(it) => Ok(match it.trim().to_ascii_lowercase().as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::Null,
        }),
        other => Err(wrong(
            "toBoolean",
            "a Boolean, an Integer or a String",
            other,
        )),
    }
}

pub(super) fn to_integer(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        it @ Value::Int(_) => Ok(it.clone()),
        Value::Bool(it) => Ok(Value::Int(i64::from(*it))),
        Value::Float(it) => Ok(truncated(*it)),
        Value::Str(it) => {
            let it = it.trim();
            let whole = it.parse().ok().map(Value::Int);
            let float = || plain_float(it).map(truncated);
            Ok(whole.or_else(float).unwrap_or_default())
        }
        other => Err(wrong("toInteger", "a number, a Boolean or a String", other)),
    }
}

fn truncated(it: f64) -> Value {
    let whole = it.trunc();
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole) {
        return Value::Int(whole as i64);
    }
    Value::Null
}

/// Digits with a point or an exponent; the words that Rust reads as floats are refused.
fn plain_float(text: &str) -> Option<f64> {
    let valid = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    text.bytes().all(valid).then(|| text.parse().ok()).flatten()
}

pub(super) fn to_float(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        it @ Value::Float(_) => Ok(it.clone()),
        Value::Int(it) => Ok(Value::Float(*it as f64)),
        Value::Str(it) => Ok(plain_float(it.trim()).map_or(Value::Null, Value::Float)),
        other => Err(wrong("toFloat", "a number or a String", other)),
    }
}

pub(super) fn to_string(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        it @ Value::Str(_) => Ok(it.clone()),
        it @ (Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Date(_)
        | Value::LocalTime(_)
        | Value::Time(_)
        | Value::LocalDateTime(_)
        | Value::DateTime(_)
        | Value::Duration(_)) => Ok(Value::str(it.to_string())),
        other => Err(wrong(
            "toString",
            "a Boolean, a number, a String or a time",
            other,
        )),
    }
}

fn is_empty(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        Value::List(it) => Ok(Value::Bool(it.items().is_empty())),
        Value::Str(it) => Ok(Value::Bool(it.is_empty())),
        Value::Map(it) => Ok(Value::Bool(it.entries().is_empty())),
        other => Err(wrong("isEmpty", "a List, a Map or a String", other)),
    }
}

fn null_if(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let (a, b) = (arg(arguments, 0), arg(arguments, 1));
    if a.equals(b) == Some(true) {
        return Ok(Value::Null);
    }
    Ok(a.clone())
}

fn timestamp(context: &Context<'_>, _: &[Value]) -> Result<Value> {
    let now = context.now;
    Ok(Value::Int(
        now.seconds.saturating_mul(1000) + i64::from(now.nanos / 1_000_000),
    ))
}
