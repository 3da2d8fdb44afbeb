//! Encryption, with a certificate that is checked.
//!
//! The server in tests was built without encryption. So a small relay in front of it speaks the part of
//! PostgreSQL's protocol that begins an encrypted connection, and passes on what it decrypts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests connect on loopback and fail by panicking"
)]

use kenning_core::{Code, Error};
use kenning_store::Store;
use kenning_store_postgres::Postgres;
use kenning_testing_postgres::shared;
use rustls::pki_types::PrivateKeyDer;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// The request for encryption: its length, and a number in place of the protocol version.
const ASKS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

struct Relay {
    port: u16,
    authority: Vec<u8>,
    encrypted: Arc<AtomicUsize>,
    _runtime: tokio::runtime::Runtime,
}

impl Relay {
    /// Stands before the server at `target` with a certificate for `localhost`.
    fn start(target: String) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime
            .block_on(TcpListener::bind(("127.0.0.1", 0)))
            .unwrap();
        let port = listener.local_addr().unwrap().port();
        let encrypted = Arc::new(AtomicUsize::new(0));
        let count = encrypted.clone();
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(
                    client,
                    acceptor.clone(),
                    target.clone(),
                    count.clone(),
                ));
            }
        });
        Self {
            port,
            authority: made.cert.pem().into_bytes(),
            encrypted,
            _runtime: runtime,
        }
    }
}

async fn relay(
    mut client: TcpStream,
    acceptor: TlsAcceptor,
    target: String,
    count: Arc<AtomicUsize>,
) -> Option<()> {
    let mut first = [0; 8];
    client.read_exact(&mut first).await.ok()?;
    let mut server = TcpStream::connect(target).await.ok()?;
    if first != ASKS {
        server.write_all(&first).await.ok()?;
        copy_bidirectional(&mut client, &mut server).await.ok()?;
        return Some(());
    }
    client.write_all(b"S").await.ok()?;
    let mut client = acceptor.accept(client).await.ok()?;
    count.fetch_add(1, Ordering::SeqCst);
    copy_bidirectional(&mut client, &mut server).await.ok()?;
    Some(())
}

/// `postgres://user:password@HOST:PORT/database` with another place in the middle.
fn through(url: &str, place: &str) -> (String, String) {
    let (user, rest) = url.split_once('@').unwrap();
    let (real, database) = rest.split_once('/').unwrap();
    (format!("{user}@{place}/{database}"), real.to_owned())
}

fn open(url: &str, authorities: Option<&[u8]>) -> Result<Store, Error> {
    Postgres::open(url, authorities).map(Store::new)
}

fn code(opened: Result<Store, Error>) -> Code {
    match opened {
        Ok(store) => panic!("{} was opened", store.describe()),
        Err(error) => error.code,
    }
}

#[test]
fn encryption_is_used_and_checked_when_the_address_asks() {
    let direct = shared().database();
    assert_eq!(
        code(open(&format!("{direct}?sslmode=require"), None)),
        Code::Unavailable,
        "a server without encryption is refused"
    );
    let relay = Relay::start(through(&direct, "").1);
    let (url, _) = through(&direct, &format!("localhost:{}", relay.port));
    for mode in ["require", "verify-full", "verify-ca"] {
        let asked = format!("{url}?sslmode={mode}");
        let before = relay.encrypted.load(Ordering::SeqCst);
        let store = open(&asked, Some(&relay.authority)).unwrap();
        assert!(store.spaces().unwrap().is_empty());
        assert!(relay.encrypted.load(Ordering::SeqCst) > before, "{mode}");
        assert_eq!(
            code(open(&asked, None)),
            Code::Unavailable,
            "an unknown authority is refused"
        );
    }
    let (other_name, _) = through(&direct, &format!("127.0.0.1:{}", relay.port));
    let other_name = open(
        &format!("{other_name}?sslmode=require"),
        Some(&relay.authority),
    );
    assert_eq!(
        code(other_name),
        Code::Unavailable,
        "the name is checked too"
    );
    let garbage = open(&format!("{url}?sslmode=require"), Some(b"no certificate"));
    assert_eq!(code(garbage), Code::InvalidInput);
    let before = relay.encrypted.load(Ordering::SeqCst);
    drop(open(&url, None).unwrap());
    assert_eq!(
        relay.encrypted.load(Ordering::SeqCst),
        before,
        "unasked, this machine is plain"
    );
}
