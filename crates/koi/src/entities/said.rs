//! What others state than the vault's own notes: ingested pages, notes that somebody registered, imports.
//!
//! A statement is settled first, which says of each name whom it means and of each relationship whether it
//! can be, and then kept under its source: the next statement of the same source takes its place. The graph
//! follows from all statements (`wanted`), so one that is taken back leaves nothing behind.

use super::identity::{NewMerge, put_merge};
use super::index::{COUNTS, NOTES, SAID_COUNT, forget_state, lines};
use super::links;
use super::proof;
use super::resolve::by_uri;
use super::stated::{Stated, is_name};
use crate::Koi;
use crate::inert::line as inert_line;
use kenning_audit::foreign::Merged;
use kenning_audit::{Draft, Passages, Tx};
use kenning_core::{Error, Hash, Kind, NodeId, Result};
use kenning_entities::names::{normalized, vault_path};
use kenning_kernel::edges::{self, Written};
use kenning_kernel::{Bucket, Caller, NOTE_BYTES_MAX, Raw, RowCodec};
use kenning_search::passages;
use kenning_store::{Node, ReadTx, When};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use std::collections::{BTreeMap, HashSet};

/// Statements, by their source.
pub(super) const SAID: Bucket<Settled> = Bucket::new("entities/said");
/// The same as they are kept: the log has the hash of each row.
pub(super) const SAID_BYTES: Bucket<Raw> = Bucket::new("entities/said");

/// The source of imports, unless a relationship names its own.
pub(super) const IMPORT: &str = "import";

/// A stated entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatedEntity {
    /// Its name, which may be another name of a known one.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// Its other names.
    pub aliases: Vec<String>,
    /// Its description.
    pub description: String,
    /// How often it is mentioned.
    pub n_mentions: u32,
    /// How sure that is.
    pub confidence: f64,
}

/// A stated relationship, by names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatedRelation {
    /// The subject.
    pub subject: String,
    /// The predicate.
    pub predicate: String,
    /// The object.
    pub object: String,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
}

/// A requested merge of two entities, by names or URIs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedMerge {
    /// The entity to merge.
    pub from: String,
    /// The entity that remains.
    pub into: String,
}

/// The result of a merge that was requested, or that followed from the statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeOutcome {
    /// The name of the merged entity.
    pub from_name: String,
    /// Its URI; empty if it is unknown.
    pub from_uri: String,
    /// The name of the remaining entity.
    pub into_name: String,
    /// Its URI; empty if it is unknown.
    pub into_uri: String,
    /// Whether they are merged now.
    pub is_merged: bool,
    /// Why, or why not.
    pub reason: String,
}

/// A proposed merge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergeProposal {
    /// The name of the new entity.
    pub from_name: String,
    /// The URI.
    pub from_uri: String,
    /// The name of the known entity.
    pub into_name: String,
    /// The URI.
    pub into_uri: String,
    /// The type of both.
    pub kind: String,
    /// How sure it is that they are one.
    pub confidence: f64,
    /// The reason.
    pub reason: &'static str,
}

/// A document's statements, as a client sends them.
#[derive(Clone, Debug, Default)]
pub struct StatedDocument {
    /// The document's RID.
    pub rid: String,
    /// Its source, if its RID does not say.
    pub source: Option<String>,
    /// Its text, if it is not known from elsewhere.
    pub content: Option<String>,
    /// The entities in it.
    pub entities: Vec<StatedEntity>,
    /// The relationships in it.
    pub relations: Vec<StatedRelation>,
}

/// A statement, before its names are resolved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// The kind of its source: `web`.
    pub(crate) source: &'static str,
    /// The RID of its source: `web:orn:web.page:…`.
    pub(crate) source_rid: String,
    /// The document that mentions the entities.
    pub(crate) document: Option<NodeId>,
    pub(crate) entities: Vec<StatedEntity>,
    pub(crate) relations: Vec<StatedRelation>,
    /// The requested merges.
    pub(crate) merges: Vec<StatedMerge>,
}

