//! `config.yaml`, and the directory as `omi init` makes it.

use super::now;
use crate::files::Writing;
use crate::{Caller, Engine, Scope};
use kenning_core::{Code, Error, Result};
use kenning_memory::config::{self, KEYS};
use kenning_memory::now as now_file;
use kenning_store::patience;
use kenning_vault::Dir;
use serde_json::{Value, json};
use std::time::Duration;

/// How long a change waits for another one.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// What `omi init` writes: the documented keys. Those that need a service stand as comments, because a
/// key that has no effect is refused.
const TEMPLATE: &str = "\
# `omi config show` shows every key with what holds for it.

embedding:
  provider: builtin  # or nim, ollama, openai, local
  # With one of those:
  # model: baai/bge-m3  # nomic-embed-text for ollama
  # dimensions: 1024  # 768 for ollama
  # api_key: ${NIM_API_KEY}

storage:
  max_now_tokens: 1000
  recency_half_life_days: 30

vault:
  enabled: true
  provider: local  # or r2
  retention_days: 90

security:
  enable_consensus: false
  integrity_check_on_start: true
";

impl Engine {
    /// What holds for a key of `config.yaml`. Secrets are masked.
    pub fn config_get(&self, caller: &Caller, key: &str) -> Result<Value> {
        config::get(&self.config_text(caller)?, key)
    }

    /// Every key with what holds for it, as YAML. Secrets are masked.
    pub fn config_show(&self, caller: &Caller) -> Result<String> {
        config::show(&self.config_text(caller)?)
    }

    /// The same as JSON, a key each.
    pub fn config_values(&self, caller: &Caller) -> Result<Value> {
        let text = self.config_text(caller)?;
        let values = KEYS
            .iter()
            .map(|key| Ok((key.name.to_owned(), config::get(&text, key.name)?)));
        Ok(Value::Object(values.collect::<Result<_>>()?))
    }

    /// Sets a key of `config.yaml` and leaves everything else in it as it was.
    ///
    /// It says where memories are sent, to a service or a bucket: that is the operator's to say.
    pub fn config_set(&self, caller: &Caller, key: &str, value: &str) -> Result<()> {
        caller.principal.require(Scope::Admin)?;
        let dir = self.context_to_write(caller)?;
        self.patiently(|| {
            let any = self.omi.file(now_file::FILE, now::BYTES_MAX);
            let _lock = self.lock_file(&any, patience::left(LOCK_WAIT))?;
            let changed = config::set(&read(&dir)?, key, value)?;
            dir.write_private(config::FILE, changed.as_bytes())
        })
        .map_err(|error| self.omi.unwritable(error))?;
        // The name is enough: a value may be a secret.
        let data = json!({ "key": key });
        self.log.write(&caller.principal.space, move |tx| {
            tx.record("ConfigSet", data).map(drop)
        })
    }

    /// Makes the directory with `config.yaml` and an empty NOW.md; what is there stays as it is. Gives
    /// the names of what was made.
    pub fn init_context(&self, caller: &Caller) -> Result<Vec<&'static str>> {
        let dir = self.context_to_write(caller)?;
        let mut made = Vec::new();
        if !dir.exists(config::FILE)? {
            dir.write_private(config::FILE, TEMPLATE.as_bytes())
                .map_err(|error| self.omi.unwritable(error))?;
            made.push(config::FILE);
        }
        if !dir.exists(now_file::FILE)? {
            let file = self.omi.file(now_file::FILE, now::BYTES_MAX);
            let writing = |before: Option<&str>| {
                // Somebody who wrote meanwhile keeps what they wrote.
                let content = before.unwrap_or(now_file::DEFAULT).to_owned();
                Ok(Writing::new(content, "NowInitialized"))
            };
            self.write_context_file(caller, &dir, &file, writing)?;
            made.push(now_file::FILE);
        }
        Ok(made)
    }

    /// Whether there is anything: the directory, or a memory.
    pub fn has_context(&self, caller: &Caller) -> Result<bool> {
        let there = self.omi.is_named() && self.omi.existing(&caller.principal.space)?.is_some();
        Ok(there || self.memory_count(caller)? > 0)
    }

    fn config_text(&self, caller: &Caller) -> Result<String> {
        match self.context_to_read(caller)? {
            Some(dir) => read(&dir),
            None => Ok(String::new()),
        }
    }
}

/// The text of the file; nothing if there is none.
pub(super) fn read(dir: &Dir) -> Result<String> {
    match dir.read(config::FILE, config::BYTES_MAX) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| {
            Error::invalid("config.yaml is not UTF-8 text").hint("convert it to UTF-8")
        }),
        Err(error) if error.code == Code::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_memory::config::Config;

    #[test]
    fn what_init_writes_is_the_default_and_can_be_changed() {
        assert_eq!(Config::parse(TEMPLATE).unwrap(), Config::default());
        let text = config::set(TEMPLATE, "embedding.provider", "ollama").unwrap();
        let text = config::set(&text, "embedding.model", "nomic-embed-text").unwrap();
        assert_eq!(
            config::get(&text, "embedding.model").unwrap(),
            "nomic-embed-text"
        );
        assert_eq!(text.lines().count(), TEMPLATE.lines().count() + 1);
    }
}
