//! Questions about the shape of the graph: neighbors, paths, ranks, groups, missing links.

use super::library::{Doc, Library};
use crate::Kg;
use kenning_core::{Code, Error, Result};
use kenning_graph::analysis::Graph;
use kenning_graph::export::{self, Picture, PictureEdge, PictureNode};
use kenning_graph::{Mentions, Relation};
use kenning_kernel::Caller;
use kenning_kernel::search::policy::SUGGESTED_ALIKE_MIN;
use kenning_kernel::search::{Question, Wanted, policy};
use kenning_search::Mode;
use kenning_store::{ReadTx, When};
use std::collections::{BTreeMap, HashSet};

/// The usual damping of PageRank.
const DAMPING: f64 = 0.85;

/// At most this many documents are searched for the name of another.
const MENTIONS_LOOKED: usize = 30;

/// At most this many documents are suggested for one.
const SUGGESTED_MAX: usize = 5;

/// The names of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentName {
    /// Its id.
    pub id: String,
    /// The title for people.
    pub title: String,
    /// From the project, or `vault:` and its name there.
    pub path: String,
}

/// A document on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// The document.
    pub document: DocumentName,
    /// How it relates to the one before; `None` for the first.
    pub relation: Option<String>,
    /// Whether the previous document links to this one, and not the other way.
    pub is_forward: bool,
}

/// Documents that are linked more with each other than with the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Community {
    /// Its number; the largest is 0.
    pub number: u32,
    /// How many documents.
    pub size: usize,
    /// The first of them, by rank.
    pub members: Vec<DocumentName>,
}

/// A broken link.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokenLink {
    /// The document that has it.
    pub source: DocumentName,
    /// Its line.
    pub line: u32,
    /// Its target.
    pub target: String,
    /// What the reader sees.
    pub text: String,
    /// The document that was probably meant, with the similarity of the names from 0 to 1.
    pub suggestion: Option<(DocumentName, f64)>,
    /// What is missing: `document`, `file` or `heading`.
    pub missing: &'static str,
}

/// A link that somebody could make.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    /// The other document.
    pub document: DocumentName,
    /// The reason.
    pub reason: SuggestionReason,
    /// The line of a mention.
    pub line: Option<u32>,
    /// The text around it.
    pub context: String,
}

/// Why a link is suggested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuggestionReason {
    /// The other one names it.
    MentionedBy,
    /// It names the other one.
    Mentions,
    /// They are similar.
    Similar,
}

impl SuggestionReason {
    /// The word in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MentionedBy => "mentioned-by",
            Self::Mentions => "mentions",
            Self::Similar => "similar",
        }
    }
}

/// A document without links.
#[derive(Clone, Debug, PartialEq)]
pub struct Orphan {
    /// The document.
    pub document: DocumentName,
    /// Links that would join it to others.
    pub suggestions: Vec<Suggestion>,
}

/// A link to a document, with the text around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backlink {
    /// The document that has it.
    pub source: DocumentName,
    /// Its relation.
    pub relation: String,
    /// What the reader sees.
    pub text: String,
    /// Its line.
    pub line: u32,
    /// The text around it.
    pub context: String,
}

/// The links to a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Backlinks {
    /// The document.
    pub document: DocumentName,
    /// Some of the links to it.
    pub links: Vec<Backlink>,
    /// How many there are.
    pub total: usize,
    /// Places that name it without a link.
    pub unlinked: Vec<Suggestion>,
}

/// A format for exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// For Gephi, yEd and others.
    GraphMl,
    /// For Graphviz.
    Dot,
    /// Nodes and edges.
    Json,
    /// For Obsidian.
    Canvas,
    /// A self-contained HTML page.
    Html,
}

impl ExportFormat {
    /// Every format.
    pub const ALL: [Self; 5] = [
        Self::GraphMl,
        Self::Dot,
        Self::Json,
        Self::Canvas,
        Self::Html,
    ];

    /// The name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GraphMl => "graphml",
            Self::Dot => "dot",
            Self::Json => "json",
            Self::Canvas => "canvas",
            Self::Html => "html",
        }
    }
}

impl Kg {
    /// Documents within this many links of one, the nearest first.
    pub fn graph_neighbors(
        &self,
        caller: &Caller,
        of: &str,
        depth: u32,
        limit: usize,
    ) -> Result<(DocumentName, Vec<(DocumentName, u32)>)> {
        self.kernel.log().read(&caller.principal.space, |tx| {
            let library = self.graph(caller, tx)?;
            let of = find(&library, of)?;
            let near = shape(&library).neighbourhood(of, depth, limit);
            let near = near
                .into_iter()
                .map(|(at, distance)| (name(library.doc(at)), distance));
            Ok((name(library.doc(of)), near.collect()))
        })
    }

