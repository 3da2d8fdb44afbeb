//! Answers that are too large, too slow or not what they say.

use crate::common::{Wire, World, ok};
use flate2::Compression;
use flate2::write::GzEncoder;
use kenning_core::{Code, Error};
use kenning_egress::{Method, Request, Response};
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

/// A server that answers every request with this, and a client with small limits.
fn answering(handler: impl Fn(&mut Wire) -> io::Result<()> + Send + Sync + 'static) -> World {
    World::web(move |_, wire| handler(wire)).limits(|limits| {
        limits.body_bytes_max = 100_000;
        limits.header_bytes_max = 16 * 1024;
        limits.total_timeout = Duration::from_secs(10);
    })
}

fn fetch(world: &World) -> Result<Response, Error> {
    world
        .egress()
        .fetch(Request::get("http://public.example.com/"))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn check_code(
    expected: Code,
    handler: impl Fn(&mut Wire) -> io::Result<()> + Send + Sync + 'static,
) -> Error {
    let err = fetch(&answering(handler)).expect_err("it went through");
    assert_eq!(err.code, expected, "{err}");
    err
}

#[test]
fn a_body_may_reach_the_limit_and_not_pass_it() {
    for (length, fits) in [(99_999, true), (100_000, true), (100_001, false)] {
        let body = "x".repeat(length);
        // With a length, in chunks, and until the end of the line.
        let answers = [
            ok(&body),
            format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
            ),
            format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}"),
        ];
        for answer in answers {
            let result = fetch(&answering(move |wire| wire.send(&answer)));
            match result {
                Ok(response) => assert!(fits && response.body.len() == length),
                Err(err) => assert!(!fits && err.code == Code::TooLarge, "{err}"),
            }
        }
    }
}

#[test]
fn a_length_that_is_too_large_is_refused_before_the_body() {
    check_code(Code::TooLarge, |wire| {
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 100001\r\n\r\n")?;
        loop {
            wire.linger()?;
        }
    });
}

#[test]
fn an_endless_body_is_cut_at_the_limit() {
    check_code(Code::TooLarge, |wire| {
        wire.send("HTTP/1.1 200 OK\r\n\r\n")?;
        loop {
            wire.send(&"x".repeat(4096))?;
        }
    });
}

#[test]
fn a_decompressed_body_is_what_the_limit_counts() {
    let small = gzip(&[b'a'; 50_000]);
    let response = fetch(&answering(move |wire| {
        let length = small.len();
        wire.send(&format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n"
        ))?;
        wire.send_bytes(&small)
    }))
    .unwrap();
    assert_eq!(response.body, [b'a'; 50_000]);
    assert_eq!(response.header("content-encoding"), None);

    // 64 MiB in 64 KiB, refused after the first 100,000 bytes.
    let bomb = gzip(&vec![0; 64 * 1024 * 1024]);
    assert!(bomb.len() < 100_000);
    check_code(Code::TooLarge, move |wire| {
        wire.send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")?;
        wire.send_bytes(&bomb)
    });
}

#[test]
fn compressed_nothing_without_end_is_cut_too() {
    let nothing = gzip(b"");
    check_code(Code::TooLarge, move |wire| {
        wire.send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")?;
        loop {
            wire.send_bytes(&nothing.repeat(500))?;
        }
    });
}

#[test]
fn a_broken_compression_is_no_answer() {
    check_code(Code::Unavailable, |wire| {
        wire.send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nthis is not gzip")
    });
}

/// A server that never stops and never hurries is left at the deadline, not later.
fn check_slow(handler: impl Fn(&mut Wire) -> io::Result<()> + Send + Sync + 'static) {
    let total = Duration::from_millis(300);
    let world = answering(handler).limits(|it| it.total_timeout = total);
    let start = Instant::now();
    let err = fetch(&world).expect_err("it went through");
    let took = start.elapsed();
    assert_eq!(err.code, Code::Timeout, "{err}");
    assert!(took >= total && took < total * 10, "{took:?}");
}

