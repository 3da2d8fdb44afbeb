//! Web pages as text.
//!
//! [`read`] gives a page in two forms. `text` is for reading and for search: headings, paragraphs,
//! lists, tables and code of the page's content. `summary` is flat and cut exactly by the rules of
//! the KOI servers, because they compare its hash to find out whether a page has changed. Text that
//! no browser shows is in neither.
//!
//! Whatever a page says is data: nothing in it is run, fetched or believed.

mod decode;
mod dom;
mod hidden;
mod linked;
mod metadata;
pub mod pdf;
mod readable;
mod summary;

pub use decode::decode;
pub use metadata::Metadata;

use dom::Dom;
use hidden::Hidden;
use kenning_text::hex;

/// At most this many characters of a summary.
const SUMMARY_CHARS_MAX: usize = 100_000;

/// What a page says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its metadata.
    pub metadata: Metadata,
    /// Its content for readers, in plain text with the marks of Markdown.
    pub text: String,
    /// Its content in lines, as the KOI servers have it.
    pub summary: String,
    /// Whether it was too large or too deep to be read to its end.
    pub is_truncated: bool,
}

impl Page {
    /// The SHA-256 of the summary, by which the KOI servers detect changes.
    #[must_use]
    pub fn content_hash(&self) -> String {
        hex::sha256(self.summary.as_bytes())
    }

    /// Words of the summary.
    #[must_use]
    pub fn n_words(&self) -> usize {
        self.summary.split_whitespace().count()
    }
}

/// Reads a page, however broken it is.
#[must_use]
pub fn read(html: &str) -> Page {
    let (dom, is_truncated) = Dom::parse(html);
    let hidden = Hidden::of(&dom);
    let metadata = metadata::of(&dom);
    let summary = summary::of(&dom, &hidden, metadata.title.as_deref());
    Page {
        text: readable::of(&dom, &hidden, metadata.title.as_deref()),
        summary: summary.chars().take(SUMMARY_CHARS_MAX).collect(),
        metadata,
        is_truncated,
    }
}
