//! Data for a dashboard: pages of memories, edges and beliefs, the graph, counts, a search.

use super::{Memory, answered, call, pairs};
use crate::handler::{Asker, Slots, With, arguments_of_query, attended};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{Response, StatusCode};
use axum::routing::get;
use kenning_core::{Error, Result};
use kenning_engine::omi::{GraphEdge, Memory as OneMemory, MemoryAccess, MemoryGraph, MemoryType};
use kenning_engine::{Caller, timestamp};
use kenning_tools::AnyTool;
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1_000;

/// At most this many central memories are named.
const CENTRAL: usize = 10;

type Queried = Result<Query<Vec<(String, String)>>, QueryRejection>;

pub(super) fn routes() -> Router<With<Memory>> {
    Router::new()
        .route("/api/v1/dashboard/memories", get(memories))
        .route("/api/v1/dashboard/edges", get(edges))
        .route("/api/v1/dashboard/beliefs", get(beliefs))
        .route("/api/v1/dashboard/graph", get(graph))
        .route("/api/v1/dashboard/stats", get(stats))
        .route("/api/v1/dashboard/search", get(search))
        .route("/api/v1/dashboard/health", get(super::health))
}

/// A page of a list, and its order.
#[derive(Debug, PartialEq)]
struct Page {
    limit: usize,
    offset: usize,
    order_by: String,
    descending: bool,
    /// The filters of the query.
    filters: BTreeMap<String, String>,
}

impl Page {
    /// The first of `orders` is the default. Every other name in the query is refused.
    fn of(query: Vec<(String, String)>, orders: &[&str], filters: &[&str]) -> Result<Self> {
        let mut page = Self {
            limit: LIMIT_DEFAULT,
            offset: 0,
            order_by: orders[0].to_owned(),
            descending: true,
            filters: BTreeMap::new(),
        };
        for (name, text) in query {
            match name.as_str() {
                "limit" => page.limit = count("limit", &text, 1, LIMIT_MAX)?,
                "offset" => page.offset = count("offset", &text, 0, usize::MAX)?,
                "order_by" => page.order_by = one_of("order_by", &text, orders)?,
                "order_dir" => {
                    page.descending =
                        one_of("order_dir", &text.to_lowercase(), &["asc", "desc"])? == "desc";
                }
                filter if filters.contains(&filter) => {
                    page.filters.insert(name, text);
                }
                _ => {
                    let shown: String = name.chars().take(100).collect();
                    let mut known = vec!["limit", "offset", "order_by", "order_dir"];
                    known.extend(filters);
                    return Err(Error::invalid(format!("unknown parameter `{shown}`"))
                        .hint(format!("takes {}", known.join(", "))));
                }
            }
        }
        Ok(page)
    }

    fn memory_type(&self) -> Result<Option<MemoryType>> {
        let given = self.filters.get("memory_type");
        given.map(|it| it.parse::<MemoryType>()).transpose()
    }

    /// The page, with the total number.
    fn cut<T>(
        &self,
        name: &str,
        mut all: Vec<T>,
        order: impl Fn(&str, &T, &T) -> Ordering,
        wire: impl Fn(&T) -> Value,
    ) -> Value {
        // Equal ones stay in the order of creation.
        all.sort_by(|a, b| {
            let order = order(&self.order_by, a, b);
            if self.descending {
                order.reverse()
            } else {
                order
            }
        });
        let part: Vec<Value> = all
            .iter()
            .skip(self.offset)
            .take(self.limit)
            .map(wire)
            .collect();
        json!({
            (name): part, "total": all.len(), "limit": self.limit, "offset": self.offset,
        })
    }
}

fn count(name: &str, text: &str, min: usize, max: usize) -> Result<usize> {
    let count = text.parse().ok().filter(|it| (min..=max).contains(it));
    count.ok_or_else(|| {
        let shown: String = text.chars().take(100).collect();
        let hint = if max == usize::MAX {
            format!("a whole number from {min}")
        } else {
            format!("a whole number from {min} to {max}")
        };
        Error::invalid(format!("`{name}`: `{shown}` is not a valid number")).hint(hint)
    })
}

fn one_of(name: &str, text: &str, words: &[&str]) -> Result<String> {
    if words.contains(&text) {
        return Ok(text.to_owned());
    }
    let shown: String = text.chars().take(100).collect();
    Err(Error::invalid(format!("`{name}`: `{shown}` is unknown"))
        .hint(format!("use one of {}", words.join(", "))))
}

/// A memory with how often it was read.
struct Listed {
    memory: OneMemory,
    access: MemoryAccess,
}

impl Listed {
    fn all(graph: MemoryGraph) -> Vec<Self> {
        let access = graph.access;
        let memories = graph.memories.into_iter();
        memories
            .map(|memory| Self {
                access: access.get(&memory.id).copied().unwrap_or_default(),
                memory,
            })
            .collect()
    }

