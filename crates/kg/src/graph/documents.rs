//! Finding and showing documents.

use super::library::{Doc, Library};
use super::not_generated;
use crate::Kg;
use kenning_core::{Code, Error, Kind, NodeId, Result};
use kenning_graph::{DocType, Status};
use kenning_kernel::search::{Question, Wanted, policy};
use kenning_kernel::{Caller, Scope};
use kenning_search::Filter;
use kenning_store::{EdgeFilter, ReadTx, When};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The most characters of a snippet.
const SNIPPET_CHARS: usize = 200;

/// At most this many links are shown each way for an entity, a memory or an item.
const OTHER_LINKS_MAX: usize = 100;

/// A query for documents.
#[derive(Clone, Debug, Default)]
pub struct DocumentQuery {
    /// Words; without any, all documents in the order of their paths.
    pub text: Option<String>,
    /// Only of this type.
    pub doc_type: Option<DocType>,
    /// Only with this status.
    pub status: Option<Status>,
    /// Only with this tag.
    pub tag: Option<String>,
    /// At most this many.
    pub limit: usize,
    /// Whether texts are shown.
    pub content: bool,
    /// Whether links are shown.
    pub relations: bool,
    /// Other kinds of nodes to find; they come after the documents.
    pub kinds: Vec<Kind>,
}

/// A document without its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its id in the graph.
    pub id: String,
    /// Its node.
    pub node: NodeId,
    /// Its kind, if it is not a document.
    pub kind: Kind,
    /// From the project, or `vault:` and its name there.
    pub path: String,
    /// The title for people.
    pub title: String,
    /// What kind of document.
    pub doc_type: Option<DocType>,
    /// Its status.
    pub status: Option<Status>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its description.
    pub description: Option<String>,
    /// Its length in words.
    pub word_count: u64,
    /// When its file was changed, in milliseconds since 1970.
    pub modified_ms: u64,
    /// The number of links from it.
    pub outgoing_count: usize,
    /// The number of links to it.
    pub incoming_count: usize,
    /// Only on request.
    pub links: Option<(Vec<Outgoing>, Vec<Incoming>)>,
    /// The text without frontmatter, only on request.
    pub content: Option<String>,
}

/// A link of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    /// The id of its target; of a broken link the text of the target.
    pub target: String,
    /// Its relation.
    pub relation: String,
    /// What the reader sees.
    pub text: String,
    /// The heading or block it leads to.
    pub heading: Option<String>,
    /// Its line.
    pub line: u32,
    /// For a broken link, the document that was probably meant.
    pub broken: Option<Option<String>>,
}

/// A link to a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming {
    /// The id of the document that has it.
    pub source: String,
    /// Its relation.
    pub relation: String,
    /// What the reader sees.
    pub text: String,
}

/// The results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundDocuments {
    /// Best first.
    pub documents: Vec<Document>,
    /// How many there are in all.
    pub total: usize,
    /// Whether no document has every word, so that these are the nearest in meaning.
    pub by_meaning: bool,
}

/// A document with its text.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentContent {
    /// The document, with links and content.
    pub document: Document,
    /// The file's frontmatter.
    pub frontmatter: Map<String, Value>,
    /// What is wrong with the file.
    pub faults: Vec<String>,
}

/// A document and those of the requested tags that it has.
pub type Tagged = (Document, Vec<String>);

/// A tag and how many documents have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCount {
    /// The tag, in its most frequent spelling.
    pub tag: String,
    /// How many documents have it.
    pub count: usize,
}

impl Kg {
    pub(super) fn graph(
        &self,
        caller: &Caller,
        tx: &dyn ReadTx,
    ) -> Result<std::sync::Arc<Library>> {
        caller.principal.require(Scope::Read)?;
        let library = self.library_in(&caller.principal.space, tx)?;
        if library.exists() {
            Ok(library)
        } else {
            Err(not_generated())
        }
    }

