//! `vault_backup`

use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::{BackupKind, BackupView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct VaultBackup;

/// Back up the memory store, NOW.md, the daily logs and the configuration to the place that the
/// operator configured.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// `incremental` leaves files that did not change to the last full backup (default `full`)
    pub backup_type: Option<Kind>,
}

/// Whether a backup stands alone.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    #[expect(missing_docs, reason = "the word says it")]
    Full,
    #[expect(missing_docs, reason = "the word says it")]
    Incremental,
}

/// What is known of it.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    backup_id: String,
    backup_type: Kind,
    created_at: String,
    file_size: u64,
    checksum: String,
    encrypted: bool,
    files_included: Vec<String>,
    base_path_hash: String,
    retention_days: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    based_on: Option<String>,
}

impl From<BackupView> for Output {
    fn from(it: BackupView) -> Self {
        Self {
            backup_id: it.backup_id,
            backup_type: match it.kind {
                BackupKind::Full => Kind::Full,
                BackupKind::Incremental => Kind::Incremental,
            },
            created_at: it.created_at,
            file_size: it.file_size,
            checksum: it.checksum,
            encrypted: it.encrypted,
            files_included: it.files_included,
            base_path_hash: it.base_path_hash,
            retention_days: it.retention_days,
            based_on: it.based_on,
        }
    }
}

impl Tool for VaultBackup {
    const NAME: &'static str = "vault_backup";
    const TITLE: &'static str = "Back up";
    const TOOLSET: Toolset = Toolset::OmiExtra;
    const EFFECT: Effect = Effect::Write { idempotent: false };
    const EXAMPLES: &'static [Example] = &[Example {
        title: "At the end of a session",
        input: "{}",
        output: r#""backup_id":"omi_full_"#,
    }];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let kind = match input.backup_type {
            None | Some(Kind::Full) => BackupKind::Full,
            Some(Kind::Incremental) => BackupKind::Incremental,
        };
        let mut made = ctx.engine.vault_backup(ctx.caller, kind)?;
        for remark in made.remarks.drain(..) {
            ctx.remark(remark);
        }
        Ok(made.into())
    }
}