    /// The shortest path from one document to another; `None` if there is none.
    pub fn graph_path(
        &self,
        caller: &Caller,
        from: &str,
        to: &str,
        directed: bool,
    ) -> Result<Option<Vec<PathStep>>> {
        self.kernel.log().read(&caller.principal.space, |tx| {
            let library = self.graph(caller, tx)?;
            let (from, to) = (find(&library, from)?, find(&library, to)?);
            let path = shape(&library).shortest_path(from, to, directed);
            Ok(path.map(|path| steps(&library, &path)))
        })
    }

    /// The documents with the highest PageRank, and the total number.
    pub fn graph_ranks(
        &self,
        caller: &Caller,
        limit: usize,
    ) -> Result<(Vec<(DocumentName, f64)>, usize)> {
        self.kernel.log().read(&caller.principal.space, |tx| {
            let library = self.graph(caller, tx)?;
            let ranks = shape(&library).page_rank(DAMPING);
            let mut order: Vec<usize> = (0..library.docs.len()).collect();
            order.sort_by(|&a, &b| ranks[b].total_cmp(&ranks[a]).then(a.cmp(&b)));
            let first = order.into_iter().take(limit);
            let first = first.map(|at| (name(&library.docs[at]), ranks[at]));
            Ok((first.collect(), library.docs.len()))
        })
    }

    /// Groups of related documents, the largest first, and the number of groups.
    pub fn graph_communities(
        &self,
        caller: &Caller,
        limit: usize,
        members: usize,
    ) -> Result<(Vec<Community>, usize)> {
        self.kernel.log().read(&caller.principal.space, |tx| {
            let library = self.graph(caller, tx)?;
            let graph = shape(&library);
            let (groups, ranks) = (graph.communities(), graph.page_rank(DAMPING));
            let mut all: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
            for (at, group) in groups.into_iter().enumerate() {
                all.entry(group).or_default().push(at);
            }
            let total = all.len();
            let shown = all.into_iter().take(limit).map(|(number, mut docs)| {
                docs.sort_by(|&a, &b| ranks[b].total_cmp(&ranks[a]).then(a.cmp(&b)));
                let first = docs.iter().take(members).map(|&at| name(&library.docs[at]));
                Community {
                    number,
                    size: docs.len(),
                    members: first.collect(),
                }
            });
            Ok((shown.collect(), total))
        })
    }

    /// Broken links, and how many there are.
    pub fn graph_broken_links(
        &self,
        caller: &Caller,
        skip: usize,
        limit: usize,
    ) -> Result<(Vec<BrokenLink>, usize)> {
        self.kernel.log().read(&caller.principal.space, |tx| {
            let library = self.graph(caller, tx)?;
            let mut all: Vec<(&Doc, u32, bool)> = Vec::new();
            for doc in &library.docs {
                let own_start = all.len();
                all.extend(doc.broken.iter().map(|&at| (doc, at, true)));
                all.extend(doc.lost.iter().map(|&at| (doc, at, false)));
                all[own_start..].sort_by_key(|link| (doc.card.links[link.1 as usize].line, link.1));
            }
            let total = all.len();
            let shown = all.into_iter().skip(skip).take(limit);
            let shown = shown.map(|(doc, at, is_document)| {
                let link = &doc.card.links[at as usize];
                let (missing, target) = match (is_document, &link.fragment) {
                    (true, _) => ("document", link.target.clone()),
                    (false, Some(fragment)) if !link.is_other => {
                        ("heading", format!("{}#{fragment}", link.target))
                    }
                    (false, _) => ("file", link.target.clone()),
                };
                let nearest = library.nearest_to(doc, link).filter(|_| is_document);
                BrokenLink {
                    source: name(doc),
                    line: link.line,
                    target,
                    text: link.text.clone(),
                    suggestion: nearest.map(|(it, likeness)| (name(it), likeness)),
                    missing,
                }
            });
            Ok((shown.collect(), total))
        })
    }

    /// Documents without links, with links that would join them to others, and how many there are.
    pub fn graph_orphans(
        &self,
        caller: &Caller,
        skip: usize,
        limit: usize,
    ) -> Result<(Vec<Orphan>, usize)> {
        self.kernel.log().read(&caller.principal.space, |tx| {
            let library = self.graph(caller, tx)?;
            let all: Vec<&Doc> = library.docs.iter().filter(|it| it.is_orphan()).collect();
            let shown = all.iter().skip(skip).take(limit).map(|doc| {
                caller.check()?;
                Ok(Orphan {
                    document: name(doc),
                    suggestions: self.suggestions(caller, tx, &library, doc)?,
                })
            });
            Ok((shown.collect::<Result<Vec<_>>>()?, all.len()))
        })
    }

