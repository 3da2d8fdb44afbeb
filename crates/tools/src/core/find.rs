//! `find`

use crate::default_set::READS;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Bounded, Result};
use kenning_engine::koi::{FindQuery, Findable, FoundThing};
use kenning_engine::{Page, parse_end, parse_moment, timestamp};
use kenning_text::round::{self, Ties};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The tool.
pub struct Find;

/// The list that a cursor continues.
const LIST: &str = "results";

/// Find or search for anything, anywhere, across all sources, when you do not know where it is: memories, notes,
/// documents, pages, people, items, code. The most relevant first, newer among equals; each result says which tool
/// opens it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// What to look for, in any words
    pub query: String,
    /// Only these (default: all)
    pub kinds: Option<Vec<KindWord>>,
    /// Only with all these tags
    pub tags: Option<Vec<String>>,
    /// Not older (ISO 8601)
    pub since: Option<String>,
    /// Not newer
    pub until: Option<String>,
    /// Default 10
    pub limit: Option<Bounded<1, 100>>,
}

/// What can be found.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[allow(
    missing_docs,
    reason = "the words say it, and a schema with a text for each is three times as long"
)]
pub enum KindWord {
    Memory,
    Note,
    Document,
    Entity,
    Item,
    Code,
    Page,
}

impl From<KindWord> for Findable {
    fn from(it: KindWord) -> Self {
        match it {
            KindWord::Memory => Self::Memory,
            KindWord::Note => Self::Note,
            KindWord::Document => Self::Document,
            KindWord::Entity => Self::Entity,
            KindWord::Item => Self::Item,
            KindWord::Code => Self::Code,
            KindWord::Page => Self::Page,
        }
    }
}

/// What was found, the best first.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    results: Vec<Found>,
    /// Where there are more: `cursor` of the same call for those
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Found {
    /// memory, note, document, entity, item, code or page
    kind: &'static str,
    title: String,
    /// The id of a memory, the path of a note, the URI of an entity …
    id: String,
    /// When it was stored or last changed
    date: String,
    snippet: String,
    relevance: f64,
    /// Its type, or where it is from
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    open: Open,
}

/// The call that opens a result.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Open {
    tool: &'static str,
    arguments: Map<String, Value>,
}

impl Found {
    fn of(ctx: &Call<'_>, query: &str, it: FoundThing) -> Self {
        Self {
            kind: it.kind.as_str(),
            date: timestamp(it.at_ms),
            relevance: round::rounded(it.relevance, 3, Ties::Away),
            open: Open::of(ctx, query, &it),
            title: it.title,
            id: it.id,
            snippet: it.snippet,
            source: it.source,
        }
    }
}

impl Open {
    fn of(ctx: &Call<'_>, query: &str, it: &FoundThing) -> Self {
        let id = it.id.as_str();
        let source = it.source.as_deref().unwrap_or_default();
        let (tool, arguments) = match it.kind {
            Findable::Memory => ("memory_recall", json!({ "query": id })),
            Findable::Note => ("note_read", json!({ "path": id })),
            Findable::Entity => ("get_entity_neighborhood", json!({ "entity_uri": id })),
            // A program is looked at before it is run.
            Findable::Item if source == "tool" => {
                ("search", json!({ "item_type": "tool", "query": id }))
            }
            Findable::Item => (
                "execute",
                json!({ "item_type": source, "action": "run", "item_id": id }),
            ),
            Findable::Code => (
                "code_query",
                json!({ "cypher": "MATCH (n {key: $key}) RETURN n", "parameters": { "key": id } }),
            ),
            Findable::Document => match source {
                "project" => ("kg_get_node", json!({ "path": id })),
                // A daily log is told entry by entry.
                "omi" => ("memory_recall", json!({ "query": query })),
                source => (
                    "knowledge_search",
                    json!({ "query": it.title, "source": source }),
                ),
            },
            Findable::Page => (
                "knowledge_search",
                json!({ "query": it.title, "source": "web" }),
            ),
        };
        // What is not listed here is run through a tool that is.
        let is_through = !ctx.others.is_listed(tool) && ctx.others.is_listed(READS);
        let (tool, arguments) = match is_through {
            true => (READS, json!({ "tool": tool, "input": arguments })),
            false => (tool, arguments),
        };
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        Self { tool, arguments }
    }
}

impl Tool for Find {
    const NAME: &'static str = "find";
    const TITLE: &'static str = "Find anything";
    const TOOLSET: Toolset = Toolset::Core;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A note by its name",
            input: r#"{"query": "Bill Baue", "kinds": ["note"]}"#,
            output: r#""id": "People/Bill Baue.md""#,
        },
        Example {
            title: "A kind that does not exist",
            input: r#"{"query": "x", "kinds": ["rumor"]}"#,
            output: "rumor",
        },
    ];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let moment = |field: &str, text: &Option<String>| match (field, text.as_deref()) {
            (_, None) => Ok(None),
            ("until", Some(text)) => parse_end(field, text).map(Some),
            (_, Some(text)) => parse_moment(field, text).map(Some),
        };
        let limit = input.limit.map_or(10, Bounded::get);
        let kinds = input.kinds.unwrap_or_default().into_iter();
        let query = FindQuery {
            text: input.query,
            kinds: kinds.map(Findable::from).collect(),
            tags: input.tags.unwrap_or_default(),
            since_ms: moment("since", &input.since)?,
            until_ms: moment("until", &input.until)?,
            page: Page {
                skip: ctx.skip(LIST),
                limit: usize::try_from(limit).unwrap_or(10),
            },
        };
        let found = ctx.engine.koi().find_everything(ctx.caller, &query)?;
        ctx.more(LIST, found.has_more);
        found.remark.into_iter().for_each(|it| ctx.remark(it));
        let things = found.things.into_iter();
        Ok(Output {
            results: things.map(|it| Found::of(ctx, &query.text, it)).collect(),
            next_cursor: None,
        })
    }
}
