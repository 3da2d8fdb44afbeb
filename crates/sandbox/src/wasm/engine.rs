//! The one engine of a process: how it compiles, what it links, and the clock that interrupts it.

use crate::call::LogLevel;
use crate::wasm::state::State;
use crate::wasm::{PoolSize, RuntimeOptions};
use crate::wasm::{files, headers};
use kenning_core::{Error, Hash, Result};
use std::hash::{Hash as _, Hasher};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wasmtime::component::{ComponentType, Lift, Linker};
use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, StoreContextMut,
    WasmFeatures,
};

/// The engine and its threads, created when they are first needed.
pub(crate) struct Machine {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    /// Identifies the engine that compiled code belongs to.
    pub(crate) key: String,
    pub(crate) ticker: Ticker,
    pub(crate) compilers: rayon::ThreadPool,
    io: Option<tokio::runtime::Runtime>,
}

/// How often running tools are interrupted. A call ends at most this much after its deadline.
const TICK: Duration = Duration::from_millis(5);
/// The stack of a compiler thread; compiler and parser recurse with the depth of their input.
const COMPILER_STACK_BYTES: usize = 8 * 1024 * 1024;
/// Limits of one call, as in [`Limits`](crate::Limits).
const CORE_INSTANCES_MAX: u32 = 256;
const MEMORIES_MAX: u32 = 8;
const TABLES_MAX: u32 = 64;
/// Threads for file functions and requests of all calls together.
const BLOCKING_THREADS_MAX: usize = 64;

impl Machine {
    pub(crate) fn new(options: &RuntimeOptions) -> Result<Self> {
        let failed = |err: wasmtime::Error| {
            Error::internal("the WASM engine could not be created")
                .because(std::io::Error::other(format!("{err:#}")))
        };
        let engine = match options.pooling {
            Some(pool) => Engine::new(&config(Some(pool))).or_else(|err| {
                // A pool reserves much address space, which some machines forbid.
                tracing::warn!("instances are not pooled: {err:#}");
                Engine::new(&config(None))
            }),
            None => Engine::new(&config(None)),
        };
        let engine = engine.map_err(failed)?;
        let linker = linker(&engine).map_err(failed)?;
        let key = key(&engine);
        let ticker = Ticker::start(&engine)?;
        let compilers = rayon::ThreadPoolBuilder::new()
            .num_threads(options.compile_threads.max(1))
            .thread_name(|idx| format!("wasm-compiler-{idx}"))
            .stack_size(COMPILER_STACK_BYTES)
            .build();
        let compilers = compilers.map_err(|err| {
            Error::unavailable("the compiler threads could not be started").because(err)
        })?;
        let io = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_name("wasm-io")
            .enable_all()
            .build();
        let io = io.map_err(|err| {
            Error::unavailable("the I/O thread could not be started").because(err)
        })?;
        Ok(Self {
            engine,
            linker,
            key,
            ticker,
            compilers,
            io: Some(io),
        })
    }

    /// Runs a future on this thread; timers and file functions are driven by others.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.io.as_ref().map(|io| io.handle().block_on(future))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Waiting for an abandoned request could take its whole time limit.
        if let Some(io) = self.io.take() {
            io.shutdown_background();
        }
    }
}

fn config(pool: Option<PoolSize>) -> Config {
    let mut config = Config::new();
    // Code that was compiled for a pool must run without one too: `serve` and `exec` share one cache. So
    // nothing but the allocation strategy may differ.
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .wasm_component_model(true)
        .concurrency_support(false)
        .shared_memory(false);
    for feature in [
        WasmFeatures::THREADS,
        WasmFeatures::SHARED_EVERYTHING_THREADS,
        WasmFeatures::MEMORY64,
        WasmFeatures::GC,
        WasmFeatures::EXCEPTIONS,
        WasmFeatures::LEGACY_EXCEPTIONS,
        WasmFeatures::STACK_SWITCHING,
        WasmFeatures::CUSTOM_PAGE_SIZES,
        WasmFeatures::WIDE_ARITHMETIC,
        WasmFeatures::RELAXED_SIMD,
        WasmFeatures::CM_ASYNC,
    ] {
        config.wasm_features(feature, false);
    }
    if let Some(pool) = pool {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pooling(pool)));
    }
    config
}

