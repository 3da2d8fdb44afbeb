//! One entry of `net_allow_list`, and which hosts it stands for.
//!
//! | entry | permits |
//! |---|---|
//! | `api.github.com` | that name on ports 80 and 443 |
//! | `api.github.com:8443` | that name on that port only |
//! | `*.example.com` | every name beneath it, never `example.com` itself and never a number |
//! | `*` | every public name and number on ports 80 and 443 |
//! | `127.0.0.1`, `[::1]`, `localhost` | that very host on every port, though it is not public |
//! | `127.0.0.1:8080` | the same on that port |
//!
//! A host is compared after the WHATWG parser has read it, so case, a final dot and the many ways to
//! write a number do not matter; [`Target::parse`] refuses unusual ways to write one, because
//! other programs may read another host in the same text. Whether a name *leads* to a private
//! address is not judged here but in `egress`, where the name is resolved once; only what is written
//! out literally is granted there.

use kenning_core::{Error, Result};
use std::fmt;
use std::net::IpAddr;
use url::{Host as Parsed, Url};

/// An entry of `net_allow_list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pattern: Pattern,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Any,
    /// Every name that ends in a dot and this.
    Beneath(String),
    Name(String),
    Number(IpAddr),
}

/// A host that a tool wants to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    host: Pattern,
    port: u16,
}

const WEB_PORTS: [u16; 2] = [80, 443];
/// The longest address of a request.
const URL_BYTES_MAX: usize = 16 * 1024;

