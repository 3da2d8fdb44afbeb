//! What a query answers when there is nothing in the graph.

use super::parse::{AGGREGATES, Clause, Expr, Projection, Query};
use super::{Answer, Fault};
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// Variables and their values.
type Row = Map<String, Value>;

/// What `UNWIND` and lists may grow to.
const ROWS_MAX: usize = 10_000;

pub(super) fn run(query: &Query) -> Result<Answer, Fault> {
    let mut rows = vec![Row::new()];
    let mut columns = Vec::new();
    for clause in &query.clauses {
        match clause {
            Clause::Match {
                is_optional: false, ..
            } => rows.clear(),
            Clause::Match { variables, .. } => {
                for row in &mut rows {
                    row.extend(variables.iter().map(|it| (it.clone(), Value::Null)));
                }
            }
            Clause::Unwind(list, name) => rows = unwound(&rows, list, name)?,
            Clause::Project(projection) => {
                rows = projected(&rows, projection)?;
                columns = projection.items.iter().map(|it| it.0.clone()).collect();
            }
        }
    }
    Ok(Answer { columns, rows })
}

fn unwound(rows: &[Row], list: &Expr, name: &str) -> Result<Vec<Row>, Fault> {
    let mut all = Vec::new();
    for row in rows {
        let items = match value(list, row, None)? {
            Value::Array(items) => items,
            Value::Null => Vec::new(),
            other => vec![other],
        };
        for item in items {
            let mut row = row.clone();
            row.insert(name.to_owned(), item);
            all.push(row);
            if all.len() > ROWS_MAX {
                return Err(Fault(format!("`UNWIND` makes more than {ROWS_MAX} rows")));
            }
        }
    }
    Ok(all)
}

fn projected(rows: &[Row], projection: &Projection) -> Result<Vec<Row>, Fault> {
    // Each result with what it was made of, which it may be ordered by.
    let mut made: Vec<(Row, Row)> = Vec::new();
    if projection.items.iter().any(|it| has_aggregate(&it.1)) {
        for group in groups(rows, projection)? {
            let first = group.first().cloned().unwrap_or_default();
            let mut result = Row::new();
            for (name, expr) in &projection.items {
                result.insert(name.clone(), value(expr, &first, Some(&group))?);
            }
            made.push((result, first));
        }
    } else {
        for row in rows {
            let mut result = Row::new();
            for (name, expr) in &projection.items {
                result.insert(name.clone(), value(expr, row, None)?);
            }
            made.push((result, row.clone()));
        }
    }
    if projection.is_distinct {
        let mut seen: Vec<Row> = Vec::new();
        made.retain(|(it, _)| {
            let is_new = !seen.contains(it);
            if is_new {
                seen.push(it.clone());
            }
            is_new
        });
    }
    sort(&mut made, projection)?;
    let skip = count("SKIP", projection.skip.as_ref())?.unwrap_or(0);
    let limit = count("LIMIT", projection.limit.as_ref())?.unwrap_or(usize::MAX);
    let results = made.into_iter().map(|it| it.0).skip(skip).take(limit);
    let Some(condition) = &projection.condition else {
        return Ok(results.collect());
    };
    let mut kept = Vec::new();
    for row in results {
        if value(condition, &row, None)? == Value::Bool(true) {
            kept.push(row);
        }
    }
    Ok(kept)
}

/// Rows with equal keys; without keys all rows are one group, even if there are none.
fn groups(rows: &[Row], projection: &Projection) -> Result<Vec<Vec<Row>>, Fault> {
    let keys: Vec<&Expr> = projection
        .items
        .iter()
        .map(|it| &it.1)
        .filter(|it| !has_aggregate(it))
        .collect();
    if keys.is_empty() {
        return Ok(vec![rows.to_vec()]);
    }
    let mut groups: Vec<(Vec<Value>, Vec<Row>)> = Vec::new();
    for row in rows {
        let key: Result<Vec<Value>, Fault> = keys.iter().map(|it| value(it, row, None)).collect();
        let key = key?;
        match groups.iter_mut().find(|it| it.0 == key) {
            Some((_, group)) => group.push(row.clone()),
            None => groups.push((key, vec![row.clone()])),
        }
    }
    Ok(groups.into_iter().map(|it| it.1).collect())
}

