//! What becomes of the notes of a vault when one of them gets another path.
//!
//! Every link of every note is resolved before and after. Where the meaning differs, the link is rewritten in its
//! own style, and what is rewritten is resolved once more: so either every link means what it meant, or nothing is
//! changed and the error names the link.

use super::library::{Library, Scope, as_link, origin};
use super::{Doc, ReadNote};
use crate::Kg;
use kenning_core::{Code, Error, Hash, Result};
use kenning_graph::{Link, Meaning, Origin, relative_path, relink, root_path, stem_of_path};
use kenning_kernel::{Caller, NOTE_BYTES_MAX};
use kenning_vault::Dir;
use std::sync::Arc;

/// What has to be written so that a note has another path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoteMove {
    /// The text of the note at its new path, and what it was.
    pub text: (String, String),
    /// Other notes, with their texts before and after.
    pub others: Vec<(String, String, String)>,
    /// How many links are rewritten.
    pub n_links: usize,
}

/// Both states of a vault.
struct States {
    before: Arc<Library>,
    after: Library,
    from: String,
    to: String,
}

/// What a link means, by a name that is the same in both states.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Note(String),
    /// A file that is no document, by its path.
    File(String),
    Nothing,
}

impl Kg {
    /// What has to be written so that a note of the vault has another path and every link means what it meant.
    ///
    /// # Errors
    /// There is no such note, a link cannot be rewritten, and those of the store and the vault.
    pub fn plan_note_move(
        &self,
        caller: &Caller,
        dir: &Dir,
        from: &str,
        to: &str,
    ) -> Result<NoteMove> {
        self.generate_vault(caller)?;
        let space = &caller.principal.space;
        let before = self
            .kernel
            .log()
            .read(space, |tx| self.vault_library(space, tx))?;
        let key = format!("vault:{from}");
        if before.number_of(&key).is_none() {
            return Err(Error::not_found("note", from).hint("`note_list` lists them"));
        }
        let text = read(dir, from)?;
        let mut moved = ReadNote::of(&format!("vault:{to}"), &text).into_card();
        let cards = before.docs.iter().map(|doc| {
            if doc.path == key {
                moved.node = doc.card.node;
                (format!("vault:{to}"), moved.clone())
            } else {
                (doc.path.clone(), doc.card.clone())
            }
        });
        let after = Library::of(cards.collect(), &Scope::vault(), Arc::clone(&before.places));
        let states = States {
            before,
            after,
            from: from.to_owned(),
            to: to.to_owned(),
        };
        states.plan(dir, text)
    }
}

impl States {
    fn plan(&self, dir: &Dir, text: String) -> Result<NoteMove> {
        let mut plan = NoteMove::default();
        for doc in &self.before.docs {
            let path = super::path_in_vault(doc);
            let is_moved = path == self.from;
            if !is_moved && !self.has_changed_link(dir, doc) {
                continue;
            }
            let old = match is_moved {
                true => text.clone(),
                false => read(dir, path)?,
            };
            // Only what was read is known to link as its card says.
            if Hash::of(old.as_bytes()) != doc.card.content {
                return Err(
                    Error::conflict(format!("`{path}` was changed meanwhile")).hint("call again")
                );
            }
            let (new, n_links) = self.rewritten(dir, path, &old)?;
            plan.n_links += n_links;
            if is_moved {
                plan.text = (old, new);
            } else if new != old {
                plan.others.push((path.to_owned(), old, new));
            }
        }
        Ok(plan)
    }

    fn has_changed_link(&self, dir: &Dir, doc: &Doc) -> bool {
        let from = origin(doc);
        let links = doc.card.links.iter().filter(|it| !it.is_lost_within());
        links.map(as_link).any(|link| {
            let (meant, means) = (self.meant(&from, &link), self.means(dir, &from, &link));
            meant != Target::Nothing && (meant != means || self.names_old_file(&link, &meant))
        })
    }

    /// Whether a link names the moved note by the name that its file had. Here it may still be found by its
    /// heading or its title; programs for vaults know only names of files.
    fn names_old_file(&self, link: &Link, meant: &Target) -> bool {
        let is_moved = matches!(meant, Target::Note(path) if *path == self.to);
        let stem = |it: &str| stem_of_path(it).to_lowercase();
        is_moved && stem(&link.target) == stem(&self.from) && stem(&self.from) != stem(&self.to)
    }

    /// What a link of a note means now, by the names that will be.
    fn meant(&self, from: &Origin<'_>, link: &Link) -> Target {
        match self
            .before
            .names
            .resolve(from, link, &self.before.places.vault)
        {
            Meaning::Document(at) => {
                let path = super::path_in_vault(self.before.doc(at));
                Target::Note(if path == self.from { &self.to } else { path }.to_owned())
            }
            Meaning::File => {
                let is_there = |it: &String| self.before.places.vault.is_there(it);
                let found = places_of_file(from.path, &link.target).find(is_there);
                found.map_or(Target::Nothing, Target::File)
            }
            Meaning::Outside | Meaning::Missing => Target::Nothing,
        }
    }

