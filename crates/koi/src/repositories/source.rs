//! Where a repository may be: behind `https://`, or in a directory that the operator configured.
//!
//! Everything else that `git` understands is refused by its name, before anything is started or asked:
//! other schemes, helpers (`ext::`), addresses of `ssh` without a scheme, options in place of addresses.

use super::git::Protocol;
use super::{Places, VARIABLE};
use kenning_core::{Error, Result, Space};
use kenning_vault::{Dir, resolved};
use std::path::{Path, PathBuf};

/// The longest address.
const URL_CHARS_MAX: usize = 2_048;

/// Where a repository is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A server's, by an address that begins with `https://`.
    Remote(String),
    /// A directory's absolute path.
    Local(PathBuf),
}

impl Source {
    /// Reads an address as somebody wrote it.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let refused = |why: &str| {
            let shown: String = text
                .chars()
                .filter(|it| !it.is_control())
                .take(80)
                .collect();
            Error::invalid(format!("`repo_url`: `{shown}` {why}")).hint(format!(
                "give `https://…`, or the absolute path of a repository in a directory of {VARIABLE}"
            ))
        };
        if text.is_empty() {
            return Err(refused("is empty"));
        }
        if text.chars().count() > URL_CHARS_MAX || text.chars().any(char::is_control) {
            return Err(refused("is too long, or has control characters"));
        }
        if text.starts_with('-') {
            return Err(refused("is an option and not a URL"));
        }
        if let Some(path) = text.strip_prefix("file://") {
            // `git` would read an escape in it, and whoever checks would not.
            if !path.starts_with('/') || path.contains('%') {
                return Err(refused("is not `file://` with a plain absolute path"));
            }
            return Ok(Self::Local(
                plain(path).ok_or_else(|| refused("has `..` in it"))?,
            ));
        }
        if text.starts_with('/') {
            return Ok(Self::Local(
                plain(text).ok_or_else(|| refused("has `..` in it"))?,
            ));
        }
        if text.contains("::") && !text.starts_with("https://") {
            return Err(refused("names a helper, which is a program"));
        }
        match text.split_once("://") {
            Some(("https", rest)) => remote(text, rest).map_err(|error| match error {
                Some(error) => error,
                None => refused("is not the plain address of a repository"),
            }),
            Some((scheme, _)) => {
                let scheme: String = scheme.chars().take(20).collect();
                Err(refused(&format!(
                    "has the scheme `{scheme}`, which is not supported"
                )))
            }
            None if text.contains(':') => Err(refused("is an SSH address, which is not supported")),
            None => Err(refused("is neither a URL nor an absolute path")),
        }
    }

    /// As it is kept and compared.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Remote(url) => url.clone(),
            Self::Local(path) => path.to_string_lossy().into_owned(),
        }
    }

    pub(super) fn protocol(&self) -> Protocol {
        match self {
            Self::Remote(_) => Protocol::Https,
            Self::Local(_) => Protocol::File,
        }
    }

    /// What a repository is called when nobody says: `owner/name`, or the name of its directory.
    pub(super) fn name(&self) -> String {
        let shown = self.shown();
        let (path, parts) = match self {
            Self::Remote(_) => (shown.splitn(4, '/').nth(3).unwrap_or_default(), 2),
            Self::Local(_) => (shown.as_str(), 1),
        };
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let path = path.trim_end_matches('/');
        let mut last: Vec<&str> = path.rsplit('/').take(parts).collect();
        last.reverse();
        last.join("/")
    }
}

/// An absolute path without `.` and empty parts; none if it goes up.
fn plain(path: &str) -> Option<PathBuf> {
    let mut plain = PathBuf::from("/");
    for part in path.split('/').filter(|it| !it.is_empty() && *it != ".") {
        if part == ".." {
            return None;
        }
        plain.push(part);
    }
    Some(plain)
}

/// The same address that the gate would read; userinfo, which may be a secret, is refused there.
fn remote(text: &str, rest: &str) -> Result<Source, Option<Error>> {
    kenning_egress::host_of(text).map_err(|error| {
        let message = format!("`repo_url`: {}", error.message);
        Some(Error { message, ..error })
    })?;
    let path = rest.split_once('/').map_or("", |it| it.1);
    let is_plain = !text.contains(['?', '#', ' ', '\\']) && !path.trim_matches('/').is_empty();
    if !is_plain || path.split('/').any(|it| it == "..") {
        return Err(None);
    }
    Ok(Source::Remote(text.trim_end_matches('/').to_owned()))
}

impl Places {
    /// Whether a repository may be read, and by which address `git` reaches it. Asked again before every
    /// scan: a directory may have been exchanged, or be configured no longer.
    pub(super) fn address(&self, space: &Space, source: &Source) -> Result<String> {
        match source {
            Source::Remote(url) => Ok(url.clone()),
            Source::Local(path) => {
                let path = self.local(space, path)?;
                // `git` reads escapes in an address, so a sign that begins one is written as one.
                let path = path.to_string_lossy().replace('%', "%25");
                Ok(format!("file://{path}"))
            }
        }
    }

