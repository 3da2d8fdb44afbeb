//! The installed tools: their records, their components, and their logs.

use super::record::{InstalledTool, Record, Stored};
use crate::Kami;
use kenning_audit::{Draft, Tx};
use kenning_core::{Code, Error, Kind, Result, Space};
use kenning_kernel::{Bucket, Caller, Scope, Text};
use kenning_sandbox::{Digest, Sha256};
use kenning_store::When;
use serde_json::{Value, json};
use std::sync::Arc;

/// The largest component that is read.
pub(super) const WASM_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The bucket of the latest logs of tools.
pub(super) const LOGS: Bucket<Text> = Bucket::new("tools/logs");

impl Kami {
    /// The bytes of a component; the caller verifies them.
    pub(super) fn component(&self, space: &Space, sha256: Sha256) -> Result<Vec<u8>> {
        self.components(space)?
            .read(&file_of(&sha256.to_string()), WASM_BYTES_MAX)
            .map_err(|error| match error.code {
                Code::NotFound => Error::not_found("component", sha256)
                    .hint("`kami update` installs the tool again on this machine"),
                _ => error,
            })
    }

    /// Every installed tool, in the order of their ids.
    pub fn installed_tools(&self, caller: &Caller) -> Result<Vec<InstalledTool>> {
        caller.principal.require(Scope::Read)?;
        let policy = self.wasm_policy()?;
        let space_tools = self.tools_of(&caller.principal.space)?;
        Ok(space_tools
            .tools
            .iter()
            .map(|it| it.view(&policy))
            .collect())
    }

    /// One installed tool.
    pub fn installed_tool(&self, caller: &Caller, id: &str) -> Result<InstalledTool> {
        caller.principal.require(Scope::Read)?;
        Ok(self.record(caller, id)?.view(&*self.wasm_policy()?))
    }

    pub(super) fn record(&self, caller: &Caller, id: &str) -> Result<Arc<Record>> {
        let space_tools = self.tools_of(&caller.principal.space)?;
        let found = space_tools.tools.iter().find(|it| it.id == id).cloned();
        found.ok_or_else(|| {
            Error::new(Code::NotFound, format!("tool not found: `{id}`"))
                .hint("`kami list` lists those that are installed")
        })
    }

    /// Records what was compiled for a call, so that the next process finds it.
    pub(super) fn note_artifact(&self, caller: &Caller, id: &str, digest: &Digest) {
        let (id, sha256, artifact) = (
            id.to_owned(),
            digest.sha256.to_string(),
            digest.artifact.to_string(),
        );
        self.kernel
            .later()
            .write(&caller.principal.space, move |tx| {
                let Some(node) = tx.node_by_key("", Kind::Tool, &id, When::Now)? else {
                    return Ok(());
                };
                let mut stored = Stored::of(&node)?;
                let versions = stored
                    .versions
                    .values_mut()
                    .filter(|it| it.sha256 == sha256);
                versions.for_each(|it| it.artifact = Some(artifact.clone()));
                tx.put_node(Draft {
                    kind: Kind::Tool,
                    project: String::new(),
                    key: node.key,
                    title: node.title,
                    body: node.body,
                    props: stored.to_props()?,
                })?;
                tx.record("ToolChanged", json!({ "id": id, "change": "compiled" }))
                    .map(drop)
            });
    }
}

/// The file of a component, by its hash.
pub(super) fn file_of(sha256: &str) -> String {
    format!("{sha256}.wasm")
}

/// What events say about a tool.
pub(super) fn said(record: &Record) -> Value {
    json!({ "id": record.id, "version": record.stored.version, "sha256": record.sha256.to_string() })
}

/// Removes the logs of a removed tool.
pub(super) fn forget_logs(tx: &mut Tx<'_>, id: &str) -> Result<()> {
    if LOGS.has(&**tx, id)? {
        LOGS.unset(tx, id)?;
    }
    Ok(())
}
