//! A bucket that speaks S3: parts, pieces, pages, and what the server's errors mean.
//!
//! Every connection is opened by `egress`, which may reach the configured endpoint and follows no redirect: a
//! server that points elsewhere does not get the backup sent there.
//!
//! Large objects travel in pieces in both directions, so no request or answer is larger than what
//! `egress` accepts at once, and none needs the whole in memory.

use crate::place::Object;
use crate::s3::{Call, Client, Failure};
use crate::stream::{too_large, unwrap_error};
use kenning_core::{Error, Result};
use kenning_egress::{Egress, Grant, Method, Policy, Response};
use kenning_text::escape;
use roxmltree::{Document, Node, ParsingOptions};
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
/// The most pages of one listing.
const PAGES_MAX: usize = 10_000;
/// The most elements and texts of one answer in XML. A page of a listing has up to 1,000 objects.
const NODES_MAX: u32 = 100_000;

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
    client: Arc<Client>,
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
        let client = Client::new(
            Egress::new(policy),
            &settings.endpoint,
            &settings.bucket,
            &settings.region,
            &settings.access_key_id,
            settings.secret_access_key,
            settings.session_token,
        )?;
        let prefix = match settings.prefix.trim_matches('/') {
            "" => String::new(),
            prefix => format!("{prefix}/"),
        };
        Ok(Self {
            client: Arc::new(client),
            name: settings.bucket,
            prefix,
        })
    }

    fn path(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// Sends a request about `key`, which is named if it fails.
    fn call(&self, key: &str, call: &Call<'_>) -> Result<Response> {
        let answer = self.client.call(call);
        answer.map_err(|failure| self.error(key, &failure))
    }

    /// Sends a small object as a whole.
    fn put_whole(&self, key: &str, body: Vec<u8>) -> Result<()> {
        let call = Call {
            method: Method::Put,
            key: &self.path(key),
            headers: &[OF_BYTES],
            body,
            ..Call::default()
        };
        self.call(key, &call).map(drop)
    }

    pub(crate) fn put(
        &self,
        key: &str,
        fill: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let mut parts = Parts {
            bucket: self,
            key,
            path: self.path(key),
            buffer: Vec::new(),
            upload: None,
            tags: Vec::new(),
        };
        let done = fill(&mut parts).and_then(|()| parts.finish());
        if done.is_err() {
            parts.abort();
        }
        done
    }

    pub(crate) fn put_new(&self, key: &str, bytes: &[u8]) -> Result<bool> {
        let call = Call {
            method: Method::Put,
            key: &self.path(key),
            headers: &[OF_BYTES, ("if-none-match", "*")],
            body: bytes.to_vec(),
            once: true,
            ..Call::default()
        };
        match self.client.call(&call) {
            Ok(_) => Ok(true),
            Err(Failure::Refused { status: 412, .. }) => Ok(false),
            // A service without conditional writes can hold backups, of one machine at a time.
            Err(failure) if failure.code() == Some("NotImplemented") => {
                self.put_whole(key, bytes.to_vec())?;
                Ok(true)
            }
            Err(failure) => Err(self.error(key, &failure)),
        }
    }

    pub(crate) fn get(&self, key: &str, max_bytes: u64, out: &mut dyn Write) -> Result<()> {
        let path = self.path(key);
        let (mut at, mut tag): (u64, Option<String>) = (0, None);
        loop {
            let range = format!("bytes={at}-{}", at + PIECE_BYTES - 1);
            let mut headers = vec![("range", range.as_str())];
            // Pieces of two versions must not be mixed.
            headers.extend(tag.as_deref().map(|tag| ("if-match", tag)));
            let call = Call {
                key: &path,
                headers: &headers,
                ..Call::default()
            };
            let answer = match self.client.call(&call) {
                // There is nothing to read in an empty object.
                Err(Failure::Refused { status: 416, .. }) if at == 0 => return Ok(()),
                answer => answer.map_err(|failure| self.error(key, &failure))?,
            };
            let n_bytes = answer.body.len() as u64;
            let size = match answer.status {
                206 => size_of(answer.header("content-range"), at),
                // The server knows no pieces.
                _ => (at == 0).then_some(n_bytes),
            };
            let size = size.ok_or_else(|| self.malformed(key))?;
            if size > max_bytes {
                return Err(too_large(&format!("`{key}`"), max_bytes));
            }
            out.write_all(&answer.body)
                .map_err(|error| unwrap_error(error, "a file could not be written"))?;
            at += n_bytes;
            if at >= size {
                return Ok(());
            }
            if n_bytes == 0 {
                let name = &self.name;
                let why = format!("bucket `{name}` closed the connection in the middle of `{key}`");
                return Err(Error::unavailable(why));
            }
            tag = answer.header("etag").map(str::to_owned);
        }
    }

    pub(crate) fn list(&self, folder: &str) -> Result<Vec<Object>> {
        let path = self.path(folder);
        let mut objects = Vec::new();
        let mut token = None;
        for _ in 0..PAGES_MAX {
            let mut query = vec![("list-type", "2"), ("prefix", path.as_str())];
            query.extend(token.as_deref().map(|token| ("continuation-token", token)));
            let call = Call {
                query: &query,
                ..Call::default()
            };
            let answer = self.call(folder, &call)?;
            let page = Page::parse(&answer.body).ok_or_else(|| self.malformed(folder))?;
            for (key, n_bytes) in page.objects {
                if objects.len() == OBJECTS_MAX {
                    return Err(Error::too_large("the bucket has too many objects"));
                }
                // The listing is limited to the prefix, but the server's answer is not trusted.
                objects.extend(key.strip_prefix(&self.prefix).map(|key| Object {
                    key: key.to_owned(),
                    n_bytes,
                }));
            }
            token = page.next;
            if token.is_none() {
                objects.sort_by(|a, b| a.key.cmp(&b.key));
                return Ok(objects);
            }
        }
        Err(Error::too_large("the bucket has too many objects"))
    }

    pub(crate) fn delete(&self, key: &str) -> Result<()> {
        let call = Call {
            method: Method::Delete,
            key: &self.path(key),
            ..Call::default()
        };
        self.call(key, &call).map(drop)
    }

    /// An error without the server's text, because its answers repeat the signed request.
    fn error(&self, key: &str, failure: &Failure) -> Error {
        let name = &self.name;
        let status = match failure {
            Failure::Unsent(ours) => {
                let why = format!("bucket `{name}`: {}", ours.message);
                let mut told = Error::new(ours.code, why);
                told.hint.clone_from(&ours.hint);
                return told;
            }
            Failure::Refused { status, .. } => *status,
        };
        let said = failure.code().unwrap_or("no reason");
        match status {
            _ if said == "NoSuchBucket" => Error::not_found("bucket", name),
            404 => Error::not_found("object", key),
            412 => Error::conflict(format!("`{key}` in bucket `{name}` changed meanwhile"))
                .hint("try again"),
            401 | 403 => self.denied(key, said),
            _ if DENIALS.contains(&said) => self.denied(key, said),
            _ => Error::unavailable(format!("bucket `{name}` failed at `{key}`: {said}")),
        }
    }

    fn malformed(&self, key: &str) -> Error {
        let name = &self.name;
        Error::unavailable(format!(
            "bucket `{name}` failed at `{key}`: its answer is malformed"
        ))
        .hint("check that `vault.endpoint` is the address of a service that speaks S3")
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
    if endpoint.contains(['?', '#']) {
        return invalid("endpoint", endpoint, "leave out what follows `?` or `#`");
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
    if settings.access_key_id.is_empty() || settings.secret_access_key.is_empty() {
        return Err(
            Error::invalid("the bucket has no `access_key_id` and secret")
                .hint("set both, for example from the environment with `${VAR}`"),
        );
    }
    Ok(())
}

/// One page of a listing.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    /// Key and size of each object.
    objects: Vec<(String, u64)>,
    /// What the next page is asked for with, if there is one.
    next: Option<String>,
}

impl Page {
    fn parse(body: &[u8]) -> Option<Self> {
        xml(body, "ListBucketResult", |root| {
            let objects = root.children().filter(|it| it.has_tag_name("Contents"));
            let objects = objects.map(|it| {
                let size = field(it, "Size")?.parse().ok()?;
                Some((field(it, "Key")?.to_owned(), size))
            });
            let objects: Option<Vec<_>> = objects.collect();
            let next = match field(root, "IsTruncated") {
                Some("true") => Some(field(root, "NextContinuationToken")?.to_owned()),
                _ => None,
            };
            let objects = objects?;
            Some(Self { objects, next })
        })
    }
}

/// Reads an answer in XML with this root. Its elements have a namespace at some services and none at others.
fn xml<T>(body: &[u8], root: &str, read: impl FnOnce(Node<'_, '_>) -> Option<T>) -> Option<T> {
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: NODES_MAX,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(std::str::from_utf8(body).ok()?, options).ok()?;
    let found = document.root_element();
    (found.tag_name().name() == root)
        .then(|| read(found))
        .flatten()
}

/// The text of a child.
fn field<'a>(of: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let found = of.children().find(|it| it.tag_name().name() == name)?;
    Some(found.text().unwrap_or_default())
}

