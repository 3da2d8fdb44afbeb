//! Repositories as documents: registered, scanned, followed through every kind of change, and refused where
//! they must be. The repositories are real ones, made by the system's `git`.

mod code;
mod registration;

use crate::{Fixture, koi_golden};
use kenning_core::{Code, Kind, Space};
use kenning_engine::koi::{NewRepository, ScanResult};
use kenning_engine::{Caller, Principal, Scope, Sensors};
use kenning_store::{Node, NodeFilter, When};
use kenning_tools::Selection;
use kenning_tools::koi::{github_files, github_repos};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const A_PY: &str = "\"\"\"Module doc for a.\"\"\"\nimport os\nfrom json import dumps\n\nclass Greeter(object):\n    \"\"\"Greets.\"\"\"\n    def hello(self, name: str) -> str:\n        \"\"\"Say hello.\"\"\"\n        return helper(name)\n\ndef helper(n):\n    return dumps(n)\n";

/// A work tree in one of the directories that may be read.
pub(crate) struct Repo(pub(crate) PathBuf);

impl Repo {
    pub(crate) fn new(fixture: &Fixture, name: &str) -> Self {
        let path = fixture.repositories().join(name);
        fs::create_dir_all(&path).unwrap();
        let repo = Self(path);
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        repo
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.0, args)
    }

    pub(crate) fn put(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Commits everything and gives the commit.
    pub(crate) fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "x"]);
        self.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }
}

