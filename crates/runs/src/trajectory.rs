//! What a run leaves: what was done, how it went, and what follows from many of them.
//!
//! A trajectory is a row, and a node that searches find. When it is recorded, in the same transaction, the sequence
//! of its actions is counted, and each action: from these counts come recommendations, and the prices that planners
//! add to actions that failed.

use crate::run::{Family, Outcome, Run, Step, StepOutcome};
use crate::{Runs, open_runs, short};
use kenning_audit::{Draft, Tx};
use kenning_core::{Hash, Kind, Result};
use kenning_kernel::{Bucket, Caller, Scope};
use kenning_store::{ReadTx, When};
use kenning_workflow::format_duration;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Trajectories that are kept; the oldest go first.
pub const TRAJECTORIES_MAX: usize = 1_000;

/// Steps that are kept of one.
pub const STEPS_MAX: usize = 100;

/// By their ids, which begin with the time.
const ROWS: Bucket<Trajectory> = Bucket::new("trajectories");

/// Sequences of actions, by kind and sequence.
const PATTERNS: Bucket<Pattern> = Bucket::new("trajectories/patterns");

/// How often each action succeeded and failed.
const ACTIONS: Bucket<(u64, u64)> = Bucket::new("trajectories/actions");

/// How many were recorded.
const COUNTS: Bucket<u64> = Bucket::new("trajectories/counts");

/// After this many it is looked whether old ones are to go.
const LOOK_EVERY: u64 = 50;

/// Patterns that are kept; the ones that were not seen for the longest time go first.
const PATTERNS_MAX: usize = 500;

/// From this many successes on, each further one is a learning record.
const LEARNED_FROM: u64 = 3;

/// How many recommendations are given.
const ADVICE_MAX: usize = 5;

/// What a run left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trajectory {
    /// `traj-` and the time.
    pub id: String,
    /// A workflow's or an agent's.
    pub family: Family,
    /// The kind of the run: `analysis`, `researcher`.
    pub kind: String,
    /// Who acted: an agent's id, or `workflow-` and the kind.
    pub agent_id: String,
    /// The workflow that it belongs to.
    pub workflow_id: Option<String>,
    /// What it was about, in a sentence.
    pub subject: String,
    /// What was done, at most [`STEPS_MAX`] steps.
    pub steps: Vec<Step>,
    /// How many steps there were.
    pub n_steps: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// How good the result is, between 0 and 1.
    pub quality: Option<f64>,
    /// What was found, for search.
    pub summary: String,
    /// In milliseconds since 1970.
    pub started_ms: u64,
    /// In milliseconds since 1970.
    pub ended_ms: u64,
}

impl Trajectory {
    /// Of a run that ends.
    pub(crate) fn of_run(run: &Run, summary: String, quality: Option<f64>) -> Self {
        let tail = Hash::of(run.id.as_bytes()).to_string();
        let tail = tail.get(..8).unwrap_or_default();
        let is_agent = run.family == Family::Agent;
        let given = |name: &str| run.input.get(name).and_then(Value::as_str);
        Self {
            id: format!("traj-{}-{tail}", run.last_ms),
            family: run.family,
            kind: run.kind.clone(),
            agent_id: match is_agent {
                true => run.id.clone(),
                false => format!("workflow-{}", run.kind),
            },
            workflow_id: match is_agent {
                true => given("workflowId").map(str::to_owned),
                false => Some(run.id.clone()),
            },
            subject: {
                let named = ["task", "goal", "docPath"];
                let named = named.iter().find_map(|it| given(it));
                short(named.unwrap_or_default(), 500)
            },
            steps: run.steps.clone(),
            n_steps: run.n_steps,
            outcome: run.outcome.unwrap_or(Outcome::Failed),
            quality,
            summary,
            started_ms: run.started_ms,
            ended_ms: run.last_ms,
        }
    }

    /// Whether it went well.
    pub fn is_success(&self) -> bool {
        self.outcome == Outcome::Completed
    }

    /// How long it took.
    pub fn duration_ms(&self) -> u64 {
        self.ended_ms.saturating_sub(self.started_ms)
    }

