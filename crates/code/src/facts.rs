//! What one file says: its symbols, and what they refer to, as written.
//!
//! Facts follow from one text alone, so they can be kept under the hash of the text. What a name means
//! depends on other files; [`crate::resolve`] decides that.

use kenning_grammars::Language;
use serde::{Deserialize, Serialize};

/// What a symbol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SymbolKind {
    /// A function that belongs to no type.
    Function,
    /// A function of a type.
    Method,
    /// A class, or a table or view of SQL.
    Class,
    /// A struct, a union or a record.
    Struct,
    /// An enumeration.
    Enum,
    /// A trait.
    Trait,
    /// An interface or a protocol.
    Interface,
    /// A module, a namespace or a package in a file.
    Module,
    /// A constant, or a variable of a module.
    Constant,
    /// Another name of a type.
    TypeAlias,
    /// A macro.
    Macro,
}

impl SymbolKind {
    /// The label of its nodes.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Function => "Function",
            Self::Method => "Method",
            Self::Class => "Class",
            Self::Struct => "Struct",
            Self::Enum => "Enum",
            Self::Trait => "Trait",
            Self::Interface => "Interface",
            Self::Module => "Module",
            Self::Constant => "Constant",
            Self::TypeAlias => "TypeAlias",
            Self::Macro => "Macro",
        }
    }

    /// Whether it can be called by its name and runs code of its own.
    pub const fn is_function(self) -> bool {
        matches!(self, Self::Function | Self::Method | Self::Macro)
    }

    /// Whether values can have it as their type.
    pub const fn is_type(self) -> bool {
        matches!(
            self,
            Self::Class
                | Self::Struct
                | Self::Enum
                | Self::Trait
                | Self::Interface
                | Self::TypeAlias
        )
    }
}

/// Who may use a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Visibility {
    /// All code.
    #[default]
    Public,
    /// Its package, crate or subclasses.
    Internal,
    /// Its file or type.
    Private,
}

impl Visibility {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Private => "private",
        }
    }
}

/// A type as written, without what does not change its members: references, pointers, `const`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Type {
    /// Its name, parts joined by `.`; `()` for several values, `|` for one of several types.
    pub name: String,
    /// What is written in its brackets.
    pub args: Vec<Type>,
}

impl Type {
    /// A type without arguments.
    pub fn plain(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            args: Vec::new(),
        }
    }
}

/// A parameter of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type, if one is written.
    pub ty: Option<Type>,
    /// Whether a call may leave it out, or give more than one value for it.
    pub is_optional: bool,
}

/// An expression, as far as it tells what is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Expr {
    /// A name.
    Name(String),
    /// The first part of a path, which no variable hides: `a` of `a::b`.
    Path(String),
    /// A member of something.
    Member(Box<Expr>, String),
    /// What a call gives.
    Call(Box<Expr>),
    /// A new value of a type.
    New(Type),
    /// A value of a type that is written, as in a cast.
    Typed(Type),
    /// The object that a method is called on.
    This,
    /// The same, as what the type inherits.
    Super,
    /// An element of a collection.
    Element(Box<Expr>),
    /// One of several values.
    Pick(Box<Expr>, u32),
    /// A value that is waited for.
    Await(Box<Expr>),
    /// A function without a name, by what it gives.
    Lambda(Option<Box<Expr>>),
    /// A value whose names are those of a function of this file.
    In(u32, Box<Expr>),
    /// A literal of a built-in type.
    Literal(String),
    /// Anything else.
    Unknown,
}

/// How a type inherits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Inherits {
    /// Its code.
    Extends,
    /// An interface only.
    Implements,
}

/// Something with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbol {
    /// Its own name.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// The symbol that it stands in.
    pub parent: Option<u32>,
    /// The type that it belongs to, where it does not stand in that type: `impl T`, `func (t T)`, `T::f`.
    pub owner: Option<Type>,
    /// Its first line, from 1: the line of its name.
    pub line: u32,
    /// Its last line.
    pub line_end: u32,
    /// Its head, on one line.
    pub signature: String,
    /// What it takes.
    pub params: Vec<Param>,
    /// What it gives.
    pub returns: Option<Type>,
    /// What it inherits, and what its type parameters must be.
    pub bases: Vec<(Inherits, Type)>,
    /// Its type parameters with their bounds.
    pub generics: Vec<Param>,
    /// What is written of it for people.
    pub doc: String,
    /// Who may use it.
    pub visibility: Visibility,
    /// Whether it is a test.
    pub is_test: bool,
    /// Whether it is called on the type and not on a value.
    pub is_static: bool,
    /// Whether a read of it is a call: a property with code.
    pub is_property: bool,
}

