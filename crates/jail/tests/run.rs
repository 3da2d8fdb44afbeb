//! What a run gives, how it ends, and when it is refused.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and look at the machine from outside the jail"
)]

mod common;

use common::{as_ordinary_user, launcher, left_behind, program, python, shell};
use kenning_core::Code;
use kenning_jail::{Exit, Net, Outcome, Spec, run, spawn};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn ran(spec: &Spec) -> Outcome {
    run(&launcher(), spec, &Arc::default()).unwrap()
}

fn said(spec: &Spec) -> String {
    let outcome = ran(spec);
    let errors = String::from_utf8_lossy(&outcome.stderr);
    assert_eq!(outcome.exit, Exit::Exited(0), "{errors}");
    String::from_utf8(outcome.stdout).unwrap()
}

/// A directory that everybody can read, as a project has to be where the host is root.
fn readable() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

#[test]
fn output_errors_code_and_usage_come_back() {
    let outcome = ran(&shell("echo out; echo err >&2; exit 3"));
    assert_eq!(outcome.exit, Exit::Exited(3));
    assert_eq!(outcome.stdout, b"out\n");
    assert_eq!(outcome.stderr, b"err\n");
    assert!(outcome.usage.wall > Duration::ZERO && outcome.usage.max_rss_bytes > 0);
}

#[test]
fn a_signal_is_told_by_its_number() {
    assert_eq!(ran(&shell("kill -TERM $$")).exit, Exit::Killed(15));
}

#[test]
fn input_is_what_was_given_and_then_ends() {
    let mut spec = program("/bin/cat", &[]);
    assert_eq!(said(&spec), "");
    let text = "line\n".repeat(100_000);
    spec.stdin = text.clone().into_bytes();
    assert_eq!(said(&spec), text);
}

#[test]
fn the_streams_have_their_names() {
    let mut spec = shell("cat /dev/stdin > /dev/stdout; echo err > /dev/stderr");
    spec.stdin = b"in\n".to_vec();
    let outcome = ran(&spec);
    assert_eq!(outcome.exit, Exit::Exited(0));
    assert_eq!(
        (&*outcome.stdout, &*outcome.stderr),
        (&b"in\n"[..], &b"err\n"[..])
    );
}

#[test]
fn limits_without_bounds_are_limits_too() {
    let mut spec = shell("echo done");
    spec.limits.wall = Duration::MAX;
    spec.limits.cpu = Duration::MAX;
    (spec.limits.memory_bytes, spec.limits.file_bytes) = (u64::MAX, u64::MAX);
    (spec.limits.processes, spec.limits.open_files) = (u64::MAX, u64::MAX);
    spec.limits.output_bytes = u64::MAX;
    assert_eq!(said(&spec), "done\n");
}

#[test]
fn a_program_that_reads_no_input_is_no_fault() {
    let mut spec = shell("echo done");
    spec.stdin = vec![b'x'; 4 << 20];
    assert_eq!(said(&spec), "done\n");
}

#[test]
fn the_environment_is_what_was_given() {
    let mut spec = program("/usr/bin/env", &[]);
    spec.env = vec![("A".into(), "1".into()), ("B".into(), "x y\nz".into())];
    assert_eq!(said(&spec), "A=1\nB=x y\nz\n");
    spec.env.clear();
    assert_eq!(said(&spec), "");
}

#[test]
fn output_is_capped_while_it_is_read() {
    let mut spec = shell("echo first; yes");
    spec.limits.output_bytes = 1_000;
    let outcome = ran(&spec);
    assert_eq!(outcome.exit, Exit::OutputTooLarge);
    assert_eq!(outcome.stdout.len() + outcome.stderr.len(), 1_000);
    assert!(outcome.stdout.starts_with(b"first\ny\ny\n"));
}

#[test]
fn output_of_exactly_the_limit_is_not_too_large() {
    let mut spec = shell("printf 0123456789");
    spec.limits.output_bytes = 10;
    let outcome = ran(&spec);
    assert_eq!((outcome.exit, outcome.stdout.len()), (Exit::Exited(0), 10));
}

#[test]
fn what_was_said_before_the_deadline_is_kept() {
    let mut spec = shell("echo early; sleep 600");
    spec.limits.wall = Duration::from_millis(500);
    let outcome = ran(&spec);
    assert_eq!(outcome.exit, Exit::TimedOut);
    assert_eq!(outcome.stdout, b"early\n");
}

