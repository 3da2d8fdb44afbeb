//! More connections than there are places: who gives way, and who does not.

use crate::limits::waiting;
use crate::place::{Place, Setup, Wire, get, post};
use kenning_engine::Scope;
use kenning_rest::Limits;
use std::time::Duration;

const READ: &str = "/tools/vault_read_note";
const GOOD: &str = r#"{"path":"People/Bill Baue.md"}"#;
/// Fewer places than the crowd has connections.
const PLACES: usize = 12;
const CROWD: usize = 60;

fn few_places() -> Setup {
    Setup {
        limits: Limits {
            connections_max: PLACES,
            // Longer than the test: nothing but giving way frees a place.
            head_time_max: Duration::from_secs(600),
            body_time_max: Duration::from_secs(600),
            stall_time_max: Duration::from_secs(600),
            silence_time_max: Duration::from_millis(50),
            ..Limits::default()
        },
        ..Setup::default()
    }
}

/// What a client of the crowd sends, and how much of the answer it reads before it goes on holding its connection.
#[derive(Clone, Copy, Debug)]
enum Holds {
    Nothing,
    HalfAHead,
    AnIdleConnection,
    HalfABody,
}

async fn hold(place: &Place, what: Holds) -> Wire {
    let mut wire = place.connect().await;
    let body = post(READ, "", GOOD.as_bytes());
    // Whoever was closed meanwhile is renewed by the caller.
    match what {
        Holds::Nothing => {}
        Holds::HalfAHead => drop(wire.send("GET /healthz HTTP/1.1\r\nHost: loc").await),
        Holds::AnIdleConnection => {
            wire.send(get("/healthz", "")).await;
            wire.head().await;
        }
        Holds::HalfABody => drop(wire.send(&body[..body.len() - 3]).await),
    }
    wire
}

/// Holds connections, and makes a new one for each that was closed.
async fn renew(place: &Place, what: Holds, held: &mut Vec<Wire>) {
    for wire in held.iter_mut() {
        if is_closed(wire) {
            *wire = hold(place, what).await;
        }
    }
    while held.len() < CROWD {
        held.push(hold(place, what).await);
    }
}

/// Whether the server has closed it, as far as is known yet.
fn is_closed(wire: &Wire) -> bool {
    match wire.stream.try_read(&mut [0; 1_024]) {
        Ok(n) => n == 0,
        Err(why) => why.kind() != std::io::ErrorKind::WouldBlock,
    }
}

/// A crowd from one address held all places, and nobody else was answered while it renewed them.
#[tokio::test]
async fn a_crowd_that_holds_connections_does_not_keep_others_out() {
    for what in [
        Holds::Nothing,
        Holds::HalfAHead,
        Holds::AnIdleConnection,
        Holds::HalfABody,
    ] {
        let place = Place::with(few_places()).await;
        let mut held = Vec::new();
        for round in 0..8 {
            renew(&place, what, &mut held).await;
            let health = place.get("/healthz", "").await;
            assert_eq!(health.status, 200, "{what:?}, round {round}");
            let read = place.post(READ, "", GOOD).await;
            assert_eq!(read.status, 200, "{what:?}, round {round}");
        }
        assert_eq!(held.len(), CROWD);
    }
}

#[tokio::test]
async fn strangers_who_send_bodies_that_nobody_wants_give_way() {
    let place = Place::with(Setup {
        require_token: true,
        ..few_places()
    })
    .await;
    let token = place.token(&[Scope::Read], "default", None);
    let token = format!("Authorization: Bearer {token}\r\n");
    let mut held = Vec::new();
    for round in 0..5 {
        renew(&place, Holds::HalfABody, &mut held).await;
        let health = place.get("/healthz", &token).await;
        assert_eq!(health.status, 200, "round {round}");
    }
}

#[tokio::test]
async fn a_request_that_is_under_way_keeps_its_place() {
    let (extra, mut told) = waiting();
    let place = Place::with(Setup {
        extra,
        ..few_places()
    })
    .await;
    let mut working = Vec::new();
    for _ in 0..PLACES - 1 {
        let mut wire = place.connect().await;
        wire.send(get("/wait", "")).await;
        assert_eq!(told.recv().await, Some("asked"));
        working.push(wire);
    }
    // One place is left, and all others share it.
    for _ in 0..CROWD {
        hold(&place, Holds::HalfAHead).await;
        assert_eq!(place.get("/healthz", "").await.status, 200);
    }
    // Without any left the next one waits until somebody is done.
    let mut last = place.connect().await;
    last.send(get("/wait", "")).await;
    assert_eq!(told.recv().await, Some("asked"));
    let mut next = place.connect().await;
    next.send(get("/healthz", "")).await;
    let early = tokio::time::timeout(Duration::from_millis(200), next.head()).await;
    assert!(early.is_err(), "all places are taken by work");
    assert!(!working.iter().any(is_closed));
    drop(working.pop());
    assert_eq!(next.head().await.unwrap().status, 200);
}

#[tokio::test]
async fn an_answer_that_nobody_reads_gives_way_and_one_that_is_read_does_not() {
    let place = Place::with(few_places()).await;
    let content = "x".repeat(100_000);
    let arguments = serde_json::json!({ "path": "Large.md", "content": content });
    let reply = place.fixture.call("vault_write_note", arguments);
    assert!(!reply.is_error(), "{}", reply.text);
    // More than the kernel keeps for a connection.
    let request = post(READ, "", br#"{"path":"Large.md"}"#).repeat(200);
    let mut unread = Vec::new();
    for _ in 0..PLACES {
        let mut wire = place.connect().await;
        wire.send(&request).await;
        unread.push(wire);
    }
    for _ in 0..3 {
        assert_eq!(place.get("/healthz", "").await.status, 200);
    }
    let mut reader = place.connect().await;
    reader.send(&request).await;
    for _ in 0..200 {
        assert_eq!(reader.answer().await.unwrap().status, 200);
    }
}
