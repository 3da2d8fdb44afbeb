//! A bucket that speaks S3: signing, parts, pages and retries are the `object_store` crate's, and
//! every connection is opened by `egress`.
//!
//! `object_store` is built without its own HTTP client. It is given [`EgressConnector`] instead, which hands
//! each request to an [`Egress`] that may reach the configured endpoint and follows no redirect: a
//! server that points elsewhere does not get the backup sent there.
//!
//! Large objects travel in pieces in both directions, so no request or answer is larger than what
//! `egress` accepts at once, and none needs the whole in memory.

use crate::place::Object;
use crate::stream::{too_large, unwrap_error};
use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use http_body_util::BodyExt;
use kenning_core::{Code, Error, Result};
use kenning_egress::{Egress, Grant, Method, Policy, Request};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, GetOptions, MultipartUpload, ObjectStore, ObjectStoreExt,
    PutMode, PutPayload, RetryConfig,
};
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// The smallest part that S3 accepts, except for the last. All have the same size, as R2 demands.
const PART_BYTES: usize = 5 * 1024 * 1024;
/// How much one request reads.
const PIECE_BYTES: u64 = 4 * 1024 * 1024;
/// The most objects of one listing.
const OBJECTS_MAX: usize = 1_000_000;

/// A bucket and its credentials.
#[derive(Clone)]
pub struct BucketSettings {
    /// Where the service is, such as `https://ACCOUNT.r2.cloudflarestorage.com`. The bucket's name is
    /// added to the path.
    pub endpoint: String,
    /// `auto` for R2.
    pub region: String,
    /// The bucket.
    pub bucket: String,
    /// Before every key, such as `laptop`. May be empty.
    pub prefix: String,
    /// The name of the key.
    pub access_key_id: String,
    /// The key.
    pub secret_access_key: Zeroizing<String>,
    /// For temporary credentials.
    pub session_token: Option<Zeroizing<String>>,
}

