//! A small internet on loopback: a name server, a web server with and without TLS, and a connector
//! that leads every address there and writes down where it was asked to go.

use kenning_egress::{Connect, Egress, Limits, Policy, Resolve};
use simple_dns::rdata::{A, AAAA, RData};
use simple_dns::{CLASS, Name, Packet, QCLASS, QTYPE, Question, RCODE, ResourceRecord, TYPE};
use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The address of `public.example.com`.
pub(crate) const PUBLIC: &str = "93.184.215.14";

/// Addresses of a name, given how often it was asked before. Nothing is NXDOMAIN.
pub(crate) type Zone = dyn Fn(&str, usize) -> Option<Vec<IpAddr>> + Send + Sync;

/// What to do with a request.
pub(crate) type Handler = dyn Fn(&Seen, &mut Wire) -> io::Result<()> + Send + Sync;

/// A request as the server saw it.
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

trait Duplex: Read + Write + Send {}
impl<T: Read + Write + Send> Duplex for T {}

/// The server's end of a line.
pub(crate) struct Wire {
    stream: Box<dyn Duplex>,
    socket: TcpStream,
}

impl Wire {
    pub(crate) fn send(&mut self, text: &str) -> io::Result<()> {
        self.send_bytes(text.as_bytes())
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Waits a moment for the client to hang up, and fails when it did.
    pub(crate) fn linger(&self) -> io::Result<()> {
        self.socket
            .set_read_timeout(Some(Duration::from_millis(10)))?;
        match self.socket.peek(&mut [0]) {
            Ok(0) => Err(io::ErrorKind::ConnectionAborted.into()),
            _ => Ok(()),
        }
    }
}

/// An answer with a length.
pub(crate) fn ok(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// A redirect.
pub(crate) fn redirect(status: u16, to: &str) -> String {
    format!("HTTP/1.1 {status} Moved\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
}

/// Everything together.
pub(crate) struct World {
    pub(crate) policy: Policy,
    /// The addresses that were connected to.
    pub(crate) connected: Arc<Mutex<Vec<SocketAddr>>>,
    /// Names the name server was asked for, `A` questions only, so one a lookup.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    /// Requests the web server saw, as `METHOD target`.
    pub(crate) served: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub(crate) fn new(
        zone: impl Fn(&str, usize) -> Option<Vec<IpAddr>> + Send + Sync + 'static,
        handler: impl Fn(&Seen, &mut Wire) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let served = Arc::new(Mutex::new(Vec::new()));
        let connected = Arc::new(Mutex::new(Vec::new()));
        let names = vec![
            "public.example.com".to_owned(),
            "other.example.com".to_owned(),
            PUBLIC.to_owned(),
        ];
        let certified = rcgen::generate_simple_self_signed(names).unwrap();
        let handler: Arc<Handler> = Arc::new(handler);
        let resolver = Arc::new(LocalResolver {
            server: serve_names(Arc::new(zone), asked.clone()),
        });
        let connector = Arc::new(Loopback {
            plain: serve_web(handler.clone(), None, served.clone()),
            silent: TcpListener::bind("127.0.0.1:0").unwrap(),
            tls: serve_web(handler, Some(tls(&certified)), served.clone()),
            connected: connected.clone(),
        });
        let policy = Policy {
            grants: Vec::new(),
            limits: Limits {
                connect_timeout: Duration::from_secs(5),
                total_timeout: Duration::from_secs(20),
                ..Limits::default()
            },
            resolver,
            connector,
            roots: Some(vec![certified.cert.der().to_vec()]),
        };
        Self {
            policy,
            connected,
            asked,
            served,
        }
    }

    /// The usual names and this web server.
    pub(crate) fn web(
        handler: impl Fn(&Seen, &mut Wire) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::new(usual_names, handler)
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.policy.limits);
        self
    }

    pub(crate) fn egress(&self) -> Egress {
        Egress::new(self.policy.clone())
    }

    /// Where connections went since the last time.
    pub(crate) fn taken(&self) -> Vec<SocketAddr> {
        std::mem::take(&mut self.connected.lock().unwrap())
    }
}

pub(crate) fn usual_names(name: &str, _: usize) -> Option<Vec<IpAddr>> {
    let address = match name {
        "public.example.com" => PUBLIC,
        "other.example.com" => "93.184.215.15",
        "private.example.com" => "10.0.0.1",
        "localhost" => "127.0.0.1",
        _ => return None,
    };
    Some(vec![address.parse().unwrap()])
}

fn tls(certified: &rcgen::CertifiedKey<rcgen::KeyPair>) -> Arc<rustls::ServerConfig> {
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.into())
        .unwrap();
    Arc::new(config)
}

/// Leads every address to loopback.
struct Loopback {
    plain: SocketAddr,
    tls: SocketAddr,
    /// Accepts connections and never answers.
    silent: TcpListener,
    connected: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Connect for Loopback {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test's own listener on loopback"
    )]
    fn connect(&self, address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        self.connected.lock().unwrap().push(address);
        let server = match address.port() {
            443 | 8443 => self.tls,
            // A port without a listener.
            8009 => return Err(io::ErrorKind::ConnectionRefused.into()),
            8011 => self.silent.local_addr()?,
            8010 => return Err(io::ErrorKind::TimedOut.into()),
            _ => self.plain,
        };
        assert!(server.ip().is_loopback());
        TcpStream::connect_timeout(&server, timeout)
    }
}

