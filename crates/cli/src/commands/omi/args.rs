//! The commands of `omi`, as clap sees them.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, value_parser};
use clap_complete::Shell;
use kenning_engine::omi::MemoryType;

/// Every command of `omi` that is not a tool.
pub(crate) fn commands() -> Vec<Command> {
    vec![
        Command::new("init")
            .about("Make the directory with config.yaml and NOW.md; what is there stays as it is"),
        store(),
        recall(),
        list_memories(),
        Command::new("get")
            .visible_alias("show")
            .about("Show memories by their ids, with what they are joined to")
            .arg(required("id", "One or more ids").num_args(1..=100)),
        Command::new("edit")
            .about("Store another text in place of a memory, with its type, tags and confidence")
            .arg(required("id", "Which memory"))
            .arg(required(
                "content",
                "The new text; `-` reads standard input",
            )),
        Command::new("forget")
            .about("Forget memories: found no more, and erased after a grace time")
            .arg(required("id", "One or more ids").num_args(1..=1000))
            .arg(flag("now", "Erase them at once: nothing can be restored")),
        Command::new("restore")
            .about("Bring forgotten memories back that are not erased yet")
            .arg(required("id", "One or more ids").num_args(1..=1000)),
        belief(),
        now(),
        daily(),
        session_start(),
        Command::new("session-end")
            .about("End a session, and say so in the daily log")
            .arg(text(
                "id",
                "ID",
                "Which session; the latest one when absent",
            ))
            .arg(flag("no-backup", "Make no backup of what changed")),
        Command::new("check")
            .about("Save the state before a context is compressed: stamp NOW.md and keep a copy"),
        Command::new("status").about("Show how much there is, and where"),
        Command::new("reindex")
            .about("Cut every text into passages again, and embed what has no vector"),
        Command::new("audit")
            .about("Check files, memories, graph and log; exit code 9 when something is wrong")
            .arg(flag(
                "accept",
                "Take the files as they are, after you have looked at them",
            )),
        config(),
        events(),
        graph(),
        pending(),
        super::super::omi_backup::command(),
        Command::new("completion")
            .about("Print completions for a shell")
            .arg(
                Arg::new("shell")
                    .required(true)
                    .value_parser(value_parser!(Shell)),
            ),
    ]
}

fn group(name: &'static str, about: &'static str) -> Command {
    Command::new(name)
        .about(about)
        .subcommand_required(true)
        .arg_required_else_help(true)
}

fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn list(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    text(name, value, help)
        .value_delimiter(',')
        .action(ArgAction::Append)
}

/// Any number of whole texts: texts may contain commas.
fn repeated(name: &'static str, help: &'static str) -> Arg {
    text(name, "TEXT", help).action(ArgAction::Append)
}

fn required(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .value_name(name.to_uppercase())
        .help(help)
        .required(true)
}

fn number(name: &'static str, help: &'static str) -> Arg {
    text(name, "NUMBER", help).value_parser(value_parser!(f64))
}

fn limit(default: &'static str, max: i64) -> Arg {
    text("limit", "N", "At most so many")
        .short('l')
        .value_parser(value_parser!(u32).range(1..=max))
        .default_value(default)
}

fn memory_type(help: &'static str) -> Arg {
    let words = MemoryType::ALL.map(MemoryType::as_str);
    text("type", "TYPE", help).value_parser(PossibleValuesParser::new(words))
}

fn store() -> Command {
    Command::new("store")
        .about("Store a memory, or many")
        .arg(
            Arg::new("content")
                .value_name("CONTENT")
                .help("What to remember; `-` reads standard input")
                .required_unless_present("batch")
                .conflicts_with("batch"),
        )
        .arg(memory_type("What kind of memory it is").default_value("experience"))
        .arg(number("confidence", "How sure, from 0 to 1"))
        .arg(list("related-to", "IDS", "Memories that it is related to"))
        .arg(list("tags", "WORDS", "Words to filter by"))
        .arg(text("id", "ID", "A name of your own for it"))
        .arg(text("supersedes", "ID", "A memory that no longer holds because of it"))
        .arg(text("session", "ID", "The session it belongs to: its memories give one another context"))
        .arg(
            Arg::new("global")
                .long("global")
                .action(ArgAction::SetTrue)
                .help("For every project, and not for this one alone"),
        )
        .arg(
            text("batch", "FILE", "Memories as JSON lines, each as for `memory_store`: all or none; `-` is standard input")
                .conflicts_with_all(["confidence", "related-to", "tags", "id", "supersedes", "session", "global"]),
        )
}

