//! Calls that run at once do not disturb each other.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use common::{Call, answer, runtime};
use kenning_sandbox::{Failure, Limits, Runtime, RuntimeOptions};
use kenning_testing_wasm::probes;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn limits(ms: u64) -> Limits {
    Limits {
        max_execution_ms: ms,
        max_fuel: 1 << 60,
        ..Limits::default()
    }
}

#[test]
fn four_that_never_end_are_stopped_while_a_fifth_is_answered() {
    let (runtime, busy, echo) = (runtime(), probes::busy().unwrap(), probes::echo().unwrap());
    runtime.prepare(&busy).unwrap();
    runtime.prepare(&echo).unwrap();
    std::thread::scope(|scope| {
        let run = || {
            Call {
                limits: limits(400),
                ..Call::new("{}")
            }
            .run(&runtime, &busy)
            .result
        };
        let hogs: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        assert_eq!(answer(&runtime, &echo, "fifth"), Ok("fifth".to_owned()));
        for hog in hogs {
            let failure = hog.join().unwrap().unwrap_err();
            assert_eq!(failure.to_string(), "execution timed out after 400 ms");
        }
    });
}

#[test]
fn a_neighbors_short_limit_does_not_shorten_ours() {
    let (runtime, busy, patient) = (
        runtime(),
        probes::busy().unwrap(),
        probes::patient().unwrap(),
    );
    runtime.prepare(&busy).unwrap();
    // A second, in which neighbors time out many times over.
    let long = "x".repeat(1_000);
    std::thread::scope(|scope| {
        let ours = scope.spawn(|| {
            Call {
                limits: limits(600_000),
                ..Call::new(&long)
            }
            .run(&runtime, &patient)
            .result
        });
        let counting = Call {
            limits: limits(600_000),
            ..Call::new("{}")
        };
        let cancelled = Arc::clone(&counting.cancelled);
        let (runtime, busy) = (&runtime, &busy);
        let counted = scope.spawn(move || counting.run(runtime, busy).result);
        for _ in 0..20 {
            let result = Call {
                limits: limits(10),
                ..Call::new("{}")
            }
            .run(runtime, busy)
            .result;
            assert_eq!(result, Err(Failure::TimedOut { limit_ms: 10 }));
        }
        assert_eq!(ours.join().unwrap(), Ok(long.clone()));
        // It never ends by itself, so that it still runs shows that nobody else ended it.
        cancelled.store(true, Ordering::Relaxed);
        assert_eq!(counted.join().unwrap(), Err(Failure::Cancelled));
    });
}

#[test]
fn calls_that_find_no_place_wait_and_then_give_up() {
    let options = RuntimeOptions {
        calls_max: 1,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options);
    let (busy, echo) = (probes::busy().unwrap(), probes::echo().unwrap());
    runtime.prepare(&busy).unwrap();
    runtime.prepare(&echo).unwrap();
    std::thread::scope(|scope| {
        let hog = scope.spawn(|| {
            Call {
                limits: limits(300),
                ..Call::new("{}")
            }
            .run(&runtime, &busy)
            .result
        });
        // Either before the hog or after it, but answered.
        assert_eq!(answer(&runtime, &echo, "{}"), Ok("{}".to_owned()));
        assert!(hog.join().unwrap().is_err());
    });
}

/// Calls of the hog, each with so many megabytes, and what happens while they all have them.
fn while_hogs_run(runtime: &Runtime, hogs: &[(&str, usize)], meanwhile: impl FnOnce()) {
    let wasm = probes::hog().unwrap();
    runtime.prepare(&wasm).unwrap();
    let inputs: Vec<String> = hogs.iter().map(|it| "x".repeat(it.1)).collect();
    let calls: Vec<Call<'_>> = hogs
        .iter()
        .zip(&inputs)
        .map(|((tool, _), input)| Call {
            tool,
            limits: Limits {
                max_memory_mb: 4096,
                ..limits(600_000)
            },
            ..Call::new(input)
        })
        .collect();
    std::thread::scope(|scope| {
        let run = |call: &Call<'_>| call.run(runtime, &wasm).result;
        let running: Vec<_> = calls
            .iter()
            .map(|it| scope.spawn(move || run(it)))
            .collect();
        // Each logs a line when it has its memory.
        while calls.iter().any(|it| it.lines.lock().unwrap().is_empty()) {
            assert!(running.iter().all(|it| !it.is_finished()), "a hog failed");
            std::thread::yield_now();
        }
        meanwhile();
        for call in &calls {
            call.cancelled.store(true, Ordering::Relaxed);
        }
        for hog in running {
            assert_eq!(hog.join().unwrap(), Err(Failure::Cancelled));
        }
    });
}

fn impatient(calls_max: u32, total_memory_mb: u32) -> Runtime {
    Runtime::new(RuntimeOptions {
        calls_max,
        total_memory_mb,
        queue_patience: std::time::Duration::from_millis(50),
        ..RuntimeOptions::default()
    })
}

#[test]
fn a_large_memory_limit_does_not_block_other_tools() {
    // Reserved by what they may have, these two would take all that there is.
    let runtime = impatient(16, 2048);
    while_hogs_run(&runtime, &[("a", 1), ("b", 1)], || {
        let echo = probes::echo().unwrap();
        assert_eq!(answer(&runtime, &echo, "{}"), Ok("{}".to_owned()));
    });
}

