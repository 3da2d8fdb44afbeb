//! What a run gives and how it ends.

mod common;

use common::{launcher, python, shell};
use kenning_jail::{Exit, run};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[test]
fn a_program_says_what_it_says() {
    let outcome = run(
        &launcher(),
        &shell("echo out; echo err >&2; exit 3"),
        &Arc::default(),
    )
    .unwrap();
    assert_eq!(outcome.exit, Exit::Exited(3));
    assert_eq!(outcome.stdout, b"out\n");
    assert_eq!(outcome.stderr, b"err\n");
    println!("{:?}", outcome.usage);
    let o = run(
        &launcher(),
        &python("print(1+1)"),
        &Arc::new(AtomicBool::new(false)),
    )
    .unwrap();
    assert_eq!(
        (o.exit, &*o.stdout),
        (Exit::Exited(0), &b"2\n"[..]),
        "{}",
        String::from_utf8_lossy(&o.stderr)
    );
}
