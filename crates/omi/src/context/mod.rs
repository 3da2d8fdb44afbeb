//! The current context: NOW.md, and a log for each day.
//!
//! Both are Markdown files in the directory that `OMI_BASE_PATH` names, and nodes that are found like
//! notes. Their formats are in the `memory` crate; here they are read and written. [`checksums`] are
//! kept beside them, and `integrity` compares file, checksum and node.

mod accept;
pub mod checksums;
mod daily;
mod forget;
mod form;
mod init;
mod integrity;
mod now;
mod place;
mod settings;

pub(crate) use daily::entry_at;
pub use daily::{is_daily_log, passages_of_log};
pub use form::ContextForm;
pub use integrity::FilesIntegrity;
pub use kenning_memory::now::{Now, Update as NowUpdate};
pub use now::NowFile;
pub(crate) use place::Place;

use crate::Omi;
use jiff::Timestamp;
use jiff::civil::DateTime;
use kenning_core::{Error, Result, Space};
use kenning_kernel::{Caller, Scope, files, projects};
use kenning_vault::Dir;
use std::time::Duration;

/// How long a check or a setting waits for a write to end.
const LOCK_WAIT: Duration = Duration::from_secs(10);

impl Omi {
    /// The local time.
    pub(crate) fn local_now(&self) -> DateTime {
        self.local(self.kernel.log().clock().now_ms())
    }

    fn local(&self, ms: u64) -> DateTime {
        let at = i64::try_from(ms).ok().map(Timestamp::from_millisecond);
        let at = at.and_then(Result::ok).unwrap_or(Timestamp::MAX);
        at.to_zoned(self.kernel.zone().clone()).datetime()
    }

    /// The directory for a caller who reads; `None` if nothing was written yet. First finishes what a
    /// killed process left.
    pub(crate) fn context_to_read(&self, caller: &Caller) -> Result<Option<Dir>> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let Some(dir) = self.kernel.omi().existing(space)? else {
            return Ok(None);
        };
        self.kernel
            .with_wait_limit(caller.waited, || self.finish_context_writes(space, &dir))?;
        Ok(Some(dir))
    }

    /// The directory for a caller who writes.
    pub fn context_to_write(&self, caller: &Caller) -> Result<Dir> {
        caller.principal.require(Scope::Write)?;
        if self.kernel.is_read_only() {
            return Err(Error::denied("the store is read-only").hint("start without `--read-only`"));
        }
        self.kernel.omi().create(&caller.principal.space)
    }

    /// The text of a file of the context.
    pub(crate) fn context_text(&self, dir: &Dir, name: &str) -> Result<Option<String>> {
        files::read_text(dir, &self.kernel.omi().file(name, daily::BYTES_MAX))
    }

    /// Remembers the caller's project, before its first file is written.
    pub(crate) fn remember_project(&self, caller: &Caller) -> Result<()> {
        let Some(project) = caller.principal.project.clone() else {
            return Ok(());
        };
        let id = self.kernel.project_of(caller)?;
        let is_known = self.kernel.projects(caller)?.iter().any(|it| it.0 == id);
        if is_known {
            return Ok(());
        }
        self.kernel.log().write(&caller.principal.space, move |tx| {
            projects::remember(tx, &project, &id)
        })
    }

    /// Does not wait: a process that is writing finishes by itself. A full disk is not an error here,
    /// because reading still works.
    pub fn finish_context_writes(&self, space: &Space, dir: &Dir) -> Result<()> {
        if self.kernel.is_read_only()
            || self
                .kernel
                .unfinished_writes(space, self.kernel.omi())?
                .is_empty()
        {
            return Ok(());
        }
        let file = self
            .kernel
            .omi()
            .file(kenning_memory::now::FILE, now::BYTES_MAX);
        let Ok(_lock) = self.kernel.lock_file(&file, Duration::ZERO) else {
            return Ok(());
        };
        files::unless_unavailable(self.kernel.finish_unfinished(space, dir))
    }
}
