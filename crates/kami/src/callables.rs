//! The callable functions of the tools in a space, by every name that they have.
//!
//! An id means the tool with that id and nothing else: a function of another tool never answers for
//! it, whether that tool is enabled, disabled or removed ([`super::names`]).

use super::names::Retired;
use super::record::{Record, ToolFunction};
use kenning_sandbox::Sha256;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A function that can be called.
pub(super) struct Callable {
    pub(super) record: Arc<Record>,
    pub(super) function: ToolFunction,
}

/// All callable functions.
pub(super) struct Callables {
    all: Vec<Callable>,
    by_name: HashMap<String, usize>,
    /// Names that every client accepts; an ambiguous name means nothing.
    by_safe_name: HashMap<String, Option<usize>>,
}

impl Callables {
    pub(super) fn of(tools: &[Arc<Record>], retired: &HashMap<String, Retired>) -> Self {
        let ids: HashSet<&str> = tools.iter().map(|it| it.id.as_str()).collect();
        let functions = tools.iter().map(|tool| (tool, tool.functions()));
        let functions: Vec<(&Arc<Record>, Vec<ToolFunction>)> = functions.collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for it in functions.iter().flat_map(|it| &it.1) {
            *counts.entry(it.name.as_str()).or_default() += 1;
            if it.long_name != it.name {
                *counts.entry(it.long_name.as_str()).or_default() += 1;
            }
        }
        let is_clear = |record: &Record, name: &str| {
            let is_own = name == record.id;
            let is_taken = ids.contains(name) || counts.get(name).is_some_and(|it| *it > 1);
            let is_retired = || retired.get(name).is_some_and(|it| it.is_not(record));
            is_own || !(is_taken || is_retired())
        };
        let mut all = Vec::new();
        for (record, functions) in &functions {
            for function in functions {
                let names = [&function.name, &function.long_name];
                let mut clear = names.into_iter().filter(|it| is_clear(record, it));
                let Some(name) = clear.next() else {
                    let (name, id) = (&function.name, &record.id);
                    tracing::warn!(
                        "`{name}` of `{id}` cannot be called: another tool has this name"
                    );
                    continue;
                };
                let function = ToolFunction {
                    name: name.clone(),
                    long_name: clear.next().unwrap_or(name).clone(),
                    ..function.clone()
                };
                let record = Arc::clone(record);
                all.push(Callable { record, function });
            }
        }
        let mut by_name = HashMap::new();
        let mut by_safe_name: HashMap<String, Option<usize>> = HashMap::new();
        for (n, callable) in all.iter().enumerate() {
            let name = &callable.function.name;
            by_name.insert(name.clone(), n);
            for safe in safe_names(name) {
                by_safe_name
                    .entry(safe)
                    .and_modify(|it| *it = None)
                    .or_insert(Some(n));
            }
        }
        for callable in &mut all {
            let is_free = |it: &String| by_safe_name.get(it).is_some_and(Option::is_some);
            let safe = safe_names(&callable.function.name);
            callable.function.safe_names = safe.into_iter().filter(is_free).collect();
        }
        // Long names come after all others.
        for (n, callable) in all.iter().enumerate() {
            let long = callable.function.long_name.clone();
            by_name.entry(long).or_insert(n);
        }
        Self {
            all,
            by_name,
            by_safe_name,
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Callable> {
        self.all.iter()
    }

    /// The index of a function by its own name, or by one for clients that do not accept dots.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        let safe = || self.by_safe_name.get(name).copied().flatten();
        self.by_name.get(name).copied().or_else(safe)
    }

    pub(super) fn at(&self, place: usize) -> Option<&Callable> {
        self.all.get(place)
    }
}

/// The longest name that every client accepts.
const SAFE_NAME_MAX: usize = 64;

/// Names with letters, digits, `-` and `_` only: the plain one, if it is short enough, and one that
/// ends in a hash of the name, in case the plain one means something else.
fn safe_names(name: &str) -> Vec<String> {
    let safe = |it: char| match it {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => it,
        _ => '_',
    };
    let plain: String = name.chars().map(safe).collect();
    let hash = Sha256::of(name.as_bytes()).to_string();
    let hash = &hash[..16];
    let mut begin = plain.clone();
    begin.truncate(SAFE_NAME_MAX - hash.len() - 2);
    let hashed = format!("{begin}__{hash}");
    let is_short = plain.len() <= SAFE_NAME_MAX;
    let plain = Some(plain).filter(|_| is_short);
    plain.into_iter().chain([hashed]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_names_are_safe_and_different_names_never_share_the_last() {
        let long = format!("dev.example.{}", "x".repeat(80));
        let names = [
            "kg.stats",
            "kg-stats",
            "a.[static]b.c",
            "a.b+c",
            "a.ü",
            &long,
        ];
        let mut seen = HashSet::new();
        for name in names {
            let safe = safe_names(name);
            for it in &safe {
                let is_safe =
                    |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
                assert!(it.len() <= 64 && it.bytes().all(is_safe), "{it}");
            }
            assert!(seen.insert(safe.last().cloned()));
        }
        assert_eq!(safe_names("kg.stats")[0], "kg_stats");
        assert_eq!(safe_names(&long).len(), 1);
    }
}
