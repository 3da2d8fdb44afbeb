//! Who may call: nobody without the right word, and nobody more than it says.

use crate::place::{Answer, Place, Setup, get, post};
use kenning_core::Space;
use kenning_engine::{Caller, Principal, Scope};
use kenning_testing::NOW_MS;
use serde_json::json;

const READ: &str = r#"{"path":"People/Bill Baue.md"}"#;
const WRITE: &str = r#"{"path":"People/New.md","content":"x"}"#;
const FIXED: &str = "a fixed token";

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

async fn guarded() -> Place {
    let setup = Setup {
        require_token: true,
        fixed_token: Some(format!(" {FIXED} ")),
        ..Setup::default()
    };
    Place::with(setup).await
}

fn assert_unauthenticated(answer: &Answer, case: &str) {
    assert_eq!(answer.status, 401, "{case}: {answer:?}");
    assert_eq!(answer.code(), "unauthenticated", "{case}");
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{case}");
    assert!(!answer.body.contains("Bill"), "{case}: {answer:?}");
}

/// Header lines that must not open anything.
fn wrong(place: &Place) -> Vec<String> {
    let good = place.token(&Scope::ALL, "default", None);
    let other = place.token(&[Scope::Read], "default", None);
    let expired = place.token(&Scope::ALL, "default", Some(NOW_MS));
    let long_expired = place.token(&Scope::ALL, "default", Some(1));
    let revoked = place.token(&Scope::ALL, "default", None);
    let id = |token: &str| token.split('_').nth(1).unwrap().to_owned();
    let secret = |token: &str| token.split('_').nth(2).unwrap().to_owned();
    let owner = Caller::new(Principal::owner(Space::default()));
    let engine = place.fixture.board.engine();
    engine.revoke_token(&owner, &id(&revoked)).unwrap();
    let hash = kenning_core::Hash::of(secret(&good).as_bytes());
    let (good_id, good_secret) = (id(&good), secret(&good));
    let changed = |at: usize| {
        let mut bytes = good.clone().into_bytes();
        bytes[at] = if bytes[at] == b'2' { b'3' } else { b'2' };
        String::from_utf8(bytes).unwrap()
    };
    let mut lines: Vec<String> = [
        "",
        "Bearer",
        "Bearer ",
        "bearer",
        "Basic",
        "Token",
        "Negotiate",
        "Bearer null",
        "Bearer undefined",
        "Bearer kng",
        "Bearer kng_",
        "Bearer kng__",
        "Bearer kng_a_b",
        "Bearer ___",
        "Bearer _",
        "Bearer *",
        "Bearer %",
        "Bearer '",
        "Bearer ' OR 1=1 --",
        "Bearer ../../etc/passwd",
        "Bearer {}",
        "Bearer owner",
        "Bearer token",
        "Bearer a fixed",
        "Bearer a  fixed token",
        "Bearer A FIXED TOKEN",
        "Bearer a fixed token2",
        "a fixed token",
        "Basic YSBmaXhlZCB0b2tlbg==",
    ]
    .iter()
    .map(|it| format!("Authorization: {it}\r\n"))
    .collect();
    let made = [
        good.clone(),
        format!("Basic {good}"),
        format!("Token {good}"),
        format!("Bearer{good}"),
        format!("Bearer:{good}"),
        format!("Bearer\t{good}"),
        format!("Bearer, {good}"),
        format!("Bearer Bearer {good}"),
        format!("Bearer \"{good}\""),
        format!("Bearer {good}="),
        format!("Bearer {good}_"),
        format!("Bearer _{good}"),
        format!("Bearer {good},{good}"),
        format!("Bearer {good} {good}"),
        format!("Bearer {good};"),
        format!("Bearer {}", &good[..good.len() - 1]),
        format!("Bearer {}", &good[1..]),
        format!("Bearer {}", &good[..good.len() / 2]),
        format!("Bearer {good}1"),
        format!("Bearer {}", changed(good.len() - 1)),
        format!("Bearer {}", changed(good.len() / 2)),
        format!("Bearer {}", changed(0)),
        format!("Bearer {}", changed(4)),
        format!("Bearer {}", good.to_uppercase()),
        format!("Bearer {}", good.to_lowercase()),
        format!("Bearer {}", good.chars().rev().collect::<String>()),
        format!("Bearer KNG_{good_id}_{good_secret}"),
        format!("Bearer kng-{good_id}-{good_secret}"),
        format!("Bearer kng_{}_{good_secret}", id(&other)),
        format!("Bearer kng_{good_id}_{}", secret(&other)),
        format!("Bearer kng_{good_id}_"),
        format!("Bearer kng_{good_id}_{hash}"),
        format!("Bearer kng_{good_id}"),
        format!("Bearer kng__{good_secret}"),
        format!("Bearer {good_secret}"),
        format!("Bearer kng_{good_secret}_{good_id}"),
        format!("Bearer kng_{good_id}%00_{good_secret}"),
        format!("Bearer {expired}"),
        format!("Bearer {long_expired}"),
        format!("Bearer {revoked}"),
        format!("Bearer {good}\u{e9}"),
        format!("Bearer \u{43a}ng_{good_id}_{good_secret}"),
        format!("Bearer {}", "a".repeat(30_000)),
        format!("Bearer kng_{good_id}_{}", "a".repeat(30_000)),
        format!("Bearer kng_{}_{good_secret}", "a".repeat(30_000)),
    ];
    lines.extend(made.iter().map(|it| format!("Authorization: {it}\r\n")));
    // Elsewhere than in the header, and more than once.
    lines.extend([
        format!("X-Authorization: Bearer {good}\r\n"),
        format!("Cookie: token={good}\r\n"),
        format!("Proxy-Authorization: Bearer {good}\r\n"),
        format!("X-Api-Key: Bearer {good}\r\n"),
        format!("X-Api-Key: {good}\r\nX-Api-Key: {good}\r\n"),
        format!("X-Api-Key: {good_id}\r\n"),
        "X-Api-Key:\r\n".to_owned(),
        format!("{}{}", bearer(&good), bearer(&good)),
        format!("{}{}", bearer(&good), bearer("wrong")),
        format!("{}{}", bearer("wrong"), bearer(&good)),
        format!("{}Authorization: Basic x\r\n", bearer(&good)),
    ]);
    lines
}

