//! A package, before anything of it is believed: read, checked, signed.

use super::InstallOptions;
use super::install::require_accepted;
use super::record::{ArgumentView, Granted, InstalledTool, arguments};
use super::trust::public_key;
use crate::Kami;
use kenning_audit::Signer;
use kenning_core::{Code, Error, Hash, Result};
use kenning_egress::{Egress, Limits, Policy, Request};
use kenning_kernel::{Caller, Scope};
use kenning_sandbox::Sha256;
use kenning_sandbox::archive::{Bounds, MANIFEST_FILE, Package, read_dir, read_zip};
use kenning_sandbox::manifest::Manifest;
use kenning_sandbox::policy::concerns;
use kenning_sandbox::signature::{self, PublicKey, SIGNATURE_FILE, Signed};
use kenning_vault::Dir;
use std::path::{Path, PathBuf};

/// Where a package lies.
pub(super) struct Found {
    pub(super) package: Package,
    /// As it is remembered: an absolute path, or an address.
    pub(super) source: String,
    /// Whether it lies in a directory of this machine: then it may be unsigned.
    pub(super) is_local: bool,
}

/// A package, and whether it can be installed.
#[derive(Debug)]
pub struct CheckedPackage {
    /// In reverse-domain notation.
    pub id: String,
    /// For people.
    pub name: String,
    /// In semantic versioning.
    pub version: String,
    /// What a model reads.
    pub description: String,
    /// What it takes.
    pub arguments: Vec<ArgumentView>,
    /// What it asks for.
    pub asked: Granted,
    /// Of the component.
    pub sha256: String,
    /// Of the component.
    pub size_bytes: usize,
    /// By which convention it is called.
    pub abi: String,
    /// The key of whoever signed it, trusted or not.
    pub signed_by: Option<String>,
    /// What an operator should look at twice, a sentence each.
    pub concerns: Vec<String>,
    /// The version of it that is installed, which this one would replace.
    pub installed: Option<String>,
    /// Why `--allow` is needed, if it is.
    pub needs_allow: Option<Error>,
    /// Why it is refused, if it is: what installing or updating it would answer.
    pub refusal: Option<Error>,
}

/// The file that a manifest names as its component, if the manifest is one that can be installed.
pub fn tool_manifest_wasm(text: &str) -> Result<String> {
    Manifest::parse(text).map(|it| it.wasm)
}

/// A person names a path or an address.
pub(super) fn find(source: &str, sha256: Option<&str>) -> Result<Found> {
    if source.starts_with("http://") {
        return Err(Error::denied(format!("`{source}` is not encrypted"))
            .hint("tools are fetched over https only"));
    }
    if source.starts_with("https://") {
        return fetch(source, sha256);
    }
    let path = Path::new(source);
    if let Some(url) = release_url(source)
        && !is_there(path)
    {
        return fetch(&url, sha256);
    }
    if path.extension().is_some_and(|it| it == "zip") {
        let (dir, name) = kenning_vault::split(path)?;
        let bounds = Bounds::default();
        let bytes = dir.read(&name, bounds.archive_bytes_max as u64)?;
        check_sha256(&bytes, sha256)?;
        return Ok(Found {
            package: read_zip(&bytes, &bounds)?,
            source: dir.path().join(&name).display().to_string(),
            is_local: false,
        });
    }
    if sha256.is_some() {
        return Err(
            Error::invalid("`--sha256` is the hash of an archive, and this is none")
                .hint("leave it out for a directory"),
        );
    }
    let dir = package_dir(path)?;
    Ok(Found {
        package: read_dir(&dir, &Bounds::default())?,
        source: dir.path().display().to_string(),
        is_local: true,
    })
}