    /// Suggested links between a document and others.
    fn suggestions(
        &self,
        caller: &Caller,
        tx: &dyn ReadTx,
        library: &Library,
        doc: &Doc,
    ) -> Result<Vec<Suggestion>> {
        let mut found = self.mentioned_by(caller, tx, library, doc)?;
        let text = content(tx, doc)?;
        for mention in names_of_all(library).find(&text) {
            let other = library.doc(mention.doc);
            if other.path != doc.path {
                found.push(Suggestion {
                    document: name(other),
                    reason: SuggestionReason::Mentions,
                    line: Some(mention.line),
                    context: mention.context,
                });
            }
        }
        let filter = self.document_filter(None, None);
        let space = &caller.principal.space;
        let (wanted, enough) = ((&filter, SUGGESTED_MAX), SUGGESTED_ALIKE_MIN);
        let alike = self.kernel.alike();
        for (node, _) in alike.find(space, tx, doc.card.node, wanted, enough)? {
            if let Some(other) = library.by_node(node) {
                found.push(Suggestion {
                    document: name(other),
                    reason: SuggestionReason::Similar,
                    line: None,
                    context: String::new(),
                });
            }
        }
        let mut seen = HashSet::new();
        found.retain(|it| seen.insert(it.document.id.clone()));
        found.truncate(SUGGESTED_MAX);
        Ok(found)
    }

    /// Documents that name this one without a link.
    fn mentioned_by(
        &self,
        caller: &Caller,
        tx: &dyn ReadTx,
        library: &Library,
        doc: &Doc,
    ) -> Result<Vec<Suggestion>> {
        let own = [&doc.card.title].into_iter().chain(&doc.card.aliases);
        let own: Vec<(u32, String)> = own.map(|it| (0, it.clone())).collect();
        let mentions = Mentions::new(&own);
        let linking: HashSet<u32> = doc.into.iter().map(|it| it.0).collect();
        let filters = [self.document_filter(None, None)];
        let space = &caller.principal.space;
        let mut found = Vec::new();
        for (_, words) in &own {
            let question = Question::of_words(words);
            let wanted = Wanted {
                mode: Mode::FullText,
                ..Wanted::new(&policy::MENTIONS, &filters, MENTIONS_LOOKED, 0)
            };
            let answers = self
                .kernel
                .search(space, tx, &question, |search| search.find(&wanted))??;
            for hit in answers.hits {
                let Some(other) = library.by_node(hit.node).filter(|it| it.path != doc.path) else {
                    continue;
                };
                if library
                    .number_of(&other.path)
                    .is_some_and(|it| linking.contains(&it))
                {
                    continue;
                }
                let text = content(tx, other)?;
                found.extend(mentions.find(&text).into_iter().map(|mention| Suggestion {
                    document: name(other),
                    reason: SuggestionReason::MentionedBy,
                    line: Some(mention.line),
                    context: mention.context,
                }));
            }
        }
        let mut seen = HashSet::new();
        found.retain(|it| seen.insert(it.document.id.clone()));
        Ok(found)
    }

    /// Links to a document with the text around them, and places that name it without a link.
    pub fn graph_backlinks(
        &self,
        caller: &Caller,
        of: &str,
        skip: usize,
        limit: usize,
    ) -> Result<Backlinks> {
        self.kernel.log().read(&caller.principal.space, |tx| {
            let library = self.graph(caller, tx)?;
            let doc = library.doc(find(&library, of)?);
            let mut found = Vec::new();
            // One text may have many links, which come one after another.
            let mut parsed: Option<(u32, kenning_graph::Document)> = None;
            for &(from, arc) in doc.into.iter().skip(skip).take(limit) {
                caller.check()?;
                let source = library.doc(from);
                let link = source.link(&source.out[arc as usize]);
                if parsed.as_ref().is_none_or(|it| it.0 != from) {
                    let node = tx.node(source.card.node, When::Now)?;
                    parsed = node.map(|it| (from, kenning_graph::parse(&it.body)));
                }
                let same =
                    |it: &&kenning_graph::Link| it.line == link.line && it.target == link.target;
                let all = parsed
                    .iter()
                    .flat_map(|card| card.1.links.iter().chain(&card.1.others));
                let context = { all }.find(same);
                found.push(Backlink {
                    source: name(source),
                    relation: link.relation().to_owned(),
                    text: link.text.clone(),
                    line: link.line,
                    context: context.map(|it| it.context.clone()).unwrap_or_default(),
                });
            }
            let unlinked = self.mentioned_by(caller, tx, &library, doc)?;
            Ok(Backlinks {
                document: name(doc),
                links: found,
                total: doc.into.len(),
                unlinked,
            })
        })
    }

