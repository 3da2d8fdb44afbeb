//! What the operator permitted beyond the public internet.

use crate::place::{Named, Place};
use crate::special::Net;
use kenning_core::{Error, Result};
use std::fmt;
use std::net::IpAddr;

/// A permission for a host that would be refused: one name, one address or one network, on one
/// port or on all.
///
/// - A name permits that name wherever it resolves to, and no other name that leads there.
/// - An address permits that address when the URL is written with it.
/// - A network permits every address in it, by number or by name. Refused names (`*.internal`) and
///   refused ports still need a grant of their own.
///
/// A redirect is judged like any other address: a grant for where it starts is not one for where it
/// leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    to: To,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum To {
    Host(Named),
    Net(Net),
}

impl Grant {
    /// Reads `http://127.0.0.1:11434`, `localhost:8080`, `10.0.0.5`, `[::1]:80` or `10.0.0.0/8`.
    ///
    /// A URL grants its own port, the scheme's if it names none; other forms without a port grant
    /// all ports.
    pub fn parse(text: &str) -> Result<Self> {
        if let Ok(address) = text.parse::<IpAddr>() {
            let to = To::Host(Named::Literal(address.to_canonical()));
            return Ok(Self { to, port: None });
        }
        if text.contains("://") {
            let place = Place::parse(text)?;
            return Ok(Self {
                to: To::Host(place.host),
                port: Some(place.port),
            });
        }
        if let Some((address, prefix)) = text.split_once('/') {
            let net = address.parse().ok().zip(prefix.parse().ok());
            let net = net.and_then(|(address, prefix)| Net::new(address, prefix));
            let net = net.ok_or_else(|| unreadable(text))?;
            let to = To::Net(net);
            return Ok(Self { to, port: None });
        }
        // The parser drops a port that is the scheme's own; what one scheme drops the other keeps.
        let http = Place::parse(&format!("http://{text}")).map_err(|_| unreadable(text))?;
        let https = Place::parse(&format!("https://{text}")).map_err(|_| unreadable(text))?;
        let port = http.url.port().or(https.url.port());
        let to = To::Host(http.host);
        Ok(Self { to, port })
    }

    /// Whether it permits the host as written in the URL.
    pub(crate) fn permits_host(&self, place: &Place) -> bool {
        let host = match (&self.to, &place.host) {
            (To::Host(host), it) => host == it,
            (To::Net(net), Named::Literal(it)) => net.contains(*it),
            (To::Net(_), Named::Name(_)) => false,
        };
        host && self.permits_port(place)
    }

    /// Whether it permits an address that the host resolved to.
    pub(crate) fn permits_address(&self, place: &Place, address: IpAddr) -> bool {
        let net = matches!(&self.to, To::Net(net) if net.contains(address));
        (net && self.permits_port(place)) || self.permits_host(place)
    }

    fn permits_port(&self, place: &Place) -> bool {
        self.port.is_none_or(|it| it == place.port)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.to {
            To::Host(Named::Name(it)) => f.write_str(it)?,
            To::Host(Named::Literal(IpAddr::V6(it))) if self.port.is_some() => write!(f, "[{it}]")?,
            To::Host(Named::Literal(it)) => write!(f, "{it}")?,
            To::Net(it) => write!(f, "{it}")?,
        }
        self.port.map_or(Ok(()), |it| write!(f, ":{it}"))
    }
}

fn unreadable(text: &str) -> Error {
    let shown = crate::place::shown(text);
    Error::invalid(format!("`{shown}` is not a host, an address or a network"))
        .hint("write `localhost:8080`, `10.0.0.5`, `10.0.0.0/8` or `http://127.0.0.1:11434`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = Grant::parse(text).map_or_else(|err| err.code.to_string(), |it| it.to_string());
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_grant_is_read_in_every_form_an_operator_writes() {
        check("http://127.0.0.1:11434", "127.0.0.1:11434");
        check("http://127.0.0.1:11434/v1/embeddings", "127.0.0.1:11434");
        check("https://models.internal", "models.internal:443");
        check("localhost:8080", "localhost:8080");
        check("localhost:80", "localhost:80");
        check("localhost:443", "localhost:443");
        check("LocalHost.", "localhost");
        check("10.0.0.5", "10.0.0.5");
        check("::1", "::1");
        check("[::1]:80", "[::1]:80");
        check("::ffff:10.0.0.5", "10.0.0.5");
        check("10.0.0.0/8", "10.0.0.0/8");
        check("fd00::/8", "fd00::/8");
        for broken in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "a b",
            "user@localhost",
            "host:99999",
        ] {
            check(broken, "invalid_input");
        }
    }
}
