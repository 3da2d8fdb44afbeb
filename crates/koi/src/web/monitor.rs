//! Pages that are looked at again and again.
//!
//! A row says when each is due. Whoever finds one due takes a lease in the store first, so that of several
//! processes one asks the page, and asks only whether it is another than the one that is known. A page that
//! does not answer is left alone for longer and longer. What a changed page says takes the place of what it
//! said before.

use super::ingest::{CutText, put_document};
use super::pages::{self, Status, StoredPage, StoredText};
use super::preview::{PreviewRequest, same_without_asking};
use super::visit::{Validators, Visit, Visited};
use super::{WebFault, WebResult, address};
use crate::Koi;
use crate::inert::line;
use kenning_audit::Tx;
use kenning_core::{Error, Result, Space};
use kenning_kernel::{Bucket, Caller, Lease, RowCodec, Scope, lease, timestamp, worker};
use kenning_store::ReadTx;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The pages that are monitored, by the hash of their address.
pub(super) const MONITORED: Bucket<Row> = Bucket::new("web/monitored");
/// How often pages were looked at, and when last.
const COUNTS: Bucket<Scans> = Bucket::new("web/counts");
const SCANS: &str = "scans";
/// No visit outlasts a lease.
const LEASE: Duration = Duration::from_secs(90);
/// A page that was checked this recently is not fetched again.
const FRESH_MS: u64 = 60_000;
/// After a first failure.
const BACK_OFF: Duration = Duration::from_secs(60);
const BACK_OFF_MAX: Duration = Duration::from_secs(86_400);
const TITLE_CHARS_MAX: usize = 300;
/// As the original says it.
const OFF: &str = "Web sensor not enabled";

/// A page that is monitored, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    url: String,
    title: String,
    next_ms: u64,
    last_checked_ms: Option<u64>,
    /// Visits in a row that came to nothing.
    n_failures: u32,
    /// Why the last one failed.
    fault: Option<String>,
    lease: Option<Lease>,
}

/// The result of monitoring a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorAdded {
    /// It is known now, and monitored.
    Added {
        /// Its number.
        id: u64,
        /// How many words it has.
        words: usize,
    },
    /// It was known, and is monitored now.
    Upgraded {
        /// Its number.
        id: u64,
    },
    /// It was monitored before.
    Already {
        /// Its number.
        id: u64,
    },
}

/// A page that is monitored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitoredPage {
    /// Its address.
    pub url: String,
    /// What it is called.
    pub title: String,
    /// When it was last asked.
    pub last_checked: Option<String>,
    /// SHA-256 of what it said.
    pub content_hash: String,
    /// When it is asked next.
    pub next_check: String,
    /// Why the last visit came to nothing.
    pub fault: Option<String>,
}

/// The state of the monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MonitorStatus {
    /// The operator switched it off.
    Off(&'static str),
    /// It is on.
    On {
        /// Whether this process looks at pages.
        running: bool,
        /// Seconds between two looks.
        scan_interval_seconds: u64,
        /// When pages were last looked at.
        last_scan: Option<String>,
        /// How often they were.
        scan_count: u64,
        /// The pages.
        sources: Vec<MonitoredPage>,
    },
}

/// The result of checking all pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScannedPages {
    /// How many were fetched.
    pub checked: usize,
    /// Those that say something else than before.
    pub changed: Vec<String>,
    /// Those that gave no page, and why.
    pub failed: Vec<(String, String)>,
}

/// The result of one check.
enum Look {
    Same,
    Changed,
    Failed(String),
}

impl Koi {
    /// How the monitor is.
    pub fn monitor_status(&self, caller: &Caller) -> Result<MonitorStatus> {
        caller.principal.require(Scope::Read)?;
        let settings = self.web_settings()?;
        if !settings.is_monitoring {
            return Ok(MonitorStatus::Off(OFF));
        }
        self.kernel.log().read(&caller.principal.space, |tx| {
            let mut sources = Vec::new();
            for row in rows(tx)? {
                let page = pages::page(tx, &row.url)?;
                sources.push(MonitoredPage {
                    url: row.url,
                    title: row.title,
                    last_checked: row.last_checked_ms.map(timestamp),
                    content_hash: page.map(|it| it.content_hash).unwrap_or_default(),
                    next_check: timestamp(row.next_ms),
                    fault: row.fault,
                });
            }
            sources.sort_by(|a, b| a.url.cmp(&b.url));
            let Scans {
                n: scan_count,
                last_ms,
            } = scans(tx)?;
            Ok(MonitorStatus::On {
                running: self.web.n_watching.load(Ordering::Relaxed) > 0,
                scan_interval_seconds: settings.interval.as_secs(),
                last_scan: last_ms.map(timestamp),
                scan_count,
                sources,
            })
        })
    }

