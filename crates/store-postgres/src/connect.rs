//! Where the database is, and how it is reached.

use crate::WAIT_MAX;
use crate::error::from_postgres;
use crate::wait::wait_for;
use futures::future::{maybe_done, poll_fn};
use kenning_core::{Error, Result};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How many changes are sent before the first answer is awaited.
const AT_ONCE_MAX: usize = 64;

pub(crate) const CONNECT_WAIT: Duration = Duration::from_secs(3);

/// Our own parameter in the address, unknown to PostgreSQL.
const ALLOW_FSYNC_OFF: &str = "allow_fsync_off";

/// The address without our own parameter, and what that says; `None` if it is neither true nor false.
fn without_own_option(url: &str) -> Option<(String, bool)> {
    let Some((place, query)) = url.split_once('?') else {
        return Some((url.to_owned(), false));
    };
    let mut allows = false;
    let mut others = Vec::new();
    for parameter in query.split('&') {
        match parameter.split_once('=') {
            Some((ALLOW_FSYNC_OFF, value)) => allows = value.parse().ok()?,
            _ => others.push(parameter),
        }
    }
    if others.is_empty() {
        return Some((place.to_owned(), allows));
    }
    Some((format!("{place}?{}", others.join("&")), allows))
}

/// Whether a text names a PostgreSQL database.
pub fn is_url(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

/// A database. Its password is in no message and in no log.
#[derive(Clone)]
pub(crate) struct Target {
    config: Config,
    tls: Option<MakeRustlsConnect>,
    allows_fsync_off: bool,
}

impl Target {
    pub(crate) fn parse(url: &str, authorities: Option<&[u8]>) -> Result<Self> {
        let bad = |what: &str| {
            // The address itself is not repeated: it may hold a password.
            Error::invalid(format!("the database's address {what}"))
                .hint("it looks like `postgres://user:password@host:5432/database`")
        };
        if !is_url(url) {
            return Err(bad("does not begin with `postgres://`"));
        }
        let (url, allows_fsync_off) = &without_own_option(url).ok_or_else(|| {
            bad(&format!(
                "has `{ALLOW_FSYNC_OFF}` with neither `true` nor `false`"
            ))
        })?;
        // libpq's names for a certificate that is checked; here it always is.
        let known = url.replace("sslmode=verify-full", "sslmode=require");
        let known = known.replace("sslmode=verify-ca", "sslmode=require");
        let mut config: Config = known.parse().map_err(|_| bad("is malformed"))?;
        if config.get_hosts().is_empty() {
            return Err(bad("has no host"));
        }
        if !url.contains("sslmode=") {
            // By default, connections on this machine are plain and all others encrypted.
            let near = config.get_hosts().iter().all(is_near);
            config.ssl_mode(if near {
                SslMode::Disable
            } else {
                SslMode::Require
            });
        }
        config
            .application_name("kenning")
            .connect_timeout(CONNECT_WAIT)
            .tcp_user_timeout(WAIT_MAX)
            .keepalives_idle(Duration::from_secs(10));
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(tls(authorities)?),
        };
        Ok(Self {
            config,
            tls,
            allows_fsync_off: *allows_fsync_off,
        })
    }

    /// Whether the operator accepts a server that does not sync.
    pub(crate) fn allows_fsync_off(&self) -> bool {
        self.allows_fsync_off
    }

    /// Where it is, without user and password.
    pub(crate) fn describe(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<String> = hosts.collect();
        let ports: Vec<String> = self
            .config
            .get_ports()
            .iter()
            .map(ToString::to_string)
            .collect();
        let database = self
            .config
            .get_dbname()
            .unwrap_or("the user's own database");
        format!(
            "PostgreSQL at {}:{} ({database})",
            hosts.join(","),
            ports.join(",")
        )
    }

    /// Connects. The returned driver moves the bytes of the connection.
    pub(crate) async fn connect(&self, limit: Duration) -> Result<(Client, Driver)> {
        let connected = async {
            match &self.tls {
                None => {
                    let (client, connection) = self.config.connect(NoTls).await?;
                    Ok((client, Driver::Plain(Box::new(connection))))
                }
                Some(tls) => {
                    let (client, connection) = self.config.connect(tls.clone()).await?;
                    Ok((client, Driver::Tls(Box::new(connection))))
                }
            }
        };
        match tokio::time::timeout(limit.min(CONNECT_WAIT), connected).await {
            Ok(result) => result.map_err(from_postgres),
            Err(_) => Err(Error::unavailable("the database does not answer").hint("call again")),
        }
    }
}

