//! `kg_graph_generate`

use super::words::KgReply;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::kg::{FileError, Generate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgGraphGenerate;

/// At most this many errors are returned.
const ERRORS_MAX: usize = 100;

/// Generate or regenerate the knowledge graph from markdown files: nodes, and relationships from wikilinks
/// and markdown links.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Documentation directory relative to project root (default "docs")
    #[serde(rename = "docsPath")]
    pub docs_path: Option<String>,
    /// Even if it is up to date
    #[serde(default)]
    pub force: bool,
    /// Only what changed
    #[serde(default)]
    pub incremental: bool,
}

/// What became of it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    mode: &'static str,
    files_processed: usize,
    nodes_generated: usize,
    edges_created: usize,
    nodes_added: usize,
    nodes_updated: usize,
    nodes_removed: usize,
    errors: Vec<Fault>,
    error_count: usize,
    /// Notes of the vault that belong to the graph too.
    #[serde(skip_serializing_if = "Option::is_none")]
    vault_notes: Option<usize>,
}

/// Something that is wrong with a file.
#[derive(Serialize, JsonSchema)]
pub(super) struct Fault {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    error: String,
}

impl From<FileError> for Fault {
    fn from(it: FileError) -> Self {
        Self {
            path: it.path,
            line: it.line,
            error: it.message,
        }
    }
}

impl Tool for KgGraphGenerate {
    const NAME: &'static str = "kg_graph_generate";
    const TITLE: &'static str = "Generate the graph";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Write { idempotent: true };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Full regeneration",
            input: r#"{"force": true}"#,
            output: r#""mode":"full""#,
        },
        Example {
            title: "Incremental update",
            input: r#"{"incremental": true}"#,
            output: r#""mode":"incremental""#,
        },
        Example {
            title: "A folder outside the project",
            input: r#"{"docsPath": "../elsewhere"}"#,
            output: "is outside the project",
        },
    ];
    type Input = Input;
    type Output = KgReply<Output>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Output>> {
        let what = Generate {
            docs_path: input.docs_path.unwrap_or_else(|| "docs".to_owned()),
            force: input.force,
            incremental: input.incremental,
        };
        let done = ctx.engine.kg().generate_graph(ctx.caller, &what)?;
        let error_count = done.errors.len();
        let output = Output {
            mode: if done.incremental {
                "incremental"
            } else {
                "full"
            },
            files_processed: done.files_processed,
            nodes_generated: done.nodes_generated,
            edges_created: done.edges_created,
            nodes_added: done.nodes_added,
            nodes_updated: done.nodes_updated,
            nodes_removed: done.nodes_removed,
            errors: done
                .errors
                .into_iter()
                .take(ERRORS_MAX)
                .map(Fault::from)
                .collect(),
            error_count,
            vault_notes: done.vault_notes,
        };
        Ok(KgReply::new(output)
            .with("projectRoot", done.project_root)
            .with("docsPath", done.docs_path))
    }
}
