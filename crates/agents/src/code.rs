//! The code of the scanned repositories, as one graph in memory.

mod coverage;

pub(crate) use coverage::is_comment;

use coverage::{About, Looking, Mentions};
use kenning_core::{Kind, NodeId, Result};
use kenning_store::{EdgeFilter, Node, NodeFilter, ReadTx, When};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Nodes that are read together.
const PAGE: usize = 1_000;
/// More than this is not looked at.
const SYMBOLS_MAX: usize = 500_000;

/// A file of a repository.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) id: NodeId,
    pub(crate) repo: String,
    pub(crate) path: String,
    pub(crate) language: Option<String>,
    /// The commit at which a scan found this content.
    pub(crate) commit: String,
    pub(crate) rev: u64,
    pub(crate) lines: u64,
    pub(crate) about: About,
}

/// A function, a type or a constant.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    pub(crate) id: NodeId,
    pub(crate) label: String,
    pub(crate) name: String,
    pub(crate) qualified: String,
    pub(crate) repo: String,
    pub(crate) path: String,
    pub(crate) line: u64,
    pub(crate) line_end: u64,
    pub(crate) signature: String,
    pub(crate) doc: String,
    pub(crate) is_public: bool,
    pub(crate) is_test: bool,
}

impl Symbol {
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.path, self.line)
    }

    /// Whether it is a function of Rust that a trait asks for: the trait explains it, and calls by way of the trait
    /// cannot be seen. Only such a function is public without saying so. `serialize` and `deserialize` are called
    /// by an attribute that names their module.
    pub(crate) fn implements_trait(&self) -> bool {
        if !self.path.ends_with(".rs") || !self.is_function() {
            return false;
        }
        let is_for_serde = matches!(self.name.as_str(), "serialize" | "deserialize");
        is_for_serde || self.is_public && !self.signature.starts_with("pub")
    }

    /// Whether it is part of the tests: by its file, by itself, or in Rust by its module.
    pub(crate) fn is_of_tests(&self) -> bool {
        let mut modules = self.qualified.split('.').rev().skip(1);
        let is_module = |it| matches!(it, "tests" | "test");
        self.is_test
            || is_test_path(&self.path)
            || self.path.ends_with(".rs") && modules.any(is_module)
    }

    /// Whether other packages may name it.
    pub(crate) fn is_for_all(&self) -> bool {
        !self.path.ends_with(".rs") || self.signature.starts_with("pub ")
    }

    /// Whether the language calls it by itself, such as `__init__`.
    pub(crate) fn is_special(&self) -> bool {
        self.name.starts_with("__") && self.name.ends_with("__")
    }

    pub(crate) fn is_function(&self) -> bool {
        matches!(self.label.as_str(), "Function" | "Method")
    }
}

/// A reference from one symbol or file to another.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) lines: Vec<u64>,
    pub(crate) is_guess: bool,
}

/// The code of a space.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) files: Vec<File>,
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) by_id: HashMap<NodeId, usize>,
    pub(crate) calls: Vec<Link>,
    pub(crate) tests: Vec<Link>,
    pub(crate) imports: Vec<Link>,
    /// From one file to another, by their positions.
    pub(crate) depends: BTreeSet<(usize, usize)>,
    /// The file of each symbol and of each file itself, by its position.
    pub(crate) file_of: HashMap<NodeId, usize>,
    /// Where calls, uses and tests lead.
    pub(crate) out: HashMap<NodeId, Vec<NodeId>>,
    /// Methods that something outside may call.
    pub(crate) overrides: HashSet<NodeId>,
    /// Where names stand.
    pub(crate) mentions: Mentions,
}

