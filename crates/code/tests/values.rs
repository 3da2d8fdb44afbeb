//! Names that get values: what they hide, where they end, and functions that are values themselves.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use kenning_code::read;
use kenning_code::resolve::{Place, Project, Relation, Source};

/// The links of a relation within the files, as `from -> to` with their lines.
fn told(files: &[(&str, &str)], relation: Relation) -> Vec<String> {
    let sources: Vec<Source> = files
        .iter()
        .map(|(path, text)| Source {
            path: (*path).to_owned(),
            facts: read(path, text),
        })
        .collect();
    let project = Project::new(&sources);
    let name = |place: &Place| match place {
        Place::Symbol(sym) => Some(sources[sym.file as usize].facts.qualified(sym.n)),
        _ => None,
    };
    let mut all = Vec::new();
    for f in 0..u32::try_from(sources.len()).unwrap() {
        for link in project.links(f) {
            if link.relation == relation
                && let Some((from, to)) = name(&link.from).zip(name(&link.to))
            {
                all.push(format!("{from} -> {to} {:?}", link.lines));
            }
        }
    }
    all.sort();
    all
}

fn rust(text: &str) -> Vec<String> {
    told(&[("src/lib.rs", text)], Relation::Calls)
}

#[test]
fn a_variable_does_not_hide_the_function_that_its_value_calls() {
    let text = "fn size() -> usize { 1 }\nfn one() { let size = size(); drop(size); }\nfn two() {\n    let size =\n        size();\n    size.min(2);\n}\n";
    assert_eq!(rust(text), ["one -> size [2]", "two -> size [5]"]);
    let text =
        "package a\nfunc size() int { return 1 }\nfunc one() {\n\tsize := size()\n\t_ = size\n}\n";
    assert_eq!(
        told(&[("a.go", text)], Relation::Calls),
        ["one -> size [4]"]
    );
}

#[test]
fn a_variable_is_none_before_its_statement_and_after_its_block() {
    let text = "fn path() {}\nfn before() {\n    path();\n    let path = 1;\n    drop(path);\n}\nfn after(all: Vec<u8>) {\n    for path in all { drop(path); }\n    if let Some(path) = None::<u8> {\n        drop(path);\n    }\n    match 1 {\n        path => drop(path),\n    }\n    all.iter().map(|path| path);\n    path();\n}\nfn inside(all: Vec<fn()>) {\n    for path in all {\n        path();\n    }\n}\n";
    assert_eq!(rust(text), ["after -> path [16]", "before -> path [3]"]);
}

#[test]
fn a_variable_that_is_called_like_a_module_does_not_hide_it() {
    let files = [
        ("src/lib.rs", "mod git;\nmod user;\n"),
        (
            "src/git.rs",
            "pub struct Git;\nimpl Git { pub fn run(&self) {} }\npub fn last_line() -> String { String::new() }\n",
        ),
        (
            "src/user.rs",
            "use crate::git::{self, Git};\nfn ask(git: &Git) { git.run(); git::last_line(); assert_eq!(git::last_line(), \"\"); }\nfn fetch() { let git = Git; git.run(); let line = git::last_line(); drop(line); }\n",
        ),
    ];
    assert_eq!(
        told(&files, Relation::Calls),
        [
            "ask -> Git.run [2]",
            "ask -> last_line [2]",
            "fetch -> Git.run [3]",
            "fetch -> last_line [3]",
        ]
    );
}

