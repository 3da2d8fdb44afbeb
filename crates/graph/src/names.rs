//! Resolves names to documents.
//!
//! Every name of a document is kept once, folded: lower case, composed characters, `-`, `_` and space
//! alike. A lookup finds all documents with the folded name and then prefers the exact one, so that
//! spelling decides only where it must.
//!
//! A path is not a name: `./page.md`, `../page.md` and `/page.md` mean the file at that place and
//! never a file of that name elsewhere. Only a bare name is searched for.

mod places;

mod files;
mod nearest;
mod stems;

pub use files::Files;
pub use stems::{stems_of_link, stems_of_names};

use crate::Link;
use crate::paths::is_generic;
use crate::target::{is_markdown, without_extension};
use kenning_text::fold;
use nearest::Nearest;
use places::{composed, ends_with_path, folder_of, is_rooted, joined, n_shared_folders, places};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The names of a document.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its path from the project's root, with `/`.
    pub path: &'a str,
    /// Its path from its docs root.
    pub docs_path: &'a str,
    /// Its title.
    pub title: &'a str,
    /// Its first heading.
    pub heading: Option<&'a str>,
    /// Its other names.
    pub aliases: &'a [String],
}

/// The file that a link stands in.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Its path from the root, with `/`.
    pub path: &'a str,
    /// The root folder of documents that contains it.
    pub docs_root: &'a str,
    /// Whether it is a note of a vault: programs for vaults write paths from the vault's root without
    /// a leading slash, and ignore case.
    pub is_note: bool,
}

/// What a link means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// This document.
    Document(u32),
    /// A file or folder that exists and is not a document.
    File,
    /// A path above the root, which is not looked at.
    Outside,
    /// Nothing that exists.
    Missing,
}

/// The names of all documents.
#[derive(Debug, Default)]
pub struct Names {
    entries: Vec<Entry>,
    /// Folded names, the entries that have each, and what kind of name it is.
    by_name: HashMap<Box<str>, Vec<(u32, Kind)>>,
    /// Folded path from the project's root, without its ending.
    by_path: HashMap<Box<str>, Vec<u32>>,
    /// By the exact path.
    at: HashMap<Box<str>, u32>,
    /// By the folder that a document stands for, as `index.md` does.
    of_folder: HashMap<Box<str>, Vec<u32>>,
    nearest: OnceLock<Nearest>,
}

impl Clone for Names {
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
            by_name: self.by_name.clone(),
            by_path: self.by_path.clone(),
            at: self.at.clone(),
            of_folder: self.of_folder.clone(),
            nearest: OnceLock::new(),
        }
    }
}

#[derive(Clone, Debug)]
struct Entry {
    /// `u32::MAX` for one that was removed.
    doc: u32,
    id: Box<str>,
    path: Box<str>,
    /// Without its ending.
    docs_path: Box<str>,
    title: Box<str>,
    heading: Option<Box<str>>,
    aliases: Box<[Box<str>]>,
}

/// What kind of name this is, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    DocsPath,
    Id,
    /// The file's name, with folders or without.
    File,
    Alias,
    Title,
    Heading,
    /// The folder of an `index.md` or `README.md`.
    Folder,
}

/// Whether the spelling differs, and the kind of name: the smallest is the best.
type Rank = (bool, Kind);

/// What stands for a folder.
const INDEXES: [&str; 2] = ["index", "readme"];

impl Names {
    /// No names yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the names of a document.
    pub fn insert(&mut self, doc: u32, named: &Named<'_>) {
        self.nearest = OnceLock::new();
        let at = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let path = without_extension(named.path);
        let docs_path = without_extension(named.docs_path);
        for (name, kind) in names_of(named) {
            self.add(&name, at, kind);
        }
        let key = fold::title(path).into_boxed_str();
        self.by_path.entry(key).or_default().push(at);
        let whole = composed(named.path);
        let (folder, file) = whole.rsplit_once('/').unwrap_or(("", &whole));
        if INDEXES.contains(&&*without_extension(file).to_lowercase()) {
            self.of_folder.entry(folder.into()).or_default().push(at);
        }
        // If two file names differ only in Unicode form, the last by its path is meant.
        let other = self
            .at
            .get(&*whole)
            .and_then(|it| self.entries.get(*it as usize));
        if other.is_none_or(|it| *it.path <= *named.path) {
            self.at.insert(whole.into_boxed_str(), at);
        }
        self.entries.push(Entry {
            doc,
            id: named.id.into(),
            path: named.path.into(),
            docs_path: docs_path.into(),
            title: named.title.into(),
            heading: named
                .heading
                .filter(|it| *it != named.title)
                .map(Into::into),
            aliases: named.aliases.iter().map(|it| (**it).into()).collect(),
        });
    }

