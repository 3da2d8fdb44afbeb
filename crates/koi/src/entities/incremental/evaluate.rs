//! What one statement comes to, and what the graph holds.

use super::super::view::PendingRelationship;
use super::super::wanted::{Origin, RELATED, Relations, Thing};
use super::texts::Text;
use super::{Graph, Item, Outcome, Rank, SaidMention, Says};
use kenning_core::NodeId;
use kenning_entities::names::alias_key;
use kenning_entities::ontology::predicate;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

impl Graph {
    /// What is stated of an entity; `None` if nothing is.
    pub(in super::super) fn thing(&self, uri: &str) -> Option<Thing> {
        self.thing_of(self.texts.find(uri)?)
    }

    pub(super) fn thing_of(&self, entity: Text) -> Option<Thing> {
        let uris = self.sameness.uris_of(entity);
        let parts = uris.filter_map(|it| self.parts.get(&it)).flatten();
        let mut parts: Vec<Item> = parts.copied().collect();
        if parts.is_empty() {
            return None;
        }
        parts.sort_by_key(|it| (self.order(it.0), it.1));
        let mut thing = Thing::default();
        for (number, n) in parts {
            let Some(statement) = self.statement(number) else {
                continue;
            };
            let Some(part) = statement.parts.get(n as usize) else {
                continue;
            };
            let text = |it: Text| self.texts.get(it);
            // One that was merged into another gives it its name as an alias.
            if part.uri != entity {
                thing.add_alias(&alias_key(text(part.name)));
                thing.add_merged(text(part.uri));
            } else if thing.name.is_empty() {
                thing.name = self.texts.owned(part.name);
                thing.kind = self.texts.owned(part.kind);
            }
            if thing.source.is_empty() {
                thing.source = self.texts.owned(statement.source);
                thing.source_rid = self.texts.owned(statement.rid);
            }
            for alias in &part.aliases {
                thing.add_alias(text(*alias));
            }
            thing.describe(text(part.description));
            thing
                .paths
                .extend(statement.path.map(|it| self.texts.owned(it)));
        }
        Some(thing)
    }

    /// The URIs of all entities.
    pub(in super::super) fn uris(&self) -> impl Iterator<Item = &str> {
        self.entities.keys().map(|it| self.texts.get(*it))
    }

    pub(in super::super) fn has(&self, uri: &str) -> bool {
        let uri = self.texts.find(uri);
        uri.is_some_and(|it| self.entities.contains_key(&it))
    }

    /// How an entity's name sounds, where its type is compared so.
    pub(in super::super) fn sound(&self, uri: &str) -> Option<&str> {
        let sound = self.entities.get(&self.texts.find(uri)?)?.sound?;
        Some(self.texts.get(sound))
    }

    /// The URI that stands for this one.
    pub(in super::super) fn same<'a>(&'a self, uri: &'a str) -> &'a str {
        match self.texts.find(uri) {
            Some(number) => self.texts.get(self.sameness.of(number)),
            None => uri,
        }
    }

    /// The entity that a note is about, by the note's path.
    pub(in super::super) fn of_note(&self, path: &str) -> Option<&str> {
        let text = self.texts.find(path)?;
        let note = self.numbers.get(&(Rank::Note, text)).copied();
        let registered = || {
            let (key, _) = self.registered.get(path)?;
            let id = (Rank::Registered, self.texts.find(key)?);
            self.numbers.get(&id).copied()
        };
        let own = self.statement(note.or_else(registered)?)?.own?;
        Some(self.texts.get(own))
    }

    /// Those who have this name.
    pub(in super::super) fn named(&self, key: &str) -> Vec<&str> {
        self.listed(self.texts.find(key).and_then(|it| self.by_name.get(&it)))
    }

    /// Those who have an alias with this key.
    pub(in super::super) fn called(&self, key: &str) -> Vec<&str> {
        self.listed(self.texts.find(key).and_then(|it| self.by_alias.get(&it)))
    }