fn git(dir: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([
            ("GIT_AUTHOR_NAME", "T"),
            ("GIT_AUTHOR_EMAIL", "t@example.com"),
        ])
        .envs([
            ("GIT_COMMITTER_NAME", "T"),
            ("GIT_COMMITTER_EMAIL", "t@example.com"),
        ])
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "git {args:?}: {err}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

pub(crate) fn register(fixture: &Fixture, repo: &Repo, name: &str) -> Value {
    let request =
        json!({ "repo_url": repo.0.to_str().unwrap(), "repo_name": name, "branch": "main" });
    let request: github_repos::Request = serde_json::from_value(request).unwrap();
    let done = github_repos::answer(fixture.board.engine(), &fixture.owner(), request);
    serde_json::to_value(done.unwrap()).unwrap()
}

pub(crate) fn call(fixture: &Fixture, tool: &str, arguments: Value) -> Value {
    let reply = fixture.call(tool, arguments);
    assert!(!reply.is_error(), "{tool}: {}", reply.text);
    reply.to_json()
}

pub(crate) fn scan(fixture: &Fixture) -> Value {
    let found = call(fixture, "github_scan", json!({ "action": "scan" }));
    assert_eq!(found["status"], "completed", "{found}");
    found
}

pub(crate) fn status(fixture: &Fixture) -> Value {
    call(fixture, "github_scan", json!({}))
}

/// The documents of repositories, by their names.
fn documents(fixture: &Fixture) -> BTreeMap<String, Node> {
    let filter = NodeFilter {
        kinds: vec![Kind::Document],
        key_prefix: Some("github:".to_owned()),
        ..NodeFilter::default()
    };
    let log = fixture.log();
    let nodes = log.read(&Space::default(), |tx| {
        tx.nodes(&filter, When::Now, None, 100_000)
    });
    let nodes = nodes.unwrap().into_iter();
    nodes.map(|it| (it.key.clone(), it)).collect()
}

fn keys(fixture: &Fixture) -> Vec<String> {
    documents(fixture).into_keys().collect()
}

/// What is wrong with the log, and whether every document's passages are its text.
pub(crate) fn verify(fixture: &Fixture) {
    let engine = fixture.board.engine();
    let report = engine.verify(&Space::default(), &|_| {}).unwrap();
    assert!(report.is_clean(), "{report:?}");
    for (key, node) in documents(fixture) {
        let log = fixture.log();
        let passages = log.read(&Space::default(), |tx| tx.passages(node.id));
        let joined: String = passages.unwrap().into_iter().map(|it| it.text).collect();
        assert_eq!(joined, node.body, "{key}");
    }
}

fn sample(fixture: &Fixture) -> (Repo, String) {
    let repo = Repo::new(fixture, "gitrepo");
    repo.put("src/a.py", A_PY)
        .put("src/b.ts", "export interface Shape { area(): number }\n")
        .put(
            "README.md",
            "# Demo\n\nA small sample about herring counts.\n",
        )
        .put("schema.sql", "CREATE TABLE birds (id int);\n")
        .put("logo.png", [0x89, b'P', b'N', b'G', 0, 1]);
    let commit = repo.commit();
    (repo, commit)
}

#[test]
fn koi_repos_answer_as_the_recorded_backend_did() {
    let fixture = Fixture::new();
    // Deliberate difference: nobody serves here, so nothing runs.
    let mut expected = koi_golden("gh status");
    expected["running"] = false.into();
    assert_eq!(status(&fixture), expected);
    let none = call(&fixture, "github_scan", json!({ "action": "scan" }));
    assert_eq!(none, koi_golden("gh scan none"));
    let (repo, commit) = sample(&fixture);
    assert_eq!(register(&fixture, &repo, "acme/demo"), koi_golden("gh add"));
    let unknown = json!({ "action": "scan", "repo_name": "no/such" });
    // Deliberate difference: the name is named, and who can allow it.
    let mut expected = koi_golden("gh scan unknown");
    let found = call(&fixture, "github_scan", unknown);
    let begins =
        "No repository `no/such` is registered (registered are: acme/demo). Register it with";
    assert!(found["message"].as_str().unwrap().starts_with(begins));
    expected["message"] = found["message"].clone();
    assert_eq!(found, expected);

    // Deliberate differences: the commit is another, and files, folders and imports are not counted.
    let mut expected = koi_golden("gh scan");
    expected["results"][0]["head_sha"] = commit.as_str().into();
    expected["results"][0]["code_entities"] = 6.into();
    let asked = json!({ "action": "scan", "repo_name": "acme/demo" });
    let found = call(&fixture, "github_scan", asked);
    expected["results"][0]["code_edges"] = found["results"][0]["code_edges"].clone();
    assert_eq!(found, expected);

    // Deliberate differences: time, commit, what counts, a passage is a slice of the text, every passage
    // has a vector.
    let mut expected = koi_golden("gh status2");
    expected["running"] = false.into();
    expected["repos"][0]["branch"] = "main".into();
    let at = json!("2027-01-15T08:00:00.000000+00:00");
    expected["last_scan"] = at.clone();
    expected["total_code_entities"] = 6.into();
    expected["total_chunks"] = 4.into();
    expected["total_embeddings"] = 4.into();
    expected["repos"][0]["last_scan_at"] = at;
    expected["repos"][0]["last_commit_sha"] = commit.as_str().into();
    expected["repos"][0]["code_entity_count"] = 6.into();
    assert_eq!(status(&fixture), expected);

    let mut expected = koi_golden("gh rescan");
    expected["results"][0]["head_sha"] = commit.as_str().into();
    assert_eq!(scan(&fixture), expected);

    let found = call(
        &fixture,
        "knowledge_search",
        json!({ "query": "helper", "limit": 3 }),
    );
    // Deliberate difference: the function itself is found, before its file.
    assert_eq!(
        found["results"][0]["rid"],
        "github:acme/demo:src/a.py#helper"
    );
    let golden = &koi_golden("search after scan")["results"][0];
    let results = found["results"].as_array().unwrap();
    let found = results.iter().find(|it| it["rid"] == golden["rid"]);
    let found = found.expect("the file is found too");
    for field in ["rid", "title", "content_preview", "source"] {
        assert_eq!(found[field], golden[field], "{field}");
    }
    // Deliberate difference: the original's is JSON in a string.
    let said: Value = serde_json::from_str(golden["metadata"].as_str().unwrap()).unwrap();
    for field in ["repo", "author", "content_hash"] {
        assert_eq!(found["metadata"][field], said[field], "{field}");
    }
    assert_eq!(found["metadata"]["commit_sha"], commit.as_str());

    // Deliberate difference: the original finds nothing of this source without a model.
    let query = json!({ "query": "herring", "source": "github", "limit": 5 });
    let found = call(&fixture, "knowledge_search", query);
    assert_eq!(
        found["results"][0]["rid"], "github:acme/demo:README.md",
        "{found}"
    );
    verify(&fixture);
}

#[test]
fn koi_repos_files_are_listed_and_mention_entities() {
    let fixture = Fixture::new();
    let (repo, _) = sample(&fixture);
    repo.put("docs/people.md", "Bill Baue counts herring.\n")
        .commit();
    register(&fixture, &repo, "acme/demo");
    scan(&fixture);
    let request = github_files::Request::default();
    let files = github_files::answer(fixture.board.engine(), &fixture.owner(), request).unwrap();
    let files = serde_json::to_value(files).unwrap();
    assert_eq!((&files["count"], &files["total"]), (&json!(5), &json!(5)));
    let first = &files["files"][0];
    assert_eq!(first["rid"], "github:acme/demo:README.md");
    assert_eq!(
        (&first["line_count"], &first["file_type"]),
        (&json!(3), &json!("md"))
    );
    let found = call(
        &fixture,
        "get_entity_documents",
        json!({ "entity_uri": "Bill Baue" }),
    );
    let rids: Vec<&Value> = found["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["document_rid"])
        .collect();
    assert_eq!(rids, ["github:acme/demo:docs/people.md"], "{found}");
}

#[test]
fn koi_repos_follow_changes_renames_deletions_and_a_rewritten_branch() {
    let fixture = Fixture::new();
    let repo = Repo::new(&fixture, "r");
    let long = "words of a text that is only renamed\n".repeat(20);
    repo.put("keep.md", "kept\n")
        .put("old name.md", &long)
        .put("gone.md", "gone\n");
    let first = repo.commit();
    register(&fixture, &repo, "r");
    scan(&fixture);
    let before = documents(&fixture);
    assert_eq!(before.len(), 3);

    fs::create_dir_all(repo.0.join("new")).unwrap();
    repo.git(&["mv", "old name.md", "new/name.md"]);
    repo.git(&["rm", "--quiet", "gone.md"]);
    repo.put("keep.md", "kept, and more\n")
        .put("added.md", "added\n");
    let second = repo.commit();
    let found = scan(&fixture);
    assert_eq!(found["results"][0]["files_processed"], 3, "{found}");
    let after = documents(&fixture);
    let names: Vec<&str> = after.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "github:r:added.md",
            "github:r:keep.md",
            "github:r:new/name.md"
        ]
    );
    let (was, is) = (
        &before["github:r:old name.md"],
        &after["github:r:new/name.md"],
    );
    assert_eq!(
        (was.id, &was.body),
        (is.id, &is.body),
        "a renamed file is the same document"
    );
    assert_eq!(is.props["path"], "new/name.md");
    assert_eq!(after["github:r:keep.md"].body, "kept, and more\n");
    assert_eq!(
        after["github:r:keep.md"].props["commit_sha"],
        second.as_str()
    );
    let kinds = fixture.event_kinds();
    for kind in [
        "DocumentAdded",
        "DocumentChanged",
        "DocumentMoved",
        "DocumentRemoved",
    ] {
        assert!(kinds.iter().any(|it| it == kind), "{kind}");
    }
    let gone = call(
        &fixture,
        "knowledge_search",
        json!({ "query": "gone", "source": "github" }),
    );
    assert!(!gone.to_string().contains("gone.md"), "{gone}");

    // The branch is rewritten: what the first commit had is what there is.
    repo.git(&["reset", "--quiet", "--hard", &first]);
    repo.put("keep.md", "rewritten\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--amend", "--message", "y"]);
    scan(&fixture);
    let names = keys(&fixture);
    assert_eq!(
        names,
        [
            "github:r:gone.md",
            "github:r:keep.md",
            "github:r:old name.md"
        ]
    );
    assert_eq!(documents(&fixture)["github:r:keep.md"].body, "rewritten\n");
    verify(&fixture);
}

