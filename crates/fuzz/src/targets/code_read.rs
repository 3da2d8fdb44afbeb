//! Source texts of every language, and what their names mean.

use super::{ensure, in_time, owned, pieces, text};
use crate::{Source, Subject, Target};
use kenning_code::resolve::{Place, Project};
use kenning_code::{Facts, read};

pub(super) const TARGET: Target = Target {
    name: "code_read",
    about: "a text of any language becomes facts that hold together, and its links lead to symbols that are there",
    words: WORDS,
    seeds: || owned(SEEDS),
    generate,
    open: || Box::new(Texts),
    pass_cases: 300,
    fresh_every: u64::MAX,
    contains_panics: false,
};

/// The first byte of an input chooses among them.
const PATHS: &[&str] = &[
    "a.rs",
    "a.py",
    "a.ts",
    "a.tsx",
    "a.js",
    "a.go",
    "A.java",
    "a.c",
    "a.cpp",
    "A.cs",
    "a.rb",
    "a.php",
    "A.kt",
    "a.sh",
    "a.sql",
    "Cargo.toml",
    "package.json",
    "tsconfig.json",
    "go.mod",
];

const WORDS: &[&str] = &[
    "fn f(x: T) -> U { x.g() }\n",
    "let x = x();\n",
    "impl T for S {\n",
    "use a::b::{self, c as d, *};\n",
    "macro_rules! m { () => { f() } }\n",
    "#[test]\n",
    "mod m;\n",
    "def f(a, *b, **c):\n    return f(a)\n",
    "class A(B):\n",
    "from . import a as b\n",
    "@property\n",
    "self.x = x\n",
    "function f(a?: T): Promise<U> { return this.g(a) }\n",
    "export default class extends A {}\n",
    "import x, { y as z } from './a'\n",
    "const f = async (x) => x?.y()\n",
    "<A b={c}/>",
    "func (r *R) f() (a, b T) { r.f() }\n",
    "package a\n",
    "type T = T;\n",
    "interface I extends I {}\n",
    "public class A<T extends A<T>> { A() { this(); } }\n",
    "new A().b()",
    "A::b",
    "struct s { int x; };\n",
    "template <class T> void f() {}\n",
    "#define X(a) f(a)\n",
    "namespace A.B;\n",
    "<?php ",
    "fun f() = ::f\n",
    "f() { g; }\n",
    "CREATE TABLE t (a int);\n",
    "/* ",
    " */",
    "\"",
    "'",
    "`${",
    "}",
    "{",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ";",
    "=",
    "=>",
    "\n    ",
    "\t",
    "0x",
    "\\",
    "{\"name\": \"a\", \"main\": \"b\"}",
    "[package]\nname = \"a\"\n",
];

const SEEDS: &[&str] = &[
    "\0pub struct A;\nimpl A { fn new() -> Self { A } fn go(&self) { self.go(); A::new().go() } }\nfn main() { let a = A::new(); a.go(); [1].map(|x| x).map(main); }\n",
    "\x01import os\nclass A(B):\n    def f(self, x: 'A') -> 'A':\n        return x.f(self)\n\ndef g():\n    a = A()\n    a.f(a).f(g)\n",
    "\x02import { b } from './b';\nexport class A<T> extends B<T> { x = new A(); f(): A { return this.x.f(); } }\n",
    "\x05package a\n\nimport \"fmt\"\n\ntype A struct{ b *A }\n\nfunc (a *A) F() *A { return a.b.F() }\nfunc main() { fmt.Println((&A{}).F()) }\n",
    "\x06package a; class A extends A { A a; A f() { return a.f().f(); } static void g() { new A().f(); } }\n",
    "\x08namespace n { class A { void f(); }; }\nvoid n::A::f() { this->f(); }\n",
];

fn generate(source: &mut Source) -> Vec<u8> {
    let pairs = &[
        ("(", ")"),
        ("{", "}"),
        ("[", "]"),
        ("<", ">"),
        ("f(", ")"),
        ("a.b(", ")"),
        ("fn f() {", "}"),
        ("class A {", "}"),
        ("if (x) {", "}"),
        ("/*", "*/"),
        ("`${", "}`"),
        ("&", ""),
        ("!", ""),
        ("a = ", ""),
        ("a::", ""),
        ("x => ", ""),
    ];
    let language = source.below(PATHS.len());
    let mut input = vec![u8::try_from(language).unwrap_or(0)];
    input.extend(pieces(source, WORDS, pairs).into_bytes());
    input
}

struct Texts;

impl Subject for Texts {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let Some((language, rest)) = input.split_first() else {
            return Ok(());
        };
        let path = PATHS[usize::from(*language) % PATHS.len()];
        let text = text(rest);
        let facts = in_time(input, || read(path, &text))?;
        holds_together(&facts, text.split('\n').count() as u32)?;
        let again = Facts::from_bytes(&facts.to_bytes());
        ensure!(
            again.as_ref() == Some(&facts),
            "facts are not kept as they are"
        );
        // The same text twice, so that every name has two meanings.
        let sources = ["one", "two"].map(|folder| kenning_code::resolve::Source {
            path: format!("{folder}/{path}"),
            facts: facts.clone(),
        });
        in_time(input, || {
            let project = Project::new(&sources);
            (0..2).try_for_each(|f| links_lead_somewhere(&project, &sources, f))
        })?
    }
}

/// Every number in facts is the place of something that is there.
fn holds_together(facts: &Facts, n_lines: u32) -> Result<(), String> {
    let n = facts.symbols.len();
    let is_there = |it: &Option<u32>| it.is_none_or(|it| (it as usize) < n);
    for (place, symbol) in facts.symbols.iter().enumerate() {
        ensure!(
            symbol.parent.is_none_or(|it| (it as usize) < place),
            "a symbol stands in one that comes later"
        );
        ensure!(
            (1..=n_lines).contains(&symbol.line) && symbol.line <= symbol.line_end,
            "`{}` is on line {} to {} of {n_lines}",
            symbol.name,
            symbol.line,
            symbol.line_end
        );
        ensure!(
            !symbol.name.chars().any(char::is_control),
            "a name has control characters"
        );
    }
    let scopes = facts.calls.iter().map(|it| &it.scope);
    let scopes = scopes.chain(facts.bindings.iter().map(|it| &it.scope));
    let scopes = scopes.chain(facts.imports.iter().map(|it| &it.scope));
    let mut scopes = scopes.chain(facts.uses.iter().map(|it| &it.scope));
    ensure!(scopes.all(is_there), "a scope is no symbol");
    Ok(())
}

fn links_lead_somewhere(
    project: &Project<'_>,
    sources: &[kenning_code::resolve::Source],
    f: u32,
) -> Result<(), String> {
    for link in project.links(f) {
        for place in [&link.from, &link.to] {
            let is_there = match place {
                Place::Symbol(sym) => sources
                    .get(sym.file as usize)
                    .is_some_and(|it| (sym.n as usize) < it.facts.symbols.len()),
                Place::File(file) => (*file as usize) < sources.len(),
                Place::Folder(_) | Place::External(_) => true,
            };
            ensure!(is_there, "a link leads to {place:?}");
        }
        ensure!(
            (0.0..=1.0).contains(&link.confidence),
            "a link is {} sure",
            link.confidence
        );
    }
    Ok(())
}
