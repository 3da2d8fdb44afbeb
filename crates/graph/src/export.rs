//! A graph in the formats of others, and as a page to look at.
//!
//! Titles and paths come from anywhere, so each format escapes what it must, and what a format cannot hold
//! at all is replaced. Edges whose ends are not in the picture are left out of all of them.

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

/// What is shown of a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// Its documents.
    pub nodes: Vec<PictureNode>,
    /// What relates them.
    pub edges: Vec<PictureEdge>,
}

/// A document in a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureNode {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it is about.
    pub doc_type: DocType,
    /// How far it can be relied on.
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

/// An edge in a picture.
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
    /// Edges with the places of their ends among the nodes.
    fn joined(&self) -> Vec<(usize, usize, &PictureEdge)> {
        let places = self.nodes.iter().enumerate();
        let places: HashMap<&str, usize> = places.map(|(at, it)| (&*it.id, at)).collect();
        let joined = self.edges.iter().filter_map(|it| {
            let (from, to) = (places.get(&*it.source)?, places.get(&*it.target)?);
            Some((*from, *to, it))
        });
        joined.collect()
    }
}

/// The picture as `{"nodes": […], "edges": […]}`.
#[must_use]
pub fn json(picture: &Picture) -> Value {
    let nodes = picture.nodes.iter().map(|it| {
        json!({
            "id": it.id,
            "title": it.title,
            "type": it.doc_type.as_str(),
            "status": it.status.as_str(),
            "tags": it.tags,
            "path": it.path,
            "rank": it.rank,
            "community": it.community,
            "words": it.words,
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
