//! Notes of the vault: Markdown files that are also nodes.

use crate::Koi;
use kenning_core::{Code, Error, Result};
use kenning_entities::names::{composed, decomposed};
use kenning_kernel::FileNode;
use kenning_kernel::files::Writing;
use kenning_kernel::{Caller, NOTE_BYTES_MAX, Scope, files};
use kenning_kg::NoteRules;
use kenning_vault::{Dir, Name};
use std::time::Duration;

impl Koi {
    /// The note at a path. What is no note is refused: settings, templates, what the vault ignores.
    pub(crate) fn note(&self, dir: &Dir, path: &str) -> Result<FileNode> {
        let name = Name::parse(path)?;
        let name = spelled_as_there(dir, name.as_str());
        NoteRules::of(dir).check(dir, &name)?;
        Ok(self.kernel.vault().file(&name, NOTE_BYTES_MAX))
    }

    /// The text of a note.
    pub fn read_note(&self, caller: &Caller, path: &str) -> Result<String> {
        caller.principal.require(Scope::Read)?;
        let dir = self.kernel.vault().open(&caller.principal.space)?;
        let note = self.note(&dir, path)?;
        let space = &caller.principal.space;
        self.kernel.with_wait_limit(caller.waited, || {
            if !self.kernel.is_read_only()
                && self.kernel.has_unfinished_write(space, &note.key)?
                && let Ok(_lock) = self.kernel.lock_file(&note, Duration::ZERO)
            {
                let finished = self.kernel.finish_file_write(space, &dir, &note.key);
                files::unless_unavailable(finished)?;
            }
            Ok::<(), Error>(())
        })?;
        if let Some(text) = files::read_text(&dir, &note)? {
            return Ok(text);
        }
        // Links name notes without their extension.
        let with_md = format!("{path}.md");
        if !path.ends_with(".md") && dir.exists(&with_md).unwrap_or(false) {
            return self.read_note(caller, &with_md);
        }
        Err(missing(&dir, path))
    }

    /// Writes a note, with its folders, and returns the path it has. A name without an extension
    /// gets `.md`.
    pub fn write_note(&self, caller: &Caller, path: &str, content: String) -> Result<String> {
        caller.principal.require(Scope::Write)?;
        let dir = self.kernel.vault().open(&caller.principal.space)?;
        check_size(&content)?;
        let path = with_extension(path);
        let note = self.note(&dir, &path)?;
        let space = &caller.principal.space;
        let n_bytes = content.len();
        let writing = |_: Option<&str>| Ok(Writing::new(content, "NoteWritten"));
        self.kernel.with_wait_limit(caller.waited, || {
            self.kernel.write_file(space, &dir, &note, writing)
        })?;
        self.kernel.catch_up(space, n_bytes);
        Ok(path)
    }

    /// The names of the Markdown files of a folder, sorted, one level.
    pub fn list_notes(&self, caller: &Caller, folder: &str) -> Result<Vec<String>> {
        caller.principal.require(Scope::Read)?;
        let dir = self.kernel.vault().open(&caller.principal.space)?;
        let rules = NoteRules::of(&dir);
        rules.check(&dir, folder)?;
        let entries =
            dir.list(&spelled_as_there(&dir, folder))
                .map_err(|error| match error.code {
                    Code::NotFound => Error::not_found("folder", folder)
                        .hint("`.` lists the top of the vault")
                        .because(error),
                    _ => error,
                })?;
        let notes = entries
            .into_iter()
            .filter(|it| it.is_file && it.name.ends_with(".md"));
        Ok(notes.map(|it| it.name).collect())
    }
}

/// Refuses a text that is too long for a note.
pub(crate) fn check_size(content: &str) -> Result<()> {
    if content.len() as u64 <= NOTE_BYTES_MAX {
        return Ok(());
    }
    Err(Error::too_large(format!(
        "`content`: {} bytes are more than the {NOTE_BYTES_MAX} of a note",
        content.len()
    ))
    .hint("split it into several notes"))
}

/// At most this many entries of a vault are searched for a note, and this many notes proposed.
const LOOKED_MAX: usize = 5_000;
const PROPOSED_MAX: usize = 3;

/// The name, or its other Unicode form if that exists: some file systems decompose letters with
/// accents, and people type them composed.
pub(crate) fn spelled_as_there(dir: &Dir, name: &str) -> String {
    let is_there = |it: &str| dir.exists(it).unwrap_or(false);
    if name.is_ascii() || is_there(name) {
        return name.to_owned();
    }
    let others = [composed(name).into_owned(), decomposed(name)];
    let other = others.into_iter().find(|it| is_there(it));
    other.unwrap_or_else(|| name.to_owned())
}

/// `People/New Person` becomes `People/New Person.md`; `notes.txt` stays.
pub(crate) fn with_extension(path: &str) -> String {
    let last = path.rsplit('/').next().unwrap_or(path);
    let has_extension = last
        .rfind('.')
        .is_some_and(|at| at > 0 && at + 1 < last.len());
    if has_extension || last.is_empty() {
        path.to_owned()
    } else {
        format!("{path}.md")
    }
}

/// Says what does not exist, and what was probably meant.
pub(crate) fn missing(dir: &Dir, path: &str) -> Error {
    let error = Error::not_found("note", path);
    let with_md = format!("{path}.md");
    if dir.exists(&with_md).unwrap_or(false) {
        return error.hint(format!("there is `{with_md}`"));
    }
    match same_name(dir, path).as_slice() {
        [] => error.hint("`vault_list_notes` lists a folder"),
        found => {
            let found: Vec<String> = found.iter().map(|it| format!("`{it}`")).collect();
            error.hint(format!("there is {}", found.join(" and ")))
        }
    }
}

/// Notes anywhere in the vault with this name, in any case: whoever knows a note's name need not know
/// its folder.
pub(crate) fn same_name(dir: &Dir, path: &str) -> Vec<String> {
    let stem = |it: &str| {
        let name = it.rsplit('/').next().unwrap_or(it).to_lowercase();
        let name = name
            .strip_suffix(".md")
            .map(ToOwned::to_owned)
            .unwrap_or(name);
        composed(&name).into_owned()
    };
    let wanted = stem(path);
    let (mut found, mut n_looked) = (Vec::new(), 0);
    let mut folders = std::collections::VecDeque::from([String::new()]);
    while let Some(folder) = folders.pop_front() {
        let here = if folder.is_empty() { "." } else { &folder };
        for entry in dir.list(here).unwrap_or_default() {
            n_looked += 1;
            if n_looked > LOOKED_MAX || found.len() >= PROPOSED_MAX {
                return found;
            }
            if entry.name.starts_with('.') {
                continue;
            }
            let name = match folder.as_str() {
                "" => entry.name.clone(),
                folder => format!("{folder}/{}", entry.name),
            };
            if entry.is_dir {
                folders.push_back(name);
            } else if entry.name.ends_with(".md") && stem(&entry.name) == wanted {
                found.push(name);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_without_an_extension_gets_one() {
        for (given, expected) in [
            ("a", "a.md"),
            ("a.md", "a.md"),
            ("x.y/a", "x.y/a.md"),
            ("a.txt", "a.txt"),
            (".hidden", ".hidden.md"),
            ("v1.2 plan.md", "v1.2 plan.md"),
            ("end.", "end..md"),
            ("folder/", "folder/"),
        ] {
            assert_eq!(with_extension(given), expected);
        }
    }
}
