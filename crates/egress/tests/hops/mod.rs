//! Names whose addresses change, and redirects.

use crate::common::{PUBLIC, World, ok, redirect, usual_names};
use kenning_core::{Code, Error};
use kenning_egress::{Grant, Method, Request, Response};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

fn denied(result: Result<Response, Error>) -> String {
    let err = result.expect_err("it went through");
    assert_eq!(err.code, Code::Denied, "{err}");
    err.message
}

/// A server whose `/` redirects to `to`.
fn leading_to(to: &str) -> World {
    let to = to.to_owned();
    World::web(move |seen, wire| match seen.target.as_str() {
        "/" | "/?key=token-in-query" => wire.send(&redirect(302, &to)),
        _ => wire.send(&ok(&seen.target)),
    })
}

#[test]
fn a_name_that_is_public_first_and_private_later_is_asked_once_and_pinned() {
    let zone = |_: &str, count: usize| {
        let address = if count <= 1 { PUBLIC } else { "127.0.0.1" };
        Some(vec![address.parse().unwrap()])
    };
    let world = World::new(zone, |_, wire| wire.send(&ok("hello")));
    let response = world
        .egress()
        .fetch(Request::get("http://rebind.example.com/"));
    assert_eq!(response.unwrap().address.ip().to_string(), PUBLIC);
    assert_eq!(*world.asked.lock().unwrap(), ["rebind.example.com"]);
    assert_eq!(world.taken(), [format!("{PUBLIC}:80").parse().unwrap()]);
    // The second request is a second lookup, and is refused.
    let message = denied(
        world
            .egress()
            .fetch(Request::get("http://rebind.example.com/")),
    );
    assert_eq!(
        message,
        "`http://rebind.example.com/` resolves to a loopback address (127.0.0.0/8)"
    );
    assert!(world.taken().is_empty());
}

#[test]
fn a_name_that_turns_private_between_two_hops_is_refused_at_the_second() {
    let zone = |_: &str, count: usize| {
        let address = if count <= 1 { PUBLIC } else { "10.0.0.1" };
        Some(vec![address.parse().unwrap()])
    };
    let world = World::new(zone, |_, wire| wire.send(&redirect(302, "/again")));
    let message = denied(
        world
            .egress()
            .fetch(Request::get("http://rebind.example.com/")),
    );
    assert!(
        message.contains("a private address (10.0.0.0/8)"),
        "{message}"
    );
    assert_eq!(world.asked.lock().unwrap().len(), 2);
    assert_eq!(world.taken().len(), 1);
}

#[test]
fn one_private_address_among_public_ones_refuses_the_name() {
    for mixed in [
        [PUBLIC, "10.0.0.1"],
        ["10.0.0.1", PUBLIC],
        [PUBLIC, "::1"],
        [PUBLIC, "::ffff:127.0.0.1"],
        ["2606:2800:21f:cb07:6820:80da:af6b:8b2c", "169.254.169.254"],
    ] {
        let zone = move |_: &str, _: usize| Some(mixed.map(|it| it.parse().unwrap()).to_vec());
        let world = World::new(zone, |_, wire| wire.send(&ok("hello")));
        denied(
            world
                .egress()
                .fetch(Request::get("http://mixed.example.com/")),
        );
        assert!(world.taken().is_empty());
    }
}

#[test]
fn the_next_address_is_tried_when_the_first_does_not_answer() {
    // The connector of the tests refuses port 8009 and lets port 8010 time out.
    let world = World::web(|_, wire| wire.send(&ok("hello")));
    let fetch = |url: &str| world.egress().fetch(Request::get(url)).unwrap_err().code;
    assert_eq!(fetch("http://public.example.com:8009/"), Code::Unavailable);
    assert_eq!(fetch("http://public.example.com:8010/"), Code::Timeout);
    assert_eq!(fetch("http://nobody.example.com/"), Code::Unavailable);

    let both = |_: &str, _: usize| -> Option<Vec<IpAddr>> {
        Some(vec![
            "93.184.215.14".parse().unwrap(),
            "93.184.215.15".parse().unwrap(),
        ])
    };
    let world = World::new(both, |_, wire| wire.send(&ok("hello")));
    let url = "http://two.example.com:8009/";
    assert_eq!(
        world.egress().fetch(Request::get(url)).unwrap_err().code,
        Code::Unavailable
    );
    assert_eq!(world.taken().len(), 2);
}

