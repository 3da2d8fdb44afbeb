//! A server that is a program: started in a jail for one call, and ended after it.

use super::super::runtime::{self, SYSTEM_DIRS};
use super::{Answer, Connection, METHOD_NOT_FOUND, Ready, answer_to, converse, request};
use crate::Kiwi;
use crate::policy::McpServer;
use kenning_core::{Error, Result};
use kenning_jail::{Exit, Limits, Net, Spec};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Read, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest message.
const MESSAGE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// At most this many bytes of its standard error are shown.
const COMPLAINT_BYTES_MAX: u64 = 64 * 1024;
const COMPLAINT_CHARS_SHOWN: usize = 500;
/// The time between two checks whether the call was cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Kiwi {
    /// A program that the tool names, with the tool's permissions.
    pub(super) fn over_own_stdio(&self, ready: &Ready<'_>) -> Result<Answer> {
        let strength = self.jail()?;
        let run_dir = self.make_run_dir(&ready.plan.package, strength.own_user)?;
        let program = self.program(ready, Some(&run_dir))?;
        let spec = self.spec(ready, &run_dir, program, false)?;
        talk(ready, &self.launcher(), &spec)
    }

    pub(super) fn over_stdio(
        &self,
        ready: &Ready<'_>,
        server: &McpServer,
        command: &str,
    ) -> Result<Answer> {
        let strength = self.jail()?;
        let run_dir = self.make_empty_run_dir(strength.own_user)?;
        let program = runtime::find(ready.policy, command)?;
        let mut spec = Spec::new(program.path);
        spec.net = match server.ports.as_slice() {
            [] => Net::None,
            ports => Net::Tcp(ports.to_vec()),
        };
        spec.allow_system();
        spec.exec.extend(program.exec);
        spec.read.extend(server.read.iter().cloned());
        spec.args = server.args.iter().map(Into::into).collect();
        let scratch = run_dir.scratch.path();
        let home = scratch.to_string_lossy().into_owned();
        spec.env = vec![
            ("HOME".to_owned(), home.clone()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("PATH".to_owned(), SYSTEM_DIRS.join(":")),
            ("TMPDIR".to_owned(), home),
        ];
        if spec.net != Net::None {
            spec.env
                .push(("RES_OPTIONS".to_owned(), "use-vc".to_owned()));
        }
        let own = server.env.iter();
        spec.env
            .extend(own.map(|variable| (variable.0.clone(), variable.1.clone())));
        spec.cwd = scratch.to_owned();
        spec.scratch = Some(scratch.to_owned());
        let (wall, limits) = (ready.timeout(), &ready.policy.limits);
        spec.limits = Limits {
            wall,
            cpu: wall.saturating_mul(64),
            memory_bytes: limits.memory_mb.max(16).saturating_mul(1 << 20),
            processes: limits.processes.max(1),
            disk_bytes: limits.disk_mb.saturating_mul(1 << 20),
            files: limits.files,
            ..Limits::default()
        };
        talk(ready, &self.launcher(), &spec)
    }
}

fn talk(ready: &Ready<'_>, launcher: &kenning_jail::Launcher, spec: &Spec) -> Result<Answer> {
    let mut peer = kenning_jail::spawn(launcher, spec)?;
    let (stdin, stdout) = (peer.stdin.take(), peer.stdout.take());
    let stderr = peer.stderr.take();
    let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
        return Err(Error::internal("the program has no standard streams"));
    };
    let mut pipes = Pipes {
        stdin,
        stdout: BufReader::new(stdout),
    };
    let is_done = AtomicBool::new(false);
    let (answer, complaint) = std::thread::scope(|threads| {
        let complaint = threads.spawn(|| drained(stderr));
        threads.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                if ready.caller.check().is_err() {
                    return peer.kill();
                }
                std::thread::sleep(LOOK_EVERY);
            }
        });
        let answer = converse(ready, &mut pipes);
        is_done.store(true, Ordering::Relaxed);
        // A server may be slow to end when its input ends; it is killed.
        drop(pipes);
        peer.kill();
        (answer, complaint.join().unwrap_or_default())
    });
    let Err(error) = answer else {
        return answer;
    };
    ready.caller.check()?;
    let ended = peer.wait().map(|it| it.0);
    if ended.is_ok_and(|it| it == Exit::TimedOut) {
        return Err(Error::timeout("the MCP server did not answer in time")
            .hint("give the tool a longer `config.timeout`"));
    }
    let complaint = ready.permitted.redacted(complaint);
    let skipped = complaint
        .chars()
        .count()
        .saturating_sub(COMPLAINT_CHARS_SHOWN);
    let shown: String = complaint.chars().skip(skipped).collect();
    match shown.trim() {
        "" => Err(error),
        shown => Err(
            Error::new(error.code, format!("{}: {shown}", error.message))
                .hint("run the server by hand and read its output"),
        ),
    }
}

/// Reads everything, so that a server that writes much is not blocked; keeps the beginning.
fn drained(stderr: Option<PipeReader>) -> String {
    let Some(mut stderr) = stderr else {
        return String::new();
    };
    let mut kept = Vec::new();
    // What cannot be read is ignored.
    let _ = (&mut stderr)
        .take(COMPLAINT_BYTES_MAX)
        .read_to_end(&mut kept);
    let _ = std::io::copy(&mut stderr, &mut std::io::sink());
    String::from_utf8_lossy(&kept).into_owned()
}

struct Pipes {
    stdin: PipeWriter,
    stdout: BufReader<PipeReader>,
}

impl Pipes {
    fn send(&mut self, message: &Value) -> Result<()> {
        let line = format!("{message}\n");
        let sent = self.stdin.write_all(line.as_bytes());
        sent.and_then(|()| self.stdin.flush()).map_err(gone)
    }

    fn receive(&mut self) -> Result<Value> {
        loop {
            let mut line = Vec::new();
            let mut bounded = (&mut self.stdout).take(MESSAGE_BYTES_MAX);
            let n_bytes = bounded.read_until(b'\n', &mut line).map_err(gone)?;
            if n_bytes == 0 {
                return Err(gone(std::io::ErrorKind::UnexpectedEof.into()));
            }
            if n_bytes as u64 == MESSAGE_BYTES_MAX {
                return Err(Error::too_large(format!(
                    "the MCP server sent a message of more than {MESSAGE_BYTES_MAX} bytes"
                )));
            }
            // Some servers print a greeting before they speak the protocol.
            if let Ok(message) = serde_json::from_slice(&line) {
                return Ok(message);
            }
        }
    }
}

impl Connection for Pipes {
    fn ask(&mut self, id: u64, method: &str, params: Value) -> Result<Answer> {
        self.send(&request(id, method, &params))?;
        loop {
            let message = self.receive()?;
            if let Some(answer) = answer_to(id, &message) {
                return Ok(answer);
            }
            let theirs = message
                .get("id")
                .filter(|_| message.get("method").is_some());
            let Some(theirs) = theirs else { continue };
            // We offer no methods, but must answer, or the server would wait forever.
            let mut reply = json!({ "jsonrpc": "2.0", "id": theirs });
            if message["method"] == "ping" {
                reply["result"] = json!({});
            } else {
                reply["error"] = json!({ "code": METHOD_NOT_FOUND, "message": "method not found" });
            }
            self.send(&reply)?;
        }
    }

    fn tell(&mut self, method: &str) -> Result<()> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method }))
    }
}

fn gone(cause: std::io::Error) -> Error {
    Error::unavailable("the MCP server ended before it answered")
        .hint("run it by hand and read its output")
        .because(cause)
}
