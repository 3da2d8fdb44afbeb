//! Pages of the web, served on loopback: previewed, processed, ingested, monitored.

mod hostile;
mod ingest;
mod monitor;
mod preview;
mod process;
mod server;

use crate::Fixture;
use kenning_testing::Outside;
use kenning_tools::koi::Refusal;
use kenning_tools::{Selection, koi};
use serde_json::{Value, json};
use server::Site;
use std::fs;

const GOLDEN: &str = include_str!("../../../../../testing/vectors/koi-golden.jsonl");
const VECTORS: &str = include_str!("../../../../../testing/vectors/koi-vectors.json");

/// The page of the recorded answers.
fn herring() -> String {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    vectors["html"]["input"].as_str().unwrap().to_owned()
}

/// The recorded pair of this name.
fn recorded(name: &str) -> Value {
    let mut lines = GOLDEN
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap());
    lines.find(|it| it["name"] == name).unwrap()
}

/// A page with a title and a paragraph.
fn page(title: &str, text: &str) -> String {
    format!("<html><head><title>{title}</title></head><body><p>{text}</p></body></html>")
}

/// A fixture that may fetch pages of this site, with the entities of the recorded answers.
fn fixture(site: &Site) -> Fixture {
    house_with(site, &[])
}

fn house_with(site: &Site, variables: &[(&str, &str)]) -> Fixture {
    let mut outside = Outside::of(variables);
    let allowed = ("KENNING_WEB_ALLOW".to_owned(), site.address());
    outside.variables.push(allowed);
    let fixture = Fixture::in_world(Selection::default(), outside);
    for (path, text) in [
        (
            "People/Bill Baue.md",
            "---\naliases: [\"Bill\"]\naffiliation: [\"[[Organizations/r3.0]]\"]\n---\n",
        ),
        ("Organizations/r3.0.md", ""),
        ("Practices/Herring Monitoring.md", ""),
        ("Bioregions/Salish Sea.md", ""),
    ] {
        put(&fixture, path, text);
    }
    fixture
}

fn put(fixture: &Fixture, path: &str, text: &str) {
    let path = fixture.vault().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let beside = path.with_extension("new");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, path).unwrap();
}

fn note(fixture: &Fixture, path: &str) -> String {
    fs::read_to_string(fixture.vault().join(path)).unwrap()
}

/// What a tool answers that goes well.
fn done(fixture: &Fixture, tool: &str, arguments: Value) -> Value {
    let reply = fixture.call(tool, arguments);
    assert!(!reply.is_error(), "{tool}: {}", reply.text);
    reply.to_json()
}

fn previewed(fixture: &Fixture, url: &str) -> Value {
    done(fixture, "preview_url", json!({ "url": url }))
}

/// What the HTTP API answers: a status, and the answer or the detail.
fn asked(fixture: &Fixture, tool: &str, request: Value) -> (u16, Value) {
    let (engine, caller) = (fixture.board.engine(), fixture.owner());
    fn of<T: serde::Serialize>(answer: Result<T, Refusal>) -> (u16, Value) {
        match answer {
            Ok(it) => (200, serde_json::to_value(it).unwrap()),
            Err(it) => (it.status, json!({ "detail": it.error.message })),
        }
    }
    macro_rules! asked {
        ($tool:ident) => {
            of(koi::$tool::answer(
                engine,
                &caller,
                serde_json::from_value(request).unwrap(),
            ))
        };
    }
    match tool {
        "preview" => asked!(preview_url),
        "process" => asked!(process_url),
        "ingest" => asked!(ingest_url),
        "monitor" => asked!(monitor_url),
        "scan" => of(koi::monitor_url::scan(
            engine,
            &caller,
            koi::api::Nothing {},
        )),
        other => panic!("{other} is no tool"),
    }
}
