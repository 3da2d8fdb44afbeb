//! What others state than the vault's own notes: ingested pages, notes that somebody registered, imports.
//!
//! A statement is settled first, which says of each name whom it means and of each relationship whether it
//! can be, and then kept under its source: the next statement of the same source takes its place. The graph
//! follows from all statements (`wanted`), so one that is taken back leaves nothing behind.

use super::identity::{NewMerge, put_merge};
use super::index::SAID_COUNT;
use super::proof;
use super::resolve::by_uri;
use super::stated::{Stated, is_name};
use crate::Koi;
use crate::inert::line as inert_line;
use kenning_audit::{Draft, Passages, Tx};
use kenning_core::{Error, Hash, Kind, NodeId, Result};
use kenning_entities::names::{normalized, vault_path};
use kenning_kernel::{Caller, NOTE_BYTES_MAX};
use kenning_search::passages;
use kenning_store::{Node, ReadTx, When};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use std::collections::{BTreeMap, HashSet};

/// What was stated, by its source.
pub(super) const SAID: &str = "entities/said";

/// What imports say that they are from, unless a relationship names its source.
pub(super) const IMPORT: &str = "import";

/// An entity that is stated to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatedEntity {
    /// Its name, which may be another name of one that is known.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// Its other names.
    pub aliases: Vec<String>,
    /// What it is.
    pub description: String,
    /// How often it is named.
    pub n_mentions: u32,
    /// How sure that is.
    pub confidence: f64,
}

/// A relationship that is stated, by names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatedRelation {
    /// Who stands first.
    pub subject: String,
    /// How.
    pub predicate: String,
    /// Who stands second.
    pub object: String,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
}

/// Two entities that somebody says are one, by names or URIs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedMerge {
    /// Who is the other one from now on.
    pub from: String,
    /// Who stays.
    pub into: String,
}

/// What became of a merge that somebody asked for, or that was plain from the statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeOutcome {
    /// Who was merged: the name.
    pub from_name: String,
    /// The URI; empty if nobody is called so.
    pub from_uri: String,
    /// Into whom: the name.
    pub into_name: String,
    /// The URI; empty if nobody is called so.
    pub into_uri: String,
    /// Whether they are one now.
    pub is_merged: bool,
    /// Why, or why not.
    pub reason: String,
}

/// Two entities that may be one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergeProposal {
    /// Who is new: the name.
    pub from_name: String,
    /// The URI.
    pub from_uri: String,
    /// Who was there before: the name.
    pub into_name: String,
    /// The URI.
    pub into_uri: String,
    /// The type of both.
    pub kind: String,
    /// How sure it is that they are one.
    pub confidence: f64,
    /// What speaks for it.
    pub reason: &'static str,
}

/// What a document states, as somebody sends it.
#[derive(Clone, Debug, Default)]
pub struct StatedDocument {
    /// What the document is called.
    pub rid: String,
    /// Where it is from, if its name does not tell.
    pub source: Option<String>,
    /// Its text, if it is not known from elsewhere.
    pub content: Option<String>,
    /// Who and what is in it.
    pub entities: Vec<StatedEntity>,
    /// How they are related.
    pub relations: Vec<StatedRelation>,
}

/// A statement, before it is known whom it means.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// What kind of source it has: `web`.
    pub(crate) source: &'static str,
    /// Which one: `web:orn:web.page:…`.
    pub(crate) source_rid: String,
    /// The document that mentions the entities.
    pub(crate) document: Option<NodeId>,
    pub(crate) entities: Vec<StatedEntity>,
    pub(crate) relations: Vec<StatedRelation>,
    /// Which names are of one.
    pub(crate) merges: Vec<StatedMerge>,
}

/// What became of a stated entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntityOutcome {
    /// Its name in the graph.
    pub name: String,
    /// As it was stated.
    pub said: String,
    /// Its URI; empty if it is left out.
    pub uri: String,
    /// Its type in the graph.
    pub kind: String,
    /// Whether nobody knew it.
    pub is_new: bool,
    /// How sure it is that it is meant.
    pub confidence: f64,
    /// What is odd about it.
    pub warning: Option<String>,
}

/// What became of a stated relationship.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RelationOutcome {
    /// Who stands first, as it was stated.
    pub subject: String,
    /// How.
    pub predicate: String,
    /// Who stands second.
    pub object: String,
    /// Whether it is in the graph now.
    pub is_stored: bool,
    /// Why not.
    pub reason: Option<String>,
}

