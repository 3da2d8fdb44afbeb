//! A bad network: everything between the program and its database passes through here.

use anyhow::{Context as _, Result};
use socket2::SockRef;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often all threads check for a change.
const TICK: Duration = Duration::from_millis(5);

/// How the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Weather {
    Fair,
    /// Connections are refused.
    Refusing,
    /// Bytes go in and do not come out, until it clears up. Then they do: a commit that was sent
    /// may still arrive long after its sender gave up.
    Hole,
    /// The same, but only for answers: the database works and its answers are lost.
    Mute,
}

struct State {
    /// Where the database is.
    database: Mutex<SocketAddr>,
    weather: AtomicU8,
    /// Connections of an older generation are cut.
    generation: AtomicU64,
    stopping: AtomicBool,
    /// Held for reading while bytes move, so that a change of weather is a moment.
    moving: RwLock<()>,
}

pub(super) struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    pub(super) fn start(database: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            database: Mutex::new(database),
            weather: AtomicU8::new(Weather::Fair as u8),
            generation: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            moving: RwLock::new(()),
        });
        let thread = {
            let state = state.clone();
            std::thread::spawn(move || accept(listener, address, &state))
        };
        Ok(Self {
            address,
            state,
            thread: Some(thread),
        })
    }

    /// The same database, by way of here.
    pub(super) fn url(&self, url: &str) -> Result<String> {
        let (user, rest) = url.rsplit_once('@').context("a URL without its user")?;
        let (_, database) = rest.split_once('/').context("a URL without its database")?;
        Ok(format!("{user}@{}/{database}", self.address))
    }

    pub(super) fn set(&self, weather: Weather) {
        let _moment = self
            .state
            .moving
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        self.state.weather.store(weather as u8, Ordering::SeqCst);
    }

    /// Leads to another database from now on; what leads to the old one is cut.
    pub(super) fn lead_to(&self, database: SocketAddr) {
        let state = &self.state;
        *state
            .database
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = database;
        self.cut();
    }

    /// Resets every connection.
    pub(super) fn cut(&self) {
        self.state.generation.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.stopping.store(true, Ordering::SeqCst);
        self.cut();
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            drop(thread.join());
        }
    }
}

/// Where the database of a URL listens.
pub(super) fn address_of(url: &str) -> Result<SocketAddr> {
    let (_, rest) = url.rsplit_once('@').context("a URL without its user")?;
    let (address, _) = rest.split_once('/').context("a URL without its database")?;
    address.parse().context("a URL without its port")
}

fn accept(listener: TcpListener, address: SocketAddr, state: &Arc<State>) {
    let mut listener = Some(listener);
    while !state.stopping.load(Ordering::SeqCst) {
        if state.is(Weather::Refusing) {
            listener = None;
        } else if listener.is_none() {
            listener = TcpListener::bind(address).ok();
        }
        let accepted = listener.as_ref().and_then(|listener| {
            listener.set_nonblocking(true).ok()?;
            listener.accept().ok()
        });
        let Some((near, _)) = accepted else {
            std::thread::sleep(TICK);
            continue;
        };
        // A database that is not there closes the connection, as a proxy of the real world does.
        let database = *state
            .database
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Ok(far) = TcpStream::connect(database) {
            connect(near, far, state);
        }
    }
}

fn connect(near: TcpStream, far: TcpStream, state: &Arc<State>) {
    for stream in [&near, &far] {
        // Whatever fails here ends the connection at the first read.
        drop(stream.set_nonblocking(false));
        drop(stream.set_nodelay(true));
        drop(stream.set_read_timeout(Some(TICK * 4)));
        // Closed means reset: what is under way is lost.
        drop(SockRef::from(stream).set_linger(Some(Duration::ZERO)));
    }
    let (near, far) = (Arc::new(near), Arc::new(far));
    let ended = Arc::new(AtomicBool::new(false));
    let generation = state.generation.load(Ordering::SeqCst);
    for (from, to, is_answer) in [(near.clone(), far.clone(), false), (far, near, true)] {
        let (state, ended) = (state.clone(), ended.clone());
        std::thread::spawn(move || {
            pump(&from, &to, is_answer, generation, &state, &ended);
            ended.store(true, Ordering::SeqCst);
        });
    }
}

/// Moves bytes one way until either end is gone. Both ends close when both ways have ended.
fn pump(
    mut from: &TcpStream,
    mut to: &TcpStream,
    is_answer: bool,
    generation: u64,
    state: &State,
    ended: &AtomicBool,
) {
    let mut bytes = vec![0; 64 * 1024];
    let over =
        || ended.load(Ordering::SeqCst) || state.generation.load(Ordering::SeqCst) != generation;
    while !over() {
        let n = match from.read(&mut bytes) {
            Ok(n) => n,
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                continue;
            }
            Err(_) => 0,
        };
        loop {
            let moving = state.moving.read().unwrap_or_else(PoisonError::into_inner);
            if !(state.is(Weather::Hole) || is_answer && state.is(Weather::Mute)) {
                if n == 0 || to.write_all(&bytes[..n]).is_err() {
                    return;
                }
                break;
            }
            drop(moving);
            if state.generation.load(Ordering::SeqCst) != generation {
                return;
            }
            std::thread::sleep(TICK);
        }
    }
}

impl State {
    fn is(&self, weather: Weather) -> bool {
        self.weather.load(Ordering::SeqCst) == weather as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_wait_and_are_cut() {
        let echo = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::start(echo.local_addr().unwrap()).unwrap();
        let mut near = TcpStream::connect(proxy.address).unwrap();
        let (mut far, _) = echo.accept().unwrap();
        let mut got = [0; 1];
        near.write_all(b"a").unwrap();
        far.read_exact(&mut got).unwrap();

        proxy.set(Weather::Hole);
        near.write_all(b"b").unwrap();
        far.set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        assert!(
            far.read_exact(&mut got).is_err(),
            "it went through the hole"
        );
        proxy.set(Weather::Fair);
        far.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        far.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"b");

        proxy.cut();
        near.set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let error = near.read(&mut got).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);

        proxy.set(Weather::Refusing);
        std::thread::sleep(TICK * 20);
        assert!(TcpStream::connect(proxy.address).is_err());
        proxy.set(Weather::Fair);
        std::thread::sleep(TICK * 20);
        assert!(TcpStream::connect(proxy.address).is_ok());
    }

    #[test]
    fn a_url_leads_through_here() {
        let url = "postgres://me:secret@127.0.0.1:5432/name";
        assert_eq!(address_of(url).unwrap().port(), 5432);
        let proxy = Proxy::start(address_of(url).unwrap()).unwrap();
        let through = proxy.url(url).unwrap();
        assert_eq!(address_of(&through).unwrap(), proxy.address);
        assert!(through.ends_with("/name"));
    }
}
