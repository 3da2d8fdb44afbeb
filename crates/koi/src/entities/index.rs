//! Makes the store the graph that all statements make.
//!
//! For each entity and each document it is kept, as a digest, what was last written; where the digest differs,
//! nodes and edges are made what they should be, in short transactions. So it does not matter what a run
//! that was killed left undone. A run counts in every transaction, and one that finds that another has
//! counted meanwhile begins anew: two processes end in the same graph.

use super::identity::merged_uris;
use super::links::{
    Mentioning, SAID_DOCUMENT, documents, links_of_documents, links_of_things, put_links,
};
use super::said::{all_said, said_count};
use super::spelling::Spellings;
use super::stated::Stated;
use super::view::{Tally, note_recent};
use super::wanted::{Statements, Thing, Wanted};
use super::{aliases, kind, passages_of};
use crate::Koi;
use kenning_audit::{Draft, Tx};
use kenning_core::{Code, Error, Hash, Kind, NodeId, Result, Space};
use kenning_entities::names::{alias_key, network_rid, normalized, phonetic_key};
use kenning_entities::ontology::Ontology;
use kenning_kernel::Caller;
use kenning_kernel::follow::{Follow, ancestors};
use kenning_kg::{Doc, Library};
use kenning_search::Recent;
use kenning_store::{Node, ReadTx, When};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Entities, or notes, that are written in one transaction.
const BATCH: usize = 200;
/// So often a run begins anew because another one was faster.
const ATTEMPTS: usize = 8;
/// Another way of reading notes needs another number here: then all are read again.
const READING: &str = "3";

/// What each note states, by its path.
const STATED: &str = "entities/stated";
/// What was written of each entity, by its URI: a digest and the node.
pub(crate) const NODES: &str = "entities/nodes";
/// The digest of each entity's relationships, by its URI.
pub(super) const EDGES: &str = "entities/edges";
/// The digest of what each note mentions, by its path.
pub(super) const NOTES: &str = "entities/notes";
/// How far the graph is.
pub(super) const STATE: &str = "entities/state";
/// How often what was said, or who is one, has changed: bucket and key.
pub(super) const SAID_COUNT: (&str, &str) = (STATE, "said");

/// Who has a name, by the name's key.
pub(super) const EXACT: &str = "entities/exact";
/// Who has an alias, by the alias's key.
pub(super) const ALIAS: &str = "entities/alias";
/// Whose name sounds so.
pub(super) const SOUND: &str = "entities/sound";
/// Who is called so among federated nodes.
pub(super) const RID: &str = "entities/rid";

/// What the engine keeps of entities between calls: nothing that is not on disk or in the store too.
#[derive(Default)]
pub(crate) struct Entities {
    known: Mutex<Recent<Space, Known>>,
    /// The types, as these notes declare them. Whoever holds this lock asks for no other.
    types: Mutex<Option<(Arc<Library>, Arc<Ontology>)>>,
    pub(super) spellings: Spellings,
}

#[derive(Default)]
struct Known {
    follow: Follow,
    /// What the graph is known to be made of: the notes, what was said, and how far it was then.
    settled: Option<(Arc<Library>, u64, u64)>,
}

/// How far the graph is.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    /// Transactions so far.
    n: u64,
    /// The statements that it is made of; empty while a run is under way.
    of: String,
}

impl State {
    fn read(tx: &dyn ReadTx) -> Result<Self> {
        let bytes = tx.get(STATE, "at")?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let (n, of) = text.split_once(' ').unwrap_or_default();
        Ok(Self {
            n: n.parse().unwrap_or_default(),
            of: of.to_owned(),
        })
    }

