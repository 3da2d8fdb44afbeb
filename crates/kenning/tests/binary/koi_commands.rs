//! `kenning koi …`: what is refused, what is said, and which settings count.

use crate::Place;
use serde_json::{Value, json};
use std::fs;

fn people(place: &Place) {
    let people = place.vault().join("People");
    fs::create_dir_all(&people).unwrap();
    for name in ["Bill Baue", "Maren Holm"] {
        fs::write(people.join(format!("{name}.md")), format!("# {name}\n")).unwrap();
    }
}

fn told(place: &Place, arguments: &[&str]) -> Value {
    serde_json::from_str(&place.good(arguments)).unwrap()
}

#[test]
fn koi_read_only_changes_nothing_and_still_looks() {
    let place = Place::new();
    people(&place);
    place.good(&["koi", "stats"]);
    let export = place.0.path().join("e.json");
    let entity = json!({ "uri": "orn:x:1", "name": "X", "type": "Person" });
    fs::write(&export, json!({ "entities": [entity] }).to_string()).unwrap();
    let export = export.to_str().unwrap();
    for words in [
        &["merge", "Bill Baue", "Maren Holm"][..],
        &["unmerge", "Bill Baue"],
        &["veto", "Bill", "Maren Holm"],
        &["import", export],
        &["forget", "import"],
        &["add_repo", "https://example.com/a/b"],
        &["remove_repo", "a/b", "--yes"],
        &["github_scan", "--action", "scan"],
        &[
            "monitor_url",
            "--action",
            "add",
            "--url",
            "https://example.com/",
        ],
        &[
            "monitor_url",
            "--action",
            " remove",
            "--url",
            "https://example.com/",
        ],
    ] {
        let (code, error) = place.bad(&[&["--read-only", "koi"], words].concat());
        assert_eq!(code, 5, "{words:?}: {error}");
        assert!(error.contains("--read-only"), "{words:?}: {error}");
    }
    let merged = told(&place, &["--json", "koi", "merged"]);
    assert_eq!(merged, json!({ "merged": [], "vetoes": [] }));
    for tool in ["github_scan", "monitor_url"] {
        for words in [&[tool][..], &[tool, "--action", "status"]] {
            let words = [&["--read-only", "--json", "koi"], words].concat();
            let status = told(&place, &words);
            assert!(status["running"].is_boolean(), "{words:?}: {status}");
        }
    }
}

#[test]
fn koi_commands_that_another_server_does_not_answer_say_so() {
    let place = Place::new();
    people(&place);
    let run = |endpoint: &str, arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env("KOI_API_ENDPOINT", endpoint);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), said)
    };
    let nobody = "http://127.0.0.1:9";
    for words in [
        &["koi", "merged"][..],
        &["koi", "entities"],
        &["koi", "stats"],
        &["koi", "merge", "Bill Baue", "Maren Holm"],
        &["koi", "unmerge", "Bill Baue"],
    ] {
        let (code, said) = run(nobody, words);
        assert_eq!(code, 0, "{words:?}: {said}");
        let n_told = said.matches("KOI_API_ENDPOINT is set").count();
        assert_eq!(n_told, 1, "{words:?}: {said}");
        assert!(said.starts_with("KOI_API_ENDPOINT is set"), "{said}");
        let (_, said) = run("", words);
        assert!(!said.contains("KOI_API_ENDPOINT"), "{words:?}: {said}");
    }
    // This one has a route.
    let (code, said) = run(nobody, &["koi", "add_repo", "https://example.com/a/b"]);
    assert_ne!(code, 0);
    assert!(
        said.contains("127.0.0.1:9, which KOI_API_ENDPOINT names, does not answer"),
        "{said}"
    );
    let (code, said) = run("http://ann:hunter2@127.0.0.1:9", &["koi", "stats"]);
    assert_ne!(code, 0);
    assert!(
        said.contains("a user name or a password") && !said.contains("hunter2"),
        "{said}"
    );
}

#[test]
fn koi_a_repository_is_registered_on_the_command_line() {
    let place = Place::new();
    let words = [
        "--json",
        "koi",
        "add_repo",
        "https://github.com/DarrenZal/Octo",
    ];
    let added = told(&place, &words);
    assert_eq!(
        (&added["status"], &added["repo_name"]),
        (&json!("added"), &json!("DarrenZal/Octo")),
        "{added}"
    );
    assert_eq!(told(&place, &words)["status"], "already_registered");
    let words = [
        "koi",
        "add_repo",
        "https://example.com/x.git",
        "--name",
        "a/b",
        "--branch",
        "dev",
    ];
    assert!(place.good(&words).contains("a/b: added"));
    let status = told(&place, &["--json", "koi", "github_scan"]);
    assert_eq!(status["active_repos"], 2, "{status}");
    let (code, error) = place.bad(&["koi", "add_repo", "ftp://example.com/x"]);
    assert_eq!(code, 2, "{error}");
}

