//! The log of a store: the one way to write.

use crate::merkle::Frontier;
use crate::state::State;
use crate::{Signer, Tx, event};
use kenning_core::{Error, Hash, HlcClock, Random, Result, Space};
use kenning_store::{CheckpointRow, HeadRow, ReadTx, Store, WriteTx};
use std::sync::Arc;

/// The clock of the house.
pub type Clock = HlcClock<Arc<dyn kenning_core::Clock>>;

/// The log. Cheap to clone.
#[derive(Clone)]
pub struct Log {
    store: Store,
    signer: Arc<Signer>,
    clock: Arc<Clock>,
    random: Arc<dyn Random>,
}

/// Where a log stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// Number of events.
    pub seq: u64,
    /// Merkle root over the event ids.
    pub event_root: Hash,
    /// Root of all nodes and edges.
    pub state_root: Hash,
}

impl Log {
    /// The log of this store, signed with this key.
    pub fn new(
        store: Store,
        signer: Signer,
        clock: Arc<dyn kenning_core::Clock>,
        random: Arc<dyn Random>,
    ) -> Self {
        let clock = Arc::new(HlcClock::new(clock));
        Self {
            store,
            signer: Arc::new(signer),
            clock,
            random,
        }
    }

    /// Who signs.
    pub fn signer(&self) -> &Signer {
        &self.signer
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Randomness.
    pub fn random(&self) -> &dyn Random {
        &*self.random
    }

    /// The store, to read raw rows from.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Runs `work` on a consistent snapshot of one space.
    pub fn read<T>(&self, space: &Space, work: impl FnOnce(&dyn ReadTx) -> Result<T>) -> Result<T> {
        self.store.read(space, work)
    }

    /// Runs `work` in a write transaction and returns once it and its events are durable.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one caller: it adds the event"
    )]
    pub fn write<T: Send + 'static>(
        &self,
        space: &Space,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let log = self.clone();
        self.store.write(space, move |raw| log.recorded(raw, work))
    }

    /// The same for work that may take long: many rows at once.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one caller: it adds the event"
    )]
    pub fn write_long<T: Send + 'static>(
        &self,
        space: &Space,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let log = self.clone();
        self.store
            .write_long(space, move |raw| log.recorded(raw, work))
    }

    fn recorded<T>(
        &self,
        raw: &mut dyn WriteTx,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut tx = Tx::begin(raw, &self.signer, &self.clock, &*self.random)?;
        let value = work(&mut tx)?;
        tx.finish()?;
        Ok(value)
    }

    /// Signs what the log is now.
    pub fn checkpoint(&self, space: &Space) -> Result<CheckpointRow> {
        self.write(space, |tx| tx.checkpoint())
    }

    /// Where the log of a space stands.
    pub fn roots(&self, space: &Space) -> Result<Roots> {
        self.read(space, roots)
    }
}

/// Where the log of this snapshot stands.
pub fn roots(tx: &dyn ReadTx) -> Result<Roots> {
    roots_of(tx.head()?)
}

/// What a head says.
pub(crate) fn roots_of(head: Option<HeadRow>) -> Result<Roots> {
    let Some(head) = head else {
        let state_root = State::default().root();
        return Ok(Roots {
            seq: 0,
            event_root: Frontier::default().root(),
            state_root,
        });
    };
    let state = State::from_bytes(&head.state)
        .ok_or_else(|| Error::corrupt("the head's state is not of its form"))?;
    let frontier = Frontier {
        size: head.seq,
        roots: head.frontier,
    };
    Ok(Roots {
        seq: head.seq,
        event_root: frontier.root(),
        state_root: state.root(),
    })
}

/// What a checkpoint's author signs.
pub(crate) fn checkpoint_hash(row: &CheckpointRow) -> Hash {
    let mut bytes = vec![event::VERSION, b'c'];
    for number in [row.height, row.seq, row.hlc.0] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    bytes.extend_from_slice(&row.event_root.0);
    bytes.extend_from_slice(&row.state_root.0);
    bytes.extend_from_slice(row.author.as_bytes());
    Hash::of(&bytes)
}
