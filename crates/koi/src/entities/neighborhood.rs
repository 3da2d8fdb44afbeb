//! The relationships of an entity, and the documents that mention it.

use super::resolve::by_uri;
use super::{BY_ENTITIES, MENTIONS, aliases, kind};
use crate::Koi;
use kenning_core::{Error, Kind, NodeId, Result, Space};
use kenning_entities::mentions::{Mentions, written_forms};
use kenning_entities::names::{document_date, vault_path};
use kenning_kernel::edges::BY;
use kenning_kernel::paging::Page;
use kenning_kernel::search::Question;
use kenning_kernel::{Caller, Scope, projects};
use kenning_store::{Edge, EdgeFilter, Node, ReadTx, When};
use kenning_text::fold;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A relationship, with both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Relationship {
    /// The subject.
    pub subject_uri: String,
    /// Its name.
    pub subject_name: String,
    /// Its type.
    pub subject_type: String,
    /// The predicate.
    pub predicate: String,
    /// The object.
    pub object_uri: String,
    /// Its name.
    pub object_name: String,
    /// Its type.
    pub object_type: String,
    /// How sure, from 0 to 1.
    pub confidence: f64,
    /// `vault`, or another source.
    pub source: String,
    /// The note that states it.
    pub source_rid: String,
}

/// The relationships of an entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Neighborhood {
    /// The entity.
    pub uri: String,
    /// By predicate, the most confident first.
    pub relationships: Vec<Relationship>,
}

/// A document that mentions an entity.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityDocument {
    /// Its RID: `vault:Meetings/x.md`, a path of the project, a memory's id.
    pub document_rid: String,
    /// Its path in the vault, without the extension; otherwise its RID.
    pub vault_path: String,
    /// How often its text names the entity.
    pub mention_count: usize,
    /// The day with which its file name begins.
    pub doc_date: Option<String>,
    /// When it was first read, in milliseconds since 1970.
    pub first_seen_ms: u64,
    /// Its URL on the web.
    pub source_url: Option<String>,
}

/// The documents that mention an entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntityDocuments {
    /// The entity.
    pub uri: String,
    /// In the order of their names.
    pub documents: Vec<EntityDocument>,
    /// Whether there are more.
    pub truncated: bool,
    /// How many there are in all.
    pub total: usize,
}

impl Koi {
    /// The relationships of an entity, in both directions. An unknown URI has none; any other unknown
    /// name is refused.
    pub fn entity_neighborhood(
        &self,
        caller: &Caller,
        name: &str,
        predicate: Option<&str>,
    ) -> Result<Neighborhood> {
        caller.principal.require(Scope::Read)?;
        check_name(name)?;
        self.follow_entities(caller)?;
        let space = &caller.principal.space;
        self.read_naming(space, |tx, meanings| {
            let Some(node) = self.entity_in(space, tx, meanings, name)? else {
                return Ok(Neighborhood {
                    uri: name.trim().to_owned(),
                    ..Neighborhood::default()
                });
            };
            let mut relationships = Vec::new();
            for edge in relations(tx, node.id)? {
                if predicate.is_none_or(|it| it == edge.rel) {
                    relationships.extend(relationship(tx, &node, &edge)?);
                }
            }
            relationships.sort_by(|a, b| {
                a.predicate
                    .cmp(&b.predicate)
                    .then(b.confidence.total_cmp(&a.confidence))
                    .then_with(|| a.source_rid.cmp(&b.source_rid))
                    .then_with(|| a.subject_uri.cmp(&b.subject_uri))
                    .then_with(|| a.object_uri.cmp(&b.object_uri))
            });
            Ok(Neighborhood {
                uri: node.key,
                relationships,
            })
        })
    }