fn pooling(pool: PoolSize) -> PoolingAllocationConfig {
    let calls = pool.calls.max(1);
    let mut config = PoolingAllocationConfig::new();
    config
        .total_component_instances(calls)
        // As many as all calls together may use, so that no call lacks one. Unused ones cost address
        // space only.
        .total_core_instances(calls.saturating_mul(CORE_INSTANCES_MAX))
        .total_memories(calls.saturating_mul(MEMORIES_MAX))
        .total_tables(calls.saturating_mul(TABLES_MAX))
        .total_stacks(calls)
        .max_core_instances_per_component(CORE_INSTANCES_MAX)
        .max_memories_per_component(MEMORIES_MAX)
        .max_tables_per_component(TABLES_MAX)
        .max_memories_per_module(MEMORIES_MAX)
        .max_tables_per_module(TABLES_MAX)
        .max_component_instance_size(4 * 1024 * 1024)
        .max_core_instance_size(4 * 1024 * 1024)
        .table_elements(100_000)
        .max_memory_size(pool.max_memory_mb as usize * 1024 * 1024)
        .max_unused_warm_slots(calls);
    config
}

/// A name for everything about an engine that compiled code depends on.
fn key(engine: &Engine) -> String {
    #[derive(Default)]
    struct Collected(Vec<u8>);
    impl Hasher for Collected {
        fn write(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut collected = Collected::default();
    engine.precompile_compatibility_hash().hash(&mut collected);
    let mut key = Hash::of(&collected.0).to_string();
    key.truncate(16);
    key
}

/// As in `enum log-level` of `kami:tool/host`.
#[derive(Clone, Copy, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "values come from tools")]
enum Level {
    #[component(name = "trace")]
    Trace,
    #[component(name = "debug")]
    Debug,
    #[component(name = "info")]
    Info,
    #[component(name = "warn")]
    Warn,
    #[component(name = "error")]
    Error,
}

impl From<Level> for LogLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Trace => Self::Trace,
            Level::Debug => Self::Debug,
            Level::Info => Self::Info,
            Level::Warn => Self::Warn,
            Level::Error => Self::Error,
        }
    }
}

fn linker(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    linker.allow_shadowing(true);
    files::link(&mut linker)?;
    headers::link(&mut linker)?;
    linker.allow_shadowing(false);
    let mut host = linker.instance("kami:tool/host@0.1.0")?;
    host.func_wrap(
        "log",
        |store: StoreContextMut<'_, State>, (level, message): (Level, String)| {
            store.data().log.line(level.into(), &message);
            Ok(())
        },
    )?;
    Ok(linker)
}

/// The thread that interrupts tools. It is an OS thread and not a task, because tasks would wait for
/// the threads that tools keep busy. It sleeps while nothing runs.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    beat: Mutex<Beat>,
    changed: Condvar,
}

#[derive(Default)]
struct Beat {
    running: usize,
    closed: bool,
}

/// While one of these exists, running tools are interrupted.
pub(crate) struct Running(Arc<Shared>);

impl Ticker {
    fn start(engine: &Engine) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let (own, engine) = (shared.clone(), engine.weak());
        let thread = std::thread::Builder::new().name("wasm-ticker".to_owned());
        let started = thread.spawn(move || {
            while own.wait_until_running() {
                std::thread::sleep(TICK);
                match engine.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => return,
                }
            }
        });
        started.map_err(|err| {
            Error::unavailable("the thread that interrupts tools could not be started").because(err)
        })?;
        Ok(Self { shared })
    }

    pub(crate) fn run(&self) -> Running {
        self.shared.beat().running += 1;
        self.shared.changed.notify_one();
        Running(self.shared.clone())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.beat().closed = true;
        self.shared.changed.notify_one();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.beat().running -= 1;
    }
}

impl Shared {
    fn beat(&self) -> MutexGuard<'_, Beat> {
        self.beat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False on shutdown.
    fn wait_until_running(&self) -> bool {
        let idle = |beat: &mut Beat| beat.running == 0 && !beat.closed;
        let beat = self.changed.wait_while(self.beat(), idle);
        !beat.unwrap_or_else(PoisonError::into_inner).closed
    }
}
