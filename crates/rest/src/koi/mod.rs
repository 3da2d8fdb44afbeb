//! The KOI API: the routes that clients of the original call, with its bodies, statuses and errors.
//!
//! A route is declared beside the tool that it belongs to, and says what it takes, whose permission it needs and
//! what answers it; [`table`] gathers them. Here a request is matched with its row, read, permitted and answered, from here or, when the
//! operator named another KOI server, from there. Errors are `{"detail": …}`; what the layer around every
//! route refuses keeps the form that it has everywhere.

pub(crate) mod description;
mod descriptions;
mod facts;
mod federated;
mod fields;
mod statements;
mod table;

use crate::handler::{Asker, Shared, Slots, With, attended_as};
use crate::{answer, body};
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRef, Query, Request, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, header};
use axum::routing::any;
use fields::{Kind, Problems};
use http_body_util::BodyExt;
use kenning_core::{Code, Error};
use kenning_engine::koi::{FORWARDED, FarServer};
use kenning_engine::{Caller, Scope};
use kenning_text::percent::{self, Stray};
use kenning_tools::koi::Refusal;
use kenning_tools::koi::api::{Route, Verb};
use kenning_tools::slots::Load;
use kenning_tools::{AnyTool, Board, Selection, TOOLS, Toolset, hide_internal};
use serde_json::{Map, Value, json};
use table::{Entry, LOOK, Takes};

/// The route that servers of other contracts have too.
const HEALTH: &str = "/health";

/// The tools behind the routes.
#[derive(Clone)]
pub(crate) struct Koi {
    board: Board,
}

impl Koi {
    /// The KOI tools that the operator did not exclude. A preset that lists fewer tools for a model
    /// removes no route.
    pub(crate) fn of(board: &Board) -> Self {
        let chosen = board.selection();
        if !(chosen.has(Toolset::Koi) || chosen.reaches_others()) {
            return Self {
                board: board.clone(),
            };
        }
        let selection = Selection {
            toolsets: vec![Toolset::Koi.as_str().to_owned()],
            ..chosen.clone()
        };
        // Every name in it was accepted before.
        let own = Board::new(board.engine().clone(), selection);
        Self {
            board: own.unwrap_or_else(|_| board.clone()),
        }
    }

    /// The tool of a route. A tool that `--read-only` hides is available for calls that only read.
    fn tool(&self, name: &str, arguments: &Value) -> Option<&'static dyn AnyTool> {
        let chosen = self.board.selection();
        let only_looks = |it: &&&'static dyn AnyTool| {
            let is_excluded = chosen.exclude_tools.iter().any(|it| it == name);
            it.name() == name && !is_excluded && it.scope(arguments) == Scope::Read
        };
        let is_hidden = chosen.read_only && self.board.find(LOOK).is_some();
        let hidden = || TOOLS.iter().find(only_looks).copied();
        let hidden = || hidden().filter(|_| is_hidden);
        self.board.find(name).or_else(hidden)
    }

    /// Whether `/health` belongs to this API: only if its tools are served.
    pub(crate) fn has_health(&self) -> bool {
        self.board.find(LOOK).is_some()
    }

    fn refuse_read_only(&self) -> Result<(), Refusal> {
        if self.board.selection().read_only {
            return Err(Error::denied("this call changes data")
                .hint("this server was started with `--read-only`")
                .into());
        }
        Ok(())
    }

    /// Whether the caller may do what the route's tool does.
    fn permit(&self, route: &Route, caller: &Caller) -> Result<(), Refusal> {
        let fixed = Value::Object(route.fixed_fields());
        let Some(tool) = self.tool(route.tool, &fixed) else {
            self.refuse_read_only()?;
            return Err(nothing());
        };
        caller.principal.require(tool.scope(&fixed))?;
        Ok(caller.check()?)
    }
}

impl FromRef<With<Koi>> for Koi {
    fn from_ref(state: &With<Self>) -> Self {
        state.own.clone()
    }
}

