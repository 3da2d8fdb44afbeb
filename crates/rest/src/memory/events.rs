//! The log as the memory contract shows it, as server-sent events.

use super::{Memory, refused};
use crate::guard::Pass;
use crate::handler::Slots;
use crate::server::Terms;
use crate::sse::{self, Reader, Shape};
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, Response};
use kenning_core::Result;
use kenning_engine::omi::EventType;
use kenning_engine::{Principal, Waited};
use std::sync::Arc;

/// `GET /api/v1/events`: the same log, as the memory contract sees it. `?event_type=` names one kind.
pub(super) async fn follow(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    (Extension(who), Extension(waited)): (Extension<Principal>, Extension<Waited>),
    Extension(pass): Extension<Pass>,
    terms: Option<Extension<Terms>>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
    headers: HeaderMap,
) -> Response<Body> {
    let query = query.map(|it| it.0).unwrap_or_default();
    let followed = async {
        let wanted = query.iter().find(|(name, _)| name == "event_type");
        let wanted = wanted.map(|it| EventType::find(&it.1)).transpose()?;
        let reader = Reader {
            engine: memory.engine_as("memory_recall")?.clone(),
            who,
            pass,
            shape: Shape::Memory(wanted),
            types: Arc::default(),
        };
        let asked = sse::asked(&query, &headers);
        sse::follow(slots, reader, terms.map(|it| it.0), asked, waited).await
    };
    followed.await.unwrap_or_else(|error| refused(&error))
}
