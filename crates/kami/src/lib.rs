//! Installed WASM tools: which there are, what they were granted, and running them.
//!
//! A tool is a node: its manifest as it was when it was installed, the hash of its component, who
//! vouches for it. The component lies beside, named by its hash, and so does compiled code. What runs
//! is what the node says, never what a file says today: a file that was changed is an integrity
//! violation. Installing, changing and running are events.
//!
//! `record` is what the node says, `install` what changes it, `run` what reads it.

mod callables;
mod check;
mod compiled;
mod describe;
mod index;
mod install;
mod installed;
mod limits;
mod names;
mod package;
mod pulse;
mod record;
mod run;
mod trust;

pub use check::CheckedPackage;
pub use index::FoundPackage;
pub use install::{InstallOptions, Installation};
pub use package::tool_manifest_wasm;
pub use pulse::Pulse;
pub use record::{ArgumentView, Granted, InstalledTool, ToolFunction};
pub use run::{FileRun, FoundTool, ToolRun, ToolUsage};
pub use trust::{TrustedKey, trusted};

use callables::Callables;
use kenning_core::{Code, Error, Result, Space};
use kenning_kernel::{Caller, Kernel, Scope};
use kenning_sandbox::manifest::TOOL_MEMORY_MB_MAX;
use kenning_sandbox::policy::Policy;
use kenning_sandbox::{PoolSize, Runtime, RuntimeOptions, Sha256};
use kenning_search::Recent;
use kenning_store::{NodeFilter, ReadTx, When};
use kenning_vault::{Dir, Stamp};
use record::Record;
use serde_json::json;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The operator's ceilings, beside the tools.
const POLICY_FILE: &str = "policy.toml";
const POLICY_BYTES_MAX: u64 = 1024 * 1024;

/// Tools that are read at a time.
const PAGE: usize = 500;

/// The kinds of events that change which tools there are.
const CHANGES: [&str; 4] = ["ToolInstalled", "ToolUpdated", "ToolRemoved", "ToolChanged"];

/// How tools are kept and run.
#[derive(Clone, Debug, Default)]
pub struct WasmOptions {
    /// Where components, compiled code and the tools' own directories are; `None` is `kami` in the
    /// data directory.
    pub dir: Option<PathBuf>,
    /// Whether many calls are to come: then instances are kept ready.
    pub pooling: bool,
}

/// What keeps and runs WASM tools.
pub struct Kami {
    kernel: Arc<Kernel>,
    wasm: WasmTools,
}

impl Kami {
    /// Over a kernel.
    pub fn new(kernel: Arc<Kernel>, options: WasmOptions) -> Self {
        Self {
            kernel,
            wasm: WasmTools::new(options),
        }
    }
}

/// What running needs, made when it is first needed.
struct WasmTools {
    options: WasmOptions,
    runtime: OnceLock<Runtime>,
    shelves: Mutex<Recent<Space, Arc<Shelf>>>,
    /// The directory of everything that is not in the store, once it is there.
    place: OnceLock<Dir>,
    /// The operator's ceilings as they were read, and the file's stamp.
    policy: Mutex<Option<(Stamp, Arc<Policy>)>>,
}

/// The tools of a space.
pub(crate) struct Shelf {
    seq: AtomicU64,
    /// Of the log: see [`kenning_audit::Continuity`].
    generation: u64,
    pub(crate) tools: Vec<Arc<Record>>,
    /// What can be called of them, so that a call need not make it.
    callables: Callables,
    /// Whether some could not be read.
    is_partial: bool,
}

impl WasmTools {
    fn new(options: WasmOptions) -> Self {
        Self {
            options,
            runtime: OnceLock::new(),
            shelves: Mutex::default(),
            place: OnceLock::new(),
            policy: Mutex::default(),
        }
    }
}

impl Kami {
    /// The directory of everything that is not in the store, made if it is not there.
    fn wasm_dir(&self) -> Result<Dir> {
        match &self.wasm.options.dir {
            Some(path) => Dir::create(path).map_err(|error| {
                Error::unavailable("the directory that KAMI_DATA_DIR names cannot be used")
                    .hint("set KAMI_DATA_DIR to a directory that can be written")
                    .because(error)
            }),
            None => self.kernel.data().private_subdir("kami"),
        }
    }

    /// Where that directory is, or would be: looking makes nothing.
    fn wasm_place(&self) -> PathBuf {
        let own = || self.kernel.data().path().join("kami");
        self.wasm.options.dir.clone().unwrap_or_else(own)
    }

    /// The components of a space. Each has its own, so that what one removes no other misses.
    fn components(&self, space: &Space) -> Result<Dir> {
        self.wasm_dir()?.private_subdir(&format!("store/{space}"))
    }

    /// What runs components. Nothing of it is made before somebody needs it.
    fn wasm_runtime(&self) -> Result<&Runtime> {
        if let Some(runtime) = self.wasm.runtime.get() {
            return Ok(runtime);
        }
        let pool = PoolSize {
            calls: 16,
            max_memory_mb: TOOL_MEMORY_MB_MAX,
        };
        let options = RuntimeOptions {
            cache: Some(self.wasm_dir()?.private_subdir("cache")?),
            pooling: self.wasm.options.pooling.then_some(pool),
            ..RuntimeOptions::default()
        };
        Ok(self.wasm.runtime.get_or_init(|| Runtime::new(options)))
    }

