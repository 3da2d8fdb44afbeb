//! Each language, from its text to links: a few files of it, and what must be found.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use kenning_code::resolve::{Link, Origin, Place, Project, Relation, Source};
use kenning_code::{Language, read};

fn sources(files: &[(&str, &str)]) -> Vec<Source> {
    let source = |(path, text): &(&str, &str)| Source {
        path: (*path).to_owned(),
        facts: read(path, text),
    };
    files.iter().map(source).collect()
}

fn shown(sources: &[Source], place: &Place) -> String {
    match place {
        Place::Symbol(sym) => sources[sym.file as usize].facts.qualified(sym.n),
        Place::File(f) => sources[*f as usize].path.clone(),
        Place::Folder(path) => format!("{path}/"),
        Place::External(name) => format!("<{name}>"),
    }
}

fn links(sources: &[Source]) -> Vec<Link> {
    let project = Project::new(sources);
    let files = 0..u32::try_from(sources.len()).unwrap();
    files.flat_map(|f| project.links(f)).collect()
}

/// The links of a relation that stay in the repository, as `from -> to origin`.
fn told(files: &[(&str, &str)], relation: Relation) -> Vec<String> {
    let sources = sources(files);
    let mut all: Vec<String> = links(&sources)
        .iter()
        .filter(|it| it.relation == relation && it.origin != Origin::External)
        .map(|it| {
            let (from, to) = (shown(&sources, &it.from), shown(&sources, &it.to));
            format!("{from} -> {to} {}", it.origin.as_str())
        })
        .collect();
    all.sort();
    all
}

/// Symbols as `Label qualified`.
fn symbols(path: &str, text: &str) -> Vec<String> {
    let facts = read(path, text);
    assert_eq!(facts.gap, None);
    let all = (0..).zip(&facts.symbols);
    all.map(|(n, it)| format!("{} {}", it.kind.label(), facts.qualified(n)))
        .collect()
}

#[test]
fn rust_is_read_by_its_modules_and_impls() {
    let files = [
        ("Cargo.toml", "[package]\nname = \"acme\"\n"),
        (
            "src/lib.rs",
            "mod store;\nmod other;\nuse store::Store;\n/// Opens.\npub fn open() -> Store { Store::new() }\npub trait Run { fn go(&self) { self.halt() } fn halt(&self); }\nimpl Run for Store { fn halt(&self) {} }\n",
        ),
        (
            "src/store.rs",
            "pub struct Store { rows: Vec<Row> }\npub struct Row;\nimpl Row { pub fn len(&self) -> usize { 0 } }\nimpl Store {\n    pub fn new() -> Self { Self { rows: Vec::new() } }\n    pub fn count(&self) -> usize { self.rows.iter().map(|row| row.len()).sum() }\n}\n#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn it_counts() { assert_eq!(Store::new().count(), helper()); }\n    fn helper() -> usize { 0 }\n}\n",
        ),
        (
            "src/other.rs",
            "fn new() {}\nfn count() { let store = crate::open(); store.count(); crate::open().halt(); unknown.halt(); }\n",
        ),
    ];
    assert_eq!(
        told(&files, Relation::Calls),
        [
            "Run.go -> Run.halt receiver",
            "Store.count -> Row.len type",
            "count -> Store.count type",
            "count -> Store.halt type",
            "count -> open import",
            "open -> Store.new import",
            "tests.it_counts -> Store.count type",
            "tests.it_counts -> Store.new import",
            "tests.it_counts -> tests.helper scope",
        ]
    );
    assert_eq!(
        told(&files, Relation::Tests),
        [
            "tests.it_counts -> Store.count type",
            "tests.it_counts -> Store.new import",
        ]
    );
    assert_eq!(told(&files, Relation::Implements), ["Store -> Run import"]);
    assert_eq!(
        told(&files, Relation::MayCall),
        [
            "count -> Run.halt name-only",
            "count -> Store.halt name-only"
        ]
    );
}