    /// Removes the names of a document; they must be the same that were inserted.
    pub fn remove(&mut self, doc: u32, named: &Named<'_>) {
        let key = fold::title(without_extension(named.path));
        let Some(same_path) = self.by_path.get_mut(&*key) else {
            return;
        };
        let is_own = |it: &Entry| it.doc == doc;
        let found = same_path
            .iter()
            .position(|at| self.entries.get(*at as usize).is_some_and(is_own));
        let Some(place) = found else { return };
        let at = same_path.remove(place);
        let whole = composed(named.path);
        let others = same_path.iter().filter_map(|number| {
            let entry = self.entries.get(*number as usize)?;
            (composed(&entry.path) == whole).then_some((&entry.path, *number))
        });
        let heir = others.max().map(|it| it.1);
        if same_path.is_empty() {
            self.by_path.remove(&*key);
        }
        if self.at.get(&*whole) == Some(&at) {
            match heir {
                Some(heir) => drop(self.at.insert(whole.clone().into_boxed_str(), heir)),
                None => drop(self.at.remove(&*whole)),
            }
        }
        let folder = whole.rsplit_once('/').map_or("", |it| it.0);
        drop_from(&mut self.of_folder, folder, |it| *it == at);
        for name in names_of(named) {
            drop_from(&mut self.by_name, &name.0, |it| it.0 == at);
        }
        if let Some(entry) = self.entries.get_mut(at as usize) {
            entry.doc = u32::MAX;
        }
        self.nearest = OnceLock::new();
    }

