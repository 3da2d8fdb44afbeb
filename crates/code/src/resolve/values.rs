//! What expressions are, and the members of types.

use super::Sym;
use super::externals;
use super::file::Family;
use super::index::Project;
use super::names::{unknown, value_of};
use super::types::{At, DEPTH_MAX, Found, Of, Thing, Ty, Way, is_nothing, nothing};
use crate::facts::{Expr, SymbolKind, Type};

/// And so many steps in all for one expression.
const STEPS_MAX: u32 = 2_000;
/// And so many evaluations stand within each other, whatever leads from one to the next: a thread's stack
/// has an end.
const NESTING_MAX: u32 = 32;
/// An expression that could be more things than this could be anything.
const FOUND_MAX: usize = 8;

impl Project<'_> {
    /// What an expression is, where it stands.
    pub(super) fn eval(&self, expr: &Expr, at: At, depth: u8) -> Vec<Found> {
        let (steps, nesting) = (self.steps.get(), self.nesting.get());
        if depth > DEPTH_MAX || steps > STEPS_MAX || nesting > NESTING_MAX {
            return Vec::new();
        }
        self.steps.set(steps + 1);
        self.nesting.set(nesting + 1);
        let found = self.eval_once(expr, at, depth);
        self.nesting.set(nesting);
        found
    }

    fn eval_once(&self, expr: &Expr, at: At, depth: u8) -> Vec<Found> {
        let mut found = match expr {
            Expr::Name(name) => self.name(name, at, depth),
            Expr::Path(name) => {
                let at = At {
                    is_path: true,
                    ..at
                };
                self.name(name, at, depth)
            }
            Expr::Member(of, name) => {
                let all = self.eval_read(of, at, depth + 1);
                all.iter()
                    .flat_map(|it| self.member(it, name, depth + 1))
                    .collect()
            }
            Expr::Call(of) => match &**of {
                Expr::Super | Expr::This => Vec::new(),
                _ => {
                    let all = self.eval(of, at, depth + 1);
                    let found: Vec<Found> = all
                        .iter()
                        .flat_map(|it| self.called(it, at, depth + 1))
                        .collect();
                    match (&**of, self.family(at.file)) {
                        // A type of the repository that derives it.
                        (Expr::Member(of, name), Some(Family::Rust))
                            if all.is_empty() && externals::gives_itself(name) =>
                        {
                            self.eval_read(of, at, depth + 1)
                        }
                        _ => found,
                    }
                }
            },
            Expr::New(ty) | Expr::Typed(ty) => {
                let ty = self.resolve_type(ty, at, depth + 1);
                let way = Way::Type;
                ty.map(|it| Found::new(value_of(it), way))
                    .into_iter()
                    .collect()
            }
            Expr::This => {
                let of = self.this(at).map(|it| self.with_own_args(it));
                of.map(|it| Found::new(Thing::Value(it), Way::Receiver))
                    .into_iter()
                    .collect()
            }
            Expr::Super => match self.this(at) {
                Some(of) => {
                    let bases = self.bases(of);
                    let first = bases
                        .iter()
                        .map(|it| Found::new(Thing::Value(it.clone()), Way::Receiver));
                    first.collect()
                }
                None => Vec::new(),
            },
            Expr::Element(of) => {
                let all = self.eval_read(of, at, depth + 1);
                all.iter().filter_map(|it| element(it, 0)).collect()
            }
            Expr::Pick(of, place) => {
                let all = self.eval(of, at, depth + 1);
                all.iter().filter_map(|it| pick(it, *place)).collect()
            }
            Expr::Await(of) => {
                let all = self.eval(of, at, depth + 1);
                all.into_iter().map(|it| awaited(&it)).collect()
            }
            Expr::In(n, value) => self.eval(
                value,
                At {
                    scope: Some(*n),
                    line: u32::MAX,
                    ..at
                },
                depth + 1,
            ),
            Expr::Lambda(gives) => {
                let gives = gives.as_ref().map(|it| self.eval(it, at, depth + 1));
                let gives = gives
                    .unwrap_or_default()
                    .into_iter()
                    .find_map(|it| match it.thing {
                        Thing::Value(ty) => Some(ty),
                        _ => None,
                    });
                let ty = Ty {
                    of: Of::Function,
                    args: gives.into_iter().collect(),
                };
                vec![Found::new(Thing::Value(ty), Way::Scope)]
            }
            Expr::Literal(name) => {
                vec![Found::new(
                    Thing::Value(Ty::external(name.as_str())),
                    Way::Type,
                )]
            }
            Expr::Unknown => Vec::new(),
        };
        if found.len() > FOUND_MAX {
            found.clear();
        }
        found
    }

    /// The same, where a property with code is what it gives.
    pub(super) fn eval_read(&self, expr: &Expr, at: At, depth: u8) -> Vec<Found> {
        let found = self.eval(expr, at, depth);
        let is_property = |it: &Found| match it.thing {
            Thing::Symbol(sym) => self.symbol(sym).is_some_and(|it| it.is_property),
            _ => false,
        };
        if !found.iter().any(is_property) {
            return found;
        }
        let read = |it: Found| match is_property(&it) {
            true => self.called(&it, at, depth + 1),
            // Beside one that is read stands the one that sets it.
            false => Vec::new(),
        };
        found.into_iter().flat_map(read).collect()
    }

    fn name(&self, name: &str, at: At, depth: u8) -> Vec<Found> {
        let family = self.family(at.file);
        match (name, family) {
            ("__class__", Some(Family::Python)) | ("Self", Some(Family::Rust)) => {
                let of = self.this(at);
                return of
                    .map(|it| Found::new(Thing::Symbol(it), Way::Receiver))
                    .into_iter()
                    .collect();
            }
            ("self" | "static" | "parent", Some(Family::Php)) => {
                let of = self.this(at);
                let of = match name {
                    "parent" => {
                        of.and_then(|it| match self.bases(it).first().map(|it| it.of.clone()) {
                            Some(Of::Symbol(sym)) => Some(sym),
                            _ => None,
                        })
                    }
                    _ => of,
                };
                return of
                    .map(|it| Found::new(Thing::Symbol(it), Way::Receiver))
                    .into_iter()
                    .collect();
            }
            _ => {}
        }
        let _ = depth;
        self.lookup(at, name)
    }

    /// The type whose method the place is in.
    pub(super) fn this(&self, at: At) -> Option<Sym> {
        let file = self.file(at.file);
        let mut scope = at.scope;
        while let Some(n) = scope {
            let symbol = file.symbol(n)?;
            if symbol.kind.is_type() {
                return Some(Sym { file: at.file, n });
            }
            if let Some(owner) = &symbol.owner {
                let place = self.at(at.file, symbol.parent, symbol.line);
                return self.type_symbol(owner, place);
            }
            // A function of an object that has a name.
            let parent = symbol.parent.and_then(|it| file.symbol(it));
            if symbol.kind == SymbolKind::Method
                && parent.is_some_and(|it| it.kind == SymbolKind::Constant)
            {
                return symbol.parent.map(|n| Sym { file: at.file, n });
            }
            scope = symbol.parent;
        }
        None
    }

    fn with_own_args(&self, of: Sym) -> Ty {
        Ty::symbol(of)
    }

    /// A type that is written.
    pub(super) fn resolve_type(&self, ty: &Type, at: At, depth: u8) -> Option<Ty> {
        if depth > DEPTH_MAX {
            return None;
        }
        let args = || -> Vec<Ty> {
            let all = ty.args.iter();
            all.map(|it| self.resolve_type(it, at, depth + 1).unwrap_or_else(nothing))
                .collect()
        };
        match ty.name.as_str() {
            "" => return None,
            "()" => {
                return Some(Ty {
                    of: Of::Tuple,
                    args: args(),
                });
            }
            "|" => {
                return Some(Ty {
                    of: Of::Union,
                    args: args(),
                });
            }
            "=>" => {
                return Some(Ty {
                    of: Of::Function,
                    args: args(),
                });
            }
            "type" => {
                return Some(Ty {
                    of: Of::Class,
                    args: args(),
                });
            }
            "typeof" => {
                let of = ty.args.first()?;
                let found = self.dotted(&of.name, at, depth + 1)?;
                return match found {
                    Thing::Symbol(sym) => Some(Ty {
                        of: Of::Class,
                        args: vec![Ty::symbol(sym)],
                    }),
                    Thing::Value(ty) => Some(ty),
                    _ => None,
                };
            }
            "[]" | "map" | "chan" => {
                return Some(Ty {
                    of: Of::External(ty.name.clone()),
                    args: args(),
                });
            }
            "Self" | "this" | "static" => {
                return self.this(at).map(Ty::symbol);
            }
            _ => {}
        }
        let found = self.dotted(&ty.name, at, depth + 1);
        let of = match found {
            Some(Thing::Symbol(sym)) => {
                let symbol = self.symbol(sym)?;
                if symbol.kind == SymbolKind::TypeAlias {
                    let target = symbol.returns.as_ref()?;
                    let place = self.at(sym.file, symbol.parent, symbol.line);
                    let guard = (sym.file, sym.n, 2);
                    if self.active.borrow().contains(&guard) {
                        return None;
                    }
                    self.active.borrow_mut().push(guard);
                    let mut target = self.resolve_type(target, place, depth + 1);
                    self.active.borrow_mut().pop();
                    // `type Result<T> = std::result::Result<T, Error>`
                    if let Some(target) = &mut target
                        && !ty.args.is_empty()
                    {
                        let own = args();
                        for (n, generic) in symbol.generics.iter().enumerate() {
                            let written = symbol.returns.as_ref();
                            let written = written.and_then(|it| {
                                it.args.iter().position(|it| it.name == generic.name)
                            });
                            if let (Some(place), Some(arg)) = (written, own.get(n))
                                && let Some(slot) = target.args.get_mut(place)
                            {
                                *slot = arg.clone();
                            }
                        }
                    }
                    return target;
                }
                if !symbol.kind.is_type() && symbol.kind != SymbolKind::Constant {
                    return None;
                }
                Of::Symbol(sym)
            }
            Some(Thing::External(name)) => Of::External(name),
            Some(Thing::Value(ty)) => {
                return Some(ty).filter(|it| it.of != Of::Union || !it.args.is_empty());
            }
            Some(Thing::Module(_)) | None => Of::External(ty.name.clone()),
        };
        Some(Ty { of, args: args() })
    }

    /// A name with parts.
    pub(super) fn dotted(&self, name: &str, at: At, depth: u8) -> Option<Thing> {
        let mut parts = name.split('.');
        let first = parts.next()?;
        let family = self.family(at.file);
        // A type has the name of another thing at times: types first.
        let place = At {
            is_path: at.is_path || family == Some(Family::Rust),
            ..at
        };
        let found = self.name(first, place, depth);
        let is_type = |it: &&Found| match &it.thing {
            Thing::Symbol(sym) => self.symbol(*sym).is_some_and(|it| it.kind.is_type()),
            _ => false,
        };
        let chosen = found.iter().find(is_type).or(found.first());
        let mut thing = match chosen {
            Some(found) => found.thing.clone(),
            None if name.contains('.')
                && matches!(family, Some(Family::Jvm | Family::CSharp | Family::Php)) =>
            {
                // A type by its whole name.
                return self.module(at.file, at.scope, name, 1);
            }
            None => return None,
        };
        for part in parts {
            let of = Found::new(thing, Way::Scope);
            thing = self.member(&of, part, depth + 1).into_iter().next()?.thing;
        }
        Some(thing)
    }

    /// What a call of this gives.
    pub(super) fn called(&self, of: &Found, at: At, depth: u8) -> Vec<Found> {
        if depth > DEPTH_MAX {
            return Vec::new();
        }
        let value = |ty: Ty| Found {
            thing: value_of(ty),
            way: of.way.max(Way::Type),
            share: of.share,
            of: None,
        };
        match &of.thing {
            Thing::Symbol(sym) => {
                let Some(symbol) = self.symbol(*sym) else {
                    return Vec::new();
                };
                if symbol.kind.is_type() {
                    return vec![value(Ty::symbol(*sym))];
                }
                if symbol.kind == SymbolKind::Constant {
                    let values = self.constant(*sym, depth + 1);
                    return values
                        .iter()
                        .flat_map(|it| self.called(it, at, depth + 1))
                        .collect();
                }
                self.returned(*sym, of, depth).into_iter().collect()
            }
            Thing::Value(ty) => match &ty.of {
                Of::Function => ty
                    .args
                    .first()
                    .map(|it| value(it.clone()))
                    .into_iter()
                    .collect(),
                Of::Class => ty
                    .args
                    .first()
                    .map(|it| value(it.clone()))
                    .into_iter()
                    .collect(),
                _ => Vec::new(),
            },
            Thing::External(name) => {
                let last = name.rsplit('.').next().unwrap_or_default();
                match (&of.of, externals::gives(last, self.family(at.file))) {
                    (Some(ty), Some(externals::Gives::Same)) => vec![value(ty.clone())],
                    (Some(ty), Some(externals::Gives::Numbered)) => {
                        let held = Found::new(Thing::Value(ty.clone()), of.way);
                        let inner = element(&held, 0).map(|it| it.thing);
                        let Some(Thing::Value(inner)) = inner else {
                            return Vec::new();
                        };
                        let pair = Ty {
                            of: Of::Tuple,
                            args: vec![Ty::external("usize"), inner],
                        };
                        vec![value(Ty {
                            of: Of::External("[]".to_owned()),
                            args: vec![pair],
                        })]
                    }
                    (Some(ty), Some(externals::Gives::Inner)) => {
                        let held = Found::new(Thing::Value(ty.clone()), of.way);
                        element(&held, 0).into_iter().collect()
                    }
                    // A type that is called gives a value of it.
                    _ if last.starts_with(char::is_uppercase) => {
                        vec![value(Ty::external(name.as_str()))]
                    }
                    _ => Vec::new(),
                }
            }
            Thing::Module(_) => Vec::new(),
        }
    }

    /// What a function gives.
    fn returned(&self, sym: Sym, of: &Found, depth: u8) -> Option<Found> {
        let symbol = self.symbol(sym)?;
        let at = self.at(sym.file, Some(sym.n), symbol.line_end);
        let guard = (sym.file, sym.n, 5);
        if self.active.borrow().contains(&guard) {
            return None;
        }
        self.active.borrow_mut().push(guard);
        let found = match &symbol.returns {
            Some(written) => {
                let receiver = of.of.as_ref().filter(|it| matches!(it.of, Of::Symbol(_)));
                let holder = receiver.and_then(|it| match it.of {
                    Of::Symbol(holder) => Some((it, holder)),
                    _ => None,
                });
                let substituted =
                    holder.and_then(|(ty, holder)| self.substituted(written, ty, holder));
                let is_self = matches!(written.name.as_str(), "Self" | "this" | "static");
                let own = receiver.filter(|_| is_self).cloned();
                let ty = own
                    .or(substituted)
                    .or_else(|| self.resolve_type(written, at, depth + 1));
                ty.map(|it| (value_of(it), Way::Type))
            }
            None => {
                let file = self.file(sym.file);
                let values: Vec<_> = file.bound(Some(sym.n), "return").collect();
                let mut things: Vec<Thing> = Vec::new();
                for it in values {
                    let place = At {
                        line: it.line,
                        ..at
                    };
                    let found = it.value.as_ref().map(|it| self.eval(it, place, depth + 1));
                    for it in found.unwrap_or_default() {
                        let is_known = it.thing != unknown() && !is_nothing(&it.thing);
                        if is_known && !things.contains(&it.thing) {
                            things.push(it.thing);
                        }
                    }
                }
                // Only what all of them say.
                match things.len() {
                    1 => things.pop().map(|it| (it, Way::Inferred)),
                    _ => None,
                }
            }
        };
        self.active.borrow_mut().pop();
        found.map(|(thing, way)| Found {
            thing,
            way: of.way.max(way),
            share: of.share,
            of: None,
        })
    }
}

