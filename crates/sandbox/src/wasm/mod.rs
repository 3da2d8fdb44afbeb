//! Runs components: one engine, code that is compiled once, and a fresh store for every call.
//!
//! The surface is synchronous. A call runs on its caller's thread; inside, the tool's own code is
//! interrupted by a clock thread ([`engine::Ticker`]) and its waiting (for a file, a request, a timer)
//! by a timer, so that neither a loop nor a sleep outlives the deadline. Each call has its
//! own deadline: the clock thread only makes running tools check it.
//!
//! Nothing of one call is left for the next: the instance, its memory and its handles are gone with
//! the store. Whatever a tool does, and whatever our own functions do when it calls them, ends in an
//! [`Outcome`].

pub(crate) mod budget;
pub(crate) mod code;
pub(crate) mod engine;
pub(crate) mod files;
pub(crate) mod headers;
pub(crate) mod net;
pub(crate) mod shape;
pub(crate) mod state;
pub(crate) mod stdio;
pub(crate) mod survey;
pub(crate) mod values;

use crate::call::{Failure, LogLevel, Outcome, RunCall, Usage};
use crate::digest::{Digest, Sha256};
use crate::manifest::TOOL_MEMORY_MB_MAX;
use budget::{Budget, Slot};
use code::{CodeCache, Loaded, ToolCode};
use engine::Machine;
use files::Ledgers;
use kenning_core::{Error, Result};
use kenning_egress::Policy;
use kenning_vault::Dir;
use net::Net;
use shape::{Callee, Described};
use state::{Clock, Log, State, Stop};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wasmtime::{Store, Trap, UpdateDeadline};
use wasmtime_wasi::I32Exit;

/// How a runtime is set up.
pub struct RuntimeOptions {
    /// A pool of instances, for a process that serves many calls. It costs some milliseconds at the first
    /// call, so a process that makes one call has none.
    pub pooling: Option<PoolSize>,
    /// Where compiled code is kept between processes. No other user may write there (mode 0700).
    pub cache: Option<Dir>,
    /// Threads that compile.
    pub compile_threads: usize,
    /// How long [`Runtime::check`] and [`Runtime::prepare`] wait for the compiler.
    pub compile_patience: Duration,
    /// The most concurrent calls; half as many of one tool. Others wait for their turn.
    pub calls_max: u32,
    /// How long a call waits for its turn before its caller is told to try again.
    pub queue_patience: Duration,
    /// Memory that all calls together may use; one tool at most half of it.
    pub total_memory_mb: u32,
    /// Components whose code is kept in memory.
    pub loaded_max: usize,
    /// How the network is reached. The operator's grants are left out: they are for the server, not for tools.
    pub egress: Policy,
}

/// How many instances are kept ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSize {
    /// Calls at once.
    pub calls: u32,
    /// The largest memory of any tool.
    pub max_memory_mb: u32,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            pooling: None,
            cache: None,
            compile_threads: std::thread::available_parallelism().map_or(2, usize::from),
            compile_patience: Duration::from_secs(120),
            calls_max: 32,
            queue_patience: Duration::from_secs(10),
            total_memory_mb: 2 * TOOL_MEMORY_MB_MAX,
            loaded_max: 64,
            egress: Policy::default(),
        }
    }
}

/// Runs components. The engine is created when the first component is checked.
pub struct Runtime {
    options: RuntimeOptions,
    machine: Mutex<Option<Arc<Machine>>>,
    code_cache: Arc<CodeCache>,
    ledgers: Ledgers,
    budget: Arc<Budget>,
}

/// How often a waiting call checks its deadline.
const LOOK: Duration = Duration::from_millis(10);
/// What the tool may pass to the host in one call besides its result.
const HANDOVER_BYTES: usize = 1024 * 1024;
const MESSAGE_BYTES_MAX: usize = 2_000;
const MIB: u64 = 1024 * 1024;
const NO_SPACE_LEFT: &str = "no space left: the tool's directory is full";

