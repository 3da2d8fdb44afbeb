//! The words of a query.

use super::Fault;
use serde_json::Value;

/// The longest query.
const CHARS_MAX: usize = 100_000;

/// A word, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) what: What,
    /// In bytes.
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    /// A name or a keyword.
    Word(String),
    /// A name between backticks, which is no keyword.
    Quoted(String),
    Literal(Value),
    Parameter(String),
    /// One of the signs.
    Sign(&'static str),
}

/// Longer ones first.
const SIGNS: &[&str] = &[
    "<=", ">=", "<>", "=~", "..", "(", ")", "[", "]", "{", "}", ",", ".", ":", ";", "|", "+", "-",
    "*", "/", "%", "^", "=", "<", ">", "&", "!",
];

/// Line and column, both from 1.
pub(super) fn place(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    format!("(line {line}, column {column})")
}

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    if text.len() > CHARS_MAX {
        return Err(Fault(format!("a query has at most {CHARS_MAX} characters")));
    }
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        if rest.starts_with("/*") {
            let end = rest.find("*/").ok_or_else(|| open(text, at, "comment"))?;
            at += end + 2;
            continue;
        }
        let (what, length) = match first {
            '\'' | '"' => quoted(rest, first).ok_or_else(|| open(text, at, "text"))?,
            '`' => {
                let end = rest[1..].find('`').ok_or_else(|| open(text, at, "name"))?;
                (What::Quoted(rest[1..=end].to_owned()), end + 2)
            }
            '$' => {
                let length = 1 + word_length(&rest[1..]);
                (What::Parameter(rest[..length].to_owned()), length)
            }
            '0'..='9' => number(rest).ok_or_else(|| near(text, at, rest))?,
            it if it.is_alphabetic() || it == '_' => {
                let length = word_length(rest);
                (What::Word(rest[..length].to_owned()), length)
            }
            _ => {
                let sign = SIGNS.iter().find(|it| rest.starts_with(**it));
                let sign = sign.ok_or_else(|| near(text, at, &rest[..first.len_utf8()]))?;
                (What::Sign(sign), sign.len())
            }
        };
        all.push(Token {
            what,
            start: at,
            end: at + length,
        });
        at += length;
    }
    Ok(all)
}

fn open(text: &str, at: usize, what: &str) -> Fault {
    Fault(format!("a {what} is not closed {}", place(text, at)))
}

pub(super) fn near(text: &str, at: usize, word: &str) -> Fault {
    let word: String = word.chars().take(40).collect();
    Fault(format!(
        "syntax error at or near \"{word}\" {}",
        place(text, at)
    ))
}

fn word_length(text: &str) -> usize {
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    text.find(|it| !is_word(it)).unwrap_or(text.len())
}

fn quoted(text: &str, quote: char) -> Option<(What, usize)> {
    let mut content = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            it if it == quote => return Some((What::Literal(content.into()), at + 1)),
            '\\' => match chars.next()?.1 {
                'n' => content.push('\n'),
                't' => content.push('\t'),
                'r' => content.push('\r'),
                'u' => {
                    let digits: String = chars.by_ref().take(4).map(|it| it.1).collect();
                    let code = u32::from_str_radix(&digits, 16).ok()?;
                    content.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                }
                other => content.push(other),
            },
            other => content.push(other),
        }
    }
    None
}

fn number(text: &str) -> Option<(What, usize)> {
    if let Some(digits) = text.strip_prefix("0x") {
        let length = digits.find(|it: char| !it.is_ascii_hexdigit());
        let length = length.unwrap_or(digits.len());
        let value = i64::from_str_radix(&digits[..length], 16).ok()?;
        return Some((What::Literal(value.into()), length + 2));
    }
    let digits = |from: usize| {
        let rest = &text[from..];
        rest.find(|it: char| !it.is_ascii_digit())
            .unwrap_or(rest.len())
    };
    let mut length = digits(0);
    let mut is_whole = true;
    // `1..3` is a range, not a number.
    let after = &text[length..];
    if after.starts_with('.') && after[1..].starts_with(|it: char| it.is_ascii_digit()) {
        is_whole = false;
        length += 1 + digits(length + 1);
    }
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        let more = digits(length + 1 + sign);
        if more > 0 {
            is_whole = false;
            length += 1 + sign + more;
        }
    }
    let digits = &text[..length];
    let value = if is_whole {
        digits.parse::<i64>().ok()?.into()
    } else {
        Value::from(digits.parse::<f64>().ok().filter(|it| it.is_finite())?)
    };
    Some((What::Literal(value), length))
}
