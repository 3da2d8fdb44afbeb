//! `kg_agent_spawn`

use super::words::{KgReply, Required};
use crate::{Call, Effect, Example, OtherTools, Tool, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::Caller;
use kenning_engine::agents::{AgentKind, Artifact, Priority, Spawn, Toolbox};
use kenning_engine::llm::ToolSpec;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::time::Duration;

/// The tool.
pub struct KgAgentSpawn;

/// Spawn an agent to look at documents and code and report.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["type", "task"]))]
pub struct Input {
    /// Agent type
    #[serde(default, rename = "type")]
    kind: KindWord,
    /// Its name
    name: Option<String>,
    /// In any words
    #[serde(default)]
    task: Required,
    /// Limits
    #[serde(default)]
    options: Options,
}

/// How an agent works.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct Options {
    /// In ms
    timeout: Option<f64>,
    /// Maximum retries
    max_retries: Option<f64>,
    /// Task priority
    priority: Option<PriorityWord>,
}

/// A type of agent, with the contract's own error whatever was given.
#[derive(Default)]
pub(super) struct KindWord(Option<Value>);

impl<'de> Deserialize<'de> for KindWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Some(Value::deserialize(deserializer)?)))
    }
}

impl JsonSchema for KindWord {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AgentType".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": AgentKind::SPAWNABLE.map(AgentKind::as_str) })
    }
}

impl KindWord {
    fn kind(self) -> Result<AgentKind> {
        let word = match self.0 {
            Some(Value::String(word)) if !word.is_empty() => word,
            None | Some(Value::Null | Value::String(_)) => {
                return Err(Error::invalid("Agent type is required").hint(hint()));
            }
            Some(other) => other.to_string(),
        };
        let found = AgentKind::SPAWNABLE
            .into_iter()
            .find(|it| it.as_str() == word);
        let shown: String = word
            .chars()
            .filter(|it| !it.is_control())
            .take(100)
            .collect();
        found.ok_or_else(|| {
            Error::invalid(format!("Agent type '{shown}' is not registered")).hint(hint())
        })
    }
}

fn hint() -> String {
    format!(
        "one of {}",
        AgentKind::SPAWNABLE.map(AgentKind::as_str).join(", ")
    )
}

/// A priority.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[allow(
    missing_docs,
    reason = "without texts the schema is a plain list of words"
)]
pub(super) enum PriorityWord {
    Low,
    Medium,
    High,
    Critical,
}

impl From<PriorityWord> for Priority {
    fn from(word: PriorityWord) -> Self {
        match word {
            PriorityWord::Low => Self::Low,
            PriorityWord::Medium => Self::Medium,
            PriorityWord::High => Self::High,
            PriorityWord::Critical => Self::Critical,
        }
    }
}

/// What came of it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    agent_id: String,
    agent_type: &'static str,
    agent_name: String,
    task_id: String,
    /// `summary`, `findings`, `recommendations`, and what else this type of agent reports.
    task_result: Map<String, Value>,
    metrics: Metrics,
    artifacts: Vec<Made>,
    /// The node that keeps the report.
    report: String,
}

/// What it took.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metrics {
    /// In milliseconds.
    duration: u64,
    /// Of a language model; 0 without one.
    tokens_used: u64,
    /// Set if the model's server did not count them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tokens_estimated: bool,
    #[serde(skip_serializing_if = "is_zero")]
    retries: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Something that was made.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Made {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    content: String,
    mime_type: &'static str,
}

impl From<Artifact> for Made {
    fn from(it: Artifact) -> Self {
        Self {
            kind: it.kind,
            name: it.name,
            content: it.content,
            mime_type: it.mime_type,
        }
    }
}

/// A number of the caller's, at least 0.
fn whole(field: &str, number: Option<f64>) -> Result<Option<u64>> {
    let Some(number) = number else {
        return Ok(None);
    };
    if !number.is_finite() || number < 0.0 {
        return Err(Error::invalid(format!(
            "`options.{field}`: {number} is not a number above 0"
        ))
        .hint(format!("leave `{field}` out for the default")));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between two numbers that fit"
    )]
    Ok(Some(number.min(1e12) as u64))
}

