//! A receiver on loopback that writes down what it is told and answers as it is told.

use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Nothing that is waited for takes longer, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request as the server saw it.
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Receiver<Seen>,
    /// The statuses of the next answers; 200 when there are no more.
    statuses: Arc<Mutex<Vec<u16>>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let statuses = Arc::new(Mutex::new(Vec::<u16>::new()));
        let (sender, seen) = channel();
        let answers = Arc::clone(&statuses);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(request) = read(&stream) else {
                    continue;
                };
                let mut answers = answers.lock().unwrap();
                let status = if answers.is_empty() {
                    200
                } else {
                    answers.remove(0)
                };
                drop(answers);
                // Told before it is answered, so a test that has seen it knows that it came first.
                if sender.send(request).is_err() {
                    return;
                }
                let head = format!("HTTP/1.1 {status} Whatever\r\nConnection: close\r\n");
                let answer = format!("{head}Content-Length: 0\r\n\r\n");
                let _ = (&stream).write_all(answer.as_bytes());
            }
        });
        Self {
            address,
            seen,
            statuses,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn answer(&self, statuses: &[u16]) {
        self.statuses.lock().unwrap().extend(statuses);
    }

    pub(crate) fn next(&self) -> Seen {
        self.seen.recv_timeout(PATIENCE).unwrap()
    }

    /// What came and was not looked at.
    pub(crate) fn rest(&self) -> Vec<Seen> {
        self.seen.try_iter().collect()
    }
}

fn read(stream: &TcpStream) -> Option<Seen> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = HashMap::new();
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).ok()? == 0 {
            return None;
        }
        let Some((name, value)) = header.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length");
    let length = length.map_or(0, |it| it.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Seen {
        line: line.trim_end().to_owned(),
        headers,
        body,
    })
}