    fn local(&self, space: &Space, path: &Path) -> Result<PathBuf> {
        let shown = path.display();
        let outside = || {
            Error::denied(format!(
                "`repo_url`: `{shown}` is not in a directory that {VARIABLE} names"
            ))
            .hint(format!(
                "put the repository's directory, or one above it, into {VARIABLE}"
            ))
        };
        if *space != self.space {
            return Err(outside());
        }
        let real = resolved(path).ok_or_else(outside)?;
        // Whoever started the process there lets it read the repository, wherever its objects are.
        if self.project_root().as_ref() == Some(&real) {
            return Ok(real);
        }
        for root in &self.options.paths {
            let Ok(root) = Dir::open(root) else {
                continue;
            };
            let Some(beneath) = resolved(root.path())
                .and_then(|it| Some(real.strip_prefix(it).ok()?.to_str()?.to_owned()))
            else {
                continue;
            };
            let dir = match beneath.as_str() {
                "" => root,
                _ => root.subdir(&beneath)?,
            };
            whole(&dir, &shown.to_string())?;
            return Ok(real);
        }
        Err(outside())
    }
}

/// Whether this is a repository that has all its objects in itself: one that borrows them, or that is a
/// second work tree of another, would lead out of the directory that was configured.
fn whole(dir: &Dir, shown: &str) -> Result<()> {
    let refused = |why: &str, hint: &str| {
        Err(Error::invalid(format!("`repo_url`: `{shown}` {why}")).hint(hint))
    };
    let has_dir = |name: &str| dir.metadata(name).is_ok_and(|it| it.is_dir);
    let prefix = match dir.metadata(".git") {
        Ok(it) if it.is_dir => ".git/",
        Ok(_) => {
            return refused(
                "is a work tree whose repository is elsewhere",
                "register that repository itself",
            );
        }
        Err(_) => "",
    };
    if !has_dir(&format!("{prefix}objects")) || !has_dir(&format!("{prefix}refs")) {
        return refused(
            "is not a git repository",
            "name the directory that has `.git`",
        );
    }
    for borrowed in ["objects/info/alternates", "commondir"] {
        if dir.exists(&format!("{prefix}{borrowed}"))? {
            return refused(
                "borrows objects of another repository",
                "give it its own: `git repack -a -d`, then remove `objects/info/alternates`",
            );
        }
    }
    Ok(())
}

/// A branch that `git` cannot take for anything else.
pub(super) fn branch(text: &str) -> Result<String> {
    let text = text.trim();
    let is_odd = |it: char| it.is_control() || " ~^:?*[\\".contains(it);
    let is_part = |it: &str| !it.is_empty() && !it.starts_with('.') && !it.ends_with(".lock");
    let is_good = !text.chars().any(is_odd)
        && !text.starts_with('-')
        && !text.ends_with('.')
        && !text.contains("..")
        && !text.contains("@{")
        && text.len() <= 200
        && text.split('/').all(is_part);
    if is_good {
        return Ok(text.to_owned());
    }
    let shown: String = text
        .chars()
        .filter(|it| !it.is_control())
        .take(80)
        .collect();
    Err(
        Error::invalid(format!("`branch`: `{shown}` is not the name of a branch"))
            .hint("give the name alone, for example `main`"),
    )
}

/// A name that can stand in the name of a document.
pub(super) fn name(text: &str) -> Result<String> {
    let text = text.trim();
    let is_odd = |it: char| it.is_control() || it.is_whitespace() || it == ':';
    let is_good = !text.is_empty() && text.chars().count() <= 200 && !text.contains(is_odd);
    if is_good {
        return Ok(text.to_owned());
    }
    let shown: String = text
        .chars()
        .filter(|it| !it.is_control())
        .take(80)
        .collect();
    Err(
        Error::invalid(format!("`repo_name`: `{shown}` is not a valid name"))
            .hint("write it as `owner/name`, without blanks and colons"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_named() {
        for (text, shown, name) in [
            (
                "https://example.com/acme/demo.git",
                "https://example.com/acme/demo.git",
                "acme/demo",
            ),
            (
                " https://example.com/a/b/c/ ",
                "https://example.com/a/b/c",
                "b/c",
            ),
            ("/srv/git/demo", "/srv/git/demo", "demo"),
            ("/srv//git/./demo.git/", "/srv/git/demo.git", "demo"),
            ("file:///srv/git/demo", "/srv/git/demo", "demo"),
        ] {
            let source = Source::parse(text).unwrap();
            assert_eq!(
                (source.shown().as_str(), source.name().as_str()),
                (shown, name)
            );
        }
    }

    #[test]
    fn branches_are_names_and_nothing_else() {
        for good in ["main", "feature/x", "v1.0", "ünïcode"] {
            assert_eq!(branch(good).unwrap(), good);
        }
        for bad in [
            "",
            "-x",
            "--upload-pack=x",
            "a..b",
            "a b",
            "a:b",
            "a/",
            "/a",
            ".a",
            "a.lock",
            "a^",
            "a~1",
            "a@{1}",
            "a\nb",
            "a*",
            "a.",
            "a//b",
        ] {
            assert!(branch(bad).is_err(), "{bad}");
        }
    }
}
