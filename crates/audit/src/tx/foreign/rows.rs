//! Edges, names, vectors and shared pairs of other logs: the latest write of each holds.

use super::{Foreign, Merged, STAMPS, SYNC_APPLIED, Stamp, edge_key, stamp_key};
use crate::event::{Change, SignedRow};
use crate::identity::is_shared_bucket;
use crate::tx::Tx;
use kenning_core::{Hlc, NodeId, Result};
use kenning_store::{Edge, Row, Vector, When, hash_of_pair};

impl Tx<'_> {
    pub(super) fn set_stamp(
        &mut self,
        key: &str,
        foreign: &Foreign,
        is_removed: bool,
    ) -> Result<()> {
        let stamp = Stamp {
            hlc: foreign.row.hlc,
            author: foreign.row.author.clone(),
            is_removed,
        };
        let known = self.raw.get(STAMPS, key)?;
        let known = known.and_then(|it| Stamp::from_bytes(&it));
        if known.is_some_and(|it| (it.hlc, &it.author) >= (stamp.hlc, &stamp.author)) {
            return Ok(());
        }
        self.raw.set(STAMPS, key, &stamp.to_bytes())
    }

    pub(super) fn merge_edge(&mut self, foreign: &Foreign, mut edge: Edge) -> Result<()> {
        let (src, dst, at) = (edge.src, edge.dst, foreign.row.hlc);
        if !self.is_latest_of_edge(foreign, src, &edge.rel, dst)? {
            return Ok(());
        }
        let before = self.current_edge(src, &edge.rel, dst)?;
        if let Some(before) = &before {
            self.state.remove_edge(&before.hash);
        }
        (edge.from, edge.to) = (at, Hlc::MAX);
        self.state.add_edge(&edge.hash);
        self.raw.put_edge(&edge)?;
        self.changes.push(Change::PutEdge {
            src,
            rel: edge.rel,
            dst,
            hash: edge.hash,
        });
        Ok(())
    }

    pub(super) fn merge_edge_end(
        &mut self,
        foreign: &Foreign,
        src: NodeId,
        rel: &str,
        dst: NodeId,
    ) -> Result<()> {
        if !self.is_latest_of_edge(foreign, src, rel, dst)? {
            return Ok(());
        }
        if let Some(before) = self.current_edge(src, rel, dst)? {
            self.state.remove_edge(&before.hash);
            self.raw.end_edge(src, rel, dst, foreign.row.hlc)?;
            self.changes.push(Change::EndEdge {
                src,
                rel: rel.to_owned(),
                dst,
            });
            return Ok(());
        }
        self.set_stamp(&edge_key(src, rel, dst), foreign, true)
    }

    pub(super) fn is_latest_of_edge(
        &self,
        foreign: &Foreign,
        src: NodeId,
        rel: &str,
        dst: NodeId,
    ) -> Result<bool> {
        let states = self.raw.edge_history(src, rel, dst)?;
        let begun = states.iter().map(|it| it.from).max();
        let ended = states
            .iter()
            .map(|it| it.to)
            .filter(|it| *it != Hlc::MAX)
            .max();
        let stamp = self.raw.get(STAMPS, &edge_key(src, rel, dst))?;
        let stamp = stamp.and_then(|it| Stamp::from_bytes(&it));
        if let Some(stamp) = &stamp
            && (stamp.hlc, &stamp.author) >= (foreign.row.hlc, &foreign.row.author)
        {
            return Ok(false);
        }
        match begun.max(ended) {
            None => Ok(true),
            Some(latest) => self.is_later(foreign, latest, |it| it.is_about_edge(src, rel, dst)),
        }
    }

    pub(super) fn merge_row(
        &mut self,
        foreign: &Foreign,
        row: &SignedRow,
        is_removed: bool,
        merged: &mut Merged,
    ) -> Result<()> {
        match row {
            // They follow from the node.
            SignedRow::Passages(_) => Ok(()),
            SignedRow::Names(id) => self.merge_names(foreign, *id),
            SignedRow::Vector(collection, id) => {
                let vectors = foreign.rows.iter().filter_map(|it| match it {
                    Row::Vector(it) if (&it.collection, &it.id) == (collection, id) => Some(it),
                    _ => None,
                });
                let vector = vectors.into_iter().next().cloned();
                self.merge_vector(foreign, row, vector, is_removed, merged)
            }
            SignedRow::Pair(bucket, key) if is_shared_bucket(bucket) => {
                let pairs = foreign.rows.iter().filter_map(|it| match it {
                    Row::Kv(it) if (&it.bucket, &it.key) == (bucket, key) => Some(&it.value),
                    _ => None,
                });
                let value = pairs.into_iter().next().cloned();
                if value.is_none() && !is_removed || !self.is_latest_of_row(foreign, row)? {
                    return Ok(());
                }
                match value.filter(|_| !is_removed) {
                    Some(value) => {
                        self.raw.set(bucket, key, &value)?;
                        let hash = hash_of_pair(bucket, key, &value);
                        self.note_row(row.clone(), Some(hash));
                    }
                    None if self.raw.get(bucket, key)?.is_some() => {
                        self.raw.unset(bucket, key)?;
                        self.note_row(row.clone(), None);
                    }
                    None => {}
                }
                merged.pairs.push((bucket.clone(), key.clone()));
                self.set_stamp(&stamp_key(row), foreign, is_removed)
            }
            SignedRow::Pair(..) => Ok(()),
        }
    }

    /// Names go with the node as this event left it.
    pub(super) fn merge_names(&mut self, foreign: &Foreign, id: NodeId) -> Result<()> {
        let current = self.raw.node(id, When::Now)?;
        if current.is_none_or(|it| it.updated > foreign.row.hlc) {
            return Ok(());
        }
        let names = foreign.rows.iter().filter_map(|it| match it {
            Row::Name(it) if it.node == id => Some(it.name.clone()),
            _ => None,
        });
        self.put_names(id, &names.collect::<Vec<_>>())
    }

    pub(super) fn merge_vector(
        &mut self,
        foreign: &Foreign,
        row: &SignedRow,
        vector: Option<Vector>,
        is_removed: bool,
        merged: &mut Merged,
    ) -> Result<()> {
        let SignedRow::Vector(collection, id) = row else {
            return Ok(());
        };
        if vector.is_none() && !is_removed || !self.is_latest_of_row(foreign, row)? {
            return Ok(());
        }
        let was_there = self.raw.vector(collection, id)?.is_some();
        let count = merged.vectors.entry(collection.clone()).or_default();
        match vector.filter(|_| !is_removed) {
            Some(vector) => {
                count.n_added += u64::from(!was_there);
                let seq = self.next_seq();
                let vector = Vector { seq, ..vector };
                self.raw.put_vector(&vector)?;
                self.note_row(row.clone(), Some(vector.canonical_hash()));
            }
            None if was_there => {
                count.n_removed += 1;
                self.raw.remove_vector(collection, id)?;
                self.note_row(row.clone(), None);
            }
            None => {}
        }
        self.set_stamp(&stamp_key(row), foreign, is_removed)
    }

    /// Of rows without a time of their own: that of the stamp, or of the event that wrote a vector.
    pub(super) fn is_latest_of_row(&self, foreign: &Foreign, row: &SignedRow) -> Result<bool> {
        let mine = (foreign.row.hlc, foreign.row.author.as_str());
        let stamp = self.raw.get(STAMPS, &stamp_key(row))?;
        let stamp = stamp.and_then(|it| Stamp::from_bytes(&it));
        if stamp.is_some_and(|it| (it.hlc, it.author.as_str()) >= mine) {
            return Ok(false);
        }
        let SignedRow::Vector(collection, id) = row else {
            return Ok(true);
        };
        let Some(vector) = self.raw.vector(collection, id)? else {
            return Ok(true);
        };
        let writer = self
            .raw
            .events_after(vector.seq.saturating_sub(1), 1)?
            .pop();
        Ok(writer.is_none_or(|it| it.kind == SYNC_APPLIED || (it.hlc, it.author.as_str()) < mine))
    }
}
