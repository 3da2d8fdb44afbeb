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
        code == 2 && err.contains("`date`: `yesterday` is not a day"),
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
