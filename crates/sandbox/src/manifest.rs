//! `tool.toml`: what a tool is called, what it takes, and what it asks for.
//!
//! Reading is strict. A misspelt key would otherwise be a limit or a permission that silently is not
//! there, so every unknown key is an error that names it. Everything is checked once, here: the id of a
//! [`Manifest`] is a safe name, its file is beneath its directory and its limits are within bounds.
//!
//! A manifest *asks* ([`Security`]); what is granted is decided in [`crate::policy`].

use crate::hosts::Host;
use kenning_core::{Error, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt;

/// A manifest that has been read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// In reverse-domain notation, such as `dev.example.echo`.
    pub id: String,
    /// Its display name.
    pub name: String,
    /// In semantic versioning.
    pub version: semver::Version,
    /// The component's file, relative to the manifest's directory.
    pub wasm: String,
    /// What a model reads.
    pub description: String,
    /// The tool's arguments.
    pub arguments: Vec<Argument>,
    /// What it asks for.
    pub security: Security,
}

/// One argument of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its key in the input.
    pub name: String,
    /// Its JSON type.
    pub kind: Kind,
    /// What a model reads.
    pub description: String,
    /// Whether a call without it is refused.
    pub required: bool,
    /// What the tool assumes when it is missing. Shown to models, not filled in.
    pub default: Option<Value>,
}

/// The JSON type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A text.
    String,
    /// A number of any kind.
    Number,
    /// True or false.
    Boolean,
    /// Keys and values.
    Object,
    /// A list.
    Array,
}

/// What a tool asks for, or what it was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Security {
    /// Hosts that it may send HTTP requests to.
    pub net_allow_list: Vec<Host>,
    /// What it may do with files.
    pub fs_access: FsKind,
    /// Environment variables that it may see.
    pub env_allow_list: Vec<String>,
    /// All linear memories of a call together.
    pub max_memory_mb: u32,
    /// Wall time of a call.
    pub max_execution_ms: u64,
    /// Instructions of a call.
    pub max_fuel: u64,
}

/// What a tool may do with files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FsKind {
    /// No files.
    #[default]
    None,
    /// Read in its directory.
    ReadOnly,
    /// Read and write in its directory.
    Sandbox,
}

/// Longest manifest that is read at all.
pub const MANIFEST_BYTES_MAX: usize = 256 * 1024;
const ID_BYTES_MAX: usize = 128;
const TEXT_BYTES_MAX: usize = 16 * 1024;
const ARGUMENTS_MAX: usize = 128;
const LIST_MAX: usize = 256;
/// The most linear memory that a manifest can ask for.
pub const MEMORY_MB_MAX: u32 = 4096;
/// The most memory that all calls of one tool have together, whatever its manifest asks for.
pub const TOOL_MEMORY_MB_MAX: u32 = 1024;
const EXECUTION_MS_MAX: u64 = 3_600_000;
/// The engine counts fuel in signed numbers.
const FUEL_MAX: u64 = i64::MAX as u64;

