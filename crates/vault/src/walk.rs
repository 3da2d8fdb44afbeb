//! Lists a whole tree, without files that are ignored (`.gitignore`).
//!
//! Only names and stamps: contents are read by name, beneath the root, so whatever is swapped while the
//! tree is walked, nothing outside is read. Links are not followed.

use crate::dir::Dir;
use crate::name::{Name, is_temp};
use crate::plain::Kind;
use ignore::{DirEntry, WalkBuilder};
use kenning_core::{Code, Error, Result};
use std::collections::BTreeSet;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Tells whether a file was touched, but not whether its content changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Size of the content.
    pub size_bytes: u64,
    /// When the content was changed, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// When anything about the file was changed; programs cannot set it.
    pub changed_ns: i64,
    /// Which file.
    pub inode: u64,
}

impl Stamp {
    /// When the content was changed, in milliseconds since 1970.
    pub fn modified_ms(&self) -> u64 {
        u64::try_from(self.modified_ns / 1_000_000).unwrap_or(0)
    }
}

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name beneath the root.
    pub name: String,
    /// How it was when the tree was walked.
    pub stamp: Stamp,
}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: String,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Which file it is.
    pub inode: u64,
}

/// What a walk found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// In the order of their names.
    pub files: Vec<Found>,
    /// Names, as far as they can be shown, and why they were left out.
    pub faults: Vec<(String, String)>,
}

impl Dir {
    /// The regular files beneath a folder that `wants` asks for, by their names beneath this
    /// directory.
    ///
    /// Left out are hidden files, folders that `skips` names, links, and what a `.gitignore` or
    /// `.ignore` in this directory or beneath it excludes, in a repository or not.
    pub fn walk(
        &self,
        folder: &str,
        skips: &[&str],
        wants: &dyn Fn(&str) -> bool,
    ) -> Result<Walked> {
        let folder = Name::parse(if folder.is_empty() { "." } else { folder })?
            .as_str()
            .to_owned();
        if !folder.is_empty() && !self.metadata(&folder)?.is_dir {
            return Err(Error::invalid(format!("`{folder}` is not a directory")));
        }
        let root = self.path().to_owned();
        let (prefix, skips) = (
            folder.clone(),
            skips.iter().map(|&it| it.to_owned()).collect::<Vec<_>>(),
        );
        let beneath = root.clone();
        let mut builder = WalkBuilder::new(&root);
        builder
            .follow_links(false)
            .require_git(false)
            .git_global(false)
            // Ignore files above the root are outside our directory.
            .parents(false)
            .filter_entry(move |entry| {
                let Some(name) = name_of(entry, &beneath) else {
                    return true;
                };
                let last = name.rsplit('/').next().unwrap_or_default();
                !skips.iter().any(|it| it == last) && is_on_the_way(name, &prefix)
            });
        let mut walked = Walked::default();
        for entry in builder.build() {
            match entry {
                Ok(entry) => look_at(&entry, &root, &folder, wants, &mut walked),
                Err(error) => walked
                    .faults
                    .push((String::new(), without_root(&error, &root))),
            }
        }
        walked.files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(walked)
    }

    /// Those of these names that [`Dir::walk`] would find, with their stamps. Where no file says which
    /// others are left out, no folder is read.
    pub fn find(
        &self,
        names: &BTreeSet<String>,
        skips: &[&str],
        wants: &dyn Fn(&str) -> bool,
    ) -> Result<Walked> {
        let mut walked = Walked::default();
        for name in names {
            let is_left_out = |it: &str| it.starts_with('.') || skips.contains(&it);
            if !wants(name) || name.split('/').any(is_left_out) {
                continue;
            }
            if let Err(error) = Name::parse_file(name) {
                walked.faults.push((name.clone(), error.to_string()));
                continue;
            }
            if self.has_rules(name)? {
                let all = self.walk("", skips, wants)?;
                let is_asked = |it: &String| names.contains(it);
                return Ok(Walked {
                    files: keep(all.files, |it| is_asked(&it.name)),
                    faults: keep(all.faults, |it| is_asked(&it.0)),
                });
            }
            let found = self.look_plain(name)?;
            if found.is_none_or(|it| it.kind != Kind::File) {
                continue;
            }
            match self.stamp(name) {
                Ok(stamp) => walked.files.push(Found {
                    name: name.clone(),
                    stamp,
                }),
                // It was removed since.
                Err(error) if error.code == Code::NotFound => {}
                Err(error) => walked.faults.push((name.clone(), error.to_string())),
            }
        }
        Ok(walked)
    }

