//! Opens the engine and runs the servers.

use crate::outside::{OsRandom, WallClock, variable};
use axum::Router;
use jiff::tz::TimeZone;
use kenning_cli::{HookServer, Host, ServeOptions, Settings, StoreLook, env_vars};
use kenning_core::{Error, Result};
use kenning_engine::kg::{GraphWatch, WatchOptions};
use kenning_engine::koi::{FederationWorker, PageWatch, WatchPace};
use kenning_engine::omi::{Pace, Webhooks};
use kenning_engine::worker::Worker;
use kenning_engine::{Engine, Options, Principal, SENSORS_LOOK, Sensors};
use kenning_mcp::{Server, http, stdio};
use kenning_rest::{Guard, Hosts, Limits};
use kenning_store::Store;
use kenning_store_postgres::Postgres;
use kenning_store_sqlite::Sqlite;
use kenning_tools::{Board, Flows, slots};
use kenning_vault::Dir;
use serde_json::{Value, json};
use std::future::Future;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Threads for calls that wait: one for each slot (`kenning_tools::slots`), and some for what must always answer.
const BLOCKING_THREADS_MAX: usize = 96;

/// Descriptors that a server asks for: more than its connections, its store and its files ever take.
const DESCRIPTORS_WANTED: usize = 4_096;

/// More certificates than anybody has.
const CERTIFICATES_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How long the end of the process waits for a webhook's answer.
const HOOKS_WAIT: Duration = Duration::from_secs(5);

/// How long it waits for a page that is being asked: whoever starts next asks it again.
const PAGES_WAIT: Duration = Duration::from_secs(1);

/// What `--no-token` means, for whoever started it without meaning it.
const NO_TOKEN: &str = "WARNING: --no-token: whoever reaches this port may do everything: every user and program \
                        of this machine, and every visitor of a proxy or tunnel that ends here";

/// The program.
pub struct Program;

impl Host for Program {
    fn start_logging(&self, settings: &Settings) {
        let level = ["warn", "info", "debug", "trace"][usize::from(settings.verbosity.min(3))];
        let wanted = std::env::var(env_vars::LOG).unwrap_or_else(|_| level.to_owned());
        // rmcp logs the content of messages, and every refusal that a client is told anyway.
        let filter = format!("{wanted},rmcp=error");
        let filter = tracing_subscriber::EnvFilter::try_new(&filter)
            .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
        let started = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(false)
            // Told on standard error too, and whoever reads that may have gone: a panic there would end the thread
            // that had something to log, for instance the one that calls peers.
            .log_internal_errors(false)
            .try_init();
        // Only a second start in one process could fail, and then the first one serves.
        drop(started);
    }

    fn open(&self, settings: &Settings) -> Result<Arc<Engine>> {
        let data = data_dir(settings)?;
        let store = match &settings.database {
            Some(database) => postgres(&database.0, settings)?,
            None => Store::new(Sqlite::open(data.path())?),
        };
        Ok(Arc::new(Engine::open(Options {
            store,
            data,
            vault: settings.vault.clone(),
            omi: settings.omi.clone(),
            project: settings.project.clone(),
            wasm: settings.wasm.clone(),
            items: settings.items.clone(),
            repositories: settings.repositories.clone(),
            mail: settings.mail.clone(),
            web: kenning_engine::koi::WebOptions::default(),
            space: settings.space.clone(),
            clock: Arc::new(WallClock),
            zone: TimeZone::system(),
            random: Arc::new(OsRandom),
            environment: Arc::new(variable),
            shared: settings.database.is_some(),
            read_only: settings.selection.read_only,
        })?))
    }

    fn look_at_store(&self, settings: &Settings) -> StoreLook {
        look_at_store(settings)
    }

    fn migrate(
        &self,
        settings: &Settings,
        from: &str,
        to: &str,
        progress: &dyn Fn(u64),
    ) -> Result<Value> {
        let (from, to) = (existing_store(from, settings)?, store_at(to, settings)?);
        let moved = kenning_audit::migrate(&from, &to, progress)?;
        let shown = moved.into_iter().map(|it| {
            json!({
                "space": it.space.as_str(), "events": it.roots.seq, "rows": it.rows,
                "eventRoot": it.roots.event_root.to_string(),
                "stateRoot": it.roots.state_root.to_string(),
            })
        });
        Ok(shown.collect())
    }

    fn local_token(&self, settings: &Settings) -> Result<String> {
        kenning_engine::local_token(&data_dir(settings)?, &OsRandom)
    }

