//! The branch of a repository that is read.

use super::git::{self, Bounds, Git};
use kenning_core::{Error, Result};
use kenning_text::list;

/// Names that are tried if a repository does not say which branch is its default.
const USUAL: [&str; 2] = ["main", "master"];
/// At most this many branches are named in an error.
const SHOWN_MAX: usize = 10;

/// What is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The full name of the reference.
    pub(super) reference: String,
    /// The branch, unless the repository's head is on none.
    pub(super) branch: Option<String>,
}

impl Choice {
    fn branch(name: &str) -> Self {
        Self {
            reference: format!("refs/heads/{name}"),
            branch: Some(name.to_owned()),
        }
    }
}

/// The branches of a repository, as `git ls-remote --symref` lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Branches {
    /// The branch that the repository's head names.
    head: Option<String>,
    /// Whether there is a head, on a branch or not.
    has_head: bool,
    names: Vec<String>,
}

impl Branches {
    /// Asks a repository for its branches.
    pub(super) fn ask(git: &Git<'_>, address: &str, bounds: Bounds) -> Result<Self> {
        let args = [
            "ls-remote",
            "--quiet",
            "--symref",
            "--",
            address,
            "HEAD",
            "refs/heads/*",
        ];
        let ended = git.run(&args, Vec::new(), bounds)?;
        if ended.is_success {
            return Ok(Self::parse(&String::from_utf8_lossy(&ended.output)));
        }
        Err(Error::unavailable(git::last_line(&ended.said)))
    }

    fn parse(listing: &str) -> Self {
        let mut found = Self::default();
        for (what, name) in listing.lines().filter_map(|it| it.split_once('\t')) {
            let target = what.strip_prefix("ref: ");
            match (target, name.strip_prefix("refs/heads/")) {
                (Some(target), _) if name == "HEAD" => {
                    found.head = target.strip_prefix("refs/heads/").map(str::to_owned);
                }
                (None, _) if name == "HEAD" => found.has_head = true,
                (None, Some(branch)) => found.names.push(branch.to_owned()),
                _ => {}
            }
        }
        found
    }

    /// What is read when nobody named a branch.
    pub(super) fn default_choice(&self) -> Result<Choice> {
        let is_there = |name: &&str| self.names.iter().any(|it| it == name);
        if let Some(head) = self.head.as_deref().filter(is_there) {
            return Ok(Choice::branch(head));
        }
        if self.has_head {
            return Ok(Choice {
                reference: "HEAD".to_owned(),
                branch: None,
            });
        }
        if let [only] = self.names.as_slice() {
            return Ok(Choice::branch(only));
        }
        if let Some(usual) = USUAL.into_iter().find(is_there) {
            return Ok(Choice::branch(usual));
        }
        if self.names.is_empty() {
            return Err(
                Error::invalid("the repository has no commits").hint("commit something, then scan")
            );
        }
        Err(
            Error::invalid("the repository does not say which branch is its default")
                .hint(self.remedy()),
        )
    }

    /// What to do about a branch that is not there.
    pub(super) fn remedy(&self) -> String {
        let shown = list::quoted(&self.names, SHOWN_MAX);
        format!("register the repository again with one of its branches: {shown}")
    }
}

/// The branch that somebody named.
pub(super) fn named(name: &str) -> Choice {
    Choice::branch(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_branch_is_what_the_repository_says() {
        let check = |listing: &str, expected: &str| {
            let found = Branches::parse(listing).default_choice();
            let found = found.map_or_else(|it| it.message, |it| it.reference);
            assert_eq!(found, expected, "{listing}");
        };
        check(
            "ref: refs/heads/trunk\tHEAD\n1\tHEAD\n1\trefs/heads/main\n1\trefs/heads/trunk\n",
            "refs/heads/trunk",
        );
        // The head is on no branch.
        check("1\tHEAD\n1\trefs/heads/a\n", "HEAD");
        check(
            "1\trefs/remotes/origin/HEAD\n2\trefs/heads/dev\n",
            "refs/heads/dev",
        );
        check(
            "2\trefs/heads/dev\n2\trefs/heads/master\n",
            "refs/heads/master",
        );
        check("", "the repository has no commits");
        check(
            "ref: refs/heads/gone\tHEAD\n2\trefs/heads/a\n2\trefs/heads/b\n",
            "the repository does not say which branch is its default",
        );
    }

    #[test]
    fn a_remedy_names_some_of_the_branches() {
        let listing: String = (0..12).map(|n| format!("1\trefs/heads/b{n}\n")).collect();
        let remedy = Branches::parse(&listing).remedy();
        assert!(remedy.ends_with("`b8`, `b9` and 2 more"), "{remedy}");
        let remedy = Branches::parse("1\trefs/heads/b\n").remedy();
        assert!(remedy.ends_with(": `b`"), "{remedy}");
    }
}
