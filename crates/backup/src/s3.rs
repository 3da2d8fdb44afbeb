//! Requests to a bucket: signed (AWS Signature Version 4), sent by `egress`, and repeated while the server is busy.

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use kenning_core::{Code, Error, Result};
use kenning_egress::{Egress, Method, Request, Response, host_of};
use kenning_text::{hex, percent};
use sha2::Sha256;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// How often a request is repeated.
const RETRIES_MAX: u32 = 5;
/// The pause before the first repetition. Each pause is twice as long as the one before it.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// No request is repeated after this long.
const RETRY_TIME_MAX: Duration = Duration::from_secs(180);

/// A bucket at an endpoint, and the key that signs requests to it.
pub(crate) struct Client {
    egress: Egress,
    /// Scheme and host, without a slash at the end.
    origin: String,
    /// The `Host` header, which `egress` derives from the address in the same way.
    host: String,
    /// The path of the bucket, such as `/copies`.
    path: String,
    region: String,
    key_id: String,
    key: Zeroizing<String>,
    token: Option<Zeroizing<String>>,
}

/// One request.
#[derive(Default)]
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    /// The object, or empty for the bucket itself.
    pub(crate) key: &'a str,
    pub(crate) query: &'a [(&'a str, &'a str)],
    /// Names in lower case.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: Vec<u8>,
    /// Whether it may not be sent twice, because the second answer would differ from the first. It is then repeated
    /// only if the server says that it did nothing.
    pub(crate) once: bool,
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There was no answer.
    Unsent(Error),
    /// The server refused: the status, and the code in its answer.
    Refused { status: u16, code: Option<String> },
}

