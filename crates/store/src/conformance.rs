//! The conformance test that every backend must pass.
//!
//! A backend's test calls [`run`] with a function that opens the same empty database again and again;
//! two stores opened there stand for two processes. The test uses nothing but the trait, so all
//! backends that pass behave alike. It panics where a promise is broken, as tests do.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "this module is a test that crates share"
)]

mod edge_cases;
mod erasure;
mod log_query;

use crate::{
    CheckpointRow, Edge, EdgeFilter, EventRow, HeadRow, IndexKind, Node, NodeFilter, Passage, Row,
    SealedData, Store, Table, TileRow, Vector, When,
};
use kenning_core::{Code, Error, Hash, Hlc, Kind, NodeId, SeededRandom, Space};
use serde_json::{Map, Value, json};

/// Runs every check. `open` opens the same database each time.
pub fn run(open: &dyn Fn() -> Store) {
    let store = open();
    nodes_are_found_by_id_and_key(&store);
    a_superseded_revision_can_still_be_read(&store);
    a_removed_node_is_gone_now_and_there_then(&store);
    edges_hold_from_and_to(&store);
    passages_are_replaced_as_a_whole(&store);
    filters_admit_what_they_count(&store);
    every_character_survives(&store);
    edge_cases::run(&store);
    vectors_are_followed_by_seq(&store);
    the_nearest_vectors_come_first(&store);
    names_that_are_almost_the_same_are_found(&store);
    events_keep_their_order(&store);
    log_query::run(&store);
    a_failed_write_leaves_nothing(&store);
    a_panic_in_a_write_leaves_nothing(&store);
    spaces_do_not_see_each_other(&store);
    pages_are_whole(&store);
    another_process_sees_the_next_call(&store, &open());
    many_writers_lose_nothing(open);
    raw_rows_can_be_moved(&store, &open());
    erasure::run(&store);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

fn space(name: &str) -> Space {
    name.parse().unwrap()
}

fn id(n: u64) -> NodeId {
    NodeId::new(Hlc::from_ms(1_000), &SeededRandom::new(n))
}

/// A node with a body, at its first revision.
pub fn node(n: u64, key: &str, body: &str, at: u64) -> Node {
    let mut node = Node {
        id: id(n),
        kind: Kind::Document,
        project: String::new(),
        key: key.to_owned(),
        title: format!("title of {key}"),
        body: body.to_owned(),
        props: Map::from_iter([("tags".to_owned(), json!(["one", "two"]))]),
        created: Hlc(at),
        updated: Hlc(at),
        hash: Hash::default(),
        rev: 1,
    };
    node.hash = node.canonical_hash();
    node
}

fn next(node: &Node, body: &str, at: u64) -> Node {
    let mut node = Node {
        body: body.to_owned(),
        updated: Hlc(at),
        rev: node.rev + 1,
        ..node.clone()
    };
    node.hash = node.canonical_hash();
    node
}

fn passage(n: u32, text: &str) -> Passage {
    Passage {
        n,
        text: text.to_owned(),
        start: u64::from(n) * 100,
        tokens: text.to_lowercase(),
        title_tokens: "heading".to_owned(),
    }
}

fn put(store: &Store, space: &Space, node: &Node) {
    let node = node.clone();
    store.write(space, move |tx| tx.put_node(&node)).unwrap();
}

fn nodes_are_found_by_id_and_key(store: &Store) {
    let here = space("nodes");
    let one = node(1, "a/one.md", "text", 10);
    put(store, &here, &one);
    let by_id = store.read(&here, |tx| tx.node(one.id, When::Now)).unwrap();
    assert_eq!(by_id.as_ref(), Some(&one));
    assert_eq!(
        by_id.unwrap().canonical_hash(),
        one.hash,
        "the content survives to the byte"
    );
    let by_key = |kind, project: &'static str, key: &'static str| {
        store
            .read(&here, move |tx| {
                tx.node_by_key(project, kind, key, When::Now)
            })
            .unwrap()
    };
    assert_eq!(by_key(Kind::Document, "", "a/one.md"), Some(one.clone()));
    assert_eq!(by_key(Kind::Memory, "", "a/one.md"), None);
    assert_eq!(by_key(Kind::Document, "p", "a/one.md"), None);
    let twin = Node { id: id(2), ..one };
    let error = store
        .write(&here, move |tx| tx.put_node(&twin))
        .unwrap_err();
    assert_eq!(
        error.code,
        Code::Conflict,
        "a key is unique per project and kind"
    );
}

fn a_superseded_revision_can_still_be_read(store: &Store) {
    let here = space("history");
    let first = node(1, "n", "first", 10);
    let second = next(&first, "second", 20);
    let third = next(&second, "third", 30);
    for revision in [&first, &second, &third] {
        put(store, &here, revision);
    }
    for (at, expected) in [
        (9, None),
        (10, Some(&first)),
        (19, Some(&first)),
        (20, Some(&second)),
    ] {
        let by_id = store
            .read(&here, |tx| tx.node(first.id, When::At(Hlc(at))))
            .unwrap();
        assert_eq!(by_id.as_ref(), expected, "by id at {at}");
        let by_key = store
            .read(&here, |tx| {
                tx.node_by_key("", Kind::Document, "n", When::At(Hlc(at)))
            })
            .unwrap();
        assert_eq!(by_key.as_ref(), expected, "by key at {at}");
        let listed = store
            .read(&here, |tx| {
                tx.nodes(&NodeFilter::default(), When::At(Hlc(at)), None, 9)
            })
            .unwrap();
        assert_eq!(listed.first(), expected, "listed at {at}");
    }
    let now = store
        .read(&here, |tx| tx.node(first.id, When::Now))
        .unwrap();
    assert_eq!(now, Some(third));
    let history = store.read(&here, |tx| tx.history(first.id)).unwrap();
    assert_eq!(history, vec![(first, Hlc(20)), (second, Hlc(30))]);
}

fn a_removed_node_is_gone_now_and_there_then(store: &Store) {
    let here = space("removed");
    let one = node(1, "n", "body", 10);
    put(store, &here, &one);
    let gone = one.id;
    store
        .write(&here, move |tx| {
            tx.put_passages(gone, &[passage(0, "vanishing")])?;
            tx.remove_node(gone, Hlc(50))
        })
        .unwrap();
    assert_eq!(
        store.read(&here, |tx| tx.node(gone, When::Now)).unwrap(),
        None
    );
    assert_eq!(
        store
            .read(&here, |tx| tx.node(gone, When::At(Hlc(49))))
            .unwrap(),
        Some(one.clone())
    );
    assert_eq!(
        store
            .read(&here, |tx| tx.node(gone, When::At(Hlc(50))))
            .unwrap(),
        None
    );
    let left = store.read(&here, |tx| tx.passages(gone)).unwrap();
    assert_eq!(left, Vec::<Passage>::new());
    let again = Node {
        rev: 2,
        created: Hlc(60),
        updated: Hlc(60),
        ..one
    };
    put(store, &here, &again);
    assert_eq!(
        store.read(&here, |tx| tx.node(gone, When::Now)).unwrap(),
        Some(again)
    );
}

fn edge(src: u64, rel: &str, dst: u64, weight: f64, from: u64) -> Edge {
    let mut edge = Edge {
        src: id(src),
        rel: rel.to_owned(),
        dst: id(dst),
        weight,
        props: Map::from_iter([("source".to_owned(), json!("conformance"))]),
        from: Hlc(from),
        to: Hlc::MAX,
        hash: Hash::default(),
    };
    edge.hash = edge.canonical_hash();
    edge
}

fn edges_hold_from_and_to(store: &Store) {
    let here = space("edges");
    store
        .write(&here, |tx| {
            tx.put_edge(&edge(1, "knows", 2, 0.5, 10))?;
            tx.put_edge(&edge(1, "knows", 3, 0.5, 10))?;
            tx.put_edge(&edge(4, "likes", 2, 0.5, 10))?;
            tx.put_edge(&edge(1, "knows", 2, 0.9, 20))?;
            tx.end_edge(id(1), "knows", id(3), Hlc(30))
        })
        .unwrap();
    let ends = |filter: EdgeFilter, when| {
        let edges = store.read(&here, |tx| tx.edges(&filter, when, 10)).unwrap();
        let mut ends: Vec<_> = edges
            .into_iter()
            .map(|edge| (edge.src, edge.dst, edge.weight))
            .collect();
        ends.sort_by_key(|ends| (ends.0, ends.1));
        ends
    };
    let from_one = EdgeFilter {
        src: Some(id(1)),
        ..EdgeFilter::default()
    };
    let to_two = EdgeFilter {
        dst: Some(id(2)),
        ..EdgeFilter::default()
    };
    let mut expected = vec![(id(1), id(2), 0.9)];
    assert_eq!(ends(from_one.clone(), When::Now), expected);
    expected.push((id(4), id(2), 0.5));
    expected.sort_by_key(|ends| (ends.0, ends.1));
    assert_eq!(ends(to_two, When::Now), expected);
    let mut then = vec![(id(1), id(2), 0.5), (id(1), id(3), 0.5)];
    then.sort_by_key(|ends| (ends.0, ends.1));
    assert_eq!(ends(from_one.clone(), When::At(Hlc(15))), then);
    assert!(ends(from_one, When::At(Hlc(9))).is_empty());
    let likes = EdgeFilter {
        rel: Some("likes".to_owned()),
        ..EdgeFilter::default()
    };
    assert_eq!(ends(likes, When::Now).len(), 1);
}

fn passages_are_replaced_as_a_whole(store: &Store) {
    let here = space("passages");
    let (one, two) = (node(1, "one", "b", 10), node(2, "two", "b", 10));
    let (a, b, nobody) = (one.id, two.id, id(3));
    let of_a = [passage(0, "red green"), passage(1, "blue 会議 🚀 c++ a\0b")];
    let of_b = [passage(0, "red red yellow")];
    let (put_a, put_b) = (of_a.clone(), of_b.clone());
    store
        .write(&here, move |tx| {
            tx.put_node(&one)?;
            tx.put_node(&two)?;
            tx.put_passages(a, &put_a)?;
            tx.put_passages(b, &put_b)
        })
        .unwrap();
    let passages = |node| store.read(&here, |tx| tx.passages(node)).unwrap();
    assert_eq!(passages(a), of_a);
    assert_eq!(passages(b), of_b);
    store
        .write(&here, move |tx| tx.put_passages(a, &[passage(0, "white")]))
        .unwrap();
    assert_eq!(passages(a), [passage(0, "white")]);
    assert_eq!(passages(b), of_b, "those of another node stay");
    store
        .write(&here, move |tx| tx.put_passages(b, &[]))
        .unwrap();
    assert_eq!(passages(b), []);
    store
        .write(&here, move |tx| tx.put_passages(nobody, &[]))
        .unwrap();
    let refused = store.write(&here, move |tx| {
        tx.put_passages(nobody, &[passage(0, "whose?")])
    });
    assert_eq!(refused.unwrap_err().code, Code::NotFound);
    // A node that moves to another project keeps its passages.
    let mut moved = node(1, "one", "b", 20);
    (moved.project, moved.rev) = ("/elsewhere".to_owned(), 2);
    put(store, &here, &moved);
    assert_eq!(passages(a), [passage(0, "white")]);
}

fn filters_admit_what_they_count(store: &Store) {
    let here = space("filters");
    store
        .write(&here, |tx| {
            for n in 0..60 {
                let mut it = node(n, &format!("d{}/{n:02}", n % 3), "b", 10);
                if n % 2 == 1 {
                    it.kind = Kind::Memory;
                }
                if n % 5 == 0 {
                    it.project = "/a project".to_owned();
                }
                tx.put_node(&it)?;
            }
            Ok(())
        })
        .unwrap();
    let count = |filter: NodeFilter| {
        let listed = store
            .read(&here, |tx| tx.nodes(&filter, When::Now, None, 100))
            .unwrap();
        let counted = store.read(&here, |tx| tx.count_nodes(&filter)).unwrap();
        assert_eq!(counted, listed.len() as u64);
        listed.len()
    };
    let memories = vec![Kind::Memory];
    let project = Some("/a project".to_owned());
    let key_prefix = Some("d1/".to_owned());
    assert_eq!(count(NodeFilter::default()), 60);
    assert_eq!(
        count(NodeFilter {
            kinds: memories.clone(),
            ..NodeFilter::default()
        }),
        30
    );
    assert_eq!(
        count(NodeFilter {
            project: project.clone(),
            ..NodeFilter::default()
        }),
        12
    );
    assert_eq!(
        count(NodeFilter {
            project: Some(String::new()),
            ..NodeFilter::default()
        }),
        48
    );
    assert_eq!(
        count(NodeFilter {
            key_prefix: key_prefix.clone(),
            ..NodeFilter::default()
        }),
        20
    );
    assert_eq!(
        count(NodeFilter {
            kinds: memories,
            project,
            key_prefix
        }),
        2
    );
    // A node that moves to another project takes its passages along.
    let moved = Node {
        project: "elsewhere".to_owned(),
        ..node(2, "d2/02", "b", 20)
    };
    put(store, &here, &moved);
    let elsewhere = NodeFilter {
        project: Some("elsewhere".to_owned()),
        ..NodeFilter::default()
    };
    assert_eq!(count(elsewhere), 1);
}

fn every_character_survives(store: &Store) {
    let here = space("characters");
    let texts = [
        "",
        "nul\0nul",
        "e\u{301} é 会議 🚀",
        "\u{feff}bom",
        "'; DROP TABLE nodes; --",
        "\\\"\n\r\t",
    ];
    for (n, text) in (1u64..).zip(texts) {
        let mut it = node(n, &format!("key {n} {text}"), text, 10);
        it.title = text.to_owned();
        it.props.insert(text.to_owned(), Value::from(text));
        it.hash = it.canonical_hash();
        put(store, &here, &it);
        let stored = store
            .read(&here, |tx| tx.node(it.id, When::Now))
            .unwrap()
            .unwrap();
        assert_eq!(stored, it);
        assert_eq!(stored.canonical_hash(), it.hash, "{text:?}");
    }
    let large = node(99, "large", &"é".repeat(2_000_000), 10);
    put(store, &here, &large);
    assert_eq!(
        store
            .read(&here, |tx| tx.node(large.id, When::Now))
            .unwrap(),
        Some(large)
    );
}

fn vectors_are_followed_by_seq(store: &Store) {
    let here = space("vectors");
    let vector = |id: &str, seq| Vector {
        collection: "notes/256".to_owned(),
        id: id.to_owned(),
        model: "m1".to_owned(),
        numbers: vec![1.5, -0.25],
        props: Map::new(),
        seq,
    };
    let (a, b, c) = (vector("a", 1), vector("b", 2), vector("a", 3));
    store
        .write(&here, move |tx| {
            [a, b, c].iter().try_for_each(|it| tx.put_vector(it))
        })
        .unwrap();
    let since = |seq| {
        store
            .read(&here, |tx| tx.vectors_since("notes/256", seq, 10))
            .unwrap()
    };
    assert_eq!(
        since(0),
        vec![vector("b", 2), vector("a", 3)],
        "the later write replaced"
    );
    assert_eq!(since(2), vec![vector("a", 3)]);
    assert!(
        store
            .read(&here, |tx| tx.vectors_since("other", 0, 10))
            .unwrap()
            .is_empty()
    );
    store
        .write(&here, |tx| tx.remove_vector("notes/256", "a"))
        .unwrap();
    assert_eq!(
        store.read(&here, |tx| tx.vector("notes/256", "a")).unwrap(),
        None
    );
    assert_eq!(
        store.read(&here, |tx| tx.vector("notes/256", "b")).unwrap(),
        Some(vector("b", 2))
    );
}

fn the_nearest_vectors_come_first(store: &Store) {
    let here = space("nearest");
    let vector = |id: &str, numbers: &[f32]| Vector {
        collection: "c".to_owned(),
        id: id.to_owned(),
        model: "m".to_owned(),
        numbers: numbers.to_vec(),
        props: Map::new(),
        seq: 1,
    };
    let all = [
        vector("same", &[2.0, 0.0]),
        vector("near", &[1.0, 0.5]),
        vector("across", &[0.0, 3.0]),
        vector("against", &[-1.0, 0.0]),
        vector("nothing", &[0.0, 0.0]),
        vector("longer", &[1.0, 0.0, 0.0]),
    ];
    store
        .write(&here, move |tx| {
            all.iter().try_for_each(|it| tx.put_vector(it))
        })
        .unwrap();
    let near = store
        .read(&here, |tx| tx.nearest("c", &[1.0, 0.0], 9))
        .unwrap();
    let names: Vec<&str> = near.hits.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(names, ["same", "near", "across", "against"]);
    // So few are compared one by one by every backend.
    assert_eq!(near.index, IndexKind::Exact);
    let expected = [1.0, 0.894_427, 0.0, -1.0];
    for (it, expected) in near.hits.iter().zip(expected) {
        assert!((it.similarity - expected).abs() < 1e-5, "{it:?}");
    }
    let two = store
        .read(&here, |tx| tx.nearest("c", &[1.0, 0.0], 2))
        .unwrap();
    assert_eq!(two.hits.len(), 2);
    let other = store.read(&here, |tx| tx.nearest("d", &[1.0, 0.0], 2));
    assert!(other.unwrap().hits.is_empty());
}

fn names_that_are_almost_the_same_are_found(store: &Store) {
    let here = space("names");
    let people = [
        "Bill Baue",
        "Shawn Anderson",
        "Sean Andersen",
        "Ada Lovelace",
    ];
    for (n, name) in (1u64..).zip(people) {
        let mut it = node(n, name, "b", 10);
        it.kind = if n == 4 { Kind::Item } else { Kind::Entity };
        store
            .write(&here, move |tx| {
                tx.put_node(&it)?;
                tx.put_names(it.id, &[name.to_owned(), format!("{name} (alias)")])
            })
            .unwrap();
    }
    let find = |text: &str, filter: NodeFilter| {
        let hits = store
            .read(&here, |tx| tx.find_names(text, &filter, 3))
            .unwrap();
        assert!(
            hits.windows(2)
                .all(|pair| pair[0].similarity >= pair[1].similarity)
        );
        hits.into_iter().map(|it| it.name).collect::<Vec<_>>()
    };
    let any = NodeFilter::default;
    assert_eq!(find("bill baue", any())[0], "Bill Baue");
    assert_eq!(find("Shawn Andersen", any())[0], "Shawn Anderson");
    assert!(find("zzz", any()).is_empty() && find("", any()).is_empty());
    let items = NodeFilter {
        kinds: vec![Kind::Item],
        ..NodeFilter::default()
    };
    assert_eq!(find("ada lovelace", items.clone()).len(), 2);
    assert!(find("bill baue", items).is_empty());
    let prefix = NodeFilter {
        key_prefix: Some("Bill".to_owned()),
        ..NodeFilter::default()
    };
    assert_eq!(find("bill", prefix).len(), 2);
    store
        .write(&here, |tx| tx.put_names(id(1), &["William".to_owned()]))
        .unwrap();
    let left = find("bill baue", any());
    assert!(
        left.iter().all(|it| !it.contains("Baue")),
        "replaced names are gone: {left:?}"
    );
}

fn event(seq: u64) -> EventRow {
    EventRow {
        seq,
        version: 1,
        id: Hash::of(&seq.to_be_bytes()),
        parents: (0..seq % 3).map(|n| Hash::of(&[n as u8])).collect(),
        hlc: Hlc(seq * 10),
        author: "did:key:z6Mk".to_owned(),
        kind: "Told".to_owned(),
        payload: b"{}".to_vec(),
        signature: vec![7; 64],
        sealed: SealedData {
            origin: b"log and space".to_vec(),
            agent: "did:key:z6Agent".to_owned(),
            data: b"{}".to_vec(),
            salt: vec![2; 16],
            commitment: vec![3; 32],
        },
    }
}

fn events_keep_their_order(store: &Store) {
    let here = space("events");
    assert_eq!(store.read(&here, |tx| tx.head()).unwrap(), None);
    let head = HeadRow {
        seq: 5,
        hlc: Hlc(50),
        tips: vec![Hash::of(b"tip")],
        frontier: vec![Hash::of(b"a"), Hash::of(b"b")],
        state: vec![3; 2048],
        log: b"{}".to_vec(),
    };
    let checkpoint = CheckpointRow {
        height: 0,
        seq: 4,
        event_root: Hash::of(b"e"),
        state_root: Hash::of(b"s"),
        hlc: Hlc(40),
        author: "did:key:z6Mk".to_owned(),
        signature: vec![1; 64],
        version: 2,
        origin: b"log and space".to_vec(),
    };
    let (put_head, put_checkpoint) = (head.clone(), checkpoint.clone());
    store
        .write(&here, move |tx| {
            (1..=5).try_for_each(|seq| tx.append_event(&event(seq)))?;
            tx.put_head(&put_head)?;
            tx.put_checkpoint(&put_checkpoint)?;
            tx.put_tile(&TileRow {
                level: 1,
                index: 0,
                hash: Hash::of(b"tile"),
            })
        })
        .unwrap();
    store
        .read(&here, |tx| {
            assert_eq!(tx.head()?, Some(head));
            assert_eq!(tx.events_after(2, 2)?, vec![event(3), event(4)]);
            assert_eq!(tx.event_by_id(&event(5).id)?, Some(event(5)));
            assert_eq!(tx.event_by_id(&Hash::default())?, None);
            assert_eq!(tx.checkpoint_at(3)?, None);
            assert_eq!(tx.checkpoint_at(9)?, Some(checkpoint));
            assert_eq!(tx.tile(1, 0)?, Some(Hash::of(b"tile")));
            assert_eq!(tx.tile(1, 1)?, None);
            Ok(())
        })
        .unwrap();
    let error = store
        .write(&here, |tx| tx.append_event(&event(3)))
        .unwrap_err();
    assert_eq!(
        error.code,
        Code::Conflict,
        "a place in the log is taken once"
    );
}

fn a_failed_write_leaves_nothing(store: &Store) {
    let here = space("failed");
    let error = store
        .write(&here, |tx| -> kenning_core::Result<()> {
            tx.put_node(&node(1, "n", "b", 10))?;
            tx.set("b", "k", b"v")?;
            Err(Error::invalid("no"))
        })
        .unwrap_err();
    assert_eq!(error.code, Code::InvalidInput);
    assert_eq!(store.read(&here, |tx| tx.get("b", "k")).unwrap(), None);
    assert_eq!(
        store.read(&here, |tx| tx.node(id(1), When::Now)).unwrap(),
        None
    );
}

fn a_panic_in_a_write_leaves_nothing(store: &Store) {
    let here = space("panic");
    let error = store
        .write(&here, |tx| -> kenning_core::Result<()> {
            tx.set("b", "k", b"v")?;
            panic!("on purpose");
        })
        .unwrap_err();
    assert_eq!(error.code, Code::Internal);
    assert_eq!(store.read(&here, |tx| tx.get("b", "k")).unwrap(), None);
    store.write(&here, |tx| tx.set("b", "k", b"v2")).unwrap();
    assert_eq!(
        store.read(&here, |tx| tx.list("b")).unwrap(),
        [("k".to_owned(), b"v2".to_vec())]
    );
    store.write(&here, |tx| tx.unset("b", "k")).unwrap();
    assert!(store.read(&here, |tx| tx.list("b")).unwrap().is_empty());
}

fn spaces_do_not_see_each_other(store: &Store) {
    let (ours, theirs) = (space("ours"), space("theirs"));
    let secret = node(1, "n", "b", 10);
    let its = secret.id;
    store
        .write(&theirs, move |tx| {
            tx.put_node(&secret)?;
            tx.put_passages(its, &[passage(0, "secret")])?;
            tx.put_edge(&edge(1, "r", 2, 1.0, 10))?;
            tx.append_event(&event(1))?;
            tx.set("b", "k", b"v")
        })
        .unwrap();
    store
        .read(&ours, |tx| {
            assert_eq!(tx.node(its, When::Now)?, None);
            assert_eq!(tx.node_by_key("", Kind::Document, "n", When::Now)?, None);
            assert!(
                tx.nodes(&NodeFilter::default(), When::Now, None, 9)?
                    .is_empty()
            );
            assert!(tx.edges(&EdgeFilter::default(), When::Now, 9)?.is_empty());
            assert!(tx.passages(its)?.is_empty());
            assert!(tx.events_after(0, 9)?.is_empty());
            assert_eq!(tx.get("b", "k")?, None);
            for table in Table::ALL {
                tx.scan(table, &mut |row| panic!("{row:?} belongs to another space"))?;
            }
            Ok(())
        })
        .unwrap();
    // The same id and key may stand in both.
    put(store, &ours, &node(1, "n", "ours", 10));
    let theirs_now = store
        .read(&theirs, |tx| tx.node(its, When::Now))
        .unwrap()
        .unwrap();
    assert_eq!(theirs_now.body, "b");
    assert!(
        store.spaces().unwrap().contains(&space("panic")) || !store.spaces().unwrap().is_empty()
    );
}

fn pages_are_whole(store: &Store) {
    let here = space("pages");
    store
        .write(&here, |tx| {
            (0..25).try_for_each(|n| tx.put_node(&node(n, &format!("k{n}"), "b", 10)))
        })
        .unwrap();
    let mut seen = Vec::new();
    loop {
        let after = seen.last().copied();
        let page = store
            .read(&here, |tx| {
                tx.nodes(&NodeFilter::default(), When::Now, after, 10)
            })
            .unwrap();
        if page.is_empty() {
            break;
        }
        seen.extend(page.iter().map(|it| it.id));
    }
    assert_eq!(seen.len(), 25);
    assert!(seen.is_sorted(), "in the order of ids, each once");
}

fn another_process_sees_the_next_call(one: &Store, two: &Store) {
    let here = space("processes");
    for n in 0..20u64 {
        let (writer, reader) = if n % 2 == 0 { (one, two) } else { (two, one) };
        let key = format!("k{n}");
        put(writer, &here, &node(n, &key, "b", 10));
        let seen = reader
            .read(&here, |tx| {
                tx.node_by_key("", Kind::Document, &key, When::Now)
            })
            .unwrap();
        assert!(seen.is_some(), "write {n} is seen by the other's next call");
    }
}

fn many_writers_lose_nothing(open: &dyn Fn() -> Store) {
    let here = space("many");
    let stores = [open(), open()];
    std::thread::scope(|scope| {
        for (which, store) in stores.iter().enumerate() {
            for thread in 0..4 {
                let here = &here;
                scope.spawn(move || {
                    for n in 0..25 {
                        let key = format!("{which}/{thread}/{n}");
                        store
                            .write(here, move |tx| tx.set("b", &key, b"v"))
                            .unwrap();
                    }
                });
            }
        }
    });
    assert_eq!(stores[0].read(&here, |tx| tx.list("b")).unwrap().len(), 200);
}

fn raw_rows_can_be_moved(from: &Store, to: &Store) {
    let (here, there) = (space("passages"), space("moved"));
    let rows = |space: &Space, store: &Store| {
        let mut rows = Vec::new();
        for table in Table::ALL {
            store
                .read(space, |tx| {
                    tx.scan(table, &mut |row| {
                        rows.push(row);
                        Ok(())
                    })
                })
                .unwrap();
        }
        rows
    };
    let moved: Vec<Row> = rows(&here, from);
    assert!(moved.len() > 2);
    let load = moved.clone();
    to.write(&there, move |tx| {
        load.iter().try_for_each(|row| tx.load(row))
    })
    .unwrap();
    assert_eq!(rows(&there, to), moved);
    // Taken back, nothing of it is left, and the space beside it is as it was.
    to.write(&there, |tx| tx.clear()).unwrap();
    assert_eq!(rows(&there, to), Vec::<Row>::new());
    assert_eq!(rows(&here, from), moved);
}
