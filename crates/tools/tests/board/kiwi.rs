//! Directives, tools and knowledge: found, signed, refused when changed, published and loaded.

use kenning_core::Code;
use kenning_engine::{Caller, Principal, Scope};
use kenning_testing::Fixture;
use kenning_tools::{Reply, Selection};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const DIRECTIVE: &str = "---\nname: oauth_setup\nversion: 1.0.0\ncategory: auth\ndescription: Configure OAuth with Google and GitHub\n---\n\n# OAuth Setup\n\n1. Configure the provider.\n";

/// A fixture whose project has items.
struct Project {
    fixture: Fixture,
}

impl Project {
    fn new() -> Self {
        let fixture = Fixture::without_vault(Selection::default());
        let project = Self { fixture };
        project.put("directives/auth/oauth_setup.md", DIRECTIVE);
        for (id, title) in [
            ("001-email", "Email deliverability"),
            ("002-smtp", "SMTP configuration"),
        ] {
            project.put(
                &format!("knowledge/email/{id}.md"),
                &format!("---\nzettel_id: {id}\ntitle: {title}\nentry_type: pattern\ncategory: email\ntags: [mail]\n---\n\nWarm up new addresses slowly.\n"),
            );
        }
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.fixture.project().join(".ai").join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn execute(&self, item_type: &str, action: &str, id: &str, parameters: Value) -> Reply {
        let arguments = json!({
            "item_type": item_type, "action": action, "item_id": id, "parameters": parameters,
        });
        self.fixture.call("execute", arguments)
    }

    fn done(&self, item_type: &str, action: &str, id: &str, parameters: Value) -> Value {
        let reply = self.execute(item_type, action, id, parameters);
        assert!(!reply.is_error(), "{action} {id}: {}", reply.text);
        reply.to_json()
    }

    fn refused(&self, item_type: &str, action: &str, id: &str, parameters: Value) -> Value {
        let reply = self.execute(item_type, action, id, parameters);
        assert!(reply.is_error(), "{action} {id}: {}", reply.text);
        reply.to_json()
    }

    fn search(&self, item_type: &str, query: &str, source: &str) -> Value {
        let arguments = json!({ "item_type": item_type, "query": query, "source": source });
        let reply = self.fixture.call("search", arguments);
        assert!(!reply.is_error(), "{}", reply.text);
        reply.to_json()
    }

    fn ids(&self, item_type: &str, query: &str, source: &str) -> Vec<String> {
        let found = self.search(item_type, query, source);
        let rows = found["results"].as_array().unwrap();
        rows.iter()
            .map(|it| it["id"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn what_is_in_a_project_is_found_by_words_by_meaning_and_first_by_its_id() {
    let project = Project::new();
    assert_eq!(
        project.ids("directive", "configure oauth", "local"),
        ["oauth_setup"]
    );
    assert_eq!(
        project
            .ids("knowledge", "mail delivery", "local")
            .first()
            .map(String::as_str),
        Some("001-email")
    );
    assert_eq!(project.ids("knowledge", "002-smtp", "local")[0], "002-smtp");
    assert_eq!(
        project.ids("directive", "oauth", "registry"),
        Vec::<String>::new()
    );
    let found = project.search("directive", "oauth_setup", "local");
    let row = &found["results"][0];
    assert_eq!(
        (&row["name"], &row["category"], &row["source"]),
        (&json!("OAuth Setup"), &json!("auth"), &json!("local"))
    );
    assert_eq!(
        (&found["total"], &found["query"]),
        (&json!(1), &json!("oauth_setup"))
    );
    // A file that is there now is found now, and one that is gone is not.
    project.put(
        "directives/auth/passkeys.md",
        &DIRECTIVE
            .replace("oauth_setup", "passkeys")
            .replace("OAuth", "passkeys"),
    );
    assert!(
        project
            .ids("directive", "passkeys", "local")
            .contains(&"passkeys".to_owned())
    );
    fs::remove_file(project.path("directives/auth/passkeys.md")).unwrap();
    let gone = project.ids("directive", "passkeys", "local");
    assert!(!gone.contains(&"passkeys".to_owned()));
}

#[test]
fn an_item_is_used_as_it_was_signed_or_not_at_all() {
    let project = Project::new();
    let unsigned = project.refused("directive", "run", "oauth_setup", json!({}));
    assert_eq!(unsigned["error"], "Directive has no signature");
    assert_eq!(unsigned["status"], "missing");
    assert!(
        unsigned["solution"]
            .as_str()
            .unwrap()
            .contains("`kenning --project . kiwi sign directive oauth_setup`")
    );
    let signed = project.done(
        "directive",
        "sign",
        "oauth_setup",
        json!({ "location": "project" }),
    );
    assert_eq!(
        (&signed["status"], &signed["version"]),
        (&json!("signed"), &json!("1.0.0"))
    );
    // The frontmatter stays the first thing in the file: other readers of Markdown need it there.
    let text = project.text("directives/auth/oauth_setup.md");
    assert!(text.starts_with("---\nname: oauth_setup\n"), "{text}");
    assert!(text.contains("\n---\n<!-- kenning:signed:"), "{text}");
    let run = project.done(
        "directive",
        "run",
        "oauth_setup",
        json!({ "provider": "google" }),
    );
    assert_eq!(
        (&run["status"], &run["source"]),
        (&json!("executed"), &json!("local"))
    );
    assert_eq!(run["content"], DIRECTIVE);
    assert_eq!(run["integrity"], signed["signature"]["hash"]);
    let text = project.text("directives/auth/oauth_setup.md");
    project.put(
        "directives/auth/oauth_setup.md",
        &text.replace("1. Configure", "1. Reconfigure"),
    );
    let changed = project.refused("directive", "run", "oauth_setup", json!({}));
    assert_eq!(
        changed["error"],
        "Directive content has been modified since last validation"
    );
    assert_eq!(changed["stored"], signed["signature"]["hash"]);
    assert_ne!(changed["computed"], changed["stored"]);
    // Where it lies is signed too.
    project.put("directives/other/oauth_setup.md", &text);
    fs::remove_file(project.path("directives/auth/oauth_setup.md")).unwrap();
    let moved = project.refused("directive", "run", "oauth_setup", json!({}));
    assert!(
        moved["error"].as_str().unwrap().contains("not valid"),
        "{moved}"
    );
}

#[test]
fn create_update_and_sign_know_what_was_before() {
    let project = Project::new();
    let early = project.refused("knowledge", "update", "001-email", json!({}));
    assert_eq!(early["suggestion"], "Use action 'create'");
    let created = project.done(
        "knowledge",
        "create",
        "001-email",
        json!({ "location": "project", "category": "email" }),
    );
    assert_eq!(created["status"], "created");
    let again = project.refused("knowledge", "create", "001-email", json!({}));
    assert_eq!(again["suggestion"], "Use action 'update'");
    let written = project.done(
        "knowledge",
        "create",
        "003-new",
        json!({ "location": "user", "category": "patterns", "content": "A thought.", "title": "New", "entry_type": "concept", "tags": ["a"] }),
    );
    assert_eq!(written["status"], "created");
    let path = PathBuf::from(written["path"].as_str().unwrap());
    assert!(path.ends_with("knowledge/patterns/003-new.md"), "{path:?}");
    let run = project.done("knowledge", "run", "003-new", json!({}));
    assert_eq!(run["content"].as_str().unwrap().trim(), "A thought.");
    assert_eq!(run["tags"], json!(["a"]));
    let updated = project.done(
        "knowledge",
        "update",
        "003-new",
        json!({ "content": "Another.", "title": "New", "entry_type": "concept" }),
    );
    assert_eq!(updated["status"], "updated");
    assert_eq!(
        project.done("knowledge", "run", "003-new", json!({}))["content"]
            .as_str()
            .unwrap()
            .trim(),
        "Another."
    );
    let moved = project.done(
        "knowledge",
        "sign",
        "003-new",
        json!({ "category": "thoughts" }),
    );
    assert_eq!(
        (&moved["moved"], &moved["old_category"]),
        (&json!(true), &json!("patterns"))
    );
    assert!(!path.exists());
    let invalid = project.refused(
        "knowledge",
        "create",
        "004-bad",
        json!({ "content": "---\nzettel_id: 004-bad\n---\n\nx" }),
    );
    assert_eq!(
        invalid["validation_issues"].as_array().unwrap().len(),
        2,
        "{invalid}"
    );
    assert!(!project.path("knowledge/004-bad.md").exists());
}

#[test]
fn an_update_that_found_no_room_is_finished_before_the_next_one() {
    let project = Project::new();
    let text = |content: &str| {
        json!({
            "location": "project", "category": "patterns", "content": content, "title": "New",
            "entry_type": "concept",
        })
    };
    let written = project.done("knowledge", "create", "003-new", text("First."));
    let path = PathBuf::from(written["path"].as_str().unwrap());
    let first = fs::read_to_string(&path).unwrap();
    project.done("knowledge", "update", "003-new", text("Second."));
    let second = fs::read_to_string(&path).unwrap();
    // As an update leaves it that was committed before the disk was full.
    fs::write(&path, &first).unwrap();
    let dir = path.ancestors().nth(2).unwrap().to_str().unwrap();
    let before = kenning_core::Hash::of(first.as_bytes()).to_string();
    let intent = json!({
        "dir": dir, "lock": format!("{dir}#003-new"), "remove": [],
        "write": [["patterns/003-new.md", format!("t:{second}"), before]],
    });
    let key = path.to_str().unwrap().to_owned();
    let log = project.fixture.log();
    log.write(&kenning_core::Space::default(), move |tx| {
        tx.set("items/intents", &key, intent.to_string().as_bytes())
    })
    .unwrap();
    let third = project.done("knowledge", "update", "003-new", text("Third."));
    assert_eq!(third["status"], "updated");
    assert!(fs::read_to_string(&path).unwrap().contains("Third."));
}

#[test]
fn what_is_published_can_be_loaded_and_never_changes() {
    let project = Project::new();
    let unsigned = project.refused("directive", "publish", "oauth_setup", json!({}));
    assert_eq!(unsigned["error"], "Directive has no signature");
    project.done("directive", "sign", "oauth_setup", json!({}));
    let dry = project.fixture.call("execute", json!({ "item_type": "directive", "action": "publish", "item_id": "oauth_setup", "dry_run": true }));
    assert_eq!(dry.to_json()["status"], "validation_passed");
    assert_eq!(
        project.ids("directive", "oauth", "registry"),
        Vec::<String>::new()
    );
    let wrong = project.refused(
        "directive",
        "publish",
        "oauth_setup",
        json!({ "version": "9.9.9" }),
    );
    assert!(wrong["error"].as_str().unwrap().contains("`9.9.9`"));
    let published = project.done(
        "directive",
        "publish",
        "oauth_setup",
        json!({ "version": "1.0.0", "changelog": "first" }),
    );
    assert_eq!(
        (&published["status"], &published["version"]),
        (&json!("published"), &json!("1.0.0"))
    );
    project.done("directive", "publish", "oauth_setup", json!({}));
    assert_eq!(
        project.ids("directive", "oauth", "registry"),
        ["oauth_setup"]
    );
    let loaded = project.fixture.call(
        "load",
        json!({ "item_type": "directive", "item_id": "oauth_setup", "destination": "user" }),
    );
    let loaded = loaded.to_json();
    assert_eq!(
        (&loaded["status"], &loaded["destination"]),
        (&json!("loaded"), &json!("user"))
    );
    let path = PathBuf::from(loaded["path"].as_str().unwrap());
    assert!(
        path.ends_with("user/directives/auth/oauth_setup.md"),
        "{path:?}"
    );
    assert_eq!(
        loaded["size_bytes"].as_u64().unwrap(),
        fs::metadata(&path).unwrap().len()
    );
    // The copy is signed for where it lies, so it runs there without the project's.
    fs::remove_file(project.path("directives/auth/oauth_setup.md")).unwrap();
    assert_eq!(
        project.done("directive", "run", "oauth_setup", json!({}))["location"],
        "user"
    );
    // Other content under the same version is refused.
    project.put(
        "directives/auth/oauth_setup.md",
        &DIRECTIVE.replace("provider", "providers"),
    );
    project.done(
        "directive",
        "sign",
        "oauth_setup",
        json!({ "location": "project" }),
    );
    let other = project.refused("directive", "publish", "oauth_setup", json!({}));
    assert!(
        other["error"].as_str().unwrap().contains("other content"),
        "{other}"
    );
    project.put(
        "directives/auth/oauth_setup.md",
        &DIRECTIVE.replace("1.0.0", "1.1.0"),
    );
    project.done(
        "directive",
        "sign",
        "oauth_setup",
        json!({ "location": "project" }),
    );
    project.done("directive", "publish", "oauth_setup", json!({}));
    let load = |version: &str, force: bool| {
        let arguments = json!({ "item_type": "directive", "item_id": "oauth_setup", "destination": "user", "version": version, "force": force });
        project.fixture.call("load", arguments)
    };
    // As it was loaded it may be replaced; once it was changed here it may not.
    assert_eq!(load("latest", false).to_json()["version"], "1.1.0");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}\nMine.\n")).unwrap();
    let mine = load("1.0.0", false);
    assert!(
        mine.is_error() && mine.text.contains("force"),
        "{}",
        mine.text
    );
    assert!(fs::read_to_string(&path).unwrap().contains("Mine."));
    assert_eq!(load("1.0.0", true).to_json()["version"], "1.0.0");
    assert!(load("3.0.0", true).is_error());
}

#[test]
fn a_version_that_was_removed_leaves_its_place_taken() {
    let project = Project::new();
    project.done("directive", "sign", "oauth_setup", json!({}));
    project.done("directive", "publish", "oauth_setup", json!({}));
    let unsure = project.refused("directive", "delete", "oauth_setup", json!({}));
    assert_eq!(unsure["required"], json!({ "confirm": true }));
    let deleted = project.done(
        "directive",
        "delete",
        "oauth_setup",
        json!({ "confirm": true, "source": "registry" }),
    );
    assert_eq!(deleted["deleted_from"], json!(["registry"]));
    assert!(project.path("directives/auth/oauth_setup.md").exists());
    assert_eq!(
        project.ids("directive", "oauth", "registry"),
        Vec::<String>::new()
    );
    assert!(
        project.refused("directive", "publish", "oauth_setup", json!({}))["error"]
            .as_str()
            .unwrap()
            .contains("removed")
    );
    let deleted = project.done(
        "directive",
        "delete",
        "oauth_setup",
        json!({ "confirm": true }),
    );
    assert_eq!(deleted["deleted_from"], json!(["project"]));
    assert!(!project.path("directives").join("auth").exists());
    let gone = project.execute(
        "directive",
        "delete",
        "oauth_setup",
        json!({ "confirm": true }),
    );
    assert_eq!(gone.error.unwrap().code, Code::NotFound);
}

#[test]
fn a_strangers_signature_counts_when_it_is_trusted() {
    let project = Project::new();
    project.done("directive", "sign", "oauth_setup", json!({}));
    let mine = project.text("directives/auth/oauth_setup.md");
    // Under another identity, what was signed before is a stranger's.
    fs::remove_file(project.fixture.root.path().join("data/node.key")).unwrap();
    let other = project.fixture.again(Selection::default());
    let call = |arguments: Value| other.call("execute", arguments);
    let run = json!({ "item_type": "directive", "action": "run", "item_id": "oauth_setup" });
    let refused = call(run.clone()).to_json();
    assert!(
        refused["error"].as_str().unwrap().contains("do not trust"),
        "{refused}"
    );
    let signer = refused["signer"].as_str().unwrap().to_owned();
    assert!(mine.contains(&signer));
    let engine = other.board.engine();
    engine
        .kami()
        .trust_key(&other.owner(), &signer, "a friend")
        .unwrap();
    assert_eq!(call(run.clone()).to_json()["status"], "executed");
    engine.kami().distrust_key(&other.owner(), &signer).unwrap();
    assert!(call(run).is_error());
}

#[test]
fn items_are_linked_in_the_words_of_their_type() {
    let project = Project::new();
    let parameters = |to: &str, how: &str| json!({ "target_id": to, "relationship_type": how });
    let linked = project.done(
        "knowledge",
        "link",
        "001-email",
        parameters("002-smtp", "references"),
    );
    assert_eq!(
        (&linked["status"], &linked["relationship_type"]),
        (&json!("linked"), &json!("references"))
    );
    let again = project.done(
        "knowledge",
        "link",
        "001-email",
        json!({ "to": "002-smtp", "relationship": "extends" }),
    );
    assert_eq!(again["updated"], true);
    for (to, how, said) in [
        ("009-none", "references", "009-none"),
        ("002-smtp", "likes", "likes"),
        ("001-email", "related", "itself"),
    ] {
        let refused = project.refused("knowledge", "link", "001-email", parameters(to, how));
        assert!(
            refused["error"].as_str().unwrap().contains(said),
            "{refused}"
        );
    }
}

#[test]
fn bad_input_names_the_field_and_the_remedy_and_has_the_status_of_the_contract() {
    let project = Project::new();
    let cases = [
        (json!({ "action": "run", "item_id": "x" }), 400, "item_type"),
        (
            json!({ "item_type": "directive", "action": "run" }),
            400,
            "item_id",
        ),
        (
            json!({ "item_type": "skill", "action": "run", "item_id": "x" }),
            422,
            "Unknown item_type: skill",
        ),
        (
            json!({ "item_type": "tool", "action": "walk", "item_id": "x" }),
            422,
            "Unknown action: walk",
        ),
        (
            json!({ "item_type": "directive", "action": "sign", "item_id": "../x" }),
            422,
            "item_id",
        ),
        (
            json!({ "item_type": "directive", "action": "run", "item_id": "x", "project_path": "x" }),
            422,
            "project_path",
        ),
    ];
    // A status follows from what is wrong, whatever words the caller used.
    let words = [
        (
            json!({ "item_type": "missing", "action": "run", "item_id": "x" }),
            422,
            "Unknown item_type: missing",
        ),
        (
            json!({ "item_type": "tool", "action": "a thing is required", "item_id": "x" }),
            422,
            "Unknown action",
        ),
    ];
    for (arguments, status, said) in cases.into_iter().chain(words) {
        let reply = project.fixture.call("execute", arguments.clone());
        assert!(reply.text.contains(said), "{arguments}: {}", reply.text);
        assert_eq!(reply.status, Some(status), "{arguments}: {}", reply.text);
        assert!(reply.to_json()["message"].is_string());
    }
    let outside = project.fixture.call(
        "execute",
        json!({ "item_type": "directive", "action": "run", "item_id": "x", "project_path": "/" }),
    );
    assert_eq!(outside.error.unwrap().code, Code::Denied);
    let limit = project.fixture.call(
        "search",
        json!({ "item_type": "tool", "query": "x", "limit": 101 }),
    );
    assert_eq!(limit.status, Some(422));
    let nowhere = project
        .fixture
        .call("load", json!({ "item_type": "tool", "item_id": "x" }));
    assert_eq!(nowhere.status, Some(400), "{}", nowhere.text);
}

#[test]
fn a_dry_run_changes_nothing() {
    let project = Project::new();
    project.ids("knowledge", "mail", "local");
    let before = (
        project.text("directives/auth/oauth_setup.md"),
        project.fixture.event_kinds().len(),
    );
    for (action, parameters) in [
        ("sign", json!({})),
        ("sign", json!({ "category": "elsewhere" })),
        ("create", json!({})),
        ("delete", json!({})),
    ] {
        let reply = project.fixture.call("execute", json!({ "item_type": "knowledge", "action": action, "item_id": "001-email", "parameters": parameters, "dry_run": true }));
        assert!(
            !reply.is_error() || action == "sign",
            "{action}: {}",
            reply.text
        );
    }
    assert_eq!(
        before,
        (
            project.text("directives/auth/oauth_setup.md"),
            project.fixture.event_kinds().len()
        )
    );
    assert!(
        !project
            .text("knowledge/email/001-email.md")
            .contains("kenning:signed")
    );
    let arguments = json!({
        "item_type": "tool", "action": "create", "item_id": "hello", "dry_run": true,
        "parameters": { "content": "#!/bin/bash\n# __version__ = \"1.0.0\"\n# __tool_type__ = \"script\"\necho hello\n" },
    });
    let created = project.fixture.call("execute", arguments);
    assert_eq!(
        created.to_json()["status"],
        "validation_passed",
        "{}",
        created.text
    );
    assert!(!project.path("tools").exists());
}

#[test]
fn few_tools_reach_all_others_but_those_that_were_excluded() {
    let project = Project::new();
    let lean = project.fixture.again(Selection {
        toolsets: vec!["lean".to_owned()],
        exclude_tools: vec!["now_update".to_owned()],
        ..Selection::default()
    });
    let names: Vec<&str> = lean.board.listed().iter().map(|it| it.name()).collect();
    assert_eq!(names, ["execute_read", "search", "load", "execute", "help"]);
    let found = lean
        .call(
            "search",
            json!({ "item_type": "any", "query": "store a memory" }),
        )
        .to_json();
    assert_eq!(found["results"][0]["id"], "memory_store");
    let run = |id: &str, inputs: Value| {
        lean.call("execute", json!({ "item_type": "tool", "action": "run", "item_id": id, "parameters": { "inputs": inputs } }))
    };
    assert_eq!(
        run(
            "memory_store",
            json!({ "content": "The falcon nests on the tower." })
        )
        .to_json()["status"],
        "executed"
    );
    let recalled = run(
        "memory_recall",
        json!({ "query": "where does the falcon nest" }),
    )
    .to_json();
    assert!(
        recalled["result"].to_string().contains("tower"),
        "{recalled}"
    );
    let found = lean
        .call(
            "search",
            json!({ "item_type": "any", "query": "falcon tower" }),
        )
        .to_json();
    assert_eq!(found["results"][0]["item_type"], "memory");
    assert!(run("now_update", json!({ "content": "x" })).is_error());
    assert!(run("execute", json!({})).is_error());
    let wrong = run("memory_store", json!({ "content": 5 }));
    assert!(wrong.text.contains("content"), "{}", wrong.text);
}

#[test]
fn nothing_that_is_there_is_written_over() {
    let project = Project::new();
    let text = |words: &str| {
        format!("---\nzettel_id: mine\ntitle: Mine\nentry_type: pattern\n---\n\n{words}\n")
    };
    project.put("knowledge/a/mine.md", &text("first"));
    project.put("knowledge/b/mine.md", &text("precious"));
    let moved = project.refused("knowledge", "sign", "mine", json!({ "category": "b" }));
    assert!(
        moved["error"].as_str().unwrap().contains("already"),
        "{moved}"
    );
    assert_eq!(project.text("knowledge/b/mine.md"), text("precious"));
    // What is in the way is refused before anything is kept, so nothing comes back later.
    fs::create_dir_all(project.path("knowledge/way.md")).unwrap();
    let content = json!({ "content": "x", "title": "Way", "entry_type": "concept" });
    let refused = project.refused("knowledge", "create", "way", content);
    assert!(
        refused["error"].as_str().unwrap().contains("regular file"),
        "{refused}"
    );
    fs::remove_dir(project.path("knowledge/way.md")).unwrap();
    project.put("knowledge/way.md", "my own text");
    let again = project.fixture.again(Selection::default());
    drop(again);
    assert_eq!(project.text("knowledge/way.md"), "my own text");
    let outside = project.fixture.root.path().join("outside.md");
    fs::write(&outside, "theirs").unwrap();
    std::os::unix::fs::symlink(&outside, project.path("knowledge/link.md")).unwrap();
    let content = json!({ "content": "x", "title": "Link", "entry_type": "concept" });
    project.refused("knowledge", "create", "link", content);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs");
}

#[test]
fn of_many_who_make_one_item_one_does() {
    let project = Project::new();
    let made: usize = std::thread::scope(|scope| {
        let make = |n: usize| {
            let parameters = json!({
                "content": format!("of {n}"), "title": "One", "entry_type": "concept",
                "category": format!("area-{n}"), "location": "project",
            });
            let project = &project;
            scope.spawn(move || {
                !project
                    .execute("knowledge", "create", "one", parameters)
                    .is_error()
            })
        };
        let threads: Vec<_> = (0..8).map(make).collect();
        threads
            .into_iter()
            .map(|it| usize::from(it.join().unwrap()))
            .sum()
    });
    assert_eq!(made, 1);
}

#[test]
fn the_registry_shows_what_was_published_and_nothing_else() {
    let project = Project::new();
    let engine = project.fixture.board.engine();
    project.ids("knowledge", "mail", "local");
    let query = kenning_engine::kiwi::ItemQuery {
        text: "001-email".to_owned(),
        source: kenning_engine::kiwi::ItemSource::OwnRegistry,
        limit: 10,
        ..Default::default()
    };
    assert!(
        engine
            .kiwi()
            .search_items(&project.fixture.owner(), &query)
            .unwrap()
            .items
            .is_empty()
    );
}

#[test]
fn names_that_mean_something_else_are_not_for_items() {
    let project = Project::new();
    let script = "#!/bin/bash\n# __version__ = \"1.0.0\"\n# __tool_type__ = \"script\"\necho x\n";
    for name in ["memory_store", "execute", "python_runtime", "subprocess"] {
        project.put(&format!("tools/t/{name}.sh"), script);
        let refused = project.refused("tool", "sign", name, json!({}));
        assert!(
            refused["error"].as_str().unwrap().contains(name),
            "{refused}"
        );
    }
}

#[test]
fn an_action_under_a_run_needs_the_directives_leave() {
    let project = Project::new();
    project.done("directive", "sign", "oauth_setup", json!({}));
    let run = project.done("directive", "run", "oauth_setup", json!({}));
    for run_id in [run["run_id"].as_str().unwrap(), "run_of_nobody"] {
        for action in ["sign", "create", "update", "publish", "delete", "link"] {
            let reply = project.fixture.call(
                "execute",
                json!({
                    "item_type": "knowledge", "action": action, "item_id": "001-email",
                    "parameters": { "confirm": true }, "run_id": run_id,
                }),
            );
            assert!(reply.is_error(), "{action} {run_id}: {}", reply.text);
        }
    }
    let reply = project.fixture.call("execute", json!({
        "item_type": "knowledge", "action": "run", "item_id": "001-email", "run_id": "run_of_nobody",
    }));
    assert!(reply.text.contains("run_id"), "{}", reply.text);
    assert!(project.path("knowledge/email/001-email.md").exists());
}

#[test]
fn an_agent_writes_items_and_a_person_signs_them() {
    let project = Project::new();
    let call = |caller: &kenning_engine::Caller, arguments: Value| {
        let reply = project
            .fixture
            .board
            .call("execute", arguments, caller)
            .unwrap();
        let code = reply.error.as_ref().map(|it| it.code);
        (code, reply.value.unwrap())
    };
    let (agent, person) = (project.fixture.agent(), project.fixture.owner());
    let of = |action: &str, id: &str| json!({ "item_type": "directive", "action": action, "item_id": id });
    for action in ["sign", "create"] {
        let (code, refused) = call(&agent, of(action, "oauth_setup"));
        assert_eq!(code, Some(kenning_core::Code::Denied), "{refused:#}");
        assert_eq!(refused["status"], "person_required");
        let command = "kenning --project . kiwi sign directive oauth_setup";
        assert_eq!(refused["command"], command);
        assert!(
            !refused.to_string().contains("agents_may_sign"),
            "{refused:#}"
        );
        assert!(
            refused["solution"].as_str().unwrap().contains("A person"),
            "{refused:#}"
        );
    }
    // Nor is an agent told how it would sign what it may not use.
    let (_, refused) = call(&agent, of("run", "oauth_setup"));
    assert_eq!(refused["status"], "missing");
    assert!(
        !refused.to_string().contains("action='sign'"),
        "{refused:#}"
    );
    // To look whether it could be signed changes nothing.
    let mut dry = of("sign", "oauth_setup");
    dry["dry_run"] = true.into();
    assert_eq!(call(&agent, dry).1["status"], "validation_passed");
    // What an agent writes is there, and is used when a person has signed it.
    let mut new = of("create", "made_here");
    new["parameters"] =
        json!({ "content": DIRECTIVE.replace("oauth_setup", "made_here"), "category": "auth" });
    let (code, written) = call(&agent, new);
    assert_eq!(code, None, "{written:#}");
    assert_eq!(
        (&written["status"], &written["signed"]),
        (&json!("created"), &json!(false))
    );
    assert!(
        written["next"]
            .as_str()
            .unwrap()
            .contains("kiwi sign directive made_here")
    );
    assert_eq!(written["signature"], Value::Null);
    assert_eq!(call(&agent, of("run", "made_here")).1["status"], "missing");
    assert_eq!(call(&person, of("sign", "made_here")).1["status"], "signed");
    assert_eq!(call(&agent, of("run", "made_here")).1["status"], "executed");
    // An agent that changes it takes the signature away.
    let mut change = of("update", "made_here");
    change["parameters"] = json!({ "content": DIRECTIVE.replace("oauth_setup", "made_here") });
    let (code, written) = call(&agent, change);
    assert_eq!(
        (code, &written["signed"]),
        (None, &json!(false)),
        "{written:#}"
    );
    assert!(call(&agent, of("run", "made_here")).0.is_some());
    // The operator may let agents sign.
    let policy = project.fixture.root.path().join("data/kiwi");
    fs::create_dir_all(&policy).unwrap();
    fs::write(policy.join("policy.toml"), "agents_may_sign = true\n").unwrap();
    let (_, refused) = call(&agent, of("run", "made_here"));
    assert!(
        refused["solution"]
            .as_str()
            .unwrap()
            .contains("action='sign'"),
        "{refused:#}"
    );
    assert_eq!(call(&agent, of("sign", "made_here")).1["status"], "signed");
    let kinds = project.fixture.event_kinds();
    assert!(kinds.iter().any(|it| it == "ItemWritten"), "{kinds:?}");
}

#[test]
fn a_token_deletes_nothing_from_the_registry_that_another_one_published() {
    let (maker, registry) = (Project::new(), Fixture::without_vault(Selection::default()));
    maker.done("directive", "sign", "oauth_setup", json!({}));
    maker.done("directive", "publish", "oauth_setup", json!({}));
    let of_maker = maker.fixture.board.engine();
    let directive = kenning_engine::kiwi::ItemType::Directive;
    let package =
        of_maker
            .kiwi()
            .registry_pull(&maker.fixture.owner(), directive, "oauth_setup", None);
    let package = package.unwrap();
    let token = |id: &str, scopes: &[Scope]| {
        Caller::new(Principal {
            scopes: scopes.to_vec(),
            token: Some(id.to_owned()),
            ..registry.owner().principal
        })
    };
    let publisher = [Scope::Read, Scope::Write, Scope::Destroy];
    let (ann, bob) = (token("ann", &publisher), token("bob", &publisher));
    let engine = registry.board.engine();
    engine.kiwi().registry_push(&ann, &package, false).unwrap();
    // To push the same once more makes nobody its publisher.
    engine.kiwi().registry_push(&bob, &package, false).unwrap();
    let (kiwi, name) = (engine.kiwi(), "oauth_setup");
    let delete =
        |caller: &Caller, dry_run| kiwi.registry_delete(caller, directive, name, None, dry_run);
    let fault = delete(&bob, false).unwrap_err();
    assert_eq!(fault.error.code, Code::Denied);
    assert!(fault.error.message.contains("1.0.0"), "{}", fault.error);
    kiwi.registry_versions(&bob, directive, name).unwrap();
    delete(&token("operator", &Scope::ALL), true).unwrap();
    delete(&ann, false).unwrap();
}
