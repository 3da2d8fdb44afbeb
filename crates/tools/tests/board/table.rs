//! What holds for every tool.

use crate::everything;
use kenning_engine::Scope;
use kenning_testing::Fixture;
use kenning_tools::{Effect, Selection, TOOLS};
use serde_json::{Value, json};

#[test]
fn every_tool_and_every_field_is_described() {
    for tool in TOOLS {
        assert!(!tool.description().is_empty(), "{}", tool.name());
        assert!(!tool.title().is_empty(), "{}", tool.name());
        let schema = tool.input_schema();
        assert_eq!(schema["type"], "object", "{}", tool.name());
        assert_eq!(
            schema["additionalProperties"],
            json!(false),
            "{}",
            tool.name()
        );
        for (field, property) in schema["properties"].as_object().unwrap() {
            assert!(
                property.get("description").is_some(),
                "{}.{field}",
                tool.name()
            );
        }
    }
}

#[test]
fn every_example_answers_as_it_says() {
    let fixture = everything(&Fixture::new());
    fixture.put_document("docs/concepts/auth.md", "Who somebody is, and how we know.");
    fixture.call("kg_graph_generate", json!({}));
    let mut answers = String::new();
    for tool in TOOLS {
        assert!(
            !tool.examples().is_empty(),
            "{} has no example",
            tool.name()
        );
        for example in tool.examples() {
            let input: Value = serde_json::from_str(example.input).unwrap();
            let reply = fixture.call(tool.name(), input);
            let shown = format!("{}: {}: {}", tool.name(), example.title, reply.text);
            assert!(reply.text.contains(example.output), "{shown}");
            let (name, title) = (tool.name(), example.title);
            let told = if reply.is_error() { "error" } else { "answer" };
            answers += &format!("{name}: {title}\n{} -> {told}\n", example.input);
            let whole = match &reply.value {
                Some(value) => format!("{:#}", settled(value)),
                None => reply.text.clone(),
            };
            answers += &format!("{whole}\n");
            for remark in &reply.remarks {
                answers += &format!("(beside it: {remark})\n");
            }
            answers += "\n";
        }
    }
    // Any change to a whole answer is seen in review.
    insta::assert_snapshot!("examples", with_ids_numbered(&answers));
}

/// Ids of memories by the order in which they appear: the two stores draw them differently.
fn with_ids_numbered(text: &str) -> String {
    const PREFIX: &str = "mem_";
    const DIGITS: usize = 32;
    let mut seen: Vec<&str> = Vec::new();
    let mut parts = text.split(PREFIX);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let n_digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        if n_digits < DIGITS {
            out += &format!("{PREFIX}{part}");
            continue;
        }
        let (id, rest) = part.split_at(DIGITS);
        let place = seen.iter().position(|it| *it == id).unwrap_or_else(|| {
            seen.push(id);
            seen.len() - 1
        });
        out += &format!("<memory {}>{rest}", place + 1);
    }
    out
}

/// Fields that differ from run to run, and what they hold: everything else is compared as it is.
const VARYING: [(&str, &str); 24] = [
    ("executionTime", "duration"),
    ("duration", "duration"),
    ("agentId", "id"),
    ("taskId", "id"),
    ("report", "key"),
    ("uptime", "duration"),
    ("lastModified", "time"),
    // When the file of a note was written.
    ("date", "time"),
    ("pid", "id"),
    ("projectRoot", "path"),
    ("base_path_hash", "hash"),
    ("checksum", "hash"),
    ("file_size", "bytes"),
    ("rss", "bytes"),
    ("heapTotal", "bytes"),
    ("heapUsed", "bytes"),
    ("external", "bytes"),
    ("arrayBuffers", "bytes"),
    ("version", "version"),
    // A text elsewhere says how much of the machine's memory is used; whether a file was read again
    // depends on how long ago it was written.
    ("memory", "share"),
    ("cached", "whether"),
    // The counter of a hybrid clock: the first events of a store on PostgreSQL are other ones.
    ("logical", "counter"),
    ("eventRoot", "hash"),
    ("stateRoot", "hash"),
];

