//! The running program among nodes of KOI-net, over sockets: messages that the reference implementation and Octo
//! nodes signed, an Octo node, and liars.

use crate::{Place, Server};
use kenning_federation::envelope::seal;
use kenning_federation::{
    Bundle, Envelope, Event, EventType, Json, Limits, NodeProfile, NodeRid, NodeType, Payload,
    PublicKey, Query, Rid, SecretKey,
};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const GENERATIONS: &str = include_str!("../../../../testing/vectors/koi-net-generations.json");

/// Both stores.
fn places() -> Vec<Place> {
    let url = kenning_testing_postgres::shared().database();
    vec![Place::new(), Place::on_database(&url, "default")]
}

fn serve(place: &Place) -> Server {
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0", "--no-token"]);
    command.env("KENNING_FEDERATION_POLL_MS", "200");
    Server::of(command)
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn json_of((status, body): (u16, String)) -> (u16, Value) {
    let value = serde_json::from_str(&body);
    (status, value.unwrap_or_else(|_| panic!("not JSON: {body}")))
}

impl Server {
    fn node(&self, path: &str, body: &str) -> (u16, Value) {
        json_of(self.post(&format!("/koi-net{path}"), "", body))
    }

    fn status(&self) -> Value {
        json_of(self.get("/koi-net/health", "")).1
    }

    /// What the status says of a node.
    fn peer(&self, rid: &str) -> Value {
        let status = self.status();
        let peers = status["peers"].as_array().unwrap();
        let found = peers.iter().find(|it| it["node_rid"] == rid);
        found.cloned().unwrap_or_default()
    }

    fn practices(&self) -> Vec<String> {
        let (_, found) = json_of(self.get("/entities?type_filter=Practice&limit=1000", ""));
        let rows = found.get("entities").unwrap_or(&found).as_array().cloned();
        let name = |it: Value| {
            let name = it.get("name").or(it.get("entity_text")).unwrap();
            name.as_str().unwrap().to_owned()
        };
        let mut names: Vec<String> = rows.unwrap().into_iter().map(name).collect();
        names.sort();
        names
    }
}

/// The address of whoever signed an answer, and what it carries.
fn checked(answer: &Value, of: &str, key: &str, target: &str) -> Value {
    let envelope = Envelope::read(answer.to_string().as_bytes(), Limits::default()).unwrap();
    assert_eq!(envelope.source.as_str(), of);
    let (key, target) = (
        PublicKey::parse(key).unwrap(),
        NodeRid::parse(target).unwrap(),
    );
    assert_eq!(envelope.check(&key, &target), Ok(()), "{answer}");
    answer["payload"].clone()
}

/// Everything that each generation of the reference, and each way of Octo's to name a node, had recorded.
fn takes_recorded_envelopes(place: &Place) {
    let recorded: Value = serde_json::from_str(GENERATIONS).unwrap();
    let me = recorded["target_rid"].as_str().unwrap();
    let key = place.0.path().join("gamma.pem");
    std::fs::write(&key, recorded["target_pkcs8_pem"].as_str().unwrap()).unwrap();
    let init = "federation init --name gamma --provides Practice --key gamma.pem";
    let printed = place.good(&init.split(' ').collect::<Vec<_>>());
    assert_eq!(printed.lines().next().unwrap(), me);
    std::fs::create_dir(place.vault().join("Practices")).unwrap();
    std::fs::write(
        place.vault().join("Practices/Camas Garden.md"),
        "---\n\"@type\": bkc:Practice\n---\n",
    )
    .unwrap();
    let server = serve(place);
    let own_key = server.status()["node"]["public_key"].clone();
    for sender in recorded["senders"].as_array().unwrap() {
        let (rid, made_by) = (sender["rid"].as_str().unwrap(), &sender["made_by"]);
        let name = rid.rsplit(':').next().unwrap().split('+').next().unwrap();
        let is_octo = name.starts_with("octo");
        for (n, sent) in sender["envelopes"].as_array().unwrap().iter().enumerate() {
            let (path, body) = (
                sent["path"].as_str().unwrap(),
                sent["body"].as_str().unwrap(),
            );
            // One bit of what was signed.
            if let Some(at) = body.find("\"payload\"") {
                let at = body[at..].find("type").unwrap() + at;
                let mut changed = body.to_owned().into_bytes();
                changed[at + 8] ^= 1;
                let changed = String::from_utf8(changed).unwrap();
                let (status, answer) = server.node(path, &changed);
                assert!(
                    (400..=422).contains(&status),
                    "{made_by} {n}: {status} {answer}"
                );
            }
            let (status, answer) = server.node(path, body);
            assert_eq!(status, 200, "{made_by} {n} {path}: {answer}");
            match path {
                "/events/broadcast" if is_octo => assert_eq!(answer["status"], "ok", "{answer}"),
                "/events/broadcast" => assert_eq!(answer, Value::Null),
                "/handshake" => assert_eq!(answer["profile"]["node_rid"], me, "{answer}"),
                _ => {
                    let payload = checked(&answer, me, own_key.as_str().unwrap(), rid);
                    match path {
                        "/rids/fetch" => {
                            let n_rids = payload["rids"].as_array().unwrap().len();
                            assert!(n_rids > 0, "{made_by}: {payload}");
                        }
                        "/bundles/fetch" => {
                            let bundle = &payload["bundles"][0];
                            assert_eq!(bundle["contents"]["public_key"], own_key, "{payload}");
                        }
                        _ => {}
                    }
                    // Whoever overheard it gets no answer.
                    let (status, again) = server.node(path, body);
                    let said = again["error"].as_str();
                    assert_eq!((status, said), (400, Some("invalid_signature")), "{again}");
                }
            }
            if n == 0 {
                let peer = server.peer(rid);
                assert_eq!(peer["state"], "waiting", "{made_by}: {peer}");
                let dialect = if is_octo { "octo" } else { "reference" };
                assert_eq!(peer["dialect"], dialect, "{made_by}: {peer}");
                place.good(&["federation", "approve", name]);
            }
            let gone = is_octo || n != 7;
            if n == 2 && !is_octo {
                wait("it is taken", || {
                    server.practices().contains(&"Camas é".to_owned())
                });
            }
            if !gone {
                wait("it is forgotten", || {
                    !server.practices().contains(&"Camas é".to_owned())
                });
            }
        }
        if is_octo {
            wait("Octo's events are taken", || {
                let names = server.practices();
                ["Herring é Monitoring", "Kelp Watch"]
                    .iter()
                    .all(|it| names.iter().any(|name| name == it))
            });
            place.good(&["federation", "retract", name]);
        }
        let peer = server.peer(rid);
        assert_eq!(
            (&peer["refused"], &peer["cut_off"]),
            (&json!(0), &Value::Null),
            "{made_by}: {peer}"
        );
    }
    drop(server);
    place.good(&["audit", "verify"]);
}

#[test]
fn what_the_reference_and_octo_nodes_signed_is_verified_by_the_running_program() {
    for place in places() {
        takes_recorded_envelopes(&place);
    }
}

/// A node that the test speaks for.
struct Foreign {
    key: SecretKey,
    rid: String,
    port: u16,
    n_sent: AtomicU64,
}

static N_NODES: AtomicU64 = AtomicU64::new(1);

impl Foreign {
    fn new(name: &str, port: u16) -> Self {
        let mut secret = [9; 32];
        let n = N_NODES.fetch_add(1, Ordering::Relaxed);
        secret[24..].copy_from_slice(&n.to_be_bytes());
        let key = SecretKey::from_secret(&secret).unwrap();
        let rid = NodeRid::of(name, &key.public()).unwrap().to_string();
        Self {
            key,
            rid,
            port,
            n_sent: AtomicU64::new(0),
        }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/koi-net", self.port)
    }

    fn seal_json(&self, payload: &Json, target: &str) -> String {
        let mut salt = [0; 32];
        let n = self.n_sent.fetch_add(1, Ordering::Relaxed);
        salt[..8].copy_from_slice(&n.to_be_bytes());
        let me = NodeRid::parse(&self.rid).unwrap();
        seal(payload, &me, target, &self.key, &salt)
    }

    fn profile(&self) -> NodeProfile {
        let types = vec!["orn:bkc.practice".to_owned()];
        NodeProfile {
            base_url: Some(self.url()),
            node_type: NodeType::Full,
            provides_event: types.clone(),
            provides_state: types,
            public_key: self.key.public().as_str().to_owned(),
            kenning_did: None,
            successor_of: None,
        }
    }

    fn bundle(&self) -> Bundle {
        let rid = Rid::parse(&self.rid).unwrap();
        Bundle::of(&rid, self.profile().to_json(), 1_000).unwrap()
    }

    fn tell(&self, server: &Server, me: &str, events: Vec<Event>) -> (u16, Value) {
        let payload = Payload::Events(events).to_json();
        server.node("/events/broadcast", &self.seal_json(&payload, me))
    }
}

fn practice(name: &str, contents: &Value, ms: u64) -> Event {
    let rid = Rid::parse(&format!("orn:bkc.practice:{name}")).unwrap();
    let contents = Json::parse(contents.to_string().as_bytes(), Limits::default()).unwrap();
    Event::of(EventType::New, Bundle::of(&rid, contents, ms).unwrap())
}

/// A server of the test: answers each request with what `answer` writes.
fn listen(answer: impl Fn(&str, &str, &mut TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), answer) = (stream, Arc::clone(&answer)) else {
                return;
            };
            std::thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") {
                    if stream.read_exact(&mut byte).is_err() {
                        return;
                    }
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).to_string();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let lower = head.to_ascii_lowercase();
                let length = lower.split("content-length: ").nth(1);
                let length = length.and_then(|it| it.split('\r').next()?.parse().ok());
                let mut body = vec![0; length.unwrap_or(0)];
                if stream.read_exact(&mut body).is_ok() {
                    answer(&path, &String::from_utf8_lossy(&body), &mut stream);
                }
            });
        }
    });
    port
}

