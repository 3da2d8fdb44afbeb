//! Items that the original validated, and signing a whole project at once.

use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::{Value, json};
use std::fs;

const AT: &str = "2026-01-02T03:04:05Z";

struct Project {
    fixture: Fixture,
}

impl Project {
    fn new() -> Self {
        let fixture = Fixture::without_vault(Selection::default());
        Self { fixture }
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.fixture.project().join(".ai").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.fixture.project().join(".ai").join(name)).unwrap()
    }

    fn execute(&self, item_type: &str, action: &str, id: &str, parameters: Value) -> Value {
        let reply = self.fixture.call(
            "execute",
            json!({ "item_type": item_type, "action": action, "item_id": id, "parameters": parameters }),
        );
        reply.to_json()
    }

    fn status(&self, item_type: &str, id: &str) -> Value {
        self.execute(item_type, "run", id, json!({}))["status"].take()
    }
}

/// A hash as the original's Python computes it.
fn hash(form: &Value) -> String {
    kenning_text::hex::sha256(
        kenning_text::json::canonical(form, kenning_text::json::Spelling::Ascii).as_bytes(),
    )
}

fn sha(text: &str) -> String {
    kenning_text::hex::sha256(text.as_bytes())
}

#[test]
fn an_item_that_was_edited_since_the_original_validated_it_is_modified() {
    let project = Project::new();
    let xml = "<directive name=\"hello\" version=\"1.0.0\">\n  <metadata>\n    <description>Says hello</description>\n    <category>demo</category>\n    <permissions><read resource=\"filesystem\" path=\"**\"/></permissions>\n    <model tier=\"fast\"/>\n  </metadata>\n  <process><step name=\"say\"><action>Say hello.</action></step></process>\n</directive>";
    let of_xml = hash(
        &json!({"directive_name": "hello", "version": "1.0.0", "xml_hash": sha(xml), "metadata": {}}),
    );
    let directive =
        format!("<!-- kiwi-mcp:validated:{AT}:{of_xml} -->\n# Hello\n\n```xml\n{xml}\n```\n");
    let body = "Warm up slowly.";
    let of_entry = hash(&json!({
        "id": "001-a", "version": "1.0.0", "content_hash": sha(body),
        "metadata": {"category": "email", "entry_type": "pattern", "tags": ["mail"]},
    }));
    let entry = format!(
        "<!-- kiwi-mcp:validated:{AT}:{of_entry} -->\n---\nzettel_id: 001-a\ntitle: A\nentry_type: pattern\nversion: 1.0.0\ncategory: email\ntags: [mail]\n---\n\n{body}\n"
    );
    let of_body = hash(&json!({
        "zettel_id": "002-b", "version": "1.0.0", "content_hash": sha(body), "frontmatter": {},
    }));
    let early = format!(
        "---\nzettel_id: 002-b\ntitle: B\nentry_type: pattern\nversion: 1.0.0\nvalidated_at: {AT}\ncontent_hash: {of_body}\n---\n\n{body}\n"
    );
    let source = "tool_id: wc\ntool_type: script\nexecutor_id: bash_runtime\nversion: 1.0.0\n";
    let of_tool = hash(&json!({
        "tool_id": "wc", "version": "1.0.0",
        "manifest": {"tool_id": "wc", "tool_type": "script", "executor_id": "bash_runtime", "version": "1.0.0"},
        "files": [{"path": "wc.yaml", "sha256": sha(source)}],
    }));
    let tool = format!("# kiwi-mcp:validated:{AT}:{of_tool}\n{source}");
    for (item_type, id, path, text, edit) in [
        (
            "directive",
            "hello",
            "directives/demo/hello.md",
            directive,
            ("Say hello.", "Say bye."),
        ),
        (
            "knowledge",
            "001-a",
            "knowledge/email/001-a.md",
            entry,
            ("slowly", "fast"),
        ),
        (
            "knowledge",
            "002-b",
            "knowledge/email/002-b.md",
            early,
            ("slowly", "fast"),
        ),
        (
            "tool",
            "wc",
            "tools/wc.yaml",
            tool,
            ("bash_runtime", "python_runtime"),
        ),
    ] {
        project.put(path, &text);
        assert_eq!(project.status(item_type, id), "validated", "{id}");
        project.put(path, &text.replace(edit.0, edit.1));
        let refused = project.execute(item_type, "run", id, json!({}));
        assert_eq!(refused["status"], "modified", "{refused}");
        assert_ne!(refused["computed"], refused["stored"]);
        let error = refused["error"].as_str().unwrap();
        assert!(error.ends_with("content has been modified since last validation"));
        // Who has looked at it signs it, and from then on our signature counts.
        assert_eq!(
            project.execute(item_type, "sign", id, json!({}))["status"],
            "signed"
        );
        assert_ne!(project.status(item_type, id), "modified");
    }
}

