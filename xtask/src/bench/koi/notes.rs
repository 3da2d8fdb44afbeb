//! What one more note costs among many: a new one, one about new entities, a changed one, a removed one.

use super::super::fixture;
use super::super::wasm::programs::Programs;
use super::super::wasm::server::Server;
use super::super::wasm::table::Table;
use super::{Graph, once, settle};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Changes of each kind.
const CHANGES: usize = 20;

/// One change, and what must be found afterwards.
struct Change {
    /// The path and the text of a note to write; without a text the file is removed.
    path: String,
    text: Option<String>,
    /// A label, and whether somebody must have it.
    label: String,
    is_known: bool,
}

pub(super) fn run(
    programs: &Programs,
    root: &Path,
    graph: &Graph,
    n_notes: usize,
    table: &mut Table,
) -> Result<()> {
    let (notes, data) = (root.join("notes"), root.join("data"));
    let n_notes = n_notes.min(graph.entities.len());
    if !notes.exists() {
        write_vault(&notes, graph, n_notes)?;
    }
    fs::create_dir_all(&data)?;
    let mut command = programs.mcp(&data);
    command.env("VAULT_PATH", &notes);
    let mut server = Server::start(command)?;
    let (began, before) = (Instant::now(), server.cpu()?);
    resolve(&mut server, &graph.entities[0].0, true)?;
    let took = once(began.elapsed(), server.cpu()?.saturating_sub(before));
    table.row(
        &format!("a vault of {n_notes} notes becomes the graph"),
        "30 s",
        &took,
        "",
    );
    settle(&server)?;
    // The first change has every statement read once; those after it are followed one by one.
    let (began, before) = (Instant::now(), server.cpu()?);
    make(&mut server, &notes, &new_note(graph, n_notes, CHANGES))?;
    let took = once(began.elapsed(), server.cpu()?.saturating_sub(before));
    table.row("the first change of a process, resolved", "", &took, "");
    type Kind<'a> = (&'a str, &'a dyn Fn(usize) -> Change);
    let kinds: [Kind<'_>; 4] = [
        ("one more note, about known entities, resolved", &|n| {
            new_note(graph, n_notes, n)
        }),
        ("one more note, about new entities, resolved", &|n| Change {
            path: format!("People/New Two {n}.md"),
            text: Some(format!(
                "---\nknows: \"[[Stranger {n}]]\"\naffiliation: \"[[Firm {n}]]\"\n---\n# New Two {n}\n\n{}\n",
                fixture::words(n as u64, 600)
            )),
            label: format!("New Two {n}"),
            is_known: true,
        }),
        ("a changed note, resolved", &|n| Change {
            path: format!("People/New One {n}.md"),
            text: Some(format!(
                "---\naliases: [changed {n}]\nknows: \"[[{}]]\"\n---\n# New One {n}\n",
                other(graph, n_notes, n + 500)
            )),
            label: format!("changed {n}"),
            is_known: true,
        }),
        ("a removed note, resolved", &|n| Change {
            path: format!("People/New One {n}.md"),
            text: None,
            label: format!("changed {n}"),
            is_known: false,
        }),
    ];
    for (what, change) in kinds {
        settle(&server)?;
        let before = server.cpu()?;
        let mut walls = Vec::new();
        for n in 0..CHANGES {
            let change = change(n);
            let began = Instant::now();
            make(&mut server, &notes, &change)?;
            walls.push(began.elapsed());
        }
        let used = server.cpu()?.saturating_sub(before);
        table.row(
            what,
            "20 ms",
            &super::super::wasm::took(&mut walls, used),
            "",
        );
    }
    server.stop()?;
    // As it was, for a later run.
    for n in 0..=CHANGES {
        for path in [
            format!("People/New One {n}.md"),
            format!("People/New Two {n}.md"),
        ] {
            if notes.join(&path).exists() {
                fs::remove_file(notes.join(path))?;
            }
        }
    }
    Ok(())
}

fn new_note(graph: &Graph, n_notes: usize, n: usize) -> Change {
    let text = format!(
        "---\naliases: [newcomer {n}]\nknows: [\"[[{}]]\", \"[[{}]]\"]\n---\n# New One {n}\n\n{} [[{}]]\n",
        other(graph, n_notes, n),
        other(graph, n_notes, n + 100),
        fixture::words(n as u64, 600),
        other(graph, n_notes, n + 200),
    );
    Change {
        path: format!("People/New One {n}.md"),
        text: Some(text),
        label: format!("New One {n}"),
        is_known: true,
    }
}

fn other(graph: &Graph, n_notes: usize, n: usize) -> &str {
    &graph.entities[(n * 7_919) % n_notes].0
}

/// Makes a change and asks about it.
fn make(server: &mut Server, notes: &Path, change: &Change) -> Result<()> {
    match &change.text {
        Some(text) => {
            let note = json!({ "path": change.path, "content": text });
            server.call("vault_write_note", &note)?;
        }
        None => fs::remove_file(notes.join(&change.path))?,
    }
    resolve(server, &change.label, change.is_known)
}

fn resolve(server: &mut Server, label: &str, is_known: bool) -> Result<()> {
    let call = json!({ "name": "resolve_entity", "arguments": { "label": label } });
    let answer = server.ask("tools/call", &call)?;
    let is_sure = |it: &Value| it["confidence"].as_f64().is_some_and(|it| it >= 0.95);
    let candidates = answer["structuredContent"]["candidates"].as_array();
    let found = candidates.is_some_and(|it| it.iter().any(is_sure));
    ensure!(found == is_known, "`{label}` was resolved to {answer}");
    Ok(())
}

fn write_vault(notes: &Path, graph: &Graph, n_notes: usize) -> Result<()> {
    let folders = [
        "People",
        "Organizations",
        "Projects",
        "Practices",
        "Concepts",
    ];
    for folder in folders {
        fs::create_dir_all(notes.join(folder))?;
    }
    for (n, (name, kind)) in graph.entities.iter().take(n_notes).enumerate() {
        let folder = match *kind {
            "Person" => "People",
            "Organization" => "Organizations",
            "Project" => "Projects",
            "Practice" => "Practices",
            _ => "Concepts",
        };
        let other = |step: usize| &graph.entities[(n + step) % n_notes].0;
        let field = if *kind == "Person" {
            "knows"
        } else {
            "related"
        };
        let text = format!(
            "---\naliases: [nick {n}]\n{field}: [\"[[{}]]\", \"[[{}]]\"]\n---\n# {name}\n\n{} [[{}]]\n",
            other(1),
            other(17),
            fixture::words(n as u64, 600),
            other(5)
        );
        fs::write(notes.join(folder).join(format!("{name}.md")), text)?;
    }
    Ok(())
}
