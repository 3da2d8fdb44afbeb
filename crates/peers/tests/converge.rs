//! Nodes in one process: what one writes, the others have, whatever the order.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use kenning_audit::{Draft, Log, Signer, Verify, verify};
use kenning_core::{FixedClock, Kind, SeededRandom, Space};
use kenning_peers::{
    Done, Peer, Policy, Request, Response, Rules, Session, answer, peer_id, unpack,
};
use kenning_store::{Node, NodeFilter, Passage, Store, When};
use kenning_testing_model::Model;
use serde_json::{Map, json};
use std::sync::Arc;

fn passages_of(node: &Node) -> Vec<Passage> {
    vec![Passage {
        n: 0,
        text: node.body.clone(),
        start: 0,
        tokens: node.body.to_lowercase(),
        title_tokens: String::new(),
    }]
}

const RULES: Rules = Rules {
    passages_of,
    is_shared: |_| true,
};

const HOUR_MS: u64 = 60 * 60 * 1000;

struct One {
    log: Log,
    clock: Arc<FixedClock>,
}

fn node(seed: u64) -> One {
    let random = Arc::new(SeededRandom::new(seed));
    let signer = Signer::generate(&*random);
    let clock = Arc::new(FixedClock::at(1_800_000_000_000 + seed));
    let log = Log::new(
        Store::new(Model::default()),
        signer,
        Arc::clone(&clock) as _,
        random as _,
    );
    One { log, clock }
}

impl One {
    fn as_peer(&self) -> Peer {
        let did = self.log.signer().did().clone();
        Peer {
            id: peer_id("", &did),
            did,
            endpoint: String::new(),
            policy: Policy::default(),
            added_ms: 0,
            cut_off: None,
        }
    }

    fn trust(&self, other: &One) {
        let did = other.log.signer().did().clone();
        let write = move |tx: &mut kenning_audit::Tx<'_>| {
            tx.add_author(&did);
            tx.record("PeerAdded", json!({})).map(drop)
        };
        self.log.write(&space(), write).unwrap();
    }

    fn put(&self, key: &str, body: &str) -> Node {
        self.clock.advance(1);
        let draft = Draft {
            kind: Kind::Memory,
            project: String::new(),
            key: key.to_owned(),
            title: String::new(),
            body: body.to_owned(),
            props: Map::new(),
        };
        self.log
            .write(&space(), move |tx| {
                let node = tx.put_node(draft)?;
                tx.put_passages(node.id, &passages_of(&node))?;
                tx.record("NodeUpdated", json!({ "key": node.key }))?;
                Ok(node)
            })
            .unwrap()
    }

    fn remove(&self, key: &str) {
        self.clock.advance(1);
        let key = key.to_owned();
        self.log
            .write(&space(), move |tx| {
                if let Some(node) = tx.node_by_key("", Kind::Memory, &key, When::Now)? {
                    tx.remove_node(node.id)?;
                    tx.record("NodeDeleted", json!({ "key": key }))?;
                }
                Ok(())
            })
            .unwrap();
    }

    fn bodies(&self) -> Vec<(String, String)> {
        let nodes = self
            .log
            .read(&space(), |tx| {
                tx.nodes(&NodeFilter::default(), When::Now, None, 1_000)
            })
            .unwrap();
        let mut all: Vec<_> = nodes.into_iter().map(|it| (it.key, it.body)).collect();
        all.sort();
        all
    }

    fn kinds(&self, kind: &str) -> usize {
        let events = self
            .log
            .read(&space(), |tx| tx.events_after(0, 10_000))
            .unwrap();
        events.iter().filter(|it| it.kind == kind).count()
    }

    fn check(&self) {
        let report = self
            .log
            .read(&space(), |tx| verify(tx, &Verify::of(&space()), &|_| ()))
            .unwrap();
        assert!(report.is_clean(), "{:#?}", report.faults);
    }
}

fn space() -> Space {
    Space::default()
}

fn session(a: &One, b: &One) -> Session {
    Session::new(&a.log, &space(), &b.as_peer(), RULES).with_entries_max(3)
}

