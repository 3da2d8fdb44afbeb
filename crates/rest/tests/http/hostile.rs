//! What a stranger may send without harm to anybody else.

use crate::place::{PATIENCE, Place, Setup, get, post};
use kenning_core::Space;
use kenning_engine::{NewPeer, PeerPolicy, Principal, Scope};
use kenning_tools::slots::bodies::BODIES_OF_ONE_BYTES_MAX;
use kenning_tools::slots::{CALLS_MAX, CALLS_OF_ONE_MAX, Load, Slot, WAITING_OF_ONE_MAX};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// It overflowed the stack, and with it the whole server.
#[tokio::test]
async fn a_query_of_thousands_of_factors_harms_nobody() {
    let place = Place::new().await;
    for query in [
        format!("RETURN%201{}%20AS%20x", "*1".repeat(6_000)),
        format!("RETURN%20{}true%20AS%20x", "NOT%20".repeat(6_000)),
        format!(
            "WITH%201%20AS%20a%20RETURN%20a{}%20AS%20x",
            ".b".repeat(6_000)
        ),
    ] {
        let path = format!("/tools/code_query?cypher={query}");
        let answer = place.get(&path, "").await;
        assert!([200, 413].contains(&answer.status), "{answer:?}");
    }
    let doubling = format!(
        "WITH%20'x'%20AS%20a{}%20RETURN%20a",
        "%20WITH%20a%2Ba%20AS%20a".repeat(60)
    );
    let answer = place
        .get(&format!("/tools/code_query?cypher={doubling}"), "")
        .await;
    assert_eq!(answer.status, 413, "{answer:?}");
    assert!(
        answer.json().to_string().contains("a value is larger than"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_body_from_a_page_is_json_only_if_it_says_so() {
    let place = Place::new().await;
    let body = r#"{"cypher": "RETURN 1 AS x"}"#;
    let ask = async |headers: &str| {
        let n_bytes = body.len();
        let request = format!(
            "POST /code/query HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {n_bytes}\r\n\r\n{body}"
        );
        place.ask(request).await.status
    };
    assert_eq!(ask("").await, 200, "a program that says nothing");
    let json = "Content-Type: application/json\r\n";
    for page in [
        "Origin: http://localhost\r\n",
        "Sec-Fetch-Site: same-origin\r\n",
    ] {
        assert_eq!(ask(page).await, 422, "{page}");
        assert_eq!(
            ask(&format!("{page}Content-Type: text/plain\r\n")).await,
            422
        );
        assert_eq!(ask(&format!("{page}{json}")).await, 200, "{page}");
    }
}

/// Keeps so many slots for a principal of this name.
fn occupy(place: &Place, name: &str, n: usize) -> Vec<Slot> {
    let who = Principal {
        name: name.to_owned(),
        ..Principal::owner(Space::default())
    };
    let (tell, told) = std::sync::mpsc::channel();
    for _ in 0..n {
        let tell = tell.clone();
        let kept = move |slot| drop(tell.send(slot));
        let slots = place.fixture.board.slots();
        slots.enter(&who, Load::Waits, Box::new(kept)).unwrap();
    }
    told.try_iter().collect()
}

#[tokio::test]
async fn who_is_calling_and_whether_all_is_well_is_answered_when_every_slot_is_taken() {
    let setup = Setup {
        require_token: true,
        ..Setup::default()
    };
    let place = Place::with(setup).await;
    let token = place.token(&[Scope::Read], "default", None);
    let with = format!("Authorization: Bearer {token}\r\n");
    let mut taken = occupy(&place, "a", CALLS_OF_ONE_MAX);
    taken.extend(occupy(&place, "b", CALLS_OF_ONE_MAX));
    assert_eq!(taken.len(), CALLS_MAX);
    assert_eq!(place.get("/healthz", &with).await.status, 200);
    assert_eq!(place.get("/tools", "").await.status, 401);
    // A call waits in line until somebody is done.
    let mut wire = place.connect().await;
    wire.send(get("/tools", &with)).await;
    assert_eq!(place.get("/metrics", &with).await.status, 200);
    drop(taken.pop());
    assert_eq!(wire.answer().await.unwrap().status, 200);
}

#[tokio::test]
async fn one_principal_is_limited_and_its_neighbors_are_not() {
    let place = Place::new().await;
    let token = place.token(&[Scope::Read], "default", None);
    let with = format!("Authorization: Bearer {token}\r\n");
    // Whoever calls from this machine is the owner.
    let owner = Principal::owner(Space::default()).name;
    let taken = occupy(&place, &owner, CALLS_OF_ONE_MAX + WAITING_OF_ONE_MAX);
    assert_eq!(taken.len(), CALLS_OF_ONE_MAX);
    let refused = place.get("/tools", "").await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "limited"));
    assert_eq!(place.get("/tools", &with).await.status, 200);
    drop(taken);
    assert_eq!(place.get("/tools", "").await.status, 200);
}

/// A body was read whole, on every route but that of the tools, and only then its call was refused.
#[tokio::test]
async fn a_call_that_will_be_refused_is_refused_before_its_body_is_read() {
    let place = Place::new().await;
    let head = |method: &str, path: &str, more: &str, n_bytes: usize| {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{more}\
             Content-Length: {n_bytes}\r\nExpect: 100-continue\r\n\r\n"
        )
    };
    // Nothing but the head is sent, so whoever wants the body first answers nothing.
    let ask = async |head: String| {
        let mut wire = place.connect().await;
        wire.send(head).await;
        let limit = std::time::Duration::from_secs(20);
        let answer = tokio::time::timeout(limit, wire.answer()).await;
        answer.expect("it waits for the body").expect("an answer")
    };
    let routes = [
        ("POST", "/tools/vault_read_note"),
        ("POST", "/mcp"),
        ("POST", "/api/v1/store"),
        ("PUT", "/api/v1/beliefs/b1"),
        ("POST", "/registry/v1/push"),
        ("POST", "/code/query"),
        ("POST", "/entity/resolve"),
    ];
    let owner = Principal::owner(Space::default()).name;
    let taken = occupy(&place, &owner, CALLS_OF_ONE_MAX + WAITING_OF_ONE_MAX);
    for (method, path) in routes {
        let wrong = "Authorization: Bearer nobodys\r\n";
        let answer = ask(head(method, path, wrong, 1_000_000)).await;
        assert_eq!(answer.status, 401, "{path}: {answer:?}");
        let answer = ask(head(method, path, "", 1_000_000)).await;
        assert_eq!(answer.status, 429, "{path}: {answer:?}");
    }
    // What takes back a call that waits is read all the same.
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let ping = post(
        "/mcp",
        "Accept: application/json, text/event-stream\r\n",
        ping,
    );
    assert_ne!(place.ask(ping).await.status, 429);
    drop(taken);
}

