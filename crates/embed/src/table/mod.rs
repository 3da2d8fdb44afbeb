//! The built-in table: one row of numbers for each of 61,156 pieces of words.
//!
//! The vector of a text is the sum of its tokens' rows, and the similarity of two tokens is the cosine
//! of their rows; there is no network to run. The file is part of the binary and read in place:
//! opening it costs nothing, and only the pages that a text touches are ever loaded.

mod format;
mod tokenize;

use crate::{Embedder, Model};
use format::{Layout, f32_at, nibbles};
use kenning_core::Result;
use std::sync::LazyLock;

// Statics, not constants: the compiler puts a copy of a constant's bytes into every codegen unit that reads it,
// and this table is the largest thing in the program.
static BYTES: &[u8] = include_bytes!("../../assets/static-minilm-ext256-int4.semb");
static OFFSETS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/offsets.bin"));
static SLOTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/slots.bin"));
static NORMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/norms.bin"));

/// Numbers of a vector.
pub const DIMENSIONS: usize = 256;

/// Tokens of a text that count; longer texts are several passages.
pub const TOKENS_MAX: usize = 512;

/// A token: the place of its row.
pub type TokenId = u16;

/// A vector of the table.
pub type TableVector = [f32; DIMENSIONS];

/// The table.
#[derive(Debug)]
pub struct Table {
    layout: Layout,
    model: Model,
}

static BUILT_IN: LazyLock<Table> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the build script has read the same bytes"
    )]
    let layout = Layout::parse(BYTES).expect("the embedding table is malformed");
    let model = Model {
        id: "static-minilm-256".to_owned(),
        dimensions: layout.dimensions,
    };
    Table { layout, model }
});

impl Table {
    /// The table that is part of the binary.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.layout.rows
    }

    /// Always false: the table has words.
    pub fn is_empty(&self) -> bool {
        self.layout.rows == 0
    }

    /// The token that is exactly this word or piece (`##` before a continuation).
    pub fn token(&self, word: &[u8]) -> Option<TokenId> {
        let mut slot = format::slot(word);
        loop {
            let id = u16::from_le_bytes([SLOTS[2 * slot], SLOTS[2 * slot + 1]]).checked_sub(1)?;
            if self.word(id).as_bytes() == word {
                return Some(id);
            }
            slot = (slot + 1) % format::SLOTS;
        }
    }

    /// The word or piece of a token.
    pub fn word(&self, id: TokenId) -> &'static str {
        let at = 4 * usize::from(id);
        let offset = &OFFSETS[at..at + 4];
        let start = u32::from_le_bytes([offset[0], offset[1], offset[2], offset[3]]) as usize;
        let length = usize::from(BYTES[start]);
        std::str::from_utf8(&BYTES[start + 1..start + 1 + length]).unwrap_or_default()
    }

    /// The length of a token's row. Training gave filler words short ones.
    pub fn norm(&self, id: TokenId) -> f32 {
        f32_at(NORMS, usize::from(id))
    }

    /// The vector of a passage: the sum of its rows, of length 1; zeros when there is no token.
    pub fn passage(&self, ids: &[TokenId]) -> TableVector {
        self.sum(ids.iter().map(|&id| (id, 1.0)))
    }

    /// The vector of a query: the same, each row times its weight.
    pub fn query(&self, ids: &[TokenId], weights: &[f32]) -> TableVector {
        self.sum(ids.iter().copied().zip(weights.iter().copied()))
    }

    fn sum(&self, tokens: impl Iterator<Item = (TokenId, f32)>) -> TableVector {
        let mut sum = [0.0; DIMENSIONS];
        let (low_half, high_half) = sum.split_at_mut(DIMENSIONS / 2);
        for (id, weight) in tokens {
            let row = self.layout.row(BYTES, usize::from(id));
            let scale = self.layout.scale(BYTES, usize::from(id)) * weight;
            for ((&byte, low), high) in row.iter().zip(&mut *low_half).zip(&mut *high_half) {
                let (a, b) = nibbles(byte);
                *low += f32::from(a) * scale;
                *high += f32::from(b) * scale;
            }
        }
        normalize(&mut sum);
        sum
    }

    /// Prepares a token to be compared with many.
    pub fn probe(&self, id: TokenId) -> Probe {
        let mut values = [0; DIMENSIONS];
        let (low_half, high_half) = values.split_at_mut(DIMENSIONS / 2);
        let row = self.layout.row(BYTES, usize::from(id));
        for ((&byte, low), high) in row.iter().zip(low_half).zip(high_half) {
            (*low, *high) = nibbles(byte);
        }
        let squares: i32 = values.iter().map(|&it| i32::from(it) * i32::from(it)).sum();
        Probe {
            values,
            length: (squares as f32).sqrt(),
        }
    }
}

/// A token's row, ready to be compared. A cosine does not depend on the scales, so whole numbers do.
#[derive(Clone, Debug)]
pub struct Probe {
    values: [i16; DIMENSIONS],
    length: f32,
}

impl Probe {
    /// The cosine of two tokens.
    pub fn similarity(&self, other: &Self) -> f32 {
        let dot: i32 = self
            .values
            .iter()
            .zip(&other.values)
            .map(|(&a, &b)| i32::from(a) * i32::from(b))
            .sum();
        dot as f32 / (self.length * other.length).max(1e-12)
    }
}

/// Makes a vector one of length 1, unless it is all zeros.
pub fn normalize(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|it| *it /= length);
    }
}

/// Without a space to count tokens in, every token of a query weighs the same.
impl Embedder for Table {
    fn model(&self) -> &Model {
        &self.model
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        Ok(texts
            .iter()
            .map(|text| self.passage(&self.ids(text)).to_vec())
            .collect())
    }
}
