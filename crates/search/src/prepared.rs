//! What an index takes in, worked out before the index is locked.
//!
//! Counting words and adding up vectors takes most of the time and needs no index. Whoever follows the log
//! does it while others search, and then changes the index in a short time.

use crate::tokens::term_of;
use kenning_core::{Hash, Kind};
use kenning_embed::{TOKENS_MAX, Table, TableVector, TokenId};
use kenning_store::{Node, Passage};
use std::collections::HashMap;

/// A node and its passages.
pub(crate) struct Prepared<'a> {
    pub(crate) node: &'a Node,
    pub(crate) passages: Vec<PreparedPassage<'a>>,
}

pub(crate) struct PreparedPassage<'a> {
    pub(crate) passage: &'a Passage,
    /// How often each of its terms stands in it.
    pub(crate) counts: Vec<(&'a str, u32)>,
    pub(crate) ids: Vec<TokenId>,
    pub(crate) vector: TableVector,
    pub(crate) text: [u8; 16],
}

impl<'a> Prepared<'a> {
    pub(crate) fn of(node: &'a Node, passages: &'a [Passage]) -> Self {
        let passages = passages.iter().map(|it| PreparedPassage::of(node, it));
        Self {
            node,
            passages: passages.collect(),
        }
    }

    /// How many passages it has.
    pub(crate) fn len(&self) -> usize {
        self.passages.len()
    }
}

impl<'a> PreparedPassage<'a> {
    fn of(node: &Node, passage: &'a Passage) -> Self {
        let table = Table::built_in();
        let mut counts: HashMap<&str, u32> = HashMap::new();
        let words = passage
            .tokens
            .split(' ')
            .chain(passage.title_tokens.split(' '));
        for word in words.filter(|it| !it.is_empty()) {
            *counts.entry(term_of(word)).or_default() += 1;
        }
        // A title that is no part of the text, such as the date of a log, has no tokens.
        let is_titled = !node.title.is_empty()
            && (node.kind != Kind::Document || !passage.title_tokens.is_empty());
        let mut ids = if is_titled {
            table.ids(&node.title)
        } else {
            Vec::new()
        };
        ids.extend(table.ids(&passage.text));
        ids.truncate(TOKENS_MAX);
        Self {
            passage,
            counts: counts.into_iter().collect(),
            vector: table.passage(&ids),
            ids,
            text: text_hash(&passage.text),
        }
    }
}

/// What a text is found by among vectors that somebody else made.
pub(crate) fn text_hash(text: &str) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&Hash::of(text.as_bytes()).0[..16]);
    short
}