#[test]
fn koi_repos_read_odd_names_and_long_texts_and_leave_links_and_binaries_alone() {
    let fixture = Fixture::new();
    let repo = Repo::new(&fixture, "odd");
    let secret = fixture.root.path().join("secret.md");
    fs::write(&secret, "nobody's business").unwrap();
    let lines: String = (0..10_000).map(|n| format!("line {n} of many\n")).collect();
    repo.put("long.md", &lines)
        .put("a \"quoted\"\nname.md", "two lines in a name\n")
        .put("ünï/çödé.md", "accents\n")
        .put(
            "tail.md",
            format!("{}zyzzyva terminus", "word ".repeat(4_999)),
        )
        .put("binary.md", [b'a', 0, b'b'])
        .put("latin.md", [b'a', 0xe9, b'b'])
        .put("big.md", "x".repeat(500_001))
        .put("full.md", "y".repeat(500_000))
        .put(".hidden/x.md", "hidden\n")
        .put("node_modules/x.js", "x\n")
        .put("empty.md", "");
    std::os::unix::fs::symlink(&secret, repo.0.join("link.md")).unwrap();
    std::os::unix::fs::symlink("/etc", repo.0.join("etc")).unwrap();
    repo.commit();
    register(&fixture, &repo, "odd");
    scan(&fixture);
    let all = documents(&fixture);
    let names: Vec<&str> = all.keys().map(|it| &it["github:odd:".len()..]).collect();
    let expected = [
        "a \"quoted\"\nname.md",
        "empty.md",
        "full.md",
        "long.md",
        "tail.md",
        "ünï/çödé.md",
    ];
    assert_eq!(names, expected);
    assert_eq!(all["github:odd:long.md"].body, lines);
    assert_eq!(all["github:odd:long.md"].props["line_count"], 10_000);
    let found = call(
        &fixture,
        "knowledge_search",
        json!({ "query": "zyzzyva terminus", "source": "github" }),
    );
    let chunk = found["chunk_results"][0]["text"].as_str().unwrap();
    assert!(chunk.ends_with("zyzzyva terminus"), "{found}");
    verify(&fixture);
    // What is no text is not read again.
    assert_eq!(scan(&fixture)["results"][0]["files_processed"], 0);
}

