//! Programs that try to get out: the corpus `testing/corpora/jail.txt`.
//!
//! Outside stand things that everybody's modes allow: files, sockets, a process. Every attempt must
//! end as the corpus says, leave all of it as it was, and leave no process behind. As root the whole
//! corpus is tried once more as an ordinary user, because there the fences are others.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and look at the machine from outside the jail"
)]

mod common;

use common::{as_ordinary_user, launcher, left_behind, old_launcher, python_file};
use kenning_jail::{Exit, Launcher, Limits, Outcome, Spec, run};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const CORPUS: &str = include_str!("../../../testing/corpora/jail.txt");
const AT_LEAST: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Expected {
    Refused,
    Closed,
    Ended,
    Alone,
}

struct Case {
    expected: Expected,
    name: &'static str,
    script: String,
}

fn cases() -> Vec<Case> {
    let lines = CORPUS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let cases = lines.map(|line| {
        let mut fields = line.splitn(3, '\t');
        let expected = match fields.next().unwrap() {
            "refused" => Expected::Refused,
            "closed" => Expected::Closed,
            "ended" => Expected::Ended,
            "alone" => Expected::Alone,
            other => panic!("`{other}` is no expectation"),
        };
        let name = fields.next().unwrap();
        let script = fields.next().unwrap().replace("\\n", "\n");
        Case {
            expected,
            name,
            script,
        }
    });
    cases.collect()
}

/// What stands outside the jail.
struct Outside {
    canary: TempDir,
    victim: Child,
    described: String,
    _sockets: (
        TcpListener,
        TcpListener,
        UdpSocket,
        UnixListener,
        UnixListener,
        UnixDatagram,
    ),
    _inheritable: OwnedFd,
}

