//! What a model's folder says of it, before its weights are read.

use super::encoder::{Encoder, Pooling, Shape};
use crate::Model;
use candle_core::{DType, Device};
use candle_nn::VarBuilder;
use kenning_core::{Code, Error, Result};
use kenning_vault::Dir;
use serde::Deserialize;
use std::io::{Read as _, Seek as _, SeekFrom};
use tokenizers::Tokenizer;

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const WEIGHTS: &str = "model.safetensors";
const POOLING: &str = "1_Pooling/config.json";
const TRAINED: &str = "sentence_bert_config.json";
const PROMPTS: &str = "config_sentence_transformers.json";

const CONFIG_BYTES_MAX: u64 = 1024 * 1024;
const TOKENIZER_BYTES_MAX: u64 = 128 * 1024 * 1024;
const WEIGHTS_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024;

/// A model's folder whose description has been read and makes sense.
#[derive(Clone, Debug)]
pub struct Folder {
    dir: Dir,
    shape: Shape,
    tokens_max: usize,
    prompts: Prompts,
    model: Model,
}

/// What the model wants to stand before a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prompts {
    pub(super) query: String,
    pub(super) passage: String,
}

impl Folder {
    /// Reads the description and looks for the other files. The weights are left for later.
    pub fn read(dir: &Dir) -> Result<Self> {
        let config: Config = read_required(dir, CONFIG)?;
        let pooling = optional(dir, POOLING)?.unwrap_or_default();
        let trained: Trained = optional(dir, TRAINED)?.unwrap_or_default();
        let prompts: PromptFile = optional(dir, PROMPTS)?.unwrap_or_default();
        let shape = config.shape(pooling)?;
        let tokens_max = trained.max_seq_length.unwrap_or(usize::MAX);
        let tokens_max = tokens_max.min(shape.positions_max());
        if tokens_max < TOKENS_MIN {
            return Err(broken(
                CONFIG,
                &format!("it allows only {tokens_max} tokens a text"),
            ));
        }
        let name = dir.path().file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        let dimensions = shape.hidden_size;
        let id = format!("local:{name}:{dimensions}:{}", fingerprint(dir)?);
        Ok(Self {
            dir: dir.clone(),
            shape,
            tokens_max,
            prompts: prompts.prompts(),
            model: Model { id, dimensions },
        })
    }

    /// What the folder makes. The id holds a fingerprint, so that another model under the same name
    /// is another model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Tokens of one text. What is beyond is not seen by the model.
    pub fn tokens_max(&self) -> usize {
        self.tokens_max
    }

    pub(super) fn prompts(&self) -> &Prompts {
        &self.prompts
    }

    pub(super) fn tokenizer(&self) -> Result<Tokenizer> {
        let bytes = self.dir.read(TOKENIZER, TOKENIZER_BYTES_MAX);
        let tokenizer = Tokenizer::from_bytes(bytes.map_err(explain)?);
        let tokenizer =
            tokenizer.map_err(|err| broken(TOKENIZER, "not a tokenizer").because(err))?;
        let (words, rows) = (tokenizer.get_vocab_size(true), self.shape.vocab_size);
        if words > rows {
            let why = format!("it has {words} words, but `{CONFIG}` declares {rows}");
            return Err(broken(TOKENIZER, &why));
        }
        Ok(tokenizer)
    }

    pub(super) fn encoder(&self) -> Result<Encoder> {
        let bytes = self.dir.read(WEIGHTS, WEIGHTS_BYTES_MAX).map_err(explain)?;
        let weights = VarBuilder::from_slice_safetensors(&bytes, DType::F32, &Device::Cpu);
        let encoder = weights.and_then(|it| Encoder::load(&it, &self.shape));
        // What is missing or misshapen is a tensor's name and harmless to tell.
        encoder.map_err(|err| broken(WEIGHTS, &first_line(&err)).because(err))
    }
}

/// Fewer leave no room for a word between the marks at both ends.
const TOKENS_MIN: usize = 4;

#[derive(Deserialize)]
struct Config {
    #[serde(default = "bert")]
    model_type: String,
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    #[serde(default = "gelu")]
    hidden_act: String,
    max_position_embeddings: usize,
    #[serde(default = "bert_epsilon")]
    layer_norm_eps: f64,
    #[serde(default)]
    pad_token_id: u32,
    #[serde(default = "absolute")]
    position_embedding_type: String,
}

fn bert() -> String {
    "bert".to_owned()
}

fn gelu() -> String {
    "gelu".to_owned()
}

fn absolute() -> String {
    "absolute".to_owned()
}

fn bert_epsilon() -> f64 {
    1e-12
}

impl Config {
    fn shape(self, pooling: PoolingFile) -> Result<Shape> {
        let refused = |field: &str, value: &str, known: &str| {
            Err(
                Error::invalid(format!("`{CONFIG}` has `{field}` `{value}`"))
                    .hint(format!("models with {known} can be read")),
            )
        };
        let position_first = match self.model_type.as_str() {
            "bert" => 0,
            // These count positions from the one after the padding's.
            "roberta" | "xlm-roberta" | "camembert" => self.pad_token_id as usize + 1,
            other => return refused("model_type", other, "`bert`, `roberta` or `xlm-roberta`"),
        };
        if self.position_embedding_type != "absolute" {
            let found = &self.position_embedding_type;
            return refused("position_embedding_type", found, "`absolute`");
        }
        let activation = match self.hidden_act.as_str() {
            "gelu" => candle_nn::Activation::Gelu,
            "gelu_new" | "gelu_pytorch_tanh" => candle_nn::Activation::NewGelu,
            "relu" => candle_nn::Activation::Relu,
            other => return refused("hidden_act", other, "`gelu`, `gelu_new` or `relu`"),
        };
        let (hidden, heads) = (self.hidden_size, self.num_attention_heads);
        if heads == 0 || hidden == 0 || hidden % heads != 0 {
            return Err(broken(
                CONFIG,
                &format!("hidden size {hidden} cannot be divided by {heads} heads"),
            ));
        }
        Ok(Shape {
            vocab_size: self.vocab_size,
            hidden_size: hidden,
            n_layers: self.num_hidden_layers,
            n_heads: heads,
            intermediate_size: self.intermediate_size,
            activation,
            n_positions: self.max_position_embeddings,
            position_first,
            epsilon: self.layer_norm_eps,
            pad_id: self.pad_token_id,
            pooling: pooling.pooling()?,
        })
    }
}