    /// Those whose name sounds so.
    pub(in super::super) fn sounding(&self, key: &str) -> Vec<&str> {
        self.listed(self.texts.find(key).and_then(|it| self.by_sound.get(&it)))
    }

    fn listed(&self, uris: Option<&BTreeSet<Text>>) -> Vec<&str> {
        let uris = uris.into_iter().flatten();
        let mut uris: Vec<&str> = uris.map(|it| self.texts.get(*it)).collect();
        uris.sort_unstable();
        uris
    }

    /// The relationships of an entity. The first who states one is named, unless a later one is surer.
    pub(in super::super) fn relations(&self, subject: &str) -> Relations {
        let mut relations = Relations::new();
        let Some(subject) = self.texts.find(subject) else {
            return relations;
        };
        let claims = self.claims.get(&subject).into_iter().flatten();
        let mut claims: Vec<_> = claims.copied().collect();
        claims.sort_by_key(|it| (self.order(it.by.0), it.by.1));
        for claim in claims {
            let Some(origin) = self.origin(claim.by) else {
                continue;
            };
            let key = (claim.predicate.to_owned(), self.texts.owned(claim.object));
            let said = relations.entry(key).or_insert_with(|| origin.clone());
            if origin.confidence > said.confidence {
                *said = origin;
            }
        }
        relations
    }

    fn origin(&self, (number, n): Item) -> Option<Origin> {
        let statement = self.statement(number)?;
        let relation = statement.relations.get(n as usize);
        let source = relation.and_then(|it| it.source);
        let rid = relation.and_then(|it| it.rid);
        Some(Origin {
            source: self.texts.owned(source.unwrap_or(statement.source)),
            source_rid: self.texts.owned(rid.unwrap_or(statement.rid)),
            confidence: relation.map_or(1.0, |it| it.confidence),
        })
    }

    /// Every document of which something was said.
    pub(in super::super) fn documents(&self) -> impl Iterator<Item = NodeId> {
        self.documents.keys().copied()
    }

    /// Whom statements say that a document mentions; `None` if nothing is said of it.
    pub(in super::super) fn mentions(
        &self,
        document: NodeId,
    ) -> Option<BTreeMap<String, SaidMention>> {
        let mut numbers: Vec<u32> = self.documents.get(&document)?.iter().copied().collect();
        numbers.sort_by_key(|it| self.order(*it));
        let mut all: BTreeMap<String, SaidMention> = BTreeMap::new();
        for statement in numbers.iter().filter_map(|it| self.statement(*it)) {
            for part in &statement.parts {
                let uri = self.texts.owned(self.sameness.of(part.uri));
                let mention = all.entry(uri).or_insert_with(|| SaidMention {
                    source: self.texts.owned(statement.source),
                    source_rid: self.texts.owned(statement.rid),
                    n: 0,
                });
                mention.n += part.n_mentions;
            }
        }
        Some(all)
    }

    pub(in super::super) fn by_type(&self) -> &BTreeMap<String, usize> {
        &self.by_type
    }

    pub(in super::super) fn by_predicate(&self) -> &BTreeMap<String, usize> {
        &self.by_predicate
    }

    /// How many relationships lead to names that nobody has, and the most frequent of them.
    pub(in super::super) fn pending(&self, limit: usize) -> (usize, Vec<PendingRelationship>) {
        let total = self.pending.values().sum();
        let mut all: Vec<_> = self.pending.iter().collect();
        let text = |it: Text| self.texts.get(it);
        let order = |(key, n): &(&(Text, Text, bool), &usize)| {
            (Reverse(**n), text(key.0), text(key.1), key.2)
        };
        if all.len() > limit && limit > 0 {
            all.select_nth_unstable_by(limit - 1, |a, b| order(a).cmp(&order(b)));
            all.truncate(limit);
        }
        all.sort_by(|a, b| order(a).cmp(&order(b)));
        let all = all.into_iter().map(|(key, n)| PendingRelationship {
            label: self.texts.owned(key.0),
            predicate: self.texts.owned(key.1),
            is_subject: key.2,
            count: *n,
        });
        (total, all.collect())
    }

