//! Backup and restore (everything, to the byte), export and import (nodes and edges, for people).
//!
//! A backup is text: a first line that names it, then one row a line, then a last line with the
//! number of rows and the hash of all bytes before it. The node's secret key is not in it: whoever
//! restores goes on under a new identity, and the old events stay valid.
//!
//! Every line is read back as it is written, and the roots are computed again from the rows: the last
//! line, without which it is no backup, is written only if a restore could read all of it.

use crate::{Caller, Kernel, Scope};
use kenning_audit::archive::{self, Check, Checked};
use kenning_audit::{Draft, EdgeDraft, Tx};
use kenning_core::{Error, Kind, NodeId, Result, Space};
use kenning_store::{
    CREATED_ELSEWHERE_MS, EdgeFilter, Node, NodeFilter, Passage, When, check_json_depth, parse_json,
};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{BufRead, Read, Write};

const FORMAT: &str = "kenning-backup";
const VERSION: u64 = 1;
/// Nodes that are imported with one event.
const IMPORT_BATCH: usize = 500;
/// Nodes that are exported from one page.
const EXPORT_PAGE: usize = 500;
/// The longest line of an import. The largest body that a node can have is 25 MiB, and JSON may need six
/// bytes for one of them.
const IMPORT_LINE_BYTES_MAX: u64 = 256 << 20;
/// The longest line of a backup, which has bytes of any kind as two digits each.
const BACKUP_LINE_BYTES_MAX: u64 = 512 << 20;
/// The first moment of the year 2100, in milliseconds since 1970: no clock that writes is beyond it.
const CREATED_MS_MAX: u64 = 4_102_444_800_000;

/// How much was moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Nodes, or rows of any kind.
    pub rows: u64,
    /// Edges. Among the rows of a backup they are counted too, those that ended as well.
    pub edges: u64,
}

/// What a restore brought back.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    /// Rows of every space.
    pub rows: u64,
    /// The spaces.
    pub spaces: Vec<Space>,
    /// Tokens that were in it and are not valid here.
    pub tokens_revoked: u64,
}

/// Files that come with their nodes from elsewhere, by whoever writes such files.
pub trait ImportedFiles {
    /// The name of the file that a node's key names, if it is of these.
    fn file_of_key<'a>(&self, key: &'a str) -> Option<&'a str>;

    /// Whether the file is there already.
    fn is_there(&self, caller: &Caller, name: &str) -> Result<bool>;

    /// Adds the text to the file that is there.
    fn add(&self, caller: &Caller, name: &str, text: &str) -> Result<()>;

    /// Writes the file, whose node is there already.
    fn write(&self, caller: &Caller, name: &str, text: &str) -> Result<()>;
}

fn write_failed(cause: std::io::Error) -> Error {
    Error::unavailable("the output could not be written").because(cause)
}

/// Hashes what it passes on.
struct Hashing<'a> {
    out: &'a mut dyn Write,
    hasher: blake3::Hasher,
}

impl Hashing<'_> {
    /// Writes a line; gives what a restore would read.
    fn line(&mut self, value: &Value) -> Result<Value> {
        let line = format!("{value}\n");
        self.hasher.update(line.as_bytes());
        self.out.write_all(line.as_bytes()).map_err(write_failed)?;
        parse_json(&line).map_err(|cause| {
            Error::corrupt("a row cannot be read back from a backup").because(cause)
        })
    }
}

/// Reads a backup that was just written, to its last row, as a restore would.
pub fn read_back(input: impl BufRead) -> Result<()> {
    check_backup(input, Checked::Rows).map(drop)
}

