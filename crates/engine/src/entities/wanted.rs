//! The graph that the notes of a vault make together.
//!
//! It is a function of all notes and of nothing else: neither the order in which they were written nor
//! who has read them first matters. A name that nobody has yet leads nowhere until somebody has it.

use super::stated::{Says, Stated, path_key};
use kenning_entities::names::{alias_key, entity_uri, normalized};
use kenning_entities::ontology::{Ontology, predicate};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What relates two things when what a note says of them cannot be.
const RELATED: &str = "related_to";

/// An entity, by all notes that are about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Thing {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) aliases: Vec<String>,
    pub(super) description: String,
    /// The notes about it, the first of which it has its name from.
    pub(super) paths: Vec<String>,
}

/// Who a relationship leads to, by its predicate and URI, and which note says so.
pub(super) type Relations = BTreeMap<(String, String), String>;

/// The graph of a vault.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wanted {
    /// By their URIs.
    pub(super) things: BTreeMap<String, Thing>,
    /// By the URI of who stands first.
    pub(super) relations: BTreeMap<String, Relations>,
    /// What each note is about, by its path.
    pub(super) of_note: HashMap<String, String>,
    by_name: HashMap<String, BTreeSet<String>>,
    by_alias: HashMap<String, BTreeSet<String>>,
    by_path: HashMap<String, String>,
}

impl Wanted {
    /// Of notes in the order of their paths.
    pub(super) fn of<'a>(
        ontology: &Ontology,
        notes: impl Iterator<Item = (&'a str, &'a Stated)> + Clone,
    ) -> Self {
        let mut wanted = Self::default();
        for (path, stated) in notes.clone() {
            wanted.add_thing(path, stated);
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
        for (path, stated) in notes {
            for says in &stated.says {
                wanted.add_relation(ontology, path, says);
            }
        }
        wanted
    }

    fn add_thing(&mut self, path: &str, stated: &Stated) {
        let Some(about) = &stated.about else { return };
        let uri = entity_uri(&about.name, &about.kind);
        self.of_note.insert(path.to_owned(), uri.clone());
        self.by_path.insert(path_key(path), uri.clone());
        let thing = self.things.entry(uri).or_insert_with(|| Thing {
            name: about.name.clone(),
            kind: about.kind.clone(),
            ..Thing::default()
        });
        for alias in &about.aliases {
            if !thing.aliases.contains(alias) {
                thing.aliases.push(alias.clone());
            }
        }
        if thing.description.is_empty() {
            thing.description.clone_from(&about.description);
        }
        thing.paths.push(path.to_owned());
    }

    fn add_relation(&mut self, ontology: &Ontology, path: &str, says: &Says) {
        let Some(own) = self.of_note.get(path) else {
            return;
        };
        let Some(other) = self.meant(ontology, own, says) else {
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
        let is_symmetric = predicate(name).is_some_and(|it| it.0.is_symmetric());
        if is_symmetric {
            self.relate(&ends.1, name, &ends.0, path);
        }
        self.relate(&ends.0, name, &ends.1, path);
    }

    /// The first note that says something is the one that is named.
    fn relate(&mut self, subject: &str, name: &str, object: &str, path: &str) {
        let relations = self.relations.entry(subject.to_owned()).or_default();
        let said = relations.entry((name.to_owned(), object.to_owned()));
        said.or_insert_with(|| path.to_owned());
    }

    /// Who is meant: the note that a link names, else the one who has the name or the alias. Of several
    /// nobody is, unless the type tells them apart.
    fn meant(&self, ontology: &Ontology, own: &str, says: &Says) -> Option<String> {
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
    pub(super) fn named(&self, key: &str) -> Option<&BTreeSet<String>> {
        self.by_name.get(key)
    }

    /// Those who have an alias with this key.
    pub(super) fn called(&self, key: &str) -> Option<&BTreeSet<String>> {
        self.by_alias.get(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::stated::About;

    fn note(name: &str, kind: &str, says: &[(&str, &str, Option<&str>)]) -> Stated {
        let about = About {
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
        let wanted = Wanted::of(&ontology, notes.iter().map(|it| (it.0, &it.1)));
        let name = |uri: &str| wanted.things[uri].name.clone();
        let mut said = Vec::new();
        for (subject, relations) in &wanted.relations {
            for ((predicate, object), path) in relations {
                let (subject, object) = (name(subject), name(object));
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
