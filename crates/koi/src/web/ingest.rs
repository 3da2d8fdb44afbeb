//! A page becomes part of the graph.
//!
//! The page's document, what it states, its state and the intents to write its notes are one transaction;
//! the notes follow, and whoever opens the store next writes those that a killed process did not. A note is
//! never written over another: a name that is taken gets a number.

use super::notes::{self, Named, OfEntity};
use super::pages::{self, Status, StoredPage, StoredText};
use super::process::{NAME_CHARS_MAX, TEXT_CHARS_MAX};
use super::{WebFault, WebFaultKind, WebResult, address};
use crate::entities::{Said, Settled, put_said};
use crate::inert::{inert, line};
use crate::{
    EntityOutcome, Koi, MergeOutcome, MergeProposal, RelationOutcome, StatedEntity, StatedMerge,
    StatedRelation, StatementOutcome,
};
use kenning_audit::{Draft, Passages, Tx};
use kenning_core::{Code, Error, Kind, Result, Space};
use kenning_entities::names::authority;
use kenning_entities::ontology::Ontology;
use kenning_kernel::FileNode;
use kenning_kernel::files::NewFile;
use kenning_kernel::{Caller, NOTE_BYTES_MAX};
use kenning_search::passages;
use kenning_store::{ReadTx, When};
use kenning_vault::{Dir, Lock, Name};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::time::Duration;

/// Where notes about pages lie unless somebody says otherwise.
const FOLDER_DEFAULT: &str = "Sources";
/// At most this many notes with one name.
const SAME_NAME_MAX: usize = 1_000;
/// More in one call is a mistake.
const PARTS_MAX: usize = 2_000;
const MERGES_MAX: usize = 200;

/// An entity that somebody found in a page.
#[derive(Clone, Debug, Default)]
pub struct WebEntity {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// Where the page names it.
    pub mentions: Vec<String>,
    /// How sure that is.
    pub confidence: f64,
    /// What is said of it.
    pub context: Option<String>,
}

/// A relationship that somebody found in a page.
#[derive(Clone, Debug, Default)]
pub struct WebRelation {
    /// The subject, by any name.
    pub subject: String,
    /// The predicate.
    pub predicate: String,
    /// The object, by any name.
    pub object: String,
    /// How sure that is.
    pub confidence: f64,
}

/// What of a page goes into the graph.
#[derive(Clone, Debug, Default)]
pub struct IngestRequest {
    /// Its address.
    pub url: String,
    /// Who and what it is about.
    pub entities: Vec<WebEntity>,
    /// How they are related.
    pub relationships: Vec<WebRelation>,
    /// The vault's folder for the note about it.
    pub vault_folder: Option<String>,
    /// The requested merges.
    pub merges: Vec<StatedMerge>,
}

/// A page that is in the graph now.
#[derive(Clone, Debug, Default)]
pub struct IngestedPage {
    /// Its address.
    pub url: String,
    /// What it is called.
    pub rid: String,
    /// What its document is called.
    pub document_rid: String,
    /// The note about it, where there is a vault.
    pub vault_note_path: Option<String>,
    /// The result for each entity, in their order.
    pub entities: Vec<EntityOutcome>,
    /// The result for each relationship, in their order.
    pub relationships: Vec<RelationOutcome>,
    /// Merges that were made.
    pub merged: Vec<MergeOutcome>,
    /// Merges that are proposed.
    pub proposals: Vec<MergeProposal>,
    /// How many notes were written.
    pub n_notes: usize,
    /// What was not done as requested.
    pub warnings: Vec<String>,
}

/// The result of ingesting.
#[derive(Clone, Debug)]
pub enum Ingestion {
    /// It is in the graph now.
    Done(Box<IngestedPage>),
    /// It was ingested before.
    Already {
        /// What it is called.
        rid: String,
        /// The note about it.
        vault_note_path: Option<String>,
        /// The results of the requested merges.
        merged: Vec<MergeOutcome>,
    },
}

