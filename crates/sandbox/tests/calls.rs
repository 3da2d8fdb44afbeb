//! How a component is called, what comes back, and the text of every failure.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use common::{Call, answer, runtime};
use kenning_core::Code;
use kenning_sandbox::manifest::Manifest;
use kenning_sandbox::{
    Abi, Capabilities, Failure, FsAccess, Limits, LogLevel, LogLine, Quota, RunCall, Sha256,
    ToolCode,
};
use kenning_testing_wasm::{Tool, corpus, probes};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[test]
fn both_conventions_are_tools() {
    let runtime = runtime();
    for (wasm, abi) in [
        (probes::echo().unwrap(), Abi::Kami),
        (probes::flat_echo().unwrap(), Abi::Flat),
    ] {
        let described = runtime.check(&wasm).unwrap();
        assert_eq!(described.abi, abi);
        assert_eq!(described.functions.len(), 1);
        assert_eq!(described.functions[0].name, "run");
        for input in ["{}", "", "{\"message\":\"hé ✓\"}"] {
            assert_eq!(answer(&runtime, &wasm, input), Ok(input.to_owned()));
        }
    }
    let wasm = probes::echo().unwrap();
    let call = Call {
        function: Some("describe"),
        ..Call::new("{}")
    };
    assert_eq!(
        call.run(&runtime, &wasm).result,
        Ok("{\"name\":\"test\"}".to_owned())
    );
    let wasm = probes::log().unwrap();
    assert_eq!(
        runtime.check(&wasm).unwrap().imports,
        ["kami:tool/host@0.1.0"]
    );
}

#[test]
fn a_failure_that_the_tool_returns_keeps_its_text() {
    let refused = answer(&runtime(), &probes::refuse().unwrap(), "connection refused");
    assert_eq!(
        refused,
        Err(Failure::Returned("connection refused".to_owned()))
    );
    assert_eq!(refused.unwrap_err().to_string(), "connection refused");
}

#[test]
fn what_a_program_prints_is_its_answer() {
    let runtime = runtime();
    let wasm = probes::command().unwrap();
    assert_eq!(runtime.check(&wasm).unwrap().abi, Abi::Command);
    for input in ["{\"message\":\"hi\"}", "[1]"] {
        assert_eq!(answer(&runtime, &wasm, input), Ok(input.to_owned()));
    }
    let failed = "the program ended with code 1: no message";
    assert_eq!(
        answer(&runtime, &wasm, "{}"),
        Err(Failure::Returned(failed.to_owned()))
    );
    let limits = Limits {
        output_bytes_max: 10,
        ..Limits::default()
    };
    let call = Call {
        limits,
        ..Call::new("more than ten bytes")
    };
    let outcome = call.run(&runtime, &wasm);
    assert_eq!(outcome.result, Err(Failure::OutputTooLarge { max: 10 }));
}

