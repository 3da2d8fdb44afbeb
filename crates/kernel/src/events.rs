//! The log as people and programs see it.

use crate::log_query::of_types;
use crate::moments::parse_hlc;
use crate::{Caller, Kernel, Scope, timestamp};
use kenning_audit::{CheckpointLabel, Consistency, Inclusion, Origin, Roots, Tx, event};
use kenning_core::{Error, Hash, Result, Space};
use kenning_store::{CheckpointRow, EventRow, ReadTx, parse_jsons_once};
use kenning_text::hex;
use serde_json::{Value, json};
use std::collections::BTreeMap;

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

impl Kernel {
    /// Events of the caller's space after a place in the log.
    pub fn events_after(&self, caller: &Caller, seq: u64, limit: usize) -> Result<Vec<EventView>> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let read = || self.log.read(space, |tx| tx.events_after(seq, limit));
        let rows = self.with_wait_limit(caller.waited, read)?;
        Ok(rows.iter().map(view).collect())
    }

    /// The same, of these types only (see [`crate::LogQuery::types`]); gives also the place up to which was read.
    pub fn events_of_types_after(
        &self,
        caller: &Caller,
        seq: u64,
        limit: usize,
        types: &[String],
    ) -> Result<(u64, Vec<EventView>)> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let read = || self.log.read(space, |tx| tx.events_after(seq, limit));
        let rows = self.with_wait_limit(caller.waited, read)?;
        let filter = of_types(types);
        let end = rows.last().map_or(seq, |it| it.seq);
        let events = rows.iter().filter(|it| filter.admits(it)).map(view);
        Ok((end, events.collect()))
    }

    /// A number that changes when the log of the caller's space is no continuation of what it was: after
    /// a failover that lost events, or a restore.
    pub fn log_generation(&self, caller: &Caller) -> Result<u64> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let read = || {
            self.log.read(space, |tx| {
                let head = tx.head()?;
                self.continuity.generation(space, tx, head.as_ref())
            })
        };
        self.with_wait_limit(caller.waited, read)
    }

    /// Where the log of the caller's space stands.
    pub fn roots(&self, caller: &Caller) -> Result<Roots> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        self.with_wait_limit(caller.waited, || self.log.roots(space))
    }

    /// Proves that an event, by its place or its id, is in the log as it is now.
    pub fn prove_inclusion(&self, caller: &Caller, event: &str) -> Result<Proof> {
        caller.principal.require(Scope::Read)?;
        let work = |tx: &dyn ReadTx| {
            let seq = seq_of(tx, event)?;
            let size = kenning_audit::roots(tx)?.seq;
            Ok(Proof::Inclusion(kenning_audit::inclusion(tx, seq, size)?))
        };
        let space = &caller.principal.space;
        self.with_wait_limit(caller.waited, || self.log.read(space, work))
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
        self.with_wait_limit(caller.waited, || self.log.read(space, work))
    }

    /// Signs what the log is now.
    pub fn checkpoint(&self, caller: &Caller) -> Result<Value> {
        let signed = self.checkpoint_of_news(caller, CheckpointLabel::default())?;
        Ok(checkpoint_json(&signed.row))
    }

    /// Signs what the log of every space is now; a space without events has nothing to sign.
    pub fn checkpoint_all(&self, caller: &Caller) -> Result<Vec<Value>> {
        caller.principal.require(Scope::Admin)?;
        let mut signed = Vec::new();
        for space in self.log.store().spaces()? {
            if self.log.roots(&space)?.seq > 0 {
                let sign =
                    |tx: &mut Tx<'_>| tx.record_checkpoint_of_news(&CheckpointLabel::default());
                signed.push(checkpoint_json(&self.log.write(&space, sign)?));
            }
        }
        Ok(signed)
    }
}

/// The place of an event that somebody named by its place or its id.
pub(crate) fn seq_of(tx: &dyn ReadTx, event: &str) -> Result<u64> {
    let total = tx.head()?.map_or(0, |it| it.seq);
    match (event.parse::<u64>(), Hash::from_hex(event)) {
        (Ok(seq), _) if seq == 0 || seq > total => Err(Error::invalid(format!(
            "`{seq}` is not the number of an event: the log has {total}"
        ))
        .hint("events are numbered from 1")),
        (Ok(seq), _) => Ok(seq),
        (_, Some(id)) => Ok(tx
            .event_by_id(&id)?
            .ok_or_else(|| Error::not_found("event", event))?
            .seq),
        _ => Err(Error::invalid(format!("`{event}` is not an event"))
            .hint("give its place in the log or its id of 64 hexadecimal digits")),
    }
}

