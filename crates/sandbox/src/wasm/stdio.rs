//! Where a tool's standard output and standard error go: into memory, and only the end is kept.
//!
//! Our own standard output carries protocol messages, so a tool's `print` must never get there. Only the
//! end is kept, since it tells why a tool failed.

use bytes::Bytes;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// The end of a stream of bytes. Clones share it.
#[derive(Clone)]
pub(crate) struct Tail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    max: usize,
}

/// How much a tool may hand over at once.
const CHUNK_BYTES: usize = 64 * 1024;

impl Tail {
    pub(crate) fn new(max: usize) -> Self {
        let kept = Arc::default();
        Self { kept, max }
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = &bytes[bytes.len().saturating_sub(self.max)..];
        let over = (kept.len() + bytes.len()).saturating_sub(self.max);
        kept.drain(..over);
        kept.extend(bytes);
    }

    /// What is kept, as text. A character that was cut in two is left out.
    pub(crate) fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let cut = bytes.len() == self.max;
        let is_inside = |it: &&u8| cut && **it & 0b1100_0000 == 0b1000_0000;
        let inside = bytes.iter().take(3).take_while(is_inside).count();
        String::from_utf8_lossy(&bytes[inside..]).into_owned()
    }
}

impl IsTerminal for Tail {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Tail {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for Tail {
    async fn ready(&mut self) {}
}

#[async_trait::async_trait]
impl OutputStream for Tail {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(CHUNK_BYTES)
    }
}

impl AsyncWrite for Tail {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.push(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_flood_the_end_is_kept() {
        for (max, parts, expected) in [
            (4, &["ab", "cd"][..], "abcd"),
            (4, &["abc", "def"], "cdef"),
            (4, &["abcdefgh"], "efgh"),
            (4, &["xé", "abc"], "abc"),
            (0, &["abc"], ""),
        ] {
            let tail = Tail::new(max);
            parts.iter().for_each(|it| tail.push(it.as_bytes()));
            assert_eq!(tail.text(), expected, "{parts:?}");
        }
    }
}
