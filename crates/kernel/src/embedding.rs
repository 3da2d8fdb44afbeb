//! Which model makes vectors, and the passages that wait for theirs.
//!
//! The built-in table needs no wait and no queue: its vectors are made when the index is. A model that
//! `config.yaml` chose may be slow or away, so a write never waits for it: whatever passage has no vector
//! by that model yet *is* the queue, and a thread works it off. Vectors are kept by the hash of their
//! text, so the same text is never embedded twice. Until the model has seen most passages, the table
//! answers in its place.

use crate::worker::{Complaint, Signal, Woken, Worker, back_off, contained};
use crate::{Caller, Kernel, Scope};
use kenning_audit::{Log, Passages};
use kenning_core::{Code, Error, Hash, NodeId, Result, Space};
use kenning_egress::Policy;
use kenning_embed::http::{Key, Kind, Provider, Settings};
use kenning_embed::{Embedder, Model};
use kenning_memory::config::{self, Config, Provider as Name, Text};
use kenning_search::{Searcher, collection_of};
use kenning_store::{NodeFilter, Vector, When};
use kenning_vault::Stamp;
use serde_json::{Map, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Passages that are sent to the model at a time.
const BATCH: usize = 64;

/// How long a model that did not answer is left alone.
const REST: Duration = Duration::from_secs(30);

/// How long at most, after many failures in a row.
const REST_MAX: Duration = Duration::from_secs(120);

/// How long the thread sleeps at most when nothing is waiting.
const SLEEP_MAX: Duration = Duration::from_secs(3_600);

/// Nodes that are cut into passages again in one transaction.
const REINDEX_PAGE: usize = 500;

/// What makes vectors, and what is waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingStatus {
    /// From whom.
    pub provider: String,
    /// By which model.
    pub model: String,
    /// How many numbers a vector has.
    pub dimensions: usize,
    /// Passages that can be found.
    pub passages: usize,
    /// Passages that wait for a vector by this model.
    pub waiting: usize,
    /// What is wrong, if anything is.
    pub fault: Option<String>,
}

/// What was made anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reindexed {
    /// Nodes that were cut into passages again.
    pub nodes: u64,
    /// Passages that got a vector.
    pub embedded: u64,
}

/// The chosen model, kept while the configuration stays the same.
#[derive(Default)]
pub(crate) struct Chosen {
    state: Arc<Mutex<State>>,
    worker: Mutex<Option<Worker>>,
    /// Spaces that may have passages without a vector.
    waiting: Arc<Mutex<BTreeSet<Space>>>,
    /// The configuration, as the file with this stamp says.
    config: Mutex<Option<(Stamp, Arc<Config>)>>,
}

impl Chosen {
    /// The configuration of a file with this stamp, which is read if its stamp was another before.
    pub(crate) fn config_at(
        &self,
        stamp: Stamp,
        read: impl FnOnce() -> Result<Arc<Config>>,
    ) -> Result<Arc<Config>> {
        if let Some((of, config)) = &*lock(&self.config)
            && *of == stamp
        {
            return Ok(Arc::clone(config));
        }
        let config = read()?;
        *lock(&self.config) = Some((stamp, Arc::clone(&config)));
        Ok(config)
    }
}

#[derive(Default)]
struct State {
    config: Option<config::Embedding>,
    embedder: Option<Arc<dyn Embedder>>,
    /// Why there is none, or why it did not answer.
    fault: Option<String>,
    /// Not to be asked before this moment.
    rests_until: Option<Instant>,
}

impl State {
    fn fails(&mut self, error: &Error) {
        self.fault = Some(error.to_string());
        self.rests_until = Some(Instant::now() + REST);
    }

    fn answers(&mut self) {
        self.fault = None;
        self.rests_until = None;
    }

