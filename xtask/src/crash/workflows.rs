//! Workflows whose process is killed at any moment: they are completed once, and no step's effect happens twice.
//!
//! In each round one server is asked to start a workflow and is killed while it works; another server, which was
//! running all the time or is started then, has to complete it. With `--backend postgres` each server has a data
//! directory and a key of its own, as on two machines; what an operator of two machines does is done first: their keys
//! are confirmed as authors, the key that signs directives is trusted, and the components of tools are in a directory
//! that both have (`KAMI_DATA_DIR`).

use super::TOLD_MAX;
use super::backend::Backend;
use super::binary::{Binary, Place};
use super::client::{Answer, Client, Server, Transport};
use crate::options::Options;
use anyhow::{Context as _, Result, ensure};
use kenning_core::{SeededRandom, Space};
use kenning_store::Store;
use kenning_store_postgres::Postgres;
use kenning_store_sqlite::Sqlite;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// So many rounds use the same place.
const ROUNDS_A_PLACE: u64 = 20;

/// How long the survivor may take for what the other left.
const PATIENCE: Duration = Duration::from_secs(60);

/// The actions of a custom workflow, each with its tool: one that writes a file and its event, one that can be
/// repeated, one that writes several times, a directive, a component.
const ACTIONS: [(&str, &str); 5] = [
    ("append", "daily_append"),
    ("remember", "memory_store"),
    ("measure", "kg_agent_spawn"),
    ("direct", "execute"),
    ("echo", ECHO),
];

const ECHO: &str = "dev.example.echo";

/// Every step at which a process may be killed: all of them must have been hit.
const STEPS: [(&str, &[&str]); 4] = [
    (
        "analysis",
        &[
            "collect-documents",
            "check-sections",
            "check-links",
            "check-freshness",
            "check-contradictions",
            END,
        ],
    ),
    (
        "collaboration",
        &["initialize", "agent-coordination", "executing-plan", END],
    ),
    ("sync", &["check-paths", "generate", "sync-peers", END]),
    (
        "custom",
        &[
            "plan", "append", "remember", "measure", "direct", "echo", END,
        ],
    ),
];

/// After the last step, before the end is recorded.
const END: &str = "end";

/// From this many kills on each step must have been hit.
const COVERED_FROM: u64 = 200;

const SPEC: &str = "# Overview\n\nAn engine that counts the walruses of every beach, each morning, and writes it down.\n\n\
    ## Requirements\n\nIt counts every walrus once, even at night, and never a rock.\n\n\
    ## Acceptance criteria\n\n- two walruses are two\n- no walrus is none at all\n\n\
    ## Design\n\n```rust\nlet n = count(&beach, Walrus::all());\n```\n\n\
    ## Tests\n\nA beach with known walruses is counted a hundred times.\n";

const DIRECTIVE: &str = "---\nname: count_walruses\nversion: 1.0.0\ncategory: beach\n\
    description: Count walruses\n---\n\n# Count walruses\n\n1. Look at every beach.\n";

const MANIFEST: &str = "[tool]\nid = \"dev.example.echo\"\nname = \"echo\"\nversion = \"1.0.0\"\nwasm = \"tool.wasm\"\n\
    [mcp]\ndescription = \"Repeats\"\n[[mcp.arguments]]\nname = \"message\"\ntype = \"string\"\n\
    description = \"What to repeat\"\nrequired = true\n[security]\nmax_fuel = 100000\n";

/// What all rounds found.
#[derive(Default)]
struct Tally {
    n_runs: usize,
    n_taken_over: usize,
    n_decided: usize,
    faults: Vec<String>,
    /// How many kills came while a step of a kind was under way.
    hits: BTreeMap<(&'static str, &'static str), u64>,
}

impl Tally {
    /// How many steps the process may do before it is killed: so that the step which was hit least is under way.
    fn aim(&self, kind: &'static str, steps: &[&'static str]) -> usize {
        let hits = |step: &'static str| self.hits.get(&(kind, step)).copied().unwrap_or_default();
        let least = (0..steps.len()).min_by_key(|at| hits(steps[*at]));
        least.unwrap_or_default()
    }

    /// Notes which step of a run was under way at the moment of the kill.
    fn note_hit(
        &mut self,
        kind: &'static str,
        steps: &[&'static str],
        ended_ms: &[u64],
        killed_ms: u64,
    ) {
        let n_done = ended_ms.iter().filter(|it| **it <= killed_ms).count();
        if let Some(step) = steps.get(n_done) {
            *self.hits.entry((kind, *step)).or_default() += 1;
        }
    }
}

