//! The versions of an item in the registry, as rows of the store.

use super::{OWNERS, RegistryPackage, RegistryVersion, check_new};
use crate::index::{Page, REGISTRY, draft_of, remove};
use crate::package::{ItemFile, Package};
use kenning_audit::Tx;
use kenning_core::{Error, Kind, Result};
use kenning_items::ItemType;
use kenning_kernel::{Bucket, Raw, RowCodec, timestamp};
use kenning_store::{ReadTx, When};
use kenning_text::hex;
use serde_json::{Map, Value, json};

/// A row of the table of versions.
pub(super) struct Row {
    pub(super) package: Map<String, Value>,
}

impl RowCodec for Row {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        self.package.to_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let package = Map::from_bytes(bytes)?;
        Some(Self { package })
    }
}

impl Row {
    /// What this object says.
    pub(super) fn of(package: Value) -> Self {
        let package = match package {
            Value::Object(package) => package,
            _ => Map::new(),
        };
        Self { package }
    }

    pub(super) fn text(&self, name: &str) -> String {
        let text = self.package.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    }

    pub(super) fn is_removed(&self) -> bool {
        self.package.get("removed") == Some(&Value::Bool(true))
    }

    pub(super) fn files(&self) -> Vec<(String, String)> {
        let files = self.package.get("files").and_then(Value::as_array);
        let pair = |it: &Value| {
            Some((
                it.get("path")?.as_str()?.to_owned(),
                it.get("sha256")?.as_str()?.to_owned(),
            ))
        };
        files.into_iter().flatten().filter_map(pair).collect()
    }

    /// The version with its files, each of which must match its hash.
    pub(super) fn package(
        &self,
        tx: &dyn ReadTx,
        item_type: ItemType,
        id: &str,
    ) -> Result<RegistryPackage> {
        let mut files: Vec<ItemFile> = Vec::new();
        for (path, sha256) in self.files() {
            let bytes = blobs(item_type, id).get(tx, &sha256)?;
            let bytes = bytes
                .map(|it| it.0)
                .filter(|it| hex::sha256(it) == sha256)
                .ok_or_else(|| {
                    Error::corrupt(format!(
                        "`{path}` of `{id}` does not match its published hash"
                    ))
                    .hint("publish another version")
                })?;
            files.push((path, bytes));
        }
        Ok(RegistryPackage {
            item_type,
            id: id.to_owned(),
            version: self.text("version"),
            category: self.text("category"),
            scope: self.text("scope").parse()?,
            main: self.text("main"),
            files,
            changelog: Some(self.text("changelog")).filter(|it| !it.is_empty()),
        })
    }

    pub(super) fn view(&self) -> RegistryVersion {
        let some = |name: &str| Some(self.text(name)).filter(|it| !it.is_empty());
        RegistryVersion {
            version: self.text("version"),
            sha256: self.text("sha256"),
            signer: self.text("signer"),
            published_at: timestamp(
                self.package
                    .get("at_ms")
                    .and_then(Value::as_u64)
                    .unwrap_or(0),
            ),
            changelog: some("changelog"),
            deprecated: some("deprecated"),
            size_bytes: self
                .package
                .get("bytes")
                .and_then(Value::as_u64)
                .unwrap_or(0),
        }
    }
}

/// The rows of an item by version. Each item has its own bucket, so that a large registry is as fast
/// as a small one.
pub(super) fn versions(item_type: ItemType, id: &str) -> Bucket<Row> {
    Bucket::named(format!("registry/versions/{}/{id}", item_type.word()))
}

/// The files of an item by their hashes.
pub(super) fn blobs(item_type: ItemType, id: &str) -> Bucket<Raw> {
    Bucket::named(format!("registry/blobs/{}/{id}", item_type.word()))
}

pub(super) fn node_key(item_type: ItemType, id: &str) -> String {
    format!("{REGISTRY}/{}/{id}", item_type.word())
}

/// Rows of an item, the newest version first.
pub(super) fn rows(tx: &dyn ReadTx, item_type: ItemType, id: &str) -> Result<Vec<Row>> {
    let all = versions(item_type, id).list_readable(tx)?;
    let mut rows: Vec<Row> = all.into_iter().map(|it| it.1).collect();
    rows.sort_by_cached_key(|it| {
        std::cmp::Reverse(semver::Version::parse(&it.text("version")).ok())
    });
    Ok(rows)
}

/// The requested version, otherwise the newest one that is not deprecated.
pub(super) fn chosen<'a>(rows: &'a [Row], version: Option<&str>) -> Option<&'a Row> {
    let mut there = rows.iter().filter(|it| !it.is_removed());
    match version {
        Some(version) if version != "latest" => there.find(|it| it.text("version") == version),
        _ => {
            let usable = there.clone().find(|it| it.text("deprecated").is_empty());
            usable.or_else(|| there.next())
        }
    }
}

pub(super) fn put_version(
    tx: &mut Tx<'_>,
    package: &Package,
    row: Row,
    signer: &str,
    sha256: &str,
) -> Result<()> {
    let (item_type, id) = (package.item_type, package.id().as_str());
    let version = &row.text("version");
    if !check_new(&**tx, item_type, id, version, signer, sha256)? {
        return Ok(());
    }
    for (_, bytes) in &package.files {
        let blob = Raw(bytes.clone());
        blobs(item_type, id).set(tx, &hex::sha256(bytes), &blob)?;
    }
    OWNERS.set(tx, &format!("{}/{id}", item_type.word()), &signer.into())?;
    versions(item_type, id).set(tx, version, &row)?;
    show_newest(tx, item_type, id)?;
    let data = json!({
        "type": item_type.word(), "id": id, "version": version, "sha256": sha256,
        "signer": signer, "changelog": row.package.get("changelog"),
    });
    tx.record("ItemPublished", data).map(drop)
}

/// Of a removed version only its hash is kept.
pub(super) fn take_version(
    tx: &mut Tx<'_>,
    item_type: ItemType,
    id: &str,
    version: &str,
) -> Result<()> {
    let bucket = versions(item_type, id);
    let Some(mut row) = bucket.get_readable(&**tx, version)? else {
        return Ok(());
    };
    let files = row.files();
    row.package.insert("removed".to_owned(), true.into());
    row.package.insert("files".to_owned(), json!([]));
    bucket.set(tx, version, &row)?;
    // The same bytes may be part of another version.
    let others = bucket.list_readable(&**tx)?.into_iter();
    let others = others.flat_map(|it| it.1.files());
    let used: std::collections::HashSet<String> = others.map(|it| it.1).collect();
    for (_, sha256) in files.into_iter().filter(|it| !used.contains(&it.1)) {
        blobs(item_type, id).unset(tx, &sha256)?;
    }
    Ok(())
}

/// Updates the node that search finds: the newest version, or none.
pub(super) fn show_newest(tx: &mut Tx<'_>, item_type: ItemType, id: &str) -> Result<()> {
    let all = rows(&**tx, item_type, id)?;
    let key = node_key(item_type, id);
    let Some(row) = chosen(&all, None) else {
        if let Some(node) = tx.node_by_key("", Kind::Item, &key, When::Now)? {
            remove(tx, node.id)?;
        }
        return Ok(());
    };
    let pulled = row.package(&**tx, item_type, id)?;
    let mut draft = draft_of(&pulled.to_package()?);
    draft.key = key;
    draft.props.insert("source".to_owned(), REGISTRY.into());
    if !row.text("deprecated").is_empty() {
        draft
            .props
            .insert("deprecated".to_owned(), row.text("deprecated").into());
    }
    Page::found_by(draft).write(tx).map(drop)
}
