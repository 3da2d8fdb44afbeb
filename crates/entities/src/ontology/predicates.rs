//! The predicates, and the types that they join.

/// A relationship: its name, and which types it may join.
#[derive(Debug, PartialEq, Eq)]
pub struct Predicate {
    /// Its name in the graph.
    pub name: &'static str,
    /// Types that it may start from; none means any.
    pub subjects: &'static [&'static str],
    /// Types that it may lead to; none means any.
    pub objects: &'static [&'static str],
    /// The predicate that says the same from the other end; its own name if it is symmetric.
    pub inverse: Option<&'static str>,
}

impl Predicate {
    /// Whether it holds in both directions at once.
    #[must_use]
    pub fn is_symmetric(&self) -> bool {
        self.inverse == Some(self.name)
    }

    /// Whether it may start from a type.
    #[must_use]
    pub fn starts_from(&self, kind: &str) -> bool {
        self.subjects.is_empty() || self.subjects.contains(&kind)
    }

    /// Whether it may lead to a type.
    #[must_use]
    pub fn leads_to(&self, kind: &str) -> bool {
        self.objects.is_empty() || self.objects.contains(&kind)
    }
}

const fn row(
    name: &'static str,
    subjects: &'static [&'static str],
    objects: &'static [&'static str],
) -> Predicate {
    Predicate {
        name,
        subjects,
        objects,
        inverse: None,
    }
}

const fn with_inverse(inverse: &'static str, predicate: Predicate) -> Predicate {
    Predicate {
        inverse: Some(inverse),
        ..predicate
    }
}

const BROADER: &[&str] = &["Concept", "Bioregion"];
const DESCENT: &[&str] = &["Project", "Concept", "Practice"];
const RELATED: &[&str] = &[
    "Person",
    "Organization",
    "Project",
    "Concept",
    "Practice",
    "Pattern",
    "Protocol",
    "Bioregion",
    "CaseStudy",
    "Question",
    "Claim",
    "Evidence",
];

/// Every predicate, in the order of the manual.
pub const PREDICATES: &[Predicate] = &[
    row("affiliated_with", &["Person"], &["Organization"]),
    with_inverse(
        "has_founder",
        row("founded", &["Person"], &["Organization", "Project"]),
    ),
    with_inverse(
        "founded",
        row("has_founder", &["Organization", "Project"], &["Person"]),
    ),
    with_inverse("knows", row("knows", &["Person"], &["Person"])),
    with_inverse(
        "collaborates_with",
        row("collaborates_with", &["Person"], &["Person"]),
    ),
    row("involves_person", &["Project", "Meeting"], &["Person"]),
    row("involves_organization", &["Project"], &["Organization"]),
    row("has_project", &["Organization"], &["Project"]),
    row("attended", &["Person"], &["Meeting"]),
    row("located_in", &[], &["Location"]),
    row("aggregates_into", &["Practice"], &["Pattern"]),
    row("suggests", &["Pattern"], &["Practice"]),
    row("documents", &["CaseStudy"], &["Practice", "Pattern"]),
    row("practiced_in", &["Practice"], &["Bioregion", "Location"]),
    row("supports", &["Evidence", "Claim"], &["Claim"]),
    row("opposes", &["Evidence", "Claim"], &["Claim"]),
    row("informs", &["Evidence", "Claim"], &["Question", "Protocol"]),
    row(
        "generates",
        &["Playbook", "Question"],
        &["Evidence", "Question"],
    ),
    row("implemented_by", &["Protocol"], &["Playbook"]),
    row("synthesizes", &["Claim"], &["Evidence"]),
    row(
        "about",
        &["Evidence", "Claim", "Question", "Protocol", "Playbook"],
        &[
            "Practice",
            "Pattern",
            "CaseStudy",
            "Concept",
            "Project",
            "Bioregion",
        ],
    ),
    with_inverse("narrower", row("broader", BROADER, BROADER)),
    with_inverse("broader", row("narrower", BROADER, BROADER)),
    row("related_to", RELATED, RELATED),
    row("forked_from", DESCENT, DESCENT),
    row("builds_on", DESCENT, DESCENT),
    row("inspired_by", DESCENT, DESCENT),
];

/// Names that mean the inverse of a predicate.
const SWAPPED: &[(&str, &str)] = &[
    ("documented_by", "documents"),
    ("implements", "implemented_by"),
    ("suggested_by", "suggests"),
];

/// Which end of a relationship is the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the note to the entity that it names.
    Outgoing,
    /// From the named entity to the note.
    Incoming,
}

/// The predicate of a name however it is spelled (`builds_on`, `Builds on`, `buildsOn`), and its
/// direction.
#[must_use]
pub fn predicate(name: &str) -> Option<(&'static Predicate, Direction)> {
    let wanted = squeezed(name);
    let of = |name: &str| PREDICATES.iter().find(|it| it.name == name);
    if let Some(found) = PREDICATES.iter().find(|it| squeezed(it.name) == wanted) {
        return Some((found, Direction::Outgoing));
    }
    let (_, meant) = SWAPPED.iter().find(|it| squeezed(it.0) == wanted)?;
    Some((of(meant)?, Direction::Incoming))
}

/// Lower case, without spaces, hyphens and underscores.
pub(super) fn squeezed(name: &str) -> String {
    let kept = name.chars().filter(|it| !matches!(it, '_' | '-' | ' '));
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ontology::Ontology;

    #[test]
    fn there_are_27_and_each_names_only_types_and_predicates_that_exist() {
        assert_eq!(PREDICATES.len(), 27);
        let ontology = Ontology::default();
        for it in PREDICATES {
            for kind in it.subjects.iter().chain(it.objects) {
                assert!(ontology.kind(kind).is_some(), "{}: {kind}", it.name);
            }
            let Some(inverse) = it.inverse else { continue };
            let (back, _) = predicate(inverse).unwrap();
            assert_eq!(back.inverse, Some(it.name));
            assert_eq!((back.subjects, back.objects), (it.objects, it.subjects));
        }
    }

    #[test]
    fn a_predicate_is_found_however_it_is_spelled() {
        for (name, expected) in [
            ("knows", Some(("knows", Direction::Outgoing))),
            ("Builds-on", Some(("builds_on", Direction::Outgoing))),
            ("buildsOn", Some(("builds_on", Direction::Outgoing))),
            ("suggestedBy", Some(("suggests", Direction::Incoming))),
            ("documented_by", Some(("documents", Direction::Incoming))),
            ("implements", Some(("implemented_by", Direction::Incoming))),
            ("not_a_predicate", None),
            ("", None),
        ] {
            let found = predicate(name).map(|it| (it.0.name, it.1));
            assert_eq!(found, expected, "{name}");
        }
        assert!(predicate("knows").unwrap().0.is_symmetric());
        assert!(!predicate("broader").unwrap().0.is_symmetric());
    }
}
