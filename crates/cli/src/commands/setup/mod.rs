//! `kenning setup`: configures an MCP client to start this program.

mod check;
mod claude_plugin;
mod clients;
mod hooks;
mod jsonc;
mod plugin;

pub(crate) use clients::CLIENTS;
pub(crate) const SCOPES: [&str; 3] = Scope::NAMES;

use crate::tool_args::quoted;
use crate::{Settings, output};
use clap::ArgMatches;
use clap::parser::ValueSource;
use clients::{Base, Form, Scope, client, directory, http_entry, http_table};
use kenning_core::{Code, Error, Result};
use kenning_vault::Dir;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Larger than any real configuration.
const CONFIG_BYTES_MAX: u64 = 4 * 1024 * 1024;

pub(crate) fn run(settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    if matches.get_flag("check") {
        return check::run(settings.json);
    }
    let name = matches
        .get_one::<String>("client")
        .map_or("", String::as_str);
    let scope = matches.get_one::<String>("scope");
    let scope = scope.and_then(|it| Scope::parse(it));
    let client = client(name, scope)?;
    let mut entry = Entry::new(settings, matches)?;
    if scope == Some(Scope::Project) {
        entry.leave_out_machine(matches)?;
    }
    let url = matches.get_one::<String>("url");
    if let Some(url) = url {
        check_url(url, &entry, matches)?;
    }
    let write = matches.get_flag("write");
    let owners: [(&str, &[&str]); 2] = [
        ("hooks", &["claude-code"]),
        ("plugin", &["claude-code", "openclaw"]),
    ];
    for (flag, owners) in owners {
        if matches.get_flag(flag) && !owners.contains(&name) {
            return Err(
                Error::invalid(format!("`--{flag}` does not apply to {name}"))
                    .hint(format!("it is for {}", owners.join(" and "))),
            );
        }
    }
    if matches.get_flag("hooks") {
        return hooks::run(&entry, write);
    }
    if matches.get_flag("plugin") && name == "claude-code" {
        return claude_plugin::run(settings, &entry, write);
    }
    if matches.get_flag("plugin") {
        return plugin::run(&entry, write);
    }
    if settings.vault.is_none() && url.is_none() && scope != Some(Scope::Project) {
        output::say(
            "no vault is named, so the tools that read and write notes will ask for one; \
             add yours with `kenning --vault DIR setup`",
        );
    }
    if settings.selection.toolsets.is_empty() && settings.selection.tools.is_empty() {
        output::say(
            "the client is shown about a dozen tools, which reach all others; \
             `--toolsets contracts` shows the 48 of the contracts, `--toolsets all` every tool",
        );
    }
    if !write {
        let place = match client.base {
            Base::Project => client.file.to_owned(),
            Base::Home => format!("~/{}", client.file),
        };
        output::say(&format!(
            "put this into {place}, or say `kenning setup {name} --write`:\n"
        ));
        output::print(&match (&client.form, url) {
            (Form::Json { keys, .. }, Some(url)) => {
                format!("{:#}", nested(keys, http_entry(name, url)))
            }
            (Form::Json { keys, with_type }, None) => {
                format!("{:#}", nested(keys, entry.to_json(*with_type)))
            }
            (Form::Toml { table }, Some(url)) => http_table(table, url),
            (Form::Toml { table }, None) => entry.to_toml(table),
        });
        return Ok(0);
    }
    let dir = Dir::open(&directory(client.base)?)?;
    let old = read_config(&dir, client.file)?;
    let new = match (&client.form, url) {
        (Form::Json { keys, .. }, Some(url)) => {
            let keys: Vec<&str> = keys.iter().map(String::as_str).chain(["kenning"]).collect();
            jsonc::set(&old, &keys, &http_entry(name, url))
                .ok_or_else(|| left_alone(client.file))?
        }
        (Form::Json { keys, with_type }, None) => {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            merged(&old, &keys, &entry, *with_type).ok_or_else(|| left_alone(client.file))?
        }
        (Form::Toml { table }, Some(url)) => appended(&old, &http_table(table, url), table)?,
        (Form::Toml { table }, None) => appended(&old, &entry.to_toml(table), table)?,
    };
    dir.write(client.file, new.as_bytes())?;
    output::say(&format!("wrote `{}`; restart the client", client.file));
    if url.is_some() {
        let variable = clients::TOKEN_VARIABLE;
        output::say(&format!(
            "the token is not in it: set {variable} where the client starts; `kenning token create` makes one"
        ));
    } else if !check::is_found(&entry.command) {
        output::say("`kenning` is not on PATH here: install it, or the client cannot start it");
    }
    Ok(0)
}

