//! How a tool reaches the network: HTTP, through `egress`, to hosts that it was granted.
//!
//! There are no sockets and no name look-ups for tools. A request is judged twice: here by its host
//! against the tool's list, and in `egress` by the address that the host resolves to. Only hosts that
//! are written out literally in the list (a number, `localhost`) are granted there; the
//! operator's own grants do not apply to tools. Redirects are handed to the tool, whose next
//! request is judged like any other.

use crate::call::{Limits, LogLevel};
use crate::hosts::{Host, Target};
use crate::wasm::budget::{Charge, Slot};
use crate::wasm::headers::BODY_CHUNK_BYTES;
use crate::wasm::state::{Clock, Log};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use kenning_core::Code;
use kenning_egress::{Egress, Grant, Method, Policy, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use wasmtime_wasi_http::{Error, RequestOptions, Result, WasiBody, WasiHttpHooks};

/// The network of one call.
pub(crate) struct Net {
    allowed: Vec<Host>,
    policy: Policy,
    limits: Limits,
    clock: Clock,
    log: Log,
    in_flight: Arc<Semaphore>,
    slot: Arc<Slot>,
    pub(crate) traffic: Arc<Traffic>,
}

/// What went over the network.
#[derive(Default)]
pub(crate) struct Traffic {
    pub(crate) requests: AtomicU64,
    pub(crate) bytes_sent: AtomicU64,
    pub(crate) bytes_received: AtomicU64,
}

/// Requests of one call that are under way at once.
const IN_FLIGHT_MAX: usize = 4;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

type Sent = Box<dyn Future<Output = Result<()>> + Send>;
type Answer = http::Response<WasiBody>;

impl Net {
    pub(crate) fn new(
        allowed: &[Host],
        policy: &Policy,
        limits: &Limits,
        clock: &Clock,
        log: &Log,
        slot: &Arc<Slot>,
    ) -> Self {
        let literal = allowed.iter().filter(|it| it.is_literal());
        // An entry that was read once can be read as a grant: both are read by the same parser.
        let grants = literal.filter_map(|it| Grant::parse(&it.to_string()).ok());
        let policy = Policy {
            grants: grants.collect(),
            ..policy.clone()
        };
        Self {
            allowed: allowed.to_vec(),
            policy,
            limits: *limits,
            clock: clock.clone(),
            log: log.clone(),
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
            slot: Arc::clone(slot),
            traffic: Arc::default(),
        }
    }

    /// The tool gets only a code, so the log explains it.
    fn refuse(&self, why: &str, error: Error) -> Error {
        self.log.line(LogLevel::Warn, why);
        error
    }

    fn judge(&self, request: &http::Request<WasiBody>) -> Result<Method> {
        let made = self.traffic.requests.fetch_add(1, Ordering::Relaxed);
        let max = self.limits.http_requests_max;
        if made >= u64::from(max) {
            let why = format!("a request was refused: one call may make at most {max}");
            return Err(self.refuse(&why, Error::ConnectionLimitReached));
        }
        let target = match Target::parse(&request.uri().to_string()) {
            Ok(target) => target,
            Err(err) => {
                let why = format!("a request was refused: {err}");
                return Err(self.refuse(&why, Error::HttpRequestUriInvalid));
            }
        };
        if !self.allowed.iter().any(|it| it.permits(&target)) {
            let why = format!(
                "a request to `{target}` was refused: `net_allow_list` has no entry for it"
            );
            return Err(self.refuse(&why, Error::HttpRequestDenied));
        }
        match request.method().as_str() {
            "GET" => Ok(Method::Get),
            "HEAD" => Ok(Method::Head),
            "POST" => Ok(Method::Post),
            "PUT" => Ok(Method::Put),
            "DELETE" => Ok(Method::Delete),
            "PATCH" => Ok(Method::Patch),
            "OPTIONS" => Ok(Method::Options),
            _ => Err(Error::HttpRequestMethodInvalid),
        }
    }
}

impl WasiHttpHooks for Net {
    fn set_host_header(&mut self) -> bool {
        // `egress` writes it, from the address that it connects to.
        false
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_CHUNK_BYTES
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Sent,
    ) -> Box<dyn Future<Output = Result<(Answer, Sent)>> + Send> {
        let method = match self.judge(&request) {
            Ok(method) => method,
            Err(refused) => return Box::new(async { Err(refused) }),
        };
        let (policy, until) = (self.policy.clone(), self.clock.until);
        let (mut limits, traffic) = (self.limits, self.traffic.clone());
        let (in_flight, slot) = (self.in_flight.clone(), self.slot.clone());
        let log = self.log.clone();
        Box::new(async move {
            let _place = in_flight.acquire_owned().await;
            let request = collect_body(request, method, &limits).await?;
            // Bodies are in our memory, so they count as the tool's.
            let full = |what: &str| {
                let why = format!("a request failed: the tool has no memory left for its {what}");
                log.line(LogLevel::Warn, &why);
            };
            let bytes = request.body.len() as u64;
            let asked = Charge::new(&slot, bytes).map_err(|_| {
                full("body");
                Error::HttpRequestBodySize(Some(bytes))
            })?;
            let left = usize::try_from(slot.left()).unwrap_or(usize::MAX);
            limits.http_response_bytes_max = limits.http_response_bytes_max.min(left);
            let sent = request.body.len() as u64;
            traffic.bytes_sent.fetch_add(sent, Ordering::Relaxed);
            let fetched = tokio::task::spawn_blocking(move || {
                egress_for(policy, &limits, until, options).fetch(request)
            });
            let answer = fetched.await.map_err(|_| Error::InternalError(None))?;
            drop(asked);
            let answer = answer.map_err(|err| {
                log.line(LogLevel::Warn, &format!("a request failed: {err}"));
                error_code(&err, &limits)
            })?;
            let received = answer.body.len() as u64;
            traffic
                .bytes_received
                .fetch_add(received, Ordering::Relaxed);
            let charge = Charge::new(&slot, received).map_err(|_| {
                full("answer");
                Error::HttpResponseBodySize(Some(received))
            })?;
            let answer = rebuilt(answer, charge)?;
            Ok((answer, Box::new(async { Ok(()) }) as Sent))
        })
    }
}

/// The egress policy for one request, with the call's deadline.
fn egress_for(
    mut policy: Policy,
    limits: &Limits,
    until: Instant,
    options: Option<RequestOptions>,
) -> Egress {
    let left = until.saturating_duration_since(Instant::now());
    let connect = options.unwrap_or_default().connect_timeout;
    policy.limits.total_timeout = left;
    policy.limits.connect_timeout = connect.unwrap_or(CONNECT_TIMEOUT).min(left);
    policy.limits.body_bytes_max = limits.http_response_bytes_max as u64;
    policy.limits.header_bytes_max = limits.http_header_bytes_max;
    Egress::new(policy)
}

/// Waits for the whole body, up to the limit.
async fn collect_body(
    request: http::Request<WasiBody>,
    method: Method,
    limits: &Limits,
) -> Result<Request> {
    let (head, body) = request.into_parts();
    let max = limits.http_request_bytes_max;
    let body = Limited::new(body, max).collect().await;
    let body = body.map_err(|_| Error::HttpRequestBodySize(Some(max as u64)))?;
    // The length is counted and the host is known; both are written by `egress`.
    let own = [http::header::CONTENT_LENGTH, http::header::HOST];
    let headers = head.headers.iter().filter(|(name, _)| !own.contains(name));
    let headers = headers.map(|(name, value)| {
        let value = value.to_str().map_err(|_| Error::HttpProtocolError)?;
        Ok((name.as_str().to_owned(), value.to_owned()))
    });
    Ok(Request {
        method,
        url: head.uri.to_string(),
        headers: headers.collect::<Result<_>>()?,
        body: body.to_bytes().to_vec(),
        redirect_is_answer: true,
        ..Request::default()
    })
}

fn rebuilt(answer: kenning_egress::Response, charge: Charge) -> Result<Answer> {
    let mut response = http::Response::builder().status(answer.status);
    // The body is complete and decoded, so headers about its transfer no longer apply.
    let of_transfer = [
        "connection",
        "keep-alive",
        "transfer-encoding",
        "trailer",
        "upgrade",
    ];
    for (name, value) in &answer.headers {
        if !of_transfer.contains(&name.as_str()) {
            response = response.header(name, value);
        }
    }
    let body = Full::new(Bytes::from(answer.body)).map_frame(move |frame| {
        // The charge lives as long as the body does.
        let _ = &charge;
        frame
    });
    let body = body.map_err(Error::from);
    let response = response.body(body.boxed_unsync());
    response.map_err(|_| Error::HttpProtocolError)
}

/// The error code for the tool.
fn error_code(err: &kenning_core::Error, limits: &Limits) -> Error {
    match err.code {
        Code::Denied => Error::DestinationIpProhibited,
        Code::Timeout => Error::ConnectionTimeout,
        Code::TooLarge => Error::HttpResponseBodySize(Some(limits.http_response_bytes_max as u64)),
        Code::InvalidInput => Error::HttpProtocolError,
        _ => Error::DestinationUnavailable,
    }
}
