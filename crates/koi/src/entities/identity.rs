//! Who is said to be one, and who is not.
//!
//! A merge says that two entities are one: the graph then has the second alone, with everything that is
//! stated of both, and the first one's URI and names lead there. It is kept beside the statements and not
//! in them, so that taking it back gives both again as they would be without it. A veto says that a label
//! does not mean an entity, however alike they are.

use super::resolve::by_uri;
use super::said::count_said;
use super::{kind, proof};
use crate::Koi;
use kenning_audit::Tx;
use kenning_core::{Code, Error, Kind, Result};
use kenning_entities::names::normalized;
use kenning_kernel::{Bucket, Caller, Mark, Scope};
use kenning_store::{Node, ReadTx, When};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// Merges, by the URI of the merged entity.
const MERGED: Bucket<Row> = Bucket::new(MERGED_ROWS);
/// The name of that bucket.
pub(super) const MERGED_ROWS: &str = "entities/merged";
/// Which label does not mean whom: the URI, a line end, the label's key.
pub(super) const VETOES: Bucket<Mark> = Bucket::new("entities/vetoes");

/// One entity that was merged into another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedEntity {
    /// The URI that leads to the other entity now.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// The URI of the other one.
    pub into: String,
    /// The name of the other one; empty if it does not exist any more.
    pub into_name: String,
}

/// A label that does not mean an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Veto {
    /// The label's key.
    pub label: String,
    /// The entity's URI.
    pub uri: String,
    /// The entity's name; empty if it does not exist any more.
    pub name: String,
}

/// All merges and vetoes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identities {
    /// By the URI of the merged entity.
    pub merged: Vec<MergedEntity>,
    /// By the URI of the vetoed entity.
    pub vetoes: Vec<Veto>,
}

#[derive(Serialize, Deserialize)]
struct Row {
    into: String,
    name: String,
}

/// A merge that is stored together with the statement of the merged entity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NewMerge {
    /// The URI of the merged entity.
    pub(super) uri: String,
    pub(super) name: String,
    /// The URI of the remaining entity.
    pub(super) into: String,
}

/// Stores a merge.
pub(super) fn put_merge(tx: &mut Tx<'_>, merge: &NewMerge) -> Result<()> {
    let NewMerge { uri, name, into } = merge;
    refuse_vetoed(&**tx, name, into)?;
    let row = Row {
        into: into.clone(),
        name: name.clone(),
    };
    MERGED.set(tx, uri, &row)?;
    count_said(tx)?;
    let data = json!({ "uri": uri, "name": name, "into": into });
    tx.record(proof::MERGED, data).map(drop)
}

/// An error if a name has a veto for an entity.
fn refuse_vetoed(tx: &dyn ReadTx, name: &str, uri: &str) -> Result<()> {
    if !is_vetoed(tx, &normalized(name), uri)? {
        return Ok(());
    }
    let message = format!("somebody said that \"{name}\" does not mean `{uri}`");
    Err(Error::new(Code::Conflict, message)
        .hint("take that veto back first: `kenning koi veto --undo`"))
}

/// Which URI was merged into which.
pub(super) fn merged_uris(tx: &dyn ReadTx) -> Result<BTreeMap<String, String>> {
    Ok(rows(tx)?
        .into_iter()
        .map(|(uri, row)| (uri, row.into))
        .collect())
}

/// The entity that a URI was merged into.
pub(super) fn merged_into(tx: &dyn ReadTx, uri: &str) -> Result<Option<String>> {
    Ok(MERGED.get(tx, uri)?.map(|it| it.into))
}

fn rows(tx: &dyn ReadTx) -> Result<Vec<(String, Row)>> {
    MERGED.list(tx)
}

/// Whether a label has a veto for this entity.
pub(super) fn is_vetoed(tx: &dyn ReadTx, key: &str, uri: &str) -> Result<bool> {
    VETOES.has(tx, &veto_key(uri, key))
}

fn veto_key(uri: &str, label_key: &str) -> String {
    format!("{uri}\n{label_key}")
}

impl Koi {
    /// Merges the first entity into the second.
    pub fn merge_entities(&self, caller: &Caller, from: &str, into: &str) -> Result<MergedEntity> {
        self.kernel.may_write(caller)?;
        self.follow_entities(caller)?;
        let space = &caller.principal.space;
        let (from, into) = self.read_naming(space, |tx, meanings| {
            let named = |name: &str| {
                let node = self.entity_in(space, tx, meanings, name)?;
                node.ok_or_else(|| {
                    Error::not_found("entity", name.to_owned())
                        .hint("`koi_search` finds entities by any words")
                })
            };
            Ok((named(from)?, named(into)?))
        })?;
        if from.id == into.id {
            return Err(
                Error::new(Code::Conflict, format!("both names mean `{}`", into.key))
                    .hint("they are one already; `kenning koi merged` lists merges"),
            );
        }
        if kind(&from) != kind(&into) {
            let (a, b) = (kind(&from), kind(&into));
            return Err(Error::invalid(format!(
                "cannot merge: `{}` is a {a}, `{}` a {b}",
                from.title, into.title
            ))
            .hint("only entities of one type can be one: mend the type in its note first"));
        }
        let merged = MergedEntity {
            uri: from.key.clone(),
            name: from.title.clone(),
            into: into.key.clone(),
            into_name: into.title.clone(),
        };
        self.kernel.log().write(space, move |tx| {
            for node in [&from, &into] {
                still_there(&**tx, node)?;
            }
            refuse_vetoed(&**tx, &into.title, &from.key)?;
            let merge = NewMerge {
                uri: from.key,
                name: from.title,
                into: into.key,
            };
            put_merge(tx, &merge)
        })?;
        self.follow_entities(caller)?;
        Ok(merged)
    }

