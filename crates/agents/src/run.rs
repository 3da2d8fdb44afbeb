//! One task: its turn, its time, its retries, and what it leaves behind.

use crate::kinds::{AgentKind, AgentStatus, Priority, not_registered};
use crate::material::Material;
use crate::queue::LOOK;
use crate::registry::{self, CANCELLED, ROWS, Row};
use crate::report::{Artifact, Prepared, Report, Written, key_of, short};
use crate::task::{Step, Task};
use crate::thinking::{self, Toolbox};
use crate::{Agents, work};
use kenning_audit::Tx;
use kenning_core::{Code, Error, Hash, Result};
use kenning_kernel::Caller;
use kenning_llm::Usage;
use kenning_runs::{Family, Outcome, StepOutcome, Trajectory};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// No task takes longer, whatever somebody asks for.
const TIMEOUT_MAX: Duration = Duration::from_secs(3_600);
/// A task that says more is a document.
pub(crate) const TASK_CHARS_MAX: usize = 10_000;
const NAME_CHARS_MAX: usize = 100;
/// How often a task is tried again unless somebody says otherwise.
const RETRIES_DEFAULT: u32 = 3;
const RETRIES_MAX: u32 = 10;
/// The wait before the first retry; each further one is twice as long.
const RETRY_WAIT: Duration = Duration::from_secs(1);

/// In the words of the contract.
const TIMED_OUT: &str = "Task execution timed out";

/// A task for an agent.
#[derive(Clone, Debug)]
pub struct Spawn {
    /// The type of the agent.
    pub kind: AgentKind,
    /// Its name: an agent of this type and name does the task, if there is one.
    pub name: Option<String>,
    /// What to do, in any words.
    pub task: String,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// How often a failure that may pass is tried again.
    pub retries: Option<u32>,
    /// Whose turn comes first.
    pub priority: Priority,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Spawned {
    /// The agent.
    pub agent: String,
    /// Its name.
    pub name: String,
    /// The task.
    pub task: String,
    /// What it found out.
    pub result: Value,
    /// How long it took.
    pub duration: Duration,
    /// What a model took for it; 0 without one.
    pub tokens: u64,
    /// Whether the model's server did not say how many those were.
    pub tokens_estimated: bool,
    /// How often it was tried again.
    pub retries: u32,
    /// What it made.
    pub artifacts: Vec<Artifact>,
    /// The key of the node with its report.
    pub report: String,
}

/// What was done for a task until it ended, however it ended.
#[derive(Default)]
struct Worked {
    /// The steps of the last attempt.
    steps: Vec<Step>,
    /// What a model took for all attempts.
    usage: Usage,
    retries: u32,
}

impl Agents {
    /// Spawns an agent, or finds the one of this name, and has it do a task.
    ///
    /// # Errors
    /// Invalid input, denied if the caller may not write, limited if too many are at work, timeout if it takes
    /// too long or is cancelled, and those of the store.
    pub fn spawn(&self, caller: &Caller, spawn: &Spawn, tools: &dyn Toolbox) -> Result<Spawned> {
        self.kernel.may_write(caller)?;
        check(spawn)?;
        let began = Instant::now();
        let timeout = spawn.timeout.unwrap_or(spawn.kind.timeout());
        let timeout = timeout.min(TIMEOUT_MAX);
        let mut own = caller.clone();
        // Whoever asks for more time than a call has usually gets it.
        own.deadline = began + timeout;
        let task_id = self.new_id("task");
        let name = match &spawn.name {
            Some(name) => name.trim().to_owned(),
            None => spawn.kind.default_name(),
        };
        // Until what came of it is written down, this process is named in the agent's row.
        let _present = self.runs.present()?;
        let agent = self.enlist(&own, spawn, &name, &task_id)?;
        let mut worked = Worked::default();
        let outcome = self.work(&own, spawn, &agent, &task_id, tools, &mut worked);
        let (report, model) = match outcome {
            Ok(done) => done,
            Err(error) => {
                let error = self.failure(&own, &agent, error, timeout);
                let summary = error.message.clone();
                self.settle(&own, spawn, &agent, &task_id, Err(&error), &worked, summary)?;
                return Err(error);
            }
        };
        let of = Written {
            kind: spawn.kind,
            agent: &agent,
            name: &name,
            task_id: &task_id,
            task: spawn.task.trim(),
        };
        let prepared = Prepared::of(&report, &of);
        let text = report.to_markdown(spawn.kind, spawn.task.trim());
        let summary = report.summary.clone();
        let prepared = Ok(prepared);
        self.settle(&own, spawn, &agent, &task_id, prepared, &worked, summary)?;
        let mut result = report.to_json();
        if let Some(model) = &model {
            result["model"] = model.as_str().into();
        }
        let mut artifacts = vec![Artifact {
            kind: "report",
            name: "report.md".to_owned(),
            content: text,
            mime_type: "text/markdown",
        }];
        artifacts.extend(report.artifacts);
        Ok(Spawned {
            agent,
            name,
            result,
            duration: began.elapsed(),
            tokens: worked.usage.total(),
            tokens_estimated: worked.usage.is_estimated,
            retries: worked.retries,
            artifacts,
            report: key_of(&task_id),
            task: task_id,
        })
    }

