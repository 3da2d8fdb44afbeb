//! The graph that all statements make, kept in step with them.
//!
//! [`Graph::settle`] gives the same graph as evaluating all statements from scratch (`wanted`, which the
//! tests compare it with), but looks only at what a change can reach:
//!
//! - An entity depends on the statements that name a URI of its, and on which URIs are its (`sameness`).
//! - A relationship that a note states depends on who has the label that it names (a name that nobody has
//!   leads nowhere until somebody has it), on the note that it names by its path, and on the types of both
//!   ends. One that others state depends on whom two URIs stand for, and on their types.
//!
//! So each statement is kept under the labels, paths and URIs that it names, and whoever gains or loses a
//! label, or changes its type, makes the statements under it be looked at again.

mod evaluate;
mod sameness;
mod settle;
mod statements;
mod texts;

use super::stated::Stated;
use kenning_core::NodeId;
use kenning_entities::ontology::{Ontology, PREDICATES};
use sameness::Sameness;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use texts::{Text, Texts};

/// The order of statements: notes of the vault, notes that somebody registered, all others; then by name.
type Id = (Rank, Text);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Rank {
    Note,
    Registered,
    Said,
}

/// One part of a statement: the statement's number and the part's.
type Item = (u32, u32);

/// A statement, in numbers.
#[derive(Debug)]
struct Statement {
    id: Id,
    source: Text,
    rid: Text,
    document: Option<NodeId>,
    /// Of a note: its path.
    path: Option<Text>,
    /// Of a note: the entity that it is about.
    own: Option<Text>,
    parts: Vec<Part>,
    says: Vec<Says>,
    relations: Vec<Relation>,
    /// What each of `says` or `relations` comes to.
    outcomes: Vec<Outcome>,
}

/// What is stated of one entity.
#[derive(Debug)]
struct Part {
    uri: Text,
    name: Text,
    kind: Text,
    aliases: Box<[Text]>,
    description: Text,
    n_mentions: u32,
}

/// What a note says of its entity and somebody whom it names.
#[derive(Clone, Copy, Debug)]
struct Says {
    predicate: Text,
    is_incoming: bool,
    target: Text,
    kind: Option<Text>,
    path: Option<Text>,
    name_key: Text,
    alias_key: Text,
}

/// What others say of two entities.
#[derive(Debug)]
struct Relation {
    subject: Text,
    predicate: Text,
    object: Text,
    confidence: f64,
    source: Option<Text>,
    rid: Option<Text>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Nothing,
    /// Nobody is meant: the label, the predicate, and whether the unknown one stands first.
    Pending(Text, Text, bool),
    Relation(Text, &'static str, Text),
}

/// Who is said to be related to an entity, and by which part of which statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    predicate: &'static str,
    object: Text,
    by: Item,
}

/// An entity, as far as others depend on it.
#[derive(Debug, Default, PartialEq)]
struct Entity {
    kind: Option<Text>,
    name: Option<Text>,
    aliases: BTreeSet<Text>,
    sound: Option<Text>,
}

/// What a document says of an entity: who states it, and how often it is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SaidMention {
    pub(super) source: String,
    pub(super) source_rid: String,
    pub(super) n: u32,
}

/// What may be another than before.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The URIs of entities that are new, changed or gone.
    pub(super) things: BTreeSet<String>,
    /// The URIs of entities whose relationships are others.
    pub(super) subjects: BTreeSet<String>,
    /// The paths of notes that are about another entity.
    pub(super) notes: BTreeSet<String>,
    /// Documents of which something else is said.
    pub(super) documents: BTreeSet<NodeId>,
}

