//! The graph of all statements, made of all of them at once: what `incremental` must agree with.

use super::super::VAULT;
use super::super::said::Settled;
use super::super::stated::{About, Says, Stated, path_key};
use super::{Origin, RELATED, Relations, Thing};
use kenning_entities::names::{alias_key, normalized};
use kenning_entities::ontology::{Ontology, predicate};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A relationship whose other end is not known yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct Pending {
    pub(in super::super) label: String,
    pub(in super::super) predicate: String,
    /// Whether the unknown one stands first.
    pub(in super::super) is_subject: bool,
}

/// Which statements there are.
#[derive(Clone, Copy, Default)]
pub(in super::super) struct Statements<'a> {
    /// What notes state, by their paths.
    pub(in super::super) notes: Option<&'a BTreeMap<String, Stated>>,
    /// What else was stated, by its source.
    pub(in super::super) said: Option<&'a BTreeMap<String, Settled>>,
    /// Which URI was merged into which.
    pub(in super::super) merged: Option<&'a BTreeMap<String, String>>,
}

impl<'a> Statements<'a> {
    /// The notes of the vault, and those that others registered and that the vault does not have.
    fn all_notes(self) -> impl Iterator<Item = (&'a str, &'a Stated)> {
        let notes = self.notes.into_iter().flatten();
        let notes = notes.map(|(path, stated)| (path.as_str(), stated));
        let registered = self.said.into_iter().flatten().filter_map(move |(_, it)| {
            let note = it.note.as_ref()?;
            let is_there = self.notes.is_some_and(|it| it.contains_key(&note.path));
            (!is_there).then_some((note.path.as_str(), &note.stated))
        });
        notes.chain(registered)
    }

    fn all_said(self) -> impl Iterator<Item = &'a Settled> {
        self.said.into_iter().flatten().map(|it| it.1)
    }
}

/// The graph of all statements.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct Wanted {
    /// By their URIs.
    pub(in super::super) things: BTreeMap<String, Thing>,
    /// By the URI of who stands first.
    pub(in super::super) relations: BTreeMap<String, Relations>,
    /// What each note is about, by its path.
    pub(in super::super) of_note: HashMap<String, String>,
    /// How often a relationship leads to a name that nobody has.
    pub(in super::super) pending: BTreeMap<Pending, usize>,
    /// Which URI stands for another.
    same: HashMap<String, String>,
    by_name: HashMap<String, BTreeSet<String>>,
    by_alias: HashMap<String, BTreeSet<String>>,
    by_path: HashMap<String, String>,
}

impl Wanted {
    /// Of statements in the order of their names.
    pub(in super::super) fn of(ontology: &Ontology, all: Statements<'_>) -> Self {
        let mut wanted = Self {
            same: merges(all),
            ..Self::default()
        };
        for (path, stated) in all.all_notes() {
            wanted.add_noted(path, stated);
        }
        for said in all.all_said() {
            wanted.add_said(said);
        }
        for (uri, thing) in &wanted.things {
            let named = wanted.by_name.entry(normalized(&thing.name)).or_default();
            named.insert(uri.clone());
            for alias in &thing.aliases {
                for key in [alias_key(alias), normalized(alias)] {
                    let called = wanted.by_alias.entry(key).or_default();
                    called.insert(uri.clone());
                }
            }
        }
        for (path, stated) in all.all_notes() {
            for says in &stated.says {
                wanted.add_relation(ontology, path, says);
            }
        }
        for said in all.all_said() {
            wanted.add_said_relations(ontology, said);
        }
        wanted
    }

    /// The URI that stands for this one.
    pub(in super::super) fn same<'a>(&'a self, uri: &'a str) -> &'a str {
        self.same.get(uri).map_or(uri, String::as_str)
    }

