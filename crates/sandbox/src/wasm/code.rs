//! Compiles components, each at most once.
//!
//! Code comes from one of three places, in this order: the memory of this process; a file that an
//! earlier process compiled; the compiler. The first caller starts the work and the others wait for
//! it, each up to its own deadline. Compiling happens on a few separate threads, so that a component
//! made to keep a compiler busy blocks neither its callers nor anything else.
//!
//! # What is believed
//!
//! A component's bytes are trusted if they have the SHA-256 that was recorded when the tool was
//! installed; anything else is an integrity violation, and nothing runs. Compiled code cannot be
//! checked by looking at it: it is machine code, and loading it is as good as running it. So a file is
//! loaded only if its BLAKE3 hash is the one that was recorded, in the registry and not beside the
//! file, and what is hashed is the very buffer that is loaded. A file with another hash is discarded
//! and the component is compiled again, from trusted bytes.

use crate::call::Failure;
use crate::digest::{Artifact, Digest, Sha256};
use crate::wasm::engine::Machine;
use crate::wasm::shape::Shape;
use crate::wasm::state::{Clock, State, Stop};
use crate::wasm::survey;
use kenning_core::{Code, Error, Hash, Result};
use kenning_vault::Dir;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wasmtime::component::{Component, InstancePre};

/// A tool's code as the registry knows it.
pub struct ToolCode<'a> {
    /// Of the component that was installed.
    pub sha256: Sha256,
    /// Reads the component. Called only if it must be compiled.
    pub source: &'a dyn Fn() -> Result<Vec<u8>>,
    /// What was recorded when it was compiled.
    pub artifact: Option<Artifact>,
}

/// Code that can be called.
pub(crate) struct Loaded {
    pub(crate) pre: InstancePre<State>,
    pub(crate) shape: Shape,
    pub(crate) digest: Digest,
}

/// The compiled code of this process.
pub(crate) struct CodeCache {
    cache: Option<Dir>,
    loaded_max: usize,
    table: Mutex<SlotTable>,
    waiting: AtomicUsize,
}

#[derive(Default)]
struct SlotTable {
    slots: HashMap<Sha256, Arc<Slot>>,
    clock: u64,
}

/// The state of one component, on which callers wait.
struct Slot {
    work: Mutex<Work>,
    changed: Condvar,
    last_used: Mutex<u64>,
}

enum Work {
    Going,
    Done(Arc<Loaded>),
    Failed(Failure),
}

/// The most components that wait for a compiler.
const WAITING_MAX: usize = 64;
/// Largest file of compiled code.
const ARTIFACT_BYTES_MAX: u64 = 512 * 1024 * 1024;
const REASON_BYTES_MAX: usize = 400;
/// How often waiting callers check their deadline.
const LOOK: Duration = Duration::from_millis(20);

