//! A lock against another process, which then dies without a word.

#![expect(
    clippy::disallowed_methods,
    reason = "the test starts itself a second time, as the other process"
)]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use kenning_core::Code;
use kenning_vault::Dir;

const CHILD: &str = "KENNING_LOCK_TEST_DIR";

#[test]
fn a_lock_excludes_other_processes_and_dies_with_its_own() {
    if let Some(path) = std::env::var_os(CHILD) {
        let dir = Dir::open(&PathBuf::from(path)).unwrap();
        let _lock = dir.lock("data.lock", Duration::ZERO).unwrap();
        println!("\nheld");
        // Until the parent ends this process, or itself.
        std::io::stdin().lock().lines().for_each(drop);
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let dir = Dir::open(home.path()).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("a_lock_excludes_other_processes_and_dies_with_its_own")
        .env(CHILD, home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|it| it.unwrap() == "held"));

    let error = dir.lock("data.lock", Duration::ZERO).unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
    child.kill().unwrap();
    child.wait().unwrap();
    dir.lock("data.lock", Duration::ZERO).unwrap();
}
