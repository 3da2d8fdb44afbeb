//! The rows.

use crate::canonical_object;
use crate::names::{NameRow, packed_keys};
use kenning_core::{Hash, Hlc, Kind, NodeId};
use serde_json::{Map, Value};

/// Anything that agents know.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its permanent identifier.
    pub id: NodeId,
    /// What it is.
    pub kind: Kind,
    /// The project it belongs to; empty for what belongs to the whole space.
    pub project: String,
    /// Path, URI or content hash: unique per project and kind.
    pub key: String,
    /// Its title for people.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Everything else.
    pub props: Map<String, Value>,
    /// When the first revision was made.
    pub created: Hlc,
    /// When this revision was made.
    pub updated: Hlc,
    /// Of the canonical form of this revision.
    pub hash: Hash,
    /// 1 for the first revision.
    pub rev: u64,
}

/// The property of an imported node that says when it was made where it came from, in milliseconds
/// since 1970. `created` is when this store first had it, which the log proves.
pub const CREATED_ELSEWHERE_MS: &str = "created_elsewhere_ms";

impl Node {
    /// When it was made, in milliseconds since 1970: an imported one where it came from.
    pub fn created_ms(&self) -> u64 {
        let here = self.created.ms();
        let elsewhere = self.props.get(CREATED_ELSEWHERE_MS).and_then(Value::as_u64);
        elsewhere.map_or(here, |it| it.min(here))
    }

    /// The hash that the content of this row must have.
    ///
    /// The fields are length-prefixed, so that no two contents share their bytes. Times and the
    /// revision are not part of it: the same content has the same hash on every peer.
    pub fn canonical_hash(&self) -> Hash {
        let props = canonical_object(&self.props);
        hash_fields(
            b'n',
            &[
                &self.id.0,
                self.kind.as_str().as_bytes(),
                self.project.as_bytes(),
                self.key.as_bytes(),
                self.title.as_bytes(),
                self.body.as_bytes(),
                props.as_bytes(),
            ],
        )
    }
}

/// Each field stands behind its length.
fn hash_fields(tag: u8, fields: &[&[u8]]) -> Hash {
    let lengths: Vec<[u8; 8]> = fields
        .iter()
        .map(|it| (it.len() as u64).to_be_bytes())
        .collect();
    let fields = lengths.iter().zip(fields);
    let parts = fields.flat_map(|(length, field)| [length.as_slice(), field]);
    Hash::of_parts(std::iter::once([tag].as_slice()).chain(parts))
}

/// A relation between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// The source node.
    pub src: NodeId,
    /// The relation.
    pub rel: String,
    /// The target node.
    pub dst: NodeId,
    /// The strength of the relation.
    pub weight: f64,
    /// Everything else.
    pub props: Map<String, Value>,
    /// Valid from this moment …
    pub from: Hlc,
    /// … until before this one; [`Hlc::MAX`] while it holds.
    pub to: Hlc,
    /// Of the canonical form.
    pub hash: Hash,
}

impl Edge {
    /// The hash that the content of this row must have.
    pub fn canonical_hash(&self) -> Hash {
        let props = canonical_object(&self.props);
        hash_fields(
            b'e',
            &[
                &self.src.0,
                self.rel.as_bytes(),
                &self.dst.0,
                // Not every backend keeps the sign of a zero.
                &(self.weight + 0.0).to_bits().to_be_bytes(),
                props.as_bytes(),
            ],
        )
    }
}

/// A piece of a node's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Which piece, from 0.
    pub n: u32,
    /// Verbatim slice of the body.
    pub text: String,
    /// Where it starts in the body, in bytes.
    pub start: u64,
    /// What it is found by: tokens of the text, joined by spaces.
    pub tokens: String,
    /// Tokens of the node's title and tags.
    pub title_tokens: String,
}

/// A vector in a collection, all of one model and one dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    /// The collection.
    pub collection: String,
    /// Its name there.
    pub id: String,
    /// The model that made it.
    pub model: String,
    /// The numbers.
    pub numbers: Vec<f32>,
    /// Further properties.
    pub props: Map<String, Value>,
    /// The event it was written with: followers ask for what came after.
    pub seq: u64,
}

impl Vector {
    /// The hash of what it holds, whatever event wrote it.
    pub fn canonical_hash(&self) -> Hash {
        // Not every backend keeps the sign of a zero.
        let numbers: Vec<u8> = self
            .numbers
            .iter()
            .flat_map(|it| (it + 0.0).to_be_bytes())
            .collect();
        let props = canonical_object(&self.props);
        hash_fields(
            b'v',
            &[
                self.collection.as_bytes(),
                self.id.as_bytes(),
                self.model.as_bytes(),
                &numbers,
                props.as_bytes(),
            ],
        )
    }
}