    /// The documents whose text names an entity, without its own notes.
    pub fn entity_documents(
        &self,
        caller: &Caller,
        name: &str,
        page: Page,
    ) -> Result<EntityDocuments> {
        caller.principal.require(Scope::Read)?;
        check_name(name)?;
        self.follow_entities(caller)?;
        self.follow_mail(caller);
        let space = &caller.principal.space;
        let seen = self.kernel.projects_seen_by(caller)?;
        self.read_naming(space, |tx, meanings| {
            let Some(node) = self.entity_in(space, tx, meanings, name)? else {
                return Ok(EntityDocuments {
                    uri: name.trim().to_owned(),
                    ..EntityDocuments::default()
                });
            };
            let names: Vec<&str> = std::iter::once(node.title.as_str())
                .chain(aliases(&node))
                .collect();
            let longer = self.entities_with_longer_names(space, tx, &node, &names)?;
            let mentioned = Mentioned::new(&names, &longer);
            let (linking, own) = linking(tx, node.id)?;
            let mut possible = self.with_words(space, tx, &names, &TEXTS)?;
            possible.extend(linking.keys());
            let mut documents = Vec::new();
            for id in possible.difference(&own) {
                let Some(document) = tx.node(*id, When::Now)? else {
                    continue;
                };
                if is_note_of_page(&document) || !projects::is_seen(&document, &seen) {
                    continue;
                }
                let n_found = mentioned.count_in(&document);
                let mention_count = n_found.max(linking.get(id).copied().unwrap_or(0));
                if mention_count > 0 {
                    documents.push(shown(&document, mention_count));
                }
            }
            documents.sort_by(|a, b| a.document_rid.cmp(&b.document_rid));
            let total = documents.len();
            let (documents, truncated) = page.of(documents);
            Ok(EntityDocuments {
                uri: node.key,
                documents,
                truncated,
                total,
            })
        })
    }

    /// Entities whose names contain a name of this one, such as an organization that is named after a
    /// place.
    fn entities_with_longer_names(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        node: &Node,
        names: &[&str],
    ) -> Result<Vec<Node>> {
        let found = self.with_words(space, tx, names, &[Kind::Entity])?;
        let others = found.into_iter().filter(|it| *it != node.id);
        let others = others.take(LONGER_NAMES_MAX);
        let others: Result<Vec<_>> = others.map(|it| tx.node(it, When::Now)).collect();
        Ok(others?.into_iter().flatten().collect())
    }

    /// Nodes of these kinds that contain every word of one of these names.
    fn with_words(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        names: &[&str],
        kinds: &[Kind],
    ) -> Result<BTreeSet<NodeId>> {
        let forms: Vec<String> = names.iter().flat_map(|it| written_forms(it)).collect();
        self.kernel
            .search(space, tx, &Question::default(), |search| {
                let found = forms
                    .iter()
                    .flat_map(|it| search.nodes_with_all_words(it, kinds));
                found.collect()
            })
    }
}

/// What can mention an entity.
const TEXTS: [Kind; 3] = [Kind::Document, Kind::Page, Kind::Memory];
/// At most this many entities with longer names are checked.
const LONGER_NAMES_MAX: usize = 5_000;
/// In [`Mentioned`], the entity that is searched for, and all others.
const OWN: u32 = 0;
const OTHER: u32 = 1;

/// The names of an entity, as they are looked for in texts.
struct Mentioned {
    mentions: Mentions,
    /// The names that a link to its note may have, folded.
    keys: BTreeSet<String>,
}

impl Mentioned {
    fn new(names: &[&str], others: &[Node]) -> Self {
        let own = names.iter().map(|it| (OWN, *it));
        let others = others.iter().flat_map(|it| {
            let names = std::iter::once(it.title.as_str()).chain(aliases(it));
            names.map(|name| (OTHER, name))
        });
        Self {
            mentions: Mentions::new(own.chain(others)),
            keys: names.iter().map(|it| fold::name(it)).collect(),
        }
    }

    /// How often a document names it: in its readable text, or by a link.
    fn count_in(&self, document: &Node) -> usize {
        if !is_markdown(document) {
            return self.count(content(document));
        }
        let read = kenning_graph::readable(&document.body);
        let links = read.links.iter().filter(|it| {
            let name = it.rsplit('/').next().unwrap_or(it);
            let name = name.strip_suffix(".md").unwrap_or(name);
            self.keys.contains(&fold::name(name))
        });
        self.count(&read.prose) + links.count()
    }

    fn count(&self, text: &str) -> usize {
        let found = self.mentions.find(text);
        found.iter().filter(|it| it.ids.contains(&OWN)).count()
    }
}

fn is_markdown(document: &Node) -> bool {
    let name = document.key.to_ascii_lowercase();
    document.kind == Kind::Document && (name.ends_with(".md") || name.ends_with(".markdown"))
}

