//! Repositories that an agent may register by scanning them, as the operator's policy says.

use super::source::Source;
use super::{NewRepository, Registered};
use crate::Koi;
use kenning_core::{Error, Result};
use kenning_kernel::Caller;

/// How the operator names repositories that may be registered.
const ALLOW: &str = "KENNING_REPO_ALLOW";
/// Where `owner/name` is when nobody says.
const GITHUB: &str = "https://github.com/";

impl Koi {
    /// Registers what `repo_name` of a scan names, if the operator's policy admits it: `owner/name`, an
    /// `https://` address, or the path of a repository in a configured directory.
    pub fn register_admitted(&self, caller: &Caller, named: &str) -> Result<Registered> {
        let address = address(named)?;
        let source = Source::parse(&address)?;
        if let Source::Remote(url) = &source {
            let allow = &self.repositories.places.options.allow;
            let config = self.kernel.memory_config()?;
            let mut allow = allow.iter().chain(&config.repositories);
            if !allow.any(|it| admits(it, url)) {
                let shown: String = named
                    .chars()
                    .filter(|it| !it.is_control())
                    .take(200)
                    .collect();
                return Err(Error::denied(format!(
                    "`repo_name`: `{shown}` is not among the repositories that {ALLOW} or `repositories.allow` admits"
                ))
                .hint(format!(
                    "the operator can register it with `kenning koi add_repo`, or put `owner/name` or `owner/*` into {ALLOW}"
                )));
            }
        }
        let new = NewRepository {
            repo_url: address,
            ..NewRepository::default()
        };
        self.register_repository(caller, &new)
    }
}

/// `owner/name` is at GitHub; everything else is as it is written.
fn address(named: &str) -> Result<String> {
    let named = named.trim();
    let is_part = |it: &str| {
        let is_sign = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
        !it.is_empty() && it.chars().all(is_sign) && it != "." && it != ".."
    };
    match named.split('/').collect::<Vec<_>>().as_slice() {
        [owner, name] if is_part(owner) && is_part(name) => Ok(format!("{GITHUB}{owner}/{name}")),
        _ => Ok(named.to_owned()),
    }
}

/// Whether an entry of the policy admits an address. `*` stands for one last part, never for an owner.
fn admits(entry: &str, url: &str) -> bool {
    let full = |it: &str| match it.starts_with("https://") {
        true => it.to_owned(),
        false => format!("{GITHUB}{it}"),
    };
    let plain = |it: &str| {
        let it = it.trim().trim_end_matches('/');
        it.strip_suffix(".git").unwrap_or(it).to_ascii_lowercase()
    };
    let (entry, url) = (plain(&full(entry.trim())), plain(url));
    match entry.strip_suffix("/*") {
        Some(owner) => url
            .strip_prefix(owner)
            .and_then(|it| it.strip_prefix('/'))
            .is_some_and(|it| !it.is_empty() && !it.contains('/')),
        None => entry == url,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_admits_what_it_names_and_nothing_beside() {
        for (entry, url, expected) in [
            ("acme/demo", "https://github.com/acme/demo", true),
            ("acme/demo", "https://github.com/Acme/Demo.git", true),
            ("acme/demo", "https://github.com/acme/demo2", false),
            ("acme/demo", "https://example.com/acme/demo", false),
            ("acme/*", "https://github.com/acme/any", true),
            ("acme/*", "https://github.com/acme2/any", false),
            ("acme/*", "https://github.com/acme/any/more", false),
            (
                "https://git.example.com/a/*",
                "https://git.example.com/a/b",
                true,
            ),
            ("*", "https://github.com/acme/demo", false),
        ] {
            assert_eq!(admits(entry, url), expected, "{entry} {url}");
        }
    }

    #[test]
    fn owner_and_name_are_an_address() {
        assert_eq!(
            address("acme/demo").unwrap(),
            "https://github.com/acme/demo"
        );
        assert_eq!(address("/srv/git/demo").unwrap(), "/srv/git/demo");
        assert_eq!(address("../x").unwrap(), "../x");
    }
}
