//! A small S3 server that checks every signature.

use crate::{Bucket, BucketSettings};
use hmac::{Hmac, KeyInit, Mac};
use kenning_core::Result;
use kenning_egress::Policy;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) const BUCKET: &str = "copies";
pub(crate) const ACCESS_KEY: &str = "AKIAEXAMPLE";
pub(crate) const SECRET_KEY: &str = "a secret that nobody may see";
const MODIFIED: &str = "Sun, 15 Nov 2026 09:53:18 GMT";
const PART_BYTES_MIN: usize = 5 * 1024 * 1024;
/// Small, so that every listing has several.
const PAGE_KEYS: usize = 2;

/// What the server does wrong, once, at the next request that fits.
pub(crate) struct Fault {
    pub(crate) method: &'static str,
    /// Part of the path and query.
    pub(crate) target: &'static str,
    pub(crate) act: Act,
}

pub(crate) enum Act {
    /// An error in XML.
    Say(u16, &'static str),
    /// Closes the connection without an answer.
    HangUp,
    /// Closes the connection in the middle of the answer.
    BreakOff,
    /// Answers as it should.
    Nothing,
    /// Has got other objects before it answers.
    Replace,
    /// Confirms the write and stores something else.
    Damage,
    /// Points elsewhere.
    Redirect(String),
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) objects: BTreeMap<String, Vec<u8>>,
    pub(crate) uploads: BTreeMap<String, (String, BTreeMap<usize, Vec<u8>>)>,
    pub(crate) faults: Vec<Fault>,
    /// Method, path and query of every request.
    pub(crate) requests: Vec<String>,
    has_no_conditions: bool,
    n_uploads: usize,
}

pub(crate) struct Server {
    address: SocketAddr,
    pub(crate) state: Arc<Mutex<State>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Self { address, state }
    }

    /// One that knows no `If-None-Match`.
    pub(crate) fn without_conditions(self) -> Self {
        self.state.lock().unwrap().has_no_conditions = true;
        self
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn bucket(&self, settings: BucketSettings) -> Result<Bucket> {
        Bucket::new(settings, Policy::default())
    }

    pub(crate) fn fails(&self, method: &'static str, target: &'static str, act: Act) {
        let fault = Fault {
            method,
            target,
            act,
        };
        self.state.lock().unwrap().faults.push(fault);
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.state.lock().unwrap().objects.keys().cloned().collect()
    }

    pub(crate) fn count(&self, method: &str, target: &str) -> usize {
        let state = self.state.lock().unwrap();
        let fits = |request: &&String| request.starts_with(method) && request.contains(target);
        state.requests.iter().filter(fits).count()
    }
}

struct Asked {
    method: String,
    path: String,
    query: Vec<(String, String)>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn of(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let headers = Vec::new();
        let body = body.into();
        Self {
            status,
            headers,
            body,
        }
    }