#[test]
fn five_redirects_are_followed_and_a_sixth_is_not() {
    for count in 1..=20 {
        let world = World::web(move |seen, wire| {
            let step: usize = seen.target[1..].parse().unwrap();
            if step < count {
                wire.send(&redirect(302, &format!("/{}", step + 1)))
            } else {
                wire.send(&ok("arrived"))
            }
        });
        let result = world
            .egress()
            .fetch(Request::get("http://public.example.com/0"));
        if count <= 5 {
            let response = result.unwrap();
            assert_eq!(response.body, b"arrived");
            assert_eq!(response.redirects.len(), count);
            assert_eq!(
                response.final_url,
                format!("http://public.example.com/{count}")
            );
        } else {
            let message = denied(result);
            assert_eq!(
                message,
                "`http://public.example.com/` redirects more than 5 times"
            );
        }
        // One line and one lookup a hop, and never more than six.
        assert_eq!(world.taken().len(), count.min(5) + 1);
        assert_eq!(world.asked.lock().unwrap().len(), count.min(5) + 1);
    }
}

#[test]
fn a_redirect_is_judged_like_an_address_of_its_own() {
    for to in [
        "http://10.0.0.1/",
        "http://127.0.0.1/",
        "http://127.0.0.1:11434/",
        "http://2130706433/",
        "http://[::1]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.google.internal/",
        "http://localhost/",
        "http://private.example.com/",
        "//10.0.0.1/",
        "//private.example.com/",
        "http://user:pass@public.example.com/",
        "http://public.example.com:22/",
        "file:///etc/passwd",
        "ftp://public.example.com/",
        "gopher://public.example.com:70/_x",
        "data:text/plain,hello",
        "javascript:alert(1)",
    ] {
        for status in [301, 302, 303, 307, 308] {
            let world = World::web(move |_, wire| wire.send(&redirect(status, to)));
            denied(
                world
                    .egress()
                    .fetch(Request::get("http://public.example.com/")),
            );
            assert_eq!(
                world.taken(),
                [format!("{PUBLIC}:80").parse().unwrap()],
                "{to}"
            );
        }
    }
}

#[test]
fn a_redirect_that_is_no_address_is_invalid_and_goes_nowhere() {
    for to in [
        "http://",
        "http:///\\10.0.0.1/",
        "/\\10.0.0.1/",
        "http://[::1",
        "http://a:99999/",
    ] {
        let world = leading_to(to);
        let result = world
            .egress()
            .fetch(Request::get("http://public.example.com/"));
        assert_eq!(result.unwrap_err().code, Code::InvalidInput, "{to}");
        assert_eq!(world.taken().len(), 1);
    }
}

#[test]
fn a_relative_redirect_stays_on_its_host() {
    for (to, expected) in [
        ("/next", "http://public.example.com/next"),
        ("next?a=1#part", "http://public.example.com/dir/next?a=1"),
        ("../up", "http://public.example.com/up"),
        ("?q", "http://public.example.com/dir/start?q"),
        ("//other.example.com/x", "http://other.example.com/x"),
    ] {
        let world = World::web(move |seen, wire| match seen.target.as_str() {
            "/dir/start" => wire.send(&redirect(302, to)),
            _ => wire.send(&ok("arrived")),
        });
        let url = "http://public.example.com/dir/start";
        let response = world.egress().fetch(Request::get(url)).unwrap();
        assert_eq!(response.final_url, expected);
        assert_eq!(response.redirects, [url]);
    }
}

#[test]
fn tls_is_by_name_over_the_pinned_address_and_never_goes_down_to_plain() {
    let world = leading_to("http://public.example.com/next");
    let message = denied(
        world
            .egress()
            .fetch(Request::get("https://public.example.com/")),
    );
    assert_eq!(
        message,
        "`https://public.example.com/` redirects from https to `http://public.example.com/`"
    );
    assert_eq!(world.taken(), [format!("{PUBLIC}:443").parse().unwrap()]);

    // Up is fine, and so is https to https.
    let world = leading_to("https://other.example.com/next");
    for url in ["http://public.example.com/", "https://public.example.com/"] {
        let response = world.egress().fetch(Request::get(url)).unwrap();
        assert_eq!(response.final_url, "https://other.example.com/next");
        assert_eq!(response.body, b"/next");
    }

    // A name that the certificate does not hold is not believed, whatever the address.
    let zone = |_: &str, _: usize| Some(vec![PUBLIC.parse().unwrap()]);
    let world = World::new(zone, |_, wire| wire.send(&ok("hello")));
    let err = world
        .egress()
        .fetch(Request::get("https://stranger.example.com/"))
        .unwrap_err();
    assert_eq!(err.code, Code::Unavailable);
    assert_eq!(
        err.message,
        "the TLS certificate of `https://stranger.example.com/` was not accepted"
    );
    assert!(world.served.lock().unwrap().is_empty());
}