impl CodeCache {
    pub(crate) fn new(cache: Option<Dir>, loaded_max: usize) -> Self {
        Self {
            cache,
            loaded_max: loaded_max.max(1),
            table: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// The code of a tool, from memory, from the cache or from the compiler.
    pub(crate) fn load(
        self: &Arc<Self>,
        machine: &Arc<Machine>,
        tool: &ToolCode<'_>,
        patience: &Clock,
    ) -> Result<Arc<Loaded>, Failure> {
        let (slot, is_first) = self.slot(tool.sha256);
        if is_first {
            let compilation = Compilation {
                code_cache: self.clone(),
                sha256: tool.sha256,
                slot: slot.clone(),
            };
            self.begin(compilation, machine, tool);
        }
        slot.wait(patience)
    }

    /// Whether there is code in memory, or a file of it for this engine.
    pub(crate) fn is_compiled(&self, machine: &Machine, tool: &ToolCode<'_>) -> bool {
        if self.table().slots.contains_key(&tool.sha256) {
            return true;
        }
        let (Some(cache), Some(artifact)) = (&self.cache, tool.artifact.clone()) else {
            return false;
        };
        let digest = Digest {
            sha256: tool.sha256,
            artifact,
        };
        digest.artifact.key == machine.key && cache.exists(&digest.file()).unwrap_or(false)
    }

    /// Drops the code of a component from memory and from disk.
    pub(crate) fn forget(&self, sha256: Sha256) -> Result<()> {
        self.table().slots.remove(&sha256);
        self.cache
            .as_ref()
            .map_or(Ok(()), |cache| sweep(cache, sha256, None))
    }

    /// Writes code to disk, replacing that of other engines for the same component.
    fn keep(&self, digest: &Digest, artifact: &[u8]) -> Result<()> {
        let Some(cache) = &self.cache else {
            return Ok(());
        };
        let name = digest.file();
        cache.write_private(&name, artifact)?;
        sweep(cache, digest.sha256, Some(&name))
    }

    /// The slot of a component, and whether it is new, so that the caller must compile.
    fn slot(&self, sha256: Sha256) -> (Arc<Slot>, bool) {
        let mut table = self.table();
        table.clock += 1;
        let now = table.clock;
        if let Some(slot) = table.slots.get(&sha256) {
            slot.touch(now);
            return (slot.clone(), false);
        }
        table.make_room(self.loaded_max);
        let slot = Arc::new(Slot {
            work: Mutex::new(Work::Going),
            changed: Condvar::new(),
            last_used: Mutex::new(now),
        });
        table.slots.insert(sha256, slot.clone());
        (slot, true)
    }

    fn begin(&self, compilation: Compilation, machine: &Arc<Machine>, tool: &ToolCode<'_>) {
        if let Some(loaded) = self.load_cached(machine, tool) {
            return compilation.end(Ok(loaded));
        }
        let wasm = match (tool.source)() {
            Ok(wasm) => wasm,
            Err(err) => return compilation.end(Err(missing(err))),
        };
        if Sha256::of(&wasm) != tool.sha256 {
            let what = "the component is not the one that was installed; install the tool again";
            return compilation.end(Err(Failure::IntegrityViolation(what.to_owned())));
        }
        if let Err(err) = survey::check(&wasm) {
            return compilation.end(Err(err.into()));
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return compilation.end(Err(Failure::Busy));
        }
        let machine = machine.clone();
        machine.clone().compilers.spawn(move || {
            let code_cache = compilation.code_cache.clone();
            let work = || code_cache.compile(&machine, &wasm, compilation.sha256);
            let result = catch_unwind(AssertUnwindSafe(work));
            code_cache.waiting.fetch_sub(1, Ordering::Relaxed);
            let panicked = |_| Err(Failure::Internal("the compiler panicked".to_owned()));
            compilation.end(result.unwrap_or_else(panicked));
        });
    }

    fn compile(&self, machine: &Machine, wasm: &[u8], sha256: Sha256) -> Result<Loaded, Failure> {
        let component = Component::from_binary(&machine.engine, wasm).map_err(|err| {
            let why = reason(&err);
            Failure::from(Error::invalid(format!(
                "the component cannot be compiled: {why}"
            )))
        })?;
        let artifact = component.serialize();
        let artifact = artifact.map_err(|err| Failure::Internal(format!("{err:#}")))?;
        let digest = Digest {
            sha256,
            artifact: Artifact {
                key: machine.key.clone(),
                hash: Hash::of(&artifact),
            },
        };
        let loaded = Loaded::new(machine, &component, digest)?;
        // Everything works without the file, only more slowly.
        if let Err(err) = self.keep(&loaded.digest, &artifact) {
            tracing::warn!("compiled code of {sha256} could not be cached: {err}");
        }
        Ok(loaded)
    }

    /// Code that an earlier process compiled, if it is there and is what was recorded.
    fn load_cached(&self, machine: &Machine, tool: &ToolCode<'_>) -> Option<Loaded> {
        let (cache, artifact) = (self.cache.as_ref()?, tool.artifact.clone()?);
        let digest = Digest {
            sha256: tool.sha256,
            artifact,
        };
        if digest.artifact.key != machine.key {
            return None;
        }
        let name = digest.file();
        let bytes = match cache.read(&name, ARTIFACT_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(err) => {
                if err.code != Code::NotFound {
                    tracing::warn!("cached code of {} could not be read: {err}", tool.sha256);
                }
                return None;
            }
        };
        let loaded = deserialize(machine, &bytes, &digest.artifact.hash);
        let loaded =
            loaded.and_then(|it| Loaded::new(machine, &it, digest).map_err(|err| err.to_string()));
        match loaded {
            Ok(loaded) => Some(loaded),
            Err(why) => {
                tracing::warn!("cached code of {} was discarded: {why}", tool.sha256);
                // If it cannot be removed, it is overwritten when the component is compiled again.
                let _ = cache.remove(&name);
                None
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, SlotTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes all code of a component but one file.
fn sweep(cache: &Dir, sha256: Sha256, but: Option<&str>) -> Result<()> {
    let prefix = format!("{sha256}-");
    for entry in cache.list("")? {
        if !entry.name.starts_with(&prefix) || Some(entry.name.as_str()) == but {
            continue;
        }
        match cache.remove(&entry.name) {
            // Another process has already removed it.
            Err(err) if err.code == Code::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

/// Loads machine code if it has this hash.
#[expect(
    unsafe_code,
    reason = "loading compiled code is unsafe however it is done; this is the only place"
)]
fn deserialize(machine: &Machine, bytes: &[u8], hash: &Hash) -> Result<Component, String> {
    if Hash::of(bytes) != *hash {
        return Err("its hash is not the recorded one".to_owned());
    }
    // SAFETY: `deserialize` demands bytes that `Component::serialize` made and nobody changed. The
    // hash is of this very buffer, which nobody else can write to, and it was recorded by whoever
    // compiled the component, in the registry: changing the file does not change the record. That
    // the engine is a compatible one is checked by the runtime itself, and by the key in the name.
    let component = unsafe { Component::deserialize(&machine.engine, bytes) };
    component.map_err(|err| format!("{err:#}"))
}

impl Loaded {
    fn new(machine: &Machine, component: &Component, digest: Digest) -> Result<Self, Failure> {
        let shape = Shape::of(component, &machine.engine)?;
        let pre = machine.linker.instantiate_pre(component).map_err(|err| {
            let why = reason(&err);
            let error = Error::invalid(format!("the component imports something that this host does not provide: {why}"));
            Failure::from(error.hint("tools may import `wasi:cli`, `wasi:filesystem`, `wasi:http`, `wasi:clocks`, `wasi:random` and `kami:tool/host`"))
        })?;
        Ok(Self { pre, shape, digest })
    }
}

/// A compilation in progress. However it ends, the waiting callers are notified.
struct Compilation {
    code_cache: Arc<CodeCache>,
    sha256: Sha256,
    slot: Arc<Slot>,
}

impl Compilation {
    fn end(self, result: Result<Loaded, Failure>) {
        self.slot.set(match result {
            Ok(loaded) => Work::Done(Arc::new(loaded)),
            Err(failure) => Work::Failed(failure),
        });
    }
}

impl Drop for Compilation {
    fn drop(&mut self) {
        let failed = match &*self.slot.work() {
            Work::Going => true,
            Work::Failed(_) => true,
            Work::Done(_) => false,
        };
        if !failed {
            return;
        }
        // Later callers try again: the cause may be gone.
        self.code_cache.table().slots.remove(&self.sha256);
        if matches!(*self.slot.work(), Work::Going) {
            let what = "the compilation was abandoned".to_owned();
            self.slot.set(Work::Failed(Failure::Internal(what)));
        }
    }
}

impl SlotTable {
    /// Drops the least recently used code. Running calls keep theirs until they end.
    fn make_room(&mut self, max: usize) {
        while self.slots.len() >= max {
            let idle = self
                .slots
                .iter()
                .filter(|it| !matches!(*it.1.work(), Work::Going));
            let oldest = idle.min_by_key(|it| it.1.last_used()).map(|it| *it.0);
            match oldest {
                Some(sha256) => self.slots.remove(&sha256),
                None => return,
            };
        }
    }
}

impl Slot {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, work: Work) {
        *self.work() = work;
        self.changed.notify_all();
    }

    fn touch(&self, now: u64) {
        *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn last_used(&self) -> u64 {
        *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, patience: &Clock) -> Result<Arc<Loaded>, Failure> {
        let mut work = self.work();
        loop {
            match &*work {
                Work::Done(loaded) => return Ok(loaded.clone()),
                Work::Failed(failure) => return Err(failure.clone()),
                Work::Going => {}
            }
            match patience.check() {
                Ok(()) => {}
                Err(Stop::Cancelled) => return Err(Failure::Cancelled),
                Err(_) => return Err(Failure::Busy),
            }
            let left = patience.until.saturating_duration_since(Instant::now());
            let waited = self.changed.wait_timeout(work, left.min(LOOK));
            work = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn missing(mut err: Error) -> Failure {
    if err.code == Code::NotFound {
        err.message = format!("WASM file missing: {}", err.message);
    }
    err.into()
}

/// The causes in one line.
pub(crate) fn reason(err: &wasmtime::Error) -> String {
    plain(&format!("{err:#}"), REASON_BYTES_MAX)
}

/// A text that a component may influence, as one line of bounded length.
pub(crate) fn plain(text: &str, bytes_max: usize) -> String {
    let text = &text[..text.floor_char_boundary(bytes_max)];
    let blank = |c: char| match c.is_control() {
        true => ' ',
        false => c,
    };
    text.chars().map(blank).collect()
}
