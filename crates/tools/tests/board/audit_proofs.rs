//! Exports and proofs of the log, checked with a file and a key alone.

use super::audit::ask;
use kenning_audit::{Log, Signer};
use kenning_core::{Did, SeededRandom, Space};
use kenning_engine::{Caller, check_export, check_proof};
use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::json;
use std::sync::Arc;

#[test]
fn a_name_that_is_there_twice_is_refused() {
    let fixture = Fixture::without_vault(Selection::default());
    ask(&fixture, "memory_store", json!({ "content": "one" }));
    let (caller, key) = (fixture.owner(), fixture.log().signer().did().clone());
    let exported = export(&fixture, &caller);
    let twice = exported.replacen("\"kind\":", "\"kind\":\"Forged\",\"kind\":", 1);
    assert_ne!(twice, exported);
    assert!(is_accepted(exported.as_bytes(), &key));
    assert!(!is_accepted(twice.as_bytes(), &key));
    let open = || Ok(Box::new(std::io::Cursor::new(twice.clone())) as _);
    let error = check_export(&open, std::slice::from_ref(&key)).unwrap_err();
    assert!(error.message.contains("`kind` is there twice"), "{error}");
    let engine = fixture.board.engine();
    let proof = engine.prove_event(&caller, "1").unwrap().to_string();
    let twice = proof.replacen("\"treeSize\":", "\"treeSize\":9,\"treeSize\":", 1);
    assert!(check_proof(&proof, &key).is_ok());
    let error = check_proof(&twice, &key).unwrap_err();
    assert!(
        error.message.contains("`treeSize` is there twice"),
        "{error}"
    );
}

fn export(fixture: &Fixture, caller: &Caller) -> String {
    let engine = fixture.board.engine();
    let (end, seal) = engine.export_seal(caller).unwrap();
    let events = engine.events_after(caller, 0, usize::try_from(end).unwrap());
    let lines = events.unwrap().into_iter().map(|it| it.json.to_string());
    let lines: Vec<String> = lines.chain([seal.to_string()]).collect();
    lines.join("\n") + "\n"
}

fn is_accepted(bytes: &[u8], key: &Did) -> bool {
    let bytes = bytes.to_vec();
    let open = || Ok(Box::new(std::io::Cursor::new(bytes.clone())) as _);
    check_export(&open, std::slice::from_ref(key)).is_ok_and(|it| it.report.is_clean())
}

#[test]
fn no_bit_of_an_export_or_a_proof_can_be_another_one() {
    let fixture = Fixture::without_vault(Selection::default());
    ask(&fixture, "memory_store", json!({ "content": "one" }));
    ask(
        &fixture,
        "memory_store",
        json!({ "content": "two", "tags": ["x"] }),
    );
    let (caller, key) = (fixture.owner(), fixture.log().signer().did().clone());
    // A second server writes to the same store with a key of its own, which the first confirms.
    let random = SeededRandom::new(7);
    let second = Log::new(
        fixture.log().store().clone(),
        Signer::generate(&random),
        Arc::clone(&fixture.clock) as _,
        Arc::new(random),
    );
    let told = second.write(&Space::default(), |tx| {
        tx.record("Told", json!({ "by": "the second author" }))
    });
    told.unwrap();
    let joined = second.signer().did().to_string();
    let engine = fixture.board.engine();
    engine.add_author(&caller, &joined).unwrap();
    let exported = export(&fixture, &caller);
    assert!(exported.contains(&format!("\"author\":\"{joined}\"")));
    assert!(is_accepted(exported.as_bytes(), &key), "{exported}");
    let proof = fixture
        .board
        .engine()
        .prove_event(&caller, "1")
        .unwrap()
        .to_string();
    check_proof(&proof, &key).unwrap();
    let random = SeededRandom::new(11);
    let mut refused = 0;
    for n in 0..10_000 {
        let (text, is_proof) = if n % 4 == 0 {
            (&proof, true)
        } else {
            (&exported, false)
        };
        let mut changed = text.clone().into_bytes();
        let at = random.below(changed.len() as u64) as usize;
        changed[at] ^= 1 << random.below(8);
        let accepted = match is_proof {
            true => {
                String::from_utf8(changed.clone()).is_ok_and(|it| check_proof(&it, &key).is_ok())
            }
            false => is_accepted(&changed, &key),
        };
        let part =
            String::from_utf8_lossy(&changed[at.saturating_sub(60)..(at + 20).min(changed.len())]);
        assert!(!accepted, "change {n}, byte {at}: {part}");
        refused += 1;
    }
    println!("changed bits of exports and proofs: {refused} of 10000 refused, seed 11");
}