/// Fields of an event that vary: what is signed names the directory of the project.
const VARYING_OF_EVENT: &[&str] = &["id", "parents", "payload", "signature"];

/// An answer whose varying fields hold the name of their kind.
fn settled(answer: &Value) -> Value {
    match answer {
        Value::Object(fields) => {
            let is_event = fields.contains_key("parentCount");
            let settled = fields.iter().map(|(name, value)| {
                if is_event && VARYING_OF_EVENT.contains(&name.as_str()) {
                    return (name.clone(), format!("<{name}>").into());
                }
                let kind = VARYING.iter().find(|it| it.0 == name);
                let kind =
                    kind.filter(|_| !value.is_object() && !value.is_array() && !value.is_null());
                let is_share = value.as_str().is_some_and(|text| text.contains('%'));
                let kind = kind.filter(|_| name != "memory" || is_share);
                let value = kind.map_or_else(|| settled(value), |it| format!("<{}>", it.1).into());
                (name.clone(), value)
            });
            Value::Object(settled.collect())
        }
        Value::Array(items) => items.iter().map(settled).collect(),
        Value::String(text) if text.starts_with("agent-") => "<agent>".into(),
        other => other.clone(),
    }
}

#[test]
fn every_wrong_argument_is_an_error_that_names_itself() {
    let fixture = everything(&Fixture::new());
    for tool in TOOLS {
        let unknown = fixture.call(tool.name(), json!({ "no_such_field": 1 }));
        assert!(unknown.is_error(), "{}", tool.name());
        for field in tool.input_schema()["properties"]
            .as_object()
            .unwrap()
            .keys()
        {
            let reply = fixture.call(tool.name(), json!({ (field): { "wrong": [] } }));
            assert!(reply.is_error(), "{}.{field}", tool.name());
        }
        for arguments in [json!([]), json!("x"), json!(5), json!(true)] {
            assert!(
                fixture.call(tool.name(), arguments).is_error(),
                "{}",
                tool.name()
            );
        }
    }
}

#[test]
fn a_read_only_board_has_no_tool_that_changes_anything() {
    let fixture = Fixture::select(Selection {
        read_only: true,
        ..Selection::default()
    });
    assert!(
        fixture
            .board
            .listed()
            .iter()
            .all(|tool| tool.effect() == Effect::Read)
    );
    // Of some tools only some calls change things; those are refused by what they are asked.
    let changes = |tool: &&&dyn kenning_tools::AnyTool| {
        tool.effect() != Effect::Read && tool.scope(&json!({})) != Scope::Read
    };
    for tool in TOOLS.iter().filter(changes) {
        let reply = fixture.call(tool.name(), json!({}));
        assert!(reply.text.contains("--read-only"), "{}", reply.text);
    }
    for (name, action) in [("monitor_url", "add"), ("github_scan", "scan")] {
        let reply = fixture.call(
            name,
            json!({ "action": action, "url": "https://example.org" }),
        );
        assert!(reply.is_error(), "{name}");
    }
}

fn names(selection: Selection) -> Vec<&'static str> {
    selection
        .listed()
        .unwrap()
        .iter()
        .map(|tool| tool.name())
        .collect()
}

