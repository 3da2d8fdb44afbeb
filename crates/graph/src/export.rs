//! A graph in the formats of other programs, and as an HTML page.
//!
//! Titles and paths come from anywhere, so each format escapes what it must and replaces what it
//! cannot hold. Edges whose ends are not exported are left out.

mod canvas;
mod dot;
mod graphml;
mod html;

use crate::{DocType, Status};
use serde_json::{Value, json};
use std::collections::HashMap;

pub use canvas::canvas;
pub use dot::dot;
pub use graphml::graphml;
pub use html::html;

/// The part of a graph that is exported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// Its documents.
    pub nodes: Vec<PictureNode>,
    /// The edges between them.
    pub edges: Vec<PictureEdge>,
}

/// An exported document.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureNode {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it is about.
    pub doc_type: DocType,
    /// Its status.
    pub status: Status,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its path from the project's root.
    pub path: String,
    /// How much leads to it: see [`crate::analysis::Graph::page_rank`].
    pub rank: f64,
    /// Its community, from 0.
    pub community: u32,
    /// Words of its content.
    pub words: u64,
}

/// An exported edge.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureEdge {
    /// The id of the document that it leads from.
    pub source: String,
    /// The id of the document that it leads to.
    pub target: String,
    /// What relates them.
    pub relation: String,
    /// How much it counts.
    pub weight: f64,
    /// What the reader of the link sees.
    pub text: String,
}

impl Picture {
    /// Edges with the indexes of their ends.
    fn joined(&self) -> Vec<(usize, usize, &PictureEdge)> {
        let places = self.nodes.iter().enumerate();
        let places: HashMap<&str, usize> = places.map(|(at, it)| (&*it.id, at)).collect();
        let joined = self.edges.iter().filter_map(|edge| {
            let (from, to) = (places.get(&*edge.source)?, places.get(&*edge.target)?);
            Some((*from, *to, edge))
        });
        joined.collect()
    }
}

/// The export as `{"nodes": […], "edges": […]}`.
#[must_use]
pub fn json(picture: &Picture) -> Value {
    let nodes = picture.nodes.iter().map(|node| {
        json!({
            "id": node.id,
            "title": node.title,
            "type": node.doc_type.as_str(),
            "status": node.status.as_str(),
            "tags": node.tags,
            "path": node.path,
            "rank": node.rank,
            "community": node.community,
            "words": node.words,
        })
    });
    let edges = picture.joined().into_iter().map(|(_, _, it)| {
        json!({
            "source": it.source,
            "target": it.target,
            "relation": it.relation,
            "weight": it.weight,
            "text": it.text,
        })
    });
    json!({ "nodes": nodes.collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>() })
}
