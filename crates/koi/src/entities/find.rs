//! What answers a question: entities by their names, and passages of everything that is text.

use super::neighborhood::{content, relations};
use super::{DESCRIBES, aliases, kind};
use crate::Koi;
use kenning_core::{Error, Kind, NodeId, Result, Space};
use kenning_entities::names::chunk_rid;
use kenning_kernel::paging::{Page, ranked_until};
use kenning_kernel::search::policy::{self, Policy};
use kenning_kernel::search::{Question, UNRANKED, Wanted};
use kenning_kernel::{Caller, Scope};
use kenning_kiwi::{ItemQuery, ItemSource};
use kenning_search::{Filter, Hit};
use kenning_store::{EdgeFilter, Node, Passage, ReadTx, When};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A name is found if it has such a share of letters in common.
const SIMILARITY_MIN: f64 = 0.3;
/// Of a document so many characters are shown.
const PREVIEW_CHARS: usize = 500;
/// A name is looked for among so many times more than are answered.
const SPARE: usize = 4;

/// An entity that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundEntity {
    /// Its URI.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// How well it answers, from 0 to 1.
    pub similarity: f64,
    /// Its other names.
    pub aliases: Vec<String>,
    /// How many relationships it has.
    pub relationship_count: usize,
}

/// A document, a memory or an item that was found beside entities.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundDocument {
    /// What it is called.
    pub rid: String,
    /// For people.
    pub title: String,
    /// `document`, `memory`, `directive` …
    pub kind: String,
    /// What it is about, or how it begins.
    pub description: String,
    /// How well it answers, from 0 to 1.
    pub similarity: f64,
}

/// By what something was looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchMethod {
    /// By its meaning too.
    Semantic,
    /// By letters and words only.
    #[default]
    Text,
}

impl SearchMethod {
    /// The contract's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Text => "text",
        }
    }
}

/// What was found by a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundEntities {
    /// By what it was looked for.
    pub method: SearchMethod,
    /// The best first.
    pub entities: Vec<FoundEntity>,
    /// The best first.
    pub documents: Vec<FoundDocument>,
    /// Whether there are more entities, and more documents.
    pub has_more: (bool, bool),
}

/// What to look for in texts.
#[derive(Clone, Debug, Default)]
pub struct KnowledgeQuery {
    /// The search text, free form.
    pub text: String,
    /// Only what is from there: `vault`, `github`, `email`, `web`, `project`, `memory` …
    pub source: Option<String>,
    /// Which part of the documents, and of the passages.
    pub page: Page,
}

/// A text, or a passage of one, that answers.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPassage {
    /// What the passage is called; of a whole document nothing.
    pub chunk_rid: Option<String>,
    /// What the document is called.
    pub rid: String,
    /// The document's title.
    pub title: String,
    /// The passage, or how the document begins, verbatim.
    pub text: String,
    /// How well it answers, from 0 to 1.
    pub similarity: f64,
    /// Where it is from.
    pub source: String,
    /// What else is known of it.
    pub metadata: Map<String, Value>,
}

/// What texts answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundKnowledge {
    /// By what it was looked for.
    pub method: SearchMethod,
    /// The best first, each once.
    pub documents: Vec<FoundPassage>,
    /// The best first.
    pub passages: Vec<FoundPassage>,
    /// Whether there are more documents, and more passages.
    pub has_more: (bool, bool),
}