/// The hash of the passages of a node, in their order; none for no passages.
pub fn hash_of_passages<'a>(passages: impl IntoIterator<Item = &'a Passage>) -> Option<Hash> {
    let mut hashes = Vec::new();
    for it in passages {
        let hash = hash_fields(
            b'p',
            &[
                &it.n.to_be_bytes(),
                it.text.as_bytes(),
                &it.start.to_be_bytes(),
                it.tokens.as_bytes(),
                it.title_tokens.as_bytes(),
            ],
        );
        hashes.extend_from_slice(&hash.0);
    }
    (!hashes.is_empty()).then(|| hash_fields(b'P', &[&hashes]))
}

/// The hash of the names of a node, whatever their order; none for no names. A name without a letter
/// or a digit is not stored and does not count.
pub fn hash_of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Hash> {
    let names: std::collections::BTreeSet<&str> = names
        .into_iter()
        .filter(|it| !packed_keys(it).is_empty())
        .collect();
    let fields: Vec<&[u8]> = names.iter().map(|it| it.as_bytes()).collect();
    (!fields.is_empty()).then(|| hash_fields(b'N', &fields))
}

/// The hash of a row of the key-value table.
pub fn hash_of_pair(bucket: &str, key: &str, value: &[u8]) -> Hash {
    hash_fields(b'k', &[bucket.as_bytes(), key.as_bytes(), value])
}

/// A recorded event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// Its place in this log, from 1.
    pub seq: u64,
    /// The version of the canonical form.
    pub version: u8,
    /// BLAKE3 of the canonical bytes.
    pub id: Hash,
    /// What its author had seen.
    pub parents: Vec<Hash>,
    /// When it was made.
    pub hlc: Hlc,
    /// Its author, as a DID.
    pub author: String,
    /// What kind of thing happened.
    pub kind: String,
    /// The part that is signed as it is, as canonical JSON: in version 1 everything, from version 2
    /// on which rows were changed.
    pub payload: Vec<u8>,
    /// Ed25519 over the id.
    pub signature: Vec<u8>,
    /// From version 2 on, everything else. Before, this and the fields below do not exist.
    pub sealed: SealedData,
}

/// What an event has from version 2 on. All of it is empty in an event of version 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealedData {
    /// Which log, and which space: the log's id (16 bytes), then the name of the space.
    pub origin: Vec<u8>,
    /// The agent for whom the author wrote, as a DID; empty if none was named.
    pub agent: String,
    /// What the event says, as canonical JSON. Not signed itself, so that it can be erased.
    pub data: Vec<u8>,
    /// Random bytes, so that erased data cannot be guessed by trying. Empty once it is erased.
    pub salt: Vec<u8>,
    /// Hash of salt and data: this is what is signed.
    pub commitment: Vec<u8>,
}

/// Where the log stands: everything that the next append needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadRow {
    /// Number of events.
    pub seq: u64,
    /// The latest time in the log.
    pub hlc: Hlc,
    /// Events that no other event names as a parent.
    pub tips: Vec<Hash>,
    /// Roots of the complete subtrees, largest first.
    pub frontier: Vec<Hash>,
    /// The sum that the state root is the hash of.
    pub state: Vec<u8>,
    /// The log's id and its authors, as `audit` writes them; empty while all events are of version 1.
    pub log: Vec<u8>,
}

/// The root of a complete subtree of `256^level` events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileRow {
    /// 1 for 256 events, 2 for 65,536 …
    pub level: u8,
    /// Which one, from 0.
    pub index: u64,
    /// Its root.
    pub hash: Hash,
}

/// A signed statement of what the log was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRow {
    /// Which checkpoint, from 0.
    pub height: u64,
    /// Number of events it covers.
    pub seq: u64,
    /// Merkle root over the event ids.
    pub event_root: Hash,
    /// Root of all nodes and edges.
    pub state_root: Hash,
    /// When it was made.
    pub hlc: Hlc,
    /// Its author, as a DID.
    pub author: String,
    /// Ed25519 over all of the above, and the origin.
    pub signature: Vec<u8>,
    /// The version of what is signed.
    pub version: u8,
    /// Which log, and which space, as in [`SealedData::origin`]; empty in version 1.
    pub origin: Vec<u8>,
}

/// A row of the key-value table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvRow {
    /// The bucket.
    pub bucket: String,
    /// The key.
    pub key: String,
    /// The value.
    pub value: Vec<u8>,
}

/// How the nearest vectors were searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// Every vector of the collection was compared.
    Exact,
    /// An approximate graph index chose those that were compared: one of the nearest may be missing.
    Hnsw,
}

impl IndexKind {
    /// The name that callers are told.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Hnsw => "hnsw",
        }
    }
}

