//! Operations as values, so that the same one is done to every backend and can be printed.

use kenning_core::{Error, Hash, Hlc, Kind, NodeId, Result, Space};
use kenning_store::{
    CheckpointRow, Edge, EdgeFilter, EventFilter, EventPage, EventRow, HeadRow, NameHit, Near,
    Node, NodeFilter, Passage, ReadTx, Row, Store, Table, TileRow, Vector, When, WriteTx,
};

/// One change.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    PutNode(Node),
    RemoveNode(NodeId, Hlc),
    PutEdge(Edge),
    EndEdge(NodeId, String, NodeId, Hlc),
    PutPassages(NodeId, Vec<Passage>),
    PutNames(NodeId, Vec<String>),
    PutVector(Vector),
    RemoveVector(String, String),
    AppendEvent(EventRow),
    PutHead(HeadRow),
    PutTile(TileRow),
    PutCheckpoint(CheckpointRow),
    Set(String, String, Vec<u8>),
    Unset(String, String),
    Load(Row),
    /// A question inside a write sees what the write has done so far.
    Ask(Ask),
    /// The work goes on though this failed.
    Ignore(Box<Change>),
}

/// One question.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Node(NodeId, When),
    NodeByKey(String, Kind, String, When),
    Nodes(NodeFilter, When, Option<NodeId>, usize),
    Count(NodeFilter),
    History(NodeId),
    Edges(EdgeFilter, When, usize),
    Passages(NodeId),
    FindNames(String, NodeFilter, usize),
    Vector(String, String),
    VectorsSince(String, u64, usize),
    Nearest(String, Vec<f32>, usize),
    Head,
    EventsAfter(u64, usize),
    FindEvents(EventFilter, EventPage),
    CountEvents(EventFilter),
    EventKinds,
    EventById(Hash),
    Tile(u8, u64),
    CheckpointAt(u64),
    Get(String, String),
    List(String),
    Scan(Table),
    /// Stops after so many rows with an error of its own; the transaction can still be used.
    ScanUntil(Table, usize),
}

/// How a write ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    Kept,
    Failed,
    Panicked,
}

/// What is done at once.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Write(Space, Vec<Change>, Ending),
    WriteLong(Space, Vec<Change>),
    Read(Space, Vec<Ask>),
    Spaces,
    /// This backend is closed and opened again.
    Reopen(usize),
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Done,
    Nodes(Vec<Node>),
    Count(u64),
    History(Vec<(Node, Hlc)>),
    Edges(Vec<Edge>),
    Passages(Vec<Passage>),
    Names(Vec<NameHit>),
    Vectors(Vec<Vector>),
    Near(Vec<Near>),
    Head(Option<HeadRow>),
    Events(Vec<EventRow>),
    Kinds(Vec<(String, u64)>),
    Hash(Option<Hash>),
    Checkpoint(Option<CheckpointRow>),
    Value(Option<Vec<u8>>),
    List(Vec<(String, Vec<u8>)>),
    Rows(Vec<Row>),
    Spaces(Vec<Space>),
}

impl Step {
    /// How many operations it is.
    pub(crate) fn n_operations(&self) -> u64 {
        match self {
            Self::Write(_, changes, _) => changes.len().max(1) as u64,
            Self::Read(_, asks) => asks.len() as u64,
            Self::WriteLong(..) | Self::Spaces | Self::Reopen(_) => 1,
        }
    }

    /// Does it and gives every answer.
    pub(crate) fn run_on(&self, store: &Store) -> Result<Vec<Answer>> {
        match self {
            Self::Write(space, changes, ending) => {
                let (changes, ending) = (changes.clone(), *ending);
                store.write(space, move |tx| {
                    let answers = all(changes, tx)?;
                    match ending {
                        Ending::Kept => Ok(answers),
                        Ending::Failed => Err(Error::denied("on purpose")),
                        // Not a panic of its own: the hook would print each one.
                        Ending::Panicked => std::panic::resume_unwind(Box::new("on purpose")),
                    }
                })
            }
            Self::WriteLong(space, changes) => {
                let changes = changes.clone();
                store.write_long(space, move |tx| all(changes, tx))
            }
            Self::Read(space, asks) => {
                store.read(space, |tx| asks.iter().map(|it| it.run(tx)).collect())
            }
            Self::Spaces => Ok(vec![Answer::Spaces(store.spaces()?)]),
            Self::Reopen(_) => Ok(Vec::new()),
        }
    }
}

fn all(changes: Vec<Change>, tx: &mut dyn WriteTx) -> Result<Vec<Answer>> {
    changes.into_iter().map(|it| it.apply(tx)).collect()
}

