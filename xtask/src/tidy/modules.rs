//! Which top-level module of a crate names which, and that none of them do so in a circle.
//!
//! Cargo keeps crates from depending on each other in a circle, and nothing keeps modules. Files are read
//! as text: paths in `use` and in code (`crate::name`, `super::name`), names that the root re-exports, and
//! calls of methods that another module gives a type of the root (`self.method(…)` in its `impl`, and
//! `engine.method(…)`). What a folder's own files know of each other is the folder's business.

use super::Faults;
use crate::repository::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// Modules that name each other today, by crate: a circle lies within a row. What is not here is refused,
/// and so is a row that no circle is left of. The kernel, the wings and the engine have none.
const KNOWN: &[(&str, &[&str])] = &[
    ("cypher", &["compile", "functions", "plan", "run"]),
    ("cypher", &["graph", "temporal", "value"]),
    (
        "tools",
        &[
            "board",
            "core",
            "declare",
            "default_set",
            "flows",
            "kg",
            "kg_extra",
            "kiwi",
            "koi",
            "omi",
            "omi_extra",
            "select",
            "table",
        ],
    ),
];

/// Crates that are for tests only.
const TESTS_ONLY: [&str; 2] = ["testing", "fuzz"];

/// The groups of modules that name each other, as `crate: a, b`.
pub(super) fn groups(tree: &Tree) -> Vec<String> {
    let mut groups = Vec::new();
    for (name, edges) in graphs(tree) {
        let circles = circles(&edges).into_iter();
        groups.extend(circles.map(|circle| format!("{name}: {}", circle.join(", "))));
    }
    groups
}

/// From a module to those it names, each with one reason.
pub(super) type Edges = BTreeMap<String, BTreeMap<String, String>>;

pub(super) fn check(tree: &Tree) -> Faults {
    let mut faults = Faults::new();
    let mut seen = BTreeSet::new();
    for (name, edges) in graphs(tree) {
        for circle in circles(&edges) {
            let is_row =
                |row: &(&str, &[&str])| row.0 == name && circle.iter().all(|it| row.1.contains(it));
            if let Some(at) = KNOWN.iter().position(is_row) {
                seen.insert(at);
                continue;
            }
            let steps = steps(&edges, &circle).join("; ");
            faults.push(format!(
                "crates/{name}: the modules {} name each other in a circle ({steps}): move what they \
                 share below them",
                circle.join(", ")
            ));
        }
    }
    let stale = KNOWN.iter().enumerate().filter(|it| !seen.contains(&it.0));
    faults.extend(stale.map(|(_, (name, circle))| {
        format!(
            "crates/{name}: {} no longer name each other: take the row out of `KNOWN` of \
             xtask/src/tidy/modules.rs",
            circle.join(", ")
        )
    }));
    faults
}

/// The module graph of every crate that has more than one module.
pub(super) fn graphs(tree: &Tree) -> BTreeMap<String, Edges> {
    let mut crates: BTreeMap<String, Vec<(Vec<String>, String)>> = BTreeMap::new();
    for (name, text) in tree.ending(".rs") {
        let Some((crate_name, rest)) = name
            .strip_prefix("crates/")
            .and_then(|it| it.split_once("/src/"))
        else {
            continue;
        };
        let mut path: Vec<String> = rest
            .trim_end_matches(".rs")
            .split('/')
            .map(str::to_owned)
            .collect();
        let is_for_tests = TESTS_ONLY.iter().any(|it| crate_name.starts_with(it));
        if is_for_tests || path.first().is_some_and(|it| it == "bin" || it == "tests") {
            continue;
        }
        if path
            .last()
            .is_some_and(|it| matches!(it.as_str(), "mod" | "lib" | "main"))
        {
            path.pop();
        }
        let files = crates.entry(crate_name.to_owned()).or_default();
        files.push((path, product_code(text)));
    }
    let graphs = crates.into_iter();
    let graphs = graphs.map(|(name, files)| (name, edges(&files)));
    graphs.filter(|it| !it.1.is_empty()).collect()
}

