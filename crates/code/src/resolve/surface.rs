//! Which files must be resolved again when some have changed.
//!
//! What a file refers to follows from its own facts and from what other files say under the names that it
//! mentions. The surface of a file is what it says to others, name by name. When a name's entry changes, so
//! does whatever mentions it: first other entries (a type that inherits it, a function that gives it), then
//! the files that mention one of those names.

use crate::facts::{Expr, Facts, Type};
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash as _, Hasher as _};

/// Entries are followed so often; after that every file is resolved again.
const ROUNDS_MAX: usize = 8;

/// What a file says to others, and what it mentions.
#[derive(Clone, Debug, Default)]
pub struct Surface<'a> {
    entries: HashMap<&'a str, Entry<'a>>,
    mentions: HashSet<&'a str>,
}

#[derive(Clone, Debug, Default)]
struct Entry<'a> {
    hash: u64,
    mentions: Vec<&'a str>,
}

impl<'a> Surface<'a> {
    /// The surface of a file.
    pub fn of(path: &'a str, facts: &'a Facts) -> Self {
        let mut surface = Self::default();
        for symbol in &facts.symbols {
            let mut mentions = Vec::new();
            let types = symbol
                .params
                .iter()
                .chain(&symbol.generics)
                .filter_map(|it| it.ty.as_ref());
            let types = types.chain(&symbol.returns).chain(&symbol.owner);
            types
                .chain(symbol.bases.iter().map(|it| &it.1))
                .for_each(|it| in_type(it, &mut mentions));
            let parent = symbol.parent.and_then(|it| facts.symbols.get(it as usize));
            let mut hasher = DefaultHasher::new();
            (
                symbol.kind,
                parent.map(|it| &it.name),
                symbol.is_test,
                symbol.is_static,
            )
                .hash(&mut hasher);
            for it in &symbol.params {
                (&it.name, &it.ty, it.is_optional).hash(&mut hasher);
            }
            (&symbol.returns, &symbol.owner).hash(&mut hasher);
            symbol.bases.iter().for_each(|it| it.1.hash(&mut hasher));
            surface.say(&symbol.name, hasher.finish(), mentions);
        }
        for binding in &facts.bindings {
            let scope = binding.scope.and_then(|it| facts.symbols.get(it as usize));
            // What a function gives is said under the function's name; its other variables are its own.
            let name = match (binding.name.as_str(), scope) {
                ("return", Some(scope)) => scope.name.as_str(),
                (name, Some(_)) if binding.is_field => name,
                (name, None) => name,
                _ => continue,
            };
            let mut mentions = Vec::new();
            binding.ty.iter().for_each(|it| in_type(it, &mut mentions));
            binding
                .value
                .iter()
                .for_each(|it| in_expr(it, &mut mentions));
            let mut hasher = DefaultHasher::new();
            (&binding.ty, &binding.value, binding.is_field).hash(&mut hasher);
            surface.say(name, hasher.finish(), mentions);
        }
        for import in &facts.imports {
            let mut mentions = words(&import.module);
            mentions.extend(import.name.as_deref());
            let mut hasher = DefaultHasher::new();
            (&import.module, &import.name).hash(&mut hasher);
            let name = match import.alias.is_empty() {
                true => "*",
                false => import.alias.as_str(),
            };
            surface.say(name, hasher.finish(), mentions);
        }
        for it in &facts.impls {
            let mut mentions = Vec::new();
            in_type(&it.base, &mut mentions);
            let mut hasher = DefaultHasher::new();
            it.base.hash(&mut hasher);
            let name = it.ty.name.rsplit('.').next().unwrap_or_default();
            surface.say(name, hasher.finish(), mentions);
        }
        // Imports find a file by its name, or by that of its folder.
        let mut hasher = DefaultHasher::new();
        (path, &facts.package).hash(&mut hasher);
        if let Some(it) = &facts.manifest {
            (&it.name, &it.entries, &it.paths).hash(&mut hasher);
        }
        let hash = hasher.finish();
        let stem = path.rsplit_once('/').map_or(path, |it| it.1);
        let stem = stem.split('.').next().unwrap_or_default();
        let folder = path.rsplit('/').nth(1).unwrap_or_default();
        surface.say(stem, hash, Vec::new());
        surface.say(folder, hash, Vec::new());
        surface.mention(facts);
        surface
    }

