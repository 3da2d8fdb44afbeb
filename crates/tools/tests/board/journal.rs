//! The journal of intents: what killed processes leave of notes, NOW.md and items, and what becomes of it.

use kenning_audit::Tx;
use kenning_core::{Hash, Kind, Space};
use kenning_store::When;
use kenning_testing::Fixture;
use kenning_testing::kernel::NOTE_BYTES_MAX;
use kenning_testing::kernel::journal::{INTENTS, ITEM, Intent, Plan};
use kenning_testing::vault::Dir;
use kenning_tools::Selection;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

fn write(fixture: &Fixture, path: &str, content: &str) {
    let arguments = json!({ "path": path, "content": content });
    let reply = fixture.call("vault_write_note", arguments);
    assert!(!reply.is_error(), "{}", reply.text);
}

/// The keys of intents that lie in the store, done or not.
fn intents(fixture: &Fixture) -> Vec<String> {
    let keys = fixture.log().read(&Space::default(), |tx| INTENTS.keys(tx));
    keys.unwrap()
}

fn body(fixture: &Fixture, key: &str) -> Option<String> {
    let node = fixture.log().read(&Space::default(), |tx| {
        tx.node_by_key("", Kind::Document, key, When::Now)
    });
    node.unwrap().map(|it| it.body)
}

fn is_sound(fixture: &Fixture) -> bool {
    let report = fixture.board.engine().verify(&Space::default(), &|_| ());
    report.unwrap().is_clean()
}

/// Files of ours that have no name yet.
fn n_staged(dir: &Path) -> usize {
    let dir = Dir::open(dir).unwrap();
    let found = dir.unfinished(None, 10_000, &BTreeSet::new());
    found.unwrap().n_found
}

/// Leaves what a process leaves that was killed after it had committed a note and before its file had the
/// new content.
fn leave_note(fixture: &Fixture, name: &str, content: &str, is_staged: bool) {
    let (kernel, space) = (fixture.kernel(), Space::default());
    let dir = Dir::open(&fixture.vault()).unwrap();
    let file = kernel.vault().file(name, NOTE_BYTES_MAX);
    let before = fs::read(fixture.vault().join(name)).ok();
    let before = before.map(|it| Hash::of(&it));
    let root = file.root.clone();
    let mut plan = Plan::new(kernel.log().random(), root, String::new(), NOTE_BYTES_MAX);
    plan.write(&dir, name, content.as_bytes(), before).unwrap();
    let new = kernel.prepare_new_file(file.clone(), content);
    let work = move |tx: &mut Tx<'_>, _: Option<Intent>| new.put(tx, "NoteWritten");
    let journal = kernel.journal();
    let committed = journal.commit(kernel.log(), &space, &file.key, plan.intent(), work);
    committed.unwrap();
    if is_staged {
        plan.leave();
    }
}

#[test]
fn the_next_write_clears_the_intent_of_the_one_before_and_a_last_one_is_cleared_afterwards() {
    let fixture = Fixture::new();
    let text = "a text that is in no intent, because it is in its node";
    for n in 0..5 {
        write(&fixture, &format!("n{n}.md"), text);
        // That of the write before went with this one. This one may be cleared already, if the machine is slow.
        let left = intents(&fixture);
        assert!(
            left.is_empty() || left == [format!("vault:n{n}.md")],
            "{left:?}"
        );
    }
    write(&fixture, "n.md", text);
    let row = fixture
        .log()
        .read(&Space::default(), |tx| tx.list("intents"));
    for (_, bytes) in row.unwrap() {
        assert!(!String::from_utf8(bytes).unwrap().contains("in no intent"));
    }
    assert!(is_sound(&fixture));
    fixture.kernel().later().flush();
    assert_eq!(intents(&fixture), Vec::<String>::new());
    // A process that ends clears what it leaves.
    write(&fixture, "n.md", "another text");
    let log = fixture.log().clone();
    drop(fixture);
    let left = log.read(&Space::default(), |tx| INTENTS.keys(tx));
    assert_eq!(left.unwrap(), Vec::<String>::new());
}

