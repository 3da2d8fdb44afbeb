//! The log as server-sent events: everything once, in order.

use crate::place::{Place, Wire, get, post};
use kenning_core::Space;
use kenning_engine::{Caller, Principal, Scope};
use kenning_store::{Row, Table};
use kenning_tools::slots::STREAMS_OF_ONE_MAX;
use serde_json::{Value, json};

struct Event {
    /// As it was sent.
    cursor: String,
    id: u64,
    kind: String,
    data: Value,
}

/// Reads events from a stream that was asked for.
struct Follower {
    wire: Wire,
    text: String,
}

impl Follower {
    async fn new(place: &Place, query: &str, headers: &str) -> Self {
        let mut wire = place.connect().await;
        wire.send(get(&format!("/events{query}"), headers)).await;
        let head = wire.head().await.expect("an answer");
        assert_eq!(head.status, 200, "{head:?}");
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        Self {
            wire,
            text: String::new(),
        }
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let frame = frame.to_owned();
                self.text = rest.to_owned();
                let field = |name: &str| frame.lines().find_map(|it| it.strip_prefix(name));
                if let Some(cursor) = field("id: ") {
                    let (id, digits) = cursor.split_once('-').unwrap();
                    let data: Value = serde_json::from_str(field("data: ").unwrap()).unwrap();
                    assert_eq!(data["id"].as_str().unwrap()[..16], *digits);
                    return Some(Event {
                        cursor: cursor.to_owned(),
                        id: id.parse().unwrap(),
                        kind: field("event: ").unwrap().to_owned(),
                        data,
                    });
                }
                continue;
            }
            let chunk = self.wire.chunk().await?;
            self.text += std::str::from_utf8(&chunk).unwrap();
        }
    }

    async fn take(&mut self, n: usize) -> Vec<u64> {
        let mut ids = Vec::new();
        while ids.len() < n {
            let event = self.next().await.expect("another event");
            assert_eq!(event.data["seq"], event.id);
            ids.push(event.id);
        }
        ids
    }
}

#[tokio::test]
async fn what_was_written_before_and_what_comes_after() {
    let place = Place::new().await;
    place.write("a.md");
    let mut all = Follower::new(&place, "?after=0", "").await;
    let mut new = Follower::new(&place, "", "").await;
    let first = all.next().await.unwrap();
    assert_eq!((first.id, first.kind.as_str()), (1, "NoteWritten"));
    assert_eq!(first.data["kind"], "NoteWritten");
    place.write("b.md");
    assert_eq!(all.take(1).await, [2]);
    assert_eq!(
        new.take(1).await,
        [2],
        "without a place it begins with what comes"
    );
}

#[tokio::test]
async fn a_client_that_reconnects_sees_everything_once_and_in_order() {
    let place = Place::new().await;
    let n_writes = 50;
    let mut seen = Vec::new();
    let mut n_connections = 0;
    let write = async {
        for n in 0..n_writes {
            place.write(&format!("{n}.md"));
            tokio::task::yield_now().await;
        }
    };
    let follow = async {
        while seen.len() < n_writes {
            // As a browser does: the address stays as it was, the header says how far it came.
            let header = seen.last().map(|id| format!("Last-Event-ID: {id}\r\n"));
            let header = header.unwrap_or_default();
            let mut follower = Follower::new(&place, "?after=0", &header).await;
            n_connections += 1;
            let n = 7.min(n_writes - seen.len());
            seen.extend(follower.take(n).await);
        }
    };
    tokio::join!(write, follow);
    assert_eq!(seen, (1..=n_writes as u64).collect::<Vec<_>>());
    assert_eq!(n_connections, n_writes.div_ceil(7));
}

#[tokio::test]
async fn more_than_one_batch_comes_without_a_gap() {
    let place = Place::new().await;
    for n in 0..230 {
        place.write(&format!("{}.md", n % 5));
    }
    let mut follower = Follower::new(&place, "?after=3", "").await;
    assert_eq!(follower.take(227).await, (4..=230).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_write_of_another_process_arrives() {
    let place = Place::new().await;
    let mut follower = Follower::new(&place, "", "").await;
    let (root, vault) = (place.fixture.root.path(), place.fixture.vault());
    let other = kenning_testing::open(root, Some(vault), kenning_tools::Selection::default());
    let owner = Caller::new(Principal::owner(Space::default()));
    let arguments = serde_json::json!({ "path": "Other.md", "content": "x" });
    let reply = other
        .board
        .call("vault_write_note", arguments, &owner)
        .unwrap();
    assert!(!reply.is_error(), "{}", reply.text);
    let event = follower.next().await.unwrap();
    assert_eq!((event.id, event.kind.as_str()), (1, "NoteWritten"));
}

#[tokio::test]
async fn a_place_that_is_none_is_refused() {
    let place = Place::new().await;
    place.write("a.md");
    for after in [
        "x",
        "",
        "-1",
        "1.5",
        "1e0",
        "0x1",
        "%00",
        "18446744073709551616",
        "2",
        "9223372036854775808",
        "18446744073709551615",
        "1%201",
    ] {
        let answer = place.get(&format!("/events?after={after}"), "").await;
        assert_eq!(answer.code(), "invalid_input", "{after}");
        assert!(answer.message().contains("`after`"), "{answer:?}");
    }
    for header in ["x", "-1", "2", "\u{e9}"] {
        let answer = place
            .get("/events", &format!("Last-Event-ID: {header}\r\n"))
            .await;
        assert_eq!(answer.code(), "invalid_input", "{header}");
    }
    // Whoever sends no message of a peer there is given a challenge, and nothing else.
    let greeting = place.post("/events", "", "{}").await.json();
    let fields: Vec<&String> = greeting.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["provider", "challenge"]);
}

/// The store as it was, whatever was written since.
#[expect(
    clippy::disallowed_methods,
    reason = "a restore under a running server"
)]
fn take_back(place: &Place, rows: Vec<Row>) {
    let store = place.fixture.log().store();
    let taken_back = store.write_long(&Space::default(), move |tx| {
        tx.clear()?;
        rows.iter().try_for_each(|row| tx.load(row))
    });
    taken_back.unwrap();
}

