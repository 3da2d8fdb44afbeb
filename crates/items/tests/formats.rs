//! What files say, in every form that there is, and what is wrong with them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use kenning_items::directive::{self, Directive, Spelling};
use kenning_items::grants::Grants;
use kenning_items::mark::{FileHash, original};
use kenning_items::{Category, Faults, ItemType, Knowledge, Layout, Place, Tool, knowledge, tool};
use kenning_text::hex;
use serde_json::{Value, json};

/// One directive with everything in it; the hashes below are of these very bytes.
const HELLO: &str = include_str!("samples/hello_dir.xml");

fn place(item_type: ItemType, path: &str) -> Place {
    Place::of(item_type, path).unwrap()
}

fn hello() -> Place {
    place(ItemType::Directive, "demo/hello_dir.md")
}

fn fenced(xml: &str) -> String {
    format!("# Hello\n\n```xml\n{xml}\n```\n\nSee <https://example.com>.\n")
}

fn read_hello(xml: &str) -> Result<Directive, Faults> {
    directive::read(&fenced(xml), &hello())
}

/// Asserts that just these fields are at fault, each with a remedy.
fn assert_fields<T: std::fmt::Debug>(read: Result<T, Faults>, fields: &[&str], what: &str) {
    let faults = read.map(|_| what).unwrap_err();
    let found: Vec<&str> = faults.0.iter().map(|it| it.field.as_str()).collect();
    assert_eq!(found, fields, "{what}: {faults}");
    assert!(
        faults.0.iter().all(|it| !it.remedy.is_empty()),
        "{faults:?}"
    );
}

#[test]
fn an_xml_directive_says_all_that_it_says() {
    let read = read_hello(HELLO).unwrap();
    assert_eq!(read.name, "hello_dir");
    assert_eq!(read.version, "1.0.0");
    assert_eq!(read.category, "demo");
    assert_eq!(read.description, "Says hello – twice");
    assert_eq!(read.author.as_deref(), Some("me"));
    assert_eq!(read.spelling, Spelling::Xml);
    assert_eq!(
        read.relationships,
        [("requires".to_owned(), "setup".to_owned())]
    );
    let model = read.model.clone().unwrap();
    assert_eq!((model.tier.as_str(), model.parallel), ("fast", Some(false)));
    let inputs: Vec<Value> = read.inputs.iter().map(directive::Input::to_json).collect();
    assert_eq!(
        inputs,
        [
            json!({"name": "who", "type": "string", "required": true, "description": "Whom to greet"}),
            json!({"name": "times", "type": "integer", "required": false, "description": "How often", "default": 2}),
        ]
    );
    assert_eq!(read.steps[0].action, "say <b>hi</b> <![CDATA[x]]>");
    assert_eq!(read.steps[1].name, "end");
    assert_eq!(
        read.outputs,
        json!({"success": "Done", "log": [{"_attrs": {"path": "a"}}, {"_attrs": {"path": "b"}, "_text": "x"}]})
    );
    assert_eq!(
        Grants::of(&read.permissions).capabilities(),
        ["fs.read", "tool.echo_tool"]
    );
    assert_eq!(read.validated, None);
    assert_eq!(read.content, fenced(HELLO));
}

