//! The log, asked by kind, time, author, node and text.

use crate::{Caller, Kernel, Scope, Verified, timestamp};
use kenning_audit::event;
use kenning_audit::foreign::SYNC_APPLIED;
use kenning_core::{Did, Error, Hash, Hlc, NodeId, Result};
use kenning_store::{
    CheckpointRow, EdgeFilter, EventEffect, EventFilter, EventPage, EventRow, ReadTx, When,
};
use kenning_text::hex;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What an event does is called by these words of the graph's contract, whatever its own kind is. Whoever asks
/// for the word gets every event that does it, under that name.
const EFFECTS: &[(&str, EventEffect)] = &[
    ("NodeCreated", EventEffect::CreatesNode),
    ("NodeUpdated", EventEffect::UpdatesNode),
    ("NodeDeleted", EventEffect::RemovesNode),
    ("EdgeCreated", EventEffect::PutsEdge),
    ("EdgeDeleted", EventEffect::EndsEdge),
];

/// Kinds that change no node and that the contract calls by other words.
const MEANINGS: &[(&str, &str)] = &[
    ("QueryExecuted", "MemoryRecalledEvent"),
    ("ConflictDetected", "ContradictionDetectedEvent"),
];

/// The kinds that the graph's contract documents.
pub const CONTRACT_KINDS: &[&str] = &[
    "NodeCreated",
    "NodeUpdated",
    "NodeDeleted",
    "EdgeCreated",
    "EdgeDeleted",
    "QueryExecuted",
    "WorkflowStarted",
    "WorkflowCompleted",
    "WorkflowFailed",
    "WorkflowStepCompleted",
    "GapDetected",
    "TaskSpecGenerated",
    "ConflictDetected",
    "ConflictResolved",
    "SyncStarted",
    "SyncCompleted",
    "CheckpointCreated",
];

/// What is asked of the log. What is left out admits all.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    /// Of any of these types: kinds of events, or words of the graph's contract.
    pub types: Vec<String>,
    /// Not before, in milliseconds since 1970.
    pub from_ms: Option<u64>,
    /// Not after: all of that millisecond counts.
    pub to_ms: Option<u64>,
    /// Signed by this key or written for this agent.
    pub author: Option<String>,
    /// About this node.
    pub node: Option<NodeId>,
    /// With this text in what they say.
    pub text: Option<String>,
    /// Leave out so many.
    pub skip: u64,
    /// Give at most so many.
    pub limit: usize,
    /// Begin with the newest.
    pub newest_first: bool,
}

/// Events that were found.
#[derive(Clone, Debug)]
pub struct LogPage {
    /// In the order that was asked for.
    pub events: Vec<LoggedEvent>,
    /// How many there are in all.
    pub total: u64,
    /// Types that were asked for and that no event of this log has. Documented ones are looked for only if
    /// nothing was found.
    pub absent: Vec<String>,
}

/// An event.
#[derive(Clone, Debug)]
pub struct LoggedEvent {
    /// Its place in this log.
    pub seq: u64,
    /// Its id.
    pub id: Hash,
    /// The kind that is signed.
    pub kind: String,
    /// The type that it was found by, or its kind.
    pub type_name: String,
    /// Who signed it.
    pub author: String,
    /// For whom it was written, if that was said.
    pub agent: Option<String>,
    /// When it was written.
    pub hlc: Hlc,
    /// What its author had seen.
    pub parents: Vec<Hash>,
    /// What it says, with its type and the rows that it changed.
    pub payload: Value,
    /// Of the author, over the id.
    pub signature: String,
}

/// Figures of a log.
#[derive(Clone, Debug)]
pub struct LogStats {
    /// The number of events.
    pub n_events: u64,
    /// Events of each kind, in the order of their names.
    pub kinds: Vec<(String, u64)>,
    /// When the first and the last of them were written, in milliseconds since 1970.
    pub span_ms: Option<(u64, u64)>,
    /// Whose keys may sign.
    pub n_authors: usize,
    /// Whose keys were revoked.
    pub n_revoked: usize,
    /// Signed checkpoints.
    pub n_checkpoints: u64,
    /// Events that the newest checkpoint does not cover.
    pub n_since_checkpoint: u64,
    /// The newest signed checkpoint.
    pub last_checkpoint: Option<CheckpointRow>,
    /// The last check of the whole log on this machine.
    pub last_verified: Option<Verified>,
    /// The method of the identifiers that are shown.
    pub did_method: String,
}

