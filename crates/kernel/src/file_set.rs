//! Several files that are also nodes, changed as one: all of them, or none.
//!
//! One transaction changes every node and keeps an intent for every file; then the files follow. A process that
//! is killed in between leaves the intents, and whoever opens the store next carries them out: each knows its text
//! by its node. Every file is locked from the moment that it is read until it is written.

use crate::files::{completed_later, read_text};
use crate::journal::{self, INTENTS, Intent, Plan};
use crate::{FileNode, Kernel, ReadFile};
use kenning_audit::Tx;
use kenning_core::{Error, Hash, Kind, Result, Space};
use kenning_store::{When, patience};
use kenning_vault::{Dir, Lock};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How long a call waits for another one's write of one of the files.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Each file has a lock, and each lock an open file.
const FILES_MAX: usize = 400;

/// What becomes of one file.
#[derive(Clone, Debug)]
pub struct FileEdit {
    /// The file.
    pub file: FileNode,
    /// Its text when the change was made; `None` if there must be no file.
    pub before: Option<String>,
    /// Its text afterwards; `None` if it goes.
    pub after: Option<String>,
    /// The kind of the event.
    pub event: &'static str,
    /// What the event says besides path, size and hash.
    pub details: Map<String, Value>,
}

/// A change of one file, prepared for the transaction.
struct Prepared {
    edit: FileEdit,
    node: Option<Box<dyn ReadFile>>,
    intent: Intent,
}

impl Kernel {
    /// Changes several files and their nodes as one.
    ///
    /// # Errors
    /// A conflict if a file is not what it was, too many files, and those of the store and the directory. What
    /// was committed and could not be written yet says that it will be completed.
    pub fn write_files(&self, space: &Space, dir: &Dir, mut edits: Vec<FileEdit>) -> Result<()> {
        if edits.len() > FILES_MAX {
            return Err(Error::too_large(format!(
                "{} files would change, more than the {FILES_MAX} of one call",
                edits.len()
            ))
            .hint("do it in the program that shows the vault"));
        }
        // In one order, so that two such calls never wait for each other.
        edits.sort_by(|a, b| a.file.name.cmp(&b.file.name));
        let _locks = self.lock_files(&edits)?;
        for edit in &edits {
            self.finish_file_write(space, dir, &edit.file.key)?;
            if read_text(dir, &edit.file)? != edit.before {
                return Err(is_other(edit));
            }
        }
        let keys: Vec<String> = in_order_of_files(&edits);
        let prepared: Vec<Prepared> = edits
            .into_iter()
            .map(|edit| Prepared {
                node: (edit.after.as_deref()).map(|it| edit.file.read(it, Map::new())),
                intent: self.intent_of(&edit),
                edit,
            })
            .collect();
        self.log.write(space, move |tx| {
            prepared.into_iter().try_for_each(|it| it.put(tx))
        })?;
        for key in &keys {
            self.finish_file_write(space, dir, key)
                .map_err(completed_later)?;
        }
        Ok(())
    }

    fn intent_of(&self, edit: &FileEdit) -> Intent {
        let FileEdit {
            file,
            before,
            after,
            ..
        } = edit;
        let hash = |text: &String| Hash::of(text.as_bytes());
        let (root, bytes_max) = (file.root.clone(), file.bytes_max);
        let mut plan = Plan::new(self.log.random(), root, String::new(), bytes_max);
        plan.change(
            &file.name,
            before.as_ref().map(hash),
            after.as_ref().map(hash),
        );
        plan.intent().clone()
    }

    fn lock_files(&self, edits: &[FileEdit]) -> Result<Vec<Lock>> {
        let mut locks = Vec::new();
        for edit in edits {
            let wait = || self.lock_file(&edit.file, patience::left(LOCK_WAIT));
            locks.push(patience::waiting(wait)?);
        }
        Ok(locks)
    }
}

fn is_other(edit: &FileEdit) -> Error {
    let name = &edit.file.name;
    match edit.before {
        None => Error::conflict(format!("`{name}` exists")).hint("choose another name"),
        Some(_) => Error::conflict(format!("`{name}` was changed meanwhile")).hint("call again"),
    }
}

/// The keys of the files, new ones first and removed ones last: so that a text is always somewhere.
fn in_order_of_files(edits: &[FileEdit]) -> Vec<String> {
    let rank = |it: &&FileEdit| match (&it.before, &it.after) {
        (None, _) => 0,
        (_, Some(_)) => 1,
        (_, None) => 2,
    };
    let mut order: Vec<&FileEdit> = edits.iter().collect();
    order.sort_by_key(rank);
    order.iter().map(|it| it.file.key.clone()).collect()
}

impl Prepared {
    fn put(self, tx: &mut Tx<'_>) -> Result<()> {
        let FileEdit {
            file,
            before,
            after,
            event,
            details,
        } = self.edit;
        let mut data = json!({ "path": file.name });
        if let Some(text) = &after {
            data["bytes"] = text.len().into();
            data["content"] = Hash::of(text.as_bytes()).to_string().into();
        }
        if let Some(data) = data.as_object_mut() {
            data.extend(details);
        }
        match self.node {
            Some(node) => node.put(tx)?,
            None => {
                let node = tx.node_by_key("", Kind::Document, &file.key, When::Now)?;
                if let Some(node) = node {
                    tx.remove_node(node.id)?;
                    file.form.forget(tx, &file)?;
                }
            }
        }
        tx.record(event, data)?;
        if before == after {
            return journal::give_up(tx, &file.key);
        }
        INTENTS.set(tx, &file.key, &self.intent)
    }
}