#[test]
fn each_rule_of_xml_directives_names_its_field() {
    for (from, to, fields) in [
        ("name=\"hello_dir\" ", "", &["name"][..]),
        (
            "name=\"hello_dir\"",
            "name=\"Hello-Dir\"",
            &["name", "name"],
        ),
        ("name=\"hello_dir\"", "name=\"other\"", &["name"]),
        (" version=\"1.0.0\"", "", &["version"]),
        ("version=\"1.0.0\"", "version=\"1.0\"", &["version"]),
        ("version=\"1.0.0\"", "version=\"0.0.0\"", &["version"]),
        ("version=\"1.0.0\"", "version=\"1.0.0-a\"", &["version"]),
        ("<category>demo<", "<category>else<", &["category"]),
        ("<category>demo<", "<category>../x<", &["category"]),
        ("tier=\"fast\" ", "", &["model.tier"]),
        ("tier=\"fast\"", "tier=\"huge\"", &["model.tier"]),
        ("parallel=\"false\"", "parallel=\"no\"", &["model.parallel"]),
        ("fallback=\"general\"", "fallback=\"\"", &["model.fallback"]),
        ("<model ", "<mode ", &["model"]),
        ("<permissions>", "<permissions/><x>", &["xml"]),
        (
            "<read resource=\"filesystem\" path=\"src/**\"/>",
            "<read/>",
            &["permissions.read"],
        ),
        (
            "path=\"src/**\"",
            "path=\"../**\"",
            &["permissions.read.path"],
        ),
        (
            "<requires>setup</requires>",
            "<eats>setup</eats>",
            &["relationships"],
        ),
        (
            "required=\"true\"",
            "required=\"yes\"",
            &["inputs.who.required"],
        ),
        ("<input name=\"who\"", "<input", &["inputs"]),
        ("name=\"times\"", "name=\"who\"", &["inputs"]),
        (
            "{\"type\": \"object\"",
            "{\"type\": object",
            &["inputs.schema"],
        ),
        (
            "\"minLength\"",
            "\"minimalLength\"",
            &["schema.properties.who.minimalLength"],
        ),
        ("</directive>", "</directive>\nmore", &["xml"]),
        ("<step name=\"end\">", "<step>&bomb;", &["xml"]),
        ("<directive name", "<!DOCTYPE x>\n<directive name", &[]),
    ] {
        let changed = HELLO.replacen(from, to, 1);
        assert_ne!(changed, HELLO, "{from}");
        if fields.is_empty() {
            assert!(
                read_hello(&changed).is_ok(),
                "what is before the block does not count"
            );
            continue;
        }
        assert_fields(read_hello(&changed), fields, to);
    }
    let (start, end) = (
        HELLO.find("<permissions>").unwrap(),
        HELLO.find("</permissions>").unwrap(),
    );
    let without = format!("{}{}", &HELLO[..start], &HELLO[end + 14..]);
    assert_fields(read_hello(&without), &["permissions"], "no permissions");
    let empty = format!("{}<permissions>{}", &HELLO[..start], &HELLO[end..]);
    assert_fields(read_hello(&empty), &["permissions"], "empty permissions");
    let bare = "<directive name=\"hello_dir\" version=\"1.0.0\"></directive>";
    assert_fields(read_hello(bare), &["metadata"], bare);
    let many = HELLO
        .replace("1.0.0", "1")
        .replace("tier=\"fast\"", "")
        .replace("demo", "x");
    assert_fields(
        read_hello(&many),
        &["version", "category", "model.tier"],
        "several at once",
    );
}

#[test]
fn nothing_stands_around_an_xml_block_that_could_be_taken_for_it() {
    for (text, fields) in [
        (
            format!("```xml\n{HELLO}\n```\n\n<step>late</step>\n"),
            &["xml"][..],
        ),
        (format!("```xml\n{HELLO}\n"), &["xml"]),
        (format!("{HELLO}\n<more/>"), &["xml"]),
        ("# Prose only\n".to_owned(), &["content"]),
        (String::new(), &["content"]),
    ] {
        assert_fields(directive::read(&text, &hello()), fields, &text);
    }
    assert!(
        directive::read(HELLO, &hello()).is_ok(),
        "without a fence too"
    );
}

#[test]
fn the_legacy_word_for_a_model_is_understood() {
    let legacy = HELLO.replace("<model tier", "<model_class tier");
    assert_eq!(read_hello(&legacy).unwrap().model.unwrap().tier, "fast");
}