impl Runtime {
    /// A runtime that has done nothing yet.
    pub fn new(mut options: RuntimeOptions) -> Self {
        let calls = options
            .pooling
            .map_or(options.calls_max, |pool| pool.calls.min(options.calls_max));
        Self {
            code_cache: Arc::new(CodeCache::new(options.cache.take(), options.loaded_max)),
            budget: Arc::new(Budget::new(
                calls,
                options.total_memory_mb,
                options.queue_patience,
            )),
            machine: Mutex::default(),
            ledgers: Ledgers::default(),
            options,
        }
    }

    /// Whether these bytes are a component that can be run here, and what it offers.
    pub fn check(&self, wasm: &[u8]) -> Result<Described> {
        Ok(self.compile(wasm)?.shape.described.clone())
    }

    /// Compiles a component, keeps the code, and says what to record.
    pub fn prepare(&self, wasm: &[u8]) -> Result<Digest> {
        Ok(self.compile(wasm)?.digest.clone())
    }

    /// Whether a tool can be run without its component being compiled first.
    pub fn is_compiled(&self, tool: &ToolCode<'_>) -> bool {
        let machine = self.machine();
        machine.is_ok_and(|it| self.code_cache.is_compiled(&it, tool))
    }

    /// Drops a component's code, from memory and from disk. Calls that run it go on.
    pub fn forget(&self, sha256: Sha256) -> Result<()> {
        self.code_cache.forget(sha256)
    }

    /// Calls a tool.
    pub fn run(&self, tool: &ToolCode<'_>, call: &RunCall<'_>) -> Outcome {
        let mut outcome = Outcome {
            result: Err(Failure::Cancelled),
            detail: None,
            usage: Usage::default(),
            stdout: String::new(),
            stderr: String::new(),
            prepared: None,
        };
        let caught = catch_unwind(AssertUnwindSafe(|| self.run_into(tool, call, &mut outcome)));
        outcome.result = caught.unwrap_or_else(|panic| {
            outcome.detail = panic.downcast_ref::<String>().cloned();
            Err(Failure::Internal("a host function panicked".to_owned()))
        });
        outcome
    }

    fn run_into(
        &self,
        tool: &ToolCode<'_>,
        call: &RunCall<'_>,
        outcome: &mut Outcome,
    ) -> Result<String, Failure> {
        let (bytes, max) = (call.input.len(), call.limits.input_bytes_max);
        if bytes > max {
            return Err(Failure::InputTooLarge { bytes, max });
        }
        let patience = Clock {
            until: call.deadline,
            cancelled: call.cancelled.clone(),
        };
        let machine = self.machine()?;
        let loaded = self.code_cache.load(&machine, tool, &patience)?;
        if tool.artifact.as_ref() != Some(&loaded.digest.artifact) {
            outcome.prepared = Some(loaded.digest.clone());
        }
        let callee = loaded.shape.callee(call.function);
        let callee = callee
            .ok_or_else(|| Failure::ExportNotFound(call.function.unwrap_or("run").to_owned()))?;
        let as_command;
        let call = match callee {
            Callee::Command(_) => {
                as_command = call.as_command();
                &as_command
            }
            _ => call,
        };
        let bytes_max = u64::from(call.limits.max_memory_mb) * MIB;
        let slot = self.budget.enter(call.tool, bytes_max, &patience)?;
        self.run_loaded(&machine, &loaded, callee, call, Arc::new(slot), outcome)
    }