impl Koi {
    /// The entities that answer a question, and the documents, memories and items that do.
    pub fn search_entities(
        &self,
        caller: &Caller,
        text: &str,
        type_filter: Option<&str>,
        page: Page,
    ) -> Result<FoundEntities> {
        caller.principal.require(Scope::Read)?;
        check_query(text)?;
        page.check_ranked()?;
        self.follow_entities(caller)?;
        self.follow_mail(caller);
        let space = &caller.principal.space;
        let question = self.kernel.question(text);
        let (entities, has_more_entities) = self.kernel.log().read(space, |tx| {
            let wanted = type_filter.map(str::trim).filter(|it| !it.is_empty());
            let ontology = self.ontology(space, tx)?;
            let wanted = wanted.map(|it| ontology.kind(it).map_or(it, |it| &it.key).to_owned());
            let filters = [Filter {
                kinds: vec![Kind::Entity],
                facets: wanted.iter().map(|it| format!("type={it}")).collect(),
                ..Filter::default()
            }];
            let best_of = |limit: usize| {
                let entities = &policy::ENTITIES;
                let mut found =
                    self.nodes_that_answer(caller, tx, &question, entities, &filters, limit)?;
                // What a note tells is known of whom it is about.
                for (node, relevance) in self.described_by_notes(caller, tx, &question, limit)? {
                    let best = found.entry(node).or_default();
                    *best = best.max(relevance);
                }
                let spellings = &self.entities.spellings;
                let limit_names = limit.saturating_mul(SPARE);
                let alike = spellings.find(self.kernel.later(), space, tx, text, limit_names)?;
                for (node, similarity) in alike {
                    if similarity >= SIMILARITY_MIN {
                        let best = found.entry(node).or_default();
                        *best = best.max(similarity);
                    }
                }
                let is_wanted =
                    |it: &Node| wanted.as_deref().is_none_or(|wanted| kind(it) == wanted);
                let n_needed = match page.skip {
                    0 => page.with_one_more(),
                    // A later page is put together of several lists, whatever each of them begins with.
                    _ => usize::MAX,
                };
                best_nodes(tx, found, n_needed, is_wanted)
            };
            let entities = ranked_until(page, |it| it.0.id, best_of)?;
            let (entities, has_more) = page.of_ranked(entities);
            let shown = entities.iter();
            let shown = shown.map(|it| Ok((it.0.id, found_entity(tx, &it.0, it.1)?)));
            Ok((shown.collect::<Result<Vec<_>>>()?, has_more))
        })?;
        let found_nodes: Vec<NodeId> = entities.iter().map(|it: &(NodeId, _)| it.0).collect();
        let entities = entities.into_iter().map(|it| it.1).collect();
        // What was asked for by its type is no document.
        let (documents, has_more_documents) = match type_filter {
            Some(_) => (Vec::new(), false),
            None => self.documents_that_answer(caller, &question, page)?,
        };
        Ok(FoundEntities {
            method: self.kernel.log().read(space, |tx| {
                self.method_of(space, tx, &question, &found_nodes)
            })?,
            entities,
            documents,
            has_more: (has_more_entities, has_more_documents),
        })
    }

    fn documents_that_answer(
        &self,
        caller: &Caller,
        question: &Question,
        page: Page,
    ) -> Result<(Vec<FoundDocument>, bool)> {
        let query = ItemQuery {
            item_type: None,
            text: question.text().to_owned(),
            source: ItemSource::Local,
            limit: page.limit,
            skip: page.skip,
            without_entities: true,
            ..ItemQuery::default()
        };
        let found = self.kiwi.search_items_asked(caller, &query, question)?;
        let documents = found.items.into_iter().map(|it| FoundDocument {
            rid: it.id,
            title: it.name,
            kind: it.item_type,
            description: it.description,
            similarity: it.relevance,
        });
        Ok((documents.collect(), found.has_more))
    }

    /// The documents and passages that answer a question.
    pub fn search_knowledge(
        &self,
        caller: &Caller,
        query: &KnowledgeQuery,
    ) -> Result<FoundKnowledge> {
        caller.principal.require(Scope::Read)?;
        check_query(&query.text)?;
        query.page.check_ranked()?;
        self.follow_entities(caller)?;
        self.follow_mail(caller);
        let source = query.source.as_deref().map(str::trim);
        let filters = match source.filter(|it| !it.is_empty()) {
            Some(source) => vec![Filter {
                memories_of: self.kernel.projects_seen_by(caller)?,
                ..filter_of_source(source)
            }],
            None => self.filters_of_texts(caller)?,
        };
        let space = &caller.principal.space;
        let question = self.kernel.question(&query.text);
        self.kernel.log().read(space, |tx| {
            let page = query.page;
            let best_of = |limit: usize| {
                self.passages_that_answer(caller, tx, &question, &policy::TEXTS, &filters, limit)
            };
            let hits = ranked_until(page, |it| (it.node, it.n), best_of)?;
            let mut found = FoundKnowledge::default();
            let (mut n_documents, mut n_passages) = (0, 0);
            let pages = page.skip..page.with_one_more() - 1;
            let mut nodes: HashMap<NodeId, Node> = HashMap::new();
            let mut seen: HashSet<(NodeId, u32)> = HashSet::new();
            let mut answered: Vec<NodeId> = Vec::new();
            for hit in hits {
                if n_documents > pages.end && n_passages > pages.end {
                    break;
                }
                let is_first = !nodes.contains_key(&hit.node);
                if is_first {
                    let Some(node) = tx.node(hit.node, When::Now)? else {
                        continue;
                    };
                    nodes.insert(hit.node, node);
                }
                let Some(node) = nodes.get(&hit.node) else {
                    continue;
                };
                if is_first {
                    if pages.contains(&n_documents) {
                        let text: String = content(node).chars().take(PREVIEW_CHARS).collect();
                        found.documents.push(found_text(node, &hit, None, text));
                        answered.push(node.id);
                    }
                    n_documents += 1;
                }
                if n_passages > pages.end {
                    continue;
                }
                let passages = tx.passages(hit.node)?;
                let passage = match hit.n {
                    UNRANKED => with_most_words(passages, &query.text),
                    n => passages.into_iter().find(|it| it.n == n),
                };
                if let Some(it) = passage.filter(|it| seen.insert((node.id, it.n))) {
                    if pages.contains(&n_passages) {
                        found
                            .passages
                            .push(found_text(node, &hit, Some(it.n), it.text));
                        answered.push(node.id);
                    }
                    n_passages += 1;
                }
            }
            let has_more = |n: usize| n > pages.end && page.is_within_ranked();
            found.has_more = (has_more(n_documents), has_more(n_passages));
            found.method = self.method_of(space, tx, &question, &answered)?;
            Ok(found)
        })
    }

