//! Where one run happens: the verified files, and a directory that the program may write to.

use crate::Kiwi;
use crate::package::Package;
use kenning_core::Result;
use kenning_vault::{Dir, Fresh};

/// Beneath the data directory.
const RUNS: &str = "kiwi/runs";

/// Gone with everything in it when it is dropped.
pub(super) struct Room {
    /// The tool's own files.
    pub(super) code: Dir,
    /// What is ours beside it, to be read by the program.
    pub(super) beside: Dir,
    /// What the program may write to.
    pub(super) scratch: Dir,
    _fresh: Fresh,
}

impl Kiwi {
    /// Removes the rooms of runs whose process was killed. What cannot be removed now is no reason not
    /// to work: whoever comes next tries again.
    fn sweep_rooms(&self, own_user: bool) {
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
            Err(error) => tracing::warn!("leftovers of killed runs stay: {error}"),
        }
    }

    /// The same, for a process that begins.
    pub fn sweep_killed_runs(&self) {
        if let Ok(strength) = self.jail() {
            self.sweep_rooms(strength.own_user);
        }
    }

    /// Makes a room with a copy of the files that were verified.
    pub(super) fn make_room(&self, package: &Package, own_user: bool) -> Result<Room> {
        let room = self.make_empty_room(own_user)?;
        for (name, bytes) in &package.files {
            room.code.put(name, bytes, 0o755)?;
        }
        Ok(room)
    }

    pub(super) fn make_empty_room(&self, own_user: bool) -> Result<Room> {
        self.sweep_rooms(own_user);
        // A user of its own could not walk through our data directory.
        let fresh = if own_user {
            Fresh::for_everybody()?
        } else {
            Fresh::beneath(&self.kernel.data().private_subdir(RUNS)?)?
        };
        Ok(Room {
            scratch: fresh.room(0o700)?,
            code: fresh.room(0o755)?,
            beside: fresh.room(0o755)?,
            _fresh: fresh,
        })
    }
}
