//! Nodes of KOI-net in memory: what they exchange, what stays at home, and what a liar achieves.

mod strangers;

use crate::Fixture;
use crate::koi_entities::put;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kenning_core::{Code, Error, Result};
use kenning_engine::Principal;
use kenning_engine::koi::{
    Carried, Carrier, Connect, Destination, FederationSetup, Koi, PeerPolicyChange,
};
use kenning_federation::envelope::seal;
use kenning_federation::{
    Bundle, EdgeProfile, EdgeStatus, EdgeType, Event, EventType, Json, NodeProfile, NodeRid,
    NodeType, Payload, Query, Rid, SecretKey,
};
use kenning_testing::Source;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A secret, as a key file of the reference has it; the rest of the file does not matter.
fn pem(n: u64) -> String {
    let mut der = vec![
        0x30, 0x81, 0x87, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d,
        0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x6d, 0x30,
        0x6b, 0x02, 0x01, 0x01, 0x04, 0x20,
    ];
    der.extend(secret(n));
    format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        STANDARD.encode(der)
    )
}

fn secret(n: u64) -> [u8; 32] {
    let mut secret = [7; 32];
    secret[24..].copy_from_slice(&(n + 1).to_be_bytes());
    secret
}

/// A network in memory, which loses messages on request.
#[derive(Default)]
struct Net {
    nodes: RefCell<BTreeMap<String, Arc<Koi>>>,
    /// One message in so many gets lost, and one answer in so many; 0 for none.
    loses: RefCell<Option<(Source, usize)>>,
    /// Addresses that cannot be reached.
    down: RefCell<Vec<String>>,
    carried: RefCell<Vec<String>>,
}

impl Carrier for Net {
    fn carry(&self, to: &Destination, path: &str, body: Option<&str>) -> Result<Carried> {
        let lost = || Error::unavailable("nobody answers");
        let loses = || {
            let mut loses = self.loses.borrow_mut();
            loses.as_mut().is_some_and(|(source, n)| source.one_in(*n))
        };
        if self.down.borrow().contains(&to.base_url) || loses() {
            return Err(lost());
        }
        let node = self
            .nodes
            .borrow()
            .get(&to.base_url)
            .cloned()
            .ok_or_else(lost)?;
        let Some(body) = body else {
            return Ok(Carried {
                status: 404,
                body: Vec::new(),
            });
        };
        self.carried
            .borrow_mut()
            .push(format!("{} {path} {body}", to.base_url));
        let answered = node.answer_federation(self, path, body.as_bytes(), false);
        // The message arrived; only the answer is lost.
        if loses() {
            return Err(lost());
        }
        Ok(Carried {
            status: answered.status,
            body: answered.body.into_bytes(),
        })
    }
}

struct Node {
    fixture: Fixture,
    url: String,
    rid: String,
}

impl Node {
    fn new(net: &Net, n: u64, provides: &[&str]) -> Self {
        let fixture = Fixture::new();
        let url = format!("http://node{n}.test/koi-net");
        let setup = FederationSetup {
            name: Some(format!("node{n}")),
            base_url: Some(url.clone()),
            provides: Some(provides.iter().map(ToString::to_string).collect()),
            strict: None,
            key_pem: Some(pem(n)),
        };
        let koi = fixture.board.engine().koi().clone();
        let rid = koi.set_up_federation(&fixture.owner(), setup).unwrap().rid;
        net.nodes.borrow_mut().insert(url.clone(), koi);
        Self { fixture, url, rid }
    }

    fn koi(&self) -> &Arc<Koi> {
        self.fixture.board.engine().koi()
    }

    fn connect(&self, net: &Net, other: &Self) {
        let connect = Connect {
            url: other.url.clone(),
            rid: Some(other.rid.clone()),
            ..Connect::default()
        };
        self.koi()
            .connect_node(&self.fixture.owner(), net, connect)
            .unwrap();
    }

    fn turn(&self, net: &Net) {
        self.fixture.clock.advance(1_000);
        let mut faults = Vec::new();
        let turned = self.koi().federation_turn(net, &|_| Ok(true), &mut faults);
        turned.unwrap();
    }

    fn note(&self, path: &str, text: &str) {
        put(&self.fixture, path, text);
    }

    /// The names of all entities of a type.
    fn names(&self, kind: &str) -> Vec<String> {
        let koi = self.koi();
        let all = koi
            .entities(&self.fixture.owner(), Some(kind), 1_000, 0)
            .unwrap();
        let mut names: Vec<String> = all.into_iter().map(|it| it.name).collect();
        names.sort();
        names
    }

