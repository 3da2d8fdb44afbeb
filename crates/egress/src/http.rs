//! One exchange over a connection that is already open.
//!
//! The HTTP client is handed a connected stream and can get no other: it has no resolver that
//! resolves and no connector that connects, reads no proxy from the environment, keeps no pool and
//! follows no redirect. What it does is HTTP/1.1, TLS by the host's name, and gzip.

use crate::place::Place;
use crate::{Limits, Method};
use kenning_core::{Error, Result};
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, RustlsConnector, Transport,
};
use ureq::{Agent, Body, Timeout};

/// The default user agent.
const USER_AGENT: &str = concat!("kenning/", env!("CARGO_PKG_VERSION"));

/// An answer whose body has not been read.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    body: Body,
}

/// The request of one hop.
pub(crate) struct Ask<'a> {
    pub(crate) place: &'a Place,
    pub(crate) method: Method,
    pub(crate) headers: &'a [(String, String)],
    pub(crate) body: &'a [u8],
    pub(crate) deadline: Instant,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Reads the body, counting what comes out of the decompressor.
    pub(crate) fn read(self, shown: &str, limits: &Limits) -> Result<Vec<u8>> {
        let max = limits.body_bytes_max;
        if self.body.content_length().is_some_and(|it| it > max) {
            return Err(too_large(shown, max));
        }
        // Compressed bytes are counted as well, with room for the wrapping of a body that does not
        // shrink: a stream of empty blocks would otherwise never add up to anything.
        const WRAPPING_BYTES: u64 = 64 * 1024;
        let source = self.body.into_with_config();
        let source = source.limit(max.saturating_add(WRAPPING_BYTES)).reader();
        let mut body = Vec::new();
        source
            .take(max.saturating_add(1))
            .read_to_end(&mut body)
            .map_err(|err| failed(shown, ureq::Error::from(err), limits))?;
        if body.len() as u64 > max {
            return Err(too_large(shown, max));
        }
        Ok(body)
    }
}

/// Sends one request over `stream` and reads the head of the answer.
pub(crate) fn exchange(
    stream: TcpStream,
    address: SocketAddr,
    ask: &Ask<'_>,
    limits: &Limits,
    tls: &TlsConfig,
) -> Result<Answer> {
    let shown = &ask.place.shown;
    let config = Agent::config_builder()
        .proxy(None)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_idle_connections(0)
        .max_response_header_size(limits.header_bytes_max)
        // The whole head has to fit, with room to see that it does not end.
        .input_buffer_size(limits.header_bytes_max.max(8 * 1024) + 8 * 1024)
        .timeout_global(Some(time_left(ask.deadline)))
        .user_agent(USER_AGENT)
        .tls_config(tls.clone())
        .build();
    let line = Line::new(stream, ask.deadline, &config);
    let connector = Handed(Mutex::new(Some(line)));
    let agent = Agent::with_parts(
        config,
        connector.chain(RustlsConnector::default()),
        Pinned(address),
    );

    let mut request = ureq::http::Request::builder()
        .method(ask.method.name())
        .uri(ask.place.url.as_str());
    for (name, value) in ask.headers {
        request = request.header(name, value);
    }
    let sent = if ask.method.has_body() {
        let request = request.body(ask.body);
        agent.run(request.map_err(|err| unsendable(shown, err))?)
    } else {
        let request = request.body(());
        agent.run(request.map_err(|err| unsendable(shown, err))?)
    };
    let (head, body) = sent.map_err(|err| failed(shown, err, limits))?.into_parts();
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        })
        .collect();
    Ok(Answer {
        status: head.status.as_u16(),
        headers,
        body,
    })
}

/// The certificates a server may be trusted by.
pub(crate) fn tls(roots: Option<&[Vec<u8>]>) -> TlsConfig {
    let roots = match roots {
        None => RootCerts::WebPki,
        Some(only) => {
            let only = only.iter().map(|it| Certificate::from_der(it).to_owned());
            RootCerts::new_with_certs(&only.collect::<Vec<_>>())
        }
    };
    TlsConfig::builder().root_certs(roots).build()
}

fn time_left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

fn too_large(shown: &str, max: u64) -> Error {
    Error::too_large(format!("`{shown}` answered with over {max} bytes"))
}

pub(crate) fn timed_out(shown: &str) -> Error {
    Error::timeout(format!("`{shown}` did not answer in time"))
}

