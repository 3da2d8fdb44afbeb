//! Takes the files of the context as they are.
//!
//! MEMORY.md is a person's own, and a log may have been tidied by hand: then a check finds what is no
//! fault. Whoever has looked at it says so here, and the log of events keeps that they did.

use super::checksums::{self, MEMORY};
use super::{LOCK_WAIT, daily, now};
use crate::Omi;
use kenning_core::{Kind, Result, Space};
use kenning_kernel::Caller;
use kenning_kernel::FileNode;
use kenning_kernel::files::read_text;
use kenning_memory::now as now_file;
use kenning_store::{When, patience};
use kenning_vault::Dir;
use serde_json::json;

impl Omi {
    /// Records every file as it is now, and returns what a check would have found.
    pub fn context_accept(&self, caller: &Caller) -> Result<Vec<String>> {
        let dir = self.context_to_write(caller)?;
        let space = &caller.principal.space;
        self.kernel.patiently(caller.waited, || {
            let file = self.kernel.omi().file(now_file::FILE, now::BYTES_MAX);
            let _lock =
                patience::waiting(|| self.kernel.lock_file(&file, patience::left(LOCK_WAIT)))?;
            self.kernel.finish_unfinished(space, &dir)?;
            let found = self.check_context(space, &dir, false)?;
            self.accept_file(space, &dir, &file)?;
            self.accept_file(
                space,
                &dir,
                &self.kernel.omi().file(MEMORY, daily::BYTES_MAX),
            )?;
            // Damaged lines are part of what is accepted, so the list begins anew.
            checksums::forget_logs(&dir)?;
            for name in self.logs_known_or_there(space, &dir)? {
                self.accept_file(
                    space,
                    &dir,
                    &self.kernel.omi().file(&name, daily::BYTES_MAX),
                )?;
            }
            self.kernel.log().write(space, |tx| {
                for (name, _) in tx.list(daily::SUSPECTS)? {
                    tx.unset(daily::SUSPECTS, &name)?;
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
            let node = tx.node_by_key("", Kind::Document, &file.key, When::Now)?;
            let Some(node) = node else { return Ok(()) };
            tx.remove_node(node.id)?;
            tx.record("FileRemoved", json!({ "path": file.name }))?;
            Ok(())
        })
    }
}
