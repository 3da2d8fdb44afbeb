//! What a query answers when there is nothing in the graph.
//!
//! A short query can ask for much: lists of lists, texts that double. So every value that is made is paid
//! for from a [`Budget`], which also looks at the deadline of the call.

use super::budget::Budget;
use super::parse::{AGGREGATES, Clause, Expr, Link, Projection, Query, Step};
use super::token::place;
use super::{Answer, Fault, Stop};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// Variables and their values.
type Row = Map<String, Value>;

/// What `UNWIND` and lists may grow to.
const ROWS_MAX: usize = 10_000;

pub(super) fn run(text: &str, query: &Query, budget: &Budget<'_>) -> Result<Answer, Stop> {
    let eval = Eval { text, budget };
    let mut rows = vec![Row::new()];
    let mut columns = Vec::new();
    for clause in &query.clauses {
        budget.look()?;
        match clause {
            Clause::Match {
                is_optional: false, ..
            } => rows.clear(),
            Clause::Match { variables, .. } => {
                for row in &mut rows {
                    for name in variables {
                        budget.pay_text(name)?;
                        row.insert(name.clone(), Value::Null);
                    }
                }
            }
            Clause::Unwind(list, name) => rows = eval.unwound(&rows, list, name)?,
            Clause::Project(projection) => {
                rows = eval.projected(&rows, projection)?;
                columns = projection.items.iter().map(|it| it.0.clone()).collect();
            }
        }
    }
    Ok(Answer { columns, rows })
}

/// What every step knows.
struct Eval<'a> {
    /// The query, in which places are shown.
    text: &'a str,
    budget: &'a Budget<'a>,
}

