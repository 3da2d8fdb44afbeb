//! Where a passage belongs, as tokens: so that filters work inside a floor's full-text index.

use crate::NodeFilter;
use kenning_core::{Hash, Kind, Space};

/// The tokens of a passage: its space, its node's kind and project.
pub fn of(space: &Space, kind: Kind, project: &str) -> Vec<String> {
    vec![space_token(space), kind_token(kind), project_token(project)]
}

/// What a filter asks for: of each inner list, any one.
pub fn wanted(space: &Space, filter: &NodeFilter) -> Vec<Vec<String>> {
    let mut all = vec![vec![space_token(space)]];
    if !filter.kinds.is_empty() {
        all.push(filter.kinds.iter().map(|&kind| kind_token(kind)).collect());
    }
    if let Some(project) = &filter.project {
        all.push(vec![project_token(project)]);
    }
    all
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
