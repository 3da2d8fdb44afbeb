//! What agents there are, and the words of the contract.

use kenning_core::Error;
use serde::{Deserialize, Serialize};
use std::time::Duration;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$row:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum $name { $($(#[$row])* $variant),* }

        impl $name {
            /// All of them, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// By its word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.as_str() == word)
            }
        }
    };
}

words! {
    /// A type of agent.
    AgentKind {
        /// Finds what is known about something, with its sources.
        Researcher = "researcher",
        /// Locates and explains code, and proposes a change.
        Coder = "coder",
        /// Finds what is broken, untested or undocumented.
        Tester = "tester",
        /// Measures and grades documents and code.
        Analyst = "analyst",
        /// Shows layers, components and cycles.
        Architect = "architect",
        /// Reviews documents and code.
        Reviewer = "reviewer",
        /// Delegates to other agents.
        Coordinator = "coordinator",
        /// Makes things faster.
        Optimizer = "optimizer",
        /// Writes documentation.
        Documenter = "documenter",
    }
}

words! {
    /// What an agent is doing.
    AgentStatus {
        /// Waits for its turn.
        Idle = "idle",
        /// Works on a task.
        Running = "running",
        /// Its last task is done.
        Completed = "completed",
        /// Its last task failed.
        Failed = "failed",
        /// Was halted.
        Paused = "paused",
        /// Was cancelled, or its process died.
        Terminated = "terminated",
    }
}

words! {
    /// Whose turn comes first.
    Priority {
        /// After everybody else.
        Low = "low",
        /// As usual.
        Medium = "medium",
        /// Before the usual.
        High = "high",
        /// Before everybody else.
        Critical = "critical",
    }
}

impl AgentKind {
    /// Those that can be spawned.
    pub const SPAWNABLE: [Self; 5] = [
        Self::Researcher,
        Self::Coder,
        Self::Tester,
        Self::Analyst,
        Self::Architect,
    ];

    /// Whether it can be spawned.
    pub fn is_spawnable(self) -> bool {
        Self::SPAWNABLE.contains(&self)
    }

    /// What it is good for.
    pub const fn capabilities(self) -> [&'static str; 2] {
        match self {
            Self::Researcher => ["research", "analysis"],
            Self::Coder => ["code", "refactor"],
            Self::Tester => ["test", "coverage"],
            Self::Analyst => ["analyze", "report"],
            Self::Architect => ["design", "document"],
            Self::Reviewer => ["review", "feedback"],
            Self::Coordinator => ["orchestrate", "delegate"],
            Self::Optimizer => ["optimize", "benchmark"],
            Self::Documenter => ["document", "format"],
        }
    }

    /// What one is called that nobody named.
    pub fn default_name(self) -> String {
        match self {
            Self::Researcher => "research-agent".to_owned(),
            it => format!("{}-agent", it.as_str()),
        }
    }

    /// How long a task may take unless somebody says otherwise.
    pub const fn timeout(self) -> Duration {
        match self {
            Self::Researcher => Duration::from_secs(120),
            _ => Duration::from_secs(30),
        }
    }

    /// What it does, for a model.
    pub(crate) const fn role(self) -> &'static str {
        match self {
            Self::Researcher => {
                "You find out what is known about a subject, from several sources, and cite them."
            }
            Self::Coder => {
                "You locate code, explain it and propose a change as a unified diff. You change nothing."
            }
            Self::Tester => "You find what is broken, untested or undocumented.",
            Self::Analyst => {
                "You measure documents and code, and name what is wrong with its place."
            }
            Self::Architect => "You show components, layers and cycles, and judge the design.",
            Self::Reviewer | Self::Coordinator | Self::Optimizer | Self::Documenter => {
                "You report."
            }
        }
    }
}

/// The contract's error for a type that cannot be spawned.
pub(crate) fn not_registered(kind: &str) -> Error {
    let names = AgentKind::SPAWNABLE.map(AgentKind::as_str).join(", ");
    let shown: String = kind
        .chars()
        .filter(|it| !it.is_control())
        .take(100)
        .collect();
    Error::invalid(format!("Agent type '{shown}' is not registered"))
        .hint(format!("spawn one of {names}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        for kind in AgentKind::ALL {
            assert_eq!(AgentKind::parse(kind.as_str()), Some(*kind));
        }
        assert_eq!(AgentKind::parse("planner"), None);
        assert!(Priority::Critical > Priority::Low);
    }
}
