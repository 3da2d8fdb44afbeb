//! What items cost: finding one of many, the first look at them, and running a tool.
//!
//! The program is the real one, asked over its standard streams. Beside a Bash tool stands the same
//! script under the same jail without anything around it; beside a WASM tool run by `execute` stands
//! the same tool called by its own name.

use super::fixture;
use super::meter::ms;
use super::wasm::programs::{Programs, Tools};
use super::wasm::server::Server;
use super::wasm::table::Table;
use super::wasm::{Took, took};
use crate::options::Options;
use anyhow::{Result, ensure};
use kenning_jail::{Launcher, Spec};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ECHO: &str = "dev.example.echo";
/// Words of which every item has a few.
const WORDS: [&str; 12] = [
    "oauth", "deploy", "invoice", "harbor", "parser", "winter", "socket", "ledger", "mirror",
    "canary", "orchid", "tunnel",
];

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["items", "calls", "binary"])?;
    let n_items: usize = options.value("items", 10_000)?;
    let n_calls: usize = options.value("calls", 200)?;
    let programs = Programs::find(options)?;
    let root = fixture::directory()?;
    let mut table = Table::default();
    searches(&programs, root.path(), n_items, n_calls, &mut table)?;
    scripts(&programs, root.path(), n_calls.min(60), &mut table)?;
    components(&programs, root.path(), n_calls, &mut table)?;
    table.print();
    Ok(())
}

/// A server of a project, with a data directory and a home of its own.
fn server(programs: &Programs, project: &Path) -> Result<Server> {
    let policy = project.join("data/kiwi");
    fs::create_dir_all(&policy)?;
    fs::write(policy.join("policy.toml"), "agents_may_sign = true\n")?;
    let mut command = programs.mcp(&project.join("data"));
    command
        .env("HOME", project.join("home"))
        .arg("--project")
        .arg(project);
    Server::start(command)
}

fn searches(
    programs: &Programs,
    root: &Path,
    n_items: usize,
    n_calls: usize,
    table: &mut Table,
) -> Result<()> {
    let project = root.join("many");
    for n in 0..n_items {
        let dir = project.join(format!(".ai/knowledge/area-{}", n % 50));
        if n < 50 {
            fs::create_dir_all(&dir)?;
        }
        let word = |step: usize| WORDS[(n / step) % WORDS.len()];
        let text = format!(
            "---\nzettel_id: item-{n}\ntitle: {} {} {n}\nentry_type: pattern\ncategory: area-{}\ntags: [{}]\n---\n\n{}\n",
            word(1),
            word(12),
            n % 50,
            word(144),
            fixture::words(n as u64, 400)
        );
        fs::write(dir.join(format!("item-{n}.md")), text)?;
    }
    let mut server = server(programs, &project)?;
    let ask = |server: &mut Server, query: &str| {
        server.call(
            "search",
            &json!({ "item_type": "knowledge", "query": query }),
        )
    };
    let (began, before) = (Instant::now(), server.cpu()?);
    ask(&mut server, "oauth")?;
    let first = Took {
        wall: ms(began.elapsed()),
        wall_p99: ms(began.elapsed()),
        cpu: ms(server.cpu()?.saturating_sub(before)),
    };
    let bare = bare_read(&project)?;
    table.row(
        &format!("first search over {n_items} items: reads, writes and indexes them"),
        "3 s",
        &first,
        &format!("{:.1} x reading the files", first.wall / bare),
    );
    ask(&mut server, "deploy")?;
    let before = server.cpu()?;
    let mut walls = Vec::new();
    for n in 0..n_calls {
        let query = format!("{} {}", WORDS[n % 12], WORDS[(n / 12 + 3) % 12]);
        let began = Instant::now();
        ask(&mut server, &query)?;
        walls.push(began.elapsed());
    }
    let used = server.cpu()?.saturating_sub(before);
    table.row(
        &format!("search over {n_items} items"),
        "5 ms",
        &took(&mut walls, used),
        "",
    );
    server.stop()
}

/// How long reading every file takes, in milliseconds.
fn bare_read(project: &Path) -> Result<f64> {
    let began = Instant::now();
    let mut bytes = 0;
    for area in fs::read_dir(project.join(".ai/knowledge"))? {
        for file in fs::read_dir(area?.path())? {
            bytes += fs::read(file?.path())?.len();
        }
    }
    ensure!(bytes > 0, "there are no items");
    Ok(ms(began.elapsed()))
}

