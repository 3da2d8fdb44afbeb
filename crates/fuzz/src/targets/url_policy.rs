//! Untrusted addresses, and where `egress` would connect.

use super::{ensure, owned, pieces, text};
use crate::{Source, Subject, Target};
use kenning_core::Code;
use kenning_egress::{Connect, Egress, Policy, Resolve, is_special};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

pub(super) const TARGET: Target = Target {
    name: "url_policy",
    about: "no address that passes is special, by a table of its own, nor another reader's host",
    words: WORDS,
    seeds: || owned(SEEDS),
    generate,
    open: || {
        let policy = Policy {
            resolver: Arc::new(Table),
            connector: Arc::new(Nobody),
            ..Policy::default()
        };
        Box::new(UrlPolicy(Egress::new(policy)))
    },
    pass_cases: 3_000,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "http://",
    "https://",
    "ftp://",
    "file:///",
    "javascript:",
    "//",
    "@",
    ":",
    "/",
    "\\",
    "?",
    "#",
    "%",
    "%2f",
    "%00",
    "[",
    "]",
    "::1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "fe80::1%25eth0",
    "127.0.0.1",
    "0x7f.1",
    "0177.0.0.1",
    "2130706433",
    "127.1",
    "0",
    "169.254.169.254",
    "10.0.0.1",
    "localhost",
    "localhost.",
    "metadata.google.internal",
    "public.example",
    "private.example",
    "mixed.example",
    "xn--",
    "\u{ff11}\u{ff12}\u{ff17}",
    "\u{2460}",
    "\u{3002}",
    "\u{ff0e}",
    ".",
    "user:pass@",
    ":80",
    ":443",
    ":22",
    ":0",
    ":65536",
    ":99999",
    "\t",
    "\r\n",
    " ",
    "a.b",
    "*.a",
    "-a-",
    "_a",
];

const SEEDS: &[&str] = &[
    "http://public.example/a?b=c#d",
    "https://user:pass@public.example:443/",
    "http://private.example/",
    "http://mixed.example/",
    "http://[::ffff:127.0.0.1]/",
    "http://0x7f.0.0.1/",
    "http://93.184.216.34:8080/x",
    "https://[2606:2800:220:1::1]/",
];

fn generate(source: &mut Source) -> Vec<u8> {
    let host = match source.below(6) {
        0 => Ipv4Addr::from_bits(source.number() as u32).to_string(),
        1 => format!(
            "[{}]",
            Ipv6Addr::from_bits(u128::from(source.number()) << 64 | u128::from(source.number()))
        ),
        2 => format!("{:#x}", source.number() as u32),
        3 => format!("{:#o}.{}", source.byte(), source.number() as u32 >> 8),
        4 => format!("[::ffff:{}]", Ipv4Addr::from_bits(source.number() as u32)),
        _ => pieces(source, WORDS, &[("[", "]"), ("a.", ""), ("@", "")]),
    };
    let scheme = if source.one_in(5) {
        *source.pick(WORDS)
    } else {
        "http://"
    };
    let rest = if source.one_in(2) {
        "/"
    } else {
        *source.pick(WORDS)
    };
    format!("{scheme}{host}{rest}").into_bytes()
}

/// Names of this test's own internet.
struct Table;

impl Resolve for Table {
    fn resolve(&self, host: &str, _: Duration) -> io::Result<Vec<IpAddr>> {
        let public = IpAddr::from([93, 184, 216, 34]);
        let private = IpAddr::from([10, 1, 2, 3]);
        Ok(match host.trim_end_matches('.') {
            "private.example" => vec![private],
            "mixed.example" => vec![public, private],
            it if it.ends_with(".example") || it.contains('a') => vec![public],
            _ => return Err(io::ErrorKind::NotFound.into()),
        })
    }
}

/// Nothing is connected here.
struct Nobody;

impl Connect for Nobody {
    fn connect(&self, _: SocketAddr, _: Duration) -> io::Result<TcpStream> {
        Err(io::ErrorKind::ConnectionRefused.into())
    }
}

struct UrlPolicy(Egress);

/// What this test calls not public: what the standard library knows, and the ranges that it does not name.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => {
            let [a, b, ..] = it.octets();
            it.is_private()
                || it.is_loopback()
                || it.is_link_local()
                || it.is_unspecified()
                || it.is_broadcast()
                || it.is_multicast()
                || it.is_documentation()
                || a == 0
                || a >= 240
                || (a == 100 && (64..128).contains(&b))
                || (a == 198 && (18..20).contains(&b))
        }
        IpAddr::V6(it) => {
            let first = it.segments()[0];
            it.is_loopback()
                || it.is_unspecified()
                || it.is_multicast()
                || first & 0xfe00 == 0xfc00
                || first & 0xffc0 == 0xfe80
                || it.to_ipv4_mapped().is_some_and(|it| is_private(it.into()))
                // The only part of the address space that was given out.
                || first & 0xe000 != 0x2000 && it.to_ipv4_mapped().is_none() && first != 0x64
        }
    }
}

/// A name with and without its last dot is one.
fn plain(host: Option<&str>) -> Option<&str> {
    host.map(|host| host.strip_suffix('.').unwrap_or(host))
}

impl Subject for UrlPolicy {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let url = text(input);
        match self.0.check(&url) {
            Ok(checked) => {
                ensure!(!checked.addresses().is_empty(), "passed without an address");
                for address in checked.addresses() {
                    let it = address.ip();
                    ensure!(
                        !is_special(it) && !is_private(it),
                        "special: `{url}` leads to {it}"
                    );
                    ensure!(
                        it != IpAddr::from([10, 1, 2, 3]),
                        "mixed: `{url}` leads to a private name"
                    );
                }
                ensure!(!checked.granted(), "granted: nobody granted anything");
                // Every other parser must read the same host.
                let read = url::Url::parse(&url)
                    .map_err(|it| format!("passed: `{url}` is no URL: {it}"))?;
                ensure!(
                    plain(read.host_str()) == plain(Some(checked.host())),
                    "host: `{url}` is read as another"
                );
                let again = self
                    .0
                    .check(checked.url())
                    .map_err(|it| format!("plain: {it}"))?;
                ensure!(
                    again.url() == checked.url(),
                    "plain: `{}` is not stable",
                    checked.url()
                );
                ensure!(
                    read.username().is_empty() && read.password().is_none(),
                    "user: `{url}` passed"
                );
            }
            Err(error) => {
                let code = error.code;
                ensure!(
                    matches!(
                        code,
                        Code::InvalidInput
                            | Code::Denied
                            | Code::Unavailable
                            | Code::TooLarge
                            | Code::NotFound
                    ),
                    "refused with {code:?}: {error}"
                );
                let read = url::Url::parse(&url).ok();
                let password = read.as_ref().and_then(url::Url::password);
                let said = error.to_string();
                let is_shown = password.is_some_and(|it| said.contains(&format!(":{it}@")));
                ensure!(!is_shown, "a password is in a message");
            }
        }
        Ok(())
    }
}
