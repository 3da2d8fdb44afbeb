//! Every setting in one table: its values, its default, and what it does. The file is checked against
//! it.

use kenning_core::{Error, Result};
use serde_json::Value;

/// The values that a key accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// `true` or `false`.
    Flag,
    /// A whole number between these.
    Count(u64, u64),
    /// A number greater than 0.
    Positive,
    /// Any text. `${NAME}` in it is replaced by an environment variable.
    Text,
    /// One of these.
    Choice(&'static [&'static str]),
    /// A list of URLs, or of mappings with `url`, `headers` and `events`.
    Webhooks,
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// Section and name: `vault.enabled`.
    pub name: &'static str,
    /// The values that it accepts.
    pub form: Form,
    /// The default, as it would be written; empty if there is none.
    pub default: &'static str,
    /// Whether its value is masked.
    pub secret: bool,
    /// What it does.
    pub doc: &'static str,
}

/// Where vectors may come from.
pub(super) const PROVIDERS: &[&str] = &["builtin", "local", "nim", "ollama", "openai"];

/// The formats in which a language model may be asked.
pub(super) const MODEL_PROVIDERS: &[&str] = &["none", "openai", "anthropic", "ollama"];

/// Where backups may go.
pub(super) const BACKUP_PROVIDERS: &[&str] = &["local", "r2"];

const fn key(
    name: &'static str,
    form: Form,
    default: &'static str,
    secret: bool,
    doc: &'static str,
) -> Key {
    Key {
        name,
        form,
        default,
        secret,
        doc,
    }
}

/// Every key, in the order of the manual.
pub const KEYS: &[Key] = &[
    key(
        "embedding.provider",
        Form::Choice(PROVIDERS),
        "builtin",
        false,
        "where vectors come from: the table inside the program, a folder with a model, or a service",
    ),
    key(
        "embedding.model",
        Form::Text,
        "",
        false,
        "the service's name of the model; for `local` the folder",
    ),
    key(
        "embedding.dimensions",
        Form::Count(1, 65_536),
        "",
        false,
        "how many numbers a vector has; an answer of another length is refused",
    ),
    key(
        "embedding.endpoint",
        Form::Text,
        "",
        false,
        "the URL of the service, if it is not the provider's own",
    ),
    key(
        "embedding.api_key",
        Form::Text,
        "",
        true,
        "the key for the service, best as `${NAME}` of an environment variable",
    ),
    key(
        "model.provider",
        Form::Choice(MODEL_PROVIDERS),
        "none",
        false,
        "the format in which a language model is asked; the variables `KENNING_MODEL_…` win over this section",
    ),
    key(
        "model.endpoint",
        Form::Text,
        "",
        false,
        "its URL, if it is not the provider's own",
    ),
    key(
        "model.name",
        Form::Text,
        "",
        false,
        "the service's name of the model",
    ),
    key(
        "model.api_key",
        Form::Text,
        "",
        true,
        "the key for the service, best as `${NAME}` of an environment variable",
    ),
    key(
        "model.timeout_seconds",
        Form::Count(1, 3_600),
        "120",
        false,
        "how long one answer may take",
    ),
    key(
        "model.tokens_max",
        Form::Count(1, 100_000_000),
        "60000",
        false,
        "how many tokens one run of an agent may use, questions and answers together",
    ),
    key(
        "storage.max_now_tokens",
        Form::Count(1, 1_000_000),
        "1000",
        false,
        "how long NOW.md may become before its oldest completions are left out",
    ),
    key(
        "storage.recency_half_life_days",
        Form::Positive,
        "30",
        false,
        "the time constant of recency: a memory this old keeps 0.368 of it",
    ),
    key(
        "vault.enabled",
        Form::Flag,
        "true",
        false,
        "whether backups are made",
    ),
    key(
        "vault.provider",
        Form::Choice(BACKUP_PROVIDERS),
        "local",
        false,
        "where backups go: a folder, or a bucket with the S3 API",
    ),
    key(
        "vault.retention_days",
        Form::Count(1, 36_500),
        "90",
        false,
        "how long backups are kept",
    ),
    key(
        "vault.endpoint",
        Form::Text,
        "",
        false,
        "the URL of the service with the bucket",
    ),
    key("vault.bucket", Form::Text, "", false, "the bucket"),
    key(
        "vault.region",
        Form::Text,
        "",
        false,
        "the region of the bucket",
    ),
    key(
        "vault.access_key_id",
        Form::Text,
        "",
        true,
        "the name of the key for the bucket",
    ),
    key(
        "vault.secret_access_key",
        Form::Text,
        "",
        true,
        "the key for the bucket",
    ),
    key(
        "security.enable_consensus",
        Form::Flag,
        "false",
        false,
        "whether memories with the tag `foundational`, and what takes their place, wait for the signature of a second key",
    ),
    key(
        "security.integrity_check_on_start",
        Form::Flag,
        "true",
        false,
        "whether files are compared with their checksums when a session starts",
    ),
    key(
        "security.sudden_core_edges",
        Form::Count(1, 1_000_000),
        "5",
        false,
        "this many edges into a memory that was hardly read make it a sudden core",
    ),
    key(
        "security.sudden_core_accesses",
        Form::Count(0, 1_000_000),
        "3",
        false,
        "a memory that was read this often is not a sudden core by its edges alone",
    ),
    key(
        "security.burst_edges",
        Form::Count(1, 1_000_000),
        "20",
        false,
        "this many edges within the window make a memory a sudden core however often it was read",
    ),
    key(
        "security.burst_seconds",
        Form::Count(1, 31_536_000),
        "60",
        false,
        "the window",
    ),
    key(
        "forget.grace_hours",
        Form::Count(0, 8_760),
        "24",
        false,
        "how long a forgotten memory can be restored before it is erased; 0 erases it at once",
    ),
    key(
        "retention.fact_days",
        Form::Count(1, 36_500),
        "",
        false,
        "facts that are older are erased; without it they stay",
    ),
    key(
        "retention.experience_days",
        Form::Count(1, 36_500),
        "",
        false,
        "the same for experiences",
    ),
    key(
        "retention.belief_days",
        Form::Count(1, 36_500),
        "",
        false,
        "the same for beliefs",
    ),
    key(
        "retention.decision_days",
        Form::Count(1, 36_500),
        "",
        false,
        "the same for decisions",
    ),
    key(
        "events.webhooks",
        Form::Webhooks,
        "[]",
        false,
        "URLs that receive every event",
    ),
    key(
        "events.queries",
        Form::Choice(&["hash", "text"]),
        "hash",
        false,
        "what the event of a recall keeps of the query: a keyed hash, or the text, which stays in the signed log for ever",
    ),
    key(
        "events.reads",
        Form::Choice(&["all", "sampled", "off"]),
        "all",
        false,
        "which reads (recalls, knowledge entries) become events and are counted as accesses: all, one in sixteen, or none; the log keeps every event for ever",
    ),
    key(
        "code.project",
        Form::Choice(&["auto", "off"]),
        "auto",
        false,
        "whether the code of the project that Kenning is started in is scanned without being asked, if it is a git work tree and no home directory",
    ),
    key(
        "repositories.allow",
        Form::Text,
        "",
        false,
        "repositories, separated by commas, that an agent may register by scanning them: `owner/name` and `owner/*` at GitHub, or `https://host/owner/*`; beside the project itself and what KENNING_REPO_PATHS and KENNING_REPO_ALLOW name",
    ),
];

