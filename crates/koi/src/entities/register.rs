//! Notes that other clients read and register: editors with a plug-in, other machines.
//!
//! A registered note states what the same note would state in the vault. If the vault has a note at
//! that path, the vault's note counts.

use super::resolve::{Meanings, by_note};
use super::said::{RegisteredNote, SAID, Settled, note_key, put_said};
use super::stated::Stated;
use super::{VAULT, neighborhood};
use crate::Koi;
use crate::inert::line as inert_line;
use kenning_core::{Error, Hash, Result, Space};
use kenning_entities::names::{alias_key, entity_uri, vault_path};
use kenning_entities::ontology::Ontology;
use kenning_entities::resolve::{Query, Tier};
use kenning_kernel::Caller;
use kenning_store::{Node, ReadTx};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A longer hash is refused.
const CONTENT_HASH_CHARS_MAX: usize = 200;

/// A note, as a client registers it.
#[derive(Clone, Debug, Default)]
pub struct RegisterEntity {
    /// The client's name for the note.
    pub vault_rid: String,
    /// Its path in the vault.
    pub vault_path: String,
    /// The type of its entity.
    pub entity_type: String,
    /// The name of its entity.
    pub name: String,
    /// More fields, which count less than those of the note.
    pub properties: Map<String, Value>,
    /// The note's fields.
    pub frontmatter: Map<String, Value>,
    /// How the client detects changes of the note.
    pub content_hash: Option<String>,
}

/// The entity of a registered note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisteredEntity {
    /// The entity.
    pub canonical_uri: String,
    /// Whether it was unknown before.
    pub is_new: bool,
    /// The name that it was registered by, if that is not its own.
    pub merged_with: Option<String>,
    /// A warning about it.
    pub warning: Option<String>,
}

/// The relationships from the fields of a registered note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncedRelationships {
    /// The entity.
    pub uri: String,
    /// Relationships that are in the graph.
    pub n_stored: usize,
    /// Relationships to names that no entity has yet.
    pub n_pending: usize,
}

impl Koi {
    /// Stores the statements of a note, in place of the earlier ones.
    pub fn register_entity(
        &self,
        caller: &Caller,
        note: RegisterEntity,
    ) -> Result<RegisteredEntity> {
        self.kernel.may_write(caller)?;
        let path = path_of(&note)?;
        if note.name.trim().is_empty() {
            return Err(Error::invalid("`name` is empty").hint("name what the note is about"));
        }
        self.follow_entities(caller)?;
        let space = &caller.principal.space;
        let noted = self.kernel.log().read(space, |tx| by_note(tx, &path))?;
        let is_of_vault = |it: &Node| super::view::view(it).paths.contains(&path);
        if let Some(noted) = noted.filter(is_of_vault) {
            return Ok(RegisteredEntity {
                merged_with: (noted.title != note.name.trim()).then(|| note.name.clone()),
                canonical_uri: noted.key,
                is_new: false,
                warning: Some("the vault has this note: what it says itself counts".to_owned()),
            });
        }
        let (settled, registered) = self.read_naming(space, |tx, meanings| {
            let ontology = self.ontology(space, tx)?;
            self.registered(space, tx, meanings, &ontology, &path, &note)
        })?;
        let uri = registered.canonical_uri.clone();
        self.kernel.log().write(space, move |tx| {
            put_said(tx, &settled)?;
            let data = json!({ "path": path, "uri": uri, "vaultRid": note.vault_rid });
            tx.record("NoteRegistered", data).map(drop)
        })?;
        self.follow_entities(caller)?;
        Ok(registered)
    }

