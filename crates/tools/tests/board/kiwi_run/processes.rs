//! Processes: what they are given, and what they cannot do.

use super::*;

#[test]
fn scripts_of_each_language_run() {
    let bench = Bench::new();
    bench.tool(
        "hello.sh",
        &bash(r#"echo "{\"args\": \"$*\"}"; echo note >&2"#),
    );
    bench.tool(
        "snake.py",
        &python(
            "import json, sys\nprint(json.dumps({'args': ' '.join(sys.argv[1:])}))\nprint('note', file=sys.stderr)",
        ),
    );
    bench.tool(
        "hexagon.js",
        &node(
            "console.log(JSON.stringify({args: process.argv.slice(2).join(' ')})); console.error('note')",
        ),
    );
    for (id, runtime) in [
        ("hello", "bash_runtime"),
        ("snake", "python_runtime"),
        ("hexagon", "node_runtime"),
    ] {
        let done = bench.ran(id, json!({ "name": "you", "loud": true }));
        assert_eq!(
            done["result"],
            json!({ "args": "--name you --loud" }),
            "{id}"
        );
        assert_eq!(done["data"]["stderr"], "note\n");
        assert_eq!(done["data"]["return_code"], 0);
        let metadata = &done["metadata"];
        assert_eq!(metadata["chain"], json!([id, runtime, "subprocess"]));
        assert_eq!(metadata["tool_type"], "script");
        assert_eq!(metadata["primitive_type"], "subprocess");
        assert!(metadata["duration_ms"].as_f64().unwrap() > 0.0);
    }
    let bench = bench.settled();
    let kinds = bench.fixture.event_kinds();
    let n_runs = kinds.iter().filter(|it| *it == "ItemRun").count();
    assert_eq!(n_runs, 3, "{kinds:?}");
    let found = bench.fixture.call(
        "search",
        json!({ "item_type": "tool", "query": "hello", "source": "local" }),
    );
    // Valid, signed, and all of its runs went well.
    let found = found.value.unwrap();
    assert_eq!(found["results"][0]["quality_score"], 100.0, "{found:#}");
}

#[test]
fn whatever_an_argument_holds_it_reaches_the_program_as_one() {
    let bench = Bench::new();
    let show = r#"printf '%s\0' "$@" | base64 -w0"#;
    bench.tool("show.sh", &bash(show));
    let cases = [
        "plain",
        "two words",
        "",
        " ",
        "$(id)",
        "`id`",
        "$HOME",
        "${HOME}",
        "; rm -rf /",
        "&& id",
        "|| id",
        "| id",
        "> /tmp/x",
        "< /etc/passwd",
        "a\nb",
        "a\tb",
        "\"quoted\"",
        "'quoted'",
        "\\",
        "\\n",
        "*",
        "?",
        "[a-z]",
        "{a,b}",
        "~",
        "~root",
        "!!",
        "#comment",
        "a=b",
        "%s%n",
        "é ü 日本 🦀",
        "\u{202e}rtl",
        "\u{1b}[31m",
        "..",
        "../../etc/passwd",
        "$'\\x41'",
        "--",
        "--evil",
        "-e",
        "-c id",
        "--key=value",
        "%00",
        "a\u{7f}b",
    ];
    for case in cases {
        let done = bench.ran("show", json!({ "text": case }));
        let expected = if case.starts_with('-') {
            format!("--text={case}\0")
        } else {
            format!("--text\0{case}\0")
        };
        let shown = done["data"]["stdout"].as_str().unwrap();
        assert_eq!(shown, base64(expected.as_bytes()), "{case:?}");
    }
    let refused = bench.failed("show", json!({ "text": "a\u{0}b" }));
    assert!(
        refused["error"].as_str().unwrap().contains("NUL byte"),
        "{refused:#}"
    );
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let padded = [
            chunk[0],
            *chunk.get(1).unwrap_or(&0),
            *chunk.get(2).unwrap_or(&0),
        ];
        let number = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for i in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * i) & 63) as usize];
            out.push(if i > chunk.len() {
                '='
            } else {
                char::from(letter)
            });
        }
    }
    out
}

