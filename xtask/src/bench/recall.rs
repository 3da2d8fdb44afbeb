//! Search quality: judged collections, through `memory_recall` itself on a real store.
//!
//! First all memories have one timestamp and nothing is cut off by relevance, so that the order is the
//! search's. Then, with `--dated`, ages are spread over 90 days, as in a store that is used; with
//! `--threads` all documents are one session. `--labels` reads short prompts, names and CJK questions.
//! `KENNING_TEST_BACKEND=postgres` measures the other store.

use super::collection::{self, Collection, judge};
use super::shuffle::shuffled;
use crate::options::Options;
use anyhow::{Context as _, Result, ensure};
use kenning_engine::Mode;
use kenning_engine::omi::{NewMemory, Recall};
use kenning_search::{Filter, Index, Query, passages};
use kenning_store::Node;
use kenning_testing::Fixture;
use serde_json::json;
use std::path::Path;

/// Memories that are stored with one call.
const BATCH: usize = 500;

/// Over so many days memories are spread.
const SPREAD_DAYS: usize = 90;
const DAY_MS: u64 = 86_400_000;

/// Judged answers of a question whose relevance is looked at.
const PAIRS_MAX: usize = 5;

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["collection", "off-topic", "dated", "threads", "labels"])?;
    if let Some(path) = options.text("labels") {
        labels(Path::new(path))?;
    }
    let Some(folders) = options.text("collection") else {
        ensure!(options.has("labels"), "which `--collection DIR`?");
        return Ok(());
    };
    let seeds = (options.text("dated").unwrap_or_default().split(','))
        .filter(|it| !it.is_empty())
        .map(|text| {
            text.parse::<u32>()
                .with_context(|| format!("`--dated {text}` is not a seed"))
        })
        .collect::<Result<Vec<_>>>()?;
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
        let in_order: Vec<usize> = (0..collection.documents.len()).collect();
        let fixture = filled(&collection, &in_order, None, 0)?;
        measure(&collection, &fixture)?;
        calibration(&collection, &fixture, &foreign)?;
        drop(fixture);
        for &seed in &seeds {
            let order = shuffled(collection.documents.len(), seed);
            let fixture = filled(&collection, &order, None, SPREAD_DAYS)?;
            let all = quality(&collection, |text| by_tool(&fixture, text, 0.0))?;
            let passing = quality(&collection, |text| by_tool(&fixture, text, 0.7))?;
            println!("  over {SPREAD_DAYS} days, seed {seed}: {all}; at 0.7 or more: {passing}");
        }
        if options.has("threads") {
            let shuffled = shuffled(collection.documents.len(), 1);
            for (name, order) in [("in order", in_order), ("shuffled", shuffled)] {
                let fixture = filled(&collection, &order, Some("one"), 0)?;
                let found = quality(&collection, |text| by_tool(&fixture, text, 0.0))?;
                println!("  all of one thread, {name}: {found}");
            }
        }
    }
    Ok(())
}

/// A store with the documents, in this order, of one session or of none, over so many days.
fn filled(
    collection: &Collection,
    order: &[usize],
    session: Option<&str>,
    days: usize,
) -> Result<Fixture> {
    let fixture = Fixture::new();
    let n = order.len();
    // From the oldest on: the first of them is as old as all days, the last about a day.
    let day_of = |place: usize| place * days / n.max(1);
    let mut today = 0;
    let mut batch = Vec::new();
    let flush = |batch: &mut Vec<NewMemory>| -> Result<()> {
        if !batch.is_empty() {
            let engine = fixture.board.engine();
            engine
                .omi()
                .store_memories(&fixture.owner(), std::mem::take(batch))?;
        }
        Ok(())
    };
    for (place, &document) in order.iter().enumerate() {
        if day_of(place) > today || batch.len() == BATCH {
            flush(&mut batch)?;
            fixture
                .clock
                .advance((day_of(place) - today) as u64 * DAY_MS);
            today = day_of(place);
        }
        let (id, text) = &collection.documents[document];
        if !text.is_empty() {
            batch.push(NewMemory {
                content: text.clone(),
                memory_id: Some(id.clone()),
                session_id: session.map(str::to_owned),
                ..NewMemory::default()
            });
        }
    }
    flush(&mut batch)?;
    fixture.clock.advance((days - today) as u64 * DAY_MS);
    fixture.board.engine().omi().settle();
    Ok(fixture)
}