    /// The documents that match a query, best first.
    pub fn find_documents(&self, caller: &Caller, query: &DocumentQuery) -> Result<FoundDocuments> {
        caller.principal.require(Scope::Read)?;
        if query.kinds.contains(&Kind::Entity) {
            self.follow_entities(caller)?;
        }
        let question = query.text.as_deref().map(|it| self.kernel.question(it));
        let question = question.as_ref();
        self.kernel.log().read(&caller.principal.space, |tx| {
            let library = match self.graph(caller, tx) {
                // Other kinds exist without any document.
                Err(error) if error.code == Code::Unavailable && !query.kinds.is_empty() => None,
                library => Some(library?),
            };
            let (mut documents, mut total, mut by_meaning) = (Vec::new(), 0, false);
            if let Some(library) = &library {
                let found;
                (found, total, by_meaning) = self.matching(caller, tx, library, query, question)?;
                for doc in found {
                    documents.push(show(tx, library, doc, query.relations, query.content)?);
                }
            }
            // Reports of agents are found like documents, after them.
            let is_plain =
                query.doc_type.is_none() && query.status.is_none() && query.tag.is_none();
            let kinds = match query.kinds.as_slice() {
                [] if is_plain => &[Kind::Agent][..],
                kinds => kinds,
            };
            if let Some(question) = question.filter(|_| !kinds.is_empty()) {
                let mut others = self.others(caller, tx, question, kinds, query.limit)?;
                for it in others.iter_mut().filter(|_| query.relations) {
                    it.links = Some(links_of_other(tx, library.as_deref(), it.node)?);
                }
                total += others.len();
                documents.extend(others);
                documents.truncate(query.limit);
            }
            Ok(FoundDocuments {
                documents,
                total,
                by_meaning,
            })
        })
    }

    /// The first documents that match a query, best first, their number, and whether they match only
    /// in meaning.
    fn matching<'a>(
        &self,
        caller: &Caller,
        tx: &dyn ReadTx,
        library: &'a Library,
        query: &DocumentQuery,
        question: Option<&Question>,
    ) -> Result<(Vec<&'a Doc>, usize, bool)> {
        let has_tag = |doc: &Doc| {
            let tag = query.tag.as_deref();
            tag.is_none_or(|tag| doc.card.tags.iter().any(|it| is_same_tag(it, tag)))
        };
        if let Some(question) = question {
            return self.ranked_documents(caller, tx, library, question, query, &has_tag);
        }
        let admits = |doc: &&Doc| {
            query.doc_type.is_none_or(|it| it == doc.card.doc_type)
                && query.status.is_none_or(|it| it == doc.card.status)
                && has_tag(doc)
        };
        let all = library.docs.iter().filter(admits);
        let total = all.clone().count();
        Ok((all.take(query.limit).collect(), total, false))
    }

    /// The documents that have every word, best first; if none has, the most relevant ones.
    fn ranked_documents<'a>(
        &self,
        caller: &Caller,
        tx: &dyn ReadTx,
        library: &'a Library,
        question: &Question,
        query: &DocumentQuery,
        has_tag: &dyn Fn(&Doc) -> bool,
    ) -> Result<(Vec<&'a Doc>, usize, bool)> {
        let space = &caller.principal.space;
        let filters = [self.document_filter(query.doc_type, query.status)];
        let is_tagged = |node: NodeId| library.by_node(node).is_some_and(has_tag);
        let now_ms = self.kernel.log().clock().now_ms();
        let wanted = Wanted {
            admits: query.tag.is_some().then_some(&is_tagged as _),
            ..Wanted::new(&policy::DOCUMENTS, &filters, query.limit, now_ms)
        };
        let found = self
            .kernel
            .search(space, tx, question, |search| search.find(&wanted))??;
        let nodes = found.hits.iter().map(|it| it.node);
        let mut documents: Vec<&Doc> = nodes.filter_map(|it| library.by_node(it)).collect();
        let total = match found.has_all_words {
            true => found.hits.len(),
            false => documents.len(),
        };
        documents.truncate(query.limit);
        Ok((documents, total, !found.has_all_words))
    }

    /// The filter for passages of the graph's documents.
    pub(crate) fn document_filter(
        &self,
        doc_type: Option<DocType>,
        status: Option<Status>,
    ) -> Filter {
        let project = self.graph_scope().project;
        let doc_type = doc_type.map(|it| format!("type={}", it.as_str()));
        let status = status.map(|it| format!("status={}", it.as_str()));
        Filter {
            kinds: vec![Kind::Document],
            facets: doc_type.into_iter().chain(status).collect(),
            any_facet: vec![format!("project={project}"), "source=vault".to_owned()],
            ..Filter::default()
        }
    }

    /// Nodes of other kinds.
    fn others(
        &self,
        caller: &Caller,
        tx: &dyn ReadTx,
        question: &Question,
        kinds: &[Kind],
        limit: usize,
    ) -> Result<Vec<Document>> {
        let space = &caller.principal.space;
        let filters = [Filter {
            kinds: kinds.to_vec(),
            ..Filter::default()
        }];
        let now_ms = self.kernel.log().clock().now_ms();
        let wanted = Wanted::new(&policy::BESIDE_DOCUMENTS, &filters, limit, now_ms);
        let answers = self
            .kernel
            .search(space, tx, question, |search| search.find(&wanted))??;
        let mut found = Vec::new();
        for hit in answers.hits.iter().take(limit) {
            found.extend(tx.node(hit.node, When::Now)?.map(|node| other(&node)));
        }
        Ok(found)
    }

    /// One document, by its id or its path.
    pub fn document(
        &self,
        caller: &Caller,
        id: Option<&str>,
        path: Option<&str>,
    ) -> Result<DocumentContent> {
        self.kernel.log().read(&caller.principal.space, |tx| {
            let library = self.graph(caller, tx)?;
            let by_id = id.and_then(|id| {
                library
                    .by_id(id)
                    .or_else(|| library.by_node(id.parse().ok()?))
            });
            let doc = match (by_id, path) {
                (Some(doc), _) => Some(doc),
                // People also give a path as the id.
                (None, None) => id.and_then(|it| library.by_path(it)),
                (None, Some(path)) => library.by_path(path),
            };
            let doc = doc.ok_or_else(|| {
                let asked = id.or(path).unwrap_or_default();
                let near = library
                    .nearest(asked)
                    .map(|it| format!("did you mean `{}`?", it.0.id));
                let hint = near.unwrap_or_else(|| "`kg_query` lists the documents".to_owned());
                Error::new(kenning_core::Code::NotFound, "Node not found").hint(hint)
            })?;
            let document = show(tx, &library, doc, true, true)?;
            let node = tx.node(doc.card.node, When::Now)?;
            let frontmatter = node.and_then(|it| {
                it.props
                    .get("frontmatter")
                    .and_then(Value::as_object)
                    .cloned()
            });
            let faults = doc
                .card
                .faults
                .iter()
                .map(|(line, message)| format!("line {line}: {message}"));
            Ok(DocumentContent {
                document,
                frontmatter: frontmatter.unwrap_or_default(),
                faults: faults.collect(),
            })
        })
    }

    /// Every tag, the most used first.
    pub fn document_tags(&self, caller: &Caller) -> Result<Vec<TagCount>> {
        self.kernel.log().read(&caller.principal.space, |tx| {
            Ok(tag_counts(&*self.graph(caller, tx)?))
        })
    }

    /// Documents with any of these tags, or with all: those with most of them first. Each comes with
    /// the tags that it has, in the caller's spelling.
    pub fn documents_by_tags(
        &self,
        caller: &Caller,
        tags: &[String],
        all: bool,
        limit: usize,
    ) -> Result<(Vec<Tagged>, usize)> {
        self.kernel.log().read(&caller.principal.space, |tx| {
            let library = self.graph(caller, tx)?;
            let mut found: Vec<(&Doc, Vec<String>)> = Vec::new();
            for doc in &library.docs {
                let has = |tag: &&String| doc.card.tags.iter().any(|it| is_same_tag(it, tag));
                let matched: Vec<String> = tags.iter().filter(has).cloned().collect();
                if !matched.is_empty() && (!all || matched.len() == tags.len()) {
                    found.push((doc, matched));
                }
            }
            found.sort_by_key(|it| std::cmp::Reverse(it.1.len()));
            let total = found.len();
            let shown = found.into_iter().take(limit);
            let shown =
                shown.map(|(doc, matched)| Ok((show(tx, &library, doc, false, false)?, matched)));
            Ok((shown.collect::<Result<Vec<_>>>()?, total))
        })
    }
}

