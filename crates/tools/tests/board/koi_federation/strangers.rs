//! Who makes room for whom, what is answered once, and what is agreed with peers of every kind.

use super::{Foreign, Net, Node, post, practice, refused};
use kenning_engine::koi::PeerPolicyChange;
use kenning_federation::{
    Bundle, EdgeProfile, EdgeStatus, EdgeType, Event, EventType, Json, NodeRid, Payload, Query, Rid,
};
use kenning_tools::koi::federation_status::peer_json;
use serde_json::{Value, json};

impl Node {
    /// What is known of a node.
    fn known(&self, rid: &str) -> Value {
        // The tool's answer is cut to what a model reads.
        let status = self.koi().federation_status(&self.fixture.owner()).unwrap();
        let found = status.peers.iter().find(|it| it.rid == rid);
        found.map(peer_json).unwrap_or_default()
    }

    /// How many nodes are known.
    fn n_known(&self) -> usize {
        let status = self.koi().federation_status(&self.fixture.owner());
        status.unwrap().peers.len()
    }

    /// The rows of the store that name a node.
    fn n_rows(&self, rid: &str) -> usize {
        let space = kenning_core::Space::default();
        let short = rid.rsplit('+').next().unwrap().to_owned();
        let read = self.fixture.log().read(&space, |tx| {
            let own = ["peers", "status", "edges"].map(|it| format!("federation/{it}"));
            let of_node = ["seen", "queue", "dead"].map(|it| format!("federation/{it}/{short}"));
            let mut n_rows = 0;
            for bucket in own {
                let rows = tx.list(&bucket)?;
                let names = |it: &(String, Vec<u8>)| {
                    let text = String::from_utf8_lossy(&it.1);
                    it.0.contains(&short) || text.contains(&short)
                };
                n_rows += rows.iter().filter(|it| names(it)).count();
            }
            for bucket in of_node {
                n_rows += tx.list(&bucket)?.len();
            }
            Ok(n_rows)
        });
        read.unwrap()
    }

    fn sweep(&self) {
        self.koi().sweep_federation().unwrap();
    }
}

impl Foreign {
    /// Proposes to subscribe to what a node provides.
    fn propose(&self, to: &Node, rid_types: &[&str], ms: u64) -> Event {
        let edge = EdgeProfile {
            source: NodeRid::parse(&to.rid).unwrap(),
            target: self.rid.clone(),
            edge_type: EdgeType::Poll,
            status: EdgeStatus::Proposed,
            rid_types: rid_types.iter().map(ToString::to_string).collect(),
        };
        let rid = Rid::parse(&edge.rid()).unwrap();
        Event::of(
            EventType::New,
            Bundle::of(&rid, edge.to_json(), ms).unwrap(),
        )
    }

    fn poll(&self, to: &Node) -> Vec<Value> {
        let query = Payload::Query(Query::PollEvents { limit: 0 });
        let (status, body) = post(to, "/events/poll", &self.seal(&query, &to.rid));
        assert_eq!(status, 200, "{body}");
        let value: Value = serde_json::from_str(&body).unwrap();
        value["payload"]["events"].as_array().unwrap().clone()
    }
}

#[test]
fn strangers_make_room_for_each_other_and_leave_nothing_behind() {
    let net = Net::default();
    let one = Node::new(&net, 1, &["Practice"]);
    let kept = Foreign::new("kept", 900);
    kept.tell(&one, kept.hello());
    one.koi()
        .approve_node(&one.fixture.owner(), "kept", PeerPolicyChange::default())
        .unwrap();
    let strangers: Vec<Foreign> = (0..260)
        .map(|n| Foreign::new(&format!("stranger{n}"), 1_000 + n))
        .collect();
    for stranger in &strangers {
        one.fixture.clock.advance(1);
        let (status, body) = stranger.tell(&one, stranger.hello());
        assert_eq!(status, 200, "{body}");
    }
    assert_eq!(one.n_known(), 257, "256 wait, and one is approved");
    let (first, last) = (&strangers[0], &strangers[259]);
    assert_eq!(one.known(first.rid.as_str()), Value::Null);
    assert_eq!(one.n_rows(first.rid.as_str()), 0, "whoever made room");
    assert_eq!(one.known(last.rid.as_str())["state"], "waiting");
    assert!(one.n_rows(last.rid.as_str()) > 0);
    // However much a stranger says, little of it is kept.
    for ms in 0..200 {
        let again = last.propose(&one, &["orn:koi-net.practice"], 2_000 + ms);
        last.tell(&one, vec![again]);
    }
    let n_rows = one.n_rows(last.rid.as_str());
    assert!(n_rows < 50, "{n_rows} rows");
    // Whoever is refused leaves no row either.
    let mut liar = Foreign::new("liar", 950);
    liar.profile.base_url = Some("x".repeat(600));
    liar.tell(&one, liar.hello());
    assert_eq!(one.n_rows(liar.rid.as_str()), 0);
    // A week later nobody waits any more.
    one.fixture.clock.advance(8 * 86_400_000);
    one.sweep();
    assert_eq!(one.n_known(), 1);
    assert_eq!(one.known(kept.rid.as_str())["state"], "active");
    assert_eq!(one.n_rows(last.rid.as_str()), 0);
    // Endless newcomers would fill the log: of a thousand within the hour, this is the last.
    let now = kenning_core::Clock::now_ms(&*one.fixture.clock);
    let space = kenning_core::Space::default();
    let counted = one.fixture.log().write(&space, move |tx| {
        let bucket = "federation/counts";
        tx.set(bucket, "newcomers", b"999")?;
        tx.set(bucket, "newcomers-since", now.to_string().as_bytes())
    });
    counted.unwrap();
    let (last, late) = (Foreign::new("last", 951), Foreign::new("late", 952));
    last.tell(&one, last.hello());
    late.tell(&one, late.hello());
    assert!(one.n_rows(last.rid.as_str()) > 0);
    assert_eq!(one.n_rows(late.rid.as_str()), 0);
    one.fixture.clock.advance(3_700_000);
    late.tell(&one, late.hello());
    assert!(one.n_rows(late.rid.as_str()) > 0, "an hour later");
}

