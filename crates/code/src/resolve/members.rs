//! Members of modules, types and values.

use super::Sym;
use super::externals;
use super::index::Project;
use super::modules::Module;
use super::names::{unknown, value_of};
use super::types::{DEPTH_MAX, Found, Of, Thing, Ty, Way, is_nothing, nothing};
use crate::facts::{Inherits, SymbolKind, Type};
use std::rc::Rc;

/// Types are inherited over so many levels.
const INHERIT_DEPTH_MAX: u8 = 12;

impl Project<'_> {
    /// A member of what an expression is.
    pub(super) fn member(&self, of: &Found, name: &str, depth: u8) -> Vec<Found> {
        if depth > DEPTH_MAX {
            return Vec::new();
        }
        let found = match &of.thing {
            Thing::Module(module) => {
                if name == "super" || name == "self" {
                    // A path of Rust goes up.
                    let parent = match module {
                        Module::File(f) => {
                            self.tree.rust_parent(self.file(*f).path).map(Module::File)
                        }
                        Module::Inline(sym) => self
                            .symbol(*sym)
                            .map(|it| self.rust_module(sym.file, it.parent)),
                        _ => None,
                    };
                    let thing = match name {
                        "self" => Some(of.thing.clone()),
                        _ => parent.map(Thing::Module),
                    };
                    return thing
                        .map(|it| Found::new(it, Way::Import))
                        .into_iter()
                        .collect();
                }
                self.in_module(module, name, 1)
                    .into_iter()
                    .map(|it| Found {
                        way: Way::Import,
                        ..it
                    })
                    .collect()
            }
            Thing::External(outer) => vec![Found::new(
                Thing::External(format!("{outer}.{name}")),
                of.way,
            )],
            Thing::Symbol(sym) => self.member_of_symbol(*sym, name, of, depth),
            Thing::Value(ty) => self
                .member_of_type(ty, name, depth)
                .into_iter()
                .map(|it| Found {
                    way: match (of.way, &it.thing) {
                        (Way::Inferred, _) => Way::Inferred,
                        (Way::Receiver, Thing::Value(_)) => it.way,
                        (Way::Receiver, _) => Way::Receiver,
                        _ => it.way.max(Way::Type),
                    },
                    ..it
                })
                .collect(),
        };
        found
            .into_iter()
            .map(|it| Found {
                share: it.share * of.share,
                ..it
            })
            .collect()
    }

    fn member_of_symbol(&self, sym: Sym, name: &str, of: &Found, depth: u8) -> Vec<Found> {
        let Some(symbol) = self.symbol(sym) else {
            return Vec::new();
        };
        match symbol.kind {
            SymbolKind::Module => self.in_module(&Module::Inline(sym), name, 1),
            SymbolKind::TypeAlias => {
                let place = self.at(sym.file, symbol.parent, symbol.line);
                let target = symbol.returns.as_ref();
                let target = target.and_then(|it| self.resolve_type(it, place, depth + 1));
                target.map_or_else(Vec::new, |it| self.member_of_type(&it, name, depth + 1))
            }
            SymbolKind::Constant => {
                let found = self.member_of_type(&Ty::symbol(sym), name, depth + 1);
                let known = found.iter().any(|it| it.thing != unknown());
                if known {
                    return found
                        .into_iter()
                        .map(|it| Found { way: of.way, ..it })
                        .collect();
                }
                let values = self.constant(sym, depth + 1);
                values
                    .iter()
                    .flat_map(|it| self.member(it, name, depth + 1))
                    .collect()
            }
            kind if kind.is_function() => {
                // In scripts functions have members; in C++ and PHP a path leads through them not.
                let outside = self.outside.get(&sym).and_then(|it| it.get(name));
                let outside = outside.cloned().unwrap_or_default();
                super::packages::shared(outside, of.way)
            }
            _ => {
                let nested = self.file(sym.file).named(Some(sym.n), name);
                let is_type = |n: &&u32| {
                    let symbol = self.file(sym.file).symbol(**n);
                    symbol.is_some_and(|it| it.kind.is_type())
                };
                if let Some(n) = nested.iter().find(is_type) {
                    return vec![Found::new(
                        Thing::Symbol(Sym {
                            file: sym.file,
                            n: *n,
                        }),
                        of.way,
                    )];
                }
                let way = of.way;
                self.member_of_type(&Ty::symbol(sym), name, depth + 1)
                    .into_iter()
                    .map(|it| Found { way, ..it })
                    .collect()
            }
        }
    }

    /// What a constant is.
    pub(super) fn constant(&self, sym: Sym, depth: u8) -> Vec<Found> {
        let Some(symbol) = self.symbol(sym) else {
            return Vec::new();
        };
        let guard = (sym.file, sym.n, 3);
        if self.active.borrow().contains(&guard) || depth > DEPTH_MAX {
            return Vec::new();
        }
        self.active.borrow_mut().push(guard);
        let at = self.at(sym.file, symbol.parent, symbol.line);
        let found = match &symbol.returns {
            Some(ty) => {
                let ty = self.resolve_type(ty, at, depth + 1);
                ty.map(|it| Found::new(value_of(it), Way::Type))
                    .into_iter()
                    .collect()
            }
            None => {
                let file = self.file(sym.file);
                let value = file
                    .bound(symbol.parent, &symbol.name)
                    .last()
                    .and_then(|it| it.value.as_ref());
                value.map_or_else(Vec::new, |it| self.eval(it, at, depth + 1))
            }
        };
        self.active.borrow_mut().pop();
        found
    }

    /// A member of a value of a type: a method as it is, a field as its value.
    pub(super) fn member_of_type(&self, ty: &Ty, name: &str, depth: u8) -> Vec<Found> {
        match &ty.of {
            Of::Symbol(sym) => self.member_inherited(ty, *sym, name, depth, 0).0,
            Of::External(outer) => {
                if externals::is_wrapper(outer)
                    && let Some(inner) = ty.args.first()
                {
                    let found = self.member_of_type(inner, name, depth + 1);
                    if !found.is_empty() {
                        return found;
                    }
                }
                let of = Some(ty.clone());
                vec![Found {
                    of,
                    ..Found::new(Thing::External(format!("{outer}.{name}")), Way::Type)
                }]
            }
            Of::Union => {
                let known: Vec<&Ty> = ty.args.iter().filter(|it| **it != nothing()).collect();
                let share = 1.0 / known.len().max(1) as f32;
                let all = known
                    .into_iter()
                    .flat_map(|it| self.member_of_type(it, name, depth + 1));
                all.map(|it| Found {
                    share: it.share * share,
                    ..it
                })
                .collect()
            }
            Of::Class => {
                let of = ty.args.first();
                of.map_or_else(Vec::new, |it| self.member_of_type(it, name, depth + 1))
            }
            Of::Tuple => match name.parse::<usize>() {
                Ok(place) => {
                    let of = ty.args.get(place).cloned();
                    of.map(|it| Found::new(Thing::Value(it), Way::Type))
                        .into_iter()
                        .collect()
                }
                Err(_) => Vec::new(),
            },
            Of::Function => Vec::new(),
        }
    }

    /// A member of a type or of what it inherits; and whether everything that is inherited is known.
    fn member_inherited(
        &self,
        ty: &Ty,
        sym: Sym,
        name: &str,
        depth: u8,
        level: u8,
    ) -> (Vec<Found>, bool) {
        if level > INHERIT_DEPTH_MAX {
            return (Vec::new(), true);
        }
        let file = self.file(sym.file);
        let is_member = |n: &&u32| {
            let symbol = file.symbol(**n);
            symbol.is_some_and(|it| it.kind != SymbolKind::Constant)
        };
        let inside = file.named(Some(sym.n), name).iter().filter(is_member);
        let mut own: Vec<Sym> = inside
            .map(|n| Sym {
                file: sym.file,
                n: *n,
            })
            .collect();
        let outside = self.outside.get(&sym).and_then(|it| it.get(name));
        own.extend(outside.into_iter().flatten());
        if !own.is_empty() {
            let found = super::packages::shared(own, Way::Type);
            let found = found.into_iter().map(|it| Found {
                of: Some(ty.clone()),
                ..it
            });
            return (found.collect(), true);
        }
        if let Some(found) = self.field(ty, sym, name, depth) {
            return (vec![found], true);
        }
        // Constants that are members: a name of the type's own.
        let constants = file.named(Some(sym.n), name);
        if !constants.is_empty() {
            let all = constants
                .iter()
                .map(|n| Sym {
                    file: sym.file,
                    n: *n,
                })
                .collect();
            return (super::packages::shared(all, Way::Type), true);
        }
        let mut is_known = true;
        let mut foreign = None;
        for base in self.bases(sym).iter() {
            match &base.of {
                Of::Symbol(base_sym) if *base_sym != sym => {
                    let (found, known) =
                        self.member_inherited(base, *base_sym, name, depth, level + 1);
                    if !found.is_empty() {
                        return (found, known);
                    }
                    is_known &= known;
                }
                Of::External(outer) => {
                    is_known = false;
                    foreign.get_or_insert(outer.clone());
                }
                _ => {}
            }
        }
        for base in self.traits.get(&sym).map_or(&[][..], Vec::as_slice) {
            let (found, known) =
                self.member_inherited(&Ty::symbol(*base), *base, name, depth, level + 1);
            if !found.is_empty() {
                return (found, known);
            }
        }
        match foreign {
            Some(outer) if level == 0 => {
                let thing = Thing::External(format!("{outer}.{name}"));
                (vec![Found::new(thing, Way::Type)], false)
            }
            _ => (Vec::new(), is_known),
        }
    }

    /// A field of a type, as its value.
    fn field(&self, ty: &Ty, sym: Sym, name: &str, depth: u8) -> Option<Found> {
        let file = self.file(sym.file);
        let all: Vec<_> = file.field(sym.n, name).collect();
        if all.is_empty() {
            return None;
        }
        let at = self.at(sym.file, Some(sym.n), u32::MAX);
        let guard = (sym.file, sym.n, 4);
        if self
            .active
            .borrow()
            .iter()
            .filter(|it| **it == guard)
            .count()
            > 2
            || depth > DEPTH_MAX
        {
            return Some(Found::new(unknown(), Way::Type));
        }
        self.active.borrow_mut().push(guard);
        let written = all.iter().find_map(|it| it.ty.as_ref());
        let found = match written {
            Some(written) => {
                let substituted = self.substituted(written, ty, sym);
                let found = substituted.or_else(|| self.resolve_type(written, at, depth + 1));
                found.map(|it| Found::new(value_of(it), Way::Type))
            }
            None => {
                let values = all.iter().filter_map(|it| it.value.as_ref());
                let mut found = values.flat_map(|it| self.eval(it, at, depth + 1));
                let found = found.find(|it| it.thing != unknown() && !is_nothing(&it.thing));
                found.map(|it| Found {
                    way: it.way.max(Way::Inferred),
                    ..it
                })
            }
        };
        self.active.borrow_mut().pop();
        Some(found.unwrap_or_else(|| Found::new(unknown(), Way::Type)))
    }

    /// A type parameter of a type, as what it stands for in a value of that type.
    pub(super) fn substituted(&self, written: &Type, of: &Ty, sym: Sym) -> Option<Ty> {
        let symbol = self.symbol(sym)?;
        let place = symbol
            .generics
            .iter()
            .position(|it| it.name == written.name)?;
        of.args.get(place).cloned().filter(|it| *it != nothing())
    }

    /// What a type inherits.
    pub(super) fn bases(&self, sym: Sym) -> Rc<Vec<Ty>> {
        if let Some(known) = self.bases.borrow().get(&sym) {
            return Rc::clone(known);
        }
        // Whoever asks again while this is found out gets nothing.
        self.bases.borrow_mut().insert(sym, Rc::default());
        let mut all = Vec::new();
        if let Some(symbol) = self.symbol(sym) {
            let at = self.at(sym.file, symbol.parent, symbol.line);
            for how in [Inherits::Extends, Inherits::Implements] {
                let bases = symbol.bases.iter().filter(|it| it.0 == how);
                all.extend(bases.filter_map(|it| self.resolve_type(&it.1, at, 0)));
            }
        }
        let all = Rc::new(all);
        self.bases.borrow_mut().insert(sym, Rc::clone(&all));
        all
    }
}