    fn new_id(&self, word: &str) -> String {
        let mut bytes = [0; 16];
        self.kernel.log().random().fill(&mut bytes);
        let name = Hash::of(&bytes).to_string();
        format!("{word}-{}", name.get(..12).unwrap_or(&name))
    }

    fn enlist(&self, caller: &Caller, spawn: &Spawn, name: &str, task_id: &str) -> Result<String> {
        let now_ms = self.kernel.log().clock().now_ms();
        let row = Row {
            kind: spawn.kind,
            name: name.to_owned(),
            status: AgentStatus::Idle,
            task: None,
            about: short(&spawn.task, 200),
            tasks: [(self.runs.process().to_owned(), 1)].into(),
            holder: None,
            n_completed: 0,
            n_errors: 0,
            tokens: 0,
            active_ms: now_ms,
            error: None,
            report: None,
            is_cancelled: false,
        };
        let (new_id, task) = (self.new_id("agent"), task_id.to_owned());
        let (is_named, kind) = (spawn.name.is_some(), spawn.kind);
        let priority = spawn.priority.as_str();
        let space = &caller.principal.space;
        let known = self.kernel.log().read(space, |tx| ROWS.list_readable(tx))?;
        let dead = self.dead(&known)?;
        self.kernel.log().write(space, move |tx| {
            let about = row.about.clone();
            let id = registry::enlist(tx, &new_id, row, is_named, &dead)?;
            let data = json!({
                "agentId": id, "agentType": kind.as_str(), "taskId": task, "task": about,
                "priority": priority,
            });
            tx.record("AgentSpawned", data)?;
            Ok(id)
        })
    }

