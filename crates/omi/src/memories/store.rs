//! Storing memories.

use super::forget::refuse_forgotten;
use super::{MEMORY_BYTES_MAX, Memory, find_memory, given_key, memory, memory_id};
use crate::Omi;
use kenning_audit::{Draft, EdgeDraft, Passages, Tx};
use kenning_core::{Error, Hash, Kind, NodeId, Result};
use kenning_kernel::{Caller, Scope, projects};
use kenning_memory::types::{Confidence, MemoryType, relation};
use kenning_search::passages;
use kenning_store::{CREATED_ELSEWHERE_MS, Node, When};
use serde_json::{Map, Value, json};

/// The longest name that a caller may give a memory.
const ID_BYTES_MAX: usize = 200;

/// Storing more memories than this at once may take longer than a call usually waits.
const LONG_FROM: usize = 20;

/// A memory to store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewMemory {
    /// Its text.
    pub content: String,
    /// What kind of memory it is.
    pub memory_type: MemoryType,
    /// Its confidence, from 0 to 1.
    pub confidence: Option<f64>,
    /// Memories it is related to.
    pub related_to: Vec<String>,
    /// A memory that this one replaces.
    pub supersedes: Option<String>,
    /// The id that the caller chose, if any.
    pub memory_id: Option<String>,
    /// Tags to filter by.
    pub tags: Vec<String>,
    /// The session that it belongs to: memories of one session are context for each other. Bulk
    /// imports have none.
    pub session_id: Option<String>,
    /// The id of the project that it belongs to: the caller's if none is named, and `""` for what is global.
    pub project: Option<String>,
    /// Where it came from, if nobody stored it as it is: `capture`, or the program that it was imported from.
    pub source: Option<String>,
    /// When it was said or happened, in milliseconds since 1970, if that was before it is stored.
    pub said_ms: Option<u64>,
}

impl NewMemory {
    /// The projects in which the ids that it names are looked for.
    pub(super) fn projects(&self) -> Vec<String> {
        let own = self.project.clone().filter(|it| !it.is_empty());
        own.into_iter().chain([String::new()]).collect()
    }
}

/// The result of storing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMemory {
    /// Its id.
    pub id: String,
    /// Whether the same memory existed already.
    pub duplicate: bool,
    /// Whether it waits for a second key, and is not stored yet: then this is the name of the write.
    pub is_pending: bool,
}

impl Omi {
    /// Stores memories, all of them or none.
    pub fn store_memories(
        &self,
        caller: &Caller,
        mut new: Vec<NewMemory>,
    ) -> Result<Vec<StoredMemory>> {
        caller.principal.require(Scope::Write)?;
        let own = self.kernel.project_of(caller)?;
        for memory in &mut new {
            memory.project.get_or_insert_with(|| own.clone());
            // What its author marked as private is kept nowhere, whoever stores it.
            if let Some(content) = kenning_capture::without_private(&memory.content) {
                memory.content = content.trim().to_owned();
            }
        }
        let n = new.len();
        let many = n > 1;
        for (i, memory) in new.iter().enumerate() {
            check(memory).map_err(|error| if many { at(i, error) } else { error })?;
        }
        if let Some(id) = self.propose(caller, &new)? {
            let waiting = StoredMemory {
                id,
                duplicate: false,
                is_pending: true,
            };
            return Ok(vec![waiting; n]);
        }
        let space = &caller.principal.space;
        // Cut and hashed here, so that other writers do not wait.
        let new: Vec<Prepared> = new.into_iter().map(Prepared::new).collect();
        let is_in_project = |it: &Prepared| it.new.project.as_ref() == Some(&own);
        let project = caller.principal.project.clone();
        let project = project.filter(|_| new.iter().any(is_in_project));
        let store_all = move |tx: &mut Tx<'_>| {
            if let Some(project) = &project {
                projects::remember(tx, project, &own)?;
            }
            let mut stored = Vec::with_capacity(new.len());
            for (i, memory) in new.into_iter().enumerate() {
                stored.push(
                    store(tx, memory).map_err(|error| if many { at(i, error) } else { error })?,
                );
            }
            Ok(stored)
        };
        let stored = if n > LONG_FROM {
            self.kernel.log().write_long(space, store_all)?
        } else {
            self.kernel.log().write(space, store_all)?
        };
        if stored.iter().any(|it| !it.duplicate) {
            self.link_alike_later(space);
            self.kernel.embed_later(space);
        }
        Ok(stored)
    }
}

