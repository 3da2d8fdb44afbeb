//! Lists and paths.

use super::{Entry, Give, Take, arg, between, scalars, strict, wrong};
use crate::context::Context;
use crate::error::{Class, Error, Result};
use crate::value::Value;

pub(super) const TABLE: &[Entry] = &[
    strict("nodes", 1, Take::Path, Give::Nodes, nodes),
    strict("relationships", 1, Take::Path, Give::Rels, relationships),
    strict("rels", 1, Take::Path, Give::Rels, relationships),
    strict("head", 1, Take::List, Give::Item, head),
    strict("last", 1, Take::List, Give::Item, last),
    strict("tail", 1, Take::List, Give::First, tail),
    strict("reverse", 1, Take::Sized, Give::First, reverse),
    between("range", 2, 3, Give::Integers, range),
    strict("tobooleanlist", 1, Take::List, Give::Any, |context, it| {
        each(context, it, scalars::to_boolean)
    }),
    strict("tointegerlist", 1, Take::List, Give::Any, |context, it| {
        each(context, it, scalars::to_integer)
    }),
    strict("tofloatlist", 1, Take::List, Give::Any, |context, it| {
        each(context, it, scalars::to_float)
    }),
    strict("tostringlist", 1, Take::List, Give::Any, |context, it| {
        each(context, it, scalars::to_string)
    }),
];

fn items<'a>(function: &str, arguments: &'a [Value]) -> Result<&'a [Value]> {
    match arg(arguments, 0) {
        Value::List(it) => Ok(it.items()),
        other => Err(wrong(function, "a List", other)),
    }
}

fn nodes(context: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        Value::Path(it) => context.list(it.nodes.iter().map(|it| Value::Node(*it)).collect()),
        other => Err(wrong("nodes", "a Path", other)),
    }
}

fn relationships(context: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        Value::Path(it) => context.list(it.rels.iter().map(|it| Value::Rel(*it)).collect()),
        other => Err(wrong("relationships", "a Path", other)),
    }
}

fn head(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    Ok(items("head", arguments)?
        .first()
        .cloned()
        .unwrap_or_default())
}

fn last(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    Ok(items("last", arguments)?
        .last()
        .cloned()
        .unwrap_or_default())
}

fn tail(context: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let rest = items("tail", arguments)?.get(1..).unwrap_or_default();
    context.list(rest.to_vec())
}

fn reverse(context: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        Value::List(it) => context.list(it.items().iter().rev().cloned().collect()),
        Value::Str(it) => Ok(Value::str(it.chars().rev().collect::<String>())),
        other => Err(wrong("reverse", "a List or a String", other)),
    }
}

fn range(context: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let bound = |idx: usize| match arguments.get(idx) {
        None => Ok(1),
        Some(Value::Int(it)) => Ok(*it),
        Some(other) => {
            let message = format!("`range` expects Integers, found {}", other.type_name());
            Err(Error::run(Class::Argument, "InvalidArgumentType", message))
        }
    };
    let (from, to, step) = (bound(0)?, bound(1)?, bound(2)?);
    if step == 0 {
        let message = "the step of `range` is 0: it would never end";
        return Err(Error::run(Class::Argument, "NumberOutOfRange", message));
    }
    let distance = if step > 0 {
        i128::from(to) - i128::from(from)
    } else {
        i128::from(from) - i128::from(to)
    };
    if distance < 0 {
        return context.list(Vec::new());
    }
    let n = distance / i128::from(step).abs() + 1;
    let n = u64::try_from(n).unwrap_or(u64::MAX);
    context.check_size(n.saturating_mul(std::mem::size_of::<Value>() as u64))?;
    context.steps(n / 16)?;
    let items = (0..n as i64).map(|it| Value::Int(from.wrapping_add(it.wrapping_mul(step))));
    context.list(items.collect())
}

fn each(
    context: &Context<'_>,
    arguments: &[Value],
    convert: fn(&Context<'_>, &[Value]) -> Result<Value>,
) -> Result<Value> {
    let items = items("list conversion", arguments)?.iter();
    let items = items.map(|it| convert(context, std::slice::from_ref(it)).unwrap_or_default());
    context.list(items.collect())
}