    /// Waits for a turn, and works until it is done, out of time or out of retries.
    fn work(
        &self,
        caller: &Caller,
        spawn: &Spawn,
        agent: &str,
        task_id: &str,
        tools: &dyn Toolbox,
        worked: &mut Worked,
    ) -> Result<(Report, Option<String>)> {
        let check = || {
            caller.check()?;
            self.check_cancelled(caller, agent)
        };
        let _turn = self.queue.turn(agent, spawn.priority, &check)?;
        self.take(caller, agent, task_id, &check)?;
        let retries_max = spawn.retries.unwrap_or(RETRIES_DEFAULT).min(RETRIES_MAX);
        loop {
            let task = Task::new(self, caller, spawn.kind, spawn.task.trim(), agent);
            let done = Material::new(&task).and_then(|material| {
                let mut report = work::do_task(&task, &material)?;
                let model = thinking::think(&task, &mut report, tools)?;
                Ok((report, model))
            });
            let (steps, usage) = task.into_steps();
            worked.steps = steps;
            worked.usage.add(usage);
            let error = match done {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let left = caller.deadline.saturating_duration_since(Instant::now());
            let wait = RETRY_WAIT.saturating_mul(2_u32.saturating_pow(worked.retries));
            if worked.retries >= retries_max || !may_pass(&error) || wait >= left {
                return Err(error);
            }
            kenning_core::idle::waiting(|| std::thread::sleep(wait));
            worked.retries += 1;
        }
    }

    /// Waits until no other process works on the agent, and writes this one into its row. What a process that died
    /// left is taken over at once.
    fn take(
        &self,
        caller: &Caller,
        agent: &str,
        task_id: &str,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let space = &caller.principal.space;
        let me = self.runs.process();
        loop {
            let row = self.kernel.log().read(space, |tx| ROWS.get(tx, agent))?;
            let row = row.ok_or_else(|| Error::not_found("agent", agent))?;
            let other = row.holder.filter(|it| it != me);
            let dead = match &other {
                None => None,
                Some(other) => self.runs.find_dead(other)?,
            };
            if other.is_none() || dead.is_some() {
                let (agent, task, me) = (agent.to_owned(), task_id.to_owned(), me.to_owned());
                let taken = self.kernel.log().write(space, move |tx| {
                    let Some(mut row) = ROWS.get(&**tx, &agent)? else {
                        return Err(Error::not_found("agent", &agent));
                    };
                    if row.holder.as_ref().is_some_and(|it| *it != me) && row.holder != other {
                        return Ok(false);
                    }
                    if let Some(other) = &other {
                        row.tasks.remove(other);
                    }
                    row.status = AgentStatus::Running;
                    row.holder = Some(me);
                    row.task = Some(task);
                    ROWS.set(tx, &agent, &row)?;
                    Ok(true)
                })?;
                drop(dead);
                if taken {
                    return Ok(());
                }
            }
            check()?;
            kenning_core::idle::waiting(|| std::thread::sleep(LOOK));
        }
    }

    /// The error as the contract says it.
    fn failure(&self, caller: &Caller, agent: &str, error: Error, timeout: Duration) -> Error {
        if error.code != Code::Timeout {
            return error;
        }
        if let Err(cancelled) = self.check_cancelled(caller, agent) {
            return cancelled;
        }
        if Instant::now() < caller.deadline {
            return error;
        }
        Error::timeout(format!("{TIMED_OUT} after {}ms", timeout.as_millis()))
            .hint("give it more time by `options.timeout`")
    }

    /// What a task leaves to learn from.
    fn trajectory(
        &self,
        spawn: &Spawn,
        agent: &str,
        outcome: Outcome,
        steps: &[Step],
        summary: String,
    ) -> Trajectory {
        let ended_ms = self.kernel.log().clock().now_ms();
        let ms = |it: Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
        let tail = self.new_id("traj");
        let tail = tail.strip_prefix("traj-").unwrap_or_default();
        Trajectory {
            id: format!("traj-{ended_ms}-{}", tail.get(..8).unwrap_or(tail)),
            family: Family::Agent,
            kind: spawn.kind.as_str().to_owned(),
            agent_id: agent.to_owned(),
            workflow_id: None,
            subject: short(&spawn.task, 500),
            steps: steps
                .iter()
                .map(|it| kenning_runs::Step {
                    action: it.action.to_owned(),
                    outcome: match it.is_done {
                        true => StepOutcome::Success,
                        false => StepOutcome::Failure,
                    },
                    duration_ms: ms(it.duration),
                    at_ms: it.at_ms,
                    state: Value::Null,
                    metadata: it.metadata.clone(),
                })
                .collect(),
            n_steps: steps.len() as u64,
            outcome,
            quality: None,
            summary,
            started_ms: steps.first().map_or(ended_ms, |it| it.at_ms),
            ended_ms,
        }
    }

    /// Writes down what came of a task: its report, its trajectory, the agent's row and the event, in one
    /// transaction.
    #[expect(
        clippy::too_many_arguments,
        reason = "everything that one transaction writes down"
    )]
    fn settle(
        &self,
        caller: &Caller,
        spawn: &Spawn,
        agent: &str,
        task_id: &str,
        outcome: Result<Prepared, &Error>,
        worked: &Worked,
        summary: String,
    ) -> Result<()> {
        let now_ms = self.kernel.log().clock().now_ms();
        let failed = outcome.as_ref().err().map(|it| it.message.clone());
        let prepared = outcome.ok();
        let (agent, task_id, kind) = (agent.to_owned(), task_id.to_owned(), spawn.kind);
        let (n_steps, tokens) = (worked.steps.len(), worked.usage.total());
        let me = self.runs.process().to_owned();
        let outcome = outcome_of(failed.as_deref());
        let trajectory = self.trajectory(spawn, &agent, outcome, &worked.steps, summary);
        let write = move |tx: &mut Tx<'_>| {
            let is_done = failed.is_none();
            let report = prepared.map(|it| it.put(tx)).transpose()?;
            let mut data = json!({
                "agentId": agent, "agentType": kind.as_str(), "taskId": task_id, "steps": n_steps,
                "tokensUsed": tokens,
            });
            if let Some(node) = report {
                data["nodeId"] = node.to_string().into();
            }
            if let Some(error) = &failed {
                data["error"] = error.as_str().into();
            }
            if let Some(mut row) = ROWS.get_readable(&**tx, &agent)? {
                row.leave(&me, &task_id);
                row.active_ms = now_ms;
                row.tokens = row.tokens.saturating_add(tokens);
                row.status = match (&failed, row.is_cancelled) {
                    (_, true) => AgentStatus::Terminated,
                    (Some(_), false) => AgentStatus::Failed,
                    (None, false) => AgentStatus::Completed,
                };
                row.is_cancelled = false;
                if is_done {
                    row.n_completed += 1;
                    row.report = Some(key_of(&task_id));
                } else {
                    row.n_errors += 1;
                }
                row.error.clone_from(&failed);
                ROWS.set(tx, &agent, &row)?;
            }
            let kind = if is_done {
                "AgentCompleted"
            } else {
                "AgentFailed"
            };
            kenning_runs::record(tx, trajectory)?;
            tx.record(kind, data).map(drop)
        };
        self.kernel.log().write_long(&caller.principal.space, write)
    }
}

