//! Files that are also nodes follow what peers write, on machines that have the directory.
//!
//! While a page is applied, the locks of its files are held. What somebody changed in a file since we
//! last looked becomes a revision first, so that it takes part in the comparison of times. Where the
//! node is another afterwards, an intent is kept in the same transaction, and the file is written as
//! after every other write.

use crate::files::{self, read_text};
use crate::{FileNode, Kernel, NOTE_BYTES_MAX, roots};
use kenning_audit::foreign::Merged;
use kenning_audit::{Log, Tx};
use kenning_core::{Kind, Result, Space};
use kenning_peers::{Around, Page};
use kenning_store::{Row, When, patience};
use kenning_vault::{Dir, Lock};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long to wait for somebody who is writing one of the files.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// A file that a page may change, and what it is now.
#[derive(Clone, Debug)]
struct Seen {
    file: FileNode,
    text: Option<String>,
}

/// The files of a page, with their locks.
pub(super) struct Held {
    dir: Option<Dir>,
    seen: Vec<Seen>,
    _locks: Vec<Lock>,
    started: Option<Value>,
}

/// What is done in the transaction that applies a page.
pub(super) struct Following {
    log: Log,
    seen: Vec<Seen>,
    started: Option<Value>,
}

impl Held {
    pub(super) fn of_page(kernel: &Kernel, space: &Space, page: Option<&Page>) -> Result<Self> {
        let mut held = Self {
            dir: None,
            seen: Vec::new(),
            _locks: Vec::new(),
            started: None,
        };
        let root = kernel.vault();
        let is_ours = root.is_named() && root.space() == space;
        let Some(page) = page.filter(|_| is_ours) else {
            return Ok(held);
        };
        let Some(dir) = root.existing(space)? else {
            return Ok(held);
        };
        let prefix = format!("{}:", roots::VAULT.name);
        // In one order, so that two processes do not wait for each other.
        let mut names = BTreeSet::new();
        let mut gone = BTreeSet::new();
        for (event, rows) in page.entries.iter().filter_map(|it| it.event.as_ref()) {
            for row in rows {
                if let Row::Node(node) = row
                    && node.kind == Kind::Document
                    && let Some(name) = node.key.strip_prefix(&prefix)
                {
                    names.insert(name.to_owned());
                }
            }
            let event = kenning_audit::event::parse(event);
            let changes = event.map(|it| it.changes).unwrap_or_default();
            gone.extend(changes.into_iter().filter_map(|it| match it {
                kenning_audit::Change::RemoveNode { id }
                | kenning_audit::Change::PutNode { id, .. } => Some(id),
                _ => None,
            }));
        }
        kernel.log().read(space, |tx| {
            for id in gone {
                // A node that is removed or renamed has a file under the name that it has now.
                if let Some(node) = tx.node(id, When::Now)?
                    && node.kind == Kind::Document
                    && let Some(name) = node.key.strip_prefix(&prefix)
                {
                    names.insert(name.to_owned());
                }
            }
            Ok(())
        })?;
        for name in names {
            let file = root.file(&name, NOTE_BYTES_MAX);
            let wait = || kernel.lock_file(&file, patience::left(LOCK_WAIT));
            held._locks.push(patience::waiting(wait)?);
            kernel.finish_file_write(space, &dir, &file.key)?;
            // A name that leads outside, or that is no file here, stays a node without a file.
            match read_text(&dir, &file) {
                Ok(text) => held.seen.push(Seen { file, text }),
                Err(error) => tracing::warn!("`{name}` does not follow its node: {error}"),
            }
        }
        held.dir = Some(dir);
        Ok(held)
    }

    /// The event that says that an exchange began, if it brings anything.
    pub(super) fn announce(&mut self, data: Value) {
        self.started = Some(data);
    }

    pub(super) fn around(&self, kernel: &Kernel) -> Following {
        Following {
            log: kernel.log().clone(),
            seen: self.seen.clone(),
            started: self.started.clone(),
        }
    }

    /// Writes the files whose nodes are others now.
    pub(super) fn finish(self, kernel: &Kernel, space: &Space) -> Result<()> {
        let Some(dir) = &self.dir else {
            return Ok(());
        };
        for Seen { file, .. } in &self.seen {
            let written = kernel.finish_file_write(space, dir, &file.key);
            files::unless_unavailable(written)?;
        }
        Ok(())
    }
}

impl Around for Following {
    fn before(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        if let Some(data) = self.started.take() {
            tx.record("SyncStarted", data)?;
        }
        for Seen { file, text } in &self.seen {
            if let Some(text) = text {
                files::adopt(tx, file, text)?;
            }
        }
        Ok(())
    }

    fn after(&mut self, tx: &mut Tx<'_>, _: &Merged) -> Result<()> {
        for Seen { file, text } in &self.seen {
            let node = tx.node_by_key("", Kind::Document, &file.key, When::Now)?;
            let body = node.map(|it| it.body);
            if body.is_none() && text.is_some() {
                file.form.forget(tx, file)?;
            }
            if *text != body {
                let random = self.log.random();
                files::intend(tx, random, file, text.as_deref(), body.as_deref())?;
            }
        }
        Ok(())
    }
}
