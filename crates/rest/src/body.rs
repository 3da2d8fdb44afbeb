//! The body of a request, within its limits on size and time.

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use kenning_core::Error;
use kenning_tools::slots::bodies::Held;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// The largest request, but for messages of other nodes.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// So much of a refused body is still read. A client that is cut off while it writes never reads why.
const DRAIN_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;
/// So long it may take.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(1);

/// What was wrong with a body. The layer asks, so that every route answers it in the same way,
/// whatever its handler made of a body that broke off.
#[derive(Clone, Default)]
pub(crate) struct Fault(Arc<OnceLock<Error>>);

impl Fault {
    /// The error, if there was one.
    pub(crate) fn error(&self) -> Option<&Error> {
        self.0.get()
    }

    /// The first fault is the one that is told.
    fn set(&self, error: Error) {
        let _ = self.0.set(error);
    }
}

/// The error for a body over the limit.
pub(crate) fn over(bytes_max: usize) -> Error {
    Error::too_large(format!("the request body is over {bytes_max} bytes"))
}

/// A body that ends with an error when it is too large or too slow, or when too many bytes are held already.
pub(crate) struct Capped {
    inner: Body,
    bytes_max: usize,
    n_bytes: usize,
    /// Whether the rest is only read so that the client reads why.
    is_refused: bool,
    end: Pin<Box<Sleep>>,
    held: Arc<Held>,
    fault: Fault,
}

impl Capped {
    pub(crate) fn new(
        inner: Body,
        bytes_max: usize,
        time_max: Duration,
        held: Arc<Held>,
        fault: Fault,
    ) -> Self {
        let end = Box::pin(tokio::time::sleep(time_max));
        Self {
            inner,
            bytes_max,
            n_bytes: 0,
            is_refused: false,
            end,
            held,
            fault,
        }
    }

    /// Whether so many bytes more may be kept.
    fn check(&self, n_more: usize) -> Result<(), Error> {
        if self.n_bytes + n_more > self.bytes_max {
            return Err(over(self.bytes_max));
        }
        self.held.add(n_more)
    }
}

fn broken() -> Option<Result<Frame<Bytes>, axum::Error>> {
    Some(Err(axum::Error::new("the body broke off")))
}

impl HttpBody for Capped {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        loop {
            match Pin::new(&mut this.inner).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    let n_more = frame.data_ref().map_or(0, Bytes::len);
                    let checked = match this.is_refused {
                        true => Ok(()),
                        false => this.check(n_more),
                    };
                    this.n_bytes += n_more;
                    if let Err(error) = checked {
                        this.fault.set(error);
                        this.is_refused = true;
                        this.end.as_mut().reset(Instant::now() + DRAIN_TIME_MAX);
                    }
                    if !this.is_refused {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                    if this.n_bytes > this.bytes_max.max(DRAIN_BYTES_MAX) {
                        return Poll::Ready(broken());
                    }
                }
                Poll::Ready(_) if this.is_refused => return Poll::Ready(broken()),
                Poll::Ready(end) => return Poll::Ready(end),
                Poll::Pending if this.end.as_mut().poll(cx).is_ready() => {
                    this.fault
                        .set(Error::timeout("the request body took too long"));
                    return Poll::Ready(broken());
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Reads what is left of a body that nobody wants, for a moment.
pub(crate) async fn drain(mut body: Body) {
    let read = async {
        let mut n_bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            n_bytes += frame.data_ref().map_or(0, Bytes::len);
            if n_bytes > DRAIN_BYTES_MAX {
                break;
            }
        }
    };
    if tokio::time::timeout(DRAIN_TIME_MAX, read).await.is_err() {
        tracing::debug!("a refused body was not read to its end");
    }
}
