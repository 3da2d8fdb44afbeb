//! `kg_health_check`

use super::words::KgReply;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::agents::AgentHealth;
use kenning_engine::kg::GraphHealth;
use kenning_engine::workflow_steps::WorkflowService;
use kenning_engine::{LogStats, ProcessMemory, SyncStatus, timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// The tool.
pub struct KgHealthCheck;

/// Check the health of the server's components in detail.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Include detailed diagnostics
    #[serde(default)]
    pub detailed: bool,
    /// Only these
    #[serde(default)]
    pub components: Vec<Component>,
}

/// A part of the server.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[allow(
    missing_docs,
    reason = "without texts the schema is a plain list of words"
)]
pub enum Component {
    Database,
    Cache,
    Agents,
    Memory,
    Workflows,
}

impl Component {
    const ALL: [Self; 5] = [
        Self::Database,
        Self::Cache,
        Self::Agents,
        Self::Memory,
        Self::Workflows,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Cache => "cache",
            Self::Agents => "agents",
            Self::Memory => "memory",
            Self::Workflows => "workflows",
        }
    }
}

/// What runs on behalf of agents: directives and tools of projects, and WASM tools.
const RUNS: [&str; 2] = ["execute", "wasm"];

/// This many runs must have failed, and none succeeded, before the state is unhealthy.
const RUNS_TOLD: u64 = 5;

/// How a part is, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Healthy,
    Degraded,
    Unhealthy,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// How it is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    status: &'static str,
    components: Map<String, Value>,
    component_details: Map<String, Value>,
    timestamp: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
}

/// The process.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Details {
    memory: Memory,
    uptime: u64,
    /// The version of this program, where the original told that of its runtime.
    node_version: String,
    platform: &'static str,
    arch: &'static str,
    pid: u32,
    /// The signed log of this space.
    audit_log: AuditLog,
    /// Other nodes that share this space.
    peers: Peers,
}

/// How it stands with other nodes; `kg_sync_status` tells each.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Peers {
    total: usize,
    connected: usize,
    error: usize,
    /// Entries of their logs that are known to be missing here.
    lag: u64,
    /// Entries of this log that they are not known to have.
    unsent: u64,
    /// Whether a process on this store exchanges by itself.
    running: bool,
}

impl From<SyncStatus> for Peers {
    fn from(it: SyncStatus) -> Self {
        let of = |states: &[&str]| {
            let all = it.peers.iter();
            all.filter(|peer| states.contains(&peer.status)).count()
        };
        Self {
            total: it.peers.len(),
            connected: of(&["connected", "syncing"]),
            error: of(&["error"]),
            lag: it.peers.iter().map(|it| it.lag).sum(),
            unsent: it.peers.iter().map(|it| it.n_unsent).sum(),
            running: it.is_running,
        }
    }
}

/// The signed log of a space.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditLog {
    events: u64,
    checkpoints: u64,
    /// Events that the newest signed checkpoint does not cover.
    events_since_checkpoint: u64,
    /// The newest signed checkpoint.
    last_checkpoint: Option<CheckpointOut>,
    /// When this machine last verified the whole log.
    last_verified: Option<VerifiedOut>,
    /// Keys that may sign, and keys that were revoked.
    authors: usize,
    revoked_authors: usize,
}

/// A signed checkpoint.
#[derive(Serialize, JsonSchema)]
pub(super) struct CheckpointOut {
    height: u64,
    timestamp: String,
}

/// A check of the whole log.
#[derive(Serialize, JsonSchema)]
pub(super) struct VerifiedOut {
    timestamp: String,
    events: u64,
    clean: bool,
}

impl From<LogStats> for AuditLog {
    fn from(it: LogStats) -> Self {
        Self {
            events: it.n_events,
            checkpoints: it.n_checkpoints,
            events_since_checkpoint: it.n_since_checkpoint,
            last_checkpoint: it.last_checkpoint.map(|it| CheckpointOut {
                height: it.height,
                timestamp: timestamp(it.hlc.ms()),
            }),
            last_verified: it.last_verified.map(|it| VerifiedOut {
                timestamp: timestamp(it.at_ms),
                events: it.n_events,
                clean: it.is_clean,
            }),
            authors: it.n_authors,
            revoked_authors: it.n_revoked,
        }
    }
}

/// The memory of the process, in bytes: what it holds, what it asked for, what is its own, what files
/// can give back, what is shared.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Memory {
    rss: u64,
    heap_total: u64,
    heap_used: u64,
    external: u64,
    array_buffers: u64,
}

impl From<ProcessMemory> for Memory {
    fn from(it: ProcessMemory) -> Self {
        Self {
            rss: it.resident,
            heap_total: it.data,
            heap_used: it.anonymous,
            external: it.file,
            array_buffers: it.shared,
        }
    }
}

