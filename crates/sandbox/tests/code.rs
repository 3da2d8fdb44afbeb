//! Code is compiled once, kept between processes, and believed only if it is what was recorded.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use common::{Call, runtime};
use kenning_core::{Code, Error};
use kenning_sandbox::{
    Artifact, Digest, Failure, Outcome, Runtime, RuntimeOptions, Sha256, ToolCode,
};
use kenning_testing_wasm::probes;
use kenning_vault::Dir;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Home {
    _home: tempfile::TempDir,
    cache: Dir,
}

fn home() -> Home {
    let home = tempfile::tempdir().unwrap();
    let cache = Dir::create(&home.path().join("cache")).unwrap();
    Home { _home: home, cache }
}

impl Home {
    /// As a process that starts anew.
    fn runtime(&self) -> Runtime {
        let cache = Some(self.cache.clone());
        Runtime::new(RuntimeOptions {
            cache,
            ..RuntimeOptions::default()
        })
    }

    fn file(&self) -> String {
        let entries = self.cache.list("").unwrap();
        let names: Vec<_> = entries
            .iter()
            .filter(|it| it.name.ends_with(".cwasm"))
            .collect();
        assert_eq!(names.len(), 1);
        names[0].name.clone()
    }
}

/// Calls what was prepared, and counts how often the source is read.
fn call(
    runtime: &Runtime,
    digest: &Digest,
    artifact: Option<Artifact>,
    wasm: &[u8],
) -> (Outcome, usize) {
    let reads = AtomicUsize::new(0);
    let source = || {
        reads.fetch_add(1, Ordering::Relaxed);
        Ok(wasm.to_vec())
    };
    let tool = ToolCode {
        sha256: digest.sha256,
        source: &source,
        artifact,
    };
    let outcome = Call::new("{}").run_tool(runtime, &tool);
    (outcome, reads.load(Ordering::Relaxed))
}

#[test]
fn the_next_process_neither_reads_nor_compiles() {
    let (home, wasm) = (home(), probes::echo().unwrap());
    let digest = home.runtime().prepare(&wasm).unwrap();
    assert_eq!(digest.sha256, Sha256::of(&wasm));
    assert!(home.file().starts_with(&digest.sha256.to_string()));
    let recorded = Artifact::parse(&digest.artifact.to_string()).unwrap();
    assert_eq!(recorded, digest.artifact);
    let (outcome, reads) = call(&home.runtime(), &digest, Some(recorded), &wasm);
    assert_eq!((outcome.result, reads), (Ok("{}".to_owned()), 0));
    assert_eq!(outcome.prepared, None);
}

#[test]
fn a_cached_file_without_a_record_is_not_loaded() {
    let (home, wasm) = (home(), probes::echo().unwrap());
    let digest = home.runtime().prepare(&wasm).unwrap();
    let (outcome, reads) = call(&home.runtime(), &digest, None, &wasm);
    assert_eq!((outcome.result, reads), (Ok("{}".to_owned()), 1));
    assert_eq!(outcome.prepared, Some(digest));
}

#[test]
fn a_file_that_was_changed_never_runs() {
    let (home, wasm) = (home(), probes::echo().unwrap());
    let evil = probes::refuse().unwrap();
    let digest = home.runtime().prepare(&wasm).unwrap();
    let name = home.file();
    let good = home.cache.read(&name, 1 << 30).unwrap();
    // Real code of another component, under the name of this one.
    let other = self::home();
    other.runtime().prepare(&evil).unwrap();
    let swapped = other.cache.read(&other.file(), 1 << 30).unwrap();
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    for bytes in [
        swapped,
        flipped(0),
        flipped(good.len() / 2),
        flipped(good.len() - 1),
        good[..100].to_vec(),
        Vec::new(),
    ] {
        home.cache.write_private(&name, &bytes).unwrap();
        let (outcome, reads) = call(
            &home.runtime(),
            &digest,
            Some(digest.artifact.clone()),
            &wasm,
        );
        assert_eq!((outcome.result, reads), (Ok("{}".to_owned()), 1));
        // It was compiled again from the component that was installed, and the file is good again.
        assert_eq!(home.cache.read(&name, 1 << 30).unwrap(), good);
    }
}

#[test]
fn a_component_that_was_changed_is_an_integrity_violation() {
    let (home, wasm) = (home(), probes::echo().unwrap());
    let evil = probes::refuse().unwrap();
    let digest = home.runtime().prepare(&wasm).unwrap();
    home.cache.remove(&home.file()).unwrap();
    for artifact in [None, Some(digest.artifact.clone())] {
        let (outcome, reads) = call(&home.runtime(), &digest, artifact, &evil);
        assert_eq!(reads, 1);
        let failure = outcome.result.unwrap_err();
        assert!(
            matches!(failure, Failure::IntegrityViolation(_)),
            "{failure}"
        );
        assert!(failure.to_string().starts_with("integrity violation"));
    }
    assert!(home.cache.list("").unwrap().is_empty());
}

