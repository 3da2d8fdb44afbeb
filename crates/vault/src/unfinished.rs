//! Files that killed writes left behind.
//!
//! A write goes to a temporary file and takes the name when it is complete. A process that is killed in
//! between leaves the file, which is listed nowhere and cannot be named: only this can remove it.

use crate::dir::Dir;
use crate::fault;
use crate::name::TEMP_SUFFIX;
use kenning_core::Result;
use std::collections::BTreeSet;
use std::time::UNIX_EPOCH;

/// Directories of other programs, which we never write to.
const SKIPPED: [&str; 3] = [".git", "node_modules", ".venv"];
const DEPTH_MAX: usize = 64;

/// What was found of killed writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Files that are there.
    pub n_found: usize,
    /// Those of them that were removed.
    pub n_removed: usize,
    /// Whether the tree was too large to be looked through.
    pub is_partial: bool,
}

impl Dir {
    /// Looks for files of killed writes beneath this directory, among at most this many entries, and removes those
    /// that were last written before `before_ms` (milliseconds since 1970); with `None` none. Contents with one of
    /// the ids in `kept` stay: somebody will take them up. Links are not followed.
    ///
    /// # Errors
    /// Those of the directory itself; what cannot be looked at beneath it is left alone.
    pub fn unfinished(
        &self,
        before_ms: Option<u64>,
        entries_max: usize,
        kept: &BTreeSet<String>,
    ) -> Result<Unfinished> {
        let mut found = Unfinished::default();
        let error = |cause: std::io::Error| fault::of("directory", ".", cause);
        let mut n_left = entries_max;
        let mut waiting = vec![(self.root().try_clone().map_err(error)?, 0)];
        while let Some((dir, depth)) = waiting.pop() {
            let Ok(entries) = dir.entries() else { continue };
            for entry in entries.flatten() {
                let Some(left) = n_left.checked_sub(1) else {
                    found.is_partial = true;
                    return Ok(found);
                };
                n_left = left;
                let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string())
                else {
                    continue;
                };
                if kind.is_dir() {
                    if depth < DEPTH_MAX
                        && !SKIPPED.contains(&name.as_str())
                        && let Ok(dir) = entry.open_dir()
                    {
                        waiting.push((dir, depth + 1));
                    }
                    continue;
                }
                if !kind.is_file() || !is_generated(&name) {
                    continue;
                }
                found.n_found += 1;
                let modified = entry.metadata().and_then(|it| it.modified());
                let age = modified.map(|it| it.into_std().duration_since(UNIX_EPOCH));
                let is_old = match (before_ms, age) {
                    (Some(before_ms), Ok(Ok(at))) => at.as_millis() < u128::from(before_ms),
                    _ => false,
                };
                if is_old && !kept.contains(&name) && dir.remove_file(&name).is_ok() {
                    found.n_removed += 1;
                }
            }
        }
        Ok(found)
    }
}

/// Whether a name was generated here.
pub(crate) fn is_generated(name: &str) -> bool {
    let digits = name
        .strip_prefix('.')
        .and_then(|it| it.strip_suffix(TEMP_SUFFIX));
    digits
        .is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|it| it.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn old_files_of_killed_writes_go_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let put = |name: &str, age_s: u64| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "x").unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            let at = UNIX_EPOCH + Duration::from_secs(1_000_000 - age_s);
            file.set_modified(at).unwrap();
        };
        put(".0123456789abcdef.kenning-tmp", 100);
        put("a/b/.fedcba9876543210.kenning-tmp", 100);
        put("a/.00000000000000ff.kenning-tmp", 1);
        put("a/.mine.kenning-tmp", 100);
        put("a/note.md", 100);
        put(".git/.0123456789abcdef.kenning-tmp", 100);
        let outside = tempfile::tempdir().unwrap();
        let far = outside.path().join(".0123456789abcdef.kenning-tmp");
        std::fs::write(&far, "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        put("a/.1111111111111111.kenning-tmp", 100);
        let kept = BTreeSet::from([".1111111111111111.kenning-tmp".to_owned()]);
        let looked = dir.unfinished(None, 1_000, &kept).unwrap();
        assert_eq!((looked.n_found, looked.n_removed), (4, 0));
        let swept = dir.unfinished(Some(1_000_000_000 - 10_000), 1_000, &kept);
        let swept = swept.unwrap();
        assert_eq!((swept.n_found, swept.n_removed), (4, 2));
        let left = dir.unfinished(None, 1_000, &kept).unwrap();
        assert_eq!(left.n_found, 2);
        assert!(folder.path().join("a/.mine.kenning-tmp").exists());
        assert!(folder.path().join("a/note.md").exists());
        assert!(far.exists());
        assert!(dir.unfinished(None, 2, &kept).unwrap().is_partial);
    }
}
