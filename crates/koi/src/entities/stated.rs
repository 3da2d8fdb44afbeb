//! The statements of one note: its entity, and the entity's relationships.

use kenning_entities::names::{alias_key, composed, entity_uri, normalized};
use kenning_entities::ontology::{Direction, Ontology, values};
use kenning_store::Node;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A longer name is a text, and not a key of a store.
const NAME_CHARS_MAX: usize = 300;

/// Notes in this folder declare types and have no entity.
const DECLARATIONS: &str = "Ontology/";

/// Generic file names, after which no entity is named.
const UNTELLING: &[&str] = &[
    "index", "_index", "readme", "untitled", "note", "notes", "about",
];

/// The statements of one note.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Stated {
    /// The text and the ontology that they are from.
    #[serde(rename = "o")]
    pub(super) of: String,
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub(super) about: Option<About>,
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) says: Vec<Says>,
}

/// The entity of a note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct About {
    /// Its URI, if the note has one: a corrected name then makes no new entity.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub(super) uri: Option<String>,
    #[serde(rename = "n")]
    pub(super) name: String,
    #[serde(rename = "k")]
    pub(super) kind: String,
    /// As keys, each once.
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) aliases: Vec<String>,
    #[serde(rename = "d", default, skip_serializing_if = "String::is_empty")]
    pub(super) description: String,
}

/// A relationship, before its other end is resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Says {
    #[serde(rename = "p")]
    pub(super) predicate: String,
    /// Whether the note's entity is the object.
    #[serde(rename = "i", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_incoming: bool,
    #[serde(rename = "t")]
    pub(super) target: String,
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<String>,
    /// The note that a link names by its path, as [`path_key`].
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<String>,
}

impl Stated {
    /// What the note at this path of the vault states.
    pub(super) fn of(ontology: &Ontology, path: &str, note: &Node, of: String) -> Self {
        let fields = note.props.get("frontmatter").and_then(Value::as_object);
        let mut fields = fields.cloned().unwrap_or_default();
        for (key, value) in kenning_graph::inline_fields(&note.body) {
            add_inline(&mut fields, key, value);
        }
        Self::by_fields(ontology, path, &fields, of)
    }

    /// What the fields of a note at this path state.
    pub(super) fn by_fields(
        ontology: &Ontology,
        path: &str,
        fields: &Map<String, Value>,
        of: String,
    ) -> Self {
        let Some(about) = About::of(ontology, path, fields) else {
            return Self {
                of,
                ..Self::default()
            };
        };
        let links = ontology.links_of(&about.kind, fields).into_iter();
        let says = links.map(|it| Says {
            predicate: it.predicate.name.to_owned(),
            is_incoming: it.direction == Direction::Incoming,
            target: it.target,
            kind: it.target_type,
            path: linked_path(&it.raw),
        });
        Self {
            of,
            says: says.collect(),
            about: Some(about),
        }
    }
}

impl About {
    /// The URI of the entity.
    pub(super) fn uri(&self) -> String {
        let said = self.uri.clone();
        said.unwrap_or_else(|| entity_uri(&self.name, &self.kind))
    }

    fn of(ontology: &Ontology, path: &str, fields: &Map<String, Value>) -> Option<Self> {
        if path.starts_with(DECLARATIONS) {
            return None;
        }
        let declared = ["@type", "type"]
            .into_iter()
            .filter_map(|it| fields.get(it));
        let declared = declared
            .flat_map(values)
            .find_map(|it| ontology.kind(&it).map(|it| it.key.clone()));
        let kind = declared.or_else(|| ontology.of_path(path).map(|it| it.key.clone()))?;
        let text = |name: &str| {
            let text = match fields.get(name)? {
                Value::String(text) => text.trim().to_owned(),
                // YAML reads some names as numbers.
                Value::Number(number) => number.to_string(),
                _ => return None,
            };
            Some(text).filter(|it| !it.is_empty())
        };
        // A note has the name of its file, because links name it so.
        let file = path.rsplit('/').next().unwrap_or(path);
        let file = file.strip_suffix(".md").unwrap_or(file).trim();
        let named = text("name").filter(|it| is_name(it));
        let name = composed(&named.unwrap_or_else(|| file.to_owned())).into_owned();
        if !is_name(&name) || is_template(path, &name) {
            return None;
        }
        let listed = ["aliases", "alias"]
            .into_iter()
            .filter_map(|it| fields.get(it));
        let listed = listed.flat_map(values);
        let is_telling = !UNTELLING.contains(&file.to_lowercase().as_str());
        let file = is_telling.then(|| file.to_owned());
        let others = text("title").into_iter().chain(file);
        let mut aliases: Vec<String> = Vec::new();
        for alias in listed.chain(others).map(|it| alias_key(&it)) {
            let is_own = normalized(&alias) == normalized(&name);
            if is_name(&alias) && !is_own && !aliases.contains(&alias) {
                aliases.push(alias);
            }
        }
        let uri = text("uri").filter(|it| it.starts_with("orn:") && is_name(it));
        Some(Self {
            uri,
            name,
            kind,
            aliases,
            description: text("description").unwrap_or_default(),
        })
    }
}