#[test]
fn a_tool_that_fails_is_an_error_with_everything_it_said() {
    let bench = Bench::new();
    bench.tool("bad.sh", &bash("echo some; echo why >&2; exit 3"));
    let done = bench.failed("bad", json!({}));
    assert_eq!(done["status"], "error");
    assert_eq!(done["http"], 422);
    assert_eq!(done["stdout"], "some\n");
    assert_eq!(done["stderr"], "why\n");
    assert_eq!(done["return_code"], 3);
    assert_eq!(done["item_id"], "bad");
    assert_eq!(done["action"], "run");
    assert_eq!(done["metadata"]["primitive_type"], "subprocess");
    assert_eq!(done["error"], "Tool 'bad' failed with return code 3");
    // `-e` and `pipefail`: what fails in the middle is not passed over.
    bench.tool("middle.sh", &bash("false | cat\necho never"));
    let done = bench.failed("middle", json!({}));
    assert_eq!(done["stdout"], "");
}

#[test]
fn a_deadline_ends_it_and_says_so() {
    let bench = Bench::new();
    bench.made(
        "slow",
        "config: {timeout: 0.5}",
        "main.sh",
        "echo early; sleep 600",
    );
    let done = bench.failed("slow", json!({}));
    assert_eq!(done["return_code"], -1);
    assert_eq!(done["stdout"], "early\n");
    let stderr = done["stderr"].as_str().unwrap();
    assert_eq!(stderr, "Command timed out after 0.5 seconds");
    assert!(done["error"].as_str().unwrap().contains("timed out"));
}

#[test]
fn the_environment_is_what_the_tool_declares() {
    let bench = Bench::new();
    bench.tool(
        "env.sh",
        &bash("env -0 | cut -z -d= -f1 | sort -z | tr '\\0' ' '"),
    );
    let done = bench.ran("env", json!({}));
    let names = done["data"]["stdout"].as_str().unwrap();
    // What every program is given, and what Bash sets itself.
    assert_eq!(
        names.trim(),
        "HOME LANG PATH PWD PYTHONDONTWRITEBYTECODE SHLVL TMPDIR _"
    );
    bench.made(
        "declared",
        "env: {GREETING: hi}\nconfig: {env: {TWICE: \"${GREETING}${GREETING}\"}}",
        "main.sh",
        "echo $GREETING $TWICE",
    );
    let done = bench.ran("declared", json!({}));
    assert_eq!(done["data"]["stdout"], "hi hihi\n");
}

#[test]
fn secrets_come_by_name_and_are_never_shown() {
    let bench = Bench::new();
    let script = "echo \"$API_KEY/${OTHER_KEY-none}\"; echo $API_KEY >&2; [ ${#API_KEY} = 14 ]";
    bench.made("keyed", "env: [API_KEY]", "main.sh", script);
    let refused = bench.failed("keyed", json!({}));
    let hint = refused["hint"].as_str().unwrap();
    assert!(hint.contains("env = [\"API_KEY\"]"), "{refused:#}");
    let secrets = bench.fixture.root.path().join("secrets.env");
    fs::write(&secrets, "API_KEY=hunter22hunter\nOTHER_KEY=xyzzy\n").unwrap();
    bench.policy(&format!(
        "secrets = [{:?}]\n[ceiling]\nenv = [\"API_KEY\"]\n",
        secrets.display().to_string()
    ));
    let done = bench.ran("keyed", json!({}));
    assert_eq!(done["data"]["stdout"], "***/none\n");
    assert_eq!(done["data"]["stderr"], "***\n");
    // Nor where the answer is JSON: as the name of a field, or as a number.
    fs::write(&secrets, "API_KEY=12345678901234\n").unwrap();
    let script = "echo \"{\\\"$API_KEY\\\": [$API_KEY]}\"";
    bench.made("json", "env: [API_KEY]", "main.sh", script);
    let done = bench.ran("json", json!({}));
    assert!(!done.to_string().contains("12345678901234"), "{done:#}");
    assert!(done["result"].to_string().contains("***"), "{done:#}");
    let bench = bench.settled();
    let owner = bench.fixture.owner();
    let events = bench.fixture.board.engine().events_after(&owner, 0, 1_000);
    let events = format!("{:?}", events.unwrap());
    assert!(events.contains("ItemRun") && !events.contains("hunter22"));
}