    fn run_loaded(
        &self,
        machine: &Machine,
        loaded: &Loaded,
        callee: &Callee,
        call: &RunCall<'_>,
        slot: Arc<Slot>,
        outcome: &mut Outcome,
    ) -> Result<String, Failure> {
        let limits = &call.limits;
        let start = Instant::now();
        let until = start.checked_add(Duration::from_millis(limits.max_execution_ms));
        let clock = Clock {
            until: until.map_or(call.deadline, |it| it.min(call.deadline)),
            cancelled: call.cancelled.clone(),
        };
        let given = clock.until.saturating_duration_since(start);
        let log = Log::new(limits.log_bytes_max, call.log.clone());
        let net = Net::new(
            &call.capabilities.net,
            &self.options.egress,
            limits,
            &clock,
            &log,
            &slot,
        );
        let files = state::files(&call.capabilities.fs, &self.ledgers)?;
        let is_command = matches!(callee, Callee::Command(_));
        let state = State::new(call, is_command, clock.clone(), log, net, files, slot);
        let internal = |err: wasmtime::Error| Failure::Internal(code::reason(&err));
        let mut store = Store::new(&machine.engine, state);
        store.limiter(|state| &mut state.meter);
        store.set_fuel(limits.max_fuel).map_err(internal)?;
        store.set_hostcall_fuel(limits.output_bytes_max.saturating_add(HANDOVER_BYTES));
        store.set_max_component_handles(limits.handles_max);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|store| {
            store.data().clock.check()?;
            Ok(UpdateDeadline::Continue(1))
        });
        let running = machine.ticker.run();
        let result = machine.block_on(async {
            tokio::select! {
                biased;
                result = drive(&mut store, loaded, callee, call.input) => result,
                stop = watch(&clock) => Err(stop.into()),
            }
        });
        drop(running);
        let wall = start.elapsed();
        let left = store.get_fuel().unwrap_or_default();
        let state = store.data();
        outcome.usage = usage(state, limits.max_fuel.saturating_sub(left), wall);
        if state.files.was_full() {
            state.log.line(LogLevel::Warn, NO_SPACE_LEFT);
        }
        outcome.stdout = state.stdout.text();
        outcome.stderr = state.stderr.text();
        if let Some(code) = result.as_ref().filter(|_| is_command).and_then(exit_code) {
            return program_result(code, outcome, limits.output_bytes_max);
        }
        match result {
            None => Err(Failure::Internal("the runtime is shut down".to_owned())),
            Some(Ok(answer)) => to_result(
                answer,
                limits.output_bytes_max,
                state.files.was_stream_full(),
            ),
            Some(Err(err)) => {
                outcome.detail = Some(format!("{err:?}"));
                let given_ms = u64::try_from(given.as_millis()).unwrap_or(u64::MAX);
                Err(failure(
                    &err,
                    call,
                    given_ms,
                    outcome,
                    state.files.was_full(),
                    u32::try_from(self.budget.call_bytes() / MIB).unwrap_or(u32::MAX),
                ))
            }
        }
    }

    fn compile(&self, wasm: &[u8]) -> Result<Arc<Loaded>> {
        survey::check(wasm)?;
        let source = || Ok(wasm.to_vec());
        let tool = ToolCode {
            sha256: Sha256::of(wasm),
            source: &source,
            artifact: None,
        };
        let patience = Clock {
            until: Instant::now() + self.options.compile_patience,
            cancelled: Arc::new(AtomicBool::new(false)),
        };
        let machine = self.machine()?;
        let loaded = self.code_cache.load(&machine, &tool, &patience);
        loaded.map_err(|failure| match failure {
            Failure::Busy => {
                Error::unavailable("the component is not compiled yet").hint("try again later")
            }
            other => other.into(),
        })
    }

    fn machine(&self) -> Result<Arc<Machine>> {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(machine) = &*machine {
            return Ok(machine.clone());
        }
        let made = Arc::new(Machine::new(&self.options)?);
        *machine = Some(made.clone());
        Ok(made)
    }
}

/// A tool's answer: its text, its own failure, or an input that does not match its types.
enum Answer {
    Text(String),
    Refused(String),
    BadInput(String),
    /// A program ended, successfully or not. Its result is what it printed.
    Ended(bool),
}

