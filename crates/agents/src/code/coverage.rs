//! What tests reach, and what is explained: how much can be said of it from the code alone.
//!
//! A test that runs a program, a call by way of a trait or a table, an attribute that names a function: none of these
//! is a call that can be followed. So a function counts as untested only if no test reaches it by calls and nothing
//! that a test may reach names it. What is between the two is not spoken of.

use super::{Code, File, Symbol, is_test_path};
use kenning_core::NodeId;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Lines at the beginning of a file that say that it was generated.
const HEAD_LINES: usize = 10;

/// What the text of a file says about the file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct About {
    /// A program wrote it.
    pub(crate) is_generated: bool,
    /// It runs a program of its package.
    pub(crate) runs_binary: bool,
    /// It is a program by itself.
    pub(crate) is_script: bool,
}

impl About {
    pub(crate) fn of(path: &str, text: &str) -> Self {
        let head: Vec<&str> = text.lines().take(HEAD_LINES).collect();
        let head = head.join("\n").to_lowercase();
        let marks = [
            "@generated",
            "do not edit",
            "automatically generated",
            "auto-generated",
        ];
        Self {
            is_generated: marks.iter().any(|it| head.contains(it)),
            runs_binary: is_test_path(path) && text.contains("CARGO_BIN_EXE_"),
            is_script: path.ends_with(".py") && text.lines().any(is_run_at_once),
        }
    }
}

/// Whether a line of Python does something when the file is read, beside making things known: `main()`.
fn is_run_at_once(line: &str) -> bool {
    let name = line.split('(').next().unwrap_or_default();
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let is_call = line.ends_with(')') && !name.is_empty() && name.chars().all(is_name);
    is_call || line.starts_with("if __name__ ==")
}

/// The folder of a package: what is above `src` or `tests`.
fn package(path: &str) -> &str {
    let ends = ["/src/", "/tests/"].iter().filter_map(|it| path.find(it));
    match ends.min() {
        Some(end) => path.get(..end).unwrap_or(path),
        None if path.starts_with("src/") || path.starts_with("tests/") => "",
        None => path.rsplit_once('/').map_or("", |it| it.0),
    }
}

/// Whether a line is nothing but a comment, in any of the usual forms.
pub(crate) fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    let is_attribute = line.starts_with("#[") || line.starts_with("#!");
    let mut marks = ["//", "#", "--", "/*", "* ", "*/"].iter();
    !is_attribute && marks.any(|it| line.starts_with(it))
}

/// Whether a statement that begins with this line only makes a name known.
fn is_import(line: &str) -> bool {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(after) => after.split_once(' ').map_or(line, |it| it.1),
        None => line,
    };
    let words = ["use ", "import ", "from ", "export {", "export * from"];
    words.iter().any(|it| line.starts_with(it))
}

/// How many brackets a line opens and does not close.
fn opened(line: &str) -> i64 {
    line.chars().fold(0, |n, it| match it {
        '(' | '{' => n + 1,
        ')' | '}' => n - 1,
        _ => n,
    })
}

/// The words of a line that may be names.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split(|it: char| !it.is_alphanumeric() && it != '_')
        .filter(|it| it.starts_with(|it: char| it.is_alphabetic() || it == '_'))
}

/// A place where a name stands: the file, and the symbol in which it does.
#[derive(Clone, Copy, Debug)]
struct Mention {
    file: usize,
    within: Option<usize>,
}

/// Where names stand, and which symbols a comment explains.
#[derive(Debug, Default)]
pub(crate) struct Mentions {
    of: HashMap<String, Vec<Mention>>,
    pub(crate) explained: HashSet<NodeId>,
}

/// What [`Mentions`] are made from, one file after the other.
pub(crate) struct Looking<'a> {
    code: &'a Code,
    wanted: HashSet<&'a str>,
    by_path: HashMap<(&'a str, &'a str), (usize, Vec<usize>)>,
    found: Mentions,
}

impl<'a> Looking<'a> {
    /// Looks for the names of what no call leads to, and of what may hold such names.
    pub(crate) fn new(code: &'a Code) -> Self {
        let reached = code.reach(code.entries());
        let open = code
            .symbols
            .iter()
            .filter(|it| is_table(it) || it.is_function() && !reached.contains(&it.id));
        let mut by_path: HashMap<_, (usize, Vec<usize>)> = HashMap::new();
        for (n, it) in code.files.iter().enumerate() {
            by_path.insert((it.repo.as_str(), it.path.as_str()), (n, Vec::new()));
        }
        for (n, it) in code.symbols.iter().enumerate() {
            if let Some(of) = by_path.get_mut(&(it.repo.as_str(), it.path.as_str())) {
                of.1.push(n);
            }
        }
        Self {
            wanted: open.map(|it| it.name.as_str()).collect(),
            code,
            by_path,
            found: Mentions::default(),
        }
    }