fn reply(stream: &mut TcpStream, status: &str, body: &str) {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    // Whoever asked may have gone.
    drop(stream.write_all(format!("{head}{body}").as_bytes()));
}

fn federate(place: &Place) -> String {
    let init =
        "federation init --name ours --base-url http://127.0.0.1:8/koi-net --provides Practice";
    let printed = place.good(&init.split(' ').collect::<Vec<_>>());
    printed.lines().next().unwrap().to_owned()
}

fn survives_liars(place: &Place) {
    let me = federate(place);
    let server = serve(place);

    // Two contents of one thing for one moment.
    let forger = Foreign::new("forger", 9);
    let hello = |it: &Foreign| vec![Event::of(EventType::New, it.bundle())];
    assert_eq!(forger.tell(&server, &me, hello(&forger)).0, 200);
    place.good(&["federation", "approve", "forger"]);
    forger.tell(
        &server,
        &me,
        vec![practice("camas", &json!({"name": "Camas"}), 2_000)],
    );
    wait("it is taken", || server.practices() == ["Camas"]);
    forger.tell(
        &server,
        &me,
        vec![practice("camas", &json!({"name": "Other"}), 2_000)],
    );
    wait("it is cut off", || {
        server.peer(&forger.rid)["state"] == "cut off"
    });
    let why = server.peer(&forger.rid)["cut_off"].to_string();
    assert!(
        why.contains("two contents of `orn:bkc.practice:camas`"),
        "{why}"
    );
    let (status, answer) = forger.tell(&server, &me, vec![practice("x", &json!({"name": "X"}), 1)]);
    assert_eq!(status, 403, "{answer}");
    let fetch = Payload::Query(Query::FetchRids {
        rid_types: Vec::new(),
    })
    .to_json();
    let (status, answer) = server.node("/rids/fetch", &forger.seal_json(&fetch, &me));
    assert_eq!(status, 403, "{answer}");
    assert_eq!(server.practices(), ["Camas"]);

    // A body that never ends: the connection is answered and closed long before.
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let head = "POST /koi-net/events/broadcast HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = vec![b' '; 1024 * 1024];
    let mut n_sent = 0;
    while n_sent < 64 && stream.write_all(&chunk).is_ok() {
        n_sent += 1;
    }
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    let answer = String::from_utf8_lossy(&answer);
    assert!(n_sent < 64, "64 MiB were read");
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 413"),
        "{answer}"
    );

    // An address in the private network, which its own profile names and nobody granted.
    let visits = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&visits);
    let port = listen(move |_, _, stream| {
        counted.fetch_add(1, Ordering::Relaxed);
        reply(stream, "200 OK", "null");
    });
    let inside = Foreign::new("inside", port);
    inside.tell(&server, &me, hello(&inside));
    place.good(&["federation", "approve", "inside"]);
    wait("it is named", || {
        server.peer(&inside.rid)["state"] == "unreachable"
    });
    let said = server.peer(&inside.rid)["last_error"].to_string();
    assert!(
        said.contains("127.0.0.1") || said.contains("private"),
        "{said}"
    );
    assert_eq!(visits.load(Ordering::Relaxed), 0);

    // Redirects in a circle.
    let visits = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&visits);
    let port = listen(move |_, _, stream| {
        counted.fetch_add(1, Ordering::Relaxed);
        let head = "HTTP/1.1 307 Temporary Redirect\r\nLocation: /koi-net/again\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        drop(stream.write_all(head.as_bytes()));
    });
    let circle = Foreign::new("circle", port);
    place.good(&["federation", "connect", &circle.url(), "--rid", &circle.rid]);
    wait("it is named", || {
        server.peer(&circle.rid)["state"] == "unreachable"
    });
    let (said, n_visits) = (
        server.peer(&circle.rid)["last_error"].to_string(),
        visits.load(Ordering::Relaxed),
    );
    assert!(said.contains("307") || said.contains("redirect"), "{said}");
    assert!(n_visits < 20, "{n_visits}");

    // An answer that never ends.
    let port = listen(move |_, _, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
        if stream.write_all(head.as_bytes()).is_ok() {
            let chunk = vec![b' '; 1024 * 1024];
            while stream.write_all(&chunk).is_ok() {}
        }
    });
    let endless = Foreign::new("endless", port);
    place.good(&[
        "federation",
        "connect",
        &endless.url(),
        "--rid",
        &endless.rid,
    ]);
    wait("it is named", || {
        server.peer(&endless.rid)["state"] == "unreachable"
    });
    let said = server.peer(&endless.rid)["last_error"].to_string();
    assert!(said.contains("large") || said.contains("bytes"), "{said}");

    // The others are served all the while.
    assert_eq!(server.get("/healthz", "").0, 200);
    let (_, metrics) = server.get("/metrics", "");
    assert!(
        metrics.contains("kenning_federation_peers_cut_off 1"),
        "{metrics}"
    );
    drop(server);
    place.good(&["audit", "verify"]);
}

