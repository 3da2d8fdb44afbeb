//! The board as a server shows it: the selected tools over one engine.

use crate::metrics::Metrics;
use crate::{AnyTool, Call, Effect, Reply, Selection, TOOLS, envelope};
use kenning_core::{Code, Error, Result};
use kenning_engine::{Caller, Engine};
use serde_json::Value;
use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The selected tools over one engine. Cheap to clone.
#[derive(Clone)]
pub struct Board {
    engine: Arc<Engine>,
    listed: Arc<[&'static dyn AnyTool]>,
    selection: Arc<Selection>,
    metrics: Arc<Metrics>,
}

impl Board {
    /// The tools that the selection names; an error names what does not exist.
    pub fn new(engine: Arc<Engine>, selection: Selection) -> Result<Self> {
        let listed = selection.listed()?.into();
        let (selection, metrics) = (Arc::new(selection), Arc::default());
        Ok(Self {
            engine,
            listed,
            selection,
            metrics,
        })
    }

    /// The tools, in the order of the table.
    pub fn listed(&self) -> &[&'static dyn AnyTool] {
        &self.listed
    }

    /// What was selected.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// What was called, how often, how long it took.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// A listed tool by its name.
    pub fn find(&self, name: &str) -> Option<&'static dyn AnyTool> {
        self.listed.iter().copied().find(|tool| tool.name() == name)
    }

    /// Calls a tool; `None` when no tool of that name is listed.
    ///
    /// This blocks: doors call it on a thread that may wait. A panic in the tool is caught, logged
    /// and answered as `internal`.
    pub fn call(&self, name: &str, arguments: Value, caller: &Caller) -> Option<Reply> {
        let tool = self.find(name).or_else(|| self.hidden_by_read_only(name))?;
        let began = Instant::now();
        let reply = match self.permit(tool, caller) {
            Err(error) => envelope::wrap(tool.toolset(), Err(error), began.elapsed()),
            Ok(()) => {
                let call = Call {
                    engine: &self.engine,
                    caller,
                    remarks: RefCell::default(),
                };
                let work = || {
                    self.engine
                        .patiently(caller.waited, || tool.call(&call, arguments))
                };
                let done = catch_unwind(AssertUnwindSafe(work));
                done.unwrap_or_else(|panic| {
                    let text = panic.downcast_ref::<String>().cloned();
                    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).into()));
                    let error =
                        Error::internal("a tool panicked").because(text.unwrap_or_default());
                    envelope::wrap(tool.toolset(), Err(error), began.elapsed())
                })
            }
        };
        let reply = with_log_id(tool, reply, began.elapsed());
        self.metrics
            .record(tool.name(), began.elapsed(), reply.is_error());
        Some(reply)
    }

    /// A tool that only `--read-only` hides is refused with the reason, not called unknown.
    fn hidden_by_read_only(&self, name: &str) -> Option<&'static dyn AnyTool> {
        let tool = TOOLS.iter().copied().find(|tool| tool.name() == name)?;
        (self.selection.read_only && tool.effect() != Effect::Read).then_some(tool)
    }

    fn permit(&self, tool: &dyn AnyTool, caller: &Caller) -> Result<()> {
        if self.selection.read_only && tool.effect() != Effect::Read {
            return Err(Error::denied(format!("`{}` changes things", tool.name()))
                .hint("this server was started with `--read-only`"));
        }
        caller.principal.require(tool.effect().scope())?;
        caller.check()
    }
}

/// Our own faults say nothing but a number, which the log explains.
fn with_log_id(tool: &dyn AnyTool, reply: Reply, took: Duration) -> Reply {
    match &reply.error {
        Some(error) if error.code == Code::Internal => {
            let error = hide_internal(error, tool.name());
            envelope::wrap(tool.toolset(), Err(error), took)
        }
        Some(error) => {
            let source = error
                .source
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            tracing::debug!("{}: {}: {error} [{source}]", tool.name(), error.code);
            reply
        }
        None => reply,
    }
}

/// Logs an internal error under a number and gives the error that a caller may see.
pub fn hide_internal(error: &Error, during: &str) -> Error {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // Differs from those of other runs, and needs no clock.
    let id = format!("{:016x}", RandomState::new().hash_one(count));
    let source = error
        .source
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    tracing::error!("internal error {id} during {during}: {error} [{source}]");
    Error::internal(format!("internal error {id}")).hint("the log has more under this number")
}