/// A name that an import brings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The module, as written.
    pub module: String,
    /// The name in it; none for the module itself, `*` for all.
    pub name: Option<String>,
    /// What it is called here; empty if nothing is.
    pub alias: String,
    /// The line that it stands on, from 1.
    pub line: u32,
    /// The module or function that it holds in.
    pub scope: Option<u32>,
    /// Whether others can have it from here.
    pub is_exported: bool,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The innermost symbol that it stands in; none for code of the file itself.
    pub scope: Option<u32>,
    /// The line that it stands on, from 1.
    pub line: u32,
    /// What is called.
    pub callee: Expr,
    /// How many values it is given; none if that cannot be told.
    pub n_args: Option<u32>,
    /// Whether a member is only read (no values) or set (one): a call if it is a property with code.
    pub is_access: bool,
    /// Whether it is not called here but passed on as a value: `map(parse)`.
    pub is_value: bool,
}

/// A name that got a value or a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The name.
    pub name: String,
    /// The function that it holds in, or the type that it is a field of.
    pub scope: Option<u32>,
    /// Whether it is a field of a type.
    pub is_field: bool,
    /// The line that it stands on, from 1.
    pub line: u32,
    /// The last line of the statement: up to there its value is read, in which the name is still what it was.
    pub line_end: u32,
    /// The last line that it holds on, where blocks hide their names; else the largest number.
    pub holds_until: u32,
    /// Its type, if one is written.
    pub ty: Option<Type>,
    /// Its value, if one is.
    pub value: Option<Expr>,
}

impl Binding {
    /// Whether the name means this on a line.
    pub(crate) fn holds_on(&self, line: u32) -> bool {
        let is_begun = match line <= self.line_end {
            // `let x = x()` calls another `x`.
            true => {
                line >= self.line && !self.value.as_ref().is_some_and(|it| it.names(&self.name))
            }
            false => true,
        };
        is_begun && line <= self.holds_until
    }
}

impl Expr {
    /// Whether it begins with a name.
    fn names(&self, name: &str) -> bool {
        match self {
            Self::Name(it) => it == name,
            Self::Member(of, _)
            | Self::Call(of)
            | Self::Element(of)
            | Self::Pick(of, _)
            | Self::Await(of) => of.names(name),
            _ => false,
        }
    }
}

/// A type or a constant that is named, and not called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// The symbol that names it.
    pub scope: Option<u32>,
    /// The line that it stands on, from 1.
    pub line: u32,
    /// What is named: parts joined by `.`.
    pub name: String,
}

/// That a type has what a trait asks for, said outside of the type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Impl {
    /// The type.
    pub ty: Type,
    /// The trait.
    pub base: Type,
    /// The module that it stands in.
    pub scope: Option<u32>,
    /// The line that it stands on, from 1.
    pub line: u32,
}

/// What a manifest says about the files around it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The package's name: of `Cargo.toml`, `package.json` or `go.mod`.
    pub name: String,
    /// Files that the package begins with.
    pub entries: Vec<String>,
    /// Prefixes of imports and the folders that they stand for (`compilerOptions.paths`).
    pub paths: Vec<(String, String)>,
}

/// What one file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Its language; none if it is not read for symbols.
    pub language: Option<Language>,
    /// Its package or namespace, where the language has one for the whole file.
    pub package: String,
    /// In the order of their beginnings: a symbol stands after the one it is in.
    pub symbols: Vec<Symbol>,
    /// In the order of the text.
    pub imports: Vec<Import>,
    /// In the order of the text.
    pub calls: Vec<Call>,
    /// In the order of the text.
    pub bindings: Vec<Binding>,
    /// In the order of the text.
    pub uses: Vec<Use>,
    /// In the order of the text.
    pub impls: Vec<Impl>,
    /// What a manifest says.
    pub manifest: Option<Manifest>,
    /// Why symbols are missing, if some are: too deep, too large, too slow.
    pub gap: Option<String>,
}

impl Facts {
    /// As bytes, to be kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// From bytes that [`Facts::to_bytes`] of this version made.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// The name of a symbol with those that it stands in: `Type.method`.
    pub fn qualified(&self, n: u32) -> String {
        let mut parts = Vec::new();
        let mut at = Some(n);
        while let Some(symbol) = at.and_then(|it| self.symbols.get(it as usize)) {
            parts.push(symbol.name.as_str());
            if let Some(owner) = &symbol.owner {
                parts.push(owner.name.rsplit('.').next().unwrap_or_default());
            }
            at = symbol.parent;
        }
        parts.reverse();
        parts.join(".")
    }

    /// The outermost function that a symbol stands in, or the symbol itself.
    pub fn outermost(&self, n: u32) -> u32 {
        let (mut found, mut at) = (n, Some(n));
        while let Some((place, symbol)) =
            at.and_then(|it| Some((it, self.symbols.get(it as usize)?)))
        {
            if symbol.kind.is_function() {
                found = place;
            }
            at = symbol.parent;
        }
        found
    }
}
