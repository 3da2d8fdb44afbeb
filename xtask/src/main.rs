//! The repository's own tool: `cargo xtask COMMAND`.
//!
//! What a script would do elsewhere is Rust here, so that it is checked, tested and works the same on
//! every machine. Each command has its file or folder and one row in [`COMMANDS`]. Short rules are
//! also tests of this crate (`cargo test -p xtask`); long suites are commands with a count and a seed,
//! so that no test has to be skipped.

#![allow(
    clippy::disallowed_methods,
    reason = "a developer's tool: it reads the repository, starts the programs it measures and prints"
)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what it prints is what it is for"
)]

mod bench;
mod codegen;
mod crash;
mod fuzz;
mod model;
mod options;
mod reliability;
mod repository;
mod simulate;
mod soak;
mod tck;
mod tidy;
mod wasm;

use anyhow::{Result, bail};
use options::Options;
use std::process::ExitCode;

/// One command.
struct Command {
    name: &'static str,
    /// Its words, as the help shows them.
    usage: &'static str,
    about: &'static str,
    run: fn(&Options) -> Result<()>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "tidy",
        usage: "tidy [--report]",
        about: "check the rules that compilers do not: directions, modules, names, heads, sizes, pages",
        run: tidy::run,
    },
    Command {
        name: "codegen",
        usage: "codegen [--check]",
        about: "write the generated pages of docs/reference; with --check only compare",
        run: codegen::run,
    },
    Command {
        name: "bench",
        usage: "bench tokens\n\
                bench choice\n\
                bench build [--debug] [--release]\n\
                bench resolve\n\
                bench writes [--seconds N] [--callers 1,64] [--fsync-ms X] [--of rows|notes|memories]\n      \
                [--bytes N] [--as-built]\n\
                bench verify [--events N]\n\
                bench sync [--events N]\n\
                bench recall --collection DIR[,DIR] [--off-topic FILE]\n\
                bench memory [--memories N]\n\
                bench agents [--binary FILE] [--own no]\n\
                bench graph [--files N] [--tree DIR]\n\
                bench code [--cases DIR [--allow-missing] [--wrong N]] [--repository DIR]… [--binary PATH]\n\
                bench cypher [--nodes N] [--repeat N] [--limit-ms N] [--allow-missing]\n\
                bench vectors [--sizes 10000,100000] [--dims N] [--peers no|flat,hnsw,usearch]\n      \
                [--minutes N]\n\
                bench postgres [--seconds N] [--rows N]\n\
                bench wasm [--calls N] [--binary PATH] [--warm]\n\
                bench koi [--entities N] [--relationships N] [--notes N] [--calls N] [--at DIR] [--binary PATH]\n\
                bench kiwi [--items N] [--calls N] [--binary PATH]\n\
                bench hooks [--memories N] [--binary PATH]\n\
                bench plan",
        about: "measure what a model pays, durable writes, the check of a large log, what is found\n      \
                and how fast, PostgreSQL, installed tools, entities, items and hooks",
        run: bench::run,
    },
    Command {
        name: "crash",
        usage: "crash [--kills N] [--seed S] [--transport stdio|http|both] [--binary PATH]\n      \
                [--backend sqlite|postgres] [--sabotage]\n\
                crash processes [--processes N] [--writes N] [--binary PATH]\n\
                crash faults [--faults N] [--seed S] [--binary PATH]\n\
                crash servers [--servers N] [--callers N] [--writes N] [--binary PATH]\n\
                crash power [--cuts N] [--seed S] [--without database|files|names] [--binary PATH]\n\
                crash disk [--trouble full|write|read|sync] [--every N] [--jobs N] [--seed S]\n      \
                [--binary PATH]\n\
                crash damage [--pages N] [--lengths N] [--seed S] [--binary PATH]\n\
                crash failover [--rounds N] [--seed S] [--sabotage] [--binary PATH]\n\
                crash workflows [--kills N] [--seed S] [--backend sqlite|postgres] [--binary PATH]",
        about: "kill the real binary while it writes; or its database; or let several write at once;\n      \
                or let the power go out, or the disk be full or broken at each call;\n      \
                or damage the store's file; or promote a standby under load",
        run: crash::run,
    },
    Command {
        name: "fuzz",
        usage: "fuzz [--seconds N] [--target NAME[,NAME]] [--seed S] [--keep]\n\
                fuzz --target NAME --seed S --case N",
        about: "give every reader of strangers' texts inputs that were never meant to be; with --keep what is\n      \
                found becomes a line of testing/corpora/fuzz",
        run: fuzz::run,
    },
    Command {
        name: "model",
        usage: "model [--operations N] [--seed S]",
        about: "do random operations to SQLite, PostgreSQL and a model at once, and compare",
        run: model::run,
    },
    Command {
        name: "reliability",
        usage: "reliability\nreliability run ROW [ROW…]|all [--uncommitted]",
        about: "list the promises of RELIABILITY.md and when each was measured; or measure some, and write\n      \
                figure, commit and date into the page",
        run: reliability::run,
    },
    Command {
        name: "simulate",
        usage: "simulate [liars] [--seeds N] [--seed S] [--steps N] [--tools EVERY]",
        about: "let nodes share a space over a network that loses and repeats, with clocks that are off and peers\n      \
                that lie, and see that all honest nodes hold the same in the end; with `liars` only those",
        run: simulate::run,
    },
    Command {
        name: "soak",
        usage: "soak [--minutes N] [--seed S] [--binary PATH]\nsoak overload [--seconds N] [--binary PATH]\n\
                soak neighbors [--rounds N] [--seconds N] [--binary PATH]\n\
                soak hostile-queries [--rounds N] [--seconds N] [--binary PATH]",
        about: "work with the real binary for a while and see that nothing grows; or ask more of it than it can;\n      \
                or let one caller ask for much, or queries that want too much, while another asks for little",
        run: soak::run,
    },
    Command {
        name: "tck",
        usage: "tck --features DIR [--only TEXT]",
        about: "run the openCypher conformance kit: passed, failed and skipped by feature, and each failure",
        run: tck::run,
    },
    Command {
        name: "wasm",
        usage: "wasm [--mutations N] [--seed S]",
        about: "run hostile components and broken ones, and see that each ends as it must",
        run: wasm::run,
    },
];

