//! Selects the tools that a server lists.

use crate::{AnyTool, Effect, TOOLS, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::kami::ToolFunction;

/// The values of `--toolsets`, `--tools`, `--exclude-tools` and `--read-only`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Toolsets to list; empty means all that are on by default. `all` is accepted too.
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

/// Four tools through which every other can be found and run.
const LEAN: &str = "lean";

impl Selection {
    /// Whether a toolset is selected, listed or not.
    pub fn has(&self, toolset: Toolset) -> bool {
        let named = |name: &str| self.toolsets.iter().any(|it| it == name);
        let everything = self.toolsets.is_empty() && self.tools.is_empty();
        (everything && toolset.is_on_by_default())
            || named("all")
            || named(toolset.as_str())
            || (named(LEAN) && toolset == Toolset::Kiwi)
    }

    /// The tools that are shown, in the order of the table.
    pub fn listed(&self) -> Result<Vec<&'static dyn AnyTool>> {
        for name in &self.toolsets {
            let known = Toolset::ALL.iter().any(|it| it.as_str() == name);
            if !known && name != "all" && name != LEAN {
                let names: Vec<_> = Toolset::ALL.iter().map(|it| it.as_str()).collect();
                return Err(Error::invalid(format!("no toolset `{name}`")).hint(format!(
                    "the toolsets are {}, all, and lean for four tools that reach all others",
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
        let named = |name: &str| self.toolsets.iter().any(|it| it == name);
        let everything = self.toolsets.is_empty() && self.tools.is_empty();
        let by_toolset = everything || named("all") || named(Toolset::Kami.as_str());
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
        let everything = self.toolsets.is_empty() && self.tools.is_empty();
        let by_toolset = (everything && tool.toolset().is_on_by_default())
            || named(&self.toolsets, "all")
            || named(&self.toolsets, tool.toolset().as_str())
            || (named(&self.toolsets, LEAN) && tool.toolset() == Toolset::Kiwi);
        (by_toolset || named(&self.tools, tool.name()))
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
