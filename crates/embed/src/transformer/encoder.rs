//! A BERT encoder: from token ids to one vector a text.
//!
//! Written here rather than taken from a collection of models, because it is short, and the collection
//! has many architectures to compile and to maintain.

use candle_core::{D, Device, IndexOp as _, Result, Tensor};
use candle_nn::{Activation, Embedding, LayerNorm, Linear, Module as _, VarBuilder};

/// What the configuration says of the network.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) vocab_size: usize,
    pub(super) hidden_size: usize,
    pub(super) n_layers: usize,
    pub(super) n_heads: usize,
    pub(super) intermediate_size: usize,
    pub(super) activation: Activation,
    pub(super) n_positions: usize,
    /// The position of the first token.
    pub(super) position_first: usize,
    pub(super) epsilon: f64,
    pub(super) pad_id: u32,
    pub(super) pooling: Pooling,
}

impl Shape {
    /// How many tokens have a position.
    pub(super) fn positions_max(&self) -> usize {
        self.n_positions.saturating_sub(self.position_first)
    }
}

/// How the tokens' vectors become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pooling {
    /// Their mean, without the padding.
    Mean,
    /// That of the first, which every text begins with.
    First,
}

pub(super) struct Encoder {
    words: Embedding,
    positions: Tensor,
    segment: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
    position_first: usize,
    pad_id: u32,
    pooling: Pooling,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attended: Linear,
    attended_norm: LayerNorm,
    widen: Linear,
    activation: Activation,
    narrow: Linear,
    norm: LayerNorm,
    n_heads: usize,
}

impl Encoder {
    pub(super) fn load(weights: &VarBuilder<'_>, shape: &Shape) -> Result<Self> {
        // A model saved with a head on top has a prefix.
        let prefixes = ["", "bert", "roberta"];
        let weights = prefixes.iter().map(|prefix| match *prefix {
            "" => weights.clone(),
            prefix => weights.pp(prefix),
        });
        let mut weights = weights.filter(|it| it.contains_tensor(WORDS));
        let weights = weights
            .next()
            .ok_or_else(|| candle_core::Error::Msg(format!("the tensor `{WORDS}` is missing")))?;
        let hidden = shape.hidden_size;
        let embeddings = weights.pp("embeddings");
        let words = weights.get((shape.vocab_size, hidden), WORDS)?;
        let positions = (shape.n_positions, hidden);
        let positions = embeddings.get(positions, "position_embeddings.weight")?;
        // All tokens of a text are of the first segment.
        let segments = embeddings.get_unchecked("token_type_embeddings.weight")?;
        let layers = (0..shape.n_layers)
            .map(|it| Layer::load(&weights.pp(format!("encoder.layer.{it}")), shape));
        Ok(Self {
            words: Embedding::new(words, hidden),
            positions,
            segment: segments.i(0)?,
            norm: layer_norm(&embeddings.pp("LayerNorm"), shape)?,
            layers: layers.collect::<Result<_>>()?,
            position_first: shape.position_first,
            pad_id: shape.pad_id,
            pooling: shape.pooling,
        })
    }

    /// One vector for each list of ids, not yet of length 1. All go through in one pass.
    pub(super) fn encode(&self, texts: &[&[u32]]) -> Result<Vec<Vec<f32>>> {
        let longest = texts.iter().map(|it| it.len()).max().unwrap_or_default();
        let (mut ids, mut present) = (Vec::new(), Vec::new());
        for text in texts {
            let n_padding = longest - text.len();
            ids.extend(text.iter().copied());
            ids.extend(std::iter::repeat_n(self.pad_id, n_padding));
            present.extend(std::iter::repeat_n(1_f32, text.len()));
            present.extend(std::iter::repeat_n(0_f32, n_padding));
        }
        let ids = Tensor::from_vec(ids, (texts.len(), longest), &Device::Cpu)?;
        let present = Tensor::from_vec(present, (texts.len(), longest), &Device::Cpu)?;

        let positions = self.positions.narrow(0, self.position_first, longest)?;
        let hidden = self.words.forward(&ids)?;
        let hidden = hidden
            .broadcast_add(&positions)?
            .broadcast_add(&self.segment)?;
        let mut hidden = self.norm.forward(&hidden)?;
        let mask = attention_mask(&present)?;
        for layer in &self.layers {
            hidden = layer.forward(&hidden, &mask)?;
        }
        match self.pooling {
            Pooling::First => hidden.i((.., 0))?,
            Pooling::Mean => mean(&hidden, &present)?,
        }
        .to_vec2()
    }
}