/// What became of a statement, part by part and in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatementOutcome {
    /// Of each entity.
    pub entities: Vec<EntityOutcome>,
    /// Of each relationship.
    pub relations: Vec<RelationOutcome>,
    /// Who became one.
    pub merged: Vec<MergeOutcome>,
    /// Who may be one.
    pub proposals: Vec<MergeProposal>,
    /// Merges of entities that were known before: they are made after the statement is kept.
    pub(crate) deferred: Vec<StatedMerge>,
    /// What was not done as it was asked.
    pub warnings: Vec<String>,
}

/// A statement of which it is known whom it means.
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
    /// A note that somebody registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<RegisteredNote>,
    /// Merges that are kept with the statement, beside it.
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
    /// What else than the statement's own source says so.
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
    fn key(&self) -> String {
        match &self.note {
            Some(note) => note_key(&note.path),
            None if self.source == IMPORT => self.rid.clone(),
            None => document_key(&self.rid),
        }
    }

    /// Adds what the same source stated before. A mention is the same one however often it is told.
    fn add(&mut self, before: Self) {
        for thing in before.things {
            match self.things.iter_mut().find(|it| it.uri == thing.uri) {
                None => self.things.push(thing),
                Some(it) => {
                    it.n_mentions = it.n_mentions.max(thing.n_mentions);
                    if it.description.is_empty() {
                        it.description = thing.description;
                    }
                    for alias in thing.aliases {
                        if !it.aliases.contains(&alias) {
                            it.aliases.push(alias);
                        }
                    }
                }
            }
        }
        for relation in before.relations {
            let is_same = |it: &SettledRelation| {
                (&it.subject, &it.predicate, &it.object)
                    == (&relation.subject, &relation.predicate, &relation.object)
            };
            if !self.relations.iter().any(is_same) {
                self.relations.push(relation);
            }
        }
    }

    /// The document that mentions the entities.
    pub(super) fn document(&self) -> Option<NodeId> {
        self.document.as_ref()?.parse().ok()
    }

    /// Names the document that mentions the entities.
    pub(crate) fn is_of(&mut self, document: NodeId) {
        self.document = Some(document.to_string());
    }
}

/// Keeps a statement, in place of what the same source stated before.
pub(crate) fn put_said(tx: &mut Tx<'_>, settled: &Settled) -> Result<()> {
    let bytes = serde_json::to_vec(settled)
        .map_err(|error| Error::internal("a statement cannot be written").because(error))?;
    let (key, hash) = (settled.key(), Hash::of(&bytes).to_string());
    tx.set(SAID, &key, &bytes)?;
    tx.record(proof::KEPT, json!({ "key": key, "hash": hash }))?;
    for merge in &settled.merges {
        put_merge(tx, merge)?;
    }
    count_said(tx)
}

/// Takes back what a source stated.
pub(super) fn unset_said(tx: &mut Tx<'_>, key: &str) -> Result<()> {
    tx.unset(SAID, key)?;
    tx.record(proof::DROPPED, json!({ "key": key }))?;
    count_said(tx)
}

/// What a document's statement is kept under: apart from registered notes and imports, however it is called.
pub(super) fn document_key(rid: &str) -> String {
    format!("document:{rid}")
}

/// What a registered note is kept under.
pub(super) fn note_key(path: &str) -> String {
    format!("note:{path}")
}

/// The path of a registered note, by what it is kept under.
pub(super) fn path_of_key(key: &str) -> Option<&str> {
    key.strip_prefix("note:")
}

/// What an import is kept under, before the number of a piece.
pub(super) fn import_key(name: &str) -> String {
    format!("import:{name}:")
}

/// Tells every process that what was said has changed.
pub(super) fn count_said(tx: &mut Tx<'_>) -> Result<()> {
    let n = said_count(&**tx)?;
    let (bucket, key) = SAID_COUNT;
    tx.set(bucket, key, (n + 1).to_string().as_bytes())
}

/// How often what was said has changed.
pub(super) fn said_count(tx: &dyn ReadTx) -> Result<u64> {
    let (bucket, key) = SAID_COUNT;
    let bytes = tx.get(bucket, key)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).parse().unwrap_or_default())
}

