//! A runtime and a way to call a component in one line.

#![allow(dead_code, reason = "each test file uses a part")]

use kenning_sandbox::{
    Capabilities, Failure, Limits, LogLine, Outcome, RunCall, Runtime, RuntimeOptions, Sha256,
    ToolCode,
};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What a call is, with everything that most tests do not care about.
pub(crate) struct Call<'a> {
    pub(crate) tool: &'a str,
    pub(crate) function: Option<&'a str>,
    pub(crate) input: &'a str,
    pub(crate) limits: Limits,
    pub(crate) capabilities: Capabilities,
    pub(crate) cancelled: Arc<AtomicBool>,
    pub(crate) lines: Arc<Mutex<Vec<LogLine>>>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(input: &'a str) -> Self {
        Self {
            tool: "test",
            function: None,
            input,
            // A debug build on a busy machine is slow; limits that are tested are set by the test.
            limits: Limits {
                max_execution_ms: 60_000,
                ..Limits::default()
            },
            capabilities: Capabilities::default(),
            cancelled: Arc::default(),
            lines: Arc::default(),
        }
    }

    pub(crate) fn run(&self, runtime: &Runtime, wasm: &[u8]) -> Outcome {
        let source = || Ok(wasm.to_vec());
        let tool = ToolCode {
            sha256: Sha256::of(wasm),
            source: &source,
            artifact: None,
        };
        self.run_tool(runtime, &tool)
    }

    pub(crate) fn run_tool(&self, runtime: &Runtime, tool: &ToolCode<'_>) -> Outcome {
        let lines = self.lines.clone();
        let log = move |line| lines.lock().unwrap().push(line);
        runtime.run(
            tool,
            &RunCall {
                tool: self.tool,
                function: self.function,
                input: self.input,
                limits: self.limits,
                capabilities: &self.capabilities,
                cancelled: self.cancelled.clone(),
                deadline: Instant::now() + Duration::from_secs(120),
                log: Some(Arc::new(log)),
            },
        )
    }
}

pub(crate) fn runtime() -> Runtime {
    Runtime::new(RuntimeOptions::default())
}

pub(crate) fn answer(runtime: &Runtime, wasm: &[u8], input: &str) -> Result<String, Failure> {
    Call::new(input).run(runtime, wasm).result
}
