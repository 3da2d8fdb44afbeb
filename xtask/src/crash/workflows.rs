//! Workflows whose process is killed at any moment: they are completed once, and no step's effect happens twice.
//!
//! In each round one server is asked to start a workflow and is killed while it works; another server, which was
//! running all the time or is started then, has to complete it. With `--backend postgres` each server has a data
//! directory of its own, as on two machines.

use super::TOLD_MAX;
use super::backend::Backend;
use super::binary::{Binary, Place};
use super::client::{Answer, Client, Server, Transport};
use crate::options::Options;
use anyhow::{Context as _, Result, ensure};
use kenning_core::SeededRandom;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// So many rounds use the same place.
const ROUNDS_A_PLACE: u64 = 20;

/// How long the survivor may take for what the other left.
const PATIENCE: Duration = Duration::from_secs(60);

const KINDS: [&str; 4] = ["analysis", "collaboration", "sync", "custom"];

/// The actions of a custom workflow; each adds an entry to the daily log.
const ACTIONS: [&str; 3] = ["one", "two", "three"];

const SPEC: &str = "# Overview\n\nAn engine that counts the walruses of every beach, each morning, and writes it down.\n\n\
    ## Requirements\n\nIt counts every walrus once, even at night, and never a rock.\n\n\
    ## Acceptance criteria\n\n- two walruses are two\n- no walrus is none at all\n\n\
    ## Design\n\n```rust\nlet n = count(&beach, Walrus::all());\n```\n\n\
    ## Tests\n\nA beach with known walruses is counted a hundred times.\n";

/// What all rounds found.
#[derive(Default)]
struct Tally {
    n_runs: usize,
    n_taken_over: usize,
    faults: Vec<String>,
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["kills", "seed", "binary", "backend"])?;
    let kills: u64 = options.value("kills", 200)?;
    let seed = super::seed(options)?;
    let binary = Binary::find(options, false)?;
    let backend = Backend::find(options)?;
    let random = SeededRandom::new(seed);
    let mut tally = Tally::default();
    let mut place = prepared(&backend)?;
    let mut usual: BTreeMap<&str, u64> = BTreeMap::new();
    for round in 0..kills {
        if round > 0 && round % ROUNDS_A_PLACE == 0 {
            judge(&binary, &place, &mut tally)?;
            place = prepared(&backend)?;
        }
        let kind = KINDS[usize::try_from(round)? % KINDS.len()];
        // Half of the survivors were there before.
        let is_beside = random.below(2) == 0;
        let of = |n: u64| match place.database() {
            Some(_) => place.with_data(&format!("data {n}")),
            None => place.clone(),
        };
        let first = Server::start(&binary, &of(0), Transport::Http)?;
        let beside = match is_beside {
            true => Some(Server::start(&binary, &of(1), Transport::Http)?),
            false => None,
        };
        let within_us = *usual.get(kind).unwrap_or(&300_000);
        let arguments = arguments(kind, round);
        let mut client = first.client();
        let began = Instant::now();
        let call = std::thread::spawn(move || {
            let (answer, _) = client.read("kg_workflow_start", &arguments);
            (answer, began.elapsed())
        });
        std::thread::sleep(Duration::from_micros(random.below(within_us)));
        first.kill()?;
        let Ok((answer, took)) = call.join() else {
            anyhow::bail!("the caller panicked");
        };
        match answer {
            Answer::Acknowledged => {
                let took = u64::try_from(took.as_micros())?;
                usual.insert(kind, took.clamp(20_000, 2_000_000));
            }
            Answer::Gone => {
                // It lives longer than was thought: the next kill of this kind may come later.
                let more = within_us + within_us / 8;
                usual.insert(kind, more.min(2_000_000));
                tally.n_taken_over += 1;
            }
            Answer::Refused(said) => tally.faults.push(format!("round {round}: {kind}: {said}")),
        }
        let survivor = match beside {
            Some(server) => server,
            None => Server::start(&binary, &of(1), Transport::Http)?,
        };
        if let Err(error) = settled(&mut survivor.client()) {
            tally.faults.push(format!("round {round}: {kind}: {error}"));
        }
        survivor.kill()?;
    }
    judge(&binary, &place, &mut tally)?;
    for fault in tally.faults.iter().take(TOLD_MAX) {
        println!("{fault}");
    }
    println!(
        "crash workflows: {kills} kills, {} during a call, {} runs, {} faults, seed {seed}",
        tally.n_taken_over,
        tally.n_runs,
        tally.faults.len()
    );
    ensure!(
        tally.n_runs > 0,
        "no workflow was started, so nothing was tested"
    );
    ensure!(tally.faults.is_empty(), "promises were broken");
    Ok(())
}

