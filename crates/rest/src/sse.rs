//! The log as server-sent events.

use crate::answer;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, Response, header};
use kenning_core::{Error, Result};
use kenning_engine::{Caller, EventView, Principal, Scope};
use kenning_tools::Board;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How often the log is asked for more. Other processes write it too, so asking is the way.
const POLL: Duration = Duration::from_millis(200);
/// A line is sent at least so often, so that a dead connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Events that are read at once.
const BATCH: usize = 100;
/// Followers at once.
const FOLLOWERS_MAX: usize = 64;

static FOLLOWERS: Semaphore = Semaphore::const_new(FOLLOWERS_MAX);

/// `GET /events`: everything after `Last-Event-ID` (or `?after=`), then what comes. Without either it
/// begins with what comes.
pub(crate) async fn events(
    State(board): State<Board>,
    Extension(who): Extension<Principal>,
    Query(query): Query<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Response<Body> {
    match follow(board, who, &query, &headers).await {
        Ok(response) => response,
        Err(error) => answer::error(&error),
    }
}

async fn follow(
    board: Board,
    who: Principal,
    query: &[(String, String)],
    headers: &HeaderMap,
) -> Result<Response<Body>> {
    who.require(Scope::Read)?;
    let permit = FOLLOWERS
        .try_acquire()
        .map_err(|_| Error::limited(format!("{FOLLOWERS_MAX} followers are connected already")))?;
    let header = headers.get("last-event-id").and_then(|it| it.to_str().ok());
    let asked = query
        .iter()
        .find(|(name, _)| name == "after")
        .map(|it| it.1.as_str())
        .or(header);
    let start = match asked {
        Some(text) => text.trim().parse().map_err(|_| {
            Error::invalid(format!("`after`: `{text}` is not a place in the log"))
                .hint("give the number of the last event you have, or 0")
        })?,
        None => {
            let (board, who) = (board.clone(), who.clone());
            read(move || board.engine().roots(&Caller::new(who)))
                .await?
                .seq
        }
    };
    let board = Arc::new(board);
    let state = (start, Instant::now(), permit);
    let stream = futures::stream::unfold(state, move |(mut seq, mut last, permit)| {
        let (board, who) = (board.clone(), who.clone());
        async move {
            loop {
                let (reader, who) = (board.clone(), who.clone());
                let found =
                    read(move || reader.engine().events_after(&Caller::new(who), seq, BATCH)).await;
                match found {
                    Ok(events) if !events.is_empty() => {
                        seq = events.last().map_or(seq, |it| it.seq);
                        let text: String = events.iter().map(frame).collect();
                        let item = Ok::<_, Infallible>(Bytes::from(text));
                        return Some((item, (seq, Instant::now(), permit)));
                    }
                    // A store that does not answer right now is asked again; the client only waits.
                    Ok(_) | Err(_) if last.elapsed() >= KEEP_ALIVE => {
                        last = Instant::now();
                        return Some((Ok(Bytes::from_static(b": alive\n\n")), (seq, last, permit)));
                    }
                    Ok(_) | Err(_) => tokio::time::sleep(POLL).await,
                }
            }
        }
    });
    let response = Response::builder()
        .header(header::CONTENT_TYPE, "text/event-stream")
        .header(header::CACHE_CONTROL, "no-store")
        .body(Body::from_stream(stream));
    response.map_err(|cause| Error::internal("an event stream").because(cause))
}

fn frame(event: &EventView) -> String {
    let kind = event.json["kind"].as_str().unwrap_or("event");
    format!("id: {}\nevent: {kind}\ndata: {}\n\n", event.seq, event.json)
}

async fn read<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|cause| Error::internal("reading the log").because(cause))?
}
