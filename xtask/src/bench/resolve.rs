//! How often a name is resolved to the right entity, on judged pairs.
//!
//! The half that was made from a seed stood before any threshold did, so its figures are those to believe.

use super::meter::{cpu, ms};
use crate::options::Options;
use anyhow::{Result, anyhow, ensure};
use kenning_entities::ontology::Ontology;
use kenning_entities::quality::{Report, Score, pairs, quality};
use std::time::Instant;

const PRECISION_MIN: f64 = 0.98;
const RECALL_MIN: f64 = 0.90;

const HALVES: &[(&str, &str)] = &[
    (
        "seeded",
        include_str!("../../../testing/resolution/seeded.tsv"),
    ),
    (
        "written",
        include_str!("../../../testing/resolution/written.tsv"),
    ),
];

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&[])?;
    for (name, text) in HALVES {
        let (began, before) = (Instant::now(), cpu()?);
        let report = measured(text)?;
        let (wall, used) = (ms(began.elapsed()), ms(cpu()?.saturating_sub(before)));
        let n_pairs = report.n_pairs;
        println!("{name}: {n_pairs} pairs, all three ways in {wall:.0} ms, {used:.0} ms processor");
        print("  kenning", &report.ours);
        print("  original's tiers", &report.original);
        print("  jaro-winkler 0.92", &report.jaro_winkler);
        for (category, score) in &report.by_category {
            let n_right = score.joined_rightly + score.parted_rightly;
            let n_pairs = n_right + score.joined_wrongly + score.missed;
            println!("    {category:<18} {n_right:>3} of {n_pairs:>3} right");
        }
        for it in &report.wrong {
            let verdict = if it.is_same {
                "missed"
            } else {
                "joined wrongly"
            };
            println!("    {verdict}: {} / {}", it.a, it.b);
        }
        let score = report.ours;
        ensure!(
            score.precision() >= PRECISION_MIN && score.recall() >= RECALL_MIN,
            "{name}: precision {:.3} and recall {:.3}, and not {PRECISION_MIN} and {RECALL_MIN}",
            score.precision(),
            score.recall()
        );
    }
    Ok(())
}

fn measured(text: &str) -> Result<Report> {
    let pairs = pairs(text).map_err(|it| anyhow!(it.message))?;
    quality(&Ontology::default(), &pairs).map_err(|it| anyhow!(it.message))
}

fn print(name: &str, score: &Score) {
    println!(
        "{name:<20} precision {:.3}  recall {:.3}",
        score.precision(),
        score.recall()
    );
}
