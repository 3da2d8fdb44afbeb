//! Which operation comes next.
//!
//! Times, revisions and places in the log mostly go up by one, as `audit` makes them; sometimes they
//! do not, and every backend must refuse that in the same way.

use crate::draw::Draw;
use crate::steps::{Ask, Change, Ending, Step};
use kenning_core::{Hash, Hlc, NodeId, Space};
use kenning_store::{
    CheckpointRow, Edge, EventEffect, EventFilter, EventPage, EventRow, HeadRow, Node, Row,
    SealedData, Store, Table, TileRow, Vector, When,
};

/// After so many operations new spaces are used, so that no table grows for ever.
const ERA_OPERATIONS: u64 = 10_000;
/// Every table of every space is compared after so many.
const SCAN_OPERATIONS: u64 = 500;
/// A space is copied row by row into a new one after so many.
const COPY_OPERATIONS: u64 = 2_500;
const N_SPACES: u64 = 3;

/// What the next operation is drawn from.
pub(crate) struct World {
    draw: Draw,
    /// The model: what is there already.
    known: Store,
    n_operations: u64,
    now: u64,
    next_seq: u64,
    n_copies: u64,
    /// Steps that belong together.
    waiting: Vec<Step>,
}

impl World {
    pub(crate) fn new(seed: u64, known: Store) -> Self {
        Self {
            draw: Draw::new(seed),
            known,
            n_operations: 0,
            now: 10,
            next_seq: 1,
            n_copies: 0,
            waiting: Vec::new(),
        }
    }

    pub(crate) fn next(&mut self) -> Step {
        let before = self.n_operations;
        let step = self.waiting.pop().unwrap_or_else(|| self.drawn());
        self.n_operations += step.n_operations();
        let passed = |n: u64| before / n != self.n_operations / n;
        if passed(SCAN_OPERATIONS) {
            for n in 0..N_SPACES {
                let scan = Table::ALL.map(Ask::Scan).to_vec();
                self.waiting.push(Step::Read(self.space(n), scan));
            }
        }
        if passed(COPY_OPERATIONS) {
            self.copy();
        }
        step
    }

    fn space(&self, n: u64) -> Space {
        let era = self.n_operations / ERA_OPERATIONS;
        // These are letters, digits and a dash: a space's name.
        format!("e{era}-{n}").parse().unwrap_or_default()
    }

    fn drawn(&mut self) -> Step {
        let space = self.space(self.draw.below(N_SPACES));
        match self.draw.below(1_000) {
            // A step is two operations or three: so one operation in a thousand finds a reopened backend.
            0..3 => Step::Reopen(self.draw.index(3)),
            3..5 => Step::Spaces,
            5..450 => {
                let n = if self.draw.once_in(3) {
                    1 + self.draw.below(10)
                } else {
                    1
                };
                let changes = (0..n).map(|_| self.change(&space)).collect();
                let ending = match self.draw.below(40) {
                    0 => Ending::Failed,
                    1 if self.draw.once_in(4) => Ending::Panicked,
                    _ => Ending::Kept,
                };
                Step::Write(space, changes, ending)
            }
            _ => {
                let asks = (0..=self.draw.below(3)).map(|_| self.ask(true));
                Step::Read(space, asks.collect())
            }
        }
    }

    /// Copies the rows of a space, as a restore does; now and then into one that has them already.
    fn copy(&mut self) {
        let from = self.space(self.draw.below(N_SPACES));
        self.n_copies += 1;
        let to = match self.draw.below(4) {
            0 => self.space(self.draw.below(N_SPACES)),
            _ => format!("copy-{}", self.n_copies)
                .parse()
                .unwrap_or_default(),
        };
        let mut rows: Vec<Row> = Vec::new();
        for table in Table::ALL {
            let read = self.known.read(&from, |tx| {
                tx.scan(table, &mut |row| {
                    rows.push(row);
                    Ok(())
                })
            });
            drop(read);
        }
        let mut asks = Table::ALL.map(Ask::Scan).to_vec();
        asks.extend((0..20).map(|_| self.ask(true)));
        self.waiting.push(Step::Read(to.clone(), asks));
        let load = rows.into_iter().map(Change::Load).collect();
        self.waiting.push(Step::WriteLong(to, load));
    }

    /// A little later, or the same moment.
    fn tick(&mut self) -> Hlc {
        self.now += self.draw.below(3);
        Hlc(self.now)
    }

