//! Compares the head, the subtree roots, nodes and edges with what the events say.

use super::{Replay, Report, Told, collect};
use crate::identity::Identity;
use kenning_core::Hlc;
use kenning_store::{Edge, HeadRow, Node, ReadTx, Row, Table};

pub(super) fn check_head(tx: &dyn ReadTx, replay: &Replay, report: &mut Report) {
    let expected = (replay.frontier.size > 0).then(|| HeadRow {
        seq: replay.frontier.size,
        hlc: replay.latest,
        tips: replay.tips.iter().copied().collect(),
        frontier: replay.frontier.roots.clone(),
        state: replay.state.to_bytes(),
        log: replay
            .identity
            .as_ref()
            .map(Identity::to_bytes)
            .unwrap_or_default(),
    });
    match tx.head() {
        Ok(mut head) => {
            if let Some(head) = &mut head {
                head.tips.sort_unstable();
            }
            if head != expected {
                report.fault("the head does not match the events".to_owned());
            }
        }
        Err(error) => report.fault(format!("the head: {}", error.message)),
    }
}

pub(super) fn check_tiles(tx: &dyn ReadTx, replay: &mut Replay, report: &mut Report) {
    let mut stored = Vec::new();
    collect(tx, Table::Tiles, report, |row| {
        if let Row::Tile(tile) = row {
            stored.push(tile);
        }
    });
    for tile in stored {
        if replay.tiles.remove(&(tile.level, tile.index)) != Some(tile.hash) {
            report.fault(format!(
                "subtree {}/{} does not match",
                tile.level, tile.index
            ));
        }
    }
    if !replay.tiles.is_empty() {
        report.fault(format!("{} subtrees are missing", replay.tiles.len()));
    }
}

pub(super) fn check_nodes(tx: &dyn ReadTx, replay: &mut Replay, report: &mut Report) {
    let mut faults = Vec::new();
    let mut count = 0;
    let matches = |node: &Node, told: &Told| {
        node.canonical_hash() == node.hash
            && (node.hash, node.rev) == (told.hash, told.rev)
            && (node.created, node.updated) == (told.created, told.from)
    };
    collect(tx, Table::Nodes, report, |row| {
        let Row::Node(node) = row else { return };
        count += 1;
        match replay.nodes.remove(&node.id) {
            Some(told) if matches(&node, &told) => {}
            Some(_) => faults.push(format!("node {} does not match its event", node.id)),
            None => faults.push(format!("node {} has no event", node.id)),
        }
    });
    report.n_nodes = count;
    for id in replay.nodes.keys() {
        faults.push(format!("node {id} is missing"));
    }
    let mut count = 0;
    collect(tx, Table::History, report, |row| {
        let Row::History(node, ended) = row else {
            return;
        };
        count += 1;
        match replay.superseded.remove(&(node.id, node.rev)) {
            Some((told, end)) if matches(&node, &told) && end == ended => {}
            Some(_) => {
                faults.push(format!(
                    "revision {} of node {} does not match",
                    node.rev, node.id
                ));
            }
            None => faults.push(format!(
                "revision {} of node {} has no event",
                node.rev, node.id
            )),
        }
    });
    report.n_history = count;
    for (id, rev) in replay.superseded.keys() {
        faults.push(format!("revision {rev} of node {id} is missing"));
    }
    faults.into_iter().for_each(|fault| report.fault(fault));
}

pub(super) fn check_edges(tx: &dyn ReadTx, replay: &mut Replay, report: &mut Report) {
    let mut faults = Vec::new();
    let mut count = 0;
    collect(tx, Table::Edges, report, |row| {
        let Row::Edge(edge) = row else { return };
        count += 1;
        let name = format!("edge {} -{}-> {}", edge.src, edge.rel, edge.dst);
        if !edge_matches(&edge, replay) {
            faults.push(format!("{name} does not match its event"));
        }
    });
    report.n_edges = count;
    if !replay.edges.is_empty() || !replay.ended.is_empty() {
        faults.push(format!(
            "{} edges are missing",
            replay.edges.len() + replay.ended.len()
        ));
    }
    faults.into_iter().for_each(|fault| report.fault(fault));
}

/// Removes the edge from the replayed ones, so that the rest is missing.
fn edge_matches(edge: &Edge, replay: &mut Replay) -> bool {
    let key = (edge.src, edge.rel.clone(), edge.dst);
    let told = if edge.to == Hlc::MAX {
        replay
            .edges
            .remove(&key)
            .map(|edge| (edge.hash, edge.from, Hlc::MAX))
    } else {
        replay
            .ended
            .remove(&(key, edge.from))
            .map(|(hash, to)| (hash, edge.from, to))
    };
    edge.canonical_hash() == edge.hash && told == Some((edge.hash, edge.from, edge.to))
}