impl Koi {
    /// Ingests a previewed page into the graph.
    pub fn ingest_page(&self, caller: &Caller, request: &IngestRequest) -> WebResult<Ingestion> {
        self.kernel.may_write(caller)?;
        let url = address::normalize_url(&request.url)?;
        let folder = folder(request.vault_folder.as_deref())?;
        for (name, n, max) in [
            ("entities", request.entities.len(), PARTS_MAX),
            ("relationships", request.relationships.len(), PARTS_MAX),
            ("merge", request.merges.len(), MERGES_MAX),
        ] {
            if n > max {
                let message = format!("`{name}`: {n} are more than {max}");
                return Err(Error::too_large(message)
                    .hint("send fewer for one page")
                    .into());
            }
        }
        let space = &caller.principal.space;
        let known = self.kernel.log().read(space, |tx| {
            let page = pages::page(tx, &url)?;
            page.map(|it| Ok((it, pages::text(tx, &url)?))).transpose()
        })?;
        let Some((page, text)) = known else {
            return Err(WebFault::not_found("URL not found. Preview it first."));
        };
        match page.status {
            Status::Ingested => {
                let merged = self.merge_as_asked(caller, &page.document_rid(), &request.merges)?;
                return Ok(already(page, merged));
            }
            Status::Rejected => return Err(not_ready(&page)),
            Status::Pending | Status::Evaluated => {}
        }
        self.follow_entities(caller)?;
        let said = statement_of(&page, request);
        let (settled, outcome, ontology) = self.read_naming(space, |tx, meanings| {
            let (settled, outcome) = self.settle_statement(space, tx, meanings, &said)?;
            Ok((settled, outcome, self.ontology(space, tx)?))
        })?;
        let dir = match self.kernel.vault().is_named() && self.kernel.vault().space() == space {
            true => Some(self.kernel.vault().open(space)?),
            false => None,
        };
        let notes = match &dir {
            None => Vec::new(),
            Some(dir) => {
                let of = Writing {
                    page: &page,
                    said: &said,
                    outcome: &outcome,
                    ontology: &ontology,
                    folder: &folder,
                };
                self.new_notes(space, dir, &of)?
            }
        };
        let written: Vec<FileNode> = notes.iter().map(|it| it.file.clone()).collect();
        let new = |it: &NewNote| self.kernel.prepare_new_file(it.file.clone(), &it.content);
        let taking = Taking {
            passages: passages_of(&page, &text),
            page: page.clone(),
            text,
            settled,
            notes: notes.iter().map(new).collect(),
        };
        let is_taken = self
            .kernel
            .log()
            .write_long(space, move |tx| taking.take(tx))?;
        if let Some(before) = is_taken {
            let merged = self.merge_as_asked(caller, &page.document_rid(), &request.merges)?;
            return Ok(already(before, merged));
        }
        let deferred = outcome.deferred.clone();
        let mut done = done(&page, outcome);
        done.warnings.extend(self.entity_warnings(caller));
        done.vault_note_path = written.first().map(|it| it.name.clone());
        done.n_notes = written.len();
        if let Some(dir) = &dir {
            self.write_notes(space, dir, &written, &mut done)?;
        }
        drop(notes);
        // The page is in the store; whoever asks for the graph next makes it what this one did not.
        if let Err(error) = self.follow_entities(caller) {
            tracing::warn!("the graph is not updated for the page yet: {error}");
        }
        let merged = self.merge_as_asked(caller, &page.document_rid(), &deferred)?;
        done.merged.extend(merged);
        Ok(Ingestion::Done(Box::new(done)))
    }

