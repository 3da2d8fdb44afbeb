//! Publishing local items, and loading items from the registry.

use super::index::Page;
use super::item_dirs::ItemDir;
use super::package::{Package, SignatureCheck};
use super::registry::{PublishedItem, RegistryPackage};
use super::write::Writing;
use super::{DeletedItem, ItemFault, ItemResult, ItemSource, ItemTarget, not_found};
use crate::Kiwi;
use kenning_core::{Code, Error, Result};
use kenning_items::Scope as ItemScope;
use kenning_kernel::{Bucket, Caller, Scope, Text};
use serde_json::json;

/// The hashes of items when they were loaded, by their paths.
const LOADED: Bucket<Text> = Bucket::new("items/loaded");

/// Where an item is loaded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadFrom {
    /// From the registry.
    Registry,
    /// From the project or the user's own directory.
    Local(ItemScope),
}

/// What to load.
#[derive(Clone, Debug)]
pub struct LoadItem {
    /// The item.
    pub target: ItemTarget,
    /// From where.
    pub from: LoadFrom,
    /// The destination.
    pub destination: ItemScope,
    /// The version; the newest if not given.
    pub version: Option<String>,
    /// Whether a file with local changes is replaced.
    pub force: bool,
}

/// The result of loading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedItem {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// The destination.
    pub destination: ItemScope,
    /// The path of its file or directory.
    pub path: String,
    /// The size of all its files.
    pub size_bytes: u64,
    /// The signer.
    pub signer: String,
    /// Whether it existed already and is unchanged.
    pub is_unchanged: bool,
}

impl Kiwi {
    /// Publishes a signed item.
    pub fn publish_item(
        &self,
        caller: &Caller,
        target: &ItemTarget,
        version: Option<&str>,
        changelog: Option<String>,
    ) -> ItemResult<PublishedItem> {
        caller.principal.require(Scope::Write)?;
        let project = self.item_project(caller, target.project_path.as_deref())?;
        let item_dirs = self.item_dirs(caller, target.item_type, project.as_ref())?;
        let found = self.locate(&item_dirs, &target.id)?;
        let (item_dir, package) = found.ok_or_else(|| not_found(target.item_type, &target.id))?;
        let item = package.valid_item()?;
        if let Some(version) = version.filter(|it| *it != item.version()) {
            return Err(Error::invalid(format!(
                "`version`: `{version}` is not the version of the file, `{}`",
                item.version()
            ))
            .hint("write the version into the file and sign it again")
            .into());
        }
        if self
            .require_signed(caller, &package, &item_dir, &item)?
            .is_none()
        {
            let error = format!("`{}` is not signed", target.id);
            let (kind, scope) = (target.item_type, item_dir.scope);
            let solution = self.how_to_sign(caller, kind, &target.id, scope)?;
            return Err(Error::new(Code::Conflict, error).hint(solution).into());
        }
        let pushed = RegistryPackage::of(&package, item.version(), changelog);
        match self.remote_registry()? {
            // What is sent to another registry can only be checked there.
            Some(_) if target.dry_run => self.registry_push(caller, &pushed, true),
            Some(remote) => {
                let done = remote.push(&pushed)?;
                let data = json!({
                    "type": pushed.item_type.word(), "id": done.id, "version": done.version,
                    "sha256": done.sha256, "registry": done.registry,
                });
                self.kernel
                    .log()
                    .write(&caller.principal.space, move |tx| {
                        tx.record("ItemPublished", data).map(drop)
                    })?;
                Ok(done)
            }
            None => self.registry_push(caller, &pushed, target.dry_run),
        }
    }

