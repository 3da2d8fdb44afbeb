//! The vault tools as their contract has them.

use kenning_core::{Code, Kind, Space};
use kenning_store::When;
use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::json;

fn write(fixture: &Fixture, path: &str, content: &str) -> String {
    fixture
        .call(
            "vault_write_note",
            json!({ "path": path, "content": content }),
        )
        .text
}

fn read(fixture: &Fixture, path: &str) -> String {
    fixture
        .call("vault_read_note", json!({ "path": path }))
        .text
}

fn list(fixture: &Fixture, folder: &str) -> String {
    fixture
        .call("vault_list_notes", json!({ "folder": folder }))
        .text
}

#[test]
fn what_was_written_is_read_byte_for_byte() {
    let fixture = Fixture::new();
    for content in [
        "",
        "---\na: 1\n---\n$& [[x|y]] \r\n\ttail",
        "\u{feff}漢字 e\u{301} 🚀",
        "nul\0nul",
    ] {
        assert_eq!(write(&fixture, "a/b.md", content), "Written: a/b.md");
        assert_eq!(read(&fixture, "a/b.md"), content);
        assert_eq!(
            std::fs::read(fixture.vault().join("a/b.md")).unwrap(),
            content.as_bytes()
        );
    }
}

#[test]
fn a_written_note_is_a_node_with_passages_and_an_event() {
    let fixture = Fixture::new();
    write(
        &fixture,
        "People/Ada.md",
        "# Ada\n\nwrote the first program",
    );
    let engine = fixture.board.engine();
    let here = Space::default();
    fixture.kernel().later().flush();
    fixture
        .log()
        .read(&here, |tx| {
            let node = tx.node_by_key("", Kind::Document, "vault:People/Ada.md", When::Now)?;
            let node = node.expect("a node");
            assert_eq!((node.title.as_str(), node.rev), ("Ada", 1));
            let passages = tx.passages(node.id)?;
            assert!(passages[0].tokens.split(' ').any(|it| it == "program"));
            let events = tx.events_after(0, 9)?;
            assert_eq!(
                events.iter().map(|it| it.kind.as_str()).collect::<Vec<_>>(),
                ["NoteWritten"]
            );
            assert!(tx.list("intents")?.is_empty(), "the intent is cleared");
            Ok(())
        })
        .unwrap();
    assert!(engine.verify(&here, &|_| ()).unwrap().is_clean());
}

#[test]
fn a_name_without_an_extension_gets_md() {
    let fixture = Fixture::new();
    assert_eq!(
        write(&fixture, "People/New Person", "x"),
        "Written: People/New Person.md"
    );
    assert_eq!(read(&fixture, "People/New Person.md"), "x");
    assert_eq!(read(&fixture, "People/New Person"), "x");
}

#[test]
fn what_somebody_else_wrote_is_kept_in_the_history() {
    let fixture = Fixture::new();
    write(&fixture, "n.md", "ours");
    std::fs::write(fixture.vault().join("n.md"), "theirs").unwrap();
    assert_eq!(read(&fixture, "n.md"), "theirs", "the file wins");
    write(&fixture, "n.md", "ours again");
    let bodies = fixture
        .log()
        .read(&Space::default(), |tx| {
            let node = tx
                .node_by_key("", Kind::Document, "vault:n.md", When::Now)?
                .unwrap();
            let history = tx.history(node.id)?;
            Ok(history
                .into_iter()
                .map(|(node, _)| node.body)
                .collect::<Vec<_>>())
        })
        .unwrap();
    assert_eq!(bodies, ["ours", "theirs"]);
}

#[test]
fn a_note_that_was_there_before_us_is_kept_in_the_history_too() {
    let fixture = Fixture::new();
    write(&fixture, "People/Bill Baue.md", "new");
    let report = fixture
        .board
        .engine()
        .verify(&Space::default(), &|_| ())
        .unwrap();
    assert_eq!(
        (report.n_history, report.n_events),
        (1, 2),
        "adopted, then written"
    );
    assert!(report.is_clean());
}

