//! The tools of the KOI contract that another server answers, when the operator named one.
//!
//! This is the one place where a call leaves for there: the board asks before it runs a tool. What the server
//! says is passed on, fields that we do not know included; `conform` puts right what clients would refuse.

use super::limit::{Limit, wanted, within};
use crate::Toolset;
use kenning_core::{Code, Error, Result, Space};
use kenning_engine::{Engine, FarAnswer, FarServer};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A name that means something less surely means nothing known.
const CONFIDENCE_MIN: f64 = 0.5;
/// Two that are nearer to each other than this are as likely.
const TIE: f64 = 1e-9;

/// The server that answers a tool, if the operator named one and the tool is one of the API's.
pub(crate) fn server(
    engine: &Engine,
    space: &Space,
    toolset: Toolset,
    tool: &str,
) -> Result<Option<Arc<FarServer>>> {
    if toolset != Toolset::Koi || tool.starts_with("vault_") {
        return Ok(None);
    }
    engine.far_server(space)
}

/// What it says to a call whose arguments were checked.
pub(crate) fn ask(server: &FarServer, tool: &str, arguments: &Value) -> Result<Value> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let given = |names: &[&str]| -> Map<String, Value> {
        let fields = names.iter().filter_map(|name| {
            let value = arguments.get(*name).filter(|it| !it.is_null())?;
            Some(((*name).to_owned(), value.clone()))
        });
        fields.collect()
    };
    let post = |path: &str, body: Value| server.post(path, body.to_string().into_bytes());
    let limit = || {
        let limit = arguments.get("limit").cloned().unwrap_or_default();
        let limit: Option<Limit> = serde_json::from_value(limit).unwrap_or_default();
        within(wanted(limit))
    };
    let repo = || {
        let name = text("repo_name").filter(|it| !it.is_empty());
        let name = name.map(|it| format!("?repo_name={}", FarServer::escaped(it)));
        name.unwrap_or_default()
    };
    let answered = match tool {
        "resolve_entity" => {
            check("label", text("label"))?;
            post("/entity/resolve", given(&["label", "type_hint"]).into())
        }
        "get_entity_neighborhood" => {
            let uri = uri_of(server, tool, text("entity_uri"))?;
            server.get(&format!("/relationships/{}", FarServer::segment(&uri)?))
        }
        "get_entity_documents" => {
            let uri = uri_of(server, tool, text("entity_uri"))?;
            server.get(&format!(
                "/entity/{}/mentioned-in",
                FarServer::segment(&uri)?
            ))
        }
        "koi_search" => {
            let query = check("query", text("query"))?;
            let kind = text("type_filter").filter(|it| !it.is_empty());
            let kind = kind.map(|it| format!("&type_filter={}", FarServer::escaped(it)));
            let (query, limit, kind) =
                (FarServer::escaped(query), limit(), kind.unwrap_or_default());
            server.get(&format!("/entity-search?query={query}&limit={limit}{kind}"))
        }
        "knowledge_search" => {
            check("query", text("query"))?;
            let mut body = given(&["query", "source"]);
            body.insert("limit".to_owned(), limit().into());
            let chunks = arguments.get("include_chunks").and_then(Value::as_bool);
            body.insert("include_chunks".to_owned(), chunks.unwrap_or(true).into());
            post("/search", body.into())
        }
        "preview_url" => {
            let mut body = given(&["url", "submitted_by", "submitted_via"]);
            body.entry("submitted_via").or_insert_with(|| "api".into());
            post("/web/preview", body.into())
        }
        "process_url" => {
            // Older servers ingest what they process unless they are told not to.
            let mut body = given(&["url", "hint_entities"]);
            body.insert("auto_ingest".to_owned(), false.into());
            post("/web/process", body.into())
        }
        "ingest_url" => {
            let body = given(&["url", "entities", "relationships", "merge"]);
            post("/web/ingest", body.into())
        }
        "monitor_url" => match text("action").unwrap_or("status") {
            action @ ("add" | "remove") => {
                check("url", text("url"))?;
                let path = format!("/web/monitor/{action}");
                post(&path, given(&["url", "title"]).into())
            }
            "status" => server.get("/web/monitor/status"),
            other => return Err(unknown_action(other, "`add`, `remove` or `status`")),
        },
        "github_scan" => match text("action").unwrap_or("status") {
            "scan" => server.post(&format!("/github/scan{}", repo()), Vec::new()),
            "status" => server.get(&format!("/github/status{}", repo())),
            other => return Err(unknown_action(other, "`scan` or `status`")),
        },
        "code_query" => post("/code/query", given(&["cypher"]).into()),
        "federation_status" => server.get("/koi-net/health"),
        other => return Err(Error::not_found("route of the KOI API for", other)),
    };
    taken(tool, answered?)
}

/// Registers a repository there, and says what became of it.
pub(crate) fn register_repository(
    server: &FarServer,
    request: &super::github_repos::Request,
) -> Result<Value> {
    let body = serde_json::to_vec(request)
        .map_err(|cause| Error::internal("a request is not JSON").because(cause))?;
    taken("add_repo", server.post("/github/repos", body)?)
}

/// Unregisters a repository there, and says what became of it.
pub(crate) fn unregister_repository(
    server: &FarServer,
    request: &super::github_repos::Removal,
) -> Result<Value> {
    let body = serde_json::to_vec(request)
        .map_err(|cause| Error::internal("a request is not JSON").because(cause))?;
    taken("remove_repo", server.post("/github/repos/remove", body)?)
}

/// The body of a success; else what the contract's clients say of an error.
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
    // A Kenning says what to do about it, too.
    let hint = answer.body.get("hint").and_then(Value::as_str);
    Err(match (code, hint) {
        (Code::Unauthenticated | Code::Denied, _) => {
            error.hint("set KOI_API_TOKEN to a token of the server that KOI_API_ENDPOINT names")
        }
        (_, Some(hint)) => error.hint(hint.chars().take(500).collect::<String>()),
        (_, None) => error,
    })
}

/// What a body says is wrong: the API's `detail`, or what the layer around a Kenning says.
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

/// The URI that a name has there. What the server would only make up is nobody.
fn uri_of(server: &FarServer, tool: &str, name: Option<&str>) -> Result<String> {
    let name = check("entity_uri", name)?;
    if name.starts_with("orn:") {
        return Ok(name.to_owned());
    }
    let body = json!({ "label": name }).to_string().into_bytes();
    let found = taken(tool, server.post("/entity/resolve", body)?)?;
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

fn check<'a>(field: &str, text: Option<&'a str>) -> Result<&'a str> {
    let text = text.map(str::trim).filter(|it| !it.is_empty());
    text.ok_or_else(|| Error::invalid(format!("`{field}` is empty")).hint("say what is meant"))
}

fn unknown_action(action: &str, known: &str) -> Error {
    Error::invalid(format!("`action`: `{action}` is not known")).hint(format!("use {known}"))
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
