//! Settings from the command line and the environment.

use crate::env_vars;
use clap::builder::FalseyValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};
use kenning_core::{Error, Result, Space};
use kenning_engine::kami::WasmOptions;
use kenning_engine::kiwi::ItemOptions;
use kenning_engine::koi::RepositoryOptions;
use kenning_engine::{Principal, Project};
use kenning_tools::Selection;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The shortest token that an operator may choose.
const TOKEN_CHARS_MIN: usize = 16;

/// The default address of `kenning serve`.
pub(crate) const LISTEN_DEFAULT: &str = "127.0.0.1:8351";

/// Entries that mark the root directory of a project.
const PROJECT_MARKS: [&str; 3] = [".kenning", ".ai", ".git"];

/// Settings that every command shares.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data directory.
    pub data: PathBuf,
    /// The database, if one was named instead of the embedded store.
    pub database: Option<DatabaseUrl>,
    /// A file of certificates to check the database's own against.
    pub database_ca: Option<PathBuf>,
    /// The vault, if one was named.
    pub vault: Option<PathBuf>,
    /// The directory of NOW.md and the daily logs; `None` only where there is no home directory.
    pub omi: Option<PathBuf>,
    /// The project whose documents make the graph; `None` only where there is no working directory.
    pub project: Option<PathBuf>,
    /// Whether somebody named it: then it is a project, whatever is in it.
    pub is_project_named: bool,
    /// Where WASM tools are kept, and whether many calls are expected.
    pub wasm: WasmOptions,
    /// Where directives, tools and knowledge are.
    pub items: ItemOptions,
    /// The repositories that may be read.
    pub repositories: RepositoryOptions,
    /// Where mail is read from, if anywhere.
    pub mail: Option<PathBuf>,
    /// The space that the owner works in.
    pub space: Space,
    /// Which tools are shown.
    pub selection: Selection,
    /// Whether answers are JSON.
    pub json: bool,
    /// Whether only data and errors are shown.
    pub quiet: bool,
    /// How much is logged: 0 to 3.
    pub verbosity: u8,
}

/// The URL of a database. It may contain a password, so it is not printed.
#[derive(Clone)]
pub struct DatabaseUrl(pub String);

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// The options of `kenning serve`.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Where to listen.
    pub listen: Vec<SocketAddr>,
    /// A token with every scope.
    pub token: Option<String>,
    /// Whether callers on this machine need no token: then each of them, and each visitor of a proxy
    /// that runs here, is the owner.
    pub no_token: bool,
    /// Host names of the server, in addition to the loopback ones.
    pub allow_hosts: Vec<String>,
    /// Allowed origins (CORS), in addition to those of this machine.
    pub allow_origins: Vec<String>,
    /// Calls a minute for one caller that is not on this machine.
    pub calls_per_minute: u32,
    /// The folder of documents that the graph follows, if any.
    pub watch: Option<String>,
}