const WORDS: &str = "embeddings.word_embeddings.weight";

/// What is added to the scores of attention: so much less for padding that nothing is left of it.
fn attention_mask(present: &Tensor) -> Result<Tensor> {
    let added = ((present - 1.0)? * 1e9)?;
    added.unsqueeze(1)?.unsqueeze(1)
}

fn mean(hidden: &Tensor, present: &Tensor) -> Result<Tensor> {
    let sum = hidden
        .broadcast_mul(&present.unsqueeze(D::Minus1)?)?
        .sum(1)?;
    sum.broadcast_div(&present.sum_keepdim(1)?)
}

impl Layer {
    fn load(weights: &VarBuilder<'_>, shape: &Shape) -> Result<Self> {
        let (hidden, wide) = (shape.hidden_size, shape.intermediate_size);
        let attention = weights.pp("attention");
        let of_self = |name: &str| candle_nn::linear(hidden, hidden, attention.pp("self").pp(name));
        let output = attention.pp("output");
        Ok(Self {
            query: of_self("query")?,
            key: of_self("key")?,
            value: of_self("value")?,
            attended: candle_nn::linear(hidden, hidden, output.pp("dense"))?,
            attended_norm: layer_norm(&output.pp("LayerNorm"), shape)?,
            widen: candle_nn::linear(hidden, wide, weights.pp("intermediate.dense"))?,
            activation: shape.activation,
            narrow: candle_nn::linear(wide, hidden, weights.pp("output.dense"))?,
            norm: layer_norm(&weights.pp("output.LayerNorm"), shape)?,
            n_heads: shape.n_heads,
        })
    }

    fn forward(&self, hidden: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let seen = self.attended.forward(&self.attend(hidden, mask)?)?;
        let hidden = self.attended_norm.forward(&(hidden + seen)?)?;
        let wide = self.activation.forward(&self.widen.forward(&hidden)?)?;
        let thought = self.narrow.forward(&wide)?;
        self.norm.forward(&(hidden + thought)?)
    }

    fn attend(&self, hidden: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let (n_texts, n_tokens, size) = hidden.dims3()?;
        let head_size = size / self.n_heads;
        let by_head = |tensor: Tensor| {
            tensor
                .reshape((n_texts, n_tokens, self.n_heads, head_size))?
                .transpose(1, 2)?
                .contiguous()
        };
        let query = by_head(self.query.forward(hidden)?)?;
        let key = by_head(self.key.forward(hidden)?)?;
        let value = by_head(self.value.forward(hidden)?)?;
        let scores = (query.matmul(&key.t()?)? / (head_size as f64).sqrt())?;
        let shares = candle_nn::ops::softmax_last_dim(&scores.broadcast_add(mask)?)?;
        let seen = shares.matmul(&value)?.transpose(1, 2)?.contiguous()?;
        seen.reshape((n_texts, n_tokens, size))
    }
}

/// Old models call its weight and bias gamma and beta.
fn layer_norm(weights: &VarBuilder<'_>, shape: &Shape) -> Result<LayerNorm> {
    let (weight, bias) = match weights.contains_tensor("weight") {
        true => ("weight", "bias"),
        false => ("gamma", "beta"),
    };
    let weight = weights.get(shape.hidden_size, weight)?;
    let bias = weights.get(shape.hidden_size, bias)?;
    Ok(LayerNorm::new(weight, bias, shape.epsilon))
}