#[test]
fn the_project_is_read_and_nothing_else_and_nothing_is_written() {
    let bench = Bench::new();
    bench.put("data.txt", "of the project");
    let outside = bench.fixture.root.path().join("outside.txt");
    fs::write(&outside, "secret").unwrap();
    open(&outside, 0o644);
    let outside = outside.display().to_string();
    std::os::unix::fs::symlink(&outside, bench.path("link.txt")).unwrap();
    bench.tool("cat.sh", &bash("cat \"$2\""));
    let done = bench.ran("cat", json!({ "file": "data.txt" }));
    assert_eq!(done["data"]["stdout"], "of the project");
    for path in [
        outside.as_str(),
        "link.txt",
        "../outside.txt",
        "/etc/passwd",
        "/proc/1/environ",
        "/proc/thread-self/environ",
        "/proc/self/cwd/../../../../../../../etc/passwd",
    ] {
        let done = bench.failed("cat", json!({ "file": path }));
        assert_eq!(done["stdout"], "", "{path}");
    }
    bench.tool("touch.sh", &bash("echo x > \"$2\""));
    for path in [
        "data.txt",
        "new.txt",
        ".ai/tools/new.sh",
        "/tmp/kenning-new",
    ] {
        bench.failed("touch", json!({ "file": path }));
    }
    assert!(!Path::new("/tmp/kenning-new").exists());
    assert_eq!(fs::read(bench.path("data.txt")).unwrap(), b"of the project");
    assert!(!bench.path("new.txt").exists());
    // Its own directory is there for the call only.
    bench.tool(
        "scratch.sh",
        &bash("echo x > $TMPDIR/x; cat $TMPDIR/x; echo $TMPDIR"),
    );
    let done = bench.ran("scratch", json!({}));
    let said = done["data"]["stdout"].as_str().unwrap();
    let dir = said.strip_prefix("x\n").unwrap().trim();
    assert!(!Path::new(dir).exists(), "{dir}");
    assert!(!Path::new(dir).parent().unwrap().exists(), "{dir}");
}

#[test]
fn writing_needs_both_the_manifest_and_the_policy() {
    let bench = Bench::new();
    fs::create_dir(bench.path("out")).unwrap();
    // As root, tools run as somebody else.
    open(&bench.path("out"), 0o777);
    bench.made(
        "writer",
        "permissions: {write: [\"out/**\"]}",
        "main.sh",
        "echo x > out/x; ! echo y > y",
    );
    let refused = bench.failed("writer", json!({}));
    assert_eq!(refused["denied"], json!(["fs.write out/**"]));
    let hint = refused["hint"].as_str().unwrap();
    assert!(hint.contains("write = [\"out/**\"]"), "{hint}");
    bench.policy("[ceiling]\nwrite = [\"out/**\"]\n");
    bench.ran("writer", json!({}));
    assert_eq!(fs::read(bench.path("out/x")).unwrap(), b"x\n");
    assert!(!bench.path("y").exists());
    bench.made(
        "pattern",
        "permissions: {write: [\"out/*.txt\"]}",
        "main.sh",
        "true",
    );
    let refused = bench.failed("pattern", json!({}));
    assert!(
        refused["error"].as_str().unwrap().contains("out/*.txt"),
        "{refused:#}"
    );
}