fn sort(made: &mut [(Row, Row)], projection: &Projection) -> Result<(), Fault> {
    if made.len() < 2 || projection.order.is_empty() {
        return Ok(());
    }
    let mut keyed = Vec::new();
    for (result, row) in made.iter() {
        let mut both = row.clone();
        both.extend(result.clone());
        let keys = projection
            .order
            .iter()
            .map(|it| value(&it.0, &both, Some(&[])));
        keyed.push((
            keys.collect::<Result<Vec<_>, _>>()?,
            (result.clone(), row.clone()),
        ));
    }
    keyed.sort_by(|a, b| {
        let pairs = a.0.iter().zip(&b.0).zip(&projection.order);
        let ordered = pairs.map(|((a, b), (_, is_descending))| {
            let ordering = compared(a, b).unwrap_or_else(|| a.is_null().cmp(&b.is_null()));
            if *is_descending {
                ordering.reverse()
            } else {
                ordering
            }
        });
        ordered.fold(Ordering::Equal, Ordering::then)
    });
    for (place, (_, pair)) in made.iter_mut().zip(keyed) {
        *place = pair;
    }
    Ok(())
}

fn count(word: &str, expr: Option<&Expr>) -> Result<Option<usize>, Fault> {
    let Some(expr) = expr else {
        return Ok(None);
    };
    let number = value(expr, &Row::new(), None)?.as_u64();
    let number = number.and_then(|it| usize::try_from(it).ok());
    let number = number.ok_or_else(|| {
        Fault(format!(
            "`{word}` takes a whole number that is not negative"
        ))
    })?;
    Ok(Some(number))
}

fn has_aggregate(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(_) | Expr::Variable(_) | Expr::InGraph => false,
        Expr::Property(it, _) | Expr::Unary(_, it) | Expr::IsNull(it) => has_aggregate(it),
        Expr::Index(a, b) | Expr::Binary(_, a, b) => has_aggregate(a) || has_aggregate(b),
        Expr::Slice(a, b, c) => {
            let rest = [b, c].into_iter().flatten();
            has_aggregate(a) || rest.into_iter().any(|it| has_aggregate(it))
        }
        Expr::List(all) => all.iter().any(has_aggregate),
        Expr::Map(all) => all.iter().any(|it| has_aggregate(&it.1)),
        Expr::Call(name, _, _, arguments) => {
            let within = |it: &Vec<Expr>| it.iter().any(has_aggregate);
            AGGREGATES.contains(&name.as_str()) || arguments.as_ref().is_some_and(within)
        }
        Expr::Case(subject, branches, otherwise) => {
            let ends = [subject, otherwise].into_iter().flatten();
            ends.into_iter().any(|it| has_aggregate(it))
                || branches
                    .iter()
                    .any(|it| has_aggregate(&it.0) || has_aggregate(&it.1))
        }
        Expr::Comprehension(_, list, condition, value) => {
            let rest = [condition, value].into_iter().flatten();
            has_aggregate(list) || rest.into_iter().any(|it| has_aggregate(it))
        }
    }
}

/// The value of an expression in a row; aggregates are those of the group.
fn value(expr: &Expr, row: &Row, group: Option<&[Row]>) -> Result<Value, Fault> {
    let of = |it: &Expr| value(it, row, group);
    Ok(match expr {
        Expr::Literal(it) => it.clone(),
        Expr::Variable(name) => row.get(name).cloned().unwrap_or_default(),
        Expr::Property(it, name) => of(it)?.get(name).cloned().unwrap_or_default(),
        Expr::Index(it, index) => indexed(&of(it)?, &of(index)?),
        Expr::Slice(it, from, to) => {
            let from = from.as_ref().map(|it| of(it)).transpose()?;
            let to = to.as_ref().map(|it| of(it)).transpose()?;
            sliced(&of(it)?, from.as_ref(), to.as_ref())
        }
        Expr::List(all) => all.iter().map(of).collect::<Result<Vec<_>, _>>()?.into(),
        Expr::Map(all) => {
            let pairs = all.iter().map(|(name, it)| Ok((name.clone(), of(it)?)));
            Value::Object(pairs.collect::<Result<_, Fault>>()?)
        }
        Expr::Unary("NOT", it) => truth(&of(it)?).map(|it| !it).into(),
        Expr::Unary(_, it) => match of(it)? {
            Value::Number(it) => match it.as_i64().and_then(i64::checked_neg) {
                Some(it) => it.into(),
                None => it.as_f64().map(|it| -it).into(),
            },
            _ => Value::Null,
        },
        Expr::Binary(operator, a, b) => binary(operator, &of(a)?, &of(b)?)?,
        Expr::IsNull(it) => of(it)?.is_null().into(),
        Expr::Case(subject, branches, otherwise) => {
            let subject = subject.as_ref().map(|it| of(it)).transpose()?;
            for (when, then) in branches {
                let when = of(when)?;
                let is_it = match &subject {
                    Some(subject) => equal(subject, &when) == Some(true),
                    None => when == Value::Bool(true),
                };
                if is_it {
                    return of(then);
                }
            }
            otherwise
                .as_ref()
                .map(|it| of(it))
                .transpose()?
                .unwrap_or_default()
        }
        Expr::Comprehension(name, list, condition, item) => {
            let Value::Array(list) = of(list)? else {
                return Ok(Value::Null);
            };
            let mut all = Vec::new();
            for it in list {
                let mut row = row.clone();
                row.insert(name.clone(), it.clone());
                let condition = condition.as_ref().map(|it| value(it, &row, group));
                if condition
                    .transpose()?
                    .is_none_or(|it| it == Value::Bool(true))
                {
                    let made = item.as_ref().map(|it| value(it, &row, group));
                    all.push(made.transpose()?.unwrap_or(it));
                }
            }
            all.into()
        }
        // Of nothing nothing is known.
        Expr::InGraph => Value::Null,
        Expr::Call(name, at, is_distinct, arguments) => {
            if AGGREGATES.contains(&name.as_str()) {
                let argument = arguments.as_ref().map(|it| it.first());
                return aggregate(name, at, *is_distinct, argument, group.unwrap_or_default());
            }
            let arguments = arguments.iter().flatten().map(of);
            called(name, at, &arguments.collect::<Result<Vec<_>, _>>()?)?
        }
    })
}

