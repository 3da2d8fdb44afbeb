//! Notes as people edit them: listed, changed in part, renamed with their links, thrown away, brought back.

use crate::Fixture;
use kenning_core::Code;
use kenning_tools::{Reply, Selection};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn put(fixture: &Fixture, path: &str, text: &str) {
    let path = fixture.vault().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn text(fixture: &Fixture, path: &str) -> String {
    fs::read_to_string(fixture.vault().join(path)).unwrap()
}

fn done(reply: Reply) -> Value {
    assert!(!reply.is_error(), "{}", reply.text);
    reply.value.unwrap_or_default()
}

fn code(reply: &Reply) -> Code {
    reply.error.as_ref().expect("an error").code
}

fn moved(fixture: &Fixture, path: &str, to: &str) -> Value {
    done(fixture.call("note_move", json!({ "path": path, "to": to })))
}

/// Every link of the vault that leads nowhere, as the graph knows them.
fn broken(fixture: &Fixture) -> Vec<String> {
    fixture.put_document("docs/a.md", "a");
    let all = crate::everything(fixture);
    done(all.call("kg_graph_generate", json!({})));
    let reply = done(all.call("kg_broken_links", json!({ "limit": 1000 })));
    let links = reply["data"]["links"].as_array().unwrap();
    links.iter().map(ToString::to_string).collect()
}

#[test]
fn folders_are_listed_with_what_is_beneath_them_and_settings_and_templates_are_not() {
    let fixture = Fixture::new();
    put(&fixture, "a.md", "a");
    put(&fixture, "Work/b.md", "b");
    put(&fixture, "Work/2026/c.md", "c");
    put(&fixture, ".obsidian/plugins/x/note.md", "no note");
    put(&fixture, "Templates/Person.md", "---\ntype: Person\n---\n");
    put(&fixture, ".gitignore", "secret/\n");
    put(&fixture, "secret/d.md", "d");
    let all = done(fixture.call("note_list", json!({})));
    assert_eq!(
        all["notes"],
        json!(["People/Bill Baue.md", "Work/2026/c.md", "Work/b.md", "a.md"])
    );
    assert_eq!(
        all["folders"],
        json!([
            { "path": "People", "notes": 1 },
            { "path": "Work", "notes": 2 },
            { "path": "Work/2026", "notes": 1 },
        ])
    );
    let flat = done(fixture.call("note_list", json!({ "folder": "Work", "recursive": false })));
    assert_eq!(flat["notes"], json!(["Work/b.md"]));
    assert_eq!(
        flat["folders"],
        json!([{ "path": "Work/2026", "notes": 1 }])
    );
    let missing = fixture.call("note_list", json!({ "folder": "Nowhere" }));
    assert_eq!(code(&missing), Code::NotFound);
}

#[test]
fn settings_templates_and_what_is_ignored_are_neither_read_nor_written() {
    let fixture = Fixture::new();
    put(
        &fixture,
        ".obsidian/app.json",
        r#"{"userIgnoreFilters": ["Private/"]}"#,
    );
    put(
        &fixture,
        ".obsidian/templates.json",
        r#"{"folder": "Forms"}"#,
    );
    put(&fixture, "Forms/Person.md", "---\ntype: Person\n---\n");
    put(&fixture, "Private/diary.md", "dear diary");
    put(&fixture, ".gitignore", "*.secret.md\n");
    put(&fixture, "x.secret.md", "x");
    for path in [
        ".obsidian/plugins/evil/main.js",
        ".obsidian/app.json",
        ".trash/old.md",
        "Forms/Person.md",
        "Private/diary.md",
        "x.secret.md",
    ] {
        for (tool, arguments) in [
            ("note_read", json!({ "path": path })),
            ("vault_read_note", json!({ "path": path })),
            (
                "note_write",
                json!({ "path": path, "content": "x", "mode": "overwrite" }),
            ),
            ("vault_write_note", json!({ "path": path, "content": "x" })),
            (
                "note_move",
                json!({ "path": "People/Bill Baue.md", "to": path }),
            ),
            ("note_delete", json!({ "path": path })),
        ] {
            let reply = fixture.call(tool, arguments);
            assert!(reply.is_error(), "{tool} {path}: {}", reply.text);
            assert_eq!(code(&reply), Code::Denied, "{tool} {path}: {}", reply.text);
        }
    }
    assert_eq!(text(&fixture, "Private/diary.md"), "dear diary");
    assert!(!fixture.vault().join(".obsidian/plugins").exists());
    let people = fixture.call(
        "koi_search",
        json!({ "query": "Person", "type_filter": "Person" }),
    );
    assert!(!people.text.contains("Forms"), "{}", people.text);
}

#[test]
fn a_note_is_changed_in_part_and_the_rest_stays_as_it_is() {
    let fixture = Fixture::new();
    let write = |content: &str, mode: &str, target: Option<&str>| {
        let mut arguments = json!({ "path": "Plan", "content": content, "mode": mode });
        if let Some(target) = target {
            arguments["target"] = target.into();
        }
        fixture.call("note_write", arguments)
    };
    done(write(
        "---\nstatus: open\n---\n# Plan\n\n## Next\n\nold\n\n## Later\n\nstays\n",
        "create",
        None,
    ));
    assert_eq!(code(&write("x", "create", None)), Code::Conflict);
    done(write("new", "section", Some("Next")));
    done(write("done", "field", Some("status")));
    done(write("[[Bill Baue]]", "field", Some("owner")));
    done(write("- last", "append", None));
    assert_eq!(
        text(&fixture, "Plan.md"),
        "---\nstatus: done\nowner: \"[[Bill Baue]]\"\n---\n# Plan\n\n## Next\n\nnew\n\n## Later\n\nstays\n- last\n"
    );
    let section = fixture.call("note_read", json!({ "path": "Plan.md", "heading": "Next" }));
    assert_eq!(section.text, "new");
    let unknown = write("x", "section", Some("Never"));
    assert_eq!(code(&unknown), Code::NotFound);
    assert!(unknown.text.contains("`Later`"), "{}", unknown.text);
    assert_eq!(code(&write("x", "section", None)), Code::InvalidInput);
    assert_eq!(
        code(&write("x", "append", Some("Next"))),
        Code::InvalidInput
    );
    // A note is found by its name alone.
    let read = fixture.call("note_read", json!({ "path": "bill baue" }));
    assert_eq!(read.text, "# Bill Baue\n");
}

#[test]
fn a_renamed_note_takes_its_links_along() {
    let fixture = Fixture::new();
    put(
        &fixture,
        "Old.md",
        "# Old\n\nsee [[Bill Baue]], [b](People/Bill%20Baue.md), ![](img/x.png) and [[#Old]]\n",
    );
    put(&fixture, "img/x.png", "png");
    put(
        &fixture,
        "Work/a.md",
        "---\nup: \"[[Old]]\"\nrelated: Old\n---\n[[Old]] [[Old|shown]] [[Old#Old]] ![[Old]] [x](../Old.md#old) `[[Old]]`\n",
    );
    put(&fixture, "b.md", "[x](Old.md) and [[Other]]\n");
    put(&fixture, "Other.md", "nothing\n");
    let before = broken(&fixture);
    let told = moved(&fixture, "Old.md", "Archive/New One.md");
    assert_eq!(told["path"], "Archive/New One.md");
    assert_eq!(told["notes_changed"], json!(["Work/a.md", "b.md"]));
    // Paths from the root of the vault mean the same in every folder.
    assert_eq!(
        text(&fixture, "Archive/New One.md"),
        "# Old\n\nsee [[Bill Baue]], [b](People/Bill%20Baue.md), ![](img/x.png) and [[#Old]]\n"
    );
    assert_eq!(
        text(&fixture, "Work/a.md"),
        "---\nup: \"[[New One]]\"\nrelated: New One\n---\n[[New One]] [[New One|shown]] [[New One#Old]] ![[New One]] [x](../Archive/New%20One.md#old) `[[Old]]`\n"
    );
    assert_eq!(
        text(&fixture, "b.md"),
        "[x](Archive/New%20One.md) and [[Other]]\n"
    );
    assert!(!fixture.vault().join("Old.md").exists());
    assert_eq!(broken(&fixture), before);
    // Paths from its own folder do not.
    put(
        &fixture,
        "Deep/n.md",
        "[b](../People/Bill%20Baue.md) ![](../img/x.png) [o](../Other.md#top)\n",
    );
    moved(&fixture, "Deep/n.md", "n.md");
    assert_eq!(
        text(&fixture, "n.md"),
        "[b](./People/Bill%20Baue.md) ![](./img/x.png) [o](./Other.md#top)\n"
    );
    // Another process knows the same.
    let again = fixture.again(Selection::default());
    let found = done(again.call("find", json!({ "query": "New One", "kinds": ["note"] })));
    assert_eq!(found["results"][0]["id"], "Archive/New One.md");
    let report = again
        .board
        .engine()
        .verify(&kenning_core::Space::default(), &|_| ());
    assert!(report.unwrap().is_clean());
}

#[test]
fn a_name_that_would_be_taken_for_another_note_is_written_as_a_path() {
    let fixture = Fixture::new();
    put(&fixture, "Work/Plan.md", "work\n");
    put(&fixture, "Home/Other.md", "home\n");
    put(&fixture, "Work/a.md", "[[Plan]] and [[Other]]\n");
    put(&fixture, "Home/b.md", "[[Plan]] and [[Other]]\n");
    moved(&fixture, "Home/Other.md", "Home/Plan.md");
    // Each link means what it meant, whichever `Plan` is nearer.
    assert_eq!(text(&fixture, "Work/a.md"), "[[Plan]] and [[Home/Plan]]\n");
    let b = text(&fixture, "Home/b.md");
    assert!(
        b == "[[Work/Plan]] and [[Plan]]\n" || b == "[[Work/Plan]] and [[Home/Plan]]\n",
        "{b}"
    );
    for (path, to, expected) in [
        ("Work/Plan.md", "Home/Plan.md", Code::Conflict),
        ("Work/Plan.md", "Work/Plan.md", Code::InvalidInput),
        ("Work/Plan.md", "A#B.md", Code::InvalidInput),
        ("Work/None.md", "Work/X.md", Code::NotFound),
        ("Work/Plan.md", "../X.md", Code::Denied),
    ] {
        let reply = fixture.call("note_move", json!({ "path": path, "to": to }));
        assert_eq!(code(&reply), expected, "{path} {to}: {}", reply.text);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn every_note_of_the_example_vault_can_be_renamed_and_moved_without_breaking_a_link() {
    let fixture = Fixture::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/koi-vault");
    copy(&example, &fixture.vault());
    let links = |fixture: &Fixture| -> BTreeMap<String, usize> {
        fixture.put_document("docs/a.md", "a");
        let all = crate::everything(fixture);
        done(all.call("kg_graph_generate", json!({})));
        let stats = done(all.call("kg_graph_stats", json!({})));
        BTreeMap::from([
            ("broken".to_owned(), broken(fixture).len()),
            (
                "links".to_owned(),
                usize::try_from(stats["data"]["totalEdges"].as_u64().unwrap_or(0)).unwrap(),
            ),
        ])
    };
    let before = links(&fixture);
    let all = done(fixture.call("note_list", json!({})));
    let notes: Vec<String> = all["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap().to_owned())
        .collect();
    let mut n_rewritten = 0;
    for (n, path) in notes
        .iter()
        .enumerate()
        .filter(|it| !it.1.starts_with("Ontology/") && it.1 != "README.md")
    {
        let name = path.rsplit('/').next().unwrap();
        let to = match n % 3 {
            0 => format!("Moved/{name}"),
            1 => path.replace(".md", " renamed.md"),
            _ => format!("Moved/Deep/{}", name.replace(".md", " (2).md")),
        };
        n_rewritten += moved(&fixture, path, &to)["links_rewritten"]
            .as_u64()
            .unwrap();
    }
    assert!(n_rewritten > 50, "{n_rewritten}");
    assert_eq!(links(&fixture), before);
}

#[test]
fn a_deleted_note_is_in_the_trash_and_comes_back_from_its_history() {
    let fixture = Fixture::new();
    let engine = fixture.board.engine();
    let owner = fixture.owner();
    for text in ["first", "second"] {
        done(fixture.call(
            "note_write",
            json!({ "path": "n.md", "content": text, "mode": "overwrite" }),
        ));
    }
    put(&fixture, "a.md", "[[n]]\n");
    moved(&fixture, "n.md", "m.md");
    assert_eq!(text(&fixture, "a.md"), "[[m]]\n");
    let told = done(fixture.call("note_delete", json!({ "path": "m.md" })));
    assert_eq!(
        told,
        json!({ "trash": ".trash/m.md", "still_linking": ["a.md"] })
    );
    assert_eq!(text(&fixture, ".trash/m.md"), "second");
    assert!(!fixture.vault().join("m.md").exists());
    let history = engine.koi().note_history(&owner, "m.md").unwrap();
    let told: Vec<(usize, &str, &str)> = history
        .iter()
        .map(|it| (it.n, it.path.as_str(), it.text.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (1, "n.md", "first"),
            (2, "n.md", "second"),
            (3, "m.md", "second")
        ]
    );
    engine.koi().restore_note(&owner, "m.md", None).unwrap();
    assert_eq!(text(&fixture, "m.md"), "second");
    engine.koi().restore_note(&owner, "m.md", Some(1)).unwrap();
    assert_eq!(text(&fixture, "m.md"), "first");
    assert!(engine.koi().restore_note(&owner, "m.md", Some(99)).is_err());
    assert!(engine.koi().note_history(&owner, "never.md").is_err());
    // A second one of the same name does not replace what is in the trash.
    let told = done(fixture.call("note_delete", json!({ "path": "m.md" })));
    assert_eq!(told["trash"], ".trash/m 2.md");
}