impl Client {
    pub(crate) fn new(
        egress: Egress,
        endpoint: &str,
        bucket: &str,
        region: &str,
        key_id: &str,
        key: Zeroizing<String>,
        token: Option<Zeroizing<String>>,
    ) -> Result<Self> {
        let endpoint = endpoint.trim_end_matches('/');
        let (scheme, rest) = endpoint.split_once("://").unwrap_or_default();
        let (_, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (name, port) = host_of(endpoint)?;
        let is_usual = port == if scheme == "https" { 443 } else { 80 };
        let host = match is_usual {
            true => name,
            false => format!("{name}:{port}"),
        };
        let path = match path {
            "" => format!("/{bucket}"),
            path => format!("/{path}/{bucket}"),
        };
        Ok(Self {
            egress,
            origin: format!("{scheme}://{host}"),
            host,
            path,
            region: region.to_owned(),
            key_id: key_id.to_owned(),
            key,
            token,
        })
    }

    /// Sends a request until it is answered, refused or hopeless.
    pub(crate) fn call(&self, call: &Call<'_>) -> std::result::Result<Response, Failure> {
        let started = Instant::now();
        let mut pause = PAUSE_FIRST;
        for retry in 0.. {
            let failure = match self.egress.fetch(self.request(call, Timestamp::now())) {
                Ok(answer) => match failure_of(call.method, &answer) {
                    None => return Ok(answer),
                    Some(failure) => failure,
                },
                Err(error) => Failure::Unsent(error),
            };
            let is_late = started.elapsed() + pause > RETRY_TIME_MAX;
            if retry == RETRIES_MAX || is_late || !failure.may_pass(call.once) {
                return Err(failure);
            }
            std::thread::sleep(pause);
            pause *= 2;
        }
        Err(Failure::Unsent(Error::internal("no request was sent")))
    }

    fn request(&self, call: &Call<'_>, at: Timestamp) -> Request {
        let path = match call.key {
            "" => self.path.clone(),
            key => format!("{}/{}", self.path, percent::encoded(key, "/")),
        };
        let query = query(call.query);
        let mut headers: Vec<(String, String)> = call
            .headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let hash = hex::sha256(&call.body);
        headers.push(("x-amz-content-sha256".to_owned(), hash.clone()));
        headers.push(("x-amz-date".to_owned(), long_date(at)));
        if let Some(token) = &self.token {
            headers.push(("x-amz-security-token".to_owned(), token.to_string()));
        }
        let signed = Signed {
            method: call.method,
            path: &path,
            query: &query,
            headers: &headers,
            hash: &hash,
        };
        let authorization = self.authorization(&signed, at);
        headers.push(("authorization".to_owned(), authorization));
        // Pieces are counted in bytes of the object, so nothing may be compressed on the way.
        headers.push(("accept-encoding".to_owned(), "identity".to_owned()));
        let mut url = format!("{}{path}", self.origin);
        if !query.is_empty() {
            url = format!("{url}?{query}");
        }
        Request {
            method: call.method,
            url,
            headers,
            body: call.body.clone(),
            ..Request::default()
        }
    }

    /// The signature of a request, as its `Authorization` header.
    fn authorization(&self, signed: &Signed<'_>, at: Timestamp) -> String {
        let mut headers = vec![("host", self.host.as_str())];
        headers.extend(
            signed
                .headers
                .iter()
                .map(|(name, value)| (&**name, &**value)),
        );
        headers.sort_unstable();
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines: String = headers
            .iter()
            .map(|(name, value)| format!("{name}:{}\n", value.trim()))
            .collect();
        let Signed {
            path, query, hash, ..
        } = signed;
        let method = method_name(signed.method);
        let request = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{hash}");
        let request = hex::sha256(request.as_bytes());
        let date = at.strftime("%Y%m%d").to_string();
        let scope = format!("{date}/{}/s3/aws4_request", self.region);
        let text = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{request}", long_date(at));
        let mut key = Zeroizing::new(format!("AWS4{}", self.key.as_str()).into_bytes());
        for part in [&*date, &*self.region, "s3", "aws4_request", &*text] {
            key = Zeroizing::new(hmac(&key, part));
        }
        let signature = hex::encode(&key);
        let id = &self.key_id;
        format!(
            "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
    }
}

/// What a signature covers.
struct Signed<'a> {
    method: Method,
    path: &'a str,
    query: &'a str,
    headers: &'a [(String, String)],
    hash: &'a str,
}

impl Failure {
    /// The server's word for it.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Unsent(_) => None,
            Self::Refused { code, .. } => code.as_deref(),
        }
    }

    /// Whether the same request may succeed later.
    fn may_pass(&self, once: bool) -> bool {
        match self {
            Self::Unsent(error) => !once && matches!(error.code, Code::Timeout | Code::Unavailable),
            // The last one: another conditional write to the same key is under way.
            Self::Refused { status, code } => {
                matches!(status, 408 | 429 | 500 | 502..=599)
                    || code.as_deref() == Some("ConditionalRequestConflict")
            }
        }
    }
}

/// The query in the order and spelling that the signature needs.
fn query(pairs: &[(&str, &str)]) -> String {
    let encoded = |text: &str| percent::encoded(text, "");
    let mut pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
        .collect();
    pairs.sort_unstable();
    pairs.join("&")
}

fn failure_of(method: Method, answer: &Response) -> Option<Failure> {
    let code = server_code(&String::from_utf8_lossy(&answer.body)).map(str::to_owned);
    let status = match answer.status {
        // Parts are put together after the status was sent, so a failure of that is told in the body only.
        200..=299 if method == Method::Post && is_error(&answer.body) => 500,
        200..=299 => return None,
        status => status,
    };
    Some(Failure::Refused { status, code })
}

/// Whether a body is an error in XML.
fn is_error(body: &[u8]) -> bool {
    let body = body.trim_ascii_start();
    let body = match body.strip_prefix(b"<?xml") {
        Some(rest) => rest
            .iter()
            .position(|it| *it == b'>')
            .and_then(|end| rest.get(end + 1..))
            .unwrap_or_default()
            .trim_ascii_start(),
        None => body,
    };
    body.starts_with(b"<Error>") || body.starts_with(b"<Error ")
}

