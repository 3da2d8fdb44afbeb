//! Running a tool within its grants.

use super::SpaceTools;
use super::callables::Callable;
use super::installed::{LOGS, said};
use super::limits::{LimitSource, Needed, explain};
use super::pulse::Pulse;
use super::record::{Record, ToolFunction};
use crate::Kami;
use kenning_core::{Code, Error, Result};
use kenning_kernel::{Caller, Scope, Text};
use kenning_sandbox::policy::effective;
use kenning_sandbox::{
    Capabilities, Failure, FsAccess, Limits, LogLevel, LogLine, Outcome, Quota, RunCall, Sha256,
    ToolCode, Usage,
};
use kenning_store::ReadTx;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How much more fuel a call gets to measure its need.
const MEASURE_FACTOR: u64 = 100_000;
/// More than the engine counts.
const FUEL_MAX: u64 = i64::MAX as u64;

/// At most this many bytes of a tool's log are kept.
const LOG_BYTES_MAX: usize = 64 * 1024;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct ToolRun {
    /// The tool's response, or why there is none.
    pub result: Result<String, String>,
    /// The code of the failure.
    pub code: Option<Code>,
    /// Whether the failure is the tool's own response.
    pub is_own_error: bool,
    /// For developers: the causes with their backtrace.
    pub detail: Option<String>,
    /// What it used.
    pub usage: ToolUsage,
    /// Its log: levels and messages.
    pub log: Vec<(&'static str, String)>,
    /// The end of its standard output and standard error.
    pub printed: (String, String),
}

/// An installed tool that was found by its name.
pub struct FoundTool {
    space_tools: Arc<SpaceTools>,
    place: usize,
}

impl FoundTool {
    fn callable(&self) -> Option<&Callable> {
        self.space_tools.callables.at(self.place)
    }

    /// The function to call.
    pub fn function(&self) -> Option<&ToolFunction> {
        self.callable().map(|it| &it.function)
    }
}

/// Stands for the installed tools as they were at a moment: equal stamps mean that no tool has changed since.
/// Those that differ may stand for the same tools.
#[derive(Clone)]
pub struct ToolsStamp(Arc<SpaceTools>);

impl PartialEq for ToolsStamp {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolUsage {
    /// The number of instructions.
    pub fuel: u64,
    /// Wall time, in microseconds.
    pub wall_us: u64,
    /// The most linear memory at once.
    pub memory_peak_bytes: u64,
    /// Requests over HTTP.
    pub http_requests: u64,
}

impl From<Usage> for ToolUsage {
    fn from(it: Usage) -> Self {
        Self {
            fuel: it.fuel,
            wall_us: u64::try_from(it.wall.as_micros()).unwrap_or(u64::MAX),
            memory_peak_bytes: it.memory_peak_bytes,
            http_requests: it.http_requests,
        }
    }
}

/// A component that is run without being installed, with nothing granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileRun {
    /// Of linear memory.
    pub max_memory_mb: Option<u32>,
    /// Wall time.
    pub max_execution_ms: Option<u64>,
    /// The number of instructions.
    pub max_fuel: Option<u64>,
}

impl Kami {
    /// The callable functions of the enabled installed tools.
    pub fn tool_functions(&self, caller: &Caller) -> Result<Vec<ToolFunction>> {
        caller.principal.require(Scope::Read)?;
        let space_tools = self.tools_of(&caller.principal.space)?;
        let enabled = space_tools.callables.all();
        let enabled = enabled.filter(|it| it.record.is_enabled());
        Ok(enabled.map(|it| it.function.clone()).collect())
    }

    /// A stamp of the installed tools, to compare with a later one.
    pub fn tools_stamp(&self, caller: &Caller) -> Result<ToolsStamp> {
        caller.principal.require(Scope::Read)?;
        self.tools_of(&caller.principal.space).map(ToolsStamp)
    }

    /// The function with this name, which may be written without dots.
    pub fn find_tool(&self, caller: &Caller, name: &str) -> Result<Option<FoundTool>> {
        caller.principal.require(Scope::Read)?;
        let space_tools = self.tools_of(&caller.principal.space)?;
        let place = space_tools.callables.place(name);
        let found = place.map(|place| FoundTool { space_tools, place });
        Ok(found.filter(|it| it.callable().is_some_and(|it| it.record.is_enabled())))
    }

    /// The own name of the function with this name.
    pub fn tool_name(&self, caller: &Caller, name: &str) -> Result<Option<String>> {
        let found = self.find_tool(caller, name)?;
        let function = found.as_ref().and_then(FoundTool::function);
        Ok(function.map(|it| it.name.clone()))
    }

    /// Runs an installed tool by the name of a function, which may be written without dots.
    pub fn run_tool(&self, caller: &Caller, name: &str, input: &str) -> Result<ToolRun> {
        let found = self.require_tool(caller, name)?;
        self.run_found_tool(caller, &found, input)
    }

    /// The same for a person who tries a tool: if it runs out of fuel, it is run again with more, to
    /// report how much the call needs. Only a tool without any access is run again.
    pub fn try_tool(&self, caller: &Caller, name: &str, input: &str) -> Result<ToolRun> {
        let found = self.require_tool(caller, name)?;
        self.run_found(caller, &found, input, true)
    }

    fn require_tool(&self, caller: &Caller, name: &str) -> Result<FoundTool> {
        caller.principal.require(Scope::Run)?;
        let space_tools = self.tools_of(&caller.principal.space)?;
        if let Some(place) = space_tools.callables.place(name) {
            return Ok(FoundTool { space_tools, place });
        }
        let generic = space_tools.tools.iter().find(|it| it.id == name);
        if let Some(record) = generic {
            let names: Vec<String> = record
                .functions()
                .iter()
                .map(|it| format!("`{}`", it.name))
                .collect();
            return Err(Error::invalid(format!(
                "`{name}` has {} functions: {}",
                names.len(),
                names.join(", ")
            ))
            .hint("name one of them"));
        }
        Err(
            Error::new(Code::NotFound, format!("tool not found: `{name}`"))
                .hint("`kami list` lists those that are installed"),
        )
    }

    /// Runs a function that was found.
    pub fn run_found_tool(
        &self,
        caller: &Caller,
        found: &FoundTool,
        input: &str,
    ) -> Result<ToolRun> {
        self.run_found(caller, found, input, false)
    }

    fn run_found(
        &self,
        caller: &Caller,
        found: &FoundTool,
        input: &str,
        measures: bool,
    ) -> Result<ToolRun> {
        caller.principal.require(Scope::Run)?;
        let space = &caller.principal.space;
        let Callable { record, function } = found
            .callable()
            .ok_or_else(|| Error::internal("the tool that was found has no function"))?;
        if !record.is_enabled() {
            return Err(
                Error::denied(format!("the tool `{}` is disabled", record.id))
                    .hint(format!(
                        "the operator switched it off; on the command line `kami enable {}` lets it be called again",
                        record.id
                    )),
            );
        }
        let value: Value = serde_json::from_str(input).map_err(|cause| {
            Error::invalid(format!("`input`: not JSON: {cause}"))
                .hint("give an object, for example `{}`")
        })?;
        if function.function.is_none() {
            record.manifest.check_arguments(&value)?;
        }
        let (granted, _) = effective(&record.manifest, &*self.wasm_policy()?);
        let own_dir = || {
            self.wasm_dir()?
                .private_subdir(&format!("sandbox/{space}/{}", record.id))
        };
        let environment = self.kernel.environment();
        let capabilities = Capabilities::new(&granted, own_dir, Quota::default(), environment)?;
        let source = || self.component(space, record.sha256);
        let code = ToolCode {
            sha256: record.sha256,
            source: &source,
            artifact: record.artifact.clone(),
        };
        // A caller with progress is told about compiling. The run itself refuses bytes that are not
        // the installed ones.
        if caller.progress.is_some()
            && !self.wasm_runtime()?.is_compiled(&code)
            && let Ok(wasm) = source()
            && Sha256::of(&wasm) == record.sha256
        {
            self.compile(caller, &wasm)?;
        }
        let limits = Limits::from(&granted);
        let name = function.function.as_deref();
        let (outcome, log) = self.run_code(
            caller,
            (&code, &record.id),
            name,
            input,
            limits,
            &capabilities,
        )?;
        if let Some(digest) = &outcome.prepared {
            self.note_artifact(caller, &record.id, digest);
        }
        let needed = match measures && reaches_nothing(&capabilities) {
            true => self.measure(caller, (&code, &record.id), name, input, limits, &outcome)?,
            false => Needed::Unknown,
        };
        let source = LimitSource::Manifest(&record.manifest);
        let run = tool_run(outcome, log, &limits, source, needed);
        self.note_run(caller, record, &run);
        Ok(run)
    }

    /// Runs a component from a file, without installing it.
    pub fn run_tool_file(
        &self,
        caller: &Caller,
        path: &std::path::Path,
        input: &str,
        how: &FileRun,
    ) -> Result<ToolRun> {
        caller.principal.require(Scope::Run)?;
        let (dir, name) = kenning_vault::split(path)?;
        let wasm = dir
            .read(&name, 64 * 1024 * 1024)
            .map_err(|error| match error.code {
                Code::NotFound => Error::new(
                    Code::NotFound,
                    format!("WASM file missing: `{}`", path.display()),
                )
                .hint("build it with `cargo build --target wasm32-wasip2 --release`"),
                _ => error,
            })?;
        self.run_bytes(caller, &wasm, input, how, LimitSource::Options)
    }

    /// Runs a component in memory, with nothing granted.
    pub fn run_tool_bytes(
        &self,
        caller: &Caller,
        wasm: &[u8],
        input: &str,
        how: &FileRun,
    ) -> Result<ToolRun> {
        self.run_bytes(caller, wasm, input, how, LimitSource::Fixed)
    }

    fn run_bytes(
        &self,
        caller: &Caller,
        wasm: &[u8],
        input: &str,
        how: &FileRun,
        set_by: LimitSource<'_>,
    ) -> Result<ToolRun> {
        let sha256 = Sha256::of(wasm);
        let artifact = self.known_artifact(caller, sha256);
        if artifact.is_none() {
            // Before the run, so that the caller is told about it.
            self.compile(caller, wasm)?;
        }
        let source = || Ok(wasm.to_vec());
        let code = ToolCode {
            sha256,
            source: &source,
            artifact,
        };
        let defaults = Limits::default();
        let limits = Limits {
            max_memory_mb: how.max_memory_mb.unwrap_or(defaults.max_memory_mb),
            max_execution_ms: how.max_execution_ms.unwrap_or(defaults.max_execution_ms),
            max_fuel: how.max_fuel.unwrap_or(defaults.max_fuel),
            ..defaults
        };
        let nothing = Capabilities::default();
        let (outcome, log) = self.run_code(caller, (&code, ""), None, input, limits, &nothing)?;
        if let Some(digest) = &outcome.prepared
            && let Err(error) = self.note_compiled(caller, digest)
        {
            // It works without, only slower.
            tracing::warn!("compiled code of {sha256} could not be recorded: {error}");
        }
        let needed = match set_by {
            LimitSource::Options => {
                self.measure(caller, (&code, ""), None, input, limits, &outcome)?
            }
            _ => Needed::Unknown,
        };
        Ok(tool_run(outcome, log, &limits, set_by, needed))
    }

    /// How much fuel a call needs that had too little: it is run again with nothing granted, within
    /// the same time and memory. The same input needs the same fuel.
    fn measure(
        &self,
        caller: &Caller,
        (code, id): (&ToolCode<'_>, &str),
        function: Option<&str>,
        input: &str,
        limits: Limits,
        outcome: &Outcome,
    ) -> Result<Needed> {
        if !matches!(outcome.result, Err(Failure::FuelExhausted { .. })) {
            return Ok(Needed::Unknown);
        }
        let more = Limits {
            max_fuel: limits.max_fuel.saturating_mul(MEASURE_FACTOR).min(FUEL_MAX),
            ..limits
        };
        let nothing = Capabilities::default();
        let (again, _) = self.run_code(caller, (code, id), function, input, more, &nothing)?;
        Ok(match again.result {
            Ok(_) | Err(Failure::Returned(_)) => Needed::Exactly(again.usage.fuel),
            Err(_) if again.usage.fuel > limits.max_fuel => Needed::MoreThan(again.usage.fuel),
            Err(_) => Needed::Unknown,
        })
    }

    fn run_code(
        &self,
        caller: &Caller,
        (code, id): (&ToolCode<'_>, &str),
        function: Option<&str>,
        input: &str,
        limits: Limits,
        capabilities: &Capabilities,
    ) -> Result<(Outcome, Vec<LogLine>)> {
        let lines: Arc<Mutex<Vec<LogLine>>> = Arc::default();
        let theirs = Arc::clone(&lines);
        let pulse = caller.progress.clone().map(|it| {
            Arc::new(Pulse::new(
                it,
                Duration::from_millis(limits.max_execution_ms),
            ))
        });
        let told = pulse.clone();
        // A component that is not installed is identified by its hash.
        let tool = match id {
            "" => format!("{} {}", caller.principal.space, code.sha256),
            id => format!("{} {id}", caller.principal.space),
        };
        let call = RunCall {
            tool: &tool,
            function,
            input,
            limits,
            capabilities,
            cancelled: Arc::clone(&caller.cancelled),
            deadline: caller.deadline,
            log: Some(Arc::new(move |line: LogLine| {
                if let Some(pulse) = &told {
                    pulse.tell(&line.message);
                }
                let mut lines = theirs.lock().unwrap_or_else(PoisonError::into_inner);
                lines.push(line);
            })),
        };
        let runtime = self.wasm_runtime()?;
        let outcome = match &pulse {
            None => runtime.run(code, &call),
            Some(pulse) => pulse.during("running", || runtime.run(code, &call)),
        };
        drop(call);
        let lines = std::mem::take(&mut *lines.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((outcome, lines))
    }

    /// Records the event of a run, and its log, in the background.
    fn note_run(&self, caller: &Caller, record: &Record, run: &ToolRun) {
        let mut data = said(record);
        data["success"] = run.result.is_ok().into();
        if let Err(message) = &run.result {
            data["error"] = message.chars().take(500).collect::<String>().into();
        }
        data["usage"] = json!({
            "fuel": run.usage.fuel, "wall_us": run.usage.wall_us,
            "memory_peak_bytes": run.usage.memory_peak_bytes, "http_requests": run.usage.http_requests,
        });
        let (id, text) = (record.id.clone(), log_text(run));
        self.kernel
            .later()
            .write(&caller.principal.space, move |tx| {
                if !text.is_empty() {
                    let before = LOGS.get_readable(&**tx, &id)?;
                    let Text(mut whole) = before.unwrap_or_default();
                    whole += &format!("-- run {}\n{text}", tx.next_seq());
                    let start = whole.len().saturating_sub(LOG_BYTES_MAX);
                    let start = (start..whole.len())
                        .find(|&it| whole.is_char_boundary(it))
                        .unwrap_or(0);
                    LOGS.set(tx, &id, &whole[start..].into())?;
                }
                tx.record("ToolRun", data).map(drop)
            });
    }

    /// The latest log and output of a tool.
    pub fn tool_logs(&self, caller: &Caller, id: &str) -> Result<String> {
        caller.principal.require(Scope::Read)?;
        self.record(caller, id)?;
        self.kernel.later().flush();
        let space = &caller.principal.space;
        let read = |tx: &dyn ReadTx| LOGS.get_readable(tx, id);
        let logged = self.kernel.log().read(space, read)?;
        Ok(logged.unwrap_or_default().0)
    }
}

/// Whether a call can be repeated without any effect outside.
fn reaches_nothing(capabilities: &Capabilities) -> bool {
    let has_files = !matches!(capabilities.fs, FsAccess::None);
    capabilities.net.is_empty() && capabilities.env.is_empty() && !has_files
}

fn tool_run(
    outcome: Outcome,
    log: Vec<LogLine>,
    limits: &Limits,
    source: LimitSource<'_>,
    needed: Needed,
) -> ToolRun {
    let failure = outcome.result.as_ref().err();
    ToolRun {
        code: failure.map(Failure::code),
        is_own_error: matches!(failure, Some(Failure::Returned(_))),
        result: outcome
            .result
            .map_err(|it| explain(&it, limits, source, needed)),
        detail: outcome.detail,
        usage: outcome.usage.into(),
        log: log
            .into_iter()
            .map(|line| (level(line.level), line.message))
            .collect(),
        printed: (outcome.stdout, outcome.stderr),
    }
}

fn level(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Trace => "trace",
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}

fn log_text(run: &ToolRun) -> String {
    let mut text: String = run
        .log
        .iter()
        .map(|(level, message)| format!("{level:<5} {message}\n"))
        .collect();
    for (name, printed) in [("stdout", &run.printed.0), ("stderr", &run.printed.1)] {
        text.extend(printed.lines().map(|it| format!("{name} {it}\n")));
    }
    text
}
