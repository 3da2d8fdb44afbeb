//! Running a tool that is an item.
//!
//! Everything is decided before anything starts: which files make up its chain and who signed them
//! (`plan`), whether the chain is unchanged (`lock`), what it may access (`permit`). Then a primitive
//! runs it: a process in a jail (`process`, `runtime`, `install`), a request through `egress`
//! (`request`), a component in the sandbox (`component`), or a tool of another server (`mcp`). Long
//! output is saved (`output`).
//!
//! What runs are the verified bytes, copied for the call (`run_dir`): a file that is swapped
//! meanwhile has no effect.

mod component;
mod install;
mod lock;
mod mcp;
mod output;
mod permit;
mod places;
mod plan;
mod process;
mod request;
mod run_dir;
mod runtime;
mod sources;

use super::runs::{RunGrants, note_run};
use super::{ItemResult, ItemTarget};
use crate::Kiwi;
pub use install::{VENV_DAYS_MAX, VENVS_MAX};
use kenning_core::Result;
use kenning_items::chain::builtin::Primitive;
use kenning_items::{ItemType, Scope as ItemScope};
use kenning_kami::ToolFunction;
use kenning_kernel::{Caller, Scope};
use lock::Lock;
use permit::Permitted;
use plan::Plan;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// The result of running a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolItemRun {
    /// The version of the tool.
    pub version: String,
    /// Where it is kept.
    pub location: ItemScope,
    /// The path of its file or directory.
    pub path: String,
    /// Whether it succeeded. True for a dry run that would start.
    pub success: bool,
    /// Its output: `{stdout, stderr, return_code}` of a process, otherwise the response.
    pub data: Value,
    /// The result itself, parsed if it is JSON.
    pub result: Value,
    /// Why it failed.
    pub error: Option<String>,
    /// How long it took.
    pub duration_ms: f64,
    /// Its declared type.
    pub tool_type: String,
    /// The primitive that ran it.
    pub primitive_type: &'static str,
    /// The ids, the tool itself first.
    pub chain: Vec<String>,
    /// Where a long output was saved.
    pub output_path: Option<String>,
    /// Whether `data` was cut.
    pub is_truncated: bool,
    /// Whether it changes files in a repository that could be committed before.
    pub checkpoint_recommended: bool,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
    /// Its permissions, in a dry run.
    pub granted: Option<Value>,
}

/// The result of a primitive.
struct Ran {
    data: Value,
    result: Value,
    error: Option<String>,
    usage: Value,
    is_truncated: bool,
    warnings: Vec<String>,
}

/// A tool that is ready to start.
struct Ready<'a> {
    caller: &'a Caller,
    plan: &'a Plan,
    policy: &'a super::policy::ItemPolicy,
    permitted: &'a Permitted,
    config: &'a Map<String, Value>,
    inputs: &'a Map<String, Value>,
    /// The grants of the run that it is part of.
    run: Option<&'a RunGrants>,
    /// Which installed WASM tools the server exposes.
    reaches: &'a dyn Fn(&ToolFunction) -> bool,
}

impl Ready<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.config.get(name).and_then(Value::as_str)
    }

    /// How long it may take: its own limit, the policy's limit and the deadline of the call.
    fn timeout(&self) -> Duration {
        let seconds = self.config.get("timeout").and_then(Value::as_f64);
        let own = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
        let most = Duration::from_secs(self.policy.limits.timeout_seconds.max(1));
        let left = self
            .caller
            .deadline
            .saturating_duration_since(Instant::now());
        own.unwrap_or(most)
            .min(most)
            .min(left)
            .max(Duration::from_millis(1))
    }
}

impl Kiwi {
    /// Runs a tool of the project or of the user with these inputs; with the id of a directive's run,
    /// within its grants. `reaches` says which installed WASM tools it may use: a tool that the
    /// server hides must not be reachable through an item that names it.
    pub fn run_item_tool(
        &self,
        caller: &Caller,
        target: &ItemTarget,
        inputs: &Map<String, Value>,
        run_id: Option<&str>,
        reaches: &dyn Fn(&ToolFunction) -> bool,
    ) -> ItemResult<ToolItemRun> {
        caller.principal.require(Scope::Run)?;
        let run = run_id.map(|it| self.run_grants(caller, it)).transpose()?;
        let plan = self.plan_tool(caller, target)?;
        let lock = self.check_lockfile(&plan)?;
        plan::check_inputs(&plan.tool, inputs)?;
        let policy = self.item_policy()?;
        let permitted = self.permit_tool(&plan, &policy, run.as_ref(), target.dry_run)?;
        let config = plan::config(&plan.chain, &permitted.env).map_err(|mut fault| {
            // Messages about mismatches may quote values that were filled in.
            let redact = |text: &mut String| *text = permitted.redacted(std::mem::take(text));
            redact(&mut fault.message);
            fault.validation_errors.iter_mut().for_each(redact);
            plan::chain_fault(fault, Map::new())
        })?;
        let ready = Ready {
            caller,
            plan: &plan,
            policy: &policy,
            permitted: &permitted,
            config: &config,
            inputs,
            run: run.as_ref(),
            reaches,
        };
        if target.dry_run {
            self.check_primitive(&ready)?;
            let ran = Ran {
                warnings: permitted.warnings.clone(),
                ..Ran::nothing()
            };
            return Ok(ToolItemRun {
                granted: Some(permitted.to_json()),
                ..finished(&plan, ran, Duration::ZERO)
            });
        }
        let began = Instant::now();
        let ran = self.run_primitive(&ready).map_err(|mut fault| {
            fault.error.message = permitted.redacted(std::mem::take(&mut fault.error.message));
            fault
        });
        let ran = ran.map(|it| redacted(it, &permitted));
        let took = began.elapsed();
        self.note_tool_run(caller, &plan, run_id, &ran, took);
        let mut done = finished(&plan, ran?, took);
        // The tool has already run: a failed write now must not hide its result.
        if done.success
            && lock == Lock::Missing
            && let Err(error) = self.write_lockfile(&plan)
        {
            let warning = format!("the lockfile could not be written: {error}");
            done.warnings.push(warning);
        }
        if let Err(error) = self.keep_output(&plan, &mut done) {
            let warning = format!("the output could not be saved: {error}");
            done.warnings.push(warning);
        }
        Ok(done)
    }