#[tokio::test]
async fn wrong_credentials_open_nothing() {
    let place = guarded().await;
    let cases = wrong(&place);
    let routes = [
        ("GET", "/"),
        ("GET", "/tools"),
        ("GET", "/events?after=0"),
        ("POST", "/tools/vault_read_note"),
        ("POST", "/mcp"),
        ("GET", "/nowhere"),
    ];
    for case in cases.iter().chain([&String::new()]) {
        for (method, path) in routes {
            let request = match method {
                "GET" => get(path, case).into_bytes(),
                _ => post(path, case, READ.as_bytes()),
            };
            assert_unauthenticated(&place.ask(request).await, &format!("{path} {case}"));
        }
    }
    let mut distinct = cases.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), cases.len(), "a case stands twice");
    println!(
        "credentials: {} wrong x {} routes, all 401",
        cases.len(),
        routes.len()
    );
    assert!(cases.len() >= 60, "{}", cases.len());
}

/// Who sends a bad token means to be somebody; silently being the owner would be worse than an error.
#[tokio::test]
async fn a_bad_token_from_this_machine_is_refused_even_where_none_is_needed() {
    let place = Place::new().await;
    assert_eq!(place.get("/healthz", "").await.status, 200);
    for case in wrong(&place)
        .iter()
        .filter(|it| it.starts_with("Authorization"))
    {
        assert_unauthenticated(&place.get("/healthz", case).await, case);
    }
}

#[tokio::test]
async fn a_token_that_was_given_is_asked_for_on_this_machine_too() {
    let setup = Setup {
        require_token: false,
        fixed_token: Some(FIXED.to_owned()),
        ..Setup::default()
    };
    let place = Place::with(setup).await;
    assert_unauthenticated(&place.get("/tools", "").await, "no token");
    assert_unauthenticated(&place.post("/mcp", "", "{}").await, "no token");
    let answer = place.get("/healthz", &bearer(FIXED)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn right_credentials_open() {
    let place = guarded().await;
    let token = place.token(&Scope::ALL, "default", None);
    let lasting = place.token(&Scope::ALL, "default", Some(NOW_MS + 1));
    for value in [
        format!("Bearer {token}"),
        format!("bearer {token}"),
        format!("BEARER {token}"),
        format!("Bearer   {token}  "),
        format!("Bearer {lasting}"),
        format!("Bearer {FIXED}"),
    ] {
        let header = format!("Authorization: {value}\r\n");
        let answer = place.post("/tools/vault_read_note", &header, READ).await;
        assert_eq!(answer.status, 200, "{value}: {answer:?}");
        assert!(answer.body.contains("# Bill Baue"), "{answer:?}");
        assert_eq!(place.get("/nowhere", &header).await.status, 404, "{value}");
        let answer = place.post("/tools/vault_write_note", &header, WRITE).await;
        assert_eq!(answer.status, 200, "{value}: {answer:?}");
    }
}

#[tokio::test]
async fn an_empty_fixed_token_is_none() {
    for fixed in ["", "  "] {
        let setup = Setup {
            require_token: true,
            fixed_token: Some(fixed.to_owned()),
            ..Setup::default()
        };
        let place = Place::with(setup).await;
        for value in ["", "Bearer", "Bearer ", "Bearer  \t ", "Bearer \u{a0}"] {
            let header = format!("Authorization: {value}\r\n");
            assert_unauthenticated(&place.get("/tools", &header).await, value);
        }
    }
}

#[tokio::test]
async fn a_token_may_do_what_its_scopes_say() {
    let place = Place::new().await;
    let read = bearer(&place.token(&[Scope::Read], "default", None));
    let write = bearer(&place.token(&[Scope::Write], "default", None));
    let check = async |token: &str, tool: &str, body: &str, expected: u16| {
        let answer = place.post(&format!("/tools/{tool}"), token, body).await;
        assert_eq!(answer.status, expected, "{tool}: {answer:?}");
        if expected == 403 {
            assert_eq!(answer.code(), "denied");
        }
        // The same over MCP: there the refusal is a result that the model can read.
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{body}}}}}"#
        );
        let answer = place.post("/mcp", token, &call).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let is_error = answer.json()["result"]["isError"] == true;
        assert_eq!(is_error, expected == 403, "{tool}: {answer:?}");
    };
    check(&read, "vault_read_note", READ, 200).await;
    check(&read, "vault_write_note", WRITE, 403).await;
    check(&write, "vault_write_note", WRITE, 200).await;
    check(&write, "vault_read_note", READ, 403).await;
    assert_eq!(place.get("/events", &write).await.code(), "denied");
    // Whoever may not read learns that the server is alive, as anybody does.
    let of_log = async |token: &str| place.get("/healthz", token).await.json()["events"].is_u64();
    assert!(!of_log(&write).await && of_log(&read).await);
}

