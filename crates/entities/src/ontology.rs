//! The types of entities, the relationships between them, and the meaning of fields of notes.
//!
//! [`Ontology::default`] has 15 types. A vault can change them or add others with notes whose
//! frontmatter has a field `resolution` ([`Ontology::adopt`]). The predicates are the same
//! everywhere.

mod fields;
mod predicates;
mod schema;

pub use fields::{FieldLink, values};
pub use predicates::{Direction, PREDICATES, Predicate, predicate};

use kenning_core::Error;
use predicates::squeezed;
use sha2::{Digest, Sha256};

/// A type of entity, and how its names are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityType {
    /// Its name in the graph.
    pub key: String,
    /// The vault's folder of its notes.
    pub folder: String,
    /// Whether names that sound alike may be one.
    pub phonetic_matching: bool,
    /// Words that are left out when a name is compared by its sound.
    pub phonetic_stopwords: Vec<String>,
    /// Other names of the type.
    pub type_aliases: Vec<String>,
    /// Jaro-Winkler similarity from which on two names may be one.
    pub similarity_threshold: f64,
    /// Cosine similarity from which on two names may mean one thing.
    pub semantic_threshold: f64,
    /// Whether names of several words must share at least two of them.
    pub require_token_overlap: bool,
    /// This many people must be known from the context before it can decide who is meant.
    pub min_context_people: u32,
}

/// The types, and the rules for names of no known type.
#[derive(Clone, Debug, PartialEq)]
pub struct Ontology {
    kinds: Vec<EntityType>,
    unknown: EntityType,
}

/// Key, folder, Jaro-Winkler, cosine, shared words, people.
type Row = (&'static str, &'static str, f64, f64, bool, u32);

const KINDS: &[Row] = &[
    ("Person", "People", 0.92, 0.92, false, 1),
    ("Organization", "Organizations", 0.85, 0.92, true, 2),
    ("Project", "Projects", 0.85, 0.92, true, 2),
    ("Location", "Locations", 0.90, 0.92, true, 2),
    ("Concept", "Concepts", 0.75, 0.88, false, 2),
    ("Meeting", "Meetings", 0.90, 0.92, true, 1),
    ("Practice", "Practices", 0.80, 0.90, true, 2),
    ("Pattern", "Patterns", 0.80, 0.90, true, 2),
    ("CaseStudy", "CaseStudies", 0.85, 0.92, true, 2),
    ("Bioregion", "Bioregions", 0.85, 0.92, true, 2),
    ("Protocol", "Protocols", 0.85, 0.92, true, 2),
    ("Playbook", "Playbooks", 0.85, 0.92, true, 2),
    ("Question", "Questions", 0.75, 0.88, false, 2),
    ("Claim", "Claims", 0.75, 0.88, false, 2),
    ("Evidence", "Evidence", 0.80, 0.90, true, 2),
];

/// The least specific predicate.
const RELATED: &str = "related_to";

const UNKNOWN: Row = ("unknown", "Misc", 0.90, 0.95, true, 2);

const ALIASES: &[(&str, &str)] = &[
    ("Org", "Organization"),
    ("Orgs", "Organization"),
    ("Place", "Location"),
    ("Places", "Location"),
    ("SoftwareApplication", "Concept"),
    ("Idea", "Concept"),
    ("Tool", "Concept"),
];

/// Words before a name that are left out when it is compared by its sound.
const STOPWORDS: &[&str] = &[
    "the",
    "a",
    "an",
    "dr",
    "mr",
    "mrs",
    "ms",
    "mx",
    "prof",
    "professor",
    "sir",
    "dame",
    "rev",
    "st",
];

/// Vocabularies that other tools write before a type.
const PREFIXES: &[&str] = &["schema:", "bkc:", "foaf:"];

fn kind_of(row: &Row) -> EntityType {
    let (key, folder, similarity_threshold, semantic_threshold, overlap, people) = *row;
    let aliases = ALIASES.iter().filter(|it| it.1 == key);
    let owned = |it: &[&str]| it.iter().map(|&it| it.to_owned()).collect();
    EntityType {
        key: key.to_owned(),
        folder: folder.to_owned(),
        phonetic_matching: key == "Person",
        phonetic_stopwords: owned(STOPWORDS),
        type_aliases: aliases.map(|it| it.0.to_owned()).collect(),
        similarity_threshold,
        semantic_threshold,
        require_token_overlap: overlap,
        min_context_people: people,
    }
}

impl Default for Ontology {
    fn default() -> Self {
        Self {
            kinds: KINDS.iter().map(kind_of).collect(),
            unknown: kind_of(&UNKNOWN),
        }
    }
}

impl EntityType {
    /// The type as JSON-LD writes it.
    #[must_use]
    pub fn json_ld(&self) -> String {
        match self.key.as_str() {
            "Person" | "Organization" => format!("schema:{}", self.key),
            "Location" => "schema:Place".to_owned(),
            "Practice" | "Pattern" | "CaseStudy" | "Bioregion" | "Protocol" | "Playbook"
            | "Question" | "Claim" | "Evidence" => format!("bkc:{}", self.key),
            _ => self.key.clone(),
        }
    }
}

impl Ontology {
    /// Every type, in order.
    #[must_use]
    pub fn kinds(&self) -> &[EntityType] {
        &self.kinds
    }

