//! Checking, signing and verifying packages, and the keys for it.

use super::install::{InstallOptions, require_accepted};
use super::package::{find, package_dir};
use super::record::{ArgumentView, Granted, InstalledTool, StoredVersion, arguments};
use super::trust::public_key;
use crate::Kami;
use kenning_audit::Signer;
use kenning_core::{Code, Error, Hash, Result};
use kenning_kernel::{Caller, Scope};
use kenning_sandbox::Sha256;
use kenning_sandbox::archive::{Bounds, read_dir};
use kenning_sandbox::policy::concerns;
use kenning_sandbox::signature::{self, PublicKey, SIGNATURE_FILE, Signed};
use kenning_vault::Dir;
use std::path::{Path, PathBuf};

/// A package, and whether it can be installed.
#[derive(Debug)]
pub struct CheckedPackage {
    /// In reverse-domain notation.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// Its version (semantic versioning).
    pub version: String,
    /// The description for models.
    pub description: String,
    /// Its arguments.
    pub arguments: Vec<ArgumentView>,
    /// What it requests.
    pub asked: Granted,
    /// The SHA-256 of the component.
    pub sha256: String,
    /// The size of the component.
    pub size_bytes: usize,
    /// Its calling convention.
    pub abi: String,
    /// The key of the signer, trusted or not.
    pub signed_by: Option<String>,
    /// Warnings for the operator, a sentence each.
    pub concerns: Vec<String>,
    /// The installed version, which this one would replace.
    pub installed: Option<String>,
    /// Why `--allow` is needed, if it is.
    pub needs_allow: Option<Error>,
    /// Why it is refused, if it is: the error that installing or updating it would give.
    pub refusal: Option<Error>,
}

impl Kami {
    /// Checks a package without installing it: whether installing or updating it would be refused,
    /// and what it requests.
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
        let space_tools = self.tools_of(&caller.principal.space)?;
        let installed = space_tools.tools.iter().find(|it| it.id == manifest.id);
        Ok(CheckedPackage {
            id: manifest.id.clone(),
            name: manifest.name.clone(),
            version: manifest.version.to_string(),
            description: manifest.description.clone(),
            arguments: arguments(manifest),
            asked: Granted::of(&manifest.security),
            sha256: Sha256::of(&found.package.wasm).to_string(),
            size_bytes: found.package.wasm.len(),
            abi: StoredVersion::abi_of(&described),
            concerns,
            installed: installed.map(|it| it.stored.version.clone()),
            needs_allow,
            refusal: accepted.err(),
            signed_by: found.package.signed.map(|it| it.key.to_string()),
        })
    }

    /// Signs the package in a directory with a secret key of 32 bytes: writes `tool.sig` beside its
    /// manifest. Returns the public key.
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

    /// Makes a key for signing tools. Returns its path and the public key.
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
            return Err(Error::conflict(format!("`{name}` exists")).hint("`--force` replaces it"));
        }
        let key = PublicKey::of(&secret).to_string();
        // `kami verify --public-key` accepts this file.
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

    /// Checks that a tool is unchanged since it was installed, and that its required signature is
    /// valid.
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
                "integrity violation: the component of `{id}` has the SHA-256 {found} and not {}",
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
                return Err(
                    Error::denied(format!("`{id}` is not signed by a trusted key"))
                        .hint("install a signed package"),
                );
            }
            None => {}
        }
        self.installed_tool(caller, id)
    }
}

/// A public key that a person gives: the key itself, or a file that contains it, as `kami keygen`
/// writes.
fn named_key(text: &str) -> Result<PublicKey> {
    if let Ok(key) = public_key(text) {
        return Ok(key);
    }
    let neither = || {
        Error::invalid(format!(
            "`{text}` is neither a public key nor a file with one"
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
