//! A proxy on loopback for a program that opens its own connections; only that program can use it.
//!
//! `git` speaks TLS itself, so it cannot be handed a checked connection. It is told to use this proxy instead,
//! which accepts only `CONNECT` with a secret and applies the same policy: the name is resolved here, once,
//! every address is judged, and the connection is opened to one of those very addresses. The program never
//! resolves a name and never reaches an address that the policy does not permit.
//!
//! A tunnel lives as long as its value. Bytes of all connections together and the time of each are bounded.

use crate::place::Place;
use crate::{Egress, http};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kenning_core::{Code, Error, Hash, Result};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The proxy's user name; only the secret is checked.
const USER: &str = "kenning";
/// The most connections at once.
const LINES_MAX: usize = 32;
/// How long a program may take to send its request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Size of the request head.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// How often to check whether the tunnel was closed.
const LOOK: Duration = Duration::from_millis(50);

/// How much may pass through a tunnel, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelLimits {
    /// All connections end after this time.
    pub total_timeout: Duration,
    /// Bytes of all connections together, in both directions.
    pub bytes_max: u64,
}

/// A proxy on loopback. Dropping it closes every connection.
pub struct Tunnel {
    address: SocketAddr,
    secret: String,
    shared: Arc<Shared>,
}

struct Shared {
    egress: Egress,
    /// Hash of the credentials, so that the time of comparing reveals nothing.
    pass: Hash,
    deadline: Instant,
    bytes_left: AtomicU64,
    lines: AtomicUsize,
    stopped: AtomicBool,
    refusal: Mutex<Option<Error>>,
}

