//! One call: who makes it, until when, and how to say how far it is.

use crate::Principal;
use kenning_core::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a call may take when its door says nothing else.
pub const DEADLINE_DEFAULT: Duration = Duration::from_secs(60);

/// How long a call has waited before it began. It is taken off what it may wait for the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited(pub Duration);

/// Told how far a long call is: done so far, of how many, and a word about it.
pub type Progress = dyn Fn(f64, Option<f64>, &str) + Send + Sync;

/// One call.
#[derive(Clone)]
pub struct Caller {
    /// Who.
    pub principal: Principal,
    /// Until when.
    pub deadline: Instant,
    /// Set by the door when the client went away or asked to stop.
    pub cancelled: Arc<AtomicBool>,
    /// How long its door has waited already, to find out who calls and for a place in line.
    pub waited: Waited,
    /// Whether a person gave the command: at the command line, not over MCP or HTTP, where it may be a
    /// model that calls.
    pub is_person: bool,
    /// Where progress goes, if anybody listens.
    pub progress: Option<Arc<Progress>>,
    /// The client's session, where the protocol has one: what is stored in it belongs together.
    pub session: Option<Arc<str>>,
    /// How long an answer may be; `None` for one that goes to a file or a program and not to a model.
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

    /// The same call, of which a part of the time is gone.
    #[must_use]
    pub fn after(mut self, waited: Waited) -> Self {
        self.waited = waited;
        self
    }

    /// Long work asks this between steps: an error when the client went away or time is up.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::timeout("the call was cancelled"));
        }
        if Instant::now() >= self.deadline {
            return Err(Error::timeout("the deadline of the call passed")
                .hint("ask for less, or call again"));
        }
        Ok(())
    }

    /// Says how far the call is.
    pub fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        if let Some(progress) = &self.progress {
            progress(done, total, message);
        }
    }
}
