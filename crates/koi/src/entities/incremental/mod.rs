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
mod texts;

use super::VAULT;
use super::said::{Settled, path_of_key};
use super::stated::{Stated, path_key};
use super::wanted::Thing;
use kenning_core::NodeId;
use kenning_entities::names::{alias_key, normalized, phonetic_key};
use kenning_entities::ontology::{Ontology, PREDICATES};
use sameness::{Key, Moved, Sameness};
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
        }
    }

    /// How many texts are kept, of which some may be of statements that are gone.
    pub(super) fn n_texts(&self) -> usize {
        self.texts.len()
    }

    /// Puts what a note of the vault states in the place of what it stated before; `None` if it is gone.
    pub(super) fn set_note(&mut self, path: &str, stated: Option<&Stated>) {
        let id = (Rank::Note, self.texts.number(path));
        let was_there = self.numbers.contains_key(&id);
        let note = stated.map(|it| self.note(id, path, it));
        self.set(id, note);
        // The vault's own note is believed before one that somebody registered.
        if was_there != stated.is_some() {
            let registered = self.registered.get(path).cloned();
            if let Some((key, registered)) = registered {
                self.set_registered(&key, path, stated.is_none().then_some(&registered));
            }
        }
    }

    /// Puts what a source states in the place of what it stated before; `None` if it took that back.
    pub(super) fn set_said(&mut self, key: &str, settled: Option<&Settled>) {
        let id = (Rank::Said, self.texts.number(key));
        let said = settled.map(|it| self.said(id, it));
        self.set(id, said);
        let note = settled.and_then(|it| it.note.as_ref());
        let of_note = note.map(|it| it.path.clone());
        let path = of_note.or_else(|| path_of_key(key).map(ToOwned::to_owned));
        let Some(path) = path else { return };
        match note {
            Some(note) => {
                let kept = (key.to_owned(), note.stated.clone());
                self.registered.insert(path.clone(), kept);
            }
            None => drop(self.registered.remove(&path)),
        }
        let is_in_vault = self.texts.find(&path);
        let is_in_vault =
            is_in_vault.is_some_and(|it| self.numbers.contains_key(&(Rank::Note, it)));
        let stated = note.map(|it| &it.stated).filter(|_| !is_in_vault);
        self.set_registered(key, &path, stated);
    }

    fn set_registered(&mut self, key: &str, path: &str, stated: Option<&Stated>) {
        let id = (Rank::Registered, self.texts.number(key));
        let note = stated.map(|it| self.note(id, path, it));
        self.set(id, note);
    }

    /// Notes that a URI was merged into another, or that it was not.
    pub(super) fn set_merge(&mut self, uri: &str, into: Option<&str>) {
        self.sameness.set_merge(uri, into);
    }

    fn note(&mut self, id: Id, path: &str, stated: &Stated) -> Statement {
        let texts = &mut self.texts;
        let path_number = texts.number(path);
        let parts = stated.about.iter().map(|about| Part {
            uri: texts.number(&about.uri()),
            name: texts.number(&about.name),
            kind: texts.number(&about.kind),
            aliases: about.aliases.iter().map(|it| texts.number(it)).collect(),
            description: texts.number(&about.description),
            n_mentions: 0,
        });
        let parts: Vec<Part> = parts.collect();
        let says = stated.says.iter().filter(|_| !parts.is_empty());
        let says = says.map(|it| Says {
            predicate: texts.number(&it.predicate),
            is_incoming: it.is_incoming,
            target: texts.number(&it.target),
            kind: it.kind.as_ref().map(|it| texts.number(it)),
            path: it.path.as_ref().map(|it| texts.number(it)),
            name_key: texts.number(&normalized(&it.target)),
            alias_key: texts.number(&alias_key(&it.target)),
        });
        let says: Vec<Says> = says.collect();
        Statement {
            id,
            source: texts.number(VAULT),
            rid: path_number,
            document: None,
            path: Some(path_number),
            own: None,
            outcomes: vec![Outcome::Nothing; says.len()],
            parts,
            says,
            relations: Vec::new(),
        }
    }

    fn said(&mut self, id: Id, settled: &Settled) -> Statement {
        let texts = &mut self.texts;
        let parts = settled.things.iter().map(|it| Part {
            uri: texts.number(&it.uri),
            name: texts.number(&it.name),
            kind: texts.number(&it.kind),
            aliases: it.aliases.iter().map(|it| texts.number(it)).collect(),
            description: texts.number(&it.description),
            n_mentions: it.n_mentions,
        });
        let parts: Vec<Part> = parts.collect();
        let relations = settled.relations.iter().map(|it| Relation {
            subject: texts.number(&it.subject),
            predicate: texts.number(&it.predicate),
            object: texts.number(&it.object),
            confidence: it.confidence,
            source: it.source.as_ref().map(|it| texts.number(it)),
            rid: it.source_rid.as_ref().map(|it| texts.number(it)),
        });
        let relations: Vec<Relation> = relations.collect();
        Statement {
            id,
            source: texts.number(&settled.source),
            rid: texts.number(&settled.rid),
            document: settled.document(),
            path: None,
            own: None,
            parts,
            says: Vec::new(),
            outcomes: vec![Outcome::Nothing; relations.len()],
            relations,
        }
    }

    /// The type and every name by which a part of a note can be meant.
    fn keys(&mut self, part: &Part) -> Vec<Key> {
        let names = std::iter::once(part.name).chain(part.aliases.iter().copied());
        let names: Vec<String> = names.map(|it| normalized(self.texts.get(it))).collect();
        let names = names.iter().map(|it| (part.kind, self.texts.number(it)));
        names.collect()
    }

    fn set(&mut self, id: Id, statement: Option<Statement>) {
        let number = self.numbers.get(&id).copied();
        if let Some(number) = number
            && let Some(before) = self.statements.get_mut(number as usize)
            && let Some(before) = before.take()
        {
            self.unlist(number, &before);
        }
        let Some(statement) = statement else {
            if let Some(number) = number {
                self.numbers.remove(&id);
                self.changed.fresh.remove(&number);
                self.free.push(number);
            }
            return;
        };
        let number = number.or_else(|| self.free.pop()).unwrap_or_else(|| {
            self.statements.push(None);
            u32::try_from(self.statements.len() - 1).unwrap_or(u32::MAX)
        });
        self.numbers.insert(id, number);
        self.list(number, &statement);
        self.changed.fresh.insert(number);
        if let Some(place) = self.statements.get_mut(number as usize) {
            *place = Some(statement);
        }
    }

    /// Keeps a statement under everything that it names.
    fn list(&mut self, number: u32, statement: &Statement) {
        self.note_changed(statement);
        for (n, part) in numbered(&statement.parts) {
            self.parts.entry(part.uri).or_default().push((number, n));
            let keys = self.keys(part);
            match statement.path {
                Some(_) => self.sameness.add_note(part.uri, &keys),
                None => {
                    if let Some(key) = keys.first() {
                        self.sameness.add_said(part.uri, *key);
                    }
                }
            }
        }
        if let (Some(path), false) = (statement.path, statement.parts.is_empty()) {
            let key = path_key(self.texts.get(path));
            let key = self.texts.number(&key);
            self.by_path.entry(key).or_default().push(number);
            self.changed.paths.insert(key);
        }
        for (n, says) in numbered(&statement.says) {
            let item = (number, n);
            self.says_by_name
                .entry(says.name_key)
                .or_default()
                .push(item);
            let aliases = self.says_by_alias.entry(says.alias_key);
            aliases.or_default().push(item);
            if let Some(path) = says.path {
                self.says_by_path.entry(path).or_default().push(item);
            }
        }
        for (n, relation) in numbered(&statement.relations) {
            for uri in [relation.subject, relation.object] {
                self.relations_by_uri
                    .entry(uri)
                    .or_default()
                    .push((number, n));
            }
        }
        if let Some(document) = statement.document {
            self.documents.entry(document).or_default().insert(number);
        }
    }

    /// Takes a statement out of every list, with what it came to.
    fn unlist(&mut self, number: u32, statement: &Statement) {
        self.note_changed(statement);
        for (n, outcome) in numbered(&statement.outcomes) {
            self.take_back(*outcome, (number, n));
        }
        for (n, part) in numbered(&statement.parts) {
            drop_item(&mut self.parts, part.uri, (number, n));
            let keys = self.keys(part);
            match statement.path {
                Some(_) => self.sameness.remove_note(part.uri, &keys),
                None => {
                    if let Some(key) = keys.first() {
                        self.sameness.remove_said(part.uri, *key);
                    }
                }
            }
        }
        if let (Some(path), false) = (statement.path, statement.parts.is_empty()) {
            let key = path_key(self.texts.get(path));
            let key = self.texts.number(&key);
            if let Some(all) = self.by_path.get_mut(&key) {
                all.retain(|it| *it != number);
                if all.is_empty() {
                    self.by_path.remove(&key);
                }
            }
            self.changed.paths.insert(key);
        }
        for (n, says) in numbered(&statement.says) {
            drop_item(&mut self.says_by_name, says.name_key, (number, n));
            drop_item(&mut self.says_by_alias, says.alias_key, (number, n));
            if let Some(path) = says.path {
                drop_item(&mut self.says_by_path, path, (number, n));
            }
        }
        for (n, relation) in numbered(&statement.relations) {
            for uri in [relation.subject, relation.object] {
                drop_item(&mut self.relations_by_uri, uri, (number, n));
            }
        }
        if let Some(document) = statement.document
            && let Some(all) = self.documents.get_mut(&document)
        {
            all.remove(&number);
            if all.is_empty() {
                self.documents.remove(&document);
            }
        }
    }

    fn note_changed(&mut self, statement: &Statement) {
        let uris = statement.parts.iter().map(|it| it.uri);
        self.changed.uris.extend(uris);
        self.changed.notes.extend(statement.path);
        self.changed.documents.extend(statement.document);
    }

    /// Makes the graph what the statements say now, and tells what may be another than before.
    pub(super) fn settle(&mut self) -> Changes {
        let uris = std::mem::take(&mut self.changed.uris);
        let mut things: HashSet<Text> = uris.iter().map(|it| self.sameness.of(*it)).collect();
        let moved = self.sameness.settle(&mut self.texts);
        things.extend(uris.iter().map(|it| self.sameness.of(*it)));
        things.extend(moved.iter().flat_map(|it| [it.1, it.2]));

        let mut items: HashSet<Item> = HashSet::new();
        let mut rekinded: Vec<Text> = Vec::new();
        for &uri in &things {
            self.settle_entity(uri, &mut rekinded, &mut items);
        }
        self.settle_notes(&moved, &rekinded, &mut items);
        for path in std::mem::take(&mut self.changed.paths) {
            items.extend(self.says_by_path.get(&path).into_iter().flatten());
        }
        let moved_uris = moved.iter().map(|it| it.0);
        let related = rekinded.iter().flat_map(|it| self.sameness.uris_of(*it));
        for uri in moved_uris.chain(related) {
            items.extend(self.relations_by_uri.get(&uri).into_iter().flatten());
        }
        for number in std::mem::take(&mut self.changed.fresh) {
            let n = self.statement(number).map_or(0, |it| it.outcomes.len());
            let n = u32::try_from(n).unwrap_or(u32::MAX);
            items.extend((0..n).map(|it| (number, it)));
        }
        for item in items {
            self.settle_item(item);
        }
        self.told(things)
    }

    fn told(&mut self, things: HashSet<Text>) -> Changes {
        let subjects = std::mem::take(&mut self.changed.subjects);
        for &subject in &subjects {
            for predicate in self.predicates(subject) {
                let n = self.by_predicate.entry(predicate.to_owned());
                *n.or_default() += 1;
            }
        }
        self.by_predicate.retain(|_, n| *n > 0);
        let owned = |it: &Text| self.texts.owned(*it);
        Changes {
            things: things.iter().map(owned).collect(),
            subjects: subjects.iter().map(owned).collect(),
            notes: self.changed.notes.drain().map(|it| owned(&it)).collect(),
            documents: std::mem::take(&mut self.changed.documents),
        }
    }

    /// Makes the labels and the type of an entity what they are now, and notes who depends on them.
    fn settle_entity(&mut self, uri: Text, rekinded: &mut Vec<Text>, items: &mut HashSet<Item>) {
        let thing = self.thing_of(uri);
        let now = thing.map(|it| self.entity(&it));
        let before = self.entities.remove(&uri);
        let kind = |it: &Option<Entity>| it.as_ref().and_then(|it| it.kind);
        let is_rekinded = kind(&before) != kind(&now);
        let (old, new) = (before.unwrap_or_default(), now.unwrap_or_default());
        if is_rekinded {
            rekinded.push(uri);
            for (kind, is_more) in [(old.kind, false), (new.kind, true)] {
                if let Some(kind) = kind {
                    let n = self.by_type.entry(self.texts.owned(kind)).or_default();
                    *n = if is_more { *n + 1 } else { n.saturating_sub(1) };
                }
            }
            self.by_type.retain(|_, n| *n > 0);
        }
        for key in old.name.into_iter().chain(new.name) {
            let is_same = old.name == new.name;
            if !is_same || is_rekinded {
                items.extend(self.says_by_name.get(&key).into_iter().flatten());
                put_in(&mut self.by_name, key, uri, new.name == Some(key));
            }
        }
        for &key in old.aliases.union(&new.aliases) {
            let is_same = old.aliases.contains(&key) == new.aliases.contains(&key);
            if !is_same || is_rekinded {
                items.extend(self.says_by_alias.get(&key).into_iter().flatten());
                put_in(&mut self.by_alias, key, uri, new.aliases.contains(&key));
            }
        }
        for key in old.sound.into_iter().chain(new.sound) {
            put_in(&mut self.by_sound, key, uri, new.sound == Some(key));
        }
        if new.kind.is_some() {
            self.entities.insert(uri, new);
        }
    }

    fn entity(&mut self, thing: &Thing) -> Entity {
        let ontology = Arc::clone(&self.ontology);
        let kind = ontology.kind(&thing.kind);
        let sound = kind.filter(|it| it.phonetic_matching);
        let sound = sound.map(|it| phonetic_key(&thing.name, &it.phonetic_stopwords));
        let sound = sound.filter(|it| !it.is_empty());
        let aliases = thing.aliases.iter();
        let aliases = aliases.flat_map(|it| [alias_key(it), normalized(it)]);
        let texts = &mut self.texts;
        Entity {
            kind: Some(texts.number(&thing.kind)),
            name: Some(texts.number(&normalized(&thing.name))),
            aliases: aliases.map(|it| texts.number(&it)).collect(),
            sound: sound.map(|it| texts.number(&it)),
        }
    }

    /// Finds out whom notes are about, and which of their statements depend on it.
    fn settle_notes(&mut self, moved: &[Moved], rekinded: &[Text], items: &mut HashSet<Item>) {
        let of_kind = rekinded.iter().flat_map(|it| self.sameness.uris_of(*it));
        let uris = moved.iter().map(|it| it.0).chain(of_kind);
        let named = uris.filter_map(|it| self.parts.get(&it)).flatten();
        let mut numbers: BTreeSet<u32> = named.map(|it| it.0).collect();
        numbers.extend(&self.changed.fresh);
        for number in numbers {
            let Some(Some(statement)) = self.statements.get_mut(number as usize) else {
                continue;
            };
            let own = statement.parts.first().map(|it| self.sameness.of(it.uri));
            let is_other = statement.path.is_some() && statement.own != own;
            let n_says = u32::try_from(statement.says.len()).unwrap_or(u32::MAX);
            match statement.path {
                Some(path) => {
                    statement.own = own;
                    items.extend((0..n_says).map(|it| (number, it)));
                    let key = path_key(self.texts.get(path));
                    let key = self.texts.number(&key);
                    self.changed.paths.insert(key);
                    if is_other {
                        self.changed.notes.insert(path);
                    }
                }
                // Only what is moved changes whom a document mentions, but looking twice changes nothing.
                None => self.changed.documents.extend(statement.document),
            }
        }
    }

    fn settle_item(&mut self, item: Item) {
        let now = self.outcome(item);
        let place = self.statements.get_mut(item.0 as usize);
        let outcomes = place.and_then(Option::as_mut).map(|it| &mut it.outcomes);
        let Some(place) = outcomes.and_then(|it| it.get_mut(item.1 as usize)) else {
            return;
        };
        let before = std::mem::replace(place, now);
        if before != now {
            self.take_back(before, item);
            self.take_in(now, item);
        }
    }

    fn take_back(&mut self, outcome: Outcome, by: Item) {
        match outcome {
            Outcome::Nothing => {}
            Outcome::Pending(label, predicate, is_subject) => {
                let key = (label, predicate, is_subject);
                if let Some(n) = self.pending.get_mut(&key) {
                    *n -= 1;
                    if *n == 0 {
                        self.pending.remove(&key);
                    }
                }
            }
            Outcome::Relation(subject, predicate, object) => {
                for (subject, object) in self.both_ways(subject, predicate, object) {
                    self.touch(subject);
                    let claim = Claim {
                        predicate,
                        object,
                        by,
                    };
                    if let Some(all) = self.claims.get_mut(&subject) {
                        if let Some(at) = all.iter().position(|it| *it == claim) {
                            all.swap_remove(at);
                        }
                        if all.is_empty() {
                            self.claims.remove(&subject);
                        }
                    }
                }
            }
        }
    }

    fn take_in(&mut self, outcome: Outcome, by: Item) {
        match outcome {
            Outcome::Nothing => {}
            Outcome::Pending(label, predicate, is_subject) => {
                let key = (label, predicate, is_subject);
                *self.pending.entry(key).or_default() += 1;
            }
            Outcome::Relation(subject, predicate, object) => {
                for (subject, object) in self.both_ways(subject, predicate, object) {
                    self.touch(subject);
                    let claim = Claim {
                        predicate,
                        object,
                        by,
                    };
                    self.claims.entry(subject).or_default().push(claim);
                }
            }
        }
    }

    /// Relationships are counted again when all are known.
    fn touch(&mut self, subject: Text) {
        if self.changed.subjects.insert(subject) {
            for predicate in self.predicates(subject) {
                if let Some(n) = self.by_predicate.get_mut(predicate) {
                    *n = n.saturating_sub(1);
                }
            }
        }
    }

    /// The predicate of each relationship of an entity.
    fn predicates(&self, subject: Text) -> Vec<&'static str> {
        let claims = self.claims.get(&subject).into_iter().flatten();
        let distinct: BTreeSet<(&str, Text)> = claims.map(|it| (it.predicate, it.object)).collect();
        distinct.into_iter().map(|it| it.0).collect()
    }

    /// What joins both ends alike is said of both.
    fn both_ways(
        &self,
        subject: Text,
        predicate: &'static str,
        object: Text,
    ) -> impl Iterator<Item = (Text, Text)> + use<> {
        let is_symmetric = self.symmetric.contains(predicate);
        let other_way = is_symmetric.then_some((object, subject));
        [(subject, object)].into_iter().chain(other_way)
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

fn drop_item(lists: &mut HashMap<Text, Vec<Item>>, key: Text, item: Item) {
    if let Some(list) = lists.get_mut(&key) {
        if let Some(at) = list.iter().position(|it| *it == item) {
            list.swap_remove(at);
        }
        if list.is_empty() {
            lists.remove(&key);
        }
    }
}

fn put_in(sets: &mut HashMap<Text, BTreeSet<Text>>, key: Text, uri: Text, is_there: bool) {
    if is_there {
        sets.entry(key).or_default().insert(uri);
    } else if let Some(set) = sets.get_mut(&key) {
        set.remove(&uri);
        if set.is_empty() {
            sets.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests;
