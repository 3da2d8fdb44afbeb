//! The registry: immutable versions of items, in the store.
//!
//! A version consists of its files, named by their hashes, and its signature. Whoever publishes an id
//! first owns it: later versions must have the same signer. A removed version leaves its hash, so
//! that no other content can take its place.

mod versions;

use super::index::REGISTRY;
use super::package::{FILES_MAX, ITEM_BYTES_MAX, ItemFile, Package, SignatureCheck};
use super::{DeletedItem, ItemFault, ItemResult};
use crate::Kiwi;
use kenning_audit::Tx;
use kenning_core::{Code, Error, Result};
use kenning_items::kind::TOOL_EXTENSIONS;
use kenning_items::{Category, ItemId, ItemType, Layout, Place, Scope as ItemScope};
use kenning_kernel::{Bucket, Caller, Scope, Text};
use kenning_store::ReadTx;
use kenning_text::{hex, json_bytes};
use serde_json::{Value, json};
use versions::{Row, chosen, put_version, rows, show_newest, take_version, versions};

pub(super) const OWNERS: Bucket<Text> = Bucket::new("registry/owners");

/// The name of this store's own registry.
pub(super) const OWN: &str = "kenning";

/// A version of an item, as it is sent between registries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryPackage {
    /// Its type.
    pub item_type: ItemType,
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// The folders above it.
    pub category: String,
    /// Where it was kept when it was signed.
    pub scope: ItemScope,
    /// The file that describes it and has its signature line.
    pub main: String,
    /// All its files.
    pub files: Vec<(String, Vec<u8>)>,
    /// What changed in this version.
    pub changelog: Option<String>,
}

/// A version of an item in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryVersion {
    /// Its number.
    pub version: String,
    /// The hash that was signed.
    pub sha256: String,
    /// The signer.
    pub signer: String,
    /// When it was published.
    pub published_at: String,
    /// What changed in this version.
    pub changelog: Option<String>,
    /// Why it should no longer be used, if it is deprecated.
    pub deprecated: Option<String>,
    /// How large it is.
    pub size_bytes: u64,
}

impl RegistryVersion {
    /// As JSON, for other registries and for programs.
    pub fn to_json(&self) -> Value {
        json!({
            "version": self.version, "integrity": self.sha256, "signer": self.signer,
            "published_at": self.published_at, "changelog": self.changelog,
            "deprecated": self.deprecated, "size_bytes": self.size_bytes,
        })
    }
}

/// The result of publishing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedItem {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// The name of the registry.
    pub registry: String,
    /// Its URL.
    pub url: String,
    /// The hash that was signed.
    pub sha256: String,
}

impl RegistryPackage {
    pub(super) fn of(package: &Package, version: &str, changelog: Option<String>) -> Self {
        Self {
            item_type: package.item_type,
            id: package.id().as_str().to_owned(),
            version: version.to_owned(),
            category: package.category().as_str().to_owned(),
            scope: package.scope,
            main: package.main_name(),
            files: package.files.clone(),
            changelog,
        }
    }

    /// As it would be on disk. Names that lead outside are refused.
    pub(super) fn to_package(&self) -> Result<Package> {
        let id: ItemId = self.id.parse()?;
        let category: Category = self.category.parse()?;
        let place = self.place(id, category)?;
        let bytes: u64 = self.files.iter().map(|it| it.1.len() as u64).sum();
        if self.files.len() > FILES_MAX || bytes > ITEM_BYTES_MAX {
            return Err(Error::new(
                Code::TooLarge,
                format!(
                    "`{}` has {} files and {bytes} bytes",
                    self.id,
                    self.files.len()
                ),
            )
            .hint(format!(
                "the limit is {FILES_MAX} files and {ITEM_BYTES_MAX} bytes"
            )));
        }
        for (name, _) in &self.files {
            check_name(name)?;
        }
        let package = Package {
            item_type: self.item_type,
            scope: self.scope,
            place,
            files: self.files.clone(),
        };
        let is_single = matches!(package.place.layout, Layout::File(_));
        if package.file(&self.main).is_none() || (is_single && self.files.len() != 1) {
            return Err(Error::invalid(format!(
                "`files` of `{}` are not those of one item",
                self.id
            ))
            .hint("give the file that `main` names, and all others of its directory"));
        }
        Ok(package)
    }

