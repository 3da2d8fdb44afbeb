//! Where one run happens: the verified files, and a directory that the program may write to.

use crate::Engine;
use crate::items::package::Package;
use kenning_core::Result;
use kenning_vault::{Dir, Fresh};
use std::time::Duration;

/// Of runs that a killed process left behind: no run lasts longer.
const LEFT_BEHIND: Duration = Duration::from_secs(25 * 60 * 60);
/// Beneath the data directory.
const RUNS: &str = "kiwi/runs";

/// Gone with everything in it when it is dropped.
pub(super) struct Room {
    /// The tool's own files.
    pub(super) code: Dir,
    /// What the program may write to.
    pub(super) scratch: Dir,
    _fresh: Fresh,
}

impl Engine {
    /// Makes a room with a copy of the files that were verified.
    pub(super) fn make_room(&self, package: &Package, own_user: bool) -> Result<Room> {
        let room = self.make_empty_room(own_user)?;
        for (name, bytes) in &package.files {
            room.code.put(name, bytes, 0o755)?;
        }
        Ok(room)
    }

    pub(super) fn make_empty_room(&self, own_user: bool) -> Result<Room> {
        // A user of its own could not walk through our data directory.
        let fresh = if own_user {
            Fresh::for_everybody()?
        } else {
            let runs = self.data.create_subdir(RUNS)?;
            Fresh::sweep(&runs, LEFT_BEHIND)?;
            Fresh::beneath(&runs)?
        };
        Ok(Room {
            scratch: fresh.room(0o700)?,
            code: fresh.room(0o755)?,
            _fresh: fresh,
        })
    }
}
