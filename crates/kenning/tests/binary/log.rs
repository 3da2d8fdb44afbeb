//! The log as an operator uses it: proofs and exports that are checked elsewhere, checkpoints that others
//! sign, agents with keys, and writes that wait for a second key.

use crate::Place;
use kenning_core::SeededRandom;
use serde_json::Value;
use std::fs;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn store(place: &Place, content: &str) {
    place.good(&["omi", "store", content]);
}

/// The id in what `omi store` says.
fn id_of(told: &str) -> String {
    told.lines().last().unwrap().to_owned()
}

fn author(place: &Place) -> String {
    let listed = place.good(&["--json", "audit", "authors", "list"]);
    let mut listed = serde_json::Deserializer::from_str(&listed).into_iter::<Value>();
    let of_default = listed.find(|it| it.as_ref().is_ok_and(|it| it["space"] == "default"));
    let author = of_default.unwrap().unwrap();
    author["did"].as_str().unwrap().to_owned()
}

/// Whether the program accepts an export or a proof, without a store.
fn accepts(place: &Place, command: &str, bytes: &[u8], key: &str) -> bool {
    fs::write(place.0.path().join("changed"), bytes).unwrap();
    let data = place.0.path().join("none");
    let output = place.run(&[
        "--data",
        data.to_str().unwrap(),
        "audit",
        command,
        "changed",
        "--key",
        key,
    ]);
    assert!(!data.exists(), "no store is opened");
    output.status.success()
}

#[test]
fn an_export_is_checked_with_a_file_and_a_key_and_nothing_else() {
    let place = Place::new();
    for n in 0..5 {
        store(&place, &format!("memory {n}"));
    }
    let exported = place.good(&["audit", "export", "--checkpoint"]);
    let key = author(&place);
    let stranger = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";
    assert!(accepts(&place, "verify-file", exported.as_bytes(), &key));
    assert!(!accepts(
        &place,
        "verify-file",
        exported.as_bytes(),
        stranger
    ));
    fs::write(place.0.path().join("export"), &exported).unwrap();
    let told = place.good(&["--json", "audit", "verify-file", "export", "--key", &key]);
    let told = json(&told);
    assert_eq!(told["clean"], true);
    assert_eq!(told["events"], told["covered"]);
    // An event that is missing at the end is noticed, because the checkpoint covers it.
    let lines: Vec<&str> = exported.lines().collect();
    let n = lines.len();
    let shorter = [&lines[..n - 2], &lines[n - 1..]].concat().join("\n");
    assert!(!accepts(&place, "verify-file", shorter.as_bytes(), &key));
    assert!(
        !exported.contains("memory 3"),
        "the text of a memory is not in the log"
    );
    // Any changed bit is noticed; `crates/tools/tests/board/audit.rs` changes 10,000.
    let random = SeededRandom::new(3);
    for _ in 0..8 {
        let mut changed = exported.clone().into_bytes();
        let at = random.below(changed.len() as u64) as usize;
        changed[at] ^= 1 << random.below(8);
        let part = String::from_utf8_lossy(&changed[at.saturating_sub(20)..at + 1]).into_owned();
        assert!(
            !accepts(&place, "verify-file", &changed, &key),
            "byte {at}: {part}"
        );
    }
}

#[test]
fn a_proof_of_an_event_is_checked_with_a_key_and_nothing_else() {
    let place = Place::new();
    store(&place, "the first");
    store(&place, "the second");
    let proof = place.good(&["audit", "prove", "2"]);
    let key = author(&place);
    fs::write(place.0.path().join("proof.json"), &proof).unwrap();
    let told = place.good(&["audit", "verify-proof", "proof.json", "--key", &key]);
    assert!(told.starts_with("holds: event 2 ("), "{told}");
    let mut value = json(&proof);
    value["leafIndex"] = 0.into();
    assert!(!accepts(
        &place,
        "verify-proof",
        value.to_string().as_bytes(),
        &key
    ));
    let stranger = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";
    assert!(!accepts(&place, "verify-proof", proof.as_bytes(), stranger));
    let (code, err) = place.bad(&["audit", "prove", "999"]);
    assert!(
        code == 2 && err.contains("`999` is not the number of an event"),
        "{err}"
    );
    let (_, err) = place.bad(&["audit", "verify-proof", "proof.json", "--key", "x"]);
    assert!(err.contains("`x` is not a public key"), "{err}");
}