/// The graph of all statements.
#[derive(Debug)]
pub(super) struct Graph {
    ontology: Arc<Ontology>,
    texts: Texts,
    statements: Vec<Option<Statement>>,
    free: Vec<u32>,
    numbers: HashMap<Id, u32>,
    /// Notes that somebody registered, by their paths: they count while the vault has none there.
    registered: HashMap<String, (String, Stated)>,
    sameness: Sameness,
    /// The parts of statements that name a URI.
    parts: HashMap<Text, Vec<Item>>,
    entities: HashMap<Text, Entity>,
    by_name: HashMap<Text, BTreeSet<Text>>,
    by_alias: HashMap<Text, BTreeSet<Text>>,
    by_sound: HashMap<Text, BTreeSet<Text>>,
    /// The notes that a link with folders can mean.
    by_path: HashMap<Text, Vec<u32>>,
    /// What notes say, by the label or the path that it names.
    says_by_name: HashMap<Text, Vec<Item>>,
    says_by_alias: HashMap<Text, Vec<Item>>,
    says_by_path: HashMap<Text, Vec<Item>>,
    /// What others say, by either URI.
    relations_by_uri: HashMap<Text, Vec<Item>>,
    claims: HashMap<Text, Vec<Claim>>,
    documents: HashMap<NodeId, BTreeSet<u32>>,
    pending: HashMap<(Text, Text, bool), usize>,
    by_type: BTreeMap<String, usize>,
    by_predicate: BTreeMap<String, usize>,
    /// Which predicate may join two types, where that was asked.
    fitting: HashMap<(Text, Text, Text, bool), Option<&'static str>>,
    /// Predicates that join both ends alike.
    symmetric: HashSet<&'static str>,
    changed: Changed,
    /// A dependency that is not followed, to see that the comparison with the graph from scratch notices.
    #[cfg(test)]
    skipped: Option<Dependency>,
}

/// By what statements depend on entities and notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dependency {
    /// What a note says of somebody whom it calls by this name.
    Name,
    /// What a note says of somebody whom it calls by this alias.
    Alias,
    /// What a note says of the note at this path.
    Path,
    /// What others say of this URI.
    Uri,
}

/// What was changed since the graph was last settled.
#[derive(Debug, Default)]
struct Changed {
    uris: HashSet<Text>,
    paths: HashSet<Text>,
    fresh: BTreeSet<u32>,
    notes: HashSet<Text>,
    documents: BTreeSet<NodeId>,
    subjects: HashSet<Text>,
}

impl Graph {
    pub(super) fn new(ontology: Arc<Ontology>) -> Self {
        Self {
            ontology,
            texts: Texts::default(),
            statements: Vec::new(),
            free: Vec::new(),
            numbers: HashMap::new(),
            registered: HashMap::new(),
            sameness: Sameness::default(),
            parts: HashMap::new(),
            entities: HashMap::new(),
            by_name: HashMap::new(),
            by_alias: HashMap::new(),
            by_sound: HashMap::new(),
            by_path: HashMap::new(),
            says_by_name: HashMap::new(),
            says_by_alias: HashMap::new(),
            says_by_path: HashMap::new(),
            relations_by_uri: HashMap::new(),
            claims: HashMap::new(),
            documents: HashMap::new(),
            pending: HashMap::new(),
            by_type: BTreeMap::new(),
            by_predicate: BTreeMap::new(),
            fitting: HashMap::new(),
            symmetric: PREDICATES
                .iter()
                .filter(|it| it.is_symmetric())
                .map(|it| it.name)
                .collect(),
            changed: Changed::default(),
            #[cfg(test)]
            skipped: None,
        }
    }

    /// The parts of statements that depend on a name, an alias, a path or a URI.
    fn depending_on(&self, dependency: Dependency, key: Text) -> &[Item] {
        #[cfg(test)]
        if self.skipped == Some(dependency) {
            return &[];
        }
        let by_key = match dependency {
            Dependency::Name => &self.says_by_name,
            Dependency::Alias => &self.says_by_alias,
            Dependency::Path => &self.says_by_path,
            Dependency::Uri => &self.relations_by_uri,
        };
        by_key.get(&key).map_or(&[], Vec::as_slice)
    }

    /// How many texts are kept, of which some may be of statements that are gone.
    pub(super) fn n_texts(&self) -> usize {
        self.texts.len()
    }

    fn statement(&self, number: u32) -> Option<&Statement> {
        self.statements.get(number as usize)?.as_ref()
    }

    /// The order of statements: what the first says holds.
    fn order(&self, number: u32) -> Option<(Rank, &str)> {
        let (rank, key) = self.statement(number)?.id;
        Some((rank, self.texts.get(key)))
    }
}

fn numbered<T>(all: &[T]) -> impl Iterator<Item = (u32, &T)> {
    (0_u32..).zip(all)
}

#[cfg(test)]
mod tests;