    fn rests(&self) -> bool {
        self.rests_until.is_some_and(|it| Instant::now() < it)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kernel {
    /// The model that the configuration chose; `None` is the built-in table.
    fn embedder(&self) -> Option<Arc<dyn Embedder>> {
        let settings = match self.memory_config() {
            Ok(settings) => settings,
            Err(error) => {
                lock(&self.chosen.state).fault = Some(error.to_string());
                return None;
            }
        };
        let config = &settings.embedding;
        let mut state = lock(&self.chosen.state);
        if state.config.as_ref() != Some(config) {
            let made = self.make_embedder(config);
            *state = State {
                config: Some(config.clone()),
                fault: made.as_ref().err().map(ToString::to_string),
                embedder: made.unwrap_or_default(),
                rests_until: None,
            };
        }
        state.embedder.clone()
    }

    fn make_embedder(&self, config: &config::Embedding) -> Result<Option<Arc<dyn Embedder>>> {
        let kind = match config.provider {
            Name::Builtin => return Ok(None),
            Name::Local => return self.local_model(config).map(Some),
            Name::Nim => Kind::Nim,
            Name::Ollama => Kind::Ollama,
            Name::OpenAi => Kind::OpenAi,
        };
        let expand = |text: &Text| text.expand(&*self.environment);
        let default = config.provider.default_model();
        let model = config.model.as_ref().map(expand).transpose()?;
        let model = model.or_else(|| default.map(|it| it.0.to_owned()));
        let model = model.ok_or_else(|| config::missing("embedding.model"))?;
        let is_default = default.filter(|it| it.0 == model).map(|it| it.1);
        let dimensions = config.dimensions.or(is_default);
        let dimensions = dimensions.ok_or_else(|| config::missing("embedding.dimensions"))?;
        let mut settings = Settings::new(kind, model, dimensions);
        if let Some(endpoint) = &config.endpoint {
            settings.base_url = expand(endpoint)?;
        }
        if let Some(key) = &config.api_key {
            settings.key = Some(Key::new(expand(key)?)?);
        }
        if settings.model.starts_with("nomic-embed-text") {
            settings.passage_prefix = "search_document: ".to_owned();
            settings.query_prefix = "search_query: ".to_owned();
        }
        // Somebody waits for a query: better the table's answer now than the model's later.
        settings.query_timeout = Duration::from_secs(3);
        let provider = Provider::new(settings, &Policy::default())?;
        Ok(Some(Arc::new(provider)))
    }

    #[cfg(feature = "transformer")]
    fn local_model(&self, config: &config::Embedding) -> Result<Arc<dyn Embedder>> {
        use kenning_embed::transformer::{Folder, Lazy};
        let folder = config
            .model
            .as_ref()
            .ok_or_else(|| config::missing("embedding.model"))?;
        let folder = folder.expand(&*self.environment)?;
        let dir = kenning_vault::Dir::open(std::path::Path::new(&folder))?;
        let model = Lazy::new(Folder::read(&dir)?);
        model.start();
        Ok(Arc::new(model))
    }

    #[cfg(not(feature = "transformer"))]
    #[expect(
        clippy::unused_self,
        reason = "the same signature with the feature and without"
    )]
    fn local_model(&self, _: &config::Embedding) -> Result<Arc<dyn Embedder>> {
        Err(
            Error::unavailable("`embedding.provider`: `local` is not part of this program")
                .hint("build it with `--features transformer`, or use another provider"),
        )
    }

    /// The model that was chosen in place of the built-in table.
    pub fn chosen_model(&self) -> Option<Model> {
        Some(self.embedder()?.model().clone())
    }

    /// The vector of a query by that model, or a remark why the table answers in its place.
    pub(crate) fn query_vector(&self, query: &str) -> (Option<Vec<f32>>, Option<String>) {
        let Some(embedder) = self.embedder() else {
            return (
                None,
                lock(&self.chosen.state).fault.as_deref().map(in_its_place),
            );
        };
        {
            let state = lock(&self.chosen.state);
            if state.rests() {
                return (
                    None,
                    Some(in_its_place(state.fault.as_deref().unwrap_or_default())),
                );
            }
        }
        match embedder.embed_query(query) {
            Ok(vector) => {
                lock(&self.chosen.state).answers();
                (Some(vector), None)
            }
            Err(error) => {
                let mut state = lock(&self.chosen.state);
                state.fails(&error);
                (None, Some(in_its_place(&error.to_string())))
            }
        }
    }

