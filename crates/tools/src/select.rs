//! Selects the tools that a server lists.

use crate::default_set::{self, DEFAULT};
use crate::{AnyTool, Effect, TOOLS, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::kami::ToolFunction;

/// The values of `--toolsets`, `--tools`, `--exclude-tools` and `--read-only`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Toolsets to list; empty means all that are on by default. The words `all`, `contracts`, `default` and `lean`
    /// are accepted too.
    pub toolsets: Vec<String>,
    /// Single tools to list, in addition to the named toolsets; without toolsets, only these.
    pub tools: Vec<String>,
    /// Tools to hide.
    pub exclude_tools: Vec<String>,
    /// Only tools that change nothing.
    pub read_only: bool,
    /// Whether installed tools are listed under names without dots, for clients that do not accept
    /// dots.
    pub safe_names: bool,
}

/// The few tools through which every other can be found and run.
const LEAN: &str = "lean";
/// The tools that the contracts name.
const CONTRACTS: &str = "contracts";
/// Every tool.
const ALL: &str = "all";

/// What may be named beside the toolsets.
const WORDS: [&str; 4] = [ALL, CONTRACTS, DEFAULT, LEAN];

impl Selection {
    /// What a model is shown if nobody chose: the default set, unless a toolset or a tool is named.
    #[must_use]
    pub fn or_default_set(mut self) -> Self {
        if self.toolsets.is_empty() && self.tools.is_empty() {
            self.toolsets.push(DEFAULT.to_owned());
        }
        self
    }

    /// Whether only the default set is listed: then entries are as short as they can be.
    pub fn is_default_set(&self) -> bool {
        self.toolsets == [DEFAULT]
    }

    /// Whether few tools are listed because the others are found and run through them.
    pub fn reaches_others(&self) -> bool {
        self.names(LEAN) || self.names(DEFAULT)
    }

    fn names(&self, word: &str) -> bool {
        self.toolsets.iter().any(|it| it == word)
    }

    fn is_empty(&self) -> bool {
        self.toolsets.is_empty() && self.tools.is_empty()
    }

    /// Whether a tool is of something that is named, apart from its own name.
    fn has_tool(&self, toolset: Toolset, name: &str) -> bool {
        (self.is_empty() && toolset.is_on_by_default())
            || self.names(ALL)
            || self.names(toolset.as_str())
            || (self.names(CONTRACTS) && toolset.is_of_contracts())
            || (self.names(DEFAULT) && default_set::entry(name).is_some())
            || (self.names(LEAN) && (toolset == Toolset::Kiwi || name == default_set::READS))
    }

    /// Whether a toolset is selected, listed or not.
    pub fn has(&self, toolset: Toolset) -> bool {
        self.has_tool(toolset, "") || (self.names(DEFAULT) && toolset == Toolset::Kiwi)
    }

    /// The tools that are shown, in the order of the table.
    pub fn listed(&self) -> Result<Vec<&'static dyn AnyTool>> {
        for name in &self.toolsets {
            let known = Toolset::ALL.iter().any(|it| it.as_str() == name);
            if !known && !WORDS.contains(&name.as_str()) {
                let names: Vec<_> = Toolset::ALL.iter().map(|it| it.as_str()).collect();
                return Err(Error::invalid(format!("no toolset `{name}`")).hint(format!(
                    "the toolsets are {}; `default` lists a dozen tools that reach all others, `lean` only those that \
                     reach, `contracts` what the contracts name, `all` every tool",
                    names.join(", ")
                )));
            }
        }
        for name in self.tools.iter().chain(&self.exclude_tools) {
            // An installed tool has a dot in its name, and may be installed later.
            let may_be_installed = name.contains('.') || (self.safe_names && name.contains('_'));
            if !may_be_installed && !TOOLS.iter().any(|tool| tool.name() == name) {
                return Err(
                    Error::invalid(format!("no tool `{name}`")).hint("`kenning tools` lists them")
                );
            }
        }
        Ok(TOOLS
            .iter()
            .copied()
            .filter(|tool| self.shows(*tool))
            .collect())
    }

    /// Whether an installed tool is shown.
    pub(crate) fn shows_installed(&self, tool: &ToolFunction) -> bool {
        // What somebody installed is meant to be used: it is listed beside the default set too.
        let by_toolset = self.has_tool(Toolset::Kami, "") || self.names(DEFAULT);
        (by_toolset || names_installed(&self.tools, tool))
            && !self.excludes_installed(tool)
            && !self.read_only
    }

    /// Whether an installed tool is hidden by its id or by any name that it is called by.
    pub(crate) fn excludes_installed(&self, tool: &ToolFunction) -> bool {
        names_installed(&self.exclude_tools, tool)
    }

    fn shows(&self, tool: &dyn AnyTool) -> bool {
        let named = |names: &[String], name: &str| names.iter().any(|it| it == name);
        (self.has_tool(tool.toolset(), tool.name()) || named(&self.tools, tool.name()))
            && !named(&self.exclude_tools, tool.name())
            && (!self.read_only || tool.effect() == Effect::Read)
    }
}

fn names_installed(list: &[String], tool: &ToolFunction) -> bool {
    // A name of the table means that tool, whatever an installed one is called.
    let is_ours = |name: &String| TOOLS.iter().any(|it| it.name() == name);
    let is_safe_name = |it: &String| tool.safe_names.contains(it) && !is_ours(it);
    list.iter()
        .any(|it| *it == tool.name || *it == tool.tool || is_safe_name(it))
}
