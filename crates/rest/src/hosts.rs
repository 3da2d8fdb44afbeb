//! The names of this server. What is not exactly one of them is none: `testing/corpora/hosts.txt` has
//! the tricks.

use std::net::IpAddr;

/// Names under which this server may be called.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// Beside the loopback names: what `--allow-host` named, and the addresses we listen on.
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

    /// Whether `origin` (`http://name:port`) is one of ours.
    pub fn allows_origin(&self, origin: &str) -> bool {
        let rest = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        rest.is_some_and(|authority| self.allows(authority))
    }
}

/// The name in an authority; `None` unless it is exactly a name and perhaps a port.
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

/// The address that a name is: of version 6 in brackets, of version 4 without.
fn address(name: &str) -> Option<IpAddr> {
    match name.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse().ok().map(IpAddr::V6),
        None => name.parse().ok().map(IpAddr::V4),
    }
}

/// The same for what an operator wrote, who may leave out the brackets and may add a port.
fn bare_address(text: &str) -> Option<IpAddr> {
    text.parse()
        .ok()
        .or_else(|| host_of(text).and_then(address))
}