#[test]
fn a_component_that_is_gone_says_so() {
    let source = || Err(Error::not_found("file", "echo.wasm"));
    let tool = ToolCode {
        sha256: Sha256::of(b"gone"),
        source: &source,
        artifact: None,
    };
    let failure = Call::new("{}")
        .run_tool(&runtime(), &tool)
        .result
        .unwrap_err();
    assert_eq!(failure.code(), Code::NotFound);
    assert_eq!(
        failure.to_string(),
        "WASM file missing: no file `echo.wasm`"
    );
}

#[test]
fn eight_concurrent_callers_compile_once() {
    let (runtime, wasm) = (runtime(), probes::files().unwrap());
    let reads = AtomicUsize::new(0);
    let source = || {
        reads.fetch_add(1, Ordering::Relaxed);
        Ok(wasm.clone())
    };
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        let ask = || {
            barrier.wait();
            let tool = ToolCode {
                sha256: Sha256::of(&wasm),
                source: &source,
                artifact: None,
            };
            Call::new("rx").run_tool(&runtime, &tool).result
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Ok("none".to_owned()));
        }
    });
    assert_eq!(reads.load(Ordering::Relaxed), 1);
}

#[test]
fn all_waiting_callers_get_a_compile_error_and_the_next_call_tries_again() {
    let (runtime, wasm) = (runtime(), b"\0asm\x0d\0\x01\0broken".to_vec());
    std::thread::scope(|scope| {
        let ask = || common::answer(&runtime, &wasm, "{}");
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        for thread in threads {
            let failure = thread.join().unwrap().unwrap_err();
            assert_eq!(failure.code(), Code::InvalidInput, "{failure}");
        }
    });
    let sha256 = Sha256::of(&probes::echo().unwrap());
    let source = || Err(Error::unavailable("the disk is away"));
    let tool = ToolCode {
        sha256,
        source: &source,
        artifact: None,
    };
    assert!(Call::new("{}").run_tool(&runtime, &tool).result.is_err());
    assert_eq!(
        common::answer(&runtime, &probes::echo().unwrap(), "{}"),
        Ok("{}".to_owned())
    );
}

#[test]
fn forgotten_code_leaves_memory_and_disk() {
    let (home, wasm) = (home(), probes::echo().unwrap());
    let runtime = home.runtime();
    let digest = runtime.prepare(&wasm).unwrap();
    let (_, reads) = call(&runtime, &digest, None, &wasm);
    assert_eq!(reads, 0);
    runtime.forget(digest.sha256).unwrap();
    assert!(home.cache.list("").unwrap().is_empty());
    let (_, reads) = call(&runtime, &digest, Some(digest.artifact.clone()), &wasm);
    assert_eq!(reads, 1);
}

#[test]
fn code_of_another_engine_is_swept_out() {
    let (home, wasm) = (home(), probes::echo().unwrap());
    let sha256 = Sha256::of(&wasm);
    let stale = format!("{sha256}-0123456789abcdef.cwasm");
    home.cache.write_private(&stale, b"older").unwrap();
    let recorded = Artifact::parse(&format!("0123456789abcdef:{}", "0".repeat(64))).unwrap();
    let runtime = home.runtime();
    let digest = runtime.prepare(&wasm).unwrap();
    assert!(home.file().starts_with(&sha256.to_string()) && home.file() != stale);
    // Whoever recorded the other engine's code is told what to record instead.
    let (outcome, _) = call(&home.runtime(), &digest, Some(recorded), &wasm);
    assert_eq!(outcome.prepared, Some(digest));
}

#[test]
fn old_code_makes_room_for_new() {
    let options = RuntimeOptions {
        loaded_max: 2,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options);
    let (a, b, c) = (
        probes::echo().unwrap(),
        probes::refuse().unwrap(),
        probes::print().unwrap(),
    );
    let digest = runtime.prepare(&a).unwrap();
    runtime.prepare(&b).unwrap();
    assert_eq!(call(&runtime, &digest, None, &a).1, 0);
    // `b` was used less lately.
    runtime.prepare(&c).unwrap();
    assert_eq!(call(&runtime, &digest, None, &a).1, 0);
    let digest = Digest {
        sha256: Sha256::of(&b),
        artifact: digest.artifact,
    };
    assert_eq!(call(&runtime, &digest, None, &b).1, 1);
}

#[test]
fn code_for_a_pool_and_code_for_one_call_are_the_same() {
    let (home, wasm) = (home(), probes::echo().unwrap());
    let digest = home.runtime().prepare(&wasm).unwrap();
    let pool = kenning_sandbox::PoolSize {
        calls: 2,
        max_memory_mb: 64,
    };
    let options = RuntimeOptions {
        cache: Some(home.cache.clone()),
        pooling: Some(pool),
        ..RuntimeOptions::default()
    };
    let (outcome, reads) = call(
        &Runtime::new(options),
        &digest,
        Some(digest.artifact.clone()),
        &wasm,
    );
    assert_eq!((outcome.result, reads), (Ok("{}".to_owned()), 0));
}
