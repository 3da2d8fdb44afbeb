//! One text becomes facts.

use crate::facts::Facts;
use crate::languages;
use crate::manifest;
use crate::walk::Walk;
use kenning_grammars::Language;
use kenning_grammars::tree_sitter::{ParseOptions, Parser};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Changes whenever the facts of a text become others: those that were kept are made again.
pub const FORMAT: u32 = 3;

/// Larger texts are not read for symbols.
pub const TEXT_BYTES_MAX: usize = 2 << 20;
/// A text with more brackets open at once is not read for symbols: no person wrote it.
const OPEN_BRACKETS_MAX: usize = 1_000;
/// A text that takes longer is left.
const TIME_MAX: Duration = Duration::from_secs(5);

/// Reads a text. The path tells the language and nothing else; a text of no known language has no
/// facts but those of a manifest.
pub fn read(path: &str, text: &str) -> Facts {
    if let Some(manifest) = manifest::read(path, text) {
        return Facts {
            manifest: Some(manifest),
            ..Facts::default()
        };
    }
    let Some(language) = Language::of_path(path) else {
        return Facts::default();
    };
    let without = |gap: &str| Facts {
        language: Some(language),
        gap: Some(gap.to_owned()),
        ..Facts::default()
    };
    if text.len() > TEXT_BYTES_MAX {
        return without("the file is too large to be read for symbols");
    }
    if open_brackets(text) > OPEN_BRACKETS_MAX {
        return without("the file is nested too deeply to be read for symbols");
    }
    let Some(grammar) = language.grammar() else {
        return without("this build has no grammar of the language");
    };
    let mut parser = Parser::new();
    if parser.set_language(&grammar).is_err() {
        return without("the grammar does not fit this build");
    }
    let deadline = Instant::now() + TIME_MAX;
    let mut look = |_: &_| match Instant::now() < deadline {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let options = ParseOptions::new().progress_callback(&mut look);
    let bytes = text.as_bytes();
    let mut slice = |at: usize, _| bytes.get(at..).unwrap_or_default();
    let Some(tree) = parser.parse_with_options(&mut slice, None, Some(options)) else {
        return without("the file took too long to be read for symbols");
    };
    let mut walk = Walk::new(text);
    let mut reader = languages::reader(language);
    let is_whole = walk.run(&tree, &mut *reader);
    let mut facts = walk.facts;
    facts.language = Some(language);
    if !is_whole {
        facts.gap = Some("parts of the file are nested too deeply to be read".to_owned());
    }
    facts
}

/// How many brackets are open at once, at most; those in texts and comments count too.
fn open_brackets(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => {
                open += 1;
                most = most.max(open);
            }
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    most
}
