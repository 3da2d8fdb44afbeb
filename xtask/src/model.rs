//! Random operations on every backend at once: `cargo xtask model`.
//!
//! The test of `kenning-testing-model` does ten thousand with one seed; this does as many as are asked
//! for. A difference is printed with all that is needed to see it again, and ends the run.

use crate::options::Options;
use anyhow::{Result, bail};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const OPERATIONS: u64 = 200_000;

pub(crate) fn run(options: &Options) -> Result<()> {
    options.only(&["operations", "seed"])?;
    let operations = options.value("operations", OPERATIONS)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let seed = options.value("seed", now.as_secs())?;
    println!("model: {operations} operations, seed {seed}");
    let begin = Instant::now();
    match kenning_testing_model::replay(seed, operations) {
        Ok(summary) => {
            println!("{summary}, {} s", begin.elapsed().as_secs());
            Ok(())
        }
        Err(difference) => bail!("{difference}"),
    }
}