impl fmt::Debug for BucketSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketSettings")
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// A bucket. Cheap to clone.
#[derive(Clone)]
pub struct Bucket {
    store: Arc<AmazonS3>,
    name: String,
    prefix: String,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket")
            .field("name", &self.name)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl Bucket {
    /// A bucket at an endpoint that the operator named, wherever that is: the policy is widened by
    /// this one host and port, and narrowed to follow no redirect. Sends no request yet.
    pub fn new(settings: BucketSettings, mut policy: Policy) -> Result<Self> {
        check_settings(&settings)?;
        policy.grants.push(Grant::parse(&settings.endpoint)?);
        policy.limits.redirects_max = 0;
        policy.limits.body_bytes_max = policy.limits.body_bytes_max.max(2 * PIECE_BYTES);
        policy.limits.total_timeout = policy.limits.total_timeout.max(Duration::from_secs(120));
        let retry = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(10),
                base: 2.0,
            },
            max_retries: 5,
            retry_timeout: Duration::from_secs(180),
        };
        let mut builder = AmazonS3Builder::new()
            .with_endpoint(settings.endpoint.trim_end_matches('/'))
            .with_region(&settings.region)
            .with_bucket_name(&settings.bucket)
            .with_access_key_id(&settings.access_key_id)
            .with_secret_access_key(settings.secret_access_key.as_str())
            .with_virtual_hosted_style_request(false)
            .with_allow_http(settings.endpoint.starts_with("http://"))
            .with_disable_tagging(true)
            .with_disable_bulk_delete(true)
            .with_retry(retry)
            .with_http_connector(EgressConnector(Egress::new(policy)));
        if let Some(token) = &settings.session_token {
            builder = builder.with_token(token.as_str());
        }
        // The cause might quote a setting.
        let store = builder
            .build()
            .map_err(|_| Error::invalid("the settings of the bucket cannot be used"))?;
        let prefix = match settings.prefix.trim_matches('/') {
            "" => String::new(),
            prefix => format!("{prefix}/"),
        };
        Ok(Self {
            store: Arc::new(store),
            name: settings.bucket,
            prefix,
        })
    }

    fn path(&self, key: &str) -> Path {
        Path::from(format!("{}{key}", self.prefix))
    }

    pub(crate) fn put(
        &self,
        key: &str,
        fill: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let mut parts = Parts {
            bucket: self,
            key,
            buffer: Vec::new(),
            upload: None,
        };
        let done = fill(&mut parts).and_then(|()| parts.finish());
        if done.is_err() {
            parts.abort();
        }
        done
    }

    pub(crate) fn put_new(&self, key: &str, bytes: &[u8]) -> Result<bool> {
        let path = self.path(key);
        let payload = PutPayload::from(bytes.to_vec());
        let put = self
            .store
            .put_opts(&path, payload.clone(), PutMode::Create.into());
        match wait(put)? {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            // A service without conditional writes can hold backups, of one machine at a time.
            Err(error) if server_code(&error.to_string()) == Some("NotImplemented") => {
                let put = wait(self.store.put(&path, payload))?;
                put.map_err(|error| self.error(key, &error))?;
                Ok(true)
            }
            Err(error) => Err(self.error(key, &error)),
        }
    }

    pub(crate) fn get(&self, key: &str, max_bytes: u64, out: &mut dyn Write) -> Result<()> {
        let path = self.path(key);
        let (mut at, mut tag) = (0, None);
        loop {
            let mut options = GetOptions::new().with_range(Some(at..at + PIECE_BYTES));
            // Pieces of two versions must not be mixed.
            options.if_match = tag.take();
            let piece = async {
                let got = self.store.get_opts(&path, options).await?;
                let (size, tag) = (got.meta.size, got.meta.e_tag.clone());
                Ok((size, tag, got.bytes().await?))
            };
            let piece: object_store::Result<(u64, Option<String>, Bytes)> = wait(piece)?;
            let (size, found, bytes) = piece.map_err(|error| self.error(key, &error))?;
            if size > max_bytes {
                return Err(too_large(&format!("`{key}`"), max_bytes));
            }
            out.write_all(&bytes)
                .map_err(|error| unwrap_error(error, "a file could not be written"))?;
            at += bytes.len() as u64;
            if at >= size {
                return Ok(());
            }
            if bytes.is_empty() {
                let name = &self.name;
                let why = format!("bucket `{name}` closed the connection in the middle of `{key}`");
                return Err(Error::unavailable(why));
            }
            tag = found;
        }
    }

    pub(crate) fn list(&self, folder: &str) -> Result<Vec<Object>> {
        let path = self.path(folder);
        let mut pages = self.store.list(Some(&path));
        let listed = async {
            let mut objects = Vec::new();
            while let Some(it) = pages.try_next().await? {
                if objects.len() == OBJECTS_MAX {
                    return Ok(Err(Error::too_large("the bucket has too many objects")));
                }
                // The listing is limited to the prefix, but the server's answer is not trusted.
                let key = it.location.as_ref().strip_prefix(&self.prefix);
                objects.extend(key.map(|key| Object {
                    key: key.to_owned(),
                    n_bytes: it.size,
                }));
            }
            Ok(Ok(objects))
        };
        let mut objects = wait(listed)?.map_err(|error| self.error(folder, &error))??;
        objects.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(objects)
    }

    pub(crate) fn delete(&self, key: &str) -> Result<()> {
        wait(self.store.delete(&self.path(key)))?.map_err(|error| self.error(key, &error))
    }

    /// An error without the server's text, because its answers repeat the signed request.
    fn error(&self, key: &str, error: &object_store::Error) -> Error {
        let name = &self.name;
        if let Some(ours) = cause(error) {
            let why = format!("bucket `{name}`: {}", ours.message);
            let mut told = Error::new(ours.code, why);
            told.hint.clone_from(&ours.hint);
            return told;
        }
        let text = error.to_string();
        let said = server_code(&text).unwrap_or("no reason");
        let is_refused = DENIALS.contains(&said);
        match error {
            // The library reports every failed listing as generic, so the server's code decides.
            _ if said == "NoSuchBucket" => Error::not_found("bucket", name),
            object_store::Error::NotFound { .. } => Error::not_found("object", key),
            object_store::Error::Precondition { .. } => {
                Error::conflict(format!("`{key}` in bucket `{name}` changed meanwhile"))
                    .hint("try again")
            }
            object_store::Error::PermissionDenied { .. }
            | object_store::Error::Unauthenticated { .. } => self.denied(key, said),
            _ if is_refused => self.denied(key, said),
            _ => Error::unavailable(format!("bucket `{name}` failed at `{key}`: {said}")),
        }
    }

    fn denied(&self, key: &str, said: &str) -> Error {
        let name = &self.name;
        Error::denied(format!("bucket `{name}` refused `{key}`: {said}"))
            .hint("check the access key, its secret and permissions, the region and the clock")
    }
}

/// The codes of a server for unknown keys and missing permissions.
const DENIALS: &[&str] = &[
    "AccessDenied",
    "AuthorizationHeaderMalformed",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
];

