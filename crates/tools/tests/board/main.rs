//! The tool table over a real store: most tests of the project are here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "these tests look at the files themselves"
)]

mod agents;
mod agents_code;
mod agents_model;
mod agents_planted;
mod answers;
mod audit;
mod audit_proofs;
mod backups;
mod embeddings;
mod finding;
mod forgetting;
mod graph;
mod growth;
mod journal;
mod kiwi;
mod kiwi_find;
mod kiwi_run;
mod kiwi_skills;
mod kiwi_validated;
mod koi_entities;
mod koi_example;
mod koi_federation;
mod koi_following;
mod koi_mail;
mod koi_project;
mod koi_reading;
mod koi_repos;
mod koi_statements;
mod koi_web;
mod memories;
mod memories_by_id;
mod notes_edited;
mod queries;
mod ranking;
mod reading_on;
mod runs;
mod second_looks;
mod shapes;
mod table;
mod vault_notes;
mod vectors;
mod wasm_tools;
mod workflows;

use kenning_testing::Fixture;
use kenning_tools::Selection;

/// The same fixture with every tool, those that are off by default included.
fn everything(fixture: &Fixture) -> Fixture {
    fixture.again(Selection {
        toolsets: vec!["all".to_owned()],
        ..Selection::default()
    })
}

/// What the recorded backend answered in the pair of this name.
fn koi_golden(name: &str) -> serde_json::Value {
    const PAIRS: &str = include_str!("../../../../testing/vectors/koi-golden.jsonl");
    let pairs = PAIRS
        .lines()
        .map(|it| serde_json::from_str::<serde_json::Value>(it).unwrap());
    let mut found = pairs.filter(|it| it["name"] == name);
    found.next().unwrap()["response"].take()
}
