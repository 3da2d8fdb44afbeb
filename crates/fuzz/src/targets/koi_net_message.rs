//! Messages of other nodes of KOI-net: anybody can send one.
//!
//! An input is the text of a message, or of what a message carries. It is tried as it is at every path, and as what
//! an approved peer signed.

use super::{ensure, in_time, short};
use crate::{Source, Subject, Target};
use kenning_core::{Code, Error};
use kenning_engine::koi::{
    Carried, Carrier, Destination, FEDERATION_PATHS, FederationSetup, PeerPolicyChange,
};
use kenning_federation::envelope::seal;
use kenning_federation::{
    Bundle, EdgeProfile, Envelope, Event, EventType, Json, Limits, Manifest, NodeProfile, NodeRid,
    NodeType, Payload, Rid, SecretKey,
};
use kenning_testing::Fixture;

pub(super) const TARGET: Target = Target {
    name: "koi_net_message",
    about: "a message of a node of KOI-net is answered or refused, and reads back as it was written",
    words: WORDS,
    seeds,
    generate,
    open: || Box::new(Messages::new()),
    pass_cases: 400,
    fresh_every: 500,
    contains_panics: false,
};

const VECTORS: &str = include_str!("../../../../testing/vectors/koi-net-vectors.json");
const GENERATIONS: &str = include_str!("../../../../testing/vectors/koi-net-generations.json");

const WORDS: &[&str] = &[
    "\"type\":\"events_payload\"",
    "\"type\":\"poll_events\"",
    "\"type\":\"fetch_rids\"",
    "\"type\":\"fetch_manifests\"",
    "\"type\":\"fetch_bundles\"",
    "\"type\":\"confirm_events\"",
    "\"type\":\"handshake\"",
    "\"event_type\":\"NEW\"",
    "\"event_type\":\"FORGET\"",
    "\"rid\":\"orn:koi-net.practice:x\"",
    "\"rid\":\"orn:koi-net.node:x+0123456789abcdef\"",
    "\"manifest\":{",
    "\"contents\":{",
    "\"timestamp\":\"9999-12-31T23:59:59.999999Z\"",
    "\"timestamp\":\"-271821-04-20T00:00:00Z\"",
    "\"sha256_hash\":\"44136fa355b3678a\"",
    "\"limit\":18446744073709551616",
    "\"limit\":-1",
    "\"rid_types\":[",
    "\"event_ids\":[",
    "1e400",
    "-0.0",
    "1e-400",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "null",
];

/// What the reference and Octo nodes sent, whole and only what it carried.
fn seeds() -> Vec<Vec<u8>> {
    let read = |it: &str| Json::parse(it.as_bytes(), Limits::default()).expect("vectors");
    let text = |it: &Json, name: &str| {
        let text = it.get(name).and_then(Json::as_str);
        text.unwrap_or_default().to_owned()
    };
    let (vectors, generations) = (read(VECTORS), read(GENERATIONS));
    let items = |it: &Json, name: &str| {
        let items = it.get(name).and_then(Json::items);
        items.unwrap_or_default().to_vec()
    };
    let unsigned = items(&vectors, "envelopes");
    let unsigned = unsigned.iter().map(|it| text(it, "unsigned_bytes"));
    let sent = items(&generations, "senders");
    let sent = sent.iter().flat_map(|it| items(it, "envelopes"));
    let sent = sent.map(|it| text(&it, "body"));
    let mut all = Vec::new();
    for message in unsigned.chain(sent) {
        if let Some(payload) = read(&message).get("payload") {
            all.push(payload.to_text().into_bytes());
        }
        all.push(message.into_bytes());
    }
    all
}

