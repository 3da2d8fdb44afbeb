//! Parses a URL into scheme, host and port, or says why it cannot be used.
//!
//! The host is read by the WHATWG parser and by nothing else, so `0x7f.1`, `2130706433` and
//! `１２７.0.0.1` become the address they mean before any check. Forms that other parsers read
//! differently (userinfo, backslashes, missing slashes, blanks) are refused rather than guessed at:
//! another program may have checked the same text and read another host in it.

use kenning_core::{Error, Result};
use kenning_text::line::dotted;
use std::net::IpAddr;
use url::{Host, Url};

/// Longest address that is read at all.
const URL_BYTES_MAX: usize = 8 * 1024;

/// Ports on which something other than the web listens, as a sorted list of ranges.
///
/// These are the ports browsers refuse (the Fetch standard's list of bad ports), and those of
/// databases, caches, brokers, container and cluster daemons and remote desktops, because a line of
/// HTTP is enough to make some of them act. A grant that names the host lifts this.
pub(crate) const PORTS_REFUSED: &[(u16, u16, &str)] = &[
    (0, 0, "no port"),
    (1, 1, "tcpmux"),
    (7, 7, "echo"),
    (9, 9, "discard"),
    (11, 11, "systat"),
    (13, 13, "daytime"),
    (15, 15, "netstat"),
    (17, 17, "quote of the day"),
    (19, 19, "character generator"),
    (20, 21, "FTP"),
    (22, 22, "SSH"),
    (23, 23, "Telnet"),
    (25, 25, "mail"),
    (37, 37, "time"),
    (42, 43, "name and whois"),
    (53, 53, "DNS"),
    (69, 69, "TFTP"),
    (77, 77, "remote job entry"),
    (79, 79, "finger"),
    (87, 87, "terminal link"),
    (88, 88, "Kerberos"),
    (95, 95, "supdup"),
    (101, 104, "host names"),
    (109, 111, "mail and portmapper"),
    (113, 113, "ident"),
    (115, 115, "SFTP"),
    (117, 117, "UUCP path"),
    (119, 119, "news"),
    (123, 123, "NTP"),
    (135, 135, "RPC"),
    (137, 139, "NetBIOS"),
    (143, 143, "mail"),
    (161, 162, "SNMP"),
    (179, 179, "BGP"),
    (389, 389, "LDAP"),
    (427, 427, "service location"),
    (445, 445, "SMB"),
    (465, 465, "mail"),
    (512, 515, "remote shell and printer"),
    (526, 526, "tempo"),
    (530, 532, "courier and news"),
    (540, 540, "UUCP"),
    (548, 548, "AFP"),
    (554, 554, "RTSP"),
    (556, 556, "remote file system"),
    (563, 563, "news"),
    (587, 587, "mail"),
    (601, 601, "syslog"),
    (631, 631, "printer"),
    (636, 636, "LDAP"),
    (873, 873, "rsync"),
    (989, 990, "FTP"),
    (992, 993, "Telnet and mail"),
    (995, 995, "mail"),
    (1080, 1080, "SOCKS"),
    (1433, 1434, "SQL Server"),
    (1521, 1521, "Oracle"),
    (1719, 1720, "H.323"),
    (1723, 1723, "PPTP"),
    (1883, 1883, "MQTT"),
    (2049, 2049, "NFS"),
    (2181, 2181, "ZooKeeper"),
    (2375, 2376, "Docker"),
    (2379, 2380, "etcd"),
    (3306, 3306, "MySQL"),
    (3389, 3389, "remote desktop"),
    (3659, 3659, "Apple SASL"),
    (4045, 4045, "lock daemon"),
    (4190, 4190, "Sieve"),
    (5060, 5061, "SIP"),
    (5432, 5432, "PostgreSQL"),
    (5672, 5672, "AMQP"),
    (5900, 5901, "VNC"),
    (5984, 5984, "CouchDB"),
    (5985, 5986, "remote management"),
    (6000, 6000, "X11"),
    (6379, 6379, "Redis"),
    (6443, 6443, "Kubernetes"),
    (6566, 6566, "scanner"),
    (6665, 6669, "IRC"),
    (6679, 6679, "IRC"),
    (6697, 6697, "IRC"),
    (9042, 9042, "Cassandra"),
    (9092, 9092, "Kafka"),
    (9100, 9100, "printer"),
    (9200, 9200, "Elasticsearch"),
    (9300, 9300, "Elasticsearch"),
    (10080, 10080, "backup"),
    (10250, 10250, "Kubernetes"),
    (11211, 11211, "memcached"),
    (15672, 15672, "RabbitMQ"),
    (27017, 27019, "MongoDB"),
    (28017, 28017, "MongoDB"),
];

