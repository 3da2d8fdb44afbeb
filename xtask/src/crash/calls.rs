//! Writes of every sort, and the traces that each must leave.
//!
//! A [`Maker`] is one caller: it makes one call after the other and learns from the answers what it may
//! refer to next. Every write carries a mark that no other has, so what is left of it can be found in
//! the rows of a backup and in files without knowing how it is kept.

use super::binary::Place;
use super::verdict::Attempt;
use kenning_core::{Hash, SeededRandom};
use kenning_text::hex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What a mark begins with; sixteen digits follow.
const MARK: &str = "mark";
const MARK_DIGITS: usize = 16;

/// The sorts of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    Note,
    Memory,
    Batch,
    Belief,
    Now,
    Daily,
    Vector,
    Item,
    Revision,
    Removal,
    Backup,
    Graph,
    Checkpoint,
    Workflow,
    Agent,
    /// Only over HTTP.
    Ingest,
}

use Sort::{
    Agent, Backup, Batch, Belief, Checkpoint, Daily, Graph, Ingest, Item, Memory, Note, Now,
    Removal, Revision, Vector, Workflow,
};

/// Every sort that exists over stdio and HTTP: thirteen tools, one of them with three actions.
pub(crate) const SORTS: &[Sort] = &[
    Note, Memory, Batch, Belief, Now, Daily, Vector, Item, Revision, Removal, Backup, Graph,
    Checkpoint, Workflow, Agent,
];

/// As often as they are to be made in a mix.
const MIX: &[(Sort, u64)] = &[
    (Note, 24),
    (Memory, 16),
    (Batch, 6),
    (Belief, 8),
    (Now, 8),
    (Daily, 8),
    (Vector, 10),
    (Item, 6),
    (Revision, 6),
    (Removal, 3),
    (Backup, 2),
    (Graph, 3),
    (Checkpoint, 3),
    (Workflow, 3),
    (Agent, 2),
    (Ingest, 8),
];

/// One write.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) sort: Sort,
    /// Where it goes over HTTP.
    pub(crate) route: String,
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    trace: Trace,
}

/// What must be left of a write that was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trace {
    /// A note of the vault with this content, which [`super::verdict`] judges.
    Note(String, Hash),
    /// A row with this mark, now or in the history.
    Row(String),
    /// An event whose data has this mark.
    Event(String),
    /// The same as a row, and the mark in this file, which only grows.
    Line(String, String),
    /// This file has this mark, or is gone, or what a later write made of it.
    File(String, Option<String>),
    /// An edge to this node.
    Edge(String),
    /// A copy with this content.
    Copy(String, Hash),
    Nothing,
}

/// A write that was sent. Moments are places in one order of everything.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    trace: Trace,
    pub(crate) sent: u64,
    /// `None` when no answer came before the end.
    pub(crate) acknowledged: Option<u64>,
}

/// What was found of all writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traces {
    /// Marks in current and past nodes.
    rows: BTreeSet<String>,
    /// Marks in the data of events.
    events: BTreeSet<String>,
    /// Where edges lead.
    edges: BTreeSet<String>,
    /// Marks in files outside the vault.
    files: BTreeMap<String, BTreeSet<String>>,
    /// Contents of copies.
    copies: BTreeMap<String, Hash>,
}

/// One caller.
pub(crate) struct Maker {
    /// Unlike that of every other caller.
    name: String,
    random: SeededRandom,
    place: Place,
    n: u64,
    has_http: bool,
    known: Known,
}

/// What a caller knows to be there, by ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    beliefs: Vec<String>,
    memories: Vec<String>,
    /// Its own items.
    items: Vec<String>,
}

impl Maker {
    /// What it has learned so far.
    pub(crate) fn known(&self) -> Known {
        self.known.clone()
    }

    /// Forgets what it learned since then, because the store is as it was.
    pub(crate) fn know_only(&mut self, known: Known) {
        self.known = known;
    }

    pub(crate) fn new(name: String, seed: u64, place: &Place, has_http: bool) -> Self {
        Self {
            name,
            random: SeededRandom::new(seed),
            place: place.clone(),
            n: 0,
            has_http,
            known: Known::default(),
        }
    }

    /// A write of any sort.
    pub(crate) fn any(&mut self) -> Write {
        let all: u64 = MIX.iter().map(|it| it.1).sum();
        let mut left = self.random.below(all);
        for (sort, weight) in MIX {
            if left < *weight {
                return self.of(*sort);
            }
            left -= weight;
        }
        self.of(Note)
    }

