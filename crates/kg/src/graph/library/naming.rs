//! Documents and links as the graph crate names them.

use super::super::cards::{self, Card, CardLink};
use super::Doc;
use kenning_graph::{Link, Named, Origin, Relation};

pub(in crate::graph) fn path_for_id(path: &str, card: &Card) -> String {
    let in_docs = cards::beneath(path, &card.root);
    if card.is_of_vault() {
        format!("vault/{in_docs}")
    } else {
        in_docs.to_owned()
    }
}

pub(in crate::graph) fn named(doc: &Doc) -> Named<'_> {
    let path = doc.path.strip_prefix("vault:").unwrap_or(&doc.path);
    Named {
        id: &doc.id,
        path,
        docs_path: cards::beneath(&doc.path, &doc.card.root),
        title: &doc.card.title,
        heading: doc.card.heading.as_deref(),
        aliases: &doc.card.aliases,
    }
}

pub(in crate::graph) fn origin(doc: &Doc) -> Origin<'_> {
    let is_note = doc.card.is_of_vault();
    Origin {
        path: doc.path.strip_prefix("vault:").unwrap_or(&doc.path),
        docs_root: if is_note { "" } else { &doc.card.root },
        is_note,
    }
}

pub(in crate::graph) fn as_link(link: &CardLink) -> Link {
    Link {
        target: link.target.clone(),
        fragment: link.fragment.clone(),
        text: String::new(),
        relation: Relation::of_key(link.relation()),
        is_wiki: link.is_wiki,
        context: String::new(),
        line: link.line,
    }
}