    fn status(&self) -> Value {
        let reply = self.fixture.call("federation_status", json!({}));
        reply.to_json()
    }
}

fn settle(net: &Net, nodes: &[&Node]) {
    for _ in 0..4 {
        for node in nodes {
            node.turn(net);
        }
    }
}

#[test]
fn what_one_node_provides_is_known_by_the_other_and_forgotten_with_it() {
    let net = Net::default();
    let (one, two) = (
        Node::new(&net, 1, &["Practice", "Bioregion"]),
        Node::new(&net, 2, &[]),
    );
    one.note(
        "Practices/Herring Count.md",
        "---\nbioregion: \"[[Bioregions/Salish Sea]]\"\nsteward: \"[[People/Bill Baue]]\"\n---\n",
    );
    one.note(
        "Bioregions/Salish Sea.md",
        "---\n\"@type\": bkc:Bioregion\n---\n",
    );
    one.connect(&net, &two);
    two.connect(&net, &one);
    settle(&net, &[&one, &two]);
    assert_eq!(two.names("Practice"), ["Herring Count"]);
    assert_eq!(two.names("Bioregion"), ["Salish Sea"]);
    // Nobody named Person, so no person went over, not even as the other end of a relation.
    assert!(
        net.carried
            .borrow()
            .iter()
            .all(|it| !it.contains("Bill Baue")),
        "a name leaked"
    );
    let there = two
        .koi()
        .cross_references(&two.fixture.owner(), None, 10)
        .unwrap();
    assert!(
        there
            .iter()
            .all(|it| it.relation == "unresolved" && it.peer == one.rid),
        "{there:?}"
    );
    // What is ours stays ours, and is the same thing.
    two.note(
        "Practices/Herring Count.md",
        "---\naliases: [roe count]\n---\n",
    );
    one.note(
        "Practices/Herring Count.md",
        "---\naliases: [spawn survey]\n---\n",
    );
    settle(&net, &[&one, &two]);
    let there = two
        .koi()
        .cross_references(&two.fixture.owner(), None, 10)
        .unwrap();
    let herring = there.iter().find(|it| it.name == "Herring Count").unwrap();
    assert_eq!(herring.relation, "same_as");
    std::fs::remove_file(one.fixture.vault().join("Practices/Herring Count.md")).unwrap();
    std::fs::remove_file(one.fixture.vault().join("Bioregions/Salish Sea.md")).unwrap();
    settle(&net, &[&one, &two]);
    assert_eq!(
        two.names("Practice"),
        ["Herring Count"],
        "it has a note of its own"
    );
    assert_eq!(two.names("Bioregion"), Vec::<String>::new());
    assert_eq!(
        two.koi()
            .cross_references(&two.fixture.owner(), None, 10)
            .unwrap(),
        []
    );
    let status = two.status();
    assert_eq!(status["status"], "healthy", "{status}");
    assert_eq!(status["event_queue_size"], 0, "{status}");
    assert_eq!(status["peers"][0]["node_rid"], one.rid.as_str(), "{status}");
    for node in [&one, &two] {
        let space = kenning_core::Space::default();
        let report = node.fixture.board.engine().verify(&space, &|_| {}).unwrap();
        assert!(report.is_clean(), "{report:?}");
    }
}

#[test]
fn a_node_that_was_away_catches_up_and_a_whole_peer_can_be_retracted() {
    let net = Net::default();
    let (one, two) = (Node::new(&net, 1, &["Practice"]), Node::new(&net, 2, &[]));
    one.connect(&net, &two);
    two.connect(&net, &one);
    settle(&net, &[&one, &two]);
    net.down.borrow_mut().push(two.url.clone());
    for n in 0..30 {
        one.note(
            &format!("Practices/Practice number {n}.md"),
            "---\n\"@type\": bkc:Practice\n---\n",
        );
    }
    one.turn(&net);
    let waiting = one.status();
    assert_eq!(waiting["event_queue_size"], 30, "{waiting}");
    assert_eq!(waiting["peers"][0]["state"], "unreachable", "{waiting}");
    net.down.borrow_mut().clear();
    for _ in 0..20 {
        one.fixture.clock.advance(60_000);
        settle(&net, &[&one, &two]);
    }
    assert_eq!(two.names("Practice").len(), 30);
    assert_eq!(one.status()["event_queue_size"], 0);
    let n_retracted = two
        .koi()
        .retract_node(&two.fixture.owner(), "node1")
        .unwrap();
    assert_eq!(n_retracted, 30);
    assert_eq!(two.names("Practice").len(), 0);
    settle(&net, &[&one, &two]);
    assert_eq!(
        two.names("Practice").len(),
        0,
        "it does not come back by itself"
    );
}

