//! A tool with the helpers: typed input, an answer that is one text, an error as JSON, a line of log.

use kami_guest::{error_result, kami_tool, log, parse_input, text_result, LogLevel};
use serde::Deserialize;

kami_tool! {
    name: "dev.example.hello-world",
    version: env!("CARGO_PKG_VERSION"),
    description: "Greets whoever is named",
    handler: greet,
}

#[derive(Deserialize)]
struct Input {
    name: Option<String>,
}

fn greet(input: &str) -> Result<String, String> {
    let input: Input = parse_input(input)?;
    let name = input.name.as_deref().unwrap_or("world").trim();
    if name.is_empty() {
        return Err(error_result(
            "`name` is empty: leave it out to greet the world",
        ));
    }
    log(LogLevel::Info, &format!("greeting {name}"));
    text_result(&format!("Hello, {name}!"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_named_is_greeted() {
        for (input, output) in [
            ("{}", Ok(r#"{"text":"Hello, world!"}"#)),
            (r#"{"name": " Ada "}"#, Ok(r#"{"text":"Hello, Ada!"}"#)),
            (
                r#"{"name": " "}"#,
                Err(r#"{"error":"`name` is empty: leave it out to greet the world"}"#),
            ),
            (
                r#"{"name": 1}"#,
                Err("invalid input: invalid type: integer `1`, expected a string at line 1 column 10"),
            ),
        ] {
            let expected = output.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(greet(input), expected, "{input}");
        }
    }

    #[test]
    fn it_describes_itself_as_its_manifest_does() {
        let described: serde_json::Value = serde_json::from_str(&__kami_describe()).unwrap();
        let manifest = include_str!("../tool.toml");
        for (key, field) in [
            ("id", "name"),
            ("version", "version"),
            ("description", "description"),
        ] {
            let line = format!("{key} = {}", described[field]);
            assert!(manifest.lines().any(|it| it == line), "no line `{line}`");
        }
    }
}