/// Names, with all that ends in them, that are never the public internet.
const NAMES_REFUSED: &[(&str, &str)] = &[
    ("localhost", "this host"),
    ("localdomain", "the local network"),
    ("local", "the local network"),
    ("lan", "the local network"),
    ("home", "the local network"),
    ("home.arpa", "the local network"),
    ("corp", "the local network"),
    ("intranet", "the local network"),
    ("private", "the local network"),
    ("internal", "a cloud's inside"),
    ("metadata.aws", "a cloud's inside"),
    ("onion", "a hidden service"),
    ("alt", "a name outside DNS"),
    ("test", "a name for tests"),
    ("invalid", "a name that never exists"),
];

/// Where an address leads before any name is resolved.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Normalized, without fragment, userinfo and trailing dot.
    pub(crate) url: Url,
    /// As the caller wrote it, fit for a message.
    pub(crate) shown: String,
    pub(crate) host: Named,
    pub(crate) port: u16,
}

/// A host, by name or by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Name(String),
    Literal(IpAddr),
}

/// The part of an address that may appear in a message: scheme, host and port.
///
/// Paths, queries and userinfo carry tokens, so none of them is repeated.
pub(crate) fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 120;
    fn after_userinfo(text: &str) -> &str {
        text.rsplit('@').next().unwrap_or(text)
    }
    // `http:user:password@host/://` is a URL too: the part before `://` must be a scheme.
    let is_scheme = |text: &str| {
        let mut bytes = text.trim().bytes();
        bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    let parted = text.split_once("://").filter(|it| is_scheme(it.0));
    let mut out = match parted {
        Some((scheme, rest)) => {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let host = after_userinfo(authority).split('\\').next();
            let mut host = host.unwrap_or_default();
            // A port that is not a number may be the start of a password.
            if let Some((head, port)) = host.rsplit_once(':')
                && !port.contains(']')
                && !port.bytes().all(|it| it.is_ascii_digit())
            {
                host = head;
            }
            format!("{scheme}://{host}/")
        }
        // No authority: only the part before the first `:` surely holds no secret.
        None => {
            let head = text.split([':', '/', '?', '#']).next().unwrap_or_default();
            let colon = if text.get(head.len()..).is_some_and(|it| it.starts_with(':')) {
                ":"
            } else {
                ""
            };
            format!("{}{colon}", after_userinfo(head))
        }
    };
    out = dotted(&out, CHARS_MAX);
    // Untrusted text must not end the backticks or move a terminal's cursor.
    let harmless = |c: char| !c.is_control() && c != '`';
    out.chars()
        .map(|c| if harmless(c) { c } else { '\u{fffd}' })
        .collect()
}