    /// Loads an item: everything is checked before a byte is written.
    pub fn load_item(&self, caller: &Caller, what: &LoadItem) -> ItemResult<LoadedItem> {
        caller.principal.require(Scope::Write)?;
        let LoadItem { target, .. } = what;
        let project = self.item_project(caller, target.project_path.as_deref())?;
        let is_missing = what.destination == ItemScope::Project && target.project_path.is_none();
        if is_missing {
            return Err(
                Error::missing("`project_path` is required if `destination` is `project`")
                    .hint("give the absolute path of the project, or use `user`")
                    .into(),
            );
        }
        let mut package = match what.from {
            LoadFrom::Registry => {
                let version = what.version.as_deref();
                let pulled = match self.remote_registry()? {
                    Some(remote) => remote.pull(target.item_type, &target.id, version)?,
                    None => self.registry_pull(caller, target.item_type, &target.id, version)?,
                };
                pulled.to_package()?
            }
            LoadFrom::Local(scope) => {
                let mut item_dirs = self.item_dirs(caller, target.item_type, project.as_ref())?;
                item_dirs.retain(|it| it.scope == scope);
                let found = self.locate(&item_dirs, &target.id)?;
                found
                    .ok_or_else(|| not_found(target.item_type, &target.id))?
                    .1
            }
        };
        let item = package.valid_item()?;
        let version = item.version().to_owned();
        if let Some(wanted) = what
            .version
            .as_deref()
            .filter(|it| *it != "latest" && *it != version)
        {
            return Err(ItemFault::with(
                Error::new(
                    Code::NotFound,
                    format!("`{}` has the version {version}, not {wanted}", target.id),
                )
                .hint("load it from the registry"),
                json!({ "item_type": target.item_type.word(), "item_id": target.id }),
            ));
        }
        let checked = package.check_signature(&item);
        let signer = self.trusted_signer(caller, &target.id, checked)?;
        if package.scope != what.destination {
            // The signature covers where an item is kept. Here it is kept elsewhere, so this node
            // signs it for its new place.
            package.scope = what.destination;
            self.sign_package(&mut package, &version)?;
        }
        let item_dir = if target.dry_run {
            self.item_dirs(caller, target.item_type, project.as_ref())?
                .into_iter()
                .find(|it| it.scope == what.destination)
        } else {
            let made =
                self.item_dir_for(caller, target.item_type, what.destination, project.as_ref())?;
            Some(made)
        };
        let Some(item_dir) = item_dir else {
            return Ok(loaded(&package, None, &version, signer, false));
        };
        let before = self
            .locate(std::slice::from_ref(&item_dir), &target.id)?
            .map(|it| it.1);
        let hash = package.subject(&version).sha256();
        // Another file with this id may be exactly where this one goes.
        let there = Package::read(&item_dir, &package.place).ok();
        let there = there.filter(|it| {
            before
                .as_ref()
                .is_none_or(|before| before.place != it.place)
        });
        if let Some(there) = &there
            && !what.force
            && unmarked(there) != Some(hash.clone())
            && !self.is_as_loaded(caller, &item_dir, there)?
        {
            return Err(changed_here(there, &item_dir));
        }
        if let Some(before) = &before {
            let is_same = before.place == package.place && unmarked(before) == Some(hash.clone());
            if is_same {
                return Ok(loaded(&package, Some(&item_dir), &version, signer, true));
            }
            if !what.force && !self.is_as_loaded(caller, &item_dir, before)? {
                return Err(changed_here(before, &item_dir));
            }
        }
        if target.dry_run {
            return Ok(loaded(&package, Some(&item_dir), &version, signer, false));
        }
        let done = loaded(&package, Some(&item_dir), &version, signer, false);
        let event = json!({
            "type": target.item_type.word(), "id": done.id, "version": version, "path": done.path,
            "sha256": hash, "signer": done.signer, "from": match what.from {
                LoadFrom::Registry => "registry",
                LoadFrom::Local(scope) => scope.word(),
            },
        });
        self.write_item(
            caller,
            &item_dir,
            Writing {
                before: before.as_ref(),
                after: Some((&package, Page::of(&item_dir, &package))),
                event: ("ItemLoaded", event),
            },
        )?;
        let path = done.path.clone();
        self.kernel
            .log()
            .write(&caller.principal.space, move |tx| {
                LOADED.set(tx, &path, &hash.into())
            })?;
        Ok(done)
    }

