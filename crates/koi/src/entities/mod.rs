//! The graph of entities: of the vault, and of what else is stated.
//!
//! Notes about people, organizations and what else the ontology knows become nodes; their fields become
//! relationships, their links mentions. `stated` says what one note states, `said` what ingested pages and
//! others do (`register`, `import`, `federated`), `settle` whom those mean, `identity` who is said to be one and who is not, `incremental` which graph
//! all statements make together (`wanted` what that is), `live` keeps it in step with the store; `index` makes
//! the store that graph (`put` its nodes, `links` its edges). `resolve` says
//! which entity a label means (`spelling` has names in memory), `neighborhood` what it is related to and
//! what mentions it, `find` what answers a question, `view`, `notes` and `types` what is there, `company` who is
//! mentioned together, `proof` whether all of it is what the log says, `warnings` what could not be read,
//! `note_faults` which notes cannot be read in full.
//!
//! Everything here follows from statements: what a note said is gone when the note is, and two that were
//! merged are two again when the merge is taken back.

mod alike;
mod asked_merge;
mod company;
mod federated;
mod find;
mod identity;
mod import;
mod incremental;
mod index;
mod links;
mod live;
mod neighborhood;
mod note_faults;
mod notes;
mod plan;
mod proof;
mod put;
mod register;
mod resolve;
mod restated;
mod said;
mod settle;
mod spelling;
mod stated;
mod types;
mod view;
mod wanted;
mod warnings;

pub use company::{Company, InCompany};
pub(crate) use find::with_most_words;
pub use find::{
    FoundDocument, FoundEntities, FoundEntity, FoundKnowledge, FoundPassage, KnowledgeQuery,
    SearchMethod,
};
pub use identity::{Identities, MergedEntity, Veto};
pub use import::{EntityImport, ImportedEntities};
pub use kenning_entities::names::normalized as normalized_name;
pub use kenning_entities::ontology::EntityType;
pub use kenning_entities::resolve::{
    Candidate as EntityCandidate, Context as EntityContext, Proposed as ProposedEntity,
    Resolution as EntityResolution,
};
pub use neighborhood::{EntityDocument, EntityDocuments, Neighborhood, Relationship};
pub use note_faults::frontmatter_fault;
pub use notes::NoteState;
pub use register::{RegisterEntity, RegisteredEntity, SyncedRelationships};
pub use said::{
    EntityOutcome, MergeOutcome, MergeProposal, RelationOutcome, StatedDocument, StatedEntity,
    StatedMerge, StatedRelation, StatementOutcome,
};
pub use types::EntityTypes;
pub use view::{EntityStats, EntityView, PendingRelationship, RelationshipStats};

pub(crate) use federated::{
    CrossReference, KOI_NET, SAME_AS, forget_federated, is_ours, is_stated_here, put_federated,
    uris_stated, words_of_peers,
};
pub(crate) use index::{Entities, NODES as GRAPH_NODES, graph_state};
pub use proof::faults as faults_of_statements;
pub(crate) use restated::put_said_again;
pub use said::merged;
pub(crate) use said::{Said, Settled, put_said};

use kenning_search::passages;
use kenning_store::{Node, Passage};
use serde_json::Value;

/// The owner mark of these edges.
const BY_ENTITIES: &str = "entities";

/// The source of entities of the vault.
const VAULT: &str = "vault";

/// Of a document: it mentions an entity.
const MENTIONS: &str = "mentions";

/// Of a document: it is the note about an entity.
const DESCRIBES: &str = "describes";

/// The passages of an entity: it is found by every name, and by its description. Its name is a
/// separate passage, so that a model has embedded the name alone.
pub fn passages_of(node: &Node) -> Vec<Passage> {
    let names = std::iter::once(node.title.as_str()).chain(aliases(node));
    passages_of_names(&names.collect::<Vec<_>>(), &node.title, &node.body)
}

/// The passages of an entity with these names, of which the title is one.
fn passages_of_names(names: &[&str], title: &str, body: &str) -> Vec<Passage> {
    let mut all = passages(&names.join(" "), title);
    if !body.is_empty() {
        for mut passage in passages("", body) {
            passage.n = u32::try_from(all.len()).unwrap_or(u32::MAX);
            all.push(passage);
        }
    }
    all
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
