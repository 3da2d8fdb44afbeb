//! Whether the rules of a tree (`.gitignore`, `.ignore`) leave out one name, without walking through the tree.

use crate::dir::Dir;
use crate::name::Name;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use kenning_core::Result;

/// Files with rules, those that decide first.
const RULES: [&str; 3] = [".ignore", ".gitignore", ".git/info/exclude"];

/// Larger files with rules are not read.
const RULES_BYTES_MAX: u64 = 1024 * 1024;

impl Dir {
    /// Whether [`Dir::walk`] would leave out a file of this name because of rules, whether it is there or not.
    ///
    /// # Errors
    /// The name leads outside.
    pub fn is_ignored(&self, name: &str) -> Result<bool> {
        let name = Name::parse(name)?;
        let name = name.as_str();
        // The rules of the deepest folder decide.
        let mut folder = name;
        while let Some((above, _)) = folder.rsplit_once('/') {
            folder = above;
            if let Some(is_ignored) = self.decides(above, name) {
                return Ok(is_ignored);
            }
        }
        Ok(self.decides("", name).unwrap_or(false))
    }

    fn decides(&self, folder: &str, name: &str) -> Option<bool> {
        let below = match folder {
            "" => name,
            folder => name.strip_prefix(folder)?.trim_start_matches('/'),
        };
        RULES.iter().find_map(|file| {
            let rules = match folder {
                "" => (*file).to_owned(),
                folder => format!("{folder}/{file}"),
            };
            let text = self.read(&rules, RULES_BYTES_MAX).ok()?;
            match matcher(&text)?.matched_path_or_any_parents(below, false) {
                Match::None => None,
                found => Some(found.is_ignore()),
            }
        })
    }
}

fn matcher(text: &[u8]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    for line in String::from_utf8_lossy(text).lines() {
        // A line that is no rule leaves out nothing.
        drop(builder.add_line(None, line));
    }
    builder.build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_the_deepest_folder_decide() {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::open(place.path()).unwrap();
        dir.write(".gitignore", b"private/\n*.tmp.md\n").unwrap();
        dir.write("open/.gitignore", b"!kept.tmp.md\n").unwrap();
        for (name, is_ignored) in [
            ("a.md", false),
            ("private/a.md", true),
            ("x/private/a.md", true),
            ("b.tmp.md", true),
            ("open/kept.tmp.md", false),
            ("open/other.tmp.md", true),
        ] {
            assert_eq!(dir.is_ignored(name).unwrap(), is_ignored, "{name}");
        }
        assert!(dir.is_ignored("../a.md").is_err());
    }
}
