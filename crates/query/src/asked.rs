//! What a text asks for, before it is asked.

use kenning_cypher::Statement;

/// Words that a reading statement begins with.
const READING: [&str; 5] = ["OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL"];

/// Labels of code, beside those of everything else.
const CODE: [&str; 14] = [
    "Class",
    "Constant",
    "Enum",
    "External",
    "File",
    "Function",
    "Import",
    "Interface",
    "Macro",
    "Method",
    "Module",
    "Struct",
    "Trait",
    "TypeAlias",
];

/// Types of relationships of code.
const CODE_LINKS: [&str; 7] = [
    "CALLS",
    "EXTENDS",
    "IMPLEMENTS",
    "IMPORTS",
    "MAY_CALL",
    "TESTS",
    "USES",
];

/// Whether a text that may be words of a search is a statement in Cypher. `return policy` would be one too, so
/// words that people search for count only in capital letters.
pub fn is_statement(text: &str) -> bool {
    let text = text.trim_start();
    let first = text.split(|it: char| !it.is_ascii_alphabetic()).next();
    let first = first.unwrap_or_default();
    let is_reading = first.eq_ignore_ascii_case("MATCH") || READING.contains(&first);
    is_reading && Statement::parse(text).is_ok()
}

/// Whether a query asks for code: it names a label or a relationship of code, `(f:Function)` or `-[:CALLS]->`, or
/// it names none and asks for everything.
pub fn names_code(text: &str) -> bool {
    let is_bare = !text.contains(':') && text.to_ascii_uppercase().contains("MATCH");
    let mut named = CODE.iter().chain(&CODE_LINKS);
    is_bare || named.any(|it| names_label(text, it))
}

/// Whether a label may be named in a query: it stands after a colon, be it in a text.
pub(crate) fn names_label(text: &str, label: &str) -> bool {
    text.split(':').skip(1).any(|it| {
        let it = it.trim_start().trim_start_matches('`');
        let end = it.find(|it: char| !it.is_alphanumeric() && it != '_');
        let named = it.get(..end.unwrap_or(it.len())).unwrap_or_default();
        named.eq_ignore_ascii_case(label)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_told_from_words() {
        for text in [
            "MATCH (n) RETURN n",
            "  match (n:Document) where n.title = 'a' return n.title",
            "OPTIONAL MATCH (n) RETURN count(n)",
            "UNWIND [1, 2] AS x RETURN x",
            "WITH 1 AS x RETURN x",
            "RETURN 1",
            "CALL kenning.search('a') YIELD node RETURN node",
        ] {
            assert!(is_statement(text), "{text}");
        }
        for text in [
            "",
            "user management",
            "return policy",
            "match making",
            "MATCH (n",
            "call me",
            "with or without",
            "MATCH (n) DELETE n",
            "CREATE (n)",
            "matching (brackets)",
        ] {
            assert!(!is_statement(text), "{text}");
        }
    }

    #[test]
    fn labels_of_code_are_seen() {
        for text in [
            "MATCH (f:Function) RETURN f",
            "MATCH (f : `Method` {name: 'x'}) RETURN f",
            "MATCH (n) WHERE n:class RETURN n",
            "MATCH (d:Document)--(f:File) RETURN f",
            "MATCH (a)-[:CALLS]->(b) RETURN a.name, b.name",
            "MATCH (n) RETURN labels(n), count(n)",
        ] {
            assert!(names_code(text), "{text}");
        }
        for text in [
            "MATCH (d:Document {kind: 'x'}) RETURN d",
            "MATCH (n:Functional) RETURN n",
            "RETURN {a: 1}",
            "",
        ] {
            assert!(!names_code(text), "{text}");
        }
    }
}