/// An option that names a place of this machine and was typed: what the environment names stays there.
fn typed_place(matches: &ArgMatches) -> Option<&'static str> {
    const PLACES: [&str; 8] = [
        "vault",
        "data",
        "data-dir",
        "omi-path",
        "project",
        "allow-root",
        "database",
        "database-ca",
    ];
    let is_typed = |it: &&str| matches.value_source(it) == Some(ValueSource::CommandLine);
    PLACES.into_iter().find(is_typed)
}

/// A server that runs already has its own settings: options for a program would be lost.
fn check_url(url: &str, entry: &Entry, matches: &ArgMatches) -> Result<()> {
    let is_http = ["http://", "https://"].iter().any(|it| url.starts_with(it));
    if !is_http {
        return Err(Error::invalid(format!("`--url`: `{url}` is not a URL"))
            .hint("for example https://kenning.example/mcp"));
    }
    let given = entry.flags.iter().find(|it| it.starts_with("--")).cloned();
    let given = given.or_else(|| Some(format!("--{}", typed_place(matches)?)));
    if let Some(flag) = given {
        return Err(
            Error::invalid(format!("`{flag}` has no effect beside `--url`"))
                .hint("give it to the server that the URL leads to"),
        );
    }
    Ok(())
}

fn home() -> Result<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).ok_or_else(|| {
        Error::invalid("HOME is not set").hint("run it without `--write` and copy the text")
    })
}

/// A client's configuration; nothing if there is none.
fn read_config(dir: &Dir, file: &str) -> Result<String> {
    match dir.read(file, CONFIG_BYTES_MAX) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| left_alone(file)),
        Err(error) if error.code == Code::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

fn left_alone(file: &str) -> Error {
    Error::conflict(format!(
        "`{file}` is not a JSON object and was left as it is"
    ))
    .hint("run it without `--write` and copy the text")
}

/// How to start this program.
struct Entry {
    command: String,
    /// What follows the subcommand.
    flags: Vec<String>,
    env: Map<String, Value>,
}

impl Entry {
    fn new(settings: &Settings, matches: &ArgMatches) -> Result<Self> {
        let command = std::env::current_exe().map_err(|cause| {
            Error::internal("the path of this program is unknown").because(cause)
        })?;
        let mut env = Map::new();
        // Only what was given: a client started elsewhere finds the defaults by itself.
        let mut name = |name: &str, path: Option<&PathBuf>| {
            if let Some(path) = path {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                env.insert(name.to_owned(), path.display().to_string().into());
            }
        };
        name("VAULT_PATH", settings.vault.as_ref());
        let is_named = |flag: &str| is_named(matches, flag);
        // One directory for everything sets both.
        let is_one = is_named("data-dir");
        let omi = settings.omi.as_ref();
        let omi = omi.filter(|_| is_one || is_named("omi-path"));
        name(crate::env_vars::OMI_BASE_PATH, omi);
        let data = (is_one || is_named("data")).then_some(&settings.data);
        name(crate::env_vars::DATA, data);
        let ca = settings.database_ca.as_ref();
        name(
            crate::env_vars::DATABASE_CA,
            ca.filter(|_| is_named("database-ca")),
        );
        if let Some(database) = settings.database.as_ref().filter(|_| is_named("database")) {
            // It may contain a password, which must not appear in a list of processes.
            let url = database.0.as_str().into();
            env.insert(crate::env_vars::DATABASE_URL.to_owned(), url);
        }
        Ok(Self {
            command: command.display().to_string(),
            flags: flags(settings, matches),
            env,
        })
    }

    /// For a file that others share: the program by its name, and no path of this machine. What this person's
    /// environment names is theirs and stays there; what was said on the command line is not left out in silence.
    fn leave_out_machine(&mut self, matches: &ArgMatches) -> Result<()> {
        if let Some(flag) = typed_place(matches) {
            return Err(Error::invalid(format!(
                "`--scope project`: `--{flag}` belongs to this machine, and the file is shared"
            ))
            .hint("leave it out, or use `--scope local` or `--scope user`"));
        }
        self.env.clear();
        self.flags.retain(|it| !it.starts_with('/'));
        let lonely = |it: &String| it == "--project" || it == "--allow-root";
        self.flags.retain(|it| !lonely(it));
        "kenning".clone_into(&mut self.command);
        Ok(())
    }

