//! Memories one after the other, for people who look at what there is.

use super::Memory;
use super::forget::each_memory;
use crate::Omi;
use kenning_core::Result;
use kenning_kernel::{Caller, Scope};
use kenning_memory::types::MemoryType;

/// Which memories to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListMemories {
    /// Only of this type.
    pub memory_type: Option<MemoryType>,
    /// Only with all of these.
    pub tags: Vec<String>,
    /// Also those that others superseded.
    pub with_superseded: bool,
    /// How many are left out at the beginning.
    pub offset: usize,
    /// At most so many.
    pub limit: usize,
}

impl ListMemories {
    fn admits(&self, memory: &Memory) -> bool {
        self.memory_type.is_none_or(|it| it == memory.memory_type)
            && self.tags.iter().all(|it| memory.tags.contains(it))
            && (self.with_superseded || memory.superseded_by.is_none())
    }
}

impl Omi {
    /// Memories, the newest first: so many after so many.
    pub fn list_memories(
        &self,
        caller: &Caller,
        which: &ListMemories,
    ) -> Result<(Vec<Memory>, u64)> {
        caller.principal.require(Scope::Read)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            let mut found = Vec::new();
            each_memory(tx, &mut |node| {
                let memory = Memory::of(node);
                if which.admits(&memory) {
                    found.push(memory);
                }
            })?;
            let total = found.len() as u64;
            found.sort_by_key(|it| std::cmp::Reverse(it.created_ms));
            let page = found.into_iter().skip(which.offset).take(which.limit);
            Ok((page.collect(), total))
        })
    }
}