#[test]
fn python_is_read_by_its_imports_and_classes() {
    let files = [
        ("pkg/__init__.py", "from .base import Base\n"),
        (
            "pkg/base.py",
            "class Base:\n    \"\"\"The base.\"\"\"\n    def __init__(self, name: str):\n        self.name = name\n    def run(self):\n        return self.step()\n    def step(self):\n        pass\n",
        ),
        (
            "pkg/main.py",
            "import os\nfrom pkg import Base\nfrom . import tools as t\n\nclass Child(Base):\n    def step(self):\n        super().step()\n        t.helper()\n        os.getcwd()\n\ndef make() -> Child:\n    return Child('x')\n\ndef main():\n    child = make()\n    child.run()\n    other = t.factory()\n    other.run()\n    def inner():\n        make()\n    inner()\n",
        ),
        (
            "pkg/tools.py",
            "from pkg.base import Base\n\ndef helper(): pass\n\ndef factory():\n    return Base('y')\n",
        ),
        (
            "tests/test_main.py",
            "from pkg.main import make\n\ndef test_make():\n    assert make()\n",
        ),
    ];
    assert_eq!(
        told(&files, Relation::Calls),
        [
            "Base.run -> Base.step receiver",
            "Child.step -> Base.step receiver",
            "Child.step -> helper import",
            "factory -> Base.__init__ import",
            "main -> Base.run type",
            "main -> factory import",
            "main -> main.inner scope",
            "main -> make scope",
            "make -> Base.__init__ scope",
            "test_make -> make import",
        ]
    );
    assert_eq!(told(&files, Relation::Extends), ["Child -> Base import"]);
    assert_eq!(told(&files, Relation::Tests), ["test_make -> make import"]);
}

#[test]
fn typescript_is_read_by_its_exports_and_types() {
    let files = [
        (
            "src/store.ts",
            "export interface Shape { area(): number }\nexport class Store implements Shape {\n  constructor(private size: number) {}\n  area(): number { return this.double() }\n  private double() { return this.size * 2 }\n  static open(): Store { return new Store(1) }\n}\nexport default function make() { return Store.open() }\nexport const util = { twice(n: number) { return n }, once: () => 1 }\n",
        ),
        (
            "src/index.ts",
            "export * from './store'\nexport { default as build } from './store'\n",
        ),
        (
            "src/app.tsx",
            "import { build, Store, util } from '.'\nimport type { Shape } from './store.js'\nconst run = async (shape: Shape) => { shape.area(); util.twice(2) }\nfunction area() {}\nexport function App() {\n  const store = build()\n  store.area()\n  const all: Store[] = []\n  all.forEach(it => it.area())\n  run(store)\n  return <Panel store={store} />\n}\nfunction Panel(props: { store: Store }) { return null }\n",
        ),
    ];
    assert_eq!(
        told(&files, Relation::Calls),
        [
            "App -> Panel scope",
            "App -> Store.area type",
            "App -> make import",
            "App -> run scope",
            "Store.area -> Store.double receiver",
            "Store.open -> Store.constructor scope",
            "make -> Store.open scope",
            "run -> Shape.area type",
            "run -> util.twice import",
        ]
    );
    assert_eq!(told(&files, Relation::Implements), ["Store -> Shape scope"]);
}

#[test]
fn go_is_read_by_its_packages_and_receivers() {
    let files = [
        ("go.mod", "module example.com/acme\n"),
        (
            "store/store.go",
            "package store\n\n// Store keeps.\ntype Store struct { log *Log }\n\nfunc Open(path string) (*Store, error) { return &Store{log: newLog()}, nil }\n\nfunc (s *Store) Put(key string) { s.log.Write(key) }\n",
        ),
        (
            "store/log.go",
            "package store\n\ntype Log struct{}\n\nfunc newLog() *Log { return &Log{} }\nfunc (l *Log) Write(key string) {}\n",
        ),
        (
            "main.go",
            "package main\n\nimport (\n\t\"fmt\"\n\t\"example.com/acme/store\"\n)\n\nfunc main() {\n\ts, err := store.Open(\"x\")\n\tif err != nil { fmt.Println(err) }\n\ts.Put(\"k\")\n}\n",
        ),
    ];
    assert_eq!(
        told(&files, Relation::Calls),
        [
            "Open -> newLog scope",
            "Store.Put -> Log.Write type",
            "main -> Open import",
            "main -> Store.Put type",
        ]
    );
}

