//! `config.yaml`: read whenever it is needed, and changed line by line.
//!
//! It may contain secrets, so it is not a node, only its owner can read it, and no event contains
//! what was set.

use crate::Omi;
use kenning_core::{Error, Result};
use kenning_kernel::{Caller, Scope};
use kenning_memory::config;
use kenning_store::patience;
use serde_json::{Value, json};

impl Omi {
    fn config_to_read(&self, caller: &Caller) -> Result<String> {
        let dir = self.context_to_read(caller)?;
        dir.map_or_else(|| Ok(String::new()), |dir| self.kernel.config_text(&dir))
    }

    /// The value in effect for a key; secrets are masked.
    pub fn config_get(&self, caller: &Caller, key: &str) -> Result<Value> {
        config::get(&self.config_to_read(caller)?, key)
    }

    /// Every key with its value in effect, as YAML; secrets are masked.
    pub fn config_show(&self, caller: &Caller) -> Result<String> {
        config::show(&self.config_to_read(caller)?)
    }

    /// The same as JSON, by key.
    pub fn config_values(&self, caller: &Caller) -> Result<Value> {
        let text = self.config_to_read(caller)?;
        let values = config::KEYS
            .iter()
            .map(|key| Ok((key.name.to_owned(), config::get(&text, key.name)?)));
        Ok(Value::Object(values.collect::<Result<_>>()?))
    }

    /// Sets a key and leaves every other line as it is.
    pub fn config_set(&self, caller: &Caller, key: &str, value: &str) -> Result<()> {
        caller.principal.require(Scope::Admin)?;
        let dir = self.context_to_write(caller)?;
        let file = self.kernel.omi().file(config::FILE, config::BYTES_MAX);
        self.kernel.with_wait_limit(caller.waited, || {
            let _lock = patience::waiting(|| {
                self.kernel
                    .lock_file(&file, patience::left(super::LOCK_WAIT))
            })?;
            let changed = config::set(&self.kernel.config_text(&dir)?, key, value)?;
            if changed.len() as u64 > config::BYTES_MAX {
                return Err(Error::too_large(format!(
                    "`{key}`: config.yaml would be larger than {} bytes",
                    config::BYTES_MAX
                ))
                .hint("shorten the value"));
            }
            let data = json!({ "key": key });
            self.kernel
                .log()
                .write(&caller.principal.space, move |tx| {
                    tx.record("ConfigChanged", data).map(drop)
                })?;
            self.kernel.forget_config();
            dir.write_private(config::FILE, changed.as_bytes())
                .map_err(|error| self.kernel.omi().unwritable(error))
        })
    }
}