    /// How names without a type, or of one that is not known, are compared.
    #[must_use]
    pub fn unknown(&self) -> &EntityType {
        &self.unknown
    }

    /// The type of a name, whatever its case, prefix or alias: `person`, `schema:Place`, `Idea`.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<&EntityType> {
        let name = name.trim();
        let bare = PREFIXES.iter().find_map(|it| name.strip_prefix(it));
        let wanted = squeezed(bare.unwrap_or(name));
        let by_key = self.kinds.iter().find(|it| squeezed(&it.key) == wanted);
        by_key.or_else(|| {
            let has = |entity_type: &&EntityType| {
                entity_type
                    .type_aliases
                    .iter()
                    .any(|it| squeezed(it) == wanted)
            };
            self.kinds.iter().find(has)
        })
    }

    /// The type whose notes lie in a folder; a folder may also have the type's name.
    #[must_use]
    pub fn of_folder(&self, folder: &str) -> Option<&EntityType> {
        let wanted = squeezed(folder.trim());
        let by_folder = self.kinds.iter().find(|it| squeezed(&it.folder) == wanted);
        by_folder.or_else(|| self.kind(folder))
    }

    /// The type of a note by the folder that it lies in, however deep.
    #[must_use]
    pub fn of_path(&self, path: &str) -> Option<&EntityType> {
        let (folders, _) = path.rsplit_once('/')?;
        folders.rsplit('/').find_map(|it| self.of_folder(it))
    }

    /// Checks that a relationship may join two types. Unknown types may be joined by anything; types
    /// that a vault declares may be joined by predicates without restrictions and by `related_to`.
    ///
    /// # Errors
    /// Invalid input that names the end that does not fit and the types that would.
    pub fn check(&self, predicate: &Predicate, subject: &str, object: &str) -> Result<(), Error> {
        let ends = [
            ("subject", subject, predicate.subjects),
            ("object", object, predicate.objects),
        ];
        for (end, kind, allowed) in ends {
            let Some(kind) = self.kind(kind) else {
                continue;
            };
            let is_declared = !KINDS.iter().any(|it| it.0 == kind.key);
            if is_declared && predicate.name == RELATED {
                continue;
            }
            if !allowed.is_empty() && !allowed.contains(&kind.key.as_str()) {
                let (name, key) = (predicate.name, &kind.key);
                return Err(
                    Error::invalid(format!("the {end} of `{name}` cannot be a `{key}`"))
                        .hint(format!("it can be: {}", allowed.join(", "))),
                );
            }
        }
        Ok(())
    }

    /// Eight letters that change when the types change.
    #[must_use]
    pub fn version(&self) -> String {
        let mut hash = Sha256::new();
        for it in self.kinds.iter().chain([&self.unknown]) {
            hash.update(format!("{it:?}\n"));
        }
        kenning_text::hex::encode(&hash.finalize()[..4])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_found_by_any_of_its_names() {
        let ontology = Ontology::default();
        assert_eq!(ontology.kinds().len(), 15);
        for (name, expected) in [
            ("Person", Some("Person")),
            ("person", Some("Person")),
            ("schema:Person", Some("Person")),
            ("schema:Place", Some("Location")),
            ("bkc:Practice", Some("Practice")),
            ("SoftwareApplication", Some("Concept")),
            ("case study", Some("CaseStudy")),
            ("case_study", Some("CaseStudy")),
            ("Weird", None),
            ("", None),
        ] {
            let found = ontology.kind(name).map(|it| it.key.as_str());
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn a_folder_tells_the_type() {
        let ontology = Ontology::default();
        for (path, expected) in [
            ("People/Bill Baue.md", Some("Person")),
            ("People/Elders/Ann.md", Some("Person")),
            ("CaseStudies/X.md", Some("CaseStudy")),
            ("orgs/X.md", Some("Organization")),
            ("Sources/X.md", None),
            ("People.md", None),
        ] {
            let found = ontology.of_path(path).map(|it| it.key.as_str());
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn json_ld_has_the_prefix_of_its_vocabulary() {
        let ontology = Ontology::default();
        for (name, expected) in [
            ("Person", "schema:Person"),
            ("Location", "schema:Place"),
            ("Claim", "bkc:Claim"),
            ("Project", "Project"),
        ] {
            assert_eq!(ontology.kind(name).unwrap().json_ld(), expected);
        }
    }

    #[test]
    fn a_relationship_that_does_not_fit_says_what_would() {
        let ontology = Ontology::default();
        let (founded, _) = predicate("founded").unwrap();
        assert!(ontology.check(founded, "person", "Project").is_ok());
        assert!(ontology.check(founded, "Person", "Weird").is_ok());
        let error = ontology.check(founded, "Person", "Meeting").unwrap_err();
        assert_eq!(
            error.message,
            "the object of `founded` cannot be a `Meeting`"
        );
        assert_eq!(error.hint.unwrap(), "it can be: Organization, Project");
        let error = ontology.check(founded, "Project", "Project").unwrap_err();
        assert_eq!(
            error.message,
            "the subject of `founded` cannot be a `Project`"
        );
    }

    #[test]
    fn the_version_follows_the_types() {
        let mut ontology = Ontology::default();
        let before = ontology.version();
        assert_eq!(before.len(), 8);
        let note = "---\nresolution:\n  type_key: Person\n  similarity_threshold: 0.9\n---\n";
        ontology.adopt(note).unwrap();
        assert_ne!(ontology.version(), before);
    }
}
