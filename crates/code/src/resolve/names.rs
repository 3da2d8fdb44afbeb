//! Looking up names: in the scope, in imports, in the package.

use super::Sym;
use super::externals;
use super::file::Family;
use super::index::Project;
use super::modules::Module;
use super::types::{At, Found, Of, Thing, Ty, Way};
use crate::facts::{Binding, Expr, SymbolKind, Type};

/// Imports are followed so far.
const IMPORT_DEPTH_MAX: u8 = 12;

impl<'a> Project<'a> {
    pub(super) fn at(&self, file: u32, scope: Option<u32>, line: u32) -> At {
        At {
            file,
            scope,
            line,
            is_path: false,
        }
    }

    /// What a name means where it stands.
    pub(super) fn lookup(&self, at: At, name: &str) -> Vec<Found> {
        let file = self.file(at.file);
        let Some(family) = file.family else {
            return Vec::new();
        };
        let mut scope = at.scope;
        let mut is_first = true;
        while let Some(n) = scope {
            let Some(symbol) = file.symbol(n) else { break };
            let found = match symbol.kind {
                SymbolKind::Module => self.in_inline(Sym { file: at.file, n }, name, family),
                kind if kind.is_function() => self.in_function(at, n, name, is_first),
                _ => self.in_type(Sym { file: at.file, n }, name, family, is_first),
            };
            if !found.is_empty() {
                return found;
            }
            is_first = false;
            // In Rust a module sees nothing of what it stands in.
            if family == Family::Rust && symbol.kind == SymbolKind::Module {
                let found = self.in_package(at, name, family);
                return match found.is_empty() {
                    true => self.builtin(family, name),
                    false => found,
                };
            }
            scope = symbol.parent;
        }
        let found = self.in_file(at, name, family);
        if !found.is_empty() {
            return found;
        }
        let found = self.in_package(at, name, family);
        if !found.is_empty() {
            return found;
        }
        self.builtin(family, name)
    }

    fn builtin(&self, family: Family, name: &str) -> Vec<Found> {
        match externals::is_builtin(family, name) {
            true => vec![Found::new(Thing::External(name.to_owned()), Way::Scope)],
            false => Vec::new(),
        }
    }

    fn symbols(&self, f: u32, places: &[u32], way: Way) -> Vec<Found> {
        let share = 1.0 / places.len().max(1) as f32;
        let found = |n: &u32| Found {
            share,
            ..Found::new(Thing::Symbol(Sym { file: f, n: *n }), way)
        };
        places.iter().map(found).collect()
    }

    fn in_function(&self, at: At, n: u32, name: &str, is_innermost: bool) -> Vec<Found> {
        let file = self.file(at.file);
        let here = file.named(Some(n), name);
        if !here.is_empty() {
            return self.symbols(at.file, here, Way::Scope);
        }
        // A type that is written in a function is no variable of it: `token token.Pos`.
        let is_typing = self.active.borrow().contains(&(at.file, n, 7));
        let mut bindings: Vec<&'a Binding> = file.bound(Some(n), name).collect();
        let symbol = file.symbol(n);
        let mut param = symbol.and_then(|it| it.params.iter().find(|it| it.name == name));
        if is_typing || at.is_path {
            bindings.clear();
            param = None;
        }
        if !bindings.is_empty() {
            // The last one before the line; in a function around it, any.
            let before = bindings
                .iter()
                .rev()
                .find(|it| !is_innermost || it.holds_on(at.line));
            // In these languages a name of a function is one everywhere in it.
            let is_hoisted = param.is_none()
                && matches!(
                    file.family,
                    Some(Family::Script | Family::Python | Family::Ruby | Family::Php)
                );
            let chosen = before.or(bindings.first().filter(|_| is_hoisted));
            if let Some(chosen) = chosen {
                return self.of_binding(
                    At {
                        scope: Some(n),
                        ..at
                    },
                    chosen,
                );
            }
        }
        if let Some(param) = param {
            let ty = param.ty.as_ref();
            let ty = ty.and_then(|it| {
                self.written_type(
                    it,
                    At {
                        scope: Some(n),
                        ..at
                    },
                )
            });
            // A name that is a parameter is nothing else, whatever it is.
            return vec![Found::new(ty.map_or_else(unknown, value_of), Way::Type)];
        }
        let generic = symbol.and_then(|it| it.generics.iter().find(|it| it.name == name));
        if let Some(generic) = generic {
            let bound = generic.ty.as_ref();
            let bound = bound.and_then(|it| {
                self.resolve_type(
                    it,
                    At {
                        scope: symbol.and_then(|it| it.parent),
                        ..at
                    },
                    0,
                )
            });
            let thing = match bound.map(|it| it.of) {
                Some(Of::Symbol(sym)) => Thing::Symbol(sym),
                Some(Of::External(name)) => Thing::External(name),
                _ => unknown(),
            };
            return vec![Found::new(thing, Way::Type)];
        }
        self.in_imports(at.file, Some(n), name, 0)
    }