    /// A write of this sort, or of one that must come before it.
    pub(crate) fn of(&mut self, sort: Sort) -> Write {
        self.n += 1;
        let mark = format!("{MARK}{:016x}", self.random.next());
        match sort {
            Note => self.note(&mark),
            Ingest if !self.has_http => self.note(&mark),
            Belief if self.known.beliefs.is_empty() => self.memory(&mark, "belief"),
            Belief if self.known.memories.is_empty() => self.memory(&mark, "fact"),
            Revision | Removal if self.known.items.is_empty() => self.item(&mark),
            Memory => self.memory(&mark, "fact"),
            Batch => {
                let memories = [
                    json!({ "content": format!("{mark} is the first") }),
                    json!({ "content": format!("{mark} is the second"), "memory_type": "fact" }),
                ];
                let arguments = json!({ "memories": memories });
                write(sort, "memory_store_batch", arguments, Trace::Row(mark))
            }
            Belief => {
                // Evidence is brought once, so the edge is this call's.
                let evidence = self.known.memories.remove(0);
                let arguments = json!({
                    "belief_id": self.known.beliefs[0], "evidence_memory_id": evidence,
                    "supports": true, "strength": 0.5,
                });
                let trace = Trace::Edge(evidence.replace("mem_", ""));
                write(sort, "belief_update", arguments, trace)
            }
            Now => {
                let arguments = json!({ "current_task": format!("{mark} of {}", self.name) });
                write(sort, "now_update", arguments, Trace::Row(mark))
            }
            Daily => {
                let arguments = json!({ "content": format!("{mark} happened") });
                // The day's name is in the answer.
                let trace = Trace::Line(String::new(), mark);
                write(sort, "daily_append", arguments, trace)
            }
            Vector => {
                let numbers: Vec<f64> = (0..8)
                    .map(|_| self.random.below(1_000) as f64 / 1_000.0 + 0.001)
                    .collect();
                let arguments = json!({
                    "id": mark, "vector": numbers, "namespace": "crash",
                    "metadata": { "by": self.name },
                });
                write(sort, "kg_vector_upsert", arguments, Trace::Row(mark))
            }
            Item => self.item(&mark),
            Revision => {
                let id = self.known.items[0].clone();
                self.item_as(sort, "update", &id, &mark)
            }
            Removal => {
                let id = self.known.items.remove(0);
                let arguments = json!({
                    "item_type": "knowledge", "action": "delete", "item_id": id,
                    "project_path": self.place.project(), "parameters": { "confirm": true },
                });
                write(
                    sort,
                    "execute",
                    arguments,
                    Trace::File(item_path(&id), None),
                )
            }
            Backup => write(sort, "vault_backup", json!({}), Trace::Nothing),
            Graph => {
                let file = self.place.project().join(format!("docs/{mark}.md"));
                // A file of the project, which the graph must know afterwards. If it cannot be written, there is
                // no call to make.
                let written = std::fs::write(file, format!("# {mark}\n\nSomebody wrote this.\n"));
                let trace = written.map_or(Trace::Nothing, |()| Trace::Row(mark));
                let arguments = json!({ "incremental": true });
                write(sort, "kg_graph_generate", arguments, trace)
            }
            Checkpoint => {
                let arguments = json!({ "name": mark });
                write(sort, "kg_audit_checkpoint", arguments, Trace::Event(mark))
            }
            Workflow => {
                let store = json!({
                    "name": "store", "effects": { "stored": true }, "tool": "memory_store",
                    "arguments": { "content": format!("{mark} was a step") },
                });
                let input = json!({ "goal": { "stored": true }, "actions": [store] });
                let arguments = json!({ "workflowId": "custom", "input": input });
                // What must be there depends on what the run says of itself.
                write(sort, "kg_workflow_start", arguments, Trace::Nothing)
            }
            Agent => {
                let arguments = json!({
                    "type": "researcher", "task": format!("Look at the documents: {mark}"),
                });
                // The report names the task.
                write(sort, "kg_agent_spawn", arguments, Trace::Row(mark))
            }
            Ingest => {
                let arguments = json!({
                    "document_rid": format!("doc:{mark}"), "content": format!("{mark} was there."),
                    "entities": [{ "name": format!("Somebody {mark}"), "type": "Person" }],
                });
                let mut ingest = write(sort, "", arguments, Trace::Row(mark));
                ingest.route = "/ingest".to_owned();
                ingest
            }
        }
    }

    fn note(&self, mark: &str) -> Write {
        let (path, text) = super::writers::note(&self.name, self.n, &self.random);
        let text = format!("{text}\n{mark}\n");
        let trace = Trace::Note(path.clone(), Hash::of(text.as_bytes()));
        let arguments = json!({ "path": path, "content": text });
        write(Note, "vault_write_note", arguments, trace)
    }

    fn memory(&self, mark: &str, kind: &str) -> Write {
        let mut arguments = json!({
            "content": format!("{} saw {mark}", self.name), "memory_type": kind,
        });
        if kind == "belief" {
            arguments["confidence"] = json!(0.5);
        }
        write(
            Memory,
            "memory_store",
            arguments,
            Trace::Row(mark.to_owned()),
        )
    }

