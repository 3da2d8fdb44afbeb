//! The log of a store: the one way to write.

use crate::checkpoint::{CHECKPOINT_EVERY, CHECKPOINT_EVERY_MIN};
use crate::clock::{self, Clock, Time};
use crate::identity::Identity;
use crate::merkle::Frontier;
use crate::state::State;
use crate::tx::{Tx, WriteContext};
use crate::{LogId, Signer};
use kenning_core::{Did, Error, Hash, HlcClock, Random, Result, Space};
use kenning_store::{CheckpointRow, HeadRow, ReadTx, Store, WriteTx};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// The log. Cheap to clone.
#[derive(Clone)]
pub struct Log {
    store: Store,
    signer: Arc<Signer>,
    clock: Arc<Clock>,
    random: Arc<dyn Random>,
    checkpoint_every: u64,
}

thread_local! {
    /// For whom this thread writes.
    static AGENT: RefCell<Option<Did>> = const { RefCell::new(None) };
}

/// Runs work on this thread; what it writes carries the agent's identifier beside the node's.
pub fn on_behalf_of<T>(agent: Option<Did>, work: impl FnOnce() -> T) -> T {
    /// Puts back who was there before, also if the work panics.
    struct Before(Option<Did>);
    impl Drop for Before {
        fn drop(&mut self) {
            AGENT.set(self.0.take());
        }
    }
    let _before = Before(AGENT.replace(agent));
    work()
}

/// For whom this thread writes.
pub fn current_agent() -> Option<Did> {
    AGENT.with_borrow(Clone::clone)
}

/// What every transaction of a thread does last, in the same transaction: it may refuse, and may set rows that
/// need no event. It sees whether anything was recorded ([`Tx::has_events`]).
pub type Companion = Arc<dyn Fn(&mut Tx<'_>) -> Result<()> + Send + Sync>;

thread_local! {
    /// What every transaction of this thread does last.
    static COMPANION: RefCell<Option<Companion>> = const { RefCell::new(None) };
}

/// Runs work on this thread; each of its writes ends with `last`. So whoever asks another part of the program
/// to write learns, with the very same commit, that it was written, and keeps out of it if somebody else took over.
pub fn accompanied<T>(last: Companion, work: impl FnOnce() -> T) -> T {
    /// Puts back what was there before, also if the work panics.
    struct Before(Option<Companion>);
    impl Drop for Before {
        fn drop(&mut self) {
            COMPANION.set(self.0.take());
        }
    }
    let _before = Before(COMPANION.replace(Some(last)));
    work()
}

/// The size and the roots of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// Number of events.
    pub seq: u64,
    /// Merkle root over the event ids.
    pub event_root: Hash,
    /// Root of all nodes and edges.
    pub state_root: Hash,
}

