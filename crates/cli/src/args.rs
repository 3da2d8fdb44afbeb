//! The command line as clap sees it, built from the tool table.

use crate::settings::{LISTEN_DEFAULT, token_rules};
use crate::{audit_args, commands, env_vars, tool_args};
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, Command, ValueHint, value_parser};
use kenning_tools::{TOOLS, Toolset};
use std::path::PathBuf;

/// The whole command line.
pub fn command() -> Command {
    let command = Command::new("kenning")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Memory, knowledge and tools for AI agents, in one program")
        .after_help("`kenning mcp` is what an MCP client starts; `kenning setup` tells it how.")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args(shared());
    command
        .subcommands(own())
        .subcommands(Toolset::ALL.into_iter().filter_map(toolset))
}

fn global(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).global(true)
}

/// The command line of the program `omi`.
pub fn omi_command() -> Command {
    Command::new("omi")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Memories, beliefs and the current context of AI agents")
        .after_help("`kenning omi` is the same; `kenning mcp` is what an MCP client starts.")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args(shared())
        .subcommands(omi_subcommands())
}

/// The command line of the program `kami`.
pub fn kami_command() -> Command {
    Command::new("kami")
        .version(env!("CARGO_PKG_VERSION"))
        .about("WASM tools for AI agents, in a sandbox")
        .after_help(
            "`kenning kami` is the same; `kenning mcp` shows installed tools beside all others.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args(shared())
        .subcommands(commands::kami_commands())
}

/// The commands of `omi`, and the tools of its contract.
fn omi_subcommands() -> Vec<Command> {
    let mut all = commands::omi_commands();
    all.extend(tool_commands(Toolset::Omi));
    all
}

/// Options of every command.
fn shared() -> Vec<Arg> {
    let list = |name, help| global(name, help).value_delimiter(',').value_name("NAMES");
    // An empty value counts as not set, as a client's settings leave it.
    let path = |name, help| {
        global(name, help)
            .value_name("DIR")
            .value_parser(OsStringValueParser::new().map(PathBuf::from))
            .value_hint(ValueHint::AnyPath)
    };
    let flag = |name, help| global(name, help).action(ArgAction::SetTrue);
    let heading = "Shared options";
    [
        path("data", "Data directory").env(env_vars::DATA),
        global(
            "database",
            "Database to keep everything in, instead of the data directory",
        )
        .value_name("URL")
        .env(env_vars::DATABASE_URL)
        .hide_env_values(true),
        path(
            "database-ca",
            "Certificates that the database's own is checked against",
        )
        .value_name("FILE")
        .env(env_vars::DATABASE_CA),
        path("vault", "Vault of Markdown notes").env(env_vars::VAULT_PATH),
        path("omi-path", "Directory of NOW.md and the daily logs").env(env_vars::OMI_BASE_PATH),
        path(
            "data-dir",
            "One directory for everything: --data and --omi-path in one",
        ),
        path("project", "Project whose documents make the graph").env(env_vars::PROJECT),
        list(
            "allow-root",
            "Directories beneath which callers may name a project",
        )
        .value_name("DIR"),
        global("space", "Space to work in")
            .value_name("NAME")
            .env(env_vars::SPACE),
        list(
            "toolsets",
            "Show these toolsets only: core, koi, kiwi, kg, kg-extra, omi, omi-extra, kami; or default: a dozen tools that reach all others; lean: only those that reach; contracts: what the contracts name; all",
        )
        .env(env_vars::TOOLSETS),
        list("tools", "Show these tools, in addition to --toolsets"),
        list("exclude-tools", "Hide these tools"),
        flag("read-only", "Change nothing"),
        flag(
            "safe-names",
            "Show installed tools under names without dots, for clients that take none",
        ),
        flag("json", "Answer in JSON").visible_alias("json-output"),
        flag("quiet", "Show data and errors only").short('q'),
        global("verbose", "Log more; twice for still more")
            .short('v')
            .action(ArgAction::Count),
    ]
    .map(|it| it.help_heading(heading))
    .to_vec()
}

fn force() -> Arg {
    Arg::new("force")
        .long("force")
        .action(ArgAction::SetTrue)
        .help("Replace the file if it is there")
}

/// Commands that are not tools.
fn own() -> Vec<Command> {
    let file = |help: &'static str| {
        Arg::new("file")
            .value_name("FILE")
            .help(help)
            .required(true)
    };
    vec![
        Command::new("tour").about("See the main job once, in a directory of its own"),
        Command::new("mcp").about("Serve MCP on standard input and output"),
        serve(),
        commands::watch_command(),
        commands::workflow_command(),
        commands::trajectory_command(),
        Command::new("tools").about("List the tools"),
        call(),
        commands::query_command(),
        audit_args::audit(),
        audit_args::agent_key(),
        Command::new("backup")
            .about("Write a consistent copy of every space; `-` is standard output")
            .arg(file("Where to"))
            .arg(force()),
        Command::new("restore")
            .about("Put a backup into an empty data directory and verify it")
            .arg(file("Which backup"))
            .arg(
                Arg::new("keep-tokens")
                    .long("keep-tokens")
                    .action(ArgAction::SetTrue)
                    .help("Keep its tokens valid, even those that were revoked since it was made"),
            )
            .arg(
                Arg::new("erased-in")
                    .long("erased-in")
                    .value_name("FILE")
                    .help("A newer backup: what was erased before it was made is erased here too"),
            ),
        Command::new("export")
            .about("Write nodes and edges as JSON lines; `-` is standard output")
            .arg(file("Where to").required(false).default_value("-"))
            .arg(force()),
        Command::new("import")
            .about("Read what `export` wrote (`-` is standard input), or what another memory program keeps")
            .args_conflicts_with_subcommands(true)
            .arg(file("Where from").required(false).default_value("-"))
            .subcommands(commands::import_commands()),
        Command::new("migrate")
            .about("Move a store with its log: between a data directory and a database")
            .arg(place("from", "Where it is"))
            .arg(place(
                "to",
                "Where it goes; must be empty, or half moved by an earlier run",
            )),
        commands::forget_command(),
        commands::hook_command(),
        commands::trust_command(),
        commands::registry_command(),
        Command::new("kami")
            .about("WASM tools in a sandbox; also the program `kami`")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(commands::kami_commands()),
        commands::agent_command(),
        commands::code_command(),
        Command::new("doctor").about("Look for what is wrong with this installation"),
        Command::new("reindex")
            .about("Cut every text into passages again, and embed what has no vector"),
        token(),
        commands::project_command(),
        commands::capture_command(),
        commands::peer_command(),
        commands::federation_command(),
        Command::new("setup")
            .about("Show or write the configuration of an MCP client")
            .arg(
                Arg::new("client")
                    .required_unless_present("check")
                    .value_parser(PossibleValuesParser::new(commands::SETUP_CLIENTS)),
            )
            .arg(
                Arg::new("scope")
                    .long("scope")
                    .value_name("SCOPE")
                    .value_parser(PossibleValuesParser::new(commands::SETUP_SCOPES))
                    .help("Whose configuration: yours everywhere, the project's for everybody (without paths of this machine), or yours in this project"),
            )
            .arg(
                Arg::new("url")
                    .long("url")
                    .value_name("URL")
                    .conflicts_with_all(["hooks", "plugin"])
                    .help("A server that runs already, for example https://kenning.example/mcp; the client takes its token from KENNING_TOKEN"),
            )
            .arg(
                Arg::new("check")
                    .long("check")
                    .action(ArgAction::SetTrue)
                    .conflicts_with_all(["client", "write", "scope", "url", "hooks", "plugin"])
                    .help("Say which clients are set up, and whether what they start is there"),
            )
            .arg(
                Arg::new("write")
                    .long("write")
                    .action(ArgAction::SetTrue)
                    .help("Write it into the client's file instead of showing it"),
            )
            .arg(
                Arg::new("hooks")
                    .long("hooks")
                    .action(ArgAction::SetTrue)
                    .help("The hooks of claude-code instead of its servers"),
            )
            .arg(
                Arg::new("plugin")
                    .long("plugin")
                    .action(ArgAction::SetTrue)
                    .conflicts_with("hooks")
                    .help("A plugin of claude-code (server, hooks, skill) or of openclaw instead of its servers"),
            ),
        Command::new("completions")
            .about("Print completions for a shell")
            .arg(
                Arg::new("shell")
                    .required(true)
                    .value_parser(value_parser!(clap_complete::Shell)),
            ),
        Command::new("man").about("Print the manual page"),
        callback(),
    ]
}

