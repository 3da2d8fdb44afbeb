//! Export and import: nodes and edges, for people.

use super::lines::{LineFault, read_line};
use crate::{Caller, Kernel, Scope};
use kenning_audit::{Draft, EdgeDraft, Passages, Tx};
use kenning_core::{Error, Hash, Hlc, Kind, NodeId, Result};
use kenning_store::{
    CREATED_ELSEWHERE_MS, EdgeFilter, Node, NodeFilter, When, check_json_depth, parse_json,
};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Write};

/// Nodes that are imported with one event.
const IMPORT_BATCH: usize = 500;
/// Lines of one import that wait for a second key.
const HELD_MAX: usize = 1_000;
/// Nodes that are exported from one page.
const EXPORT_PAGE: usize = 500;
/// The longest line of an import. The largest body that a node can have is 25 MiB, and JSON may need six
/// bytes for one of them.
const IMPORT_LINE_BYTES_MAX: u64 = 256 << 20;
/// The beginning of the year 2100, in milliseconds since 1970: no valid clock is beyond it.
const CREATED_MS_MAX: u64 = 4_102_444_800_000;

/// The number of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Nodes, or rows of any kind.
    pub rows: u64,
    /// Nodes. They are also counted among the rows.
    pub nodes: u64,
    /// Edges. They are also counted among the rows of a backup, including ended ones.
    pub edges: u64,
}

/// What became of the lines of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Nodes that are new here.
    pub created: u64,
    /// Nodes that were here under the same key, and got a new revision.
    pub updated: u64,
    /// Nodes that were here and say the same.
    pub unchanged: u64,
    /// Files that were here: their entries were added, or they were left as they are.
    pub kept_files: u64,
    /// The number of edges.
    pub edges: u64,
    /// Nodes that were erased here, and so are left out.
    pub forgotten: u64,
    /// Nodes and edges that wait for the signature of a second key.
    pub waiting: u64,
    /// The name of the write that waits.
    pub pending: Option<String>,
}

impl Imported {
    /// Nodes that were read.
    pub fn nodes(&self) -> u64 {
        self.created + self.updated + self.unchanged + self.kept_files + self.forgotten
    }
}

/// Imported files with their nodes, written by the domain crate that owns them; and imported nodes that must
/// not be written yet.
pub trait ImportedFiles {
    /// Whether a node waits for the signature of a second key before it is written.
    fn must_wait(&self, caller: &Caller, draft: &Draft) -> Result<bool>;

    /// Keeps lines aside until a second key signs them. Gives the name of the write.
    fn hold(&self, caller: &Caller, lines: Vec<Value>) -> Result<String>;

    /// The name of the file of a node's key, if it is one of these.
    fn file_of_key<'a>(&self, key: &'a str) -> Option<&'a str>;

    /// Whether the file exists.
    fn is_there(&self, caller: &Caller, name: &str) -> Result<bool>;

    /// Adds the text to the existing file.
    fn add(&self, caller: &Caller, name: &str, text: &str) -> Result<()>;

    /// Writes the file, whose node exists already.
    fn write(&self, caller: &Caller, name: &str, text: &str) -> Result<()>;
}

pub(super) fn write_failed(cause: std::io::Error) -> Error {
    Error::unavailable("the output could not be written").because(cause)
}

impl Kernel {
    /// Writes the nodes and edges of the caller's space, one JSON object a line.
    pub fn export(&self, caller: &Caller, out: &mut dyn Write) -> Result<Transferred> {
        caller.principal.require(Scope::Read)?;
        let mut done = Transferred::default();
        self.log.read_long(&caller.principal.space, |tx| {
            let mut after = None;
            loop {
                let page = tx.nodes(&NodeFilter::default(), When::Now, after, EXPORT_PAGE)?;
                let Some(last) = page.last() else { break };
                after = Some(last.id);
                for node in &page {
                    let line = json!({ "node": {
                        "id": node.id.to_string(), "kind": node.kind.as_str(),
                        "project": node.project, "key": node.key, "title": node.title,
                        "body": node.body, "props": node.props,
                        "created_ms": node.created_ms(), "updated_ms": node.updated.ms(),
                    }});
                    writeln!(out, "{line}").map_err(write_failed)?;
                    done.rows += 1;
                    done.nodes += 1;
                }
                caller.check()?;
                caller.progress(done.rows as f64, None, "nodes written");
            }
            for edge in tx.edges(&EdgeFilter::default(), When::Now, usize::MAX)? {
                let line = json!({ "edge": {
                    "src": edge.src.to_string(), "rel": edge.rel, "dst": edge.dst.to_string(),
                    "weight": edge.weight, "props": edge.props,
                }});
                writeln!(out, "{line}").map_err(write_failed)?;
                done.edges += 1;
            }
            out.flush().map_err(write_failed)
        })?;
        Ok(done)
    }

