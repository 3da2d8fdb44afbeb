//! Edges between documents, from the links of the files.
//!
//! The edges of a document follow from all cards together. A digest of the edges that were last
//! written is stored for each document; where it differs, the edges in the store are corrected. So it
//! does not matter what a killed run left undone, or which process wrote which card.

use super::generate::step;
use super::library::{Doc, Library};
use super::{LINKED, cards};
use crate::Kg;
use kenning_audit::foreign::Merged;
use kenning_audit::{EdgeDraft, Tx};
use kenning_core::{Hash, NodeId, Result};
use kenning_graph::Relation;
use kenning_kernel::edges::{self, BY, Written};
use kenning_kernel::{Bucket, Caller, Text};
use kenning_store::When;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The number of documents whose edges are written in one transaction.
const BATCH: usize = 512;

/// Marks an edge as one of ours, among those of other crates.
const BY_LINKS: &str = "links";

/// The digests of the vault's notes, by the keys of their nodes.
const VAULT_LINKS: Bucket<Text> = Bucket::new("graph/links/vault");

/// The digests of a project's documents, by their paths.
fn bucket(project: &str) -> Bucket<Text> {
    Bucket::named(format!("graph/links/{}", cards::short(project)))
}

/// Where the digest of a document's edges is.
pub(super) fn bucket_of(path: &str, project: &str) -> Bucket<Text> {
    match path.starts_with("vault:") {
        true => VAULT_LINKS,
        false => bucket(project),
    }
}

/// An edge as it should be.
#[derive(Clone, Debug, PartialEq)]
struct Wanted {
    relation: String,
    to: NodeId,
    text: String,
    fragment: Option<String>,
}

/// The edges that a document should have.
struct Task {
    path: String,
    node: NodeId,
    wanted: Vec<Wanted>,
    digest: String,
}

/// Corrects the edges in the store to match the library. With `all`, of every document.
pub(super) fn write(engine: &Kg, caller: &Caller, library: &Library, all: bool) -> Result<Written> {
    let space = &caller.principal.space;
    let project = engine.graph_scope().project;
    let own = bucket(&project);
    let known: HashMap<String, Text> = engine.kernel.log().read(space, |tx| {
        let mut known: HashMap<_, _> = own.list_readable(tx)?.into_iter().collect();
        known.extend(VAULT_LINKS.list_readable(tx)?);
        Ok(known)
    })?;
    let is_written =
        |path: &str, digest: &str| !all && known.get(path).is_some_and(|it| it.0 == digest);
    let docs = library.docs.iter();
    let tasks = docs
        .filter_map(|it| task(library, it, is_written))
        .collect();
    write_all(engine, caller, tasks)
}

/// Corrects the edges of some notes of the vault.
pub(super) fn write_notes(
    engine: &Kg,
    caller: &Caller,
    library: &Library,
    notes: &[&Doc],
) -> Result<Written> {
    let known: HashMap<&str, Text> = engine.kernel.log().read(&caller.principal.space, |tx| {
        let mut known = HashMap::new();
        for doc in notes {
            if let Some(digest) = VAULT_LINKS.get_readable(tx, &doc.path)? {
                known.insert(doc.path.as_str(), digest);
            }
        }
        Ok(known)
    })?;
    let is_written = |path: &str, digest: &str| known.get(path).is_some_and(|it| it.0 == digest);
    let docs = notes.iter();
    let tasks = docs
        .filter_map(|it| task(library, it, is_written))
        .collect();
    write_all(engine, caller, tasks)
}

fn task(library: &Library, doc: &Doc, is_written: impl Fn(&str, &str) -> bool) -> Option<Task> {
    let digest = digest(library, doc);
    if is_written(&doc.path, &digest) {
        return None;
    }
    Some(Task {
        path: doc.path.clone(),
        node: doc.card.node,
        wanted: wanted(library, doc),
        digest,
    })
}

fn write_all(engine: &Kg, caller: &Caller, mut tasks: Vec<Task>) -> Result<Written> {
    let space = &caller.principal.space;
    let project = engine.graph_scope().project;
    let total = tasks.len();
    let mut sum = Written::default();
    let mut done = 0;
    while !tasks.is_empty() {
        caller.check()?;
        let rest = tasks.split_off(tasks.len().min(BATCH));
        let batch = std::mem::replace(&mut tasks, rest);
        done += batch.len();
        let project = project.clone();
        let written = engine
            .kernel
            .log()
            .write_long(space, move |tx| write_batch(tx, &batch, &project))?;
        sum.added += written.added;
        sum.ended += written.ended;
        step(caller, 2, done, total, "documents linked");
    }
    Ok(sum)
}

fn wanted(library: &Library, doc: &Doc) -> Vec<Wanted> {
    let edges = doc.out.iter().map(|arc| {
        let link = doc.link(arc);
        Wanted {
            relation: link.relation().to_owned(),
            to: library.doc(arc.to).card.node,
            text: link.text.clone(),
            fragment: link.fragment.clone(),
        }
    });
    edges.collect()
}

fn digest(library: &Library, doc: &Doc) -> String {
    let mut bytes = Vec::new();
    for arc in &doc.out {
        let link = doc.link(arc);
        let fragment = link.fragment.as_deref();
        for part in [link.relation(), &link.text, fragment.unwrap_or_default()] {
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(0);
        }
        bytes.push(u8::from(fragment.is_some()));
        bytes.extend_from_slice(&library.doc(arc.to).card.node.0);
    }
    Hash::of(&bytes).to_string()[..16].to_owned()
}

fn write_batch(tx: &mut Tx<'_>, batch: &[Task], project: &str) -> Result<Written> {
    let mut written = Written::default();
    for task in batch {
        edges::reconcile(tx, task.node, BY_LINKS, drafts(task), &mut written)?;
        let digest = task.digest.as_str().into();
        bucket_of(&task.path, project).set(tx, &task.path, &digest)?;
    }
    if written.is_any() {
        let data = json!({
            "project": project, "documents": batch.len(), "added": written.added, "ended": written.ended,
        });
        tx.record(LINKED, data)?;
    }
    Ok(written)
}

/// Ends the links of documents that are gone because of what a peer wrote.
pub(crate) fn end_links(tx: &mut Tx<'_>, merged: &Merged) -> Result<()> {
    let mut written = Written::default();
    for id in &merged.nodes {
        if tx.node(*id, When::Now)?.is_none() {
            edges::reconcile(tx, *id, BY_LINKS, Vec::new(), &mut written)?;
        }
    }
    if written.is_any() {
        let data = json!({ "project": "", "added": written.added, "ended": written.ended });
        tx.record(LINKED, data)?;
    }
    Ok(())
}

fn drafts(task: &Task) -> Vec<EdgeDraft> {
    let drafts = task.wanted.iter().map(|edge| EdgeDraft {
        src: task.node,
        rel: edge.relation.clone(),
        dst: edge.to,
        weight: Relation::of_key(&edge.relation).weight(),
        props: props(edge),
    });
    drafts.collect()
}

fn props(wanted: &Wanted) -> Map<String, Value> {
    let mut props = Map::new();
    props.insert(BY.to_owned(), BY_LINKS.into());
    if !wanted.text.is_empty() {
        props.insert("text".to_owned(), wanted.text.as_str().into());
    }
    if let Some(fragment) = &wanted.fragment {
        props.insert("heading".to_owned(), fragment.as_str().into());
    }
    props
}
