//! Edge cases in which two backends once gave different answers.

use super::{edge, event, id, node, passage, put, space};
use crate::{EdgeFilter, Node, NodeFilter, Passage, Store, Vector, When};
use kenning_core::{Code, Hlc};
use serde_json::{Map, json};

/// Runs every check.
pub(super) fn run(store: &Store) {
    every_number_survives(store);
    a_passage_is_kept_as_it_is(store);
    a_prefix_may_end_in_the_last_character(store);
    long_texts_and_zeros_may_stand_everywhere(store);
    only_finite_numbers_are_kept(store);
    very_long_and_very_short_vectors_have_a_direction(store);
    edges_of_the_same_ends_come_in_the_order_of_time(store);
    a_write_that_goes_on_after_a_failure_leaves_nothing(store);
    a_panic_in_a_read_harms_no_later_one(store);
    spaces_come_in_the_order_of_names(store);
}

/// A number that comes back with another last digit no longer has the hash that was signed.
fn every_number_survives(store: &Store) {
    let here = space("numbers");
    let mut it = node(1, "n", "b", 10);
    for (name, number) in [
        ("plain", 0.1 + 0.2),
        ("large", -4.104254305710331e269),
        ("small", 5.562684646268003e-309),
        ("zero", -0.0),
        ("most", f64::MAX),
    ] {
        it.props.insert(name.to_owned(), json!(number));
    }
    it.props.insert("count".to_owned(), json!(u64::MAX));
    it.hash = it.canonical_hash();
    put(store, &here, &it);
    let weights = [-4.104254305710331e269, 0.0, -0.0, f64::INFINITY];
    for (n, weight) in (2..).zip(weights) {
        let edge = edge(1, "r", n, weight, 10);
        store.write(&here, move |tx| tx.put_edge(&edge)).unwrap();
    }
    store
        .read(&here, |tx| {
            let stored = tx.node(it.id, When::Now)?.unwrap();
            assert_eq!(stored, it);
            assert_eq!(stored.canonical_hash(), it.hash);
            let edges = tx.edges(&EdgeFilter::default(), When::Now, 9)?;
            assert_eq!(edges.len(), weights.len());
            for edge in edges {
                assert_eq!(edge.canonical_hash(), edge.hash, "{edge:?}");
            }
            Ok(())
        })
        .unwrap();
}

fn any() -> NodeFilter {
    NodeFilter::default()
}

fn a_passage_is_kept_as_it_is(store: &Store) {
    let here = space("tokens");
    let (long, many) = ("x".repeat(50_000), "w9 ".repeat(300_000));
    let texts = [
        "don't", "RED", "a\tb", "a\0b", "'", "\u{1}", "", " ", &long, &many,
    ];
    for (n, text) in (1..).zip(texts) {
        let it = node(n, &n.to_string(), "b", 10);
        let passage = Passage {
            tokens: text.to_owned(),
            title_tokens: text.to_owned(),
            ..passage(0, text)
        };
        let stored = passage.clone();
        let write = move |tx: &mut dyn crate::WriteTx| {
            tx.put_node(&it)?;
            tx.put_passages(it.id, &[stored])
        };
        store.write(&here, write).unwrap();
        let read = store.read(&here, |tx| tx.passages(id(n))).unwrap();
        assert!(read == [passage], "{text:.20}");
    }
}

fn a_prefix_may_end_in_the_last_character(store: &Store) {
    let here = space("prefix");
    let keys = [
        "a",
        "a\u{10ffff}",
        "a\u{10ffff}b",
        "b",
        "\u{d7ff}x",
        "\u{e000}",
    ];
    for (n, key) in (1..).zip(keys) {
        put(store, &here, &node(n, key, "b", 10));
    }
    for prefix in ["", "a", "a\u{10ffff}", "\u{d7ff}", "\u{10ffff}", "b\0"] {
        let filter = NodeFilter {
            key_prefix: Some(prefix.to_owned()),
            ..any()
        };
        let expected = keys.iter().filter(|it| it.starts_with(prefix)).count();
        let listed = store.read(&here, |tx| tx.nodes(&filter, When::Now, None, 9));
        assert_eq!(listed.unwrap().len(), expected, "{prefix:?}");
    }
}