/// The archive of a release on GitHub that `owner/repo@tag` stands for. Without a tag it is a path, so that one
/// that was misspelled asks nobody.
fn release_url(source: &str) -> Option<String> {
    let (repository, tag) = source.split_once('@')?;
    let is_plain = |it: &str| {
        let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
        !it.is_empty() && it.chars().all(plain) && it.chars().any(|it| it != '.')
    };
    let (owner, name) = repository.split_once('/')?;
    if ![owner, name, tag].into_iter().all(is_plain) {
        return None;
    }
    let release = match tag {
        "latest" => "latest/download".to_owned(),
        tag => format!("download/{tag}"),
    };
    Some(format!(
        "https://github.com/{repository}/releases/{release}/plugin.zip"
    ))
}

/// Whether a path leads to something here: then it is meant, whatever else it could be.
fn is_there(path: &Path) -> bool {
    Dir::open(path).is_ok()
        || kenning_vault::split(path).is_ok_and(|(dir, name)| dir.exists(&name).unwrap_or(true))
}

/// The directory that a path names: itself, or the one of its `tool.toml`.
fn package_dir(path: &Path) -> Result<Dir> {
    if path.extension().is_some_and(|it| it == "toml") {
        let (dir, name) = kenning_vault::split(path)?;
        if name != MANIFEST_FILE {
            return Err(Error::invalid(format!("`{name}` is not a manifest"))
                .hint(format!("a manifest is called `{MANIFEST_FILE}`")));
        }
        return Ok(dir);
    }
    Dir::open(path).map_err(|error| match error.code {
        Code::NotFound => Error::not_found("directory", path.display()).hint(
            "name a directory with a `tool.toml`, that file, a zip archive, an https address or a release as `owner/repo@tag`",
        ),
        _ => error,
    })
}

/// The package in a directory.
pub(super) fn bundle(path: &Path) -> Result<Package> {
    read_dir(&package_dir(path)?, &Bounds::default())
}

/// Whether a text names a package that others can get.
pub(super) fn is_source(text: &str) -> bool {
    text.starts_with("https://") || release_url(text).is_some()
}

fn fetch(url: &str, sha256: Option<&str>) -> Result<Found> {
    let bounds = Bounds::default();
    let body = fetch_bytes(url, bounds.archive_bytes_max)?;
    check_sha256(&body, sha256)?;
    Ok(Found {
        package: read_zip(&body, &bounds)?,
        source: url.to_owned(),
        is_local: false,
    })
}

/// What is at an https address, up to a size.
pub(super) fn fetch_bytes(url: &str, bytes_max: usize) -> Result<Vec<u8>> {
    let policy = Policy {
        limits: Limits {
            body_bytes_max: bytes_max as u64,
            ..Limits::default()
        },
        ..Policy::default()
    };
    let request = Request {
        https_only: true,
        ..Request::get(url)
    };
    let answer = Egress::new(policy).fetch(request)?;
    if answer.status != 200 {
        return Err(
            Error::unavailable(format!("the server answered {}", answer.status))
                .hint("look whether the address is right"),
        );
    }
    Ok(answer.body.to_vec())
}

fn check_sha256(bytes: &[u8], expected: Option<&str>) -> Result<()> {
    let Some(expected) = expected else {
        return Ok(());
    };
    let expected = Sha256::from_hex(expected.trim()).ok_or_else(|| {
        Error::invalid(format!(
            "`--sha256`: `{expected}` is not 64 hexadecimal digits"
        ))
    })?;
    let found = Sha256::of(bytes);
    if found == expected {
        return Ok(());
    }
    Err(Error::denied(format!(
        "the archive has the SHA-256 {found} and not {expected}"
    ))
    .hint("get the archive again, or the right hash"))
}

