//! Hostile components, and how each must end.

mod shapes;

use crate::{Tool, probes};
use anyhow::Result;
use kenning_sandbox::{Failure, Limits};

/// One hostile component.
pub struct Case {
    /// What it tries.
    pub name: String,
    /// The component, or what claims to be one.
    pub wasm: Vec<u8>,
    /// What it is given.
    pub input: String,
    /// Its limits.
    pub limits: Limits,
    /// How it must end.
    pub end: End,
}

/// How a component must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is refused before it runs.
    Refused,
    /// `execution timed out`
    Time,
    /// `fuel exhausted`
    Fuel,
    /// `memory grow failure`
    Memory,
    /// `tool panicked`
    Panic,
    /// Trapped on an invalid operation.
    Trap,
    /// Stopped at one of the host's own limits.
    Limit,
    /// Its answer is too large.
    Output,
    /// It exited.
    Exit,
    /// It answers, and its excess output was cut.
    Answer,
    /// It returns a failure.
    Returned,
    /// Refused, stopped or answered: any of these.
    Any,
}

impl End {
    /// How a call ended, if that is an expected way.
    pub fn of(result: &std::result::Result<String, Failure>) -> Option<Self> {
        Some(match result {
            Ok(_) => Self::Answer,
            Err(Failure::Returned(_)) => Self::Returned,
            Err(Failure::TimedOut { .. }) => Self::Time,
            Err(Failure::FuelExhausted { .. }) => Self::Fuel,
            Err(Failure::MemoryGrow { .. }) => Self::Memory,
            Err(Failure::Panicked { .. }) => Self::Panic,
            Err(Failure::Exited { .. }) => Self::Exit,
            Err(Failure::Trap(_)) => Self::Trap,
            Err(Failure::LimitReached(_)) => Self::Limit,
            Err(Failure::OutputTooLarge { .. }) => Self::Output,
            Err(Failure::Unusable { .. } | Failure::ExportNotFound(_)) => Self::Refused,
            Err(_) => return None,
        })
    }

    /// Whether a call ended in this way.
    pub fn is_met_by(self, result: &std::result::Result<String, Failure>, is_pool: bool) -> bool {
        match (self, Self::of(result)) {
            (Self::Any, found) => found.is_some(),
            // What is larger than a place in the pool from the start is not let in at all.
            (Self::Memory | Self::Limit, Some(Self::Refused)) => is_pool,
            (expected, found) => found == Some(expected),
        }
    }
}

/// Enough to run into another limit first.
const MUCH_FUEL: u64 = 1 << 50;

/// All of them.
pub fn cases() -> Result<Vec<Case>> {
    let mut cases = Cases::default();
    loops(&mut cases)?;
    recursion(&mut cases)?;
    memory(&mut cases)?;
    tables(&mut cases)?;
    starts(&mut cases)?;
    traps(&mut cases)?;
    answers(&mut cases)?;
    floods(&mut cases)?;
    waits(&mut cases)?;
    shapes::add(&mut cases)?;
    Ok(cases.0)
}

#[derive(Default)]
struct Cases(Vec<Case>);

