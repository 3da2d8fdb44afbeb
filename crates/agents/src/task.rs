//! A task that is being worked on, and the steps on its way.

use crate::Agents;
use crate::kinds::AgentKind;
use kenning_core::Result;
use kenning_kernel::Caller;
use kenning_llm::Usage;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// A step on the way.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) action: &'static str,
    pub(crate) duration: Duration,
    pub(crate) is_done: bool,
    pub(crate) at_ms: u64,
    pub(crate) metadata: Value,
}

/// A task that is being worked on: what work asks before each step.
pub(crate) struct Task<'a> {
    pub(crate) agents: &'a Agents,
    pub(crate) caller: &'a Caller,
    pub(crate) kind: AgentKind,
    pub(crate) text: &'a str,
    agent: &'a str,
    steps: RefCell<Vec<Step>>,
    usage: Cell<Usage>,
}

impl<'a> Task<'a> {
    pub(crate) fn new(
        agents: &'a Agents,
        caller: &'a Caller,
        kind: AgentKind,
        text: &'a str,
        agent: &'a str,
    ) -> Self {
        Self {
            agents,
            caller,
            kind,
            text,
            agent,
            steps: RefCell::default(),
            usage: Cell::default(),
        }
    }

    /// What was done, and what a model took for it.
    pub(crate) fn into_steps(self) -> (Vec<Step>, Usage) {
        (self.steps.into_inner(), self.usage.get())
    }

    /// Notes what a model took so far, so that it is known however the task ends.
    pub(crate) fn note_usage(&self, usage: Usage) {
        self.usage.set(usage);
    }

    /// An error if time is up or somebody wants it to end.
    pub(crate) fn check(&self) -> Result<()> {
        self.caller.check()?;
        self.agents.check_cancelled(self.caller, self.agent)
    }

    /// Does a step, and remembers it.
    pub(crate) fn step<T>(
        &self,
        action: &'static str,
        work: impl FnOnce() -> Result<T>,
        about: impl FnOnce(&T) -> Value,
    ) -> Result<T> {
        self.check()?;
        let n = self.steps.borrow().len();
        self.caller.progress(n as f64, None, action);
        let (began, at_ms) = (Instant::now(), self.agents.kernel.log().clock().now_ms());
        let done = work();
        self.steps.borrow_mut().push(Step {
            action,
            duration: began.elapsed(),
            is_done: done.is_ok(),
            at_ms,
            metadata: match &done {
                Ok(done) => about(done),
                Err(error) => json!({ "error": error.message }),
            },
        });
        done
    }
}
