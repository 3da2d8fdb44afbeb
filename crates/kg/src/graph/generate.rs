//! From files to the graph.
//!
//! A run compares the tree with the cards, reads what is new or changed, writes nodes, then edges. It
//! goes in short transactions, so that nobody waits long and a run that was stopped or killed leaves
//! whole documents behind; the next one finds by the cards what is missing. One run at a time, by a
//! lock that is released by death.

use super::cards::{self, Card};
use super::folder::docs_folder;
use super::library::{GRAPHS, Library};
use super::pages::{
    Change, Page, Written, is_written_meanwhile, page, remove_document, renames, write_page,
};
use super::survey::{self, Looked, Task, Tree, broken, look_into};
use super::{GENERATED, library, links, places};
use crate::Kg;
use kenning_core::{Code, Error, Hash, NodeId, Result, Space};
use kenning_kernel::edges;
use kenning_kernel::{Caller, Scope};
use kenning_vault::Lock;
use serde_json::json;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Documents that are written in one transaction, and documents whose edges are.
const BATCH: usize = 128;
const LINK_BATCH: usize = 512;

/// How long a run waits at a time for another one's end.
const LOCK_STEP: Duration = Duration::from_millis(200);

/// What to generate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generate {
    /// The folder of documents, relative to the project.
    pub docs_path: String,
    /// Whether files that seem unchanged are read again.
    pub force: bool,
    /// Whether only what changed is told.
    pub incremental: bool,
}

/// Something that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// Which file.
    pub path: String,
    /// Where, if that is known.
    pub line: Option<u32>,
    /// What is wrong.
    pub message: String,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// Whether only changes were asked for.
    pub incremental: bool,
    /// Files that the graph was made of; of an incremental run those that were read.
    pub files_processed: usize,
    /// Their nodes.
    pub nodes_generated: usize,
    /// The edges of those nodes; of an incremental run those that are new.
    pub edges_created: usize,
    /// New documents.
    pub nodes_added: usize,
    /// Changed documents.
    pub nodes_updated: usize,
    /// Documents whose files are gone.
    pub nodes_removed: usize,
    /// What is wrong with files.
    pub errors: Vec<FileError>,
    /// Documents of the vault that were looked at, if there is one.
    pub vault_notes: Option<usize>,
    /// Where the project is.
    pub project_root: String,
    /// Which folder of it.
    pub docs_path: String,
}

impl Kg {
    /// Makes the graph of a folder of documents, and of the vault, what the files say.
    pub fn generate_graph(&self, caller: &Caller, what: &Generate) -> Result<Generated> {
        caller.principal.require(Scope::Write)?;
        let caller = &with_steady_progress(caller);
        let space = &caller.principal.space;
        let trees = self.trees(space, &what.docs_path)?;
        // The patience with the store is that of a short call, and belongs to the thread.
        std::thread::scope(|scope| {
            let run = scope.spawn(|| self.generate_from(caller, what, &trees));
            run.join()
                .unwrap_or_else(|_| Err(Error::internal("the generation panicked")))
        })
    }

    fn trees(&self, space: &Space, docs_path: &str) -> Result<Vec<Tree>> {
        let dir = self.kernel.project().open(space)?;
        let folder = docs_folder(&dir, docs_path)?;
        let mut trees = vec![Tree {
            dir,
            root: folder.clone(),
            folder,
            is_vault: false,
        }];
        if self.kernel.vault().is_named() && self.kernel.vault().space() == space {
            trees.push(self.vault_tree(space)?);
        }
        Ok(trees)
    }

    pub(super) fn vault_tree(&self, space: &Space) -> Result<Tree> {
        Ok(Tree {
            dir: self.kernel.vault().open(space)?,
            folder: String::new(),
            root: kenning_kernel::roots::VAULT.name.to_owned(),
            is_vault: true,
        })
    }

