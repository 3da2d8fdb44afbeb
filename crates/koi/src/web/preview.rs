//! Previews of pages.

use super::ingest::{CutText, put_document};
use super::matching::MatchedEntity;
use super::pages::{self, PageEvaluation, PageMetadata, Status, StoredPage, StoredText};
use super::settings::WebSettings;
use super::visit::{Validators, Visit, Visited};
use super::{WebFault, WebFaultKind, WebResult, address};
use crate::Koi;
use kenning_audit::Tx;
use kenning_core::{Code, Error, Result, Space};
use kenning_entities::names::authority;
use kenning_kernel::{Bucket, Caller, Scope, Text};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// At most this many characters of the summary are shown.
const SHOWN_CHARS: usize = 2_000;
/// At most this many characters of the submitter's name are kept.
const NAME_CHARS_MAX: usize = 200;
/// At most this many characters of the reasoning are kept.
const REASONING_CHARS_MAX: usize = 2_000;
const TAGS_MAX: usize = 100;
const HOUR_MS: u64 = 3_600_000;
/// Who previewed pages in the last hour.
const ASKED: Bucket<Text> = Bucket::new("web/asked");

/// What is to be looked at.
#[derive(Clone, Debug, Default)]
pub struct PreviewRequest {
    /// Its address.
    pub url: String,
    /// Who shared it.
    pub submitted_by: Option<String>,
    /// Where it was shared.
    pub submitted_via: Option<String>,
}

/// What was found out about where a page is from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSafety {
    /// The address that was connected.
    pub checked_ip: String,
    /// The URLs that led elsewhere, in order.
    pub redirects: Vec<String>,
    /// What a careful reader should know.
    pub flags: Vec<String>,
}

/// What a page shows at first sight.
#[derive(Clone, Debug)]
pub struct PagePreview {
    /// Its address.
    pub url: String,
    /// What it is called.
    pub rid: String,
    /// Host and port.
    pub domain: String,
    /// Its first characters.
    pub content_summary: String,
    /// SHA-256 of all of it.
    pub content_hash: String,
    /// How many words it has.
    pub word_count: usize,
    /// What it says of itself.
    pub metadata: PageMetadata,
    /// Entities of the graph that it names, the longest name first.
    pub matching_entities: Vec<MatchedEntity>,
    /// Where it is from.
    pub safety: PageSafety,
    /// How its text was made: `html` or `text`.
    pub rendered_with: &'static str,
    /// What somebody thought of it before.
    pub evaluation: Option<PageEvaluation>,
}

/// The result of a preview.
#[derive(Clone, Debug)]
pub enum Previewed {
    /// The page.
    Page(Box<PagePreview>),
    /// It is in the graph already.
    Ingested {
        /// Its number.
        submission_id: u64,
        /// Its title.
        title: Option<String>,
        /// What it is called.
        rid: String,
    },
}

/// A page that was judged.
#[derive(Clone, Debug)]
pub struct EvaluatedPage {
    /// Its address.
    pub url: String,
    /// What may be done with it now.
    pub status: &'static str,
    /// The judgment, as it is kept.
    pub evaluation: PageEvaluation,
}

impl Koi {
    /// Fetches a page and shows it. Nothing of it comes into the graph.
    pub fn preview_page(&self, caller: &Caller, request: &PreviewRequest) -> WebResult<Previewed> {
        caller.principal.require(Scope::Fetch)?;
        let url = address::normalize_url(&request.url)?;
        let settings = self.web_settings()?;
        let space = &caller.principal.space;
        let known = self.kernel.log().read(space, |tx| pages::page(tx, &url))?;
        if let Some(page) = known.filter(|it| it.status == Status::Ingested) {
            return Ok(already(page));
        }
        let checked = self.judge_address(&url)?;
        if !checked.granted() {
            self.count_preview(space, settings, request.submitted_by.as_deref())?;
        }
        let Visited::Page(visit) = self.visit(&url, &Validators::default())? else {
            return Err(same_without_asking());
        };
        caller.check()?;
        let text = StoredText::from(&*visit);
        let rendered_with = visit.rendered_with;
        let page = self.keep_visit(space, &url, request, visit)?;
        if page.status == Status::Ingested {
            return Ok(already(page));
        }
        self.follow_entities(caller)?;
        let matcher = self
            .kernel
            .log()
            .read(space, |tx| self.matcher(space, tx))?;
        Ok(Previewed::Page(Box::new(PagePreview {
            domain: authority(&page.url).to_owned(),
            url: page.url,
            rid: page.rid,
            content_summary: text.summary.chars().take(SHOWN_CHARS).collect(),
            content_hash: page.content_hash,
            word_count: page.n_words,
            metadata: page.metadata,
            matching_entities: matcher.matches(&text),
            safety: page.safety,
            rendered_with,
            evaluation: page.evaluation,
        })))
    }