    /// A shell command: the program, the command and the directories.
    fn shell(&self, arguments: &[&str]) -> String {
        let mut line = quoted(&self.command);
        let flags = self.flags.iter().map(String::as_str);
        for argument in arguments.iter().copied().chain(flags) {
            line += &format!(" {}", quoted(argument));
        }
        for (variable, flag) in [
            (crate::env_vars::DATA, "--data"),
            (crate::env_vars::OMI_BASE_PATH, "--omi-path"),
            (crate::env_vars::DATABASE_CA, "--database-ca"),
        ] {
            if let Some(value) = self.env.get(variable).and_then(Value::as_str) {
                line += &format!(" {flag} {}", quoted(value));
            }
        }
        let database = self.env.get(crate::env_vars::DATABASE_URL);
        if let Some(url) = database.and_then(Value::as_str) {
            line = format!("{}={} {line}", crate::env_vars::DATABASE_URL, quoted(url));
        }
        line
    }

    fn arguments(&self) -> Vec<String> {
        let flags = self.flags.iter().cloned();
        std::iter::once("mcp".to_owned()).chain(flags).collect()
    }

    fn to_json(&self, with_type: bool) -> Value {
        let mut entry = Map::new();
        if with_type {
            entry.insert("type".to_owned(), "stdio".into());
        }
        entry.insert("command".to_owned(), self.command.as_str().into());
        entry.insert("args".to_owned(), self.arguments().into());
        if !self.env.is_empty() {
            entry.insert("env".to_owned(), Value::Object(self.env.clone()));
        }
        Value::Object(entry)
    }

    fn to_toml(&self, table: &str) -> String {
        // A JSON string is a TOML basic string.
        let text = |text: &str| Value::from(text).to_string();
        let mut out = format!(
            "[{table}]\ncommand = {}\nargs = {}\n",
            text(&self.command),
            Value::from(self.arguments())
        );
        if !self.env.is_empty() {
            let pairs = self
                .env
                .iter()
                .map(|(name, value)| format!("{name} = {value}"));
            out += &format!("env = {{ {} }}\n", pairs.collect::<Vec<_>>().join(", "));
        }
        out
    }
}

/// `{"a": {"b": {"kenning": entry}}}`
fn nested(keys: &[String], entry: Value) -> Value {
    let inner = json!({ "kenning": entry });
    keys.iter()
        .rev()
        .fold(inner, |inner, key| json!({ (key.as_str()): inner }))
}

/// Whether an option was given, on the command line or by a variable.
fn is_named(matches: &ArgMatches, flag: &str) -> bool {
    matches!(
        matches.value_source(flag),
        Some(ValueSource::CommandLine | ValueSource::EnvVariable)
    )
}

/// The options that the client must pass to get the same settings.
fn flags(settings: &Settings, matches: &ArgMatches) -> Vec<String> {
    let is_named = |flag: &str| is_named(matches, flag);
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.display().to_string()
    };
    let mut flags = Vec::new();
    let mut push = |flag: &str, value: String| flags.extend([format!("--{flag}"), value]);
    if is_named("space") {
        push("space", settings.space.to_string());
    }
    if let Some(project) = settings.project.as_ref().filter(|_| is_named("project")) {
        push("project", absolute(project));
    }
    let lists = ["toolsets", "tools", "exclude-tools", "allow-root"];
    for flag in lists.into_iter().filter(|flag| is_named(flag)) {
        let values = matches.get_many::<String>(flag).into_iter().flatten();
        let values = values.map(|value| match flag {
            "allow-root" => absolute(Path::new(value)),
            _ => value.clone(),
        });
        push(flag, values.collect::<Vec<_>>().join(","));
    }
    for flag in ["read-only", "safe-names"] {
        if matches.get_flag(flag) {
            flags.push(format!("--{flag}"));
        }
    }
    flags
}

/// The old configuration with our entry in it and everything else unchanged, comments too. Parts of
/// an existing entry that are not set anew stay.
fn merged(old: &str, keys: &[&str], entry: &Entry, with_type: bool) -> Option<String> {
    let keys: Vec<&str> = keys.iter().copied().chain(["kenning"]).collect();
    let mut new = entry.to_json(with_type);
    let known = jsonc::get(old, &keys);
    if known.as_ref().is_some_and(|it| !it.is_object()) {
        return None;
    }
    if let Some(Value::Object(mut known)) = known {
        // An entry with a URL becomes one with a program.
        if known.get("type").is_some_and(|it| it != "stdio") || known.contains_key("url") {
            known.retain(|field, _| !matches!(field.as_str(), "type" | "url" | "headers"));
        }
        let mut env = match known.remove("env") {
            Some(Value::Object(env)) => env,
            _ => Map::new(),
        };
        env.extend(entry.env.clone());
        let args = known.get("args").and_then(Value::as_array);
        let starts_us = args.is_some_and(|it| it.first() == Some(&json!("mcp")));
        let fields = new.as_object_mut()?;
        if entry.flags.is_empty() && starts_us {
            fields.remove("args");
        }
        known.append(fields);
        if !env.is_empty() {
            known.insert("env".to_owned(), env.into());
        }
        new = Value::Object(known);
    }
    jsonc::set(old, &keys, &new)
}

