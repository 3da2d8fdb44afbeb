//! A graph that followed the log is the graph that is made from the rows.

use crate::follow::{self, Graphs};
use crate::graph::Graph;
use crate::rows::Property;
use kenning_audit::{Draft, EdgeDraft, Log, Signer, Tx};
use kenning_core::{FixedClock, Kind, Random as _, Result, SeededRandom, Space};
use kenning_cypher::{Direction, Value};
use kenning_store::{NodeFilter, Store, When};
use kenning_store_postgres::Postgres;
use kenning_store_sqlite::Sqlite;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeSet;
use std::sync::Arc;

fn log(folder: &std::path::Path) -> Log {
    over(Store::new(Sqlite::open(folder).unwrap()))
}

fn over(store: Store) -> Log {
    let random = Arc::new(SeededRandom::new(7));
    let signer = Signer::generate(&*random);
    let clock = Arc::new(FixedClock::at(1_800_000_000_000));
    Log::new(store, signer, clock, random as _)
}

struct Choices(SeededRandom);

impl Choices {
    fn below(&self, n: usize) -> usize {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        usize::try_from(u64::from_le_bytes(bytes) % n as u64).unwrap()
    }

    fn pick<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        (!from.is_empty()).then(|| &from[self.below(from.len())])
    }
}

fn props(choices: &Choices) -> Map<String, Json> {
    let mut props = Map::new();
    let words = ["a", "b", "c"];
    if choices.below(2) == 0 {
        let tags: Vec<&str> = words
            .into_iter()
            .filter(|_| choices.below(2) == 0)
            .collect();
        props.insert("tags".to_owned(), json!(tags));
    }
    if choices.below(2) == 0 {
        props.insert("n".to_owned(), json!(choices.below(3)));
    }
    if choices.below(4) == 0 {
        props.insert("long".to_owned(), json!("x".repeat(600 + choices.below(3))));
    }
    props.insert(
        "type".to_owned(),
        json!(*choices.pick(&["person", "place"]).unwrap()),
    );
    props
}

/// One random change.
fn change(tx: &mut Tx<'_>, choices: &Choices) -> Result<()> {
    let all = tx.nodes(&NodeFilter::default(), When::Now, None, usize::MAX)?;
    let node = choices.pick(&all).map(|it| it.id);
    let other = choices.pick(&all).map(|it| it.id);
    let relation = *choices.pick(&["knows", "calls"]).unwrap();
    match (choices.below(10), node, other) {
        (0, Some(node), _) => tx.remove_node(node)?,
        (1..=4, Some(src), Some(dst)) => {
            tx.put_edge(EdgeDraft {
                src,
                rel: relation.to_owned(),
                dst,
                weight: 1.0,
                props: props(choices),
            })?;
        }
        (5..=6, Some(src), Some(dst)) => tx.end_edge(src, relation, dst)?,
        _ => {
            let n = choices.below(12);
            tx.put_node(Draft {
                kind: *choices.pick(&[Kind::Entity, Kind::Memory]).unwrap(),
                project: String::new(),
                key: format!("key {n}"),
                title: format!("title {}", choices.below(4)),
                body: "text".to_owned(),
                props: props(choices),
            })?;
        }
    }
    tx.record("NodeUpdated", json!({})).map(drop)
}

/// Everything that a graph says, whatever numbers it uses.
fn told(graph: &Graph) -> BTreeSet<String> {
    let name = |slot: u32| match graph.id_of(slot) {
        Some(id) => id.to_string(),
        None => format!("{:?}", values(graph, graph.properties_of(slot))),
    };
    let mut told = BTreeSet::new();
    // Columns are made once enough was asked, and then say the same as the nodes.
    let keys: Vec<u32> = (0..).take(graph.keys.all().len()).collect();
    for key in &keys {
        for _ in 0..300 {
            graph.value(0, *key);
        }
    }
    graph.nodes_after(None, None, usize::MAX, |slot| {
        for key in &keys {
            let own = graph.properties_of(slot).iter().find(|it| it.0 == *key);
            let expected = match own.map(|it| &it.1) {
                None => Some(Value::Null),
                Some(Property::Here(value)) => Some(value.clone()),
                Some(Property::Moment(ms)) => Some(crate::rows::moment(*ms)),
                Some(Property::InRow) => None,
            };
            let [found, expected] =
                [graph.value(slot, *key).cloned(), expected].map(|it| format!("{it:?}"));
            assert_eq!(found, expected);
        }
        let labels = graph.labels_of(slot).iter();
        let labels: Vec<_> = labels.map(|it| graph.labels.name(it.0)).collect();
        let properties = values(graph, graph.properties_of(slot));
        told.insert(format!("{} {labels:?} {properties:?}", name(slot)));
        for direction in [Direction::Out, Direction::In, Direction::Both] {
            let mut rels = Vec::new();
            graph.rels_of(slot, direction, &[], &mut rels);
            assert_eq!(graph.degree(slot, direction, &[]), rels.len() as u64);
            for rel in rels {
                let [start, end] = [rel.start.0, rel.end.0].map(|it| name(it as u32));
                let kind = graph.types.name(rel.kind.0);
                let properties = values(graph, graph.properties_of_rel(rel.id));
                told.insert(format!("{direction:?} {start} {kind} {end} {properties:?}"));
            }
        }
    });
    for (label, n) in graph.labels.all().iter().zip(0..) {
        let label_of = kenning_cypher::Token(n);
        let mut n_listed = 0;
        graph.nodes_after(Some(label_of), None, usize::MAX, |_| n_listed += 1);
        let n_nodes = graph.n_nodes(Some(label_of));
        assert_eq!(n_nodes, n_listed, "{label}");
        if n_nodes > 0 {
            told.insert(format!("{n_nodes} {label}"));
        }
    }
    for (kind, n) in graph.types.all().iter().zip(0..) {
        let n_rels = graph.n_rels(Some(kenning_cypher::Token(n)));
        if n_rels > 0 {
            told.insert(format!("{n_rels} {kind}"));
        }
    }
    told.insert(format!("{} {}", graph.n_nodes(None), graph.n_rels(None)));
    for n in 0..3 {
        let (found, _) = graph.nodes_by_value("n", &Value::Int(n));
        let found: BTreeSet<String> = found.into_iter().map(name).collect();
        told.insert(format!("n = {n}: {found:?}"));
    }
    told
}