/// Whether a host is this machine.
fn is_near(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
        }
    }
}

/// Encryption with a certificate that is checked: against the given authorities (PEM), else against
/// the public ones.
fn tls(authorities: Option<&[u8]>) -> Result<MakeRustlsConnect> {
    let bad = || {
        Error::invalid("the file of certificate authorities contains no certificate")
            .hint("give one in PEM format")
    };
    let mut roots = RootCertStore::empty();
    match authorities {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                roots
                    .add(certificate.map_err(|_| bad())?)
                    .map_err(|_| bad())?;
            }
        }
    }
    if roots.is_empty() {
        return Err(bad());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| Error::internal("TLS could not be set up").because(cause))?;
    Ok(MakeRustlsConnect::new(
        config.with_root_certificates(roots).with_no_client_auth(),
    ))
}

type Plain = tokio_postgres::Connection<tokio_postgres::Socket, tokio_postgres::tls::NoTlsStream>;
type Tls = tokio_postgres::Connection<
    tokio_postgres::Socket,
    <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<tokio_postgres::Socket>>::Stream,
>;

/// The task that moves a connection's bytes.
pub(crate) enum Driver {
    Plain(Box<Plain>),
    Tls(Box<Tls>),
}

impl Driver {
    /// Moves bytes until the connection ends.
    pub(crate) async fn run(self) {
        let ended = match self {
            Self::Plain(connection) => connection.await,
            Self::Tls(connection) => connection.await,
        };
        if let Err(cause) = ended {
            tracing::debug!("a database connection ended: {cause}");
        }
    }
}

/// A connection that waits for its answers.
pub(crate) struct Connection {
    client: Client,
    runtime: Handle,
    /// The task that moves its bytes. It is aborted with the connection; else it would wait for an answer
    /// that is no longer needed, and the database would keep the transaction's locks.
    driver: AbortHandle,
    /// The deadline of every wait.
    pub(crate) until: Option<Instant>,
    /// Set when an answer did not come in time. The connection is then not used again, since a late answer
    /// could be taken for another one.
    silent: AtomicBool,
    /// Vectors that were written since the last check, committed or not.
    pub(crate) n_vectors: AtomicU64,
    /// Nodes that were written since the last check, committed or not.
    pub(crate) n_nodes: AtomicU64,
    /// Changes that are not sent yet.
    waiting: Mutex<Vec<(Statement, Later)>>,
    /// Prepared statements, by their text.
    statements: Mutex<HashMap<String, Statement>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Parameters of a deferred change.
pub(crate) type Later = Vec<Box<dyn ToSql + Sync + Send>>;

pub(crate) type Params<'a> = [&'a (dyn ToSql + Sync)];

impl Connection {
    pub(crate) fn new(client: Client, driver: Driver, runtime: Handle) -> Self {
        let driver = runtime.spawn(driver.run()).abort_handle();
        Self {
            client,
            runtime,
            driver,
            until: None,
            silent: AtomicBool::new(false),
            n_vectors: AtomicU64::new(0),
            n_nodes: AtomicU64::new(0),
            waiting: Mutex::default(),
            statements: Mutex::default(),
        }
    }

