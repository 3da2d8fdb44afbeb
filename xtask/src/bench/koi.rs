//! What entities cost: taking over a large graph, resolving a name in it, what is around somebody, a
//! search, and reading a vault of many notes.
//!
//! The program is the real one, asked over its standard streams. Beside the answers stands a bare scan of
//! the same rows: every entity of the store read once, and nothing done with it. With `--at DIR` the graph
//! and the vault are made there and stay, and a later run finds them.

mod notes;

use super::fixture;
use super::meter::{cpu, cpu_of_children, ms};
use super::wasm::programs::Programs;
use super::wasm::server::Server;
use super::wasm::table::Table;
use super::wasm::{Took, took};
use crate::options::Options;
use crate::repository::output;
use anyhow::Result;
use kenning_core::{Kind, SeededRandom, Space};
use kenning_entities::names::entity_uri;
use kenning_store::{NodeFilter, Store, When};
use kenning_store_sqlite::Sqlite;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const GIVEN: [&str; 40] = [
    "Ada", "Bela", "Cora", "Dario", "Elif", "Femi", "Greta", "Hugo", "Ines", "Jonas", "Kaia",
    "Liam", "Mira", "Nuno", "Olga", "Pavel", "Quinn", "Rosa", "Sami", "Tara", "Ugo", "Vera", "Wim",
    "Xenia", "Yara", "Zeno", "Anouk", "Bruno", "Clara", "Dmitri", "Esther", "Farid", "Gwen",
    "Hana", "Ivo", "Juana", "Karim", "Lotte", "Marek", "Noor",
];
const SYLLABLES: [&str; 24] = [
    "ba", "cor", "del", "fen", "gar", "hol", "jan", "kel", "lor", "mar", "nor", "pel", "qua",
    "ros", "sal", "tor", "ul", "vin", "wes", "yor", "zam", "bri", "cla", "dun",
];
const ENDINGS: [&str; 8] = ["son", "berg", "ini", "ova", "field", "sen", "ez", "man"];
const THINGS: [(&str, &str); 4] = [
    ("Organization", "Trust"),
    ("Project", "Atlas"),
    ("Practice", "Monitoring"),
    ("Concept", "Commons"),
];

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&[
        "entities",
        "relationships",
        "notes",
        "calls",
        "binary",
        "at",
    ])?;
    let n_entities: usize = options.value("entities", 100_000)?;
    let n_relationships: usize = options.value("relationships", 300_000)?;
    let n_notes: usize = options.value("notes", 20_000)?;
    let n_calls: usize = options.value("calls", 1_000)?;
    let programs = Programs::find(options)?;
    let fresh = fixture::directory()?;
    let root = options.text("at").map_or(fresh.path(), Path::new);
    let mut table = Table::default();
    let graph = Graph::of(n_entities, n_relationships);
    if n_calls > 0 {
        asked(&programs, &root.join("graph"), &graph, n_calls, &mut table)?;
    }
    if n_notes > 0 {
        notes::run(&programs, &root.join("vault"), &graph, n_notes, &mut table)?;
    }
    table.print();
    Ok(())
}

