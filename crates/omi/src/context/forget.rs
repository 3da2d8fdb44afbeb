//! Removes what is forgotten from NOW.md, MEMORY.md and the daily logs.

use super::checksums::MEMORY;
use super::daily::BYTES_MAX;
use super::place::Place;
use crate::Omi;
use kenning_core::{Result, Space};
use kenning_kernel::files::{Writing, read_text};
use kenning_kernel::forget::{Erasure, TEXT_CHARS_MIN};
use kenning_kernel::{Caller, PROJECTS_FOLDER};
use kenning_memory::{daily, now};
use kenning_vault::Dir;

impl Omi {
    /// The directory of the context, if it belongs to this space and is there.
    fn own_context(&self, space: &Space) -> Result<Option<Dir>> {
        match self.kernel.omi().space() == space {
            true => self.kernel.omi().existing(space),
            false => Ok(None),
        }
    }

    /// Removes entries and lines that repeat what is erased. Gives the names of the files that changed.
    pub(crate) fn remove_from_files(
        &self,
        caller: &Caller,
        erasure: &Erasure,
    ) -> Result<Vec<String>> {
        let space = &caller.principal.space;
        let Some(dir) = self.own_context(space)? else {
            return Ok(Vec::new());
        };
        let mut names = Vec::new();
        for place in places(&dir)? {
            names.extend([now::FILE, MEMORY].map(|it| place.name(it)));
            let logs = self.logs_known_or_there(space, &dir, &place)?;
            names.extend(logs.iter().map(|it| place.name(it)));
        }
        let mut changed = Vec::new();
        for name in names {
            let file = self.kernel.omi().file(&name, BYTES_MAX);
            let Some(text) = read_text(&dir, &file)? else {
                continue;
            };
            if without(&name, &text, erasure) == text {
                continue;
            }
            let writing = |before: Option<&str>| {
                let content = without(&name, before.unwrap_or_default(), erasure);
                Ok(Writing::new(content, "ContextForgotten"))
            };
            self.write_context_file(caller, &dir, &file, writing)?;
            changed.push(name);
        }
        for place in places(&dir)? {
            changed.extend(remove_from_copies(&dir, &place, erasure)?);
        }
        Ok(changed)
    }
}

/// The folders of all projects, and that of none.
fn places(dir: &Dir) -> Result<Vec<Place>> {
    let mut places = vec![Place::default()];
    if dir.exists(PROJECTS_FOLDER)? {
        let entries = dir.list(PROJECTS_FOLDER)?.into_iter();
        let folders = entries.filter(|it| !it.is_file);
        places.extend(folders.map(|it| Place::of(&it.name)));
    }
    Ok(places)
}

/// Copies of NOW.md, which `omi check` keeps: they are no nodes.
fn remove_from_copies(dir: &Dir, place: &Place, erasure: &Erasure) -> Result<Vec<String>> {
    let mut changed = Vec::new();
    let folder = place.name("");
    for entry in dir.list(folder.trim_end_matches('/'))? {
        let is_copy = entry.name.starts_with("NOW-") && entry.name.ends_with(".md");
        if !entry.is_file || !is_copy {
            continue;
        }
        let name = place.name(&entry.name);
        let bytes = dir.read(&name, BYTES_MAX)?;
        let text = String::from_utf8_lossy(&bytes);
        let left = without(&name, &text, erasure);
        if left != text {
            dir.write(&name, left.as_bytes())?;
            changed.push(name);
        }
    }
    Ok(changed)
}

