//! Makes the store the graph that the notes make.
//!
//! For each entity and each note it is kept, as a digest, what was last written; where the digest differs,
//! nodes and edges are made what they should be, in short transactions. So it does not matter what a run
//! that was killed left undone. A run counts in every transaction, and one that finds that another has
//! counted meanwhile begins anew: two processes end in the same graph.

use super::stated::Stated;
use super::wanted::{Thing, Wanted};
use super::{BY_ENTITIES, DESCRIBES, MENTIONS, VAULT, aliases, kind, passages_of};
use crate::edges::{self, BY, Written};
use crate::follow::{Follow, ancestors};
use crate::graph::{Doc, Library};
use crate::{Caller, Engine};
use kenning_audit::{Draft, EdgeDraft, Tx};
use kenning_core::{Code, Error, Hash, Kind, NodeId, Result, Space};
use kenning_entities::names::{alias_key, network_rid, normalized, phonetic_key};
use kenning_entities::ontology::Ontology;
use kenning_store::{Node, ReadTx, When};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Entities, or notes, that are written in one transaction.
const BATCH: usize = 200;
/// So often a run begins anew because another one was faster.
const ATTEMPTS: usize = 8;
/// Another way of reading notes needs another number here: then all are read again.
const READING: &str = "1";

/// What each note states, by its path.
const STATED: &str = "entities/stated";
/// What was written of each entity, by its URI: a digest and the node.
const NODES: &str = "entities/nodes";
/// The digest of each entity's relationships, by its URI.
const EDGES: &str = "entities/edges";
/// The digest of what each note mentions, by its path.
const NOTES: &str = "entities/notes";
/// How far the graph is.
const STATE: &str = "entities/state";

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
    known: Mutex<Known>,
    /// The types, as these notes declare them. Whoever holds this lock asks for no other.
    types: Mutex<Option<(Arc<Library>, Arc<Ontology>)>>,
}

#[derive(Default)]
struct Known {
    follow: Follow,
    /// The notes that the graph is known to be made of, and how far it was then.
    settled: Option<(Arc<Library>, u64)>,
}

/// How far the graph is.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    /// Transactions so far.
    n: u64,
    /// The notes that it is made of; empty while a run is under way.
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

impl Engine {
    /// Brings the entities up to date with the notes of the vault.
    pub(super) fn follow_entities(&self, caller: &Caller) -> Result<()> {
        let space = &caller.principal.space;
        if self.read_only || !self.vault.is_named() || self.vault.space() != space {
            return Ok(());
        }
        let dir = self.vault.open(space)?;
        let known = self.entities.known.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        let known = &mut *known;
        if known.follow.is_stale(&dir) {
            if let Err(error) = self.generate_vault(caller) {
                known.follow.touch();
                return Err(error);
            }
            let library = self.log.read(space, |tx| self.vault_library(space, tx))?;
            let paths = library.docs.iter().map(path_of);
            let mut folders: Vec<&str> = paths.filter_map(|it| ancestors(it).next()).collect();
            folders.sort_unstable();
            folders.dedup();
            known.follow.note_folders(&dir, folders.into_iter());
        }
        for _ in 0..ATTEMPTS {
            caller.check()?;
            let Some(plan) = self.log.read(space, |tx| self.plan(space, tx, known))? else {
                return Ok(());
            };
            if self.carry_out(caller, plan)? {
                return Ok(());
            }
        }
        Err(Error::unavailable("the vault is changing all the time").hint("call again"))
    }

    /// The types, as the vault declares them.
    pub(super) fn ontology(&self, space: &Space, tx: &dyn ReadTx) -> Result<Arc<Ontology>> {
        let library = self.vault_library(space, tx)?;
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
        let library = self.vault_library(space, tx)?;
        let state = State::read(tx)?;
        let is_settled = |it: &(Arc<Library>, u64)| Arc::ptr_eq(&it.0, &library) && it.1 == state.n;
        if known.settled.as_ref().is_some_and(is_settled) {
            return Ok(None);
        }
        let ontology = self.types_of(tx, &library)?;
        let version = format!("{READING}.{}", ontology.version());
        let of = fingerprint(&library, &version);
        if state.of == of {
            known.settled = Some((library, state.n));
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
            .chain(links_of_notes(&wanted, &nodes, &docs, &notes));
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
        run.conclude(state.of, gone_notes)
    }
}

/// A run, and how far the graph was when it last looked.
struct Run<'e> {
    engine: &'e Engine,
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