    /// Entities whose own notes answer, with how well they do.
    fn described_by_notes(
        &self,
        caller: &Caller,
        tx: &dyn ReadTx,
        question: &Question,
        limit: usize,
    ) -> Result<Vec<(NodeId, f64)>> {
        let notes = [filter_of_source(super::VAULT)];
        let policy = &policy::NOTES_OF_ENTITIES;
        let mut found = Vec::new();
        for (note, relevance) in
            self.nodes_that_answer(caller, tx, question, policy, &notes, limit)?
        {
            let about = EdgeFilter {
                src: Some(note),
                rel: Some(DESCRIBES.to_owned()),
                ..EdgeFilter::default()
            };
            let about = tx.edges(&about, When::Now, 1)?;
            found.extend(about.first().map(|edge| (edge.dst, relevance)));
        }
        Ok(found)
    }

    /// Whether a question was answered by its meaning. A model that was chosen knows a meaning of any
    /// text, the built-in table of words that it has; and what has no word of the question was not found
    /// by its words.
    fn method_of(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        question: &Question,
        answers: &[NodeId],
    ) -> Result<SearchMethod> {
        let table = kenning_embed::Table::built_in();
        let is_known = |word: &str| {
            let is_letter = word.len() == 1;
            !is_letter && table.token(word.to_lowercase().as_bytes()).is_some()
        };
        let mut words = question.text().split(|it: char| !it.is_alphanumeric());
        if words.any(is_known) || question.vector().is_some() {
            return Ok(SearchMethod::Semantic);
        }
        let by_words = self.kernel.search(space, tx, question, |search| {
            answers.iter().all(|node| search.shares_a_word(*node))
        })?;
        Ok(if by_words {
            SearchMethod::Text
        } else {
            SearchMethod::Semantic
        })
    }

    /// Everything that is text and that the caller may see: notes, pages, memories, items.
    fn filters_of_texts(&self, caller: &Caller) -> Result<Vec<Filter>> {
        let items = self.kiwi.filters_of_items(caller)?;
        let kinds = [
            Kind::Document,
            Kind::Page,
            Kind::Memory,
            Kind::Symbol,
            Kind::Agent,
        ];
        let texts = Filter {
            kinds: kinds.to_vec(),
            memories_of: self.kernel.projects_seen_by(caller)?,
            ..Filter::default()
        };
        Ok(items.into_iter().chain([texts]).collect())
    }

    /// Passages that answer, by a policy.
    fn passages_that_answer(
        &self,
        caller: &Caller,
        tx: &dyn ReadTx,
        question: &Question,
        policy: &Policy,
        filters: &[Filter],
        limit: usize,
    ) -> Result<Vec<Hit>> {
        let space = &caller.principal.space;
        let now_ms = self.kernel.log().clock().now_ms();
        let wanted = Wanted::new(policy, filters, limit, now_ms);
        let found = self
            .kernel
            .search(space, tx, question, |search| search.find(&wanted))??;
        Ok(found.hits)
    }