    /// Reads what [`Kernel::export`] wrote. A node keeps its id and its creation date; if its kind,
    /// project and key are known here, it becomes a new revision instead, and ids of edges are
    /// translated. A malformed line stops the import with an error that names it; the batches before
    /// it are kept, and running it again repeats nothing.
    pub fn import(
        &self,
        caller: &Caller,
        input: &mut dyn BufRead,
        wing: &dyn ImportedFiles,
    ) -> Result<Imported> {
        caller.principal.require(Scope::Write)?;
        let mut done = Imported::default();
        // Lines that wait for a second key, and the nodes that they are about.
        let mut held: Vec<Value> = Vec::new();
        let mut held_ids: HashSet<NodeId> = HashSet::new();
        let mut ids: HashMap<NodeId, NodeId> = HashMap::new();
        let mut batch = Vec::new();
        // Files that are also nodes, to be written after their nodes.
        let mut files: Vec<(String, String)> = Vec::new();
        let (mut n, mut line) = (0u64, String::new());
        loop {
            n += 1;
            let bad = |what: &str| {
                Error::invalid(format!("line {n}: {what}"))
                    .hint("each line is what `kenning export` writes")
            };
            match read_line(input, &mut line, IMPORT_LINE_BYTES_MAX) {
                Err(LineFault::TooLong) => {
                    return Err(Error::too_large(format!(
                        "line {n} has more than {IMPORT_LINE_BYTES_MAX} bytes"
                    ))
                    .hint("each line is what `kenning export` writes"));
                }
                Err(LineFault::Unreadable(cause)) => {
                    return Err(bad("it cannot be read").because(cause));
                }
                Ok(0) => break,
                Ok(_) => {}
            }
            if line.trim().is_empty() {
                continue;
            }
            let value = parse_json(&line).map_err(|it| bad(&it.to_string()))?;
            let entry = Entry::parse(&value).map_err(|it| bad(&it))?;
            let must_wait = match &entry {
                Entry::Node(node) => wing.must_wait(caller, &node.draft)?,
                Entry::Edge(edge) => held_ids.contains(&edge.src) || held_ids.contains(&edge.dst),
            };
            if must_wait {
                if held.len() == HELD_MAX {
                    return Err(bad(&format!(
                        "more than {HELD_MAX} lines would wait for a second key"
                    ))
                    .hint("import the file in parts"));
                }
                if let Entry::Node(node) = &entry {
                    held_ids.extend(node.id);
                }
                held.push(value);
                continue;
            }
            if let Entry::Node(imported) = &entry
                && let Some(file) = wing.file_of_key(&imported.draft.key)
            {
                let body = &imported.draft.body;
                if !wing.is_there(caller, file)? {
                    files.push((file.to_owned(), body.clone()));
                    batch.push(entry);
                    continue;
                }
                // An existing file stays, and its node with it.
                wing.add(caller, file, body)?;
                let key = imported.draft.key.clone();
                let node = self.log.read(&caller.principal.space, |tx| {
                    tx.node_by_key("", Kind::Document, &key, When::Now)
                })?;
                if let (Some(old), Some(node)) = (imported.id, node) {
                    ids.insert(old, node.id);
                }
                done.kept_files += 1;
                continue;
            }
            batch.push(entry);
            if batch.len() == IMPORT_BATCH {
                self.import_batch(caller, std::mem::take(&mut batch), &mut ids, &mut done)?;
            }
        }
        self.import_batch(caller, batch, &mut ids, &mut done)?;
        for (name, text) in files {
            wing.write(caller, &name, &text)?;
        }
        if !held.is_empty() {
            done.waiting = held.len() as u64;
            done.pending = Some(wing.hold(caller, held)?);
        }
        Ok(done)
    }

    /// Reads lines of an import inside a transaction of the caller's: those that waited. Gives the nodes that
    /// they are about.
    pub fn import_lines(&self, tx: &mut Tx<'_>, lines: &[Value]) -> Result<Vec<Node>> {
        let (mut known, mut done) = (HashMap::new(), Imported::default());
        let mut nodes = Vec::new();
        for line in lines {
            let entry = Entry::parse(line).map_err(Error::corrupt)?;
            let entry = self.prepare(entry);
            nodes.extend(import_entry(tx, entry, &mut known, &mut done)?);
        }
        let (nodes_read, edges) = (done.nodes(), done.edges);
        tx.record("Imported", json!({ "nodes": nodes_read, "edges": edges }))?;
        Ok(nodes)
    }