impl Default for Security {
    fn default() -> Self {
        Self {
            net_allow_list: Vec::new(),
            fs_access: FsKind::None,
            env_allow_list: Vec::new(),
            max_memory_mb: 64,
            max_execution_ms: 5_000,
            max_fuel: 1_000_000,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tool: Tool,
    mcp: Mcp,
    #[serde(default)]
    security: Asked,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    id: String,
    name: String,
    version: String,
    wasm: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mcp {
    description: String,
    #[serde(default)]
    arguments: Vec<RawArgument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawArgument {
    name: String,
    #[serde(rename = "type")]
    kind: Kind,
    description: String,
    #[serde(default)]
    required: bool,
    default: Option<toml::Value>,
}

/// The table `[security]`, in which everything may be missing. The policy's tables have it too.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    net_allow_list: Option<Vec<String>>,
    fs_access: Option<FsKind>,
    env_allow_list: Option<Vec<String>>,
    max_memory_mb: Option<i64>,
    max_execution_ms: Option<i64>,
    max_fuel: Option<i64>,
}

/// The same after checking; missing fields are still missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Checked {
    pub(crate) net_allow_list: Option<Vec<Host>>,
    pub(crate) fs_access: Option<FsKind>,
    pub(crate) env_allow_list: Option<Vec<String>>,
    pub(crate) max_memory_mb: Option<u32>,
    pub(crate) max_execution_ms: Option<u64>,
    pub(crate) max_fuel: Option<u64>,
}

impl Manifest {
    /// Reads a manifest.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > MANIFEST_BYTES_MAX {
            let why = format!("`tool.toml` has {} bytes", text.len());
            return Err(Error::too_large(why).hint(format!("at most {MANIFEST_BYTES_MAX}")));
        }
        let file: File = toml::from_str(text).map_err(|err| unreadable("tool.toml", text, &err))?;
        check_id(&file.tool.id)?;
        check_wasm(&file.tool.wasm)?;
        check_text("tool.name", &file.tool.name)?;
        check_text("mcp.description", &file.mcp.description)?;
        let version = file.tool.version.as_str();
        let version = semver::Version::parse(version).map_err(|err| {
            Error::invalid(format!("`tool.version` is `{}`: {err}", display(version)))
                .hint("write three numbers, such as `1.0.0`")
        })?;
        let asked = file.security.check(Star::Refused)?;
        let or = Security::default();
        Ok(Self {
            id: file.tool.id,
            name: file.tool.name,
            version,
            wasm: file.tool.wasm,
            description: file.mcp.description,
            arguments: arguments(file.mcp.arguments)?,
            security: Security {
                net_allow_list: asked.net_allow_list.unwrap_or(or.net_allow_list),
                fs_access: asked.fs_access.unwrap_or(or.fs_access),
                env_allow_list: asked.env_allow_list.unwrap_or(or.env_allow_list),
                max_memory_mb: asked.max_memory_mb.unwrap_or(or.max_memory_mb),
                max_execution_ms: asked.max_execution_ms.unwrap_or(or.max_execution_ms),
                max_fuel: asked.max_fuel.unwrap_or(or.max_fuel),
            },
        })
    }

    /// The JSON Schema of the input, as MCP lists it.
    pub fn input_schema(&self) -> Value {
        let property = |argument: &Argument| {
            let mut property =
                json!({ "type": argument.kind.name(), "description": argument.description });
            if let Some(default) = &argument.default {
                property["default"] = default.clone();
            }
            (argument.name.clone(), property)
        };
        let properties: Map<String, Value> = self.arguments.iter().map(property).collect();
        let mut schema = json!({ "type": "object", "properties": properties });
        let required = self.arguments.iter().filter(|it| it.required);
        let required: Vec<&str> = required.map(|it| it.name.as_str()).collect();
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    /// Whether an input has the arguments that were declared, each of its type. Arguments that were
    /// not declared are let through: some tools take more than they can list.
    pub fn check_arguments(&self, input: &Value) -> Result<()> {
        let Some(input) = input.as_object() else {
            let why = format!("the input of `{}` is not a JSON object", self.id);
            return Err(Error::invalid(why).hint("write `{\"name\": value}`"));
        };
        for it in &self.arguments {
            let name = &it.name;
            match input.get(name) {
                None if it.required => {
                    let why = format!("argument `{name}` of `{}` is missing", self.id);
                    let hint = format!("give a {}: {}", it.kind.name(), it.description);
                    return Err(Error::invalid(why).hint(hint));
                }
                Some(Value::Null) if !it.required => {}
                Some(value) if !it.kind.holds(value) => {
                    let (wanted, found) = (it.kind.name(), kind_of(value));
                    let why = format!("argument `{name}` of `{}` is of type {found}", self.id);
                    return Err(Error::invalid(why).hint(format!("give a {wanted}")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The bytes that a signature covers; two manifests share them only if they mean the same. Comments,
    /// order and blanks of the file do not matter, and omitted fields have their defaults. They never
    /// change within a version of this format.
    pub fn canonical_bytes(&self) -> Vec<u8> {
        let arguments: Vec<Value> = self
            .arguments
            .iter()
            .map(|argument| {
                json!([
                    argument.name,
                    argument.kind.name(),
                    argument.description,
                    argument.required,
                    argument.default
                ])
            })
            .collect();
        let security = &self.security;
        let hosts: Vec<String> = security
            .net_allow_list
            .iter()
            .map(Host::to_string)
            .collect();
        let fields = json!([
            ["id", self.id],
            ["name", self.name],
            ["version", self.version.to_string()],
            ["wasm", self.wasm],
            ["description", self.description],
            ["arguments", arguments],
            ["net_allow_list", hosts],
            ["fs_access", security.fs_access.to_string()],
            ["env_allow_list", security.env_allow_list],
            ["max_memory_mb", security.max_memory_mb],
            ["max_execution_ms", security.max_execution_ms],
            ["max_fuel", security.max_fuel],
        ]);
        format!("kami-manifest-1\n{fields}\n").into_bytes()
    }
}

/// Whether `*` may stand for every environment variable. A tool has to name what it wants to see.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Star {
    Refused,
    Permitted,
}

impl Asked {
    pub(crate) fn check(self, star: Star) -> Result<Checked> {
        let variables = |list| variables(list, star);
        Ok(Checked {
            net_allow_list: self.net_allow_list.map(hosts).transpose()?,
            fs_access: self.fs_access,
            env_allow_list: self.env_allow_list.map(variables).transpose()?,
            max_memory_mb: check_range("max_memory_mb", self.max_memory_mb, MEMORY_MB_MAX)?,
            max_execution_ms: check_range(
                "max_execution_ms",
                self.max_execution_ms,
                EXECUTION_MS_MAX,
            )?,
            max_fuel: check_range("max_fuel", self.max_fuel, FUEL_MAX)?,
        })
    }
}

impl Kind {
    /// As in JSON Schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
        }
    }

    fn holds(self, value: &Value) -> bool {
        self.name() == kind_of(value)
    }
}

impl fmt::Display for FsKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::ReadOnly => "read-only",
            Self::Sandbox => "sandbox",
        })
    }
}