#[test]
fn there_is_no_network_without_a_grant() {
    let bench = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo in");
    bench.tool("caller.sh", &bash(&script));
    let done = bench.failed("caller", json!({}));
    assert_eq!(done["stdout"], "");
    let asks = |host: &str| format!("permissions: {{net: [\"{host}\"]}}");
    let every = format!("*:{port}");
    bench.policy(&format!("[ceiling]\nnet = [\"{every}\", \"127.0.0.1\"]\n"));
    bench.made("granted", &asks(&every), "main.sh", &script);
    assert_eq!(bench.ran("granted", json!({}))["data"]["stdout"], "in\n");
    // A program cannot be held to a host, so it is not let out for one.
    bench.made("hosted", &asks("127.0.0.1"), "main.sh", &script);
    let refused = bench.failed("hosted", json!({}));
    assert!(
        refused["hint"].as_str().unwrap().contains("http_client"),
        "{refused:#}"
    );
}

#[test]
fn input_data_and_working_directory_are_as_configured() {
    let bench = Bench::new();
    bench.put("sub/here.txt", "");
    bench.made(
        "fed",
        "config: {input_data: \"line\\n\", cwd: sub}",
        "main.sh",
        "cat; ls; echo \"$1 $2\"",
    );
    let done = bench.ran("fed", json!({ "_project_path": "p" }));
    assert_eq!(done["data"]["stdout"], "line\nhere.txt\n--project-path p\n");
}