pub(super) fn tag_counts(library: &Library) -> Vec<TagCount> {
    // The spellings of each folded tag, and how often they occur.
    let mut counts: BTreeMap<String, BTreeMap<&str, usize>> = BTreeMap::new();
    for doc in &library.docs {
        for tag in &doc.card.tags {
            *counts
                .entry(folded(tag))
                .or_default()
                .entry(tag)
                .or_default() += 1;
        }
    }
    let mut all: Vec<TagCount> = counts
        .into_values()
        .map(|spellings| {
            let count = spellings.values().sum();
            let most = spellings
                .iter()
                .max_by(|a, b| a.1.cmp(b.1).then(b.0.cmp(a.0)));
            TagCount {
                tag: most.map_or(String::new(), |it| (*it.0).to_owned()),
                count,
            }
        })
        .collect();
    all.sort_by(|a, b| b.count.cmp(&a.count).then(a.tag.cmp(&b.tag)));
    all
}

fn folded(tag: &str) -> String {
    tag.trim().trim_start_matches('#').to_lowercase()
}

/// `#API` and `api` are the same tag.
fn is_same_tag(a: &str, b: &str) -> bool {
    folded(a) == folded(b)
}

/// Texts are read only if they are shown.
pub(super) fn show(
    tx: &dyn ReadTx,
    library: &Library,
    doc: &Doc,
    links: bool,
    content: bool,
) -> Result<Document> {
    let card = &doc.card;
    let content = if content {
        let node = tx.node(card.node, When::Now)?;
        node.map(|node| {
            node.body
                .get(card.body_start..)
                .unwrap_or(&node.body)
                .to_owned()
        })
    } else {
        None
    };
    Ok(Document {
        id: doc.id.clone(),
        node: card.node,
        kind: Kind::Document,
        path: doc.path.clone(),
        title: card.title.clone(),
        doc_type: Some(card.doc_type),
        status: Some(card.status),
        tags: card.tags.clone(),
        description: card.description.clone(),
        word_count: card.words,
        modified_ms: card.modified_ms(),
        outgoing_count: doc.out.len(),
        incoming_count: doc.into.len(),
        links: links.then(|| (outgoing(library, doc), incoming(library, doc))),
        content,
    })
}

