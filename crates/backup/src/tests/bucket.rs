//! Failures of buckets: busy, interrupted, refused, wrong answers and redirects.

use super::server::{Act, BUCKET, SECRET_KEY, Server};
use super::*;
use kenning_core::{Code, Random, Result};

/// More than two parts, and more than two pieces, that do not shrink.
fn large() -> Files {
    let random = SeededRandom::new(3);
    let mut bytes = vec![0; 12 * 1024 * 1024];
    random.fill(&mut bytes);
    Files::from([("store.dump".to_owned(), bytes)])
}

#[test]
fn a_large_backup_travels_in_parts_and_pieces() {
    let (home, server) = (Home::new(), Server::start());
    let backups = home.on(&server);
    let large = large();
    let made = backups
        .create(&home.request(Kind::Full, NOW), sources(&large))
        .unwrap();
    assert_eq!(server.count("PUT", "partNumber"), 3);
    assert!(server.count("GET", "tar.gz") >= 3);
    backups.restore(&made.backup_id, &home.into).unwrap();
    assert!(only_files(&home.into) == large);
    assert!(server.state.lock().unwrap().uploads.is_empty());
}

#[test]
fn pieces_of_two_objects_are_never_put_together() {
    let (home, server) = (Home::new(), Server::start());
    let backups = home.on(&server);
    let made = backups
        .create(&home.request(Kind::Full, NOW), sources(&large()))
        .unwrap();
    server.fails("GET", "tar.gz", Act::Nothing);
    server.fails("GET", "tar.gz", Act::Replace);
    let error = backups.restore(&made.backup_id, &home.into).unwrap_err();
    assert_eq!(error.code, Code::Conflict, "{error}");
    assert!(content(&home.into).is_empty());
}

#[test]
fn a_busy_server_is_asked_again() {
    for (method, target) in [
        ("PUT", "tar.gz"),
        ("PUT", ".json"),
        ("PUT", ".claim"),
        ("GET", "tar.gz"),
        ("GET", "list-type"),
    ] {
        let (home, server) = (Home::new(), Server::start());
        let backups = home.on(&server);
        server.fails(method, target, Act::Say(503, "SlowDown"));
        let made = backups
            .create(&home.request(Kind::Full, NOW), sources(&sample()))
            .unwrap();
        assert!(
            server.state.lock().unwrap().faults.is_empty(),
            "{method} {target}"
        );
        backups.restore(&made.backup_id, &home.into).unwrap();
        assert_eq!(only_files(&home.into), sample());
    }
}

#[test]
fn a_line_that_breaks_is_opened_again() {
    for (method, target, act) in [
        ("PUT", "tar.gz", Act::HangUp),
        ("GET", "tar.gz", Act::HangUp),
        ("GET", "tar.gz", Act::BreakOff),
    ] {
        let (home, server) = (Home::new(), Server::start());
        let backups = home.on(&server);
        server.fails(method, target, act);
        backups
            .create(&home.request(Kind::Full, NOW), sources(&sample()))
            .unwrap();
        assert!(server.state.lock().unwrap().faults.is_empty());
    }
}

#[test]
fn an_interrupted_upload_leaves_no_listed_backup() {
    for (method, target) in [
        ("PUT", "partNumber=2"),
        ("POST", "uploadId"),
        ("PUT", ".files"),
        ("PUT", ".json"),
        ("GET", "tar.gz"),
    ] {
        let (home, server) = (Home::new(), Server::start());
        let backups = home.on(&server);
        let earlier = backups
            .create(
                &home.request(Kind::Full, "2026-11-01T00:00:00Z"),
                sources(&sample()),
            )
            .unwrap();
        server.fails(method, target, Act::Say(400, "Whatever"));
        let error = backups
            .create(&home.request(Kind::Full, NOW), sources(&large()))
            .unwrap_err();
        assert_eq!(error.code, Code::Unavailable, "{method} {target}: {error}");
        assert!(error.message.ends_with(": Whatever"), "{error}");
        assert_eq!(ids(&backups.list().unwrap().backups), [&earlier.backup_id]);
        let state = server.state.lock().unwrap();
        assert!(state.uploads.is_empty(), "{method} {target}");
        assert_eq!(state.objects.len(), 3, "{method} {target}");
    }
}

#[test]
fn an_upload_that_could_not_even_be_taken_back_is_not_listed() {
    let (home, server) = (Home::new(), Server::start());
    let backups = home.on(&server);
    server.fails("PUT", ".json", Act::Say(400, "Whatever"));
    for target in [".files", "tar.gz", ".claim"] {
        server.fails("DELETE", target, Act::Say(400, "Whatever"));
    }
    let request = home.request(Kind::Full, NOW);
    backups.create(&request, sources(&sample())).unwrap_err();
    assert_eq!(
        server.keys().len(),
        3,
        "archive, manifest and claim are left"
    );
    let listing = backups.list().unwrap();
    assert!(listing.backups.is_empty() && listing.broken.is_empty());
    let again = backups.create(&request, sources(&sample())).unwrap();
    assert_ne!(
        again.backup_id, "omi_full_20261115_095318",
        "that id is spoilt"
    );
    let swept = backups
        .cleanup(90, at("2026-11-20T00:00:00Z"), false)
        .unwrap();
    assert_eq!(swept.remains.len(), 3);
    backups.verify(&again.backup_id).unwrap();
}