#[test]
fn lists_are_sorted_one_level_and_regular_files_only() {
    let fixture = Fixture::new();
    for name in ["b.md", "a.md", "c.txt", "sub/d.md"] {
        write(&fixture, &format!("Folder/{name}"), "x");
    }
    std::fs::create_dir(fixture.vault().join("Folder/dir.md")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", fixture.vault().join("Folder/out.md")).unwrap();
    assert_eq!(list(&fixture, "Folder"), "a.md\nb.md");
    assert_eq!(list(&fixture, "Folder/sub/"), "d.md");
    assert_eq!(list(&fixture, "."), "");
    write(&fixture, "top.md", "x");
    assert_eq!(list(&fixture, "."), "top.md");
}

#[test]
fn long_lists_are_continued() {
    let fixture = Fixture::new();
    let folder = fixture.vault().join("Many");
    std::fs::create_dir(&folder).unwrap();
    for n in 0..3_100 {
        std::fs::write(folder.join(format!("{n:05}.md")), "").unwrap();
    }
    let mut after = None;
    let mut seen = 0;
    loop {
        let page = fixture
            .call(
                "vault_list_notes",
                json!({ "folder": "Many", "after": after }),
            )
            .text;
        let names: Vec<&str> = page.lines().filter(|line| line.ends_with(".md")).collect();
        seen += names.len();
        if !page.contains("more: call again") {
            break;
        }
        after = names.last().map(ToString::to_string);
    }
    assert_eq!(seen, 3_100);
}

#[test]
fn nothing_leads_outside() {
    let fixture = Fixture::new();
    std::fs::write(fixture.root.path().join("secret.md"), "secret").unwrap();
    let links = fixture.vault();
    std::os::unix::fs::symlink("..", links.join("up")).unwrap();
    std::os::unix::fs::symlink("../secret.md", links.join("link.md")).unwrap();
    for path in [
        "../secret.md",
        "a/../../secret.md",
        "/etc/passwd",
        "up/secret.md",
        "link.md",
    ] {
        let reply = fixture.call("vault_read_note", json!({ "path": path }));
        assert_eq!(
            reply.text.split(" (").next().unwrap(),
            format!("Path traversal rejected: {path}")
        );
        assert_eq!(reply.error.unwrap().code, Code::Denied);
        let reply = fixture.call(
            "vault_write_note",
            json!({ "path": path, "content": "owned" }),
        );
        assert_eq!(reply.error.unwrap().code, Code::Denied, "{path}");
    }
    assert!(
        fixture
            .call("vault_list_notes", json!({ "folder": "../" }))
            .is_error()
    );
    assert!(
        fixture
            .call("vault_read_note", json!({ "path": "a\0b.md" }))
            .is_error()
    );
    assert!(
        fixture
            .call("vault_read_note", json!({ "path": "." }))
            .is_error()
    );
    assert_eq!(
        std::fs::read_to_string(fixture.root.path().join("secret.md")).unwrap(),
        "secret"
    );
    let report = fixture
        .board
        .engine()
        .verify(&Space::default(), &|_| ())
        .unwrap();
    assert_eq!(report.n_events, 0, "a refused write leaves nothing behind");
}

#[test]
fn a_file_that_cannot_be_written_leaves_no_half_write() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.vault().join("dir.md")).unwrap();
    let reply = fixture.call(
        "vault_write_note",
        json!({ "path": "dir.md", "content": "x" }),
    );
    assert_eq!(reply.error.unwrap().code, Code::InvalidInput);
    std::fs::write(fixture.vault().join("latin1.md"), b"caf\xe9").unwrap();
    let reply = fixture.call(
        "vault_write_note",
        json!({ "path": "latin1.md", "content": "x" }),
    );
    assert_eq!(reply.error.unwrap().code, Code::Conflict);
    assert_eq!(
        std::fs::read(fixture.vault().join("latin1.md")).unwrap(),
        b"caf\xe9"
    );
    let huge = "x".repeat(9 * 1024 * 1024);
    let reply = fixture.call(
        "vault_write_note",
        json!({ "path": "huge.md", "content": huge }),
    );
    assert_eq!(reply.error.unwrap().code, Code::TooLarge);
    let report = fixture
        .board
        .engine()
        .verify(&Space::default(), &|_| ())
        .unwrap();
    assert_eq!(report.n_events, 0);
}