    fn say(&mut self, name: &'a str, hash: u64, mentions: Vec<&'a str>) {
        if name.is_empty() {
            return;
        }
        let entry = self.entries.entry(name).or_default();
        entry.hash = entry.hash.wrapping_mul(31).wrapping_add(hash);
        entry.mentions.extend(mentions);
    }

    fn mention(&mut self, facts: &'a Facts) {
        let mut all = Vec::new();
        facts
            .calls
            .iter()
            .for_each(|it| in_expr(&it.callee, &mut all));
        for it in &facts.bindings {
            it.ty.iter().for_each(|it| in_type(it, &mut all));
            it.value.iter().for_each(|it| in_expr(it, &mut all));
        }
        for it in &facts.uses {
            all.extend(words(&it.name));
        }
        let entries = self
            .entries
            .values()
            .flat_map(|it| it.mentions.iter().copied());
        self.mentions = all.into_iter().chain(entries).collect();
        if facts
            .imports
            .iter()
            .any(|it| it.name.as_deref() == Some("*"))
        {
            self.mentions.insert("*");
        }
    }
}

fn words(text: &str) -> Vec<&str> {
    let parts = text.split(|it: char| !it.is_alphanumeric() && it != '_');
    parts.filter(|it| !it.is_empty()).collect()
}

fn in_type<'a>(ty: &'a Type, all: &mut Vec<&'a str>) {
    all.extend(words(&ty.name));
    ty.args.iter().for_each(|it| in_type(it, all));
}

fn in_expr<'a>(expr: &'a Expr, all: &mut Vec<&'a str>) {
    match expr {
        Expr::Name(name) | Expr::Path(name) => all.push(name.trim_end_matches('!')),
        Expr::Member(of, name) => {
            in_expr(of, all);
            all.push(name);
        }
        Expr::Call(of)
        | Expr::Element(of)
        | Expr::Await(of)
        | Expr::In(_, of)
        | Expr::Pick(of, _) => {
            in_expr(of, all);
        }
        Expr::Lambda(of) => of.iter().for_each(|it| in_expr(it, all)),
        Expr::New(ty) | Expr::Typed(ty) => in_type(ty, all),
        Expr::This | Expr::Super | Expr::Literal(_) | Expr::Unknown => {}
    }
}

/// Which of `current` must be resolved again: `changed` are pairs of what a file's surface was and is.
/// Files that changed themselves are not among the answer unless they depend on others that did.
pub fn dependents(
    current: &[Surface<'_>],
    changed: &[(Option<&Surface<'_>>, Option<&Surface<'_>>)],
) -> Vec<usize> {
    let mut names: HashSet<&str> = HashSet::new();
    for (before, after) in changed {
        let empty = Surface::default();
        let before = before.unwrap_or(&empty);
        let after = after.unwrap_or(&empty);
        for (name, entry) in &before.entries {
            if after
                .entries
                .get(name)
                .is_none_or(|it| it.hash != entry.hash)
            {
                names.insert(name);
            }
        }
        let new = after
            .entries
            .keys()
            .filter(|it| !before.entries.contains_key(**it));
        names.extend(new);
    }
    if names.is_empty() {
        return Vec::new();
    }
    let mut is_settled = false;
    for _ in 0..ROUNDS_MAX {
        let before = names.len();
        for surface in current {
            for (name, entry) in &surface.entries {
                if !names.contains(name) && entry.mentions.iter().any(|it| names.contains(it)) {
                    names.insert(name);
                }
            }
        }
        if names.len() == before {
            is_settled = true;
            break;
        }
    }
    let depends = |it: &Surface<'_>| !is_settled || it.mentions.iter().any(|it| names.contains(it));
    let places = current.iter().enumerate().filter(|it| depends(it.1));
    places.map(|it| it.0).collect()
}