#[test]
fn a_checkpoint_is_countersigned_by_a_second_key_and_by_a_witness() {
    let place = Place::new();
    store(&place, "one");
    let note = place.good(&["audit", "checkpoint", "--note"]);
    assert!(
        note.starts_with("kenning/") && note.contains("\n\n\u{2014} kenning/"),
        "{note}"
    );
    let did = place
        .good(&["agent-key", "new", "second"])
        .trim()
        .to_owned();
    let told = json(&place.good(&["--json", "audit", "cosign", "--agent", "second"]));
    assert_eq!(told["validators"][1]["did"], did.as_str());
    assert_eq!(told["validators"][1]["name"], "kenning/agent/second");
    // Once is enough.
    let again = json(&place.good(&["--json", "audit", "cosign", "--agent", "second"]));
    assert_eq!(again["validators"].as_array().unwrap().len(), 2);
    // The note has it from now on; the events about a checkpoint are no reason for another.
    let cosigned = place.good(&["audit", "checkpoint", "--note"]);
    assert!(cosigned.starts_with(note.trim_end()), "{cosigned}");
    assert!(
        cosigned.contains("\n\u{2014} kenning/agent/second "),
        "{cosigned}"
    );
    assert!(
        place
            .good(&["audit", "stats"])
            .contains("1\tCheckpointCosigned")
    );
    // A line of another checkpoint does not count for this one.
    let forged = "\u{2014} w.example/1 1GorGwAAAABkGFDLJeR//pqzhnEKVvEm2wWbh2RJ6oru5+cUUfm5X9NnlaGr8aSH9QE5RVZD4QGlxl2F5UpVIIi94p178KLfqPPsAA==";
    let (code, err) = place.bad(&["audit", "cosign", "--line", forged, "--key", &did]);
    assert!(code == 2 && err.contains("not of this key"), "{err}");
    assert!(
        place
            .good(&["audit", "verify", "--all-spaces"])
            .contains("clean: ")
    );
}

#[test]
fn what_an_agent_writes_carries_its_identifier_until_its_key_is_revoked() {
    let place = Place::new();
    store(&place, "by nobody in particular");
    let did = place.good(&["agent-key", "new", "coder"]).trim().to_owned();
    let mut command = place.command(&["omi", "memory_store", "--content", "by the coder"]);
    let run = |command: &mut std::process::Command| {
        command.env("KENNING_AGENT", "coder").output().unwrap()
    };
    assert!(run(&mut command).status.success());
    let asked = place.good(&["--json", "kg", "kg_audit_query", "--author", &did]);
    let found = json(&asked);
    assert_eq!(found["data"]["totalCount"], 1, "{found:#}");
    assert_eq!(found["data"]["events"][0]["agent"], did.as_str());
    assert_ne!(found["data"]["events"][0]["author"], did.as_str());
    assert!(
        place
            .good(&["audit", "verify", "--all-spaces"])
            .contains("clean: ")
    );
    let (_, err) = place.bad(&["agent-key", "new", "coder"]);
    assert!(err.contains("has a key"), "{err}");
    let (_, err) = place.bad(&["agent-key", "new", "../x"]);
    assert!(err.contains("not a name for an agent"), "{err}");
    place.good(&["agent-key", "revoke", "coder"]);
    let refused = run(&mut command);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned()
        + &String::from_utf8_lossy(&refused.stdout);
    assert!(
        !refused.status.success() && told.contains("was revoked"),
        "{told}"
    );
    assert!(place.good(&["agent-key", "list"]).contains("revoked 20"));
}