impl Kernel {
    /// Events of the caller's space, by what they are.
    pub fn query_log(&self, caller: &Caller, query: &LogQuery) -> Result<LogPage> {
        caller.principal.require(Scope::Read)?;
        let method = self.did_method()?;
        let author = query.author.as_deref().map(signing_name).transpose()?;
        let work = |tx: &dyn ReadTx| {
            let mut filter = EventFilter {
                from: query.from_ms.map(Hlc::from_ms),
                to: query.to_ms.map(Hlc::end_of_ms),
                author: author.clone(),
                at: None,
                text: query.text.as_deref().map(as_stored),
                ..of_types(&query.types)
            };
            if let Some(node) = query.node {
                filter.at = Some(moments_of(tx, node)?);
            }
            let total = match filter.is_empty() {
                true => tx.head()?.map_or(0, |it| it.seq),
                false => tx.count_events(&filter)?,
            };
            let page = EventPage {
                skip: query.skip,
                limit: query.limit,
                newest_first: query.newest_first,
            };
            let rows = match total > query.skip {
                true => tx.find_events(&filter, page)?,
                false => Vec::new(),
            };
            let mut absent = Vec::new();
            for name in &query.types {
                let is_documented = CONTRACT_KINDS.contains(&name.as_str());
                let one = of_types(std::slice::from_ref(name));
                let page = EventPage {
                    limit: 1,
                    ..EventPage::default()
                };
                if (total == 0 || !is_documented) && tx.find_events(&one, page)?.is_empty() {
                    absent.push(name.clone());
                }
            }
            let events = rows.iter().map(|it| logged(it, &query.types, &method));
            Ok(LogPage {
                events: events.collect(),
                total,
                absent,
            })
        };
        let space = &caller.principal.space;
        self.with_wait_limit(caller.waited, || self.log.read(space, work))
    }

    /// The figures of the caller's log that cost nothing to know, however long it is: no kinds, no times.
    pub fn log_summary(&self, caller: &Caller) -> Result<LogStats> {
        caller.principal.require(Scope::Read)?;
        let did_method = self.did_method()?;
        let work = |tx: &dyn ReadTx| summary(tx, &did_method);
        let space = &caller.principal.space;
        let stats = self.with_wait_limit(caller.waited, || self.log.read(space, work))?;
        Ok(LogStats {
            last_verified: self.last_verified(space),
            ..stats
        })
    }

    /// The kinds of events that the log of the caller's space has, and how many of each.
    pub fn log_stats(&self, caller: &Caller) -> Result<LogStats> {
        caller.principal.require(Scope::Read)?;
        let did_method = self.did_method()?;
        let work = |tx: &dyn ReadTx| {
            let end = |newest_first| {
                let page = EventPage {
                    skip: 0,
                    limit: 1,
                    newest_first,
                };
                let found = tx.find_events(&EventFilter::default(), page)?.pop();
                Ok(found.map(|it| it.hlc.ms()))
            };
            Ok(LogStats {
                kinds: tx.event_kinds()?,
                span_ms: end(false)?.zip(end(true)?),
                ..summary(tx, &did_method)?
            })
        };
        let space = &caller.principal.space;
        let stats = self.with_wait_limit(caller.waited, || self.log.read(space, work))?;
        Ok(LogStats {
            last_verified: self.last_verified(space),
            ..stats
        })
    }

    /// The method of the identifiers that are shown (`KENNING_DID_METHOD`): `key`, or another one such as
    /// `exo`. Signed are identifiers of the method `key`, whatever is shown: the key is the same.
    pub fn did_method(&self) -> Result<String> {
        let method = (self.environment)("KENNING_DID_METHOD").unwrap_or_default();
        match method.trim() {
            "" => Ok("key".to_owned()),
            method if is_method(method) => Ok(method.to_owned()),
            method => Err(Error::invalid(format!(
                "`KENNING_DID_METHOD`: `{method}` is not the method of an identifier"
            ))
            .hint("use `key` or `exo`: at most 20 small letters and digits")),
        }
    }

    /// An identifier by the method that is shown.
    pub fn show_did(&self, did: &Did) -> Result<Did> {
        Ok(did.with_method(&self.did_method()?))
    }
}

fn summary(tx: &dyn ReadTx, did_method: &str) -> Result<LogStats> {
    let n_events = tx.head()?.map_or(0, |it| it.seq);
    let (authors, revoked) = kenning_audit::authors(tx)?;
    let checkpoint = tx.checkpoint_at(n_events)?;
    Ok(LogStats {
        n_events,
        kinds: Vec::new(),
        span_ms: None,
        n_authors: authors.len(),
        n_revoked: revoked.len(),
        n_checkpoints: checkpoint.as_ref().map_or(0, |it| it.height + 1),
        n_since_checkpoint: n_events - checkpoint.as_ref().map_or(0, |it| it.seq),
        last_checkpoint: checkpoint,
        last_verified: None,
        did_method: did_method.to_owned(),
    })
}

fn is_method(method: &str) -> bool {
    let is_good = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    method.len() <= 20 && method.bytes().all(is_good)
}