#[test]
fn a_directive_with_a_head_says_the_same() {
    let text = "---\nname: deploy\nversion: 1.2.0\ncategory: ops\ndescription: Deploys\nauthor: me\n\
                inputs:\n  - name: env\n    type: string\n    required: true\n    schema: {enum: [dev, prod]}\n\
                \x20 - {name: n, type: integer, default: 1}\n\
                process:\n  - {name: build, action: make}\n  - push\n\
                permissions:\n  read: [\"src/**\"]\n  execute: [git_push]\n\
                model: {tier: fast}\nrelationships: {requires: [setup]}\n---\n\n# Steps\n";
    let at = place(ItemType::Directive, "ops/deploy.md");
    let read = directive::read(text, &at).unwrap();
    assert_eq!(
        (read.name.as_str(), read.version.as_str()),
        ("deploy", "1.2.0")
    );
    assert_eq!(read.inputs.len(), 2);
    assert_eq!(read.steps[1].action, "push");
    assert_eq!(
        read.relationships,
        [("requires".to_owned(), "setup".to_owned())]
    );
    assert!(Grants::of(&read.permissions).may_run("git_push"));
    let least = "---\nname: deploy\nversion: 1.0.0\n---\nx";
    assert_eq!(directive::read(least, &at).unwrap().category, "ops");
    for (from, to, fields) in [
        ("name: deploy\n", "", &["name"][..]),
        ("name: deploy", "name: other", &["name"]),
        ("version: 1.2.0\n", "", &["version"]),
        ("version: 1.2.0", "version: latest", &["version"]),
        ("category: ops", "category: else", &["category"]),
        (
            "required: true",
            "required: perhaps",
            &["inputs.env.required"],
        ),
        ("tier: fast", "tier: huge", &["model.tier"]),
        ("requires: [setup]", "eats: [setup]", &["relationships"]),
        ("src/**", "../**", &["permissions.read.path"]),
        ("# Steps", "", &["content"]),
        ("name: deploy", "name: [", &["frontmatter"]),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_fields(directive::read(&changed, &at), fields, to);
    }
}

#[test]
fn a_skill_is_a_directive_named_by_its_folder() {
    let at = place(ItemType::Directive, "office/pdf-forms/SKILL.md");
    for (head, version) in [
        ("name: PDF Forms\ndescription: Fills forms", "1.0.0"),
        ("name: x\ndescription: y\nversion: 2.0.1", "2.0.1"),
        (
            "name: x\ndescription: y\nmetadata:\n  version: \"1.3\"",
            "1.3.0",
        ),
        (
            "name: x\ndescription: y\nlicense: MIT\nallowed-tools: Bash, Read\nmodel: sonnet",
            "1.0.0",
        ),
    ] {
        let read = directive::read(&format!("---\n{head}\n---\n\n# Do\n"), &at).unwrap();
        assert_eq!(
            (read.name.as_str(), read.version.as_str()),
            ("pdf-forms", version)
        );
        assert_eq!(
            (read.category.as_str(), read.spelling),
            ("office", Spelling::Skill)
        );
    }
    for (text, fields) in [
        ("---\nname: x\n---\nb", &["description"][..]),
        ("---\ndescription: x\n---\n", &["name", "content"]),
        ("# no head", &["frontmatter"]),
        (
            "---\nname: x\ndescription: y\nversion: new\n---\nb",
            &["version"],
        ),
    ] {
        assert_fields(directive::read(text, &at), fields, text);
    }
}

#[test]
fn inputs_are_missing_wrong_or_right() {
    let directive = read_hello(HELLO).unwrap();
    for (given, missing, n_issues) in [
        (json!({"who": "you"}), &[][..], 0),
        (json!({"who": "you", "times": 3, "more": 1}), &[], 0),
        (json!({}), &["who"], 0),
        (json!(null), &["who"], 0),
        (json!({"who": null}), &["who"], 0),
        (json!({"who": 7}), &[], 1),
        (json!({"who": "y"}), &[], 1),
        (json!({"times": "often"}), &["who"], 1),
        (json!([]), &[], 1),
    ] {
        match directive::check_inputs(&directive, &given) {
            Ok(()) => assert!(missing.is_empty() && n_issues == 0, "{given}"),
            Err(fault) => {
                assert_eq!(fault.missing, missing, "{given}");
                assert_eq!(fault.issues.len(), n_issues, "{given}: {fault:?}");
            }
        }
    }
    let fields = json!({"who": "x"});
    let all = directive::with_defaults(&directive.inputs, fields.as_object().unwrap());
    assert_eq!(all, json!({"who": "x", "times": 2}));
}