/// How the tokens' vectors become one. Without the file it is their mean.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PoolingFile {
    pooling_mode_cls_token: bool,
    pooling_mode_mean_tokens: bool,
    pooling_mode_max_tokens: bool,
    pooling_mode_mean_sqrt_len_tokens: bool,
    pooling_mode_weightedmean_tokens: bool,
    pooling_mode_lasttoken: bool,
}

impl PoolingFile {
    fn pooling(&self) -> Result<Pooling> {
        let unknown = self.pooling_mode_max_tokens
            || self.pooling_mode_mean_sqrt_len_tokens
            || self.pooling_mode_weightedmean_tokens
            || self.pooling_mode_lasttoken;
        match (self.pooling_mode_cls_token, self.pooling_mode_mean_tokens) {
            (true, false) if !unknown => Ok(Pooling::First),
            (false, _) if !unknown => Ok(Pooling::Mean),
            _ => Err(broken(
                POOLING,
                "only the pooling modes mean and first token are supported",
            )),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Trained {
    max_seq_length: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PromptFile {
    prompts: std::collections::HashMap<String, String>,
}

impl PromptFile {
    /// Models differ in what they call a passage.
    fn prompts(self) -> Prompts {
        let first = |names: &[&str]| {
            let found = names.iter().find_map(|it| self.prompts.get(*it));
            found.cloned().unwrap_or_default()
        };
        Prompts {
            query: first(&["query"]),
            passage: first(&["passage", "document"]),
        }
    }
}

fn read_required<T: for<'a> Deserialize<'a>>(dir: &Dir, name: &str) -> Result<T> {
    let bytes = dir.read(name, CONFIG_BYTES_MAX).map_err(explain)?;
    serde_json::from_slice(&bytes).map_err(|err| broken(name, &err.to_string()))
}

fn optional<T: for<'a> Deserialize<'a>>(dir: &Dir, name: &str) -> Result<Option<T>> {
    match read_required(dir, name) {
        Ok(found) => Ok(Some(found)),
        Err(err) if err.code == Code::NotFound => Ok(None),
        Err(err) => Err(err),
    }
}

/// A few characters that differ when the model does.
///
/// Of the weights only samples are read, because the id is needed before there is time to read them
/// all: training changes nearly every number, so samples show it.
fn fingerprint(dir: &Dir) -> Result<String> {
    const SAMPLES: u64 = 64;
    const SAMPLE_BYTES: u64 = 4096;
    let mut hasher = blake3::Hasher::new();
    for (name, bytes_max) in [
        (CONFIG, CONFIG_BYTES_MAX),
        (TOKENIZER, TOKENIZER_BYTES_MAX),
        (POOLING, CONFIG_BYTES_MAX),
        (TRAINED, CONFIG_BYTES_MAX),
        (PROMPTS, CONFIG_BYTES_MAX),
    ] {
        let bytes = match dir.read(name, bytes_max) {
            Err(err) if err.code == Code::NotFound && ![CONFIG, TOKENIZER].contains(&name) => {
                Vec::new()
            }
            read => read.map_err(explain)?,
        };
        hasher.update(blake3::hash(&bytes).as_bytes());
    }
    let unreadable = |err: std::io::Error| {
        Error::unavailable(format!("`{WEIGHTS}` cannot be read")).because(err)
    };
    let mut weights = dir.open_read(WEIGHTS).map_err(explain)?;
    let size_bytes = weights.metadata().map_err(unreadable)?.len();
    hasher.update(&size_bytes.to_le_bytes());
    for number in 0..SAMPLES {
        let start = size_bytes.saturating_sub(SAMPLE_BYTES) * number / (SAMPLES - 1);
        weights.seek(SeekFrom::Start(start)).map_err(unreadable)?;
        let mut sample = Vec::new();
        let mut part = (&weights).take(SAMPLE_BYTES);
        part.read_to_end(&mut sample).map_err(unreadable)?;
        hasher.update(&sample);
    }
    Ok(hasher.finalize().to_hex().chars().take(12).collect())
}

/// A file of the folder that is not there or not readable, with what belongs there.
fn explain(error: Error) -> Error {
    match error.code {
        Code::NotFound => error.hint(format!(
            "the folder of a model holds `{CONFIG}`, `{TOKENIZER}` and `{WEIGHTS}`"
        )),
        // The cache of a model hub is made of links that lead outside the folder.
        Code::Denied => error.hint("copy the model's files into one folder, without links"),
        _ => error,
    }
}

fn broken(name: &str, why: &str) -> Error {
    Error::invalid(format!("`{name}` cannot be used: {why}"))
        .hint("fetch the model's files again, all from one place")
}

fn first_line(err: &candle_core::Error) -> String {
    let text = err.to_string();
    text.lines().next().unwrap_or_default().trim().to_owned()
}
