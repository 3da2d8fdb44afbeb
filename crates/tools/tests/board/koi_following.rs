//! Entities follow what is stated by looking at the differences: the graph must be the one that all
//! statements make from scratch, whoever wrote what and in which order.

use crate::Fixture;
use crate::koi_entities::{done_text, graph, resolve};
use kenning_core::{SeededRandom, Space};
use kenning_engine::Caller;
use kenning_engine::koi::{RegisterEntity, StatedDocument, StatedEntity, StatedRelation};
use kenning_tools::Selection;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const EDITS: usize = 160;
const CHECK_EVERY: usize = 20;

const NAMES: [&str; 7] = [
    "Ann Lee",
    "Bo",
    "Cy Dee",
    "Kelp Works",
    "Salish Sea",
    "Sea",
    "Ann",
];
const FOLDERS: [(&str, &str); 4] = [
    ("People", "Person"),
    ("Organizations", "Organization"),
    ("Bioregions", "Bioregion"),
    ("Concepts", "Concept"),
];
const FIELDS: [&str; 4] = ["knows", "affiliation", "related", "founder"];
/// What is kept of the graph beside nodes and edges. `at` tells how often it was written.
const ROWS: [&str; 8] = [
    "entities/nodes",
    "entities/edges",
    "entities/notes",
    "entities/stated",
    "entities/exact",
    "entities/alias",
    "entities/sound",
    "entities/state",
];

type Rows = BTreeMap<(String, String), Vec<u8>>;

struct World {
    random: SeededRandom,
    processes: Vec<Fixture>,
}

impl World {
    fn below(&self, n: usize) -> usize {
        usize::try_from(self.random.below(n as u64)).unwrap()
    }

    fn one_of<'a, T>(&self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn name(&self) -> &'static str {
        self.one_of::<&str>(&NAMES)
    }

    fn text(&self) -> String {
        let mut text = "---\n".to_owned();
        if self.below(3) == 0 {
            text += &format!("aliases: [{}, other {}]\n", self.name(), self.below(3));
        }
        if self.below(5) == 0 {
            text += &format!("name: {}\n", self.name());
        }
        for field in FIELDS {
            if self.below(3) == 0 {
                let (folder, _) = self.one_of(&FOLDERS);
                text += &match self.below(2) {
                    0 => format!("{field}: \"[[{folder}/{}]]\"\n", self.name()),
                    _ => format!("{field}: {}\n", self.name()),
                };
            }
        }
        format!("{text}---\nSeen with [[{}]].\n", self.name())
    }

    fn path(&self) -> String {
        let (folder, _) = self.one_of(&FOLDERS);
        format!("{folder}/{}.md", self.name())
    }

    fn edit(&self) {
        let fixture = self.one_of(&self.processes);
        let (koi, caller) = (fixture.board.engine().koi(), caller());
        match self.below(12) {
            0..3 => {
                let note =
                    json!({ "path": self.path(), "content": self.text(), "overwrite": true });
                fixture.call("vault_write_note", note);
            }
            3 => {
                let path = fixture.vault().join(self.path());
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, self.text()).unwrap();
            }
            4 => drop(fs::remove_file(fixture.vault().join(self.path()))),
            5..7 => {
                let stated = self.document();
                koi.ingest_statement(&caller, stated).unwrap();
            }
            7 => {
                let rid = format!("web:page{}", self.below(3));
                drop(koi.forget_statement(&caller, &rid));
            }
            8 => drop(koi.merge_entities(&caller, self.name(), self.name())),
            9 => {
                drop(koi.unmerge_entity(&caller, self.name()));
            }
            10 => {
                let undo = self.below(2) == 0;
                drop(koi.veto_entity(&caller, self.name(), self.name(), undo));
            }
            _ => {
                let (folder, kind) = self.one_of(&FOLDERS);
                let note = RegisterEntity {
                    vault_path: format!("{folder}/{}.md", self.name()),
                    entity_type: (*kind).to_owned(),
                    name: self.name().to_owned(),
                    frontmatter: json!({ "knows": self.name() }).as_object().unwrap().clone(),
                    ..RegisterEntity::default()
                };
                drop(koi.register_entity(&caller, note));
            }
        }
        if self.below(2) == 0 {
            resolve(self.one_of(&self.processes), self.name(), None);
        }
    }

    fn document(&self) -> StatedDocument {
        let entities = (0..self.below(3)).map(|_| StatedEntity {
            name: self.name().to_owned(),
            kind: self.one_of(&FOLDERS).1.to_owned(),
            n_mentions: 1,
            confidence: 0.9,
            ..StatedEntity::default()
        });
        let relations = (0..self.below(3)).map(|_| StatedRelation {
            subject: self.name().to_owned(),
            predicate: "related_to".to_owned(),
            object: self.name().to_owned(),
            confidence: 0.8,
        });
        StatedDocument {
            rid: match self.below(3) {
                // A document that is a note of the vault, or will be.
                0 => format!("vault:{}", self.path()),
                _ => format!("web:page{}", self.below(3)),
            },
            entities: entities.collect(),
            relations: relations.collect(),
            ..StatedDocument::default()
        }
    }

    /// Everything that follows from statements is thrown away and made again: it is the same as before.
    fn check(&self, when: &str) {
        // One that has seen nothing looks at every file.
        let fixture = &self.processes[0];
        let third = fixture.again(Selection::default());
        resolve(&third, "Bo", None);
        let (before, graph_before) = (rows(&third), graph(&third));
        wipe(&third);
        let fourth = fixture.again(Selection::default());
        resolve(&fourth, "Bo", None);
        let (after, graph_after) = (rows(&fourth), graph(&fourth));
        assert_eq!(graph_before, graph_after, "{when}");
        for (key, value) in &before {
            let text = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
            let there = after.get(key).map(|it| text(it));
            assert_eq!(Some(text(value)), there, "{when}: {key:?}");
        }
        assert_eq!(before.len(), after.len(), "{when}");
    }
}

