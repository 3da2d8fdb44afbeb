//! A store in memory: what the trait promises, as simply as possible.
//!
//! Nothing here is fast or clever, so that a reader can see that it is right: each table is one sorted
//! map, each question is a walk over it. A write changes the maps in place and notes how to undo each
//! change; a write that fails or panics is undone.

mod read;
mod write;

use kenning_core::{Error, Hash, Hlc, NodeId, Result, Space};
use kenning_store::{
    Backend, CheckpointRow, Edge, EventRow, HeadRow, Node, Passage, ReadWork, Vector, Wake,
    WriteWork,
};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// One space.
#[derive(Default)]
struct State {
    nodes: BTreeMap<NodeId, Node>,
    history: BTreeMap<(NodeId, u64), (Node, Hlc)>,
    edges: BTreeMap<(NodeId, String, NodeId, Hlc), Edge>,
    passages: BTreeMap<(NodeId, u32), Passage>,
    names: BTreeMap<(NodeId, String), ()>,
    vectors: BTreeMap<(String, String), Vector>,
    events: BTreeMap<u64, EventRow>,
    tiles: BTreeMap<(u8, u64), Hash>,
    checkpoints: BTreeMap<u64, CheckpointRow>,
    /// One row at the most.
    head: BTreeMap<(), HeadRow>,
    kv: BTreeMap<(String, String), Vec<u8>>,
}

/// A store in memory. Clones share it, as two processes share a file.
#[derive(Clone, Default)]
pub struct Model {
    spaces: Arc<RwLock<BTreeMap<Space, State>>>,
    wakes: Arc<RwLock<Vec<Wake>>>,
}

type Undo = Box<dyn FnOnce(&mut State)>;

/// A transaction: `S` is `&State` in a read and `&mut State` in a write.
struct Tx<S> {
    state: S,
    undo: Vec<Undo>,
}

impl<S: Borrow<State>> Tx<S> {
    fn new(state: S) -> Self {
        let undo = Vec::new();
        Self { state, undo }
    }

    fn state(&self) -> &State {
        self.state.borrow()
    }
}

impl Backend for Model {
    fn read(&self, space: &Space, work: &mut ReadWork<'_>) -> Result<()> {
        let spaces = self.spaces.read().unwrap_or_else(PoisonError::into_inner);
        let nothing = State::default();
        work(&Tx::new(spaces.get(space).unwrap_or(&nothing)))
    }

    fn write(&self, space: &Space, work: WriteWork) -> Result<()> {
        let mut spaces = self.spaces.write().unwrap_or_else(PoisonError::into_inner);
        let mut tx = Tx::new(spaces.entry(space.clone()).or_default());
        let done = catch_unwind(AssertUnwindSafe(|| work(&mut tx)));
        let done = done.unwrap_or_else(|_| Err(Error::internal("a write panicked")));
        if done.is_err() {
            let undo = std::mem::take(&mut tx.undo);
            undo.into_iter().rev().for_each(|it| it(tx.state));
        }
        drop(spaces);
        let wakes = self.wakes.read().unwrap_or_else(PoisonError::into_inner);
        wakes.iter().for_each(|wake| wake());
        done
    }

    fn subscribe(&self, wake: Wake) -> Duration {
        let mut wakes = self.wakes.write().unwrap_or_else(PoisonError::into_inner);
        wakes.push(wake);
        Duration::from_secs(1)
    }

    fn spaces(&self) -> Result<Vec<Space>> {
        // Every write of `audit` leaves a head; what only a test wrote may leave none.
        let spaces = self.spaces.read().unwrap_or_else(PoisonError::into_inner);
        let with_rows = spaces
            .iter()
            .filter(|entry| !entry.1.head.is_empty() || !entry.1.kv.is_empty());
        Ok(with_rows.map(|it| it.0.clone()).collect())
    }

    fn scrub(&self) -> Result<bool> {
        Ok(true)
    }

    fn check(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn describe(&self) -> String {
        "a model in memory".to_owned()
    }
}