    fn run_primitive(&self, ready: &Ready<'_>) -> ItemResult<Ran> {
        match ready.plan.chain.primitive {
            Primitive::Subprocess => self.run_process(ready),
            Primitive::HttpClient => self.run_request(ready),
            Primitive::Wasm => self.run_component(ready),
            Primitive::Mcp => self.run_mcp(ready),
        }
    }

    /// Checks whether it could start, as far as that is possible without starting it.
    fn check_primitive(&self, ready: &Ready<'_>) -> ItemResult<()> {
        match ready.plan.chain.primitive {
            Primitive::Subprocess => self.check_process(ready),
            Primitive::HttpClient => self.check_request(ready).map(drop),
            Primitive::Wasm => self.check_component(ready),
            Primitive::Mcp => self.check_mcp(ready),
        }
    }

    /// Records the event of a run, and its statistics.
    fn note_tool_run(
        &self,
        caller: &Caller,
        plan: &Plan,
        run_id: Option<&str>,
        ran: &ItemResult<Ran>,
        took: Duration,
    ) {
        let (error, usage) = match ran {
            Ok(ran) => (ran.error.clone(), ran.usage.clone()),
            Err(fault) => (Some(fault.error.message.clone()), Value::Null),
        };
        let success = error.is_none();
        let mut data = json!({
            "type": "tool", "id": plan.tool.id, "version": plan.tool.version,
            "success": success, "primitive": plan.chain.primitive.id(),
            "chain": plan.chain.ids(), "wall_us": u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        });
        if let Some(error) = error {
            data["error"] = error.chars().take(500).collect::<String>().into();
        }
        if !usage.is_null() {
            data["usage"] = usage;
        }
        if let Some(run_id) = run_id {
            data["runId"] = run_id.into();
        }
        let key = format!("{}/{}", ItemType::Tool.word(), plan.tool.id);
        self.kernel
            .later()
            .write(&caller.principal.space, move |tx| {
                note_run(tx, &key, success)?;
                tx.record("ItemRun", data).map(drop)
            });
    }
}

impl Ran {
    fn nothing() -> Self {
        Self {
            data: Value::Null,
            result: Value::Null,
            error: None,
            usage: Value::Null,
            is_truncated: false,
            warnings: Vec::new(),
        }
    }
}

fn finished(plan: &Plan, ran: Ran, took: Duration) -> ToolItemRun {
    let in_repository = || {
        let project = plan.project.as_ref();
        project.is_some_and(|it| it.dir.exists(".git").unwrap_or(false))
    };
    ToolItemRun {
        version: plan.tool.version.clone(),
        location: plan.item_dir.scope,
        path: plan.path(),
        success: ran.error.is_none(),
        data: ran.data,
        result: ran.result,
        error: ran.error,
        duration_ms: took.as_micros() as f64 / 1_000.0,
        tool_type: plan.tool.tool_type.clone(),
        primitive_type: plan.chain.primitive.id(),
        chain: plan.chain.ids(),
        output_path: None,
        is_truncated: ran.is_truncated,
        checkpoint_recommended: plan.tool.mutates_state && in_repository(),
        warnings: ran.warnings,
        granted: None,
    }
}

/// The output of a tool, with secrets redacted.
fn redacted(mut ran: Ran, permitted: &Permitted) -> Ran {
    fn redact(value: &mut Value, permitted: &Permitted) {
        match value {
            Value::String(text) => *text = permitted.redacted(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|it| redact(it, permitted)),
            Value::Object(fields) => {
                let redacted = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                    redact(&mut value, permitted);
                    (permitted.redacted(name), value)
                });
                *fields = redacted.collect();
            }
            // A secret may consist of digits.
            Value::Number(number) => {
                let text = number.to_string();
                let redacted = permitted.redacted(text.clone());
                if redacted != text {
                    *value = redacted.into();
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
    if !permitted.secrets.is_empty() {
        redact(&mut ran.data, permitted);
        redact(&mut ran.result, permitted);
        ran.error = ran.error.map(|it| permitted.redacted(it));
    }
    ran
}

/// Parses JSON; everything else is text.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text.trim()).unwrap_or_else(|_| text.into())
}

/// The launcher of the jail.
impl Kiwi {
    fn launcher(&self) -> kenning_jail::Launcher {
        match &self.items.options.launcher {
            Some(program) => kenning_jail::Launcher {
                program: program.clone(),
            },
            None => kenning_jail::Launcher::own(),
        }
    }

    /// Whether programs can be jailed here, and whether they run as another user.
    fn jail(&self) -> Result<kenning_jail::Strength> {
        kenning_jail::check()
    }
}
