//! Warnings about the sources of answers about entities.

use crate::Koi;
use kenning_core::Space;
use kenning_kernel::Caller;

impl Koi {
    /// Why entities may be missing from an answer, one sentence each; none if every source can be
    /// read.
    pub fn entity_warnings(&self, caller: &Caller) -> Vec<String> {
        Vec::from_iter(self.vault_fault(&caller.principal.space))
    }

    /// Why the notes of the vault are not read, if somebody named a vault and it cannot be opened.
    pub(super) fn vault_fault(&self, space: &Space) -> Option<String> {
        if !self.kernel.vault().is_named() || self.kernel.vault().space() != space {
            return None;
        }
        let fault = self.kernel.vault().open(space).err()?;
        let remedy = fault.hint.map(|it| format!(" ({it})")).unwrap_or_default();
        Some(format!(
            "{}, so its notes are not read{remedy}",
            fault.message
        ))
    }
}