/// Whoever called had its token looked up first, on a thread that hundreds of others waited for.
#[test]
fn of_many_calls_at_once_those_that_find_no_room_are_refused_before_their_tokens_are_looked_up() {
    const THREADS: usize = 4;
    const OVER: u64 = 8;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(THREADS)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let place = Place::new().await;
        let token = place.token(&[Scope::Read], "default", None);
        let with = format!("Authorization: Bearer {token}\r\n");
        let call = post("/tools/vault_read_note", &with, br#"{"path":"none.md"}"#);
        assert_eq!(place.ask(&call).await.status, 404);
        // From here on there is no thread on which anything could be looked up.
        let (leave, left) = std::sync::mpsc::channel::<()>();
        let left = Arc::new(Mutex::new(left));
        for _ in 0..THREADS {
            let left = Arc::clone(&left);
            tokio::task::spawn_blocking(move || left.lock().unwrap().recv().unwrap_err());
        }
        let mut wires = Vec::new();
        for _ in 0..WAITING_OF_ONE_MAX as u64 + OVER {
            let mut wire = place.connect().await;
            wire.send(&call).await;
            wires.push(wire);
        }
        let n_refused = || place.fixture.board.slots().counts().refused;
        let refused = async {
            while n_refused() < OVER {
                tokio::task::yield_now().await;
            }
        };
        let refused = tokio::time::timeout(PATIENCE, refused).await;
        refused.expect("they are refused while nothing can be looked up");
        drop(leave);
        let mut answers = BTreeMap::new();
        for mut wire in wires {
            let answer = wire.answer().await.expect("an answer");
            *answers.entry(answer.status).or_insert(0) += 1;
        }
        let expected = [(404, WAITING_OF_ONE_MAX as u64), (429, OVER)];
        assert_eq!(answers, BTreeMap::from(expected));
    });
}

/// Nodes may send 32 MiB, and a message of more than 4 MiB was refused; strangers may send next to nothing.
#[tokio::test]
async fn only_a_known_node_sends_a_message_of_megabytes() {
    let place = Place::new().await;
    let known = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";
    let stranger = "did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw";
    let sealed = |did: &str| {
        format!(
            "Kenning-Peer: {did}\r\nKenning-Challenge: c\r\nKenning-Number: 1\r\n\
             Kenning-Signature: {}\r\n",
            "0".repeat(128)
        )
    };
    let new = NewPeer {
        endpoint: String::new(),
        did: Some(known.parse().unwrap()),
        policy: PeerPolicy::default(),
    };
    let engine = place.fixture.board.engine();
    engine.add_peer(&place.fixture.owner(), new).unwrap();
    let large = vec![b' '; 5 * 1024 * 1024];
    for path in ["/sync", "/events"] {
        // It is read, and then its signature is wrong.
        let answer = place.ask(post(path, &sealed(known), &large)).await;
        assert_eq!(answer.status, 401, "{path}: {answer:?}");
        assert!(answer.message().contains("signature"), "{answer:?}");
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: 5000000\r\n\
             Expect: 100-continue\r\n\r\n",
            sealed(stranger)
        );
        let answer = place.ask(head).await;
        assert_eq!(answer.status, 403, "{path}: {answer:?}");
        let answer = place.ask(post(path, "", &large)).await;
        assert_eq!(answer.status, 413, "{path}: {answer:?}");
        let over = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: 33554433\r\n\
             Expect: 100-continue\r\n\r\n",
            sealed(known)
        );
        assert_eq!(place.ask(over).await.status, 413, "{path}");
    }
}

