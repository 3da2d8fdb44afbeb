//! Aggregates: values of many rows become one.

use crate::context::{Context, Held};
use crate::error::{Class, Error, Result};
use crate::temporal::Duration;
use crate::types::Ty;
use crate::value::{Fast, Key, Value};
use std::cmp::Ordering;
use std::collections::HashSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregate {
    Count,
    Collect,
    Sum,
    Avg,
    Min,
    Max,
    PercentileCont,
    PercentileDisc,
    StDev,
    StDevP,
}

const NAMES: &[(&str, Aggregate)] = &[
    ("count", Aggregate::Count),
    ("collect", Aggregate::Collect),
    ("sum", Aggregate::Sum),
    ("avg", Aggregate::Avg),
    ("min", Aggregate::Min),
    ("max", Aggregate::Max),
    ("percentilecont", Aggregate::PercentileCont),
    ("percentiledisc", Aggregate::PercentileDisc),
    ("stdev", Aggregate::StDev),
    ("stdevp", Aggregate::StDevP),
];

impl Aggregate {
    /// The aggregate of a name in lower case.
    pub(crate) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|it| it.0 == name).map(|it| it.1)
    }

    pub(crate) fn name(self) -> &'static str {
        NAMES.iter().find(|it| it.1 == self).map_or("", |it| it.0)
    }

    pub(crate) fn n_arguments(self) -> usize {
        match self {
            Self::PercentileCont | Self::PercentileDisc => 2,
            _ => 1,
        }
    }

    pub(crate) fn returns(self, argument: Option<&Ty>) -> Ty {
        match self {
            Self::Count => Ty::Int,
            Self::Collect => Ty::List(Box::new(argument.cloned().unwrap_or(Ty::Any))),
            Self::StDev | Self::StDevP | Self::PercentileCont => Ty::Any,
            Self::Min | Self::Max => argument.cloned().unwrap_or(Ty::Any),
            Self::Sum | Self::Avg | Self::PercentileDisc => Ty::Any,
        }
    }
}

/// The state of one group. There may be many groups, so it is small: what few aggregates need is apart.
pub(crate) struct State {
    function: Aggregate,
    n: i64,
    sum: Sum,
    best: Value,
    more: Option<Box<More>>,
}

/// What only some aggregates need.
#[derive(Default)]
struct More {
    seen: Option<HashSet<Key, Fast>>,
    items: Vec<Value>,
    numbers: Vec<f64>,
    /// The requested percentile.
    wanted: Option<f64>,
}

enum Sum {
    Int(i64),
    Float(f64),
    Duration(Box<Duration>),
}

impl State {
    pub(crate) fn new(function: Aggregate, distinct: bool) -> Self {
        let is_small = !distinct
            && matches!(
                function,
                Aggregate::Count
                    | Aggregate::Sum
                    | Aggregate::Avg
                    | Aggregate::Min
                    | Aggregate::Max
            );
        let more = (!is_small).then(|| {
            Box::new(More {
                seen: distinct.then(HashSet::default),
                ..More::default()
            })
        });
        Self {
            function,
            n: 0,
            sum: Sum::Int(0),
            best: Value::Null,
            more,
        }
    }

    /// Takes the value of one row; nulls were left out before.
    pub(crate) fn add(
        &mut self,
        value: Value,
        second: Option<Value>,
        held: &mut Held<'_>,
    ) -> Result<()> {
        if let Some(seen) = self.more.as_mut().and_then(|it| it.seen.as_mut()) {
            let n_bytes = value.n_bytes();
            if !seen.insert(Key(value.clone())) {
                return Ok(());
            }
            held.add(n_bytes * 2)?;
        }
        self.n += 1;
        match self.function {
            Aggregate::Count => {}
            Aggregate::Sum | Aggregate::Avg => self.add_to_sum(&value)?,
            Aggregate::Min => self.keep(value, Ordering::Less),
            Aggregate::Max => self.keep(value, Ordering::Greater),
            Aggregate::Collect
            | Aggregate::PercentileCont
            | Aggregate::PercentileDisc
            | Aggregate::StDev
            | Aggregate::StDevP => self.gather(value, second, held)?,
        }
        Ok(())
    }

    fn gather(&mut self, value: Value, second: Option<Value>, held: &mut Held<'_>) -> Result<()> {
        held.add(value.n_bytes() + 8)?;
        let number = match self.function {
            Aggregate::Collect => None,
            _ => Some(self.number(&value)?),
        };
        let Some(more) = &mut self.more else {
            return Ok(());
        };
        more.numbers.extend(number);
        if !matches!(self.function, Aggregate::StDev | Aggregate::StDevP) {
            more.items.push(value);
        }
        if let (None, Some(second)) = (more.wanted, second) {
            more.wanted = Some(percentile(&second)?);
        }
        Ok(())
    }

