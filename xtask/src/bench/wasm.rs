//! What a WASM tool costs: the first call of a process, every later one, the start of a server that
//! has many, and compiling.
//!
//! The programs are the real ones and the tools are those of `examples/tools`. Beside a process that
//! makes one call stands one that only loads the compiled code and calls it ([`bare`]); beside a call
//! over MCP stands a native tool of the same server that does next to nothing.

pub(in crate::bench) mod programs;
pub(in crate::bench) mod server;
pub(in crate::bench) mod table;

use super::meter::{cpu, cpu_of_children, memory_kib_of, ms, percentile};
use super::{fixture, meter};
use crate::options::Options;
use anyhow::{Context as _, Result, ensure};
use kenning_sandbox::{
    Artifact, Capabilities, Digest, Limits, PoolSize, RunCall, Runtime, RuntimeOptions, Sha256,
    ToolCode,
};
use kenning_vault::Dir;
use programs::{Programs, Tools};
use serde_json::json;
use server::Server;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use table::Table;

/// Processes of each kind that are started one after another.
const STARTS: u32 = 30;
/// Tools that a large installation has.
const TOOLS: usize = 50;
/// Times that a component is compiled.
const COMPILES: u32 = 5;
/// Native tools that do next to nothing; the cheapest is what a call is held against.
const NATIVE: [&str; 2] = ["kg_health", "now_read"];
/// Calls of one kind before the other kind has its turn.
const TURN: u32 = 100;

/// Only warm calls, of a tool that is written by hand: this needs no compiler for WASM.
const WARM: &str = "warm";

const ECHO: &str = "dev.example.echo";
const INPUT: &str = r#"{"message":"hello world"}"#;

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["calls", "binary", WARM])?;
    let n_calls: u32 = options.value("calls", 2_000)?;
    let programs = Programs::find(options)?;
    let root = fixture::directory()?;
    let (few, many) = (root.path().join("few"), root.path().join("many"));
    if options.has(WARM) {
        programs.install(&few, &programs::small_echo(ECHO, root.path())?)?;
        let mut table = Table::default();
        warm_calls(&programs, &few, n_calls, &mut table)?;
        table.print();
        return Ok(());
    }
    let tools = Tools::build()?;
    programs.install(&few, &tools.package("echo", ECHO, root.path())?)?;
    let mut table = Table::default();
    first_calls(&programs, &few, &tools, root.path(), &mut table)?;
    warm_calls(&programs, &few, n_calls, &mut table)?;
    in_process(&tools, n_calls, &mut table)?;
    for n in 0..TOOLS {
        let id = format!("{ECHO}-{n}");
        programs.install(&many, &tools.package("echo", &id, root.path())?)?;
    }
    starts(&programs, root.path(), &many, &mut table)?;
    compiling(&tools, &mut table)?;
    table.print();
    Ok(())
}

/// A process that makes one call: `kami exec`, and one that has nothing but the sandbox.
fn first_calls(
    programs: &Programs,
    data: &Path,
    tools: &Tools,
    root: &Path,
    table: &mut Table,
) -> Result<()> {
    let cache = root.join("bare");
    let wasm = tools.component("echo")?;
    let digest = runtime_of(&cache, false)?.prepare(&wasm)?;
    let this = std::env::current_exe()?;
    let exec = || {
        let mut command = programs.kami(data);
        command.args(["exec", ECHO, "--input", INPUT]);
        command
    };
    let bare = || {
        let mut command = Command::new(&this);
        command.args(["bench", "wasm", "bare", "--cache"]);
        command.arg(&cache);
        command.args(["--sha256", &digest.sha256.to_string()]);
        command.args(["--artifact", &digest.artifact.to_string()]);
        command
    };
    let version = || {
        let mut command = programs.kami(data);
        command.arg("--version");
        command
    };
    let [exec, bare, version] = took_each([&exec, &bare, &version])?;
    let ratio = format!(
        "{:.1} x the bare process, {:.1} x its processor time",
        exec.wall / bare.wall,
        exec.cpu / bare.cpu
    );
    table.row(
        "`kami exec` of echo, compiled code cached",
        "40 ms",
        &exec,
        &ratio,
    );
    table.row(
        "bare process: loads the compiled code, calls it once",
        "",
        &bare,
        "",
    );
    table.row("`kami --version`", "", &version, "what any start costs");
    Ok(())
}

/// What a kind of process or call took, in milliseconds.
pub(in crate::bench) struct Took {
    pub(in crate::bench) wall: f64,
    pub(in crate::bench) wall_p99: f64,
    pub(in crate::bench) cpu: f64,
}

