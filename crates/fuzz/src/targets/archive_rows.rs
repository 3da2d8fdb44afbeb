//! Rows of a backup, put back.

use super::{ensure, text};
use crate::{Subject, Target};
use kenning_audit::{Verify, archive, verify};
use kenning_core::{Code, Space};
use kenning_store::Store;
use kenning_store_sqlite::Sqlite;
use kenning_testing::Fixture;
use serde_json::{Value, json};
use std::sync::LazyLock;

pub(super) const TARGET: Target = Target {
    name: "archive_rows",
    about: "rows that a stranger changed are refused or verified, and never more than that",
    words: WORDS,
    seeds: || vec![SEED.clone().into_bytes()],
    generate: |source| {
        let mut rows: Vec<&str> = SEED.lines().collect();
        for _ in 0..source.below(6) {
            let at = source.below(rows.len());
            match source.below(3) {
                0 => {
                    rows.remove(at);
                }
                1 => rows.swap(at, 0),
                _ => rows.push(rows[at]),
            }
            if rows.is_empty() {
                break;
            }
        }
        rows.join("\n").into_bytes()
    },
    open: || {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::new(Sqlite::open(directory.path()).expect("a store"));
        Box::new(Rows {
            store,
            _directory: directory,
            n_spaces: 0,
        })
    },
    pass_cases: 150,
    fresh_every: 500,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "\"table\":\"nodes\"",
    "\"table\":\"events\"",
    "\"table\":\"kv\"",
    "\"table\":\"heads\"",
    "\"table\":\"tiles\"",
    "\"table\":\"checkpoints\"",
    "\"seq\":",
    "\"hlc\":",
    "\"hash\":\"",
    "\"props\":",
    "\"payload\":\"",
    "null",
    "{}",
    "\n",
    "\"table\":\"vectors\"",
    "\"numbers\":[",
    "1e39",
    "\"rev\":",
    "\"state\":\"",
    "ff",
    "+f",
];

/// The rows of a small store.
static SEED: LazyLock<String> = LazyLock::new(|| {
    let fixture = Fixture::new();
    let note = json!({ "path": "a.md", "content": "# A\n\n[[People/Bill Baue]]" });
    fixture.call("vault_write_note", note);
    let memory = json!({ "content": "The sky is blue.", "memory_type": "fact" });
    fixture.call("memory_store", memory);
    let vector = json!({ "id": "v", "vector": [1.0, 0.5], "metadata": { "a": 1 } });
    fixture
        .board
        .call("kg_vector_upsert", vector, &fixture.owner());
    fixture
        .log()
        .checkpoint(&Space::default())
        .expect("a checkpoint");
    let mut lines = Vec::new();
    let dumped = fixture.log().read(&Space::default(), |tx| {
        archive::dump(tx, &mut |row| {
            lines.push(row.to_string());
            Ok(())
        })
    });
    dumped.expect("rows");
    lines.join("\n")
});

struct Rows {
    store: Store,
    _directory: tempfile::TempDir,
    n_spaces: u64,
}

impl Subject for Rows {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        self.n_spaces += 1;
        let space: Space = format!("s{}", self.n_spaces).parse()?;
        let text = text(input).into_owned();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let rows = lines.into_iter().map(|line| {
            serde_json::from_str::<Value>(&line)
                .map_err(|_| kenning_core::Error::corrupt("a line is not JSON"))
        });
        match archive::load(&self.store, &space, rows) {
            Err(error) => {
                let code = error.code;
                ensure!(
                    code != Code::Internal,
                    "rows were answered with {code:?}: {error}"
                );
            }
            Ok(_) => {
                let checked = self
                    .store
                    .read(&space, |tx| verify(tx, &Verify::of(&space), &|_| {}));
                if let Err(error) = checked {
                    let code = error.code;
                    ensure!(
                        code == Code::Corrupt,
                        "verifying was answered with {code:?}: {error}"
                    );
                }
                let again = self
                    .store
                    .read(&space, |tx| archive::dump(tx, &mut |_| Ok(())));
                if let Err(error) = again {
                    ensure!(
                        error.code == Code::Corrupt,
                        "a dump was answered with {:?}: {error}",
                        error.code
                    );
                }
            }
        }
        Ok(())
    }
}