    /// Keeps what somebody thinks of a page, and whether it may be ingested. The note and the document of a
    /// page say it too; those of one that was ingested before are made anew, but for the note.
    pub fn evaluate_page(
        &self,
        caller: &Caller,
        url: &str,
        evaluation: PageEvaluation,
    ) -> WebResult<EvaluatedPage> {
        caller.principal.require(Scope::Write)?;
        let url = address::normalize_url(url)?;
        let evaluation = checked(evaluation)?;
        let (asked, kept) = (url.clone(), evaluation.clone());
        let cut = self.kernel.log().read(&caller.principal.space, |tx| {
            let page = pages::page(tx, &url)?.filter(|it| it.status == Status::Ingested);
            page.map(|it| Ok((it, pages::text(tx, &url)?))).transpose()
        })?;
        let cut = cut.map(|(page, text)| CutText::of(&page, &text));
        let status = self.kernel.log().write_long(&caller.principal.space, move |tx| {
            let Some(mut page) = pages::page(&**tx, &asked)? else {
                return Ok(None);
            };
            if page.status != Status::Ingested {
                page.status = if is_rejection(&kept) {
                    Status::Rejected
                } else {
                    Status::Evaluated
                };
            }
            let data = json!({
                "url": page.url, "rid": page.rid, "status": page.status, "decision": kept.decision,
                "relevanceScore": kept.relevance_score,
                "relevanceReasoning": kept.relevance_reasoning, "tags": kept.bioregional_tags,
            });
            page.evaluation = Some(kept);
            pages::put_page(tx, &page)?;
            if page.status == Status::Ingested {
                let text = pages::text(&**tx, &asked)?;
                let passages = CutText::passages_for(cut, &page, &text);
                put_document(tx, &page, &text, &passages)?;
            }
            tx.record("WebPageEvaluated", data)?;
            Ok(Some(page.status))
        })?;
        let status = status.ok_or_else(|| {
            WebFault::not_found("URL not found. Preview it first with /web/preview.")
        })?;
        Ok(EvaluatedPage {
            url,
            status: status.as_str(),
            evaluation,
        })
    }

    /// Keeps what was fetched, unless the page came into the graph meanwhile.
    pub(super) fn keep_visit(
        &self,
        space: &Space,
        url: &str,
        request: &PreviewRequest,
        visit: Box<Visit>,
    ) -> Result<StoredPage> {
        let now_ms = self.kernel.log().clock().now_ms();
        let url = url.to_owned();
        let named = |it: &String| crate::inert::line(it, NAME_CHARS_MAX);
        let by = request.submitted_by.as_ref().map(named);
        let via = request.submitted_via.as_ref().map_or("api".into(), named);
        self.kernel.log().write(space, move |tx| {
            let mut page = match pages::page(&**tx, &url)? {
                Some(page) if page.status == Status::Ingested => return Ok(page),
                Some(page) => page,
                None => pages::new_page(tx, &url)?,
            };
            page.adopt(&visit, now_ms);
            page.title.clone_from(&page.metadata.title);
            page.submitted_by = by;
            page.submitted_via = via;
            pages::put_page(tx, &page)?;
            pages::put_text(tx, &url, &StoredText::from(&*visit))?;
            pages::prune(tx, &page, now_ms)?;
            let data = json!({
                "url": page.url, "rid": page.rid, "submission": page.n,
                "contentHash": page.content_hash, "submittedBy": page.submitted_by,
                "submittedVia": page.submitted_via,
            });
            tx.record("WebPagePreviewed", data)?;
            Ok(page)
        })
    }

