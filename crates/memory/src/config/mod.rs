//! `config.yaml`: the settings.
//!
//! [`KEYS`] lists them all. An unknown key is refused with the nearest known one; a wrong value is
//! refused with key, value and what is expected; and a value that would have no effect is refused
//! with the reason, so that nothing in the file is silently ignored. A missing or empty file means
//! the defaults.
//!
//! The caller reads the file and passes the environment to [`Text::expand`], where a value is used.

mod edit;
mod keys;
mod model;
mod retention;
mod text;

pub use keys::{Form, KEYS, Key};
pub use model::LanguageModel;
pub use retention::Retention;
pub use text::Text;

use crate::topology::Thresholds;
use kenning_core::{Error, Result};
use kenning_text::yaml::{self, Limits};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The name of the file.
pub const FILE: &str = "config.yaml";

/// The largest file that is read.
pub const BYTES_MAX: u64 = 1 << 20;

const HOUR_MS: u64 = 60 * 60 * 1_000;

/// What the file sets, by key.
type Values = BTreeMap<&'static str, Value>;

/// The settings in effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where vectors come from.
    pub embedding: Embedding,
    /// The language model.
    pub model: LanguageModel,
    /// How long NOW.md may become.
    pub max_now_tokens: usize,
    /// The time constant of recency, in days.
    pub recency_days: f64,
    /// Where backups go.
    pub vault: Vault,
    /// Whether files are compared with their checksums when a session starts.
    pub integrity_check_on_start: bool,
    /// Whether foundational memories wait for the signature of a second key.
    pub needs_second_key: bool,
    /// Thresholds for memories that became important too quickly.
    pub thresholds: Thresholds,
    /// Receivers of events.
    pub webhooks: Vec<Webhook>,
    /// Whether events of recalls hold the text of the query, and not only its hash.
    pub logs_queries: bool,
    /// Which reads are recorded as events.
    pub reads: Reads,
    /// How long a forgotten memory can be restored, in milliseconds.
    pub grace_ms: u64,
    /// How long memories are kept.
    pub retention: Retention,
    /// Whether the code of the project is scanned without being asked.
    pub reads_project: bool,
    /// Repositories that an agent may register by scanning them.
    pub repositories: Vec<String>,
}

/// Which reads are recorded as events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// Every one.
    #[default]
    All,
    /// One in [`READS_SAMPLED`].
    Sampled,
    /// No read is recorded.
    Off,
}

/// One of this many reads is recorded where they are sampled.
pub const READS_SAMPLED: u64 = 16;

/// Where vectors come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Embedding {
    /// The provider.
    pub provider: Provider,
    /// Which model; for [`Provider::Local`] the folder.
    pub model: Option<Text>,
    /// The dimensions of a vector.
    pub dimensions: Option<usize>,
    /// The URL of the service, if not the provider's own.
    pub endpoint: Option<Text>,
    /// The key for it.
    pub api_key: Option<Text>,
}

/// A provider of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// The table inside the program: no network, no key.
    Builtin,
    /// A transformer in a folder.
    Local,
    /// NVIDIA NIM.
    Nim,
    /// A model of an Ollama server.
    Ollama,
    /// OpenAI, or a compatible service.
    OpenAi,
}

impl Provider {
    /// The name in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Local => "local",
            Self::Nim => "nim",
            Self::Ollama => "ollama",
            Self::OpenAi => "openai",
        }
    }

    /// The model and its dimensions when the file names none.
    pub const fn default_model(self) -> Option<(&'static str, usize)> {
        match self {
            Self::Builtin | Self::Local => None,
            Self::Nim => Some(("baai/bge-m3", 1_024)),
            Self::Ollama => Some(("nomic-embed-text", 768)),
            Self::OpenAi => Some(("text-embedding-3-small", 1_536)),
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        let all = [
            Self::Builtin,
            Self::Local,
            Self::Nim,
            Self::Ollama,
            Self::OpenAi,
        ];
        all.into_iter().find(|it| it.as_str() == name)
    }
}

/// How backups are made and kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vault {
    /// Whether they are made.
    pub enabled: bool,
    /// Where they go.
    pub place: BackupPlace,
    /// How long they are kept.
    pub retention_days: u32,
}

/// Where backups go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupPlace {
    /// A folder.
    Local,
    /// A bucket with the S3 API.
    Bucket(Box<Bucket>),
}

/// A bucket. [`missing`] reports what is not set when it is needed, so that keys can be set one by
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The URL of the service.
    pub endpoint: Option<Text>,
    /// Its name.
    pub bucket: Option<Text>,
    /// Its region.
    pub region: Option<Text>,
    /// The name of the key.
    pub access_key_id: Option<Text>,
    /// The key.
    pub secret_access_key: Option<Text>,
}

