//! Which authors are trusted.
//!
//! Trust begins with the keys that the verifier names. Without any it begins with the first author of
//! the log and, if it has written here, with the key of the node that verifies: its own events have
//! everything before them as ancestors, so the beginning cannot have been replaced. From there trust
//! spreads by the events in which a trusted author adds another.

use super::{Report, Verify};
use crate::event::{self, Change, Event};
use crate::identity::Origin;
use kenning_core::{Did, Result};
use kenning_store::{EventRow, ReadTx, Row, Table};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// An author of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The author's key.
    pub did: String,
    /// Events that it signed.
    pub n_events: u64,
    /// The last of them; 0 if there is none.
    pub last_event: u64,
    /// Whether it is trusted: see [`super::Verify`].
    pub is_trusted: bool,
    /// The event of a trusted author that revoked it, if one did.
    pub revoked_at: Option<u64>,
}

impl Author {
    /// Whether it signed an event after it was revoked.
    pub fn signed_after_revocation(&self) -> bool {
        self.revoked_at.is_some_and(|at| self.last_event > at)
    }
}

/// The authors of a log: who signed events, and who was added or revoked. Signatures
/// are not checked: [`super::verify`] does that.
pub fn survey_authors(tx: &dyn ReadTx, asked: &Verify<'_>) -> Result<Vec<Author>> {
    let (mut authors, mut report) = (Authors::default(), Report::default());
    tx.scan(Table::Events, &mut |row| {
        let Row::Event(row) = row else { return Ok(()) };
        if let Some(event) = event::parse(&row) {
            let origin = Origin::from_bytes(&row.sealed.origin);
            if report.origin.is_some() && origin.is_some() && report.origin != origin {
                authors.note_foreign(&row);
            } else {
                report.origin = report.origin.take().or(origin);
                authors.note(&row, &event);
            }
        }
        Ok(())
    })?;
    authors.judge(asked, &mut report);
    Ok(report.authors)
}

#[derive(Default)]
struct Signed {
    n_events: u64,
    first: u64,
    last: u64,
}

/// An author's additions and revocations.
struct Statement {
    seq: u64,
    by: String,
    added: Vec<String>,
    revoked: Vec<String>,
}

/// What the events say of authors.
#[derive(Default)]
pub(super) struct Authors {
    signed: BTreeMap<String, Signed>,
    statements: Vec<Statement>,
    /// The author of the first event of version 2.
    first: Option<String>,
    /// Checkpoints of version 2: height and author.
    checkpoints: Vec<(u64, String)>,
}

impl Authors {
    /// Notes who signed this event, and whom it adds and revokes.
    pub(super) fn note(&mut self, row: &EventRow, event: &Event) {
        if row.version > 1 && self.first.is_none() {
            // The node that upgrades a log of version 1 accepts it as it is.
            let before = self.signed.keys().cloned();
            let added = before.chain([row.author.clone()]).collect();
            self.first = Some(row.author.clone());
            self.state(row, added, Vec::new());
        }
        self.note_foreign(row);
        let (mut added, mut revoked) = (Vec::new(), Vec::new());
        for change in &event.changes {
            match change {
                Change::AddAuthor { author } => added.push(author.to_string()),
                Change::RevokeAuthor { author } => revoked.push(author.to_string()),
                _ => {}
            }
        }
        if !added.is_empty() || !revoked.is_empty() {
            self.state(row, added, revoked);
        }
    }

    /// Notes who signed an event of another log. Whom it adds and revokes there says nothing here.
    pub(super) fn note_foreign(&mut self, row: &EventRow) {
        let signed = match self.signed.get_mut(&row.author) {
            Some(signed) => signed,
            None => self.signed.entry(row.author.clone()).or_default(),
        };
        if signed.n_events == 0 {
            signed.first = row.seq;
        }
        signed.n_events += 1;
        signed.last = row.seq;
    }

    fn state(&mut self, row: &EventRow, added: Vec<String>, revoked: Vec<String>) {
        self.statements.push(Statement {
            seq: row.seq,
            by: row.author.clone(),
            added,
            revoked,
        });
    }

    pub(super) fn note_checkpoint(&mut self, height: u64, author: &str) {
        self.checkpoints.push((height, author.to_owned()));
    }

