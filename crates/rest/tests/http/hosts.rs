//! Every route behind the same check of `Host` and `Origin`.

use crate::place::{Answer, Place, Setup};
use std::fmt::Write;

const CASES_MIN: usize = 80;

/// Method, path, body.
const ROUTES: &[(&str, &str, &str)] = &[
    ("GET", "/", ""),
    ("GET", "/healthz", ""),
    ("GET", "/metrics", ""),
    ("GET", "/openapi.json", ""),
    ("GET", "/tools", ""),
    (
        "POST",
        "/tools/vault_read_note",
        r#"{"path":"People/Bill Baue.md"}"#,
    ),
    ("GET", "/events?after=0", ""),
    ("GET", "/api/v1/recall?query=x", ""),
    ("POST", "/api/v1/store", r#"{"content":"x"}"#),
    ("GET", "/api/v1/events?after=0", ""),
    ("GET", "/api/v1/dashboard/memories", ""),
    (
        "POST",
        "/mcp",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    ),
    ("GET", "/nowhere", ""),
];

struct Case {
    line: usize,
    good: bool,
    /// The scheme and the authority of an absolute request line.
    absolute: String,
    /// Whole lines, each with its end.
    headers: String,
}

/// `{U+000D}` is that character, `{a*90}` is ninety times `a`.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, after) = after.split_once('}').expect("a closing brace");
        out += before;
        if let Some(code) = inside.strip_prefix("U+") {
            out.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        } else {
            let (text, times) = inside.split_once('*').expect("a count");
            out += &text.repeat(times.parse().unwrap());
        }
        rest = after;
    }
    out + rest
}

fn cases() -> Vec<Case> {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testing/corpora/hosts.txt"
    );
    let text = std::fs::read_to_string(file).expect("the corpus");
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            let mut fields = line.splitn(3, '\t');
            let good = match fields.next() {
                Some("ok") => true,
                Some("refused") => false,
                other => panic!("line {}: {other:?}", number + 1),
            };
            let _kind = fields.next().expect("a kind");
            let (mut absolute, mut headers) = (String::new(), String::new());
            for piece in fields.next().expect("headers").split(" ; ") {
                match piece.strip_prefix('@') {
                    Some(it) => absolute = unescape(it),
                    None if piece == "-" => {}
                    None => write!(headers, "{}\r\n", unescape(piece)).unwrap(),
                }
            }
            Case {
                line: number + 1,
                good,
                absolute,
                headers,
            }
        })
        .collect()
}

async fn ask(place: &Place, case: &Case, route: (&str, &str, &str)) -> Answer {
    let (method, path, body) = route;
    let (absolute, headers, n_bytes) = (&case.absolute, &case.headers, body.len());
    let request = format!(
        "{method} {absolute}{path} HTTP/1.1\r\n{headers}Content-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {n_bytes}\r\n\r\n{body}"
    );
    place.ask(request).await
}

/// Why an answer to a refused case is wrong.
fn leak(answer: &Answer) -> Option<String> {
    let refused = match answer.status {
        // hyper's own answer to what is no HTTP has no body.
        400 => answer.body.is_empty(),
        403 => {
            answer.code() == "denied" && answer.json().as_object().is_some_and(|it| it.len() == 1)
        }
        _ => false,
    };
    (!refused).then(|| format!("{answer:?}"))
}

#[tokio::test]
async fn a_foreign_name_gets_nothing_from_any_route() {
    let setup = Setup {
        allow_hosts: vec!["Host.Docker.Internal".to_owned(), "fd00::7".to_owned()],
        ..Setup::default()
    };
    let place = Place::with(setup).await;
    place.write("People/Ann.md");
    let usual = Case {
        line: 0,
        good: true,
        absolute: String::new(),
        headers: "Host: localhost\r\n".to_owned(),
    };
    let cases = cases();
    let mut faults = Vec::new();
    for route in ROUTES {
        let expected = ask(&place, &usual, *route).await.status;
        assert_eq!(
            expected,
            match route.1 {
                "/nowhere" => 404,
                "/api/v1/store" => 201,
                _ => 200,
            },
            "{route:?}"
        );
        for case in &cases {
            let answer = ask(&place, case, *route).await;
            let fault = match case.good {
                true => (answer.status != expected).then(|| format!("{answer:?}")),
                false => leak(&answer),
            };
            if let Some(fault) = fault {
                faults.push(format!("hosts.txt:{} {}: {fault}", case.line, route.1));
            }
        }
    }
    let (n_cases, n_routes) = (cases.len(), ROUTES.len());
    println!(
        "hosts: {n_cases} cases x {n_routes} routes, {} failures",
        faults.len()
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let mut distinct: Vec<_> = cases.iter().map(|it| (&it.absolute, &it.headers)).collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), n_cases, "a case stands twice");
    assert!(n_cases >= CASES_MIN && n_routes >= 9);
    assert!(cases.iter().filter(|it| it.good).count() >= 10);
}

