//! One node in memory, and the random writes that it makes.

use crate::fence::Fence;
use kenning_audit::{Draft, EdgeDraft, Log, Signer, Tx, Verify, verify};
use kenning_core::{
    Clock, Error, FixedClock, Hash, Hlc, Kind, NodeId, Result, SeededRandom, Space,
};
use kenning_peers::{Peer, Policy, Rules, peer_id};
use kenning_store::{
    Backend, EdgeFilter, Node as NodeRow, NodeFilter, Passage, Row, Store, Table, Vector, When,
};
use kenning_store_sqlite::Sqlite;
use kenning_testing_model::Model;
use serde_json::{Map, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Where every node's clock is about.
const START_MS: u64 = 1_800_000_000_000;

const HOUR_MS: u64 = 60 * 60 * 1000;

const COLLECTION: &str = "default/3";

pub(crate) fn space() -> Space {
    Space::default()
}

fn passages_of(node: &NodeRow) -> Vec<Passage> {
    if node.body.is_empty() {
        return Vec::new();
    }
    vec![Passage {
        n: 0,
        text: node.body.clone(),
        start: 0,
        tokens: node.body.to_lowercase(),
        title_tokens: node.title.to_lowercase(),
    }]
}

pub(crate) const RULES: Rules = Rules {
    passages_of,
    is_shared: |_| true,
};

/// A node.
pub(crate) struct Node {
    pub(crate) log: Log,
    clock: Arc<FixedClock>,
    random: Arc<SeededRandom>,
    secret: [u8; 32],
    ground: Ground,
    fence: Fence,
    /// Ids of events that were acknowledged to whoever wrote them.
    pub(crate) acknowledged: Vec<Hash>,
}

/// What outlives the process of a node.
enum Ground {
    Memory(Arc<dyn Backend>),
    Files(tempfile::TempDir),
}

impl Ground {
    fn on_files() -> Result<Self> {
        let dir = tempfile::tempdir();
        let dir = dir.map_err(|it| Error::internal("no directory for a store").because(it))?;
        Ok(Self::Files(dir))
    }

    fn fence(&self) -> Result<Fence> {
        match self {
            Self::Memory(model) => Ok(Fence::around(model)),
            Self::Files(dir) => {
                let opened: Arc<dyn Backend> = Arc::new(Sqlite::open(dir.path())?);
                Ok(Fence::around(&opened))
            }
        }
    }
}

impl Default for Ground {
    fn default() -> Self {
        Self::Memory(Arc::new(Model::default()))
    }
}

impl Node {
    /// A node in memory.
    pub(crate) fn new(draw: &SeededRandom) -> Result<Self> {
        Self::on(Ground::default(), draw)
    }

    /// A node on SQLite.
    pub(crate) fn on_files(draw: &SeededRandom) -> Result<Self> {
        Self::on(Ground::on_files()?, draw)
    }

    fn on(ground: Ground, draw: &SeededRandom) -> Result<Self> {
        let random = Arc::new(SeededRandom::new(draw.next()));
        let signer = Signer::generate(&*random);
        // Up to an hour before or after the others.
        let clock = Arc::new(FixedClock::at(START_MS + draw.below(2 * HOUR_MS)));
        let secret = signer.secret();
        let fence = ground.fence()?;
        let log = Log::new(
            Store::new(fence.clone()),
            signer,
            Arc::clone(&clock) as _,
            Arc::clone(&random) as _,
        );
        Ok(Self {
            log,
            clock,
            random,
            secret,
            ground,
            fence,
            acknowledged: Vec::new(),
        })
    }

    /// Kills its process, and another one opens the same store.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.fence.kill();
        self.fence = self.ground.fence()?;
        self.log = Log::new(
            Store::new(self.fence.clone()),
            Signer::from_secret(&self.secret),
            Arc::clone(&self.clock) as _,
            Arc::clone(&self.random) as _,
        );
        Ok(())
    }

    /// Is killed while it writes: before the commit, or after it and before anybody is told.
    pub(crate) fn die_writing(&mut self, draw: &SeededRandom) -> Result<()> {
        self.fence.kill_after(0, draw.below(2) == 0);
        match self.write(draw) {
            Ok(()) => Err(Error::internal(
                "a write of a killed process was acknowledged",
            )),
            Err(_) => self.kill(),
        }
    }

    /// A node with the same key and the same rows, which goes its own way from here.
    pub(crate) fn fork(&self, draw: &SeededRandom) -> Result<Self> {
        let ground = Ground::default();
        let fence = ground.fence()?;
        let store = Store::new(fence.clone());
        let mut rows = Vec::new();
        self.log.read(&space(), |tx| {
            kenning_audit::archive::dump(tx, &mut |row| {
                rows.push(Ok(row));
                Ok(())
            })
        })?;
        kenning_audit::archive::load(&store, &space(), rows.into_iter())?;
        let random = Arc::new(SeededRandom::new(draw.next()));
        let clock = Arc::new(FixedClock::at(self.clock.now_ms() + 10_000));
        let signer = Signer::from_secret(&self.secret);
        let log = Log::new(
            store,
            signer,
            Arc::clone(&clock) as _,
            Arc::clone(&random) as _,
        );
        Ok(Self {
            log,
            clock,
            random,
            secret: self.secret,
            ground,
            fence,
            acknowledged: Vec::new(),
        })
    }

    pub(crate) fn signer(&self) -> Signer {
        Signer::from_secret(&self.secret)
    }

    /// As others know it, who take what it passes on.
    pub(crate) fn as_peer(&self) -> Peer {
        self.with_policy(Policy {
            relays: true,
            ..Policy::default()
        })
    }

    pub(crate) fn with_policy(&self, policy: Policy) -> Peer {
        let did = self.log.signer().did().clone();
        Peer {
            id: peer_id("", &did),
            did,
            endpoint: String::new(),
            policy,
            added_ms: 0,
            cut_off: None,
        }
    }

    pub(crate) fn trust(&self, other: &Self) -> Result<()> {
        let did = other.log.signer().did().clone();
        self.log.write(&space(), move |tx| {
            tx.add_author(&did);
            tx.record("PeerAdded", json!({})).map(drop)
        })
    }

    pub(crate) fn advance(&self, draw: &SeededRandom) {
        // Often not at all, so that several events have one time.
        if draw.below(2) == 0 {
            self.clock.advance(draw.below(2_000));
        }
    }

    /// Somebody sets its clock back, by up to ten minutes.
    pub(crate) fn set_clock_back(&self, draw: &SeededRandom) {
        self.clock.advance(draw.below(HOUR_MS / 6).wrapping_neg());
    }

    /// A random write of one to three changes; what it says depends on the seed alone.
    pub(crate) fn write(&mut self, draw: &SeededRandom) -> Result<()> {
        self.advance(draw);
        let seed = draw.next();
        let id = self.log.write(&space(), move |tx| {
            let draw = SeededRandom::new(seed);
            for _ in 0..=draw.below(3) {
                change(tx, &draw)?;
            }
            tx.record("NodeUpdated", json!({ "n": draw.below(1_000) }))
        })?;
        // An event that changed nothing stays where it is.
        let row = self.log.read(&space(), |tx| tx.event_by_id(&id.0))?;
        let event = row.and_then(|it| kenning_audit::event::parse(&it));
        if event.is_some_and(|it| !it.changes.is_empty()) {
            self.acknowledged.push(id.0);
        }
        Ok(())
    }

    /// Everything that must be the same on every node, one line a row, and faults of its own.
    pub(crate) fn shown(&self) -> Result<(Vec<String>, Vec<String>)> {
        let mut rows = Vec::new();
        let report = self.log.read(&space(), |tx| {
            for table in [
                Table::Nodes,
                Table::Edges,
                Table::Passages,
                Table::Names,
                Table::Vectors,
                Table::Kv,
            ] {
                tx.scan(table, &mut |row| {
                    rows.extend(shown(row));
                    Ok(())
                })?;
            }
            let roots = kenning_audit::roots(tx)?;
            rows.push(format!("root {}", roots.state_root));
            verify(tx, &Verify::of(&space()), &|_| ())
        })?;
        let newest = self.log.read(&space(), |tx| {
            kenning_audit::verify_newest(tx, None, usize::MAX)
        })?;
        let faults = report.faults.into_iter().chain(newest.faults);
        Ok((rows, faults.collect()))
    }

    pub(crate) fn size(&self) -> Result<u64> {
        Ok(self.log.roots(&space())?.seq)
    }

    /// The authors of its events.
    pub(crate) fn authors(&self) -> Result<BTreeSet<String>> {
        let mut authors = BTreeSet::new();
        self.log.read(&space(), |tx| {
            tx.scan(Table::Events, &mut |row| {
                if let Row::Event(event) = row {
                    authors.insert(event.author);
                }
                Ok(())
            })
        })?;
        Ok(authors)
    }

    /// The kinds of its nodes.
    pub(crate) fn kinds(&self) -> Result<BTreeSet<Kind>> {
        let mut kinds = BTreeSet::new();
        self.log.read(&space(), |tx| {
            tx.scan(Table::Nodes, &mut |row| {
                if let Row::Node(node) = row {
                    kinds.insert(node.kind);
                }
                Ok(())
            })
        })?;
        Ok(kinds)
    }

    pub(crate) fn did(&self) -> String {
        self.log.signer().did().to_string()
    }

    pub(crate) fn has(&self, id: &Hash) -> Result<bool> {
        Ok(self.log.read(&space(), |tx| tx.event_by_id(id))?.is_some())
    }
}

