//! `kg_search_nodes`

use super::words::{self, Clamped, KgReply, QUERY_REQUIRED, Required, StatusWord, TypeWord};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::kg::{DocumentQuery, snippet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgSearchNodes;

/// Search for nodes of the knowledge graph by content, type or status.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["query"]))]
pub struct Input {
    /// Search query
    #[serde(default)]
    pub query: Required,
    /// Node type
    #[serde(rename = "type")]
    pub doc_type: Option<TypeWord>,
    /// Node status
    pub status: Option<StatusWord>,
    /// Default 20
    pub limit: Option<Clamped<1, 100>>,
}

/// What was found.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    nodes: Vec<Node>,
    count: usize,
    query: String,
    filters: Filters,
    total_available: usize,
}

/// What was asked for.
#[derive(Serialize, JsonSchema)]
pub(super) struct Filters {
    #[serde(rename = "type")]
    doc_type: Option<&'static str>,
    status: Option<&'static str>,
}

/// A document.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    id: String,
    title: String,
    #[serde(rename = "type")]
    doc_type: String,
    status: String,
    path: String,
    tags: Vec<String>,
    description: Option<String>,
    word_count: u64,
    last_modified: String,
    snippet: String,
}

impl Tool for KgSearchNodes {
    const NAME: &'static str = "kg_search_nodes";
    const TITLE: &'static str = "Search nodes";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "With filters",
        input: r#"{"query": "authentication", "type": "service", "status": "active"}"#,
        output: r#""filters":{"type":"service","status":"active"}"#,
    }];
    type Input = Input;
    type Output = KgReply<Found>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Found>> {
        let text = input.query.text(QUERY_REQUIRED)?;
        let cached = ctx.engine.kg().graph_is_in_memory(ctx.caller)?;
        let skip = ctx.skip("data.nodes");
        let query = DocumentQuery {
            text: Some(text.clone()),
            doc_type: input.doc_type.map(|it| it.0),
            status: input.status.map(|it| it.0),
            limit: input
                .limit
                .map_or(20, |it| it.get_with_remark(ctx, "limit"))
                + skip,
            content: true,
            ..DocumentQuery::default()
        };
        let found = ctx.engine.kg().find_documents(ctx.caller, &query);
        let found = found.map_err(words::run_generation_first)?;
        ctx.of_all("data.nodes", found.total);
        let nodes: Vec<Node> = found
            .documents
            .into_iter()
            .skip(skip)
            .map(|it| Node {
                doc_type: words::type_of(&it),
                status: words::status_of(&it),
                last_modified: words::modified(&it),
                id: it.id,
                title: it.title,
                path: it.path,
                tags: it.tags,
                description: it.description,
                word_count: it.word_count,
                snippet: snippet(&it.content.unwrap_or_default()),
            })
            .collect();
        let matched = words::matched(ctx, found.by_meaning, !nodes.is_empty());
        Ok(KgReply::new(Found {
            count: nodes.len(),
            nodes,
            query: text,
            filters: Filters {
                doc_type: query.doc_type.map(|it| it.as_str()),
                status: query.status.map(|it| it.as_str()),
            },
            total_available: found.total,
        })
        .with("cached", cached)
        .with("matched", matched))
    }
}