fn aggregate(
    name: &str,
    at: &str,
    is_distinct: bool,
    argument: Option<Option<&Expr>>,
    group: &[Row],
) -> Result<Value, Fault> {
    let argument = match argument {
        None => return Ok(group.len().into()),
        Some(Some(it)) => it,
        Some(None) => return Err(Fault(format!("`{name}` needs an argument {at}"))),
    };
    let mut all: Vec<Value> = Vec::new();
    for row in group {
        let it = value(argument, row, None)?;
        let is_known = is_distinct && all.contains(&it);
        if !it.is_null() && !is_known {
            all.push(it);
        }
    }
    let best = |wanted: Ordering| {
        let mut best: Option<Value> = None;
        for it in &all {
            if best
                .as_ref()
                .is_none_or(|best| compared(it, best) == Some(wanted))
            {
                best = Some(it.clone());
            }
        }
        best.unwrap_or_default()
    };
    Ok(match name {
        "count" => all.len().into(),
        "collect" => all.into(),
        "min" => best(Ordering::Less),
        "max" => best(Ordering::Greater),
        _ => {
            let mut sum = Value::from(0);
            for it in &all {
                sum = binary("+", &sum, it)?;
            }
            match (name, all.len()) {
                ("sum", _) => sum,
                (_, 0) => Value::Null,
                (_, n) => sum.as_f64().map(|it| it / n as f64).into(),
            }
        }
    })
}

fn called(name: &str, at: &str, arguments: &[Value]) -> Result<Value, Fault> {
    let first = arguments.first().unwrap_or(&Value::Null);
    let text = |change: fn(&str) -> String| first.as_str().map(change).into();
    Ok(match name {
        // Of what is in a graph: there is nothing in it.
        "labels" | "type" | "id" | "elementid" | "properties" | "startnode" | "endnode"
        | "nodes" | "relationships" | "length"
            if first.is_null() =>
        {
            Value::Null
        }
        "coalesce" => arguments
            .iter()
            .find(|it| !it.is_null())
            .cloned()
            .unwrap_or_default(),
        "size" => match first {
            Value::Array(it) => it.len().into(),
            Value::String(it) => it.chars().count().into(),
            _ => Value::Null,
        },
        "head" => first.get(0).cloned().unwrap_or_default(),
        "last" => first
            .as_array()
            .and_then(|it| it.last())
            .cloned()
            .unwrap_or_default(),
        "keys" => first
            .as_object()
            .map(|it| it.keys().cloned().collect::<Vec<_>>())
            .into(),
        "tolower" => text(str::to_lowercase),
        "toupper" => text(str::to_uppercase),
        "trim" => text(|it| it.trim().to_owned()),
        "tostring" => match first {
            Value::Null => Value::Null,
            Value::String(it) => it.as_str().into(),
            other => other.to_string().into(),
        },
        "tointeger" => match first {
            Value::String(it) => it.trim().parse::<i64>().ok().into(),
            other => other.as_i64().into(),
        },
        "tofloat" => match first {
            Value::String(it) => it.trim().parse::<f64>().ok().into(),
            other => other.as_f64().into(),
        },
        "abs" => match first.as_i64().and_then(i64::checked_abs) {
            Some(it) => it.into(),
            None => first.as_f64().map(f64::abs).into(),
        },
        _ => return Err(Fault(format!("the function `{name}` is not known {at}"))),
    })
}