#[test]
fn a_note_that_was_committed_gets_its_file_from_the_staged_content_or_from_its_node() {
    for is_staged in [true, false] {
        let fixture = Fixture::new();
        write(&fixture, "old.md", "the first text");
        leave_note(&fixture, "old.md", "the second text", is_staged);
        leave_note(&fixture, "new/note.md", "a new note", is_staged);
        assert_eq!(intents(&fixture).len(), 2);
        assert!(is_sound(&fixture));
        assert_eq!(n_staged(&fixture.vault()), 2 * usize::from(is_staged));
        let fixture = fixture.again(Selection::default());
        let text = |name: &str| fs::read_to_string(fixture.vault().join(name)).unwrap();
        assert_eq!(text("old.md"), "the second text");
        assert_eq!(text("new/note.md"), "a new note");
        assert_eq!(intents(&fixture), Vec::<String>::new());
        assert_eq!(n_staged(&fixture.vault()), 0);
        let is_adopted = fixture.event_kinds().contains(&"FileAdopted".to_owned());
        assert!(!is_adopted && is_sound(&fixture));
    }
}

#[test]
fn a_file_that_somebody_changed_wins_and_what_was_staged_goes() {
    let fixture = Fixture::new();
    write(&fixture, "n.md", "ours");
    leave_note(&fixture, "n.md", "ours again", true);
    fs::write(fixture.vault().join("n.md"), "theirs").unwrap();
    let fixture = fixture.again(Selection::default());
    let text = fs::read_to_string(fixture.vault().join("n.md")).unwrap();
    assert_eq!(text, "theirs");
    assert_eq!(body(&fixture, "vault:n.md").as_deref(), Some("theirs"));
    assert_eq!(intents(&fixture), Vec::<String>::new());
    assert_eq!(n_staged(&fixture.vault()), 0);
    assert!(is_sound(&fixture));
}

#[test]
fn an_intent_that_another_process_has_replaced_is_not_cleared() {
    let fixture = Fixture::new();
    write(&fixture, "n.md", "the first text");
    // Another process writes the same note and is killed before its file is written.
    let other = fixture.again(Selection::default());
    leave_note(&other, "n.md", "the second text", true);
    // What the first one has done is not what lies there now.
    fixture.kernel().later().flush();
    assert_eq!(intents(&fixture), ["vault:n.md"]);
    write(&fixture, "other.md", "x");
    fixture.kernel().later().flush();
    assert_eq!(intents(&fixture), ["vault:n.md"]);
    let reply = fixture.call("vault_read_note", json!({ "path": "n.md" }));
    assert_eq!(reply.text, "the second text");
    fixture.kernel().later().flush();
    assert_eq!(intents(&fixture), Vec::<String>::new());
}

#[test]
fn a_graph_takes_in_what_others_do_to_a_file_whose_intent_is_not_cleared_yet() {
    let fixture = Fixture::new();
    fixture.put_document("docs/a.md", "a");
    let other = fixture.again(Selection::default());
    // The intents of these two are done, and lie there still while the other process looks.
    write(&fixture, "edited.md", "ours");
    write(&fixture, "removed.md", "ours");
    fs::write(fixture.vault().join("edited.md"), "theirs").unwrap();
    fs::remove_file(fixture.vault().join("removed.md")).unwrap();
    let reply = fixture.call("kg_graph_generate", json!({}));
    assert!(!reply.is_error(), "{}", reply.text);
    assert_eq!(body(&fixture, "vault:edited.md").as_deref(), Some("theirs"));
    assert_eq!(body(&fixture, "vault:removed.md"), None);
    assert!(is_sound(&fixture));
    write(&fixture, "edited.md", "ours again");
    fs::write(fixture.vault().join("edited.md"), "theirs again").unwrap();
    let reply = other.call("kg_graph_generate", json!({}));
    assert!(!reply.is_error(), "{}", reply.text);
    let seen = body(&other, "vault:edited.md");
    assert_eq!(seen.as_deref(), Some("theirs again"));
    assert!(is_sound(&fixture));
}

