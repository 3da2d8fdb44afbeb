//! Writers and readers that count, hash and remember errors.

use kenning_core::{Error, Result};
use kenning_text::hex;
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};

/// Bytes that are moved at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// Counts and hashes what it passes on, up to a number of bytes.
pub(crate) struct Measured<W> {
    out: W,
    hasher: Sha256,
    n_bytes: u64,
    max_bytes: u64,
    what: String,
}

/// What passed through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) n_bytes: u64,
    pub(crate) sha256: String,
}

impl<W> Measured<W> {
    /// `what` names the thing in the error about its size.
    pub(crate) fn new(out: W, what: impl Into<String>, max_bytes: u64) -> Self {
        Self {
            out,
            hasher: Sha256::new(),
            n_bytes: 0,
            max_bytes,
            what: what.into(),
        }
    }

    pub(crate) fn measure(self) -> Measure {
        Measure {
            n_bytes: self.n_bytes,
            sha256: hex::encode(&self.hasher.finalize()),
        }
    }
}

impl<W: Write> Write for Measured<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.n_bytes += n as u64;
        if self.n_bytes > self.max_bytes {
            return Err(io::Error::other(too_large(&self.what, self.max_bytes)));
        }
        self.hasher.update(bytes.get(..n).unwrap_or_default());
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Moves everything, and says how much it was.
pub(crate) fn copy(from: &mut dyn Read, to: &mut dyn Write) -> Result<u64> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut n_bytes = 0;
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => return Ok(n_bytes),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(unwrap_error(error, "a file could not be read")),
        };
        to.write_all(buffer.get(..n).unwrap_or_default())
            .map_err(|error| unwrap_error(error, "a file could not be written"))?;
        n_bytes += n as u64;
    }
}

/// Our own error if a reader or writer had to wrap one, else one with this message.
pub(crate) fn unwrap_error(error: io::Error, message: &str) -> Error {
    match error.downcast::<Error>() {
        Ok(ours) => ours,
        Err(other) => Error::unavailable(message).because(other),
    }
}

pub(crate) fn too_large(what: &str, max_bytes: u64) -> Error {
    Error::too_large(format!("{what} is larger than {max_bytes} bytes"))
}
