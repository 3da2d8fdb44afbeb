//! A server at a URL that the operator configured.

use super::{Answer, Connection, PROTOCOL, Ready, answer_to, converse, request};
use crate::policy::McpServer;
use kenning_core::{Code, Error, Result};
use kenning_egress::{Egress, Grant, Limits, Method, Policy, Request, Response};
use serde_json::{Value, json};

pub(super) fn over_http(ready: &Ready<'_>, server: &McpServer, url: &str) -> Result<Answer> {
    let headers = server.headers.iter();
    let headers = headers
        .map(|header| (header.0.clone(), header.1.clone()))
        .collect();
    let egress = Egress::new(Policy {
        // The operator configured this URL, wherever it leads.
        grants: vec![Grant::parse(url)?],
        limits: Limits {
            total_timeout: ready.timeout(),
            ..Limits::default()
        },
        ..Policy::default()
    });
    talk(ready, egress, url, headers)
}

/// A URL that the tool names and may reach.
pub(super) fn over_own_http(ready: &Ready<'_>, url: &str) -> Result<Answer> {
    let given = ready.config.get("headers").and_then(Value::as_object);
    let headers = given.into_iter().flatten();
    let headers =
        headers.filter_map(|header| Some((header.0.clone(), header.1.as_str()?.to_owned())));
    let egress = super::super::request::egress(ready, ready.timeout());
    talk(ready, egress, url, headers.collect())
}

fn talk(
    ready: &Ready<'_>,
    egress: Egress,
    url: &str,
    headers: Vec<(String, String)>,
) -> Result<Answer> {
    let mut line = Http {
        ready,
        egress,
        url,
        headers,
        session: None,
    };
    let answer = converse(ready, &mut line);
    line.close();
    answer
}

struct Http<'a> {
    ready: &'a Ready<'a>,
    egress: Egress,
    url: &'a str,
    headers: Vec<(String, String)>,
    session: Option<String>,
}

impl Http<'_> {
    fn send(&self, method: Method, body: Option<&Value>) -> Result<Response> {
        self.ready.caller.check()?;
        let mut headers = self.headers.clone();
        let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        add("accept", "application/json, text/event-stream");
        if body.is_some() {
            add("content-type", "application/json");
        }
        if let Some(session) = &self.session {
            add("mcp-session-id", session);
            add("mcp-protocol-version", PROTOCOL);
        }
        self.egress.fetch(Request {
            method,
            url: self.url.to_owned(),
            headers,
            body: body
                .map(|it| it.to_string().into_bytes())
                .unwrap_or_default(),
            redirect_is_answer: true,
            ..Request::default()
        })
    }

    /// Tells the server that its session can end.
    fn close(&self) {
        if self.session.is_some()
            && let Err(error) = self.send(Method::Delete, None)
        {
            tracing::debug!("an MCP session could not be closed: {error}");
        }
    }
}

impl Connection for Http<'_> {
    fn ask(&mut self, id: u64, method: &str, params: Value) -> Result<Answer> {
        let response = self.send(Method::Post, Some(&request(id, method, &params)))?;
        if let Some(session) = response.header("mcp-session-id") {
            self.session = Some(session.to_owned());
        }
        let text = String::from_utf8_lossy(&response.body);
        let messages = messages(&text);
        let answer = messages.iter().find_map(|it| answer_to(id, it));
        answer.ok_or_else(|| {
            let status = response.status;
            Error::new(
                Code::Unavailable,
                format!("the MCP server did not answer `{method}`: HTTP status {status}"),
            )
            .hint("check its `url` and `headers` in the policy")
        })
    }

    fn tell(&mut self, method: &str) -> Result<()> {
        let message = json!({ "jsonrpc": "2.0", "method": method });
        self.send(Method::Post, Some(&message)).map(drop)
    }
}

/// A body is one message, or a stream of events with one message each.
fn messages(body: &str) -> Vec<Value> {
    if let Ok(message) = serde_json::from_str(body) {
        return vec![message];
    }
    let body = body.replace("\r\n", "\n");
    let events = body.split("\n\n");
    let data = events.map(|event| {
        let lines = event.lines().filter_map(|it| it.strip_prefix("data:"));
        lines.collect::<Vec<_>>().join("\n")
    });
    data.filter_map(|it| serde_json::from_str(&it).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_alone_or_among_events() {
        for (body, n) in [
            ("{\"id\": 1}", 1),
            ("event: message\ndata: {\"id\": 1}\n\n", 1),
            (
                "data: {\"id\":\r\ndata: 1}\r\n\r\ndata: {\"id\": 2}\r\n\r\n",
                2,
            ),
            (": nothing\n\ndata: word\n\n", 0),
            ("", 0),
        ] {
            assert_eq!(messages(body).len(), n, "{body:?}");
        }
    }
}