    /// The operator's ceilings; without a file there are none.
    fn wasm_policy(&self) -> Result<Arc<Policy>> {
        let dir = match self.wasm.place.get() {
            Some(dir) => dir,
            None => match Dir::open(&self.wasm_place()) {
                Ok(dir) => self.wasm.place.get_or_init(|| dir),
                Err(error) if error.code == Code::NotFound => return Ok(Arc::default()),
                Err(error) => return Err(error),
            },
        };
        // Taken before the text is read: a file that changes in between is read again next time.
        let stamp = match dir.stamp(POLICY_FILE) {
            Ok(stamp) => stamp,
            Err(error) if error.code == Code::NotFound => return Ok(Arc::default()),
            Err(error) => return Err(error),
        };
        let lock = || {
            let policy = self.wasm.policy.lock();
            policy.unwrap_or_else(PoisonError::into_inner)
        };
        if let Some((known, policy)) = &*lock()
            && *known == stamp
        {
            return Ok(Arc::clone(policy));
        }
        let text = self.wasm_policy_text()?;
        let policy = Arc::new(Policy::parse(text.as_deref().unwrap_or_default())?);
        *lock() = Some((stamp, Arc::clone(&policy)));
        Ok(policy)
    }

    /// What the operator wrote.
    pub fn wasm_policy_text(&self) -> Result<Option<String>> {
        let read =
            Dir::open(&self.wasm_place()).and_then(|dir| dir.read(POLICY_FILE, POLICY_BYTES_MAX));
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) if error.code == Code::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        String::from_utf8(bytes).map(Some).map_err(|_| {
            Error::invalid(format!("`{POLICY_FILE}` is not UTF-8 text")).hint("write it as TOML")
        })
    }

    /// Whether a text can be the operator's ceilings.
    pub fn check_wasm_policy(&self, text: &str) -> Result<()> {
        Policy::parse(text).map(drop)
    }

    /// Puts the operator's ceilings in place, if they can be read.
    pub fn set_wasm_policy(&self, caller: &Caller, text: &str) -> Result<()> {
        caller.principal.require(Scope::Admin)?;
        Policy::parse(text)?;
        let dir = self.wasm_dir()?;
        let sha256 = Sha256::of(text.as_bytes()).to_string();
        let data = json!({ "sha256": sha256, "text": text });
        self.kernel
            .log()
            .write(&caller.principal.space, move |tx| {
                tx.record("ToolPolicySet", data).map(drop)
            })?;
        dir.write(POLICY_FILE, text.as_bytes())
    }

    /// Where the operator's file is.
    pub fn wasm_policy_path(&self) -> PathBuf {
        self.wasm_place().join(POLICY_FILE)
    }

    /// The tools of a space as they are in this snapshot.
    fn shelf_in(&self, space: &Space, tx: &dyn ReadTx) -> Result<Arc<Shelf>> {
        let lock = || {
            self.wasm
                .shelves
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let head = tx.head()?;
        let generation = self
            .kernel
            .continuity()
            .generation(space, tx, head.as_ref())?;
        let head = head.map_or(0, |it| it.seq);
        let known = lock().get(space).cloned();
        if let Some(known) = known
            && known.generation >= generation
            && !changed_since(tx, known.seq.load(Ordering::Relaxed), head)?
        {
            known.seq.fetch_max(head, Ordering::Relaxed);
            return Ok(known);
        }
        let filter = NodeFilter {
            kinds: vec![kenning_core::Kind::Tool],
            ..NodeFilter::default()
        };
        let (mut tools, mut is_partial) = (Vec::new(), false);
        let mut after = None;
        loop {
            let page = tx.nodes(&filter, When::Now, after, PAGE)?;
            after = page.last().map(|it| it.id);
            for node in &page {
                match Record::of(node) {
                    Ok(record) => tools.push(Arc::new(record)),
                    // One tool that cannot be read never hides the others.
                    Err(error) => {
                        is_partial = true;
                        tracing::warn!("the tool `{}` cannot be read: {error}", node.key);
                    }
                }
            }
            if page.len() < PAGE {
                break;
            }
        }
        tools.sort_by(|a, b| a.id.cmp(&b.id));
        let shelf = Arc::new(Shelf {
            seq: AtomicU64::new(head),
            generation,
            callables: Callables::of(&tools, &names::retired(tx)?),
            tools,
            is_partial,
        });
        lock().insert(space.clone(), Arc::clone(&shelf));
        Ok(shelf)
    }

    pub(crate) fn shelf(&self, space: &Space) -> Result<Arc<Shelf>> {
        self.kernel.log().read(space, |tx| self.shelf_in(space, tx))
    }
}

fn changed_since(tx: &dyn ReadTx, seq: u64, head: u64) -> Result<bool> {
    let mut at = seq;
    while at < head {
        let page = tx.events_after(at, 1_000)?;
        let Some(last) = page.last() else { break };
        at = last.seq;
        if page.iter().any(|it| CHANGES.contains(&it.kind.as_str())) {
            return Ok(true);
        }
    }
    Ok(false)
}
