//! The proxy for programs that open their own lines.

use crate::common::{PUBLIC, World, ok};
use kenning_egress::{Grant, Tunnel, TunnelLimits};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

const SECRET: &str = "0123456789abcdef";
/// `kenning:0123456789abcdef`
const PASS: &str = "Proxy-Authorization: Basic a2VubmluZzowMTIzNDU2Nzg5YWJjZGVm\r\n";

fn limits(bytes_max: u64) -> TunnelLimits {
    TunnelLimits {
        total_timeout: Duration::from_secs(20),
        bytes_max,
    }
}

fn open(world: &World) -> Tunnel {
    world.egress().tunnel(SECRET, limits(1 << 20)).unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the proxy's own address on loopback"
)]
fn dial(tunnel: &Tunnel) -> TcpStream {
    TcpStream::connect(tunnel.address()).unwrap()
}

/// Sends a head and gives the first line of the answer.
fn said(stream: &mut TcpStream, head: &str) -> String {
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        answer.extend_from_slice(&byte);
    }
    let answer = String::from_utf8(answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

fn connect(target: &str) -> String {
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{PASS}\r\n")
}

const OPENED: &str = "HTTP/1.1 200 Connection established";

#[test]
fn a_program_with_the_secret_reaches_a_public_address_that_was_checked() {
    let world = World::web(|seen, wire| wire.send(&ok(&seen.target)));
    let tunnel = open(&world);
    let mut line = dial(&tunnel);
    assert_eq!(said(&mut line, &connect("public.example.com:8080")), OPENED);
    line.write_all(b"GET /through HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    line.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("/through"), "{answer}");
    assert_eq!(world.taken(), [format!("{PUBLIC}:8080").parse().unwrap()]);
    assert_eq!(*world.asked.lock().unwrap(), ["public.example.com"]);
    assert!(tunnel.take_refusal().is_none());
    assert!(
        tunnel
            .url()
            .starts_with("http://kenning:0123456789abcdef@127.0.0.1:")
    );
}

#[test]
fn nobody_without_the_secret_and_nothing_but_connect_opens_a_line() {
    let world = World::web(|_, wire| wire.send(&ok("reached")));
    let target = "public.example.com:443";
    let wrong = "Proxy-Authorization: Basic a2VubmluZzp3cm9uZw==\r\n";
    for (head, status) in [
        (format!("CONNECT {target} HTTP/1.1\r\n\r\n"), "407"),
        (format!("CONNECT {target} HTTP/1.1\r\n{wrong}\r\n"), "407"),
        (
            format!("CONNECT {target} HTTP/1.1\r\nProxy-Authorization: Bearer {SECRET}\r\n\r\n"),
            "407",
        ),
        (format!("CONNECT {target} HTTP/1.1\r\nX-{PASS}\r\n"), "407"),
        (
            format!("GET http://public.example.com/ HTTP/1.1\r\n{PASS}\r\n"),
            "405",
        ),
        (format!("POST / HTTP/1.1\r\n{PASS}\r\n"), "405"),
        (format!("CONNECT {target}\r\n{PASS}\r\n"), "400"),
        (format!("CONNECT {target} SSH-2.0\r\n{PASS}\r\n"), "400"),
        (format!("CONNECT {target} HTTP/1.1 x\r\n{PASS}\r\n"), "400"),
        ("\r\n\r\n".to_owned(), "400"),
        (format!("{}\r\n\r\n", "x".repeat(9_000)), "400"),
    ] {
        let tunnel = open(&world);
        let line = said(&mut dial(&tunnel), &head);
        assert!(
            line.starts_with(&format!("HTTP/1.1 {status}")),
            "{head}: {line}"
        );
    }
    assert!(world.taken().is_empty(), "nothing was connected");
    assert!(world.asked.lock().unwrap().is_empty(), "nobody was asked");
}

#[test]
fn what_the_gate_refuses_the_proxy_refuses_and_says_why() {
    let world = World::web(|_, wire| wire.send(&ok("reached")));
    for target in [
        "private.example.com:443",
        "localhost:443",
        "127.0.0.1:443",
        "2130706433:443",
        "0x7f.1:443",
        "10.0.0.1:443",
        "169.254.169.254:443",
        "[::1]:443",
        "[::ffff:10.0.0.1]:443",
        "[fd00::1]:443",
        "metadata.google.internal:443",
        "public.example.com:22",
        "public.example.com:6379",
        "public.example.com:0",
        "public.example.com",
        "public.example.com:99999",
        "user@public.example.com:443",
        "public.example.com:443/x",
        "public.example.com:443?x",
        "https://public.example.com:443",
        "public.example.com%2f:443",
        ":443",
    ] {
        let tunnel = open(&world);
        let line = said(&mut dial(&tunnel), &connect(target));
        let is_refused = line.starts_with("HTTP/1.1 403") || line.starts_with("HTTP/1.1 400");
        assert!(is_refused, "{target}: {line}");
        assert!(tunnel.take_refusal().is_some(), "{target}");
    }
    assert!(world.taken().is_empty(), "nothing was connected");
}

#[test]
fn a_private_address_that_the_operator_granted_is_reached() {
    let mut world = World::web(|_, wire| wire.send(&ok("inside")));
    world.policy.grants = vec![Grant::parse("10.0.0.1:8080").unwrap()];
    let tunnel = open(&world);
    let mut line = dial(&tunnel);
    assert_eq!(said(&mut line, &connect("10.0.0.1:8080")), OPENED);
    let other = said(&mut dial(&tunnel), &connect("10.0.0.2:8080"));
    assert!(other.starts_with("HTTP/1.1 403"), "{other}");
    assert_eq!(world.taken(), ["10.0.0.1:8080".parse().unwrap()]);
}

#[test]
fn a_name_that_changes_its_mind_is_asked_once_and_pinned() {
    let zone = |_: &str, count: usize| {
        let address = if count <= 1 { PUBLIC } else { "127.0.0.1" };
        Some(vec![address.parse().unwrap()])
    };
    let world = World::new(zone, |_, wire| wire.send(&ok("hello")));
    let tunnel = open(&world);
    assert_eq!(
        said(&mut dial(&tunnel), &connect("rebind.example.com:8080")),
        OPENED
    );
    assert_eq!(*world.asked.lock().unwrap(), ["rebind.example.com"]);
    assert_eq!(world.taken(), [format!("{PUBLIC}:8080").parse().unwrap()]);
    let again = said(&mut dial(&tunnel), &connect("rebind.example.com:8080"));
    assert!(again.starts_with("HTTP/1.1 403"), "{again}");
}

#[test]
fn a_line_ends_at_the_limit_of_bytes_and_with_its_tunnel() {
    let world = World::web(|_, wire| {
        loop {
            wire.send(&"x".repeat(10_000))?;
        }
    });
    let tunnel = world.egress().tunnel(SECRET, limits(100_000)).unwrap();
    let mut line = dial(&tunnel);
    said(&mut line, &connect("public.example.com:8080"));
    line.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    let mut all = Vec::new();
    drop(line.read_to_end(&mut all));
    assert!(all.len() <= 100_000, "{} bytes came through", all.len());
    let why = tunnel.take_refusal().unwrap();
    assert_eq!(why.code, kenning_core::Code::TooLarge, "{why}");

    let silent = World::web(|_, _| Ok(()));
    let tunnel = open(&silent);
    let mut line = dial(&tunnel);
    assert_eq!(said(&mut line, &connect("public.example.com:8011")), OPENED);
    drop(tunnel);
    let mut rest = Vec::new();
    // It ends; whether by an end or by a reset is the system's choice.
    drop(line.read_to_end(&mut rest));
    assert!(rest.is_empty());
}

#[test]
fn a_server_that_is_not_there_is_said_to_be_unreachable() {
    let world = World::web(|_, wire| wire.send(&ok("x")));
    let tunnel = open(&world);
    for (target, status) in [
        ("public.example.com:8009", "502"),
        ("nobody.example.com:443", "502"),
        ("public.example.com:8010", "504"),
    ] {
        let line = said(&mut dial(&tunnel), &connect(target));
        assert!(
            line.starts_with(&format!("HTTP/1.1 {status}")),
            "{target}: {line}"
        );
    }
}
