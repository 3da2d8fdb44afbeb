//! What the clones of repositories are called, in the data directory.

use kenning_core::{Hash, Space};
use kenning_vault::Dir;

/// What the clone of a repository is called.
pub(super) fn clone_name(space: &Space, id: u64) -> String {
    format!("{}{id}", clones_of(space))
}

/// What the names of a space's clones begin with.
fn clones_of(space: &Space) -> String {
    let space = Hash::of(space.to_string().as_bytes()).to_string();
    format!("{}-", &space[..16])
}

/// Removes the clones of the repositories of a space whose numbers are meant. What cannot be removed now is
/// removed another time.
pub(super) fn remove_clones(dir: &Dir, space: &Space, is_meant: impl Fn(u64) -> bool) {
    let prefix = clones_of(space);
    for entry in dir.list(".").unwrap_or_default() {
        let id = entry.name.strip_prefix(&prefix);
        let id = id.and_then(|it| it.split(['-', '.']).next()?.parse().ok());
        if !id.is_some_and(&is_meant) {
            continue;
        }
        if entry.name.ends_with(".git") {
            dir.remove_tree(&entry.name).ok();
        } else if entry.name.ends_with(".clone") {
            dir.remove(&entry.name).ok();
        }
    }
}

/// What is locked while a clone is used.
pub(super) fn lock_name(space: &Space, id: u64) -> String {
    format!("{}.lock", clone_name(space, id))
}
