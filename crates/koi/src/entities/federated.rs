//! What other nodes of the network state: each thing that a peer provides is one statement.
//!
//! It adds to the graph and takes nothing away. Of an entity that is ours it says nothing but that the peer
//! names it too, and what it relates it to; names and descriptions of the peer are only kept of entities that
//! nobody here states.

use super::resolve::{Meanings, by_uri};
use super::said::{
    DESCRIPTION_CHARS_MAX, SAID, Said, Settled, document_key, forget_text, put_said, put_stated,
    unset_said,
};
use crate::Koi;
use crate::inert::line as inert_line;
use kenning_audit::{Passages, Tx};
use kenning_core::{Result, Space};
use kenning_store::{Node, ReadTx};
use serde_json::Value;
use std::collections::HashSet;

/// The source of what peers state.
pub(crate) const KOI_NET: &str = "koi-net";

/// What a peer states is an entity that somebody here states too.
pub(crate) const SAME_AS: &str = "same_as";

/// Whom a stated entity is, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CrossReference {
    /// `same_as`, `related_to` or `unresolved`.
    pub(crate) relation: &'static str,
    /// The entity.
    pub(crate) uri: Option<String>,
    pub(crate) confidence: f64,
}

/// Whether somebody here states an entity, and not only peers.
pub(crate) fn is_ours(node: &Node) -> bool {
    let source = node.props.get("source").and_then(Value::as_str);
    node.props.contains_key("path") || source != Some(KOI_NET)
}

/// Whether somebody here states the entity that has this URI.
pub(crate) fn is_stated_here(tx: &dyn ReadTx, uri: &str) -> Result<bool> {
    Ok(by_uri(tx, uri)?.is_some_and(|it| is_ours(&it)))
}

impl Koi {
    /// Finds out whom a peer's statement means; the first entity is the one that it is about.
    pub(crate) fn settle_federated(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        meanings: &Meanings,
        said: &Said,
    ) -> Result<(Settled, CrossReference)> {
        let (mut settled, outcome) = self.settle_statement(space, tx, meanings, said)?;
        // A peer cannot make two of our entities one.
        settled.merges.clear();
        let mut is_ours_too = false;
        let about = outcome.entities.first().map(|it| it.uri.clone());
        for thing in &mut settled.things {
            if is_stated_here(tx, &thing.uri)? {
                thing.aliases.clear();
                thing.description.clear();
                is_ours_too |= about.as_ref() == Some(&thing.uri);
            } else {
                thing.description = inert_line(&thing.description, DESCRIPTION_CHARS_MAX);
            }
        }
        let first = outcome.entities.first();
        let proposed = outcome
            .proposals
            .iter()
            .find(|it| Some(&it.from_uri) == about.as_ref());
        let found = match (first, proposed) {
            (Some(first), _) if is_ours_too => CrossReference {
                relation: SAME_AS,
                uri: about,
                confidence: first.confidence,
            },
            (_, Some(proposed)) => CrossReference {
                relation: "related_to",
                uri: Some(proposed.into_uri.clone()),
                confidence: proposed.confidence,
            },
            _ => CrossReference {
                relation: "unresolved",
                uri: about,
                confidence: 0.0,
            },
        };
        Ok((settled, found))
    }
}

/// Stores a peer's statement, with the text of a document if it is one.
pub(crate) fn put_federated(
    tx: &mut Tx<'_>,
    mut settled: Settled,
    text: Option<(String, Passages)>,
) -> Result<Vec<String>> {
    if text.is_some() {
        let rid = settled.rid.clone();
        let (document, _) = put_stated(tx, &rid, KOI_NET, text)?;
        settled.set_document(document);
    }
    put_said(tx, &settled)?;
    Ok(settled.things.into_iter().map(|it| it.uri).collect())
}

/// Removes a peer's statement; false if there is none.
pub(crate) fn forget_federated(tx: &mut Tx<'_>, rid: &str) -> Result<bool> {
    let key = document_key(rid);
    if !SAID.has(&**tx, &key)? {
        return Ok(false);
    }
    unset_said(tx, &key)?;
    forget_text(tx, rid)?;
    Ok(true)
}

/// The names and descriptions that peers state of one entity.
pub(crate) fn words_of_peers(tx: &dyn ReadTx, rids: &[&str], uri: &str) -> Result<HashSet<String>> {
    let mut words = HashSet::new();
    for rid in rids {
        let said = SAID.get_readable(tx, &document_key(rid))?;
        let things = said.into_iter().flat_map(|it| it.things);
        for thing in things.filter(|it| it.uri == uri) {
            words.extend(thing.aliases);
            words.insert(thing.description);
        }
    }
    words.remove("");
    Ok(words)
}

/// The entities that a peer's statement names.
pub(crate) fn uris_stated(tx: &dyn ReadTx, rid: &str) -> Result<Vec<String>> {
    let said = SAID.get_readable(tx, &document_key(rid))?;
    let things = said.into_iter().flat_map(|it| it.things);
    Ok(things.map(|it| it.uri).collect())
}
