//! Statements: how each is kept under the labels, paths and URIs that it names.

use super::sameness::Key;
use super::texts::Text;
use super::{Graph, Id, Item, Outcome, Part, Rank, Relation, Says, Statement, numbered};
use crate::entities::VAULT;
use crate::entities::said::{Settled, path_of_key};
use crate::entities::stated::{Stated, path_key};
use kenning_entities::names::{alias_key, normalized};
use std::collections::HashMap;

impl Graph {
    /// Puts what a note of the vault states in the place of what it stated before; `None` if it is gone.
    pub(in crate::entities) fn set_note(&mut self, path: &str, stated: Option<&Stated>) {
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
    pub(in crate::entities) fn set_said(&mut self, key: &str, settled: Option<&Settled>) {
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
    pub(in crate::entities) fn set_merge(&mut self, uri: &str, into: Option<&str>) {
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