#[test]
fn foundational_memories_wait_for_a_second_key() {
    let place = Place::new();
    place.good(&["omi", "init"]);
    place.good(&["omi", "config", "set", "security.enable_consensus", "true"]);
    store(&place, "an ordinary memory");
    let foundational = [
        "omi",
        "store",
        "never deploy on Fridays",
        "--tags",
        "foundational",
    ];
    let id = id_of(&place.good(&foundational));
    assert!(id.starts_with("pending_"), "{id}");
    let recall = || place.good(&["omi", "recall", "deploy Fridays"]);
    assert!(
        !recall().contains("never deploy"),
        "nothing is visible before"
    );
    let exported = place.good(&["audit", "export"]);
    assert!(!exported.contains("never deploy") && exported.contains("WriteProposed"));
    assert!(place.good(&["omi", "pending", "list"]).contains(&id));
    let (_, err) = place.bad(&["omi", "pending", "confirm", &id, "--agent", "nobody"]);
    assert!(err.contains("nobody"), "{err}");
    place.good(&["agent-key", "new", "reviewer"]);
    place.good(&["omi", "pending", "confirm", &id, "--agent", "reviewer"]);
    assert!(recall().contains("never deploy"));
    assert_eq!(place.good(&["omi", "pending", "list"]), "");
    let (_, err) = place.bad(&["omi", "pending", "confirm", &id, "--agent", "reviewer"]);
    assert!(err.contains(&id), "{err}");
    // What would take its place waits as well, and can be rejected.
    let found = json(&place.good(&[
        "--json",
        "omi",
        "memory_recall",
        "--query",
        "deploy Fridays",
    ]));
    let old = found.to_string();
    let old = &old[old.find("mem_").unwrap()..][..36];
    let next = place.good(&[
        "omi",
        "store",
        "deploy whenever you like",
        "--supersedes",
        old,
    ]);
    let next = id_of(&next);
    assert!(next.starts_with("pending_"), "{next}");
    place.good(&["omi", "pending", "reject", &next]);
    assert!(recall().contains("never deploy"));
    assert!(
        place
            .good(&["audit", "verify", "--all-spaces"])
            .contains("clean: ")
    );
}

#[test]
fn no_spelling_of_the_tag_goes_around_the_second_key() {
    let place = Place::new();
    place.good(&["omi", "init"]);
    place.good(&["omi", "config", "set", "security.enable_consensus", "true"]);
    for tag in [
        "FOUNDATIONAL",
        " foundational ",
        "#foundational",
        "# Foundational",
    ] {
        let id = id_of(&place.good(&["omi", "store", tag, "--tags", tag]));
        assert!(id.starts_with("pending_"), "{tag:?}: {id}");
    }
}

