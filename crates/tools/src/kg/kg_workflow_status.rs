//! `kg_workflow_status`

use super::words::{KgReply, members};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::runs::{Family, Outcome, Run, RunStats};
use kenning_engine::timestamp;
use kenning_engine::workflow::READY_SCORE;
use kenning_engine::workflow_steps::{INACTIVITY_MS, WorkflowKind, WorkflowService};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The tool.
pub struct KgWorkflowStatus;

/// Check a workflow, or the workflow service.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Input {
    /// Workflow ID
    pub workflow_id: Option<String>,
    /// With statistics
    pub include_metrics: Option<bool>,
    /// With configuration
    pub include_config: Option<bool>,
}

/// How it is.
#[derive(Serialize, JsonSchema)]
pub struct Found {
    found: bool,
    workflow: Option<Map<String, Value>>,
    service: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<Map<String, Value>>,
}

impl Tool for KgWorkflowStatus {
    const NAME: &'static str = "kg_workflow_status";
    const TITLE: &'static str = "Workflow status";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "The service, with its settings",
            input: r#"{"includeConfig": true}"#,
            output: r#""inactivityTimeout":300000"#,
        },
        Example {
            title: "A workflow that is not there",
            input: r#"{"workflowId": "analysis-1"}"#,
            output: r#""found":false"#,
        },
    ];
    type Input = Input;
    type Output = KgReply<Found>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Found>> {
        let wanted = input.workflow_id.filter(|it| !it.trim().is_empty());
        let run = match &wanted {
            Some(id) => ctx
                .engine
                .runs()
                .run(ctx.caller, Family::Workflow, id.trim())?,
            None => None,
        };
        let service = ctx.engine.workflows().service(ctx.caller)?;
        let data = Found {
            found: run.is_some(),
            workflow: run.as_ref().map(|it| members(shown(it))),
            stats: (input.include_metrics == Some(true)).then(|| members(figures(&service.stats))),
            config: (input.include_config == Some(true)).then(|| {
                members(json!({
                    "inactivityTimeout": INACTIVITY_MS, "autoStartThreshold": READY_SCORE,
                    "watchPaths": service.watched_paths, "debug": false,
                }))
            }),
            service: members(state(&service)),
        };
        Ok(KgReply::new(data).with("requestedWorkflowId", wanted))
    }
}

/// The word of a run's kind where runs are listed.
pub(super) fn kind_word(run: &Run) -> &str {
    match WorkflowKind::parse(&run.kind) {
        Some(kind) => kind.list_name(),
        None => &run.kind,
    }
}

fn shown(run: &Run) -> Value {
    let steps: Vec<Value> = run
        .steps
        .iter()
        .map(|it| {
            json!({
                "action": it.action, "outcome": it.outcome.as_str(), "duration": it.duration_ms,
                "timestamp": timestamp(it.at_ms), "metadata": it.metadata,
            })
        })
        .collect();
    json!({
        "id": run.id, "type": kind_word(run), "status": run.status.as_str(),
        "currentStep": run.current_step, "startedAt": timestamp(run.started_ms),
        "lastEventAt": timestamp(run.last_ms), "completedAt": run.ended_ms.map(timestamp),
        "outcome": run.outcome.map(Outcome::as_str), "error": run.error, "stepCount": run.n_steps,
        "steps": steps, "artifacts": run.artifacts, "forPeople": run.state.get("forPeople"),
        "trajectoryId": run.trajectory,
    })
}

fn state(service: &WorkflowService) -> Value {
    json!({
        "isRunning": service.is_running, "activeWorkflowCount": service.n_active,
        "watchedPaths": service.watched_paths, "lastActivity": service.last_ms.map(timestamp),
    })
}

fn figures(stats: &RunStats) -> Value {
    let rate = match stats.n_ended {
        0 => 0.0,
        all => (stats.n_completed as f64 * 10_000.0 / all as f64).round() / 100.0,
    };
    json!({
        "totalExecutions": stats.n_ended, "successfulExecutions": stats.n_completed,
        "failedExecutions": stats.n_failed, "averageDuration": stats.mean_ms, "successRate": rate,
        "timedOutExecutions": stats.n_timed_out, "cancelledExecutions": stats.n_cancelled,
    })
}