/// Events with odd contents, names and times.
fn generate(source: &mut Source) -> Vec<u8> {
    let n_events = source.below(4);
    let events: Vec<String> = (0..n_events)
        .map(|_| {
            let kinds = ["NEW", "UPDATE", "FORGET", "new"];
            let types = [
                "orn:koi-net.practice",
                "orn:koi-net.node",
                "orn:koi-net.edge",
                "https",
            ];
            let rid = format!("{}:{}", source.pick(&types), source.word());
            let rid = Json::text(rid).to_text();
            let contents = match source.one_in(4) {
                true => source.json(4),
                false => format!(r#"{{"name":{},"x":{}}}"#, Json::text(source.text()).to_text(), source.json(3)),
            };
            let parsed = Json::parse(contents.as_bytes(), Limits::default());
            let hash = parsed.ok().and_then(|it| kenning_federation::manifest::hash_of(&it).ok());
            let hash = hash.unwrap_or_default();
            let hash = hash.get(..if source.one_in(5) { 16 } else { 64 }).unwrap_or_default();
            let kind = source.pick(&kinds);
            format!(
                r#"{{"rid":{rid},"event_type":"{kind}","manifest":{{"rid":{rid},"timestamp":"2026-01-02T03:04:05Z","sha256_hash":"{hash}"}},"contents":{contents}}}"#
            )
        })
        .collect();
    format!(
        r#"{{"type":"events_payload","events":[{}]}}"#,
        events.join(",")
    )
    .into_bytes()
}

/// Nobody can be reached.
struct Nobody;

impl Carrier for Nobody {
    fn carry(&self, _: &Destination, _: &str, _: Option<&str>) -> kenning_core::Result<Carried> {
        Err(Error::unavailable("nobody answers"))
    }
}

struct Messages {
    fixture: Fixture,
    me: String,
    peer: (SecretKey, NodeRid),
    n_sent: u64,
}

impl Messages {
    fn new() -> Self {
        let fixture = Fixture::without_vault(Default::default());
        let koi = fixture.board.engine().koi().clone();
        let setup = FederationSetup {
            name: Some("fuzzed".to_owned()),
            provides: Some(vec!["Practice".to_owned()]),
            ..FederationSetup::default()
        };
        let identity = koi.set_up_federation(&fixture.owner(), setup);
        let me = identity.expect("a node").rid;
        let key = SecretKey::from_secret(&[3; 32]).expect("a key");
        let rid = NodeRid::of("peer", &key.public()).expect("a name");
        let mut messages = Self {
            fixture,
            me,
            peer: (key, rid),
            n_sent: 0,
        };
        let profile = NodeProfile {
            base_url: None,
            node_type: NodeType::Partial,
            provides_event: vec!["orn:koi-net.practice".to_owned()],
            provides_state: Vec::new(),
            public_key: messages.peer.0.public().as_str().to_owned(),
            kenning_did: None,
            successor_of: None,
        };
        let rid = Rid::parse(messages.peer.1.as_str()).expect("a RID");
        let bundle = Bundle::of(&rid, profile.to_json(), 1_000).expect("a profile");
        let hello = Payload::Events(vec![Event::of(EventType::New, bundle)]).to_json();
        let (status, body) = messages.send(&hello, "/events/broadcast");
        // What is refused anyway would prove nothing.
        assert_eq!((status, body.as_str()), (200, "null"));
        koi.approve_node(
            &messages.fixture.owner(),
            "peer",
            PeerPolicyChange::default(),
        )
        .expect("a peer");
        messages
    }

    fn post(&self, path: &str, body: &[u8]) -> (u16, String) {
        let koi = self.fixture.board.engine().koi();
        let answer = koi.answer_federation(&Nobody, path, body, true);
        (answer.status, answer.body)
    }

    /// Sends what the peer signs.
    fn send(&mut self, payload: &Json, path: &str) -> (u16, String) {
        self.n_sent += 1;
        let mut salt = [0; 32];
        salt[..8].copy_from_slice(&self.n_sent.to_le_bytes());
        let sealed = seal(payload, &self.peer.1, &self.me, &self.peer.0, &salt);
        self.post(path, sealed.as_bytes())
    }

    fn judge(path: &str, (status, body): &(u16, String)) -> Result<(), String> {
        ensure!(*status < 500, "{path} was answered with {status}: {body}");
        ensure!(
            Json::parse(body.as_bytes(), Limits::default()).is_ok(),
            "{path} was answered with what is not JSON: {body}"
        );
        Ok(())
    }
}

/// What was read is the same after writing and reading again.
fn reads_back(value: &Json) -> Result<(), String> {
    type Again = fn(&Json) -> kenning_core::Result<Json>;
    let readers: [(&str, Again); 6] = [
        ("a payload", |it| {
            Payload::from_json(it).map(|it| it.to_json())
        }),
        ("an event", |it| Event::from_json(it).map(|it| it.to_json())),
        ("a manifest", |it| {
            Manifest::from_json(it).map(|it| it.to_json())
        }),
        ("a bundle", |it| {
            Bundle::from_json(it).map(|it| it.to_json())
        }),
        ("a profile", |it| {
            NodeProfile::from_json(it).map(|it| it.to_json())
        }),
        ("an edge", |it| {
            EdgeProfile::from_json(it).map(|it| it.to_json())
        }),
    ];
    for (name, read) in readers {
        match read(value) {
            Ok(written) => {
                let again = read(&written)
                    .map_err(|it| format!("{name} that was read and written: {it}"))?;
                ensure!(
                    again == written,
                    "{name} reads back otherwise: {}",
                    written.to_text()
                );
            }
            Err(error) => {
                ensure!(
                    error.code == Code::InvalidInput,
                    "{name} was answered with {:?}: {error}",
                    error.code
                );
                short(&error)?;
            }
        }
    }
    Ok(())
}

impl Subject for Messages {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        for path in FEDERATION_PATHS {
            let answer = in_time(input, || self.post(path, input))?;
            Self::judge(path, &answer)?;
        }
        let value = match in_time(input, || Json::parse(input, Limits::default()))? {
            Ok(value) => value,
            Err(error) => {
                ensure!(
                    matches!(error.code, Code::InvalidInput | Code::TooLarge),
                    "a message was answered with {:?}: {error}",
                    error.code
                );
                return short(&error);
            }
        };
        let text = value.to_text();
        let again = Json::parse(text.as_bytes(), Limits::default());
        ensure!(
            again.is_ok_and(|it| it == value),
            "reads back otherwise: {text}"
        );
        if let Ok(canonical) = value.to_canonical() {
            let again = Json::parse(canonical.as_bytes(), Limits::default());
            let again = again.and_then(|it| it.to_canonical());
            ensure!(
                again.is_ok_and(|it| it == canonical),
                "has two canonical forms: {canonical}"
            );
        }
        let payload = Envelope::from_json(&value).map_or(value, |it| it.payload);
        reads_back(&payload)?;
        for path in FEDERATION_PATHS {
            let answer = in_time(input, || self.send(&payload, path))?;
            Self::judge(path, &answer)?;
        }
        let koi = self.fixture.board.engine().koi();
        let mut faults = Vec::new();
        koi.federation_turn(&Nobody, &|_| Ok(true), &mut faults)
            .map_err(|it| format!("what was taken is not digested: {it}"))?;
        Ok(())
    }
}