#[test]
fn a_server_that_stores_something_else_is_found_at_once() {
    for target in ["tar.gz", ".files"] {
        let (home, server) = (Home::new(), Server::start());
        let backups = home.on(&server);
        server.fails("PUT", target, Act::Damage);
        let made = backups.create(&home.request(Kind::Full, NOW), sources(&sample()));
        let error = made.unwrap_err();
        assert!(
            error.message.starts_with("Checksum mismatch! Expected "),
            "{error}"
        );
        assert!(server.keys().is_empty());
    }
}

#[test]
fn a_service_without_conditional_writes_holds_backups_as_well() {
    let (home, server) = (Home::new(), Server::start().without_conditions());
    let backups = home.on(&server);
    let made = backups
        .create(&home.request(Kind::Full, NOW), sources(&sample()))
        .unwrap();
    backups.verify(&made.backup_id).unwrap();
}

#[test]
fn a_bucket_keeps_to_its_prefix() {
    let (home, server) = (Home::new(), Server::start());
    let other = BucketSettings {
        prefix: "/other/machine/".to_owned(),
        ..settings(&server)
    };
    let other = Place::Bucket(server.bucket(other).unwrap());
    let other = Backups::new(other, home.scratch.clone());
    let none = BucketSettings {
        prefix: String::new(),
        ..settings(&server)
    };
    let none = Place::Bucket(server.bucket(none).unwrap());
    let none = Backups::new(none, home.scratch.clone());
    for backups in [&home.on(&server), &other, &none] {
        assert!(backups.list().unwrap().backups.is_empty());
        let made = backups.create(&home.request(Kind::Full, NOW), sources(&sample()));
        assert_eq!(made.unwrap().backup_id, "omi_full_20261115_095318");
        assert_eq!(backups.list().unwrap().backups.len(), 1);
    }
    let folders = ["backups/", "laptop/backups/", "other/machine/backups/"];
    for (keys, folder) in server.keys().chunks(3).zip(folders) {
        assert!(keys.iter().all(|it| it.starts_with(folder)), "{keys:?}");
    }
}

fn error_with(server: &Server, change: impl FnOnce(&mut BucketSettings)) -> Result<()> {
    let home = Home::new();
    let mut settings = settings(server);
    change(&mut settings);
    let bucket = server.bucket(settings)?;
    let place = Place::Bucket(bucket);
    Backups::new(place, home.scratch.clone()).list().map(drop)
}

#[test]
fn a_refused_key_is_named_and_never_shown() {
    let server = Server::start();
    error_with(&server, |_| ()).unwrap();
    let wrong = "another secret that nobody may see";
    let check = |said: &str, code: Code, change: &dyn Fn(&mut BucketSettings)| {
        let error = error_with(&server, |it| change(it)).unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(said), "{error}");
        let all = format!("{error:?} {error}");
        for secret in [SECRET_KEY, wrong, server::ACCESS_KEY, "AKIAOTHER"] {
            assert!(!all.contains(secret), "{all}");
        }
    };
    check("SignatureDoesNotMatch", Code::Denied, &|settings| {
        settings.secret_access_key = Zeroizing::new(wrong.to_owned());
    });
    check("InvalidAccessKeyId", Code::Denied, &|settings| {
        settings.access_key_id = "AKIAOTHER".to_owned();
    });
    check("no bucket `nobodys`", Code::NotFound, &|settings| {
        settings.bucket = "nobodys".to_owned();
    });
    check("has no `access_key_id`", Code::InvalidInput, &|settings| {
        settings.secret_access_key = Zeroizing::default();
    });
    check(
        "`endpoint` of the bucket is",
        Code::InvalidInput,
        &|settings| {
            settings.endpoint = "s3.example.org".to_owned();
        },
    );
    check(
        "`prefix` of the bucket is",
        Code::InvalidInput,
        &|settings| {
            settings.prefix = "a/../b".to_owned();
        },
    );
    check(
        "`bucket` of the bucket is",
        Code::InvalidInput,
        &|settings| {
            settings.bucket = "a/b".to_owned();
        },
    );
    let shown = format!("{:?}", settings(&server));
    assert!(
        !shown.contains(SECRET_KEY) && shown.contains(BUCKET),
        "{shown}"
    );
    let bucket = server.bucket(settings(&server)).unwrap();
    assert!(!format!("{bucket:?}").contains(SECRET_KEY));
}

#[test]
fn a_server_that_points_elsewhere_gets_nothing_sent_there() {
    let (server, stranger) = (Server::start(), Server::start());
    // Its own address is granted, so there it is only the rule about redirects that holds.
    for elsewhere in [&stranger, &server] {
        let home = Home::new();
        let backups = home.on(&server);
        let to = format!("{}/{BUCKET}/stolen", elsewhere.endpoint());
        server.fails("PUT", "tar.gz", Act::Redirect(to));
        let made = backups.create(&home.request(Kind::Full, NOW), sources(&sample()));
        assert_eq!(made.unwrap_err().code, Code::Denied);
        assert_eq!(elsewhere.count("", "stolen"), 0);
        assert!(backups.list().unwrap().backups.is_empty());
    }
}

#[test]
fn a_bucket_that_is_not_there_is_unavailable() {
    let server = Server::start();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = error_with(&server, |it| it.endpoint = endpoint).unwrap_err();
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert!(error.message.starts_with("bucket `copies`: "), "{error}");
}

#[test]
fn a_bucket_can_be_asked_from_a_thread_for_blocking_work() {
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let listing = runtime.block_on(async {
        let home = Home::new();
        let backups = home.on(&server);
        let asked = tokio::task::spawn_blocking(move || backups.list());
        asked.await.unwrap()
    });
    assert!(listing.unwrap().backups.is_empty());
}