/// Asks the name server on loopback.
struct LocalResolver {
    server: SocketAddr,
}

impl Resolve for LocalResolver {
    fn resolve(&self, host: &str, timeout: Duration) -> io::Result<Vec<IpAddr>> {
        let mut found = Vec::new();
        for kind in [TYPE::A, TYPE::AAAA] {
            found.extend(self.ask(host, kind, timeout)?);
        }
        Ok(found)
    }
}

impl LocalResolver {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test's own name server on loopback"
    )]
    fn ask(&self, host: &str, kind: TYPE, timeout: Duration) -> io::Result<Vec<IpAddr>> {
        let name = Name::new(host).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut query = Packet::new_query(7);
        let question = Question::new(name, QTYPE::TYPE(kind), QCLASS::CLASS(CLASS::IN), false);
        query.questions.push(question);
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(timeout))?;
        socket.send_to(&query.build_bytes_vec().unwrap(), self.server)?;
        let mut buffer = [0; 1500];
        let (length, _) = socket.recv_from(&mut buffer)?;
        let answer = Packet::parse(&buffer[..length]).unwrap();
        if answer.rcode() != RCODE::NoError {
            return Err(io::ErrorKind::NotFound.into());
        }
        let address = |record: &ResourceRecord<'_>| match &record.rdata {
            RData::A(record) => Some(IpAddr::V4(record.address.into())),
            RData::AAAA(record) => Some(IpAddr::V6(record.address.into())),
            _ => None,
        };
        Ok(answer.answers.iter().filter_map(address).collect())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test's own name server on loopback"
)]
fn serve_names(zone: Arc<Zone>, asked: Arc<Mutex<Vec<String>>>) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 1500];
        let mut counts: HashMap<String, usize> = HashMap::new();
        loop {
            let (length, client) = socket.recv_from(&mut buffer).unwrap();
            let query = Packet::parse(&buffer[..length]).unwrap();
            let question = query.questions[0].clone().into_owned();
            let host = question.qname.to_string();
            let wants_v4 = question.qtype == QTYPE::TYPE(TYPE::A);
            let count = counts.entry(host.clone()).or_default();
            if wants_v4 {
                *count += 1;
                asked.lock().unwrap().push(host.clone());
            }
            let mut reply = Packet::new_reply(query.id());
            match zone(&host, *count) {
                None => *reply.rcode_mut() = RCODE::NameError,
                Some(addresses) => {
                    for address in addresses.into_iter().filter(|it| it.is_ipv4() == wants_v4) {
                        let data = match address {
                            IpAddr::V4(it) => RData::A(A {
                                address: it.to_bits(),
                            }),
                            IpAddr::V6(it) => RData::AAAA(AAAA {
                                address: it.to_bits(),
                            }),
                        };
                        let name = question.qname.clone();
                        let record = ResourceRecord::new(name, CLASS::IN, 0, data);
                        reply.answers.push(record);
                    }
                }
            }
            reply.questions.push(question);
            let bytes = reply.build_bytes_vec().unwrap();
            socket.send_to(&bytes, client).unwrap();
        }
    });
    address
}

fn serve_web(
    handler: Arc<Handler>,
    tls: Option<Arc<rustls::ServerConfig>>,
    served: Arc<Mutex<Vec<String>>>,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = socket.unwrap();
            let (handler, tls, served) = (handler.clone(), tls.clone(), served.clone());
            std::thread::spawn(move || {
                // A client that hangs up is what many of these tests are about.
                serve_one(socket, &handler, tls, &served).ok();
            });
        }
    });
    address
}

fn serve_one(
    socket: TcpStream,
    handler: &Arc<Handler>,
    tls: Option<Arc<rustls::ServerConfig>>,
    served: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let stream: Box<dyn Duplex> = match tls {
        None => Box::new(socket.try_clone()?),
        Some(config) => {
            let session = rustls::ServerConnection::new(config).unwrap();
            Box::new(rustls::StreamOwned::new(session, socket.try_clone()?))
        }
    };
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |it| it.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    served.lock().unwrap().push(format!("{method} {target}"));
    let stream = reader.into_inner();
    let seen = Seen {
        method,
        target,
        headers,
        body,
    };
    let mut wire = Wire { stream, socket };
    handler(&seen, &mut wire)
}