/// What the completion scripts of shells call: the words that were typed, for what may follow.
pub(crate) const CALLBACK: &str = "__complete";

fn callback() -> Command {
    Command::new(CALLBACK)
        .about("What may follow the words that were typed; for shells")
        .hide(true)
        .arg(
            Arg::new("words")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true),
        )
}

fn place(name: &'static str, help: &'static str) -> Arg {
    let help = format!("{help}: a directory, or `postgres://…`");
    Arg::new(name)
        .long(name)
        .value_name("PLACE")
        .required(true)
        .help(help)
}

fn serve() -> Command {
    Command::new("serve")
        .about("Serve MCP, REST and the log over HTTP")
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS:PORT")
                .action(ArgAction::Append)
                .default_value(LISTEN_DEFAULT)
                .help("Where to listen; may be repeated; port 0 is any free one"),
        )
        .arg(
            Arg::new("token")
                .long("token")
                .value_name("TOKEN")
                .env(env_vars::TOKEN)
                .hide_env_values(true)
                .help("Accept this token, of at least 16 characters, with every scope"),
        )
        .args(token_rules())
        .arg(
            Arg::new("allow-host")
                .long("allow-host")
                .value_name("NAME")
                .action(ArgAction::Append)
                .help("Answer to this host name too; may be repeated"),
        )
        .arg(
            Arg::new("allow-origin")
                .long("allow-origin")
                .value_name("ORIGIN")
                .action(ArgAction::Append)
                .value_delimiter(',')
                .env(env_vars::ALLOW_ORIGINS)
                .help("Let pages of this origin call (CORS), such as https://app.example; may be repeated"),
        )
        .arg(
            Arg::new("rate-limit")
                .long("rate-limit")
                .value_name("CALLS")
                .value_parser(value_parser!(u32).range(1..))
                .default_value("600")
                .help("Calls a minute for one caller that is not on this machine"),
        )
        .arg(
            Arg::new("watch")
                .long("watch")
                .value_name("FOLDER")
                .num_args(0..=1)
                .default_missing_value("docs")
                .help("Let the graph follow this folder of the project, and the vault"),
        )
}