impl Settings {
    pub(crate) fn from_matches(matches: &ArgMatches) -> Result<Self> {
        // Flags may come before or after the subcommand; the innermost one knows them all.
        let mut innermost = matches;
        while let Some((_, inner)) = innermost.subcommand() {
            innermost = inner;
        }
        let list = |name: &str| -> Vec<String> {
            let values = innermost
                .try_get_many::<String>(name)
                .ok()
                .flatten()
                .into_iter()
                .flatten();
            values
                .map(|it| it.trim().to_owned())
                .filter(|it| !it.is_empty())
                .collect()
        };
        let path = |name: &str| innermost.get_one::<PathBuf>(name).cloned();
        let space: Option<&String> = innermost.get_one("space");
        let space = space.filter(|it| !it.trim().is_empty());
        let space = space.map(|it| it.parse()).transpose();
        let data_dir = path("data-dir")
            .filter(|it| !it.as_os_str().is_empty())
            .map(at_home);
        if let Some(dir) = &data_dir {
            refuse_two_places(innermost, dir)?;
        }
        let named_project = path("project")
            .filter(|it| !it.as_os_str().is_empty())
            .or_else(|| absolute(env_vars::KG_PROJECT_ROOT));
        let (quiet, verbosity) = (innermost.get_flag("quiet"), innermost.get_count("verbose"));
        if quiet && verbosity > 0 {
            return Err(
                Error::invalid("`--quiet` and `--verbose` contradict each other")
                    .hint("use only one of them"),
            );
        }
        Ok(Self {
            data: data_dir
                .clone()
                .or_else(|| path("data").filter(|it| !it.as_os_str().is_empty()))
                .map_or_else(data_default, Ok)?,
            database: innermost
                .get_one::<String>("database")
                .filter(|it| !it.trim().is_empty())
                .map(|it| DatabaseUrl(it.trim().to_owned())),
            database_ca: path("database-ca").filter(|it| !it.as_os_str().is_empty()),
            vault: path("vault").filter(|it| !it.as_os_str().is_empty()),
            omi: data_dir.or_else(|| {
                path("omi-path")
                    .filter(|it| !it.as_os_str().is_empty())
                    .map_or_else(omi_default, |it| Some(at_home(it)))
            }),
            is_project_named: named_project.is_some(),
            project: named_project.map_or_else(project_default, |it| Some(at_home(it))),
            wasm: WasmOptions {
                dir: absolute(env_vars::KAMI_DATA_DIR),
                pooling: is_server(matches),
            },
            items: item_options(list("allow-root")),
            repositories: repository_options(is_server(matches))?,
            mail: variable(env_vars::MAIL).map(|it| at_home(it.into())),
            space: space
                .map_err(|it| Error::invalid(format!("`--space`: {it}")))?
                .unwrap_or_default(),
            selection: Selection {
                toolsets: list("toolsets"),
                tools: list("tools"),
                exclude_tools: list("exclude-tools"),
                read_only: innermost.get_flag("read-only"),
                safe_names: innermost.get_flag("safe-names"),
            },
            // `kenning call` has its own `--json`, which takes a value and always answers in JSON.
            json: innermost
                .try_get_one::<bool>("json")
                .map_or(true, |it| it == Some(&true)),
            quiet,
            verbosity,
        })
    }
}

impl Settings {
    /// The project whose memories and context a call has: the one that was named, else that of the working
    /// directory.
    pub fn memory_project(&self) -> Option<Project> {
        let home = absolute("HOME");
        let project = self.project.as_deref()?;
        match (keeps_projects_apart(), self.is_project_named) {
            (false, _) => None,
            (true, true) => Project::of_named_dir(project, home.as_deref()),
            (true, false) => Project::of_dir(project, home.as_deref()),
        }
    }

    /// The project of the directory that a client says it works in, unless another was named.
    pub(crate) fn memory_project_in(&self, dir: Option<&str>) -> Option<Project> {
        let dir = dir.map(std::path::Path::new).filter(|it| it.is_absolute());
        match dir {
            Some(dir) if keeps_projects_apart() && !self.is_project_named => {
                Project::of_dir(dir, absolute("HOME").as_deref())
            }
            _ => self.memory_project(),
        }
    }

    /// Whoever started the process.
    pub fn owner(&self) -> Principal {
        Principal::owner(self.space.clone()).in_project(self.memory_project())
    }
}

/// Whether memories belong to projects. `off` is for whoever wants one memory for everything.
fn keeps_projects_apart() -> bool {
    variable(env_vars::PROJECTS).is_none_or(|it| it != "off")
}

/// `--data-dir` is one directory for everything, as in the memory contract: naming another one beside
/// it is a contradiction.
fn refuse_two_places(matches: &ArgMatches, dir: &std::path::Path) -> Result<()> {
    for name in ["data", "omi-path"] {
        if matches.value_source(name) != Some(ValueSource::CommandLine) {
            continue;
        }
        let other = matches.get_one::<PathBuf>(name).cloned().map(at_home);
        if other.is_some_and(|it| it != dir) {
            return Err(Error::invalid(format!(
                "`--data-dir` and `--{name}` name different directories"
            ))
            .hint(
                "`--data-dir DIR` is one directory for everything; for two, give \
                 `--data` (the store) and `--omi-path` (NOW.md and the daily logs)",
            ));
        }
    }
    Ok(())
}

