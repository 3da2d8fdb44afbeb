//! README and the guides, pasted: every `sh` block of a page, in order, in one shell, in an empty home
//! directory. Blocks that cannot be run here (another machine's name, a client) are `text`.

use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The blocks of a page as one script. Building and installing are what made this test; the port is one
/// that nobody else has.
fn script(page: &str, port: u16) -> String {
    let text = std::fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
    let blocks = text.split("```sh\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap());
    let lines = blocks.flat_map(str::lines);
    let lines = lines.filter(|line| !line.starts_with("cargo "));
    let script: Vec<&str> = lines.collect();
    let script = script.join("\n");
    assert!(!script.is_empty(), "{page} has no block");
    script.replace("8351", &port.to_string()).replace(
        "kenning serve",
        &format!("kenning serve --listen 127.0.0.1:{port}"),
    )
}

fn check(page: &str) {
    let home = tempfile::tempdir().unwrap();
    check_in(home.path(), page, "", |script| script, &[]);
}

/// The same in a home directory that something was prepared in: `before` runs first, `changed` puts in what
/// a reader puts in, and the variables are those of the reader's shell.
fn check_in(
    home: &Path,
    page: &str,
    before: &str,
    changed: impl Fn(String) -> String,
    variables: &[(&str, String)],
) {
    let examples = Path::new(ROOT).join("examples");
    crate::graph_guide::copy(&examples.join("graph"), &home.join("examples/graph"));
    crate::graph_guide::copy(&examples.join("kiwi"), &home.join("examples/kiwi"));
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let programs = Path::new(env!("CARGO_BIN_EXE_kenning")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    // Whatever is still running when the page ends is ended with it.
    let script = format!(
        "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{before}\n{}",
        changed(script(page, port))
    );
    let output = Command::new("bash")
        .args(["-e", "-u", "-x", "-o", "pipefail", "-c", &script])
        .env_clear()
        .env("HOME", home)
        .env("PATH", format!("{}:{path}", programs.display()))
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .current_dir(home)
        .stdin(Stdio::null())
        .process_group(0)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{page}: {}\n{said}", output.status);
}

#[test]
fn the_guide_for_operators_can_be_pasted() {
    check("docs/guides/operate.md");
}

#[test]
fn the_guide_to_forgetting_can_be_pasted() {
    check("docs/guides/forget.md");
}

#[test]
fn every_block_of_the_readme_runs_when_pasted() {
    check("README.md");
}

/// Every query of a page must find something, but for the one that shows what a misspelled name is answered.
const FINDING: &str = r#"
kenning() {
  local said
  said=$(command kenning "$@") || return
  printf '%s\n' "$said"
  case "$*" in query*Documents*) return ;; esac
  if [ "$1" = query ]; then
    case "$said" in '' | 'no rows' | *'"count": 0'* | *'"count":0'*) echo "no rows: $*" >&2; return 1 ;; esac
  fi
}
"#;

#[test]
fn every_block_of_the_cypher_guide_runs_when_pasted_and_finds_something() {
    let home = tempfile::tempdir().unwrap();
    let page = "docs/guides/cypher.md";
    check_in(home.path(), page, FINDING, |script| script, &[]);
}

#[test]
fn the_guide_to_projects_runs_as_it_is_pasted() {
    check("docs/guides/projects.md");
}

#[test]
fn the_guide_to_capture_runs_as_it_is_pasted() {
    check("docs/guides/capture.md");
}

#[test]
fn the_guide_to_code_runs_as_it_is_pasted() {
    check("docs/guides/code.md");
}

#[test]
fn the_guide_to_federation_runs_as_it_is_pasted() {
    let home = tempfile::tempdir().unwrap();
    let free = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port().to_string()
    };
    let (one, two) = (free(), free());
    let changed = |script: String| script.replace("8361", &one).replace("8362", &two);
    check_in(home.path(), "docs/guides/federation.md", "", changed, &[]);
}

#[test]
fn every_block_of_the_page_on_workflows_runs_when_pasted() {
    check("docs/guides/workflows.md");
}

#[test]
fn the_guide_to_agents_runs_as_it_is_pasted() {
    check("docs/guides/agents.md");
}

#[test]
fn every_block_of_getting_started_runs_when_pasted() {
    check("docs/guides/getting-started.md");
}

#[test]
fn every_block_of_the_page_on_claude_code_runs_when_pasted() {
    check("docs/guides/claude-code.md");
}

#[test]
fn every_block_of_the_page_on_http_runs_when_pasted() {
    check("docs/guides/http.md");
}

#[test]
fn every_block_of_the_page_on_the_log_runs_when_pasted() {
    check("docs/guides/log.md");
}

