//! Finding vectors: by a vector, or by a text together with the documents.

use super::upsert::check_numbers;
use super::{
    NAMESPACE_DOCUMENTS, VectorNamespace, is_name, namespaces, not_a_name, place_of, text_prop,
    total,
};
use crate::{Caller, Engine, Scope, roots};
use kenning_core::{Error, Kind, NodeId, Result, Space};
use kenning_embed::Model;
use kenning_search::{
    Filter, Index, Mode, Near, Query, collection_name, cosine, facet, row_facets, tokens,
};
use kenning_store::{IndexKind, Node, ReadTx, When};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::LazyLock;

/// The most results.
pub const VECTOR_RESULTS_MAX: usize = 100;

/// From so many on a database's own index is asked: the collection would take too much memory here.
const CALLER_SCAN_MAX: u64 = 1_000_000;

/// So many of the nearest are looked through for those that a filter admits.
const LOOKED_THROUGH_MAX: usize = 20_000;

/// At least so many are looked at before keywords put them in another order.
const HYBRID_MIN: usize = 100;

/// The share of the vector in the order of a hybrid search; the contract's.
const VECTOR_SHARE: f64 = 0.7;

/// Fields that keywords are looked for in; the contract's.
const KEYWORD_FIELDS: usize = 4;

/// Words that are too short to tell anything.
const SHORT_WORD: usize = 2;

/// The most numbers in an answer, and the most bytes of what belongs to one result and to all.
const NUMBERS_MAX: usize = 20_000;
const METADATA_BYTES_MAX: usize = 8_000;
const ANSWER_BYTES_MAX: usize = 60_000;

/// A text that belongs to a result is shown up to here.
const TEXT_CHARS_MAX: usize = 1_000;

static THREADS: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// What to find.
#[derive(Clone, Debug)]
pub struct VectorQuery {
    /// In any words; may be empty where a vector is given.
    pub text: String,
    /// Near this vector, among those of its dimension.
    pub vector: Option<Vec<f32>>,
    /// At most so many.
    pub limit: usize,
    /// Only of this type.
    pub node_type: Option<String>,
    /// Only with all of these tags.
    pub tags: Vec<String>,
    /// Only vectors to which exactly these values belong.
    pub filter: Map<String, Value>,
    /// Only of this namespace; `documents` is that of the documents.
    pub namespace: Option<String>,
    /// Whether the words of the text count too.
    pub hybrid: bool,
    /// Only with at least this score.
    pub min_score: f64,
    /// Whether the answer has the numbers.
    pub include_vectors: bool,
}

impl Default for VectorQuery {
    fn default() -> Self {
        Self {
            text: String::new(),
            vector: None,
            limit: 10,
            node_type: None,
            tags: Vec::new(),
            filter: Map::new(),
            namespace: None,
            hybrid: false,
            min_score: 0.0,
            include_vectors: false,
        }
    }
}

/// What was found of one vector or document.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorHit {
    /// The caller's name for it, or the document's.
    pub id: String,
    /// The namespace, if it is a caller's vector.
    pub namespace: Option<String>,
    /// The cosine, from 0 to 1.
    pub score: f64,
    /// How many of the words it has, and both together; only of a hybrid search.
    pub keywords: Option<Keywords>,
    /// What belongs to it.
    pub metadata: Map<String, Value>,
    /// The numbers, if they were asked for.
    pub vector: Option<Vec<f32>>,
}

/// What the words of a query add.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keywords {
    /// How many of the words it has, from 0 to 1.
    pub score: f64,
    /// What it is ranked by.
    pub combined: f64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundVectors {
    /// Best first.
    pub hits: Vec<VectorHit>,
    /// How many vectors can be searched.
    pub total: u64,
    /// What looked: `exact`, `sketch` or `hnsw`.
    pub index: &'static str,
    /// What the caller should know about the answer.
    pub remarks: Vec<String>,
}

/// What looked, from the surest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Looked {
    #[default]
    Exact,
    Sketch,
    Hnsw,
}

impl Looked {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => IndexKind::Exact.as_str(),
            Self::Sketch => "sketch",
            Self::Hnsw => IndexKind::Hnsw.as_str(),
        }
    }

    fn sketched(is: bool) -> Self {
        if is { Self::Sketch } else { Self::Exact }
    }
}

/// Nodes with their scores.
#[derive(Default)]
struct Candidates {
    scores: HashMap<NodeId, f64>,
    looked: Looked,
    remarks: Vec<String>,
}

