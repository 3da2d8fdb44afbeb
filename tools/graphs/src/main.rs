//! The queries of `xtask bench cypher`, answered by graphdblite.
//!
//! It reads a graph and the queries from a folder, and prints one JSON object: how long loading took, and of each query
//! the rows and the milliseconds of each set of parameters. It knows nothing of Kenning.
//!
//! Its one invariant: only the query is timed, not the reading of its rows into JSON.

use graphdblite::{Config, Database, NodeId, Properties, Value};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or("a folder is missing")?;
    let folder = Path::new(&folder);
    let began = Instant::now();
    // By default it refuses what has more than 100,000 rows between two steps.
    let config = Config {
        max_result_rows: 10_000_000,
        ..Config::default()
    };
    let mut db = Database::open_with_config(folder.join("graphdblite.db"), config)?;
    load(&mut db, folder)?;
    let load_s = began.elapsed().as_secs_f64();
    let queries: Json = serde_json::from_slice(&fs::read(folder.join("queries.json"))?)?;
    let (repeat, limit_ms) = (number(&queries["repeat"]), number(&queries["limit_ms"]));
    let mut answers = Vec::new();
    for query in queries["queries"].as_array().into_iter().flatten() {
        let text = query["text"].as_str().ok_or("a query without text")?;
        let (mut rows, mut times) = (Vec::new(), Vec::new());
        for parameters in query["parameters"].as_array().into_iter().flatten() {
            let (found, ms) = ask(&mut db, text, parameters, repeat, limit_ms)?;
            rows.push(found);
            times.push(ms);
        }
        answers.push(json!({ "rows": rows, "ms": times }));
    }
    println!("{}", json!({ "load_s": load_s, "queries": answers }));
    Ok(())
}

fn number(json: &Json) -> f64 {
    json.as_f64().unwrap_or(0.0)
}

/// The rows, and the least time of the repetitions: what else runs here only adds to it.
fn ask(
    db: &mut Database,
    text: &str,
    parameters: &Json,
    repeat: f64,
    limit_ms: f64,
) -> Result<(Json, f64)> {
    let given: HashMap<String, Value> = parameters
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, it)| (name.clone(), value(it)))
        .collect();
    let (mut times, mut rows) = (Vec::new(), Json::Null);
    let all = Instant::now();
    while times.is_empty()
        || (times.len() as f64) < repeat && all.elapsed().as_secs_f64() * 1e3 < limit_ms
    {
        let began = Instant::now();
        let answer = db.execute_with_params(text, Some(&given));
        times.push(began.elapsed().as_secs_f64() * 1e3);
        match answer {
            Ok(answer) => {
                let row = |it: &graphdblite::Record| -> Json { it.values().map(json_of).collect() };
                rows = answer.iter().map(row).collect();
            }
            Err(error) => return Ok((json!({ "error": error.to_string() }), f64::INFINITY)),
        }
    }
    Ok((rows, times.into_iter().fold(f64::INFINITY, f64::min)))
}

fn value(json: &Json) -> Value {
    match json {
        Json::String(it) => Value::String(it.clone()),
        other => Value::I64(other.as_i64().unwrap_or(0)),
    }
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::String(it) => json!(it),
        Value::I64(it) => json!(it),
        Value::F64(it) => json!(it),
        Value::Null => Json::Null,
        other => json!(format!("{other:?}")),
    }
}

fn load(db: &mut Database, folder: &Path) -> Result<()> {
    let mut ids: HashMap<String, NodeId> = HashMap::new();
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<std::io::Result<_>>()?;
    files.sort_by_key(|it| it.file_name());
    let tx = db.write_tx()?;
    let mut labels = Vec::new();
    // Nodes are before relationships by the names of their files.
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        let Some(name) = name.strip_suffix(".csv") else {
            continue;
        };
        let text = fs::read_to_string(file.path())?;
        let parts: Vec<&str> = name.split('-').collect();
        match parts.as_slice() {
            ["nodes", label] => {
                labels.push((*label).to_owned());
                for line in text.lines() {
                    let [uid, name, lines, visibility] = line.split(',').collect::<Vec<_>>()[..]
                    else {
                        return Err("a node has four columns".into());
                    };
                    let mut properties = Properties::new();
                    for (key, text) in [("uid", uid), ("name", name), ("visibility", visibility)] {
                        properties.insert(key.to_owned(), Value::String(text.to_owned()));
                    }
                    properties.insert("lines".to_owned(), Value::I64(lines.parse()?));
                    ids.insert(uid.to_owned(), tx.create_node(label, properties)?);
                }
            }
            ["rels", _, kind, _] => {
                for line in text.lines() {
                    let (start, end) = line.split_once(',').ok_or("a relationship has two ends")?;
                    tx.create_edge(ids[start], ids[end], kind, Properties::new())?;
                }
            }
            _ => {}
        }
    }
    for label in labels {
        tx.create_index(&label, "uid")?;
    }
    tx.create_fulltext_index("Function", "name")?;
    tx.commit()?;
    Ok(())
}