fn check_settings(settings: &BucketSettings) -> Result<()> {
    let invalid = |field: &str, value: &str, remedy: &str| {
        Err(Error::invalid(format!("`{field}` of the bucket is `{value}`")).hint(remedy))
    };
    let endpoint = &settings.endpoint;
    if !endpoint.starts_with("https://") && !endpoint.starts_with("http://") {
        let remedy = "write a whole address such as `https://s3.example.org`";
        return invalid("endpoint", endpoint, remedy);
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    for (field, value) in [("bucket", &settings.bucket), ("region", &settings.region)] {
        if value.is_empty() || !value.chars().all(is_plain) {
            return invalid(field, value, "letters, digits, `.`, `-` and `_`");
        }
    }
    let prefix = &settings.prefix;
    let is_odd = |part: &str| matches!(part, "" | "." | "..");
    let parts = prefix.trim_matches('/');
    if !prefix.chars().all(|c| is_plain(c) || c == '/')
        || !parts.is_empty() && parts.split('/').any(is_odd)
    {
        return invalid("prefix", prefix, "letters, digits, `.`, `-`, `_` and `/`");
    }
    // Without them the library would request credentials from the cloud's metadata service.
    if settings.access_key_id.is_empty() || settings.secret_access_key.is_empty() {
        return Err(
            Error::invalid("the bucket has no `access_key_id` and secret")
                .hint("set both, for example from the environment with `${VAR}`"),
        );
    }
    Ok(())
}

/// Runs one exchange to its end on this thread. The only thing that is awaited besides `egress`
/// is the pause before a retry.
fn wait<F: Future>(work: F) -> Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|cause| {
            Error::unavailable("the thread for the bucket could not be started").because(cause)
        })?;
    Ok(runtime.block_on(work))
}

/// The error of `egress`, if it was the cause.
fn cause<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Error> {
    std::iter::successors(error.source(), |it| it.source()).find_map(|it| it.downcast_ref())
}

/// The code in an answer such as `<Error><Code>SlowDown</Code>…`.
fn server_code(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let is_code =
        (1..=64).contains(&code.len()) && code.bytes().all(|it| it.is_ascii_alphanumeric());
    is_code.then_some(code)
}

/// Collects what is written into parts. What fits in one part is sent as a whole.
struct Parts<'a> {
    bucket: &'a Bucket,
    key: &'a str,
    buffer: Vec<u8>,
    upload: Option<Box<dyn MultipartUpload>>,
}

impl Parts<'_> {
    fn convert<T>(&self, res: object_store::Result<T>) -> Result<T> {
        res.map_err(|error| self.bucket.error(self.key, &error))
    }

    fn send_part(&mut self) -> Result<()> {
        let part = PutPayload::from(std::mem::take(&mut self.buffer));
        let mut upload = match self.upload.take() {
            Some(upload) => upload,
            None => {
                let path = self.bucket.path(self.key);
                let begun = wait(self.bucket.store.put_multipart(&path))?;
                self.convert(begun)?
            }
        };
        let sent = wait(upload.put_part(part));
        self.upload = Some(upload);
        self.convert(sent?)
    }

    fn finish(&mut self) -> Result<()> {
        if self.upload.is_none() {
            let whole = PutPayload::from(std::mem::take(&mut self.buffer));
            let path = self.bucket.path(self.key);
            let put = wait(self.bucket.store.put(&path, whole))?;
            return self.convert(put).map(drop);
        }
        if !self.buffer.is_empty() {
            self.send_part()?;
        }
        let Some(upload) = &mut self.upload else {
            return Ok(());
        };
        let completed = wait(upload.complete())?;
        self.convert(completed).map(drop)
    }

    /// Unfinished uploads cost money. If this fails, the bucket's own rule for them applies: there is
    /// already an error to report.
    fn abort(&mut self) {
        if let Some(mut upload) = self.upload.take() {
            let _ = wait(upload.abort());
        }
    }
}

impl Write for Parts<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(PART_BYTES - self.buffer.len());
        self.buffer.extend(bytes.get(..n).unwrap_or_default());
        if self.buffer.len() == PART_BYTES {
            self.send_part().map_err(io::Error::other)?;
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The HTTP client that `object_store` is given.
#[derive(Clone, Debug)]
struct EgressConnector(Egress);

impl HttpConnector for EgressConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for EgressConnector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let request = Request {
            method: method(&head.method)?,
            url: head.uri.to_string(),
            headers: headers(&head.headers)?,
            body: body.collect().await?.to_bytes().to_vec(),
            ..Request::default()
        };
        let answer = self.0.fetch(request).map_err(refused)?;
        let mut response = http::Response::builder().status(answer.status);
        for (name, value) in &answer.headers {
            response = response.header(name, value);
        }
        response
            .body(answer.body.into())
            .map_err(|error| HttpError::new(HttpErrorKind::Decode, error))
    }
}

fn method(method: &http::Method) -> Result<Method, HttpError> {
    Ok(match method.as_str() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        _ => return Err(refused(Error::internal("unsupported HTTP method"))),
    })
}

/// The headers for `egress`, which sets those of the connection itself, to the same values.
fn headers(headers: &http::HeaderMap) -> Result<Vec<(String, String)>, HttpError> {
    let mut taken = vec![("accept-encoding".to_owned(), "identity".to_owned())];
    for (name, value) in headers {
        if name == http::header::HOST || name == http::header::CONTENT_LENGTH {
            continue;
        }
        let value = value.to_str();
        let value = value.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        taken.push((name.as_str().to_owned(), value.to_owned()));
    }
    Ok(taken)
}

/// The library retries what may succeed later; what `egress` refuses never does.
fn refused(error: Error) -> HttpError {
    let kind = match error.code {
        Code::Timeout => HttpErrorKind::Timeout,
        Code::Unavailable => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}
