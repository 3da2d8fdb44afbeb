//! What the store keeps of a page, from the moment somebody first looked at it.
//!
//! One row for each address, and its text beside it, so that whoever lists pages reads no texts.

use super::preview::PageSafety;
use super::visit::{Validators, Visit};
use kenning_audit::Tx;
use kenning_core::{Hash, Result};
use kenning_entities::names::page_rid;
use kenning_entities::page::Metadata;
use kenning_kernel::Bucket;
use kenning_store::ReadTx;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// What is known of each page, by the hash of its address.
const PAGES: Bucket<StoredPage> = Bucket::new("web/pages");
/// What each says, by the same.
const TEXTS: Bucket<StoredText> = Bucket::new("web/texts");
/// How many pages there are.
const COUNTS: Bucket<u64> = Bucket::new("web/counts");

/// The state of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Pending,
    Evaluated,
    Rejected,
    Ingested,
}

impl Status {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Evaluated => "evaluated",
            Self::Rejected => "rejected",
            Self::Ingested => "ingested",
        }
    }
}

/// What a page says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageMetadata {
    /// Its title.
    pub title: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// What it wants to be found by.
    pub keywords: Vec<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// When, in its own words.
    pub published_date: Option<String>,
    /// A picture that stands for it.
    pub og_image: Option<String>,
    /// The site that it is of.
    pub site_name: Option<String>,
}

impl From<Metadata> for PageMetadata {
    fn from(it: Metadata) -> Self {
        Self {
            title: it.title,
            description: it.description,
            keywords: it.keywords,
            author: it.author,
            published_date: it.published,
            og_image: it.image,
            site_name: it.site_name,
        }
    }
}

/// What is known of a page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredPage {
    /// Its number, the first of all pages having 1.
    pub(super) n: u64,
    pub(super) url: String,
    pub(super) rid: String,
    pub(super) status: Status,
    /// What the person who has it monitored calls it, else what it calls itself.
    pub(super) title: Option<String>,
    pub(super) metadata: PageMetadata,
    pub(super) content_hash: String,
    pub(super) n_words: usize,
    pub(super) safety: PageSafety,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(super) submitted_by: Option<String>,
    pub(super) submitted_via: String,
    pub(super) seen_ms: u64,
    /// The note about it, once it is ingested.
    pub(super) note: Option<String>,
    /// What somebody thinks of it.
    #[serde(default)]
    pub(super) evaluation: Option<PageEvaluation>,
}

/// What somebody thinks of a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PageEvaluation {
    /// What is to be done with it, in the words of who said so.
    pub decision: Option<String>,
    /// How relevant it is.
    pub relevance_score: Option<f64>,
    /// The reason for that score.
    pub relevance_reasoning: Option<String>,
    /// What it is about.
    pub bioregional_tags: Vec<String>,
}

impl StoredPage {
    /// What its graph's document is called.
    pub(super) fn document_rid(&self) -> String {
        format!("web:{}", self.rid)
    }

    pub(super) fn validators(&self) -> Validators {
        Validators {
            etag: self.etag.clone(),
            last_modified: self.last_modified.clone(),
        }
    }

    /// What to call it where there is no title: its address without the scheme.
    pub(super) fn shown_title(&self) -> &str {
        let bare = self.url.split_once("://").map_or(&*self.url, |it| it.1);
        let title = self.title.as_deref().map(str::trim);
        title.filter(|it| !it.is_empty()).unwrap_or(bare)
    }

    /// Takes over what a visit found.
    pub(super) fn adopt(&mut self, visit: &Visit, now_ms: u64) {
        let page = &visit.page;
        self.metadata = page.metadata.clone().into();
        self.content_hash = page.content_hash();
        self.n_words = page.n_words();
        self.safety = PageSafety {
            checked_ip: visit.ip.clone(),
            redirects: visit.redirects.clone(),
            flags: visit.flags.clone(),
        };
        self.etag.clone_from(&visit.validators.etag);
        self.last_modified
            .clone_from(&visit.validators.last_modified);
        self.seen_ms = now_ms;
    }
}