    fn wire(&self) -> Value {
        let it = &self.memory;
        json!({
            "memory_id": it.id, "content": it.content, "memory_type": it.memory_type.as_str(),
            "confidence": it.confidence, "tags": it.tags, "created_at": timestamp(it.created_ms),
            "access_count": self.access.count, "last_accessed": self.access.last_ms.map(timestamp),
            "superseded_by": it.superseded_by,
        })
    }

    fn order(by: &str, a: &Self, b: &Self) -> Ordering {
        match by {
            "access_count" => a.access.count.cmp(&b.access.count),
            "last_accessed" => a.access.last_ms.cmp(&b.access.last_ms),
            "confidence" => {
                let of = |it: &Self| it.memory.confidence.unwrap_or(-1.0);
                of(a).total_cmp(&of(b))
            }
            "memory_type" => a
                .memory
                .memory_type
                .as_str()
                .cmp(b.memory.memory_type.as_str()),
            _ => a.memory.created_ms.cmp(&b.memory.created_ms),
        }
    }
}

const MEMORY_ORDERS: &[&str] = &[
    "created_at",
    "access_count",
    "last_accessed",
    "confidence",
    "memory_type",
];

fn wire_edge(it: &GraphEdge) -> Value {
    json!({
        "source_id": it.source, "target_id": it.target, "edge_type": it.relation,
        "strength": it.strength, "created_at": timestamp(it.created_ms),
    })
}

/// Answers a query from the whole graph.
async fn of_graph(
    memory: Memory,
    slots: &Slots,
    caller: Caller,
    shown: impl FnOnce(MemoryGraph) -> Value + Send + 'static,
) -> Result<Value> {
    let work = move |caller: &Caller| {
        let engine = memory.engine_as("memory_recall")?;
        let graph = engine.with_wait_limit(caller.waited, || engine.omi().memory_graph(caller));
        graph.map(shown)
    };
    attended(slots, caller, work).await?
}

async fn memories(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    query: Queried,
) -> Response<Body> {
    let listed = async {
        let page = Page::of(pairs(query)?, MEMORY_ORDERS, &["memory_type"])?;
        let memory_type = page.memory_type()?;
        let shown = move |graph| {
            let mut all = Listed::all(graph);
            all.retain(|it| memory_type.is_none_or(|wanted| it.memory.memory_type == wanted));
            page.cut("memories", all, Listed::order, Listed::wire)
        };
        of_graph(memory, &slots, caller, shown).await
    };
    answered(StatusCode::OK, listed.await)
}

async fn beliefs(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    query: Queried,
) -> Response<Body> {
    let listed = async {
        let orders = ["confidence", "created_at", "access_count", "last_accessed"];
        let page = Page::of(pairs(query)?, &orders, &[])?;
        let shown = move |graph: MemoryGraph| {
            let mut evidence: BTreeMap<String, (u64, u64)> = BTreeMap::new();
            for edge in &graph.edges {
                let counted = evidence.entry(edge.source.clone()).or_default();
                match edge.relation.as_str() {
                    "SUPPORTS" => counted.0 += 1,
                    "CONTRADICTS" => counted.1 += 1,
                    _ => {}
                }
            }
            let mut all = Listed::all(graph);
            all.retain(|it| it.memory.memory_type == MemoryType::Belief);
            page.cut("beliefs", all, Listed::order, |it| {
                let (supporting, contradicting) =
                    evidence.get(&it.memory.id).copied().unwrap_or_default();
                let mut shown = it.wire();
                shown["supporting"] = supporting.into();
                shown["contradicting"] = contradicting.into();
                shown
            })
        };
        of_graph(memory, &slots, caller, shown).await
    };
    answered(StatusCode::OK, listed.await)
}

async fn edges(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    query: Queried,
) -> Response<Body> {
    let listed = async {
        let orders = ["created_at", "strength", "edge_type"];
        let page = Page::of(pairs(query)?, &orders, &["edge_type"])?;
        let shown = move |graph: MemoryGraph| {
            let wanted = page.filters.get("edge_type");
            let mut all = graph.edges;
            all.retain(|it| wanted.is_none_or(|wanted| it.relation == *wanted));
            let order = |by: &str, a: &GraphEdge, b: &GraphEdge| match by {
                "strength" => a.strength.total_cmp(&b.strength),
                "edge_type" => a.relation.cmp(&b.relation),
                _ => a.created_ms.cmp(&b.created_ms),
            };
            page.cut("edges", all, order, wire_edge)
        };
        of_graph(memory, &slots, caller, shown).await
    };
    answered(StatusCode::OK, listed.await)
}