#[test]
fn https_only_holds_at_the_start_and_after_a_redirect() {
    let world = leading_to("http://other.example.com/next");
    let request = |url: &str| Request {
        https_only: true,
        ..Request::get(url)
    };
    let message = denied(world.egress().fetch(request("http://public.example.com/")));
    assert_eq!(message, "`http://public.example.com/` is not https");
    assert!(world.taken().is_empty());
    denied(world.egress().fetch(request("https://public.example.com/")));
    assert_eq!(world.taken().len(), 1);
    let response = world
        .egress()
        .fetch(request("https://public.example.com/page"));
    assert_eq!(response.unwrap().status, 200);
}

#[test]
fn a_redirect_can_be_the_answer_and_leads_nowhere() {
    let world = leading_to("http://169.254.169.254/");
    for method in [Method::Get, Method::Patch, Method::Options] {
        let response = world.egress().fetch(Request {
            method,
            redirect_is_answer: true,
            ..Request::get("http://public.example.com/")
        });
        let response = response.unwrap();
        assert_eq!(response.status, 302);
        assert_eq!(response.header("location"), Some("http://169.254.169.254/"));
        assert!(response.redirects.is_empty());
        assert_eq!(world.taken().len(), 1);
    }
}

/// What the last hop got, after a redirect with this status to this address.
fn last_request(method: Method, status: u16, to: &str) -> (String, Vec<String>, String) {
    let to = to.to_owned();
    let last = Arc::new(Mutex::new(None));
    let seen_last = last.clone();
    let world = World::web(move |seen, wire| {
        if seen.target == "/" {
            return wire.send(&redirect(status, &to));
        }
        let kept = [
            "authorization",
            "cookie",
            "x-api-key",
            "accept",
            "user-agent",
            "content-type",
        ];
        let kept = kept.into_iter().filter(|it| seen.headers.contains_key(*it));
        let kept = kept.map(str::to_owned).collect();
        let body = String::from_utf8(seen.body.clone()).unwrap();
        *seen_last.lock().unwrap() = Some((seen.method.clone(), kept, body));
        wire.send(&ok(""))
    });
    let header = |name: &str| (name.to_owned(), "secret".to_owned());
    let names = [
        "Authorization",
        "COOKIE",
        "X-Api-Key",
        "Accept",
        "Content-Type",
    ];
    let request = Request {
        method,
        headers: names.map(header).to_vec(),
        body: if method == Method::Post {
            b"body".to_vec()
        } else {
            Vec::new()
        },
        ..Request::get("http://public.example.com/")
    };
    world.egress().fetch(request).unwrap();
    last.lock().unwrap().take().unwrap()
}

#[test]
fn credentials_do_not_follow_to_another_origin() {
    let (_, kept, _) = last_request(Method::Get, 302, "/next");
    assert_eq!(
        kept,
        [
            "authorization",
            "cookie",
            "x-api-key",
            "accept",
            "user-agent"
        ]
    );
    for other in [
        "http://other.example.com/next",
        "http://public.example.com:8080/next",
        "https://public.example.com/next",
    ] {
        let (_, kept, _) = last_request(Method::Get, 302, other);
        assert_eq!(kept, ["accept", "user-agent"], "{other}");
    }
}

#[test]
fn a_redirected_post_becomes_a_get_except_where_it_must_not() {
    for (status, method, body) in [
        (301, "GET", ""),
        (302, "GET", ""),
        (303, "GET", ""),
        (307, "POST", "body"),
        (308, "POST", "body"),
    ] {
        let (found, kept, sent) = last_request(Method::Post, status, "/next");
        assert_eq!((found.as_str(), sent.as_str()), (method, body), "{status}");
        let typed = kept.contains(&"content-type".to_owned());
        assert_eq!(typed, method == "POST", "{status}");
    }
    assert_eq!(last_request(Method::Head, 303, "/next").0, "HEAD");
    assert_eq!(last_request(Method::Delete, 302, "/next").0, "DELETE");
    assert_eq!(last_request(Method::Delete, 303, "/next").0, "GET");
}

