//! Two projects on one store, as two clients have them: two processes, each started in its own repository.

use crate::omi::finish;
use crate::{Client, Place, Server};
use kenning_testing_postgres::shared;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A repository with a remote, or without one.
fn repository(place: &Place, name: &str, remote: Option<&str>) -> PathBuf {
    let root = place.0.path().join("src").join(name);
    std::fs::create_dir_all(root.join(".git")).unwrap();
    let remote = remote.map(|it| format!("[remote \"origin\"]\n\turl = {it}\n"));
    let config = format!("[core]\n\tbare = false\n{}", remote.unwrap_or_default());
    std::fs::write(root.join(".git/config"), config).unwrap();
    root
}

fn client(place: &Place, root: &Path) -> Client {
    let mut command = place.command(&["mcp", "--toolsets", "koi,omi,kiwi"]);
    command.current_dir(root);
    Client::of(command)
}

fn text(answer: &Value) -> String {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn recalled(client: &mut Client, query: &str, scope: Option<&str>) -> String {
    let mut arguments = json!({ "query": query, "min_relevance": 0.0 });
    if let Some(scope) = scope {
        arguments["scope"] = scope.into();
    }
    text(&client.call("memory_recall", &arguments))
}

fn good_in(place: &Place, root: &Path, arguments: &[&str]) -> String {
    let mut command = place.command(arguments);
    command.current_dir(root);
    let (code, out, err) = finish(command, "");
    assert_eq!(code, 0, "{arguments:?}: {err}");
    out
}

fn hooked(place: &Place, turn: &str, message: &Value) -> String {
    let mut command = place.command(&["hook", turn]);
    command.env("KENNING_HOOK_BUDGET_MS", "60000");
    let (code, out, err) = finish(command, &message.to_string());
    assert_eq!((code, err.as_str()), (0, ""), "{turn}");
    out
}

fn never_meet(place: &Place) {
    let shop = repository(place, "shop", Some("git@github.com:acme/shop.git"));
    let bank = repository(place, "bank", None);
    let (mut in_shop, mut in_bank) = (client(place, &shop), client(place, &bank));
    in_shop.call(
        "memory_store",
        &json!({ "content": "We deploy on Mondays", "memory_type": "fact" }),
    );
    in_bank.call(
        "memory_store",
        &json!({ "content": "We deploy with two signatures", "memory_type": "fact" }),
    );
    in_bank.call(
        "memory_store",
        &json!({ "content": "Ann prefers short deploy messages", "memory_type": "fact", "scope": "global" }),
    );
    in_shop.call(
        "now_update",
        &json!({ "current_task": "Deploy the cart", "key_files": ["cart.rs"] }),
    );
    in_bank.call(
        "now_update",
        &json!({ "current_task": "Deploy the ledger", "key_files": ["ledger.rs"] }),
    );

    let deploy = "how do we deploy?";
    for (one, own, other) in [
        (&mut in_shop, "Mondays", "signatures"),
        (&mut in_bank, "signatures", "Mondays"),
    ] {
        let found = recalled(one, deploy, None);
        assert!(
            found.contains(own) && found.contains("Ann") && !found.contains(other),
            "{found}"
        );
        let found = recalled(one, deploy, Some("global"));
        assert!(found.contains("Ann") && !found.contains(own), "{found}");
        let found = recalled(one, deploy, Some("all"));
        assert!(found.contains(own) && found.contains(other), "{found}");
        for (tool, arguments) in [
            ("koi_search", json!({ "query": deploy })),
            ("knowledge_search", json!({ "query": deploy })),
            ("search", json!({ "item_type": "any", "query": "deploy" })),
        ] {
            let found = text(&one.call(tool, &arguments));
            assert!(!found.contains(other), "{tool}: {found}");
        }
    }
    let now = text(&in_shop.call("now_read", &json!({})));
    assert!(now.contains("the cart") && !now.contains("ledger"), "{now}");
    let now = text(&in_bank.call("now_read", &json!({})));
    assert!(now.contains("the ledger") && !now.contains("cart"), "{now}");

    // Hooks, answered by whichever server runs: the project is that of the client's directory.
    for (root, own, other) in [
        (&shop, "Mondays", "signatures"),
        (&bank, "signatures", "Mondays"),
    ] {
        let inner = root.join("deep/er");
        std::fs::create_dir_all(&inner).unwrap();
        let message = |event: &str| json!({ "session_id": "s", "cwd": inner, "hook_event_name": event, "prompt": deploy });
        let said = hooked(place, "prompt", &message("UserPromptSubmit"));
        assert!(said.contains(own) && !said.contains(other), "{said}");
        let said = hooked(place, "session-start", &message("SessionStart"));
        let (task, not_task) = match own {
            "Mondays" => ("the cart", "the ledger"),
            _ => ("the ledger", "the cart"),
        };
        assert!(said.contains(task), "{said}");
        assert!(!said.contains(not_task) && !said.contains(other), "{said}");
    }
    // Whoever works in no project sees what is global.
    let said = hooked(
        place,
        "prompt",
        &json!({ "session_id": "s", "cwd": "/", "hook_event_name": "UserPromptSubmit", "prompt": deploy }),
    );
    assert!(
        !said.contains("Mondays") && !said.contains("signatures"),
        "{said}"
    );
    assert_eq!((in_shop.finish(), in_bank.finish()), (0, 0));

    // Another clone of the same remote is the same project, and the command line agrees.
    let clone = repository(
        place,
        "elsewhere/shop",
        Some("https://bot:secret@github.com/acme/shop"),
    );
    let found = good_in(
        place,
        &clone,
        &["omi", "recall", deploy, "--min-relevance", "0"],
    );
    assert!(
        found.contains("Mondays") && !found.contains("signatures"),
        "{found}"
    );
    let listed = good_in(place, &clone, &["project", "list"]);
    assert!(
        listed.contains("github.com/acme/shop") && !listed.contains("secret"),
        "{listed}"
    );
}

#[test]
fn two_projects_never_meet() {
    never_meet(&Place::new());
}

#[test]
fn two_projects_never_meet_on_postgresql() {
    never_meet(&Place::on_database(&shared().database(), "default"));
}

#[test]
fn old_memories_stay_global_until_they_are_assigned() {
    let place = Place::new();
    place.good(&[
        "omi",
        "store",
        "The parser is hand-written",
        "--type",
        "fact",
    ]);
    let (one, two) = (
        repository(&place, "one", None),
        repository(&place, "two", None),
    );
    let recall = ["omi", "recall", "parser", "--min-relevance", "0"];
    for root in [&one, &two] {
        assert!(good_in(&place, root, &recall).contains("hand-written"));
    }
    let mut unsaid = place.command(&["project", "assign", "."]);
    unsaid.current_dir(&one);
    let (code, _, err) = finish(unsaid, "");
    assert_ne!(code, 0);
    assert!(err.contains("--all"), "{err}");
    good_in(&place, &one, &["project", "assign", ".", "--all"]);
    assert!(good_in(&place, &one, &recall).contains("hand-written"));
    assert!(!good_in(&place, &two, &recall).contains("hand-written"));

    good_in(
        &place,
        &two,
        &["omi", "store", "The lexer is generated", "--type", "fact"],
    );
    good_in(&place, &two, &["omi", "daily", "append", "wrote the lexer"]);
    good_in(&place, &two, &["project", "rename", ".", "Compiler"]);
    good_in(&place, &one, &["project", "merge", "Compiler", "."]);
    for root in [&one, &two] {
        let found = good_in(
            &place,
            root,
            &["omi", "recall", "lexer parser", "--min-relevance", "0"],
        );
        assert!(
            found.contains("hand-written") && found.contains("generated"),
            "{found}"
        );
    }
    let verified = place.good(&["audit", "verify"]);
    assert!(verified.contains("clean: "), "{verified}");
}

#[test]
fn without_a_project_everything_is_where_the_contract_has_it() {
    let place = Place::new();
    place.good(&["omi", "now", "update", "--task", "Nothing special"]);
    assert!(place.0.path().join(".openclaw/omi/NOW.md").is_file());
    let root = repository(&place, "one", None);
    good_in(
        &place,
        &root,
        &["omi", "now", "update", "--task", "Something"],
    );
    let folder = place.0.path().join(".openclaw/omi/projects");
    let project = std::fs::read_dir(folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    assert!(project.join("NOW.md").is_file() && project.join(".now.hash").is_file());
    let checked = good_in(&place, &root, &["call", "integrity_check", "--json", "{}"]);
    assert!(
        checked.contains("\"now_md\": true") || checked.contains("\"now_md\":true"),
        "{checked}"
    );
    std::fs::write(project.join("NOW.md"), "# NOW\n\nnot ours\n").unwrap();
    let checked = good_in(&place, &root, &["call", "integrity_check", "--json", "{}"]);
    assert!(
        checked.contains("\"now_md\": false") || checked.contains("\"now_md\":false"),
        "{checked}"
    );
    let mut off = place.command(&["omi", "now", "show"]);
    off.current_dir(&root).env("KENNING_PROJECTS", "off");
    let (_, out, _) = finish(off, "");
    assert!(out.contains("Nothing special"), "{out}");
}

#[test]
fn over_http_a_client_names_its_project() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let shop = "Kenning-Project: https://github.com/acme/shop\r\n";
    let stored = json!({ "content": "The shop closes at noon", "memory_type": "fact" }).to_string();
    assert_eq!(server.post("/tools/memory_store", shop, &stored).0, 200);
    let query = json!({ "query": "when does it close?", "min_relevance": 0.0 }).to_string();
    let recalled = |headers: &str| server.post("/tools/memory_recall", headers, &query);
    assert!(recalled(shop).1.contains("noon"));
    for other in ["", "Kenning-Project: git@github.com:acme/bank\r\n"] {
        assert!(!recalled(other).1.contains("noon"), "{other}");
    }
    let (status, body) = recalled("Kenning-Project: shop\r\n");
    assert_eq!(status, 422, "{body}");
    assert!(body.contains("Kenning-Project"), "{body}");
}