    fn generate_from(&self, caller: &Caller, what: &Generate, trees: &[Tree]) -> Result<Generated> {
        let scope = self.graph_scope();
        let _locks = self.graph_locks(caller, trees)?;
        let before = self.library(&caller.principal.space)?;
        let mut made = self.make_as_files_say(caller, what, trees, &before, &scope)?;
        made.run
            .conclude(&made.after, trees, made.edges, made.shadow)?;
        step(caller, 2, 1, 1, "done");
        Ok(made.run.result)
    }

    /// Makes the vault's notes what its files say, and nothing else: no graph of a project is begun. Gives
    /// the state of the library whose links are all written.
    pub fn generate_vault(&self, caller: &Caller) -> Result<u64> {
        let space = &caller.principal.space;
        let trees = [self.vault_tree(space)?];
        // The patience with the store is that of a short call, and belongs to the thread.
        std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let _locks = self.graph_locks(caller, &trees)?;
                let before = self
                    .kernel
                    .log()
                    .read(space, |tx| self.vault_library(space, tx))?;
                let what = Generate::default();
                let scope = library::Scope::vault();
                self.make_as_files_say(caller, &what, &trees, &before, &scope)?;
                drop(before);
                let after = self
                    .kernel
                    .log()
                    .read(space, |tx| self.vault_library(space, tx))?;
                Ok(after.version)
            });
            run.join()
                .unwrap_or_else(|_| Err(Error::internal("the generation panicked")))
        })
    }

    fn make_as_files_say<'e>(
        &'e self,
        caller: &'e Caller,
        what: &Generate,
        trees: &[Tree],
        before: &Library,
        scope: &library::Scope,
    ) -> Result<Made<'e>> {
        // A note is committed before its file is written. Whoever looks at the files in between would
        // take a new note for one that was removed, and an old text for the newest.
        let busy = self.notes_being_written(&caller.principal.space)?;
        let mut survey = survey::survey(trees, before, what.force)?;
        survey.tasks.retain(|it| !busy.contains(&it.path));
        survey.removed.retain(|it| !busy.contains(&it.0));
        let n_tasks = survey.tasks.len();
        step(caller, 0, 0, n_tasks, "files found");
        let looked = look_into(&survey.tasks, what.force, caller)?;
        step(caller, 0, 1, 1, "files read");
        let docs = before.docs.iter();
        let cards = docs.map(|doc| (doc.path.clone(), doc.card.clone()));
        let mut run = Run::new(self, caller, &scope.project, cards.collect());
        run.result = Generated {
            incremental: what.incremental && !what.force,
            project_root: trees[0].dir.path().display().to_string(),
            docs_path: what.docs_path.clone(),
            vault_notes: (trees.len() > 1).then_some(survey.n_notes),
            errors: survey.errors,
            ..Generated::default()
        };
        let tasks = survey.tasks.iter();
        run.is_read_anew = tasks.filter_map(|it| it.before).any(|it| it.is_outdated());
        run.write_nodes(looked, &survey.removed)?;
        let after = if run.is_same_set {
            before.with_cards(std::mem::take(&mut run.changed))
        } else {
            None
        };
        let after = after.unwrap_or_else(|| {
            let places = std::sync::Arc::clone(&before.places);
            Library::of(run.cards.drain().collect(), scope, places)
        });
        let project = &scope.project;
        let after = places::follow(self, caller, after, trees, project, run.is_read_anew)?;
        let edges = links::write(self, caller, &after, what.force)?;
        let shadow = (survey.n_same as u64, n_tasks as u64);
        Ok(Made {
            run,
            after,
            edges,
            shadow,
        })
    }

    /// The keys of notes whose files are not written yet.
    pub(super) fn notes_being_written(&self, space: &Space) -> Result<HashSet<String>> {
        if self.kernel.vault().space() != space {
            return Ok(HashSet::new());
        }
        let ahead = self.kernel.notes_ahead_of_files(space)?;
        Ok(ahead.into_iter().collect())
    }

    /// One run at a time for a project, and for the vault.
    pub(super) fn graph_locks(&self, caller: &Caller, trees: &[Tree]) -> Result<Vec<Lock>> {
        let locks = self.kernel.data().private_subdir("locks")?;
        // Each once, since a vault may be the project itself, and in one order, so that no two runs wait for
        // one another.
        let names: BTreeSet<String> = trees
            .iter()
            .map(|tree| cards::short(&tree.dir.path().display().to_string()))
            .collect();
        let mut held = Vec::new();
        for name in names {
            let name = format!("graph-{name}.lock");
            held.push(loop {
                caller.check()?;
                match locks.lock(&name, LOCK_STEP) {
                    Ok(lock) => break lock,
                    Err(error) if error.code == Code::Unavailable => {}
                    Err(error) => return Err(error),
                }
            });
        }
        Ok(held)
    }
}

