//! Signing what the log is, within a transaction.

use super::Tx;
use crate::checkpoint::{
    CHECKPOINT_COSIGNED, CHECKPOINT_CREATED, CheckpointLabel, checkpoint_hash,
};
use crate::event;
use kenning_core::Result;
use kenning_store::{CheckpointRow, ReadTx};
use serde_json::{Map, Value};

impl Tx<'_> {
    /// Signs what the log is now, unless the newest checkpoint says just that. The checkpoint of an empty log
    /// is not stored: it covers nothing, and the log has no id yet.
    pub fn checkpoint(&mut self) -> Result<CheckpointRow> {
        let before = self.raw.checkpoint_at(u64::MAX >> 1)?;
        if let Some(before) = &before
            && before.seq == self.head.seq
        {
            return Ok(before.clone());
        }
        let is_empty = self.head.seq == 0;
        let mut row = CheckpointRow {
            version: if is_empty { 1 } else { event::VERSION },
            origin: if is_empty {
                Vec::new()
            } else {
                self.origin().to_bytes()
            },
            height: before.map_or(0, |it| it.height + 1),
            seq: self.head.seq,
            event_root: self.frontier.root(),
            state_root: self.state.root(),
            hlc: self.now(),
            author: self.signer.did().to_string(),
            signature: Vec::new(),
        };
        row.signature = self.signer.sign(&checkpoint_hash(&row));
        if !is_empty {
            self.raw.put_checkpoint(&row)?;
        }
        Ok(row)
    }

    /// Signs what the log is now, and records that in an event, which the next checkpoint covers. An empty
    /// log gets neither.
    pub fn record_checkpoint(&mut self, label: &CheckpointLabel) -> Result<CheckpointRow> {
        let row = self.checkpoint()?;
        if row.seq > 0 {
            self.record(CHECKPOINT_CREATED, checkpoint_data(&row, label))?;
        }
        Ok(row)
    }

    /// The same, unless nothing happened since the last checkpoint but events about it.
    pub fn record_checkpoint_of_news(&mut self, label: &CheckpointLabel) -> Result<CheckpointRow> {
        if let Some(newest) = self.raw.checkpoint_at(u64::MAX >> 1)?
            && is_covered(&*self.raw, &newest, self.head.seq)?
        {
            return Ok(newest);
        }
        self.record_checkpoint(label)
    }
}

/// Whether nothing came after a checkpoint but events about it.
fn is_covered(tx: &dyn ReadTx, newest: &CheckpointRow, end: u64) -> Result<bool> {
    if newest.seq == end {
        return Ok(true);
    }
    const LOOK_MAX: u64 = 100;
    if end - newest.seq > LOOK_MAX {
        return Ok(false);
    }
    let later = tx.events_after(newest.seq, LOOK_MAX as usize)?;
    let is_about = |kind: &str| [CHECKPOINT_CREATED, CHECKPOINT_COSIGNED].contains(&kind);
    Ok(later.iter().all(|it| is_about(&it.kind)))
}

fn checkpoint_data(row: &CheckpointRow, label: &CheckpointLabel) -> Value {
    let mut data = Map::new();
    data.insert("height".to_owned(), row.height.into());
    data.insert("size".to_owned(), row.seq.into());
    data.insert("eventRoot".to_owned(), row.event_root.to_string().into());
    data.insert("stateRoot".to_owned(), row.state_root.to_string().into());
    if let Some(name) = &label.name {
        data.insert("name".to_owned(), name.as_str().into());
    }
    if !label.tags.is_empty() {
        data.insert("tags".to_owned(), label.tags.clone().into());
    }
    if label.is_automatic {
        data.insert("automatic".to_owned(), true.into());
    }
    Value::Object(data)
}
