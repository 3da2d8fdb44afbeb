//! Events whose payload a stranger wrote, signed or not.

use super::{ensure, in_time, owned, pieces, text};
use crate::{Source, Subject, Target};
use kenning_audit::{Event, LogId, Origin, Signer, event};
use kenning_core::{Code, Did, Hash, Hlc, SeededRandom};
use kenning_store::SealedData;
use serde_json::json;

pub(super) const TARGET: Target = Target {
    name: "event_decode",
    about: "only what was signed passes, and what passes reads back",
    words: WORDS,
    seeds: || owned(SEEDS),
    generate,
    open: || Box::new(Events(Signer::generate(&SeededRandom::new(1)))),
    pass_cases: 1_500,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "{\"changes\":[",
    "],\"data\":",
    "{\"put\":\"node\",\"id\":\"018bcfe5-6800-7a4f-b1d9-000000000000\",\"rev\":1,\"hash\":\"",
    "{\"remove\":\"node\"}",
    "{\"put\":\"edge\"",
    "{\"end\":\"edge\"",
    "\"src\":",
    "\"dst\":",
    "\"rel\":\"r\"",
    "null",
    "{}",
    "[",
    "]",
    "}",
    ",",
    "did:key:z6Mk",
    "did:key:z",
    "did:",
    "1",
    "z",
    "\u{e9}",
];

const SEEDS: &[&str] = &[
    "{\"changes\":[],\"data\":null}",
    "{\"changes\":[{\"put\":\"node\",\"id\":\"018bcfe5-6800-7a4f-b1d9-0123456789ab\",\"rev\":1,\"hash\":\"0000000000000000000000000000000000000000000000000000000000000000\"},{\"remove\":\"node\",\"id\":\"018bcfe5-6800-7a4f-b1d9-0123456789ab\"}],\"data\":{\"a\":[1,2.5,\"x\"]}}",
    "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
];

fn generate(source: &mut Source) -> Vec<u8> {
    if source.one_in(8) {
        let n = source.depth();
        return format!("did:key:z{}", "z6Mk".repeat(n)).into_bytes();
    }
    if source.one_in(2) {
        let data = source.json(5);
        return format!("{{\"changes\":[],\"data\":{data}}}").into_bytes();
    }
    pieces(
        source,
        WORDS,
        &[
            ("[", "]"),
            ("{\"a\":", "}"),
            ("{\"changes\":[],\"data\":", "}"),
        ],
    )
    .into_bytes()
}

struct Events(Signer);

impl Subject for Events {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let signer = &self.0;
        let event = Event {
            parents: vec![Hash::of(b"parent")],
            hlc: Hlc::from_ms(1_800_000_000_000),
            author: signer.did().clone(),
            agent: None,
            kind: "test".to_owned(),
            changes: Vec::new(),
            data: json!({}),
        };
        let origin = Origin {
            log: LogId([7; 16]),
            space: "default".to_owned(),
        };
        let good = event.sign(1, &origin, [1; 16], signer);
        ensure!(event::check(&good).is_ok(), "a good event is refused");
        // Nobody signed this.
        let mut row = good.clone();
        row.payload = input.to_vec();
        if row.payload != good.payload {
            let checked = in_time(input, || event::check(&row))?;
            let code = checked.err().map(|it| it.code);
            ensure!(
                code == Some(Code::Corrupt),
                "a changed payload passed, or {code:?}"
            );
        }
        // Signed with a valid key, as an event of either version.
        for version in [1, good.version] {
            row.version = version;
            row.sealed = match version {
                1 => SealedData::default(),
                _ => good.sealed.clone(),
            };
            row.id = Hash::of(&event::canonical_bytes(&row));
            row.signature = signer.sign(&row.id);
            if let Ok(read) = in_time(input, || event::check(&row))? {
                let again = read.sign(1, &origin, [2; 16], signer);
                let read_again = event::check(&again).map_err(|it| format!("again: {it}"))?;
                ensure!(read_again == read, "an event reads back otherwise");
            }
        }
        // Data that is not what was signed.
        let mut row = good.clone();
        row.sealed.data = input.to_vec();
        if row.sealed.data != good.sealed.data {
            let checked = in_time(input, || event::check(&row))?;
            ensure!(checked.is_err(), "changed data passed");
        }
        // Another author than the one who signed.
        let mut row = good.clone();
        row.author = text(input).into_owned();
        if row.author != good.author {
            row.id = Hash::of(&event::canonical_bytes(&row));
            row.signature = signer.sign(&row.id);
            let checked = in_time(input, || event::check(&row))?;
            ensure!(checked.is_err(), "another author passed: `{}`", row.author);
        }
        if let Ok(did) = in_time(input, || text(input).parse::<Did>())? {
            ensure!(did.public_key().is_some(), "did: `{did}` names no key");
        }
        Ok(())
    }
}
