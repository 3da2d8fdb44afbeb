//! Compares what a component says about itself with its manifest.

use crate::Kami;
use kenning_core::Result;
use kenning_kernel::Caller;
use kenning_sandbox::manifest::Manifest;
use kenning_sandbox::{Abi, Capabilities, Described, Failure, Limits, RunCall, Sha256, ToolCode};
use serde_json::Value;
use std::time::{Duration, Instant};

/// How long a component may take to describe itself. Runtimes of other languages start slowly.
const PATIENCE: Duration = Duration::from_secs(10);
const FUEL: u64 = 100_000_000_000;

impl Kami {
    /// Where a component contradicts its manifest, a sentence each: a build of another version, or
    /// another tool, is easily copied by mistake. Its description is compared and never shown to
    /// models.
    pub(super) fn manifest_contradictions(
        &self,
        caller: &Caller,
        manifest: &Manifest,
        described: &Described,
        wasm: &[u8],
    ) -> Result<Vec<String>> {
        if described.abi != Abi::Kami {
            return Ok(Vec::new());
        }
        let source = || Ok(wasm.to_vec());
        let code = ToolCode {
            sha256: Sha256::of(wasm),
            source: &source,
            artifact: None,
        };
        let nothing = Capabilities::default();
        let tool = format!("{} {}", caller.principal.space, code.sha256);
        let call = RunCall {
            tool: &tool,
            function: Some("describe"),
            input: "",
            limits: Limits {
                max_memory_mb: manifest.security.max_memory_mb,
                max_execution_ms: u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX),
                max_fuel: FUEL,
                ..Limits::default()
            },
            capabilities: &nothing,
            cancelled: caller.cancelled.clone(),
            deadline: caller.deadline.min(Instant::now() + 2 * PATIENCE),
            log: None,
        };
        let outcome = self.wasm_runtime()?.run(&code, &call);
        Ok(match outcome.result {
            Ok(text) => compare(&text, manifest),
            // A component need not describe itself, and a busy host is not its fault.
            Err(
                Failure::ExportNotFound(_)
                | Failure::Busy
                | Failure::MemoryTaken
                | Failure::Cancelled,
            ) => Vec::new(),
            Err(failure) => vec![format!("it cannot describe itself: {failure}")],
        })
    }
}

fn compare(text: &str, manifest: &Manifest) -> Vec<String> {
    let said: Value = serde_json::from_str(text).unwrap_or_default();
    let mut found = Vec::new();
    let mut differ = |field: &str, said: &Value, is_same: &dyn Fn(&str) -> bool, own: &str| {
        if let Some(said) = said.as_str().filter(|it| !is_same(it)) {
            let said: String = said.chars().take(100).map(plain).collect();
            found.push(format!(
                "the component says that its {field} is `{said}`, and the manifest `{own}`: \
                 look whether it is the right build"
            ));
        }
    };
    let id = &manifest.id;
    let is_name = |text: &str| text == id || text == manifest.name;
    differ("name", &said["name"], &is_name, id);
    let version = manifest.version.to_string();
    differ("version", &said["version"], &|it| it == version, &version);
    found
}

/// Removes characters that could break the line of the message.
fn plain(it: char) -> char {
    match it.is_control() || it == '`' {
        true => ' ',
        false => it,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_component_says_is_compared_with_its_manifest() {
        let text = "[tool]\nid = \"a.b\"\nname = \"b\"\nversion = \"1.0.0\"\nwasm = \"b.wasm\"\n[mcp]\ndescription = \"d\"\n";
        let manifest = Manifest::parse(text).unwrap();
        for (said, expected) in [
            (
                r#"{"name":"a.b","version":"1.0.0","description":"other"}"#,
                vec![],
            ),
            (r#"{"name":"b"}"#, vec![]),
            ("anything", vec![]),
            (r#"{"name":1,"version":null}"#, vec![]),
            (
                r#"{"name":"a.c","version":"1.0.0"}"#,
                vec!["its name is `a.c`"],
            ),
            (
                r#"{"name":"x\u001b`y","version":"1.0.1"}"#,
                vec![
                    "its name is `x  y`",
                    "its version is `1.0.1`, and the manifest `1.0.0`",
                ],
            ),
        ] {
            let found = compare(said, &manifest);
            assert_eq!(found.len(), expected.len(), "{said}: {found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.contains(expected), "{found}");
            }
        }
    }
}