    /// Renumbers the documents.
    pub fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        for entry in self.entries.iter_mut().filter(|it| it.doc != u32::MAX) {
            entry.doc = number(entry.doc);
        }
    }

    /// The number of removed documents: their entries stay.
    #[must_use]
    pub fn n_removed(&self) -> usize {
        self.entries.iter().filter(|it| it.doc == u32::MAX).count()
    }

    fn add(&mut self, name: &str, at: u32, kind: Kind) {
        if name.is_empty() {
            return;
        }
        if let Some(known) = self.by_name.get_mut(name) {
            // If several names are the same when folded, the best counts, and it came first.
            if known
                .last()
                .is_none_or(|last| last.0 != at || last.1 == Kind::Folder)
            {
                known.push((at, kind));
            }
            return;
        }
        self.by_name.insert(name.into(), vec![(at, kind)]);
    }

    /// What a link means. Paths are from the root of the project or the vault; `files` says what else is
    /// there.
    #[must_use]
    pub fn resolve(&self, from: &Origin<'_>, link: &Link, files: &Files) -> Meaning {
        let target = link.target.replace('\\', "/");
        let found = if link.is_wiki && !is_rooted(&target) {
            let at_root = || self.at_path(&joined("", &target)?);
            let found = self.by_name(from.path, &target).or_else(at_root);
            found.map(|it| Meaning::Document(it.doc))
        } else {
            None
        };
        found
            .or_else(|| self.by_places(from, link.is_wiki, &target, files))
            .or_else(|| {
                let is_bare = !link.is_wiki && !target.contains('/') && is_markdown(&target);
                let found = self.by_file(&target).filter(|_| is_bare)?;
                Some(Meaning::Document(found.doc))
            })
            .unwrap_or(Meaning::Missing)
    }

    /// The paths where a file that is not a document could be the target of a link; the caller checks
    /// which exist.
    #[must_use]
    pub fn doubtful(&self, from: &Origin<'_>, link: &Link) -> Vec<String> {
        let target = link.target.replace('\\', "/");
        let mut paths: Vec<String> = places(from, link.is_wiki, &target).flatten().collect();
        paths.retain(|path| !path.is_empty() && !self.at.contains_key(&*composed(path)));
        paths
    }

    /// Whether a document has this path, apart from its extension.
    #[must_use]
    pub fn has_document_named(&self, path: &str) -> bool {
        self.with_ending(&composed(path)).is_some()
    }

    fn by_places(
        &self,
        from: &Origin<'_>,
        is_wiki: bool,
        target: &str,
        files: &Files,
    ) -> Option<Meaning> {
        let is_folder = target.ends_with('/');
        let mut is_outside = true;
        for place in places(from, is_wiki, target) {
            let Some(path) = place else { continue };
            is_outside = false;
            let found = self.at_place(&path, is_folder, from.is_note, files);
            if found.is_some() {
                return found;
            }
        }
        is_outside.then_some(Meaning::Outside)
    }

    /// What is at a path: a document, then another file, then a document with another extension, then
    /// a folder.
    fn at_place(
        &self,
        path: &str,
        is_folder: bool,
        is_note: bool,
        files: &Files,
    ) -> Option<Meaning> {
        let document = |at: u32| {
            let entry = self.entries.get(at as usize)?;
            Some(Meaning::Document(entry.doc))
        };
        let whole = composed(path);
        if !is_folder {
            if let Some(&at) = self.at.get(&*whole) {
                return document(at);
            }
            if files.is_file(path) {
                return Some(Meaning::File);
            }
            if let Some(at) = self.with_ending(&whole) {
                return document(at);
            }
        }
        let of_folder = self.of_folder.get(&*whole).into_iter().flatten();
        let first = of_folder.min_by_key(|at| {
            let path = self.entries.get(**at as usize).map(|it| &*it.path);
            let file = path.map(|path| path.rsplit('/').next().unwrap_or(path).to_lowercase());
            // An `index.md` stands for its folder before a `README.md`.
            (file, path)
        });
        if let Some(&at) = first {
            return document(at);
        }
        if files.is_there(path) {
            return Some(Meaning::File);
        }
        if is_note && !is_folder {
            return self
                .in_other_letters(&whole)
                .map(|it| Meaning::Document(it.doc));
        }
        None
    }

    fn with_ending(&self, path: &str) -> Option<u32> {
        if is_markdown(path) {
            return None;
        }
        let mut endings = ["md", "markdown", "MD"].into_iter();
        endings.find_map(|it| self.at.get(&*format!("{path}.{it}")).copied())
    }

    fn in_other_letters(&self, path: &str) -> Option<&Entry> {
        let found = self.by_path.get(&*fold::title(without_extension(path)))?;
        let small = path.to_lowercase();
        let entries = found.iter().filter_map(|it| self.entries.get(*it as usize));
        let fitting = entries.filter(|it| {
            let own = composed(&it.path).to_lowercase();
            own == small || (!is_markdown(&small) && without_extension(&own) == small)
        });
        // The first by its path, whatever the order of insertion.
        fitting.min_by(|a, b| a.path.cmp(&b.path))
    }

    /// The one document whose file has this name, in any folder. Generic names such as `index.md` are
    /// not searched for.
    fn by_file(&self, target: &str) -> Option<&Entry> {
        let name = without_extension(target);
        if is_generic(name) {
            return None;
        }
        let key = fold::title(name);
        let mut found = None;
        for (at, _) in self.candidates(&key)? {
            let entry = self.entries.get(*at as usize)?;
            let file = entry.docs_path.rsplit('/').next().unwrap_or_default();
            if fold::title(file) != key {
                continue;
            }
            if found.is_some() {
                return None;
            }
            found = Some(entry);
        }
        found
    }

    /// The document at a path, with or without its extension: the exact one, then one that differs in
    /// case.
    fn at_path(&self, path: &str) -> Option<&Entry> {
        let stem = without_extension(path);
        let found = self.by_path.get(&*fold::title(stem))?;
        let entries = found.iter().filter_map(|it| self.entries.get(*it as usize));
        entries.min_by_key(|entry| {
            let exactness = if *entry.path == *path {
                0
            } else if without_extension(&entry.path) == stem {
                1
            } else {
                2
            };
            (exactness, entry.path.len(), &entry.path)
        })
    }

    fn by_name(&self, from_path: &str, target: &str) -> Option<&Entry> {
        let name = without_extension(target).trim_matches('/');
        let key = fold::title(name);
        let mut found = self.candidates(&key);
        if found.is_none()
            && let Some((before, _)) = key.rsplit_once('/')
            && let Some((at, _)) = before.rmatch_indices('/').next()
        {
            // With three segments or more: candidates by the last two, checked against all.
            found = self.candidates(&key[at + 1..]);
        }
        let is_path = key.contains('/');
        let fits = |it: &Entry, kind: Kind| {
            !(is_path && kind == Kind::File) || ends_with_path(&fold::title(&it.docs_path), &key)
        };
        let found = found.unwrap_or_default().iter();
        let found = found.filter_map(|(at, kind)| Some((self.entries.get(*at as usize)?, *kind)));
        let mut best: Option<((Rank, Reverse<usize>), &Entry)> = None;
        // Hundreds of files can have the same name, so cheap comparisons come first.
        for (it, kind) in found.filter(|(it, kind)| fits(it, *kind)) {
            let exact = it.exact(name);
            let rank = (exact.is_none(), exact.unwrap_or(kind));
            let order = (rank, Reverse(n_shared_folders(from_path, &it.path)));
            let is_better = best.is_none_or(|(least, entry)| {
                let shorter = || it.length().cmp(&entry.length());
                order.cmp(&least).then_with(shorter).is_lt()
            });
            if is_better {
                best = Some((order, it));
            }
        }
        best.map(|it| it.1)
    }

    fn candidates(&self, key: &str) -> Option<&[(u32, Kind)]> {
        self.by_name.get(key).map(Vec::as_slice)
    }

    /// The document whose name is most similar to a text, with the similarity from 0.6 to 1.
    #[must_use]
    pub fn nearest(&self, target: &str) -> Option<(u32, f64)> {
        self.near(target, None)
    }

    /// The document that a broken link may have meant, with the similarity from 0.6 to 1. A document
    /// near the path of the link is preferred to one with the same name elsewhere.
    #[must_use]
    pub fn nearest_to(&self, from: &Origin<'_>, link: &Link) -> Option<(u32, f64)> {
        let target = link.target.replace('\\', "/");
        let place = places(from, link.is_wiki, &target).flatten().next();
        let folder = match &place {
            Some(path) => path.rsplit_once('/').map_or("", |it| it.0),
            None => folder_of(from.path),
        };
        self.near(&target, Some(folder))
    }

    fn near(&self, target: &str, folder: Option<&str>) -> Option<(u32, f64)> {
        let nearest = self.nearest.get_or_init(|| Nearest::of(&self.entries));
        let (at, similarity) = nearest.find(target, folder, &self.entries)?;
        Some((self.entries.get(at as usize)?.doc, similarity))
    }
}