/// The size of the object in `bytes 0-99/1234`, if the piece begins where it should.
fn size_of(range: Option<&str>, at: u64) -> Option<u64> {
    let (piece, size) = range?.strip_prefix("bytes ")?.split_once('/')?;
    let (from, _) = piece.split_once('-')?;
    (from.parse() == Ok(at)).then(|| size.parse().ok())?
}

/// What an object is, to a server that asks.
const OF_BYTES: (&str, &str) = ("content-type", "application/octet-stream");

/// Collects what is written into parts. What fits in one part is sent as a whole.
struct Parts<'a> {
    bucket: &'a Bucket,
    key: &'a str,
    path: String,
    buffer: Vec<u8>,
    /// The name that the server gave to the upload.
    upload: Option<String>,
    /// What the server calls each part that it has.
    tags: Vec<String>,
}

impl Parts<'_> {
    fn call(&self, call: &Call<'_>) -> Result<Response> {
        self.bucket.call(self.key, call)
    }

    fn begin(&self) -> Result<String> {
        let call = Call {
            method: Method::Post,
            key: &self.path,
            query: &[("uploads", "")],
            headers: &[OF_BYTES],
            ..Call::default()
        };
        let answer = self.call(&call)?;
        let id = xml(&answer.body, "InitiateMultipartUploadResult", |root| {
            field(root, "UploadId").map(str::to_owned)
        });
        id.filter(|it| !it.is_empty())
            .ok_or_else(|| self.bucket.malformed(self.key))
    }

    fn send_part(&mut self) -> Result<()> {
        let upload = match &self.upload {
            Some(upload) => upload.clone(),
            None => self.upload.insert(self.begin()?).clone(),
        };
        let number = (self.tags.len() + 1).to_string();
        let call = Call {
            method: Method::Put,
            key: &self.path,
            query: &[("partNumber", &number), ("uploadId", &upload)],
            body: std::mem::take(&mut self.buffer),
            ..Call::default()
        };
        let answer = self.call(&call)?;
        let tag = answer.header("etag");
        let tag = tag.ok_or_else(|| self.bucket.malformed(self.key))?;
        self.tags.push(tag.to_owned());
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if self.upload.is_none() {
            let whole = std::mem::take(&mut self.buffer);
            return self.bucket.put_whole(self.key, whole);
        }
        if !self.buffer.is_empty() {
            self.send_part()?;
        }
        let parts = self.tags.iter().zip(1..).map(|(tag, number): (_, usize)| {
            let tag = escape::xml(tag);
            format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>")
        });
        let parts: String = parts.collect();
        let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
        let call = Call {
            method: Method::Post,
            key: &self.path,
            query: &[("uploadId", self.upload.as_deref().unwrap_or_default())],
            headers: &[("content-type", "application/xml")],
            body: body.into_bytes(),
            ..Call::default()
        };
        self.call(&call)?;
        self.upload = None;
        Ok(())
    }

    /// Unfinished uploads cost money. If this fails, the bucket's own rule for them applies: there is
    /// already an error to report.
    fn abort(&mut self) {
        if let Some(upload) = self.upload.take() {
            let call = Call {
                method: Method::Delete,
                key: &self.path,
                query: &[("uploadId", &upload)],
                ..Call::default()
            };
            let _ = self.call(&call);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn page(inside: &str) -> Option<Page> {
        let body = format!(
            "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             {inside}</ListBucketResult>"
        );
        Page::parse(body.as_bytes())
    }

    #[test]
    fn a_page_is_read_with_a_namespace_and_escapes() {
        let empty = Page {
            objects: Vec::new(),
            next: None,
        };
        assert_eq!(page("<KeyCount>0</KeyCount>"), Some(empty));
        let listed = page(
            "<IsTruncated>true</IsTruncated><Contents><Key>a&amp;b</Key><Size>7</Size></Contents>\
             <NextContinuationToken>1/x==</NextContinuationToken>",
        );
        let expected = Page {
            objects: vec![("a&b".to_owned(), 7)],
            next: Some("1/x==".to_owned()),
        };
        assert_eq!(listed, Some(expected));
    }

    #[test]
    fn a_page_that_leaves_something_out_is_malformed() {
        for inside in [
            "<Contents><Key>a</Key></Contents>",
            "<Contents><Size>1</Size></Contents>",
            "<Contents><Key>a</Key><Size>-1</Size></Contents>",
            "<IsTruncated>true</IsTruncated>",
            "<Contents>",
            "&undeclared;",
        ] {
            assert_eq!(page(inside), None, "{inside}");
        }
        let dtd = "<!DOCTYPE a [<!ENTITY b \"c\">]><ListBucketResult/>";
        for body in ["", "<html></html>", dtd, "\u{0}"] {
            assert!(Page::parse(body.as_bytes()).is_none(), "{body}");
        }
        let many = "<a/>".repeat(NODES_MAX as usize);
        assert_eq!(page(&many), None);
    }

    #[test]
    fn a_piece_must_begin_where_it_was_asked_to() {
        assert_eq!(size_of(Some("bytes 5-9/10"), 5), Some(10));
        for range in [
            None,
            Some("bytes 4-9/10"),
            Some("bytes 5-9/*"),
            Some("bytes */10"),
            Some("5-9/10"),
        ] {
            assert_eq!(size_of(range, 5), None, "{range:?}");
        }
    }
}
