//! The state of one call: its capabilities, its counters, and why it was stopped.

use crate::call::{FsAccess, Limits, LogLevel, LogLine, RunCall};
use crate::wasm::budget::Slot;
use crate::wasm::files::Files;
use crate::wasm::headers::Kept;
use crate::wasm::net::Net;
use crate::wasm::stdio::Tail;
use kenning_core::Result;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use wasmtime::ResourceLimiter;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

pub(crate) struct State {
    pub(crate) wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    pub(crate) http: WasiHttpCtx,
    pub(crate) net: Net,
    pub(crate) files: Files,
    pub(crate) meter: Meter,
    pub(crate) slot: Arc<Slot>,
    pub(crate) kept: Kept,
    pub(crate) log: Log,
    pub(crate) clock: Clock,
    pub(crate) stdout: Tail,
    pub(crate) stderr: Tail,
}

/// The deadline and the cancellation of a call.
#[derive(Clone)]
pub(crate) struct Clock {
    pub(crate) until: Instant,
    pub(crate) cancelled: Arc<AtomicBool>,
}

impl Clock {
    pub(crate) fn check(&self) -> std::result::Result<(), Stop> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Stop::Cancelled);
        }
        match Instant::now() < self.until {
            true => Ok(()),
            false => Err(Stop::TimedOut),
        }
    }
}

/// Why the host stopped a tool. It travels as the cause of a trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    TimedOut,
    Cancelled,
    MemoryGrow,
    MemoryShared,
    Limit(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("execution timed out"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::MemoryGrow => f.write_str("memory grow failure"),
            Self::MemoryShared => f.write_str("the memory that all tools share is used up"),
            Self::Limit(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Stop {}

impl State {
    pub(crate) fn new(
        call: &RunCall<'_>,
        is_command: bool,
        clock: Clock,
        log: Log,
        net: Net,
        files: Files,
        slot: Arc<Slot>,
    ) -> Self {
        let limits = &call.limits;
        let (stdout, stderr) = (
            Tail::new(limits.stdio_bytes_max),
            Tail::new(limits.stdio_bytes_max),
        );
        let mut wasi = WasiCtx::builder();
        wasi.stdout(stdout.clone())
            .stderr(stderr.clone())
            .envs(&call.capabilities.env)
            .max_random_size(limits.random_bytes_max)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false);
        if is_command {
            wasi.stdin(MemoryInputPipe::new(call.input.to_owned()));
        }
        if !matches!(call.capabilities.fs, FsAccess::None) {
            wasi.initial_cwd("/");
        }
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles_max);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(limits.http_header_bytes_max);
        Self {
            wasi: wasi.build(),
            table,
            http,
            net,
            files,
            meter: Meter::new(limits, Arc::clone(&slot)),
            slot,
            kept: Kept::default(),
            log,
            clock,
            stdout,
            stderr,
        }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            hooks: &mut self.net,
            table: &mut self.table,
            ctx: &mut self.http,
        }
    }
}

/// Counts the memories, tables and instances of a tool.
pub(crate) struct Meter {
    limits: Limits,
    slot: Arc<Slot>,
    /// What was counted last, to be undone if growing fails.
    last: u64,
}

/// The size of an element of a table.
const ELEMENT_BYTES: usize = 8;

impl Meter {
    fn new(limits: &Limits, slot: Arc<Slot>) -> Self {
        Self {
            limits: *limits,
            slot,
            last: 0,
        }
    }

    /// Counts memory for a memory or table that grows. Over its declared maximum, growing fails and the
    /// tool goes on; over the call's limit, the call ends.
    fn grow(&mut self, more: usize, is_over_maximum: bool) -> wasmtime::Result<bool> {
        let more = more as u64;
        if is_over_maximum && more <= self.slot.left() {
            return Ok(false);
        }
        self.slot.grow(more).map_err(Stop::from)?;
        self.last = more;
        Ok(true)
    }

    fn take_back(&mut self) {
        self.slot.shrink(std::mem::take(&mut self.last));
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let is_over_maximum = maximum.is_some_and(|it| desired > it);
        self.grow(desired.saturating_sub(current), is_over_maximum)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.take_back();
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let max = self.limits.table_elements_max;
        if desired > max {
            let what = format!("a table of {desired} elements; at most {max} are allowed");
            return Err(Stop::Limit(what).into());
        }
        let more = desired.saturating_sub(current);
        let is_over_maximum = maximum.is_some_and(|it| desired > it);
        self.grow(more.saturating_mul(ELEMENT_BYTES), is_over_maximum)
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.take_back();
        Ok(())
    }

    fn instances(&self) -> usize {
        self.limits.instances_max
    }

    fn tables(&self) -> usize {
        self.limits.tables_max
    }

    fn memories(&self) -> usize {
        self.limits.memories_max
    }
}

type Listener = Arc<dyn Fn(LogLine) + Send + Sync>;

/// Passes on what a tool logs, up to a volume. Clones share it.
#[derive(Clone)]
pub(crate) struct Log {
    volume: Arc<Mutex<Volume>>,
    listener: Option<Listener>,
}

struct Volume {
    left: usize,
    lines_dropped: u64,
}

/// Longest line.
const LINE_BYTES_MAX: usize = 8 * 1024;
/// What a line costs besides its text, so that empty ones are not free.
const LINE_BYTES: usize = 16;

impl Log {
    pub(crate) fn new(max: usize, listener: Option<Listener>) -> Self {
        let volume = Volume {
            left: max,
            lines_dropped: 0,
        };
        Self {
            volume: Arc::new(Mutex::new(volume)),
            listener,
        }
    }

    pub(crate) fn lines_dropped(&self) -> u64 {
        self.volume().lines_dropped
    }

    pub(crate) fn line(&self, level: LogLevel, message: &str) {
        let end = message.floor_char_boundary(LINE_BYTES_MAX);
        if !self.take(end + LINE_BYTES) {
            return;
        }
        // Control characters would break the line, so they are replaced.
        let plain = |c: char| match c.is_control() {
            true => ' ',
            false => c,
        };
        self.say(level, message[..end].chars().map(plain).collect());
    }

    /// False if the line is dropped. The first dropped line is replaced by a warning.
    fn take(&self, cost: usize) -> bool {
        let mut volume = self.volume();
        match volume.left.checked_sub(cost) {
            Some(left) => {
                volume.left = left;
                true
            }
            None => {
                volume.left = 0;
                volume.lines_dropped += 1;
                let is_first = volume.lines_dropped == 1;
                drop(volume);
                if is_first {
                    let message = "the tool logs too much; further lines are dropped".to_owned();
                    self.say(LogLevel::Warn, message);
                }
                false
            }
        }
    }

    fn say(&self, level: LogLevel, message: String) {
        if let Some(listener) = &self.listener {
            listener(LogLine { level, message });
        }
    }

    fn volume(&self) -> MutexGuard<'_, Volume> {
        self.volume.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The directory that a call was given, opened.
pub(crate) fn files(access: &FsAccess, ledgers: &crate::wasm::files::Ledgers) -> Result<Files> {
    match access {
        FsAccess::None => Ok(Files::none()),
        FsAccess::ReadOnly(dir) => Files::read_only(dir),
        FsAccess::Sandbox { dir, quota } => Files::sandbox(ledgers.of(dir, *quota)?),
    }
}
