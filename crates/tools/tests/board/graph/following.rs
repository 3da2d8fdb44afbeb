//! The graph follows its files, whatever happens to them and whoever else is at work.

use super::{ask, generate, picture, refusal, shop};
use kenning_core::{Hash, Kind, Space};
use kenning_store::When;
use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn generating_twice_gives_the_same_graph_and_no_second_event() {
    let fixture = shop();
    generate(&fixture);
    let (before, events) = (picture(&fixture), fixture.event_kinds().len());
    for arguments in [
        json!({}),
        json!({ "force": true }),
        json!({ "incremental": true }),
        json!({ "force": true, "incremental": true }),
    ] {
        let done = ask(&fixture, "kg_graph_generate", arguments.clone())["data"].clone();
        assert_eq!(done["nodesAdded"], 0, "{arguments}");
        assert_eq!(done["nodesUpdated"], 0, "{arguments}");
        let mode = if arguments == json!({ "incremental": true }) {
            "incremental"
        } else {
            "full"
        };
        assert_eq!(done["mode"], mode, "{arguments}");
        assert_eq!(picture(&fixture), before, "{arguments}");
        assert_eq!(fixture.event_kinds().len(), events, "{arguments}");
    }
}

#[test]
fn added_changed_removed_and_renamed_files_are_followed() {
    let fixture = Fixture::without_vault(Selection::default());
    fixture.put_document("docs/a.md", "[[b]] and [[c]]");
    fixture.put_document("docs/b.md", "b");
    generate(&fixture);
    let node_of = |fixture: &Fixture, path: &str| {
        let owner = fixture.owner();
        fixture
            .board
            .engine()
            .kg()
            .document(&owner, None, Some(path))
            .unwrap()
            .document
            .node
    };
    let b = node_of(&fixture, "docs/b.md");
    let incremental = || {
        ask(
            &fixture,
            "kg_graph_generate",
            json!({ "incremental": true }),
        )["data"]
            .clone()
    };
    let counts = |done: &Value| {
        ["nodesAdded", "nodesUpdated", "nodesRemoved", "edgesCreated"]
            .map(|it| done[it].as_u64().unwrap())
    };

    fixture.put_document("docs/c.md", "c");
    assert_eq!(
        counts(&incremental()),
        [1, 0, 0, 1],
        "a link that led nowhere leads to the new file"
    );
    fixture.put_document("docs/c.md", "c, and [[a]]");
    assert_eq!(counts(&incremental()), [0, 1, 0, 1]);
    std::fs::rename(
        fixture.project().join("docs/b.md"),
        fixture.project().join("docs/moved.md"),
    )
    .unwrap();
    let done = incremental();
    assert_eq!(counts(&done)[..3], [0, 1, 0], "{done}");
    assert_eq!(
        node_of(&fixture, "docs/moved.md"),
        b,
        "a file that was renamed is the same node"
    );
    assert_eq!(
        refusal(&fixture, "kg_get_node", json!({ "path": "docs/b.md" })),
        "Node not found"
    );
    std::fs::remove_file(fixture.project().join("docs/c.md")).unwrap();
    assert_eq!(counts(&incremental())[..3], [0, 0, 1]);
    let stats = ask(&fixture, "kg_stats", json!({}))["data"].clone();
    assert_eq!(
        (&stats["totalNodes"], &stats["totalEdges"]),
        (&json!(2), &json!(0))
    );
    let kinds = fixture.event_kinds();
    for kind in [
        "NodeCreated",
        "NodeUpdated",
        "NodeDeleted",
        "GraphLinked",
        "GraphGenerated",
    ] {
        assert!(kinds.iter().any(|it| it == kind), "{kind}: {kinds:?}");
    }
    let fresh = fixture.again(Selection::default());
    assert_eq!(
        picture(&fresh),
        picture(&fixture),
        "another process sees the same graph"
    );
}