/// The nearest vectors, and how they were found.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// How they were searched.
    pub index: IndexKind,
    /// The most similar first; the cosine is exact in both cases.
    pub hits: Vec<Near>,
}

impl Nearest {
    /// Found by comparing all.
    pub fn exact(hits: Vec<Near>) -> Self {
        let index = IndexKind::Exact;
        Self { index, hits }
    }
}

/// A vector that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Near {
    /// Its name in the collection.
    pub id: String,
    /// The cosine, between -1 and 1.
    pub similarity: f64,
}

/// A passage with the node it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassageRow {
    /// The node.
    pub node: NodeId,
    /// The passage.
    pub passage: Passage,
}

/// The tables, in the order in which they can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// Current nodes.
    Nodes,
    /// Superseded revisions.
    History,
    /// Edges, ended ones too.
    Edges,
    /// Passages of texts.
    Passages,
    /// Names that nodes are found by.
    Names,
    /// Vectors of collections.
    Vectors,
    /// Events of the log.
    Events,
    /// Subtree roots.
    Tiles,
    /// Signed checkpoints.
    Checkpoints,
    /// The head.
    Head,
    /// Cursors, jobs and settings.
    Kv,
}

impl Table {
    /// The name that messages and backups use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::History => "node_history",
            Self::Edges => "edges",
            Self::Passages => "passages",
            Self::Names => "names",
            Self::Vectors => "vectors",
            Self::Events => "events",
            Self::Tiles => "tiles",
            Self::Checkpoints => "checkpoints",
            Self::Head => "heads",
            Self::Kv => "kv",
        }
    }

    /// Every table, in the order in which they can be loaded.
    pub const ALL: [Self; 11] = [
        Self::Nodes,
        Self::History,
        Self::Edges,
        Self::Passages,
        Self::Names,
        Self::Vectors,
        Self::Events,
        Self::Tiles,
        Self::Checkpoints,
        Self::Head,
        Self::Kv,
    ];
}

/// Any row, raw.
#[derive(Clone, Debug, PartialEq)]
pub enum Row {
    /// A current node.
    Node(Node),
    /// A superseded revision and the moment it ended.
    History(Node, Hlc),
    /// An edge.
    Edge(Edge),
    /// A passage.
    Passage(PassageRow),
    /// A name.
    Name(NameRow),
    /// A vector.
    Vector(Vector),
    /// An event.
    Event(EventRow),
    /// A subtree root.
    Tile(TileRow),
    /// A checkpoint.
    Checkpoint(CheckpointRow),
    /// The head.
    Head(HeadRow),
    /// A key-value pair.
    Kv(KvRow),
}

/// One column of a row's key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyPart {
    /// The id of a node.
    Id(NodeId),
    /// A text; texts are ordered by their bytes.
    Text(String),
    /// A number.
    Number(u64),
}

/// What a row is found by in its table. [`ReadTx::scan`](crate::ReadTx::scan) gives rows in the order of
/// their keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey(pub Vec<KeyPart>);

impl Row {
    /// Its key.
    pub fn key(&self) -> RowKey {
        use KeyPart::{Id, Number, Text};
        RowKey(match self {
            Self::Node(it) => vec![Id(it.id)],
            Self::History(it, _) => vec![Id(it.id), Number(it.rev)],
            Self::Edge(it) => vec![
                Id(it.src),
                Text(it.rel.clone()),
                Id(it.dst),
                Number(it.from.0),
            ],
            Self::Passage(it) => vec![Id(it.node), Number(it.passage.n.into())],
            Self::Name(it) => vec![Id(it.node), Text(it.name.clone())],
            Self::Vector(it) => vec![Text(it.collection.clone()), Text(it.id.clone())],
            Self::Event(it) => vec![Number(it.seq)],
            Self::Tile(it) => vec![Number(it.level.into()), Number(it.index)],
            Self::Checkpoint(it) => vec![Number(it.height)],
            Self::Head(_) => vec![Number(0)],
            Self::Kv(it) => vec![Text(it.bucket.clone()), Text(it.key.clone())],
        })
    }
}

/// Now, or a past moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// What holds now.
    #[default]
    Now,
    /// What held at that moment.
    At(Hlc),
}

/// Which nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFilter {
    /// Of these kinds; empty for any.
    pub kinds: Vec<Kind>,
    /// Of this project; `Some("")` for those of no project.
    pub project: Option<String>,
    /// Whose keys have this prefix.
    pub key_prefix: Option<String>,
}

/// Which edges. At least one end should be named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeFilter {
    /// From this node.
    pub src: Option<NodeId>,
    /// Of this relation.
    pub rel: Option<String>,
    /// To this node.
    pub dst: Option<NodeId>,
}