    fn add_noted(&mut self, path: &str, stated: &Stated) {
        let Some(about) = &stated.about else { return };
        let uri = about.uri();
        let to = self.same(&uri).to_owned();
        self.of_note.insert(path.to_owned(), to.clone());
        self.by_path.insert(path_key(path), to);
        let thing = self.add_thing(&uri, &about.name, &about.kind, (VAULT, path));
        for alias in &about.aliases {
            thing.add_alias(alias);
        }
        thing.describe(&about.description);
        thing.paths.push(path.to_owned());
    }

    fn add_said(&mut self, said: &Settled) {
        for it in &said.things {
            let thing = self.add_thing(&it.uri, &it.name, &it.kind, (&said.source, &said.rid));
            for alias in &it.aliases {
                thing.add_alias(alias);
            }
            thing.describe(&it.description);
        }
    }

    /// The thing that a URI stands for. One that was merged into another gives it its name as an alias.
    fn add_thing(&mut self, uri: &str, name: &str, kind: &str, from: (&str, &str)) -> &mut Thing {
        let to = self.same(uri).to_owned();
        let is_merged = to != uri;
        let thing = self.things.entry(to).or_default();
        if is_merged {
            thing.add_alias(&alias_key(name));
            thing.add_merged(uri);
        } else if thing.name.is_empty() {
            (thing.name, thing.kind) = (name.to_owned(), kind.to_owned());
        }
        if thing.source.is_empty() {
            (thing.source, thing.source_rid) = (from.0.to_owned(), from.1.to_owned());
        }
        thing
    }

    fn add_relation(&mut self, ontology: &Ontology, path: &str, says: &Says) {
        let Some(own) = self.of_note.get(path) else {
            return;
        };
        let Some(other) = self.resolve_target(ontology, own, says) else {
            let pending = Pending {
                label: says.target.clone(),
                predicate: says.predicate.clone(),
                is_subject: says.is_incoming,
            };
            *self.pending.entry(pending).or_default() += 1;
            return;
        };
        // Nothing relates to itself.
        if other == *own {
            return;
        }
        let ends = if says.is_incoming {
            (other, own.clone())
        } else {
            (own.clone(), other)
        };
        let Some(name) = self.fitting(ontology, &says.predicate, &ends.0, &ends.1) else {
            return;
        };
        self.relate(&ends.0, name, &ends.1, &of_note(path));
    }

    fn add_said_relations(&mut self, ontology: &Ontology, said: &Settled) {
        for it in &said.relations {
            let (subject, object) = (self.same(&it.subject), self.same(&it.object));
            let Some((known, _)) = predicate(&it.predicate) else {
                continue;
            };
            let kind = |uri: &str| self.things.get(uri).map(|it| it.kind.as_str());
            let (Some(from), Some(to)) = (kind(subject), kind(object)) else {
                continue;
            };
            if subject == object || ontology.check(known, from, to).is_err() {
                continue;
            }
            let (subject, object) = (subject.to_owned(), object.to_owned());
            let origin = Origin {
                source: it.source.as_ref().unwrap_or(&said.source).clone(),
                source_rid: it.source_rid.as_ref().unwrap_or(&said.rid).clone(),
                confidence: it.confidence,
            };
            self.relate(&subject, known.name, &object, &origin);
        }
    }

    /// The first who says something is named, unless a later one is surer.
    fn relate(&mut self, subject: &str, name: &'static str, object: &str, origin: &Origin) {
        let is_symmetric = predicate(name).is_some_and(|it| it.0.is_symmetric());
        let other_way = is_symmetric.then_some((object, subject));
        for (subject, object) in [(subject, object)].into_iter().chain(other_way) {
            let relations = self.relations.entry(subject.to_owned()).or_default();
            let said = relations.entry((name.to_owned(), object.to_owned()));
            let said = said.or_insert_with(|| origin.clone());
            if origin.confidence > said.confidence {
                said.clone_from(origin);
            }
        }
    }

