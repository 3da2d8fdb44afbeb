//! `kenning reindex`: passages and vectors, made anew.

use crate::{output, progress};
use kenning_core::Result;
use kenning_engine::{Caller, Engine};
use serde_json::json;
use std::time::Duration;

/// A person who waits decides how long.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Cuts every text into passages again and embeds what has no vector.
pub(super) fn run(engine: &Engine, mut caller: Caller, as_json: bool) -> Result<u8> {
    caller.deadline += YEAR;
    let bar = progress::bar("texts cut into passages");
    let done = engine.reindex(&progress::watched(caller, &bar))?;
    bar.finish_and_clear();
    if as_json {
        output::print_json(&json!({ "nodes": done.nodes, "embedded": done.embedded }));
    } else {
        let (nodes, embedded) = (done.nodes, done.embedded);
        output::chat(&format!(
            "✓ {nodes} texts cut into passages again, {embedded} passages embedded"
        ));
    }
    Ok(0)
}