    pub(crate) fn read(&mut self, file: &File, text: &str) {
        let Some((n_file, symbols)) = self.by_path.get(&(file.repo.as_str(), file.path.as_str()))
        else {
            return;
        };
        if file.language.is_none() {
            return;
        }
        let code = self.code;
        let symbol = |n: &usize| code.symbols.get(*n);
        let lines: Vec<&str> = text.lines().collect();
        for it in symbols.iter().filter_map(symbol) {
            if it.is_public && it.doc.is_empty() && is_explained(&lines, it) {
                self.found.explained.insert(it.id);
            }
        }
        let holders: Vec<usize> = symbols
            .iter()
            .filter(|n| symbol(n).is_some_and(|it| it.is_function() || is_table(it)))
            .copied()
            .collect();
        let (mut number, mut importing, mut is_main) = (0, 0_i64, false);
        for line in lines {
            number += 1;
            if importing > 0 || is_import(line) {
                importing = (importing + opened(line)).max(0);
                continue;
            }
            // What a program does when it is run is no test.
            is_main = match is_main {
                false => line.starts_with("if __name__ =="),
                true => line.is_empty() || line.starts_with([' ', '\t']),
            };
            if is_main || is_comment(line) {
                continue;
            }
            let mut within = None;
            for name in names(line).filter(|it| self.wanted.contains(it)) {
                let inner = within.get_or_insert_with(|| {
                    let covers = holders.iter().filter(|n| {
                        symbol(n).is_some_and(|it| (it.line..=it.line_end).contains(&number))
                    });
                    covers
                        .max_by_key(|n| symbol(n).map_or(0, |it| it.line))
                        .copied()
                });
                let defines = inner
                    .as_ref()
                    .and_then(symbol)
                    .is_some_and(|it| it.name == name && it.line == number);
                if !defines {
                    let of = self.found.of.entry(name.to_owned()).or_default();
                    let mention = Mention {
                        file: *n_file,
                        within: *inner,
                    };
                    if of
                        .last()
                        .is_none_or(|it| (it.file, it.within) != (mention.file, mention.within))
                    {
                        of.push(mention);
                    }
                }
            }
        }
    }

    pub(crate) fn finish(self) -> Mentions {
        self.found
    }
}

/// What may hold names of functions beside functions.
fn is_table(it: &Symbol) -> bool {
    matches!(it.label.as_str(), "Constant" | "Macro")
}

/// Whether a comment stands above a symbol, or a mark that it needs none.
fn is_explained(lines: &[&str], symbol: &Symbol) -> bool {
    let at = usize::try_from(symbol.line).unwrap_or(usize::MAX);
    let above = lines.get(..at.saturating_sub(1)).unwrap_or_default();
    for line in above.iter().rev() {
        let line = line.trim();
        if line.contains("missing_docs") || line.contains("doc(hidden)") || is_comment(line) {
            return true;
        }
        if !line.starts_with(['#', '@', ')']) {
            return false;
        }
    }
    false
}

impl Code {
    fn about(&self, symbol: &Symbol) -> About {
        let file = self.file_of.get(&symbol.id);
        file.and_then(|it| self.files.get(*it))
            .map_or_else(About::default, |it| it.about)
    }

    /// Where tests begin, and what is called from where calls cannot be followed.
    fn entries(&self) -> HashSet<NodeId> {
        let programs: HashSet<(&str, &str)> = self
            .files
            .iter()
            .filter(|it| it.about.runs_binary)
            .map(|it| (it.repo.as_str(), package(&it.path)))
            .collect();
        let runs = |it: &&Symbol| programs.contains(&(it.repo.as_str(), package(&it.path)));
        let is_entry = |it: &&Symbol| {
            it.is_of_tests()
                || it.implements_trait()
                || self.overrides.contains(&it.id)
                || self.about(it).is_generated
                || it.name == "main" && runs(it)
        };
        let symbols = self.symbols.iter().filter(is_entry).map(|it| it.id);
        symbols.chain(self.tests.iter().map(|it| it.from)).collect()
    }

