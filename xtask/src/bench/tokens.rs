//! What a model pays for the listing of tools, before it has called any.

use crate::options::Options;
use anyhow::{Context as _, Result, ensure};
use kenning_tools::{AnyTool, TOOLS, Toolset, in_default_set, listed_description, listed_schema};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// What `kenning mcp` lists when nothing is said stays under it.
const DEFAULT_TOKENS_MAX: usize = 1_800;
/// What the contracts name. It was 5,434 when all of them were listed by default; tags and the scope of memories came
/// since.
const CONTRACTS_TOKENS_MAX: usize = 5_600;
/// All tools that there are.
const ALL_TOKENS_MAX: usize = 8_100;
/// And those that reach all others under this.
const LEAN_TOKENS_MAX: usize = 1_000;

/// The listing of a server that nobody chose tools for.
const DEFAULT: &str = "default";

/// What reaches the model: name, description and schema of the arguments, as compact JSON.
fn listing(tools: &[&dyn AnyTool], is_default_set: bool) -> String {
    let listing: Vec<Value> = tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name(), "description": listed_description(*tool, is_default_set),
                "inputSchema": listed_schema(*tool, is_default_set),
            })
        })
        .collect();
    Value::Array(listing).to_string()
}

/// How many tokens each of these texts has. A program of its own counts them: in this workspace it
/// would make everything be compiled a second time with other features.
fn counted(texts: &[String]) -> Result<Vec<usize>> {
    let mut counter = Command::new("cargo")
        .args(["run", "--quiet", "--release", "--manifest-path"])
        .arg("tools/tokens/Cargo.toml")
        .args(["--target-dir", "target/tokens"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo cannot be started")?;
    let mut input = counter.stdin.take().context("no input")?;
    input.write_all(texts.join("\n").as_bytes())?;
    drop(input);
    let done = counter.wait_with_output()?;
    ensure!(done.status.success(), "the tokens were not counted");
    let counts = String::from_utf8(done.stdout)?;
    let counts = counts.lines().map(str::parse);
    let counts = counts.collect::<Result<Vec<usize>, _>>()?;
    ensure!(counts.len() == texts.len(), "{} counts", counts.len());
    Ok(counts)
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&[])?;
    let of = |wanted: &dyn Fn(&dyn AnyTool) -> bool| -> Vec<&dyn AnyTool> {
        TOOLS.iter().copied().filter(|it| wanted(*it)).collect()
    };
    let mut rows: Vec<(&str, Vec<&dyn AnyTool>)> = Toolset::ALL
        .into_iter()
        .map(|toolset| (toolset.as_str(), of(&|it| it.toolset() == toolset)))
        .collect();
    rows.push((DEFAULT, of(&in_default_set)));
    rows.push(("contracts", of(&|it| it.toolset().is_of_contracts())));
    let reaches = |it: &dyn AnyTool| it.toolset() == Toolset::Kiwi || it.name() == "execute_read";
    rows.push(("lean", of(&reaches)));
    rows.push(("all", of(&|_| true)));
    let texts: Vec<String> = rows
        .iter()
        .map(|it| listing(&it.1, it.0 == DEFAULT))
        .collect();
    let counts = counted(&texts)?;
    println!(
        "{:<9} {:>5} {:>7} {:>7}  (o200k)",
        "toolset", "tools", "tokens", "bytes"
    );
    for ((name, tools), (text, tokens)) in rows.iter().zip(texts.iter().zip(&counts)) {
        println!("{name:<9} {:>5} {tokens:>7} {:>7}", tools.len(), text.len());
        let most = match *name {
            DEFAULT => DEFAULT_TOKENS_MAX,
            "contracts" => CONTRACTS_TOKENS_MAX,
            "all" => ALL_TOKENS_MAX,
            "lean" => LEAN_TOKENS_MAX,
            _ => usize::MAX,
        };
        ensure!(
            *tokens <= most,
            "{tokens} tokens of `{name}` are more than {most}"
        );
    }
    Ok(())
}