    fn place(&self, id: ItemId, category: Category) -> Result<Place> {
        let path = |name: &str| category.join(name);
        let directory = Place::of(self.item_type, &path(&format!("{id}/{}", self.main)));
        let single = Place::of(self.item_type, &path(&self.main));
        let fits = |it: &Place| it.id == id && it.category == category;
        let is_directory = |it: &Place| matches!(it.layout, Layout::Directory(_));
        let place = single
            .filter(|candidate| fits(candidate) && !is_directory(candidate))
            .or_else(|| directory.filter(|candidate| fits(candidate) && is_directory(candidate)));
        place.ok_or_else(|| {
            let extensions = TOOL_EXTENSIONS.join(", ");
            Error::invalid(format!("`main`: `{}` does not describe `{id}`", self.main)).hint(format!(
                "use `{id}.md`, or for a tool `manifest.yaml` or `{id}.` with one of {extensions}"
            ))
        })
    }
}

/// Every segment of a name must be a plain name.
fn check_name(name: &str) -> Result<()> {
    let is_plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part
                .chars()
                .any(|c| c.is_control() || c == '\\' || c == ':')
    };
    if name.len() <= 512 && name.split('/').all(is_plain) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "`files`: `{}` is not a valid file name",
        name.escape_debug()
    ))
    .hint("use relative names without hidden parts"))
}

pub(super) fn not_in_registry(item_type: ItemType, id: &str) -> Box<ItemFault> {
    ItemFault::with(
        Error::new(Code::NotFound, "Item not found in registry").hint(format!(
            "search(item_type='{item_type}', query='{id}', source='registry') finds what is like it"
        )),
        json!({ "item_type": item_type.word(), "item_id": id }),
    )
}

