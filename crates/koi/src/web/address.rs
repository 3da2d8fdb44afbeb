//! URLs as somebody writes them, and the errors for refused ones.
//!
//! `egress` decides; here its decision is worded as the KOI servers do, because clients compare the
//! words. Paths and queries are not repeated.

use super::settings::ALLOW;
use super::{WebFault, WebResult};
use kenning_egress::{Barrier, Checked, Egress, Stopped};
use std::net::IpAddr;

/// Hosts that give secrets to any client.
const METADATA_HOSTS: &[&str] = &[
    "169.254.169.254",
    "metadata.google.internal",
    "metadata.aws",
];
/// Names that no name server knows.
const NOWHERE: &[&str] = &["invalid", "test", "onion", "alt"];
/// Of a host, so many characters are repeated.
const HOST_CHARS_MAX: usize = 120;

/// The address as it is kept: without blanks around it, `https` where nothing is said, and without the place
/// in the page, which no server hears of.
pub(super) fn normalize_url(text: &str) -> WebResult<String> {
    let text = text.split('#').next().unwrap_or(text).trim();
    if text.is_empty() {
        return Err(no_host());
    }
    match scheme(text) {
        None => Ok(format!("https://{text}")),
        Some("http" | "https") => Ok(text.to_owned()),
        Some(it) if matches!(it.to_ascii_lowercase().as_str(), "http" | "https") => {
            Ok(format!("{}{}", it.to_ascii_lowercase(), &text[it.len()..]))
        }
        Some(it) => Err(WebFault::refused(format!("Blocked scheme: {}", shown(it)))
            .hint("only http and https are fetched")),
    }
}

/// What stands before the first colon, unless that is a host and a port follows.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let is_scheme =
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_letter);
    let is_port = rest.starts_with(|c: char| c.is_ascii_digit());
    (is_scheme && !is_port).then_some(scheme)
}

/// Checks a URL with `egress`.
pub(super) fn judge(egress: &Egress, url: &str) -> WebResult<Checked> {
    egress.judge(url).map_err(|stopped| refusal(url, *stopped))
}

fn refusal(url: &str, stopped: Stopped) -> Box<WebFault> {
    let host = host(url);
    if host.is_empty() {
        return no_host();
    }
    let (at, error) = (stopped.at, stopped.error);
    let is_metadata = METADATA_HOSTS.contains(&host.as_str());
    let message = match at {
        Barrier::Text => error.message.clone(),
        _ if is_metadata => format!("Blocked host: {host}"),
        Barrier::Port(port) => format!("Blocked port: {port}"),
        Barrier::NoAddress => format!("Cannot resolve hostname: {host}"),
        Barrier::Address(it) if host.parse::<IpAddr>().is_ok() => {
            let _ = it;
            format!("Blocked private IP: {host}")
        }
        Barrier::Address(it) => rebinding(&host, it),
        Barrier::Name => match host.rsplit('.').next().unwrap_or_default() {
            "localhost" => rebinding(&host, IpAddr::from([127, 0, 0, 1])),
            last if last == host || NOWHERE.contains(&last) => {
                format!("Cannot resolve hostname: {host}")
            }
            _ => format!("Blocked host: {host}"),
        },
    };
    let hint = match at {
        Barrier::Text => error.hint.clone(),
        Barrier::Address(_) | Barrier::Name if !is_metadata => Some(format!(
            "{}; {ALLOW} names addresses that may be fetched all the same",
            error.message
        )),
        _ => Some(error.message.clone()),
    };
    let fault = WebFault::refused(message);
    match hint {
        Some(hint) => fault.hint(hint),
        None => fault,
    }
}

fn rebinding(host: &str, address: IpAddr) -> String {
    format!("DNS rebinding: {host} resolves to private IP {address}")
}

fn no_host() -> Box<WebFault> {
    WebFault::refused("No hostname in URL").hint("write it as `https://host/path`")
}

/// The host as it is written, fit for a message.
fn host(url: &str) -> String {
    let Some((_, rest)) = url.split_once("://") else {
        return String::new();
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest);
    let place = authority.rsplit('@').next().unwrap_or(authority);
    let host = match place.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or(inner),
        None => place.split(':').next().unwrap_or(place),
    };
    shown(host.trim_end_matches('.')).to_lowercase()
}

