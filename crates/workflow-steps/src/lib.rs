//! Workflows: which steps each kind has, and what they do.
//!
//! A step reads what it needs, and returns what it leaves; [`Workflows::advance`] records that and goes on, until
//! the run has ended, waits, or is to be left. What calls tools is passed in ([`ToolRunner`]), because the tools
//! stand above. How plans are found is in the `workflow` crate, how a run is kept is in `runs`.
//!
//! Reading order: this file, `analysis`, `collaboration`, `sync`, `custom`; `documents` is what they share.

mod analysis;
mod collaboration;
mod custom;
mod documents;
mod sync;

use kenning_audit::on_behalf_of;
use kenning_core::{Error, Result, Space};
use kenning_kernel::{Caller, Kernel, Scope};
use kenning_kg::Kg;
use kenning_runs::{
    Claim, Ending, Family, NewRun, Outcome, Run, RunFilter, RunStats, Runs, Status, StepDone,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a step may take.
const STEP_MAX: Duration = Duration::from_secs(600);

/// More steps than this are a fault in whoever asked for them.
const STEPS_MAX: u64 = 10_000;

/// How often a run that watches looks.
const LOOK_EVERY_MS: u64 = 2_000;

/// A run that is due for longer than this, and on which nobody works, is neglected, although this process goes on
/// with runs: it may be busy with others.
const OVERDUE_MS: u64 = 60_000;

/// The same where this process does not go on with runs: another one would by now.
const UNSERVED_MS: u64 = 10_000;

/// After this long without a change a run that watches a document ends.
pub const INACTIVITY_MS: u64 = 300_000;

/// A kind of workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkflowKind {
    /// Watches a document and its neighbors until it is ready.
    Collaboration,
    /// Looks for gaps in documentation.
    Analysis,
    /// Brings the graph up to date with files, and exchanges with peers.
    Sync,
    /// Plans actions toward a goal and does them.
    Custom,
}

impl WorkflowKind {
    /// All, in the order of the contract.
    pub const ALL: [Self; 4] = [
        Self::Collaboration,
        Self::Analysis,
        Self::Sync,
        Self::Custom,
    ];

    /// The word when one is started.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Collaboration => "collaboration",
            Self::Analysis => "analysis",
            Self::Sync => "sync",
            Self::Custom => "custom",
        }
    }

    /// The word when one is listed.
    pub const fn list_name(self) -> &'static str {
        match self {
            Self::Collaboration => "realtime-collab",
            other => other.as_str(),
        }
    }

    /// The kind of this word, in either form.
    pub fn parse(word: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|it| it.as_str() == word || it.list_name() == word)
    }

    fn first_step(self) -> &'static str {
        match self {
            Self::Collaboration => "initialize",
            Self::Analysis => "collect-documents",
            Self::Sync => "check-paths",
            Self::Custom => "plan",
        }
    }
}

/// What a call changes: decides whether it may be made again after a process died in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEffect {
    /// Calling it again does no harm.
    Repeatable,
    /// It changes the store and nothing else.
    InStore,
    /// It reaches beyond the store.
    Outside,
}

/// Calls tools.
pub trait ToolRunner: Send + Sync {
    /// What a call would change.
    ///
    /// # Errors
    /// There is no such tool, or this caller may not call it so.
    fn effect_of(&self, caller: &Caller, tool: &str, arguments: &Value) -> Result<CallEffect>;

    /// Calls a tool within what the caller may.
    ///
    /// # Errors
    /// Those of the tool.
    fn call(&self, caller: &Caller, tool: &str, arguments: Value) -> Result<Value>;
}

/// How the workflows of a space are.
#[derive(Clone, Debug, Default)]
pub struct WorkflowService {
    /// Whether a worker of this process goes on with runs by itself.
    pub is_running: bool,
    /// Runs that have not ended.
    pub n_active: usize,
    /// Folders that running workflows watch.
    pub watched_paths: Vec<String>,
    /// When anything last happened, in milliseconds since 1970.
    pub last_ms: Option<u64>,
    /// Figures of those that ended.
    pub stats: RunStats,
    /// Runs that wait for somebody to decide, and why.
    pub in_doubt: Vec<(String, String)>,
    /// Runs that are due and on which nobody works.
    pub neglected: Vec<String>,
}

