//! Listening.

use crate::guard::Peer;
use crate::stream::Stream;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use kenning_core::{Error, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower::ServiceExt;

/// The largest head of a request.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// What a connection may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once; the next one waits.
    pub connections_max: usize,
    /// The longest time for the head of a request, and the longest silence between two requests.
    pub head_time_max: Duration,
    /// The longest time for the body of a request.
    pub body_time_max: Duration,
    /// The longest time until an answer begins.
    pub answer_time_max: Duration,
    /// The longest time that a client may leave an answer unread.
    pub stall_time_max: Duration,
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
            stop_time_max: Duration::from_millis(1_500),
        }
    }
}

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

/// Binds an address. Port 0 means any free one.
pub async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|cause| {
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
    let connections = Arc::new(Semaphore::new(limits.connections_max));
    let graceful = GracefulShutdown::new();
    let (stopped, stopping) = watch::channel(false);
    let limits = Arc::new(limits);
    let terms = Terms { limits, stopping };
    // Dropped at the end, which closes what is still open.
    let mut tasks = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        // The permit comes first: what cannot be served is left to the kernel's queue.
        let accepted = async {
            let permit = connections.clone().acquire_owned().await;
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
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
        let stream = Stream::new(stream, terms.limits.stall_time_max);
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(terms.limits.head_time_max)
            .max_header_size(HEAD_BYTES_MAX);
        let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(Peer(peer));
            request.extensions_mut().insert(terms.clone());
            router.clone().oneshot(request)
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tasks.spawn(async move {
            if let Err(cause) = connection.await {
                tracing::debug!("a connection ended: {cause}");
            }
            drop(permit);
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
