//! Which files and folders a program may access: what the tool requests, the directive of its run
//! grants and the operator allows, all three.
//!
//! The kernel accepts folders and files, not patterns. A folder in which everything matches is given
//! as a whole, including files made later. Otherwise the files that match now are given one by one: a
//! file that is made later is not included, and the folder cannot be listed. Symbolic links are not
//! followed, so nothing is given under another name than the granted one.

use super::super::item_dirs::ItemProject;
use kenning_core::{Error, Result};
use kenning_items::grants::{Common, Glob};
use kenning_vault::Kind;
use std::path::{Path, PathBuf};

/// At most this many files are given one by one, and at most this many are looked at to find them.
const FILES_MAX: usize = 4_096;
const LOOKED_AT_MAX: usize = 200_000;
/// At most this many are shown.
const SHOWN_MAX: usize = 100;

/// What a program may read or write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// For the kernel.
    pub(super) paths: Vec<PathBuf>,
    /// Those of them that were made for this run.
    pub(super) made: Vec<PathBuf>,
    /// For people: files, and folders as `src/**`.
    pub(super) shown: Vec<String>,
    /// Whether one of them is in the project.
    pub(super) in_project: bool,
    /// Files that match but whose modes exclude the program's user.
    pub(super) n_shut: usize,
}

/// Where to look, and for whom.
pub(super) struct Looking<'a> {
    pub(super) project: Option<&'a ItemProject>,
    /// The program runs as an unprivileged user, who may access only what everybody may.
    pub(super) own_user: bool,
    /// Nothing is to be created.
    pub(super) dry_run: bool,
}

impl Places {
    /// As JSON, for responses: cut to a readable length.
    pub(super) fn to_json(&self) -> serde_json::Value {
        let mut shown: Vec<&str> = self.shown.iter().map(String::as_str).collect();
        let n_more = shown.len().saturating_sub(SHOWN_MAX);
        shown.truncate(SHOWN_MAX);
        let more = (n_more > 0).then(|| format!("and {n_more} more"));
        shown.extend(more.as_deref());
        serde_json::json!(shown)
    }

    /// Adds the other's paths.
    pub(super) fn join(&mut self, other: Self) {
        for (path, shown) in other.paths.into_iter().zip(other.shown) {
            self.add(path, shown, other.in_project);
        }
        self.n_shut += other.n_shut;
    }

    fn add(&mut self, path: PathBuf, shown: String, in_project: bool) {
        if !self.paths.contains(&path) {
            self.paths.push(path);
            self.shown.push(shown);
        }
        self.in_project |= in_project;
    }
}

