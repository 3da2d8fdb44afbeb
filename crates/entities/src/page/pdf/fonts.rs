//! Which letters the codes of a font mean, and how wide they are.

use lopdf::{Dictionary, Document, Encoding, Object};
use std::collections::HashMap;

/// The widths of at most this many codes of one font are kept.
const WIDTHS_MAX: usize = 70_000;
/// Widths are in thousandths of the size of the font.
const WIDTH_DEFAULT: f32 = 500.0;

/// The fonts of a page, each made ready when it is first chosen.
pub(super) struct Fonts<'a> {
    document: &'a Document,
    resources: Vec<&'a Dictionary>,
    known: HashMap<Vec<u8>, Option<Font<'a>>>,
    chosen: Vec<u8>,
}

struct Font<'a> {
    encoding: Encoding<'a>,
    widths: HashMap<u32, f32>,
    width_default: f32,
    is_composite: bool,
}

impl<'a> Fonts<'a> {
    pub(super) fn of(document: &'a Document, resources: &[&'a Dictionary]) -> Self {
        Self {
            document,
            resources: resources.to_vec(),
            known: HashMap::new(),
            chosen: Vec::new(),
        }
    }

    pub(super) fn choose(&mut self, name: &[u8], bytes_max: usize) {
        name.clone_into(&mut self.chosen);
        if !self.known.contains_key(name) {
            let font = self.font(name, bytes_max);
            self.known.insert(name.to_owned(), font);
        }
    }

    fn font(&self, name: &[u8], bytes_max: usize) -> Option<Font<'a>> {
        let document = self.document;
        let font = self.resources.iter().find_map(|it| {
            let fonts = document.get_dict_in_dict(it, b"Font").ok()?;
            fonts.get_deref(name, document).ok()?.as_dict().ok()
        })?;
        let encoding = font
            .get_font_encoding_with_limit(document, bytes_max)
            .ok()?;
        let kind = font.get(b"Subtype").and_then(Object::as_name);
        let is_composite = kind.is_ok_and(|it| it == b"Type0");
        let (widths, width_default) = if is_composite {
            composite_widths(document, font)
        } else {
            (simple_widths(document, font), WIDTH_DEFAULT)
        };
        Some(Font {
            encoding,
            widths,
            width_default,
            is_composite,
        })
    }

    /// The letters of some codes, and their width in thousandths of the size. Codes without a letter
    /// are left out.
    pub(super) fn decode(&self, bytes: &[u8]) -> (String, f32) {
        let Some(Some(font)) = self.known.get(&self.chosen) else {
            return (String::new(), bytes.len() as f32 * WIDTH_DEFAULT);
        };
        let text = Document::decode_text(&font.encoding, bytes).unwrap_or_default();
        let width = |code: u32| {
            font.widths
                .get(&code)
                .copied()
                .unwrap_or(font.width_default)
        };
        let total = if font.is_composite {
            let pairs = bytes.chunks(2).map(|pair| {
                let low = pair.get(1).copied().unwrap_or_default();
                u32::from(pair[0]) << 8 | u32::from(low)
            });
            pairs.map(width).sum()
        } else {
            bytes.iter().map(|it| width(u32::from(*it))).sum()
        };
        (text, total)
    }
}

fn simple_widths(document: &Document, font: &Dictionary) -> HashMap<u32, f32> {
    let first = font.get_deref(b"FirstChar", document).ok();
    let first = first.and_then(|it| it.as_i64().ok()).unwrap_or(0);
    let first = u32::try_from(first).unwrap_or(0);
    let widths = font.get_deref(b"Widths", document).ok();
    let widths = widths
        .and_then(|it| it.as_array().ok())
        .into_iter()
        .flatten();
    let codes = (0..256u32).map(|n| first.saturating_add(n));
    codes.zip(widths.map(|it| number(document, it))).collect()
}

/// The widths of a font whose codes are two bytes: `[1 [500 600] 10 20 750]`, and that of all others.
fn composite_widths(document: &Document, font: &Dictionary) -> (HashMap<u32, f32>, f32) {
    let mut all = HashMap::new();
    let fonts = font.get_deref(b"DescendantFonts", document).ok();
    let font = fonts
        .and_then(|it| it.as_array().ok())
        .and_then(|it| it.first());
    let font = font.and_then(|it| document.dereference(it).ok());
    let Some(font) = font.and_then(|it| it.1.as_dict().ok()) else {
        return (all, 1_000.0);
    };
    let default = font.get_deref(b"DW", document).ok();
    let default = default.map_or(1_000.0, |it| number(document, it));
    let widths = font
        .get_deref(b"W", document)
        .ok()
        .and_then(|it| it.as_array().ok());
    let mut rest = widths.map_or(&[][..], Vec::as_slice);
    while let [first, second, after @ ..] = rest {
        let first = code(document, first);
        let listed = document.dereference(second).ok();
        if let Some(listed) = listed.and_then(|it| it.1.as_array().ok()) {
            let codes = (0..).map(|n: u32| first.saturating_add(n));
            all.extend(codes.zip(listed.iter().map(|it| number(document, it))));
            rest = after;
        } else {
            let [width, after @ ..] = after else { break };
            let (last, width) = (code(document, second), number(document, width));
            all.extend((first..=last.min(0xffff)).map(|it| (it, width)));
            rest = after;
        }
        if all.len() > WIDTHS_MAX {
            break;
        }
    }
    (all, default)
}

fn number(document: &Document, object: &Object) -> f32 {
    let object = document.dereference(object).map_or(object, |it| it.1);
    super::number(object)
}

fn code(document: &Document, object: &Object) -> u32 {
    let object = document.dereference(object).map_or(object, |it| it.1);
    let code = object.as_i64().unwrap_or_default();
    u32::try_from(code).unwrap_or_default().min(0xffff)
}
