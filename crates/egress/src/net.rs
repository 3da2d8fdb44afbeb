//! The two things that touch the network: looking up a name and opening a connection.
//!
//! Both are traits, so that a test can answer names from a table and lead every public address to a
//! listener on loopback.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Looks up the addresses of a name.
pub trait Resolve: Send + Sync {
    /// All addresses of `host`, in order of preference. It is called once for each hop.
    fn resolve(&self, host: &str, timeout: Duration) -> io::Result<Vec<IpAddr>>;
}

/// Opens a connection to an address that was checked.
pub trait Connect: Send + Sync {
    /// A connected stream.
    fn connect(&self, address: SocketAddr, timeout: Duration) -> io::Result<TcpStream>;
}

/// The resolver of the operating system.
#[derive(Clone, Debug, Default)]
pub struct SystemResolver {
    waiting: Arc<AtomicUsize>,
}

/// The most lookups at once. The system's lookup cannot be interrupted, so each one waits in
/// its own thread, and a name server that never answers must not pile up threads.
const LOOKUPS_MAX: usize = 64;

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str, timeout: Duration) -> io::Result<Vec<IpAddr>> {
        let waiting = Waiting::join(&self.waiting)?;
        let (answer, receiver) = mpsc::sync_channel(1);
        let query = (host.to_owned(), 0);
        std::thread::Builder::new()
            .name("resolve".to_owned())
            .spawn(move || {
                let found = query.to_socket_addrs();
                drop(waiting);
                // The receiver is gone if the timeout came first.
                answer.send(found).ok();
            })?;
        let found = receiver
            .recv_timeout(timeout)
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let mut addresses: Vec<IpAddr> = Vec::new();
        for address in found.map(|it| it.ip()) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        Ok(addresses)
    }
}

/// One of the waiting lookups, no longer counted when dropped.
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn join(count: &Arc<AtomicUsize>) -> io::Result<Self> {
        let waiting = Self(count.clone());
        if count.fetch_add(1, Ordering::Relaxed) >= LOOKUPS_MAX {
            return Err(io::Error::other("too many lookups wait for an answer"));
        }
        Ok(waiting)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The network itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemConnector;

impl Connect for SystemConnector {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that connects, and it is given a checked address"
    )]
    fn connect(&self, address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        TcpStream::connect_timeout(&address, timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_its_own_answer_and_asks_nobody() {
        let found = SystemResolver::default().resolve("127.0.0.1", Duration::from_secs(5));
        assert_eq!(found.unwrap(), ["127.0.0.1".parse::<IpAddr>().unwrap()]);
    }

    #[test]
    fn lookups_that_hang_are_counted_and_given_back() {
        let resolver = SystemResolver::default();
        let hanging: Vec<Waiting> = (0..LOOKUPS_MAX)
            .map(|_| Waiting::join(&resolver.waiting).unwrap())
            .collect();
        for _ in 0..3 {
            assert!(
                resolver
                    .resolve("127.0.0.1", Duration::from_secs(5))
                    .is_err()
            );
        }
        drop(hanging);
        assert!(
            resolver
                .resolve("127.0.0.1", Duration::from_secs(5))
                .is_ok()
        );
    }
}
