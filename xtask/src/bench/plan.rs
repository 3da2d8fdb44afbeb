//! How long the search for a plan takes.

use crate::options::Options;
use anyhow::{Result, anyhow, ensure};
use kenning_engine::workflow::{Action, Condition, Effect, Facts, Limits, find_plan};
use std::time::{Duration, Instant};

/// A side of the square of states.
const SIDE: u32 = 100;
/// For the whole square.
const TIME_MAX: Duration = Duration::from_millis(200);
/// The best of so many runs counts: others disturb, nobody helps.
const RUNS: usize = 5;

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&[])?;
    // From one corner to the other all ways cost the same, so every state is looked at.
    let step = |name: &str| Action {
        name: name.to_owned(),
        cost: 1.0,
        needs: [(name.to_owned(), Condition::AtMost(f64::from(SIDE - 1)))].into(),
        effects: [(name.to_owned(), Effect::Add(1.0))].into(),
        ..Action::default()
    };
    let actions = [step("x"), step("y")];
    let corner = Condition::AtLeast(f64::from(SIDE));
    let wants = [("x".to_owned(), corner.clone()), ("y".to_owned(), corner)].into();
    let limits = Limits {
        actions_max: 2 * SIDE as usize,
        ..Limits::default()
    };
    let (mut best, mut n_states) = (Duration::MAX, 0);
    for _ in 0..RUNS {
        let began = Instant::now();
        let plan = find_plan(&Facts::new(), &wants, &actions, limits)
            .map_err(|why| anyhow!("no plan: {why:?}"))?;
        best = best.min(began.elapsed());
        n_states = plan.n_states;
        ensure!(
            plan.actions.len() == 2 * SIDE as usize,
            "a plan of another length"
        );
    }
    println!(
        "plan: {n_states} states in {:.1} ms",
        best.as_secs_f64() * 1e3
    );
    ensure!(n_states >= 10_000, "only {n_states} states");
    ensure!(best <= TIME_MAX, "more than {TIME_MAX:?}");
    Ok(())
}