impl Eval<'_> {
    fn unwound(&self, rows: &[Row], list: &Expr, name: &str) -> Result<Vec<Row>, Stop> {
        let mut all = Vec::new();
        for row in rows {
            let items = match self.value(list, row, None)? {
                Value::Array(items) => items,
                Value::Null => Vec::new(),
                other => vec![other],
            };
            for item in items {
                let mut row = self.budget.copy_row(row)?;
                row.insert(name.to_owned(), item);
                all.push(row);
                if all.len() > ROWS_MAX {
                    let why = format!("`UNWIND` makes more than {ROWS_MAX} rows");
                    return Err(Fault(why).into());
                }
            }
        }
        Ok(all)
    }

    fn projected(&self, rows: &[Row], projection: &Projection) -> Result<Vec<Row>, Stop> {
        // Each result with what it was made of, which it may be ordered by.
        let mut made: Vec<(Row, Row)> = Vec::new();
        if projection.items.iter().any(|it| has_aggregate(&it.1)) {
            for group in self.groups(rows, projection)? {
                let first = match group.first() {
                    Some(first) => self.budget.copy_row(first)?,
                    None => Row::new(),
                };
                made.push((self.result(projection, &first, Some(&group))?, first));
            }
        } else {
            for row in rows {
                let result = self.result(projection, row, None)?;
                made.push((result, self.budget.copy_row(row)?));
            }
        }
        if projection.is_distinct {
            let mut seen = HashSet::new();
            let mut is_new = Vec::with_capacity(made.len());
            for (row, _) in &made {
                is_new.push(seen.insert(self.budget.key_of_row(row)?));
            }
            let mut is_new = is_new.into_iter();
            made.retain(|_| is_new.next().unwrap_or(true));
        }
        self.sort(&mut made, projection)?;
        let skip = self.count("SKIP", projection.skip.as_ref())?.unwrap_or(0);
        let limit = self.count("LIMIT", projection.limit.as_ref())?;
        let results = made.into_iter().map(|it| it.0).skip(skip);
        let results = results.take(limit.unwrap_or(usize::MAX));
        let Some(condition) = &projection.condition else {
            return Ok(results.collect());
        };
        let mut kept = Vec::new();
        for row in results {
            if self.value(condition, &row, None)? == Value::Bool(true) {
                kept.push(row);
            }
        }
        Ok(kept)
    }

    /// The columns of one row.
    fn result(
        &self,
        projection: &Projection,
        row: &Row,
        group: Option<&[&Row]>,
    ) -> Result<Row, Stop> {
        let mut result = Row::new();
        for (name, expr) in &projection.items {
            self.budget.pay_text(name)?;
            result.insert(name.clone(), self.value(expr, row, group)?);
        }
        Ok(result)
    }

    /// Rows with equal keys; without keys all rows are one group, even if there are none.
    fn groups<'r>(
        &self,
        rows: &'r [Row],
        projection: &Projection,
    ) -> Result<Vec<Vec<&'r Row>>, Stop> {
        let keys: Vec<&Expr> = projection
            .items
            .iter()
            .map(|it| &it.1)
            .filter(|it| !has_aggregate(it))
            .collect();
        if keys.is_empty() {
            return Ok(vec![rows.iter().collect()]);
        }
        let mut groups: Vec<Vec<&Row>> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for row in rows {
            let mut key = String::new();
            for expr in &keys {
                key += &self.budget.key_of(&self.value(expr, row, None)?)?;
                key.push('\n');
            }
            let at = *known.entry(key).or_insert(groups.len());
            match groups.get_mut(at) {
                Some(group) => group.push(row),
                None => groups.push(vec![row]),
            }
        }
        Ok(groups)
    }

    fn sort(&self, made: &mut Vec<(Row, Row)>, projection: &Projection) -> Result<(), Stop> {
        if made.len() < 2 || projection.order.is_empty() {
            return Ok(());
        }
        let mut keyed = Vec::with_capacity(made.len());
        for (result, row) in made.drain(..) {
            let mut both = self.budget.copy_row(&row)?;
            both.extend(self.budget.copy_row(&result)?);
            let keys = projection.order.iter();
            let keys = keys.map(|it| self.value(&it.0, &both, Some(&[])));
            keyed.push((keys.collect::<Result<Vec<_>, _>>()?, (result, row)));
        }
        keyed.sort_by(|a, b| {
            let pairs = a.0.iter().zip(&b.0).zip(&projection.order);
            let ordered = pairs.map(|((a, b), (_, is_descending))| {
                let ordering = ordered(a, b);
                if *is_descending {
                    ordering.reverse()
                } else {
                    ordering
                }
            });
            ordered.fold(Ordering::Equal, Ordering::then)
        });
        made.extend(keyed.into_iter().map(|it| it.1));
        Ok(())
    }

    fn count(&self, word: &str, expr: Option<&Expr>) -> Result<Option<usize>, Stop> {
        let Some(expr) = expr else {
            return Ok(None);
        };
        let number = self.value(expr, &Row::new(), None)?.as_u64();
        let number = number.and_then(|it| usize::try_from(it).ok());
        let number = number.ok_or_else(|| {
            Fault(format!(
                "`{word}` takes a whole number that is not negative"
            ))
        })?;
        Ok(Some(number))
    }

    /// The value of an expression in a row; aggregates are those of the group.
    fn value(&self, expr: &Expr, row: &Row, group: Option<&[&Row]>) -> Result<Value, Stop> {
        let of = |it: &Expr| self.value(it, row, group);
        let made = match expr {
            Expr::Literal(it) => return self.budget.copy(it),
            Expr::Variable(name) => return self.budget.copy(row.get(name).unwrap_or(&Value::Null)),
            Expr::Part(it, steps) => {
                // What is taken out of a variable is copied, and not the whole variable.
                let (first, rest) = match (&**it, &steps[..]) {
                    (Expr::Variable(name), [Step::Property(property), rest @ ..]) => {
                        let part = row.get(name).and_then(|it| it.get(property));
                        (self.budget.copy(part.unwrap_or(&Value::Null))?, rest)
                    }
                    (other, steps) => (of(other)?, steps),
                };
                return self.part(first, rest, row, group);
            }
            Expr::List(all) => all.iter().map(of).collect::<Result<Vec<_>, _>>()?.into(),
            Expr::Map(all) => {
                let pairs = all.iter().map(|(name, it)| Ok((name.clone(), of(it)?)));
                Value::Object(pairs.collect::<Result<_, Stop>>()?)
            }
            Expr::Not(it, is_twice) => {
                let truth = truth(&of(it)?);
                truth.map(|it| it == *is_twice).into()
            }
            Expr::Negative(it) => match of(it)? {
                Value::Number(it) => match it.as_i64().and_then(i64::checked_neg) {
                    Some(it) => it.into(),
                    None => it.as_f64().map(|it| -it).into(),
                },
                _ => Value::Null,
            },
            Expr::Chain(first, links) => {
                let mut value = of(first)?;
                for link in links {
                    value = match link {
                        Link::Binary(operator, right) => {
                            let made = self.binary(operator, &value, &of(right)?)?;
                            self.budget.pay(&made)?;
                            made
                        }
                        Link::IsNull(wanted) => (value.is_null() == *wanted).into(),
                    };
                }
                return Ok(value);
            }
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
                let otherwise = otherwise.as_ref().map(|it| of(it)).transpose()?;
                return Ok(otherwise.unwrap_or_default());
            }
            Expr::Comprehension(name, list, condition, item) => {
                let Value::Array(list) = of(list)? else {
                    return Ok(Value::Null);
                };
                let mut row = self.budget.copy_row(row)?;
                let mut all = Vec::new();
                for it in list {
                    row.insert(name.clone(), it);
                    let condition = condition.as_ref().map(|it| self.value(it, &row, group));
                    if condition
                        .transpose()?
                        .is_none_or(|it| it == Value::Bool(true))
                    {
                        let made = item.as_ref().map(|it| self.value(it, &row, group));
                        let same = || row.get(name).cloned().unwrap_or_default();
                        all.push(made.transpose()?.unwrap_or_else(same));
                    }
                }
                all.into()
            }
            // Of nothing nothing is known.
            Expr::InGraph => Value::Null,
            Expr::Call(name, at, is_distinct, arguments) => {
                if AGGREGATES.contains(&name.as_str()) {
                    let argument = arguments.as_ref().map(|it| it.first());
                    let group = group.unwrap_or_default();
                    self.aggregate(name, *at, *is_distinct, argument, group)?
                } else {
                    let arguments = arguments.iter().flatten().map(of);
                    self.called(name, *at, &arguments.collect::<Result<Vec<_>, _>>()?)?
                }
            }
        };
        self.budget.pay(&made)?;
        Ok(made)
    }

    fn part(
        &self,
        mut value: Value,
        steps: &[Step],
        row: &Row,
        group: Option<&[&Row]>,
    ) -> Result<Value, Stop> {
        let of = |it: &Expr| self.value(it, row, group);
        for step in steps {
            self.budget.look()?;
            value = match step {
                Step::Property(name) => match value {
                    Value::Object(mut all) => all.swap_remove(name).unwrap_or_default(),
                    _ => Value::Null,
                },
                Step::Index(index) => indexed(value, &of(index)?),
                Step::Slice(from, to) => {
                    let from = from.as_ref().map(of).transpose()?;
                    let to = to.as_ref().map(of).transpose()?;
                    sliced(value, from.as_ref(), to.as_ref())
                }
            };
        }
        Ok(value)
    }

    fn aggregate(
        &self,
        name: &str,
        at: usize,
        is_distinct: bool,
        argument: Option<Option<&Expr>>,
        group: &[&Row],
    ) -> Result<Value, Stop> {
        let argument = match argument {
            None => return Ok(group.len().into()),
            Some(Some(it)) => it,
            Some(None) => {
                let at = place(self.text, at);
                return Err(Fault(format!("`{name}` needs an argument {at}")).into());
            }
        };
        let mut all: Vec<Value> = Vec::new();
        let mut known = HashSet::new();
        for row in group {
            let it = self.value(argument, row, None)?;
            let is_new = !is_distinct || known.insert(self.budget.key_of(&it)?);
            if !it.is_null() && is_new {
                all.push(it);
            }
        }
        let best = |wanted: Ordering| {
            let better = |best: Value, it: &Value| {
                if compared(it, &best) == Some(wanted) {
                    it.clone()
                } else {
                    best
                }
            };
            let first = all.first().cloned().unwrap_or_default();
            all.iter().fold(first, better)
        };
        Ok(match name {
            "count" => all.len().into(),
            "collect" => all.into(),
            "min" => best(Ordering::Less),
            "max" => best(Ordering::Greater),
            _ => {
                let mut sum = Value::from(0);
                for it in &all {
                    sum = self.binary("+", &sum, it)?;
                    self.budget.pay(&sum)?;
                }
                match (name, all.len()) {
                    ("sum", _) => sum,
                    (_, 0) => Value::Null,
                    (_, n) => sum.as_f64().map(|it| it / n as f64).into(),
                }
            }
        })
    }
}

