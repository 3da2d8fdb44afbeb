//! Dumps raw rows as JSON for a backup, and loads them for a restore.
//!
//! The rows are copied unchanged, signatures included; [`crate::verify`] checks them
//! afterwards. This is the only write besides [`crate::Log::write`], and it accepts only
//! a space that is empty.

use crate::event;
use crate::log::{Roots, roots_of};
use crate::merkle::{Frontier, leaf_hash};
use crate::state::State;
use kenning_core::{Error, Hash, Hlc, NodeId, Result, Space};
use kenning_store::{
    CheckpointRow, Edge, EventRow, HeadRow, KvRow, NameRow, Node, Passage, PassageRow, ReadTx, Row,
    SealedData, Store, Table, TileRow, Vector,
};
use kenning_text::hex;
use serde_json::{Map, Value, json};

/// Visits every row of a space as a JSON value, in an order in which they can be loaded.
pub fn dump(tx: &dyn ReadTx, visit: &mut dyn FnMut(Value) -> Result<()>) -> Result<()> {
    Table::ALL
        .iter()
        .try_for_each(|&table| tx.scan(table, &mut |row| visit(to_json(&row))))
}

/// What [`load`] put into a space: [`unload`] takes it back.
#[derive(Debug)]
pub struct Loaded {
    space: Space,
    /// How many rows.
    pub rows: u64,
    head: Option<HeadRow>,
    /// Working state that was in the space before; it has no events.
    before: Vec<Row>,
}

/// Loads rows into an empty space, all of them or none.
#[expect(clippy::disallowed_methods, reason = "raw rows bring their own events")]
pub fn load(
    store: &Store,
    space: &Space,
    rows: impl Iterator<Item = Result<Value>> + Send + 'static,
) -> Result<Loaded> {
    let name = space.clone();
    store.write_long(space, move |tx| {
        if tx.head()?.is_some() {
            return Err(Error::conflict(format!("the space `{name}` is not empty"))
                .hint("restore into a new data directory: `--data DIR`"));
        }
        let mut before = Vec::new();
        tx.scan(Table::Kv, &mut |row| {
            before.push(row);
            Ok(())
        })?;
        let mut count = 0;
        for row in rows {
            let row = row?;
            let row = from_json(&row)
                .ok_or_else(|| Error::corrupt(format!("row {} is malformed", count + 1)))?;
            tx.load(&row)?;
            count += 1;
        }
        Ok(Loaded {
            space: name,
            rows: count,
            head: tx.head()?,
            before,
        })
    })
}

/// Takes back what [`load`] put into a space, so that it can be loaded again.
///
/// # Errors
/// `conflict` if somebody has written to the space since: that is kept.
#[expect(
    clippy::disallowed_methods,
    reason = "these rows never became anybody's: their restore failed"
)]
pub fn unload(store: &Store, loaded: Loaded) -> Result<()> {
    let space = loaded.space.clone();
    store.write_long(&space, move |tx| {
        if tx.head()? != loaded.head {
            return Err(Error::conflict(format!(
                "somebody has written to the space `{}` since it was restored",
                loaded.space
            )));
        }
        tx.clear()?;
        loaded.before.iter().try_for_each(|row| tx.load(row))
    })
}

/// How thoroughly rows of a backup are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// That each can be read, and matches its hash or id.
    Rows,
    /// The same, and the signature of every event.
    Signatures,
}

/// Checks the rows of one space in a backup, without a store: each must be well-formed, and all
/// together must have the roots that the head states.
pub struct Check {
    checked: Checked,
    frontier: Frontier,
    state: State,
    head: Option<Roots>,
    n_rows: u64,
}

impl Check {
    /// Nothing is read yet.
    pub fn new(checked: Checked) -> Self {
        Self {
            checked,
            frontier: Frontier::default(),
            state: State::default(),
            head: None,
            n_rows: 0,
        }
    }

    /// The next row.
    pub fn row(&mut self, value: &Value) -> Result<()> {
        self.n_rows += 1;
        let bad = |what: &str| Error::corrupt(format!("row {}: {what}", self.n_rows));
        let row = from_json(value).ok_or_else(|| bad("malformed"))?;
        match &row {
            Row::Node(it) | Row::History(it, _) if it.canonical_hash() != it.hash => {
                return Err(bad("the node does not match its hash"));
            }
            Row::Edge(it) if it.canonical_hash() != it.hash => {
                return Err(bad("the edge does not match its hash"));
            }
            _ => {}
        }
        match row {
            Row::Node(it) => self.state.add_node(it.id, &it.hash),
            Row::Edge(it) if it.to == Hlc::MAX => self.state.add_edge(&it.hash),
            Row::Event(it) => {
                if it.seq != self.frontier.size + 1 {
                    return Err(bad("the event is out of order"));
                }
                if Hash::of(&event::canonical_bytes(&it)) != it.id {
                    return Err(bad("the event does not match its id"));
                }
                if !event::has_signed_data(&it) {
                    return Err(bad("the data of the event is not what was signed"));
                }
                if self.checked == Checked::Signatures {
                    event::check(&it)?;
                }
                self.frontier.push(leaf_hash(&it.id.0), |_, _, _| ());
            }
            Row::Head(it) => self.head = Some(roots_of(Some(it))?),
            _ => {}
        }
        Ok(())
    }