fn prepared(backend: &Backend) -> Result<Place> {
    let place = backend.place()?;
    let docs = place.project().join("docs");
    std::fs::create_dir_all(&docs)?;
    std::fs::write(docs.join("spec.md"), SPEC)?;
    std::fs::write(docs.join("draft.md"), "See [nothing](nowhere.md). TBD\n")?;
    Ok(place)
}

fn arguments(kind: &str, round: u64) -> Value {
    let input = match kind {
        "custom" => {
            let mut needs = json!({});
            let actions: Vec<Value> = ACTIONS
                .iter()
                .map(|name| {
                    let action = json!({
                        "name": name, "needs": needs, "effects": { (*name): true },
                        "tool": "daily_append",
                        "arguments": { "content": format!("entry {round} {name}.") },
                    });
                    needs = json!({ (*name): true });
                    action
                })
                .collect();
            json!({ "goal": { (ACTIONS[2]): true }, "actions": actions })
        }
        "collaboration" => json!({ "docPath": "docs/spec.md", "options": { "autoStart": true } }),
        _ => json!({ "docPath": "docs" }),
    };
    json!({ "workflowId": kind, "input": input })
}

/// Waits until nothing is under way.
fn settled(client: &mut Client) -> Result<()> {
    let began = Instant::now();
    loop {
        let (_, list) = client.read("kg_workflow_list", &json!({ "status": "running" }));
        if list["data"]["summary"]["filtered"] == 0 {
            return Ok(());
        }
        ensure!(began.elapsed() < PATIENCE, "not completed in time: {list}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Looks at everything that the rounds of a place left.
fn judge(binary: &Binary, place: &Place, tally: &mut Tally) -> Result<()> {
    let found = binary.look(place)?;
    tally.faults.extend(found.faults);
    let list = binary.call(place, "kg_workflow_list", &json!({ "limit": 1000 }))?;
    let runs = list["data"]["workflows"].as_array().context("no list")?;
    tally.n_runs += runs.len();
    let mut events: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut numbers: BTreeSet<(String, u64)> = BTreeSet::new();
    for kind in [
        "WorkflowStarted",
        "WorkflowStepCompleted",
        "WorkflowCompleted",
        "TaskSpecGenerated",
    ] {
        let asked = json!({ "eventType": kind, "limit": 1000, "includePayload": true });
        let answer = binary.call(place, "kg_audit_query", &asked)?;
        for event in answer["data"]["events"].as_array().context("no events")? {
            let data = &event["payload"];
            let id = text_of(data, "workflowId");
            *events.entry((kind.to_owned(), id.clone())).or_default() += 1;
            if let Some(number) = data["number"].as_u64().or(data["data"]["number"].as_u64())
                && !numbers.insert((id.clone(), number))
            {
                tally
                    .faults
                    .push(format!("{id}: step {number} was recorded twice"));
            }
        }
    }
    let count = |kind: &str, id: &str| {
        let key = (kind.to_owned(), id.to_owned());
        events.get(&key).copied().unwrap_or_default()
    };
    for run in runs {
        let id = run["id"].as_str().context("a run without an id")?;
        if run["status"] != "completed" {
            tally.faults.push(format!("{id} is {}", run["status"]));
        }
        let expected = u64::from(run["type"] == "realtime-collab");
        for (kind, expected) in [
            ("WorkflowStarted", 1),
            ("WorkflowCompleted", 1),
            ("TaskSpecGenerated", expected),
        ] {
            let n = count(kind, id);
            if n != expected {
                tally
                    .faults
                    .push(format!("{id}: {n} events {kind} and not {expected}"));
            }
        }
    }
    let mut text = String::new();
    read_all(&place.omi(), &mut text)?;
    let n_custom = runs.iter().filter(|it| it["type"] == "custom").count();
    let n_entries = text.matches("entry ").count();
    if n_entries != n_custom * ACTIONS.len() {
        let sentence = format!("{n_entries} entries of {n_custom} custom workflows");
        tally.faults.push(sentence);
    }
    for entry in text.split("entry ").skip(1) {
        let entry = entry.split('.').next().unwrap_or_default();
        if text.matches(&format!("entry {entry}.")).count() > 1 {
            tally
                .faults
                .push(format!("`entry {entry}` was written twice"));
        }
    }
    Ok(())
}

fn text_of(data: &Value, name: &str) -> String {
    let text = data[name].as_str().or(data["data"][name].as_str());
    text.unwrap_or_default().to_owned()
}

fn read_all(dir: &Path, into: &mut String) -> Result<()> {
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry?.path();
        match path.is_dir() {
            true => read_all(&path, into)?,
            false if path.extension().is_some_and(|it| it == "md") => {
                *into += &std::fs::read_to_string(path)?;
            }
            false => {}
        }
    }
    Ok(())
}
