//! Notes as people edit them: listed with their folders, changed in part, renamed, moved, thrown away, restored.

use crate::Koi;
use kenning_core::{Code, Error, Kind, Result};
use kenning_graph::{Uneditable, append, replace_section, section, set_field};
use kenning_kernel::files::Writing;
use kenning_kernel::{Caller, FileEdit, Scope, files};
use kenning_kg::{NoteRules, note_names};
use kenning_store::{Node, ReadTx};
use kenning_vault::{Dir, Name};
use serde_json::{Map, json};
use std::collections::BTreeMap;

/// Where deleted notes go, as in Obsidian.
const TRASH: &str = ".trash";

/// Characters that a link cannot name.
const UNLINKABLE: [char; 6] = ['[', ']', '#', '^', '|', '\\'];

/// What to write into a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoteEdit {
    /// A note that must not be there yet.
    Create(String),
    /// The whole text, whatever was there.
    Overwrite(String),
    /// More at the end; the note is made if there is none.
    Append(String),
    /// What stands under a heading.
    Section {
        /// The heading's text.
        heading: String,
        /// What stands under it from now on.
        content: String,
    },
    /// A field before the text.
    Field {
        /// The field.
        key: String,
        /// Its value as YAML; nothing removes the field.
        value: Option<String>,
    },
}

/// A folder of the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFolder {
    /// Its path in the vault.
    pub path: String,
    /// How many notes are beneath it.
    pub n_notes: usize,
}

/// What is in a folder of the vault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedVault {
    /// The folders, by their paths.
    pub folders: Vec<ListedFolder>,
    /// The notes, by their paths.
    pub notes: Vec<String>,
}

/// What became of a note that got another path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedNote {
    /// Its path now.
    pub path: String,
    /// Notes whose links were rewritten, without itself.
    pub rewritten: Vec<String>,
    /// How many links were rewritten.
    pub n_links: usize,
}

/// What became of a note that was thrown away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedNote {
    /// Where it is now.
    pub trash: String,
    /// Notes that still link to it.
    pub linking: Vec<String>,
}

/// A state of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteRevision {
    /// Its number, from 1: the oldest.
    pub n: usize,
    /// When it came to be, in milliseconds since 1970.
    pub at_ms: u64,
    /// The path that it had.
    pub path: String,
    /// The text.
    pub text: String,
}