fn call() -> Command {
    Command::new("call")
        .about("Call any tool by its name; answers in JSON")
        .arg(Arg::new("name").value_name("NAME").required(true))
        // The shared flag with this name takes no value; here the arguments are JSON.
        .arg(
            Arg::new("json")
                .long("json")
                .value_name("ARGUMENTS")
                .action(ArgAction::Set)
                .default_value("{}")
                .help("The arguments, as a JSON object; `-` reads standard input"),
        )
        .arg(yes())
}

fn token() -> Command {
    Command::new("token")
        .about("Make, list and revoke the tokens of the HTTP server")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("create")
                .about("Make a token and print it; it cannot be shown again")
                .arg(
                    Arg::new("name")
                        .long("name")
                        .default_value("token")
                        .help("A name for people and for the log"),
                )
                .arg(
                    Arg::new("scopes")
                        .long("scopes")
                        .value_delimiter(',')
                        .default_value("read,write")
                        .help("What it may do: read, write, run, fetch, destroy, admin"),
                )
                .arg(
                    Arg::new("expires")
                        .long("expires")
                        .value_name("TIME")
                        .help("How long it is valid: 12h, 30d, 1y; for ever when absent"),
                ),
        )
        .subcommand(Command::new("show").about(
            "Print the token of whoever starts the server from this data directory, with every scope",
        ))
        .subcommand(Command::new("list").about("List tokens, without their secrets"))
        .subcommand(
            Command::new("revoke")
                .about("Revoke a token")
                .arg(Arg::new("id").value_name("ID").required(true)),
        )
}

/// `kenning <toolset> <tool>`; nothing for a toolset without tools.
fn toolset(toolset: Toolset) -> Option<Command> {
    let tools = tool_commands(toolset);
    let first = tools.first()?.get_name().to_owned();
    let command = Command::new(toolset.as_str())
        .subcommand_required(true)
        .arg_required_else_help(true);
    Some(if toolset == Toolset::Omi {
        command
            .about("Memories, beliefs and the current context; also the program `omi`")
            .subcommands(omi_subcommands())
    } else if toolset == Toolset::Kg {
        // Its own command writes exports of any size.
        let further = tool_commands(Toolset::KgExtra);
        let further = further.into_iter().filter(|it| it.get_name() != "export");
        command
            .about("The graph of Markdown documents: generate, query, search, export")
            .subcommands(tools)
            .subcommands(further)
            .subcommand(commands::kg_export_command())
    } else if toolset == Toolset::Kiwi {
        command
            .about("Directives, tools and knowledge: search, load, run, sign, publish")
            // `help` is one of these tools.
            .disable_help_subcommand(true)
            .subcommands(tools)
            .subcommands(commands::kiwi_commands())
    } else if toolset == Toolset::Koi {
        command
            .about("Entities, documents, web pages and notes: resolve, search, merge, import")
            .subcommands(tools)
            .subcommands(commands::koi_commands())
    } else {
        let about = format!(
            "Tools of the {} contract, for example `{first}`",
            toolset.as_str()
        );
        command.about(about).subcommands(tools)
    })
}

fn tool_commands(toolset: Toolset) -> Vec<Command> {
    let tools = TOOLS.iter().filter(|tool| tool.toolset() == toolset);
    tools
        .map(|tool| {
            let command = tool_args::command(*tool).arg(yes());
            // Within `kenning kg` the prefix is redundant.
            let Some(bare) = tool.name().strip_prefix("kg_") else {
                return command;
            };
            let command = command
                .name(tool_args::short_name(tool.name()))
                .visible_alias(tool.name());
            match bare {
                "graph_generate" => command.alias(bare),
                // The name that people look for first.
                "search_nodes" => command.visible_alias("search"),
                _ => command,
            }
        })
        .collect()
}

fn yes() -> Arg {
    Arg::new("yes")
        .long("yes")
        .action(ArgAction::SetTrue)
        .help("Do not ask before something is removed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
        omi_command().debug_assert();
        kami_command().debug_assert();
    }

    #[test]
    fn every_tool_is_a_subcommand() {
        let command = command();
        for tool in TOOLS {
            let toolset = command.find_subcommand(tool.toolset().as_str()).unwrap();
            assert!(
                toolset.find_subcommand(tool.name()).is_some(),
                "{}",
                tool.name()
            );
        }
    }
}
