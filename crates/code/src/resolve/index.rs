//! What is kept of all files while names are resolved.

use super::Sym;
use super::modules::Tree;
use super::types::Ty;
use crate::facts::{Binding, Facts, Symbol, SymbolKind};
use kenning_grammars::Language;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

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
    CFamily,
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
            Language::C | Language::Cpp => Self::CFamily,
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
        matches!(self, Self::Jvm | Self::CFamily | Self::CSharp | Self::Ruby)
    }
}

type Names<'a, T> = HashMap<&'a str, Vec<T>>;

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
    fn new(source: &'a Source) -> Self {
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

/// All files of a repository, ready to be asked what names mean.
pub struct Project<'a> {
    pub(super) files: Vec<File<'a>>,
    pub(super) tree: Tree<'a>,
    /// Members of types that stand outside of them.
    pub(super) outside: HashMap<Sym, Names<'a, Sym>>,
    /// Traits that types have, said outside of them.
    pub(super) traits: HashMap<Sym, Vec<Sym>>,
    /// Methods of all types, by their names.
    pub(super) methods: HashMap<(Family, &'a str), Vec<Sym>>,
    /// What stands in a file directly, by family and name.
    pub(super) globals: HashMap<(Family, &'a str), Vec<Sym>>,
    /// What a type inherits, once somebody asked.
    pub(super) bases: RefCell<HashMap<Sym, Rc<Vec<Ty>>>>,
    /// What is being looked up, so that no circle is followed.
    pub(super) active: RefCell<Vec<(u32, u32, u8)>>,
    /// How many steps the evaluation of one expression has taken.
    pub(super) steps: std::cell::Cell<u32>,
}

impl<'a> Project<'a> {
    /// Makes the index.
    pub fn new(sources: &'a [Source]) -> Self {
        let files: Vec<File<'a>> = sources.iter().map(File::new).collect();
        let mut project = Self {
            tree: Tree::new(&files),
            files,
            outside: HashMap::new(),
            traits: HashMap::new(),
            methods: HashMap::new(),
            globals: HashMap::new(),
            bases: RefCell::default(),
            active: RefCell::default(),
            steps: std::cell::Cell::new(0),
        };
        for (f, file) in (0..).zip(&project.files) {
            let Some(family) = file.family else { continue };
            for (n, symbol) in (0..).zip(&file.facts.symbols) {
                let sym = Sym { file: f, n };
                if symbol.kind == SymbolKind::Method {
                    let all = project.methods.entry((family, symbol.name.as_str()));
                    all.or_default().push(sym);
                }
                let is_global = symbol.owner.is_none()
                    && symbol.parent.is_none_or(|it| {
                        file.symbol(it)
                            .is_some_and(|it| it.kind == SymbolKind::Module)
                    });
                if is_global {
                    let all = project.globals.entry((family, symbol.name.as_str()));
                    all.or_default().push(sym);
                }
            }
        }
        project.join_outside();
        project
    }

    /// Members and traits that are said outside of a type, once names can be looked up.
    fn join_outside(&mut self) {
        let mut members: Vec<(Sym, &'a str, Sym)> = Vec::new();
        let mut traits: Vec<(Sym, Sym)> = Vec::new();
        for (f, file) in (0..).zip(&self.files) {
            for (n, symbol) in (0..).zip(&file.facts.symbols) {
                let Some(owner) = &symbol.owner else { continue };
                let at = self.at(f, symbol.parent, symbol.line);
                if let Some(of) = self.type_symbol(owner, at) {
                    members.push((of, &symbol.name, Sym { file: f, n }));
                }
            }
            for it in &file.facts.impls {
                let at = self.at(f, it.scope, it.line);
                let found = (self.type_symbol(&it.ty, at), self.type_symbol(&it.base, at));
                if let (Some(of), Some(base)) = found {
                    traits.push((of, base));
                }
            }
        }
        for (of, name, sym) in members {
            let names = self.outside.entry(of).or_default();
            names.entry(name).or_default().push(sym);
        }
        for (of, base) in traits {
            let all = self.traits.entry(of).or_default();
            if !all.contains(&base) {
                all.push(base);
            }
        }
    }

    /// The type that a symbol belongs to although it stands outside of it.
    pub fn owner(&self, sym: Sym) -> Option<Sym> {
        let symbol = self.symbol(sym)?;
        let owner = symbol.owner.as_ref()?;
        self.type_symbol(owner, self.at(sym.file, symbol.parent, symbol.line))
    }

    pub(super) fn file(&self, f: u32) -> &File<'a> {
        &self.files[f as usize]
    }

    pub(super) fn symbol(&self, sym: Sym) -> Option<&'a Symbol> {
        self.files.get(sym.file as usize)?.symbol(sym.n)
    }

    pub(super) fn family(&self, f: u32) -> Option<Family> {
        self.files.get(f as usize)?.family
    }
}