const ENTRY: &str = "---\nzettel_id: 001-email\ntitle: Email\nentry_type: pattern\ncategory: email\n\
                     tags: [smtp, é]\n---\n\n# Email\n\nWarm up slowly – always.\n";

fn read_entry(text: &str) -> Result<Knowledge, Faults> {
    knowledge::read(text, &place(ItemType::Knowledge, "email/001-email.md"))
}

#[test]
fn an_entry_says_what_it_says() {
    let read = read_entry(ENTRY).unwrap();
    assert_eq!(read.zettel_id, "001-email");
    assert_eq!(
        (read.title.as_str(), read.entry_type.as_str()),
        ("Email", "pattern")
    );
    assert_eq!(read.tags, ["smtp", "é"]);
    assert_eq!(read.version, "1.0.0", "which it need not say");
    assert_eq!(read.body, "\n# Email\n\nWarm up slowly – always.\n");
    for entry_type in knowledge::ENTRY_TYPES {
        assert!(read_entry(&ENTRY.replace("pattern", entry_type)).is_ok());
    }
    let root = place(ItemType::Knowledge, "001-email.md");
    assert_eq!(knowledge::read(ENTRY, &root).unwrap().category, "email");
}

#[test]
fn each_rule_of_entries_names_its_field() {
    for (from, to, fields) in [
        ("zettel_id: 001-email\n", "", &["zettel_id"][..]),
        ("zettel_id: 001-email", "zettel_id: 002", &["zettel_id"]),
        ("title: Email\n", "", &["title"]),
        ("title: Email", "title: \"\"", &["title"]),
        ("entry_type: pattern\n", "", &["entry_type"]),
        ("pattern", "poem", &["entry_type"]),
        ("category: email", "category: fish", &["category"]),
        ("[smtp, é]", "{a: 1}", &["tags"]),
        ("tags:", "version: x\ntags:", &["version"]),
        (
            "\n# Email\n\nWarm up slowly – always.\n",
            "\n  \n",
            &["content"],
        ),
        ("---\n", "", &["frontmatter"]),
    ] {
        assert_fields(read_entry(&ENTRY.replacen(from, to, 1)), fields, to);
    }
    let error = read_entry(&ENTRY.replace("pattern", "poem"))
        .unwrap_err()
        .into_error("entry");
    assert!(error.message.contains("`poem`"));
    assert!(error.hint.unwrap().contains("api_fact, pattern, concept"));
}

fn read_tool(path: &str, text: &str) -> Result<Tool, Faults> {
    tool::read(text, &place(ItemType::Tool, path))
}

const PYTHON: &str = r##"#!/usr/bin/env python3
# -*- coding: utf-8 -*-
"""Echoes what it is told.

At length.
"""
from os import path  # "
__version__ = "1.2.3"
__tool_type__: str = 'script'
__category__ = "demo"
__dependencies__ = ["requests>=2,<3", "rich"]
__all__ = [path]

CONFIG = {
    "timeout": 10,  # seconds
    "env": {"A": "}"},
}
CONFIG_SCHEMA = {"type": "object", "properties": {"timeout": {"type": "number"}}}
ENV_CONFIG = {"interpreter": {"type": "venv_python"}, "env": {"PYTHONUNBUFFERED": "1"}}

def main():
    __version__ = "9.9.9"
    text = """
__version__ = "6.6.6"
"""
    return text
"##;

