//! What imports and packages mean in each language.

use super::Sym;
use super::file::Family;
use super::index::Project;
use super::modules::{Module, folder, join, nearness};
use super::types::{At, Found, Thing, Way};

impl Project<'_> {
    /// The module that an import names.
    pub(super) fn module(
        &self,
        f: u32,
        scope: Option<u32>,
        module: &str,
        depth: u8,
    ) -> Option<Thing> {
        let file = self.file(f);
        match file.family? {
            Family::Script => {
                let found = self.tree.script(&self.files, file.path, module);
                Some(match found {
                    Some(found) => Thing::Module(Module::File(found)),
                    None if module.starts_with('.') => return None,
                    None => Thing::External(module.to_owned()),
                })
            }
            Family::Python => {
                let found = self.tree.python(file.path, module).map(Thing::Module);
                match found {
                    None if module.starts_with('.') => None,
                    // A part of something that is here is missing, not outside.
                    None if self.has_python_root(file.path, module) => None,
                    None => Some(Thing::External(module.to_owned())),
                    found => found,
                }
            }
            Family::Go => {
                let found = self.tree.go(module).map(Module::Folder);
                Some(found.map_or_else(|| Thing::External(module.to_owned()), Thing::Module))
            }
            Family::Rust => self.rust_path(f, scope, module, depth),
            Family::Jvm | Family::CSharp | Family::Php => self.package(f, module),
            Family::C | Family::Bash | Family::Ruby => {
                let near = join(folder(file.path), module);
                let ending = format!("/{module}");
                let found = self
                    .tree
                    .path(&near)
                    .or_else(|| self.tree.path(&format!("{near}.rb")));
                let found = found.or_else(|| {
                    let mut all = (0..)
                        .zip(&self.files)
                        .filter(|it| it.1.path.ends_with(&ending));
                    let first = all.next()?;
                    all.next().is_none().then_some(first.0)
                });
                Some(found.map_or_else(
                    || Thing::External(module.to_owned()),
                    |it| Thing::Module(Module::File(it)),
                ))
            }
            Family::Sql => None,
        }
    }

    fn has_python_root(&self, path: &str, module: &str) -> bool {
        let root = module.split('.').next().unwrap_or_default();
        root != module && self.tree.python(path, root).is_some()
    }

    /// A package, or a type whose members are imported.
    fn package(&self, f: u32, module: &str) -> Option<Thing> {
        let family = self.family(f)?;
        let is_package = |it: &str| self.tree.by_package.contains_key(&(family, it));
        if is_package(module) {
            return Some(Thing::Module(Module::Package(module.to_owned())));
        }
        // `a.b.Type` or `a.b.Type.Inner`
        let (outer, name) = module.rsplit_once('.')?;
        match self.package(f, outer) {
            Some(Thing::Module(outer)) => {
                let found = self.in_module(&outer, name, 1).into_iter().next();
                found.map(|it| it.thing)
            }
            Some(Thing::Symbol(of)) => {
                let found = self.file(of.file).named(Some(of.n), name).first();
                found.map(|n| {
                    Thing::Symbol(Sym {
                        file: of.file,
                        n: *n,
                    })
                })
            }
            _ => None,
        }
        .or_else(|| Some(Thing::External(module.to_owned())))
    }

    /// A path of Rust, from a module.
    fn rust_path(&self, f: u32, scope: Option<u32>, path: &str, depth: u8) -> Option<Thing> {
        let mut parts = path.split('.');
        let first = parts.next()?;
        let mut thing = self.rust_first(f, scope, first, depth)?;
        for part in parts {
            thing = match (&thing, part) {
                (Thing::Module(module), "super") => self.rust_super(module)?,
                (Thing::Module(_), "self") => thing,
                (Thing::Module(module), _) => {
                    let found = self.in_module(module, part, depth + 1).into_iter().next();
                    found?.thing
                }
                (Thing::External(of), _) => Thing::External(format!("{of}.{part}")),
                _ => {
                    let of = Found::new(thing.clone(), Way::Import);
                    self.member(&of, part, 0).into_iter().next()?.thing
                }
            };
        }
        Some(thing)
    }

    /// The module of Rust that a scope stands in.
    pub(super) fn rust_module(&self, f: u32, scope: Option<u32>) -> Module {
        let file = self.file(f);
        let mut at = scope;
        while let Some(n) = at {
            match file.symbol(n) {
                Some(it) if it.kind == crate::facts::SymbolKind::Module => {
                    return Module::Inline(Sym { file: f, n });
                }
                Some(it) => at = it.parent,
                None => break,
            }
        }
        Module::File(f)
    }

    fn rust_super(&self, module: &Module) -> Option<Thing> {
        let up = match module {
            Module::Inline(sym) => {
                let parent = self.symbol(*sym)?.parent;
                self.rust_module(sym.file, parent)
            }
            Module::File(f) => Module::File(self.tree.rust_parent(self.file(*f).path)?),
            Module::Folder(_) | Module::Package(_) => return None,
        };
        Some(Thing::Module(up))
    }

    /// The first part of a path of Rust.
    pub(super) fn rust_first(
        &self,
        f: u32,
        scope: Option<u32>,
        name: &str,
        depth: u8,
    ) -> Option<Thing> {
        let here = self.rust_module(f, scope);
        match name {
            "crate" | "$crate" => {
                let root = self.tree.rust_root(&self.files, f);
                return Some(Thing::Module(Module::File(root)));
            }
            "self" => return Some(Thing::Module(here)),
            "super" => return self.rust_super(&here),
            _ => {}
        }
        let found = self.in_module(&here, name, depth + 1).into_iter().next();
        if let Some(found) = found {
            return Some(found.thing);
        }
        match self.tree.rust_crate(name) {
            Some(root) => Some(Thing::Module(Module::File(root))),
            None => Some(Thing::External(name.to_owned())),
        }
    }

    /// What a folder has under a name: a package of Go, or a package of Python without a file of its own.
    pub(super) fn of_folder(&self, path: &str, name: &str) -> Vec<Found> {
        let files = self.tree.by_folder.get(path);
        let files = files.map_or(&[][..], Vec::as_slice);
        let mut all = Vec::new();
        for f in files {
            let file = self.file(*f);
            if file.family != Some(Family::Go) || file.path.ends_with("_test.go") {
                continue;
            }
            let here = file.named(None, name).iter();
            all.extend(here.map(|n| Sym { file: *f, n: *n }));
        }
        if all.is_empty()
            && let Some(module) = self.tree.python_at(&join(path, name))
        {
            return vec![Found::new(Thing::Module(module), Way::Import)];
        }
        shared(all, Way::Import)
    }

    /// What a package has under a name.
    pub(super) fn of_package(&self, package: &str, name: &str) -> Vec<Found> {
        let families = [Family::Jvm, Family::CSharp, Family::Php, Family::Go];
        let mut all = Vec::new();
        for family in families {
            let files = self.tree.by_package.get(&(family, package));
            for f in files.map_or(&[][..], Vec::as_slice) {
                let here = self.file(*f).named(None, name).iter();
                all.extend(here.map(|n| Sym { file: *f, n: *n }));
            }
        }
        shared(all, Way::Import)
    }

    /// What a name means because of the package that its file is of.
    pub(super) fn in_package(&self, at: At, name: &str, family: Family) -> Vec<Found> {
        let file = self.file(at.file);
        match family {
            Family::Go => {
                let files = self.tree.by_folder.get(folder(file.path));
                let mut all = Vec::new();
                for f in files.map_or(&[][..], Vec::as_slice) {
                    let other = self.file(*f);
                    if other.facts.package != file.facts.package || *f == at.file {
                        continue;
                    }
                    let here = other.named(None, name).iter();
                    all.extend(here.map(|n| Sym { file: *f, n: *n }));
                }
                shared(all, Way::Scope)
            }
            Family::Jvm | Family::CSharp | Family::Php => {
                let found = self.of_package(&file.facts.package, name);
                let found: Vec<Found> = found
                    .into_iter()
                    .map(|it| Found {
                        way: Way::Scope,
                        ..it
                    })
                    .collect();
                if !found.is_empty() || family == Family::Jvm {
                    return found;
                }
                self.nearest(at, name, family)
            }
            Family::C | Family::Ruby | Family::Bash | Family::Sql => self.nearest(at, name, family),
            Family::Rust => {
                let module = self.rust_first(at.file, at.scope, name, 1);
                match module {
                    Some(Thing::External(_)) | None => Vec::new(),
                    Some(thing) => vec![Found::new(thing, Way::Import)],
                }
            }
            Family::Script | Family::Python => Vec::new(),
        }
    }

    /// Languages whose names are known everywhere: what is imported first, then what is nearest.
    fn nearest(&self, at: At, name: &str, family: Family) -> Vec<Found> {
        let all = self.globals.get(&(family, name));
        let all = all.map_or(&[][..], Vec::as_slice);
        if all.is_empty() {
            return Vec::new();
        }
        let file = self.file(at.file);
        let mut included = Vec::new();
        for import in &file.facts.imports {
            if let Some(Thing::Module(Module::File(f))) =
                self.module(at.file, None, &import.module, 1)
            {
                included.push(self.file(f).path);
            }
        }
        let stem = |path: &str| {
            path.rsplit_once('.')
                .map_or(path.to_owned(), |it| it.0.to_owned())
        };
        let is_near = |it: &&Sym| {
            let path = self.file(it.file).path;
            included
                .iter()
                .any(|other| *other == path || stem(other) == stem(path))
        };
        let near: Vec<Sym> = all.iter().filter(is_near).copied().collect();
        let chosen = match near.is_empty() {
            true => {
                let most = all
                    .iter()
                    .map(|it| nearness(self.file(it.file).path, file.path))
                    .max();
                let is_most =
                    |it: &&Sym| Some(nearness(self.file(it.file).path, file.path)) == most;
                all.iter().filter(is_most).copied().collect()
            }
            false => near,
        };
        shared(self.with_bodies(chosen), Way::Scope)
    }

    /// Definitions rather than declarations, where both are there.
    fn with_bodies(&self, all: Vec<Sym>) -> Vec<Sym> {
        let has_body = |it: &Sym| {
            self.symbol(*it)
                .is_some_and(|it| it.line_end > it.line || !it.signature.ends_with(')'))
        };
        let defined: Vec<Sym> = all.iter().copied().filter(has_body).collect();
        match defined.is_empty() {
            true => all,
            false => defined,
        }
    }
}

pub(super) fn shared(all: Vec<Sym>, way: Way) -> Vec<Found> {
    let share = 1.0 / all.len().max(1) as f32;
    let found = |it| Found {
        share,
        ..Found::new(Thing::Symbol(it), way)
    };
    all.into_iter().map(found).collect()
}