impl Candidates {
    fn add(&mut self, node: NodeId, cosine: f64) {
        let score = self.scores.entry(node).or_insert(0.0);
        *score = score.max(cosine.clamp(0.0, 1.0));
    }
}

/// A query, checked.
struct Asked<'a> {
    query: &'a VectorQuery,
    namespace: Option<&'a str>,
    /// What callers' vectors must have.
    facets: Vec<u64>,
    /// The text's vector by the model that was chosen.
    text_vector: Option<Vec<f32>>,
    model: Option<Model>,
}

impl<'a> Asked<'a> {
    fn of(query: &'a VectorQuery) -> Result<Self> {
        let namespace = query.namespace.as_deref().filter(|it| !it.is_empty());
        if let Some(name) = namespace.filter(|it| !is_name(it)) {
            return Err(not_a_name("Namespace", name));
        }
        if let Some(vector) = &query.vector {
            check_numbers(vector)?;
        }
        let mut facets = Vec::new();
        for (name, value) in &query.filter {
            facets.push(facet(name, value).ok_or_else(|| {
                Error::invalid(format!(
                    "`filter.{name}`: only plain values can be compared"
                ))
                .hint("a string, a number or a boolean")
            })?);
        }
        let node_type = query.node_type.as_ref().map(|it| it.as_str().into());
        facets.extend(node_type.and_then(|it| facet("type", &it)));
        let tags = query.tags.iter().map(|it| it.as_str().into());
        facets.extend(tags.filter_map(|it| facet("tags", &it)));
        Ok(Self {
            query,
            namespace,
            facets,
            text_vector: None,
            model: None,
        })
    }

    /// How many to look at before the order is decided.
    fn wanted(&self) -> usize {
        if self.query.hybrid {
            HYBRID_MIN.max(4 * self.query.limit)
        } else {
            self.query.limit
        }
    }

    /// The properties as the index of texts names them.
    fn text_facets(&self) -> Vec<String> {
        let node_type = self.query.node_type.iter().map(|it| format!("type={it}"));
        let tags = self.query.tags.iter().map(|it| format!("tag={it}"));
        node_type.chain(tags).collect()
    }

    fn is_of_namespace(&self, namespace: &str) -> bool {
        self.namespace.is_none_or(|it| it == namespace)
    }
}

impl Engine {
    /// The vectors and documents that are most like a text or a vector, best first.
    pub fn search_vectors(&self, caller: &Caller, query: &VectorQuery) -> Result<FoundVectors> {
        caller.principal.require(Scope::Read)?;
        let mut asked = Asked::of(query)?;
        let mut remarks = Vec::new();
        let by_text = query.vector.is_none() || query.hybrid;
        if by_text && !query.text.trim().is_empty() {
            let (vector, remark) = self.query_vector(&query.text);
            asked.text_vector = vector;
            asked.model = self.chosen_model();
            remarks.extend(remark);
        }
        let space = &caller.principal.space;
        self.log.read(space, |tx| {
            let candidates = match &query.vector {
                Some(vector) => self.near_vector(tx, space, &asked, vector)?,
                None => self.near_text(tx, caller, &asked)?,
            };
            remarks.extend(candidates.remarks.iter().cloned());
            let ranked = ranked(tx, &asked, &candidates)?;
            let hits = self.hits(tx, space, &asked, ranked, &mut remarks)?;
            Ok(FoundVectors {
                hits,
                total: total(tx)?,
                index: candidates.looked.as_str(),
                remarks,
            })
        })
    }