/// If one backend can store a text, all can.
fn long_texts_and_zeros_may_stand_everywhere(store: &Store) {
    let here = space("long");
    // Not the same letter again and again: that could be compressed into an entry of an index.
    let hashes = (0..200u64).map(|n| kenning_core::Hash::of(&n.to_be_bytes()).to_string());
    let long = hashes.collect::<String>();
    for (n, text) in (1..).zip([long, "nul\0nul".to_owned()]) {
        let it = Node {
            project: text.clone(),
            ..node(n, &text, &text, 10)
        };
        let vector = Vector {
            collection: text.clone(),
            id: text.clone(),
            model: text.clone(),
            numbers: vec![1.0],
            props: Map::new(),
            seq: 1,
        };
        let mut event = event(n);
        (event.author, event.kind) = (text.clone(), text.clone());
        let edge = edge(1, &text, n, 1.0, 10);
        let (stored, name) = (vector.clone(), text.clone());
        let write = move |tx: &mut dyn crate::WriteTx| {
            tx.put_node(&it)?;
            tx.put_names(it.id, std::slice::from_ref(&name))?;
            let last = u32::MAX - 1;
            tx.put_passages(it.id, &[passage(last, "red"), passage(last + 1, "blue")])?;
            tx.put_edge(&edge)?;
            tx.put_vector(&stored)?;
            tx.put_vector(&stored)?;
            tx.append_event(&event)?;
            tx.set(&name, &name, b"v")?;
            tx.set(&name, &name, b"w")
        };
        store.write(&here, write).unwrap();
        let read = store.read(&here, |tx| {
            assert_eq!(tx.find_names(&text, &any(), 1)?[0].name, text);
            assert_eq!(tx.passages(id(n))?[1].n, u32::MAX);
            let rel = EdgeFilter {
                rel: Some(text.clone()),
                ..EdgeFilter::default()
            };
            assert_eq!(tx.edges(&rel, When::Now, 9)?.len(), 1);
            assert_eq!(tx.vector(&text, &text)?, Some(vector.clone()));
            assert_eq!(tx.vectors_since(&text, 0, 9)?, [vector]);
            assert_eq!(tx.nearest(&text, &[2.0], 9)?.hits.len(), 1);
            assert_eq!(tx.events_after(n - 1, 1)?[0].kind, text);
            assert_eq!(tx.list(&text)?, [(text.clone(), b"w".to_vec())]);
            Ok(())
        });
        read.unwrap();
    }
}

fn only_finite_numbers_are_kept(store: &Store) {
    let here = space("finite");
    let vector = |numbers: Vec<f32>| Vector {
        collection: "c".to_owned(),
        id: "v".to_owned(),
        model: "m".to_owned(),
        numbers,
        props: Map::new(),
        seq: 1,
    };
    let code = |numbers: Vec<f32>| {
        let vector = vector(numbers);
        let written = store.write(&here, move |tx| tx.put_vector(&vector));
        written.err().map(|it| it.code)
    };
    assert_eq!(code(vec![]), Some(Code::InvalidInput));
    assert_eq!(code(vec![1.0, f32::NAN]), Some(Code::InvalidInput));
    assert_eq!(code(vec![f32::INFINITY]), Some(Code::InvalidInput));
    assert_eq!(code(vec![1.0; 16_001]), Some(Code::TooLarge));
    assert_eq!(code(vec![1.0; 16_000]), None);
    let near = |to: &[f32]| store.read(&here, |tx| Ok(tx.nearest("c", to, 9)?.hits));
    assert_eq!(near(&[f32::NAN]).unwrap_err().code, Code::InvalidInput);
    assert!(near(&[]).unwrap().is_empty());
    assert!(near(&vec![0.0; 16_000]).unwrap().is_empty());
    assert!(near(&vec![1.0; 16_001]).unwrap().is_empty());
    assert_eq!(near(&vec![1.0; 16_000]).unwrap().len(), 1);
    let written = store.write(&here, |tx| tx.put_edge(&edge(1, "r", 2, f64::NAN, 10)));
    assert_eq!(written.unwrap_err().code, Code::InvalidInput);
}