/// Checkpoints that somebody kept: at most one a space.
#[derive(Debug, Default)]
pub struct KeptCheckpoints(BTreeMap<Space, CheckpointRow>);

impl KeptCheckpoints {
    /// Reads what `kenning audit checkpoint` printed, for one space or for all. Checkpoints of the first
    /// version do not name their space: such a one is taken to be of `space`.
    pub fn parse(text: &str, space: &Space) -> Result<Self> {
        let mut kept = Self::default();
        for value in parse_jsons_once(text) {
            let value = value.map_err(|cause| malformed("{").because(cause))?;
            let row = parse_checkpoint(&value)?;
            let named = Origin::from_bytes(&row.origin).map(|it| it.space.parse::<Space>());
            let named = named.transpose().map_err(|_| malformed("origin"))?;
            let of = named.unwrap_or_else(|| space.clone());
            // Of several the newest says most.
            if kept.0.get(&of).is_none_or(|it| it.seq < row.seq) {
                kept.0.insert(of, row);
            }
        }
        if kept.0.is_empty() {
            return Err(malformed("{"));
        }
        Ok(kept)
    }

    /// The spaces that there is a checkpoint of, in order.
    pub fn spaces(&self) -> impl Iterator<Item = &Space> {
        self.0.keys()
    }

    /// The one of a space, if it is among them.
    pub fn of(&self, space: &Space) -> Option<&CheckpointRow> {
        self.0.get(space)
    }
}

fn malformed(field: &str) -> Error {
    Error::invalid(format!(
        "the checkpoint is malformed: `{field}` is missing or wrong"
    ))
    .hint("give a file that holds what `kenning audit checkpoint` printed")
}

pub(crate) fn checkpoint_json(row: &CheckpointRow) -> Value {
    let origin = Origin::from_bytes(&row.origin);
    json!({
        "height": row.height, "size": row.seq, "eventRoot": row.event_root.to_string(),
        "stateRoot": row.state_root.to_string(), "timestamp": timestamp(row.hlc.ms()),
        "hlc": row.hlc.to_string(), "author": row.author, "signature": hex::encode(&row.signature),
        "version": row.version, "origin": origin.map(|it| it.to_json()),
    })
}

pub(crate) fn parse_checkpoint(value: &Value) -> Result<CheckpointRow> {
    let bad = malformed;
    let number = |name: &str| value[name].as_u64().ok_or_else(|| bad(name));
    let text = |name: &str| value[name].as_str().ok_or_else(|| bad(name));
    let hash = |name: &str| Hash::from_hex(text(name)?).ok_or_else(|| bad(name));
    let hlc = || parse_hlc(text("hlc").ok()?);
    // The first version did not print its number.
    let version = match value.get("version") {
        None => 1,
        Some(_) => u8::try_from(number("version")?).map_err(|_| bad("version"))?,
    };
    let origin = match version {
        1 => Vec::new(),
        _ => Origin::from_json(&value["origin"])
            .ok_or_else(|| bad("origin"))?
            .to_bytes(),
    };
    Ok(CheckpointRow {
        height: number("height")?,
        seq: number("size")?,
        event_root: hash("eventRoot")?,
        state_root: hash("stateRoot")?,
        hlc: hlc().ok_or_else(|| bad("hlc"))?,
        author: text("author")?.to_owned(),
        signature: hex::decode(text("signature")?).ok_or_else(|| bad("signature"))?,
        version,
        origin,
    })
}

pub(crate) fn view(row: &EventRow) -> EventView {
    let parents: Vec<String> = row.parents.iter().map(ToString::to_string).collect();
    let mut json = json!({
        "seq": row.seq, "id": row.id.to_string(), "version": row.version, "kind": row.kind,
        "timestamp": timestamp(row.hlc.ms()), "hlc": row.hlc.to_string(), "author": row.author,
        "parents": parents, "changes": event::changes_json(row), "data": event::data(row),
        "signature": hex::encode(&row.signature),
    });
    if row.version > 1 {
        let origin = Origin::from_bytes(&row.sealed.origin);
        json["origin"] = origin.map(|it| it.to_json()).into();
        json["commitment"] = hex::encode(&row.sealed.commitment).into();
        json["salt"] = hex::encode(&row.sealed.salt).into();
        if !row.sealed.agent.is_empty() {
            json["agent"] = row.sealed.agent.as_str().into();
        }
        if event::is_erased(row) {
            json["erased"] = true.into();
        }
    }
    EventView { seq: row.seq, json }
}