    fn item(&self, mark: &str) -> Write {
        self.item_as(Item, "create", &format!("item-{mark}"), mark)
    }

    fn item_as(&self, sort: Sort, action: &str, id: &str, mark: &str) -> Write {
        let arguments = json!({
            "item_type": "knowledge", "action": action, "item_id": id,
            "project_path": self.place.project(),
            "parameters": {
                "title": format!("Item of {}", self.name), "category": "crash",
                "entry_type": "learning", "content": format!("The text is {mark} now.\n"),
            },
        });
        let trace = Trace::File(item_path(id), Some(mark.to_owned()));
        write(sort, "execute", arguments, trace)
    }

    /// Learns from the answer of a write that was acknowledged, and says what is to be looked for.
    pub(crate) fn learn(&mut self, written: &mut Write, answer: &Value) {
        let text = |name: &str| answer[name].as_str().map(str::to_owned);
        match written.sort {
            Memory => {
                let list = match written.arguments["memory_type"].as_str() {
                    Some("belief") => &mut self.known.beliefs,
                    _ => &mut self.known.memories,
                };
                list.extend(text("memory_id"));
            }
            Item => {
                let id = written.arguments["item_id"].as_str();
                self.known.items.extend(id.map(str::to_owned));
            }
            Daily => {
                if let (Trace::Line(path, _), Some(day)) = (&mut written.trace, text("path")) {
                    *path = format!("omi/{day}");
                }
            }
            // The checkpoint of an empty log covers nothing, and is not kept.
            Checkpoint if answer["data"]["stats"]["totalEventsAtCheckpoint"] == 0 => {
                written.trace = Trace::Nothing;
            }
            Workflow => {
                let is_done = answer.to_string().contains("\"outcome\":\"success\"");
                let mark = marks(&written.arguments.to_string()).next();
                if let Some(mark) = mark.filter(|_| is_done) {
                    written.trace = Trace::Row(mark);
                }
            }
            Backup => {
                let path = text("backup_id").map(|it| format!("omi/backups/{it}.tar.gz"));
                let bytes = path.and_then(|name| {
                    let bytes = std::fs::read(self.place.root().join(&name)).ok()?;
                    Some((name, bytes))
                });
                if let Some((path, bytes)) = bytes {
                    written.trace = Trace::Copy(path, Hash::of(&bytes));
                }
            }
            _ => {}
        }
    }
}

fn item_path(id: &str) -> String {
    format!("project/.ai/knowledge/crash/{id}.md")
}

fn write(sort: Sort, tool: &'static str, arguments: Value, trace: Trace) -> Write {
    Write {
        sort,
        route: format!("/tools/{tool}"),
        tool,
        arguments,
        trace,
    }
}

impl Write {
    /// Whether a refusal only says that the same is already running: one backup and one graph are
    /// made at a time.
    pub(crate) fn must_wait(&self, said: &str) -> bool {
        matches!(self.sort, Backup | Graph) && said.contains("another") && said.contains("again")
    }

    /// What is to be known of it after it was sent.
    pub(crate) fn called(&self, sent: u64, acknowledged: Option<u64>) -> Called {
        Called {
            trace: self.trace.clone(),
            sent,
            acknowledged,
        }
    }
}

impl Called {
    /// Whether it made a copy of everything.
    pub(crate) fn is_copy(&self) -> bool {
        matches!(self.trace, Trace::Copy(..))
    }

    /// As a note, if it is one.
    pub(crate) fn as_note(&self) -> Option<Attempt> {
        match &self.trace {
            Trace::Note(path, content) => Some(Attempt {
                path: path.clone(),
                content: *content,
                sent: self.sent,
                acknowledged: self.acknowledged,
            }),
            _ => None,
        }
    }
}

impl Traces {
    /// A row of a backup.
    pub(crate) fn add_row(&mut self, row: &Value, text: &str) {
        match row["table"].as_str() {
            Some("nodes" | "node_history") => self.rows.extend(marks(text)),
            Some("events") => {
                let data = row["data"].as_str().and_then(hex::decode);
                let data = data.unwrap_or_default();
                self.events.extend(marks(&String::from_utf8_lossy(&data)));
            }
            Some("edges") => {
                let to = row["dst"].as_str().unwrap_or_default();
                self.edges.insert(to.replace('-', ""));
            }
            _ => {}
        }
    }

    /// A file outside the vault.
    pub(crate) fn add_file(&mut self, path: &str, bytes: &[u8]) {
        if path.starts_with("omi/backups/") {
            self.copies.insert(path.to_owned(), Hash::of(bytes));
        } else {
            let text = String::from_utf8_lossy(bytes);
            self.files.insert(path.to_owned(), marks(&text).collect());
        }
    }

