//! Projects: whose memories and whose context something is.
//!
//! A project is a repository, recognized by the address of its remote (so every clone and every work tree of it is
//! the same project), else a directory, recognized by its path. What belongs to no project is global: old
//! memories, and whatever was stored outside of a repository.
//!
//! A caller sees its project and what is global (`projects`). The id of a project is in the column
//! `project` of its memories and in the names of its files (`projects/ID/NOW.md`), so it never changes: a rename
//! changes the name that people read, and a merge leaves a row that leads from one id to another.

use kenning_core::Hash;
use kenning_vault::{Dir, resolved};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The folder of the projects' files, in the directory of NOW.md.
pub const FOLDER: &str = "projects";

/// Entries that mark the root directory of a project.
const MARKS: [&str; 4] = [".git", ".kenning", ".ai", ".hg"];

/// So many directories above the working directory are looked at.
const DEPTH_MAX: usize = 64;

/// The largest file of git that is read.
const GIT_BYTES_MAX: u64 = 256 * 1024;

/// The most characters of a name.
pub(crate) const NAME_CHARS_MAX: usize = 100;

/// A project, as it is recognized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Its id: a word for people and digits that follow from the remote or the path.
    pub id: String,
    /// The name of its repository or directory.
    pub name: String,
    /// The address of its remote, without a scheme, a user or a password.
    pub remote: Option<String>,
    /// Where it is on this machine.
    pub path: Option<String>,
}

impl Project {
    /// The project that a directory belongs to: the nearest directory above it that looks like one. A home
    /// directory and what is above it are no projects.
    pub fn of_dir(dir: &Path, home: Option<&Path>) -> Option<Self> {
        let dir = resolved(dir)?;
        let home = home.and_then(resolved);
        let is_home = |it: &Path| home.as_ref().is_some_and(|home| home.starts_with(it));
        let above = dir.ancestors().take(DEPTH_MAX);
        let above = above.take_while(|it| it.parent().is_some() && !is_home(it));
        for root in above {
            let Ok(opened) = Dir::open(root) else {
                continue;
            };
            let mark = MARKS
                .iter()
                .find(|mark| opened.exists(mark).unwrap_or(false));
            if let Some(mark) = mark {
                let git = (*mark == ".git").then(|| git_of(root, &opened)).flatten();
                return Some(Self::of_root(root, git));
            }
        }
        None
    }

    /// The project of a directory that somebody named: its repository, else itself.
    pub fn of_named_dir(dir: &Path, home: Option<&Path>) -> Option<Self> {
        let root = resolved(dir)?;
        let is_home = home.and_then(resolved).is_some_and(|it| it == root);
        Self::of_dir(dir, home).or_else(|| {
            (root.parent().is_some() && !is_home).then(|| Self::of_path(&root.to_string_lossy()))
        })
    }

    fn of_root(root: &Path, git: Option<Git>) -> Self {
        let git = git.unwrap_or_default();
        // Linked work trees are the same project.
        let main = git.main.unwrap_or_else(|| root.to_owned());
        let path = main.to_string_lossy().into_owned();
        match git.remote.as_deref().and_then(plain_remote) {
            Some(remote) => Self {
                path: Some(path),
                ..Self::of_remote(&remote)
            },
            None => Self::of_path(&path),
        }
    }

    fn of_remote(remote: &str) -> Self {
        let name = last_part(remote);
        Self {
            id: id_of("remote", remote, &name),
            name,
            remote: Some(remote.to_owned()),
            path: None,
        }
    }

    fn of_path(path: &str) -> Self {
        let name = last_part(path);
        Self {
            id: id_of("path", path, &name),
            name,
            remote: None,
            path: Some(path.to_owned()),
        }
    }

    /// A project by the address of its remote or its absolute path, as a client elsewhere names it. Nothing is
    /// opened.
    pub fn named(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(remote) = plain_remote(text) {
            return Some(Self::of_remote(&remote));
        }
        let is_path = text.starts_with('/') && text.len() > 1 && !text.contains('\0');
        is_path.then(|| Self::of_path(text.trim_end_matches('/')))
    }

    /// The id that it would have without a remote.
    pub(crate) fn id_by_path(&self) -> Option<String> {
        self.path.as_deref().map(|it| Self::of_path(it).id)
    }
}

/// What the files of git say about a work tree.
#[derive(Default)]
struct Git {
    remote: Option<String>,
    /// The work tree that the repository lies in.
    main: Option<PathBuf>,
}

