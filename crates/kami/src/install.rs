//! Installing, updating and removing tools.

use super::installed::{WASM_BYTES_MAX, file_of, forget_logs};
use super::names;
use super::package::{Found, find, vouched};
use super::record::{InstalledTool, Record, Stored, StoredVersion, VERSIONS_MAX};
use super::trust::trusted;
use crate::Kami;
use kenning_audit::{Draft, Passages, Tx};
use kenning_core::{Error, Kind, Result, Space};
use kenning_kernel::{Caller, Scope};
use kenning_sandbox::manifest::Manifest;
use kenning_sandbox::policy::{asks_more, concerns};
use kenning_sandbox::{Described, Sha256};
use kenning_search::passages;
use kenning_store::{ReadTx, When};
use kenning_vault::{Dir, Lock};
use serde_json::json;
use std::collections::HashSet;
use std::time::Duration;

/// Held while the tools of a space are changed.
const LOCK_FILE: &str = "lock";
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// How to install.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstallOptions {
    /// The expected SHA-256 of the archive.
    pub sha256: Option<String>,
    /// Whether an update may request more than the version before.
    pub allow_more: bool,
    /// Whether an unsigned package is accepted from an archive.
    pub allow_unsigned: bool,
    /// Whether an installed tool is replaced; the old version is kept.
    pub replace: bool,
    /// Whether it may be replaced by an older version.
    pub allow_downgrade: bool,
}

/// The result.
#[derive(Clone, Debug, PartialEq)]
pub struct Installation {
    /// The tool as it is now.
    pub tool: InstalledTool,
    /// The version before, for an update.
    pub before: Option<String>,
    /// Warnings for the operator, a sentence each.
    pub concerns: Vec<String>,
}

impl Kami {
    /// Installs a tool from a directory, its `tool.toml`, a zip archive or an https URL.
    pub fn install_tool(
        &self,
        caller: &Caller,
        source: &str,
        options: &InstallOptions,
    ) -> Result<Installation> {
        caller.principal.require(Scope::Admin)?;
        let found = find(source, options.sha256.as_deref())?;
        self.put_tool(caller, found, options, None)
    }

    /// Installs a tool again from its source, or from another one.
    pub fn update_tool(
        &self,
        caller: &Caller,
        id: &str,
        source: Option<&str>,
        options: &InstallOptions,
    ) -> Result<Installation> {
        caller.principal.require(Scope::Admin)?;
        let record = self.record(caller, id)?;
        if record.stored.pinned {
            return Err(pinned(id, &record.stored.version));
        }
        let from = source.map_or_else(|| record.stored.source.clone(), ToOwned::to_owned);
        let found = find(&from, options.sha256.as_deref())?;
        let options = InstallOptions {
            replace: true,
            ..options.clone()
        };
        self.put_tool(caller, found, &options, Some(id))
    }

    fn put_tool(
        &self,
        caller: &Caller,
        found: Found,
        options: &InstallOptions,
        expected: Option<&str>,
    ) -> Result<Installation> {
        let space = &caller.principal.space;
        let manifest = found.package.manifest.clone();
        let id = manifest.id.clone();
        if let Some(expected) = expected.filter(|it| *it != id) {
            return Err(Error::conflict(format!(
                "the package is the tool `{id}` and not `{expected}`"
            ))
            .hint("install it under its own name"));
        }
        let (version, described) = self.judge(caller, &found, options)?;
        let contradictions =
            self.manifest_contradictions(caller, &manifest, &described, &found.package.wasm)?;
        let now_ms = self.kernel.log().clock().now_ms();
        let (options, source) = (options.clone(), found.source);
        let changing = self.changing(space)?;
        keep_component(&changing.components, &found.package.wasm)?;
        let before = self.kernel.log().write(space, {
            let (manifest, text) = (manifest.clone(), ToolText::of(&manifest));
            move |tx| put(tx, manifest, text, version, &options, source, now_ms)
        });
        // Also removes files of packages that were not accepted.
        self.sweep(space, &changing)?;
        drop(changing);
        let before = before?;
        let tool = self.installed_tool(caller, &id)?;
        let mut concerns = concerns(&manifest.security);
        concerns.extend(contradictions);
        concerns.extend(tool.cut.iter().cloned());
        Ok(Installation {
            tool,
            before,
            concerns,
        })
    }