#[test]
fn a_slow_body_is_cut_by_the_deadline() {
    check_slow(|wire| {
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n")?;
        loop {
            wire.send("x")?;
            wire.linger()?;
        }
    });
}

#[test]
fn slow_chunks_are_cut_by_the_deadline() {
    check_slow(|wire| {
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        loop {
            wire.send("1\r\nx\r\n")?;
            wire.linger()?;
        }
    });
}

#[test]
fn slow_headers_are_cut_by_the_deadline() {
    check_slow(|wire| {
        wire.send("HTTP/1.1 200 OK\r\nX-Slow: ")?;
        loop {
            wire.send("x")?;
            wire.linger()?;
        }
    });
}

#[test]
fn silence_is_cut_by_the_deadline() {
    check_slow(|wire| {
        loop {
            wire.linger()?;
        }
    });
}

#[test]
fn a_silent_handshake_is_cut_by_the_deadline() {
    let total = Duration::from_millis(300);
    let world = answering(|_| Ok(())).limits(|it| it.total_timeout = total);
    let start = Instant::now();
    let result = world
        .egress()
        .fetch(Request::get("https://public.example.com:8011/"));
    assert_eq!(result.unwrap_err().code, Code::Timeout);
    assert!(start.elapsed() < total * 10);
}

#[test]
fn a_ring_of_slow_redirects_shares_one_deadline() {
    let total = Duration::from_millis(300);
    let world = World::web(|_, wire| {
        for _ in 0..15 {
            wire.linger()?;
        }
        wire.send("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")
    })
    .limits(|it| it.total_timeout = total);
    let err = fetch(&world).unwrap_err();
    assert_eq!(err.code, Code::Timeout, "{err}");
}

#[test]
fn endless_headers_are_cut() {
    check_code(Code::TooLarge, |wire| {
        wire.send("HTTP/1.1 200 OK\r\n")?;
        for count in 0.. {
            wire.send(&format!("X-{count}: y\r\n"))?;
        }
        Ok(())
    });
    check_code(Code::TooLarge, |wire| {
        wire.send("HTTP/1.1 200 OK\r\nX-Long: ")?;
        loop {
            wire.send(&"y".repeat(4096))?;
        }
    });
    // Complete, but over the limit.
    check_code(Code::TooLarge, |wire| {
        wire.send(&format!(
            "HTTP/1.1 200 OK\r\nX-Long: {}\r\nContent-Length: 0\r\n\r\n",
            "y".repeat(17_000)
        ))
    });
    check_code(Code::TooLarge, |wire| {
        wire.send(&format!(
            "HTTP/1.1 200 OK\r\n{}Content-Length: 0\r\n\r\n",
            "X-Many: y\r\n".repeat(500)
        ))
    });
}

#[test]
fn a_length_that_lies_is_believed_neither_way() {
    // Too little came.
    check_code(Code::Unavailable, |wire| {
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort")
    });
    // More came than was said.
    let world =
        answering(|wire| wire.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more"));
    assert_eq!(fetch(&world).unwrap().body, b"hello");
    // Chunks that stop in the middle.
    check_code(Code::Unavailable, |wire| {
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nshort")
    });
    for broken in ["-1", "1e3", "5, 6", "99999999999999999999999", "0x10"] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {broken}\r\n\r\nhello");
        check_code(Code::Unavailable, move |wire| wire.send(&head));
    }
}

#[test]
fn what_is_not_http_is_no_answer() {
    for text in [
        "",
        "SSH-2.0-server\r\n",
        "220 mail ready\r\n",
        "HTTP/9.9 abc\r\n\r\n",
        "\0\0\0\0",
    ] {
        check_code(Code::Unavailable, move |wire| wire.send(text));
    }
}

#[test]
fn chunks_are_joined() {
    let world = answering(|wire| {
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        for part in ["hel", "lo, ", "world"] {
            wire.send(&format!("{:x}\r\n{part}\r\n", part.len()))?;
            wire.linger()?;
        }
        wire.send("0\r\n\r\n")
    });
    assert_eq!(fetch(&world).unwrap().body, b"hello, world");
}

