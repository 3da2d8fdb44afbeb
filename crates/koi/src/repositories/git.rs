//! The system's `git`, held short.
//!
//! `git` is the operator's own program and no stranger's, so it runs as they do and not in the jail, whose
//! rules on modes its packs do not survive. What it is given is a stranger's, so it gets nothing else:
//! an environment of our own with no configuration of the machine, the user or the repository's owner,
//! no hooks, no helpers, no credentials, no prompts, one protocol, and for that one a proxy of `egress`.
//! There is never a work tree: names, links and filters of a repository touch no file.
//!
//! Every run is a process group of its own, which ends at its deadline or when its caller goes away.

use super::credentials::{self, Credential};
use kenning_core::{Code, Error, Result};
use kenning_egress::Tunnel;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Where programs are when the environment does not say.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";
/// The time between two checks of a run.
const LOOK: Duration = Duration::from_millis(5);
/// For a credential helper.
const HELPER_WALL: Duration = Duration::from_secs(20);
/// The most bytes of standard error that are kept.
const SAID_BYTES_MAX: u64 = 64 * 1024;

/// What a transport may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    File,
    Https,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Https => "https",
        }
    }
}

/// A bare repository of ours, and how `git` is run on it.
pub(super) struct Git<'a> {
    /// The bare repository.
    pub(super) dir: PathBuf,
    /// Where programs are.
    pub(super) path: Option<String>,
    /// A file of certificates to trust servers by, in place of the system's.
    pub(super) authorities: Option<String>,
    /// What one server is shown, if it asked for that.
    pub(super) credential: Option<Credential>,
    /// The only transport, if any.
    pub(super) protocol: Option<Protocol>,
    /// The only way out.
    pub(super) tunnel: Option<&'a Tunnel>,
    /// Set when nobody wants the answer any more.
    pub(super) cancelled: &'a AtomicBool,
    /// Called now and then while a run goes on; an error ends it.
    pub(super) tick: &'a dyn Fn() -> Result<()>,
}

/// The bounds of one run.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) wall: Duration,
    pub(super) output_bytes: u64,
}

/// How a run ended.
pub(super) struct Ended {
    pub(super) is_success: bool,
    pub(super) output: Vec<u8>,
    /// Its standard error.
    pub(super) said: String,
}

/// Whether `git` can be started here.
pub(super) fn is_there(path: Option<String>, dir: &Path) -> bool {
    let git = Git {
        dir: dir.join("none.git"),
        path,
        authorities: None,
        credential: None,
        protocol: None,
        tunnel: None,
        cancelled: &AtomicBool::new(false),
        tick: &|| Ok(()),
    };
    let bounds = Bounds {
        wall: Duration::from_secs(5),
        output_bytes: 1 << 16,
    };
    let asked = git.run(&["version"], Vec::new(), bounds);
    asked.is_ok_and(|it| it.is_success)
}