/// Adds to an error which of several memories was refused.
fn at(i: usize, error: Error) -> Error {
    let message = format!("memory {}: {}", i + 1, error.message);
    Error { message, ..error }
}

fn check(memory: &NewMemory) -> Result<()> {
    if memory.content.trim().is_empty() {
        return Err(Error::invalid("`content` is empty").hint("give the text to remember"));
    }
    if memory.content.len() > MEMORY_BYTES_MAX {
        return Err(Error::too_large(format!(
            "`content`: {} bytes are more than the {MEMORY_BYTES_MAX} of a memory",
            memory.content.len()
        ))
        .hint("split it into several memories, joined by `related_to`"));
    }
    if let Some(confidence) = memory.confidence {
        Confidence::try_from(confidence)?;
    }
    check_name("memory_id", memory.memory_id.as_deref())?;
    check_name("session_id", memory.session_id.as_deref())
}

fn check_name(field: &str, name: Option<&str>) -> Result<()> {
    if let Some(name) = name
        && (name.is_empty()
            || name.len() > ID_BYTES_MAX
            || name.chars().any(|c| c.is_control() || c.is_whitespace()))
    {
        return Err(
            Error::invalid(format!("`{field}`: {name:?} is not a valid id")).hint(format!(
                "use 1 to {ID_BYTES_MAX} bytes without spaces, or leave it out"
            )),
        );
    }
    Ok(())
}

/// Same content, type and confidence: the same memory.
fn content_key(memory: &NewMemory) -> String {
    let confidence = memory
        .confidence
        .map(|it| it.to_bits().to_string())
        .unwrap_or_default();
    let text = format!("{}\0{}\0{}", memory.memory_type, confidence, memory.content);
    format!("content:{}", Hash::of(text.as_bytes()))
}

/// A memory with its passages.
pub(super) struct Prepared {
    new: NewMemory,
    content_key: String,
    passages: Passages,
}

impl Prepared {
    pub(super) fn new(new: NewMemory) -> Self {
        Self {
            content_key: content_key(&new),
            passages: passages("", &new.content).into(),
            new,
        }
    }
}

pub(super) fn store(tx: &mut Tx<'_>, prepared: Prepared) -> Result<StoredMemory> {
    let Prepared {
        new,
        content_key: key,
        passages,
    } = prepared;
    let project = new.project.clone().unwrap_or_default();
    let key = match &new.memory_id {
        Some(id) => {
            // Another project may use the same name for something else.
            let own = std::slice::from_ref(&project);
            if let Some(known) = find_memory(&**tx, own, id)? {
                return same_or_taken(id, &known, &new);
            }
            refuse_forgotten(&**tx, &project, id)?;
            given_key(id)
        }
        None => match tx.node_by_key(&project, Kind::Memory, &key, When::Now)? {
            None => key,
            Some(known) if !known.props.contains_key("superseded_by") => {
                relate(tx, &known, &new)?;
                return Ok(StoredMemory {
                    id: memory_id(&known),
                    duplicate: true,
                    is_pending: false,
                });
            }
            // A retracted memory may be stored again.
            Some(_) => format!("{key}:{}", tx.next_seq()),
        },
    };
    let node = tx.put_node(Draft {
        kind: Kind::Memory,
        project: project.clone(),
        key,
        title: String::new(),
        body: new.content.clone(),
        props: props(&new),
    })?;
    tx.put_hashed_passages(node.id, &passages)?;
    let id = memory_id(&node);
    put_relations(tx, node.id, &new)?;
    if let Some(old) = &new.supersedes {
        supersede(tx, &new.projects(), old, &node)?;
    }
    let mut data = json!({
        "memory_id": id, "memory_type": new.memory_type.as_str(), "confidence": new.confidence,
    });
    if !project.is_empty() {
        data["project"] = project.into();
    }
    tx.record("MemoryStoredEvent", data)?;
    Ok(StoredMemory {
        id,
        duplicate: false,
        is_pending: false,
    })
}

