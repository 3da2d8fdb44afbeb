//! Small things that people type every day, and what they read when one of them is not quite right.

use crate::Place;
use crate::omi::finish;
use kenning_testing_wasm::probes;
use std::fs;
use std::process::{Command, Stdio};

fn run(command: Command) -> (i32, String, String) {
    finish(command, "")
}

#[test]
fn a_daily_log_is_shown_by_its_date_and_memories_that_are_there_beside_one_that_is_not() {
    let place = Place::new();
    let omi = |arguments: &[&str]| run(place.omi(arguments));
    omi(&["init"]);
    omi(&["daily", "append", "the mill was repaired"]);
    let (_, listed, _) = omi(&["daily", "list"]);
    let date = listed.trim().trim_end_matches(".md");
    let date = date.rsplit('/').next().unwrap();
    let (code, shown, err) = omi(&["daily", "show", date]);
    assert!(
        code == 0 && shown.contains("the mill was repaired"),
        "{shown}{err}"
    );
    let (code, _, err) = omi(&["daily", "show", "yesterday"]);
    assert!(
        code == 2 && err.contains("`<DATE>`: `yesterday` is not a date"),
        "{err}"
    );
    let (code, _, err) = omi(&["daily", "show", date, "--days-ago", "1"]);
    assert!(code == 2 && err.contains("cannot be used with"), "{err}");

    let (_, first, _) = omi(&["-q", "store", "The mill grinds at night."]);
    let first = first.trim().to_owned();
    omi(&["store", "The mill grinds at night"]);
    let (code, shown, err) = omi(&["get", &first, "nowhere"]);
    assert_eq!(code, 3, "{err}");
    assert!(
        shown.contains("The mill grinds at night.") && err.contains("no memory `nowhere`"),
        "{err}"
    );
    let (_, found, _) = omi(&["recall", "when does the mill grind"]);
    assert!(found.contains("(the same words)"), "{found}");

    let (code, _, err) = omi(&["belief", "update", "b", "e"]);
    assert!(
        code == 2 && err.contains("<--supports|--contradicts>"),
        "{err}"
    );
}

#[test]
fn the_doctor_tells_of_a_file_for_which_the_audit_fails() {
    let place = Place::new();
    let omi = |arguments: &[&str]| run(place.omi(arguments));
    omi(&["init"]);
    omi(&["now", "update", "--task", "mend the mill"]);
    assert!(place.good(&["doctor"]).contains("all is well"));
    let now = place.0.path().join(".openclaw/omi/NOW.md");
    let text = fs::read_to_string(&now).unwrap();
    fs::write(&now, text.replace("mend the mill", "sell the mill")).unwrap();
    let (code, said, _) = run(place.command(&["doctor"]));
    assert!(code == 9 && said.contains("NOW.md"), "{code}: {said}");
    let (code, _, _) = omi(&["audit"]);
    assert_eq!(code, 9);
}