/// The routes. All lead to one handler, which uses the table: URIs contain slashes, which a router's
/// pattern does not allow in the middle of a path. `/health` is left to others where these tools are not served.
pub(crate) fn routes(shared: Shared, koi: Koi) -> Router {
    let with_health = koi.has_health();
    let mut router = Router::new();
    let mut known: Vec<&str> = Vec::new();
    for Entry { route, .. } in table::routes() {
        if route.path == HEALTH && !with_health {
            continue;
        }
        // `/entity/{uri}` and `/entity/{uri}/mentioned-in` are one pattern.
        let pattern = match route.path.find('{') {
            Some(at) => table::family(&route.path[..at]),
            None => route.path,
        };
        if !known.contains(&pattern) {
            known.push(pattern);
            router = router.route(pattern, any(handle));
        }
    }
    router.with_state(With { shared, own: koi })
}

/// Whether an unknown path belongs to this API.
pub(crate) fn is_ours(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next();
    let of = |it: &Entry| it.route.path.trim_start_matches('/').split('/').next() == first;
    first.is_some_and(|it| it != "health") && table::routes().iter().any(of)
}

/// The response for an unknown path.
pub(crate) fn not_found() -> Response<Body> {
    refused(&nothing())
}

fn nothing() -> Refusal {
    Refusal::new(404, Error::new(Code::NotFound, "Not Found"))
}

async fn handle(
    State(koi): State<Koi>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    request: Request,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    // Whoever has no token learns who this node is, and nothing else.
    if crate::federation::is_visit(&parts.method, &parts.uri) && caller.principal.scopes.is_empty()
    {
        return crate::federation::health(State(koi.board.clone())).await;
    }
    let (entry, in_path) = match found(&parts.method, &path) {
        Ok(it) => it,
        Err(refusal) => {
            body::drain(body).await;
            return refused(&refusal);
        }
    };
    // The layer responds to bodies that are too large or too slow.
    let Ok(bytes) = body.collect().await else {
        return refused(&Error::invalid("the request body could not be read").into());
    };
    let bytes = bytes.to_bytes();
    let asked = Asked {
        entry,
        in_path,
        query: Query::try_from_uri(&parts.uri).map_or_else(|_| Vec::new(), |it| it.0),
        is_json: is_json(&parts.headers),
        is_forwarded: parts.headers.contains_key(FORWARDED),
        body: bytes.to_vec(),
    };
    let work = move |caller: &Caller| {
        koi.board
            .engine()
            .clone()
            .with_wait_limit(caller.waited, || respond(&koi, caller, asked))
    };
    match attended_as(Load::of_tool(entry.route.tool), &slots, caller, work).await {
        Ok(response) => response,
        Err(error) => refused(&error.into()),
    }
}

/// A request whose route is known.
struct Asked {
    entry: &'static Entry,
    in_path: Map<String, Value>,
    query: Vec<(String, String)>,
    is_json: bool,
    is_forwarded: bool,
    body: Vec<u8>,
}

/// The row of a path, and the values in the path.
fn found(method: &Method, path: &str) -> Result<(&'static Entry, Map<String, Value>), Refusal> {
    let path = decoded(path).ok_or_else(nothing)?;
    let here: Vec<_> = table::routes()
        .iter()
        .filter_map(|entry| Some((entry, table::matched(entry.route.path, &path)?)))
        .collect();
    if here.is_empty() {
        return Err(nothing());
    }
    // A literal path is not the name of an entity; the longest pattern is the most exact.
    let is_exact = here.iter().any(|it| it.1.is_empty());
    let longest = here.iter().map(|it| it.0.route.path.len()).max();
    let fits = |it: &&(&Entry, Map<String, Value>)| {
        if is_exact {
            it.1.is_empty()
        } else {
            Some(it.0.route.path.len()) == longest
        }
    };
    let verb = match *method {
        Method::GET | Method::HEAD => Some(Verb::Get),
        Method::POST => Some(Verb::Post),
        _ => None,
    };
    let mut here = here.iter().filter(fits);
    let found = here.find(|it| Some(it.0.route.verb) == verb);
    let found = found.map(|it| (it.0, it.1.clone()));
    found.ok_or_else(|| {
        let error = Error::invalid("Method Not Allowed");
        Refusal::new(405, error)
    })
}

/// A path, percent-decoded.
fn decoded(path: &str) -> Option<String> {
    percent::decoded(path, Stray::Keep)
}

/// A body without a type is taken for JSON, as by the original; but not from a browser, where a page
/// can send such a body to any server without a preflight.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else {
        return !is_browser(headers);
    };
    let kind = kind.to_str().unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