fn indexed(value: &Value, index: &Value) -> Value {
    match (value, index) {
        (Value::Array(all), Value::Number(_)) => {
            let at = index.as_i64().and_then(|it| position(it, all.len()));
            at.and_then(|it| all.get(it)).cloned().unwrap_or_default()
        }
        (Value::Object(all), Value::String(name)) => all.get(name).cloned().unwrap_or_default(),
        _ => Value::Null,
    }
}

/// From the end if it is negative.
fn position(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let at = if index < 0 {
        length.checked_add(index)?
    } else {
        index
    };
    usize::try_from(at).ok()
}

fn sliced(value: &Value, from: Option<&Value>, to: Option<&Value>) -> Value {
    let Value::Array(all) = value else {
        return Value::Null;
    };
    let at = |index: Option<&Value>, otherwise: usize| match index {
        None => otherwise,
        Some(it) => it
            .as_i64()
            .and_then(|it| position(it, all.len()))
            .unwrap_or(0)
            .min(all.len()),
    };
    let (from, to) = (at(from, 0), at(to, all.len()));
    all.get(from..to).unwrap_or_default().to_vec().into()
}

fn truth(value: &Value) -> Option<bool> {
    value.as_bool()
}

fn binary(operator: &str, a: &Value, b: &Value) -> Result<Value, Fault> {
    let texts = a.as_str().zip(b.as_str());
    Ok(match operator {
        "AND" => match (truth(a), truth(b)) {
            (Some(false), _) | (_, Some(false)) => false.into(),
            (a, b) => a.zip(b).map(|(a, b)| a && b).into(),
        },
        "OR" => match (truth(a), truth(b)) {
            (Some(true), _) | (_, Some(true)) => true.into(),
            (a, b) => a.zip(b).map(|(a, b)| a || b).into(),
        },
        "XOR" => truth(a).zip(truth(b)).map(|(a, b)| a != b).into(),
        "=" => equal(a, b).into(),
        "<>" => equal(a, b).map(|it| !it).into(),
        "<" => compared(a, b).map(Ordering::is_lt).into(),
        ">" => compared(a, b).map(Ordering::is_gt).into(),
        "<=" => compared(a, b).map(Ordering::is_le).into(),
        ">=" => compared(a, b).map(Ordering::is_ge).into(),
        "STARTS WITH" => texts.map(|(a, b)| a.starts_with(b)).into(),
        "ENDS WITH" => texts.map(|(a, b)| a.ends_with(b)).into(),
        "CONTAINS" => texts.map(|(a, b)| a.contains(b)).into(),
        "IN" => match (a, b) {
            (Value::Null, _) => Value::Null,
            (a, Value::Array(all)) if all.iter().any(|it| equal(a, it) == Some(true)) => {
                true.into()
            }
            (_, Value::Array(all)) if all.contains(&Value::Null) => Value::Null,
            (_, Value::Array(_)) => false.into(),
            _ => Value::Null,
        },
        "=~" => return Err(Fault("`=~` is not understood; use `CONTAINS`".to_owned())),
        "+" => match (a, b) {
            (Value::Array(a), Value::Array(b)) if a.len() + b.len() <= ROWS_MAX => {
                a.iter().chain(b).cloned().collect::<Vec<_>>().into()
            }
            (Value::String(a), Value::String(b)) => format!("{a}{b}").into(),
            (Value::String(a), Value::Number(b)) => format!("{a}{b}").into(),
            (Value::Number(a), Value::String(b)) => format!("{a}{b}").into(),
            _ => number(operator, a, b)?,
        },
        _ => number(operator, a, b)?,
    })
}

fn number(operator: &str, a: &Value, b: &Value) -> Result<Value, Fault> {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        if matches!(operator, "/" | "%") && b == 0 {
            return Err(Fault("a number is divided by zero".to_owned()));
        }
        let whole = match operator {
            "+" => a.checked_add(b),
            "-" => a.checked_sub(b),
            "*" => a.checked_mul(b),
            "/" => a.checked_div(b),
            "%" => a.checked_rem(b),
            _ => return Ok(Value::from((a as f64).powf(b as f64))),
        };
        return match whole {
            Some(it) => Ok(it.into()),
            None => Err(Fault("a number is too large".to_owned())),
        };
    }
    let Some((a, b)) = a.as_f64().zip(b.as_f64()) else {
        return Ok(Value::Null);
    };
    Ok(Value::from(match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "%" => a % b,
        _ => a.powf(b),
    }))
}

fn equal(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (Value::Null, _) | (_, Value::Null) => None,
        (Value::Number(_), Value::Number(_)) => compared(a, b).map(Ordering::is_eq),
        _ => Some(a == b),
    }
}

fn compared(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        _ => None,
    }
}