    /// Texts are cut, tokenized and hashed here, not while every other writer waits.
    fn prepare(&self, entry: Entry) -> (Entry, Passages) {
        match entry {
            Entry::Node(imported) => {
                let cut = (self.hooks.passages_of)(&imported.as_node());
                (Entry::Node(imported), Passages::from(cut))
            }
            edge => (edge, Passages::default()),
        }
    }

    fn import_batch(
        &self,
        caller: &Caller,
        batch: Vec<Entry>,
        ids: &mut HashMap<NodeId, NodeId>,
        done: &mut Imported,
    ) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        caller.check()?;
        let (mut known, mut counted) = (std::mem::take(ids), done.clone());
        let batch: Vec<(Entry, Passages)> = batch.into_iter().map(|it| self.prepare(it)).collect();
        let (known, counted) = self.log.write(&caller.principal.space, move |tx| {
            let before = counted.clone();
            for entry in batch {
                import_entry(tx, entry, &mut known, &mut counted)?;
            }
            let nodes = counted.nodes() - before.nodes();
            let edges = counted.edges - before.edges;
            tx.record("Imported", json!({ "nodes": nodes, "edges": edges }))?;
            Ok((known, counted))
        })?;
        (*ids, *done) = (known, counted);
        caller.progress((done.nodes() + done.edges) as f64, None, "lines read");
        Ok(())
    }
}

/// Writes a line of an import. Gives the node, if it is one.
fn import_entry(
    tx: &mut Tx<'_>,
    (entry, cut): (Entry, Passages),
    known: &mut HashMap<NodeId, NodeId>,
    done: &mut Imported,
) -> Result<Option<Node>> {
    match entry {
        Entry::Node(imported) => {
            let old = imported.id;
            if was_erased(tx, &imported)? {
                done.forgotten += 1;
                known.extend(old.map(|it| (it, ERASED)));
                return Ok(None);
            }
            let node = import_node(tx, *imported, &cut, done)?;
            if let Some(old) = old {
                known.insert(old, node.id);
            }
            Ok(Some(node))
        }
        Entry::Edge(mut draft) => {
            draft.src = known.get(&draft.src).copied().unwrap_or(draft.src);
            draft.dst = known.get(&draft.dst).copied().unwrap_or(draft.dst);
            if [draft.src, draft.dst].contains(&ERASED) {
                return Ok(None);
            }
            for end in [draft.src, draft.dst] {
                if tx.node(end, When::Now)?.is_none() {
                    return Err(
                        Error::not_found("node", end).hint("an edge needs both of its nodes")
                    );
                }
            }
            tx.put_edge(draft)?;
            done.edges += 1;
            Ok(None)
        }
    }
}

/// In place of the id of a node that was erased here: its edges are left out too.
const ERASED: NodeId = NodeId([0; 16]);

/// Whether it is what was erased here: by its id, or by its key, unless somebody has stored that again.
fn was_erased(tx: &Tx<'_>, imported: &ImportedNode) -> Result<bool> {
    let ImportedNode { id, draft, .. } = imported;
    let erased = tx.tombstones();
    if let Some(id) = id
        && erased.has_node(*id)?
    {
        return Ok(true);
    }
    let (project, kind, key) = (&draft.project, draft.kind, &draft.key);
    Ok(erased.key_erased_at(project, kind, key)?.is_some()
        && tx.node_by_key(project, kind, key, When::Now)?.is_none())
}

fn import_node(
    tx: &mut Tx<'_>,
    imported: ImportedNode,
    cut: &Passages,
    done: &mut Imported,
) -> Result<Node> {
    let ImportedNode {
        id,
        created_ms,
        mut draft,
    } = imported;
    let known = tx.node_by_key(&draft.project, draft.kind, &draft.key, When::Now)?;
    let made_here = known
        .as_ref()
        .map_or_else(|| tx.now().ms(), |it| it.created.ms());
    // A node with the same date is left alone, so that importing one's own export changes nothing.
    match created_ms {
        Some(at) if at < made_here => {
            draft
                .props
                .insert(CREATED_ELSEWHERE_MS.to_owned(), at.into());
        }
        _ => drop(draft.props.remove(CREATED_ELSEWHERE_MS)),
    }
    let node = match id {
        Some(id) => tx.put_node_as(id, draft)?,
        None => tx.put_node(draft)?,
    };
    tx.put_hashed_passages(node.id, cut)?;
    match known {
        None => done.created += 1,
        Some(known) if known.rev == node.rev => done.unchanged += 1,
        Some(_) => done.updated += 1,
    }
    Ok(node)
}