/// A row as every node must have it: without what is only local.
fn shown(row: Row) -> Option<String> {
    match row {
        Row::Node(mut node) => {
            node.rev = 0;
            Some(format!("{node:?}"))
        }
        Row::Edge(edge) if edge.to == Hlc::MAX => Some(format!("{edge:?}")),
        Row::Vector(vector) => {
            let vector = Vector { seq: 0, ..vector };
            Some(format!("{vector:?}"))
        }
        Row::Kv(row) if kenning_audit::is_shared_bucket(&row.bucket) => Some(format!("{row:?}")),
        Row::Passage(row) => Some(format!("{row:?}")),
        // Names go with the write of their node and are no register of their own.
        _ => None,
    }
}

pub(crate) const KINDS: [Kind; 4] = [Kind::Memory, Kind::Page, Kind::Document, Kind::Vector];

fn draft(draw: &SeededRandom, kind: Kind) -> Draft {
    Draft {
        kind,
        project: String::new(),
        key: format!("k{}", draw.below(6)),
        title: format!("title {}", draw.below(3)),
        body: format!("the words {}", draw.below(20)),
        props: Map::new(),
    }
}

fn kind(draw: &SeededRandom) -> Kind {
    let n = draw.below(KINDS.len() as u64);
    let n = usize::try_from(n).unwrap_or_default();
    KINDS.get(n).copied().unwrap_or(Kind::Memory)
}