    /// The whole graph in the format of another program.
    pub fn export_graph(&self, caller: &Caller, format: ExportFormat) -> Result<String> {
        self.kernel.log().read(&caller.principal.space, |tx| {
            let library = self.graph(caller, tx)?;
            let picture = picture(&library);
            Ok(match format {
                ExportFormat::GraphMl => export::graphml(&picture),
                ExportFormat::Dot => export::dot(&picture),
                ExportFormat::Json => format!("{:#}", export::json(&picture)),
                ExportFormat::Canvas => format!("{:#}", export::canvas(&picture)),
                ExportFormat::Html => export::html(&picture, "The graph"),
            })
        })
    }
}

fn name(doc: &Doc) -> DocumentName {
    DocumentName {
        id: doc.id.clone(),
        title: doc.card.title.clone(),
        path: doc.path.clone(),
    }
}

/// By id, path, or any name that a link could use.
fn find(library: &Library, text: &str) -> Result<u32> {
    let found = library.find(text);
    found.ok_or_else(|| {
        let near = library
            .nearest(text)
            .map(|it| format!("did you mean `{}`?", it.0.id));
        let hint = near.unwrap_or_else(|| "`kg_query` lists the documents".to_owned());
        Error::new(Code::NotFound, "Node not found").hint(hint)
    })
}

fn shape(library: &Library) -> Graph {
    let edges = (0_u32..).zip(&library.docs).flat_map(|(from, doc)| {
        let out = doc.out.iter();
        out.map(move |arc| {
            (
                from,
                arc.to,
                Relation::of_key(doc.link(arc).relation()).weight(),
            )
        })
    });
    Graph::new(library.docs.len(), edges)
}

fn steps(library: &Library, path: &[u32]) -> Vec<PathStep> {
    let mut steps = Vec::with_capacity(path.len());
    for (i, &at) in path.iter().enumerate() {
        let before = i.checked_sub(1).map(|i| path[i]);
        let link = |from: u32, to: u32| {
            let doc = library.doc(from);
            let arc = doc.out.iter().find(|it| it.to == to)?;
            Some(doc.link(arc).relation().to_owned())
        };
        let forward = before.and_then(|before| link(before, at));
        let is_forward = forward.is_some();
        steps.push(PathStep {
            document: name(library.doc(at)),
            relation: forward.or_else(|| before.and_then(|before| link(at, before))),
            is_forward,
        });
    }
    steps
}

fn content(tx: &dyn ReadTx, doc: &Doc) -> Result<String> {
    let node = tx.node(doc.card.node, When::Now)?;
    Ok(node.map(|it| it.body).unwrap_or_default())
}

fn names_of_all(library: &Library) -> Mentions {
    let mut names = Vec::new();
    for (at, doc) in (0_u32..).zip(&library.docs) {
        names.push((at, doc.card.title.clone()));
        names.extend(doc.card.aliases.iter().map(|it| (at, it.clone())));
    }
    Mentions::new(&names)
}

fn picture(library: &Library) -> Picture {
    let graph = shape(library);
    let (ranks, groups) = (graph.page_rank(DAMPING), graph.communities());
    let nodes = library
        .docs
        .iter()
        .enumerate()
        .map(|(at, doc)| PictureNode {
            id: doc.id.clone(),
            title: doc.card.title.clone(),
            doc_type: doc.card.doc_type,
            status: doc.card.status,
            tags: doc.card.tags.clone(),
            path: doc.path.clone(),
            rank: ranks[at],
            community: groups[at],
            words: doc.card.words,
        });
    let edges = library.docs.iter().flat_map(|doc| {
        doc.out.iter().map(move |arc| {
            let link = doc.link(arc);
            PictureEdge {
                source: doc.id.clone(),
                target: library.doc(arc.to).id.clone(),
                relation: link.relation().to_owned(),
                weight: Relation::of_key(link.relation()).weight(),
                text: link.text.clone(),
            }
        })
    });
    Picture {
        nodes: nodes.collect(),
        edges: edges.collect(),
    }
}