impl Kernel {
    /// Writes a consistent copy of every space. Whether somebody may is asked by whoever calls this. The space
    /// `first` comes first, and `begun` is called as soon as no later write to it can be in the copy.
    pub fn dump(
        &self,
        caller: &Caller,
        first: &Space,
        begun: impl FnOnce(),
        out: &mut dyn Write,
    ) -> Result<Transferred> {
        let mut out = Hashing {
            out,
            hasher: blake3::Hasher::new(),
        };
        out.line(&json!({ "format": FORMAT, "version": VERSION }))?;
        let mut done = Transferred::default();
        let mut begun = Some(begun);
        let mut spaces = self.log.store().spaces()?;
        spaces.sort_by_key(|it| it != first);
        for space in spaces {
            out.line(&json!({ "space": space.as_str() }))?;
            let mut check = Check::new(Checked::Rows);
            self.log.read(&space, |tx| {
                if let Some(begun) = begun.take() {
                    // A snapshot is of the moment of its first read.
                    tx.head()?;
                    begun();
                }
                archive::dump(tx, &mut |row| {
                    done.rows += 1;
                    done.edges += u64::from(row["table"] == "edges");
                    if done.rows.is_multiple_of(1_000) {
                        caller.check()?;
                        caller.progress(done.rows as f64, None, "rows written");
                    }
                    check.row(&out.line(&row)?)
                })
            })?;
            check
                .finish()
                .map_err(|error| damaged_store(&space, error))?;
        }
        let hash = out.hasher.finalize().to_hex().to_string();
        out.line(&json!({ "rows": done.rows, "hash": hash }))?;
        out.out.flush().map_err(write_failed)?;
        Ok(done)
    }

    /// Puts a backup into an empty store and verifies the whole.
    ///
    /// A token may have been revoked since the backup was made, which the backup cannot know: so its tokens are
    /// revoked here unless `keep_tokens` says that they are good.
    pub fn restore(
        &self,
        caller: &Caller,
        keep_tokens: bool,
        verify: impl Fn(&Space) -> Result<kenning_audit::Report>,
        open: impl Fn() -> Result<Box<dyn BufRead + Send>>,
    ) -> Result<Restored> {
        caller.principal.require(Scope::Admin)?;
        // Twice through: nothing is written before the whole file is known to be whole.
        let spaces = check_backup(open()?, Checked::Rows)?;
        self.refuse_occupied_spaces(&spaces)?;
        let mut restored = Restored::default();
        for space in &spaces {
            let rows = rows_of(open()?, space.clone());
            restored.rows += archive::load(self.log.store(), space, rows)?;
            let report = verify(space)?;
            if let Some(fault) = report.faults.first() {
                return Err(Error::corrupt(format!("space {space}: {fault}"))
                    .hint("the backup was made from a damaged store"));
            }
        }
        if !keep_tokens {
            restored.tokens_revoked = self.revoke_restored_tokens(caller)?;
        }
        restored.spaces = spaces;
        Ok(restored)
    }

    /// Nothing is written into any space before all of them are known to be empty.
    fn refuse_occupied_spaces(&self, spaces: &[Space]) -> Result<()> {
        for space in spaces {
            if self.log.roots(space)?.seq > 0 {
                return Err(Error::conflict(format!("the space `{space}` is not empty"))
                    .hint("restore into a new data directory: `--data DIR`"));
            }
        }
        Ok(())
    }

