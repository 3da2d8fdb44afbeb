//! The row of a run.

use kenning_core::{Error, Result, Space};
use kenning_kernel::{Caller, Principal, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// A workflow.
    Workflow,
    /// An agent.
    Agent,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 2] = [Self::Workflow, Self::Agent];

    /// The word in rows and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Agent => "agent",
        }
    }

    /// The kind of an event: `WorkflowStarted`.
    pub fn event(self, what: &str) -> String {
        match self {
            Self::Workflow => format!("Workflow{what}"),
            Self::Agent => format!("Agent{what}"),
        }
    }
}

/// How a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It goes on, now or when something it waits for happens.
    Running,
    /// It ended well.
    Completed,
    /// It ended badly.
    Failed,
    /// It waits for somebody to resume it.
    Suspended,
}

impl Status {
    /// All, in the order of the contract.
    pub const ALL: [Self; 4] = [
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Suspended,
    ];

    /// The word in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Suspended => "suspended",
        }
    }

    /// Whether it may still go on.
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Running | Self::Suspended)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It did what it was to do.
    Completed,
    /// Something went wrong.
    Failed,
    /// What it waited for did not happen in time.
    Timeout,
    /// Somebody stopped it.
    Cancelled,
}

impl Outcome {
    /// The word in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status of a run that ended so. To wait in vain is no failure.
    pub const fn status(self) -> Status {
        match self {
            Self::Completed | Self::Timeout => Status::Completed,
            Self::Failed | Self::Cancelled => Status::Failed,
        }
    }
}

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepOutcome {
    /// The step succeeded.
    Success,
    /// The step failed.
    Failure,
    /// It was left to somebody else.
    Pending,
}

impl StepOutcome {
    /// The word in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Pending => "pending",
        }
    }
}

/// A step that was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What was done, in a word: the same for the same thing, so that runs can be compared.
    pub action: String,
    /// How it went.
    pub outcome: StepOutcome,
    /// How long it took.
    pub duration_ms: u64,
    /// When it was recorded, in milliseconds since 1970.
    pub at_ms: u64,
    /// What was known after it.
    #[serde(default)]
    pub state: Value,
    /// What it found or made.
    #[serde(default)]
    pub metadata: Value,
}

/// For whom a run works: what it may do is what they may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// For the log.
    pub name: String,
    /// Words of scopes.
    pub scopes: Vec<String>,
    /// The token, if there was one: once it is revoked, the run does not go on.
    pub token: Option<String>,
}

impl Who {
    /// Whoever calls.
    pub fn of(caller: &Caller) -> Self {
        let Principal {
            name,
            scopes,
            token,
            ..
        } = &caller.principal;
        Self {
            name: name.clone(),
            scopes: scopes.iter().map(|it| it.as_str().to_owned()).collect(),
            token: token.clone(),
        }
    }

    /// The same as a principal.
    pub fn principal(&self, space: &Space) -> Principal {
        let scopes = self.scopes.iter().filter_map(|it| it.parse::<Scope>().ok());
        Principal {
            name: self.name.clone(),
            space: space.clone(),
            scopes: scopes.collect(),
            token: self.token.clone(),
            // A run belongs to the space: other callers may continue it.
            project: None,
        }
    }
}

/// What a run asks whoever looks after it, as a form to fill in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// For people.
    pub text: String,
    /// A JSON schema of an object whose members are plain values.
    pub form: Value,
}

/// The member of the form that says how a suspended run goes on.
pub(crate) const DECISION: &str = "decision";

/// How a suspended run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// After the step that is in doubt, if one is.
    GoOn,
    /// With the step that is in doubt once more.
    Again,
    /// Not at all.
    Stop,
}

impl Decision {
    fn as_str(self) -> &'static str {
        match self {
            Self::GoOn => "go on",
            Self::Again => "again",
            Self::Stop => "stop",
        }
    }

    /// The decision in a form that was filled in.
    pub(crate) fn of(answer: &Value) -> Option<Self> {
        let word = answer.get("content")?.get(DECISION)?.as_str()?;
        let is_accepted = answer.get("action")?.as_str()? == "accept";
        let mut all = [Self::GoOn, Self::Again, Self::Stop].into_iter();
        all.find(|it| it.as_str() == word && is_accepted)
    }
}