    /// A type that is written for a variable.
    fn written_type(&self, ty: &Type, at: At) -> Option<Ty> {
        let key = (at.file, at.scope.unwrap_or(u32::MAX), 7);
        if self.active.borrow().contains(&key) {
            return None;
        }
        self.active.borrow_mut().push(key);
        let found = self.resolve_type(ty, at, 0);
        self.active.borrow_mut().pop();
        found
    }

    fn of_binding(&self, at: At, binding: &Binding) -> Vec<Found> {
        if let Some(ty) = &binding.ty {
            let ty = self.written_type(ty, at);
            return vec![Found::new(ty.map_or_else(unknown, value_of), Way::Type)];
        }
        let place = At {
            line: binding.line.saturating_sub(1),
            ..at
        };
        let Some(value) = &binding.value else {
            return vec![Found::new(unknown(), Way::Scope)];
        };
        // The same line may bind what it reads: `x = x.next()`.
        let key = (at.file, binding.line, 6);
        if self.active.borrow().contains(&key) {
            return vec![Found::new(unknown(), Way::Scope)];
        }
        self.active.borrow_mut().push(key);
        let found = self.eval_read(value, place, 0);
        self.active.borrow_mut().pop();
        if found.is_empty() {
            return vec![Found::new(unknown(), Way::Scope)];
        }
        let inferred = |it: Found| match it.thing {
            Thing::Value(_) if *value != Expr::This => Found {
                way: it.way.max(Way::Inferred),
                ..it
            },
            _ => it,
        };
        found.into_iter().map(inferred).collect()
    }

    fn in_inline(&self, module: Sym, name: &str, family: Family) -> Vec<Found> {
        let file = self.file(module.file);
        let here = file.named(Some(module.n), name);
        if !here.is_empty() {
            return self.symbols(module.file, here, Way::Scope);
        }
        let found = self.in_imports(module.file, Some(module.n), name, 0);
        if !found.is_empty() || family != Family::Rust {
            return found;
        }
        self.in_stars(module.file, Some(module.n), name, 0)
    }

    fn in_type(&self, of: Sym, name: &str, family: Family, is_innermost: bool) -> Vec<Found> {
        let file = self.file(of.file);
        if family.has_implicit_this() || (is_innermost && family == Family::Python) {
            let mut found = self.member_of_type(&Ty::symbol(of), name, 0);
            // A type that inherits from outside may have any name; what is written here comes first.
            found.retain(|it| !matches!(it.thing, Thing::External(_)));
            if !found.is_empty() {
                return found.into_iter().map(of_receiver).collect();
            }
        }
        if family.has_implicit_this() {
            let here = file.named(Some(of.n), name);
            if !here.is_empty() {
                return self.symbols(of.file, here, Way::Scope);
            }
        }
        let symbol = file.symbol(of.n);
        if symbol.is_some_and(|it| it.name == name && it.kind.is_type()) && family != Family::Python
        {
            return self.symbols(of.file, &[of.n], Way::Scope);
        }
        let generic = symbol.and_then(|it| it.generics.iter().find(|it| it.name == name));
        match generic {
            Some(generic) => {
                let at = self.at(of.file, symbol.and_then(|it| it.parent), 0);
                let bound = generic
                    .ty
                    .as_ref()
                    .and_then(|it| self.resolve_type(it, at, 0));
                let thing = match bound.map(|it| it.of) {
                    Some(Of::Symbol(sym)) => Thing::Symbol(sym),
                    _ => unknown(),
                };
                vec![Found::new(thing, Way::Type)]
            }
            None => Vec::new(),
        }
    }

    /// What a name means in a file, outside of everything in it.
    pub(super) fn in_file(&self, at: At, name: &str, family: Family) -> Vec<Found> {
        let file = self.file(at.file);
        let here = file.named(None, name);
        let is_value = |n: &&u32| {
            let symbol = file.symbol(**n);
            symbol.is_some_and(|it| it.kind == SymbolKind::Constant)
        };
        let is_constant = !here.is_empty() && here.iter().all(|it| is_value(&it));
        if !here.is_empty() && !is_constant {
            // In Python and JavaScript the last definition counts.
            let here = match family {
                Family::Python if here.len() > 1 => &here[here.len() - 1..],
                _ => here,
            };
            return self.symbols(at.file, here, Way::Scope);
        }
        let found = self.in_imports(at.file, None, name, 0);
        if !found.is_empty() {
            return found;
        }
        if is_constant {
            return self.symbols(at.file, &here[..1], Way::Scope);
        }
        let bindings: Vec<&'a Binding> = file.bound(None, name).collect();
        if let Some(last) = bindings.last() {
            return self.of_binding(At { scope: None, ..at }, last);
        }
        self.in_stars(at.file, None, name, 0)
    }

