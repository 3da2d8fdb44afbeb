//! The developer's guide of KAMI, walked from its first line to its last: every command is run and
//! every snippet is used, as the contract's own text has them. Only the clone and the release build of
//! the program are replaced, by this checkout and by the program that is tested.

use crate::Client;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The contract without its prose.
const CONTRACT: &str = include_str!("../contracts/kami.md");

/// The blocks of a language under a heading.
fn blocks(heading: &str, language: &str) -> Vec<String> {
    let (mut here, mut open, mut found) = (false, None, Vec::new());
    for line in CONTRACT.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(words)) => open = Some((words.to_owned(), String::new())),
            (Some(_), Some(_)) => {
                let (words, text) = open.take().unwrap();
                if here && words == language {
                    found.push(text);
                }
            }
            (Some((_, text)), None) => *text += &format!("{line}\n"),
            (None, None) if line.starts_with('#') => {
                here = line.trim_start_matches(['#', ' ']) == heading;
            }
            (None, None) => {}
        }
    }
    assert!(!found.is_empty(), "no {language} under `{heading}`");
    found
}

fn block(heading: &str, language: &str) -> String {
    blocks(heading, language).remove(0)
}

/// The commands of a block, each in one line.
fn commands(heading: &str) -> Vec<String> {
    let text = block(heading, "bash").replace("\\\n", " ");
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|it| !it.is_empty() && !it.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// Where tools are built: a directory that stays, so that what they depend on is built once, with the
/// checkout beside them as the guide has it.
pub(crate) struct Workshop {
    root: PathBuf,
    data: tempfile::TempDir,
    // Two builds at once would only wait for each other.
    _alone: MutexGuard<'static, ()>,
}

impl Workshop {
    pub(crate) fn open(name: &str) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        need_wasm_target();
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&root).unwrap();
        let link = root.join("kami");
        drop(fs::remove_file(&link));
        std::os::unix::fs::symlink(checkout(), link).unwrap();
        Self {
            root,
            data: tempfile::tempdir().unwrap(),
            _alone: alone,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Left alone if it is the same, so that it is not built again.
        if fs::read_to_string(&path).ok().as_deref() != Some(text) {
            fs::write(path, text).unwrap();
        }
    }

    /// What `cargo new --lib` leaves, with the versions that this checkout has.
    fn project(&self, name: &str, manifest: &str, source: &str) {
        self.write(&format!("{name}/Cargo.toml"), manifest);
        self.write(&format!("{name}/src/lib.rs"), source);
        let lock = self.path(&format!("{name}/Cargo.lock"));
        if !lock.exists() {
            fs::copy(checkout().join("examples/tools/Cargo.lock"), lock).unwrap();
        }
        // One directory for all: they depend on the same.
        let (built, link) = (self.path("built"), self.path(&format!("{name}/target")));
        fs::create_dir_all(&built).unwrap();
        drop(fs::remove_file(&link));
        std::os::unix::fs::symlink(built, link).unwrap();
    }

    /// A command line of the guide, in a directory of the workshop.
    pub(crate) fn run(&self, dir: &str, line: &str) -> Output {
        let programs = Path::new(env!("CARGO_BIN_EXE_kami")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let offline = is_offline(line);
        let run = |offline: bool| {
            let mut command = Command::new("bash");
            command
                .args(["-euo", "pipefail", "-c", line])
                .current_dir(self.path(dir))
                .stdin(Stdio::null())
                .env("PATH", format!("{}:{path}", programs.display()))
                .env("KENNING_DATA", self.data.path());
            for name in [
                "CARGO_TARGET_DIR",
                "RUSTFLAGS",
                "CARGO_ENCODED_RUSTFLAGS",
                "KENNING_LOG",
            ] {
                command.env_remove(name);
            }
            if offline {
                command.env("CARGO_NET_OFFLINE", "true");
            }
            command.output().unwrap()
        };
        let output = run(offline);
        // A machine that has never built a tool has to fetch what it depends on.
        match offline && !output.status.success() {
            true => run(false),
            false => output,
        }
    }

    /// Its standard output, and that it succeeded.
    pub(crate) fn good(&self, dir: &str, line: &str) -> String {
        let output = self.run(dir, line);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {err}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The program, over the same data.
    fn kami(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kami"));
        command
            .args(arguments)
            .env_clear()
            .env("KENNING_DATA", self.data.path());
        command
    }
}

fn is_offline(line: &str) -> bool {
    line.starts_with("cargo ")
}

pub(crate) fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The toolchain file names the target, but an older checkout of the toolchain may lack it.
fn need_wasm_target() {
    let is_there = || {
        let found = Command::new("rustc")
            .args(["--print", "target-libdir", "--target", "wasm32-wasip2"])
            .output()
            .expect("rustc");
        let dir = String::from_utf8(found.stdout).unwrap();
        !dir.trim().is_empty() && Path::new(dir.trim()).is_dir()
    };
    static INSTALLED: std::sync::Once = std::sync::Once::new();
    INSTALLED.call_once(|| {
        if !is_there() {
            let added = Command::new("rustup")
                .args(["target", "add", "wasm32-wasip2"])
                .status();
            assert!(
                added.is_ok_and(|it| it.success()) && is_there(),
                "tools cannot be built here: run `rustup target add wasm32-wasip2`"
            );
        }
    });
}

#[test]
fn the_quick_start_works_to_the_letter() {
    let shop = Workshop::open("quick-start");
    assert_eq!(
        commands("1. Create the project"),
        ["cargo new --lib my-echo-tool", "cd my-echo-tool"]
    );
    let source = block("3. Write the tool (src/lib.rs)", "rust");
    let manifest = block("2. Configure Cargo.toml", "toml");
    shop.project("my-echo-tool", &manifest, &source);
    shop.write(
        "my-echo-tool/tool.toml",
        &block("4. Write the manifest (tool.toml)", "toml"),
    );
    for line in commands("5. Build") {
        shop.good("my-echo-tool", &line);
    }
    let lines = commands("6. Install and run");
    let [install, list, exec] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert_eq!(
        shop.good("my-echo-tool", install),
        "",
        "a result is data only"
    );
    assert!(shop.good("my-echo-tool", list).contains("dev.example.echo"));
    let answer = r#"{"echo":{"message":"hello world"},"tool":"dev.example.echo"}"#;
    assert_eq!(shop.good("my-echo-tool", exec), format!("{answer}\n"));
    fs::remove_file(shop.path("my-echo-tool/my_echo_tool.wasm")).unwrap();
    assert_eq!(
        shop.good("my-echo-tool", exec),
        format!("{answer}\n"),
        "what was installed is a copy"
    );
}

/// The tool of the further chapters: the macro's snippet over the quick start's handler, the helpers'
/// snippet in both of its options, the results' snippets and the native tests.
fn my_tool() -> String {
    let echo = block("3. Write the tool (src/lib.rs)", "rust");
    let handler = &echo[echo.find("fn handle(").unwrap()..];
    let helpers = block("ABI Helpers", "rust");
    let without = |start: &str| -> String {
        let lines = helpers.lines().filter(|it| !it.trim().starts_with(start));
        lines.map(|it| format!("{it}\n")).collect()
    };
    format!(
        "{}\n{handler}\n\
         fn my_handler_function(input: &str) -> Result<String, String> {{ handle(input) }}\n\
         #[allow(unused)]\nmod as_json {{ {} }}\n\
         #[allow(unused)]\nmod as_text {{ {} }}\n\
         #[allow(unused)]\nfn success() -> Result<String, String> {{ {} }}\n\
         #[allow(unused)]\nfn error() -> Result<String, String> {{ {} }}\n{}",
        block("The kami_tool! Macro", "rust"),
        without("text_result("),
        without("to_output("),
        block("Output (Success)", "rust"),
        block("Output (Error)", "rust"),
        block("Native Tests", "rust"),
    )
}

#[test]
fn every_further_command_and_snippet_of_the_guide_holds() {
    let shop = Workshop::open("quick-start");
    let manifest = block("2. Configure Cargo.toml", "toml").replace("my-echo-tool", "my-tool");
    shop.project("my-tool", &manifest, &my_tool());
    let manifest = block("4. Write the manifest (tool.toml)", "toml")
        .replace("dev.example.echo", "dev.example.my-tool")
        .replace("my_echo_tool", "my_tool");
    let optional = manifest.replace("required = true", "required = false");
    shop.write("my-tool/tool.toml", &optional);
    let native = shop.good("my-tool", "cargo test");
    assert!(native.contains("3 passed"), "{native}");
    let wasm = "target/wasm32-wasip2/release/my_tool.wasm";
    let mut said = Vec::new();
    for line in commands("WASM Integration Test") {
        said.push(shop.good("my-tool", &line));
        shop.good(
            "my-tool",
            &format!("if [ -e {wasm} ]; then cp {wasm} .; fi"),
        );
    }
    let echoed = |it: &str| {
        let answer = json!({ "echo": { "message": it }, "tool": "dev.example.echo" });
        format!("{answer}\n")
    };
    assert_eq!(said[1..], [echoed("test"), String::new(), echoed("test")]);
    for line in commands("Install") {
        shop.good(".", "kami uninstall dev.example.my-tool");
        assert_eq!(shop.good(".", &line), "");
    }
    let verify = commands("Verify");
    assert!(
        shop.good(".", &verify[0])
            .contains("dev.example.my-tool\t1.0.0")
    );
    assert!(
        shop.good(".", &verify[1])
            .contains("limits:      16 MB, 1000 ms, 500000 fuel")
    );
    shop.write("my-tool/request.json", r#"{"message":"hello"}"#);
    let execute = commands("Execute");
    assert_eq!(execute.len(), 5);
    for line in execute {
        assert_eq!(shop.good("my-tool", &line), echoed("hello"), "{line}");
    }
    for line in commands("Debugging") {
        let output = shop.run("my-tool", &line);
        let empty = "{\"echo\":{},\"tool\":\"dev.example.echo\"}\n";
        assert_eq!(String::from_utf8_lossy(&output.stdout), empty, "{line}");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(err.contains(" fuel, "), "{line}: {err}");
    }
    serve(&shop);
    validate(&shop);
    let wit = fs::read_to_string(checkout().join("crates/kami-guest/wit/kami-tool.wit")).unwrap();
    let promised = block("WIT Interface", "wit");
    for line in promised.lines().filter(|it| it.contains("func")) {
        assert!(wit.contains(line.trim()), "{line}");
    }
}

/// The chapter on MCP: the two messages, as they stand there.
fn serve(shop: &Workshop) {
    assert_eq!(commands("MCP Integration"), ["kami serve"]);
    let mut client = Client::of(shop.kami(&["serve"]));
    let messages = blocks("MCP Integration", "json");
    let mut answer = |message: &str| {
        let message: Value = serde_json::from_str(message).unwrap();
        client.request(
            message["method"].as_str().unwrap(),
            message.get("params").unwrap_or(&json!({})),
        )
    };
    let listed = answer(&messages[0]);
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1, "the installed tools and nothing else");
    assert_eq!(tools[0]["name"], "dev.example.my-tool");
    assert_eq!(
        tools[0]["inputSchema"]["properties"]["message"]["type"],
        "string"
    );
    let called = &answer(&messages[1])["result"];
    let text: Value = serde_json::from_str(called["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text["echo"]["message"], "hello from AI");
    assert_eq!(called.get("isError"), None);
    let input: Value = serde_json::from_str(&block("Input", "json")).unwrap();
    let called = client.call("dev.example.my-tool", &input);
    assert_eq!(called["result"]["structuredContent"]["echo"], input);
    assert_eq!(client.finish(), 0);
}

/// The chapters on the manifest: each snippet is one that can be installed.
fn validate(shop: &Workshop) {
    let whole = block("Complete Reference", "toml");
    let head = whole.split("[security]").next().unwrap();
    let mut all = vec![whole.clone()];
    let sections = block("Principle of Least Privilege", "toml");
    all.extend(
        sections
            .split("[security]")
            .skip(1)
            .map(|it| format!("{head}[security]{it}")),
    );
    for heading in ["Network Access", "Filesystem Access"] {
        let lines = block(heading, "toml");
        let lines = lines.lines().filter(|it| it.contains('='));
        all.extend(lines.map(|it| format!("{head}[security]\n{it}\n")));
    }
    assert_eq!(all.len(), 9);
    for manifest in &all {
        shop.write("my-tool/tool.toml", manifest);
        let said = shop.good("my-tool", "kami validate .");
        assert!(
            said.starts_with("dev.example.my-tool 1.0.0 can be installed"),
            "{manifest}"
        );
    }
    shop.write("my-tool/tool.toml", &all[1]);
    let concerns = shop.good("my-tool", "kami validate .");
    assert!(
        concerns.contains("! it may send requests to every public host"),
        "{concerns}"
    );
}

/// The examples, built; each in the directory that its manifest is in.
fn examples(shop: &Workshop) -> PathBuf {
    let to = shop.path("examples");
    let from = checkout().join("examples/tools");
    let line = format!(
        "cargo build --manifest-path '{}' --target wasm32-wasip2 --release --target-dir small",
        from.join("Cargo.toml").display()
    );
    shop.good(".", &line);
    for name in [
        "echo",
        "hello-world",
        "json-transform",
        "http-fetch",
        "notes",
    ] {
        let wasm = format!("{}.wasm", name.replace('-', "_"));
        let built = shop.path("small/wasm32-wasip2/release").join(&wasm);
        fs::create_dir_all(to.join(name)).unwrap();
        fs::copy(built, to.join(name).join(&wasm)).unwrap();
        fs::copy(
            from.join(name).join("tool.toml"),
            to.join(name).join("tool.toml"),
        )
        .unwrap();
    }
    to
}

/// Answers every request with `hello`, until the process ends.
fn page() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            drop(std::io::Read::read(&mut stream, &mut head));
            let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\
                          Connection: close\r\n\r\nhello";
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    port
}

#[test]
fn the_examples_are_built_installed_and_run() {
    let shop = Workshop::open("quick-start");
    let examples = examples(&shop);
    let port = page();
    let manifest = examples.join("http-fetch/tool.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    let hosts = r#"["example.com", "*.example.com"]"#;
    assert!(text.contains(hosts));
    fs::write(
        &manifest,
        text.replace(hosts, &format!("[\"127.0.0.1:{port}\"]")),
    )
    .unwrap();
    for name in [
        "echo",
        "hello-world",
        "json-transform",
        "http-fetch",
        "notes",
    ] {
        shop.good("examples", &format!("kami install {name}"));
    }
    for (name, input, expected) in [
        ("echo", r#"{"message":"a"}"#, r#"{"message":"a"}"#),
        ("hello-world", r#"{"name":"Ada"}"#, "Hello, Ada!"),
        (
            "json-transform",
            r#"{"data":{"a":{"b":1}},"flatten":true}"#,
            r#"{"a.b":1}"#,
        ),
        (
            "http-fetch",
            &format!(r#"{{"url":"http://127.0.0.1:{port}/"}}"#),
            r#""body":"hello""#,
        ),
        (
            "notes",
            r#"{"action":"add","text":"milk"}"#,
            r#"{"count":1,"notes":["milk"]}"#,
        ),
        (
            "notes",
            r#"{"action":"list"}"#,
            r#"{"count":1,"notes":["milk"]}"#,
        ),
    ] {
        let said = shop.good(".", &format!("kami exec dev.example.{name} -i '{input}'"));
        assert!(said.contains(expected), "{name}: {said}");
    }
    for (line, code, words) in [
        (
            r#"kami exec dev.example.hello-world -i '{"name":" "}'"#,
            1,
            "error: {\"error\":\"`name` is empty",
        ),
        (
            r#"kami exec dev.example.http-fetch -i '{"url":"http://example.com/"}'"#,
            1,
            "the host refused",
        ),
        (
            r#"kami exec dev.example.echo -i '{"message":1}'"#,
            2,
            "message",
        ),
        (r#"kami exec dev.example.echo"#, 2, "message"),
    ] {
        let output = shop.run(".", line);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {err}");
        assert!(err.contains(words), "{line}: {err}");
        assert_eq!(output.stdout, b"", "{line}");
    }
    let logs = shop.good(".", "kami logs dev.example.hello-world");
    assert!(logs.contains("info  greeting Ada"), "{logs}");
}

#[test]
fn a_new_project_builds_and_is_watched() {
    let shop = Workshop::open("quick-start");
    // What was built is kept from one run to the next.
    let (target, kept) = (shop.path("hello-tool/target"), shop.path("hello-target"));
    drop(fs::rename(&target, &kept));
    drop(fs::remove_dir_all(shop.path("hello-tool")));
    let said = shop.run(".", "kami init hello-tool --prefix org.example");
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    assert_eq!(said.stdout, b"");
    fs::copy(
        checkout().join("examples/tools/Cargo.lock"),
        shop.path("hello-tool/Cargo.lock"),
    )
    .unwrap();
    drop(fs::rename(&kept, &target));
    let watch = "kami dev watch hello-tool --once";
    let first = shop.run(".", &format!("CARGO_NET_OFFLINE=true {watch}"));
    if !first.status.success() {
        shop.good(".", watch);
    }
    assert_eq!(first.stdout, b"");
    let said = shop.good(
        ".",
        r#"kami exec org.example.hello-tool -i '{"message":"Ada"}'"#,
    );
    assert_eq!(said, "{\"greeting\":\"Hello, Ada!\"}\n");
    for (line, words) in [
        ("kami init hello-tool", "not empty"),
        ("kami init Hello", "lower-case letters"),
        ("kami init other --prefix UP", "UP.other"),
        ("kami init other --prefix ''", "other"),
    ] {
        let output = shop.run(".", line);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && err.contains(words),
            "{line}: {err}"
        );
        assert!(!shop.path("other").exists(), "{line}");
    }
}
