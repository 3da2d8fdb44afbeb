//! The same functions for systems without Landlock: all of them fail.

use crate::{Launcher, Outcome, Spec, Strength};
use kenning_core::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A program that is talked to. There is none on this system.
#[derive(Debug)]
pub enum Peer {}

/// Does nothing on this system.
pub fn enter_if_asked() {}

/// Says that this system has no jail.
pub fn check() -> Result<Strength> {
    Err(
        Error::denied("programs cannot be confined on this operating system")
            .hint("programs run on Linux 6.2 or newer; WASM tools run everywhere"),
    )
}

/// Refuses: there is no jail on this operating system.
pub fn run(_: &Launcher, _: &Spec, _: &Arc<AtomicBool>) -> Result<Outcome> {
    check().and_then(|_| {
        Err(Error::denied(
            "programs cannot be confined on this operating system",
        ))
    })
}

/// Refuses: there is no jail on this operating system.
pub fn spawn(_: &Launcher, _: &Spec) -> Result<Peer> {
    check().and_then(|_| {
        Err(Error::denied(
            "programs cannot be confined on this operating system",
        ))
    })
}
