//! Erasing content for good: rows, revisions, vectors, the data of events, and what is left of it in files.
//!
//! One transaction erases the rows and says so in an event. What is then still in files (free pages of the database,
//! its write-ahead log, a stored index) is removed after it; a row says that this is due until it is done, so that
//! whoever opens the store next completes what a killed process began.

use crate::copy::{check_backup, rows_of};
use crate::{Bucket, Caller, Kernel, Raw, Scope, index_files};
use kenning_audit::archive::Checked;
use kenning_audit::{Erased, Tombstones, Tx, event};
use kenning_core::{Hash, NodeId, Result, Space};
use kenning_store::{
    EventFilter, EventPage, EventRow, Node, Passage, ReadTx, Row, Table, When, canonical_json,
};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};
use std::io::BufRead;

/// Events that are read at once.
const PAGE: usize = 1_000;

/// Shorter texts occur by chance: events that hold one are not erased for it.
pub const TEXT_CHARS_MIN: usize = 12;

/// What to erase.
#[derive(Clone, Debug, Default)]
pub struct Erasure {
    /// Nodes with all their revisions.
    pub nodes: Vec<NodeId>,
    /// Superseded revisions of nodes that stay.
    pub revisions: Vec<(NodeId, Hash)>,
    /// Names of what is erased: an event that names one of them loses its data.
    pub names: HashSet<String>,
    /// Texts: an event that holds one of them loses its data.
    pub texts: Vec<String>,
}

/// What was erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Rows and events.
    pub erased: Erased,
    /// Events of version 1 that mention it: their data is part of what was signed and cannot be erased.
    pub unerasable: u64,
    /// Whether the files have no traces either. If not, the next process that may write completes it.
    pub is_clean: bool,
}

impl Forgotten {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (one, two) = (self.erased, other.erased);
        Self {
            erased: Erased {
                nodes: one.nodes + two.nodes,
                revisions: one.revisions + two.revisions,
                events: one.events + two.events,
            },
            unerasable: self.unerasable + other.unerasable,
            is_clean: self.is_clean && other.is_clean,
        }
    }
}