#[test]
fn one_tool_leaves_places_for_others_and_waiting_calls_are_told_to_try_again() {
    let runtime = impatient(4, 2048);
    let echo = probes::echo().unwrap();
    runtime.prepare(&echo).unwrap();
    let of = |tool: &'static str| Call {
        tool,
        ..Call::new("{}")
    };
    while_hogs_run(&runtime, &[("a", 1), ("a", 1)], || {
        let again = of("a").run(&runtime, &echo).result.unwrap_err();
        assert_eq!(again, Failure::Busy);
        assert_eq!(again.code(), kenning_core::Code::Limited);
        assert!(again.to_string().contains("try again"), "{again}");
        assert_eq!(of("b").run(&runtime, &echo).result, Ok("{}".to_owned()));
    });
    assert_eq!(of("a").run(&runtime, &echo).result, Ok("{}".to_owned()));
}

#[test]
fn calls_together_have_no_more_memory_than_was_promised() {
    let runtime = impatient(4, 64);
    let (hog, echo) = (probes::hog().unwrap(), probes::echo().unwrap());
    let input = "x".repeat(33);
    let greedy = |tool: &'static str, megabytes: usize| Call {
        tool,
        limits: Limits {
            max_memory_mb: 4096,
            ..limits(600_000)
        },
        ..Call::new(&input[..megabytes])
    };
    // One call has at most half, whatever it was granted.
    let failure = greedy("a", 33).run(&runtime, &hog).result.unwrap_err();
    assert_eq!(failure, Failure::MemoryGrow { limit_mb: 32 });
    while_hogs_run(&runtime, &[("a", 30), ("b", 13)], || {
        let failure = greedy("c", 20).run(&runtime, &hog).result.unwrap_err();
        assert_eq!(failure, Failure::MemoryTaken);
        assert_eq!(failure.code(), kenning_core::Code::Limited);
        // What is set aside for each call is enough for a small one.
        assert_eq!(answer(&runtime, &echo, "{}"), Ok("{}".to_owned()));
    });
    while_hogs_run(&runtime, &[("c", 20)], || {});
}

#[test]
fn a_pool_has_as_many_memories_as_all_calls_may_have() {
    let pool = kenning_sandbox::PoolSize {
        calls: 4,
        max_memory_mb: 64,
    };
    let runtime = Runtime::new(RuntimeOptions {
        pooling: Some(pool),
        ..RuntimeOptions::default()
    });
    // Eight memories and many tables each: with fewer places than that, the third would find none.
    let many = "(memory 1)".repeat(7) + &"(table 10 funcref)".repeat(60);
    let imports = r#"
      (import "kami:tool/host@0.1.0" "log" (func $log (param i32 i32 i32)))
      (import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $after (param i64) (result i32)))
      (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))"#;
    let body = "(call $log (i32.const 2) (local.get $ptr) (i32.const 1))
                (call $block (call $after (i64.const 3600000000000))) (unreachable)";
    let tool = kenning_testing_wasm::Tool::new(body);
    let wasm = tool.imports(imports).more(&many).build().unwrap();
    runtime.prepare(&wasm).unwrap();
    // Of four tools: the last place is for a tool that has no running call, whoever comes first.
    let calls = ["a", "b", "c", "d"].map(|tool| Call {
        tool,
        limits: limits(600_000),
        ..Call::new("{}")
    });
    std::thread::scope(|scope| {
        let run = |call: &Call<'_>| call.run(&runtime, &wasm).result;
        let running = calls.each_ref().map(|it| scope.spawn(move || run(it)));
        while calls.iter().any(|it| it.lines.lock().unwrap().is_empty()) {
            assert!(
                running.iter().all(|it| !it.is_finished()),
                "one found no place"
            );
            std::thread::yield_now();
        }
        for call in &calls {
            call.cancelled.store(true, Ordering::Relaxed);
        }
        for it in running {
            assert_eq!(it.join().unwrap(), Err(Failure::Cancelled));
        }
    });
}

#[test]
fn what_the_host_keeps_for_a_tool_counts_against_its_memory_and_is_given_back() {
    let (runtime, wasm) = (runtime(), probes::headers().unwrap());
    let run = |input: &str, max_memory_mb: u32| {
        let limits = Limits {
            max_memory_mb,
            ..limits(60_000)
        };
        let call = Call {
            limits,
            ..Call::new(input)
        };
        call.run(&runtime, &wasm)
    };
    for input in ["kept", "request", "clones"] {
        let failure = run(input, 8).result.unwrap_err();
        assert_eq!(failure, Failure::MemoryGrow { limit_mb: 8 }, "{input}");
        let enough = run(input, 128);
        assert_eq!(enough.result.as_deref(), Ok(input));
        let peak = enough.usage.memory_peak_bytes;
        assert!(peak > 15_000_000, "{input}: {peak}");
    }
    let dropped = run("dropped", 8);
    assert_eq!(dropped.result.as_deref(), Ok("dropped"));
    assert!(dropped.usage.memory_peak_bytes < 1_000_000);
}

#[test]
fn nothing_is_left_of_a_call_for_the_next() {
    let runtime = runtime();
    // Counts its calls in a global and in memory; both are fresh each time.
    let body =
        "(i32.store8 (i32.const 1024) (i32.add (i32.load8_u (i32.const 1024)) (i32.const 49)))
                (call $ok (i32.const 1024) (i32.const 1))";
    let wasm = kenning_testing_wasm::Tool::new(body).build().unwrap();
    for _ in 0..5 {
        assert_eq!(answer(&runtime, &wasm, "{}"), Ok("1".to_owned()));
    }
}