    /// What the imports of a scope bring under a name.
    pub(super) fn in_imports(
        &self,
        f: u32,
        scope: Option<u32>,
        name: &str,
        depth: u8,
    ) -> Vec<Found> {
        let file = self.file(f);
        let facts = file.facts;
        if let Some(places) = file.imports.get(name) {
            for n in places.iter().rev() {
                let Some(import) = facts.imports.get(*n as usize) else {
                    continue;
                };
                // What is only exported under this name has another here.
                if import.scope != scope || import.module.is_empty() {
                    continue;
                }
                // It is being looked up for itself: something else has the name.
                if self.active.borrow().contains(&(f, *n, 0)) {
                    continue;
                }
                let found = self.imported(f, *n, depth);
                return match found.is_empty() {
                    true => vec![Found::new(unknown(), Way::Import)],
                    false => found,
                };
            }
        }
        if file.family == Some(Family::Python) {
            // `import a.b` brings `a`.
            let starts = |it: &&crate::facts::Import| {
                let rest = it.alias.strip_prefix(name);
                it.scope == scope && it.name.is_none() && rest.is_some_and(|it| it.starts_with('.'))
            };
            if let Some(import) = facts.imports.iter().find(starts) {
                let found = self.tree.python(file.path, name).map(Thing::Module);
                let found = found.unwrap_or_else(|| Thing::External(name.to_owned()));
                let _ = import;
                return vec![Found::new(found, Way::Import)];
            }
        }
        Vec::new()
    }

    /// What an import brings.
    pub(super) fn imported(&self, f: u32, n: u32, depth: u8) -> Vec<Found> {
        if depth > IMPORT_DEPTH_MAX {
            return Vec::new();
        }
        let key = (f, n, 0);
        if self.active.borrow().contains(&key) {
            return Vec::new();
        }
        self.active.borrow_mut().push(key);
        let found = self.imported_once(f, n, depth);
        self.active.borrow_mut().pop();
        found
    }

    fn imported_once(&self, f: u32, n: u32, depth: u8) -> Vec<Found> {
        let file = self.file(f);
        let Some(import) = file.facts.imports.get(n as usize) else {
            return Vec::new();
        };
        if import.module.is_empty() && file.family == Some(Family::Script) {
            // An export of something of this file under another name.
            let Some(name) = &import.name else {
                return Vec::new();
            };
            let here = file.named(None, name);
            if !here.is_empty() {
                return self.symbols(f, here, Way::Import);
            }
            return self.in_imports(f, None, name, depth + 1);
        }
        let module = self.module(f, import.scope, &import.module, depth);
        let found = match (&import.name, module) {
            (None, Some(thing)) => vec![Found::new(thing, Way::Import)],
            (Some(name), Some(thing)) => match &thing {
                Thing::Module(module) => {
                    let found = self.in_module(module, name, depth + 1);
                    match found.is_empty() && name == "default" {
                        // `import x from` of a module that exports by assigning.
                        true => vec![Found::new(thing.clone(), Way::Import)],
                        false => found,
                    }
                }
                Thing::External(of) => vec![Found::new(
                    Thing::External(format!("{of}.{name}")),
                    Way::Import,
                )],
                Thing::Symbol(_) | Thing::Value(_) => {
                    let of = Found::new(thing.clone(), Way::Import);
                    self.member(&of, name, 0)
                }
            },
            (_, None) => Vec::new(),
        };
        found
            .into_iter()
            .map(|it| Found {
                way: Way::Import,
                ..it
            })
            .collect()
    }

    /// What stars bring under a name.
    fn in_stars(&self, f: u32, scope: Option<u32>, name: &str, depth: u8) -> Vec<Found> {
        if depth > IMPORT_DEPTH_MAX {
            return Vec::new();
        }
        let file = self.file(f);
        for (n, import) in (0..).zip(&file.facts.imports) {
            if import.name.as_deref() != Some("*") || import.scope != scope {
                continue;
            }
            let key = (f, n, 1);
            if self.active.borrow().contains(&key) {
                continue;
            }
            self.active.borrow_mut().push(key);
            let module = self.module(f, scope, &import.module, depth + 1);
            let found = match module {
                Some(Thing::Module(module)) => self.in_module(&module, name, depth + 1),
                Some(Thing::Symbol(sym)) => {
                    self.member(&Found::new(Thing::Symbol(sym), Way::Import), name, 0)
                }
                _ => Vec::new(),
            };
            self.active.borrow_mut().pop();
            if !found.is_empty() {
                return found
                    .into_iter()
                    .map(|it| Found {
                        way: Way::Import,
                        ..it
                    })
                    .collect();
            }
        }
        Vec::new()
    }

