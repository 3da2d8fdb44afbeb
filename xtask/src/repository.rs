//! The repository as the rules see it: names and texts of the files that git tracks.

use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The top of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Names, with `/` between their parts, and texts. A file that is not UTF-8 has an empty text.
#[derive(Debug, Default)]
pub(crate) struct Tree(pub(crate) BTreeMap<String, String>);

impl Tree {
    /// The tracked files beneath `root`, as they are on disk.
    pub(crate) fn tracked(root: &Path) -> Result<Self> {
        let listed = output(
            Command::new("git")
                .args(["ls-files", "-z"])
                .current_dir(root),
        )?;
        let mut files = BTreeMap::new();
        for name in listed.split('\0').filter(|it| !it.is_empty()) {
            // A tracked file that was removed and not yet committed is not there to be read.
            if let Ok(bytes) = std::fs::read(root.join(name)) {
                let text = String::from_utf8(bytes).unwrap_or_default();
                files.insert(name.to_owned(), text);
            }
        }
        ensure!(!files.is_empty(), "git tracks no file here");
        Ok(Self(files))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Files whose name ends so.
    pub(crate) fn ending(&self, end: &str) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .filter(move |(name, _)| name.ends_with(end))
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let owned = |&(name, text): &(&str, &str)| (name.to_owned(), text.to_owned());
        Self(files.iter().map(owned).collect())
    }
}

/// What a program printed, if it ended well.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command
        .output()
        .with_context(|| format!("`{name}` could not be started"))?;
    ensure!(
        done.status.success(),
        "`{name}` failed: {}",
        String::from_utf8_lossy(&done.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Cargo, the one that runs us if it does.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}