impl Host {
    /// Reads an entry.
    pub fn parse(text: &str) -> Result<Self> {
        let broken = || {
            let shown: String = text
                .chars()
                .filter(|it| !it.is_control())
                .take(80)
                .collect();
            Error::invalid(format!(
                "`net_allow_list` has the entry `{shown}`, which is not a host name"
            ))
            .hint(
                "write `api.example.com`, `*.example.com`, `example.com:8443`, `127.0.0.1` or `*`",
            )
        };
        if text == "*" {
            let pattern = Pattern::Any;
            return Ok(Self {
                pattern,
                port: None,
            });
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            let pattern = Pattern::Number(address.to_canonical());
            return Ok(Self {
                pattern,
                port: None,
            });
        }
        let (beneath, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if rest.contains(['/', '@', '?', '#', '*', '\\']) || rest.contains(char::is_whitespace) {
            return Err(broken());
        }
        let (host, port) = read(rest).ok_or_else(broken)?;
        let pattern = match (beneath, host) {
            (true, Pattern::Name(name)) => Pattern::Beneath(name),
            (true, _) => return Err(broken()),
            (false, host) => host,
        };
        Ok(Self { pattern, port })
    }

    /// Whether it permits this host.
    pub fn permits(&self, target: &Target) -> bool {
        let host = match (&self.pattern, &target.host) {
            (Pattern::Any, Pattern::Name(name)) => !is_loopback_name(name),
            (Pattern::Any, Pattern::Number(_)) => true,
            (Pattern::Beneath(suffix), Pattern::Name(name)) => is_beneath(name, suffix),
            (own, it) => own == it,
        };
        host && match self.port {
            Some(port) => port == target.port,
            None => self.is_literal() || WEB_PORTS.contains(&target.port),
        }
    }

    /// Whether it names one machine that need not be public: a number or `localhost`. Only such an
    /// entry opens private addresses.
    pub fn is_literal(&self) -> bool {
        match &self.pattern {
            Pattern::Number(_) => true,
            Pattern::Name(name) => is_loopback_name(name),
            Pattern::Any | Pattern::Beneath(_) => false,
        }
    }

    /// Whether it stands for more than one host.
    pub fn is_wide(&self) -> bool {
        matches!(self.pattern, Pattern::Any | Pattern::Beneath(_))
    }

    /// Whether everything that `other` permits is permitted by this one.
    pub fn covers(&self, other: &Self) -> bool {
        let host = match (&self.pattern, &other.pattern) {
            // `*` is every *public* host: what is written out literally may be private.
            (Pattern::Any, _) => !other.is_literal(),
            (Pattern::Beneath(own), Pattern::Beneath(it)) => own == it || is_beneath(it, own),
            (Pattern::Beneath(own), Pattern::Name(it)) => is_beneath(it, own),
            (own, it) => own == it,
        };
        let port = match (self.port, other.port) {
            (None, None) => true,
            (None, Some(port)) => self.is_literal() || WEB_PORTS.contains(&port),
            (own, it) => own == it,
        };
        host && port
    }
}

impl Target {
    /// Reads the host of a URL, or says why no request may be sent to it.
    pub fn parse(url: &str) -> Result<Self> {
        let odd = |why: &str| Error::denied(format!("the address of a request {why}"));
        if url.len() > URL_BYTES_MAX {
            return Err(odd("is too long"));
        }
        let parsed = Url::parse(url).map_err(|err| odd("cannot be read").because(err))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(odd("is neither http nor https"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(odd("contains a user name"));
        }
        let written = url.split_once("://").map_or("", |(_, rest)| rest);
        let written = written
            .split(['/', '?', '#', '\\'])
            .next()
            .unwrap_or_default();
        if written.contains('@') {
            return Err(odd("contains a user name"));
        }
        let host = match parsed.host() {
            Some(Parsed::Domain(name)) => Pattern::Name(plain(name)),
            Some(Parsed::Ipv4(number)) => {
                // `0x7f.1` and `2130706433` are IP addresses too, but not for every parser.
                let host = written.rsplit_once(':').map_or(written, |(host, _)| host);
                if host != number.to_string() {
                    return Err(odd("does not write the IP address in its usual form"));
                }
                Pattern::Number(IpAddr::V4(number))
            }
            Some(Parsed::Ipv6(number)) => Pattern::Number(IpAddr::V6(number).to_canonical()),
            None => return Err(odd("has no host")),
        };
        let port = parsed.port_or_known_default().unwrap_or_default();
        Ok(Self { host, port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Pattern::Any => f.write_str("*")?,
            Pattern::Beneath(name) => write!(f, "*.{name}")?,
            Pattern::Name(name) => f.write_str(name)?,
            Pattern::Number(IpAddr::V6(number)) if self.port.is_some() => write!(f, "[{number}]")?,
            Pattern::Number(number) => write!(f, "{number}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = Host {
            pattern: self.host.clone(),
            port: (!WEB_PORTS.contains(&self.port)).then_some(self.port),
        };
        host.fmt(f)
    }
}

/// A host and the port that was written beside it.
fn read(text: &str) -> Option<(Pattern, Option<u16>)> {
    // The parser drops the scheme's default port, so both schemes are tried: one of them keeps it.
    let http = Url::parse(&format!("http://{text}")).ok()?;
    let https = Url::parse(&format!("https://{text}")).ok()?;
    let port = http.port().or(https.port());
    let host = match http.host()? {
        Parsed::Domain(name) => Pattern::Name(plain(name)),
        Parsed::Ipv4(number) => {
            let written = text.rsplit_once(':').map_or(text, |(host, _)| host);
            (written == number.to_string()).then_some(Pattern::Number(IpAddr::V4(number)))?
        }
        Parsed::Ipv6(number) => Pattern::Number(IpAddr::V6(number).to_canonical()),
    };
    match &host {
        Pattern::Name(name) if name.is_empty() || name.starts_with('.') => None,
        _ => Some((host, port)),
    }
}

fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn is_beneath(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix)
        .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

fn is_loopback_name(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entry: &str, url: &str, expected: bool) {
        let entry = Host::parse(entry).unwrap();
        let found = Target::parse(url).is_ok_and(|it| entry.permits(&it));
        assert_eq!(found, expected, "{entry} and {url}");
    }

    #[test]
    fn an_entry_permits_its_host_and_no_other() {
        for (entry, url, expected) in [
            ("api.github.com", "https://api.github.com/x", true),
            ("api.github.com", "http://API.GitHub.com./x", true),
            ("API.GitHub.com.", "https://api.github.com/", true),
            ("api.github.com", "https://api.github.com:8443/", false),
            ("api.github.com:8443", "https://api.github.com:8443/", true),
            ("api.github.com:8443", "https://api.github.com/", false),
            ("api.github.com", "https://api.github.com.evil.com/", false),
            ("api.github.com", "https://evil.com/api.github.com", false),
            ("api.github.com", "https://api.github.com@evil.com/", false),
            ("api.github.com", "https://evil.com#@api.github.com/", false),
            ("*.example.com", "https://foo.example.com/", true),
            ("*.example.com", "https://a.b.example.com/", true),
            ("*.example.com", "https://example.com/", false),
            ("*.example.com", "https://badexample.com/", false),
            ("*.example.com", "https://.example.com/", false),
            ("*.example.com:444", "https://foo.example.com:444/", true),
            ("*", "https://anything.org/", true),
            ("*", "https://anything.org:8080/", false),
            ("*", "http://localhost/", false),
            ("*", "http://8.8.8.8/", true),
            ("localhost", "http://localhost:9999/", true),
            ("localhost:80", "http://localhost:9999/", false),
            ("127.0.0.1", "http://127.0.0.1:4321/", true),
            ("127.0.0.1", "http://localhost:4321/", false),
            ("127.0.0.1", "http://127.0.0.2/", false),
            ("127.0.0.1", "http://0x7f.1/", false),
            ("127.0.0.1", "http://2130706433/", false),
            ("127.0.0.1", "http://[::ffff:127.0.0.1]/", true),
            ("::1", "http://[::1]:8080/", true),
            ("[::1]:80", "http://[::1]/", true),
            ("bücher.example", "https://xn--bcher-kva.example/", true),
            ("example.com", "ftp://example.com/", false),
            ("example.com", "file:///etc/passwd", false),
        ] {
            check(entry, url, expected);
        }
    }

    #[test]
    fn what_is_no_host_is_no_entry() {
        for entry in [
            "",
            "*.",
            "**",
            "*.*.com",
            "a b",
            "user@host",
            "host/path",
            "https://host",
            "*.127.0.0.1",
            "host:99999",
            "0x7f.1",
            "2130706433",
            ".example.com",
            "a*.example.com",
        ] {
            assert!(Host::parse(entry).is_err(), "{entry}");
        }
    }

    #[test]
    fn a_wide_entry_covers_narrow_ones_and_nothing_private() {
        for (wide, narrow, expected) in [
            ("*", "api.example.com", true),
            ("*", "*.example.com", true),
            ("*", "127.0.0.1", false),
            ("*", "localhost", false),
            ("*", "api.example.com:8443", false),
            ("*.example.com", "api.example.com", true),
            ("*.example.com", "*.a.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.a.example.com", "*.example.com", false),
            ("api.example.com", "api.example.com:443", true),
            ("api.example.com:443", "api.example.com", false),
            ("127.0.0.1", "127.0.0.1:8080", true),
        ] {
            let (wide, narrow) = (Host::parse(wide).unwrap(), Host::parse(narrow).unwrap());
            assert_eq!(wide.covers(&narrow), expected, "{wide} over {narrow}");
        }
    }
}