/// The store, as it is while a process works on it.
struct Watch {
    store: Store,
    seen: u64,
}

impl Watch {
    fn open(place: &Place) -> Result<Self> {
        let store = match place.database() {
            Some(url) => Store::new(Postgres::open(url, None)?),
            None => Store::new(Sqlite::open(&place.data())?),
        };
        let head = store.read(&Space::default(), |tx| tx.head())?;
        let seen = head.map_or(0, |it| it.seq);
        Ok(Self { store, seen })
    }

    /// Waits until a workflow was started and has done so many steps, or for as long as a round may take.
    fn wait_for(&mut self, n_steps: usize) -> Result<()> {
        let began = Instant::now();
        let (mut is_started, mut n_done) = (false, 0);
        while (!is_started || n_done < n_steps) && began.elapsed() < PATIENCE {
            let seen = self.seen;
            let new = self
                .store
                .read(&Space::default(), |tx| tx.events_after(seen, 100))?;
            for event in new {
                self.seen = event.seq;
                is_started |= event.kind == "WorkflowStarted";
                n_done += usize::from(event.kind == "WorkflowStepCompleted");
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(())
    }
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["kills", "seed", "binary", "backend"])?;
    let kills: u64 = options.value("kills", 200)?;
    let seed = super::seed(options)?;
    let binary = Binary::find(options, false)?;
    let backend = Backend::find(options)?;
    let random = SeededRandom::new(seed);
    let mut tally = Tally::default();
    let mut place = prepared(&binary, &backend)?;
    let mut n_beside = 0;
    for round in 0..kills {
        if round > 0 && round % ROUNDS_A_PLACE == 0 {
            judge(&binary, &place, &mut tally)?;
            place = prepared(&binary, &backend)?;
        }
        let (kind, steps) = STEPS[usize::try_from(round)? % STEPS.len()];
        // Half of the survivors were there before.
        let is_beside = (round / 4) % 2 == 0;
        n_beside += u64::from(is_beside);
        let of = |n| machine(&place, n);
        let first = Server::start(&binary, &of(0), Transport::Http)?;
        let beside = match is_beside {
            true => Some(Server::start(&binary, &of(1), Transport::Http)?),
            false => None,
        };
        let arguments = arguments(kind, round);
        let mut watch = Watch::open(&of(0))?;
        let mut client = first.client();
        let began_ms = now_ms()?;
        let call = std::thread::spawn(move || client.read("kg_workflow_start", &arguments));
        watch.wait_for(tally.aim(kind, steps))?;
        // Anywhere in the step, not always at its beginning.
        std::thread::sleep(Duration::from_micros(random.below(2_000)));
        first.kill()?;
        let killed_ms = now_ms()?;
        let Ok((answer, _)) = call.join() else {
            anyhow::bail!("the caller panicked");
        };
        match answer {
            Answer::Acknowledged => {}
            Answer::Gone => tally.n_taken_over += 1,
            Answer::Refused(said) => tally.faults.push(format!("round {round}: {kind}: {said}")),
        }
        let survivor = match beside {
            Some(server) => server,
            None => Server::start(&binary, &of(1), Transport::Http)?,
        };
        let mut client = survivor.client();
        match settled(&binary, &of(1), &mut client) {
            Ok(n) => tally.n_decided += n,
            Err(error) => tally.faults.push(format!("round {round}: {kind}: {error}")),
        }
        if let Some(ended_ms) = steps_of_newest(&mut client, kind, began_ms)? {
            tally.note_hit(kind, steps, &ended_ms, killed_ms);
        }
        survivor.kill()?;
    }
    judge(&binary, &place, &mut tally)?;
    conclude(&tally, kills, n_beside, seed)
}

/// Prints what was found, and fails if a promise was broken or too little was tried.
fn conclude(tally: &Tally, kills: u64, n_beside: u64, seed: u64) -> Result<()> {
    for fault in tally.faults.iter().take(TOLD_MAX) {
        println!("{fault}");
    }
    let mut missed = Vec::new();
    let (mut n_steps, mut n_hit) = (0, 0);
    for (kind, steps) in STEPS {
        let shown: Vec<String> = steps
            .iter()
            .map(|step| {
                let n = tally.hits.get(&(kind, *step)).copied().unwrap_or_default();
                n_steps += 1;
                n_hit += usize::from(n > 0);
                if n == 0 {
                    missed.push(format!("{kind} at {step}"));
                }
                format!("{step} {n}")
            })
            .collect();
        println!("{kind}: {}", shown.join(", "));
    }
    println!(
        "crash workflows: {kills} kills at {n_hit} of {n_steps} steps, {n_beside} with a second server, {} during a \
         call, {} runs, {} left to a person, {} faults, seed {seed}",
        tally.n_taken_over,
        tally.n_runs,
        tally.n_decided,
        tally.faults.len()
    );
    ensure!(
        tally.n_runs > 0,
        "no workflow was started, so nothing was tested"
    );
    ensure!(tally.faults.is_empty(), "promises were broken");
    ensure!(
        kills < COVERED_FROM || missed.is_empty(),
        "no kill came at: {}",
        missed.join("; ")
    );
    Ok(())
}

/// One of the two machines; with SQLite both are processes of one.
fn machine(place: &Place, n: u8) -> Place {
    match place.database() {
        Some(_) => place.with_data(&format!("data {n}")),
        None => place.clone(),
    }
}

fn now_ms() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(u64::try_from(now.as_millis())?)
}

