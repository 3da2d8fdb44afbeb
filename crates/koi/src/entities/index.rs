//! Makes the store the graph that all statements make.
//!
//! For each entity and each document it is kept, as a digest, what was last written; where the digest differs,
//! nodes and edges are made what they should be, in short transactions. So it does not matter what a run
//! that was killed left undone. A run counts in every transaction, and one that finds that another has
//! counted meanwhile begins anew: two processes end in the same graph.

use super::incremental::Graph;
use super::links::{Drafts, put_links};
use super::live::Live;
use super::plan::Plan;
use super::put::{ThingToPut, ThingToRemove, put_things, remove_things};
use super::said::said_count;
use super::spelling::Spellings;
use super::stated::Stated;
use super::view::Tally;
use crate::Koi;
use kenning_audit::Tx;
use kenning_core::{Error, Hash, NodeId, Result, Space};
use kenning_entities::ontology::Ontology;
use kenning_kernel::follow::{Follow, Stale, ancestors};
use kenning_kernel::{Bucket, Caller, RowCodec, Text};
use kenning_kg::Library;
pub(super) use kenning_kg::path_in_vault as path_of;
use kenning_search::Recent;
use kenning_store::{ReadTx, When};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Entities, or notes, that are written in one transaction.
const BATCH: usize = 200;
/// So often a run begins anew because another one was faster.
const ATTEMPTS: usize = 8;
/// Another way of reading notes needs another number here: then all are read again.
const READING: &str = "3";

/// What each note states, by its path.
pub(super) const STATED: Bucket<Stated> = Bucket::new("entities/stated");
/// What was written of each entity, by its URI: a digest and the node.
pub(crate) const NODES: Bucket<Text> = Bucket::new("entities/nodes");
/// The digest of each entity's relationships, by its URI.
pub(super) const EDGES: &str = "entities/edges";
/// The digest of what each note mentions, by its path.
pub(super) const NOTES: &str = "entities/notes";
/// How far the graph is.
pub(super) const STATE: &str = "entities/state";
const STATES: Bucket<State> = Bucket::new(STATE);
const AT: &str = "at";
/// How often what was said, or who is one, has changed.
pub(super) const COUNTS: Bucket<u64> = Bucket::new(STATE);
pub(super) const SAID_COUNT: &str = "said";

/// Who has a name, by the name's key.
pub(super) const EXACT: &str = "entities/exact";
/// Who has an alias, by the alias's key.
pub(super) const ALIAS: &str = "entities/alias";
/// Whose name sounds so.
pub(super) const SOUND: &str = "entities/sound";
/// Who is called so among federated nodes.
pub(super) const RID: Bucket<Text> = Bucket::new("entities/rid");

/// A bucket of digests, or of URIs, one a line.
pub(super) const fn lines(bucket: &'static str) -> Bucket<Text> {
    Bucket::new(bucket)
}

/// What the engine keeps of entities between calls: nothing that is not on disk or in the store too.
#[derive(Default)]
pub(crate) struct Entities {
    known: Mutex<Recent<Space, Arc<Mutex<Known>>>>,
    /// The types, as the notes of each space declare them. This lock is held for no read of the store.
    types: Mutex<Recent<Space, Types>>,
    pub(super) spellings: Spellings,
}

#[derive(Default)]
struct Known {
    follow: Follow,
    /// The state of the library whose links are all written.
    linked: Option<u64>,
    /// What the graph is known to be made of: the notes, what was said, and how far it was then.
    settled: Option<(u64, u64, u64)>,
    /// The graph in memory, from the first change on that this process finds.
    live: Option<Live>,
}

/// The types that a library declares, and their version.
type Types = (u64, Arc<Ontology>, Arc<str>);

/// How far the graph is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    /// Transactions so far.
    pub(super) n: u64,
    /// The statements that it is made of; empty while a run is under way.
    pub(super) of: String,
}

impl State {
    fn read(tx: &dyn ReadTx) -> Result<Self> {
        Ok(STATES.get_readable(tx, AT)?.unwrap_or_default())
    }

    fn write(&self, tx: &mut Tx<'_>) -> Result<()> {
        STATES.set(tx, AT, self)
    }
}

impl RowCodec for State {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(format!("{} {}", self.n, self.of).into_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (n, of) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
        Some(Self {
            n: n.parse().ok()?,
            of: of.to_owned(),
        })
    }
}

