//! `kenning setup --check`: which clients are set up.

use super::clients::{CLIENTS, Form, Scope, directory, place};
use super::{jsonc, read_config};
use crate::commands::table;
use crate::output;
use kenning_core::Result;
use kenning_vault::Dir;
use serde_json::{Value, json};
use std::path::Path;

/// An entry that was found.
struct Found {
    client: &'static str,
    scope: Scope,
    file: &'static str,
    /// What it starts or calls.
    target: String,
    /// What is wrong with it.
    fault: Option<String>,
}

pub(super) fn run(as_json: bool) -> Result<u8> {
    let mut found = Vec::new();
    for client in CLIENTS {
        for scope in [Scope::User, Scope::Project, Scope::Local] {
            found.extend(look(client, scope));
        }
    }
    let has_fault = found.iter().any(|it| it.fault.is_some());
    if as_json {
        let all: Vec<Value> = found
            .iter()
            .map(|it| {
                json!({
                    "client": it.client, "scope": it.scope.as_str(), "file": it.file,
                    "target": it.target, "fault": it.fault,
                })
            })
            .collect();
        output::print_json(&json!({ "clients": all }));
    } else {
        let rows: Vec<Vec<String>> = found
            .iter()
            .map(|it| {
                vec![
                    it.client.to_owned(),
                    it.scope.as_str().to_owned(),
                    it.file.to_owned(),
                    it.fault.clone().unwrap_or_else(|| it.target.clone()),
                ]
            })
            .collect();
        let none = "no client is set up here; `kenning setup CLIENT --write` does it";
        table::print(&["client", "scope", "file", "starts"], &rows, none);
    }
    Ok(if has_fault { 9 } else { 0 })
}

fn look(client: &'static str, scope: Scope) -> Option<Found> {
    let known = place(client, scope)?;
    let dir = Dir::open(&directory(known.base).ok()?).ok()?;
    let text = read_config(&dir, known.file).ok()?;
    let entry = match &known.form {
        Form::Json { keys, .. } => {
            let keys: Vec<&str> = keys.iter().map(String::as_str).chain(["kenning"]).collect();
            jsonc::get(&text, &keys)?
        }
        Form::Toml { table } => {
            let parsed: toml::Table = text.parse().ok()?;
            let mut at = &toml::Value::Table(parsed);
            for key in table.split('.') {
                at = at.get(key)?;
            }
            serde_json::to_value(at).ok()?
        }
    };
    let named = ["command", "url", "httpUrl", "serverUrl"];
    let target = named.iter().find_map(|it| entry.get(*it)?.as_str());
    let fault = match target {
        None => Some("it names neither a program nor a URL".to_owned()),
        Some(command) if entry.get("command").is_some() && !is_found(command) => {
            Some(format!("`{command}` is not found"))
        }
        Some(_) => None,
    };
    Some(Found {
        client,
        scope,
        file: known.file,
        target: target.unwrap_or_default().to_owned(),
        fault,
    })
}

/// Whether a program is there: by its path, or by its name on PATH.
pub(super) fn is_found(command: &str) -> bool {
    if command.contains('/') {
        return Path::new(command).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|it| it.join(command).is_file())
}
