//! Hooks against a real receiver on loopback.

use crate::server::Server;
use crate::{Place, Start, owner, wait_until};
use kenning_engine::BackupKind;
use kenning_engine::omi::{Pace, Recall, Webhooks};
use std::sync::atomic::Ordering;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// Retries without the pauses; everything else as it is.
const QUICK: Pace = Pace {
    timeout: Duration::from_secs(10),
    first_pause: Duration::from_millis(1),
};

/// Alike memories are linked by and by, which is an event too and comes when it comes.
const STORED: &str = "      events: [memory.stored]\n";

/// A fixture with one hook, which has its cursor: what happens from now on is delivered.
fn hooked(server: &Server, more: &str) -> Place {
    let place = Place::new();
    let url = server.url("/hook");
    place.put(
        "config.yaml",
        &format!("events:\n  webhooks:\n    - url: {url}\n{more}"),
    );
    let hooks = Webhooks::start(place.engine.omi(), QUICK);
    wait_for_cursors(&place, 1);
    hooks.stop(PATIENCE);
    place
}

/// Waits until every hook knows where it begins.
fn wait_for_cursors(place: &Place, n: usize) {
    let space = kenning_core::Space::default();
    let count = || {
        let read = place
            .kernel
            .log()
            .read(&space, |tx| tx.list("webhook.cursor"));
        read.unwrap().len()
    };
    wait_until("a hook has no cursor", || count() >= n);
}

#[test]
fn an_event_is_posted_as_the_contract_says_with_the_headers_of_the_file() {
    let server = Server::start();
    let place = hooked(
        &server,
        "      headers:\n        Authorization: Bearer ${HOOK_TOKEN}\n",
    );
    let hooks = Webhooks::start(place.engine.omi(), QUICK);
    let id = place.remember("the cache is warm after ten minutes");
    let seen = server.next();
    hooks.stop(PATIENCE);
    assert_eq!(seen.line, "POST /hook HTTP/1.1");
    assert_eq!(seen.headers["authorization"], "Bearer s3cret");
    assert_eq!(seen.headers["content-type"], "application/json");
    let event = seen.json();
    assert_eq!(event["event_type"], "memory.stored");
    assert_eq!(event["memory_id"], id.as_str());
    assert_eq!(event["memory_type"], "fact");
    assert_eq!(event["metadata"], serde_json::json!({}));
    assert!(
        event["timestamp"]
            .as_str()
            .unwrap()
            .starts_with("2027-01-15T08:00:00")
    );
    let log = place.engine.events_after(&owner(), 0, 10).unwrap();
    assert_eq!(event["event_id"], log[0].json["id"]);
}

#[test]
fn a_recall_is_sent_with_a_hash_of_its_query_and_never_with_its_text() {
    let server = Server::start();
    let place = hooked(&server, "      events: [memory.recalled]\n");
    let id = place.remember("the cache is warm after ten minutes");
    let hooks = Webhooks::start(place.engine.omi(), QUICK);
    let recall = Recall {
        query: "when is the cache warm, hunter2?".to_owned(),
        min_relevance: 0.0,
        ..Recall::default()
    };
    place.engine.omi().recall(&owner(), &recall).unwrap();
    place.engine.omi().settle();
    let seen = server.next();
    hooks.stop(PATIENCE);
    let event = seen.json();
    assert!(!event.to_string().contains("hunter2"), "{event}");
    assert!(
        event["query"].as_str().unwrap().starts_with("hash:"),
        "{event}"
    );
    assert_eq!(event["top_results"][0]["memory_id"], id.as_str());
}

