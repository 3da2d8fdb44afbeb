//! The log as server-sent events.

use crate::answer;
use crate::guard::Pass;
use crate::handler::Slots;
use crate::server::Terms;
use crate::tail::Tail;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, HeaderValue, Response, header};
use kenning_core::{Code, Error, Result};
use kenning_engine::omi::{EventType, MemoryEvent};
use kenning_engine::{Caller, Engine, EventView, Principal, Scope, Waited};
use kenning_tools::Board;
use kenning_tools::slots::Stream;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// A line is sent at least this often, so that a dead connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The same in the memory contract.
const KEEP_ALIVE_MEMORY: Duration = Duration::from_secs(30);
/// Events that are read at once.
const BATCH: usize = 100;
/// The most types that a client asks for.
const TYPES_MAX: usize = 100;
/// So many digits of an event's id stand beside its place.
const ID_DIGITS: usize = 16;
/// At most this many clients read the log at once.
const READING_MAX: usize = 8;

/// `GET /events`: everything after `Last-Event-ID` (or `?after=`), then new events. Without either
/// only new events. `?event_type=` names some types, as `kg_audit_query` does.
pub(crate) async fn events(
    State(board): State<Board>,
    State(slots): State<Slots>,
    (Extension(who), Extension(waited)): (Extension<Principal>, Extension<Waited>),
    Extension(pass): Extension<Pass>,
    terms: Option<Extension<Terms>>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
    headers: HeaderMap,
) -> Response<Body> {
    let query = query.map(|it| it.0).unwrap_or_default();
    let types = query.iter().filter(|it| it.0 == "event_type");
    let types = types.flat_map(|it| it.1.split(',')).map(str::trim);
    let types: Vec<String> = types
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect();
    if types.len() > TYPES_MAX {
        let error = Error::invalid(format!("`event_type` names more than {TYPES_MAX} types"));
        return answer::error(&error.hint("leave it out to get all"));
    }
    let reader = Reader {
        engine: board.engine().clone(),
        who,
        pass,
        shape: Shape::Log,
        types: types.into(),
    };
    let asked = asked(&query, &headers);
    let followed = follow(slots, reader, terms.map(|it| it.0), asked, waited);
    followed.await.unwrap_or_else(|error| answer::error(&error))
}

pub(crate) async fn follow(
    slots: Slots,
    reader: Reader,
    terms: Option<Terms>,
    asked: Result<Option<Seen>>,
    waited: Waited,
) -> Result<Response<Body>> {
    reader.who.require(Scope::Read)?;
    let permit = slots.calls.stream(&reader.who)?;
    let (seq, generation) = reader.start(asked?, waited).await?;
    stream(Follower {
        reader,
        tail: slots.tail,
        seq,
        generation,
        spoke: Instant::now(),
        terms,
        _permit: permit,
    })
}

/// The format of events.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// As they are in the log.
    Log,
    /// As in the memory contract, of one kind or of all.
    Memory(Option<&'static EventType>),
}

impl Shape {
    /// The first line, so that a client knows that it is connected.
    fn hello(self, seq: u64) -> String {
        match self {
            Self::Log => "retry: 1000\n\n".to_owned(),
            Self::Memory(wanted) => {
                let wanted = wanted.map(|it| it.name);
                let hello = json!({ "type": "connected", "event_type": wanted, "after": seq });
                format!("retry: 1000\ndata: {hello}\n\n")
            }
        }
    }

    /// The keep-alive interval and line.
    fn keep_alive(self) -> (Duration, &'static [u8]) {
        match self {
            Self::Log => (KEEP_ALIVE, b": alive\n\n"),
            Self::Memory(_) => (KEEP_ALIVE_MEMORY, b": keepalive\n\n"),
        }
    }
}

/// The last event that a client has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    seq: u64,
    /// The first digits of its id. After a restore or a failover another event can have the same place.
    id: Option<String>,
}

impl Seen {
    /// Reads `SEQ` or `SEQ-ID`.
    fn parse(text: &str) -> Option<Self> {
        let (seq, id) = match text.split_once('-') {
            Some((seq, id)) => (seq, Some(id)),
            None => (text, None),
        };
        let is_id = |it: &str| {
            let is_digit = |it: u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
            it.len() == ID_DIGITS && it.bytes().all(is_digit)
        };
        if id.is_some_and(|it| !is_id(it)) {
            return None;
        }
        Some(Self {
            seq: seq.parse().ok()?,
            id: id.map(str::to_owned),
        })
    }
}

