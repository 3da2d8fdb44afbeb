//! Agents: what they find of what was planted, and what they find elsewhere.
//!
//! `cargo xtask bench agents` has each agent look at a small repository with planted faults
//! (testing/agents/planted.txt), and says how many it found and how many finds are false; then at the example
//! vault and at this repository. `--own no` leaves the last one out. The real program runs; no model is asked.

use super::fixture;
use crate::options::Options;
use crate::repository;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const PLANTED: &str = include_str!("../../../testing/agents/planted.txt");

/// Both are asked of every agent on what was planted.
const RECALL_MIN: f64 = 0.9;
const PRECISION_MIN: f64 = 0.9;

/// The agents that look for planted faults, and for which.
const SEEKERS: [(&str, &str, &[&str]); 4] = [
    (
        "tester",
        "Find what is broken or untested",
        &["broken-link", "untested"],
    ),
    ("architect", "Show the dependency cycles", &["cycle"]),
    (
        "researcher",
        "Which statements contradict each other?",
        &["contradiction"],
    ),
    (
        "analyst",
        "Measure everything",
        &["broken-link", "untested", "cycle", "contradiction"],
    ),
];

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["binary", "own"])?;
    let binary: PathBuf = match options.text("binary") {
        Some(binary) => binary.into(),
        None => std::env::current_exe()?.with_file_name("kenning"),
    };
    ensure!(
        binary.exists(),
        "no program at {}: build it first",
        binary.display()
    );
    let is_good = planted(&binary)?;
    example(&binary)?;
    if options.text("own") != Some("no") {
        own(&binary)?;
    }
    ensure!(
        is_good,
        "an agent has less than {RECALL_MIN} recall or {PRECISION_MIN} precision on what was planted"
    );
    Ok(())
}

/// A program with a data directory, a project and repositories of its own.
struct Place<'a> {
    binary: &'a Path,
    root: tempfile::TempDir,
    project: PathBuf,
    vault: Option<PathBuf>,
}

impl Place<'_> {
    fn call(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(self.binary);
        command
            .args(args)
            .current_dir(&self.project)
            .env(
                "KENNING_REPO_PATHS",
                self.project.parent().unwrap_or(&self.project),
            )
            .env("KENNING_DATA", self.root.path().join("data"))
            .env("KENNING_PROJECT", &self.project)
            .env("HOME", self.root.path());
        if let Some(vault) = &self.vault {
            command.env("VAULT_PATH", vault);
        }
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let failed = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{args:?}: {said}{failed}");
        Ok(said)
    }

    fn tool(&self, name: &str, arguments: &Value) -> Result<Value> {
        let said = self.call(&["call", name, "--json", &arguments.to_string()])?;
        Ok(serde_json::from_str(&said)?)
    }

    fn scan(&self) -> Result<()> {
        let repository = self.project.display().to_string();
        let scan = json!({ "action": "scan", "repo_name": repository });
        self.tool("github_scan", &scan).map(drop)
    }

    fn agent(&self, kind: &str, task: &str) -> Result<(Value, f64)> {
        let begun = Instant::now();
        let ask = json!({ "type": kind, "task": task, "options": { "timeout": 600_000 } });
        let answer = self.tool("kg_agent_spawn", &ask)?;
        Ok((answer["data"].clone(), begun.elapsed().as_secs_f64()))
    }
}

fn git(dir: &Path, args: &[&str]) -> Result<()> {
    let status = Command::new("git")
        .args([
            "-c",
            "user.name=bench",
            "-c",
            "user.email=bench@example.com",
        ])
        .args(args)
        .current_dir(dir)
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "git {args:?} failed");
    Ok(())
}