    fn write(&self, tx: &mut Tx<'_>) -> Result<()> {
        tx.set(STATE, "at", format!("{} {}", self.n, self.of).as_bytes())
    }
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
        let known = self.entities.known.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        let known = known.entry(space, Known::default);
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
            if self.carry_out(caller, plan)? {
                self.kernel.embed_later(space);
                return Ok(());
            }
        }
        Err(Error::unavailable("the vault is changing all the time").hint("call again"))
    }

    /// Reads the notes that changed.
    fn read_vault(&self, caller: &Caller, known: &mut Known) -> Result<()> {
        let space = &caller.principal.space;
        // A vault that cannot be opened has retracted nothing. Answers say so (`warnings`), and the tools
        // that read and write notes fail.
        let Ok(dir) = self.kernel.vault().open(space) else {
            return Ok(());
        };
        if !known.follow.is_stale(&dir) {
            return Ok(());
        }
        if let Err(error) = self.kg.generate_vault(caller) {
            known.follow.touch();
            return Err(error);
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
        self.types_of(tx, &library)
    }

    fn types_of(&self, tx: &dyn ReadTx, library: &Arc<Library>) -> Result<Arc<Ontology>> {
        let types = self.entities.types.lock();
        let mut types = types.unwrap_or_else(PoisonError::into_inner);
        if let Some((of, ontology)) = &*types
            && Arc::ptr_eq(of, library)
        {
            return Ok(Arc::clone(ontology));
        }
        let ontology = Arc::new(declared(tx, library)?);
        *types = Some((Arc::clone(library), Arc::clone(&ontology)));
        Ok(ontology)
    }

    /// What is to be done; `None` if the graph is what the notes make.
    fn plan(&self, space: &Space, tx: &dyn ReadTx, known: &mut Known) -> Result<Option<Plan>> {
        let library = self.kg.vault_library(space, tx)?;
        let (state, said) = (State::read(tx)?, said_count(tx)?);
        let is_settled = |it: &(Arc<Library>, u64, u64)| {
            Arc::ptr_eq(&it.0, &library) && (it.1, it.2) == (said, state.n)
        };
        if known.settled.as_ref().is_some_and(is_settled) {
            return Ok(None);
        }
        let ontology = self.types_of(tx, &library)?;
        let version = format!("{READING}.{}", ontology.version());
        let of = fingerprint(&library, &version, said);
        let is_untouched = state == State::default() && said == 0 && library.docs.is_empty();
        if state.of == of || is_untouched {
            known.settled = Some((library, said, state.n));
            return Ok(None);
        }
        Plan::of(tx, &library, &ontology, &version, State { n: state.n, of }).map(Some)
    }

    /// False if another run was faster: then what is to be done must be found out anew.
    fn carry_out(&self, caller: &Caller, plan: Plan) -> Result<bool> {
        let mut run = Run {
            engine: self,
            caller,
            n: plan.state.n,
        };
        let Plan {
            stated,
            wanted,
            sounds,
            tasks,
            removed,
            mut nodes,
            edges,
            notes,
            gone_notes,
            docs,
            state,
        } = plan;
        let tally = Tally::of(&wanted);
        let wanted = Arc::new(wanted);
        for batch in batches(stated) {
            if run.step(move |tx| put_stated(tx, batch))?.is_none() {
                return Ok(false);
            }
        }
        for batch in batches(tasks) {
            let (wanted, sounds) = (Arc::clone(&wanted), Arc::clone(&sounds));
            let Some(put) = run.step(move |tx| put_things(tx, &wanted, &sounds, batch))? else {
                return Ok(false);
            };
            nodes.extend(put);
        }
        let linked = links_of_things(&wanted, &nodes, &edges);
        let linked = linked
            .into_iter()
            .chain(links_of_documents(&nodes, &docs, &notes));
        for batch in batches(linked.collect()) {
            if run.step(move |tx| put_links(tx, batch))?.is_none() {
                return Ok(false);
            }
        }
        for batch in batches(removed) {
            let wanted = Arc::clone(&wanted);
            let sounds = Arc::clone(&sounds);
            let removing = move |tx: &mut Tx<'_>| remove_things(tx, &wanted, &sounds, batch);
            if run.step(removing)?.is_none() {
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

    fn conclude(&mut self, of: String, gone: Vec<String>, tally: Tally) -> Result<bool> {
        let done = self.count(of, move |tx| {
            tally.write(tx)?;
            gone.iter().try_for_each(|path| {
                tx.unset(STATED, path)?;
                tx.unset(NOTES, path)
            })
        })?;
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

/// How the store differs from what all statements make.
struct Plan {
    /// Notes that state something else than before.
    stated: Vec<(String, Stated)>,
    wanted: Wanted,
    /// How they sound.
    sounds: Arc<Sounds>,
    /// Entities that are new or others, with their digests.
    tasks: Vec<(String, String)>,
    /// Entities that nothing states any more.
    removed: Vec<(String, NodeId)>,
    nodes: HashMap<String, NodeId>,
    edges: HashMap<String, String>,
    notes: HashMap<String, String>,
    gone_notes: Vec<String>,
    docs: Vec<Mentioning>,
    state: State,
}

/// How names sound.
#[derive(Default)]
struct Sounds {
    of: HashMap<String, String>,
    by_key: HashMap<String, BTreeSet<String>>,
}

impl Plan {
    fn of(
        tx: &dyn ReadTx,
        library: &Library,
        ontology: &Ontology,
        version: &str,
        state: State,
    ) -> Result<Self> {
        let mut known: HashMap<String, Stated> = HashMap::new();
        for (path, bytes) in tx.list(STATED)? {
            known.insert(path, Stated::from_bytes(&bytes).unwrap_or_default());
        }
        let mut all: BTreeMap<String, Stated> = BTreeMap::new();
        let mut stated = Vec::new();
        for doc in &library.docs {
            let path = path_of(doc);
            let of = format!("{version} {}", doc.card.content);
            let before = known.remove(path).filter(|it| it.of == of);
            let now = match before {
                Some(before) => before,
                None => {
                    let Some(note) = tx.node(doc.card.node, When::Now)? else {
                        continue;
                    };
                    let now = Stated::of(ontology, path, &note, of);
                    stated.push((path.to_owned(), now.clone()));
                    now
                }
            };
            all.insert(path.to_owned(), now);
        }
        let (said, merged) = (all_said(tx)?, merged_uris(tx)?);
        let statements = Statements {
            notes: Some(&all),
            said: Some(&said),
            merged: Some(&merged),
        };
        let wanted = Wanted::of(ontology, statements);
        let sounds = Arc::new(sounds_of(ontology, &wanted));
        let (mut nodes, mut tasks, mut digests) = (HashMap::new(), Vec::new(), HashMap::new());
        let mut removed = Vec::new();
        for (uri, row) in texts(tx, NODES)? {
            let Some((digest, node)) = row.split_once(' ') else {
                continue;
            };
            let Ok(node) = node.parse::<NodeId>() else {
                continue;
            };
            if wanted.things.contains_key(&uri) {
                digests.insert(uri.clone(), digest.to_owned());
                nodes.insert(uri, node);
            } else {
                removed.push((uri, node));
            }
        }
        for (uri, thing) in &wanted.things {
            let digest = digest_of(thing, version);
            if digests.get(uri) != Some(&digest) {
                tasks.push((uri.clone(), digest));
            }
        }
        removed.sort_unstable();
        let notes = texts(tx, NOTES)?;
        let gone = known.into_keys().chain(notes.keys().cloned());
        let gone = gone.filter(|it| !all.contains_key(it) && !it.starts_with(SAID_DOCUMENT));
        let gone: BTreeSet<String> = gone.collect();
        let docs = documents(library, &wanted, &said, &notes);
        Ok(Self {
            stated,
            sounds,
            tasks,
            removed,
            nodes,
            edges: texts(tx, EDGES)?,
            notes,
            gone_notes: gone.into_iter().collect(),
            docs,
            wanted,
            state,
        })
    }
}

fn texts(tx: &dyn ReadTx, bucket: &str) -> Result<HashMap<String, String>> {
    let rows = tx.list(bucket)?.into_iter();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(rows.map(|(key, bytes)| (key, text(bytes))).collect())
}

/// A note's path in the vault.
pub(super) fn path_of(doc: &Doc) -> &str {
    doc.path.strip_prefix("vault:").unwrap_or(&doc.path)
}

/// The types, with those that notes declare.
fn declared(tx: &dyn ReadTx, library: &Library) -> Result<Ontology> {
    let mut ontology = Ontology::default();
    let declares = |it: &&Doc| path_of(it).starts_with("Ontology/schema-");
    for doc in library.docs.iter().filter(declares) {
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
    let mut bytes = format!("{version} {said}\n").into_bytes();
    for doc in &library.docs {
        bytes.extend_from_slice(doc.path.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(&doc.card.content.0);
        bytes.extend_from_slice(&doc.card.node.0);
    }
    Hash::of(&bytes).to_string()
}

pub(super) fn digest(parts: &[u8]) -> String {
    Hash::of(parts).to_string()[..16].to_owned()
}

fn digest_of(thing: &Thing, version: &str) -> String {
    digest(format!("{version}\n{thing:?}").as_bytes())
}

fn sounds_of(ontology: &Ontology, wanted: &Wanted) -> Sounds {
    let mut sounds = Sounds::default();
    for (uri, thing) in &wanted.things {
        let Some(kind) = ontology.kind(&thing.kind).filter(|it| it.phonetic_matching) else {
            continue;
        };
        let key = phonetic_key(&thing.name, &kind.phonetic_stopwords);
        if !key.is_empty() {
            let alike = sounds.by_key.entry(key.clone()).or_default();
            alike.insert(uri.clone());
            sounds.of.insert(uri.clone(), key);
        }
    }
    sounds
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

fn put_stated(tx: &mut Tx<'_>, batch: Vec<(String, Stated)>) -> Result<()> {
    batch
        .iter()
        .try_for_each(|(path, stated)| tx.set(STATED, path, &stated.to_bytes()?))
}

fn put_things(
    tx: &mut Tx<'_>,
    wanted: &Wanted,
    sounds: &Sounds,
    batch: Vec<(String, String)>,
) -> Result<Vec<(String, NodeId)>> {
    let (mut put, mut new) = (Vec::new(), Vec::new());
    for (uri, digest) in batch {
        let Some(thing) = wanted.things.get(&uri) else {
            continue;
        };
        let before = tx.node_by_key("", Kind::Entity, &uri, When::Now)?;
        let node = tx.put_node(draft(&uri, thing, sounds.of.get(&uri)))?;
        let is_new = before.is_none();
        if node.updated == tx.now() {
            tx.put_passages(node.id, &passages_of(&node))?;
            let names = std::iter::once(thing.name.clone()).chain(thing.aliases.iter().cloned());
            tx.put_names(node.id, &names.collect::<Vec<_>>())?;
            let kind = if is_new {
                "EntityAdded"
            } else {
                "EntityChanged"
            };
            tx.record(kind, event_data(&node))?;
            if is_new {
                new.push(uri.clone());
            }
        }
        let mut keys = keys_of(&node);
        keys.extend(before.iter().flat_map(|it| keys_of(it)));
        put_keys(tx, wanted, sounds, keys)?;
        tx.set(RID, &rid(&node), uri.as_bytes())?;
        put_merged(tx, before.as_ref(), thing, &uri)?;
        tx.set(NODES, &uri, format!("{digest} {}", node.id).as_bytes())?;
        put.push((uri, node.id));
    }
    note_recent(tx, &new)?;
    Ok(put)
}

fn remove_things(
    tx: &mut Tx<'_>,
    wanted: &Wanted,
    sounds: &Sounds,
    batch: Vec<(String, NodeId)>,
) -> Result<()> {
    for (uri, id) in batch {
        tx.unset(NODES, &uri)?;
        tx.unset(EDGES, &uri)?;
        let Some(node) = tx.node(id, When::Now)? else {
            continue;
        };
        put_keys(tx, wanted, sounds, keys_of(&node))?;
        match wanted.same(&uri) {
            // Who was merged leads on by every name.
            into if into != uri => tx.set(RID, &rid(&node), into.as_bytes())?,
            _ => tx.unset(RID, &rid(&node))?,
        }
        for it in merged(&node) {
            unset_merged(tx, it, &uri)?;
        }
        match tx.remove_node(id) {
            Ok(()) => {}
            Err(error) if error.code == Code::NotFound => continue,
            Err(error) => return Err(error),
        }
        tx.record("EntityRemoved", event_data(&node))?;
    }
    Ok(())
}

/// The URIs that were merged into an entity.
pub(super) fn merged(node: &Node) -> impl Iterator<Item = &str> {
    let merged = node.props.get("merged").and_then(Value::as_array);
    merged.into_iter().flatten().filter_map(Value::as_str)
}

/// A URI that was merged into another leads there, like a name among federated nodes.
fn put_merged(tx: &mut Tx<'_>, before: Option<&Node>, thing: &Thing, uri: &str) -> Result<()> {
    for it in before.into_iter().flat_map(merged) {
        if !thing.merged.iter().any(|now| now == it) {
            unset_merged(tx, it, uri)?;
        }
    }
    thing
        .merged
        .iter()
        .try_for_each(|it| tx.set(RID, it, uri.as_bytes()))
}

fn unset_merged(tx: &mut Tx<'_>, merged: &str, into: &str) -> Result<()> {
    match tx.get(RID, merged)? {
        Some(bytes) if bytes == into.as_bytes() => tx.unset(RID, merged),
        _ => Ok(()),
    }
}

fn rid(node: &Node) -> String {
    network_rid(&node.key, &node.title, kind(node))
}

fn draft(uri: &str, thing: &Thing, sound: Option<&String>) -> Draft {
    let mut props = Map::new();
    let mut put = |name: &str, value: Value| props.insert(name.to_owned(), value);
    put("type", thing.kind.as_str().into());
    put("source", thing.source.as_str().into());
    put("source_rid", thing.source_rid.as_str().into());
    put("rid", network_rid(uri, &thing.name, &thing.kind).into());
    if let Some(sound) = sound {
        put("sound", sound.as_str().into());
    }
    if !thing.aliases.is_empty() {
        put("aliases", thing.aliases.clone().into());
    }
    if let Some(first) = thing.paths.first() {
        put("path", first.as_str().into());
    }
    if thing.paths.len() > 1 {
        put("paths", thing.paths.clone().into());
    }
    if !thing.merged.is_empty() {
        put("merged", thing.merged.clone().into());
    }
    Draft {
        kind: Kind::Entity,
        project: String::new(),
        key: uri.to_owned(),
        title: thing.name.clone(),
        body: thing.description.clone(),
        props,
    }
}

fn event_data(node: &Node) -> Value {
    let path = node.props.get("path").cloned().unwrap_or_default();
    json!({
        "nodeId": node.id.to_string(), "uri": node.key, "name": node.title, "type": kind(node),
        "source": node.props.get("source"), "note": path,
    })
}

/// The keys by which somebody is found, with the bucket of each.
fn keys_of(node: &Node) -> BTreeSet<(&'static str, String)> {
    let mut keys = BTreeSet::from([(EXACT, normalized(&node.title))]);
    for alias in aliases(node) {
        keys.extend([(ALIAS, alias_key(alias)), (ALIAS, normalized(alias))]);
    }
    let sound = node.props.get("sound").and_then(Value::as_str);
    keys.extend(sound.map(|it| (SOUND, it.to_owned())));
    keys
}

/// Writes down who is found by these keys now.
fn put_keys(
    tx: &mut Tx<'_>,
    wanted: &Wanted,
    sounds: &Sounds,
    keys: BTreeSet<(&'static str, String)>,
) -> Result<()> {
    for (bucket, key) in keys {
        let found = match bucket {
            EXACT => wanted.named(&key),
            ALIAS => wanted.called(&key),
            _ => sounds.by_key.get(&key),
        };
        match found {
            Some(uris) => {
                let lines: Vec<&str> = uris.iter().map(String::as_str).collect();
                tx.set(bucket, &key, lines.join("\n").as_bytes())?;
            }
            None => tx.unset(bucket, &key)?,
        }
    }
    Ok(())
}
