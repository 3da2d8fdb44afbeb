//! `help`

use crate::{Call, Effect, Example, Tool, Toolset, near};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The tool.
pub struct Help;

/// Get usage help and guidance. With the name of any tool as the topic it tells that tool's parameters.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Help topic (search, load, execute, directive, tool, knowledge)
    pub topic: Option<String>,
}

/// Help on a topic.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Markdown
    help: String,
    topic: String,
    /// The version of this API
    api_version: &'static str,
    /// Of a tool: what it wants to be told, as a JSON Schema
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Value>,
}

/// The version of the contract that these four tools implement.
pub const API_VERSION: &str = "1.0.0";

/// Something to get help on.
#[derive(Clone, Copy, Debug)]
pub struct Topic {
    /// By which word.
    pub name: &'static str,
    /// Markdown; also a chapter of the manual.
    pub text: &'static str,
}

const fn topic(name: &'static str, text: &'static str) -> Topic {
    Topic { name, text }
}

/// All topics. The manual's page of them is made from this table.
pub const TOPICS: &[Topic] = &[
    topic("overview", include_str!("help/overview.md")),
    topic("search", include_str!("help/search.md")),
    topic("load", include_str!("help/load.md")),
    topic("execute", include_str!("help/execute.md")),
    topic("directive", include_str!("help/directive.md")),
    topic("tool", include_str!("help/tool.md")),
    topic("knowledge", include_str!("help/knowledge.md")),
    topic("signing", include_str!("help/signing.md")),
    topic("registry", include_str!("help/registry.md")),
];

impl Tool for Help {
    const NAME: &'static str = "help";
    const TITLE: &'static str = "Help on items";
    const TOOLSET: Toolset = Toolset::Kiwi;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "In general",
            input: "{}",
            output: r#""topic": "overview""#,
        },
        Example {
            title: "On a topic",
            input: r#"{"topic": "search"}"#,
            output: r#""topic": "search""#,
        },
        Example {
            title: "On a tool",
            input: r#"{"topic": "memory_recall"}"#,
            output: "| parameter | type |",
        },
    ];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let named = input.topic.unwrap_or_default();
        let asked = named.trim().to_lowercase();
        // People ask for `directives` as well as `directive`.
        let singular = asked.strip_suffix('s').unwrap_or(&asked);
        let found = TOPICS
            .iter()
            .find(|topic| topic.name == asked || topic.name == singular);
        if let Some(found) = found.filter(|it| it.name != "overview") {
            return Ok(answer(found.text.trim_end(), found.name, None));
        }
        if found.is_none()
            && let Some((name, text, parameters)) = tool_help(ctx, named.trim())
        {
            return Ok(answer(&text, &name, Some(parameters)));
        }
        let overview = TOPICS.first().map_or("", |it| it.text.trim_end());
        let names: Vec<&str> = TOPICS.iter().map(|it| it.name).collect();
        let mut help = format!(
            "{overview}\n\nAPI version: {API_VERSION}.\n\nTopics: {}, and the name of any tool.",
            names.join(", ")
        );
        if found.is_none() && !asked.is_empty() {
            let tools = ctx.others.tool_names(ctx.caller);
            let known = names.iter().map(|it| (*it).to_owned()).chain(tools);
            let near = near::sentence(&near::names(&asked, known));
            help = format!("There is no topic `{asked}`.{near}\n\n{help}");
        }
        Ok(answer(&help, "overview", None))
    }
}

fn answer(help: &str, topic: &str, parameters: Option<Value>) -> Output {
    Output {
        help: help.to_owned(),
        topic: topic.to_owned(),
        api_version: API_VERSION,
        parameters,
    }
}

/// The name of a tool that can be called from here, its description and its parameters.
fn tool_help(ctx: &Call<'_>, name: &str) -> Option<(String, String, Value)> {
    if name.is_empty() {
        return None;
    }
    let lower = name.to_lowercase();
    if let Some(tool) = ctx.others.reachable(&lower) {
        let mut text = page(tool.name(), &tool.description(), &tool.input_schema());
        for example in tool.examples().iter().take(1) {
            text += &format!("\n\n{}:\n\n```json\n{}\n```", example.title, example.input);
        }
        return Some((tool.name().to_owned(), text, tool.input_schema()));
    }
    let installed = ctx.others.installed(ctx.caller);
    if let Some(tool) = installed.into_iter().find(|it| it.name == name) {
        let text = page(&tool.name, &tool.description, &tool.input_schema);
        return Some((tool.name, text, tool.input_schema));
    }
    let item = ctx.engine.kiwi().describe_item_tool(ctx.caller, name, None);
    let (description, schema) = item.ok().flatten()?;
    Some((name.to_owned(), page(name, &description, &schema), schema))
}

/// A tool as a page: what it does, then its parameters in a table.
fn page(name: &str, description: &str, schema: &Value) -> String {
    let mut text = format!("# {name}\n\n{description}");
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.filter(|it| !it.is_empty());
    let Some(properties) = properties else {
        return text + "\n\nIt takes no parameters.";
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| {
        let mut required = required.into_iter().flatten();
        required.any(|it| it.as_str() == Some(name))
    };
    text += "\n\n| parameter | type | required | default | description |\n|---|---|---|---|---|";
    for (name, property) in properties {
        let of = |field: &str| match property.get(field) {
            Some(Value::String(text)) => text.replace('|', "\\|").replace('\n', " "),
            Some(other) => other.to_string().replace('|', "\\|"),
            None => String::new(),
        };
        let allowed = match property.get("enum") {
            Some(Value::Array(words)) => {
                let words = words.iter().filter_map(Value::as_str);
                format!(": {}", words.collect::<Vec<_>>().join(", "))
            }
            _ => String::new(),
        };
        let required = if is_required(name) { "yes" } else { "" };
        text += &format!(
            "\n| `{name}` | {}{allowed} | {required} | {} | {} |",
            of("type"),
            of("default"),
            of("description")
        );
    }
    text
}
