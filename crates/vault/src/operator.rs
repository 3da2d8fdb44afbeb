//! Files from the operator's command line or configuration, anywhere on the machine.

use crate::Dir;
use kenning_core::{Error, Result};
use std::path::Path;

/// Opens the directory of a file that the operator named, and gives the file's name in it.
///
/// Only for what comes from the command line or the configuration: an operator may name any place.
pub fn split(path: &Path) -> Result<(Dir, String)> {
    let shown = path.display();
    let name = path
        .file_name()
        .and_then(|it| it.to_str())
        .ok_or_else(|| Error::invalid(format!("`{shown}` is not the name of a file")))?;
    let parent = path
        .parent()
        .filter(|it| !it.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let dir = Dir::open(parent).map_err(|error| {
        Error::new(
            error.code,
            format!("the directory of `{shown}` cannot be opened"),
        )
        .hint("make it first")
        .because(error)
    })?;
    Ok((dir, name.to_owned()))
}

/// Where a path leads when every link on the way is followed; `None` if it leads nowhere.
pub fn resolved(path: &Path) -> Option<std::path::PathBuf> {
    std::fs::canonicalize(path).ok()
}
