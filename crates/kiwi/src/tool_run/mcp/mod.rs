//! A tool of another MCP server: one that the operator configured, or one that the tool names itself,
//! as a program in a jail or at a URL through `egress`. A server that the tool names has the tool's
//! permissions.
//!
//! A call consists of three messages (`initialize`, `initialized`, `tools/call`), and the server is
//! stopped after it. So this client implements those three and no more, and it is synchronous.

mod http;
mod stdio;

use super::{Ran, Ready, parsed};
use crate::ItemResult;
use crate::Kiwi;
use crate::policy::{McpServer, POLICY_FILE};
use kenning_core::{Error, Result};
use serde_json::{Value, json};

/// The protocol version that we propose.
const PROTOCOL: &str = "2025-06-18";
/// The JSON-RPC code for an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;

/// A connection to a server.
trait Connection {
    /// Sends a request and waits for its response.
    fn ask(&mut self, id: u64, method: &str, params: Value) -> Result<Answer>;
    /// Sends a notification.
    fn tell(&mut self, method: &str) -> Result<()>;
}

/// The response of a server: a result, or its own error with a code.
type Answer = std::result::Result<Value, (i64, String)>;

impl Kiwi {
    pub(super) fn check_mcp(&self, ready: &Ready<'_>) -> ItemResult<()> {
        match server(ready)? {
            Server::Named(_, McpServer { command, .. }) => {
                if let Some(command) = command {
                    self.jail()?;
                    super::runtime::find(ready.policy, command)?;
                }
            }
            Server::OwnProgram => self.check_process(ready)?,
            Server::OwnAddress(url) => super::request::require_reachable(ready, url)?,
        }
        Ok(())
    }

    pub(super) fn run_mcp(&self, ready: &Ready<'_>) -> ItemResult<Ran> {
        let (name, talked) = match server(ready)? {
            Server::Named(name, server) => {
                let talked = match (&server.command, &server.url) {
                    (Some(command), _) => self.over_stdio(ready, server, command),
                    (None, Some(url)) => http::over_http(ready, server, url),
                    (None, None) => Err(Error::invalid(format!(
                        "`mcp.{name}` has neither `command` nor `url`"
                    ))
                    .hint(format!("add one in `{POLICY_FILE}` of the data directory"))),
                };
                (name, talked)
            }
            Server::OwnProgram => {
                let command = ready.text("command").unwrap_or_default();
                (command, self.over_own_stdio(ready))
            }
            Server::OwnAddress(url) => {
                super::request::require_reachable(ready, url)?;
                (url, http::over_own_http(ready, url))
            }
        };
        Ok(ran(ready, name, talked?))
    }
}

/// The server that a tool calls.
enum Server<'a> {
    /// One that the operator configured, with its name.
    Named(&'a str, &'a McpServer),
    /// A program that the tool names: it may access what the tool may access.
    OwnProgram,
    /// A URL that the tool names and may reach.
    OwnAddress(&'a str),
}

fn server<'a>(ready: &'a Ready<'_>) -> Result<Server<'a>> {
    let Some(name) = ready.text("server") else {
        return Ok(match ready.text("url") {
            Some(url) => Server::OwnAddress(url),
            None => Server::OwnProgram,
        });
    };
    if let Some(run) = ready.run
        && !run.grants.may("mcp", name)
    {
        return Err(Error::denied(format!(
            "The directive '{}' does not let tools call the MCP server `{name}`",
            run.directive
        ))
        .hint(format!(
            "a person decides: they add `mcp: [{name}]` to its `permissions` and sign it with `kenning kiwi sign directive {}`",
            run.directive
        )));
    }
    let server = ready.policy.mcp.get(name).ok_or_else(|| {
        Error::new(
            kenning_core::Code::NotFound,
            format!("no MCP server `{name}` is configured"),
        )
        .hint(format!(
            "add `[mcp.{name}]` with `command` or `url` to `{POLICY_FILE}` of the data directory"
        ))
    })?;
    Ok(Server::Named(name, server))
}

/// The exchange of messages.
fn converse(ready: &Ready<'_>, connection: &mut dyn Connection) -> Result<Answer> {
    let hello = json!({
        "protocolVersion": PROTOCOL, "capabilities": {},
        "clientInfo": { "name": "kenning", "version": env!("CARGO_PKG_VERSION") },
    });
    match connection.ask(1, "initialize", hello)? {
        Ok(_) => connection.tell("notifications/initialized")?,
        // Newer servers need no `initialize`.
        Err((METHOD_NOT_FOUND, _)) => {}
        Err(refused) => return Ok(Err(refused)),
    }
    let tool = ready.text("tool").unwrap_or_default();
    let call = json!({ "name": tool, "arguments": ready.inputs });
    connection.ask(2, "tools/call", call)
}

fn ran(ready: &Ready<'_>, server: &str, answer: Answer) -> Ran {
    let id = &ready.plan.tool.id;
    let (data, result, error) = match answer {
        Err((code, message)) => {
            let data = json!({ "error": { "code": code, "message": message } });
            let error = format!("Tool '{id}': the MCP server `{server}` answered: {message}");
            (data, Value::Null, Some(error))
        }
        Ok(answer) => {
            let text = text_of(&answer);
            let is_error = answer.get("isError") == Some(&Value::Bool(true));
            let error = is_error.then(|| format!("Tool '{id}' failed: {text}"));
            let result = match answer.get("structuredContent") {
                Some(value) if !value.is_null() => value.clone(),
                _ => parsed(&text),
            };
            (answer, result, error)
        }
    };
    Ran {
        data,
        result,
        error,
        ..Ran::nothing()
    }
}

/// The texts of an answer's content.
fn text_of(answer: &Value) -> String {
    let content = answer.get("content").and_then(Value::as_array);
    let texts: Vec<&str> = content
        .into_iter()
        .flatten()
        .filter_map(|it| it.get("text")?.as_str())
        .collect();
    texts.join("\n")
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// The response to a request, if a message is one.
fn answer_to(id: u64, message: &Value) -> Option<Answer> {
    if message.get("id").and_then(Value::as_u64) != Some(id) || message.get("method").is_some() {
        return None;
    }
    if let Some(error) = message.get("error") {
        let code = error["code"].as_i64().unwrap_or(0);
        let text = error["message"]
            .as_str()
            .unwrap_or("an error without a message");
        return Some(Err((code, text.to_owned())));
    }
    message.get("result").map(|it| Ok(it.clone()))
}
