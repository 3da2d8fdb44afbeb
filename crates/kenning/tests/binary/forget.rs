//! What is forgotten is nowhere: not in a row, a file, an index, a free page or an event.

use crate::omi::finish;
use crate::{Client, Place};
use kenning_testing_postgres::shared;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const SECRET: &str = "quartzheronlantern7731vermilion";

/// Standard output, without what is only said.
fn omi(place: &Place, arguments: &[&str]) -> String {
    let arguments = [&["--quiet"], arguments].concat();
    let (code, out, err) = finish(place.omi(&arguments), "");
    assert_eq!(code, 0, "{arguments:?}: {err}");
    out
}

fn omi_json(place: &Place, arguments: &[&str]) -> Value {
    let arguments = [&["--json"], arguments].concat();
    serde_json::from_str(&omi(place, &arguments)).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}

/// Base64 of some bytes whose number is divisible by three.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = |three: &[u8]| {
        let n = three.iter().fold(0, |n, it| n << 8 | usize::from(*it));
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[n >> shift & 63]))
    };
    bytes.chunks_exact(3).flat_map(digits).collect()
}

/// The secret in every form in which it could be written.
fn forms(secret: &str) -> Vec<(&'static str, Vec<u8>)> {
    let plain = secret.as_bytes().to_vec();
    let utf16 = |to: fn(u16) -> [u8; 2]| secret.encode_utf16().flat_map(to).collect::<Vec<u8>>();
    let mut all = vec![
        ("UTF-16 LE", utf16(u16::to_le_bytes)),
        ("UTF-16 BE", utf16(u16::to_be_bytes)),
        ("hex", hex(&plain).into_bytes()),
        ("HEX", hex(&plain).to_uppercase().into_bytes()),
    ];
    for skipped in 0..3 {
        let rest = &plain[skipped..];
        let whole = rest.len() / 3 * 3;
        all.push(("base64", base64(&rest[..whole]).into_bytes()));
    }
    all.push(("plain", plain));
    all
}

/// Files beneath a directory that hold the secret, and in which form.
fn files_with(directory: &Path, secret: &str) -> Vec<String> {
    let (mut found, mut left) = (Vec::new(), vec![directory.to_owned()]);
    let forms = forms(secret);
    while let Some(place) = left.pop() {
        for entry in std::fs::read_dir(place).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                left.push(entry.path());
                continue;
            }
            // A file of another process may be gone meanwhile.
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            for (form, text) in &forms {
                if bytes.windows(text.len()).any(|it| it == text.as_slice()) {
                    found.push(format!("{} ({form})", entry.path().display()));
                }
            }
        }
    }
    found
}

/// Asserts that the log is clean, and gives how many events have no data any more.
fn erased_events(place: &Place) -> u64 {
    let report = place.good(&["audit", "verify", "--all-spaces", "--json"]);
    let spaces = serde_json::Deserializer::from_str(&report).into_iter();
    let spaces: Vec<Value> = spaces.map(|it| it.unwrap()).collect();
    for space in &spaces {
        assert_eq!(space["clean"], true, "{space}");
    }
    spaces.iter().filter_map(|it| it["erased"].as_u64()).sum()
}

fn recalled(client: &mut Client) -> usize {
    let arguments = json!({ "query": SECRET, "min_relevance": 0.0 });
    let answer = client.call("memory_recall", &arguments);
    let found = answer["result"]["content"].to_string();
    found.matches(SECRET).count()
}

/// Stores a memory and uses it in every way that leaves something behind. Gives its id.
fn store_and_use(place: &Place, client: &mut Client) -> String {
    let content = format!("the code of the safe is {SECRET}, said the owner");
    let call = client.call(
        "memory_store",
        &json!({ "content": content, "memory_type": "fact" }),
    );
    let id = call["result"]["structuredContent"]["memory_id"].clone();
    let id = id.as_str().unwrap_or_else(|| panic!("{call}")).to_owned();
    let other = json!({
        "content": "the safe stands in the cellar", "related_to": [id], "memory_type": "fact",
    });
    client.call("memory_store", &other);
    let alike = json!({
        "content": format!("the code of the safe is {SECRET}, said the owner."),
        "memory_type": "fact", "tags": [SECRET],
    });
    let alike = client.call("memory_store", &alike);
    let alike = alike["result"]["structuredContent"]["memory_id"].clone();
    omi(
        place,
        &[
            "edit",
            alike.as_str().unwrap(),
            &format!("{content}, twice"),
        ],
    );
    omi(place, &["daily", "append", &content]);
    omi(place, &["daily", "append", "went home"]);
    omi(place, &["now", "update", "--task", &content]);
    let memory = place.0.path().join(".openclaw/omi/MEMORY.md");
    std::fs::write(memory, format!("# Memory\n\n- keep this\n- {content}\n")).unwrap();
    assert!(recalled(client) > 0);
    id
}

