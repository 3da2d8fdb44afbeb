//! The vault as a graph of entities.
//!
//! Notes about people, organizations and what else the ontology knows become nodes; their fields become
//! relationships, their links mentions. `stated` says what one note states, `wanted` which graph all notes
//! make together, `index` makes the store that graph. `resolve` says which entity a label means,
//! `neighborhood` what it is related to and what mentions it, `find` what answers a question.
//!
//! Everything here follows from the notes: what a note said is gone when the note is.

mod find;
mod index;
mod neighborhood;
mod resolve;
mod stated;
mod wanted;

pub use find::{
    FoundDocument, FoundEntities, FoundEntity, FoundKnowledge, FoundPassage, KnowledgeQuery,
    SearchMethod,
};
pub use kenning_entities::resolve::{
    Candidate as EntityCandidate, Context as EntityContext, Proposed as ProposedEntity,
    Resolution as EntityResolution,
};
pub use neighborhood::{EntityDocument, EntityDocuments, Neighborhood, Relationship};

pub(crate) use index::Entities;

use kenning_search::passages;
use kenning_store::{Node, Passage};
use serde_json::Value;

/// Who marks edges as these.
const BY_ENTITIES: &str = "entities";

/// What entities of the vault say that they are from.
const VAULT: &str = "vault";

/// Of a document: it mentions an entity.
const MENTIONS: &str = "mentions";

/// Of a document: it is the note about an entity.
const DESCRIBES: &str = "describes";

/// The passages of an entity: it is found by every name, and by what is said of it.
pub(crate) fn passages_of(node: &Node) -> Vec<Passage> {
    let names = std::iter::once(node.title.as_str()).chain(aliases(node));
    passages(&names.collect::<Vec<_>>().join(" "), &node.body)
}

/// The other names of an entity.
fn aliases(node: &Node) -> impl Iterator<Item = &str> {
    let aliases = node.props.get("aliases").and_then(Value::as_array);
    aliases.into_iter().flatten().filter_map(Value::as_str)
}

/// The type of an entity.
fn kind(node: &Node) -> &str {
    let kind = node.props.get("type").and_then(Value::as_str);
    kind.unwrap_or_default()
}
