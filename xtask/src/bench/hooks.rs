//! What a hook costs from the start of its process to its end, over a store with memories of many days.
//!
//! Every hook is a new process of the real program with no server beside it, so it reads the index that an
//! earlier process kept. After a new memory it takes that in as well.

use super::memory::{question, sentence};
use super::meter::cpu_of_children;
use super::wasm::programs::Programs;
use super::wasm::table::Table;
use super::wasm::took;
use crate::options::Options;
use crate::repository::output;
use anyhow::{Context as _, Result, ensure};
use kenning_engine::omi::NewMemory;
use kenning_testing::{Fixture, NOW_MS};
use kenning_tools::Selection;
use serde_json::json;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The days that memories are spread over, until today.
const DAYS: u64 = 90;
const DAY_MS: u64 = 86_400_000;
/// Hooks of each kind.
const HOOKS: u64 = 30;
/// From the start of the process to its end, processor time.
const TARGET_MS: f64 = 60.0;

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["memories", "binary"])?;
    let n: u64 = options.value("memories", 10_000)?;
    let programs = Programs::find(options)?;
    let fixture = filled(n)?;
    let root = std::sync::Arc::clone(&fixture.root);
    drop(fixture);
    let hook = |turn: &str| {
        let mut command = programs.command(&root.path().join("data"));
        command.arg("--omi-path").arg(root.path().join("omi"));
        command.args(["hook", turn]);
        // A busy machine must not end a hook that is to be measured.
        command.env("KENNING_HOOK_BUDGET_MS", "10000");
        command
    };
    let about = |i: u64| (i * 7_919) % n.max(1);
    let ask = |i: u64| {
        let prompt = json!({ "session_id": "bench", "prompt": question(about(i)) });
        asked(
            hook("prompt"),
            &prompt.to_string(),
            &format!("ticket {}", about(i)),
        )
    };
    let start = |_: u64| {
        let session = json!({ "session_id": "bench", "source": "startup" });
        asked(hook("session-start"), &session.to_string(), "rate limiter")
    };
    let mut now = programs.command(&root.path().join("data"));
    now.arg("--omi-path").arg(root.path().join("omi"));
    output(
        now.args(["omi", "now_update", "--current-task"])
            .arg("what slows down the rate limiter and the cold cache?"),
    )?;
    // The first process makes the index and keeps it.
    output(hook("renew-index").stdin(Stdio::null()))?;
    let mut table = Table::default();
    let mut measured = |what: &str,
                        before_each: &dyn Fn(u64) -> Result<()>,
                        hook: &dyn Fn(u64) -> Result<Duration>|
     -> Result<()> {
        let (mut walls, mut used) = (Vec::new(), Duration::ZERO);
        for i in 0..=HOOKS {
            before_each(i)?;
            let before = cpu_of_children()?;
            let wall = hook(i)?;
            // The first of a kind reads from disk what the others find in memory.
            if i > 0 {
                walls.push(wall);
                used += cpu_of_children()?.saturating_sub(before);
            }
        }
        let took = took(&mut walls, used);
        let verdict = if took.cpu > TARGET_MS { "missed" } else { "" };
        table.row(what, "60 ms processor", &took, verdict);
        Ok(())
    };
    let nothing = |_: u64| Ok(());
    let one_more = |i: u64| {
        let mut store = programs.command(&root.path().join("data"));
        store.arg("--omi-path").arg(root.path().join("omi"));
        store
            .args(["omi", "store", "--type", "fact"])
            .arg(sentence(n + i));
        output(&mut store).map(drop)
    };
    measured(
        &format!("`hook prompt` over {n} memories, index kept"),
        &nothing,
        &ask,
    )?;
    measured("`hook prompt` after one new memory", &one_more, &ask)?;
    measured("`hook session-start`, index kept", &nothing, &start)?;
    measured(
        "`hook session-start` after one new memory",
        &one_more,
        &start,
    )?;
    let version = |_: u64| {
        let mut command = programs.command(&root.path().join("data"));
        command.arg("--version");
        let began = Instant::now();
        output(&mut command)?;
        Ok(began.elapsed())
    };
    measured(
        "`kenning --version`, what any start costs",
        &nothing,
        &version,
    )?;
    table.print();
    Ok(())
}

/// Runs a hook, which must say something about this.
fn asked(mut command: Command, input: &str, about: &str) -> Result<Duration> {
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    stdin.write_all(input.as_bytes())?;
    drop(stdin);
    let done = child.wait_with_output()?;
    let took = began.elapsed();
    let said = String::from_utf8_lossy(&done.stdout);
    ensure!(
        said.contains(about),
        "the hook says nothing about {about}: {said} {}",
        String::from_utf8_lossy(&done.stderr)
    );
    Ok(took)
}

/// A store with so many memories, as many each day.
fn filled(n: u64) -> Result<Fixture> {
    let fixture = Fixture::without_vault(Selection::default());
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let first = u64::try_from(now.as_millis())?.saturating_sub(DAYS * DAY_MS);
    // The clock of a fixture is ahead; it adds modulo 2^64, so this sets it back.
    fixture.clock.advance(first.wrapping_sub(NOW_MS));
    let omi = fixture.board.engine().omi();
    for day in 0..DAYS {
        let memories = (n * day / DAYS..n * (day + 1) / DAYS).map(|i| NewMemory {
            content: sentence(i),
            ..NewMemory::default()
        });
        omi.store_memories(&fixture.owner(), memories.collect())?;
        fixture.clock.advance(DAY_MS);
    }
    omi.settle();
    Ok(fixture)
}
