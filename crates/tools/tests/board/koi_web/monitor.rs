//! Monitoring: the recorded answers, the clock, leases, conditional requests, changes and failures.

use super::server::{Answer, Site};
use super::*;
use kenning_core::Space;
use kenning_engine::koi::{PageWatch, WatchPace};
use std::time::{Duration, Instant};

const DAY_MS: u64 = 86_400_000;

/// Looks at what is due, as the thread of a server does.
fn check(fixture: &Fixture) -> kenning_engine::koi::ScannedPages {
    let engine = fixture.board.engine();
    engine
        .koi()
        .check_due_pages(&Space::default(), || true)
        .unwrap()
}

#[test]
fn web_monitor_answers_are_the_recorded_ones() {
    let site = Site::of(herring());
    let fixture = fixture(&site);
    let mut status = recorded("mon status")["response"].clone();
    let found = done(&fixture, "monitor_url", json!({}));
    // Nobody serves here.
    status["running"] = false.into();
    assert_eq!(found, status);
    let url = site.url("/");
    for (body, expected) in [
        (
            json!({ "action": "remove", "url": url }),
            json!({ "status": "not_found" }),
        ),
        (
            json!({ "action": "add", "url": url }),
            json!({ "status": "added", "id": 1, "words": 39 }),
        ),
        (
            json!({ "action": "add", "url": url }),
            json!({ "status": "already_monitoring", "id": 1 }),
        ),
        (
            json!({ "action": "remove", "url": url }),
            json!({ "status": "removed" }),
        ),
        (
            json!({ "action": "remove", "url": url }),
            json!({ "status": "not_found" }),
        ),
        (
            json!({ "action": "add", "url": url, "title": "Mine" }),
            json!({ "status": "upgraded_to_monitoring", "id": 1 }),
        ),
    ] {
        assert_eq!(
            done(&fixture, "monitor_url", body.clone()),
            expected,
            "{body}"
        );
    }
    let found = done(&fixture, "monitor_url", json!({ "action": "status" }));
    assert_eq!(found["monitored_urls"], 1);
    let source = &found["sources"][0];
    assert_eq!(
        (&source["url"], &source["title"]),
        (&json!(url), &json!("Mine"))
    );
    let hash = &recorded("preview")["response"]["content_hash"];
    assert_eq!(&source["content_hash"], hash);
    for body in [
        json!({ "action": "add", "title": "x" }),
        json!({ "action": "remove", "url": " " }),
    ] {
        let (status, found) = asked(&fixture, "monitor", body);
        assert_eq!(status, 422);
        assert!(found["detail"].as_str().unwrap().contains("`url`"));
    }
    let reply = fixture.call("monitor_url", json!({ "action": "pause" }));
    assert!(
        reply.is_error() && reply.text.contains("`action`"),
        "{}",
        reply.text
    );
    // What is only monitored is no part of the graph, and can become one.
    let found = done(&fixture, "ingest_url", json!({ "url": url }));
    assert_eq!(found["success"], true);
    assert_eq!(site.n_seen(), 1);
}

#[test]
fn web_monitor_that_is_switched_off_says_so() {
    let site = Site::of(herring());
    let fixture = house_with(&site, &[("WEB_SENSOR_ENABLED", "false")]);
    let off = "Web sensor not enabled";
    let found = done(&fixture, "monitor_url", json!({}));
    assert_eq!(found, json!({ "enabled": false, "message": off }));
    for (tool, body) in [
        ("monitor", json!({ "action": "add", "url": site.url("/") })),
        (
            "monitor",
            json!({ "action": "remove", "url": site.url("/") }),
        ),
        ("scan", json!({})),
    ] {
        assert_eq!(asked(&fixture, tool, body), (503, json!({ "detail": off })));
    }
    assert_eq!(site.n_seen(), 0);
}

#[test]
fn web_a_page_is_asked_once_an_interval_whoever_is_there() {
    let site = Site::of(herring());
    let fixture = fixture(&site);
    done(
        &fixture,
        "monitor_url",
        json!({ "action": "add", "url": site.url("/") }),
    );
    assert_eq!(site.n_seen(), 1);
    let others: Vec<Fixture> = (0..3)
        .map(|_| fixture.again(Selection::default()))
        .collect();
    assert_eq!(check(&others[0]).checked, 0, "it is not due");
    for n in 1..=3 {
        fixture.clock.advance(DAY_MS);
        let n_checked: usize = std::thread::scope(|scope| {
            let checking: Vec<_> = others
                .iter()
                .map(|it| scope.spawn(move || check(it).checked))
                .collect();
            checking.into_iter().map(|it| it.join().unwrap()).sum()
        });
        assert_eq!((n_checked, site.n_seen()), (1, 1 + n));
    }
    // What is due is in the store: who comes later finds it.
    drop((fixture, others));
    assert_eq!(site.n_seen(), 4);
}