    /// What would be stored of a package, if the package itself allows it to be installed.
    pub(super) fn judge(
        &self,
        caller: &Caller,
        found: &Found,
        options: &InstallOptions,
    ) -> Result<(StoredVersion, Described)> {
        let (package, policy) = (&found.package, self.wasm_policy()?);
        let id = &package.manifest.id;
        let keys = self.kernel.log().read(&caller.principal.space, trusted)?;
        let is_vouched = vouched(package, &keys)?;
        let has_hash = options.sha256.is_some();
        let may_be_unsigned = policy
            .allow_unsigned(id)
            .unwrap_or(found.is_local || has_hash || options.allow_unsigned);
        if !is_vouched && !may_be_unsigned {
            return Err(Error::denied(format!("`{id}` is not signed by a key that you trust")).hint(
                "give its hash with `--sha256`, trust its author with `kami trust add KEY`, or unpack it and look at it",
            ));
        }
        let (described, digest) = self.compile(caller, &package.wasm)?;
        let signed = package.signed.as_ref().filter(|_| is_vouched);
        let version = StoredVersion {
            manifest: package.manifest_text.clone(),
            sha256: digest.sha256.to_string(),
            bytes: package.wasm.len() as u64,
            artifact: Some(digest.artifact.to_string()),
            signed: signed.map(ToString::to_string),
            abi: StoredVersion::abi_of(&described),
            functions: StoredVersion::functions_of(&described),
        };
        Ok((version, described))
    }

    /// Waits until nobody else on this machine changes the tools of a space. Components are kept
    /// beside the store, so its transactions do not cover them.
    fn changing(&self, space: &Space) -> Result<Changing> {
        let components = self.components(space)?;
        let lock = components.lock(LOCK_FILE, LOCK_WAIT)?;
        Ok(Changing {
            components,
            _lock: lock,
        })
    }

    /// Removes a tool with its own directory. Its history stays.
    pub fn uninstall_tool(&self, caller: &Caller, id: &str) -> Result<InstalledTool> {
        caller.principal.require(Scope::Admin)?;
        let space = &caller.principal.space;
        let changing = self.changing(space)?;
        let record = self.record(caller, id)?;
        let view = record.view(&*self.wasm_policy()?);
        let (node, name, version) = (record.node, id.to_owned(), record.stored.version.clone());
        self.kernel.log().write(space, move |tx| {
            tx.remove_node(node)?;
            names::retire(tx, &record)?;
            forget_logs(tx, &name)?;
            tx.record("ToolRemoved", json!({ "id": name, "version": version }))
                .map(drop)
        })?;
        self.sweep(space, &changing)?;
        if let Err(error) = self.remove_own_dir(space, id) {
            // The tool is removed anyway.
            tracing::warn!("the directory of `{id}` could not be removed: {error}");
        }
        Ok(view)
    }

    fn remove_own_dir(&self, space: &Space, id: &str) -> Result<()> {
        let all = self
            .wasm_dir()?
            .private_subdir(&format!("sandbox/{space}"))?;
        if !all.exists(id)? {
            return Ok(());
        }
        // Opened as its own root, so that nothing in it leads into that of another tool.
        empty(&all.subdir(id)?, ".")?;
        all.remove_dir(id)
    }

    /// Removes components that no tool of the space uses any more.
    fn sweep(&self, space: &Space, changing: &Changing) -> Result<()> {
        let space_tools = self.tools_of(space)?;
        let versions = |it: &std::sync::Arc<Record>| -> Vec<String> {
            let versions = it.stored.versions.values();
            versions.map(|it| file_of(&it.sha256)).collect()
        };
        let used: HashSet<String> = space_tools.tools.iter().flat_map(versions).collect();
        if space_tools.is_partial {
            // If a tool cannot be read, its component is unknown, so nothing is removed.
            return Ok(());
        }
        for file in changing.components.list(".")? {
            let Some(hash) = file.name.strip_suffix(".wasm") else {
                continue;
            };
            if used.contains(&file.name) {
                continue;
            }
            changing.components.remove(&file.name)?;
            if let Some(sha256) = Sha256::from_hex(hash) {
                self.wasm_runtime()?.forget(sha256)?;
            }
        }
        Ok(())
    }