#[test]
fn without_a_vault_only_the_call_fails() {
    let root = tempfile::tempdir().unwrap();
    let opened = kenning_testing::open(root.path(), None, Selection::default());
    let fixture = Fixture::of(opened, root);
    let text = read(&fixture, "a.md");
    assert!(
        text.starts_with("VAULT_PATH environment variable must be set"),
        "{text}"
    );
    assert!(fixture.board.find("vault_read_note").is_some());
}

#[test]
fn an_unfinished_write_is_carried_out_on_the_next_open() {
    let fixture = Fixture::new();
    let root = std::sync::Arc::clone(&fixture.root);
    let vault = root.path().join("vault");
    let key = "vault:n.md";
    // What a process leaves that was killed between its commit and its file.
    let intent = json!({
        "root": vault.to_str().unwrap(), "name": "n.md", "key": key, "bytes_max": 1_000_000,
        "content": "the content", "before": null,
    });
    let put = |log: &kenning_audit::Log| {
        let intent = intent.to_string();
        log.write(&Space::default(), move |tx| {
            tx.set("intents", key, intent.as_bytes())
        })
        .unwrap();
    };
    put(fixture.log());
    drop(fixture);
    let opened = kenning_testing::open(root.path(), Some(vault.clone()), Selection::default());
    assert_eq!(
        std::fs::read_to_string(vault.join("n.md")).unwrap(),
        "the content"
    );
    // Somebody else's file is never overwritten by an old intent.
    put(opened.kernel.log());
    std::fs::write(vault.join("n.md"), "theirs").unwrap();
    drop(opened);
    let opened = kenning_testing::open(root.path(), Some(vault.clone()), Selection::default());
    assert_eq!(
        std::fs::read_to_string(vault.join("n.md")).unwrap(),
        "theirs"
    );
    let fixture = Fixture::of(opened, root);
    let node = fixture.log().read(&Space::default(), |tx| {
        assert!(tx.list("intents")?.is_empty());
        tx.node_by_key("", Kind::Document, key, When::Now)
    });
    assert_eq!(node.unwrap().unwrap().body, "theirs", "it was adopted");
}

#[test]
fn another_space_sees_nothing_of_the_vault() {
    let fixture = Fixture::new();
    write(&fixture, "secret.md", "ours");
    let caller =
        kenning_engine::Caller::new(kenning_engine::Principal::owner("team".parse().unwrap()));
    for (tool, arguments) in [
        ("vault_read_note", json!({ "path": "secret.md" })),
        ("vault_read_note", json!({ "path": "absent.md" })),
        (
            "vault_write_note",
            json!({ "path": "secret.md", "content": "theirs" }),
        ),
        ("vault_list_notes", json!({ "folder": "." })),
    ] {
        let reply = fixture.call_as(tool, arguments, &caller);
        assert_eq!(
            reply.error.unwrap().code,
            Code::Denied,
            "{tool}: {}",
            reply.text
        );
        assert!(!reply.text.contains("ours"), "{}", reply.text);
    }
    assert_eq!(read(&fixture, "secret.md"), "ours");
}

#[test]
fn a_wrong_name_is_said_to_be_in_its_field() {
    let fixture = Fixture::new();
    for path in ["", "a\nb.md", ".", "People", &"x".repeat(300)] {
        let text = read(&fixture, path);
        assert!(text.starts_with("`path`: "), "{path:?}: {text}");
    }
    assert!(list(&fixture, "a\0b").starts_with("`folder`: "));
}

#[test]
fn a_vault_that_is_not_there_is_not_called_a_missing_note() {
    let root = tempfile::tempdir().unwrap();
    let vault = Some(root.path().join("nowhere"));
    let opened = kenning_testing::open(root.path(), vault, Selection::default());
    let fixture = Fixture::of(opened, root);
    for text in [read(&fixture, "a.md"), list(&fixture, ".")] {
        assert!(text.contains("VAULT_PATH"), "{text}");
        assert!(!text.contains("not found"), "{text}");
    }
}
