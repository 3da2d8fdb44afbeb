//! A repository behind `https://`, fetched by the system's `git` through the gate's own proxy, from a server on
//! loopback that the operator granted.

use crate::NOW_MS;
use jiff::tz::TimeZone;
use kenning_core::{FixedClock, SeededRandom, Space};
use kenning_engine::kami::WasmOptions;
use kenning_engine::kiwi::ItemOptions;
use kenning_engine::koi::{KnowledgeQuery, NewRepository, RepositoryOptions, ScanResult};
use kenning_engine::{Caller, Engine, Options, Principal};
use kenning_store::Store;
use kenning_store_sqlite::Sqlite;
use kenning_vault::Dir;
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// `git http-backend` behind TLS.
struct GitServer {
    port: u16,
    /// A certificate to know it by.
    authority: PathBuf,
    /// What it was asked for.
    asked: Arc<Mutex<Vec<String>>>,
    /// The header that it wants to see, and those that it saw.
    door: Arc<Door>,
}

/// Who is let in.
#[derive(Default)]
struct Door {
    wanted: Mutex<Option<String>>,
    shown: Mutex<Vec<Option<String>>>,
    /// Where everybody is sent instead.
    elsewhere: Mutex<Option<String>>,
}

impl GitServer {
    fn start(root: &Path, repositories: PathBuf) -> Self {
        let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let authority = root.join("authority.pem");
        std::fs::write(&authority, certified.cert.pem()).unwrap();
        let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key.into())
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let door: Arc<Door> = Arc::default();
        let watched = Arc::clone(&door);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (config, seen) = (Arc::clone(&config), Arc::clone(&seen));
                let door = Arc::clone(&watched);
                let repositories = repositories.clone();
                std::thread::spawn(move || {
                    let session = rustls::ServerConnection::new(config).unwrap();
                    let mut line = rustls::StreamOwned::new(session, stream.unwrap());
                    // A client that hangs up ends its line.
                    drop(serve(&mut line, &repositories, &seen, &door));
                    line.conn.send_close_notify();
                    drop(line.flush());
                });
            }
        });
        Self {
            port,
            authority,
            asked,
            door,
        }
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// One request, as a CGI program answers it.
fn serve(
    line: &mut (impl Read + Write),
    repositories: &Path,
    asked: &Mutex<Vec<String>>,
    door: &Door,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(&mut *line);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut headers = std::collections::HashMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        match header.trim().split_once(':') {
            Some((name, value)) => headers.insert(name.to_lowercase(), value.trim().to_owned()),
            None => break,
        };
    }
    let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body)?;
    drop(reader);
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    asked.lock().unwrap().push(format!("{method} {path}"));
    let shown = headers.get("authorization").cloned();
    door.shown.lock().unwrap().push(shown.clone());
    if let Some(elsewhere) = door.elsewhere.lock().unwrap().as_ref() {
        let answer = format!(
            "HTTP/1.1 301 Moved\r\nLocation: {elsewhere}{target}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        line.write_all(answer.as_bytes())?;
        return line.flush();
    }
    let wanted = door.wanted.lock().unwrap().clone();
    if wanted.is_some() && wanted != shown {
        line.write_all(b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
        return line.flush();
    }
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", repositories)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child.stdin.take().unwrap().write_all(&body)?;
    let output = child.wait_with_output()?.stdout;
    let end = output.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let status = head.lines().find_map(|it| it.strip_prefix("Status: "));
    let content = &output[end + 4..];
    let answer = format!(
        "HTTP/1.1 {}\r\n{head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        status.unwrap_or("200 OK"),
        content.len()
    );
    line.write_all(answer.as_bytes())?;
    line.write_all(content)?;
    line.flush()
}

fn git(dir: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.com"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status();
    assert!(done.unwrap().success(), "git {args:?}");
}

fn open(root: &Path, hosts: Vec<String>, authority: &Path) -> Engine {
    let path = std::env::var("PATH").unwrap();
    open_with(root, hosts, authority, path)
}

fn open_with(root: &Path, hosts: Vec<String>, authority: &Path, path: String) -> Engine {
    open_in(root, hosts, authority, path, &[])
}

fn open_in(
    root: &Path,
    hosts: Vec<String>,
    authority: &Path,
    path: String,
    variables: &[(&str, String)],
) -> Engine {
    let variables: Vec<(String, String)> = variables
        .iter()
        .map(|it| (it.0.to_owned(), it.1.clone()))
        .collect();
    let data = Dir::create(&root.join("data")).unwrap();
    let authority = authority.display().to_string();
    let engine = Engine::open(Options {
        store: Store::new(Sqlite::open(data.path()).unwrap()),
        data,
        vault: None,
        omi: None,
        project: None,
        wasm: WasmOptions::default(),
        items: ItemOptions::default(),
        repositories: RepositoryOptions {
            hosts,
            ..RepositoryOptions::default()
        },
        mail: None,
        web: Default::default(),
        space: Space::default(),
        clock: Arc::new(FixedClock::at(NOW_MS)),
        zone: TimeZone::UTC,
        random: Arc::new(SeededRandom::new(5)),
        environment: Arc::new(move |name| match name {
            "PATH" => Some(path.clone()),
            "GIT_SSL_CAINFO" => Some(authority.clone()),
            name => {
                let found = variables.iter().find(|it| it.0 == name);
                found.map(|it| it.1.clone())
            }
        }),
        shared: false,
        read_only: false,
    });
    engine.unwrap()
}

#[test]
fn a_repository_behind_https_is_fetched_through_the_gate() {
    let root = tempfile::tempdir().unwrap();
    let served = root.path().join("served");
    let work = served.join("acme/demo.git");
    std::fs::create_dir_all(&work).unwrap();
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(work.join("README.md"), "# Herring\n\nCounted on kelp.\n").unwrap();
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--message", "x"]);
    let server = GitServer::start(root.path(), served);
    let owner = Caller::new(Principal::owner(Space::default()));
    let new = NewRepository {
        repo_url: format!("https://127.0.0.1:{}/acme/demo.git", server.port),
        ..NewRepository::default()
    };

    // Nobody granted it: the gate says why, and the server hears nothing.
    let engine = open(root.path(), Vec::new(), &server.authority);
    engine.koi().register_repository(&owner, &new).unwrap();
    let found = engine.koi().scan_repositories(&owner, None).unwrap();
    let [ScanResult::Failed { error, .. }] = &found[..] else {
        unreachable!("{found:?}");
    };
    assert!(error.contains("resolves to"), "{error}");
    assert!(server.asked.lock().unwrap().is_empty());
    drop(engine);

    let host = format!("127.0.0.1:{}", server.port);
    let engine = open(root.path(), vec![host.clone()], &server.authority);
    let found = engine.koi().scan_repositories(&owner, None).unwrap();
    let [ScanResult::Done(scanned)] = &found[..] else {
        unreachable!("{found:?}");
    };
    assert_eq!(
        (scanned.repo.as_str(), scanned.files_processed),
        ("acme/demo", 1)
    );
    let query = KnowledgeQuery {
        text: "herring".to_owned(),
        source: Some("github".to_owned()),
        page: kenning_engine::Page::first(5),
    };
    let found = engine.koi().search_knowledge(&owner, &query).unwrap();
    assert_eq!(found.documents[0].rid, "github:acme/demo:README.md");
    assert!(!server.asked.lock().unwrap().is_empty());

    // What is new is fetched on top of what there is.
    std::fs::write(work.join("more.md"), "more\n").unwrap();
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--message", "y"]);
    let found = engine.koi().scan_repositories(&owner, None).unwrap();
    assert!(
        matches!(&found[..], [ScanResult::Done(it)] if it.files_processed == 1 && it.total_files == 2),
        "{found:?}"
    );
    drop(engine);

    // A server that cannot prove who it is.
    let other = root.path().join("nobody.pem");
    let stranger = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(&other, stranger.cert.pem()).unwrap();
    let engine = open(root.path(), vec![host], &other);
    let found = engine.koi().scan_repositories(&owner, None).unwrap();
    assert!(
        matches!(&found[..], [ScanResult::Failed { .. }]),
        "{found:?}"
    );
}

#[test]
fn without_git_a_scan_names_it() {
    let root = tempfile::tempdir().unwrap();
    let nowhere = root.path().join("nowhere");
    let engine = open_with(
        root.path(),
        Vec::new(),
        &nowhere,
        nowhere.display().to_string(),
    );
    let owner = Caller::new(Principal::owner(Space::default()));
    let new = NewRepository {
        repo_url: "https://example.com/acme/demo".to_owned(),
        ..NewRepository::default()
    };
    engine.koi().register_repository(&owner, &new).unwrap();
    let found = engine.koi().scan_repositories(&owner, None).unwrap();
    let [ScanResult::Failed { error, .. }] = &found[..] else {
        unreachable!("{found:?}");
    };
    assert!(
        error.contains("no `git`") && error.contains("install git"),
        "{error}"
    );
}

/// A repository that a server shows only to whoever has a token.
fn private(root: &Path) -> (GitServer, NewRepository) {
    let served = root.join("served");
    let work = served.join("acme/demo.git");
    std::fs::create_dir_all(&work).unwrap();
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(work.join("README.md"), "# Private\n").unwrap();
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--message", "x"]);
    let server = GitServer::start(root, served);
    let new = NewRepository {
        repo_url: format!("https://{}/acme/demo.git", server.host()),
        ..NewRepository::default()
    };
    (server, new)
}

/// `x-access-token:s3cret-of-the-test`
const SHOWN: &str = "Basic eC1hY2Nlc3MtdG9rZW46czNjcmV0LW9mLXRoZS10ZXN0";
const SECRET: &str = "s3cret-of-the-test";

#[test]
fn a_token_opens_a_private_repository_and_goes_nowhere_else() {
    let root = tempfile::tempdir().unwrap();
    let (server, new) = private(root.path());
    *server.door.wanted.lock().unwrap() = Some(SHOWN.to_owned());
    let owner = Caller::new(Principal::owner(Space::default()));
    let path = || std::env::var("PATH").unwrap();
    let hosts = || vec![server.host()];

    // Tokens for other hosts are not shown, and the answer says what would help.
    let others = [
        ("GITHUB_TOKEN", SECRET.to_owned()),
        ("KENNING_REPO_TOKENS", format!("127.0.0.1={SECRET}")),
    ];
    let engine = open_in(root.path(), hosts(), &server.authority, path(), &others);
    engine.koi().register_repository(&owner, &new).unwrap();
    let found = engine.koi().scan_repositories(&owner, None).unwrap();
    let [ScanResult::Failed { error, .. }] = &found[..] else {
        unreachable!("{found:?}");
    };
    assert!(error.contains("KENNING_REPO_TOKENS"), "{error}");
    let shown = server.door.shown.lock().unwrap().clone();
    assert!(shown.iter().all(Option::is_none), "{shown:?}");
    drop(engine);

    let own = [("KENNING_REPO_TOKENS", format!("{}={SECRET}", server.host()))];
    let engine = open_in(root.path(), hosts(), &server.authority, path(), &own);
    let found = engine.koi().scan_repositories(&owner, None).unwrap();
    assert!(matches!(&found[..], [ScanResult::Done(_)]), "{found:?}");
    drop(engine);

    // Nothing keeps it.
    let mut rest = vec![root.path().join("data")];
    while let Some(at) = rest.pop() {
        if at.is_dir() {
            rest.extend(std::fs::read_dir(at).unwrap().map(|it| it.unwrap().path()));
        } else {
            let bytes = std::fs::read(&at).unwrap();
            let has = |what: &str| bytes.windows(what.len()).any(|it| it == what.as_bytes());
            assert!(!has(SECRET) && !has(&SHOWN[6..]), "{}", at.display());
        }
    }
}

#[test]
fn a_token_is_not_carried_to_where_a_server_redirects() {
    let root = tempfile::tempdir().unwrap();
    let (server, new) = private(root.path());
    *server.door.wanted.lock().unwrap() = Some(SHOWN.to_owned());
    let elsewhere = tempfile::tempdir().unwrap();
    let other = GitServer::start(elsewhere.path(), elsewhere.path().join("none"));
    let owner = Caller::new(Principal::owner(Space::default()));
    let own = [("KENNING_REPO_TOKENS", format!("{}={SECRET}", server.host()))];
    let hosts = vec![server.host(), other.host()];
    // Both are trusted, so that only the redirection decides.
    let mut trusted = std::fs::read_to_string(&server.authority).unwrap();
    trusted.push_str(&std::fs::read_to_string(&other.authority).unwrap());
    std::fs::write(&server.authority, trusted).unwrap();
    let path = std::env::var("PATH").unwrap();
    let engine = open_in(root.path(), hosts, &server.authority, path, &own);
    engine.koi().register_repository(&owner, &new).unwrap();
    let found = engine.koi().scan_repositories(&owner, None).unwrap();
    assert!(matches!(&found[..], [ScanResult::Done(_)]), "{found:?}");
    *server.door.elsewhere.lock().unwrap() = Some(format!("https://{}", other.host()));
    let found = engine.koi().scan_repositories(&owner, None).unwrap();
    assert!(
        matches!(&found[..], [ScanResult::Failed { .. }]),
        "{found:?}"
    );
    let shown = other.door.shown.lock().unwrap().clone();
    assert!(shown.iter().all(Option::is_none), "{shown:?}");
}

#[test]
fn the_credential_helper_of_the_operator_is_asked_when_there_is_no_token() {
    let root = tempfile::tempdir().unwrap();
    let (server, new) = private(root.path());
    *server.door.wanted.lock().unwrap() = Some(SHOWN.to_owned());
    let home = root.path().join("home");
    std::fs::create_dir_all(&home).unwrap();
    let helper = format!(
        "[credential]\n\thelper = \"!f() {{ echo username=x-access-token; echo password={SECRET}; }}; f\"\n"
    );
    std::fs::write(home.join(".gitconfig"), helper).unwrap();
    let owner = Caller::new(Principal::owner(Space::default()));
    let own = [("HOME", home.to_str().unwrap().to_owned())];
    let path = std::env::var("PATH").unwrap();
    let engine = open_in(
        root.path(),
        vec![server.host()],
        &server.authority,
        path,
        &own,
    );
    engine.koi().register_repository(&owner, &new).unwrap();
    let found = engine.koi().scan_repositories(&owner, None).unwrap();
    assert!(matches!(&found[..], [ScanResult::Done(_)]), "{found:?}");
}