thread_local! {
    /// How many transactions of this thread are open.
    static OPEN_TRANSACTIONS: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread is inside of [`Log::read`] or [`Log::write`]. Whoever is about to wait for somebody else,
/// such as a model on another machine, must not be: an open read holds a connection and keeps old rows from
/// being cleared, and an open write keeps every other write waiting.
pub fn is_in_transaction() -> bool {
    OPEN_TRANSACTIONS.get() > 0
}

/// Counts a transaction until it ends, however it does.
struct Open;

impl Open {
    fn begin() -> Self {
        OPEN_TRANSACTIONS.set(OPEN_TRANSACTIONS.get() + 1);
        Self
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        OPEN_TRANSACTIONS.set(OPEN_TRANSACTIONS.get().saturating_sub(1));
    }
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
            checkpoint_every: CHECKPOINT_EVERY,
        }
    }

    /// The same log, which signs a checkpoint by itself after so many events, at least
    /// [`CHECKPOINT_EVERY_MIN`].
    #[must_use]
    pub fn with_checkpoints_every(mut self, n_events: u64) -> Self {
        self.checkpoint_every = n_events.max(CHECKPOINT_EVERY_MIN);
        self
    }

    /// After how many events it signs a checkpoint by itself.
    pub fn checkpoint_every(&self) -> u64 {
        self.checkpoint_every
    }

    /// The signing key.
    pub fn signer(&self) -> &Signer {
        &self.signer
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The source of randomness.
    pub fn random(&self) -> &dyn Random {
        &*self.random
    }

    /// The store, to read raw rows from.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Runs `work` on a consistent snapshot of one space.
    pub fn read<T>(&self, space: &Space, work: impl FnOnce(&dyn ReadTx) -> Result<T>) -> Result<T> {
        self.store.read(space, |tx| {
            let _open = Open::begin();
            work(tx)
        })
    }

    /// The same for work that may take long: see [`Store::read_long`].
    pub fn read_long<T>(
        &self,
        space: &Space,
        work: impl FnOnce(&dyn ReadTx) -> Result<T>,
    ) -> Result<T> {
        self.store.read_long(space, |tx| {
            let _open = Open::begin();
            work(tx)
        })
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
        let (name, agent) = (space.clone(), current_agent());
        let last = COMPANION.with_borrow(Clone::clone);
        self.store.write(space, move |raw| {
            log.recorded(raw, &name, Time::Onward, agent, |tx| {
                let value = work(tx)?;
                last.map_or(Ok(()), |it| it(tx))?;
                Ok(value)
            })
        })
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
        let (name, agent) = (space.clone(), current_agent());
        let last = COMPANION.with_borrow(Clone::clone);
        self.store.write_long(space, move |raw| {
            log.recorded(raw, &name, Time::Onward, agent, |tx| {
                let value = work(tx)?;
                last.map_or(Ok(()), |it| it(tx))?;
                Ok(value)
            })
        })
    }

    fn write_context(&self) -> WriteContext<'_> {
        WriteContext {
            signer: &self.signer,
            clock: &self.clock,
            random: &*self.random,
            checkpoint_every: self.checkpoint_every,
        }
    }

    fn recorded<T>(
        &self,
        raw: &mut dyn WriteTx,
        space: &Space,
        time: Time,
        agent: Option<Did>,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let _open = Open::begin();
        let mut tx = Tx::begin(raw, self.write_context(), space, time, agent)?;
        let value = work(&mut tx)?;
        tx.finish()?;
        Ok(value)
    }

    /// Lets the log go on at the time of this machine's clock, after an event from a clock that was
    /// wrong. The event says so, and may be dated before those that precede it.
    #[expect(
        clippy::disallowed_methods,
        reason = "this adds the event, as `write` does"
    )]
    pub fn reset_clock(&self, space: &Space) -> Result<()> {
        let (log, name) = (self.clone(), space.clone());
        self.store.write(space, move |raw| {
            log.recorded(raw, &name, Time::Reset, None, |tx| tx.record_clock_reset())
        })
    }

    /// Why nothing can be written to a space now, if the clock of this machine or that of the latest
    /// event is wrong.
    pub fn clock_fault(&self, space: &Space) -> Result<Option<Error>> {
        let head = self.read(space, |tx| tx.head())?;
        let latest = head.map(|it| it.hlc).unwrap_or_default();
        Ok(clock::check(&self.clock, latest).err())
    }

    /// Signs what the log is now.
    pub fn checkpoint(&self, space: &Space) -> Result<CheckpointRow> {
        self.write(space, |tx| tx.checkpoint())
    }

    /// The size and the roots of a space's log.
    pub fn roots(&self, space: &Space) -> Result<Roots> {
        self.read(space, roots)
    }
}

/// The size and the roots of this snapshot's log.
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
        .ok_or_else(|| Error::corrupt("the head's state is malformed"))?;
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

/// Whose keys may sign events of this log, and whose were revoked. Empty while all its events are of
/// version 1.
pub fn authors(tx: &dyn ReadTx) -> Result<(Vec<String>, Vec<String>)> {
    let head = tx.head()?.map(|it| it.log).unwrap_or_default();
    let identity = Identity::from_bytes(&head)?;
    let lists = identity.map(|identity| (identity.authors, identity.revoked));
    let (authors, revoked) = lists.unwrap_or_default();
    Ok((authors.into_iter().collect(), revoked.into_iter().collect()))
}

/// Which log this is; nothing before its first event of version 2.
pub fn log_id(tx: &dyn ReadTx) -> Result<Option<LogId>> {
    let head = tx.head()?.map(|it| it.log).unwrap_or_default();
    Ok(Identity::from_bytes(&head)?.map(|it| it.id))
}