/// Adds a field from the text (`key:: value`) to those of the frontmatter. For single values the
/// frontmatter counts.
fn add_inline(fields: &mut Map<String, Value>, key: String, value: Value) {
    const SINGLE: [&str; 6] = ["name", "title", "description", "uri", "type", "@type"];
    // Dataview's keys ignore case and spaces.
    let word = key.to_lowercase().replace(' ', "_");
    let is_known = |it: &&String| it.to_lowercase().replace([' ', '-'], "_") == word;
    let known = fields.keys().find(is_known).cloned();
    match known.and_then(|it| fields.get_mut(&it)) {
        None => {
            let key = if SINGLE.contains(&&*word) || word.starts_with("alias") {
                word
            } else {
                key
            };
            fields.insert(key, value);
        }
        Some(_) if SINGLE.contains(&&*word) => {}
        Some(before) => {
            let all = values(before).into_iter().chain(values(&value));
            *before = all.map(Value::String).collect();
        }
    }
}

/// Folders of templates, in any case and with any prefix.
const TEMPLATES: &[&str] = &["templates", "template", "templater"];

/// Whether a note is a template: such a note has no entity.
fn is_template(path: &str, name: &str) -> bool {
    let mut parts = path.rsplit('/');
    let bare = |it: &str| {
        let it = it.trim_matches(|it: char| !it.is_alphanumeric());
        it.to_lowercase()
    };
    let file = parts.next().unwrap_or(path);
    let file = bare(file.strip_suffix(".md").unwrap_or(file));
    let ends_so = |it: &str| {
        it.strip_suffix(" template")
            .is_some_and(|it| !it.is_empty())
    };
    let is_folder = parts.any(|it| {
        // `00 Templates`, `99_templates`.
        let it = bare(it);
        let word = it.rsplit([' ', '-', '_']).next().unwrap_or(&it);
        TEMPLATES.contains(&word)
    });
    let has_placeholder = |it: &str| it.contains("{{") || it.contains("<%");
    is_folder
        || TEMPLATES.contains(&file.as_str())
        || ends_so(&file) && file.split(' ').count() == 2
        || has_placeholder(name)
        || has_placeholder(path)
}

pub(super) fn is_name(text: &str) -> bool {
    let is_short = text.chars().nth(NAME_CHARS_MAX).is_none();
    is_short && !text.contains(char::is_control) && !normalized(text).is_empty()
}

/// A path of the vault as links name it, whatever their case.
pub(super) fn path_key(path: &str) -> String {
    composed(path.strip_suffix(".md").unwrap_or(path)).to_lowercase()
}

/// The path that a link has, if it has folders.
fn linked_path(raw: &str) -> Option<String> {
    let inner = raw.trim().strip_prefix("[[")?.split("]]").next()?;
    let path = inner.split(['|', '#']).next()?.trim();
    path.contains('/').then(|| path_key(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_note_is_about_what_its_type_or_its_folder_says() {
        let ontology = Ontology::default();
        for (path, fields, expected) in [
            ("People/Ann Lee.md", json!({}), "Person Ann Lee []"),
            (
                "inbox/x.md",
                json!({ "@type": "schema:Person", "name": "Ann" }),
                r#"Person Ann ["x"]"#,
            ),
            (
                "People/A.md",
                json!({ "@type": "bkc:Practice" }),
                "Practice A []",
            ),
            ("People/A.md", json!({ "type": "guide" }), "Person A []"),
            (
                "People/A.md",
                json!({ "aliases": ["B", "[[People/C D|E]]", "a"], "title": "Ms. A" }),
                r#"Person A ["b", "c d", "ms. a"]"#,
            ),
            (
                "People/A.md",
                json!({ "name": "x".repeat(301), "aliases": ["a\0b", "y".repeat(301), "c"] }),
                r#"Person A ["c"]"#,
            ),
            (
                "Templates/Person.md",
                json!({ "@type": "Person" }),
                "nothing",
            ),
            ("00 Templates/People/Person.md", json!({}), "nothing"),
            ("People/_template.md", json!({}), "nothing"),
            ("People/Person Template.md", json!({}), "nothing"),
            ("People/New.md", json!({ "name": "{{title}}" }), "nothing"),
            (
                "People/New.md",
                json!({ "name": "<% tp.file.title %>" }),
                "nothing",
            ),
            (
                "Projects/Open Template Library.md",
                json!({}),
                "Project Open Template Library []",
            ),
            ("People/a\nb.md", json!({}), "nothing"),
            ("inbox/x.md", json!({}), "nothing"),
            (
                "Ontology/People/x.md",
                json!({ "@type": "Person" }),
                "nothing",
            ),
        ] {
            let about = About::of(&ontology, path, fields.as_object().unwrap());
            let said = about.map_or("nothing".to_owned(), |it| {
                format!("{} {} {:?}", it.kind, it.name, it.aliases)
            });
            assert_eq!(said, expected, "{path} {fields}");
        }
    }

    #[test]
    fn only_a_link_with_folders_names_a_path() {
        for (raw, expected) in [
            ("[[People/Ann|A]]", Some("people/ann")),
            ("[[People/Ann.md#Work]]", Some("people/ann")),
            ("[[Ann]]", None),
            ("People/Ann", None),
        ] {
            assert_eq!(linked_path(raw).as_deref(), expected, "{raw}");
        }
    }
}
