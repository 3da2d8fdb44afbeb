//! What is found: judged collections, through `memory_recall` itself on a real store.
//!
//! All memories have one timestamp and nothing is cut off by relevance, so that the order is the
//! search's. `KENNING_TEST_FLOOR=postgres` measures the other floor.

use super::collection::{self, Collection, judge};
use crate::options::Options;
use anyhow::{Context as _, Result, ensure};
use kenning_engine::{Mode, NewMemory, Recall};
use kenning_search::{Filter, Index, Query, passages};
use kenning_store::Node;
use kenning_testing::House;
use serde_json::json;
use std::path::Path;

/// Memories that are stored with one call.
const BATCH: usize = 500;

/// Judged answers of a question whose relevance is looked at.
const PAIRS_MAX: usize = 5;

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["collection", "off-topic"])?;
    let folders = options
        .text("collection")
        .context("which `--collection DIR`?")?;
    let foreign = match options.text("off-topic") {
        None => Vec::new(),
        Some(path) => collection::read(Path::new(path))?
            .lines()
            .map(str::to_owned)
            .filter(|it| !it.trim().is_empty())
            .collect(),
    };
    for folder in folders.split(',') {
        let collection = Collection::read(Path::new(folder))?;
        let house = filled(&collection)?;
        measure(&collection, &house)?;
        calibration(&collection, &house, &foreign)?;
    }
    Ok(())
}

fn filled(collection: &Collection) -> Result<House> {
    let house = House::new();
    let memories: Vec<NewMemory> = collection
        .documents
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(id, text)| NewMemory {
            content: text.clone(),
            memory_id: Some(id.clone()),
            ..NewMemory::default()
        })
        .collect();
    for batch in memories.chunks(BATCH) {
        house
            .board
            .engine()
            .store_memories(&house.owner(), batch.to_vec())?;
    }
    house.board.engine().settle();
    Ok(house)
}

fn measure(collection: &Collection, house: &House) -> Result<()> {
    let stages = [
        ("full text", Some(Mode::FullText)),
        ("vectors", Some(Mode::Semantic)),
        ("fused", Some(Mode::Fused)),
        ("re-ranked", None),
    ];
    let asked: Vec<_> = collection
        .questions
        .iter()
        .filter(|it| collection.judged.contains_key(&it.0))
        .collect();
    println!(
        "{}: {} documents, {} questions",
        collection.name,
        collection.documents.len(),
        asked.len()
    );
    for (name, mode) in stages {
        let mut sums = (0.0, 0.0);
        for (id, text) in &asked {
            let found = match mode {
                Some(mode) => by_mode(house, text, mode)?,
                None => by_tool(house, text)?,
            };
            let (ndcg, recall) = judge(&found, &collection.judged[id]);
            sums = (sums.0 + ndcg, sums.1 + recall);
        }
        let n = asked.len().max(1) as f64;
        println!(
            "  {name:<10} nDCG@10 {:.3}  recall@10 {:.3}",
            sums.0 / n,
            sums.1 / n
        );
    }
    Ok(())
}

fn by_mode(house: &House, text: &str, mode: Mode) -> Result<Vec<String>> {
    let recall = Recall {
        query: text.to_owned(),
        min_relevance: 0.0,
        mode,
        ..Recall::default()
    };
    let found = house.board.engine().recall(&house.owner(), &recall)?;
    Ok(found.memories.into_iter().map(|it| it.memory.id).collect())
}

fn by_tool(house: &House, text: &str) -> Result<Vec<String>> {
    let reply = house.call(
        "memory_recall",
        json!({ "query": text, "min_relevance": 0 }),
    );
    ensure!(!reply.is_error(), "{}", reply.text);
    let found = reply.to_json();
    let ids = found
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it["memory_id"].as_str());
    Ok(ids.map(str::to_owned).collect())
}

/// What passes the contract's default threshold: answers should, the best of unrelated texts not.
fn calibration(collection: &Collection, house: &House, foreign: &[String]) -> Result<()> {
    let (index, filter) = (index_of(collection), Filter::default());
    let (mut pairs, mut kept) = (0, 0);
    for (id, text) in &collection.questions {
        for (document, _) in collection
            .judged
            .get(id)
            .into_iter()
            .flatten()
            .take(PAIRS_MAX)
        {
            let place = collection.documents.iter().position(|it| it.0 == *document);
            let query = Query {
                text,
                mode: Mode::Hybrid,
                filter: &filter,
                limit: 1,
                vector: None,
            };
            let relevance = index.relevance(&query, node_id(place.unwrap_or(usize::MAX)));
            pairs += 1;
            kept += usize::from(relevance >= 0.7);
        }
    }
    println!(
        "  {:.3} of {pairs} relevant pairs pass 0.7",
        kept as f64 / f64::from(u32::try_from(pairs.max(1))?)
    );
    if !foreign.is_empty() {
        let mut passed = 0;
        for text in foreign {
            let found = house.board.engine().recall(
                &house.owner(),
                &Recall {
                    query: text.clone(),
                    limit: 1,
                    ..Recall::default()
                },
            )?;
            passed += found.memories.len();
        }
        println!(
            "  {:.3} of {} off-topic questions get an answer",
            passed as f64 / foreign.len() as f64,
            foreign.len()
        );
    }
    Ok(())
}

fn node_id(place: usize) -> kenning_core::NodeId {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&(place as u64).to_be_bytes());
    kenning_core::NodeId(bytes)
}

/// The same documents as an index alone, because `memory_recall` does not tell the relevance of what it
/// does not return.
fn index_of(collection: &Collection) -> Index {
    let mut index = Index::new();
    for (place, (id, text)) in collection.documents.iter().enumerate() {
        let node = Node {
            id: node_id(place),
            kind: kenning_core::Kind::Memory,
            project: String::new(),
            key: id.clone(),
            title: String::new(),
            body: text.clone(),
            props: serde_json::Map::new(),
            created: kenning_core::Hlc::default(),
            updated: kenning_core::Hlc::default(),
            hash: kenning_core::Hash::default(),
            rev: 1,
        };
        index.put(&node, &passages("", text));
    }
    index
}
