//! Types that a vault declares with its own notes: `Ontology/schema-*.md`.
//!
//! The frontmatter's field `resolution` names a type and what is different about it. A type that does
//! not exist is added, with the values of an unknown one for everything that the note leaves out.

use super::{EntityType, Ontology, squeezed};
use kenning_core::Error;
use kenning_text::frontmatter::{self, Head};
use kenning_text::yaml::{self, Limits};
use serde_json::{Map, Value};

const LIMITS: Limits = Limits {
    depth_max: 16,
    nodes_max: 2_000,
    ..Limits::FIELDS
};

impl Ontology {
    /// Applies what a note says about a type, and returns the type's name; `None` if it says nothing.
    ///
    /// # Errors
    /// Invalid input if the frontmatter is not YAML or a value does not fit its field; then nothing
    /// is applied.
    pub fn adopt(&mut self, note: &str) -> Result<Option<String>, Error> {
        let Some((block, _)) = frontmatter::yaml(note, Head::FirstLine) else {
            return Ok(None);
        };
        let fields = match read(block)? {
            Value::Object(mut fields) => match fields.remove("resolution") {
                Some(Value::Object(fields)) => fields,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let key = text(&fields, "type_key")?.ok_or_else(|| {
            Error::invalid("`resolution` has no `type_key`").hint("name the type that it describes")
        })?;
        let at = self
            .kinds
            .iter()
            .position(|it| squeezed(&it.key) == squeezed(&key));
        let base = match at {
            Some(at) => self.kinds[at].clone(),
            None => EntityType {
                folder: format!("{key}s"),
                key,
                ..self.unknown.clone()
            },
        };
        let kind = changed(base, &fields)?;
        let key = kind.key.clone();
        match at {
            Some(at) => self.kinds[at] = kind,
            None => self.kinds.push(kind),
        }
        Ok(Some(key))
    }
}

fn changed(mut kind: EntityType, fields: &Map<String, Value>) -> Result<EntityType, Error> {
    if let Some(folder) = text(fields, "folder")? {
        // A folder of the vault, in which notes are read.
        let is_plain =
            |text: &str| !text.is_empty() && !text.starts_with('.') && !text.contains('\\');
        if !folder.split('/').all(is_plain) || folder.contains(char::is_control) {
            return Err(Error::invalid(format!("`folder` is `{folder}`"))
                .hint("name a folder of the vault, for example `Vessels`"));
        }
        kind.folder = folder;
    }
    set(
        &mut kind.phonetic_matching,
        flag(fields, "phonetic_matching")?,
    );
    set(
        &mut kind.require_token_overlap,
        flag(fields, "require_token_overlap")?,
    );
    set(
        &mut kind.phonetic_stopwords,
        list(fields, "phonetic_stopwords")?,
    );
    set(&mut kind.type_aliases, list(fields, "type_aliases")?);
    set(
        &mut kind.similarity_threshold,
        unit(fields, "similarity_threshold")?,
    );
    set(
        &mut kind.semantic_threshold,
        unit(fields, "semantic_threshold")?,
    );
    set(
        &mut kind.min_context_people,
        count(fields, "min_context_people")?,
    );
    Ok(kind)
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn read(block: &str) -> Result<Value, Error> {
    yaml::read(block, &LIMITS).map_err(|error| match error {
        yaml::Error::TooLarge(bytes) => {
            let message = format!("the frontmatter has {bytes} bytes");
            Error::too_large(message).hint(format!("the limit is {}", LIMITS.bytes_max))
        }
        yaml::Error::Syntax { line, message, .. } => Error::invalid(format!(
            "the frontmatter is not valid YAML in its line {line}"
        ))
        .hint("quote a value that contains `: `, `[[` or `#`, and indent with spaces")
        .because(message),
    })
}

fn wrong(field: &str, value: &Value, wanted: &str) -> Error {
    Error::invalid(format!("`resolution.{field}` is `{value}`")).hint(format!("it is {wanted}"))
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, Error> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.trim().to_owned())),
        Some(other) => Err(wrong(name, other, "a word")),
    }
}

fn flag(fields: &Map<String, Value>, name: &str) -> Result<Option<bool>, Error> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(other) => Err(wrong(name, other, "true or false")),
    }
}

