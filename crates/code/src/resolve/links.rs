//! What a file refers to.

use super::Sym;
use super::file::Family;
use super::index::Project;
use super::modules::Module;
use super::types::{At, Of, Thing, Ty};
use crate::facts::{Inherits, SymbolKind};
use std::collections::BTreeMap;

/// How a target was found. A closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// By the name in its scope: the function, the file or the package.
    Scope,
    /// By an import.
    Import,
    /// As a member of the object that the method is called on: `self`, `this`, `super`.
    Receiver,
    /// As a member of a type that is written, or that follows from a value.
    Type,
    /// By nothing but its name: a guess.
    NameOnly,
    /// It is outside of the repository.
    External,
}

impl Origin {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scope => "scope",
            Self::Import => "import",
            Self::Receiver => "receiver",
            Self::Type => "type",
            Self::NameOnly => "name-only",
            Self::External => "external",
        }
    }
}

/// How two places are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// A function calls another.
    Calls,
    /// It may: only the name says so.
    MayCall,
    /// A file imports another, or a symbol of it.
    Imports,
    /// A type inherits another.
    Extends,
    /// A type has what an interface asks for.
    Implements,
    /// A test calls what it tests.
    Tests,
    /// A type or a constant is named.
    Uses,
}

impl Relation {
    /// The name of its edges.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Calls => "CALLS",
            Self::MayCall => "MAY_CALL",
            Self::Imports => "IMPORTS",
            Self::Extends => "EXTENDS",
            Self::Implements => "IMPLEMENTS",
            Self::Tests => "TESTS",
            Self::Uses => "USES",
        }
    }
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A symbol.
    Symbol(Sym),
    /// A file.
    File(u32),
    /// A folder, by its path.
    Folder(String),
    /// Something outside of the repository, by its name.
    External(String),
}

/// That something refers to something.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// What refers: the outermost function, the type or the file.
    pub from: Place,
    /// The kind of reference.
    pub relation: Relation,
    /// To what.
    pub to: Place,
    /// How sure it is, between 0 and 1; of an ambiguous one the share is in it.
    pub confidence: f32,
    /// How it was found.
    pub origin: Origin,
    /// On which lines, without repetitions.
    pub lines: Vec<u32>,
}

/// Lines of one link that are kept.
const LINES_MAX: usize = 50;
/// The longest name of something outside.
const EXTERNAL_CHARS_MAX: usize = 120;

/// Whether a file is a test, by its path.
pub(super) fn is_test_path(path: &str) -> bool {
    let name = path.rsplit_once('/').map_or(path, |it| it.1);
    let stem = name.split('.').next().unwrap_or_default();
    path.split('/')
        .any(|it| matches!(it, "tests" | "test" | "__tests__" | "spec" | "testing"))
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_spec")
        || stem.ends_with("Test")
        || stem.ends_with("Tests")
        || name.contains(".test.")
        || name.contains(".spec.")
}

/// The links of one file while they are gathered.
#[derive(Default)]
pub(super) struct Gathered(BTreeMap<(Place, Relation, Place), Evidence>);

/// How sure a link is, how it was found, and on which lines.
type Evidence = (f32, Origin, Vec<u32>);

impl Gathered {
    pub(super) fn add(
        &mut self,
        key: (Place, Relation, Place),
        confidence: f32,
        origin: Origin,
        line: u32,
    ) {
        let entry = self.0.entry(key);
        let (sure, how, lines) = entry.or_insert((confidence, origin, Vec::new()));
        if confidence > *sure {
            (*sure, *how) = (confidence, origin);
        }
        if lines.len() < LINES_MAX && lines.last() != Some(&line) && !lines.contains(&line) {
            lines.push(line);
        }
    }
}

