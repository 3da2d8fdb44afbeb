//! What entities cost: taking over a large graph, resolving a name in it, what is around somebody, a
//! search, and reading a vault of many notes.
//!
//! The program is the real one, asked over its standard streams. Beside the answers stands a bare scan of
//! the same rows: every entity of the store read once, and nothing done with it.

use super::fixture;
use super::meter::ms;
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
    options.only(&["entities", "relationships", "notes", "calls", "binary"])?;
    let n_entities: usize = options.value("entities", 100_000)?;
    let n_relationships: usize = options.value("relationships", 300_000)?;
    let n_notes: usize = options.value("notes", 20_000)?;
    let n_calls: usize = options.value("calls", 300)?;
    let programs = Programs::find(options)?;
    let root = fixture::directory()?;
    let mut table = Table::default();
    let graph = Graph::of(n_entities, n_relationships);
    asked(
        &programs,
        &root.path().join("graph"),
        &graph,
        n_calls,
        &mut table,
    )?;
    vault(
        &programs,
        &root.path().join("vault"),
        &graph,
        n_notes,
        &mut table,
    )?;
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

fn asked(
    programs: &Programs,
    data: &Path,
    graph: &Graph,
    n_calls: usize,
    table: &mut Table,
) -> Result<()> {
    fs::create_dir_all(data)?;
    let entities: Vec<Value> = graph
        .entities
        .iter()
        .enumerate()
        .map(|(n, (name, kind))| {
            let alias = format!("nick {n}");
            json!({ "uri": entity_uri(name, kind), "name": name, "type": kind, "aliases": [alias] })
        })
        .collect();
    let relationships: Vec<Value> = graph
        .relationships
        .iter()
        .map(|(from, predicate, to)| {
            json!({ "subject_uri": graph.uri(*from), "predicate": predicate, "object_uri": graph.uri(*to) })
        })
        .collect();
    let file = data.join("export.json");
    let export = json!({ "entities": entities, "relationships": relationships });
    fs::write(&file, export.to_string())?;
    let began = Instant::now();
    let mut command = programs.command(data);
    output(command.args(["koi", "import"]).arg(&file))?;
    let took_import = began.elapsed();
    let (n_entities, n_relationships) = (entities.len(), relationships.len());
    table.row(
        &format!("import of {n_entities} entities and {n_relationships} relationships"),
        "",
        &once(took_import),
        "",
    );
    let scan = bare_scan(data)?;
    let beside = |took: &Took| format!("{:.4} x a bare scan", took.wall / ms(scan));
    table.row("bare scan of every entity", "", &once(scan), "");
    let mut server = Server::start(programs.mcp(data))?;
    let began = Instant::now();
    server.call("resolve_entity", &json!({ "label": "Nobody Known" }))?;
    table.row("first call of a server", "", &once(began.elapsed()), "");
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
        server.call(tool, &arguments(n_calls + 1))?;
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

/// Every entity read once.
fn bare_scan(data: &Path) -> Result<Duration> {
    let store = Store::new(Sqlite::open(data)?);
    let began = Instant::now();
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
    Ok(began.elapsed())
}

fn vault(
    programs: &Programs,
    root: &Path,
    graph: &Graph,
    n_notes: usize,
    table: &mut Table,
) -> Result<()> {
    let (notes, data) = (root.join("notes"), root.join("data"));
    fs::create_dir_all(&data)?;
    for folder in [
        "People",
        "Organizations",
        "Projects",
        "Practices",
        "Concepts",
    ] {
        fs::create_dir_all(notes.join(folder))?;
    }
    for n in 0..n_notes.min(graph.entities.len()) {
        let (name, kind) = &graph.entities[n];
        let folder = match *kind {
            "Person" => "People",
            "Organization" => "Organizations",
            "Project" => "Projects",
            "Practice" => "Practices",
            _ => "Concepts",
        };
        let other = |step: usize| &graph.entities[(n + step) % n_notes].0;
        let field = if *kind == "Person" {
            "knows"
        } else {
            "related"
        };
        let text = format!(
            "---\naliases: [nick {n}]\n{field}: [\"[[{}]]\", \"[[{}]]\"]\n---\n# {name}\n\n{} [[{}]]\n",
            other(1),
            other(17),
            fixture::words(n as u64, 600),
            other(5)
        );
        fs::write(notes.join(folder).join(format!("{name}.md")), text)?;
    }
    let mut command = programs.mcp(&data);
    command.env("VAULT_PATH", &notes);
    let mut server = Server::start(command)?;
    let ask = json!({ "label": graph.entities[0].0 });
    let (began, before) = (Instant::now(), server.cpu()?);
    server.call("resolve_entity", &ask)?;
    let (wall, used) = (began.elapsed(), server.cpu()?.saturating_sub(before));
    let took = Took {
        cpu: ms(used),
        ..once(wall)
    };
    table.row(
        &format!("a vault of {n_notes} notes becomes the graph"),
        "30 s",
        &took,
        "",
    );
    // The first change has every statement read once; those after it are followed one by one.
    server.call("vault_list_notes", &json!({ "folder": "People" }))?;
    for (what, target, numbers) in [
        ("the first note more, resolved", "", 0..1),
        ("one more note, resolved", "20 ms", 1..21),
    ] {
        let before = server.cpu()?;
        let mut walls = Vec::new();
        for n in numbers {
            let path = format!("People/New One {n}.md");
            let note = json!({ "path": path, "content": "---\nknows: Nobody\n---\n" });
            let began = Instant::now();
            server.call("vault_write_note", &note)?;
            server.call(
                "resolve_entity",
                &json!({ "label": format!("New One {n}") }),
            )?;
            walls.push(began.elapsed());
        }
        let used = server.cpu()?.saturating_sub(before);
        let each = super::wasm::took(&mut walls, used);
        table.row(what, target, &each, "");
    }
    server.stop()
}

fn once(wall: Duration) -> Took {
    Took {
        wall: ms(wall),
        wall_p99: ms(wall),
        cpu: ms(wall),
    }
}
