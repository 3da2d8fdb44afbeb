//! The macro as tool writers use it, in a native build: one module a tool.

use kami_guest::{error_result, parse_input, text_result, to_output};
use serde_json::{Value, json};

mod documented {
    use kami_guest::kami_tool;

    kami_tool! {
        name: "dev.example.echo",
        version: "1.0.0",
        description: "Echoes back the \"input\"",
        handler: handle,
    }

    fn handle(input: &str) -> Result<String, String> {
        let args: serde_json::Value =
            serde_json::from_str(input).map_err(|e| format!("invalid JSON: {e}"))?;
        Ok(serde_json::json!({ "echo": args }).to_string())
    }
}

/// Names that a crate may give to things of its own.
mod shadowing {
    #![allow(dead_code, reason = "they are in the way, and that is all")]

    type Result = u8;
    struct String;
    struct KamiTool;

    mod handlers {
        pub(super) fn handle(
            input: &str,
        ) -> std::result::Result<std::string::String, std::string::String> {
            Err(input.to_owned())
        }
    }

    kami_guest::kami_tool! { name: "a.b", version: env!("CARGO_PKG_VERSION"), description: concat!("c", "d"), handler: handlers::handle }
}

mod by_hand {
    use kami_guest::kami_tool;

    const NAME: &str = "dev.example.by-hand";

    kami_tool! {
        name: NAME,
        version: "2.0.0",
        description: "",
        handler: |input| Ok(input.to_uppercase()),
        exports: false,
    }
}

mod said_aloud {
    kami_guest::kami_tool! {
        name: "a.b",
        version: "1.0.0",
        description: "",
        handler: |_| kami_guest::text_result("done"),
        exports: true
    }
}

#[test]
fn run_calls_the_handler() {
    let run: fn(&str) -> Result<String, String> = documented::__kami_run;
    assert_eq!(run(r#"{"a":1}"#), Ok(r#"{"echo":{"a":1}}"#.to_owned()));
    assert!(run("not json").unwrap_err().starts_with("invalid JSON: "));

    assert_eq!(shadowing::__kami_run("no"), Err("no".to_owned()));
    assert_eq!(by_hand::__kami_run("yes"), Ok("YES".to_owned()));
    assert_eq!(said_aloud::__kami_run(""), text_result("done"));
}

#[test]
fn describe_is_the_metadata_as_json() {
    for (described, name, version, description) in [
        (
            documented::__kami_describe(),
            "dev.example.echo",
            "1.0.0",
            "Echoes back the \"input\"",
        ),
        (
            shadowing::__kami_describe(),
            "a.b",
            env!("CARGO_PKG_VERSION"),
            "cd",
        ),
        (
            by_hand::__kami_describe(),
            "dev.example.by-hand",
            "2.0.0",
            "",
        ),
    ] {
        let described: Value = serde_json::from_str(&described).unwrap();
        let expected = json!({ "name": name, "version": version, "description": description });
        assert_eq!(described, expected);
    }
}

/// The guide's snippet, with its either and its or.
#[test]
fn a_handler_may_end_with_any_of_the_helpers() {
    #[derive(serde::Deserialize)]
    struct MyArgs {
        url: String,
        count: u32,
    }

    fn handler(input: &str) -> Result<String, String> {
        let args: MyArgs = parse_input(input)?;
        match args.count {
            0 => to_output(&serde_json::json!({ "result": args.url })),
            1 => text_result("Operation completed successfully"),
            _ => Err(error_result("message")),
        }
    }

    for (count, expected) in [
        (0, Ok(r#"{"result":"x"}"#)),
        (1, Ok(r#"{"text":"Operation completed successfully"}"#)),
        (2, Err(r#"{"error":"message"}"#)),
    ] {
        let got = handler(&json!({ "url": "x", "count": count }).to_string());
        assert_eq!(got.as_deref().map_err(String::as_str), expected);
    }
}