    /// Enables or disables a tool.
    pub fn enable_tool(&self, caller: &Caller, id: &str, enabled: bool) -> Result<InstalledTool> {
        let what = if enabled { "enabled" } else { "disabled" };
        self.change_tool(caller, id, what, move |stored| {
            stored.enabled = enabled;
            Ok(())
        })
    }

    /// Pins a tool to this version or an earlier one, so that updates are refused; or unpins it.
    pub fn pin_tool(
        &self,
        caller: &Caller,
        id: &str,
        version: Option<&str>,
        pinned: bool,
    ) -> Result<InstalledTool> {
        let (version, name) = (version.map(ToOwned::to_owned), id.to_owned());
        self.change_tool(
            caller,
            id,
            if pinned { "pinned" } else { "unpinned" },
            move |stored| {
                if let Some(version) = version {
                    if !stored.versions.contains_key(&version) {
                        let known: Vec<&str> = stored.versions.keys().map(String::as_str).collect();
                        return Err(Error::not_found("version", format!("{name} {version}"))
                            .hint(format!("there are {}", known.join(", "))));
                    }
                    stored.version = version;
                }
                stored.pinned = pinned;
                Ok(())
            },
        )
    }

    fn change_tool(
        &self,
        caller: &Caller,
        id: &str,
        what: &'static str,
        change: impl FnOnce(&mut Stored) -> Result<()> + Send + 'static,
    ) -> Result<InstalledTool> {
        caller.principal.require(Scope::Admin)?;
        let name = id.to_owned();
        self.record(caller, id)?;
        let now_ms = self.kernel.log().clock().now_ms();
        self.kernel
            .log()
            .write(&caller.principal.space, move |tx| {
                let node = tx.node_by_key("", Kind::Tool, &name, When::Now)?;
                let node = node.ok_or_else(|| Error::not_found("tool", &name))?;
                let mut stored = Stored::of(&node)?;
                change(&mut stored)?;
                stored.updated_ms = now_ms;
                let manifest = stored
                    .versions
                    .get(&stored.version)
                    .map(|it| it.manifest.clone());
                let manifest = Manifest::parse(&manifest.unwrap_or_default())?;
                ToolText::of(&manifest).put(tx, &stored)?;
                let data = json!({ "id": name, "change": what, "version": stored.version });
                tx.record("ToolChanged", data).map(drop)
            })?;
        self.installed_tool(caller, id)
    }
}

/// The right to change the tools of a space.
struct Changing {
    components: Dir,
    _lock: Lock,
}

/// Stores a component under its hash. An existing file is the same.
fn keep_component(dir: &Dir, wasm: &[u8]) -> Result<()> {
    let name = file_of(&Sha256::of(wasm).to_string());
    let is_there = dir.exists(&name)? && dir.read(&name, WASM_BYTES_MAX)? == wasm;
    if is_there {
        Ok(())
    } else {
        dir.write_private(&name, wasm)
    }
}

/// Empties a tool's own directory. A symbolic link is removed and not followed.
fn empty(own: &Dir, name: &str) -> Result<()> {
    for entry in own.list(name)? {
        let inner = match name {
            "." => entry.name,
            _ => format!("{name}/{}", entry.name),
        };
        if own.remove(&inner).is_err() {
            empty(own, &inner)?;
            own.remove_dir(&inner)?;
        }
    }
    Ok(())
}