    /// Whether an answer did not come in time.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    /// Whether the connection can still be used.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_silent() && !self.client.is_closed()
    }

    fn wait<T>(
        &self,
        limit: Duration,
        answer: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        let late = || {
            Err(Error::unavailable("the database did not answer in time")
                .hint("call again; after a write, check first whether it took effect"))
        };
        if self.is_silent() {
            // After one query without an answer, the next ones would get none either.
            return late();
        }
        let left = self
            .until
            .map(|it| it.saturating_duration_since(Instant::now()));
        let limit = left.map_or(limit, |it| it.min(limit));
        let answer = async { tokio::time::timeout(limit, answer).await };
        wait_for(&self.runtime, answer).map_or_else(
            |_| {
                self.silent.store(true, Ordering::Relaxed);
                late()
            },
            |result| result.map_err(from_postgres),
        )
    }

    /// Runs statements that take no parameters.
    pub(crate) fn batch(&self, sql: &str) -> Result<()> {
        self.wait(WAIT_MAX, self.client.batch_execute(sql))
    }

    /// The same, where it may take a while: a migration, and the lock before it.
    pub(crate) fn batch_long(&self, sql: &str) -> Result<()> {
        self.wait(Duration::from_secs(600), self.client.batch_execute(sql))
    }

    fn statement(&self, sql: &str) -> Result<Statement> {
        let mut known = self
            .statements
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(statement) = known.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.wait(WAIT_MAX, self.client.prepare(sql))?;
        known.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// The rows of a query.
    pub(crate) fn query(&self, sql: &str, params: &Params<'_>) -> Result<Vec<Row>> {
        let statement = self.statement(sql)?;
        let waiting = std::mem::take(&mut *self.waiting());
        self.wait(WAIT_MAX, async {
            // Sent together: the changes first, then the query.
            let asked = self.client.query(&statement, params);
            let (changed, rows) = futures::join!(self.send_changes(&waiting), asked);
            changed.and(rows)
        })
    }

    /// The rows of a query that may read a whole table, one by one.
    pub(crate) fn visit(
        &self,
        sql: &str,
        params: &Params<'_>,
        visit: &mut dyn FnMut(&Row) -> Result<()>,
    ) -> Result<()> {
        use futures::{StreamExt, pin_mut};
        self.flush()?;
        let statement = self.statement(sql)?;
        let rows = self.wait(
            WAIT_MAX,
            self.client.query_raw(
                &statement,
                params.iter().map(|it| *it as &(dyn ToSql + Sync)),
            ),
        )?;
        pin_mut!(rows);
        loop {
            let next = async { Ok(rows.next().await) };
            match self.wait(Duration::from_secs(60), next)? {
                None => return Ok(()),
                Some(row) => visit(&row.map_err(from_postgres)?)?,
            }
        }
    }

    /// Changes rows, at the latest before the next query. So a caller that makes many changes waits for
    /// the database only once.
    pub(crate) fn later(&self, sql: &str, params: Later) -> Result<()> {
        let statement = self.statement(sql)?;
        let n_waiting = {
            let mut waiting = self.waiting();
            waiting.push((statement, params));
            waiting.len()
        };
        if n_waiting < AT_ONCE_MAX {
            return Ok(());
        }
        self.flush()
    }

    /// Makes the deferred changes.
    pub(crate) fn flush(&self) -> Result<()> {
        let waiting = std::mem::take(&mut *self.waiting());
        if waiting.is_empty() {
            return Ok(());
        }
        self.wait(WAIT_MAX, self.send_changes(&waiting))
    }

    /// Drops the deferred changes, because their call has failed.
    pub(crate) fn forget(&self) {
        self.waiting().clear();
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<(Statement, Later)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends all changes when it is first polled, in their order, and gives the first error.
    async fn send_changes(
        &self,
        changes: &[(Statement, Later)],
    ) -> std::result::Result<(), tokio_postgres::Error> {
        let sent = changes.iter().map(|(statement, params)| {
            let params: Vec<&(dyn ToSql + Sync)> = params
                .iter()
                .map(|it| &**it as &(dyn ToSql + Sync))
                .collect();
            Box::pin(maybe_done(async move {
                self.client.execute(statement, &params).await
            }))
        });
        let mut sent: Vec<_> = sent.collect();
        // Not a ready-made join: those poll many futures in any order.
        poll_fn(|context| {
            let mut is_done = true;
            for it in &mut sent {
                is_done &= it.as_mut().poll(context).is_ready();
            }
            if is_done {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        for it in &mut sent {
            it.as_mut().take_output().transpose()?;
        }
        Ok(())
    }
}