    /// Its actions, in order.
    pub fn actions(&self) -> Vec<&str> {
        self.steps.iter().map(|it| it.action.as_str()).collect()
    }

    /// The text that searches find.
    fn text(&self) -> String {
        let mut text = format!(
            "The {} {} {} {} after {}.\n",
            self.kind,
            self.family.as_str(),
            self.workflow_id.as_deref().unwrap_or(&self.agent_id),
            match self.outcome {
                Outcome::Completed => "completed",
                Outcome::Failed => "failed",
                Outcome::Timeout => "waited in vain",
                Outcome::Cancelled => "was cancelled",
            },
            format_duration(self.duration_ms()),
        );
        if !self.subject.is_empty() {
            text += &format!("It was about: {}\n", self.subject);
        }
        if !self.summary.is_empty() {
            text += &format!("\n{}\n", self.summary);
        }
        let steps = self.steps.iter().map(|it| match it.outcome {
            StepOutcome::Success => it.action.clone(),
            other => format!("{} ({})", it.action, other.as_str()),
        });
        let steps: Vec<String> = steps.collect();
        text + &format!("\nSteps: {}\n", steps.join(", "))
    }
}

/// A sequence of actions that was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pattern {
    /// The kind of the runs.
    pub kind: String,
    /// The actions, joined by `->`.
    pub id: String,
    /// How many actions.
    pub n_actions: usize,
    /// How often it led to success.
    pub n_succeeded: u64,
    /// How often it did not.
    pub n_failed: u64,
    /// How long the successful ones took together.
    pub total_ms: u64,
    /// How many learning records there are.
    pub n_learned: u64,
    /// When it was last seen.
    pub last_ms: u64,
}

impl Pattern {
    /// How well it is known: a tenth for each success, at most 1.
    pub fn confidence(&self) -> f64 {
        (self.n_succeeded as f64 / 10.0).min(1.0)
    }

    /// The share of successes.
    pub fn success_rate(&self) -> f64 {
        match self.n_succeeded + self.n_failed {
            0 => 0.0,
            all => self.n_succeeded as f64 / all as f64,
        }
    }
}

/// A sequence of actions that is recommended.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// What was seen.
    pub pattern: Pattern,
    /// Confidence times the share of successes.
    pub score: f64,
}

/// Which trajectories. What is left out admits all; what is given is combined.
#[derive(Clone, Debug, Default)]
pub struct TrajectoryFilter {
    /// Of this agent.
    pub agent_id: Option<String>,
    /// Of this workflow.
    pub workflow_id: Option<String>,
    /// Only those that went well.
    pub success_only: bool,
}

/// Figures of all trajectories.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrajectoryStats {
    /// How many are kept.
    pub n_trajectories: usize,
    /// How many runs are under way.
    pub n_active: usize,
    /// How many of those kept went well.
    pub n_succeeded: usize,
    /// How many of those kept somebody stopped: they say nothing about success.
    pub n_cancelled: usize,
    /// How long one took on average.
    pub mean_ms: u64,
    /// How many sequences led to success.
    pub n_patterns: usize,
    /// How many learning records there are.
    pub n_learned: u64,
}

