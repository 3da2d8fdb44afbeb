//! Lines of a file from outside, each of a bounded length.

use kenning_core::Result;
use std::io::{BufRead, Read};

/// Why a line could not be read.
pub(super) enum LineFault {
    TooLong,
    Unreadable(std::io::Error),
}

/// Reads the next line of at most this many bytes, and returns its length; 0 at the end.
pub(super) fn read_line(
    input: &mut (impl BufRead + ?Sized),
    line: &mut String,
    bytes_max: u64,
) -> Result<usize, LineFault> {
    let mut bytes = std::mem::take(line).into_bytes();
    bytes.clear();
    let read = Read::take(&mut *input, bytes_max + 1).read_until(b'\n', &mut bytes);
    let n_bytes = read.map_err(LineFault::Unreadable)?;
    if n_bytes as u64 > bytes_max {
        return Err(LineFault::TooLong);
    }
    let not_utf8 =
        |cause| LineFault::Unreadable(std::io::Error::new(std::io::ErrorKind::InvalidData, cause));
    *line = String::from_utf8(bytes).map_err(not_utf8)?;
    Ok(n_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, repeat};

    #[test]
    fn a_line_without_an_end_is_refused_at_its_limit() {
        let mut line = String::new();
        let mut endless = BufReader::new(repeat(b'x'));
        let fault = read_line(&mut endless, &mut line, 100_000);
        assert!(matches!(fault, Err(LineFault::TooLong)));
        let mut input = "12345\n1234567\nlast".as_bytes();
        let mut next = || read_line(&mut input, &mut line, 6);
        assert!(matches!(next(), Ok(6)));
        assert!(matches!(next(), Err(LineFault::TooLong)));
        let mut rest = "last".as_bytes();
        assert!(matches!(read_line(&mut rest, &mut line, 6), Ok(4)));
        assert_eq!(line, "last");
        assert!(matches!(read_line(&mut rest, &mut line, 6), Ok(0)));
        let mut bytes: &[u8] = &[0xff, b'\n'];
        let fault = read_line(&mut bytes, &mut line, 6);
        assert!(matches!(fault, Err(LineFault::Unreadable(_))));
    }
}
