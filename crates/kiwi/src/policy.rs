//! The operator's policy for items.

use crate::Kiwi;
use kenning_core::{Code, Error, Result};
use kenning_items::grants::Grants;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// In the data directory.
pub(crate) const POLICY_FILE: &str = "kiwi/policy.toml";
const POLICY_BYTES_MAX: u64 = 1024 * 1024;

/// The operator's policy for items. Without a file it is as strict as possible.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ItemPolicy {
    /// Whether items of a project may be used before they are signed.
    pub(crate) allow_unsigned: bool,
    /// Whether callers over MCP or HTTP may sign items. Otherwise only a person can, on the command
    /// line.
    pub(crate) agents_may_sign: bool,
    /// Whether packages that a tool depends on may be installed.
    pub(crate) allow_install: bool,
    /// Where packages come from.
    pub(crate) install: Install,
    /// Directories with programs that tools may run beside the system's.
    pub(crate) exec: Vec<PathBuf>,
    /// Files with lines `NAME=value`, for variables that tools declare.
    pub(crate) secrets: Vec<PathBuf>,
    /// The most that a tool may request.
    pub(crate) ceiling: Ceiling,
    /// The resources that a tool may use.
    pub(crate) limits: RunLimits,
    /// MCP servers that tools may call, by their names.
    pub(crate) mcp: BTreeMap<String, McpServer>,
}

/// The most that a tool may request. Paths are relative to the project unless they begin with `/`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Ceiling {
    pub(crate) read: Vec<String>,
    pub(crate) write: Vec<String>,
    pub(crate) net: Vec<String>,
    pub(crate) env: Vec<String>,
}

impl Default for Ceiling {
    fn default() -> Self {
        Self {
            read: vec![".".to_owned()],
            write: Vec::new(),
            net: Vec::new(),
            env: Vec::new(),
        }
    }
}

impl Ceiling {
    /// As grants, under which any tool may run.
    pub(crate) fn grants(&self) -> Result<Grants> {
        // The path of the project itself means everything in it.
        let whole = |it: &String| match it.trim_end_matches('/') {
            "." | "./" => "**".to_owned(),
            _ => it.clone(),
        };
        let paths = |list: &[String]| list.iter().map(whole).collect::<Vec<_>>();
        let net: Vec<String> = self.net.iter().map(|it| it.to_ascii_lowercase()).collect();
        Grants::from_json(&json!({
            "read": paths(&self.read), "write": paths(&self.write),
            "net": net, "env": self.env, "caps": ["tool.*"],
        }))
        .map_err(|cause| {
            Error::invalid(format!(
                "`{POLICY_FILE}` in the data directory: `ceiling` has an invalid path"
            ))
            .hint("use paths within the project or absolute paths, with `*` and `**`")
            .because(cause)
        })
    }
}

/// The resources that a tool may use.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RunLimits {
    /// The longest time that any tool may run, whatever it requests.
    pub(crate) timeout_seconds: u64,
    pub(crate) memory_mb: u64,
    pub(crate) processes: u64,
    /// The size of standard output and standard error together.
    pub(crate) output_mb: u64,
    /// How much everything that it may write to may grow.
    pub(crate) disk_mb: u64,
    /// How many files and directories it may create.
    pub(crate) files: u64,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            timeout_seconds: 3_600,
            memory_mb: 1_024,
            processes: 64,
            output_mb: 8,
            disk_mb: 1_024,
            files: 100_000,
        }
    }
}

/// Where packages come from. By default from the public index.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Install {
    /// The URL of an index.
    pub(crate) index_url: Option<String>,
    /// A directory with packages; without an index it is the only source.
    pub(crate) find_links: Option<PathBuf>,
}

/// An MCP server: a program, or a URL.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct McpServer {
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// Paths that the program may read in addition to the system's.
    pub(crate) read: Vec<PathBuf>,
    /// TCP ports that the program may connect to, on any host.
    pub(crate) ports: Vec<u16>,
    pub(crate) url: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
}

impl Kiwi {
    /// The policy that the operator wrote, or the default.
    pub(crate) fn item_policy(&self) -> Result<ItemPolicy> {
        let bytes = match self.kernel.data().read(POLICY_FILE, POLICY_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.code == Code::NotFound => return Ok(ItemPolicy::default()),
            Err(error) => return Err(error),
        };
        let text = String::from_utf8_lossy(&bytes);
        toml::from_str(&text).map_err(|cause| {
            Error::invalid(format!(
                "`{POLICY_FILE}` in the data directory: {}",
                cause.message()
            ))
            .hint("docs/guides/kiwi.md lists its keys")
        })
    }
}
