//! Finding tools: among the installed ones, and in an index.
//!
//! An index is a JSON array, at a URL or in a file, with an entry for each tool: `id`, `name`,
//! `version`, `description`, and a `source` for `kami install`. It is a list of hints: what is
//! installed from it is checked like anything else.

use super::package::{bundle, fetch_bytes, index_entry, is_source};
use crate::Kami;
use kenning_core::{Code, Error, Result};
use kenning_kernel::{Caller, Scope};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The largest index that is read.
const INDEX_BYTES_MAX: usize = 8 * 1024 * 1024;
const ENTRIES_MAX: usize = 20_000;
/// At most this many characters of a foreign text are shown.
const TEXT_CHARS_MAX: usize = 300;

/// A tool that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPackage {
    /// In reverse-domain notation.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// The available version; for one that is only installed, the installed version.
    pub version: String,
    /// Its description.
    pub description: String,
    /// The source for `kami install`, if it is in the index.
    pub source: Option<String>,
    /// The version that is installed, if one is.
    pub installed: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    name: String,
    version: String,
    description: String,
    #[serde(default)]
    source: String,
}

impl Kami {
    /// Finds tools that have all of these words in their id, name or description: installed ones, and
    /// those of an index, if one is given. Tools with the words in their names come first.
    pub fn search_tools(
        &self,
        caller: &Caller,
        words: &str,
        index: Option<&str>,
    ) -> Result<Vec<FoundPackage>> {
        caller.principal.require(Scope::Read)?;
        let mut found: BTreeMap<String, FoundPackage> = BTreeMap::new();
        if let Some(index) = index {
            for it in read_index(index)? {
                let package = FoundPackage {
                    id: shown(&it.id),
                    name: shown(&it.name),
                    version: shown(&it.version),
                    description: shown(&it.description),
                    source: Some(it.source).filter(|it| is_source(it)),
                    installed: None,
                };
                found.insert(package.id.clone(), package);
            }
        }
        for tool in self.installed_tools(caller)? {
            let known = found.entry(tool.id.clone()).or_insert(FoundPackage {
                id: tool.id,
                name: tool.name,
                version: tool.version.clone(),
                description: tool.description,
                source: None,
                installed: None,
            });
            known.installed = Some(tool.version);
        }
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let rank = |package: &FoundPackage| -> Option<u8> {
            let name = format!("{} {}", package.id, package.name).to_lowercase();
            let all = format!("{name} {}", package.description).to_lowercase();
            let has = |text: &str| words.iter().all(|word| text.contains(word));
            has(&all).then(|| u8::from(!has(&name)))
        };
        let found = found.into_values();
        let mut ranked: Vec<(u8, FoundPackage)> = found
            .filter_map(|package| Some((rank(&package)?, package)))
            .collect();
        // Within a rank the order of ids is kept.
        ranked.sort_by_key(|it| it.0);
        Ok(ranked.into_iter().map(|it| it.1).collect())
    }

    /// The entry of a package for an index. `source` is where others will get it.
    pub fn tool_index_entry(&self, caller: &Caller, package: &str, source: &str) -> Result<Value> {
        caller.principal.require(Scope::Admin)?;
        if !is_source(source) {
            return Err(Error::invalid(format!(
                "`--source`: others cannot download the tool from `{source}`"
            ))
            .hint("give `owner/repo@tag`, a release with the archive `plugin.zip`, or the https URL of an archive"));
        }
        let package = bundle(Path::new(package))?;
        self.compile(caller, &package.wasm)?;
        Ok(index_entry(&package.manifest, &package.wasm, source))
    }
}

fn read_index(place: &str) -> Result<Vec<Entry>> {
    let bytes = if place.starts_with("http://") {
        return Err(Error::denied(format!("`{place}` is not encrypted"))
            .hint("an index is read over https only"));
    } else if place.starts_with("https://") {
        fetch_bytes(place, INDEX_BYTES_MAX)?
    } else {
        let (dir, name) = kenning_vault::split(Path::new(place))?;
        let read = dir.read(&name, INDEX_BYTES_MAX as u64);
        read.map_err(|error| match error.code {
            Code::NotFound => {
                Error::not_found("index", place).hint("`--registry` takes an https URL or a file")
            }
            _ => error,
        })?
    };
    let entries: Vec<Entry> = serde_json::from_slice(&bytes).map_err(|cause| {
        Error::invalid(format!("`{place}` is not an index of tools: {cause}"))
            .hint("it is a JSON array of objects with `id`, `name`, `version`, `description` and `source`")
    })?;
    if entries.len() > ENTRIES_MAX {
        return Err(
            Error::too_large(format!("the index has {} entries", entries.len()))
                .hint(format!("the limit is {ENTRIES_MAX}")),
        );
    }
    Ok(entries)
}

/// A text from somebody else, shortened to one line.
fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(TEXT_CHARS_MAX).map(plain).collect()
}
