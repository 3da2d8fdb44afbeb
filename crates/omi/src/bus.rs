//! The events of the memory contract, as a view of the log.
//!
//! This maps events of the log to those of the contract: their names and their payload. An event of
//! the log holds no text of a memory, so that it can be shown to whoever checks the log; the
//! contract's payload has the text, which is read from the memory. The text of a query is not kept
//! unless `events.queries` asks for it: the payload has its hash.

use crate::Omi;
use crate::memories::find_memory;
use kenning_core::{Error, Hash, Result};
use kenning_kernel::{Caller, Scope, timestamp};
use kenning_store::{EventRow, ReadTx};
use serde_json::{Map, Value, json};

/// The number of events that are read at once.
const PAGE: u64 = 500;

/// A kind of event, with both of its names.
#[derive(Debug, PartialEq, Eq)]
pub struct EventType {
    /// The name of the class, which is also the kind in the log.
    pub class: &'static str,
    /// The name with a dot.
    pub name: &'static str,
    /// The fields of the payload.
    fields: &'static [&'static str],
    /// More fields, under `metadata`.
    metadata: &'static [&'static str],
}

/// Every kind of event that the contract knows.
pub const EVENT_TYPES: &[EventType] = &[
    EventType {
        class: "MemoryStoredEvent",
        name: "memory.stored",
        fields: &["memory_id", "content", "memory_type", "confidence"],
        metadata: &[],
    },
    EventType {
        class: "MemoryRecalledEvent",
        name: "memory.recalled",
        fields: &["query", "result_count", "top_results"],
        metadata: &[],
    },
    EventType {
        class: "BeliefUpdatedEvent",
        name: "belief.updated",
        fields: &[
            "belief_id",
            "old_confidence",
            "new_confidence",
            "evidence_id",
        ],
        metadata: &["supports", "strength"],
    },
    EventType {
        class: "ContradictionDetectedEvent",
        name: "belief.contradiction_detected",
        fields: &["memory_id_1", "memory_id_2", "contradiction_pattern"],
        metadata: &[],
    },
    EventType {
        class: "SessionStartedEvent",
        name: "session.started",
        fields: &["session_id"],
        metadata: &["memory_count", "now_integrity"],
    },
    EventType {
        class: "SessionEndedEvent",
        name: "session.ended",
        fields: &["session_id", "duration_seconds"],
        metadata: &[],
    },
];

impl EventType {
    /// Finds a kind by either of its names.
    pub fn find(text: &str) -> Result<&'static Self> {
        let found = EVENT_TYPES
            .iter()
            .find(|event| event.class == text || event.name == text);
        found.ok_or_else(|| {
            let names: Vec<&str> = EVENT_TYPES.iter().map(|it| it.name).collect();
            Error::invalid(format!("`event_type`: `{text}` is unknown"))
                .hint(format!("use one of {}", names.join(", ")))
        })
    }
}

/// An event of the contract.
#[derive(Clone, Debug)]
pub struct MemoryEvent {
    /// Its place in the log.
    pub seq: u64,
    /// Its id in the log.
    pub id: Hash,
    /// What kind of event it is.
    pub event_type: &'static EventType,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The payload, with `event_type`, `timestamp` and `metadata`.
    pub json: Value,
}

/// Which events to return.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// Only of this kind.
    pub event_type: Option<&'static EventType>,
    /// Not before, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Not after.
    pub until_ms: Option<u64>,
    /// At most this many: the latest.
    pub limit: usize,
}

/// Events after a place in the log.
#[derive(Clone, Debug, Default)]
pub struct MemoryEvents {
    /// In the order of the log.
    pub events: Vec<MemoryEvent>,
    /// How far the log was read.
    pub seq: u64,
}