impl ServeOptions {
    pub(crate) fn from_matches(matches: &ArgMatches) -> Result<Self> {
        let list = |name: &str| -> Vec<String> {
            matches
                .get_many::<String>(name)
                .into_iter()
                .flatten()
                .cloned()
                .collect()
        };
        let listen = list("listen")
            .iter()
            .map(|text| parse_listen(text))
            .collect::<Result<_>>()?;
        let named = |it: &String| !it.trim().is_empty();
        let api_key = || std::env::var(env_vars::OMI_API_KEY).ok().filter(named);
        let token = given_token(matches)?.filter(named).or_else(api_key);
        check_token(token.as_deref())?;
        Ok(Self {
            listen,
            no_token: wants_no_token(matches, token.as_ref())?,
            token,
            allow_hosts: list("allow-host"),
            allow_origins: list("allow-origin").into_iter().filter(named).collect(),
            calls_per_minute: matches.get_one("rate-limit").copied().unwrap_or(600),
            watch: matches.get_one::<String>("watch").cloned(),
        })
    }
}

/// Whether the process is a server.
fn is_server(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some(("mcp" | "serve", _)) => true,
        Some(("kami", inner)) => is_server(inner),
        _ => false,
    }
}

impl ServeOptions {
    /// One address, and optionally a token.
    pub(crate) fn of(listen: &str, matches: &ArgMatches) -> Result<Self> {
        let token = given_token(matches)?;
        check_token(token.as_deref())?;
        Ok(Self {
            listen: vec![parse_listen(listen)?],
            no_token: wants_no_token(matches, token.as_ref())?,
            token,
            allow_hosts: Vec::new(),
            allow_origins: Vec::new(),
            calls_per_minute: 600,
            watch: None,
        })
    }
}

/// A token with every scope must not be easy to guess.
fn check_token(token: Option<&str>) -> Result<()> {
    match token.map(|it| it.trim().chars().count()) {
        Some(n) if n < TOKEN_CHARS_MIN => Err(Error::invalid(format!(
            "the token has {n} characters; at least {TOKEN_CHARS_MIN} are needed (`--token`, {}, {})",
            env_vars::TOKEN,
            env_vars::OMI_API_KEY
        ))
        .hint("`openssl rand -hex 24` prints a good one; or leave it out and make one with `kenning token create`")),
        _ => Ok(()),
    }
}

/// Whether the operator lets everybody on this machine in.
fn wants_no_token(matches: &ArgMatches, token: Option<&String>) -> Result<bool> {
    let no_token = matches.get_flag("no-token");
    if no_token && token.is_some() {
        let variable = env_vars::NO_TOKEN;
        return Err(Error::invalid(format!(
            "`--no-token` ({variable}) and a token contradict each other"
        ))
        .hint("leave one of them out"));
    }
    Ok(no_token)
}

/// The token that was given. An empty variable counts as not set; an empty option is a mistake that
/// would leave the server open.
fn given_token(matches: &ArgMatches) -> Result<Option<String>> {
    let token = matches.get_one::<String>("token");
    let token = token.map(|it| it.trim().to_owned());
    let is_typed = matches.value_source("token") == Some(ValueSource::CommandLine);
    match token {
        Some(token) if token.is_empty() && is_typed => {
            Err(Error::invalid("`--token` is empty").hint("give a token, or leave the option out"))
        }
        token => Ok(token.filter(|it| !it.is_empty())),
    }
}

fn parse_listen(text: &str) -> Result<SocketAddr> {
    let text = text
        .strip_prefix("localhost:")
        .map_or(text.to_owned(), |it| format!("127.0.0.1:{it}"));
    text.parse().map_err(|_| {
        Error::invalid(format!("`--listen`: `{text}` is not an address and a port"))
            .hint(format!("for example `{LISTEN_DEFAULT}` or `[::1]:8351`"))
    })
}

/// A directory that a variable of the environment names.
fn absolute(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os(name).map(PathBuf::from);
    path.filter(|path| path.is_absolute())
}