    /// Names and locks the notes to be written: first the one about the page.
    fn new_notes(&self, space: &Space, dir: &Dir, of: &Writing<'_>) -> Result<Vec<NewNote>> {
        let mut taken = HashSet::new();
        let title = notes::file_name(of.page.shown_title());
        let mut all = vec![self.new_note(space, dir, of.folder, &title, &mut taken)?];
        let source_note = all.first().map(|it| it.file.name.clone());
        let source_note = source_note.unwrap_or_default();
        let mut named = Vec::new();
        let new = of.outcome.entities.iter().filter(|it| it.is_new);
        let new: HashSet<&str> = new.map(|it| it.uri.as_str()).collect();
        for (it, said) in of.outcome.entities.iter().zip(&of.said.entities) {
            let is_named = named.iter().any(|(known, _)| known == &it.uri);
            // Who is merged into somebody new of this page has that one's note.
            let is_merged = !it.is_new && new.contains(&it.uri.as_str());
            if it.uri.is_empty() || is_named || is_merged {
                continue;
            }
            let mut path = self
                .kernel
                .log()
                .read(space, |tx| note_about(tx, &it.uri))?;
            if it.is_new {
                let kind = of.ontology.kind(&it.kind);
                let kind = kind.unwrap_or_else(|| of.ontology.unknown());
                let name = notes::file_name(&it.name);
                let mut note = self.new_note(space, dir, &kind.folder, &name, &mut taken)?;
                note.content = notes::of_entity(
                    of.page,
                    &OfEntity {
                        name: &it.name,
                        kind: &kind.json_ld(),
                        uri: &it.uri,
                        description: &said.description,
                        source_note: &source_note,
                    },
                );
                path = Some(note.file.name.clone());
                all.push(note);
            }
            named.push((it.uri.clone(), (it, path)));
        }
        let named: Vec<Named<'_>> = named
            .iter()
            .map(|(_, (it, path))| Named {
                name: &it.name,
                kind: &it.kind,
                path: path.as_deref(),
            })
            .collect();
        if let Some(first) = all.first_mut() {
            first.content = notes::of_page(of.page, &named);
        }
        Ok(all)
    }

    /// A note that nobody has: no file, no node, no unfinished write, and nobody who is about to write it.
    fn new_note(
        &self,
        space: &Space,
        dir: &Dir,
        folder: &str,
        name: &str,
        taken: &mut HashSet<String>,
    ) -> Result<NewNote> {
        for n in 1..=SAME_NAME_MAX {
            let path = notes::path(folder, name, n);
            if !taken.insert(path.to_lowercase()) {
                continue;
            }
            let file = self.kernel.vault().file(&path, NOTE_BYTES_MAX);
            let lock = match self.kernel.lock_file(&file, Duration::ZERO) {
                Ok(lock) => lock,
                Err(error) if error.code == Code::Unavailable => continue,
                Err(error) => return Err(error),
            };
            let is_free = !dir.exists(&path)?
                && !self.kernel.has_unfinished_write(space, &file.key)?
                && self
                    .kernel
                    .log()
                    .read(space, |tx| {
                        tx.node_by_key("", Kind::Document, &file.key, When::Now)
                    })?
                    .is_none();
            if is_free {
                return Ok(NewNote {
                    file,
                    content: String::new(),
                    _lock: lock,
                });
            }
        }
        let message = format!("`{folder}` has {SAME_NAME_MAX} notes called `{name}`");
        Err(Error::conflict(message).hint("rename some of them"))
    }

    /// Carries out the intents. A note that cannot be written is given up, and the page stays.
    fn write_notes(
        &self,
        space: &Space,
        dir: &Dir,
        written: &[FileNode],
        done: &mut IngestedPage,
    ) -> Result<()> {
        for (n, file) in written.iter().enumerate() {
            let Err(error) = self.kernel.finish_file_write(space, dir, &file.key) else {
                continue;
            };
            self.kernel.undo_file_write(space, file, None)?;
            done.n_notes -= 1;
            done.warnings.push(format!(
                "`{}` was not written: {}",
                file.name, error.message
            ));
            if n == 0 {
                done.vault_note_path = None;
                let url = done.url.clone();
                self.kernel.log().write(space, move |tx| {
                    let Some(mut page) = pages::page(&**tx, &url)? else {
                        return Ok(());
                    };
                    page.note = None;
                    pages::put_page(tx, &page)
                })?;
            }
        }
        Ok(())
    }
}