    fn mcp(&self, board: Board, settings: &Settings) -> Result<()> {
        let engine = board.engine().clone();
        // Nobody waits for it, and whoever starts next does what it did not.
        let cleaning = Arc::clone(&engine);
        let _cleaning = Worker::start("clean-up", Arc::default(), move |_| {
            drop(cleaning.clean_up());
        });
        let peers = board.engine().start_peer_sync();
        let federation = FederationWorker::start(board.engine().koi());
        let pages = PageWatch::start(board.engine().koi(), WatchPace::default());
        let sensors = Sensors::start(board.engine(), SENSORS_LOOK);
        let flows = Flows::start(&board);
        let _hooks = answer_hooks(&board, settings);
        let server = Server::new(board, settings.owner());
        let served = run(1, async {
            let stop = CancellationToken::new();
            tokio::spawn(cancel_on_signal(stop.clone()));
            let served = stdio::serve_process(server, stop).await;
            served.map_err(|cause| Error::unavailable("the standard streams").because(cause))
        });
        sensors.stop(PAGES_WAIT);
        pages.stop(PAGES_WAIT);
        peers.stop(PAGES_WAIT);
        federation.stop(PAGES_WAIT);
        flows.stop(PAGES_WAIT);
        // Whoever cleans up may still hold the engine, whose end would else wait for this.
        engine.omi().settle();
        served
    }

    fn wait_for_stop(&self) -> Result<()> {
        run(1, async {
            let stop = CancellationToken::new();
            cancel_on_signal(stop).await;
            Ok(())
        })
    }

    fn serve(&self, board: Board, settings: &Settings, options: &ServeOptions) -> Result<()> {
        refuse_open_doors(&board, settings, options)?;
        if !options.no_token {
            // Made now, so that a client that looks for it finds it as soon as the server answers.
            self.local_token(settings)?;
        }
        let _hooks = answer_hooks(&board, settings);
        run(2, serve(board, settings.clone(), options.clone()))
    }
}

/// The data directory, made where it is missing.
fn data_dir(settings: &Settings) -> Result<Dir> {
    Dir::create(&settings.data).map_err(|error| {
        let path = settings.data.display();
        Error::new(error.code, format!("`{path}` cannot be used"))
            .hint("name another data directory with `--data DIR`")
            .because(error)
    })
}

/// Lets the hooks of clients ask this process. Where that cannot be, they do their work themselves.
fn answer_hooks(board: &Board, settings: &Settings) -> Option<HookServer> {
    HookServer::start(board.engine(), settings)
        .inspect_err(|error| tracing::warn!("hooks cannot ask this process: {error}"))
        .ok()
}

/// A database, its certificate checked against the file that was named, if one was.
fn postgres(url: &str, settings: &Settings) -> Result<Store> {
    let authorities = match &settings.database_ca {
        None => None,
        Some(path) => {
            let (dir, name) = kenning_vault::split(path)?;
            Some(dir.read(&name, CERTIFICATES_BYTES_MAX)?)
        }
    };
    let options = kenning_store_postgres::Options {
        authorities: authorities.as_deref(),
        read_only: settings.selection.read_only,
        ..Default::default()
    };
    Ok(Store::new(Postgres::open_with(url, options)?))
}

/// What the first bytes of every SQLite file are.
const SQLITE_BEGINS: &[u8] = b"SQLite format 3\0";

/// The store's file as it lies there. A database is the business of its server.
fn look_at_store(settings: &Settings) -> StoreLook {
    let mut look = StoreLook::default();
    if settings.database.is_some() {
        look.exists = true;
        return look;
    }
    let name = kenning_store_sqlite::FILE_NAME;
    let path = settings.data.join(name).display().to_string();
    let Ok(dir) = Dir::open(&settings.data) else {
        // Something else than a directory stands there: opening the store says what is wrong.
        look.exists = settings.data.symlink_metadata().is_ok();
        return look;
    };
    let file = match dir.metadata(name) {
        Err(error) if error.code == kenning_core::Code::NotFound => return look,
        Err(error) => {
            look.exists = true;
            look.faults.push(format!("`{path}`: {error}"));
            return look;
        }
        Ok(file) => file,
    };
    look.exists = true;
    look.seen.push((
        "file".to_owned(),
        format!("{path}, {} bytes", file.size_bytes),
    ));
    for more in ["-wal", "-shm"] {
        if let Ok(file) = dir.metadata(&format!("{name}{more}")) {
            look.seen
                .push((format!("file {more}"), format!("{} bytes", file.size_bytes)));
        }
    }
    let mut begins = Vec::new();
    let read = dir.open_read(name).map(|file| {
        let wanted = SQLITE_BEGINS.len() as u64;
        file.take(wanted).read_to_end(&mut begins)
    });
    if let Err(error) = read {
        look.faults
            .push(format!("`{path}` cannot be read: {error}"));
    } else if !begins.is_empty() && begins != SQLITE_BEGINS {
        look.faults.push(format!(
            "`{path}` does not begin as an SQLite file does: something else was written over it"
        ));
    } else {
        match kenning_store_sqlite::examine(dir.path()) {
            Ok(faults) => look
                .faults
                .extend(faults.into_iter().map(|it| format!("`{path}`: {it}"))),
            Err(error) => look.faults.push(format!("`{path}`: {error}")),
        }
    }
    look
}

