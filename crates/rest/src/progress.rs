//! Bodies that report the progress of the request to their connection's slot.

use crate::places::Place;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

/// A client that sends at least this many bytes does not count as silent.
const PROGRESS_BYTES: usize = 16 * 1024;

/// The body of a request. While the handler waits for more of it, no work is done for the request.
pub(crate) struct Received {
    inner: Incoming,
    place: Place,
    is_waiting: bool,
    n_new: usize,
    silent_since: Instant,
}

impl Received {
    pub(crate) fn new(inner: Incoming, place: Place) -> Self {
        Self {
            inner,
            place,
            is_waiting: false,
            n_new: 0,
            silent_since: Instant::now(),
        }
    }
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.inner).poll_frame(cx);
        match &polled {
            Poll::Pending => {
                this.is_waiting = true;
                this.place.receive(this.silent_since);
            }
            Poll::Ready(frame) => {
                if let Some(Ok(frame)) = frame {
                    this.n_new += frame.data_ref().map_or(0, Bytes::len);
                }
                if this.n_new >= PROGRESS_BYTES {
                    this.n_new = 0;
                    this.silent_since = Instant::now();
                }
                if std::mem::take(&mut this.is_waiting) {
                    this.place.work();
                }
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        if self.is_waiting {
            self.place.work();
        }
    }
}

/// The body of a response. When it is dropped, all of it has been handed over to be sent.
pub(crate) struct Answer {
    inner: Body,
    place: Place,
}

impl Answer {
    pub(crate) fn new(inner: Body, place: Place) -> Self {
        Self { inner, place }
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.place.send_rest();
    }
}
