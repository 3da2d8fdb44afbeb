//! The directory of one run: the verified files, and a directory that the program may write to.

use crate::Kiwi;
use crate::package::Package;
use kenning_core::Result;
use kenning_vault::{Dir, Fresh};

/// Below the data directory.
const RUNS: &str = "kiwi/runs";

/// Removed with everything in it when dropped.
pub(super) struct RunDir {
    /// The tool's own files.
    pub(super) code: Dir,
    /// Our own files beside it, which the program may read.
    pub(super) beside: Dir,
    /// The directory that the program may write to.
    pub(super) scratch: Dir,
    _fresh: Fresh,
}

impl Kiwi {
    /// Removes the directories of runs whose process was killed. What cannot be removed now is not an
    /// error: the next process tries again.
    fn sweep_run_dirs(&self, own_user: bool) {
        let swept = match own_user {
            true => Fresh::sweep_for_everybody(),
            false if !self.kernel.data().exists(RUNS).unwrap_or(false) => return,
            false => self
                .kernel
                .data()
                .subdir(RUNS)
                .and_then(|it| Fresh::sweep(&it)),
        };
        match swept {
            Ok(0) => {}
            Ok(n) => tracing::info!("removed what {n} killed runs left"),
            Err(error) => tracing::warn!("leftovers of killed runs could not be removed: {error}"),
        }
    }

    /// The same, when a process starts.
    pub fn sweep_killed_runs(&self) {
        if let Ok(strength) = self.jail() {
            self.sweep_run_dirs(strength.own_user);
        }
    }

    /// Makes a directory with a copy of the verified files.
    pub(super) fn make_run_dir(&self, package: &Package, own_user: bool) -> Result<RunDir> {
        let run_dir = self.make_empty_run_dir(own_user)?;
        for (name, bytes) in &package.files {
            run_dir.code.put(name, bytes, 0o755)?;
        }
        Ok(run_dir)
    }

    pub(super) fn make_empty_run_dir(&self, own_user: bool) -> Result<RunDir> {
        self.sweep_run_dirs(own_user);
        // Another user could not access our data directory.
        let fresh = if own_user {
            Fresh::for_everybody()?
        } else {
            Fresh::beneath(&self.kernel.data().private_subdir(RUNS)?)?
        };
        Ok(RunDir {
            scratch: fresh.room(0o700)?,
            code: fresh.room(0o755)?,
            beside: fresh.room(0o755)?,
            _fresh: fresh,
        })
    }
}