fn text(node: &Node, name: &str) -> String {
    let text = node.props.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn number(node: &Node, name: &str) -> u64 {
    node.props.get(name).and_then(Value::as_u64).unwrap_or(0)
}

impl Code {
    /// Everything, or what is in one repository.
    pub(crate) fn read(
        tx: &dyn ReadTx,
        repository: Option<&str>,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let prefix = match repository {
            Some(it) => format!("github:{it}:"),
            None => "github:".to_owned(),
        };
        let filter = |kind: Kind| NodeFilter {
            kinds: vec![kind],
            project: Some(String::new()),
            key_prefix: Some(prefix.clone()),
        };
        let mut code = Self::default();
        for_each(tx, &filter(Kind::Document), check, |node| {
            let language = text(&node, "language");
            code.files.push(File {
                id: node.id,
                repo: text(&node, "repo"),
                path: text(&node, "path"),
                language: Some(language).filter(|it| !it.is_empty()),
                commit: text(&node, "commit_sha"),
                rev: node.rev,
                lines: number(&node, "line_count"),
                about: About::of(&text(&node, "path"), &node.body),
            });
        })?;
        for_each(tx, &filter(Kind::Symbol), check, |node| {
            let label = text(&node, "label");
            let path = text(&node, "file_path");
            // What is imported or outside is no code of the repository.
            if path.is_empty() || label == "Import" || code.symbols.len() >= SYMBOLS_MAX {
                return;
            }
            code.by_id.insert(node.id, code.symbols.len());
            code.symbols.push(Symbol {
                id: node.id,
                name: text(&node, "name"),
                qualified: text(&node, "qualified_name"),
                repo: text(&node, "repo"),
                line: number(&node, "line_start"),
                line_end: number(&node, "line_end"),
                signature: text(&node, "signature"),
                doc: text(&node, "docstring"),
                is_public: text(&node, "visibility") == "public",
                is_test: node.props.get("is_test") == Some(&Value::Bool(true)),
                label,
                path,
            });
        })?;
        code.link(tx, check)?;
        let mut looking = Looking::new(&code);
        for_each(tx, &filter(Kind::Document), check, |node| {
            let file = code.file_of.get(&node.id);
            if let Some(file) = file.and_then(|it| code.files.get(*it)) {
                looking.read(file, &node.body);
            }
        })?;
        code.mentions = looking.finish();
        Ok(code)
    }

    fn link(&mut self, tx: &dyn ReadTx, check: &dyn Fn() -> Result<()>) -> Result<()> {
        let mut file_at: HashMap<NodeId, usize> = HashMap::new();
        let mut by_path: HashMap<(&str, &str), usize> = HashMap::new();
        for (n, it) in self.files.iter().enumerate() {
            file_at.insert(it.id, n);
            by_path.insert((&it.repo, &it.path), n);
        }
        for it in &self.symbols {
            if let Some(file) = by_path.get(&(it.repo.as_str(), it.path.as_str())) {
                file_at.insert(it.id, *file);
            }
        }
        let (mut calls, mut tests, mut imports) = (Vec::new(), Vec::new(), Vec::new());
        let mut depends = BTreeSet::new();
        let mut out: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        let mut heirs = HashSet::new();
        let mut test_modules: HashMap<usize, Vec<(u64, u64)>> = HashMap::new();
        for it in &self.symbols {
            let is_module = it.label == "Module" && matches!(it.name.as_str(), "tests" | "test");
            if let Some(file) = file_at.get(&it.id).filter(|_| is_module) {
                let of = test_modules.entry(*file).or_default();
                of.push((it.line, it.line_end));
            }
        }
        // What only a module of tests imports says nothing of how files depend on each other.
        let is_for_tests = |file: usize, lines: &[u64]| {
            let modules = test_modules.get(&file).map_or(&[][..], Vec::as_slice);
            let is_within = |line: &u64| modules.iter().any(|it| (it.0..=it.1).contains(line));
            !lines.is_empty() && lines.iter().all(is_within)
        };
        for rel in [
            "CALLS",
            "MAY_CALL",
            "TESTS",
            "USES",
            "IMPORTS",
            "EXTENDS",
            "IMPLEMENTS",
        ] {
            check()?;
            let filter = EdgeFilter {
                rel: Some(rel.to_owned()),
                ..EdgeFilter::default()
            };
            for edge in tx.edges(&filter, When::Now, usize::MAX)? {
                let ends = (file_at.get(&edge.src), file_at.get(&edge.dst));
                let (Some(&from), Some(&to)) = ends else {
                    // It takes after something that is not in the repository.
                    if matches!(rel, "EXTENDS" | "IMPLEMENTS") {
                        heirs.insert(edge.src);
                    }
                    continue;
                };
                if !matches!(rel, "IMPORTS" | "EXTENDS" | "IMPLEMENTS") {
                    out.entry(edge.src).or_default().push(edge.dst);
                }
                let lines = edge.props.get("lines").and_then(Value::as_array);
                let lines = lines.into_iter().flatten().filter_map(Value::as_u64);
                let link = Link {
                    from: edge.src,
                    to: edge.dst,
                    lines: lines.collect(),
                    is_guess: rel == "MAY_CALL",
                };
                match rel {
                    "USES" | "EXTENDS" | "IMPLEMENTS" => {}
                    "TESTS" => tests.push(link),
                    "IMPORTS" => {
                        if from != to && !is_for_tests(from, &link.lines) {
                            depends.insert((from, to));
                        }
                        imports.push(link);
                    }
                    _ => calls.push(link),
                }
            }
        }
        (self.calls, self.tests) = (calls, tests);
        (self.imports, self.depends) = (imports, depends);
        (self.file_of, self.out) = (file_at, out);
        self.overrides = self.find_overrides(&heirs);
        Ok(())
    }

    pub(crate) fn symbol(&self, id: NodeId) -> Option<&Symbol> {
        self.by_id.get(&id).and_then(|it| self.symbols.get(*it))
    }

    /// Groups of files that depend on each other, each in the order of a way around.
    pub(crate) fn cycles(&self) -> Vec<Vec<usize>> {
        let mut out: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &(from, to) in &self.depends {
            if !self.is_of_its_module(from, to) {
                out.entry(from).or_default().push(to);
            }
        }
        components(&out)
            .into_iter()
            .filter(|it| it.len() > 1)
            .map(|group| way_around(&out, &group))
            .collect()
    }

    /// In Rust a module and its parts name each other; that is one thing and no cycle.
    fn is_of_its_module(&self, from: usize, to: usize) -> bool {
        let (Some(from), Some(to)) = (self.files.get(from), self.files.get(to)) else {
            return true;
        };
        if from.language.as_deref() != Some("rust") {
            return false;
        }
        let module = |path: &str| {
            let bare = path.strip_suffix(".rs").unwrap_or(path);
            let bare = ["/mod", "/lib", "/main"]
                .iter()
                .find_map(|it| bare.strip_suffix(it))
                .unwrap_or(bare);
            bare.to_owned()
        };
        let (from, to) = (module(&from.path), module(&to.path));
        let within = |inner: &str, outer: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|it| it.starts_with('/') || it.is_empty())
        };
        within(&from, &to) || within(&to, &from)
    }
}

