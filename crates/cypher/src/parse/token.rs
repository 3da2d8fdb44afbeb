//! Words, numbers, texts and signs.

use crate::error::{Error, Position, Result};

/// The longest query, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 256 * 1024;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tok {
    /// A word without quotes: a name or a keyword.
    Word(String),
    /// A name in backticks.
    Quoted(String),
    /// Digits of a whole number, and their base.
    Int(String, u32),
    Float(f64),
    /// Something that starts like a number and is not one.
    NoNumber(String),
    Str(String),
    Param(String),
    Sign(&'static str),
    End,
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) tok: Tok,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Tok {
    /// As an error message shows it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Word(it) => format!("`{}`", shorten(it)),
            Self::Quoted(it) => format!("the name `{}`", shorten(it)),
            Self::Int(it, _) => format!("the number `{}`", shorten(it)),
            Self::Float(it) => format!("the number `{it}`"),
            Self::NoNumber(it) => format!("`{}`", shorten(it)),
            Self::Str(it) => format!("the text '{}'", shorten(it)),
            Self::Param(it) => format!("the parameter `${}`", shorten(it)),
            Self::Sign(it) => format!("`{it}`"),
            Self::End => "the end of the query".to_owned(),
        }
    }
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= 40 {
        return text.to_owned();
    }
    let short: String = text.chars().take(40).collect();
    format!("{short}…")
}

const SIGNS: &[&str] = &[
    "<=", ">=", "<>", "=~", "..", "+=", "(", ")", "[", "]", "{", "}", ",", ":", ";", ".", "|", "=",
    "<", ">", "+", "-", "*", "/", "%", "^", "&", "!",
];

struct Lexer<'a> {
    text: &'a str,
    pos: usize,
    tokens: Vec<Token>,
}