    /// Which documents are searched.
    #[expect(
        clippy::unused_self,
        reason = "which documents there are will depend on the project of the engine"
    )]
    fn document_filter(&self, _caller: &Caller) -> Filter {
        Filter {
            kinds: vec![Kind::Document],
            ..Filter::default()
        }
    }

    /// Callers' vectors of the same dimension.
    fn near_vector(
        &self,
        tx: &dyn ReadTx,
        space: &Space,
        asked: &Asked<'_>,
        vector: &[f32],
    ) -> Result<Candidates> {
        let mut found = Candidates::default();
        for it in namespaces(tx)? {
            if it.dimensions == vector.len() && asked.is_of_namespace(&it.namespace) {
                self.near_in_collection(tx, space, asked, &it, vector, &mut found)?;
            }
        }
        if asked.query.hybrid {
            // What has the words but is not near is looked at all the same.
            let filter = self.callers_filter(tx, space, asked)?;
            let by_words = self.by_text(tx, space, asked, Mode::FullText, &filter)?;
            for (node, _) in by_words.hits {
                if !found.scores.contains_key(&node)
                    && let Some(numbers) = stored_vector(tx, node)?
                    && let Some(cosine) = cosine(vector, &numbers)
                {
                    found.add(node, cosine);
                }
            }
        }
        Ok(found)
    }

    fn near_in_collection(
        &self,
        tx: &dyn ReadTx,
        space: &Space,
        asked: &Asked<'_>,
        place: &VectorNamespace,
        vector: &[f32],
        found: &mut Candidates,
    ) -> Result<()> {
        let name = collection_name(&place.namespace, place.dimensions);
        if self.shared && place.vectors > CALLER_SCAN_MAX {
            return near_by_floor(tx, &name, vector, asked, found);
        }
        let near = Near {
            to: vector,
            facets: &asked.facets,
            limit: asked.wanted(),
            threads: *THREADS,
        };
        let work = |it: &kenning_search::Collection| {
            it.nearest(&near, |node| {
                let row = tx.vector(&name, &node.to_string())?;
                Ok(row.map(|it| it.numbers))
            })
        };
        let near = self
            .collections
            .with(space, tx, &name, place.dimensions, work)?;
        found.looked = found.looked.max(Looked::sketched(near.sketched));
        for it in near.nearest {
            found.add(it.node, it.cosine);
        }
        Ok(())
    }

    /// Documents and callers' vectors that brought a text.
    fn near_text(&self, tx: &dyn ReadTx, caller: &Caller, asked: &Asked<'_>) -> Result<Candidates> {
        let mut found = Candidates::default();
        if tokens(&asked.query.text).is_empty() {
            return Ok(found);
        }
        let space = &caller.principal.space;
        let mut filters = vec![self.callers_filter(tx, space, asked)?];
        // What callers say belongs to their vectors, documents do not have.
        if asked.query.filter.is_empty() && asked.is_of_namespace(NAMESPACE_DOCUMENTS) {
            let mut documents = self.document_filter(caller);
            documents.facets.extend(asked.text_facets());
            filters.push(documents);
        }
        let modes: &[Mode] = if asked.query.hybrid {
            &[Mode::Semantic, Mode::FullText]
        } else {
            &[Mode::Semantic]
        };
        for filter in &filters {
            for &mode in modes {
                let by_text = self.by_text(tx, space, asked, mode, filter)?;
                found.looked = found.looked.max(by_text.looked);
                for (node, cosine) in by_text.hits {
                    found.add(node, cosine);
                }
            }
        }
        Ok(found)
    }

    /// Which callers' vectors a search by text may find.
    fn callers_filter(&self, tx: &dyn ReadTx, space: &Space, asked: &Asked<'_>) -> Result<Filter> {
        let namespace = asked.namespace.map(|it| format!("namespace={it}"));
        let mut filter = Filter {
            kinds: vec![Kind::Vector],
            facets: asked.text_facets().into_iter().chain(namespace).collect(),
            ..Filter::default()
        };
        if !asked.query.filter.is_empty() {
            let nodes = filter.nodes.insert(Default::default());
            for it in namespaces(tx)? {
                if asked.is_of_namespace(&it.namespace) {
                    let name = collection_name(&it.namespace, it.dimensions);
                    let having = |it: &kenning_search::Collection| Ok(it.having(&asked.facets));
                    let collections = &self.collections;
                    nodes.extend(collections.with(space, tx, &name, it.dimensions, having)?);
                }
            }
        }
        Ok(filter)
    }

    /// The best nodes by their texts, each with the cosine of its best passage.
    fn by_text(
        &self,
        tx: &dyn ReadTx,
        space: &Space,
        asked: &Asked<'_>,
        mode: Mode,
        filter: &Filter,
    ) -> Result<ByText> {
        let wanted = asked.wanted();
        self.searcher
            .with(space, tx, asked.model.as_ref(), |index| {
                let mut limit = 4 * wanted;
                loop {
                    let hits = index.search(&Query {
                        text: &asked.query.text,
                        mode,
                        filter,
                        limit,
                        vector: asked.text_vector.as_deref(),
                    });
                    let n_passages = hits.len();
                    let mut nodes: HashMap<NodeId, f64> = HashMap::new();
                    for hit in hits {
                        let best = nodes.entry(hit.node).or_insert(hit.cosine);
                        *best = best.max(hit.cosine);
                    }
                    // A long document may have taken all the places.
                    if nodes.len() >= wanted || n_passages < limit {
                        return ByText {
                            hits: nodes.into_iter().collect(),
                            looked: Looked::sketched(index.is_sketched()),
                        };
                    }
                    limit *= 4;
                }
            })
    }

    /// The answer, as long as it may be.
    fn hits(
        &self,
        tx: &dyn ReadTx,
        space: &Space,
        asked: &Asked<'_>,
        ranked: Vec<Ranked>,
        remarks: &mut Vec<String>,
    ) -> Result<Vec<VectorHit>> {
        let n_ranked = ranked.len();
        let (mut hits, mut n_numbers, mut n_bytes, mut is_cut) = (Vec::new(), 0, 0, false);
        for it in ranked {
            let Some(node) = tx.node(it.node, When::Now)? else {
                continue;
            };
            let vector = if asked.query.include_vectors {
                self.numbers(tx, space, &node)?
            } else {
                None
            };
            let (metadata, was_cut) = shortened(metadata(&node));
            n_numbers += vector.as_ref().map_or(0, Vec::len);
            n_bytes += serde_json::to_string(&metadata).map_or(0, |it| it.len());
            if (n_numbers > NUMBERS_MAX || n_bytes > ANSWER_BYTES_MAX) && !hits.is_empty() {
                remarks.push(format!(
                    "the first {} of {n_ranked} results: more would be too long an answer; ask for \
                     fewer, or without `includeVectors`",
                    hits.len()
                ));
                break;
            }
            is_cut |= was_cut;
            hits.push(VectorHit {
                id: id_of(&node),
                namespace: place_of(&node).map(|it| it.0.to_owned()),
                score: it.score,
                keywords: it.keywords,
                metadata,
                vector,
            });
        }
        if is_cut {
            remarks.push("long metadata is shown in part".to_owned());
        }
        Ok(hits)
    }

    fn numbers(&self, tx: &dyn ReadTx, space: &Space, node: &Node) -> Result<Option<Vec<f32>>> {
        if node.kind == Kind::Vector {
            return numbers_of(tx, node);
        }
        let of_table = |index: &Index| index.table_vector(node.id);
        self.searcher.with(space, tx, None, of_table)
    }
}

