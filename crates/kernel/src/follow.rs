//! Whether a directory must be read again.
//!
//! A process that looks once compares stamps and ends. One that looks again is a server: from then on
//! the operating system reports what changed, and if nothing did, not even stamps are compared.

use kenning_vault::{Change, Dir, Watch};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// More names than this are not checked one by one.
const NAMES_MAX: usize = 500;

/// What is known about changes of a directory.
#[derive(Default)]
pub struct Follow {
    looks: u32,
    /// Its folders, and when something was last added to them or removed.
    folders: (Vec<String>, Vec<i64>),
    watch: Option<(Watch, Arc<Mutex<Told>>)>,
}

/// What was reported since the last look.
#[derive(Default)]
struct Told {
    is_anything: bool,
    names: BTreeMap<String, bool>,
}

/// What must be checked.
#[derive(Debug, PartialEq, Eq)]
pub enum Stale {
    Nothing,
    Some(Doubtful),
    Everything,
}

/// Files and folders that may have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Doubtful {
    /// By their names, and whether only the content changed.
    pub names: BTreeMap<String, bool>,
    /// Folders that something was added to or removed from.
    pub folders: Vec<String>,
}

impl Follow {
    /// Counts a look; true if something may have changed since the last one.
    pub fn is_stale(&mut self, dir: &Dir) -> bool {
        self.look(dir) != Stale::Nothing
    }

    /// Counts a look, and returns what may have changed since the last one.
    pub fn look(&mut self, dir: &Dir) -> Stale {
        self.looks += 1;
        let is_watched = |it: &(Watch, _)| !it.0.is_lost();
        // A directory that was removed and created again is another one to the operating system.
        if self.looks >= 2 && !self.watch.as_ref().is_some_and(is_watched) {
            let told = Arc::new(Mutex::new(Told {
                is_anything: true,
                ..Told::default()
            }));
            let theirs = Arc::clone(&told);
            let tell = move |change: Change<'_>| note(&theirs, change);
            self.watch = Some((Watch::start_telling(dir, tell), told));
        }
        let Some((watch, told)) = &self.watch else {
            return Stale::Everything;
        };
        let told = std::mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner));
        // The report comes a moment later; the time of a folder shows at once what was added to it.
        let times = dir.folder_times(&self.folders.0);
        if told.is_anything || !watch.is_live() || times.len() != self.folders.1.len() {
            return Stale::Everything;
        }
        let folders = self.folders.0.iter().zip(&times).zip(&self.folders.1);
        let folders = folders.filter(|((_, now), before)| now != before);
        let folders: Vec<String> = folders.map(|((it, _), _)| it.clone()).collect();
        self.folders.1 = times;
        if told.names.is_empty() && folders.is_empty() {
            return Stale::Nothing;
        }
        Stale::Some(Doubtful {
            names: told.names,
            folders,
        })
    }

    /// Forces the next look to check everything.
    pub fn touch(&self) {
        if let Some((_, told)) = &self.watch {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.is_anything = true;
        }
    }

    /// Whether a folder is one of those that were recorded.
    pub fn has_folder(&self, folder: &str) -> bool {
        let is_same = |it: &String| it.as_str().cmp(folder);
        self.folders.0.binary_search_by(is_same).is_ok()
    }

    /// Records the folders, and those above them, before they are read.
    pub fn note_folders<'a>(&mut self, dir: &Dir, folders: impl Iterator<Item = &'a str>) {
        let above = folders.flat_map(|folder| ancestors(folder).chain([folder]));
        let mut folders: Vec<String> = above.map(ToOwned::to_owned).collect();
        folders.push(String::new());
        folders.sort_unstable();
        folders.dedup();
        let times = dir.folder_times(&folders);
        let is_folder = |it: &(String, i64)| it.1 != 0;
        self.folders = folders.into_iter().zip(times).filter(is_folder).unzip();
    }
}

fn note(told: &Mutex<Told>, change: Change<'_>) {
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    match change {
        Change::Named { name, is_content } if told.names.len() < NAMES_MAX => {
            let known = told.names.entry(name.to_owned()).or_insert(is_content);
            *known &= is_content;
        }
        Change::Named { .. } | Change::Anything => told.is_anything = true,
    }
}

/// The folders above a file, the nearest first.
pub fn ancestors(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(name.rsplit_once('/').map(|it| it.0), |it| {
        it.rsplit_once('/').map(|it| it.0)
    })
}