#[test]
fn long_outputs_are_saved_and_very_long_ones_cut() {
    let bench = Bench::new();
    bench.tool("long.sh", &bash("head -c $2 /dev/zero | tr '\\0' x"));
    let done = bench.ran("long", json!({ "n": 10_000 }));
    assert_eq!(done["output_path"], Value::Null);
    let done = bench.ran("long", json!({ "n": 20_000 }));
    let saved = done["output_path"].as_str().unwrap();
    assert!(saved.starts_with(bench.path(".ai/outputs/tools/long").to_str().unwrap()));
    let saved: Value = serde_json::from_slice(&fs::read(saved).unwrap()).unwrap();
    assert_eq!(saved["data"]["stdout"], done["result"]);
    // A long output is said once.
    assert!(
        done["data"]["stdout"].as_str().unwrap().len() < 600,
        "{done:#}"
    );
    assert_eq!(done["truncated"], Value::Null);
    let done = bench.ran("long", json!({ "n": 2_000_000 }));
    assert_eq!(done["truncated"], true);
    let shown = done["result"].as_str().unwrap().len();
    assert!((60_000..80_000).contains(&shown), "{shown}");
    let saved: Value =
        serde_json::from_slice(&fs::read(done["output_path"].as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(saved["data"]["stdout"].as_str().unwrap().len(), 2_000_000);
    for _ in 0..10 {
        bench.ran("long", json!({ "n": 20_000 }));
    }
    let kept = fs::read_dir(bench.path(".ai/outputs/tools/long")).unwrap();
    assert_eq!(kept.count(), 10);
    bench.policy("[limits]\noutput_mb = 1\n");
    let done = bench.failed("long", json!({ "n": 3_000_000 }));
    assert!(
        done["error"].as_str().unwrap().contains("wrote more than"),
        "{done:#}"
    );
}

#[test]
fn what_runs_is_what_was_verified() {
    let bench = Bench::new();
    // The tool looks at its own file, which is a copy that nobody else has.
    bench.tool("own.sh", &bash("echo $0; echo changed >> $0 || echo no"));
    let done = bench.ran("own", json!({}));
    let said = done["data"]["stdout"].as_str().unwrap();
    let (path, rest) = said.split_once('\n').unwrap();
    assert!(
        !path.starts_with(bench.path("").to_str().unwrap()),
        "{path}"
    );
    assert_eq!(rest, "no\n");
    assert!(!Path::new(path).exists());
    bench.put(".ai/tools/own.sh", "echo other\n");
    let refused = bench.failed("own", json!({}));
    assert_eq!(refused["is_error"], true);
    // Python leaves nothing behind beside a tool.
    bench.made("pack", "", "main.py", "import helper\nprint(helper.WORD)");
    bench.put(".ai/tools/pack/helper.py", "WORD = 'hi'\n");
    bench.sign("pack");
    assert_eq!(bench.ran("pack", json!({}))["data"]["stdout"], "hi\n");
    assert!(!bench.path(".ai/tools/pack/__pycache__").exists());
    assert_eq!(bench.ran("pack", json!({}))["data"]["stdout"], "hi\n");
}

#[test]
fn a_dry_run_checks_everything_and_starts_nothing() {
    let bench = Bench::new();
    fs::create_dir(bench.path("out")).unwrap();
    open(&bench.path("out"), 0o777);
    bench.policy("[ceiling]\nwrite = [\"out/**\"]\n");
    bench.made(
        "dry",
        "permissions: {write: [\"out/**\"]}\nparameters: [{name: n, type: integer, required: true}]",
        "main.sh",
        "echo x > out/x",
    );
    let dry = |inputs: Value| {
        let parameters = json!({ "inputs": inputs });
        bench.execute(
            "tool",
            "run",
            "dry",
            json!({ "parameters": parameters, "dry_run": true }),
        )
    };
    let before = bench.fixture.event_kinds().len();
    let done = dry(json!({ "n": 1 }));
    assert_eq!(done["status"], "validation_passed", "{done:#}");
    assert_eq!(done["message"], "Tool is ready to execute");
    assert!(done["path"].as_str().unwrap().ends_with(".ai/tools/dry"));
    assert_eq!(done["metadata"]["primitive_type"], "subprocess");
    assert!(!bench.path("out/x").exists());
    assert!(!bench.path(".ai/lockfiles").exists());
    assert_eq!(bench.fixture.event_kinds().len(), before);
    for (inputs, status, word) in [
        (json!({}), 400, "missing"),
        (json!({ "n": "many" }), 422, "validation failed"),
    ] {
        let done = dry(inputs);
        assert_eq!(done["http"], status);
        assert!(done["error"].as_str().unwrap().contains(word), "{done:#}");
    }
}

#[test]
fn who_may_not_run_is_refused() {
    let bench = Bench::new();
    bench.tool("hello.sh", &bash("echo hi"));
    let mut reader = bench.fixture.owner();
    reader.principal.scopes = vec![kenning_engine::Scope::Read, kenning_engine::Scope::Write];
    let arguments = json!({ "item_type": "tool", "action": "run", "item_id": "hello" });
    let reply = bench.fixture.call_as("execute", arguments, &reader);
    let error = reply.error.unwrap();
    assert_eq!(error.code, kenning_core::Code::Denied, "{error}");
}

#[test]
fn the_key_of_the_node_is_nobodys_to_read() {
    let bench = Bench::new();
    let root = bench.fixture.root.path().display().to_string();
    let ask = format!("permissions: {{read: [\"{root}/**\"]}}");
    bench.made(
        "asking",
        &ask,
        "main.sh",
        &format!("cat {root}/data/node.key"),
    );
    bench.policy("[ceiling]\nread = [\".\", \"/**\"]\n");
    let refused = bench.failed("asking", json!({}));
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("key of this node"), "{error}");
    // By a link it is the same directory.
    let beside = tempfile::tempdir().unwrap();
    let link = beside.path().join("link");
    std::os::unix::fs::symlink(&root, &link).unwrap();
    let ask = format!("permissions: {{read: [\"{}/**\"]}}", link.display());
    let script = format!("cat {}/data/node.key", link.display());
    bench.made("linked", &ask, "main.sh", &script);
    let refused = bench.failed("linked", json!({}));
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("key of this node"), "{error}");
}

