//! Who was spawned, and what became of it: rows of the store, so every process lists the same.

use crate::Agents;
use crate::kinds::{AgentKind, AgentStatus};
use kenning_audit::Tx;
use kenning_core::{Code, Error, Result};
use kenning_kernel::{Bucket, Caller, Scope};
use kenning_store::ReadTx;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Agents by their ids.
pub(crate) const ROWS: Bucket<Row> = Bucket::new("agents/spawned");

/// What is said of a task that somebody ended.
pub(crate) const CANCELLED: &str = "Task was cancelled";

/// At most this many agents are kept; the ones that did nothing for longest are forgotten.
const KEPT_MAX: usize = 200;

/// Agents of one type that may be at work or wait at once.
const BUSY_MAX: usize = 10;

/// How long a failure counts against the health.
const HEALTH_MS: u64 = 24 * 3_600 * 1_000;

/// An agent, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) kind: AgentKind,
    pub(crate) name: String,
    pub(crate) status: AgentStatus,
    pub(crate) task: Option<String>,
    /// In the words of whoever spawned it.
    pub(crate) about: String,
    /// Tasks that processes have with it, by the name of the process: those that they work on and those that wait.
    #[serde(default)]
    pub(crate) tasks: BTreeMap<String, u64>,
    /// The process that works on it.
    #[serde(default)]
    pub(crate) holder: Option<String>,
    pub(crate) n_completed: u64,
    pub(crate) n_errors: u64,
    /// What language models took for all of its tasks.
    #[serde(default)]
    pub(crate) tokens: u64,
    pub(crate) active_ms: u64,
    pub(crate) error: Option<String>,
    /// The key of the node with its last report.
    pub(crate) report: Option<String>,
    /// Its current task is to end.
    pub(crate) is_cancelled: bool,
}

impl Row {
    /// Tasks of living processes.
    fn n_tasks(&self, dead: &BTreeSet<String>) -> u64 {
        let living = self.tasks.iter().filter(|it| !dead.contains(it.0));
        living.map(|it| *it.1).sum()
    }

    fn is_at_work(&self, dead: &BTreeSet<String>) -> bool {
        self.holder.as_ref().is_some_and(|it| !dead.contains(it))
    }

    fn is_busy(&self, dead: &BTreeSet<String>) -> bool {
        self.n_tasks(dead) > 0
    }

    /// What it is doing: a process that died cannot say so.
    fn status(&self, dead: &BTreeSet<String>) -> AgentStatus {
        match self.status {
            _ if self.is_at_work(dead) => AgentStatus::Running,
            _ if self.is_busy(dead) => AgentStatus::Idle,
            AgentStatus::Idle | AgentStatus::Running => AgentStatus::Terminated,
            status => status,
        }
    }

    /// A task of a process has come to its end, or was given up.
    pub(crate) fn leave(&mut self, process: &str, task: &str) {
        if let Some(n) = self.tasks.get_mut(process) {
            *n = n.saturating_sub(1);
        }
        self.tasks.retain(|_, n| *n > 0);
        if self.task.as_deref() == Some(task) {
            self.task = None;
            self.holder = None;
        }
    }
}

/// An agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRow {
    /// Its id.
    pub id: String,
    /// Its type.
    pub kind: AgentKind,
    /// Its name.
    pub name: String,
    /// What it is doing.
    pub status: AgentStatus,
    /// The task that it works on.
    pub current_task: Option<String>,
    /// What that is, or what its last one was.
    pub about: String,
    /// Tasks that wait for it.
    pub queued: u64,
    /// Tasks that it did.
    pub completed: u64,
    /// Tasks that failed.
    pub errors: u64,
    /// What language models took for all of its tasks, also for those that failed.
    pub tokens: u64,
    /// Milliseconds since 1970.
    pub active_ms: u64,
    /// Why its last task failed.
    pub error: Option<String>,
    /// The key of its last report.
    pub report: Option<String>,
}

/// How many agents there are of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentCount {
    /// The type.
    pub kind: AgentKind,
    /// How many.
    pub count: usize,
}

/// The agents that were asked for, and how many there are in all.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentsListed {
    /// The one that did something last comes first.
    pub agents: Vec<AgentRow>,
    /// Every type.
    pub kinds: Vec<AgentCount>,
    /// Every status, with how many there are.
    pub statuses: Vec<(AgentStatus, usize)>,
    /// How many there are.
    pub total: usize,
}

