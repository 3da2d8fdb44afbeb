//! The project that Kenning is started in: read without being asked, and nothing else is. And what a scan tells
//! of what it did.

use crate::Fixture;
use crate::koi_repos::{Repo, call, register, scan, status, verify};
use kenning_core::Space;
use kenning_engine::Sensors;
use kenning_engine::koi::ScanResult;
use kenning_tools::Selection;
use serde_json::json;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The fixture's project as a repository with one function.
fn project(fixture: &Fixture) -> Repo {
    let repo = Repo(fixture.project());
    repo.git(&["init", "--quiet", "--initial-branch=main"]);
    repo.put("a.py", "def one():\n    pass\n");
    repo.commit();
    repo
}

fn set(fixture: &Fixture, key: &str, value: &str) {
    let omi = fixture.board.engine().omi();
    omi.config_set(&fixture.owner(), key, value).unwrap();
}

fn scanned_by_itself(fixture: &Fixture) {
    fixture.board.engine().koi().scan_changed_project().unwrap();
}

#[test]
fn koi_repos_the_project_is_scanned_without_being_asked_and_again_after_a_commit() {
    let fixture = Fixture::new();
    let repo = project(&fixture);
    let sensors = Sensors::start(fixture.board.engine(), Duration::from_millis(10));
    let has = |name: &str| {
        let query = format!("MATCH (f:Function {{name: '{name}'}}) RETURN f.file_path AS path");
        let asked = || call(&fixture, "code_query", json!({ "cypher": query }));
        let until = Instant::now() + Duration::from_secs(60);
        while asked()["count"] != 1 && Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!(asked()["results"][0]["path"], "a.py", "{}", asked());
    };
    has("one");
    repo.put("a.py", "def one():\n    pass\n\ndef two():\n    one()\n");
    repo.commit();
    has("two");
    sensors.stop(Duration::from_secs(20));
    assert_eq!(status(&fixture)["repos"][0]["repo_name"], "project");
    verify(&fixture);
}

#[test]
fn koi_repos_without_a_commit_the_project_is_not_scanned_again() {
    let fixture = Fixture::new();
    project(&fixture);
    scanned_by_itself(&fixture);
    scanned_by_itself(&fixture);
    assert_eq!(status(&fixture)["total_scans"], 1);
}

#[test]
fn koi_repos_the_project_is_left_where_the_settings_say_so() {
    let fixture = Fixture::new();
    project(&fixture);
    set(&fixture, "code.project", "off");
    scanned_by_itself(&fixture);
    assert_eq!(status(&fixture)["active_repos"], 0);
}

#[test]
fn koi_repos_a_project_that_is_no_repository_is_left() {
    let fixture = Fixture::new();
    fixture.put_document("a.py", "def one():\n    pass\n");
    scanned_by_itself(&fixture);
    assert_eq!(status(&fixture)["active_repos"], 0);
}

/// How many texts have their facts in the store.
fn n_facts(fixture: &Fixture) -> usize {
    let log = fixture.log();
    let rows = log.read(&Space::default(), |tx| tx.list("code.facts"));
    rows.unwrap().len()
}

#[test]
fn koi_repos_a_second_work_tree_is_a_project_too_and_shares_what_is_equal() {
    let fixture = Fixture::new();
    let main = Repo::new(&fixture, "main");
    main.put("a.py", "def one():\n    pass\n");
    main.put("b.py", "def two():\n    pass\n");
    main.commit();
    fs::remove_dir(fixture.project()).unwrap();
    let place = fixture.project();
    main.git(&[
        "worktree",
        "add",
        "--quiet",
        "-b",
        "side",
        place.to_str().unwrap(),
    ]);
    let fixture = fixture.again(Selection::default());
    scanned_by_itself(&fixture);
    let found = status(&fixture);
    assert_eq!(found["repos"][0]["branch"], "side", "{found}");
    assert_eq!(found["total_code_entities"], 2, "{found}");
    assert_eq!(n_facts(&fixture), 2, "one row for each text");
    // Only one of the two texts differs in the other work tree, so only that one is read.
    main.put("b.py", "def two():\n    return 2\n");
    main.commit();
    register(&fixture, &main, "acme/main");
    scan(&fixture);
    assert_eq!(n_facts(&fixture), 3, "what is equal has one row for both");
    let query = "MATCH (f:Function {name: 'one'}) RETURN f.repo AS repo ORDER BY repo";
    let found = call(&fixture, "code_query", json!({ "cypher": query }));
    assert_eq!(found["results"][0]["repo"], "acme/main");
    assert_eq!(found["results"][1]["repo"], "project");
}

