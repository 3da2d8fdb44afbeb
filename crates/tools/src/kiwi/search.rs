//! `search`

use super::words::item_type;
use crate::{Call, Effect, Example, TOOLS, Tool, Toolset};
use kenning_core::{Bounded, Result};
use kenning_engine::{Catalogue, FoundItem, ItemQuery, ItemSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// The tool.
pub struct Search;

/// Search for directives, tools, or knowledge entries. `any` finds memories, notes and every other
/// tool too.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Type of item to search for
    #[schemars(extend("enum" = ["directive", "tool", "knowledge", "any"]))]
    pub item_type: String,
    /// Search query (natural language or keywords)
    pub query: String,
    /// Search source
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ["local", "registry", "all"], "default" = "local"))]
    pub source: Source,
    /// Maximum results to return
    #[schemars(extend("default" = 10))]
    pub limit: Option<Bounded<1, 100>>,
    /// Project path, if not the server's own
    pub project_path: Option<String>,
}

/// Where to look.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// In the project and the user's own space
    #[default]
    Local,
    /// In the registry
    Registry,
    /// In both
    All,
}

/// What was found.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    results: Vec<Row>,
    /// How many there are before the limit
    total: usize,
    query: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Row {
    id: String,
    name: String,
    category: String,
    description: String,
    /// From 0 to 100; null where nothing stands behind a number
    quality_score: Option<f64>,
    source: &'static str,
    item_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    relevance: f64,
}

impl From<FoundItem> for Row {
    fn from(it: FoundItem) -> Self {
        Self {
            id: it.id,
            name: it.name,
            category: it.category,
            description: it.description,
            quality_score: it.quality,
            source: it.source,
            item_type: it.item_type,
            version: it.version,
            path: it.path,
            relevance: (it.relevance * 1_000.0).round() / 1_000.0,
        }
    }
}

impl Tool for Search {
    const NAME: &'static str = "search";
    const TITLE: &'static str = "Find items";
    const TOOLSET: Toolset = Toolset::Kiwi;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Nothing is there yet",
            input: r#"{"item_type": "directive", "query": "authentication oauth setup", "source": "registry", "limit": 5}"#,
            output: r#""total": 0"#,
        },
        Example {
            title: "A type that does not exist",
            input: r#"{"item_type": "skill", "query": "x"}"#,
            output: "Unknown item_type: skill",
        },
    ];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let any = input.item_type == "any";
        let item_type = match any {
            true => None,
            false => Some(item_type(ctx, &input.item_type)?),
        };
        let limit = input
            .limit
            .map_or(10, |it| usize::try_from(it.get()).unwrap_or(10));
        let found = ctx.engine.search_items(
            ctx.caller,
            &ItemQuery {
                item_type,
                text: input.query.clone(),
                source: match input.source {
                    Source::Local => ItemSource::Local,
                    Source::Registry => ItemSource::Registry,
                    Source::All => ItemSource::All,
                },
                limit,
                project_path: input.project_path,
                ..ItemQuery::default()
            },
        )?;
        let mut results: Vec<Row> = found.items.into_iter().map(Row::from).collect();
        let mut total = found.total;
        if any && !matches!(input.source, Source::Registry) {
            let tools = server_tools(ctx, &input.query);
            total += tools.len();
            results.extend(tools);
            results.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
            results.truncate(limit);
        }
        Ok(Output {
            results,
            total,
            query: input.query,
        })
    }
}

/// A tool of the server is found from here on.
const RELEVANCE_MIN: f64 = 0.4;

/// Tools of this server that answer the query; `execute` runs them by their names.
fn server_tools(ctx: &Call<'_>, query: &str) -> Vec<Row> {
    static TEXTS: OnceLock<Catalogue> = OnceLock::new();
    let catalogue = TEXTS.get_or_init(|| {
        let texts: Vec<(String, String)> = TOOLS
            .iter()
            .map(|tool| {
                (
                    format!("{} {}", tool.name(), tool.title()),
                    tool.description(),
                )
            })
            .collect();
        Catalogue::new(texts.iter().map(|it| (it.0.as_str(), it.1.as_str())))
    });
    let found = catalogue.search(query, TOOLS.len()).into_iter();
    let exact = |name: &str| name == query.trim();
    let rows = found.filter_map(|(place, relevance)| {
        let tool = *TOOLS.get(place)?;
        let relevance = if exact(tool.name()) { 1.0 } else { relevance };
        // Who asks has these four already, and `execute` does not run them.
        let is_own = tool.toolset() == Toolset::Kiwi;
        if relevance < RELEVANCE_MIN || is_own || !ctx.board.reaches(tool) {
            return None;
        }
        Some(Row {
            id: tool.name().to_owned(),
            name: tool.title().to_owned(),
            category: tool.toolset().as_str().to_owned(),
            description: tool.description(),
            quality_score: None,
            source: "local",
            item_type: "tool".to_owned(),
            version: None,
            path: None,
            relevance: (relevance * 1_000.0).round() / 1_000.0,
        })
    });
    rows.collect()
}