/// When the steps of the newest run of a kind were recorded; `None` if it was not started.
fn steps_of_newest(client: &mut Client, kind: &str, began_ms: u64) -> Result<Option<Vec<u64>>> {
    let asked =
        json!({ "eventType": "WorkflowStepCompleted", "limit": 100, "includePayload": true });
    let (_, answer) = client.read("kg_audit_query", &asked);
    let events = answer["data"]["events"].as_array().context("no events")?;
    let mut found: Vec<(String, u64, u64)> = events
        .iter()
        .filter_map(|it| {
            let data = &it["payload"];
            let number = data["number"]
                .as_u64()
                .or(data["data"]["number"].as_u64())?;
            Some((
                text_of(data, "workflowId"),
                number,
                it["hlc"]["physicalMs"].as_u64()?,
            ))
        })
        .filter(|it| it.0.starts_with(&format!("{kind}-")) && it.2 >= began_ms)
        .collect();
    found.sort_by_key(|it| it.1);
    Ok((!found.is_empty()).then(|| found.into_iter().map(|it| it.2).collect()))
}

fn prepared(binary: &Binary, backend: &Backend) -> Result<Place> {
    let place = backend.place()?;
    let docs = place.project().join("docs");
    std::fs::create_dir_all(&docs)?;
    std::fs::write(docs.join("spec.md"), SPEC)?;
    std::fs::write(docs.join("draft.md"), "See [nothing](nowhere.md). TBD\n")?;
    let directives = place.project().join(".ai/directives/beach");
    std::fs::create_dir_all(&directives)?;
    std::fs::write(directives.join("count_walruses.md"), DIRECTIVE)?;
    let sign = json!({ "item_type": "directive", "action": "sign", "item_id": "count_walruses" });
    let signed = binary.call(&place, "execute", &sign)?;
    let package = place.root().join("package");
    std::fs::create_dir_all(&package)?;
    std::fs::write(package.join("tool.toml"), MANIFEST)?;
    std::fs::write(
        package.join("tool.wasm"),
        kenning_testing_wasm::probes::echo()?,
    )?;
    let package = package.display().to_string();
    binary.json(&place, &["kami", "install", &package])?;
    if place.database().is_some() {
        let signer = signed["signature"]["signer"].as_str();
        let signer = signer.context("the directive was not signed")?;
        binary.run(&place, &["trust", "add", signer])?;
        for n in 0..2 {
            let seen = binary.json(&machine(&place, n), &["doctor"])?["seen"].take();
            let author = seen["author"].as_str().context("no author")?;
            binary.run(&place, &["audit", "authors", "add", author])?;
        }
    }
    Ok(place)
}