pub(super) fn other(node: &kenning_store::Node) -> Document {
    let content = &node.body;
    let title = if node.title.is_empty() {
        content.chars().take(80).collect()
    } else {
        node.title.clone()
    };
    let tags = node.props.get("tags").and_then(Value::as_array);
    Document {
        // An entity has its own id, by which every other tool knows it.
        id: match node.kind {
            Kind::Entity => node.key.clone(),
            _ => node.id.to_string(),
        },
        node: node.id,
        kind: node.kind,
        path: String::new(),
        title,
        doc_type: None,
        status: None,
        tags: tags
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(ToOwned::to_owned)
            .collect(),
        description: None,
        word_count: content.split_whitespace().count() as u64,
        modified_ms: node.updated.ms(),
        outgoing_count: 0,
        incoming_count: 0,
        links: None,
        content: Some(content.clone()),
    }
}

/// The relations of an entity, a memory or an item. Documents are named by their ids in the graph.
pub(super) fn links_of_other(
    tx: &dyn ReadTx,
    library: Option<&Library>,
    id: NodeId,
) -> Result<(Vec<Outgoing>, Vec<Incoming>)> {
    let named = |id: NodeId| -> Result<Option<(String, String)>> {
        if let Some(doc) = library.and_then(|it| it.by_node(id)) {
            return Ok(Some((doc.id.clone(), doc.card.title.clone())));
        }
        let node = tx.node(id, When::Now)?;
        Ok(node.map(|it| {
            let shown = other(&it);
            (shown.id, shown.title)
        }))
    };
    let (mut from, mut into) = (Vec::new(), Vec::new());
    let outgoing = EdgeFilter {
        src: Some(id),
        ..EdgeFilter::default()
    };
    for edge in tx.edges(&outgoing, When::Now, OTHER_LINKS_MAX)? {
        from.extend(named(edge.dst)?.map(|(target, text)| Outgoing {
            target,
            relation: edge.rel,
            text,
            heading: None,
            line: 0,
            broken: None,
        }));
    }
    let incoming = EdgeFilter {
        dst: Some(id),
        ..EdgeFilter::default()
    };
    for edge in tx.edges(&incoming, When::Now, OTHER_LINKS_MAX)? {
        into.extend(named(edge.src)?.map(|(source, text)| Incoming {
            source,
            relation: edge.rel,
            text,
        }));
    }
    Ok((from, into))
}

fn outgoing(library: &Library, doc: &Doc) -> Vec<Outgoing> {
    let whole = doc
        .out
        .iter()
        .map(|arc| (arc.link, Some(library.doc(arc.to).id.clone())));
    let broken = doc.broken.iter().map(|&link| (link, None));
    let mut all: Vec<(u32, Option<String>)> = whole.chain(broken).collect();
    all.sort_by_key(|link| (doc.card.links[link.0 as usize].line, link.0));
    let shown = all.into_iter().map(|(at, target)| {
        let link = &doc.card.links[at as usize];
        let is_broken = target.is_none();
        Outgoing {
            target: target.unwrap_or_else(|| link.target.clone()),
            relation: link.relation().to_owned(),
            text: link.text.clone(),
            heading: link.fragment.clone(),
            line: link.line,
            broken: is_broken.then(|| library.nearest_to(doc, link).map(|it| it.0.id.clone())),
        }
    });
    shown.collect()
}

fn incoming(library: &Library, doc: &Doc) -> Vec<Incoming> {
    let shown = doc.into.iter().map(|&(from, arc)| {
        let source = library.doc(from);
        let link = source.link(&source.out[arc as usize]);
        Incoming {
            source: source.id.clone(),
            relation: link.relation().to_owned(),
            text: link.text.clone(),
        }
    });
    shown.collect()
}

/// The beginning of a text, on one line.
pub fn snippet(content: &str) -> String {
    let line = content.trim().replace(['\n', '\r'], " ");
    match line.char_indices().nth(SNIPPET_CHARS) {
        Some((end, _)) => format!("{}...", line[..end].trim_end()),
        None => line,
    }
}
