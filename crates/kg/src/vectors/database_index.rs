//! Collections that are too large for memory: the database's own index.

use super::query::{Asked, Candidates, Looked};
use kenning_core::Result;
use kenning_search::row_facets;
use kenning_store::{IndexKind, ReadTx};

/// At most this many of the nearest are checked against a filter.
const LOOKED_THROUGH_MAX: usize = 20_000;

/// Asks the database's own index, for as many as a filter needs.
pub(super) fn near_by_database(
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

#[cfg(test)]
mod tests {
    use super::super::query::VectorQuery;
    use super::*;
    use crate::{Kg, NewVector, VaultForm};
    use jiff::tz::TimeZone;
    use kenning_core::{FixedClock, SeededRandom, Space};
    use kenning_kernel::{Caller, Forms, Hooks, Kernel, Options, PlainForm, Principal};
    use kenning_store::Store;
    use kenning_store_sqlite::Sqlite;
    use kenning_vault::Dir;
    use serde_json::json;
    use std::sync::Arc;

    fn wing(root: &std::path::Path) -> Kg {
        let data = Dir::create(root).unwrap();
        let options = Options {
            store: Store::new(Sqlite::open(data.path()).unwrap()),
            data,
            vault: None,
            omi: None,
            project: None,
            space: Space::default(),
            clock: Arc::new(FixedClock::at(1_800_000_000_000)),
            zone: TimeZone::UTC,
            random: Arc::new(SeededRandom::new(7)),
            environment: Arc::new(|_| None),
            shared: false,
            read_only: false,
            hooks: Hooks {
                forms: Forms {
                    vault: &VaultForm,
                    omi: &PlainForm,
                },
                passages_of: crate::passages_of,
                hold: |_, _| Ok(()),
                merged: |_, _| Ok(()),
            },
        };
        Kg::new(Arc::new(Kernel::open(options).unwrap()))
    }

    #[test]
    fn the_floor_is_asked_for_more_until_the_filter_has_enough() {
        let folder = tempfile::tempdir().unwrap();
        let kg = wing(folder.path());
        let caller = Caller::new(Principal::owner(Space::default()));
        // The angle grows, and the rare ones are the farthest.
        let new = (0..600_u16).map(|i| {
            let angle = f32::from(i) / 600.0;
            let metadata = json!({ "type": if i >= 590 { "guide" } else { "concept" } });
            NewVector {
                id: i.to_string(),
                numbers: vec![angle.cos(), angle.sin()],
                metadata: metadata.as_object().cloned().unwrap_or_default(),
                ..NewVector::default()
            }
        });
        kg.upsert_vectors(&caller, new.collect()).unwrap();
        for (node_type, limit) in [
            (Some("guide"), 5),
            (Some("guide"), 50),
            (None, 7),
            (Some("service"), 3),
        ] {
            let query = VectorQuery {
                vector: Some(vec![1.0, 0.0]),
                node_type: node_type.map(str::to_owned),
                limit,
                ..VectorQuery::default()
            };
            let by_scan = kg.search_vectors(&caller, &query).unwrap();
            let by_scan: Vec<f64> = by_scan.hits.iter().map(|it| it.score).collect();
            let asked = Asked::of(&query).unwrap();
            let mut found = Candidates::default();
            kg.kernel
                .log()
                .read(&Space::default(), |tx| {
                    near_by_database(tx, "kg/2/default", &[1.0, 0.0], &asked, &mut found)
                })
                .unwrap();
            let mut by_floor: Vec<f64> = found.scores.values().copied().collect();
            by_floor.sort_by(|a, b| b.total_cmp(a));
            assert_eq!(by_floor.len(), by_scan.len(), "{node_type:?} {limit}");
            for (a, b) in by_floor.iter().zip(&by_scan) {
                assert!((a - b).abs() < 1e-4, "{node_type:?} {limit}");
            }
            assert!(found.remarks.is_empty());
        }
    }
}