/// The result for a stated entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntityOutcome {
    /// Its name in the graph.
    pub name: String,
    /// The name as it was stated.
    pub said: String,
    /// Its URI; empty if it is left out.
    pub uri: String,
    /// Its type in the graph.
    pub kind: String,
    /// Whether it was unknown before.
    pub is_new: bool,
    /// How sure the resolution is.
    pub confidence: f64,
    /// A warning about it.
    pub warning: Option<String>,
}

/// The result for a stated relationship.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RelationOutcome {
    /// The subject, as it was stated.
    pub subject: String,
    /// The predicate.
    pub predicate: String,
    /// The object.
    pub object: String,
    /// Whether it is in the graph now.
    pub is_stored: bool,
    /// Why not.
    pub reason: Option<String>,
}

/// The result of a statement, part by part and in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatementOutcome {
    /// Of each entity.
    pub entities: Vec<EntityOutcome>,
    /// Of each relationship.
    pub relations: Vec<RelationOutcome>,
    /// Merges that were made.
    pub merged: Vec<MergeOutcome>,
    /// Merges that are proposed.
    pub proposals: Vec<MergeProposal>,
    /// Merges of entities that were known before: they are made after the statement is stored.
    pub(crate) deferred: Vec<StatedMerge>,
    /// What was not done as requested.
    pub warnings: Vec<String>,
}

/// A statement whose names are resolved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settled {
    pub(super) source: String,
    pub(super) rid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) document: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) things: Vec<SettledThing>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) relations: Vec<SettledRelation>,
    /// A registered note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<RegisteredNote>,
    /// Merges that are stored with the statement.
    #[serde(skip)]
    pub(super) merges: Vec<NewMerge>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SettledThing {
    pub(super) uri: String,
    pub(super) name: String,
    pub(super) kind: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) aliases: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) description: String,
    #[serde(default)]
    pub(super) n_mentions: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SettledRelation {
    pub(super) subject: String,
    pub(super) predicate: String,
    pub(super) object: String,
    pub(super) confidence: f64,
    /// Another source than the statement's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source_rid: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RegisteredNote {
    pub(super) path: String,
    pub(super) stated: Stated,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) content_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) registered_ms: Option<u64>,
}

impl Settled {
    pub(super) fn key(&self) -> String {
        match &self.note {
            Some(note) => note_key(&note.path),
            None if self.source == IMPORT => self.rid.clone(),
            None => document_key(&self.rid),
        }
    }

    /// The document that mentions the entities.
    pub(super) fn document(&self) -> Option<NodeId> {
        self.document.as_ref()?.parse().ok()
    }

    /// Names the document that mentions the entities.
    pub(crate) fn set_document(&mut self, document: NodeId) {
        self.document = Some(document.to_string());
    }
}

/// Stores a statement, in place of the earlier one of the same source.
pub(crate) fn put_said(tx: &mut Tx<'_>, settled: &Settled) -> Result<()> {
    let bytes = RowCodec::to_bytes(settled)?;
    let (key, hash) = (settled.key(), Hash::of(&bytes).to_string());
    SAID_BYTES.set(tx, &key, &Raw(bytes))?;
    tx.record(proof::KEPT, json!({ "key": key, "hash": hash }))?;
    for merge in &settled.merges {
        put_merge(tx, merge)?;
    }
    count_said(tx)
}

/// Removes the statement of a source.
pub(super) fn unset_said(tx: &mut Tx<'_>, key: &str) -> Result<()> {
    SAID.unset(tx, key)?;
    tx.record(proof::DROPPED, json!({ "key": key }))?;
    count_said(tx)
}

/// The key of a document's statement: separate from registered notes and imports, whatever its RID.
pub(super) fn document_key(rid: &str) -> String {
    format!("document:{rid}")
}