/// Entities with distinct names, and relationships between them.
struct Graph {
    entities: Vec<(String, &'static str)>,
    relationships: Vec<(usize, &'static str, usize)>,
}

impl Graph {
    fn of(n_entities: usize, n_relationships: usize) -> Self {
        let random = SeededRandom::new(9);
        let below = |n: usize| usize::try_from(random.below(n as u64)).unwrap_or(0);
        let mut seen = std::collections::HashSet::new();
        let mut entities = Vec::new();
        while entities.len() < n_entities {
            let part = || SYLLABLES[below(SYLLABLES.len())];
            let family = format!("{}{}{}", part(), part(), ENDINGS[below(ENDINGS.len())]);
            let family = family[..1].to_uppercase() + &family[1..];
            let (name, kind) = match below(10) {
                0..6 => (format!("{} {family}", GIVEN[below(GIVEN.len())]), "Person"),
                n => {
                    let (kind, word) = THINGS[n % THINGS.len()];
                    let second = part();
                    let second = second[..1].to_uppercase() + &second[1..];
                    (format!("{family} {second} {word}"), kind)
                }
            };
            if seen.insert((name.clone(), kind)) {
                entities.push((name, kind));
            }
        }
        let people: Vec<usize> = of_kind(&entities, "Person");
        let organizations = of_kind(&entities, "Organization");
        let projects = of_kind(&entities, "Project");
        let mut relationships = Vec::new();
        while relationships.len() < n_relationships {
            let person = people[below(people.len())];
            let (predicate, other) = match below(3) {
                0 => ("affiliated_with", organizations[below(organizations.len())]),
                1 => ("founded", projects[below(projects.len())]),
                _ => ("knows", people[below(people.len())]),
            };
            if person != other {
                relationships.push((person, predicate, other));
            }
        }
        Self {
            entities,
            relationships,
        }
    }

    fn uri(&self, n: usize) -> String {
        let (name, kind) = &self.entities[n];
        entity_uri(name, kind)
    }
}

fn of_kind(entities: &[(String, &'static str)], kind: &str) -> Vec<usize> {
    let all = entities.iter().enumerate().filter(|it| it.1.1 == kind);
    all.map(|it| it.0).collect()
}

/// Takes the graph over from a file, as from the original's export.
fn import(programs: &Programs, data: &Path, graph: &Graph, table: &mut Table) -> Result<()> {
    fs::create_dir_all(data)?;
    let entities = graph.entities.iter().enumerate();
    let entities = entities.map(|(n, (name, kind))| {
        let alias = format!("nick {n}");
        json!({ "uri": entity_uri(name, kind), "name": name, "type": kind, "aliases": [alias] })
    });
    let entities: Vec<Value> = entities.collect();
    let relationships = graph.relationships.iter().map(|(from, predicate, to)| {
        json!({ "subject_uri": graph.uri(*from), "predicate": predicate, "object_uri": graph.uri(*to) })
    });
    let relationships: Vec<Value> = relationships.collect();
    let what = format!(
        "import of {} entities and {} relationships",
        entities.len(),
        relationships.len()
    );
    let file = data.join("export.json");
    let export = json!({ "entities": entities, "relationships": relationships });
    fs::write(&file, export.to_string())?;
    let (began, before) = (Instant::now(), cpu_of_children()?);
    let mut command = programs.command(data);
    output(command.args(["koi", "import"]).arg(&file))?;
    let took = once(began.elapsed(), cpu_of_children()?.saturating_sub(before));
    table.row(&what, "", &took, "");
    Ok(())
}

fn asked(
    programs: &Programs,
    data: &Path,
    graph: &Graph,
    n_calls: usize,
    table: &mut Table,
) -> Result<()> {
    if !data.exists() {
        import(programs, data, graph, table)?;
    }
    let n_entities = graph.entities.len();
    let (scan, scan_cpu) = bare_scan(data)?;
    let beside = |took: &Took| format!("{:.4} x a bare scan", took.wall / ms(scan));
    table.row("bare scan of every entity", "", &once(scan, scan_cpu), "");
    let mut server = Server::start(programs.mcp(data))?;
    let (began, before) = (Instant::now(), server.cpu()?);
    server.call("resolve_entity", &json!({ "label": "Nobody Known" }))?;
    let first = once(began.elapsed(), server.cpu()?.saturating_sub(before));
    table.row("first call of a server", "", &first, "");
    let name = |n: usize| graph.entities[(n * 7_919) % n_entities].0.clone();
    let person = |n: usize| {
        let from = (n * 7_919) % n_entities;
        let found = (from..n_entities).find(|it| graph.entities[*it].1 == "Person");
        graph.entities[found.unwrap_or(0)].0.clone()
    };
    // One letter less: the last but one.
    let typo = |n: usize| {
        let mut letters: Vec<char> = person(n).chars().collect();
        letters.remove(letters.len() - 2);
        letters.into_iter().collect::<String>()
    };
    let label = |it: String| json!({ "label": it });
    let of_person = |it: String| json!({ "label": it, "type_hint": "Person" });
    type Ask<'a> = (&'a str, &'a str, &'a str, &'a dyn Fn(usize) -> Value);
    let asks: [Ask<'_>; 7] = [
        ("resolve: a name", "0.3 ms", "resolve_entity", &|n| {
            label(name(n))
        }),
        ("resolve: an alias", "0.3 ms", "resolve_entity", &|n| {
            label(format!("nick {}", (n * 7_919) % n_entities))
        }),
        ("resolve: a typo", "3 ms", "resolve_entity", &|n| {
            of_person(typo(n))
        }),
        ("resolve: a typo, no type", "3 ms", "resolve_entity", &|n| {
            label(typo(n))
        }),
        ("resolve: nobody", "3 ms", "resolve_entity", &|n| {
            label(format!("{} Unknowable {n}", GIVEN[n % GIVEN.len()]))
        }),
        (
            "neighborhood",
            "2 ms",
            "get_entity_neighborhood",
            &|n| json!({ "entity_uri": graph.uri((n * 7_919) % n_entities) }),
        ),
        (
            "koi_search",
            "5 ms",
            "koi_search",
            &|n| json!({ "query": name(n) }),
        ),
    ];
    for (what, target, tool, arguments) in asks {
        // What a first call of its kind begins in the background is over before the others are timed.
        server.call(tool, &arguments(n_calls + 1))?;
        settle(&server)?;
        let before = server.cpu()?;
        let mut walls = Vec::new();
        for n in 0..n_calls {
            let arguments = arguments(n);
            let began = Instant::now();
            server.call(tool, &arguments)?;
            walls.push(began.elapsed());
        }
        let used = server.cpu()?.saturating_sub(before);
        let took = took(&mut walls, used);
        let beside = beside(&took);
        table.row(what, target, &took, &beside);
    }
    server.stop()
}

/// Waits until a server has nothing to do any more, at most half a minute.
fn settle(server: &Server) -> Result<()> {
    let mut before = server.cpu()?;
    for _ in 0..150 {
        std::thread::sleep(Duration::from_millis(200));
        let now = server.cpu()?;
        if now == before {
            break;
        }
        before = now;
    }
    Ok(())
}

/// Every entity read once: how long that takes, and its processor time.
fn bare_scan(data: &Path) -> Result<(Duration, Duration)> {
    let store = Store::new(Sqlite::open(data)?);
    let (began, before) = (Instant::now(), cpu()?);
    store.read(&Space::default(), |tx| {
        let filter = NodeFilter {
            kinds: vec![Kind::Entity],
            ..NodeFilter::default()
        };
        let mut after = None;
        loop {
            let page = tx.nodes(&filter, When::Now, after, 1_000)?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some(last.id);
        }
    })?;
    Ok((began.elapsed(), cpu()?.saturating_sub(before)))
}

/// What happened once.
fn once(wall: Duration, used: Duration) -> Took {
    Took {
        wall: ms(wall),
        wall_p99: ms(wall),
        cpu: ms(used),
    }
}