#[test]
fn koi_repos_a_failed_scan_says_why_and_the_next_one_tries_again() {
    let fixture = Fixture::new();
    let (repo, _) = sample(&fixture);
    let register = |branch: &str| {
        let new = NewRepository {
            repo_url: repo.0.to_str().unwrap().to_owned(),
            repo_name: Some("acme/demo".to_owned()),
            branch: Some(branch.to_owned()),
        };
        let done = fixture
            .board
            .engine()
            .koi()
            .register_repository(&fixture.owner(), &new);
        done.unwrap().status
    };
    assert_eq!(register("nowhere"), "added");
    assert_eq!(register("nowhere"), "already_registered");
    let found = call(&fixture, "github_scan", json!({ "action": "scan" }));
    assert_eq!(found["status"], "failed", "{found}");
    let error = found["results"][0]["error"].as_str().unwrap();
    assert!(error.contains("no branch `nowhere`"), "{error}");
    let repository = &status(&fixture)["repos"][0];
    assert_eq!(
        (&repository["status"], &repository["last_commit_sha"]),
        (&json!("error"), &Value::Null)
    );
    assert_eq!(register("main"), "updated");
    scan(&fixture);
    assert_eq!(status(&fixture)["repos"][0]["status"], "active");

    // The repository goes away and comes back.
    let elsewhere = fixture.root.path().join("elsewhere");
    fs::rename(&repo.0, &elsewhere).unwrap();
    let found = call(&fixture, "github_scan", json!({ "action": "scan" }));
    assert_eq!(found["status"], "failed", "{found}");
    assert_eq!(documents(&fixture).len(), 4, "what is known stays");
    fs::rename(&elsewhere, &repo.0).unwrap();
    scan(&fixture);
    verify(&fixture);
}

