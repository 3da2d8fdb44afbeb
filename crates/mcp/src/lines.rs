//! Lines of bounded length.

use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Bytes, perhaps none.
    Whole(Vec<u8>),
    /// It was longer than the limit; its bytes are gone.
    TooLong,
}

/// Reads lines and keeps at most `limit` bytes of one.
pub(crate) struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    limit: usize,
    too_long: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(input: R, limit: usize) -> Self {
        Self {
            input: BufReader::with_capacity(64 * 1024, input),
            line: Vec::new(),
            limit,
            too_long: false,
        }
    }

    /// The next line; `None` at the end. A last line needs no newline.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                let rest = !self.line.is_empty() || self.too_long;
                return Ok(rest.then(|| self.take()));
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..newline.unwrap_or(available.len())];
            if self.line.len() + part.len() > self.limit {
                self.too_long = true;
                self.line = Vec::new();
            }
            if !self.too_long {
                self.line.extend_from_slice(part);
            }
            let n_read = part.len() + usize::from(newline.is_some());
            std::pin::Pin::new(&mut self.input).consume(n_read);
            if newline.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.too_long) {
            return Line::TooLong;
        }
        Line::Whole(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_line_is_skipped_and_the_next_one_read() {
        let mut lines = Lines::new(&b"one\n123456\n\n12345\nlast"[..], 5);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            seen.push(line);
        }
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(
            seen,
            [
                whole("one"),
                Line::TooLong,
                whole(""),
                whole("12345"),
                whole("last")
            ]
        );
    }
}