    /// Determines which authors are trusted, and reports all others.
    pub(super) fn judge(self, asked: &Verify<'_>, report: &mut Report) {
        let Some(first) = self.first.clone() else {
            // All of it is of version 1, which names no authors.
            report.authors = self.list(|_| true, &HashMap::new());
            return;
        };
        let me = asked.me.map(Did::to_string);
        let has_written = me.as_ref().is_some_and(|it| self.signed.contains_key(it));
        let named: Vec<String> = asked.authors.iter().map(Did::to_string).collect();
        // A checkpoint of another log says nothing about the authors of this one.
        let log = report.origin.as_ref().map(Origin::to_bytes);
        let since = asked
            .since
            .filter(|event| event.version == 1 || log.as_ref() == Some(&event.origin));
        let named: Vec<String> = named
            .into_iter()
            .chain(since.map(|it| it.author.clone()))
            .collect();
        // A verifier that never wrote here and names no keys cannot decide who is trusted.
        let is_strict = has_written || !named.is_empty();
        let roots = if named.is_empty() {
            let me = me.filter(|_| has_written);
            [first].into_iter().chain(me).collect()
        } else {
            named
        };
        let trusted = self.find_trusted(roots);
        let revoked = self.find_revoked(&trusted);
        for (did, signed) in &self.signed {
            if !trusted.contains(did) {
                let joined = self.statements.iter().find(|it| it.added.contains(did));
                match joined {
                    // The author that revokes a key has accepted what it signed until then.
                    Some(_) if revoked.contains_key(did) => {}
                    None => report.fault(format!(
                        "{} events are signed by {did}, who is not an author of this log; the first is event {}",
                        signed.n_events, signed.first
                    )),
                    Some(joined) => {
                        let what = format!(
                            "{did} was made an author by event {} and no trusted author has confirmed it; if it is yours, `kenning audit authors add {did}`, else `kenning audit authors revoke {did}`",
                            joined.seq
                        );
                        if is_strict {
                            report.fault(what);
                        } else {
                            report.notices.push(what);
                        }
                    }
                }
            }
            if let Some(at) = revoked.get(did).filter(|&&at| signed.last > at) {
                report.fault(format!(
                    "event {} is signed by {did}, who was revoked by event {at}: somebody who has that key wrote to the store without this program; see what was written with `kenning audit export --after {at}`, and restore a backup from before if you do not want it",
                    signed.last
                ));
            }
        }
        for (height, author) in &self.checkpoints {
            if !self.signed.contains_key(author) && !trusted.contains(author) {
                report.fault(format!(
                    "checkpoint {height} is signed by {author}, who is not an author of this log"
                ));
            }
        }
        report.authors = self.list(|did| trusted.contains(did), &revoked);
    }

    fn find_trusted(&self, roots: Vec<String>) -> HashSet<String> {
        let mut trusted: HashSet<String> = roots.into_iter().collect();
        loop {
            let before = trusted.len();
            for statement in &self.statements {
                if trusted.contains(&statement.by) {
                    trusted.extend(statement.added.iter().cloned());
                }
            }
            if trusted.len() == before {
                return trusted;
            }
        }
    }

    /// Authors that a trusted, not yet revoked author has revoked, and by which event.
    fn find_revoked(&self, trusted: &HashSet<String>) -> HashMap<String, u64> {
        let mut revoked = HashMap::new();
        for statement in &self.statements {
            if trusted.contains(&statement.by) && !revoked.contains_key(&statement.by) {
                for did in &statement.revoked {
                    revoked.entry(did.clone()).or_insert(statement.seq);
                }
            }
        }
        revoked
    }

    fn list(
        &self,
        is_trusted: impl Fn(&str) -> bool,
        revoked: &HashMap<String, u64>,
    ) -> Vec<Author> {
        // An author may have been added without having written yet.
        let added = self.statements.iter().flat_map(|it| &it.added);
        let dids: BTreeSet<&String> = self.signed.keys().chain(added).collect();
        dids.into_iter()
            .map(|did| {
                let signed = self.signed.get(did);
                Author {
                    did: did.clone(),
                    n_events: signed.map_or(0, |it| it.n_events),
                    last_event: signed.map_or(0, |it| it.last),
                    is_trusted: is_trusted(did),
                    revoked_at: revoked.get(did).copied(),
                }
            })
            .collect()
    }
}