    /// Stores the current fields of a registered note.
    pub fn sync_relationships(
        &self,
        caller: &Caller,
        mut note: RegisterEntity,
    ) -> Result<SyncedRelationships> {
        self.kernel.may_write(caller)?;
        let path = path_of(&note)?;
        let space = &caller.principal.space;
        let before = self
            .kernel
            .log()
            .read(space, |tx| SAID.get_readable(tx, &note_key(&path)))?;
        let before = before.and_then(|it| it.note);
        if note.content_hash.is_none() {
            note.content_hash = before.as_ref().and_then(|it| it.content_hash.clone());
        }
        let about = before.and_then(|it| it.stated.about);
        if let Some(about) = about {
            if note.name.trim().is_empty() {
                note.name = about.name;
            }
            if note.entity_type.trim().is_empty() {
                note.entity_type = about.kind;
            }
            let aliases = note.frontmatter.entry("aliases");
            aliases.or_insert_with(|| about.aliases.into());
            let description = note.frontmatter.entry("description");
            description.or_insert_with(|| about.description.into());
        }
        if note.name.trim().is_empty() {
            let noted = self.kernel.log().read(space, |tx| by_note(tx, &path))?;
            note.name = noted.map(|it| it.title).ok_or_else(|| {
                Error::not_found("registered note", path.clone())
                    .hint("register it first, or say its `name` and `entity_type`")
            })?;
        }
        note.vault_path = path.clone();
        let registered = self.register_entity(caller, note)?;
        self.kernel.log().read(space, |tx| {
            let all = neighborhood::relations_by_uri(tx, &registered.canonical_uri)?;
            let is_said = |it: &&kenning_store::Edge| {
                it.props.get("source_rid").and_then(Value::as_str) == Some(path.as_str())
            };
            // A symmetric relationship is stored twice.
            let ends =
                |it: &kenning_store::Edge| (it.rel.clone(), it.src.min(it.dst), it.src.max(it.dst));
            let stored: BTreeSet<_> = all.iter().filter(is_said).map(ends).collect();
            let n_stored = stored.len();
            let said = SAID.get_readable(tx, &note_key(&path))?;
            let note = said.and_then(|it| it.note);
            let n_said = note.map_or(0, |it| it.stated.says.len());
            Ok(SyncedRelationships {
                uri: registered.canonical_uri.clone(),
                n_stored,
                n_pending: n_said.saturating_sub(n_stored),
            })
        })
    }

    fn registered(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        meanings: &Meanings,
        ontology: &Ontology,
        path: &str,
        note: &RegisterEntity,
    ) -> Result<(Settled, RegisteredEntity)> {
        let name = note.name.trim();
        let by_folder = || ontology.of_path(path);
        let kind = ontology.kind(&note.entity_type).or_else(by_folder);
        let Some(kind) = kind else {
            let all: Vec<&str> = ontology.kinds().iter().map(|it| it.key.as_str()).collect();
            return Err(Error::invalid(format!(
                "`entity_type` \"{}\" is not one of the ontology",
                note.entity_type
            ))
            .hint(format!("use one of {}", all.join(", "))));
        };
        let query = Query {
            label: name,
            kind: Some(&kind.key),
            ..Query::default()
        };
        // A note is its own entity: only an entity with exactly this name or alias is the same.
        let resolution = self.resolve_in(space, tx, meanings, &query)?;
        let is_sure = |it: &&kenning_entities::resolve::Candidate| {
            matches!(it.tier, Tier::Exact | Tier::Alias)
        };
        let found = resolution.chosen().filter(is_sure);
        let canonical = found.map_or(name, |it| it.entity.name.as_str());
        let mut fields = note.properties.clone();
        fields.extend(note.frontmatter.clone());
        fields.insert("name".to_owned(), canonical.into());
        fields.insert("@type".to_owned(), kind.key.as_str().into());
        let bytes = Value::Object(fields.clone()).to_string();
        let of = Hash::of(bytes.as_bytes()).to_string();
        let mut stated = Stated::by_fields(ontology, path, &fields, of);
        let Some(about) = &mut stated.about else {
            return Err(
                Error::invalid(format!("`name` \"{name}\" is not a valid name"))
                    .hint("a name has at most 300 characters and no control characters"),
            );
        };
        let own = alias_key(name);
        if canonical != name && !about.aliases.contains(&own) {
            about.aliases.push(own);
        }
        let uri = match found {
            Some(it) => it.entity.uri.clone(),
            None => entity_uri(&about.name, &about.kind),
        };
        let settled = Settled {
            source: VAULT.to_owned(),
            rid: note_key(path),
            note: Some(RegisteredNote {
                path: path.to_owned(),
                stated,
                content_hash: note
                    .content_hash
                    .as_ref()
                    .map(|it| inert_line(it, CONTENT_HASH_CHARS_MAX)),
                registered_ms: Some(self.kernel.log().clock().now_ms()),
            }),
            ..Settled::default()
        };
        let warning = ontology.kind(&note.entity_type).is_none().then(|| {
            format!(
                "`entity_type` \"{}\" is not one of the ontology: by its folder it is a {}",
                note.entity_type, kind.key
            )
        });
        let registered = RegisteredEntity {
            canonical_uri: uri,
            is_new: found.is_none(),
            merged_with: found.and_then(|it| it.merged_with.clone()),
            warning,
        };
        Ok((settled, registered))
    }
}

fn path_of(note: &RegisterEntity) -> Result<String> {
    let path = match note.vault_path.trim() {
        "" => vault_path(note.vault_rid.trim()),
        path => path,
    };
    if path.is_empty() || path.contains(char::is_control) || path.len() > 1_000 {
        return Err(Error::invalid("`vault_path` names no note")
            .hint("give its path in the vault, for example `People/Bill Baue.md`"));
    }
    Ok(path.to_owned())
}
