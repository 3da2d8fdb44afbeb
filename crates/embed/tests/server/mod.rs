//! A web server on loopback that answers what the test tells it to, and keeps what it was asked.

use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// What to answer.
pub(crate) enum Reply {
    Json(u16, String),
    /// With a header besides.
    With(u16, &'static str, String),
    /// A body that ends before its announced length.
    BrokenOff(String),
    /// Nothing, until the client hangs up.
    Silence,
}

/// Given how many requests came before, and this one.
type Script = dyn Fn(usize, &Seen) -> Reply + Send + Sync;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(crate) fn start(script: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let script: Arc<Script> = Arc::new(script);
        let all = seen.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (script, all) = (script.clone(), all.clone());
                std::thread::spawn(move || {
                    // A client that hangs up is what some of these tests are about.
                    serve(socket.unwrap(), &script, &all).ok();
                });
            }
        });
        Self { address, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(socket: TcpStream, script: &Arc<Script>, all: &Mutex<Vec<Seen>>) -> io::Result<()> {
    let mut reader = BufReader::new(socket);
    let seen = read(&mut reader)?;
    let number = {
        let mut all = all.lock().unwrap();
        all.push(seen.clone());
        all.len() - 1
    };
    let reply = script(number, &seen);
    let mut socket = reader.into_inner();
    let head = |status: u16, length: usize, more: &str| {
        format!(
            "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{more}Connection: close\r\n\r\n"
        )
    };
    match reply {
        Reply::Json(status, body) => write!(socket, "{}{body}", head(status, body.len(), "")),
        Reply::With(status, header, body) => {
            let more = format!("{header}\r\n");
            write!(socket, "{}{body}", head(status, body.len(), &more))
        }
        Reply::BrokenOff(body) => write!(socket, "{}{body}", head(200, body.len() + 1, "")),
        Reply::Silence => socket.read_to_end(&mut Vec::new()).map(|_| ()),
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers["content-length"].parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Seen {
        method,
        path,
        headers,
        body,
    })
}
