//! `kg_query`

use super::words::{self, Clamped, KgReply, StatusWord, TypeWord};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::kg::DocumentQuery;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgQuery;

/// Query the knowledge graph for nodes by type, status and tag.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Search query string
    pub query: Option<String>,
    /// Node type
    #[serde(rename = "type")]
    pub doc_type: Option<TypeWord>,
    /// Node status
    pub status: Option<StatusWord>,
    /// Filter by tag
    pub tag: Option<String>,
    /// Default 50
    pub limit: Option<Clamped<1, 1_000>>,
    /// Include full content in results
    #[serde(default, rename = "includeContent")]
    pub include_content: bool,
}

/// A document in a list.
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
    word_count: u64,
    outgoing_link_count: usize,
    incoming_link_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

impl Tool for KgQuery {
    const NAME: &'static str = "kg_query";
    const TITLE: &'static str = "Query the graph";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "By a word",
            input: r#"{"query": "authentication", "limit": 10}"#,
            output: r#""itemCount":"#,
        },
        Example {
            title: "A type that does not exist",
            input: r#"{"type": "novel"}"#,
            output: "`novel` is not a node type",
        },
    ];
    type Input = Input;
    type Output = KgReply<Vec<Node>>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Vec<Node>>> {
        let skip = ctx.skip("data");
        let limit = input
            .limit
            .map_or(50, |it| it.get_with_remark(ctx, "limit"));
        let query = DocumentQuery {
            text: input.query.filter(|it| !it.is_empty()),
            doc_type: input.doc_type.map(|it| it.0),
            status: input.status.map(|it| it.0),
            tag: input.tag.filter(|it| !it.is_empty()),
            limit: limit + skip,
            content: input.include_content,
            ..DocumentQuery::default()
        };
        let found = ctx.engine.kg().find_documents(ctx.caller, &query)?;
        ctx.of_all("data", found.total);
        let nodes: Vec<Node> = found
            .documents
            .into_iter()
            .skip(skip)
            .map(|it| Node {
                doc_type: words::type_of(&it),
                status: words::status_of(&it),
                id: it.id,
                path: it.path,
                title: it.title,
                tags: it.tags,
                word_count: it.word_count,
                outgoing_link_count: it.outgoing_count,
                incoming_link_count: it.incoming_count,
                content: it.content,
            })
            .collect();
        let count = nodes.len();
        let reply = KgReply::new(nodes)
            .with("itemCount", count)
            .with("totalCount", found.total);
        if query.text.is_none() {
            return Ok(reply);
        }
        let matched = words::matched(ctx, found.by_meaning, count > 0);
        Ok(reply.with("matched", matched))
    }
}
