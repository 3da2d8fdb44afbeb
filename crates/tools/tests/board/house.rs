//! A board over a real store in a fresh directory.

use kenning_core::{SeededRandom, Space};
use kenning_engine::{Caller, Engine, Options, Principal};
use kenning_store::Store;
use kenning_store_sqlite::Sqlite;
use kenning_tools::{Board, Reply, Selection};
use kenning_vault::Dir;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// A board, its vault and its data directory.
pub(crate) struct House {
    pub(crate) board: Board,
    pub(crate) root: tempfile::TempDir,
}

struct Wall;

impl kenning_core::Clock for Wall {
    fn now_ms(&self) -> u64 {
        1_800_000_000_000
    }
}

impl House {
    pub(crate) fn new() -> Self {
        Self::select(Selection::default())
    }

    pub(crate) fn select(selection: Selection) -> Self {
        let root = tempfile::tempdir().unwrap();
        let vault = root.path().join("vault");
        Dir::create(&vault)
            .unwrap()
            .write("People/Bill Baue.md", b"# Bill Baue\n")
            .unwrap();
        let board = Self::board(&root, Some(vault), selection);
        Self { board, root }
    }

    pub(crate) fn board(
        root: &tempfile::TempDir,
        vault: Option<PathBuf>,
        selection: Selection,
    ) -> Board {
        let data = Dir::create(&root.path().join("data")).unwrap();
        let engine = Engine::open(Options {
            store: Store::new(Sqlite::open(data.path()).unwrap()),
            data,
            vault,
            clock: Arc::new(Wall),
            random: Arc::new(SeededRandom::new(7)),
            read_only: selection.read_only,
        })
        .unwrap();
        Board::new(Arc::new(engine), selection).unwrap()
    }

    pub(crate) fn vault(&self) -> PathBuf {
        self.root.path().join("vault")
    }

    pub(crate) fn call(&self, name: &str, arguments: Value) -> Reply {
        let caller = Caller::new(Principal::owner(Space::default()));
        self.board
            .call(name, arguments, &caller)
            .expect("a listed tool")
    }
}
