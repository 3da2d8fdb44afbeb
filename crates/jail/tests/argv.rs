//! Arguments and environment reach the program as they are: the corpus `testing/corpora/argv.txt`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and look at the machine from outside the jail"
)]

mod common;

use common::{launcher, python};
use kenning_core::Code;
use kenning_jail::{Exit, Spec, run};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::process::Command;
use std::sync::Arc;

const CORPUS: &str = include_str!("../../../testing/corpora/argv.txt");
const AT_LEAST: usize = 190;
const SHOW: &str = "import os, sys\nfor a in sys.argv[1:]: print(os.fsencode(a).hex())";

fn cases() -> Vec<(bool, Vec<u8>)> {
    let lines = CORPUS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let cases = lines.map(|line| {
        let (expected, argument) = line.split_once('\t').unwrap();
        assert!(["plain", "invalid"].contains(&expected), "{line}");
        (expected == "plain", unescaped(argument))
    });
    cases.collect()
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend(before.bytes());
        let (kind, mut tail) = after.split_at(1);
        match kind {
            "\\" => bytes.push(b'\\'),
            "0" => bytes.push(0),
            "n" => bytes.push(b'\n'),
            "t" => bytes.push(b'\t'),
            "r" => bytes.push(b'\r'),
            "e" => {}
            "x" => {
                bytes.push(u8::from_str_radix(&tail[..2], 16).unwrap());
                tail = &tail[2..];
            }
            "*" => {
                let (count, repeated) = tail[1..].split_once(',').unwrap();
                // The last brace of the line ends it: a repeated text stands alone.
                let repeated = unescaped(repeated.strip_suffix('}').unwrap());
                bytes.extend(repeated.repeat(count.parse().unwrap()));
                tail = "";
            }
            other => panic!("`\\{other}` is no escape"),
        }
        rest = tail;
    }
    bytes.extend(rest.bytes());
    bytes
}

fn with(arguments: &[Vec<u8>]) -> Spec {
    let mut spec = python(SHOW);
    let arguments = arguments.iter().cloned().map(OsString::from_vec);
    spec.args.extend(arguments);
    spec
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}

#[test]
fn every_argument_arrives_as_one_plain_argument() {
    let cases = cases();
    println!("argv: {} cases", cases.len());
    assert!(
        cases.len() >= AT_LEAST,
        "the corpus has shrunk to {}",
        cases.len()
    );
    for (plain, argument) in &cases {
        let shown = String::from_utf8_lossy(argument);
        let ran = run(
            &launcher(),
            &with(std::slice::from_ref(argument)),
            &Arc::default(),
        );
        if *plain {
            let outcome = ran.unwrap();
            assert_eq!(outcome.exit, Exit::Exited(0), "{shown:.80}");
            let seen = String::from_utf8(outcome.stdout).unwrap();
            assert_eq!(seen, hex(argument) + "\n", "{shown:.80}");
        } else {
            let error = ran.unwrap_err();
            assert_eq!(error.code, Code::InvalidInput, "{shown:.80}");
        }
    }
}

#[test]
fn all_arguments_at_once_arrive_in_their_order() {
    let plain: Vec<Vec<u8>> = cases()
        .into_iter()
        .filter(|it| it.0)
        .map(|it| it.1)
        .collect();
    let outcome = run(&launcher(), &with(&plain), &Arc::default()).unwrap();
    let seen = String::from_utf8(outcome.stdout).unwrap();
    let expected: Vec<String> = plain.iter().map(|it| hex(it)).collect();
    assert_eq!(seen.lines().collect::<Vec<_>>(), expected);
}

/// Not a test of its own: the next one starts it with tricks in its environment.
#[test]
fn a_host_with_a_bad_environment() {
    if std::env::var_os("JAIL_TEST_TRICKS").is_none() {
        return;
    }
    // Without `-I`, so that Python would listen to its variables.
    let mut spec = python("");
    spec.args = vec![
        "-c".into(),
        "import os, sys; print(sorted(os.environb), sys.path, sys.flags)".into(),
    ];
    spec.env = vec![
        ("ONLY".into(), "this".into()),
        ("LC_ALL".into(), "C.UTF-8".into()),
    ];
    let outcome = run(&launcher(), &spec, &Arc::default()).unwrap();
    let seen = String::from_utf8(outcome.stdout).unwrap();
    assert_eq!(outcome.exit, Exit::Exited(0));
    assert!(seen.starts_with("[b'LC_ALL', b'ONLY']"), "{seen}");
    assert!(
        !seen.contains("tricks") && seen.contains("inspect=0"),
        "{seen}"
    );
    assert!(outcome.stderr.is_empty());
}

#[test]
fn tricks_in_the_environment_of_the_host_do_not_reach_the_program() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_host_with_a_bad_environment", "--nocapture"])
        .envs([
            ("JAIL_TEST_TRICKS", "1"),
            ("LD_PRELOAD", "/tricks/preload.so"),
            ("LD_LIBRARY_PATH", "/tricks"),
            ("LD_AUDIT", "/tricks/audit.so"),
            ("PYTHONPATH", "/tricks"),
            ("PYTHONHOME", "/tricks"),
            ("PYTHONSTARTUP", "/tricks/start.py"),
            ("PYTHONINSPECT", "1"),
            ("BASH_ENV", "/tricks/bash"),
            ("ENV", "/tricks/sh"),
            ("IFS", "/"),
            ("NODE_OPTIONS", "--require /tricks/x.js"),
            ("PERL5OPT", "-Mtricks"),
            ("GCONV_PATH", "/tricks"),
            ("GLIBC_TUNABLES", "glibc.malloc.check=3"),
            ("BASH_FUNC_id%%", "() { echo tricks; }"),
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{errors}"
    );
}