/// The names and URIs of all entities that a document states something of.
pub(super) fn names_said(tx: &dyn ReadTx, rid: &str) -> Result<HashSet<String>> {
    let bytes = tx.get(SAID, &document_key(rid))?;
    let settled: Option<Settled> = bytes.and_then(|it| serde_json::from_slice(&it).ok());
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

/// Everything that was said, by its source.
pub(super) fn all_said(tx: &dyn ReadTx) -> Result<BTreeMap<String, Settled>> {
    let mut all = BTreeMap::new();
    for (rid, bytes) in tx.list(SAID)? {
        let settled = settled_of(&rid, &bytes)?;
        all.insert(rid, settled);
    }
    Ok(all)
}

/// What a source stated, if it did.
pub(super) fn said_by(tx: &dyn ReadTx, key: &str) -> Result<Option<Settled>> {
    let bytes = tx.get(SAID, key)?;
    bytes.map(|it| settled_of(key, &it)).transpose()
}

fn settled_of(key: &str, bytes: &[u8]) -> Result<Settled> {
    serde_json::from_slice(bytes).map_err(|error| {
        Error::corrupt(format!("what `{key}` stated cannot be read"))
            .hint("`kenning koi forget` takes it back; then state it again, or restore a backup")
            .because(error)
    })
}

impl Koi {
    /// Keeps what a document states of entities, beside what it stated before. A document that is not known
    /// is known by its name from now on, and found by its text if there is one.
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
                // Whoever has a note is what the note says.
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
            settled.is_of(document);
            // Several calls may tell of one document, each a part.
            if let Some(before) = tx.get(SAID, &document_key(&rid))?
                && let Ok(before) = serde_json::from_slice(&before)
            {
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
            let warning = "`content` is left out: this document is known with a text of its own";
            outcome.warnings.push(warning.to_owned());
        }
        self.follow_entities(caller)?;
        Ok(outcome)
    }
}

impl Koi {
    /// Takes back what a document, a registered note or an import stated; gives how many statements.
    pub fn forget_statement(&self, caller: &Caller, source: &str) -> Result<usize> {
        self.kernel.may_write(caller)?;
        let source = source.trim().to_owned();
        let n = self.kernel.log().write(&caller.principal.space, move |tx| {
            let name = source.strip_prefix("import:").unwrap_or(&source);
            let pieces = import_key(name);
            let own = [document_key(&source), note_key(&source)];
            let is_meant = |it: &String| own.contains(it) || it.starts_with(&pieces);
            let keys: Vec<String> = tx
                .list(SAID)?
                .into_iter()
                .map(|it| it.0)
                .filter(is_meant)
                .collect();
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

/// A longer name of a document is none.
const RID_BYTES_MAX: usize = 1_000;
/// What is said of an entity is cut here.
const DESCRIPTION_CHARS_MAX: usize = 2_000;
/// A longer name of a source is none.
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

/// Puts the document of a statement, and says whether its text was kept. A document that was read from where
/// it is has the text that it has there.
fn put_stated(
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

/// Takes back the text that came with a statement.
fn forget_text(tx: &mut Tx<'_>, rid: &str) -> Result<()> {
    let there = document_of(&**tx, rid)?;
    if let Some(there) = there.filter(|it| it.props.contains_key(STATED) && !it.body.is_empty()) {
        tx.put_node(known_by_name(rid, source_of(rid), String::new()))?;
        tx.put_passages(there.id, &[])?;
    }
    Ok(())
}

/// What a document whose name does not tell is from.
const SOURCE_DEFAULT: &str = "api";

/// By what a document's name begins, and what it is from then.
const SOURCES: &[(&str, &str)] = &[
    ("web:", "web"),
    ("github:", "github"),
    ("email:", "email"),
    ("vault:", super::VAULT),
    ("orn:obsidian.", super::VAULT),
];

fn source_of(rid: &str) -> &'static str {
    let found = SOURCES.iter().find(|it| rid.starts_with(it.0));
    found.map_or(SOURCE_DEFAULT, |it| it.1)
}

/// What a document is from: what its name tells, else what somebody says. Nobody says that it is from where
/// we read ourselves.
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

/// Marks a document that is known by statements alone.
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

/// How sure a statement is that does not say.
pub(super) const NEW_CONFIDENCE: f64 = 0.9;

impl StatementOutcome {
    /// How many entities were not known before.
    #[must_use]
    pub fn n_new(&self) -> usize {
        self.entities.iter().filter(|it| it.is_new).count()
    }
}