#[test]
fn a_foundational_memory_that_is_imported_waits_for_a_second_key() {
    let place = Place::new();
    let ordinary = id_of(&place.good(&["omi", "store", "an ordinary memory"]));
    let tagged = [
        "omi",
        "store",
        "never deploy on Fridays",
        "--tags",
        "#Foundational",
        "--related-to",
        &ordinary,
    ];
    let id = id_of(&place.good(&tagged));
    place.good(&["export", "nodes.jsonl"]);
    let at = |arguments: &[&str]| {
        let all = [&["--data", "other", "--omi-path", "other-omi"], arguments].concat();
        place.run(&all)
    };
    let good = |arguments: &[&str]| {
        let done = at(arguments);
        let err = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{err}");
        (String::from_utf8_lossy(&done.stdout).into_owned(), err)
    };
    good(&["omi", "init"]);
    good(&["omi", "config", "set", "security.enable_consensus", "true"]);
    let (_, told) = good(&["import", "nodes.jsonl"]);
    assert!(told.contains("wait for a second key"), "{told}");
    let recall = || good(&["omi", "recall", "deploy Fridays"]).0;
    assert!(!recall().contains("never deploy"));
    assert!(
        good(&["omi", "recall", "ordinary memory"])
            .0
            .contains("ordinary")
    );
    // The same file again waits once.
    good(&["import", "nodes.jsonl"]);
    let (listed, _) = good(&["omi", "pending", "list"]);
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let pending = listed.split('\t').next().unwrap().to_owned();
    good(&["agent-key", "new", "reviewer"]);
    let (confirmed, _) = good(&["omi", "pending", "confirm", &pending, "--agent", "reviewer"]);
    assert!(confirmed.contains(&id), "it keeps its id: {confirmed}");
    assert!(recall().contains("never deploy"));
    // What is here already and says the same does not wait; what would change it does.
    let (_, told) = good(&["import", "nodes.jsonl"]);
    assert!(!told.contains("wait"), "{told}");
    let changed = fs::read_to_string(place.0.path().join("nodes.jsonl")).unwrap();
    let changed = changed.replace("never deploy", "always deploy");
    fs::write(place.0.path().join("changed.jsonl"), changed).unwrap();
    let (_, told) = good(&["import", "changed.jsonl"]);
    assert!(told.contains("wait for a second key"), "{told}");
    assert!(recall().contains("never deploy"));
    assert!(
        good(&["audit", "verify", "--all-spaces"])
            .0
            .contains("clean: ")
    );
}

#[test]
fn what_was_typed_cannot_command_the_terminal() {
    let place = Place::new();
    for arguments in [
        &["agent-key", "new", "a\u{1b}[2Jb"][..],
        &["agent-key", "new", "a\nerror: another"],
        &["agent-key", "revoke", "a\u{1b}]0;title\u{7}"],
        &["audit", "cosign", "--agent", "a\u{202e}b"],
        &["agent-key", "\u{1b}[2J"],
        &["\u{1b}[31mnonsense"],
        &["token", "create", "--name", "a\u{1b}[2J"],
        &["token", "create", "--name", "a\nb"],
    ] {
        let (_, err) = place.bad(arguments);
        let is_bad = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!err.contains(is_bad), "{err:?}");
        assert!(!err.contains("\nerror: another"), "{err:?}");
    }
}

#[test]
fn backup_and_import_say_what_they_counted() {
    let place = Place::new();
    store(&place, "one");
    store(&place, "two");
    let done = place.run(&["backup", "all.jsonl"]);
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    place.good(&["export", "nodes.jsonl"]);
    let exported = fs::read_to_string(place.0.path().join("nodes.jsonl")).unwrap();
    let n = exported
        .lines()
        .filter(|it| it.starts_with("{\"node\""))
        .count();
    let expected = format!("rows, among them {n} nodes and ");
    assert!(n >= 2 && told.contains(&expected), "{n}: {told}");
    let import = |file: &str| {
        let done = place.run(&["--data", "copy", "import", file]);
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let told = import("nodes.jsonl");
    // The copy has the same NOW.md.
    let expected = format!(
        "; of the nodes {} new, 1 of files that were here and stay",
        n - 1
    );
    assert!(told.contains(&expected), "{told}");
    let text = exported.replace("\"one\"", "\"uno\"");
    fs::write(place.0.path().join("changed.jsonl"), text).unwrap();
    let told = import("changed.jsonl");
    let expected =
        "of the nodes 1 new revisions of nodes that were here, 1 here already, 1 of files";
    assert!(told.contains(expected), "{told}");
    let stats = place.good(&["audit", "stats"]);
    assert!(!stats.contains("verified at"), "{stats}");
    place.good(&["audit", "verify"]);
    let stats = place.good(&["audit", "stats"]);
    assert!(
        stats.contains("verified at 20") && stats.contains(", clean"),
        "{stats}"
    );
}