    fn nodes_that_answer(
        &self,
        caller: &Caller,
        tx: &dyn ReadTx,
        question: &Question,
        policy: &Policy,
        filters: &[Filter],
        limit: usize,
    ) -> Result<BTreeMap<NodeId, f64>> {
        let mut found = BTreeMap::new();
        for hit in self.passages_that_answer(caller, tx, question, policy, filters, limit)? {
            let best: &mut f64 = found.entry(hit.node).or_default();
            *best = best.max(hit.relevance);
        }
        Ok(found)
    }
}

/// Those of the nodes that are wanted, the best first: at least so many, or all. Of equals the first by
/// their keys come first.
fn best_nodes(
    tx: &dyn ReadTx,
    found: BTreeMap<NodeId, f64>,
    n_needed: usize,
    is_wanted: impl Fn(&Node) -> bool,
) -> Result<Vec<(Node, f64)>> {
    let mut order: Vec<(NodeId, f64)> = found.into_iter().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut best = Vec::new();
    for equals in order.chunk_by(|a, b| a.1.total_cmp(&b.1).is_eq()) {
        if best.len() >= n_needed {
            break;
        }
        let mut nodes = Vec::new();
        for (id, similarity) in equals {
            let node = tx.node(*id, When::Now)?.filter(&is_wanted);
            nodes.extend(node.map(|it| (it, *similarity)));
        }
        nodes.sort_by(|a, b| a.0.key.cmp(&b.0.key));
        best.extend(nodes);
    }
    Ok(best)
}

fn check_query(text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::invalid("`query` is empty").hint("say in a few words what to find"));
    }
    Ok(())
}

/// What is from one source, by the name that callers or the original's sensors have for it.
fn filter_of_source(source: &str) -> Filter {
    let source = source.trim().to_lowercase();
    let name = source.strip_suffix("-sensor").unwrap_or(&source);
    let name = if name == "obsidian" { "vault" } else { name };
    if name == Kind::Memory.as_str() {
        return Filter {
            kinds: vec![Kind::Memory],
            ..Filter::default()
        };
    }
    Filter {
        kinds: vec![Kind::Document, Kind::Page, Kind::Symbol, Kind::Agent],
        facets: vec![format!("source={name}")],
        ..Filter::default()
    }
}

/// The passage that has most words of a query, the first of those that have equally many.
pub(crate) fn with_most_words(passages: Vec<Passage>, query: &str) -> Option<Passage> {
    let query = query.to_lowercase();
    let n_words = |it: &Passage| {
        let text = it.text.to_lowercase();
        query
            .split_whitespace()
            .filter(|word| text.contains(word))
            .count()
    };
    passages.into_iter().rev().max_by_key(n_words)
}

fn found_entity(tx: &dyn ReadTx, node: &Node, similarity: f64) -> Result<FoundEntity> {
    Ok(FoundEntity {
        uri: node.key.clone(),
        name: node.title.clone(),
        kind: kind(node).to_owned(),
        similarity,
        aliases: aliases(node).map(ToOwned::to_owned).collect(),
        relationship_count: relations(tx, node.id)?.len(),
    })
}

fn found_text(node: &Node, hit: &Hit, passage: Option<u32>, text: String) -> FoundPassage {
    let rid = match node.kind {
        Kind::Memory => kenning_kernel::memory_id(node),
        _ => node.key.clone(),
    };
    let prop = |name: &str| node.props.get(name).cloned();
    let source = prop("source").and_then(|it| it.as_str().map(ToOwned::to_owned));
    let source = source.unwrap_or_else(|| node.kind.as_str().to_owned());
    let mut metadata = Map::new();
    metadata.insert("kind".to_owned(), node.kind.as_str().into());
    for name in [
        "path",
        "type",
        "tags",
        "memory_type",
        "url",
        "repo",
        "author",
        "commit_sha",
        "content_hash",
        "email",
    ] {
        metadata.extend(prop(name).map(|it| (name.to_owned(), it)));
    }
    if let Some(n) = passage {
        metadata.insert("chunk".to_owned(), json!(n));
    }
    FoundPassage {
        chunk_rid: passage.map(|it| chunk_rid(&rid, it as usize)),
        rid,
        title: node.title.clone(),
        text,
        similarity: hit.relevance,
        source,
        metadata,
    }
}
