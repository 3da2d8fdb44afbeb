//! Workflows, agents and trajectories at the command line.

use crate::{Place, Server};
use kenning_testing_llm::{Reply, Scripted};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::mpsc::channel;

fn told(place: &Place, arguments: &[&str]) -> Value {
    let mut all = vec!["--json"];
    all.extend(arguments);
    serde_json::from_str(&place.good(&all)).unwrap()
}

fn with_draft(place: &Place) {
    let docs = place.0.path().join("docs");
    std::fs::create_dir_all(&docs).unwrap();
    std::fs::write(docs.join("draft.md"), "# Draft\n\nHow it works: TBD\n").unwrap();
}

#[test]
fn a_workflow_is_suspended_resumed_and_stopped_and_leaves_a_trajectory() {
    let place = Place::new();
    with_draft(&place);
    let started = told(
        &place,
        &["workflow", "start", "collaboration", "docs/draft.md"],
    );
    assert_eq!(started["status"], "running", "{started}");
    let id = started["id"].as_str().unwrap();
    let waits = told(&place, &["workflow", "suspend", id]);
    assert_eq!(waits["status"], "suspended", "{waits}");
    let listed = told(&place, &["workflow", "list", "--status", "suspended"]);
    assert_eq!(listed["workflows"][0]["id"], id, "{listed}");
    let resumed = told(&place, &["workflow", "resume", id]);
    assert_eq!(
        (&resumed["status"], &resumed["currentStep"]),
        (&json!("running"), &json!("watching")),
        "{resumed}"
    );
    let stopped = told(&place, &["workflow", "stop", id]);
    assert_eq!(
        (&stopped["status"], &stopped["outcome"]),
        (&json!("failed"), &json!("cancelled")),
        "{stopped}"
    );
    let (code, error) = place.bad(&["workflow", "resume", id]);
    assert!(error.contains("cannot go on"), "{code}: {error}");
    let trajectory = stopped["trajectoryId"].as_str().unwrap();
    let listed = told(&place, &["trajectory", "list", "--workflow", id]);
    assert!(listed.to_string().contains(trajectory), "{listed}");
    let none = told(&place, &["trajectory", "list", "--success"]);
    assert!(!none.to_string().contains(trajectory), "{none}");
    let shown = told(&place, &["trajectory", "show", trajectory]);
    assert!(shown.to_string().contains("initialize"), "{shown}");
    assert!(told(&place, &["trajectory", "patterns"]).is_object());
    let history = told(&place, &["workflow", "history", id]);
    assert!(history["steps"].as_array().unwrap().len() >= 3, "{history}");
}

/// The model is asked while the agent works; until it answers, the agent is at work.
#[test]
fn an_agent_of_another_process_is_cancelled() {
    let place = Place::new();
    let ((asked, was_asked), (go, goes_on)) = (channel(), channel::<()>());
    let (asked, goes_on) = (Mutex::new(asked), Mutex::new(goes_on));
    let model = Scripted::by(move |_, _| {
        asked.lock().unwrap().send(()).unwrap();
        // Until the other end is dropped.
        assert!(goes_on.lock().unwrap().recv().is_err());
        Reply::call("kg_stats", json!({}))
    });
    let mut spawn = place.command(&["agent", "spawn", "analyst", "Measure", "--name", "ann"]);
    spawn
        .env("KENNING_MODEL_ENDPOINT", model.url("/v1"))
        .env("KENNING_MODEL_NAME", "tiny");
    let child = std::thread::spawn(move || spawn.output().unwrap());
    was_asked
        .recv_timeout(std::time::Duration::from_secs(120))
        .unwrap();
    let ann = place.good(&["--json", "agent", "status", "ann"]);
    assert!(ann.contains("\"running\""), "{ann}");
    assert_eq!(told(&place, &["agent", "cancel", "ann"])["cancelled"], true);
    drop(go);
    let output = child.join().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{error}");
    assert!(error.contains("Task was cancelled"), "{error}");
    let ann = place.good(&["--json", "agent", "status", "ann"]);
    assert!(ann.contains("\"terminated\""), "{ann}");
    assert_eq!(
        told(&place, &["agent", "cancel", "ann"])["cancelled"],
        false
    );
    let (_, error) = place.bad(&["agent", "cancel", "nobody"]);
    assert!(error.contains("nobody"), "{error}");
}

#[test]
fn a_sync_exchanges_with_a_peer() {
    let (there, here) = (Place::new(), Place::new());
    with_draft(&here);
    let did = |place: &Place| place.good(&["peer", "id"]).trim().to_owned();
    let memory = json!({ "content": "walruses sleep on ice", "memory_type": "fact" });
    there.good(&["call", "memory_store", "--json", &memory.to_string()]);
    there.good(&["peer", "add", "--did", &did(&here)]);
    let server = Server::start(&there, &[]);
    let url = format!("http://127.0.0.1:{}", server.port);
    here.good(&["peer", "add", &url, "--did", &did(&there)]);
    let done = told(&here, &["workflow", "start", "sync", "docs"]);
    assert_eq!(done["outcome"], "completed", "{done}");
    assert!(
        done["artifacts"].to_string().contains(": exchanged"),
        "{done}"
    );
    let query = json!({ "query": "walruses ice" }).to_string();
    let found = here.good(&["call", "memory_recall", "--json", &query]);
    assert!(found.contains("walruses sleep on ice"), "{found}");
    // A peer that does not answer fails its step and not the run.
    drop(server);
    let done = told(&here, &["workflow", "start", "sync", "docs"]);
    assert_eq!(done["outcome"], "completed", "{done}");
    let id = done["id"].as_str().unwrap();
    let steps = told(&here, &["workflow", "history", id])["steps"].clone();
    let steps = steps.as_array().unwrap();
    let exchange = steps
        .iter()
        .find(|it| it["action"] == "sync-peers")
        .unwrap();
    assert_eq!(exchange["outcome"], "failure", "{exchange}");
}
