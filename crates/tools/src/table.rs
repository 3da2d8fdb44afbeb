//! The table. Its order is the order of every listing.

use crate::declare::{AnyTool, Erased, Tool};
use crate::{core, kg, kg_extra, kiwi, koi, omi, omi_extra};
use std::marker::PhantomData;

macro_rules! tools {
    ($($tool:path),* $(,)?) => {
        /// Every tool, in the order in which they are listed.
        pub const TOOLS: &[&dyn AnyTool] = &[$(&Erased::<$tool>(PhantomData)),*];

        // Two tools of one name do not compile.
        const _: () = assert_distinct(&[$(<$tool as Tool>::NAME),*]);
    };
}

tools! {
    core::Find,
    core::NoteList,
    core::NoteRead,
    core::NoteWrite,
    core::NoteMove,
    core::NoteDelete,
    core::ExecuteRead,
    koi::ResolveEntity,
    koi::GetEntityNeighborhood,
    koi::GetEntityDocuments,
    koi::KoiSearch,
    koi::KnowledgeSearch,
    koi::PreviewUrl,
    koi::ProcessUrl,
    koi::IngestUrl,
    koi::GithubScan,
    koi::MonitorUrl,
    koi::CodeQuery,
    koi::FederationStatus,
    koi::VaultReadNote,
    koi::VaultWriteNote,
    koi::VaultListNotes,
    kiwi::Search,
    kiwi::Load,
    kiwi::Execute,
    kiwi::Help,
    kg::KgQuery,
    kg::KgStats,
    kg::KgGetNode,
    kg::KgListTags,
    kg::KgGraphQuery,
    kg::KgGraphStats,
    kg::KgGraphGenerate,
    kg::KgSearchNodes,
    kg::KgSearchTags,
    kg::KgAgentSpawn,
    kg::KgAgentList,
    kg::KgWorkflowStart,
    kg::KgWorkflowStatus,
    kg::KgWorkflowList,
    kg::KgVectorSearch,
    kg::KgVectorUpsert,
    kg::KgTrajectoryList,
    kg::KgSyncStatus,
    kg::KgAuditQuery,
    kg::KgAuditCheckpoint,
    kg::KgHealth,
    kg::KgHealthCheck,
    kg::KgCacheStats,
    kg_extra::KgNeighbors,
    kg_extra::KgPath,
    kg_extra::KgRank,
    kg_extra::KgCommunities,
    kg_extra::KgBrokenLinks,
    kg_extra::KgOrphans,
    kg_extra::KgBacklinks,
    kg_extra::KgExport,
    omi::MemoryRecall,
    omi::MemoryStore,
    omi::BeliefUpdate,
    omi::NowRead,
    omi::NowUpdate,
    omi::IntegrityCheck,
    omi_extra::MemoryGet,
    omi_extra::MemoryForget,
    omi_extra::MemoryStoreBatch,
    omi_extra::DailyAppend,
    omi_extra::BeliefEvidence,
    omi_extra::BeliefCheckContradiction,
    omi_extra::BeliefRetrieve,
    omi_extra::VaultBackup,
}

const fn assert_distinct(names: &[&str]) {
    let mut i = 0;
    while i < names.len() {
        let mut j = i + 1;
        while j < names.len() {
            assert!(
                !equal(names[i].as_bytes(), names[j].as_bytes()),
                "two tools have the same name"
            );
            j += 1;
        }
        i += 1;
    }
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}