#[test]
fn web_a_process_that_died_with_a_lease_holds_nobody_up_for_long() {
    let site = Site::of(herring());
    let fixture = fixture(&site);
    done(
        &fixture,
        "monitor_url",
        json!({ "action": "add", "url": site.url("/") }),
    );
    fixture.clock.advance(DAY_MS);
    // A process that takes the lease, and is gone before it has asked.
    let log = fixture.log();
    let now_ms = kenning_core::Clock::now_ms(&*fixture.clock);
    log.write(&Space::default(), move |tx| {
        let (key, bytes) = tx.list("web/monitored")?.pop().unwrap();
        let mut row: Value = serde_json::from_slice(&bytes).unwrap();
        row["lease"] = json!({ "holder": "gone", "until_ms": now_ms + 90_000 });
        tx.set("web/monitored", &key, row.to_string().as_bytes())
    })
    .unwrap();
    assert_eq!(check(&fixture).checked, 0);
    fixture.clock.advance(90_001);
    assert_eq!(check(&fixture).checked, 1);
}

#[test]
fn web_a_server_is_asked_only_whether_a_page_has_changed() {
    for (header, asked_by, value) in [
        ("ETag", "if-none-match", "\"v1\""),
        (
            "Last-Modified",
            "if-modified-since",
            "Sat, 14 Nov 2026 10:00:00 GMT",
        ),
    ] {
        let site = Site::start();
        site.put("/", Answer::html(herring()).with(header, value));
        let fixture = fixture(&site);
        done(
            &fixture,
            "monitor_url",
            json!({ "action": "add", "url": site.url("/") }),
        );
        for _ in 0..3 {
            fixture.clock.advance(DAY_MS);
            let found = check(&fixture);
            assert_eq!((found.checked, found.changed.len()), (1, 0));
        }
        let seen = site.seen();
        assert_eq!(seen.len(), 4);
        assert!(!seen[0].headers.contains_key(asked_by));
        for it in &seen[1..] {
            assert_eq!(it.headers[asked_by], value);
        }
        assert!(!fixture.event_kinds().contains(&"WebPageChanged".to_owned()));
    }
}

#[test]
fn web_a_changed_page_says_what_it_says_now() {
    let site = Site::start();
    site.put(
        "/",
        Answer::html(page("Kelp", "Old words about wolf eels in the bay.")).with("ETag", "\"1\""),
    );
    let fixture = fixture(&site);
    let url = site.url("/");
    previewed(&fixture, &url);
    done(&fixture, "ingest_url", json!({ "url": url }));
    done(
        &fixture,
        "monitor_url",
        json!({ "action": "add", "url": url }),
    );
    let hash = |fixture: &Fixture| {
        done(fixture, "monitor_url", json!({}))["sources"][0]["content_hash"].clone()
    };
    let before = hash(&fixture);
    site.put(
        "/",
        Answer::html(page("Kelp", "New words about sea otters in the bay.")).with("ETag", "\"2\""),
    );
    fixture.clock.advance(DAY_MS);
    assert_eq!(check(&fixture).changed, [url]);
    let after = hash(&fixture);
    assert_ne!(before, after);
    let events = fixture
        .board
        .engine()
        .events_after(&fixture.owner(), 0, 1_000)
        .unwrap();
    let changed: Vec<_> = events
        .iter()
        .filter(|it| it.json["kind"] == "WebPageChanged")
        .collect();
    assert_eq!(changed.len(), 1);
    let text = changed[0].json.to_string();
    for hash in [&before, &after] {
        assert!(text.contains(hash.as_str().unwrap()), "{text}");
    }
    let found = done(
        &fixture,
        "knowledge_search",
        json!({ "query": "words about the bay", "source": "web" }),
    );
    let said = found["chunk_results"].to_string();
    assert!(
        said.contains("sea otters") && !said.contains("wolf eels"),
        "{said}"
    );
    fixture.clock.advance(DAY_MS);
    assert_eq!(check(&fixture).changed.len(), 0);
    let report = fixture
        .board
        .engine()
        .verify(&Space::default(), &|_| {})
        .unwrap();
    assert!(report.faults.is_empty(), "{report:?}");
}