    /// Has the passages of a space embedded that are not yet, some time.
    pub fn embed_later(&self, space: &Space) {
        if self.read_only || self.embedder().is_none() {
            return;
        }
        lock(&self.chosen.waiting).insert(space.clone());
        let mut worker = lock(&self.chosen.worker);
        let worker = worker.get_or_insert_with(|| {
            let queue = Queue {
                log: self.log.clone(),
                searcher: Arc::clone(&self.searcher),
                state: Arc::clone(&self.chosen.state),
                waiting: Arc::clone(&self.chosen.waiting),
            };
            // It is dropped without waiting for a request that is under way: what that brings is asked again.
            Worker::start("embedding", Arc::default(), move |signal| {
                queue.work_off(signal);
            })
        });
        worker.signal().wake();
    }

    /// What makes vectors, and what is waiting.
    pub fn embedding_status(&self, caller: &Caller) -> Result<EmbeddingStatus> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let embedder = self.embedder();
        let model = embedder.as_ref().map(|it| it.model().clone());
        let (waiting, passages) = self.log.read(space, |tx| {
            self.searcher
                .with(space, tx, model.as_ref(), |index| index.waiting())
        })?;
        let state = lock(&self.chosen.state);
        let named = state
            .config
            .as_ref()
            .map_or("builtin", |it| it.provider.as_str());
        let used = model.unwrap_or_else(|| kenning_embed::Table::built_in().model().clone());
        Ok(EmbeddingStatus {
            provider: named.to_owned(),
            model: used.id,
            dimensions: used.dimensions,
            passages,
            waiting,
            fault: state.fault.clone(),
        })
    }

    /// Brings the kept index of a space up to date, for those who start after this process and have no time
    /// for it themselves. Answers whether there was anything to do; whoever finds another process at it
    /// leaves it to that one.
    pub fn renew_index(&self, caller: &Caller) -> Result<bool> {
        caller.principal.require(Scope::Read)?;
        self.writable()?;
        let space = &caller.principal.space;
        let locks = self.data.private_subdir("locks")?;
        let _lock = match locks.lock(&format!("index-{space}"), Duration::ZERO) {
            Ok(lock) => lock,
            Err(error) if error.code == Code::Unavailable => return Ok(false),
            Err(error) => return Err(error),
        };
        let model = self.chosen_model();
        self.log
            .read(space, |tx| self.searcher.renew(space, tx, model.as_ref()))
    }

    /// Cuts every text into passages again and embeds what has no vector yet. Searches go on meanwhile.
    pub fn reindex(&self, caller: &Caller) -> Result<Reindexed> {
        caller.principal.require(Scope::Admin)?;
        let space = &caller.principal.space;
        let total = self
            .log
            .read(space, |tx| tx.count_nodes(&NodeFilter::default()))?;
        let mut done = Reindexed::default();
        let mut after = None;
        loop {
            caller.check()?;
            let (last, found) = self.log.read(space, |tx| {
                let page = tx.nodes(&NodeFilter::default(), When::Now, after, REINDEX_PAGE)?;
                let last = page.last().map(|it| it.id);
                let mut found = Vec::new();
                for node in page {
                    if !tx.passages(node.id)?.is_empty() {
                        found.push(node);
                    }
                }
                Ok((last, found))
            })?;
            done.nodes += found.len() as u64;
            // Texts are cut, tokenized and hashed here, not while every other writer waits.
            let cut = found.iter().map(|node| {
                let cut = Passages::from((self.hooks.passages_of)(node));
                (node.id, node.hash, cut)
            });
            let cut: Vec<(NodeId, Hash, Passages)> = cut.collect();
            self.log.write(space, move |tx| {
                for (id, hash, cut) in &cut {
                    // Whoever changed it meanwhile has cut it as well.
                    let now = tx.node(*id, When::Now)?;
                    if now.is_some_and(|it| it.hash == *hash) {
                        tx.put_hashed_passages(*id, cut)?;
                    }
                }
                Ok(())
            })?;
            caller.progress(
                done.nodes as f64,
                Some(total as f64),
                "texts cut into passages",
            );
            after = last;
            if last.is_none() {
                break;
            }
        }
        let nodes = done.nodes;
        self.log.write(space, move |tx| {
            tx.record(kenning_search::REINDEXED, json!({ "nodes": nodes }))
                .map(drop)
        })?;
        if let Some(embedder) = self.embedder() {
            done.embedded = self.embed_all(caller, &*embedder)?;
        }
        Ok(done)
    }

    fn embed_all(&self, caller: &Caller, embedder: &dyn Embedder) -> Result<u64> {
        let space = &caller.principal.space;
        let mut embedded = 0;
        loop {
            caller.check()?;
            let step = step(&self.log, &self.searcher, space, embedder)?;
            if step == 0 {
                return Ok(embedded);
            }
            embedded += step;
            caller.progress(embedded as f64, None, "passages embedded");
        }
    }
}

