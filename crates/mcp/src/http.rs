//! MCP over Streamable HTTP: a tower service to be mounted at `/mcp`.
//!
//! Every request is independent. The handshake of the first era is answered but leaves no session
//! behind, so that a restart or a second process loses nothing; a plain call is answered with plain
//! JSON, and only a call that has progress to tell gets a stream. A client that closes its connection
//! cancels its call.
//!
//! **`Host` and `Origin` are not checked here** unless [`Options`] names some: that is the duty of
//! the one layer around the whole HTTP server, which knows its addresses. That layer also decides who
//! calls and puts a [`kenning_engine::Principal`] into the extensions of the request.

use crate::message::{self, Message, Refusal};
use crate::{Handler, Server};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use kenning_engine::Principal;
use kenning_tools::slots::{Slots, Stream};
use rmcp::model::{ErrorCode, RequestId};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio_util::bytes::Bytes;
use tokio_util::sync::CancellationToken;

/// The largest body that is read.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// An answer.
pub type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Options of the service.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Keeps a session for each client of the first era, so that a handler can ask it something back.
    pub sessions: bool,
    /// Accepted `Host` headers; empty means that an outer layer has checked them.
    pub allowed_hosts: Vec<String>,
    /// Accepted origins, as `http://localhost:*`; empty means that an outer layer has checked them.
    pub allowed_origins: Vec<String>,
    /// Ends every stream when it is cancelled.
    pub stop: CancellationToken,
}

/// The service.
#[derive(Clone)]
pub struct Service<H = Server> {
    inner: StreamableHttpService<H, LocalSessionManager>,
    slots: Arc<Slots>,
    principal: Principal,
}

/// The service over a server, or over something around one.
pub fn service<H: Handler>(server: H, options: Options) -> Service<H> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(options.sessions)
        .with_json_response(true)
        // Our own limit applies: rmcp gets a body that we wrote.
        .with_max_request_body_bytes(usize::MAX)
        .with_allowed_hosts(options.allowed_hosts)
        .with_allowed_origins(options.allowed_origins)
        .with_cancellation_token(options.stop);
    let sessions = Arc::new(LocalSessionManager::default());
    Service {
        slots: server.server().board().slots().clone(),
        principal: server.server().default_principal().clone(),
        inner: StreamableHttpService::new(move || Ok(server.clone()), sessions, config),
    }
}

impl<H: Handler> Service<H> {
    /// Answers one request.
    pub async fn handle<B>(&self, request: Request<B>) -> Answer
    where
        B: BodyExt + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        if parts.method != Method::POST {
            let request = Request::from_parts(parts, Full::new(Bytes::new()));
            return self.inner.handle(request).await;
        }
        let body = match Limited::new(body, BODY_BYTES_MAX).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                let refusal = Refusal::invalid(None, "Invalid Request: the body exceeds 4 MiB");
                return refuse(StatusCode::PAYLOAD_TOO_LARGE, &refusal);
            }
            Err(_) => {
                let refusal = Refusal::new(
                    None,
                    ErrorCode::PARSE_ERROR,
                    "Parse error: the body is empty",
                );
                return refuse(StatusCode::BAD_REQUEST, &refusal);
            }
        };
        let accepted = Accepted::of(&parts.headers);
        match check(&body, accepted) {
            Ok(body) => {
                let stream = match body.streams.as_ref().map(|_| self.stream(&parts)) {
                    Some(Ok(stream)) => Some(stream),
                    Some(Err(error)) => {
                        let refusal = Refusal::new(body.streams, ErrorCode::INTERNAL_ERROR, error);
                        return refuse(StatusCode::TOO_MANY_REQUESTS, &refusal);
                    }
                    None => None,
                };
                if accepted.json && (accepted.stream || body.streams.is_none()) {
                    let both = header::HeaderValue::from_static(BOTH);
                    parts.headers.insert(header::ACCEPT, both);
                }
                let body = body.text;
                let request = Request::from_parts(parts, Full::new(Bytes::from(body)));
                let answer = self.inner.handle(request).await;
                match stream {
                    Some(stream) => answer.map(|body| hold(body, stream)),
                    None => answer,
                }
            }
            Err(refusal) => refuse(StatusCode::BAD_REQUEST, &refusal),
        }
    }

    /// A slot for a stream, or why there is none.
    fn stream(&self, parts: &http::request::Parts) -> Result<Stream, String> {
        let who = parts.extensions.get::<Principal>();
        let stream = self.slots.stream(who.unwrap_or(&self.principal));
        stream.map_err(|error| error.to_string())
    }
}

