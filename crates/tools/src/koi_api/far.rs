//! Forwards tools of the KOI contract to another server, if the operator configured one.
//!
//! This is the only place where a call leaves this server. What is sent follows from the tool's own
//! request and route (`koi_api`). The answer is passed on, including unknown fields; `conform` corrects
//! what clients would refuse.

use super::{Place, RESOLVE_PATH, Route, Verb};
use kenning_core::{Code, Error, Result};
use kenning_engine::koi::{FarAnswer, FarServer};
use kenning_text::percent;
use serde_json::{Map, Value, json};

/// A name with less confidence is treated as unknown.
const CONFIDENCE_MIN: f64 = 0.5;
/// Candidates closer than this are equally likely.
const TIE: f64 = 1e-9;

/// Sends the request of a call.
pub(crate) fn ask(
    server: &FarServer,
    tool: &str,
    routes: &[Route],
    request: Value,
) -> Result<Value> {
    let is_meant = |route: &&Route| {
        let mut fixed = route.fixed.iter();
        fixed.all(|(name, value)| request[*name] == *value)
    };
    let route = routes.iter().find(is_meant);
    let route = route.ok_or_else(|| Error::not_found("route of the KOI API for", tool))?;
    send(server, tool, route, request)
}

/// Sends a request to a route.
pub(crate) fn send(server: &FarServer, tool: &str, route: &Route, request: Value) -> Result<Value> {
    let Value::Object(mut fields) = request else {
        return Err(Error::internal("a request is not an object"));
    };
    let is_fixed = |name: &str| route.fixed.iter().any(|it| it.0 == name);
    fields.retain(|name, _| !is_fixed(name));
    check(route, &fields)?;
    let mut path = route.path.to_owned();
    if let Some(name) = route.field_in_path() {
        let named = fields.remove(name);
        let named = named.as_ref().and_then(Value::as_str).unwrap_or_default();
        let uri = FarServer::segment(&uri_of(server, tool, named)?)?;
        path = path.replace(&format!("{{{name}}}"), &uri);
    }
    if route.place == Place::Query {
        path += &query(&fields);
    }
    let body = match route.place {
        Place::Body => Value::Object(fields).to_string().into_bytes(),
        Place::Query | Place::Nowhere => Vec::new(),
    };
    let answer = match route.verb {
        Verb::Get => server.get(&path),
        Verb::Post => server.post(&path, body),
    };
    taken(tool, answer?)
}

/// Refuses a request that lacks what the route needs.
fn check(route: &Route, fields: &Map<String, Value>) -> Result<()> {
    if route.place == Place::Nowhere && route.field_in_path().is_none() {
        return Ok(());
    }
    let schema = (route.schema)();
    let required = schema["required"].as_array().into_iter().flatten();
    for field in required.filter_map(Value::as_str) {
        let needs_text = schema["properties"][field]["minLength"].is_u64()
            || route.field_in_path() == Some(field);
        let is_said = match fields.get(field) {
            None => false,
            Some(Value::String(text)) => !needs_text || !text.trim().is_empty(),
            Some(_) => true,
        };
        if !is_said {
            return Err(Error::invalid(format!("`{field}` is empty")).hint("give a value"));
        }
    }
    Ok(())
}

/// Fields as a query string; empty texts are left out.
fn query(fields: &Map<String, Value>) -> String {
    let mut query = String::new();
    for (name, value) in fields {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if !text.is_empty() {
            let sign = if query.is_empty() { '?' } else { '&' };
            let (name, text) = (percent::encoded(name, ""), percent::encoded(&text, ""));
            query += &format!("{sign}{name}={text}");
        }
    }
    query
}

/// The body of a success; otherwise the error text of the contract's clients.
fn taken(tool: &str, answer: FarAnswer) -> Result<Value> {
    if answer.is_success() {
        return Ok(answer.body);
    }
    let status = answer.status;
    let code = match status {
        401 => Code::Unauthenticated,
        403 => Code::Denied,
        404 => Code::NotFound,
        409 => Code::Conflict,
        413 => Code::TooLarge,
        429 => Code::Limited,
        504 => Code::Timeout,
        400..500 => Code::InvalidInput,
        _ => Code::Unavailable,
    };
    let said = detail(&answer.body).map(|it| format!(" — {it}"));
    let said = said.unwrap_or_default();
    let message = format!("KOI API error ({tool}): Request failed with status code {status}{said}");
    let error = Error::new(code, message);
    // A Kenning server sends a hint, too.
    let hint = answer.body.get("hint").and_then(Value::as_str);
    Err(match (code, hint) {
        (Code::Unauthenticated | Code::Denied, _) => {
            error.hint("set KOI_API_TOKEN to a token of the server that KOI_API_ENDPOINT names")
        }
        (_, Some(hint)) => error.hint(hint.chars().take(500).collect::<String>()),
        (_, None) => error,
    })
}

/// The error text in a body: the API's `detail`, or that of a Kenning server's own layer.
fn detail(body: &Value) -> Option<String> {
    let shown = |it: &Value| {
        it.as_str()
            .map_or_else(|| it.to_string(), ToOwned::to_owned)
    };
    let own = || body.get("error")?.get("message");
    let said = body.get("detail").or_else(own).or(Some(body));
    let said = said.filter(|it| !it.is_null()).map(shown);
    said.map(|it| it.chars().take(2_000).collect::<String>())
        .filter(|it| !it.is_empty())
}

/// The URI of a name on that server. A URI that the server only proposes does not count.
fn uri_of(server: &FarServer, tool: &str, name: &str) -> Result<String> {
    let name = name.trim();
    if name.starts_with("orn:") {
        return Ok(name.to_owned());
    }
    let asked = json!({ "label": name }).to_string();
    let found = taken(tool, server.post(RESOLVE_PATH, asked.into_bytes())?)?;
    let unresolved = || {
        let message = format!("Could not resolve \"{name}\" to a known entity");
        let warning = found["warnings"][0].as_str();
        let hint = warning.unwrap_or("`koi_search` finds entities by any words");
        Error::new(Code::NotFound, message).hint(hint.chars().take(500).collect::<String>())
    };
    if found["is_new"] == true {
        return Err(unresolved());
    }
    let sure = |n: usize| found["candidates"][n]["confidence"].as_f64();
    let first = sure(0).filter(|it| *it >= CONFIDENCE_MIN);
    let is_tie = |first: &f64| sure(1).is_some_and(|second| first - second < TIE);
    let uri = found["candidates"][0]["uri"].as_str();
    match (first.filter(|it| !is_tie(it)), uri) {
        (Some(_), Some(uri)) => Ok(uri.to_owned()),
        _ => Err(unresolved()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_server_is_told_with_what_it_says() {
        for (status, body, expected) in [
            (
                503,
                json!({ "detail": "LLM enrichment not configured." }),
                "KOI API error (process_url): Request failed with status code 503 — LLM enrichment not configured.",
            ),
            (
                422,
                json!({ "detail": [{ "type": "missing" }] }),
                "KOI API error (process_url): Request failed with status code 422 — [{\"type\":\"missing\"}]",
            ),
            (
                500,
                json!("Internal Server Error"),
                "KOI API error (process_url): Request failed with status code 500 — Internal Server Error",
            ),
            (
                404,
                json!(""),
                "KOI API error (process_url): Request failed with status code 404",
            ),
            (
                413,
                json!({ "error": { "message": "too much" } }),
                "KOI API error (process_url): Request failed with status code 413 — too much",
            ),
        ] {
            let error = taken("process_url", FarAnswer { status, body }).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