impl Place {
    /// Reads what a caller wrote.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let shown = shown(text);
        refuse_odd_characters(text, &shown)?;
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(not_a_url(&shown, "no scheme"));
        };
        let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(letters) {
            return Err(not_a_url(&shown, "no scheme"));
        }
        refuse_scheme(&scheme.to_ascii_lowercase(), &shown)?;
        let Some(rest) = rest.strip_prefix("//").filter(|it| !it.starts_with('/')) else {
            return Err(not_a_url(&shown, "no host after two slashes"));
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        if authority.contains('@') {
            return Err(userinfo(&shown));
        }
        let url = Url::parse(text).map_err(|err| not_a_url(&shown, &err.to_string()))?;
        Self::of(url, shown)
    }

    /// Where a redirect leads. `location` may be relative to this place.
    pub(crate) fn follow(&self, location: &str) -> Result<Self> {
        let hop = if location.contains("://") {
            shown(location)
        } else {
            self.shown.clone()
        };
        refuse_odd_characters(location, &hop)?;
        let url = self.url.join(location);
        let url = url.map_err(|err| not_a_url(&hop, &err.to_string()))?;
        // A relative reference can still change the host (`//host/`), so the message is made from
        // what was understood, not from what was written.
        let hop = shown(url.as_str());
        Self::of(url, hop)
    }

    fn of(mut url: Url, shown: String) -> Result<Self> {
        refuse_scheme(url.scheme(), &shown)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(userinfo(&shown));
        }
        url.set_fragment(None);
        let host = match url.host() {
            None => return Err(not_a_url(&shown, "no host")),
            // Mapped IPv4 is connected as IPv4, so it is judged as IPv4.
            Some(Host::Ipv4(it)) => Named::Literal(it.into()),
            Some(Host::Ipv6(it)) => Named::Literal(IpAddr::V6(it).to_canonical()),
            Some(Host::Domain(name)) => {
                // One trailing dot only says that the name is complete.
                let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
                let fits = |label: &str| (1..=63).contains(&label.len());
                if name.len() > 253 || !name.split('.').all(fits) {
                    return Err(not_a_url(&shown, "the host is no name"));
                }
                Named::Name(name)
            }
        };
        if let Named::Name(name) = &host
            && url.host_str() != Some(name)
        {
            let set = url.set_host(Some(name));
            set.map_err(|err| not_a_url(&shown, &err.to_string()))?;
        }
        let Some(port) = url.port_or_known_default() else {
            return Err(not_a_url(&shown, "no port"));
        };
        Ok(Self {
            url,
            shown,
            host,
            port,
        })
    }

    /// Why the name alone is refused, if it is.
    pub(crate) fn name_refused(&self) -> Option<&'static str> {
        let Named::Name(name) = &self.host else {
            return None;
        };
        let ends_in = |suffix: &str| {
            let head = name.strip_suffix(suffix);
            head.is_some_and(|head| head.is_empty() || head.ends_with('.'))
        };
        let row = NAMES_REFUSED.iter().find(|(suffix, _)| ends_in(suffix));
        // A name without a dot is looked up on the local network first.
        let bare = (!name.contains('.')).then_some("the local network");
        row.map(|(_, why)| *why).or(bare)
    }

    /// What listens on the port, if it is a refused one.
    pub(crate) fn port_refused(&self) -> Option<&'static str> {
        PORTS_REFUSED
            .iter()
            .find(|(first, last, _)| (*first..=*last).contains(&self.port))
            .map(|(.., what)| *what)
    }

    /// Whether two places share scheme, host and port.
    pub(crate) fn same_origin(&self, other: &Self) -> bool {
        self.url.scheme() == other.url.scheme()
            && self.host == other.host
            && self.port == other.port
    }

    pub(crate) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }
}

/// Blanks and control characters are dropped by some parsers and kept by others; a backslash is a
/// slash to some. Either way two readers of one text would see two hosts.
fn refuse_odd_characters(text: &str, shown: &str) -> Result<()> {
    if text.is_empty() {
        return Err(not_a_url(shown, "empty"));
    }
    if text.len() > URL_BYTES_MAX {
        return Err(not_a_url(shown, "over 8192 bytes"));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(not_a_url(shown, "blanks or control characters"));
    }
    let head = text.split(['?', '#']).next().unwrap_or(text);
    if head.contains('\\') {
        return Err(not_a_url(shown, "a backslash"));
    }
    Ok(())
}

fn refuse_scheme(scheme: &str, shown: &str) -> Result<()> {
    if matches!(scheme, "http" | "https") {
        return Ok(());
    }
    Err(Error::denied(format!("`{shown}` is not http or https")))
}

fn not_a_url(shown: &str, why: &str) -> Error {
    Error::invalid(format!("`{shown}` is not a web address: {why}"))
        .hint("write it as `https://host/path`")
}

fn userinfo(shown: &str) -> Error {
    Error::denied(format!("`{shown}` carries a user name or password"))
        .hint("leave out what stands before `@`")
}
