//! The log as people and programs see it.

use crate::{Caller, Engine, Scope, timestamp};
use kenning_audit::{Consistency, Inclusion, Roots};
use kenning_core::{Error, Hash, Result};
use kenning_store::{CheckpointRow, EventRow, ReadTx};
use serde_json::{Value, json};

/// An event, ready to be shown.
#[derive(Clone, Debug)]
pub struct EventView {
    /// Its place in this log.
    pub seq: u64,
    /// Everything about it.
    pub json: Value,
}

/// What was proved.
#[derive(Clone, Debug)]
pub enum Proof {
    /// That an event is in the log.
    Inclusion(Inclusion),
    /// That an earlier log is a prefix.
    Consistency(Consistency),
}

impl Proof {
    /// As JSON.
    pub fn to_json(&self) -> Value {
        let hashes = |path: &[Hash]| path.iter().map(ToString::to_string).collect::<Vec<_>>();
        match self {
            Self::Inclusion(it) => json!({
                "proof": "inclusion", "event": it.event.to_string(), "leafIndex": it.index,
                "treeSize": it.size, "eventRoot": it.root.to_string(), "path": hashes(&it.path),
            }),
            Self::Consistency(it) => json!({
                "proof": "consistency", "oldSize": it.old_size, "oldRoot": it.old_root.to_string(),
                "newSize": it.new_size, "newRoot": it.new_root.to_string(),
                "path": hashes(&it.path),
            }),
        }
    }
}

impl Engine {
    /// Events of the caller's space after a place in the log.
    pub fn events_after(&self, caller: &Caller, seq: u64, limit: usize) -> Result<Vec<EventView>> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let read = || self.log.read(space, |tx| tx.events_after(seq, limit));
        let rows = self.patiently(caller.waited, read)?;
        Ok(rows.iter().map(view).collect())
    }

    /// Where the log of the caller's space stands.
    pub fn roots(&self, caller: &Caller) -> Result<Roots> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        self.patiently(caller.waited, || self.log.roots(space))
    }

    /// Proves that an event, by its place or its id, is in the log as it is now.
    pub fn prove_inclusion(&self, caller: &Caller, event: &str) -> Result<Proof> {
        caller.principal.require(Scope::Read)?;
        let work = |tx: &dyn ReadTx| {
            let seq = match (event.parse::<u64>(), Hash::from_hex(event)) {
                (Ok(seq), _) => seq,
                (_, Some(id)) => {
                    tx.event_by_id(&id)?
                        .ok_or_else(|| Error::not_found("event", event))?
                        .seq
                }
                _ => {
                    return Err(Error::invalid(format!("`{event}` is not an event"))
                        .hint("give its place in the log or its id of 64 hexadecimal digits"));
                }
            };
            let size = kenning_audit::roots(tx)?.seq;
            Ok(Proof::Inclusion(kenning_audit::inclusion(tx, seq, size)?))
        };
        let space = &caller.principal.space;
        self.patiently(caller.waited, || self.log.read(space, work))
    }

    /// Proves that the log with `old` events is a prefix of the log as it is now.
    pub fn prove_consistency(&self, caller: &Caller, old: u64) -> Result<Proof> {
        caller.principal.require(Scope::Read)?;
        let work = |tx: &dyn ReadTx| {
            let new = kenning_audit::roots(tx)?.seq;
            Ok(Proof::Consistency(kenning_audit::consistency(
                tx, old, new,
            )?))
        };
        let space = &caller.principal.space;
        self.patiently(caller.waited, || self.log.read(space, work))
    }

    /// Signs what the log is now.
    pub fn checkpoint(&self, caller: &Caller) -> Result<Value> {
        caller.principal.require(Scope::Write)?;
        let space = &caller.principal.space;
        let row = self.patiently(caller.waited, || self.log.checkpoint(space))?;
        Ok(checkpoint_json(&row))
    }
}

fn checkpoint_json(row: &CheckpointRow) -> Value {
    json!({
        "height": row.height, "size": row.seq, "eventRoot": row.event_root.to_string(),
        "stateRoot": row.state_root.to_string(), "timestamp": timestamp(row.hlc.ms()),
        "hlc": row.hlc.to_string(), "author": row.author, "signature": hex(&row.signature),
    })
}

fn view(row: &EventRow) -> EventView {
    let payload: Value = serde_json::from_slice(&row.payload).unwrap_or(Value::Null);
    let parents: Vec<String> = row.parents.iter().map(ToString::to_string).collect();
    let json = json!({
        "seq": row.seq, "id": row.id.to_string(), "version": row.version, "kind": row.kind,
        "timestamp": timestamp(row.hlc.ms()), "hlc": row.hlc.to_string(), "author": row.author,
        "parents": parents, "changes": payload["changes"], "data": payload["data"],
        "signature": hex(&row.signature),
    });
    EventView { seq: row.seq, json }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}