#[test]
fn liars_are_named_bounded_and_cut_off() {
    for place in places() {
        survives_liars(&place);
    }
}

/// A node that does what the code of Octo does: it answers whoever asks, tells who it is in the handshake and in its
/// health only, knows no edges, and hands out two events at a time until they are confirmed.
struct Octo {
    node: Foreign,
    state: Mutex<Vec<(String, Value)>>,
    asked: Mutex<Vec<String>>,
    peer_key: Mutex<String>,
}

impl Octo {
    fn profile(&self) -> Value {
        json!({
            "node_rid": self.node.rid, "node_name": "octo-salish", "node_type": "FULL",
            "base_url": format!("http://127.0.0.1:{}", self.node.port),
            "provides": { "event": ["Practice"], "state": ["Practice", "Bioregion"] },
            "public_key": self.node.key.public().as_str(),
            "ontology_uri": "http://bkc.regen.network/ontology", "ontology_version": "1.0.0",
        })
    }

    fn answer(&self, path: &str, body: &str, stream: &mut TcpStream) {
        self.asked.lock().unwrap().push(path.to_owned());
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        if path == "/koi-net/health" {
            let health = json!({ "status": "healthy", "node": self.profile(), "peers": [] });
            return reply(stream, "200 OK", &health.to_string());
        }
        if path == "/koi-net/handshake" {
            let profile = &body["profile"];
            *self.peer_key.lock().unwrap() = profile["public_key"].as_str().unwrap().to_owned();
            let hello = json!({ "type": "handshake_response", "profile": self.profile(), "accepted": true });
            return reply(stream, "200 OK", &hello.to_string());
        }
        let source = body["source_node"].as_str().unwrap_or_default();
        let key = self.peer_key.lock().unwrap().clone();
        if key.is_empty() {
            let refused = json!({ "error": format!("No public key for {source}"), "error_code": "UNKNOWN_SOURCE_NODE" });
            return reply(stream, "400 Bad Request", &refused.to_string());
        }
        checked(&body, source, &key, &self.node.rid);
        let payload = &body["payload"];
        let state = || self.state.lock().unwrap();
        let rids = payload["rids"].as_array().cloned().unwrap_or_default();
        let answer = match path {
            "/koi-net/events/poll" => {
                let events: Vec<Value> = state().iter().take(2).map(|it| it.1.clone()).collect();
                json!({ "type": "events_payload", "events": events })
            }
            "/koi-net/events/confirm" => {
                let ids = payload["event_ids"].as_array().unwrap();
                let n_before = state().len();
                state().retain(|it| !ids.contains(&json!(it.0)));
                json!({ "type": "confirm_events_response", "confirmed": n_before - state().len() })
            }
            "/koi-net/rids/fetch" => {
                json!({ "type": "rids_payload", "rids": ["orn:koi-net.practice:octo-old"] })
            }
            "/koi-net/manifests/fetch" => json!({ "type": "manifests_payload", "manifests": [] }),
            "/koi-net/bundles/fetch" => {
                let contents = json!({ "@type": "bkc:Practice", "name": "Old Practice" });
                let is_old = |it: &Value| it == "orn:koi-net.practice:octo-old";
                let (found, not_found): (Vec<_>, Vec<_>) = rids.into_iter().partition(is_old);
                let hash = Json::parse(contents.to_string().as_bytes(), Limits::default()).unwrap();
                let hash = kenning_federation::manifest::hash_of(&hash).unwrap();
                let bundle = |rid: &Value| {
                    json!({ "manifest": { "rid": rid, "timestamp": "2026-01-02T03:04:05Z",
                    "sha256_hash": hash }, "contents": contents })
                };
                let bundles: Vec<Value> = found.iter().map(bundle).collect();
                json!({ "type": "bundles_payload", "bundles": bundles, "not_found": not_found, "deferred": [] })
            }
            "/koi-net/events/broadcast" => json!({ "status": "ok", "queued": 0 }),
            _ => return reply(stream, "404 Not Found", "{}"),
        };
        let answer = Json::parse(answer.to_string().as_bytes(), Limits::default()).unwrap();
        reply(stream, "200 OK", &self.node.seal_json(&answer, source));
    }
}

