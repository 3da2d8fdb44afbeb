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

#[test]
fn a_call_that_may_have_more_memory_than_there_is_runs_alone() {
    let options = RuntimeOptions {
        total_memory_mb: 32,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options);
    let echo = probes::echo().unwrap();
    std::thread::scope(|scope| {
        let run = || answer(&runtime, &echo, "{}");
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(run)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Ok("{}".to_owned()));
        }
    });
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