/// What comes of a step.
enum Next {
    /// It is done.
    Step(Box<StepDone>),
    /// Nothing has changed: look again then.
    Wait(u64),
    /// The run ends.
    End(Ending),
}

impl From<StepDone> for Next {
    fn from(done: StepDone) -> Self {
        Self::Step(Box::new(done))
    }
}

/// What a step works with.
struct Work<'a> {
    kernel: &'a Kernel,
    kg: &'a Kg,
    runs: &'a Runs,
    tools: &'a dyn ToolRunner,
    caller: &'a Caller,
    claim: &'a Claim<'a>,
    run: &'a Run,
}

impl Work<'_> {
    /// A field of the input, or of its `options`.
    fn given(&self, name: &str) -> Option<&Value> {
        let input = &self.run.input;
        let found = input.get(name).or_else(|| input.get("options")?.get(name));
        found.filter(|it| !it.is_null())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.given(name).and_then(Value::as_str)
    }

    fn threshold(&self) -> f64 {
        let given = self.given("threshold").and_then(Value::as_f64);
        given.unwrap_or(kenning_workflow::READY_SCORE)
    }

    fn now_ms(&self) -> u64 {
        self.kernel.log().clock().now_ms()
    }

    /// What the last step left, with one member more.
    fn kept_with(&self, name: &str, value: Value) -> Value {
        let mut kept = match &self.run.state {
            Value::Object(members) => members.clone(),
            _ => Map::new(),
        };
        kept.insert(name.to_owned(), value);
        Value::Object(kept)
    }

    fn kept(&self, name: &str) -> &Value {
        self.run.state.get(name).unwrap_or(&Value::Null)
    }
}

/// Starts workflows and does their steps.
pub struct Workflows {
    kernel: Arc<Kernel>,
    kg: Arc<Kg>,
    runs: Arc<Runs>,
}

impl Workflows {
    /// Over a kernel, the documents that steps read, and the runs that keep what they did.
    pub fn new(kernel: Arc<Kernel>, kg: Arc<Kg>, runs: Arc<Runs>) -> Self {
        Self { kernel, kg, runs }
    }

    /// Starts a workflow. It exists from now on; [`Workflows::advance`] does its steps.
    ///
    /// # Errors
    /// The caller may not write, or the input is malformed.
    pub fn start(
        &self,
        caller: &Caller,
        kind: WorkflowKind,
        input: Map<String, Value>,
    ) -> Result<Run> {
        check_input(kind, &input)?;
        let new = NewRun {
            family: Family::Workflow,
            kind: kind.as_str().to_owned(),
            input: Value::Object(input),
            first_step: kind.first_step().to_owned(),
        };
        self.runs.start(caller, new)
    }