#[test]
fn a_component_of_other_types_is_called_with_json() {
    let runtime = runtime();
    let wasm = probes::generic().unwrap();
    let described = runtime.check(&wasm).unwrap();
    assert_eq!(described.abi, Abi::Generic);
    let mut names: Vec<&str> = described
        .functions
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    names.sort_unstable();
    let shop = |name: &str| format!("test:shop/shop#{name}");
    assert_eq!(
        names,
        [
            "half",
            &shop("same"),
            &shop("swap"),
            &shop("total"),
            &shop("wished")
        ]
    );
    let item = described
        .functions
        .iter()
        .find(|it| it.name == shop("same"))
        .unwrap();
    assert_eq!(
        item.input_schema,
        json!({
            "type": "object",
            "properties": { "item": {
                "type": "object",
                "properties": {
                    "name": { "type": "string" },
                    "price": { "type": "number" },
                    "colors": { "type": "array", "items": { "enum": ["red", "green"] } },
                    "note": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
                },
                "required": ["name", "price", "colors"],
                "additionalProperties": false,
            } },
            "required": ["item"],
            "additionalProperties": false,
        })
    );
    assert_eq!(item.output_schema.as_ref().unwrap()["type"], "object");
    for (function, input, expected) in [
        ("total", json!({ "a": 2, "b": 40 }), Ok("42")),
        ("swap", json!({ "pair": [-5, true] }), Ok("[true,-5]")),
        (
            "same",
            json!({ "item": { "name": "x", "price": 1.5, "colors": ["green"] } }),
            Ok("{\"name\":\"x\",\"price\":1.5,\"colors\":[\"green\"],\"note\":null}"),
        ),
        (
            "wished",
            json!({ "wish": { "some": 7 }, "size": ["large"] }),
            Ok("14"),
        ),
        (
            "wished",
            json!({ "wish": "nothing", "size": [] }),
            Err("nothing is wished"),
        ),
        (
            "total",
            json!({ "a": 2 }),
            Err("the input does not match the function's types: `b` is missing"),
        ),
        (
            "total",
            json!({ "a": 2, "b": -1 }),
            Err(
                "the input does not match the function's types: `b` must be a whole number from 0 to 4294967295, not `-1`",
            ),
        ),
        (
            "total",
            json!({ "a": 2, "b": 1, "c": 1 }),
            Err(
                "the input does not match the function's types: unknown field `c`; the fields are `a`, `b`",
            ),
        ),
        (
            "swap",
            json!({ "pair": [1] }),
            Err(
                "the input does not match the function's types: `pair` must be an array of 2, not `[1]`",
            ),
        ),
        (
            "same",
            json!({ "item": { "name": "x", "price": 1, "colors": ["blue"] } }),
            Err(
                "the input does not match the function's types: `item.colors[0]` must be one of `red`, `green`, not `\"blue\"`",
            ),
        ),
        (
            "nothing",
            json!({}),
            Err("export not found: test:shop/shop#nothing"),
        ),
    ] {
        let (function, input) = (shop(function), input.to_string());
        let call = Call {
            function: Some(&function),
            ..Call::new(&input)
        };
        let found = call
            .run(&runtime, &wasm)
            .result
            .map_err(|it| it.to_string());
        assert_eq!(
            found.as_deref().map_err(String::as_str),
            expected,
            "{function} {input}"
        );
    }
    let call = Call {
        function: Some("half"),
        ..Call::new("{\"n\": -9}")
    };
    assert_eq!(call.run(&runtime, &wasm).result, Ok("-4".to_owned()));
    assert_eq!(
        answer(&runtime, &wasm, "{}"),
        Err(Failure::ExportNotFound("run".to_owned()))
    );
}

#[test]
fn every_limit_says_what_the_contract_says() {
    let runtime = runtime();
    let busy = probes::busy().unwrap();
    let sleepy = probes::sleepy().unwrap();
    let hungry = Tool::new("(loop $on (drop (memory.grow (i32.const 1))) (br $on)) (unreachable)")
        .build()
        .unwrap();
    let little = |ms: u64| Limits {
        max_execution_ms: ms,
        max_fuel: 1 << 50,
        ..Limits::default()
    };
    for (wasm, limits, expected) in [
        (&busy, little(50), "execution timed out after 50 ms"),
        (&sleepy, little(50), "execution timed out after 50 ms"),
        (
            &busy,
            Limits {
                max_fuel: 1000,
                ..Limits::default()
            },
            "fuel exhausted: used 1000 of 1000",
        ),
        (
            &hungry,
            Limits {
                max_memory_mb: 8,
                ..little(60_000)
            },
            "memory grow failure: the tool wanted more than 8 MB",
        ),
        (
            &hungry,
            Limits {
                input_bytes_max: 1,
                ..Limits::default()
            },
            "the input has 2 bytes; at most 1 are accepted",
        ),
    ] {
        let outcome = Call {
            limits,
            ..Call::new("{}")
        }
        .run(&runtime, wasm);
        assert_eq!(outcome.result.unwrap_err().to_string(), expected);
    }
    let echo = probes::echo().unwrap();
    let limits = Limits {
        output_bytes_max: 10,
        ..Limits::default()
    };
    let outcome = Call {
        limits,
        ..Call::new("12345678901")
    }
    .run(&runtime, &echo);
    assert_eq!(
        outcome.result.unwrap_err().to_string(),
        "the tool's result is larger than 10 bytes"
    );
}