/// The graph is not what it was made of any more: the next run compares everything.
pub(super) fn forget_state(tx: &mut Tx<'_>) -> Result<()> {
    let n = State::read(&**tx)?.n + 1;
    let of = String::new();
    State { n, of }.write(tx)
}

/// How often the graph was written.
pub(crate) fn graph_state(tx: &dyn ReadTx) -> Result<u64> {
    Ok(State::read(tx)?.n)
}

impl Koi {
    /// Brings the entities up to date with the notes of the vault and with what else was stated.
    pub(crate) fn follow_entities(&self, caller: &Caller) -> Result<()> {
        if self.kernel.is_read_only() {
            return Ok(());
        }
        let space = &caller.principal.space;
        let known = {
            let all = self.entities.known.lock();
            let mut all = all.unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(space, Arc::default))
        };
        // One lock for each space: nobody waits for another space's notes.
        let known = known.lock();
        let known = &mut *known.unwrap_or_else(PoisonError::into_inner);
        if self.kernel.vault().is_named() && self.kernel.vault().space() == space {
            self.read_vault(caller, known)?;
        }
        for _ in 0..ATTEMPTS {
            caller.check()?;
            let Some(plan) = self
                .kernel
                .log()
                .read(space, |tx| self.plan(space, tx, known))?
            else {
                // Whoever chose another model finds the old names embedded by asking.
                self.kernel.embed_later(space);
                return Ok(());
            };
            let Some(live) = &known.live else {
                continue;
            };
            if self.carry_out(caller, &live.graph, plan)? {
                self.kernel.embed_later(space);
                return Ok(());
            }
        }
        Err(Error::unavailable("the vault keeps changing").hint("try again"))
    }

    /// Reads the notes that changed.
    fn read_vault(&self, caller: &Caller, known: &mut Known) -> Result<()> {
        let space = &caller.principal.space;
        // A vault that cannot be opened has retracted nothing. Answers say so (`warnings`), and the tools
        // that read and write notes fail.
        let Ok(dir) = self.kernel.vault().open(space) else {
            return Ok(());
        };
        let stale = known.follow.look(&dir);
        let follow = &known.follow;
        let done = match (&stale, known.linked) {
            (Stale::Nothing, _) => return Ok(()),
            (Stale::Some(doubtful), Some(linked)) => {
                self.kg
                    .generate_notes(caller, doubtful, linked, &|it| follow.has_folder(it))
            }
            (Stale::Some(_) | Stale::Everything, _) => Ok(None),
        };
        let is_all = matches!(done, Ok(None));
        let done = match is_all {
            true => self.kg.generate_vault(caller).map(Some),
            false => done,
        };
        known.linked = match done {
            Ok(linked) => linked,
            Err(error) => {
                known.follow.touch();
                return Err(error);
            }
        };
        if !is_all {
            return Ok(());
        }
        let library = self
            .kernel
            .log()
            .read(space, |tx| self.kg.vault_library(space, tx))?;
        let paths = library.docs.iter().map(path_of);
        let mut folders: Vec<&str> = paths.filter_map(|it| ancestors(it).next()).collect();
        folders.sort_unstable();
        folders.dedup();
        known.follow.note_folders(&dir, folders.into_iter());
        Ok(())
    }

    /// The types, as the vault declares them.
    pub(crate) fn ontology(&self, space: &Space, tx: &dyn ReadTx) -> Result<Arc<Ontology>> {
        let library = self.kg.vault_library(space, tx)?;
        Ok(self.types_of(space, tx, &library)?.0)
    }

    /// The types, and their version.
    fn types_of(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        library: &Library,
    ) -> Result<(Arc<Ontology>, Arc<str>)> {
        let known = self.lock_types().get(space).cloned();
        if let Some((of, ontology, version)) = known {
            let changed = library.changed_since(of);
            if changed.is_some_and(|it| !it.iter().any(|path| declares(path))) {
                let types = (library.version, ontology.clone(), version.clone());
                self.lock_types().insert(space.clone(), types);
                return Ok((ontology, version));
            }
        }
        // Other spaces do not wait while notes of this one are read.
        let ontology = Arc::new(declared(tx, library)?);
        let version: Arc<str> = ontology.version().into();
        let types = (library.version, ontology.clone(), version.clone());
        self.lock_types().insert(space.clone(), types);
        Ok((ontology, version))
    }

    fn lock_types(&self) -> MutexGuard<'_, Recent<Space, Types>> {
        let types = self.entities.types.lock();
        types.unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be done; `None` if the graph is what all statements make.
    fn plan(&self, space: &Space, tx: &dyn ReadTx, known: &mut Known) -> Result<Option<Plan>> {
        let library = self.kg.vault_library(space, tx)?;
        let (state, said) = (State::read(tx)?, said_count(tx)?);
        let now = (library.version, said, state.n);
        if known.settled == Some(now) {
            return Ok(None);
        }
        let (ontology, version) = self.types_of(space, tx, &library)?;
        let version = format!("{READING}.{version}");
        let of = fingerprint(&library, &version, said);
        let is_untouched = state == State::default() && said == 0 && library.docs.is_empty();
        let is_settled = state.of == of || is_untouched;
        // The graph in memory is the one in the store if it was made of the same statements.
        let was_settled = known.live.as_ref().is_some_and(|it| it.of == state.of);
        let followed = match &mut known.live {
            Some(live) => live.follow(tx, &library, &ontology, &version, &of)?,
            None => None,
        };
        if followed.is_none() {
            known.live = None;
        }
        if is_settled {
            known.settled = Some(now);
            return Ok(None);
        }
        let state = State { n: state.n, of };
        let mut plan = match (&known.live, followed) {
            (Some(live), Some(followed)) if was_settled => {
                Plan::of_changes(tx, &library, &live.graph, &version, followed, state)?
            }
            (Some(live), Some(followed)) => {
                let plan = Plan::of_all(tx, &library, &live.graph, &version, state)?;
                let stated = followed.stated;
                Plan { stated, ..plan }
            }
            _ => {
                let of = state.of.clone();
                let (live, stated) = Live::read(tx, &library, &ontology, &version, of)?;
                let plan = Plan::of_all(tx, &library, &live.graph, &version, state)?;
                known.live = Some(live);
                Plan { stated, ..plan }
            }
        };
        if let Some(live) = &known.live {
            plan.tally = Tally::of(&live.graph);
        }
        Ok(Some(plan))
    }

    /// False if another run was faster: then what is to be done must be found out anew.
    fn carry_out(&self, caller: &Caller, graph: &Graph, plan: Plan) -> Result<bool> {
        let mut run = Run {
            engine: self,
            caller,
            n: plan.state.n,
        };
        if plan.written.is_none() && plan.len() <= BATCH {
            return run.at_once(graph, plan);
        }
        let Plan {
            stated,
            things,
            removed,
            links,
            mut nodes,
            written,
            gone_notes,
            tally,
            state,
        } = plan;
        for batch in batches(stated) {
            if run.step(move |tx| put_stated(tx, batch))?.is_none() {
                return Ok(false);
            }
        }
        for batch in batches(things) {
            let batch = run.things_to_put(graph, batch)?;
            let Some(put) = run.step(move |tx| put_things(tx, batch))? else {
                return Ok(false);
            };
            nodes.extend(put);
        }
        let is_written = |it: &Drafts| match &written {
            Some((edges, notes)) => !it.differ_from(edges, notes),
            None => false,
        };
        let drafts = links.into_iter().filter_map(|it| it.drafts(&nodes));
        let drafts = drafts.filter(|it| !is_written(it));
        for batch in batches(drafts.collect()) {
            if run.step(move |tx| put_links(tx, batch))?.is_none() {
                return Ok(false);
            }
        }
        for batch in batches(removed) {
            let batch = run.things_to_remove(graph, batch)?;
            if run.step(move |tx| remove_things(tx, batch))?.is_none() {
                return Ok(false);
            }
        }
        run.conclude(state.of, gone_notes, tally)
    }
}