/// Every name of a document, folded, with its kind; the best first.
fn names_of(named: &Named<'_>) -> Vec<(String, Kind)> {
    let path = fold::title(without_extension(named.docs_path));
    let mut names = vec![
        (path.clone(), Kind::DocsPath),
        (fold::title(named.id), Kind::Id),
    ];
    let segments = path.rsplitn(3, '/').collect::<Vec<_>>();
    // A partial path is looked up by its last two segments, so that the many files called `index` are
    // not all compared.
    if let [file, folder, _] = segments[..] {
        names.push((format!("{folder}/{file}"), Kind::File));
    }
    if let [file, _, ..] = segments[..] {
        names.push((file.to_owned(), Kind::File));
    }
    if let Some((folder, file)) = path.rsplit_once('/')
        && INDEXES.contains(&file)
    {
        names.push((folder.to_owned(), Kind::Folder));
        if let Some((_, last)) = folder.rsplit_once('/') {
            names.push((last.to_owned(), Kind::Folder));
        }
    }
    for alias in named.aliases {
        names.push((fold::title(alias), Kind::Alias));
    }
    names.push((fold::title(named.title), Kind::Title));
    names.extend(named.heading.map(|it| (fold::title(it), Kind::Heading)));
    names
}

fn drop_from<T>(lists: &mut HashMap<Box<str>, Vec<T>>, key: &str, is_gone: impl Fn(&T) -> bool) {
    if let Some(list) = lists.get_mut(key) {
        list.retain(|it| !is_gone(it));
        if list.is_empty() {
            lists.remove(key);
        }
    }
}

impl Entry {
    /// The tie-breaker between equally good documents.
    fn length(&self) -> (usize, usize, &str) {
        let n_folders = self.path.bytes().filter(|it| *it == b'/').count();
        (n_folders, self.path.len(), &self.path)
    }

    /// The kind of an exactly spelled name of this document.
    fn exact(&self, name: &str) -> Option<Kind> {
        let docs_path = &*self.docs_path;
        if docs_path == name {
            Some(Kind::DocsPath)
        } else if *self.id == *name {
            Some(Kind::Id)
        } else if ends_with_path(docs_path, name) {
            Some(Kind::File)
        } else if self.aliases.iter().any(|it| **it == *name) {
            Some(Kind::Alias)
        } else if *self.title == *name {
            Some(Kind::Title)
        } else if self.heading.as_deref() == Some(name) {
            Some(Kind::Heading)
        } else {
            None
        }
    }
}