/// Without comments and without the tests at the end.
fn product_code(text: &str) -> String {
    let text = match text.find("#[cfg(test)]") {
        Some(at) if text[at..].contains("mod ") => &text[..at],
        _ => text,
    };
    let lines = text.lines().filter(|it| !it.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn edges(files: &[(Vec<String>, String)]) -> Edges {
    let modules: BTreeSet<&str> = files
        .iter()
        .filter_map(|(path, _)| Some(path.first()?.as_str()))
        .collect();
    let root = files.iter().find(|it| it.0.is_empty());
    let root = root.map_or("", |it| it.1.as_str());
    let exported = exported(root, &modules);
    let types = types_of(root);
    let mut owners: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (path, text) in files {
        let Some(module) = path.first() else { continue };
        for (_, body) in impls(text, &types).into_iter().filter(|it| it.0) {
            for method in methods(body) {
                owners.entry(method).or_default().insert(module);
            }
        }
    }
    let mut edges = Edges::new();
    for (path, text) in files {
        let Some(from) = path.first() else { continue };
        let known = edges.entry(from.clone()).or_default();
        let mut note = |to: &str, why: &str| {
            if to != from.as_str() && modules.contains(to) {
                known.entry(to.to_owned()).or_insert_with(|| why.to_owned());
            }
        };
        for named in paths(text) {
            // From a file of a folder, `super` once is the folder.
            let depth = path.len();
            let ups = named.iter().take_while(|it| *it == "super").count();
            let rest = match named.first().map(String::as_str) {
                Some("crate") => &named[1..],
                Some("super") if ups == depth => &named[ups..],
                _ => continue,
            };
            let Some(first) = rest.first() else { continue };
            let to = exported.get(first.as_str()).copied();
            note(to.unwrap_or(first), &named.join("::"));
        }
        for (is_inside, body) in impls(text, &types) {
            for (receiver, method) in calls(body) {
                let is_root = receiver == "engine" || receiver == "self" && is_inside;
                let Some(owner) = owners.get(&method).filter(|it| is_root && it.len() == 1) else {
                    continue;
                };
                for to in owner {
                    note(to, &format!("{method}()"));
                }
            }
        }
    }
    edges
}

/// Names that the root re-exports from its modules.
fn exported<'m>(root: &str, modules: &BTreeSet<&'m str>) -> BTreeMap<String, &'m str> {
    let mut names = BTreeMap::new();
    for tree in statements(root, "use ") {
        for path in expand(tree) {
            let Some(module) = path.first().and_then(|it| modules.get(it.as_str())) else {
                continue;
            };
            if let Some(last) = path.last().filter(|_| path.len() > 1) {
                names.insert(last.clone(), *module);
            }
        }
    }
    names
}

/// The types that the root declares.
fn types_of(root: &str) -> BTreeSet<String> {
    let declared = root.lines().filter_map(|line| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.strip_prefix("struct ")
            .or_else(|| line.strip_prefix("enum "))
    });
    declared.map(word).filter(|it| !it.is_empty()).collect()
}

/// The text in pieces: `impl` blocks of one of the types, and what is between them.
fn impls<'t>(text: &'t str, types: &BTreeSet<String>) -> Vec<(bool, &'t str)> {
    let mut pieces = Vec::new();
    let (mut start, mut is_inside, mut at) = (0, false, 0);
    for line in text.split_inclusive('\n') {
        if line.starts_with("impl") {
            let of = line.split(" for ").last().unwrap_or(line);
            let of = of.trim_start_matches("impl").trim_start();
            if types.contains(&word(of)) {
                pieces.push((is_inside, &text[start..at]));
                (start, is_inside) = (at, true);
            }
        }
        at += line.len();
        if is_inside && line.starts_with('}') {
            pieces.push((true, &text[start..at]));
            (start, is_inside) = (at, false);
        }
    }
    pieces.push((is_inside, &text[start..]));
    pieces
}

/// The methods that an `impl` declares.
fn methods(body: &str) -> Vec<String> {
    let lines = body.lines().filter_map(|line| {
        let line = line.strip_prefix("    ")?;
        let at = line.find("fn ")?;
        let before = line[..at].trim_end();
        let is_head = before.is_empty()
            || before.starts_with("pub")
            || before == "const"
            || before == "async";
        is_head.then(|| word(&line[at + 3..]))
    });
    lines.collect()
}

/// Receivers and methods: `self.later(` is `self` and `later`, over line breaks too.
fn calls(body: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    for receiver in ["self", "engine"] {
        for (at, _) in body.match_indices(receiver) {
            let is_word = body[..at]
                .chars()
                .next_back()
                .is_none_or(|c| !is_word_char(c));
            let rest = body[at + receiver.len()..].trim_start();
            let Some(rest) = rest.strip_prefix('.').filter(|_| is_word) else {
                continue;
            };
            let rest = rest.trim_start();
            let method = word(rest);
            if rest[method.len()..].starts_with('(') {
                found.push((receiver, method));
            }
        }
    }
    found
}

/// Every path that begins with `crate` or `super`, those of `use` trees one by one.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for tree in statements(text, "use ") {
        all.extend(expand(tree));
    }
    for root in ["crate::", "super::"] {
        for (at, _) in text.match_indices(root) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c == ':' || is_word_char(c)) {
                continue;
            }
            let end = text[at..].find(|c: char| !is_word_char(c) && c != ':');
            let path = &text[at..end.map_or(text.len(), |it| at + it)];
            let path = path.split("::").filter(|it| !it.is_empty());
            all.push(path.map(str::to_owned).collect());
        }
    }
    all
}

/// What follows a keyword at the beginning of a line, up to the semicolon.
fn statements<'t>(text: &'t str, keyword: &str) -> Vec<&'t str> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(keyword) {
        let line = text[..at].rfind('\n').map_or(0, |it| it + 1);
        let before = text[line..at].trim();
        if before.is_empty() || before.starts_with("pub") && !before.contains('"') {
            let rest = &text[at + keyword.len()..];
            found.extend(rest.split_once(';').map(|it| it.0));
        }
    }
    found
}