impl Project<'_> {
    /// What one file refers to, in an order that follows from the files alone.
    pub fn links(&self, f: u32) -> Vec<Link> {
        let mut all = Gathered::default();
        self.link_imports(f, &mut all);
        self.link_bases(f, &mut all);
        self.link_calls(f, &mut all);
        self.link_uses(f, &mut all);
        let link = |((from, relation, to), (confidence, origin, mut lines)): (
            _,
            (f32, Origin, Vec<u32>),
        )| {
            lines.sort_unstable();
            Link {
                from,
                relation,
                to,
                confidence: (confidence * 1_000.0).round() / 1_000.0,
                origin,
                lines,
            }
        };
        all.0.into_iter().map(link).collect()
    }

    /// Whoever refers: the outermost function, else the symbol, else the file.
    pub(super) fn from(&self, f: u32, scope: Option<u32>) -> Place {
        match scope {
            Some(n) => Place::Symbol(Sym {
                file: f,
                n: self.file(f).facts.outermost(n),
            }),
            None => Place::File(f),
        }
    }

    fn link_imports(&self, f: u32, all: &mut Gathered) {
        let file = self.file(f);
        let here = Place::File(f);
        for (n, import) in (0..).zip(&file.facts.imports) {
            if import.module.is_empty() {
                continue;
            }
            self.steps.set(0);
            let mut add = |to: Place| {
                let origin = match to {
                    Place::External(_) => Origin::External,
                    _ => Origin::Import,
                };
                if to != here {
                    let key = (here.clone(), Relation::Imports, to);
                    all.add(key, 1.0, origin, import.line);
                }
            };
            let module = self.module(f, import.scope, &import.module, 0);
            match module {
                Some(Thing::Module(module)) => {
                    self.module_place(&module).into_iter().for_each(&mut add);
                }
                Some(Thing::External(name)) => {
                    add(Place::External(external_package(file.family, &name)));
                }
                Some(Thing::Symbol(sym)) => add(Place::Symbol(sym)),
                _ => {}
            }
            if import.name.as_deref().is_some_and(|it| it != "*") {
                for found in self.imported(f, n, 0) {
                    match found.thing {
                        Thing::Symbol(sym) => {
                            add(Place::Symbol(sym));
                            add(Place::File(sym.file));
                        }
                        Thing::Module(module) => {
                            self.module_place(&module).into_iter().for_each(&mut add);
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn module_place(&self, module: &Module) -> Option<Place> {
        Some(match module {
            Module::File(f) => Place::File(*f),
            Module::Inline(sym) => Place::Symbol(*sym),
            Module::Folder(path) => Place::Folder(path.clone()),
            Module::Package(_) => return None,
        })
    }

    fn link_bases(&self, f: u32, all: &mut Gathered) {
        let file = self.file(f);
        for (n, symbol) in (0..).zip(&file.facts.symbols) {
            let at = self.at(f, symbol.parent, symbol.line);
            for (how, base) in &symbol.bases {
                self.steps.set(0);
                let relation = match how {
                    Inherits::Extends => Relation::Extends,
                    Inherits::Implements => Relation::Implements,
                };
                let from = Sym { file: f, n };
                self.link_base(
                    from,
                    relation,
                    self.resolve_type(base, at, 0),
                    symbol.line,
                    all,
                );
            }
        }
        for it in &file.facts.impls {
            self.steps.set(0);
            let at = self.at(f, it.scope, it.line);
            if let Some(from) = self.type_symbol(&it.ty, at) {
                let base = self.resolve_type(&it.base, at, 0);
                self.link_base(from, Relation::Implements, base, it.line, all);
            }
        }
    }

    fn link_base(
        &self,
        from: Sym,
        relation: Relation,
        base: Option<Ty>,
        line: u32,
        all: &mut Gathered,
    ) {
        let (to, origin) = match base.map(|it| it.of) {
            Some(Of::Symbol(sym)) if sym != from => {
                let origin = match sym.file == from.file {
                    true => Origin::Scope,
                    false => Origin::Import,
                };
                (Place::Symbol(sym), origin)
            }
            Some(Of::External(name)) => (Place::External(external_name(&name)), Origin::External),
            _ => return,
        };
        all.add((Place::Symbol(from), relation, to), 0.95, origin, line);
    }

    fn link_uses(&self, f: u32, all: &mut Gathered) {
        let file = self.file(f);
        for it in &file.facts.uses {
            self.steps.set(0);
            let at: At = self.at(f, it.scope, it.line);
            let Some(Thing::Symbol(sym)) = self.dotted(&it.name, at, 0) else {
                continue;
            };
            let is_meant = self
                .symbol(sym)
                .is_some_and(|it| it.kind.is_type() || it.kind == SymbolKind::Constant);
            let from = self.from(f, it.scope);
            let (to, is_own) = (Place::Symbol(sym), from == Place::Symbol(sym));
            // A type that is inherited is linked as such, and a method need not name its own type.
            let parent = match &from {
                Place::Symbol(from) => self.symbol(*from).and_then(|it| it.parent),
                _ => None,
            };
            let is_parent = sym.file == f && parent == Some(sym.n);
            let is_base = [Relation::Extends, Relation::Implements]
                .iter()
                .any(|relation| all.0.contains_key(&(from.clone(), *relation, to.clone())));
            if !is_meant || is_own || is_parent || is_base {
                continue;
            }
            let origin = match sym.file == f {
                true => Origin::Scope,
                false => Origin::Import,
            };
            all.add((from, Relation::Uses, to), 0.95, origin, it.line);
        }
    }
}

/// The name of something outside: not too long, and without what makes each call another.
pub(super) fn external_name(name: &str) -> String {
    let kept = name
        .chars()
        .filter(|it| !it.is_control() && !it.is_whitespace());
    kept.take(EXTERNAL_CHARS_MAX).collect()
}

/// The package that an import from outside is of.
fn external_package(family: Option<Family>, name: &str) -> String {
    let name = external_name(name);
    match family {
        Some(Family::Rust | Family::Python) => {
            name.split('.').next().unwrap_or_default().to_owned()
        }
        Some(Family::Script) => {
            let parts = if name.starts_with('@') { 2 } else { 1 };
            let parts: Vec<&str> = name.split('/').take(parts).collect();
            parts.join("/")
        }
        _ => name,
    }
}
