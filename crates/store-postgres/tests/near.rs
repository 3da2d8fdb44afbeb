//! Large collections get an index, and the index finds what comparing all would find.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and write rows that no event is about"
)]

use kenning_core::{SeededRandom, Space};
use kenning_store::{IndexKind, Near, Nearest, Store, Vector};
use kenning_store_postgres::{Options, Postgres};
use kenning_testing_postgres::{Server, Version, own, shared};
use serde_json::Map;
use std::time::{Duration, Instant};

const INDEX_FROM: u64 = 1_000;
/// Building so little takes a second or two; a busy machine may need more.
const BUILT_WITHIN: Duration = Duration::from_secs(90);

fn open(url: &str) -> Store {
    let options = Options {
        index_from: INDEX_FROM,
        index_pause: Duration::from_millis(20),
        ..Options::default()
    };
    Store::new(Postgres::open_with(url, options).unwrap())
}

fn space(name: &str) -> Space {
    name.parse().unwrap()
}

/// A number between -1 and 1.
fn coordinate(random: &SeededRandom) -> f32 {
    random.below(20_001) as f32 / 10_000.0 - 1.0
}

/// Points in this many clusters, as texts cluster around topics.
fn clustered(random: &SeededRandom, n: usize, dimension: usize) -> Vec<Vec<f32>> {
    let middles: Vec<Vec<f32>> = (0..40)
        .map(|_| (0..dimension).map(|_| coordinate(random)).collect())
        .collect();
    (0..n)
        .map(|n| {
            let middle = &middles[n % middles.len()];
            let moved = middle.iter().map(|it| it + 0.4 * coordinate(random));
            moved.collect()
        })
        .collect()
}

fn put(store: &Store, space: &Space, collection: &str, first: usize, all: &[Vec<f32>]) {
    let mut seq = first;
    for some in all.chunks(250) {
        let vectors: Vec<Vector> = (seq..)
            .zip(some)
            .map(|(n, numbers)| Vector {
                collection: collection.to_owned(),
                id: format!("v{n}"),
                model: "m".to_owned(),
                numbers: numbers.clone(),
                props: Map::new(),
                seq: n as u64,
            })
            .collect();
        seq += some.len();
        let written = store.write_long(space, move |tx| {
            vectors.iter().try_for_each(|it| tx.put_vector(it))
        });
        written.unwrap();
    }
}

