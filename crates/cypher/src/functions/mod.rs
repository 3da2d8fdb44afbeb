//! The functions of the language, one table.

mod aggregates;
mod lists;
mod maths;
mod scalars;
mod strings;
mod times;

pub(crate) use aggregates::{Aggregate, State};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::types::Ty;
use crate::value::Value;
use std::fmt;

type Run = fn(&Context<'_>, &[Value]) -> Result<Value>;

/// The types of an argument, as far as they are known before the query runs.
#[derive(Clone, Copy)]
enum Take {
    Any,
    Node,
    Rel,
    Path,
    /// A list or a text.
    Sized,
    List,
    /// A node, a relationship or a map.
    Entries,
}

#[derive(Clone, Copy)]
enum Give {
    Any,
    Bool,
    Int,
    Float,
    Str,
    Strings,
    Nodes,
    Rels,
    Integers,
    Node,
    Map,
    Temporal,
    Duration,
    /// What the first argument is.
    First,
    /// What is in the list that the first argument is.
    Item,
}

struct Entry {
    name: &'static str,
    least: usize,
    most: usize,
    /// Null if any argument is null.
    strict: bool,
    takes: Take,
    gives: Give,
    run: Run,
}

/// A function.
#[derive(Clone, Copy)]
pub(crate) struct Function(&'static Entry);

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0.name)
    }
}

const fn strict(name: &'static str, n: usize, takes: Take, gives: Give, run: Run) -> Entry {
    Entry {
        name,
        least: n,
        most: n,
        strict: true,
        takes,
        gives,
        run,
    }
}

const fn between(name: &'static str, least: usize, most: usize, gives: Give, run: Run) -> Entry {
    Entry {
        name,
        least,
        most,
        strict: true,
        takes: Take::Any,
        gives,
        run,
    }
}

const fn lenient(name: &'static str, least: usize, most: usize, gives: Give, run: Run) -> Entry {
    Entry {
        name,
        least,
        most,
        strict: false,
        takes: Take::Any,
        gives,
        run,
    }
}

const TABLES: &[&[Entry]] = &[
    scalars::TABLE,
    lists::TABLE,
    maths::TABLE,
    strings::TABLE,
    times::TABLE,
];

/// The function of a name in lower case.
pub(crate) fn find(name: &str) -> Option<Function> {
    let mut entries = TABLES.iter().flat_map(|it| it.iter());
    entries.find(|it| it.name == name).map(Function)
}

/// `id`, which the planner knows.
pub(crate) fn id() -> Function {
    Function(&scalars::TABLE[0])
}

impl Function {
    pub(crate) fn name(self) -> &'static str {
        self.0.name
    }

    pub(crate) fn takes(self, n: usize) -> bool {
        (self.0.least..=self.0.most).contains(&n)
    }

    /// How many arguments it takes, in words.
    pub(crate) fn n_arguments(self) -> String {
        let (least, most) = (self.0.least, self.0.most);
        if most == usize::MAX {
            return format!("{least} or more arguments");
        }
        if least == most {
            let s = if least == 1 { "" } else { "s" };
            return format!("{least} argument{s}");
        }
        format!("{least} to {most} arguments")
    }

    /// Whether an argument of this type is possible.
    pub(crate) fn accepts(self, idx: usize, ty: &Ty) -> bool {
        if ty.is_unknown() || idx > 0 {
            return true;
        }
        match self.0.takes {
            Take::Any => true,
            Take::Node => *ty == Ty::Node,
            Take::Rel => *ty == Ty::Rel,
            Take::Path => *ty == Ty::Path,
            Take::Sized => matches!(ty, Ty::List(_) | Ty::Str),
            Take::List => matches!(ty, Ty::List(_)),
            Take::Entries => matches!(ty, Ty::Node | Ty::Rel | Ty::Map),
        }
    }

    pub(crate) fn returns(self, arguments: &[Ty]) -> Ty {
        let list = |it: Ty| Ty::List(Box::new(it));
        match self.0.gives {
            Give::Any => Ty::Any,
            Give::Bool => Ty::Bool,
            Give::Int => Ty::Int,
            Give::Float => Ty::Float,
            Give::Str => Ty::Str,
            Give::Strings => list(Ty::Str),
            Give::Nodes => list(Ty::Node),
            Give::Rels => list(Ty::Rel),
            Give::Integers => list(Ty::Int),
            Give::Node => Ty::Node,
            Give::Map => Ty::Map,
            Give::Temporal => Ty::Temporal,
            Give::Duration => Ty::Duration,
            Give::First => arguments.first().cloned().unwrap_or(Ty::Any),
            Give::Item => arguments.first().map_or(Ty::Any, Ty::item),
        }
    }

    pub(crate) fn call(self, context: &Context<'_>, arguments: &[Value]) -> Result<Value> {
        if self.0.strict && arguments.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        // Whatever is done with a text reads all of it.
        let texts = arguments.iter().filter(|it| matches!(it, Value::Str(_)));
        for text in texts {
            context.steps_to_read(text)?;
        }
        (self.0.run)(context, arguments)
    }
}

/// The error for an argument of a wrong type.
fn wrong(function: &str, expected: &str, found: &Value) -> Error {
    let message = format!(
        "`{function}` expects {expected}, found {}",
        found.type_name()
    );
    Error::value_error(message)
}

/// The argument of a number, null if it was left out.
fn arg(arguments: &[Value], idx: usize) -> &Value {
    static NULL: Value = Value::Null;
    arguments.get(idx).unwrap_or(&NULL)
}

fn text<'a>(function: &str, arguments: &'a [Value], idx: usize) -> Result<&'a std::sync::Arc<str>> {
    match arg(arguments, idx) {
        Value::Str(it) => Ok(it),
        other => Err(wrong(function, "a String", other)),
    }
}

fn int(function: &str, arguments: &[Value], idx: usize) -> Result<i64> {
    match arg(arguments, idx) {
        Value::Int(it) => Ok(*it),
        other => Err(wrong(function, "an Integer", other)),
    }
}

fn number(function: &str, arguments: &[Value], idx: usize) -> Result<f64> {
    match arg(arguments, idx) {
        Value::Int(it) => Ok(*it as f64),
        Value::Float(it) => Ok(*it),
        other => Err(wrong(function, "a number", other)),
    }
}
