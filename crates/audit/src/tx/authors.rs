//! Whose keys may sign events of a log.

use super::{JOINED, Tx, UPGRADED};
use crate::event::{self, Change, SignedRow};
use crate::identity::is_signed_bucket;
use kenning_core::{Did, Error, Result};
use kenning_store::{Row, Table, hash_of_pair};
use serde_json::Value;

impl Tx<'_> {
    /// Signs the existing rows that version 1 did not sign.
    pub(super) fn take_over_version_1(&mut self) -> Result<()> {
        let mut changes = Vec::new();
        self.raw.scan(Table::Kv, &mut |row| {
            if let Row::Kv(row) = row
                && is_signed_bucket(&row.bucket)
            {
                let hash = hash_of_pair(&row.bucket, &row.key, &row.value);
                let row = SignedRow::Pair(row.bucket, row.key);
                changes.push(Change::PutRow { row, hash });
            }
            Ok(())
        })?;
        self.changes.append(&mut changes);
        self.record(
            UPGRADED,
            serde_json::json!({ "from": 1, "to": event::VERSION }),
        )
        .map(drop)
    }

    /// Adds an unknown key as author. A revoked key is refused.
    pub(super) fn join_unless_author(&mut self) -> Result<()> {
        let me = self.signer.did();
        if self.identity.revoked.contains(me.as_str()) {
            return Err(Error::denied(format!(
                "the key of this node ({me}) was revoked for the space `{}`",
                self.space
            ))
            .hint("stop this server, move `node.key` out of its data directory, and start it again: it then has a new key"));
        }
        if self.identity.authors.contains(me.as_str()) {
            return Ok(());
        }
        let found: Vec<Did> = self.authors();
        self.add_author(me);
        found.iter().for_each(|it| self.add_author(it));
        self.record(JOINED, Value::Null).map(drop)
    }

    /// Whose keys may sign events of this log.
    pub fn authors(&self) -> Vec<Did> {
        let authors = self.identity.authors.iter();
        authors.filter_map(|it| it.parse().ok()).collect()
    }

    /// Whose keys may no longer sign events of this log.
    pub fn revoked_authors(&self) -> Vec<Did> {
        let revoked = self.identity.revoked.iter();
        revoked.filter_map(|it| it.parse().ok()).collect()
    }

    /// Lets a key sign events of this log, or confirms one that added itself.
    pub fn add_author(&mut self, author: &Did) {
        self.identity.add(author);
        let author = author.clone();
        self.changes.push(Change::AddAuthor { author });
    }

    /// Revokes the right of a key to sign further events of this log, permanently.
    pub fn revoke_author(&mut self, author: &Did) {
        self.identity.revoke(author);
        let author = author.clone();
        self.changes.push(Change::RevokeAuthor { author });
    }
}
