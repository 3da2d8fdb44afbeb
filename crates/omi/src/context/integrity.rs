//! Checks that the files of the context are what was written.
//!
//! A file is compared with its checksum and with its node, which cannot be changed without the key
//! that signs the log: so a change of both file and checksum is detected. A file without a record is
//! accepted, and recorded.

use super::checksums::{self, MEMORY};
use super::{LOCK_WAIT, Place, daily, now};
use crate::Omi;
use kenning_core::{Code, Kind, Result, Space};
use kenning_kernel::FileNode;
use kenning_kernel::{Caller, Scope};
use kenning_memory::daily as logs;
use kenning_memory::now as now_file;
use kenning_store::{NodeFilter, When, patience};
use kenning_text::hex;
use kenning_vault::Dir;
use std::collections::{BTreeMap, BTreeSet};

/// The findings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesIntegrity {
    /// Whether NOW.md is unchanged.
    pub now_md: bool,
    /// Whether MEMORY.md and the daily logs are unchanged.
    pub memory_md: bool,
    /// What is wrong, one sentence each.
    pub faults: Vec<String>,
}

impl Default for FilesIntegrity {
    /// No files, no faults.
    fn default() -> Self {
        Self {
            now_md: true,
            memory_md: true,
            faults: Vec::new(),
        }
    }
}

/// The state of one file.
enum Verdict {
    Good,
    /// It has no checksum or no node yet.
    Unrecorded(String),
    Fault(String),
}

impl Omi {
    /// Compares NOW.md, MEMORY.md and the daily logs with what is recorded, and records what is not
    /// yet.
    pub fn context_integrity(&self, caller: &Caller) -> Result<FilesIntegrity> {
        let space = &caller.principal.space;
        let place = &self.place(caller)?;
        let Some(dir) = self.context_to_read(caller)? else {
            return self
                .kernel
                .with_wait_limit(caller.waited, || self.missing_context(space, place));
        };
        let may_record =
            !self.kernel.is_read_only() && caller.principal.require(Scope::Write).is_ok();
        if may_record {
            return self.kernel.with_wait_limit(caller.waited, || {
                // File and checksum are written one after the other: a check in between would report
                // a false fault.
                let any = self.kernel.omi().file(now_file::FILE, now::BYTES_MAX);
                let _lock =
                    patience::waiting(|| self.kernel.lock_file(&any, patience::left(LOCK_WAIT)))?;
                self.check_context(space, &dir, place, true)
            });
        }
        self.look_at_context(space, &dir, place)
    }

    /// The same, without recording anything.
    pub fn context_faults(&self, caller: &Caller) -> Result<Vec<String>> {
        let Some(dir) = self.context_to_read(caller)? else {
            return Ok(Vec::new());
        };
        let place = self.place(caller)?;
        let found = self.look_at_context(&caller.principal.space, &dir, &place)?;
        Ok(found.faults)
    }

    fn look_at_context(&self, space: &Space, dir: &Dir, place: &Place) -> Result<FilesIntegrity> {
        let first = self.check_context(space, dir, place, false)?;
        if first.faults.is_empty() {
            return Ok(first);
        }
        // Without a lock, a fault could be a write in progress: it must be seen twice.
        self.check_context(space, dir, place, false)
    }

    /// The directory does not exist: everything that the store knows of it is missing.
    fn missing_context(&self, space: &Space, place: &Place) -> Result<FilesIntegrity> {
        let mut found = FilesIntegrity::default();
        for name in self.known_files(space, place)? {
            found.add(&name, Some(format!("`{name}` is missing")));
        }
        Ok(found)
    }

    pub(super) fn check_context(
        &self,
        space: &Space,
        dir: &Dir,
        place: &Place,
        may_record: bool,
    ) -> Result<FilesIntegrity> {
        let mut found = FilesIntegrity::default();
        for (name, fault) in self
            .kernel
            .log()
            .read(space, |tx| daily::SUSPECTS.list_readable(tx))?
        {
            if Place::split(&name).0 == *place {
                found.add(&name, Some(fault.0));
            }
        }
        for (name, bytes_max) in [(now_file::FILE, now::BYTES_MAX), (MEMORY, daily::BYTES_MAX)] {
            let sum = match checksums::of(dir, place, name) {
                Ok(sum) => sum,
                Err(error) => {
                    found.add(name, Some(error.message));
                    continue;
                }
            };
            let file = self.file_at(place, name, bytes_max);
            let fault = self.check_file(space, dir, &file, sum.as_deref(), may_record)?;
            found.add(name, fault);
        }
        let sums = match checksums::of_logs(dir, place) {
            Ok(sums) => sums,
            Err(error) => {
                found.add(checksums::DAILY_SUMS, Some(error.message));
                return Ok(found);
            }
        };
        for fault in sums.faults {
            found.add(checksums::DAILY_SUMS, Some(fault));
        }
        let sums: BTreeMap<String, String> = sums.logs.into_iter().collect();
        let mut names: BTreeSet<String> = sums.keys().cloned().collect();
        names.extend(self.logs_known_or_there(space, dir, place)?);
        for name in names {
            let file = self.file_at(place, &name, daily::BYTES_MAX);
            let sum = sums.get(&name).map(String::as_str);
            let fault = self.check_file(space, dir, &file, sum, may_record)?;
            found.add(&name, fault);
        }
        Ok(found)
    }

