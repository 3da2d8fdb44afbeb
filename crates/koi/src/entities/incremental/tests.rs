//! The graph after each of many random changes is the one that all statements make from scratch.

use super::super::said::{RegisteredNote, Settled, SettledRelation, SettledThing, note_key};
use super::super::stated::{About, Says, Stated, path_key};
use super::super::wanted::scratch::{Statements, Wanted};
use super::super::wanted::{Relations, Thing};
use super::*;
use kenning_core::SeededRandom;
use kenning_entities::names::{alias_key, entity_uri, normalized};
use std::panic::{AssertUnwindSafe, catch_unwind};

const SEEDS: u64 = 3;
const EDITS: usize = 1_000;

const NAMES: [&str; 9] = [
    "Ann",
    "ann",
    "Bo",
    "Salish Sea",
    "salish-sea",
    "Org",
    "Herring",
    "Cy Dee",
    "Sea",
];
const ALIASES: [&str; 5] = ["the sea", "Ann", "bo b", "org", "nobody"];
const KINDS: [&str; 6] = [
    "Person",
    "Organization",
    "Bioregion",
    "Location",
    "Practice",
    "Concept",
];
const PREDICATES: [&str; 6] = [
    "knows",
    "practiced_in",
    "affiliated_with",
    "founded",
    "related_to",
    "nonsense",
];
const PATHS: [&str; 8] = [
    "People/a.md",
    "people/A.md",
    "People/b.md",
    "c.md",
    "D/d.md",
    "D/e.md",
    "f.md",
    "g.md",
];
const SOURCES: [&str; 5] = [
    "document:w",
    "document:x",
    "document:y",
    "import:i:0",
    "import:i:1",
];

/// All statements as they are, and the graph that follows them.
struct World {
    random: SeededRandom,
    notes: BTreeMap<String, Stated>,
    said: BTreeMap<String, Settled>,
    merged: BTreeMap<String, String>,
    graph: Graph,
    /// What would be in a store that is written by changes alone.
    written: Written,
}

