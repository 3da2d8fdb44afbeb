//! How long memories are kept, by their type.

use super::{HOUR_MS, Reader};
use crate::types::MemoryType;

/// How long memories are kept. A type that is not named is kept for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention(Vec<(MemoryType, u64)>);

impl Retention {
    /// Whether everything is kept for ever.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The age, in milliseconds, from which on a memory of this type is erased.
    pub fn age_max_ms(&self, memory_type: MemoryType) -> Option<u64> {
        let known = self.0.iter().find(|it| it.0 == memory_type);
        known.map(|it| it.1)
    }
}

impl Reader<'_> {
    pub(super) fn retention(&self) -> Retention {
        let of = |it: MemoryType| {
            let days = self.value(&format!("retention.{it}_days")).as_u64()?;
            Some((it, days * 24 * HOUR_MS))
        };
        Retention(MemoryType::ALL.into_iter().filter_map(of).collect())
    }
}
