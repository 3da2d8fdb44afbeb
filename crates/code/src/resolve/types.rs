//! Types, and what expressions are.

use super::Sym;
use super::modules::Module;

/// A type that was found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ty {
    pub(super) of: Of,
    pub(super) args: Vec<Ty>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Of {
    /// A type of the repository.
    Symbol(Sym),
    /// Another, by its name.
    External(String),
    /// One of several.
    Union,
    /// Several values.
    Tuple,
    /// The type itself, not a value of it.
    Class,
    /// A function, by what it gives.
    Function,
}

impl Ty {
    pub(super) fn symbol(sym: Sym) -> Self {
        Self {
            of: Of::Symbol(sym),
            args: Vec::new(),
        }
    }

    pub(super) fn external(name: impl Into<String>) -> Self {
        Self {
            of: Of::External(name.into()),
            args: Vec::new(),
        }
    }
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Thing {
    /// A symbol itself: a function, a type, a constant.
    Symbol(Sym),
    /// A value of a type.
    Value(Ty),
    /// A module.
    Module(Module),
    /// Something outside of the repository, by its name.
    External(String),
}

/// How it was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    Scope,
    Import,
    Receiver,
    Type,
    /// A type that follows from a value.
    Inferred,
}

/// A thing, how it was found out, and how much of the whole it is.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) thing: Thing,
    pub(super) way: Way,
    pub(super) share: f32,
    /// The type arguments of what a member was found in.
    pub(super) of: Option<Ty>,
}

impl Found {
    pub(super) fn new(thing: Thing, way: Way) -> Self {
        Self {
            thing,
            way,
            share: 1.0,
            of: None,
        }
    }
}

/// Where a name is looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) file: u32,
    pub(super) scope: Option<u32>,
    pub(super) line: u32,
    /// Whether it begins a path, or a type: no variable is meant.
    pub(super) is_path: bool,
}

/// Values of values are followed so far.
pub(super) const DEPTH_MAX: u8 = 16;

/// A type that nothing is known of.
pub(super) fn nothing() -> Ty {
    Ty {
        of: Of::Union,
        args: Vec::new(),
    }
}

/// Whether it stands for no value.
pub(super) fn is_nothing(thing: &Thing) -> bool {
    match thing {
        Thing::Value(Ty {
            of: Of::External(name),
            ..
        }) => {
            matches!(name.as_str(), "None" | "null" | "undefined")
        }
        _ => false,
    }
}