#[test]
fn a_python_file_is_read_and_not_run() {
    let read = read_tool("demo/echo.py", PYTHON).unwrap();
    assert_eq!((read.id.as_str(), read.version.as_str()), ("echo", "1.2.3"));
    assert_eq!(read.description, "Echoes what it is told.");
    assert_eq!(read.executor_id.as_deref(), Some("python_runtime"));
    assert_eq!(read.entrypoint.as_deref(), Some("echo.py"));
    assert_eq!(read.dependencies, ["requests>=2,<3", "rich"]);
    assert_eq!(
        Value::Object(read.config),
        json!({"timeout": 10, "env": {"A": "}"}})
    );
    assert_eq!(read.env["PYTHONUNBUFFERED"].as_deref(), Some("1"));
    assert_eq!(read.env_config["interpreter"]["type"], "venv_python");
    for (from, to, fields) in [
        (
            "\"1.2.3\"",
            "get_version()",
            &["__version__", "version"][..],
        ),
        ("\"1.2.3\"", "\"1\" + \"2\"", &["__version__", "version"]),
        ("__version__ = \"1.2.3\"\n", "", &["version"]),
        ("'script'", "'Bad Type'", &["tool_type"]),
        ("\"demo\"", "\"other\"", &["category"]),
        ("\"timeout\": 10", "\"timeout\": os.environ", &["CONFIG"]),
        ("\"rich\"", "\"--index-url=x\"", &["dependencies"]),
        ("\"rich\"", "\"../evil\"", &["dependencies"]),
        (
            "\"type\": \"number\"",
            "\"typ\": \"number\"",
            &["config_schema.properties.timeout.typ"],
        ),
        ("PYTHONUNBUFFERED", "A=B", &["env"]),
    ] {
        let changed = PYTHON.replacen(from, to, 1);
        assert_ne!(changed, PYTHON, "{from}");
        assert_fields(read_tool("demo/echo.py", &changed), fields, to);
    }
}

#[test]
fn scripts_say_in_comments_what_python_says_in_constants() {
    for (path, text, executor) in [
        (
            "a/hi.sh",
            "#!/bin/bash\n# Says hi\n# to all\n#\n# __version__ = \"1.0.0\"\n# __tool_type__ = \"script\"\n# __requires__ = [\"fs.read\"]\necho hi\n# __version__ = \"2.0.0\"\n",
            "bash_runtime",
        ),
        (
            "a/hi.sh",
            "#!/bin/sh\n# Says hi to all\n# version: 1.0.0\n# tool_type: script\n# requires: [fs.read]\necho\n",
            "bash_runtime",
        ),
        (
            "a/hi.js",
            "// Says hi to all\n// __version__ = \"1.0.0\"\n// __tool_type__ = \"script\"\n// requires: [fs.read]\nconsole.log()\n",
            "node_runtime",
        ),
        (
            "a/hi.js",
            "#!/usr/bin/env node\n/**\n * Says hi to all\n * version: 1.0.0\n * tool_type: script\n * requires: fs.read\n */\nx()\n",
            "node_runtime",
        ),
    ] {
        let read = read_tool(path, text).unwrap();
        assert_eq!(
            (read.version.as_str(), read.tool_type.as_str()),
            ("1.0.0", "script"),
            "{text}"
        );
        assert_eq!(read.description, "Says hi to all");
        assert_eq!(read.executor_id.as_deref(), Some(executor));
        assert_eq!(read.requires, ["fs.read"]);
    }
    assert_fields(
        read_tool("a/hi.sh", "echo\n"),
        &["version", "tool_type"],
        "nothing said",
    );
}

const MANIFEST: &str = "tool_id: my_tool\ntool_type: script\nexecutor_id: python_runtime\nversion: 1.0.0\n\
    category: scraping\ndescription: Scrapes\nmanifest:\n  entrypoint: main.py\n  language: python\n\
    parameters:\n  - {name: url, type: string, required: true}\nrequires: [net.fetch]\nmutates_state: true\n\
    permissions: {read: [\"data/**\"], net: [\"*.example.com\"], env: [API_KEY]}\nrequired_scope: registry\n\
    validation:\n  child_schemas:\n    - match: {tool_type: script}\n      schema: {type: object}\n";