fn list_memories() -> Command {
    Command::new("list")
        .about("List memories, the newest first")
        .arg(limit("20", 1_000))
        .arg(
            text("offset", "N", "Leave out so many at the beginning")
                .value_parser(value_parser!(u32))
                .default_value("0"),
        )
        .arg(memory_type("Only of this type"))
        .arg(list("tags", "WORDS", "Only with all of these"))
        .arg(flag("superseded", "Also those that others superseded"))
        .arg(flag(
            "forgotten",
            "Those that are forgotten and can still be restored",
        ))
}

fn recall() -> Command {
    Command::new("recall")
        .about("Find memories by what they mean or say")
        .arg(required("query", "Search text, free form"))
        .arg(limit("10", 100))
        .arg(number(
            "min-relevance",
            "Leave out what is less relevant (0 to 1; default 0.7, with `--mode fts` 0)",
        ))
        .arg(memory_type("Only of this type"))
        .arg(list("tags", "WORDS", "Only with all of these"))
        .arg(text(
            "cursor",
            "CURSOR",
            "Go on where an answer ended: its line `more:` names the cursor",
        ))
        .arg(
            text("mode", "MODE", "By meaning, by words, or both")
                .value_parser(["semantic", "fts", "hybrid"])
                .default_value("hybrid"),
        )
        .arg(
            text(
                "scope",
                "SCOPE",
                "This project's and global memories, only global ones, or those of all projects",
            )
            .value_parser(["project", "global", "all"])
            .default_value("project"),
        )
        .arg(text("as-of", "TIME", "What was known at that time"))
        .arg(
            text(
                "sort",
                "ORDER",
                "By relevance and age, or by relevance alone",
            )
            .value_parser(["score", "relevance"])
            .default_value("score"),
        )
        .arg(
            text(
                "context",
                "N",
                "Also so many memories before and after each in its session",
            )
            .value_parser(value_parser!(u32).range(0..=10)),
        )
}

fn belief() -> Command {
    group("belief", "Weigh evidence, look at it, find contradictions")
        .subcommand(
            Command::new("update")
                .about("Bring evidence for or against a belief")
                .arg(required("belief", "The belief's id"))
                .arg(required(
                    "evidence",
                    "The id of the memory that is the evidence",
                ))
                .arg(flag("supports", "It speaks for the belief"))
                .arg(flag("contradicts", "It speaks against the belief"))
                .group(
                    clap::ArgGroup::new("side")
                        .args(["supports", "contradicts"])
                        .required(true),
                )
                .arg(number("strength", "How strongly, from 0 to 1").required(true)),
        )
        .subcommand(
            Command::new("evidence")
                .about("The evidence of a belief, oldest first")
                .arg(required("belief", "The belief's id")),
        )
        .subcommand(
            Command::new("check")
                .about("What contradicts a memory; without one, beliefs that evidence divides")
                .arg(required("memory", "A memory's id").required(false))
                .arg(required("other", "Compare with this one only").required(false)),
        )
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .help(help)
        .action(ArgAction::SetTrue)
}

fn now() -> Command {
    group("now", "What the agent is doing: NOW.md")
        .subcommand(Command::new("show").about("Show it"))
        .subcommand(
            Command::new("update")
                .about("Change it; what is not named stays")
                .arg(text("task", "TEXT", "Current focus (replaces)"))
                .arg(repeated(
                    "completed",
                    "Just completed (adds); may be repeated",
                ))
                .arg(repeated(
                    "pending",
                    "Unresolved choice (all of them replace the list)",
                ))
                .arg(repeated(
                    "file",
                    "Critical path (all of them replace the list)",
                )),
        )
}

