//! Messages of other nodes: compressed JSON with pages of a log.
//!
//! An input is the text of a message. It is tried as it is, as if it were compressed already, and
//! compressed, once for each place that a message may come to.

use super::{ensure, in_time, short};
use crate::{Source, Subject, Target};
use flate2::Compression;
use flate2::read::ZlibEncoder;
use kenning_core::{Code, Space};
use kenning_peers::{
    Along, Have, Page, Peer, Policy, Request, Response, Wanted, build, pack, peer_id, unpack,
};
use kenning_testing::Fixture;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::Read as _;
use std::sync::LazyLock;

pub(super) const TARGET: Target = Target {
    name: "sync_message",
    about: "a message of another node is refused, or reads back as it was written",
    words: WORDS,
    seeds: || SEEDS.clone(),
    generate,
    open: || {
        // What is refused anyway would prove nothing.
        let good = serde_json::from_slice::<Value>(&SEEDS[1]).expect("a message");
        assert!(Request::from_json("/events", &good).is_ok());
        Box::new(Messages)
    },
    pass_cases: 1_500,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "\"page\":",
    "\"events\":[",
    "\"head\":{",
    "\"from\":18446744073709551615",
    "\"from\":",
    "\"rows\":[",
    "\"node\":\"",
    "\"edge\":\"",
    "\"weight\":\"NaN\"",
    "\"weight\":-0.0",
    "\"vector\":\"",
    "\"numbers\":[1e39]",
    "\"numbers\":[1e-46]",
    "\"pair\":\"",
    "\"name\":\"",
    "\"props\":{}",
    "\"checkpoint\":null",
    "\"cosignatures\":[[1,\"x\"]]",
    "\"include\":[]",
    "\"maxEvents\":",
    "\"yours\":{\"log\":null,\"size\":0}",
    "null",
    "x\u{9c}",
];

/// Every sort of message, with a page of a small log.
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let fixture = Fixture::new();
    let note = json!({ "path": "a.md", "content": "# A\n\n[[People/Bill Baue]]" });
    fixture.call("vault_write_note", note);
    let memory = json!({ "content": "The sky is blue.", "memory_type": "fact" });
    fixture.call("memory_store", memory);
    let vector = json!({ "id": "v", "vector": [1.0, 0.5], "metadata": { "a": 1 } });
    fixture
        .board
        .call("kg_vector_upsert", vector, &fixture.owner());
    let (log, space) = (fixture.log(), Space::default());
    log.checkpoint(&space).expect("a checkpoint");
    let did = log.signer().did().clone();
    let peer = Peer {
        id: peer_id("", &did),
        did,
        endpoint: String::new(),
        policy: Policy::default(),
        added_ms: 0,
        cut_off: None,
    };
    let none = HashSet::new();
    let wanted = Wanted {
        peer: &peer,
        their_log: None,
        from: 0,
        include: &none,
        leave_out: &none,
        entries_max: 100,
    };
    let page = log.read(&space, |tx| {
        build(tx, &space, log.signer(), 1, &wanted, &|_| true)
    });
    let page = page.expect("a page").expect("a log");
    let ids: Vec<_> = page.entries.iter().map(|it| it.id).collect();
    let have = Have {
        log: Some(page.head.origin.log),
        size: 2,
    };
    let along = Along {
        n_taken: 3,
        cosignatures: vec![(1, "a line".to_owned())],
        latency_ms: Some(5),
    };
    let requests = [
        Request::Pull {
            space: space.clone(),
            log: have.log,
            have,
            include: ids.clone(),
            entries_max: 100,
            along: along.clone(),
        },
        Request::Push {
            space,
            page: page.clone(),
            is_complete: true,
            along: along.clone(),
        },
    ];
    let responses = [
        Response::Page {
            page: Some(page),
            yours: have,
        },
        Response::Page {
            page: None,
            yours: Have::default(),
        },
        Response::Pushed {
            yours: have,
            wants: ids,
            n_events: 1,
            n_refused: 2,
            along,
        },
    ];
    let messages = requests.iter().map(Request::to_json);
    let messages: Vec<Value> = messages
        .chain(responses.iter().map(Response::to_json))
        .collect();
    let packed = messages.iter().map(|it| pack(it).expect("a message"));
    let texts = messages.iter().map(|it| it.to_string().into_bytes());
    texts.chain(packed).collect()
});

/// A page whose rows are of every sort, with odd values.
fn generate(source: &mut Source) -> Vec<u8> {
    let Ok(mut message) = serde_json::from_slice::<Value>(source.pick::<Vec<u8>>(&SEEDS[..2]))
    else {
        return Vec::new();
    };
    let id = "01900000-0000-7000-8000-000000000001";
    let odd = |source: &mut Source| {
        let text = source.json(3);
        serde_json::from_str::<Value>(&text).unwrap_or_else(|_| source.text().into())
    };
    let n = source.below(6);
    let rows: Vec<Value> = (0..n)
        .map(|_| {
            let numbers = [0.1, 1e308, -0.0, 1e39].map(Value::from);
            let number = match source.one_in(5) {
                true => json!("inf"),
                false => source.pick(&numbers).clone(),
            };
            match source.below(5) {
                0 => json!({ "node": id, "kind": "note", "project": "", "key": source.text(),
                    "title": source.text(), "body": source.text(), "props": { "a": odd(source) } }),
                1 => json!({ "edge": id, "rel": source.word(), "dst": id, "weight": number,
                    "props": { "a": odd(source) } }),
                2 => json!({ "name": source.text(), "of": id }),
                3 => json!({ "vector": source.text(), "collection": "c", "model": "m",
                    "numbers": [number, 1], "props": {} }),
                _ => json!({ "pair": source.text(), "bucket": source.word(), "value": "00ff" }),
            }
        })
        .collect();
    if let Some(entry) = message.pointer_mut("/page/events/0") {
        entry["rows"] = rows.into();
    }
    message.to_string().into_bytes()
}

struct Messages;

impl Messages {
    fn read(bytes: &[u8]) -> Result<(), String> {
        let value = match in_time(bytes, || unpack(bytes))? {
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
        // What a node sends on is what it read, so writing and reading again changes nothing.
        type Again = fn(&Value) -> kenning_core::Result<Value>;
        let readers: [(&str, Again); 4] = [
            ("a page", |it| Page::from_json(it).map(|it| it.to_json())),
            ("a pull", |it| {
                Request::from_json("/sync", it).map(|it| it.to_json())
            }),
            ("a push", |it| {
                Request::from_json("/events", it).map(|it| it.to_json())
            }),
            ("a response", |it| {
                Response::from_json(it).map(|it| it.to_json())
            }),
        ];
        let places = [Some(&value), value.get("page")];
        for place in places.into_iter().flatten() {
            for (name, read) in readers {
                match in_time(bytes, || read(place))? {
                    Ok(written) => {
                        let again = read(&written)
                            .map_err(|it| format!("{name} that was read and written: {it}"))?;
                        ensure!(again == written, "{name} reads back otherwise: {written}");
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
        }
        Ok(())
    }
}

impl Subject for Messages {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        Self::read(input)?;
        let mut packed = Vec::new();
        ZlibEncoder::new(input, Compression::fast())
            .read_to_end(&mut packed)
            .map_err(|it| it.to_string())?;
        Self::read(&packed)
    }
}