    fn change(&mut self, space: &Space) -> Change {
        match self.draw.below(110) {
            0..30 => Change::PutNode(self.node(space)),
            30..35 => Change::RemoveNode(self.draw.id(), self.tick()),
            35..45 => Change::PutEdge(self.edge()),
            45..49 => {
                let (src, dst) = (self.draw.few(), self.draw.few());
                Change::EndEdge(src, self.draw.short("rel"), dst, self.tick())
            }
            49..62 => Change::PutPassages(self.there(space), self.draw.passages()),
            62..70 => {
                let names = (0..self.draw.below(4)).map(|_| self.draw.name());
                Change::PutNames(self.there(space), names.collect())
            }
            70..78 => Change::PutVector(self.vector()),
            78..80 => Change::RemoveVector(self.draw.short("c"), self.vector_id()),
            80..85 => Change::AppendEvent(self.event()),
            85..87 => Change::PutHead(self.head()),
            87..89 => Change::PutTile(TileRow {
                level: self.draw.below(256) as u8,
                index: self.draw.below(8),
                hash: self.draw.hash(),
            }),
            89..91 => Change::PutCheckpoint(self.checkpoint()),
            91..97 => Change::Set(self.draw.short("b"), self.draw.key(), self.draw.bytes()),
            97..99 => Change::Unset(self.draw.short("b"), self.draw.key()),
            99 => Change::Ignore(Box::new(self.change(space))),
            _ => Change::Ask(self.ask(false)),
        }
    }

    /// A node that is there, mostly.
    fn there(&self, space: &Space) -> NodeId {
        let id = self.draw.id();
        let next = self.known.read(space, |tx| {
            tx.nodes(&Default::default(), When::Now, Some(id), 1)
        });
        match next {
            Ok(nodes) if !self.draw.once_in(30) => nodes.first().map_or(id, |it| it.id),
            _ => id,
        }
    }

    fn node(&mut self, space: &Space) -> Node {
        let id = self.draw.id();
        let before = self.known.read(space, |tx| tx.node(id, When::Now));
        let past = self.known.read(space, |tx| tx.history(id));
        let before = before.ok().flatten();
        let past = past
            .ok()
            .and_then(|revisions| revisions.last().map(|it| it.0.rev));
        let at = self.tick();
        let last = before.as_ref().map(|it| it.rev).or(past);
        let mut node = Node {
            id,
            kind: self.draw.kind(),
            project: self.draw.project(),
            key: self.draw.key(),
            title: self.draw.text(),
            body: self.draw.body(),
            props: self.draw.props(),
            created: before.as_ref().map_or(at, |it| it.created),
            updated: at,
            hash: Hash::default(),
            rev: match self.draw.below(60) {
                0 => 1,
                1 => last.unwrap_or(1),
                _ => last.unwrap_or(0) + 1,
            },
        };
        if let Some(before) = before
            && !self.draw.once_in(6)
        {
            (node.kind, node.project, node.key) = (before.kind, before.project, before.key);
        }
        node.hash = node.canonical_hash();
        node
    }

    fn edge(&mut self) -> Edge {
        let from = self.tick();
        let mut edge = Edge {
            src: self.draw.few(),
            rel: self.draw.short("rel"),
            dst: self.draw.few(),
            weight: self.draw.weight(),
            props: self.draw.props(),
            from,
            to: match self.draw.below(20) {
                0 => Hlc(from.0 + self.draw.below(50)),
                _ => Hlc::MAX,
            },
            hash: Hash::default(),
        };
        edge.hash = edge.canonical_hash();
        edge
    }

    fn vector_id(&self) -> String {
        if self.draw.once_in(20) {
            return self.draw.text();
        }
        format!("v{}", self.draw.below(40))
    }

    fn vector(&mut self) -> Vector {
        self.next_seq += self.draw.below(2);
        Vector {
            collection: self.draw.short("c"),
            id: self.vector_id(),
            model: self.draw.short("m"),
            numbers: self.draw.numbers(),
            props: self.draw.props(),
            seq: self.next_seq,
        }
    }

    fn event(&mut self) -> EventRow {
        self.next_seq += 1;
        let seq = match self.draw.below(20) {
            0 => self.draw.below(self.next_seq),
            _ => self.next_seq,
        };
        EventRow {
            seq,
            version: self.draw.below(256) as u8,
            id: match self.draw.below(20) {
                0 => Hash::of(&self.draw.below(self.next_seq).to_be_bytes()),
                _ => Hash::of(&seq.to_be_bytes()),
            },
            parents: (0..self.draw.below(3)).map(|_| self.draw.hash()).collect(),
            hlc: self.tick(),
            author: self.draw.short("did:key:z6Mk"),
            kind: self.draw.short("Told"),
            payload: self.payload(),
            signature: vec![7; 64],
            sealed: SealedData {
                origin: self.draw.bytes(),
                agent: self.draw.short("did:key:z6Mk"),
                data: self.draw.bytes(),
                salt: self.draw.bytes(),
                commitment: self.draw.bytes(),
            },
        }
    }

