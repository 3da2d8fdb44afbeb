//! A PostgreSQL server for a script: prints its URL and serves until its input ends.
//!
//! ```sh
//! coproc pg { cargo run -q -p kenning-testing-postgres --bin pg -- --version 16; }
//! read -r KENNING_TEST_POSTGRES <&"${pg[0]}"
//! export KENNING_TEST_POSTGRES
//! ```

#![expect(clippy::print_stdout, reason = "the URL is what it is called for")]

use kenning_testing_postgres::{Version, own};
use std::env;
use std::io::{self, Write};

fn main() -> Result<(), String> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let version = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Version::default(),
        ["--version", version] => version.parse()?,
        _ => return Err("usage: pg [--version 16|18]".into()),
    };
    let server = own(version);
    println!("{}", server.url());
    io::stdout().flush().map_err(|err| err.to_string())?;
    io::copy(&mut io::stdin(), &mut io::sink()).map_err(|err| err.to_string())?;
    Ok(())
}