    /// Reverts a merge, by the URI or the name of the merged entity.
    pub fn unmerge_entity(&self, caller: &Caller, from: &str) -> Result<MergedEntity> {
        self.kernel.may_write(caller)?;
        let space = &caller.principal.space;
        let wanted = from.trim().to_owned();
        let merged = self.kernel.log().write(space, move |tx| {
            let key = normalized(&wanted);
            let is_meant = |it: &(String, Row)| it.0 == wanted || normalized(&it.1.name) == key;
            let mut found: Vec<_> = rows(&**tx)?.into_iter().filter(is_meant).collect();
            let (Some((uri, row)), true) = (found.pop(), found.is_empty()) else {
                return Err(match found.is_empty() {
                    true => Error::not_found("merged entity", wanted)
                        .hint("`kenning koi merged` lists merges"),
                    false => {
                        Error::invalid(format!("several entities called \"{wanted}\" were merged"))
                            .hint("name one by its URI; `kenning koi merged` lists them")
                    }
                });
            };
            MERGED.unset(tx, &uri)?;
            count_said(tx)?;
            let data = json!({ "uri": uri, "name": row.name, "from": row.into });
            tx.record(proof::UNMERGED, data)?;
            Ok(MergedEntity {
                into_name: name_of(&**tx, &row.into)?,
                uri,
                name: row.name,
                into: row.into,
            })
        })?;
        self.follow_entities(caller)?;
        Ok(merged)
    }

    /// Vetoes that a label, or the name of an entity, means an entity; `is_undone` reverts that.
    pub fn veto_entity(
        &self,
        caller: &Caller,
        label: &str,
        entity: &str,
        is_undone: bool,
    ) -> Result<Veto> {
        self.kernel.may_write(caller)?;
        self.follow_entities(caller)?;
        let space = &caller.principal.space;
        let (label, uri, name) = self.read_naming(space, |tx, meanings| {
            let named = by_uri(tx, label.trim())?.map(|it| it.title);
            let label = normalized(&named.unwrap_or_else(|| label.to_owned()));
            // A veto can be reverted after its entity is gone.
            let node = match self.entity_in(space, tx, meanings, entity) {
                Err(error) if is_undone && error.code == Code::NotFound => None,
                node => node?,
            };
            let own = node.as_ref().map(|it| normalized(&it.title));
            if !is_undone && own.as_ref() == Some(&label) {
                let message = format!("\"{label}\" is the entity's own name");
                return Err(Error::new(Code::Conflict, message).hint(
                    "mend the name in its note, or take a merge back: `kenning koi merged`",
                ));
            }
            let (uri, name) = match node {
                Some(node) => (node.key, node.title),
                None => (entity.trim().to_owned(), String::new()),
            };
            Ok((label, uri, name))
        })?;
        if label.is_empty() {
            return Err(Error::invalid("`label` is empty").hint("give a name or a URI"));
        }
        let veto = Veto {
            label: label.clone(),
            uri: uri.clone(),
            name,
        };
        self.kernel.log().write(space, move |tx| {
            let key = veto_key(&uri, &label);
            let is_there = VETOES.has(&**tx, &key)?;
            let data = json!({ "label": label, "uri": uri });
            match (is_undone, is_there) {
                (false, true) => return Ok(()),
                (false, false) => {
                    if by_uri(&**tx, &uri)?.is_none() {
                        return Err(Error::not_found("entity", uri));
                    }
                    VETOES.set(tx, &key, &Mark)?;
                    tx.record(proof::VETOED, data)?;
                }
                (true, false) => {
                    return Err(Error::not_found("veto", format!("{label} {uri}"))
                        .hint("`kenning koi merged` lists vetoes too"));
                }
                (true, true) => {
                    VETOES.unset(tx, &key)?;
                    tx.record(proof::VETO_UNDONE, data)?;
                }
            }
            Ok(())
        })?;
        Ok(veto)
    }

    /// All merges and vetoes.
    pub fn entity_identities(&self, caller: &Caller) -> Result<Identities> {
        caller.principal.require(Scope::Read)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            let mut all = Identities::default();
            for (uri, row) in rows(tx)? {
                all.merged.push(MergedEntity {
                    uri,
                    name: row.name,
                    into_name: name_of(tx, &row.into)?,
                    into: row.into,
                });
            }
            for key in VETOES.keys(tx)? {
                if let Some((uri, label)) = key.split_once('\n') {
                    all.vetoes.push(Veto {
                        label: label.to_owned(),
                        uri: uri.to_owned(),
                        name: name_of(tx, uri)?,
                    });
                }
            }
            Ok(all)
        })
    }
}

/// The name of an entity; empty if it does not exist.
fn name_of(tx: &dyn ReadTx, uri: &str) -> Result<String> {
    let node = by_uri(tx, uri)?;
    Ok(node.map(|it| it.title).unwrap_or_default())
}

/// Another process may have merged or removed it meanwhile.
fn still_there(tx: &dyn ReadTx, node: &Node) -> Result<()> {
    match tx.node_by_key("", Kind::Entity, &node.key, When::Now)? {
        Some(_) => Ok(()),
        None => Err(Error::new(
            Code::Conflict,
            format!("`{}` has just been changed by somebody else", node.key),
        )
        .hint("look again, and call again")),
    }
}
