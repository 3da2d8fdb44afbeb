//! The smallest tool: it answers with what it was given.

use kami_guest::kami_tool;

kami_tool! {
    name: "dev.example.echo",
    version: "1.0.0",
    description: "Echoes back the input with metadata",
    handler: handle,
}

fn handle(input: &str) -> Result<String, String> {
    let arguments: serde_json::Value =
        serde_json::from_str(input).map_err(|err| format!("invalid JSON: {err}"))?;
    let response = serde_json::json!({
        "echo": arguments,
        "tool": "dev.example.echo"
    });
    Ok(response.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_goes_out() {
        for input in [r#"{"message":"hello"}"#, "{}", r#"[1,"ü",null]"#] {
            let output = handle(input).unwrap();
            assert_eq!(
                output,
                format!(r#"{{"echo":{input},"tool":"dev.example.echo"}}"#)
            );
        }
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for input in ["not json", "", "{"] {
            let refused = handle(input).unwrap_err();
            assert!(refused.starts_with("invalid JSON: "), "{input}: {refused}");
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
