//! `kg_audit_checkpoint`

use super::words::KgReply;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::{CheckpointLabel, CheckpointView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgAuditCheckpoint;

/// Create a signed checkpoint of the audit chain.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name for reference
    #[serde(default)]
    pub name: Option<String>,
    /// Its tags
    #[serde(default)]
    pub tags: Vec<String>,
}

/// A signed checkpoint.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// Which checkpoint, from 0.
    height: u64,
    /// Merkle root (RFC 6962) over the ids of the events.
    event_root: String,
    /// Root of all nodes and edges.
    state_root: String,
    timestamp: String,
    /// How many keys signed it.
    validator_count: usize,
    /// Who signed it, its author first.
    validators: Vec<ValidatorOut>,
    metadata: Label,
    stats: Stats,
}

/// Somebody who signed it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ValidatorOut {
    did: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// What it is called.
#[derive(Serialize, JsonSchema)]
pub(super) struct Label {
    name: Option<String>,
    tags: Vec<String>,
}

/// Figures of a checkpoint.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stats {
    /// Events that the roots cover. The event about the checkpoint itself comes after them.
    total_events_at_checkpoint: u64,
    events_since_previous_checkpoint: u64,
    /// Null for the first one.
    previous_checkpoint_height: Option<u64>,
}

impl Tool for KgAuditCheckpoint {
    const NAME: &'static str = "kg_audit_checkpoint";
    const TITLE: &'static str = "Create an audit checkpoint";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Write { idempotent: false };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A named checkpoint",
            input: r#"{"name": "pre-migration-backup", "tags": ["migration", "critical", "v2.0"]}"#,
            output: r#""metadata":{"name":"pre-migration-backup","tags":["migration","critical","v2.0"]}"#,
        },
        Example {
            title: "A simple checkpoint",
            input: "{}",
            output: r#""validatorCount":1"#,
        },
    ];
    type Input = Input;
    type Output = KgReply<Checkpoint>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Checkpoint>> {
        let label = CheckpointLabel {
            name: input.name.filter(|it| !it.trim().is_empty()),
            tags: input.tags,
            ..CheckpointLabel::default()
        };
        let signed = ctx.engine.create_checkpoint(ctx.caller, label)?;
        if signed.row.seq == 0 {
            ctx.remark("the log has no events yet: this checkpoint covers nothing and is not kept");
        }
        Ok(KgReply::new(shown(signed)))
    }
}

fn shown(it: CheckpointView) -> Checkpoint {
    let validators: Vec<ValidatorOut> = it
        .validators
        .iter()
        .map(|it| ValidatorOut {
            did: it.did.clone(),
            name: it.name.clone(),
        })
        .collect();
    Checkpoint {
        height: it.row.height,
        event_root: it.row.event_root.to_string(),
        state_root: it.row.state_root.to_string(),
        timestamp: it.timestamp(),
        validator_count: validators.len(),
        validators,
        stats: Stats {
            total_events_at_checkpoint: it.row.seq,
            events_since_previous_checkpoint: it.n_new(),
            previous_checkpoint_height: it.previous.map(|it| it.0),
        },
        metadata: Label {
            name: it.label.name,
            tags: it.label.tags,
        },
    }
}
