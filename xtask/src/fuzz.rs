//! Malformed and hostile inputs, for any time: `cargo xtask fuzz`.
//!
//! The tests of `kenning-fuzz` run a few hundred of each target with one seed; here each runs for its
//! seconds. This program is its own child (`fuzz child …`): what a target does to its process is a find.

use crate::options::Options;
use anyhow::{Context as _, Result, ensure};
use kenning_fuzz::{Plan, Program, Target, corpus, driver, targets};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The word after `fuzz` of a child.
pub(crate) const CHILD: &str = "child";

pub(crate) fn run(options: &Options) -> Result<()> {
    options.only(&["seconds", "target", "seed", "keep", "case"])?;
    let seconds: u64 = options.value("seconds", 60)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let seed = options.value("seed", now.as_secs())?;
    let chosen: Vec<&Target> = match options.text("target") {
        None => targets::ALL.to_vec(),
        Some(names) => names
            .split(',')
            .map(|name| {
                let known = || {
                    let names: Vec<&str> = targets::ALL.iter().map(|it| it.name).collect();
                    format!("no target `{name}`; there are {}", names.join(", "))
                };
                Target::named(name).with_context(known)
            })
            .collect::<Result<_>>()?,
    };
    let program = Program {
        path: std::env::current_exe()?,
        words: vec!["fuzz".to_owned(), CHILD.to_owned()],
    };
    if let (Some(_), [target]) = (options.text("case"), &chosen[..]) {
        return again(&program, target, seed, options.value("case", 0)?);
    }
    let (mut n_cases, mut n_finds) = (0, 0);
    for target in &chosen {
        let plan = Plan {
            time: Duration::from_secs(seconds),
            ..Plan::of(seed, u64::MAX)
        };
        let report = driver::run(&program, target, &plan)?;
        for find in &report.finds {
            println!("{}: {find}", target.name);
            if options.has("keep") && find.is_alone {
                corpus::keep(target.name, &find.why, &find.input)?;
            }
        }
        let (name, finds) = (target.name, report.finds.len());
        let (slowest, at) = (report.slowest.0.as_millis(), report.slowest.1);
        println!(
            "{name}: {} cases, {finds} failures, seed {seed} (slowest {slowest} ms, case {at})",
            report.cases
        );
        n_cases += report.cases;
        n_finds += finds;
    }
    let n = chosen.len();
    println!(
        "fuzz: {n} targets, {seconds} s each, {n_cases} cases, {n_finds} failures, seed {seed}"
    );
    ensure!(n_finds == 0, "{n_finds} finds");
    Ok(())
}

/// One case once more: its input, and what comes of it.
fn again(program: &Program, target: &Target, seed: u64, case: u64) -> Result<()> {
    let pool = target.pool().map_err(anyhow::Error::msg)?;
    println!(
        "{}",
        corpus::write_literal(&target.input(&pool, seed, case))
    );
    let plan = Plan {
        from: case,
        ..Plan::of(seed, case + 1)
    };
    let report = driver::run(program, target, &plan)?;
    let took = report.slowest.0.as_millis();
    println!("{}: case {case} of seed {seed} took {took} ms", target.name);
    for find in &report.finds {
        println!("{find}");
    }
    ensure!(report.finds.is_empty(), "a find");
    Ok(())
}
