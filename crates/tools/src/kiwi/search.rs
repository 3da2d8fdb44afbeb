//! `search`

use super::words::item_type;
use crate::default_set::runs_others;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Bounded, Result};
use kenning_engine::Page;
use kenning_engine::kiwi::{
    AskedWords, Catalogue, FoundItem, ItemQuery, ItemSort, ItemSource, ItemType,
};
use kenning_text::round::{self, Ties};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::OnceLock;

/// The tool.
pub struct Search;

/// The list that a cursor continues.
const LIST: &str = "results";

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
    /// Order of results
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ["relevance", "quality_score", "name", "updated"], "default" = "relevance"))]
    pub sort: Sort,
    /// Project path, if not the server's own
    pub project_path: Option<String>,
}

/// In which order.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// What answers best first
    #[default]
    Relevance,
    /// The highest quality first
    QualityScore,
    /// By name
    Name,
    /// What was changed last first
    Updated,
}

impl From<Sort> for ItemSort {
    fn from(it: Sort) -> Self {
        match it {
            Sort::Relevance => Self::Relevance,
            Sort::QualityScore => Self::Quality,
            Sort::Name => Self::Name,
            Sort::Updated => Self::Updated,
        }
    }
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
    /// Where there are more: `cursor` of the same call for those
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
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
    /// Of a tool that was run: the share of runs that went well, from 0 to 1
    #[serde(skip_serializing_if = "Option::is_none")]
    success_rate: Option<f64>,
    /// Of a tool: what it wants to be told, as a JSON Schema; `help` has it where it is left out
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Value>,
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
            success_rate: it.success_rate.map(rounded),
            parameters: it.parameters,
            relevance: rounded(it.relevance),
        }
    }
}

fn rounded(number: f64) -> f64 {
    round::rounded(number, 3, Ties::Away)
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
        let sort = ItemSort::from(input.sort);
        let skip = ctx.skip(LIST);
        let found = ctx.engine.kiwi().search_items_until(
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
                skip,
                sort,
                project_path: input.project_path.clone(),
                ..ItemQuery::default()
            },
        )?;
        let (mut items, mut total) = (found.items, found.total);
        if !matches!(input.source, Source::Registry) {
            let mut more = Vec::new();
            // With all tools listed, they are not searched among items.
            let is_lean = ctx.others.is_lean();
            if any || (is_lean && item_type == Some(ItemType::Tool)) {
                more.extend(server_tools(ctx, &input.query));
            }
            if any || item_type == Some(ItemType::Directive) {
                let (engine, project) = (ctx.engine, input.project_path.as_deref());
                more.extend(
                    engine
                        .kiwi()
                        .builtin_directives(ctx.caller, &input.query, project)?,
                );
            }
            if !more.is_empty() {
                total += more.len();
                items = merged(items, more, sort);
            }
        }
        let (mut items, has_more) = Page { skip, limit }.of_ranked(items);
        ctx.more(LIST, has_more);
        with_installed_parameters(ctx, &mut items);
        let mut results: Vec<Row> = items.into_iter().map(Row::from).collect();
        let mut left = PARAMETERS_BYTES_MAX;
        for row in &mut results {
            let size = row.parameters.as_ref().map_or(0, |it| it.to_string().len());
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => row.parameters = None,
            }
        }
        Ok(Output {
            results,
            total,
            query: input.query,
            next_cursor: None,
        })
    }
}

/// Merges others into a list by rank, so that no position depends on how much of the list was read.
fn merged(items: Vec<FoundItem>, mut others: Vec<FoundItem>, sort: ItemSort) -> Vec<FoundItem> {
    others.sort_by(|a, b| a.order(b, sort));
    let mut others = others.into_iter().peekable();
    let mut all = Vec::new();
    for item in items {
        while let Some(other) = others.next_if(|it| it.order(&item, sort).is_lt()) {
            all.push(other);
        }
        all.push(item);
    }
    all.extend(others);
    all
}

/// The schemas of one reply have at most this many bytes together, so that it stays readable.
const PARAMETERS_BYTES_MAX: usize = 16 * 1024;

/// Adds the parameters of installed tools.
fn with_installed_parameters(ctx: &Call<'_>, items: &mut [FoundItem]) {
    let is_bare = |it: &FoundItem| it.item_type == "tool" && it.parameters.is_none();
    if !items.iter().any(is_bare) {
        return;
    }
    let installed = ctx.others.installed(ctx.caller);
    for item in items.iter_mut().filter(|it| is_bare(it)) {
        let found = installed.iter().find(|it| it.name == item.id);
        item.parameters = found.map(|it| it.input_schema.clone());
    }
}

/// Tools of this server that answer the query; `execute` runs them by their names.
fn server_tools(ctx: &Call<'_>, query: &str) -> Vec<FoundItem> {
    // The same in every server of a process.
    static TEXTS: OnceLock<Catalogue> = OnceLock::new();
    let all = ctx.others.all();
    let catalogue = TEXTS.get_or_init(|| {
        let texts: Vec<(String, String)> = all
            .iter()
            .map(|tool| {
                (
                    format!("{} {}", tool.name(), tool.title()),
                    tool.description(),
                )
            })
            .collect();
        Catalogue::new(
            texts
                .iter()
                .map(|entry| (entry.0.as_str(), entry.1.as_str())),
        )
    });
    let found = catalogue.search(query, all.len()).into_iter();
    let words = AskedWords::of(query);
    let exact = |name: &str| name == query.trim();
    let rows = found.filter_map(|(place, relevance)| {
        let tool = *all.get(place)?;
        let relevance = if exact(tool.name()) { 1.0 } else { relevance };
        // The caller has these already, and `execute` does not run them.
        let is_own = runs_others(tool);
        if !Catalogue::is_answer(relevance) || is_own || !ctx.others.reaches(tool) {
            return None;
        }
        let relevance = match exact(tool.name()) {
            true => relevance,
            false => words.weigh(&format!("{} {}", tool.name(), tool.title()), relevance),
        };
        Some(FoundItem {
            id: tool.name().to_owned(),
            name: tool.title().to_owned(),
            category: tool.toolset().as_str().to_owned(),
            description: tool.description(),
            quality: None,
            source: "local",
            item_type: "tool".to_owned(),
            version: None,
            path: None,
            relevance,
            success_rate: None,
            parameters: Some(tool.input_schema()),
            updated_ms: 0,
        })
    });
    rows.collect()
}