    /// Has a page monitored. It is asked at once, unless that was done a moment ago.
    pub fn monitor_page(&self, caller: &Caller, url: &str, title: &str) -> WebResult<MonitorAdded> {
        caller.principal.require(Scope::Fetch)?;
        self.refuse_if_unmonitored()?;
        let url = address::normalize_url(url)?;
        let title = line(title, TITLE_CHARS_MAX);
        let space = &caller.principal.space;
        let (known, is_monitored) = self.kernel.log().read(space, |tx| {
            let is_monitored = MONITORED.has(tx, &pages::key_of(&url))?;
            Ok((pages::page(tx, &url)?, is_monitored))
        })?;
        let words = match &known {
            Some(page) if is_monitored => return Ok(MonitorAdded::Already { id: page.n }),
            Some(_) => None,
            None => {
                let Visited::Page(visit) = self.visit(&url, &Validators::default())? else {
                    return Err(same_without_asking());
                };
                let request = PreviewRequest {
                    submitted_via: Some("monitor".to_owned()),
                    ..PreviewRequest::default()
                };
                Some(self.keep_visit(space, &url, &request, visit)?.n_words)
            }
        };
        let now_ms = self.kernel.log().clock().now_ms();
        let later_ms = now_ms.saturating_add(self.monitor_interval_ms()?);
        let asked = url.clone();
        let (added, is_due) = self.kernel.log().write(space, move |tx| {
            let key = pages::key_of(&url);
            let page = pages::page(&**tx, &url)?;
            let page = page.ok_or_else(|| Error::internal("a page that was kept is gone"))?;
            if MONITORED.has(&**tx, &key)? {
                return Ok((MonitorAdded::Already { id: page.n }, false));
            }
            let is_due = page.seen_ms.saturating_add(FRESH_MS) < now_ms;
            let shown = match title.is_empty() {
                true => page.shown_title().to_owned(),
                false => title,
            };
            let row = Row {
                url: url.clone(),
                title: shown,
                next_ms: if is_due { now_ms } else { later_ms },
                last_checked_ms: (page.seen_ms > 0).then_some(page.seen_ms),
                n_failures: 0,
                fault: None,
                lease: None,
            };
            MONITORED.set(tx, &key, &row)?;
            let data = json!({ "url": url, "rid": page.rid, "title": row.title });
            tx.record("WebMonitorAdded", data)?;
            let added = match words {
                Some(words) => MonitorAdded::Added { id: page.n, words },
                None => MonitorAdded::Upgraded { id: page.n },
            };
            Ok((added, is_due))
        })?;
        if is_due {
            // What comes of it stands in the status: a page that does not answer now is asked again.
            let mut scanned = ScannedPages::default();
            let holder = self.page_holder();
            self.look_at_page(space, &asked, &holder, true, &mut scanned)?;
            if scanned.checked > 0 {
                self.count_page_scan(space)?;
            }
        }
        Ok(added)
    }

    /// Has a page monitored no longer. False if it was not.
    pub fn forget_monitored(&self, caller: &Caller, url: &str) -> WebResult<bool> {
        caller.principal.require(Scope::Write)?;
        self.refuse_if_unmonitored()?;
        let url = address::normalize_url(url)?;
        let removed = self
            .kernel
            .log()
            .write(&caller.principal.space, move |tx| {
                let key = pages::key_of(&url);
                if !MONITORED.has(&**tx, &key)? {
                    return Ok(false);
                }
                MONITORED.unset(tx, &key)?;
                tx.record("WebMonitorRemoved", json!({ "url": url }))?;
                Ok(true)
            })?;
        Ok(removed)
    }

    /// Looks at every monitored page now, whether it is due or not.
    pub fn scan_monitored(&self, caller: &Caller) -> WebResult<ScannedPages> {
        caller.principal.require(Scope::Fetch)?;
        self.refuse_if_unmonitored()?;
        let space = &caller.principal.space;
        let rows = self.kernel.log().read(space, |tx| rows(tx))?;
        let holder = self.page_holder();
        let mut scanned = ScannedPages::default();
        let total = rows.len() as f64;
        for (n, row) in rows.iter().enumerate() {
            caller.check()?;
            caller.progress(n as f64, Some(total), "looking at monitored pages");
            self.look_at_page(space, &row.url, &holder, true, &mut scanned)?;
        }
        self.count_page_scan(space)?;
        Ok(scanned)
    }

