//! `docs/reference/tools.md`, from the table of tools.

use super::markdown::{cell, notice, sentences};
use kenning_tools::{AnyTool, Effect, TOOLS};
use serde_json::Value;

pub(super) fn page() -> String {
    let mut text = notice("`TOOLS` of crates/tools");
    text += "# Tools\n\n\
             | tool | toolset | effect | what it does |\n\
             |---|---|---|---|\n";
    for tool in TOOLS {
        let description = tool.description();
        let first = sentences(&description);
        text += &format!(
            "| [`{0}`](#{0}) | {1} | {2} | {3} |\n",
            tool.name(),
            tool.toolset().as_str(),
            tool.effect().as_str(),
            cell(first.lines().next().unwrap_or_default()),
        );
    }
    TOOLS.iter().for_each(|tool| text += &section(*tool));
    text
}

fn section(tool: &dyn AnyTool) -> String {
    let mut text = format!("\n## `{}`\n\n**{}**", tool.name(), tool.title());
    text += &format!(
        " · toolset `{}` · {} · needs the scope `{}`\n\n{}\n",
        tool.toolset().as_str(),
        badge(tool.effect()),
        tool.effect().scope().as_str(),
        sentences(&tool.description()),
    );
    text += "\n### Arguments\n\n";
    text += &fields(&tool.input_schema());
    text += "\n### Answer\n\n";
    match tool.output_schema() {
        Some(schema) => text += &fields(&schema),
        None => text += "Text.\n",
    }
    text += "\n### Examples\n";
    for example in tool.examples() {
        let input = serde_json::from_str::<Value>(example.input);
        let input = input.map_or_else(|_| example.input.to_owned(), |it| format!("{it:#}"));
        text += &format!("\n{}:\n\n```json\n{input}\n```\n", example.title);
        text += &format!(
            "\nanswers:\n\n```text\n{}\n```\n",
            example.output.trim_end()
        );
    }
    text
}

/// What a caller should expect of it, in words.
fn badge(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "reads",
        Effect::Write { idempotent: true } => "writes; the same call twice leaves what one leaves",
        Effect::Write { idempotent: false } => "writes",
        Effect::Destroy => "removes",
        Effect::Run => "starts a program",
        Effect::Fetch => "reaches the network",
    }
}

/// The fields of an object as a table, those of inner objects with their path; of one of several objects a
/// table for each.
fn fields(schema: &Value) -> String {
    let choices = schema["anyOf"].as_array();
    if let Some(choices) = choices.filter(|_| schema.get("properties").is_none()) {
        let each = choices.iter().map(|choice| {
            let title = choice["description"].as_str().unwrap_or("One of these");
            format!("{}:\n\n{}", title.trim_end_matches('.'), fields(choice))
        });
        return each.collect::<Vec<_>>().join("\n");
    }
    let mut rows = String::new();
    rows_of(schema, "", &mut rows);
    if rows.is_empty() {
        return "None.\n".to_owned();
    }
    format!("| field | type | required | default | what it is |\n|---|---|---|---|---|\n{rows}")
}

fn rows_of(schema: &Value, path: &str, rows: &mut String) {
    let required = schema["required"].as_array();
    let properties = schema["properties"].as_object();
    for (name, property) in properties.into_iter().flatten() {
        let is_required = required.is_some_and(|it| it.iter().any(|it| it == name));
        let default = property.get("default").filter(|it| !it.is_null());
        *rows += &format!(
            "| `{path}{name}` | {} | {} | {} | {} |\n",
            cell(&type_of(property)),
            if is_required { "yes" } else { "no" },
            default.map_or_else(String::new, |it| format!("`{}`", cell(&it.to_string()))),
            cell(property["description"].as_str().unwrap_or_default()),
        );
        rows_of(property, &format!("{path}{name}."), rows);
        rows_of(&property["items"], &format!("{path}{name}[]."), rows);
    }
}

/// The type in words: `integer, 1 to 100`, `array of string`, `"a" or "b"`.
fn type_of(schema: &Value) -> String {
    let quoted = |it: &Value| format!("`{it}`");
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(quoted).collect::<Vec<_>>().join(" or ");
    }
    if let Some(value) = schema.get("const") {
        return quoted(value);
    }
    for name in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[name].as_array() {
            let choices = choices.iter().map(type_of).filter(|it| !it.is_empty());
            return choices.collect::<Vec<_>>().join(" or ");
        }
    }
    let named: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => vec!["any"],
    };
    let named: Vec<String> = named
        .into_iter()
        .filter(|it| *it != "null")
        .map(|name| match name {
            "array" => format!("array of {}", type_of(&schema["items"])),
            other => other.to_owned(),
        })
        .collect();
    let text = named.join(" or ");
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(low), Some(high)) => format!("{text}, {low} to {high}"),
        (Some(low), None) => format!("{text}, at least {low}"),
        (None, Some(high)) => format!("{text}, at most {high}"),
        (None, None) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_tool_has_its_section() {
        let page = page();
        for tool in TOOLS {
            assert!(page.contains(&format!("\n## `{}`\n", tool.name())));
        }
    }

    #[test]
    fn types_are_told_in_words() {
        for (schema, words) in [
            (json!({ "type": ["string", "null"] }), "string"),
            (
                json!({ "type": "integer", "minimum": 1, "maximum": 9 }),
                "integer, 1 to 9",
            ),
            (
                json!({ "type": "integer", "minimum": 0 }),
                "integer, at least 0",
            ),
            (
                json!({ "type": "array", "items": { "type": "string" } }),
                "array of string",
            ),
            (json!({ "enum": ["a", "b"] }), "`\"a\"` or `\"b\"`"),
            (
                json!({ "anyOf": [{ "type": "number" }, { "type": "null" }] }),
                "number",
            ),
            (json!(true), "any"),
        ] {
            assert_eq!(type_of(&schema), words, "{schema}");
        }
    }

    #[test]
    fn inner_fields_are_told_with_their_path() {
        let inner = json!({ "type": "object", "required": ["b"], "properties": {
            "b": { "type": "string", "description": "Inner | one." },
        }});
        let text = fields(&json!({ "properties": {
            "a": inner, "list": { "type": "array", "items": inner },
            "n": { "type": "integer", "default": 5 },
        }}));
        assert!(
            text.contains("| `a.b` | string | yes |  | Inner \\| one. |"),
            "{text}"
        );
        assert!(text.contains("| `list[].b` | string | yes |"), "{text}");
        assert!(text.contains("| `n` | integer | no | `5` |"), "{text}");
        assert_eq!(fields(&json!({})), "None.\n");
        let text = fields(&json!({ "type": "object", "anyOf": [
            { "description": "It is there.", "properties": { "a": { "type": "string" } } },
            { "description": "It is not", "properties": { "b": { "type": "string" } } },
        ]}));
        assert!(text.starts_with("It is there:\n\n| field |"), "{text}");
        assert!(text.contains("|\n\nIt is not:\n\n| field |"), "{text}");
    }
}
