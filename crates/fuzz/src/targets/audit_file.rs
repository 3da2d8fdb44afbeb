//! Exports and proofs of a log, checked with a key and without a store.

use super::{ensure, in_time, short};
use crate::{Source, Subject, Target};
use kenning_core::{Code, Did};
use kenning_engine::{check_export, check_proof, parse_public_key};
use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::{Value, json};
use std::sync::LazyLock;

pub(super) const TARGET: Target = Target {
    name: "audit_file",
    about: "a file is accepted only if it says what was signed, and refused in words",
    words: WORDS,
    seeds: || {
        let good = &*GOOD;
        vec![
            good.export.clone().into_bytes(),
            good.proof.clone().into_bytes(),
        ]
    },
    generate,
    open: || {
        // What is refused anyway would prove nothing.
        let Good { export, proof, key } = &*GOOD;
        assert!(is_accepted(export.as_bytes(), key) && check_proof(proof, key).is_ok());
        Box::new(Files)
    },
    pass_cases: 600,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "\"seq\":",
    "\"version\":1",
    "\"hlc\":\"",
    "\"erased\":true",
    "\"origin\":",
    "\"changes\":[",
    "\"leafIndex\":18446744073709551615",
    "\"treeSize\":0",
    "\"treeSize\":18446744073709551615",
    "\"path\":[]",
    "{\"checkpoint\":",
    "\"note\":\"",
    "\\n\\n\u{2014} a b\\n",
    "did:key:z6Mk",
    "null",
    "{}",
    "\n",
];

struct Good {
    export: String,
    proof: String,
    key: Did,
}

static GOOD: LazyLock<Good> = LazyLock::new(|| {
    let fixture = Fixture::without_vault(Selection::default());
    for content in ["one", "two", "three"] {
        fixture.call("memory_store", json!({ "content": content }));
    }
    let (engine, caller) = (fixture.board.engine(), fixture.owner());
    let (end, seal) = engine.export_seal(&caller).expect("a checkpoint");
    let end = usize::try_from(end).expect("few events");
    let events = engine.events_after(&caller, 0, end).expect("events");
    let lines = events.into_iter().map(|it| it.json.to_string());
    let lines: Vec<String> = lines.chain([seal.to_string()]).collect();
    Good {
        export: lines.join("\n") + "\n",
        proof: engine
            .prove_event(&caller, "2")
            .expect("a proof")
            .to_string(),
        key: fixture.log().signer().did().clone(),
    }
});

/// The lines in another order, some of them twice and some of them missing, or a proof with odd numbers.
fn generate(source: &mut Source) -> Vec<u8> {
    if source.one_in(2) {
        let Ok(mut proof) = serde_json::from_str::<Value>(&GOOD.proof) else {
            return Vec::new();
        };
        let places = [
            "/leafIndex",
            "/treeSize",
            "/content/seq",
            "/checkpoint/size",
            "/checkpoint/height",
            "/path",
            "/content/changes",
            "/note",
        ];
        for _ in 0..=source.below(2) {
            let number = source.odd_number();
            let odd = serde_json::from_str(number).unwrap_or_else(|_| number.into());
            if let Some(place) = proof.pointer_mut(source.pick::<&str>(&places)) {
                *place = odd;
            }
        }
        return proof.to_string().into_bytes();
    }
    let mut lines: Vec<&str> = GOOD.export.lines().collect();
    for _ in 0..source.below(4) {
        let at = source.below(lines.len());
        match source.below(3) {
            0 if lines.len() > 1 => {
                lines.remove(at);
            }
            1 => lines.swap(at, 0),
            _ => lines.push(lines[at]),
        }
    }
    lines.join("\n").into_bytes()
}

/// What a file says, whatever spaces are in it; `None` if a line is not JSON.
fn values(text: &str) -> Option<Vec<Value>> {
    let lines = text.lines().filter(|it| !it.trim().is_empty());
    lines.map(|it| serde_json::from_str(it).ok()).collect()
}

fn is_accepted(input: &[u8], key: &Did) -> bool {
    let bytes = input.to_vec();
    let open = || Ok(Box::new(std::io::Cursor::new(bytes.clone())) as _);
    check_export(&open, std::slice::from_ref(key)).is_ok_and(|it| it.report.is_clean())
}

fn refused(error: &kenning_core::Error) -> Result<(), String> {
    ensure!(
        matches!(
            error.code,
            Code::InvalidInput | Code::Corrupt | Code::TooLarge
        ),
        "a file was answered with {:?}: {error}",
        error.code
    );
    short(error)
}

struct Files;

impl Subject for Files {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let Good { export, proof, key } = &*GOOD;
        let bytes = input.to_vec();
        let open = || Ok(Box::new(std::io::Cursor::new(bytes.clone())) as _);
        let keys = std::slice::from_ref(key);
        match in_time(input, || check_export(&open, keys))? {
            Ok(checked) if checked.report.is_clean() && checked.n_checkpoints > 0 => {
                let read = std::str::from_utf8(input).ok().and_then(values);
                let mut read = read.ok_or("lines that are not JSON were accepted")?;
                let mut signed = values(export).ok_or("the good export")?;
                // A checkpoint says the same wherever it stands, and however often.
                read.retain(|it| it.get("checkpoint").is_none());
                signed.retain(|it| it.get("checkpoint").is_none());
                ensure!(
                    read == signed,
                    "an export that was never signed is accepted"
                );
            }
            Ok(_) => {}
            Err(error) => refused(&error)?,
        }
        let Ok(text) = std::str::from_utf8(input) else {
            return Ok(());
        };
        match in_time(input, || check_proof(text, key))? {
            Ok(_) => ensure!(
                serde_json::from_str::<Value>(text).ok()
                    == serde_json::from_str::<Value>(proof).ok(),
                "a proof that was never given is accepted"
            ),
            Err(error) => refused(&error)?,
        }
        if let Err(error) = in_time(input, || parse_public_key(text))? {
            refused(&error)?;
        }
        Ok(())
    }
}