struct ByText {
    hits: Vec<(NodeId, f64)>,
    looked: Looked,
}

/// A node in its place in the answer.
struct Ranked {
    node: NodeId,
    score: f64,
    keywords: Option<Keywords>,
}

impl Ranked {
    fn order(&self) -> f64 {
        self.keywords.map_or(self.score, |it| it.combined)
    }
}

/// Four digits: more would be noise.
fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// The candidates in the order of the answer.
fn ranked(tx: &dyn ReadTx, asked: &Asked<'_>, candidates: &Candidates) -> Result<Vec<Ranked>> {
    let words = words(&asked.query.text);
    let mut ranked = Vec::new();
    for (&node, &score) in &candidates.scores {
        if rounded(score) < asked.query.min_score {
            continue;
        }
        let keywords = if asked.query.hybrid {
            let node = tx.node(node, When::Now)?;
            let matched = node.map_or(0.0, |it| keyword_score(&it, &words));
            Some(Keywords {
                score: rounded(matched),
                combined: rounded(VECTOR_SHARE * score + (1.0 - VECTOR_SHARE) * matched),
            })
        } else {
            None
        };
        ranked.push(Ranked {
            node,
            score: rounded(score),
            keywords,
        });
    }
    // Unrounded among those that look equal, so that the nearest comes first.
    let exact = |it: &Ranked| candidates.scores.get(&it.node).copied().unwrap_or(0.0);
    ranked.sort_by(|a, b| {
        let by_order = b.order().total_cmp(&a.order());
        let by_exact = exact(b).total_cmp(&exact(a));
        by_order.then(by_exact).then(a.node.cmp(&b.node))
    });
    ranked.truncate(asked.query.limit);
    Ok(ranked)
}

/// The words of a query that count.
fn words(text: &str) -> Vec<String> {
    let words = text.split_whitespace().map(str::to_lowercase);
    words.filter(|it| it.chars().count() > SHORT_WORD).collect()
}

/// In how many of its fields a node has how many of the words, from 0 to 1: the contract's formula.
fn keyword_score(node: &Node, words: &[String]) -> f64 {
    if words.is_empty() {
        return 0.0;
    }
    let own = node.props.get("metadata").and_then(Value::as_object);
    let own = own.unwrap_or(&node.props);
    let tags = own.get("tags").and_then(Value::as_array);
    let tags: Vec<&str> = tags
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let fields: [String; KEYWORD_FIELDS] = [
        node.title.to_lowercase(),
        node.body.to_lowercase(),
        text_prop(own, "description")
            .unwrap_or_default()
            .to_lowercase(),
        tags.join(" ").to_lowercase(),
    ];
    let matches = fields
        .iter()
        .flat_map(|field| words.iter().map(move |word| field.contains(word.as_str())));
    let n_matches = matches.filter(|it| *it).count();
    n_matches as f64 / (words.len() * KEYWORD_FIELDS) as f64
}

