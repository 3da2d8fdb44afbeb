//! The built-in links: four primitives that run something, and three runtimes.

use super::{Children, Link};
use kenning_text::hex;
use kenning_text::json::{self, Spelling};
use serde_json::{Map, Value, json};
use std::fmt;

/// A primitive: what finally runs something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// A process in a jail.
    Subprocess,
    /// An HTTP request, checked by `egress`.
    HttpClient,
    /// A component in the sandbox.
    Wasm,
    /// A tool of another MCP server.
    Mcp,
}

impl Primitive {
    /// Every primitive.
    pub const ALL: [Self; 4] = [Self::Subprocess, Self::HttpClient, Self::Wasm, Self::Mcp];

    /// Its id.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Subprocess => "subprocess",
            Self::HttpClient => "http_client",
            Self::Wasm => "wasm",
            Self::Mcp => "mcp",
        }
    }

    /// The primitive of this id.
    pub fn of(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.id() == id)
    }

    /// The schema of its configuration.
    pub fn config_schema(self) -> Value {
        match self {
            Self::Subprocess => subprocess_schema(),
            Self::HttpClient => http_schema(),
            Self::Wasm => wasm_schema(),
            Self::Mcp => mcp_schema(),
        }
    }

    fn config(self) -> Value {
        match self {
            Self::Subprocess => json!({"timeout": 300, "capture_output": true}),
            Self::HttpClient => {
                json!({"method": "GET", "timeout": 30, "retry": {"max_attempts": 1}})
            }
            Self::Wasm | Self::Mcp => json!({}),
        }
    }
}

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// Runtimes: the id, the program, and the arguments before the script.
const RUNTIMES: &[(&str, &str, &[&str])] = &[
    ("python_runtime", "python3", &["-u"]),
    ("bash_runtime", "bash", &["-e", "-o", "pipefail"]),
    ("node_runtime", "node", &[]),
];
const VERSION: &str = "1.0.0";

/// Every id that is built in.
pub fn ids() -> impl Iterator<Item = &'static str> {
    let primitives = Primitive::ALL.into_iter().map(Primitive::id);
    primitives.chain(RUNTIMES.iter().map(|it| it.0))
}

/// The built-in link of this id.
pub fn link(id: &str) -> Option<Link> {
    if let Some(primitive) = Primitive::of(id) {
        let schema = Some(primitive.config_schema());
        return Some(built_in(id, "primitive", None, primitive.config(), schema));
    }
    let (_, command, args) = RUNTIMES.iter().find(|it| it.0 == id)?;
    let config = json!({"command": command, "args": args});
    Some(built_in(id, "runtime", Some("subprocess"), config, None))
}

fn built_in(
    id: &str,
    tool_type: &str,
    executor_id: Option<&str>,
    config: Value,
    config_schema: Option<Value>,
) -> Link {
    let as_child = json!({
        "tool_id": id,
        "version": VERSION,
        "tool_type": tool_type,
        "executor_id": executor_id,
        "config": config,
        "manifest": {},
    });
    // The hash stands for this program's own behavior, and changes with it.
    let form = json!({"link": as_child, "config_schema": config_schema});
    let integrity = hex::sha256(json::canonical(&form, Spelling::Ascii).as_bytes());
    let config = match config {
        Value::Object(config) => config,
        _ => Map::new(),
    };
    Link {
        tool_id: id.to_owned(),
        version: VERSION.to_owned(),
        tool_type: tool_type.to_owned(),
        executor_id: executor_id.map(str::to_owned),
        config,
        config_schema,
        children: Children::Any,
        as_child,
        integrity,
    }
}

fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

fn text_map() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn subprocess_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": {"type": "string", "minLength": 1},
            "args": texts(),
            "env": text_map(),
            "cwd": {"type": "string"},
            "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 86400},
            "capture_output": {"type": "boolean"},
            "input_data": {"type": "string"},
        },
        "required": ["command"],
    })
}

fn http_schema() -> Value {
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    json!({
        "type": "object",
        "properties": {
            "method": {"enum": methods},
            "url": {"type": "string", "minLength": 1},
            "headers": text_map(),
            "body": true,
            "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 86400},
            "retry": {
                "type": "object",
                "properties": {
                    "max_attempts": {"type": "integer", "minimum": 1, "maximum": 10},
                    "backoff": {"enum": ["exponential"]},
                },
            },
            "auth": {
                "type": "object",
                "properties": {
                    "type": {"enum": ["bearer", "api_key"]},
                    "token": {"type": "string"},
                    "key": {"type": "string"},
                    "header": {"type": "string"},
                },
                "required": ["type"],
            },
            "mode": {"enum": ["sync", "stream"]},
        },
        "required": ["url"],
    })
}

fn wasm_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "tool": {"type": "string", "minLength": 1},
            "wasm": {"type": "string", "minLength": 1},
        },
        "oneOf": [{"required": ["tool"]}, {"required": ["wasm"]}],
    })
}

fn mcp_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "server": {"type": "string", "minLength": 1},
            "command": {"type": "string", "minLength": 1},
            "args": texts(),
            "env": text_map(),
            "url": {"type": "string", "minLength": 1},
            "headers": text_map(),
            "tool": {"type": "string", "minLength": 1},
            "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 86400},
        },
        "required": ["tool"],
        "oneOf": [{"required": ["server"]}, {"required": ["command"]}, {"required": ["url"]}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_link_is_whole_and_ends_in_a_primitive() {
        let mut n = 0;
        for id in ids() {
            let link = link(id).unwrap();
            assert_eq!(link.tool_id, id);
            if let Some(schema) = &link.config_schema {
                assert_eq!(crate::schema::check(schema), Ok(()), "{id}");
            }
            let last = link.executor_id.as_deref().unwrap_or(id);
            assert!(Primitive::of(last).is_some(), "{id}");
            n += 1;
        }
        assert_eq!(n, 7);
        assert_eq!(link("ruby_runtime"), None);
    }
}