#[test]
fn a_variable_that_is_empty_is_not_set() {
    let place = Place::new();
    for name in [
        "VAULT_PATH",
        "KENNING_DATA",
        "OMI_BASE_PATH",
        "KENNING_PROJECT",
        "KENNING_DATABASE_URL",
        "KENNING_DATABASE_CA",
        "KENNING_SPACE",
        "KENNING_TOOLSETS",
        "KOI_API_ENDPOINT",
    ] {
        let output = place.command(&["koi", "stats"]).env(name, "").output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
    }
    let output = place
        .command(&["koi", "vault_list_notes", "--folder", "."])
        .env("VAULT_PATH", "")
        .output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("VAULT_PATH environment variable must be set"),
        "{said}"
    );
}

#[test]
fn koi_a_repository_is_unregistered_on_the_command_line() {
    let place = Place::new();
    let url = "https://example.com/a/b";
    place.good(&["koi", "add_repo", url]);
    let (code, error) = place.bad(&["koi", "remove_repo", "a/b"]);
    assert_eq!(code, 5, "{error}");
    assert!(error.contains("--yes"), "{error}");
    let removed = told(&place, &["--json", "koi", "remove_repo", "a/b", "--yes"]);
    assert_eq!(
        (&removed["status"], &removed["repo_name"]),
        (&json!("removed"), &json!("a/b")),
        "{removed}"
    );
    place.good(&["koi", "add_repo", url]);
    let said = place.good(&["koi", "remove_repo", "a/b", "--keep-documents"]);
    assert!(said.contains("a/b is not scanned any more"), "{said}");
    let (code, error) = place.bad(&["koi", "remove_repo", "a/b", "--yes"]);
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("no repository `a/b`"), "{error}");
    let status = told(&place, &["--json", "koi", "github_scan"]);
    assert_eq!(
        (&status["active_repos"], &status["running"]),
        (&json!(0), &json!(false)),
        "{status}"
    );
}

#[test]
fn koi_merges_and_vetoes_are_told_by_names_and_uris() {
    let place = Place::new();
    people(&place);
    let said = place.good(&["koi", "merge", "Bill Baue", "Maren Holm"]);
    let bill = "\"Bill Baue\" (orn:personal-koi.entity:person-bill-baue-376ffc2e6245)";
    assert!(
        said.contains(&format!("{bill} is \"Maren Holm\" (orn:")),
        "{said}"
    );
    let listed = place.good(&["koi", "merged"]);
    let cells: Vec<&str> = listed.trim().split('\t').collect();
    assert_eq!(cells[3..], ["Bill Baue", "Maren Holm"], "{listed}");
    let merged = told(&place, &["--json", "koi", "merged"]);
    assert_eq!(merged["merged"][0]["into_name"], "Maren Holm", "{merged}");
    let said = place.good(&["koi", "unmerge", "Bill Baue"]);
    assert!(
        said.contains(&format!("{bill} is no longer \"Maren Holm\" (orn:")),
        "{said}"
    );
    let said = place.good(&["koi", "veto", "Billy", "Maren Holm"]);
    assert!(
        said.contains("\"billy\" does not mean \"Maren Holm\" (orn:"),
        "{said}"
    );
    let listed = place.good(&["koi", "merged"]);
    assert!(listed.trim().ends_with("billy\tMaren Holm"), "{listed}");
}

#[test]
fn koi_a_wrong_vault_path_is_told_and_doctor_finds_it() {
    let place = Place::new();
    let run = |words: &[&str]| {
        let output = place
            .command(words)
            .env("VAULT_PATH", place.0.path().join("no such vault"))
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let (code, answer, said) = run(&["koi", "resolve_entity", "--label", "Bill Baue"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        answer.contains("the vault that VAULT_PATH names cannot be opened"),
        "{answer}"
    );
    let (code, found, _) = run(&["doctor"]);
    assert_ne!(code, Some(0), "{found}");
    assert!(
        found.contains("fault: vault: the vault that VAULT_PATH names"),
        "{found}"
    );
}
