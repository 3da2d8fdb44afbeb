//! Items through the real program: on the command line, from a registry on another machine, by several
//! processes at once, and when one of them is killed.

use crate::{Client, Place, Server};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// A project with one directive of several texts, so that a half-written one would be seen.
fn directive(name: &str, version: &str, body: &str) -> String {
    format!(
        "---\nname: {name}\nversion: {version}\ncategory: demo\ndescription: Says {body}\n---\n\n{}\n",
        body.repeat(2_000)
    )
}

/// A tool of many files.
fn put_tool(project: &Place, files: usize, word: &str) {
    let dir = project.0.path().join(".ai/tools/demo/many");
    fs::create_dir_all(&dir).unwrap();
    let manifest = "tool_id: many\ntool_type: script\nexecutor_id: bash_runtime\nversion: 1.0.0\ncategory: demo\ndescription: Many files\nmanifest:\n  entrypoint: main.sh\n  language: bash\n";
    fs::write(dir.join("manifest.yaml"), manifest).unwrap();
    fs::write(dir.join("main.sh"), format!("echo {word}\n")).unwrap();
    for n in 0..files {
        fs::write(dir.join(format!("part-{n}.txt")), word.repeat(500)).unwrap();
    }
}

fn project() -> Place {
    let place = Place::new();
    let dir = place.0.path().join(".ai/directives/demo");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("hello.md"), directive("hello", "1.0.0", "hello ")).unwrap();
    place
}

fn answer(reply: &Value) -> Value {
    let text = reply["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default();
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{reply}"))
}

#[test]
fn items_on_the_command_line() {
    let place = project();
    let found: Value = serde_json::from_str(&place.good(&[
        "kiwi",
        "search",
        "--item-type",
        "directive",
        "--query",
        "hello",
        "--json",
    ]))
    .unwrap();
    assert_eq!(found["results"][0]["id"], "hello");
    let (code, err) = place.bad(&["kiwi", "run", "directive", "hello"]);
    assert!(code != 0 && err.contains("no signature"), "{err}");
    place.good(&["kiwi", "sign", "directive", "hello"]);
    assert!(
        place
            .good(&["kiwi", "run", "directive", "hello"])
            .contains("executed")
    );
    place.good(&[
        "kiwi",
        "publish",
        "directive",
        "hello",
        "--changelog",
        "first",
    ]);
    assert!(
        place
            .good(&["registry", "versions", "directive", "hello"])
            .contains("1.0.0")
    );
    place.good(&[
        "registry",
        "deprecate",
        "directive",
        "hello",
        "1.0.0",
        "--reason",
        "old",
    ]);
    assert!(
        place
            .good(&["registry", "versions", "directive", "hello"])
            .contains("old")
    );
    let skills = place.0.path().join("skills");
    let named = place.good(&["kiwi", "export", "--skills", skills.to_str().unwrap()]);
    assert_eq!(named.trim(), "hello");
    let skill = fs::read_to_string(skills.join("hello/SKILL.md")).unwrap();
    assert!(
        skill.starts_with("---\nname: \"hello\"\ndescription: "),
        "{skill}"
    );
    assert!(
        skill.contains("\nmetadata:\n  version: \"1.0.0\"\n"),
        "{skill}"
    );
    // What was written can be read again as a directive.
    let folder = place.0.path().join(".ai/directives/demo/copied");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("SKILL.md"),
        skill.replace("\"hello\"", "\"copied\""),
    )
    .unwrap();
    place.good(&["kiwi", "sign", "directive", "copied"]);
    assert!(
        place
            .good(&["kiwi", "run", "directive", "copied"])
            .contains("executed")
    );
    let (_, err) = place.bad(&["kiwi", "delete", "directive", "hello"]);
    assert!(err.contains("--yes"), "{err}");
    place.good(&["kiwi", "delete", "directive", "hello", "--yes"]);
    assert!(!place.0.path().join(".ai/directives/demo/hello.md").exists());
    assert!(
        place
            .good(&["kiwi", "help", "--topic", "signing"])
            .contains("Ed25519")
    );
}