/// What notes are written from.
struct Writing<'a> {
    page: &'a StoredPage,
    said: &'a Said,
    outcome: &'a StatementOutcome,
    ontology: &'a Ontology,
    folder: &'a str,
}

/// A note to be. Nobody else writes it while it is held.
struct NewNote {
    file: FileNode,
    content: String,
    _lock: Lock,
}

/// Everything that one transaction keeps.
struct Taking {
    page: StoredPage,
    text: StoredText,
    settled: Settled,
    notes: Vec<NewFile>,
    passages: Passages,
}

impl Taking {
    /// The page as it is known, if another call was faster; then nothing is kept.
    fn take(mut self, tx: &mut Tx<'_>) -> Result<Option<StoredPage>> {
        let now = pages::page(&**tx, &self.page.url)?;
        if let Some(now) = now.filter(|it| it.status == Status::Ingested) {
            return Ok(Some(now));
        }
        let page = &mut self.page;
        page.status = Status::Ingested;
        page.note = self.notes.first().map(|it| it.file.name.clone());
        let node = put_document(tx, page, &self.text, &self.passages)?;
        self.settled.set_document(node);
        put_said(tx, &self.settled)?;
        pages::put_page(tx, page)?;
        let notes: Vec<&str> = self.notes.iter().map(|it| it.file.name.as_str()).collect();
        let data = json!({
            "url": page.url, "rid": page.rid, "documentRid": page.document_rid(),
            "submission": page.n, "contentHash": page.content_hash, "notes": notes,
            "source": "web",
        });
        tx.record("WebPageIngested", data)?;
        for note in self.notes {
            note.put(tx, "NoteWritten")?;
        }
        Ok(None)
    }
}

/// The passages of a page's document.
pub(super) fn passages_of(page: &StoredPage, text: &StoredText) -> Passages {
    passages(page.shown_title(), &text.text).into()
}

/// The passages of a page's document, cut before the transaction that stores them.
pub(super) struct CutText {
    title: String,
    text: String,
    passages: Passages,
}

impl CutText {
    /// The passages of a page as it is expected to be.
    pub(super) fn of(page: &StoredPage, text: &StoredText) -> Self {
        Self {
            title: page.shown_title().to_owned(),
            text: text.text.clone(),
            passages: passages_of(page, text),
        }
    }

    /// The passages of a page as it is. They are cut again only if somebody changed it meanwhile.
    pub(super) fn passages_for(
        cut: Option<Self>,
        page: &StoredPage,
        text: &StoredText,
    ) -> Passages {
        let is_same = |it: &Self| it.title == page.shown_title() && it.text == text.text;
        match cut.filter(is_same) {
            Some(cut) => cut.passages,
            None => passages_of(page, text),
        }
    }
}

/// Puts the document of a page, with its passages.
pub(super) fn put_document(
    tx: &mut Tx<'_>,
    page: &StoredPage,
    text: &StoredText,
    passages: &Passages,
) -> Result<kenning_core::NodeId> {
    let title = page.shown_title();
    let mut props = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            props.insert(name.to_owned(), value);
        }
    };
    put("source", "web".into());
    put("url", page.url.as_str().into());
    put("rid", page.rid.as_str().into());
    put("domain", authority(&page.url).into());
    put("contentHash", page.content_hash.as_str().into());
    put("description", page.metadata.description.clone().into());
    put("author", page.metadata.author.clone().into());
    put("published", page.metadata.published_date.clone().into());
    put("flags", page.safety.flags.clone().into());
    if let Some(it) = &page.evaluation {
        put("decision", it.decision.clone().into());
        put("relevance", it.relevance_score.into());
        put("relevanceReasoning", it.relevance_reasoning.clone().into());
        put("tags", it.bioregional_tags.clone().into());
    }
    let node = tx.put_node(Draft {
        kind: Kind::Page,
        project: String::new(),
        key: page.document_rid(),
        title: title.to_owned(),
        body: text.text.clone(),
        props,
    })?;
    tx.put_hashed_passages(node.id, passages)?;
    Ok(node.id)
}