async fn drive(
    store: &mut Store<State>,
    loaded: &Loaded,
    callee: &Callee,
    input: &str,
) -> wasmtime::Result<Answer> {
    // Before anything runs, so that a wrong input costs nothing.
    let arguments = match callee {
        Callee::Typed(_, function) => {
            match parse_input(input).and_then(|it| values::arguments(function, &it)) {
                Ok(arguments) => arguments,
                Err(why) => return Ok(Answer::BadInput(why)),
            }
        }
        Callee::Run(_) | Callee::Describe(_) | Callee::Command(_) => Vec::new(),
    };
    let instance = loaded.pre.instantiate_async(&mut *store).await?;
    match callee {
        Callee::Run(index) => {
            type Returned = (std::result::Result<String, String>,);
            let function = instance.get_typed_func::<(&str,), Returned>(&mut *store, index)?;
            let (answer,) = function.call_async(&mut *store, (input,)).await?;
            Ok(answer.map_or_else(Answer::Refused, Answer::Text))
        }
        Callee::Describe(index) => {
            let function = instance.get_typed_func::<(), (String,)>(&mut *store, index)?;
            let (answer,) = function.call_async(&mut *store, ()).await?;
            Ok(Answer::Text(answer))
        }
        Callee::Command(index) => {
            type Returned = (std::result::Result<(), ()>,);
            let function = instance.get_typed_func::<(), Returned>(&mut *store, index)?;
            let (ended,) = function.call_async(&mut *store, ()).await?;
            Ok(Answer::Ended(ended.is_ok()))
        }
        Callee::Typed(index, ty) => {
            use wasmtime::component::Val;
            let function = instance.get_func(&mut *store, index);
            let function =
                function.ok_or_else(|| wasmtime::format_err!("the component lost its export"))?;
            let mut results = vec![Val::Bool(false); ty.results().len()];
            function
                .call_async(&mut *store, &arguments, &mut results)
                .await?;
            let text = |value: &Option<Box<Val>>| {
                value
                    .as_deref()
                    .map_or_else(|| "null".to_owned(), values::to_text)
            };
            Ok(match results.first() {
                None => Answer::Text("null".to_owned()),
                Some(Val::Result(Ok(it))) => Answer::Text(text(it)),
                Some(Val::Result(Err(it))) => Answer::Refused(text(it)),
                Some(other) => Answer::Text(values::to_text(other)),
            })
        }
    }
}

fn parse_input(input: &str) -> std::result::Result<serde_json::Value, String> {
    serde_json::from_str(input).map_err(|err| format!("invalid JSON input: {err}"))
}

/// Ends when the call has to, for a tool that waits.
async fn watch(clock: &Clock) -> Stop {
    loop {
        if let Err(stop) = clock.check() {
            return stop;
        }
        let left = clock.until.saturating_duration_since(Instant::now());
        tokio::time::sleep(left.min(LOOK)).await;
    }
}

fn to_result(answer: Answer, max: usize, was_full: bool) -> Result<String, Failure> {
    match answer {
        Answer::Text(text) | Answer::Refused(text) if text.len() > max => {
            Err(Failure::OutputTooLarge { max })
        }
        Answer::Text(text) => Ok(text),
        // The tool itself was told "I/O error" by its C library, whatever the cause.
        Answer::Refused(text) if was_full => {
            Err(Failure::Returned(format!("{text} ({NO_SPACE_LEFT})")))
        }
        Answer::Refused(text) => Err(Failure::Returned(text)),
        Answer::BadInput(why) => Err(Failure::BadInput(why)),
        Answer::Ended(_) => Err(Failure::Internal(
            "a component that is not a program ended like one".to_owned(),
        )),
    }
}

/// The code that a program ended with; none if it was stopped.
fn exit_code(result: &wasmtime::Result<Answer>) -> Option<i32> {
    match result {
        Ok(Answer::Ended(is_good)) => Some(i32::from(!is_good)),
        Ok(_) => None,
        Err(err) => err.downcast_ref::<I32Exit>().map(|it| it.0),
    }
}