/// How a task ended.
fn outcome_of(failed: Option<&str>) -> Outcome {
    match failed {
        None => Outcome::Completed,
        Some(CANCELLED) => Outcome::Cancelled,
        Some(message) if message.starts_with(TIMED_OUT) => Outcome::Timeout,
        Some(_) => Outcome::Failed,
    }
}

/// Whether the same may succeed later.
fn may_pass(error: &Error) -> bool {
    matches!(error.code, Code::Unavailable | Code::Conflict)
}

fn check(spawn: &Spawn) -> Result<()> {
    if !spawn.kind.is_spawnable() {
        return Err(not_registered(spawn.kind.as_str()));
    }
    let n = spawn.task.chars().count();
    if n > TASK_CHARS_MAX {
        return Err(Error::too_large(format!(
            "`task` has {n} characters, {TASK_CHARS_MAX} are allowed"
        ))
        .hint("say in a few sentences what to find out"));
    }
    let Some(name) = &spawn.name else {
        return Ok(());
    };
    let is_good = !name.trim().is_empty()
        && name.chars().count() <= NAME_CHARS_MAX
        && !name.chars().any(char::is_control);
    match is_good {
        true => Ok(()),
        false => Err(Error::invalid(
            "`name` is empty, longer than 100 characters or holds control characters",
        )
        .hint("for example `system-architect-1`")),
    }
}