    /// What calls and uses lead to.
    fn reach(&self, from: HashSet<NodeId>) -> HashSet<NodeId> {
        let mut next: Vec<NodeId> = from.iter().copied().collect();
        let mut seen = from;
        while let Some(at) = next.pop() {
            for &to in self.out.get(&at).into_iter().flatten() {
                if seen.insert(to) {
                    next.push(to);
                }
            }
        }
        seen
    }

    /// The symbols that a test reaches by calls.
    pub(crate) fn tested(&self) -> HashSet<NodeId> {
        self.reach(self.entries())
    }

    /// The symbols that a test may reach: by calls, or because what it reaches names them.
    fn maybe_tested(&self) -> HashSet<NodeId> {
        let mut seen = self.tested();
        loop {
            let is_open =
                |it: &&Symbol| !seen.contains(&it.id) && (it.is_function() || is_table(it));
            let named: HashSet<NodeId> = self
                .symbols
                .iter()
                .filter(is_open)
                .filter(|it| self.is_named(it, &seen))
                .map(|it| it.id)
                .collect();
            if named.is_empty() {
                return seen;
            }
            let all = seen.into_iter().chain(named);
            seen = self.reach(all.collect());
        }
    }

    /// Whether something names a symbol that a test may reach, or that is outside of every function.
    fn is_named(&self, symbol: &Symbol, seen: &HashSet<NodeId>) -> bool {
        let mentions = self.mentions.of.get(&symbol.name);
        let own = self
            .file_of
            .get(&symbol.id)
            .and_then(|it| self.files.get(*it));
        let is_meant = |it: &&Mention| {
            let Some(file) = self.files.get(it.file) else {
                return false;
            };
            let is_same = own.is_some_and(|own| {
                own.repo == file.repo
                    && own.language == file.language
                    && (symbol.is_for_all() || package(&own.path) == package(&file.path))
            });
            let holder = it.within.and_then(|it| self.symbols.get(it));
            is_same && holder.is_none_or(|it| it.id != symbol.id && seen.contains(&it.id))
        };
        mentions.is_some_and(|all| all.iter().any(|it| is_meant(&it)))
    }

    /// Functions within functions, which nobody else can call.
    fn inner_functions(&self) -> HashSet<NodeId> {
        let functions: HashSet<(&str, &str, &str)> = self
            .symbols
            .iter()
            .filter(|it| it.is_function())
            .map(|it| (it.repo.as_str(), it.path.as_str(), it.qualified.as_str()))
            .collect();
        let is_inner = |it: &&Symbol| {
            let outer = it.qualified.rsplit_once('.').map(|it| it.0);
            outer.is_some_and(|outer| functions.contains(&(&it.repo, &it.path, outer)))
        };
        let found = self.symbols.iter().filter(is_inner).map(|it| it.id);
        found.collect()
    }

    /// Languages of repositories that have tests: where there are none, nothing is said of single functions.
    fn with_tests(&self) -> HashSet<(&str, Option<&str>)> {
        let files = self.files.iter().filter(|it| is_test_path(&it.path));
        let files = files.map(|it| (it.repo.as_str(), it.language.as_deref()));
        let symbols = self.symbols.iter().filter(|it| it.is_test);
        let symbols = symbols.filter_map(|it| {
            let file = self.files.get(*self.file_of.get(&it.id)?)?;
            Some((file.repo.as_str(), file.language.as_deref()))
        });
        files.chain(symbols).collect()
    }

    /// The functions of which it can be said whether they are tested.
    pub(crate) fn testable(&self) -> Vec<&Symbol> {
        let (with_tests, inner) = (self.with_tests(), self.inner_functions());
        let is_testable = |it: &&Symbol| {
            let file = self.file_of.get(&it.id).and_then(|it| self.files.get(*it));
            it.is_function()
                && !it.is_of_tests()
                && it.name != "main"
                && !it.is_special()
                && !inner.contains(&it.id)
                && !it.implements_trait()
                && !self.overrides.contains(&it.id)
                && file.is_some_and(|it| {
                    !it.about.is_generated
                        && with_tests.contains(&(it.repo.as_str(), it.language.as_deref()))
                })
        };
        self.symbols.iter().filter(is_testable).collect()
    }