#[test]
fn a_stranger_gets_nothing_until_the_operator_approves_it() {
    let net = Net::default();
    let (one, two) = (
        Node::new(&net, 1, &["Practice"]),
        Node::new(&net, 2, &["Practice"]),
    );
    one.note(
        "Practices/Herring Count.md",
        "---\n\"@type\": bkc:Practice\n---\n",
    );
    two.note(
        "Practices/Camas Garden.md",
        "---\n\"@type\": bkc:Practice\n---\n",
    );
    two.connect(&net, &one);
    settle(&net, &[&one, &two]);
    assert_eq!(two.names("Practice"), ["Camas Garden"]);
    assert_eq!(one.names("Practice"), ["Herring Count"]);
    assert_eq!(one.status()["peers"][0]["state"], "waiting");
    one.koi()
        .approve_node(&one.fixture.owner(), "node2", PeerPolicyChange::default())
        .unwrap();
    settle(&net, &[&one, &two]);
    assert_eq!(two.names("Practice"), ["Camas Garden", "Herring Count"]);
    let change = PeerPolicyChange {
        shares: Some(Vec::new()),
        ..PeerPolicyChange::default()
    };
    one.koi()
        .change_peer_policy(&one.fixture.owner(), "node2", change)
        .unwrap();
    settle(&net, &[&one, &two]);
    assert_eq!(
        two.names("Practice"),
        ["Camas Garden"],
        "it is asked to forget"
    );
}

/// A node that the test speaks for.
struct Foreign {
    key: SecretKey,
    rid: NodeRid,
    profile: NodeProfile,
    n_sent: std::cell::Cell<u64>,
}

impl Foreign {
    fn new(name: &str, n: u64) -> Self {
        let key = SecretKey::from_secret(&secret(n)).unwrap();
        let rid = NodeRid::of(name, &key.public()).unwrap();
        let profile = NodeProfile {
            base_url: None,
            node_type: NodeType::Partial,
            provides_event: vec!["orn:bkc.practice".to_owned()],
            provides_state: vec!["orn:bkc.practice".to_owned()],
            public_key: key.public().as_str().to_owned(),
            kenning_did: None,
            successor_of: None,
        };
        Self {
            key,
            rid,
            profile,
            n_sent: std::cell::Cell::new(0),
        }
    }

    fn seal(&self, payload: &Payload, target: &str) -> String {
        self.n_sent.set(self.n_sent.get() + 1);
        let mut salt = [0; 32];
        salt[..8].copy_from_slice(&self.n_sent.get().to_be_bytes());
        seal(&payload.to_json(), &self.rid, target, &self.key, &salt)
    }

    fn hello(&self) -> Vec<Event> {
        let rid = Rid::parse(self.rid.as_str()).unwrap();
        let bundle = Bundle::of(&rid, self.profile.to_json(), 1_000).unwrap();
        vec![Event::forget(rid), Event::of(EventType::New, bundle)]
    }

    fn tell(&self, to: &Node, events: Vec<Event>) -> (u16, String) {
        post(
            to,
            "/events/broadcast",
            &self.seal(&Payload::Events(events), &to.rid),
        )
    }
}

fn post(to: &Node, path: &str, body: &str) -> (u16, String) {
    let answer = to
        .koi()
        .answer_federation(&Net::default(), path, body.as_bytes(), false);
    (answer.status, answer.body)
}

fn practice(name: &str, contents: Value, ms: u64) -> Event {
    let rid = Rid::parse(&format!("orn:bkc.practice:{name}")).unwrap();
    let text = contents.to_string();
    let contents = Json::parse(text.as_bytes(), Default::default()).unwrap();
    Event::of(EventType::New, Bundle::of(&rid, contents, ms).unwrap())
}

fn refused(error: &str) -> (u16, String) {
    (
        400,
        format!("{{\"type\":\"error_response\",\"error\":\"{error}\"}}"),
    )
}