    fn conclude(&mut self, of: String, gone: Vec<String>) -> Result<bool> {
        let done = self.count(of, move |tx| {
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
        self.engine.log.write_long(space, move |tx| {
            if State::read(&**tx)?.n != n {
                return Ok(None);
            }
            let done = work(tx)?;
            State { n: n + 1, of }.write(tx)?;
            Ok(Some(done))
        })
    }
}

/// How the store differs from what the notes make.
struct Plan {
    /// Notes that state something else than before.
    stated: Vec<(String, Stated)>,
    wanted: Wanted,
    /// How they sound.
    sounds: Arc<Sounds>,
    /// Entities that are new or others, with their digests.
    tasks: Vec<(String, String)>,
    /// Entities that no note is about any more.
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

/// A note, and the notes that its text links to.
struct Mentioning {
    path: String,
    node: NodeId,
    to: BTreeSet<String>,
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
        let wanted = Wanted::of(ontology, all.iter().map(|it| (it.0.as_str(), it.1)));
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
        let gone: BTreeSet<String> = gone.filter(|it| !all.contains_key(it)).collect();
        Ok(Self {
            stated,
            sounds,
            tasks,
            removed,
            nodes,
            edges: texts(tx, EDGES)?,
            notes,
            gone_notes: gone.into_iter().collect(),
            docs: library
                .docs
                .iter()
                .map(|it| mentioning(library, it))
                .collect(),
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
fn path_of(doc: &Doc) -> &str {
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

/// The notes that a graph is made of.
fn fingerprint(library: &Library, version: &str) -> String {
    let mut bytes = version.as_bytes().to_vec();
    for doc in &library.docs {
        bytes.extend_from_slice(doc.path.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(&doc.card.content.0);
        bytes.extend_from_slice(&doc.card.node.0);
    }
    Hash::of(&bytes).to_string()
}

fn digest(parts: &[u8]) -> String {
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

/// The notes that the text of a note links to. What its fields link to they say themselves.
fn mentioning(library: &Library, doc: &Doc) -> Mentioning {
    let links = doc
        .out
        .iter()
        .filter(|it| doc.link(it).relation() == "link");
    let to = links.map(|it| path_of(library.doc(it.to)).to_owned());
    Mentioning {
        path: path_of(doc).to_owned(),
        node: doc.card.node,
        to: to.collect(),
    }
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
    let mut put = Vec::new();
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
        }
        let mut keys = keys_of(&node);
        keys.extend(before.iter().flat_map(|it| keys_of(it)));
        put_keys(tx, wanted, sounds, keys)?;
        tx.set(RID, &rid(&node), uri.as_bytes())?;
        tx.set(NODES, &uri, format!("{digest} {}", node.id).as_bytes())?;
        put.push((uri, node.id));
    }
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
        tx.unset(RID, &rid(&node))?;
        match tx.remove_node(id) {
            Ok(()) => {}
            Err(error) if error.code == Code::NotFound => continue,
            Err(error) => return Err(error),
        }
        tx.record("EntityRemoved", event_data(&node))?;
    }
    Ok(())
}

fn rid(node: &Node) -> String {
    network_rid(&node.key, &node.title, kind(node))
}

fn draft(uri: &str, thing: &Thing, sound: Option<&String>) -> Draft {
    let mut props = Map::new();
    let mut put = |name: &str, value: Value| props.insert(name.to_owned(), value);
    put("type", thing.kind.as_str().into());
    put("source", VAULT.into());
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
        "source": VAULT, "note": path,
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

/// The edges of one node, to be written, with their digest and where that is kept.
struct Links {
    bucket: &'static str,
    key: String,
    node: NodeId,
    wanted: Vec<EdgeDraft>,
    digest: String,
}

impl Links {
    fn of(bucket: &'static str, key: &str, node: NodeId, wanted: Vec<EdgeDraft>) -> Self {
        let mut bytes = node.0.to_vec();
        for it in &wanted {
            bytes.extend_from_slice(it.rel.as_bytes());
            bytes.extend_from_slice(&it.dst.0);
            bytes.extend_from_slice(Value::Object(it.props.clone()).to_string().as_bytes());
        }
        Self {
            bucket,
            key: key.to_owned(),
            node,
            wanted,
            digest: digest(&bytes),
        }
    }
}

/// The relationships that are others than those that were written.
fn links_of_things(
    wanted: &Wanted,
    nodes: &HashMap<String, NodeId>,
    written: &HashMap<String, String>,
) -> Vec<Links> {
    let mut all = Vec::new();
    for uri in wanted.things.keys() {
        let Some(&node) = nodes.get(uri) else {
            continue;
        };
        let relations = wanted.relations.get(uri).into_iter().flatten();
        let drafts = relations.filter_map(|((predicate, to), path)| {
            let mut props = said_by(path);
            props.insert("predicate".to_owned(), predicate.as_str().into());
            props.insert("confidence".to_owned(), 1.0.into());
            edge(node, predicate, *nodes.get(to)?, props)
        });
        let links = Links::of(EDGES, uri, node, drafts.collect());
        if written.get(uri) != Some(&links.digest) {
            all.push(links);
        }
    }
    all
}

/// What notes are about and mention, where that is another than what was written.
fn links_of_notes(
    wanted: &Wanted,
    nodes: &HashMap<String, NodeId>,
    docs: &[Mentioning],
    written: &HashMap<String, String>,
) -> Vec<Links> {
    let of_note = |path: &str| nodes.get(wanted.of_note.get(path)?).copied();
    let mut all = Vec::new();
    for doc in docs {
        let own = of_note(&doc.path);
        let mentioned: BTreeSet<NodeId> = doc.to.iter().filter_map(|it| of_note(it)).collect();
        let mentioned = mentioned.into_iter().filter(|it| Some(*it) != own);
        let drafts = own
            .into_iter()
            .map(|it| (DESCRIBES, it))
            .chain(mentioned.map(|it| (MENTIONS, it)))
            .filter_map(|(rel, to)| edge(doc.node, rel, to, said_by(&doc.path)));
        let links = Links::of(NOTES, &doc.path, doc.node, drafts.collect());
        if written.get(&doc.path) != Some(&links.digest) {
            all.push(links);
        }
    }
    all
}

fn said_by(path: &str) -> Map<String, Value> {
    let mut props = Map::new();
    props.insert(BY.to_owned(), BY_ENTITIES.into());
    props.insert("source".to_owned(), VAULT.into());
    props.insert("source_rid".to_owned(), path.into());
    props
}

fn edge(src: NodeId, rel: &str, dst: NodeId, props: Map<String, Value>) -> Option<EdgeDraft> {
    let draft = EdgeDraft {
        src,
        rel: rel.to_owned(),
        dst,
        weight: 1.0,
        props,
    };
    (src != dst).then_some(draft)
}

fn put_links(tx: &mut Tx<'_>, batch: Vec<Links>) -> Result<()> {
    let mut written = Written::default();
    for it in batch {
        // A note that was removed meanwhile takes its links with it.
        if tx.node(it.node, When::Now)?.is_none() {
            continue;
        }
        edges::reconcile(tx, it.node, BY_ENTITIES, it.wanted, &mut written)?;
        tx.set(it.bucket, &it.key, it.digest.as_bytes())?;
    }
    if written.is_any() {
        let data = json!({ "source": VAULT, "added": written.added, "ended": written.ended });
        tx.record("EntitiesLinked", data)?;
    }
    Ok(())
}
