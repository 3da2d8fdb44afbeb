//! What is kept of one file while names are resolved.

use crate::facts::{Binding, Facts, Symbol};
use kenning_grammars::Language;
use std::collections::HashMap;

/// A file of a repository.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its path in the repository, parts joined by `/`.
    pub path: String,
    /// What it says.
    pub facts: Facts,
}

/// Languages whose symbols can refer to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Family {
    Script,
    Python,
    Rust,
    Go,
    Jvm,
    C,
    CSharp,
    Ruby,
    Php,
    Bash,
    Sql,
}

impl Family {
    pub(super) const fn of(language: Language) -> Self {
        match language {
            Language::Bash => Self::Bash,
            Language::C | Language::Cpp => Self::C,
            Language::CSharp => Self::CSharp,
            Language::Go => Self::Go,
            Language::Java | Language::Kotlin => Self::Jvm,
            Language::JavaScript | Language::Tsx | Language::TypeScript => Self::Script,
            Language::Php => Self::Php,
            Language::Python => Self::Python,
            Language::Ruby => Self::Ruby,
            Language::Rust => Self::Rust,
            Language::Sql => Self::Sql,
        }
    }

    /// Whether the members of a type are names in its methods.
    pub(super) const fn has_implicit_this(self) -> bool {
        matches!(self, Self::Jvm | Self::C | Self::CSharp | Self::Ruby)
    }
}

pub(super) type Names<'a, T> = HashMap<&'a str, Vec<T>>;

/// What is kept of one file.
pub(super) struct File<'a> {
    pub(super) path: &'a str,
    pub(super) facts: &'a Facts,
    pub(super) family: Option<Family>,
    /// Symbols by the symbol that they stand in, and their names.
    pub(super) children: HashMap<Option<u32>, Names<'a, u32>>,
    /// Names that got a value, by the function that they hold in.
    locals: HashMap<Option<u32>, Names<'a, u32>>,
    /// Fields, by their type.
    fields: HashMap<u32, Names<'a, u32>>,
    /// Imports by the names that they bring.
    pub(super) imports: Names<'a, u32>,
}

impl<'a> File<'a> {
    pub(super) fn new(source: &'a Source) -> Self {
        let facts = &source.facts;
        let mut file = Self {
            path: &source.path,
            facts,
            family: facts.language.map(Family::of),
            children: HashMap::new(),
            locals: HashMap::new(),
            fields: HashMap::new(),
            imports: HashMap::new(),
        };
        for (n, symbol) in (0..).zip(&facts.symbols) {
            // What belongs to a type that is written elsewhere is found there.
            if symbol.owner.is_none() {
                let names = file.children.entry(symbol.parent).or_default();
                names.entry(&symbol.name).or_default().push(n);
            }
        }
        for (n, binding) in (0..).zip(&facts.bindings) {
            let names = match (binding.is_field, binding.scope) {
                (true, Some(of)) => file.fields.entry(of).or_default(),
                (_, scope) => file.locals.entry(scope).or_default(),
            };
            names.entry(&binding.name).or_default().push(n);
        }
        for (n, import) in (0..).zip(&facts.imports) {
            file.imports.entry(&import.alias).or_default().push(n);
        }
        file
    }

    pub(super) fn symbol(&self, n: u32) -> Option<&'a Symbol> {
        self.facts.symbols.get(n as usize)
    }

    /// Symbols of this name that stand directly in another, or in the file.
    pub(super) fn named(&self, parent: Option<u32>, name: &str) -> &[u32] {
        let names = self.children.get(&parent);
        names.and_then(|it| it.get(name)).map_or(&[], Vec::as_slice)
    }

    /// Values that a name got in a function, or in the file.
    pub(super) fn bound(
        &self,
        scope: Option<u32>,
        name: &str,
    ) -> impl Iterator<Item = &'a Binding> {
        let names = self.locals.get(&scope).and_then(|it| it.get(name));
        let places = names.map_or(&[][..], Vec::as_slice);
        let facts = self.facts;
        places
            .iter()
            .filter_map(move |it| facts.bindings.get(*it as usize))
    }

    /// Values that a field of a type got.
    pub(super) fn field(&self, of: u32, name: &str) -> impl Iterator<Item = &'a Binding> {
        let names = self.fields.get(&of).and_then(|it| it.get(name));
        let places = names.map_or(&[][..], Vec::as_slice);
        let facts = self.facts;
        places
            .iter()
            .filter_map(move |it| facts.bindings.get(*it as usize))
    }
}
