//! The model passes the conformance test, and every backend agrees with it.

#![allow(clippy::panic, reason = "tests fail by panicking")]

use kenning_store::{Store, conformance};
use kenning_testing_model::{Model, replay};

/// A number from the environment, to see a difference again or to look longer.
fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is not a number")),
        Err(_) => default,
    }
}

#[test]
fn the_model_passes_the_conformance_test() {
    let model = Model::default();
    conformance::run(&|| Store::new(model.clone()));
}

#[test]
fn every_backend_answers_like_the_model() {
    let seed = number("KENNING_SEED", 8);
    match replay(seed, number("KENNING_OPERATIONS", 10_000)) {
        Ok(summary) => println!("{summary}"),
        Err(difference) => panic!("{difference}"),
    }
}