fn has_aggregate(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(_) | Expr::Variable(_) | Expr::InGraph => false,
        Expr::Negative(it) | Expr::Not(it, _) => has_aggregate(it),
        Expr::Part(it, steps) => {
            let within = |step: &Step| match step {
                Step::Property(_) => false,
                Step::Index(it) => has_aggregate(it),
                Step::Slice(from, to) => [from, to].into_iter().flatten().any(has_aggregate),
            };
            has_aggregate(it) || steps.iter().any(within)
        }
        Expr::Chain(first, links) => {
            let within = |link: &Link| matches!(link, Link::Binary(_, it) if has_aggregate(it));
            has_aggregate(first) || links.iter().any(within)
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

impl Eval<'_> {
    fn called(&self, name: &str, at: usize, arguments: &[Value]) -> Result<Value, Stop> {
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
            _ => {
                let at = place(self.text, at);
                return Err(Fault(format!("the function `{name}` is not known {at}")).into());
            }
        })
    }
}

fn indexed(value: Value, index: &Value) -> Value {
    match (value, index) {
        (Value::Array(mut all), Value::Number(_)) => {
            let at = index.as_i64().and_then(|it| position(it, all.len()));
            match at.filter(|it| *it < all.len()) {
                Some(at) => all.swap_remove(at),
                None => Value::Null,
            }
        }
        (Value::Object(mut all), Value::String(name)) => all.swap_remove(name).unwrap_or_default(),
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

fn sliced(value: Value, from: Option<&Value>, to: Option<&Value>) -> Value {
    let Value::Array(mut all) = value else {
        return Value::Null;
    };
    let length = all.len();
    let at = |index: Option<&Value>, otherwise: usize| match index {
        None => otherwise,
        Some(it) => it
            .as_i64()
            .and_then(|it| position(it, length))
            .unwrap_or(0)
            .min(length),
    };
    let (from, to) = (at(from, 0), at(to, length));
    if from >= to {
        return Value::Array(Vec::new());
    }
    all.truncate(to);
    all.drain(..from);
    all.into()
}

fn truth(value: &Value) -> Option<bool> {
    value.as_bool()
}

impl Eval<'_> {
    fn binary(&self, operator: &str, a: &Value, b: &Value) -> Result<Value, Stop> {
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
                // Among nothing is nobody, known or not.
                (_, Value::Array(all)) if all.is_empty() => false.into(),
                (Value::Null, _) => Value::Null,
                (a, Value::Array(all)) if all.iter().any(|it| equal(a, it) == Some(true)) => {
                    true.into()
                }
                (_, Value::Array(all)) if all.contains(&Value::Null) => Value::Null,
                (_, Value::Array(_)) => false.into(),
                _ => Value::Null,
            },
            "=~" => {
                return Err(Fault("`=~` is not understood; use `CONTAINS`".to_owned()).into());
            }
            "+" => match (a, b) {
                (Value::Array(a), Value::Array(b)) => {
                    if a.len() + b.len() > ROWS_MAX {
                        let why = format!("a list has more than {ROWS_MAX} items");
                        return Err(Fault(why).into());
                    }
                    let mut all = Vec::with_capacity(a.len() + b.len());
                    for it in a.iter().chain(b) {
                        all.push(self.budget.copy(it)?);
                    }
                    all.into()
                }
                (Value::String(a), Value::String(b)) => {
                    // Before it is made: each step may be twice as long as the one before.
                    self.budget.afford(a.len() + b.len())?;
                    format!("{a}{b}").into()
                }
                (Value::String(a), Value::Number(b)) => format!("{a}{b}").into(),
                (Value::Number(a), Value::String(b)) => format!("{a}{b}").into(),
                _ => number(operator, a, b)?,
            },
            _ => number(operator, a, b)?,
        })
    }
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

/// The order of `ORDER BY`, in which all values have a place: kinds after one another, null last.
fn ordered(a: &Value, b: &Value) -> Ordering {
    let rank = |it: &Value| match it {
        Value::Object(_) => 0,
        Value::Array(_) => 1,
        Value::String(_) => 2,
        Value::Bool(_) => 3,
        Value::Number(_) => 4,
        Value::Null => 5,
    };
    // Whole numbers that are the same as floating ones differ by their last digits.
    let exact = |it: &Value| {
        let number = it.as_f64().unwrap_or_default();
        (number, it.as_i64().unwrap_or(number as i64))
    };
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => {
            let (a, b) = (exact(a), exact(b));
            a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
        }
        _ => compared(a, b).unwrap_or_else(|| rank(a).cmp(&rank(b))),
    }
}