/// nDCG and recall over all judged questions.
fn quality(collection: &Collection, ask: impl Fn(&str) -> Result<Vec<String>>) -> Result<String> {
    let (mut ndcg_sum, mut recall_sum, mut n) = (0.0, 0.0, 0.0_f64);
    for (id, text) in &collection.questions {
        if let Some(judged) = collection.judged.get(id) {
            let (ndcg, recall) = judge(&ask(text)?, judged);
            (ndcg_sum, recall_sum, n) = (ndcg_sum + ndcg, recall_sum + recall, n + 1.0);
        }
    }
    let n = n.max(1.0);
    Ok(format!(
        "nDCG@10 {:.3}  recall@10 {:.3}",
        ndcg_sum / n,
        recall_sum / n
    ))
}

/// Short prompts, names and questions in other scripts: the right note first and passing, or nothing.
fn labels(path: &Path) -> Result<()> {
    let text = collection::read(path)?;
    let rows: Vec<Vec<&str>> = text.lines().map(|it| it.split('\t').collect()).collect();
    let mut index = Index::new();
    let mut ids = Vec::new();
    for row in rows.iter().filter(|row| row[0] == "note") {
        let [_, id, title, aliases, body] = row[..] else {
            anyhow::bail!("a note of `{}` has not five columns", path.display());
        };
        let mut node = node(ids.len(), id, &[aliases, body].join(" "));
        node.title = title.to_owned();
        let aliases: Vec<&str> = aliases.split("; ").filter(|it| !it.is_empty()).collect();
        node.props.insert("aliases".to_owned(), json!(aliases));
        index.put(&node, &passages(&node.title, &node.body));
        ids.push(id);
    }
    let mut groups: Vec<(&str, usize, usize)> = Vec::new();
    for row in rows.iter().filter(|row| row[0] == "query") {
        let [_, group, text, wanted] = row[..] else {
            anyhow::bail!("a query of `{}` has not four columns", path.display());
        };
        let query = Query {
            text,
            mode: Mode::Hybrid,
            filter: &Filter::default(),
            limit: 3,
            vector: None,
        };
        let hits = index.search(&query);
        let first = hits.first().filter(|hit| hit.relevance >= 0.7);
        let found = first.and_then(|hit| ids.iter().zip(0..).find(|it| node_id(it.1) == hit.node));
        let found = found.map_or("-", |it| it.0);
        if found != wanted {
            println!("  {group}: {text}: wanted {wanted}, found {found}");
        }
        match groups.iter_mut().find(|it| it.0 == group) {
            Some(known) => {
                (known.1, known.2) = (known.1 + usize::from(found == wanted), known.2 + 1);
            }
            None => groups.push((group, usize::from(found == wanted), 1)),
        }
    }
    for (group, right, of) in groups {
        println!("{group}: {right} of {of}");
    }
    Ok(())
}

fn measure(collection: &Collection, fixture: &Fixture) -> Result<()> {
    let stages = [
        ("full text", Some(Mode::FullText)),
        ("vectors", Some(Mode::Semantic)),
        ("fused", Some(Mode::Fused)),
        ("re-ranked", None),
    ];
    println!(
        "{}: {} documents, {} questions",
        collection.name,
        collection.documents.len(),
        collection.judged.len()
    );
    for (name, mode) in stages {
        let found = quality(collection, |text| match mode {
            Some(mode) => by_mode(fixture, text, mode),
            None => by_tool(fixture, text, 0.0),
        })?;
        println!("  {name:<10} {found}");
    }
    Ok(())
}

fn by_mode(fixture: &Fixture, text: &str, mode: Mode) -> Result<Vec<String>> {
    let recall = Recall {
        query: text.to_owned(),
        min_relevance: 0.0,
        mode,
        ..Recall::default()
    };
    let found = fixture
        .board
        .engine()
        .omi()
        .recall(&fixture.owner(), &recall)?;
    Ok(found.memories.into_iter().map(|it| it.memory.id).collect())
}

fn by_tool(fixture: &Fixture, text: &str, least: f64) -> Result<Vec<String>> {
    let reply = fixture.call(
        "memory_recall",
        json!({ "query": text, "min_relevance": least }),
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
fn calibration(collection: &Collection, fixture: &Fixture, foreign: &[String]) -> Result<()> {
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
            let found = fixture.board.engine().omi().recall(
                &fixture.owner(),
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
        index.put(&node(place, id, text), &passages("", text));
    }
    index
}

fn node(place: usize, id: &str, text: &str) -> Node {
    Node {
        id: node_id(place),
        kind: kenning_core::Kind::Memory,
        project: String::new(),
        key: id.to_owned(),
        title: String::new(),
        body: text.to_owned(),
        props: serde_json::Map::new(),
        created: kenning_core::Hlc::default(),
        updated: kenning_core::Hlc::default(),
        hash: kenning_core::Hash::default(),
        rev: 1,
    }
}