#[test]
fn an_overheard_question_is_answered_once() {
    let net = Net::default();
    let one = Node::new(&net, 1, &["Practice"]);
    let peer = Foreign::new("pollster", 900);
    peer.tell(&one, peer.hello());
    for (path, query) in [
        ("/events/poll", Query::PollEvents { limit: 0 }),
        (
            "/rids/fetch",
            Query::FetchRids {
                rid_types: Vec::new(),
            },
        ),
        (
            "/manifests/fetch",
            Query::FetchManifests {
                rid_types: Vec::new(),
                rids: vec![one.rid.clone()],
            },
        ),
        (
            "/bundles/fetch",
            Query::FetchBundles {
                rids: vec![one.rid.clone()],
            },
        ),
    ] {
        let asked = peer.seal(&Payload::Query(query), &one.rid);
        assert_eq!(post(&one, path, &asked).0, 200, "{path}");
        assert_eq!(
            post(&one, path, &asked),
            refused("invalid_signature"),
            "{path}"
        );
    }
    assert_eq!(peer.poll(&one).len(), 0, "the same question, signed anew");
}

/// Coordinators of the reference propose one edge for each of their handlers, in the order of a set, and withdraw
/// what was there in between.
#[test]
fn what_a_peer_asks_for_in_one_go_is_one_subscription_in_whatever_order() {
    let own = ["orn:koi-net.node", "orn:koi-net.edge"];
    let practice = ["orn:koi-net.practice"];
    for (n, is_turned) in [(900, false), (901, true)] {
        let net = Net::default();
        let one = Node::new(&net, 1, &["Practice"]);
        let peer = Foreign::new("coordinator", n);
        peer.tell(&one, peer.hello());
        one.koi()
            .approve_node(
                &one.fixture.owner(),
                "coordinator",
                PeerPolicyChange::default(),
            )
            .unwrap();
        // Its clock is ahead.
        let now = kenning_core::Clock::now_ms(&*one.fixture.clock) + 3_600_000;
        let (first, second) = match is_turned {
            true => (&own[..], &practice[..]),
            false => (&practice[..], &own[..]),
        };
        let first = peer.propose(&one, first, now);
        let forget = Event::forget(first.rid.clone());
        let second = peer.propose(&one, second, now + 5);
        let events = match is_turned {
            true => vec![forget, first, second],
            false => vec![first, forget, second],
        };
        peer.tell(&one, events);
        let told = peer.poll(&one);
        let edges: Vec<&Value> = told
            .iter()
            .filter(|it| it["rid"].as_str().unwrap().contains("koi-net.edge:"))
            .collect();
        assert_eq!(edges.len(), 1, "only the last word is sent: {told:?}");
        let edge = &edges[0]["contents"];
        assert_eq!(edge["status"], "APPROVED", "{edge}");
        let mut types: Vec<&str> = edge["rid_types"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap())
            .collect();
        types.sort_unstable();
        assert_eq!(
            types,
            [
                "orn:koi-net.edge",
                "orn:koi-net.node",
                "orn:koi-net.practice"
            ]
        );
        // The subscriber ignores what is not later than its own words.
        let dated = edges[0]["manifest"]["timestamp"].as_str().unwrap();
        let dated = kenning_federation::time::read(dated).unwrap();
        assert!(u64::try_from(dated / 1_000).unwrap() > now + 5, "{dated}");
        // Withdrawn and not asked for anew: it is over.
        let rid = edges[0]["rid"].as_str().unwrap();
        peer.tell(&one, vec![Event::forget(Rid::parse(rid).unwrap())]);
        let shown = one.koi().federation_edges(&one.fixture.owner()).unwrap();
        assert!(!shown.iter().any(|it| it.source == one.rid), "{shown:?}");
        one.fixture.clock.advance(3_700_000);
        one.sweep();
        assert_eq!(one.n_rows(rid), 0);
    }
}

