//! The full-text index: what is written into it and how it is asked.

use kenning_core::{Hash, Kind, Space};
use kenning_store::TextQuery;

/// The tokens that stand for where a passage belongs.
pub(crate) fn scope(space: &Space, kind: Kind, project: &str) -> String {
    format!(
        "{} {} {}",
        space_token(space),
        kind_token(kind),
        project_token(project)
    )
}

fn space_token(space: &Space) -> String {
    format!("s:{space}")
}

fn kind_token(kind: Kind) -> String {
    format!("k:{kind}")
}

/// A project is a path with any characters; its hash is a token.
fn project_token(project: &str) -> String {
    format!("p:{}", &Hash::of(project.as_bytes()).to_string()[..16])
}

/// The query in FTS5's language. Every token is quoted, so nothing in it is an operator.
pub(crate) fn query(space: &Space, query: &TextQuery) -> String {
    let mut text = format!("scope : {}", quoted(&space_token(space)));
    if !query.filter.kinds.is_empty() {
        let kinds = query.filter.kinds.iter().map(|&kind| kind_token(kind));
        text += &format!(" AND scope : ({})", any(kinds));
    }
    if let Some(project) = &query.filter.project {
        text += &format!(" AND scope : {}", quoted(&project_token(project)));
    }
    text + &format!(
        " AND {{title tokens}} : ({})",
        any(query.tokens.iter().cloned())
    )
}

fn any(tokens: impl Iterator<Item = String>) -> String {
    tokens
        .map(|token| quoted(&token))
        .collect::<Vec<_>>()
        .join(" OR ")
}

fn quoted(token: &str) -> String {
    format!("\"{}\"", token.replace('"', "\"\"").replace('\0', ""))
}