/// An identifier as it is shown, under another method.
pub(crate) fn shown_did(did: &str, method: &str) -> String {
    match did.parse::<Did>() {
        Ok(did) => did.with_method(method).to_string(),
        Err(_) => did.to_owned(),
    }
}

/// The identifier that is signed, whatever method the caller named.
fn signing_name(author: &str) -> Result<String> {
    let did = author.parse::<Did>().map_err(|_| {
        Error::invalid(format!(
            "`author`: `{author}` is not the identifier of a key"
        ))
        .hint("give a DID as `kenning audit authors list` and the events show it")
    })?;
    Ok(did.as_signed().to_string())
}

/// The events that these types mean.
pub(crate) fn of_types(types: &[String]) -> EventFilter {
    let mut filter = EventFilter::default();
    for name in types {
        let also = MEANINGS.iter().find(|it| it.0 == name);
        filter.kinds.extend(also.map(|it| it.1.to_owned()));
        filter.kinds.push(name.clone());
        let effect = EFFECTS.iter().find(|it| it.0 == name);
        filter.effects.extend(effect.map(|it| it.1));
    }
    if !filter.effects.is_empty() {
        // The events that it applies are in the log themselves.
        filter.effects_except = vec![SYNC_APPLIED.to_owned()];
    }
    filter
}

/// The text as JSON writes it between quotes.
fn as_stored(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// When a node was put, changed or removed, and when its current edges were: the times of the events that
/// did it.
fn moments_of(tx: &dyn ReadTx, id: NodeId) -> Result<Vec<Hlc>> {
    let mut moments = BTreeSet::new();
    moments.extend(tx.node(id, When::Now)?.map(|it| it.updated));
    for (revision, ended) in tx.history(id)? {
        moments.extend([revision.updated, ended]);
    }
    let (src, dst) = (Some(id), Some(id));
    for filter in [
        EdgeFilter {
            src,
            ..EdgeFilter::default()
        },
        EdgeFilter {
            dst,
            ..EdgeFilter::default()
        },
    ] {
        let edges = tx.edges(&filter, When::Now, usize::MAX)?;
        moments.extend(edges.iter().map(|it| it.from));
    }
    Ok(moments.into_iter().collect())
}

fn logged(row: &EventRow, types: &[String], method: &str) -> LoggedEvent {
    let is_of = |name: &&String| {
        let name = name.as_str();
        let effect = EFFECTS.iter().find(|it| it.0 == name);
        MEANINGS.contains(&(name, row.kind.as_str()))
            || effect.is_some_and(|it| it.1.is_in(&row.payload))
    };
    let by_name = types.iter().find(|it| **it == row.kind);
    let found_by = by_name.or_else(|| types.iter().find(is_of));
    let type_name = found_by.unwrap_or(&row.kind).clone();
    let agent = Some(&row.sealed.agent).filter(|it| !it.is_empty());
    LoggedEvent {
        seq: row.seq,
        id: row.id,
        kind: row.kind.clone(),
        payload: payload(row, &type_name),
        type_name,
        author: shown_did(&row.author, method),
        agent: agent.map(|it| shown_did(it, method)),
        hlc: row.hlc,
        parents: row.parents.clone(),
        signature: hex::encode(&row.signature),
    }
}

/// What an event says, in the contract's form: its type, then its fields.
fn payload(row: &EventRow, type_name: &str) -> Value {
    let mut payload = Map::new();
    payload.insert("type".to_owned(), type_name.into());
    match event::data(row) {
        Value::Object(fields) => payload.extend(fields.into_iter().filter(|it| it.0 != "type")),
        Value::Null => {}
        other => {
            payload.insert("data".to_owned(), other);
        }
    }
    if event::is_erased(row) {
        payload.insert("erased".to_owned(), true.into());
    }
    let changes = event::changes_json(row);
    if changes.as_array().is_some_and(|it| !it.is_empty()) {
        payload.insert("changes".to_owned(), changes);
    }
    Value::Object(payload)
}

impl LogStats {
    /// As JSON.
    pub fn to_json(&self) -> Value {
        let kinds: Map<String, Value> = self
            .kinds
            .iter()
            .map(|(kind, n)| (kind.clone(), (*n).into()))
            .collect();
        json!({
            "events": self.n_events, "kinds": kinds,
            "first": self.span_ms.map(|it| timestamp(it.0)),
            "last": self.span_ms.map(|it| timestamp(it.1)),
            "authors": self.n_authors, "revokedAuthors": self.n_revoked,
            "checkpoints": self.n_checkpoints, "eventsSinceCheckpoint": self.n_since_checkpoint,
            "lastCheckpoint": self.last_checkpoint.as_ref().map(|last_checkpoint| json!({
                "height": last_checkpoint.height, "size": last_checkpoint.seq, "timestamp": timestamp(last_checkpoint.hlc.ms()),
            })),
            "lastVerified": self.last_verified.map(Verified::to_json),
        })
    }
}