    /// Whether only the number of rows counts that have a value.
    pub(crate) fn is_plain_count(&self) -> bool {
        self.function == Aggregate::Count && self.more.is_none()
    }

    pub(crate) fn add_row(&mut self) {
        self.n += 1;
    }

    fn keep(&mut self, value: Value, wanted: Ordering) {
        if self.best.is_null() || value.order(&self.best) == wanted {
            self.best = value;
        }
    }

    fn number(&self, value: &Value) -> Result<f64> {
        match value {
            Value::Int(it) => Ok(*it as f64),
            Value::Float(it) => Ok(*it),
            other => {
                let message = format!(
                    "`{}` expects numbers, found {}",
                    self.function.name(),
                    other.type_name()
                );
                Err(Error::type_error(message))
            }
        }
    }

    fn add_to_sum(&mut self, value: &Value) -> Result<()> {
        self.sum = match (&self.sum, value) {
            (Sum::Int(sum), Value::Int(it)) => match sum.checked_add(*it) {
                Some(sum) => Sum::Int(sum),
                // An average has a fraction anyway.
                None if self.function == Aggregate::Avg => Sum::Float(*sum as f64 + *it as f64),
                None => return Err(Error::overflow("the sum does not fit into 64 bits")),
            },
            (Sum::Int(sum), Value::Float(it)) => Sum::Float(*sum as f64 + it),
            (Sum::Float(sum), Value::Int(it)) => Sum::Float(sum + *it as f64),
            (Sum::Float(sum), Value::Float(it)) => Sum::Float(sum + it),
            (Sum::Int(0), Value::Duration(it)) => Sum::Duration(Box::new(*it)),
            (Sum::Duration(sum), Value::Duration(it)) => Sum::Duration(Box::new(sum.plus(*it)?)),
            (_, other) => {
                let message = format!(
                    "`{}` expects numbers or durations, found {}",
                    self.function.name(),
                    other.type_name()
                );
                return Err(Error::type_error(message));
            }
        };
        Ok(())
    }

    pub(crate) fn finish(self, context: &Context<'_>) -> Result<Value> {
        let n = self.n as f64;
        let mut more = self.more.map(|it| *it).unwrap_or_default();
        Ok(match self.function {
            Aggregate::Count => Value::Int(self.n),
            Aggregate::Collect => context.list(more.items)?,
            Aggregate::Min | Aggregate::Max => self.best,
            Aggregate::Sum => match self.sum {
                Sum::Int(it) => Value::Int(it),
                Sum::Float(it) => Value::Float(it),
                Sum::Duration(it) => Value::Duration(*it),
            },
            Aggregate::Avg if self.n == 0 => Value::Null,
            Aggregate::Avg => match self.sum {
                Sum::Int(it) => Value::Float(it as f64 / n),
                Sum::Float(it) => Value::Float(it / n),
                Sum::Duration(it) => Value::Duration(it.scaled(1.0 / n)?),
            },
            Aggregate::StDev | Aggregate::StDevP => {
                let mean = more.numbers.iter().sum::<f64>() / n;
                let squares: f64 = more.numbers.iter().map(|it| (it - mean).powi(2)).sum();
                let divisor = if self.function == Aggregate::StDev {
                    n - 1.0
                } else {
                    n
                };
                Value::Float(if divisor > 0.0 {
                    (squares / divisor).sqrt()
                } else {
                    0.0
                })
            }
            Aggregate::PercentileDisc => {
                more.items.sort_by(Value::order);
                let wanted = more.wanted.unwrap_or(0.0);
                let place = (wanted * n).ceil().max(1.0) as usize - 1;
                more.items.get(place).cloned().unwrap_or_default()
            }
            Aggregate::PercentileCont => {
                more.numbers.sort_by(f64::total_cmp);
                let wanted = more.wanted.unwrap_or(0.0);
                let place = wanted * (n - 1.0).max(0.0);
                let at = |place: f64| more.numbers.get(place as usize).copied();
                match (at(place.floor()), at(place.ceil())) {
                    (Some(low), Some(high)) => {
                        Value::Float(low + (high - low) * (place - place.floor()))
                    }
                    _ => Value::Null,
                }
            }
        })
    }
}

fn percentile(value: &Value) -> Result<f64> {
    let wanted = match value {
        Value::Int(it) => *it as f64,
        Value::Float(it) => *it,
        other => {
            let message = format!("a percentile is a number, found {}", other.type_name());
            return Err(Error::type_error(message));
        }
    };
    if !(0.0..=1.0).contains(&wanted) {
        let message = format!("the percentile `{wanted}` is not between 0.0 and 1.0");
        return Err(Error::run(Class::Argument, "NumberOutOfRange", message));
    }
    Ok(wanted)
}
