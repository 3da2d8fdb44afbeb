//! Tries inputs for the tests; see `kenning_fuzz::child`.

fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    kenning_fuzz::child::main(&words)
}