impl Kernel {
    /// Erases. `last` runs in the same transaction, before the event is recorded.
    pub fn erase(
        &self,
        caller: &Caller,
        erasure: Erasure,
        kind: &'static str,
        last: impl FnOnce(&mut Tx<'_>) -> Result<()> + Send + 'static,
    ) -> Result<Forgotten> {
        self.may_write(caller)?;
        let space = &caller.principal.space;
        let cut = self.hooks.passages_of;
        // Most events are looked at before others have to wait.
        let (found, at) = self
            .log
            .read_long(space, |tx| events_with(tx, &erasure, 0))?;
        let (erased, unerasable) = self.log.write_long(space, move |tx| {
            let (further, _) = events_with(&**tx, &erasure, at)?;
            let mut erased = Erased::default();
            let mut revisions = Vec::new();
            for id in &erasure.nodes {
                let of_node = tx.erase_node(*id)?;
                erased.nodes += u64::from(!of_node.is_empty());
                revisions.extend(of_node);
            }
            for (id, hash) in &erasure.revisions {
                let of_node = tx.erase_revision(*id, *hash)?;
                erased.revisions += of_node.len() as u64;
                revisions.extend(of_node);
            }
            remove_vectors(tx, cut, &revisions)?;
            let mut unerasable = 0;
            for id in found.iter().chain(&further) {
                let Some(row) = tx.event_by_id(id)? else {
                    continue;
                };
                unerasable += u64::from(row.version == 1);
                erased.events += u64::from(tx.erase_event(&row)?);
            }
            last(tx)?;
            let data = json!({
                "nodes": erased.nodes, "revisions": erased.revisions, "events": erased.events,
            });
            tx.record(kind, data)?;
            Ok((erased, unerasable))
        })?;
        Ok(Forgotten {
            erased,
            unerasable,
            is_clean: self.clean_after_erasure(space)?,
        })
    }

    /// Erases everything in the caller's space but what decides about permissions and peers, and what keeps erased
    /// things from coming back.
    pub fn erase_space(&self, caller: &Caller) -> Result<Forgotten> {
        self.may_erase(caller)?;
        let space = &caller.principal.space;
        let (erased, unerasable) = self.log.write_long(space, move |tx| {
            let mut nodes = BTreeSet::new();
            for table in [Table::Nodes, Table::History] {
                tx.scan(table, &mut |row| {
                    if let Row::Node(node) | Row::History(node, _) = row {
                        nodes.insert(node.id);
                    }
                    Ok(())
                })?;
            }
            let (mut vectors, mut pairs) = (Vec::new(), Vec::new());
            tx.scan(Table::Vectors, &mut |row| {
                if let Row::Vector(it) = row {
                    vectors.push((it.collection, it.id));
                }
                Ok(())
            })?;
            tx.scan(Table::Kv, &mut |row| {
                if let Row::Kv(it) = row
                    && !is_kept_bucket(&it.bucket)
                {
                    pairs.push((it.bucket, it.key));
                }
                Ok(())
            })?;
            let mut erased = Erased::default();
            for id in nodes {
                erased.nodes += u64::from(!tx.erase_node(id)?.is_empty());
            }
            for (collection, id) in &vectors {
                tx.remove_vector(collection, id)?;
            }
            for (bucket, key) in pairs {
                Bucket::<Raw>::named(bucket).unset(tx, &key)?;
            }
            let (mut at, mut unerasable) = (0, 0);
            loop {
                let page = tx.events_after(at, PAGE)?;
                let Some(last) = page.last() else { break };
                at = last.seq;
                for row in page.iter().filter(|it| has_content(it)) {
                    unerasable += u64::from(row.version == 1);
                    erased.events += u64::from(tx.erase_event(row)?);
                }
            }
            let data = json!({ "nodes": erased.nodes, "events": erased.events });
            tx.record("SpaceErased", data)?;
            Ok((erased, unerasable))
        })?;
        Ok(Forgotten {
            erased,
            unerasable,
            is_clean: self.clean_after_erasure(space)?,
        })
    }

    /// Erases in restored spaces what a newer backup says was erased since.
    pub fn erase_as_in(
        &self,
        caller: &Caller,
        spaces: &[Space],
        open: impl Fn() -> Result<Box<dyn BufRead + Send>>,
    ) -> Result<Erased> {
        self.may_erase(caller)?;
        check_backup(open()?, Checked::Rows)?;
        let mut all = Erased::default();
        for space in spaces {
            let told = Told::of_backup(open()?, space)?;
            if told.is_empty() {
                continue;
            }
            let erased = self.log.write_long(space, move |tx| told.erase(tx))?;
            all.nodes += erased.nodes;
            all.revisions += erased.revisions;
            all.events += erased.events;
            self.clean_after_erasure(space)?;
        }
        Ok(all)
    }

    /// Removes traces of what was erased from files: free pages, the write-ahead log, the stored index. False if
    /// somebody still reads what was erased; nothing is done if nothing is due.
    pub fn clean_after_erasure(&self, space: &Space) -> Result<bool> {
        let unclean = |tx: &dyn ReadTx| Tombstones::of(tx).unclean();
        let Some(seq) = self.log.read(space, unclean)? else {
            return Ok(true);
        };
        if self.read_only {
            return Ok(false);
        }
        index_files::forget(&self.data, space);
        self.log
            .read(space, |tx| self.searcher().catch_up(space, tx, None))?;
        if !self.log.store().scrub()? {
            return Ok(false);
        }
        // A process that is killed here does it again: that costs time and nothing else.
        self.log.write(space, move |tx| tx.note_clean(seq))?;
        Ok(true)
    }

    /// Every revision of a node, the current one included.
    pub fn revisions_of(tx: &dyn ReadTx, id: NodeId) -> Result<Vec<Node>> {
        let mut all: Vec<Node> = tx.history(id)?.into_iter().map(|it| it.0).collect();
        all.extend(tx.node(id, When::Now)?);
        Ok(all)
    }

    /// Checks that a caller may erase.
    pub fn may_erase(&self, caller: &Caller) -> Result<()> {
        caller.principal.require(Scope::Destroy)?;
        self.writable()
    }
}

/// Removes the vectors of texts that were erased. A text that something else has too gets its vector again.
pub(crate) fn remove_vectors(
    tx: &mut Tx<'_>,
    cut: fn(&Node) -> Vec<Passage>,
    revisions: &[Node],
) -> Result<()> {
    if revisions.is_empty() {
        return Ok(());
    }
    let models = models_of(&**tx)?;
    if models.is_empty() {
        return Ok(());
    }
    let passages = revisions.iter().flat_map(cut);
    let ids: BTreeSet<String> = passages
        .map(|it| Hash::of(it.text.as_bytes()).to_string())
        .collect();
    for model in &models {
        let collection = kenning_search::collection_of_model(model);
        for id in &ids {
            tx.remove_vector(&collection, id)?;
        }
    }
    Ok(())
}

/// The models that ever made vectors of passages here.
fn models_of(tx: &dyn ReadTx) -> Result<BTreeSet<String>> {
    let filter = EventFilter {
        kinds: vec!["PassagesEmbedded".to_owned()],
        ..EventFilter::default()
    };
    let mut models = BTreeSet::new();
    let mut skip = 0;
    loop {
        let page = EventPage {
            skip,
            limit: PAGE,
            newest_first: false,
        };
        let page = tx.find_events(&filter, page)?;
        skip += page.len() as u64;
        let data = page.iter().map(event::data);
        let found = data.filter_map(|it| Some(it.get("model")?.as_str()?.to_owned()));
        models.extend(found);
        if page.len() < PAGE {
            return Ok(models);
        }
    }
}

/// What a backup says was erased.
#[derive(Default)]
struct Told {
    nodes: Vec<NodeId>,
    revisions: HashSet<Hash>,
    events: Vec<Hash>,
}

impl Told {
    fn of_backup(input: Box<dyn BufRead + Send>, space: &Space) -> Result<Self> {
        let mut told = Self::default();
        for row in rows_of(input, space.clone()) {
            let row = row?;
            let key = row["key"].as_str().unwrap_or_default();
            match (row["table"].as_str(), row["bucket"].as_str()) {
                (Some("kv"), Some("erased/nodes")) => told.nodes.extend(key.parse::<NodeId>()),
                (Some("kv"), Some("erased/revisions")) => {
                    told.revisions.extend(Hash::from_hex(key));
                }
                (Some("kv"), Some("erased/events")) => told.events.extend(Hash::from_hex(key)),
                _ => {}
            }
        }
        Ok(told)
    }

    fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.revisions.is_empty() && self.events.is_empty()
    }

    fn erase(self, tx: &mut Tx<'_>) -> Result<Erased> {
        let mut erased = Erased::default();
        for id in self.nodes {
            erased.nodes += u64::from(!tx.erase_node(id)?.is_empty());
        }
        let mut revisions = BTreeSet::new();
        tx.scan(Table::History, &mut |row| {
            if let Row::History(node, _) = row
                && self.revisions.contains(&node.hash)
            {
                revisions.insert((node.id, node.hash));
            }
            Ok(())
        })?;
        for (id, hash) in revisions {
            erased.revisions += tx.erase_revision(id, hash)?.len() as u64;
        }
        for id in self.events {
            if let Some(row) = tx.event_by_id(&id)? {
                erased.events += u64::from(tx.erase_event(&row)?);
            }
        }
        let data = json!({
            "nodes": erased.nodes, "revisions": erased.revisions, "events": erased.events,
        });
        tx.record("ErasedAsInBackup", data)?;
        Ok(erased)
    }
}

/// Rows that decide what somebody may do, with whom this node talks, and what may not come back.
fn is_kept_bucket(bucket: &str) -> bool {
    let first = bucket.split(['/', '.']).next().unwrap_or_default();
    [
        "erased",
        "tokens",
        "peers",
        "sync",
        "agents",
        "log",
        "federation",
        "tools",
    ]
    .contains(&first)
}

/// Whether an event says something besides its changes. Those about keys and checkpoints hold no content.
fn has_content(row: &EventRow) -> bool {
    let is_kept = [
        "Author",
        "Checkpoint",
        "Log",
        "Peer",
        "Token",
        "AgentKey",
        "Clock",
    ];
    !is_kept.iter().any(|it| row.kind.starts_with(it)) && !event::data(row).is_null()
}

/// The events after a place that name or hold what is erased, and how far they go.
fn events_with(tx: &dyn ReadTx, erasure: &Erasure, after: u64) -> Result<(Vec<Hash>, u64)> {
    let texts: Vec<String> = erasure
        .texts
        .iter()
        .filter(|it| it.trim().chars().count() >= TEXT_CHARS_MIN)
        .map(|it| inner_json(it.trim()))
        .collect();
    let (mut found, mut at) = (Vec::new(), after);
    if erasure.names.is_empty() && texts.is_empty() {
        return Ok((found, tx.head()?.map_or(0, |it| it.seq)));
    }
    loop {
        let page = tx.events_after(at, PAGE)?;
        let Some(last) = page.last() else {
            return Ok((found, at));
        };
        at = last.seq;
        let mentions = |row: &&EventRow| mentions(row, &erasure.names, &texts);
        found.extend(page.iter().filter(mentions).map(|it| it.id));
    }
}

/// As it stands in canonical JSON, without the quotation marks.
fn inner_json(text: &str) -> String {
    let quoted = canonical_json(&Value::from(text));
    let inner = quoted.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    inner.unwrap_or_default().to_owned()
}

fn mentions(row: &EventRow, names: &HashSet<String>, texts: &[String]) -> bool {
    let data = match row.version {
        1 => &row.payload,
        _ => &row.sealed.data,
    };
    let Ok(data) = std::str::from_utf8(data) else {
        return false;
    };
    let has_text = || texts.iter().any(|it| data.contains(it.as_str()));
    // Names stand between quotation marks.
    data.split('"').any(|it| names.contains(it)) || has_text()
}