#[test]
fn java_is_read_by_its_packages_and_overloads() {
    let files = [
        (
            "src/main/java/acme/Store.java",
            "package acme;\n\npublic class Store extends Base {\n  private final Log log = new Log();\n  public Store(String name) { this(name, 1); }\n  public Store(String name, int size) { super(); }\n  public void put(String key) { log.write(key); check(); }\n  public void put(String key, int n) { put(key); }\n}\n",
        ),
        (
            "src/main/java/acme/Log.java",
            "package acme;\nclass Log { void write(String it) {} }\n",
        ),
        (
            "src/main/java/acme/Base.java",
            "package acme;\nabstract class Base { protected void check() {} }\n",
        ),
        (
            "src/test/java/acme/StoreTest.java",
            "package acme.tests;\nimport acme.Store;\nclass StoreTest { @Test void puts() { var store = new Store(\"a\"); store.put(\"k\", 1); } }\n",
        ),
    ];
    assert_eq!(
        told(&files, Relation::Calls),
        [
            "Store -> Log scope",
            "Store.<init> -> Base receiver",
            "Store.<init> -> Store.<init> receiver",
            "Store.put -> Base.check receiver",
            "Store.put -> Log.write type",
            "Store.put -> Store.put receiver",
            "StoreTest.puts -> Store.<init> import",
            "StoreTest.puts -> Store.put type",
        ]
    );
    assert_eq!(
        told(&files, Relation::Tests),
        [
            "StoreTest.puts -> Store.<init> import",
            "StoreTest.puts -> Store.put type",
        ]
    );
}

#[test]
fn the_other_languages_have_symbols_and_calls() {
    let check = |path: &str, text: &str, expected_symbols: &[&str], expected_calls: &[&str]| {
        assert_eq!(symbols(path, text), expected_symbols, "{path}");
        assert_eq!(
            told(&[(path, text)], Relation::Calls),
            expected_calls,
            "{path}"
        );
    };
    check(
        "a.c",
        "#include \"b.h\"\n#define SIZE 3\nstruct row { int n; };\nstatic int one(struct row *r) { return r->n; }\nint two(void) { struct row r; return one(&r); }\n",
        &[
            "Constant SIZE",
            "Struct row",
            "Function one",
            "Function two",
        ],
        &["two -> one scope"],
    );
    check(
        "a.cpp",
        "namespace acme {\nclass Base { public: virtual void go() {} };\nclass Store : public Base {\npublic:\n  Store(int n);\n  void put() { go(); }\n  int n_;\n};\nvoid run() { Store s(1); s.put(); auto p = new Store(2); p->put(); }\n}\n",
        &[
            "Module acme",
            "Class acme.Base",
            "Method acme.Base.go",
            "Class acme.Store",
            "Method acme.Store.<init>",
            "Method acme.Store.put",
            "Function acme.run",
        ],
        &[
            "acme.Store.put -> acme.Base.go receiver",
            "acme.run -> acme.Store.<init> scope",
            "acme.run -> acme.Store.put type",
        ],
    );
    check(
        "A.cs",
        "namespace Acme;\npublic class Store : IStore {\n  private readonly Log log = new Log();\n  public void Put(string key) { log.Write(key); Check(); }\n  void Check() {}\n}\nclass Log { public void Write(string it) {} }\ninterface IStore { void Put(string key); }\n",
        &[
            "Class Store",
            "Method Store.Put",
            "Method Store.Check",
            "Class Log",
            "Method Log.Write",
            "Interface IStore",
            "Method IStore.Put",
        ],
        &[
            "Store -> Log scope",
            "Store.Put -> Log.Write type",
            "Store.Put -> Store.Check receiver",
        ],
    );
    check(
        "a.rb",
        "class Store < Base\n  def initialize(log)\n    @log = Log.new\n  end\n  def put(key)\n    @log.write(key)\n    check\n  end\n  def check; end\nend\nclass Log\n  def write(it); end\nend\n",
        &[
            "Class Store",
            "Method Store.initialize",
            "Method Store.put",
            "Method Store.check",
            "Class Log",
            "Method Log.write",
        ],
        &[
            "Store.initialize -> Log scope",
            "Store.put -> Log.write type",
            "Store.put -> Store.check receiver",
        ],
    );
    check(
        "a.php",
        "<?php\nnamespace Acme;\nclass Store extends Base {\n  public function __construct(private Log $log) {}\n  public function put(string $key): void { $this->log->write($key); self::check(); }\n  private static function check() {}\n}\nclass Log { public function write($it) {} }\nfunction make(): Store { return new Store(new Log()); }\n",
        &[
            "Class Store",
            "Method Store.__construct",
            "Method Store.put",
            "Method Store.check",
            "Class Log",
            "Method Log.write",
            "Function make",
        ],
        &[
            "Store.put -> Log.write type",
            "Store.put -> Store.check receiver",
            "make -> Log scope",
            "make -> Store.__construct scope",
        ],
    );
    check(
        "A.kt",
        "package acme\n\nclass Store(private val log: Log) : Base() {\n  fun put(key: String) { log.write(key); check() }\n  private fun check() {}\n}\nclass Log { fun write(it: String) {} }\nopen class Base\nfun make(): Store = Store(Log())\n",
        &[
            "Class Store",
            "Method Store.put",
            "Method Store.check",
            "Class Log",
            "Method Log.write",
            "Class Base",
            "Function make",
        ],
        &[
            "Store.put -> Log.write type",
            "Store.put -> Store.check receiver",
            "make -> Log scope",
            "make -> Store scope",
        ],
    );
    check(
        "a.sh",
        "#!/bin/bash\nPLACE=here\n# Says hello.\nhello() { echo hi; }\nfunction main { hello \"$PLACE\"; }\nmain\n",
        &["Constant PLACE", "Function hello", "Function main"],
        &["a.sh -> main scope", "main -> hello scope"],
    );
    check(
        "a.sql",
        "CREATE TABLE birds (id int, name text);\nCREATE VIEW big_birds AS SELECT * FROM birds;\n",
        &["Class birds", "Class big_birds"],
        &[],
    );
    assert_eq!(
        told(
            &[(
                "a.sql",
                "CREATE TABLE birds (id int);\nCREATE VIEW v AS SELECT * FROM birds;\n"
            )],
            Relation::Uses
        ),
        ["v -> birds scope"]
    );
}

