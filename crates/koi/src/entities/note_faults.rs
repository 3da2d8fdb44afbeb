//! Notes whose fields cannot be read as intended.

use super::index::path_of;
use super::resolve::by_uri;
use crate::Koi;
use kenning_core::{Result, Space};
use kenning_graph::Fault;
use kenning_kernel::{Caller, Doctor, NOTE_BYTES_MAX, Scope};
use kenning_kg::{Doc, note_names};
use serde_json::Value;
use std::collections::BTreeSet;

/// At most this many are named if a label is unknown.
const SHOWN_MAX: usize = 3;
/// At most this many are listed by `doctor`.
const LISTED_MAX: usize = 100;

impl Koi {
    /// What callers should know of where an answer about these entities comes from: why any may be missing,
    /// and fields of the notes about them that cannot be read. Where nobody was found, of all notes, because
    /// a lost alias may be why.
    ///
    /// # Errors
    /// Denied without the scope to read.
    pub fn note_warnings(&self, caller: &Caller, uris: &[String]) -> Result<Vec<String>> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let mut all = self.entity_warnings(caller);
        all.extend(self.unread_fields(space, uris)?);
        Ok(all)
    }

    fn unread_fields(&self, space: &Space, uris: &[String]) -> Result<Vec<String>> {
        self.kernel.log().read(space, |tx| {
            let library = self.kg.vault_library(space, tx)?;
            let broken: Vec<(&str, String)> = library.docs.iter().filter_map(warning).collect();
            if broken.is_empty() {
                return Ok(Vec::new());
            }
            if uris.is_empty() {
                return Ok(summary(&broken));
            }
            let mut paths = BTreeSet::new();
            for uri in uris {
                let Some(node) = by_uri(tx, uri)? else {
                    continue;
                };
                let one = node.props.get("path").into_iter();
                let all = node.props.get("paths").and_then(Value::as_array);
                let all = one.chain(all.into_iter().flatten());
                paths.extend(all.filter_map(Value::as_str).map(str::to_owned));
            }
            let own = broken.into_iter().filter(|it| paths.contains(it.0));
            Ok(own.map(|it| it.1).collect())
        })
    }
}

impl Koi {
    /// The notes of the vault whose frontmatter cannot be read in full, as the files are now. Nothing is
    /// written.
    pub fn examine_notes(&self, found: &mut Doctor) -> Result<()> {
        // Faults of the directory itself are reported elsewhere.
        let Some(dir) = self.kernel.vault().existing_if_named().ok().flatten() else {
            return Ok(());
        };
        let mut n_broken = 0;
        for name in note_names(&dir)? {
            // Files that cannot be read are reported elsewhere.
            let Ok(bytes) = dir.read(&name, NOTE_BYTES_MAX) else {
                continue;
            };
            let text = String::from_utf8_lossy(&bytes);
            if let Some(fault) = frontmatter_fault(&name, &text) {
                n_broken += 1;
                if n_broken <= LISTED_MAX {
                    found.warnings.push(format!("vault: {fault}"));
                }
            }
        }
        if n_broken > LISTED_MAX {
            let n = n_broken - LISTED_MAX;
            found
                .warnings
                .push(format!("vault: {n} more notes have such frontmatter"));
        }
        Ok(())
    }
}

/// What of a note's frontmatter cannot be read, in one sentence.
#[must_use]
pub fn frontmatter_fault(path: &str, text: &str) -> Option<String> {
    let fault = kenning_graph::frontmatter_faults(text).into_iter().next()?;
    Some(in_words(path, fault.line, &fault.message))
}

fn in_words(path: &str, line: u32, message: &str) -> String {
    format!("`{path}`, line {line}: {message}")
}

/// The path of a note, and what of its fields cannot be read.
fn warning(doc: &Doc) -> Option<(&str, String)> {
    let faults = doc.card.faults.iter();
    let mut broken = faults.filter(|it| it.1.starts_with(Fault::FRONTMATTER));
    let (line, message) = broken.next()?;
    let path = path_of(doc);
    Some((path, in_words(path, *line, message)))
}

fn summary(broken: &[(&str, String)]) -> Vec<String> {
    let mut shown: Vec<String> = broken
        .iter()
        .take(SHOWN_MAX)
        .map(|it| it.1.clone())
        .collect();
    if broken.len() > SHOWN_MAX {
        let n = broken.len() - SHOWN_MAX;
        shown.push(format!(
            "{n} more notes have frontmatter that cannot be read in full: `kenning doctor` lists them"
        ));
    }
    shown
}