/// The corpus must hold what careless checks let through, or it proves nothing.
#[test]
fn careless_checks_would_let_some_cases_through() {
    let refused: Vec<Case> = cases().into_iter().filter(|it| !it.good).collect();
    let value = |case: &Case, name: &str| {
        let mut lines = case.headers.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
    };
    let let_through = |check: &dyn Fn(&str) -> bool| {
        let passes = |it: &&Case| {
            value(it, "Host:").is_some_and(|it| check(&it))
                && value(it, "Origin:").is_none_or(|it| check(it.trim_start_matches("http://")))
        };
        refused.iter().filter(passes).count()
    };
    for (name, n, floor) in [
        ("contains", let_through(&|it| it.contains("localhost")), 20),
        ("127", let_through(&|it| it.starts_with("127.")), 3),
        ("prefix", let_through(&|it| it.starts_with("localhost")), 15),
        ("suffix", let_through(&|it| it.ends_with("localhost")), 3),
        (
            "before the port",
            let_through(&|it| it.split(':').next() == Some("localhost")),
            8,
        ),
        (
            "no origin",
            refused
                .iter()
                .filter(|it| value(it, "Host:").as_deref() == Some("localhost"))
                .count(),
            20,
        ),
    ] {
        println!("hosts: the careless check `{name}` lets {n} refused cases through");
        assert!(n >= floor, "{name}: {n} < {floor}");
    }
}

#[tokio::test]
async fn who_is_refused_is_told_what_permits_it() {
    let place = Place::new().await;
    for (headers, expected) in [
        ("Host: evil.example\r\n", "`--allow-host NAME`"),
        (
            "Host: localhost\r\nOrigin: https://evil.example\r\n",
            "`--allow-origin ORIGIN`",
        ),
        (
            "Host: localhost:8351\r\nOrigin: http://localhost:3000\r\n",
            "`--allow-origin ORIGIN`",
        ),
    ] {
        let request = format!("GET /tools HTTP/1.1\r\n{headers}\r\n");
        let answer = place.ask(request).await;
        assert_eq!(answer.status, 403, "{answer:?}");
        let said = answer.json().to_string();
        assert!(said.contains(expected), "{said}");
    }
}

/// A page loads images, scripts and frames without an `Origin`.
#[tokio::test]
async fn what_a_foreign_page_embeds_is_refused_but_a_link_may_be_followed() {
    let place = Place::new().await;
    // What pages may be linked to, and what works when it is asked.
    let (linked, working) = (
        ["/", "/healthz"],
        [
            "/tools/vault_read_note?path=People/Bill%20Baue.md",
            "/api/v1/recall?query=x",
            "/stats",
        ],
    );
    let check_each = async |headers: &[(&str, &str)], paths: &[&str], expected: u16| {
        let headers: String = headers
            .iter()
            .map(|it| format!("Sec-Fetch-{}: {}\r\n", it.0, it.1))
            .collect();
        for path in paths {
            let answer = place.get(path, &headers).await;
            assert_eq!(answer.status, expected, "{path} {headers}");
        }
    };
    let check = async |headers: &[(&str, &str)], expected: u16| {
        check_each(headers, &linked, expected).await;
        check_each(headers, &working, expected).await;
    };
    check(
        &[
            ("Site", "cross-site"),
            ("Mode", "no-cors"),
            ("Dest", "image"),
        ],
        403,
    )
    .await;
    check(
        &[
            ("Site", "cross-site"),
            ("Mode", "no-cors"),
            ("Dest", "script"),
        ],
        403,
    )
    .await;
    check(
        &[
            ("Site", "cross-site"),
            ("Mode", "navigate"),
            ("Dest", "iframe"),
        ],
        403,
    )
    .await;
    check(&[("Site", "cross-site")], 403).await;
    check(
        &[
            ("Site", "same-site"),
            ("Mode", "no-cors"),
            ("Dest", "image"),
        ],
        403,
    )
    .await;
    for site in ["cross-site", "same-site"] {
        let followed = [("Site", site), ("Mode", "navigate"), ("Dest", "document")];
        check_each(&followed, &linked, 200).await;
        check_each(&followed, &working, 403).await;
    }
    for (referer, expected) in [
        ("https://evil.example/a?b=http://localhost", 403),
        ("http://localhost:3000/", 403),
        ("https://evil.example", 403),
        ("rubbish", 403),
        ("http://localhost/tools", 200),
        ("https://localhost/", 403),
    ] {
        let headers = format!("Referer: {referer}\r\n");
        let answer = place.get(working[0], &headers).await;
        assert_eq!(answer.status, expected, "{referer}");
        assert_eq!(place.get("/", &headers).await.status, 200, "{referer}");
    }
    check(
        &[("Site", "same-origin"), ("Mode", "cors"), ("Dest", "empty")],
        200,
    )
    .await;
    check(
        &[("Site", "none"), ("Mode", "navigate"), ("Dest", "document")],
        200,
    )
    .await;
    let answer = place.get("/tools", "").await;
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(answer.header(name), Some(value));
    }
    assert_eq!(answer.header("access-control-allow-origin"), None);
}
