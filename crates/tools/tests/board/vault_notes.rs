//! The vault tools as their contract has them.

use kenning_core::{Code, Kind, Space};
use kenning_store::When;
use kenning_testing::House;
use kenning_tools::Selection;
use serde_json::json;

fn write(house: &House, path: &str, content: &str) -> String {
    house
        .call(
            "vault_write_note",
            json!({ "path": path, "content": content }),
        )
        .text
}

fn read(house: &House, path: &str) -> String {
    house.call("vault_read_note", json!({ "path": path })).text
}

fn list(house: &House, folder: &str) -> String {
    house
        .call("vault_list_notes", json!({ "folder": folder }))
        .text
}

#[test]
fn what_was_written_is_read_byte_for_byte() {
    let house = House::new();
    for content in [
        "",
        "---\na: 1\n---\n$& [[x|y]] \r\n\ttail",
        "\u{feff}漢字 e\u{301} 🚀",
        "nul\0nul",
    ] {
        assert_eq!(write(&house, "a/b.md", content), "Written: a/b.md");
        assert_eq!(read(&house, "a/b.md"), content);
        assert_eq!(
            std::fs::read(house.vault().join("a/b.md")).unwrap(),
            content.as_bytes()
        );
    }
}

#[test]
fn a_written_note_is_a_node_with_passages_and_an_event() {
    let house = House::new();
    write(&house, "People/Ada.md", "# Ada\n\nwrote the first program");
    let engine = house.board.engine();
    let here = Space::default();
    house
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
    let house = House::new();
    assert_eq!(
        write(&house, "People/New Person", "x"),
        "Written: People/New Person.md"
    );
    assert_eq!(read(&house, "People/New Person.md"), "x");
    assert_eq!(read(&house, "People/New Person"), "x");
}