/// The key of a registered note.
pub(super) fn note_key(path: &str) -> String {
    format!("note:{path}")
}

/// The path of a registered note, from its key.
pub(super) fn path_of_key(key: &str) -> Option<&str> {
    key.strip_prefix("note:")
}

/// The key of an import, before the number of a piece.
pub(super) fn import_key(name: &str) -> String {
    format!("import:{name}:")
}

/// Tells every process that statements have changed.
pub(super) fn count_said(tx: &mut Tx<'_>) -> Result<()> {
    let n = said_count(&**tx)?;
    COUNTS.set(tx, SAID_COUNT, &(n + 1))
}

/// Tells every process of statements that came from a peer, and ends what the graph has of documents that
/// are gone because of it.
pub fn merged(tx: &mut Tx<'_>, merged: &Merged) -> Result<()> {
    let mut written = Written::default();
    for id in &merged.nodes {
        if tx.node(*id, When::Now)?.is_none() {
            edges::reconcile(tx, *id, super::BY_ENTITIES, Vec::new(), &mut written)?;
            lines(NOTES).unset(tx, &links::document_key(*id))?;
        }
    }
    if written.is_any() {
        let data = json!({ "added": written.added, "ended": written.ended });
        tx.record("EntitiesLinked", data)?;
        forget_state(tx)?;
    }
    match merged.pairs.iter().any(|it| it.0.starts_with("entities/")) {
        true => count_said(tx),
        false => Ok(()),
    }
}

/// How often statements have changed.
pub(super) fn said_count(tx: &dyn ReadTx) -> Result<u64> {
    Ok(COUNTS.get_readable(tx, SAID_COUNT)?.unwrap_or_default())
}

/// The names and URIs of all entities in a document's statement.
pub(super) fn names_said(tx: &dyn ReadTx, rid: &str) -> Result<HashSet<String>> {
    let settled = SAID.get_readable(tx, &document_key(rid))?;
    let mut names = HashSet::new();
    if let Some(settled) = settled {
        for thing in settled.things {
            let called = thing.aliases.into_iter().chain([thing.name]);
            names.extend(called.map(|it| normalized(&it)));
            names.insert(thing.uri);
        }
        for relation in settled.relations {
            names.extend([relation.subject, relation.object]);
        }
    }
    Ok(names)
}

/// All statements, by source.
pub(super) fn all_said(tx: &dyn ReadTx) -> Result<BTreeMap<String, Settled>> {
    let mut all = BTreeMap::new();
    for (rid, bytes) in SAID_BYTES.list(tx)? {
        let settled = settled_of(&rid, &bytes.0)?;
        all.insert(rid, settled);
    }
    Ok(all)
}

/// The statement of a source, if there is one.
pub(super) fn said_by(tx: &dyn ReadTx, key: &str) -> Result<Option<Settled>> {
    let bytes = SAID_BYTES.get(tx, key)?;
    bytes.map(|it| settled_of(key, &it.0)).transpose()
}

fn settled_of(key: &str, bytes: &[u8]) -> Result<Settled> {
    serde_json::from_slice(bytes).map_err(|error| {
        Error::corrupt(format!("what `{key}` stated cannot be read"))
            .hint("`kenning koi forget` takes it back; then state it again, or restore a backup")
            .because(error)
    })
}

