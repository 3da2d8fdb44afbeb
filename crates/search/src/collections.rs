//! The collections of callers' vectors of all spaces, following the log.
//!
//! A follower asks the store for vectors that were written after the last event it has seen. That
//! something is gone does not show there, so whoever removes a vector notes the event in the account
//! of the collection, and only a follower who has not seen that event yet reads the log.

use crate::collection::Collection;
use crate::recent::Recent;
use crate::slot::{anew_if_broken, broken};
use kenning_audit::foreign::SYNC_APPLIED;
use kenning_audit::{Change, Continuity};
use kenning_core::{NodeId, Result, Space};
use kenning_store::{ReadTx, Vector};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The kind of the event that says that a vector is gone; its changes name the node.
pub const VECTOR_DELETED: &str = "VectorDeleted";

/// The bucket of the accounts: the key is the collection's name.
pub const ACCOUNTS: &str = "vector-collections";

/// Vectors and events that are taken in at a time.
const PAGE: usize = 1_000;

/// Beginning anew reads no more events than this.
const EVENTS_MAX: u64 = 10_000;

/// What is known of a collection without looking at its vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
        serde_json::from_slice(bytes).unwrap_or_default()
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
    /// By space, generation of its log (one that was taken back begins anew) and name.
    kept: Mutex<Recent<(Space, u64, String), Kept>>,
    continuity: Continuity,
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
        let head = tx.head()?;
        let generation = self.continuity.generation(space, tx, head.as_ref())?;
        let kept = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.retain(|key| &key.0 != space || key.1 >= generation);
            let key = (space.clone(), generation, name.to_owned());
            let empty = || Arc::new(RwLock::new(Collection::new(dimensions)));
            Arc::clone(kept.entry(&key, empty))
        };
        let seq = head.map_or(0, |it| it.seq);
        // Whoever has an older snapshot finds nothing less in what another call has taken in.
        if let Ok(collection) = kept.read()
            && collection.seq >= seq
        {
            return work(&collection);
        }
        {
            let mut collection = anew_if_broken(&kept, || Collection::new(dimensions));
            if collection.seq < seq {
                collection.follow(tx, name, seq)?;
            }
        }
        let collection = kept.read().map_err(|_| broken())?;
        work(&collection)
    }
}

impl Collection {
    /// Takes in everything up to the event `seq`. What was taken in before an error is kept, so that a
    /// collection too large for one call's patience is there after a few.
    fn follow(&mut self, tx: &dyn ReadTx, name: &str, seq: u64) -> Result<()> {
        let account = Account::read(tx, name)?;
        if account.removed_seq > self.removed_seq + EVENTS_MAX {
            *self = Self::new(self.dimensions());
        }
        if self.seq == 0 {
            // What was removed before is not there to be read.
            self.removed_seq = account.removed_seq;
        }
        self.take_in_removals(tx, name, account.removed_seq)?;
        self.take_in_vectors(tx, name)?;
        self.seq = seq;
        self.prepare();
        Ok(())
    }

    /// A removal that another node's later write has undone, or that came too late, counts for nothing:
    /// what is there, is there.
    fn take_in_removals(&mut self, tx: &dyn ReadTx, name: &str, until: u64) -> Result<()> {
        while self.removed_seq < until {
            let page = tx.events_after(self.removed_seq, PAGE)?;
            let Some(last) = page.last() else { break };
            let removes = |kind: &str| [VECTOR_DELETED, SYNC_APPLIED].contains(&kind);
            for row in page.iter().filter(|it| removes(&it.kind)) {
                let event = kenning_audit::event::parse(row);
                for change in event.into_iter().flat_map(|it| it.changes) {
                    if let Change::RemoveNode { id } = change
                        && tx.vector(name, &id.to_string())?.is_none()
                    {
                        self.remove(id);
                    }
                }
            }
            self.removed_seq = last.seq;
        }
        Ok(())
    }

