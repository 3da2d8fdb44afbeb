//! The commands of `kami` as people type them, and what they read when something is not there.

use crate::Place;
use kenning_testing_wasm::probes;
use serde_json::Value;
use std::fs;
use std::process::Stdio;

/// Exit code, standard output and standard error.
fn kami(place: &Place, arguments: &[&str]) -> (i32, String, String) {
    let mut command = place.kami(arguments);
    let output = command.stdin(Stdio::null()).output().unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// A place with `dev.example.echo`.
fn with_echo() -> Place {
    let place = Place::new();
    place.package("echo", &probes::echo().unwrap(), "");
    place.kami_good(&["install", "echo"]);
    place
}

#[test]
fn short_options_are_understood() {
    let place = with_echo();
    let listed = place.kami_good(&["list", "-f", "probe"]);
    assert!(listed.contains("dev.example.echo"), "{listed}");
    let file = "echo/tool.wasm";
    let run = ["run", file, "-i", r#"{"a":1}"#, "-m", "8", "-t", "60000"];
    assert_eq!(place.kami_good(&run), "{\"a\":1}\n");
    place.package("busy", &probes::busy().unwrap(), "");
    let busy = ["run", "busy/tool.wasm", "--fuel", "1000000000000"];
    let (code, _, err) = kami(&place, &[&busy[..], &["-t", "50"]].concat());
    assert!(
        code == 7 && err.contains("after 50 ms; try `--timeout-ms 100`"),
        "{err}"
    );
}

#[test]
fn a_version_is_pinned_by_naming_it() {
    let place = with_echo();
    let manifest = place.0.path().join("echo/tool.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("1.0.0", "1.1.0")).unwrap();
    place.kami_good(&["update", "dev.example.echo"]);
    place.kami_good(&["pin", "dev.example.echo", "1.0.0"]);
    let shown = place.kami_good(&["inspect", "dev.example.echo"]);
    assert!(shown.starts_with("dev.example.echo 1.0.0"), "{shown}");
    assert!(shown.contains("pinned"), "{shown}");
    place.kami_good(&["pin", "dev.example.echo", "--unpin"]);
    fs::write(&manifest, text.replace("1.0.0", "0.9.0")).unwrap();
    let (code, _, err) = kami(&place, &["update", "dev.example.echo"]);
    assert!(code == 4 && err.contains("--downgrade"), "{err}");
    place.kami_good(&["update", "dev.example.echo", "--downgrade"]);
}

#[test]
fn what_is_not_there_is_said_as_it_is() {
    let place = with_echo();
    let (code, out, err) = kami(&place, &["list", "--filter", "nothing like it"]);
    assert_eq!((code, out.as_str()), (0, ""));
    assert!(
        err.contains("no tool has `nothing like it`") && err.contains("1 installed"),
        "{err}"
    );
    for file in ["/nonexist", "/nowhere/at/all.json", "none.json"] {
        let exec = ["exec", "dev.example.echo", "-f", file];
        let (code, _, err) = kami(&place, &exec);
        assert_eq!(code, 3, "{err}");
        let expected = format!("error: input file not found: `{file}`");
        assert!(err.starts_with(&expected), "{err}");
    }
    let policy = place.0.path().join("data/kami/policy.toml");
    fs::write(&policy, "[default]\nmax_fule = 1\n").unwrap();
    let (code, out, err) = kami(&place, &["policy"]);
    assert_eq!((code, out.as_str()), (2, "[default]\nmax_fule = 1\n"));
    assert!(err.contains("unknown field `max_fule`"), "{err}");
    fs::remove_file(&policy).unwrap();
    fs::create_dir(&policy).unwrap();
    let (code, _, err) = kami(&place, &["policy"]);
    assert_ne!(code, 0, "{err}");
    let (code, _, err) = kami(&place, &["install", "owner/echo"]);
    assert!(code == 3 && err.contains("owner/repo@tag"), "{err}");
    let (code, _, err) = kami(&place, &["publish", "echo"]);
    assert!(code == 2 && err.contains("nothing is uploaded"), "{err}");
}

#[test]
fn tools_are_searched_and_entries_for_an_index_made() {
    let place = with_echo();
    let found = place.kami_good(&["search", "probe"]);
    assert!(found.contains("dev.example.echo") && found.contains("installed"));
    let (code, out, err) = kami(&place, &["search", "weather"]);
    assert_eq!((code, out.as_str()), (0, ""));
    assert!(err.contains("--registry"), "{err}");
    let source = "somebody/echo@v1.0.0";
    let entry = place.kami_good(&["publish", "echo", "--source", source]);
    let entry: Value = serde_json::from_str(&entry).unwrap();
    fs::write(
        place.0.path().join("index.json"),
        Value::from(vec![entry]).to_string(),
    )
    .unwrap();
    place.kami_good(&["uninstall", "dev.example.echo"]);
    let found = place.kami_good(&["search", "echo", "--registry", "index.json"]);
    assert!(found.contains(&format!("kami install {source}")), "{found}");
}

#[test]
fn piped_output_commands_no_terminal() {
    let place = Place::new();
    let wild = "\u{1b}]0;owned\u{7}\u{1b}[2Jhello";
    let body = format!("(call $ok (i32.const 4096) (i32.const {}))", wild.len());
    let escaped: String = wild.bytes().map(|it| format!("\\{it:02x}")).collect();
    let tool = kenning_testing_wasm::Tool::new(&body)
        .more(&format!("(data (i32.const 4096) \"{escaped}\")"));
    place.package("wild", &tool.build().unwrap(), "");
    let manifest = place.0.path().join("wild/tool.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("A probe", "A \\u001b[31mprobe")).unwrap();
    let (installs, _, _) = kami(&place, &["install", "wild"]);
    let commands: &[&[&str]] = &[
        &["list"],
        &["inspect", "dev.example.wild"],
        &["search", "wild"],
        &["exec", "dev.example.wild"],
        &["run", "wild/tool.wasm"],
    ];
    // A manifest with escapes need not be accepted; the answer of a tool always is.
    let commands = if installs == 0 {
        commands
    } else {
        &commands[4..]
    };
    for arguments in commands {
        let out = place.kami_good(arguments);
        assert!(!out.contains('\u{1b}') && !out.contains('\u{7}'), "{out:?}");
    }
    let out = place.kami_good(&["run", "wild/tool.wasm"]);
    assert!(out.ends_with("hello\n"), "{out:?}");
    let raw = place.kami_good(&["run", "wild/tool.wasm", "--raw"]);
    assert_eq!(raw, format!("{wild}\n"));
}

#[test]
fn the_functions_of_a_component_are_listed() {
    let place = Place::new();
    place.package("shop", &probes::generic().unwrap(), "");
    place.kami_good(&["install", "shop"]);
    let (code, _, err) = kami(&place, &["exec", "dev.example.shop"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("`dev.example.shop.total`"), "{err}");
    let sum = r#"{"a":2,"b":40}"#;
    let exec = ["exec", "dev.example.shop.total", "-i", sum];
    assert_eq!(place.kami_good(&exec), "42\n");
    let shown = place.kami_good(&["inspect", "dev.example.shop"]);
    assert!(
        shown.contains("function:    dev.example.shop.half"),
        "{shown}"
    );
}

#[test]
fn a_program_answers_with_what_it_prints() {
    let place = Place::new();
    place.package("program", &probes::command().unwrap(), "");
    place.kami_good(&["install", "program"]);
    let input = r#"{"message":"hi"}"#;
    for arguments in [
        ["exec", "dev.example.program", "-i", input],
        ["run", "program/tool.wasm", "-i", input],
    ] {
        assert_eq!(place.kami_good(&arguments), format!("{input}\n"));
    }
    let (code, out, err) = kami(&place, &["exec", "dev.example.program"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("ended with code 1: no message"), "{err}");
}

/// A compiler that does what a test wants, found before any other.
fn with_cargo(place: &Place, script: &str, arguments: &[&str]) -> (i32, String, String) {
    use std::os::unix::fs::PermissionsExt as _;
    let bin = place.0.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let cargo = bin.join("cargo");
    fs::write(&cargo, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = place.kami(arguments);
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let output = command.stdin(Stdio::null()).output().unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn a_project_is_built_and_its_component_put_where_the_manifest_wants_it() {
    let place = Place::new();
    place.package("echo", &probes::echo().unwrap(), "");
    let dir = place.0.path().join("echo");
    fs::rename(dir.join("tool.wasm"), dir.join("made")).unwrap();
    let build = "echo \"$@\" >&2; mkdir -p target/wasm32-wasip2/release; cp made target/wasm32-wasip2/release/echo.wasm";
    let (code, out, err) = with_cargo(&place, build, &["build", "echo"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.trim_end().ends_with("echo/tool.wasm"), "{out}");
    assert!(err.contains("build --target wasm32-wasip2"), "{err}");
    place.kami_good(&["install", "echo"]);
    let (code, _, err) = with_cargo(&place, "exit 1", &["build", "echo"]);
    assert!(
        code == 2 && err.contains("the project does not build"),
        "{err}"
    );
    let (code, _, err) = kami(&place, &["build", "vault"]);
    assert!(code == 3 && err.contains("tool.toml not found"), "{err}");
}

#[test]
fn a_tool_that_is_exported_twice_is_told_about_exports_false() {
    let place = Place::new();
    place.package("echo", &probes::echo().unwrap(), "");
    // As rustc and the linker say it.
    for complaint in [
        "error: symbol `kami:tool/tool@0.1.0#run` is already defined",
        "rust-lld: error: duplicate symbol: kami:tool/tool@0.1.0#run",
    ] {
        let script = format!("echo '{complaint}' >&2; exit 101");
        let (code, _, err) = with_cargo(&place, &script, &["build", "echo"]);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("`exports: false`"), "{err}");
    }
    let (_, _, err) = with_cargo(&place, "echo 'error: no' >&2; exit 101", &["build", "echo"]);
    assert!(!err.contains("exports: false"), "{err}");
}

#[test]
fn whoever_runs_a_large_component_is_told_that_it_is_compiled_once() {
    let place = Place::new();
    let mut wasm = probes::echo().unwrap();
    // A section that nobody reads: its size, and its name.
    wasm.extend([0, 0x82, 0x80, 0x40, 1, b'x']);
    wasm.extend(vec![0; 1024 * 1024]);
    place.package("echo", &wasm, "");
    let run = ["run", "echo/tool.wasm"];
    let (code, out, err) = kami(&place, &run);
    assert_eq!((code, out.as_str()), (0, "{}\n"), "{err}");
    assert!(err.contains("compiling 1.0 MiB"), "{err}");
    let (_, _, err) = kami(&place, &run);
    assert!(!err.contains("compiling"), "{err}");
}
