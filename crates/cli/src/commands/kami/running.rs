//! Running tools.

use super::{Kami, must, path, word};
use crate::{output, tool_args};
use clap::ArgMatches;
use kenning_core::{Code, Error, Result};
use kenning_engine::kami::{FileRun, ToolRun};
use serde_json::Value;
use std::path::Path;

/// The largest input that is read from a file.
const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The exit code if the tool answers with an error.
const TOOL_ERROR: u8 = 1;

pub(super) fn exec(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let (id, input) = (must(matches, "id")?, input(matches)?);
    for name in unknown_arguments(kami, &id, &input) {
        output::say(&format!("warning: `{id}` has no argument `{name}`"));
    }
    let run = kami.engine.kami().try_tool(&kami.caller, &id, &input)?;
    Ok(show(kami, &run, matches.get_flag("raw")))
}

/// Arguments that the tool does not declare.
fn unknown_arguments(kami: &Kami<'_>, id: &str, input: &str) -> Vec<String> {
    let Ok(Value::Object(given)) = serde_json::from_str(input) else {
        return Vec::new();
    };
    let all = kami
        .engine
        .kami()
        .tool_functions(&kami.caller)
        .unwrap_or_default();
    let Some(function) = all.iter().find(|it| it.name == id) else {
        return Vec::new();
    };
    let Some(declared) = function.input_schema["properties"].as_object() else {
        return Vec::new();
    };
    let is_unknown = |it: &&String| !declared.is_empty() && !declared.contains_key(*it);
    given.keys().filter(is_unknown).cloned().collect()
}

pub(super) fn run_file(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let number = |name: &str| matches.get_one::<u64>(name).copied();
    let how = FileRun {
        max_memory_mb: number("max-memory-mb").map(|it| u32::try_from(it).unwrap_or(u32::MAX)),
        max_execution_ms: number("timeout-ms"),
        max_fuel: number("fuel"),
    };
    let file = path(matches, "file").ok_or_else(|| Error::invalid("the component is missing"))?;
    let run = kami
        .engine
        .kami()
        .run_tool_file(&kami.caller, &file, &input(matches)?, &how)?;
    Ok(show(kami, &run, matches.get_flag("raw")))
}

fn input(matches: &ArgMatches) -> Result<String> {
    match word(matches, "input-file").as_deref() {
        None => Ok(word(matches, "input").unwrap_or_else(|| "{}".to_owned())),
        Some("-") => tool_args::read_stdin(),
        Some(file) => {
            let read = || {
                let (dir, name) = kenning_vault::split(Path::new(file))?;
                dir.read(&name, INPUT_BYTES_MAX)
            };
            let bytes = read().map_err(|error: Error| match error.code {
                Code::NotFound => {
                    Error::new(Code::NotFound, format!("input file not found: `{file}`"))
                        .hint("`--input-file` (`-f`) names a file of JSON; `-` is standard input")
                }
                _ => Error {
                    message: format!("`--input-file`: `{file}`: {}", error.message),
                    ..error
                },
            })?;
            String::from_utf8(bytes).map_err(|_| {
                Error::invalid(format!("`--input-file`: `{file}` is not UTF-8 text"))
                    .hint("give a file of JSON")
            })
        }
    }
}

/// The result is data; the log of the tool is shown with `--verbose`.
fn show(kami: &Kami<'_>, run: &ToolRun, is_raw: bool) -> u8 {
    if kami.settings.verbosity > 0 {
        for (level, message) in &run.log {
            output::complain(&format!("{level:<5} {message}"));
        }
        let (out, err) = &run.printed;
        for line in out.lines().chain(err.lines()) {
            output::complain(&format!("tool  {line}"));
        }
        let usage = run.usage;
        output::complain(&format!(
            "took  {} fuel, {} µs, {} KiB, {} requests",
            usage.fuel,
            usage.wall_us,
            usage.memory_peak_bytes / 1_024,
            usage.http_requests
        ));
    }
    match &run.result {
        Ok(text) => {
            match is_raw {
                true => output::print_raw(text),
                false => output::print(text),
            }
            0
        }
        Err(message) => {
            output::complain(&format!("error: {message}"));
            if let Some(detail) = run.detail.as_ref().filter(|_| kami.settings.verbosity > 1) {
                output::complain(detail);
            }
            let code = run.code.filter(|_| !run.is_own_error);
            code.map_or(TOOL_ERROR, |it| it.row().exit)
        }
    }
}

pub(super) fn logs(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let text = kami
        .engine
        .kami()
        .tool_logs(&kami.caller, &must(matches, "id")?)?;
    match text.trim_end() {
        "" => output::say("it has logged nothing"),
        text => output::print(text),
    }
    Ok(0)
}