    fn check_file(
        &self,
        space: &Space,
        dir: &Dir,
        file: &FileNode,
        sum: Option<&str>,
        may_record: bool,
    ) -> Result<Option<String>> {
        match self.compare(space, dir, file, sum)? {
            Verdict::Fault(fault) => Ok(Some(fault)),
            Verdict::Unrecorded(text) if may_record => {
                checksums::record(dir, file, &text)?;
                self.kernel.adopt_file(space, file, text)?;
                Ok(None)
            }
            Verdict::Good | Verdict::Unrecorded(_) => Ok(None),
        }
    }

    fn compare(
        &self,
        space: &Space,
        dir: &Dir,
        file: &FileNode,
        sum: Option<&str>,
    ) -> Result<Verdict> {
        let name = &file.name;
        let node = self.kernel.log().read(space, |tx| {
            tx.node_by_key("", Kind::Document, &file.key, When::Now)
        })?;
        let bytes = match dir.read(name, file.bytes_max) {
            Ok(bytes) => bytes,
            Err(error) if error.code == Code::NotFound && sum.is_none() && node.is_none() => {
                return Ok(Verdict::Good);
            }
            Err(error) if error.code == Code::NotFound => {
                return Ok(Verdict::Fault(format!("`{name}` is missing")));
            }
            Err(error) => return Ok(Verdict::Fault(error.message)),
        };
        if sum.is_some_and(|it| it != hex::sha256(&bytes)) {
            return Ok(Verdict::Fault(format!(
                "`{name}` does not match its checksum"
            )));
        }
        if node.as_ref().is_some_and(|it| it.body.as_bytes() != bytes) {
            return Ok(Verdict::Fault(format!(
                "`{name}` differs from what was last written"
            )));
        }
        if sum.is_some() && node.is_some() {
            return Ok(Verdict::Good);
        }
        Ok(match String::from_utf8(bytes) {
            Ok(text) => Verdict::Unrecorded(text),
            Err(_) => Verdict::Fault(format!("`{name}` is not UTF-8 text")),
        })
    }

    /// The names, in their place, of the logs that the store knows or that exist.
    pub(super) fn logs_known_or_there(
        &self,
        space: &Space,
        dir: &Dir,
        place: &Place,
    ) -> Result<Vec<String>> {
        let known = self.known_files(space, place)?;
        let known = known.iter().map(|it| Place::split(it).1.to_owned());
        let known = known.filter(|it| it.starts_with(logs::FOLDER));
        let names: BTreeSet<String> = known.chain(logs_in(dir, place)?).collect();
        Ok(names.into_iter().collect())
    }

    /// The names of the checked files that the store knows.
    fn known_files(&self, space: &Space, place: &Place) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for prefix in [now_file::FILE, MEMORY, logs::FOLDER] {
            let filter = NodeFilter {
                kinds: vec![Kind::Document],
                project: Some(String::new()),
                key_prefix: Some(self.file_at(place, prefix, 0).key),
            };
            let nodes = self
                .kernel
                .log()
                .read(space, |tx| tx.nodes(&filter, When::Now, None, usize::MAX))?;
            let own = nodes.into_iter().map(|it| it.key);
            names.extend(own.filter_map(|key| {
                let (_, name) = key.split_once(':')?;
                Some(name.to_owned())
            }));
        }
        Ok(names)
    }
}

impl FilesIntegrity {
    fn add(&mut self, name: &str, fault: Option<String>) {
        let Some(fault) = fault else { return };
        if Place::split(name).1 == now_file::FILE {
            self.now_md = false;
        } else {
            self.memory_md = false;
        }
        self.faults.push(fault);
    }
}

/// The names of the logs that exist.
fn logs_in(dir: &Dir, place: &Place) -> Result<Vec<String>> {
    let entries = match dir.list(&place.name(logs::FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.code == Code::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let days = entries.iter().filter_map(|it| logs::day_of(&it.name));
    Ok(days.map(logs::file_name).collect())
}
