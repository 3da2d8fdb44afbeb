//! `kg_graph_query`

use super::words::{
    self, Clamped, IncomingLink, KgReply, OutgoingLink, QUERY_REQUIRED, Required, TypeWord,
};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Kind, Result};
use kenning_engine::kg::DocumentQuery;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgGraphQuery;

/// Query the knowledge graph for nodes and relationships by full text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["query"]))]
pub struct Input {
    /// Search query string
    #[serde(default)]
    pub query: Required,
    /// Node type
    #[serde(rename = "type")]
    pub doc_type: Option<TypeWord>,
    /// Default 10
    pub limit: Option<Clamped<1, 100>>,
    /// Include links both ways
    #[serde(default, rename = "includeRelations")]
    pub include_relations: bool,
    /// Also find nodes of these kinds: memory, entity, item, page …
    #[serde(default)]
    pub kinds: Vec<String>,
}

/// What was found.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    nodes: Vec<Node>,
    count: usize,
    query: String,
    #[serde(rename = "type")]
    doc_type: Option<String>,
    total_available: usize,
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
    word_count: u64,
    last_modified: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    outgoing_links: Option<Vec<OutgoingLink>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    incoming_links: Option<Vec<IncomingLink>>,
    /// The text of what is no document.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

impl Tool for KgGraphQuery {
    const NAME: &'static str = "kg_graph_query";
    const TITLE: &'static str = "Search nodes and relations";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "With relations",
            input: r#"{"query": "user management", "type": "service", "includeRelations": true}"#,
            output: r#""totalAvailable":"#,
        },
        Example {
            title: "No query",
            input: "{}",
            output: QUERY_REQUIRED,
        },
    ];
    type Input = Input;
    type Output = KgReply<Found>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Found>> {
        let text = input.query.text(QUERY_REQUIRED)?;
        let cached = ctx.engine.kg().graph_is_in_memory(ctx.caller)?;
        let skip = ctx.skip("data.nodes");
        let query = DocumentQuery {
            text: Some(text.clone()),
            doc_type: input.doc_type.map(|it| it.0),
            limit: input
                .limit
                .map_or(10, |it| it.get_with_remark(ctx, "limit"))
                + skip,
            relations: input.include_relations,
            kinds: kinds(&input.kinds)?,
            ..DocumentQuery::default()
        };
        let found = ctx.engine.kg().find_documents(ctx.caller, &query);
        let found = found.map_err(words::run_generation_first)?;
        ctx.of_all("data.nodes", found.total);
        let nodes: Vec<Node> = found
            .documents
            .into_iter()
            .skip(skip)
            .map(|mut it| {
                let (outgoing_links, incoming_links) = words::links(&mut it);
                Node {
                    doc_type: words::type_of(&it),
                    status: words::status_of(&it),
                    last_modified: words::modified(&it),
                    id: it.id,
                    title: it.title,
                    path: it.path,
                    tags: it.tags,
                    word_count: it.word_count,
                    outgoing_links,
                    incoming_links,
                    content: it.content,
                }
            })
            .collect();
        let matched = words::matched(ctx, found.by_meaning, !nodes.is_empty());
        Ok(KgReply::new(Found {
            count: nodes.len(),
            nodes,
            query: text,
            doc_type: query.doc_type.map(|it| it.as_str().to_owned()),
            total_available: found.total,
        })
        .with("cached", cached)
        .with("matched", matched))
    }
}

/// Kinds in addition to documents, which are always found.
fn kinds(names: &[String]) -> Result<Vec<Kind>> {
    let mut kinds = Vec::new();
    for name in names {
        let kind = Kind::ALL.into_iter().find(|it| it.as_str() == name);
        let kind = kind.ok_or_else(|| {
            let all = Kind::ALL.map(Kind::as_str).join(", ");
            Error::invalid(format!("`kinds`: `{name}` is not a kind of node"))
                .hint(format!("one of {all}"))
        })?;
        if kind != Kind::Document {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}