impl Cases {
    fn push(&mut self, name: &str, wasm: Vec<u8>, end: End) -> &mut Case {
        let case = Case {
            name: name.to_owned(),
            wasm,
            input: "{}".to_owned(),
            limits: Limits {
                max_fuel: match end {
                    End::Fuel => Limits::default().max_fuel,
                    _ => MUCH_FUEL,
                },
                max_execution_ms: match end {
                    End::Time => 60,
                    _ => 20_000,
                },
                ..Limits::default()
            },
            end,
        };
        self.0.push(case);
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    fn tool(&mut self, name: &str, tool: &Tool, end: End) -> Result<&mut Case> {
        let wasm = tool.build()?;
        Ok(self.push(name, wasm, end))
    }
}

fn loops(cases: &mut Cases) -> Result<()> {
    let more = "(global $g (mut i64) (i64.const 0))
      (func $tick (global.set $g (i64.add (global.get $g) (i64.const 1))))
      (func $one (param i32) (result i32) (return_call $two (local.get 0)))
      (func $two (param i32) (result i32) (return_call $one (local.get 0)))
      (type $t (func (param i32) (result i32)))
      (table 1 funcref) (elem (i32.const 0) $self)
      (func $self (param i32) (result i32) (return_call_indirect (type $t) (i32.const 0) (i32.const 0)))";
    for (name, body) in [
        ("an empty loop", "(loop $on (br $on)) (unreachable)"),
        (
            "a loop that counts",
            "(loop $on (local.set $n (i32.add (local.get $n) (i32.const 1))) (br $on)) (unreachable)",
        ),
        (
            "a loop that writes",
            "(loop $on (i32.store (i32.const 1024) (local.get $n)) (br $on)) (unreachable)",
        ),
        (
            "a loop that calls",
            "(loop $on (call $tick) (br $on)) (unreachable)",
        ),
        (
            "a loop in a loop",
            "(loop $out (loop $in (br_if $in (i32.const 1))) (br $out)) (unreachable)",
        ),
        (
            "a loop by table",
            "(loop $on (br_table $on $on $on (local.get $n))) (unreachable)",
        ),
        (
            "a loop that divides",
            "(loop $on (global.set $g (i64.div_u (i64.const -1) (i64.const 3))) (br $on)) (unreachable)",
        ),
        (
            "a loop that fills memory",
            "(loop $on (memory.fill (i32.const 1024) (i32.const 7) (i32.const 65536)) (br $on)) (unreachable)",
        ),
        (
            "a loop that copies memory",
            "(loop $on (memory.copy (i32.const 1024) (i32.const 2048) (i32.const 65536)) (br $on)) (unreachable)",
        ),
        (
            "a loop that allocates nothing",
            "(loop $on (drop (call $alloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0))) (br $on)) (unreachable)",
        ),
        (
            "two functions that call each other last",
            "(call $one (i32.const 1))",
        ),
        (
            "a function that calls itself last by table",
            "(call $self (i32.const 1))",
        ),
    ] {
        let tool = Tool::new(body).more(more);
        cases.tool(&format!("{name}, with little fuel"), &tool, End::Fuel)?;
        cases.tool(&format!("{name}, with little time"), &tool, End::Time)?;
    }
    Ok(())
}

fn recursion(cases: &mut Cases) -> Result<()> {
    let locals = "(local i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64)";
    for (name, more) in [
        ("recursion", "(func $deep (param i32) (result i32) (i32.add (i32.const 1) (call $deep (local.get 0))))".to_owned()),
        ("recursion of two", "(func $deep (param i32) (result i32) (i32.add (i32.const 1) (call $other (local.get 0))))
           (func $other (param i32) (result i32) (i32.add (i32.const 1) (call $deep (local.get 0))))".to_owned()),
        ("recursion with locals", format!("(func $deep (param i32) (result i32) {locals} (i32.add (i32.const 1) (call $deep (local.get 0))))")),
        ("recursion by table", "(type $t (func (param i32) (result i32))) (table 1 funcref) (elem (i32.const 0) $deep)
           (func $deep (param i32) (result i32) (i32.add (i32.const 1) (call_indirect (type $t) (local.get 0) (i32.const 0))))".to_owned()),
        ("recursion with a memory operation", "(func $deep (param i32) (result i32) (i32.store (i32.const 1024) (local.get 0)) (i32.add (i32.load (i32.const 1024)) (call $deep (local.get 0))))".to_owned()),
        ("recursion with many parameters", "(func $deep (param i32) (result i32) (call $wide (local.get 0) (i64.const 1) (i64.const 1) (i64.const 1) (i64.const 1) (i64.const 1) (i64.const 1) (i64.const 1) (i64.const 1)))
           (func $wide (param i32 i64 i64 i64 i64 i64 i64 i64 i64) (result i32) (i32.add (i32.const 1) (call $deep (local.get 0))))".to_owned()),
    ] {
        let tool = Tool::new("(call $deep (i32.const 1))").more(&more);
        cases.tool(name, &tool, End::Trap)?;
    }
    Ok(())
}

fn memory(cases: &mut Cases) -> Result<()> {
    for pages in [1, 2, 16, 100, 1_000, 1_023] {
        let body =
            format!("(loop $on (drop (memory.grow (i32.const {pages}))) (br $on)) (unreachable)");
        cases.tool(
            &format!("memory grown by {pages} pages at a time"),
            &Tool::new(&body),
            End::Memory,
        )?;
    }
    for pages in [1_025, 10_000, 65_000, 65_534] {
        let body = format!(
            "(drop (memory.grow (i32.const {pages}))) (call $ok (local.get $ptr) (local.get $len))"
        );
        cases.tool(
            &format!("memory grown by {pages} pages at once"),
            &Tool::new(&body),
            End::Memory,
        )?;
    }
    for pages in [1_025, 16_384, 65_535, 65_536] {
        let tool = Tool::new("(call $ok (local.get $ptr) (local.get $len))");
        let tool = tool.memory(&format!("(memory (export \"memory\") {pages})"));
        cases.tool(
            &format!("memory of {pages} pages from the start"),
            &tool,
            End::Memory,
        )?;
    }
    let many: String = (0..6).map(|_| "(memory 200)").collect();
    let tool = Tool::new("(call $ok (local.get $ptr) (local.get $len))");
    let tool = tool.memory(&format!("(memory (export \"memory\") 2) {many}"));
    cases.tool("memory in six pieces", &tool, End::Memory)?;
    let many: String = (0..12).map(|_| "(memory 1)").collect();
    let tool = Tool::new("(call $ok (local.get $ptr) (local.get $len))");
    let tool = tool.memory(&format!("(memory (export \"memory\") 2) {many}"));
    cases.tool("twelve memories", &tool, End::Limit)?;
    let tool = Tool::new(
        "(loop $on (drop (memory.grow $b (i32.const 64))) (drop (memory.grow (i32.const 64))) (br $on)) (unreachable)",
    );
    let tool = tool.memory("(memory (export \"memory\") 2) (memory $b 2)");
    cases.tool("two memories grown in turn", &tool, End::Memory)?;
    let tool = Tool::new(
        "(drop (memory.grow (i32.const 50))) (call $ok (local.get $ptr) (local.get $len))",
    );
    let tool = tool.memory("(memory (export \"memory\") 2 10)");
    cases.tool("memory grown past its own maximum", &tool, End::Answer)?;
    for (name, data) in [
        ("data beyond the memory", "(data (i32.const 200000) \"x\")"),
        (
            "data at the edge of the memory",
            "(data (i32.const 131072) \"x\")",
        ),
        (
            "data at the end of the address space",
            "(data (i32.const -1) \"xx\")",
        ),
    ] {
        let tool = Tool::new("(call $ok (local.get $ptr) (local.get $len))").more(data);
        cases.tool(name, &tool, End::Trap)?;
    }
    let megabyte = "a".repeat(1024 * 1024);
    let tool = Tool::new("(call $ok (local.get $ptr) (local.get $len))");
    let tool = tool.memory("(memory (export \"memory\") 900)");
    let data: String = (0..4)
        .map(|n| {
            format!(
                "(data (i32.const {}) \"{megabyte}\")",
                70_000 + n * megabyte.len()
            )
        })
        .collect();
    cases.tool("four megabytes of data", &tool.more(&data), End::Answer)?;
    Ok(())
}

fn tables(cases: &mut Cases) -> Result<()> {
    let ok = "(call $ok (local.get $ptr) (local.get $len))";
    for elements in [100_001, 1_000_000, 10_000_000] {
        let tool = Tool::new(ok).more(&format!("(table {elements} funcref)"));
        cases.tool(&format!("a table of {elements}"), &tool, End::Limit)?;
        let body = format!("(drop (table.grow $t (ref.null func) (i32.const {elements}))) {ok}");
        let tool = Tool::new(&body).more("(table $t 1 funcref)");
        cases.tool(&format!("a table grown by {elements}"), &tool, End::Limit)?;
    }
    let body =
        "(loop $on (drop (table.grow $t (ref.null func) (i32.const 5000))) (br $on)) (unreachable)";
    cases.tool(
        "a table grown for ever",
        &Tool::new(body).more("(table $t 1 funcref)"),
        End::Limit,
    )?;
    let many = "(table 1 funcref)".repeat(65);
    cases.tool("sixty-five tables", &Tool::new(ok).more(&many), End::Limit)?;
    for (name, more, body) in [
        (
            "an element beyond the table",
            "(table 1 funcref) (elem (i32.const 5) $ok)",
            ok,
        ),
        (
            "a table filled past its end",
            "(table $t 1 funcref)",
            "(table.fill $t (i32.const 0) (ref.null func) (i32.const 9)) (unreachable)",
        ),
        (
            "a table read past its end",
            "(table $t 1 funcref)",
            "(drop (table.get $t (i32.const 9))) (unreachable)",
        ),
    ] {
        cases.tool(name, &Tool::new(body).more(more), End::Trap)?;
    }
    Ok(())
}

fn starts(cases: &mut Cases) -> Result<()> {
    let ok = "(call $ok (local.get $ptr) (local.get $len))";
    for (name, start, end) in [
        ("a start that gives up", "(unreachable)", End::Panic),
        (
            "a start that divides by zero",
            "(drop (i32.div_u (i32.const 1) (i32.const 0)))",
            End::Trap,
        ),
        (
            "a start that never ends, with little fuel",
            "(loop $on (br $on))",
            End::Fuel,
        ),
        (
            "a start that never ends, with little time",
            "(loop $on (br $on))",
            End::Time,
        ),
        (
            "a start that recurses",
            "(call $start) (call $start)",
            End::Trap,
        ),
        (
            "a start that wants memory",
            "(drop (memory.grow (i32.const 60000)))",
            End::Memory,
        ),
        (
            "a start that reads beyond",
            "(drop (i32.load (i32.const -4)))",
            End::Trap,
        ),
    ] {
        let tool = Tool::new(ok).more(&format!("(func $start {start}) (start $start)"));
        cases.tool(name, &tool, end)?;
    }
    Ok(())
}

fn traps(cases: &mut Cases) -> Result<()> {
    let more = "(type $t (func)) (type $u (func (param i64) (result i64))) (table 4 funcref) (elem (i32.const 1) $none) (func $none)";
    for (name, body) in [
        (
            "division by zero",
            "(i32.div_s (i32.const 1) (i32.const 0))",
        ),
        (
            "remainder by zero",
            "(i32.wrap_i64 (i64.rem_u (i64.const 1) (i64.const 0)))",
        ),
        (
            "a quotient that does not fit",
            "(i32.div_s (i32.const -2147483648) (i32.const -1))",
        ),
        (
            "a number that does not fit",
            "(i32.trunc_f64_s (f64.const 1e300))",
        ),
        ("no number at all", "(i32.trunc_f32_u (f32.const nan))"),
        ("a read beyond memory", "(i32.load (i32.const 131072))"),
        (
            "a read at the end of the address space",
            "(i32.load offset=4294967295 (i32.const -1))",
        ),
        (
            "a wide read beyond memory",
            "(i32.wrap_i64 (i64.load (i32.const 131070)))",
        ),
        (
            "a write beyond memory",
            "(i32.store (i32.const 131072) (i32.const 0)) (i32.const 0)",
        ),
        (
            "a vector read beyond memory",
            "(i32x4.extract_lane 0 (v128.load (i32.const 131064)))",
        ),
        (
            "a fill beyond memory",
            "(memory.fill (i32.const 0) (i32.const 0) (i32.const -1)) (i32.const 0)",
        ),
        (
            "a copy beyond memory",
            "(memory.copy (i32.const 0) (i32.const 100000) (i32.const 100000)) (i32.const 0)",
        ),
        (
            "a call of nothing",
            "(call_indirect (type $t) (i32.const 0)) (i32.const 0)",
        ),
        (
            "a call of another type",
            "(i32.wrap_i64 (call_indirect (type $u) (i64.const 1) (i32.const 1)))",
        ),
        (
            "a call beyond the table",
            "(call_indirect (type $t) (i32.const 99)) (i32.const 0)",
        ),
    ] {
        cases.tool(name, &Tool::new(body).more(more), End::Trap)?;
    }
    cases.tool("giving up", &Tool::new("(unreachable)"), End::Panic)?;
    Ok(())
}

fn answers(cases: &mut Cases) -> Result<()> {
    for (name, body, end) in [
        (
            "an answer beyond memory",
            "(call $ok (i32.const 131000) (i32.const 1000))",
            End::Trap,
        ),
        (
            "an answer at the end of the address space",
            "(call $ok (i32.const -1) (i32.const 1))",
            End::Trap,
        ),
        (
            "an answer longer than the address space",
            "(call $ok (i32.const 16) (i32.const -1))",
            End::Trap,
        ),
        (
            "an answer at a crooked address",
            "(drop (call $ok (local.get $ptr) (local.get $len))) (i32.const 17)",
            End::Trap,
        ),
        ("an answer in no memory", "(i32.const 131068)", End::Trap),
        ("an answer at the very end", "(i32.const -4)", End::Trap),
        (
            "an answer of no case",
            "(call $answer (i32.const 2) (local.get $ptr) (local.get $len))",
            End::Trap,
        ),
        (
            "an answer of a case far out",
            "(call $answer (i32.const 255) (local.get $ptr) (local.get $len))",
            End::Trap,
        ),
        (
            "a failure beyond memory",
            "(call $err (i32.const 131000) (i32.const 1000))",
            End::Trap,
        ),
        (
            "text that is no text",
            "(i32.store8 (i32.const 1024) (i32.const 255)) (call $ok (i32.const 1024) (i32.const 1))",
            End::Trap,
        ),
        (
            "half a character",
            "(i32.store8 (i32.const 1024) (i32.const 195)) (call $ok (i32.const 1024) (i32.const 1))",
            End::Trap,
        ),
        (
            "half of a pair",
            "(i32.store (i32.const 1024) (i32.const 0x80a0ed)) (call $ok (i32.const 1024) (i32.const 3))",
            End::Trap,
        ),
        (
            "a failure that is no text",
            "(i32.store8 (i32.const 1024) (i32.const 254)) (call $err (i32.const 1024) (i32.const 1))",
            End::Trap,
        ),
    ] {
        cases.tool(name, &Tool::new(body), end)?;
    }
    for (megabytes, end) in [
        (5, End::Output),
        (6, End::Limit),
        (20, End::Limit),
        (60, End::Limit),
    ] {
        let bytes = megabytes * 1024 * 1024 - 4096;
        for (case, word) in [("$ok", "answer"), ("$err", "failure")] {
            let body = format!(
                "(call {case} (call $alloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const {bytes})) (i32.const {bytes}))"
            );
            let name = format!("a {word} of almost {megabytes} megabytes");
            cases.tool(&name, &Tool::new(&body), end)?;
        }
    }
    let more = "(export \"cabi_realloc\" (func $bad))";
    for (name, bad) in [
        ("room for the input beyond memory", "(i32.const 131071)"),
        (
            "room for the input at the end of the address space",
            "(i32.const -1)",
        ),
        ("no room for the input", "(unreachable)"),
        (
            "room for the input after a long while",
            "(loop $on (br $on)) (unreachable)",
        ),
    ] {
        let core = Tool::new("(call $ok (local.get $ptr) (local.get $len))");
        let core = core.more(&format!(
            "(func $bad (param i32 i32 i32 i32) (result i32) {bad}) {more}"
        ));
        let core = core.core().replacen("(export \"cabi_realloc\")", "", 1);
        let wasm = crate::encode(&core, crate::WIT, "tool")?;
        let end = match bad {
            "(unreachable)" => End::Panic,
            it if it.starts_with("(loop") => End::Time,
            _ => End::Trap,
        };
        cases.push(name, wasm, end);
    }
    Ok(())
}

fn floods(cases: &mut Cases) -> Result<()> {
    let ok = "(call $ok (local.get $ptr) (local.get $len))";
    let log = r#"(import "kami:tool/host@0.1.0" "log" (func $log (param i32 i32 i32)))"#;
    let times = |count: u32, what: &str| {
        format!(
            "(loop $on {what} (local.set $n (i32.add (local.get $n) (i32.const 1))) (br_if $on (i32.lt_u (local.get $n) (i32.const {count})))) {ok}"
        )
    };
    for (name, body, end) in [
        ("twenty thousand lines logged", times(20_000, "(call $log (i32.const 2) (i32.const 0) (i32.const 60))"), End::Answer),
        ("twenty thousand empty lines logged", times(20_000, "(call $log (i32.const 0) (i32.const 0) (i32.const 0))"), End::Answer),
        ("a line of a hundred kilobytes", "(call $log (i32.const 4) (i32.const 0) (i32.const 100000)) ".to_owned() + ok, End::Answer),
        ("a line beyond memory", "(call $log (i32.const 4) (i32.const 131000) (i32.const 100000)) ".to_owned() + ok, End::Trap),
        ("a line that is no text", "(i32.store8 (i32.const 1024) (i32.const 255)) (call $log (i32.const 4) (i32.const 1024) (i32.const 1)) ".to_owned() + ok, End::Trap),
        ("a level that there is not", "(call $log (i32.const 9) (i32.const 0) (i32.const 1)) ".to_owned() + ok, End::Trap),
        ("lines for ever, with little fuel", "(loop $on (call $log (i32.const 2) (i32.const 0) (i32.const 60)) (br $on)) (unreachable)".to_owned(), End::Fuel),
        ("lines for ever, with little time", "(loop $on (call $log (i32.const 2) (i32.const 0) (i32.const 60)) (br $on)) (unreachable)".to_owned(), End::Time),
    ] {
        cases.tool(name, &Tool::new(&body).imports(log), end)?;
    }
    let body = format!(
        "(call $log (i32.const 4) (call $alloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8000000)) (i32.const 8000000)) {ok}"
    );
    cases.tool(
        "a line of eight megabytes",
        &Tool::new(&body).imports(log),
        End::Limit,
    )?;

    let print = r#"
      (import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
      (import "wasi:cli/stderr@0.2.0" "get-stderr" (func $stderr (result i32)))
      (import "wasi:io/streams@0.2.0" "[method]output-stream.write-zeroes" (func $zeroes (param i32 i64 i32)))
      (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush" (func $print (param i32 i32 i32 i32)))"#;
    for stream in ["stdout", "stderr"] {
        let body = format!(
            "(local.set $m (call ${stream})) {}",
            times(
                2_000,
                "(call $print (local.get $m) (i32.const 0) (i32.const 4096) (i32.const 64))"
            )
        );
        cases.tool(
            &format!("eight megabytes on {stream}"),
            &Tool::new(&body).imports(print),
            End::Answer,
        )?;
        let body = format!(
            "(local.set $m (call ${stream})) (loop $on (call $print (local.get $m) (i32.const 0) (i32.const 4096) (i32.const 64)) (br $on)) (unreachable)"
        );
        cases.tool(
            &format!("{stream} for ever"),
            &Tool::new(&body).imports(print),
            End::Time,
        )?;
        let body = format!("(call $zeroes (call ${stream}) (i64.const -1) (i32.const 64)) {ok}");
        cases.tool(
            &format!("endless zeroes on {stream}"),
            &Tool::new(&body).imports(print),
            End::Trap,
        )?;
        let body = times(20_000, &format!("(drop (call ${stream}))"));
        cases.tool(
            &format!("twenty thousand handles of {stream}"),
            &Tool::new(&body).imports(print),
            End::Limit,
        )?;
        let body = format!(
            "(call $print (i32.add (call ${stream}) (i32.const 77)) (i32.const 0) (i32.const 1) (i32.const 64)) {ok}"
        );
        cases.tool(
            &format!("a made-up handle of {stream}"),
            &Tool::new(&body).imports(print),
            End::Trap,
        )?;
    }
    let clock = r#"(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $after (param i64) (result i32)))"#;
    let body = times(20_000, "(drop (call $after (i64.const 1)))");
    cases.tool(
        "twenty thousand timers",
        &Tool::new(&body).imports(clock),
        End::Limit,
    )?;
    let fields =
        r#"(import "wasi:http/types@0.2.0" "[constructor]fields" (func $fields (result i32)))"#;
    let body = times(20_000, "(drop (call $fields))");
    cases.tool(
        "twenty thousand lists of headers",
        &Tool::new(&body).imports(fields),
        End::Limit,
    )?;

    let random =
        r#"(import "wasi:random/random@0.2.0" "get-random-bytes" (func $random (param i64 i32)))"#;
    for (name, bytes, end) in [
        ("a gigabyte of random bytes", "1073741824", End::Trap),
        ("endless random bytes", "-1", End::Trap),
    ] {
        let body = format!("(call $random (i64.const {bytes}) (i32.const 64)) {ok}");
        cases.tool(name, &Tool::new(&body).imports(random), end)?;
    }
    let body =
        "(loop $on (call $random (i64.const 1000000) (i32.const 64)) (br $on)) (unreachable)";
    cases.tool(
        "a megabyte of random bytes, again and again",
        &Tool::new(body).imports(random),
        End::Memory,
    )?;
    Ok(())
}

fn waits(cases: &mut Cases) -> Result<()> {
    let ok = "(call $ok (local.get $ptr) (local.get $len))";
    let imports = r#"
      (import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $after (param i64) (result i32)))
      (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))
      (import "wasi:io/poll@0.2.0" "poll" (func $poll (param i32 i32 i32)))"#;
    for (name, body, end) in [
        (
            "an hour of sleep",
            "(call $block (call $after (i64.const 3600000000000)))",
            End::Time,
        ),
        (
            "the longest sleep",
            "(call $block (call $after (i64.const -1)))",
            End::Time,
        ),
        (
            "naps for ever",
            "(loop $on (call $block (call $after (i64.const 1000000))) (br_if $on (i32.const 1)))",
            End::Time,
        ),
        (
            "waiting for nothing",
            "(call $poll (i32.const 0) (i32.const 0) (i32.const 64))",
            End::Trap,
        ),
        (
            "waiting for what there is not",
            "(i32.store (i32.const 64) (i32.const 99)) (call $poll (i32.const 64) (i32.const 1) (i32.const 72))",
            End::Trap,
        ),
        (
            "waiting for a list beyond memory",
            "(call $poll (i32.const 131000) (i32.const 100000) (i32.const 72))",
            End::Trap,
        ),
    ] {
        let body = format!("{body} {ok}");
        cases.tool(name, &Tool::new(&body).imports(imports), end)?;
    }
    let exit = r#"(import "wasi:cli/exit@0.2.0" "exit" (func $exit (param i32)))"#;
    for (name, status) in [("an exit in peace", 0), ("an exit in anger", 1)] {
        let body = format!("(call $exit (i32.const {status})) {ok}");
        cases.tool(name, &Tool::new(&body).imports(exit), End::Exit)?;
    }
    let stdin = r#"
      (import "wasi:cli/stdin@0.2.0" "get-stdin" (func $stdin (result i32)))
      (import "wasi:io/streams@0.2.0" "[method]input-stream.blocking-read" (func $read (param i32 i64 i32)))"#;
    let body = format!("(call $read (call $stdin) (i64.const 1000) (i32.const 64)) {ok}");
    cases.tool(
        "reading from nobody",
        &Tool::new(&body).imports(stdin),
        End::Answer,
    )?;
    for input in ["t", "n"] {
        let case = cases.push(
            &format!("a socket, `{input}`"),
            probes::sockets()?,
            End::Returned,
        );
        case.input = input.to_owned();
    }
    cases
        .push("files without a directory", probes::files()?, End::Answer)
        .input = "r/etc/passwd".to_owned();
    cases
        .push("a request without a host", probes::http()?, End::Returned)
        .input = "00example.com/".to_owned();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_that_was_expected_counts() {
        let fuel = || {
            Err(Failure::FuelExhausted {
                used: 1,
                limit: 1,
                suggested: 2,
            })
        };
        let refused = || Err(Failure::ExportNotFound("run".to_owned()));
        let internal = || Err(Failure::Internal("ours".to_owned()));
        for (expected, result, is_pool, is_right) in [
            (End::Fuel, fuel(), false, true),
            (End::Time, fuel(), false, false),
            (End::Any, fuel(), false, true),
            (End::Any, internal(), false, false),
            (End::Answer, Ok(String::new()), false, true),
            (End::Memory, refused(), false, false),
            (End::Memory, refused(), true, true),
            (End::Trap, refused(), true, false),
        ] {
            let found = expected.is_met_by(&result, is_pool);
            assert_eq!(found, is_right, "{expected:?} {result:?} {is_pool}");
        }
    }
}
