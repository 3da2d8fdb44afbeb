//! Web pages as text.
//!
//! [`read`] gives a page twice. `text` is for reading and for search: headings, paragraphs, lists, tables and
//! code of what the page is about, nothing lost and nothing joined that stands apart. `summary` is flat, cut
//! by the rules of the KOI servers to the letter, because its hash tells them whether a page has changed. Text
//! that no browser shows is in neither.
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

/// A summary has so many characters, at most.
const SUMMARY_CHARS_MAX: usize = 100_000;

/// What a page says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// What it says of itself.
    pub metadata: Metadata,
    /// Its content for readers, in plain text with the marks of Markdown.
    pub text: String,
    /// Its content in lines, as the KOI servers have it.
    pub summary: String,
    /// Whether it was too large or too deep to be read to its end.
    pub is_truncated: bool,
}

impl Page {
    /// The SHA-256 of the summary, by which the KOI servers tell whether a page has changed.
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
