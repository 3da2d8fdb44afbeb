//! The server is real, keeps what was committed, and ends with the process that started it.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test of processes starts them, fails by panicking and says how long it took"
)]

use kenning_testing_postgres::{Server, Version, cache, own, shared};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn check(server: &Server) {
    assert_eq!(server.sql(&server.url(), "SELECT 1"), "1");
    let begin = Instant::now();
    let url = server.database();
    println!("a database in {} ms", begin.elapsed().as_millis());
    let distance = server.sql(&url, "SELECT '[1,2]'::vector <-> '[4,6]'::vector");
    assert_eq!(distance, "5");
}

#[test]
fn the_shared_server_answers_and_has_pgvector() {
    println!("version {}", shared().version());
    check(shared());
}

#[test]
fn version_16_answers_and_has_pgvector() {
    let server = own(Version::V16);
    assert!(server.version().starts_with("16."), "{}", server.version());
    check(&server);
}

#[test]
fn version_18_knows_upper_case_beyond_ascii_as_16_does() {
    for version in [Version::V16, Version::V18] {
        let server = own(version);
        let row = server.sql(&server.url(), "SELECT upper('é'), 'Z' < 'a', 'z' < 'é'");
        assert_eq!(row, "É|t|t", "{version:?}");
    }
}

#[test]
fn fresh_databases_share_nothing() {
    let (one, two) = (shared().database(), shared().database());
    assert_ne!(one, two);
    shared().sql(&one, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)");
    assert_eq!(shared().sql(&one, "SELECT n FROM t"), "1");
    assert!(shared().try_sql(&two, "SELECT n FROM t").is_err());
}

#[test]
fn a_server_that_is_stopped_at_once_keeps_what_was_committed() {
    let server = own(Version::V18);
    let url = server.database();
    server.sql(&url, "CREATE TABLE t (n int); INSERT INTO t VALUES (42)");
    assert_eq!(server.sql(&url, "SHOW fsync"), "on");
    server.stop_immediate();
    assert!(server.try_sql(&url, "SELECT 1").is_err());
    let begin = Instant::now();
    server.start_again();
    println!("started again in {} ms", begin.elapsed().as_millis());
    assert_eq!(server.sql(&url, "SELECT n FROM t"), "42");
}

#[test]
fn killed_backends_are_gone_and_others_are_not() {
    let (one, two) = (shared().database(), shared().database());
    thread::scope(|scope| {
        let [killed, spared] =
            [&one, &two].map(|url| scope.spawn(|| shared().try_sql(url, "SELECT pg_sleep(600)")));
        for url in [&one, &two] {
            let text = "SELECT count(*) FROM pg_stat_activity \
                        WHERE wait_event = 'PgSleep' AND datname = current_database()";
            until("it sleeps", || shared().sql(url, text) == "1");
        }
        assert_eq!(shared().kill_backends(&one), 1);
        assert!(killed.join().unwrap().is_err());
        assert!(!spared.is_finished());
        assert_eq!(shared().kill_backends(&two), 1);
        assert!(spared.join().unwrap().is_err());
    });
}

#[test]
fn a_wrong_password_is_refused() {
    // Not the shared one: a configured server may accept every user.
    let server = own(Version::V18);
    let url = server.url();
    let (user, rest) = url.split_once('@').unwrap();
    let wrong = format!("{user}x@{rest}");
    assert!(server.try_sql(&wrong, "SELECT 1").is_err());
}

#[test]
fn a_dropped_server_leaves_nothing() {
    let server = own(Version::V18);
    let data = server.sql(&server.url(), "SHOW data_directory");
    let url = server.url();
    drop(server);
    assert!(!Path::new(&data).parent().unwrap().exists());
    assert!(TcpStream::connect(address(&url)).is_err());
}

#[test]
fn a_server_dies_with_a_parent_that_is_killed() {
    let mut parent = Command::new(env!("CARGO_BIN_EXE_pg"))
        .args(["--version", "18"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(parent.stdout.take().unwrap())
        .read_line(&mut url)
        .unwrap();
    let url = url.trim_end();
    let data = shared().sql(url, "SHOW data_directory");
    let dir = Path::new(&data).parent().unwrap();
    assert!(dir.exists());

    let begin = Instant::now();
    // SIGKILL: the parent has no chance to tidy up.
    parent.kill().unwrap();
    parent.wait().unwrap();
    until("its directory is gone", || !dir.exists());
    println!("gone after {} ms", begin.elapsed().as_millis());
    assert!(TcpStream::connect(address(url)).is_err());
}

#[test]
fn a_parent_killed_while_its_server_starts_leaves_nothing() {
    // A directory of its own, so that what is left can be counted, and that `nobody` can enter.
    let temp = tempfile::tempdir().unwrap();
    fs::set_permissions(temp.path(), Permissions::from_mode(0o777)).unwrap();
    let mut parent = Command::new(env!("CARGO_BIN_EXE_pg"))
        .env("TMPDIR", temp.path())
        .env("KENNING_TEST_CACHE", cache())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let found = |name: &str| {
        fs::read_dir(temp.path())
            .unwrap()
            .any(|it| it.unwrap().path().join(name).exists())
    };
    until("the data directory is being made", || found("data"));
    parent.kill().unwrap();
    parent.wait().unwrap();
    until("its directory is gone", || !found("."));
}

fn address(url: &str) -> &str {
    let (_, rest) = url.split_once('@').unwrap();
    rest.split('/').next().unwrap()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "never: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