#[test]
fn koi_repos_a_clone_in_disorder_is_made_anew() {
    let fixture = Fixture::new();
    let (repo, _) = sample(&fixture);
    register(&fixture, &repo, "acme/demo");
    scan(&fixture);
    let clone = || {
        let all = fs::read_dir(fixture.root.path().join("data/repositories")).unwrap();
        let all = all.map(|it| it.unwrap().path());
        let mut all = all.filter(|it| it.extension().is_some_and(|it| it == "git"));
        let one = all.next().unwrap();
        assert_eq!(all.next(), None, "there is one clone");
        one
    };
    // As a `git` that was killed leaves it.
    fs::write(clone().join("shallow.lock"), "").unwrap();
    fs::create_dir_all(clone().join("refs/kenning")).unwrap();
    fs::write(clone().join("refs/kenning/head.lock"), "").unwrap();
    repo.put("more.md", "more\n").commit();
    assert_eq!(scan(&fixture)["results"][0]["files_processed"], 1);
    fs::write(clone().join("HEAD"), "nonsense").unwrap();
    repo.put("most.md", "most\n").commit();
    assert_eq!(scan(&fixture)["results"][0]["files_processed"], 1);
    assert_eq!(documents(&fixture).len(), 6);
}

#[test]
fn koi_repos_outside_the_configured_directories_are_denied() {
    let fixture = Fixture::new();
    let (repo, _) = sample(&fixture);
    let outside = fixture.root.path().join("outside");
    fs::rename(&repo.0, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, fixture.repositories().join("link")).unwrap();
    let inside = Repo::new(&fixture, "inside");
    inside.put("a.md", "a\n").commit();
    let borrowing = fixture.repositories().join("borrowing");
    git(
        &fixture.repositories(),
        &[
            "clone",
            "--quiet",
            "--shared",
            outside.to_str().unwrap(),
            "borrowing",
        ],
    );
    let tree = fixture.repositories().join("tree");
    git(
        &outside,
        &["worktree", "add", "--quiet", tree.to_str().unwrap()],
    );
    fs::create_dir_all(fixture.repositories().join("plain")).unwrap();
    let at = |path: &Path| path.to_str().unwrap().to_owned();
    for (url, code) in [
        (at(&outside), Code::Denied),
        (format!("file://{}", at(&outside)), Code::Denied),
        (at(&fixture.repositories().join("link")), Code::Denied),
        (at(&fixture.repositories().join("nothing")), Code::Denied),
        (
            format!("{}/../outside", at(&fixture.repositories())),
            Code::InvalidInput,
        ),
        (at(fixture.root.path()), Code::Denied),
        ("/".to_owned(), Code::Denied),
        ("/etc".to_owned(), Code::Denied),
        (at(&borrowing), Code::InvalidInput),
        (at(&tree), Code::InvalidInput),
        (
            at(&fixture.repositories().join("plain")),
            Code::InvalidInput,
        ),
    ] {
        let new = NewRepository {
            repo_url: url.clone(),
            ..NewRepository::default()
        };
        let error = fixture
            .board
            .engine()
            .koi()
            .register_repository(&fixture.owner(), &new)
            .unwrap_err();
        assert_eq!(error.code, code, "{url}: {error}");
        assert!(error.hint.is_some(), "{url}");
    }
    // One that leads outside after it was registered is not read either.
    register(&fixture, &inside, "inside");
    fs::rename(&inside.0, fixture.root.path().join("was inside")).unwrap();
    std::os::unix::fs::symlink(&outside, &inside.0).unwrap();
    let found = call(&fixture, "github_scan", json!({ "action": "scan" }));
    assert_eq!(found["status"], "failed", "{found}");
    assert!(documents(&fixture).is_empty());
}