#[test]
fn failures_have_the_documented_error_codes() {
    for (failure, code) in [
        (Failure::TimedOut { limit_ms: 5 }, Code::Timeout),
        (Failure::MemoryGrow { limit_mb: 5 }, Code::Limited),
        (Failure::IntegrityViolation("x".to_owned()), Code::Corrupt),
        (Failure::ExportNotFound("run".to_owned()), Code::NotFound),
        (Failure::Returned("x".to_owned()), Code::InvalidInput),
    ] {
        assert_eq!(kenning_core::Error::from(failure).code, code);
    }
}

#[test]
fn a_panic_says_what_the_tool_said_last_and_details_are_for_those_who_ask() {
    let said = "thread 'main' panicked at src/lib.rs:5:5:\nindex out of bounds\nnote: run with `RUST_BACKTRACE=1`\n";
    let outcome = Call::new(said).run(&runtime(), &probes::panic().unwrap());
    let failure = outcome.result.unwrap_err();
    assert_eq!(
        failure.to_string(),
        "tool panicked: thread 'main' panicked at src/lib.rs:5:5: index out of bounds"
    );
    assert!(outcome.detail.unwrap().contains("unreachable"));
    assert_eq!(outcome.stderr, said);
}

#[test]
fn what_a_tool_prints_is_kept_and_goes_nowhere_else() {
    let outcome = Call::new("hello\n").run(&runtime(), &probes::print().unwrap());
    assert_eq!(outcome.result, Ok("hello\n".to_owned()));
    assert_eq!(
        (outcome.stdout.as_str(), outcome.stderr.as_str()),
        ("hello\n", "hello\n")
    );
    let limits = Limits {
        stdio_bytes_max: 4,
        ..Limits::default()
    };
    let outcome = Call {
        limits,
        ..Call::new("hello")
    }
    .run(&runtime(), &probes::print().unwrap());
    assert_eq!(outcome.stdout, "ello");
}

#[test]
fn what_a_tool_logs_is_heard_up_to_a_volume() {
    let (runtime, wasm) = (runtime(), probes::log().unwrap());
    let call = Call::new("line\none");
    assert!(call.run(&runtime, &wasm).result.is_ok());
    let line = LogLine {
        level: LogLevel::Warn,
        message: "line one".to_owned(),
    };
    assert_eq!(*call.lines.lock().unwrap(), [line]);
    let flood = corpus::cases().unwrap();
    let flood = flood
        .iter()
        .find(|it| it.name == "twenty thousand lines logged")
        .unwrap();
    let call = Call {
        limits: flood.limits,
        ..Call::new("{}")
    };
    let outcome = call.run(&runtime, &flood.wasm);
    let lines = call.lines.lock().unwrap();
    assert!(lines.len() < 1_000 && lines.len() as u64 + outcome.usage.log_lines_dropped > 20_000);
    assert!(lines.last().unwrap().message.contains("logs too much"));
}

#[test]
fn only_granted_variables_are_in_the_environment() {
    let (runtime, wasm) = (runtime(), probes::environment().unwrap());
    assert_eq!(answer(&runtime, &wasm, ""), Ok(String::new()));
    let mut call = Call::new("");
    call.capabilities.env = vec![
        ("API_KEY".to_owned(), "s3cret".to_owned()),
        ("B".to_owned(), String::new()),
    ];
    assert_eq!(
        call.run(&runtime, &wasm).result,
        Ok("API_KEY=s3cret;B=;".to_owned())
    );
}

#[test]
fn usage_tells_what_a_call_took() {
    let outcome = Call::new("{}").run(&runtime(), &probes::echo().unwrap());
    assert!(
        outcome.usage.fuel > 0 && outcome.usage.fuel < 1_000,
        "{:?}",
        outcome.usage
    );
    assert_eq!(outcome.usage.memory_peak_bytes, 2 * 65_536);
    let again = Call::new("{}").run(&runtime(), &probes::echo().unwrap());
    assert_eq!(outcome.usage.fuel, again.usage.fuel);
}