    /// Changes as events have them, or any bytes.
    fn payload(&self) -> Vec<u8> {
        let change = || match self.draw.below(5) {
            0 => r#"{"hash":"00","id":"n","put":"node","rev":1}"#,
            1 => r#"{"hash":"00","id":"n","put":"node","rev":12}"#,
            2 => r#"{"id":"n","remove":"node"}"#,
            3 => r#"{"dst":"n","hash":"00","put":"edge","rel":"\"put\":\"node\"","src":"m"}"#,
            _ => r#"{"dst":"n","rel":"r","remove":"edge","src":"m"}"#,
        };
        match self.draw.below(3) {
            0 => self.draw.bytes(),
            n => {
                let changes: Vec<&str> = (0..n).map(|_| change()).collect();
                format!("[{}]", changes.join(",")).into_bytes()
            }
        }
    }

    fn head(&mut self) -> HeadRow {
        HeadRow {
            seq: self.next_seq,
            hlc: self.tick(),
            tips: (0..self.draw.below(3)).map(|_| self.draw.hash()).collect(),
            frontier: (0..self.draw.below(9)).map(|_| self.draw.hash()).collect(),
            state: self.draw.bytes(),
            log: self.draw.bytes(),
        }
    }

    fn checkpoint(&mut self) -> CheckpointRow {
        CheckpointRow {
            height: self.draw.below(400),
            seq: self.draw.below(self.next_seq),
            event_root: self.draw.hash(),
            state_root: self.draw.hash(),
            hlc: self.tick(),
            author: self.draw.short("did:key:z6Mk"),
            signature: self.draw.bytes(),
            version: self.draw.below(256) as u8,
            origin: self.draw.bytes(),
        }
    }

    /// A question; only a read goes on after one that failed.
    fn ask(&self, in_read: bool) -> Ask {
        let draw = &self.draw;
        let when = draw.when(self.now);
        match draw.below(if in_read { 84 } else { 82 }) {
            0..6 => Ask::Node(draw.id(), when),
            6..12 => Ask::NodeByKey(draw.project(), draw.kind(), draw.key(), when),
            12..20 => {
                let after = draw.maybe(|| draw.id());
                Ask::Nodes(draw.filter(), when, after, draw.limit())
            }
            20..24 => Ask::Count(draw.filter()),
            24..27 => Ask::History(draw.id()),
            27..33 => Ask::Edges(draw.edge_filter(), when, draw.limit()),
            33..48 => Ask::Passages(draw.id()),
            48..54 => Ask::FindNames(draw.name(), draw.filter(), draw.limit()),
            54..57 => Ask::Vector(draw.short("c"), self.vector_id()),
            57..60 => Ask::VectorsSince(draw.short("c"), self.seq(), draw.limit()),
            60..64 => Ask::Nearest(draw.short("c"), draw.numbers(), draw.limit()),
            64 => Ask::Head,
            65..67 => Ask::EventsAfter(self.seq(), draw.limit()),
            67 => Ask::EventById(Hash::of(&self.seq().to_be_bytes())),
            68 => Ask::Tile(draw.below(256) as u8, draw.below(9)),
            69..71 => Ask::CheckpointAt(self.seq()),
            71..73 => Ask::Get(draw.short("b"), draw.key()),
            73..75 => Ask::List(draw.short("b")),
            75..78 => {
                let page = EventPage {
                    skip: draw.below(4) * draw.below(3),
                    limit: draw.limit(),
                    newest_first: draw.once_in(2),
                };
                Ask::FindEvents(self.event_filter(), page)
            }
            78..80 => Ask::CountEvents(self.event_filter()),
            80 => Ask::EventKinds,
            81 => Ask::Scan(*draw.of(&Table::ALL)),
            _ => Ask::ScanUntil(*draw.of(&Table::ALL), draw.index(20)),
        }
    }

    fn moment(&self) -> Hlc {
        Hlc(self.draw.below(self.now + 2))
    }

    /// A filter of events. Their payloads are random bytes here, so no text is asked for.
    fn event_filter(&self) -> EventFilter {
        let draw = &self.draw;
        EventFilter {
            kinds: (0..draw.below(3)).map(|_| draw.short("Told")).collect(),
            effects: (0..draw.below(8).saturating_sub(5))
                .map(|_| EventEffect::ALL[draw.index(EventEffect::ALL.len())])
                .collect(),
            effects_except: (0..draw.below(2)).map(|_| draw.short("Told")).collect(),
            from: draw.maybe(|| self.moment()),
            to: draw.maybe(|| self.moment()),
            author: (draw.below(4) == 0).then(|| draw.short("did:key:z6Mk")),
            at: (draw.below(6) == 0).then(|| (0..draw.below(9)).map(|_| self.moment()).collect()),
            text: None,
        }
    }

    fn seq(&self) -> u64 {
        match self.draw.below(20) {
            0 => 0,
            1 => u64::MAX,
            2 => u64::from(u32::MAX) + 1,
            _ => self.draw.below(self.next_seq + 2),
        }
    }
}
