//! Compiled code of components that are run without being installed.
//!
//! Compiled code is loaded only if its hash is in the store, so the hashes of what `kami run`
//! compiled are recorded there, for the most recent components. Other code is discarded.

use super::pulse::Pulse;
use crate::Kami;
use kenning_core::{Code, Result};
use kenning_kernel::{Bucket, Caller};
use kenning_sandbox::{Artifact, Described, Digest, Sha256};
use kenning_store::ReadTx;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// The bucket of hashes of compiled code, by the component's hash.
const COMPILED: Bucket<Compiled> = Bucket::new("tools/compiled");

/// The code of a component that was run without being installed.
#[derive(Serialize, Deserialize)]
struct Compiled {
    /// Its hash, as [`Artifact`] writes it.
    artifact: String,
    /// When it was last compiled.
    #[serde(default)]
    ms: u64,
}

/// At most this many components keep their code.
const COMPILED_MAX: usize = 32;

/// For a component of at least this size a message is shown at once, for a smaller one when compiling
/// takes long.
const LARGE_BYTES: usize = 1024 * 1024;

impl Kami {
    /// Compiles a component, as long as the caller waits, with progress messages.
    pub(super) fn compile(&self, caller: &Caller, wasm: &[u8]) -> Result<(Described, Digest)> {
        let runtime = self.wasm_runtime()?;
        let work = || loop {
            match runtime.check(wasm) {
                // The compiler goes on; the caller decides how long that may take.
                Err(error) if error.code == Code::Unavailable && caller.check().is_ok() => {}
                done => break done,
            }
        };
        let described = match caller.progress.clone() {
            None => work()?,
            Some(progress) => {
                let pulse = Pulse::new(progress, Duration::ZERO);
                let word = format!("compiling {}", size(wasm.len()));
                if wasm.len() >= LARGE_BYTES {
                    pulse.tell(&word);
                }
                pulse.during(&word, work)?
            }
        };
        Ok((described, runtime.prepare(wasm)?))
    }

    /// The code that an earlier process compiled for a component that is installed or was run
    /// recently.
    pub(super) fn known_artifact(&self, caller: &Caller, sha256: Sha256) -> Option<Artifact> {
        let space = &caller.principal.space;
        let space_tools = self.tools_of(space).ok()?;
        let installed = space_tools.tools.iter().find(|it| it.sha256 == sha256);
        if let Some(artifact) = installed.and_then(|it| it.artifact.clone()) {
            return Some(artifact);
        }
        let key = sha256.to_string();
        let read = |tx: &dyn ReadTx| COMPILED.get_readable(tx, &key);
        let row = self.kernel.log().read(space, read).ok()??;
        Artifact::parse(&row.artifact)
    }

    /// Records what was compiled for a run, and discards the code that was not used for longest.
    pub(super) fn note_compiled(&self, caller: &Caller, digest: &Digest) -> Result<()> {
        let space = &caller.principal.space;
        // Pending records count too.
        self.kernel.later().flush();
        let mut known: Vec<(u64, String)> = self
            .kernel
            .log()
            .read(space, |tx| COMPILED.list_readable(tx))?
            .into_iter()
            .map(|(key, row)| (row.ms, key))
            .filter(|it| it.1 != digest.sha256.to_string())
            .collect();
        known.sort_unstable();
        let n_over = (known.len() + 1).saturating_sub(COMPILED_MAX);
        let over: Vec<String> = known.drain(..n_over).map(|it| it.1).collect();
        let space_tools = self.tools_of(space)?;
        for sha256 in over.iter().filter_map(|it| Sha256::from_hex(it)) {
            if !space_tools.tools.iter().any(|it| it.sha256 == sha256) {
                self.wasm_runtime()?.forget(sha256)?;
            }
        }
        let (key, artifact) = (digest.sha256.to_string(), digest.artifact.to_string());
        let ms = self.kernel.log().clock().now_ms();
        self.kernel.later().write(space, move |tx| {
            for key in &over {
                if COMPILED.has(&**tx, key)? {
                    COMPILED.unset(tx, key)?;
                }
            }
            COMPILED.set(tx, &key, &Compiled { artifact, ms })?;
            tx.record("ToolCompiled", json!({ "sha256": key }))
                .map(drop)
        });
        Ok(())
    }
}

/// A size for people.
fn size(bytes: usize) -> String {
    let tenths = bytes.saturating_mul(10) / (1024 * 1024);
    match tenths {
        0 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{}.{} MiB", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_the_unit_that_fits() {
        for (bytes, text) in [
            (0, "0 KiB"),
            (1, "1 KiB"),
            (104_857, "103 KiB"),
            (1_572_864, "1.5 MiB"),
            (67_108_864, "64.0 MiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