/// What a client gives back when it reconnects: the place and the first digits of the id.
pub(crate) fn cursor(seq: u64, id: &str) -> String {
    format!("{seq}-{}", id.get(..ID_DIGITS).unwrap_or(id))
}

/// Where to begin. A client that reconnects uses its first URL and gives its position in the header,
/// so the header counts.
pub(crate) fn asked(query: &[(String, String)], headers: &HeaderMap) -> Result<Option<Seen>> {
    let header = headers.get("last-event-id").map(HeaderValue::as_bytes);
    let header = header.map(String::from_utf8_lossy);
    // A client that has not seen any event sends an empty header.
    let header = header.as_deref().map(str::trim).filter(|it| !it.is_empty());
    let after = query.iter().find(|(name, _)| name == "after");
    let Some(text) = header.or(after.map(|it| it.1.as_str())) else {
        return Ok(None);
    };
    let seen = Seen::parse(text).ok_or_else(|| {
        let text: String = text.chars().take(100).collect();
        Error::invalid(format!("`after`: `{text}` is not a place in the log"))
            .hint("give the `id` of the last event you have, its number, or 0")
    })?;
    Ok(Some(seen))
}

/// Reads the log for one caller, as long as it is permitted.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) engine: Arc<Engine>,
    pub(crate) who: Principal,
    pub(crate) pass: Pass,
    pub(crate) shape: Shape,
    /// Only events of these types of the log; empty for all.
    pub(crate) types: Arc<[String]>,
}

impl Reader {
    /// The place after which to begin, and the log's generation.
    async fn start(&self, asked: Option<Seen>, waited: Waited) -> Result<(u64, u64)> {
        let reader = self.clone();
        let caller = Caller::new(self.who.clone()).after(waited);
        blocking(move || {
            let engine = &reader.engine;
            let generation = engine.log_generation(&caller)?;
            let end = engine.roots(&caller)?.seq;
            let Some(Seen { seq, id }) = asked else {
                return Ok((end, generation));
            };
            // Another log, or a restored one: continuing silently would hide a gap.
            if seq > end {
                return Err(Error::invalid(format!(
                    "`after`: `{seq}` is beyond the end of the log, `{end}`"
                ))
                .hint("begin again with 0"));
            }
            if let Some(id) = id {
                let before = seq.checked_sub(1);
                let there = before.map(|it| engine.events_after(&caller, it, 1));
                let there = there.transpose()?.unwrap_or_default();
                let is_same = |it: &EventView| {
                    let there = it.json["id"].as_str();
                    it.seq == seq && there.is_some_and(|it| it.starts_with(&id))
                };
                if !there.first().is_some_and(is_same) {
                    return Err(Error::invalid(format!(
                        "`after`: `{seq}-{id}` is not an event of this log: the log was restored to an \
                         earlier state, or is another one"
                    ))
                    .hint("begin again with 0"));
                }
            }
            Ok((seq, generation))
        })
        .await
    }

    /// The events after a place as frames, and the place that they reach.
    async fn after(&self, seq: u64, generation: u64) -> Result<(u64, String)> {
        let reader = self.clone();
        blocking(move || {
            let engine = &reader.engine;
            let caller = Caller::new(reader.who);
            if engine.log_generation(&caller)? != generation {
                return Err(Error::conflict(
                    "the log is no longer the one that was followed",
                ));
            }
            let told = match reader.shape {
                Shape::Log => {
                    let found = engine.events_of_types_after(&caller, seq, BATCH, &reader.types)?;
                    (found.0, found.1.iter().map(frame).collect())
                }
                Shape::Memory(wanted) => {
                    let found = engine
                        .omi()
                        .memory_events_after(&caller, seq, BATCH, wanted)?;
                    (found.seq, found.events.iter().map(memory_frame).collect())
                }
            };
            // A token may be revoked or expire while its owner listens. It is looked up after the log
            // was read: events after the revocation are never sent.
            if let Some(token) = &reader.pass.0 {
                engine.authenticate(token)?.require(Scope::Read)?;
            }
            Ok(told)
        })
        .await
    }
}

struct Follower {
    reader: Reader,
    tail: Tail,
    seq: u64,
    generation: u64,
    spoke: Instant,
    terms: Option<Terms>,
    _permit: Stream,
}