#[test]
fn answers_without_a_body_have_none() {
    for head in [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        let response = fetch(&answering(move |wire| wire.send(head))).unwrap();
        assert!(response.body.is_empty());
    }
    // The length of what a GET would bring is no reason to refuse a HEAD.
    let world = answering(|wire| wire.send("HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n"));
    let request = Request {
        method: Method::Head,
        ..Request::get("http://public.example.com/")
    };
    let response = world.egress().fetch(request).unwrap();
    assert_eq!(response.header("content-length"), Some("999999999"));
    assert!(response.body.is_empty());
}

#[test]
fn a_status_of_failure_is_an_answer() {
    for status in [400, 404, 418, 500, 503] {
        let head = format!("HTTP/1.1 {status} Reason\r\nContent-Length: 4\r\n\r\noops");
        let response = fetch(&answering(move |wire| wire.send(&head))).unwrap();
        assert_eq!(
            (response.status, response.body.as_slice()),
            (status, &b"oops"[..])
        );
    }
    // A redirect that leads nowhere is an answer too.
    let head = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(
        fetch(&answering(move |wire| wire.send(head)))
            .unwrap()
            .status,
        302
    );
}

#[test]
fn a_type_that_was_not_asked_for_is_refused_before_the_body() {
    let check = |kind: &'static str, status: u16, wanted: &[&str], passes: bool| {
        let world = answering(move |wire| {
            wire.send(&format!(
                "HTTP/1.1 {status} X\r\n{kind}Content-Length: 2\r\n\r\nok"
            ))
        });
        let request = Request {
            accept_types: Some(wanted.iter().map(|&it| it.to_owned()).collect()),
            ..Request::get("http://public.example.com/")
        };
        match world.egress().fetch(request) {
            Ok(_) => assert!(passes, "{kind}"),
            Err(err) => assert!(!passes && err.code == Code::InvalidInput, "{kind}: {err}"),
        }
    };
    let html = "Content-Type: Text/HTML; charset=utf-8\r\n";
    check(html, 200, &["text/"], true);
    check(html, 200, &["application/json", "text/html"], true);
    check(html, 200, &["application/"], false);
    check(html, 404, &["application/"], true);
    check(
        "Content-Type: application/x-elf\r\n",
        200,
        &["text/"],
        false,
    );
    check("", 200, &["text/"], false);
}

#[test]
fn a_body_is_sent_and_headers_of_the_connection_are_not() {
    let world = World::web(|seen, wire| {
        let body = String::from_utf8_lossy(&seen.body);
        wire.send(&ok(&format!(
            "{} {} {body}",
            seen.method, seen.headers["host"]
        )))
    });
    let send = |method, headers: &[(&str, &str)], body: &[u8]| {
        let headers = headers
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let request = Request {
            method,
            headers: headers.collect(),
            body: body.to_vec(),
            ..Request::get("http://public.example.com:8080/")
        };
        world
            .egress()
            .fetch(request)
            .map(|it| String::from_utf8(it.body).unwrap())
    };
    let host = "public.example.com:8080";
    assert_eq!(
        send(Method::Post, &[], b"hi").unwrap(),
        format!("POST {host} hi")
    );
    assert_eq!(
        send(Method::Put, &[], b"hi").unwrap(),
        format!("PUT {host} hi")
    );
    assert_eq!(
        send(Method::Post, &[], b"").unwrap(),
        format!("POST {host} ")
    );
    assert_eq!(
        send(Method::Delete, &[], b"").unwrap(),
        format!("DELETE {host} ")
    );
    for (headers, body) in [
        (&[("Host", "10.0.0.1")][..], &b""[..]),
        (&[("content-length", "5")], b""),
        (&[("Transfer-Encoding", "chunked")], b""),
        (&[("Upgrade", "h2c")], b""),
        (&[("X-Split", "a\r\nHost: 10.0.0.1")], b""),
        (&[("X Split", "a")], b""),
        (&[("", "a")], b""),
        (&[], b"a body in a GET"),
    ] {
        let err = send(Method::Get, headers, body).unwrap_err();
        assert_eq!(err.code, Code::InvalidInput, "{headers:?}: {err}");
    }
}