#[test]
fn all_processes_together_are_held_to_the_limits() {
    let loops = "import os\nfor _ in range(3): os.fork()\nwhile True: pass";
    let memory = "import mmap, time\nx = mmap.mmap(-1, 1 << 28)\nfor i in range(0, 1 << 28, 4096): x[i] = 1\ntime.sleep(600)";
    for (script, exit) in [(loops, Exit::TooMuchCpu), (memory, Exit::TooMuchMemory)] {
        let mut spec = python(script);
        spec.limits.wall = Duration::from_secs(60);
        spec.limits.cpu = Duration::from_secs(2);
        spec.limits.memory_bytes = 128 << 20;
        assert_eq!(ran(&spec).exit, exit);
    }
}

#[test]
fn a_run_can_be_taken_back() {
    let cancelled = Arc::new(AtomicBool::new(false));
    let mut spec = shell("sleep 600 & sleep 600");
    let token = format!("jail-cancel-{}-end", std::process::id());
    spec.env.push(("JAIL_TOKEN".into(), token.clone()));
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| run(&launcher(), &spec, &cancelled));
        let begun = Instant::now();
        while left_behind(&token).len() < 3 && begun.elapsed() < Duration::from_secs(20) {
            std::thread::yield_now();
        }
        cancelled.store(true, Ordering::Relaxed);
        run.join().unwrap().unwrap()
    });
    assert_eq!(outcome.exit, Exit::Cancelled);
    assert!(left_behind(&token).is_empty());
}

#[test]
fn what_is_granted_can_be_used_and_no_more() {
    let project = readable();
    let scratch = tempfile::tempdir().unwrap();
    let file = project.path().join("data");
    fs::write(&file, "data").unwrap();
    let mut spec = shell("cat data; echo note > $SCRATCH/note; cat $SCRATCH/note; echo x > data");
    spec.cwd = project.path().into();
    spec.read.push(project.path().into());
    spec.scratch = Some(scratch.path().into());
    let path = scratch.path().to_str().unwrap();
    spec.env.push(("SCRATCH".into(), path.into()));
    let outcome = ran(&spec);
    assert_eq!(outcome.stdout, b"datanote\n");
    assert_ne!(outcome.exit, Exit::Exited(0));
    assert_eq!(fs::read_to_string(file).unwrap(), "data");
    assert_eq!(
        fs::read_to_string(scratch.path().join("note")).unwrap(),
        "note\n"
    );
}

#[test]
fn a_single_file_can_be_granted() {
    let project = readable();
    for name in ["granted", "other"] {
        fs::write(project.path().join(name), name).unwrap();
    }
    let mut spec = shell("cat granted; cat other 2>/dev/null || echo no");
    spec.cwd = project.path().into();
    spec.read.push(project.path().join("granted"));
    assert_eq!(said(&spec), "grantedno\n");
}

#[test]
fn a_directory_that_may_be_written_may_be_written() {
    let project = readable();
    let everybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(project.path(), everybody).unwrap();
    let mut spec = shell("mkdir d && echo x > d/f && mv d/f g && rmdir d && cat g && rm g");
    spec.cwd = project.path().into();
    spec.write.push(project.path().into());
    assert_eq!(said(&spec), "x\n");
}

#[test]
fn a_granted_port_can_be_connected_to_and_nothing_else() {
    let granted = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, closed) = (
        granted.local_addr().unwrap().port(),
        other.local_addr().unwrap().port(),
    );
    let attempts = [
        (
            format!("socket.create_connection(('127.0.0.1',{port}),5)"),
            "done",
        ),
        (
            format!("socket.create_connection(('127.0.0.1',{closed}),5)"),
            "refused",
        ),
        (
            "socket.socket(socket.AF_INET,socket.SOCK_DGRAM)".into(),
            "refused",
        ),
        (
            "socket.socket(socket.AF_INET,socket.SOCK_RAW,6)".into(),
            "refused",
        ),
        (
            "socket.socket(socket.AF_INET,socket.SOCK_STREAM,262)".into(),
            "refused",
        ),
        ("socket.socket(socket.AF_UNIX)".into(), "refused"),
        (
            "socket.socket(socket.AF_NETLINK,socket.SOCK_RAW)".into(),
            "refused",
        ),
        ("socket.socket().bind(('127.0.0.1',0))".into(), "refused"),
        ("socket.socket().listen()".into(), "refused"),
        (
            format!("socket.socket().sendto(b'x',0x20000000,('127.0.0.1',{closed}))"),
            "refused",
        ),
        (
            format!("socket.socket().sendmsg([b'x'],[],0x20000000,('127.0.0.1',{closed}))"),
            "refused",
        ),
        ("a, b = socket.socketpair(); a.send(b'x')".into(), "done"),
    ];
    for (attempt, expected) in attempts {
        let mut spec = python(&format!(
            "import socket\ntry:\n {attempt}\n print('done')\nexcept PermissionError: print('refused')"
        ));
        spec.net = Net::Tcp(vec![port]);
        assert_eq!(said(&spec), format!("{expected}\n"), "{attempt}");
    }
}