impl Koi {
    /// The folders and notes of a folder, or of everything beneath it. The empty name is the vault.
    ///
    /// # Errors
    /// There is no such folder, and those of the vault.
    pub fn list_vault(&self, caller: &Caller, folder: &str, deep: bool) -> Result<ListedVault> {
        caller.principal.require(Scope::Read)?;
        let dir = self.kernel.vault().open(&caller.principal.space)?;
        let name = Name::parse(if folder.trim().is_empty() {
            "."
        } else {
            folder
        })?;
        let folder = super::notes::spelled_as_there(&dir, name.as_str());
        if !folder.is_empty() {
            NoteRules::of(&dir).check(&dir, &folder)?;
            let is_there = dir.metadata(&folder).is_ok_and(|it| it.is_dir);
            if !is_there {
                return Err(Error::not_found("folder", &folder)
                    .hint("leave `folder` out to list the whole vault"));
            }
        }
        let prefix = match folder.as_str() {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        let mut listed = ListedVault::default();
        let mut folders: BTreeMap<String, usize> = BTreeMap::new();
        for note in note_names(&dir)? {
            let Some(below) = note.strip_prefix(&prefix) else {
                continue;
            };
            let mut path = prefix.clone();
            let mut parts = below.split('/').peekable();
            let mut depth = 0;
            while let Some(part) = parts.next() {
                if parts.peek().is_none() {
                    break;
                }
                path.push_str(part);
                if deep || depth == 0 {
                    *folders.entry(path.clone()).or_default() += 1;
                }
                path.push('/');
                depth += 1;
            }
            if deep || depth == 0 {
                listed.notes.push(note);
            }
        }
        let folders = folders.into_iter();
        listed.folders = folders
            .map(|(path, n_notes)| ListedFolder { path, n_notes })
            .collect();
        Ok(listed)
    }

    /// The path of the note that is meant: at this path, or the only one with this name.
    ///
    /// # Errors
    /// The path leads outside or is no note's, and those of the vault.
    pub fn find_note(&self, caller: &Caller, path: &str) -> Result<String> {
        caller.principal.require(Scope::Read)?;
        let dir = self.kernel.vault().open(&caller.principal.space)?;
        for path in [path.to_owned(), super::notes::with_extension(path)] {
            let name = self.note(&dir, &path)?.name;
            if dir.metadata(&name).is_ok_and(|it| it.is_file) {
                return Ok(name);
            }
        }
        match super::notes::same_name(&dir, path).as_slice() {
            [one] => Ok(one.clone()),
            _ => Ok(path.to_owned()),
        }
    }

    /// What stands under a heading of a note.
    ///
    /// # Errors
    /// There is no such note or heading.
    pub fn read_note_section(&self, caller: &Caller, path: &str, heading: &str) -> Result<String> {
        let text = self.read_note(caller, path)?;
        let found = section(&text, heading).map_err(|why| uneditable(path, heading, why))?;
        Ok(found.trim_matches('\n').to_owned())
    }

    /// Changes a note, and returns the path it has.
    ///
    /// # Errors
    /// The note or the heading is not there, or the note is there and must not be; those of the vault.
    pub fn edit_note(&self, caller: &Caller, path: &str, edit: NoteEdit) -> Result<String> {
        caller.principal.require(Scope::Write)?;
        let space = &caller.principal.space;
        let dir = self.kernel.vault().open(space)?;
        let path = super::notes::with_extension(path);
        let note = self.note(&dir, &path)?;
        let name = note.name.clone();
        let writing = |before: Option<&str>| {
            let missing = || super::notes::missing(&dir, &path);
            let text = match (edit, before) {
                (NoteEdit::Create(_), Some(_)) => {
                    return Err(Error::conflict(format!("`{path}` exists")).hint(
                        "`mode`: `append` adds to it, `section` replaces a part, `overwrite` replaces it",
                    ));
                }
                (NoteEdit::Create(text) | NoteEdit::Overwrite(text), _) => text,
                (NoteEdit::Append(more), before) => append(before.unwrap_or_default(), &more),
                (NoteEdit::Section { .. } | NoteEdit::Field { .. }, None) => return Err(missing()),
                (NoteEdit::Section { heading, content }, Some(text)) => {
                    replace_section(text, &heading, &content)
                        .map_err(|why| uneditable(&path, &heading, why))?
                }
                (NoteEdit::Field { key, value }, Some(text)) => {
                    set_field(text, &key, value.as_deref())
                        .map_err(|why| uneditable(&path, &key, why))?
                }
            };
            super::notes::check_size(&text)?;
            Ok(Writing::new(text, "NoteWritten"))
        };
        self.kernel.with_wait_limit(caller.waited, || {
            self.kernel.write_file(space, &dir, &note, writing)
        })?;
        Ok(name)
    }

    /// Gives a note another path, and rewrites every link that would lead elsewhere. A path that ends with `/` is
    /// the folder that it goes to.
    ///
    /// # Errors
    /// There is no such note, or one at the new path; a link cannot be rewritten: nothing is changed then.
    pub fn move_note(&self, caller: &Caller, from: &str, to: &str) -> Result<MovedNote> {
        caller.principal.require(Scope::Write)?;
        let space = &caller.principal.space;
        let dir = self.kernel.vault().open(space)?;
        let from = self.existing_note(&dir, from)?;
        let to = match to.ends_with('/') {
            true => format!("{to}{}", from.rsplit('/').next().unwrap_or(&from)),
            false => super::notes::with_extension(to),
        };
        let target = self.note(&dir, &to)?;
        let to = target.name.clone();
        if !to.to_lowercase().ends_with(".md") {
            return Err(Error::invalid(format!("`to`: `{to}` is no note"))
                .hint("end the name with `.md`, or a folder with `/`"));
        }
        let name = to.rsplit('/').next().unwrap_or(&to);
        if let Some(sign) = name.chars().find(|it| UNLINKABLE.contains(it)) {
            return Err(Error::invalid(format!(
                "`to`: no link can name a note with `{sign}` in its name"
            ))
            .hint("leave that character out"));
        }
        if to == from {
            return Err(Error::invalid("`to` is where the note is").hint("name another path"));
        }
        let is_same_file = composed_small(&to) == composed_small(&from);
        if !is_same_file && dir.exists(&to)? {
            return Err(Error::conflict(format!("`{to}` exists")).hint("choose another name"));
        }
        let plan = self.kg.plan_note_move(caller, &dir, &from, &to)?;
        let n_others = plan.others.len();
        let mut edits = vec![
            FileEdit {
                file: target,
                before: None,
                after: Some(plan.text.1),
                event: "NoteWritten",
                details: details(&[("movedFrom", &from)]),
            },
            FileEdit {
                file: self.note(&dir, &from)?,
                before: Some(plan.text.0),
                after: None,
                event: "NoteMoved",
                details: details(&[("to", &to)]),
            },
        ];
        let mut rewritten = Vec::with_capacity(n_others);
        for (path, before, after) in plan.others {
            edits.push(FileEdit {
                file: self.note(&dir, &path)?,
                before: Some(before),
                after: Some(after),
                event: "NoteWritten",
                details: details(&[("relinked", &to)]),
            });
            rewritten.push(path);
        }
        self.kernel.with_wait_limit(caller.waited, || {
            self.kernel.write_files(space, &dir, edits)
        })?;
        Ok(MovedNote {
            path: to,
            rewritten,
            n_links: plan.n_links,
        })
    }

    /// Moves a note to the trash of the vault. Links to it stay as they are.
    ///
    /// # Errors
    /// There is no such note, and those of the vault.
    pub fn delete_note(&self, caller: &Caller, path: &str) -> Result<DeletedNote> {
        caller.principal.require(Scope::Write)?;
        let space = &caller.principal.space;
        let dir = self.kernel.vault().open(space)?;
        let path = self.existing_note(&dir, path)?;
        let note = self.note(&dir, &path)?;
        let text = files::read_text(&dir, &note)?;
        let text = text.ok_or_else(|| super::notes::missing(&dir, &path))?;
        let key = note.key.clone();
        let linking = self.kernel.log().read(space, |tx| {
            let library = self.kg.vault_library(space, tx)?;
            let doc = library.docs.iter().find(|it| it.path == key);
            let linking = doc.into_iter().flat_map(|it| library.linking_to(it));
            let mut linking: Vec<String> = linking
                .map(|it| kenning_kg::path_in_vault(it).to_owned())
                .collect();
            linking.dedup();
            Ok(linking)
        })?;
        // The copy comes first: whoever is killed in between leaves two notes and not none.
        let trash = free_name(&dir, &format!("{TRASH}/{path}"))?;
        dir.write(&trash, text.as_bytes())
            .map_err(|error| self.kernel.vault().unwritable(error))?;
        let edit = FileEdit {
            file: note,
            before: Some(text),
            after: None,
            event: "NoteDeleted",
            details: details(&[("trash", &trash)]),
        };
        self.kernel.with_wait_limit(caller.waited, || {
            self.kernel.write_files(space, &dir, vec![edit])
        })?;
        Ok(DeletedNote { trash, linking })
    }

    /// Every state of a note that is known, the oldest first; those that it had under earlier paths too.
    ///
    /// # Errors
    /// Nothing was ever known under this path, and those of the store.
    pub fn note_history(&self, caller: &Caller, path: &str) -> Result<Vec<NoteRevision>> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let path = super::notes::with_extension(path);
        let name = Name::parse(&path)?.as_str().to_owned();
        let revisions = self.kernel.log().read(space, |tx| revisions(tx, &name))?;
        if revisions.is_empty() {
            return Err(Error::not_found("history of a note", &name).hint(
                "`note_list` lists the notes; a note has a history once it was read or written",
            ));
        }
        let numbered = revisions.into_iter().enumerate();
        let shown = numbered.map(|(at, (path, node))| NoteRevision {
            n: at + 1,
            at_ms: node.updated.ms(),
            path,
            text: node.body,
        });
        Ok(shown.collect())
    }

