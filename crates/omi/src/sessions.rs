//! Sessions of an agent: when they began, when they ended, what was last worked on.
//!
//! A running session is a row, so that another process can end it; its beginning and its end are
//! events.

use crate::{IntegrityScope, Omi};
use kenning_core::{Error, Result};
use kenning_kernel::{Bucket, Caller, Scope};
use kenning_memory::{daily, stamp};
use kenning_store::ReadTx;
use kenning_text::hex::Hex;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The key-value bucket of running sessions.
const SESSIONS: Bucket<Began> = Bucket::new("sessions");

/// When a session began.
#[derive(Serialize, Deserialize)]
struct Began {
    started_ms: u64,
}

/// The longest name that a client may give its session.
const ID_BYTES_MAX: usize = 200;

/// A session that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStarted {
    /// Its name.
    pub id: String,
    /// How many memories there are.
    pub memory_count: u64,
    /// Whether NOW.md is unchanged; `None` if the configuration asks for no check.
    pub now_integrity: Option<bool>,
}

/// A session that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionEnded {
    /// Its name.
    pub id: String,
    /// Its duration; `None` if its beginning is not known.
    pub duration_seconds: Option<f64>,
    /// The daily log with the entry about it.
    pub log: String,
}

impl Omi {
    /// Begins a session, under the client's name for it or a new one.
    pub fn session_start(&self, caller: &Caller, id: Option<&str>) -> Result<SessionStarted> {
        caller.principal.require(Scope::Write)?;
        self.kernel
            .with_wait_limit(caller.waited, || self.begin(caller, id))
    }

    fn begin(&self, caller: &Caller, id: Option<&str>) -> Result<SessionStarted> {
        let id = self.session_id(id)?;
        let now_integrity = if self.kernel.memory_config()?.integrity_check_on_start {
            let found = self.check_integrity(caller, IntegrityScope::Now)?;
            Some(found.now_md)
        } else {
            None
        };
        let space = &caller.principal.space;
        let memory_count = self.memory_count(caller)?;
        let started = SessionStarted {
            id,
            memory_count,
            now_integrity,
        };
        let session = started.clone();
        self.kernel.log().write(space, move |tx| {
            let started_ms = tx.now().ms();
            SESSIONS.set(tx, &session.id, &Began { started_ms })?;
            let data = json!({
                "session_id": session.id, "memory_count": session.memory_count,
                "now_integrity": session.now_integrity,
            });
            tx.record("SessionStartedEvent", data).map(drop)
        })?;
        Ok(started)
    }

    /// Ends a session, the latest one if none is named, and says so in the daily log.
    pub fn session_end(&self, caller: &Caller, id: Option<&str>) -> Result<SessionEnded> {
        caller.principal.require(Scope::Write)?;
        self.kernel
            .with_wait_limit(caller.waited, || self.end(caller, id))
    }

    fn end(&self, caller: &Caller, id: Option<&str>) -> Result<SessionEnded> {
        let id = match id {
            Some(id) => checked(id)?.to_owned(),
            None => match self.latest_session(caller)? {
                Some(id) => id,
                None => self.session_id(None)?,
            },
        };
        let task = self.now_read(caller)?.map(|it| it.task);
        let task = task.filter(|it| !it.trim().is_empty());
        let at = stamp::iso(self.local_now());
        let task = task.as_deref().unwrap_or("none");
        let log = self.daily_append(caller, &daily::session_end(&at, task))?;
        let name = id.clone();
        let duration_seconds = self
            .kernel
            .log()
            .write(&caller.principal.space, move |tx| {
                let began = SESSIONS.get_readable(&**tx, &name)?;
                let began = began.map(|it| it.started_ms);
                #[expect(clippy::cast_precision_loss, reason = "a span of time")]
                let duration = began.map(|it| tx.now().ms().saturating_sub(it) as f64 / 1_000.0);
                if began.is_some() {
                    SESSIONS.unset(tx, &name)?;
                }
                let data = json!({ "session_id": name, "duration_seconds": duration });
                tx.record("SessionEndedEvent", data)?;
                Ok(duration)
            })?;
        Ok(SessionEnded {
            id,
            duration_seconds,
            log,
        })
    }

    /// Whether there is a context directory or a memory.
    pub fn has_context(&self, caller: &Caller) -> Result<bool> {
        let omi = self.kernel.omi();
        let there = omi.is_named() && omi.existing(&caller.principal.space)?.is_some();
        Ok(there || self.memory_count(caller)? > 0)
    }

    fn latest_session(&self, caller: &Caller) -> Result<Option<String>> {
        let space = &caller.principal.space;
        let running = |tx: &dyn ReadTx| SESSIONS.list_readable(tx);
        let running = self.kernel.log().read(space, running)?.into_iter();
        let latest = running.max_by_key(|(_, began)| began.started_ms);
        Ok(latest.map(|it| it.0))
    }

    fn session_id(&self, given: Option<&str>) -> Result<String> {
        if let Some(id) = given {
            return checked(id).map(str::to_owned);
        }
        Ok(self.new_session_id())
    }

    /// A new, unique name for a session.
    pub fn new_session_id(&self) -> String {
        let mut bytes = [0; 12];
        self.kernel.log().random().fill(&mut bytes);
        format!("session_{}", Hex(&bytes))
    }
}

pub(crate) fn checked(id: &str) -> Result<&str> {
    let good = |c: char| !c.is_control() && !c.is_whitespace();
    if id.is_empty() || id.len() > ID_BYTES_MAX || !id.chars().all(good) {
        return Err(
            Error::invalid(format!("`session_id`: {id:?} is not a valid id")).hint(format!(
                "use 1 to {ID_BYTES_MAX} bytes without spaces, or leave it out"
            )),
        );
    }
    Ok(id)
}
