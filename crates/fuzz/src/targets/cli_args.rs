//! Arguments of the command line.

use super::{ensure, text};
use crate::{Source, Subject, Target};
use clap::Command;
use std::sync::LazyLock;

pub(super) const TARGET: Target = Target {
    name: "cli_args",
    about: "every command line is understood or refused with the code for it",
    words: &[
        "\n",
        "--help",
        "--json",
        "--",
        "-",
        "=",
        "--data=",
        "\n--token\n",
        "-v",
        "-vvv",
        "kg",
        "kami",
        "omi",
    ],
    seeds: || {
        let lines = [
            "kenning\nkg\nkg_stats\n--json",
            "kenning\nserve\n--listen\n127.0.0.1:0",
            "omi\nstore\nx",
            "kami\nlist",
        ];
        lines.iter().map(|it| it.as_bytes().to_vec()).collect()
    },
    generate,
    open: || Box::new(Lines),
    pass_cases: 150,
    fresh_every: u64::MAX,
    contains_panics: false,
};

/// A command: the words that lead to it, and its options.
struct Known {
    words: Vec<String>,
    options: Vec<String>,
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let mut known = Vec::new();
    for root in [
        kenning_cli::command(),
        kenning_cli::omi_command(),
        kenning_cli::kami_command(),
    ] {
        let words = vec![root.get_name().to_owned()];
        collect(&root, &words, &mut known);
    }
    known
});

fn collect(command: &Command, words: &[String], known: &mut Vec<Known>) {
    let options = command.get_arguments().flat_map(|argument| {
        let long = argument.get_long().map(|it| format!("--{it}"));
        long.into_iter()
            .chain(argument.get_short().map(|it| format!("-{it}")))
    });
    known.push(Known {
        words: words.to_vec(),
        options: options.collect(),
    });
    for inner in command.get_subcommands() {
        let mut words = words.to_vec();
        words.push(inner.get_name().to_owned());
        collect(inner, &words, known);
    }
}

fn generate(source: &mut Source) -> Vec<u8> {
    let known = source.pick(&KNOWN);
    let mut words = known.words.clone();
    for _ in 0..source.count().min(40) {
        let word = match source.below(6) {
            0 | 1 if !known.options.is_empty() => source.pick(&known.options).clone(),
            2 if !known.options.is_empty() => {
                let option = source.pick(&known.options).clone();
                format!("{option}={}", source.text())
            }
            3 => source.odd_number().to_owned(),
            4 => source.odd_text().to_owned(),
            _ => source.text(),
        };
        words.push(word);
    }
    words.join("\n").into_bytes()
}

struct Lines;

impl Subject for Lines {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        use std::os::unix::ffi::OsStringExt as _;
        let program = text(input.split(|it| *it == b'\n').next().unwrap_or_default()).into_owned();
        let words = input.split(|it| *it == b'\n').take(2_000);
        let words = words.map(|it| std::ffi::OsString::from_vec(it.to_vec()));
        let command = match program.as_str() {
            "omi" => kenning_cli::omi_command(),
            "kami" => kenning_cli::kami_command(),
            _ => kenning_cli::command(),
        };
        match command.try_get_matches_from(words) {
            Ok(matches) => ensure!(matches.subcommand().is_some(), "nothing was asked for"),
            Err(error) => {
                let code = error.exit_code();
                ensure!(code == 0 || code == 2, "refused with {code}");
                ensure!(
                    !error.render().to_string().is_empty(),
                    "refused without words"
                );
            }
        }
        Ok(())
    }
}