/// Whether a file is part of the tests, by its name.
pub(crate) fn is_test_path(path: &str) -> bool {
    let path = path.to_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    let folder = path.split('/').rev().skip(1);
    folder.into_iter().any(|it| {
        matches!(
            it,
            "test"
                | "tests"
                | "__tests__"
                | "spec"
                | "testing"
                | "bench"
                | "benches"
                | "examples"
                | "fixtures"
                | "fuzz"
        ) || ["testing-", "testing_", "test-", "test_"]
            .iter()
            .any(|start| it.starts_with(start))
            || ["-test", "-tests", "_test", "_tests"]
                .iter()
                .any(|end| it.ends_with(end))
    }) || name.starts_with("test_")
        || name.starts_with("test.")
        || name == "tests.rs"
        || name == "conftest.py"
        || name.contains("_test.")
        || name.contains(".test.")
        || name.contains(".spec.")
}

fn for_each(
    tx: &dyn ReadTx,
    filter: &NodeFilter,
    check: &dyn Fn() -> Result<()>,
    mut work: impl FnMut(Node),
) -> Result<()> {
    let mut after = None;
    loop {
        check()?;
        let page = tx.nodes(filter, When::Now, after, PAGE)?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(last.id);
        page.into_iter().for_each(&mut work);
    }
}