#[test]
fn a_cancelled_call_ends() {
    let runtime = runtime();
    for wasm in [probes::busy().unwrap(), probes::sleepy().unwrap()] {
        // Compiled first, so that the guest is what is cancelled.
        runtime.prepare(&wasm).unwrap();
        let call = Call {
            limits: Limits {
                max_execution_ms: 600_000,
                max_fuel: 1 << 60,
                ..Limits::default()
            },
            ..Call::new("{}")
        };
        let cancelled = call.cancelled.clone();
        std::thread::scope(|scope| {
            let running = scope.spawn(|| call.run(&runtime, &wasm).result);
            cancelled.store(true, Ordering::Relaxed);
            assert_eq!(running.join().unwrap(), Err(Failure::Cancelled));
        });
    }
}

#[test]
fn components_that_cannot_run_say_why() {
    let runtime = runtime();
    for (name, expected) in [
        ("an empty component", "export not found: run"),
        (
            "a core module",
            "is a core WebAssembly module, not a component (build it with `--target wasm32-wasip2`)",
        ),
        ("a text", "the file is not WebAssembly"),
        (
            "an import of `evil:corp/backdoor@1.0.0`",
            "imports something that this host does not provide",
        ),
        (
            "`run` that takes a number, in the interface",
            "`run` of `kami:tool/tool` has the wrong type",
        ),
        ("shared memory", "the component cannot be compiled"),
        ("five hundred modules", "modules"),
    ] {
        let cases = corpus::cases().unwrap();
        let case = cases.iter().find(|it| it.name == name).unwrap();
        let error = runtime.check(&case.wasm).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn a_component_made_to_keep_the_compiler_busy_is_refused() {
    let run = "(core module $m (func (export \"run\"))) (core instance $i (instantiate $m))
               (func (export \"run\") (canon lift (core func $i \"run\")))";
    for (module, expected) in [
        (
            format!("(func {})", "nop ".repeat(1_100_000)),
            "a function has 1100002 bytes",
        ),
        ("(func)".repeat(250_001), "250001 functions"),
    ] {
        let text = format!("(component (core module {module}) {run})");
        let wasm = kenning_testing_wasm::component(&text).unwrap();
        let error = runtime().check(&wasm).unwrap_err();
        assert_eq!(error.code, Code::TooLarge);
        assert!(error.message.contains(expected), "{error}");
    }
}

#[test]
fn a_panic_of_the_host_is_not_the_end_of_it() {
    let (runtime, wasm) = (runtime(), probes::log().unwrap());
    let source = || Ok(wasm.clone());
    let tool = ToolCode {
        sha256: Sha256::of(&wasm),
        source: &source,
        artifact: None,
    };
    let call = RunCall {
        tool: "test",
        function: None,
        input: "{}",
        limits: Limits::default(),
        capabilities: &Capabilities::default(),
        cancelled: Arc::default(),
        deadline: Instant::now() + Duration::from_secs(120),
        log: Some(Arc::new(|_| panic!("a listener that fails"))),
    };
    for _ in 0..3 {
        let failure = runtime.run(&tool, &call).result.unwrap_err();
        assert_eq!(failure.code(), Code::Internal, "{failure}");
    }
    assert_eq!(answer(&runtime, &wasm, "{}"), Ok("{}".to_owned()));
}

#[test]
fn only_what_was_granted_becomes_a_capability() {
    let text = "[tool]\nid = \"a.b\"\nname = \"b\"\nversion = \"1.0.0\"\nwasm = \"b.wasm\"\n[mcp]\ndescription = \"d\"\n\
                [security]\nenv_allow_list = [\"SET\", \"UNSET\"]\nnet_allow_list = [\"example.com\"]\n";
    let granted = Manifest::parse(text).unwrap().security;
    let variable = |name: &str| (name == "SET").then(|| "5".to_owned());
    let no_dir = || panic!("a tool without `fs_access` has no directory");
    let capabilities = Capabilities::new(&granted, no_dir, Quota::default(), variable).unwrap();
    assert_eq!(capabilities.env, [("SET".to_owned(), "5".to_owned())]);
    assert_eq!(capabilities.net.len(), 1);
    assert!(matches!(capabilities.fs, FsAccess::None));
}