    fn take_in_vectors(&mut self, tx: &dyn ReadTx, name: &str) -> Result<()> {
        let mut limit = PAGE;
        loop {
            let mut page = tx.vectors_since(name, self.seq, limit)?;
            let is_last = page.len() < limit;
            if !is_last {
                // The rest of the last event's vectors may be beyond the page.
                let last = page.last().map_or(0, |it| it.seq);
                page.retain(|it| it.seq < last);
                limit = if page.is_empty() { limit * 2 } else { PAGE };
            }
            page.iter().for_each(|it| self.take_in(it));
            if is_last {
                return Ok(());
            }
            self.seq = page.last().map_or(self.seq, |it| it.seq);
        }
    }

    fn take_in(&mut self, vector: &Vector) {
        if let Ok(node) = vector.id.parse::<NodeId>() {
            self.put(node, &vector.numbers, &row_facets(&vector.props));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Near, Neighbors};
    use kenning_audit::{Draft, Log, Signer, Tx};
    use kenning_core::{FixedClock, Kind, SeededRandom};
    use kenning_store::{Store, When};
    use kenning_store_sqlite::Sqlite;

    const NAME: &str = "kg/3/default";

    fn put(tx: &mut Tx<'_>, n: u64, numbers: Vec<f32>, facet: u64) -> Result<()> {
        let key = n.to_string();
        let is_new = tx.node_by_key("", Kind::Vector, &key, When::Now)?.is_none();
        let props = Map::from_iter([("seq".to_owned(), tx.next_seq().into())]);
        let draft = Draft {
            kind: Kind::Vector,
            project: String::new(),
            key,
            title: String::new(),
            body: String::new(),
            props,
        };
        let node = tx.put_node(draft)?;
        tx.put_vector(Vector {
            collection: NAME.to_owned(),
            id: node.id.to_string(),
            model: "caller".to_owned(),
            numbers,
            props: row_props(&[facet]),
            seq: 0,
        })?;
        let mut account = Account::read(&**tx, NAME)?;
        account.count += u64::from(is_new);
        tx.set(ACCOUNTS, NAME, &account.to_bytes())?;
        tx.record("VectorUpserted", json!({})).map(drop)
    }

    fn remove(tx: &mut Tx<'_>, n: u64) -> Result<()> {
        let Some(node) = tx.node_by_key("", Kind::Vector, &n.to_string(), When::Now)? else {
            return Ok(());
        };
        tx.remove_vector(NAME, &node.id.to_string())?;
        tx.remove_node(node.id)?;
        let mut account = Account::read(&**tx, NAME)?;
        account.count -= 1;
        account.removed_seq = tx.next_seq();
        tx.set(ACCOUNTS, NAME, &account.to_bytes())?;
        tx.record(VECTOR_DELETED, json!({})).map(drop)
    }

    fn looked_up(collections: &Collections, tx: &dyn ReadTx) -> Result<Vec<Neighbors>> {
        collections.with(&Space::default(), tx, NAME, 3, |collection| {
            assert_eq!(collection.len() as u64, Account::read(tx, NAME)?.count);
            let facets: [&[u64]; 4] = [&[], &[0], &[1], &[9]];
            let nearest = facets.map(|facets| {
                let near = Near {
                    to: &[0.3, -0.5, 0.8],
                    facets,
                    limit: 100,
                    threads: 1,
                };
                collection.nearest(&near, |node| {
                    let row = tx.vector(NAME, &node.to_string())?;
                    Ok(row.map(|it| it.numbers))
                })
            });
            nearest.into_iter().collect()
        })
    }

    #[test]
    fn who_follows_finds_what_a_newcomer_reads() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(Sqlite::open(folder.path()).unwrap());
        let random = Arc::new(SeededRandom::new(5));
        let signer = Signer::generate(&*random);
        let clock = Arc::new(FixedClock::at(1_800_000_000_000));
        let log = Log::new(store, signer, clock, Arc::clone(&random) as _);
        let space = Space::default();
        let (follower, seldom) = (Collections::default(), Collections::default());
        for round in 0..40_u64 {
            let steps: Vec<(u64, u64)> = (0..random.below(60))
                .map(|_| (random.below(50), random.next()))
                .collect();
            log.write(&space, move |tx| {
                for (n, word) in steps {
                    if word % 3 == 0 {
                        remove(tx, n)?;
                    } else {
                        let number = |shift: u64| (word >> shift & 255) as f32 / 128.0 - 1.0;
                        put(tx, n, vec![number(8), number(16), number(24)], n % 2)?;
                    }
                }
                // What has nothing to do with vectors.
                tx.record("Noise", json!({})).map(drop)
            })
            .unwrap();
            log.read(&space, |tx| {
                let anew = looked_up(&Collections::default(), tx)?;
                assert_eq!(looked_up(&follower, tx)?, anew, "{round}");
                if round % 7 == 6 {
                    assert_eq!(looked_up(&seldom, tx)?, anew, "{round}");
                }
                assert!(anew[3].nearest.is_empty());
                Ok(())
            })
            .unwrap();
        }
    }

