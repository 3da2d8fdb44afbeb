//! A bounded pass of every target with a fixed seed, and proof that the driver sees what it must.
//!
//! `cargo xtask fuzz` runs each as long as one likes; here the kept inputs of `testing/corpora/fuzz`
//! come first, then as many cases as the target says. `KENNING_SEED` chooses another seed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on stops"
)]

use kenning_fuzz::{FindKind, Plan, Program, Report, Target, corpus, driver, targets};
use std::time::Duration;

/// The kept inputs of all targets may grow, never shrink unseen.
const KEPT_MIN: usize = 70;
const SEED: u64 = 20_261_116;

fn program() -> Program {
    Program {
        path: env!("CARGO_BIN_EXE_fuzz-child").into(),
        words: Vec::new(),
    }
}

fn seed() -> u64 {
    let seed = std::env::var("KENNING_SEED").ok();
    seed.map_or(SEED, |it| it.parse().unwrap())
}

fn passes(name: &str) {
    let target = Target::named(name).unwrap();
    let kept = corpus::read_kept(name).unwrap().len() as u64;
    let plan = Plan::of(seed(), kept + target.pass_cases);
    let report = driver::run(&program(), target, &plan).unwrap();
    let n_finds = report.finds.len();
    println!(
        "{name}: {} cases, {n_finds} failures, seed {} (slowest {} ms)",
        report.cases,
        plan.seed,
        report.slowest.0.as_millis()
    );
    let finds: Vec<String> = report.finds.iter().map(ToString::to_string).collect();
    assert!(n_finds == 0, "{name}:\n{}", finds.join("\n"));
    assert_eq!(report.cases, plan.cases);
}

macro_rules! passes {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                passes(stringify!($name));
            }
        )*

        #[test]
        fn every_target_has_its_pass() {
            let named = [$(stringify!($name)),*];
            let all: Vec<&str> = targets::ALL.iter().map(|it| it.name).collect();
            assert_eq!(all, named);
        }
    };
}

passes!(
    jsonrpc_line,
    http_headers_vs_body,
    tool_input,
    query_parse,
    query_run,
    query_grammar,
    front_matter,
    markdown_links,
    manifest_toml,
    item_id_and_path,
    item_text,
    url_policy,
    vault_name,
    event_decode,
    archive_rows,
    proof_verify,
    wasm_component,
    wasm_package,
    cli_args,
    memory_files,
    page_html,
    page_pdf,
    code_read,
    sync_message,
    koi_net_message,
    mail_message,
    workflow_plan,
    model_answer,
    audit_file,
    transcript,
);

#[test]
fn the_kept_inputs_do_not_shrink() {
    let n: usize = targets::ALL
        .iter()
        .map(|it| corpus::read_kept(it.name).unwrap().len())
        .sum();
    println!("fuzz corpus: {n} cases");
    assert!(n >= KEPT_MIN, "{n} kept inputs; there were {KEPT_MIN}");
}

fn sabotaged(name: &str) -> Report {
    let plan = Plan {
        patience: Duration::from_secs(2),
        memory_bytes_max: 300 * 1024 * 1024,
        shortening: Duration::from_secs(5),
        ..Plan::of(1, 60)
    };
    driver::run(&program(), Target::named(name).unwrap(), &plan).unwrap()
}

#[test]
fn what_is_broken_on_purpose_is_found_and_made_shorter() {
    for (name, kind, why) in [
        (
            "saboteur_panics",
            FindKind::Wrong,
            "panic at crates/fuzz/src/saboteurs.rs",
        ),
        (
            "saboteur_is_wrong",
            FindKind::Wrong,
            "one and one are three",
        ),
        (
            "saboteur_contains_a_panic",
            FindKind::Wrong,
            "nobody sees this",
        ),
        ("saboteur_overflows_its_stack", FindKind::Died, "SIGABRT"),
    ] {
        let report = sabotaged(name);
        let [find] = &report.finds[..] else {
            panic!("{name}: {:?}", report.finds);
        };
        assert_eq!((find.kind, find.is_alone), (kind, true), "{name}: {find}");
        assert!(find.why.contains(why), "{name}: {find}");
        assert_eq!(find.input, b"boo", "{name}: {find}");
        // The driver went on after it.
        assert_eq!(report.cases, 60, "{name}");
    }
}

#[test]
fn a_loop_and_memory_without_end_are_found_and_ended() {
    for (name, kind) in [
        ("saboteur_loops", FindKind::Hung),
        ("saboteur_eats_memory", FindKind::Memory),
    ] {
        let report = sabotaged(name);
        let find = report.finds.first().unwrap();
        assert_eq!((find.kind, find.is_alone), (kind, true), "{name}: {find}");
        assert!(
            find.input.windows(3).any(|it| it == b"boo"),
            "{name}: {find}"
        );
    }
}