/// The paths of a `use` tree.
fn expand(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let Some((prefix, inner)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree);
        let path = path.split("::").map(str::trim).filter(|it| !it.is_empty());
        return vec![path.map(str::to_owned).collect()];
    };
    let inner = inner.strip_suffix('}').unwrap_or(inner);
    let prefix: Vec<String> = prefix
        .split("::")
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect();
    let (mut depth, mut start, mut parts) = (0_i32, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().filter(|it| !it.trim().is_empty());
    parts
        .flat_map(expand)
        .map(|it| prefix.iter().cloned().chain(it).collect())
        .collect()
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The word that a text begins with.
fn word(text: &str) -> String {
    text.chars().take_while(|c| is_word_char(*c)).collect()
}

/// The modules that reach each other, in groups.
fn circles(edges: &Edges) -> Vec<Vec<&str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = edges
        .keys()
        .map(|from| (from.as_str(), reached(edges, from)))
        .collect();
    let mut circles: Vec<Vec<&str>> = Vec::new();
    for (from, to) in &reach {
        if !to.contains(from) || circles.iter().any(|it| it.contains(from)) {
            continue;
        }
        let together = to
            .iter()
            .filter(|it| reach.get(*it).is_some_and(|back| back.contains(from)));
        circles.push(together.copied().collect());
    }
    circles
}

/// Everything that a module names, and what those name, and so on.
fn reached<'e>(edges: &'e Edges, from: &str) -> BTreeSet<&'e str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for to in edges.get(module).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(to.as_str()) {
                open.push(to);
            }
        }
    }
    seen
}

/// What makes the circle, one sentence for each step.
fn steps(edges: &Edges, circle: &[&str]) -> Vec<String> {
    let mut steps = Vec::new();
    for from in circle {
        for (to, why) in edges.get(*from).into_iter().flatten() {
            if circle.contains(&to.as_str()) {
                steps.push(format!("{from} -> {to} by `{why}`"));
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Edges {
        let named: Vec<(String, &str)> = files
            .iter()
            .map(|(name, text)| (format!("crates/x/src/{name}"), *text))
            .collect();
        let named: Vec<(&str, &str)> = named.iter().map(|it| (it.0.as_str(), it.1)).collect();
        let mut graphs = graphs(&Tree::of(&named));
        graphs.remove("x").unwrap_or_default()
    }

    fn names<'e>(edges: &'e Edges, from: &str) -> Vec<&'e str> {
        let to = edges.get(from).into_iter().flat_map(BTreeMap::keys);
        to.map(String::as_str).collect()
    }

    #[test]
    fn paths_of_every_form_are_edges() {
        let edges = graph(&[
            (
                "lib.rs",
                "mod a;\nmod b;\npub use b::{Thing, inner::Deep as D};\n",
            ),
            ("a/mod.rs", "use super::b::x;\nuse crate::c::{self, y};\n"),
            (
                "a/one.rs",
                "use super::two;\nfn f() { super::super::d::g() }\n",
            ),
            ("a/two.rs", "use crate::{Thing};\n"),
            (
                "b.rs",
                "// use crate::a;\n#[cfg(test)]\nmod tests { use crate::a; }\n",
            ),
            ("c.rs", "fn f() -> crate::Thing { crate::e::g() }\n"),
            ("d.rs", ""),
            ("e.rs", ""),
        ]);
        assert_eq!(names(&edges, "a"), ["b", "c", "d"]);
        assert_eq!(names(&edges, "b"), [""; 0]);
        assert_eq!(names(&edges, "c"), ["b", "e"]);
        assert!(circles(&edges).is_empty());
    }

    #[test]
    fn methods_of_the_roots_type_are_edges() {
        let edges = graph(&[
            ("lib.rs", "pub struct Wing {\n}\n"),
            (
                "a.rs",
                "impl Wing {\n    pub fn f(&self) {\n        self\n            .g();\n    }\n}\n",
            ),
            (
                "b.rs",
                "impl Wing {\n    fn g(&self) {}\n}\nimpl Own {\n    fn h(&self) { self.f() }\n}\n",
            ),
            ("c.rs", "fn go(engine: &Wing) { engine.f() }\n"),
        ]);
        assert_eq!(names(&edges, "a"), ["b"]);
        // A method of the same name of another type is none of the root's.
        assert_eq!(names(&edges, "b"), [""; 0]);
        assert_eq!(names(&edges, "c"), ["a"]);
    }

    #[test]
    fn a_circle_is_refused_and_says_by_what() {
        let tree = Tree::of(&[
            ("crates/x/src/lib.rs", "mod a;\nmod b;\n"),
            ("crates/x/src/a.rs", "use crate::b::f;\n"),
            ("crates/x/src/b.rs", "use super::c::g;\n"),
            ("crates/x/src/c.rs", "use super::a;\n"),
        ]);
        let faults = check(&tree);
        // Beside it stand the rows that hold nothing in this small tree.
        assert_eq!(faults.len(), 1 + KNOWN.len());
        assert!(faults[0].contains("a, b, c name each other"), "{faults:?}");
        assert!(faults[0].contains("a -> b by `crate::b::f`"), "{faults:?}");
    }
}
