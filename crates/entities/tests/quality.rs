//! How well labels are resolved: the bar that the product is held against, on each half of the pairs.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests fail and tell as tests do"
)]

use kenning_entities::ontology::Ontology;
use kenning_entities::quality::{Report, pairs, quality};

const SEEDED: &str = include_str!("../../../testing/resolution/seeded.tsv");
const WRITTEN: &str = include_str!("../../../testing/resolution/written.tsv");

fn report(text: &str) -> Report {
    quality(&Ontology::default(), &pairs(text).unwrap()).unwrap()
}

fn check(text: &str, n_pairs_min: usize) {
    let report = report(text);
    let (precision, recall) = (report.ours.precision(), report.ours.recall());
    println!(
        "{} pairs: precision {precision:.3}, recall {recall:.3}",
        report.n_pairs
    );
    println!(
        "jaro-winkler {:?}\noriginal {:?}",
        report.jaro_winkler, report.original
    );
    for it in &report.wrong {
        println!(
            "{} {}: {} / {} same: {}",
            it.kind, it.category, it.a, it.b, it.is_same
        );
    }
    assert!(report.n_pairs >= n_pairs_min, "{} pairs", report.n_pairs);
    assert!(precision >= 0.98, "precision {precision}");
    assert!(recall >= 0.90, "recall {recall}");
}

#[test]
fn pairs_from_a_seed_are_told_apart() {
    check(SEEDED, 300);
}

#[test]
fn pairs_written_by_hand_are_told_apart() {
    check(WRITTEN, 240);
}

#[test]
fn letters_alone_do_not_reach_the_bar() {
    for text in [SEEDED, WRITTEN] {
        let report = report(text);
        for other in [report.jaro_winkler, report.original] {
            assert!(other.precision() < report.ours.precision());
            assert!(other.recall() < report.ours.recall());
        }
    }
}
