//! A package, before anything of it is believed: read, checked, signed.

use super::record::{ArgumentView, Granted, InstalledTool, arguments};
use crate::{Caller, Engine, Scope};
use kenning_audit::Signer;
use kenning_core::{Code, Error, Hash, Result};
use kenning_egress::{Egress, Limits, Policy, Request};
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

/// A package that can be installed.
#[derive(Clone, Debug, PartialEq)]
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
            "name a directory with a `tool.toml`, that file, a zip archive or an https address",
        ),
        _ => error,
    })
}

fn fetch(url: &str, sha256: Option<&str>) -> Result<Found> {
    let bounds = Bounds::default();
    let policy = Policy {
        limits: Limits {
            body_bytes_max: bounds.archive_bytes_max as u64,
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
    check_sha256(&answer.body, sha256)?;
    Ok(Found {
        package: read_zip(&answer.body, &bounds)?,
        source: url.to_owned(),
        is_local: false,
    })
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

impl Engine {
    /// Looks at a package without installing it.
    pub fn check_tool_package(&self, caller: &Caller, source: &str) -> Result<CheckedPackage> {
        caller.principal.require(Scope::Admin)?;
        let found = find(source, None)?;
        let described = self.wasm_runtime()?.check(&found.package.wasm)?;
        let manifest = &found.package.manifest;
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
            signed_by: found.package.signed.map(|it| it.key.to_string()),
            concerns: concerns(&manifest.security),
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
        let secret = Signer::generate(self.log.random()).secret();
        let text = format!("{}\n", Hash(secret));
        if force {
            dir.write_private(&name, text.as_bytes())?;
        } else if !dir.create_new_private(&name, text.as_bytes())? {
            return Err(
                Error::conflict(format!("`{name}` is there already")).hint("`--force` replaces it")
            );
        }
        Ok((dir.path().join(&name), PublicKey::of(&secret).to_string()))
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
            Some(key) => vec![PublicKey::parse(key)?],
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
