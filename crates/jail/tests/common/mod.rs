//! Programs in the jail, as tests want them.

#![allow(dead_code, reason = "each test binary uses a part")]

use kenning_jail::{Launcher, Spec};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

/// Where the launchers are when the test runs as a user who cannot see where they were built.
const ELSEWHERE: &str = "JAIL_TEST_LAUNCHERS";

pub(crate) fn launcher() -> Launcher {
    found("launcher", env!("CARGO_BIN_EXE_jail-launcher"))
}

/// One that uses of the kernel what the oldest accepted kernel has.
pub(crate) fn old_launcher() -> Launcher {
    found("launcher-old", env!("CARGO_BIN_EXE_jail-launcher-old"))
}

fn found(name: &str, built: &str) -> Launcher {
    let elsewhere = std::env::var_os(ELSEWHERE).map(|it| PathBuf::from(it).join(name));
    Launcher {
        program: elsewhere.unwrap_or_else(|| built.into()),
    }
}

pub(crate) fn shell(script: &str) -> Spec {
    program("/bin/sh", &["-c", script])
}

pub(crate) fn python(script: &str) -> Spec {
    program("/usr/bin/python3", &["-I", "-S", "-c", script])
}

/// A longer script with arguments.
pub(crate) fn python_file(script: &str, args: &[&str]) -> Spec {
    let mut spec = python(script);
    spec.args.extend(args.iter().map(Into::into));
    spec
}

pub(crate) fn program(path: &str, args: &[&str]) -> Spec {
    let mut spec = Spec::new(path);
    spec.args = args.iter().map(Into::into).collect();
    spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    spec.allow_system();
    spec
}

/// Command lines of processes that have this in their environment. The dead have none.
pub(crate) fn left_behind(token: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let text = String::from_utf8_lossy(&environment);
        if text.contains(token) {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(format!("{:.80}", String::from_utf8_lossy(&line)));
        }
    }
    found
}

/// Runs a test of the same binary as somebody else, if this is root. Everybody else is an ordinary user
/// already, and the test itself has said what there is to say.
pub(crate) fn as_ordinary_user(user: u32, test: &str) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let copies = tempfile::tempdir().unwrap();
    let everybody = fs::Permissions::from_mode(0o755);
    fs::set_permissions(copies.path(), everybody).unwrap();
    let copy = |from: PathBuf, name: &str| {
        let to = copies.path().join(name);
        fs::copy(from, &to).unwrap();
        to
    };
    let tests = copy(std::env::current_exe().unwrap(), "tests");
    copy(launcher().program, "launcher");
    copy(old_launcher().program, "launcher-old");
    let output = Command::new("setpriv")
        .args([format!("--reuid={user}"), format!("--regid={user}")])
        .arg("--clear-groups")
        .arg(tests)
        .args(["--exact", test, "--nocapture"])
        .env(ELSEWHERE, copies.path())
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success(), "\n{errors}");
    assert!(said.contains("1 passed"), "`{test}` is no test");
}