fn props(new: &NewMemory) -> Map<String, Value> {
    let mut props = Map::new();
    props.insert("memory_type".to_owned(), new.memory_type.as_str().into());
    if let Some(confidence) = new.confidence {
        props.insert("confidence".to_owned(), confidence.into());
    }
    if let Some(id) = &new.memory_id {
        props.insert("memory_id".to_owned(), id.as_str().into());
    }
    if !new.tags.is_empty() {
        props.insert("tags".to_owned(), new.tags.clone().into());
    }
    if let Some(session) = &new.session_id {
        props.insert("session_id".to_owned(), session.as_str().into());
    }
    if let Some(source) = &new.source {
        props.insert("source".to_owned(), source.as_str().into());
    }
    if let Some(said_ms) = new.said_ms {
        props.insert(CREATED_ELSEWHERE_MS.to_owned(), said_ms.into());
    }
    props
}

/// An id that is taken by the same memory is a duplicate; by another, a conflict.
fn same_or_taken(id: &str, known: &Node, new: &NewMemory) -> Result<StoredMemory> {
    if known.body == new.content {
        return Ok(StoredMemory {
            id: memory_id(known),
            duplicate: true,
            is_pending: false,
        });
    }
    Err(
        Error::conflict(format!("`memory_id`: `{id}` is the id of another memory"))
            .hint("choose another name, or store a memory that `supersedes` it"),
    )
}

/// A duplicate may still add relations and tags.
fn relate(tx: &mut Tx<'_>, known: &Node, new: &NewMemory) -> Result<()> {
    put_relations(tx, known.id, new)?;
    let mut tags = Memory::of(known).tags;
    let further = new.tags.iter().filter(|it| !tags.contains(it));
    let further: Vec<String> = further.cloned().collect();
    if !further.is_empty() {
        tags.extend(further.iter().cloned());
        let mut props = known.props.clone();
        props.insert("tags".to_owned(), tags.into());
        put_props(tx, known.clone(), props)?;
    }
    if let Some(old) = &new.supersedes {
        supersede(tx, &new.projects(), old, known)?;
    }
    if !new.related_to.is_empty() || new.supersedes.is_some() || !further.is_empty() {
        tx.record("MemoryRelated", json!({ "memory_id": memory_id(known) }))?;
    }
    Ok(())
}

/// The next revision of a memory, with other properties.
pub(super) fn put_props(tx: &mut Tx<'_>, node: Node, props: Map<String, Value>) -> Result<Node> {
    tx.put_node(Draft {
        kind: Kind::Memory,
        project: node.project,
        key: node.key,
        title: node.title,
        body: node.body,
        props,
    })
}

fn put_relations(tx: &mut Tx<'_>, from: NodeId, new: &NewMemory) -> Result<()> {
    for id in &new.related_to {
        let to = memory(&**tx, &new.projects(), "related_to", id)?;
        if to.id == from {
            return Err(
                Error::invalid(format!("`related_to`: `{id}` is this memory itself"))
                    .hint("name others"),
            );
        }
        tx.put_edge(EdgeDraft {
            src: from,
            rel: relation::RELATED_TO.to_owned(),
            dst: to.id,
            weight: relation::RELATED_WEIGHT,
            props: Map::new(),
        })?;
    }
    Ok(())
}

/// The old memory stays, and says what superseded it and when.
fn supersede(tx: &mut Tx<'_>, projects: &[String], old: &str, new: &Node) -> Result<()> {
    let old_node = memory(&**tx, projects, "supersedes", old)?;
    if old_node.id == new.id {
        return Err(
            Error::invalid(format!("`supersedes`: `{old}` is this memory itself"))
                .hint("name an earlier one"),
        );
    }
    if let Some(by) = old_node.props.get("superseded_by").and_then(Value::as_str) {
        return Err(
            Error::conflict(format!("`supersedes`: `{old}` was superseded by `{by}`"))
                .hint("supersede that one"),
        );
    }
    let mut props = old_node.props.clone();
    props.insert("superseded_by".to_owned(), memory_id(new).into());
    props.insert("superseded_at_ms".to_owned(), tx.now().ms().into());
    tx.put_edge(EdgeDraft {
        src: new.id,
        rel: relation::SUPERSEDES.to_owned(),
        dst: old_node.id,
        weight: 1.0,
        props: Map::new(),
    })?;
    put_props(tx, old_node, props)?;
    Ok(())
}