#[tokio::test]
async fn a_token_of_another_space_sees_nothing_of_this_one() {
    let place = Place::new().await;
    for n in 0..3 {
        place.write(&format!("secret-{n}.md"));
    }
    let token = bearer(&place.token(&Scope::ALL, "team", None));
    assert_eq!(place.get("/healthz", "").await.json()["events"], 3);
    assert_eq!(place.get("/healthz", &token).await.json()["events"], 0);
    let beyond = place.get("/events?after=1", &token).await;
    assert_eq!(beyond.code(), "invalid_input", "its log has no event 1");
    let mut theirs = place.connect().await;
    theirs.send(get("/events?after=0", &token)).await;
    assert_eq!(theirs.head().await.unwrap().status, 200);
    let first = theirs.chunk().await.unwrap();
    assert_eq!(first, b"retry: 1000\n\n");
    // The vault is another space's: nothing of it is read or written.
    for (tool, body) in [("vault_write_note", WRITE), ("vault_read_note", READ)] {
        let answer = place.post(&format!("/tools/{tool}"), &token, body).await;
        assert_eq!(answer.status, 403, "{answer:?}");
        assert!(
            answer.json().to_string().contains("has no vault"),
            "{answer:?}"
        );
    }
    // Its own events come, and nothing else came before.
    let log = place.fixture.log();
    log.write(&"team".parse().unwrap(), |tx| tx.record("Told", json!({})))
        .unwrap();
    let next = String::from_utf8(theirs.chunk().await.unwrap()).unwrap();
    assert!(next.starts_with("id: 1-"), "{next}");
    assert!(!next.contains("secret"), "{next}");
}

#[tokio::test]
async fn who_comes_through_a_proxy_needs_a_token() {
    let place = Place::new().await;
    let token = bearer(&place.token(&[Scope::Read], "default", None));
    for header in [
        "X-Forwarded-For: 203.0.113.9\r\n",
        "X-Forwarded-For: 127.0.0.1\r\n",
        "X-Forwarded-For:\r\n",
        "x-forwarded-host: localhost\r\n",
        "X-Forwarded-Proto: https\r\n",
        "X-Real-IP: 127.0.0.1\r\n",
        "Forwarded: for=127.0.0.1\r\n",
        "Via: 1.1 proxy\r\n",
    ] {
        assert_unauthenticated(&place.get("/tools", header).await, header);
        let both = format!("{header}{token}");
        assert_eq!(place.get("/healthz", &both).await.status, 200, "{header}");
    }
}

#[tokio::test]
async fn the_owner_sees_the_space_that_was_chosen() {
    // Without a token on this machine, or with the one of the command line.
    for (fixed_token, header) in [
        (None, String::new()),
        (Some(FIXED.to_owned()), bearer(FIXED)),
    ] {
        let setup = Setup {
            fixed_token,
            space: "team".parse().unwrap(),
            ..Setup::default()
        };
        let place = Place::with(setup).await;
        place.write("of-the-default-space.md");
        assert_eq!(place.get("/healthz", &header).await.json()["events"], 0);
        let token = bearer(&place.token(&[Scope::Read], "default", None));
        assert_eq!(place.get("/healthz", &token).await.json()["events"], 1);
    }
}
