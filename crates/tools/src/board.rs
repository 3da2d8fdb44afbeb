//! The board as a server shows it: the selected tools over one engine.

use crate::{AnyTool, Call, Effect, Reply, Selection, TOOLS, envelope};
use kenning_core::{Error, Result};
use kenning_engine::{Caller, Engine};
use serde_json::Value;
use std::sync::Arc;

/// The selected tools over one engine. Cheap to clone.
#[derive(Clone)]
pub struct Board {
    engine: Arc<Engine>,
    listed: Arc<[&'static dyn AnyTool]>,
    selection: Arc<Selection>,
}

impl Board {
    /// The tools that the selection names; an error names what does not exist.
    pub fn new(engine: Arc<Engine>, selection: Selection) -> Result<Self> {
        let listed = selection.listed()?.into();
        Ok(Self {
            engine,
            listed,
            selection: Arc::new(selection),
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

    /// A listed tool by its name.
    pub fn find(&self, name: &str) -> Option<&'static dyn AnyTool> {
        self.listed.iter().copied().find(|tool| tool.name() == name)
    }

    /// Calls a tool; `None` when no tool of that name is listed.
    ///
    /// This blocks: doors call it on a thread that may wait.
    pub fn call(&self, name: &str, arguments: Value, caller: &Caller) -> Option<Reply> {
        let tool = self.find(name).or_else(|| self.hidden_by_read_only(name))?;
        if let Err(error) = self.permit(tool, caller) {
            return Some(envelope::wrap(tool.toolset(), Err(error)));
        }
        Some(tool.call(
            &Call {
                engine: &self.engine,
                caller,
            },
            arguments,
        ))
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