fn nearest(store: &Store, space: &Space, collection: &str, to: &[f32], n: usize) -> Nearest {
    let found = store.read(space, |tx| tx.nearest(collection, to, n));
    found.unwrap()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < BUILT_WITHIN, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn wait_for_index(store: &Store, space: &Space, collection: &str, to: &[f32]) {
    wait_for("an index", || {
        nearest(store, space, collection, to, 1).index == IndexKind::Hnsw
    });
}

/// The same question where all are compared.
fn exactly(all: &[Vec<f32>], to: &[f32], n: usize) -> Vec<Near> {
    let length = |it: &[f32]| it.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let cosine = |numbers: &[f32]| {
        let product: f64 = numbers.iter().zip(to).map(|(a, b)| f64::from(a * b)).sum();
        product / length(numbers) / length(to)
    };
    let mut found: Vec<Near> = (0..)
        .zip(all)
        .map(|(n, it)| Near {
            id: format!("v{n}"),
            similarity: cosine(it),
        })
        .collect();
    found.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
    found.truncate(n);
    found
}

/// How many of the ten nearest are found, of all; and that the cosines are the exact ones.
fn recall(store: &Store, here: &Space, all: &[Vec<f32>], questions: &[Vec<f32>]) -> f64 {
    let mut n_found = 0;
    for to in questions {
        let found = nearest(store, here, "big", to, 10);
        assert_eq!(found.index, IndexKind::Hnsw);
        assert_eq!(found.hits.len(), 10);
        let expected = exactly(all, to, all.len());
        let cosine_of = |id: &str| expected.iter().find(|it| it.id == id).unwrap().similarity;
        for it in &found.hits {
            let exact = cosine_of(&it.id);
            assert!((it.similarity - exact).abs() < 1e-5, "{it:?} {exact}");
        }
        assert!(found.hits.is_sorted_by(|a, b| a.similarity >= b.similarity));
        let ten = &expected[..10];
        n_found += ten
            .iter()
            .filter(|it| found.hits.iter().any(|hit| hit.id == it.id))
            .count();
    }
    n_found as f64 / (10 * questions.len()) as f64
}

fn a_large_collection_is_searched_by_its_index_on(server: &Server) {
    let url = server.database();
    let store = open(&url);
    let (here, there) = (space("here"), space("there"));
    let random = SeededRandom::new(17);
    let mut all = clustered(&random, 4_000, 64);
    let questions = clustered(&random, 60, 64);
    put(&store, &here, "small", 0, &all[..50]);
    put(&store, &there, "big", 0, &all[..70]);
    assert_eq!(
        nearest(&store, &here, "big", &questions[0], 5).index,
        IndexKind::Exact
    );
    put(&store, &here, "big", 0, &all);
    wait_for_index(&store, &here, "big", &questions[0]);

    let found = recall(&store, &here, &all, &questions);
    println!("recall@10 {found:.3} of 4,000 vectors of 64 dimensions");
    assert!(found >= 0.95, "recall@10 {found}");
    let many = nearest(&store, &here, "big", &questions[0], 1_500);
    assert_eq!((many.index, many.hits.len()), (IndexKind::Hnsw, 1_500));

    // What is written afterwards is found, and what is removed is not.
    let new: Vec<Vec<f32>> = questions
        .iter()
        .map(|it| it.iter().map(|x| x * 3.0).collect())
        .collect();
    put(&store, &here, "big", all.len(), &new);
    let mut n_found = 0;
    for (n, to) in (all.len()..).zip(&questions) {
        let id = format!("v{n}");
        let is_found = || {
            let found = nearest(&store, &here, "big", to, 10).hits;
            found.iter().any(|it| it.id == id)
        };
        n_found += usize::from(is_found());
        let removed = id.clone();
        let removed = store.write(&here, move |tx| tx.remove_vector("big", &removed));
        removed.unwrap();
        assert!(!is_found(), "{id}");
    }
    println!("{n_found} of {} new ones found", new.len());
    assert!(n_found * 100 >= new.len() * 95, "{n_found}");
    all.extend(new);
    // One of another dimension, and one of length 0, are put and not found.
    put(
        &store,
        &here,
        "big",
        all.len(),
        &[vec![1.0; 3], vec![0.0; 64]],
    );
    let found = nearest(&store, &here, "big", &questions[0], 20).hits;
    let strange = [format!("v{}", all.len()), format!("v{}", all.len() + 1)];
    assert!(found.iter().all(|it| !strange.contains(&it.id)));

    // In a write too, and its later queries are planned as usual.
    let to = questions[1].clone();
    let in_a_write = store.write(&here, move |tx| {
        let found = tx.nearest("big", &to, 3)?;
        tx.set("b", "k", b"v")?;
        Ok((found.index, tx.list("b")?.len()))
    });
    assert_eq!(in_a_write.unwrap(), (IndexKind::Hnsw, 1));

    // Other collections and spaces are not affected.
    for (space, collection, n) in [(&here, "small", 50), (&there, "big", 70)] {
        let found = nearest(&store, space, collection, &questions[0], 100);
        assert_eq!((found.index, found.hits.len()), (IndexKind::Exact, n));
        let expected = exactly(&all[..n], &questions[0], 1);
        assert_eq!(found.hits[0].id, expected[0].id);
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());

    // The server counts the searches of an index when a session ends.
    drop(store);
    let scans = "SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_indexes
                 WHERE indexrelname LIKE 'vectors_hnsw_%'";
    wait_for("searches of the index", || {
        server.sql(&url, scans).parse::<usize>().unwrap() > questions.len()
    });
}

#[test]
fn a_large_collection_is_searched_by_its_index() {
    a_large_collection_is_searched_by_its_index_on(shared());
}

#[test]
fn on_an_older_server_too() {
    a_large_collection_is_searched_by_its_index_on(&own(Version::V16));
}

#[test]
fn a_dimension_decides_which_index_there_can_be() {
    let url = shared().database();
    let here = space("here");
    let random = SeededRandom::new(18);
    let options = Options {
        index_from: 100,
        index_pause: Duration::from_millis(20),
        ..Options::default()
    };
    let store = Store::new(Postgres::open_with(&url, options).unwrap());
    let long = clustered(&random, 120, 5_000);
    put(&store, &here, "long", 0, &long);
    let half = clustered(&random, 120, 2_500);
    // Longer than half precision can say; the graph holds what has the length 1.
    let half: Vec<Vec<f32>> = half
        .iter()
        .map(|it| it.iter().map(|x| x * 1e6).collect())
        .collect();
    put(&store, &here, "big", 0, &half);
    wait_for_index(&store, &here, "big", &half[0]);
    let found = recall(&store, &here, &half, &half[..20]);
    assert!(found >= 0.95, "recall@10 {found}");
    let definition = "SELECT indexdef FROM pg_indexes WHERE indexname LIKE 'vectors_hnsw_%'";
    let definition = shared().sql(&url, definition);
    assert!(definition.contains("halfvec(2500)"), "{definition}");
    // It came first in the same look, and was left as it is.
    let found = nearest(&store, &here, "long", &long[7], 3);
    assert_eq!(
        (found.index, found.hits[0].id.as_str()),
        (IndexKind::Exact, "v7")
    );
}

#[test]
fn an_index_that_was_cut_off_is_built_anew_and_by_one_server_only() {
    let url = shared().database();
    let (first, second) = (open(&url), open(&url));
    let here = space("here");
    let all = clustered(&SeededRandom::new(19), 1_200, 16);
    let is = |word: &str| {
        let sql = format!(
            "SELECT count(*) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
             WHERE relname LIKE 'vectors_hnsw_%' AND {word} indisvalid"
        );
        shared().sql(&url, &sql) == "1"
    };
    let builders = "FROM pg_stat_activity WHERE datname = current_database()
                    AND query LIKE 'CREATE INDEX CONCURRENTLY%' AND state = 'active'
                    AND backend_type = 'client backend'";
    // A snapshot that is older than the rows keeps the index from being finished.
    let old = first.read(&here, |tx| {
        assert!(tx.head()?.is_none());
        put(&second, &here, "big", 0, &all);
        wait_for("an unfinished index", || {
            // A transaction in which nothing is asked is ended by the server.
            assert!(tx.head().unwrap().is_none());
            is("NOT")
        });
        assert_eq!(
            nearest(&second, &here, "big", &all[0], 1).index,
            IndexKind::Exact
        );
        assert_eq!(second.check()?, Vec::<String>::new());
        let cut = format!("SELECT pg_terminate_backend(pid) {builders}");
        assert_eq!(shared().sql(&url, &cut), "t");
        // The next builder drops it first, which waits for this transaction as well.
        Ok(())
    });
    old.unwrap();
    wait_for("a finished index", || is(""));
    wait_for_index(&first, &here, "big", &all[0]);
    let count = "SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'vectors_hnsw_%'";
    assert_eq!(shared().sql(&url, count), "1");
    assert_eq!(nearest(&second, &here, "big", &all[5], 1).hits[0].id, "v5");
}