fn appended(old: &str, new: &str, table: &str) -> Result<String> {
    if old
        .lines()
        .any(|line| line.trim().starts_with(&format!("[{table}")))
    {
        return Err(Error::conflict(format!("the table `{table}` exists"))
            .hint("remove it first, or edit it by hand"));
    }
    let gap = if old.is_empty() || old.ends_with("\n\n") {
        ""
    } else {
        "\n"
    };
    let end = if old.is_empty() || old.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let text = format!("{old}{end}{gap}{new}");
    // Nothing is written that a TOML reader would refuse.
    if text.parse::<toml::Table>().is_err() {
        let message = format!("`{table}` cannot be added to the existing file");
        return Err(Error::conflict(message).hint("run it without `--write` and add it by hand"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(flags: &[&str], env: &[(&str, &str)]) -> Entry {
        let env = env.iter();
        Entry {
            command: "k".to_owned(),
            flags: flags.iter().map(ToString::to_string).collect(),
            env: env
                .map(|(name, value)| ((*name).to_owned(), (*value).into()))
                .collect(),
        }
    }

    #[test]
    fn other_servers_stay_as_they_are() {
        let old = r#"{"mcp": {"servers": {"other": {"command": "x"}}, "a": 1}, "b": [2]}"#;
        let new = merged(old, &["mcp", "servers"], &entry(&[], &[]), false).unwrap();
        let new: Value = serde_json::from_str(&new).unwrap();
        assert_eq!(
            new,
            json!({
                "mcp": { "servers": { "other": { "command": "x" }, "kenning": { "command": "k", "args": ["mcp"] } }, "a": 1 },
                "b": [2],
            })
        );
        for old in ["[]", r#"{"mcpServers": 5}"#] {
            assert!(merged(old, &["mcpServers"], &entry(&[], &[]), false).is_none());
        }
    }

    #[test]
    fn an_entry_of_another_kind_is_replaced_and_what_is_ambiguous_refused() {
        let old =
            r#"{"mcpServers": {"kenning": {"type": "http", "url": "http://127.0.0.1:8351/mcp"}}}"#;
        let new = merged(old, &["mcpServers"], &entry(&[], &[]), true).unwrap();
        let read = jsonc::get(&new, &["mcpServers", "kenning"]).unwrap();
        assert_eq!(
            read,
            json!({ "type": "stdio", "command": "k", "args": ["mcp"] })
        );
        for old in [
            r#"{"mcpServers": {"kenning": "x"}}"#,
            r#"{"mcpServers": {"a": 1}, "mcpServers": {"b": 2}}"#,
        ] {
            assert!(
                merged(old, &["mcpServers"], &entry(&[], &[]), false).is_none(),
                "{old}"
            );
        }
    }

    #[test]
    fn what_was_set_before_and_is_not_said_anew_stays() {
        let first = entry(&["--space", "work"], &[("VAULT_PATH", "/v")]);
        let first = merged("// mine\n{}\n", &["mcpServers"], &first, false).unwrap();
        assert!(first.starts_with("// mine\n{"), "{first}");
        let again = merged(
            &first,
            &["mcpServers"],
            &entry(&[], &[("KENNING_DATA", "/d")]),
            false,
        )
        .unwrap();
        let read = jsonc::get(&again, &["mcpServers", "kenning"]).unwrap();
        assert_eq!(read["args"], json!(["mcp", "--space", "work"]));
        assert_eq!(
            read["env"],
            json!({ "VAULT_PATH": "/v", "KENNING_DATA": "/d" })
        );
        let other = merged(
            &again,
            &["mcpServers"],
            &entry(&["--read-only"], &[]),
            false,
        )
        .unwrap();
        let read = jsonc::get(&other, &["mcpServers", "kenning"]).unwrap();
        assert_eq!(read["args"], json!(["mcp", "--read-only"]));
        assert_eq!(read["env"]["VAULT_PATH"], "/v");
    }

    #[test]
    fn a_table_is_added_once() {
        let new = appended("a = 1", "[t.k]\nb = 2\n", "t.k").unwrap();
        assert_eq!(new, "a = 1\n\n[t.k]\nb = 2\n");
        assert!(appended(&new, "[t.k]\n", "t.k").is_err());
        for old in ["t = { a = 1 }\n", "t = 5\n", "t.k.b = 1\n", "broken ["] {
            assert!(appended(old, "[t.k]\nb = 2\n", "t.k").is_err(), "{old}");
        }
    }
}