/// A run to start.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// A workflow or an agent.
    pub family: Family,
    /// Its kind, which its id begins with: `analysis`, `researcher`.
    pub kind: String,
    /// What it was given.
    pub input: Value,
    /// The name of its first step.
    pub first_step: String,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// A workflow or an agent.
    pub family: Family,
    /// Its kind.
    pub kind: String,
    /// What it was given.
    pub input: Value,
    /// How it is.
    pub status: Status,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// The step that is under way, or comes next.
    pub current_step: String,
    /// How many steps were done.
    pub n_steps: u64,
    /// The steps that were done, the newest of them if they are many.
    pub steps: Vec<Step>,
    /// The number of a step that was begun and has an effect outside of this row.
    pub begun: Option<u64>,
    /// What whoever does the steps keeps between them.
    pub state: Value,
    /// What it made.
    pub artifacts: Vec<Value>,
    /// Why it failed or was suspended.
    pub error: Option<String>,
    /// A step of which nobody knows whether it was done: somebody has to say how to go on.
    #[serde(default)]
    pub doubt: Option<String>,
    /// What it asked and nobody has answered yet: it is suspended until then.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub questions: BTreeMap<String, Question>,
    /// What was answered: the result of an elicitation, by the key of its question.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, Value>,
    /// How often it was suspended.
    #[serde(default)]
    pub n_suspended: u64,
    /// In milliseconds since 1970.
    pub started_ms: u64,
    /// When the row last changed.
    pub last_ms: u64,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// Nothing is due before: it waits for time to pass or for a change.
    pub due_ms: u64,
    /// The process that works on it.
    pub holder: Option<String>,
    /// The trajectory that it left.
    pub trajectory: Option<String>,
}

/// At most this many steps are kept in the row.
pub(crate) const ROW_STEPS_MAX: usize = 200;

impl Run {
    pub(crate) fn new(id: String, new: NewRun, now_ms: u64) -> Self {
        Self {
            id,
            family: new.family,
            kind: new.kind,
            input: new.input,
            status: Status::Running,
            outcome: None,
            current_step: new.first_step,
            n_steps: 0,
            steps: Vec::new(),
            begun: None,
            state: Value::Null,
            artifacts: Vec::new(),
            error: None,
            doubt: None,
            questions: BTreeMap::new(),
            answers: BTreeMap::new(),
            n_suspended: 0,
            started_ms: now_ms,
            last_ms: now_ms,
            ended_ms: None,
            due_ms: 0,
            holder: None,
            trajectory: None,
        }
    }

    /// How long it has taken so far, or took.
    pub fn duration_ms(&self) -> u64 {
        self.last_ms.saturating_sub(self.started_ms)
    }

    /// What has to be answered before it goes on, by keys that are never used again. One that was suspended without
    /// a question asks how to go on.
    pub fn open_questions(&self) -> BTreeMap<String, Question> {
        if self.status != Status::Suspended {
            return BTreeMap::new();
        }
        if !self.questions.is_empty() {
            return self.questions.clone();
        }
        let words: &[Decision] = match self.doubt {
            Some(_) => &[Decision::GoOn, Decision::Again, Decision::Stop],
            None => &[Decision::GoOn, Decision::Stop],
        };
        let words: Vec<&str> = words.iter().map(|it| it.as_str()).collect();
        let why = self.doubt.as_ref().or(self.error.as_ref());
        let text = match why {
            Some(why) => format!("`{}` is suspended: {why}", self.id),
            None => format!("`{}` is suspended", self.id),
        };
        let form = json!({
            "type": "object",
            "properties": { DECISION: { "type": "string", "enum": words } },
            "required": [DECISION],
        });
        [(self.decision_key(), Question { text, form })].into()
    }

    /// The key of the question how to go on: another one each time that it is suspended.
    pub(crate) fn decision_key(&self) -> String {
        format!("{DECISION}-{}", self.n_suspended)
    }

    /// How it is, in one word for people: how it ended, else its status. The status of the contract has no word for
    /// one that was cancelled.
    pub fn word(&self) -> &'static str {
        self.outcome.map_or(self.status.as_str(), Outcome::as_str)
    }

    pub(crate) fn must_be_open(&self) -> Result<()> {
        match self.ended_ms {
            None => Ok(()),
            Some(_) => Err(
                Error::conflict(format!("`{}` has ended: {}", self.id, self.word()))
                    .hint("start another one"),
            ),
        }
    }
}
