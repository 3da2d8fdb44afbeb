//! The graph through the real binary: killed, followed, and asked over the protocol.

use crate::{Client, Place};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Enough that a generation takes a while.
const FILES: usize = 1_500;

fn project(place: &Place) -> PathBuf {
    place.vault().parent().unwrap().join("project")
}

fn make_files(project: &Path) {
    let docs = project.join("docs");
    std::fs::create_dir_all(&docs).unwrap();
    for i in 0..FILES {
        let text = format!(
            "---\ntags: [t{}]\n---\n# Page {i}\n\nSee [[p{}]] and [other](p{}.md).\n",
            i % 7,
            (i + 1) % FILES,
            (i * 13) % FILES
        );
        std::fs::write(docs.join(format!("p{i}.md")), text).unwrap();
    }
}

fn kg(place: &Place, arguments: &[&str]) -> Value {
    let project = project(place).display().to_string();
    let mut words = vec!["--project", &project, "kg"];
    words.extend(arguments);
    serde_json::from_str(&place.good(&words)).unwrap()
}

/// Everything that can be seen of the graph but times.
fn picture(place: &Place) -> Value {
    let nodes = kg(place, &["query", "--limit", "1000", "--tag", "t3"])["data"].clone();
    let first = kg(place, &["get_node", "--path", "docs/p0.md"])["data"].clone();
    let links = json!([first["outgoingLinks"], first["incomingLinks"]]);
    json!([nodes, links, kg(place, &["stats"])["data"]])
}

#[test]
fn words_and_lists_are_written_plainly_on_the_command_line() {
    let place = Place::new();
    let docs = project(&place).join("docs");
    std::fs::create_dir_all(&docs).unwrap();
    std::fs::write(docs.join("a.md"), "---\ntags: [security, api]\n---\n# A\n").unwrap();
    std::fs::write(docs.join("b.md"), "---\ntags: [api]\n---\n# B\n").unwrap();
    kg(&place, &["generate"]);
    let shown = project(&place).display().to_string();
    let dot = place.good(&[
        "--project",
        &shown,
        "kg-extra",
        "kg_export",
        "--format",
        "dot",
    ]);
    assert!(dot.contains("digraph"), "{dot}");
    let count = |words: &[&str]| {
        let all: Vec<&str> = ["search_tags"].iter().chain(words).copied().collect();
        kg(&place, &all)["data"]["count"].clone()
    };
    assert_eq!(count(&["--tags", "security"]), 1);
    assert_eq!(count(&["--tags", "security", "--tags", "api"]), 2);
    assert_eq!(
        count(&["--tags", r#"["security", "api"]"#, "--match-all"]),
        1
    );
    let numbers = ["vector_upsert", "--id", "v", "--vector", "[1, 0.5]"];
    assert_eq!(kg(&place, &numbers)["data"]["dimensions"], 2);
}

#[test]
fn a_generation_that_is_killed_is_completed_by_the_next() {
    let place = Place::new();
    make_files(&project(&place));
    let shown = project(&place).display().to_string();
    for wait_ms in [40, 90, 150, 240, 400] {
        let mut child = place
            .command(&["--project", &shown, "kg", "generate"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait_ms));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let done = kg(&place, &["generate"]);
    assert_eq!(done["data"]["nodesGenerated"], FILES);
    assert_eq!(done["data"]["errorCount"], 0, "{done}");
    let verified = place.good(&["audit", "verify"]);
    assert!(!verified.contains("INVALID"), "{verified}");
    let other = Place::new();
    make_files(&project(&other));
    kg(&other, &["generate"]);
    assert_eq!(picture(&place), picture(&other));
}

/// A process that is stopped when the test ends, however it ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap_or_default();
        self.0.wait().map(drop).unwrap_or_default();
    }
}

#[test]
fn two_generations_and_a_watcher_end_in_one_graph() {
    let place = Place::new();
    let project = project(&place);
    make_files(&project);
    let shown = project.display().to_string();
    let start = |words: &[&str]| {
        let mut all = vec!["--project", shown.as_str()];
        all.extend(words);
        let mut command = place.command(&all);
        Running(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        )
    };
    let _watcher = start(&["watch"]);
    let mut both = [start(&["kg", "generate"]), start(&["kg", "generate"])];
    for child in &mut both {
        assert!(child.0.wait().unwrap().success());
    }
    std::fs::remove_file(project.join("docs/p1.md")).unwrap();
    std::fs::write(project.join("docs/new.md"), "[[p2]]").unwrap();
    std::fs::write(project.join("docs/p2.md"), "changed: [[new]]").unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let stats = kg(&place, &["stats"])["data"].clone();
        let new = kg(&place, &["query", "--query", "changed"])["data"].clone();
        if stats["totalNodes"] == FILES && new[0]["path"] == "docs/p2.md" {
            break;
        }
        assert!(Instant::now() < end, "{stats}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let followed = picture(&place);
    let again = kg(&place, &["generate", "--force", "true"]);
    assert_eq!(again["data"]["nodesUpdated"], 0, "{again}");
    assert_eq!(picture(&place), followed);
}

#[test]
fn a_client_hears_how_far_a_generation_is_and_can_stop_it() {
    let place = Place::new();
    let project = project(&place);
    make_files(&project);
    let shown = project.display().to_string();
    let mut client = Client::start(&place, &["--project", &shown]);
    let call = json!({
        "jsonrpc": "2.0", "id": 77, "method": "tools/call",
        "params": { "name": "kg_graph_generate", "arguments": {}, "_meta": { "progressToken": "p" } },
    });
    client.send(&call.to_string());
    let mut heard: Vec<f64> = Vec::new();
    let answer = loop {
        let message = client.receive();
        if message["method"] == "notifications/progress" {
            assert_eq!(message["params"]["total"], 300.0, "{message}");
            heard.push(message["params"]["progress"].as_f64().unwrap());
        } else if message["id"] == 77 {
            break message;
        }
    };
    assert!(heard.len() > 2 && heard.is_sorted(), "{heard:?}");
    assert_eq!(
        answer["result"]["structuredContent"]["data"]["nodesGenerated"],
        FILES
    );
    let found = client.call("kg_vector_search", &json!({ "query": "page 7", "k": 3 }));
    let results = &found["result"]["structuredContent"]["data"]["results"];
    assert_eq!(
        results.as_array().unwrap().len(),
        3,
        "documents are found from the start: {found}"
    );
    assert_eq!(client.finish(), 0);
}

#[test]
fn a_vault_may_be_the_project_itself() {
    let place = Place::new();
    std::fs::create_dir(place.vault().join("docs")).unwrap();
    std::fs::write(place.vault().join("docs/a.md"), "# A\n\nSee [[b]].\n").unwrap();
    let vault = place.vault();
    let vault = vault.to_str().unwrap();
    // It used to wait for a lock that it held itself.
    let made = place.good(&["kg", "generate", "--project", vault]);
    assert!(made.contains("\"nodesGenerated\":1"), "{made}");
}