impl Tool for KgHealthCheck {
    const NAME: &'static str = "kg_health_check";
    const TITLE: &'static str = "Detailed health check";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Everything",
            input: r#"{"detailed": true}"#,
            output: r#""componentsChecked":["database","cache","agents","memory","workflows"]"#,
        },
        Example {
            title: "One part",
            input: r#"{"components": ["memory"]}"#,
            output: r#""components":{"memory":"#,
        },
    ];
    type Input = Input;
    type Output = KgReply<Health>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Health>> {
        let graph = ctx.engine.kg().graph_health(ctx.caller)?;
        let log = ctx.engine.log_summary(ctx.caller)?;
        let (uptime, memory) = ctx.engine.process();
        let agents = ctx.engine.agent_tasks().health(ctx.caller)?;
        let all = Component::ALL.into_iter();
        let checked: Vec<Component> = all
            .filter(|it| input.components.is_empty() || input.components.contains(it))
            .collect();
        let (mut components, mut component_details) = (Map::new(), Map::new());
        let mut worst = State::Healthy;
        for component in &checked {
            let runs = ctx.others.metrics().calls(&RUNS);
            let (state, why) = match component {
                Component::Workflows => workflows(&ctx.engine.workflows().service(ctx.caller)?),
                other => examine(*other, &graph, &log, &memory, (runs, agents)),
            };
            worst = worst.max(state);
            components.insert(component.as_str().to_owned(), state.as_str().into());
            component_details.insert(component.as_str().to_owned(), why.into());
        }
        let names: Vec<&str> = checked.iter().map(|it| it.as_str()).collect();
        let health = Health {
            status: worst.as_str(),
            components,
            component_details,
            timestamp: timestamp(ctx.engine.now_ms()),
            details: match input.detailed {
                true => {
                    let peers = ctx.engine.sync_status(ctx.caller, None)?;
                    Some(details(uptime, memory, log, peers))
                }
                false => None,
            },
        };
        Ok(KgReply::new(health).with("componentsChecked", names))
    }
}

/// How workflows are: one that waits for a decision or for a server, or the failure of most, is a degradation.
fn workflows(service: &WorkflowService) -> (State, String) {
    let (ended, failed) = (service.stats.n_ended, service.stats.n_failed);
    let state = match failed {
        it if it == ended && ended >= RUNS_TOLD => State::Unhealthy,
        it if 2 * it > ended => State::Degraded,
        _ if !service.in_doubt.is_empty() || !service.neglected.is_empty() => State::Degraded,
        _ => State::Healthy,
    };
    let doubt = match service.in_doubt.first() {
        Some((id, why)) => format!("; `{id}` waits for a decision: {why}"),
        None => String::new(),
    };
    let neglected = match service.neglected.as_slice() {
        [] => String::new(),
        [id, others @ ..] => format!(
            "; {} due and nobody works on them, for example `{id}`: run `kenning serve`",
            others.len() + 1
        ),
    };
    let told = format!(
        "{failed} of {ended} workflows failed, {} are under way{doubt}{neglected}",
        service.n_active
    );
    (state, told)
}

fn examine(
    component: Component,
    graph: &GraphHealth,
    log: &LogStats,
    memory: &ProcessMemory,
    (runs, agents): ((u64, u64), AgentHealth),
) -> (State, String) {
    let faulty = log.last_verified.filter(|it| !it.is_clean);
    match component {
        Component::Database if faulty.is_some() => (
            State::Unhealthy,
            format!(
                "the log had faults when it was verified at {}: run `kenning audit verify`",
                faulty.map_or_else(String::new, |it| timestamp(it.at_ms))
            ),
        ),
        Component::Database if graph.has_graph => (State::Healthy, "the graph is there".to_owned()),
        Component::Database => (
            State::Unhealthy,
            "there is no graph yet: run `kg_graph_generate`".to_owned(),
        ),
        Component::Cache => {
            let (stale, entries) = (graph.cache.stale, graph.cache.entries);
            let state = if entries == 0 || 2 * stale > entries {
                State::Degraded
            } else {
                State::Healthy
            };
            (
                state,
                format!("{stale} of {entries} entries were not looked at for an hour"),
            )
        }
        Component::Agents => {
            let (of_agents, about_agents) = examine_agents(agents);
            let (runs, failed) = runs;
            let state = match failed {
                0 => State::Healthy,
                it if it == runs && runs >= RUNS_TOLD => State::Unhealthy,
                it if 2 * it > runs => State::Degraded,
                _ => State::Healthy,
            };
            (
                state.max(of_agents),
                format!(
                    "{about_agents}; {failed} of {runs} runs of directives and tools failed since the start"
                ),
            )
        }
        Component::Memory | Component::Workflows => {
            let share = memory.share();
            let state = match share {
                it if it > 0.9 => State::Unhealthy,
                it if it > 0.75 => State::Degraded,
                _ => State::Healthy,
            };
            (
                state,
                format!("{:.1} % of the machine's memory", share * 100.0),
            )
        }
    }
}

/// The last task of each agent counts, for a day: the next one that is done makes it well again.
fn examine_agents(agents: AgentHealth) -> (State, String) {
    let AgentHealth {
        running,
        ended,
        failed,
    } = agents;
    let state = match failed {
        0 => State::Healthy,
        it if it == ended => State::Unhealthy,
        _ => State::Degraded,
    };
    let about = format!("{running} agents at work; of {ended} others {failed} failed");
    (state, about)
}

fn details(uptime: Duration, memory: ProcessMemory, log: LogStats, peers: SyncStatus) -> Details {
    Details {
        memory: memory.into(),
        uptime: uptime.as_secs(),
        node_version: format!("v{}", env!("CARGO_PKG_VERSION")),
        platform: std::env::consts::OS,
        arch: match std::env::consts::ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => other,
        },
        pid: std::process::id(),
        audit_log: log.into(),
        peers: peers.into(),
    }
}
