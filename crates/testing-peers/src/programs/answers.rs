//! What a program holds and answers, without what is only its own.

use super::program::Program;
use super::writes::NAMES;
use super::wrong;
use crate::node::space;
use kenning_core::{Hlc, Kind, Result};
use kenning_store::{Row, Table, When};
use kenning_vault::Dir;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Every row that all must have: what follows from files of one machine is not among them.
pub(super) fn rows(program: &Program) -> Result<BTreeSet<String>> {
    let (mut rows, mut local) = (BTreeSet::new(), BTreeSet::new());
    program.kernel.log().read(&space(), |tx| {
        tx.scan(Table::Nodes, &mut |row| {
            let Row::Node(node) = row else { return Ok(()) };
            let is_item =
                node.kind == Kind::Item && node.props.get("source") != Some(&json!("registry"));
            let is_local = is_item || !node.project.is_empty();
            if is_local {
                local.insert(node.id);
                return Ok(());
            }
            // Each node derives entities for itself, when somebody looks.
            let updated = if node.kind == Kind::Entity {
                0
            } else {
                node.updated.0
            };
            rows.insert(format!(
                "{} {} {} {updated}",
                node.kind.as_str(),
                node.key,
                node.hash
            ));
            Ok(())
        })?;
        tx.scan(Table::Edges, &mut |row| {
            let Row::Edge(edge) = row else { return Ok(()) };
            let is_shared = !local.contains(&edge.src) && !local.contains(&edge.dst);
            if is_shared && edge.to == Hlc::MAX {
                rows.insert(format!(
                    "{} {} {} {}",
                    edge.src, edge.rel, edge.dst, edge.hash
                ));
            }
            Ok(())
        })?;
        tx.scan(Table::Vectors, &mut |row| {
            let Row::Vector(vector) = row else {
                return Ok(());
            };
            rows.insert(format!(
                "{} {} {}",
                vector.collection,
                vector.id,
                vector.canonical_hash()
            ));
            Ok(())
        })?;
        tx.scan(Table::Kv, &mut |row| {
            let Row::Kv(row) = row else { return Ok(()) };
            if kenning_audit::is_shared_bucket(&row.bucket) {
                rows.insert(format!(
                    "{} {} {:?}",
                    row.bucket,
                    row.key,
                    String::from_utf8_lossy(&row.value)
                ));
            }
            Ok(())
        })
    })?;
    Ok(rows)
}
/// The texts of all memories.
pub(super) fn memories(program: &Program) -> Result<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    program.kernel.log().read(&space(), |tx| {
        tx.scan(Table::Nodes, &mut |row| {
            if let Row::Node(node) = row
                && node.kind == Kind::Memory
            {
                texts.insert(node.body);
            }
            Ok(())
        })
    })?;
    Ok(texts)
}

/// What was asked, and what was answered.
pub(super) type Answers = Vec<(String, Value)>;

/// What the tools answer, without what depends on whoever asked before.
pub(super) fn shown(program: &Program) -> Result<Answers> {
    let mut all = Vec::new();
    let mut ask = |tool: &str, input: Value| -> Result<()> {
        let answer = match program.call(tool, input.clone()) {
            Ok(answer) => stripped(answer),
            Err(error) => Value::from(error.message),
        };
        all.push((format!("`{tool}` {input}"), answer));
        Ok(())
    };
    for name in NAMES {
        ask("resolve_entity", json!({ "label": name }))?;
        ask("get_entity_neighborhood", json!({ "label": name }))?;
    }
    for label in ["Memory", "Entity", "Vector"] {
        let cypher = format!("MATCH (n:{label}) RETURN count(n) AS n");
        ask("code_query", json!({ "cypher": cypher }))?;
    }
    ask(
        "kg_vector_search",
        json!({ "query": "title", "vector": [1.0, 2.0, 3.0], "k": 20 }),
    )?;
    ask("now_read", json!({}))?;
    for id in 0..3 {
        let query = format!("directive_{id}");
        ask(
            "search",
            json!({ "item_type": "directive", "query": query, "source": "registry" }),
        )?;
    }
    let caller = program.caller();
    let engine = program.board.engine();
    all.push((
        "the log of the day".to_owned(),
        engine.omi().daily_read(&caller, 0)?.into(),
    ));
    // What is found; how it is ranked depends on everything that is searched, files of this machine too.
    for query in NAMES {
        let input = json!({ "query": query, "limit": 50 });
        let found = program.call("koi_search", input)?;
        all.push((format!("entities about {query}"), texts(&found, "label")));
    }
    let input = json!({ "query": "belief", "min_relevance": 0.0, "limit": 100 });
    let found = program.call("belief_retrieve", input)?;
    all.push(("beliefs".to_owned(), texts(&found, "content")));
    let mut n_recalled = 0;
    for query in NAMES {
        let input = json!({ "query": query, "min_relevance": 0.0, "limit": 100 });
        let found = texts(&program.call("memory_recall", input)?, "content");
        n_recalled += found.as_array().map_or(0, Vec::len);
        all.push((format!("memories about {query}"), found));
    }
    if n_recalled == 0 && !memories(program)?.is_empty() {
        return Err(wrong("no memory is recalled"));
    }
    for n in 0..5 {
        let key = format!("vault:people/note {n}.md");
        let node = program.kernel.log().read(&space(), |tx| {
            tx.node_by_key("", Kind::Document, &key, When::Now)
        })?;
        let body = node.map(|it| it.body);
        if program.has_vault {
            let dir = Dir::open(&program.home.path().join("vault"))?;
            let file = dir.read(&format!("people/note {n}.md"), 1 << 20).ok();
            let file = file.and_then(|it| String::from_utf8(it).ok());
            if file != body {
                return Err(wrong(format!(
                    "the file of note {n} is not what its node says: {file:?} and {body:?}"
                )));
            }
        }
        all.push((key, body.into()));
    }
    Ok(all)
}

/// The texts of a field, wherever it is, in order.
fn texts(value: &Value, field: &str) -> Value {
    fn collect(value: &Value, field: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (name, it) in fields {
                    match it {
                        Value::String(text) if name == field => {
                            found.insert(text.clone());
                        }
                        other => collect(other, field, found),
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|it| collect(it, field, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    collect(value, field, &mut found);
    json!(found)
}

/// Without times, and without scores that depend on what was asked before.
fn stripped(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_kept = |name: &str| {
                ![
                    "executionTime",
                    // They depend on everything that is searched, files of this machine too.
                    "relevance",
                    "quality_score",
                    "first_seen",
                    "created_at",
                    "last_seen",
                    "updated_at",
                    "path",
                ]
                .contains(&name)
            };
            let fields = fields.into_iter().filter(|it| is_kept(&it.0));
            fields.map(|(name, it)| (name, stripped(it))).collect()
        }
        Value::Array(list) => list.into_iter().map(stripped).collect(),
        other => other,
    }
}
