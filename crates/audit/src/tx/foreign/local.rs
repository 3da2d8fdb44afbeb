//! Which events concern only the node that wrote them.

use super::{SYNC_APPLIED, erasures};

/// Whether events of this kind say what one node does for itself: they are not sent to others.
pub fn is_local_kind(kind: &str) -> bool {
    const LOCAL: &[&str] = &[
        SYNC_APPLIED,
        erasures::ERASED_FOR_PEER,
        "SyncStarted",
        "SyncCompleted",
        "ConflictDetected",
        "LogUpgraded",
        // The graph of entities follows from statements, on every node.
        "EntityAdded",
        "EntityChanged",
        "EntityRemoved",
        "EntitiesLinked",
    ];
    LOCAL.contains(&kind)
        || ["Checkpoint", "Peer", "Token", "AgentKey"]
            .iter()
            .any(|it| kind.starts_with(it))
}
