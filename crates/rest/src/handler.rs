//! What handlers share: who asks, what they were sent, and how they do their work.

use crate::answer;
use crate::refusals::Refusals;
use crate::tail::Tail;
use axum::body::Body;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Response, header};
use http_body_util::BodyExt;
use kenning_core::Error;
use kenning_engine::{Caller, Principal, Waited};
use kenning_tools::Board;
use kenning_tools::slots::{self, Load};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::sync::oneshot;

/// The places of those who are served.
#[derive(Clone)]
pub(crate) struct Slots {
    pub(crate) calls: Arc<slots::Slots>,
    pub(crate) tail: Tail,
    pub(crate) refusals: Arc<Refusals>,
}

/// What every handler can ask for.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) board: Board,
    pub(crate) slots: Slots,
}

impl FromRef<Shared> for Board {
    fn from_ref(shared: &Shared) -> Self {
        shared.board.clone()
    }
}

impl FromRef<Shared> for Slots {
    fn from_ref(shared: &Shared) -> Self {
        shared.slots.clone()
    }
}

/// The same with something of one part's own. Each part says how its handlers get it, so that what all share
/// knows no part.
#[derive(Clone)]
pub(crate) struct With<T> {
    pub(crate) shared: Shared,
    pub(crate) own: T,
}

impl<T> FromRef<With<T>> for Board {
    fn from_ref(state: &With<T>) -> Self {
        state.shared.board.clone()
    }
}

impl<T> FromRef<With<T>> for Slots {
    fn from_ref(state: &With<T>) -> Self {
        state.shared.slots.clone()
    }
}

/// The caller, with the time that it has waited: the layer around every route knows both.
pub(crate) struct Asker(pub(crate) Caller);

impl<S: Sync> FromRequestParts<S> for Asker {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response<Body>> {
        let who = parts.extensions.get::<Principal>().cloned();
        let waited = parts.extensions.get::<Waited>().copied();
        // A route outside the layer would answer anybody.
        let who =
            who.ok_or_else(|| answer::error(&Error::internal("the request has no caller")))?;
        let mut caller = Caller::new(who).after(waited.unwrap_or_default());
        // Callers here are programs, not models.
        caller.answer_chars_max = None;
        Ok(Self(caller))
    }
}

/// A query knows only text; where the schema wants something else, it is read as JSON.
pub(crate) fn arguments_of_query(
    query: Vec<(String, String)>,
    schema: &Value,
) -> Result<Value, Error> {
    let mut arguments = Map::new();
    for (field, text) in query {
        if arguments.contains_key(&field) {
            return Err(Error::invalid(format!("`{field}` stands twice")));
        }
        let kind = &schema["properties"][&field]["type"];
        let wants_text = kind.to_string().contains("string");
        let value = (!wants_text).then(|| serde_json::from_str(&text).ok());
        let value = value.flatten().unwrap_or(Value::String(text));
        arguments.insert(field, value);
    }
    Ok(Value::Object(arguments))
}

/// Reads the body. A form that a web page could send without asking is not JSON and is refused.
pub(crate) async fn arguments(headers: &HeaderMap, body: Body) -> Result<Value, Error> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|it| it.to_str().ok())
        .unwrap_or_default();
    let kind = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    // Too large or too slow is told by the layer.
    let bytes = body
        .collect()
        .await
        .map_err(|cause| Error::invalid("the request body could not be read").because(cause))?;
    let bytes = bytes.to_bytes();
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    if kind != "application/json" {
        return Err(Error::invalid(format!("the content type is `{kind}`"))
            .hint("send `Content-Type: application/json`"));
    }
    serde_json::from_slice(&bytes)
        .map_err(|cause| Error::invalid(format!("the body is not JSON: {cause}")))
}

/// Told when its owner goes away, as a handler does when the client closes the connection.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does the work on a thread that may wait, and tells it when nobody waits for it any more.
pub(crate) async fn attended<T: Send + 'static>(
    slots: &Slots,
    caller: Caller,
    work: impl FnOnce(&Caller) -> T + Send + 'static,
) -> Result<T, Error> {
    attended_as(Load::Works, slots, caller, work).await
}

/// The same for work that may mostly wait.
pub(crate) async fn attended_as<T: Send + 'static>(
    load: Load,
    slots: &Slots,
    mut caller: Caller,
    work: impl FnOnce(&Caller) -> T + Send + 'static,
) -> Result<T, Error> {
    let before = Instant::now();
    let (tell, told) = oneshot::channel();
    let admitted = move |slot| {
        // Who went away meanwhile leaves the slot to the next.
        drop(tell.send(slot));
    };
    slots
        .calls
        .enter(&caller.principal, load, Box::new(admitted))?;
    let slot = told.await.map_err(|_| slots::sent_away())?;
    caller.waited.0 += before.elapsed();
    let _cancel = CancelOnDrop(caller.cancelled.clone());
    // The slot is free only when the work has ended: work that nobody waits for still takes its place.
    let done = tokio::task::spawn_blocking(move || slot.run(|| work(&caller)));
    done.await
        .map_err(|cause| Error::internal("a call").because(cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::Space;
    use serde_json::json;
    use std::sync::mpsc;
    use std::time::Duration;

    fn slots() -> Slots {
        Slots {
            calls: Arc::default(),
            tail: Tail::silent(),
            refusals: Arc::default(),
        }
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_hears_of_it_and_keeps_its_slot_until_it_stops() {
        let slots = slots();
        let (began, has_begun) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let (heard, hears) = mpsc::channel();
        let work = move |caller: &Caller| {
            began.send(caller.check().is_ok()).unwrap();
            ended.recv().unwrap();
            heard.send(caller.check().is_err()).unwrap();
        };
        let caller = Caller::new(Principal::owner(Space::default()));
        let call = attended(&slots, caller, work);
        let call = tokio::time::timeout(Duration::from_millis(50), call);
        assert!(call.await.is_err(), "the client goes away");
        assert!(has_begun.recv().unwrap());
        assert_eq!(slots.calls.n_running(), 1);
        end.send(()).unwrap();
        assert!(hears.recv().unwrap(), "the work is told");
        while slots.calls.n_running() > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn a_query_is_read_as_the_schema_says() {
        let schema = json!({ "properties": { "path": { "type": "string" },
            "limit": { "type": ["integer", "null"] }, "tags": { "type": "array" } } });
        let check = |query: &[(&str, &str)], expected: Option<Value>| {
            let query = query
                .iter()
                .map(|it| (it.0.to_owned(), it.1.to_owned()))
                .collect();
            assert_eq!(arguments_of_query(query, &schema).ok(), expected);
        };
        check(
            &[("path", "7"), ("limit", "7"), ("tags", "[1]")],
            Some(json!({ "path": "7", "limit": 7, "tags": [1] })),
        );
        check(&[("limit", "x")], Some(json!({ "limit": "x" })));
        check(&[("path", "a"), ("path", "b")], None);
    }
}