impl Kami {
    /// Looks at a package without installing it: whether installing it would be refused, or updating
    /// it where it is installed, and what it asks for.
    pub fn check_tool_package(
        &self,
        caller: &Caller,
        source: &str,
        options: &InstallOptions,
    ) -> Result<CheckedPackage> {
        caller.principal.require(Scope::Admin)?;
        let found = find(source, options.sha256.as_deref())?;
        let (described, _) = self.compile(caller, &found.package.wasm)?;
        let manifest = &found.package.manifest;
        let mut concerns = concerns(&manifest.security);
        concerns.extend(self.manifest_contradictions(
            caller,
            manifest,
            &described,
            &found.package.wasm,
        )?);
        let options = InstallOptions {
            replace: true,
            ..options.clone()
        };
        let allowed = InstallOptions {
            allow_more: true,
            ..options.clone()
        };
        let mut needs_allow = None;
        let accepted = self
            .judge(caller, &found, &options)
            .and_then(|(version, _)| {
                let accept = |options: &InstallOptions| {
                    self.kernel.log().read(&caller.principal.space, |tx| {
                        require_accepted(tx, manifest, &version, options).map(drop)
                    })
                };
                accept(&options).or_else(|error| {
                    accept(&allowed)?;
                    needs_allow = Some(error);
                    Ok(())
                })
            });
        let shelf = self.shelf(&caller.principal.space)?;
        let installed = shelf.tools.iter().find(|it| it.id == manifest.id);
        Ok(CheckedPackage {
            id: manifest.id.clone(),
            name: manifest.name.clone(),
            version: manifest.version.to_string(),
            description: manifest.description.clone(),
            arguments: arguments(manifest),
            asked: Granted::of(&manifest.security),
            sha256: Sha256::of(&found.package.wasm).to_string(),
            size_bytes: found.package.wasm.len(),
            abi: super::record::StoredVersion::abi_of(&described),
            concerns,
            installed: installed.map(|it| it.stored.version.clone()),
            needs_allow,
            refusal: accepted.err(),
            signed_by: found.package.signed.map(|it| it.key.to_string()),
        })
    }

    /// Signs the package in a directory with a secret key of 32 bytes: writes `tool.sig` beside its
    /// manifest. Gives the public key.
    pub fn sign_tool_package(
        &self,
        caller: &Caller,
        source: &str,
        secret: &[u8; 32],
    ) -> Result<String> {
        caller.principal.require(Scope::Admin)?;
        let dir = package_dir(Path::new(source))?;
        let package = read_dir(&dir, &Bounds::default())?;
        let signed = signature::sign(secret, &package.manifest, &Sha256::of(&package.wasm));
        dir.write(SIGNATURE_FILE, format!("{signed}\n").as_bytes())?;
        Ok(signed.key.to_string())
    }

    /// Makes a key to sign tools with. Gives where it is and its public half.
    pub fn make_signing_key(
        &self,
        caller: &Caller,
        to: Option<&Path>,
        force: bool,
    ) -> Result<(PathBuf, String)> {
        caller.principal.require(Scope::Admin)?;
        let (dir, name) = self.key_place(to)?;
        let secret = Signer::generate(self.kernel.log().random()).secret();
        let text = format!("{}\n", Hash(secret));
        if force {
            dir.write_private(&name, text.as_bytes())?;
        } else if !dir.create_new_private(&name, text.as_bytes())? {
            return Err(
                Error::conflict(format!("`{name}` is there already")).hint("`--force` replaces it")
            );
        }
        let key = PublicKey::of(&secret).to_string();
        // For whoever checks: `kami verify --public-key` takes the file.
        dir.write(&format!("{name}.pub"), format!("{key}\n").as_bytes())?;
        Ok((dir.path().join(&name), key))
    }

    /// The secret key that tools are signed with.
    pub fn signing_key(&self, caller: &Caller, from: Option<&Path>) -> Result<[u8; 32]> {
        caller.principal.require(Scope::Admin)?;
        let (dir, name) = self.key_place(from)?;
        let bytes = dir.read(&name, 1_024).map_err(|error| match error.code {
            Code::NotFound => Error::not_found("key", &name).hint("`kami keygen` makes one"),
            _ => error,
        })?;
        let secret = Hash::from_hex(String::from_utf8_lossy(&bytes).trim());
        let secret = secret.ok_or_else(|| {
            Error::invalid(format!("`{name}` is not a key")).hint("`kami keygen` makes one")
        })?;
        Ok(secret.0)
    }

    fn key_place(&self, named: Option<&Path>) -> Result<(Dir, String)> {
        match named {
            Some(path) => kenning_vault::split(path),
            None => Ok((self.wasm_dir()?, "signing.key".to_owned())),
        }
    }

