//! A document as a node: its row and its passages.

use super::cards::Card;
use kenning_audit::Draft;
use kenning_core::Kind;
use kenning_kernel::roots;
use kenning_search::passages;
use kenning_store::{Node, Passage};
use serde_json::{Map, Value};

/// The source of a project's documents, as `vault` is that of notes.
pub(crate) const PROJECT_SOURCE: &str = "project";

/// Where the content begins, after the frontmatter.
const BODY_START: &str = "bodyStart";

/// The node of a document. The body is the whole file.
pub(crate) fn draft(
    card: &Card,
    frontmatter: Map<String, Value>,
    path: &str,
    project: &str,
    text: String,
) -> Draft {
    let is_note = card.is_of_vault();
    let name = path.strip_prefix("vault:").unwrap_or(path);
    let mut props = Map::new();
    let mut put = |name: &str, value: Value| props.insert(name.to_owned(), value);
    put("path", name.into());
    let source = if is_note {
        roots::VAULT.name
    } else {
        PROJECT_SOURCE
    };
    put("source", source.into());
    put("type", card.doc_type.as_str().into());
    put("status", card.status.as_str().into());
    if !card.tags.is_empty() {
        put("tags", card.tags.clone().into());
    }
    if !card.aliases.is_empty() {
        put("aliases", card.aliases.clone().into());
    }
    if card.body_start > 0 {
        put(BODY_START, card.body_start.into());
    }
    if !frontmatter.is_empty() {
        put("frontmatter", Value::Object(frontmatter));
    }
    Draft {
        kind: Kind::Document,
        project: if is_note {
            String::new()
        } else {
            project.to_owned()
        },
        key: path.to_owned(),
        title: card.title.clone(),
        body: text,
        props,
    }
}

/// The passages of a document: of its content, found also by its title, tags and other names.
pub(crate) fn passages_of_card(card: &Card, text: &str) -> Vec<Passage> {
    found_by(
        &card.title,
        &card.tags,
        &card.aliases,
        card.description.as_deref(),
        card.body_start,
        text,
    )
}

/// The passages of a document by its node.
pub fn passages_of(node: &Node) -> Vec<Passage> {
    let list = |name: &str| -> Vec<String> {
        let values = node.props.get(name).and_then(Value::as_array);
        values
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(ToOwned::to_owned)
            .collect()
    };
    let start = node.props.get(BODY_START).and_then(Value::as_u64);
    let start = start.and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
    let description = node
        .props
        .get("frontmatter")
        .and_then(|it| it.get("description"));
    let description = description.and_then(Value::as_str);
    found_by(
        &node.title,
        &list("tags"),
        &list("aliases"),
        description,
        start,
        &node.body,
    )
}

fn found_by(
    title: &str,
    tags: &[String],
    aliases: &[String],
    description: Option<&str>,
    start: usize,
    text: &str,
) -> Vec<Passage> {
    let words = [title]
        .into_iter()
        .chain(aliases.iter().map(String::as_str))
        .chain(tags.iter().map(String::as_str));
    let title = words.chain(description).collect::<Vec<_>>().join(" ");
    let content = text.get(start..).unwrap_or(text);
    let start = text.len() - content.len();
    let mut all = passages(&title, content);
    for passage in &mut all {
        passage.start += start as u64;
    }
    all
}