/// Whether a text is a tool's id: parts of lower-case letters, digits and hyphens, at least two,
/// joined by dots. An id is also the name of a directory, so nothing else may be in it.
pub fn check_id(id: &str) -> Result<()> {
    let is_part = |part: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !part.is_empty() && !part.starts_with('-') && part.bytes().all(plain)
    };
    if id.contains('.') && id.len() <= ID_BYTES_MAX && id.split('.').all(is_part) {
        return Ok(());
    }
    Err(Error::invalid(format!("`tool.id` is `{}`", display(id))).hint(
        "write lower-case letters, digits and hyphens in parts joined by dots, such as `dev.example.my-tool`",
    ))
}

/// Reads a message of the TOML parser for a person: what, and in which line.
pub(crate) fn unreadable(file: &str, text: &str, err: &toml::de::Error) -> Error {
    let line = err.span().and_then(|span| text.get(..span.start));
    let line = line.map_or(1, |before| before.matches('\n').count() + 1);
    let what = err.message().replace('\n', " ");
    Error::invalid(format!("`{file}`, line {line}: {what}"))
}

fn check_wasm(name: &str) -> Result<()> {
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    let is_plain = !name.contains(['\\', ':', '\0']) && !name.chars().any(char::is_control);
    if is_plain && name.len() <= 255 && name.split('/').all(is_part) {
        return Ok(());
    }
    Err(
        Error::invalid(format!("`tool.wasm` is `{}`", display(name)))
            .hint("write a file name relative to `tool.toml`, without `..`"),
    )
}

fn check_text(field: &str, text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::invalid(format!("`{field}` is empty")));
    }
    if text.len() > TEXT_BYTES_MAX {
        let why = format!("`{field}` has {} bytes", text.len());
        return Err(Error::too_large(why).hint(format!("at most {TEXT_BYTES_MAX}")));
    }
    Ok(())
}

