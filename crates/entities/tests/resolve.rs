//! Labels are resolved against a small world: tiers in their order, guards, vetoes, and the answers that the
//! original gave to the same questions.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail and tell as tests do"
)]

use kenning_core::{Code, Error};
use kenning_entities::names::{alias_key, entity_uri, normalized, phonetic_key};
use kenning_entities::ontology::{Ontology, values};
use kenning_entities::resolve::{
    Candidates, Companion, Context, Entity, Query, Resolution, Tier, proposed, resolve,
};
use serde_json::{Value, json};

const GOLDEN: &str = include_str!("../../../testing/vectors/koi-golden.jsonl");

#[derive(Default)]
struct World {
    entities: Vec<Entity>,
    meanings: Vec<(&'static str, f64)>,
    company: Vec<(&'static str, u32)>,
    /// Who is in company also is of the project and the organization that are spoken of.
    is_close: bool,
    vetoes: Vec<(String, String)>,
}

impl World {
    fn of(names: &[(&str, &str)]) -> Self {
        let entity = |&(name, kind): &(&str, &str)| Entity {
            uri: entity_uri(name, kind),
            name: name.to_owned(),
            kind: kind.to_owned(),
            aliases: Vec::new(),
        };
        Self {
            entities: names.iter().map(entity).collect(),
            ..Self::default()
        }
    }

    fn those(&self, holds: impl Fn(&Entity) -> bool) -> Result<Vec<Entity>, Error> {
        Ok(self
            .entities
            .iter()
            .filter(|it| holds(it))
            .cloned()
            .collect())
    }

    fn named(&self, name: &str) -> Entity {
        let found = self.entities.iter().find(|it| it.name == name);
        found.unwrap().clone()
    }

    fn resolve(&self, label: &str, kind: &str) -> Resolution {
        let query = Query {
            label,
            kind: Some(kind),
            ..Query::default()
        };
        resolve(&Ontology::default(), self, &query).unwrap()
    }
}

impl Candidates for World {
    fn exact(&self, key: &str) -> Result<Vec<Entity>, Error> {
        self.those(|it| normalized(&it.name) == key)
    }

    fn alias(&self, key: &str) -> Result<Vec<Entity>, Error> {
        self.those(|it| it.aliases.iter().any(|alias| alias_key(alias) == key))
    }

    fn similar(&self, _name: &str, _limit: usize) -> Result<Vec<Entity>, Error> {
        self.those(|_| true)
    }

    fn phonetic(&self, key: &str) -> Result<Vec<Entity>, Error> {
        self.those(|it| phonetic_key(&it.name, &[]) == key)
    }

    fn semantic(&self, _name: &str) -> Result<Vec<(Entity, f64)>, Error> {
        Ok(self
            .meanings
            .iter()
            .map(|it| (self.named(it.0), it.1))
            .collect())
    }

    fn in_company(&self, _context: &Context) -> Result<Vec<Companion>, Error> {
        let companion = |&(name, n_documents): &(&str, u32)| Companion {
            entity: self.named(name),
            n_documents,
            is_of_project: self.is_close,
            is_of_organization: self.is_close,
            is_near: self.is_close,
            has_relations: self.is_close,
        };
        Ok(self.company.iter().map(companion).collect())
    }

    fn is_vetoed(&self, key: &str, uri: &str) -> Result<bool, Error> {
        Ok(self.vetoes.iter().any(|it| it.0 == key && it.1 == uri))
    }
}

fn answer(it: &Resolution) -> Vec<(&str, Tier)> {
    let candidates = it.candidates.iter();
    candidates
        .map(|it| (it.entity.name.as_str(), it.tier))
        .collect()
}

/// Questions to which the notes want another answer than the original's.
const DIFFERENT: &[(&str, &str)] = &[
    ("", "an empty label is refused"),
    ("salish sea", "a type is found whatever its case"),
];

#[test]
fn labels_mean_what_they_meant_to_the_original() {
    let ontology = Ontology::default();
    let mut world = World::default();
    let mut n_asked = 0;
    for line in GOLDEN.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (body, response) = (&line["body"], &line["response"]);
        if line["path"] == "/register-entity" {
            let text = |name: &str| body[name].as_str().unwrap().to_owned();
            world.entities.push(Entity {
                uri: response["canonical_uri"].as_str().unwrap().to_owned(),
                name: text("name"),
                kind: text("entity_type"),
                aliases: values(&body["frontmatter"]["aliases"]),
            });
        }
        let Some(label) = body["label"].as_str() else {
            continue;
        };
        if line["path"] != "/entity/resolve" {
            continue;
        }
        n_asked += 1;
        let query = Query {
            label,
            kind: body["type_hint"].as_str(),
            ..Query::default()
        };
        if DIFFERENT.iter().any(|it| it.0 == label) {
            continue;
        }
        let found = resolve(&ontology, &world, &query).unwrap();
        assert_eq!(json!(found.is_new()), response["is_new"], "{label}");
        let expected = &response["candidates"][0];
        let got = match (found.candidates.as_slice(), &found.proposed) {
            ([it], None) => json!({
                "name": it.entity.name, "uri": it.entity.uri, "type": it.entity.kind,
                "confidence": it.confidence, "merged_with": it.merged_with,
            }),
            // What the original calls a candidate is proposed, and has no confidence.
            ([], Some(it)) => json!({
                "name": it.name, "uri": it.uri, "type": it.kind, "confidence": 0.9, "merged_with": null,
            }),
            other => panic!("{label}: {other:?}"),
        };
        assert_eq!(got, *expected, "{label}");
    }
    assert!(n_asked >= 15, "{n_asked} questions");
}

#[test]
fn where_the_notes_want_another_answer_it_is_given() {
    let world = World::of(&[("Salish Sea", "Bioregion")]);
    let found = world.resolve("salish sea", "bioregion");
    assert_eq!(answer(&found), [("Salish Sea", Tier::Exact)]);
    for label in ["", "  "] {
        let query = Query {
            label,
            ..Query::default()
        };
        let error = resolve(&Ontology::default(), &world, &query).unwrap_err();
        assert_eq!(error.code, Code::InvalidInput);
    }
    let long = "x".repeat(501);
    let query = Query {
        label: &long,
        ..Query::default()
    };
    let error = resolve(&Ontology::default(), &world, &query).unwrap_err();
    assert_eq!(error.code, Code::TooLarge);
}

#[test]
fn the_first_tier_that_finds_anything_answers() {
    let mut world = World::of(&[
        ("Bill Baue", "Person"),
        ("Mehul Sangham", "Person"),
        ("Kwaxala Forest", "Person"),
        ("Automobile", "Concept"),
        ("Regen Network", "Organization"),
    ]);
    world.entities[0].aliases = vec!["[[People/WB|x]]".to_owned(), "Willy".to_owned()];
    world.meanings = vec![
        ("Automobile", 0.93),
        ("Regen Network", 0.99),
        ("Bill Baue", 0.99),
    ];
    for (label, kind, expected) in [
        ("bill_baue", "Person", Some(("Bill Baue", Tier::Exact))),
        ("Willy", "Person", Some(("Bill Baue", Tier::Alias))),
        ("wb", "Person", Some(("Bill Baue", Tier::Alias))),
        ("Bill Bau", "Person", Some(("Bill Baue", Tier::Fuzzy))),
        ("Willy Bau", "Person", None),
        (
            "Mihal Sangham",
            "Person",
            Some(("Mehul Sangham", Tier::Phonetic)),
        ),
        (
            "Motor vehicle",
            "Concept",
            Some(("Automobile", Tier::Semantic)),
        ),
        ("Vehicle", "Concept", Some(("Automobile", Tier::Semantic))),
        ("Car", "Concept", Some(("Automobile", Tier::Semantic))),
        ("Car", "Organization", None),
        ("Some Body", "Person", None),
        ("Herring Network", "Organization", None),
    ] {
        let found = world.resolve(label, kind);
        let expected: Vec<(&str, Tier)> = expected.into_iter().collect();
        assert_eq!(answer(&found), expected, "{label}");
        assert_eq!(found.proposed.is_some(), expected.is_empty());
    }
    // A short name must be nearer than a long one.
    world.meanings = vec![("Automobile", 0.90)];
    assert!(world.resolve("Car", "Concept").is_new());
    assert!(!world.resolve("Motor vehicle", "Concept").is_new());
}

#[test]
fn company_tells_who_is_meant_by_what_is_heard() {
    let mut world = World::of(&[("Kwaxala Forest", "Person"), ("Polly Jones", "Person")]);
    world.company = vec![("Kwaxala Forest", 3), ("Polly Jones", 1)];
    let ask = |label: &str, people: &[&str]| {
        let query = Query {
            label,
            kind: Some("Person"),
            context: Context {
                people: people.iter().map(|&it| it.to_owned()).collect(),
                ..Context::default()
            },
            ..Query::default()
        };
        resolve(&Ontology::default(), &world, &query).unwrap()
    };
    assert_eq!(
        answer(&ask("Quoxala", &["Ann"])),
        [("Kwaxala Forest", Tier::Contextual)]
    );
    assert!(ask("Quoxala", &[]).is_new());
    // Heard alike, but hardly ever seen together and spelled otherwise.
    assert!(
        ask("Pall", &["Ann"])
            .candidates
            .iter()
            .all(|it| it.confidence < 0.8)
    );
    assert!(ask("Miranda", &["Ann"]).is_new());
}

#[test]
fn company_takes_nobody_for_anybody() {
    let mut world = World::of(&[
        ("Maren Holm", "Person"),
        ("Kelp Atlas", "Project"),
        ("Ya'axche Circle", "Organization"),
    ]);
    world.entities[0].aliases = vec!["Captain Kelp".to_owned()];
    world.company = vec![("Maren Holm", 4), ("Kelp Atlas", 4), ("Ya'axche Circle", 4)];
    world.is_close = true;
    let ask = |label: &str, kind: Option<&str>| {
        let query = Query {
            label,
            kind,
            context: Context {
                people: vec!["Bill Baue".to_owned(), "Ann Lee".to_owned()],
                project: Some("Kelp Atlas".to_owned()),
                organizations: vec!["Kelp Guild".to_owned()],
            },
            ..Query::default()
        };
        resolve(&Ontology::default(), &world, &query).unwrap()
    };
    for (label, kind) in [
        ("Barack Obama", Some("Person")),
        ("Sarah Johnson", Some("Person")),
        ("Alexander Hamilton", Some("Person")),
        ("Norman Hill", Some("Person")),
        ("Sarah Holm", Some("Person")),
        ("Maren Hill", Some("Person")),
        ("Barack Obama", None),
        ("Kelp Guild", Some("Project")),
        ("Herring Atlas", Some("Project")),
        ("Salmon Circle", Some("Organization")),
    ] {
        assert!(ask(label, kind).is_new(), "{label}");
    }
    for (label, kind, expected) in [
        ("Maren H.", Some("Person"), "Maren Holm"),
        ("Marenn Holmm", Some("Person"), "Maren Holm"),
        ("Kaptain Kelp", Some("Person"), "Maren Holm"),
        ("Maren H.", None, "Maren Holm"),
        ("Kelp Atlas Project", Some("Project"), "Kelp Atlas"),
        ("Yaxche Circle", Some("Organization"), "Ya'axche Circle"),
    ] {
        let found = ask(label, kind);
        assert_eq!(answer(&found), [(expected, Tier::Contextual)], "{label}");
        assert!(found.candidates.iter().all(|it| !it.is_sure()), "{label}");
    }
}

#[test]
fn what_fits_several_is_not_sure() {
    let mut world = World::of(&[
        ("J. Smith", "Person"),
        ("Bill Baue", "Person"),
        ("Mehul Sangham", "Person"),
        ("Automobile", "Concept"),
        ("Open Civics", "Organization"),
    ]);
    world.entities[1].aliases = vec!["Willy".to_owned()];
    world.meanings = vec![("Automobile", 0.95)];
    for (label, kind, expected) in [
        ("bill baue", "Person", true),
        ("Willy", "Person", true),
        ("Bill Bau", "Person", true),
        ("Mihal Sangham", "Person", true),
        ("OpenCivics", "Organization", true),
        ("John Smith", "Person", false),
        ("Joan Smith", "Person", false),
        ("Jim Smith", "Person", false),
        ("William Baue", "Person", false),
        ("Bill X. Baue", "Person", false),
        ("Motor vehicle", "Concept", false),
    ] {
        let found = world.resolve(label, kind);
        assert_eq!(found.chosen().unwrap().is_sure(), expected, "{label}");
    }
    // Once it is known whose initial it is, it is nobody else's.
    world.entities[0].aliases = vec!["Joan Smith".to_owned()];
    assert!(world.resolve("John Smith", "Person").is_new());
    assert!(!world.resolve("Joanie Smith", "Person").is_new());
    assert!(
        world
            .resolve("joan smith", "Person")
            .chosen()
            .unwrap()
            .is_sure()
    );
}

#[test]
fn who_said_that_it_is_another_is_heard() {
    let mut world = World::of(&[("Bill Baue", "Person"), ("Bill Bauer", "Person")]);
    let uri = entity_uri("Bill Baue", "Person");
    assert_eq!(
        answer(&world.resolve("Bil Baue", "Person"))[0].0,
        "Bill Baue"
    );
    world.vetoes.push((normalized("Bil Baue"), uri));
    let found = world.resolve("Bil Baue", "Person");
    assert!(
        answer(&found).iter().all(|it| it.0 != "Bill Baue"),
        "{found:?}"
    );
}

#[test]
fn candidates_are_ranked_and_a_tie_is_nobody() {
    let world = World::of(&[
        ("John Smith", "Person"),
        ("Jane Smith", "Person"),
        ("Bob Smith", "Person"),
    ]);
    let found = world.resolve("J. Smith", "Person");
    assert_eq!(answer(&found).len(), 2);
    assert!(found.chosen().is_none());
    let found = world.resolve("B. Smith", "Person");
    assert_eq!(found.chosen().unwrap().entity.name, "Bob Smith");
    let query = Query {
        label: "J. Smith",
        kind: Some("Person"),
        limit: 1,
        ..Query::default()
    };
    let found = resolve(&Ontology::default(), &world, &query).unwrap();
    assert_eq!(answer(&found), [("Jane Smith", Tier::Fuzzy)]);
}

#[test]
fn what_is_proposed_has_the_type_as_the_ontology_spells_it() {
    let ontology = Ontology::default();
    let it = proposed(&ontology, " Salish Sea ", Some("bioregion"));
    assert_eq!(it.uri, entity_uri("Salish Sea", "Bioregion"));
    assert_eq!(
        (it.name.as_str(), it.kind.as_str()),
        ("Salish Sea", "Bioregion")
    );
    assert_eq!(proposed(&ontology, "X", Some("Weird")).kind, "Weird");
    assert_eq!(proposed(&ontology, "X", None).kind, "");
}

#[test]
fn what_fails_beneath_fails_above() {
    struct Broken;
    impl Candidates for Broken {
        fn exact(&self, _: &str) -> Result<Vec<Entity>, Error> {
            Err(Error::unavailable("the store is busy"))
        }
        fn alias(&self, _: &str) -> Result<Vec<Entity>, Error> {
            Ok(Vec::new())
        }
        fn similar(&self, _: &str, _: usize) -> Result<Vec<Entity>, Error> {
            Ok(Vec::new())
        }
        fn phonetic(&self, _: &str) -> Result<Vec<Entity>, Error> {
            Ok(Vec::new())
        }
        fn semantic(&self, _: &str) -> Result<Vec<(Entity, f64)>, Error> {
            Ok(Vec::new())
        }
    }
    let query = Query {
        label: "x",
        ..Query::default()
    };
    let error = resolve(&Ontology::default(), &Broken, &query).unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
}