/// The store at a place: a directory, or a database's address.
fn store_at(place: &str, settings: &Settings) -> Result<Store> {
    if kenning_store_postgres::is_url(place) {
        return postgres(place, settings);
    }
    let data = Dir::create(Path::new(place))?;
    Ok(Store::new(Sqlite::open(data.path())?))
}

/// The same, where there must be one: a typing error is not an empty store.
fn existing_store(place: &str, settings: &Settings) -> Result<Store> {
    let is_url = kenning_store_postgres::is_url(place);
    if !is_url && !Dir::open(Path::new(place))?.exists(kenning_store_sqlite::FILE_NAME)? {
        return Err(Error::not_found("store in", place).hint("name a data directory"));
    }
    store_at(place, settings)
}

/// Beyond loopback everybody on the network can call: not without a token.
fn refuse_open_doors(board: &Board, settings: &Settings, options: &ServeOptions) -> Result<()> {
    let Some(open) = options.listen.iter().find(|it| !it.ip().is_loopback()) else {
        return Ok(());
    };
    if options.no_token {
        return Err(Error::denied(format!(
            "`{open}` can be reached by others, and `--no-token` is for this machine only"
        ))
        .hint("leave `--no-token` out, or listen on 127.0.0.1"));
    }
    let owner = kenning_engine::Caller::new(Principal::owner(settings.space.clone()));
    if options.token.is_some() || !board.engine().tokens(&owner)?.is_empty() {
        return Ok(());
    }
    Err(Error::denied(format!(
        "`{open}` can be reached by others, and there is no token"
    ))
    .hint("make one with `kenning token create`, or listen on 127.0.0.1"))
}

fn run(threads: usize, work: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime: Runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()
        .map_err(|cause| Error::unavailable("no threads to serve with").because(cause))?;
    let done = runtime.block_on(work);
    // A call that ignores its cancellation does not keep the process.
    runtime.shutdown_background();
    done
}

/// What each of so many listeners may take. Connections must leave descriptors for the store, files and programs,
/// and calls that wait must leave connections for what has to be answered at once.
fn limits(board: &Board, n_listeners: usize) -> Limits {
    let limits = Limits::default();
    let descriptors = raise_descriptors_max(DESCRIPTORS_WANTED);
    let all = limits.connections_max.min(descriptors / 2);
    let connections_max = (all / n_listeners.max(1)).max(1);
    let for_others = 2 * (slots::CALLS_MAX + slots::STREAMS_MAX);
    let for_calls = connections_max.saturating_sub(for_others);
    board.slots().lower_waiting_max(for_calls);
    Limits {
        connections_max,
        ..limits
    }
}

/// Asks for so many descriptors, and says how many there are. Shells and service managers often give 1,024 and
/// let a program raise that.
fn raise_descriptors_max(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let given = getrlimit(Resource::Nofile);
    let wanted = wanted as u64;
    let raised = given.maximum.map_or(wanted, |it| it.min(wanted));
    let is_enough = given.current.is_none_or(|it| it >= raised);
    let limit = Rlimit {
        current: Some(raised),
        maximum: given.maximum,
    };
    let now = match is_enough || setrlimit(Resource::Nofile, limit).is_err() {
        true => given.current.unwrap_or(wanted),
        false => raised,
    };
    usize::try_from(now).unwrap_or(usize::MAX)
}

