//! Installed WASM tools: their records, their permissions, and running them.
//!
//! A tool is a node: its manifest at the time of installation, the hash of its component, its
//! signature. The component is a file named by its hash, and so is compiled code. The node decides
//! what runs: a file that was changed is an integrity violation. Installing, changing and running are
//! events.
//!
//! `record` is the node's content, `install` changes it, `run` reads it.

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
pub use run::{FileRun, FoundTool, ToolRun, ToolUsage, ToolsStamp};
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

/// The operator's policy, in the same directory.
const POLICY_FILE: &str = "policy.toml";
const POLICY_BYTES_MAX: u64 = 1024 * 1024;

/// The number of tools that are read at a time.
const PAGE: usize = 500;

/// The kinds of events that change the tools.
const CHANGES: [&str; 4] = ["ToolInstalled", "ToolUpdated", "ToolRemoved", "ToolChanged"];

/// How tools are kept and run.
#[derive(Clone, Debug, Default)]
pub struct WasmOptions {
    /// The directory of components, compiled code and the tools' own directories; `None` is `kami` in
    /// the data directory.
    pub dir: Option<PathBuf>,
    /// Whether many calls are expected: then instances are kept ready.
    pub pooling: bool,
}

/// Keeps and runs WASM tools.
pub struct Kami {
    kernel: Arc<Kernel>,
    wasm: WasmTools,
}

impl Kami {
    /// Uses a kernel.
    pub fn new(kernel: Arc<Kernel>, options: WasmOptions) -> Self {
        Self {
            kernel,
            wasm: WasmTools::new(options),
        }
    }
}

/// What running needs, made on first use.
struct WasmTools {
    options: WasmOptions,
    runtime: OnceLock<Runtime>,
    by_space: Mutex<Recent<Space, Arc<SpaceTools>>>,
    /// The directory of everything that is not in the store, once it exists.
    place: OnceLock<Dir>,
    /// The operator's policy as it was read, and the file's stamp.
    policy: Mutex<Option<(Stamp, Arc<Policy>)>>,
}

/// The tools of a space.
pub(crate) struct SpaceTools {
    seq: AtomicU64,
    /// The generation of the log: see [`kenning_audit::Continuity`].
    generation: u64,
    pub(crate) tools: Vec<Arc<Record>>,
    /// Their callable functions, kept so that a call need not make them.
    callables: Callables,
    /// Whether some could not be read.
    is_partial: bool,
}

impl WasmTools {
    fn new(options: WasmOptions) -> Self {
        Self {
            options,
            runtime: OnceLock::new(),
            by_space: Mutex::default(),
            place: OnceLock::new(),
            policy: Mutex::default(),
        }
    }
}

impl Kami {
    /// The directory of everything that is not in the store, created if it does not exist.
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

    /// The path of that directory; nothing is created.
    fn wasm_place(&self) -> PathBuf {
        let own = || self.kernel.data().path().join("kami");
        self.wasm.options.dir.clone().unwrap_or_else(own)
    }

    /// The directory of a space's components. Each space has its own, so that removing a component
    /// affects no other space.
    fn components(&self, space: &Space) -> Result<Dir> {
        self.wasm_dir()?.private_subdir(&format!("store/{space}"))
    }

    /// The WASM runtime, made on first use.
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

    /// The operator's policy; without a file there are no limits beyond the defaults.
    fn wasm_policy(&self) -> Result<Arc<Policy>> {
        let dir = match self.wasm.place.get() {
            Some(dir) => dir,
            None => match Dir::open(&self.wasm_place()) {
                Ok(dir) => self.wasm.place.get_or_init(|| dir),
                Err(error) if error.code == Code::NotFound => return Ok(Arc::default()),
                Err(error) => return Err(error),
            },
        };
        // The stamp is taken before the text is read: a file that changes in between is read again
        // next time.
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

    /// The text of the operator's policy.
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

    /// Checks the text of a policy.
    pub fn check_wasm_policy(&self, text: &str) -> Result<()> {
        Policy::parse(text).map(drop)
    }

    /// Replaces the operator's policy, if the new one is valid.
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

    /// The path of the operator's policy.
    pub fn wasm_policy_path(&self) -> PathBuf {
        self.wasm_place().join(POLICY_FILE)
    }

    /// The tools of a space in this snapshot.
    fn tools_in(&self, space: &Space, tx: &dyn ReadTx) -> Result<Arc<SpaceTools>> {
        let lock = || {
            self.wasm
                .by_space
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
                    // A tool that cannot be read never hides the others.
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
        let space_tools = Arc::new(SpaceTools {
            seq: AtomicU64::new(head),
            generation,
            callables: Callables::of(&tools, &names::retired(tx)?),
            tools,
            is_partial,
        });
        lock().insert(space.clone(), Arc::clone(&space_tools));
        Ok(space_tools)
    }

    pub(crate) fn tools_of(&self, space: &Space) -> Result<Arc<SpaceTools>> {
        self.kernel.log().read(space, |tx| self.tools_in(space, tx))
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
