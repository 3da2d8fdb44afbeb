//! `kg_workflow_start`

use super::words::{KgReply, Required};
use crate::{Call, Effect, Example, Reply, Tool, Toolset, envelope, workflow_calls};
use kenning_core::{Error, Result};
use kenning_engine::runs::{Run, Status};
use kenning_engine::timestamp;
use kenning_engine::workflow_steps::WorkflowKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// The tool.
pub struct KgWorkflowStart;

/// Start a durable workflow.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(extend("required" = ["workflowId"]))]
pub struct Input {
    /// Workflow type
    #[serde(default)]
    #[schemars(extend("enum" = ["collaboration", "analysis", "sync", "custom"]))]
    pub workflow_id: Required,
    /// docPath, options {autoStart, watchPaths, threshold}; custom: goal, facts, actions [{name, cost, needs, effects,
    /// tool, arguments}]
    pub input: Option<Map<String, Value>>,
}

/// What became of it so far.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    workflow_id: String,
    #[serde(rename = "type")]
    kind: String,
    started_at: String,
    completed_at: Option<String>,
    /// Or `running` and `suspended`, while it has not ended.
    outcome: &'static str,
    artifacts: Vec<String>,
    status: &'static str,
    current_step: String,
    /// What the steps left.
    #[serde(skip_serializing_if = "Map::is_empty")]
    result: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What is shown of what the steps left.
const SHOWN: [&str; 10] = [
    "completeness",
    "documents",
    "brokenLinks",
    "staleFacts",
    "contradictions",
    "score",
    "missing",
    "plan",
    "facts",
    "forPeople",
];

impl From<Run> for Started {
    fn from(run: Run) -> Self {
        let kept = SHOWN
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), run.state.get(name)?.clone())));
        Self {
            result: kept.collect(),
            started_at: timestamp(run.started_ms),
            completed_at: run.ended_ms.map(timestamp),
            outcome: run.word(),
            artifacts: run.artifacts.into_iter().map(shown).collect(),
            status: run.status.as_str(),
            current_step: run.current_step,
            error: run.error,
            kind: run.kind,
            workflow_id: run.id,
        }
    }
}

fn shown(artifact: Value) -> String {
    match artifact {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// What `kg_workflow_start` answers of a run, as it is now.
pub fn workflow_reply(run: Run) -> Reply {
    let answer = envelope::to_value(&KgReply::new(Started::from(run)));
    envelope::wrap(Toolset::Kg, answer, Duration::ZERO)
}

impl Tool for KgWorkflowStart {
    const NAME: &'static str = "kg_workflow_start";
    const TITLE: &'static str = "Start a workflow";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Write { idempotent: false };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "What the documentation lacks",
            input: r#"{"workflowId": "analysis", "input": {"docPath": "./docs"}}"#,
            output: r#""outcome":"completed""#,
        },
        Example {
            title: "A plan of actions, one of which calls a tool",
            input: r#"{"workflowId": "custom", "input": {"goal": {"noted": true}, "actions": [{"name": "note", "effects": {"noted": true}, "tool": "kg_stats"}]}}"#,
            output: r#""artifacts":["note"]"#,
        },
        Example {
            title: "A type that is none",
            input: r#"{"workflowId": "deploy"}"#,
            output: "Invalid workflow type: deploy. Valid types: collaboration, analysis, sync, custom",
        },
    ];
    type Input = Input;
    type Output = KgReply<Started>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Started>> {
        let word = input.workflow_id.text("Workflow ID is required")?;
        let kind = WorkflowKind::ALL.into_iter().find(|it| it.as_str() == word);
        let kind = kind.ok_or_else(|| {
            let words = WorkflowKind::ALL.map(WorkflowKind::as_str).join(", ");
            Error::invalid(format!(
                "Invalid workflow type: {word}. Valid types: {words}"
            ))
        })?;
        workflow_calls::check_not_in_action()?;
        let input = input.input.unwrap_or_default();
        let run = workflow_calls::start_workflow(ctx.engine, ctx.caller, kind, input)?;
        let run = workflow_calls::advance_in_call(ctx.engine, ctx.others, ctx.caller, run)?;
        let is_serving = ctx.engine.runs().is_serving();
        if run.status == Status::Running && !is_serving {
            ctx.remark(format!(
                "it goes on when a server runs, or with `kenning workflow resume {}`",
                run.id
            ));
        }
        let service = if is_serving { "running" } else { "stopped" };
        Ok(KgReply::new(run.into()).with("serviceStatus", service))
    }
}
