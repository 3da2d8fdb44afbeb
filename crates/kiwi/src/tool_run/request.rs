//! A tool that is a request: through `egress`, to hosts that it requests and the operator allows.
//!
//! A redirect is returned and not followed: its target was not granted.

use super::{Ran, Ready, parsed};
use crate::ItemResult;
use crate::Kiwi;
use crate::policy::POLICY_FILE;
use kenning_core::{Code, Error, Result};
use kenning_egress::{Egress, Grant, Limits, Method, Policy, Request, Response};
use kenning_text::percent;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// At most this many events of a stream are returned.
const EVENTS_MAX: usize = 10_000;
/// How often a wait between two attempts checks whether the call was cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Kiwi {
    /// The request as it would be sent, if it is allowed.
    pub(super) fn check_request(&self, ready: &Ready<'_>) -> ItemResult<Request> {
        let request = request(ready)?;
        require_reachable(ready, &request.url)?;
        Ok(request)
    }

    pub(super) fn run_request(&self, ready: &Ready<'_>) -> ItemResult<Ran> {
        let request = self.check_request(ready)?;
        let tries = ready
            .config
            .get("retry")
            .and_then(|it| it.get("max_attempts"));
        let tries = tries.and_then(Value::as_u64).unwrap_or(1).max(1);
        let until = Instant::now() + ready.timeout();
        let mut n_tried = 0;
        let response = loop {
            n_tried += 1;
            let left = until.saturating_duration_since(Instant::now());
            let answer = egress(ready, left).fetch(request.clone());
            let again = match &answer {
                Ok(it) => it.status == 429 || it.status >= 500,
                Err(error) => matches!(error.code, Code::Unavailable | Code::Timeout),
            };
            let pause = Duration::from_secs(1 << n_tried.min(10));
            if !again || n_tried >= tries || Instant::now() + pause >= until {
                break answer?;
            }
            wait(ready, pause)?;
        };
        Ok(ran(ready, response, n_tried))
    }
}

/// Refuses an address that the tool does not request or the operator does not allow.
pub(super) fn require_reachable(ready: &Ready<'_>, url: &str) -> Result<()> {
    let (host, port) = kenning_egress::host_of(url)?;
    if ready.permitted.reaches(&host, port) {
        return Ok(());
    }
    let shown = format!("{host}:{port}");
    Err(Error::denied(format!(
            "Tool '{}' may not reach `{shown}`",
            ready.plan.tool.id
        ))
        .hint(format!(
            "the operator decides: add `permissions: {{net: [\"{shown}\"]}}` to the tool and `net = [\"{shown}\"]` to `[ceiling]` in `{POLICY_FILE}` of the data directory"
        ))
        )
}

/// An egress client that reaches local networks only where the operator named them.
pub(super) fn egress(ready: &Ready<'_>, timeout: Duration) -> Egress {
    let named = ready.permitted.net.1.iter().filter(|it| !it.contains('*'));
    Egress::new(Policy {
        grants: named.filter_map(|it| Grant::parse(it).ok()).collect(),
        limits: Limits {
            total_timeout: timeout,
            ..Limits::default()
        },
        ..Policy::default()
    })
}

