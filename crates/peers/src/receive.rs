//! Takes in a page of another node's log.

use crate::{CURSORS, Cursor, Evidence, Head, Page, Peer};
use kenning_audit::foreign::{Batch, Entry, Foreign, Merged};
use kenning_audit::merkle::leaf_hash;
use kenning_audit::note::{self, Note};
use kenning_audit::{Log, Origin, Passages, Tx, is_checkpoint_signed};
use kenning_core::{Did, Error, Hash, Result, Space};
use kenning_store::{CheckpointRow, Node, Passage, ReadTx};
use std::collections::HashMap;

/// Why a page was not taken.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// It does not begin where we are: it was sent twice, or out of order.
    Stale,
    /// Events in it are offered that we do not have.
    Wants(Vec<Hash>),
    /// Its sender signed two histories.
    Forked(Box<Evidence>),
}

/// How a page came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Whether events that are only offered can be asked for.
    pub may_ask: bool,
    /// For an answer: how many entries the log was known to have when it was asked for. Nothing for a page that was
    /// pushed, which may have been under way for long.
    pub asked_at: Option<u64>,
}

/// What became of a page.
#[derive(Clone, Debug)]
pub enum Received {
    /// It was applied, and the cursor is after it. With our countersignature of a checkpoint that the
    /// entries lead to: the height, and the line for the note.
    Merged(Box<Merged>, Option<(u64, String)>),
    /// It was not.
    Refused(Refusal),
}

/// How far we have read a peer's log.
pub(crate) fn cursor(tx: &dyn ReadTx, peer: &Peer) -> Result<Cursor> {
    let bytes = tx.get(CURSORS, peer.did.as_str())?;
    // One that cannot be read begins anew: events that are here already are skipped.
    Ok(bytes
        .and_then(|it| Cursor::from_bytes(&it))
        .unwrap_or_default())
}

/// Why a log that has this head cannot be a continuation of the log that had the known one, if so.
pub(crate) fn compare(known: &Head, shown: &Head, asked_at: Option<u64>) -> Option<Refusal> {
    let what = if known.origin.log != shown.origin.log {
        "it began another log in the same space with the same key"
    } else if shown.size < known.size {
        // A page that was under way while the peer pushed more, and a log that lost its end, look alike. But an answer
        // was made after it was asked for. A page that was pushed may be older than anything: a log that is shorter
        // than we know has nothing to push.
        if asked_at.is_none_or(|size| shown.size >= size) {
            return Some(Refusal::Stale);
        }
        "its log is shorter than it was"
    } else if shown.size == known.size && shown.root != known.root {
        "two logs of one length have different roots"
    } else {
        return None;
    };
    Some(Refusal::Forked(Box::new(Evidence {
        known: known.clone(),
        shown: shown.clone(),
        what: what.to_owned(),
    })))
}

/// Where a cursor is after a page, or why the page cannot follow it.
fn advance(
    cursor: &Cursor,
    page: &Page,
    asked_at: Option<u64>,
) -> Result<std::result::Result<Cursor, Refusal>> {
    let mut next = cursor.clone();
    let log = page.head.origin.log;
    let evidence = |what: &str| match &cursor.head {
        Some(known) => Ok(Err(Refusal::Forked(Box::new(Evidence {
            known: known.clone(),
            shown: page.head.clone(),
            what: what.to_owned(),
        })))),
        None => Err(Error::invalid(format!(
            "the peer's log is not what it signed: {what}"
        ))),
    };
    if let Some(known) = &cursor.head {
        if let Some(refusal) = compare(known, &page.head, asked_at) {
            return Ok(Err(refusal));
        }
    } else if cursor.log.is_some_and(|it| it != log) {
        next = Cursor::default();
    }
    if page.from != next.frontier.size {
        return Ok(Err(Refusal::Stale));
    }
    next.log = Some(log);
    next.check_checkpoint(page)?;
    for entry in &page.entries {
        next.frontier.push(leaf_hash(&entry.id.0), |_, _, _| ());
        next.check_checkpoint(page)?;
    }
    if next.frontier.size > page.head.size {
        return Err(Error::invalid(
            "the page has more entries than the log that it is of",
        ));
    }
    if next.frontier.size == page.head.size {
        if next.frontier.root() != page.head.root {
            return evidence("the entries that it sent do not lead to the root that it signed");
        }
        next.head = Some(page.head.clone());
        next.checked = next.frontier.clone();
    }
    Ok(Ok(next))
}

impl Cursor {
    /// If the entries so far are those of the page's checkpoint, their root must be the one that it signs.
    fn check_checkpoint(&mut self, page: &Page) -> Result<()> {
        let Some(row) = &page.checkpoint else {
            return Ok(());
        };
        if row.seq != self.frontier.size {
            return Ok(());
        }
        let author = row.author.parse::<Did>();
        let is_theirs = author.is_ok_and(|it| it == page.head.author && is_checkpoint_signed(row));
        // A log on a shared database has checkpoints of several servers; those of others are not ours to
        // judge.
        if !is_theirs || row.origin != page.head.origin.to_bytes() {
            return Ok(());
        }
        if row.event_root != self.frontier.root() {
            return Err(Error::invalid(format!(
                "checkpoint {} of the peer is not of the entries that it sent",
                row.height
            )));
        }
        self.checkpoint = self.checkpoint.max(Some(row.height));
        Ok(())
    }
}

