//! What a file refers to.

use super::Sym;
use super::externals;
use super::index::{Family, Project};
use super::modules::Module;
use super::types::{At, Found, Of, Thing, Way};
use crate::facts::{Call, Expr, Inherits, SymbolKind};
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
    /// How.
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
/// A call that could be more functions than this is none that can be told.
const CANDIDATES_MAX: usize = 4;
/// A name that more functions have is no guess at all.
const GUESSES_MAX: usize = 5;
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
struct Gathered(BTreeMap<(Place, Relation, Place), (f32, Origin, Vec<u32>)>);

impl Gathered {
    fn add(&mut self, key: (Place, Relation, Place), confidence: f32, origin: Origin, line: u32) {
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
    fn from(&self, f: u32, scope: Option<u32>) -> Place {
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
                    self.module_place(&module).into_iter().for_each(&mut add)
                }
                Some(Thing::External(name)) => {
                    add(Place::External(external_package(file.family, &name)))
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
                            self.module_place(&module).into_iter().for_each(&mut add)
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
        base: Option<super::types::Ty>,
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

    fn link_calls(&self, f: u32, all: &mut Gathered) {
        let file = self.file(f);
        let Some(family) = file.family else { return };
        let is_test_file = is_test_path(file.path);
        for call in &file.facts.calls {
            let from = self.from(f, call.scope);
            let is_test = match &from {
                Place::Symbol(sym) => self.symbol(*sym).is_some_and(|it| it.is_test),
                _ => is_test_file,
            };
            let targets = self.targets(f, call, family);
            let certain = targets.iter().filter(|it| it.1 != Origin::NameOnly).count();
            if certain > CANDIDATES_MAX {
                continue;
            }
            for (to, origin, confidence) in targets {
                let relation = match origin {
                    Origin::NameOnly => Relation::MayCall,
                    _ => Relation::Calls,
                };
                if is_test
                    && relation == Relation::Calls
                    && let Place::Symbol(sym) = &to
                    && !is_test_path(self.file(sym.file).path)
                    && !self.is_in_test(*sym)
                {
                    let key = (from.clone(), Relation::Tests, to.clone());
                    all.add(key, confidence, origin, call.line);
                }
                all.add((from.clone(), relation, to), confidence, origin, call.line);
            }
        }
    }

    /// Whether a symbol is a test, or a helper in a module of tests.
    fn is_in_test(&self, sym: Sym) -> bool {
        let file = self.file(sym.file);
        let mut at = Some(sym.n);
        while let Some(symbol) = at.and_then(|it| file.symbol(it)) {
            if symbol.is_test || (symbol.kind == SymbolKind::Module && symbol.name == "tests") {
                return true;
            }
            at = symbol.parent;
        }
        false
    }

    fn targets(&self, f: u32, call: &Call, family: Family) -> Vec<(Place, Origin, f32)> {
        self.steps.set(0);
        let at = self.at(f, call.scope, call.line);
        let found = match &call.callee {
            Expr::New(ty) => {
                let first = ty.name.split('.').next().unwrap_or_default();
                let way = self
                    .lookup(at, first)
                    .first()
                    .map_or(Way::Scope, |it| it.way);
                let ty = self.resolve_type(ty, at, 0);
                let thing = ty.and_then(|it| match it.of {
                    Of::Symbol(sym) => Some(Thing::Symbol(sym)),
                    Of::External(name) => Some(Thing::External(name)),
                    _ => None,
                });
                thing.map(|it| Found::new(it, way)).into_iter().collect()
            }
            Expr::Call(constructed) if matches!(**constructed, Expr::Super | Expr::This) => {
                let of = self.this(at);
                let types = match (&**constructed, of) {
                    (Expr::This, Some(of)) => vec![of],
                    (_, Some(of)) => {
                        let bases = self.bases(of);
                        let symbols = bases.iter().filter_map(|it| match it.of {
                            Of::Symbol(sym) => Some(sym),
                            _ => None,
                        });
                        symbols.take(1).collect()
                    }
                    _ => Vec::new(),
                };
                let found = |it| Found::new(Thing::Symbol(it), Way::Receiver);
                types.into_iter().map(found).collect()
            }
            Expr::Name(name) if name.ends_with('!') => self.macros(f, name),
            callee => self.eval(callee, at, 0),
        };
        let mut symbols: Vec<(Sym, Way, f32)> = Vec::new();
        let mut outside: Vec<String> = Vec::new();
        for it in found {
            self.callable(&it, call, family, &mut symbols, &mut outside, 0);
        }
        self.narrow(&mut symbols, call.n_args);
        let mut all: Vec<(Place, Origin, f32)> = Vec::new();
        for (sym, way, share) in symbols {
            let (origin, sure) = match way {
                Way::Scope => (Origin::Scope, 0.95),
                Way::Import => (Origin::Import, 0.95),
                Way::Receiver => (Origin::Receiver, 0.9),
                Way::Type => (Origin::Type, 0.9),
                Way::Inferred => (Origin::Type, 0.8),
            };
            all.push((Place::Symbol(sym), origin, sure * share));
        }
        outside.dedup();
        let share = 1.0 / outside.len().max(1) as f32;
        let outside = outside.into_iter().take(CANDIDATES_MAX);
        all.extend(outside.map(|it| (Place::External(it), Origin::External, 0.9 * share)));
        if all.is_empty() {
            all = self.guesses(call, family);
        }
        all
    }

    /// What is called when this is called.
    fn callable(
        &self,
        found: &Found,
        call: &Call,
        family: Family,
        symbols: &mut Vec<(Sym, Way, f32)>,
        outside: &mut Vec<String>,
        depth: u8,
    ) {
        match &found.thing {
            Thing::Symbol(sym) => {
                let Some(symbol) = self.symbol(*sym) else {
                    return;
                };
                match symbol.kind {
                    kind if kind.is_function() => symbols.push((*sym, found.way, found.share)),
                    SymbolKind::Constant if depth < 3 => {
                        for it in self.constant(*sym, 0) {
                            let it = Found {
                                way: found.way,
                                share: found.share,
                                ..it
                            };
                            self.callable(&it, call, family, symbols, outside, depth + 1);
                        }
                    }
                    kind if kind.is_type() => {
                        // In these languages a type is not called to make a value of it.
                        let is_made = matches!(call.callee, Expr::New(_) | Expr::Call(_));
                        if matches!(family, Family::Rust | Family::Go) && !is_made {
                            return;
                        }
                        self.constructor(*sym, found, family, symbols, outside);
                    }
                    _ => {}
                }
            }
            Thing::Value(ty) => {
                if family == Family::Python
                    && let Of::Symbol(_) = ty.of
                {
                    for it in self.member_of_type(ty, "__call__", 0) {
                        if let Thing::Symbol(sym) = it.thing {
                            symbols.push((sym, Way::Type, found.share));
                        }
                    }
                }
            }
            Thing::External(name) => {
                // A value that came from outside and has no name is nothing to point at.
                let name = external_name(name);
                if !name.is_empty() && !outside.contains(&name) {
                    outside.push(name);
                }
            }
            Thing::Module(_) => {}
        }
    }

    /// The constructor of a type, or the type itself if none is written.
    fn constructor(
        &self,
        of: Sym,
        found: &Found,
        family: Family,
        symbols: &mut Vec<(Sym, Way, f32)>,
        outside: &mut Vec<String>,
    ) {
        let name = match family {
            Family::Python => "__init__",
            Family::Script => "constructor",
            Family::Ruby => "initialize",
            Family::Php => "__construct",
            _ => "<init>",
        };
        let ty = super::types::Ty::symbol(of);
        let inherits = matches!(
            family,
            Family::Python | Family::Script | Family::Php | Family::Ruby
        );
        let made = match inherits {
            true => self.member_of_type(&ty, name, 0),
            false => {
                let own = self.file(of.file).named(Some(of.n), name);
                let own = own
                    .iter()
                    .map(|n| Sym {
                        file: of.file,
                        n: *n,
                    })
                    .collect();
                super::packages::shared(own, found.way)
            }
        };
        let before = symbols.len();
        for it in made {
            match it.thing {
                Thing::Symbol(sym) => symbols.push((sym, found.way, found.share * it.share)),
                Thing::External(_) | Thing::Value(_) | Thing::Module(_) => {}
            }
        }
        if symbols.len() == before {
            symbols.push((of, found.way, found.share));
        }
        let _ = outside;
    }

    /// Of several with one name those that take so many values.
    fn narrow(&self, symbols: &mut Vec<(Sym, Way, f32)>, n_args: Option<u32>) {
        symbols.dedup_by_key(|it| it.0);
        if symbols.len() < 2 {
            if let [only] = symbols.as_mut_slice() {
                only.2 = only.2.max(f32::MIN_POSITIVE);
            }
            return;
        }
        if let Some(n_args) = n_args {
            let fits = |sym: Sym| {
                let Some(symbol) = self.symbol(sym) else {
                    return false;
                };
                let least = symbol.params.iter().filter(|it| !it.is_optional).count();
                let is_open = symbol.params.last().is_some_and(|it| {
                    it.is_optional && it.ty.as_ref().is_none_or(|it| it.name == "[]")
                });
                let n = n_args as usize;
                n >= least && (n <= symbol.params.len() || is_open)
            };
            let fitting: Vec<_> = symbols.iter().copied().filter(|it| fits(it.0)).collect();
            if !fitting.is_empty() {
                *symbols = fitting;
            }
        }
        let total: f32 = symbols.iter().map(|it| it.2).sum();
        if total > 0.0 {
            symbols.iter_mut().for_each(|it| it.2 /= total);
        }
    }

    fn macros(&self, f: u32, name: &str) -> Vec<Found> {
        let name = name.trim_end_matches('!');
        let last = name.rsplit('.').next().unwrap_or_default();
        let all = self.globals.get(&(Family::Rust, last));
        let is_macro = |it: &&Sym| {
            self.symbol(**it)
                .is_some_and(|it| it.kind == SymbolKind::Macro)
        };
        let mut all: Vec<Sym> = all
            .into_iter()
            .flatten()
            .filter(is_macro)
            .copied()
            .collect();
        if all.len() > 1 {
            let path = self.file(f).path;
            let most = all
                .iter()
                .map(|it| super::modules::nearness(self.file(it.file).path, path))
                .max();
            all.retain(|it| Some(super::modules::nearness(self.file(it.file).path, path)) == most);
        }
        super::packages::shared(all, Way::Scope)
    }

    /// Methods of this name, where nothing else is known.
    fn guesses(&self, call: &Call, family: Family) -> Vec<(Place, Origin, f32)> {
        let Expr::Member(_, name) = &call.callee else {
            return Vec::new();
        };
        let all = self.methods.get(&(family, name.as_str()));
        let mut all: Vec<Sym> = all.cloned().unwrap_or_default();
        if externals::is_common_method(name) {
            all.clear();
        }
        if all.is_empty() || all.len() > GUESSES_MAX {
            return Vec::new();
        }
        let share = 0.5 / all.len() as f32;
        let guess = |it| (Place::Symbol(it), Origin::NameOnly, share);
        all.into_iter().map(guess).collect()
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
fn external_name(name: &str) -> String {
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
