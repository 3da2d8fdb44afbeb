//! PDF files as text.
//!
//! A PDF says which glyphs are where. Words and lines are put together from their positions, in the
//! order of the file, which is the reading order in nearly all files.
//!
//! Files come from anybody: the size of unpacked streams, the nesting of forms, the number of pages
//! and the time are bounded. A page that cannot be read costs only that page. The parser is a
//! third-party crate, so a caller contains its panics.

mod fonts;
mod layout;

use super::{Metadata, Page, SUMMARY_CHARS_MAX};
use fonts::Fonts;
use kenning_text::line::one_line;
use layout::Layout;
use lopdf::content::Content;
use lopdf::{Dictionary, Document, LoadOptions, Object, ObjectId};

/// A stream may unpack to at most this much.
const STREAM_BYTES_MAX: usize = 16 * 1024 * 1024;
const PAGES_MAX: usize = 3_000;
/// Operators and operands of one page: each takes hundreds of bytes once it is parsed, however few it has in
/// the file.
const PARTS_MAX: usize = 200_000;
const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Forms may nest at most this deep.
const DEPTH_MAX: usize = 8;
/// At most this many forms are drawn on all pages together: a form can draw another twice, which does
/// the same …
const FORMS_MAX: usize = 5_000;
/// Metadata is cut after this many characters.
const FIELD_CHARS_MAX: usize = 1_000;
const TITLE_CHARS_MAX: usize = 150;

/// Why a PDF file has no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PdfFault {
    /// It is not a PDF, or too broken to be read.
    Broken,
    /// It can be read only with a password.
    Encrypted,
    /// Its pages are images, or their fonts do not say which letters they show.
    NoText,
    /// Nothing was read within the time limit.
    Late,
}

impl PdfFault {
    /// What is wrong, for people.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Broken => "the PDF file is broken",
            Self::Encrypted => "the PDF file is encrypted",
            Self::NoText => "the PDF file has no text: its pages may be images",
            Self::Late => "the PDF file takes too long to read",
        }
    }
}

/// Reads a PDF file; `is_late` says when to stop. What was read by then is returned.
///
/// # Errors
/// If it has no text that can be read.
pub fn read(bytes: &[u8], is_late: &dyn Fn() -> bool) -> Result<Page, PdfFault> {
    let options = LoadOptions::with_max_decompressed_size(STREAM_BYTES_MAX);
    let document = Document::load_mem_with_options(bytes, options);
    let document = document.map_err(|error| match error {
        lopdf::Error::Decryption(_) | lopdf::Error::InvalidPassword => PdfFault::Encrypted,
        _ => PdfFault::Broken,
    })?;
    if document.is_encrypted() {
        return Err(PdfFault::Encrypted);
    }
    let mut reading = Reading {
        document: &document,
        is_late,
        layout: Layout::default(),
        n_forms: 0,
        is_cut: false,
    };
    let mut n_pages = 0;
    for page in document.page_iter() {
        if n_pages == PAGES_MAX || reading.must_stop() {
            reading.is_cut = true;
            break;
        }
        n_pages += 1;
        reading.page(page);
        reading.layout.end_page();
    }
    let (is_cut, text) = (reading.is_cut, reading.layout.into_text());
    if !text.contains(char::is_alphanumeric) {
        return Err(match (n_pages, is_cut) {
            (0, false) => PdfFault::Broken,
            (_, true) if is_late() => PdfFault::Late,
            _ => PdfFault::NoText,
        });
    }
    let mut metadata = metadata(&document);
    let summary = match &metadata.title {
        Some(title) => format!("# {title}\n\n{text}"),
        None => text.clone(),
    };
    metadata.title = metadata.title.or_else(|| first_line(&text));
    Ok(Page {
        metadata,
        summary: summary.chars().take(SUMMARY_CHARS_MAX).collect(),
        is_truncated: is_cut,
        text,
    })
}

struct Reading<'a> {
    document: &'a Document,
    is_late: &'a dyn Fn() -> bool,
    layout: Layout,
    n_forms: usize,
    is_cut: bool,
}

