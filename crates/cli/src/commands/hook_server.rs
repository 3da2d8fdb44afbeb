//! Hooks answered by a process that runs already.
//!
//! `kenning mcp` and `kenning serve` have the index in memory; a hook that starts would have to read it.
//! So each of them listens on a socket in the data directory, which only its owner can reach, and a hook
//! asks there first. The name of the socket tells space, files, store and version: a server of anything
//! else is not asked. A request and its answer are one line of JSON each.

use super::hook::{Asked, INPUT_BYTES_MAX, Said, TURNS, take_turn};
use crate::Settings;
use kenning_core::{Code, Error, Hash, Result};
use kenning_engine::Engine;
use kenning_vault::Dir;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The directory of the sockets, in the data directory.
const FOLDER: &str = "serving";

/// A hook that sends no request holds a thread at most this long.
const READ_WAIT: Duration = Duration::from_secs(2);

/// At most this many hooks are answered at once; others are refused, and do the work themselves.
const HOOKS_MAX: usize = 8;

/// A hook gets its answer within this time, or no longer wants it.
const BUDGET_MAX: Duration = Duration::from_secs(60);

/// Answers hooks until it is dropped.
pub struct HookServer {
    dir: Dir,
    name: String,
}

impl HookServer {
    /// Answers the hooks of these settings from now on. If that fails, the server runs anyway: hooks
    /// then do the work themselves.
    pub fn start(engine: &Arc<Engine>, settings: &Settings) -> Result<Self> {
        let dir = Dir::create(&settings.data)?.private_subdir(FOLDER)?;
        let name = format!("{}-{}.sock", fingerprint(settings), std::process::id());
        // Left by a killed process with the same id.
        drop(dir.remove_socket(&name));
        let listener = dir.listen(&name)?;
        // Waiting for a hook must not keep the store open.
        let (engine, settings) = (Arc::downgrade(engine), settings.clone());
        std::thread::spawn(move || listen(&listener, &engine, &settings));
        Ok(Self { dir, name })
    }
}

impl Drop for HookServer {
    fn drop(&mut self) {
        // A later hook finds nobody here, and removes it.
        drop(self.dir.remove_socket(&self.name));
    }
}

fn listen(listener: &UnixListener, engine: &Weak<Engine>, settings: &Settings) {
    let busy = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let (Ok(stream), Some(engine)) = (stream, engine.upgrade()) else {
            return;
        };
        if busy.fetch_add(1, Ordering::AcqRel) >= HOOKS_MAX {
            busy.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let (busy, settings) = (Arc::clone(&busy), settings.clone());
        std::thread::spawn(move || {
            // A hook that went away needs no answer.
            drop(answer(&stream, &engine, &settings));
            busy.fetch_sub(1, Ordering::AcqRel);
        });
    }
}

fn answer(stream: &UnixStream, engine: &Engine, settings: &Settings) -> std::io::Result<()> {
    stream.set_read_timeout(Some(READ_WAIT))?;
    let mut line = String::new();
    BufReader::new(stream.take(2 * INPUT_BYTES_MAX)).read_line(&mut line)?;
    let mut request: Value = serde_json::from_str(&line)?;
    let turn = TURNS.iter().find(|it| request["turn"] == it.name);
    let Some(turn) = turn else { return Ok(()) };
    let budget = Duration::from_millis(request["budget_ms"].as_u64().unwrap_or(0));
    let until = Instant::now() + budget.min(BUDGET_MAX);
    let asked = Asked {
        project: serde_json::from_value(request["project"].take()).unwrap_or_default(),
        message: request["input"].take(),
    };
    take_turn(engine, settings, turn, asked, until, |said| {
        let line = match said {
            Ok(said) => json!({ "context": said.context, "far_behind": said.is_far_behind }),
            Err(error) => json!({ "error": error.message }),
        };
        // As above.
        let mut stream = stream;
        drop(writeln!(stream, "{line}"));
    });
    Ok(())
}

/// Asks a running server; `None` if there is none, or it refuses.
pub(super) fn ask(
    settings: &Settings,
    turn: &str,
    asked: &Asked,
    until: Instant,
) -> Option<Result<Said>> {
    let dir = Dir::open(&settings.data).ok()?.subdir(FOLDER).ok()?;
    let prefix = format!("{}-", fingerprint(settings));
    let names = dir.list("").ok()?.into_iter().map(|it| it.name);
    for name in names.filter(|it| it.starts_with(&prefix)) {
        match dir.connect(&name) {
            Ok(stream) => {
                if let Some(said) = ask_at(&stream, turn, asked, until) {
                    return Some(said);
                }
            }
            // Left by a process that was killed.
            Err(error) if error.code == Code::Unavailable => drop(dir.remove_socket(&name)),
            Err(_) => {}
        }
    }
    None
}

fn ask_at(stream: &UnixStream, turn: &str, asked: &Asked, until: Instant) -> Option<Result<Said>> {
    let left = until.saturating_duration_since(Instant::now());
    let budget_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
    let request = json!({
        "turn": turn, "input": asked.message, "project": asked.project, "budget_ms": budget_ms,
    });
    let mut writer = stream;
    writeln!(writer, "{request}").ok()?;
    // A server that accepted the question answers in time or not at all, and the hook says so.
    stream
        .set_read_timeout(Some(left.max(Duration::from_millis(1))))
        .ok()?;
    let mut line = String::new();
    let mut reader = BufReader::new(stream.take(INPUT_BYTES_MAX));
    reader.read_line(&mut line).ok()?;
    let answer: Value = serde_json::from_str(&line).ok()?;
    if let Some(message) = answer["error"].as_str() {
        return Some(Err(Error::unavailable(message)));
    }
    Some(Ok(Said {
        context: answer["context"].as_str()?.to_owned(),
        is_far_behind: answer["far_behind"] == true,
    }))
}

/// What a server and a hook must have in common.
fn fingerprint(settings: &Settings) -> String {
    let database = settings.database.as_ref().map(|it| it.0.as_str());
    let parts = json!([
        env!("CARGO_PKG_VERSION"),
        settings.space.as_str(),
        settings.omi,
        database,
        settings.selection.read_only,
    ]);
    Hash::of(parts.to_string().as_bytes()).to_string()[..16].to_owned()
}
