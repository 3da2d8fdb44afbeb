//! Fetches a page through `egress` and reads it.

use super::{WebFault, WebFaultKind, WebResult, address, pdf};
use crate::Koi;
use crate::inert::{inert, instructs, line};
use kenning_core::{Code, Error};
use kenning_egress::{Checked, Egress, Limits, Request, Response};
use kenning_entities::page::{self, Metadata, Page};
use std::time::Duration;

/// The largest page …
const PAGE_BYTES_MAX: usize = 5 * 1024 * 1024;
/// … and the largest PDF file.
const BODY_BYTES_MAX: u64 = 20 * 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(30);
/// A page of plain text has no other bounds.
const SUMMARY_CHARS_MAX: usize = 100_000;
/// What a page says of itself is cut after so many characters.
const FIELD_CHARS_MAX: usize = 1_000;
const KEYWORDS_MAX: usize = 50;
/// Longer headers are not kept.
const VALIDATOR_BYTES_MAX: usize = 1_024;

/// What is read, by how content types begin.
const TYPES: [&str; 3] = ["text/", "application/xhtml+xml", PDF];
const PDF: &str = "application/pdf";

/// The `User-Agent` header.
const USER_AGENT: &str = concat!("Kenning/", env!("CARGO_PKG_VERSION"));

/// By what a server knows which version of a page is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Validators {
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
}

/// A page that was fetched.
pub(super) struct Visit {
    pub(super) page: Page,
    pub(super) validators: Validators,
    /// The address that was connected.
    pub(super) ip: String,
    /// The addresses that led elsewhere.
    pub(super) redirects: Vec<String>,
    pub(super) flags: Vec<String>,
    /// How its text was made: `html` or `text`.
    pub(super) rendered_with: &'static str,
}

/// What came of asking.
pub(super) enum Visited {
    /// It is as it was.
    Same,
    Page(Box<Visit>),
}

impl Koi {
    /// The egress client for pages.
    pub(super) fn web_egress(&self) -> Result<&Egress, Error> {
        if let Some(egress) = self.web.egress.get() {
            return Ok(egress);
        }
        let mut policy = self.web.options.policy();
        policy.grants.clone_from(&self.web_settings()?.grants);
        policy.limits = Limits {
            total_timeout: TIMEOUT,
            body_bytes_max: BODY_BYTES_MAX,
            ..Limits::default()
        };
        Ok(self.web.egress.get_or_init(|| Egress::new(policy)))
    }

    /// Checks a URL without fetching it.
    pub(super) fn judge_address(&self, url: &str) -> WebResult<Checked> {
        address::judge(self.web_egress()?, url)
    }

    /// Fetches a page; `known` is what is known of it, if it may be the same.
    pub(super) fn visit(&self, url: &str, known: &Validators) -> WebResult<Visited> {
        let egress = self.web_egress()?;
        let mut headers = vec![
            ("User-Agent".to_owned(), USER_AGENT.to_owned()),
            (
                "Accept".to_owned(),
                "text/html,application/xhtml+xml,application/pdf;q=0.9,text/*;q=0.8".to_owned(),
            ),
        ];
        for (name, value) in [
            ("If-None-Match", &known.etag),
            ("If-Modified-Since", &known.last_modified),
        ] {
            headers.extend(value.clone().map(|it| (name.to_owned(), it)));
        }
        let request = Request {
            headers,
            accept_types: Some(TYPES.iter().map(|it| (*it).to_owned()).collect()),
            ..Request::get(url)
        };
        // The first address is judged in the words of the contract; a later one in those of the egress.
        address::judge(egress, url)?;
        let answer = egress.fetch(request).map_err(not_fetched)?;
        match answer.status {
            304 => Ok(Visited::Same),
            200..=299 => Ok(Visited::Page(Box::new(read(url, answer)?))),
            status => Err(failed(
                Error::unavailable("Failed to fetch URL")
                    .hint(format!("it answers with status {status}")),
            )),
        }
    }
}

fn failed(error: Error) -> Box<WebFault> {
    WebFault::new(WebFaultKind::NotFetched, error)
}

