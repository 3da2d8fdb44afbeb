//! `integrity_check`

use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::omi::IntegrityScope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct IntegrityCheck;

/// Verify memory file integrity and graph topology. Reports, does not repair.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// `all` unless named
    pub scope: Option<Scope>,
}

/// What to look at.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    #[expect(missing_docs, reason = "the word says it")]
    Now,
    #[expect(missing_docs, reason = "the word says it")]
    Daily,
    #[expect(missing_docs, reason = "the word says it")]
    Graph,
    #[expect(missing_docs, reason = "the word says it")]
    All,
}

/// What was found.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    now_md: bool,
    memory_md: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    topology: Option<Topology>,
    overall_safe: bool,
    /// What was tampered with or damaged
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    faults: Vec<String>,
    /// How much of the log was checked, if not all of it
    #[serde(skip_serializing_if = "Option::is_none")]
    checked: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Topology {
    orphan_nodes: usize,
    sudden_cores: usize,
    warnings: Vec<String>,
}

impl Tool for IntegrityCheck {
    const NAME: &'static str = "integrity_check";
    const TITLE: &'static str = "Check memory integrity";
    const TOOLSET: Toolset = Toolset::Omi;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Full integrity check",
            input: r#"{"scope": "all"}"#,
            output: r#""overall_safe":true"#,
        },
        Example {
            title: "Quick check (just NOW.md and daily logs)",
            input: r#"{"scope": "now"}"#,
            output: r#"{"now_md":true,"memory_md":true,"overall_safe":true}"#,
        },
    ];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let scope = match input.scope.unwrap_or(Scope::All) {
            Scope::Now => IntegrityScope::Now,
            Scope::Daily => IntegrityScope::Daily,
            Scope::Graph => IntegrityScope::Graph,
            Scope::All => IntegrityScope::All,
        };
        let found = ctx.engine.omi().check_integrity(ctx.caller, scope)?;
        let topology = found.topology.map(|topology| Topology {
            orphan_nodes: topology.orphan_nodes,
            sudden_cores: topology.sudden_cores,
            warnings: topology.warnings,
        });
        Ok(Output {
            now_md: found.now_md,
            memory_md: found.memory_md,
            topology,
            overall_safe: found.overall_safe,
            faults: found.faults,
            checked: found.checked,
        })
    }
}