/// A receiver of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Its URL.
    pub url: Text,
    /// Headers that are sent. Values are secrets: they often contain a token.
    pub headers: Vec<(String, Text)>,
    /// The kinds of events; all if empty.
    pub events: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        let none = Values::new();
        // Every default is in the table, and a test reads each of them.
        Self::from_values(&none).unwrap_or_else(|_| unreachable!("the defaults are valid"))
    }
}

impl Config {
    /// Reads the file.
    pub fn parse(text: &str) -> Result<Self> {
        Self::from_values(&values(text)?)
    }

    fn from_values(values: &Values) -> Result<Self> {
        let file = Reader(values);
        file.refuse_what_has_no_effect()?;
        Ok(Self {
            embedding: file.embedding(),
            model: file.model(),
            max_now_tokens: file.size("storage.max_now_tokens").unwrap_or(1),
            recency_days: file.number("storage.recency_half_life_days"),
            vault: file.vault(),
            integrity_check_on_start: file.flag("security.integrity_check_on_start"),
            needs_second_key: file.flag("security.enable_consensus"),
            thresholds: Thresholds {
                core_edges_min: file.size("security.sudden_core_edges").unwrap_or(0),
                core_access_min: file.count("security.sudden_core_accesses"),
                burst_edges_min: file.size("security.burst_edges").unwrap_or(0),
                burst_window_ms: file.count("security.burst_seconds") * 1_000,
            },
            webhooks: webhooks(&file.value("events.webhooks"))?,
            logs_queries: file.value("events.queries") == "text",
            reads: match file.value("events.reads").as_str() {
                Some("sampled") => Reads::Sampled,
                Some("off") => Reads::Off,
                _ => Reads::All,
            },
            grace_ms: file.count("forget.grace_hours") * HOUR_MS,
            retention: file.retention(),
            reads_project: file.value("code.project") != "off",
            repositories: {
                let allow = file.value("repositories.allow");
                let all = allow.as_str().unwrap_or_default().split(',');
                let all = all.map(str::trim).filter(|it| !it.is_empty());
                all.map(ToOwned::to_owned).collect()
            },
        })
    }
}

/// The error for a key that is needed and not set.
pub fn missing(key: &str) -> Error {
    Error::invalid(format!("config.yaml: `{key}` is not set"))
        .hint(format!("`kenning omi config set {key} VALUE`"))
}

/// The value in effect for a key. Secrets are masked.
pub fn get(text: &str, key: &str) -> Result<Value> {
    let key = keys::find(key)?;
    let values = values(text)?;
    let value = Reader(&values).value(key.name);
    Ok(shown(key, value))
}

/// Every key with its value in effect, as YAML. Secrets are masked; defaults are marked.
pub fn show(text: &str) -> Result<String> {
    let values = values(text)?;
    let mut out = String::new();
    let mut section = "";
    for key in KEYS {
        let value = shown(key, Reader(&values).value(key.name));
        if value.is_null() {
            continue;
        }
        if keys::section_of(key) != section {
            section = keys::section_of(key);
            // Writing to a `String` cannot fail.
            let _ = writeln!(out, "{section}:");
        }
        let mark = if values.contains_key(key.name) {
            ""
        } else {
            "  # default"
        };
        let _ = writeln!(out, "  {}: {}{mark}", keys::last_of(key), written(&value));
    }
    Ok(out)
}

/// The file with one key changed, and everything else as it was. The value is read as YAML, so `true`
/// is a flag and `90` a number.
pub fn set(text: &str, key: &str, value: &str) -> Result<String> {
    let key = keys::find(key)?;
    let mut expected = values(text)?;
    let value = value_from(key, value);
    if value.is_null() {
        expected.remove(key.name);
    } else {
        key.check(&value)?;
        expected.insert(key.name, value.clone());
    }
    Config::from_values(&expected)?;
    let (section, name) = (keys::section_of(key), keys::last_of(key));
    let changed = edit::set(text, section, name, &written(&value));
    if values(&changed).ok() != Some(expected) {
        return Err(Error::conflict(format!(
            "config.yaml is written in a form in which `{}` cannot be changed without changing other lines",
            key.name
        ))
        .hint("change it in an editor; the file was left as it is"));
    }
    Ok(changed)
}

