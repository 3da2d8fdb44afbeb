//! What a tool can reach of the network: HTTP to hosts that it was granted, and nothing else.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use common::{Call, runtime};
use kenning_egress::{Policy, Resolve};
use kenning_sandbox::hosts::Host;
use kenning_sandbox::{Failure, Outcome, Runtime, RuntimeOptions};
use kenning_testing_wasm::probes;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server on loopback that answers by path, and what it was asked.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

fn serve() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), log) = (stream, log.clone()) else {
                return;
            };
            std::thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|it| it == 1)
                {
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap();
                let line = head.lines().next().unwrap_or_default().to_owned();
                let body = match line.split(' ').nth(1) {
                    Some("/hello") => "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello".to_owned(),
                    Some("/moved") => "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n".to_owned(),
                    Some("/large") => format!("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{}", "x".repeat(100_000)),
                    Some("/huge") => format!("HTTP/1.1 200 OK\r\ncontent-length: 3000000\r\n\r\n{}", "x".repeat(3_000_000)),
                    Some("/host") => {
                        let host = head.lines().find(|it| it.to_lowercase().starts_with("host:")).unwrap_or_default();
                        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{host}", host.len())
                    }
                    Some("/never") => {
                        log.lock().unwrap().push(line);
                        // Until whoever asked goes away.
                        let _ = stream.read(&mut byte);
                        return;
                    }
                    _ => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
                };
                log.lock().unwrap().push(line);
                let _ = stream.write_all(body.as_bytes());
            });
        }
    });
    Server { port, asked }
}

/// Answers every name with one address, and counts.
struct Names(IpAddr, AtomicUsize);

impl Resolve for Names {
    fn resolve(&self, _: &str, _: Duration) -> std::io::Result<Vec<IpAddr>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Ok(vec![self.0])
    }
}