#[test]
fn a_symbol_has_its_head_its_lines_and_what_is_said_of_it() {
    let facts = read(
        "a.ts",
        "/**\n * Adds two.\n * @param a one\n */\nexport function add(\n  a: number,\n  b = 1,\n): number {\n  return a + b\n}\n",
    );
    let add = &facts.symbols[0];
    assert_eq!(add.signature, "function add( a: number, b = 1, ): number");
    assert_eq!(add.doc, "Adds two.\n@param a one");
    assert_eq!((add.line, add.line_end), (5, 10));
    assert_eq!(add.params.len(), 2);
    assert!(add.params[1].is_optional);
    let facts = read(
        "a.py",
        "class A:\n    def _b(self, x: 'int' = 3) -> str:\n        '''Doc.'''\n",
    );
    assert_eq!(facts.symbols[1].doc, "Doc.");
    assert_eq!(facts.symbols[1].visibility.as_str(), "internal");
    assert_eq!(facts.symbols[1].params.len(), 1);
}

#[test]
fn a_test_that_is_a_call_tests_what_it_calls() {
    let files = [
        (
            "src/add.ts",
            "export function add(a: number) { return a }\n",
        ),
        (
            "src/add.test.ts",
            "import { add } from './add'\ndescribe('sums', () => {\n  it('adds', () => { add(1) })\n  test.skip('add', () => { add(2) })\n})\n",
        ),
    ];
    assert_eq!(
        told(&files, Relation::Tests),
        ["it adds -> add import", "test add -> add import"]
    );
    let files = [
        ("lib/sum.rb", "class Sum\n  def add(a)\n    a\n  end\nend\n"),
        (
            "spec/sum_spec.rb",
            "require_relative '../lib/sum'\nRSpec.describe Sum do\n  it 'adds' do\n    Sum.new.add(1)\n  end\nend\n",
        ),
    ];
    assert!(
        told(&files, Relation::Tests).contains(&"it adds -> Sum.add type".to_owned()),
        "{:?}",
        told(&files, Relation::Tests)
    );
}

