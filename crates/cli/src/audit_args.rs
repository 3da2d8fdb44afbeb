//! The commands about the log and about keys, as clap sees them.

use clap::{Arg, ArgAction, Command, ValueHint, value_parser};

fn all_spaces() -> Arg {
    Arg::new("all-spaces")
        .long("all-spaces")
        .action(ArgAction::SetTrue)
        .help("Every space, not only the one of --space")
}

pub(crate) fn audit() -> Command {
    Command::new("audit")
        .about("Verify, sign, prove and export the log")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("verify")
                .about("Re-derive the whole log and state from raw rows")
                .arg(all_spaces())
                .arg(
                    Arg::new("since")
                        .long("since")
                        .value_name("FILE")
                        .help("Checkpoints that were kept elsewhere: the logs must continue them"),
                )
                .arg(
                    Arg::new("author")
                        .long("author")
                        .value_name("DID")
                        .action(ArgAction::Append)
                        .help(
                            "Trust this key, and whom it added, and nobody else; can be repeated",
                        ),
                ),
        )
        .subcommand(
            Command::new("checkpoint")
                .about("Sign what the log is now and print it; keep it on another machine")
                .arg(all_spaces())
                .arg(
                    Arg::new("note")
                        .long("note")
                        .action(ArgAction::SetTrue)
                        .conflicts_with("all-spaces")
                        .help("Print it as a signed note (C2SP tlog-checkpoint), for witnesses"),
                ),
        )
        .subcommand(cosign())
        .subcommand(audit_authors())
        .subcommand(
            Command::new("reset-clock")
                .about("Let the log go on at this machine's time, after events from a wrong clock"),
        )
        .subcommand(
            Command::new("prove")
                .about("Prove that an event is in the log, or that an old log is a prefix of it")
                .arg(
                    Arg::new("of")
                        .value_name("EVENT")
                        .conflicts_with_all(["event", "since"])
                        .help(
                            "Its place or its id: prints the event, a signed checkpoint and the path, for \
                             `verify-proof`",
                        ),
                )
                .arg(
                    Arg::new("event")
                        .long("event")
                        .value_name("SEQ|ID")
                        .help("Prove that this event is in the log as it is now; prints the path only"),
                )
                .arg(
                    Arg::new("since")
                        .long("since")
                        .value_name("SIZE")
                        .value_parser(value_parser!(u64))
                        .conflicts_with("event")
                        .help("Prove that the log of this size is a prefix of it"),
                ),
        )
        .subcommand(
            Command::new("export")
                .about("Print events as JSON lines")
                .arg(
                    Arg::new("after")
                        .long("after")
                        .value_name("SEQ")
                        .value_parser(value_parser!(u64))
                        .default_value("0")
                        .help("Only those after this place in the log"),
                )
                .arg(
                    Arg::new("checkpoint")
                        .long("checkpoint")
                        .action(ArgAction::SetTrue)
                        .conflicts_with("after")
                        .help("End with a checkpoint that covers all of it, for `verify-file`"),
                ),
        )
        .subcommand(Command::new("stats").about("Count events by kind, authors and checkpoints"))
        .subcommand(
            Command::new("verify-file")
                .about("Check an export with nothing but a public key: no store is opened")
                .arg(file("What `kenning audit export --checkpoint` printed"))
                .arg(key()),
        )
        .subcommand(
            Command::new("verify-proof")
                .about("Check a proof with nothing but a public key: no store is opened")
                .arg(file("What `kenning audit prove EVENT` printed"))
                .arg(key()),
        )
}

fn audit_authors() -> Command {
    let did = || {
        Arg::new("did")
            .value_name("DID")
            .required(true)
            .help("The key, as `kenning doctor` prints it on its machine")
    };
    Command::new("authors")
        .about("Whose keys may sign the log")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Command::new("list").about("List them"))
        .subcommand(
            Command::new("add")
                .about("Let a key sign, or confirm one that added itself")
                .arg(did()),
        )
        .subcommand(
            Command::new("revoke")
                .about("Take from a key the right to sign further events")
                .arg(did()),
        )
        .subcommand(
            Command::new("rotate")
                .about("Replace the key of this node; restart what else runs with the old one"),
        )
}

fn file(help: &'static str) -> Arg {
    Arg::new("file")
        .value_name("FILE")
        .required(true)
        .value_hint(ValueHint::FilePath)
        .help(help)
}

fn key() -> Arg {
    Arg::new("key")
        .long("key")
        .value_name("PUBLIC_KEY")
        .required(true)
        .action(ArgAction::Append)
        .help("The key that you trust: a DID, 64 hexadecimal digits, or `name+id+base64`")
}

fn cosign() -> Command {
    Command::new("cosign")
        .about("Add the signature of a second key or a witness to a checkpoint")
        .arg(
            Arg::new("height")
                .long("height")
                .value_name("N")
                .value_parser(value_parser!(u64))
                .help("Which checkpoint; the newest if left out"),
        )
        .arg(
            Arg::new("agent")
                .long("agent")
                .value_name("NAME")
                .required_unless_present("line")
                .conflicts_with("line")
                .help("Sign with the key of this agent (see `kenning agent-key`)"),
        )
        .arg(
            Arg::new("line")
                .long("line")
                .value_name("LINE")
                .requires("key")
                .help("The line that a witness answered: `— name base64`"),
        )
        .arg(
            Arg::new("key")
                .long("key")
                .value_name("PUBLIC_KEY")
                .help("The key of that witness"),
        )
}

/// `kenning agent-key`
pub(crate) fn agent_key() -> Command {
    let name = || {
        Arg::new("name")
            .value_name("NAME")
            .required(true)
            .help("What the agent is called")
    };
    Command::new("agent-key")
        .about("Give agents keys of their own: what they write carries their identifiers")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("new")
                .about("Make a key for an agent and print its identifier")
                .arg(name()),
        )
        .subcommand(Command::new("list").about("List the agents that have keys"))
        .subcommand(
            Command::new("revoke")
                .about("Take a key back: nothing more is written for that agent")
                .arg(name()),
        )
}
