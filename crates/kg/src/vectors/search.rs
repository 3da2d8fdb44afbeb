//! Finding vectors: by a vector, or by a text together with the documents.

use super::answer::{numbers_of, ranked};
use super::database_index::near_by_database;
use super::query::{Asked, Candidates, FoundVectors, Looked, VectorQuery};
use super::{NAMESPACE_DOCUMENTS, VectorNamespace, namespaces, total};
use crate::Kg;
use kenning_core::{Kind, NodeId, Result, Space};
use kenning_kernel::search::{Wanted, policy};
use kenning_kernel::{Caller, Scope};
use kenning_search::{Filter, Mode, Near, collection_name, cosine, tokens};
use kenning_store::{ReadTx, When};
use std::collections::HashMap;
use std::sync::LazyLock;

/// From this size on a database's own index is used: the collection would take too much memory here.
const CALLER_SCAN_MAX: u64 = 1_000_000;

static THREADS: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

impl Kg {
    /// The vectors and documents most similar to a text or a vector, best first.
    pub fn search_vectors(&self, caller: &Caller, query: &VectorQuery) -> Result<FoundVectors> {
        caller.principal.require(Scope::Read)?;
        let mut asked = Asked::of(query)?;
        let mut remarks = Vec::new();
        let by_text = query.vector.is_none() || query.hybrid;
        if by_text && !query.text.trim().is_empty() {
            asked.question = self.kernel.question(&query.text);
            remarks.extend(asked.question.remark().map(ToOwned::to_owned));
        }
        let space = &caller.principal.space;
        self.kernel.log().read(space, |tx| {
            let candidates = match &query.vector {
                Some(vector) => self.near_vector(tx, space, &asked, vector)?,
                None => self.near_text(tx, caller, &asked)?,
            };
            remarks.extend(candidates.remarks.iter().cloned());
            let ranked = ranked(tx, &asked, &candidates)?;
            let n_left = ranked.len().saturating_sub(query.skip);
            let hits = self.hits(tx, space, &asked, ranked, &mut remarks)?;
            Ok(FoundVectors {
                has_more: hits.len() < n_left,
                hits,
                total: total(tx)?,
                index: candidates.looked.as_str(),
                remarks,
            })
        })
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
            // What has the words but is not near is ranked too.
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
        if self.kernel.is_shared() && place.vectors > CALLER_SCAN_MAX {
            return near_by_database(tx, &name, vector, asked, found);
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
            .kernel
            .collections()
            .with(space, tx, &name, place.dimensions, work)?;
        found.looked = found.looked.max(Looked::sketched(near.sketched));
        for it in near.nearest {
            found.add(it.node, it.cosine);
        }
        Ok(())
    }

    /// Documents and callers' vectors that have a text.
    fn near_text(&self, tx: &dyn ReadTx, caller: &Caller, asked: &Asked<'_>) -> Result<Candidates> {
        let mut found = Candidates::default();
        if tokens(&asked.query.text).is_empty() {
            return Ok(found);
        }
        let space = &caller.principal.space;
        let mut filters = vec![self.callers_filter(tx, space, asked)?];
        // Documents do not have the metadata of callers.
        if asked.query.filter.is_empty() && asked.is_of_namespace(NAMESPACE_DOCUMENTS) {
            let mut documents = self.document_filter(None, None);
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

    /// The filter for callers' vectors in a search by text.
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
                    let collections = self.kernel.collections();
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
        let filters = std::slice::from_ref(filter);
        self.kernel.search(space, tx, &asked.question, |search| {
            let mut limit = wanted;
            loop {
                let found = search.find(&Wanted {
                    mode,
                    ..Wanted::new(&policy::CANDIDATES, filters, limit, 0)
                })?;
                let mut nodes: HashMap<NodeId, f64> = HashMap::new();
                for hit in found.hits {
                    let best = nodes.entry(hit.node).or_insert(hit.cosine);
                    *best = best.max(hit.cosine);
                }
                // A long document may have taken all the places.
                if nodes.len() >= wanted || found.n_ranked < policy::CANDIDATES.passages(limit) {
                    return Ok(ByText {
                        hits: nodes.into_iter().collect(),
                        looked: Looked::sketched(search.is_sketched()),
                    });
                }
                limit *= 4;
            }
        })?
    }
}

struct ByText {
    hits: Vec<(NodeId, f64)>,
    looked: Looked,
}

fn stored_vector(tx: &dyn ReadTx, node: NodeId) -> Result<Option<Vec<f32>>> {
    match tx.node(node, When::Now)? {
        Some(node) => numbers_of(tx, &node),
        None => Ok(None),
    }
}
