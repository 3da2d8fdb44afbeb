//! Inputs that once found something, or that reach deep: one a line, with the reason above.
//!
//! A line is bytes: `\n`, `\r`, `\t`, `\\`, `\xNN` for what cannot be seen, and `\{N:text}` for `text`
//! so many times.

use std::path::PathBuf;

/// Where the files are.
pub fn folder() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testing/corpora/fuzz"
    ))
}

/// The kept inputs of a target, in the order of the file; none if there is no file.
///
/// # Errors
/// When a line cannot be read.
pub fn read_kept(target: &str) -> Result<Vec<Vec<u8>>, String> {
    let path = folder().join(format!("{target}.txt"));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, it)| !it.is_empty() && !it.starts_with("# "));
    lines
        .map(|(at, line)| read(line).map_err(|why| format!("{target}.txt, line {}: {why}", at + 1)))
        .collect()
}

/// Adds an input with its reason.
///
/// # Errors
/// When the file cannot be written.
pub fn keep(target: &str, why: &str, input: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let path = folder().join(format!("{target}.txt"));
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?;
    let why: String = why
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(200)
        .collect();
    writeln!(file, "# {why}\n{}", write_literal(input))
}

/// Decodes a line into bytes.
///
/// # Errors
/// When it is not written as lines are.
pub fn read(line: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut rest = line;
    while let Some((head, tail)) = rest.split_once('\\') {
        out.extend_from_slice(head.as_bytes());
        let kind = tail.chars().next().ok_or("it ends with a lone `\\`")?;
        rest = &tail[kind.len_utf8()..];
        match kind {
            'n' => out.push(b'\n'),
            'r' => out.push(b'\r'),
            't' => out.push(b'\t'),
            '\\' => out.push(b'\\'),
            'x' => {
                let digits = rest.get(..2).ok_or("`\\x` needs two digits")?;
                let byte = u8::from_str_radix(digits, 16);
                out.push(byte.map_err(|_| format!("`\\x{digits}` is no byte"))?);
                rest = &rest[2..];
            }
            '{' => {
                let (count, tail) = rest.split_once(':').ok_or("`\\{` needs a count and `:`")?;
                let count: usize = count.parse().map_err(|_| "`\\{` needs a count")?;
                let end = end_of_repeat(tail).ok_or("`\\{` is not closed")?;
                out.extend(read(&tail[..end])?.repeat(count));
                rest = &tail[end + 1..];
            }
            '}' => out.push(b'}'),
            other => return Err(format!("`\\{other}` means nothing")),
        }
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// Where the `}` is that no `\` stands before.
fn end_of_repeat(text: &str) -> Option<usize> {
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            b'}' => return Some(at),
            _ => {}
        }
    }
    None
}

/// The line of these bytes.
pub fn write_literal(input: &[u8]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < input.len() {
        if let Some((length, count)) = find_repetition(&input[at..]) {
            let unit = plain(&input[at..at + length]).replace('}', "\\}");
            out += &format!("\\{{{count}:{unit}}}");
            at += length * count;
            continue;
        }
        let next = &input[at..(at + 4).min(input.len())];
        let first = next.utf8_chunks().next();
        let first = first.and_then(|it| it.valid().chars().next());
        let end = at + first.map_or(1, char::len_utf8);
        out += &plain(&input[at..end]);
        at = end;
    }
    // A line that began so would be taken for a reason, and an empty one for none.
    match out.strip_prefix('#') {
        Some(rest) => format!("\\x23{rest}"),
        None if out.is_empty() => "\\{0:x}".to_owned(),
        None => out,
    }
}

/// The length and the count of a repetition at this position.
fn find_repetition(input: &[u8]) -> Option<(usize, usize)> {
    (1..=16.min(input.len() / 2)).find_map(|length| {
        let unit = &input[..length];
        let count = input
            .chunks_exact(length)
            .take_while(|it| *it == unit)
            .count();
        (count * length >= 32 && count >= 4 && std::str::from_utf8(unit).is_ok())
            .then_some((length, count))
    })
}

fn plain(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for it in chunk.valid().chars() {
            match it {
                '\n' => out += "\\n",
                '\r' => out += "\\r",
                '\t' => out += "\\t",
                '\\' => out += "\\\\",
                it if it.is_control() || !it.is_ascii() && !it.is_alphanumeric() => {
                    let mut buffer = [0; 4];
                    for byte in it.encode_utf8(&mut buffer).bytes() {
                        out += &format!("\\x{byte:02x}");
                    }
                }
                it => out.push(it),
            }
        }
        for byte in chunk.invalid() {
            out += &format!("\\x{byte:02x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn a_line_reads_back_what_was_written() {
        let mut source = Source::new(1);
        for _ in 0..1_000 {
            let mut input = match source.below(3) {
                0 => {
                    let n = source.below(40);
                    source.bytes(n)
                }
                1 => source.text().into_bytes(),
                _ => source.json(3).into_bytes(),
            };
            if source.one_in(2) {
                let unit = source.text().into_bytes();
                input.extend(unit.repeat(source.below(100)));
            }
            let line = write_literal(&input);
            assert!(!line.is_empty() && !line.starts_with("# ") && !line.contains('\n'));
            assert_eq!(read(&line).as_deref(), Ok(&input[..]), "{line}");
        }
        assert_eq!(write_literal(b"RETURN 1").as_str(), "RETURN 1");
        let long = format!("RETURN 1{}", "*1".repeat(6_000));
        assert_eq!(write_literal(long.as_bytes()), "RETURN \\{6000:1*}1");
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for bad in ["\\", "\\q", "\\x1", "\\xzz", "\\{3", "\\{3:a", "\\{x:a}"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