    /// Counts a preview, or refuses one too many. It counts before the page is asked: a page that does not
    /// answer was asked all the same.
    fn count_preview(
        &self,
        space: &Space,
        settings: &WebSettings,
        by: Option<&str>,
    ) -> WebResult<()> {
        let (hourly, each) = (settings.previews_hourly, settings.previews_hourly_each);
        if hourly == 0 && each == 0 {
            return Ok(());
        }
        let now_ms = self.kernel.log().clock().now_ms();
        let by = crate::inert::line(by.unwrap_or_default(), NAME_CHARS_MAX);
        let mut salt = [0; 8];
        self.kernel.log().random().fill(&mut salt);
        let refused = self.kernel.log().write(space, move |tx| {
            let asked = recently(tx, now_ms)?;
            let own = asked.iter().filter(|it| !by.is_empty() && **it == by);
            let is_over = |n: usize, max: u64| max > 0 && n as u64 >= max;
            if is_over(asked.len(), hourly) {
                return Ok(Some(format!("Global rate limit exceeded ({hourly}/hour)")));
            }
            if is_over(own.count(), each) {
                return Ok(Some(format!("Per-user rate limit exceeded ({each}/hour)")));
            }
            let key = format!("{now_ms:016}-{:016x}", u64::from_be_bytes(salt));
            ASKED.set(tx, &key, &by.into())?;
            Ok(None)
        })?;
        match refused {
            None => Ok(()),
            Some(message) => Err(WebFault::new(
                WebFaultKind::Limited,
                Error::new(Code::Limited, message).hint("try again later"),
            )),
        }
    }
}

/// Whether a page is not to be ingested.
fn is_rejection(evaluation: &PageEvaluation) -> bool {
    let decision = evaluation.decision.as_deref().unwrap_or_default();
    decision.to_ascii_lowercase().starts_with("reject")
}

/// A judgment within bounds, in texts that mean nothing but themselves.
fn checked(it: PageEvaluation) -> Result<PageEvaluation> {
    let tags = &it.bioregional_tags;
    if tags.len() > TAGS_MAX {
        let message = format!(
            "`bioregional_tags`: {} are more than {TAGS_MAX}",
            tags.len()
        );
        return Err(Error::too_large(message).hint("give the most telling ones"));
    }
    let said = |text: Option<String>, max: usize| {
        let text = text.map(|it| crate::inert::line(&it, max));
        text.filter(|it| !it.is_empty())
    };
    let tags = tags.iter().map(|it| crate::inert::line(it, NAME_CHARS_MAX));
    Ok(PageEvaluation {
        decision: said(it.decision, NAME_CHARS_MAX),
        relevance_score: it.relevance_score,
        relevance_reasoning: said(it.relevance_reasoning, REASONING_CHARS_MAX),
        bioregional_tags: tags.filter(|it| !it.is_empty()).collect(),
    })
}

/// Who asked within the hour. Older rows go.
fn recently(tx: &mut Tx<'_>, now_ms: u64) -> Result<Vec<String>> {
    let mut recent = Vec::new();
    for (key, by) in ASKED.list_readable(&**tx)? {
        let at = key.split('-').next().and_then(|it| it.parse::<u64>().ok());
        if at.is_some_and(|at| at.saturating_add(HOUR_MS) > now_ms) {
            recent.push(by.0);
        } else {
            ASKED.unset(tx, &key)?;
        }
    }
    Ok(recent)
}

fn already(page: StoredPage) -> Previewed {
    Previewed::Ingested {
        submission_id: page.n,
        title: page.title,
        rid: page.rid,
    }
}

/// A server that says "not modified" to whoever has named no version.
pub(super) fn same_without_asking() -> Box<WebFault> {
    let error = Error::unavailable("Failed to fetch URL")
        .hint("it answers with status 304 although no version was named");
    WebFault::new(WebFaultKind::NotFetched, error)
}
