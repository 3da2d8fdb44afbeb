//! One directory with the data of one server, and the shell that starts and stops it.

use crate::{Version, files, quiet, random};
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// The user `nobody`. PostgreSQL refuses to run as root.
const NOBODY: u32 = 65534;

/// Obeys lines on its input; its arguments are the directory, `pg_ctl`, and how the directory is made.
///
/// When the input ends, the process that held the other end is gone, even if it was killed: then the server has to
/// go too, and the directory with it.
const SHELL: &str = r#"
# Whoever was killed while a line was obeyed reads no answer; to answer must not be the end of this shell.
trap '' PIPE
dir=$1 pg_ctl=$2
shift 2
while read -r word port; do
    case $word in
        init) "$@" ;;
        start) "$pg_ctl" -D data -l log -o "-p $port" -w -t 120 start ;;
        stop) "$pg_ctl" -D data -m immediate -w -t 120 stop ;;
    esac </dev/null >>log 2>&1 && echo done || echo failed
done
"$pg_ctl" -D data -m immediate -w -t 120 stop </dev/null >/dev/null 2>&1
cd / && rm -rf "$dir"
"#;

pub(crate) struct Cluster {
    // Dropped in this order: the shell ends the server before its directory goes.
    shell: Mutex<Shell>,
    dir: TempDir,
    port: u16,
    password: String,
}

impl Cluster {
    /// Makes a fresh data directory and starts a server on it.
    pub(crate) fn create(programs: &Path, version: Version) -> Result<Self, String> {
        let password = format!("{:016x}{:016x}", random(), random());
        Self::begin(programs, password, |init, dir| {
            init.arg(programs.join("initdb"))
                .arg("--pgdata=data")
                .args(["--username=kenning", "--pwfile=password"])
                .args(["--auth=scram-sha-256", "--encoding=UTF8"])
                // Only the files of an empty database are not waited for; the server itself syncs.
                .arg("--no-sync")
                .args(["--set", "fsync=on"])
                .args(["--set", "listen_addresses=127.0.0.1"])
                .args(["--set", "max_connections=200"])
                .args(["--set", "shared_buffers=64MB"])
                .arg("--set")
                .arg(format!("unix_socket_directories={}", dir.display()));
            // Both mean: ordered by code point, and upper and lower case known beyond ASCII.
            match version {
                Version::V16 => init.arg("--locale=C.UTF-8"),
                Version::V18 => init.args([
                    "--locale=C",
                    "--locale-provider=builtin",
                    "--builtin-locale=C.UTF-8",
                ]),
            };
        })
    }

    /// Copies this server while it runs, and starts a second one on the copy that follows it.
    pub(crate) fn standby(&self, programs: &Path) -> Result<Self, String> {
        Self::begin(programs, self.password.clone(), |init, _| {
            init.arg(programs.join("pg_basebackup"))
                .args(["--pgdata=data", "--host=127.0.0.1", "--username=kenning"])
                .arg(format!("--port={}", self.port))
                .args(["--checkpoint=fast", "--wal-method=stream"])
                .args(["--write-recovery-conf", "--no-password", "--no-sync"])
                .env("PGPASSWORD", &self.password);
        })
    }

    /// Makes a data directory as the shell is told to, and starts a server on it.
    fn begin(
        programs: &Path,
        password: String,
        tell_how: impl FnOnce(&mut Command, &Path),
    ) -> Result<Self, String> {
        let fail = |err: io::Error| format!("the data directory could not be made: {err}");
        let root = files::uid() == 0;
        // A short name, because the path of a socket may have a hundred bytes.
        let dir = tempfile::Builder::new()
            .prefix("kenning-pg-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .map_err(fail)?;
        let secret = dir.path().join("password");
        fs::write(&secret, &password).map_err(fail)?;
        if root {
            chown(&secret, Some(NOBODY), Some(NOBODY)).map_err(fail)?;
            chown(dir.path(), Some(NOBODY), Some(NOBODY)).map_err(fail)?;
        }
        let mut sh = quiet("sh".as_ref());
        if root {
            sh.uid(NOBODY).gid(NOBODY);
        }
        sh.current_dir(dir.path())
            .args(["-c", SHELL, "sh"])
            .args([dir.path(), &programs.join("pg_ctl")]);
        tell_how(&mut sh, dir.path());
        let mut cluster = Self {
            shell: Mutex::new(Shell::spawn(&mut sh).map_err(fail)?),
            dir,
            port: 0,
            password,
        };
        cluster.tell("init").map_err(|err| match root {
            true => format!(
                "{err}It was run as user {NOBODY}, who must be able to read {}.",
                programs.display()
            ),
            false => err,
        })?;
        // Between finding a free port and using it, another process can take it.
        let mut result = Err(String::new());
        for _ in 0..5 {
            cluster.port = free_port()?;
            result = cluster.start();
            if result.is_ok() {
                break;
            }
        }
        result.map(|()| cluster)
    }

    pub(crate) fn url(&self) -> String {
        let Self { password, port, .. } = self;
        format!("postgres://kenning:{password}@127.0.0.1:{port}/postgres")
    }

    /// Returns when the server answers.
    pub(crate) fn start(&self) -> Result<(), String> {
        self.tell(&format!("start {}", self.port))
    }

    /// Returns when the server is gone.
    pub(crate) fn stop(&self) {
        if let Err(err) = self.tell("stop") {
            panic!("the server did not stop: {err}");
        }
    }

    fn tell(&self, line: &str) -> Result<(), String> {
        // A test that panicked while it held the lock has its own message; others can go on.
        let mut shell = self.shell.lock().unwrap_or_else(PoisonError::into_inner);
        match shell.tell(line) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
                Err(format!("`{line}` failed; the log of the server:\n{log}"))
            }
            Err(err) => Err(format!("the shell of the server is gone: {err}")),
        }
    }
}

struct Shell {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut child = command
            // Neither a Ctrl-C nor a signal to the whole group of the tests may end it before its work is done.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A reader of the tests' output must not wait for this process.
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            child,
            input,
            output: BufReader::new(output),
        })
    }

    /// Whether it could be done.
    fn tell(&mut self, line: &str) -> io::Result<bool> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{line}")?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        match answer.trim_end() {
            "done" => Ok(true),
            "failed" => Ok(false),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.input = None;
        // The directory is removed next, and it must not be in use; a failure leaves nothing to do.
        let _ = self.child.wait();
    }
}

/// A free port, below those that systems give to outgoing connections: a client that tries again
/// and again while the server is stopped could otherwise be given the server's port, and would be its own peer.
fn free_port() -> Result<u16, String> {
    (0..1000)
        .map(|_| 20_000 + (random() % 10_000) as u16)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .ok_or_else(|| "no free port between 20000 and 30000".into())
}
