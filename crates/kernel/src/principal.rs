//! The caller, and its permissions.

use crate::Project;
use kenning_core::{Error, Result, Space};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A permission. A tool's effect decides which one a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// May read.
    Read,
    /// Add and change.
    Write,
    /// Start scripts and WASM tools.
    Run,
    /// Access the network.
    Fetch,
    /// May delete.
    Destroy,
    /// Make tokens, back up, restore.
    Admin,
}

impl Scope {
    /// Every scope, in the order of the manual.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Run,
        Self::Fetch,
        Self::Destroy,
        Self::Admin,
    ];

    /// The name on the command line and in tokens.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Run => "run",
            Self::Fetch => "fetch",
            Self::Destroy => "destroy",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| {
                format!("`{text}` is not a scope: read, write, run, fetch, destroy or admin")
            })
    }
}

/// The caller: a token over HTTP, or the owner of the process on stdio and on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// A name for the log.
    pub name: String,
    /// The one space this caller sees.
    pub space: Space,
    /// What the caller may do.
    pub scopes: Vec<Scope>,
    /// The id of the caller's token. Names of tokens are not unique; ids are.
    pub token: Option<String>,
    /// The project that the caller works in. Its memories and its context are that project's; without one,
    /// those that belong to no project.
    pub project: Option<Arc<Project>>,
}

impl Principal {
    /// Whoever started the process: every scope.
    pub fn owner(space: Space) -> Self {
        Self {
            name: "owner".to_owned(),
            space,
            scopes: Scope::ALL.to_vec(),
            token: None,
            project: None,
        }
    }

    /// The same caller, working in a project.
    #[must_use]
    pub fn in_project(mut self, project: Option<Project>) -> Self {
        self.project = project.map(Arc::new);
        self
    }

    /// Refuses a caller without this scope.
    pub fn require(&self, scope: Scope) -> Result<()> {
        if self.scopes.contains(&scope) {
            return Ok(());
        }
        Err(
            Error::denied(format!("`{}` lacks the scope `{scope}`", self.name))
                .hint(format!("use a token made with `--scopes {scope}`")),
        )
    }
}