impl Koi {
    /// Stores what a document states about entities, in addition to what it stated before. An unknown
    /// document becomes known by its RID, and is found by its text if there is one.
    pub fn ingest_statement(
        &self,
        caller: &Caller,
        stated: StatedDocument,
    ) -> Result<StatementOutcome> {
        self.kernel.may_write(caller)?;
        let rid = stated.rid.trim().to_owned();
        if rid.is_empty() || rid.contains(char::is_control) || rid.len() > RID_BYTES_MAX {
            return Err(Error::invalid("`document_rid` names no document")
                .hint("for example `vault:Meetings/2026-01-05 Sync.md`"));
        }
        let content = stated.content.filter(|it| !it.trim().is_empty());
        let n_bytes = content.as_ref().map_or(0, String::len) as u64;
        if n_bytes > NOTE_BYTES_MAX {
            let message = format!("`content`: {n_bytes} bytes are more than {NOTE_BYTES_MAX}");
            return Err(Error::too_large(message).hint("send it as several documents"));
        }
        self.follow_entities(caller)?;
        let space = &caller.principal.space;
        let known = self.kernel.log().read(space, |tx| document_of(tx, &rid))?;
        let said = Said {
            source: source_of(&rid),
            source_rid: rid.clone(),
            document: known.map(|it| it.id),
            entities: stated.entities,
            relations: stated.relations,
            merges: Vec::new(),
        };
        let (mut settled, mut outcome) = self.read_naming(space, |tx, meanings| {
            let (mut settled, outcome) = self.settle_statement(space, tx, meanings, &said)?;
            for thing in &mut settled.things {
                // If an entity has a note, the note counts.
                let has_note = |it: Node| it.props.contains_key("path");
                thing.description = match by_uri(tx, &thing.uri)?.is_some_and(has_note) {
                    true => String::new(),
                    false => inert_line(&thing.description, DESCRIPTION_CHARS_MAX),
                };
            }
            Ok((settled, outcome))
        })?;
        settled.source = named_source(&rid, stated.source.as_deref());
        let content = content.map(|text| {
            let cut = passages(vault_path(&rid), &text).into();
            (text, cut)
        });
        let is_text_kept = self.kernel.log().write_long(space, move |tx| {
            let (document, is_text_kept) = put_stated(tx, &rid, &settled.source, content)?;
            settled.set_document(document);
            // Several calls may tell of one document, each a part.
            if let Some(before) = SAID.get_readable(&**tx, &document_key(&rid))? {
                settled.add(before);
            }
            put_said(tx, &settled)?;
            let data = json!({
                "documentRid": rid, "entities": settled.things.len(),
                "relationships": settled.relations.len(), "source": settled.source,
            });
            tx.record("DocumentIngested", data)?;
            Ok(is_text_kept)
        })?;
        if !is_text_kept {
            let warning = "`content` is ignored: this document already has its own text";
            outcome.warnings.push(warning.to_owned());
        }
        self.follow_entities(caller)?;
        Ok(outcome)
    }
}

impl Koi {
    /// Removes what a document, a registered note or an import stated; returns the number of
    /// statements.
    pub fn forget_statement(&self, caller: &Caller, source: &str) -> Result<usize> {
        self.kernel.may_write(caller)?;
        let source = source.trim().to_owned();
        let n = self.kernel.log().write(&caller.principal.space, move |tx| {
            let name = source.strip_prefix("import:").unwrap_or(&source);
            let pieces = import_key(name);
            let own = [document_key(&source), note_key(&source)];
            let is_meant = |it: &String| own.contains(it) || it.starts_with(&pieces);
            let keys = SAID.keys(&**tx)?.into_iter().filter(is_meant);
            let keys: Vec<String> = keys.collect();
            if keys.is_empty() {
                return Err(Error::not_found("statement", source).hint(
                    "give a document's name, a registered note's path or an import's name, as `source_rid` shows it",
                ));
            }
            for key in &keys {
                unset_said(tx, key)?;
            }
            if keys.contains(&document_key(&source)) {
                forget_text(tx, &source)?;
            }
            tx.record("StatementForgotten", json!({ "source": source, "statements": keys.len() }))?;
            Ok(keys.len())
        })?;
        self.follow_entities(caller)?;
        Ok(n)
    }
}

/// A longer RID is refused.
const RID_BYTES_MAX: usize = 1_000;
/// Descriptions are cut to this length.
pub(super) const DESCRIPTION_CHARS_MAX: usize = 2_000;
/// A longer source is refused.
const SOURCE_BYTES_MAX: usize = 100;

