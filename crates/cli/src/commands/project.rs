//! The project's code, for commands that ask it.

use crate::{output, progress};
use kenning_core::Result;
use kenning_engine::koi::ScanResult;
use kenning_engine::{Caller, Engine};

/// Reads the project's last commit, if it is read without being asked and is not in the store yet. A server does
/// so in the background; a command would answer from what there was before.
pub(super) fn read_first(engine: &Engine, caller: &Caller) -> Result<()> {
    if !engine.koi().awaits_project(caller)? {
        return Ok(());
    }
    output::remark(
        "reading this project's last commit first (`code.project: off` in config.yaml leaves that)",
    );
    let bar = progress::bar("reading");
    let waiting = progress::watched(caller.clone(), &bar);
    let scanned = engine.koi().scan_project(&waiting)?;
    bar.finish_and_clear();
    for result in scanned {
        if let ScanResult::Failed { repo, error } = result {
            output::remark(&format!("`{repo}` was not read: {error}"));
        }
    }
    Ok(())
}