fn very_long_and_very_short_vectors_have_a_direction(store: &Store) {
    let here = space("lengths");
    for (id, size) in [("short", 1e-38), ("long", 1e38), ("plain", 1.0)] {
        let vector = Vector {
            collection: "c".to_owned(),
            id: id.to_owned(),
            model: "m".to_owned(),
            numbers: vec![size, size],
            props: Map::new(),
            seq: 1,
        };
        store
            .write(&here, move |tx| tx.put_vector(&vector))
            .unwrap();
    }
    for to in [[1.0, 0.0], [1e38, 0.0], [1e-38, 0.0]] {
        let near = store
            .read(&here, |tx| Ok(tx.nearest("c", &to, 9)?.hits))
            .unwrap();
        assert_eq!(near.len(), 3);
        for it in near {
            let expected = std::f64::consts::FRAC_1_SQRT_2;
            assert!((it.similarity - expected).abs() < 1e-5, "{to:?} {it:?}");
        }
    }
}

fn edges_of_the_same_ends_come_in_the_order_of_time(store: &Store) {
    let here = space("overlap");
    let until = |from: u64, to: u64| crate::Edge {
        to: Hlc(to),
        ..edge(1, "r", 2, from as f64, from)
    };
    let write = move |tx: &mut dyn crate::WriteTx| {
        tx.put_edge(&until(30, 90))?;
        tx.put_edge(&until(10, 90))?;
        tx.put_edge(&until(20, 90))
    };
    store.write(&here, write).unwrap();
    let edges = store.read(&here, |tx| {
        tx.edges(&EdgeFilter::default(), When::At(Hlc(50)), 2)
    });
    let from: Vec<u64> = edges.unwrap().iter().map(|it| it.from.0).collect();
    assert_eq!(from, [10, 20]);
}

fn a_write_that_goes_on_after_a_failure_leaves_nothing(store: &Store) {
    let here = space("goes-on");
    put(store, &here, &node(1, "n", "b", 10));
    let written = store.write(&here, |tx| {
        // The key is another node's, so this fails, and a half of it may be done.
        drop(tx.put_node(&node(2, "n", "b", 20)));
        tx.set("b", "k", b"v")
    });
    let error = written.unwrap_err();
    assert!(
        matches!(error.code, Code::Conflict | Code::Internal),
        "{error}"
    );
    assert_eq!(store.read(&here, |tx| tx.get("b", "k")).unwrap(), None);
    store.write(&here, |tx| tx.set("b", "k", b"v")).unwrap();
}

fn a_panic_in_a_read_harms_no_later_one(store: &Store) {
    let here = space("panic");
    for _ in 0..40 {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // Not `panic!`: forty messages would hide one that matters.
            let read = |_: &dyn crate::ReadTx| -> kenning_core::Result<()> {
                std::panic::resume_unwind(Box::new("on purpose"))
            };
            store.read(&here, read)
        }));
        assert!(caught.is_err());
    }
    assert!(store.read(&here, |tx| tx.head()).unwrap().is_none());
}

fn spaces_come_in_the_order_of_names(store: &Store) {
    for name in ["order-b", "order_a", "order-a", "order0", "ordera"] {
        let write = store.write(&space(name), |tx| tx.set("b", "k", b"v"));
        write.unwrap();
    }
    let spaces = store.spaces().unwrap();
    assert!(spaces.is_sorted(), "{spaces:?}");
    assert!(spaces.contains(&space("order_a")));
}