#[test]
fn a_peer_that_cannot_be_called_is_asked_when_it_asks() {
    let net = Net::default();
    let one = Node::new(&net, 1, &[]);
    let peer = Foreign::new("pollster", 900);
    peer.tell(&one, peer.hello());
    one.koi()
        .approve_node(
            &one.fixture.owner(),
            "pollster",
            PeerPolicyChange::default(),
        )
        .unwrap();
    one.turn(&net);
    let told = peer.poll(&one);
    let asked = told
        .iter()
        .find(|it| it["contents"]["status"] == "PROPOSED");
    let asked = asked.unwrap_or_else(|| panic!("{told:?}"));
    assert_eq!(asked["contents"]["source"], peer.rid.as_str());
    assert_eq!(asked["contents"]["edge_type"], "WEBHOOK");
    let mut edge = EdgeProfile::from_json(
        &Json::parse(asked["contents"].to_string().as_bytes(), Default::default()).unwrap(),
    )
    .unwrap();
    edge.status = EdgeStatus::Approved;
    let rid = Rid::parse(&edge.rid()).unwrap();
    let now = kenning_core::Clock::now_ms(&*one.fixture.clock) + 10;
    let bundle = Bundle::of(&rid, edge.to_json(), now).unwrap();
    peer.tell(&one, vec![Event::of(EventType::Update, bundle)]);
    let edges = one.koi().federation_edges(&one.fixture.owner()).unwrap();
    assert_eq!(edges[0].status, "APPROVED", "{edges:?}");
    peer.tell(
        &one,
        vec![practice("camas", json!({"name": "Camas"}), 2_000)],
    );
    one.turn(&net);
    assert_eq!(one.names("Practice"), ["Camas"]);
    // Whoever begins anew may not know who answers.
    peer.tell(&one, peer.hello());
    let told = peer.poll(&one);
    assert_eq!(told[0]["rid"], one.rid.as_str(), "{told:?}");
}

#[test]
fn a_part_of_a_hash_is_taken_from_octo_nodes_only() {
    let net = Net::default();
    let one = Node::new(&net, 1, &[]);
    let peer = Foreign::new("pollster", 900);
    peer.tell(&one, peer.hello());
    one.koi()
        .approve_node(
            &one.fixture.owner(),
            "pollster",
            PeerPolicyChange::default(),
        )
        .unwrap();
    let mut event = practice("camas", json!({"name": "Camas"}), 2_000);
    event.manifest.as_mut().unwrap().sha256_hash.truncate(16);
    peer.tell(&one, vec![event]);
    one.turn(&net);
    assert_eq!(one.names("Practice"), Vec::<String>::new());
    let row = one.known(peer.rid.as_str());
    assert!(
        row["last_error"].to_string().contains("only a part"),
        "{row}"
    );
    // A node with a short name that another tells of, or that speaks as the reference does.
    let short = |name: &str, n: u64| {
        let mut node = Foreign::new(name, n);
        let whole = node.rid.to_string();
        node.rid = NodeRid::parse(&whole[..whole.find('+').unwrap() + 17]).unwrap();
        node
    };
    let (told, speaks) = (short("told", 901), short("speaks", 902));
    peer.tell(&one, told.hello().split_off(1));
    assert_eq!(speaks.tell(&one, speaks.hello()).0, 400);
    for node in [&told, &speaks] {
        assert_eq!(one.known(node.rid.as_str()), Value::Null);
    }
}

#[test]
fn a_peer_that_floods_is_told_so_and_takes_no_room_of_others() {
    let net = Net::default();
    let one = Node::new(&net, 1, &[]);
    let (flood, calm) = (Foreign::new("flood", 900), Foreign::new("calm", 901));
    for (peer, name) in [(&flood, "flood"), (&calm, "calm")] {
        peer.tell(&one, peer.hello());
        one.koi()
            .approve_node(&one.fixture.owner(), name, PeerPolicyChange::default())
            .unwrap();
    }
    let name = |n: usize| format!("practice-{n}");
    let tell = |n: usize| {
        let contents = json!({ "name": format!("Practice {n}") });
        flood.tell(&one, vec![practice(&name(n), contents, 2_000)])
    };
    for n in 0..256 {
        assert_eq!(tell(n), (200, "null".to_owned()), "{n}");
    }
    let (status, body) = tell(256);
    assert_eq!(status, 429, "{body}");
    let row = one.known(flood.rid.as_str());
    let said = row["last_error"].to_string();
    assert!(said.contains("more than this node takes in"), "{row}");
    assert_eq!(row["refused"], 1, "{row}");
    let (status, body) = calm.tell(&one, vec![practice("calm", json!({"name": "Calm"}), 2_000)]);
    assert_eq!(status, 200, "{body}");
    // What was taken is taken in, and then there is room again.
    one.turn(&net);
    assert_eq!(one.names("Practice").len(), 257);
    assert_eq!(tell(256).0, 200);
}