#[tokio::test]
async fn a_client_whose_events_were_lost_is_told_so_and_does_not_go_on_in_their_places() {
    let place = Place::new().await;
    place.write("a.md");
    let mut earlier = Vec::new();
    let read = place.fixture.log().read(&Space::default(), |tx| {
        let mut keep = |row| {
            earlier.push(row);
            Ok(())
        };
        let mut tables = Table::ALL.into_iter();
        tables.try_for_each(|table| tx.scan(table, &mut keep))
    });
    read.unwrap();
    place.write("lost.md");
    let mut follower = Follower::new(&place, "?after=0", "").await;
    let kept = follower.next().await.unwrap();
    let lost = follower.next().await.unwrap();
    assert_eq!((kept.id, lost.id), (1, 2));
    // What both have is where a client goes on, with a number as well as with an id.
    for last in [kept.cursor.as_str(), "1"] {
        let header = format!("Last-Event-ID: {last}\r\n");
        let mut again = Follower::new(&place, "", &header).await;
        assert_eq!(again.take(1).await, [2], "{last}");
    }
    take_back(&place, earlier);
    // Others get the places of the lost ones.
    place.write("b.md");
    place.write("c.md");
    let lost_header = format!("Last-Event-ID: {}\r\n", lost.cursor);
    for (path, headers) in [
        ("/events".to_owned(), lost_header.as_str()),
        (format!("/events?after={}", lost.cursor), ""),
        (format!("/api/v1/events?after={}", lost.cursor), ""),
        ("/events?after=0-0000000000000000".to_owned(), ""),
    ] {
        let answer = place.get(&path, headers).await;
        assert!([400, 422].contains(&answer.status), "{path}: {answer:?}");
        assert!(
            answer.body.contains("is not an event of this log"),
            "{answer:?}"
        );
        if path.starts_with("/events") {
            assert!(answer.body.contains("begin again with 0"), "{answer:?}");
        }
    }
    let header = format!("Last-Event-ID: {}\r\n", kept.cursor);
    let mut again = Follower::new(&place, "", &header).await;
    assert_eq!(again.take(2).await, [2, 3]);
}

#[tokio::test]
async fn a_revoked_token_hears_no_more() {
    let place = Place::new().await;
    let token = place.token(&[Scope::Read], "default", None);
    let mut follower =
        Follower::new(&place, "", &format!("Authorization: Bearer {token}\r\n")).await;
    place.write("a.md");
    assert_eq!(follower.take(1).await, [1]);
    let owner = Caller::new(Principal::owner(Space::default()));
    let id = token.split('_').nth(1).unwrap();
    place
        .fixture
        .board
        .engine()
        .revoke_token(&owner, id)
        .unwrap();
    place.write("b.md");
    assert!(follower.next().await.is_none(), "the stream ends");
}

#[tokio::test]
async fn too_many_followers_are_told_so_and_a_place_is_free_again() {
    let place = Place::new().await;
    let mut followers = Vec::new();
    for _ in 0..STREAMS_OF_ONE_MAX {
        followers.push(Follower::new(&place, "", "").await);
    }
    let answer = place.get("/events", "").await;
    assert_eq!(answer.code(), "limited");
    assert_eq!(answer.header("retry-after"), Some("1"));
    // Whoever listens over MCP holds a connection as well.
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {} });
    let listen = json!({ "jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen",
        "params": { "_meta": meta, "notifications": { "toolsListChanged": true } } });
    let modern = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n";
    let answer = place.post("/mcp", modern, &listen.to_string()).await;
    assert_eq!((answer.status, &answer.json()["id"]), (429, &json!(7)));
    let token = place.token(&[Scope::Read], "default", None);
    let token = format!("Authorization: Bearer {token}\r\n");
    let _neighbor = Follower::new(&place, "", &token).await;
    let mut wire = place.connect().await;
    let headers = format!("{modern}{token}");
    let request = post("/mcp", &headers, listen.to_string().as_bytes());
    wire.send(request).await;
    let answer = wire.head().await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(place.get("/healthz", "").await.status, 200);
    followers.truncate(10);
    loop {
        // The server hears of a closed connection when the kernel tells it.
        let mut wire = place.connect().await;
        wire.send(get("/events", "")).await;
        if wire.head().await.unwrap().status == 200 {
            break;
        }
        tokio::task::yield_now().await;
    }
}