/// Starts processes of several kinds in turn, so that a busy moment hits all alike.
fn took_each<const N: usize>(kinds: [&dyn Fn() -> Command; N]) -> Result<[Took; N]> {
    let mut walls: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::new());
    let mut used = [Duration::ZERO; N];
    for round in 0..=STARTS {
        for (kind, command) in kinds.iter().enumerate() {
            let before = cpu_of_children()?;
            let began = Instant::now();
            let done = command().output()?;
            let took = began.elapsed();
            ensure!(
                done.status.success(),
                "{}",
                String::from_utf8_lossy(&done.stderr)
            );
            // The first of each kind reads from disk what the others find in memory.
            if round > 0 {
                walls[kind].push(took);
                used[kind] += cpu_of_children()?.saturating_sub(before);
            }
        }
    }
    let mut all = walls.into_iter().zip(used);
    Ok(std::array::from_fn(|_| {
        let (mut walls, used) = all.next().unwrap_or_default();
        took(&mut walls, used)
    }))
}

pub(in crate::bench) fn took(walls: &mut [Duration], used: Duration) -> Took {
    Took {
        wall: ms(percentile(walls, 0.5)),
        wall_p99: ms(percentile(walls, 0.99)),
        cpu: ms(used) / walls.len().max(1) as f64,
    }
}

/// Calls of one server over its standard streams.
fn warm_calls(programs: &Programs, data: &Path, n_calls: u32, table: &mut Table) -> Result<()> {
    let mut server = Server::start(programs.mcp(data))?;
    let echo = json!({ "message": "hello world" });
    let mut kinds: Vec<(&str, _)> = NATIVE.iter().map(|it| (*it, json!({}))).collect();
    kinds.push((ECHO, echo));
    let mut walls = vec![Vec::new(); kinds.len()];
    let mut used = vec![Duration::ZERO; kinds.len()];
    for turn in 0..=n_calls.div_ceil(TURN) {
        for (kind, (name, arguments)) in kinds.iter().enumerate() {
            let before = server.cpu()?;
            for _ in 0..TURN {
                let began = Instant::now();
                server.call(name, arguments)?;
                // The first turn warms up.
                if turn > 0 {
                    walls[kind].push(began.elapsed());
                }
            }
            if turn > 0 {
                used[kind] += server.cpu()?.saturating_sub(before);
            }
        }
    }
    let mut all = walls
        .iter_mut()
        .zip(used)
        .map(|(walls, used)| took(walls, used));
    let natives: Vec<Took> = all.by_ref().take(NATIVE.len()).collect();
    let echo = all.next().context("echo was called")?;
    let cheapest = natives
        .iter()
        .min_by(|a, b| a.wall.total_cmp(&b.wall))
        .context("native tools were called")?;
    let ratio = format!(
        "{:.2} x the cheapest native tool, {:.2} x its processor time",
        echo.wall / cheapest.wall,
        echo.cpu / cheapest.cpu
    );
    table.row(
        "warm call of echo over MCP stdio",
        "1.5 x native",
        &echo,
        &ratio,
    );
    for (name, took) in NATIVE.iter().zip(&natives) {
        table.row(&format!("warm call of the native `{name}`"), "", took, "");
    }
    server.stop()
}

/// Calls on the runtime itself, without a server around it.
fn in_process(tools: &Tools, n_calls: u32, table: &mut Table) -> Result<()> {
    let wasm = tools.component("echo")?;
    let cache = fixture::directory()?;
    let runtime = runtime_of(cache.path(), true)?;
    let digest = runtime.prepare(&wasm)?;
    for n_threads in [1, 8] {
        let a_thread = (n_calls / n_threads).max(1);
        let work = || -> Result<Vec<Duration>> {
            let mut walls = Vec::new();
            for _ in 0..a_thread {
                let began = Instant::now();
                call_echo(&runtime, &digest, &|| Ok(wasm.clone()))?;
                walls.push(began.elapsed());
            }
            Ok(walls)
        };
        work()?;
        let (began, before) = (Instant::now(), cpu()?);
        let mut walls = std::thread::scope(|scope| -> Result<Vec<Duration>> {
            let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(work)).collect();
            let mut walls = Vec::new();
            for thread in threads {
                let done = thread.join();
                walls.extend(done.map_err(|_| anyhow::anyhow!("a caller panicked"))??);
            }
            Ok(walls)
        })?;
        let (all, used) = (began.elapsed(), cpu()?.saturating_sub(before));
        let rate = walls.len() as f64 / all.as_secs_f64();
        let callers = if n_threads == 1 { "caller" } else { "callers" };
        table.row(
            &format!("call of echo in the process, {n_threads} {callers}"),
            "",
            &took(&mut walls, used),
            &format!("{rate:.0} calls/s"),
        );
    }
    Ok(())
}