#[test]
fn a_directory_is_described_by_its_manifest() {
    let read = read_tool("scraping/my_tool/manifest.yaml", MANIFEST).unwrap();
    assert_eq!(read.entrypoint.as_deref(), Some("main.py"));
    assert_eq!(read.language.as_deref(), Some("python"));
    assert_eq!(read.asks.to_json()["net"], json!(["*.example.com"]));
    assert!(read.env.contains_key("API_KEY") && read.mutates_state);
    assert_eq!(read.child_schemas.as_ref().unwrap().len(), 1);
    assert_eq!(read.required_scope.as_deref(), Some("registry"));
    assert_eq!(read.as_child()["manifest"]["entrypoint"], "main.py");
    assert_eq!(read.check_parameters(&json!({"url": "x"})), Ok(()));
    assert_eq!(
        read.check_parameters(&json!({})).unwrap_err().missing,
        ["url"]
    );
    for (from, to, fields) in [
        ("tool_id: my_tool\n", "", &["tool_id"][..]),
        ("tool_id: my_tool", "tool_id: other", &["tool_id"]),
        ("version: 1.0.0\n", "", &["version"]),
        ("version: 1.0.0", "version: one", &["version"]),
        ("tool_type: script\n", "", &["tool_type"]),
        ("category: scraping", "category: x", &["category"]),
        (
            "executor_id: python_runtime",
            "executor_id: ../x",
            &["executor_id"],
        ),
        ("main.py", "../main.py", &["manifest.entrypoint"]),
        ("main.py", "/bin/sh", &["manifest.entrypoint"]),
        ("main.py", "-c", &["manifest.entrypoint"]),
        ("net.fetch", "everything", &["requires"]),
        (
            "mutates_state: true",
            "mutates_state: perhaps",
            &["mutates_state"],
        ),
        ("data/**", "../**", &["permissions.read"]),
        (
            "schema: {type: object}",
            "schema: {typ: object}",
            &["schema.typ"],
        ),
        (
            "match: {tool_type: script}",
            "match: 1",
            &["validation.child_schemas[0]"],
        ),
        ("{name: url, ", "{", &["parameters"]),
    ] {
        let changed = MANIFEST.replacen(from, to, 1);
        assert_ne!(changed, MANIFEST, "{from}");
        assert_fields(
            read_tool("scraping/my_tool/manifest.yaml", &changed),
            fields,
            to,
        );
    }
}

#[test]
fn what_runs_a_tool_follows_from_what_it_is() {
    let head = "tool_id: t\nversion: 1.0.0\n";
    for (rest, executor) in [
        ("tool_type: script\nexecutor: mine\n", Some("mine")),
        (
            "tool_type: script\nmanifest: {entrypoint: a.py}\n",
            Some("python_runtime"),
        ),
        (
            "tool_type: script\nmanifest: {entrypoint: run, language: bash}\n",
            Some("bash_runtime"),
        ),
        (
            "tool_type: script\nmanifest: {entrypoint: a.wasm}\n",
            Some("wasm"),
        ),
        (
            "tool_type: python\nexecutor_config: {entrypoint: a}\n",
            Some("python_runtime"),
        ),
        ("tool_type: primitive\n", None),
        ("tool_type: extractor\n", None),
    ] {
        let read = read_tool("t/tool.yaml", &format!("{head}{rest}")).unwrap();
        assert_eq!(read.executor_id.as_deref(), executor, "{rest}");
    }
    let without = format!("{head}tool_type: api\n");
    assert_fields(read_tool("t.yaml", &without), &["executor_id"], "an api");
    let early =
        format!("{head}tool_type: bash\nexecutor_config: {{entrypoint: x.sh, timeout: 5}}\n");
    assert_eq!(
        read_tool("t/tool.yaml", &early).unwrap().config["timeout"],
        5
    );
}

