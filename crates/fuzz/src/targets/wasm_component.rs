//! Components that somebody else compiled.

use super::ensure;
use crate::{Source, Subject, Target};
use kenning_sandbox::{
    Capabilities, Failure, Limits, RunCall, Runtime, RuntimeOptions, Sha256, ToolCode,
};
use kenning_testing_wasm::{Tool, probes};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

pub(super) const TARGET: Target = Target {
    name: "wasm_component",
    about: "a component is refused, stopped or answers, and a good one after it answers as ever",
    words: &[
        "\0asm",
        "\0asm\r\0\x01\0",
        "memory",
        "run",
        "cabi_realloc",
        "kami:tool/tool@0.1.0",
    ],
    seeds: || GOOD.clone(),
    generate,
    open: || {
        let runtime = Runtime::new(RuntimeOptions {
            loaded_max: 8,
            ..RuntimeOptions::default()
        });
        Box::new(Components { runtime, n: 0 })
    },
    pass_cases: 100,
    fresh_every: 5_000,
    contains_panics: false,
};

static GOOD: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let all = [
        probes::echo(),
        probes::flat_echo(),
        probes::log(),
        probes::print(),
        probes::environment(),
        probes::files(),
        probes::http(),
        probes::generic(),
        probes::command(),
    ];
    all.into_iter().map(|it| it.expect("a component")).collect()
});

/// Code that is well formed and does anything.
fn generate(source: &mut Source) -> Vec<u8> {
    let mut body = String::new();
    for _ in 0..1 + source.below(12) {
        let (a, b) = (number(source, 3), number(source, 3));
        body += &match source.below(10) {
            0 => format!("(i32.store {a} {b})"),
            1 => format!("(drop (i32.load {a}))"),
            2 => format!("(drop (memory.grow {a}))"),
            3 => format!("(memory.fill {a} {b} {a})"),
            4 => format!("(memory.copy {a} {b} {b})"),
            5 => format!("(local.set $n {a})"),
            6 => format!("(if {a} (then (local.set $m {b})) (else (unreachable)))"),
            7 => format!("(loop $l (local.set $n (i32.add (local.get $n) {a})) (br_if $l {b}))"),
            8 => format!("(drop (call $alloc {a} {b} (i32.const 1) {a}))"),
            _ => format!("(drop (call $ok {a} {b}))"),
        };
    }
    body += &match source.below(3) {
        0 => format!("(call $ok {} {})", number(source, 2), number(source, 2)),
        1 => format!("(call $err {} {})", number(source, 2), number(source, 2)),
        _ => "(call $ok (local.get $ptr) (local.get $len))".to_owned(),
    };
    let tool = Tool::new(&body);
    let tool = if source.one_in(3) { tool.flat() } else { tool };
    tool.build().expect("well formed")
}

fn number(source: &mut Source, depth: usize) -> String {
    const OPERATORS: &[&str] = &[
        "add", "sub", "mul", "div_u", "div_s", "rem_s", "and", "xor", "shl", "rotr", "lt_u",
    ];
    match source.below(if depth == 0 { 3 } else { 6 }) {
        0 => "(local.get $ptr)".to_owned(),
        1 => format!("(i32.const {})", source.number() as i32),
        2 => format!("(i32.const {})", source.below(70_000)),
        3 => "(local.get $n)".to_owned(),
        4 => "(memory.size)".to_owned(),
        _ => {
            let operator = *source.pick(OPERATORS);
            let (a, b) = (number(source, depth - 1), number(source, depth - 1));
            format!("(i32.{operator} {a} {b})")
        }
    }
}

struct Components {
    runtime: Runtime,
    n: u64,
}

impl Components {
    fn call(&self, wasm: &[u8]) -> Result<String, Failure> {
        let source = || Ok(wasm.to_vec());
        let tool = ToolCode {
            sha256: Sha256::of(wasm),
            source: &source,
            artifact: None,
        };
        let limits = Limits {
            max_memory_mb: 16,
            max_execution_ms: 200,
            max_fuel: 200_000,
            ..Limits::default()
        };
        let call = RunCall {
            tool: "test",
            function: None,
            input: "{}",
            limits,
            capabilities: &Capabilities::default(),
            cancelled: Arc::default(),
            deadline: Instant::now() + Duration::from_secs(30),
            log: None,
        };
        self.runtime.run(&tool, &call).result
    }
}

impl Subject for Components {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        if let Err(Failure::Internal(why)) = self.call(input) {
            return Err(format!("our own fault: {why}"));
        }
        self.n += 1;
        if self.n.is_multiple_of(25) {
            let answer = self.call(&GOOD[0]);
            ensure!(answer.as_deref() == Ok("{}"), "a good tool: {answer:?}");
        }
        Ok(())
    }
}