/// What an agent may call: tools of the table that only read, as the caller may.
struct Readers<'a>(&'a dyn OtherTools);

/// What helps agents of every type.
const COMMON: [&str; 6] = [
    "knowledge_search",
    "kg_search_nodes",
    "kg_get_node",
    "get_entity_neighborhood",
    "code_query",
    "memory_recall",
];

impl Toolbox for Readers<'_> {
    fn tools(&self, kind: AgentKind) -> Vec<ToolSpec> {
        let own: &[&str] = match kind {
            AgentKind::Researcher => &["koi_search", "vault_read_note"],
            AgentKind::Tester | AgentKind::Analyst => {
                &["kg_broken_links", "kg_orphans", "kg_stats"]
            }
            AgentKind::Architect => &["kg_communities", "kg_rank"],
            _ => &[],
        };
        let tools = self.0.all().iter().filter(|it| {
            let is_wanted = COMMON.contains(&it.name()) || own.contains(&it.name());
            is_wanted && it.effect() == Effect::Read && self.0.reaches(**it)
        });
        let specs = tools.map(|it| ToolSpec {
            name: it.name().to_owned(),
            description: it.description(),
            schema: it.input_schema(),
        });
        specs.collect()
    }

    fn call(&self, name: &str, arguments: Value, caller: &Caller) -> Result<String, String> {
        let tool = self
            .0
            .reachable(name)
            .filter(|it| it.effect() == Effect::Read);
        let tool = tool.ok_or_else(|| format!("`{name}` is refused: an agent only reads"))?;
        let reply = self.0.call_reachable(tool, arguments, caller);
        match reply.is_error() {
            true => Err(reply.text),
            false => Ok(reply.text),
        }
    }
}

impl Tool for KgAgentSpawn {
    const NAME: &'static str = "kg_agent_spawn";
    const TITLE: &'static str = "Spawn an agent";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Write { idempotent: false };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Spawn a researcher agent",
            input: r#"{"type": "researcher", "task": "Analyze API design patterns in the codebase", "options": {"priority": "high", "timeout": 30000}}"#,
            output: r#""agentType":"researcher","agentName":"research-agent""#,
        },
        Example {
            title: "Spawn an architect agent",
            input: r#"{"type": "architect", "name": "system-architect-1", "task": "Design microservices architecture for user management", "options": {"maxRetries": 3}}"#,
            output: r#""agentName":"system-architect-1""#,
        },
        Example {
            title: "A type that there is not",
            input: r#"{"type": "wizard", "task": "x"}"#,
            output: "Agent type 'wizard' is not registered",
        },
    ];
    type Input = Input;
    type Output = KgReply<Output>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Output>> {
        let kind = input.kind.kind()?;
        let task = input.task.text("Task description is required")?;
        if task.trim().is_empty() {
            return Err(Error::invalid("Task description is required").hint("say what to find out"));
        }
        let timeout = whole("timeout", input.options.timeout)?;
        let retries = whole("maxRetries", input.options.max_retries)?;
        let spawn = Spawn {
            kind,
            name: input.name,
            task,
            timeout: timeout.map(Duration::from_millis),
            retries: retries.map(|it| u32::try_from(it).unwrap_or(u32::MAX)),
            priority: input
                .options
                .priority
                .map_or(Priority::Medium, Priority::from),
        };
        let done = ctx
            .engine
            .agent_tasks()
            .spawn(ctx.caller, &spawn, &Readers(ctx.others))?;
        let metadata: Map<String, Value> = [("status".to_owned(), "completed".into())]
            .into_iter()
            .collect();
        Ok(KgReply {
            metadata,
            data: Output {
                agent_id: done.agent,
                agent_type: kind.as_str(),
                agent_name: done.name,
                task_id: done.task,
                task_result: match done.result {
                    Value::Object(result) => result,
                    _ => Map::new(),
                },
                metrics: Metrics {
                    duration: u64::try_from(done.duration.as_millis()).unwrap_or(u64::MAX),
                    tokens_used: done.tokens,
                    tokens_estimated: done.tokens_estimated,
                    retries: done.retries,
                },
                artifacts: done.artifacts.into_iter().map(Made::from).collect(),
                report: done.report,
            },
        })
    }
}