#[test]
fn a_project_is_signed_in_one_go_once_the_list_is_confirmed() {
    let project = Project::new();
    let entry = |id: &str, category: &str| {
        format!(
            "---\nzettel_id: {id}\ntitle: {id}\nentry_type: pattern\ncategory: {category}\n---\n\nText.\n"
        )
    };
    for (category, id) in [("email", "001-a"), ("email", "002-b"), ("web", "003-c")] {
        project.put(
            &format!("knowledge/{category}/{id}.md"),
            &entry(id, category),
        );
    }
    project.put("knowledge/web/004-bad.md", "no frontmatter\n");
    let before = project.text("knowledge/email/001-a.md");
    let asked = project.execute("knowledge", "sign", "*", json!({}));
    assert_eq!(asked["error"], "Signing 3 items requires confirmation");
    assert_eq!(asked["required"], json!({ "confirm": true }));
    let items = asked["items"].as_array().unwrap();
    assert_eq!(items.len(), 4, "{asked}");
    assert_eq!(
        (&items[0]["id"], &items[0]["state"]),
        (&json!("001-a"), &json!("unsigned"))
    );
    assert_eq!(items[3]["state"], "invalid");
    assert_eq!(project.text("knowledge/email/001-a.md"), before);
    // An agent is shown the list and what a person types, and signs nothing.
    let fixture = &project.fixture;
    let arguments = json!({ "item_type": "knowledge", "action": "sign", "item_id": "*", "parameters": { "confirm": true } });
    let reply = fixture.board.call("execute", arguments, &fixture.agent());
    let refused = reply.unwrap().to_json();
    assert_eq!(refused["status"], "person_required", "{refused}");
    assert_eq!(
        refused["command"],
        "kenning --project . kiwi sign knowledge '*'"
    );
    assert_eq!(refused["items"].as_array().unwrap().len(), 4);
    assert_eq!(project.text("knowledge/email/001-a.md"), before);
    let confirmed = json!({ "confirm": true });
    let of_web = project.execute("knowledge", "sign", "web/*", confirmed.clone());
    assert_eq!(of_web["signed"][0]["id"], "003-c", "{of_web}");
    assert_eq!(of_web["failed"][0]["id"], "004-bad");
    let done = project.execute("knowledge", "sign", "*", confirmed.clone());
    assert_eq!(done["status"], "signed");
    assert_eq!(done["signed"].as_array().unwrap().len(), 2);
    assert_eq!(done["unchanged"], 1);
    assert_eq!(done["summary"], "2 signed, 1 failed, 1 signed before");
    for id in ["001-a", "002-b", "003-c"] {
        assert_eq!(project.status("knowledge", id), "executed");
    }
    let again = project.execute("knowledge", "sign", "00?-a", json!({}));
    assert_eq!(
        (&again["status"], &again["unchanged"]),
        (&json!("signed"), &json!(1)),
        "nothing is left to confirm"
    );
    let wrong = project.execute("knowledge", "create", "*", confirmed);
    assert!(wrong["error"].as_str().unwrap().contains("pattern"));
}
