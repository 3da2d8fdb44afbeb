//! `help`

use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct Help;

/// Get usage help and guidance
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
}

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
    ];
    type Input = Input;
    type Output = Output;

    fn call(_: &Call<'_>, input: Input) -> Result<Output> {
        let asked = input.topic.unwrap_or_default().trim().to_lowercase();
        // People ask for `directives` as for `directive`.
        let singular = asked.strip_suffix('s').unwrap_or(&asked);
        let found = TOPICS
            .iter()
            .find(|it| it.name == asked || it.name == singular);
        let Some(found) = found.or(TOPICS.first()) else {
            return Err(kenning_core::Error::internal("there is no help"));
        };
        let mut help = found.text.trim_end().to_owned();
        if found.name == "overview" {
            let names: Vec<&str> = TOPICS.iter().map(|it| it.name).collect();
            if !asked.is_empty() && asked != "overview" {
                help = format!("There is no topic `{asked}`.\n\n{help}");
            }
            help += &format!("\n\nTopics: {}.", names.join(", "));
        }
        Ok(Output {
            help,
            topic: found.name.to_owned(),
        })
    }
}
