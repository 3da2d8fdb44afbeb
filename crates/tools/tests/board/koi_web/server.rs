//! A web site on loopback, whose pages a test changes and whose visitors it counts.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What a site answers for a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn html(body: impl Into<String>) -> Self {
        Self::of(200, "text/html; charset=utf-8", body.into().into_bytes())
    }

    pub(super) fn of(status: u16, kind: &str, body: Vec<u8>) -> Self {
        Self {
            status,
            headers: vec![("Content-Type".to_owned(), kind.to_owned())],
            body,
        }
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|it| it.0 == name);
        found.map(|it| it.1.as_str())
    }
}

/// A request as the site saw it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) path: String,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: String,
}

#[derive(Default)]
struct State {
    answers: HashMap<String, Answer>,
    seen: Vec<Seen>,
}

/// A web site.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) port: u16,
    state: Arc<Mutex<State>>,
}

impl Site {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let site = Self { port, state };
        let serving = site.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), site) = (stream, serving.clone()) else {
                    continue;
                };
                std::thread::spawn(move || site.serve(stream));
            }
        });
        site
    }

    /// With one page at `/`.
    pub(super) fn of(html: impl Into<String>) -> Self {
        let site = Self::start();
        site.put("/", Answer::html(html));
        site
    }

    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address())
    }

    pub(super) fn put(&self, path: &str, answer: Answer) {
        let mut state = self.state.lock().unwrap();
        state.answers.insert(path.to_owned(), answer);
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }

    pub(super) fn n_seen(&self) -> usize {
        self.state.lock().unwrap().seen.len()
    }

    /// Answers what was put for the path, for the path without its query, or that there is nothing.
    fn serve(&self, mut stream: TcpStream) {
        let Some(seen) = request(&stream) else {
            return;
        };
        let bare = seen.path.split('?').next().unwrap().to_owned();
        let answer = {
            let mut state = self.state.lock().unwrap();
            state.seen.push(seen.clone());
            let exact = state.answers.get(&seen.path);
            exact.or_else(|| state.answers.get(&bare)).cloned()
        };
        let answer = answer.unwrap_or_else(|| Answer::of(404, "text/html", Vec::new()));
        let is_known = |asked: &str, header: &str| {
            let known = seen.headers.get(asked).map(String::as_str);
            known.is_some() && known == answer.header(header)
        };
        let is_same =
            is_known("if-none-match", "ETag") || is_known("if-modified-since", "Last-Modified");
        let (status, body) = match is_same {
            true => (304, &[][..]),
            false => (answer.status, answer.body.as_slice()),
        };
        let mut head = format!(
            "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n",
            body.len()
        );
        for (name, value) in &answer.headers {
            head += &format!("{name}: {value}\r\n");
        }
        drop(stream.write_all(format!("{head}\r\n").as_bytes()));
        drop(stream.write_all(body));
    }
}

fn request(stream: &TcpStream) -> Option<Seen> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or("0", String::as_str);
    let mut body = vec![0; length.parse().ok()?];
    std::io::Read::read_exact(&mut reader, &mut body).ok()?;
    let body = String::from_utf8_lossy(&body).into_owned();
    Some(Seen {
        path,
        headers,
        body,
    })
}
