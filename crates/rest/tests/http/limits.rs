//! What one client may take from the others.

use crate::place::{Place, Setup, get, post};
use axum::Router;
use kenning_engine::Scope;
use kenning_rest::Limits;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

const SHORT: Duration = Duration::from_millis(300);
const READ: &str = "/tools/vault_read_note";
const GOOD: &str = r#"{"path":"People/Bill Baue.md"}"#;

async fn within(limits: Limits) -> Place {
    let setup = Setup {
        limits,
        ..Setup::default()
    };
    Place::with(setup).await
}

#[tokio::test]
async fn a_head_that_drips_is_closed_and_so_is_silence() {
    let place = within(Limits {
        head_time_max: SHORT,
        ..Limits::default()
    })
    .await;
    let began = Instant::now();
    let mut drip = place.connect().await;
    let mut n_bytes = 0;
    for byte in get("/healthz", "").bytes().cycle() {
        if !drip.send([byte]).await {
            break;
        }
        n_bytes += 1;
        // Faster than a byte a second, but slower than any head.
        tokio::time::sleep(SHORT / 10).await;
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{n_bytes} bytes were taken"
        );
    }
    assert!(began.elapsed() >= SHORT);
    let mut silent = place.connect().await;
    assert!(silent.closes().await);
    let mut idle = place.connect().await;
    idle.send(get("/healthz", "")).await;
    assert_eq!(idle.answer().await.unwrap().status, 200);
    assert!(idle.closes().await, "between two requests as well");
}