    /// Writes the nodes and edges of the caller's space, one JSON object a line.
    pub fn export(&self, caller: &Caller, out: &mut dyn Write) -> Result<Transferred> {
        caller.principal.require(Scope::Read)?;
        let mut done = Transferred::default();
        self.log.read(&caller.principal.space, |tx| {
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

    /// Reads what [`Kernel::export`] wrote. A node keeps its id and the date it was made; one of a kind,
    /// project and key that are known here gets a new revision instead, and ids of edges are translated. A line that is wrong stops it and names itself; the
    /// batches before it are kept, and running it again repeats nothing.
    pub fn import(
        &self,
        caller: &Caller,
        input: &mut dyn BufRead,
        wing: &dyn ImportedFiles,
    ) -> Result<Transferred> {
        caller.principal.require(Scope::Write)?;
        let mut done = Transferred::default();
        let mut ids: HashMap<NodeId, NodeId> = HashMap::new();
        let mut batch = Vec::new();
        // Files that are also nodes, to be written when their nodes are there.
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
            if let Entry::Node(imported) = &entry
                && let Some(file) = wing.file_of_key(&imported.draft.key)
            {
                let body = &imported.draft.body;
                if !wing.is_there(caller, file)? {
                    files.push((file.to_owned(), body.clone()));
                    batch.push(entry);
                    continue;
                }
                // The file that is there stays, and its node with it.
                wing.add(caller, file, body)?;
                let key = imported.draft.key.clone();
                let node = self.log.read(&caller.principal.space, |tx| {
                    tx.node_by_key("", Kind::Document, &key, When::Now)
                })?;
                if let (Some(old), Some(node)) = (imported.id, node) {
                    ids.insert(old, node.id);
                }
                done.rows += 1;
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
        Ok(done)
    }

    fn import_batch(
        &self,
        caller: &Caller,
        batch: Vec<Entry>,
        ids: &mut HashMap<NodeId, NodeId>,
        done: &mut Transferred,
    ) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        caller.check()?;
        let mut known = std::mem::take(ids);
        let count = batch.len();
        let passages_of = self.hooks.passages_of;
        let (known, nodes, edges) = self.log.write(&caller.principal.space, move |tx| {
            let (mut nodes, mut edges) = (0, 0);
            for entry in batch {
                match entry {
                    Entry::Node(imported) => {
                        let old = imported.id;
                        let new = import_node(tx, *imported, passages_of)?;
                        if let Some(old) = old {
                            known.insert(old, new);
                        }
                        nodes += 1;
                    }
                    Entry::Edge(mut draft) => {
                        draft.src = known.get(&draft.src).copied().unwrap_or(draft.src);
                        draft.dst = known.get(&draft.dst).copied().unwrap_or(draft.dst);
                        for end in [draft.src, draft.dst] {
                            if tx.node(end, When::Now)?.is_none() {
                                return Err(Error::not_found("node", end)
                                    .hint("an edge needs both of its nodes"));
                            }
                        }
                        tx.put_edge(draft)?;
                        edges += 1;
                    }
                }
            }
            tx.record("Imported", json!({ "nodes": nodes, "edges": edges }))?;
            Ok((known, nodes, edges))
        })?;
        *ids = known;
        done.rows += nodes;
        done.edges += edges;
        caller.progress((done.rows + done.edges) as f64, None, "lines read");
        debug_assert_eq!(count as u64, nodes + edges);
        Ok(())
    }
}

fn import_node(
    tx: &mut Tx<'_>,
    imported: ImportedNode,
    passages_of: fn(&Node) -> Vec<Passage>,
) -> Result<NodeId> {
    let ImportedNode {
        id,
        created_ms,
        mut draft,
    } = imported;
    let known = tx.node_by_key(&draft.project, draft.kind, &draft.key, When::Now)?;
    let made_here = known
        .as_ref()
        .map_or_else(|| tx.now().ms(), |it| it.created.ms());
    // What was made here at that very time needs no other date: importing one's own export changes nothing.
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
    tx.put_passages(node.id, &passages_of(&node))?;
    Ok(node.id)
}

/// A node of an import, with what it was elsewhere.
struct ImportedNode {
    id: Option<NodeId>,
    created_ms: Option<u64>,
    draft: Draft,
}

/// The longest key of a node that comes from elsewhere, in bytes.
const KEY_BYTES_MAX: usize = 4_096;

/// A memory is called what its key says, or it would pose as another one.
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
            return Err(format!("`memory_id` is {id}, which is not what `key` says"));
        }
    }
    match draft.props.get("memory_type") {
        None => Ok(()),
        Some(Value::String(it)) if it.parse::<kenning_memory::types::MemoryType>().is_ok() => {
            Ok(())
        }
        Some(other) => Err(format!("`memory_type` is {other}, which is none")),
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

/// Why a line could not be read.
enum LineFault {
    TooLong,
    Unreadable(std::io::Error),
}

/// Reads the next line of at most this many bytes, and gives how many it has; 0 at the end.
fn read_line(
    input: &mut (impl BufRead + ?Sized),
    line: &mut String,
    bytes_max: u64,
) -> Result<usize, LineFault> {
    let mut bytes = std::mem::take(line).into_bytes();
    bytes.clear();
    let read = Read::take(&mut *input, bytes_max + 1).read_until(b'\n', &mut bytes);
    let n_bytes = read.map_err(LineFault::Unreadable)?;
    if n_bytes as u64 > bytes_max {
        return Err(LineFault::TooLong);
    }
    let not_utf8 =
        |cause| LineFault::Unreadable(std::io::Error::new(std::io::ErrorKind::InvalidData, cause));
    *line = String::from_utf8(bytes).map_err(not_utf8)?;
    Ok(n_bytes)
}

/// The same of a backup.
fn read_backup_line(input: &mut impl BufRead, line: &mut String, n: u64) -> Result<usize> {
    read_line(input, line, BACKUP_LINE_BYTES_MAX).map_err(|fault| match fault {
        LineFault::TooLong => not_a_backup(&format!(
            "line {n} has more than {BACKUP_LINE_BYTES_MAX} bytes"
        )),
        LineFault::Unreadable(cause) => {
            not_a_backup(&format!("line {n} cannot be read")).because(cause)
        }
    })
}

fn not_a_backup(what: &str) -> Error {
    Error::corrupt(format!("this is not a whole backup: {what}"))
}

fn damaged_store(space: &Space, error: Error) -> Error {
    Error::corrupt(format!("space {space}: {}", error.message))
        .hint("the store is damaged: `kenning audit verify` says where; restore an older backup")
        .because(error)
}

/// Reads the whole file once: its count, its hash, every row of it, and the roots of each space. Gives
/// the spaces in it.
pub fn check_backup(mut input: impl BufRead, checked: Checked) -> Result<Vec<Space>> {
    let mut hasher = blake3::Hasher::new();
    let mut spaces: Vec<Space> = Vec::new();
    let mut check: Option<Check> = None;
    let finish = |check: Option<Check>| match check.map(Check::finish) {
        Some(Err(error)) => Err(not_a_backup(&error.message).because(error)),
        _ => Ok(()),
    };
    let (mut rows, mut n, mut whole) = (0u64, 0u64, false);
    let mut line = String::new();
    loop {
        if read_backup_line(&mut input, &mut line, n + 1)? == 0 {
            break;
        }
        n += 1;
        if whole {
            return Err(not_a_backup("there is something after its end"));
        }
        let value = parse_json(&line)
            .map_err(|cause| not_a_backup(&format!("line {n} is not JSON")).because(cause))?;
        if n == 1 {
            if value["format"] != FORMAT || value["version"] != VERSION {
                return Err(not_a_backup("its first line does not say so"));
            }
        } else if let Some(space) = value.get("space").and_then(Value::as_str) {
            finish(check.replace(Check::new(checked)))?;
            spaces.push(space.parse().map_err(|it: String| not_a_backup(&it))?);
        } else if value.get("table").is_some() {
            let Some(check) = &mut check else {
                return Err(not_a_backup(&format!("line {n} belongs to no space")));
            };
            check.row(&value).map_err(|error| {
                not_a_backup(&format!("line {n}: {}", error.message)).because(error)
            })?;
            rows += 1;
        } else {
            finish(check.take())?;
            let hash = hasher.finalize().to_hex().to_string();
            if value["hash"] != hash.as_str() || value["rows"] != rows {
                return Err(not_a_backup("its hash does not match"));
            }
            whole = true;
        }
        hasher.update(line.as_bytes());
    }
    if !whole {
        return Err(not_a_backup("its end is missing"));
    }
    Ok(spaces)
}

/// The rows of one space.
fn rows_of(
    mut input: Box<dyn BufRead + Send>,
    space: Space,
) -> impl Iterator<Item = Result<Value>> + Send + 'static {
    let (mut here, mut n, mut line) = (false, 0, String::new());
    let mut next = move || -> Result<Option<Value>> {
        n += 1;
        if read_backup_line(&mut input, &mut line, n)? == 0 {
            return Ok(None);
        }
        let value = parse_json(&line);
        value
            .map(Some)
            .map_err(|cause| not_a_backup(&format!("line {n} is not JSON")).because(cause))
    };
    std::iter::from_fn(move || {
        loop {
            let value = match next().transpose()? {
                Ok(value) => value,
                Err(error) => return Some(Err(error)),
            };
            if let Some(name) = value.get("space").and_then(Value::as_str) {
                here = name == space.as_str();
            } else if here && value.get("table").is_some() {
                return Some(Ok(value));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, repeat};

    #[test]
    fn a_line_without_an_end_is_refused_at_its_limit() {
        let mut line = String::new();
        let mut endless = BufReader::new(repeat(b'x'));
        let fault = read_line(&mut endless, &mut line, 100_000);
        assert!(matches!(fault, Err(LineFault::TooLong)));
        let mut input = "12345\n1234567\nlast".as_bytes();
        let mut next = || read_line(&mut input, &mut line, 6);
        assert!(matches!(next(), Ok(6)));
        assert!(matches!(next(), Err(LineFault::TooLong)));
        let mut rest = "last".as_bytes();
        assert!(matches!(read_line(&mut rest, &mut line, 6), Ok(4)));
        assert_eq!(line, "last");
        assert!(matches!(read_line(&mut rest, &mut line, 6), Ok(0)));
        let mut bytes: &[u8] = &[0xff, b'\n'];
        let fault = read_line(&mut bytes, &mut line, 6);
        assert!(matches!(fault, Err(LineFault::Unreadable(_))));
    }
}
