//! Every tool, with arguments of any form.
//!
//! An input is a tool's name, a space and JSON. Most follow the tool's schema in part.

use super::{ensure, in_time, text};
use crate::{Source, Subject, Target};
use kenning_audit::archive;
use kenning_core::{Code, Space};
use kenning_egress::{Connect, Resolve};
use kenning_engine::koi::WebOptions;
use kenning_testing::{Fixture, Outside};
use kenning_tools::{Selection, TOOLS};
use serde_json::{Map, Value, json};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

pub(super) const TARGET: Target = Target {
    name: "tool_input",
    about: "every tool answers or refuses, what it stores can be stored again, and the log verifies",
    words: &[
        "\"a\":",
        "null",
        "[]",
        "{}",
        "true",
        "\"../x\"",
        "\"2026-01-02\"",
        "\"all\"",
        "\"project_path\":",
        "\"cursor\":",
    ],
    seeds,
    generate,
    open: || Box::new(Tools::new()),
    pass_cases: 400,
    fresh_every: 400,
    contains_panics: false,
};

/// The examples of every tool.
fn seeds() -> Vec<Vec<u8>> {
    let examples = TOOLS.iter().flat_map(|tool| {
        let examples = tool.examples().iter();
        examples.map(|it| format!("{} {}", tool.name(), it.input).into_bytes())
    });
    examples.collect()
}

fn generate(source: &mut Source) -> Vec<u8> {
    let tool = *source.pick(TOOLS);
    let schema = tool.input_schema();
    let mut arguments = Map::new();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (field, property) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.iter().any(|it| it == field);
        if is_required && !source.one_in(10) || source.one_in(3) {
            arguments.insert(field.clone(), value(&schema, property, 4, source));
        }
    }
    // Most of these are tools of many actions: one of them is chosen more often than by chance.
    let example = tool.examples().first().map(|it| it.input);
    if let Some(Value::Object(example)) = example.and_then(|it| serde_json::from_str(it).ok())
        && source.one_in(2)
    {
        for (field, value) in example {
            arguments.entry(field).or_insert(value);
        }
    }
    format!("{} {}", tool.name(), Value::Object(arguments)).into_bytes()
}

/// A value that the schema allows, or nearly.
fn value(whole: &Value, property: &Value, depth: usize, source: &mut Source) -> Value {
    if depth == 0 || source.one_in(12) {
        return serde_json::from_str(&source.json(4)).unwrap_or_default();
    }
    if let Some(name) = property["$ref"]
        .as_str()
        .and_then(|it| it.strip_prefix('#'))
    {
        let property = whole.pointer(name).cloned().unwrap_or_default();
        return value(whole, &property, depth - 1, source);
    }
    for choices in ["enum", "oneOf", "anyOf"] {
        if let Some(choices) = property[choices].as_array().filter(|it| !it.is_empty()) {
            let chosen = source.pick(choices).clone();
            return if choices.iter().all(Value::is_object) {
                value(whole, &chosen, depth, source)
            } else {
                chosen
            };
        }
    }
    if let Some(only) = property.get("const") {
        return only.clone();
    }
    let kind = match &property["type"] {
        Value::Array(kinds) => source.pick(kinds).as_str().unwrap_or_default().to_owned(),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    match kind.as_str() {
        "string" => match source.below(6) {
            0 => source.odd_text().into(),
            1 => source.odd_text().repeat(source.count()).into(),
            2 => (*source.pick(&[
                "all",
                "user",
                "project",
                "a",
                "Bill Baue",
                "People/Bill Baue.md",
                "x.md",
                "fact",
                "run",
                "directive",
                "tool",
                "knowledge",
                "https://public.example/",
                "018bcfe5-6800-7a4f-b1d9-0123456789ab",
                "2026-01-02T03:04:05Z",
            ]))
            .into(),
            3 => source.word().into(),
            _ => source.text().into(),
        },
        "integer" => (*source.pick(&[0, 1, 2, 10, 100, -1, i64::MAX, i64::MIN, 1_000_000])).into(),
        "number" => json!(*source.pick(&[0.0, 0.5, 1.0, -1.0, 1e308, 1e-308, 3.25])),
        "boolean" => source.one_in(2).into(),
        "array" => {
            let n = source.count().min(50);
            (0..n)
                .map(|_| value(whole, &property["items"], depth - 1, source))
                .collect()
        }
        "object" => {
            let mut object = Map::new();
            for (field, property) in property["properties"].as_object().into_iter().flatten() {
                if !source.one_in(3) {
                    object.insert(field.clone(), value(whole, property, depth - 1, source));
                }
            }
            if object.is_empty() {
                let n = source.depth().min(126);
                let deep = format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n));
                return serde_json::from_str(&deep).unwrap_or_default();
            }
            object.into()
        }
        _ => Value::Null,
    }
}

