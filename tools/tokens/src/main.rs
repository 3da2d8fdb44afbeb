//! Prints how many tokens (o200k) each line of its input has.

use std::io::{self, BufRead, Write};

fn main() -> io::Result<()> {
    let counter = bpe_openai::o200k_base();
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        writeln!(out, "{}", counter.count(line?.as_str()))?;
    }
    Ok(())
}