    /// There are no more rows.
    pub fn finish(self) -> Result<()> {
        let found = Roots {
            seq: self.frontier.size,
            event_root: self.frontier.root(),
            state_root: self.state.root(),
        };
        let expected = self.head.map_or_else(|| roots_of(None), Ok)?;
        if found == expected {
            return Ok(());
        }
        let what = match (
            found.seq == expected.seq && found.event_root == expected.event_root,
            found.state_root == expected.state_root,
        ) {
            (false, _) => "events",
            _ => "nodes and edges",
        };
        Err(Error::corrupt(format!(
            "the {what} do not have the root that the head states"
        )))
    }
}

/// JSON has no infinite numbers.
fn weight(weight: f64) -> Value {
    if weight.is_finite() {
        return weight.into();
    }
    weight.to_string().into()
}

fn node(node: &Node) -> Value {
    json!({
        "table": "nodes", "id": node.id.to_string(), "kind": node.kind.as_str(),
        "project": node.project, "key": node.key, "title": node.title, "body": node.body,
        "props": node.props, "created": node.created.0, "updated": node.updated.0,
        "hash": node.hash.to_string(), "rev": node.rev,
    })
}

pub(crate) fn to_json(row: &Row) -> Value {
    match row {
        Row::Node(it) => node(it),
        Row::History(it, ended) => {
            let mut value = node(it);
            value["table"] = "node_history".into();
            value["ended"] = ended.0.into();
            value
        }
        Row::Edge(it) => json!({
            "table": "edges", "src": it.src.to_string(), "rel": it.rel, "dst": it.dst.to_string(),
            "weight": weight(it.weight), "props": it.props, "from": it.from.0, "to": it.to.0,
            "hash": it.hash.to_string(),
        }),
        Row::Passage(it) => json!({
            "table": "passages", "node": it.node.to_string(), "n": it.passage.n,
            "text": it.passage.text, "start": it.passage.start, "tokens": it.passage.tokens,
            "title_tokens": it.passage.title_tokens,
        }),
        Row::Name(it) => {
            json!({ "table": "names", "node": it.node.to_string(), "name": it.name })
        }
        Row::Vector(it) => json!({
            "table": "vectors", "collection": it.collection, "id": it.id, "model": it.model,
            "numbers": it.numbers, "props": it.props, "seq": it.seq,
        }),
        Row::Event(it) => {
            let mut value = json!({
                "table": "events", "seq": it.seq, "version": it.version, "id": it.id.to_string(),
                "parents": hashes(&it.parents), "hlc": it.hlc.0, "author": it.author,
                "kind": it.kind, "payload": hex::encode(&it.payload), "signature": hex::encode(&it.signature),
            });
            // Rows of version 1 keep their format.
            if it.sealed != SealedData::default() {
                value["origin"] = hex::encode(&it.sealed.origin).into();
                value["agent"] = it.sealed.agent.as_str().into();
                value["data"] = hex::encode(&it.sealed.data).into();
                value["salt"] = hex::encode(&it.sealed.salt).into();
                value["commitment"] = hex::encode(&it.sealed.commitment).into();
            }
            value
        }
        Row::Tile(it) => json!({
            "table": "tiles", "level": it.level, "index": it.index, "hash": it.hash.to_string(),
        }),
        Row::Checkpoint(it) => json!({
            "table": "checkpoints", "height": it.height, "seq": it.seq,
            "event_root": it.event_root.to_string(), "state_root": it.state_root.to_string(),
            "hlc": it.hlc.0, "author": it.author, "signature": hex::encode(&it.signature),
            "version": it.version, "origin": hex::encode(&it.origin),
        }),
        Row::Head(it) => json!({
            "table": "heads", "seq": it.seq, "hlc": it.hlc.0, "tips": hashes(&it.tips),
            "frontier": hashes(&it.frontier), "state": hex::encode(&it.state), "log": hex::encode(&it.log),
        }),
        Row::Kv(it) => json!({
            "table": "kv", "bucket": it.bucket, "key": it.key, "value": hex::encode(&it.value),
        }),
    }
}

fn hashes(list: &[Hash]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// The fields of a row, read one by one.
struct Fields<'a>(&'a Value);