#[tokio::test]
async fn a_body_that_drips_is_told_so_on_every_route() {
    let place = within(Limits {
        body_time_max: SHORT,
        ..Limits::default()
    })
    .await;
    for path in [READ, "/mcp"] {
        let request = post(path, "", GOOD.as_bytes());
        let mut wire = place.connect().await;
        wire.send(&request[..request.len() - 1]).await;
        let answer = wire.answer().await.expect("an answer");
        assert_eq!(answer.code(), "timeout", "{path}");
        assert!(wire.closes().await, "{path}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_begin_is_given_up() {
    let setup = Setup {
        limits: Limits {
            answer_time_max: SHORT,
            ..Limits::default()
        },
        extra: Router::new().route("/never", axum::routing::get(std::future::pending::<()>)),
        ..Setup::default()
    };
    let place = Place::with(setup).await;
    assert_eq!(place.get("/never", "").await.code(), "timeout");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_closed() {
    let place = within(Limits {
        stall_time_max: SHORT,
        ..Limits::default()
    })
    .await;
    // An answer has at most 80,000 characters: so many do not fit into what the connection keeps.
    let (n_asked, n_bytes) = (400, 100_000);
    let arguments = serde_json::json!({ "path": "Large.md", "content": "x".repeat(n_bytes) });
    let reply = place.fixture.call("vault_write_note", arguments);
    assert!(!reply.is_error(), "{}", reply.text);
    let mut wire = place.connect().await;
    let request = post(READ, "", br#"{"path":"Large.md"}"#).repeat(n_asked);
    wire.send(request).await;
    wire.closed_by_server().await;
    let mut n_answers = 0;
    while let Some(answer) = wire.answer().await {
        assert_eq!(answer.status, 200);
        n_answers += 1;
    }
    assert!(n_answers < n_asked, "{n_answers} answers were kept for it");
}

#[tokio::test]
async fn three_hundred_clients_at_once_are_served() {
    let place = Arc::new(Place::new().await);
    let mut wires = Vec::new();
    for _ in 0..300 {
        wires.push(place.connect().await);
    }
    let began = Instant::now();
    let asked = wires.into_iter().map(|mut wire| {
        tokio::spawn(async move {
            wire.send(post(READ, "", GOOD.as_bytes())).await;
            let answer = wire.answer().await.expect("an answer");
            assert_eq!(answer.status, 200, "{answer:?}");
            // The connection stays open while the others ask.
            wire
        })
    });
    let asked: Vec<_> = asked.collect();
    let mut n_served = 0;
    let mut open = Vec::new();
    for task in asked {
        open.push(task.await.unwrap());
        n_served += 1;
    }
    println!(
        "limits: {n_served} connections at once, served in {:?}",
        began.elapsed()
    );
    assert_eq!(place.get("/healthz", "").await.status, 200);
}

#[tokio::test]
async fn the_rate_limit_binds_others_but_not_this_machine() {
    let setup = Setup {
        calls_per_minute: Some(5),
        ..Setup::default()
    };
    let place = Place::with(setup).await;
    let token = place.token(&[Scope::Read], "default", None);
    let token = format!("Authorization: Bearer {token}\r\n");
    let proxied = format!("X-Forwarded-For: 203.0.113.9\r\n{token}");
    for _ in 0..5 {
        assert_eq!(place.post(READ, &proxied, GOOD).await.status, 200);
    }
    for path in ["/healthz", "/events", "/nowhere"] {
        let answer = place.get(path, &proxied).await;
        assert_eq!(answer.code(), "limited", "{path}");
        let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=12).contains(&seconds), "{answer:?}");
        assert!(answer.message().contains("5 calls a minute"), "{answer:?}");
    }
    let answer = place.post("/mcp", &proxied, "{}").await;
    assert_eq!(answer.status, 429);
    for _ in 0..20 {
        assert_eq!(place.post(READ, "", GOOD).await.status, 200);
        assert_eq!(place.post(READ, &token, GOOD).await.status, 200);
    }
}

/// Says when it is dropped.
struct Told(mpsc::UnboundedSender<&'static str>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

/// A route that says that it was asked and then never answers.
pub(crate) fn waiting() -> (Router, mpsc::UnboundedReceiver<&'static str>) {
    let (tell, told) = mpsc::unbounded_channel();
    let handler = move || {
        let told = Told(tell.clone());
        async move {
            let _ = told.0.send("asked");
            std::future::pending::<()>().await;
            drop(told);
        }
    };
    (
        Router::new().route("/wait", axum::routing::any(handler)),
        told,
    )
}

#[tokio::test]
async fn a_client_that_closes_its_connection_ends_its_call() {
    let (extra, mut told) = waiting();
    let setup = Setup {
        extra,
        ..Setup::default()
    };
    let place = Place::with(setup).await;
    for request in [get("/wait", "").into_bytes(), post("/wait", "", b"{}")] {
        let mut wire = place.connect().await;
        wire.send(request).await;
        assert_eq!(told.recv().await, Some("asked"));
        drop(wire);
        let dropped = tokio::time::timeout(Duration::from_secs(5), told.recv()).await;
        assert_eq!(dropped, Ok(Some("dropped")));
    }
}

#[tokio::test]
async fn an_order_to_stop_lets_an_open_call_finish() {
    let mut place = Place::new().await;
    let request = post(READ, "", GOOD.as_bytes());
    let mut open = place.connect().await;
    open.send(&request[..request.len() - 5]).await;
    let mut idle = place.connect().await;
    idle.send(get("/healthz", "")).await;
    assert_eq!(idle.answer().await.unwrap().status, 200);
    let mut follower = place.connect().await;
    follower.send(get("/events", "")).await;
    assert_eq!(follower.head().await.unwrap().status, 200);
    assert!(follower.chunk().await.is_some());
    let began = Instant::now();
    drop(place.stop.take());
    assert!(idle.closes().await);
    assert!(follower.chunk().await.is_none(), "the stream ends in order");
    open.send(&request[request.len() - 5..]).await;
    let answer = open.answer().await.expect("an answer");
    assert!(answer.body.contains("# Bill Baue"), "{answer:?}");
    place.task.await.unwrap();
    println!("limits: stopped in {:?} with an open call", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(
        TcpStream::connect(place.address).await.is_err(),
        "nobody listens"
    );
}

#[tokio::test]
async fn an_order_to_stop_does_not_wait_for_ever() {
    let (extra, mut told) = waiting();
    let setup = Setup {
        extra,
        ..Setup::default()
    };
    let mut place = Place::with(setup).await;
    let mut stuck = place.connect().await;
    stuck.send(get("/wait", "")).await;
    assert_eq!(told.recv().await, Some("asked"));
    let mut half = place.connect().await;
    half.send("GET / HT").await;
    let began = Instant::now();
    drop(place.stop.take());
    place.task.await.unwrap();
    println!("limits: stopped in {:?} with a stuck call", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(
        stuck.closes().await && half.closes().await,
        "nothing stays open"
    );
    assert_eq!(told.recv().await, Some("dropped"));
}