/// Asks the database's own index, for as many as a filter needs.
fn near_by_floor(
    tx: &dyn ReadTx,
    collection: &str,
    vector: &[f32],
    asked: &Asked<'_>,
    found: &mut Candidates,
) -> Result<()> {
    let wanted = asked.wanted();
    let mut fetched = if asked.facets.is_empty() {
        wanted
    } else {
        8 * wanted
    };
    loop {
        let nearest = tx.nearest(collection, vector, fetched)?;
        let mut admitted = Vec::new();
        for near in &nearest.hits {
            if asked.facets.is_empty() || has_facets(tx, collection, &near.id, &asked.facets)? {
                admitted.push(near);
            }
            if admitted.len() == wanted {
                break;
            }
        }
        let is_all = nearest.hits.len() < fetched;
        if admitted.len() == wanted || is_all || fetched >= LOOKED_THROUGH_MAX {
            let looked = match nearest.index {
                IndexKind::Exact => Looked::Exact,
                IndexKind::Hnsw => Looked::Hnsw,
            };
            found.looked = found.looked.max(looked);
            if admitted.len() < wanted && !is_all {
                found.remarks.push(format!(
                    "only the {fetched} nearest were looked through for what the filter admits"
                ));
            }
            for near in admitted {
                if let Ok(node) = near.id.parse() {
                    found.add(node, near.similarity);
                }
            }
            return Ok(());
        }
        fetched = (8 * fetched).min(LOOKED_THROUGH_MAX);
    }
}

fn has_facets(tx: &dyn ReadTx, collection: &str, id: &str, wanted: &[u64]) -> Result<bool> {
    let row = tx.vector(collection, id)?;
    let facets = row.map(|it| row_facets(&it.props)).unwrap_or_default();
    Ok(wanted.iter().all(|it| facets.contains(it)))
}

fn stored_vector(tx: &dyn ReadTx, node: NodeId) -> Result<Option<Vec<f32>>> {
    match tx.node(node, When::Now)? {
        Some(node) => numbers_of(tx, &node),
        None => Ok(None),
    }
}

fn numbers_of(tx: &dyn ReadTx, node: &Node) -> Result<Option<Vec<f32>>> {
    let Some((namespace, dimensions)) = place_of(node) else {
        return Ok(None);
    };
    let name = collection_name(namespace, dimensions);
    Ok(tx.vector(&name, &node.id.to_string())?.map(|it| it.numbers))
}

/// The name that an answer gives a node.
fn id_of(node: &Node) -> String {
    let name = match node.kind {
        Kind::Vector => text_prop(&node.props, "id"),
        _ => text_prop(&node.props, "docId"),
    };
    name.unwrap_or_else(|| path_of(node)).to_owned()
}

/// Where a document is, in the root that its key begins with.
fn path_of(node: &Node) -> &str {
    let root = roots::name_in_key(&node.key).map_or(0, |it| it.len() + 1);
    node.key.get(root..).unwrap_or(&node.key)
}

/// What belongs to a node.
fn metadata(node: &Node) -> Map<String, Value> {
    if let Some(Value::Object(own)) = node.props.get("metadata")
        && node.kind == Kind::Vector
    {
        return own.clone();
    }
    let prop = |name: &str| node.props.get(name).cloned();
    Map::from_iter([
        ("title".to_owned(), node.title.as_str().into()),
        ("type".to_owned(), prop("type").unwrap_or(Value::Null)),
        ("path".to_owned(), path_of(node).into()),
        (
            "tags".to_owned(),
            prop("tags").unwrap_or_else(|| Value::Array(Vec::new())),
        ),
    ])
}

/// As much of it as one result may show, and whether that is less than all.
fn shortened(metadata: Map<String, Value>) -> (Map<String, Value>, bool) {
    let (mut shown, mut n_bytes, mut is_cut) = (Map::new(), 0, false);
    for (name, value) in metadata {
        let value = match value {
            Value::String(text) if text.chars().count() > TEXT_CHARS_MAX => {
                is_cut = true;
                let beginning: String = text.chars().take(TEXT_CHARS_MAX).collect();
                Value::String(beginning + "…")
            }
            other => other,
        };
        n_bytes += name.len() + value.to_string().len();
        if n_bytes > METADATA_BYTES_MAX {
            return (shown, true);
        }
        shown.insert(name, value);
    }
    (shown, is_cut)
}