/// Writes an item, and leaves what a process leaves that was killed after it had committed `text`.
fn leave_item(fixture: &Fixture, text: &str) -> PathBuf {
    let arguments = json!({
        "item_type": "knowledge", "action": "create", "item_id": "003-new",
        "parameters": {
            "location": "project", "category": "patterns", "content": "First.", "title": "New",
            "entry_type": "concept",
        },
    });
    let reply = fixture.call("execute", arguments);
    assert!(!reply.is_error(), "{}", reply.text);
    let (kernel, space) = (fixture.kernel(), Space::default());
    let item_dir = fixture.project().join(".ai/knowledge");
    let path = item_dir.join("patterns/003-new.md");
    let before = fs::read(&path).unwrap();
    let (dir, lock) = (
        item_dir.to_str().unwrap().to_owned(),
        format!("{}#003-new", item_dir.display()),
    );
    let mut plan = Plan::new(kernel.log().random(), dir, lock, NOTE_BYTES_MAX);
    let dir = Dir::open(&item_dir).unwrap();
    let changed = Some(Hash::of(&before));
    plan.write(&dir, "patterns/003-new.md", text.as_bytes(), changed)
        .unwrap();
    plan.write(&dir, "patterns/beside.md", b"beside", None)
        .unwrap();
    plan.sync_staged().unwrap();
    let key = format!("{ITEM}{}", path.display());
    let work = |tx: &mut Tx<'_>, _: Option<Intent>| tx.record("ItemUpdated", json!({})).map(drop);
    let journal = kernel.journal();
    let committed = journal.commit(kernel.log(), &space, &key, plan.intent(), work);
    committed.unwrap();
    plan.leave();
    path
}

#[test]
fn an_item_that_was_committed_gets_all_its_files_and_cleaning_up_leaves_them_alone_before() {
    let fixture = Fixture::new();
    let path = leave_item(&fixture, "the new text");
    let item_dir = fixture.project().join(".ai");
    assert_eq!(n_staged(&item_dir), 2);
    // However old they are, files that an intent names stay.
    let old = SystemTime::now() - Duration::from_secs(100 * 24 * 60 * 60);
    for entry in fs::read_dir(path.parent().unwrap()).unwrap().flatten() {
        let file = fs::File::options().write(true).open(entry.path()).unwrap();
        file.set_modified(old).unwrap();
    }
    fixture.clock.advance(1);
    fixture.board.engine().clean_up().unwrap().unwrap();
    assert_eq!(n_staged(&item_dir), 2);
    let fixture = fixture.again(Selection::default());
    assert_eq!(fs::read_to_string(&path).unwrap(), "the new text");
    let beside = fs::read_to_string(path.with_file_name("beside.md"));
    assert_eq!(beside.unwrap(), "beside");
    assert_eq!(intents(&fixture), Vec::<String>::new());
    assert_eq!(n_staged(&item_dir), 0);
}

#[test]
fn an_item_whose_new_content_is_gone_stays_as_it_is_on_disk_and_is_found_so() {
    let fixture = Fixture::new();
    let path = leave_item(&fixture, "the new text");
    let before = fs::read_to_string(&path).unwrap();
    for entry in fs::read_dir(path.parent().unwrap()).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".kenning-tmp") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    let fixture = fixture.again(Selection::default());
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    assert!(!path.with_file_name("beside.md").exists());
    assert_eq!(intents(&fixture), Vec::<String>::new());
    let found = fixture.call(
        "search",
        json!({ "item_type": "knowledge", "query": "New" }),
    );
    assert!(found.text.contains("003-new"), "{}", found.text);
}

#[test]
fn writes_that_an_older_program_left_unfinished_are_finished() {
    let stored = include_str!("../../../../testing/stores/intents-1.json");
    let stored: Vec<Value> = serde_json::from_str(stored).unwrap();
    assert_eq!(stored.len(), 4);
    for was_changed in [false, true] {
        let fixture = Fixture::new();
        let root = fixture.root.path().to_str().unwrap().to_owned();
        for row in &stored {
            for file in row["files"].as_array().unwrap() {
                let path = fixture.root.path().join(file["name"].as_str().unwrap());
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                let theirs = was_changed.then_some("theirs");
                if let Some(text) = theirs.or(file["before"].as_str()) {
                    fs::write(path, text).unwrap();
                }
            }
            let text = |name: &str| row[name].as_str().unwrap().replace("{ROOT}", &root);
            let (bucket, key, value) = (text("bucket"), text("key"), text("value"));
            let put = fixture.log().write(&Space::default(), move |tx| {
                tx.set(&bucket, &key, value.as_bytes())
            });
            put.unwrap();
        }
        let fixture = fixture.again(Selection::default());
        for file in stored.iter().flat_map(|it| it["files"].as_array().unwrap()) {
            let path = fixture.root.path().join(file["name"].as_str().unwrap());
            let after = match was_changed {
                true => "theirs",
                false => file["after"].as_str().unwrap(),
            };
            assert_eq!(fs::read_to_string(path).unwrap(), after, "{}", file["name"]);
        }
        assert_eq!(intents(&fixture), Vec::<String>::new());
        let old = fixture
            .log()
            .read(&Space::default(), |tx| tx.list("items/intents"));
        assert!(old.unwrap().is_empty());
    }
}
