//! The same through the engine, on a real store.

use super::data::Data;
use super::us;
use crate::bench::meter::{cpu, ms, percentile};
use anyhow::{Context as _, Result};
use kenning_engine::Engine;
use kenning_engine::kg::{NewVector, VectorQuery};
use kenning_testing::Fixture;
use kenning_tools::Selection;
use std::time::{Duration, Instant};

const ONE_BY_ONE: usize = 10_000;
const REMOVED: usize = 1_000;
const LOADED: usize = 100_000;
const DIMENSIONS: usize = 256;

/// Vectors that are put with one call.
const BATCH: usize = 1_000;

/// What putting and removing one costs when the disk has answered.
pub(super) fn durable() -> Result<()> {
    let data = Data::make(ONE_BY_ONE, DIMENSIONS);
    let fixture = Fixture::new();
    let (engine, owner) = (fixture.board.engine(), fixture.owner());
    let (mut times, before) = (Vec::new(), cpu()?);
    for i in 0..data.n {
        let began = Instant::now();
        engine.kg().upsert_vector(&owner, vector(&data, i))?;
        times.push(began.elapsed());
    }
    let used = cpu()?.saturating_sub(before);
    println!(
        "durable upsert, one by one, {ONE_BY_ONE} x {DIMENSIONS}: median {:.2} ms, {:.0} µs processor each",
        ms(percentile(&mut times, 0.5)),
        us(used) / data.n as f64
    );
    let (mut times, before) = (Vec::new(), cpu()?);
    for i in 0..REMOVED {
        let began = Instant::now();
        engine.kg().delete_vector(&owner, None, &id(i))?;
        times.push(began.elapsed());
    }
    let used = cpu()?.saturating_sub(before);
    println!(
        "durable removal, one by one: median {:.2} ms, {:.0} µs processor each",
        ms(percentile(&mut times, 0.5)),
        us(used) / REMOVED as f64
    );
    Ok(())
}

/// What the first question to a new process costs, and the later ones.
pub(super) fn loaded() -> Result<()> {
    let data = Data::make(LOADED, DIMENSIONS);
    let fixture = Fixture::new();
    let began = Instant::now();
    let all: Vec<usize> = (0..data.n).collect();
    for batch in all.chunks(BATCH) {
        let new = batch.iter().map(|&i| vector(&data, i)).collect();
        let engine = fixture.board.engine();
        engine.kg().upsert_vectors(&fixture.owner(), new)?;
    }
    println!(
        "durable upsert in batches of {BATCH}, {LOADED} x {DIMENSIONS}: {:.0} a second",
        data.n as f64 / began.elapsed().as_secs_f64()
    );
    let fixture = fixture.again(Selection::default());
    let engine = fixture.board.engine();
    let (began, before) = (Instant::now(), cpu()?);
    let query = data.queries().next().context("no question")?;
    ask(engine, &fixture, query)?;
    println!(
        "first question of a new process over {LOADED} x {DIMENSIONS}: {:.2} s, {:.2} s processor",
        began.elapsed().as_secs_f64(),
        cpu()?.saturating_sub(before).as_secs_f64()
    );
    let before = cpu()?;
    let mut times = Vec::new();
    for query in data.queries() {
        times.push(ask(engine, &fixture, query)?);
    }
    let used = cpu()?.saturating_sub(before);
    println!(
        "later ones, the last steps read from the store: median {:.2} ms, {:.2} ms processor each",
        ms(percentile(&mut times, 0.5)),
        ms(used) / times.len() as f64
    );
    Ok(())
}

fn ask(engine: &Engine, fixture: &Fixture, query: &[f32]) -> Result<Duration> {
    let query = VectorQuery {
        vector: Some(query.to_vec()),
        ..VectorQuery::default()
    };
    let began = Instant::now();
    engine.kg().search_vectors(&fixture.owner(), &query)?;
    Ok(began.elapsed())
}

fn id(i: usize) -> String {
    format!("v{i}")
}

fn vector(data: &Data, i: usize) -> NewVector {
    NewVector {
        id: id(i),
        numbers: data.vector(i).to_vec(),
        ..NewVector::default()
    }
}