#[test]
fn files_that_cannot_be_read_are_reported_and_lose_nothing_else() {
    let fixture = Fixture::without_vault(Selection::default());
    fixture.put_document("docs/good.md", "[[latin]]");
    std::fs::write(fixture.project().join("docs/latin.md"), b"caf\xe9 [[good]]").unwrap();
    std::fs::write(
        fixture.project().join("docs/huge.md"),
        vec![b'x'; 9 * 1024 * 1024],
    )
    .unwrap();
    std::os::unix::fs::symlink("/etc/passwd", fixture.project().join("docs/link.md")).unwrap();
    fixture.put_document(
        "docs/bad.md",
        "---\nstatus: maybe\ntype: novel\ntags: [a\n---\nbad",
    );
    fixture.put_document("docs/node_modules/x/readme.md", "no");
    fixture.put_document("docs/_templates/t.md", "no");
    fixture.put_document("docs/.hidden/h.md", "no");
    fixture.put_document("docs/private/p.md", "no");
    fixture.put_document(".gitignore", "private/\n");
    let done = generate(&fixture);
    let paths: BTreeSet<&str> = done["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["path"].as_str().unwrap())
        .collect();
    assert_eq!(
        paths,
        BTreeSet::from(["docs/bad.md", "docs/huge.md", "docs/latin.md"]),
        "{done:#}"
    );
    assert_eq!(done["nodesGenerated"], 3, "{done:#}");
    let good = ask(&fixture, "kg_get_node", json!({ "id": "good" }))["data"].clone();
    assert_eq!(good["outgoingLinks"][0]["target"], "latin");
    assert_eq!(good["incomingLinks"][0]["source"], "latin");
}

#[test]
fn only_folders_of_the_project_are_read() {
    let fixture = Fixture::without_vault(Selection::default());
    fixture.put_document("notes/a.md", "a");
    for docs_path in ["..", "../project/notes/../..", "/etc", "notes/../../data"] {
        let error = refusal(
            &fixture,
            "kg_graph_generate",
            json!({ "docsPath": docs_path }),
        );
        assert!(
            error.contains("is outside the project"),
            "{docs_path}: {error}"
        );
    }
    let error = refusal(
        &fixture,
        "kg_graph_generate",
        json!({ "docsPath": "nowhere" }),
    );
    assert!(error.contains("`nowhere`"), "{error}");
    let absolute = fixture.project().join("notes");
    for docs_path in ["notes", "./notes/", ".", absolute.to_str().unwrap()] {
        let done = ask(
            &fixture,
            "kg_graph_generate",
            json!({ "docsPath": docs_path }),
        );
        assert_eq!(done["data"]["filesProcessed"], 1, "{docs_path}");
    }
}

#[test]
fn notes_of_the_vault_are_nodes_at_once_and_link_among_themselves() {
    let fixture = Fixture::new();
    fixture.call("vault_write_note", json!({ "path": "People/Ada", "content": "---\ntags: [math]\n---\nKnows [[Bill Baue]] and [[Charles]]." }));
    let found = ask(
        &fixture,
        "kg_graph_query",
        json!({ "query": "knows charles", "includeRelations": true }),
    );
    let node = &found["data"]["nodes"][0];
    assert_eq!(
        (&node["path"], &node["title"]),
        (&json!("vault:People/Ada.md"), &json!("Ada"))
    );
    assert_eq!(node["tags"], json!(["math"]));
    fixture.put_document("docs/a.md", "See [[Ada]].");
    let done = generate(&fixture);
    assert_eq!(
        (&done["nodesGenerated"], &done["vaultNotes"]),
        (&json!(1), &json!(2))
    );
    let ada = ask(&fixture, "kg_get_node", json!({ "path": "People/Ada.md" }))["data"].clone();
    assert_eq!(ada["incomingLinks"][0]["source"], "a");
    assert_eq!(ada["outgoingLinks"][0]["target"], "vault/people/bill-baue");
    assert_eq!(ada["content"], "Knows [[Bill Baue]] and [[Charles]].");
    std::fs::remove_file(fixture.vault().join("People/Ada.md")).unwrap();
    generate(&fixture);
    assert_eq!(
        refusal(&fixture, "kg_get_node", json!({ "path": "People/Ada.md" })),
        "Node not found"
    );
}

#[test]
fn memories_are_found_only_when_they_are_asked_for() {
    let fixture = shop();
    generate(&fixture);
    fixture.call(
        "memory_store",
        json!({ "content": "The token of the checkout service expires after an hour." }),
    );
    let plain = ask(
        &fixture,
        "kg_graph_query",
        json!({ "query": "token expires after an hour" }),
    );
    assert!(
        plain["data"]["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["type"] != "memory")
    );
    let with = ask(
        &fixture,
        "kg_graph_query",
        json!({ "query": "token expires after an hour", "kinds": ["memory"] }),
    );
    assert!(
        with["data"]["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["type"] == "memory"),
        "{with:#}"
    );
    assert_eq!(
        ask(&fixture, "kg_stats", json!({}))["data"]["totalNodes"],
        13
    );
}

#[test]
fn two_processes_that_generate_at_once_end_in_one_graph() {
    let fixture = Fixture::without_vault(Selection::default());
    for i in 0..300 {
        fixture.put_document(
            &format!("docs/p{i}.md"),
            &format!("[[p{}]] [[p{}]]", (i + 1) % 300, (i * 7) % 300),
        );
    }
    let other = fixture.again(Selection::default());
    std::thread::scope(|scope| {
        let both =
            [&fixture, &other].map(|it| scope.spawn(|| (0..3).for_each(|_| drop(generate(it)))));
        both.into_iter().for_each(|it| it.join().unwrap());
    });
    assert_eq!(picture(&fixture), picture(&other));
    let created = fixture
        .event_kinds()
        .iter()
        .filter(|it| *it == "NodeCreated")
        .count();
    assert_eq!(created, 300);
    let (engine, space) = (fixture.board.engine(), fixture.owner().principal.space);
    let report = engine.verify(&space, &|_| {}).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
}

#[test]
fn a_call_that_is_cancelled_leaves_whole_documents_and_the_next_one_completes_it() {
    let fixture = Fixture::without_vault(Selection::default());
    for i in 0..600 {
        fixture.put_document(
            &format!("docs/p{i}.md"),
            &format!("word{i} [[p{}]]", (i + 1) % 600),
        );
    }
    let mut caller = fixture.owner();
    let flag = caller.cancelled.clone();
    caller.progress = Some(std::sync::Arc::new(move |_, _, what: &str| {
        if what == "documents written" {
            flag.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }));
    let reply = fixture
        .board
        .call("kg_graph_generate", json!({}), &caller)
        .unwrap();
    assert!(reply.is_error(), "{}", reply.text);
    let partial = ask(&fixture, "kg_stats", json!({}))["data"]["totalNodes"]
        .as_u64()
        .unwrap();
    assert!((1..600).contains(&partial), "{partial}");
    let done = generate(&fixture);
    assert_eq!(
        (&done["nodesGenerated"], &done["edgesCreated"]),
        (&json!(600), &json!(600))
    );
    assert_eq!(done["nodesAdded"].as_u64().unwrap(), 600 - partial);
}

#[test]
fn a_watcher_follows_bursts_renames_and_removed_folders() {
    use kenning_engine::kg::{GraphWatch, WatchOptions};
    let fixture = Fixture::without_vault(Selection::default());
    fixture.put_document("docs/start.md", "start");
    let principal = fixture.owner().principal;
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::<String>::new()));
    let heard = std::sync::Arc::clone(&told);
    let watch = GraphWatch::start(
        fixture.board.engine().kg(),
        principal,
        WatchOptions::default(),
        move |done| {
            if let Err(error) = done {
                heard.lock().unwrap().push(error.to_string());
            }
        },
    )
    .unwrap();
    let until = |what: &str, expected: &dyn Fn(&Value) -> bool| {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            let reply = fixture.call("kg_stats", json!({}));
            let data = reply.to_json()["data"].clone();
            if expected(&data) {
                return;
            }
            assert!(std::time::Instant::now() < end, "{what}: {data}");
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
    };
    until("the first run", &|it| it["totalNodes"] == 1);
    for i in 0..200 {
        fixture.put_document(&format!("docs/new/deep/p{i}.md"), &format!("[[start]] {i}"));
    }
    until("a burst in a new folder", &|it| {
        it["totalNodes"] == 201 && it["totalEdges"] == 200
    });
    std::fs::rename(
        fixture.project().join("docs/new"),
        fixture.project().join("docs/old"),
    )
    .unwrap();
    fixture.put_document("docs/start.md", "start of [[p7]]");
    until("a folder renamed", &|it| {
        it["totalNodes"] == 201 && it["totalEdges"] == 201
    });
    std::fs::remove_dir_all(fixture.project().join("docs/old")).unwrap();
    until("a folder removed", &|it| {
        it["totalNodes"] == 1 && it["totalEdges"] == 0
    });
    // A checkout removes the folder and makes it again; it may also be there at once, or stay away.
    for round in 0..3 {
        std::fs::remove_dir_all(fixture.project().join("docs")).unwrap();
        if round == 1 {
            until("the watcher says that the folder is gone", &|_| {
                !told.lock().unwrap().is_empty()
            });
        }
        fixture.put_document("docs/start.md", &format!("start again, {round}"));
        fixture.put_document(&format!("docs/round{round}/a.md"), "[[start]]");
        until("a folder made again", &|it| {
            it["totalNodes"] == 2 && it["totalEdges"] == 1
        });
        fixture.put_document("docs/later.md", "[[start]]");
        until("a file in it", &|it| it["totalNodes"] == 3);
        std::fs::remove_file(fixture.project().join("docs/later.md")).unwrap();
        until("a file removed from it", &|it| it["totalNodes"] == 2);
    }
    let moved = fixture.project().join("elsewhere");
    std::fs::rename(fixture.project().join("docs"), &moved).unwrap();
    fixture.put_document("docs/other.md", "another folder of the name");
    until("a folder in the place of one moved away", &|it| {
        it["totalNodes"] == 1
    });
    fixture.put_document("docs/more.md", "more");
    until("a file in that", &|it| it["totalNodes"] == 2);
    drop(watch);
    let other = fixture.again(Selection::default());
    assert_eq!(picture(&other), picture(&fixture));
}

#[test]
fn a_note_whose_file_is_being_written_is_neither_removed_nor_put_back() {
    let fixture = Fixture::new();
    fixture.put_document("docs/a.md", "a");
    let vault = fixture.vault();
    for path in ["new.md", "old.md"] {
        let arguments = json!({ "path": path, "content": "the newest text" });
        assert!(!fixture.call("vault_write_note", arguments).is_error());
    }
    // As it is between the commit of a write and its file: the intent is there, one file is not yet,
    // and the other one still has its old text.
    let put = |path: &'static str, before: serde_json::Value| {
        let key = format!("vault:{path}");
        let intent = json!({
            "root": vault.to_str().unwrap(), "name": path, "key": key, "bytes_max": 1_000_000,
            "content": "the newest text", "before": before,
        });
        let log = fixture.log();
        let set = log.write(&Space::default(), move |tx| {
            tx.set("intents", &key, intent.to_string().as_bytes())
        });
        set.unwrap();
    };
    put("new.md", json!(null));
    put("old.md", json!(Hash::of(b"an older text").to_string()));
    std::fs::remove_file(vault.join("new.md")).unwrap();
    std::fs::write(vault.join("old.md"), "an older text").unwrap();
    for arguments in [json!({}), json!({ "force": true })] {
        ask(&fixture, "kg_graph_generate", arguments);
        for key in ["vault:new.md", "vault:old.md"] {
            let log = fixture.log();
            let node = log.read(&Space::default(), |tx| {
                tx.node_by_key("", Kind::Document, key, When::Now)
            });
            let body = node.unwrap().map(|it| it.body);
            assert_eq!(body.as_deref(), Some("the newest text"), "{key}");
        }
    }
}