#[test]
fn koi_repos_an_agent_may_scan_the_project_by_its_path() {
    let fixture = Fixture::new();
    let repo = project(&fixture);
    let path = repo.0.to_str().unwrap();
    let asked = json!({ "action": "scan", "repo_name": path });
    let found = call(&fixture, "github_scan", asked);
    assert_eq!(found["status"], "completed", "{found}");
    assert_eq!(found["results"][0]["repo"], "project");
}

#[test]
fn koi_repos_settings_admit_repositories_too() {
    let fixture = Fixture::new();
    let asked = json!({ "action": "scan", "repo_name": "acme/demo" });
    let found = call(&fixture, "github_scan", asked.clone());
    let message = found["message"].as_str().unwrap();
    assert!(message.contains("`repositories.allow`"), "{message}");
    set(&fixture, "repositories.allow", "acme/*");
    let engine = fixture.board.engine();
    let registered = engine
        .koi()
        .register_admitted(&fixture.owner(), "acme/demo")
        .unwrap();
    assert_eq!(registered.repo_name, "acme/demo");
    let refused = engine
        .koi()
        .register_admitted(&fixture.owner(), "other/demo");
    assert!(refused.is_err());
}

#[test]
fn koi_repos_a_scan_names_the_files_that_it_did_not_read() {
    let fixture = Fixture::new();
    let repo = Repo::new(&fixture, "odd");
    repo.put("a.py", "def one():\n    pass\n");
    repo.put("big.py", "#\n".repeat(250_001));
    repo.put("binary.md", b"\xff\xfe\x00");
    repo.put("deep.py", format!("x = {}", "(".repeat(2_000)));
    repo.commit();
    register(&fixture, &repo, "acme/odd");
    let found = scan(&fixture)["results"][0].clone();
    assert_eq!(found["files_skipped"], 3, "{found}");
    let reason = |path: &str| {
        let all = found["skipped"].as_array().unwrap();
        let row = all.iter().find(|it| it["path"] == path);
        row.unwrap()["reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(reason("big.py"), "larger than 500000 bytes");
    assert_eq!(reason("binary.md"), "not a text in UTF-8");
    assert!(reason("deep.py").contains("nested too deeply"));
    // They are told again when nothing has changed, as far as that is known without reading.
    let again = scan(&fixture)["results"][0].clone();
    assert_eq!(again["files_processed"], 0);
    assert_eq!(again["files_skipped"], 2, "{again}");
}

#[test]
fn koi_repos_a_scan_that_completes_another_counts_what_that_did() {
    let fixture = Fixture::new();
    let repo = Repo::new(&fixture, "many");
    for n in 0..450 {
        let text = format!("def f{n}():\n    return f{}()\n", n + 1);
        repo.put(&format!("m{n}.py"), text);
    }
    repo.commit();
    register(&fixture, &repo, "acme/many");
    let koi = fixture.board.engine().koi();
    let found = koi
        .scan_repositories_within(&fixture.owner(), None, Duration::ZERO)
        .unwrap();
    assert!(
        matches!(&found[..], [ScanResult::Running { .. }]),
        "{found:?}"
    );
    // Broken off as soon as something of it is written.
    let until = Instant::now() + Duration::from_secs(60);
    while status(&fixture)["total_documents"] == 0 && Instant::now() < until {
        std::thread::yield_now();
    }
    koi.cancel_scans();
    while status(&fixture)["repos"][0]["status"] == "scanning" && Instant::now() < until {
        std::thread::yield_now();
    }
    let found = scan(&fixture)["results"][0].clone();
    assert_eq!(found["files_processed"], 450, "{found}");
    assert_eq!(found["code_entities"], 450, "{found}");
    assert!(found["code_edges"].as_u64().unwrap() >= 450, "{found}");
    // The next one did nothing.
    let found = scan(&fixture)["results"][0].clone();
    assert_eq!(found["files_processed"], 0, "{found}");
    assert_eq!(found["code_edges"], 0, "{found}");
}

#[test]
fn koi_repos_a_guess_is_seen_only_by_who_names_it() {
    let fixture = Fixture::new();
    let repo = Repo::new(&fixture, "guess");
    repo.put(
        "src/lib.rs",
        "pub struct A;\nimpl A { pub fn halt_all(&self) {} }\npub struct B;\nimpl B { pub fn halt_all(&self) {} }\nfn ask() { unknown.halt_all(); }\n",
    );
    repo.commit();
    register(&fixture, &repo, "acme/guess");
    scan(&fixture);
    let ask = |pattern: &str| {
        let query =
            format!("MATCH (f:Function {{name: 'ask'}})-{pattern}->(m:Method) RETURN m.name");
        call(&fixture, "code_query", json!({ "cypher": query }))["count"].clone()
    };
    assert_eq!(ask("[r]"), 0);
    assert_eq!(ask("[*1..3]"), 0);
    assert_eq!(ask("[:CALLS]"), 0);
    assert_eq!(ask("[:MAY_CALL]"), 2);
    let query = "MATCH (m:Method {is_test: false}) RETURN count(m) AS n";
    let found = call(&fixture, "code_query", json!({ "cypher": query }));
    assert_eq!(found["results"][0]["n"], 2);
}

#[test]
fn koi_repos_a_home_directory_is_never_a_project() {
    let home: Arc<Mutex<Option<String>>> = Arc::default();
    let named = Arc::clone(&home);
    let fixture = Fixture::with_environment(Arc::new(move |name| match name {
        "HOME" => named.lock().unwrap().clone(),
        "PATH" => std::env::var("PATH").ok(),
        _ => None,
    }));
    project(&fixture);
    for (place, n_repos) in [("", 0), ("inner", 0), ("../elsewhere", 1)] {
        let place = fixture.project().join(place);
        fs::create_dir_all(&place).unwrap();
        *home.lock().unwrap() = Some(place.to_str().unwrap().to_owned());
        let again = fixture.again(Selection::default());
        scanned_by_itself(&again);
        assert_eq!(status(&again)["active_repos"], n_repos, "{place:?}");
    }
}

/// A file `.git` leads wherever it says, and `alternates` to the objects of others; neither makes their code that of
/// this project. A work tree that the repository itself made is one.
#[test]
fn koi_repos_a_project_does_not_lead_into_another_repository() {
    let other = tempfile::tempdir().unwrap();
    let other = Repo(other.path().to_owned());
    other.git(&["init", "--quiet", "--initial-branch=main"]);
    other.put("secret.py", "def secret():\n    pass\n");
    other.commit();
    let n_repos = |prepare: &dyn Fn(&Fixture)| {
        let fixture = Fixture::new();
        fs::create_dir_all(fixture.project()).unwrap();
        prepare(&fixture);
        scanned_by_itself(&fixture);
        status(&fixture)["active_repos"].as_u64().unwrap()
    };
    let git = other.0.join(".git");
    let pointed = n_repos(&|fixture| {
        let pointer = format!("gitdir: {}\n", git.display());
        fs::write(fixture.project().join(".git"), pointer).unwrap();
    });
    assert_eq!(pointed, 0);
    let borrowed = n_repos(&|fixture| {
        let repo = project(fixture);
        let objects = git.join("objects");
        let alternates = repo.0.join(".git/objects/info/alternates");
        fs::write(alternates, format!("{}\n", objects.display())).unwrap();
    });
    assert_eq!(borrowed, 0);
    let linked = n_repos(&|fixture| {
        let tree = fixture.project();
        fs::remove_dir_all(&tree).unwrap();
        other.git(&["worktree", "add", "--quiet", tree.to_str().unwrap()]);
    });
    assert_eq!(linked, 1);
}

/// Whoever asks at the command line is answered from the commit that is there, wherever its name is kept.
#[test]
fn koi_repos_a_new_commit_is_awaited() {
    let fixture = Fixture::new();
    let repo = project(&fixture);
    let owner = fixture.owner();
    let awaits = || fixture.board.engine().koi().awaits_project(&owner).unwrap();
    let scan = || drop(fixture.board.engine().koi().scan_project(&owner).unwrap());
    assert!(awaits());
    scan();
    assert!(!awaits());
    repo.put("b.py", "def two():\n    one()\n");
    repo.commit();
    assert!(awaits());
    scan();
    assert!(!awaits());
    repo.git(&["pack-refs", "--all"]);
    assert!(!awaits());
    repo.git(&["checkout", "--quiet", "--detach", "HEAD~1"]);
    assert!(awaits());
    scan();
    assert!(!awaits());
}
