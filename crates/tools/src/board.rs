//! The tool table of a server: the selected tools over one engine.

use crate::default_set::runs_others;
use crate::metrics::Metrics;
use crate::slots::Slots;
use crate::{
    AnyTool, Call, Effect, OtherTools, Reply, Selection, TOOLS, Toolset, envelope, input, near,
    pages,
};
use kenning_core::{Code, Did, Error, Result};
use kenning_engine::kami::{FoundTool, ToolFunction};
use kenning_engine::{Caller, Engine, Scope, on_behalf_of};
use serde_json::{Value, json};
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
    slots: Arc<Slots>,
}

impl Board {
    /// Selects tools; an error names what does not exist.
    pub fn new(engine: Arc<Engine>, selection: Selection) -> Result<Self> {
        let listed = selection.listed()?.into();
        let (selection, metrics) = (Arc::new(selection), Arc::default());
        Ok(Self {
            engine,
            listed,
            selection,
            metrics,
            slots: Arc::default(),
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

    /// The slots for calls, shared by all transports.
    pub fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    /// Counts of calls, errors and times.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The installed tools that are listed, with their names.
    ///
    /// This blocks, as [`Board::call`] does.
    pub fn installed(&self, caller: &Caller) -> Vec<ToolFunction> {
        let all = self
            .engine
            .kami()
            .tool_functions(caller)
            .unwrap_or_else(|error| {
                // An installed tool that cannot be read hides no other tool.
                tracing::warn!("the installed tools cannot be listed: {error}");
                Vec::new()
            });
        let shown = all
            .into_iter()
            .filter(|it| self.selection.shows_installed(it));
        if !self.selection.safe_names {
            return shown.collect();
        }
        let named = shown.map(|mut it| {
            // A name of the table means that tool, listed or not.
            if let Some(safe) = it.safe_names.iter().find(|name| !is_ours(name)) {
                it.name = safe.clone();
            }
            it
        });
        named.collect()
    }

    /// Whether an installed tool of this name can be called here.
    ///
    /// This blocks, as [`Board::call`] does.
    pub fn has_installed(&self, name: &str, caller: &Caller) -> bool {
        let found = self.find_installed(name, caller).ok().flatten();
        let function = found.as_ref().and_then(FoundTool::function);
        function.is_some_and(|it| self.selection.shows_installed(it))
    }

    /// Calls an installed tool; `None` if there is none with that name.
    fn call_installed(&self, name: &str, arguments: &Value, caller: &Caller) -> Option<Reply> {
        let found = self.find_installed(name, caller).ok().flatten()?;
        // A tool that only `--read-only` hides is refused with the reason instead of being unknown.
        if !self.selection.read_only && !self.selection.shows_installed(found.function()?) {
            return None;
        }
        let began = Instant::now();
        let run = || {
            if self.selection.read_only {
                return Err(Error::denied(format!("`{name}` runs a program"))
                    .hint("this server was started with `--read-only`"));
            }
            input::check_depth(arguments)?;
            let input = if arguments.is_null() {
                "{}".to_owned()
            } else {
                arguments.to_string()
            };
            self.engine.kami().run_found_tool(caller, &found, &input)
        };
        let reply = match run() {
            Ok(run) => envelope::kami(run),
            Err(error) if error.code == Code::Internal => {
                let error = hide_internal(&error, name);
                envelope::wrap(Toolset::Kami, Err(error), began.elapsed())
            }
            Err(error) => envelope::wrap(Toolset::Kami, Err(error), began.elapsed()),
        };
        let reply = bounded(reply, caller.answer_chars_max);
        self.metrics
            .record("wasm", began.elapsed(), reply.is_error());
        Some(reply)
    }

    /// A listed tool by its name.
    pub fn find(&self, name: &str) -> Option<&'static dyn AnyTool> {
        self.listed.iter().copied().find(|tool| tool.name() == name)
    }

    /// Calls a tool; `None` if no tool with that name is listed.
    ///
    /// This blocks: transports call it on a thread that may wait. A panic in the tool is caught,
    /// logged and answered as `internal`.
    pub fn call(&self, name: &str, arguments: Value, caller: &Caller) -> Option<Reply> {
        let Some(tool) = self.find(name).or_else(|| self.hidden_by_read_only(name)) else {
            return self.call_installed(name, &arguments, caller);
        };
        Some(self.call_reachable(tool, arguments, caller))
    }

    /// The reply to a call that was not even tried.
    pub fn refused(&self, name: &str, error: Error) -> Reply {
        let toolset = self.find(name).map_or(Toolset::Kami, |it| it.toolset());
        envelope::wrap(toolset, Err(error), Duration::ZERO)
    }

    /// Listed tools with names similar to an unknown one.
    pub fn near(&self, name: &str) -> Vec<String> {
        near::names(name, self.listed.iter().map(|it| it.name().to_owned()))
    }

    /// The agent whose identifier the events of a call carry. What only looks needs none.
    fn agent_of(&self, tool: &dyn AnyTool, caller: &Caller) -> Result<Option<Did>> {
        if tool.effect() == Effect::Read {
            return Ok(None);
        }
        self.engine.agent_of(caller)
    }

    /// A tool that only `--read-only` hides is refused with the reason instead of being unknown.
    fn hidden_by_read_only(&self, name: &str) -> Option<&'static dyn AnyTool> {
        let tool = TOOLS.iter().copied().find(|tool| tool.name() == name)?;
        (self.selection.read_only && tool.effect() != Effect::Read).then_some(tool)
    }

    fn permit(&self, tool: &dyn AnyTool, arguments: &Value, caller: &Caller) -> Result<()> {
        // For some tools only some calls change data.
        let changes = tool.effect() != Effect::Read && tool.scope(arguments) != Scope::Read;
        if self.selection.read_only && changes {
            return Err(Error::denied(format!("`{}` changes data", tool.name()))
                .hint("this server was started with `--read-only`"));
        }
        caller.principal.require(tool.scope(arguments))?;
        caller.check()
    }
}

impl OtherTools for Board {
    fn all(&self) -> &'static [&'static dyn AnyTool] {
        TOOLS
    }

