//! Encryption, against a real server with a certificate of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests write the server's files and fail by panicking"
)]

use kenning_core::{Code, Error};
use kenning_store_postgres::Postgres;
use kenning_testing_postgres::{Server, Version, own};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

/// Gives the server a certificate for `localhost` and turns encryption on.
fn encrypt(server: &Server) -> Vec<u8> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let url = server.url();
    let data = server.sql(&url, "SHOW data_directory");
    let data = Path::new(data.trim());
    let owner = std::fs::metadata(data).unwrap();
    for (name, text) in [
        ("server.crt", made.cert.pem()),
        ("server.key", made.signing_key.serialize_pem()),
    ] {
        let file = data.join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    server.sql(&url, "ALTER SYSTEM SET ssl = on");
    server.sql(&url, "SELECT pg_reload_conf()");
    made.cert.pem().into_bytes()
}

fn open(url: &str, authorities: Option<&[u8]>) -> Result<Postgres, Error> {
    Postgres::open(url, authorities)
}

#[test]
fn encryption_is_used_and_checked_when_the_address_asks() {
    let server = own(Version::V18);
    let url = server.database().replace("127.0.0.1", "localhost");
    let plain = open(&format!("{url}?sslmode=require"), None);
    let refused = plain.err().expect("a server without encryption is refused");
    assert_eq!(refused.code, Code::Unavailable, "{refused:?}");
    let authority = encrypt(&server);
    for mode in ["require", "verify-full", "verify-ca"] {
        let asked = format!("{url}?sslmode={mode}");
        drop(open(&asked, Some(&authority)).unwrap());
        let stranger = open(&asked, None)
            .err()
            .expect("an unknown authority is refused");
        assert_eq!(stranger.code, Code::Unavailable, "{stranger:?}");
    }
    let by_number = server.database() + "?sslmode=require";
    assert!(
        open(&by_number, Some(&authority)).is_err(),
        "the name is checked too"
    );
    let garbage = open(&format!("{url}?sslmode=require"), Some(b"no certificate"));
    assert_eq!(garbage.err().unwrap().code, Code::InvalidInput);
    // What is connected with encryption says so.
    let _held = open(&format!("{url}?sslmode=require"), Some(&authority)).unwrap();
    let count = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                 WHERE ssl AND application_name = 'kenning'";
    let encrypted: u32 = server.sql(&server.url(), count).trim().parse().unwrap();
    assert!(encrypted >= 1);
    drop(open(&url, None).unwrap());
}
