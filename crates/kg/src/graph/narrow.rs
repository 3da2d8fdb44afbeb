//! Checks single files of the vault that may have changed.
//!
//! The result is the same as of a check of the whole vault. If that is not certain, it gives up: a
//! folder was added or removed, or a file that is not a document and that a link may lead to.

use super::cards::Card;
use super::generate::Run;
use super::library::{Library, Scope};
use super::rules::NoteRules;
use super::survey::{SKIPPED, Task, Tree, is_markdown, look_into};
use super::{Doc, links};
use crate::Kg;
use kenning_core::{Code, Error, Result};
use kenning_kernel::Caller;
use kenning_kernel::follow::Doubtful;
use kenning_vault::Dir;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

impl Kg {
    /// Updates the notes that may have changed from their files. `linked` is the state of the library
    /// whose links were last written; returns the next one, or `None` if everything must be checked.
    /// `is_known` says which folders existed when everything was last checked.
    pub fn generate_notes(
        &self,
        caller: &Caller,
        doubtful: &Doubtful,
        linked: u64,
        is_known: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Option<u64>> {
        let trees = [self.vault_tree(&caller.principal.space)?];
        // The time limit for store access is that of a short call, and belongs to the thread.
        std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let _locks = self.graph_locks(caller, &trees)?;
                if !self.follow_notes(caller, &trees[0], doubtful, is_known)? {
                    return Ok(None);
                }
                self.link_notes(caller, &trees[0].dir, linked)
            });
            run.join()
                .unwrap_or_else(|_| Err(Error::internal("the generation panicked")))
        })
    }

    fn follow_notes(
        &self,
        caller: &Caller,
        tree: &Tree,
        doubtful: &Doubtful,
        is_known: &dyn Fn(&str) -> bool,
    ) -> Result<bool> {
        let space = &caller.principal.space;
        let before = self
            .kernel
            .log()
            .read(space, |tx| self.vault_library(space, tx))?;
        let Some(mut names) = names_of(&tree.dir, &before, doubtful, is_known) else {
            return Ok(false);
        };
        let busy = self.notes_being_written(space)?;
        names.retain(|it| !busy.contains(&tree.path_of(it)));
        let rules = tree.rules();
        let is_wanted = |name: &str| tree.is_document(name, rules.as_ref());
        let found = tree.dir.find(&names, SKIPPED, &is_wanted)?;
        let paths = names.iter().map(|it| tree.path_of(it));
        let known = paths.filter_map(|path| {
            let card = before.doc(before.number_of(&path)?).card.clone();
            Some((path, card))
        });
        let cards: HashMap<String, Card> = known.collect();
        // From here on nobody else uses the library in memory, so that it can be changed in place.
        drop(before);
        if cards.values().any(Card::is_outdated) {
            return Ok(false);
        }
        let there: BTreeSet<String> = found
            .files
            .iter()
            .map(|it| tree.path_of(&it.name))
            .collect();
        let tasks = found.files.into_iter().map(|file| {
            let path = tree.path_of(&file.name);
            Task {
                tree,
                before: cards.get(&path),
                path,
                name: file.name,
                stamp: file.stamp,
            }
        });
        let is_other = |it: &Task<'_>| !it.before.is_some_and(|card| card.is_surely_of(it.stamp));
        let tasks: Vec<Task<'_>> = tasks.filter(is_other).collect();
        let gone = cards.iter().filter(|it| !there.contains(it.0));
        let gone: Vec<(String, &Card)> = gone.map(|entry| (entry.0.clone(), entry.1)).collect();
        if !tasks.is_empty() || !gone.is_empty() {
            let looked = look_into(&tasks, false, caller)?;
            let mut run = Run::new(self, caller, &Scope::vault().project, cards.clone());
            run.write_nodes(looked, &gone)?;
        }
        Ok(true)
    }

    /// Writes the links of changed notes, whoever wrote them: a note that a tool wrote is in the
    /// store before its file is checked.
    fn link_notes(&self, caller: &Caller, dir: &Dir, linked: u64) -> Result<Option<u64>> {
        let space = &caller.principal.space;
        let library = self
            .kernel
            .log()
            .read(space, |tx| self.vault_library(space, tx))?;
        let Some(changed) = library.changed_since(linked) else {
            return Ok(None);
        };
        let notes: Vec<&Doc> = changed.iter().filter_map(|it| library.note(it)).collect();
        if leads_to_new_place(dir, &library, &notes) {
            return Ok(None);
        }
        links::write_notes(self, caller, &library, &notes)?;
        Ok(Some(library.version))
    }
}

/// The files to check; `None` if everything must be checked.
fn names_of(
    dir: &Dir,
    library: &Arc<Library>,
    doubtful: &Doubtful,
    is_known: &dyn Fn(&str) -> bool,
) -> Option<BTreeSet<String>> {
    let rules = NoteRules::of(dir);
    let mut names = BTreeSet::new();
    for (name, is_content) in &doubtful.names {
        if is_skipped(name) {
            continue;
        }
        if is_markdown(name) {
            names.insert(name.clone());
        } else if !is_content {
            // A folder, or a file that a link may lead to.
            return None;
        }
    }
    for folder in &doubtful.folders {
        let prefix = match folder.as_str() {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        // A folder may hold most of the notes: each costs a lookup, and no new text.
        let is_all_skipped = is_skipped(folder);
        let mut key = format!("vault:{prefix}");
        let n_prefix = key.len();
        let mut there = HashSet::new();
        for listed in dir.names(folder).ok()? {
            key.truncate(n_prefix);
            key.push_str(&listed.name);
            let name = &key["vault:".len()..];
            let is_skipped = is_all_skipped || SKIPPED.contains(&listed.name.as_str());
            if listed.is_folder && !is_skipped && !is_known(name) {
                let is_wanted = |name: &str| is_markdown(name) && rules.why_not(name).is_none();
                let walked = dir.walk(name, SKIPPED, &is_wanted).ok()?;
                if !walked.files.is_empty() {
                    return None;
                }
            } else if is_markdown(name) {
                // Another file with the same name, as editors write.
                let known = library.number_of(&key);
                let known = known.map(|it| library.doc(it).card.stamp().inode);
                if known != Some(listed.inode) {
                    names.insert(name.to_owned());
                }
                there.insert(listed.name);
            }
        }
        let notes = library.docs.iter().map(super::path_in_vault);
        let gone = notes.filter(|it| {
            let last = it.strip_prefix(&prefix);
            last.is_some_and(|name| !there.contains(name) && !name.contains('/'))
        });
        names.extend(gone.map(ToOwned::to_owned));
    }
    Some(names)
}

fn is_skipped(name: &str) -> bool {
    name.split('/').any(|it| SKIPPED.contains(&it))
}

/// Whether something that is not a document, and was not known, is where a link of these notes may
/// lead.
fn leads_to_new_place(dir: &Dir, library: &Library, notes: &[&Doc]) -> bool {
    let paths = notes.iter().flat_map(|it| library.doubtful_of(it));
    let paths: BTreeSet<String> = paths.collect();
    paths.iter().any(|path| {
        let is_there = match dir.metadata(path) {
            Ok(_) => true,
            Err(error) => error.code == Code::Denied,
        };
        is_there && !library.places.vault.is_there(path)
    })
}
