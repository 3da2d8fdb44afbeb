//! What is kept of the code of each file.

use super::super::record::{self, Repository};
use kenning_audit::Tx;
use kenning_code::{Facts, Language};
use kenning_core::{NodeId, Result};
use kenning_kernel::{Bucket, Raw};
use kenning_store::{ReadTx, When};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// Facts of texts, by the names of their contents: equal files of all repositories and work trees share them.
const FACTS: Bucket<Raw> = Bucket::new("code.facts");

type Id = [u8; 16];

/// The nodes of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileRow {
    pub(super) facts: String,
    pub(super) document: Id,
    /// In the order of the facts.
    pub(super) symbols: Vec<Id>,
    pub(super) imports: Vec<Id>,
}

/// The edges of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LinkRow {
    pub(super) format: u32,
    /// Which facts they follow from.
    pub(super) facts: String,
    pub(super) edges: Vec<EdgeRow>,
}

/// An edge, and what its properties were.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct EdgeRow {
    pub(super) src: Id,
    pub(super) rel: String,
    pub(super) dst: Id,
    pub(super) digest: u64,
}

/// What is outside of a repository, or a folder of it: its node, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shared {
    External,
    Folder,
}

impl Shared {
    pub(super) fn bucket(self, repository: &Repository) -> String {
        let what = match self {
            Self::External => "externals",
            Self::Folder => "folders",
        };
        format!("repositories.{what}.{}", repository.id)
    }
}

pub(super) fn files(repository: &Repository) -> String {
    format!("repositories.code.{}", repository.id)
}

pub(super) fn links(repository: &Repository) -> String {
    format!("repositories.links.{}", repository.id)
}

/// Rows of code are many and small numbers: they are kept in a compact form.
fn bucket(name: &str) -> Bucket<Raw> {
    Bucket::named(name.to_owned())
}

/// A row that cannot be read is made again, like one that is not there.
fn decode<T: DeserializeOwned>(row: &Raw) -> Option<T> {
    postcard::from_bytes(&row.0).ok()
}

pub(super) fn get<T: DeserializeOwned>(
    tx: &dyn ReadTx,
    name: &str,
    key: &str,
) -> Result<Option<T>> {
    Ok(bucket(name).get(tx, key)?.and_then(|it| decode(&it)))
}

pub(super) fn all<T: DeserializeOwned>(tx: &dyn ReadTx, name: &str) -> Result<BTreeMap<String, T>> {
    let rows = bucket(name).list(tx)?.into_iter();
    Ok(rows
        .filter_map(|(key, it)| Some((key, decode(&it)?)))
        .collect())
}

pub(super) fn set<T: Serialize>(tx: &mut Tx<'_>, name: &str, key: &str, row: &T) -> Result<()> {
    let row = Raw(postcard::to_allocvec(row).unwrap_or_default());
    bucket(name).set(tx, key, &row)
}

pub(super) fn unset(tx: &mut Tx<'_>, name: &str, key: &str) -> Result<()> {
    bucket(name).unset(tx, key)
}

/// The name of a text's facts.
pub(super) fn facts_key(path: &str, object: &str) -> String {
    let language = Language::of_path(path).map_or("manifest", Language::as_str);
    format!("{}.{language}.{object}", kenning_code::FORMAT)
}

/// The facts of a text, and how many bytes they are kept in.
pub(super) fn facts(tx: &dyn ReadTx, key: &str) -> Result<Option<(Facts, usize)>> {
    let row = FACTS.get(tx, key)?;
    Ok(row.and_then(|it| Some((Facts::from_bytes(&it.0)?, it.0.len()))))
}

pub(super) fn put_facts(tx: &mut Tx<'_>, key: &str, bytes: &[u8]) -> Result<()> {
    FACTS.set(tx, key, &Raw(bytes.to_vec()))
}

/// Removes the facts that no file of any repository has any more.
pub(super) fn sweep_facts(tx: &mut Tx<'_>, gone: &HashSet<String>) -> Result<()> {
    let mut gone = gone.clone();
    for repository in record::all(&**tx)? {
        if gone.is_empty() {
            return Ok(());
        }
        for row in all::<FileRow>(&**tx, &files(&repository))?.values() {
            gone.remove(&row.facts);
        }
    }
    gone.iter().try_for_each(|it| FACTS.unset(tx, it))
}

/// Removes a node that may be gone already.
pub(super) fn remove_node(tx: &mut Tx<'_>, id: Id) -> Result<()> {
    let id = NodeId(id);
    match tx.node(id, When::Now)? {
        Some(_) => tx.remove_node(id),
        None => Ok(()),
    }
}

/// Removes everything that is kept of a repository's code but the symbols, which go with their files.
pub(in super::super) fn forget(tx: &mut Tx<'_>, repository: &Repository) -> Result<()> {
    let mut gone = HashSet::new();
    for (path, row) in all::<FileRow>(&**tx, &files(repository))? {
        for id in row.symbols.into_iter().chain(row.imports) {
            remove_node(tx, id)?;
        }
        gone.insert(row.facts);
        unset(tx, &files(repository), &path)?;
    }
    for path in keys(&**tx, &links(repository))? {
        unset(tx, &links(repository), &path)?;
    }
    for shared in [Shared::External, Shared::Folder] {
        let bucket = shared.bucket(repository);
        for (name, id) in all::<Id>(&**tx, &bucket)? {
            remove_node(tx, id)?;
            unset(tx, &bucket, &name)?;
        }
    }
    sweep_facts(tx, &gone)
}

fn keys(tx: &dyn ReadTx, name: &str) -> Result<Vec<String>> {
    let rows = bucket(name).list(tx)?.into_iter();
    Ok(rows.map(|it| it.0).collect())
}