pub(super) fn statement_of(page: &StoredPage, request: &IngestRequest) -> Said {
    let entities = request.entities.iter().map(|it| {
        let context = it.context.as_deref().unwrap_or_default();
        StatedEntity {
            name: line(&it.name, NAME_CHARS_MAX),
            kind: line(&it.kind, NAME_CHARS_MAX),
            aliases: Vec::new(),
            description: line(context, TEXT_CHARS_MAX),
            n_mentions: u32::try_from(it.mentions.len()).unwrap_or(u32::MAX).max(1),
            confidence: it.confidence,
        }
    });
    let relations = request.relationships.iter().map(|it| StatedRelation {
        subject: line(&it.subject, NAME_CHARS_MAX),
        predicate: line(&it.predicate, NAME_CHARS_MAX),
        object: line(&it.object, NAME_CHARS_MAX),
        confidence: it.confidence,
    });
    Said {
        source: "web",
        source_rid: page.document_rid(),
        document: None,
        entities: entities.collect(),
        relations: relations.collect(),
        merges: request.merges.clone(),
    }
}

fn done(page: &StoredPage, outcome: StatementOutcome) -> IngestedPage {
    let odd = outcome.entities.iter().filter_map(|it| {
        let warning = it.warning.as_ref()?;
        Some(format!("{}: {warning}", it.said))
    });
    let rejected = outcome.relations.iter().filter_map(|it| {
        let reason = it.reason.as_ref()?;
        Some(format!(
            "{} {} {}: {reason}",
            it.subject, it.predicate, it.object
        ))
    });
    IngestedPage {
        url: page.url.clone(),
        rid: page.rid.clone(),
        document_rid: page.document_rid(),
        vault_note_path: None,
        warnings: odd.chain(rejected).collect(),
        entities: outcome.entities,
        relationships: outcome.relations,
        merged: outcome.merged,
        proposals: outcome.proposals,
        n_notes: 0,
    }
}

/// The note about an entity that is known.
fn note_about(tx: &dyn ReadTx, uri: &str) -> Result<Option<String>> {
    let node = tx.node_by_key("", Kind::Entity, uri, When::Now)?;
    let path = node.and_then(|it| it.props.get("path")?.as_str().map(ToOwned::to_owned));
    Ok(path)
}

/// The folder that somebody wants the note in.
fn folder(wanted: Option<&str>) -> Result<String> {
    let wanted = wanted.map(str::trim).filter(|it| !it.is_empty());
    let Some(wanted) = wanted else {
        return Ok(FOLDER_DEFAULT.to_owned());
    };
    let name = Name::parse(wanted)?;
    let name = name.as_str();
    let is_plain = !name.is_empty() && !name.split('/').any(|it| it.starts_with('.'));
    if !is_plain || inert(name).1 {
        return Err(Error::invalid("`vault_folder` is not a folder for notes")
            .hint("for example `Sources`"));
    }
    Ok(name.to_owned())
}

fn already(page: StoredPage, merged: Vec<MergeOutcome>) -> Ingestion {
    Ingestion::Already {
        rid: page.rid,
        vault_note_path: page.note,
        merged,
    }
}

fn not_ready(page: &StoredPage) -> Box<WebFault> {
    let status = page.status.as_str();
    let message = format!("URL is in '{status}' state, not ready for ingestion.");
    let error = Error::conflict(message).hint("evaluate it again, or leave it");
    WebFault::new(WebFaultKind::NotReady, error)
}