/// There is no internet here.
struct Nowhere;

impl Resolve for Nowhere {
    fn resolve(&self, host: &str, _: Duration) -> io::Result<Vec<IpAddr>> {
        match host {
            "public.example" => Ok(vec![[93, 184, 216, 34].into()]),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Connect for Nowhere {
    fn connect(&self, _: SocketAddr, _: Duration) -> io::Result<TcpStream> {
        Err(io::ErrorKind::ConnectionRefused.into())
    }
}

struct Tools {
    fixture: Fixture,
    n_calls: u64,
}

/// How often everything that was stored is looked at.
const LOOK_EVERY: u64 = 100;

impl Tools {
    fn new() -> Self {
        let toolsets = ["core", "koi", "kiwi", "kg", "kg-extra", "omi", "omi-extra"];
        let selection = Selection {
            toolsets: toolsets.iter().map(|it| (*it).to_owned()).collect(),
            ..Selection::default()
        };
        let outside = Outside {
            web: WebOptions {
                resolver: Some(Arc::new(Nowhere)),
                connector: Some(Arc::new(Nowhere)),
            },
            ..Outside::default()
        };
        let fixture = Fixture::in_world(selection, outside);
        fixture.put_document("docs/a.md", "# A\n\n[[b]] #tag\n");
        fixture.put_document("docs/b.md", "---\ntags: [x]\n---\n# B\n");
        Self {
            fixture,
            n_calls: 0,
        }
    }

    /// Everything that was stored can be written as a backup and read back, and the log verifies.
    fn look(&self) -> Result<(), String> {
        let engine = self.fixture.board.engine();
        let space = Space::default();
        let report = engine
            .verify(&space, &|_| {})
            .map_err(|it| format!("verify: {it}"))?;
        ensure!(
            report.is_clean(),
            "verify: the log is not clean: {report:?}"
        );
        let mut fault = None;
        let dumped = self.fixture.log().read(&space, |tx| {
            archive::dump(tx, &mut |row| {
                let line = row.to_string();
                if serde_json::from_str::<Value>(&line).ok().as_ref() != Some(&row) {
                    fault.get_or_insert(line);
                }
                Ok(())
            })
        });
        dumped.map_err(|it| format!("dump: {it}"))?;
        match fault {
            Some(line) => Err(format!(
                "dump: a row does not read back: {}",
                &line[..line.len().min(300)]
            )),
            None => Ok(()),
        }
    }
}

impl Subject for Tools {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let text = text(input);
        let (name, arguments) = text.split_once(' ').unwrap_or((&text, ""));
        let Ok(arguments) = serde_json::from_str::<Value>(arguments) else {
            return Ok(());
        };
        let Some(tool) = self.fixture.board.find(name) else {
            return Ok(());
        };
        self.n_calls += 1;
        let caller = self.fixture.agent();
        let reply = in_time(input, || {
            self.fixture.call_as(tool.name(), arguments, &caller)
        })?;
        if let Some(error) = &reply.error {
            let code = error.code;
            ensure!(
                !matches!(code, Code::Internal | Code::Corrupt),
                "our own fault: {name} answers {code:?}: {error}"
            );
            super::short(error)?;
        }
        let said = reply.to_json().to_string();
        let root = self.fixture.root.path().to_string_lossy().into_owned();
        let data = format!("{root}/data");
        ensure!(
            !said.contains(&data),
            "a path of this machine is in the answer of {name}"
        );
        let most = kenning_engine::ANSWER_CHARS_MAX * 4;
        ensure!(
            reply.text.len() <= most,
            "an answer of {name} has {} bytes",
            reply.text.len()
        );
        if self.n_calls.is_multiple_of(LOOK_EVERY) {
            self.look()?;
        }
        Ok(())
    }
}
