//! What an answer says beside its rows: names that nothing has, and which were perhaps meant.

use crate::graph::Graph;
use kenning_cypher::Unknown;
use std::sync::Arc;

/// Names that are listed where none is near.
const LISTED_MAX: usize = 8;

/// One sentence for each name in a query that nothing has.
pub(crate) fn notes(graph: &Graph, unknown: &[Unknown]) -> Vec<String> {
    let [labels, types] = crate::counts(graph);
    let [labels, types] = [labels, types].map(|mut counted| {
        counted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        counted.into_iter().map(|it| it.0).collect::<Vec<_>>()
    });
    let note = |unknown: &Unknown| match unknown {
        Unknown::Label(name) => format!(
            "no node has the label `{name}`{}",
            proposed(name, &labels, "CALL kenning.labels()")
        ),
        Unknown::Type(name) => format!(
            "no relationship has the type `{name}`{}",
            proposed(name, &types, "CALL kenning.types()")
        ),
        Unknown::Property(name) => {
            let near = nearest(name, graph.keys.all());
            let near = near.map(|it| format!(": did you mean `{it}`?"));
            let near = near.unwrap_or_else(|| {
                ": `RETURN keys(n)` lists the properties of a node `n`".to_owned()
            });
            format!("nothing has a property `{name}`{near}")
        }
    };
    unknown.iter().map(note).collect()
}

/// The name that was perhaps meant; else the most frequent ones, and what lists all.
fn proposed(name: &str, known: &[Arc<str>], all: &str) -> String {
    if let Some(near) = nearest(name, known) {
        return format!(": did you mean `{near}`?");
    }
    let listed: Vec<String> = known
        .iter()
        .take(LISTED_MAX)
        .map(|it| format!("`{it}`"))
        .collect();
    match (listed.is_empty(), known.len() > LISTED_MAX) {
        (true, _) => ": the graph has none yet".to_owned(),
        (false, false) => format!(": there are {}", listed.join(", ")),
        (false, true) => format!(": there are {} and others: `{all}`", listed.join(", ")),
    }
}

/// The most similar of some names, if one is similar.
fn nearest<'a>(name: &str, known: &'a [Arc<str>]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let scored = known.iter().map(|it| {
        let lower = it.to_lowercase();
        // `FUNCTIONS` is meant as `Function`.
        let is_part = lower.len() > 2 && (name.starts_with(&lower) || lower.starts_with(&name));
        let score = strsim::jaro_winkler(&name, &lower) + if is_part { 0.1 } else { 0.0 };
        (it, score)
    });
    let (best, score) = scored.max_by(|a, b| a.1.total_cmp(&b.1).then_with(|| b.0.cmp(a.0)))?;
    (score >= 0.82).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_is_found_and_no_far_one() {
        let known = ["Function", "Class", "Person", "CALLS", "DEPENDS_ON", "name"];
        let known: Vec<Arc<str>> = known.into_iter().map(Arc::from).collect();
        for (name, meant) in [
            ("Funktion", Some("Function")),
            ("functions", Some("Function")),
            ("Persons", Some("Person")),
            ("DEPEND_ON", Some("DEPENDS_ON")),
            ("CALL", Some("CALLS")),
            ("nmae", Some("name")),
            ("Zebra", None),
            ("x", None),
        ] {
            assert_eq!(nearest(name, &known), meant, "{name}");
        }
    }
}
