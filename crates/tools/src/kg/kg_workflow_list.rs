//! `kg_workflow_list`

use super::kg_workflow_status::kind_word;
use super::words::{Clamped, KgReply, members, number_schema};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::runs::{Family, Outcome, Run, RunFilter, Status};
use kenning_engine::timestamp;
use kenning_engine::workflow_steps::WorkflowKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The tool.
pub struct KgWorkflowList;

/// List workflows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Input {
    /// Status
    pub status: Option<StatusWord>,
    /// Type
    pub r#type: Option<TypeWord>,
    /// Default 50
    #[serde(default)]
    #[schemars(schema_with = "number_schema")]
    pub limit: Option<Clamped<1, 1000>>,
    /// To skip
    #[serde(default)]
    #[schemars(schema_with = "number_schema")]
    pub offset: Option<Clamped<0, 1000000>>,
    /// Sort field
    pub sort_by: Option<SortWord>,
    /// Default desc
    pub sort_order: Option<OrderWord>,
}

/// A status.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[allow(
    missing_docs,
    reason = "without texts the schema is a plain list of words"
)]
pub enum StatusWord {
    Running,
    Completed,
    Failed,
    Suspended,
    #[default]
    All,
}

/// A type.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
#[allow(
    missing_docs,
    reason = "without texts the schema is a plain list of words"
)]
pub enum TypeWord {
    RealtimeCollab,
    Analysis,
    Sync,
    Custom,
    #[default]
    All,
}

/// What is sorted by.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[allow(
    missing_docs,
    reason = "without texts the schema is a plain list of words"
)]
pub enum SortWord {
    #[default]
    StartedAt,
    LastEventAt,
    Status,
    Type,
}

/// In which order.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[allow(
    missing_docs,
    reason = "without texts the schema is a plain list of words"
)]
pub enum OrderWord {
    Asc,
    #[default]
    Desc,
}

impl StatusWord {
    fn status(self) -> Option<Status> {
        match self {
            Self::Running => Some(Status::Running),
            Self::Completed => Some(Status::Completed),
            Self::Failed => Some(Status::Failed),
            Self::Suspended => Some(Status::Suspended),
            Self::All => None,
        }
    }
}

impl TypeWord {
    fn kind(self) -> Option<WorkflowKind> {
        match self {
            Self::RealtimeCollab => Some(WorkflowKind::Collaboration),
            Self::Analysis => Some(WorkflowKind::Analysis),
            Self::Sync => Some(WorkflowKind::Sync),
            Self::Custom => Some(WorkflowKind::Custom),
            Self::All => None,
        }
    }
}

/// What there is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    workflows: Vec<Map<String, Value>>,
    summary: Map<String, Value>,
    pagination: Map<String, Value>,
    service_status: Map<String, Value>,
}

impl Tool for KgWorkflowList {
    const NAME: &'static str = "kg_workflow_list";
    const TITLE: &'static str = "List workflows";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Those that wait",
            input: r#"{"status": "suspended"}"#,
            output: r#""filtered":0"#,
        },
        Example {
            title: "A status that is none",
            input: r#"{"status": "lost"}"#,
            output: "`status`",
        },
    ];
    type Input = Input;
    type Output = KgReply<Found>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Found>> {
        let all = ctx
            .engine
            .runs()
            .list(ctx.caller, Family::Workflow, &RunFilter::default())?;
        let (mut by_status, mut by_type) = (Map::new(), Map::new());
        for status in Status::ALL {
            let n = all.iter().filter(|it| it.status == status).count();
            by_status.insert(status.as_str().to_owned(), n.into());
        }
        for kind in WorkflowKind::ALL {
            let n = all.iter().filter(|it| it.kind == kind.as_str()).count();
            by_type.insert(kind.list_name().to_owned(), n.into());
        }
        let total = all.len();
        let status_word = input.status.unwrap_or_default();
        let type_word = input.r#type.unwrap_or_default();
        let sort_by = input.sort_by.unwrap_or_default();
        let sort_order = input.sort_order.unwrap_or_default();
        let (status, kind) = (status_word.status(), type_word.kind());
        let mut found: Vec<Run> = all
            .into_iter()
            .filter(|it| status.is_none_or(|status| it.status == status))
            .filter(|it| kind.is_none_or(|kind| it.kind == kind.as_str()))
            .collect();
        // Whatever is equal stays newest first.
        match sort_by {
            SortWord::StartedAt => found.sort_by_key(|it| it.started_ms),
            SortWord::LastEventAt => found.sort_by_key(|it| it.last_ms),
            SortWord::Status => found.sort_by_key(|it| it.status.as_str()),
            SortWord::Type => found.sort_by(|a, b| kind_word(a).cmp(kind_word(b))),
        }
        if sort_order == OrderWord::Desc {
            found.reverse();
        }
        let filtered = found.len();
        let limit = input.limit.map_or(50, Clamped::get);
        let offset = input.offset.map_or(0, Clamped::get);
        let page = found.iter().skip(offset).take(limit);
        let workflows: Vec<Map<String, Value>> = page.map(|it| members(shown(it))).collect();
        let returned = workflows.len();
        let next = offset + returned;
        let has_more = next < filtered;
        let service = ctx.engine.workflows().service(ctx.caller)?;
        let data = Found {
            workflows,
            summary: members(json!({
                "total": total, "filtered": filtered, "returned": returned,
                "byStatus": by_status, "byType": by_type,
            })),
            pagination: members(json!({
                "limit": limit, "offset": offset, "hasMore": has_more,
                "nextOffset": has_more.then_some(next),
            })),
            service_status: members(json!({
                "isRunning": service.is_running, "watchedPaths": service.watched_paths.len(),
                "lastActivity": service.last_ms.map(timestamp),
            })),
        };
        let filters = json!({
            "status": status_word, "type": type_word, "sortBy": sort_by, "sortOrder": sort_order,
        });
        Ok(KgReply::new(data)
            .with("filters", filters)
            .with("itemCount", returned))
    }
}

fn shown(run: &Run) -> Value {
    json!({
        "id": run.id, "type": kind_word(run), "status": run.status.as_str(),
        "currentStep": run.current_step, "startedAt": timestamp(run.started_ms),
        "lastEventAt": timestamp(run.last_ms), "duration": run.duration_ms(),
        "isActive": run.status.is_active(), "outcome": run.outcome.map(Outcome::as_str),
    })
}