/// A typed value, converted to the form of the key.
fn value_from(key: &Key, typed: &str) -> Value {
    let typed = typed.trim();
    let parsed = read_yaml(typed).unwrap_or_else(|_| Value::from(typed));
    let is_yaml = parsed.is_null() || typed.starts_with(['"', '\'']);
    match key.form {
        // People do not quote names and keys: `3` is text here, and so is all of `a #b`.
        Form::Text | Form::Choice(_) if !is_yaml => Value::from(typed),
        _ => parsed,
    }
}

/// A value on one line of YAML.
fn written(value: &Value) -> String {
    let Value::String(text) = value else {
        return value.to_string();
    };
    let plain = !text.contains(['\n', '\r', '#'])
        && read_yaml(&format!("key: {text}"))
            .is_ok_and(|it| it.get("key") == Some(&Value::from(text.as_str())));
    if plain {
        text.clone()
    } else {
        value.to_string()
    }
}

fn shown(key: &Key, value: Value) -> Value {
    match (key.form, value) {
        (Form::Webhooks, Value::Array(hooks)) => hooks.into_iter().map(without_headers).collect(),
        (_, Value::String(text)) if key.secret => Value::from(text::masked(&text)),
        (_, value) => value,
    }
}

fn without_headers(mut hook: Value) -> Value {
    if let Some(headers) = hook.get_mut("headers").and_then(Value::as_object_mut) {
        for value in headers.values_mut() {
            let shown = text::masked(value.as_str().unwrap_or_default());
            *value = Value::from(shown);
        }
    }
    hook
}

/// What the file sets, every key and every value checked.
fn values(text: &str) -> Result<Values> {
    let mut found = Values::new();
    let sections = match read_yaml(text)? {
        Value::Null => Map::new(),
        Value::Object(sections) => sections,
        _ => {
            return Err(Error::invalid("config.yaml is not a mapping")
                .hint("write sections such as `storage:`"));
        }
    };
    for (section, content) in sections {
        if !KEYS.iter().any(|it| keys::section_of(it) == section) {
            // An unknown section: this gives the hint.
            keys::find(&section)?;
        }
        let content = match content {
            Value::Null => continue,
            Value::Object(content) => content,
            _ => {
                return Err(
                    Error::invalid(format!("config.yaml: `{section}` is not a mapping"))
                        .hint("write its keys beneath it, indented by two spaces"),
                );
            }
        };
        for (name, value) in content {
            let key = keys::find(&format!("{section}.{name}"))?;
            if !value.is_null() {
                key.check(&value)?;
                found.insert(key.name, value);
            }
        }
    }
    Ok(found)
}

const LIMITS: Limits = Limits {
    bytes_max: 1024 * 1024,
    ..Limits::FIELDS
};

/// Reads YAML. The error gives the place but not the content: it may be a secret.
fn read_yaml(text: &str) -> Result<Value> {
    yaml::read(text, &LIMITS).map_err(|error| match error {
        yaml::Error::TooLarge(bytes) => Error::too_large(format!("config.yaml has {bytes} bytes"))
            .hint(format!("the limit is {}", LIMITS.bytes_max)),
        yaml::Error::Syntax { line, column, .. } => {
            let place = match line {
                0 => String::new(),
                line => format!(" in line {line}, column {column}"),
            };
            Error::invalid(format!("config.yaml is not valid YAML{place}"))
                .hint("indent with spaces, and name each key once")
        }
    })
}

/// Reads values that were checked, or their defaults.
struct Reader<'a>(&'a Values);

