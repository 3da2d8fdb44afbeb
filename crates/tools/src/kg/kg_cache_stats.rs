//! `kg_cache_stats`

use super::words::KgReply;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::timestamp;
use kenning_text::round::{Ties, rounded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgCacheStats;

/// Statistics of the shadow cache: hit rate, entries, size.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

/// Figures of the cache.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    total_entries: usize,
    stale_entries: usize,
    hit_rate: f64,
    size_bytes: usize,
    hits: u64,
    misses: u64,
    last_updated: Option<String>,
}

impl Tool for KgCacheStats {
    const NAME: &'static str = "kg_cache_stats";
    const TITLE: &'static str = "Shadow cache statistics";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "How often files need not be read",
        input: "{}",
        output: r#""hitRate":"#,
    }];
    type Input = Input;
    type Output = KgReply<Stats>;

    fn call(ctx: &Call<'_>, _: Input) -> Result<KgReply<Stats>> {
        let health = ctx.engine.kg().graph_health(ctx.caller)?;
        if !health.has_graph {
            return Err(
                Error::unavailable("Cache not initialized").hint("run `kg_graph_generate` first")
            );
        }
        let cache = health.cache;
        Ok(KgReply::new(Stats {
            total_entries: cache.entries,
            stale_entries: cache.stale,
            hit_rate: rounded(cache.hit_rate(), 4, Ties::Away),
            size_bytes: cache.size_bytes,
            hits: cache.hits,
            misses: cache.misses,
            last_updated: cache.updated_ms.map(timestamp),
        }))
    }
}