fn arguments(kind: &str, round: u64) -> Value {
    let input = match kind {
        "custom" => {
            let (mut needs, mut last) = (json!({}), "");
            let actions: Vec<Value> = ACTIONS
                .iter()
                .map(|(name, tool)| {
                    let arguments = match *name {
                        "append" => json!({ "content": format!("entry {round}.") }),
                        "remember" => json!({
                            "content": format!("walrus number {round} sleeps"), "memory_type": "fact",
                        }),
                        "measure" => json!({ "type": "analyst", "task": "Measure everything" }),
                        "direct" => json!({
                            "item_type": "directive", "action": "run", "item_id": "count_walruses",
                        }),
                        _ => json!({ "message": format!("round {round}") }),
                    };
                    let action = json!({
                        "name": name, "needs": needs, "effects": { (*name): true }, "tool": tool,
                        "arguments": arguments,
                    });
                    (needs, last) = (json!({ (*name): true }), name);
                    action
                })
                .collect();
            json!({ "goal": { (last): true }, "actions": actions })
        }
        "collaboration" => json!({ "docPath": "docs/spec.md", "options": { "autoStart": true } }),
        _ => json!({ "docPath": "docs" }),
    };
    json!({ "workflowId": kind, "input": input })
}

/// Waits until nothing is under way. What is left to a person is done once more, and counted.
fn settled(binary: &Binary, place: &Place, client: &mut Client) -> Result<usize> {
    let began = Instant::now();
    let mut n_decided = 0;
    loop {
        let (_, list) = client.read("kg_workflow_list", &json!({ "status": "running" }));
        let (_, waits) = client.read("kg_workflow_list", &json!({ "status": "suspended" }));
        let suspended = waits["data"]["workflows"].as_array();
        let suspended = suspended.into_iter().flatten();
        let mut n_open = 0;
        for id in suspended.filter_map(|it| it["id"].as_str()) {
            n_open += 1;
            n_decided += 1;
            binary.json(place, &["workflow", "resume", id, "--again"])?;
        }
        if n_open == 0 && list["data"]["summary"]["filtered"] == 0 {
            return Ok(n_decided);
        }
        ensure!(
            began.elapsed() < PATIENCE,
            "not completed in time: {list} {waits}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Looks at everything that the rounds of a place left.
fn judge(binary: &Binary, place: &Place, tally: &mut Tally) -> Result<()> {
    // SQLite may show a transaction that was committed in the moment of a kill, and never acknowledged, only to
    // who opens the file anew: so a workflow may have been started that no survivor saw.
    let of_judge = machine(place, 1);
    let server = Server::start(binary, &of_judge, Transport::Http)?;
    match settled(binary, &of_judge, &mut server.client()) {
        Ok(n) => tally.n_decided += n,
        Err(error) => tally.faults.push(error.to_string()),
    }
    server.kill()?;
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
    for run in runs.iter().filter(|it| it["type"] == "custom") {
        check_answers(binary, place, run, tally)?;
    }
    let mut text = String::new();
    read_all(&place.omi(), &mut text)?;
    let n_custom = runs.iter().filter(|it| it["type"] == "custom").count();
    let n_entries = text.matches("entry ").count();
    if n_entries != n_custom {
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

/// Each action was done, and whatever could be cut off in its middle left its whole answer.
fn check_answers(binary: &Binary, place: &Place, run: &Value, tally: &mut Tally) -> Result<()> {
    let asked = json!({ "workflowId": run["id"] });
    let told = binary.call(place, "kg_workflow_status", &asked)?;
    let steps = told["data"]["workflow"]["steps"].as_array();
    for step in steps.context("no steps")? {
        let answer = step["metadata"]["answer"].to_string();
        let expected = match step["action"].as_str().unwrap_or_default() {
            "measure" => "taskResult",
            "direct" => "Look at every beach",
            "echo" => "round ",
            _ => "",
        };
        if step["outcome"] != "success" || !answer.contains(expected) {
            let (id, action) = (&run["id"], &step["action"]);
            tally.faults.push(format!(
                "{id}: {action} is {} with {answer}",
                step["outcome"]
            ));
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