impl Reader<'_> {
    fn value(&self, name: &str) -> Value {
        if let Some(value) = self.0.get(name) {
            return value.clone();
        }
        let default = KEYS
            .iter()
            .find(|it| it.name == name)
            .map_or("", |it| it.default);
        serde_json::from_str(default).unwrap_or_else(|_| match default {
            "" => Value::Null,
            text => Value::from(text),
        })
    }

    fn flag(&self, name: &str) -> bool {
        self.value(name) == Value::Bool(true)
    }

    fn number(&self, name: &str) -> f64 {
        self.value(name).as_f64().unwrap_or_default()
    }

    fn count(&self, name: &str) -> u64 {
        self.value(name).as_u64().unwrap_or_default()
    }

    fn size(&self, name: &str) -> Option<usize> {
        usize::try_from(self.value(name).as_u64()?).ok()
    }

    fn text(&self, name: &str) -> Option<Text> {
        let secret = KEYS.iter().any(|key| key.name == name && key.secret);
        Some(Text::new(name, self.value(name).as_str()?, secret))
    }

    fn embedding(&self) -> Embedding {
        let provider = self.value("embedding.provider");
        let provider = provider.as_str().and_then(Provider::from_name);
        Embedding {
            provider: provider.unwrap_or(Provider::Builtin),
            model: self.text("embedding.model"),
            dimensions: self.size("embedding.dimensions"),
            endpoint: self.text("embedding.endpoint"),
            api_key: self.text("embedding.api_key"),
        }
    }

    fn vault(&self) -> Vault {
        let place = if self.value("vault.provider") == "r2" {
            BackupPlace::Bucket(Box::new(Bucket {
                endpoint: self.text("vault.endpoint"),
                bucket: self.text("vault.bucket"),
                region: self.text("vault.region"),
                access_key_id: self.text("vault.access_key_id"),
                secret_access_key: self.text("vault.secret_access_key"),
            }))
        } else {
            BackupPlace::Local
        };
        Vault {
            enabled: self.flag("vault.enabled"),
            place,
            retention_days: u32::try_from(self.count("vault.retention_days")).unwrap_or(u32::MAX),
        }
    }

    fn refuse_what_has_no_effect(&self) -> Result<()> {
        let provider = self.value("embedding.provider");
        let unused: &[&str] = match provider.as_str() {
            Some("builtin") => &["model", "dimensions", "endpoint", "api_key"],
            Some("local") => &["endpoint", "api_key"],
            _ => &[],
        };
        self.refuse("embedding", unused, "nim, ollama or openai")?;
        if self.value("model.provider") == "none" {
            let unused = ["endpoint", "name", "api_key"];
            self.refuse("model", &unused, "openai, anthropic or ollama")?;
        }
        let bucket = [
            "endpoint",
            "bucket",
            "region",
            "access_key_id",
            "secret_access_key",
        ];
        let unused: &[&str] = if self.value("vault.provider") == "r2" {
            &[]
        } else {
            &bucket
        };
        self.refuse("vault", unused, "r2")
    }

    fn refuse(&self, section: &str, unused: &[&str], wanted: &str) -> Result<()> {
        let mut names = unused.iter().map(|it| format!("{section}.{it}"));
        let Some(name) = names.find(|it| self.0.contains_key(it.as_str())) else {
            return Ok(());
        };
        let provider = self.value(&format!("{section}.provider"));
        let provider = provider.as_str().unwrap_or_default();
        Err(Error::invalid(format!(
            "config.yaml: `{name}` has no effect while `{section}.provider` is `{provider}`"
        ))
        .hint(format!(
            "set `{section}.provider` to {wanted} first, or leave `{name}` out"
        )))
    }
}

fn webhooks(value: &Value) -> Result<Vec<Webhook>> {
    let hooks = value.as_array().map_or(&[][..], Vec::as_slice);
    let read = |(at, hook): (usize, &Value)| webhook(&format!("events.webhooks[{at}]"), hook);
    hooks.iter().enumerate().map(read).collect()
}

fn webhook(key: &str, hook: &Value) -> Result<Webhook> {
    let wrong = |field: &str, expected: &str| {
        Error::invalid(format!("config.yaml: `{key}{field}` is not {expected}"))
            .hint("a webhook is a URL, or a mapping with `url`, `headers` and `events`")
    };
    if let Some(url) = hook.as_str() {
        return Ok(Webhook {
            url: Text::new(key, url, false),
            headers: Vec::new(),
            events: Vec::new(),
        });
    }
    let fields = hook.as_object().ok_or_else(|| wrong("", "a URL"))?;
    if let Some(other) = fields
        .keys()
        .find(|it| !["url", "headers", "events"].contains(&it.as_str()))
    {
        return Err(wrong(&format!(".{other}"), "known"));
    }
    let url = fields.get("url").and_then(Value::as_str);
    let url = url.ok_or_else(|| wrong(".url", "a URL"))?;
    let mut headers = Vec::new();
    if let Some(given) = fields.get("headers") {
        let given = given
            .as_object()
            .ok_or_else(|| wrong(".headers", "a mapping"))?;
        for (name, value) in given {
            let field = format!(".headers.{name}");
            let value = value.as_str().ok_or_else(|| wrong(&field, "a string"))?;
            headers.push((
                name.clone(),
                Text::new(&format!("{key}{field}"), value, true),
            ));
        }
    }
    let events = fields.get("events").map_or(Some(Vec::new()), |given| {
        let names = given
            .as_array()?
            .iter()
            .map(|it| it.as_str().map(str::to_owned));
        names.collect()
    });
    Ok(Webhook {
        url: Text::new(&format!("{key}.url"), url, false),
        headers,
        events: events.ok_or_else(|| wrong(".events", "a list of kinds"))?,
    })
}

#[cfg(test)]
mod tests;
