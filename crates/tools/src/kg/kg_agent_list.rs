//! `kg_agent_list`

use super::words::KgReply;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::agents::{AgentKind, AgentStatus};
use kenning_engine::timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The tool.
pub struct KgAgentList;

/// List agents.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only these
    #[serde(rename = "type")]
    kind: Option<Kind>,
    /// Only these
    status: Option<Status>,
}

macro_rules! word {
    ($name:ident, $inner:ident, $what:literal) => {
        /// One of the contract's words.
        #[derive(Clone, Copy)]
        pub(super) struct $name($inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                $inner::parse(&text).map(Self).ok_or_else(|| {
                    let words: Vec<&str> = $inner::ALL.iter().map(|it| it.as_str()).collect();
                    let words = words.join(", ");
                    de::Error::custom(format!("`{text}` is not {}: one of {words}", $what))
                })
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($inner).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let words: Vec<&str> = $inner::ALL.iter().map(|it| it.as_str()).collect();
                json_schema!({ "type": "string", "enum": words })
            }
        }
    };
}

word!(Kind, AgentKind, "an agent type");
word!(Status, AgentStatus, "an agent status");

/// An agent.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Agent {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    status: &'static str,
    current_task: Option<String>,
    queued_tasks: u64,
    completed_tasks: u64,
    error_count: u64,
    /// Of language models, for all of its tasks.
    tokens_used: u64,
    last_activity: String,
    /// What its last task was.
    task: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// The node that keeps its last report.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<String>,
}

/// The agents.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    agents: Vec<Agent>,
    count: usize,
    registered_types: Vec<Registered>,
    stats: Stats,
}

/// A type.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Registered {
    #[serde(rename = "type")]
    kind: &'static str,
    instance_count: usize,
    capabilities: [&'static str; 2],
    /// Whether `kg_agent_spawn` takes it.
    spawnable: bool,
}

/// How many there are.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stats {
    total_instances: usize,
    instances_by_type: Map<String, Value>,
    instances_by_status: Map<String, Value>,
}

impl Tool for KgAgentList {
    const NAME: &'static str = "kg_agent_list";
    const TITLE: &'static str = "List agents";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Everything",
            input: "{}",
            output: r#""filters":{"type":"all","status":"all"}"#,
        },
        Example {
            title: "One type",
            input: r#"{"type": "researcher", "status": "running"}"#,
            output: r#""type":"researcher","instanceCount":"#,
        },
    ];
    type Input = Input;
    type Output = KgReply<Output>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Output>> {
        let (kind, status) = (input.kind.map(|it| it.0), input.status.map(|it| it.0));
        let found = ctx.engine.agent_tasks().list(ctx.caller, kind, status)?;
        let skip = ctx.skip("data.agents");
        ctx.of_all("data.agents", found.agents.len());
        let agents: Vec<Agent> = found
            .agents
            .into_iter()
            .skip(skip)
            .map(|it| Agent {
                id: it.id,
                kind: it.kind.as_str(),
                name: it.name,
                status: it.status.as_str(),
                current_task: it.current_task,
                queued_tasks: it.queued,
                completed_tasks: it.completed,
                tokens_used: it.tokens,
                error_count: it.errors,
                last_activity: timestamp(it.active_ms),
                task: it.about,
                last_error: it.error,
                report: it.report,
            })
            .collect();
        let by_type = found
            .kinds
            .iter()
            .map(|it| (it.kind.as_str().to_owned(), it.count.into()));
        let by_status = found
            .statuses
            .iter()
            .map(|it| (it.0.as_str().to_owned(), it.1.into()));
        let registered = found.kinds.iter().map(|it| Registered {
            kind: it.kind.as_str(),
            instance_count: it.count,
            capabilities: it.kind.capabilities(),
            spawnable: it.kind.is_spawnable(),
        });
        let filters = json!({
            "type": kind.map_or("all", AgentKind::as_str),
            "status": status.map_or("all", AgentStatus::as_str),
        });
        Ok(KgReply::new(Output {
            count: agents.len(),
            agents,
            registered_types: registered.collect(),
            stats: Stats {
                total_instances: found.total,
                instances_by_type: by_type.collect(),
                instances_by_status: by_status.collect(),
            },
        })
        .with("filters", filters))
    }
}
