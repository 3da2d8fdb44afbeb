//! Which contract a tool belongs to, and what its calls do.

use kenning_engine::Scope;

/// What a call does. Hints, scopes and permissions are derived from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Only reads.
    Read,
    /// Adds or changes; what it replaces stays in the history.
    Write {
        /// Whether repeating a call has no further effect.
        idempotent: bool,
    },
    /// Deletes something.
    Destroy,
    /// Starts a program.
    Run,
    /// Accesses the network.
    Fetch,
}

/// The four hints of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotations {
    /// Changes nothing.
    pub read_only: bool,
    /// May lose data.
    pub destructive: bool,
    /// Repeating a call has no further effect.
    pub idempotent: bool,
    /// Reaches beyond this server.
    pub open_world: bool,
}

impl Effect {
    /// The permission that a call needs.
    pub const fn scope(self) -> Scope {
        match self {
            Self::Read => Scope::Read,
            Self::Write { .. } => Scope::Write,
            Self::Destroy => Scope::Destroy,
            Self::Run => Scope::Run,
            Self::Fetch => Scope::Fetch,
        }
    }

    /// The hints for an MCP client.
    pub const fn annotations(self) -> Annotations {
        let (read_only, destructive, idempotent, open_world) = match self {
            Self::Read => (true, false, true, false),
            Self::Write { idempotent } => (false, false, idempotent, false),
            Self::Destroy => (false, true, true, false),
            Self::Run => (false, true, false, true),
            Self::Fetch => (false, false, false, true),
        };
        Annotations {
            read_only,
            destructive,
            idempotent,
            open_world,
        }
    }

    /// The word in the manual.
    pub const fn as_str(self) -> &'static str {
        self.scope().as_str()
    }
}

/// One of the contracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Toolset {
    /// One search over everything, and notes as people edit them: no contract has these.
    Core,
    /// Entities, documents, web pages, code graph, federation, vault notes.
    Koi,
    /// Directives, tools and knowledge items.
    Kiwi,
    /// Markdown graph, search, vectors, agents, workflows, audit.
    Kg,
    /// More tools for the graph than its contract has; off unless named.
    KgExtra,
    /// Memories and beliefs.
    Omi,
    /// More memory tools than the contract's six; off unless named.
    OmiExtra,
    /// WASM tools.
    Kami,
}

impl Toolset {
    /// Every toolset, in the order of the manual.
    pub const ALL: [Self; 8] = [
        Self::Core,
        Self::Koi,
        Self::Kiwi,
        Self::Kg,
        Self::KgExtra,
        Self::Omi,
        Self::OmiExtra,
        Self::Kami,
    ];

    /// Whether its tools are there when nothing is selected, as over HTTP.
    pub const fn is_on_by_default(self) -> bool {
        !matches!(self, Self::OmiExtra | Self::KgExtra)
    }

    /// Whether a contract names its tools.
    pub const fn is_of_contracts(self) -> bool {
        self.is_on_by_default() && !matches!(self, Self::Core)
    }

    /// The name on the command line and the name of its folder.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Koi => "koi",
            Self::Kiwi => "kiwi",
            Self::Kg => "kg",
            Self::KgExtra => "kg-extra",
            Self::Omi => "omi",
            Self::OmiExtra => "omi-extra",
            Self::Kami => "kami",
        }
    }
}