/// An element of a collection, or what an option holds.
fn element(of: &Found, place: usize) -> Option<Found> {
    let Thing::Value(ty) = &of.thing else {
        return None;
    };
    let inner = match &ty.of {
        Of::External(name) => {
            let last = name.rsplit('.').next().unwrap_or_default();
            // The values of a map, not its keys.
            let place = match last {
                "Map" | "HashMap" | "BTreeMap" | "Record" | "dict" | "Dict"
                    if ty.args.len() == 2 =>
                {
                    1
                }
                _ => place,
            };
            ty.args.get(place)
        }
        Of::Union | Of::Tuple => ty.args.first().filter(|_| ty.args.len() == 1),
        _ => None,
    }?;
    Some(Found {
        thing: value_of(inner.clone()),
        ..of.clone()
    })
}

fn pick(of: &Found, place: u32) -> Option<Found> {
    let Thing::Value(ty) = &of.thing else {
        return None;
    };
    let inner = match &ty.of {
        Of::Tuple => ty.args.get(place as usize),
        Of::External(name) if name == "[]" || name == "Array" => ty.args.first(),
        Of::External(name) if name.eq_ignore_ascii_case("tuple") => ty.args.get(place as usize),
        _ => None,
    }?;
    Some(Found {
        thing: value_of(inner.clone()),
        ..of.clone()
    })
}

fn awaited(of: &Found) -> Found {
    let Thing::Value(ty) = &of.thing else {
        return of.clone();
    };
    let last = match &ty.of {
        Of::External(name) => name.rsplit('.').next().unwrap_or_default(),
        _ => "",
    };
    match (last, ty.args.last()) {
        (
            "Promise" | "PromiseLike" | "Future" | "Task" | "Awaitable" | "Coroutine",
            Some(inner),
        ) => Found {
            thing: value_of(inner.clone()),
            ..of.clone()
        },
        _ => of.clone(),
    }
}