    /// The signer, if the signature is valid and the key is trusted.
    fn trusted_signer(
        &self,
        caller: &Caller,
        id: &str,
        checked: SignatureCheck,
    ) -> ItemResult<String> {
        match checked {
            SignatureCheck::Signed(mark) => {
                if self.is_trusted(caller, &mark.signer)? {
                    return Ok(mark.signer.to_string());
                }
                Err(ItemFault::with(
                    Error::new(
                        Code::Conflict,
                        format!("`{id}` is signed by a key that you do not trust"),
                    )
                    .hint(super::trust::trust_command(&mark.signer)),
                    json!({ "signer": mark.signer.to_string() }),
                ))
            }
            SignatureCheck::Changed(fault) => Err(Error::from(fault).into()),
            _ => Err(Error::new(Code::Conflict, format!("`{id}` is not signed"))
                .hint("a person who has read it signs it with `kenning kiwi sign` in its own place")
                .into()),
        }
    }

    /// Whether an item is unchanged since it was loaded, so that nothing is lost when it is replaced.
    fn is_as_loaded(&self, caller: &Caller, item_dir: &ItemDir, package: &Package) -> Result<bool> {
        let path = package.path_on(item_dir).to_string_lossy().into_owned();
        let loaded = self
            .kernel
            .log()
            .read(&caller.principal.space, |tx| LOADED.get_readable(tx, &path))?;
        let loaded = loaded.map(|it| it.0);
        Ok(loaded.is_some() && loaded == unmarked(package))
    }

    /// Removes an item from the registry.
    fn unpublish(&self, caller: &Caller, target: &ItemTarget) -> ItemResult<DeletedItem> {
        caller.principal.require(Scope::Destroy)?;
        let (kind, id) = (target.item_type, target.id.as_str());
        let Some(remote) = self.remote_registry()? else {
            return self.registry_delete(caller, kind, id, None, target.dry_run);
        };
        let paths = match target.dry_run {
            true => vec![id.to_owned()],
            false => remote.delete(kind, id)?,
        };
        Ok(DeletedItem {
            from: vec!["registry".to_owned()],
            paths,
        })
    }

    /// Deletes an item from where the caller says.
    pub fn delete_item(
        &self,
        caller: &Caller,
        target: &ItemTarget,
        source: ItemSource,
    ) -> ItemResult<DeletedItem> {
        let local = match source {
            ItemSource::Registry | ItemSource::OwnRegistry => None,
            _ => Some(self.delete_local_item(caller, target)),
        };
        let registry = match source {
            ItemSource::Local => None,
            _ => Some(self.unpublish(caller, target)),
        };
        match (local, registry) {
            (Some(done), None) | (None, Some(done)) => done,
            // An item that exists in one place only is deleted there.
            (Some(Ok(mut done)), Some(Ok(more))) => {
                done.from.extend(more.from);
                done.paths.extend(more.paths);
                Ok(done)
            }
            (Some(Ok(done)), Some(Err(fault))) | (Some(Err(fault)), Some(Ok(done)))
                if fault.error.code == Code::NotFound =>
            {
                Ok(done)
            }
            (Some(Err(fault)), _) | (_, Some(Err(fault))) => Err(fault),
            (None, None) => Err(not_found(target.item_type, &target.id)),
        }
    }
}

/// The hash of an item without its signature line.
fn unmarked(package: &Package) -> Option<String> {
    let item = package.item().ok()?;
    Some(package.subject(item.version()).sha256())
}

fn loaded(
    package: &Package,
    item_dir: Option<&ItemDir>,
    version: &str,
    signer: String,
    is_unchanged: bool,
) -> LoadedItem {
    let path = item_dir.map(|it| package.path_on(it).to_string_lossy().into_owned());
    LoadedItem {
        id: package.id().as_str().to_owned(),
        version: version.to_owned(),
        destination: package.scope,
        path: path.unwrap_or_else(|| package.root()),
        size_bytes: package.size_bytes(),
        signer,
        is_unchanged,
    }
}

fn changed_here(package: &Package, item_dir: &ItemDir) -> Box<ItemFault> {
    let path = package.path_on(item_dir).to_string_lossy().into_owned();
    ItemFault::with(
        Error::conflict(format!(
            "`{path}` was made or changed here and would be lost"
        ))
        .hint(
            "whoever changed it decides: keep a copy of it elsewhere, or go without the new version",
        ),
        json!({
            "path": path,
            "solution": "Ask whoever changed it. With a copy kept elsewhere, `force` replaces it.",
        }),
    )
}