fn caller() -> Caller {
    Caller::new(kenning_engine::Principal::owner(Space::default()))
}

fn rows(fixture: &Fixture) -> Rows {
    let read = fixture.log().read(&Space::default(), |tx| {
        let mut all = Rows::new();
        for bucket in ROWS {
            for (key, value) in tx.list(bucket)? {
                if !["at", "recent", "said"].contains(&key.as_str()) {
                    all.insert((bucket.to_owned(), key), value);
                }
            }
        }
        Ok(all)
    });
    read.unwrap()
}

fn wipe(fixture: &Fixture) {
    let wiped = fixture.log().write(&Space::default(), |tx| {
        for bucket in ROWS {
            for (key, _) in tx.list(bucket)? {
                if !["recent", "said"].contains(&key.as_str()) {
                    tx.unset(bucket, &key)?;
                }
            }
        }
        Ok(())
    });
    wiped.unwrap();
}

#[test]
fn koi_after_random_changes_by_two_processes_the_graph_is_the_one_from_scratch() {
    for seed in [1, 2] {
        let first = Fixture::new();
        let second = first.again(Selection::default());
        let world = World {
            random: SeededRandom::new(seed),
            processes: vec![first, second],
        };
        for n in 1..=EDITS {
            world.edit();
            if n % CHECK_EVERY == 0 {
                world.check(&format!("seed {seed}, {n} changes"));
            }
        }
        assert!(graph(&world.processes[0]).len() > 5, "seed {seed}");
    }
}

/// A run over many notes is several transactions. One that was stopped between two of them is finished by
/// whoever looks next, and by whoever has the graph of the time before in memory.
#[test]
fn koi_a_run_that_was_stopped_between_transactions_is_finished_by_the_next() {
    let first = Fixture::new();
    resolve(&first, "Bo", None);
    let note = json!({ "path": "People/Bo.md", "content": "---\nknows: P 1\n---\n" });
    done_text(&first, "vault_write_note", note);
    resolve(&first, "Bo", None);
    for n in 0..700 {
        let text = format!("---\nknows: [P {}, Bo]\n---\n", (n + 1) % 700);
        fs::write(first.vault().join(format!("People/P {n}.md")), text).unwrap();
    }
    let second = first.again(Selection::default());
    let caller = caller();
    let cancelled = Arc::clone(&caller.cancelled);
    let log = second.log().clone();
    let stopper = std::thread::spawn(move || {
        let is_under_way = || {
            let at = log.read(&Space::default(), |tx| tx.get("entities/state", "at"));
            at.unwrap().is_some_and(|it| it.ends_with(b" "))
        };
        while !is_under_way() {
            std::thread::yield_now();
        }
        cancelled.store(true, Ordering::Relaxed);
    });
    let stopped = second.board.engine().koi().entity(&caller, "Bo");
    stopper.join().unwrap();
    assert!(stopped.is_err(), "the run was over before it was stopped");
    // Who knew the graph of before finishes it.
    let known: Value = resolve(&first, "P 3", None);
    assert!(known["candidates"][0]["uri"].as_str().is_some(), "{known}");
    let world = World {
        random: SeededRandom::new(0),
        processes: vec![first, second],
    };
    world.check("after the stopped run");
}