/// The words and signs of a query.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!(
            "the query has {} bytes: at most {TEXT_BYTES_MAX} are allowed; pass long values as parameters",
            text.len()
        );
        return Err(Error::limit("QueryTooLong", message));
    }
    let mut lexer = Lexer {
        text,
        pos: 0,
        tokens: Vec::new(),
    };
    while lexer.step()? {}
    Ok(lexer.tokens)
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.pos..).unwrap_or_default()
    }

    fn fail(&self, detail: &'static str, at: usize, message: impl Into<String>) -> Error {
        Error::syntax(detail, Position::of(self.text, at), message)
    }

    fn push(&mut self, start: usize, tok: Tok) {
        let end = self.pos;
        self.tokens.push(Token { tok, start, end });
    }

    /// Reads one token; false at the end.
    fn step(&mut self) -> Result<bool> {
        self.skip_blank()?;
        let start = self.pos;
        let Some(first) = self.rest().chars().next() else {
            self.push(start, Tok::End);
            return Ok(false);
        };
        let second = self.rest().chars().nth(1);
        match first {
            '\'' | '"' => {
                let text = self.string(first)?;
                self.push(start, Tok::Str(text));
            }
            '`' => {
                let name = self.quoted_name()?;
                self.push(start, Tok::Quoted(name));
            }
            '$' => {
                self.pos += 1;
                let name = match self.rest().chars().next() {
                    Some('`') => self.quoted_name()?,
                    Some(it) if is_word(it) => self.word(),
                    _ => {
                        let message = "`$` is not followed by the name of a parameter";
                        return Err(self.fail("UnexpectedSyntax", start, message));
                    }
                };
                self.push(start, Tok::Param(name));
            }
            it if it.is_ascii_digit() => {
                let tok = self.number()?;
                self.push(start, tok);
            }
            '.' if second.is_some_and(|it| it.is_ascii_digit()) => {
                let tok = self.number()?;
                self.push(start, tok);
            }
            it if it.is_alphabetic() || it == '_' => {
                let word = self.word();
                self.push(start, Tok::Word(word));
            }
            // The grammar allows these in arrows.
            '\u{00ad}'
            | '\u{2010}'..='\u{2015}'
            | '\u{2212}'
            | '\u{fe58}'
            | '\u{fe63}'
            | '\u{ff0d}' => {
                let previous = self.tokens.last().map(|it| &it.tok);
                let arrow = [")", "]", "<", "-"].map(Tok::Sign);
                if !previous.is_some_and(|it| arrow.contains(it)) {
                    let message = format!("unexpected character `{first}`: use `-`");
                    return Err(self.fail("InvalidUnicodeCharacter", start, message));
                }
                self.pos += first.len_utf8();
                self.push(start, Tok::Sign("-"));
            }
            _ => {
                let sign = SIGNS.iter().find(|it| self.rest().starts_with(**it));
                let Some(sign) = sign else {
                    let detail = if first.is_ascii() {
                        "UnexpectedSyntax"
                    } else {
                        "InvalidUnicodeCharacter"
                    };
                    return Err(self.fail(
                        detail,
                        start,
                        format!("unexpected character `{first}`"),
                    ));
                };
                self.pos += sign.len();
                self.push(start, Tok::Sign(sign));
            }
        }
        Ok(true)
    }

    fn skip_blank(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            if blank > 0 {
                self.pos += blank;
            } else if rest.starts_with("//") {
                self.pos += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let Some(end) = rest.find("*/") else {
                    let message = "the comment has no end: expected `*/`";
                    return Err(self.fail("UnexpectedSyntax", self.pos, message));
                };
                self.pos += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn word(&mut self) -> String {
        let rest = self.rest();
        let end = rest.find(|it| !is_word(it)).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default().to_owned();
        self.pos += end;
        word
    }

    fn quoted_name(&mut self) -> Result<String> {
        let start = self.pos;
        self.pos += 1;
        let mut name = String::new();
        loop {
            let rest = self.rest();
            let Some(end) = rest.find('`') else {
                let message = "the name has no end: expected a backtick";
                return Err(self.fail("UnexpectedSyntax", start, message));
            };
            name.push_str(rest.get(..end).unwrap_or_default());
            self.pos += end + 1;
            if !self.rest().starts_with('`') {
                return Ok(name);
            }
            name.push('`');
            self.pos += 1;
        }
    }

    fn string(&mut self, quote: char) -> Result<String> {
        let start = self.pos;
        self.pos += 1;
        let mut text = String::new();
        loop {
            let at = self.pos;
            let Some(it) = self.rest().chars().next() else {
                let message = format!("the text has no end: expected `{quote}`");
                return Err(self.fail("UnexpectedSyntax", start, message));
            };
            self.pos += it.len_utf8();
            if it == quote {
                return Ok(text);
            }
            if it != '\\' {
                text.push(it);
                continue;
            }
            let Some(escaped) = self.rest().chars().next() else {
                continue;
            };
            self.pos += escaped.len_utf8();
            text.push(match escaped {
                '\\' | '\'' | '"' | '`' => escaped,
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => self.unicode(at, 4)?,
                'U' => self.unicode(at, 8)?,
                _ => {
                    let message = format!("unknown escape `\\{escaped}` in a text");
                    return Err(self.fail("UnexpectedSyntax", at, message));
                }
            });
        }
    }

    fn unicode(&mut self, at: usize, n: usize) -> Result<char> {
        let code = |lexer: &Self, at: usize| {
            let digits = lexer.text.get(at..at + n)?;
            let valid = digits.bytes().all(|it| it.is_ascii_hexdigit());
            valid
                .then(|| u32::from_str_radix(digits, 16).ok())
                .flatten()
        };
        let mut found = code(self, self.pos);
        let mut end = self.pos + n;
        // Two halves of a character outside the basic plane.
        if let (4, Some(high @ 0xd800..=0xdbff)) = (n, found) {
            let second = self.text.get(end..end + 2) == Some("\\u");
            let low = second.then(|| code(self, end + 2)).flatten();
            found = match low {
                Some(low @ 0xdc00..=0xdfff) => {
                    end += 6;
                    Some(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))
                }
                _ => None,
            };
        }
        let Some(it) = found.and_then(char::from_u32) else {
            let message = format!("expected {n} hexadecimal digits of a character");
            return Err(self.fail("InvalidUnicodeLiteral", at, message));
        };
        self.pos = end;
        Ok(it)
    }

    fn number(&mut self) -> Result<Tok> {
        let start = self.pos;
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let lower = rest.get(..2).unwrap_or_default().to_ascii_lowercase();
        let radix = match lower.as_str() {
            "0x" => 16,
            "0o" => 8,
            _ => 10,
        };
        if radix != 10 {
            self.pos += 2;
            let digits = self.word();
            if digits.is_empty() || !digits.chars().all(|it| it.is_digit(radix)) {
                return Ok(self.no_number(start));
            }
            return Ok(Tok::Int(digits, radix));
        }
        let digits = |from: usize| {
            let rest = bytes.get(from..).unwrap_or_default();
            from + rest.iter().take_while(|it| it.is_ascii_digit()).count()
        };
        let mut end = digits(0);
        let mut is_float = false;
        let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        if bytes.get(end) == Some(&b'.') && is_digit(end + 1) {
            is_float = true;
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
            if is_digit(end + 1 + sign) {
                is_float = true;
                end = digits(end + 1 + sign);
            }
        }
        let number = rest.get(..end).unwrap_or_default().to_owned();
        let follows = rest.get(end..).and_then(|it| it.chars().next());
        if follows.is_some_and(is_word) {
            return Ok(self.no_number(start));
        }
        self.pos += end;
        if !is_float {
            return Ok(Tok::Int(number, 10));
        }
        let Ok(value) = number.parse::<f64>() else {
            return Ok(self.no_number(start));
        };
        if value.is_infinite() {
            let message = format!("the number `{}` is too large for a float", shorten(&number));
            return Err(self.fail("FloatingPointOverflow", start, message));
        }
        Ok(Tok::Float(value))
    }

    /// Reads everything that is written together: the parser knows whether a number was expected
    /// there.
    fn no_number(&mut self, start: usize) -> Tok {
        let rest = self.text.get(start..).unwrap_or_default();
        let end = rest
            .find(|it| !(is_word(it) || it == '.'))
            .unwrap_or(rest.len());
        self.pos = start + end;
        Tok::NoNumber(rest.get(..end).unwrap_or_default().to_owned())
    }
}

fn is_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}