fn check_name(name: &str) -> Result<()> {
    if name.trim().is_empty() {
        return Err(Error::invalid("`entity_uri` is empty").hint("give a URI or a name"));
    }
    Ok(())
}

/// The relationships of an entity, in both directions.
pub(super) fn relations(tx: &dyn ReadTx, id: NodeId) -> Result<Vec<Edge>> {
    let from = EdgeFilter {
        src: Some(id),
        ..EdgeFilter::default()
    };
    let into = EdgeFilter {
        dst: Some(id),
        ..EdgeFilter::default()
    };
    let mut all = tx.edges(&from, When::Now, usize::MAX)?;
    all.extend(tx.edges(&into, When::Now, usize::MAX)?);
    all.retain(|it| it.props.contains_key("predicate"));
    Ok(all)
}

/// The relationships of the entity that a URI means.
pub(super) fn relations_by_uri(tx: &dyn ReadTx, uri: &str) -> Result<Vec<Edge>> {
    match by_uri(tx, uri)? {
        Some(node) => relations(tx, node.id),
        None => Ok(Vec::new()),
    }
}

fn relationship(tx: &dyn ReadTx, node: &Node, edge: &Edge) -> Result<Option<Relationship>> {
    let is_subject = edge.src == node.id;
    let other = if is_subject { edge.dst } else { edge.src };
    let Some(other) = tx.node(other, When::Now)? else {
        return Ok(None);
    };
    let (subject, object) = if is_subject {
        (node, &other)
    } else {
        (&other, node)
    };
    let text = |name: &str| {
        let text = edge.props.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let confidence = edge.props.get("confidence").and_then(Value::as_f64);
    Ok(Some(Relationship {
        subject_uri: subject.key.clone(),
        subject_name: subject.title.clone(),
        subject_type: kind(subject).to_owned(),
        predicate: edge.rel.clone(),
        object_uri: object.key.clone(),
        object_name: object.title.clone(),
        object_type: kind(object).to_owned(),
        confidence: confidence.unwrap_or(edge.weight),
        source: text("source"),
        source_rid: text("source_rid"),
    }))
}

/// Documents that are known to mention an entity, with the least count, and those that are about it.
fn linking(tx: &dyn ReadTx, id: NodeId) -> Result<(BTreeMap<NodeId, usize>, BTreeSet<NodeId>)> {
    let filter = EdgeFilter {
        dst: Some(id),
        ..EdgeFilter::default()
    };
    let edges = tx.edges(&filter, When::Now, usize::MAX)?.into_iter();
    let is_ours = |it: &Edge| it.props.get(BY).and_then(Value::as_str) == Some(BY_ENTITIES);
    let notes = edges.filter(|it| is_ours(it) && !it.props.contains_key("predicate"));
    let (linking, own): (Vec<Edge>, Vec<Edge>) = notes.partition(|it| it.rel == MENTIONS);
    let count = |it: &Edge| {
        let said = it.props.get("count").and_then(Value::as_u64);
        said.and_then(|it| usize::try_from(it).ok()).unwrap_or(1)
    };
    let linking = linking.into_iter().map(|it| (it.src, count(&it)));
    Ok((
        linking.collect(),
        own.into_iter().map(|it| it.src).collect(),
    ))
}

/// Whether a note only stands for a page of the web, which is a document itself.
fn is_note_of_page(node: &Node) -> bool {
    let fields = node.props.get("frontmatter");
    let rid = fields.and_then(|it| it.get("rid")).and_then(Value::as_str);
    rid.is_some_and(|it| it.starts_with("orn:web.page:"))
}

/// The text of a document, without the fields before it.
pub(super) fn content(node: &Node) -> &str {
    let start = node.props.get("bodyStart").and_then(Value::as_u64);
    let start = start.and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
    node.body.get(start..).unwrap_or(&node.body)
}

fn shown(node: &Node, mention_count: usize) -> EntityDocument {
    let rid = match node.kind {
        Kind::Memory => kenning_kernel::memory_id(node),
        _ => node.key.clone(),
    };
    let url = node.props.get("url").and_then(Value::as_str);
    EntityDocument {
        vault_path: vault_path(&rid).to_owned(),
        doc_date: document_date(&rid).map(ToOwned::to_owned),
        document_rid: rid,
        mention_count,
        first_seen_ms: node.created.ms(),
        source_url: url.map(ToOwned::to_owned),
    }
}
