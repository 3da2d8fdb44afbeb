//! Writes of every wing.

use super::program::Program;
use super::wrong;
use kenning_core::{Code, Result, SeededRandom};
use kenning_engine::koi::{StatedDocument, StatedEntity, StatedRelation};
use kenning_vault::Dir;
use serde_json::json;

pub(super) const NAMES: [&str; 6] = [
    "Ada Lovelace",
    "Grace Hopper",
    "Alan Turing",
    "Barbara Liskov",
    "Edsger Dijkstra",
    "Frances Allen",
];

fn one_of<'a>(draw: &SeededRandom, list: &[&'a str]) -> &'a str {
    let n = usize::try_from(draw.below(list.len() as u64)).unwrap_or_default();
    list.get(n).copied().unwrap_or_default()
}

/// One write of some wing. Gives the text of a memory that was stored.
pub(super) fn write(program: &Program, draw: &SeededRandom) -> Result<Option<String>> {
    if draw.below(5) == 0 {
        let text = format!("fact {} about {}", draw.below(1_000), one_of(draw, &NAMES));
        let input = json!({ "content": text, "memory_type": "fact" });
        return program.call("memory_store", input).map(|_| Some(text));
    }
    write_other(program, draw).map(|()| None)
}

fn write_other(program: &Program, draw: &SeededRandom) -> Result<()> {
    let n = draw.below(5);
    let caller = program.caller();
    let engine = program.board.engine();
    match draw.below(16) {
        0 | 1 if program.has_vault => {
            // Somebody removes the file of a note, and the program looks.
            let dir = Dir::open(&program.home.path().join("vault"))?;
            let name = format!("people/note {n}.md");
            if dir.exists(&name)? {
                dir.remove(&name)?;
            }
            engine.kg().generate_vault(&caller).map(drop)
        }
        0..=3 => {
            // One id on several nodes.
            let text = format!("belief {n} of {}", draw.below(9));
            let input = json!({ "content": text, "memory_type": "belief", "confidence": 0.5 });
            program.call("memory_store", input).map(drop)
        }
        4..=6 if program.has_vault => {
            let text = format!(
                "---\ntype: person\n---\n# Note {n}\n\nKnows [[note {}]] and {} ({}).\n",
                draw.below(5),
                one_of(draw, &NAMES),
                draw.below(100),
            );
            let input = json!({ "path": format!("people/note {n}.md"), "content": text });
            program.call("vault_write_note", input).map(drop)
        }
        4..=8 => {
            let stated = StatedDocument {
                rid: format!("api:document-{n}"),
                source: None,
                content: Some(format!("A text about {}.", one_of(draw, &NAMES))),
                entities: (0..2)
                    .map(|_| StatedEntity {
                        name: one_of(draw, &NAMES).to_owned(),
                        kind: "person".to_owned(),
                        n_mentions: 1,
                        confidence: 0.9,
                        ..StatedEntity::default()
                    })
                    .collect(),
                relations: vec![StatedRelation {
                    subject: one_of(draw, &NAMES).to_owned(),
                    predicate: "knows".to_owned(),
                    object: one_of(draw, &NAMES).to_owned(),
                    confidence: 0.9,
                }],
            };
            engine.koi().ingest_statement(&caller, stated).map(drop)
        }
        9 => match engine
            .koi()
            .forget_statement(&caller, &format!("api:document-{n}"))
        {
            Err(error) if error.code != Code::NotFound => Err(error),
            _ => Ok(()),
        },
        10 | 11 => {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let numbers = [1.0, draw.below(9) as f64, draw.below(9) as f64];
            let input = json!({
                "id": format!("vector-{n}"), "vector": numbers,
                "metadata": { "title": format!("title {}", draw.below(9)) },
            });
            program.call("kg_vector_upsert", input).map(drop)
        }
        12 => {
            let removed = engine
                .kg()
                .delete_vector(&caller, None, &format!("vector-{n}"));
            removed.map(drop)
        }
        13 => {
            let input = json!({ "current_task": format!("task {}", draw.below(100)) });
            program.call("now_update", input).map(drop)
        }
        14 => {
            let text = format!("entry {}", draw.below(1_000));
            engine.omi().daily_append(&caller, &text).map(drop)
        }
        _ => publish(program, draw),
    }
}

/// Writes, signs and publishes a directive.
fn publish(program: &Program, draw: &SeededRandom) -> Result<()> {
    let (id, version) = (draw.below(3), draw.below(40));
    let text = format!(
        "---\nname: directive_{id}\nversion: 1.{version}.0\ncategory: test\ndescription: Number {id}\n---\n\n# Directive\n\n1. Step {version}.\n"
    );
    let dir = Dir::create(&program.home.path().join("project/.ai/directives/test"))?;
    dir.write(&format!("directive_{id}.md"), text.as_bytes())?;
    for action in ["sign", "publish"] {
        let input = json!({
            "item_type": "directive", "action": action, "item_id": format!("directive_{id}"),
            "parameters": {},
        });
        let reply = program.board.call("execute", input, &program.caller());
        let reply = reply.ok_or_else(|| wrong("no tool `execute`"))?;
        let answer = reply.to_json().to_string();
        // Another node owns it, or has published this version: which of them was first depends on what has arrived.
        let is_expected = ["belongs to", "already", "published"];
        if reply.is_error() && !is_expected.iter().any(|text| answer.contains(text)) {
            return Err(wrong(format!("`{action}`: {answer}")));
        }
    }
    Ok(())
}