/// How agents fare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentHealth {
    /// At work now.
    pub running: usize,
    /// Whose last task, within a day, is done or failed.
    pub ended: usize,
    /// Of these, whose failed or whose process died.
    pub failed: usize,
}

impl Agents {
    fn now_ms(&self) -> u64 {
        self.kernel.log().clock().now_ms()
    }

    /// The processes that rows name and that died.
    pub(crate) fn dead(&self, rows: &[(String, Row)]) -> Result<BTreeSet<String>> {
        let named = rows
            .iter()
            .flat_map(|it| it.1.tasks.keys().chain(&it.1.holder));
        self.runs.dead_among(named)
    }

    fn rows(&self, caller: &Caller) -> Result<Vec<(String, Row)>> {
        let space = &caller.principal.space;
        self.kernel.log().read(space, |tx| ROWS.list_readable(tx))
    }

    /// The agents of a type and with a status.
    ///
    /// # Errors
    /// Denied if the caller may not read, and those of the store.
    pub fn list(
        &self,
        caller: &Caller,
        kind: Option<AgentKind>,
        status: Option<AgentStatus>,
    ) -> Result<AgentsListed> {
        caller.principal.require(Scope::Read)?;
        let rows = self.rows(caller)?;
        let dead = self.dead(&rows)?;
        let mut all: Vec<AgentRow> = rows
            .into_iter()
            .map(|(id, row)| shown(id, row, &dead))
            .collect();
        all.sort_by(|a, b| {
            let by_time = b.active_ms.cmp(&a.active_ms);
            by_time.then(a.name.cmp(&b.name)).then(a.id.cmp(&b.id))
        });
        let count = |of: AgentKind| all.iter().filter(|it| it.kind == of).count();
        let kinds = AgentKind::ALL.iter().map(|it| AgentCount {
            kind: *it,
            count: count(*it),
        });
        let kinds = kinds.collect();
        let statuses = AgentStatus::ALL.iter().map(|status| {
            let count = all.iter().filter(|it| it.status == *status).count();
            (*status, count)
        });
        let statuses = statuses.collect();
        let total = all.len();
        all.retain(|it| kind.is_none_or(|kind| it.kind == kind));
        all.retain(|it| status.is_none_or(|status| it.status == status));
        Ok(AgentsListed {
            agents: all,
            kinds,
            statuses,
            total,
        })
    }

    /// One agent, by its id or its name.
    ///
    /// # Errors
    /// Not found if there is none, and those of the store.
    pub fn status(&self, caller: &Caller, agent: &str) -> Result<AgentRow> {
        let all = self.list(caller, None, None)?.agents;
        let found = all.iter().find(|it| it.id == agent);
        let found = found.or_else(|| all.iter().find(|it| it.name == agent));
        found.cloned().ok_or_else(|| unknown(agent))
    }

    /// Ends the task that an agent works on or waits for. False if it has none.
    ///
    /// # Errors
    /// Not found if there is no such agent, denied if the caller may not write.
    pub fn cancel(&self, caller: &Caller, agent: &str) -> Result<bool> {
        self.kernel.may_write(caller)?;
        let id = self.status(caller, agent)?.id;
        let dead = self.dead(&self.rows(caller)?)?;
        self.kernel.log().write(&caller.principal.space, move |tx| {
            let Some(mut row) = ROWS.get(&**tx, &id)? else {
                return Err(unknown(&id));
            };
            if !row.is_busy(&dead) || row.is_cancelled {
                return Ok(false);
            }
            row.is_cancelled = true;
            ROWS.set(tx, &id, &row)?;
            let data = json!({ "agentId": id, "taskId": row.task });
            tx.record("AgentCancelled", data)?;
            Ok(true)
        })
    }

    /// An error if somebody wants the task of an agent to end.
    pub(crate) fn check_cancelled(&self, caller: &Caller, agent: &str) -> Result<()> {
        let space = &caller.principal.space;
        let is_cancelled = |tx: &dyn ReadTx| is_cancelled(tx, agent);
        match self.kernel.log().read(space, is_cancelled)? {
            true => Err(Error::timeout(CANCELLED)),
            false => Ok(()),
        }
    }