    /// Functions that no test can reach, as far as the code says.
    pub(crate) fn untested(&self) -> Vec<&Symbol> {
        let seen = self.maybe_tested();
        let mut all = self.testable();
        all.retain(|it| !seen.contains(&it.id));
        all
    }

    /// What others may call and nothing explains.
    pub(crate) fn undocumented(&self) -> Vec<&Symbol> {
        let libraries: HashSet<(&str, &str)> = self
            .files
            .iter()
            .filter(|it| it.path.ends_with("src/lib.rs"))
            .map(|it| (it.repo.as_str(), package(&it.path)))
            .collect();
        let imported: HashSet<usize> = self.depends.iter().map(|it| it.1).collect();
        let inner = self.inner_functions();
        // What only its own program can call needs no words for others.
        let is_program = |it: &Symbol| match it.path.ends_with(".rs") {
            true => {
                let is_binary = it.path.ends_with("src/main.rs") || it.path.contains("/src/bin/");
                is_binary || !libraries.contains(&(it.repo.as_str(), package(&it.path)))
            }
            false => {
                let file = self.file_of.get(&it.id);
                self.about(it).is_script && file.is_none_or(|it| !imported.contains(it))
            }
        };
        let is_open = |it: &&Symbol| {
            let is_kind = it.is_function()
                || matches!(
                    it.label.as_str(),
                    "Class" | "Struct" | "Trait" | "Enum" | "Interface"
                );
            is_kind
                && it.is_public
                && it.doc.is_empty()
                && !it.path.ends_with(".sql")
                && !it.is_of_tests()
                && !it.is_special()
                && !it.implements_trait()
                && !self.overrides.contains(&it.id)
                && !self.mentions.explained.contains(&it.id)
                && !self.about(it).is_generated
                && !inner.contains(&it.id)
                && it.name != "main"
                && !is_program(it)
        };
        self.symbols.iter().filter(is_open).collect()
    }

    /// Methods of types that take after something outside of the repository, which may call them. In Rust it is the
    /// method and not the type that says so.
    pub(crate) fn find_overrides(&self, heirs: &HashSet<NodeId>) -> HashSet<NodeId> {
        let mut types: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for it in self.symbols.iter().filter(|it| heirs.contains(&it.id)) {
            let of = types.entry((&it.repo, &it.path)).or_default();
            of.push(&it.qualified);
        }
        let is_heir = |it: &&Symbol| {
            let of = types.get(&(it.repo.as_str(), it.path.as_str()));
            let outer = it.qualified.rsplit_once('.').map(|it| it.0);
            let is_method = it.label == "Method" && !it.path.ends_with(".rs");
            is_method && of.zip(outer).is_some_and(|(of, outer)| of.contains(&outer))
        };
        let found = self.symbols.iter().filter(is_heir).map(|it| it.id);
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_mention_is_told_apart() {
        for line in [
            "use a::b;",
            "pub use a::{",
            "pub(crate) use x;",
            "from a import b",
            "import x",
        ] {
            assert!(is_import(line), "{line}");
        }
        for line in ["user(a)", "pub fn use_it()", "publish(a)", "important()"] {
            assert!(!is_import(line), "{line}");
        }
        for line in ["// a", "  # a", "/// a", " * a"] {
            assert!(is_comment(line), "{line}");
        }
        for line in ["#[serde(with = \"a\")]", "a // b", "*a = 1"] {
            assert!(!is_comment(line), "{line}");
        }
        assert_eq!(
            names("a.b_c(1x, \"d\")").collect::<Vec<_>>(),
            ["a", "b_c", "d"]
        );
    }

    #[test]
    fn files_belong_to_packages() {
        for (path, expected) in [
            ("crates/a/src/b/c.rs", "crates/a"),
            ("crates/a/tests/c.rs", "crates/a"),
            ("src/lib.rs", ""),
            ("tools/x/make.py", "tools/x"),
            ("a.py", ""),
        ] {
            assert_eq!(package(path), expected, "{path}");
        }
    }

    #[test]
    fn generated_files_and_programs_say_so() {
        let about = About::of("a.rs", "//! Border\n\n// Generated by x. DO NOT EDIT!\n");
        assert!(about.is_generated);
        let about = About::of("a/tests/b.rs", "env!(\"CARGO_BIN_EXE_a\")");
        assert!(about.runs_binary && !about.is_generated);
        assert!(
            About::of(
                "a.py",
                "import x\n\nif __name__ == \"__main__\":\n    x.a()\n"
            )
            .is_script
        );
    }
}
