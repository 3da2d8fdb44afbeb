//! One call: the caller, the deadline, and progress.

use crate::Principal;
use kenning_core::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The default time limit of a call.
pub const DEADLINE_DEFAULT: Duration = Duration::from_secs(60);

/// How long a call has waited before it began. It is subtracted from what it may wait for the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited(pub Duration);

/// Receives the progress of a long call: done so far, of how many, and a word about it.
pub type Progress = dyn Fn(f64, Option<f64>, &str) + Send + Sync;

/// One call.
#[derive(Clone)]
pub struct Caller {
    /// The caller.
    pub principal: Principal,
    /// The deadline.
    pub deadline: Instant,
    /// Set by the transport when the client went away or cancelled.
    pub cancelled: Arc<AtomicBool>,
    /// How long it has waited already, for authentication and for a slot.
    pub waited: Waited,
    /// Whether a person gave the command: at the command line, not over MCP or HTTP, where a model
    /// may call.
    pub is_person: bool,
    /// Where progress is reported, if anybody listens.
    pub progress: Option<Arc<Progress>>,
    /// The client's session, if the protocol has one: what is stored in it belongs together.
    pub session: Option<Arc<str>>,
    /// The most characters of an answer; `None` for one that goes to a file or a program and not to a
    /// model.
    pub answer_chars_max: Option<usize>,
}

/// Characters that a model can read at once: about 20,000 tokens, at four characters a token.
pub const ANSWER_CHARS_MAX: usize = 80_000;

impl Caller {
    /// A call with the default deadline.
    pub fn new(principal: Principal) -> Self {
        Self {
            principal,
            deadline: Instant::now() + DEADLINE_DEFAULT,
            cancelled: Arc::default(),
            waited: Waited::default(),
            progress: None,
            session: None,
            is_person: false,
            answer_chars_max: Some(ANSWER_CHARS_MAX),
        }
    }

    /// The same call, given by a person at the command line.
    #[must_use]
    pub fn by_person(mut self) -> Self {
        self.is_person = true;
        self
    }

    /// The same call, with a part of its time used.
    #[must_use]
    pub fn after(mut self, waited: Waited) -> Self {
        self.waited = waited;
        self
    }

    /// Long work calls this between steps: an error if the client went away or time is up.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::timeout("the call was cancelled"));
        }
        if Instant::now() >= self.deadline {
            return Err(Error::timeout("the deadline of the call passed")
                .hint("request less, or call again"));
        }
        Ok(())
    }

    /// Reports the progress of the call.
    pub fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        if let Some(progress) = &self.progress {
            progress(done, total, message);
        }
    }
}
