//! Mutates inputs without knowing their format, except JSON.

use crate::Source;
use serde_json::Value;

/// The longest input: limits on size have their own tests.
pub const INPUT_BYTES_MAX: usize = 256 * 1024;

/// Bytes that no text in UTF-8 has, and some that it has where nobody expects them.
const BAD_UTF8: &[&[u8]] = &[
    b"\xff",
    b"\xc3",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xf8\x88\x80\x80\x80",
    b"\\ud800",
    b"\0",
    b"\xef\xbb\xbf",
];

/// Turns one bit over. Nothing happens to nothing.
pub fn flip_bit(input: &mut [u8], source: &mut Source) {
    if !input.is_empty() {
        let at = source.below(input.len());
        input[at] ^= 1 << source.below(8);
    }
}

/// Leaves only a beginning.
pub fn cut_short(input: &mut Vec<u8>, source: &mut Source) {
    input.truncate(source.below(input.len()));
}

/// Goes on with the end of another one from somewhere on.
pub fn go_on_with(input: &mut Vec<u8>, other: &[u8], source: &mut Source) {
    cut_short(input, source);
    let from = source.below(other.len());
    input.extend_from_slice(&other[from..]);
}

/// Puts in what is no text.
pub fn insert_bad_utf8(input: &mut Vec<u8>, source: &mut Source) {
    let at = source.below(input.len());
    let bad = *source.pick(BAD_UTF8);
    input.splice(at..at, bad.iter().copied());
}

/// JSON in so many arrays or objects; or the beginning of such, if it is not to be closed.
pub fn nested(inner: &str, depth: usize, is_closed: bool, source: &mut Source) -> String {
    let (open, close) = *source.pick(&[("[", "]"), ("{\"a\":", "}")]);
    let n_closed = if is_closed { depth } else { 0 };
    format!("{}{inner}{}", open.repeat(depth), close.repeat(n_closed))
}

/// The input with a few things changed.
pub fn mutated(
    mut input: Vec<u8>,
    others: &[Vec<u8>],
    words: &[&str],
    source: &mut Source,
) -> Vec<u8> {
    let n = 1 + source.below(5);
    for _ in 0..n {
        let as_json = source.one_in(3) && in_json(&mut input, source);
        if !as_json {
            in_bytes(&mut input, others, words, source);
        }
        input.truncate(INPUT_BYTES_MAX);
    }
    input
}

/// A range of the input, mostly short.
fn range(input: &[u8], source: &mut Source) -> std::ops::Range<usize> {
    let from = source.below(input.len() + 1);
    let most = if source.one_in(4) { input.len() } else { 16 };
    let to = (from + source.below(most + 1)).min(input.len());
    from..to
}

fn in_bytes(input: &mut Vec<u8>, others: &[Vec<u8>], words: &[&str], source: &mut Source) {
    let at = source.below(input.len() + 1);
    match source.below(13) {
        0 | 1 if !input.is_empty() => flip_bit(input, source),
        2 if !input.is_empty() => {
            let at = source.below(input.len());
            input[at] = source.byte();
        }
        3 => input.truncate(at),
        4 => {
            let range = range(input, source);
            input.drain(range);
        }
        5 => {
            let part = input[range(input, source)].to_vec();
            input.splice(at..at, part);
        }
        6 => {
            // Many times the same: what is quadratic, and what is deep.
            let part = input[range(input, source)].to_vec();
            let room = INPUT_BYTES_MAX.saturating_sub(input.len());
            let most = room / part.len().max(1);
            let n = (*source.pick(&[2, 10, 100, 130, 1_000, 6_000, 30_000])).min(most);
            input.splice(at..at, part.repeat(n));
        }
        7 if !others.is_empty() => {
            let other = source.pick(others);
            let part = other[range(other, source)].to_vec();
            input.splice(at..at, part);
        }
        8 if !others.is_empty() => {
            let other = source.pick(others);
            go_on_with(input, other, source);
        }
        9 => {
            let part = source.odd_text().as_bytes().to_vec();
            input.splice(at..at, part);
        }
        10 => {
            let range = range(input, source);
            let part = source.odd_number().as_bytes().to_vec();
            input.splice(range, part);
        }
        _ if !words.is_empty() => {
            let part = source.pick(words).as_bytes().to_vec();
            let range = if source.one_in(2) {
                at..at
            } else {
                range(input, source)
            };
            input.splice(range, part);
        }
        _ => {
            let part = source.bytes(4);
            input.splice(at..at, part);
        }
    }
}

/// The same for a value somewhere in a JSON text; false if it is none.
fn in_json(input: &mut Vec<u8>, source: &mut Source) -> bool {
    let Ok(mut value) = serde_json::from_slice::<Value>(input) else {
        return false;
    };
    const MARK: &str = "\u{e000}here\u{e000}";
    // Walks down at random, and puts a mark where it stops.
    let mut place = &mut value;
    while !source.one_in(4) {
        let n = match &*place {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        };
        if n == 0 {
            break;
        }
        let at = source.below(n);
        place = match place {
            Value::Array(items) => &mut items[at],
            Value::Object(fields) => fields.values_mut().nth(at).expect("counted"),
            _ => unreachable!("the others have no parts"),
        };
    }
    let old = std::mem::replace(place, Value::from(MARK)).to_string();
    let new = match source.below(7) {
        0 => source.json(3),
        1 => source.odd_number().to_owned(),
        2 => Value::from(source.text()).to_string(),
        3 => {
            let depth = source.depth();
            nested(&old, depth, true, source)
        }
        4 => {
            let n = source.below(50);
            format!("[{}]", vec![old; n].join(","))
        }
        5 => {
            let unit = source.odd_text();
            let n = source.below(20_000);
            Value::from(unit.repeat(n)).to_string()
        }
        // Two of one name.
        _ => format!("{old},\"{}\":{}", source.word(), source.json(1)),
    };
    let marked = Value::from(MARK).to_string();
    *input = value.to_string().replacen(&marked, &new, 1).into_bytes();
    true
}