impl Looking<'_> {
    /// A path of a folder in the project means everything in it.
    pub(super) fn expand_folders(&self, globs: Vec<Glob>) -> Result<Vec<Glob>> {
        let meant = globs.into_iter().map(|glob| {
            let is_folder = match (glob.is_path(), glob.is_absolute(), self.project) {
                (false, ..) | (true, false, None) => false,
                (true, true, _) => Path::new(&glob.base()).is_dir(),
                (true, false, Some(project)) => {
                    let found = project.dir.look_plain(&glob.base())?;
                    found.is_some_and(|it| it.kind == Kind::Folder)
                }
            };
            Ok(if is_folder { glob.beneath() } else { glob })
        });
        meant.collect()
    }

    /// What may be read.
    pub(super) fn read(&self, all: &[Common]) -> Result<Places> {
        let mut places = Places::default();
        let mut n_looked_at = 0;
        for common in all {
            if common.is_absolute() {
                self.outside(common, "read", &mut places)?;
            } else {
                self.inside(common, &mut places, &mut n_looked_at)?;
            }
        }
        Ok(places)
    }

    /// What may be written. Files that do not exist yet cannot be matched by patterns, so only files
    /// and folders are accepted here.
    pub(super) fn write(&self, all: &[Common]) -> Result<Places> {
        let mut places = Places::default();
        for common in all {
            if common.is_absolute() {
                self.outside(common, "write", &mut places)?;
                continue;
            }
            let Some(project) = self.project else {
                continue;
            };
            let glob = held(common, "write")?;
            let (base, is_folder) = (glob.base(), glob.folder().is_some());
            let found = project.dir.look_plain(&base)?;
            let path = project.dir.path().join(&base);
            match found.map(|it| it.kind) {
                Some(Kind::Folder) if is_folder => places.add(path, glob.to_string(), true),
                Some(Kind::File) if !is_folder => places.add(path, base, true),
                None if is_folder && self.dry_run => places.shown.push(glob.to_string()),
                None if is_folder => {
                    let path = project.dir.create_subdir(&base)?.path().to_owned();
                    places.made.push(path.clone());
                    places.add(path, glob.to_string(), true);
                }
                None => {}
                Some(_) => return Err(not_plain("write", &base)),
            }
        }
        Ok(places)
    }

    /// A file or a folder outside the project.
    fn outside(&self, common: &Common, verb: &str, places: &mut Places) -> Result<()> {
        let glob = held(common, verb)?;
        let path = PathBuf::from(glob.base());
        if path.exists() {
            places.add(path, glob.to_string(), false);
        }
        Ok(())
    }

    fn inside(&self, common: &Common, places: &mut Places, n_looked_at: &mut usize) -> Result<()> {
        let Some(project) = self.project else {
            return Ok(());
        };
        let base = common.base();
        let Some(found) = project.dir.look_plain(&base)? else {
            return Ok(());
        };
        let is_for_us = |is_for_everybody: bool| is_for_everybody || !self.own_user;
        let (root, path_of) = (project.dir.path(), |name: &str| glob_of(name));
        let mut folders = match found.kind {
            Kind::Folder => vec![base],
            Kind::File => {
                if path_of(&base).is_some_and(|it| common.fits(&it)) {
                    if is_for_us(found.is_for_everybody) {
                        places.add(root.join(&base), base, true);
                    } else {
                        places.n_shut += 1;
                    }
                }
                return Ok(());
            }
            // A symbolic link may lead to what was not granted.
            Kind::Link | Kind::Other => return Err(not_plain("read", &base)),
        };
        if self.own_user && !project.dir.is_passable_by_everybody() {
            places.n_shut += 1;
            return Ok(());
        }
        while let Some(folder) = folders.pop() {
            let Some(own) = path_of(&folder) else {
                continue;
            };
            if common.fits_all_beneath(&own) {
                let is_open = project.dir.look_plain(&folder)?;
                if is_for_us(is_open.is_some_and(|it| it.is_for_everybody)) {
                    places.add(root.join(&folder), own.beneath().to_string(), true);
                } else {
                    places.n_shut += 1;
                }
                continue;
            }
            // A folder that cannot be listed has nothing that the program could read.
            let Ok(entries) = project.dir.list_plain(&folder) else {
                places.n_shut += 1;
                continue;
            };
            for entry in entries {
                *n_looked_at += 1;
                if *n_looked_at > LOOKED_AT_MAX || places.paths.len() > FILES_MAX {
                    return Err(Error::too_large(format!(
                        "`permissions.read`: `{common}` matches too many files"
                    ))
                    .hint(format!(
                        "name folders, such as `docs/**`, or fewer than {FILES_MAX} files"
                    )));
                }
                let name = match folder.as_str() {
                    "" => entry.name,
                    folder => format!("{folder}/{}", entry.name),
                };
                let Some(path) = path_of(&name) else {
                    continue;
                };
                match entry.kind {
                    Kind::Folder if common.may_fit_beneath(&path) => folders.push(name),
                    Kind::File if common.fits(&path) => {
                        if is_for_us(entry.is_for_everybody) {
                            places.add(root.join(&name), name, true);
                        } else {
                            places.n_shut += 1;
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// A path as a pattern. `None` for a name that no pattern can express.
fn glob_of(path: &str) -> Option<Glob> {
    Glob::parse(path).ok()
}

/// The file or folder to which the kernel can restrict a program.
fn held<'a>(common: &'a Common, verb: &str) -> Result<&'a Glob> {
    let glob = common.single();
    let glob = glob.filter(|glob| glob.is_path() || glob.folder().is_some());
    glob.ok_or_else(|| {
        let base = common.base();
        let folder = match base.as_str() {
            "" => "**".to_owned(),
            base => format!("{base}/**"),
        };
        Error::invalid(format!(
            "`permissions.{verb}`: a program cannot be restricted to the pattern `{common}`"
        ))
        .hint(format!("request a file, or a folder as `{folder}`"))
    })
}

fn not_plain(verb: &str, name: &str) -> Error {
    Error::denied(format!(
        "`permissions.{verb}`: `{name}` is not a file or folder, or is a symbolic link"
    ))
    .hint("name the target of the link")
}
