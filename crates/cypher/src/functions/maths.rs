//! Numbers.

use super::{Entry, Give, Take, arg, between, int, number, strict, wrong};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::value::Value;

macro_rules! float {
    ($name:literal, $run:expr) => {
        strict($name, 1, Take::Any, Give::Float, |_, it| {
            let run: fn(f64) -> f64 = $run;
            Ok(Value::Float(run(number($name, it, 0)?)))
        })
    };
}

pub(super) const TABLE: &[Entry] = &[
    strict("abs", 1, Take::Any, Give::Any, abs),
    float!("ceil", f64::ceil),
    float!("floor", f64::floor),
    between("round", 1, 3, Give::Float, round),
    strict("sign", 1, Take::Any, Give::Int, sign),
    between("rand", 0, 0, Give::Float, |context, _| {
        Ok(Value::Float(context.random()))
    }),
    between("e", 0, 0, Give::Float, |_, _| {
        Ok(Value::Float(std::f64::consts::E))
    }),
    between("pi", 0, 0, Give::Float, |_, _| {
        Ok(Value::Float(std::f64::consts::PI))
    }),
    float!("exp", f64::exp),
    float!("log", f64::ln),
    float!("log10", f64::log10),
    float!("sqrt", f64::sqrt),
    float!("acos", f64::acos),
    float!("asin", f64::asin),
    float!("atan", f64::atan),
    float!("cos", f64::cos),
    float!("cot", |it| 1.0 / it.tan()),
    float!("sin", f64::sin),
    float!("tan", f64::tan),
    float!("degrees", f64::to_degrees),
    float!("radians", f64::to_radians),
    float!("haversin", |it| (1.0 - it.cos()) / 2.0),
    strict("atan2", 2, Take::Any, Give::Float, |_, it| {
        Ok(Value::Float(
            number("atan2", it, 0)?.atan2(number("atan2", it, 1)?),
        ))
    }),
    strict("isnan", 1, Take::Any, Give::Bool, |_, it| {
        Ok(Value::Bool(number("isNaN", it, 0)?.is_nan()))
    }),
];

fn abs(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        Value::Int(it) => it
            .checked_abs()
            .map(Value::Int)
            .ok_or_else(|| Error::overflow(format!("abs({it}) does not fit into 64 bits"))),
        Value::Float(it) => Ok(Value::Float(it.abs())),
        other => Err(wrong("abs", "a number", other)),
    }
}

fn sign(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        Value::Int(it) => Ok(Value::Int(it.signum())),
        Value::Float(it) if *it > 0.0 => Ok(Value::Int(1)),
        Value::Float(it) if *it < 0.0 => Ok(Value::Int(-1)),
        Value::Float(_) => Ok(Value::Int(0)),
        other => Err(wrong("sign", "a number", other)),
    }
}

fn round(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let it = number("round", arguments, 0)?;
    let digits = if arguments.len() > 1 {
        int("round", arguments, 1)?
    } else {
        0
    };
    let factor = 10f64.powi(i32::try_from(digits.clamp(0, 300)).unwrap_or(0));
    let scaled = it * factor;
    let mode = match arguments.get(2) {
        None => "HALF_UP",
        Some(Value::Str(it)) => it,
        Some(other) => return Err(wrong("round", "a mode as String", other)),
    };
    let half = (scaled.abs().fract() - 0.5).abs() < f64::EPSILON;
    let rounded = match mode.to_ascii_uppercase().as_str() {
        "UP" => scaled.abs().ceil().copysign(scaled),
        "DOWN" => scaled.trunc(),
        "CEILING" => scaled.ceil(),
        "FLOOR" => scaled.floor(),
        "HALF_DOWN" if half => scaled.trunc(),
        "HALF_EVEN" => scaled.round_ties_even(),
        // Halves go up, also below zero, where no digits are asked for.
        "HALF_UP" if digits == 0 && arguments.len() == 1 => (scaled + 0.5).floor(),
        "HALF_UP" | "HALF_DOWN" => scaled.round(),
        _ => return Err(Error::argument(format!("`round` has no mode `{mode}`"))),
    };
    if !scaled.is_finite() {
        return Ok(Value::Float(it));
    }
    Ok(Value::Float(rounded / factor))
}
