//! The example vault: every type, every relationship, and the answers that its guide promises.

use crate::Fixture;
use kenning_core::{Kind, Space};
use kenning_store::{EdgeFilter, NodeFilter, When};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// How many entities there are of each type; the last one is the vault's own.
const TYPES: &[(&str, usize)] = &[
    ("Person", 5),
    ("Organization", 4),
    ("Project", 2),
    ("Location", 2),
    ("Concept", 3),
    ("Meeting", 2),
    ("Practice", 2),
    ("Pattern", 1),
    ("CaseStudy", 1),
    ("Bioregion", 2),
    ("Protocol", 1),
    ("Playbook", 1),
    ("Question", 2),
    ("Claim", 2),
    ("Evidence", 2),
    ("Vessel", 1),
];

/// How many relationships there are of each of the 27 predicates.
const PREDICATES: &[(&str, usize)] = &[
    ("affiliated_with", 4),
    ("founded", 1),
    ("has_founder", 2),
    ("knows", 2),
    ("collaborates_with", 2),
    ("involves_person", 3),
    ("involves_organization", 3),
    ("has_project", 1),
    ("attended", 5),
    ("located_in", 9),
    ("aggregates_into", 2),
    ("suggests", 1),
    ("documents", 2),
    ("practiced_in", 3),
    ("supports", 2),
    ("opposes", 2),
    ("informs", 2),
    ("generates", 2),
    ("implemented_by", 1),
    ("synthesizes", 2),
    ("about", 6),
    ("broader", 2),
    ("narrower", 2),
    ("related_to", 3),
    ("forked_from", 1),
    ("builds_on", 1),
    ("inspired_by", 1),
];

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/koi-vault")
}

