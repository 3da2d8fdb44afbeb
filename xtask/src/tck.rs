//! The openCypher conformance kit: `cargo xtask tck --features DIR`.
//!
//! The directory has `features/**/*.feature` and `graphs/NAME/NAME.cypher`; it is not part of the repository.
//! What is written to set a scenario up is written by the harness; what is asked is asked of the language.

use crate::options::Options;
use anyhow::{Context as _, Result, ensure};
use kenning_testing_tck::{Outcome, gherkin, run as run_scenario};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The share of scenarios that must pass, in percent.
const PASS_PERCENT_MIN: f64 = 98.0;

#[derive(Default)]
struct Count {
    passed: u32,
    failed: u32,
    skipped: u32,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    options.only(&["features", "only"])?;
    let dir = options
        .text("features")
        .context("`--features DIR` is missing")?;
    let dir = Path::new(dir);
    let only = options.text("only").unwrap_or_default();
    let mut files = Vec::new();
    feature_files(&dir.join("features"), &mut files)
        .with_context(|| format!("no features under {}", dir.display()))?;
    files.sort();
    ensure!(
        !files.is_empty(),
        "no feature files under {}",
        dir.display()
    );
    let named_graph = |name: &str| {
        let path = dir.join("graphs").join(name).join(format!("{name}.cypher"));
        fs::read_to_string(path).ok()
    };
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let mut failures = Vec::new();
    let mut skips: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in &files {
        let text = fs::read_to_string(file)?;
        for scenario in gherkin::scenarios(&text) {
            let name = format!("{} {}", scenario.feature, scenario.name);
            if !name.contains(only) {
                continue;
            }
            let count = counts.entry(scenario.feature.clone()).or_default();
            match run_scenario(&scenario, &named_graph) {
                Outcome::Passed => count.passed += 1,
                Outcome::Failed(why) => {
                    count.failed += 1;
                    failures.push((name, why));
                }
                Outcome::Skipped(why) => {
                    count.skipped += 1;
                    skips.entry(why).or_default().push(name);
                }
            }
        }
    }
    report(&counts, &failures, &skips)
}

fn report(
    counts: &BTreeMap<String, Count>,
    failures: &[(String, String)],
    skips: &BTreeMap<String, Vec<String>>,
) -> Result<()> {
    println!("passed failed skipped  feature");
    for (feature, it) in counts {
        println!(
            "{:>6} {:>6} {:>7}  {feature}",
            it.passed, it.failed, it.skipped
        );
    }
    for (why, names) in skips {
        println!("\nskipped, {why}:");
        for name in names {
            println!("  {name}");
        }
    }
    for (name, why) in failures {
        println!("\nfailed: {name}\n  {why}");
    }
    let sum = |of: fn(&Count) -> u32| counts.values().map(of).sum::<u32>();
    let (passed, failed, skipped) = (
        sum(|it| it.passed),
        sum(|it| it.failed),
        sum(|it| it.skipped),
    );
    let n_run = passed + failed;
    ensure!(n_run > 0, "no scenario was run");
    let percent = f64::from(passed) * 100.0 / f64::from(n_run);
    println!("\ntck: {passed} of {n_run} scenarios pass ({percent:.2} %), {skipped} skipped");
    ensure!(
        percent >= PASS_PERCENT_MIN,
        "fewer than {PASS_PERCENT_MIN} % of the scenarios pass"
    );
    Ok(())
}

fn feature_files(dir: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            feature_files(&path, into)?;
        } else if path.extension().is_some_and(|it| it == "feature") {
            into.push(path);
        }
    }
    Ok(())
}