/// The document that has this name.
fn document_of(tx: &dyn ReadTx, rid: &str) -> Result<Option<Node>> {
    for kind in [Kind::Document, Kind::Page] {
        if let Some(node) = tx.node_by_key("", kind, rid, When::Now)? {
            return Ok(Some(node));
        }
    }
    Ok(None)
}

/// Stores the document of a statement, and says whether its text was stored. A document that we read
/// ourselves keeps its own text.
pub(super) fn put_stated(
    tx: &mut Tx<'_>,
    rid: &str,
    source: &str,
    content: Option<(String, Passages)>,
) -> Result<(NodeId, bool)> {
    let there = document_of(&**tx, rid)?;
    let is_stated = |it: &Node| it.props.contains_key(STATED);
    match (there, content) {
        (Some(there), None) => Ok((there.id, true)),
        (Some(there), Some(_)) if !is_stated(&there) => Ok((there.id, false)),
        (_, content) => {
            let (text, passages) = content.unwrap_or_default();
            let node = tx.put_node(known_by_name(rid, source, text))?;
            if !node.body.is_empty() {
                tx.put_hashed_passages(node.id, &passages)?;
            }
            Ok((node.id, true))
        }
    }
}

/// Removes the text that came with a statement.
pub(super) fn forget_text(tx: &mut Tx<'_>, rid: &str) -> Result<()> {
    let there = document_of(&**tx, rid)?;
    if let Some(there) = there.filter(|it| it.props.contains_key(STATED) && !it.body.is_empty()) {
        tx.put_node(known_by_name(rid, source_of(rid), String::new()))?;
        tx.put_passages(there.id, &[])?;
    }
    Ok(())
}

/// The source of a document whose RID does not say.
const SOURCE_DEFAULT: &str = "api";

/// Prefixes of RIDs, and their sources.
const SOURCES: &[(&str, &str)] = &[
    ("web:", "web"),
    ("github:", "github"),
    ("email:", "email"),
    ("vault:", super::VAULT),
    ("orn:obsidian.", super::VAULT),
    ("koi-net:", "koi-net"),
];

fn source_of(rid: &str) -> &'static str {
    let found = SOURCES.iter().find(|it| rid.starts_with(it.0));
    found.map_or(SOURCE_DEFAULT, |it| it.1)
}

/// The source of a document: by its RID, otherwise as given. A client cannot claim a source that we
/// read ourselves.
fn named_source(rid: &str, said: Option<&str>) -> String {
    let known = source_of(rid);
    let said = said.unwrap_or_default().trim();
    let reader = said.strip_suffix("-sensor").unwrap_or(said);
    let is_ours = reader == "obsidian" || SOURCES.iter().any(|it| it.1 == reader);
    if known != SOURCE_DEFAULT || !is_name(said) || is_ours || said.len() > SOURCE_BYTES_MAX {
        return known.to_owned();
    }
    said.to_owned()
}

/// Marks a document that is known only by statements.
const STATED: &str = "stated";

fn known_by_name(rid: &str, source: &str, content: String) -> Draft {
    let mut props = Map::new();
    props.insert(STATED.to_owned(), true.into());
    props.insert("source".to_owned(), source.into());
    props.insert("path".to_owned(), vault_path(rid).into());
    Draft {
        kind: Kind::Document,
        project: String::new(),
        key: rid.to_owned(),
        title: vault_path(rid).to_owned(),
        body: content,
        props,
    }
}

/// The confidence of a statement that gives none.
pub(super) const NEW_CONFIDENCE: f64 = 0.9;

impl StatementOutcome {
    /// How many entities were unknown before.
    #[must_use]
    pub fn n_new(&self) -> usize {
        self.entities.iter().filter(|it| it.is_new).count()
    }
}