#[test]
fn many_runs_at_once_do_not_meet() {
    std::thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || {
                let script = format!("for i in 1 2 3 4; do sh -c 'echo {number}' & done; wait");
                assert_eq!(said(&shell(&script)), format!("{number}\n").repeat(4));
            });
        }
    });
}

#[test]
fn as_root_a_program_is_nobody_in_particular() {
    let mine = fs::metadata("/proc/self").unwrap().uid();
    let ids: Vec<u32> = said(&shell("id -u; id -g; id -G"))
        .split_whitespace()
        .map(|it| it.parse().unwrap())
        .collect();
    if mine == 0 {
        assert!(
            ids[0] >= 61_184 && ids.iter().all(|it| *it == ids[0]),
            "{ids:?}"
        );
    } else {
        assert_eq!(ids[0], mine);
    }
}

/// A directory that the program may write to, whoever it is.
fn writable() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    dir
}

#[test]
fn what_a_run_writes_is_bounded_however_it_writes() {
    let many_files = "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > f$i; done";
    let nested = "while :; do mkdir d; cd d; head -c 1000000 /dev/zero > f; done";
    let shut = "umask 0477; mkdir shut; cd shut; umask 0; while :; do head -c 1000000 /dev/zero > f$((i+=1)); done";
    let nameless = r#"
import os
held = []
while True:
    fd = os.open("x", os.O_CREAT | os.O_RDWR)
    os.unlink("x")
    os.write(fd, bytes(1000000))
    held.append(fd)
"#;
    let mapped = r#"
import mmap, os
held = []
while True:
    fd = os.open("x", os.O_CREAT | os.O_RDWR)
    os.unlink("x")
    os.write(fd, bytes(1000000))
    held.append(mmap.mmap(fd, 1000000))
    os.close(fd)
"#;
    for (name, mut spec) in [
        ("many files", shell(many_files)),
        ("nested", shell(nested)),
        ("shut", shell(shut)),
        ("nameless", python(nameless)),
        ("mapped", python(mapped)),
    ] {
        let (dir, before) = (writable(), writable());
        fs::write(before.path().join("old"), vec![1; 40_000_000]).unwrap();
        spec.write = vec![dir.path().into(), before.path().into()];
        spec.cwd = dir.path().into();
        spec.limits.disk_bytes = 30_000_000;
        spec.limits.open_files = 100_000;
        spec.limits.wall = Duration::from_secs(120);
        let outcome = ran(&spec);
        let errors = String::from_utf8_lossy(&outcome.stderr);
        assert_eq!(outcome.exit, Exit::TooMuchDisk, "{name}: {errors}");
    }
}

#[test]
fn what_was_there_before_and_what_is_removed_does_not_count() {
    let dir = writable();
    fs::write(dir.path().join("old"), vec![1; 8_000_000]).unwrap();
    let again =
        "for i in 1 2 3 4 5 6 7 8; do head -c 2000000 /dev/zero > f; done; rm -f f; echo done";
    let mut spec = shell(again);
    spec.write = vec![dir.path().into()];
    spec.cwd = dir.path().into();
    spec.limits.disk_bytes = 4_000_000;
    assert_eq!(said(&spec), "done\n");
    // One that ends before anybody looks is seen afterwards.
    let mut spec = shell("head -c 5000000 /dev/zero > f");
    spec.write = vec![dir.path().into()];
    spec.cwd = dir.path().into();
    spec.limits.disk_bytes = 4_000_000;
    assert_eq!(ran(&spec).exit, Exit::TooMuchDisk);
}