/// The same caller, told only of progress: each step is further than the one before.
fn with_steady_progress(caller: &Caller) -> Caller {
    let mut caller = caller.clone();
    if let Some(tell) = caller.progress.take() {
        let last = std::sync::Mutex::new(f64::NEG_INFINITY);
        caller.progress = Some(std::sync::Arc::new(move |done, total, word: &str| {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if done > *last {
                *last = done;
                tell(done, total, word);
            }
        }));
    }
    caller
}

/// Says how far a run is: three parts, each a hundred long, so that it never goes back.
pub(super) fn step(caller: &Caller, part: u8, done: usize, of: usize, what: &str) {
    let share = done as f64 / (of as f64).max(1.0);
    caller.progress(
        (f64::from(part) + share.min(1.0)) * 100.0,
        Some(300.0),
        what,
    );
}

/// What a run came to.
struct Made<'e> {
    run: Run<'e>,
    after: Library,
    edges: edges::Written,
    /// Files that needed not be read, and files that were.
    shadow: (u64, u64),
}

/// A run, from what was read to what is written.
pub(super) struct Run<'e> {
    engine: &'e Kg,
    caller: &'e Caller,
    project: String,
    now_ms: u64,
    /// What the graph is made of, as it becomes.
    cards: HashMap<String, Card>,
    result: Generated,
    /// Documents that were read in this run.
    parsed: HashSet<String>,
    /// Whether any document, of the vault too, is another now.
    is_changed: bool,
    /// Whether no document came or went.
    is_same_set: bool,
    /// Cards of documents that are others now.
    changed: HashMap<String, Card>,
    /// Whether cards were made anew of texts that are the same.
    is_read_anew: bool,
}

impl<'e> Run<'e> {
    /// Begins one; `cards` are those of the documents that may be changed.
    pub(super) fn new(
        engine: &'e Kg,
        caller: &'e Caller,
        project: &str,
        cards: HashMap<String, Card>,
    ) -> Self {
        Self {
            engine,
            caller,
            project: project.to_owned(),
            now_ms: engine.kernel.log().clock().now_ms(),
            cards,
            result: Generated::default(),
            parsed: HashSet::new(),
            is_changed: false,
            is_same_set: true,
            changed: HashMap::new(),
            is_read_anew: false,
        }
    }
}