fn any_node(tx: &Tx<'_>, draw: &SeededRandom) -> Result<Option<NodeRow>> {
    let all = tx.nodes(&NodeFilter::default(), When::Now, None, 100)?;
    let n = usize::try_from(draw.below(all.len().max(1) as u64)).unwrap_or_default();
    Ok(all.into_iter().nth(n))
}

fn put(tx: &mut Tx<'_>, draw: &SeededRandom) -> Result<NodeId> {
    let node = tx.put_node(draft(draw, kind(draw)))?;
    tx.put_passages(node.id, &passages_of(&node))?;
    Ok(node.id)
}

fn change(tx: &mut Tx<'_>, draw: &SeededRandom) -> Result<()> {
    match draw.below(12) {
        0..=3 => put(tx, draw).map(drop),
        4 => {
            let id = put(tx, draw)?;
            tx.put_names(id, &[format!("name {}", draw.below(5))])
        }
        5 => {
            let Some(node) = any_node(tx, draw)? else {
                return Ok(());
            };
            let moved = Draft {
                key: format!("k{}", draw.below(6)),
                ..draft(draw, node.kind)
            };
            let taken = tx.node_by_key("", moved.kind, &moved.key, When::Now)?;
            if taken.is_some_and(|it| it.id != node.id) {
                return Ok(());
            }
            let node = tx.move_node(node.id, moved)?;
            tx.put_passages(node.id, &passages_of(&node))
        }
        6 => match any_node(tx, draw)? {
            Some(node) => tx.remove_node(node.id),
            None => Ok(()),
        },
        7 | 8 => {
            let (Some(from), Some(to)) = (any_node(tx, draw)?, any_node(tx, draw)?) else {
                return Ok(());
            };
            #[expect(clippy::cast_precision_loss, reason = "a small number")]
            let weight = draw.below(3) as f64;
            let edge = EdgeDraft {
                src: from.id,
                rel: format!("r{}", draw.below(2)),
                dst: to.id,
                weight,
                props: Map::new(),
            };
            tx.put_edge(edge).map(drop)
        }
        9 => {
            let Some(from) = any_node(tx, draw)? else {
                return Ok(());
            };
            let filter = EdgeFilter {
                src: Some(from.id),
                ..EdgeFilter::default()
            };
            match tx.edges(&filter, When::Now, 1)?.pop() {
                Some(edge) => tx.end_edge(edge.src, &edge.rel, edge.dst),
                None => Ok(()),
            }
        }
        10 => {
            let id = format!("v{}", draw.below(4));
            if draw.below(4) == 0 {
                return tx.remove_vector(COLLECTION, &id);
            }
            #[expect(clippy::cast_precision_loss, reason = "a small number")]
            let numbers = vec![1.0, draw.below(9) as f32, 2.0];
            tx.put_vector(Vector {
                collection: COLLECTION.to_owned(),
                id,
                model: "caller".to_owned(),
                numbers,
                props: Map::new(),
                seq: 0,
            })
        }
        _ => {
            let key = format!("i{}", draw.below(3));
            if draw.below(4) == 0 {
                return tx.unset("registry/owners", &key);
            }
            tx.set(
                "registry/owners",
                &key,
                &[b'a' + u8::try_from(draw.below(20)).unwrap_or(0)],
            )
        }
    }
}
