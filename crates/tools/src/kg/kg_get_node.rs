//! `kg_get_node`

use super::words::{self, Clamped, IncomingLink, KgReply, OutgoingLink};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tool.
pub struct KgGetNode;

/// Retrieve a node of the knowledge graph by its ID or file path.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Node ID
    pub id: Option<String>,
    /// Node path (alternative to ID)
    pub path: Option<String>,
    /// Maximum number of links each way (default 100)
    pub limit: Option<Clamped<1, 1_000>>,
}

/// A document with its text.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    id: String,
    path: String,
    title: String,
    #[serde(rename = "type")]
    doc_type: String,
    status: String,
    tags: Vec<String>,
    content: String,
    frontmatter: Map<String, Value>,
    outgoing_links: Vec<OutgoingLink>,
    incoming_links: Vec<IncomingLink>,
    word_count: u64,
    last_modified: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    faults: Vec<String>,
}

impl Tool for KgGetNode {
    const NAME: &'static str = "kg_get_node";
    const TITLE: &'static str = "Get a node";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "By its path",
            input: r#"{"path": "docs/concepts/auth.md"}"#,
            output: r#""incomingLinks":"#,
        },
        Example {
            title: "Neither id nor path",
            input: "{}",
            output: "Either id or path required",
        },
        Example {
            title: "What is not there",
            input: r#"{"id": "node-123"}"#,
            output: "Node not found",
        },
    ];
    type Input = Input;
    type Output = KgReply<Node>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Node>> {
        let (id, path) = (
            input.id.filter(|it| !it.is_empty()),
            input.path.filter(|it| !it.is_empty()),
        );
        if id.is_none() && path.is_none() {
            return Err(Error::invalid("Either id or path required"));
        }
        let found = ctx
            .engine
            .kg()
            .document(ctx.caller, id.as_deref(), path.as_deref())?;
        let mut document = found.document;
        let (outgoing, incoming) = words::links(&mut document);
        let content = document.content.take().unwrap_or_default();
        let limit = input
            .limit
            .map_or(100, |it| it.get_with_remark(ctx, "limit"));
        Ok(KgReply::new(Node {
            doc_type: words::type_of(&document),
            status: words::status_of(&document),
            last_modified: words::modified(&document),
            id: document.id,
            path: document.path,
            title: document.title,
            tags: document.tags,
            content,
            frontmatter: found.frontmatter,
            outgoing_links: ctx.part("data.outgoingLinks", outgoing.unwrap_or_default(), limit),
            incoming_links: ctx.part("data.incomingLinks", incoming.unwrap_or_default(), limit),
            word_count: document.word_count,
            faults: found.faults,
        }))
    }
}