    /// Looks at the pages that are due. `between` is asked before each, and ends it by saying no.
    pub fn check_due_pages(
        &self,
        space: &Space,
        mut between: impl FnMut() -> bool,
    ) -> Result<ScannedPages> {
        let mut scanned = ScannedPages::default();
        if self.kernel.is_read_only() || !self.web_settings()?.is_monitoring {
            return Ok(scanned);
        }
        let now_ms = self.kernel.log().clock().now_ms();
        let rows = self.kernel.log().read(space, |tx| rows(tx))?;
        let holder = self.page_holder();
        for row in rows.iter().filter(|it| it.next_ms <= now_ms) {
            if !between() {
                break;
            }
            self.look_at_page(space, &row.url, &holder, false, &mut scanned)?;
        }
        if scanned.checked > 0 {
            self.count_page_scan(space)?;
        }
        Ok(scanned)
    }

    fn look_at_page(
        &self,
        space: &Space,
        url: &str,
        holder: &str,
        is_forced: bool,
        scanned: &mut ScannedPages,
    ) -> Result<()> {
        let Some(page) = self.lease_page(space, url, holder, is_forced)? else {
            return Ok(());
        };
        let visited = self.visit(url, &page.validators());
        scanned.checked += 1;
        match self.settle_look(space, url, holder, visited)? {
            None | Some(Look::Same) => {}
            Some(Look::Changed) => {
                scanned.changed.push(url.to_owned());
                // The text is kept; what it states follows with the next change if this fails.
                if let Err(error) = self.restate_page(space, url) {
                    tracing::warn!("what a changed page states was not read again: {error}");
                }
            }
            Some(Look::Failed(why)) => scanned.failed.push((url.to_owned(), why)),
        }
        Ok(())
    }

    /// The page, if it is ours to look at.
    fn lease_page(
        &self,
        space: &Space,
        url: &str,
        holder: &str,
        is_forced: bool,
    ) -> Result<Option<StoredPage>> {
        let now_ms = self.kernel.log().clock().now_ms();
        let (url, holder) = (url.to_owned(), holder.to_owned());
        self.kernel.log().write(space, move |tx| {
            let Some(mut row) = row(&**tx, &url)? else {
                return Ok(None);
            };
            let is_held = row.lease.as_ref().is_some_and(|it| it.is_running(now_ms));
            if is_held || !(is_forced || row.next_ms <= now_ms) {
                return Ok(None);
            }
            row.lease = Some(Lease::of(&holder, now_ms, LEASE));
            MONITORED.set(tx, &pages::key_of(&url), &row)?;
            pages::page(&**tx, &url)
        })
    }

    /// The passages of a page that has a document, as the visit leaves it: cut here, so that no other write
    /// waits for it.
    fn cut_ahead(
        &self,
        space: &Space,
        url: &str,
        visit: &Visit,
        now_ms: u64,
    ) -> Result<Option<CutText>> {
        let page = self
            .kernel
            .log()
            .read(space, |tx| pages::page(tx, url))?
            .filter(|it| it.status == Status::Ingested);
        Ok(page.map(|mut page| {
            take_over(&mut page, visit, now_ms);
            CutText::of(&page, &StoredText::from(visit))
        }))
    }

    /// Writes down what a visit found, if the lease is still ours.
    fn settle_look(
        &self,
        space: &Space,
        url: &str,
        holder: &str,
        visited: WebResult<Visited>,
    ) -> Result<Option<Look>> {
        let now_ms = self.kernel.log().clock().now_ms();
        let interval_ms = self.monitor_interval_ms()?;
        let mut bytes = [0; 1];
        self.kernel.log().random().fill(&mut bytes);
        let jitter = 0.5 + f64::from(bytes[0]) / 512.0;
        let (url, holder) = (url.to_owned(), holder.to_owned());
        let cut = match &visited {
            Ok(Visited::Page(visit)) => self.cut_ahead(space, &url, visit, now_ms)?,
            _ => None,
        };
        self.kernel.log().write_long(space, move |tx| {
            let Some(mut row) = row(&**tx, &url)? else {
                return Ok(None);
            };
            if row.lease.as_ref().is_none_or(|it| !it.is_of(&holder)) {
                return Ok(None);
            }
            row.lease = None;
            row.last_checked_ms = Some(now_ms);
            let look = match visited {
                Ok(Visited::Same) => Look::Same,
                Ok(Visited::Page(visit)) => adopt(tx, &url, &visit, now_ms, cut)?,
                Err(fault) => Look::Failed(why(&fault)),
            };
            match &look {
                Look::Failed(why) => {
                    row.n_failures = row.n_failures.saturating_add(1);
                    row.fault = Some(why.clone());
                    row.next_ms = now_ms + back_off(interval_ms, row.n_failures, jitter);
                }
                Look::Same | Look::Changed => {
                    row.n_failures = 0;
                    row.fault = None;
                    row.next_ms = now_ms.saturating_add(interval_ms);
                }
            }
            MONITORED.set(tx, &pages::key_of(&url), &row)?;
            Ok(Some(look))
        })
    }