impl Git<'_> {
    /// The answer of a run that must succeed.
    pub(super) fn ask(&self, args: &[&str], input: Vec<u8>, bounds: Bounds) -> Result<Vec<u8>> {
        let ended = self.run(args, input, bounds)?;
        if ended.is_success {
            return Ok(ended.output);
        }
        let what = args.first().copied().unwrap_or_default();
        Err(
            Error::unavailable(format!("`git {what}` failed: {}", last_line(&ended.said)))
                .hint("scan again"),
        )
    }

    /// Runs `git` on this repository.
    pub(super) fn run(&self, args: &[&str], input: Vec<u8>, bounds: Bounds) -> Result<Ended> {
        self.run_command(self.command(args), input, bounds)
    }

    fn run_command(&self, mut command: Command, input: Vec<u8>, bounds: Bounds) -> Result<Ended> {
        let child = command.spawn().map_err(|cause| match cause.kind() {
            std::io::ErrorKind::NotFound => {
                Error::unavailable("there is no `git` on this machine to read repositories with")
                    .hint("install git, so that it is found in PATH")
            }
            _ => Error::unavailable("`git` could not be started").because(cause),
        })?;
        let mut group = Group::of(child);
        let stdin = group.child.stdin.take();
        let (stdout, stderr) = (group.child.stdout.take(), group.child.stderr.take());
        std::thread::scope(|scope| {
            // A program that reads no further is no fault: its status tells.
            scope.spawn(move || stdin.map(|mut it| it.write_all(&input)));
            let output = scope.spawn(move || read_most(stdout, bounds.output_bytes));
            let said = scope.spawn(move || read_most(stderr, SAID_BYTES_MAX));
            let waited = self.wait(&mut group, bounds);
            // Whatever it started goes too; only then do the pipes end.
            group.end();
            let (output, said) = (output.join(), said.join());
            let is_success = waited?;
            let broken = || Error::internal("the answer of `git` was not read");
            let (output, is_whole) = output.map_err(|_| broken())?;
            if !is_whole {
                let most = bounds.output_bytes;
                return Err(
                    Error::too_large(format!("`git` answers with more than {most} bytes"))
                        .hint("register a smaller repository"),
                );
            }
            let (said, _) = said.map_err(|_| broken())?;
            let said = String::from_utf8_lossy(&said).into_owned();
            let said = match &self.credential {
                Some(credential) => credential.hidden_in(&said),
                None => said,
            };
            Ok(Ended {
                is_success,
                output,
                said,
            })
        })
    }

    /// What the credential helpers of the operator's own `git` have for an address. They run with the operator's
    /// settings and ask nobody on a terminal.
    pub(super) fn ask_helper(&self, url: &str, home: Option<String>) -> Option<Credential> {
        let home = home.filter(|it| !it.is_empty())?;
        let mut command = self.bare();
        command
            .env("HOME", home)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "")
            .env("GCM_INTERACTIVE", "never")
            .args(["-c", "credential.interactive=false", "credential", "fill"]);
        let bounds = Bounds {
            wall: HELPER_WALL,
            output_bytes: SAID_BYTES_MAX,
        };
        let input = credentials::question(url).into_bytes();
        let ended = self.run_command(command, input, bounds).ok()?;
        let found = credentials::answer(url, &ended.output);
        found.filter(|_| ended.is_success)
    }

    fn wait(&self, group: &mut Group, bounds: Bounds) -> Result<bool> {
        let until = Instant::now() + bounds.wall;
        let broken = |cause| Error::internal("waiting for `git` failed").because(cause);
        loop {
            if let Some(status) = group.child.try_wait().map_err(broken)? {
                return Ok(status.success());
            }
            if self.cancelled.load(Ordering::Relaxed) {
                return Err(Error::timeout("the scan was cancelled"));
            }
            if Instant::now() >= until {
                let seconds = bounds.wall.as_secs();
                return Err(
                    Error::timeout(format!("`git` took longer than {seconds} seconds")).hint(
                        "scan again when the network is better, or register a smaller repository",
                    ),
                );
            }
            (self.tick)()?;
            std::thread::sleep(LOOK);
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "git is the operator's own program: see the head of this module"
    )]
    fn bare(&self) -> Command {
        let mut command = Command::new("git");
        let path = self.path.as_deref().filter(|it| !it.is_empty());
        command
            .env_clear()
            .env("PATH", path.unwrap_or(PATH_DEFAULT))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bare();
        command
            .envs(self.environment())
            .arg("--git-dir")
            .arg(&self.dir)
            .args(["-c", "protocol.allow=never"]);
        if let Some(protocol) = self.protocol {
            command.args(["-c", &format!("protocol.{}.allow=always", protocol.name())]);
        }
        command
            .args(["-c", "core.hooksPath=/dev/null"])
            .args(["-c", "core.fsmonitor=false"])
            .args(["-c", "credential.helper="])
            .args(["-c", "gc.auto=0"])
            .args(["-c", "maintenance.auto=false"])
            .args(["-c", "submodule.recurse=false"])
            .args(args);
        command
    }

    /// Everything that `git` is told besides its arguments. The secret of the proxy is here and not
    /// there: every user of the machine can read arguments.
    fn environment(&self) -> Vec<(String, String)> {
        let home = self.dir.parent().unwrap_or(Path::new("/"));
        let config = home.join(CONFIG_FILE).to_string_lossy().into_owned();
        let home = home.to_string_lossy().into_owned();
        let mut all: Vec<(String, String)> = [
            ("LC_ALL", "C"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ASKPASS", ""),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_LFS_SKIP_SMUDGE", "1"),
            ("GIT_PROTOCOL_FROM_USER", "0"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        // `none` is the name of no protocol, and an empty list would mean the default one.
        let allowed = self.protocol.map_or("none", Protocol::name);
        all.push(("GIT_ALLOW_PROTOCOL".to_owned(), allowed.to_owned()));
        all.push(("HOME".to_owned(), home.clone()));
        all.push(("XDG_CONFIG_HOME".to_owned(), home));
        let authorities = self.authorities.iter();
        all.extend(authorities.map(|it| ("GIT_SSL_CAINFO".to_owned(), it.clone())));
        all.push(("GIT_CONFIG_GLOBAL".to_owned(), config));
        if let Some(tunnel) = self.tunnel {
            let mut settings = vec![
                ("http.proxy".to_owned(), tunnel.url()),
                ("http.proxyAuthMethod".to_owned(), "basic".to_owned()),
                ("http.lowSpeedLimit".to_owned(), "100".to_owned()),
                ("http.lowSpeedTime".to_owned(), "60".to_owned()),
            ];
            if let Some(credential) = &self.credential {
                // A redirection would carry it to whoever is named there.
                settings.push(("http.followRedirects".to_owned(), "false".to_owned()));
                let name = format!("http.{}.extraHeader", credential.origin);
                settings.push((name, credential.header()));
            }
            all.push(("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string()));
            for (n, (name, value)) in settings.into_iter().enumerate() {
                all.push((format!("GIT_CONFIG_KEY_{n}"), name));
                all.push((format!("GIT_CONFIG_VALUE_{n}"), value));
            }
        }
        all
    }
}

/// What our own file of settings says: whoever configured a directory vouches for who owns what is in it.
/// It is a file because `git` hands it on to the `git` that reads the other repository.
pub(super) const CONFIG: &str = "[safe]\n\tdirectory = *\n[core]\n\thooksPath = /dev/null\n";

/// What that file is called, beside the clones.
pub(super) const CONFIG_FILE: &str = "git.config";

/// A process with all that it started. Dropping it ends them.
struct Group {
    child: Child,
    is_ended: bool,
}

impl Group {
    fn of(child: Child) -> Self {
        let is_ended = false;
        Self { child, is_ended }
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.is_ended, true) {
            return;
        }
        let group = i32::try_from(self.child.id()).ok();
        if let Some(group) = group.and_then(rustix::process::Pid::from_raw) {
            // Gone already is what is wanted.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        drop(self.child.wait());
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// All of a stream, if it is not more than this; the rest is read and thrown away.
fn read_most(stream: Option<impl Read>, most: u64) -> (Vec<u8>, bool) {
    let Some(mut stream) = stream else {
        return (Vec::new(), true);
    };
    let mut bytes = Vec::new();
    // What was read before a stream broke is all that there is.
    drop(stream.by_ref().take(most).read_to_end(&mut bytes));
    let rest = std::io::copy(&mut stream, &mut std::io::sink());
    (bytes, rest.is_ok_and(|it| it == 0))
}

/// What matters of what `git` said: its last word, on one line.
pub(super) fn last_line(said: &str) -> String {
    let mut lines = said.lines().map(str::trim).filter(|it| !it.is_empty());
    let line = lines.next_back().unwrap_or("it gave no reason");
    let line = line.strip_prefix("fatal: ").unwrap_or(line);
    line.chars()
        .filter(|it| !it.is_control())
        .take(300)
        .collect()
}

/// What a refused line was refused for comes before what `git` makes of it.
pub(super) fn because_of(tunnel: Option<&Tunnel>, error: Error) -> Error {
    let refused = tunnel.and_then(Tunnel::take_refusal);
    match refused {
        Some(refused) if error.code != Code::Timeout => refused,
        _ => error,
    }
}
