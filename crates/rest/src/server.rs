//! Listening.

use crate::guard::Peer;
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
use tokio::sync::Semaphore;
use tower::ServiceExt;

/// Connections at once; the next one waits.
const CONNECTIONS_MAX: usize = 1_024;
/// The longest time for the head of a request.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long open requests may go on after the order to stop.
const STOP_TIME_MAX: Duration = Duration::from_millis(1_500);

/// Binds an address. Port 0 means any free one.
pub async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|cause| {
        Error::unavailable(format!("`{address}` cannot be listened on: {cause}"))
            .hint("choose another with `--listen ADDRESS:PORT`")
    })
}

/// Serves until `stop` is done, then lets open requests finish for a moment.
pub async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
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
        let router = router.clone();
        let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(Peer(peer));
            router.clone().oneshot(request)
        });
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME_MAX);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(cause) = connection.await {
                tracing::debug!("a connection ended: {cause}");
            }
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(STOP_TIME_MAX, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::info!("some connections were still open and are closed");
    }
}
