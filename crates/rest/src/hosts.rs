//! The names of this server, compared exactly: `testing/corpora/hosts.txt` has attempts to trick it.

use std::net::IpAddr;

/// Names under which this server may be called.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// In addition to the loopback names: those of `--allow-host`, and the addresses we listen on.
    pub extra: Vec<String>,
}

impl Hosts {
    /// Whether `authority` (`name`, `name:port`, `[::1]:port`) is one of ours.
    pub fn allows(&self, authority: &str) -> bool {
        let Some(name) = host_of(authority) else {
            return false;
        };
        match address(name) {
            Some(it) if it.is_loopback() => true,
            Some(it) => self
                .extra
                .iter()
                .any(|extra| bare_address(extra) == Some(it)),
            None => {
                let same = |it: &str| host_of(it).is_some_and(|it| it.eq_ignore_ascii_case(name));
                same("localhost") || self.extra.iter().any(|it| same(it))
            }
        }
    }

    /// Whether `origin` (`http://name:port`) is the one that was called as `host`. Another port is
    /// another server, and its pages are foreign, even on this machine. So is `https`, which this
    /// server does not speak: behind a proxy that does, the operator names the origin.
    pub fn is_own_origin(&self, origin: &str, host: &str) -> bool {
        const PORT: u16 = 80;
        let page = origin.strip_prefix("http://");
        let (Some(page), Some(called)) = (page.and_then(|it| split(it, PORT)), split(host, PORT))
        else {
            return false;
        };
        let same_name = match (address(page.0), address(called.0)) {
            (None, None) => page.0.eq_ignore_ascii_case(called.0),
            (page, called) => page == called,
        };
        same_name && page.1 == called.1 && self.allows(host)
    }
}

/// The name in an authority, and its port.
fn split(authority: &str, port_default: u16) -> Option<(&str, u16)> {
    let name = host_of(authority)?;
    match authority.get(name.len()..)?.strip_prefix(':') {
        Some(port) => port.parse().ok().map(|it| (name, it)),
        None => Some((name, port_default)),
    }
}

/// The name in an authority; `None` unless it is exactly a name and optionally a port.
fn host_of(authority: &str) -> Option<&str> {
    let at = match authority.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (name, port) = authority.split_at_checked(at)?;
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '[' | ']' | ':');
    let port_ok = port.is_empty()
        || port.strip_prefix(':').is_some_and(|it| {
            it.bytes().all(|b| b.is_ascii_digit()) && it.parse::<u16>().is_ok_and(|it| it > 0)
        });
    (!name.is_empty() && name.chars().all(plain) && port_ok).then_some(name)
}

/// The IP address in a name: IPv6 in brackets, IPv4 without.
fn address(name: &str) -> Option<IpAddr> {
    match name.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse().ok().map(IpAddr::V6),
        None => name.parse().ok().map(IpAddr::V4),
    }
}

/// The same for what an operator wrote, who may omit the brackets and may add a port.
fn bare_address(text: &str) -> Option<IpAddr> {
    text.parse()
        .ok()
        .or_else(|| host_of(text).and_then(address))
}