#[test]
fn messages_that_are_not_what_they_say_are_refused_in_the_words_of_the_network() {
    let net = Net::default();
    let one = Node::new(&net, 1, &["Practice"]);
    let peer = Foreign::new("rusty", 900);
    let poll = Payload::Query(Query::PollEvents { limit: 0 });
    assert_eq!(
        post(&one, "/events/poll", &peer.seal(&poll, &one.rid)),
        refused("unknown_node")
    );
    let mut liar = Foreign::new("rusty", 901);
    liar.rid = peer.rid.clone();
    assert_eq!(liar.tell(&one, liar.hello()), refused("invalid_key"));
    let greeting = peer.seal(&Payload::Events(peer.hello()), &one.rid);
    assert_eq!(
        post(&one, "/events/broadcast", &greeting),
        (200, "null".to_owned())
    );
    assert_eq!(
        post(&one, "/events/broadcast", &greeting),
        refused("invalid_signature"),
        "a copy"
    );
    assert_eq!(
        post(&one, "/events/poll", &peer.seal(&poll, peer.rid.as_str())),
        refused("invalid_target")
    );
    let sealed = peer
        .seal(&poll, &one.rid)
        .replace("\"limit\":0", "\"limit\":1");
    assert_eq!(
        post(&one, "/events/poll", &sealed),
        refused("invalid_signature")
    );
    for (path, body) in [
        ("/events/poll", "{}"),
        ("/events/poll", "not json"),
        (
            "/events/broadcast",
            r#"{"type":"events_payload","events":[]}"#,
        ),
        ("/rids/fetch", r#"{"type":"fetch_rids","rid_types":[]}"#),
    ] {
        let (status, body) = post(&one, path, body);
        assert_eq!(status, 422, "{body}");
        assert!(body.starts_with("{\"detail\":["), "{body}");
    }
    // The same question, unsigned, from this machine: it tells who this node is, and no more.
    one.note(
        "Practices/Herring Count.md",
        "---\n\"@type\": bkc:Practice\n---\n",
    );
    one.turn(&net);
    let asked = br#"{"type":"fetch_rids","rid_types":[]}"#;
    let answer = one
        .koi()
        .answer_federation(&net, "/rids/fetch", asked, true);
    assert_eq!(
        answer.body,
        format!("{{\"type\":\"rids_payload\",\"rids\":[\"{}\"]}}", one.rid)
    );
    let (status, _) = post(&one, "/events/broadcast", &" ".repeat(5 * 1024 * 1024));
    assert_eq!(status, 422);
    // Whoever is known and not approved states nothing.
    peer.tell(
        &one,
        vec![practice("camas", json!({"name": "Camas"}), 2_000)],
    );
    one.turn(&net);
    assert_eq!(one.names("Practice"), ["Herring Count"]);
}

#[test]
fn a_peer_that_tells_two_histories_is_cut_off() {
    let net = Net::default();
    let one = Node::new(&net, 1, &[]);
    let peer = Foreign::new("rusty", 900);
    peer.tell(&one, peer.hello());
    one.koi()
        .approve_node(&one.fixture.owner(), "rusty", PeerPolicyChange::default())
        .unwrap();
    let tell = |event| {
        peer.tell(&one, vec![event]);
        one.turn(&net);
    };
    tell(practice(
        "camas",
        json!({"name": "Camas", "note": null}),
        2_000,
    ));
    tell(practice(
        "camas",
        json!({"name": "Camas", "note": null}),
        2_000,
    ));
    assert_eq!(one.names("Practice"), ["Camas"]);
    // Older: ignored. Wrong hash: refused. From the future: refused.
    tell(practice("camas", json!({"name": "Old camas"}), 1_000));
    let mut wrong = practice("camas", json!({"name": "Wrong camas"}), 3_000);
    wrong.contents = Some(Json::object([("name", Json::text("Other"))]));
    tell(wrong);
    tell(practice(
        "late",
        json!({"name": "Late"}),
        99_000_000_000_000,
    ));
    assert_eq!(one.names("Practice"), ["Camas"]);
    let status = one.status();
    let row = &status["peers"][0];
    assert_eq!(
        (&row["duplicates"], &row["refused"]),
        (&json!(2), &json!(2)),
        "{row}"
    );
    tell(practice(
        "camas",
        json!({"name": "Camas", "note": "another"}),
        2_000,
    ));
    let status = one.status();
    assert_eq!(status["status"], "degraded", "{status}");
    assert_eq!(status["peers"][0]["state"], "cut off", "{status}");
    tell(practice("more", json!({"name": "More"}), 4_000));
    assert_eq!(one.names("Practice"), ["Camas"]);
}

#[test]
fn a_node_that_only_polls_is_told_who_answers_and_gets_its_events() {
    let net = Net::default();
    let one = Node::new(&net, 1, &["Practice"]);
    let peer = Foreign::new("pollster", 900);
    peer.tell(&one, peer.hello());
    one.koi()
        .approve_node(
            &one.fixture.owner(),
            "pollster",
            PeerPolicyChange::default(),
        )
        .unwrap();
    let propose = |edge_type| {
        let edge = EdgeProfile {
            source: NodeRid::parse(&one.rid).unwrap(),
            target: peer.rid.clone(),
            edge_type,
            status: EdgeStatus::Proposed,
            rid_types: vec!["orn:koi-net.practice".to_owned()],
        };
        let rid = Rid::parse(&edge.rid()).unwrap();
        let bundle = Bundle::of(&rid, edge.to_json(), 5_000).unwrap();
        peer.tell(&one, vec![Event::of(EventType::New, bundle)]);
    };
    let poll = || {
        let query = Payload::Query(Query::PollEvents { limit: 0 });
        let (status, body) = post(&one, "/events/poll", &peer.seal(&query, &one.rid));
        assert_eq!(status, 200, "{body}");
        let value: Value = serde_json::from_str(&body).unwrap();
        let events = value["payload"]["events"].as_array().unwrap().clone();
        let each = events.iter().map(|it| {
            let rid = it["rid"].as_str().unwrap();
            let kind = rid.split(':').nth(1).unwrap();
            format!("{} {kind}", it["event_type"].as_str().unwrap())
        });
        each.collect::<Vec<_>>()
    };
    propose(EdgeType::Poll);
    one.note(
        "Practices/Herring Count.md",
        "---\n\"@type\": bkc:Practice\n---\n",
    );
    one.turn(&net);
    assert_eq!(
        poll(),
        [
            "NEW koi-net.node",
            "UPDATE koi-net.edge",
            "NEW koi-net.practice",
            // This node subscribes to what the other provides.
            "NEW koi-net.edge"
        ]
    );
    assert_eq!(poll(), Vec::<String>::new());
    // Nobody can call it.
    propose(EdgeType::Webhook);
    assert_eq!(poll(), ["FORGET koi-net.edge"]);
    // What waits is judged by the policy as it is when it is asked for.
    propose(EdgeType::Poll);
    one.note(
        "Practices/Camas Garden.md",
        "---\n\"@type\": bkc:Practice\n---\n",
    );
    one.turn(&net);
    let nothing = PeerPolicyChange {
        shares: Some(Vec::new()),
        ..PeerPolicyChange::default()
    };
    one.koi()
        .change_peer_policy(&one.fixture.owner(), "pollster", nothing)
        .unwrap();
    let polled = poll();
    assert!(
        !polled.iter().any(|it| it == "NEW koi-net.practice"),
        "{polled:?}"
    );
}

#[test]
fn only_the_signature_of_a_node_changes_what_is_known_of_it() {
    let net = Net::default();
    let one = Node::new(&net, 1, &["Practice"]);
    let peer = Foreign::new("pollster", 900);
    peer.tell(&one, peer.hello());
    let owner = one.fixture.owner();
    one.koi()
        .approve_node(&owner, "pollster", PeerPolicyChange::default())
        .unwrap();
    let known = || {
        let status = one.status();
        let rows = status["peers"].as_array().unwrap().clone();
        let is_it = |it: &Value| it.to_string().contains(peer.rid.as_str());
        rows.into_iter().find(is_it).unwrap()
    };
    let before = known();
    let handshake = json!({ "type": "handshake", "profile": {
        "node_rid": peer.rid.as_str(), "node_type": "FULL", "base_url": "http://evil.test",
        "provides": { "event": [], "state": [] }, "public_key": peer.profile.public_key,
    }});
    post(&one, "/handshake", &handshake.to_string());
    assert_eq!(known(), before, "an unsigned handshake");
    let liar = Foreign::new("liar", 901);
    liar.tell(&one, liar.hello());
    let forged = NodeProfile {
        base_url: Some("http://evil.test/koi-net".to_owned()),
        node_type: NodeType::Full,
        ..peer.profile.clone()
    };
    let rid = Rid::parse(peer.rid.as_str()).unwrap();
    let bundle = Bundle::of(&rid, forged.to_json(), 2_000).unwrap();
    liar.tell(&one, vec![Event::of(EventType::Update, bundle)]);
    assert_eq!(known(), before, "the signature of another");
    // A second name for the same key would share what is kept of the first.
    let alias = Foreign::new("alias", 900);
    alias.tell(&one, alias.hello());
    assert!(!one.status().to_string().contains(alias.rid.as_str()));
    // Operators of other spaces have no say here.
    let mut other = one.fixture.owner();
    other.principal = Principal::owner("other".parse().unwrap());
    let approved = one
        .koi()
        .approve_node(&other, "liar", PeerPolicyChange::default());
    assert_eq!(approved.unwrap_err().code, Code::Denied);
    assert!(one.koi().federation_status(&other).is_err());
}

#[test]
fn a_key_is_handed_over_and_the_peer_goes_on_with_the_new_one() {
    let net = Net::default();
    let (one, two) = (Node::new(&net, 1, &["Practice"]), Node::new(&net, 2, &[]));
    one.connect(&net, &two);
    two.connect(&net, &one);
    settle(&net, &[&one, &two]);
    let rid = one
        .koi()
        .rotate_federation_key(&one.fixture.owner())
        .unwrap()
        .rid;
    assert_ne!(rid, one.rid);
    one.note(
        "Practices/Herring Count.md",
        "---\n\"@type\": bkc:Practice\n---\n",
    );
    settle(&net, &[&one, &two]);
    let status = two.status();
    let states: BTreeMap<&str, &str> = status["peers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["node_rid"].as_str().unwrap(),
                it["state"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(states.get(rid.as_str()), Some(&"active"), "{status}");
    assert_eq!(states.get(one.rid.as_str()), Some(&"cut off"), "{status}");
    assert_eq!(two.names("Practice"), ["Herring Count"]);
}

/// Fifty nodes in a ring with chords; messages and answers get lost, some nodes are away for a while.
fn simulate(seed: u64, n_nodes: u64) {
    let net = Net::default();
    let nodes: Vec<Node> = (0..n_nodes)
        .map(|n| Node::new(&net, n, &["Practice"]))
        .collect();
    let mut source = Source::new(seed);
    let at = |n: u64| &nodes[usize::try_from(n % n_nodes).unwrap()];
    let mut pairs = Vec::new();
    for n in 0..n_nodes {
        pairs.push((n, (n + 1) % n_nodes));
        pairs.push((n, (n + 7) % n_nodes));
    }
    *net.loses.borrow_mut() = Some((Source::new(seed + 1), 5));
    for (a, b) in &pairs {
        at(*a).connect(&net, at(*b));
        at(*b).connect(&net, at(*a));
    }
    for (n, node) in nodes.iter().enumerate() {
        node.note(
            &format!("Practices/Way of node {n}.md"),
            "---\n\"@type\": bkc:Practice\n---\n",
        );
    }
    for _ in 0..2 {
        net.down.borrow_mut().clear();
        for node in &nodes {
            if source.one_in(4) {
                net.down.borrow_mut().push(node.url.clone());
            }
            node.fixture.clock.advance(u64::from(source.byte()) * 100);
        }
        nodes.iter().for_each(|it| it.turn(&net));
    }
    // The network is whole again.
    *net.loses.borrow_mut() = None;
    net.down.borrow_mut().clear();
    for _ in 0..4 {
        for node in &nodes {
            node.fixture.clock.advance(700_000);
            node.turn(&net);
        }
    }
    for n in 0..n_nodes {
        let mut expected = vec![format!("Way of node {n}")];
        let known = |it: &&(u64, u64)| it.0 == n || it.1 == n;
        let others = pairs
            .iter()
            .filter(known)
            .map(|it| if it.0 == n { it.1 } else { it.0 });
        expected.extend(others.map(|it| format!("Way of node {it}")));
        expected.sort();
        expected.dedup();
        // Of nodes that it is not connected with it knows nothing: nobody passes on what another said.
        assert_eq!(at(n).names("Practice"), expected, "seed {seed}, node {n}");
        assert_eq!(
            at(n).status()["event_queue_size"],
            0,
            "seed {seed}, node {n}"
        );
    }
}

#[test]
fn after_losses_and_absences_every_node_has_what_it_may_have() {
    for seed in [1, 2, 3] {
        simulate(seed, 10);
    }
}

#[test]
fn fifty_nodes_agree_too() {
    simulate(4, 50);
}