#[test]
fn a_grant_permits_its_host_and_port_and_nothing_else() {
    let egress = |grants: &[&str]| {
        let mut world = World::new(usual_names, |seen, wire| match seen.target.as_str() {
            "/private" => wire.send(&redirect(302, "http://10.0.0.1/")),
            "/loopback" => wire.send(&redirect(302, "http://127.0.0.1:22/")),
            _ => wire.send(&ok("hello")),
        });
        world.policy.grants = grants.iter().map(|it| Grant::parse(it).unwrap()).collect();
        world.egress()
    };
    let check = |grants: &[&str], url: &str, passes: bool| {
        let result = egress(grants).fetch(Request::get(url));
        match &result {
            Ok(_) => assert!(passes, "{grants:?} {url}"),
            Err(err) => assert!(
                !passes && err.code == Code::Denied,
                "{grants:?} {url}: {err}"
            ),
        }
    };
    let ollama = &["http://127.0.0.1:11434"];
    check(ollama, "http://127.0.0.1:11434/api", true);
    check(ollama, "http://127.1:11434/api", true);
    check(ollama, "http://[::ffff:127.0.0.1]:11434/api", true);
    check(ollama, "http://127.0.0.1/", false);
    check(ollama, "http://127.0.0.2:11434/", false);
    check(ollama, "http://localhost:11434/", false);
    check(ollama, "http://127.0.0.1:11434/private", false);
    check(ollama, "http://127.0.0.1:11434/loopback", false);

    check(&["localhost"], "http://localhost:5432/", true);
    check(&["localhost"], "http://LOCALHOST./", true);
    check(&["localhost"], "http://127.0.0.1/", false);
    check(&["localhost:8080"], "http://localhost:8081/", false);
    check(&["localhost:8080"], "http://localhost:8080/private", false);

    check(&["10.0.0.1"], "http://10.0.0.1/", true);
    check(&["10.0.0.1"], "http://private.example.com/", false);
    check(
        &["private.example.com"],
        "http://private.example.com/",
        true,
    );
    check(&["private.example.com"], "http://10.0.0.1/", false);

    check(&["10.0.0.0/8"], "http://10.255.255.255/", true);
    check(&["10.0.0.0/8"], "http://private.example.com/", true);
    check(&["10.0.0.0/8"], "http://private.example.com:6379/", false);
    check(&["10.0.0.0/8"], "http://11.0.0.1/", true);
    check(&["10.0.0.0/8"], "http://192.168.0.1/", false);
    check(&["10.0.0.0/8"], "http://public.example.com/private", true);
}

#[test]
fn a_message_names_the_host_as_written_and_no_secret() {
    let world = leading_to("http://10.0.0.1/token-in-path?key=token-in-query");
    for url in [
        "http://token-user:token-pass@public.example.com/",
        "http://0xA.1/token-in-path?key=token-in-query#token-in-fragment",
        "http://public.example.com/?key=token-in-query",
        "http://public.example.com:99999/token-in-path",
        "ftp://token-user@public.example.com/token-in-path",
        "mailto:token@example.com",
        "http://token-user:token\\@public.example.com/",
        "http://someone:token/more@public.example.com/",
        "token@public.example.com/token",
        "public.example.com/token",
    ] {
        let err = world.egress().fetch(Request::get(url)).unwrap_err();
        assert!(!err.to_string().contains("token"), "{err}");
        assert!(!format!("{:?}", Request::get(url)).contains("token"));
    }
    let err = world.egress().check("http://0xA.1/path").unwrap_err();
    assert_eq!(
        err.message,
        "`http://0xA.1/` resolves to a private address (10.0.0.0/8)"
    );
    assert_eq!(
        err.hint.unwrap(),
        "the operator can grant a host in the configuration"
    );
    let message = denied(
        world
            .egress()
            .fetch(Request::get("http://public.example.com/")),
    );
    assert_eq!(
        message,
        "after a redirect from `http://public.example.com/`: \
         `http://10.0.0.1/` resolves to a private address (10.0.0.0/8)"
    );
}