    /// How agents fare.
    ///
    /// # Errors
    /// Those of the store.
    pub fn health(&self, caller: &Caller) -> Result<AgentHealth> {
        let now_ms = self.now_ms();
        let all = self.list(caller, None, None)?.agents;
        let mut health = AgentHealth::default();
        for it in all {
            let is_recent = it.active_ms.saturating_add(HEALTH_MS) > now_ms;
            let is_dead = it.status == AgentStatus::Terminated && it.error.is_none();
            match it.status {
                AgentStatus::Idle | AgentStatus::Running | AgentStatus::Paused => {
                    health.running += 1;
                }
                _ if !is_recent => {}
                // Somebody wanted it to end.
                AgentStatus::Terminated if !is_dead => {}
                status => {
                    health.ended += 1;
                    health.failed += usize::from(status != AgentStatus::Completed);
                }
            }
        }
        Ok(health)
    }
}

fn shown(id: String, row: Row, dead: &BTreeSet<String>) -> AgentRow {
    let is_at_work = row.is_at_work(dead);
    AgentRow {
        status: row.status(dead),
        queued: row.n_tasks(dead).saturating_sub(u64::from(is_at_work)),
        id,
        kind: row.kind,
        name: row.name,
        current_task: row.task.filter(|_| is_at_work),
        about: row.about,
        completed: row.n_completed,
        errors: row.n_errors,
        tokens: row.tokens,
        active_ms: row.active_ms,
        error: row.error,
        report: row.report,
    }
}

fn unknown(agent: &str) -> Error {
    let shown: String = agent
        .chars()
        .filter(|it| !it.is_control())
        .take(100)
        .collect();
    Error::not_found("agent", shown).hint("`kg_agent_list` lists them")
}

/// The agent that does the task: the one with this name and type, or a new one. `new` has the task of its process.
pub(crate) fn enlist(
    tx: &mut Tx<'_>,
    new_id: &str,
    new: Row,
    is_named: bool,
    dead: &BTreeSet<String>,
) -> Result<String> {
    let all = ROWS.list_readable(&**tx)?;
    let n_busy: u64 = all
        .iter()
        .filter(|it| it.1.kind == new.kind)
        .map(|it| it.1.n_tasks(dead))
        .sum();
    if n_busy >= BUSY_MAX as u64 {
        let kind = new.kind.as_str();
        let message = format!("{BUSY_MAX} tasks of type `{kind}` are at work or wait");
        return Err(Error::new(Code::Limited, message).hint("call again when one is done"));
    }
    let known = all
        .iter()
        .find(|it| is_named && it.1.kind == new.kind && it.1.name == new.name);
    let (id, row) = match known {
        None => (new_id.to_owned(), new),
        Some((id, row)) => {
            let mut row = row.clone();
            if !row.is_busy(dead) {
                row.status = AgentStatus::Idle;
                row.is_cancelled = false;
            }
            row.tasks.retain(|process, _| !dead.contains(process));
            for (process, n) in new.tasks {
                *row.tasks.entry(process).or_default() += n;
            }
            row.active_ms = new.active_ms;
            row.about = new.about;
            (id.clone(), row)
        }
    };
    ROWS.set(tx, &id, &row)?;
    forget_old(tx, all, &id, dead)?;
    Ok(id)
}

/// Makes room for new agents.
fn forget_old(
    tx: &mut Tx<'_>,
    all: Vec<(String, Row)>,
    keep: &str,
    dead: &BTreeSet<String>,
) -> Result<()> {
    let mut old: Vec<(u64, String)> = all
        .into_iter()
        .filter(|it| it.0 != keep && !it.1.is_busy(dead))
        .map(|(id, row)| (row.active_ms, id))
        .collect();
    old.sort();
    let n_over = (old.len() + 1).saturating_sub(KEPT_MAX);
    for (_, id) in old.into_iter().take(n_over) {
        ROWS.unset(tx, &id)?;
    }
    Ok(())
}

/// Whether somebody wants the task of an agent to end.
fn is_cancelled(tx: &dyn ReadTx, agent: &str) -> Result<bool> {
    Ok(ROWS
        .get_readable(tx, agent)?
        .is_some_and(|it| it.is_cancelled))
}
