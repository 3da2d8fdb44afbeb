//! Lines for whoever runs the host. They never reach whoever called the tool.

pub use crate::bindings::kami::tool::host::LogLevel;

/// Adds a line to the host's log; in a native build, to standard error.
///
/// ```
/// use kami_guest::{LogLevel, log};
///
/// log(LogLevel::Warn, "the answer has no title");
/// ```
pub fn log(level: LogLevel, message: &str) {
    #[cfg(target_arch = "wasm32")]
    crate::bindings::kami::tool::host::log(level, message);
    #[cfg(not(target_arch = "wasm32"))]
    to_standard_error(level, message);
}

#[cfg(not(target_arch = "wasm32"))]
#[expect(
    clippy::print_stderr,
    reason = "a test's runner captures this and nothing else"
)]
fn to_standard_error(level: LogLevel, message: &str) {
    eprintln!("[{}] {message}", name(level));
}

#[cfg(not(target_arch = "wasm32"))]
fn name(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Trace => "trace",
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}
