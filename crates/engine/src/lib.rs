//! The hall.

mod caller;
mod principal;

pub use caller::{Caller, DEADLINE_DEFAULT, Progress};
pub use principal::{Principal, Scope};

/// What all doors open onto.
#[derive(Default)]
pub struct Engine {}
