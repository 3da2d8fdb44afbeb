//! The command line of `kami`.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, value_parser};
use std::path::PathBuf;

/// The commands, under `kenning kami` and of the program `kami`.
pub(crate) fn commands() -> Vec<Command> {
    let id = || {
        Arg::new("id")
            .value_name("ID")
            .required(true)
            .help("The tool, such as dev.example.echo")
    };
    let source = |help: &'static str| Arg::new("source").value_name("SOURCE").help(help);
    vec![
        trusted(
            Command::new("install")
                .about("Install a tool, and show what it asks for")
                .arg(
                    source("A directory, its tool.toml, a zip archive, an https address, or a release as owner/repo@tag")
                        .required(true),
                ),
        ),
        Command::new("search")
            .about("Find tools: installed ones, and those of an index")
            .arg(
                Arg::new("words")
                    .value_name("WORDS")
                    .required(true)
                    .num_args(1..)
                    .help("Words of the id, the name or the description"),
            )
            .arg(
                text(
                    "registry",
                    "INDEX",
                    "The https address or the file of an index, which is a JSON array of tools",
                )
                .env(crate::env_vars::KAMI_REGISTRY),
            ),
        Command::new("list").about("List the installed tools").arg(
            text(
                "filter",
                "WORDS",
                "Only those whose id, name or description has these words",
            )
            .short('f'),
        ),
        Command::new("inspect")
            .about("Show everything about a tool")
            .arg(id()),
        input(
            Command::new("exec")
                .about("Run an installed tool")
                .arg(id()),
        ),
        input(
            Command::new("run")
                .about(
                    "Run a component from a file, without installing it and with nothing granted",
                )
                .arg(file("file", "FILE", "The component").required(true))
                .arg(number("fuel", "Instructions that it may take"))
                .arg(number("max-memory-mb", "Memory that it may have").short('m'))
                .arg(number("timeout-ms", "Time that it may take").short('t')),
        ),
        Command::new("serve")
            .about("Offer the installed tools, and nothing else, over MCP")
            .arg(
                text("transport", "KIND", "How clients connect")
                    .value_parser(PossibleValuesParser::new(["stdio", "http"]))
                    .default_value("stdio"),
            )
            .arg(number("port", "The port of `--transport http`").default_value("3000"))
            .arg(text("listen", "ADDRESS:PORT", "Over HTTP, there"))
            .arg(
                text(
                    "token",
                    "TOKEN",
                    "Over HTTP, accept this token, with every scope",
                )
                .env(crate::env_vars::TOKEN)
                .hide_env_values(true),
            )
            .args(crate::settings::token_rules()),
        Command::new("uninstall").about("Remove a tool").arg(id()),
        trusted(
            Command::new("update")
                .about("Install a tool again from where it came, or from SOURCE")
                .arg(
                    Arg::new("id")
                        .value_name("ID")
                        .required_unless_present("all"),
                )
                .arg(source("Another place"))
                .arg(
                    flag("all", "Every tool that is not pinned")
                        .conflicts_with_all(["id", "source"]),
                )
                .arg(flag("downgrade", "Take an older version, too")),
        ),
        Command::new("enable")
            .about("Enable a tool")
            .arg(id()),
        Command::new("disable")
            .about("Disable a tool")
            .arg(id()),
        Command::new("pin")
            .about("Refuse updates of a tool, at this version or an earlier one")
            .arg(id())
            .arg(
                Arg::new("to")
                    .value_name("VERSION")
                    .help("The version to run; without one, that which runs"),
            )
            .arg(text("version", "VERSION", "The same").conflicts_with("to"))
            .arg(
                flag("unpin", "Let it be updated again").conflicts_with_all(["version", "to"]),
            ),
        trusted(
            Command::new("validate")
                .about("Check whether a package can be installed, and what it requests")
                .arg(source("A directory, its tool.toml or a zip archive").default_value(".")),
        ),
        Command::new("build")
            .about("Build a tool project, and put the component where its tool.toml wants it")
            .arg(file("dir", "DIR", "The project").default_value("."))
            .arg(flag("debug", "Build without optimizing")),
        Command::new("publish")
            .about("Print the entry of a package for an index that `kami search --registry` reads")
            .arg(
                source("A directory or its tool.toml")
                    .value_name("PACKAGE")
                    .default_value("."),
            )
            .arg(
                Arg::new("from")
                    .long("source")
                    .value_name("SOURCE")
                    .help("Where others get it: owner/repo@tag, or an https address"),
            ),
        Command::new("init")
            .about("Make a new tool project that builds")
            .arg(
                Arg::new("name")
                    .value_name("NAME")
                    .required(true)
                    .help("Its directory and name"),
            )
            .arg(text("prefix", "PREFIX", "What its id begins with").default_value("dev.example")),
        Command::new("keygen")
            .about("Make a key to sign tools with")
            .arg(
                file(
                    "output",
                    "FILE",
                    "Where to; default: signing.key beside the tools",
                )
                .long("output"),
            )
            .arg(flag("force", "Replace one that is there")),
        Command::new("sign")
            .about("Sign the package in a directory")
            .arg(source("The directory").default_value("."))
            .arg(
                file(
                    "keys",
                    "FILE",
                    "The key; default: signing.key beside the tools",
                )
                .long("keys"),
            ),
        Command::new("verify")
            .about("Check that a tool is unchanged, and its signature")
            .arg(id())
            .arg(text(
                "public-key",
                "KEY",
                "The key that must have signed it, or a file with it",
            )),
        crate::commands::trust_command(),
        Command::new("logs")
            .about("Show what a tool logged and printed lately")
            .arg(id()),
        Command::new("policy")
            .about("Show, check or set what tools may at most be granted")
            .arg(file("set", "FILE", "Put this file in place").long("set")),
        Command::new("status").about("Show how many tools there are, and where they are kept"),
        Command::new("dev")
            .about("Help for whoever writes a tool")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand(
                Command::new("watch")
                    .about("Build and install a tool project again whenever its sources change")
                    .arg(file("dir", "DIR", "The project").default_value("."))
                    .arg(flag("once", "Build and install once, then stop")),
            ),
    ]
}

fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn number(name: &'static str, help: &'static str) -> Arg {
    text(name, "N", help).value_parser(value_parser!(u64).range(1..))
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .action(ArgAction::SetTrue)
        .help(help)
}

fn file(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .value_name(value)
        .help(help)
        .value_parser(value_parser!(PathBuf))
}

/// What decides whether a package is accepted.
fn trusted(command: Command) -> Command {
    command
        .arg(text("sha256", "HASH", "What the archive must be"))
        .arg(flag(
            "allow",
            "Grant what it asks for beyond the version before, and names of a tool that was removed",
        ))
        .arg(flag(
            "allow-unsigned",
            "Accept an archive that is not signed",
        ))
}

/// Where the input comes from.
fn input(command: Command) -> Command {
    command
        .arg(
            text("input", "JSON", "The input")
                .short('i')
                .default_value("{}"),
        )
        .arg(
            text(
                "input-file",
                "FILE",
                "Read the input from a file; `-` is standard input",
            )
            .short('f')
            .conflicts_with("input"),
        )
        .arg(flag(
            "raw",
            "Write the answer byte for byte; otherwise control characters are replaced",
        ))
}
