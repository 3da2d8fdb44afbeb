//! What the operator allows of items.

use crate::Engine;
use kenning_core::{Code, Error, Result};
use serde::Deserialize;

/// In the data directory.
const POLICY_FILE: &str = "kiwi/policy.toml";
const POLICY_BYTES_MAX: u64 = 1024 * 1024;

/// The operator's word on items. Without a file everything is as strict as it can be.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ItemPolicy {
    /// Whether items of a project may be used before they are signed.
    pub(crate) allow_unsigned: bool,
}

impl Engine {
    /// What the operator wrote, or nothing.
    pub(crate) fn item_policy(&self) -> Result<ItemPolicy> {
        let bytes = match self.data.read(POLICY_FILE, POLICY_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.code == Code::NotFound => return Ok(ItemPolicy::default()),
            Err(error) => return Err(error),
        };
        let text = String::from_utf8_lossy(&bytes);
        toml::from_str(&text).map_err(|cause| {
            Error::invalid(format!(
                "`{POLICY_FILE}` in the data directory: {}",
                cause.message()
            ))
            .hint("docs/guides/kiwi.md lists what it may say")
        })
    }
}