#[test]
fn directives_are_resources_and_prompts() {
    let place = project();
    place.good(&["kiwi", "sign", "directive", "hello"]);
    let unsigned = directive("unsigned", "1.0.0", "x");
    fs::write(
        place.0.path().join(".ai/directives/demo/unsigned.md"),
        unsigned,
    )
    .unwrap();
    let mut client = Client::start(&place, &[]);
    let listed = client.request("resources/list", &json!({}));
    let resources = listed["result"]["resources"].as_array().unwrap();
    assert_eq!(resources.len(), 1, "{listed}");
    assert_eq!(resources[0]["uri"], "skill://hello/SKILL.md");
    let read = client.request(
        "resources/read",
        &json!({ "uri": "skill://hello/SKILL.md" }),
    );
    assert!(
        read["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .contains("hello hello")
    );
    let prompts = client.request("prompts/list", &json!({}));
    assert_eq!(prompts["result"]["prompts"][0]["name"], "hello");
    let prompt = client.request(
        "prompts/get",
        &json!({ "name": "hello", "arguments": { "who": "me" } }),
    );
    let text = prompt["result"]["messages"][0]["content"]["text"]
        .as_str()
        .unwrap();
    assert!(text.contains("hello hello") && text.contains("\"who\":\"me\""));
    for (method, params) in [
        (
            "resources/read",
            json!({ "uri": "skill://unsigned/SKILL.md" }),
        ),
        (
            "resources/read",
            json!({ "uri": "skill://../../etc/passwd/SKILL.md" }),
        ),
        ("prompts/get", json!({ "name": "nobody" })),
    ] {
        let refused = client.request(method, &params);
        assert!(refused["error"]["message"].is_string(), "{refused}");
    }
    assert_eq!(client.finish(), 0);
}

#[test]
fn every_file_of_a_skill_is_a_resource() {
    let place = Place::new();
    let dir = place.0.path().join(".ai/directives/pdf");
    for (name, bytes) in [
        (
            "SKILL.md",
            b"---\nname: pdf\ndescription: Reads PDF\nallowed-tools: Read\n---\n\nRead.\n"
                .as_slice(),
        ),
        ("scripts/x.py", b"print('x')\n"),
        ("assets/a b.bin", b"\xff\0"),
    ] {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let (code, err) = place.bad(&["kiwi", "sign", "*"]);
    assert!(
        code != 0 && err.contains("pdf") && err.contains("--yes"),
        "{err}"
    );
    place.good(&["kiwi", "sign", "*", "--yes"]);
    let mut client = Client::start(&place, &[]);
    let listed = client.request("resources/list", &json!({}));
    let uris: Vec<&str> = listed["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["uri"].as_str().unwrap())
        .collect();
    assert_eq!(
        uris,
        [
            "skill://pdf/SKILL.md",
            "skill://pdf/assets/a%20b.bin",
            "skill://pdf/scripts/x.py"
        ]
    );
    let mut read = |uri: &str| {
        let read = client.request("resources/read", &json!({ "uri": uri }));
        read["result"]["contents"][0].clone()
    };
    let script = read("skill://pdf/scripts/x.py");
    assert_eq!(
        (&script["text"], &script["mimeType"]),
        (&json!("print('x')\n"), &json!("text/x-python"))
    );
    assert_eq!(read("skill://pdf/assets/a%20b.bin")["blob"], "/wA=");
    let skill = read("skill://pdf/SKILL.md");
    assert_eq!(
        skill["text"],
        "---\nname: pdf\ndescription: Reads PDF\nallowed-tools: Read\n---\n\nRead.\n",
        "as it was before it was signed"
    );
    for missing in [
        "skill://pdf/scripts/y.py",
        "skill://pdf/../pdf/SKILL.md",
        "skill://pdf",
    ] {
        assert!(read(missing).is_null(), "{missing}");
    }
    // What was changed since it was signed is not shown.
    fs::write(dir.join("scripts/x.py"), "import os\n").unwrap();
    assert!(read("skill://pdf/scripts/x.py").is_null());
    assert_eq!(client.finish(), 0);
}

#[test]
fn the_arguments_of_a_prompt_are_checked_as_the_inputs_of_a_run_are() {
    let place = Place::new();
    let dir = place.0.path().join(".ai/directives");
    fs::create_dir_all(&dir).unwrap();
    fs::write(
        dir.join("sum.md"),
        "---\nname: sum\nversion: 1.0.0\ninputs:\n  - name: n\n    type: integer\n    required: true\n    schema: {minimum: 1}\n  - name: style\n    default: short\ninput_schema:\n  type: object\n  properties:\n    tone: {type: string, enum: [calm, loud], description: How}\n---\n\nSum.\n",
    )
    .unwrap();
    place.good(&["kiwi", "sign", "directive", "sum"]);
    let mut client = Client::start(&place, &[]);
    let listed = client.request("prompts/list", &json!({}));
    let arguments = &listed["result"]["prompts"][0]["arguments"];
    assert_eq!(
        arguments,
        &json!([
            {"name": "n", "description": "", "required": true},
            {"name": "style", "description": "", "required": false},
            {"name": "tone", "description": "How", "required": false},
        ])
    );
    let mut get = |arguments: Value| {
        client.request(
            "prompts/get",
            &json!({ "name": "sum", "arguments": arguments }),
        )
    };
    let good = get(json!({ "n": "3", "tone": "calm" }));
    let text = good["result"]["messages"][0]["content"]["text"]
        .as_str()
        .unwrap();
    assert!(
        text.contains("\"n\":3"),
        "a text is read as what is declared: {text}"
    );
    assert!(text.contains("\"style\":\"short\""), "{text}");
    for (arguments, field) in [
        (json!({}), "n"),
        (json!({ "n": "many" }), "n"),
        (json!({ "n": "0" }), "n"),
        (json!({ "n": "1", "tone": "shrill" }), "tone"),
    ] {
        let refused = get(arguments);
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(&format!("{field}:")), "{refused}");
        assert_eq!(refused["error"]["code"], -32602);
    }
    assert_eq!(client.finish(), 0);
}

#[test]
fn a_registry_on_another_machine_is_believed_in_nothing() {
    let home = project();
    let registry = Place::new();
    let token = registry.good(&["token", "create", "--scopes", "read,write,destroy"]);
    let reader = registry.good(&["token", "create", "--scopes", "read"]);
    let reader = reader.trim();
    let server = Server::of(registry.command(&["registry", "serve", "--listen", "127.0.0.1:0"]));
    let url = format!("http://127.0.0.1:{}/registry", server.port);
    // The server, the registry on it, and its API are all the same registry.
    let bases = ["/registry", "", "/", "/registry/", "/registry/v1"];
    let bases = bases.map(|it| format!("http://127.0.0.1:{}{it}", server.port));
    let n_calls = std::cell::Cell::new(0);
    let with = |place: &Place, token: &str, arguments: &[&str]| {
        let mut command = place.command(arguments);
        n_calls.set(n_calls.get() + 1);
        command
            .env("KIWI_REGISTRY_URL", &bases[n_calls.get() % bases.len()])
            .env("KIWI_REGISTRY_TOKEN", token);
        command.output().unwrap()
    };
    home.good(&["kiwi", "sign", "directive", "hello"]);
    let out = with(
        &home,
        token.trim(),
        &["kiwi", "publish", "directive", "hello", "--json"],
    );
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let published: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(published["registry"], url.as_str());
    // Nothing but the registry is served there.
    for tool in ["search", "load", "execute", "help", "memory_recall"] {
        assert_eq!(
            server.post(&format!("/tools/{tool}"), "", "{}").0,
            404,
            "{tool}"
        );
    }
    assert_eq!(server.get("/registry/v1/pull/directive/hello", "").0, 200);
    assert_eq!(server.get("/registry/v1/pull/directive/nobody", "").0, 404);
    assert_eq!(server.get("/registry/v1/pull/skill/hello", "").0, 422);
    let (status, versions) = server.get("/registry/v1/versions/directive/hello", "");
    assert!(status == 200 && versions.contains("1.0.0"), "{versions}");
    let found = server.get("/registry/v1/search?query=hello&item_type=directive", "");
    assert!(found.1.contains("\"hello\""), "{found:?}");
    // Somebody else finds it, and takes it only when its signer is trusted.
    let other = Place::new();
    let search = with(
        &other,
        reader,
        &[
            "kiwi",
            "search",
            "--item-type",
            "directive",
            "--query",
            "hello",
            "--source",
            "registry",
            "--json",
        ],
    );
    let search: Value = serde_json::from_slice(&search.stdout).unwrap();
    assert_eq!(search["results"][0]["source"], "registry", "{search}");
    let load = [
        "kiwi",
        "load",
        "--item-type",
        "directive",
        "--item-id",
        "hello",
        "--destination",
        "user",
        "--json",
    ];
    let refused = with(&other, reader, &load);
    let refused: Value = serde_json::from_slice(&refused.stdout).unwrap();
    let signer = refused["signer"]
        .as_str()
        .unwrap_or_else(|| panic!("{refused}"))
        .to_owned();
    assert!(!other.0.path().join(".ai").exists());
    other.good(&["trust", "add", &signer, "--name", "a friend"]);
    let loaded = with(&other, reader, &load);
    assert!(
        loaded.status.success(),
        "{}",
        String::from_utf8_lossy(&loaded.stderr)
    );
    assert!(other.0.path().join(".ai/directives/demo/hello.md").exists());
    // A bit that was changed on the way, another id, a name that leads outside: refused, nothing taken.
    let package: Value =
        serde_json::from_str(&server.get("/registry/v1/pull/directive/hello", "").1).unwrap();
    let text = package["files"][0]["content"].as_str().unwrap().to_owned();
    let mut cases = Vec::new();
    for (name, change) in [
        ("content", text.replace("hello hello", "hello hullo")),
        ("path", "../hello.md".to_owned()),
    ] {
        let mut bad = package.clone();
        bad["files"][0][name] = change.into();
        bad["files"][0].as_object_mut().unwrap().remove("sha256");
        cases.push(bad);
    }
    for (name, value) in [
        ("item_id", "other"),
        ("version", "2.0.0"),
        ("category", "elsewhere"),
        ("scope", "user"),
        ("main", "SKILL.md"),
        ("item_type", "knowledge"),
    ] {
        let mut bad = package.clone();
        bad[name] = value.into();
        cases.push(bad);
    }
    for bad in cases {
        let (status, body) = server.post("/registry/v1/push", "", &bad.to_string());
        assert!((400..500).contains(&status), "{status} {body}");
    }
    let (_, versions) = server.get("/registry/v1/versions/directive/hello", "");
    assert_eq!(
        serde_json::from_str::<Value>(&versions).unwrap()["versions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    drop(server);
    let gone = with(&other, reader, &load);
    assert!(!gone.status.success());
    assert!(
        String::from_utf8_lossy(&gone.stderr).contains("KIWI_REGISTRY_URL"),
        "{}",
        String::from_utf8_lossy(&gone.stderr)
    );
}

#[test]
fn two_processes_sign_publish_and_load_the_same_ids() {
    let place = project();
    crate::allow_agents_to_sign(&place);
    let work = |who: u32| {
        let mut client = Client::start(&place, &[]);
        for n in 0..12 {
            let call = |client: &mut Client, action: &str| {
                let arguments =
                    json!({ "item_type": "directive", "action": action, "item_id": "hello" });
                answer(&client.call("execute", &arguments))
            };
            // Whoever comes second may be told that the file was changed meanwhile, never anything else.
            for action in ["sign", "publish", "run"] {
                let done = call(&mut client, action);
                let text = done.to_string();
                let is_good = done.get("error").is_none()
                    || text.contains("meanwhile")
                    || text.contains("modified since");
                assert!(is_good, "{who} {n} {action}: {done}");
            }
            let load =
                json!({ "item_type": "directive", "item_id": "hello", "destination": "user" });
            let done = answer(&client.call("load", &load));
            let text = done.to_string();
            assert!(
                done.get("error").is_none() || text.contains("meanwhile"),
                "{who} {n} load: {done}"
            );
        }
        client.finish()
    };
    std::thread::scope(|scope| {
        let threads = [scope.spawn(|| work(1)), scope.spawn(|| work(2))];
        assert!(threads.into_iter().all(|it| it.join().unwrap() == 0));
    });
    assert!(
        place
            .good(&["kiwi", "run", "directive", "hello"])
            .contains("executed")
    );
    let versions: Value = serde_json::from_str(&place.good(&[
        "registry",
        "versions",
        "directive",
        "hello",
        "--json",
    ]))
    .unwrap();
    assert_eq!(versions.as_array().unwrap().len(), 1);
    let report: Value = serde_json::from_str(&place.good(&["audit", "verify", "--json"])).unwrap();
    assert_eq!(report["clean"], true);
}

#[test]
fn a_process_that_is_killed_leaves_no_half_of_an_item() {
    let place = Place::new();
    put_tool(&place, 40, "one ");
    place.good(&["kiwi", "sign", "tool", "many"]);
    place.good(&["kiwi", "publish", "tool", "many"]);
    let target = place.0.path().join("target");
    fs::create_dir_all(target.join(".git")).unwrap();
    let loaded: PathBuf = target.join(".ai/tools/demo/many");
    for round in 0..20_u64 {
        drop(fs::remove_dir_all(target.join(".ai")));
        let mut child = place
            .command(&[
                "kiwi",
                "load",
                "--item-type",
                "tool",
                "--item-id",
                "many",
                "--destination",
                "project",
                "--project-path",
                target.to_str().unwrap(),
                "--allow-root",
                target.to_str().unwrap(),
            ])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(5 + 6 * round));
        drop(child.kill());
        drop(child.wait());
        // Whoever opens the store next finishes what was begun.
        place.good(&["doctor", "--allow-root", target.to_str().unwrap()]);
        // What a killed write left beside is no part of the item, and nobody lists it.
        let is_part = |it: &fs::DirEntry| !it.file_name().to_string_lossy().starts_with('.');
        let found = fs::read_dir(&loaded).into_iter().flatten().flatten();
        let count = found.filter(is_part).count();
        assert!(count == 0 || count == 42, "round {round}: {count} files");
        if count == 42 {
            let text = fs::read_to_string(loaded.join("part-39.txt")).unwrap();
            assert_eq!(text, "one ".repeat(500), "round {round}");
        }
    }
    for round in 0..20_u64 {
        put_tool(&place, 40, &format!("word-{round} "));
        let manifest = place.0.path().join(".ai/tools/demo/many/manifest.yaml");
        let text = fs::read_to_string(&manifest).unwrap();
        fs::write(
            &manifest,
            text.replace("1.0.0", &format!("1.{}.0", round + 1)),
        )
        .unwrap();
        place.good(&["kiwi", "sign", "tool", "many"]);
        let mut child = place
            .command(&["kiwi", "publish", "tool", "many"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(5 + 6 * round));
        drop(child.kill());
        drop(child.wait());
        let versions: Value =
            serde_json::from_str(&place.good(&["registry", "versions", "tool", "many", "--json"]))
                .unwrap();
        for version in versions.as_array().unwrap() {
            let number = version["version"].as_str().unwrap();
            let out = place.good(&[
                "kiwi",
                "load",
                "--item-type",
                "tool",
                "--item-id",
                "many",
                "--destination",
                "user",
                "--version",
                number,
                "--force",
                "--json",
            ]);
            let out: Value = serde_json::from_str(&out).unwrap();
            assert_eq!(out["version"], number);
        }
    }
    let report: Value = serde_json::from_str(&place.good(&["audit", "verify", "--json"])).unwrap();
    assert_eq!(report["clean"], true);
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next_process() {
    let place = project();
    let home = place.0.path();
    let (tools, temporary) = (home.join(".ai/tools/demo"), home.join("tmp"));
    fs::create_dir_all(&tools).unwrap();
    fs::create_dir_all(&temporary).unwrap();
    // As root, tools run as a user who has to walk through here.
    for path in [home, &temporary] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o711)).unwrap();
    }
    let head = "#!/bin/bash\n# version: 1.0.0\n# tool_type: script\n";
    fs::write(tools.join("wait.sh"), format!("{head}sleep 600\n")).unwrap();
    let command = |arguments: &[&str]| {
        let mut command = place.command(&[&["--project", "."], arguments].concat());
        command.env("TMPDIR", &temporary).stdin(Stdio::null());
        command
    };
    let output = command(&["kiwi", "sign", "tool", "wait"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let rooms = || -> Vec<PathBuf> {
        let dirs = [temporary.clone(), home.join("data/kiwi/runs")];
        let entries = dirs.iter().filter_map(|it| fs::read_dir(it).ok());
        let paths = entries.flatten().flatten().map(|it| it.path());
        paths
            .filter(|it| {
                it.file_name()
                    .unwrap()
                    .to_string_lossy()
                    .starts_with("kenning-")
            })
            .collect()
    };
    let mut host = command(&["kiwi", "run", "tool", "wait"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = std::time::Instant::now();
    while rooms().is_empty() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60));
        std::thread::yield_now();
    }
    host.kill().unwrap();
    host.wait().unwrap();
    assert_eq!(rooms().len(), 1);
    // The program itself dies with its host, and may do so a moment later.
    while !rooms().is_empty() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60));
        let output = command(&["kiwi", "help"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}