/// Groups in which everything leads to everything (Tarjan), without recursion: paths may be long.
pub(crate) fn components(out: &BTreeMap<usize, Vec<usize>>) -> Vec<Vec<usize>> {
    #[derive(Default)]
    struct Seen {
        index: usize,
        low: usize,
        on_stack: bool,
    }
    let none = Vec::new();
    let mut seen: HashMap<usize, Seen> = HashMap::new();
    let (mut stack, mut found) = (Vec::new(), Vec::new());
    for &root in out.keys() {
        if seen.contains_key(&root) {
            continue;
        }
        let mut path: Vec<(usize, usize)> = vec![(root, 0)];
        while let Some((at, next)) = path.pop() {
            if next == 0 {
                let index = seen.len();
                seen.insert(
                    at,
                    Seen {
                        index,
                        low: index,
                        on_stack: true,
                    },
                );
                stack.push(at);
            }
            let to = out.get(&at).unwrap_or(&none).get(next).copied();
            if let Some(to) = to {
                path.push((at, next + 1));
                match seen.get(&to) {
                    None => path.push((to, 0)),
                    Some(it) if it.on_stack => {
                        let index = it.index;
                        if let Some(own) = seen.get_mut(&at) {
                            own.low = own.low.min(index);
                        }
                    }
                    Some(_) => {}
                }
                continue;
            }
            let (index, low) = seen.get(&at).map_or((0, 0), |it| (it.index, it.low));
            if let Some((above, _)) = path.last()
                && let Some(it) = seen.get_mut(above)
            {
                it.low = it.low.min(low);
            }
            if index == low {
                let mut group = Vec::new();
                while let Some(it) = stack.pop() {
                    if let Some(known) = seen.get_mut(&it) {
                        known.on_stack = false;
                    }
                    group.push(it);
                    if it == at {
                        break;
                    }
                }
                group.sort_unstable();
                found.push(group);
            }
        }
    }
    found.sort();
    found
}

/// The shortest way from the first of a group back to it.
fn way_around(out: &BTreeMap<usize, Vec<usize>>, group: &[usize]) -> Vec<usize> {
    let Some(&start) = group.first() else {
        return Vec::new();
    };
    let mut before: HashMap<usize, usize> = HashMap::new();
    let mut next = std::collections::VecDeque::from([start]);
    while let Some(at) = next.pop_front() {
        for &to in out.get(&at).into_iter().flatten() {
            if !group.contains(&to) {
                continue;
            }
            if to == start {
                let (mut way, mut at) = (vec![at], at);
                while at != start {
                    let Some(&earlier) = before.get(&at) else {
                        break;
                    };
                    way.push(earlier);
                    at = earlier;
                }
                way.reverse();
                return way;
            }
            if to != start && !before.contains_key(&to) {
                before.insert(to, at);
                next.push_back(to);
            }
        }
    }
    group.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(usize, usize)]) -> BTreeMap<usize, Vec<usize>> {
        let mut out: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (from, to) in edges {
            out.entry(*from).or_default().push(*to);
        }
        out
    }

    #[test]
    fn everything_that_leads_to_itself_is_one_group() {
        let out = graph(&[(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 4), (6, 1)]);
        let groups = components(&out);
        assert_eq!(groups, [vec![1, 2, 3], vec![4, 5], vec![6]]);
        assert_eq!(way_around(&out, &groups[0]), [1, 2, 3]);
        assert_eq!(way_around(&out, &groups[1]), [4, 5]);
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let edges: Vec<(usize, usize)> = (0..200_000).map(|it| (it, it + 1)).collect();
        assert_eq!(components(&graph(&edges)).len(), 200_001);
    }

    #[test]
    fn tests_are_known_by_their_files() {
        for path in [
            "tests/a.py",
            "a/test_b.py",
            "a.test.ts",
            "x_test.go",
            "src/tests.rs",
            "crates/testing-model/src/draw.rs",
            "crates/fuzz/src/lib.rs",
        ] {
            assert!(is_test_path(path), "{path}");
        }
        for path in ["src/contest.py", "src/latest.rs", "attestation/a.py"] {
            assert!(!is_test_path(path), "{path}");
        }
    }
}