    /// What one relationship of a statement comes to.
    pub(super) fn outcome(&mut self, (number, n): Item) -> Outcome {
        let Some(Some(statement)) = self.statements.get(number as usize) else {
            return Outcome::Nothing;
        };
        let is_note = statement.path.is_some();
        if is_note {
            let (Some(own), Some(says)) = (statement.own, statement.says.get(n as usize)) else {
                return Outcome::Nothing;
            };
            let says = *says;
            return self.outcome_of_note(own, says);
        }
        let Some(relation) = statement.relations.get(n as usize) else {
            return Outcome::Nothing;
        };
        let said = relation.predicate;
        let subject = self.sameness.of(relation.subject);
        let object = self.sameness.of(relation.object);
        // What others say is what they say, or nothing.
        match self.fitting(said, subject, object, false) {
            Some(name) if subject != object => Outcome::Relation(subject, name, object),
            _ => Outcome::Nothing,
        }
    }

    fn outcome_of_note(&mut self, own: Text, says: Says) -> Outcome {
        let Some(other) = self.resolve_target(own, says) else {
            return Outcome::Pending(says.target, says.predicate, says.is_incoming);
        };
        // Nothing relates to itself.
        if other == own {
            return Outcome::Nothing;
        }
        let (subject, object) = ends(own, other, says.is_incoming);
        match self.fitting(says.predicate, subject, object, true) {
            Some(name) => Outcome::Relation(subject, name, object),
            None => Outcome::Nothing,
        }
    }

    /// Who is meant: the note that a link names, else the one who has the name or the alias. Of several
    /// nobody is, unless the type tells them apart.
    fn resolve_target(&mut self, own: Text, says: Says) -> Option<Text> {
        if let Some(uri) = says.path.and_then(|it| self.note_at(it)) {
            return Some(uri);
        }
        let named = self.by_name.get(&says.name_key);
        let all = named.or_else(|| self.by_alias.get(&says.alias_key))?;
        let all: Vec<Text> = all.iter().copied().collect();
        let is_of_kind = |it: &&Text| says.kind.is_some() && self.kind_of(**it) == says.kind;
        let of_kind: Vec<&Text> = all.iter().filter(is_of_kind).collect();
        if let [only] = of_kind[..] {
            return Some(*only);
        }
        if !of_kind.is_empty() {
            return None;
        }
        let mut fitting = Vec::new();
        for uri in all {
            let (subject, object) = ends(own, uri, says.is_incoming);
            if self
                .fitting(says.predicate, subject, object, true)
                .is_some()
            {
                fitting.push(uri);
            }
        }
        match fitting[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The entity of the note at a path; of several that differ in capital letters the last.
    fn note_at(&self, path: Text) -> Option<Text> {
        let notes = self.by_path.get(&path)?.iter();
        let last = notes.max_by_key(|it| self.order(**it))?;
        self.statement(*last)?.own
    }

    fn kind_of(&self, uri: Text) -> Option<Text> {
        self.entities.get(&uri)?.kind
    }

    /// The predicate if it may join the two; else, with `or_related`, that they are related, if that may be
    /// said.
    fn fitting(
        &mut self,
        said: Text,
        subject: Text,
        object: Text,
        or_related: bool,
    ) -> Option<&'static str> {
        let (subject, object) = (self.kind_of(subject)?, self.kind_of(object)?);
        let key = (said, subject, object, or_related);
        if let Some(known) = self.fitting.get(&key) {
            return *known;
        }
        let (subject, object) = (self.texts.get(subject), self.texts.get(object));
        let names = [Some(self.texts.get(said)), or_related.then_some(RELATED)];
        let found = names.into_iter().flatten().find_map(|name| {
            let (predicate, _) = predicate(name)?;
            let fits = self.ontology.check(predicate, subject, object).is_ok();
            fits.then_some(predicate.name)
        });
        self.fitting.insert(key, found);
        found
    }
}

fn ends(own: Text, other: Text, is_incoming: bool) -> (Text, Text) {
    if is_incoming {
        (other, own)
    } else {
        (own, other)
    }
}
