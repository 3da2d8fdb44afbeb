//! What the full-text index has not been told yet.
//!
//! FTS5 writes a segment of its own at the end of every savepoint and merges segments later. With a
//! savepoint a call, that was a fifth of the writer's time. So the calls of a group only note what
//! belongs in the index, and the index is told once, before the commit and outside every savepoint.
//! A search inside a write, and a call with very much text, tell it earlier.

use rusqlite::{Connection, params};
use std::cell::RefCell;

/// More text than this is not kept in memory.
const BYTES_MAX: usize = 4 * 1024 * 1024;

enum Change {
    Put {
        rowid: i64,
        scope: String,
        title: String,
        tokens: String,
    },
    Remove {
        rowid: i64,
    },
}

#[derive(Default)]
struct Changes {
    list: Vec<Change>,
    bytes: usize,
    /// How many of the list the running call has told already. They are in the index if the call
    /// succeeds, and not in it if the call is rolled back.
    n_told: usize,
}

/// What the index has not been told yet. Empty in a read.
#[derive(Default)]
pub(crate) struct Pending(RefCell<Changes>);

/// Where a call began.
pub(crate) struct Mark(usize);

impl Pending {
    pub(crate) fn put(
        &self,
        connection: &Connection,
        rowid: i64,
        scope: &str,
        title: &str,
        tokens: &str,
    ) -> rusqlite::Result<()> {
        let mut changes = self.0.borrow_mut();
        changes.bytes += scope.len() + title.len() + tokens.len();
        changes.list.push(Change::Put {
            rowid,
            scope: scope.to_owned(),
            title: title.to_owned(),
            tokens: tokens.to_owned(),
        });
        if changes.bytes > BYTES_MAX {
            changes.tell(connection)?;
        }
        Ok(())
    }

    pub(crate) fn remove(&self, rowid: i64) {
        self.0.borrow_mut().list.push(Change::Remove { rowid });
    }

    /// Tells the index everything, so that a search finds it.
    pub(crate) fn tell(&self, connection: &Connection) -> rusqlite::Result<()> {
        self.0.borrow_mut().tell(connection)
    }

    /// A call begins.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.0.borrow().list.len())
    }

    /// The call succeeded: what it told is in the index.
    pub(crate) fn keep(&self) {
        let mut changes = self.0.borrow_mut();
        let n_told = std::mem::take(&mut changes.n_told);
        changes.list.drain(..n_told);
    }

    /// The call was rolled back: its changes never were, and what it told of earlier calls is to be
    /// told again.
    pub(crate) fn forget(&self, mark: &Mark) {
        let mut changes = self.0.borrow_mut();
        changes.list.truncate(mark.0);
        changes.n_told = 0;
    }
}

impl Changes {
    fn tell(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        for change in &self.list[self.n_told..] {
            match change {
                Change::Put {
                    rowid,
                    scope,
                    title,
                    tokens,
                } => connection
                    .prepare_cached(
                        "INSERT INTO passages_fts (rowid, scope, title, tokens)
                         VALUES (?1, ?2, ?3, ?4)",
                    )?
                    .execute(params![rowid, scope, title, tokens])?,
                Change::Remove { rowid } => connection
                    .prepare_cached("DELETE FROM passages_fts WHERE rowid = ?1")?
                    .execute([rowid])?,
            };
        }
        self.n_told = self.list.len();
        self.bytes = 0;
        Ok(())
    }
}