/// Addresses that `git` would do something with, or that lead astray.
const HOSTILE: &[&str] = &[
    "",
    " ",
    "-",
    "--upload-pack=touch /tmp/x",
    "-oProxyCommand=x",
    "ext::sh -c true",
    "ext::sh -c touch% /tmp/x",
    "fd::17",
    "git://example.com/a/b",
    "ssh://example.com/a/b",
    "git@example.com:a/b.git",
    "example.com:a/b",
    "http://example.com/a/b",
    "ftp://example.com/a/b",
    "ftps://example.com/a",
    "rsync://example.com/a",
    "file://example.com/srv/git",
    "file://../etc",
    "file:etc",
    "file:///srv/%2e%2e/x",
    "file:///../x",
    "/srv/../etc",
    "../repo",
    "repo",
    "./repo",
    "~/repo",
    "~root/repo",
    "https://",
    "https:///a/b",
    "https://example.com",
    "https://example.com/",
    "https://user:pass@example.com/a/b",
    "https://user@example.com/a/b",
    "https://example.com/a?b=c",
    "https://example.com/a#b",
    "https://example.com/../a",
    "https://exa mple.com/a",
    "https://example.com\\@127.0.0.1/a",
    "HTTPS://example.com/a",
    "https:/example.com/a",
    "https:example.com/a",
    "https://example.com/a\nb",
    "https://example.com/a\u{0}b",
    "transport::https://x/y",
    "https::https://example.com/a",
    "bundle.bundle",
    "unix:///var/run/docker.sock",
    "javascript:alert(1)",
    "https://[::1/a",
    "https://example.com:99999/a",
];

#[test]
fn koi_repos_hostile_addresses_are_refused_before_anything_starts() {
    assert!(HOSTILE.len() >= 40, "{}", HOSTILE.len());
    let fixture = Fixture::new();
    for url in HOSTILE {
        let new = NewRepository {
            repo_url: (*url).to_owned(),
            repo_name: Some("x/y".to_owned()),
            ..NewRepository::default()
        };
        let error = fixture
            .board
            .engine()
            .koi()
            .register_repository(&fixture.owner(), &new)
            .unwrap_err();
        assert!(
            matches!(error.code, Code::InvalidInput | Code::Denied),
            "{url}: {error}"
        );
        assert!(error.message.contains("repo_url"), "{url}: {error}");
    }
    for name in ["a b", "a:b", "a\nb", "\u{7}"] {
        let new = NewRepository {
            repo_url: "https://example.com/a/b".to_owned(),
            repo_name: Some(name.to_owned()),
            ..NewRepository::default()
        };
        let error = fixture
            .board
            .engine()
            .koi()
            .register_repository(&fixture.owner(), &new)
            .unwrap_err();
        assert_eq!(error.code, Code::InvalidInput, "{name}");
    }
    assert_eq!(status(&fixture)["active_repos"], 0);
    assert!(fixture.event_kinds().is_empty());
    assert!(
        !fixture.root.path().join("data/repositories").exists(),
        "nothing was started"
    );
}