fn is_browser(headers: &HeaderMap) -> bool {
    let is_told = |it: &header::HeaderName| it.as_str().starts_with("sec-fetch-");
    headers.contains_key(header::ORIGIN) || headers.keys().any(is_told)
}

/// Why a request is refused.
enum Denial {
    /// The request is refused.
    Refusal(Refusal),
    /// The request cannot be read.
    Problems(Problems),
}

impl<T: Into<Refusal>> From<T> for Denial {
    fn from(refusal: T) -> Self {
        Self::Refusal(refusal.into())
    }
}

/// The answer, from here or from the configured server.
fn respond(koi: &Koi, caller: &Caller, asked: Asked) -> Response<Body> {
    let answered = match koi.board.engine().koi().far_server(&caller.principal.space) {
        Err(error) => Err(error.into()),
        Ok(None) => answered(koi, caller, asked),
        Ok(Some(server)) => forwarded(koi, &server, caller, asked),
    };
    match answered {
        Ok(response) => response,
        Err(Denial::Refusal(refusal)) => refused(&refusal),
        Err(Denial::Problems(problems)) => {
            let list = json!({ "detail": problems.0 });
            answer::json(StatusCode::UNPROCESSABLE_ENTITY, &list)
        }
    }
}

/// The other server's answer, unchanged. The caller needs the same permission as for an answer of
/// ours, because the operator's token is sent there; and the path is built anew, not copied from the
/// request.
fn forwarded(
    koi: &Koi,
    server: &FarServer,
    caller: &Caller,
    asked: Asked,
) -> Result<Response<Body>, Denial> {
    koi.permit(asked.entry.route, caller)?;
    if asked.is_forwarded {
        let error = Error::unavailable("KOI_API_ENDPOINT here names a server that asks this one")
            .hint("unset it on the server that has the data");
        return Err(Refusal::new(508, error).into());
    }
    let target = far_target(&asked)?;
    let answer = match asked.entry.route.verb {
        Verb::Get => server.get(&target),
        Verb::Post => server.post(&target, far_body(koi, caller, &asked)?),
    };
    let answer = answer.map_err(|error| match error.code {
        Code::Unavailable => Refusal::new(502, error),
        _ => error.into(),
    })?;
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY);
    Ok(answer::json(status, &answer.body))
}

/// The route's path on the other server, built from the parsed request.
fn far_target(asked: &Asked) -> Result<String, Refusal> {
    let mut target = asked.entry.route.path.to_owned();
    for (name, value) in &asked.in_path {
        let value = FarServer::segment(value.as_str().unwrap_or_default());
        // No entity has such a name.
        let value = value.map_err(|_| nothing())?;
        target = target.replace(&format!("{{{name}}}"), &value);
    }
    let query = asked.query.iter().map(|(name, value)| {
        let (name, value) = (percent::encoded(name, ""), percent::encoded(value, ""));
        format!("{name}={value}")
    });
    let query = query.collect::<Vec<_>>().join("&");
    Ok(match query.is_empty() {
        true => target,
        false => format!("{target}?{query}"),
    })
}

/// The body for the other server. What would be written there must be permitted here.
fn far_body(koi: &Koi, caller: &Caller, asked: &Asked) -> Result<Vec<u8>, Denial> {
    let Takes::Body(kind) = &asked.entry.takes else {
        return Ok(Vec::new());
    };
    if !asked.is_json && !asked.body.is_empty() {
        // No fields, there as here.
        let text = String::from_utf8_lossy(&asked.body);
        let text: String = text.chars().take(1_000).collect();
        return Ok(Value::String(text).to_string().into_bytes());
    }
    if !asked.entry.may_ingest() {
        return Ok(asked.body.clone());
    }
    let mut request = read_body(kind, &asked.body, true)?.map_err(Denial::Problems)?;
    let ingests = request["auto_ingest"] == true;
    if ingests {
        caller.principal.require(Scope::Write)?;
        koi.refuse_read_only()?;
    }
    // Older servers ingest unless told not to.
    request["auto_ingest"] = ingests.into();
    Ok(request.to_string().into_bytes())
}