/// A run, and how far the graph was when it last looked.
struct Run<'e> {
    engine: &'e Koi,
    caller: &'e Caller,
    n: u64,
}

impl Run<'_> {
    /// `None` if another run has counted meanwhile; then nothing is done.
    fn step<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<Option<T>> {
        self.caller.check()?;
        self.count(String::new(), work)
    }

    /// A small change is one transaction: nobody sees half of it.
    fn at_once(&mut self, graph: &Graph, plan: Plan) -> Result<bool> {
        let things = self.things_to_put(graph, plan.things)?;
        let removed = self.things_to_remove(graph, plan.removed.clone())?;
        let (stated, links, mut nodes) = (plan.stated, plan.links, plan.nodes);
        let (gone, tally) = (plan.gone_notes, plan.tally);
        let called: Vec<(String, Vec<String>)> = things.iter().map(ThingToPut::called).collect();
        let gone_things: Vec<String> = plan.removed.into_iter().map(|it| it.0).collect();
        let before = self.n;
        self.caller.check()?;
        let done = self.count(plan.state.of, move |tx| {
            put_stated(tx, stated)?;
            let put = put_things(tx, things)?;
            nodes.extend(put.iter().map(|(uri, node)| (uri.clone(), *node)));
            let drafts = links.into_iter().filter_map(|it| it.drafts(&nodes));
            put_links(tx, drafts.collect())?;
            remove_things(tx, removed)?;
            finish(tx, &gone, &tally)?;
            Ok(put)
        })?;
        let Some(put) = done else {
            return Ok(false);
        };
        let called = called.into_iter();
        let called = called.filter_map(|(uri, names)| Some((put.get(&uri).copied()?, uri, names)));
        let called: Vec<_> = called
            .map(|(node, uri, names)| (uri, node, names))
            .collect();
        let spellings = &self.engine.entities.spellings;
        spellings.follow(&self.caller.principal.space, before, &called, &gone_things);
        Ok(true)
    }

    fn things_to_put(
        &self,
        graph: &Graph,
        batch: Vec<(String, String)>,
    ) -> Result<Vec<ThingToPut>> {
        let space = &self.caller.principal.space;
        self.engine.kernel.log().read(space, |tx| {
            let things = batch.iter().filter_map(|(uri, digest)| {
                let thing = graph.thing(uri)?;
                Some(ThingToPut::of(tx, graph, uri, thing, digest.clone()))
            });
            things.collect()
        })
    }

    fn things_to_remove(
        &self,
        graph: &Graph,
        batch: Vec<(String, NodeId)>,
    ) -> Result<Vec<ThingToRemove>> {
        let space = &self.caller.principal.space;
        self.engine.kernel.log().read(space, |tx| {
            let things = batch.iter();
            let things = things.map(|(uri, node)| ThingToRemove::of(tx, graph, uri, *node));
            things.collect()
        })
    }

    fn conclude(&mut self, of: String, gone: Vec<String>, tally: Tally) -> Result<bool> {
        let done = self.count(of, move |tx| finish(tx, &gone, &tally))?;
        Ok(done.is_some())
    }

    fn count<T: Send + 'static>(
        &mut self,
        of: String,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<Option<T>> {
        let n = self.n;
        self.n += 1;
        let space = &self.caller.principal.space;
        self.engine.kernel.log().write_long(space, move |tx| {
            if State::read(&**tx)?.n != n {
                return Ok(None);
            }
            let done = work(tx)?;
            State { n: n + 1, of }.write(tx)?;
            Ok(Some(done))
        })
    }
}

