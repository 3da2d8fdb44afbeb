//! The model lives through the story, and every floor agrees with it.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use kenning_store::{Store, story};
use kenning_testing_model::Model;

#[test]
fn the_model_lives_through_the_story() {
    let model = Model::default();
    story::run(&|| Store::new(model.clone()));
}