    fn error(status: u16, code: &str) -> Self {
        let said = format!("the request of {ACCESS_KEY} was this");
        let body = format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{said}</Message></Error>"
        );
        Self::of(status, body)
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn send(&self, stream: &mut TcpStream, is_head: bool, n_sent: usize) {
        let mut head = format!("HTTP/1.1 {} Whatever\r\nConnection: close\r\n", self.status);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !self
            .headers
            .iter()
            .any(|(name, _)| *name == "Content-Length")
        {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        head += "\r\n";
        let body = if is_head {
            &[][..]
        } else {
            &self.body[..n_sent]
        };
        // The client may have closed the connection.
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let Some(asked) = read(&stream) else { return };
    let query: Vec<String> = asked
        .query
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    let target = format!("{}?{}", asked.path, query.join("&"));
    let mut state = state.lock().unwrap();
    state.requests.push(format!("{} {target}", asked.method));
    let fits = |fault: &Fault| fault.method == asked.method && target.contains(fault.target);
    let fault = state.faults.iter().position(fits);
    let fault = fault.map(|at| state.faults.remove(at).act);
    let is_head = asked.method == "HEAD";
    let answer = match (&fault, signature_fault(&asked)) {
        (_, Some(code)) => Answer::error(403, code),
        (Some(Act::HangUp), _) => return,
        (Some(Act::Say(status, code)), _) => Answer::error(*status, code),
        (Some(Act::Redirect(to)), _) => Answer::of(307, "").with("Location", to),
        (Some(Act::Replace), _) => {
            let bytes = state.objects.values_mut().flatten();
            bytes.for_each(|byte| *byte ^= 1);
            state.answer(&asked)
        }
        (Some(Act::Damage), _) => {
            let mut asked = asked;
            if let Some(byte) = asked.body.last_mut() {
                *byte ^= 1;
            }
            state.answer(&asked)
        }
        _ => state.answer(&asked),
    };
    let n_sent = match fault {
        Some(Act::BreakOff) => answer.body.len() / 2,
        _ => answer.body.len(),
    };
    answer.send(&mut stream, is_head, n_sent);
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let n_bytes = headers.get("content-length").map_or("0", String::as_str);
    let mut body = vec![0; n_bytes.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pairs = query.split('&').filter(|it| !it.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let query = pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    Some(Asked {
        method,
        path: path.to_owned(),
        query,
        headers,
        body,
    })
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hash(bytes: &[u8]) -> String {
    kenning_text::hex::encode(&Sha256::digest(bytes))
}

/// What is wrong with the signature (AWS Signature Version 4), computed from the secret.
fn signature_fault(asked: &Asked) -> Option<&'static str> {
    let header = |name: &str| asked.headers.get(name).map_or("", String::as_str);
    let Some(fields) = header("authorization").strip_prefix("AWS4-HMAC-SHA256 ") else {
        return Some("AccessDenied");
    };
    let fields = fields.split(", ").filter_map(|it| it.split_once('='));
    let fields: BTreeMap<&str, &str> = fields.collect();
    let field = |name: &str| fields.get(name).copied().unwrap_or_default();
    let (key, scope) = field("Credential").split_once('/').unwrap_or_default();
    if key != ACCESS_KEY {
        return Some("InvalidAccessKeyId");
    }
    if header("x-amz-content-sha256") != hash(&asked.body) {
        return Some("XAmzContentSHA256Mismatch");
    }
    let signed = field("SignedHeaders");
    if !signed.split(';').any(|it| it == "host") {
        return Some("SignatureDoesNotMatch");
    }
    let mut query: Vec<String> = asked
        .query
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    query.sort();
    let headers: String = signed
        .split(';')
        .map(|name| format!("{name}:{}\n", header(name)))
        .collect();
    let request = [
        &asked.method,
        &asked.path,
        &query.join("&"),
        &headers,
        signed,
        header("x-amz-content-sha256"),
    ];
    let request = hash(request.join("\n").as_bytes());
    let date = header("x-amz-date");
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{request}");
    let mut key = format!("AWS4{SECRET_KEY}").into_bytes();
    for part in scope.split('/') {
        key = hmac(&key, part);
    }
    let expected = kenning_text::hex::encode(&hmac(&key, &text));
    (expected != field("Signature")).then_some("SignatureDoesNotMatch")
}

impl State {
    fn answer(&mut self, asked: &Asked) -> Answer {
        let Some(key) = asked.path.strip_prefix(&format!("/{BUCKET}")) else {
            return Answer::error(404, "NoSuchBucket");
        };
        let key = key.trim_start_matches('/').to_owned();
        let query = |name: &str| {
            let found = asked.query.iter().find(|(it, _)| it == name);
            found.map(|(_, value)| value.replace("%2F", "/"))
        };
        match (asked.method.as_str(), query("uploadId")) {
            ("POST", None) if query("uploads").is_some() => {
                self.n_uploads += 1;
                let id = format!("upload-{}", self.n_uploads);
                self.uploads
                    .insert(id.clone(), (key.clone(), BTreeMap::new()));
                Answer::of(
                    200,
                    format!(
                        "<InitiateMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{key}</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
                    ),
                )
            }
            ("PUT", Some(id)) => {
                let Some((_, parts)) = self.uploads.get_mut(&id) else {
                    return Answer::error(404, "NoSuchUpload");
                };
                let number = query("partNumber").unwrap().parse().unwrap();
                parts.insert(number, asked.body.clone());
                Answer::of(200, "").with("ETag", format!("\"{}\"", hash(&asked.body)))
            }
            ("POST", Some(id)) => self.complete(&id, &asked.body),
            ("DELETE", Some(id)) => {
                self.uploads.remove(&id);
                Answer::of(204, "")
            }
            ("PUT", None) => {
                if asked.headers.contains_key("if-none-match") {
                    if self.has_no_conditions {
                        return Answer::error(501, "NotImplemented");
                    }
                    if self.objects.contains_key(&key) {
                        return Answer::error(412, "PreconditionFailed");
                    }
                }
                self.objects.insert(key, asked.body.clone());
                Answer::of(200, "").with("ETag", format!("\"{}\"", hash(&asked.body)))
            }
            ("DELETE", None) => {
                self.objects.remove(&key);
                Answer::of(204, "")
            }
            ("GET", None) if key.is_empty() => self.list(&query),
            ("GET" | "HEAD", None) => self.get(&key, asked),
            _ => Answer::error(405, "MethodNotAllowed"),
        }
    }

    fn complete(&mut self, id: &str, body: &[u8]) -> Answer {
        let Some((key, parts)) = self.uploads.remove(id) else {
            return Answer::error(404, "NoSuchUpload");
        };
        let body = String::from_utf8_lossy(body);
        let listed = body.matches("<PartNumber>").count();
        let sizes: Vec<usize> = parts.values().map(Vec::len).collect();
        let (_, but_last) = sizes.split_last().unwrap();
        if listed != parts.len() || !parts.keys().copied().eq(1..=listed) {
            return Answer::error(400, "InvalidPart");
        }
        if but_last
            .iter()
            .any(|size| *size < PART_BYTES_MIN || *size != sizes[0])
        {
            return Answer::error(400, "EntityTooSmall");
        }
        let whole: Vec<u8> = parts.into_values().flatten().collect();
        let tag = hash(&whole);
        self.objects.insert(key.clone(), whole);
        Answer::of(
            200,
            format!(
                "<CompleteMultipartUploadResult><Location>here</Location><Bucket>{BUCKET}</Bucket><Key>{key}</Key><ETag>\"{tag}\"</ETag></CompleteMultipartUploadResult>"
            ),
        )
    }

    fn get(&self, key: &str, asked: &Asked) -> Answer {
        let Some(object) = self.objects.get(key) else {
            return Answer::error(404, "NoSuchKey");
        };
        let tag = format!("\"{}\"", hash(object));
        if asked.headers.get("if-match").is_some_and(|it| *it != tag) {
            return Answer::error(412, "PreconditionFailed");
        }
        let answer = match asked.headers.get("range") {
            None => Answer::of(200, object.clone()),
            Some(range) => {
                let range = range.strip_prefix("bytes=").unwrap();
                let (from, to) = range.split_once('-').unwrap();
                let from: usize = from.parse().unwrap();
                let to = to
                    .parse::<usize>()
                    .unwrap()
                    .min(object.len().saturating_sub(1));
                if from >= object.len() {
                    return Answer::error(416, "InvalidRange");
                }
                let whole = object.len();
                Answer::of(206, &object[from..=to])
                    .with("Content-Range", format!("bytes {from}-{to}/{whole}"))
            }
        };
        answer.with("ETag", tag).with("Last-Modified", MODIFIED)
    }

    fn list(&self, query: &dyn Fn(&str) -> Option<String>) -> Answer {
        assert_eq!(query("list-type").as_deref(), Some("2"));
        let prefix = query("prefix").unwrap_or_default();
        let after = query("continuation-token").unwrap_or_default();
        let rest = self.objects.iter();
        let rest = rest.filter(|(key, _)| key.starts_with(&prefix) && **key > after);
        let page: Vec<_> = rest.clone().take(PAGE_KEYS).collect();
        let is_cut = rest.count() > page.len();
        let mut xml = format!(
            "<ListBucketResult><Name>{BUCKET}</Name><Prefix>{prefix}</Prefix><KeyCount>{}</KeyCount><MaxKeys>{PAGE_KEYS}</MaxKeys><IsTruncated>{is_cut}</IsTruncated>",
            page.len()
        );
        for (key, bytes) in &page {
            xml += &format!(
                "<Contents><Key>{key}</Key><LastModified>2026-11-15T09:53:18.000Z</LastModified><ETag>\"x\"</ETag><Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
                bytes.len()
            );
        }
        if let Some((last, _)) = page.last().filter(|_| is_cut) {
            xml += &format!("<NextContinuationToken>{last}</NextContinuationToken>");
        }
        Answer::of(200, xml + "</ListBucketResult>")
    }
}
