//! Corners in which two floors once gave two answers.

use super::{edge, node, put, space};
use crate::{EdgeFilter, Store, When};
use serde_json::json;

/// Looks into every corner.
pub(super) fn run(store: &Store) {
    every_number_survives(store);
}

/// A number that is read back in its last digit differently no longer has the hash that was signed.
fn every_number_survives(store: &Store) {
    let here = space("numbers");
    let mut it = node(1, "n", "b", 10);
    for (name, number) in [
        ("plain", 0.1 + 0.2),
        ("large", -4.104254305710331e269),
        ("small", 5.562684646268003e-309),
        ("zero", -0.0),
        ("most", f64::MAX),
    ] {
        it.props.insert(name.to_owned(), json!(number));
    }
    it.props.insert("count".to_owned(), json!(u64::MAX));
    it.hash = it.canonical_hash();
    put(store, &here, &it);
    let weights = [-4.104254305710331e269, 0.0, -0.0, f64::INFINITY];
    for (n, weight) in (2..).zip(weights) {
        let edge = edge(1, "r", n, weight, 10);
        store.write(&here, move |tx| tx.put_edge(&edge)).unwrap();
    }
    store
        .read(&here, |tx| {
            let stored = tx.node(it.id, When::Now)?.unwrap();
            assert_eq!(stored, it);
            assert_eq!(stored.canonical_hash(), it.hash);
            let edges = tx.edges(&EdgeFilter::default(), When::Now, 9)?;
            assert_eq!(edges.len(), weights.len());
            for edge in edges {
                assert_eq!(edge.canonical_hash(), edge.hash, "{edge:?}");
            }
            Ok(())
        })
        .unwrap();
}
