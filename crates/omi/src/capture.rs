//! Capture: what happened in a session becomes memories, without a model.
//!
//! What is worth keeping is found by the `capture` crate, from the transcript alone. Here it is stored: each memory with
//! the session, the time and `capture` as its source, once, and in the project of the caller. A row says what was
//! captured of a session, so that it can be looked at and undone as a whole.

use crate::{Memory, MemoryType, NewMemory, Omi, Recall, StoredMemory};
use jiff::Timestamp;
use kenning_capture::{Candidate, CandidateKind, Session, extract};
use kenning_core::{Code, Error, NodeId, Result};
use kenning_kernel::{Bucket, Caller, Scope};
use kenning_memory::duplicates::bare;
use kenning_store::When;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What was captured, by session.
const CAPTURES: Bucket<Row> = Bucket::new("captures");

/// The source of captured memories.
const SOURCE: &str = "capture";

/// The most memories of one session, however often it is captured.
const MEMORIES_MAX: usize = 24;

/// Memories that are compared with a candidate.
const COMPARED: usize = 5;

/// What was captured of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    /// The id of the project; empty for none.
    project: String,
    /// When it was last captured, in milliseconds since 1970.
    at_ms: u64,
    memories: Vec<Kept>,
}

/// One memory of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    id: String,
    kind: String,
}

/// What a capture did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The session.
    pub session: String,
    /// The memories that are new.
    pub stored: Vec<String>,
    /// How many candidates were known already.
    pub known: usize,
}

/// A session of which something was captured.
#[derive(Clone, Debug, PartialEq)]
pub struct CapturedSession {
    /// Its name.
    pub session: String,
    /// The id of its project; empty for none.
    pub project: String,
    /// When it was last captured, in milliseconds since 1970.
    pub at_ms: u64,
    /// What was captured, as far as it is still there.
    pub memories: Vec<Memory>,
}