#[test]
fn web_a_page_that_does_not_answer_is_left_alone_for_longer() {
    let site = Site::of(herring());
    let fixture = fixture(&site);
    let url = site.url("/");
    done(
        &fixture,
        "monitor_url",
        json!({ "action": "add", "url": url }),
    );
    site.put("/", Answer::of(500, "text/html", Vec::new()));
    fixture.clock.advance(DAY_MS);
    let found = check(&fixture);
    assert_eq!(found.failed.len(), 1);
    assert!(found.failed[0].1.contains("500"), "{found:?}");
    assert_eq!(check(&fixture).checked, 0, "not at once");
    // At most a minute after the first failure, two after the second, and so on.
    for n in 0..4u32 {
        fixture.clock.advance(60_000 << n);
        assert_eq!(check(&fixture).failed.len(), 1, "{n}");
    }
    let status = done(&fixture, "monitor_url", json!({}));
    assert!(
        status["sources"][0]["error"]
            .as_str()
            .unwrap()
            .contains("500"),
        "{status}"
    );
    site.put("/", Answer::html(herring()));
    fixture.clock.advance(DAY_MS);
    assert_eq!(check(&fixture).checked, 1);
    let status = done(&fixture, "monitor_url", json!({}));
    assert_eq!(status["sources"][0].get("error"), None, "{status}");
}

#[test]
fn web_a_scan_looks_at_every_page_now() {
    let site = Site::start();
    let fixture = fixture(&site);
    for path in ["/a", "/b"] {
        site.put(
            path,
            Answer::html(page(path, "Some text of this page, long enough")),
        );
        done(
            &fixture,
            "monitor_url",
            json!({ "action": "add", "url": site.url(path) }),
        );
    }
    site.put(
        "/a",
        Answer::html(page("/a", "Another text of this page, long enough")),
    );
    site.put("/b", Answer::of(410, "text/html", Vec::new()));
    let (status, found) = asked(&fixture, "scan", json!({}));
    assert_eq!((status, &found["checked"]), (200, &json!(2)), "{found}");
    assert_eq!(found["changed"], json!([site.url("/a")]));
    assert_eq!(found["failed"][0]["url"], site.url("/b"));
    let status = done(&fixture, "monitor_url", json!({}));
    assert_eq!(status["scan_count"], 1);
    assert!(status["last_scan"].is_string(), "{status}");
}

#[test]
fn web_a_serving_process_looks_by_itself_and_stops() {
    let site = Site::of(herring());
    let fixture = fixture(&site);
    let other = fixture.again(Selection::default());
    done(
        &fixture,
        "monitor_url",
        json!({ "action": "add", "url": site.url("/") }),
    );
    let pace = WatchPace {
        look: Duration::from_millis(10),
        between: Duration::ZERO,
    };
    let watches = [
        PageWatch::start(fixture.board.engine().koi(), pace),
        PageWatch::start(other.board.engine().koi(), pace),
    ];
    assert_eq!(done(&fixture, "monitor_url", json!({}))["running"], true);
    for n in 2..5 {
        fixture.clock.advance(DAY_MS);
        wait_until(|| site.n_seen() >= n);
        wait_until(|| done(&fixture, "monitor_url", json!({}))["scan_count"] == n - 1);
    }
    for watch in watches {
        watch.stop(Duration::from_secs(20));
    }
    wait_until(|| done(&fixture, "monitor_url", json!({}))["running"] == false);
    fixture.clock.advance(DAY_MS);
    assert_eq!(
        site.n_seen(),
        4,
        "each interval once, and none after the end"
    );
}

fn wait_until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "it did not come to pass"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn web_a_known_page_is_asked_as_soon_as_it_is_monitored() {
    let site = Site::of(herring());
    let fixture = fixture(&site);
    let url = site.url("/");
    previewed(&fixture, &url);
    fixture.clock.advance(10 * DAY_MS);
    site.put(
        "/",
        Answer::html(page("New", "Another text than ten days before.")),
    );
    let added = done(
        &fixture,
        "monitor_url",
        json!({ "action": "add", "url": url }),
    );
    assert_eq!(added["status"], "upgraded_to_monitoring");
    assert_eq!(site.n_seen(), 2, "ten days are long");
    let status = done(&fixture, "monitor_url", json!({}));
    let source = &status["sources"][0];
    let old = &recorded("preview")["response"]["content_hash"];
    assert_ne!(&source["content_hash"], old, "{status}");
    assert_eq!(status["scan_count"], 1, "{status}");
    assert!(
        source["last_checked"].is_string() && source["error"].is_null(),
        "{status}"
    );
    assert_eq!(
        check(&fixture).checked,
        0,
        "the next look is an interval later"
    );
    fixture.clock.advance(DAY_MS);
    assert_eq!(check(&fixture).checked, 1);

    // One that does not answer is monitored all the same, and asked again soon.
    site.put(
        "/gone",
        Answer::html(page("Gone", "It is there now, and soon it is not.")),
    );
    previewed(&fixture, &site.url("/gone"));
    fixture.clock.advance(DAY_MS);
    site.put("/gone", Answer::of(410, "text/html", Vec::new()));
    let gone = json!({ "action": "add", "url": site.url("/gone") });
    assert_eq!(
        done(&fixture, "monitor_url", gone)["status"],
        "upgraded_to_monitoring"
    );
    let status = done(&fixture, "monitor_url", json!({}));
    let source = &status["sources"][1];
    assert!(
        source["error"].as_str().unwrap().contains("410"),
        "{status}"
    );
}

