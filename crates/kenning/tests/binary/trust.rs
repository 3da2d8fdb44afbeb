//! What an operator relies on: checkpoints of every space, keys, modes, and restores that leave nothing
//! behind.

use crate::Place;
use kenning_core::Hash;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

pub(crate) fn store(place: &Place, space: &str, content: &str) {
    place.good(&[
        "--space",
        space,
        "omi",
        "memory_store",
        "--content",
        content,
    ]);
}

/// Puts the store of one directory in the place of another's.
fn put_store(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["kenning.db", "kenning.db-wal", "kenning.db-shm"] {
        drop(fs::remove_file(to.join(name)));
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

#[test]
fn checkpoints_of_all_spaces_show_which_of_them_was_rolled_back_or_removed() {
    let place = Place::new();
    let (data, yesterday) = (
        place.0.path().join("data"),
        place.0.path().join("yesterday"),
    );
    store(&place, "default", "stays");
    place.good(&["token", "create"]);
    put_store(&data, &yesterday);
    store(&place, "other", "comes and goes");
    let tokens = place.good(&["token", "list"]);
    let id = tokens.split_whitespace().next().unwrap();
    place.good(&["token", "revoke", id]);
    let signed = place.good(&["audit", "checkpoint", "--all-spaces"]);
    assert_eq!(signed.lines().count(), 3, "{signed}");
    fs::write(place.0.path().join("kept.jsonl"), &signed).unwrap();
    store(&place, "default", "goes on");
    let verify = ["audit", "verify", "--all-spaces", "--since", "kept.jsonl"];
    let told = place.good(&verify);
    assert_eq!(told.matches("clean: ").count(), 3, "{told}");
    // One space of the file is enough, and one that is not in it is said.
    place.good(&["audit", "verify", "--since", "kept.jsonl"]);
    let (code, err) = place.bad(&[
        "--space",
        "nobody",
        "audit",
        "verify",
        "--since",
        "kept.jsonl",
    ]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("no checkpoint of the space `nobody`"), "{err}");
    store(&place, "third", "made since");
    assert!(place.good(&verify).contains("no checkpoint of this space"));

    put_store(&yesterday, &data);
    let told = place.run(&verify);
    assert_eq!(told.status.code(), Some(9));
    let told = String::from_utf8(told.stdout).unwrap();
    let of = |space: &str| {
        let begin = format!("space {space}:");
        let part = told.split("\nspace ").find(|it| {
            it.starts_with(begin.trim_start_matches("space ")) || it.starts_with(&begin)
        });
        part.unwrap_or_else(|| panic!("{space}: {told}")).to_owned()
    };
    assert!(of("_system").contains("rolled back"), "{told}");
    assert!(of("other").contains("it was removed"), "{told}");
    // Its log is the same, but the store is from before its checkpoint.
    assert!(of("default").contains("is not in the store"), "{told}");
}

#[test]
fn an_empty_store_is_not_called_clean() {
    let place = Place::new();
    store(&place, "default", "gone soon");
    for name in ["kenning.db", "kenning.db-wal", "kenning.db-shm"] {
        drop(fs::remove_file(place.0.path().join("data").join(name)));
    }
    let told = place.good(&["audit", "verify"]);
    assert!(told.contains("empty: there are no events"), "{told}");
    assert!(!told.contains("clean"), "{told}");
}

/// A key that nobody confirmed, and what `revoke` makes of it.
#[test]
fn a_revoked_key_is_no_fault_for_what_it_signed_before() {
    let place = Place::new();
    let key = place.0.path().join("data/node.key");
    store(&place, "default", "by the first");
    let first = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    store(&place, "default", "by the second");
    fs::write(&key, first).unwrap();
    let verify = |code: i32| {
        let output = place.run(&["audit", "verify"]);
        assert_eq!(output.status.code(), Some(code));
        String::from_utf8(output.stdout).unwrap()
    };
    let told = verify(9);
    let did = told.split("authors revoke ").nth(1).unwrap();
    let did = did.trim_end().split(['`', '\n']).next().unwrap().to_owned();
    let doctor = place.good(&["doctor"]);
    assert!(doctor.contains("warning: space default"), "{doctor}");
    assert!(doctor.contains(&format!("authors add {did}")), "{doctor}");
    place.good(&["audit", "authors", "revoke", &did]);
    let told = verify(0);
    assert!(told.contains("revoked by event"), "{told}");
    assert!(!told.contains("authors add"), "{told}");
    assert!(place.good(&["doctor"]).contains("all is well"));
}

const PASSAGES: &str = "\"table\":\"passages\"";

/// A backup whose bytes are sound and whose rows are not what its log says.
fn forged(whole: &str) -> String {
    forged_at(whole, whole.find(PASSAGES).unwrap())
}

/// The same, but only the last space that has passages is damaged.
pub(crate) fn forged_last(whole: &str) -> String {
    forged_at(whole, whole.rfind(PASSAGES).unwrap())
}

fn forged_at(whole: &str, at: usize) -> String {
    let begin = whole[..at].rfind('\n').unwrap() + 1;
    let end = begin + whole[begin..].find('\n').unwrap();
    let mut row: Value = serde_json::from_str(&whole[begin..end]).unwrap();
    row["text"] = "somebody else's".into();
    let body = format!("{}{row}{}", &whole[..begin], &whole[end..]);
    let last = body.trim_end().rfind('\n').unwrap() + 1;
    let mut end: Value = serde_json::from_str(&body[last..]).unwrap();
    end["hash"] = Hash::of(&body.as_bytes()[..last]).to_string().into();
    format!("{}{end}\n", &body[..last])
}

#[test]
fn a_restore_that_fails_leaves_nothing_and_can_be_tried_again() {
    let place = Place::new();
    store(&place, "default", "worth keeping");
    store(&place, "other", "this too");
    place.good(&["backup", "whole.jsonl"]);
    let root = place.0.path();
    let whole = fs::read_to_string(root.join("whole.jsonl")).unwrap();
    fs::write(root.join("forged.jsonl"), forged(&whole)).unwrap();
    fs::write(root.join("cut.jsonl"), &whole[..whole.len() / 2]).unwrap();
    for name in ["forged.jsonl", "cut.jsonl"] {
        let (code, err) = place.bad(&["--data", "new/place", "restore", name]);
        assert_eq!(code, 9, "{err}");
        assert!(!root.join("new").exists(), "{name}: {err}");
    }
    // What was there before stays.
    fs::create_dir_all(root.join("half")).unwrap();
    fs::write(root.join("half/mine.txt"), "mine").unwrap();
    place.bad(&["--data", "half", "restore", "forged.jsonl"]);
    let names: Vec<_> = fs::read_dir(root.join("half")).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    place.good(&["--data", "half", "restore", "whole.jsonl"]);
    place.good(&["--data", "new/place", "restore", "whole.jsonl"]);
    // A store that is there is never removed.
    let (code, err) = place.bad(&["--data", "half", "restore", "whole.jsonl"]);
    assert_eq!(code, 4, "{err}");
    assert!(
        place
            .good(&["--data", "half", "audit", "verify"])
            .contains("clean: ")
    );
}

#[test]
fn a_backup_replaces_no_file_unasked_and_counts_what_it_wrote() {
    let place = Place::new();
    let node = |n: u8| {
        let id = format!("018bcfe5-6800-7000-8000-00000000000{n}");
        format!("{{\"node\":{{\"id\":\"{id}\",\"kind\":\"document\",\"key\":\"k{n}\"}}}}\n")
    };
    let edge = "{\"edge\":{\"src\":\"018bcfe5-6800-7000-8000-000000000001\",\"rel\":\"r\",\"dst\":\"018bcfe5-6800-7000-8000-000000000002\"}}\n";
    let root = place.0.path();
    fs::write(
        root.join("in.jsonl"),
        format!("{}{}{edge}", node(1), node(2)),
    )
    .unwrap();
    place.good(&["import", "in.jsonl"]);
    let done = place.good(&["--json", "backup", "out.jsonl"]);
    let done: Value = serde_json::from_str(&done).unwrap();
    assert_eq!(done["edges"], 1, "{done}");
    for command in ["backup", "export"] {
        let (code, err) = place.bad(&[command, "out.jsonl"]);
        assert_eq!(code, 4, "{err}");
        assert!(err.contains("`out.jsonl` exists"), "{err}");
        assert!(err.contains("--force"), "{err}");
    }
    place.good(&["backup", "out.jsonl", "--force"]);
    for (line, said) in [
        (
            "\"created_ms\":9223372036854775807",
            "`created_ms` is 9223372036854775807",
        ),
        (
            "\"created_ms\":4102444800000",
            "`created_ms` is 4102444800000",
        ),
        ("\"created_ms\":-1", "`created_ms` is -1"),
    ] {
        let bad = format!(
            "{}{{\"node\":{{\"kind\":\"document\",\"key\":\"x\",{line}}}}}\n",
            node(1)
        );
        fs::write(root.join("bad.jsonl"), bad).unwrap();
        let (code, err) = place.bad(&["import", "bad.jsonl"]);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("line 2") && err.contains(said), "{err}");
    }
}

/// Whatever the umask says, what lies in the data directory is the owner's.
#[test]
fn an_open_umask_opens_nothing_of_ours() {
    let place = Place::new();
    let omi = place.0.path().join(".openclaw/omi");
    let run = |arguments: &[&str]| {
        let ours = place.command(arguments);
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", "umask 0; exec \"$@\"", "sh"]);
        shell.arg(ours.get_program()).args(ours.get_args());
        shell.env_clear().current_dir(place.0.path());
        shell.envs(ours.get_envs().filter_map(|it| Some((it.0, it.1?))));
        let output = shell.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {err}");
    };
    run(&["omi", "memory_store", "--content", "private"]);
    run(&[
        "koi",
        "vault_write_note",
        "--path",
        "a.md",
        "--content",
        "# A",
    ]);
    run(&["kg", "graph_generate", "--docs-path", "vault"]);
    run(&["token", "create"]);
    run(&["omi", "now_update", "--current-task", "look"]);
    run(&["omi", "backup", "create"]);
    run(&["reindex"]);
    let mut open = Vec::new();
    let mut look = vec![place.0.path().join("data"), omi.join("backups")];
    look.push(omi.join(".moltvault_last_backup"));
    while let Some(path) = look.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.permissions().mode() & 0o077 != 0 {
            open.push(format!(
                "{:o} {}",
                metadata.permissions().mode(),
                path.display()
            ));
        }
        if metadata.is_dir() {
            look.extend(fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()));
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn the_help_says_how_long_a_token_must_be() {
    let place = Place::new();
    assert!(
        place
            .good(&["serve", "--help"])
            .contains("at least 16 characters")
    );
}
