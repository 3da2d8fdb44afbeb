//! A real program, watched.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and start the programs they watch"
)]

use kenning_testing_disk::{Fault, Kind, Leaves, Settings, Step, start};
use std::process::{Command, Stdio};

/// Runs a shell's commands in a fresh directory. What it did, and whether it succeeded.
fn run(script: &str, fault: Option<Fault>, leaves: Leaves) -> (Vec<Step>, bool) {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("cd \"$0\" || exit 1; {script}")])
        .arg(home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let settings = Settings {
        records: true,
        leaves,
        fault,
    };
    let (child, disk) = start(&mut command, home.path(), settings).unwrap();
    let done = child.wait_with_output().unwrap();
    (disk.take_steps(), done.status.success())
}

#[test]
fn what_a_program_does_is_written_down_in_order() {
    let script = "echo one > a && mkdir d && sync a && mv a d/b && sync d && echo said && rm d/b";
    let (steps, ok) = run(script, None, Leaves::Nothing);
    assert!(ok, "{steps:?}");
    let text = |it: &str| it.to_owned();
    let expected = [
        Step::Create(text("a")),
        Step::Write {
            path: text("a"),
            offset: 0,
            bytes: b"one\n".to_vec(),
        },
        Step::MakeDir(text("d")),
        Step::SyncFile(text("a")),
        Step::Rename {
            from: text("a"),
            to: text("d/b"),
        },
        Step::SyncDir(text("d")),
        Step::Said(b"said\n".to_vec()),
        Step::Remove(text("d/b")),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn the_nth_call_of_a_kind_fails_and_a_full_disk_stays_full() {
    let script = "cat x; sync . || exit 1; sync . || exit 1; sync .";
    let sync = |at| Some(Fault::broken(Kind::Sync, at));
    assert!(!run(script, sync(1), Leaves::Nothing).1);
    assert!(!run(script, sync(3), Leaves::Nothing).1);
    assert!(run(script, sync(4), Leaves::Nothing).1);
    let script = "mkdir a || mkdir b || mkdir c";
    assert!(!run(script, Some(Fault::full(1)), Leaves::Nothing).1);
    assert!(run(script, Some(Fault::full(2)), Leaves::Nothing).1);
    let read = Some(Fault::broken(Kind::Read, 1));
    assert!(!run("echo 1 > a; cat a", read, Leaves::Nothing).1);
}

#[test]
fn a_sync_that_is_left_out_claims_to_have_happened() {
    let script = "mkdir kenning.db && sync kenning.db && : > other && sync other";
    let n_syncs = |leaves| {
        let (steps, ok) = run(script, None, leaves);
        assert!(ok, "{steps:?}");
        let is_sync = |it: &&Step| matches!(it, Step::SyncFile(_) | Step::SyncDir(_));
        steps.iter().filter(is_sync).count()
    };
    assert_eq!(n_syncs(Leaves::Nothing), 2);
    assert_eq!(n_syncs(Leaves::Files("other")), 1);
    assert_eq!(n_syncs(Leaves::FilesBut("other")), 2);
    assert_eq!(n_syncs(Leaves::Directories), 1);
}