#[test]
fn web_a_serving_process_looks_at_once_and_not_only_after_a_while() {
    let site = Site::of(herring());
    let fixture = fixture(&site);
    let added = json!({ "action": "add", "url": site.url("/") });
    done(&fixture, "monitor_url", added);
    fixture.clock.advance(DAY_MS);
    let pace = WatchPace {
        look: Duration::from_secs(3_600),
        between: Duration::ZERO,
    };
    let watch = PageWatch::start(fixture.board.engine().koi(), pace);
    wait_until(|| site.n_seen() == 2);
    watch.stop(Duration::from_secs(20));
}

/// A page about two people is ingested and monitored, then changes; what the graph says afterwards.
fn changed_page(variables: &[(&str, &str)]) -> (Fixture, String) {
    let site = Site::start();
    let text = "Bill Baue knows Ann Lee, and Ann Lee knows the bay.";
    site.put("/", Answer::html(page("Who", text)).with("ETag", "\"1\""));
    let fixture = house_with(&site, variables);
    let url = site.url("/");
    previewed(&fixture, &url);
    done(
        &fixture,
        "ingest_url",
        json!({
            "url": url,
            "entities": [
                { "name": "Bill Baue", "type": "Person" }, { "name": "Ann Lee", "type": "Person" },
                { "name": "Old Pier", "type": "Location", "context": "where they met" },
            ],
            "relationships": [{ "subject": "Bill Baue", "predicate": "knows", "object": "Ann Lee" }],
        }),
    );
    done(
        &fixture,
        "monitor_url",
        json!({ "action": "add", "url": url }),
    );
    let text = "Bill Baue founded r3.0 by the Old Pier, says the page today.";
    site.put("/", Answer::html(page("Who", text)).with("ETag", "\"2\""));
    fixture.clock.advance(DAY_MS);
    assert_eq!(check(&fixture).changed, [url]);
    let events = fixture
        .board
        .engine()
        .events_after(&fixture.owner(), 0, 1_000)
        .unwrap();
    let said = events
        .iter()
        .find(|it| it.json["kind"] == "WebPageStatedAgain");
    let said = said.expect("the page was read again").json.to_string();
    (fixture, said)
}

fn relations_of_bill(fixture: &Fixture) -> String {
    done(
        fixture,
        "get_entity_neighborhood",
        json!({ "entity_uri": "Bill Baue" }),
    )
    .to_string()
}

#[test]
fn web_a_changed_page_keeps_what_it_still_names_and_loses_the_rest() {
    let (fixture, event) = changed_page(&[]);
    assert!(event.contains("\"model\":\"none\""), "{event}");
    let found = relations_of_bill(&fixture);
    assert!(
        found.contains("r3.0") && !found.contains("Ann Lee"),
        "{found}"
    );
    let pier = done(&fixture, "koi_search", json!({ "query": "Old Pier" })).to_string();
    assert!(pier.contains("Old Pier"), "{pier}");
    let report = fixture
        .board
        .engine()
        .verify(&Space::default(), &|_| {})
        .unwrap();
    assert!(report.faults.is_empty(), "{report:?}");
}

#[test]
fn web_a_changed_page_states_what_the_model_reads_in_it() {
    use kenning_testing_llm::{Reply, Scripted};
    let said = json!({
        "summary": "s", "topics": [],
        "entities": [
            { "name": "Bill Baue", "type": "Person" }, { "name": "Harbor Watch", "type": "Organization" },
        ],
        "relationships": [
            { "subject": "Bill Baue", "predicate": "affiliated_with", "object": "Harbor Watch" },
        ],
    });
    let model = Scripted::saying(vec![Reply::Says(said.to_string())]);
    let endpoint = model.url("/v1");
    let variables = [
        ("KENNING_MODEL_ENDPOINT", endpoint.as_str()),
        ("KENNING_MODEL_NAME", "tiny"),
    ];
    let (fixture, event) = changed_page(&variables);
    assert!(event.contains("\"model\":\"tiny\""), "{event}");
    let found = relations_of_bill(&fixture);
    assert!(
        found.contains("Harbor Watch") && !found.contains("Ann Lee"),
        "{found}"
    );
}