fn ask_with(
    runtime: &Runtime,
    allowed: &[&str],
    input: &str,
    change: impl FnOnce(&mut Call<'_>),
) -> Outcome {
    let mut call = Call::new(input);
    call.capabilities.net = allowed.iter().map(|it| Host::parse(it).unwrap()).collect();
    change(&mut call);
    call.run(runtime, &probes::http().unwrap())
}

fn ask(runtime: &Runtime, allowed: &[&str], input: &str) -> Result<String, String> {
    told(ask_with(runtime, allowed, input, |_| {}).result)
}

fn told(result: Result<String, Failure>) -> Result<String, String> {
    result.map_err(|failure| match failure {
        Failure::Returned(text) => match text.as_bytes()[0] - b'0' {
            3 => "destination-unavailable".to_owned(),
            4 => "destination-IP-prohibited".to_owned(),
            8 => "connection-timeout".to_owned(),
            11 => "connection-limit-reached".to_owned(),
            15 => "HTTP-request-denied".to_owned(),
            18 => "HTTP-request-method-invalid".to_owned(),
            19 => "HTTP-request-URI-invalid".to_owned(),
            28 => "HTTP-response-body-size".to_owned(),
            76 => "authority".to_owned(),
            code => format!("code {code}"),
        },
        other => other.to_string(),
    })
}

#[test]
fn a_host_on_the_list_is_asked_and_no_other() {
    let (server, runtime) = (serve(), runtime());
    let port = server.port;
    let at = |host: &str, path: &str| format!("00{host}:{port}{path}");
    for (allowed, input, expected) in [
        (
            &["127.0.0.1"][..],
            at("127.0.0.1", "/hello"),
            Ok("200 hello"),
        ),
        (
            &[&*format!("127.0.0.1:{port}")],
            at("127.0.0.1", "/hello"),
            Ok("200 hello"),
        ),
        (&["localhost"], at("localhost", "/hello"), Ok("200 hello")),
        (&["127.0.0.1"], at("127.0.0.1", "/absent"), Ok("404 ")),
        (&["127.0.0.1"], at("127.0.0.1", "/moved"), Ok("302 ")),
        (&[], at("127.0.0.1", "/hello"), Err("HTTP-request-denied")),
        (
            &["*"],
            at("127.0.0.1", "/hello"),
            Err("HTTP-request-denied"),
        ),
        (
            &["example.com"],
            at("127.0.0.1", "/hello"),
            Err("HTTP-request-denied"),
        ),
        (
            &["localhost"],
            at("127.0.0.1", "/hello"),
            Err("HTTP-request-denied"),
        ),
        (
            &["127.0.0.1:1"],
            at("127.0.0.1", "/hello"),
            Err("HTTP-request-denied"),
        ),
        (
            &["*"],
            "00127.0.0.1/".to_owned(),
            Err("destination-IP-prohibited"),
        ),
        (
            &["*"],
            "00169.254.169.254/latest".to_owned(),
            Err("destination-IP-prohibited"),
        ),
        (
            &["*"],
            "0010.0.0.1/".to_owned(),
            Err("destination-IP-prohibited"),
        ),
        (
            &["*"],
            "00[::1]/".to_owned(),
            Err("destination-IP-prohibited"),
        ),
        (
            &["*"],
            "00[::ffff:127.0.0.1]/".to_owned(),
            Err("destination-IP-prohibited"),
        ),
        (
            &["*"],
            "00localhost/".to_owned(),
            Err("HTTP-request-denied"),
        ),
        (
            &["*", "127.0.0.1"],
            "000x7f.1/".to_owned(),
            Err("HTTP-request-URI-invalid"),
        ),
        (
            &["*", "127.0.0.1"],
            "002130706433/".to_owned(),
            Err("HTTP-request-URI-invalid"),
        ),
        (
            &["127.0.0.1"],
            "00user@127.0.0.1/".to_owned(),
            Err("HTTP-request-URI-invalid"),
        ),
    ] {
        let found = ask(&runtime, allowed, &input);
        assert_eq!(
            found.as_deref().map_err(String::as_str),
            expected,
            "{allowed:?} {input}"
        );
    }
    let asked = server.asked.lock().unwrap();
    assert_eq!(asked.len(), 5, "{asked:?}");
}

#[test]
fn a_name_that_leads_inside_is_refused_though_it_is_on_the_list() {
    let names = Arc::new(Names("127.0.0.1".parse().unwrap(), AtomicUsize::new(0)));
    let egress = Policy {
        resolver: names.clone(),
        ..Policy::default()
    };
    let runtime = Runtime::new(RuntimeOptions {
        egress,
        ..RuntimeOptions::default()
    });
    for (allowed, input, expected, lookups) in [
        (
            &["api.example.com"][..],
            "00api.example.com/",
            "destination-IP-prohibited",
            1,
        ),
        (
            &["*.example.com"],
            "00api.example.com/",
            "destination-IP-prohibited",
            1,
        ),
        (&["*"], "00anything.org/", "destination-IP-prohibited", 1),
        // What is not on the list is not even looked up: a look-up tells whoever serves the name.
        (
            &["*.example.com"],
            "00example.com/",
            "HTTP-request-denied",
            0,
        ),
        (
            &["*.example.com"],
            "00secret.evil.org/",
            "HTTP-request-denied",
            0,
        ),
        (
            &["API.Example.com."],
            "00api.example.com/",
            "destination-IP-prohibited",
            1,
        ),
    ] {
        names.1.store(0, Ordering::Relaxed);
        assert_eq!(
            ask(&runtime, allowed, input),
            Err(expected.to_owned()),
            "{allowed:?} {input}"
        );
        assert_eq!(
            names.1.load(Ordering::Relaxed),
            lookups,
            "{allowed:?} {input}"
        );
    }
}

#[test]
fn grants_of_the_operator_do_not_apply_to_tools() {
    let server = serve();
    let grant = kenning_egress::Grant::parse(&format!("127.0.0.1:{}", server.port)).unwrap();
    let egress = Policy {
        grants: vec![grant],
        ..Policy::default()
    };
    let runtime = Runtime::new(RuntimeOptions {
        egress,
        ..RuntimeOptions::default()
    });
    let input = format!("00127.0.0.1:{}/hello", server.port);
    assert_eq!(
        ask(&runtime, &["*"], &input),
        Err("HTTP-request-denied".to_owned())
    );
    let input = "00127.0.0.1/hello";
    assert_eq!(
        ask(&runtime, &["*"], input),
        Err("destination-IP-prohibited".to_owned())
    );
    assert!(server.asked.lock().unwrap().is_empty());
}

#[test]
fn the_host_is_named_and_methods_are_those_of_the_web() {
    let (server, runtime) = (serve(), runtime());
    let port = server.port;
    let at = |method: u8, path: &str| format!("0{method}127.0.0.1:{port}{path}");
    let allowed = &["127.0.0.1"];
    let host = ask(&runtime, allowed, &at(0, "/host"))
        .unwrap()
        .to_lowercase();
    assert_eq!(host, format!("200 host: 127.0.0.1:{port}"));
    for (method, expected) in [
        (0, Ok("200 hello")),
        (2, Ok("200 hello")),
        (3, Ok("200 hello")),
        (4, Ok("200 hello")),
        (6, Ok("200 hello")),
        (8, Ok("200 hello")),
        (5, Err("HTTP-request-method-invalid")),
        (7, Err("HTTP-request-method-invalid")),
    ] {
        let found = ask(&runtime, allowed, &at(method, "/hello"));
        assert_eq!(
            found.as_deref().map_err(String::as_str),
            expected,
            "{method}"
        );
    }
}

#[test]
fn requests_are_bounded_in_number_size_and_time() {
    let (server, runtime) = (serve(), runtime());
    let port = server.port;
    let at = |path: &str| format!("00127.0.0.1:{port}{path}");
    let allowed = &["127.0.0.1"];
    let outcome = ask_with(&runtime, allowed, &at("/large"), |call| {
        call.limits.http_response_bytes_max = 1000;
    });
    assert_eq!(
        told(outcome.result),
        Err("HTTP-response-body-size".to_owned())
    );
    let outcome = ask_with(&runtime, allowed, &at("/hello"), |call| {
        call.limits.http_requests_max = 0;
    });
    assert_eq!(
        told(outcome.result),
        Err("connection-limit-reached".to_owned())
    );
    let outcome = ask_with(&runtime, allowed, &at("/never"), |call| {
        call.limits.max_execution_ms = 500;
    });
    assert_eq!(outcome.result, Err(Failure::TimedOut { limit_ms: 500 }));
    let outcome = ask_with(&runtime, allowed, &at("/hello"), |_| {});
    assert_eq!(
        (
            outcome.usage.http_requests,
            outcome.usage.http_bytes_received
        ),
        (1, 5)
    );
}

#[test]
fn what_is_received_counts_against_the_tools_memory() {
    let (server, runtime) = (serve(), runtime());
    let input = format!("00127.0.0.1:{}/huge", server.port);
    let ask = |max_memory_mb: u32| {
        ask_with(&runtime, &["127.0.0.1"], &input, |call| {
            call.limits.max_memory_mb = max_memory_mb;
        })
    };
    assert_eq!(
        told(ask(2).result),
        Err("HTTP-response-body-size".to_owned())
    );
    let enough = ask(16);
    assert!(enough.result.is_ok(), "{:?}", enough.result);
    assert!(enough.usage.memory_peak_bytes > 3_000_000);
}

#[test]
fn a_refusal_is_explained_in_the_log() {
    let runtime = runtime();
    let mut call = Call::new("01api.example.com/secret?token=5");
    call.capabilities.net = vec![Host::parse("example.com").unwrap()];
    call.run(&runtime, &probes::http().unwrap());
    let lines = call.lines.lock().unwrap();
    let expected =
        "a request to `api.example.com` was refused: `net_allow_list` has no entry for it";
    assert_eq!(lines[0].message, expected);
}

#[test]
fn there_are_no_sockets_and_no_look_ups() {
    let runtime = runtime();
    // `access-denied` and `permanent-resolver-failure`, whatever was granted.
    for (input, expected) in [("t", "1"), ("n", "D")] {
        let mut call = Call::new(input);
        call.capabilities.net = vec![Host::parse("*").unwrap(), Host::parse("127.0.0.1").unwrap()];
        let found = call.run(&runtime, &probes::sockets().unwrap()).result;
        assert_eq!(
            found,
            Err(Failure::Returned(expected.to_owned())),
            "{input}"
        );
    }
}
