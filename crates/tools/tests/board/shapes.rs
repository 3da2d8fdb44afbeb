//! The answers have the shape that the contract's own text shows.
//!
//! The examples of the contract are JSON with comments and with `...` for what is left out; whatever
//! they name must be there, of the same type.

use serde_json::Value;

const KG: &str = include_str!("../contracts/kg.md");

/// A block of the contract: of this tool, under this heading.
fn block<'a>(contract: &'a str, tool: &str, heading: &str) -> &'a str {
    let section = contract.split(&format!("\n## {tool}\n")).nth(1);
    let section = section.unwrap_or_else(|| panic!("the contract has no {tool}"));
    let section = section.split("\n## ").next().unwrap();
    let part = section.split(&format!("### {heading}\n")).nth(1);
    let part = part.unwrap_or_else(|| panic!("{tool} has no {heading}"));
    let json = part.split("```json\n").nth(1).unwrap();
    json.split("\n```").next().unwrap()
}

/// JSON without comments, and with nothing where the contract has `...`.
fn read(text: &str) -> Value {
    let mut plain = String::new();
    for line in text.lines() {
        let (mut in_text, mut before) = (false, ' ');
        let mut end = line.len();
        for (at, c) in line.char_indices() {
            match c {
                '"' if before != '\\' => in_text = !in_text,
                '/' if !in_text && before == '/' => {
                    end = at - 1;
                    break;
                }
                _ => {}
            }
            before = c;
        }
        plain += &line[..end];
        plain.push('\n');
    }
    let mut plain = plain
        .replace(", ...]", "]")
        .replace("[...]", "[]")
        .replace("{...}", "{}");
    // A comment may have stood after what is now the last field.
    while let Some(at) = trailing_comma(&plain) {
        plain.remove(at);
    }
    serde_json::from_str(&plain).unwrap_or_else(|error| panic!("{error}: {plain}"))
}

fn trailing_comma(text: &str) -> Option<usize> {
    let at = text.char_indices().filter(|it| it.1 == ',').map(|it| it.0);
    at.into_iter()
        .find(|&at| text[at + 1..].trim_start().starts_with(['}', ']']))
}

/// The example answer of a tool.
pub(crate) fn kg_answer(tool: &str) -> Value {
    read(block(KG, tool, "Output"))
}

/// The input schema of a tool.
pub(crate) fn kg_input(tool: &str) -> Value {
    read(block(KG, tool, "Input"))
}

/// What an answer lacks of what the contract shows.
pub(crate) fn lacks(contract: &Value, answer: &Value, at: &str) -> Vec<String> {
    match (contract, answer) {
        // What the example leaves empty may be anything, and what it shows may be unknown.
        (Value::Null, _) => Vec::new(),
        (_, Value::Null) if at.contains("last") || at.contains("description") => Vec::new(),
        (Value::Object(wanted), Value::Object(there)) => {
            let mut faults = Vec::new();
            for (name, wanted) in wanted {
                let at = format!("{at}.{name}");
                match there.get(name) {
                    Some(value) => faults.extend(lacks(wanted, value, &at)),
                    None => faults.push(format!("{at} is missing")),
                }
            }
            faults
        }
        (Value::Array(wanted), Value::Array(there)) => match (wanted.first(), there.first()) {
            (Some(wanted), Some(value)) => lacks(wanted, value, &format!("{at}[0]")),
            (Some(_), None) => vec![format!("{at} is empty, so it proves nothing")],
            _ => Vec::new(),
        },
        _ if kind(contract) == kind(answer) => Vec::new(),
        _ => vec![format!(
            "{at} is {} and not {}",
            kind(answer),
            kind(contract)
        )],
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[test]
fn a_missing_or_renamed_key_is_noticed() {
    let contract = kg_answer("kg_query");
    let mut answer = contract.clone();
    assert_eq!(lacks(&contract, &answer, ""), Vec::<String>::new());
    let node = answer["data"][0].as_object_mut().unwrap();
    node.remove("wordCount");
    node.insert("tags".to_owned(), "core".into());
    let expected = [
        ".data[0].tags is string and not array",
        ".data[0].wordCount is missing",
    ];
    assert_eq!(lacks(&contract, &answer, ""), expected);
}