/// What `b` answers `a`.
fn ask(a: &One, b: &One, asked: &Request) -> Response {
    let bytes = kenning_peers::pack(&asked.to_json()).unwrap();
    let asked = Request::from_json(asked.path(), &unpack(&bytes).unwrap()).unwrap();
    let (response, _) = answer(&b.log, &a.as_peer(), RULES, asked, ()).unwrap();
    let bytes = kenning_peers::pack(&response.to_json()).unwrap();
    Response::from_json(&unpack(&bytes).unwrap()).unwrap()
}

/// One whole exchange; every message goes over as bytes.
fn sync(a: &One, b: &One) -> Done {
    let mut session = session(a, b);
    let request = session.begin().unwrap();
    go_on(a, b, session, request)
}

/// The rest of an exchange.
fn go_on(a: &One, b: &One, mut session: Session, mut request: Option<Request>) -> Done {
    let mut n = 0;
    while let Some(asked) = request {
        n += 1;
        assert!(n < 1_000, "an exchange ends");
        request = session.next(ask(a, b, &asked), ()).unwrap();
    }
    session.done().clone()
}

fn pair() -> (One, One) {
    let (a, b) = (node(1), node(2));
    a.trust(&b);
    b.trust(&a);
    (a, b)
}

fn assert_same(nodes: &[&One]) {
    let first = nodes[0];
    for it in nodes {
        it.check();
        assert_eq!(it.bodies(), first.bodies());
        let (here, there) = (
            it.log.roots(&space()).unwrap(),
            first.log.roots(&space()).unwrap(),
        );
        assert_eq!(here.state_root, there.state_root);
    }
}

#[test]
fn what_one_node_writes_the_other_has_with_its_authors_signature_and_id() {
    let (a, b) = pair();
    for n in 0..10 {
        a.put(&format!("k{n}"), &format!("text {n}"));
    }
    let done = sync(&b, &a);
    assert_eq!(done.n_received, 10);
    assert_same(&[&a, &b]);
    let last = a
        .log
        .read(&space(), |tx| tx.events_after(0, 100))
        .unwrap()
        .pop()
        .unwrap();
    let there = b
        .log
        .read(&space(), |tx| tx.event_by_id(&last.id))
        .unwrap()
        .unwrap();
    assert_eq!(
        (&there.author, &there.signature),
        (&last.author, &last.signature)
    );
    let again = sync(&b, &a);
    assert_eq!(
        (again.n_received, again.n_sent),
        (0, 0),
        "nothing is sent twice"
    );
    let before = (
        a.log.roots(&space()).unwrap().seq,
        b.log.roots(&space()).unwrap().seq,
    );
    sync(&a, &b);
    sync(&b, &a);
    let after = (
        a.log.roots(&space()).unwrap().seq,
        b.log.roots(&space()).unwrap().seq,
    );
    assert_eq!(before, after, "an exchange of nothing writes nothing");
}

#[test]
fn both_write_while_apart_and_agree_afterwards() {
    let (a, b) = pair();
    a.put("shared", "first");
    sync(&a, &b);
    a.put("shared", "by a");
    b.clock.advance(50);
    b.put("shared", "by b");
    a.put("only a", "x");
    b.put("only b", "y");
    sync(&a, &b);
    assert_same(&[&a, &b]);
    assert!(
        a.bodies()
            .contains(&("shared".to_owned(), "by b".to_owned()))
    );
    assert_eq!(
        a.kinds("ConflictDetected") + b.kinds("ConflictDetected"),
        2,
        "on both"
    );
    let id = a
        .log
        .read(&space(), |tx| {
            tx.node_by_key("", Kind::Memory, "shared", When::Now)
        })
        .unwrap()
        .unwrap()
        .id;
    for it in [&a, &b] {
        let history = it.log.read(&space(), |tx| tx.history(id)).unwrap();
        assert!(
            history.iter().any(|it| it.0.body == "by a"),
            "the losing revision is kept"
        );
    }
}