/// The code in an answer such as `<Error><Code>SlowDown</Code>…`.
fn server_code(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let is_code =
        (1..=64).contains(&code.len()) && code.bytes().all(|it| it.is_ascii_alphanumeric());
    is_code.then_some(code)
}

fn long_date(at: Timestamp) -> String {
    at.strftime("%Y%m%dT%H%M%SZ").to_string()
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    // A key of any length will do.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return Vec::new();
    };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn method_name(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
        Method::Patch => "PATCH",
        Method::Options => "OPTIONS",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_egress::Policy;

    fn client(endpoint: &str) -> Client {
        let key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned();
        Client::new(
            Egress::new(Policy::default()),
            endpoint,
            "examplebucket",
            "us-east-1",
            "AKIAIOSFODNN7EXAMPLE",
            key.into(),
            None,
        )
        .unwrap()
    }

    fn header<'a>(request: &'a Request, name: &str) -> &'a str {
        let found = request.headers.iter().find(|(it, _)| it == name);
        found.map_or("", |(_, value)| value)
    }

    /// The examples of the S3 manual name the bucket in the host; the steps are the same.
    #[test]
    fn signatures_are_those_of_the_manual() {
        let mut client = client("https://s3.amazonaws.com");
        client.host = "examplebucket.s3.amazonaws.com".to_owned();
        client.path = String::new();
        let at: Timestamp = "2013-05-24T00:00:00Z".parse().unwrap();
        let get = Call {
            key: "test.txt",
            headers: &[("range", "bytes=0-9")],
            ..Call::default()
        };
        let request = client.request(&get, at);
        assert_eq!(
            header(&request, "authorization"),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        let put = Call {
            method: Method::Put,
            key: "test$file.text",
            headers: &[
                ("date", "Fri, 24 May 2013 00:00:00 GMT"),
                ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ],
            body: b"Welcome to Amazon S3.".to_vec(),
            ..Call::default()
        };
        let request = client.request(&put, at);
        assert!(request.url.ends_with("/test%24file.text"), "{request:?}");
        let signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
        assert!(header(&request, "authorization").ends_with(signature));
    }

    #[test]
    fn an_address_keeps_its_port_and_path() {
        for (endpoint, host, url) in [
            (
                "https://s3.example.org",
                "s3.example.org",
                "https://s3.example.org/examplebucket/a%20b/c",
            ),
            (
                "https://S3.example.org:443/",
                "s3.example.org",
                "https://s3.example.org/examplebucket/a%20b/c",
            ),
            (
                "http://s3.example.org:9000",
                "s3.example.org:9000",
                "http://s3.example.org:9000/examplebucket/a%20b/c",
            ),
            (
                "http://[::1]:9000/store",
                "[::1]:9000",
                "http://[::1]:9000/store/examplebucket/a%20b/c",
            ),
        ] {
            let client = client(endpoint);
            assert_eq!(client.host, host);
            let call = Call {
                key: "a b/c",
                ..Call::default()
            };
            assert_eq!(client.request(&call, Timestamp::UNIX_EPOCH).url, url);
        }
    }

    #[test]
    fn a_query_is_sorted_and_encoded() {
        assert_eq!(
            query(&[("uploadId", "a/b+c"), ("partNumber", "2"), ("uploads", "")]),
            "partNumber=2&uploadId=a%2Fb%2Bc&uploads="
        );
    }

    #[test]
    fn an_error_in_a_good_answer_is_an_error() {
        for body in [
            "<Error><Code>InternalError</Code></Error>",
            "\n<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\n<Error><Code>InternalError</Code></Error>",
        ] {
            assert!(is_error(body.as_bytes()));
            assert_eq!(server_code(body), Some("InternalError"));
        }
        for body in ["", "<?xml", "<ListBucketResult><Error>", "<Errors/>"] {
            assert!(!is_error(body.as_bytes()), "{body}");
        }
    }
}