#[test]
fn what_somebody_else_wrote_is_kept_in_the_history() {
    let house = House::new();
    write(&house, "n.md", "ours");
    std::fs::write(house.vault().join("n.md"), "theirs").unwrap();
    assert_eq!(read(&house, "n.md"), "theirs", "the file wins");
    write(&house, "n.md", "ours again");
    let bodies = house
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
    let house = House::new();
    write(&house, "People/Bill Baue.md", "new");
    let report = house
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
    let house = House::new();
    for name in ["b.md", "a.md", "c.txt", "sub/d.md"] {
        write(&house, &format!("Folder/{name}"), "x");
    }
    std::fs::create_dir(house.vault().join("Folder/dir.md")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", house.vault().join("Folder/out.md")).unwrap();
    assert_eq!(list(&house, "Folder"), "a.md\nb.md");
    assert_eq!(list(&house, "Folder/sub/"), "d.md");
    assert_eq!(list(&house, "."), "");
    write(&house, "top.md", "x");
    assert_eq!(list(&house, "."), "top.md");
}

#[test]
fn long_lists_are_continued() {
    let house = House::new();
    let folder = house.vault().join("Many");
    std::fs::create_dir(&folder).unwrap();
    for n in 0..3_100 {
        std::fs::write(folder.join(format!("{n:05}.md")), "").unwrap();
    }
    let mut after = None;
    let mut seen = 0;
    loop {
        let page = house
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
    let house = House::new();
    std::fs::write(house.root.path().join("secret.md"), "secret").unwrap();
    let links = house.vault();
    std::os::unix::fs::symlink("..", links.join("up")).unwrap();
    std::os::unix::fs::symlink("../secret.md", links.join("link.md")).unwrap();
    for path in [
        "../secret.md",
        "a/../../secret.md",
        "/etc/passwd",
        "up/secret.md",
        "link.md",
    ] {
        let reply = house.call("vault_read_note", json!({ "path": path }));
        assert_eq!(
            reply.text.split(" (").next().unwrap(),
            format!("Path traversal rejected: {path}")
        );
        assert_eq!(reply.error.unwrap().code, Code::Denied);
        let reply = house.call(
            "vault_write_note",
            json!({ "path": path, "content": "owned" }),
        );
        assert_eq!(reply.error.unwrap().code, Code::Denied, "{path}");
    }
    assert!(
        house
            .call("vault_list_notes", json!({ "folder": "../" }))
            .is_error()
    );
    assert!(
        house
            .call("vault_read_note", json!({ "path": "a\0b.md" }))
            .is_error()
    );
    assert!(
        house
            .call("vault_read_note", json!({ "path": "." }))
            .is_error()
    );
    assert_eq!(
        std::fs::read_to_string(house.root.path().join("secret.md")).unwrap(),
        "secret"
    );
    let report = house
        .board
        .engine()
        .verify(&Space::default(), &|_| ())
        .unwrap();
    assert_eq!(report.n_events, 0, "a refused write leaves nothing behind");
}

#[test]
fn a_file_that_cannot_be_written_leaves_no_half_write() {
    let house = House::new();
    std::fs::create_dir(house.vault().join("dir.md")).unwrap();
    let reply = house.call(
        "vault_write_note",
        json!({ "path": "dir.md", "content": "x" }),
    );
    assert_eq!(reply.error.unwrap().code, Code::InvalidInput);
    std::fs::write(house.vault().join("latin1.md"), b"caf\xe9").unwrap();
    let reply = house.call(
        "vault_write_note",
        json!({ "path": "latin1.md", "content": "x" }),
    );
    assert_eq!(reply.error.unwrap().code, Code::Conflict);
    assert_eq!(
        std::fs::read(house.vault().join("latin1.md")).unwrap(),
        b"caf\xe9"
    );
    let huge = "x".repeat(9 * 1024 * 1024);
    let reply = house.call(
        "vault_write_note",
        json!({ "path": "huge.md", "content": huge }),
    );
    assert_eq!(reply.error.unwrap().code, Code::TooLarge);
    let report = house
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
    let house = House::of(opened, root);
    let text = read(&house, "a.md");
    assert!(
        text.starts_with("VAULT_PATH environment variable must be set"),
        "{text}"
    );
    assert!(house.board.find("vault_read_note").is_some());
}

#[test]
fn an_unfinished_write_is_carried_out_on_the_next_open() {
    let house = House::new();
    let root = std::sync::Arc::clone(&house.root);
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
    put(house.log());
    drop(house);
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
    let house = House::of(opened, root);
    let node = house.log().read(&Space::default(), |tx| {
        assert!(tx.list("intents")?.is_empty());
        tx.node_by_key("", Kind::Document, key, When::Now)
    });
    assert_eq!(node.unwrap().unwrap().body, "theirs", "it was adopted");
}

#[test]
fn another_space_sees_nothing_of_the_vault() {
    let house = House::new();
    write(&house, "secret.md", "ours");
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
        let reply = house.call_as(tool, arguments, &caller);
        assert_eq!(
            reply.error.unwrap().code,
            Code::Denied,
            "{tool}: {}",
            reply.text
        );
        assert!(!reply.text.contains("ours"), "{}", reply.text);
    }
    assert_eq!(read(&house, "secret.md"), "ours");
}

#[test]
fn a_wrong_name_is_said_to_be_in_its_field() {
    let house = House::new();
    for path in ["", "a\nb.md", ".", "People", &"x".repeat(300)] {
        let text = read(&house, path);
        assert!(text.starts_with("`path`: "), "{path:?}: {text}");
    }
    assert!(list(&house, "a\0b").starts_with("`folder`: "));
}

#[test]
fn a_vault_that_is_not_there_is_not_called_a_missing_note() {
    let root = tempfile::tempdir().unwrap();
    let vault = Some(root.path().join("nowhere"));
    let opened = kenning_testing::open(root.path(), vault, Selection::default());
    let house = House::of(opened, root);
    for text in [read(&house, "a.md"), list(&house, ".")] {
        assert!(text.contains("VAULT_PATH"), "{text}");
        assert!(!text.contains("not found"), "{text}");
    }
}
