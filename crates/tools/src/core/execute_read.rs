//! `execute_read`

use crate::{Call, Effect, Example, Tool, Toolset, near};
use kenning_core::{Error, Result};
use kenning_engine::Scope;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The tool.
pub struct ExecuteRead;

/// Call a tool by its name that only reads (kg_…, code_query), with its arguments, and show what it answers. Changes
/// nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its name
    pub tool: String,
    /// Its arguments
    #[serde(default)]
    pub input: Map<String, Value>,
}

/// What the tool answered.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    tool: String,
    /// The tool's own answer
    result: Anything,
}

/// Whatever another tool answers.
#[derive(Serialize)]
#[serde(transparent)]
struct Anything(Value);

impl JsonSchema for Anything {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Anything".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // A schema that says nothing at all is refused by some clients.
        json_schema!({ "type": ["object", "array", "string", "number", "boolean", "null"] })
    }
}

impl Tool for ExecuteRead {
    const NAME: &'static str = crate::default_set::READS;
    const TITLE: &'static str = "Call a tool that reads";
    const TOOLSET: Toolset = Toolset::Core;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A tool that is not listed",
            input: r#"{"tool": "kg_list_tags"}"#,
            output: r#""tool": "kg_list_tags""#,
        },
        Example {
            title: "A tool that writes is refused",
            input: r#"{"tool": "memory_store", "input": {"content": "x"}}"#,
            output: "`memory_store` changes data",
        },
    ];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let name = input.tool.trim();
        let arguments = Value::Object(input.input);
        let Some(tool) = ctx.others.reachable(name) else {
            let names = ctx.others.tool_names(ctx.caller);
            let close = near::sentence(&near::names(name, names));
            return Err(Error::not_found("tool that can be called here", name).hint(
                format!("{close} `search` with item_type `tool` finds tools")
                    .trim()
                    .to_owned(),
            ));
        };
        if tool.scope(&arguments) != Scope::Read {
            return Err(Error::denied(format!("`{name}` changes data"))
                .hint("run it with `execute`: item_type `tool`, action `run`"));
        }
        let reply = ctx.others.call_reachable(tool, arguments, ctx.caller);
        reply.remarks.into_iter().for_each(|it| ctx.remark(it));
        match reply.error {
            Some(error) => Err(error),
            None => Ok(Output {
                tool: name.to_owned(),
                result: Anything(reply.value.unwrap_or_else(|| reply.text.into())),
            }),
        }
    }
}