#[test]
fn koi_repos_behind_private_addresses_are_refused_by_the_proxy() {
    let fixture = Fixture::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for (n, host) in [
        format!("127.0.0.1:{port}"),
        "10.0.0.1".to_owned(),
        "localhost".to_owned(),
        "169.254.169.254".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let new = NewRepository {
            repo_url: format!("https://{host}/a/b{n}"),
            ..NewRepository::default()
        };
        fixture
            .board
            .engine()
            .koi()
            .register_repository(&fixture.owner(), &new)
            .unwrap();
    }
    let found = call(&fixture, "github_scan", json!({ "action": "scan" }));
    assert_eq!(found["status"], "failed", "{found}");
    for row in found["results"].as_array().unwrap() {
        let error = row["error"].as_str().unwrap();
        assert!(
            error.contains("resolves to") || error.contains("names"),
            "{error}"
        );
    }
    assert!(listener.accept().is_err(), "nobody came");
}

#[test]
fn koi_repos_a_scan_beyond_the_wait_goes_on_and_is_seen_by_others() {
    let fixture = Fixture::new();
    let repo = Repo::new(&fixture, "many");
    for n in 0..600 {
        repo.put(&format!("{n}.md"), format!("text number {n}\n"));
    }
    let commit = repo.commit();
    register(&fixture, &repo, "many");
    let engine = fixture.board.engine();
    let found = engine
        .koi()
        .scan_repositories_within(&fixture.owner(), None, Duration::ZERO)
        .unwrap();
    assert!(
        matches!(&found[..], [ScanResult::Running { .. }]),
        "{found:?}"
    );
    // Nothing says that it is done before it is.
    let other = fixture.again(Selection::default());
    let seen = status(&other);
    let is_done = seen["repos"][0]["last_commit_sha"] == commit.as_str();
    assert_eq!(is_done, seen["total_documents"] == 600, "{seen}");
    // Whoever asks again waits for the same scan.
    let found = scan(&fixture);
    assert_eq!(found["results"][0]["total_files"], 600);
    assert_eq!(status(&other)["total_documents"], 600);
    assert_eq!(status(&fixture)["total_scans"], 1);
    verify(&fixture);
}

#[test]
fn koi_repos_two_engines_that_scan_at_once_read_each_file_once() {
    let fixture = Fixture::new();
    let repo = Repo::new(&fixture, "many");
    for n in 0..300 {
        repo.put(&format!("{n}.md"), format!("text number {n}\n"));
    }
    repo.commit();
    register(&fixture, &repo, "many");
    let other = fixture.again(Selection::default());
    let processed = |fixture: &Fixture| {
        scan(fixture)["results"][0]["files_processed"]
            .as_u64()
            .unwrap()
    };
    let (one, two) = std::thread::scope(|scope| {
        let two = scope.spawn(|| processed(&other));
        (processed(&fixture), two.join().unwrap())
    });
    assert_eq!(one + two, 300, "{one} and {two}");
    let added = fixture
        .event_kinds()
        .iter()
        .filter(|it| *it == "DocumentAdded")
        .count();
    assert_eq!(added, 300);
    verify(&fixture);
}

#[test]
fn koi_repos_a_cancelled_call_ends_its_scan_and_the_next_goes_on() {
    let fixture = Fixture::new();
    let repo = Repo::new(&fixture, "many");
    for n in 0..600 {
        repo.put(&format!("{n}.md"), format!("text number {n}\n"));
    }
    repo.commit();
    register(&fixture, &repo, "many");
    let caller = fixture.owner();
    caller
        .cancelled
        .store(true, std::sync::atomic::Ordering::Relaxed);
    let error = fixture
        .board
        .engine()
        .koi()
        .scan_repositories(&caller, None)
        .unwrap_err();
    assert_eq!(error.code, Code::Timeout, "{error}");
    scan(&fixture);
    assert_eq!(documents(&fixture).len(), 600);
    verify(&fixture);
}

