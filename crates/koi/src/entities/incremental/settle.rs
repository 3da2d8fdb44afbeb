//! The graph that the statements make: what a change can reach is evaluated again.

use super::sameness::Moved;
use super::texts::Text;
use super::{Changes, Claim, Dependency, Entity, Graph, Item, Outcome};
use crate::entities::stated::path_key;
use crate::entities::wanted::Thing;
use kenning_entities::names::{alias_key, normalized, phonetic_key};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

impl Graph {
    /// Makes the graph what the statements say now, and tells what may be another than before.
    pub(in crate::entities) fn settle(&mut self) -> Changes {
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
            items.extend(self.depending_on(Dependency::Path, path));
        }
        let moved_uris = moved.iter().map(|it| it.0);
        let related = rekinded.iter().flat_map(|it| self.sameness.uris_of(*it));
        for uri in moved_uris.chain(related) {
            items.extend(self.depending_on(Dependency::Uri, uri));
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
                items.extend(self.depending_on(Dependency::Name, key));
                put_in(&mut self.by_name, key, uri, new.name == Some(key));
            }
        }
        for &key in old.aliases.union(&new.aliases) {
            let is_same = old.aliases.contains(&key) == new.aliases.contains(&key);
            if !is_same || is_rekinded {
                items.extend(self.depending_on(Dependency::Alias, key));
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

    pub(super) fn take_back(&mut self, outcome: Outcome, by: Item) {
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