#[test]
fn a_method_of_an_unknown_value_is_meant_only_if_its_file_is_imported() {
    let files = [
        (
            "shapes.py",
            "class Shape:\n    def outline(self):\n        pass\n\ndef local(x):\n    x.outline()\n",
        ),
        (
            "draw.py",
            "import shapes\n\ndef draw(x):\n    x.outline()\n",
        ),
        ("other.py", "def other(x):\n    x.outline()\n"),
    ];
    assert_eq!(
        told(&files, Relation::Calls),
        ["draw -> Shape.outline import"]
    );
    assert_eq!(
        told(&files, Relation::MayCall),
        [
            "local -> Shape.outline name-only",
            "other -> Shape.outline name-only"
        ]
    );
}

#[test]
fn a_name_that_two_functions_have_leads_to_none_by_itself() {
    let files = [
        ("a.py", "class A:\n    def go(self): pass\n"),
        ("b.py", "class B:\n    def go(self): pass\n"),
        ("c.py", "def run(x):\n    x.go()\n"),
    ];
    assert_eq!(told(&files, Relation::Calls), Vec::<String>::new());
    assert_eq!(
        told(&files, Relation::MayCall),
        ["run -> A.go name-only", "run -> B.go name-only"]
    );
}

#[test]
fn names_that_are_bound_to_each_other_end_on_a_small_stack() {
    let mut python = "def run():\n".to_owned();
    let mut go = "package main\n\nfunc run() {\n".to_owned();
    for n in 0..3_000 {
        python.push_str(&format!(
            "    x{n} = x{}.y\n    x{n} = x{n}.z(x{n})\n",
            n + 1
        ));
        go.push_str(&format!("\tx{n} = append(x{n}, x{})\n\tx{n}.go()\n", n + 1));
    }
    python.push_str("    x0.w()\n");
    go.push_str("}\n\nfunc f(token token.Pos) { var ast ast.Node; ast.Walk(token); token.Go() }\n");
    let thread = std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(move || {
            for (path, text) in [("a.py", &python), ("a.go", &go)] {
                let sources = sources(&[(path, text.as_str())]);
                assert!(!links(&sources).is_empty() || !sources[0].facts.calls.is_empty());
            }
        });
    thread.unwrap().join().unwrap();
}

#[test]
fn a_text_made_to_hurt_ends_soon_and_says_what_is_missing() {
    let deep = "(".repeat(400_000);
    for language in Language::ALL {
        let path = format!(
            "x.{}",
            match language {
                Language::Bash => "sh",
                Language::CSharp => "cs",
                Language::JavaScript => "js",
                Language::Kotlin => "kt",
                Language::Python => "py",
                Language::Ruby => "rb",
                Language::Rust => "rs",
                Language::TypeScript => "ts",
                other => other.as_str(),
            }
        );
        assert_eq!(
            kenning_code::Language::of_path(&path),
            Some(language),
            "{path}"
        );
        let facts = read(&path, &deep);
        assert!(facts.gap.is_some() && facts.symbols.is_empty(), "{path}");
        // Deep without brackets, and names that are no names.
        for text in [
            "- ".repeat(20_000),
            "!".repeat(20_000),
            "a.".repeat(20_000),
            "\u{1b}[31m\0\r\n".repeat(2_000),
        ] {
            let facts = read(&path, &text);
            let is_clean = |it: &str| !it.chars().any(|it| it.is_control() && it != '\n');
            assert!(
                facts
                    .symbols
                    .iter()
                    .all(|it| is_clean(&it.name) && is_clean(&it.signature))
            );
        }
    }
    let huge = "x = 1\n".repeat(kenning_code::TEXT_BYTES_MAX);
    assert!(read("x.py", &huge).gap.is_some());
}

#[test]
fn a_text_of_nothing_but_functions_is_read_up_to_a_bound_and_says_so() {
    let text = "fn a(){a()}\n".repeat(40_000);
    let facts = read("a.rs", &text);
    assert_eq!(facts.symbols.len(), 5_000);
    assert!(facts.calls.len() <= 20_000, "{}", facts.calls.len());
    assert_eq!(
        facts.gap.as_deref(),
        Some("only the first 5000 symbols are read")
    );
}
