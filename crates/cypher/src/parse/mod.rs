//! From text to [`crate::ast`], by recursive descent.
//!
//! Nesting is bounded by [`DEPTH_MAX`], the text by [`token::TEXT_BYTES_MAX`]. Every error names the place,
//! what was found and what was expected.

mod clauses;
mod expressions;
mod patterns;
pub(crate) mod token;

use crate::ast::{Mode, Name, Query};
use crate::error::{Error, Position, Result};
use token::{Tok, Token};

/// How deep expressions, patterns and subqueries may be in one another.
pub(crate) const DEPTH_MAX: usize = 100;

pub(crate) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    /// Links of chains, beyond two each.
    links: usize,
    /// Inside `EXISTS { … }` and `COUNT { … }`.
    in_subquery: bool,
}

static END: Token = Token {
    tok: Tok::End,
    start: usize::MAX,
    end: usize::MAX,
};

/// Reads a query.
pub(crate) fn parse(text: &str) -> Result<Query> {
    let tokens = token::tokens(text)?;
    let mut parser = Parser {
        text,
        tokens,
        next: 0,
        depth: 0,
        links: 0,
        in_subquery: false,
    };
    let mode = if parser.eat_word("EXPLAIN") {
        Mode::Explain
    } else if parser.eat_word("PROFILE") {
        Mode::Profile
    } else {
        Mode::Run
    };
    let union = parser.union()?;
    parser.eat_sign(";");
    if parser.peek() != &Tok::End {
        return Err(parser.unexpected("the end of the query"));
    }
    Ok(Query { mode, union })
}

impl<'a> Parser<'a> {
    fn token_at(&self, ahead: usize) -> &Token {
        self.tokens.get(self.next + ahead).unwrap_or(&END)
    }

    fn peek(&self) -> &Tok {
        &self.token_at(0).tok
    }

    fn peek_at(&self, ahead: usize) -> &Tok {
        &self.token_at(ahead).tok
    }

    /// The offset of the next token.
    fn here(&self) -> usize {
        self.token_at(0).start.min(self.text.len())
    }

    fn advance(&mut self) {
        self.next += 1;
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Tok::Sign(it) if *it == sign)
    }

    fn is_sign_at(&self, ahead: usize, sign: &str) -> bool {
        matches!(self.peek_at(ahead), Tok::Sign(it) if *it == sign)
    }

    fn eat_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.next += usize::from(found);
        found
    }

    fn expect_sign(&mut self, sign: &str) -> Result<()> {
        if self.eat_sign(sign) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{sign}`")))
    }

    fn is_word(&self, word: &str) -> bool {
        self.is_word_at(0, word)
    }

    fn is_word_at(&self, ahead: usize, word: &str) -> bool {
        matches!(self.peek_at(ahead), Tok::Word(it) if it.eq_ignore_ascii_case(word))
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.next += usize::from(found);
        found
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{word}`")))
    }

    /// A name: a word, keywords included, or one in backticks.
    fn name(&mut self, what: &str) -> Result<Name> {
        let at = self.here();
        match self.peek().clone() {
            Tok::Word(text) | Tok::Quoted(text) => {
                self.advance();
                Ok(Name { text, at })
            }
            _ => Err(self.unexpected(what)),
        }
    }

    fn fail(&self, detail: &'static str, at: usize, message: impl Into<String>) -> Error {
        Error::syntax(detail, Position::of(self.text, at), message)
    }

    fn unexpected(&self, expected: &str) -> Error {
        let found = self.peek().describe();
        let message = format!("found {found}, expected {expected}");
        self.fail("UnexpectedSyntax", self.here(), message)
    }

    /// Runs a part that may contain itself.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            let message = format!("the query is nested deeper than {DEPTH_MAX} levels");
            let at = Position::of(self.text, self.here());
            return Err(Error::limit("QueryTooDeep", message).at(at));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// The text between two offsets, as a column shows it.
    fn written(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default().trim()
    }

    /// Where the last token ended.
    fn end_of_last(&self) -> usize {
        let last = self.next.checked_sub(1).and_then(|it| self.tokens.get(it));
        last.map_or(0, |it| it.end)
    }
}