    /// Gives a note the text of an earlier state; without a number, that of the last one that was different. A
    /// note that was thrown away is there again.
    ///
    /// # Errors
    /// There is no such state.
    pub fn restore_note(
        &self,
        caller: &Caller,
        path: &str,
        n: Option<usize>,
    ) -> Result<NoteRevision> {
        let history = self.note_history(caller, path)?;
        let now = match self.read_note(caller, path) {
            Ok(text) => Some(text),
            Err(error) if error.code == Code::NotFound => None,
            Err(error) => return Err(error),
        };
        let is_wanted = |it: &&NoteRevision| match n {
            Some(n) => it.n == n,
            None => Some(&it.text) != now.as_ref(),
        };
        let Some(found) = history.iter().rev().find(is_wanted) else {
            let len = history.len();
            return Err(Error::not_found("revision", n.unwrap_or(0).to_string())
                .hint(format!("there are revisions 1 to {len}")));
        };
        self.write_note(caller, path, found.text.clone())?;
        Ok(found.clone())
    }

    /// The path of a note that is there, with its extension.
    fn existing_note(&self, dir: &Dir, path: &str) -> Result<String> {
        let path = super::notes::with_extension(path);
        let name = self.note(dir, &path)?.name;
        match dir.metadata(&name) {
            Ok(found) if found.is_file => Ok(name),
            Ok(_) => Err(Error::invalid(format!("`{name}` is a folder")).hint("name a note")),
            Err(error) if error.code == Code::NotFound => Err(super::notes::missing(dir, &path)),
            Err(error) => Err(error),
        }
    }
}