fn values(graph: &Graph, properties: &[(u32, Property)]) -> BTreeSet<String> {
    let named = properties.iter();
    let named = named.map(|(key, it)| format!("{}: {it:?}", graph.keys.name(*key)));
    named.collect()
}

#[test]
fn a_graph_that_followed_is_the_one_that_is_made_anew() {
    for seed in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let log = log(folder.path());
        let space = Space::default();
        let graphs = Graphs::new(Arc::default());
        let choices = Arc::new(Choices(SeededRandom::new(seed)));
        let mut held: Option<(Arc<Graph>, BTreeSet<String>)> = None;
        for round in 0..60 {
            for _ in 0..choices.below(4) {
                let choices = Arc::clone(&choices);
                log.write(&space, move |tx| change(tx, &choices)).unwrap();
            }
            let check = || Ok(());
            let (followed, anew) = log
                .read(&space, |tx| {
                    let anew = Graphs::new(Arc::default()).now(&space, tx, &check)?;
                    Ok((graphs.now(&space, tx, &check)?, anew))
                })
                .unwrap();
            assert_eq!(told(&followed), told(&anew), "seed {seed}, round {round}");
            // A query that is still running sees what it began with.
            if let Some((held, before)) = &held {
                assert_eq!(told(held), *before, "seed {seed}, round {round}");
            }
            if round % 7 == 0 {
                let before = told(&followed);
                held = Some((followed, before));
            }
        }
    }
}

/// After random edits, some of several rows, the graph of each past moment is the one that there was then.
fn the_past_of(log: &Log, seed: u64, n_edits: usize) {
    let space = Space::default();
    let choices = Arc::new(Choices(SeededRandom::new(seed)));
    let check = || Ok(());
    let mut seen = Vec::new();
    for _ in 0..n_edits {
        let choices = Arc::clone(&choices);
        let edit = move |tx: &mut Tx<'_>| {
            for _ in 0..=choices.below(3) {
                change(tx, &choices)?;
            }
            Ok(())
        };
        log.write(&space, edit).unwrap();
        let now = log.read(&space, |tx| {
            let graph = Graphs::new(Arc::default()).now(&space, tx, &check)?;
            let at = tx.head()?.map(|it| it.hlc);
            Ok((at, told(&graph)))
        });
        seen.push(now.unwrap());
    }
    for (round, (at, told_then)) in seen.into_iter().enumerate() {
        let at = at.unwrap();
        let past = log.read(&space, |tx| follow::at(tx, at, &check)).unwrap();
        assert_eq!(told(&past), told_then, "seed {seed}, round {round}");
    }
}

#[test]
fn the_past_is_the_graph_that_there_was() {
    for seed in 3..6 {
        let folder = tempfile::tempdir().unwrap();
        the_past_of(&log(folder.path()), seed, 30);
    }
}

#[test]
fn the_past_is_the_graph_that_there_was_on_postgres_too() {
    for seed in 3..5 {
        let url = kenning_testing_postgres::shared().database();
        let store = Store::new(Postgres::open(&url, None).unwrap());
        the_past_of(&over(store), seed, 15);
    }
}

#[test]
fn a_graph_on_postgres_that_followed_is_the_one_that_is_made_anew() {
    let url = kenning_testing_postgres::shared().database();
    let log = over(Store::new(Postgres::open(&url, None).unwrap()));
    let space = Space::default();
    let graphs = Graphs::new(Arc::default());
    let choices = Arc::new(Choices(SeededRandom::new(9)));
    let check = || Ok(());
    for round in 0..25 {
        for _ in 0..choices.below(4) {
            let choices = Arc::clone(&choices);
            log.write(&space, move |tx| change(tx, &choices)).unwrap();
        }
        let read = log.read(&space, |tx| {
            let anew = Graphs::new(Arc::default()).now(&space, tx, &check)?;
            Ok((graphs.now(&space, tx, &check)?, anew))
        });
        let (followed, anew) = read.unwrap();
        assert_eq!(told(&followed), told(&anew), "round {round}");
    }
}
