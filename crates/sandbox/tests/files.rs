//! What a tool can do with files: nothing, read in one directory, or write there up to a quota.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use common::{Call, runtime};
use kenning_sandbox::{Failure, FsAccess, Quota, Runtime};
use kenning_testing_wasm::probes;
use kenning_vault::Dir;

struct Fixture {
    home: tempfile::TempDir,
    runtime: Runtime,
    probe: Vec<u8>,
}

const NO_ENTRY: &str = "no-entry";
const NOT_PERMITTED: &str = "not-permitted";
const NO_SPACE: &str = "insufficient-space";

fn fixture() -> Fixture {
    let home = tempfile::tempdir().unwrap();
    let dir = Dir::create(&home.path().join("box")).unwrap();
    dir.write("note.txt", b"kept").unwrap();
    let outside = Dir::open(home.path()).unwrap();
    outside.write("secret.txt", b"secret").unwrap();
    std::os::unix::fs::symlink("../secret.txt", dir.path().join("out")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("passwd")).unwrap();
    std::os::unix::fs::symlink("note.txt", dir.path().join("inside")).unwrap();
    Fixture {
        home,
        runtime: runtime(),
        probe: probes::files().unwrap(),
    }
}

impl Fixture {
    fn dir(&self) -> Dir {
        Dir::open(&self.home.path().join("box")).unwrap()
    }

    fn sandbox(&self, quota_bytes: u64, quota_files: u64) -> FsAccess {
        FsAccess::Sandbox {
            dir: self.dir(),
            quota: Quota {
                bytes: quota_bytes,
                files: quota_files,
            },
        }
    }

    fn try_(&self, access: &FsAccess, input: &str) -> Result<String, String> {
        let mut call = Call::new(input);
        call.limits.max_fuel = 10_000_000;
        call.capabilities.fs = access.clone();
        call.run(&self.runtime, &self.probe)
            .result
            .map_err(|failure| match failure {
                Failure::Returned(text) => match text.as_bytes() {
                    [code] => error(code - b'0').to_owned(),
                    _ => text,
                },
                other => other.to_string(),
            })
    }
}

/// The names of the errors that are expected here.
fn error(code: u8) -> &'static str {
    match code {
        7 => "exist",
        14 => "is-directory",
        20 => NO_ENTRY,
        23 => NO_SPACE,
        31 => NOT_PERMITTED,
        33 => "read-only",
        _ => "another",
    }
}

fn check(found: Result<String, String>, expected: Result<&str, &str>, what: &str) {
    assert_eq!(found.as_deref().map_err(String::as_str), expected, "{what}");
}

#[test]
fn without_a_directory_there_are_no_files() {
    let fixture = fixture();
    for input in ["r/etc/passwd", "rnote.txt", "wx"] {
        check(fixture.try_(&FsAccess::None, input), Ok("none"), input);
    }
}

#[test]
fn read_only_reads_beneath_the_directory_and_changes_nothing() {
    let fixture = fixture();
    let access = FsAccess::ReadOnly(fixture.dir());
    for (input, expected) in [
        ("rnote.txt", Ok("kept")),
        ("rinside", Ok("kept")),
        ("rabsent", Err(NO_ENTRY)),
        ("r../secret.txt", Err(NOT_PERMITTED)),
        ("rout", Err(NOT_PERMITTED)),
        ("rpasswd", Err(NOT_PERMITTED)),
        ("r/etc/passwd", Err(NOT_PERMITTED)),
        ("wnew.txt", Err(NOT_PERMITTED)),
        ("wnote.txt", Err(NOT_PERMITTED)),
        ("mdir", Err(NOT_PERMITTED)),
        ("unote.txt", Err(NOT_PERMITTED)),
        ("tnote.txt", Err(NOT_PERMITTED)),
        ("anote.txt", Err(NOT_PERMITTED)),
    ] {
        check(fixture.try_(&access, input), expected, input);
    }
    assert_eq!(fixture.dir().read("note.txt", 9).unwrap(), b"kept");
    assert!(!fixture.dir().exists("new.txt").unwrap());
}

