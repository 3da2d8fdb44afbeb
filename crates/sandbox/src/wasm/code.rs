//! From a component's bytes to code that can be called, at most once.
//!
//! Code comes from one of three places, in this order: the memory of this process; a file that an
//! earlier process compiled; the compiler. Whoever asks first does the work and the others wait for
//! it, each as long as it likes. Compiling happens on a few threads of its own, so that a component
//! made to keep a compiler busy keeps neither its callers nor anything else waiting.
//!
//! # What is believed
//!
//! A component's bytes are believed if they have the SHA-256 that was recorded when the tool was
//! installed; anything else is an integrity violation, and nothing runs. Compiled code cannot be
//! checked by looking at it: it is machine code, and loading it is as good as running it. So a file is
//! loaded only if its BLAKE3 hash is the one that was recorded, in the registry and not beside the
//! file, and what is hashed is the very buffer that is loaded. A file that does not fit is thrown away
//! and the component is compiled again, from bytes that are believed.

use crate::call::Failure;
use crate::digest::Sha256;
use crate::wasm::engine::Machine;
use crate::wasm::shape::Shape;
use crate::wasm::state::{Clock, State, Stop};
use crate::wasm::survey;
use kenning_core::{Code, Error, Hash, Result};
use kenning_vault::Dir;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wasmtime::component::{Component, InstancePre};

/// A component and what it was compiled to, to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Of the component.
    pub sha256: Sha256,
    /// Of the compiled code.
    pub artifact: Artifact,
}

/// Compiled code: for which engine, and its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    key: String,
    hash: Hash,
}

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

/// All code of this process.
pub(crate) struct Library {
    cache: Option<Dir>,
    loaded_max: usize,
    shelf: Mutex<Shelf>,
    waiting: AtomicUsize,
}

#[derive(Default)]
struct Shelf {
    slots: HashMap<Sha256, Arc<Slot>>,
    clock: u64,
}

/// Where those who wait for one component meet.
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

/// Components that wait for a compiler.
const WAITING_MAX: usize = 64;
/// Largest file of compiled code.
const ARTIFACT_BYTES_MAX: u64 = 512 * 1024 * 1024;
const REASON_BYTES_MAX: usize = 400;
/// How often those who wait look whether they still want to.
const LOOK: Duration = Duration::from_millis(20);

