//! Whether the words of a listing lead from what people ask to the tool that answers it.
//!
//! No model is asked: a request is compared with every description by the built-in table of vectors, and the
//! nearest one counts as chosen. A model understands more than that; what confuses the table is what is said in
//! words too much alike, so the figure compares listings with each other and is no forecast of any model.

use crate::options::Options;
use anyhow::{Context as _, Result, ensure};
use kenning_embed::{Table, TableVector};
use kenning_tools::{AnyTool, TOOLS, in_default_set, listed_description};
use std::collections::BTreeMap;

/// Frozen before any description was tuned.
const REQUESTS: &str = "testing/choice/requests.tsv";
const REQUESTS_LEN: usize = 120;

/// What clients that defer tools show a model of the server's instructions.
const INSTRUCTIONS: &str = include_str!("../../../crates/mcp/src/instructions.md");
const INSTRUCTIONS_BYTES: usize = 2_048;

/// So many of a request's nearest tools are looked at for the second figure.
const NEAR: usize = 3;

struct Request<'a> {
    text: &'a str,
    default: &'a str,
    all: Vec<&'a str>,
}

/// A listing: the names, and what a model reads of each.
struct View {
    name: &'static str,
    tools: Vec<(&'static str, String)>,
    is_all: bool,
}

fn requests(text: &str) -> Result<Vec<Request<'_>>> {
    let lines = text
        .lines()
        .filter(|it| !it.starts_with('#') && !it.is_empty());
    lines
        .map(|line| {
            let mut columns = line.split('\t');
            let mut next = || columns.next().with_context(|| format!("no column: {line}"));
            Ok(Request {
                text: next()?,
                default: next()?,
                all: next()?.split('|').collect(),
            })
        })
        .collect()
}

/// The sentences of the instructions that name a tool, as far as a client shows them.
fn deferred(tool: &dyn AnyTool) -> String {
    let end = INSTRUCTIONS.floor_char_boundary(INSTRUCTIONS_BYTES.min(INSTRUCTIONS.len()));
    let parts = INSTRUCTIONS[..end].split(['\n', ';', '.']);
    let named = format!("`{}`", tool.name());
    let own: Vec<&str> = parts.filter(|it| it.contains(&named)).collect();
    own.join(". ")
}

fn views() -> Vec<View> {
    let words = |tool: &dyn AnyTool, text: String| {
        let name = tool.name().replace('_', " ");
        (tool.name(), format!("{name}. {text}"))
    };
    let default = || TOOLS.iter().copied().filter(|it| in_default_set(*it));
    vec![
        View {
            name: "default",
            tools: default()
                .map(|it| words(it, listed_description(it, true)))
                .collect(),
            is_all: false,
        },
        View {
            name: "deferred",
            tools: default().map(|it| words(it, deferred(it))).collect(),
            is_all: false,
        },
        View {
            name: "all",
            tools: TOOLS
                .iter()
                .map(|it| words(*it, it.description()))
                .collect(),
            is_all: true,
        },
    ]
}

fn vector(text: &str) -> TableVector {
    let table = Table::built_in();
    table.passage(&table.ids(text))
}

fn cosine(a: &TableVector, b: &TableVector) -> f32 {
    let dot = |a: &TableVector, b: &TableVector| a.iter().zip(b).map(|it| it.0 * it.1).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(1e-12)
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&[])?;
    let text = std::fs::read_to_string(REQUESTS).context(REQUESTS)?;
    let requests = requests(&text)?;
    ensure!(
        requests.len() == REQUESTS_LEN,
        "{} requests",
        requests.len()
    );
    let asked: Vec<TableVector> = requests.iter().map(|it| vector(it.text)).collect();
    println!("listing   tools  asked  first  among {NEAR}");
    let mut confusions = Vec::new();
    for view in views() {
        let described: Vec<TableVector> = view.tools.iter().map(|it| vector(&it.1)).collect();
        let has = |name: &str| view.tools.iter().any(|it| it.0 == name);
        let (mut n, mut n_first, mut n_near) = (0, 0, 0);
        let mut missed: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
        for (request, own) in requests.iter().zip(&asked) {
            let right: Vec<&str> = match view.is_all {
                true => request.all.iter().copied().filter(|it| has(it)).collect(),
                false => [request.default].into_iter().filter(|it| has(it)).collect(),
            };
            // A tool that this program does not have cannot be chosen.
            if right.is_empty() {
                continue;
            }
            let near = view.tools.iter().zip(&described);
            let mut near: Vec<(f32, &str)> =
                near.map(|(tool, it)| (cosine(own, it), tool.0)).collect();
            near.sort_by(|a, b| b.0.total_cmp(&a.0));
            n += 1;
            let is_right = |it: &(f32, &str)| right.contains(&it.1);
            n_near += usize::from(near.iter().take(NEAR).any(is_right));
            match near.first() {
                Some(first) if is_right(first) => n_first += 1,
                Some(first) => {
                    let key = (right.join("|"), first.1);
                    missed.entry(key).or_default().push(request.text);
                }
                None => {}
            }
        }
        let (name, n_tools) = (view.name, view.tools.len());
        println!("{name:<9} {n_tools:>5} {n:>6} {n_first:>6} {n_near:>8}");
        confusions.push((name, missed));
    }
    for (name, missed) in confusions {
        println!("\n{name}: what was chosen in place of what");
        for ((right, chosen), texts) in missed {
            for text in texts {
                println!("  {right} <- {chosen}: {text}");
            }
        }
    }
    Ok(())
}