fn list(fields: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, Error> {
    let Some(value) = fields.get(name).filter(|it| !it.is_null()) else {
        return Ok(None);
    };
    let texts = value.as_array().map(|values| {
        let texts = values.iter().map(|it| it.as_str().map(str::to_owned));
        texts.collect::<Option<Vec<_>>>()
    });
    match texts {
        Some(Some(texts)) => Ok(Some(texts)),
        _ => Err(wrong(name, value, "a list of words")),
    }
}

fn unit(fields: &Map<String, Value>, name: &str) -> Result<Option<f64>, Error> {
    let Some(value) = fields.get(name).filter(|it| !it.is_null()) else {
        return Ok(None);
    };
    let number = value.as_f64().filter(|it| (0.0..=1.0).contains(it));
    number
        .map(Some)
        .ok_or_else(|| wrong(name, value, "a number from 0 to 1"))
}

fn count(fields: &Map<String, Value>, name: &str) -> Result<Option<u32>, Error> {
    let Some(value) = fields.get(name).filter(|it| !it.is_null()) else {
        return Ok(None);
    };
    let number = value.as_u64().and_then(|it| u32::try_from(it).ok());
    number
        .map(Some)
        .ok_or_else(|| wrong(name, value, "a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_changes_what_it_names_and_nothing_else() {
        let mut ontology = Ontology::default();
        let note = "---\ntitle: Person\nresolution:\n  type_key: person\n  folder: Humans\n  \
                    similarity_threshold: 0.95\n  min_context_people: 3\n  type_aliases: [Human]\n---\nText.\n";
        assert_eq!(ontology.adopt(note).unwrap().as_deref(), Some("Person"));
        let person = ontology.kind("human").unwrap();
        let expected = EntityType {
            folder: "Humans".to_owned(),
            similarity_threshold: 0.95,
            min_context_people: 3,
            type_aliases: vec!["Human".to_owned()],
            ..Ontology::default().kind("Person").unwrap().clone()
        };
        assert_eq!(*person, expected);
        assert_eq!(ontology.kinds().len(), 15);
    }

    #[test]
    fn a_type_of_the_vaults_own_is_added() {
        let mut ontology = Ontology::default();
        let note = "---\nresolution: { type_key: Outcome, require_token_overlap: false }\n---\n";
        assert_eq!(ontology.adopt(note).unwrap().as_deref(), Some("Outcome"));
        let added = ontology.of_folder("Outcomes").unwrap();
        assert!(!added.require_token_overlap);
        assert!((added.similarity_threshold - 0.9).abs() < 1e-9);
    }

    #[test]
    fn a_note_that_says_nothing_of_types_changes_nothing() {
        for note in [
            "",
            "text",
            "---\ntitle: x\n---\n",
            "---\nresolution: x\n---\n",
            "---\nnever ends",
        ] {
            let mut ontology = Ontology::default();
            assert_eq!(ontology.adopt(note).unwrap(), None, "{note:?}");
            assert_eq!(ontology, Ontology::default());
        }
    }

    #[test]
    fn a_wrong_value_is_named_and_nothing_is_taken_over() {
        for (fields, message) in [
            (
                "type_key: Person\n  similarity_threshold: 92",
                "`resolution.similarity_threshold` is `92`",
            ),
            (
                "type_key: Person\n  phonetic_matching: perhaps",
                "`resolution.phonetic_matching` is `\"perhaps\"`",
            ),
            (
                "type_key: Person\n  type_aliases: [1]",
                "`resolution.type_aliases` is `[1]`",
            ),
            (
                "type_key: Person\n  min_context_people: -1",
                "`resolution.min_context_people` is `-1`",
            ),
            ("folder: X", "`resolution` has no `type_key`"),
            ("type_key: Person\n  folder: ../x", "`folder` is `../x`"),
            (
                "type_key: Person\n  folder: .obsidian",
                "`folder` is `.obsidian`",
            ),
            ("a: [", "the frontmatter is not valid YAML"),
        ] {
            let mut ontology = Ontology::default();
            let error = ontology
                .adopt(&format!("---\nresolution:\n  {fields}\n---\n"))
                .unwrap_err();
            assert!(error.message.starts_with(message), "{}", error.message);
            assert!(error.hint.is_some());
            assert_eq!(ontology, Ontology::default());
        }
    }
}