    /// Acknowledged writes that left no trace.
    pub(crate) fn lost(&self, calls: &[Called]) -> Vec<String> {
        let mut out = Vec::new();
        let mut files: BTreeMap<&str, Vec<(&Option<String>, bool)>> = BTreeMap::new();
        for call in calls {
            let is_there = match &call.trace {
                Trace::Row(mark) => self.rows.contains(mark),
                Trace::Event(mark) => self.events.contains(mark),
                Trace::Line(path, mark) => {
                    let file = self.files.get(path);
                    self.rows.contains(mark) && file.is_some_and(|it| it.contains(mark))
                }
                Trace::Edge(to) => self.edges.contains(to),
                Trace::Copy(path, content) => self.copies.get(path) == Some(content),
                Trace::File(path, mark) => {
                    let attempt = (mark, call.acknowledged.is_some());
                    files.entry(path).or_default().push(attempt);
                    true
                }
                Trace::Note(..) | Trace::Nothing => true,
            };
            if call.acknowledged.is_some() && !is_there {
                out.push(format!(
                    "no trace of an acknowledged write: {:?}",
                    call.trace
                ));
            }
        }
        for (path, attempts) in files {
            let now = self.files.get(path);
            let from = attempts.iter().rposition(|it| it.1);
            let mut may_be = attempts[from.unwrap_or(0)..].iter();
            let is_it = may_be.any(|(mark, _)| match (mark, now) {
                (Some(mark), Some(now)) => now.contains(mark),
                (None, None) => true,
                _ => false,
            });
            if !(is_it || from.is_none() && now.is_none()) {
                out.push(format!(
                    "`{path}` is not what the last acknowledged write made of it"
                ));
            }
        }
        out
    }
}

/// Every mark in a text.
fn marks(text: &str) -> impl Iterator<Item = String> {
    text.match_indices(MARK).filter_map(|(at, _)| {
        let mark = text.get(at..at + MARK.len() + MARK_DIGITS)?;
        let digits = &mark[MARK.len()..];
        let is_mark = digits.bytes().all(|it| it.is_ascii_hexdigit());
        is_mark.then(|| mark.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(n: u64) -> String {
        format!("{MARK}{n:016x}")
    }

    fn called(trace: Trace, is_acknowledged: bool) -> Called {
        Called {
            trace,
            sent: 1,
            acknowledged: is_acknowledged.then_some(2),
        }
    }

    /// What three rows and a file hold.
    fn traces() -> Traces {
        let mut traces = Traces::default();
        for row in [
            json!({ "table": "nodes", "body": format!("a {} b", mark(1)) }),
            json!({ "table": "passages", "text": mark(2) }),
            json!({ "table": "edges", "dst": "01-02" }),
        ] {
            traces.add_row(&row, &row.to_string());
        }
        traces.add_file("project/a.md", mark(3).as_bytes());
        traces
    }

    #[test]
    fn what_was_acknowledged_must_have_left_its_trace() {
        let traces = traces();
        for (trace, n_lost) in [
            (Trace::Row(mark(1)), 0),
            (Trace::Row(mark(2)), 1),
            (Trace::Edge("0102".to_owned()), 0),
            (Trace::Edge("03".to_owned()), 1),
            (Trace::Line("project/a.md".to_owned(), mark(3)), 1),
            (Trace::Copy("omi/backups/a".to_owned(), Hash::of(b"")), 1),
        ] {
            let lost = traces.lost(&[called(trace.clone(), true)]);
            assert_eq!(lost.len(), n_lost, "{trace:?}");
            assert!(traces.lost(&[called(trace, false)]).is_empty());
        }
    }

    #[test]
    fn a_file_is_what_the_last_acknowledged_write_made_or_a_later_one() {
        let write = |n: u64| Trace::File("project/a.md".to_owned(), Some(mark(n)));
        let remove = || Trace::File("project/a.md".to_owned(), None);
        for (attempts, n_lost) in [
            (vec![(write(3), true)], 0),
            (vec![(write(2), true), (write(3), false)], 0),
            (vec![(write(3), false), (write(2), true)], 1),
            (vec![(write(3), true), (remove(), false)], 0),
            (vec![(write(3), true), (remove(), true)], 1),
            (vec![(write(2), true)], 1),
        ] {
            let calls: Vec<Called> = attempts
                .into_iter()
                .map(|attempt| called(attempt.0, attempt.1))
                .collect();
            assert_eq!(traces().lost(&calls).len(), n_lost, "{calls:?}");
        }
        let calls = [called(remove(), true)];
        assert!(Traces::default().lost(&calls).is_empty());
        let calls = [called(write(3), true)];
        assert_eq!(Traces::default().lost(&calls).len(), 1);
    }
}