/// An imported node, with its old id and date.
struct ImportedNode {
    id: Option<NodeId>,
    created_ms: Option<u64>,
    draft: Draft,
}

impl ImportedNode {
    /// A node that says the same, to cut it by; when and by whom it is made does not matter for that.
    fn as_node(&self) -> Node {
        let draft = self.draft.clone();
        Node {
            id: self.id.unwrap_or(NodeId([0; 16])),
            kind: draft.kind,
            project: draft.project,
            key: draft.key,
            title: draft.title,
            body: draft.body,
            props: draft.props,
            created: Hlc::default(),
            updated: Hlc::default(),
            hash: Hash::default(),
            rev: 1,
        }
    }
}

/// The longest key of a node that comes from elsewhere, in bytes.
const KEY_BYTES_MAX: usize = 4_096;

/// The id of a memory must match its key, so that it cannot pose as another one.
fn check_memory(draft: &Draft) -> Result<(), String> {
    if draft.key.len() > KEY_BYTES_MAX || draft.key.contains('\0') {
        return Err(format!(
            "`key` has a NUL or more than {KEY_BYTES_MAX} bytes"
        ));
    }
    let given = draft.key.strip_prefix("id:");
    match (draft.props.get("memory_id"), given) {
        (None, None) => {}
        (Some(Value::String(id)), Some(key)) if id == key => {}
        (id, _) => {
            let id = id.map_or("nothing".to_owned(), Value::to_string);
            return Err(format!("`memory_id` is {id}, which does not match `key`"));
        }
    }
    match draft.props.get("memory_type") {
        None => Ok(()),
        Some(Value::String(it)) if it.parse::<kenning_memory::types::MemoryType>().is_ok() => {
            Ok(())
        }
        Some(other) => Err(format!("`memory_type` is {other}, which is unknown")),
    }
}

/// A line of an import.
enum Entry {
    Node(Box<ImportedNode>),
    Edge(EdgeDraft),
}

impl Entry {
    fn parse(value: &Value) -> Result<Self, String> {
        let text = |it: &Value, name: &str| match it.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(format!("`{name}` is {other}, not a string")),
            None => Err(format!("`{name}` is missing")),
        };
        let or_empty = |it: &Value, name: &str| match it.get(name) {
            None => Ok(String::new()),
            Some(_) => text(it, name),
        };
        let props = |it: &Value| match it.get("props") {
            None => Ok(Map::new()),
            Some(Value::Object(props)) => check_json_depth("`props`", props)
                .map(|()| props.clone())
                .map_err(|error| error.message),
            Some(other) => Err(format!("`props` is {other}, not an object")),
        };
        if let Some(it) = value.get("node") {
            let id = it.get("id").map(|_| text(it, "id")?.parse()).transpose()?;
            let draft = Draft {
                kind: text(it, "kind")?.parse::<Kind>()?,
                project: or_empty(it, "project")?,
                key: text(it, "key")?,
                title: or_empty(it, "title")?,
                body: or_empty(it, "body")?,
                props: props(it)?,
            };
            if draft.kind == Kind::Memory {
                check_memory(&draft)?;
            }
            let created_ms = match it.get("created_ms") {
                None => None,
                Some(at) => match at.as_u64() {
                    None => {
                        return Err(format!(
                            "`created_ms` is {at}, not a number of milliseconds since 1970"
                        ));
                    }
                    Some(ms) if ms >= CREATED_MS_MAX => {
                        return Err(format!(
                            "`created_ms` is {ms}, which is after the year 2099; it is a number of \
                             milliseconds since 1970"
                        ));
                    }
                    ms => ms,
                },
            };
            return Ok(Self::Node(Box::new(ImportedNode {
                id,
                created_ms,
                draft,
            })));
        }
        if let Some(it) = value.get("edge") {
            let weight = match it.get("weight") {
                None => 1.0,
                Some(weight) => weight
                    .as_f64()
                    .ok_or_else(|| format!("`weight` is {weight}, not a number"))?,
            };
            return Ok(Self::Edge(EdgeDraft {
                src: text(it, "src")?.parse()?,
                rel: text(it, "rel")?,
                dst: text(it, "dst")?.parse()?,
                weight,
                props: props(it)?,
            }));
        }
        Err("neither `node` nor `edge`".to_owned())
    }
}