/// The states of a note under its path and, before it had that, under earlier ones.
fn revisions(tx: &dyn ReadTx, name: &str) -> Result<Vec<(String, Node)>> {
    let mut all: Vec<(String, Node)> = Vec::new();
    let (mut name, mut until) = (name.to_owned(), u64::MAX);
    // A note that went back and forth has finitely many states, each earlier than the last.
    loop {
        let mut own = tx.key_history("", Kind::Document, &format!("vault:{name}"))?;
        own.retain(|it| it.updated.0 < until);
        own.sort_by_key(|it| it.updated);
        let Some(first) = own.first().map(|it| it.updated) else {
            break;
        };
        until = first.0;
        let from = moved_from(tx, &name, &own)?;
        let named = own.into_iter().map(|it| (name.clone(), it));
        all.splice(0..0, named);
        match from {
            Some(from) if all.len() < REVISIONS_MAX => name = from,
            _ => break,
        }
    }
    Ok(all)
}

/// So many states are listed.
const REVISIONS_MAX: usize = 10_000;

/// The path that a note had before its first state under this one.
fn moved_from(tx: &dyn ReadTx, name: &str, own: &[Node]) -> Result<Option<String>> {
    let Some(first) = own.first() else {
        return Ok(None);
    };
    let events = tx.events_at(first.updated)?.into_iter();
    let mut data = events.filter_map(|it| Some(kenning_audit::event::parse(&it)?.data));
    Ok(data.find_map(|it| {
        let is_own = it.get("path")?.as_str()? == name;
        let from = it.get("movedFrom")?.as_str()?;
        is_own.then(|| from.to_owned())
    }))
}

fn details(fields: &[(&str, &str)]) -> Map<String, serde_json::Value> {
    let fields = fields.iter();
    fields
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect()
}

/// Names that a file system without case or with another Unicode form takes for the same.
fn composed_small(name: &str) -> String {
    kenning_entities::names::composed(name).to_lowercase()
}

/// A name that nothing has: `a.md`, `a 2.md`, `a 3.md`.
fn free_name(dir: &Dir, name: &str) -> Result<String> {
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, "md"));
    for n in 1..10_000 {
        let name = match n {
            1 => name.to_owned(),
            n => format!("{stem} {n}.{ending}"),
        };
        if !dir.exists(&name)? {
            return Ok(name);
        }
    }
    Err(Error::conflict(format!("`{name}` exists too often")).hint("empty the trash"))
}

fn uneditable(path: &str, part: &str, why: Uneditable) -> Error {
    let part: String = part.chars().take(100).collect();
    match why {
        Uneditable::NoHeading(known) => {
            let error = Error::not_found("heading", &part);
            let known: Vec<String> = known.iter().take(20).map(|it| format!("`{it}`")).collect();
            match known.is_empty() {
                true => error.hint(format!("`{path}` has no headings; use `append`")),
                false => error.hint(format!("`{path}` has {}", known.join(", "))),
            }
        }
        Uneditable::ManyHeadings(n) => {
            Error::conflict(format!("`{path}` has {n} headings `{part}`"))
                .hint("read the note and overwrite it as a whole")
        }
        Uneditable::BrokenFields(fault) => Error::conflict(format!(
            "the frontmatter of `{path}` cannot be read: {fault}"
        ))
        .hint("repair it by overwriting the note; it was left as it is"),
        Uneditable::NotYaml => Error::invalid(format!(
            "the frontmatter of `{path}` is TOML, and only YAML is edited"
        ))
        .hint("overwrite the note as a whole"),
        Uneditable::BadField => Error::invalid(format!(
            "`{part}` cannot be set to this value without changing other fields"
        ))
        .hint("a field is one word; its value is one line of YAML"),
    }
}