    /// What a module has under a name, for others.
    pub(super) fn in_module(&self, module: &Module, name: &str, depth: u8) -> Vec<Found> {
        if depth > IMPORT_DEPTH_MAX {
            return Vec::new();
        }
        match module {
            Module::File(f) => self.of_file(*f, name, depth),
            Module::Inline(sym) => {
                let Some(family) = self.family(sym.file) else {
                    return Vec::new();
                };
                self.in_inline(*sym, name, family)
            }
            Module::Folder(path) => self.of_folder(path, name),
            Module::Package(package) => self.of_package(package, name),
        }
    }

    fn of_file(&self, f: u32, name: &str, depth: u8) -> Vec<Found> {
        let file = self.file(f);
        let Some(family) = file.family else {
            return Vec::new();
        };
        if family == Family::Script {
            return self.exported(f, name, depth);
        }
        let here = file.named(None, name);
        if !here.is_empty() {
            let here = match family {
                Family::Python => &here[here.len() - 1..],
                _ => here,
            };
            return self.symbols(f, here, Way::Import);
        }
        if family == Family::Rust
            && let Some(child) = self.tree.rust_child(file.path, name)
        {
            return vec![Found::new(Thing::Module(Module::File(child)), Way::Import)];
        }
        let found = self.in_imports(f, None, name, depth);
        if !found.is_empty() {
            return found;
        }
        if family == Family::Python {
            if file.path.ends_with("__init__.py") {
                let path = super::modules::join(super::modules::folder(file.path), name);
                if let Some(module) = self.tree.python_at(&path) {
                    return vec![Found::new(Thing::Module(module), Way::Import)];
                }
            }
            let bindings: Vec<&'a Binding> = file.bound(None, name).collect();
            if let Some(last) = bindings.last() {
                return self.of_binding(self.at(f, None, last.line), last);
            }
        }
        self.in_stars(f, None, name, depth)
    }

    /// What a script exports under a name.
    fn exported(&self, f: u32, name: &str, depth: u8) -> Vec<Found> {
        let file = self.file(f);
        let places = file.imports.get(name).map_or(&[][..], Vec::as_slice);
        for n in places {
            let import = file.facts.imports.get(*n as usize);
            if import.is_some_and(|it| it.is_exported) {
                let found = self.imported(f, *n, depth + 1);
                if !found.is_empty() {
                    return found;
                }
            }
        }
        let here = file.named(None, name);
        if !here.is_empty() {
            return self.symbols(f, here, Way::Import);
        }
        for (n, import) in (0..).zip(&file.facts.imports) {
            if import.is_exported && import.name.as_deref() == Some("*") {
                let key = (f, n, 1);
                if self.active.borrow().contains(&key) {
                    continue;
                }
                self.active.borrow_mut().push(key);
                let module = self.module(f, None, &import.module, depth + 1);
                let found = match module {
                    Some(Thing::Module(module)) => self.in_module(&module, name, depth + 1),
                    _ => Vec::new(),
                };
                self.active.borrow_mut().pop();
                if !found.is_empty() {
                    return found;
                }
            }
        }
        Vec::new()
    }

    /// The type that is written, as one of the repository.
    pub(super) fn type_symbol(&self, ty: &Type, at: At) -> Option<Sym> {
        match self.resolve_type(ty, at, 0)?.of {
            Of::Symbol(sym) => Some(sym),
            _ => None,
        }
    }
}

/// Nothing that is known: it stands for itself, so that nothing else is taken for it.
pub(super) fn unknown() -> Thing {
    Thing::Value(Ty {
        of: Of::Union,
        args: Vec::new(),
    })
}

/// A value of a type, or the type itself where that is what is written.
pub(super) fn value_of(ty: Ty) -> Thing {
    match (&ty.of, ty.args.first()) {
        (
            Of::Class,
            Some(Ty {
                of: Of::Symbol(sym),
                ..
            }),
        ) => Thing::Symbol(*sym),
        (
            Of::Class,
            Some(Ty {
                of: Of::External(name),
                ..
            }),
        ) => Thing::External(name.clone()),
        _ => Thing::Value(ty),
    }
}

/// A method of the object itself; a field has a type of its own.
fn of_receiver(found: Found) -> Found {
    let way = match found.thing {
        Thing::Value(_) => found.way,
        _ => Way::Receiver,
    };
    Found { way, ..found }
}