#[test]
fn a_run_makes_no_more_files_than_it_may() {
    let dir = writable();
    let mut spec = shell("i=0; while :; do i=$((i+1)); : > f$i; done");
    spec.write = vec![dir.path().into()];
    spec.cwd = dir.path().into();
    spec.limits.files = 500;
    assert_eq!(ran(&spec).exit, Exit::TooManyFiles);
}

#[test]
fn a_lasting_user_can_change_what_it_wrote_before() {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let out = home.path().join("out");
    fs::create_dir(&out).unwrap();
    let spec = |number: Option<u32>, made: bool| {
        let mut spec = shell("echo more >> log; id -u");
        spec.write = vec![out.clone()];
        spec.cwd = out.clone();
        spec.user_number = number;
        spec.made = if made { vec![out.clone()] } else { Vec::new() };
        spec
    };
    let first = said(&spec(Some(7), true));
    assert_eq!(said(&spec(Some(7), false)), first);
    assert_eq!(fs::read(out.join("log")).unwrap(), b"more\nmore\n");
    if rustix::process::geteuid().is_root() {
        let other = run(&launcher(), &spec(Some(8), false), &Arc::default());
        assert_eq!(other.unwrap_err().code, Code::Denied);
    }
}

#[test]
fn what_cannot_run_is_refused_with_the_reason() {
    let closed = tempfile::tempdir().unwrap();
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o000)).unwrap();
    let here = readable();
    let script = here.path().join("not-executable");
    fs::write(&script, "text").unwrap();
    let change = |how: &dyn Fn(&mut Spec)| {
        let mut spec = shell("echo ran");
        how(&mut spec);
        spec
    };
    let cases = [
        (
            change(&|it| it.program = "/usr/bin/no-such-program".into()),
            Code::NotFound,
            "no-such",
        ),
        (
            change(&|it| it.program = script.clone()),
            Code::Denied,
            "program",
        ),
        (
            change(&|it| it.program = "sh".into()),
            Code::InvalidInput,
            "program",
        ),
        (change(&|it| it.exec.clear()), Code::Denied, "program"),
        (
            change(&|it| it.args.push("a\0b".into())),
            Code::InvalidInput,
            "args",
        ),
        (
            change(&|it| it.env.push(("A=B".into(), "c".into()))),
            Code::InvalidInput,
            "env",
        ),
        (
            change(&|it| it.env.push(("A".into(), "\0".into()))),
            Code::InvalidInput,
            "`A`",
        ),
        (
            change(&|it| it.args.push("x".repeat(1 << 20).into())),
            Code::TooLarge,
            "args",
        ),
        (
            change(&|it| it.read.push("/no/such/place".into())),
            Code::NotFound,
            "read",
        ),
        (
            change(&|it| it.cwd = "/no/such/place".into()),
            Code::NotFound,
            "cwd",
        ),
        (
            change(&|it| it.read.push(closed.path().into())),
            Code::Denied,
            "read",
        ),
        (
            change(&|it| it.write.push("/usr".into())),
            Code::Denied,
            "write",
        ),
        (
            change(&|it| it.limits.wall = Duration::ZERO),
            Code::InvalidInput,
            "wall",
        ),
        (
            change(&|it| it.limits.processes = 0),
            Code::InvalidInput,
            "processes",
        ),
    ];
    for (spec, code, word) in cases {
        let error = run(&launcher(), &spec, &Arc::default()).unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(word), "`{word}` is not in: {error}");
        assert!(error.hint.is_some(), "{error}");
        assert!(!error.message.contains("/tmp"), "{error}");
    }
}

#[test]
fn a_scratch_directory_of_somebody_else_is_refused() {
    let error = {
        let mut spec = shell("echo ran");
        spec.scratch = Some("/proc/self/net".into());
        run(&launcher(), &spec, &Arc::default()).unwrap_err()
    };
    assert!(error.message.contains("scratch"), "{error}");
}

#[test]
fn a_peer_is_talked_to_and_ends_with_its_input() {
    let mut peer = spawn(
        &launcher(),
        &python("for line in __import__('sys').stdin: print(line.upper(), end='', flush=True)"),
    )
    .unwrap();
    let mut stdin = peer.stdin.take().unwrap();
    let mut lines = BufReader::new(peer.stdout.take().unwrap()).lines();
    for word in ["one", "two"] {
        writeln!(stdin, "{word}").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), word.to_uppercase());
    }
    drop(stdin);
    assert!(lines.next().is_none());
    assert_eq!(peer.wait().unwrap().0, Exit::Exited(0));
}