impl Reading<'_> {
    fn must_stop(&self) -> bool {
        self.layout.len() > TEXT_BYTES_MAX || (self.is_late)()
    }

    fn page(&mut self, page: ObjectId) {
        let content = self
            .document
            .get_page_content_with_limit(page, STREAM_BYTES_MAX);
        let (Ok(content), Ok((own, inherited))) = (content, self.document.get_page_resources(page))
        else {
            self.is_cut = true;
            return;
        };
        let inherited = inherited.into_iter();
        let inherited = inherited.filter_map(|it| self.document.get_dictionary(it).ok());
        let resources: Vec<&Dictionary> = own.into_iter().chain(inherited).collect();
        self.content(&content, &resources, 0);
    }

    /// Follows the operators of a page or of a form.
    fn content(&mut self, content: &[u8], resources: &[&Dictionary], depth: usize) {
        if n_parts(content) > PARTS_MAX {
            self.is_cut = true;
            return;
        }
        let Ok(content) = Content::decode(content) else {
            self.is_cut = true;
            return;
        };
        let document = self.document;
        let mut fonts = Fonts::of(document, resources);
        for (n, operation) in content.operations.iter().enumerate() {
            if n % 1_024 == 0 && self.must_stop() {
                self.is_cut = true;
                return;
            }
            let operands = &operation.operands;
            let number = |n: usize| operands.get(n).map_or(0.0, number);
            match operation.operator.as_str() {
                "BT" => self.layout.begin(),
                "Td" => self.layout.move_line(number(0), number(1)),
                "TD" => {
                    self.layout.leading = -number(1);
                    self.layout.move_line(number(0), number(1));
                }
                "TL" => self.layout.leading = number(0),
                "T*" => self.layout.next_line(),
                "Tm" => {
                    let matrix = [0, 1, 2, 3, 4, 5].map(number);
                    self.layout.place(matrix);
                }
                "Tf" => {
                    let name = operands.first().and_then(|it| it.as_name().ok());
                    fonts.choose(name.unwrap_or_default(), STREAM_BYTES_MAX);
                    self.layout.size = number(1);
                }
                "Tj" => self.show(&fonts, operands),
                "'" => {
                    self.layout.next_line();
                    self.show(&fonts, operands);
                }
                "\"" => {
                    self.layout.next_line();
                    self.show(&fonts, operands.get(2..).unwrap_or_default());
                }
                "TJ" => {
                    let parts = operands.first().and_then(|it| it.as_array().ok());
                    self.show(&fonts, parts.map_or(&[][..], Vec::as_slice));
                }
                "Do" => {
                    let name = operands.first().and_then(|it| it.as_name().ok());
                    self.form(name.unwrap_or_default(), resources, depth);
                }
                _ => {}
            }
        }
    }

    /// Shows texts, with numbers between them that move what follows.
    fn show(&mut self, fonts: &Fonts<'_>, parts: &[Object]) {
        for part in parts {
            match part {
                Object::String(bytes, _) => {
                    let (text, width) = fonts.decode(bytes);
                    self.layout.show(&text, width);
                }
                other => self.layout.shift(number(other)),
            }
        }
    }

    fn form(&mut self, name: &[u8], resources: &[&Dictionary], depth: usize) {
        self.n_forms += 1;
        if depth == DEPTH_MAX || self.n_forms > FORMS_MAX {
            self.is_cut = true;
            return;
        }
        let document = self.document;
        let found = resources.iter().find_map(|it| {
            let forms = document.get_dict_in_dict(it, b"XObject").ok()?;
            forms.get_deref(name, document).ok()?.as_stream().ok()
        });
        let is_form = |dictionary: &Dictionary| {
            let kind = dictionary.get(b"Subtype").and_then(Object::as_name);
            kind.is_ok_and(|it| it == b"Form")
        };
        let Some(form) = found.filter(|it| is_form(&it.dict)) else {
            return;
        };
        let Ok(content) = form.decompressed_content_with_limit(STREAM_BYTES_MAX) else {
            self.is_cut = true;
            return;
        };
        let own = document.get_dict_in_dict(&form.dict, b"Resources").ok();
        let all: Vec<&Dictionary> = own.into_iter().chain(resources.iter().copied()).collect();
        self.content(&content, &all, depth + 1);
    }
}

fn number(object: &Object) -> f32 {
    let number = object.as_float().unwrap_or_default();
    if number.is_finite() { number } else { 0.0 }
}

/// How a text begins, for a file that does not say what it is called.
fn first_line(text: &str) -> Option<String> {
    let line = text
        .lines()
        .map(str::trim)
        .find(|it| it.contains(char::is_alphabetic))?;
    Some(line.chars().take(TITLE_CHARS_MAX).collect())
}

/// The file's metadata.
fn metadata(document: &Document) -> Metadata {
    let info = document.get_dict_in_dict(&document.trailer, b"Info").ok();
    let field = |name: &[u8]| {
        let value = info?.get_deref(name, document).ok()?;
        let text = lopdf::decode_text_string(value).ok()?;
        let text: String = text.chars().take(FIELD_CHARS_MAX).collect();
        let text = one_line(&text);
        Some(text).filter(|it| it.contains(char::is_alphanumeric))
    };
    let keywords = field(b"Keywords").unwrap_or_default();
    let keywords = keywords.split([',', ';']).map(str::trim);
    Metadata {
        title: field(b"Title"),
        description: field(b"Subject"),
        keywords: keywords
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
            .collect(),
        author: field(b"Author"),
        ..Metadata::default()
    }
}
/// An estimate of the operators and operands of a stream: everything between spaces, and every
/// bracket.
fn n_parts(content: &[u8]) -> usize {
    let mut is_inside = false;
    let mut n = 0;
    for &byte in content {
        let is_space = byte.is_ascii_whitespace() || byte == 0;
        let opens = matches!(byte, b'(' | b'[' | b'<' | b'/');
        if opens || !is_space && !is_inside {
            n += 1;
        }
        is_inside = !is_space;
    }
    n
}
