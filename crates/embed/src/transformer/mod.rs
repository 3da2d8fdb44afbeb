//! Vectors from a transformer in a local folder, computed here on the processor.
//!
//! The folder is as it comes from a model's page: `config.json`, `tokenizer.json` and
//! `model.safetensors`, and if the model brings them, `1_Pooling/config.json` (how its tokens become
//! one vector), `sentence_bert_config.json` (how many tokens it was trained on) and
//! `config_sentence_transformers.json` (what it wants before queries and passages). BERT, RoBERTa and
//! XLM-RoBERTa encoders can be read.
//!
//! Read from [`folder`] to [`encoder`] to [`lazy`]: what it is, what it computes, and how it loads
//! while search goes on.

mod encoder;
mod folder;
mod lazy;

pub use folder::Folder;
pub use lazy::Lazy;

use crate::{Embedder, Model, vector};
use encoder::Encoder;
use folder::Prompts;
use kenning_core::{Error, Result};
use std::fmt;
use tokenizers::{Encoding, Tokenizer, TruncationParams};

/// Tokens in one pass, padding included: attention needs memory for their square.
const PASS_TOKENS_MAX: usize = 4096;

/// A loaded model.
pub struct Transformer {
    model: Model,
    tokenizer: Tokenizer,
    encoder: Encoder,
    prompts: Prompts,
}

impl Transformer {
    /// Reads the weights, which takes as long as reading that many bytes does.
    pub fn load(folder: &Folder) -> Result<Self> {
        let mut tokenizer = folder.tokenizer()?;
        let cut = TruncationParams {
            max_length: folder.tokens_max(),
            ..TruncationParams::default()
        };
        tokenizer.with_padding(None);
        let cut = tokenizer.with_truncation(Some(cut));
        cut.map_err(|err| Error::invalid("`tokenizer.json` cannot be used").because(err))?;
        Ok(Self {
            model: folder.model().clone(),
            encoder: folder.encoder()?,
            tokenizer,
            prompts: folder.prompts().clone(),
        })
    }

    fn embed_after(&self, prompt: &str, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let mut vectors = vec![vec![0.0; self.model.dimensions]; texts.len()];
        let mut spoken: Vec<(usize, Encoding)> = Vec::with_capacity(texts.len());
        for (idx, text) in texts.iter().enumerate() {
            let encoding = self.encode(text)?;
            if !says_something(&encoding) {
                continue;
            }
            spoken.push(match prompt {
                "" => (idx, encoding),
                _ => (idx, self.encode(&format!("{prompt}{text}"))?),
            });
        }
        // Texts of like length share a pass, so that little of it is padding.
        spoken.sort_by_key(|(_, it)| it.len());
        let mut rest = &spoken[..];
        while !rest.is_empty() {
            let (pass, later) = rest.split_at(pass_length(rest.iter().map(|(_, it)| it.len())));
            let ids: Vec<&[u32]> = pass.iter().map(|(_, it)| it.get_ids()).collect();
            let pooled = self.encoder.encode(&ids);
            let pooled = pooled.map_err(|err| Error::internal("the model failed").because(err))?;
            for ((idx, _), found) in pass.iter().zip(pooled) {
                vectors[*idx] = vector::unit(found).ok_or_else(|| {
                    Error::invalid("the model's numbers are not finite")
                        .hint("its `model.safetensors` may be broken: fetch the model again")
                })?;
            }
            rest = later;
        }
        Ok(vectors)
    }

    fn encode(&self, text: &str) -> Result<Encoding> {
        let encoding = self.tokenizer.encode_fast(text, true);
        encoding.map_err(|err| Error::internal("the tokenizer failed").because(err))
    }
}

impl Embedder for Transformer {
    fn model(&self) -> &Model {
        &self.model
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        self.embed_after(&self.prompts.passage, texts)
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>> {
        let only = self.embed_after(&self.prompts.query, &[text])?.pop();
        only.ok_or_else(|| Error::internal("the model gave no vector for the query"))
    }
}

impl fmt::Debug for Transformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transformer")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// Whether a text has tokens besides the special ones that every text gets.
fn says_something(encoding: &Encoding) -> bool {
    encoding.get_special_tokens_mask().contains(&0)
}

/// How many of the texts with these rising lengths go into one pass: at least one.
fn pass_length(lengths: impl Iterator<Item = usize>) -> usize {
    let numbered = lengths.zip(1..);
    let fits = numbered.take_while(|(longest, count)| longest * count <= PASS_TOKENS_MAX);
    fits.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_bounded_by_its_padded_tokens() {
        for (lengths, expected) in [
            (vec![10; 5], 5),
            (vec![512; 20], 8),
            (vec![1, 2, 4096], 2),
            (vec![9000], 1),
        ] {
            assert_eq!(
                pass_length(lengths.iter().copied()),
                expected,
                "{lengths:?}"
            );
        }
    }
}