/// Records a trajectory: its row, its node, and what is learned from it. The caller records the event.
///
/// # Errors
/// Those of the store.
pub fn record(tx: &mut Tx<'_>, mut trajectory: Trajectory) -> Result<()> {
    learn(tx, &trajectory)?;
    let n_surplus = trajectory.steps.len().saturating_sub(STEPS_MAX);
    trajectory.steps.drain(..n_surplus);
    let body = trajectory.text();
    let title = format!("{} {}", trajectory.kind, trajectory.family.as_str());
    let title = match trajectory.subject.is_empty() {
        true => title,
        false => format!("{title}: {}", short(&trajectory.subject, 80)),
    };
    let mut props = Map::new();
    for (name, value) in [
        ("trajectory", json!(trajectory.id)),
        ("agentId", json!(trajectory.agent_id)),
        ("workflowId", json!(trajectory.workflow_id)),
        ("outcome", json!(trajectory.outcome.as_str())),
        ("quality", json!(trajectory.quality)),
    ] {
        props.insert(name.to_owned(), value);
    }
    let passages = kenning_search::passages(&title, &body);
    let node = tx.put_node(Draft {
        kind: Kind::Trajectory,
        project: String::new(),
        key: trajectory.id.clone(),
        title,
        body,
        props,
    })?;
    tx.put_passages(node.id, &passages)?;
    ROWS.set(tx, &trajectory.id, &trajectory)?;
    let n_recorded = COUNTS.get_readable(&**tx, "all")?.unwrap_or_default() + 1;
    COUNTS.set(tx, "all", &n_recorded)?;
    if n_recorded.is_multiple_of(LOOK_EVERY) {
        forget_old(tx)?;
    }
    Ok(())
}

/// Counts the sequence and the actions. A sequence that was once successful also counts its failures.
fn learn(tx: &mut Tx<'_>, trajectory: &Trajectory) -> Result<()> {
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for step in &trajectory.steps {
        let count = counts.entry(&step.action).or_default();
        match step.outcome {
            StepOutcome::Success => count.0 += 1,
            StepOutcome::Failure => count.1 += 1,
            StepOutcome::Pending => {}
        }
    }
    for (action, (succeeded, failed)) in counts {
        let key = short(action, 200);
        let known = ACTIONS.get_readable(&**tx, &key)?.unwrap_or_default();
        ACTIONS.set(tx, &key, &(known.0 + succeeded, known.1 + failed))?;
    }
    if trajectory.steps.len() < 2 {
        return Ok(());
    }
    let id = trajectory.actions().join("->");
    let key = Hash::of(format!("{}\n{id}", trajectory.kind).as_bytes()).to_string();
    let known = PATTERNS.get_readable(&**tx, &key)?;
    let is_stopped = trajectory.outcome == Outcome::Cancelled;
    if known.is_none() && !trajectory.is_success() || is_stopped {
        return Ok(());
    }
    let mut pattern = known.unwrap_or_else(|| Pattern {
        kind: trajectory.kind.clone(),
        id: short(&id, 4_000),
        n_actions: trajectory.steps.len(),
        ..Pattern::default()
    });
    pattern.last_ms = trajectory.ended_ms;
    match trajectory.is_success() {
        true => {
            pattern.n_succeeded += 1;
            pattern.total_ms += trajectory.duration_ms();
            pattern.n_learned += u64::from(pattern.n_succeeded > LEARNED_FROM);
        }
        false => pattern.n_failed += 1,
    }
    PATTERNS.set(tx, &key, &pattern)
}

fn forget_old(tx: &mut Tx<'_>) -> Result<()> {
    let mut rows = ROWS.list_readable(&**tx)?;
    rows.sort_by(|a, b| (a.1.ended_ms, &a.0).cmp(&(b.1.ended_ms, &b.0)));
    let n_surplus = rows.len().saturating_sub(TRAJECTORIES_MAX);
    for (id, _) in rows.into_iter().take(n_surplus) {
        ROWS.unset(tx, &id)?;
        if let Some(node) = tx.node_by_key("", Kind::Trajectory, &id, When::Now)? {
            tx.remove_node(node.id)?;
        }
    }
    let mut patterns = PATTERNS.list_readable(&**tx)?;
    patterns.sort_by_key(|it| it.1.last_ms);
    let n_surplus = patterns.len().saturating_sub(PATTERNS_MAX);
    for (key, _) in patterns.into_iter().take(n_surplus) {
        PATTERNS.unset(tx, &key)?;
    }
    Ok(())
}

