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
    eprintln!("{}", line(level, message));
}

#[cfg(not(target_arch = "wasm32"))]
fn line(level: LogLevel, message: &str) -> String {
    let level = match level {
        LogLevel::Trace => "trace",
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    };
    format!("[{level}] {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_native_build_logs_without_a_host() {
        for (level, expected) in [
            (LogLevel::Trace, "[trace] a line"),
            (LogLevel::Debug, "[debug] a line"),
            (LogLevel::Info, "[info] a line"),
            (LogLevel::Warn, "[warn] a line"),
            (LogLevel::Error, "[error] a line"),
        ] {
            assert_eq!(line(level, "a line"), expected);
            log(level, "a line");
        }
    }
}
