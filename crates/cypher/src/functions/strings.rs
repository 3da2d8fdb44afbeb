//! Texts.

use super::{Entry, Give, Take, arg, between, int, strict, text, wrong};
use crate::context::Context;
use crate::error::{Class, Error, Result};
use crate::value::Value;

pub(super) const TABLE: &[Entry] = &[
    strict("tolower", 1, Take::Any, Give::Str, lower),
    strict("lower", 1, Take::Any, Give::Str, lower),
    strict("toupper", 1, Take::Any, Give::Str, upper),
    strict("upper", 1, Take::Any, Give::Str, upper),
    strict("trim", 1, Take::Any, Give::Str, |_, it| {
        Ok(Value::str(text("trim", it, 0)?.trim()))
    }),
    strict("btrim", 1, Take::Any, Give::Str, |_, it| {
        Ok(Value::str(text("btrim", it, 0)?.trim()))
    }),
    strict("ltrim", 1, Take::Any, Give::Str, |_, it| {
        Ok(Value::str(text("lTrim", it, 0)?.trim_start()))
    }),
    strict("rtrim", 1, Take::Any, Give::Str, |_, it| {
        Ok(Value::str(text("rTrim", it, 0)?.trim_end()))
    }),
    strict("left", 2, Take::Any, Give::Str, left),
    strict("right", 2, Take::Any, Give::Str, right),
    between("substring", 2, 3, Give::Str, substring),
    strict("replace", 3, Take::Any, Give::Str, replace),
    strict("split", 2, Take::Any, Give::Strings, split),
    strict("char_length", 1, Take::Any, Give::Int, char_length),
    strict("character_length", 1, Take::Any, Give::Int, char_length),
];

fn lower(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    Ok(Value::str(text("toLower", arguments, 0)?.to_lowercase()))
}

fn upper(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    Ok(Value::str(text("toUpper", arguments, 0)?.to_uppercase()))
}

/// A number of characters, which cannot be negative.
fn count(function: &str, arguments: &[Value], idx: usize) -> Result<usize> {
    let n = int(function, arguments, idx)?;
    usize::try_from(n).map_err(|_| {
        let message = format!("`{function}` cannot take {n} characters");
        Error::run(Class::Argument, "NegativeIntegerArgument", message)
    })
}

fn left(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let n = count("left", arguments, 1)?;
    let it = text("left", arguments, 0)?;
    Ok(Value::str(it.chars().take(n).collect::<String>()))
}

fn right(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let n = count("right", arguments, 1)?;
    let it = text("right", arguments, 0)?;
    let skip = it.chars().count().saturating_sub(n);
    Ok(Value::str(it.chars().skip(skip).collect::<String>()))
}

fn substring(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let it = text("substring", arguments, 0)?;
    let start = count("substring", arguments, 1)?;
    let n = if arguments.len() > 2 {
        count("substring", arguments, 2)?
    } else {
        usize::MAX
    };
    Ok(Value::str(
        it.chars().skip(start).take(n).collect::<String>(),
    ))
}

fn replace(context: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let it = text("replace", arguments, 0)?;
    let search = text("replace", arguments, 1)?;
    let with = text("replace", arguments, 2)?;
    if search.is_empty() {
        return Ok(arg(arguments, 0).clone());
    }
    let n = it.matches(&**search).count() as u64;
    context.check_size((it.len() as u64).saturating_add(n.saturating_mul(with.len() as u64)))?;
    Ok(Value::str(it.replace(&**search, with)))
}

fn split(context: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let it = text("split", arguments, 0)?;
    let delimiters: Vec<&str> = match arg(arguments, 1) {
        Value::Str(it) => vec![it],
        Value::List(list) => {
            let mut delimiters = Vec::new();
            for item in list.items() {
                match item {
                    Value::Str(it) => delimiters.push(&**it),
                    other => return Err(wrong("split", "delimiters as Strings", other)),
                }
            }
            delimiters
        }
        other => return Err(wrong("split", "a delimiter as String", other)),
    };
    let mut parts = context.list_builder();
    if delimiters.iter().all(|it| it.is_empty()) {
        for part in it.chars() {
            parts.push(Value::str(part.to_string()))?;
        }
        return parts.finish();
    }
    // Where each delimiter comes next. One that does not come again is looked for once and not for every part.
    let mut next: Vec<(usize, &str)> = Vec::new();
    for delimiter in delimiters.into_iter().filter(|it| !it.is_empty()) {
        context.steps(it.len() as u64 >> 8)?;
        next.extend(it.find(delimiter).map(|at| (at, delimiter)));
    }
    let mut start = 0;
    while let Some((at, length)) = next.iter().map(|it| (it.0, it.1.len())).min() {
        context.steps(next.len() as u64 / 16)?;
        parts.push(Value::str(it.get(start..at).unwrap_or_default()))?;
        start = at + length;
        next.retain_mut(|(at, delimiter)| {
            if *at >= start {
                return true;
            }
            let found = it.get(start..).and_then(|rest| rest.find(*delimiter));
            *at = found.map_or(0, |it| start + it);
            found.is_some()
        });
    }
    parts.push(Value::str(it.get(start..).unwrap_or_default()))?;
    parts.finish()
}

fn char_length(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let it = text("char_length", arguments, 0)?;
    Ok(Value::Int(it.chars().count() as i64))
}