/// Countersigns a checkpoint of another node's log, whose entries were all seen.
fn countersign(log: &Log, row: &CheckpointRow) -> Result<Option<(u64, String)>> {
    let Some(origin) = Origin::from_bytes(&row.origin) else {
        return Ok(None);
    };
    let note = Note::new(&origin, row.seq, row.event_root);
    let at_s = log.clock().now_ms() / 1_000;
    let line = note::cosign(
        log.signer(),
        log.signer().did().as_str(),
        &note.text(),
        at_s,
    )?;
    Ok(Some((row.height, line)))
}

/// What a node does around merging a page.
pub trait Around: Send + 'static {
    /// Before a batch is applied. An event that is not to be applied is reduced to its id.
    fn before(&mut self, tx: &mut Tx<'_>, batch: &mut Batch) -> Result<()>;
    /// After them, in the same transaction.
    fn after(&mut self, tx: &mut Tx<'_>, merged: &Merged) -> Result<()>;
}

impl Around for () {
    fn before(&mut self, _: &mut Tx<'_>, _: &mut Batch) -> Result<()> {
        Ok(())
    }
    fn after(&mut self, _: &mut Tx<'_>, _: &Merged) -> Result<()> {
        Ok(())
    }
}

/// Takes in a page: checks its signature and every event, and that it goes on where we are and leads
/// to the root that was signed; then applies it in one transaction with the cursor. If more can be
/// asked for, it is not applied while events are offered that are not here; else those are passed over.
///
/// # Errors
/// Corrupt or invalid if it is not what its sender signed, and those of the store.
pub fn receive(
    log: &Log,
    space: &Space,
    peer: &Peer,
    page: Page,
    passages_of: fn(&Node) -> Vec<Passage>,
    arrival: Arrival,
    mut around: impl Around,
) -> Result<Received> {
    let head = &page.head;
    if head.author != peer.did || !head.is_signed() || head.origin.space != space.as_str() {
        return Err(Error::denied(format!(
            "the head of the page is not signed by {} for the space `{space}`",
            peer.did
        )));
    }
    let now = log.read(space, |tx| cursor(tx, peer))?;
    let asked_at = arrival.asked_at;
    if let Err(refusal) = advance(&now, &page, asked_at)? {
        return Ok(Received::Refused(refusal));
    }
    let wants = log.read(space, |tx| {
        let mut wants = Vec::new();
        for it in page
            .entries
            .iter()
            .filter(|it| it.is_offered && it.event.is_none())
        {
            if tx.event_by_id(&it.id)?.is_none() {
                wants.push(it.id);
            }
        }
        Ok(wants)
    })?;
    if arrival.may_ask && !wants.is_empty() {
        return Ok(Received::Refused(Refusal::Wants(wants)));
    }
    let mut entries = Vec::with_capacity(page.entries.len());
    let mut passages = HashMap::new();
    let (head, from) = (page.head, page.from);
    let mut ids = Vec::with_capacity(page.entries.len());
    for entry in page.entries {
        ids.push(entry.id);
        entries.push(match entry.event {
            Some((row, rows)) => {
                // It is the message that is wrong, and nothing that is stored here.
                let foreign = Foreign::check(row, rows).map_err(|it| Error::invalid(it.message))?;
                for node in foreign.nodes() {
                    let list = passages_of(node);
                    if !list.is_empty() {
                        passages.insert(node.hash, Passages::from(list));
                    }
                }
                Entry::Event(Box::new(foreign))
            }
            None => Entry::Id(entry.id),
        });
    }
    let (peer, bare) = (
        peer.clone(),
        Page {
            head,
            from,
            entries: bare(&ids),
            checkpoint: page.checkpoint,
            too_large: Vec::new(),
        },
    );
    let countersigned = match &bare.checkpoint {
        Some(row) if now.checkpoint < Some(row.height) => countersign(log, row)?,
        _ => None,
    };
    log.write_long(space, move |tx| {
        // Another process may have taken the same page meanwhile.
        let now = cursor(&**tx, &peer)?;
        let mut next = match advance(&now, &bare, asked_at)? {
            Ok(next) => next,
            Err(refusal) => return Ok(Received::Refused(refusal)),
        };
        let mut batch = Batch {
            entries,
            passages,
            seen: now.seen.clone(),
            accepts_authors: peer.policy.relays,
        };
        around.before(tx, &mut batch)?;
        let merged = tx.merge(batch)?;
        around.after(tx, &merged)?;
        next.seen.clone_from(&merged.seen);
        tx.set(CURSORS, peer.did.as_str(), &next.to_bytes())?;
        let is_checked = next.checkpoint > now.checkpoint;
        Ok(Received::Merged(
            Box::new(merged),
            countersigned.filter(|_| is_checked),
        ))
    })
}

fn bare(ids: &[Hash]) -> Vec<crate::PageEntry> {
    let entry = |id: &Hash| crate::PageEntry {
        id: *id,
        event: None,
        is_offered: false,
    };
    ids.iter().map(entry).collect()
}