fn speaks_with_octo(place: &Place) {
    let me = federate(place);
    std::fs::create_dir(place.vault().join("Practices")).unwrap();
    std::fs::write(
        place.vault().join("Practices/Camas Garden.md"),
        "---\n\"@type\": bkc:Practice\n---\n",
    )
    .unwrap();
    let octo: Arc<Mutex<Option<Arc<Octo>>>> = Arc::default();
    let shared = Arc::clone(&octo);
    let port = listen(move |path, body, stream| {
        let octo = shared.lock().unwrap().clone();
        octo.unwrap().answer(path, body, stream);
    });
    let mut node = Foreign::new("octo-salish", port);
    // As Octo's first nodes are called: 16 digits.
    node.rid.truncate(node.rid.find('+').unwrap() + 17);
    let event = |n: usize| {
        let contents = json!({ "@type": "bkc:Practice", "name": format!("Practice {n} of Octo") });
        let event = json!({ "rid": format!("orn:koi-net.practice:octo-{n}"), "event_type": "NEW",
            "event_id": format!("id-{n}"), "contents": contents });
        (format!("id-{n}"), event)
    };
    let node = Arc::new(Octo {
        node,
        state: Mutex::new((0..5).map(event).collect()),
        asked: Mutex::default(),
        peer_key: Mutex::default(),
    });
    *octo.lock().unwrap() = Some(Arc::clone(&node));
    let server = serve(place);
    let base = format!("http://127.0.0.1:{port}");
    place.good(&["federation", "connect", &base]);
    wait("everything of Octo is here", || {
        let names = server.practices();
        (0..5).all(|n| names.contains(&format!("Practice {n} of Octo")))
            && names.contains(&"Old Practice".to_owned())
    });
    assert!(node.state.lock().unwrap().is_empty(), "all were confirmed");
    let asked = node.asked.lock().unwrap().clone();
    assert!(
        !asked.contains(&"/koi-net/events/broadcast".to_owned()),
        "it was told of edges, which it would pass on: {asked:?}"
    );
    let peer = server.peer(&node.node.rid);
    assert_eq!(
        (&peer["dialect"], &peer["state"]),
        (&json!("octo"), &json!("active")),
        "{peer}"
    );

    // The other direction: it polls and confirms.
    let poll = Json::object([
        ("type", Json::text("poll_events")),
        ("limit", Json::count(50)),
    ]);
    let key = server.status()["node"]["public_key"]
        .as_str()
        .unwrap()
        .to_owned();
    let ask = |path: &str, payload: &Json| {
        let (status, answer) = server.node(path, &node.node.seal_json(payload, &me));
        assert_eq!(status, 200, "{answer}");
        checked(&answer, &me, &key, &node.node.rid)
    };
    let mut events = Value::Null;
    wait("our practice is handed out", || {
        events = ask("/events/poll", &poll)["events"].clone();
        events.to_string().contains("Camas Garden")
    });
    let ids: Vec<&str> = events
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["event_id"].as_str().unwrap())
        .collect();
    let confirm = Json::object([
        ("type", Json::text("confirm_events")),
        ("event_ids", Json::texts(&ids)),
    ]);
    assert_eq!(ask("/events/confirm", &confirm)["confirmed"], ids.len());
    assert_eq!(ask("/events/poll", &poll)["events"], json!([]));

    // One that is not known is told so in words that make it introduce itself.
    let mut stranger = Foreign::new("octo-other", 9);
    stranger.rid.truncate(stranger.rid.find('+').unwrap() + 17);
    let (status, answer) = server.node("/events/poll", &stranger.seal_json(&poll, &me));
    assert_eq!(
        (status, &answer["error_code"]),
        (400, &json!("UNKNOWN_SOURCE_NODE")),
        "{answer}"
    );
    assert!(answer.to_string().contains("No public key for"), "{answer}");
    // Such a name is not taken in a message as the reference sends it.
    let hello = vec![Event::of(EventType::New, stranger.bundle())];
    let (status, answer) = stranger.tell(&server, &me, hello);
    assert_eq!(
        (status, &answer["error"]),
        (400, &json!("invalid_key")),
        "{answer}"
    );
    assert_eq!(server.peer(&stranger.rid), Value::Null);
    drop(server);
    place.good(&["audit", "verify"]);
}

#[test]
fn an_octo_node_is_understood_in_both_directions() {
    for place in places() {
        speaks_with_octo(&place);
    }
}