#[test]
fn a_receiver_that_fails_is_asked_again_and_the_order_is_kept() {
    let server = Server::start();
    let place = hooked(&server, STORED);
    server.answer(&[500, 503]);
    let hooks = Webhooks::start(place.engine.omi(), QUICK);
    let (one, two) = (place.remember("one thing"), place.remember("another thing"));
    let ids: Vec<String> = (0..4)
        .map(|_| {
            server.next().json()["memory_id"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    hooks.stop(PATIENCE);
    assert_eq!(ids, [one.clone(), one.clone(), one, two]);
    assert!(server.rest().is_empty());
}

#[test]
fn after_three_retries_an_event_is_given_up_and_the_next_one_sent() {
    let server = Server::start();
    let place = hooked(&server, STORED);
    server.answer(&[500, 404, 302, 500]);
    let hooks = Webhooks::start(place.engine.omi(), QUICK);
    let (one, two) = (place.remember("one thing"), place.remember("another thing"));
    for expected in [&one, &one, &one, &one, &two] {
        assert_eq!(server.next().json()["memory_id"], expected.as_str());
    }
    hooks.stop(PATIENCE);
    assert!(server.rest().is_empty());
}

#[test]
fn only_the_kinds_that_the_filter_names_are_sent() {
    for name in ["memory.stored", "MemoryStored", "MemoryStoredEvent"] {
        let server = Server::start();
        let place = hooked(&server, &format!("      events: [{name}]\n"));
        let hooks = Webhooks::start(place.engine.omi(), QUICK);
        place.task("nobody asked for this");
        place
            .engine
            .vault_backup(&owner(), BackupKind::Full)
            .unwrap();
        let id = place.remember("but for this");
        assert_eq!(server.next().json()["memory_id"], id.as_str(), "{name}");
        hooks.stop(PATIENCE);
        assert!(server.rest().is_empty(), "{name}");
    }
}

#[test]
fn what_happens_while_nobody_serves_is_sent_by_the_next_process_once() {
    let server = Server::start();
    let place = hooked(&server, STORED);
    let hooks = Webhooks::start(place.engine.omi(), QUICK);
    let before = place.remember("before the end");
    assert_eq!(server.next().json()["memory_id"], before.as_str());
    hooks.stop(PATIENCE);
    let between = place.remember("between two processes");
    assert!(server.rest().is_empty());

    let next = place.again(Start::default());
    let hooks = Webhooks::start(next.engine.omi(), QUICK);
    let after = next.remember("after the start");
    for expected in [between, after] {
        assert_eq!(server.next().json()["memory_id"], expected.as_str());
    }
    hooks.stop(PATIENCE);
    assert!(server.rest().is_empty());
}

#[test]
fn two_processes_send_each_event_once() {
    let server = Server::start();
    let place = hooked(&server, STORED);
    let other = place.again(Start::default());
    let both = [
        Webhooks::start(place.engine.omi(), QUICK),
        Webhooks::start(other.engine.omi(), QUICK),
    ];
    let mut expected = Vec::new();
    for n in 0..20 {
        let fixture = if n % 2 == 0 { &place } else { &other };
        expected.push(fixture.remember(&format!("thing number {n} of twenty")));
    }
    let sent: Vec<String> = expected
        .iter()
        .map(|_| {
            server.next().json()["memory_id"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    for hooks in both {
        hooks.stop(PATIENCE);
    }
    assert_eq!(sent, expected);
    assert!(server.rest().is_empty());
}

#[test]
fn a_lease_of_a_process_that_was_killed_is_waited_for_and_then_taken() {
    let server = Server::start();
    let token = "      headers:\n        Authorization: Bearer ${HOOK_TOKEN}\n";
    let place = hooked(&server, &format!("{STORED}{token}"));
    let space = kenning_core::Space::default();
    let cursors = place
        .kernel
        .log()
        .read(&space, |tx| tx.list("webhook.cursor"));
    let name = cursors.unwrap()[0].0.clone();
    let until_ms = crate::NOW_MS + 1_000;
    let lease = serde_json::json!({ "holder": "somebody", "until_ms": until_ms }).to_string();
    let set = place.kernel.log().write(&space, move |tx| {
        tx.set("webhook.lease", &name, lease.as_bytes())
    });
    set.unwrap();
    let id = place.remember("left behind");
    let n_before = place.n_token_reads.load(Ordering::SeqCst);
    let n_tries = || place.n_token_reads.load(Ordering::SeqCst) - n_before;
    let hooks = Webhooks::start(place.engine.omi(), QUICK);
    // Every attempt begins with the headers. The next event wakes the hook, so when a second attempt
    // begins, the first one is over.
    wait_until("the hook is never tried", || n_tries() >= 1);
    let next = place.remember("this one too");
    wait_until("the hook is not tried again", || n_tries() >= 2);
    assert!(
        server.rest().is_empty(),
        "nothing is sent while the other process may live"
    );
    place.clock.advance(2_000);
    assert_eq!(server.next().json()["memory_id"], id.as_str());
    assert_eq!(server.next().json()["memory_id"], next.as_str());
    hooks.stop(PATIENCE);
}

#[test]
fn an_event_waits_while_the_configuration_is_wrong() {
    let server = Server::start();
    let place = hooked(&server, STORED);
    let good = std::fs::read_to_string(place.omi().join("config.yaml")).unwrap();
    let wrong = format!("{good}      headers:\n        X-Key: ${{NOT_SET}}\n");
    place.put("config.yaml", &wrong);
    let hooks = Webhooks::start(place.engine.omi(), QUICK);
    let id = place.remember("worth waiting for");
    place.put("config.yaml", &good);
    assert_eq!(server.next().json()["memory_id"], id.as_str());
    hooks.stop(PATIENCE);
}

#[test]
fn a_process_that_only_reads_sends_nothing() {
    let server = Server::start();
    let place = hooked(&server, STORED);
    place.remember("for others to send");
    let reader = place.again(Start {
        read_only: true,
        ..Start::default()
    });
    Webhooks::start(reader.engine.omi(), QUICK).stop(PATIENCE);
    assert!(server.rest().is_empty());
}