    /// As a database that failed over to a standby that lagged: the same numbers, other events.
    #[test]
    fn a_log_that_was_taken_back_is_followed_anew() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        // The same clock, the same randomness: the same events, until they are told otherwise.
        let logs = folders.each_ref().map(|folder| {
            let store = Store::new(Sqlite::open(folder.path()).unwrap());
            let random = Arc::new(SeededRandom::new(5));
            let signer = Signer::generate(&*random);
            let clock = Arc::new(FixedClock::at(1_800_000_000_000));
            Log::new(store, signer, clock, random)
        });
        let space = Space::default();
        let put_into = |log: &Log, n: u64| {
            let numbers = vec![n as f32, 1.0, 0.0];
            log.write(&space, move |tx| put(tx, n, numbers, n % 2))
                .unwrap();
        };
        let follower = Collections::default();
        let compare = |log: &Log| {
            log.read(&space, |tx| {
                let anew = looked_up(&Collections::default(), tx)?;
                assert_eq!(looked_up(&follower, tx)?, anew);
                Ok(anew[0].nearest.len())
            })
        };
        logs.iter()
            .for_each(|log| (0..3).for_each(|n| put_into(log, n)));
        (10..13).for_each(|n| put_into(&logs[0], n));
        assert_eq!(compare(&logs[0]).unwrap(), 6);
        // Fewer events than were seen, then as many, then more.
        put_into(&logs[1], 20);
        assert_eq!(compare(&logs[1]).unwrap(), 4);
        assert_eq!(compare(&logs[0]).unwrap(), 6);
        (21..23).for_each(|n| put_into(&logs[1], n));
        assert_eq!(compare(&logs[1]).unwrap(), 6);
        assert_eq!(compare(&logs[0]).unwrap(), 6);
        (23..25).for_each(|n| put_into(&logs[1], n));
        assert_eq!(compare(&logs[1]).unwrap(), 8);
    }

    #[test]
    fn names_and_rows_are_read_as_they_were_written() {
        for (namespace, dimensions) in [("default", 3), ("a/b/c", 4_096), ("7", 1)] {
            let name = collection_name(namespace, dimensions);
            assert_eq!(of_collection_name(&name), Some((namespace, dimensions)));
        }
        for other in ["text/kg/3/a", "kg/x/a", "kg/3", ""] {
            assert_eq!(of_collection_name(other), None);
        }
        let facets = [0, 1, u64::MAX, 0x8000_0000_0000_0000];
        assert_eq!(row_facets(&row_props(&facets)), facets);
        let account = Account {
            count: 7,
            removed_seq: u64::MAX,
        };
        assert_eq!(Account::from_bytes(&account.to_bytes()), account);
    }
}
