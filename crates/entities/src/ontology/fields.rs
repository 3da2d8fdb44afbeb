//! What fields of a note say about its entity.
//!
//! The predicate of a field depends on the type of the note's entity: `organizations` of a person are
//! those that she is affiliated with, of a project those that it involves. [`RULES`] lists the
//! meanings of each field, the most usual first.

use super::predicates::{Direction, predicate, squeezed};
use super::{Ontology, Predicate};
use serde_json::{Map, Value};

use Direction::{Incoming, Outgoing};

/// One meaning of some fields: the predicate, which end the note is, and the type of the other end.
struct Rule {
    fields: &'static [&'static str],
    predicate: &'static str,
    direction: Direction,
    target: Option<&'static str>,
}

const fn rule(
    fields: &'static [&'static str],
    predicate: &'static str,
    direction: Direction,
    target: Option<&'static str>,
) -> Rule {
    Rule {
        fields,
        predicate,
        direction,
        target,
    }
}

/// The meanings of fields. Spelling does not matter: `memberOf`, `member_of` and `memberof` are the
/// same.
const RULES: &[Rule] = &[
    rule(
        &[
            "affiliation",
            "affiliations",
            "memberOf",
            "organization",
            "organizations",
            "affiliatedWith",
        ],
        "affiliated_with",
        Outgoing,
        Some("Organization"),
    ),
    rule(
        &[
            "affiliation",
            "parentOrg",
            "organization",
            "organizations",
            "involvesOrganization",
        ],
        "involves_organization",
        Outgoing,
        Some("Organization"),
    ),
    rule(
        &["founder", "founderOf", "founded"],
        "founded",
        Outgoing,
        None,
    ),
    rule(
        &["founders", "founder", "creator", "hasFounder"],
        "has_founder",
        Outgoing,
        Some("Person"),
    ),
    rule(&["knows", "friendsWith"], "knows", Outgoing, Some("Person")),
    rule(
        &["collaborators", "collaboratesWith"],
        "collaborates_with",
        Outgoing,
        Some("Person"),
    ),
    rule(
        &[
            "people",
            "participants",
            "members",
            "lead",
            "involvesPerson",
        ],
        "involves_person",
        Outgoing,
        Some("Person"),
    ),
    rule(
        &["people", "participants", "members", "lead"],
        "affiliated_with",
        Incoming,
        Some("Person"),
    ),
    rule(
        &["projects", "hasProject"],
        "has_project",
        Outgoing,
        Some("Project"),
    ),
    rule(&["projects"], "involves_person", Incoming, Some("Project")),
    rule(&["attendees"], "attended", Incoming, Some("Person")),
    rule(
        &["attended", "meetings"],
        "attended",
        Outgoing,
        Some("Meeting"),
    ),
    rule(
        &["location", "headquarters", "locatedIn"],
        "located_in",
        Outgoing,
        Some("Location"),
    ),
    rule(
        &["patterns", "aggregatesInto"],
        "aggregates_into",
        Outgoing,
        Some("Pattern"),
    ),
    rule(
        &["practices"],
        "aggregates_into",
        Incoming,
        Some("Practice"),
    ),
    rule(&["practices"], "practiced_in", Incoming, Some("Practice")),
    rule(&["suggests"], "suggests", Outgoing, Some("Practice")),
    rule(&["suggestedBy"], "suggests", Incoming, Some("Pattern")),
    rule(
        &["bioregion", "bioregions", "practicedIn"],
        "practiced_in",
        Outgoing,
        Some("Bioregion"),
    ),
    rule(&["documents"], "documents", Outgoing, None),
    rule(&["documentedBy"], "documents", Incoming, Some("CaseStudy")),
    rule(&["supports"], "supports", Outgoing, None),
    rule(&["opposes"], "opposes", Outgoing, None),
    rule(&["informs"], "informs", Outgoing, None),
    rule(&["generates"], "generates", Outgoing, None),
    rule(
        &["implementedBy"],
        "implemented_by",
        Outgoing,
        Some("Playbook"),
    ),
    rule(
        &["implements", "protocol"],
        "implemented_by",
        Incoming,
        Some("Protocol"),
    ),
    rule(&["synthesizes"], "synthesizes", Outgoing, Some("Evidence")),
    rule(&["about"], "about", Outgoing, None),
    rule(&["broader"], "broader", Outgoing, None),
    rule(&["narrower"], "narrower", Outgoing, None),
    rule(&["relatedTo", "related"], "related_to", Outgoing, None),
    rule(&["forkedFrom"], "forked_from", Outgoing, None),
    rule(&["buildsOn"], "builds_on", Outgoing, None),
    rule(&["inspiredBy"], "inspired_by", Outgoing, None),
];