#[test]
fn a_sandbox_reads_and_writes_beneath_the_directory_and_nowhere_else() {
    let fixture = fixture();
    let access = fixture.sandbox(1 << 20, 100);
    for (input, expected) in [
        ("wnew.txt", Ok("")),
        ("rnew.txt", Ok("new.txt")),
        ("anew.txt", Ok("")),
        ("rnew.txt", Ok("new.txtnew.txt")),
        ("mdir", Ok("")),
        ("wdir/x", Ok("")),
        ("rdir/../new.txt", Ok("new.txtnew.txt")),
        ("unew.txt", Ok("")),
        ("rnew.txt", Err(NO_ENTRY)),
        ("w../escape", Err(NOT_PERMITTED)),
        ("w/tmp/escape", Err(NOT_PERMITTED)),
        ("wout", Err(NOT_PERMITTED)),
        ("wpasswd", Err(NOT_PERMITTED)),
        ("wdir/../../escape", Err(NOT_PERMITTED)),
        ("m../escape", Err(NOT_PERMITTED)),
        ("u../secret.txt", Err(NOT_PERMITTED)),
        ("llink", Err(NOT_PERMITTED)),
        ("hnote.txt", Err(NOT_PERMITTED)),
    ] {
        check(fixture.try_(&access, input), expected, input);
    }
    let outside = Dir::open(fixture.home.path()).unwrap();
    assert_eq!(outside.read("secret.txt", 9).unwrap(), b"secret");
    assert!(!outside.exists("escape").unwrap());
}

#[test]
fn a_full_directory_takes_no_more() {
    let fixture = fixture();
    let access = fixture.sandbox(1_500_000, 20);
    for (input, expected) in [
        ("bone", Ok("")),
        ("btwo", Err(NO_SPACE)),
        ("wsmall", Ok("")),
        ("thuge", Err(NO_SPACE)),
        // What is overwritten takes no more room.
        ("bone", Ok("")),
        ("bone", Ok("")),
        // A C library makes "I/O error" of it, so the answer says why.
        (
            "sstream",
            Err("stream (no space left: the tool's directory is full)"),
        ),
        // And with nothing left there is no stream to begin with.
        ("aother", Err(NO_SPACE)),
        ("uother", Ok("")),
        // What is deleted makes room.
        ("uone", Ok("")),
        ("ustream", Ok("")),
        ("btwo", Ok("")),
        ("fmany", Err(NO_SPACE)),
    ] {
        check(fixture.try_(&access, input), expected, input);
        let (files, bytes) = fixture.dir().usage(1000).unwrap();
        assert!(
            files <= 20 && bytes <= 1_500_000,
            "{input}: {files} files, {bytes} bytes"
        );
    }
}

#[test]
fn a_tool_that_gives_up_because_its_directory_is_full_says_so() {
    let fixture = fixture();
    let found = fixture.try_(&fixture.sandbox(1_000_000, 20), "pbig");
    let expected = "quota exceeded: the tool's directory is full";
    check(found, Err(expected), "pbig");
    check(
        fixture.try_(&fixture.sandbox(2_000_000, 20), "pbig"),
        Ok(""),
        "pbig",
    );
}

#[test]
fn a_quota_holds_for_all_calls_at_once() {
    let fixture = fixture();
    let access = fixture.sandbox(2_500_000, 100);
    let names: Vec<String> = (0..6).map(|it| format!("bfile{it}")).collect();
    let written = std::thread::scope(|scope| {
        let write = |name: &String| fixture.try_(&access, name).is_ok();
        let threads: Vec<_> = names
            .iter()
            .map(|name| scope.spawn(move || write(name)))
            .collect();
        threads
            .into_iter()
            .map(|it| it.join().unwrap())
            .filter(|it| *it)
            .count()
    });
    assert_eq!(written, 2);
    assert!(fixture.dir().usage(1000).unwrap().1 <= 2_500_000);
}

#[test]
fn what_was_written_is_counted() {
    let fixture = fixture();
    let mut call = Call::new("bbig");
    call.capabilities.fs = fixture.sandbox(10_000_000, 100);
    let outcome = call.run(&fixture.runtime, &fixture.probe);
    assert_eq!(
        outcome.usage.bytes_written, 1_048_576,
        "{:?}",
        outcome.result
    );
}