impl Omi {
    /// Removes NOW.md and the daily logs. MEMORY.md belongs to a person and stays, like notes.
    pub(crate) fn remove_context_files(&self, caller: &Caller) -> Result<Vec<String>> {
        let space = &caller.principal.space;
        let Some(dir) = self.own_context(space)? else {
            return Ok(Vec::new());
        };
        let places = places(&dir)?;
        let mut names = Vec::new();
        for place in &places {
            names.push(place.name(now::FILE));
            let logs = self.logs_known_or_there(space, &dir, place)?;
            names.extend(logs.iter().map(|it| place.name(it)));
        }
        let file = self.kernel.omi().file(now::FILE, BYTES_MAX);
        let _lock = self.kernel.lock_file(&file, super::LOCK_WAIT)?;
        let mut removed = Vec::new();
        for name in names {
            if dir.exists(&name)? {
                dir.remove(&name)?;
                removed.push(name.clone());
            }
            super::checksums::forget(&dir, &self.kernel.omi().file(&name, BYTES_MAX))?;
        }
        for place in &places {
            super::checksums::forget_logs(&dir, place)?;
        }
        Ok(removed)
    }
}

/// A log without the entries that hold it; another file without its lines.
fn without(name: &str, text: &str, erasure: &Erasure) -> String {
    let texts: Vec<&str> = erasure
        .texts
        .iter()
        .map(|it| it.trim())
        .filter(|it| it.chars().count() >= TEXT_CHARS_MIN)
        .collect();
    let holds = |part: &str| {
        let words = part.split(|c: char| !(c.is_alphanumeric() || "_-.:".contains(c)));
        texts.iter().any(|it| part.contains(it))
            || words
                .map(|it| it.trim_matches(['.', ':', '-']))
                .any(|it| erasure.names.contains(it))
    };
    if !holds(text) {
        return text.to_owned();
    }
    let own_name = Place::split(name).1;
    let is_log = own_name.starts_with(daily::FOLDER);
    if is_log {
        let mut bounds = daily::starts(text);
        bounds.insert(0, 0);
        bounds.push(text.len());
        let parts = bounds.windows(2).filter_map(|it| text.get(it[0]..it[1]));
        return parts.filter(|it| !holds(it)).collect();
    }
    // A text may go over several lines.
    let mut left = text.to_owned();
    for it in &texts {
        left = left.replace(*it, "");
    }
    let mut kept = String::new();
    let originals: Vec<&str> = text.split_inclusive('\n').collect();
    for line in left.split_inclusive('\n') {
        let is_bare = line.trim().chars().all(|c| "-*+>[] ".contains(c));
        let is_new = !originals.contains(&line);
        if !(holds(line) || is_bare && is_new) {
            kept.push_str(line);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn erasure(text: &str, name: &str) -> Erasure {
        Erasure {
            texts: vec![text.to_owned()],
            names: HashSet::from([name.to_owned()]),
            ..Erasure::default()
        }
    }

    #[test]
    fn a_log_loses_the_entries_and_other_files_the_lines() {
        let it = erasure("the code of the safe is 7731", "mem_1");
        let log = "## [2026-11-16T10:00:00]\nkeeps\n\n## [2026-11-16T10:01:00]\nsaid: the code of the safe is 7731\n\n## [2026-11-16T10:02:00]\nsee mem_1.\n";
        let left = without("memory/2026-11-16.md", log, &it);
        assert!(left.contains("keeps") && !left.contains("7731") && !left.contains("mem_1"));
        let memory =
            "# Memory\n\n- first\n- the code of the safe is 7731\n- see mem_1\n- mem_10 stays\n";
        assert_eq!(
            without(MEMORY, memory, &it),
            "# Memory\n\n- first\n- mem_10 stays\n"
        );
        assert_eq!(without(MEMORY, "- nothing\n", &it), "- nothing\n");
    }

    #[test]
    fn a_short_text_is_not_looked_for() {
        let it = erasure("yes", "mem_1");
        assert_eq!(without(MEMORY, "- yes\n- no\n", &it), "- yes\n- no\n");
    }

    #[test]
    fn a_text_of_several_lines_goes_as_a_whole() {
        let it = erasure("first line here\nsecond line here", "mem_1");
        let memory = "a\nfirst line here\nsecond line here\nb\n";
        assert_eq!(without(MEMORY, memory, &it), "a\nb\n");
    }
}
