//! As much of an address as a request has to name. The host reads it again and decides.

use std::fmt;

#[derive(Debug, PartialEq)]
pub(crate) struct Url {
    pub(crate) is_tls: bool,
    /// Host and port.
    pub(crate) authority: String,
    pub(crate) path_with_query: String,
}

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| Err(format!("`url` is `{text}`: {why}"));
        let Some((scheme, rest)) = text.split_once("://") else {
            return refuse("begin it with `https://` or `http://`");
        };
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return refuse("begin it with `https://` or `http://`"),
        };
        // What follows `#` is for whoever shows the page.
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.is_empty() {
            return refuse("it names no host");
        }
        if authority.contains('@') {
            return refuse("leave out the name and the password");
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return refuse("write a space as `%20`");
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self {
            is_tls,
            authority: authority.to_owned(),
            path_with_query: format!("{slash}{path}"),
        })
    }

    /// Without the port.
    pub(crate) fn host(&self) -> &str {
        match self.authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => &self.authority,
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path_with_query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        for (text, shown, host) in [
            ("https://example.com", "https://example.com/", "example.com"),
            (
                "HTTP://example.com:80/a/b?c=d#e",
                "http://example.com:80/a/b?c=d",
                "example.com",
            ),
            (
                "https://example.com?q",
                "https://example.com/?q",
                "example.com",
            ),
            ("https://[::1]:8080/x", "https://[::1]:8080/x", "[::1]"),
            ("https://[::1]/x", "https://[::1]/x", "[::1]"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!(
                (url.to_string().as_str(), url.host()),
                (shown, host),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_remedy() {
        for (text, why) in [
            ("example.com", "begin it with"),
            ("file:///etc/passwd", "begin it with"),
            ("https://", "it names no host"),
            ("https:///x", "it names no host"),
            ("https://user:word@example.com", "leave out the name"),
            ("https://example.com/a b", "`%20`"),
            ("https://example.com/a\r\nHost: b", "`%20`"),
        ] {
            let refused = Url::parse(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