#[test]
fn a_function_that_is_passed_on_is_used() {
    let text = "struct Row;\nimpl Row { fn of(it: u8) -> Row { Row } }\nfn parse(it: u8) -> u8 { it }\nfn all(xs: Vec<u8>, parsed: u8) { xs.into_iter().map(parse).map(Row::of); take(parsed); }\nfn take(it: u8) {}\nstruct Table { call: fn(u8) -> u8 }\nfn table() -> Table { Table { call: parse } }\n";
    let files = [("src/lib.rs", text)];
    let functions = |all: Vec<String>| -> Vec<String> {
        let is_function = |it: &String| {
            let ends = ["-> parse [", "-> handler [", "-> Row.of [", "-> A.parse ["];
            ends.iter().any(|end| it.contains(end))
        };
        all.into_iter().filter(is_function).collect()
    };
    assert_eq!(
        functions(told(&files, Relation::Uses)),
        [
            "all -> Row.of [4]",
            "all -> parse [4]",
            "table -> parse [7]"
        ]
    );
    assert_eq!(told(&files, Relation::Calls), ["all -> take [4]"]);
    let text = "function handler() {}\nfunction run(p: Promise<void>, other: () => void) { p.then(handler); p.then(other); }\n";
    assert_eq!(
        functions(told(&[("a.ts", text)], Relation::Uses)),
        ["run -> handler [2]"]
    );
    let text = "def parse(it):\n    return it\n\ndef run(all):\n    other = 1\n    return sorted(map(parse, all), key=parse), f(other)\n";
    assert_eq!(
        functions(told(&[("a.py", text)], Relation::Uses)),
        ["run -> parse [6]"]
    );
    let text = "package a;\nclass A {\n  static int parse(int it) { return it; }\n  void run(java.util.List<Integer> all) { all.forEach(A::parse); }\n}\n";
    assert_eq!(
        functions(told(&[("A.java", text)], Relation::Uses)),
        ["A.run -> A.parse [4]"]
    );
}

#[test]
fn a_test_that_passes_a_function_on_tests_it() {
    let text = "fn parse(it: u8) -> u8 { it }\n#[test]\nfn it_parses() { [1].map(parse); }\n";
    assert_eq!(
        told(&[("src/lib.rs", text)], Relation::Tests),
        ["it_parses -> parse [3]"]
    );
}

#[test]
fn types_of_rust_are_followed_through_aliases_iterators_and_copies() {
    let text = "type Result<T, E = ()> = std::result::Result<T, E>;\n#[derive(Clone)]\nstruct Db(#[cfg(x)] Row);\nstruct Row;\nimpl Row { fn len(&self) {} }\nimpl Db {\n    fn open() -> Result<Self> { Ok(Db(Row)) }\n    fn rows(&self) -> impl Iterator<Item = &Row> { [].iter() }\n    fn one(&self) {}\n}\nfn alias() -> Result<()> { let db = Db::open()?; db.one(); Ok(()) }\nfn copy(db: &Db) { db.clone().one(); }\nfn each(db: &Db) { for row in db.rows() { row.len(); } }\nfn numbered(db: &Db) { for (n, row) in db.rows().enumerate() { row.len(); } }\nfn place(db: &Db) { db.0.len(); }\n";
    assert_eq!(
        rust(text),
        [
            "alias -> Db.one [11]",
            "alias -> Db.open [11]",
            "copy -> Db.one [12]",
            "each -> Db.rows [13]",
            "each -> Row.len [13]",
            "numbered -> Db.rows [14]",
            "numbered -> Row.len [14]",
            "place -> Row.len [15]",
        ]
    );
}

#[test]
fn a_trait_that_extends_types_from_outside_is_found_where_it_is_imported() {
    let files = [
        ("src/lib.rs", "mod ext;\nmod user;\nmod stranger;\n"),
        (
            "src/ext.rs",
            "pub trait Numbered: Iterator { fn with_numbers(self) -> Self; }\nimpl<I: Iterator> Numbered for I { fn other(self) {} }\n",
        ),
        (
            "src/user.rs",
            "use crate::ext::Numbered;\nfn ask(all: Vec<u8>) { all.iter().with_numbers(); }\n",
        ),
        (
            "src/stranger.rs",
            "fn ask_too(all: Vec<u8>) { all.iter().with_numbers(); }\n",
        ),
    ];
    assert_eq!(
        told(&files, Relation::Calls),
        ["ask -> Numbered.with_numbers [2]"]
    );
}