    /// Goes on with a workflow until it has ended, waits for something, was suspended, or `goes_on` says no.
    /// `None` if somebody else works on it. What goes wrong in a step ends the run and is in its row.
    ///
    /// # Errors
    /// Those of the store.
    pub fn advance(
        &self,
        tools: &dyn ToolRunner,
        space: &Space,
        id: &str,
        goes_on: &dyn Fn(&Run) -> bool,
    ) -> Result<Option<Run>> {
        let Some(claim) = self.runs.claim(space, Family::Workflow, id)? else {
            return Ok(None);
        };
        let mut run = claim.run()?;
        while run.status == Status::Running && goes_on(&run) {
            let began = Instant::now();
            let next = match claim.principal() {
                Ok(principal) => {
                    let mut caller = Caller::new(principal);
                    caller.deadline = Instant::now() + STEP_MAX;
                    let work = Work {
                        kernel: &self.kernel,
                        kg: &self.kg,
                        runs: &self.runs,
                        tools,
                        caller: &caller,
                        claim: &claim,
                        run: &run,
                    };
                    // What a run writes carries the identifier of the agent that started it.
                    let agent = self.kernel.agent_of(&caller).ok().flatten();
                    on_behalf_of(agent, || step(&work))
                }
                Err(error) => Err(error),
            };
            let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            run = match next {
                Ok(Next::Step(mut done)) => {
                    done.duration_ms = took_ms;
                    claim.step(*done)?
                }
                Ok(Next::Wait(due_ms)) => return claim.wait(due_ms).map(Some),
                Ok(Next::End(ending)) => claim.finish(ending)?,
                Err(error) => {
                    let now = claim.run()?;
                    if now.status != Status::Running {
                        return Ok(Some(now));
                    }
                    // The store may be back in a moment: then the step is done again.
                    if error.retryable() && error.code != kenning_core::Code::Timeout {
                        return Err(error);
                    }
                    claim.finish(Ending {
                        error: Some(error.to_string()),
                        summary: format!("It failed at {}: {error}", run.current_step),
                        ..Ending::of(Outcome::Failed)
                    })?
                }
            };
        }
        Ok(Some(run))
    }

    /// How the workflows of the caller's space are.
    ///
    /// # Errors
    /// The caller may not read, and those of the store.
    pub fn service(&self, caller: &Caller) -> Result<WorkflowService> {
        caller.principal.require(Scope::Read)?;
        let all = self
            .runs
            .list(caller, Family::Workflow, &RunFilter::default())?;
        let mut watched_paths: Vec<String> = all
            .iter()
            .filter(|it| it.status == Status::Running)
            .flat_map(sync::watched_by)
            .collect();
        watched_paths.sort();
        watched_paths.dedup();
        let is_serving = self.runs.is_serving();
        let late_ms = match is_serving {
            true => OVERDUE_MS,
            false => UNSERVED_MS,
        };
        let now_ms = self.runs.now_ms();
        let is_late = |it: &&Run| {
            it.status == Status::Running && it.due_ms.max(it.last_ms) + late_ms < now_ms
        };
        let late: Vec<&Run> = all.iter().filter(is_late).collect();
        let holders = late.iter().filter_map(|it| it.holder.as_ref());
        let dead = self.runs.dead_among(holders)?;
        let space = &caller.principal.space;
        let is_alone = |it: &&&Run| match &it.holder {
            Some(holder) if holder == self.runs.process() => !self.runs.works_on(space, &it.id),
            Some(holder) => dead.contains(holder),
            None => true,
        };
        Ok(WorkflowService {
            neglected: late
                .iter()
                .filter(is_alone)
                .map(|it| it.id.clone())
                .collect(),
            is_running: is_serving,
            n_active: all.iter().filter(|it| it.status.is_active()).count(),
            watched_paths,
            last_ms: all.iter().map(|it| it.last_ms).max(),
            stats: RunStats::of(&all),
            in_doubt: all
                .iter()
                .filter_map(|it| Some((it.id.clone(), it.doubt.clone()?)))
                .collect(),
        })
    }
}

fn step(work: &Work<'_>) -> Result<Next> {
    if work.run.n_steps >= STEPS_MAX {
        return Err(Error::limited(format!(
            "it has more than {STEPS_MAX} steps"
        )));
    }
    match WorkflowKind::parse(&work.run.kind) {
        Some(WorkflowKind::Analysis) => analysis::step(work),
        Some(WorkflowKind::Collaboration) => collaboration::step(work),
        Some(WorkflowKind::Sync) => sync::step(work),
        Some(WorkflowKind::Custom) => custom::step(work),
        None => Err(Error::internal(format!(
            "a run of the unknown kind `{}`",
            work.run.kind
        ))),
    }
}

/// A step that this version does not know: of a row that another version wrote.
fn unknown(work: &Work<'_>) -> Error {
    Error::internal(format!(
        "`{}` has no step `{}`",
        work.run.kind, work.run.current_step
    ))
}