fn help() -> String {
    let mut text = String::from("usage: cargo xtask COMMAND\n");
    for command in COMMANDS {
        text += &format!("\n  {}\n", command.usage.replace('\n', "\n  "));
        text += &format!("      {}\n", command.about);
    }
    text
}

fn run(arguments: &[String]) -> Result<()> {
    let Some(name) = arguments.first().cloned() else {
        bail!("no command was named\n\n{}", help());
    };
    if ["help", "-h", "--help"].contains(&name.as_str())
        || arguments
            .iter()
            .any(|argument| argument == "--help" || argument == "-h")
    {
        println!("{}", help());
        return Ok(());
    }
    let Some(command) = COMMANDS.iter().find(|it| it.name == name) else {
        bail!("no command `{name}`\n\n{}", help());
    };
    (command.run)(&Options::parse(&arguments[1..])?)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, child, words @ ..] = &arguments[..]
        && command == "fuzz"
        && child == fuzz::CHILD
    {
        return kenning_fuzz::child::main(words);
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_help_shows_without_a_value_needs_none() {
        for command in COMMANDS {
            let alone = command.usage.split('[').filter_map(|part| {
                let (inside, _) = part.split_once(']')?;
                (inside.starts_with("--") && !inside.contains(' ')).then_some(inside)
            });
            for option in alone {
                let parsed = Options::parse(&[option.to_owned()]);
                assert!(parsed.is_ok(), "{}: `{option}` wants a value", command.name);
            }
        }
    }

    #[test]
    fn the_help_lists_every_command() {
        for command in COMMANDS {
            assert!(help().contains(command.about), "{}", command.name);
        }
    }

    #[test]
    fn an_unknown_command_or_option_is_refused() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(run(&words("tidi")).is_err());
        assert!(run(&words("tidy --verbose")).is_err());
        assert!(run(&[]).is_err());
    }
}