impl Kiwi {
    /// Adds a version to the registry: it must be signed, valid and new.
    pub fn registry_push(
        &self,
        caller: &Caller,
        pushed: &RegistryPackage,
        dry_run: bool,
    ) -> ItemResult<PublishedItem> {
        caller.principal.require(Scope::Write)?;
        let package = pushed.to_package()?;
        let item = package.valid_item()?;
        if item.version() != pushed.version {
            return Err(Error::invalid(format!(
                "`version`: `{}` is not the version of the file, `{}`",
                pushed.version,
                item.version()
            ))
            .hint("write the version into the file and sign it again")
            .into());
        }
        let version = semver::Version::parse(&pushed.version);
        if version.is_ok_and(|version| (version.major, version.minor, version.patch) == (0, 0, 0)) {
            return Err(Error::invalid("`version`: `0.0.0` cannot be published")
                .hint("write a version from 0.0.1 on into the file and sign it again")
                .into());
        }
        let mark = match package.check_signature(&item) {
            SignatureCheck::Signed(mark) => mark,
            SignatureCheck::Changed(fault) => return Err(Error::from(fault).into()),
            _ => {
                let error = format!("`{}` is not signed", pushed.id);
                return Err(Error::new(Code::Conflict, error)
                    .hint("a person who has read it signs it with `kenning kiwi sign`")
                    .into());
            }
        };
        let files: Vec<Value> = package
            .files
            .iter()
            .map(|(path, bytes)| json!({ "path": path, "sha256": hex::sha256(bytes), "bytes": bytes.len() }))
            .collect();
        let row = json!({
            "item_type": pushed.item_type.word(), "id": pushed.id, "version": pushed.version,
            "category": pushed.category, "scope": pushed.scope.word(), "main": pushed.main,
            "files": files, "sha256": mark.sha256, "signer": mark.signer.to_string(),
            "bytes": package.size_bytes(), "changelog": pushed.changelog,
            "at_ms": self.kernel.log().clock().now_ms(), "publisher": publisher(caller),
        });
        let row = Row::of(row);
        let published = PublishedItem {
            id: pushed.id.clone(),
            version: pushed.version.clone(),
            registry: OWN.to_owned(),
            url: format!(
                "/registry/v1/pull/{}/{}?version={}",
                pushed.item_type, pushed.id, pushed.version
            ),
            sha256: mark.sha256.clone(),
        };
        let (signer, sha256) = (mark.signer.to_string(), mark.sha256);
        let work = move |tx: &mut Tx<'_>| -> Result<()> {
            put_version(tx, &package, row, &signer, &sha256)
        };
        if dry_run {
            let (item_type, id, version) =
                (pushed.item_type, pushed.id.clone(), pushed.version.clone());
            let (signer, sha256) = (mark.signer.to_string(), published.sha256.clone());
            self.kernel.log().read(&caller.principal.space, move |tx| {
                check_new(tx, item_type, &id, &version, &signer, &sha256).map(drop)
            })?;
            return Ok(published);
        }
        self.kernel.log().write(&caller.principal.space, work)?;
        Ok(published)
    }

    /// A version with all its files.
    pub fn registry_pull(
        &self,
        caller: &Caller,
        item_type: ItemType,
        id: &str,
        version: Option<&str>,
    ) -> ItemResult<RegistryPackage> {
        caller.principal.require(Scope::Read)?;
        let found = self.kernel.log().read(&caller.principal.space, |tx| {
            let rows = rows(tx, item_type, id)?;
            let Some(row) = chosen(&rows, version) else {
                return Ok(None);
            };
            row.package(tx, item_type, id).map(Some)
        })?;
        found.ok_or_else(|| {
            let mut fault = not_in_registry(item_type, id);
            if let Some(version) = version {
                fault.details.insert("version".to_owned(), version.into());
            }
            fault
        })
    }

    /// All versions of an item, the newest first.
    pub fn registry_versions(
        &self,
        caller: &Caller,
        item_type: ItemType,
        id: &str,
    ) -> ItemResult<Vec<RegistryVersion>> {
        caller.principal.require(Scope::Read)?;
        let rows = self
            .kernel
            .log()
            .read(&caller.principal.space, |tx| rows(tx, item_type, id))?;
        let there: Vec<_> = rows
            .iter()
            .filter(|it| !it.is_removed())
            .map(Row::view)
            .collect();
        if there.is_empty() {
            return Err(not_in_registry(item_type, id));
        }
        Ok(there)
    }

    /// Deprecates a version, or with an empty reason reverts that.
    pub fn registry_deprecate(
        &self,
        caller: &Caller,
        item_type: ItemType,
        id: &str,
        version: &str,
        reason: &str,
    ) -> ItemResult<()> {
        // A token says who may push, not who owns an item: the signature says that.
        caller.principal.require(Scope::Admin)?;
        let missing = not_in_registry(item_type, id);
        let (id, version, reason) = (id.to_owned(), version.to_owned(), reason.to_owned());
        let done = self
            .kernel
            .log()
            .write(&caller.principal.space, move |tx| {
                let bucket = versions(item_type, &id);
                let row = bucket.get_readable(&**tx, &version)?;
                let Some(mut row) = row.filter(|it| !it.is_removed()) else {
                    return Ok(false);
                };
                row.package
                    .insert("deprecated".to_owned(), reason.as_str().into());
                bucket.set(tx, &version, &row)?;
                show_newest(tx, item_type, &id)?;
                let data = json!({
                    "type": item_type.word(), "id": id, "version": version, "reason": reason,
                });
                tx.record("ItemDeprecated", data)?;
                Ok(true)
            })?;
        if done { Ok(()) } else { Err(missing) }
    }

    /// Removes a version, or all of them. A token may remove what it published itself; only the
    /// operator (scope `admin`) may remove what others published.
    pub fn registry_delete(
        &self,
        caller: &Caller,
        item_type: ItemType,
        id: &str,
        version: Option<&str>,
        dry_run: bool,
    ) -> ItemResult<DeletedItem> {
        caller.principal.require(Scope::Destroy)?;
        let versions: Vec<String> = self
            .registry_versions(caller, item_type, id)?
            .into_iter()
            .map(|it| it.version)
            .filter(|it| version.is_none_or(|wanted| wanted == it))
            .collect();
        if versions.is_empty() {
            return Err(not_in_registry(item_type, id));
        }
        if caller.principal.require(Scope::Admin).is_err() {
            self.require_publisher(caller, item_type, id, &versions)?;
        }
        let deleted = DeletedItem {
            from: vec![REGISTRY.to_owned()],
            paths: versions.iter().map(|it| format!("{id}@{it}")).collect(),
        };
        if dry_run {
            return Ok(deleted);
        }
        let id = id.to_owned();
        self.kernel
            .log()
            .write(&caller.principal.space, move |tx| {
                for version in &versions {
                    take_version(tx, item_type, &id, version)?;
                }
                show_newest(tx, item_type, &id)?;
                let data = json!({ "type": item_type.word(), "id": id, "versions": versions });
                tx.record("ItemUnpublished", data).map(drop)
            })?;
        Ok(deleted)
    }
}

