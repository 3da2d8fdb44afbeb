//! `kg_trajectory_list`

use super::words::{Clamped, KgReply, members, number_schema};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::runs::{Step, Trajectory, TrajectoryFilter};
use kenning_engine::timestamp;
use kenning_engine::workflow::format_duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The tool.
pub struct KgTrajectoryList;

/// List what agents and workflows did, and what was learned.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Input {
    /// Agent ID
    pub agent_id: Option<String>,
    /// Default 20
    #[serde(default)]
    #[schemars(schema_with = "number_schema")]
    pub limit: Option<Clamped<1, 100>>,
    /// With steps
    pub include_steps: Option<bool>,
    /// Workflow ID
    pub workflow_id: Option<String>,
    /// Only successes
    pub success_only: Option<bool>,
    /// Default true
    pub include_stats: Option<bool>,
}

/// What there is.
#[derive(Serialize, JsonSchema)]
pub struct Found {
    trajectories: Vec<Map<String, Value>>,
    count: usize,
    filters: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Map<String, Value>>,
}

impl Tool for KgTrajectoryList {
    const NAME: &'static str = "kg_trajectory_list";
    const TITLE: &'static str = "List trajectories";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "What one agent did",
        input: r#"{"agentId": "nobody", "includeSteps": true}"#,
        output: r#""count":0"#,
    }];
    type Input = Input;
    type Output = KgReply<Found>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Found>> {
        let given = |text: Option<String>| text.filter(|it| !it.trim().is_empty());
        let filter = TrajectoryFilter {
            agent_id: given(input.agent_id),
            workflow_id: given(input.workflow_id),
            success_only: input.success_only == Some(true),
        };
        let with_steps = input.include_steps == Some(true);
        let runs = ctx.engine.runs();
        let found = runs.trajectories(ctx.caller, &filter)?;
        let limit = input.limit.map_or(20, Clamped::get);
        let shown = found.iter().take(limit);
        let shown = shown.map(|it| members(show(it, with_steps)));
        let trajectories: Vec<Map<String, Value>> = shown.collect();
        let stats = match input.include_stats {
            Some(false) => None,
            _ => Some(members(stats(ctx)?)),
        };
        let data = Found {
            count: trajectories.len(),
            trajectories,
            filters: members(json!({
                "agentId": filter.agent_id, "workflowId": filter.workflow_id,
                "successOnly": filter.success_only,
            })),
            stats,
        };
        Ok(KgReply::new(data)
            .with("includeSteps", with_steps)
            .with("totalMatching", found.len()))
    }
}

fn show(it: &Trajectory, with_steps: bool) -> Value {
    let mut value = json!({
        "id": it.id, "agentId": it.agent_id, "success": it.is_success(),
        "stepCount": it.n_steps, "totalDuration": it.duration_ms(),
        "totalDurationFormatted": format_duration(it.duration_ms()),
        "startedAt": timestamp(it.started_ms), "completedAt": timestamp(it.ended_ms),
        "workflowId": it.workflow_id, "actionSummary": it.actions(),
        "outcome": it.outcome.as_str(), "subject": it.subject, "quality": it.quality,
    });
    if with_steps {
        let steps = it.steps.iter().map(|it| {
            let Step {
                action,
                outcome,
                duration_ms,
                at_ms,
                state,
                metadata,
            } = it;
            json!({
                "action": action, "outcome": outcome.as_str(), "duration": duration_ms,
                "durationFormatted": format_duration(*duration_ms), "timestamp": timestamp(*at_ms),
                "state": object(state), "metadata": object(metadata),
            })
        });
        value["steps"] = steps.collect();
    }
    value
}

/// An object, also where nothing was kept.
fn object(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        other => other.clone(),
    }
}

fn stats(ctx: &Call<'_>) -> Result<Value> {
    let runs = ctx.engine.runs();
    let stats = runs.trajectory_stats(ctx.caller)?;
    let advice = runs.advice(ctx.caller, None)?.into_iter().map(|it| {
        json!({
            "type": it.pattern.kind, "pattern": it.pattern.id, "frequency": it.pattern.n_succeeded,
            "confidence": it.pattern.confidence(), "score": rounded(it.score),
        })
    });
    let agents = ctx.engine.agent_tasks().health(ctx.caller)?;
    let rate = match stats.n_trajectories - stats.n_cancelled {
        0 => 0.0,
        all => rounded(stats.n_succeeded as f64 * 100.0 / all as f64),
    };
    Ok(json!({
        "totalTrajectories": stats.n_trajectories, "activeTrajectories": stats.n_active + agents.running,
        "successRate": rate, "avgDuration": stats.mean_ms,
        "avgDurationFormatted": format_duration(stats.mean_ms),
        "detectedPatterns": stats.n_patterns, "learningRecords": stats.n_learned,
        "recommendations": advice.collect::<Vec<_>>(),
    }))
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