/// Reads git's own files: no program is started, and what is included from elsewhere does not count.
fn git_of(root: &Path, dir: &Dir) -> Option<Git> {
    let own = match dir.metadata(".git").ok()?.is_dir {
        true => root.join(".git"),
        false => {
            let pointer = text_of(dir, ".git")?;
            resolved(&root.join(pointer.trim().strip_prefix("gitdir: ")?))?
        }
    };
    let opened = Dir::open(&own).ok()?;
    let common = match text_of(&opened, "commondir") {
        Some(shared) => resolved(&own.join(shared.trim()))?,
        None => own,
    };
    let config = text_of(&Dir::open(&common).ok()?, "config").unwrap_or_default();
    Some(Git {
        remote: remote_in(&config),
        main: (common.file_name()? == ".git")
            .then(|| common.parent().map(Path::to_owned))
            .flatten(),
    })
}

fn text_of(dir: &Dir, name: &str) -> Option<String> {
    String::from_utf8(dir.read(name, GIT_BYTES_MAX).ok()?).ok()
}

/// The address of `origin`, else of the first remote.
fn remote_in(config: &str) -> Option<String> {
    let (mut remote, mut found) = (None, Vec::new());
    for line in config.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            let name = section.strip_prefix("remote \"");
            remote = name.and_then(|it| it.strip_suffix('"'));
        } else if let (Some(name), Some((key, value))) = (remote, line.split_once('='))
            && key.trim() == "url"
        {
            found.push((name, value.trim().trim_matches('"').to_owned()));
        }
    }
    let origin = found.iter().position(|it| it.0 == "origin").unwrap_or(0);
    found.into_iter().nth(origin).map(|it| it.1)
}

/// `git@host:a/b.git` and `https://user:secret@host/a/b` are `host/a/b`; `None` for what is no address.
fn plain_remote(url: &str) -> Option<String> {
    let url = url.trim();
    if url.is_empty() || url.chars().any(char::is_control) {
        return None;
    }
    let (authority, path) = match url.split_once("://") {
        Some(("file", path)) => ("", path),
        Some((_, rest)) => rest.split_once('/')?,
        None => {
            let (before, path) = url.split_once(':')?;
            // A path may have a colon, but not before its first slash.
            if before.contains('/') || before.is_empty() {
                return None;
            }
            (before, path)
        }
    };
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let host = host.to_lowercase();
    let standard = [":22", ":443", ":80"];
    let host = standard
        .iter()
        .find_map(|port| host.strip_suffix(port))
        .unwrap_or(&host);
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (!path.is_empty()).then(|| format!("{host}/{path}"))
}

fn last_part(text: &str) -> String {
    let last = text.trim_end_matches('/').rsplit('/').next();
    last.unwrap_or_default()
        .chars()
        .take(NAME_CHARS_MAX)
        .collect()
}

/// A word that a file may have as its name, and digits.
fn id_of(how: &str, text: &str, name: &str) -> String {
    let small = name.to_lowercase();
    let letters = small.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() => c,
        _ => '-',
    });
    let word: String = letters.take(40).collect();
    let word = word.trim_matches('-');
    let word = if word.is_empty() { "project" } else { word };
    let hash = Hash::of(format!("{how}:{text}").as_bytes()).to_string();
    format!("{word}-{}", &hash[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_repository_are_one_project_and_hold_no_secret() {
        let forms = [
            "https://github.com/acme/shop.git",
            "https://bot:s3cret@GitHub.com/acme/shop",
            "git@github.com:acme/shop.git",
            "ssh://git@github.com:22/acme/shop/",
        ];
        for form in forms {
            let project = Project::named(form).unwrap();
            assert_eq!(
                project.remote.as_deref(),
                Some("github.com/acme/shop"),
                "{form}"
            );
            assert_eq!(project.id, Project::named(forms[0]).unwrap().id);
            assert!(project.id.starts_with("shop-"), "{}", project.id);
        }
        let other = Project::named("git@gitlab.com:acme/shop.git").unwrap();
        assert_ne!(other.id, Project::named(forms[0]).unwrap().id);
        let path = Project::named("/home/ann/shop/").unwrap();
        assert_eq!(
            (path.remote, path.path.as_deref()),
            (None, Some("/home/ann/shop"))
        );
        for nothing in ["", "/", "shop", "a/b:c", ":", "https://host"] {
            assert_eq!(Project::named(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn the_remote_is_origin_else_the_first() {
        let config = "[core]\n\tbare = false\n[remote \"fork\"]\n\turl = git@x:f/r\n[remote \"origin\"]\n\turl = git@x:o/r\n[branch \"url\"]\n\turl = no\n";
        assert_eq!(remote_in(config).as_deref(), Some("git@x:o/r"));
        let config = "[remote \"fork\"]\nurl=git@x:f/r\n";
        assert_eq!(remote_in(config).as_deref(), Some("git@x:f/r"));
        assert_eq!(remote_in("[remote \"origin\"]\nfetch = +refs\n"), None);
    }
}