#[test]
fn items_on_the_command_line_say_what_went_wrong() {
    let place = Place::new();
    let tool = place.0.path().join(".ai/tools/demo/fails");
    fs::create_dir_all(&tool).unwrap();
    let manifest = "tool_id: fails\ntool_type: script\nexecutor_id: bash_runtime\nversion: 1.0.0\ncategory: demo\ndescription: Fails\nmanifest:\n  entrypoint: main.sh\n  language: bash\n";
    fs::write(tool.join("manifest.yaml"), manifest).unwrap();
    fs::write(
        tool.join("main.sh"),
        "echo the wheel is stuck >&2\nexit 3\n",
    )
    .unwrap();
    place.good(&["kiwi", "sign", "tool", "fails"]);
    let (code, _, err) = run(place.command(&["kiwi", "run", "tool", "fails"]));
    assert!(code != 0 && err.contains("the wheel is stuck"), "{err}");

    // The project of the command line is the one that is loaded into.
    let directives = place.0.path().join(".ai/directives/demo");
    fs::create_dir_all(&directives).unwrap();
    let directive = "---\nname: hello\nversion: 1.0.0\ncategory: demo\ndescription: Greets\n---\n\nSay hello.\n";
    fs::write(directives.join("hello.md"), directive).unwrap();
    place.good(&["kiwi", "sign", "directive", "hello"]);
    place.good(&[
        "kiwi",
        "publish",
        "directive",
        "hello",
        "--changelog",
        "first",
    ]);
    let other = place.0.path().join("other");
    fs::create_dir_all(other.join(".ai")).unwrap();
    let other = other.to_str().unwrap();
    let load = [
        "kiwi",
        "load",
        "--item-type",
        "directive",
        "--item-id",
        "hello",
    ];
    place.good(
        &[
            &["--project", other],
            &load[..],
            &["--destination", "project"],
        ]
        .concat(),
    );
    assert!(
        place
            .0
            .path()
            .join("other/.ai/directives/demo/hello.md")
            .exists()
    );

    // One of many that cannot be signed is no success.
    fs::write(directives.join("bad.md"), "---\nname: bad\n---\n").unwrap();
    let (code, _, err) = run(place.command(&["kiwi", "sign", "*", "--yes"]));
    assert!(
        code == 2 && err.contains("invalid and were not signed"),
        "{code}: {err}"
    );
}

