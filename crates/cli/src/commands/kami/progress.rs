//! Reports that a component is being compiled.

use crate::output;
use kenning_engine::Progress;
use std::sync::{Arc, Mutex, PoisonError};

/// How often it is reported again, in seconds.
const EVERY: f64 = 10.0;

/// Reports compiling. The log of a tool is shown elsewhere.
pub(super) fn compiling() -> Arc<Progress> {
    let next = Mutex::new(0.0);
    Arc::new(move |seconds, _, what: &str| {
        if !what.starts_with("compiling ") {
            return;
        }
        let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
        if seconds < *next {
            return;
        }
        *next = seconds + EVERY;
        match seconds < 2.0 {
            true => output::say(&format!("{what} …")),
            false => output::say(&format!("{what}: {seconds:.0} s so far")),
        }
    })
}