#[test]
fn every_block_of_the_page_on_omi_runs_when_pasted() {
    check("docs/guides/omi.md");
}

#[test]
fn every_block_of_the_page_on_backups_runs_when_pasted() {
    check("docs/guides/backup.md");
}

#[test]
fn every_block_of_the_page_on_peers_runs_when_pasted() {
    let home = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let port = port.unwrap().port().to_string();
    let changed = |script: String| script.replace("7610", &port);
    check_in(home.path(), "docs/guides/peers.md", "", changed, &[]);
}

/// The blocks of a page in a language, in order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
    let opening = format!("```{language}\n");
    let blocks = text.split(&opening).skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap().to_owned());
    blocks.collect()
}

#[test]
fn the_tool_of_the_page_on_wasm_tools_is_built_and_every_block_of_both_pages_runs_when_pasted() {
    let home = tempfile::tempdir().unwrap();
    let greet = home.path().join("greet");
    std::fs::create_dir_all(greet.join("src")).unwrap();
    let page = "docs/guides/wasm-tools.md";
    let (toml, rust) = (blocks(page, "toml"), blocks(page, "rust"));
    let guest = Path::new(ROOT)
        .canonicalize()
        .unwrap()
        .join("crates/kami-guest");
    let manifest = toml[0].replace("../kami/crates/kami-guest", guest.to_str().unwrap());
    // The tests that the page shows stand behind the tool.
    let source = format!("{}\n{}", rust[0], rust[2]);
    assert!(source.contains("#[test]") && toml[1].contains("[tool]"));
    std::fs::write(greet.join("Cargo.toml"), manifest).unwrap();
    std::fs::write(greet.join("src/lib.rs"), source).unwrap();
    std::fs::write(greet.join("tool.toml"), &toml[1]).unwrap();
    // The versions that the examples are built with are here already.
    let lock = Path::new(ROOT).join("examples/tools/Cargo.lock");
    std::fs::copy(lock, greet.join("Cargo.lock")).unwrap();
    let own = std::env::var("HOME").unwrap();
    let tool_homes =
        [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")].map(|(name, folder)| {
            (
                name,
                std::env::var(name).unwrap_or_else(|_| format!("{own}/{folder}")),
            )
        });
    let at_home = |script: String| script;
    check_in(home.path(), page, "cd greet", at_home, &tool_homes);

    let page = "docs/guides/wasm-policy.md";
    let policy = blocks(page, "toml");
    std::fs::write(home.path().join("policy.toml"), &policy[0]).unwrap();
    let keys = home
        .path()
        .join(".local/share/kenning/kami/signing.key.pub");
    let key = std::fs::read_to_string(keys).unwrap();
    let with_key = |script: String| script.replace("KEY", key.trim());
    // A reader of this page has a tool that nobody signed.
    check_in(
        home.path(),
        page,
        "rm greet/tool.sig",
        with_key,
        &tool_homes,
    );
}

#[test]
fn every_block_of_the_page_on_postgres_runs_when_pasted() {
    let server = kenning_testing_postgres::shared();
    let url = server.url();
    let (user, rest) = url
        .strip_prefix("postgres://")
        .unwrap()
        .split_once(':')
        .unwrap();
    let (password, rest) = rest.split_once('@').unwrap();
    let (address, _) = rest.split_once('/').unwrap();
    let (host, port) = address.split_once(':').unwrap();
    let variables = [
        ("PGUSER", user.to_owned()),
        ("PGPASSWORD", password.to_owned()),
        ("PGHOST", host.to_owned()),
        ("PGPORT", port.to_owned()),
    ];
    let home = tempfile::tempdir().unwrap();
    // Whoever moves there has a store already; a shared server may know the names of the page.
    let before = "omi init; omi store 'The mill grinds at night.'";
    let name = format!("reader_{}", std::process::id());
    let own = |script: String| {
        let script = script.replace("127.0.0.1:5432", address);
        let script = script.replace("ROLE kenning", &format!("ROLE {name}"));
        let script = script.replace("--owner kenning kenning", &format!("--owner {name} {name}"));
        let script = script.replace("psql kenning", &format!("psql {name}"));
        let script = script.replace("postgres://kenning:", &format!("postgres://{name}:"));
        script.replace(&format!("{address}/kenning"), &format!("{address}/{name}"))
    };
    let path = std::env::var("PATH").unwrap();
    let programs = server.programs().display().to_string();
    let programs = format!("export PATH={programs}:$PATH:{path}\n{before}");
    check_in(
        home.path(),
        "docs/guides/postgres.md",
        &programs,
        own,
        &variables,
    );
}