    /// Who is meant: the note that a link names, else the one who has the name or the alias. Of several
    /// nobody is, unless the type tells them apart.
    fn resolve_target(&self, ontology: &Ontology, own: &str, says: &Says) -> Option<String> {
        if let Some(uri) = says.path.as_ref().and_then(|it| self.by_path.get(it)) {
            return Some(uri.clone());
        }
        let named = self.by_name.get(&normalized(&says.target));
        let called = || self.by_alias.get(&alias_key(&says.target));
        let all = named.or_else(called)?;
        let is_of_kind = |it: &&String| {
            let kind = self.things.get(*it).map(|it| it.kind.as_str());
            says.kind
                .as_deref()
                .is_some_and(|wanted| kind == Some(wanted))
        };
        let of_kind: Vec<&String> = all.iter().filter(is_of_kind).collect();
        if let [only] = of_kind[..] {
            return Some(only.clone());
        }
        if !of_kind.is_empty() {
            return None;
        }
        let fits = |it: &&String| {
            let (subject, object) = if says.is_incoming {
                (it.as_str(), own)
            } else {
                (own, it.as_str())
            };
            self.fitting(ontology, &says.predicate, subject, object)
                .is_some()
        };
        let fitting: Vec<&String> = all.iter().filter(fits).collect();
        match fitting[..] {
            [only] => Some(only.clone()),
            _ => None,
        }
    }

    /// The predicate if it may join the two; else that they are related, if that may be said.
    fn fitting(
        &self,
        ontology: &Ontology,
        said: &str,
        subject: &str,
        object: &str,
    ) -> Option<&'static str> {
        let kind = |uri: &str| self.things.get(uri).map(|it| it.kind.as_str());
        let (subject, object) = (kind(subject)?, kind(object)?);
        [said, RELATED].into_iter().find_map(|name| {
            let (predicate, _) = predicate(name)?;
            let fits = ontology.check(predicate, subject, object).is_ok();
            fits.then_some(predicate.name)
        })
    }

    /// Those who have this name, and those who have it as an alias.
    pub(in super::super) fn named(&self, key: &str) -> Option<&BTreeSet<String>> {
        self.by_name.get(key)
    }

    /// Those who have an alias with this key.
    pub(in super::super) fn called(&self, key: &str) -> Option<&BTreeSet<String>> {
        self.by_alias.get(key)
    }
}

/// Which URI stands for which: those that somebody merged, as far as there is somebody whom they are merged
/// into, and those that a note has another URI for.
fn merges(all: Statements<'_>) -> HashMap<String, String> {
    let mut same = known_by_notes(all);
    let Some(merged) = all.merged.filter(|it| !it.is_empty()) else {
        return same;
    };
    let noted = all.all_notes().filter_map(|it| it.1.about.as_ref());
    let noted = noted.map(About::uri);
    let said = all.all_said().flat_map(|it| &it.things);
    let stated: BTreeSet<String> = noted.chain(said.map(|it| it.uri.clone())).collect();
    for uri in merged.keys() {
        let chain = std::iter::successors(merged.get(uri), |it| merged.get(*it));
        // Nobody can make a circle; if somebody did, this ends all the same.
        let chain = chain.take(merged.len()).filter(|it| *it != uri);
        if let Some(last) = chain.filter(|it| stated.contains(*it)).last() {
            let last = same.get(last).unwrap_or(last).clone();
            same.insert(uri.clone(), last);
        }
    }
    // Whoever a note is about may itself have been merged.
    let through: Vec<(String, String)> = same
        .iter()
        .filter_map(|(uri, to)| Some((uri.clone(), same.get(to)?.clone())))
        .filter(|(uri, to)| uri != to)
        .collect();
    same.extend(through);
    same
}