/// The record of the tool that a version belongs to, if the version may be installed beside the
/// existing ones.
pub(super) fn require_accepted(
    tx: &dyn ReadTx,
    manifest: &Manifest,
    version: &StoredVersion,
    options: &InstallOptions,
) -> Result<Option<Stored>> {
    let id = &manifest.id;
    let known = tx.node_by_key("", Kind::Tool, id, When::Now)?;
    let known = known.as_ref().map(Stored::of).transpose()?;
    if let Some(known) = &known {
        if !options.replace {
            return Err(Error::conflict(format!(
                "tool `{id}` v{} is already installed",
                known.version
            ))
            .hint(format!("`kami update {id}` installs the current version")));
        }
        if known.pinned {
            return Err(pinned(id, &known.version));
        }
        if !options.allow_downgrade && is_older(&manifest.version, &known.version) {
            return Err(Error::conflict(format!(
                "`{id}` {} is older than {}, which is installed",
                manifest.version, known.version
            ))
            .hint(format!(
                "`--downgrade` installs it anyway; `kami pin {id} VERSION` goes back to a version that was installed before"
            )));
        }
        let running = known.versions.get(&known.version);
        let old = running
            .map(|it| Manifest::parse(&it.manifest))
            .transpose()?;
        let more = old
            .map(|it| asks_more(&it.security, &manifest.security))
            .unwrap_or_default();
        if !more.is_empty() && !options.allow_more {
            return Err(Error::denied(format!(
                "`{id}` {} requests more: {}",
                manifest.version,
                more.join("; ")
            ))
            .hint("look at what is new; `--allow` grants it"));
        }
    }
    names::require_clear(tx, id, version, options.allow_more)?;
    Ok(known)
}

/// Writes the version, and returns the one that it replaces.
fn put(
    tx: &mut Tx<'_>,
    manifest: Manifest,
    text: ToolText,
    version: StoredVersion,
    options: &InstallOptions,
    source: String,
    now_ms: u64,
) -> Result<Option<String>> {
    let known = require_accepted(&**tx, &manifest, &version, options)?;
    let (id, name) = (manifest.id.clone(), manifest.version.to_string());
    let sha256 = version.sha256.clone();
    names::take(tx, &id, &version)?;
    let (stored, before) = match known {
        None => {
            let stored = Stored {
                version: name.clone(),
                enabled: true,
                pinned: false,
                source,
                installed_ms: now_ms,
                updated_ms: now_ms,
                versions: [(name.clone(), version)].into(),
            };
            (stored, None)
        }
        Some(mut known) => {
            let before = known.version.clone();
            known.version = name.clone();
            known.source = source;
            known.updated_ms = now_ms;
            known.versions.insert(name.clone(), version);
            forget_oldest(&mut known);
            (known, Some(before))
        }
    };
    text.put(tx, &stored)?;
    let kind = if before.is_some() {
        "ToolUpdated"
    } else {
        "ToolInstalled"
    };
    tx.record(
        kind,
        json!({ "id": id, "version": name, "sha256": sha256, "before": before }),
    )?;
    Ok(before)
}

fn is_older(version: &semver::Version, than: &str) -> bool {
    semver::Version::parse(than).is_ok_and(|than| *version < than)
}

fn pinned(id: &str, version: &str) -> Error {
    Error::conflict(format!("`{id}` is pinned to {version}"))
        .hint(format!("`kami pin {id} --unpin` lets it be updated"))
}

fn forget_oldest(stored: &mut Stored) {
    let order = |it: &str| semver_key(it);
    while stored.versions.len() > VERSIONS_MAX {
        let oldest = stored
            .versions
            .keys()
            .filter(|it| **it != stored.version)
            .min_by_key(|it| order(it))
            .cloned();
        match oldest {
            Some(oldest) => drop(stored.versions.remove(&oldest)),
            None => break,
        }
    }
}

/// Sorts versions by their numbers and not as text.
fn semver_key(version: &str) -> Vec<u64> {
    let numbers = version.split(['.', '-', '+']).take(3);
    numbers.map(|it| it.parse().unwrap_or(0)).collect()
}

/// What a tool's node says, cut into passages before the transaction that puts it.
struct ToolText {
    id: String,
    title: String,
    body: String,
    passages: Passages,
}

impl ToolText {
    fn of(manifest: &Manifest) -> Self {
        let mut body = format!("{}\n\n{}", manifest.id, manifest.description);
        for it in &manifest.arguments {
            body += &format!("\n{}: {}", it.name, it.description);
        }
        Self {
            id: manifest.id.clone(),
            title: manifest.name.clone(),
            passages: passages(&manifest.name, &body).into(),
            body,
        }
    }

    fn put(self, tx: &mut Tx<'_>, stored: &Stored) -> Result<()> {
        let node = tx.put_node(Draft {
            kind: Kind::Tool,
            project: String::new(),
            key: self.id,
            title: self.title,
            body: self.body,
            props: stored.to_props()?,
        })?;
        tx.put_hashed_passages(node.id, &self.passages)
    }
}
