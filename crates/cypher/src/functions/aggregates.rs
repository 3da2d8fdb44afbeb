//! Aggregates: values of many rows become one.

use crate::compile::types::Ty;
use crate::error::{Class, Error, Result};
use crate::run::{Context, Held};
use crate::temporal::Duration;
use crate::value::{Key, Value};
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

/// The state of one group.
pub(crate) struct State {
    function: Aggregate,
    seen: Option<HashSet<Key>>,
    n: i64,
    sum: Sum,
    best: Option<Value>,
    items: Vec<Value>,
    numbers: Vec<f64>,
    /// The requested percentile.
    wanted: Option<f64>,
}

enum Sum {
    Int(i64),
    Float(f64),
    Duration(Duration),
}

impl State {
    pub(crate) fn new(function: Aggregate, distinct: bool) -> Self {
        Self {
            function,
            seen: distinct.then(HashSet::new),
            n: 0,
            sum: Sum::Int(0),
            best: None,
            items: Vec::new(),
            numbers: Vec::new(),
            wanted: None,
        }
    }

    /// Takes the value of one row; nulls were left out before.
    pub(crate) fn add(
        &mut self,
        value: Value,
        second: Option<Value>,
        held: &mut Held<'_>,
    ) -> Result<()> {
        if let Some(seen) = &mut self.seen {
            if !seen.insert(Key(value.clone())) {
                return Ok(());
            }
            held.add(value.n_bytes() * 2)?;
        }
        self.n += 1;
        match self.function {
            Aggregate::Count => {}
            Aggregate::Collect => {
                held.add(value.n_bytes())?;
                self.items.push(value);
            }
            Aggregate::Sum | Aggregate::Avg => self.add_to_sum(&value)?,
            Aggregate::Min => self.keep(value, Ordering::Less),
            Aggregate::Max => self.keep(value, Ordering::Greater),
            Aggregate::PercentileCont | Aggregate::PercentileDisc => {
                held.add(value.n_bytes() + 8)?;
                self.numbers.push(self.number(&value)?);
                self.items.push(value);
                if let (None, Some(second)) = (self.wanted, second) {
                    self.wanted = Some(percentile(&second)?);
                }
            }
            Aggregate::StDev | Aggregate::StDevP => {
                held.add(8)?;
                self.numbers.push(self.number(&value)?);
            }
        }
        Ok(())
    }

    pub(crate) fn add_row(&mut self) {
        self.n += 1;
    }

    fn keep(&mut self, value: Value, wanted: Ordering) {
        let better = self
            .best
            .as_ref()
            .is_none_or(|it| value.order(it) == wanted);
        if better {
            self.best = Some(value);
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
            (Sum::Int(0), Value::Duration(it)) => Sum::Duration(*it),
            (Sum::Duration(sum), Value::Duration(it)) => Sum::Duration(sum.plus(*it)?),
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

    pub(crate) fn finish(mut self, context: &Context<'_>) -> Result<Value> {
        let n = self.n as f64;
        Ok(match self.function {
            Aggregate::Count => Value::Int(self.n),
            Aggregate::Collect => context.list(self.items)?,
            Aggregate::Min | Aggregate::Max => self.best.unwrap_or_default(),
            Aggregate::Sum => match self.sum {
                Sum::Int(it) => Value::Int(it),
                Sum::Float(it) => Value::Float(it),
                Sum::Duration(it) => Value::Duration(it),
            },
            Aggregate::Avg if self.n == 0 => Value::Null,
            Aggregate::Avg => match self.sum {
                Sum::Int(it) => Value::Float(it as f64 / n),
                Sum::Float(it) => Value::Float(it / n),
                Sum::Duration(it) => Value::Duration(it.scaled(1.0 / n)?),
            },
            Aggregate::StDev | Aggregate::StDevP => {
                let mean = self.numbers.iter().sum::<f64>() / n;
                let squares: f64 = self.numbers.iter().map(|it| (it - mean).powi(2)).sum();
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
                self.items.sort_by(Value::order);
                let wanted = self.wanted.unwrap_or(0.0);
                let place = (wanted * n).ceil().max(1.0) as usize - 1;
                self.items.get(place).cloned().unwrap_or_default()
            }
            Aggregate::PercentileCont => {
                self.numbers.sort_by(f64::total_cmp);
                let wanted = self.wanted.unwrap_or(0.0);
                let place = wanted * (n - 1.0).max(0.0);
                let at = |place: f64| self.numbers.get(place as usize).copied();
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
