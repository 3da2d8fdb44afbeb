//! A tool that is a WASM component: an installed one, or one among its own files.

use super::{Ran, Ready, parsed};
use crate::ItemResult;
use crate::Kiwi;
use kenning_core::{Error, Result};
use kenning_kami::{FileRun, FoundTool, ToolRun};
use serde_json::{Value, json};

impl Kiwi {
    pub(super) fn check_component(&self, ready: &Ready<'_>) -> ItemResult<()> {
        match ready.text("tool") {
            Some(name) => self.installed(ready, name).map(drop)?,
            None => component(ready).map(drop)?,
        }
        Ok(())
    }

    pub(super) fn run_component(&self, ready: &Ready<'_>) -> ItemResult<Ran> {
        let input = Value::Object(ready.inputs.clone()).to_string();
        let run = match ready.text("tool") {
            Some(name) => {
                let name = self.installed(ready, name)?;
                self.kami.run_tool(ready.caller, &name, &input)?
            }
            // Nothing is granted: only an installed component can get permissions.
            None => {
                let how = FileRun {
                    max_execution_ms: u64::try_from(ready.timeout().as_millis()).ok(),
                    ..FileRun::default()
                };
                self.kami
                    .run_tool_bytes(ready.caller, component(ready)?, &input, &how)?
            }
        };
        Ok(ran(run))
    }

    fn installed(&self, ready: &Ready<'_>, name: &str) -> ItemResult<String> {
        let found = self.kami.find_tool(ready.caller, name)?;
        let function = found.as_ref().and_then(FoundTool::function);
        let function = function.ok_or_else(|| {
            Error::not_found("installed WASM tool", name)
                .hint("`kami list` lists those that are installed")
        })?;
        if !(ready.reaches)(function) {
            return Err(Error::denied(format!(
                "the installed WASM tool `{}` is not served here",
                function.name
            ))
            .hint("this server was started with `--exclude-tools` or `--read-only`")
            .into());
        }
        let own = function.name.clone();
        // Its grants at installation are more than this item has.
        if let Some(run) = ready.run {
            super::permit::require_may_run(run, &own)?;
        }
        Ok(own)
    }
}

fn component<'a>(ready: &'a Ready<'_>) -> Result<&'a [u8]> {
    let name = ready.text("wasm").unwrap_or_default();
    ready.plan.package.file(name).ok_or_else(|| {
        Error::not_found("file of the tool", name)
            .hint("name a component beside the manifest as `config.wasm`")
    })
}

fn ran(run: ToolRun) -> Ran {
    let usage = run.usage;
    let (stdout, stderr) = run.printed;
    let log: Vec<Value> = run
        .log
        .into_iter()
        .map(|(level, message)| json!({ "level": level, "message": message }))
        .collect();
    let (result, error) = match run.result {
        Ok(text) => (parsed(&text), None),
        Err(text) => (Value::Null, Some(text)),
    };
    Ran {
        data: json!({ "result": result, "log": log, "stdout": stdout, "stderr": stderr }),
        result,
        error,
        usage: json!({
            "fuel": usage.fuel, "wall_us": usage.wall_us,
            "memory_peak_bytes": usage.memory_peak_bytes, "http_requests": usage.http_requests,
        }),
        is_truncated: false,
        warnings: Vec::new(),
    }
}