/// The planted repository: whether every agent found enough and little else.
fn planted(binary: &Path) -> Result<bool> {
    let root = fixture::directory()?;
    let project = root.path().join("repositories/shop");
    let (mut memories, mut expected) = (Vec::new(), Vec::new());
    let parts = PLANTED.split("\n=== ").skip(1);
    for part in parts {
        let (name, text) = part.split_once('\n').context("a part has a name")?;
        match name {
            "memories" => memories.extend(text.lines()),
            "expected" => expected.extend(text.lines()),
            path => {
                let path = project.join(path);
                std::fs::create_dir_all(path.parent().context("a folder")?)?;
                std::fs::write(path, format!("{text}\n"))?;
            }
        }
    }
    git(&project, &["init", "--quiet", "--initial-branch=main"])?;
    git(&project, &["add", "--all"])?;
    git(&project, &["commit", "--quiet", "--message", "first"])?;
    let place = Place {
        binary,
        root,
        project,
        vault: None,
    };
    place.tool("kg_graph_generate", &json!({ "docsPath": "docs" }))?;
    place.scan()?;
    for memory in memories {
        place.tool(
            "memory_store",
            &json!({ "content": memory, "memory_type": "fact" }),
        )?;
    }
    println!(
        "| agent | kind | found | planted | false | recall | precision | seconds |\n|---|---|---|---|---|---|---|---|"
    );
    let mut is_good = true;
    for (agent, task, kinds) in SEEKERS {
        let (data, took) = place.agent(agent, task)?;
        for kind in kinds {
            let wanted: BTreeSet<String> = expected
                .iter()
                .filter(|it| it.starts_with(&format!("{kind} ")))
                .map(|it| (*it).to_owned())
                .collect();
            let found = finds(&data, kind);
            let n_right = wanted.intersection(&found).count();
            let n_false = found.len() - n_right;
            let recall = n_right as f64 / wanted.len().max(1) as f64;
            let precision = n_right as f64 / found.len().max(1) as f64;
            println!(
                "| {agent} | {kind} | {n_right} | {} | {n_false} | {recall:.2} | {precision:.2} | {took:.1} |",
                wanted.len()
            );
            for missed in wanted.difference(&found) {
                println!("  missed: {missed}");
            }
            for wrong in found.difference(&wanted) {
                println!("  false: {wrong}");
            }
            is_good &= recall >= RECALL_MIN && precision >= PRECISION_MIN;
        }
    }
    let (data, took) = place.agent("coder", "Rename `to_cents` to `as_cents`")?;
    let patch = data["artifacts"][1]["content"].as_str().unwrap_or_default();
    let file = place.root.path().join("proposal.patch");
    std::fs::write(&file, patch)?;
    let applies = git(
        &place.project,
        &["apply", "--check", &file.display().to_string()],
    )
    .is_ok();
    let n_lines = patch
        .lines()
        .filter(|it| it.starts_with("+ ") || it.starts_with("+f") || it.starts_with("+d"))
        .count();
    println!("coder: a renaming of {n_lines} lines, which git can apply: {applies} ({took:.1} s)");
    Ok(is_good && applies)
}

/// What an agent found of a kind, in the words of the expectations.
fn finds(data: &Value, kind: &str) -> BTreeSet<String> {
    let findings = data["taskResult"]["findings"].as_array();
    let findings = findings.into_iter().flatten();
    let own = match kind {
        "cycle" => "dependency-cycle",
        other => other,
    };
    findings
        .filter(|it| it["type"] == own)
        .map(|it| {
            let places = it["references"].as_array();
            let places = places.into_iter().flatten().filter_map(Value::as_str);
            let mut places: Vec<String> = match kind {
                "untested" => {
                    let title = it["title"].as_str().unwrap_or_default();
                    vec![title.split('`').nth(1).unwrap_or_default().to_owned()]
                }
                _ => places
                    .map(|it| match it.contains('/') {
                        true => it.to_owned(),
                        false => "memory".to_owned(),
                    })
                    .collect(),
            };
            places.sort();
            format!("{kind} {}", places.join(" "))
        })
        .collect()
}

/// The example vault, where nothing was planted.
fn example(binary: &Path) -> Result<()> {
    let root = fixture::directory()?;
    let vault = root.path().join("vault");
    copy(&repository::root().join("examples/koi-vault"), &vault)?;
    let project = root.path().join("project");
    copy(&repository::root().join("examples/graph"), &project)?;
    let place = Place {
        binary,
        root,
        project,
        vault: Some(vault),
    };
    place.tool("kg_graph_generate", &json!({ "docsPath": "docs" }))?;
    println!("\nthe example vault and project:");
    tell(&place)
}

/// This repository.
fn own(binary: &Path) -> Result<()> {
    let root = fixture::directory()?;
    let project = root.path().join("repositories/own");
    std::fs::create_dir_all(project.parent().context("a folder")?)?;
    let (from, to) = (
        repository::root().display().to_string(),
        project.display().to_string(),
    );
    git(
        root.path(),
        &["clone", "--quiet", "--no-hardlinks", "--", &from, &to],
    )?;
    let place = Place {
        binary,
        root,
        project,
        vault: None,
    };
    place.tool("kg_graph_generate", &json!({ "docsPath": "." }))?;
    place.scan()?;
    println!("\nthis repository:");
    tell(&place)
}

fn tell(place: &Place<'_>) -> Result<()> {
    for (agent, task) in [
        ("researcher", "How are notes written and kept?"),
        ("analyst", "Measure everything"),
        ("architect", "Show layers and cycles"),
        ("tester", "Find what is broken or untested"),
        ("coder", "Where are links resolved?"),
    ] {
        let (data, took) = place.agent(agent, task)?;
        let summary = data["taskResult"]["summary"].as_str().unwrap_or_default();
        let n = data["taskResult"]["findings"]
            .as_array()
            .map_or(0, Vec::len);
        println!("{agent}: {n} findings in {took:.1} s. {summary}");
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let into = to.join(path.file_name().context("a name")?);
        match path.is_dir() {
            true => copy(&path, &into)?,
            false => std::fs::copy(&path, &into).map(drop)?,
        }
    }
    Ok(())
}