impl Follower {
    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.reader.after(self.seq, self.generation).await {
                Ok((seq, frames)) if !frames.is_empty() => {
                    self.seq = seq;
                    self.spoke = Instant::now();
                    return Some(frames.into());
                }
                // None of the requested events was among them; the next may be.
                Ok((seq, _)) if seq > self.seq => {
                    self.seq = seq;
                    continue;
                }
                // After a failover or a restore the client reconnects and is told where the log ends.
                Err(error)
                    if matches!(
                        error.code,
                        Code::Unauthenticated | Code::Denied | Code::Conflict
                    ) =>
                {
                    return None;
                }
                // If the store does not respond right now, it is asked again; the client only waits.
                Err(error) => tracing::debug!("the log cannot be followed right now: {error}"),
                Ok(_) => {}
            }
            let (often, alive) = self.reader.shape.keep_alive();
            if self.spoke.elapsed() >= often {
                self.spoke = Instant::now();
                return Some(Bytes::from_static(alive));
            }
            match &mut self.terms {
                // The client reconnects to the next server and gives its position.
                Some(terms) => tokio::select! {
                    () = terms.stopped() => return None,
                    () = self.tail.wait() => {}
                },
                None => self.tail.wait().await,
            }
        }
    }
}

fn stream(follower: Follower) -> Result<Response<Body>> {
    let hello = Bytes::from(follower.reader.shape.hello(follower.seq));
    let first = futures::stream::iter([Ok::<_, Infallible>(hello)]);
    let rest = futures::stream::unfold(follower, async |mut it| {
        let bytes = it.next().await?;
        Some((Ok(bytes), it))
    });
    let stream = futures::StreamExt::chain(first, rest);
    Response::builder()
        .header(header::CONTENT_TYPE, "text/event-stream")
        .body(Body::from_stream(stream))
        .map_err(|cause| Error::internal("an event stream").because(cause))
}

fn frame(event: &EventView) -> String {
    let kind = event.json["kind"].as_str().unwrap_or("event");
    // A peer chose the word, and a line break in it would forge a frame.
    let kind: String = kind.chars().filter(|it| !it.is_control()).collect();
    let id = cursor(event.seq, event.json["id"].as_str().unwrap_or_default());
    format!("id: {id}\nevent: {kind}\ndata: {}\n\n", event.json)
}

/// Without an event name, so that a page receives it as a message.
fn memory_frame(event: &MemoryEvent) -> String {
    let id = cursor(event.seq, &event.id.to_string());
    format!("id: {id}\ndata: {}\n\n", event.json)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    // All clients read at once when something happens; they are not urgent, and leave threads to
    // others.
    static READING: Semaphore = Semaphore::const_new(READING_MAX);
    let permit = READING.acquire().await;
    let done = tokio::task::spawn_blocking(work).await;
    drop(permit);
    done.map_err(|cause| Error::internal("reading the log").because(cause))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_counts_more_than_the_address() {
        let check = |after: Option<&str>, header: Option<&str>, expected: Option<Option<&str>>| {
            let query: Vec<_> = after
                .map(|it| ("after".to_owned(), it.to_owned()))
                .into_iter()
                .collect();
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert("last-event-id", header.parse().unwrap());
            }
            let expected = expected.map(|it| it.map(|it| Seen::parse(it).unwrap()));
            assert_eq!(
                asked(&query, &headers).ok(),
                expected,
                "{after:?} {header:?}"
            );
        };
        check(None, None, Some(None));
        check(Some("0"), None, Some(Some("0")));
        check(Some("0"), Some("7"), Some(Some("7")));
        check(Some("5"), Some(""), Some(Some("5")));
        check(Some("5"), Some("x"), None);
        check(Some("-1"), None, None);
        let with_id = "7-0123456789abcdef";
        check(Some("0"), Some(with_id), Some(Some(with_id)));
        check(Some("7-0123456789abcde"), None, None);
        check(Some("7-0123456789ABCDEF"), None, None);
        check(Some("7-0123456789abcdef0"), None, None);
        check(Some("7-"), None, None);
        check(Some("-0123456789abcdef"), None, None);
    }

    #[test]
    fn a_kind_cannot_break_out_of_its_line() {
        let id = "f".repeat(64);
        let json = json!({ "id": id, "kind": "a\n\ndata: b", "data": "x\ny" });
        let frame = frame(&EventView { seq: 3, json });
        assert!(
            frame.starts_with("id: 3-ffffffffffffffff\nevent: adata: b\ndata: {"),
            "{frame}"
        );
        assert_eq!(frame.matches('\n').count(), 4, "{frame}");
    }
}