#[test]
fn without_the_jail_nothing_runs_and_the_reason_is_said() {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
    let bench = Bench::new();
    fs::create_dir(bench.path("out")).unwrap();
    open(&bench.path("out"), 0o777);
    bench.policy("[ceiling]\nwrite = [\"out/**\"]\n");
    let asks = "permissions: {write: [\"out/**\"]}";
    bench.made("mark", asks, "main.sh", "echo ran > out/ran");
    // For this thread, and for what it starts, the kernel has no Landlock.
    let refused = std::thread::scope(|threads| {
        let run = threads.spawn(|| {
            let filter = SeccompFilter::new(
                [(libc::SYS_landlock_create_ruleset, Vec::new())].into(),
                SeccompAction::Allow,
                SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
                TargetArch::try_from(std::env::consts::ARCH).unwrap(),
            );
            let filter = BpfProgram::try_from(filter.unwrap()).unwrap();
            seccompiler::apply_filter(&filter).unwrap();
            bench.failed("mark", json!({}))
        });
        run.join().unwrap()
    });
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("Landlock"), "{refused:#}");
    assert!(!bench.path("out/ran").exists());
    bench.ran("mark", json!({}));
    assert!(bench.path("out/ran").exists());
}

#[test]
fn inputs_are_bound_to_the_arguments_of_main() {
    let bench = Bench::new();
    let guard = "if __name__ == \"__main__\":\n";
    let inputs = json!({ "text": "a b", "n": 3, "list": [1, { "x": null }] });
    for (id, script, result) in [
        // The tool of the document, to the letter.
        (
            "document",
            format!("def main(**kwargs):\n    return kwargs\n\n{guard}    main()\n"),
            inputs.clone(),
        ),
        (
            "named",
            format!("def main(text, n, list=None):\n    return [n, text]\n\n{guard}    main()\n"),
            json!([3, "a b"]),
        ),
        (
            "printed",
            format!(
                "import json\ndef main(**kwargs):\n    return kwargs[\"n\"]\n\n{guard}    print(json.dumps(main()))\n"
            ),
            json!(3),
        ),
        (
            "awaited",
            format!(
                "import asyncio\nasync def main(**kwargs):\n    return kwargs[\"text\"]\n\n{guard}    asyncio.run(main())\n"
            ),
            json!("a b"),
        ),
        (
            "silent",
            "def main(**kwargs):\n    return len(kwargs)\n".to_owned(),
            json!(3),
        ),
        // Who reads arguments reads arguments.
        (
            "parsed",
            format!(
                "import sys\ndef main(argv=None):\n    print(len(sys.argv))\n\n{guard}    sys.exit(main())\n"
            ),
            json!(7),
        ),
        (
            "own",
            format!(
                "import sys\ndef main(**kwargs):\n    print(sorted(kwargs) == [\"x\"] and 1)\n\n{guard}    main(x=len(sys.argv))\n"
            ),
            json!(1),
        ),
    ] {
        bench.made(id, "", "main.py", &script);
        let done = bench.ran(id, inputs.clone());
        assert_eq!(done["result"], result, "{id}: {done:#}");
    }
    bench.tool(
        "one_file.py",
        &python("def main(**kwargs):\n    return kwargs\n"),
    );
    assert_eq!(bench.ran("one_file", inputs.clone())["result"], inputs);
    bench.made(
        "broken",
        "",
        "main.py",
        "def main(**kwargs):\n    raise ValueError(kwargs['n'])\n",
    );
    let failed = bench.failed("broken", inputs);
    let stderr = failed["stderr"].as_str().unwrap();
    assert!(
        stderr.contains("main.py\", line 2") && stderr.contains("ValueError: 3"),
        "{stderr}"
    );
}