async fn serve(board: Board, settings: Settings, options: ServeOptions) -> Result<()> {
    let mut hosts = Hosts {
        extra: options.allow_hosts.clone(),
    };
    let origins = options.allow_origins.iter();
    let origins = origins.map(|it| kenning_rest::Origin::parse(it));
    let origins = origins.collect::<Result<Vec<_>>>()?;
    let mut listeners = Vec::new();
    for &address in &options.listen {
        let listener = kenning_rest::bind(address).await?;
        let bound = listener.local_addr();
        let bound = bound.map_err(|cause| Error::unavailable("the address").because(cause))?;
        board.engine().koi().note_served_at(bound);
        if !bound.ip().is_unspecified() {
            hosts.extra.push(match bound {
                std::net::SocketAddr::V4(it) => it.ip().to_string(),
                std::net::SocketAddr::V6(it) => format!("[{}]", it.ip()),
            });
        }
        listeners.push((listener, bound));
    }
    let stop = CancellationToken::new();
    tokio::spawn(cancel_on_signal(stop.clone()));
    let watch = watch(&board, &settings, &options).await?;
    let hooks = Webhooks::start(board.engine().omi(), Pace::default());
    let peers = board.engine().start_peer_sync();
    let federation = FederationWorker::start(board.engine().koi());
    let flows = Flows::start(&board);
    let sensors = Sensors::start(board.engine(), SENSORS_LOOK);
    let pages = PageWatch::start(board.engine().koi(), WatchPace::default());
    let guard = Guard::new(
        board.engine().clone(),
        hosts,
        !options.no_token,
        options.token.clone(),
        options.calls_per_minute,
    )
    .with_space(settings.space.clone())
    .with_origins(origins);
    let server = Server::new(board.clone(), Principal::owner(settings.space.clone()));
    let mcp = http::service(
        server,
        http::Options {
            stop: stop.clone(),
            ..http::Options::default()
        },
    );
    let extra = Router::new().route_service("/mcp", mcp);
    let limits = limits(&board, listeners.len());
    let router = kenning_rest::router(board, guard, extra);
    let mut servers = tokio::task::JoinSet::new();
    for (listener, bound) in listeners {
        announce(&format!("listening on http://{bound}"));
        let (router, stop, limits) = (router.clone(), stop.clone(), limits.clone());
        servers.spawn(async move {
            kenning_rest::serve_within(listener, router, stop.cancelled_owned(), limits).await;
        });
    }
    announce(match options.no_token {
        true => NO_TOKEN,
        false => "callers need a token: `kenning token show` prints yours",
    });
    while servers.join_next().await.is_some() {}
    // A run that is under way ends first: it is short, and what it has written stays.
    let watched = tokio::task::spawn_blocking(move || drop(watch)).await;
    watched.map_err(|cause| Error::internal("the watcher did not stop").because(cause))?;
    // What a hook does not take in this time is sent by the next process.
    let stopped = tokio::task::spawn_blocking(move || {
        sensors.stop(HOOKS_WAIT);
        pages.stop(PAGES_WAIT);
        hooks.stop(HOOKS_WAIT);
        peers.stop(HOOKS_WAIT);
        federation.stop(HOOKS_WAIT);
        flows.stop(HOOKS_WAIT);
    })
    .await;
    stopped.map_err(|cause| Error::internal("the webhooks did not stop").because(cause))
}

/// Lets the graph follow its files, if that was asked for.
async fn watch(
    board: &Board,
    settings: &Settings,
    options: &ServeOptions,
) -> Result<Option<GraphWatch>> {
    let Some(docs_path) = options.watch.clone() else {
        return Ok(None);
    };
    let (engine, principal) = (
        board.engine().clone(),
        Principal::owner(settings.space.clone()),
    );
    let started = tokio::task::spawn_blocking(move || {
        let options = WatchOptions {
            docs_path,
            ..WatchOptions::default()
        };
        GraphWatch::start(engine.kg(), principal, options, |done| match done {
            Ok(done) => tracing::info!(
                "the graph follows: {} added, {} updated, {} removed",
                done.nodes_added,
                done.nodes_updated,
                done.nodes_removed
            ),
            Err(error) => tracing::warn!("the graph does not follow its files: {error}"),
        })
    });
    let started = started
        .await
        .map_err(|cause| Error::internal("the watcher").because(cause))?;
    started.map(Some)
}

/// What was opened, for the person who started it and for programs that wait for it.
fn announce(text: &str) {
    // Where standard error is closed there is nobody to tell.
    drop(writeln!(std::io::stderr(), "{text}"));
}

/// Interrupt and terminate mean the same: finish, then go.
async fn cancel_on_signal(stop: CancellationToken) {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    stop.cancel();
}