fn daily() -> Command {
    group("daily", "The log of each day")
        .subcommand(
            Command::new("append")
                .about("Add an entry to the log of today")
                .arg(required("content", "The entry; `-` reads standard input")),
        )
        .subcommand(
            Command::new("show")
                .about("Show the log of a day")
                .arg(
                    required("date", "Which day: 2026-11-16; today when absent")
                        .required(false)
                        .conflicts_with("days-ago"),
                )
                .arg(
                    text("days-ago", "N", "Of so many days ago")
                        .value_parser(value_parser!(u32))
                        .default_value("0"),
                ),
        )
        .subcommand(
            Command::new("list")
                .about("Name the logs, newest first")
                .arg(
                    text("days", "N", "Of the last so many days")
                        .value_parser(value_parser!(u32))
                        .default_value("7"),
                ),
        )
}

fn session_start() -> Command {
    Command::new("session-start")
        .about("Begin a session, and say what there is")
        .arg(text("id", "ID", "A name of your own for it"))
        .arg(flag("show-now", "Show NOW.md too"))
}

fn config() -> Command {
    group("config", "Look at config.yaml, and change it")
        .subcommand(
            Command::new("get")
                .about("What holds for a key")
                .arg(required("key", "For example `vault.enabled`")),
        )
        .subcommand(
            Command::new("set")
                .about("Set a key; everything else in the file stays as it is")
                .arg(required("key", "For example `vault.enabled`"))
                .arg(
                    required("value", "As in YAML: `true` is a flag, `90` a number")
                        .allow_hyphen_values(true),
                ),
        )
        .subcommand(Command::new("show").about("Every key with what holds for it"))
}

fn pending() -> Command {
    let id = || required("id", "Which write: see `pending list`");
    group(
        "pending",
        "Memories that wait for a second key (`security.enable_consensus`)",
    )
    .subcommand(Command::new("list").about("Those that wait, oldest first"))
    .subcommand(
        Command::new("show")
            .about("What is to be stored, and the text that the second key signs")
            .arg(id()),
    )
    .subcommand(
        Command::new("confirm")
            .about("Store it: signed with an agent's key of this machine, or elsewhere")
            .arg(id())
            .arg(
                text("agent", "NAME", "Sign with the key of this agent")
                    .required_unless_present("signature")
                    .conflicts_with("signature"),
            )
            .arg(text(
                "key",
                "PUBLIC_KEY",
                "The key that signed it elsewhere",
            ))
            .arg(
                text(
                    "signature",
                    "HEX",
                    "Its signature of the text that `show` prints",
                )
                .requires("key"),
            ),
    )
    .subcommand(Command::new("reject").about("Drop it").arg(id()))
}

fn events() -> Command {
    let kind = || {
        text(
            "type",
            "TYPE",
            "Only of this kind: `memory.stored` or `MemoryStoredEvent`",
        )
        .visible_alias("event-type")
    };
    group("events", "What happened")
        .subcommand(
            Command::new("list")
                .about("The latest events, oldest first")
                .arg(kind())
                .arg(text("since", "TIME", "Not before"))
                .arg(text("until", "TIME", "Not after"))
                .arg(limit("20", 100_000)),
        )
        .subcommand(
            Command::new("subscribe")
                .about("Events as they happen, of any process, until you stop it")
                .arg(kind())
                .arg(
                    text("after", "SEQ", "Begin after this place in the log")
                        .value_parser(value_parser!(u64)),
                )
                .arg(
                    text("count", "N", "Stop after so many")
                        .value_parser(value_parser!(u64).range(1..)),
                ),
        )
}

fn graph() -> Command {
    group("graph", "Memories and what joins them").subcommand(
        Command::new("export")
            .about("Write the graph as data or as a picture")
            .arg(
                text("format", "FORMAT", "As what")
                    .value_parser(["dot", "json", "svg", "html"])
                    .default_value("dot"),
            )
            .arg(
                text("output", "FILE", "Where to; `-` is standard output")
                    .short('o')
                    .default_value("-"),
            ),
    )
}
