//! What is said of a symbol, in each language: one function with a comment, and one test.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use kenning_code::{Symbol, read};

/// Everything that a symbol says of itself, on one line.
fn told(symbol: &Symbol) -> String {
    let params: Vec<String> = symbol
        .params
        .iter()
        .map(|it| match &it.ty {
            Some(ty) => format!("{}: {}", it.name, ty.name),
            None => it.name.clone(),
        })
        .collect();
    let returns = symbol.returns.as_ref().map_or("-", |it| it.name.as_str());
    format!(
        "{} {} | {} | {}..{} | {} | {} | {} -> {returns} | {}",
        symbol.kind.label(),
        symbol.name,
        symbol.signature,
        symbol.line,
        symbol.line_end,
        symbol.visibility.as_str(),
        if symbol.is_test { "test" } else { "no test" },
        params.join(", "),
        symbol.doc,
    )
}

/// A path, its text, and what is said of its symbols.
type Case = (&'static str, &'static str, &'static [&'static str]);

const CASES: &[Case] = &[
    (
        "a.rs",
        "/// Adds.\npub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n#[test]\nfn adds() {}\n",
        &[
            "Function add | pub fn add(a: u32, b: u32) -> u32 | 2..4 | public | no test | a: u32, b: u32 -> u32 | Adds.",
            "Function adds | fn adds() | 6..6 | private | test |  -> - | ",
        ],
    ),
    (
        "a.py",
        "def _add(a: int, b=1) -> int:\n    \"\"\"Adds.\"\"\"\n    return a + b\n\ndef test_add():\n    assert _add(1)\n",
        &[
            "Function _add | def _add(a: int, b=1) -> int | 1..3 | internal | no test | a: int, b -> int | Adds.",
            "Function test_add | def test_add() | 5..6 | public | test |  -> - | ",
        ],
    ),
    (
        "a.ts",
        "/** Adds. */\nexport function add(a: number, b = 1): number {\n  return a + b\n}\nclass Sum { private run(): void {} }\ndescribe('add', () => {\n  it('adds two', () => { add(1) })\n})\n",
        &[
            "Function add | function add(a: number, b = 1): number | 2..4 | public | no test | a: number, b -> number | Adds.",
            "Class Sum | class Sum | 5..5 | internal | no test |  -> - | ",
            "Method run | private run(): void | 5..5 | private | no test |  -> void | ",
            "Function it adds two | it('adds two' | 7..7 | private | test |  -> - | ",
        ],
    ),
    (
        "a.js",
        "/** Adds. */\nexport function add(a, b) {\n  return a + b\n}\ntest.only('adds', function () { add(1, 2) })\n",
        &[
            "Function add | function add(a, b) | 2..4 | public | no test | a, b -> - | Adds.",
            "Function test adds | test.only('adds' | 5..5 | private | test |  -> - | ",
        ],
    ),
    (
        "a_test.go",
        "package a\n\n// Add adds.\nfunc Add(a int, b int) int {\n\treturn a + b\n}\n\nfunc TestAdd(t *testing.T) {}\n",
        &[
            "Function Add | func Add(a int, b int) int | 4..6 | public | no test | a: int, b: int -> int | Add adds.",
            "Function TestAdd | func TestAdd(t *testing.T) | 8..8 | public | test | t: testing.T -> - | ",
        ],
    ),
    (
        "A.java",
        "class A {\n  /** Adds. */\n  private int add(int a, int b) {\n    return a + b;\n  }\n  @Test\n  public void adds() {}\n}\n",
        &[
            "Class A | class A | 1..8 | internal | no test |  -> - | ",
            "Method add | private int add(int a, int b) | 3..5 | private | no test | a: int, b: int -> int | Adds.",
            "Method adds | @Test public void adds() | 7..7 | public | test |  -> void | ",
        ],
    ),
    (
        "a.c",
        "/* Adds. */\nstatic int add(int a, int b) {\n  return a + b;\n}\n",
        &[
            "Function add | static int add(int a, int b) | 2..4 | private | no test | a: int, b: int -> int | Adds.",
        ],
    ),
    (
        "a.cpp",
        "/// Adds.\nint add(int a, int b) {\n  return a + b;\n}\nTEST(Add, Adds) { add(1, 2); }\n",
        &[
            "Function add | int add(int a, int b) | 2..4 | public | no test | a: int, b: int -> int | Adds.",
            "Function Add.Adds | TEST(Add, Adds) | 5..5 | public | test |  -> - | ",
        ],
    ),
    (
        "A.cs",
        "class A {\n  /// Adds.\n  internal int Add(int a, int b) {\n    return a + b;\n  }\n  [Fact]\n  public void Adds() {}\n}\n",
        &[
            "Class A | class A | 1..8 | internal | no test |  -> - | ",
            "Method Add | internal int Add(int a, int b) | 3..5 | internal | no test | a: int, b: int -> int | Adds.",
            "Method Adds | [Fact] public void Adds() | 7..7 | public | test |  -> void | ",
        ],
    ),
    (
        "a.rb",
        "class Sum\n  # Adds.\n  def add(a, b = 1)\n    a + b\n  end\n\n  def self.make; end\n  private_class_method :make\n\n  protected\n\n  def other; end\n\n  private\n\n  def hidden; end\n\n  public def shown; end\n\n  def test_add; end\nend\n\nRSpec.describe Sum do\n  it \"adds two\" do\n    Sum.new.add(1)\n  end\nend\n",
        &[
            "Class Sum | class Sum | 1..21 | public | no test |  -> - | ",
            "Method add | def add(a, b = 1) | 3..5 | public | no test | a, b -> - | Adds.",
            "Method make | def self.make; end | 7..7 | private | no test |  -> - | ",
            "Method other | def other; end | 12..12 | internal | no test |  -> - | ",
            "Method hidden | def hidden; end | 16..16 | private | no test |  -> - | ",
            "Method shown | def shown; end | 18..18 | public | no test |  -> - | ",
            "Method test_add | def test_add; end | 20..20 | private | test |  -> - | ",
            "Function it adds two | it \"adds two\" | 24..26 | private | test |  -> - | ",
        ],
    ),
    (
        "a.php",
        "<?php\nclass A {\n  /** Adds. */\n  protected function add(int $a, int $b): int {\n    return $a + $b;\n  }\n  public function testAdd() {}\n}\n",
        &[
            "Class A | class A | 2..8 | public | no test |  -> - | ",
            "Method add | protected function add(int $a, int $b): int | 4..6 | internal | no test | a: int, b: int -> int | Adds.",
            "Method testAdd | public function testAdd() | 7..7 | public | test |  -> - | ",
        ],
    ),
    (
        "a.kt",
        "/** Adds. */\nprivate fun add(a: Int, b: Int): Int {\n  return a + b\n}\n@Test\nfun adds() {}\n",
        &[
            "Function add | private fun add(a: Int, b: Int): Int | 2..4 | private | no test | a: Int, b: Int -> Int | Adds.",
            "Function adds | @Test fun adds() | 6..6 | public | test |  -> - | ",
        ],
    ),
    (
        "a.sh",
        "# Adds.\nadd() {\n  echo $(($1 + $2))\n}\ntest_add() { add 1 2; }\n",
        &[
            "Function add | add() | 2..4 | public | no test |  -> - | Adds.",
            "Function test_add | test_add() | 5..5 | public | test |  -> - | ",
        ],
    ),
    (
        "a.sql",
        "-- Adds.\nCREATE FUNCTION add(a int, b int) RETURNS int AS $$ SELECT a + b $$ LANGUAGE sql;\n",
        &[
            "Function add | CREATE FUNCTION add(a int, b int) RETURNS int | 2..2 | public | no test | a: int, b: int -> int | Adds.",
        ],
    ),
];

#[test]
fn signature_lines_visibility_marker_parameters_type_and_words_of_each_language() {
    let mut wrong = Vec::new();
    for (path, text, expected) in CASES {
        let facts = read(path, text);
        assert_eq!(facts.gap, None, "{path}");
        let found: Vec<String> = facts.symbols.iter().map(told).collect();
        if found != *expected {
            wrong.push(format!("{path}: {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
