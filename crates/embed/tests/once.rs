//! The table is in a program once.

#![expect(clippy::disallowed_methods, reason = "the test reads its own program")]

use kenning_embed::{Embedder, Table};

/// How many bytes are looked for, in the middle of the table.
const SAMPLE_BYTES: usize = 256;

#[test]
fn the_table_is_linked_once() {
    let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
    let table = std::fs::read(format!("{assets}/static-minilm-ext256-int4.semb")).unwrap();
    let middle = table.len() / 2;
    let sample = &table[middle..middle + SAMPLE_BYTES];
    // Everything that reads the table, so that whatever holds a copy of it is linked.
    let table = Table::built_in();
    let ids = table.ids("one table");
    let words: Vec<&str> = ids.iter().map(|id| table.word(*id)).collect();
    assert_eq!(words, ["one", "table"]);
    let weights: Vec<f32> = ids.iter().map(|id| table.norm(*id)).collect();
    assert_ne!(table.query(&ids, &weights), table.passage(&[]));
    assert_eq!(table.token(b"table"), Some(ids[1]));
    let probes = [table.probe(ids[0]), table.probe(ids[1])];
    assert!(probes[0].similarity(&probes[1]) < 0.99);
    assert_eq!(table.embed(&["one table"]).unwrap().len(), 1);

    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let first = sample[0];
    let starts = program
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == first);
    let copies = starts.filter(|(at, _)| program[*at..].starts_with(sample));
    assert_eq!(copies.count(), 1);
}