impl Fields<'_> {
    fn text(&self, name: &str) -> Option<String> {
        Some(self.0.get(name)?.as_str()?.to_owned())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    fn hlc(&self, name: &str) -> Option<Hlc> {
        self.number(name).map(Hlc)
    }

    fn hash(&self, name: &str) -> Option<Hash> {
        Hash::from_hex(self.0.get(name)?.as_str()?)
    }

    fn hashes(&self, name: &str) -> Option<Vec<Hash>> {
        self.0
            .get(name)?
            .as_array()?
            .iter()
            .map(|it| Hash::from_hex(it.as_str()?))
            .collect()
    }

    fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        hex::decode(self.0.get(name)?.as_str()?)
    }

    fn numbers(&self, name: &str) -> Option<Vec<f32>> {
        // A single-precision number survives the conversion to double and back.
        #[expect(clippy::cast_possible_truncation, reason = "it was one before")]
        let number = |value: &Value| value.as_f64().map(|it| it as f32);
        self.0.get(name)?.as_array()?.iter().map(number).collect()
    }

    fn id(&self, name: &str) -> Option<NodeId> {
        self.0.get(name)?.as_str()?.parse().ok()
    }

    fn bytes_if_any(&self, name: &str) -> Option<Vec<u8>> {
        match self.0.get(name) {
            None => Some(Vec::new()),
            Some(_) => self.bytes(name),
        }
    }

    fn props(&self) -> Option<Map<String, Value>> {
        self.0.get("props")?.as_object().cloned()
    }

    fn node(&self) -> Option<Node> {
        Some(Node {
            id: self.id("id")?,
            kind: self.text("kind")?.parse().ok()?,
            project: self.text("project")?,
            key: self.text("key")?,
            title: self.text("title")?,
            body: self.text("body")?,
            props: self.props()?,
            created: self.hlc("created")?,
            updated: self.hlc("updated")?,
            hash: self.hash("hash")?,
            rev: self.number("rev")?,
        })
    }
}

fn from_json(value: &Value) -> Option<Row> {
    let it = Fields(value);
    Some(match value.get("table")?.as_str()? {
        "nodes" => Row::Node(it.node()?),
        "node_history" => Row::History(it.node()?, it.hlc("ended")?),
        "edges" => Row::Edge(Edge {
            src: it.id("src")?,
            rel: it.text("rel")?,
            dst: it.id("dst")?,
            weight: match value.get("weight")? {
                Value::String(text) => text.parse().ok()?,
                number => number.as_f64()?,
            },
            props: it.props()?,
            from: it.hlc("from")?,
            to: it.hlc("to")?,
            hash: it.hash("hash")?,
        }),
        "passages" => Row::Passage(PassageRow {
            node: it.id("node")?,
            passage: Passage {
                n: u32::try_from(it.number("n")?).ok()?,
                text: it.text("text")?,
                start: it.number("start")?,
                tokens: it.text("tokens")?,
                title_tokens: it.text("title_tokens")?,
            },
        }),
        "names" => Row::Name(NameRow {
            node: it.id("node")?,
            name: it.text("name")?,
        }),
        "vectors" => Row::Vector(Vector {
            collection: it.text("collection")?,
            id: it.text("id")?,
            model: it.text("model")?,
            numbers: it.numbers("numbers")?,
            props: it.props()?,
            seq: it.number("seq")?,
        }),
        "events" => Row::Event(EventRow {
            seq: it.number("seq")?,
            version: u8::try_from(it.number("version")?).ok()?,
            id: it.hash("id")?,
            parents: it.hashes("parents")?,
            hlc: it.hlc("hlc")?,
            author: it.text("author")?,
            kind: it.text("kind")?,
            payload: it.bytes("payload")?,
            signature: it.bytes("signature")?,
            sealed: match value.get("origin") {
                None => SealedData::default(),
                Some(_) => SealedData {
                    origin: it.bytes("origin")?,
                    agent: it.text("agent")?,
                    data: it.bytes("data")?,
                    salt: it.bytes("salt")?,
                    commitment: it.bytes("commitment")?,
                },
            },
        }),
        "tiles" => Row::Tile(TileRow {
            level: u8::try_from(it.number("level")?).ok()?,
            index: it.number("index")?,
            hash: it.hash("hash")?,
        }),
        "checkpoints" => Row::Checkpoint(CheckpointRow {
            height: it.number("height")?,
            seq: it.number("seq")?,
            event_root: it.hash("event_root")?,
            state_root: it.hash("state_root")?,
            hlc: it.hlc("hlc")?,
            author: it.text("author")?,
            signature: it.bytes("signature")?,
            // Backups from before version 2 do not have the rest.
            version: match value.get("version") {
                None => 1,
                Some(_) => u8::try_from(it.number("version")?).ok()?,
            },
            origin: it.bytes_if_any("origin")?,
        }),
        "heads" => Row::Head(HeadRow {
            seq: it.number("seq")?,
            hlc: it.hlc("hlc")?,
            tips: it.hashes("tips")?,
            frontier: it.hashes("frontier")?,
            state: it.bytes("state")?,
            log: it.bytes_if_any("log")?,
        }),
        "kv" => Row::Kv(KvRow {
            bucket: it.text("bucket")?,
            key: it.text("key")?,
            value: it.bytes("value")?,
        }),
        _ => return None,
    })
}