#[derive(Debug, Default, PartialEq)]
struct Written {
    things: BTreeMap<String, Thing>,
    relations: BTreeMap<String, Relations>,
    of_note: BTreeMap<String, String>,
    mentions: BTreeMap<NodeId, BTreeMap<String, SaidMention>>,
    /// Who is found by which name and which alias.
    names: BTreeMap<(bool, String), Vec<String>>,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: SeededRandom::new(seed),
            notes: BTreeMap::new(),
            said: BTreeMap::new(),
            merged: BTreeMap::new(),
            graph: Graph::new(Arc::new(Ontology::default())),
            written: Written::default(),
        }
    }

    fn below(&self, n: usize) -> usize {
        usize::try_from(self.random.below(n as u64)).unwrap()
    }

    fn one_of<'a>(&self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    fn some_of(&self, all: &[&str], most: usize) -> Vec<String> {
        let n = self.below(most + 1);
        (0..n).map(|_| self.one_of(all).to_owned()).collect()
    }

    fn uri(&self) -> String {
        entity_uri(self.one_of(&NAMES), self.one_of(&KINDS[..3]))
    }

    fn stated(&self) -> Stated {
        // Every third note is about few names, so that they collide.
        let about = (self.below(8) > 0).then(|| About {
            uri: (self.below(6) == 0).then(|| self.uri()),
            name: self.one_of(&NAMES).to_owned(),
            kind: self.one_of(&KINDS).to_owned(),
            aliases: self.some_of(&ALIASES, 2),
            description: self.some_of(&["d", "e"], 1).concat(),
        });
        let says = (0..self.below(4)).map(|_| Says {
            predicate: self.one_of(&PREDICATES).to_owned(),
            is_incoming: self.below(3) == 0,
            target: match self.below(3) {
                0 => self.one_of(&ALIASES).to_owned(),
                _ => self.one_of(&NAMES).to_owned(),
            },
            kind: (self.below(2) == 0).then(|| self.one_of(&KINDS).to_owned()),
            path: (self.below(4) == 0).then(|| path_key(self.one_of(&PATHS))),
        });
        Stated {
            of: String::new(),
            says: says.collect(),
            about,
        }
    }

    fn settled(&self) -> Settled {
        let things = (0..self.below(4)).map(|_| {
            let name = self.one_of(&NAMES).to_owned();
            let kind = self.one_of(&KINDS[..3]).to_owned();
            let uri = match self.below(3) {
                0 => format!("orn:other:{}", self.below(4)),
                _ => entity_uri(&name, &kind),
            };
            SettledThing {
                uri,
                name,
                kind,
                aliases: self.some_of(&ALIASES, 1),
                description: self.some_of(&["f"], 1).concat(),
                n_mentions: u32::try_from(self.below(3)).unwrap(),
            }
        });
        let relations = (0..self.below(4)).map(|_| SettledRelation {
            subject: self.uri(),
            predicate: self.one_of(&PREDICATES).to_owned(),
            object: self.uri(),
            confidence: [0.5, 0.9, 1.0][self.below(3)],
            source: (self.below(3) == 0).then(|| "other".to_owned()),
            source_rid: None,
        });
        let document = NodeId([u8::try_from(self.below(3)).unwrap(); 16]);
        Settled {
            source: "web".to_owned(),
            rid: "r".to_owned(),
            document: (self.below(2) == 0).then(|| document.to_string()),
            things: things.collect(),
            relations: relations.collect(),
            ..Settled::default()
        }
    }

    fn edit(&mut self) {
        match self.below(10) {
            0..4 => {
                let path = self.one_of(&PATHS).to_owned();
                let stated = (self.below(3) > 0).then(|| self.stated());
                self.graph.set_note(&path, stated.as_ref());
                put(&mut self.notes, path, stated);
            }
            4..7 => {
                let key = self.one_of(&SOURCES).to_owned();
                let settled = (self.below(3) > 0).then(|| self.settled());
                self.graph.set_said(&key, settled.as_ref());
                put(&mut self.said, key, settled);
            }
            7 => {
                let path = self.one_of(&PATHS).to_owned();
                let key = note_key(&path);
                let settled = (self.below(3) > 0).then(|| Settled {
                    note: Some(RegisteredNote {
                        path,
                        stated: self.stated(),
                        content_hash: None,
                        registered_ms: None,
                    }),
                    ..self.settled()
                });
                self.graph.set_said(&key, settled.as_ref());
                put(&mut self.said, key, settled);
            }
            _ => {
                let uri = match self.below(3) {
                    0 => format!("orn:other:{}", self.below(4)),
                    _ => self.uri(),
                };
                let into = (self.below(2) > 0)
                    .then(|| self.uri())
                    .filter(|it| *it != uri);
                self.graph.set_merge(&uri, into.as_deref());
                put(&mut self.merged, uri, into);
            }
        }
    }

    /// Writes what the graph says that may be another, as a store is written.
    fn write(&mut self) {
        let changes = self.graph.settle();
        let Self { graph, written, .. } = self;
        for uri in &changes.things {
            let before = written.things.remove(uri);
            let now = graph.thing(uri);
            for thing in before.iter().chain(&now) {
                let name = normalized(&thing.name);
                let named = graph.named(&name);
                put_names(&mut written.names, (false, name), &named);
                for alias in &thing.aliases {
                    for key in [alias_key(alias), normalized(alias)] {
                        let called = graph.called(&key);
                        put_names(&mut written.names, (true, key.clone()), &called);
                    }
                }
            }
            put(&mut written.things, uri.clone(), now);
        }
        for uri in changes.subjects.iter().chain(&changes.things) {
            let relations = graph.relations(uri);
            let relations = Some(relations).filter(|it| !it.is_empty());
            put(&mut written.relations, uri.clone(), relations);
        }
        for path in &changes.notes {
            let own = graph.of_note(path).map(ToOwned::to_owned);
            put(&mut written.of_note, path.clone(), own);
        }
        for document in changes.documents {
            put(&mut written.mentions, document, graph.mentions(document));
        }
    }

    fn check(&self, when: &str) {
        let all = Statements {
            notes: Some(&self.notes),
            said: Some(&self.said),
            merged: Some(&self.merged),
        };
        let wanted = Wanted::of(&Ontology::default(), all);
        let expected = expected(&wanted, &self.said);
        assert_eq!(self.written, expected, "{when}");
        let mut by_type: BTreeMap<String, usize> = BTreeMap::new();
        let mut by_predicate = by_type.clone();
        for thing in wanted.things.values() {
            *by_type.entry(thing.kind.clone()).or_default() += 1;
        }
        for (predicate, _) in wanted.relations.values().flat_map(BTreeMap::keys) {
            *by_predicate.entry(predicate.clone()).or_default() += 1;
        }
        assert_eq!(self.graph.by_type(), &by_type, "{when}");
        assert_eq!(self.graph.by_predicate(), &by_predicate, "{when}");
        let (total, pending) = self.graph.pending(usize::MAX);
        let pending = pending
            .into_iter()
            .map(|it| ((it.label, it.predicate, it.is_subject), it.count));
        let pending: BTreeMap<_, usize> = pending.collect();
        let expected = wanted.pending.iter();
        let expected =
            expected.map(|(it, n)| ((it.label.clone(), it.predicate.clone(), it.is_subject), *n));
        let expected: BTreeMap<_, usize> = expected.collect();
        assert_eq!(pending, expected, "{when}");
        assert_eq!(total, pending.values().sum::<usize>(), "{when}");
    }
}