fn scripts(programs: &Programs, root: &Path, n_calls: usize, table: &mut Table) -> Result<()> {
    let project = root.join("scripts");
    let tools = project.join(".ai/tools/demo");
    fs::create_dir_all(&tools)?;
    fs::create_dir_all(project.join("home"))?;
    let script = "#!/bin/bash\n# __version__ = \"1.0.0\"\n# __tool_type__ = \"script\"\n# __category__ = \"demo\"\necho done\n";
    fs::write(tools.join("hello.sh"), script)?;
    // As root the jail runs programs as a user without rights, who must be let in.
    for path in project.ancestors().take_while(|it| it.starts_with(root)) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    let mut server = server(programs, &project)?;
    let item = |action: &str| json!({ "item_type": "tool", "action": action, "item_id": "hello" });
    server.call("execute", &item("sign"))?;
    let launcher = Launcher {
        program: programs.kenning().to_owned(),
    };
    let bare = project.join("bare.sh");
    fs::write(&bare, "echo done\n")?;
    let spec = bare_spec(&project, bare);
    let (mut walls, mut bare_walls) = (Vec::new(), Vec::new());
    let mut used = Duration::ZERO;
    for n in 0..=n_calls {
        let (began, before) = (Instant::now(), server.cpu()?);
        server.call("execute", &item("run"))?;
        let (wall, cpu) = (began.elapsed(), server.cpu()?.saturating_sub(before));
        let began = Instant::now();
        let outcome = kenning_jail::run(&launcher, &spec, &Arc::default());
        let outcome = outcome.map_err(|it| anyhow::anyhow!("{it}"))?;
        ensure!(
            outcome.stdout == b"done\n",
            "the script said {:?}",
            outcome.stdout
        );
        if n > 0 {
            walls.push(wall);
            used += cpu;
            bare_walls.push(began.elapsed());
        }
    }
    let (run, bare) = (
        took(&mut walls, used),
        took(&mut bare_walls, Duration::ZERO),
    );
    let ratio = format!("{:.2} x the bare run", run.wall / bare.wall);
    table.row("a Bash tool by `execute`", "1.5 x bare", &run, &ratio);
    table.row("the same script under the same jail, bare", "", &bare, "");
    server.stop()
}

fn bare_spec(project: &Path, script: PathBuf) -> Spec {
    let mut spec = Spec::new("/bin/bash");
    spec.args = ["-e", "-o", "pipefail"].map(Into::into).into();
    spec.args.push(script.into());
    spec.env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    spec.cwd = project.to_owned();
    spec.read = vec![project.to_owned()];
    spec.allow_system();
    spec
}

fn components(programs: &Programs, root: &Path, n_calls: usize, table: &mut Table) -> Result<()> {
    let project = root.join("components");
    fs::create_dir_all(project.join("home"))?;
    let tools = Tools::build()?;
    programs.install(&project.join("data"), &tools.package("echo", ECHO, root)?)?;
    let mut server = server(programs, &project)?;
    let input = json!({ "message": "hello world" });
    let by_execute = json!({
        "item_type": "tool", "action": "run", "item_id": ECHO, "parameters": { "inputs": input },
    });
    let calls = [(ECHO, &input), ("execute", &by_execute)];
    let mut walls = [Vec::new(), Vec::new()];
    let mut used = [Duration::ZERO; 2];
    for turn in 0..=n_calls.div_ceil(50) {
        for (kind, (name, arguments)) in calls.iter().enumerate() {
            let before = server.cpu()?;
            for _ in 0..50 {
                let began = Instant::now();
                server.call(name, arguments)?;
                if turn > 0 {
                    walls[kind].push(began.elapsed());
                }
            }
            if turn > 0 {
                used[kind] += server.cpu()?.saturating_sub(before);
            }
        }
    }
    let [mut direct, mut through] = walls;
    let direct = took(&mut direct, used[0]);
    let through = took(&mut through, used[1]);
    let ratio = format!("{:.2} x the direct call", through.wall / direct.wall);
    table.row("a WASM tool by `execute`", "1.2 x direct", &through, &ratio);
    table.row("the same tool by its own name", "", &direct, "");
    server.stop()
}
