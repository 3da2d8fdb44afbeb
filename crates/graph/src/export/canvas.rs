//! JSON Canvas 1.0, which Obsidian and others open.
//!
//! Every community is a square of cards, the highest rank first, and the squares stand in rows, the largest
//! first: no two cards overlap, however many there are.

use super::Picture;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;

const WIDTH: usize = 320;
const HEIGHT: usize = 160;
const GAP: usize = 60;
/// Between communities.
const MARGIN: usize = 320;
/// Colors that the format numbers.
const N_COLORS: u32 = 6;

/// The export as a canvas: a card with its file for every document, and arrows for edges.
#[must_use]
pub fn canvas(picture: &Picture) -> Value {
    let places = places(picture);
    let nodes = picture.nodes.iter().zip(&places).map(|(it, (x, y))| {
        json!({
            "id": it.id,
            "type": "file",
            "file": it.path,
            "x": x,
            "y": y,
            "width": WIDTH,
            "height": HEIGHT,
            "color": (it.community % N_COLORS + 1).to_string(),
        })
    });
    let edges = picture.joined().into_iter().enumerate();
    let edges = edges.map(|(at, (_, _, it))| {
        let mut edge = json!({
            "id": format!("edge-{at}"),
            "fromNode": it.source,
            "toNode": it.target,
            "toEnd": "arrow",
        });
        if it.relation != "link" {
            edge["label"] = json!(it.relation);
        }
        edge
    });
    json!({ "nodes": nodes.collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>() })
}

/// The upper left corner of each card.
fn places(picture: &Picture) -> Vec<(usize, usize)> {
    let mut communities: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, it) in picture.nodes.iter().enumerate() {
        communities.entry(it.community).or_default().push(at);
    }
    let mut communities: Vec<Vec<usize>> = communities.into_values().collect();
    for members in &mut communities {
        let rank = |at: usize| picture.nodes[at].rank;
        members.sort_by(|a, b| rank(*b).total_cmp(&rank(*a)).then(a.cmp(b)));
    }
    communities.sort_by_key(|it| Reverse(it.len()));
    let row_max = side(picture.nodes.len()) * (WIDTH + GAP) * 3 / 2 + MARGIN;
    let mut places = vec![(0, 0); picture.nodes.len()];
    let (mut left, mut top, mut row_height) = (0, 0, 0);
    for members in communities {
        let n_columns = side(members.len());
        let width = n_columns * (WIDTH + GAP);
        let height = members.len().div_ceil(n_columns) * (HEIGHT + GAP);
        if left > 0 && left + width > row_max {
            top += row_height + MARGIN;
            (left, row_height) = (0, 0);
        }
        for (at, node) in members.into_iter().enumerate() {
            let column = at % n_columns;
            let row = at / n_columns;
            places[node] = (left + column * (WIDTH + GAP), top + row * (HEIGHT + GAP));
        }
        left += width + MARGIN;
        row_height = row_height.max(height);
    }
    places
}

/// The columns of a square of `n` cards.
fn side(n: usize) -> usize {
    let root = n.isqrt();
    if root * root < n { root + 1 } else { root }.max(1)
}