/// Holds the slot for as long as the body exists.
fn hold(body: BoxBody<Bytes, Infallible>, stream: Stream) -> BoxBody<Bytes, Infallible> {
    let held = body.map_frame(move |frame| {
        let _held = &stream;
        frame
    });
    held.boxed()
}

/// The `Accept` header that the protocol requires, and that rmcp checks.
const BOTH: &str = "application/json, text/event-stream";

/// The request whose answer is a stream by nature.
const LISTEN: &str = "subscriptions/listen";

/// The content types that a client accepts, by HTTP's rules: `*/*`, which curl and most libraries send, and no
/// header at all mean both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Accepted {
    json: bool,
    stream: bool,
}

impl Accepted {
    fn of(headers: &http::HeaderMap) -> Self {
        if !headers.contains_key(header::ACCEPT) {
            return Self {
                json: true,
                stream: true,
            };
        }
        let values = headers.get_all(header::ACCEPT).iter();
        let ranges: Vec<String> = values
            .filter_map(|it| it.to_str().ok())
            .flat_map(|it| it.split(','))
            .filter_map(parse_media_range)
            .collect();
        let takes = |kinds: [&str; 3]| ranges.iter().any(|it| kinds.contains(&it.as_str()));
        Self {
            json: takes(["application/json", "application/*", "*/*"]),
            stream: takes(["text/event-stream", "text/*", "*/*"]),
        }
    }
}

/// A media range of an `Accept` header, without its parameters; none if it has the weight 0.
fn parse_media_range(range: &str) -> Option<String> {
    let mut parts = range.split(';').map(|it| it.trim().to_ascii_lowercase());
    let kind = parts.next()?;
    let weight = parts.find_map(|it| it.strip_prefix("q=")?.parse::<f32>().ok());
    weight.is_none_or(|it| it > 0.0).then_some(kind)
}

/// A body that was read.
struct Checked {
    text: String,
    /// The id of the request, if its answer is a stream.
    streams: Option<RequestId>,
}

/// The body as we read it, so that rmcp reads the same: of two equal keys the last. A client that accepts no
/// streams gets no progress, which would turn its answer into a stream.
fn check(body: &[u8], accepted: Accepted) -> Result<Checked, Refusal> {
    let mut value = message::parse(body)?;
    let streams = value["method"] == LISTEN;
    if !accepted.stream
        && let Some(meta) = value.pointer_mut("/params/_meta")
        && let Some(meta) = meta.as_object_mut()
    {
        meta.remove("progressToken");
    }
    let text = value.to_string();
    match message::read(value)? {
        Message::Noise => Err(Refusal::invalid(
            None,
            "Invalid Request: not a request, notification or response",
        )),
        Message::Request(id, _) => Ok(Checked {
            text,
            streams: streams.then_some(id),
        }),
        Message::OneWay(_) => Ok(Checked {
            text,
            streams: None,
        }),
    }
}

fn refuse(status: StatusCode, refusal: &Refusal) -> Answer {
    let body = Full::new(Bytes::from(refusal.to_json().to_string()));
    let mut response = Response::new(body.boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}

impl<H, B> tower::Service<Request<B>> for Service<H>
where
    H: Handler,
    B: BodyExt + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.handle(request).await) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_accepts_is_read_by_the_rules_of_http() {
        for (value, json, stream) in [
            ("application/json, text/event-stream", true, true),
            ("*/*", true, true),
            ("text/html, */*;q=0.8", true, true),
            ("application/json", true, false),
            ("APPLICATION/JSON; charset=utf-8", true, false),
            ("application/*", true, false),
            ("text/event-stream", false, true),
            ("text/html", false, false),
            ("*/*;q=0", false, false),
            ("", false, false),
        ] {
            let mut headers = http::HeaderMap::new();
            headers.insert(header::ACCEPT, value.parse().unwrap());
            assert_eq!(Accepted::of(&headers), Accepted { json, stream }, "{value}");
        }
        let none = http::HeaderMap::new();
        assert!(Accepted::of(&none).json && Accepted::of(&none).stream);
    }
}
