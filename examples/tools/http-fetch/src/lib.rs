//! Fetches a page. Which hosts it may ask is the manifest's matter and the host's to enforce: there is
//! no check here, only a clear word when it was refused.

mod url;
#[cfg(target_arch = "wasm32")]
mod wasi;

use kami_guest::{kami_tool, parse_input, to_output};
use serde::{Deserialize, Serialize};
use url::Url;
#[cfg(target_arch = "wasm32")]
use wasi::get;

kami_tool! {
    name: "dev.example.http-fetch",
    version: env!("CARGO_PKG_VERSION"),
    description: "Fetches a page by HTTP GET and answers with its status, type and text",
    handler: fetch,
}

const BODY_BYTES_MAX: usize = 64 * 1024;

#[derive(Deserialize)]
struct Input {
    url: String,
    #[serde(default = "body_bytes_max")]
    max_bytes: usize,
}

fn body_bytes_max() -> usize {
    BODY_BYTES_MAX
}

#[derive(Debug, Serialize, PartialEq)]
struct Output {
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// Where a redirect leads. It is not followed: whoever called decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    body: String,
    /// Whether there was more of it.
    truncated: bool,
}

/// What came back, before it is cut and read as text.
struct Response {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    /// At most one byte more than was asked for.
    body: Vec<u8>,
}

/// Why there is no response.
#[cfg_attr(
    not(any(target_arch = "wasm32", test)),
    expect(dead_code, reason = "a native build asks nobody")
)]
enum Failure {
    /// The host does not let this tool ask there.
    Denied,
    Other(String),
}

fn fetch(input: &str) -> Result<String, String> {
    let input: Input = parse_input(input)?;
    if input.max_bytes > BODY_BYTES_MAX {
        let given = input.max_bytes;
        return Err(format!(
            "`max_bytes` is {given}: ask for {BODY_BYTES_MAX} at most"
        ));
    }
    let url = Url::parse(&input.url)?;
    let response = get(&url, input.max_bytes + 1).map_err(|failure| told(&url, failure))?;
    to_output(&output(response, input.max_bytes))
}

fn told(url: &Url, failure: Failure) -> String {
    match failure {
        Failure::Denied => format!(
            "the host refused a request to `{}`: add it to `net_allow_list` in tool.toml and install \
             the tool again",
            url.host()
        ),
        Failure::Other(why) => format!("cannot fetch `{url}`: {why}"),
    }
}

fn output(response: Response, bytes_max: usize) -> Output {
    let header = |name: &str| {
        let mut headers = response.headers.iter();
        let found = headers.find(|(it, _)| it.eq_ignore_ascii_case(name));
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    };
    let kept = response.body.len().min(bytes_max);
    Output {
        status: response.status,
        content_type: header("content-type"),
        location: header("location"),
        body: text(&response.body[..kept]),
        truncated: response.body.len() > kept,
    }
}

/// A character that the cut divided is left out; what is no text is shown as such.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(err) if err.error_len().is_none() => {
            String::from_utf8_lossy(&bytes[..err.valid_up_to()]).into_owned()
        }
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// A native build is for tests, and those reach nothing.
#[cfg(not(target_arch = "wasm32"))]
fn get(_: &Url, _: usize) -> Result<Response, Failure> {
    Err(Failure::Other("a native build has no network".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(body: &[u8]) -> Response {
        let headers = vec![("Content-Type".to_owned(), b"text/plain".to_vec())];
        Response {
            status: 200,
            headers,
            body: body.to_vec(),
        }
    }

    #[test]
    fn a_response_is_cut_between_characters() {
        for (body, bytes_max, text, truncated) in [
            (&b"hello"[..], 5, "hello", false),
            (b"hello", 4, "hell", true),
            ("aü".as_bytes(), 2, "a", true),
            (b"a\xffb", 3, "a\u{fffd}b", false),
            (b"", 0, "", false),
        ] {
            let output = output(response(body), bytes_max);
            assert_eq!(
                (output.body.as_str(), output.truncated),
                (text, truncated),
                "{body:?}"
            );
        }
    }

    #[test]
    fn a_response_becomes_json_without_what_is_not_there() {
        let json = to_output(&output(response(b"hi"), 10)).unwrap();
        assert_eq!(
            json,
            r#"{"status":200,"content_type":"text/plain","body":"hi","truncated":false}"#
        );
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused_before_asking() {
        for (input, why) in [
            (
                "{}",
                "invalid input: missing field `url` at line 1 column 2",
            ),
            (
                r#"{"url": "ftp://x"}"#,
                "`url` is `ftp://x`: begin it with `https://` or `http://`",
            ),
            (
                r#"{"url": "https://x", "max_bytes": 70000}"#,
                "`max_bytes` is 70000: ask for 65536 at most",
            ),
        ] {
            assert_eq!(fetch(input), Err(why.to_owned()));
        }
    }

    #[test]
    fn a_refusal_names_the_host_and_the_remedy() {
        let url = Url::parse("https://example.com:8443/a?b").unwrap();
        assert_eq!(
            told(&url, Failure::Denied),
            "the host refused a request to `example.com`: add it to `net_allow_list` in tool.toml \
             and install the tool again"
        );
        let failed = told(&url, Failure::Other("no route".to_owned()));
        assert_eq!(
            failed,
            "cannot fetch `https://example.com:8443/a?b`: no route"
        );
    }
}
