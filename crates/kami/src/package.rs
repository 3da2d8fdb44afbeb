//! A package before anything in it is trusted: read, checked, signed.

use kenning_core::{Code, Error, Result};
use kenning_egress::{Egress, Limits, Policy, Request};
use kenning_sandbox::Sha256;
use kenning_sandbox::archive::{Bounds, MANIFEST_FILE, Package, read_dir, read_zip};
use kenning_sandbox::manifest::Manifest;
use kenning_sandbox::signature::{self, PublicKey};
use kenning_vault::Dir;
use std::path::Path;

/// The place of a package.
pub(super) struct Found {
    pub(super) package: Package,
    /// The source as it is remembered: an absolute path, or a URL.
    pub(super) source: String,
    /// Whether it is in a directory of this machine: then it may be unsigned.
    pub(super) is_local: bool,
}

/// The file that a manifest names as its component, if the manifest is valid.
pub fn tool_manifest_wasm(text: &str) -> Result<String> {
    Manifest::parse(text).map(|it| it.wasm)
}

/// Finds the package at a path or a URL.
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
            Error::invalid("`--sha256` is the hash of an archive, and this is not one")
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

/// The archive of the GitHub release that `owner/repo@tag` means. Without a tag it is a path, so that
/// a misspelled path causes no request.
fn release_url(source: &str) -> Option<String> {
    let (repository, tag) = source.split_once('@')?;
    let is_plain = |it: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
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

/// Whether a path exists here: then it is meant, whatever else it could be.
fn is_there(path: &Path) -> bool {
    Dir::open(path).is_ok()
        || kenning_vault::split(path).is_ok_and(|(dir, name)| dir.exists(&name).unwrap_or(true))
}

/// The directory that a path means: itself, or that of its `tool.toml`.
pub(super) fn package_dir(path: &Path) -> Result<Dir> {
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
            "name a directory with a `tool.toml`, that file, a zip archive, an https URL or a release as `owner/repo@tag`",
        ),
        _ => error,
    })
}

/// The package in a directory.
pub(super) fn bundle(path: &Path) -> Result<Package> {
    read_dir(&package_dir(path)?, &Bounds::default())
}

/// Whether a text names a package that others can download.
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

/// Downloads from an https URL, up to a size.
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
                .hint("check the URL"),
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
    .hint("download the archive again, or use the right hash"))
}

/// The entry of a package in an index, as `kami search --registry` reads it.
pub(super) fn index_entry(manifest: &Manifest, wasm: &[u8], source: &str) -> serde_json::Value {
    serde_json::json!({
        "id": manifest.id, "name": manifest.name, "version": manifest.version.to_string(),
        "description": manifest.description, "source": source,
        "wasm_sha256": Sha256::of(wasm).to_string(),
    })
}

/// Whether a trusted key signed a package. An error says why an existing signature does not count.
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