    /// What it will mean.
    fn means(&self, dir: &Dir, from: &Origin<'_>, link: &Link) -> Target {
        match self
            .after
            .names
            .resolve(from, link, &self.after.places.vault)
        {
            Meaning::Document(at) => {
                Target::Note(super::path_in_vault(self.after.doc(at)).to_owned())
            }
            Meaning::File | Meaning::Missing => {
                let mut places = places_of_file(from.path, &link.target);
                let is_there = |it: &String| {
                    self.after.places.vault.is_there(it) || dir.exists(it).unwrap_or(false)
                };
                places.find(is_there).map_or(Target::Nothing, Target::File)
            }
            Meaning::Outside => Target::Nothing,
        }
    }

    /// The text of a note in which every link means what it meant, and how many links are others.
    fn rewritten(&self, dir: &Dir, path: &str, old: &str) -> Result<(String, usize)> {
        let here = match path == self.from {
            true => self.to.as_str(),
            false => path,
        };
        let (was, is) = (origin_of(path), origin_of(here));
        let mut expected: Vec<Target> = Vec::new();
        let mut n_links = 0;
        let mut lost: Option<Link> = None;
        let mut decide = |link: &Link| {
            let meant = self.meant(&was, link);
            let is_same = self.means(dir, &is, link) == meant && !self.names_old_file(link, &meant);
            if meant == Target::Nothing || is_same {
                return None;
            }
            let fits = |it: &String| {
                let link = Link {
                    target: it.clone(),
                    ..link.clone()
                };
                self.means(dir, &is, &link) == meant
            };
            match spellings(link, here, &meant).into_iter().find(fits) {
                Some(new) => {
                    n_links += 1;
                    Some(new)
                }
                None => {
                    lost.get_or_insert_with(|| link.clone());
                    None
                }
            }
        };
        let new = relink(old, &mut decide).map_err(|link| unwritable(path, &link))?;
        if let Some(link) = lost {
            return Err(unwritable(path, &link));
        }
        // What was written is read again: nothing is taken on trust.
        expected.extend(links_of(old).iter().map(|it| self.meant(&was, it)));
        let links = links_of(&new);
        let is_kept = links.len() == expected.len();
        let wrong = links.iter().zip(&expected).find(|(link, meant)| {
            **meant != Target::Nothing && self.means(dir, &is, link) != **meant
        });
        match wrong {
            Some((link, _)) => Err(unwritable(path, link)),
            None if !is_kept => Err(Error::conflict(format!(
                "the links of `{path}` cannot be rewritten"
            ))
            .hint("quote the links in its frontmatter, then call again; nothing was changed")),
            None => Ok((new, n_links)),
        }
    }
}

/// Where a file may be that a link of a note names: from the note's folder, or from the root of the vault unless
/// the link says that it begins in its folder.
fn places_of_file(from: &str, target: &str) -> impl Iterator<Item = String> + use<> {
    let is_from_here = target.starts_with("./") || target.starts_with("../");
    let from_root = match is_from_here {
        true => None,
        false => root_path("", target),
    };
    root_path(from, target).into_iter().chain(from_root)
}

fn links_of(text: &str) -> Vec<Link> {
    let document = kenning_graph::parse(text);
    document.links.into_iter().chain(document.others).collect()
}

fn origin_of(path: &str) -> Origin<'_> {
    Origin {
        path,
        docs_root: "",
        is_note: true,
    }
}

/// How a link could name its target, the form nearest to how it was written first.
fn spellings(link: &Link, from: &str, meant: &Target) -> Vec<String> {
    let (path, is_note) = match meant {
        Target::Note(path) => (path.as_str(), true),
        Target::File(path) => (path.as_str(), false),
        Target::Nothing => return Vec::new(),
    };
    let without = |it: &str| match it.strip_suffix(".md") {
        Some(stem) if is_note => stem.to_owned(),
        _ => it.to_owned(),
    };
    let has_ending = link.target.to_lowercase().ends_with(".md") || !is_note;
    let as_before = |it: &str| match has_ending {
        true => it.to_owned(),
        false => without(it),
    };
    let relative = relative_path(from, path);
    let dotted = match relative.starts_with("../") {
        true => relative.clone(),
        false => format!("./{relative}"),
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    let (rooted, whole) = (format!("/{path}"), path.to_owned());
    let is_relative = link.target.starts_with("./") || link.target.starts_with("../");
    let forms: Vec<String> = if link.target.starts_with('/') {
        vec![rooted]
    } else if is_relative {
        vec![dotted, relative, whole]
    } else if link.is_wiki && !link.target.contains('/') {
        vec![name.to_owned(), whole, dotted]
    } else if link.is_wiki {
        vec![whole, dotted]
    } else {
        vec![relative, whole, dotted, rooted]
    };
    forms.iter().map(|it| as_before(it)).collect()
}

fn unwritable(path: &str, link: &Link) -> Error {
    let Link { target, line, .. } = link;
    Error::conflict(format!(
        "the link to `{target}` in line {line} of `{path}` cannot be rewritten"
    ))
    .hint("change that link by hand, then call again; nothing was changed")
}

fn read(dir: &Dir, name: &str) -> Result<String> {
    let bytes = dir
        .read(name, NOTE_BYTES_MAX)
        .map_err(|error| match error.code {
            Code::NotFound => Error::not_found("note", name).because(error),
            _ => error,
        })?;
    String::from_utf8(bytes).map_err(|_| {
        Error::conflict(format!("`{name}` is not UTF-8 text")).hint("convert it to UTF-8")
    })
}