/// Forgets all that holds the secret, and asserts that it is nowhere.
fn forget_everything(place: &Place, client: &mut Client, other: &mut Client) {
    let id = store_and_use(place, client);
    assert!(recalled(other) > 0, "the other process has an index");
    assert!(
        !files_with(place.0.path(), SECRET).is_empty(),
        "the test tests something"
    );
    let report = omi_json(place, &["forget", &id, "--now"]);
    assert_eq!(report["forgotten"], json!([id]));
    let report = place.good(&["forget", "text", SECRET, "--yes", "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["erased"]["files_are_clean"], true, "{report}");
    assert_eq!(report["still_in"], json!([]), "{report}");
    assert_eq!(files_with(place.0.path(), SECRET), Vec::<String>::new());
    assert_eq!(recalled(other), 0, "the other process forgets too");
    assert_eq!(recalled(client), 0);
    assert!(erased_events(place) > 0);
    let log = omi(place, &["daily", "show"]);
    assert!(log.contains("went home") && !log.contains(SECRET), "{log}");
    let memory = place.0.path().join(".openclaw/omi/MEMORY.md");
    let memory = std::fs::read_to_string(memory).unwrap();
    assert_eq!(memory, "# Memory\n\n- keep this\n");
    omi(place, &["audit"]);
}

#[test]
fn a_forgotten_memory_is_in_no_file_and_the_log_verifies() {
    let place = Place::new();
    omi(&place, &["init"]);
    let mut client = Client::start(&place, &[]);
    let mut other = Client::start(&place, &[]);
    forget_everything(&place, &mut client, &mut other);
    // Events are proved to be in the log without their data.
    let report = place.good(&["audit", "verify", "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let key = report["authors"][0]["did"].as_str().unwrap();
    let mut n_erased = 0;
    for n in 1..=8 {
        let proof = place.good(&["audit", "prove", &n.to_string()]);
        n_erased += proof.replace(' ', "").matches(r#""erased":true"#).count();
        let file = place.0.path().join("proof.json");
        std::fs::write(&file, proof).unwrap();
        let file = file.display().to_string();
        place.good(&["audit", "verify-proof", &file, "--key", key]);
    }
    assert!(n_erased > 0);
    let backup = place.0.path().join("after.kenning");
    place.good(&["backup", &backup.display().to_string()]);
    assert_eq!((client.finish(), other.finish()), (0, 0));
    assert_eq!(files_with(place.0.path(), SECRET), Vec::<String>::new());
}

#[test]
fn a_forgotten_memory_is_in_no_table_of_a_database() {
    let url = shared().database();
    let place = Place::on_database(&url, "default");
    omi(&place, &["init"]);
    let mut client = Client::start(&place, &[]);
    let mut other = Client::start(&place, &[]);
    forget_everything(&place, &mut client, &mut other);
    let tables = "SELECT string_agg(relname, ' ') FROM pg_class
                  WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace";
    let tables = shared().sql(&url, tables);
    assert!(tables.contains("node_history"), "{tables}");
    for table in tables.split_whitespace() {
        let rows = shared().sql(&url, &format!("SELECT it::text FROM {table} it"));
        for (form, text) in forms(SECRET) {
            let text = String::from_utf8_lossy(&text);
            assert!(!rows.contains(&*text), "{table} ({form})");
        }
    }
    assert_eq!((client.finish(), other.finish()), (0, 0));
}

#[test]
fn a_forgotten_memory_can_be_restored_until_its_grace_time_is_over() {
    let place = Place::new();
    omi(&place, &["init"]);
    let text = format!("the code is {SECRET}");
    let id = omi(&place, &["store", &text, "--type", "fact"]);
    let id = id.trim();
    let other = omi(&place, &["store", "see the code", "--related-to", id]);
    let report = omi_json(&place, &["forget", id]);
    assert!(report["restorable_until"].is_string(), "{report}");
    assert!(!omi(&place, &["list"]).contains(SECRET));
    assert!(omi(&place, &["list", "--forgotten"]).contains(SECRET));
    assert!(!omi(&place, &["recall", SECRET, "--min-relevance", "0"]).contains(SECRET));
    assert_eq!(omi(&place, &["restore", id]).trim(), id);
    assert!(omi(&place, &["recall", SECRET, "--min-relevance", "0"]).contains(SECRET));
    let shown = omi(&place, &["show", id]);
    assert!(shown.contains(other.trim()), "with its relations: {shown}");
    omi(&place, &["forget", id]);
    omi(&place, &["config", "set", "forget.grace_hours", "0"]);
    let report = omi_json(&place, &["forget", id]);
    assert_eq!(report["restorable_until"], Value::Null, "{report}");
    assert_eq!(files_with(place.0.path(), SECRET), Vec::<String>::new());
    let (code, _, err) = finish(place.omi(&["restore", id]), "");
    assert_eq!(code, 3, "{err}");
    assert!(erased_events(&place) > 0);
}

#[test]
fn what_a_killed_process_began_to_forget_is_completed_by_the_next() {
    let place = Place::new();
    omi(&place, &["init"]);
    let (mut n_begun, mut n_kept) = (0, 0);
    for n in 0..24_u64 {
        let secret = format!("{SECRET}number{n}of24");
        let id = omi(&place, &["store", &format!("the code is {secret}")]);
        let mut forgetting = place.omi(&["forget", id.trim(), "--now"]);
        forgetting.stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        let mut child = forgetting.spawn().unwrap();
        // Another moment each time, from before it opens the store until after it has ended.
        let until = Duration::from_millis(n * 12);
        while began.elapsed() < until && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        // It may have ended by itself.
        drop(child.kill());
        child.wait().unwrap();
        let left = omi(&place, &["list", "--limit", "100"]);
        if left.contains(&secret) {
            n_kept += 1;
            omi(&place, &["forget", id.trim(), "--now"]);
        } else {
            n_begun += 1;
        }
        assert_eq!(
            files_with(place.0.path(), &secret),
            Vec::<String>::new(),
            "{n}"
        );
    }
    erased_events(&place);
    assert!(n_begun > 0, "{n_begun} of 24 were begun, {n_kept} were not");
}

#[test]
fn an_import_does_not_bring_back_what_was_erased() {
    let place = Place::new();
    omi(&place, &["init"]);
    let id = omi(&place, &["store", &format!("the code is {SECRET}")]);
    omi(
        &place,
        &["store", "see the code", "--related-to", id.trim()],
    );
    let copy = place.0.path().join("copy.jsonl").display().to_string();
    place.good(&["export", &copy]);
    omi(&place, &["forget", id.trim(), "--now"]);
    place.good(&["import", &copy]);
    std::fs::remove_file(&copy).unwrap();
    assert_eq!(files_with(place.0.path(), SECRET), Vec::<String>::new());
    assert!(omi(&place, &["list"]).contains("see the code"));
    erased_events(&place);
    // Whoever stores it again means it.
    omi(&place, &["store", &format!("the code is {SECRET}")]);
    assert!(omi(&place, &["list"]).contains(SECRET));
}

#[test]
fn a_space_is_forgotten_as_a_whole_and_others_are_not() {
    let place = Place::new();
    omi(&place, &["init"]);
    let store = |space: &str, text: &str| {
        let arguments = ["--space", space, "call", "memory_store", "--json"];
        let input = json!({ "content": text }).to_string();
        place.good(&[&arguments[..], &[&input]].concat());
    };
    store("default", "stays where it is");
    store("other", &format!("the code is {SECRET}"));
    let would = place.good(&["forget", "space", "other"]);
    assert!(would.contains("1 memories would be erased"), "{would}");
    assert!(
        !files_with(place.0.path(), SECRET).is_empty(),
        "nothing was changed"
    );
    place.good(&["forget", "space", "other", "--yes"]);
    assert_eq!(files_with(place.0.path(), SECRET), Vec::<String>::new());
    assert!(omi(&place, &["list"]).contains("stays where it is"));
    assert!(erased_events(&place) > 0);
}

#[test]
fn old_memories_are_forgotten_by_their_date() {
    let place = Place::new();
    omi(&place, &["init"]);
    omi(&place, &["store", &format!("the code is {SECRET}")]);
    let kept = place.good(&["forget", "before", "2020-01-01", "--yes", "--json"]);
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["forgotten"], json!([]));
    place.good(&["forget", "before", "2100-01-01", "--yes"]);
    assert_eq!(files_with(place.0.path(), SECRET), Vec::<String>::new());
    erased_events(&place);
}

#[test]
fn an_older_backup_is_restored_without_what_a_newer_one_knows_as_erased() {
    let place = Place::new();
    omi(&place, &["init"]);
    let id = omi(&place, &["store", &format!("the code is {SECRET}")]);
    omi(&place, &["store", "another memory"]);
    let outside = tempfile::tempdir().unwrap();
    let file = |name: &str| outside.path().join(name).display().to_string();
    let (old, new) = (file("old"), file("new"));
    place.good(&["backup", &old]);
    omi(&place, &["forget", id.trim(), "--now"]);
    place.good(&["backup", &new]);
    let kept = std::fs::read(&new).unwrap();
    for (form, text) in forms(SECRET) {
        assert!(!kept.windows(text.len()).any(|it| it == text), "{form}");
    }
    place.good(&["restore", &old, "--data", "back", "--erased-in", &new]);
    assert_eq!(files_with(place.0.path(), SECRET), Vec::<String>::new());
    let report = place.good(&["audit", "verify", "--json", "--data", "back"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["clean"], true, "{report}");
    assert!(
        place
            .good(&["export", "--data", "back"])
            .contains("another memory")
    );
}