fn expected(wanted: &Wanted, said: &BTreeMap<String, Settled>) -> Written {
    let mut expected = Written {
        things: wanted.things.clone(),
        relations: wanted.relations.clone(),
        of_note: wanted.of_note.clone().into_iter().collect(),
        ..Written::default()
    };
    for thing in wanted.things.values() {
        let name = normalized(&thing.name);
        let named = wanted.named(&name).unwrap().iter().cloned().collect();
        expected.names.insert((false, name), named);
        for key in thing
            .aliases
            .iter()
            .flat_map(|it| [alias_key(it), normalized(it)])
        {
            let called = wanted.called(&key).unwrap().iter().cloned().collect();
            expected.names.insert((true, key), called);
        }
    }
    for settled in said.values() {
        let Some(document) = settled.document() else {
            continue;
        };
        let mentions = expected.mentions.entry(document).or_default();
        for thing in &settled.things {
            let uri = wanted.same(&thing.uri).to_owned();
            let mention = mentions.entry(uri).or_insert_with(|| SaidMention {
                source: settled.source.clone(),
                source_rid: settled.rid.clone(),
                n: 0,
            });
            mention.n += thing.n_mentions;
        }
    }
    expected
}

fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
}

fn put_names(
    names: &mut BTreeMap<(bool, String), Vec<String>>,
    key: (bool, String),
    uris: &[&str],
) {
    let uris: Vec<String> = uris.iter().map(|it| (*it).to_owned()).collect();
    put(names, key, Some(uris).filter(|it| !it.is_empty()));
}

#[test]
fn after_any_thousand_changes_the_graph_is_the_one_from_scratch() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        let mut n_edits = 0;
        while n_edits < EDITS {
            let n = 1 + world.below(3);
            (0..n).for_each(|_| world.edit());
            n_edits += n;
            world.write();
            world.check(&format!("seed {seed}, {n_edits} changes"));
        }
        assert!(!world.written.relations.is_empty(), "seed {seed}");
    }
}

/// Changes a graph that does not follow one dependency, and says after how many changes the comparison failed.
fn sabotaged(seed: u64, skipped: Dependency) -> Option<usize> {
    let mut world = World::new(seed);
    world.graph.skipped = Some(skipped);
    (1..=EDITS).find(|_| {
        world.edit();
        let compared = catch_unwind(AssertUnwindSafe(|| {
            world.write();
            world.check("a dependency is not followed");
        }));
        compared.is_err()
    })
}

#[test]
fn the_comparison_fails_where_a_dependency_is_not_followed() {
    for skipped in [
        Dependency::Name,
        Dependency::Alias,
        Dependency::Path,
        Dependency::Uri,
    ] {
        let failed = (0..SEEDS).find_map(|seed| sabotaged(seed, skipped));
        assert!(failed.is_some(), "{skipped:?}: nothing was noticed");
    }
}

/// The dependency that is easiest to forget: somebody is named before anybody has the name.
#[test]
fn a_name_that_nobody_has_leads_somewhere_as_soon_as_somebody_has_it() {
    let mut world = World::new(0);
    let note = |name: &str, target: Option<&str>| Stated {
        about: Some(About {
            uri: None,
            name: name.to_owned(),
            kind: "Person".to_owned(),
            aliases: Vec::new(),
            description: String::new(),
        }),
        says: target
            .iter()
            .map(|it| Says {
                predicate: "knows".to_owned(),
                is_incoming: false,
                target: (*it).to_owned(),
                kind: None,
                path: None,
            })
            .collect(),
        ..Stated::default()
    };
    for (path, stated, n_pending) in [
        ("a.md", Some(note("Ann", Some("Bo"))), 1),
        ("b.md", Some(note("Bo", None)), 0),
        ("b.md", None, 1),
    ] {
        world.graph.set_note(path, stated.as_ref());
        put(&mut world.notes, path.to_owned(), stated);
        world.write();
        world.check(path);
        assert_eq!(world.graph.pending(9).0, n_pending, "{path}");
    }
}