#[test]
fn every_answer_has_a_result() {
    let bench = Bench::new();
    bench.put(".ai/tools/hello.sh", &bash("echo hi"));
    bench.put(
        ".ai/knowledge/001-a.md",
        "---\nzettel_id: 001-a\ntitle: A\nentry_type: concept\n---\n\nText\n",
    );
    bench.put(
        ".ai/directives/d.md",
        "---\nname: d\nversion: 1.0.0\n---\n\nText\n",
    );
    for (kind, action, id) in [
        ("tool", "sign", "hello"),
        ("tool", "publish", "hello"),
        ("tool", "run", "hello"),
        ("knowledge", "create", "001-a"),
        ("knowledge", "run", "001-a"),
        ("directive", "create", "d"),
        ("directive", "run", "d"),
        ("directive", "update", "d"),
    ] {
        let done = bench.execute(kind, action, id, json!({}));
        assert_eq!(done["is_error"], false, "{done:#}");
        assert!(!done["result"].is_null(), "{kind} {action}: {done:#}");
        let dry = bench.execute(kind, "sign", id, json!({ "dry_run": true }));
        assert!(dry["result"].is_object(), "{dry:#}");
    }
}

#[test]
fn a_source_that_its_language_cannot_read_is_not_signed() {
    let bench = Bench::new();
    for (file, text, word) in [
        ("snake.py", python("def main(:\n    pass"), "line 4"),
        ("shell.sh", bash("if true; then echo"), "syntax error"),
        ("hexagon.js", node("function ("), "SyntaxError"),
    ] {
        bench.put(&format!(".ai/tools/{file}"), &text);
        let id = file.split('.').next().unwrap();
        let refused = bench.execute("tool", "sign", id, json!({}));
        assert_eq!(refused["http"], 422, "{refused:#}");
        let issue = refused["validation_issues"][0].as_str().unwrap();
        assert!(issue.starts_with(file) && issue.contains(word), "{issue}");
        assert!(
            !fs::read_to_string(bench.path(&format!(".ai/tools/{file}")))
                .unwrap()
                .contains("kenning:signed")
        );
    }
    // A helper that nobody may import is not the tool itself.
    bench.put(".ai/tools/pack/helper.py", "def (\n");
    bench.made("pack", "", "main.py", "print(1)");
    let signed = bench.execute("tool", "sign", "pack", json!({}));
    assert!(
        signed["warnings"][0]
            .as_str()
            .unwrap()
            .starts_with("helper.py: line 1"),
        "{signed:#}"
    );
    // Compiling runs nothing.
    bench.tool("quiet.py", &python("open('/nowhere/x', 'w')"));
}

#[test]
fn a_tool_writes_no_more_than_the_policy_says_and_nothing_stays() {
    let bench = Bench::new();
    bench.policy("[limits]\ndisk_mb = 20\nfiles = 300\n");
    let fill =
        "echo $TMPDIR; for i in $(seq 1 10000); do head -c 1000000 /dev/zero > $TMPDIR/$i; done";
    bench.tool("fill.sh", &bash(fill));
    let failed = bench.failed("fill", json!({}));
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("20971520 bytes to the disk"), "{error}");
    let dir = failed["stdout"].as_str().unwrap().trim();
    assert!(dir.starts_with('/') && !Path::new(dir).exists(), "{dir}");
    let many = "for i in $(seq 1 10000); do : > $TMPDIR/$i; done";
    bench.tool("many.sh", &bash(many));
    let failed = bench.failed("many", json!({}));
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("more than 300 files"), "{error}");
}

#[test]
fn a_tool_goes_on_with_what_it_wrote_before_whoever_runs_it() {
    let bench = Bench::new();
    bench.policy("[ceiling]\nwrite = [\"out/**\"]\n");
    let asks = "permissions: {write: [\"out/**\"]}";
    bench.made(
        "log",
        asks,
        "main.sh",
        "mkdir -p out/sub; echo one >> out/sub/log; cat out/sub/log",
    );
    bench.made("other", asks, "main.sh", "echo two >> out/sub/log");
    bench.ran("log", json!({}));
    bench.ran("other", json!({}));
    assert_eq!(
        bench.ran("log", json!({}))["data"]["stdout"],
        "one\ntwo\none\n"
    );
}