/// Every note of the example, by its path.
fn notes() -> BTreeMap<String, String> {
    fn gather(dir: &Path, root: &Path, into: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                gather(&path, root, into);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                into.insert(name.to_owned(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut notes = BTreeMap::new();
    gather(&example(), &example(), &mut notes);
    notes
}

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    for (path, text) in notes() {
        let path = fixture.vault().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fixture
}

fn ask(fixture: &Fixture, tool: &str, arguments: Value) -> Value {
    let reply = fixture.call(tool, arguments);
    assert!(!reply.is_error(), "{tool}: {}", reply.text);
    reply.to_json()
}

/// A text field of each row.
fn column(rows: &Value, field: &str) -> Vec<String> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|it| it[field].as_str().unwrap().to_owned())
        .collect()
}

/// What the store holds: how many entities of each type, and `[subject, predicate, object]` by names.
fn graph(fixture: &Fixture) -> (BTreeMap<String, usize>, BTreeSet<[String; 3]>) {
    let log = fixture.log();
    let read = log.read(&Space::default(), |tx| {
        let filter = NodeFilter {
            kinds: vec![Kind::Entity],
            ..NodeFilter::default()
        };
        let mut types: BTreeMap<String, usize> = BTreeMap::new();
        let mut said: BTreeSet<[String; 3]> = BTreeSet::new();
        for node in tx.nodes(&filter, When::Now, None, 1_000)? {
            let kind = node.props["type"].as_str().unwrap().to_owned();
            *types.entry(kind).or_default() += 1;
            let from = EdgeFilter {
                src: Some(node.id),
                ..EdgeFilter::default()
            };
            for edge in tx.edges(&from, When::Now, 1_000)? {
                if edge.props.contains_key("predicate") {
                    let to = tx.node(edge.dst, When::Now)?.unwrap().title;
                    said.insert([node.title.clone(), edge.rel.clone(), to]);
                }
            }
        }
        Ok((types, said))
    });
    read.unwrap()
}

fn counts(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let rows = expected.iter();
    rows.map(|(name, n)| ((*name).to_owned(), *n)).collect()
}

/// What stands between `[[` and `]]` in fields, names of the note itself left out.
fn linked_in_fields(note: &str) -> Vec<&str> {
    let Some(rest) = note.strip_prefix("---\n") else {
        return Vec::new();
    };
    let fields = rest.split("\n---\n").next().unwrap().lines();
    let fields = fields.filter(|it| !it.starts_with("aliases:"));
    let pieces = fields.flat_map(|it| it.split("[[").skip(1));
    pieces.map(|it| it.split("]]").next().unwrap()).collect()
}

#[test]
fn koi_example_has_every_type_and_every_relationship() {
    let fixture = fixture();
    ask(&fixture, "resolve_entity", json!({ "label": "Bill Baue" }));
    let (types, said) = graph(&fixture);
    assert_eq!(types, counts(TYPES));
    let mut predicates: BTreeMap<String, usize> = BTreeMap::new();
    for [_, predicate, _] in &said {
        *predicates.entry(predicate.clone()).or_default() += 1;
    }
    assert_eq!(PREDICATES.len(), 27);
    assert_eq!(predicates, counts(PREDICATES), "{said:#?}");
}

#[test]
fn koi_example_has_no_field_whose_link_relates_nothing() {
    let fixture = fixture();
    ask(&fixture, "resolve_entity", json!({ "label": "Bill Baue" }));
    let (_, said) = graph(&fixture);
    let ends: BTreeSet<(&str, &str)> = said
        .iter()
        .map(|[subject, _, object]| (subject.as_str(), object.as_str()))
        .collect();
    let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let mut n_links = 0;
    for (path, text) in &notes() {
        let own = name(path.strip_suffix(".md").unwrap());
        for link in linked_in_fields(text) {
            let other = name(link);
            let is_related = ends.contains(&(own.as_str(), other.as_str()))
                || ends.contains(&(other.as_str(), own.as_str()));
            assert!(is_related, "{path}: {link}");
            n_links += 1;
        }
    }
    assert_eq!(n_links, 69);
}

#[test]
fn koi_example_names_are_taken_for_one_another_only_where_they_should() {
    let fixture = fixture();
    for (label, hint, expected) in [
        ("Bill", None, vec!["Bill Baue"]),
        ("William Baue", None, vec!["Bill Baue"]),
        ("B. Baue", Some("Person"), vec!["Bill Baue"]),
        ("Bill Bau", Some("Person"), vec!["Bill Baue"]),
        ("Holm, Maren", Some("Person"), vec!["Maren Holm"]),
        ("Maren", Some("Person"), vec![]),
        ("zoe nunez", None, vec!["Zoë Núñez"]),
        ("Joan Tull", Some("Person"), vec!["Joan Tull"]),
        ("J. Tull", Some("Person"), vec!["Joan Tull", "John Tull"]),
        ("hwn", None, vec!["Herring Watch Network"]),
        (
            "Herring Watch Netwrok",
            Some("Organization"),
            vec!["Herring Watch Network"],
        ),
        (
            "The Kelp Watch Network, Inc.",
            Some("org"),
            vec!["Kelp Watch Network"],
        ),
        ("Seal Watch Network", Some("Organization"), vec![]),
        (
            "Does spawn follow the kelp?",
            Some("question"),
            vec!["Does spawn follow the kelp"],
        ),
        ("the old boat", Some("Boat"), vec!["Petrel"]),
        ("Nobody Known", None, vec![]),
    ] {
        let arguments = json!({ "label": label, "type_hint": hint });
        let found = ask(&fixture, "resolve_entity", arguments);
        let names = column(&found["candidates"], "name");
        assert_eq!(names, expected, "{label}: {found}");
        assert_eq!(found["is_new"], expected.is_empty(), "{label}");
    }
}

#[test]
fn koi_example_is_searched_and_its_notes_name_each_other() {
    let fixture = fixture();
    let arguments = json!({ "query": "herring", "type_filter": "practice" });
    let found = ask(&fixture, "koi_search", arguments);
    assert_eq!(column(&found["results"], "name"), ["Herring Monitoring"]);
    let found = ask(
        &fixture,
        "koi_search",
        json!({ "query": "Spawn Atlas", "limit": 1 }),
    );
    assert_eq!(column(&found["results"], "name"), ["Spawn Atlas"]);
    let arguments = json!({ "query": "eelgrass", "source": "vault" });
    let found = ask(&fixture, "knowledge_search", arguments);
    let rid = "vault:Meetings/2026-03-14 Spawn Count.md";
    assert!(
        column(&found["results"], "rid").contains(&rid.to_owned()),
        "{found}"
    );
    let found = ask(
        &fixture,
        "get_entity_documents",
        json!({ "entity_uri": "Zoe Nunez" }),
    );
    let expected = [
        "vault:Meetings/2026-01-05 Sync.md",
        "vault:People/Maren Holm.md",
        "vault:Projects/Kelp Atlas.md",
        "vault:Projects/Spawn Atlas.md",
    ];
    assert_eq!(
        column(&found["documents"], "document_rid"),
        expected,
        "{found}"
    );
    assert_eq!(found["documents"][0]["doc_date"], "2026-01-05");
}