impl Library {
    pub(crate) fn new(cache: Option<Dir>, loaded_max: usize) -> Self {
        Self {
            cache,
            loaded_max: loaded_max.max(1),
            shelf: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// The code of a tool, from wherever it is found first.
    pub(crate) fn load(
        self: &Arc<Self>,
        machine: &Arc<Machine>,
        tool: &ToolCode<'_>,
        patience: &Clock,
    ) -> Result<Arc<Loaded>, Failure> {
        let (slot, is_first) = self.slot(tool.sha256);
        if is_first {
            let begun = Begun {
                library: self.clone(),
                sha256: tool.sha256,
                slot: slot.clone(),
            };
            self.begin(begun, machine, tool);
        }
        slot.wait(patience)
    }

    /// Whether there is code in memory, or a file of it for this engine.
    pub(crate) fn is_compiled(&self, machine: &Machine, tool: &ToolCode<'_>) -> bool {
        if self.shelf().slots.contains_key(&tool.sha256) {
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
        self.shelf().slots.remove(&sha256);
        self.cache
            .as_ref()
            .map_or(Ok(()), |cache| sweep(cache, sha256, None))
    }

    /// Writes code to disk, in place of what other engines made of the same component.
    fn keep(&self, digest: &Digest, artifact: &[u8]) -> Result<()> {
        let Some(cache) = &self.cache else {
            return Ok(());
        };
        let name = digest.file();
        cache.write_private(&name, artifact)?;
        sweep(cache, digest.sha256, Some(&name))
    }

    /// The slot of a component, and whether it is new, so that the caller must do the work.
    fn slot(&self, sha256: Sha256) -> (Arc<Slot>, bool) {
        let mut shelf = self.shelf();
        shelf.clock += 1;
        let now = shelf.clock;
        if let Some(slot) = shelf.slots.get(&sha256) {
            slot.touch(now);
            return (slot.clone(), false);
        }
        shelf.make_room(self.loaded_max);
        let slot = Arc::new(Slot {
            work: Mutex::new(Work::Going),
            changed: Condvar::new(),
            last_used: Mutex::new(now),
        });
        shelf.slots.insert(sha256, slot.clone());
        (slot, true)
    }

    fn begin(&self, begun: Begun, machine: &Arc<Machine>, tool: &ToolCode<'_>) {
        if let Some(loaded) = self.cached(machine, tool) {
            return begun.end(Ok(loaded));
        }
        let wasm = match (tool.source)() {
            Ok(wasm) => wasm,
            Err(err) => return begun.end(Err(missing(err))),
        };
        if Sha256::of(&wasm) != tool.sha256 {
            let what = "the component is not the one that was installed; install the tool again";
            return begun.end(Err(Failure::IntegrityViolation(what.to_owned())));
        }
        if let Err(err) = survey::check(&wasm) {
            return begun.end(Err(err.into()));
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return begun.end(Err(Failure::Busy));
        }
        let machine = machine.clone();
        machine.clone().compilers.spawn(move || {
            let library = begun.library.clone();
            let work = || library.compile(&machine, &wasm, begun.sha256);
            let result = catch_unwind(AssertUnwindSafe(work));
            library.waiting.fetch_sub(1, Ordering::Relaxed);
            let panicked = |_| Err(Failure::Internal("the compiler panicked".to_owned()));
            begun.end(result.unwrap_or_else(panicked));
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
        // Without the file everything works; it is only slower.
        if let Err(err) = self.keep(&loaded.digest, &artifact) {
            tracing::warn!("compiled code of {sha256} is not kept: {err}");
        }
        Ok(loaded)
    }

    /// Code that an earlier process compiled, if it is there and is what was recorded.
    fn cached(&self, machine: &Machine, tool: &ToolCode<'_>) -> Option<Loaded> {
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
                    tracing::warn!("compiled code of {} is not read: {err}", tool.sha256);
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
                tracing::warn!("compiled code of {} is thrown away: {why}", tool.sha256);
                // What cannot be removed is written over when the component is compiled again.
                let _ = cache.remove(&name);
                None
            }
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
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
            // Somebody else was faster.
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
        return Err("it is not what was recorded".to_owned());
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
            let error = Error::invalid(format!("the component needs what this host does not have: {why}"));
            Failure::from(error.hint("tools may import `wasi:cli`, `wasi:filesystem`, `wasi:http`, `wasi:clocks`, `wasi:random` and `kami:tool/host`"))
        })?;
        Ok(Self { pre, shape, digest })
    }
}

impl Digest {
    fn file(&self) -> String {
        format!("{}-{}.cwasm", self.sha256, self.artifact.key)
    }
}

impl Artifact {
    /// Reads what it prints.
    pub fn parse(text: &str) -> Option<Self> {
        let (key, hash) = text.split_once(':')?;
        let plain = key.len() == 16 && key.bytes().all(|it| it.is_ascii_hexdigit());
        let hash = Hash::from_hex(hash).filter(|_| plain)?;
        let key = key.to_owned();
        Some(Self { key, hash })
    }
}

impl fmt::Display for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.key, self.hash)
    }
}

/// Work that somebody waits for. However it ends, they are told.
struct Begun {
    library: Arc<Library>,
    sha256: Sha256,
    slot: Arc<Slot>,
}

impl Begun {
    fn end(self, result: Result<Loaded, Failure>) {
        self.slot.set(match result {
            Ok(loaded) => Work::Done(Arc::new(loaded)),
            Err(failure) => Work::Failed(failure),
        });
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let failed = match &*self.slot.work() {
            Work::Going => true,
            Work::Failed(_) => true,
            Work::Done(_) => false,
        };
        if !failed {
            return;
        }
        // Whoever asks after those who waited tries again: the cause may be gone.
        self.library.shelf().slots.remove(&self.sha256);
        if matches!(*self.slot.work(), Work::Going) {
            let what = "the work on the component was dropped".to_owned();
            self.slot.set(Work::Failed(Failure::Internal(what)));
        }
    }
}

impl Shelf {
    /// Drops what was not used for longest. Calls that run it keep it until they end.
    fn make_room(&mut self, max: usize) {
        while self.slots.len() >= max {
            let idle = self
                .slots
                .iter()
                .filter(|it| !matches!(*it.1.work(), Work::Going));
            let oldest = idle.min_by_key(|it| it.1.used()).map(|it| *it.0);
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

    fn used(&self) -> u64 {
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

/// A text that a component may have had a part in, as one line of bounded length.
pub(crate) fn plain(text: &str, bytes_max: usize) -> String {
    let text = &text[..text.floor_char_boundary(bytes_max)];
    let blank = |it: char| match it.is_control() {
        true => ' ',
        false => it,
    };
    text.chars().map(blank).collect()
}