fn shown(text: &str) -> String {
    let is_harmless = |c: &char| !c.is_control() && !c.is_whitespace() && *c != '`';
    text.chars()
        .filter(is_harmless)
        .take(HOST_CHARS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_egress::{Policy, Resolve};
    use std::io;
    use std::sync::Arc;
    use std::time::Duration;

    struct Table;

    impl Resolve for Table {
        fn resolve(&self, host: &str, _: Duration) -> io::Result<Vec<IpAddr>> {
            match host {
                "rebound.example.com" => Ok(vec![IpAddr::from([10, 0, 0, 7])]),
                "public.example.com" => Ok(vec![IpAddr::from([93, 184, 215, 14])]),
                _ => Err(io::ErrorKind::NotFound.into()),
            }
        }
    }

    fn check(text: &str, expected: &str) {
        let egress = Egress::new(Policy {
            resolver: Arc::new(Table),
            ..Policy::default()
        });
        let judged = normalize_url(text).and_then(|url| judge(&egress, &url));
        let said = judged.map_or_else(|it| it.error.message, |it| it.url().to_owned());
        assert_eq!(said, expected, "{text}");
    }

    #[test]
    fn one_page_has_one_address() {
        for text in [
            "http://public.example.com/a",
            " HTTP://public.example.com/a#part ",
            "http://public.example.com/a#",
        ] {
            let kept = normalize_url(text).unwrap();
            assert_eq!(kept, "http://public.example.com/a", "{text}");
        }
    }

    #[test]
    fn an_address_is_refused_in_the_words_of_the_contract() {
        for (text, expected) in [
            ("public.example.com", "https://public.example.com/"),
            (
                " HTTP://public.example.com/a ",
                "http://public.example.com/a",
            ),
            (
                "public.example.com:8443/x",
                "https://public.example.com:8443/x",
            ),
            ("", "No hostname in URL"),
            ("http://", "No hostname in URL"),
            ("http:///x", "No hostname in URL"),
            ("ftp://example.com/x", "Blocked scheme: ftp"),
            ("file:///etc/passwd", "Blocked scheme: file"),
            ("javascript:alert(1)", "Blocked scheme: javascript"),
            ("notaurl", "Cannot resolve hostname: notaurl"),
            (
                "http://no-such-host.invalid/",
                "Cannot resolve hostname: no-such-host.invalid",
            ),
            (
                "http://gone.example.com/?token=x",
                "Cannot resolve hostname: gone.example.com",
            ),
            ("http://10.0.0.1/", "Blocked private IP: 10.0.0.1"),
            ("http://[::1]/", "Blocked private IP: ::1"),
            ("http://0.0.0.0/", "Blocked private IP: 0.0.0.0"),
            (
                "http://169.254.169.254/latest",
                "Blocked host: 169.254.169.254",
            ),
            (
                "http://metadata.google.internal/",
                "Blocked host: metadata.google.internal",
            ),
            ("http://router.local/", "Blocked host: router.local"),
            ("http://public.example.com:22/", "Blocked port: 22"),
            (
                "http://localhost/",
                "DNS rebinding: localhost resolves to private IP 127.0.0.1",
            ),
            (
                "http://2130706433/",
                "DNS rebinding: 2130706433 resolves to private IP 127.0.0.1",
            ),
            (
                "http://rebound.example.com/",
                "DNS rebinding: rebound.example.com resolves to private IP 10.0.0.7",
            ),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn who_is_refused_a_private_address_is_told_how_it_is_permitted() {
        let egress = Egress::new(Policy {
            resolver: Arc::new(Table),
            ..Policy::default()
        });
        for (url, is_told) in [
            ("http://10.0.0.1/", true),
            ("http://localhost/", true),
            ("http://router.local/", true),
            ("http://rebound.example.com/", true),
            ("http://169.254.169.254/", false),
            ("http://gone.example.com/", false),
            ("http://public.example.com:22/", false),
        ] {
            let fault = judge(&egress, url).unwrap_err();
            let hint = fault.error.hint.unwrap_or_default();
            assert_eq!(hint.contains(ALLOW), is_told, "{url}: {hint}");
        }
    }

    #[test]
    fn no_secret_of_an_address_is_repeated() {
        for text in [
            "http://ann:hunter2@public.example.com/",
            "http://10.0.0.1/hunter2?k=hunter2#hunter2",
            "http://h\u{1b}[31m`x/hunter2",
        ] {
            let egress = Egress::new(Policy::default());
            let fault = normalize_url(text)
                .and_then(|url| judge(&egress, &url))
                .unwrap_err();
            let said = format!("{} {:?}", fault.error.message, fault.error.hint);
            assert!(
                !said.contains("hunter2") && !said.contains('\u{1b}'),
                "{said}"
            );
        }
    }
}