fn unsendable(shown: &str, err: ureq::http::Error) -> Error {
    // The cause may quote a header's value, so only its type is kept.
    Error::invalid(format!("the request to `{shown}` has a malformed header")).because(err)
}

fn failed(shown: &str, err: ureq::Error, limits: &Limits) -> Error {
    let error = match &err {
        ureq::Error::Timeout(_) => timed_out(shown),
        ureq::Error::Io(it) if is_timeout(it) => timed_out(shown),
        ureq::Error::BodyExceedsLimit(_) => too_large(shown, limits.body_bytes_max),
        ureq::Error::LargeResponseHeader(..) => too_many_headers(shown),
        // The parser's own error type is not public; a test checks the name.
        ureq::Error::Protocol(it) if format!("{it:?}") == "HttpParseTooManyHeaders" => {
            too_many_headers(shown)
        }
        ureq::Error::Rustls(_) | ureq::Error::Tls(_) => {
            Error::unavailable(format!("the TLS certificate of `{shown}` was not accepted"))
        }
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
            Error::invalid(format!("`{shown}` is not an address that can be requested"))
        }
        ureq::Error::Io(it) if it.get_ref().is_some_and(is_tls) => {
            Error::unavailable(format!("the TLS certificate of `{shown}` was not accepted"))
        }
        ureq::Error::Protocol(_) => Error::unavailable(format!("`{shown}` did not answer in HTTP")),
        _ => Error::unavailable(format!("`{shown}` closed the connection early")),
    };
    error.because(err)
}

pub(crate) fn is_timeout(err: &io::Error) -> bool {
    matches!(
        err.kind(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
    )
}

/// A failed handshake arrives wrapped as an I/O error.
fn is_tls(err: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let text = format!("{err:?}");
    text.contains("Certificate") || text.contains("Alert")
}

fn too_many_headers(shown: &str) -> Error {
    Error::too_large(format!("`{shown}` answered with too many headers"))
}

/// Gives back the address that the connection was opened to. The client only logs it.
#[derive(Debug)]
struct Pinned(SocketAddr);

impl Resolver for Pinned {
    fn resolve(
        &self,
        _: &Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        addresses.push(self.0);
        Ok(addresses)
    }
}

/// Hands out the open connection once.
struct Handed(Mutex<Option<Line>>);

impl Connector<()> for Handed {
    type Out = Line;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<Line>, ureq::Error> {
        let line = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A second call would be a retry on an unchecked connection.
        line.map(Some).ok_or(ureq::Error::ConnectionFailed)
    }
}

impl fmt::Debug for Handed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handed")
    }
}

/// The open connection, every read and write of which ends at the deadline.
///
/// A server that sends one byte a second keeps each single read short, so only an absolute time
/// ends it.
struct Line {
    stream: TcpStream,
    buffers: LazyBuffers,
    deadline: Instant,
}

impl Line {
    fn new(stream: TcpStream, deadline: Instant, config: &Config) -> Self {
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Self {
            stream,
            buffers,
            deadline,
        }
    }

    fn time_left(&self) -> Result<Duration, ureq::Error> {
        let left = time_left(self.deadline);
        if left.is_zero() {
            return Err(ureq::Error::Timeout(Timeout::Global));
        }
        Ok(left)
    }
}

impl Transport for Line {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), ureq::Error> {
        let mut sent = 0;
        while sent < amount {
            self.stream.set_write_timeout(Some(self.time_left()?))?;
            let rest = self.buffers.output().get(sent..amount).unwrap_or_default();
            match self.stream.write(rest) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(count) => sent += count,
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                Err(err) if is_timeout(&err) => return Err(ureq::Error::Timeout(Timeout::Global)),
                Err(err) => return Err(err.into()),
            }
        }
        Ok(())
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, ureq::Error> {
        loop {
            self.stream.set_read_timeout(Some(self.time_left()?))?;
            match self.stream.read(self.buffers.input_append_buf()) {
                Ok(count) => {
                    self.buffers.input_appended(count);
                    return Ok(count > 0);
                }
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                Err(err) if is_timeout(&err) => return Err(ureq::Error::Timeout(Timeout::Global)),
                Err(err) => return Err(err.into()),
            }
        }
    }

    /// A connection serves one exchange and is never kept.
    fn is_open(&mut self) -> bool {
        false
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line")
    }
}