    /// Whether a tool can be called through another one, even if it is not listed.
    fn reaches(&self, tool: &dyn AnyTool) -> bool {
        let excluded = &self.selection.exclude_tools;
        !excluded.iter().any(|it| it == tool.name())
            && (!self.selection.read_only || tool.effect() == Effect::Read)
    }

    /// Whether an installed tool can be called through another one.
    fn reaches_installed(&self, tool: &ToolFunction) -> bool {
        !self.selection.read_only && !self.selection.excludes_installed(tool)
    }

    /// A tool that can be called through another one.
    fn reachable(&self, name: &str) -> Option<&'static dyn AnyTool> {
        let found = TOOLS.iter().copied().find(|tool| tool.name() == name);
        // A tool that runs others could run itself forever.
        found.filter(|tool| self.reaches(*tool) && !runs_others(*tool))
    }

    /// Whether few tools are listed because the others are found and run through them.
    fn is_lean(&self) -> bool {
        let listed = &self.listed;
        self.selection.reaches_others() || listed.iter().all(|it| it.toolset() == Toolset::Kiwi)
    }

    fn is_listed(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The names of all tools that can be called through another one.
    ///
    /// This blocks, as [`Board::call`] does.
    fn tool_names(&self, caller: &Caller) -> Vec<String> {
        let own = TOOLS
            .iter()
            .filter(|it| self.reachable(it.name()).is_some());
        let own = own.map(|it| it.name().to_owned());
        let installed = self.installed(caller).into_iter().map(|it| it.name);
        own.chain(installed).collect()
    }

    /// Calls a tool of the table under its own permissions.
    fn call_reachable(
        &self,
        tool: &'static dyn AnyTool,
        mut arguments: Value,
        caller: &Caller,
    ) -> Reply {
        let began = Instant::now();
        let permitted = self
            .permit(tool, &arguments, caller)
            .and_then(|()| input::check_depth(&arguments))
            .and_then(|()| pages::take_cursor(tool.effect(), &mut arguments));
        let reply = match permitted {
            Err(error) => envelope::wrap(tool.toolset(), Err(error), began.elapsed()),
            Ok(cursor) => {
                let call = Call {
                    engine: &self.engine,
                    caller,
                    others: self,
                    remarks: RefCell::default(),
                    details: RefCell::default(),
                    cursor,
                    windows: RefCell::default(),
                };
                // Whoever has a token is looked up by name first: that wait is part of the call's.
                let work = || match self.agent_of(tool, caller) {
                    Ok(agent) => on_behalf_of(agent, || tool.call(&call, arguments)),
                    Err(error) => envelope::wrap(tool.toolset(), Err(error), began.elapsed()),
                };
                let work = || self.engine.with_wait_limit(caller.waited, work);
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
        let reply = bounded(reply, caller.answer_chars_max);
        self.metrics
            .record(tool.name(), began.elapsed(), reply.is_error());
        reply
    }

    fn installed(&self, caller: &Caller) -> Vec<ToolFunction> {
        Self::installed(self, caller)
    }

    /// The installed tool with a name. A name of the table is never that of an installed tool, so
    /// that a call of a tool that is not listed here never reaches another one.
    fn find_installed(&self, name: &str, caller: &Caller) -> Result<Option<FoundTool>> {
        if is_ours(name) {
            return Ok(None);
        }
        self.engine.kami().find_tool(caller, name)
    }

    fn metrics(&self) -> &Metrics {
        Self::metrics(self)
    }
}

/// Whether a tool of the table has this name.
fn is_ours(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name() == name)
}

/// Cuts texts of errors and of installed tools, which have no cursor, to what can be read at once.
fn bounded(mut reply: Reply, chars_max: Option<usize>) -> Reply {
    let Some(remark) = pages::fit_text(&mut reply.text, chars_max) else {
        return reply;
    };
    // The same again as a structure would be as long.
    if !reply.is_error() {
        reply.value = None;
    }
    if let Some(error) = &mut reply.error {
        pages::fit_text(&mut error.message, chars_max);
    }
    reply.remarks.push(remark);
    reply
}

/// The listing entry of an installed tool, in the same form as those of the table.
pub fn installed_summary(tool: &ToolFunction) -> Value {
    json!({
        "name": tool.name, "title": tool.title, "toolset": Toolset::Kami.as_str(),
        "effect": Effect::Run.as_str(), "description": tool.description,
        "inputSchema": tool.input_schema,
    })
}

/// Replaces an internal error by a number, under which the log has the details.
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

/// Logs an internal error under a number and returns the error that a caller may see.
pub fn hide_internal(error: &Error, during: &str) -> Error {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // Differs between runs, and needs no clock.
    let id = format!("{:016x}", RandomState::new().hash_one(count));
    let source = error
        .source
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    tracing::error!("internal error {id} during {during}: {error} [{source}]");
    Error::internal(format!("internal error {id}")).hint("the log has more under this number")
}