fn arguments(raw: Vec<RawArgument>) -> Result<Vec<Argument>> {
    if raw.len() > ARGUMENTS_MAX {
        let why = format!("`mcp.arguments` has {} entries", raw.len());
        return Err(Error::too_large(why).hint(format!("at most {ARGUMENTS_MAX}")));
    }
    let mut seen = BTreeSet::new();
    raw.into_iter()
        .map(|argument| {
            check_text("mcp.arguments.name", &argument.name)?;
            check_text("mcp.arguments.description", &argument.description)?;
            let (name, kind) = (display(&argument.name), argument.kind);
            if !seen.insert(argument.name.clone()) {
                return Err(Error::invalid(format!(
                    "argument `{name}` is declared twice"
                )));
            }
            let default = argument.default.as_ref().map(to_json);
            let fits = |it: &Option<Value>| it.as_ref().is_some_and(|value| kind.holds(value));
            if default.as_ref().is_some_and(|it| !fits(it)) {
                let why = format!("the default of argument `{name}` is not a {}", kind.name());
                return Err(Error::invalid(why));
            }
            Ok(Argument {
                name: argument.name,
                kind: argument.kind,
                description: argument.description,
                required: argument.required,
                default: default.flatten(),
            })
        })
        .collect()
}

/// `None` for what JSON cannot express: dates, NaN and infinity.
fn to_json(value: &toml::Value) -> Option<Value> {
    Some(match value {
        toml::Value::String(it) => json!(it),
        toml::Value::Integer(it) => json!(it),
        toml::Value::Float(it) => Value::Number(serde_json::Number::from_f64(*it)?),
        toml::Value::Boolean(it) => json!(it),
        toml::Value::Datetime(_) => return None,
        toml::Value::Array(it) => Value::Array(it.iter().map(to_json).collect::<Option<_>>()?),
        toml::Value::Table(it) => {
            let fields = it
                .iter()
                .map(|(key, value)| Some((key.clone(), to_json(value)?)));
            Value::Object(fields.collect::<Option<_>>()?)
        }
    })
}

fn hosts(list: Vec<String>) -> Result<Vec<Host>> {
    check_length("net_allow_list", list.len())?;
    list.iter().map(|it| Host::parse(it)).collect()
}

fn variables(list: Vec<String>, star: Star) -> Result<Vec<String>> {
    check_length("env_allow_list", list.len())?;
    for name in &list {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_name = !name.is_empty() && name.len() <= 255 && name.bytes().all(plain);
        if !(is_name || name == "*" && star == Star::Permitted) {
            let why = format!("`env_allow_list` has the entry `{}`", display(name));
            return Err(Error::invalid(why).hint("write the name of a variable, such as `API_KEY`"));
        }
    }
    Ok(list)
}

fn check_length(field: &str, length: usize) -> Result<()> {
    if length <= LIST_MAX {
        return Ok(());
    }
    let why = format!("`{field}` has {length} entries");
    Err(Error::too_large(why).hint(format!("at most {LIST_MAX}")))
}

