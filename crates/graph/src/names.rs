//! What names lead to which document.
//!
//! Every name of a document is kept once, folded: small letters, one form of each character, `-`, `_`
//! and space alike. A lookup finds all that could be meant by the folded name and then prefers the exact
//! one, so that spelling decides only where it must.

mod nearest;

use crate::Link;
use crate::fold::folded;
use crate::target::without_extension;
use nearest::Nearest;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::OnceLock;

/// What a document is called.
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

/// The names of all documents.
#[derive(Debug, Default)]
pub struct Names {
    entries: Vec<Entry>,
    /// Folded name to the entries that have it and what it is of them.
    by_name: HashMap<Box<str>, Vec<(u32, Kind)>>,
    /// Folded path from the project's root, without its ending.
    by_path: HashMap<Box<str>, Vec<u32>>,
    nearest: OnceLock<Nearest>,
}

#[derive(Debug)]
struct Entry {
    doc: u32,
    id: Box<str>,
    path: Box<str>,
    /// Without its ending.
    docs_path: Box<str>,
    title: Box<str>,
    heading: Option<Box<str>>,
    aliases: Box<[Box<str>]>,
}

/// What a name is of a document, the best first.
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

/// Whether a name is spelled otherwise, and what it is: the least is the best.
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
        let folded_docs_path = folded(docs_path);
        let segments = folded_docs_path.rsplitn(3, '/').collect::<Vec<_>>();
        self.add(&folded_docs_path, at, Kind::DocsPath);
        self.add(&folded(named.id), at, Kind::Id);
        // A partial path is looked up by its last two segments, so that the many files called `index`
        // are not all compared.
        if let [file, folder, _] = segments[..] {
            self.add(&format!("{folder}/{file}"), at, Kind::File);
        }
        if let [file, _, ..] = segments[..] {
            self.add(file, at, Kind::File);
        }
        if let Some((folder, file)) = folded_docs_path.rsplit_once('/')
            && INDEXES.contains(&file)
        {
            self.add(folder, at, Kind::Folder);
            if let Some((_, last)) = folder.rsplit_once('/') {
                self.add(last, at, Kind::Folder);
            }
        }
        for alias in named.aliases {
            self.add(&folded(alias), at, Kind::Alias);
        }
        self.add(&folded(named.title), at, Kind::Title);
        if let Some(heading) = named.heading {
            self.add(&folded(heading), at, Kind::Heading);
        }
        let key = folded(path).into_boxed_str();
        self.by_path.entry(key).or_default().push(at);
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

    fn add(&mut self, name: &str, at: u32, kind: Kind) {
        if name.is_empty() {
            return;
        }
        if let Some(known) = self.by_name.get_mut(name) {
            // Of several names that fold alike the best counts, and it came first.
            if known
                .last()
                .is_none_or(|it| it.0 != at || it.1 == Kind::Folder)
            {
                known.push((at, kind));
            }
            return;
        }
        self.by_name.insert(name.into(), vec![(at, kind)]);
    }

    /// The document that a link in the file at `from_path` means. Both paths are from the project's root.
    #[must_use]
    pub fn resolve(&self, from_path: &str, from_docs_root: &str, link: &Link) -> Option<u32> {
        let target = link.target.replace('\\', "/");
        let is_relative = target.starts_with("./") || target.starts_with("../");
        let found = if link.is_wiki && !is_relative && !target.starts_with('/') {
            // A vault's root may be the project's.
            let at_root = || self.at_path(&joined("", &target)?);
            self.by_name(from_path, &target).or_else(at_root)
        } else {
            self.by_path(from_path, from_docs_root, &target)
                .or_else(|| self.by_name(from_path, without_dots(&target)))
        };
        found.map(|it| it.doc)
    }

    fn by_path(&self, from_path: &str, docs_root: &str, target: &str) -> Option<&Entry> {
        let folder = from_path.rsplit_once('/').map_or("", |it| it.0);
        let mut bases = vec!["", docs_root];
        if !target.starts_with('/') {
            bases.insert(0, folder);
        }
        bases.iter().find_map(|base| {
            let path = joined(base, target)?;
            self.at_path(&path).or_else(|| {
                let mut indexes = INDEXES.iter();
                indexes.find_map(|it| self.at_path(joined(&path, it)?.as_str()))
            })
        })
    }

    /// The document at a path, with or without its ending: the exact one, then one in other letters.
    fn at_path(&self, path: &str) -> Option<&Entry> {
        let stem = without_extension(path);
        let found = self.by_path.get(&*folded(stem))?;
        let entries = found.iter().filter_map(|it| self.entries.get(*it as usize));
        entries.min_by_key(|it| {
            let exactness = if *it.path == *path {
                0
            } else if without_extension(&it.path) == stem {
                1
            } else {
                2
            };
            (exactness, it.path.len(), &it.path)
        })
    }

    fn by_name(&self, from_path: &str, target: &str) -> Option<&Entry> {
        let name = without_extension(target).trim_matches('/');
        let key = folded(name);
        let mut found = self.candidates(&key);
        if found.is_none()
            && let Some((before, _)) = key.rsplit_once('/')
            && let Some((at, _)) = before.rmatch_indices('/').next()
        {
            // Three segments or more: those that end in the last two, if they end in all.
            found = self.candidates(&key[at + 1..]);
        }
        let is_path = key.contains('/');
        let fits = |it: &Entry, kind: Kind| {
            !(is_path && kind == Kind::File) || ends_with_path(&folded(&it.docs_path), &key)
        };
        let found = found.unwrap_or_default().iter();
        let found = found.filter_map(|(at, kind)| Some((self.entries.get(*at as usize)?, *kind)));
        let mut best: Option<((Rank, Reverse<usize>), &Entry)> = None;
        // Hundreds of files are called alike, so what is cheap to compare is compared first.
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

    /// The document whose name is most like a target that leads nowhere, and how like it is: from 0.6 to 1.
    #[must_use]
    pub fn nearest(&self, target: &str) -> Option<(u32, f64)> {
        let nearest = self.nearest.get_or_init(|| Nearest::of(&self.entries));
        let (at, similarity) = nearest.find(target)?;
        Some((self.entries.get(at as usize)?.doc, similarity))
    }
}

impl Entry {
    /// What decides between documents that are equally near.
    fn length(&self) -> (usize, usize, &str) {
        let n_folders = self.path.bytes().filter(|it| *it == b'/').count();
        (n_folders, self.path.len(), &self.path)
    }

    /// What an exactly spelled name is of this document.
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

/// Whether a path ends so at the boundary of a folder.
fn ends_with_path(path: &str, end: &str) -> bool {
    let before = path.strip_suffix(end);
    before.is_some_and(|it| it.is_empty() || it.ends_with('/'))
}

/// A path from a folder, or nothing if it leads above the root.
fn joined(base: &str, path: &str) -> Option<String> {
    let mut out: Vec<&str> = Vec::new();
    for segment in base.split('/').chain(path.split('/')) {
        match segment {
            "" | "." => {}
            ".." => {
                out.pop()?;
            }
            it => out.push(it),
        }
    }
    Some(out.join("/"))
}

fn without_dots(path: &str) -> &str {
    let mut rest = path;
    while let Some(it) = ["./", "../", "/"]
        .iter()
        .find_map(|it| rest.strip_prefix(it))
    {
        rest = it;
    }
    rest
}

/// How many folders two paths begin with in common.
fn n_shared_folders(a: &str, b: &str) -> usize {
    let pairs = a.bytes().zip(b.bytes());
    let same = pairs.take_while(|it| it.0 == it.1);
    same.filter(|it| it.0 == b'/').count()
}