/// The memories of a page, and the edges between them.
async fn graph(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    query: Queried,
) -> Response<Body> {
    let listed = async {
        let page = Page::of(pairs(query)?, MEMORY_ORDERS, &["memory_type"])?;
        let memory_type = page.memory_type()?;
        let shown = move |mut graph: MemoryGraph| {
            let edges = std::mem::take(&mut graph.edges);
            let mut all = Listed::all(graph);
            all.retain(|it| memory_type.is_none_or(|wanted| it.memory.memory_type == wanted));
            let mut shown = page.cut("nodes", all, Listed::order, Listed::wire);
            let ids: std::collections::HashSet<&str> = shown["nodes"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|it| it["memory_id"].as_str())
                .collect();
            let between = edges
                .iter()
                .filter(|it| ids.contains(&*it.source) && ids.contains(&*it.target));
            let between: Vec<Value> = between.map(wire_edge).collect();
            shown["edges"] = between.into();
            shown
        };
        of_graph(memory, &slots, caller, shown).await
    };
    answered(StatusCode::OK, listed.await)
}

async fn stats(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
) -> Response<Body> {
    let work = move |caller: &Caller| {
        let engine = memory.engine_as("memory_recall")?;
        let (graph, central) = engine.with_wait_limit(caller.waited, || {
            let graph = engine.omi().memory_graph(caller)?;
            Ok::<_, kenning_core::Error>((graph, engine.omi().central_memories(caller, CENTRAL)?))
        })?;
        let events = engine.roots(caller)?.seq;
        let mut types: BTreeMap<&str, u64> = MemoryType::ALL.map(|it| (it.as_str(), 0)).into();
        for it in &graph.memories {
            *types.entry(it.memory_type.as_str()).or_default() += 1;
        }
        let mut relations: BTreeMap<&str, u64> = BTreeMap::new();
        for it in &graph.edges {
            *relations.entry(&it.relation).or_default() += 1;
        }
        let central: Vec<Value> = central
            .iter()
            .map(|it| json!({ "memory_id": it.memory.id, "centrality": it.centrality }))
            .collect();
        Ok(json!({
            "memory_count": graph.memories.len(), "edge_count": graph.edges.len(),
            "event_count": events, "type_distribution": types,
            "edge_distribution": relations, "most_central": central,
        }))
    };
    let counted = attended(&slots, caller, work).await.and_then(|it| it);
    answered(StatusCode::OK, counted)
}

/// `q` is the query's short name; the rest is as for recalling, but without a least relevance.
async fn search(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    query: Queried,
) -> Response<Body> {
    let found = async {
        let mut query = pairs(query)?;
        for pair in &mut query {
            if pair.0 == "q" {
                "query".clone_into(&mut pair.0);
            }
        }
        if !query.iter().any(|it| it.0 == "min_relevance") {
            query.push(("min_relevance".to_owned(), "0".to_owned()));
        }
        let tool = memory.board.find("memory_recall");
        let schema = tool.map(AnyTool::input_schema).unwrap_or_default();
        let arguments = arguments_of_query(query, &schema)?;
        let reply = call(memory, &slots, caller, "memory_recall", arguments).await?;
        let results = reply.to_json();
        let total = results.as_array().map_or(0, Vec::len);
        Ok(json!({ "results": results, "total": total }))
    };
    answered(StatusCode::OK, found.await)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &[(&str, &str)]) -> Result<Page> {
        let query = query.iter().map(|it| (it.0.to_owned(), it.1.to_owned()));
        Page::of(query.collect(), MEMORY_ORDERS, &["memory_type"])
    }

    #[test]
    fn a_page_is_within_its_bounds() {
        let first = page(&[]).unwrap();
        assert_eq!((first.limit, first.offset), (LIMIT_DEFAULT, 0));
        assert!(first.descending && first.order_by == "created_at");
        let other = page(&[("limit", "1000"), ("offset", "7"), ("order_dir", "ASC")]).unwrap();
        assert_eq!(
            (other.limit, other.offset, other.descending),
            (1_000, 7, false)
        );
        for (name, text) in [
            ("limit", "0"),
            ("limit", "1001"),
            ("limit", "-1"),
            ("limit", "ten"),
            ("limit", ""),
            ("offset", "-1"),
            ("offset", "1.5"),
            ("order_by", "content; DROP TABLE"),
            ("order_dir", "up"),
            ("page", "1"),
        ] {
            let error = page(&[(name, text)]).unwrap_err();
            assert!(error.message.contains(name), "{name}={text}: {error}");
            assert!(error.hint.is_some(), "{name}={text}");
        }
    }

    #[test]
    fn parts_of_a_list_together_are_the_list() {
        let all: Vec<u32> = (0..10).collect();
        let mut seen = Vec::new();
        for offset in ["0", "4", "8", "12"] {
            let page = page(&[("limit", "4"), ("offset", offset)]).unwrap();
            let part = page.cut("n", all.clone(), |_, a, b| a.cmp(b), |it| json!(it));
            assert_eq!(part["total"], 10);
            let part = part["n"].as_array().unwrap().clone();
            seen.extend(part.into_iter().filter_map(|it| it.as_u64()));
        }
        assert_eq!(seen, (0..10).rev().collect::<Vec<u64>>());
    }
}