fn check_range<T>(field: &str, value: Option<i64>, max: T) -> Result<Option<T>>
where
    T: TryFrom<i64> + PartialOrd + From<u8> + fmt::Display,
{
    let Some(value) = value else {
        return Ok(None);
    };
    let fits = T::try_from(value)
        .ok()
        .filter(|number| *number >= T::from(1) && *number <= max);
    let refused = || {
        Error::invalid(format!("`security.{field}` is {value}"))
            .hint(format!("write a number from 1 to {max}"))
    };
    fits.map(Some).ok_or_else(refused)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn display(text: &str) -> String {
    let plain = text.chars().filter(|c| !c.is_control() && *c != '`');
    plain.take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The complete reference of the contract, as it is written there.
    const REFERENCE: &str = r#"
[tool]
id = "dev.example.my-tool"      # Unique ID (reverse-domain notation, REQUIRED)
name = "my-tool"                 # Human-readable name (REQUIRED)
version = "1.0.0"               # Semver version (REQUIRED)
wasm = "my_tool.wasm"           # WASM filename relative to install dir (REQUIRED)

[mcp]
description = "What this tool does"  # Shown in tools/list (REQUIRED)

[[mcp.arguments]]                # Repeatable section for each argument
name = "url"                     # Argument name (REQUIRED)
type = "string"                  # JSON Schema type: string|number|boolean|object|array (REQUIRED)
description = "The URL to fetch" # Shown in inputSchema (REQUIRED)
required = true                  # Whether the argument is required (default: false)

[[mcp.arguments]]
name = "timeout"
type = "number"
description = "Timeout in milliseconds"
required = false

[security]
net_allow_list = ["*.example.com"]  # Network hosts (default: [] = deny all)
fs_access = "none"                  # none | read-only | sandbox (default: none)
env_allow_list = ["API_KEY"]        # Env vars to expose (default: [] = deny all)
max_memory_mb = 64                  # Memory limit (default: 64)
max_execution_ms = 5000             # Timeout (default: 5000)
max_fuel = 1000000                  # Instruction budget (default: 1000000)
"#;

    const SMALL: &str = "[tool]\nid = \"a.b\"\nname = \"b\"\nversion = \"1.0.0\"\nwasm = \"b.wasm\"\n[mcp]\ndescription = \"d\"\n";

    #[test]
    fn the_contracts_reference_is_read() {
        let manifest = Manifest::parse(REFERENCE).unwrap();
        assert_eq!(manifest.id, "dev.example.my-tool");
        assert_eq!(manifest.arguments.len(), 2);
        assert_eq!(
            manifest.security.net_allow_list[0].to_string(),
            "*.example.com"
        );
        assert_eq!(manifest.security.env_allow_list, ["API_KEY"]);
        let schema = manifest.input_schema();
        let expected = json!({
            "type": "object",
            "properties": {
                "url": { "type": "string", "description": "The URL to fetch" },
                "timeout": { "type": "number", "description": "Timeout in milliseconds" },
            },
            "required": ["url"],
        });
        assert_eq!(schema, expected);
    }

    #[test]
    fn what_is_left_out_has_the_contracts_default() {
        let manifest = Manifest::parse(SMALL).unwrap();
        assert_eq!(manifest.security, Security::default());
        assert_eq!(manifest.security.max_fuel, 1_000_000);
        assert!(manifest.input_schema().get("required").is_none());
    }

    #[test]
    fn every_fault_is_named() {
        for (from, to, expected) in [
            ("id = \"a.b\"", "id = \"nodots\"", "`tool.id` is `nodots`"),
            ("id = \"a.b\"", "id = \"A.b\"", "`tool.id`"),
            ("id = \"a.b\"", "id = \"../a.b\"", "`tool.id`"),
            ("id = \"a.b\"", "id = \"a..b\"", "`tool.id`"),
            ("id = \"a.b\"", "id = \"a.-b\"", "`tool.id`"),
            ("id = \"a.b\"\n", "", "missing field `id`"),
            ("1.0.0", "1.0", "`tool.version` is `1.0`"),
            ("1.0.0", "one", "`tool.version`"),
            ("b.wasm", "../b.wasm", "`tool.wasm`"),
            ("b.wasm", "/b.wasm", "`tool.wasm`"),
            ("b.wasm", "a//b.wasm", "`tool.wasm`"),
            ("b.wasm", "", "`tool.wasm`"),
            ("\"d\"", "\"\"", "`mcp.description` is empty"),
            ("\"d\"\n", "\"d\"\nextra = 1\n", "unknown field `extra`"),
            (
                "\"d\"\n",
                "\"d\"\n[security]\nmax_fule = 1\n",
                "unknown field `max_fule`",
            ),
            (
                "\"d\"\n",
                "\"d\"\n[security]\nmax_fuel = 0\n",
                "`security.max_fuel` is 0",
            ),
            (
                "\"d\"\n",
                "\"d\"\n[security]\nmax_fuel = -1\n",
                "`security.max_fuel` is -1",
            ),
            (
                "\"d\"\n",
                "\"d\"\n[security]\nmax_memory_mb = 99999\n",
                "`security.max_memory_mb`",
            ),
            (
                "\"d\"\n",
                "\"d\"\n[security]\nfs_access = \"all\"\n",
                "unknown variant `all`",
            ),
            (
                "\"d\"\n",
                "\"d\"\n[security]\nnet_allow_list = [\"a b\"]\n",
                "`net_allow_list`",
            ),
            (
                "\"d\"\n",
                "\"d\"\n[security]\nenv_allow_list = [\"A=B\"]\n",
                "`env_allow_list`",
            ),
            (
                "\"d\"\n",
                "\"d\"\n[security]\nenv_allow_list = [\"*\"]\n",
                "`env_allow_list`",
            ),
            (
                "\"d\"\n",
                "\"d\"\n[[mcp.arguments]]\nname = \"x\"\ntype = \"text\"\ndescription = \"x\"\n",
                "unknown variant `text`",
            ),
            (
                "\"d\"\n",
                "\"d\"\n[[mcp.arguments]]\nname = \"x\"\ntype = \"number\"\ndescription = \"x\"\ndefault = \"y\"\n",
                "default of argument `x`",
            ),
            (
                "\"d\"\n",
                "\"d\"\n[[mcp.arguments]]\nname = \"x\"\ntype = \"number\"\ndescription = \"x\"\ndefault = nan\n",
                "default of argument `x`",
            ),
            (
                "\"d\"\n",
                "\"d\"\n[[mcp.arguments]]\nname = \"x\"\ntype = \"object\"\ndescription = \"x\"\ndefault = 2026-01-01\n",
                "default of argument `x`",
            ),
            ("[mcp]", "[mcq]", "unknown field `mcq`"),
            ("[mcp]", "[mcp", "line 6"),
        ] {
            let text = SMALL.replace(from, to);
            assert_ne!(text, SMALL);
            let error = Manifest::parse(&text).unwrap_err();
            assert!(error.to_string().contains(expected), "{text}\n{error}");
        }
    }

    #[test]
    fn a_default_is_told_to_models() {
        let argument = "[[mcp.arguments]]\nname = \"x\"\ntype = \"object\"\ndescription = \"x\"\ndefault = { a = [1, 2.5, true, \"s\"] }\n";
        let manifest = Manifest::parse(&format!("{SMALL}{argument}")).unwrap();
        let default = &manifest.input_schema()["properties"]["x"]["default"];
        assert_eq!(*default, json!({ "a": [1, 2.5, true, "s"] }));
    }

    #[test]
    fn arguments_are_checked_before_the_tool_sees_them() {
        let manifest = Manifest::parse(REFERENCE).unwrap();
        for (input, expected) in [
            (json!({ "url": "x" }), ""),
            (json!({ "url": "x", "timeout": 5, "more": [] }), ""),
            (json!({ "url": "x", "timeout": null }), ""),
            (json!({}), "argument `url`"),
            (
                json!({ "url": null }),
                "argument `url` of `dev.example.my-tool` is of type null",
            ),
            (json!({ "url": 5 }), "is of type number (give a string)"),
            (json!({ "url": "x", "timeout": "5" }), "argument `timeout`"),
            (json!([1]), "not a JSON object"),
        ] {
            let found = manifest
                .check_arguments(&input)
                .map_err(|it| it.to_string());
            match expected {
                "" => assert_eq!(found, Ok(()), "{input}"),
                _ => assert!(found.unwrap_err().contains(expected), "{input}"),
            }
        }
    }

    #[test]
    fn canonical_bytes_follow_what_is_said_and_not_how() {
        let one = Manifest::parse(SMALL).unwrap().canonical_bytes();
        let commented = format!("# hello\n{SMALL}\n[security]\nmax_fuel = 1_000_000\n");
        assert_eq!(Manifest::parse(&commented).unwrap().canonical_bytes(), one);
        let other = format!("{SMALL}\n[security]\nmax_fuel = 1_000_001\n");
        assert_ne!(Manifest::parse(&other).unwrap().canonical_bytes(), one);
        assert_eq!(
            String::from_utf8(one).unwrap(),
            "kami-manifest-1\n[[\"id\",\"a.b\"],[\"name\",\"b\"],[\"version\",\"1.0.0\"],[\"wasm\",\"b.wasm\"],\
             [\"description\",\"d\"],[\"arguments\",[]],[\"net_allow_list\",[]],[\"fs_access\",\"none\"],\
             [\"env_allow_list\",[]],[\"max_memory_mb\",64],[\"max_execution_ms\",5000],[\"max_fuel\",1000000]]\n"
        );
    }
}