fn not_fetched(error: Error) -> Box<WebFault> {
    if error.code == Code::Denied {
        return WebFault::new(WebFaultKind::Refused, error);
    }
    let why = match &error.hint {
        Some(hint) => format!("{}; {hint}", error.message),
        None => error.message.clone(),
    };
    failed(
        Error::unavailable("Failed to fetch URL")
            .hint(why)
            .because(error),
    )
}

/// What a body says, by its content type, and as what it was read.
fn read_body(answer: &mut Response) -> WebResult<(Page, &'static str)> {
    let content_type = answer.header("content-type").map(str::to_owned);
    let kind = content_type.as_deref().unwrap_or_default().trim_start();
    let kind = kind.to_ascii_lowercase();
    if kind.starts_with(PDF) {
        let page = pdf::read(std::mem::take(&mut answer.body)).map_err(not_fetched)?;
        return Ok((page, "pdf"));
    }
    if answer.body.len() > PAGE_BYTES_MAX {
        let error = format!("the page has over {PAGE_BYTES_MAX} bytes");
        return Err(not_fetched(Error::too_large(error)));
    }
    let text = page::decode(&answer.body, content_type.as_deref());
    let is_markup = ["text/html", "application/xhtml"]
        .iter()
        .any(|it| kind.starts_with(it));
    Ok(if is_markup {
        (page::read(&text), "html")
    } else {
        (plain(text), "text")
    })
}

fn read(url: &str, mut answer: Response) -> WebResult<Visit> {
    let (read, rendered_with) = read_body(&mut answer)?;
    let is_truncated = read.is_truncated || read.summary.chars().count() >= SUMMARY_CHARS_MAX;
    let (page, has_hidden) = made_inert(read);
    let mut flags = Vec::new();
    let mut flag = |is_so: bool, name: &str| {
        if is_so {
            flags.push(name.to_owned());
        }
    };
    let host = |url: &str| kenning_egress::host_of(url).map(|it| it.0).ok();
    flag(!answer.final_url.starts_with("https:"), "http_not_https");
    flag(
        host(url) != host(&answer.final_url),
        "redirected_to_other_host",
    );
    flag(is_truncated, "truncated");
    flag(has_hidden, "hidden_characters");
    let said = page.metadata.description.as_deref().unwrap_or_default();
    flag(
        instructs(&page.text) || instructs(said),
        "instructions_in_text",
    );
    flag(
        kenning_egress::is_special(answer.address.ip()),
        "granted_address",
    );
    let header = |name: &str| {
        let value = answer.header(name).map(str::to_owned);
        value.filter(|it| it.len() <= VALIDATOR_BYTES_MAX)
    };
    Ok(Visit {
        validators: Validators {
            etag: header("etag"),
            last_modified: header("last-modified"),
        },
        ip: answer.address.ip().to_string(),
        redirects: answer.redirects,
        rendered_with,
        page,
        flags,
    })
}

fn plain(text: String) -> Page {
    Page {
        metadata: Metadata::default(),
        summary: text.chars().take(SUMMARY_CHARS_MAX).collect(),
        text,
        is_truncated: false,
    }
}

fn made_inert(page: Page) -> (Page, bool) {
    let (text, in_text) = inert(&page.text);
    let (summary, in_summary) = inert(&page.summary);
    let it = page.metadata;
    let field = |text: Option<String>| {
        let text = text.map(|it| line(&it, FIELD_CHARS_MAX));
        text.filter(|it| !it.is_empty())
    };
    let keywords = it.keywords.iter().take(KEYWORDS_MAX);
    let metadata = Metadata {
        title: field(it.title),
        description: field(it.description),
        keywords: keywords.map(|it| line(it, FIELD_CHARS_MAX)).collect(),
        author: field(it.author),
        published: field(it.published),
        canonical: field(it.canonical),
        language: field(it.language),
        image: field(it.image),
        site_name: field(it.site_name),
    };
    let page = Page {
        metadata,
        text,
        summary,
        is_truncated: page.is_truncated,
    };
    (page, in_text || in_summary)
}
