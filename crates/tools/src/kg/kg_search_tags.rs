//! `kg_search_tags`

use super::words::{self, Clamped, KgReply, Required};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The tool.
pub struct KgSearchTags;

const TAGS_REQUIRED: &str = "Tags parameter is required and must be a non-empty array of strings";
const TAG_REQUIRED: &str = "At least one valid tag string is required";

/// Search for nodes by tags, all or any of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["tags"]))]
pub struct Input {
    /// Tags
    #[serde(default)]
    #[schemars(schema_with = "list_of_texts")]
    pub tags: Required,
    /// All tags must match
    #[serde(default, rename = "matchAll")]
    pub match_all: bool,
    /// Default 20
    pub limit: Option<Clamped<1, 100>>,
}

fn list_of_texts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string" } })
}

/// What was found.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    nodes: Vec<Node>,
    count: usize,
    tags: Vec<String>,
    match_all: bool,
    total_matching: usize,
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
    matched_tags: Vec<String>,
    last_modified: String,
}

impl Tool for KgSearchTags {
    const NAME: &'static str = "kg_search_tags";
    const TITLE: &'static str = "Search by tags";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Any of two tags",
            input: r#"{"tags": ["security", "authentication"], "matchAll": false}"#,
            output: r#""totalMatching":"#,
        },
        Example {
            title: "No tags",
            input: r#"{"tags": []}"#,
            output: TAGS_REQUIRED,
        },
    ];
    type Input = Input;
    type Output = KgReply<Found>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Found>> {
        let tags = tags(input.tags.value())?;
        let cached = ctx.engine.kg().graph_is_in_memory(ctx.caller)?;
        let skip = ctx.skip("data.nodes");
        let limit = input
            .limit
            .map_or(20, |it| it.get_with_remark(ctx, "limit"))
            + skip;
        let found = ctx
            .engine
            .kg()
            .documents_by_tags(ctx.caller, &tags, input.match_all, limit);
        let (found, total_matching) = found.map_err(words::run_generation_first)?;
        ctx.of_all("data.nodes", total_matching);
        let nodes: Vec<Node> = found
            .into_iter()
            .skip(skip)
            .map(|(it, matched_tags)| Node {
                doc_type: words::type_of(&it),
                status: words::status_of(&it),
                last_modified: words::modified(&it),
                id: it.id,
                title: it.title,
                path: it.path,
                tags: it.tags,
                matched_tags,
            })
            .collect();
        Ok(KgReply::new(Found {
            count: nodes.len(),
            nodes,
            tags,
            match_all: input.match_all,
            total_matching,
        })
        .with("cached", cached))
    }
}

/// Tags in the caller's spelling; values that are not strings are ignored if at least one is.
fn tags(given: Option<Value>) -> Result<Vec<String>> {
    let Some(Value::Array(given)) = given else {
        return Err(Error::invalid(TAGS_REQUIRED));
    };
    if given.is_empty() {
        return Err(Error::invalid(TAGS_REQUIRED));
    }
    let texts = given.iter().filter_map(Value::as_str);
    let tags: Vec<String> = texts
        .filter(|it| !it.trim().is_empty())
        .map(ToOwned::to_owned)
        .collect();
    if tags.is_empty() {
        return Err(Error::invalid(TAG_REQUIRED));
    }
    Ok(tags)
}