impl Kiwi {
    /// Refuses a caller who has not published each of these versions. Versions from before publishers
    /// were recorded belong to the operator.
    fn require_publisher(
        &self,
        caller: &Caller,
        item_type: ItemType,
        id: &str,
        versions: &[String],
    ) -> Result<()> {
        let own = publisher(caller);
        let rows = self
            .kernel
            .log()
            .read(&caller.principal.space, |tx| rows(tx, item_type, id))?;
        let foreign = rows.iter().find(|row| {
            versions.contains(&row.text("version"))
                && (row.text("publisher").is_empty() || row.text("publisher") != own)
        });
        let Some(row) = foreign else {
            return Ok(());
        };
        let version = row.text("version");
        Err(Error::denied(format!(
            "version {version} of the {item_type} `{id}` was not published with this token"
        ))
        .hint("use the token that published it, or one with the scope `admin`"))
    }
}

/// The publisher: a token by its id, which is unique, or the operator.
fn publisher(caller: &Caller) -> String {
    match &caller.principal.token {
        Some(id) => format!("token:{id}"),
        None => "operator".to_owned(),
    }
}

/// Whether this version is new; `false` if the same one exists already.
pub(super) fn check_new(
    tx: &dyn ReadTx,
    item_type: ItemType,
    id: &str,
    version: &str,
    signer: &str,
    sha256: &str,
) -> Result<bool> {
    let owner = OWNERS.get(tx, &format!("{}/{id}", item_type.word()))?;
    if let Some(Text(owner)) = owner.filter(|it| it.0 != signer) {
        return Err(
            Error::denied(format!("the {item_type} `{id}` belongs to {owner}"))
                .hint("publish it under another id, or sign it with that key"),
        );
    }
    match versions(item_type, id).get_readable(tx, version)? {
        None => Ok(true),
        Some(row) if row.is_removed() => Err(Error::conflict(format!(
            "version {version} of `{id}` was published and removed"
        ))
        .hint("the version cannot be used again: give the file a new one")),
        Some(row) if row.text("sha256") != sha256 => Err(Error::conflict(format!(
            "version {version} of `{id}` was published with other content"
        ))
        .hint("a published version does not change: give the file a new version")),
        Some(_) => Ok(false),
    }
}

/// A package as JSON, as it is sent between registries.
impl RegistryPackage {
    /// As it is sent.
    pub fn to_json(&self) -> Value {
        let files: Vec<Value> = self
            .files
            .iter()
            .map(|(path, bytes)| json!({ "path": path, "sha256": hex::sha256(bytes), "content": json_bytes::to_text(bytes) }))
            .collect();
        json!({
            "item_type": self.item_type.word(), "item_id": self.id, "version": self.version,
            "category": self.category, "scope": self.scope.word(), "main": self.main,
            "files": files, "changelog": self.changelog,
        })
    }

    /// Reads what was sent; every file must have the hash that is given for it.
    pub fn of_json(value: &Value) -> Result<Self> {
        let missing = |name: &str| {
            Error::missing(format!("`{name}` is missing or not text"))
                .hint("docs/guides/kiwi.md shows what a push sends")
        };
        let text = |name: &str| {
            let text = value.get(name).and_then(Value::as_str);
            text.map(ToOwned::to_owned).ok_or_else(|| missing(name))
        };
        let mut files: Vec<ItemFile> = Vec::new();
        let sent = value.get("files").and_then(Value::as_array);
        for file in sent.ok_or_else(|| missing("files"))? {
            let field = |name: &str| file.get(name).and_then(Value::as_str);
            let path = field("path").ok_or_else(|| missing("files[].path"))?;
            let content = field("content").and_then(json_bytes::to_bytes);
            let content = content.ok_or_else(|| missing("files[].content"))?;
            if let Some(sha256) = field("sha256").filter(|it| *it != hex::sha256(&content)) {
                return Err(Error::invalid(format!(
                    "`files`: `{path}` does not have the hash {sha256}"
                ))
                .hint("send it again"));
            }
            files.push((path.to_owned(), content));
        }
        Ok(Self {
            item_type: text("item_type")?.parse()?,
            id: text("item_id")?,
            version: text("version")?,
            category: value
                .get("category")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            scope: text("scope")?.parse()?,
            main: text("main")?,
            files,
            changelog: value
                .get("changelog")
                .and_then(Value::as_str)
                .map(ToOwned::to_owned),
        })
    }
}