/// Whether the note at a path declares a type.
fn declares(path: &str) -> bool {
    path.starts_with("Ontology/schema-")
}

/// The types, with those that notes declare.
fn declared(tx: &dyn ReadTx, library: &Library) -> Result<Ontology> {
    let mut ontology = Ontology::default();
    for doc in library.docs.iter().filter(|it| declares(path_of(it))) {
        let Some(note) = tx.node(doc.card.node, When::Now)? else {
            continue;
        };
        if let Err(error) = ontology.adopt(&note.body) {
            tracing::warn!("`{}` declares no type: {error}", path_of(doc));
        }
    }
    Ok(ontology)
}

/// The statements that a graph is made of.
fn fingerprint(library: &Library, version: &str, said: u64) -> String {
    let notes = library.fingerprint();
    Hash::of(format!("{version} {said} {notes}").as_bytes()).to_string()
}

pub(super) fn digest(parts: &[u8]) -> String {
    Hash::of(parts).to_string()[..16].to_owned()
}

fn batches<T>(mut all: Vec<T>) -> impl Iterator<Item = Vec<T>> {
    std::iter::from_fn(move || {
        if all.is_empty() {
            return None;
        }
        let rest = all.split_off(all.len().min(BATCH));
        Some(std::mem::replace(&mut all, rest))
    })
}

/// Writes the counts, and drops what is kept of notes that are gone.
fn finish(tx: &mut Tx<'_>, gone: &[String], tally: &Tally) -> Result<()> {
    tally.write(tx)?;
    gone.iter().try_for_each(|path| {
        STATED.unset(tx, path)?;
        lines(NOTES).unset(tx, path)
    })
}

fn put_stated(tx: &mut Tx<'_>, batch: Vec<(String, Stated)>) -> Result<()> {
    batch
        .iter()
        .try_for_each(|(path, stated)| STATED.set(tx, path, stated))
}