/// What one value of a field says.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldLink {
    /// The field as it is spelled in the note.
    pub field: String,
    /// The relationship.
    pub predicate: &'static Predicate,
    /// Whether the note's entity is the subject or the object.
    pub direction: Direction,
    /// What the value names.
    pub target: String,
    /// Its type, by its folder or by what the field usually names.
    pub target_type: Option<String>,
    /// The value as it stands in the note.
    pub raw: String,
    /// Whether the predicate may stand at this end of an entity of the note's type.
    pub is_admissible: bool,
}

impl Ontology {
    /// The relationships that the fields of a note about an entity of type `own` state.
    #[must_use]
    pub fn links_of(&self, own: &str, fields: &Map<String, Value>) -> Vec<FieldLink> {
        let own = self.kind(own).map(|it| it.key.as_str());
        let mut out = Vec::new();
        for (field, value) in fields {
            let Some((rule, predicate, is_admissible)) = reading(field, own) else {
                continue;
            };
            for raw in values(value) {
                let (target, folder_type) = self.named_by(&raw);
                if target.is_empty() {
                    continue;
                }
                out.push(FieldLink {
                    field: field.clone(),
                    predicate,
                    direction: rule.direction,
                    target,
                    target_type: folder_type.or_else(|| rule.target.map(str::to_owned)),
                    raw,
                    is_admissible,
                });
            }
        }
        out
    }

    /// What a wikilink, a path or a plain name names, and its type if a folder tells.
    #[must_use]
    pub fn named_by(&self, value: &str) -> (String, Option<String>) {
        let value = value.trim().trim_matches('"').trim_matches('\'');
        let inner = value
            .strip_prefix("[[")
            .and_then(|it| it.split("]]").next());
        let path = inner.map_or(value, |inner| inner.split('|').next().unwrap_or(inner));
        let (folder, name) = match path.rsplit_once('/') {
            Some((folders, name)) => (folders.rsplit('/').next(), name),
            None => (None, path),
        };
        let kind = folder.and_then(|it| self.of_folder(it));
        (
            name.replace('-', " ").trim().to_owned(),
            kind.map(|it| it.key.clone()),
        )
    }
}

/// The first meaning that an entity of this type can have, otherwise the most usual one.
fn reading(field: &str, own: Option<&str>) -> Option<(&'static Rule, &'static Predicate, bool)> {
    let wanted = squeezed(field);
    let is_of = |it: &&Rule| it.fields.iter().any(|name| squeezed(name) == wanted);
    let mut first = None;
    for rule in RULES.iter().filter(is_of) {
        let (predicate, _) = predicate(rule.predicate)?;
        let fits = own.is_none_or(|own| match rule.direction {
            Outgoing => predicate.starts_from(own),
            Incoming => predicate.leads_to(own),
        });
        if fits {
            return Some((rule, predicate, true));
        }
        first.get_or_insert((rule, predicate, false));
    }
    first
}

/// The values of a field: of a list, of a text with commas, or of links with commas between them.
#[must_use]
pub fn values(value: &Value) -> Vec<String> {
    match value {
        Value::Null | Value::Object(_) | Value::Bool(false) => Vec::new(),
        Value::Array(values) => values.iter().filter_map(single).collect(),
        Value::String(text) if text.contains("[[") && text.contains("]]") => links(text),
        Value::String(text) => {
            let parts = text.split(',').map(str::trim).filter(|it| !it.is_empty());
            parts.map(str::to_owned).collect()
        }
        Value::Bool(true) | Value::Number(_) => vec![value.to_string()],
    }
}

fn single(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|it| !it.is_empty()),
        // What YAML reads from an unquoted `[[name]]`.
        Value::Array(inner) => inner.first().and_then(single),
        Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Bool(_) | Value::Object(_) => None,
    }
}