/// The members of `input` that every kind has, those of its `options`, and those that only a custom workflow has, in
/// either place.
const MEMBERS: [&str; 3] = ["graphId", "docPath", "options"];
const OPTIONS: [&str; 3] = ["autoStart", "watchPaths", "threshold"];
const OF_CUSTOM: [&str; 4] = ["goal", "facts", "goals", "actions"];

/// What the input of a workflow of this kind may have, as paths from `input` on.
pub fn known_members(kind: WorkflowKind) -> Vec<String> {
    let custom = || OF_CUSTOM.iter().filter(|_| kind == WorkflowKind::Custom);
    let outer = MEMBERS.iter().chain(custom());
    let inner = OPTIONS.iter().chain(custom());
    let outer = outer.map(|it| format!("input.{it}"));
    outer
        .chain(inner.map(|it| format!("input.options.{it}")))
        .collect()
}

/// What an input has that no workflow of this kind reads, as paths from `input` on.
pub fn unknown_members(kind: WorkflowKind, input: &Map<String, Value>) -> Vec<String> {
    let known = known_members(kind);
    let outer = input.keys().map(|it| format!("input.{it}"));
    let options = input.get("options").and_then(Value::as_object);
    let inner = options.into_iter().flat_map(Map::keys);
    let all = outer.chain(inner.map(|it| format!("input.options.{it}")));
    all.filter(|it| !known.contains(it)).collect()
}

/// Refuses an input before anything is written.
fn check_input(kind: WorkflowKind, input: &Map<String, Value>) -> Result<()> {
    let options = match input.get("options") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(options)) => options.clone(),
        Some(other) => {
            return Err(Error::invalid(format!(
                "`input.options`: {other} is not an object"
            )));
        }
    };
    for name in ["graphId", "docPath"] {
        if let Some(value) = input.get(name).filter(|it| !it.is_null())
            && !value.is_string()
        {
            return Err(Error::invalid(format!(
                "`input.{name}`: {value} is not a text"
            )));
        }
    }
    if let Some(value) = options.get("threshold").filter(|it| !it.is_null()) {
        let number = value.as_f64().filter(|it| (0.0..=1.0).contains(it));
        number.ok_or_else(|| {
            Error::invalid(format!(
                "`input.options.threshold`: {value} is not a number between 0 and 1"
            ))
        })?;
    }
    if let Some(value) = options.get("autoStart").filter(|it| !it.is_null())
        && !value.is_boolean()
    {
        return Err(Error::invalid(format!(
            "`input.options.autoStart`: {value} is not true or false"
        )));
    }
    if let Some(value) = options.get("watchPaths").filter(|it| !it.is_null()) {
        let paths = value.as_array();
        let paths =
            paths.filter(|it| it.len() <= sync::PATHS_MAX && it.iter().all(Value::is_string));
        paths.ok_or_else(|| {
            Error::invalid(format!(
                "`input.options.watchPaths`: {value} is not a list of at most {} paths",
                sync::PATHS_MAX
            ))
        })?;
    }
    match kind {
        WorkflowKind::Custom => custom::problem(&Value::Object(input.clone())).map(drop),
        WorkflowKind::Collaboration if !input.contains_key("docPath") => Err(Error::invalid(
            "`input.docPath`: a collaboration needs a document",
        )
        .hint("for example `{\"docPath\": \"docs/spec.md\"}`")),
        _ => Ok(()),
    }
}

/// A number of things, in words.
fn count(n: usize, one: &str, many: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        _ => format!("{n} {many}"),
    }
}

/// An event about gaps, with at most so many of them.
fn gap_event(run: &Run, gaps: &[Value]) -> (String, Value) {
    const TOLD_MAX: usize = 50;
    let told: Vec<&Value> = gaps.iter().take(TOLD_MAX).collect();
    let data = json!({ "workflowId": run.id, "count": gaps.len(), "gaps": told });
    ("GapDetected".to_owned(), data)
}
