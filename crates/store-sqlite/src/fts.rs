//! The full-text index: what is written into it and how it is asked.

use kenning_core::{Kind, Space};
use kenning_store::{TextQuery, lexeme, lexemes, scope_tokens};

/// The tokens that stand for where a passage belongs.
pub(crate) fn scope(space: &Space, kind: Kind, project: &str) -> String {
    scope_tokens::of(space, kind, project).join(" ")
}

/// Tokens joined by spaces, as the index takes them.
pub(crate) fn indexed(tokens: &str) -> String {
    lexemes(tokens).collect::<Vec<_>>().join(" ")
}

/// The query in FTS5's language. Every token is quoted, so nothing in it is an operator.
pub(crate) fn query(space: &Space, query: &TextQuery) -> String {
    let wanted: Vec<String> = query.tokens.iter().map(|it| lexeme(it)).collect();
    let mut text = format!("{{title tokens}} : ({})", any(&wanted));
    for tokens in scope_tokens::wanted(space, &query.filter) {
        text += &format!(" AND scope : ({})", any(&tokens));
    }
    text
}

fn any(tokens: &[String]) -> String {
    let quoted: Vec<String> = tokens.iter().map(|token| quoted(token)).collect();
    quoted.join(" OR ")
}

fn quoted(token: &str) -> String {
    format!("\"{}\"", token.replace('"', "\"\""))
}