#[test]
fn two_nodes_that_make_one_key_have_one_of_them() {
    let (a, b) = pair();
    a.put("note", "by a");
    b.put("note", "by b");
    b.put("note", "by b again");
    sync(&a, &b);
    sync(&b, &a);
    assert_same(&[&a, &b]);
    assert_eq!(a.bodies(), [("note".to_owned(), "by b again".to_owned())]);
    a.put("note", "settled");
    sync(&b, &a);
    assert_same(&[&a, &b]);
    a.remove("note");
    sync(&b, &a);
    assert_same(&[&a, &b]);
    assert!(b.bodies().is_empty());
}

#[test]
fn a_removal_and_a_write_at_once_end_alike_on_both() {
    for remove_first in [true, false] {
        let (a, b) = pair();
        a.put("k", "first");
        sync(&a, &b);
        b.clock.advance(if remove_first { 100 } else { 0 });
        a.clock.advance(if remove_first { 0 } else { 100 });
        a.remove("k");
        b.put("k", "changed");
        sync(&a, &b);
        sync(&b, &a);
        assert_same(&[&a, &b]);
        assert_eq!(a.bodies().len(), usize::from(remove_first));
    }
}

#[test]
fn unknown_authors_are_refused_unless_a_peer_may_pass_them_on() {
    let (a, b, c) = (node(1), node(2), node(3));
    a.trust(&b);
    b.trust(&a);
    b.trust(&c);
    c.trust(&b);
    a.put("k", "by a");
    sync(&b, &a);
    let done = sync(&c, &b);
    assert_eq!((done.n_received, done.refused.len()), (0, 1));
    assert!(c.bodies().is_empty());
    c.check();
    // Once it is known, the peer's log is read again.
    c.trust(&a);
    let did = b.log.signer().did().to_string();
    c.log
        .write(&space(), move |tx| tx.unset(kenning_peers::CURSORS, &did))
        .unwrap();
    assert_eq!(sync(&c, &b).n_received, 1);
    assert_same(&[&a, &b, &c]);
}

/// An answer that was under way while its sender pushed what it wrote since says less of its log than is known by then.
#[test]
fn an_answer_that_a_push_overtook_is_old_and_no_second_history() {
    for has_page in [false, true] {
        for is_clock_set_back in [false, true] {
            let (a, b) = pair();
            b.put("k", "first");
            sync(&a, &b);
            if has_page {
                b.put("k", "second");
            }
            let mut asking = session(&a, &b);
            let request = asking.begin().unwrap().unwrap();
            let late = ask(&a, &b, &request);
            b.put("k", "third");
            if is_clock_set_back {
                b.clock.advance(HOUR_MS.wrapping_neg());
            }
            assert!(sync(&b, &a).n_sent > 0);
            let request = asking.next(late, ()).unwrap();
            let done = go_on(&a, &b, asking, request);
            assert!(done.forked.is_none(), "{:?}", done.forked);
            a.put("k", "fourth");
            assert_eq!(sync(&a, &b).n_sent, 1);
            assert_same(&[&a, &b]);
        }
    }
}

/// Only a page that nobody asked for can be old without a reason.
#[test]
fn a_log_that_lost_its_end_is_noticed_whatever_its_clock_says() {
    let (a, b) = pair();
    b.put("k", "first");
    let mut rows = Vec::new();
    b.log
        .read(&space(), |tx| {
            kenning_audit::archive::dump(tx, &mut |row| {
                rows.push(Ok(row));
                Ok(())
            })
        })
        .unwrap();
    b.put("k", "second");
    sync(&a, &b);
    let restored = One {
        log: Log::new(
            Store::new(Model::default()),
            Signer::from_secret(&b.log.signer().secret()),
            Arc::new(FixedClock::at(1_800_000_000_000 - HOUR_MS)) as _,
            Arc::new(SeededRandom::new(3)) as _,
        ),
        clock: Arc::clone(&b.clock),
    };
    kenning_audit::archive::load(restored.log.store(), &space(), rows.into_iter()).unwrap();
    let evidence = sync(&a, &restored).forked.unwrap();
    assert_eq!(evidence.what, "its log is shorter than it was");
    assert!(evidence.known.is_signed() && evidence.shown.is_signed());
}