/// From the start of a server to its answer to `initialize`, and the memory that it then has.
fn starts(programs: &Programs, root: &Path, many: &Path, table: &mut Table) -> Result<()> {
    let none = root.join("none");
    let places: [(&str, &Path); 2] = [("no tool", &none), ("50 tools", many)];
    let mut walls = [Vec::new(), Vec::new()];
    let mut used = [Duration::ZERO; 2];
    let mut idle = [(0, 0); 2];
    for round in 0..=STARTS {
        for (kind, (_, data)) in places.iter().enumerate() {
            let server = Server::start(programs.mcp(data))?;
            // The first start makes the store.
            if round > 0 {
                walls[kind].push(server.answered_after);
                used[kind] += server.cpu()?;
                idle[kind] = memory_kib_of(&server.id())?;
            }
            server.stop()?;
        }
    }
    for (kind, (name, _)) in places.iter().enumerate() {
        let target = if kind == 1 { "25 ms" } else { "" };
        let took = took(&mut walls[kind], used[kind]);
        let what = format!("start to the answer to `initialize`, {name} installed");
        table.row(&what, target, &took, "");
    }
    let mib = |kib: (u64, u64)| {
        let (own, files) = kib;
        format!(
            "{:.1} MiB own, {:.1} MiB of files",
            own as f64 / 1024.0,
            files as f64 / 1024.0
        )
    };
    table.figure(
        "memory after `initialize`, no tool installed",
        &mib(idle[0]),
    );
    table.figure(
        "memory after `initialize`, 50 tools installed",
        &mib(idle[1]),
    );
    let mut server = Server::start(programs.mcp(many))?;
    let name = format!("{ECHO}-7");
    let listed = server.ask("tools/list", &json!({}))?;
    ensure!(
        listed.to_string().contains(&name),
        "`{name}` is not listed: {listed}"
    );
    table.figure(
        "memory after `tools/list` of them",
        &mib(memory_kib_of(&server.id())?),
    );
    server.call(&name, &json!({ "message": "hello world" }))?;
    table.figure(
        "memory after the first call",
        &mib(memory_kib_of(&server.id())?),
    );
    server.stop()
}

fn compiling(tools: &Tools, table: &mut Table) -> Result<()> {
    for name in ["echo", "json_transform"] {
        let wasm = tools.component(name)?;
        let mib = wasm.len() as f64 / (1024.0 * 1024.0);
        let mut walls = Vec::new();
        let before = cpu()?;
        for _ in 0..COMPILES {
            let runtime = Runtime::new(RuntimeOptions::default());
            let began = Instant::now();
            runtime.prepare(&wasm)?;
            walls.push(began.elapsed());
        }
        let took = took(&mut walls, cpu()?.saturating_sub(before));
        let rate = format!(
            "{:.2} s a MiB, {:.2} s processor ({:.0} KiB)",
            took.wall / 1_000.0 / mib,
            took.cpu / 1_000.0 / mib,
            mib * 1024.0
        );
        table.row(&format!("compiling {name}"), "", &took, &rate);
    }
    Ok(())
}

fn runtime_of(cache: &Path, is_pool: bool) -> Result<Runtime> {
    // As the engine sets it up for a server.
    let pool = PoolSize {
        calls: 16,
        max_memory_mb: 256,
    };
    Ok(Runtime::new(RuntimeOptions {
        cache: Some(Dir::create(cache)?),
        pooling: is_pool.then_some(pool),
        ..RuntimeOptions::default()
    }))
}

fn call_echo(
    runtime: &Runtime,
    digest: &Digest,
    source: &dyn Fn() -> kenning_core::Result<Vec<u8>>,
) -> Result<()> {
    let tool = ToolCode {
        sha256: digest.sha256,
        source,
        artifact: Some(digest.artifact.clone()),
    };
    let call = RunCall {
        tool: "bench",
        function: None,
        input: INPUT,
        limits: Limits::default(),
        capabilities: &Capabilities::default(),
        cancelled: Arc::default(),
        deadline: Instant::now() + Duration::from_secs(60),
        log: None,
    };
    let answer = runtime.run(&tool, &call).result?;
    ensure!(answer.contains("hello world"), "echo answered {answer}");
    Ok(())
}

/// Loads compiled code and calls it once: what a first call costs at least.
pub(super) fn bare(options: &Options) -> Result<()> {
    options.only(&["cache", "sha256", "artifact"])?;
    let given = |name: &str| options.text(name).with_context(|| format!("no `--{name}`"));
    let digest = Digest {
        sha256: Sha256::from_hex(given("sha256")?).context("no hash")?,
        artifact: Artifact::parse(given("artifact")?).context("no artifact")?,
    };
    let runtime = runtime_of(Path::new(given("cache")?), false)?;
    call_echo(&runtime, &digest, &|| {
        Err(kenning_core::Error::internal("compiled once too often"))
    })
}
