//! How Kenning shows a server of repositories that it may read a private one.
//!
//! A token comes from the environment of the process, or from the credential helper of the operator's own `git`.
//! It is asked for only when a server has refused to answer without one, goes to that server and no
//! other (redirections are not followed with it), stands in the environment of one `git` process, and is
//! neither logged nor kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kenning_kernel::Environment;

/// Tokens for hosts, as the operator gives them: `host=token`, separated by commas.
const TOKENS: &str = "KENNING_REPO_TOKENS";
/// Where the usual variables of GitHub hold.
const GITHUB: &str = "github.com";

/// What one server is shown.
#[derive(Clone)]
pub(super) struct Credential {
    /// `https://host/`: nothing else is shown it.
    pub(super) origin: String,
    secret: String,
    user: String,
}

impl Credential {
    pub(super) fn new(host: &str, user: &str, secret: &str) -> Option<Self> {
        let is_plain = |it: &str| !it.is_empty() && !it.chars().any(char::is_control);
        (is_plain(secret) && is_plain(user)).then(|| Self {
            origin: format!("https://{host}/"),
            secret: secret.to_owned(),
            user: user.to_owned(),
        })
    }

    /// The header that shows it.
    pub(super) fn header(&self) -> String {
        let pair = STANDARD.encode(format!("{}:{}", self.user, self.secret));
        format!("Authorization: Basic {pair}")
    }

    /// A text without the secret, should somebody have repeated it.
    pub(super) fn hidden_in(&self, text: &str) -> String {
        text.replace(&self.secret, "…")
            .replace(self.header().as_str(), "…")
    }
}

/// `host[:port]` of an address that begins with `https://`.
pub(super) fn host(url: &str) -> &str {
    let rest = url.strip_prefix("https://").unwrap_or(url);
    rest.split('/').next().unwrap_or_default()
}

/// The token that the environment has for an address.
pub(super) fn from_environment(environment: &Environment, url: &str) -> Option<Credential> {
    let host = host(url);
    let variable = |name: &str| {
        let text = environment(name).unwrap_or_default();
        Some(text.trim().to_owned()).filter(|it| !it.is_empty())
    };
    // Any user name goes with a token; this one is GitHub's own for them.
    let with = |token: &str| Credential::new(host, "x-access-token", token);
    let listed = variable(TOKENS).and_then(|all| {
        let mut all = all.split(',').filter_map(|it| it.trim().split_once('='));
        let found = all.find(|it| it.0.trim().eq_ignore_ascii_case(host));
        found.and_then(|it| with(it.1.trim()))
    });
    listed.or_else(|| {
        let names = ["GITHUB_TOKEN", "GH_TOKEN"].into_iter();
        let mut tokens = names.filter_map(variable);
        let token = tokens
            .next()
            .filter(|_| host.eq_ignore_ascii_case(GITHUB))?;
        with(&token)
    })
}

/// What a credential helper is asked about an address.
pub(super) fn question(url: &str) -> String {
    let path = url.splitn(4, '/').nth(3).unwrap_or_default();
    format!("protocol=https\nhost={}\npath={path}\n\n", host(url))
}

/// What a credential helper answered.
pub(super) fn answer(url: &str, printed: &[u8]) -> Option<Credential> {
    let printed = String::from_utf8_lossy(printed);
    let line = |name: &str| {
        let mut all = printed.lines().filter_map(|it| it.split_once('='));
        all.find(|it| it.0 == name).map(|it| it.1)
    };
    // An answer about another host is not for this one.
    let is_meant = line("host").is_none_or(|it| it == host(url));
    let (user, secret) = (line("username")?, line("password")?);
    Credential::new(host(url), user, secret).filter(|_| is_meant)
}

/// Whether `git` was refused for want of a credential, by what it said.
pub(super) fn is_wanted(said: &str) -> bool {
    [
        "could not read Username",
        "could not read Password",
        "Authentication failed",
        "error: 401",
        "error: 403",
        "not found",
    ]
    .iter()
    .any(|it| said.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn environment(all: &'static [(&'static str, &'static str)]) -> Environment {
        Arc::new(|name: &str| {
            let found = all.iter().find(|it| it.0 == name);
            found.map(|it| it.1.to_owned())
        })
    }

    #[test]
    fn a_token_goes_to_its_own_host_and_no_other() {
        let all = environment(&[
            ("GITHUB_TOKEN", "of-github"),
            (
                "KENNING_REPO_TOKENS",
                "git.example.com=of-example, 10.0.0.5:8443=of-port",
            ),
        ]);
        let token = |url: &str| from_environment(&all, url).map(|it| (it.origin, it.secret));
        let some = |origin: &str, token: &str| Some((origin.to_owned(), token.to_owned()));
        assert_eq!(
            token("https://github.com/acme/demo"),
            some("https://github.com/", "of-github")
        );
        assert_eq!(
            token("https://git.example.com/a/b"),
            some("https://git.example.com/", "of-example")
        );
        assert_eq!(
            token("https://10.0.0.5:8443/a/b"),
            some("https://10.0.0.5:8443/", "of-port")
        );
        for other in [
            "https://github.com.example.com/acme/demo",
            "https://evilgithub.com/acme/demo",
            "https://github.com:8443/acme/demo",
            "https://gitlab.com/acme/demo",
            "https://10.0.0.5/a/b",
        ] {
            assert_eq!(token(other), None, "{other}");
        }
    }

    #[test]
    fn a_helper_answers_for_the_host_that_it_was_asked_about() {
        let url = "https://git.example.com/a/b.git";
        assert_eq!(
            question(url),
            "protocol=https\nhost=git.example.com\npath=a/b.git\n\n"
        );
        let said = b"protocol=https\nhost=git.example.com\nusername=me\npassword=p=w\n";
        let found = answer(url, said).unwrap();
        assert_eq!(found.header(), "Authorization: Basic bWU6cD13");
        assert_eq!(found.hidden_in("x p=w y"), "x … y");
        assert!(answer(url, b"host=other.example.com\nusername=a\npassword=b\n").is_none());
        assert!(answer(url, b"username=a\npassword=\n").is_none());
        assert!(answer(url, b"quit=1\n").is_none());
    }
}
