//! Agents and queries over the code of the project: it is read before they answer, or they say that it is not.

use crate::koi_repos::{Repo, call};
use kenning_engine::Caller;
use kenning_testing::Fixture;
use serde_json::{Value, json};
use std::time::Instant;

/// The fixture's project as a repository with these files.
fn project(fixture: &Fixture, files: &[(&str, &str)]) -> Repo {
    let repo = Repo(fixture.project());
    repo.git(&["init", "--quiet", "--initial-branch=main"]);
    for (path, text) in files {
        repo.put(path, text);
    }
    repo.commit();
    repo
}

fn agent(fixture: &Fixture, kind: &str, task: &str) -> Value {
    let reply = fixture.call("kg_agent_spawn", json!({ "type": kind, "task": task }));
    assert!(!reply.is_error(), "{}", reply.text);
    reply.value.unwrap()["data"].clone()
}

const SHOP: [(&str, &str); 2] = [
    (
        "src/shop.py",
        "def total(prices):\n    return sum(prices)\n\n\ndef tax(price):\n    return price * 0.2\n",
    ),
    (
        "tests/test_shop.py",
        "from src.shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
    ),
];

#[test]
fn the_first_question_about_code_is_answered_from_the_code() {
    for query in [
        "MATCH (f:Function {name: 'total'}) RETURN f.file_path AS path",
        "MATCH (f) WHERE f.name = 'total' RETURN f.file_path AS path",
    ] {
        let fixture = Fixture::new();
        project(&fixture, &SHOP);
        let found = call(&fixture, "code_query", json!({ "cypher": query }));
        assert_eq!(found["results"][0]["path"], "src/shop.py", "{found}");
        assert_eq!(found["warnings"], Value::Null, "{found}");
    }
}

#[test]
fn the_first_agent_looks_at_the_code_and_later_ones_at_the_last_commit() {
    let fixture = Fixture::new();
    let repo = project(&fixture, &SHOP);
    let result = agent(&fixture, "tester", "What is untested?")["taskResult"].clone();
    assert_eq!(result["functions"], 2, "{result:#}");
    assert_eq!(result["untested"], 1, "{result:#}");
    assert!(!result.to_string().contains("no code"), "{result:#}");
    repo.put("src/more.py", "def more():\n    pass\n");
    repo.commit();
    let result = agent(&fixture, "tester", "What is untested?")["taskResult"].clone();
    assert_eq!(result["functions"], 3, "{result:#}");
}

#[test]
fn an_answer_that_could_not_wait_for_the_scan_says_how_far_it_is() {
    let fixture = Fixture::new();
    project(&fixture, &SHOP);
    let mut caller: Caller = fixture.owner();
    caller.deadline = Instant::now();
    let koi = fixture.board.engine().koi();
    let note = koi.wait_for_project(&caller).unwrap().unwrap();
    assert!(note.contains("is still being read ("), "{note}");
    assert!(note.contains("ask again in a while"), "{note}");
    let found = call(
        &fixture,
        "code_query",
        json!({ "cypher": "MATCH (f:Function) RETURN count(f) AS n" }),
    );
    assert_eq!(found["results"][0]["n"], 3, "{found}");
}

#[test]
fn a_project_that_cannot_be_read_is_said_to_be_so() {
    let fixture = Fixture::new();
    let repo = project(&fixture, &SHOP);
    std::fs::remove_dir_all(repo.0.join(".git/objects")).unwrap();
    std::fs::create_dir(repo.0.join(".git/objects")).unwrap();
    let result = agent(&fixture, "tester", "What is untested?")["taskResult"].clone();
    let note = result["notes"][0].as_str().unwrap();
    assert!(note.contains("this project, could not be read"), "{note}");
}

#[test]
fn what_nobody_looked_at_is_not_counted_as_none() {
    let fixture = Fixture::new();
    let result = agent(&fixture, "tester", "What is broken?")["taskResult"].clone();
    let summary = result["summary"].as_str().unwrap();
    assert_eq!(
        summary,
        "broken links not looked for, untested functions not looked for."
    );
    for field in [
        "brokenLinks",
        "untested",
        "undocumented",
        "changedWithoutTest",
    ] {
        assert_eq!(result[field], Value::Null, "{field}: {result:#}");
    }
    let result = agent(&fixture, "analyst", "How good is it?")["taskResult"].clone();
    let summary = result["summary"].as_str().unwrap();
    assert!(!summary.contains("0 untested"), "{summary}");
    assert!(!summary.contains("0 broken"), "{summary}");
    assert_eq!(result["metrics"]["untestedFunctions"], Value::Null);
    // Code without any test.
    let fixture = Fixture::new();
    project(&fixture, &SHOP[..1]);
    let result = agent(&fixture, "tester", "What is untested?")["taskResult"].clone();
    let summary = result["summary"].as_str().unwrap();
    assert!(summary.contains("no test of 2 functions"), "{summary}");
    assert_eq!(result["untested"], Value::Null, "{result:#}");
    let result = agent(&fixture, "analyst", "How good is it?")["taskResult"].clone();
    assert_eq!(result["scores"]["tests"], Value::Null, "{result:#}");
}

#[test]
fn nothing_is_renamed_into_a_name_that_is_in_use() {
    let fixture = Fixture::new();
    project(
        &fixture,
        &[
            (
                "a.py",
                "def total():\n    return 1\n\n\ndef sums():\n    return total()\n\n\nclass Cart:\n    def pay(self):\n        \
                 return 1\n\n    def settle(self):\n        return self.pay()\n",
            ),
            (
                "b.py",
                "from a import total\n\n\ndef use():\n    price = 1\n    return total() + price\n",
            ),
        ],
    );
    for (task, place) in [
        ("rename total to sums", "a.py:5"),
        ("rename total to price", "b.py:5"),
        ("rename `pay` to `settle`", "a.py:13"),
    ] {
        let data = agent(&fixture, "coder", task);
        let result = &data["taskResult"];
        assert_eq!(result["patch"], Value::Null, "{task}: {result:#}");
        assert_eq!(data["artifacts"].as_array().unwrap().len(), 1, "{task}");
        let note = result["notes"][0].as_str().unwrap();
        assert!(note.contains(&format!("is in use at {place}")), "{note}");
    }
    let data = agent(&fixture, "coder", "rename total to amount");
    let patch = data["taskResult"]["patch"].as_str().unwrap();
    assert!(patch.contains("+from a import amount"), "{patch}");
    let data = agent(&fixture, "coder", "rename `pay` to `price`");
    let patch = data["taskResult"]["patch"].as_str().unwrap();
    assert!(patch.contains("+        return self.price()"), "{patch}");
}
