//! No event of a peer changes a foundational memory by itself, whatever it does.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use kenning_audit::foreign::{Batch, Entry, Foreign};
use kenning_audit::{Change, Draft, EdgeDraft, Log, Signer, Tx};
use kenning_core::{FixedClock, Kind, NodeId, Result, SeededRandom, Space};
use kenning_kernel::{Bucket, Raw};
use kenning_omi::hold;
use kenning_store::{Node, ReadTx, Row, Store, When};
use kenning_testing_model::Model;
use serde_json::{Map, json};
use std::sync::Arc;

fn log(seed: u64) -> Log {
    let random = Arc::new(SeededRandom::new(seed));
    let signer = Signer::generate(&*random);
    let clock = Arc::new(FixedClock::at(1_800_000_000_000));
    Log::new(
        Store::new(Model::default()),
        signer,
        clock as _,
        random as _,
    )
}

fn memory(key: &str, body: &str, tags: &[&str]) -> Draft {
    let mut props = Map::new();
    props.insert("memory_type".to_owned(), "fact".into());
    props.insert("tags".to_owned(), tags.into());
    Draft {
        kind: Kind::Memory,
        project: String::new(),
        key: key.to_owned(),
        title: String::new(),
        body: body.to_owned(),
        props,
    }
}

/// What somebody writes there, as it comes here.
fn write(there: &Log, work: impl FnOnce(&mut Tx<'_>) -> Result<()> + Send + 'static) -> Entry {
    let id = there
        .write(&Space::default(), move |tx| {
            work(tx)?;
            tx.record("MemoryStoredEvent", json!({}))
        })
        .unwrap();
    let read = |tx: &dyn ReadTx| {
        let row = tx.event_by_id(&id.0)?.unwrap();
        let mut rows = Vec::new();
        for change in kenning_audit::event::parse(&row).unwrap().changes {
            match change {
                Change::PutNode { id, hash, .. } => {
                    let node = tx.node(id, When::Now)?.filter(|it| it.hash == hash);
                    rows.extend(node.map(Row::Node));
                }
                Change::PutEdge { src, rel, dst, .. } => {
                    let states = tx.edge_history(src, &rel, dst)?;
                    rows.extend(states.into_iter().map(Row::Edge));
                }
                _ => {}
            }
        }
        Foreign::check(row, rows)
    };
    let foreign = there.read(&Space::default(), read).unwrap();
    Entry::Event(Box::new(foreign))
}

/// Takes events in; says which of them were kept aside.
fn take(here: &Log, entries: Vec<Entry>, is_strict: bool) -> Vec<bool> {
    here.write(&Space::default(), move |tx| {
        let mut batch = Batch {
            entries,
            ..Batch::default()
        };
        if is_strict {
            hold(tx, &mut batch)?;
        }
        let is_held = |it: &Entry| matches!(it, Entry::Id(_));
        let held = batch.entries.iter().map(is_held).collect();
        tx.merge(batch)?;
        Ok(held)
    })
    .unwrap()
}

fn find(log: &Log, key: &str) -> Option<Node> {
    log.read(&Space::default(), |tx| {
        tx.node_by_key("", Kind::Memory, key, When::Now)
    })
    .unwrap()
}

/// Two nodes that have the foundational memory `f` and the ordinary one `o`.
fn pair() -> (Log, Log) {
    let (here, there) = (log(1), log(2));
    let did = there.signer().did().clone();
    here.write(&Space::default(), move |tx| {
        tx.add_author(&did);
        tx.record("PeerAdded", json!({})).map(drop)
    })
    .unwrap();
    let entry = write(&there, |tx| {
        tx.put_node(memory("f", "never deploy on Fridays", &["foundational"]))?;
        tx.put_node(memory("o", "the plant is a fern", &[]))
            .map(drop)
    });
    assert_eq!(take(&here, vec![entry], false), [false]);
    (here, there)
}

fn edge(src: NodeId, rel: &str, dst: NodeId) -> EdgeDraft {
    EdgeDraft {
        src,
        rel: rel.to_owned(),
        dst,
        weight: 1.0,
        props: Map::new(),
    }
}

#[test]
fn every_way_to_change_a_foundational_memory_waits() {
    type Way = fn(&mut Tx<'_>, NodeId, NodeId) -> Result<()>;
    let ways: [(&str, Way); 8] = [
        ("another text", |tx, _, _| {
            let draft = memory("f", "always deploy on Fridays", &["foundational"]);
            tx.put_node(draft).map(drop)
        }),
        ("the tag is taken away", |tx, _, _| {
            let draft = memory("f", "never deploy on Fridays", &[]);
            tx.put_node(draft).map(drop)
        }),
        ("it is removed", |tx, f, _| tx.remove_node(f)),
        ("another one takes its key", |tx, f, _| {
            tx.remove_node(f)?;
            tx.put_node(memory("f", "another", &[])).map(drop)
        }),
        ("it gets another key", |tx, f, _| {
            tx.move_node(f, memory("g", "never deploy on Fridays", &[]))
                .map(drop)
        }),
        ("it becomes something else", |tx, f, _| {
            let draft = Draft {
                kind: Kind::Document,
                ..memory("f", "a document", &[])
            };
            tx.move_node(f, draft).map(drop)
        }),
        ("it is said to be superseded", |tx, f, o| {
            tx.put_edge(edge(o, "SUPERSEDES", f)).map(drop)
        }),
        ("a new one, with the tag spelled otherwise", |tx, _, _| {
            tx.put_node(memory("n", "new", &["# Foundational "]))
                .map(drop)
        }),
    ];
    for (name, way) in ways {
        let (here, there) = pair();
        let (f, o) = (find(&there, "f").unwrap().id, find(&there, "o").unwrap().id);
        let before = find(&here, "f").unwrap().hash;
        let entry = write(&there, move |tx| way(tx, f, o));
        assert_eq!(take(&here, vec![entry], true), [true], "{name}");
        assert_eq!(find(&here, "f").unwrap().hash, before, "{name}");
        assert!(find(&here, "n").is_none(), "{name}");
    }
}

#[test]
fn events_of_one_page_are_seen_together_and_others_do_not_wait() {
    let (here, there) = pair();
    let first = write(&there, |tx| {
        tx.put_node(memory("n", "new", &["foundational"])).map(drop)
    });
    let second = write(&there, |tx| tx.put_node(memory("n", "new", &[])).map(drop));
    let third = write(&there, |tx| {
        tx.put_node(memory("o", "the plant is a fig", &[]))
            .map(drop)
    });
    let (f, o) = (find(&there, "f").unwrap().id, find(&there, "o").unwrap().id);
    let fourth = write(&there, move |tx| {
        tx.put_edge(edge(o, "RELATED_TO", f)).map(drop)
    });
    let entries = vec![first, second, third, fourth];
    assert_eq!(take(&here, entries, true), [true, true, false, false]);
    assert!(find(&here, "n").is_none());
    assert_eq!(find(&here, "o").unwrap().body, "the plant is a fig");
}

#[test]
fn what_this_node_proposed_and_another_stores_has_two_keys_and_nothing_else_has() {
    let propose = |log: &Log| {
        let row = json!({
            "memories": [{
                "content": "ask before you delete", "memory_type": "fact", "confidence": null,
                "related_to": [], "supersedes": null, "memory_id": null,
                "tags": ["foundational"], "session_id": null,
            }],
            "by": log.signer().did().as_str(), "at_ms": 1,
        });
        log.write(&Space::default(), move |tx| {
            let rows: Bucket<Raw> = Bucket::new("omi/pending");
            rows.set(tx, "pending_1", &Raw(row.to_string().into_bytes()))?;
            tx.record("WriteProposed", json!({})).map(drop)
        })
        .unwrap();
    };
    type Way = fn(&mut Tx<'_>, NodeId) -> Result<()>;
    let ways: [(bool, Way); 4] = [
        (false, |tx, _| {
            let draft = memory("n", "ask before you delete", &["foundational"]);
            tx.put_node(draft).map(drop)
        }),
        (true, |tx, _| {
            let draft = memory("n", "delete at once", &["foundational"]);
            tx.put_node(draft).map(drop)
        }),
        // In the place of another one.
        (true, |tx, _| {
            let draft = memory("f", "ask before you delete", &["foundational"]);
            tx.put_node(draft).map(drop)
        }),
        (true, |tx, f| {
            let draft = memory("n", "ask before you delete", &["foundational"]);
            tx.move_node(f, draft).map(drop)
        }),
    ];
    for (n, (is_held, way)) in ways.into_iter().enumerate() {
        let (here, there) = pair();
        propose(&here);
        let f = find(&there, "f").unwrap().id;
        let entry = write(&there, move |tx| way(tx, f));
        assert_eq!(take(&here, vec![entry], true), [is_held], "way {n}");
    }
    // What nobody here proposed has one key.
    let (here, there) = pair();
    let entry = write(&there, |tx| {
        let draft = memory("n", "ask before you delete", &["foundational"]);
        tx.put_node(draft).map(drop)
    });
    assert_eq!(take(&here, vec![entry], true), [true]);
}