/// What a page says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StoredText {
    pub(super) text: String,
    pub(super) summary: String,
}

impl From<&Visit> for StoredText {
    fn from(visit: &Visit) -> Self {
        Self {
            text: visit.page.text.clone(),
            summary: visit.page.summary.clone(),
        }
    }
}

/// What an address is called in the key-value table.
pub(super) fn key_of(url: &str) -> String {
    Hash::of(url.as_bytes()).to_string()
}

/// What is known of the page at this address.
pub(super) fn page(tx: &dyn ReadTx, url: &str) -> Result<Option<StoredPage>> {
    PAGES.get(tx, &key_of(url))
}

/// What the page at this address says.
pub(super) fn text(tx: &dyn ReadTx, url: &str) -> Result<StoredText> {
    Ok(TEXTS.get(tx, &key_of(url))?.unwrap_or_default())
}

pub(super) fn put_page(tx: &mut Tx<'_>, page: &StoredPage) -> Result<()> {
    PAGES.set(tx, &key_of(&page.url), page)
}

pub(super) fn put_text(tx: &mut Tx<'_>, url: &str, text: &StoredText) -> Result<()> {
    TEXTS.set(tx, &key_of(url), text)
}

/// Pages that were previewed and never ingested are kept this many days.
pub const PREVIEW_DAYS_MAX: u64 = 30;
/// And at most this many of them; the oldest go first.
pub const PREVIEWS_MAX: usize = 2_000;
/// Old previews are removed after this many new ones.
const PRUNE_EVERY: u64 = 16;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Removes what is kept of pages that somebody looked at long ago and did nothing with, and of the oldest where
/// there are too many. Pages of the graph and monitored ones stay.
pub(super) fn prune(tx: &mut Tx<'_>, page: &StoredPage, now_ms: u64) -> Result<()> {
    if !page.n.is_multiple_of(PRUNE_EVERY) {
        return Ok(());
    }
    let monitored = super::monitor::MONITORED.keys(&**tx)?;
    let monitored: HashSet<String> = monitored.into_iter().collect();
    let mut old: Vec<(u64, String)> = Vec::new();
    // A row that cannot be read is for somebody to look at, not to be removed unseen.
    for (key, it) in PAGES.list_readable(&**tx)? {
        let is_ingested = it.status == Status::Ingested || it.note.is_some();
        if !is_ingested && it.url != page.url && !monitored.contains(&key) {
            old.push((it.seen_ms, key));
        }
    }
    old.sort();
    let n_over = (old.len() + 1).saturating_sub(PREVIEWS_MAX);
    for (n, (seen_ms, key)) in old.into_iter().enumerate() {
        if n < n_over || seen_ms.saturating_add(PREVIEW_DAYS_MAX * DAY_MS) < now_ms {
            PAGES.unset(tx, &key)?;
            TEXTS.unset(tx, &key)?;
        }
    }
    Ok(())
}

/// How many pages the store knows that are not in the graph.
pub fn n_previewed(tx: &dyn ReadTx) -> Result<usize> {
    let pages = PAGES.list_readable(tx)?.into_iter();
    Ok(pages.filter(|it| it.1.status != Status::Ingested).count())
}

/// A page that nobody has looked at before, with the next number.
pub(super) fn new_page(tx: &mut Tx<'_>, url: &str) -> Result<StoredPage> {
    let n = COUNTS.get_readable(&**tx, "pages")?.unwrap_or(0) + 1;
    COUNTS.set(tx, "pages", &n)?;
    Ok(StoredPage {
        n,
        url: url.to_owned(),
        rid: page_rid(url),
        status: Status::Pending,
        title: None,
        metadata: PageMetadata::default(),
        content_hash: String::new(),
        n_words: 0,
        safety: PageSafety::default(),
        etag: None,
        last_modified: None,
        submitted_by: None,
        submitted_via: String::new(),
        seen_ms: 0,
        note: None,
        evaluation: None,
    })
}
