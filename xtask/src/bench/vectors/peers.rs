//! Peers in Python, on the same data.

use super::Measured;
use super::data::Data;
use crate::repository::{output, root};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = include_str!("../vectors_peers.py");

const PACKAGES: &[&str] = &["numpy", "faiss-cpu", "usearch"];

/// A Python with the peers, made once beneath `target`; `None`, and why, where that cannot be done.
pub(super) fn environment() -> Option<PathBuf> {
    let folder = root().join("target/bench-peers");
    let python = folder.join("bin/python");
    match made(&folder, &python) {
        Ok(()) => Some(python),
        Err(error) => {
            eprintln!("no peers beside it: {error:#}");
            None
        }
    }
}

fn made(folder: &Path, python: &Path) -> Result<()> {
    if !python.exists() {
        let arguments = ["-m", "venv"];
        output(Command::new("python3").args(arguments).arg(folder))?;
    }
    let import = ["-c", "import faiss, numpy, usearch.index"];
    if output(Command::new(python).args(import)).is_err() {
        let install = ["-m", "pip", "install", "--quiet"];
        output(Command::new(python).args(install).args(PACKAGES))?;
        output(Command::new(python).args(import))?;
    }
    Ok(())
}

/// One row for each peer that could be built in that time.
pub(super) fn measure(python: &Path, data: &Data, minutes: u64) -> Result<Vec<Measured>> {
    let folder = tempfile::tempdir()?;
    for (name, bytes) in data.files() {
        std::fs::write(folder.path().join(name), bytes)?;
    }
    let script = folder.path().join("peers.py");
    std::fs::write(&script, SCRIPT)?;
    let mut rows = Vec::new();
    // Each in a process of its own, so that memory is its own.
    for peer in ["flat", "hnsw", "usearch"] {
        let printed = output(
            Command::new(python)
                .arg(&script)
                .arg(folder.path())
                .args([peer, &data.n.to_string(), &data.dimensions.to_string()])
                .arg(minutes.to_string())
                .env("OMP_NUM_THREADS", "1"),
        )?;
        let row: Value = serde_json::from_str(printed.trim()).context("a peer's answer")?;
        match row["why"].as_str() {
            Some(why) => eprintln!("{peer} {} x {}: {why}", data.n, data.dimensions),
            None => rows.push(measured(data, &row)),
        }
    }
    Ok(rows)
}

fn measured(data: &Data, row: &Value) -> Measured {
    let numbers = |name: &str| {
        let list = row[name].as_array().into_iter().flatten();
        list.filter_map(Value::as_f64).collect()
    };
    Measured {
        n: data.n,
        dimensions: data.dimensions,
        what: row["what"].as_str().unwrap_or_default().to_owned(),
        recall: numbers("recall"),
        query_ms: numbers("query_ms"),
        insert_us: row["insert_us"].as_f64().unwrap_or(f64::NAN),
        removal_us: row["removal_us"].as_f64(),
        bytes: row["bytes"].as_f64().unwrap_or(f64::NAN),
        remark: " resident".to_owned(),
    }
}
