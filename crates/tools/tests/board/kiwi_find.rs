//! Finding items and tools: what is shown of them, in which order, and of which project.

use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn put(project: &Path, name: &str, text: &str) {
    let path = project.join(".ai").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn directive(name: &str, description: &str) -> String {
    format!(
        "---\nname: {name}\nversion: 1.0.0\ndescription: {description}\n---\n\n# {name}\n\nStep.\n"
    )
}

fn lean() -> Fixture {
    Fixture::without_vault(Selection {
        toolsets: vec!["lean".to_owned()],
        ..Selection::default()
    })
}

fn call(fixture: &Fixture, tool: &str, arguments: Value) -> Value {
    let reply = fixture.call(tool, arguments);
    assert!(!reply.is_error(), "{}", reply.text);
    reply.to_json()
}

fn ids(found: &Value) -> Vec<&str> {
    let rows = found["results"].as_array().unwrap();
    rows.iter().map(|it| it["id"].as_str().unwrap()).collect()
}

#[test]
fn in_lean_mode_a_search_for_tools_finds_those_of_the_server_with_their_parameters() {
    let fixture = lean();
    let asked = json!({ "item_type": "tool", "query": "recall memories" });
    let found = call(&fixture, "search", asked.clone());
    assert_eq!(ids(&found)[0], "memory_recall", "{found}");
    let row = &found["results"][0];
    assert!(
        row["parameters"]["properties"]["query"].is_object(),
        "{row}"
    );
    // Where they are listed anyway, a search for items is not cluttered with them.
    let all = Fixture::without_vault(Selection::default());
    assert!(!ids(&call(&all, "search", asked)).contains(&"memory_recall"));
    // What was excluded is not found.
    let without = Fixture::without_vault(Selection {
        toolsets: vec!["lean".to_owned()],
        exclude_tools: vec!["memory_recall".to_owned()],
        ..Selection::default()
    });
    let found = call(
        &without,
        "search",
        json!({ "item_type": "tool", "query": "memory_recall" }),
    );
    assert!(!ids(&found).contains(&"memory_recall"));
}

#[test]
fn the_schemas_of_one_answer_stay_within_a_limit() {
    let found = call(
        &lean(),
        "search",
        json!({ "item_type": "tool", "query": "search find list get memory graph", "limit": 100 }),
    );
    let rows = found["results"].as_array().unwrap();
    let sizes = rows.iter().map(|it| it["parameters"].to_string().len());
    assert!(sizes.sum::<usize>() < 20_000);
    assert!(rows[0]["parameters"].is_object());
}

#[test]
fn help_tells_the_parameters_of_any_tool_and_the_version_of_the_api() {
    let fixture = lean();
    put(
        &fixture.project(),
        "tools/text/word_count/manifest.yaml",
        "tool_id: word_count\ntool_type: script\nexecutor_id: bash_runtime\nversion: 1.0.0\ndescription: Counts words\nparameters:\n  - name: text\n    type: string\n    required: true\n    description: What to count\nmanifest:\n  entrypoint: main.sh\n",
    );
    let overview = call(&fixture, "help", json!({}));
    assert_eq!(overview["api_version"], "1.0.0");
    assert!(
        overview["help"]
            .as_str()
            .unwrap()
            .contains("API version: 1.0.0")
    );
    let help = call(&fixture, "help", json!({ "topic": "kg_query" }));
    assert_eq!(help["topic"], "kg_query");
    assert!(
        help["help"].as_str().unwrap().contains("| `query` |"),
        "{help}"
    );
    assert!(help["parameters"]["properties"].is_object());
    let own = call(&fixture, "help", json!({ "topic": "word_count" }));
    assert!(
        own["help"]
            .as_str()
            .unwrap()
            .contains("| `text` | string | yes |  | What to count |"),
        "{own}"
    );
    let near = call(&fixture, "help", json!({ "topic": "kg_querry" }));
    assert_eq!(near["topic"], "overview");
    assert!(
        near["help"]
            .as_str()
            .unwrap()
            .contains("Did you mean `kg_query`?")
    );
    // A tool that is an item is found with its parameters too.
    let found = call(
        &fixture,
        "search",
        json!({ "item_type": "tool", "query": "word_count" }),
    );
    assert_eq!(
        found["results"][0]["parameters"]["required"],
        json!(["text"]),
        "{found}"
    );
}

#[test]
fn a_name_that_is_nearly_right_is_answered_with_the_right_one() {
    let fixture = lean();
    put(
        &fixture.project(),
        "directives/release_notes.md",
        &directive("release_notes", "Writes notes"),
    );
    for (item_type, asked, meant) in [
        ("tool", "kg_querry", "kg_query"),
        ("directive", "release_note", "release_notes"),
        ("directive", "create-knowledge", "create_knowledge"),
    ] {
        let reply = fixture.call(
            "execute",
            json!({ "item_type": item_type, "action": "run", "item_id": asked }),
        );
        let refused = reply.to_json();
        assert_eq!(refused["did_you_mean"][0], meant, "{refused}");
        let error = reply.error.unwrap();
        assert!(
            error
                .hint
                .unwrap()
                .contains(&format!("Did you mean `{meant}`?"))
        );
    }
    let other = fixture.call(
        "execute",
        json!({ "item_type": "directive", "action": "run", "item_id": "banana" }),
    );
    assert_eq!(other.to_json()["did_you_mean"], Value::Null);
}

#[test]
fn reading_a_text_is_no_success_and_runs_of_a_tool_are_counted() {
    let fixture = Fixture::without_vault(Selection::default());
    put(
        &fixture.project(),
        "directives/hello.md",
        &directive("hello", "Says hello"),
    );
    let execute = |item_type: &str, action: &str, id: &str| {
        call(
            &fixture,
            "execute",
            json!({ "item_type": item_type, "action": action, "item_id": id }),
        )
    };
    let row = |item_type: &str, id: &str| {
        let asked = json!({ "item_type": item_type, "query": id });
        call(&fixture, "search", asked)["results"][0].take()
    };
    execute("directive", "sign", "hello");
    let before = row("directive", "hello");
    assert_eq!(
        before["quality_score"], 100.0,
        "valid and signed is all that applies"
    );
    put(
        &fixture.project(),
        "directives/other.md",
        &directive("other", "Says other"),
    );
    let unsigned = row("directive", "other")["quality_score"].take();
    assert_eq!(unsigned, 70.6);
    for _ in 0..5 {
        execute("directive", "run", "hello");
    }
    let after = row("directive", "hello");
    assert_eq!(after["quality_score"], before["quality_score"]);
    assert_eq!(after["success_rate"], Value::Null);
}

#[test]
fn results_are_sorted_by_what_the_caller_names() {
    let fixture = Fixture::without_vault(Selection::default());
    for (name, description) in [
        ("b_deploy", "Deploy the site"),
        (
            "a_deploy",
            "Deploy the site, with a much longer text about other things",
        ),
        ("c_deploy", "Deploy"),
    ] {
        put(
            &fixture.project(),
            &format!("directives/{name}.md"),
            &directive(name, description),
        );
    }
    let signed = fixture.call(
        "execute",
        json!({ "item_type": "directive", "action": "sign", "item_id": "b_deploy" }),
    );
    assert!(!signed.is_error(), "{}", signed.text);
    let sorted = |sort: &str, limit: u64| {
        call(
            &fixture,
            "search",
            json!({ "item_type": "directive", "query": "deploy", "sort": sort, "limit": limit }),
        )
    };
    assert_eq!(
        ids(&sorted("name", 10)),
        ["a_deploy", "b_deploy", "c_deploy"]
    );
    assert_eq!(ids(&sorted("name", 1)), ["a_deploy"]);
    assert_eq!(ids(&sorted("quality_score", 1)), ["b_deploy"]);
    let relevance: Vec<f64> = sorted("relevance", 10)["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["relevance"].as_f64().unwrap())
        .collect();
    assert!(relevance.is_sorted_by(|a, b| a >= b), "{relevance:?}");
    let wrong = fixture.call(
        "search",
        json!({ "item_type": "directive", "query": "deploy", "sort": "best" }),
    );
    assert!(
        wrong.is_error() && wrong.text.contains("quality_score"),
        "{}",
        wrong.text
    );
}

#[test]
fn directives_that_come_with_the_program_are_found_and_run() {
    let fixture = Fixture::without_vault(Selection::default());
    let found = call(
        &fixture,
        "search",
        json!({ "item_type": "directive", "query": "create_knowledge" }),
    );
    assert_eq!(ids(&found)[0], "create_knowledge", "{found}");
    let execute = |parameters: Value| {
        fixture.call(
            "execute",
            json!({ "item_type": "directive", "action": "run", "item_id": "create_knowledge", "parameters": parameters }),
        )
    };
    let missing = execute(json!({ "title": "x" })).to_json();
    assert_eq!(
        missing["missing_inputs"],
        json!(["zettel_id", "entry_type"])
    );
    let wrong = execute(json!({ "zettel_id": "1", "title": "x", "entry_type": "novel" }));
    assert!(wrong.is_error());
    let run = execute(json!({ "zettel_id": "001-a", "title": "x", "entry_type": "pattern" }));
    let run = run.to_json();
    assert_eq!(
        (&run["status"], &run["source"]),
        (&json!("executed"), &json!("builtin"))
    );
    assert!(
        run["content"]
            .as_str()
            .unwrap()
            .contains("Create a knowledge entry")
    );
    assert!(run["run_id"].is_string());
    // An item of the same name takes its place.
    put(
        &fixture.project(),
        "directives/create_knowledge.md",
        &directive("create_knowledge", "Our own way"),
    );
    let found = call(
        &fixture,
        "search",
        json!({ "item_type": "directive", "query": "create_knowledge" }),
    );
    let rows = ids(&found)
        .into_iter()
        .filter(|it| *it == "create_knowledge");
    assert_eq!(rows.count(), 1, "{found}");
    assert_eq!(
        execute(json!({})).to_json()["error"],
        "Directive has no signature"
    );
}

#[test]
fn a_search_stays_in_its_project() {
    let fixture = Fixture::without_vault(Selection {
        toolsets: vec!["all".to_owned()],
        ..Selection::default()
    });
    let other = fixture.project().join("packages/other");
    for (project, word) in [(fixture.project(), "mine"), (other.clone(), "theirs")] {
        put(
            &project,
            &format!("directives/zeppelin_{word}.md"),
            &directive(&format!("zeppelin_{word}"), "Steer a zeppelin"),
        );
    }
    let search = |item_type: &str, path: Option<&Path>| {
        let mut asked = json!({ "item_type": item_type, "query": "zeppelin" });
        if let Some(path) = path {
            asked["project_path"] = path.to_string_lossy().into_owned().into();
        }
        call(&fixture, "search", asked)
    };
    for item_type in ["directive", "any"] {
        assert_eq!(ids(&search(item_type, None)), ["zeppelin_mine"]);
        assert_eq!(ids(&search(item_type, Some(&other))), ["zeppelin_theirs"]);
        assert_eq!(ids(&search(item_type, None)), ["zeppelin_mine"]);
    }
    // Documents belong to projects too; memories belong to none.
    fixture.put_document(
        "docs/airship.md",
        "# Airship\n\nA zeppelin is an airship.\n",
    );
    call(&fixture, "kg_graph_generate", json!({}));
    call(
        &fixture,
        "memory_store",
        json!({ "content": "The zeppelin is in hangar two" }),
    );
    let types = |path: Option<&Path>| {
        let found = search("any", path);
        let rows = found["results"].as_array().unwrap();
        let mut types: Vec<String> = rows
            .iter()
            .map(|it| it["item_type"].as_str().unwrap().to_owned())
            .collect();
        types.sort_unstable();
        types
    };
    assert_eq!(types(None), ["directive", "document", "memory"]);
    assert_eq!(types(Some(&other)), ["directive", "memory"]);
}

#[test]
fn items_are_followed_after_their_folder_was_removed_and_made_again() {
    let fixture = Fixture::new();
    let folder = fixture.project().join(".ai/knowledge");
    let put = |id: &str| {
        std::fs::create_dir_all(&folder).unwrap();
        let entry =
            format!("---\nzettel_id: {id}\ntitle: Mill {id}\n---\nHow the mill of {id} works.\n");
        std::fs::write(folder.join(format!("{id}.md")), entry).unwrap();
    };
    let found = || {
        let asked = serde_json::json!({ "item_type": "knowledge", "query": "mill", "limit": 100 });
        let answer = fixture.call("search", asked).to_json();
        let rows = answer["results"].as_array().unwrap().iter();
        let mut ids: Vec<String> = rows
            .map(|it| it["id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids
    };
    // What the kernel tells comes a moment later.
    let expect = |wanted: &[&str]| {
        let began = std::time::Instant::now();
        while found() != wanted {
            assert!(
                began.elapsed().as_secs() < 30,
                "{wanted:?} and not {:?}",
                found()
            );
            std::thread::yield_now();
        }
    };
    put("first");
    expect(&["first"]);
    expect(&["first"]);
    for round in ["second", "third"] {
        std::fs::remove_dir_all(&folder).unwrap();
        put(round);
        expect(&[round]);
        // The new folder is followed as the old one was.
        put("later");
        expect(&["later", round]);
    }
}

#[test]
fn what_is_called_as_was_asked_comes_before_texts_that_mention_it_often() {
    let fixture = Fixture::without_vault(Selection::default());
    let titles = [
        "Deploy to production",
        "Rotate passwords",
        "Incident response",
        "Backup schedule",
        "Feature flags",
        "Vacation policy",
        "Code review",
        "Postgres tuning",
    ];
    let project = fixture.project();
    for (at, title) in titles.iter().enumerate() {
        let others = (1..5).map(|step| {
            let word = titles[(at + step) % titles.len()].split(' ').next();
            let word = word.unwrap().to_lowercase();
            format!("See how we {word}; {word} {word} often.")
        });
        let text = format!(
            "---\nzettel_id: z{at:03}\ntitle: {title}\nentry_type: reference\ncategory: ops\nversion: 1.0.0\n---\n\n\
             # {title}\n\nThis says what to do. {}\n",
            others.collect::<Vec<_>>().join(" ")
        );
        put(&project, &format!("knowledge/ops/z{at:03}.md"), &text);
    }
    for (at, title) in titles.iter().enumerate() {
        let words = title.split(' ').filter(|it| it.len() > 3);
        let question = format!("how do we handle {}?", title.to_lowercase());
        for query in words.map(ToOwned::to_owned).chain([question]) {
            let asked = json!({ "item_type": "knowledge", "query": query });
            let found = call(&fixture, "search", asked);
            assert_eq!(ids(&found)[0], format!("z{at:03}"), "{query}: {found:#}");
        }
    }
}
