//! Accepts the files of the context as they are.
//!
//! MEMORY.md belongs to a person, and a log may have been edited by hand: a check then reports
//! differences that are not faults. Whoever has looked at them accepts them here, and the log of
//! events records it.

use super::checksums::{self, MEMORY};
use super::{LOCK_WAIT, Place, daily, now};
use crate::Omi;
use kenning_core::{Kind, Result, Space};
use kenning_kernel::Caller;
use kenning_kernel::FileNode;
use kenning_kernel::files::read_text;
use kenning_kernel::journal;
use kenning_memory::now as now_file;
use kenning_store::{When, patience};
use kenning_vault::Dir;
use serde_json::json;

impl Omi {
    /// Records every file as it is now, and returns what a check would have reported.
    pub fn context_accept(&self, caller: &Caller) -> Result<Vec<String>> {
        let dir = self.context_to_write(caller)?;
        let space = &caller.principal.space;
        let place = &self.place(caller)?;
        self.kernel.with_wait_limit(caller.waited, || {
            let file = self.file_at(place, now_file::FILE, now::BYTES_MAX);
            let _lock =
                patience::waiting(|| self.kernel.lock_file(&file, patience::left(LOCK_WAIT)))?;
            self.kernel.finish_unfinished(space, &dir)?;
            let found = self.check_context(space, &dir, place, false)?;
            self.accept_file(space, &dir, &file)?;
            let memory = self.file_at(place, MEMORY, daily::BYTES_MAX);
            self.accept_file(space, &dir, &memory)?;
            // Damaged lines are accepted too, so the list is written anew.
            checksums::forget_logs(&dir, place)?;
            for name in self.logs_known_or_there(space, &dir, place)? {
                let log = self.file_at(place, &name, daily::BYTES_MAX);
                self.accept_file(space, &dir, &log)?;
            }
            let place = place.clone();
            self.kernel.log().write(space, move |tx| {
                for name in daily::SUSPECTS.keys(&**tx)? {
                    if Place::split(&name).0 == place {
                        daily::SUSPECTS.unset(tx, &name)?;
                    }
                }
                Ok(())
            })?;
            Ok(found.faults)
        })
    }

    fn accept_file(&self, space: &Space, dir: &Dir, file: &FileNode) -> Result<()> {
        if let Some(text) = read_text(dir, file)? {
            checksums::record(dir, file, &text)?;
            return self.kernel.adopt_file(space, file, text);
        }
        checksums::forget(dir, file)?;
        let file = file.clone();
        self.kernel.log().write(space, move |tx| {
            journal::give_up(tx, &file.key)?;
            let node = tx.node_by_key("", Kind::Document, &file.key, When::Now)?;
            let Some(node) = node else { return Ok(()) };
            tx.remove_node(node.id)?;
            tx.record("FileRemoved", json!({ "path": file.name }))?;
            Ok(())
        })
    }
}