fn wait(ready: &Ready<'_>, pause: Duration) -> Result<()> {
    let until = Instant::now() + pause;
    while Instant::now() < until {
        ready.caller.check()?;
        std::thread::sleep(LOOK_EVERY.min(until.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

fn request(ready: &Ready<'_>) -> Result<Request> {
    let inputs = ready.inputs;
    let method = match ready.text("method").unwrap_or("GET") {
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        _ => Method::Get,
    };
    let url = address(ready.text("url").unwrap_or_default(), inputs)?;
    let mut headers: Vec<(String, String)> = Vec::new();
    let given = ready.config.get("headers").and_then(Value::as_object);
    for (name, value) in given.into_iter().flatten() {
        let value = filled_text(value.as_str().unwrap_or_default(), inputs, str::to_owned);
        headers.push((name.clone(), value));
    }
    headers.extend(credential(ready)?);
    let takes_body = matches!(method, Method::Post | Method::Put | Method::Patch);
    let body = ready.config.get("body").filter(|it| !it.is_null());
    let body = match body {
        Some(_) if !takes_body => {
            return Err(
                Error::invalid("`config.body`: only POST, PUT and PATCH have one")
                    .hint("change `config.method`, or leave it out"),
            );
        }
        None => Vec::new(),
        Some(body) => match filled(body, inputs) {
            Value::String(text) => text.into_bytes(),
            value => {
                let is_said = headers
                    .iter()
                    .any(|it| it.0.eq_ignore_ascii_case("content-type"));
                if !is_said {
                    headers.push(("content-type".into(), "application/json".into()));
                }
                value.to_string().into_bytes()
            }
        },
    };
    Ok(Request {
        method,
        url,
        headers,
        body,
        redirect_is_answer: true,
        ..Request::default()
    })
}

/// The credential to send.
fn credential(ready: &Ready<'_>) -> Result<Option<(String, String)>> {
    let Some(auth) = ready.config.get("auth").and_then(Value::as_object) else {
        return Ok(None);
    };
    let text = |names: &[&str]| {
        let mut found = names.iter().filter_map(|it| auth.get(*it)?.as_str());
        found.next().map(str::to_owned)
    };
    let is_bearer = auth.get("type").and_then(Value::as_str) == Some("bearer");
    let names: [&str; 2] = if is_bearer {
        ["token", "key"]
    } else {
        ["key", "token"]
    };
    let secret = text(&names).ok_or_else(|| {
        Error::invalid(format!("`config.auth.{}` is missing", names[0]))
            .hint("write `${NAME}` and declare that variable in `env`")
    })?;
    Ok(Some(if is_bearer {
        ("authorization".to_owned(), format!("Bearer {secret}"))
    } else {
        let header = text(&["header"]).unwrap_or_else(|| "x-api-key".to_owned());
        (header, secret)
    }))
}

/// A URL with its `{name}` filled in and escaped.
fn address(template: &str, inputs: &Map<String, Value>) -> Result<String> {
    let url = filled_text(template, inputs, |it| percent::encoded(it, ""));
    match url.find('{') {
        None => Ok(url),
        Some(start) => {
            let rest: String = url[start..].chars().take(40).collect();
            let name = rest.split('}').next().unwrap_or_default();
            Err(
                Error::invalid(format!("`config.url`: `{name}}}` has no value"))
                    .hint("give an input of that name"),
            )
        }
    }
}

/// A value with its `{name}` filled in; a text that is only a placeholder becomes the input itself.
fn filled(value: &Value, inputs: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => {
            let name = text.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
            match name.and_then(|it| inputs.get(it)) {
                Some(input) => input.clone(),
                None => filled_text(text, inputs, str::to_owned).into(),
            }
        }
        Value::Array(items) => items.iter().map(|it| filled(it, inputs)).collect(),
        Value::Object(fields) => {
            let filled = fields
                .iter()
                .map(|field| (field.0.clone(), filled(field.1, inputs)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

/// Fills in placeholders that have a value, once, from the left.
fn filled_text(text: &str, inputs: &Map<String, Value>, form: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        let inner = &rest[start + 1..];
        let found = inner.find('}').and_then(|end| {
            let value = inputs.get(&inner[..end])?;
            Some((value, &inner[end + 1..]))
        });
        match found {
            Some((value, after)) => {
                let text = match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                out.push_str(&form(&text));
                rest = after;
            }
            None => {
                out.push('{');
                rest = inner;
            }
        }
    }
    out.push_str(rest);
    out
}

fn ran(ready: &Ready<'_>, response: Response, n_tried: u64) -> Ran {
    let status = response.status;
    let text = String::from_utf8_lossy(&response.body).into_owned();
    let headers: Map<String, Value> = response
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    let is_stream = ready.text("mode") == Some("stream");
    let result = if is_stream {
        let events = text.lines().filter_map(|it| it.strip_prefix("data:"));
        events.take(EVENTS_MAX).map(parsed).collect()
    } else {
        parsed(&text)
    };
    let is_good = (200..400).contains(&status);
    let id = &ready.plan.tool.id;
    Ran {
        data: json!({ "status_code": status, "headers": headers, "body": result }),
        result,
        error: (!is_good).then(|| format!("Tool '{id}' was answered with HTTP status {status}")),
        usage: json!({ "attempts": n_tried, "body_bytes": response.body.len() }),
        is_truncated: false,
        warnings: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> Map<String, Value> {
        let all = json!({ "id": "a/b?c=d#e {x}", "n": 5, "list": [1, 2], "x": "y" });
        all.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn what_is_filled_into_an_address_stays_one_part() {
        let url = address("https://h.example/{id}/{n}?q={x}", &inputs()).unwrap();
        assert_eq!(url, "https://h.example/a%2Fb%3Fc%3Dd%23e%20%7Bx%7D/5?q=y");
        let error = address("https://h.example/{gone}", &inputs()).unwrap_err();
        assert!(error.message.contains("{gone}"), "{error}");
    }

    #[test]
    fn a_body_keeps_types_and_foreign_braces() {
        for (body, expected) in [
            (json!("{n}"), json!(5)),
            (json!("{list}"), json!([1, 2])),
            (json!("n={n}"), json!("n=5")),
            (
                json!("query { user(id: {n}) { name } }"),
                json!("query { user(id: 5) { name } }"),
            ),
            (
                json!({ "a": ["{x}", 1, null] }),
                json!({ "a": ["y", 1, null] }),
            ),
            (json!("{gone} {"), json!("{gone} {")),
        ] {
            assert_eq!(filled(&body, &inputs()), expected, "{body}");
        }
    }
}
