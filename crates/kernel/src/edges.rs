//! Derived edges: corrected to what they should be, whatever was there before.
//!
//! Each domain crate marks its edges with its name, so that none ends those of another.

use kenning_audit::{EdgeDraft, Tx};
use kenning_core::{NodeId, Result};
use kenning_store::{Edge, EdgeFilter, When};
use serde_json::Value;
use std::collections::HashMap;

/// The property that marks the owner of an edge.
pub const BY: &str = "by";

/// How many edges are new, and how many ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    pub added: usize,
    pub ended: usize,
}

impl Written {
    pub fn is_any(self) -> bool {
        self.added + self.ended > 0
    }
}

/// Makes the edges from a node that belong to this owner exactly those that are wanted.
pub fn reconcile(
    tx: &mut Tx<'_>,
    node: NodeId,
    by: &str,
    wanted: Vec<EdgeDraft>,
    written: &mut Written,
) -> Result<()> {
    let filter = EdgeFilter {
        src: Some(node),
        ..EdgeFilter::default()
    };
    let mut there: HashMap<(String, NodeId), Edge> = HashMap::new();
    for edge in tx.edges(&filter, When::Now, usize::MAX)? {
        there.insert((edge.rel.clone(), edge.dst), edge);
    }
    // If two have equal ends, the last one counts.
    let mut wanted_once: HashMap<(String, NodeId), EdgeDraft> = HashMap::new();
    let mut order = Vec::new();
    for draft in wanted {
        let key = (draft.rel.clone(), draft.dst);
        if wanted_once.insert(key.clone(), draft).is_none() {
            order.push(key);
        }
    }
    for key in order {
        let Some(draft) = wanted_once.remove(&key) else {
            continue;
        };
        let before = there.remove(&key);
        if before.as_ref().is_some_and(|it| it.props == draft.props) {
            continue;
        }
        written.added += 1;
        tx.put_edge_over(draft, before)?;
    }
    there.retain(|_, it| it.props.get(BY).and_then(Value::as_str) == Some(by));
    for (relation, to) in there.into_keys() {
        written.ended += 1;
        tx.end_edge(node, &relation, to)?;
    }
    Ok(())
}
