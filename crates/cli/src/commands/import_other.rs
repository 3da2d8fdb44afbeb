//! `kenning import claude-mem|mem0|basic-memory|claude-auto-memory|json`: memories of other programs.

use crate::{Host, Settings, output, owner};
use clap::{Arg, ArgAction, ArgMatches, Command};
use kenning_capture::imports::{Form, IMPORT_BYTES_MAX, ImportedMemory, read};
use kenning_core::{Code, Error, Result};
use kenning_engine::omi::{MemoryType, NewMemory};
use kenning_engine::parse_moment;
use kenning_vault::Dir;
use serde_json::json;
use std::path::Path;

/// Memories that one transaction stores.
const BATCH: usize = 500;

/// The deepest folder that is looked into, and the most files.
const DEPTH_MAX: usize = 16;
const FILES_MAX: usize = 20_000;

/// The subcommands, one for each form.
pub(crate) fn commands() -> Vec<Command> {
    let each = Form::ALL.iter().map(|form| {
        let about = match form {
            Form::ClaudeMem => "claude-mem: the JSON that its export script writes",
            Form::Mem0 => "mem0: what `get_all` answers, as JSON",
            Form::BasicMemory => {
                "Basic Memory: a folder of Markdown notes; each observation is a memory"
            }
            Form::ClaudeAutoMemory => {
                "Claude Code's own memory: the folder `memory` of a project in ~/.claude/projects"
            }
            Form::Json => "JSON: a list of objects with `content`, or one a line",
        };
        Command::new(form.as_str())
            .about(about)
            .arg(
                Arg::new("from")
                    .value_name("PATH")
                    .required(true)
                    .help(match form.is_folder() {
                        true => "The folder, or one file of it",
                        false => "The file",
                    }),
            )
            .arg(
                Arg::new("global")
                    .long("global")
                    .action(ArgAction::SetTrue)
                    .help("For every project, and not for this one alone"),
            )
            .arg(
                Arg::new("dry-run")
                    .long("dry-run")
                    .action(ArgAction::SetTrue)
                    .help("Say how many there are, and store nothing"),
            )
    });
    each.collect()
}

pub(super) fn run(
    host: &dyn Host,
    settings: &Settings,
    form: &str,
    matches: &ArgMatches,
) -> Result<u8> {
    let form = Form::ALL.into_iter().find(|it| it.as_str() == form);
    let form = form.ok_or_else(|| Error::internal("an unknown form of import"))?;
    let from = matches.get_one::<String>("from").map_or("", String::as_str);
    let mut found = Vec::new();
    for (name, text) in texts(form, Path::new(from))? {
        let memories = read(form, &name, &text).ok_or_else(|| {
            Error::invalid(format!("`{name}` is not what {} writes", form.as_str()))
                .hint("`kenning import --help` says what each form reads")
        })?;
        found.extend(memories);
    }
    let project = matches.get_flag("global").then(String::new);
    let new: Vec<NewMemory> = found
        .into_iter()
        .map(|it| memory_of(it, form, project.clone()))
        .collect();
    let (n, mut known) = (new.len(), 0);
    if !matches.get_flag("dry-run") {
        let (engine, caller) = (host.open(settings)?, owner(settings));
        let mut rest = new.into_iter().peekable();
        while rest.peek().is_some() {
            let some: Vec<NewMemory> = rest.by_ref().take(BATCH).collect();
            let stored = engine.omi().store_memories(&caller, some)?;
            known += stored.iter().filter(|it| it.duplicate).count();
        }
        engine.omi().settle();
    }
    match settings.json {
        true => {
            output::print_json(&json!({ "memories": n, "known": known, "form": form.as_str() }));
        }
        false => output::print(&format!(
            "✓ {} memories of {}, {known} known already",
            n,
            form.as_str()
        )),
    }
    Ok(0)
}

fn memory_of(memory: ImportedMemory, form: Form, project: Option<String>) -> NewMemory {
    let at = memory.at.as_deref();
    let digits = at.and_then(|it| it.parse::<u64>().ok());
    let said_ms = digits.or_else(|| at.and_then(|it| parse_moment("created_at", it).ok()));
    let memory_type = memory
        .memory_type
        .and_then(|it| it.parse::<MemoryType>().ok());
    NewMemory {
        content: memory.content,
        memory_type: memory_type.unwrap_or_default(),
        tags: memory.tags,
        project,
        source: Some(form.as_str().to_owned()),
        said_ms,
        ..NewMemory::default()
    }
}

/// The named file, or every Markdown file below the named folder.
fn texts(form: Form, path: &Path) -> Result<Vec<(String, String)>> {
    if form.is_folder()
        && let Ok(dir) = Dir::open(path)
    {
        let mut names = Vec::new();
        walk(&dir, "", 0, &mut names)?;
        names.sort();
        return names
            .into_iter()
            .map(|it| Ok((it.clone(), text_of(&dir, &it)?)))
            .collect();
    }
    let (dir, name) = kenning_vault::split(path)?;
    Ok(vec![(name.clone(), text_of(&dir, &name)?)])
}

fn text_of(dir: &Dir, name: &str) -> Result<String> {
    let bytes = dir.read(name, IMPORT_BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|_| {
        Error::invalid(format!("`{name}` is not UTF-8 text")).hint("convert it to UTF-8")
    })
}

fn walk(dir: &Dir, below: &str, depth: usize, names: &mut Vec<String>) -> Result<()> {
    let entries = match dir.list(if below.is_empty() { "." } else { below }) {
        Err(error) if error.code == Code::NotFound => return Ok(()),
        listed => listed?,
    };
    for entry in entries {
        let name = match below {
            "" => entry.name.clone(),
            below => format!("{below}/{}", entry.name),
        };
        // What begins with a dot belongs to a program and not to a person.
        if entry.name.starts_with('.') || names.len() >= FILES_MAX {
            continue;
        }
        if entry.is_dir && depth < DEPTH_MAX {
            walk(dir, &name, depth + 1, names)?;
        } else if entry.is_file && entry.name.ends_with(".md") {
            names.push(name);
        }
    }
    Ok(())
}