/// Of entities that others name by another URI: the notes that have their name, or it as an alias. Of
/// several who share it none is taken for another.
fn known_by_notes(all: Statements<'_>) -> HashMap<String, String> {
    let mut noted: HashMap<(String, String), BTreeSet<String>> = HashMap::new();
    let mut own: BTreeSet<String> = BTreeSet::new();
    for about in all.all_notes().filter_map(|it| it.1.about.as_ref()) {
        let uri = about.uri();
        let names = std::iter::once(&about.name).chain(&about.aliases);
        for name in names.map(|it| normalized(it)) {
            let key = (about.kind.clone(), name);
            noted.entry(key).or_default().insert(uri.clone());
        }
        own.insert(uri);
    }
    if noted.is_empty() {
        return HashMap::new();
    }
    let mut said: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for thing in all.all_said().flat_map(|it| &it.things) {
        if !own.contains(&thing.uri) {
            let key = (thing.kind.clone(), normalized(&thing.name));
            said.entry(key).or_default().insert(thing.uri.clone());
        }
    }
    let only = |uris: &BTreeSet<String>| match uris.iter().collect::<Vec<_>>()[..] {
        [only] => Some(only.clone()),
        _ => None,
    };
    let meant = said.iter().rev().filter_map(|(key, uris)| {
        let to = only(noted.get(key)?)?;
        Some((only(uris)?, to))
    });
    // Of several names that mean somebody the first by their order counts.
    meant.collect()
}

fn of_note(path: &str) -> Origin {
    Origin {
        source: VAULT.to_owned(),
        source_rid: path.to_owned(),
        confidence: 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &str, kind: &str, says: &[(&str, &str, Option<&str>)]) -> Stated {
        let about = About {
            uri: None,
            name: name.to_owned(),
            kind: kind.to_owned(),
            aliases: Vec::new(),
            description: String::new(),
        };
        let says = says.iter().map(|(predicate, target, kind)| Says {
            predicate: (*predicate).to_owned(),
            is_incoming: false,
            target: (*target).to_owned(),
            kind: kind.map(ToOwned::to_owned),
            path: None,
        });
        Stated {
            of: String::new(),
            says: says.collect(),
            about: Some(about),
        }
    }

    fn check(notes: &[(&str, Stated)], expected: &[&str]) {
        let ontology = Ontology::default();
        let notes = notes.iter().map(|it| (it.0.to_owned(), it.1.clone()));
        let notes: BTreeMap<String, Stated> = notes.collect();
        let all = Statements {
            notes: Some(&notes),
            ..Statements::default()
        };
        let wanted = Wanted::of(&ontology, all);
        let name = |uri: &str| wanted.things[uri].name.clone();
        let mut said = Vec::new();
        for (subject, relations) in &wanted.relations {
            for ((predicate, object), origin) in relations {
                let (subject, object) = (name(subject), name(object));
                let path = &origin.source_rid;
                said.push(format!("{subject} {predicate} {object} ({path})"));
            }
        }
        said.sort();
        assert_eq!(said, expected);
    }

    #[test]
    fn what_joins_both_ends_alike_is_said_of_both() {
        check(
            &[
                (
                    "a",
                    note("Ann", "Person", &[("knows", "Bo", Some("Person"))]),
                ),
                ("b", note("Bo", "Person", &[])),
            ],
            &["Ann knows Bo (a)", "Bo knows Ann (a)"],
        );
    }

    #[test]
    fn of_two_with_one_name_the_type_tells_and_nothing_else_does() {
        let twins = [
            ("b", note("Salish Sea", "Bioregion", &[])),
            ("c", note("Salish Sea", "Location", &[])),
        ];
        let practice = |kind| {
            note(
                "Herring",
                "Practice",
                &[("practiced_in", "Salish Sea", kind)],
            )
        };
        let all = |kind| {
            let mut all = vec![("a", practice(kind))];
            all.extend(twins.clone());
            all
        };
        check(
            &all(Some("Bioregion")),
            &["Herring practiced_in Salish Sea (a)"],
        );
        check(&all(None), &[]);
    }

    #[test]
    fn what_cannot_be_is_a_mere_relation_and_nothing_relates_to_itself() {
        check(
            &[
                (
                    "a",
                    note("Idea", "Concept", &[("affiliated_with", "Org", None)]),
                ),
                (
                    "b",
                    note("Org", "Organization", &[("has_project", "Org", None)]),
                ),
                ("c", note("Talk", "Meeting", &[("knows", "Org", None)])),
            ],
            &["Idea related_to Org (a)"],
        );
    }
}