/// Hundreds of calls may wait in line; with the largest bodies they were gigabytes.
#[tokio::test]
async fn the_bytes_of_bodies_that_wait_are_bounded_and_small_calls_go_on() {
    let place = Place::new().await;
    let token = place.token(&[Scope::Read], "default", None);
    let with = format!("Authorization: Bearer {token}\r\n");
    let owner = Principal::owner(Space::default()).name;
    let taken = occupy(&place, &owner, CALLS_OF_ONE_MAX);
    let counts = || place.fixture.board.slots().counts();
    let blank = " ".repeat(4 * 1024 * 1024 - 100);
    let large = post(
        "/tools/vault_read_note",
        "",
        format!("{{{blank}\"path\":\"x\"}}").as_bytes(),
    );
    let mut wires = Vec::new();
    let refused = loop {
        assert!(wires.len() < 100, "no end: {:?}", counts());
        let mut wire = place.connect().await;
        wire.send(&large).await;
        let n_before = counts();
        while counts().waiting == wires.len() && counts().bodies_refused == 0 {
            tokio::task::yield_now().await;
        }
        if counts().bodies_refused > 0 {
            assert!(n_before.body_bytes <= BODIES_OF_ONE_BYTES_MAX);
            break wire.answer().await.unwrap();
        }
        wires.push(wire);
    };
    assert_eq!((refused.status, refused.code().as_str()), (429, "limited"));
    let said = refused.message();
    assert!(said.contains("64 MiB of requests of this caller"), "{said}");
    assert_eq!(wires.len(), 16);
    // Its small calls wait in line as ever, and another caller notices nothing.
    let mut small = place.connect().await;
    small
        .send(post("/tools/vault_read_note", "", br#"{"path":"x"}"#))
        .await;
    let beside = place
        .ask(post("/tools/vault_read_note", &with, br#"{"path":"x"}"#))
        .await;
    assert_eq!(beside.status, 404, "{beside:?}");
    let metrics = place.get("/metrics", &with).await.body;
    assert!(
        metrics.contains("kenning_bodies_limited_total 1\n"),
        "{metrics}"
    );
    drop(taken);
    for wire in wires.iter_mut().chain([&mut small]) {
        assert_eq!(wire.answer().await.unwrap().status, 404);
    }
    // The last answer may be read before its request has been put away.
    while counts().body_bytes > 0 {
        tokio::task::yield_now().await;
    }
}

/// The kernel dropped the first packet of the 129th, whose client tried again after a second.
#[tokio::test]
async fn hundreds_of_connections_at_once_wait_to_be_accepted() {
    let listener = kenning_rest::bind(([127, 0, 0, 1], 0).into()).await;
    let listener = listener.unwrap();
    let address = listener.local_addr().unwrap();
    // Nobody accepts.
    let mut open = Vec::new();
    for n in 0..600 {
        let connect = tokio::net::TcpStream::connect(address);
        let connected = tokio::time::timeout(std::time::Duration::from_millis(900), connect).await;
        open.push(
            connected
                .unwrap_or_else(|_| panic!("connection {n} waits"))
                .unwrap(),
        );
    }
}

#[tokio::test]
async fn wrong_tokens_are_limited_and_who_is_at_work_goes_on() {
    let setup = Setup {
        require_token: true,
        wrong_tokens_per_minute: Some(5),
        ..Setup::default()
    };
    let place = Place::with(setup).await;
    let token = place.token(&[Scope::Read], "default", None);
    let fresh = place.token(&[Scope::Read], "default", None);
    let ask = async |token: &str| {
        let with = format!("Authorization: Bearer {token}\r\n");
        place.get("/healthz", &with).await
    };
    assert_eq!(ask(&token).await.status, 200);
    for n in 0..5 {
        assert_eq!(ask(&format!("kng_guess_{n}")).await.status, 401);
    }
    let limited = ask("kng_guess_5").await;
    assert_eq!((limited.status, limited.code().as_str()), (429, "limited"));
    assert!(limited.header("retry-after").is_some(), "{limited:?}");
    assert_eq!(ask(&fresh).await.status, 429, "not even looked up");
    assert_eq!(ask(&token).await.status, 200, "was right before");
    // Everybody on this machine has one address, and the owner is not kept out by the others.
    let owners = format!("{}{}", kenning_engine::LOCAL_TOKEN_PREFIX, "x".repeat(43));
    assert_eq!(ask(&owners).await.status, 401, "looked at all the same");
    assert_eq!(place.get("/tools", "").await.status, 401);
}