impl Egress {
    /// Opens a proxy for one program, which gets the unguessable `secret`.
    pub fn tunnel(&self, secret: &str, limits: TunnelLimits) -> Result<Tunnel> {
        let failed = |cause: io::Error| {
            Error::unavailable("no loopback port could be opened for the program's proxy")
                .because(cause)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        // A blocking `accept` cannot be interrupted.
        listener.set_nonblocking(true).map_err(failed)?;
        let pass = STANDARD.encode(format!("{USER}:{secret}"));
        let shared = Arc::new(Shared {
            egress: self.clone(),
            pass: Hash::of(pass.as_bytes()),
            deadline: Instant::now() + limits.total_timeout,
            bytes_left: AtomicU64::new(limits.bytes_max),
            lines: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            refusal: Mutex::new(None),
        });
        let theirs = Arc::clone(&shared);
        let named = std::thread::Builder::new().name("tunnel".to_owned());
        named
            .spawn(move || theirs.listen(&listener))
            .map_err(failed)?;
        Ok(Tunnel {
            address,
            secret: secret.to_owned(),
            shared,
        })
    }
}

impl Tunnel {
    /// What the program is told: the address with the secret. Not for command lines or logs.
    pub fn url(&self) -> String {
        format!("http://{USER}:{}@{}", self.secret, self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Why the last refused or failed connection was not opened.
    pub fn take_refusal(&self) -> Option<Error> {
        lock(&self.shared.refusal).take()
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Acquire) || Instant::now() >= self.deadline
    }

    fn listen(self: &Arc<Self>, listener: &TcpListener) {
        while !self.is_over() {
            match listener.accept() {
                Ok((stream, from)) if from.ip().is_loopback() => self.serve_apart(stream),
                Ok(_) => {}
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Each connection has a thread: a program may hold several open.
    fn serve_apart(self: &Arc<Self>, stream: TcpStream) {
        if self.lines.fetch_add(1, Ordering::AcqRel) >= LINES_MAX {
            self.lines.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        let line = Line(Arc::clone(self));
        let spawned = std::thread::Builder::new()
            .name("tunnel line".to_owned())
            .spawn(move || line.0.serve(stream));
        // If no thread could be started, the connection is dropped and no longer counted.
        drop(spawned);
    }

    fn serve(&self, mut client: TcpStream) {
        if client.set_nonblocking(false).is_err() {
            return;
        }
        match self.open(&mut client) {
            Ok(server) => self.relay(client, server),
            Err(refusal) => refusal.tell(client, &self.refusal),
        }
    }

    /// Reads the request, checks it, and opens the connection.
    fn open(&self, client: &mut TcpStream) -> Result<TcpStream, Refusal> {
        let head = read_head(client, self.deadline.min(Instant::now() + HEAD_TIMEOUT))?;
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target, version) = (words.next(), words.next(), words.next());
        let is_http = version.is_some_and(|it| it.starts_with("HTTP/1.")) && words.next().is_none();
        let (Some(method), Some(target), true) = (method, target, is_http) else {
            return Err(Refusal::new(
                "400 Bad Request",
                "for something that is not HTTP",
            ));
        };
        let pass = lines
            .filter_map(|it| it.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("proxy-authorization"))
            .and_then(|(_, value)| value.trim().split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
        if pass.is_none_or(|(_, it)| Hash::of(it.trim().as_bytes()) != self.pass) {
            return Err(Refusal::unknown());
        }
        if method != "CONNECT" {
            let what = "for a method other than CONNECT";
            return Err(Refusal::new("405 Method Not Allowed", what));
        }
        let place = place_of(target)?;
        let checked = self.egress.admit(place, self.deadline);
        let checked = checked.map_err(|stopped| stopped.error)?;
        let (server, _) = self.egress.connect(&checked, self.deadline)?;
        client
            .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            .map_err(|cause| Error::unavailable("the program is gone").because(cause))?;
        Ok(server)
    }

    fn relay(&self, client: TcpStream, server: TcpStream) {
        let (Ok(client_too), Ok(server_too)) = (client.try_clone(), server.try_clone()) else {
            return;
        };
        std::thread::scope(|scope| {
            scope.spawn(|| self.copy(client, server));
            self.copy(server_too, client_too);
        });
    }

    /// One direction, until its end, the limit, the deadline or the end of the tunnel.
    fn copy(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 32 * 1024];
        // Without timeouts the connection cannot be used.
        let is_set = from.set_read_timeout(Some(LOOK)).is_ok()
            && to.set_write_timeout(Some(Duration::from_secs(30))).is_ok();
        while is_set && !self.is_over() {
            let n = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if http::is_timeout(&error) => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            if !self.take(n as u64) {
                let error =
                    Error::too_large("the server sends more bytes than the limit for a repository");
                *lock(&self.refusal) = Some(error);
                self.stopped.store(true, Ordering::Release);
                break;
            }
            let Some(bytes) = buffer.get(..n) else { break };
            if to.write_all(bytes).is_err() {
                break;
            }
        }
        // Only one direction is closed: the other side may still be sending.
        drop(to.shutdown(Shutdown::Write));
        if self.is_over() {
            drop(from.shutdown(Shutdown::Both));
            drop(to.shutdown(Shutdown::Both));
        }
    }

    fn take(&self, n: u64) -> bool {
        let taken = self
            .bytes_left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |it| it.checked_sub(n));
        taken.is_ok()
    }
}

/// A connection that is counted until it ends.
struct Line(Arc<Shared>);

impl Drop for Line {
    fn drop(&mut self) {
        self.0.lines.fetch_sub(1, Ordering::AcqRel);
    }
}

/// `host:port` and nothing else: no path, no userinfo, no scheme.
fn place_of(target: &str) -> Result<Place, Refusal> {
    let has_port = target
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !has_port || target.contains(['/', '\\', '@', '?', '#', '%']) {
        return Err(Refusal::new(
            "400 Bad Request",
            "for a target that is not `host:port`",
        ));
    }
    Ok(Place::parse(&format!("https://{target}"))?)
}

/// The answer to a program that gets no connection.
struct Refusal {
    status: &'static str,
    /// Kept only for requests that know the secret.
    error: Option<Error>,
}

impl Refusal {
    fn new(status: &'static str, what: &str) -> Self {
        let error = Some(Error::denied(format!("the proxy was asked {what}")));
        Self { status, error }
    }

    fn unknown() -> Self {
        Self {
            status: "407 Proxy Authentication Required",
            error: None,
        }
    }

    fn tell(self, mut client: TcpStream, kept: &Mutex<Option<Error>>) {
        let wanted = match self.error {
            Some(error) => {
                *lock(kept) = Some(error);
                ""
            }
            None => "Proxy-Authenticate: Basic realm=\"kenning\"\r\n",
        };
        let status = self.status;
        let answer =
            format!("HTTP/1.1 {status}\r\n{wanted}Content-Length: 0\r\nConnection: close\r\n\r\n");
        // A program that hung up needs no answer.
        drop(client.write_all(answer.as_bytes()));
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = match error.code {
            Code::Denied | Code::InvalidInput => "403 Forbidden",
            Code::Timeout => "504 Gateway Timeout",
            _ => "502 Bad Gateway",
        };
        let error = Some(error);
        Self { status, error }
    }
}

/// Everything up to the empty line, byte by byte: what follows belongs to the connection.
fn read_head(client: &mut TcpStream, until: Instant) -> Result<String, Refusal> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        let mut byte = [0];
        let is_late = left.is_zero() || client.set_read_timeout(Some(left)).is_err();
        if is_late || head.len() >= HEAD_BYTES_MAX || !matches!(client.read(&mut byte), Ok(1)) {
            let what = "with a request that does not end";
            return Err(Refusal::new("400 Bad Request", what));
        }
        head.extend_from_slice(&byte);
    }
    String::from_utf8(head)
        .map_err(|_| Refusal::new("400 Bad Request", "with a request that is not text"))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
