//! Which repositories are registered: under which name, with which branch, and no longer.

use super::*;

fn forget(fixture: &Fixture, name: &str, keep_documents: bool) -> Value {
    let request = json!({ "repo_name": name, "keep_documents": keep_documents });
    let request = serde_json::from_value(request).unwrap();
    let done = github_repos::remove(fixture.board.engine(), &fixture.owner(), request);
    serde_json::to_value(done.unwrap()).unwrap()
}

#[test]
fn koi_repos_are_unregistered_and_their_documents_stay_if_asked() {
    let fixture = Fixture::new();
    let (repo, _) = sample(&fixture);
    register(&fixture, &repo, "acme/demo");
    scan(&fixture);
    let before = documents(&fixture);
    let done = forget(&fixture, "Acme/Demo", true);
    let expected = json!({
        "status": "removed", "repo_id": 1, "repo_name": "acme/demo", "documents_removed": 0,
        "documents_kept": 4,
    });
    assert_eq!(done, expected, "case does not matter");
    assert_eq!(documents(&fixture), before);
    let found = status(&fixture);
    assert_eq!(
        (&found["active_repos"], &found["total_documents"]),
        (&json!(0), &json!(4))
    );
    let events = fixture.event_kinds();
    assert_eq!(events.last().unwrap(), "RepositoryForgotten");
    let clones = fs::read_dir(fixture.root.path().join("data/repositories")).unwrap();
    let clones: Vec<String> = clones
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .filter(|it| it.ends_with(".git") || it.ends_with(".clone"))
        .collect();
    assert!(clones.is_empty(), "{clones:?}");

    // Registered again, what stayed is compared with what there is: gone files go, the rest is the same.
    repo.git(&["rm", "--quiet", "schema.sql"]);
    repo.commit();
    register(&fixture, &repo, "acme/demo");
    scan(&fixture);
    let after = documents(&fixture);
    assert_eq!(after.len(), 3);
    for (key, node) in &after {
        assert_eq!(node.id, before[key].id, "{key}");
    }
    verify(&fixture);

    // What stayed can go later, by the same name.
    forget(&fixture, "acme/demo", true);
    let done = forget(&fixture, "acme/demo", false);
    assert_eq!(
        (&done["repo_id"], &done["documents_removed"]),
        (&Value::Null, &json!(3))
    );
    assert!(documents(&fixture).is_empty());
    let engine = fixture.board.engine();
    let error = engine
        .koi()
        .forget_repository(&fixture.owner(), "acme/demo", false)
        .unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert_eq!(error.hint.as_deref(), Some("none is registered"));
    verify(&fixture);
}

#[test]
fn koi_repos_need_the_permission_to_remove_unless_the_documents_stay() {
    let fixture = Fixture::new();
    let (repo, _) = sample(&fixture);
    register(&fixture, &repo, "acme/demo");
    let mut principal = Principal::owner(Space::default());
    principal.scopes = vec![Scope::Read, Scope::Write];
    let writer = Caller::new(principal);
    let engine = fixture.board.engine();
    let error = engine.koi().forget_repository(&writer, "acme/demo", false);
    assert_eq!(error.unwrap_err().code, Code::Denied);
    engine
        .koi()
        .forget_repository(&writer, "acme/demo", true)
        .unwrap();
}

#[test]
fn koi_repos_an_unknown_name_is_named_wherever_it_is_asked_for() {
    let fixture = Fixture::new();
    let (repo, _) = sample(&fixture);
    let asked = |action: &str, name: &str| {
        let asked = json!({ "action": action, "repo_name": name });
        call(&fixture, "github_scan", asked)
    };
    let none = asked("scan", "no/such");
    let message = none["message"].as_str().unwrap();
    assert!(
        message.contains("`no/such`") && message.contains("none is registered"),
        "{none}"
    );
    register(&fixture, &repo, "acme/demo");
    for found in [asked("scan", "no/such"), asked("status", "no/such")] {
        let message = found["message"].as_str().unwrap();
        assert!(
            message.contains("`no/such`") && message.contains("acme/demo"),
            "{found}"
        );
    }
    let request = github_files::Request {
        repo_name: Some("no/such".to_owned()),
        limit: None,
    };
    let files = github_files::answer(fixture.board.engine(), &fixture.owner(), request).unwrap();
    let files = serde_json::to_value(files).unwrap();
    assert!(
        files["message"].as_str().unwrap().contains("`no/such`"),
        "{files}"
    );
    for action in ["scan", "status"] {
        assert!(asked(action, "ACME/demo")["message"].is_null());
    }
}

#[test]
fn koi_repos_the_default_branch_is_found_out() {
    let fixture = Fixture::new();
    let repo = Repo::new(&fixture, "r");
    repo.put("a.md", "on the trunk\n").commit();
    repo.git(&["branch", "--move", "main", "trunk"]);
    let new = |branch: Option<&str>| NewRepository {
        repo_url: repo.0.to_str().unwrap().to_owned(),
        repo_name: Some("r".to_owned()),
        branch: branch.map(str::to_owned),
    };
    let engine = fixture.board.engine();
    let register = |branch: Option<&str>| {
        let done = engine
            .koi()
            .register_repository(&fixture.owner(), &new(branch));
        done.unwrap().status
    };
    assert_eq!(register(None), "added");
    assert!(
        status(&fixture)["repos"][0]["branch"].is_null(),
        "nobody has looked yet"
    );
    scan(&fixture);
    assert_eq!(status(&fixture)["repos"][0]["branch"], "trunk");
    assert_eq!(register(None), "already_registered");

    // The repository changes its mind, and is followed.
    repo.git(&["checkout", "--quiet", "-b", "next"]);
    repo.put("b.md", "on the next branch\n").commit();
    scan(&fixture);
    assert_eq!(status(&fixture)["repos"][0]["branch"], "next");
    assert_eq!(documents(&fixture).len(), 2);

    // A head that is on no branch is read as it is.
    repo.git(&["checkout", "--quiet", "--detach", "trunk"]);
    scan(&fixture);
    assert_eq!(documents(&fixture).len(), 1);

    // Who names a branch gets that one, and is told of those that there are.
    assert_eq!(register(Some("next")), "updated");
    scan(&fixture);
    assert_eq!(documents(&fixture).len(), 2);
    assert_eq!(register(Some("nowhere")), "updated");
    let found = call(&fixture, "github_scan", json!({ "action": "scan" }));
    let error = found["results"][0]["error"].as_str().unwrap();
    assert!(
        error.contains("no branch `nowhere`") && error.contains("`next`, `trunk`"),
        "{error}"
    );

    let empty = Repo::new(&fixture, "empty");
    let new = NewRepository {
        repo_url: empty.0.to_str().unwrap().to_owned(),
        ..NewRepository::default()
    };
    engine
        .koi()
        .register_repository(&fixture.owner(), &new)
        .unwrap();
    let asked = json!({ "action": "scan", "repo_name": "empty" });
    let found = call(&fixture, "github_scan", asked);
    let error = found["results"][0]["error"].as_str().unwrap();
    assert!(error.contains("no commits"), "{error}");
}

#[test]
fn koi_repos_run_only_where_somebody_scans_by_the_clock() {
    let fixture = Fixture::new();
    assert_eq!(status(&fixture)["running"], false);
    let sensors = Sensors::start(fixture.board.engine(), Duration::from_secs(600));
    assert_eq!(status(&fixture)["running"], true);
    assert_eq!(
        status(&fixture.again(Selection::default()))["running"],
        false,
        "another process that does not serve"
    );
    sensors.stop(Duration::from_secs(20));
    assert_eq!(status(&fixture)["running"], false);
}
