//! Whatever a component is or does, it ends as it must, the host goes on, and the next call is clean.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use common::{Call, answer, runtime};
use kenning_sandbox::{PoolSize, Runtime, RuntimeOptions};
use kenning_testing_wasm::corpus::{self, Case, End};
use kenning_testing_wasm::{mutation, probes};

/// Runs the whole corpus, and a good tool after every case.
fn check(runtime: &Runtime, is_pool: bool) {
    let good = probes::echo().unwrap();
    let cases = corpus::cases().unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let Case {
            name,
            wasm,
            input,
            limits,
            end: expected,
        } = case;
        let call = Call {
            limits: *limits,
            ..Call::new(input)
        };
        let result = call.run(runtime, wasm).result;
        if !expected.is_met_by(&result, is_pool) {
            wrong.push(format!("{name}: {expected:?} expected, {result:?} found"));
        }
        if let Err(failure) = &result {
            let text = failure.to_string();
            assert!(
                !text.contains("backtrace") && text.len() < 3_000,
                "{name}: {text}"
            );
        }
        assert_eq!(
            answer(runtime, &good, "{}"),
            Ok("{}".to_owned()),
            "after {name}"
        );
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
    assert!(cases.len() >= 150, "only {} cases", cases.len());
}

#[test]
fn every_hostile_component_ends_as_it_must() {
    check(&runtime(), false);
}

#[test]
fn every_hostile_component_ends_as_it_must_in_a_pool() {
    let pool = PoolSize {
        calls: 4,
        max_memory_mb: 64,
    };
    let options = RuntimeOptions {
        pooling: Some(pool),
        ..RuntimeOptions::default()
    };
    check(&Runtime::new(options), true);
}

#[test]
fn what_is_hostile_is_refused_before_it_is_installed() {
    let runtime = runtime();
    for case in corpus::cases().unwrap() {
        if case.end == End::Refused {
            assert!(runtime.check(&case.wasm).is_err(), "{}", case.name);
        }
    }
}

#[test]
fn broken_components_break_nothing_else() {
    let tally = mutation::run(500, 20_261_115).unwrap();
    println!("{tally:?}");
    assert_eq!(tally.refused + tally.failed + tally.answered, 500);
    let each = [tally.refused, tally.failed, tally.answered];
    assert!(each.iter().all(|it| *it > 25), "{tally:?}");
}