/// Made by Python's `json` and `hashlib` from the formulas of the original.
const OF_DIRECTIVE: &str = "da127ad1924deea52a38c180cdfbb94abe4d1513fb9d80d4c784b63f7718fcef";
const OF_BODY: &str = "3275472f4e5228d3b3d648ad18611103e6d9919ca94d8471aaaf7c0c5ba0c580";
const OF_ENTRY: &str = "c27d07c359e26a6b12beb119718f9bc92d2d0b990a2dcae38459afc2be7d8978";
const OF_TOOL: &str = "f639a9b606b8fd3b2f5d11ff90fad951108c264d6cebc6853b223191fea62fd0";
const AT: &str = "2026-01-02T03:04:05Z";

#[test]
fn the_hashes_of_the_original_are_computed_as_python_does() {
    assert_eq!(
        original::directive_sha256("hello_dir", "1.0.0", HELLO),
        OF_DIRECTIVE
    );
    let files = [
        (
            "echo_tool.py",
            "\"\"\"Echoes.\"\"\"\n__version__ = \"1.0.0\"\n",
        ),
        ("a.py", "x"),
    ];
    let files = files.map(|(path, text)| FileHash {
        path: path.to_owned(),
        sha256: hex::sha256(text.as_bytes()),
    });
    let manifest = json!({"tool_type": "script", "executor_id": "python_runtime"});
    assert_eq!(
        original::tool_sha256("echo_tool", "1.0.0", &manifest, &files),
        OF_TOOL
    );
}

#[test]
fn a_tool_that_the_original_validated_is_compared_with_its_files() {
    let text =
        "tool_id: echo_tool\ntool_type: script\nexecutor_id: python_runtime\nversion: 1.0.0\n";
    let files = [FileHash {
        path: "echo_tool.yaml".to_owned(),
        sha256: hex::sha256(text.as_bytes()),
    }];
    let fields = json!({"tool_id": "echo_tool", "tool_type": "script", "executor_id": "python_runtime", "version": "1.0.0"});
    let named = json!({"name": "echo_tool", "version": "1.0.0", "tool_type": "script", "executor_id": "python_runtime",
        "category": null, "description": null, "config_schema": null, "config": null});
    for manifest in [fields, named] {
        let hash = original::tool_sha256("echo_tool", "1.0.0", &manifest, &files);
        let marked = format!("# kiwi-mcp:validated:{AT}:{hash}\n{text}");
        let tool = read_tool("demo/echo_tool.yaml", &marked).unwrap();
        assert!(tool.compared(&files).unwrap().holds(), "{manifest}");
        let changed = [FileHash {
            sha256: hex::sha256(b"other"),
            ..files[0].clone()
        }];
        let compared = tool.compared(&changed).unwrap();
        assert!(!compared.holds());
        assert_eq!(compared.stored, hash);
    }
}

/// Whether the original's hash in an entry is that of the entry.
fn holds_for(text: &str) -> Option<bool> {
    read_entry(text).unwrap().compared().map(|it| it.holds())
}