impl Runs {
    /// Trajectories, newest first, and how many there are of the kind.
    ///
    /// # Errors
    /// The caller may not read, and those of the store.
    pub fn trajectories(
        &self,
        caller: &Caller,
        filter: &TrajectoryFilter,
    ) -> Result<Vec<Trajectory>> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let rows = self
            .kernel()
            .log()
            .read(space, |tx| ROWS.list_readable(tx))?;
        let mut found: Vec<Trajectory> = rows
            .into_iter()
            .map(|it| it.1)
            .filter(|it| {
                let is_agent = |id: &String| {
                    it.agent_id == *id || it.kind == *id && it.family == Family::Agent
                };
                filter.agent_id.as_ref().is_none_or(is_agent)
                    && (filter.workflow_id.is_none() || it.workflow_id == filter.workflow_id)
                    && (!filter.success_only || it.is_success())
            })
            .collect();
        found.sort_by(|a, b| (b.ended_ms, &b.id).cmp(&(a.ended_ms, &a.id)));
        Ok(found)
    }

    /// A trajectory by its id.
    ///
    /// # Errors
    /// The caller may not read, and those of the store.
    pub fn trajectory(&self, caller: &Caller, id: &str) -> Result<Option<Trajectory>> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        self.kernel().log().read(space, |tx| ROWS.get(tx, id))
    }

    /// Figures of all trajectories of a space.
    ///
    /// # Errors
    /// The caller may not read, and those of the store.
    pub fn trajectory_stats(&self, caller: &Caller) -> Result<TrajectoryStats> {
        caller.principal.require(Scope::Read)?;
        self.kernel().log().read(&caller.principal.space, |tx| {
            let rows = ROWS.list_readable(tx)?;
            let mut n_active = 0;
            for family in Family::ALL {
                n_active += open_runs(family).keys(tx)?.len();
            }
            let total_ms: u64 = rows.iter().map(|it| it.1.duration_ms()).sum();
            let patterns = learned(tx)?;
            Ok(TrajectoryStats {
                n_trajectories: rows.len(),
                n_active,
                n_succeeded: rows.iter().filter(|it| it.1.is_success()).count(),
                n_cancelled: rows
                    .iter()
                    .filter(|it| it.1.outcome == Outcome::Cancelled)
                    .count(),
                mean_ms: (total_ms + rows.len() as u64 / 2)
                    .checked_div(rows.len() as u64)
                    .unwrap_or_default(),
                n_patterns: patterns.len(),
                n_learned: patterns.iter().map(|it| it.n_learned).sum(),
            })
        })
    }

    /// The sequences of actions that led to success, those that are most to be recommended first; of one kind of
    /// run, or of all.
    ///
    /// # Errors
    /// The caller may not read, and those of the store.
    pub fn advice(&self, caller: &Caller, kind: Option<&str>) -> Result<Vec<Advice>> {
        let mut all = self.patterns(caller, kind)?;
        all.truncate(ADVICE_MAX);
        Ok(all)
    }

    /// The same, all of them.
    ///
    /// # Errors
    /// The caller may not read, and those of the store.
    pub fn patterns(&self, caller: &Caller, kind: Option<&str>) -> Result<Vec<Advice>> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let patterns = self.kernel().log().read(space, learned)?.into_iter();
        let patterns = patterns.filter(|it| kind.is_none_or(|kind| it.kind == kind));
        let mut all: Vec<Advice> = patterns
            .map(|pattern| Advice {
                score: pattern.confidence() * pattern.success_rate(),
                pattern,
            })
            .collect();
        all.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.pattern.id.cmp(&b.pattern.id))
        });
        Ok(all)
    }

    /// How often each of these actions succeeded and failed, over all runs.
    ///
    /// # Errors
    /// Those of the store.
    pub fn experience(&self, caller: &Caller, actions: &[&str]) -> Result<Vec<(u64, u64)>> {
        self.kernel().log().read(&caller.principal.space, |tx| {
            let counts = actions.iter().map(|it| {
                let known = ACTIONS.get_readable(tx, &short(it, 200))?;
                Ok(known.unwrap_or_default())
            });
            counts.collect()
        })
    }
}

fn learned(tx: &dyn ReadTx) -> Result<Vec<Pattern>> {
    let rows = PATTERNS.list_readable(tx)?.into_iter().map(|it| it.1);
    Ok(rows.filter(|it| it.n_succeeded > 0).collect())
}