#[test]
fn an_argument_that_a_tool_does_not_have_is_told() {
    let place = Place::new();
    place.package("echo", &probes::echo().unwrap(), "");
    place.kami_good(&["install", "echo"]);
    let exec = |input: &str| {
        let mut command = place.kami(&["exec", "dev.example.echo", "--input", input]);
        command.stdin(Stdio::null());
        run(command)
    };
    let (code, _, err) = exec(r#"{"mesage":"Ada"}"#);
    assert!(
        code == 0 && err.contains("`dev.example.echo` has no argument `mesage`"),
        "{code}: {err}"
    );
    let (_, _, err) = exec(r#"{"message":"Ada"}"#);
    assert_eq!(err, "");
}

#[test]
fn what_goes_wrong_on_the_command_line_is_told_in_flags_and_commands() {
    let place = Place::new();
    let project = place.0.path().join("project");
    fs::create_dir(&project).unwrap();
    let project = project.to_str().unwrap();
    run(place.omi(&["init"]));
    for (arguments, expected) in [
        (
            &["kg", "generate", "--docs-path", "../.."][..],
            "`--docs-path`: `../..` is outside the project",
        ),
        (
            &["kg", "query", "--query", "x"],
            "run `kenning kg generate` first",
        ),
        (
            &["kiwi", "run", "directive", "nope"],
            "Use `kenning kiwi load` to download from registry first",
        ),
        (
            &["kiwi", "load", "tool", "nope"],
            "`kenning kiwi search --item-type tool --query nope --source registry` finds what is like it",
        ),
        (&["kiwi", "load", "nope"], "`--item-id` is missing"),
        (
            &["kiwi", "load", "nope"],
            "usage: `kenning kiwi load <ITEM_TYPE> <ITEM_ID>`",
        ),
        (
            &["kiwi", "search"],
            "<ITEM_TYPE> is one of directive, tool, knowledge, any",
        ),
        (
            &["kiwi", "load", "--item-type", "tool", "nope", "more"],
            "unexpected value `more`",
        ),
        (
            &[
                "omi",
                "memory_recall",
                "--query",
                "x",
                "--memory-type",
                "rumor",
            ],
            "Invalid --memory-type: rumor",
        ),
        (
            &["omi", "recall", "x", "--cursor", "y"],
            "`--cursor`: `y` is not a cursor",
        ),
    ] {
        let mut all = vec!["--project", project];
        all.extend(arguments);
        let (_, _, err) = run(place.command(&all));
        assert!(err.contains(expected), "{arguments:?}: {err}");
        // The same for programs.
        all.push("--json");
        let (_, _, err) = run(place.command(&all));
        let told: serde_json::Value = serde_json::from_str(err.trim()).unwrap();
        let (message, hint) = (&told["error"]["message"], &told["error"]["hint"]);
        let told = format!(
            "{} {}",
            message.as_str().unwrap(),
            hint.as_str().unwrap_or("")
        );
        assert!(told.contains(expected), "{arguments:?}: {told}");
    }
    // Whoever names a tool and gives JSON reads of its fields.
    let arguments = ["call", "kg_graph_generate", "--json", "{\"docsPath\": 5}"];
    let (_, _, err) = run(place.command(&arguments));
    assert!(
        err.contains("docsPath") && !err.contains("--docs-path"),
        "{err}"
    );
}

#[test]
fn a_list_that_is_cut_by_its_limit_says_how_to_go_on() {
    let place = Place::new();
    let lines: String = (0..7)
        .map(|it| format!("{{\"content\": \"the mill grinds grain on day {it}\"}}\n"))
        .collect();
    let (code, _, err) = finish(place.omi(&["-q", "store", "--batch", "-"]), &lines);
    assert_eq!(code, 0, "{err}");
    let recall = |cursor: &str| {
        let mut all = vec![
            "--json",
            "recall",
            "which mill grinds grain",
            "--limit",
            "3",
        ];
        all.extend(["--min-relevance", "0", "--cursor", cursor]);
        run(place.omi(&all))
    };
    let mut seen = Vec::new();
    let mut cursor = "0".to_owned();
    for _ in 0..5 {
        let (code, out, err) = recall(&cursor);
        assert_eq!(code, 0, "{err}");
        let found: serde_json::Value = serde_json::from_str(&out).unwrap();
        let ids = found.as_array().unwrap().iter();
        seen.extend(ids.map(|it| it["memory_id"].as_str().unwrap().to_owned()));
        match err.split_once("`--cursor ") {
            Some((_, rest)) => rest.split('`').next().unwrap().clone_into(&mut cursor),
            None => break,
        }
    }
    let unique: std::collections::BTreeSet<&String> = seen.iter().collect();
    assert_eq!((seen.len(), unique.len()), (7, 7), "{seen:?}");
    let (_, _, err) = run(place.omi(&["-q", "recall", "grain", "--limit", "3"]));
    assert!(!err.contains("more:"), "{err}");
    let (_, _, err) = run(place.omi(&[
        "memory_recall",
        "--query",
        "mill grain",
        "--limit",
        "2",
        "--min-relevance",
        "0",
    ]));
    assert!(
        err.contains("`--cursor answer:2` goes on from there"),
        "{err}"
    );
    let (_, shown, err) = run(place.omi(&["events", "list", "--limit", "2"]));
    assert!(err.contains("these are the latest 2"), "{err}");
    assert_eq!(shown.trim().lines().count(), 2, "{shown}");
    for name in ["Ann", "Bo", "Cy"] {
        let path = format!("People/{name}.md");
        let text = format!("---\ntype: Person\n---\n# {name} Miller\n");
        place.good(&["koi", "vault_write_note", &path, "--content", &text]);
    }
    let (_, shown, err) = run(place.command(&["koi", "entities", "--limit", "2"]));
    assert!(
        err.contains("`--offset 2` goes on from there"),
        "{shown}{err}"
    );
    let (_, _, err) = run(place.command(&["koi", "entities", "--limit", "2", "--offset", "2"]));
    assert!(!err.contains("more:"), "{err}");
}

#[test]
fn setup_tells_that_no_vault_is_named() {
    let place = Place::new();
    let mut bare = place.command(&["setup", "claude-code"]);
    bare.env_remove("VAULT_PATH");
    let (code, _, err) = run(bare);
    assert!(code == 0 && err.contains("no vault is named"), "{err}");
    let (_, _, err) = run(place.command(&["setup", "claude-code"]));
    assert!(!err.contains("no vault"), "{err}");
}
