//! The collections of callers' vectors of all spaces, following the log.
//!
//! A follower asks the store for vectors that were written after the last event it has seen. That
//! something is gone does not show there, so whoever removes a vector notes the event in the account
//! of the collection, and only a follower who has not seen that event yet reads the log.

use crate::collection::Collection;
use kenning_audit::Change;
use kenning_core::{Error, NodeId, Result, Space};
use kenning_store::{ReadTx, Vector};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};

/// The kind of the event that says that a vector is gone; its changes name the node.
pub const VECTOR_DELETED: &str = "VectorDeleted";

/// The bucket of the accounts: the key is the collection's name.
pub const ACCOUNTS: &str = "vector-collections";

/// Vectors and events that are taken in at a time.
const PAGE: usize = 1_000;

/// Beginning anew reads no more events than this.
const EVENTS_MAX: u64 = 10_000;

/// What is known of a collection without looking at its vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// How many vectors it has.
    pub count: u64,
    /// The last event by which one was removed.
    pub removed_seq: u64,
}

impl Account {
    /// Of a collection, as it is in this snapshot.
    pub fn read(tx: &dyn ReadTx, collection: &str) -> Result<Self> {
        let bytes = tx.get(ACCOUNTS, collection)?;
        Ok(bytes.map(|it| Self::from_bytes(&it)).unwrap_or_default())
    }

    /// From the form in the key-value table.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
        Self {
            count: value["count"].as_u64().unwrap_or(0),
            removed_seq: value["removed_seq"].as_u64().unwrap_or(0),
        }
    }

    /// The form in the key-value table.
    pub fn to_bytes(self) -> Vec<u8> {
        let value = json!({ "count": self.count, "removed_seq": self.removed_seq });
        value.to_string().into_bytes()
    }
}

/// The name of a collection of callers' vectors.
pub fn collection_name(namespace: &str, dimensions: usize) -> String {
    format!("kg/{dimensions}/{namespace}")
}

/// Namespace and dimension of a collection of callers' vectors.
pub fn of_collection_name(name: &str) -> Option<(&str, usize)> {
    let (dimensions, namespace) = name.strip_prefix("kg/")?.split_once('/')?;
    Some((namespace, dimensions.parse().ok()?))
}

/// What a vector's row says beside its numbers.
pub fn row_props(facets: &[u64]) -> Map<String, Value> {
    let facets: Vec<Value> = facets
        .iter()
        .map(|it| format!("{it:016x}").into())
        .collect();
    Map::from_iter([("facets".to_owned(), Value::Array(facets))])
}

/// The properties that a vector's row says it has.
pub fn row_facets(props: &Map<String, Value>) -> Vec<u64> {
    let facets = props.get("facets").and_then(Value::as_array);
    let facets = facets.into_iter().flatten().filter_map(Value::as_str);
    facets
        .filter_map(|it| u64::from_str_radix(it, 16).ok())
        .collect()
}

type Kept = Arc<RwLock<Collection>>;

/// The collections of all spaces. Each is read when it is first asked, and follows the log from then
/// on, whichever process wrote.
#[derive(Debug, Default)]
pub struct Collections {
    kept: Mutex<HashMap<(Space, String), Kept>>,
}

impl Collections {
    /// Runs `work` on a collection as it is in this snapshot.
    pub fn with<T>(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        name: &str,
        dimensions: usize,
        work: impl FnOnce(&Collection) -> Result<T>,
    ) -> Result<T> {
        let kept = {
            let mut kept = self.kept.lock().map_err(|_| broken())?;
            let key = (space.clone(), name.to_owned());
            let empty = || Arc::new(RwLock::new(Collection::new(dimensions)));
            Arc::clone(kept.entry(key).or_insert_with(empty))
        };
        let seq = tx.head()?.map_or(0, |it| it.seq);
        {
            let collection = kept.read().map_err(|_| broken())?;
            // Whoever has an older snapshot finds nothing less in what another call has taken in.
            if collection.seq >= seq {
                return work(&collection);
            }
        }
        {
            let mut collection = kept.write().map_err(|_| broken())?;
            if collection.seq < seq
                && let Err(error) = collection.follow(tx, name, seq)
            {
                // Half taken in is worse than not at all.
                *collection = Collection::new(dimensions);
                return Err(error);
            }
        }
        let collection = kept.read().map_err(|_| broken())?;
        work(&collection)
    }
}

fn broken() -> Error {
    Error::internal("a collection of vectors is broken")
}

impl Collection {
    /// Takes in everything up to the event `seq`.
    fn follow(&mut self, tx: &dyn ReadTx, name: &str, seq: u64) -> Result<()> {
        let account = Account::read(tx, name)?;
        if self.seq > 0 && account.removed_seq > self.seq {
            if account.removed_seq - self.seq > EVENTS_MAX {
                *self = Self::new(self.dimensions());
            } else {
                self.take_in_removals(tx, account.removed_seq)?;
            }
        }
        self.take_in_vectors(tx, name)?;
        self.seq = seq;
        self.prepare();
        Ok(())
    }

    fn take_in_removals(&mut self, tx: &dyn ReadTx, until: u64) -> Result<()> {
        let mut at = self.seq;
        while at < until {
            let page = tx.events_after(at, PAGE)?;
            let Some(last) = page.last() else { break };
            at = last.seq;
            for row in page.iter().filter(|it| it.kind == VECTOR_DELETED) {
                let event = kenning_audit::event::parse(row);
                for change in event.into_iter().flat_map(|it| it.changes) {
                    if let Change::RemoveNode { id } = change {
                        self.remove(id);
                    }
                }
            }
        }
        Ok(())
    }

    fn take_in_vectors(&mut self, tx: &dyn ReadTx, name: &str) -> Result<()> {
        let (mut at, mut limit) = (self.seq, PAGE);
        loop {
            let mut page = tx.vectors_since(name, at, limit)?;
            let is_last = page.len() < limit;
            if !is_last {
                // The rest of the last event's vectors may be beyond the page.
                let last = page.last().map_or(0, |it| it.seq);
                page.retain(|it| it.seq < last);
                limit = if page.is_empty() { limit * 2 } else { PAGE };
            }
            for vector in &page {
                self.take_in(vector);
                at = vector.seq;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn take_in(&mut self, vector: &Vector) {
        if let Ok(node) = vector.id.parse::<NodeId>() {
            self.put(node, &vector.numbers, &row_facets(&vector.props));
        }
    }
}