impl Omi {
    /// Stores what of a session is worth keeping. What a later capture of the same session says better (the summary,
    /// the list of files) replaces what an earlier one said.
    pub fn capture(
        &self,
        caller: &Caller,
        session: &Session,
        name: Option<&str>,
    ) -> Result<Captured> {
        self.kernel.may_write(caller)?;
        let name = name.or(session.id.as_deref());
        let name = name.map_or_else(|| self.new_session_id(), ToOwned::to_owned);
        let name = crate::sessions::checked(&name)?.to_owned();
        let space = &caller.principal.space;
        let mut row = self
            .kernel
            .log()
            .read(space, |tx| CAPTURES.get_readable(tx, &name))?
            .unwrap_or_default();
        let mut captured = Captured {
            session: name.clone(),
            ..Captured::default()
        };
        let (mut new, mut kinds, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
        for candidate in extract(session) {
            let is_renewed = is_renewed(candidate.kind);
            let known = self.is_known(caller, &candidate)?;
            if known || !is_renewed && row.memories.len() + new.len() >= MEMORIES_MAX {
                captured.known += usize::from(known);
                continue;
            }
            if is_renewed {
                let kind = candidate.kind.as_str();
                replaced.extend(row.memories.iter().filter(|it| it.kind == kind).cloned());
            }
            kinds.push(candidate.kind);
            new.push(memory_of(candidate, &name));
        }
        if new.is_empty() {
            return Ok(captured);
        }
        let stored = self.store_memories(caller, new)?;
        let fresh = |it: &&StoredMemory| !it.duplicate && !it.is_pending;
        let added = stored.iter().zip(&kinds).filter(|it| fresh(&it.0));
        let added: Vec<Kept> = added
            .map(|(stored, kind)| Kept {
                id: stored.id.clone(),
                kind: kind.as_str().to_owned(),
            })
            .collect();
        captured.known += stored.len() - added.len();
        captured.stored = added.iter().map(|it| it.id.clone()).collect();
        // The same summary again replaces nothing.
        replaced.retain(|old| added.iter().any(|it| it.kind == old.kind));
        row.project = self.kernel.project_of(caller)?;
        row.memories.retain(|it| !replaced.contains(it));
        row.memories.extend(added);
        self.kernel.log().write(space, move |tx| {
            for old in &replaced {
                if let Some(id) = node_of(old) {
                    remove_if_there(tx, id)?;
                }
            }
            row.at_ms = tx.now().ms();
            CAPTURES.set(tx, &name, &row)?;
            let data = json!({ "session_id": name, "memories": row.memories.len() });
            tx.record("SessionCaptured", data).map(drop)
        })?;
        Ok(captured)
    }

    /// Whether a memory says the same already.
    fn is_known(&self, caller: &Caller, candidate: &Candidate) -> Result<bool> {
        let recall = Recall {
            query: candidate.text.clone(),
            limit: COMPARED,
            daily_logs: false,
            ..Recall::default()
        };
        let near = match self.look_up(caller, &recall) {
            Ok(near) => near.memories,
            // Words that cannot be searched for are not there.
            Err(error) if error.code == Code::InvalidInput => return Ok(false),
            Err(error) => return Err(error),
        };
        let own = bare(&candidate.text);
        Ok(near.iter().any(|it| bare(&it.memory.content) == own))
    }

    /// The captured sessions of the caller's project, newest first.
    pub fn captured_sessions(&self, caller: &Caller) -> Result<Vec<CapturedSession>> {
        caller.principal.require(Scope::Read)?;
        let seen = self.kernel.projects_seen_by(caller)?;
        let rows = self
            .kernel
            .log()
            .read(&caller.principal.space, |tx| CAPTURES.list_readable(tx))?;
        let own = rows.into_iter().filter(|it| seen.contains(&it.1.project));
        let mut sessions = own
            .map(|(session, row)| self.captured_of(caller, session, row))
            .collect::<Result<Vec<_>>>()?;
        sessions.sort_by_key(|it| std::cmp::Reverse(it.at_ms));
        Ok(sessions)
    }

    /// What was captured of one session.
    pub fn captured_session(&self, caller: &Caller, session: &str) -> Result<CapturedSession> {
        caller.principal.require(Scope::Read)?;
        let row = self.kernel.log().read(&caller.principal.space, |tx| {
            CAPTURES.get_readable(tx, session)
        })?;
        let row = row.ok_or_else(|| nothing_captured(session))?;
        self.captured_of(caller, session.to_owned(), row)
    }

    fn captured_of(&self, caller: &Caller, session: String, row: Row) -> Result<CapturedSession> {
        let memories = self.kernel.log().read(&caller.principal.space, |tx| {
            let mut memories = Vec::new();
            for id in row.memories.iter().filter_map(node_of) {
                memories.extend(tx.node(id, When::Now)?.map(|it| Memory::of(&it)));
            }
            Ok(memories)
        })?;
        Ok(CapturedSession {
            session,
            project: row.project,
            at_ms: row.at_ms,
            memories,
        })
    }

    /// Removes what was captured of a session, and returns how many memories that were.
    pub fn undo_capture(&self, caller: &Caller, session: &str) -> Result<usize> {
        self.kernel.may_write(caller)?;
        let name = session.to_owned();
        self.kernel.log().write(&caller.principal.space, move |tx| {
            let row = CAPTURES.get_readable(&**tx, &name)?;
            let row = row.ok_or_else(|| nothing_captured(&name))?;
            let mut n_removed = 0;
            for id in row.memories.iter().filter_map(node_of) {
                n_removed += usize::from(remove_if_there(tx, id)?);
            }
            CAPTURES.unset(tx, &name)?;
            let data = json!({ "session_id": name, "memories": n_removed });
            tx.record("CaptureUndone", data)?;
            Ok(n_removed)
        })
    }
}

fn nothing_captured(session: &str) -> Error {
    Error::new(
        Code::NotFound,
        format!("nothing was captured of a session `{session}`"),
    )
    .hint("`kenning capture list` shows the sessions")
}

/// A session has one summary and one list of files.
const fn is_renewed(kind: CandidateKind) -> bool {
    matches!(kind, CandidateKind::Summary | CandidateKind::Files)
}

fn node_of(kept: &Kept) -> Option<NodeId> {
    crate::memories::node_id(&kept.id)
}

/// Somebody may have forgotten it meanwhile.
fn remove_if_there(tx: &mut kenning_audit::Tx<'_>, id: NodeId) -> Result<bool> {
    if tx.node(id, When::Now)?.is_none() {
        return Ok(false);
    }
    tx.remove_node(id)?;
    Ok(true)
}

fn memory_of(candidate: Candidate, session: &str) -> NewMemory {
    let memory_type = match candidate.kind {
        CandidateKind::Decision => MemoryType::Decision,
        CandidateKind::Rule | CandidateKind::Fact => MemoryType::Fact,
        CandidateKind::Trouble | CandidateKind::Files | CandidateKind::Summary => {
            MemoryType::Experience
        }
    };
    let at = candidate
        .at
        .as_deref()
        .and_then(|it| it.parse::<Timestamp>().ok());
    NewMemory {
        content: candidate.text,
        memory_type,
        tags: vec!["captured".to_owned(), candidate.kind.as_str().to_owned()],
        session_id: Some(session.to_owned()),
        source: Some(SOURCE.to_owned()),
        said_ms: at.and_then(|it| u64::try_from(it.as_millisecond()).ok()),
        ..NewMemory::default()
    }
}
