//! One program over a store in memory, and the network between two.

use super::{HOUR_MS, START_MS, wrong};
use crate::fence::Fence;
use crate::node::space;
use jiff::tz::TimeZone;
use kenning_core::{Clock, Error, FixedClock, Result, SeededRandom};
use kenning_engine::{
    Caller, Engine, Options, PeerAnswer, PeerMessage, Principal, kami, kiwi, koi,
};
use kenning_kernel::{Carrier, Kernel};
use kenning_store::{Backend, Store};
use kenning_testing_model::Model;
use kenning_tools::{Board, Selection};
use kenning_vault::Dir;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A program, and what outlives it.
pub(super) struct Program {
    pub(super) board: Board,
    pub(super) kernel: Arc<Kernel>,
    pub(super) clock: Arc<FixedClock>,
    pub(super) home: tempfile::TempDir,
    pub(super) has_vault: bool,
    store: Arc<dyn Backend>,
    fence: Fence,
    n_opened: u64,
    seed: u64,
}

impl Program {
    pub(super) fn new(draw: &SeededRandom, has_vault: bool) -> Result<Self> {
        let home = tempfile::tempdir().map_err(|it| wrong("a directory").because(it))?;
        let store: Arc<dyn Backend> = Arc::new(Model::default());
        let fence = Fence::around(&store);
        let clock = Arc::new(FixedClock::at(START_MS + draw.below(2 * HOUR_MS)));
        let seed = draw.next();
        let (board, kernel) = open(&fence, &clock, home.path().to_owned(), has_vault, seed)?;
        Ok(Self {
            board,
            kernel,
            store,
            fence,
            clock,
            home,
            has_vault,
            n_opened: 1,
            seed,
        })
    }

    /// Kills the process: whatever it was about to do is not done, and another one opens the same store.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.fence.kill();
        self.open_again()
    }

    /// The process dies with one of its next writes, perhaps.
    pub(super) fn endanger(&self, draw: &SeededRandom) {
        let (n_writes, is_committed) = (draw.below(6), draw.below(2) == 0);
        self.fence.kill_after(n_writes, is_committed);
    }

    /// Opens the store again if the process died meanwhile. Says whether it did.
    pub(super) fn revive(&mut self) -> Result<bool> {
        self.fence.spare();
        let is_dead = self.fence.is_dead();
        if is_dead {
            self.open_again()?;
        }
        Ok(is_dead)
    }

    fn open_again(&mut self) -> Result<()> {
        let home = self.home.path().to_owned();
        let seed = self.seed.wrapping_add(self.n_opened);
        self.n_opened += 1;
        let fence = Fence::around(&self.store);
        let (board, kernel) = open(&fence, &self.clock, home, self.has_vault, seed)?;
        (self.board, self.kernel, self.fence) = (board, kernel, fence);
        Ok(())
    }

    pub(super) fn caller(&self) -> Caller {
        Caller::new(Principal::owner(space())).by_person()
    }

    pub(super) fn call(&self, tool: &str, input: Value) -> Result<Value> {
        let reply = self.board.call(tool, input, &self.caller());
        let reply = reply.ok_or_else(|| wrong(format!("no tool `{tool}`")))?;
        let answer = reply.to_json();
        match reply.is_error() {
            true => Err(wrong(format!("`{tool}`: {answer}"))),
            false => Ok(answer),
        }
    }

    pub(super) fn size(&self) -> Result<u64> {
        self.kernel.later().flush();
        Ok(self.kernel.log().roots(&space())?.seq)
    }
}

fn open(
    fence: &Fence,
    clock: &Arc<FixedClock>,
    home: PathBuf,
    has_vault: bool,
    seed: u64,
) -> Result<(Board, Arc<Kernel>)> {
    for name in ["vault", "project"] {
        Dir::create(&home.join(name))?;
    }
    let (options, wings) = Options {
        store: Store::new(fence.clone()),
        data: Dir::create(&home.join("data"))?,
        vault: has_vault.then(|| home.join("vault")),
        omi: Some(home.join("omi")),
        project: Some(home.join("project")),
        wasm: kami::WasmOptions::default(),
        items: kiwi::ItemOptions {
            user: Some(home.join("user")),
            ..kiwi::ItemOptions::default()
        },
        repositories: koi::RepositoryOptions::default(),
        mail: None,
        web: koi::WebOptions::default(),
        space: space(),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        zone: TimeZone::UTC,
        random: Arc::new(SeededRandom::new(seed)),
        environment: Arc::new(|_| None),
        shared: false,
        read_only: false,
    }
    .split();
    let kernel = Arc::new(Kernel::open(options)?);
    let engine = Engine::over(Arc::clone(&kernel), wings)?;
    let selection = Selection {
        toolsets: vec!["all".to_owned()],
        ..Selection::default()
    };
    let board = Board::new(Arc::new(engine), selection)?;
    Ok((board, kernel))
}

/// A network between two programs.
pub(super) struct Wire<'a> {
    pub(super) there: &'a Program,
    pub(super) draw: &'a SeededRandom,
    pub(super) is_bad: bool,
    /// Messages that were sent before and may come again.
    pub(super) old: Vec<PeerMessage>,
}

impl Carrier for Wire<'_> {
    fn post(&mut self, message: &PeerMessage) -> Result<PeerAnswer> {
        let engine = self.there.board.engine();
        if self.is_bad {
            let lost = || Error::unavailable("the message was lost");
            match self.draw.below(16) {
                0 => return Err(lost()),
                1 => {
                    // It arrives, and the answer does not.
                    let _ = engine.answer_peer(message);
                    return Err(lost());
                }
                2 => {
                    let _ = engine.answer_peer(message);
                }
                3 => {
                    for it in self.old.drain(..) {
                        if it.challenge.is_some() && engine.answer_peer(&it).is_ok() {
                            return Err(wrong("a message was taken twice"));
                        }
                    }
                }
                _ => {}
            }
            self.old.push(message.clone());
        }
        engine.answer_peer(message)
    }

    fn wait(&mut self, _: Duration) {}
}
