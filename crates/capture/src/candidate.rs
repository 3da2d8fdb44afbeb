//! Something that may become a memory.

use crate::session::short;

/// What a candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CandidateKind {
    /// Something was decided.
    Decision,
    /// Something holds from now on: always, never, do not.
    Rule,
    /// Something is so.
    Fact,
    /// Something failed, and then worked.
    Trouble,
    /// The files that were changed.
    Files,
    /// What the session was about.
    Summary,
}

impl CandidateKind {
    /// The word for it, as a tag.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Rule => "rule",
            Self::Fact => "fact",
            Self::Trouble => "trouble",
            Self::Files => "files",
            Self::Summary => "summary",
        }
    }
}

/// Something that may become a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What it is.
    pub kind: CandidateKind,
    /// Its text, without secrets.
    pub text: String,
    /// When it was said or happened, as the client wrote it.
    pub at: Option<String>,
}

/// The path of a file in its project.
pub(crate) fn in_project(file: &str, cwd: Option<&str>) -> String {
    let inner = cwd.and_then(|cwd| {
        file.strip_prefix(cwd.trim_end_matches('/'))?
            .strip_prefix('/')
    });
    short(inner.unwrap_or(file), 200)
}