impl Change {
    fn apply(self, tx: &mut dyn WriteTx) -> Result<Answer> {
        match self {
            Self::PutNode(node) => tx.put_node(&node)?,
            Self::RemoveNode(id, at) => tx.remove_node(id, at)?,
            Self::PutEdge(edge) => tx.put_edge(&edge)?,
            Self::EndEdge(src, rel, dst, at) => tx.end_edge(src, &rel, dst, at)?,
            Self::PutPassages(node, passages) => tx.put_passages(node, &passages)?,
            Self::PutNames(node, names) => tx.put_names(node, &names)?,
            Self::PutVector(vector) => tx.put_vector(&vector)?,
            Self::RemoveVector(collection, id) => tx.remove_vector(&collection, &id)?,
            Self::AppendEvent(event) => tx.append_event(&event)?,
            Self::PutHead(head) => tx.put_head(&head)?,
            Self::PutTile(tile) => tx.put_tile(&tile)?,
            Self::PutCheckpoint(checkpoint) => tx.put_checkpoint(&checkpoint)?,
            Self::Set(bucket, key, value) => tx.set(&bucket, &key, &value)?,
            Self::Unset(bucket, key) => tx.unset(&bucket, &key)?,
            Self::Load(row) => tx.load(&row)?,
            Self::Ask(ask) => return ask.run(tx),
            Self::Ignore(change) => drop(change.apply(tx)),
        }
        Ok(Answer::Done)
    }
}

impl Ask {
    fn run<T: ReadTx + ?Sized>(&self, tx: &T) -> Result<Answer> {
        Ok(match self {
            Self::Node(id, when) => Answer::Nodes(tx.node(*id, *when)?.into_iter().collect()),
            Self::NodeByKey(project, kind, key, when) => {
                let found = tx.node_by_key(project, *kind, key, *when)?;
                Answer::Nodes(found.into_iter().collect())
            }
            Self::Nodes(filter, when, after, limit) => {
                Answer::Nodes(tx.nodes(filter, *when, *after, *limit)?)
            }
            Self::Count(filter) => Answer::Count(tx.count_nodes(filter)?),
            Self::History(id) => Answer::History(tx.history(*id)?),
            Self::Edges(filter, when, limit) => Answer::Edges(tx.edges(filter, *when, *limit)?),
            Self::Passages(node) => Answer::Passages(tx.passages(*node)?),
            Self::FindNames(text, filter, limit) => {
                Answer::Names(tx.find_names(text, filter, *limit)?)
            }
            Self::Vector(collection, id) => {
                Answer::Vectors(tx.vector(collection, id)?.into_iter().collect())
            }
            Self::VectorsSince(collection, seq, limit) => {
                Answer::Vectors(tx.vectors_since(collection, *seq, *limit)?)
            }
            Self::Nearest(collection, to, limit) => {
                Answer::Near(tx.nearest(collection, to, *limit)?.hits)
            }
            Self::Head => Answer::Head(tx.head()?),
            Self::EventsAfter(seq, limit) => Answer::Events(tx.events_after(*seq, *limit)?),
            Self::FindEvents(filter, page) => Answer::Events(tx.find_events(filter, *page)?),
            Self::CountEvents(filter) => Answer::Count(tx.count_events(filter)?),
            Self::EventKinds => Answer::Kinds(tx.event_kinds()?),
            Self::EventById(id) => Answer::Events(tx.event_by_id(id)?.into_iter().collect()),
            Self::Tile(level, index) => Answer::Hash(tx.tile(*level, *index)?),
            Self::CheckpointAt(seq) => Answer::Checkpoint(tx.checkpoint_at(*seq)?),
            Self::Get(bucket, key) => Answer::Value(tx.get(bucket, key)?),
            Self::List(bucket) => Answer::List(tx.list(bucket)?),
            Self::Scan(table) => Answer::Rows(scan(tx, *table, usize::MAX)?),
            Self::ScanUntil(table, n) => Answer::Rows(scan(tx, *table, *n)?),
        })
    }
}

/// The first rows of a table. Each must have the hash of its content.
fn scan<T: ReadTx + ?Sized>(tx: &T, table: Table, n_max: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut wrong = None;
    let stopped = tx.scan(table, &mut |row| {
        if rows.len() == n_max {
            return Err(Error::denied("enough"));
        }
        let whole = match &row {
            Row::Node(it) | Row::History(it, _) => it.canonical_hash() == it.hash,
            Row::Edge(it) => it.canonical_hash() == it.hash,
            _ => true,
        };
        if !whole {
            wrong = Some(format!("the content of {row:?} does not have its hash"));
        }
        rows.push(row);
        Ok(())
    });
    match (stopped, wrong) {
        (_, Some(wrong)) => Err(Error::corrupt(wrong)),
        (Err(error), _) if rows.len() < n_max => Err(error),
        _ => Ok(rows),
    }
}

/// Whether two answers are the same. Cosines may differ in the last digits, and so may the order of
/// those that are almost equally near.
pub(crate) fn same(one: &Result<Vec<Answer>>, two: &Result<Vec<Answer>>) -> bool {
    match (one, two) {
        (Err(one), Err(two)) => one.code == two.code,
        (Ok(one), Ok(two)) => {
            let all = |(one, two): (&Answer, &Answer)| match (one, two) {
                (Answer::Near(one), Answer::Near(two)) => same_near(one, two),
                _ => one == two,
            };
            one.len() == two.len() && one.iter().zip(two).all(all)
        }
        _ => false,
    }
}

fn same_near(one: &[Near], two: &[Near]) -> bool {
    const ALMOST: f64 = 1e-6;
    let here = |(a, b): (&Near, &Near)| {
        let elsewhere = two.iter().find(|it| it.id == a.id).or(two.last());
        (a.similarity - b.similarity).abs() <= 1e-5
            && (a.id == b.id
                || elsewhere.is_some_and(|it| (it.similarity - b.similarity).abs() <= ALMOST))
    };
    one.len() == two.len() && one.iter().zip(two).all(here)
}