    fn count_page_scan(&self, space: &Space) -> Result<()> {
        let now_ms = self.kernel.log().clock().now_ms();
        self.kernel.log().write(space, move |tx| {
            let n = scans(&**tx)?.n + 1;
            let last_ms = Some(now_ms);
            COUNTS.set(tx, SCANS, &Scans { n, last_ms })
        })
    }

    fn monitor_interval_ms(&self) -> Result<u64> {
        let interval = self.web_settings()?.interval;
        Ok(u64::try_from(interval.as_millis()).unwrap_or(u64::MAX))
    }

    fn refuse_if_unmonitored(&self) -> WebResult<()> {
        if self.web_settings()?.is_monitoring {
            return Ok(());
        }
        Err(WebFault::off(OFF, "set WEB_SENSOR_ENABLED=true"))
    }

    /// A name that nobody else has.
    fn page_holder(&self) -> String {
        lease::holder(self.kernel.log().random())
    }
}

fn row(tx: &dyn ReadTx, url: &str) -> Result<Option<Row>> {
    MONITORED.get(tx, &pages::key_of(url))
}

fn rows(tx: &dyn ReadTx) -> Result<Vec<Row>> {
    let rows = MONITORED.list(tx)?.into_iter();
    Ok(rows.map(|it| it.1).collect())
}

/// How often pages were looked at, and when last.
#[derive(Clone, Copy, Debug, Default)]
struct Scans {
    n: u64,
    last_ms: Option<u64>,
}

impl RowCodec for Scans {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        let last_ms = self.last_ms.unwrap_or(0);
        Ok(format!("{} {last_ms}", self.n).into_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (n, last_ms) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
        Some(Self {
            n: n.parse().ok()?,
            last_ms: last_ms.parse().ok().filter(|it| *it > 0),
        })
    }
}

fn scans(tx: &dyn ReadTx) -> Result<Scans> {
    Ok(COUNTS.get_readable(tx, SCANS)?.unwrap_or_default())
}

/// Takes over what a visit found; a page without a title of its own keeps the one that it had.
fn take_over(page: &mut StoredPage, visit: &Visit, now_ms: u64) {
    let title = page.title.take();
    page.adopt(visit, now_ms);
    page.title = page.metadata.title.clone().or(title);
}

/// Keeps what a page says now. Its document says it too, if it has one.
fn adopt(
    tx: &mut Tx<'_>,
    url: &str,
    visit: &Visit,
    now_ms: u64,
    cut: Option<CutText>,
) -> Result<Look> {
    let Some(mut page) = pages::page(&**tx, url)? else {
        return Ok(Look::Same);
    };
    let before = page.content_hash.clone();
    let (known, text) = (pages::text(&**tx, url)?, StoredText::from(visit));
    take_over(&mut page, visit, now_ms);
    let is_changed = page.content_hash != before || known.text != text.text;
    pages::put_page(tx, &page)?;
    if !is_changed {
        return Ok(Look::Same);
    }
    pages::put_text(tx, url, &text)?;
    let mut document = None;
    if page.status == Status::Ingested {
        let passages = CutText::passages_for(cut, &page, &text);
        put_document(tx, &page, &text, &passages)?;
        document = Some(page.document_rid());
    }
    let data = json!({
        "url": page.url, "rid": page.rid, "documentRid": document, "before": before,
        "after": page.content_hash, "source": "web",
    });
    tx.record("WebPageChanged", data)?;
    Ok(Look::Changed)
}

fn why(fault: &WebFault) -> String {
    match &fault.error.hint {
        Some(hint) => format!("{}: {hint}", fault.error.message),
        None => fault.error.message.clone(),
    }
}

/// How long a page is left alone that did not answer so often.
fn back_off(interval_ms: u64, n_failures: u32, jitter: f64) -> u64 {
    let first = BACK_OFF.min(Duration::from_millis(interval_ms));
    let longest = worker::back_off(first, BACK_OFF_MAX, n_failures);
    (longest.as_millis() as f64 * jitter) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_is_left_alone_for_longer_up_to_a_day() {
        for (interval_s, n, expected_s) in [
            (86_400, 1, 60),
            (86_400, 2, 120),
            (86_400, 11, 61_440),
            (86_400, 12, 86_400),
            (86_400, u32::MAX, 86_400),
            (10, 1, 10),
            (10, 3, 40),
        ] {
            let ms = back_off(interval_s * 1_000, n, 1.0);
            assert_eq!(ms, expected_s * 1_000, "{interval_s} {n}");
        }
        assert_eq!(back_off(86_400_000, 1, 0.5), 30_000);
    }
}