    /// Whether a folder above a name says which files are left out of a walk.
    fn has_rules(&self, name: &str) -> Result<bool> {
        let mut folder = Some(name);
        while let Some(name) = folder {
            folder = name.rsplit_once('/').map(|it| it.0);
            let above = folder.map_or(String::new(), |it| format!("{it}/"));
            for rules in [".gitignore", ".ignore", ".git/info/exclude"] {
                if self.look_plain(&format!("{above}{rules}"))?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The files and folders in a folder, without a look at any of them. Hidden ones are left out.
    pub fn names(&self, folder: &str) -> Result<Vec<Listed>> {
        let error = |cause: std::io::Error| crate::fault::of("directory", folder, cause);
        let plain = Name::parse(if folder.is_empty() { "." } else { folder })?;
        let dir = self.root().open_dir(plain.as_path()).map_err(error)?;
        let mut names = Vec::new();
        for entry in dir.entries().map_err(error)? {
            let entry = entry.map_err(error)?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if !name.starts_with('.') {
                names.push(Listed {
                    name,
                    is_folder: entry.file_type().is_ok_and(|it| it.is_dir()),
                    inode: entry.ino(),
                });
            }
        }
        Ok(names)
    }

    /// When something was last added to these folders or taken out of them, in nanoseconds since
    /// 1970; zero for one that is not there. The empty name is this directory.
    pub fn folder_times(&self, folders: &[String]) -> Vec<i64> {
        let time = |folder: &String| {
            let name = if folder.is_empty() { "." } else { folder };
            let found = self.root().metadata(name).ok().filter(|it| it.is_dir())?;
            let since = found.modified().ok()?.into_std().duration_since(UNIX_EPOCH);
            i64::try_from(since.ok()?.as_nanos()).ok()
        };
        folders.iter().map(|it| time(it).unwrap_or(0)).collect()
    }

    /// How a file is now.
    pub fn stamp(&self, name: &str) -> Result<Stamp> {
        let file = self.open_read(name)?;
        let metadata = file
            .metadata()
            .map_err(|cause| crate::fault::of("file", name, cause))?;
        Ok(stamp(&metadata))
    }
}

fn look_at(
    entry: &DirEntry,
    root: &Path,
    folder: &str,
    wants: &dyn Fn(&str) -> bool,
    walked: &mut Walked,
) {
    if !entry.file_type().is_some_and(|it| it.is_file()) {
        return;
    }
    let Ok(relative) = entry.path().strip_prefix(root) else {
        return;
    };
    let Some(name) = relative.to_str() else {
        let shown = relative.to_string_lossy().into_owned();
        if wants(&shown) {
            let why = "its name is not UTF-8".to_owned();
            walked.faults.push((shown, why));
        }
        return;
    };
    if is_temp(name) || !is_beneath(name, folder) || !wants(name) {
        return;
    }
    if let Err(error) = Name::parse_file(name) {
        walked.faults.push((name.to_owned(), error.to_string()));
        return;
    }
    match entry.metadata() {
        Ok(metadata) => walked.files.push(Found {
            name: name.to_owned(),
            stamp: stamp(&metadata),
        }),
        // It was removed since.
        Err(error)
            if error
                .io_error()
                .is_some_and(|it| it.kind() == std::io::ErrorKind::NotFound) => {}
        Err(error) => {
            let why = without_root(&error, root);
            walked.faults.push((name.to_owned(), why));
        }
    }
}

fn keep<T>(mut all: Vec<T>, is_kept: impl Fn(&T) -> bool) -> Vec<T> {
    all.retain(is_kept);
    all
}

/// The path of the root is not for callers.
fn without_root(error: &ignore::Error, root: &Path) -> String {
    let root = format!("{}/", root.display());
    error.to_string().replace(&root, "")
}

fn stamp(metadata: &std::fs::Metadata) -> Stamp {
    let ns = |seconds: i64, ns: i64| seconds.saturating_mul(1_000_000_000).saturating_add(ns);
    Stamp {
        size_bytes: metadata.len(),
        modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
        changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
    }
}

fn name_of<'a>(entry: &'a DirEntry, root: &Path) -> Option<&'a str> {
    entry.path().strip_prefix(root).ok()?.to_str()
}

fn is_beneath(name: &str, folder: &str) -> bool {
    folder.is_empty()
        || name
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'))
}

/// Whether the folder can be reached through this name, or this is in the folder.
fn is_on_the_way(name: &str, folder: &str) -> bool {
    name.is_empty() || name == folder || is_beneath(name, folder) || is_beneath(folder, name)
}
