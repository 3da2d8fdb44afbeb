//! What is called.

use super::Sym;
use super::externals;
use super::file::Family;
use super::index::Project;
use super::links::{Gathered, Origin, Place, Relation, external_name, is_test_path};
use super::modules::Module;
use super::types::{Found, Of, Thing, Way};
use crate::facts::{Call, Expr, SymbolKind};
use std::collections::HashSet;
use std::rc::Rc;

/// A name that more functions have is no guess at all.
const GUESSES_MAX: usize = 5;
/// A call that could be more functions than this is none that can be told.
const CANDIDATES_MAX: usize = 4;

/// Shorter names say too little.
const NAME_CHARS_MIN: usize = 5;

impl Project<'_> {
    pub(super) fn link_calls(&self, f: u32, all: &mut Gathered) {
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
                    // A property is read or set as if it were no code; a function that is passed on is not
                    // called yet.
                    _ if call.is_access || call.is_value => Relation::Uses,
                    Origin::NameOnly => Relation::MayCall,
                    _ => Relation::Calls,
                };
                if is_test
                    && (relation == Relation::Calls || call.is_value)
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
        if call.is_access {
            let is_property = |sym: Sym| self.symbol(sym).is_some_and(|it| it.is_property);
            if !symbols.iter().any(|it| is_property(it.0)) {
                return Vec::new();
            }
            let is_set = call.n_args == Some(1);
            symbols.retain(|it| is_property(it.0) != is_set);
            outside.clear();
        }
        if call.is_value {
            outside.clear();
            symbols.retain(|it| self.symbol(it.0).is_some_and(|it| it.kind.is_function()));
        }
        self.narrow(&mut symbols, call.n_args.filter(|_| !call.is_access));
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
        if all.is_empty()
            && family == Family::Rust
            && let Some(sym) = self.extension(f, call)
        {
            return vec![(Place::Symbol(sym), Origin::Import, 0.8)];
        }
        outside.dedup();
        let share = 1.0 / outside.len().max(1) as f32;
        let outside = outside.into_iter().take(CANDIDATES_MAX);
        all.extend(outside.map(|it| (Place::External(it), Origin::External, 0.9 * share)));
        if all.is_empty() && !call.is_access && !call.is_value {
            all = self.guesses(f, call, family);
        }
        all
    }

    /// A method that a trait of the repository gives to types from outside: the only one of its name, and the
    /// trait is one that the file has in scope.
    fn extension(&self, f: u32, call: &Call) -> Option<Sym> {
        let Expr::Member(_, name) = &call.callee else {
            return None;
        };
        if call.is_access || call.is_value || externals::is_common_method(name) {
            return None;
        }
        let all = self.methods.get(&(Family::Rust, name.as_str()))?;
        let [only] = all.as_slice() else { return None };
        let symbol = self.symbol(*only)?;
        let holder = self.file(only.file).symbol(symbol.parent?)?;
        let is_trait = holder.kind == SymbolKind::Trait && symbol.owner.is_none();
        let is_in_scope = only.file == f
            || self.file(f).imports.contains_key(holder.name.as_str())
            || self.imported_files(f).contains(&only.file);
        (is_trait && is_in_scope).then_some(*only)
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

    /// Methods of this name, where nothing else is known. Where types are not written, the only method of a
    /// name is meant if its file is imported: that is more than the name, and nine in ten of them are right. In the
    /// same file, where nothing was imported for the sake of the method, fewer than half were.
    fn guesses(&self, f: u32, call: &Call, family: Family) -> Vec<(Place, Origin, f32)> {
        let Expr::Member(_, name) = &call.callee else {
            return Vec::new();
        };
        let all = self.methods.get(&(family, name.as_str()));
        let all = all.map_or(&[][..], Vec::as_slice);
        if all.is_empty() || all.len() > GUESSES_MAX || externals::is_common_method(name) {
            return Vec::new();
        }
        let is_untyped = matches!(family, Family::Python | Family::Ruby | Family::Php);
        if let [only] = all
            && is_untyped
            && name.len() >= NAME_CHARS_MIN
            && !self.globals.contains_key(&(family, name.as_str()))
            && only.file != f
            && self.imported_files(f).contains(&only.file)
        {
            return vec![(Place::Symbol(*only), Origin::Import, 0.7)];
        }
        let share = 0.5 / all.len() as f32;
        let guess = |it: &Sym| (Place::Symbol(*it), Origin::NameOnly, share);
        all.iter().map(guess).collect()
    }

    /// The files that a file imports something of.
    fn imported_files(&self, f: u32) -> Rc<HashSet<u32>> {
        if let Some(known) = self.imported.borrow().get(&f) {
            return Rc::clone(known);
        }
        let mut all = HashSet::new();
        let mut add = |thing: &Thing| match thing {
            Thing::Module(Module::File(file)) => drop(all.insert(*file)),
            Thing::Symbol(sym) => drop(all.insert(sym.file)),
            _ => {}
        };
        for (n, import) in (0..).zip(&self.file(f).facts.imports) {
            self.module(f, import.scope, &import.module, 0)
                .iter()
                .for_each(&mut add);
            self.imported(f, n, 0).iter().for_each(|it| add(&it.thing));
        }
        let all = Rc::new(all);
        self.imported.borrow_mut().insert(f, Rc::clone(&all));
        all
    }
}