impl Run<'_> {
    pub(super) fn write_nodes(
        &mut self,
        looked: Vec<Looked<'_>>,
        removed: &[(String, &Card)],
    ) -> Result<()> {
        let mut reads = Vec::new();
        let mut touched = Vec::new();
        let mut failed = HashSet::new();
        for it in looked {
            match it {
                Looked::Touched(task) => touched.push(task),
                Looked::Read(read) => reads.push(*read),
                Looked::Failed(error) => {
                    failed.insert(error.path.clone());
                    self.result.errors.push(error);
                }
            }
        }
        let mut moved = renames(&reads, removed);
        self.remove(removed, &moved)?;
        let n_reads = reads.len();
        let engine = self.engine;
        let now_ms = self.now_ms;
        let changed = std::thread::scope(|scope| -> Result<Vec<String>> {
            // Texts are cut into words on one core while the other one writes.
            let (sender, receiver) = sync_channel::<Vec<Page>>(2);
            let moved = &mut moved;
            let cutter = scope.spawn(move || {
                let mut batch = Vec::with_capacity(BATCH);
                let mut changed = Vec::new();
                for read in reads {
                    let (path, origin) = (read.task.path.clone(), moved.remove(&read.task.path));
                    match page(read, origin, now_ms) {
                        Some(page) => batch.push(page),
                        None => changed.push(path),
                    }
                    if batch.len() == BATCH && sender.send(std::mem::take(&mut batch)).is_err() {
                        return changed;
                    }
                }
                // Nobody takes it only where the writing failed.
                drop(sender.send(batch));
                changed
            });
            let mut done = 0;
            for batch in receiver {
                self.caller.check()?;
                done += batch.len();
                self.write_batch(engine, batch)?;
                step(self.caller, 1, done, n_reads, "documents written");
            }
            cutter.join().map_err(|_| broken())
        })?;
        for path in changed {
            let message = "it was changed while it was read; generate again".to_owned();
            self.result.errors.push(FileError {
                path,
                line: None,
                message,
            });
        }
        step(self.caller, 1, 1, 1, "documents written");
        self.touch(&touched)
    }

    /// Removes the nodes of files that are gone, but not of those that have another name now.
    fn remove(
        &mut self,
        removed: &[(String, &Card)],
        moved: &HashMap<String, (NodeId, String)>,
    ) -> Result<()> {
        let kept: HashSet<&str> = moved.values().map(|it| it.1.as_str()).collect();
        let gone: Vec<(String, NodeId, Hash)> = removed
            .iter()
            .filter(|(path, _)| !kept.contains(path.as_str()))
            .map(|(path, card)| (path.clone(), card.node, card.content))
            .collect();
        for batch in gone.chunks(BATCH) {
            self.caller.check()?;
            let (batch, project) = (batch.to_vec(), self.project.clone());
            let journal = Arc::clone(self.engine.kernel.journal());
            let space = &self.caller.principal.space;
            let own = space.clone();
            let removed: Vec<String> = self.engine.kernel.log().write_long(space, move |tx| {
                let journal = (&*journal, &own);
                let mut removed = Vec::with_capacity(batch.len());
                for (path, node, content) in batch {
                    if !is_written_meanwhile(tx, journal, &path, Some(content), None)? {
                        remove_document(tx, &project, &path, node)?;
                        removed.push(path);
                    }
                }
                Ok(removed)
            })?;
            for path in removed {
                self.is_changed = true;
                self.is_same_set = false;
                self.result.nodes_removed += usize::from(!path.starts_with("vault:"));
                self.cards.remove(&path);
            }
        }
        Ok(())
    }

    fn write_batch(&mut self, engine: &Kg, batch: Vec<Page>) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let project = self.project.clone();
        let journal = Arc::clone(engine.kernel.journal());
        let space = self.caller.principal.space.clone();
        let written = engine
            .kernel
            .log()
            .write_long(&self.caller.principal.space, move |tx| {
                batch
                    .into_iter()
                    .filter_map(|page| {
                        write_page(tx, (&journal, &space), &project, page).transpose()
                    })
                    .collect::<Result<Vec<_>>>()
            })?;
        for Written {
            path,
            card,
            change,
            moved_from,
        } in written
        {
            let counts = !path.starts_with("vault:");
            let is_moved = moved_from.is_some();
            if let Some(from) = moved_from {
                self.cards.remove(&from);
            }
            self.is_changed |= !matches!(change, Change::Same);
            self.is_same_set &= !matches!(change, Change::New) && !is_moved;
            match change {
                Change::New if counts => self.result.nodes_added += 1,
                Change::Changed if counts => self.result.nodes_updated += 1,
                _ => {}
            }
            self.parsed.insert(path.clone());
            self.changed.insert(path.clone(), card.clone());
            self.cards.insert(path, card);
        }
        Ok(())
    }

    /// Files that have another stamp and the same content: the next run need not read them.
    fn touch(&mut self, touched: &[&Task<'_>]) -> Result<()> {
        let mut changed: Vec<(String, Card)> = Vec::new();
        let mut stamped = Vec::new();
        for task in touched {
            let Some(card) = self.cards.get_mut(&task.path) else {
                continue;
            };
            card.put_stamp(task.stamp, self.now_ms);
            changed.push((task.path.clone(), card.clone()));
            stamped.push((task.path.clone(), card.clone()));
        }
        for batch in changed.chunks(LINK_BATCH) {
            let (batch, project) = (batch.to_vec(), self.project.clone());
            let journal = Arc::clone(self.engine.kernel.journal());
            let space = self.caller.principal.space.clone();
            self.engine
                .kernel
                .log()
                .write_long(&self.caller.principal.space, move |tx| {
                    for (path, card) in &batch {
                        let known = Some(card.content);
                        if !is_written_meanwhile(tx, (&journal, &space), path, known, known)? {
                            cards::bucket_of(path, &project).set(tx, path, card)?;
                        }
                    }
                    Ok(())
                })?;
        }
        if !stamped.is_empty() {
            self.engine
                .note_stamps(&self.caller.principal.space, &stamped);
        }
        Ok(())
    }

    fn conclude(
        &mut self,
        after: &Library,
        trees: &[Tree],
        edges: edges::Written,
        shadow: (u64, u64),
    ) -> Result<()> {
        let tree = &trees[0];
        let own = || {
            after
                .docs
                .iter()
                .filter(|doc| tree.owns(&doc.path, &doc.card))
        };
        let result = &mut self.result;
        if result.incremental {
            result.files_processed = self
                .parsed
                .iter()
                .filter(|it| !it.starts_with("vault:"))
                .count();
            result.nodes_generated = result.nodes_added + result.nodes_updated;
            result.edges_created = edges.added;
        } else {
            result.files_processed = own().count();
            result.nodes_generated = own().count();
            result.edges_created = own().map(|it| it.out.len()).sum();
        }
        let reported = own().filter(|it| !result.incremental || self.parsed.contains(&it.path));
        let faults: Vec<FileError> = reported
            .flat_map(|doc| {
                doc.card.faults.iter().map(|(line, message)| FileError {
                    path: doc.path.clone(),
                    line: Some(*line),
                    message: message.clone(),
                })
            })
            .collect();
        result.errors.extend(faults);
        result
            .errors
            .sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
        let is_changed = self.is_changed || edges.added + edges.ended > 0;
        let data = json!({
            "project": self.project, "docsPath": tree.folder, "nodesAdded": result.nodes_added,
            "nodesUpdated": result.nodes_updated, "nodesRemoved": result.nodes_removed,
            "edges": after.n_edges(), "errors": result.errors.len(),
        });
        let (key, now_ms, root) = (cards::short(&self.project), self.now_ms, tree.root.clone());
        let vault_names = after.vault_names();
        self.engine
            .kernel
            .log()
            .write(&self.caller.principal.space, move |tx| {
                let known = GRAPHS.get_readable(&**tx, &key)?;
                let is_first = known.as_ref().is_none_or(|it| !it.roots.contains(&root));
                let mut facts = known.unwrap_or_default();
                facts.roots.insert(root);
                facts.generated_ms = now_ms;
                facts.hits += shadow.0;
                facts.misses += shadow.1;
                facts.vault_names = vault_names;
                if is_changed || is_first {
                    facts.updated_ms = now_ms;
                    tx.record(GENERATED, data)?;
                }
                GRAPHS.set(tx, &key, &facts)
            })
    }
}