#[test]
fn a_peer_that_is_dropped_is_gone_with_all_that_it_started() {
    let mut spec = shell("setsid sleep 600 & (sleep 600 &); echo up; cat");
    let token = format!("jail-peer-{}-end", std::process::id());
    spec.env.push(("JAIL_TOKEN".into(), token.clone()));
    let mut peer = spawn(&launcher(), &spec).unwrap();
    let mut up = [0; 3];
    peer.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
    // Those that the shell started may not have become what they will be.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while left_behind(&token).len() < 3 {
        assert!(
            std::time::Instant::now() < until,
            "{:?}",
            left_behind(&token)
        );
        std::thread::yield_now();
    }
    drop(peer);
    assert!(left_behind(&token).is_empty());
}

#[test]
fn a_peer_can_be_killed_and_has_a_deadline() {
    let peer = spawn(&launcher(), &shell("sleep 600")).unwrap();
    peer.kill();
    assert_eq!(peer.wait().unwrap().0, Exit::Cancelled);
    let mut spec = shell("sleep 600");
    spec.limits.wall = Duration::from_millis(200);
    let peer = spawn(&launcher(), &spec).unwrap();
    assert_eq!(peer.wait().unwrap().0, Exit::TimedOut);
}

#[test]
fn a_peer_that_cannot_start_is_refused_at_once() {
    let spec = program("/usr/bin/no-such-program", &[]);
    assert_eq!(spawn(&launcher(), &spec).unwrap_err().code, Code::NotFound);
}

/// Not a test of its own: the host that dies in the next one.
#[test]
fn a_host_that_waits() {
    let Ok(token) = std::env::var("JAIL_TEST_DIES") else {
        return;
    };
    let mut spec = shell("setsid sleep 600 & sleep 600");
    spec.env.push(("JAIL_TOKEN".into(), token));
    ran(&spec);
}

#[test]
fn a_killed_host_leaves_no_program() {
    let token = format!("jail-host-{}-end", std::process::id());
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_host_that_waits"])
        .env("JAIL_TEST_DIES", &token)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let until = |done: &dyn Fn(usize) -> bool| {
        let begun = Instant::now();
        while !done(left_behind(&token).len()) {
            assert!(begun.elapsed() < Duration::from_secs(20));
            std::thread::yield_now();
        }
    };
    // The host itself has the token in its environment, too.
    until(&|n| n >= 4);
    host.kill().unwrap();
    host.wait().unwrap();
    until(&|n| n == 0);
}

#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    for test in [
        "output_errors_code_and_usage_come_back",
        "the_streams_have_their_names",
        "limits_without_bounds_are_limits_too",
        "what_is_granted_can_be_used_and_no_more",
        "a_granted_port_can_be_connected_to_and_nothing_else",
        "what_cannot_run_is_refused_with_the_reason",
        "a_peer_that_is_dropped_is_gone_with_all_that_it_started",
        "all_processes_together_are_held_to_the_limits",
        "as_root_a_program_is_nobody_in_particular",
        "what_a_run_writes_is_bounded_however_it_writes",
        "what_was_there_before_and_what_is_removed_does_not_count",
        "a_lasting_user_can_change_what_it_wrote_before",
        "a_killed_host_leaves_no_program",
    ] {
        as_ordinary_user(65_532, test);
    }
}

/// Measured and printed, never judged: machines differ.
#[test]
fn what_the_jail_costs() {
    let median = |work: &dyn Fn()| {
        let mut times: Vec<Duration> = (0..21)
            .map(|_| {
                let begun = Instant::now();
                work();
                begun.elapsed()
            })
            .collect();
        times.sort();
        times[10]
    };
    let bare = median(&|| {
        let status = Command::new("/bin/sh")
            .args(["-c", ":"])
            .env_clear()
            .status();
        assert!(status.unwrap().success());
    });
    let jailed = median(&|| assert_eq!(ran(&shell(":")).exit, Exit::Exited(0)));
    println!("`sh -c :`: bare {bare:?}, in the jail {jailed:?}, medians of 21");
}