/// A comma separates links only outside their brackets.
fn links(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find("]]") {
        let (link, after) = rest.split_at(end + 2);
        out.push(link.trim().to_owned());
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    let rest = rest.split(',').map(str::trim).filter(|it| !it.is_empty());
    out.extend(rest.map(str::to_owned));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(own: &str, fields: Value) -> Vec<String> {
        let fields = fields.as_object().unwrap().clone();
        let links = Ontology::default().links_of(own, &fields);
        let text = |field_link: &FieldLink| {
            let kind = field_link.target_type.as_deref().unwrap_or("?");
            let fit = if field_link.is_admissible {
                ""
            } else {
                " (inadmissible)"
            };
            let (target, name) = (
                format!("{kind}:{}", field_link.target),
                field_link.predicate.name,
            );
            match field_link.direction {
                Outgoing => format!("self {name} {target}{fit}"),
                Incoming => format!("{target} {name} self{fit}"),
            }
        };
        links.iter().map(text).collect()
    }

    #[test]
    fn fields_say_what_they_say_of_a_note_of_that_type() {
        for (own, fields, expected) in [
            (
                "Person",
                json!({ "affiliation": ["[[Organizations/r3.0]]"] }),
                "self affiliated_with Organization:r3.0",
            ),
            (
                "Organization",
                json!({ "founders": "[[People/Bill Baue]]" }),
                "self has_founder Person:Bill Baue",
            ),
            (
                "Person",
                json!({ "founder": "r3.0" }),
                "self founded ?:r3.0",
            ),
            (
                "Project",
                json!({ "Founder": "Bill" }),
                "self has_founder Person:Bill",
            ),
            (
                "project",
                json!({ "organizations": "[[A]], [[B]]" }),
                "self involves_organization Organization:A; self involves_organization Organization:B",
            ),
            (
                "Meeting",
                json!({ "attendees": "Ann, Bo" }),
                "Person:Ann attended self; Person:Bo attended self",
            ),
            (
                "Organization",
                json!({ "members": "Ann" }),
                "Person:Ann affiliated_with self",
            ),
            (
                "Project",
                json!({ "members": "Ann" }),
                "self involves_person Person:Ann",
            ),
            (
                "Practice",
                json!({ "bioregion": "[[Bioregions/Salish Sea]]" }),
                "self practiced_in Bioregion:Salish Sea",
            ),
            (
                "Pattern",
                json!({ "practices": "X" }),
                "Practice:X aggregates_into self",
            ),
            (
                "Bioregion",
                json!({ "practices": "X" }),
                "Practice:X practiced_in self",
            ),
            (
                "Playbook",
                json!({ "implements": "P" }),
                "Protocol:P implemented_by self",
            ),
            (
                "Concept",
                json!({ "affiliation": "X" }),
                "self affiliated_with Organization:X (inadmissible)",
            ),
            (
                "Weird",
                json!({ "affiliation": "X" }),
                "self affiliated_with Organization:X",
            ),
            ("Concept", json!({ "builds_on": "X" }), "self builds_on ?:X"),
            (
                "Concept",
                json!({ "title": "X", "tags": ["y"], "knows": null, "about": "" }),
                "",
            ),
        ] {
            assert_eq!(
                said(own, fields.clone()).join("; "),
                expected,
                "{own} {fields}"
            );
        }
    }

    #[test]
    fn every_rule_names_a_predicate_and_a_type() {
        for it in RULES {
            let (predicate, direction) = predicate(it.predicate).unwrap();
            assert_eq!(direction, Outgoing);
            let Some(target) = it.target else { continue };
            let fits = match it.direction {
                Outgoing => predicate.leads_to(target),
                Incoming => predicate.starts_from(target),
            };
            assert!(fits, "{:?}", it.fields);
        }
    }

    #[test]
    fn links_with_names_and_commas_are_kept_apart() {
        for (value, expected) in [
            (json!("[[a, b]], [[c|d]]"), vec!["[[a, b]]", "[[c|d]]"]),
            (json!("[[a]] [[b]]"), vec!["[[a]]", "[[b]]"]),
            (json!("[[a]], b"), vec!["[[a]]", "b"]),
            (json!([["a"], "b", "", null]), vec!["a", "b"]),
            (json!({ "a": 1 }), vec![]),
        ] {
            assert_eq!(values(&value), expected, "{value}");
        }
    }
}