/// The user's own items, and where else callers may name a project.
fn item_options(allow_roots: Vec<String>) -> ItemOptions {
    let at = |name: &str| absolute("HOME").map(|home| home.join(name));
    let own = absolute(env_vars::USER_SPACE);
    let address = std::env::var(env_vars::KIWI_REGISTRY_URL).ok();
    ItemOptions {
        // If everything was moved elsewhere, nothing is kept in the home directory.
        user_knowledge: match &own {
            Some(_) => None,
            None => at(".knowledge-kiwi"),
        },
        user: own.or_else(|| at(".ai")),
        allow_roots: allow_roots.iter().map(|it| at_home(it.into())).collect(),
        registry: address.filter(|it| !it.trim().is_empty()),
        launcher: None,
    }
}

/// A variable of the environment that is not empty.
fn variable(name: &str) -> Option<String> {
    let text = std::env::var(name).ok()?;
    Some(text.trim().to_owned()).filter(|it| !it.is_empty())
}

/// Whether callers need a token, for every command that serves HTTP.
pub(crate) fn token_rules() -> [Arg; 2] {
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    [
        flag("require-token")
            .conflicts_with("no-token")
            .help("Over HTTP, ask every caller for a token; this is the default"),
        flag("no-token")
            .env(env_vars::NO_TOKEN)
            .value_parser(FalseyValueParser::new())
            .help(
                "Over HTTP, ask callers on this machine for no token: every user of it, and every visitor of \
                 a proxy on it, may do everything",
            ),
    ]
}

/// Which repositories may be read.
fn repository_options(is_server: bool) -> Result<RepositoryOptions> {
    let mut options = RepositoryOptions::default();
    if !is_server {
        // A person who waits decides how long; whoever ends the command goes on with the next one.
        options.wait = Duration::from_secs(365 * 24 * 60 * 60);
    }
    if let Some(paths) = variable(env_vars::REPO_PATHS) {
        let paths = std::env::split_paths(&paths).filter(|it| !it.as_os_str().is_empty());
        options.paths = paths.map(at_home).collect();
    }
    if let Some(hosts) = variable(env_vars::REPO_HOSTS) {
        let hosts = hosts.split(',').map(str::trim).filter(|it| !it.is_empty());
        options.hosts = hosts.map(ToOwned::to_owned).collect();
    }
    if let Some(allow) = variable(env_vars::REPO_ALLOW) {
        let allow = allow.split(',').map(str::trim).filter(|it| !it.is_empty());
        options.allow = allow.map(ToOwned::to_owned).collect();
    }
    if let Some(seconds) = variable(env_vars::REPO_INTERVAL) {
        let name = env_vars::REPO_INTERVAL;
        let seconds = seconds.parse().map_err(|_| {
            Error::invalid(format!("{name}: `{seconds}` is not a number of seconds"))
                .hint("for example `21600`, or `0` for never")
        })?;
        options.interval = Duration::from_secs(seconds);
    }
    Ok(options)
}

/// `~/.openclaw/omi`
fn omi_default() -> Option<PathBuf> {
    absolute("HOME").map(|home| home.join(".openclaw/omi"))
}

/// `~/omi` comes from where no shell expands the home directory: a service or a client's settings.
/// Absolute, because an unfinished write records it, and whoever finishes it may have another working
/// directory.
fn at_home(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), absolute("HOME")) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => std::path::absolute(&path).unwrap_or(path),
    }
}

/// The nearest directory above the working directory that looks like a project, otherwise the working
/// directory.
fn project_default() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let is_project =
        |dir: &&std::path::Path| PROJECT_MARKS.iter().any(|mark| dir.join(mark).exists());
    let found = here.ancestors().find(is_project).map(ToOwned::to_owned);
    Some(found.unwrap_or(here))
}

/// `$XDG_DATA_HOME/kenning`, else `~/.local/share/kenning`.
fn data_default() -> Result<PathBuf> {
    absolute(env_vars::XDG_DATA_HOME)
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map(|base| base.join("kenning"))
        .ok_or_else(|| {
            Error::invalid("there is no home directory to keep data in")
                .hint(format!("name one with `--data DIR` or {}", env_vars::DATA))
        })
}
