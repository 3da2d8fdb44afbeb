//! Entities that are mentioned together.

use super::view::{EntityView, view};
use super::{MENTIONS, kind};
use crate::Koi;
use kenning_core::{Code, Kind, NodeId, Result};
use kenning_kernel::{Caller, Scope};
use kenning_store::{EdgeFilter, ReadTx, When};
use std::collections::{BTreeMap, BTreeSet};

/// At most this many documents that mention an entity, and this many mentions in each, are read.
const DOCUMENTS_MAX: usize = 500;

/// An entity that is mentioned together with the named ones.
#[derive(Clone, Debug, PartialEq)]
pub struct InCompany {
    /// The entity.
    pub entity: EntityView,
    /// The documents.
    pub documents: Vec<String>,
}

/// Entities that are mentioned together with others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Company {
    /// The most frequent first.
    pub found: Vec<InCompany>,
    /// The documents that mention the named entities.
    pub documents: Vec<String>,
    /// The names that some document mentions.
    pub known: Vec<String>,
}

impl Koi {
    /// The entities that are mentioned in the documents that mention one of these names. Unknown
    /// names are ignored; `types` are the wanted ones, none meaning all; `except` is a document that
    /// does not count.
    pub fn entities_in_company(
        &self,
        caller: &Caller,
        names: &[String],
        types: &[String],
        except: Option<&str>,
    ) -> Result<Company> {
        caller.principal.require(Scope::Read)?;
        self.follow_entities(caller)?;
        let space = &caller.principal.space;
        self.read_naming(space, |tx, meanings| {
            let ontology = self.ontology(space, tx)?;
            let key = |it: &String| ontology.kind(it).map_or(it.clone(), |it| it.key.clone());
            let types: BTreeSet<String> = types.iter().map(key).collect();
            let mut company = Company::default();
            let mut documents: BTreeMap<NodeId, String> = BTreeMap::new();
            let mut named = BTreeSet::new();
            for name in names {
                let node = match self.entity_in(space, tx, meanings, name) {
                    Ok(node) => node,
                    Err(error) if error.code == Code::NotFound => None,
                    Err(error) => return Err(error),
                };
                let Some(node) = node else { continue };
                named.insert(node.id);
                let into = EdgeFilter {
                    dst: Some(node.id),
                    rel: Some(MENTIONS.to_owned()),
                    ..EdgeFilter::default()
                };
                let mut is_mentioned = false;
                for edge in tx.edges(&into, When::Now, DOCUMENTS_MAX)? {
                    let document = tx.node(edge.src, When::Now)?;
                    let key = document.map(|it| it.key);
                    if let Some(key) = key.filter(|it| Some(it.as_str()) != except) {
                        documents.insert(edge.src, key);
                        is_mentioned = true;
                    }
                }
                if is_mentioned {
                    company.known.push(name.clone());
                }
            }
            let mut found: BTreeMap<NodeId, Vec<String>> = BTreeMap::new();
            for (id, key) in &documents {
                for other in mentioned(tx, *id)?.difference(&named) {
                    found.entry(*other).or_default().push(key.clone());
                }
            }
            for (id, documents) in found {
                let node = tx.node(id, When::Now)?;
                let is_wanted = |it: &kenning_store::Node| {
                    it.kind == Kind::Entity && (types.is_empty() || types.contains(kind(it)))
                };
                company
                    .found
                    .extend(node.filter(is_wanted).map(|it| InCompany {
                        entity: view(&it),
                        documents,
                    }));
            }
            let often = |it: &InCompany| std::cmp::Reverse(it.documents.len());
            company.found.sort_by(|a, b| {
                often(a)
                    .cmp(&often(b))
                    .then_with(|| a.entity.uri.cmp(&b.entity.uri))
            });
            company.documents = documents.into_values().collect();
            company.documents.sort();
            Ok(company)
        })
    }
}

fn mentioned(tx: &dyn ReadTx, document: NodeId) -> Result<BTreeSet<NodeId>> {
    let from = EdgeFilter {
        src: Some(document),
        rel: Some(MENTIONS.to_owned()),
        ..EdgeFilter::default()
    };
    let edges = tx.edges(&from, When::Now, DOCUMENTS_MAX)?;
    Ok(edges.into_iter().map(|it| it.dst).collect())
}
