//! `kg_graph_query`

use super::words::{
    self, Clamped, IncomingLink, KgReply, OutgoingLink, QUERY_REQUIRED, Required, TypeWord,
};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Kind, NodeId, Result};
use kenning_engine::kg::{Document, DocumentQuery};
use kenning_engine::query::{self, Question};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The tool.
pub struct KgGraphQuery;

/// Query the knowledge graph for nodes and relationships by full text, or in Cypher.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["query"]))]
pub struct Input {
    /// Text, or `MATCH …`
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
    /// Also these kinds: memory, entity, item, page …
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
    /// Of a query in Cypher
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<Vec<String>>,
    /// Its rows, with the ids of nodes
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Map<String, Value>>>,
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
            title: "In Cypher",
            input: r#"{"query": "MATCH (d:Document)-[:HAS_TAG]->(t) RETURN t.name, count(d)"}"#,
            output: r#""columns":["t.name","count(d)"]"#,
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
        let text = input.query.clone().text(QUERY_REQUIRED)?;
        if query::is_statement(&text) {
            return in_cypher(ctx, &input, text);
        }
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
        let nodes = found.documents.into_iter().skip(skip);
        let nodes: Vec<Node> = nodes.map(Node::from).collect();
        let matched = words::matched(ctx, found.by_meaning, !nodes.is_empty());
        Ok(KgReply::new(Found {
            count: nodes.len(),
            nodes,
            query: text,
            doc_type: query.doc_type.map(|it| it.as_str().to_owned()),
            total_available: found.total,
            columns: None,
            rows: None,
        })
        .with("cached", cached)
        .with("matched", matched))
    }
}

impl From<Document> for Node {
    fn from(mut it: Document) -> Self {
        let (outgoing_links, incoming_links) = words::links(&mut it);
        Self {
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
    }
}

/// Asks the engine of `code_query`: its rows, and the nodes in them as this tool shows nodes.
fn in_cypher(ctx: &Call<'_>, input: &Input, text: String) -> Result<KgReply<Found>> {
    if input.doc_type.is_some() || !input.kinds.is_empty() {
        ctx.remark(
            "`type` and `kinds` do not narrow a query in Cypher: name labels and properties in it",
        );
    }
    let question = Question {
        text: text.clone(),
        ..Question::default()
    };
    let found = ctx.engine.query(ctx.caller, &question)?;
    found.notes.iter().for_each(|it| ctx.remark(it));
    let limit = input
        .limit
        .map_or(10, |it| it.get_with_remark(ctx, "limit"));
    let (total, columns) = (found.rows.len(), found.columns.clone());
    let mut rows = ctx.part("data.rows", found.objects(), limit);
    let mut ids = Vec::new();
    let values = rows.iter().flat_map(Map::values);
    values.for_each(|it| collect_nodes(it, &mut ids));
    let documents =
        ctx.engine
            .kg()
            .documents_of_nodes(ctx.caller, &ids, input.include_relations)?;
    let named = documents
        .iter()
        .map(|it| (it.node, it.id.clone()))
        .collect();
    let values = rows.iter_mut().flat_map(Map::values_mut);
    values.for_each(|it| name_nodes(it, &named));
    let nodes: Vec<Node> = documents.into_iter().map(Node::from).collect();
    Ok(KgReply::new(Found {
        count: nodes.len(),
        nodes,
        query: text,
        doc_type: None,
        total_available: total,
        columns: Some(columns),
        rows: Some(rows),
    })
    .with("matched", "cypher"))
}

/// The id of a value that is a node.
fn node_id(value: &Value) -> Option<NodeId> {
    let members = value.as_object()?;
    let is_node = members.len() == 3
        && members.get("labels").is_some_and(Value::is_array)
        && members.get("properties").is_some_and(Value::is_object);
    members
        .get("id")
        .filter(|_| is_node)?
        .as_str()?
        .parse()
        .ok()
}

/// The nodes in a value, each once.
fn collect_nodes(value: &Value, into: &mut Vec<NodeId>) {
    if let Some(id) = node_id(value) {
        if !into.contains(&id) {
            into.push(id);
        }
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|it| collect_nodes(it, into)),
        Value::Object(members) => members.values().for_each(|it| collect_nodes(it, into)),
        _ => {}
    }
}

/// Puts ids in the place of nodes, which are shown beside the rows.
fn name_nodes(value: &mut Value, named: &HashMap<NodeId, String>) {
    if let Some(name) = node_id(value).and_then(|it| named.get(&it)) {
        *value = name.as_str().into();
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|it| name_nodes(it, named)),
        Value::Object(members) => {
            members.values_mut().for_each(|it| name_nodes(it, named));
        }
        _ => {}
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
