//! Listening.

use crate::places::Places;
use crate::progress::{Answer, Received};
use crate::stream::Stream;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use kenning_core::{Error, Result};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

/// The largest head of a request.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// What a connection may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once; for the next one another is closed that nothing is being done for.
    pub connections_max: usize,
    /// The longest time for the head of a request, and the longest silence between two requests.
    pub head_time_max: Duration,
    /// The longest time for the body of a request.
    pub body_time_max: Duration,
    /// The longest time until an answer begins.
    pub answer_time_max: Duration,
    /// The longest time that a client may leave an answer unread.
    pub stall_time_max: Duration,
    /// So long a client may be silent in the middle of a body, or leave an answer unread, when there are not
    /// enough places for all.
    pub silence_time_max: Duration,
    /// How long open requests may go on after the order to stop.
    pub stop_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 1_024,
            head_time_max: Duration::from_secs(10),
            body_time_max: Duration::from_secs(30),
            answer_time_max: Duration::from_secs(120),
            stall_time_max: Duration::from_secs(30),
            silence_time_max: Duration::from_secs(2),
            stop_time_max: Duration::from_millis(1_500),
        }
    }
}

/// Who is at the other end of the connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// What a request should know of the server it came to.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) limits: Arc<Limits>,
    stopping: watch::Receiver<bool>,
}

impl Terms {
    /// Done when the server stops.
    pub(crate) async fn stopped(&mut self) {
        // A sender that is gone is a server that is gone.
        let _ = self.stopping.wait_for(|it| *it).await;
    }
}

/// Connections that the kernel keeps until they are accepted. When there are more, it drops the first packet of a
/// connection, and a client sends that again only after a second.
const UNACCEPTED_MAX: u32 = 4_096;

/// Binds an address. Port 0 means any free one.
pub async fn bind(address: SocketAddr) -> Result<TcpListener> {
    let bound = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        // So that a server that was restarted need not wait for the connections of the one before. On Windows
        // it would let two servers share a port.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(UNACCEPTED_MAX)
    };
    bound().map_err(|cause: std::io::Error| {
        Error::unavailable(format!("`{address}` cannot be listened on: {cause}"))
            .hint("choose another with `--listen ADDRESS:PORT`")
    })
}

/// Serves until `stop` is done, then lets open requests finish for a moment.
pub async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    serve_within(listener, router, stop, Limits::default()).await;
}

/// The same within other limits.
pub async fn serve_within(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()>,
    limits: Limits,
) {
    let places = Places::new(limits.connections_max, limits.silence_time_max);
    let graceful = GracefulShutdown::new();
    let (stopped, stopping) = watch::channel(false);
    let limits = Arc::new(limits);
    let terms = Terms { limits, stopping };
    // Dropped at the end, which closes what is still open.
    let mut tasks = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        // One connection waits for a place here, and all others in the kernel's queue.
        let accepted = async {
            let accepted = listener.accept().await;
            places.available().await;
            accepted
        };
        let accepted = tokio::select! {
            it = accepted => it,
            () = &mut stop => break,
        };
        while tasks.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Ok(it) => it,
            Err(cause) => {
                // Out of descriptors, perhaps: wait for some to be closed.
                tracing::warn!("a connection could not be accepted: {cause}");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        if let Err(cause) = stream.set_nodelay(true) {
            tracing::debug!("no delay could not be set: {cause}");
        }
        let (router, terms) = (router.clone(), terms.clone());
        let (place, mut guard) = places.take(peer.ip());
        let stream = Stream::new(stream, place.clone(), terms.limits.stall_time_max);
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(terms.limits.head_time_max)
            .max_header_size(HEAD_BYTES_MAX);
        let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
            let place = place.clone();
            let received = |body| Body::new(Received::new(body, place.clone()));
            let mut request = request.map(received);
            request.extensions_mut().insert(Peer(peer));
            request.extensions_mut().insert(place.clone());
            request.extensions_mut().insert(terms.clone());
            let router = router.clone();
            async move {
                if !place.begin() {
                    // The connection is being closed, and this request was not begun.
                    std::future::pending::<()>().await;
                }
                let response = router.oneshot(request).await?;
                place.answer();
                Ok::<_, Infallible>(response.map(|body| Answer::new(body, place)))
            }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tasks.spawn(async move {
            tokio::select! {
                ended = connection => {
                    if let Err(cause) = ended {
                        tracing::debug!("a connection ended: {cause}");
                    }
                }
                () = guard.given_away() => tracing::debug!("a connection was closed in favor of a new one"),
            }
        });
    }
    drop(listener);
    stopped.send_replace(true);
    if tokio::time::timeout(terms.limits.stop_time_max, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::info!("some connections were still open and are closed");
    }
}