#[test]
fn the_line_of_the_original_is_read_and_compared() {
    let directive = |hash: &str| {
        let text = format!("<!-- kiwi-mcp:validated:{AT}:{hash} -->\n{}", fenced(HELLO));
        let read = directive::read(&text, &hello()).unwrap();
        read.validated.map(|it| it.holds())
    };
    assert_eq!(directive(OF_DIRECTIVE), Some(true));
    assert_eq!(directive(OF_TOOL), Some(false));
    assert_eq!(directive("abc123"), None, "a broken line is none");
    for (hash, holds) in [(OF_ENTRY, true), (OF_BODY, true), (OF_TOOL, false)] {
        let line = format!("<!-- kiwi-mcp:validated:{AT}:{hash} -->\n{ENTRY}");
        assert_eq!(holds_for(&line), Some(holds));
        let keys = format!("---\nvalidated_at: {AT}\ncontent_hash: {hash}\n");
        let head = ENTRY.replacen("---\n", &keys, 1);
        assert_eq!(holds_for(&head), Some(holds));
    }
    assert_eq!(holds_for(ENTRY), None);
    let line = format!("kiwi-mcp:validated:{AT}:{OF_TOOL}\n");
    let (shebang, rest) = PYTHON.split_once('\n').unwrap();
    let python = format!("{shebang}\n# {line}{rest}");
    let js = format!("// {line}// version: 1.0.0\n// tool_type: script\n");
    let yaml = format!("# {line}{MANIFEST}");
    for (path, text) in [
        ("demo/echo.py", python),
        ("a/hi.js", js),
        ("scraping/my_tool/manifest.yaml", yaml),
    ] {
        let validated = read_tool(path, &text).unwrap().validated.unwrap();
        assert_eq!(
            (validated.at.as_str(), validated.sha256.as_str()),
            (AT, OF_TOOL)
        );
    }
    let late = format!("{PYTHON}# {line}");
    assert_eq!(
        read_tool("demo/echo.py", &late).unwrap().validated,
        None,
        "only at its place"
    );
}

/// A directive that is right but for what is in its outputs: so many elements in one another.
fn nested_outputs(n: usize) -> String {
    format!(
        "<directive name=\"hello_dir\" version=\"1.0.0\"><metadata><description>d</description>\
         <category>demo</category><permissions><read resource=\"filesystem\" path=\"**\"/></permissions>\
         <model tier=\"fast\"/></metadata><outputs>{}{}</outputs></directive>",
        "<a>".repeat(n),
        "</a>".repeat(n)
    )
}

#[test]
fn elements_too_deep_in_one_another_are_a_fault_and_overflow_no_stack() {
    assert!(read_hello(&nested_outputs(60)).is_ok());
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    let read = thread.spawn(|| {
        for n in [65, 900, 19_900] {
            assert_fields(read_hello(&nested_outputs(n)), &["xml"], "nested");
        }
    });
    read.unwrap().join().unwrap();
}

#[test]
fn hostile_texts_are_faults_and_not_panics() {
    let deep = format!("<directive>{}", "<a>".repeat(50_000));
    let not_shallow = fenced(&nested_outputs(65));
    let closed = format!(
        "<directive>{}{}</directive>",
        "<a>".repeat(900),
        "</a>".repeat(900)
    );
    let brackets = format!("__version__ = {}", "[".repeat(100_000));
    let parentheses = format!("__version__ = {}", "(".repeat(100_000));
    let texts = [
        deep,
        not_shallow,
        closed,
        brackets,
        parentheses,
        "\u{feff}".to_owned(),
        "#!".to_owned(),
        "---".to_owned(),
        "---\n---\n".to_owned(),
        "'''".to_owned(),
        "x = '\\".to_owned(),
        "/*".to_owned(),
        "# __version__ =".to_owned(),
        "<directive></directive>".to_owned(),
        "</directive><directive >".to_owned(),
        "é".repeat(99),
        "<!-- kenning:signed: -->".to_owned(),
        "# kenning:signed:é".to_owned(),
        "```".to_owned(),
    ];
    for text in texts {
        assert!(directive::read(&text, &hello()).is_err());
        assert!(read_entry(&text).is_err());
        for extension in ["py", "sh", "js", "yaml"] {
            assert!(read_tool(&format!("a/t.{extension}"), &text).is_err());
        }
    }
}

#[test]
fn a_place_can_be_made_without_a_path() {
    let place = Place {
        id: "echo".parse().unwrap(),
        category: Category::root(),
        layout: Layout::File("py".to_owned()),
    };
    assert_eq!(tool::read(PYTHON, &place).unwrap().category, "demo");
}