#[test]
fn koi_repos_are_forgotten_with_their_documents() {
    let fixture = Fixture::new();
    let (repo, _) = sample(&fixture);
    register(&fixture, &repo, "acme/demo");
    scan(&fixture);
    let engine = fixture.board.engine();
    let done = engine
        .koi()
        .forget_repository(&fixture.owner(), "acme/demo", false);
    let done = done.unwrap();
    assert_eq!((done.repo_id, done.n_removed, done.n_kept), (Some(1), 4, 0));
    assert!(documents(&fixture).is_empty());
    assert_eq!(status(&fixture)["active_repos"], 0);
    let error = engine
        .koi()
        .forget_repository(&fixture.owner(), "acme/demo", false)
        .unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    let again = register(&fixture, &repo, "acme/demo");
    assert_eq!(again["repo_id"], 2, "no number is used twice");
    verify(&fixture);
}

#[test]
fn koi_repos_need_the_permission_to_write_and_to_fetch() {
    let fixture = Fixture::new();
    let (repo, _) = sample(&fixture);
    let with = |scopes: &[Scope]| {
        let mut principal = Principal::owner(Space::default());
        principal.scopes = scopes.to_vec();
        Caller::new(principal)
    };
    let local = NewRepository {
        repo_url: repo.0.to_str().unwrap().to_owned(),
        ..NewRepository::default()
    };
    let remote = NewRepository {
        repo_url: "https://example.com/a/b".to_owned(),
        ..NewRepository::default()
    };
    let engine = fixture.board.engine();
    for (scopes, new, is_good) in [
        (&[Scope::Read][..], &local, false),
        (&[Scope::Read, Scope::Write], &local, true),
        (&[Scope::Read, Scope::Write], &remote, false),
        (&[Scope::Read, Scope::Write, Scope::Fetch], &remote, true),
    ] {
        let done = engine.koi().register_repository(&with(scopes), new);
        assert_eq!(done.is_ok(), is_good, "{scopes:?} {new:?}");
    }
    assert!(
        engine
            .koi()
            .repository_status(&with(&[Scope::Read]))
            .is_ok()
    );
    assert!(
        engine
            .koi()
            .scan_repositories(&with(&[Scope::Read]), None)
            .is_err()
    );
    // Of another space there are no directories.
    let space: Space = "other".parse().unwrap();
    let error = engine
        .koi()
        .register_repository(&Caller::new(Principal::owner(space)), &local);
    assert_eq!(error.unwrap_err().code, Code::Denied);
}

#[test]
fn koi_federation_is_off_and_says_so() {
    let fixture = Fixture::new();
    let found = call(&fixture, "federation_status", json!({}));
    let golden = koi_golden("fed");
    let names = |it: &Value| {
        let mut names: Vec<String> = it.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(names(&found), names(&golden));
    assert_eq!(names(&found["protocol"]), names(&golden["protocol"]));
    for name in names(&golden["node"]) {
        assert!(found["node"].get(&name).is_some(), "{name}");
    }
    let did = fixture.log().signer().did().to_string();
    assert_eq!(
        (&found["status"], &found["node"]["did"]),
        (&json!("disabled"), &json!(did))
    );
    assert_eq!(
        (&found["peers"], &found["event_queue_size"]),
        (&json!([]), &json!(0))
    );
}

#[test]
fn koi_repos_are_scanned_by_a_serving_process_when_their_time_has_come() {
    let fixture = Fixture::new();
    let (repo, _) = sample(&fixture);
    register(&fixture, &repo, "acme/demo");
    let sensors = Sensors::start(fixture.board.engine(), Duration::from_millis(10));
    let scanned = |n: u64| {
        let until = Instant::now() + Duration::from_secs(60);
        while status(&fixture)["total_scans"] != n && Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!(status(&fixture)["total_scans"], n);
    };
    scanned(1);
    repo.put("new.md", "new\n").commit();
    fixture.clock.advance(21_600_000 - 1);
    assert_eq!(documents(&fixture).len(), 4, "its time has not come");
    fixture.clock.advance(1);
    scanned(2);
    assert_eq!(documents(&fixture).len(), 5);
    sensors.stop(Duration::from_secs(20));
    fixture.clock.advance(21_600_000);
    assert_eq!(status(&fixture)["total_scans"], 2);
    verify(&fixture);
}
