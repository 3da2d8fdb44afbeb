//! A connection between two programs that is cut after so many bytes of answers.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What happens when the bytes are used up.
type Cut = Box<dyn FnOnce() + Send>;

/// Forwards everything to a port of this machine, until it is told to cut.
pub(crate) struct Wire {
    pub(crate) port: u16,
    armed: Arc<Mutex<Option<(usize, Cut)>>>,
}

impl Wire {
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let armed: Arc<Mutex<Option<(usize, Cut)>>> = Arc::default();
        let shared = Arc::clone(&armed);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else {
                        return;
                    };
                    let (mut asks, mut is_asked) =
                        (near.try_clone().unwrap(), far.try_clone().unwrap());
                    std::thread::spawn(move || {
                        drop(std::io::copy(&mut asks, &mut is_asked));
                        drop(is_asked.shutdown(Shutdown::Write));
                    });
                    answer(far, near, &shared);
                });
            }
        });
        Self { port: own, armed }
    }

    /// After so many further bytes of answers the connection is cut in the middle, and this is done.
    pub(crate) fn cut_after(&self, n_bytes: usize, then: impl FnOnce() + Send + 'static) {
        *self.armed.lock().unwrap() = Some((n_bytes, Box::new(then)));
    }

    /// Whether it was cut since it was last told to.
    pub(crate) fn was_cut(&self) -> bool {
        self.armed.lock().unwrap().is_none()
    }
}

fn answer(mut far: TcpStream, mut near: TcpStream, armed: &Mutex<Option<(usize, Cut)>>) {
    let mut bytes = [0; 1024];
    while let Ok(n) = far.read(&mut bytes) {
        if n == 0 {
            break;
        }
        let mut held = armed.lock().unwrap();
        match held.as_mut() {
            Some((left, _)) if *left < n => {
                let left = *left;
                drop(near.write_all(&bytes[..left]));
                let (_, then) = held.take().unwrap();
                then();
                break;
            }
            Some((left, _)) => *left -= n,
            None => {}
        }
        drop(held);
        if near.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    drop(near.shutdown(Shutdown::Both));
    drop(far.shutdown(Shutdown::Both));
}