impl Omi {
    /// The latest events that the query asks for, oldest first.
    pub fn memory_events(&self, caller: &Caller, query: &EventQuery) -> Result<Vec<MemoryEvent>> {
        caller.principal.require(Scope::Read)?;
        let read = |tx: &dyn ReadTx| {
            let mut end = kenning_audit::roots(tx)?.seq;
            let mut found = Vec::new();
            while end > 0 && found.len() < query.limit {
                caller.check()?;
                let start = end.saturating_sub(PAGE);
                let n_rows = usize::try_from(end - start).unwrap_or(usize::MAX);
                for row in tx.events_after(start, n_rows)?.iter().rev() {
                    if found.len() == query.limit {
                        break;
                    }
                    if is_asked_for(row, query) {
                        found.extend(event(tx, row)?);
                    }
                }
                end = start;
            }
            found.reverse();
            Ok(found)
        };
        let space = &caller.principal.space;
        self.kernel
            .with_wait_limit(caller.waited, || self.kernel.log().read(space, read))
    }

    /// The events after a place in the log, of one kind or of all, among the next `limit` events of
    /// the log.
    pub fn memory_events_after(
        &self,
        caller: &Caller,
        seq: u64,
        limit: usize,
        event_type: Option<&'static EventType>,
    ) -> Result<MemoryEvents> {
        caller.principal.require(Scope::Read)?;
        let query = EventQuery {
            event_type,
            ..EventQuery::default()
        };
        let read = |tx: &dyn ReadTx| {
            let rows = tx.events_after(seq, limit)?;
            let mut found = MemoryEvents {
                events: Vec::new(),
                seq: rows.last().map_or(seq, |it| it.seq),
            };
            for row in rows.iter().filter(|row| is_asked_for(row, &query)) {
                found.events.extend(event(tx, row)?);
            }
            Ok(found)
        };
        let space = &caller.principal.space;
        self.kernel
            .with_wait_limit(caller.waited, || self.kernel.log().read(space, read))
    }
}

fn is_asked_for(row: &EventRow, query: &EventQuery) -> bool {
    let at_ms = row.hlc.ms();
    query.event_type.is_none_or(|it| it.class == row.kind)
        && query.since_ms.is_none_or(|since| at_ms >= since)
        && query.until_ms.is_none_or(|until| at_ms <= until)
}

/// The event as the contract knows it; `None` if it does not.
pub(crate) fn event(tx: &dyn ReadTx, row: &EventRow) -> Result<Option<MemoryEvent>> {
    let Some(event_type) = EVENT_TYPES.iter().find(|it| it.class == row.kind) else {
        return Ok(None);
    };
    let data = &kenning_audit::event::data(row);
    let at_ms = row.hlc.ms();
    let mut json = Map::new();
    json.insert("event_type".to_owned(), event_type.name.into());
    for field in event_type.fields {
        let value = match *field {
            "content" => content(tx, data)?,
            "query" => query(data),
            field => data[field].clone(),
        };
        json.insert((*field).to_owned(), value);
    }
    json.insert("timestamp".to_owned(), timestamp(at_ms).into());
    let metadata = event_type.metadata.iter();
    let metadata: Map<String, Value> = metadata
        .map(|field| ((*field).to_owned(), data[*field].clone()))
        .collect();
    json.insert("metadata".to_owned(), json!(metadata));
    Ok(Some(MemoryEvent {
        seq: row.seq,
        id: row.id,
        event_type,
        at_ms,
        json: Value::Object(json),
    }))
}

/// The text of a query if it was kept, otherwise its hash.
fn query(data: &Value) -> Value {
    match (&data["query"], data["query_hash"].as_str()) {
        (Value::Null, Some(hash)) => format!("hash:{hash}").into(),
        (text, _) => text.clone(),
    }
}

fn content(tx: &dyn ReadTx, data: &Value) -> Result<Value> {
    let Some(id) = data["memory_id"].as_str() else {
        return Ok(Value::Null);
    };
    let project = data["project"].as_str().unwrap_or_default().to_owned();
    Ok(find_memory(tx, &[project], id)?.map_or(Value::Null, |it| it.body.into()))
}
