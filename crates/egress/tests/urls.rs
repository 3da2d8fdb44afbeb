//! Which addresses are permitted, over a corpus of addresses and a small internet on loopback.
//!
//! No packet leaves loopback: names are answered by a table and the connector leads every address,
//! public or private, to a listener here, while it writes down which address was asked for.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod bodies;
mod common;
mod hops;
mod tunnel;

use common::{Seen, Wire, World, ok, redirect};
use kenning_core::Code;
use kenning_egress::{Egress, Grant, Policy, Request, is_special};
use std::collections::{HashMap, HashSet};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::Duration;

/// The corpus may grow, never shrink below this.
const CASES_MIN: usize = 300;

struct Case {
    line: usize,
    expected: String,
    url: String,
    /// The address that an allowed case must be connected to in the end.
    address: Option<SocketAddr>,
}

struct Corpus {
    cases: Vec<Case>,
    names: HashMap<String, Vec<IpAddr>>,
}

#[expect(clippy::disallowed_methods, reason = "a test reads its own corpus")]
fn corpus() -> Corpus {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testing/corpora/urls.txt"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let mut corpus = Corpus {
        cases: Vec::new(),
        names: HashMap::new(),
    };
    for (idx, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let columns: Vec<&str> = line.split('\t').collect();
        match columns[..] {
            ["name", name, addresses] => {
                let addresses = addresses.split(' ').map(|it| it.parse().unwrap());
                corpus.names.insert(name.to_owned(), addresses.collect());
            }
            [
                expected @ ("denied" | "invalid" | "allowed"),
                url,
                ref rest @ ..,
            ] => {
                corpus.cases.push(Case {
                    line: idx + 1,
                    expected: expected.to_owned(),
                    url: unescape(url),
                    address: rest.first().map(|it| it.parse().unwrap()),
                });
            }
            _ => panic!("line {}: `{line}` is no case", idx + 1),
        }
    }
    corpus
}

/// `{U+000D}` is that character, `{a*9000}` is nine thousand times `a`.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((head, tail)) = rest.split_once('{') {
        let (inner, tail) = tail.split_once('}').expect("a closing brace");
        out.push_str(head);
        match (inner.strip_prefix("U+"), inner.split_once('*')) {
            (Some(hex), _) => {
                let code = u32::from_str_radix(hex, 16).unwrap();
                out.push(char::from_u32(code).unwrap());
            }
            (None, Some((unit, count))) => out.push_str(&unit.repeat(count.parse().unwrap())),
            (None, None) => panic!("`{inner}` is no escape"),
        }
        rest = tail;
    }
    out + rest
}

/// Answers everything, and redirects `/redirect?to=` to what follows.
fn answer(seen: &Seen, wire: &mut Wire) -> io::Result<()> {
    match seen.target.split_once("/redirect?to=") {
        Some((_, to)) => wire.send(&redirect(302, to)),
        None => wire.send(&ok("hello")),
    }
}

fn world(names: HashMap<String, Vec<IpAddr>>) -> World {
    World::new(move |name, _| names.get(name).cloned(), answer)
}