fn in_its_place(fault: &str) -> String {
    format!("{fault}; found by full text and the built-in table instead")
}

/// Embeds what is waiting.
struct Queue {
    log: Log,
    searcher: Arc<Searcher>,
    state: Arc<Mutex<State>>,
    waiting: Arc<Mutex<BTreeSet<Space>>>,
}

impl Queue {
    fn work_off(&self, signal: &Signal) {
        let (mut seen, mut n_failures) = (0, 0);
        let mut complaint = Complaint::default();
        while !signal.is_stopped() {
            let Some(space) = lock(&self.waiting).pop_first() else {
                if signal.next(&mut seen, SLEEP_MAX) == Woken::ToStop {
                    return;
                }
                continue;
            };
            let Some(embedder) = lock(&self.state).embedder.clone() else {
                continue;
            };
            let step = || step(&self.log, &self.searcher, &space, &*embedder);
            match contained(step) {
                Ok(0) => {}
                Ok(_) => {
                    n_failures = 0;
                    complaint.clear();
                    lock(&self.state).answers();
                    lock(&self.waiting).insert(space);
                }
                Err(error) => {
                    n_failures += 1;
                    complaint.say("passages wait for their vectors", &error);
                    lock(&self.state).fails(&error);
                    lock(&self.waiting).insert(space);
                    signal.pause(back_off(REST, REST_MAX, n_failures));
                }
            }
        }
    }
}

/// Embeds some passages that have no vector yet; how many.
fn step(log: &Log, searcher: &Searcher, space: &Space, embedder: &dyn Embedder) -> Result<u64> {
    let model = embedder.model().clone();
    let texts = log.read(space, |tx| {
        let lacking = searcher.with(space, tx, Some(&model), |index| index.lacking(BATCH))?;
        let mut texts = BTreeSet::new();
        for (node, n) in lacking {
            texts.extend(
                tx.passages(node)?
                    .into_iter()
                    .filter(|it| it.n == n)
                    .map(|it| it.text),
            );
        }
        Ok(texts)
    })?;
    if texts.is_empty() {
        return Ok(0);
    }
    let texts: Vec<String> = texts.into_iter().collect();
    let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = embedder.embed(&borrowed)?;
    let count = vectors.len() as u64;
    let collection = collection_of(&model);
    log.write(space, move |tx| {
        for (text, numbers) in texts.iter().zip(vectors) {
            tx.put_vector(Vector {
                collection: collection.clone(),
                id: Hash::of(text.as_bytes()).to_string(),
                model: model.id.clone(),
                numbers,
                props: Map::new(),
                seq: 0,
            })?;
        }
        let data = json!({ "model": model.id, "passages": count });
        tx.record("PassagesEmbedded", data).map(drop)
    })?;
    Ok(count)
}