impl Outside {
    fn new() -> Self {
        let canary = tempfile::tempdir().unwrap();
        let at = |name: &str| canary.path().join(name);
        fs::write(at("secret"), "secret").unwrap();
        fs::write(at("open"), "open").unwrap();
        fs::create_dir(at("empty")).unwrap();
        let stream = UnixListener::bind(at("sock")).unwrap();
        let datagram = UnixDatagram::bind(at("dgram")).unwrap();
        for (path, mode) in [
            (at("secret"), 0o644),
            (at("open"), 0o666),
            (at("empty"), 0o777),
            (at("sock"), 0o777),
            (at("dgram"), 0o777),
            (canary.path().into(), 0o777),
        ] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let nameless = format!("jail-{}", canary.path().display());
        let nameless_at = SocketAddr::from_abstract_name(&nameless).unwrap();
        let nameless_at = UnixListener::bind_addr(&nameless_at).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp6 = TcpListener::bind("[::1]:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let victim = Command::new("sleep")
            .arg("600")
            .process_group(0)
            .spawn()
            .unwrap();
        // Such descriptors come from whoever started the host.
        let inheritable = rustix::io::dup(fs::File::open(at("secret")).unwrap()).unwrap();
        let described = format!(
            r#"{{"canary":"{}","abstract":"{nameless}","port":{},"port6":{},"udp":{},"host":{},"victim":{},"fd":{}}}"#,
            canary.path().display(),
            tcp.local_addr().unwrap().port(),
            tcp6.local_addr().unwrap().port(),
            udp.local_addr().unwrap().port(),
            std::process::id(),
            victim.id(),
            inheritable.as_raw_fd(),
        );
        Self {
            canary,
            victim,
            described,
            _sockets: (tcp, tcp6, udp, stream, nameless_at, datagram),
            _inheritable: inheritable,
        }
    }

    /// Everything that an attempt could have changed.
    fn state(&self) -> String {
        let mut state = String::new();
        describe(self.canary.path(), &mut state);
        let victim = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", self.victim.id()));
        let stat = victim("stat").unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // Alive, and of the same priority.
        let dead = ["Z", "X", "T"].contains(&fields[0]);
        write!(state, "victim dead={dead} nice={}", fields[16]).unwrap();
        let status = victim("status").unwrap();
        let processors = status.lines().find(|it| it.starts_with("Cpus_allowed:"));
        write!(state, "{processors:?} {}", victim("limits").unwrap()).unwrap();
        for trace in ["/tmp", "/var/tmp", "/dev/shm", "/usr/bin", "/etc/cron.d"] {
            let exists = Path::new(trace).join("jail-escape").exists();
            write!(state, "{trace} {exists}").unwrap();
        }
        state
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.victim.kill().unwrap();
        self.victim.wait().unwrap();
    }
}

fn describe(path: &Path, state: &mut String) {
    let about = fs::symlink_metadata(path).unwrap();
    let (mode, uid, links) = (about.mode(), about.uid(), about.nlink());
    let times = (
        about.mtime(),
        about.mtime_nsec(),
        about.ctime(),
        about.ctime_nsec(),
    );
    writeln!(state, "{path:?} {mode:o} {uid} {links} {times:?}").unwrap();
    if about.is_file() {
        writeln!(state, "{:?}", fs::read(path).unwrap()).unwrap();
    }
    if about.is_dir() {
        let mut names: Vec<_> = fs::read_dir(path)
            .unwrap()
            .map(|it| it.unwrap().path())
            .collect();
        names.sort();
        names.iter().for_each(|it| describe(it, state));
    }
}

fn attempt(case: &Case, outside: &Outside, token: &str) -> (Spec, TempDir) {
    let scratch = tempfile::tempdir().unwrap();
    let mut spec = python_file(include_str!("attempt.py"), &[&case.script]);
    spec.env
        .push(("JAIL_OUTSIDE".into(), outside.described.clone()));
    spec.env.push(("JAIL_TOKEN".into(), token.into()));
    spec.cwd = scratch.path().into();
    spec.scratch = Some(scratch.path().into());
    let wall = match case.expected {
        Expected::Ended => Duration::from_millis(800),
        Expected::Refused | Expected::Closed | Expected::Alone => Duration::from_secs(30),
    };
    spec.limits = Limits {
        wall,
        cpu: wall / 2,
        memory_bytes: 256 << 20,
        file_bytes: 1 << 20,
        disk_bytes: 1 << 30,
        files: 100_000,
        open_files: 64,
        processes: 16,
        output_bytes: 64 << 10,
    };
    (spec, scratch)
}

/// None if it went as the corpus says.
fn fault(case: &Case, outcome: &Outcome) -> Option<String> {
    let said = String::from_utf8_lossy(&outcome.stdout);
    let as_expected = match case.expected {
        Expected::Refused => outcome.exit == Exit::Exited(0) && said.starts_with("refused "),
        Expected::Closed => {
            outcome.exit == Exit::Exited(0)
                && (said.starts_with("refused ") || said == "broken ENOENT")
        }
        Expected::Ended => !matches!(outcome.exit, Exit::Exited(_)),
        Expected::Alone => {
            outcome.exit == Exit::Exited(0) && (said == "done" || said.starts_with("refused "))
        }
    };
    let errors = String::from_utf8_lossy(&outcome.stderr);
    let said: String = said.chars().take(200).collect();
    (!as_expected).then(|| format!("{:?}: {said} {errors:.300}", outcome.exit))
}

#[test]
fn every_way_out_is_closed() {
    let cases = cases();
    assert!(
        cases.len() >= AT_LEAST,
        "the corpus has shrunk to {}",
        cases.len()
    );
    let names: BTreeSet<_> = cases.iter().map(|it| it.name).collect();
    assert_eq!(names.len(), cases.len(), "two cases have one name");
    try_all(&launcher(), &cases);
}

#[test]
fn every_way_out_is_closed_for_an_ordinary_user() {
    as_ordinary_user(65_534, "every_way_out_is_closed");
}

#[test]
fn every_way_out_is_closed_on_an_older_kernel() {
    // Those for which other fences stand in.
    let mut cases = cases();
    cases.retain(|case| {
        matches!(case.expected, Expected::Ended | Expected::Alone)
            || case.name.contains("signal")
            || case.script.contains("socket.")
    });
    assert!(cases.len() >= 40);
    try_all(&old_launcher(), &cases);
}

#[test]
fn every_way_out_is_closed_for_an_ordinary_user_on_an_older_kernel() {
    // Another user, because the kernel counts the processes of both together.
    as_ordinary_user(65_533, "every_way_out_is_closed_on_an_older_kernel");
}

fn try_all(launcher: &Launcher, cases: &[Case]) {
    let outside = Outside::new();
    let before = outside.state();
    let mut faults = Vec::new();
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        let token = format!("jail-{}-{number}-end", outside.victim.id());
        let (spec, _scratch) = attempt(case, &outside, &token);
        match run(launcher, &spec, &Arc::default()) {
            Ok(outcome) => {
                faults.extend(fault(case, &outcome).map(|it| format!("{}: {it}", case.name)));
                let end = match outcome.exit {
                    Exit::Exited(0) => String::from_utf8_lossy(&outcome.stdout).into_owned(),
                    other => format!("{other:?}"),
                };
                println!("{}: {end:.60}", case.name);
                *ends.entry(end).or_default() += 1;
            }
            Err(error) => faults.push(format!("{}: did not run: {error}", case.name)),
        }
        for process in left_behind(&token) {
            faults.push(format!("{}: left `{process}` behind", case.name));
        }
        if outside.state() != before {
            faults.push(format!("{}: changed something outside", case.name));
            break;
        }
    }
    println!(
        "jail: {} attempts, {} faults; {ends:?}",
        cases.len(),
        faults.len()
    );
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}