#[test]
fn the_corpus_of_addresses_is_judged_as_written() {
    let corpus = corpus();
    let world = world(corpus.names);
    let egress = world.egress();
    let distinct: HashSet<&str> = corpus.cases.iter().map(|it| it.url.as_str()).collect();
    assert_eq!(distinct.len(), corpus.cases.len(), "a case stands twice");

    let mut failures = 0;
    for case in &corpus.cases {
        let redirects = case.url.contains("/redirect?to=");
        let previewed = egress.check(&case.url).map(|it| it.addresses()[0]);
        assert!(world.taken().is_empty(), "a preview connected");
        let fetched = egress.fetch(Request::get(&case.url));
        let connected = world.taken();

        let code = fetched.as_ref().map_or_else(|it| Some(it.code), |_| None);
        let expected = match case.expected.as_str() {
            "denied" => Some(Code::Denied),
            "invalid" => Some(Code::InvalidInput),
            _ => None,
        };
        let mut problems = Vec::new();
        if code != expected {
            problems.push(format!("{:?}", fetched.as_ref().map(|it| it.address)));
        }
        if !redirects && previewed.as_ref().map_or_else(|it| Some(it.code), |_| None) != expected {
            problems.push(format!("preview: {previewed:?}"));
        }
        // Whatever was decided, nothing special was connected, and nothing refused was connected
        // but the public start of a redirect.
        if let Some(it) = connected.iter().find(|it| is_special(it.ip())) {
            problems.push(format!("connected {it}"));
        }
        let lines = usize::from(expected.is_none()) + usize::from(redirects);
        if connected.len() != lines {
            problems.push(format!("{} connections, not {lines}", connected.len()));
        }
        if let Ok(response) = &fetched {
            if case.address.is_none() || case.address != connected.last().copied() {
                problems.push(format!("went to {connected:?}"));
            }
            if Some(response.address) != case.address {
                problems.push(format!("says it went to {}", response.address));
            }
        }
        if !redirects && previewed.ok() != connected.first().copied() {
            problems.push("the address checked is not the address connected".to_owned());
        }
        if !problems.is_empty() {
            failures += 1;
            println!(
                "line {}: {} {:?}: {}",
                case.line,
                case.expected,
                case.url,
                problems.join("; ")
            );
        }
    }
    println!("urls: {} cases, {failures} failures", corpus.cases.len());
    assert_eq!(failures, 0);
    assert!(corpus.cases.len() >= CASES_MIN);
}

#[test]
fn the_gate_as_it_is_shipped_reaches_loopback_only_when_granted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let refused = Egress::new(Policy::default()).fetch(Request::get(&url));
    assert_eq!(refused.unwrap_err().code, Code::Denied);

    let policy = Policy {
        grants: vec![Grant::parse(&url).unwrap()],
        ..Policy::default()
    };
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let count = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(ok("hello").as_bytes()).unwrap();
        count
    });
    let response = Egress::new(policy).fetch(Request::get(&url)).unwrap();
    assert_eq!(response.body, b"hello");
    assert_eq!(response.final_url, url);
    assert!(server.join().unwrap() > 0);
}

/// A naive check, for comparison: it compares the text of the host, then lets the client resolve it.
fn naive_fetch(world: &World, url: &str) -> io::Result<()> {
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    let host = host.split(['/', ':', '?']).next().unwrap_or(host);
    let looks_private = [
        "localhost",
        "127.",
        "10.",
        "192.168.",
        "169.254.",
        "172.16.",
        "[::1",
        "0.",
    ];
    if looks_private.iter().any(|it| host.starts_with(it)) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut next = url.to_owned();
    for _ in 0..5 {
        let url = url::Url::parse(&next).map_err(|_| io::ErrorKind::InvalidInput)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let timeout = Duration::from_secs(5);
        let address = match url.host() {
            Some(url::Host::Ipv4(it)) => it.into(),
            Some(url::Host::Ipv6(it)) => it.into(),
            Some(url::Host::Domain(it)) => world.policy.resolver.resolve(it, timeout)?[0],
            None => return Err(io::ErrorKind::InvalidInput.into()),
        };
        // TLS is left out: port 80 keeps the line plain, and the address is what counts.
        let address = SocketAddr::new(address, 80);
        let mut stream = world.policy.connector.connect(address, timeout)?;
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        write!(stream, "GET {target} HTTP/1.1\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let Some((_, location)) = text.split_once("Location: ") else {
            return Ok(());
        };
        location
            .lines()
            .next()
            .unwrap_or_default()
            .clone_into(&mut next);
    }
    Ok(())
}

#[test]
fn a_gate_that_looks_at_texts_only_is_caught_by_the_corpus() {
    let corpus = corpus();
    let world = world(corpus.names);
    let (mut leaks, mut by_redirect) = (0, 0);
    let mut denied = 0;
    for case in corpus.cases.iter().filter(|it| it.expected == "denied") {
        denied += 1;
        naive_fetch(&world, &case.url).ok();
        if world.taken().iter().any(|it| is_special(it.ip())) {
            leaks += 1;
            by_redirect += usize::from(case.url.contains("/redirect?to="));
        }
    }
    println!("urls: the naive check leaks {leaks} of {denied} cases, {by_redirect} by redirect");
    assert!(leaks - by_redirect > 50 && by_redirect > 5);
}