fn answered(koi: &Koi, caller: &Caller, asked: Asked) -> Result<Response<Body>, Denial> {
    let route = asked.entry.route;
    // A caller without permission is not told what is wrong with the request.
    koi.permit(route, caller)?;
    let read = match &asked.entry.takes {
        Takes::Nothing => Ok(Value::Object(Map::new())),
        Takes::Query(fields) => fields::read_query(fields, asked.query),
        Takes::Body(kind) => read_body(kind, &asked.body, asked.is_json)?,
    };
    let mut request = read.map_err(Denial::Problems)?;
    if let Value::Object(fields) = &mut request {
        fields.extend(asked.in_path);
        fields.extend(route.fixed_fields());
    }
    let value = (route.answer)(koi.board.engine(), caller, request)?;
    Ok(answer::json(StatusCode::OK, &value))
}

/// The body, parsed for its route.
fn read_body(kind: &Kind, body: &[u8], is_json: bool) -> Result<Result<Value, Problems>, Refusal> {
    if body.is_empty() {
        return Ok(Err(Problems::no_body()));
    }
    let Ok(text) = std::str::from_utf8(body) else {
        let error = Error::invalid("There was an error parsing the body");
        return Err(Refusal::new(400, error));
    };
    let value = if is_json {
        match serde_json::from_str(text) {
            Ok(value) => value,
            Err(cause) => {
                let before = text.lines().take(cause.line().saturating_sub(1));
                let before: usize = before.map(|it| it.len() + 1).sum();
                let at = before + cause.column().saturating_sub(1);
                return Ok(Err(Problems::not_json(at, &cause.to_string())));
            }
        }
    } else {
        // A form that a page could send without a preflight: a text, and no fields.
        Value::String(text.chars().take(1_000).collect())
    };
    Ok(fields::read(kind, value, &["body".into()]))
}

/// The response for a refusal.
fn refused(refusal: &Refusal) -> Response<Body> {
    let error = &refusal.error;
    // Replaces an internal error by a number, under which the log has the details.
    let hidden = (error.code == Code::Internal).then(|| hide_internal(error, "a KOI request"));
    let error = hidden.as_ref().unwrap_or(error);
    let mut body = json!({ "detail": error.message });
    if let Some(hint) = &error.hint {
        body["hint"] = hint.as_str().into();
    }
    let status = StatusCode::from_u16(refusal.status);
    answer::json(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_its_route_whatever_is_in_the_uri() {
        for (method, path, route, uri) in [
            (Method::GET, "/entity/resolve", "/entity/resolve", None),
            (
                Method::GET,
                "/entity/orn%3Aa",
                "/entity/{entity_uri}",
                Some("orn:a"),
            ),
            (
                Method::GET,
                "/entity/orn:a/b",
                "/entity/{entity_uri}",
                Some("orn:a/b"),
            ),
            (
                Method::GET,
                "/entity/a%2Fb%20%C3%A9",
                "/entity/{entity_uri}",
                Some("a/b é"),
            ),
            (
                Method::GET,
                "/entity/orn:a/b/mentioned-in",
                "/entity/{entity_uri}/mentioned-in",
                Some("orn:a/b"),
            ),
            (
                Method::HEAD,
                "/relationships/x%",
                "/relationships/{entity_uri}",
                Some("x%"),
            ),
        ] {
            let (found, said) = found(&method, path).ok().unwrap();
            assert_eq!(found.route.path, route, "{path}");
            assert_eq!(
                said.get("entity_uri").and_then(Value::as_str),
                uri,
                "{path}"
            );
        }
        for (method, path, status) in [
            (Method::GET, "/entity/", 404),
            (Method::GET, "/entity/%FF", 404),
            (Method::GET, "/nowhere", 404),
            (Method::POST, "/entity/orn:a", 405),
            (Method::DELETE, "/search", 405),
        ] {
            let refusal = found(&method, path).err().unwrap();
            assert_eq!(refusal.status, status, "{path}");
        }
    }

    #[test]
    fn every_route_is_of_a_tool_and_no_two_are_the_same() {
        let mut seen = std::collections::HashSet::new();
        for Entry { route, .. } in table::routes() {
            assert!(
                seen.insert((route.verb == Verb::Get, route.path)),
                "{}",
                route.path
            );
            let tool = kenning_tools::TOOLS
                .iter()
                .find(|it| it.name() == route.tool);
            assert!(tool.is_some(), "{}: {}", route.path, route.tool);
        }
    }
}
