//! Completions for shells, and the manual page: what is written about the whole command line.
//!
//! They need the arguments of every command, so they are looked for before a command is run.

use crate::args::{self, CALLBACK};
use crate::output;
use clap::builder::StyledStr;
use clap::{Arg, ArgMatches, Command};
use kenning_core::{Error, Result};

/// Prints what was asked for and returns the exit code; nothing if these arguments are of another command.
pub(crate) fn run(matches: &ArgMatches) -> Option<Result<u8>> {
    match matches.subcommand()? {
        ("completions", inner) => Some(Ok(completions(args::command(), "kenning", inner))),
        (CALLBACK, inner) => Some(Ok(complete(&args::command(), inner))),
        ("man", _) => Some(man()),
        // `omi completion`, as a program of its own and as `kenning omi completion`.
        ("completion", inner) => Some(Ok(completions(args::omi_command(), "omi", inner))),
        ("omi", inner) => match inner.subcommand()? {
            ("completion", inner) => Some(Ok(completions(args::omi_command(), "omi", inner))),
            _ => None,
        },
        _ => None,
    }
}

/// A script that asks the program itself: it knows every command, and the script stays short.
fn asking_script(shell: clap_complete::Shell, program: &str) -> Option<String> {
    // `omi` is a part of the program that is called back.
    let call = match program {
        "kenning" => format!("kenning {CALLBACK} --"),
        other => format!("kenning {CALLBACK} -- {other}"),
    };
    Some(match shell {
        clap_complete::Shell::Bash => format!(
            "_{program}() {{\n    local IFS=$'\\n'\n    COMPREPLY=($({call} \"${{COMP_WORDS[@]:1:COMP_CWORD}}\" 2>/dev/null | cut -f1))\n}}\n\
             complete -o default -F _{program} {program}"
        ),
        clap_complete::Shell::Zsh => format!(
            "#compdef {program}\n_{program}() {{\n    local -a found\n    local line\n    while IFS= read -r line; do\n        \
             found+=(\"${{${{line%%$'\\t'*}}//:/\\\\:}}:${{line#*$'\\t'}}\")\n    done < <({call} \"${{words[@]:1:$((CURRENT-1))}}\" 2>/dev/null)\n    \
             _describe '{program}' found || _files\n}}\ncompdef _{program} {program}"
        ),
        clap_complete::Shell::Fish => format!(
            "complete -c {program} -a '({call} (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'"
        ),
        _ => return None,
    })
}

fn complete(root: &Command, matches: &ArgMatches) -> u8 {
    let words = matches.get_many::<String>("words").into_iter().flatten();
    let words: Vec<&str> = words.map(String::as_str).collect();
    for (word, about) in candidates(root, &words) {
        output::print(&format!("{word}\t{about}"));
    }
    0
}

/// What may stand in the place of the last word.
fn candidates(root: &Command, words: &[&str]) -> Vec<(String, String)> {
    let (last, before) = words.split_last().map_or(("", &[][..]), |it| (*it.0, it.1));
    let mut at = root;
    let mut asked: Option<&Arg> = None;
    for word in before {
        if asked.take().is_some() {
            continue;
        }
        if let Some(name) = word.strip_prefix("--") {
            // What follows a flag with a value is that value.
            asked = flag_of(root, at, name).filter(|it| it.get_action().takes_values());
        } else if let Some(inner) = at.find_subcommand(word) {
            at = inner;
        }
    }
    let said = |about: Option<&StyledStr>| {
        let text = about.map(ToString::to_string).unwrap_or_default();
        text.lines().next().unwrap_or_default().to_owned()
    };
    let values = |arg: &Arg| {
        let values = arg.get_possible_values().into_iter();
        let values = values.map(|it| (it.get_name().to_owned(), String::new()));
        values.collect::<Vec<_>>()
    };
    let mut found: Vec<(String, String)> = Vec::new();
    if let Some(arg) = asked {
        found = values(arg);
    } else if last.starts_with('-') {
        let global = root.get_arguments().filter(|it| it.is_global_set());
        for arg in at.get_arguments().chain(global) {
            if let Some(name) = arg.get_long().filter(|_| !arg.is_hide_set()) {
                found.push((format!("--{name}"), said(arg.get_help())));
            }
        }
    } else {
        let visible = at.get_subcommands().filter(|it| !it.is_hide_set());
        found.extend(visible.map(|it| (it.get_name().to_owned(), said(it.get_about()))));
        found.extend(at.get_positionals().flat_map(values));
    }
    found.retain(|it| it.0.starts_with(last));
    found.sort();
    found.dedup_by(|one, other| one.0 == other.0);
    found
}

fn flag_of<'a>(root: &'a Command, at: &'a Command, name: &str) -> Option<&'a Arg> {
    let all = at.get_arguments().chain(root.get_arguments());
    let mut all = all.filter(|it| it.get_long() == Some(name));
    all.next()
}

fn completions(mut command: Command, program: &str, matches: &ArgMatches) -> u8 {
    if let Some(&shell) = matches.get_one::<clap_complete::Shell>("shell") {
        if let Some(script) = asking_script(shell, program) {
            output::print_raw(&script);
            return 0;
        }
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, program, &mut script);
        output::print(&String::from_utf8_lossy(&script));
    }
    0
}

fn man() -> Result<u8> {
    let mut page = Vec::new();
    clap_mangen::Man::new(args::command())
        .render(&mut page)
        .map_err(|cause| Error::internal("the manual page could not be made").because(cause))?;
    output::print(&String::from_utf8_lossy(&page));
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        let words: Vec<&str> = line.split(' ').collect();
        let found = candidates(&args::command(), &words);
        found.into_iter().map(|it| it.0).collect()
    }

    #[test]
    fn what_may_follow_is_known_by_the_program() {
        assert_eq!(words("aud"), ["audit"]);
        assert!(words("omi rest").contains(&"restore".to_owned()));
        assert!(words("").contains(&"omi".to_owned()));
        assert!(!words("").contains(&CALLBACK.to_owned()));
        assert_eq!(words("forget --ye"), ["--yes"]);
        assert!(words("omi list --ty").contains(&"--type".to_owned()));
        assert_eq!(words("omi list --type dec"), ["decision"]);
        assert!(words("omi --spa").contains(&"--space".to_owned()));
        assert_eq!(words("setup gem"), ["gemini-cli"]);
        assert_eq!(words("--space x doc"), ["doctor"]);
    }

    #[test]
    fn scripts_are_short() {
        use clap_complete::Shell;
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            for program in ["kenning", "omi"] {
                let script = asking_script(shell, program).unwrap();
                assert!(script.len() < 1_000, "{shell}: {}", script.len());
                assert!(script.contains(CALLBACK));
            }
        }
    }
}