/// The key of this name; otherwise an error that proposes the nearest one.
pub(super) fn find(name: &str) -> Result<&'static Key> {
    let found = KEYS.iter().find(|it| it.name == name);
    found.ok_or_else(|| {
        Error::invalid(format!("config.yaml has no key `{name}`")).hint(nearest(name))
    })
}

/// The part before the dot.
pub(super) fn section_of(key: &Key) -> &'static str {
    key.name.split_once('.').map_or(key.name, |(it, _)| it)
}

/// The part after the dot.
pub(super) fn last_of(key: &Key) -> &'static str {
    key.name.split_once('.').map_or(key.name, |(_, it)| it)
}

/// Proposes a key, or a section if a section was given.
fn nearest(name: &str) -> String {
    let known = KEYS.iter().map(|key| {
        if name.contains('.') {
            key.name
        } else {
            section_of(key)
        }
    });
    let distance = |it: &&str| (strsim::jaro_winkler(it, name) * 1e6) as u64;
    let best = known.max_by_key(distance).unwrap_or_default();
    format!("did you mean `{best}`?")
}

impl Key {
    /// Checks a value. The error names the key, the value and what is expected.
    pub(super) fn check(&self, value: &Value) -> Result<()> {
        let good = match self.form {
            Form::Flag => value.is_boolean(),
            Form::Count(min, max) => value.as_u64().is_some_and(|it| (min..=max).contains(&it)),
            Form::Positive => value.as_f64().is_some_and(|it| it > 0.0),
            Form::Text => value.is_string(),
            Form::Choice(names) => value.as_str().is_some_and(|it| names.contains(&it)),
            Form::Webhooks => value.is_array(),
        };
        if good {
            return Ok(());
        }
        // A secret is not repeated, not even a misplaced one.
        let shown = match value {
            _ if self.secret => "the value".to_owned(),
            Value::String(text) => format!("`{text}`"),
            other => format!("`{other}`"),
        };
        let error = Error::invalid(format!(
            "config.yaml: `{}`: {shown} is not {}",
            self.name,
            self.form.expected()
        ));
        Err(match (self.form, value) {
            (Form::Text, Value::Number(_) | Value::Bool(_)) => error.hint("put it in quotes"),
            _ if self.default.is_empty() => error.hint("leave it out if it is not needed"),
            _ => error.hint(format!("the default is `{}`", self.default)),
        })
    }
}

impl Form {
    /// In words: `a whole number from 1 to 9`.
    pub fn expected(self) -> String {
        match self {
            Self::Flag => "`true` or `false`".to_owned(),
            Self::Count(min, max) => format!("a whole number from {min} to {max}"),
            Self::Positive => "a number greater than 0".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Choice(names) => format!("one of {}", names.join(", ")),
            Self::Webhooks => "a list of URLs".to_owned(),
        }
    }
}