    /// Looks whether a tool is what was installed, and whether whoever must vouch for it does.
    pub fn verify_tool(
        &self,
        caller: &Caller,
        id: &str,
        key: Option<&str>,
    ) -> Result<InstalledTool> {
        caller.principal.require(Scope::Read)?;
        let record = self.record(caller, id)?;
        let wasm = self
            .component(&caller.principal.space, record.sha256)
            .map_err(|error| match error.code {
                Code::NotFound => Error {
                    message: format!("WASM file missing: {}", error.message),
                    ..error
                },
                _ => error,
            })?;
        let found = Sha256::of(&wasm);
        if found != record.sha256 {
            return Err(Error::corrupt(format!(
                "integrity violation: the component of `{id}` is {found} and not {}",
                record.sha256
            ))
            .hint("install the tool again"));
        }
        let signed = record
            .version()
            .and_then(|it| it.signed.as_deref())
            .map(Signed::parse)
            .transpose()?;
        let keys = match key {
            Some(key) => vec![named_key(key)?],
            None => signed.iter().map(|it| it.key).collect(),
        };
        match &signed {
            Some(signed) => signature::verify(signed, &record.manifest, &record.sha256, &keys)?,
            None if key.is_some() => {
                return Err(Error::denied(format!("nobody vouches for `{id}`"))
                    .hint("install a signed package"));
            }
            None => {}
        }
        self.installed_tool(caller, id)
    }
}

/// The entry of a package in an index, as `kami search --registry` reads it.
pub(super) fn index_entry(manifest: &Manifest, wasm: &[u8], source: &str) -> serde_json::Value {
    serde_json::json!({
        "id": manifest.id, "name": manifest.name, "version": manifest.version.to_string(),
        "description": manifest.description, "source": source,
        "wasm_sha256": Sha256::of(wasm).to_string(),
    })
}

/// A public key that a person names: itself, or a file that holds it, as `kami keygen` writes one.
fn named_key(text: &str) -> Result<PublicKey> {
    if let Ok(key) = public_key(text) {
        return Ok(key);
    }
    let neither = || {
        Error::invalid(format!(
            "`{text}` is neither a public key nor a file that holds one"
        ))
        .hint("a key is 64 hexadecimal digits, or begins with `did:key:`; `kami keygen` writes it to `signing.key.pub`")
    };
    let (dir, name) = kenning_vault::split(Path::new(text)).map_err(|_| neither())?;
    let bytes = dir.read(&name, 4_096).map_err(|error| match error.code {
        Code::NotFound => neither(),
        _ => error,
    })?;
    public_key(String::from_utf8_lossy(&bytes).trim()).map_err(|_| neither())
}

/// Whether somebody whom the operator trusts vouches for a package. An error says why a signature
/// that is there does not count.
pub(super) fn vouched(package: &Package, trusted: &[PublicKey]) -> Result<bool> {
    let Some(signed) = &package.signed else {
        return Ok(false);
    };
    let wasm = Sha256::of(&package.wasm);
    let verified = signature::verify(signed, &package.manifest, &wasm, trusted);
    verified.map_err(|error| match trusted.contains(&signed.key) {
        true => error,
        false => error.hint(format!(
            "`kami trust add {}` trusts it, if you know whose it is",
            signed.key
        )),
    })?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_named_by_its_repository_and_tag() {
        let release = "https://github.com/owner/repo/releases";
        for (source, expected) in [
            (
                "owner/repo@v1.0.0",
                Some(format!("{release}/download/v1.0.0/plugin.zip")),
            ),
            ("owner/repo", None),
            (
                "owner/repo@latest",
                Some(format!("{release}/latest/download/plugin.zip")),
            ),
            ("./tool", None),
            ("../tool", None),
            ("tool", None),
            ("a/b/c", None),
            ("/abs", None),
            ("owner/repo@", None),
            ("owner/repo@a/../b", None),
            ("owner/re po", None),
            ("https://x/y", None),
        ] {
            assert_eq!(release_url(source), expected, "{source}");
        }
    }
}