#[test]
fn tools_are_selected_by_toolset_and_by_name() {
    let list = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let all: Vec<_> = TOOLS.iter().map(|tool| tool.name()).collect();
    let on = TOOLS.iter().filter(|it| it.toolset().is_on_by_default());
    let on: Vec<_> = on.map(|tool| tool.name()).collect();
    assert_eq!(names(Selection::default()), on);
    assert_eq!(
        names(Selection {
            toolsets: list(&["all"]),
            ..Selection::default()
        }),
        all
    );
    let contracts = names(Selection {
        toolsets: list(&["contracts"]),
        ..Selection::default()
    });
    assert_eq!(contracts.len(), 48);
    assert!(on.iter().all(|it| contracts.contains(it)
        || it.starts_with("note_")
        || ["find", "execute_read"].contains(it)));
    let first = names(Selection::default().or_default_set());
    for name in [
        "find",
        "memory_recall",
        "memory_store",
        "now_read",
        "now_update",
        "note_list",
        "note_read",
        "note_write",
        "note_move",
        "note_delete",
        "get_entity_neighborhood",
        "search",
        "load",
        "execute",
        "execute_read",
    ] {
        assert!(first.contains(&name), "{name}");
    }
    let lean = names(Selection {
        toolsets: list(&["lean"]),
        ..Selection::default()
    });
    assert_eq!(lean, ["execute_read", "search", "load", "execute", "help"]);
    // Whoever names something gets that.
    let named = Selection {
        toolsets: list(&["omi"]),
        ..Selection::default()
    };
    assert_eq!(named.clone().or_default_set(), named);
    let one = Selection {
        tools: list(&["vault_read_note"]),
        ..Selection::default()
    };
    assert_eq!(names(one), ["vault_read_note"]);
    let none = Selection {
        toolsets: list(&["omi"]),
        ..Selection::default()
    };
    assert!(
        names(none.clone())
            .iter()
            .all(|name| !name.starts_with("vault_"))
    );
    let added = Selection {
        tools: list(&["vault_list_notes"]),
        ..none
    };
    assert!(names(added).contains(&"vault_list_notes"));
    let without = Selection {
        exclude_tools: list(&["vault_read_note"]),
        ..Selection::default()
    };
    assert!(!names(without).contains(&"vault_read_note"));
    for wrong in [
        Selection {
            toolsets: list(&["koy"]),
            ..Selection::default()
        },
        Selection {
            tools: list(&["vault_reed"]),
            ..Selection::default()
        },
    ] {
        let Err(error) = wrong.listed() else {
            panic!("it was accepted")
        };
        assert!(error.hint.is_some(), "{error}");
    }
}

/// Any change to what a model reads is seen in review.
#[test]
fn the_listing_is_the_one_that_was_reviewed() {
    let mut text = String::new();
    for tool in TOOLS {
        let hints = tool.effect().annotations();
        text += &format!(
            "{} [{}] {}\n  {}\n  {:?}\n  {}\n",
            tool.name(),
            tool.toolset().as_str(),
            tool.title(),
            tool.description(),
            hints,
            tool.input_schema(),
        );
        if let Some(schema) = tool.output_schema() {
            text += &format!("  {schema}\n");
        }
    }
    insta::assert_snapshot!("listing", text);
}

#[test]
fn every_tool_declares_the_form_of_its_answer_unless_that_is_bare_text_or_a_list() {
    let undeclared = TOOLS.iter().filter(|it| it.output_schema().is_none());
    let undeclared: Vec<&str> = undeclared.map(|it| it.name()).collect();
    let bare = [
        "note_read",
        "note_write",
        "vault_read_note",
        "vault_write_note",
        "vault_list_notes",
        "memory_recall",
        "belief_evidence",
        "belief_retrieve",
    ];
    assert_eq!(undeclared, bare);
}

/// Where a schema is `true` some clients refuse the whole listing.
#[test]
fn every_field_of_every_schema_says_what_it_is() {
    fn bare(path: &str, schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Bool(_) => found.push(path.to_owned()),
            Value::Object(schema) => {
                for (name, field) in schema
                    .get("properties")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flatten()
                {
                    bare(&format!("{path}.{name}"), field, found);
                }
                if let Some(items) = schema.get("items") {
                    bare(&format!("{path}[]"), items, found);
                }
                for key in ["anyOf", "oneOf", "allOf"] {
                    for branch in schema
                        .get(key)
                        .and_then(Value::as_array)
                        .into_iter()
                        .flatten()
                    {
                        bare(path, branch, found);
                    }
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for tool in TOOLS {
        bare(tool.name(), &tool.input_schema(), &mut found);
        if let Some(schema) = tool.output_schema() {
            bare(tool.name(), &schema, &mut found);
        }
    }
    assert_eq!(found, Vec::<String>::new());
}