/// What a program answers: what it printed, or why it failed.
fn program_result(code: i32, outcome: &mut Outcome, max: usize) -> Result<String, Failure> {
    if outcome.stdout.len() > max {
        return Err(Failure::OutputTooLarge { max });
    }
    let text = std::mem::take(&mut outcome.stdout);
    if code == 0 {
        let end = text.strip_suffix('\n').map_or(text.len(), str::len);
        return Ok(text[..end].to_owned());
    }
    let message = [last_words(&outcome.stderr), last_words(&text)];
    let message = message.into_iter().find(|it| !it.is_empty());
    let message = message.map(|it| format!(": {it}")).unwrap_or_default();
    Err(Failure::Returned(format!(
        "the program ended with code {code}{message}"
    )))
}

fn usage(state: &State, fuel: u64, wall: Duration) -> Usage {
    let traffic = &state.net.traffic;
    Usage {
        fuel,
        wall,
        memory_peak_bytes: state.slot.peak(),
        http_requests: traffic.requests.load(Ordering::Relaxed),
        http_bytes_sent: traffic.bytes_sent.load(Ordering::Relaxed),
        http_bytes_received: traffic.bytes_received.load(Ordering::Relaxed),
        bytes_written: state.files.bytes_written(),
        log_lines_dropped: state.log.lines_dropped(),
    }
}

/// Converts an error of the runtime.
fn failure(
    err: &wasmtime::Error,
    call: &RunCall<'_>,
    given_ms: u64,
    outcome: &Outcome,
    was_full: bool,
    memory_mb_max: u32,
) -> Failure {
    let limits = &call.limits;
    match err.downcast_ref::<Stop>() {
        Some(Stop::TimedOut) => return Failure::TimedOut { limit_ms: given_ms },
        Some(Stop::Cancelled) => return Failure::Cancelled,
        Some(Stop::MemoryGrow) => {
            return Failure::MemoryGrow {
                limit_mb: limits.max_memory_mb.min(memory_mb_max),
            };
        }
        Some(Stop::MemoryShared) => return Failure::MemoryTaken,
        Some(Stop::Limit(what)) => return Failure::LimitReached(what.clone()),
        None => {}
    }
    if let Some(I32Exit(code)) = err.downcast_ref::<I32Exit>() {
        return Failure::Exited { code: *code };
    }
    if err
        .downcast_ref::<wasmtime::PoolConcurrencyLimitError>()
        .is_some()
    {
        return Failure::Busy;
    }
    match err.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => Failure::FuelExhausted {
            used: outcome.usage.fuel,
            limit: limits.max_fuel,
            suggested: limits.max_fuel.saturating_mul(4),
        },
        Some(Trap::UnreachableCodeReached) => {
            let message = last_words(&outcome.stderr);
            match was_full {
                true => Failure::QuotaExceeded { message },
                false => Failure::Panicked { message },
            }
        }
        Some(trap) => Failure::Trap(trap.to_string()),
        None => other(err),
    }
}

/// Errors whose types the runtime does not export. A test checks each text.
fn other(err: &wasmtime::Error) -> Failure {
    let cause = err.root_cause().to_string();
    let over = |what: &str| Failure::LimitReached(what.to_owned());
    if cause.contains("fuel allocated for hostcalls") {
        return over("the tool passes too much data in one call");
    }
    for (text, what) in [
        (
            "resource table has no free keys",
            "too many handles at once",
        ),
        ("store handle limit exceeded", "too many handles at once"),
        ("instance count too high", "too many instances"),
        ("memory count too high", "too many memories"),
        ("table count too high", "too many tables"),
    ] {
        if cause.contains(text) {
            return over(what);
        }
    }
    Failure::Trap(code::plain(&cause, MESSAGE_BYTES_MAX))
}

/// The end of what a tool printed to standard error, in one line.
fn last_words(stderr: &str) -> String {
    let lines: Vec<&str> = stderr
        .lines()
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .collect();
    // Rust says what happened, then how to see more of it.
    let lines: Vec<&str> = lines
        .into_iter()
        .filter(|it| !it.starts_with("note: "))
        .collect();
    let kept = lines
        .iter()
        .rev()
        .take(3)
        .rev()
        .copied()
        .collect::<Vec<_>>()
        .join(" ");
    code::plain(&kept, MESSAGE_BYTES_MAX)
}
