//! A tiny random BERT: written to a folder as models come, and computed by plain loops in double
//! precision, so that the product's arithmetic is checked against something that shares none of it.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) const HIDDEN: usize = 32;
const WIDE: usize = 48;
const HEADS: usize = 4;
const LAYERS: usize = 2;
pub(crate) const POSITIONS: usize = 16;

pub(crate) const WORDS: &[&str] = &[
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "log", "##s", "rot", "##ate", "disk", "is", "full",
    "a", "b", "query", ":", "passage",
];

/// How it differs from the plainest BERT.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) model_type: &'static str,
    pub(crate) activation: &'static str,
    pub(crate) prefix: &'static str,
    /// Whether the weights have the names of old models.
    pub(crate) old_names: bool,
    /// Whether a text's vector is that of its first token.
    pub(crate) first_token: bool,
}

pub(crate) const PLAIN: Variant = Variant {
    model_type: "bert",
    activation: "gelu",
    prefix: "",
    old_names: false,
    first_token: false,
};

/// A model and its numbers.
pub(crate) struct Tiny {
    pub(crate) variant: Variant,
    pub(crate) tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl Tiny {
    pub(crate) fn new(variant: Variant, seed: u64) -> Self {
        let mut tiny = Self {
            variant,
            tensors: BTreeMap::new(),
        };
        let mut random = Random(seed);
        let mut add = |name: String, shape: &[usize], around: f32| {
            let count = shape.iter().product();
            let values = (0..count).map(|_| around + random.next() * 0.6).collect();
            tiny.tensors.insert(name, (shape.to_vec(), values));
        };
        add(
            "embeddings.word_embeddings.weight".into(),
            &[WORDS.len(), HIDDEN],
            0.0,
        );
        add(
            "embeddings.position_embeddings.weight".into(),
            &[POSITIONS, HIDDEN],
            0.0,
        );
        add(
            "embeddings.token_type_embeddings.weight".into(),
            &[2, HIDDEN],
            0.0,
        );
        add("embeddings.LayerNorm.weight".into(), &[HIDDEN], 1.0);
        add("embeddings.LayerNorm.bias".into(), &[HIDDEN], 0.0);
        for layer in 0..LAYERS {
            for (part, rows, columns) in [
                ("attention.self.query", HIDDEN, HIDDEN),
                ("attention.self.key", HIDDEN, HIDDEN),
                ("attention.self.value", HIDDEN, HIDDEN),
                ("attention.output.dense", HIDDEN, HIDDEN),
                ("intermediate.dense", WIDE, HIDDEN),
                ("output.dense", HIDDEN, WIDE),
            ] {
                let name = format!("encoder.layer.{layer}.{part}");
                add(format!("{name}.weight"), &[rows, columns], 0.0);
                add(format!("{name}.bias"), &[rows], 0.0);
            }
            for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
                let name = format!("encoder.layer.{layer}.{part}");
                add(format!("{name}.weight"), &[HIDDEN], 1.0);
                add(format!("{name}.bias"), &[HIDDEN], 0.0);
            }
        }
        tiny
    }

    pub(crate) fn config(&self) -> Value {
        json!({
            "model_type": self.variant.model_type,
            "vocab_size": WORDS.len(),
            "hidden_size": HIDDEN,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "intermediate_size": WIDE,
            "hidden_act": self.variant.activation,
            "max_position_embeddings": POSITIONS,
            "type_vocab_size": 2,
            "layer_norm_eps": 1e-12,
            "pad_token_id": 0,
        })
    }

    /// Writes the files of the model into a folder.
    pub(crate) fn write(&self, folder: &Path) {
        put(folder, "config.json", self.config().to_string());
        put(folder, "tokenizer.json", tokenizer(WORDS).to_string());
        put(folder, "model.safetensors", self.safetensors());
        if self.variant.first_token {
            let pooling = json!({
                "word_embedding_dimension": HIDDEN,
                "pooling_mode_cls_token": true,
                "pooling_mode_mean_tokens": false,
            });
            put(folder, "1_Pooling/config.json", pooling.to_string());
        }
    }

    /// The format: the length of a JSON table, the table, the numbers.
    pub(crate) fn safetensors(&self) -> Vec<u8> {
        let (mut table, mut numbers) = (serde_json::Map::new(), Vec::new());
        for (name, (shape, values)) in &self.tensors {
            let start = numbers.len();
            numbers.extend(values.iter().flat_map(|it| it.to_le_bytes()));
            let mut name = format!("{}{name}", self.variant.prefix);
            if self.variant.old_names && name.contains("LayerNorm") {
                name = name.replace("weight", "gamma").replace("bias", "beta");
            }
            let row = json!({
                "dtype": "F32", "shape": shape, "data_offsets": [start, numbers.len()],
            });
            table.insert(name, row);
        }
        let table = Value::Object(table).to_string();
        let mut bytes = (table.len() as u64).to_le_bytes().to_vec();
        bytes.extend(table.as_bytes());
        bytes.extend(numbers);
        bytes
    }

    /// The vector of one text of these token ids, by plain loops.
    pub(crate) fn vector(&self, ids: &[usize]) -> Vec<f64> {
        let first = if self.variant.model_type == "bert" {
            0
        } else {
            1
        };
        let words = self.matrix("embeddings.word_embeddings.weight");
        let positions = self.matrix("embeddings.position_embeddings.weight");
        let segments = self.matrix("embeddings.token_type_embeddings.weight");
        let mut hidden: Vec<Vec<f64>> = Vec::new();
        for (place, &id) in ids.iter().enumerate() {
            let sum = (0..HIDDEN)
                .map(|n| words[id][n] + positions[first + place][n] + segments[0][n])
                .collect();
            hidden.push(self.norm("embeddings.LayerNorm", sum));
        }
        for layer in 0..LAYERS {
            hidden = self.layer(&format!("encoder.layer.{layer}"), &hidden);
        }
        let mut pooled = vec![0.0; HIDDEN];
        let n_pooled = if self.variant.first_token {
            1
        } else {
            hidden.len()
        };
        for token in &hidden[..n_pooled] {
            for (sum, value) in pooled.iter_mut().zip(token) {
                *sum += value;
            }
        }
        let length = pooled.iter().map(|x| x * x).sum::<f64>().sqrt();
        pooled.iter().map(|it| it / length).collect()
    }

    fn layer(&self, name: &str, hidden: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let each = |part: &str| -> Vec<Vec<f64>> {
            let name = format!("{name}.attention.self.{part}");
            hidden.iter().map(|it| self.linear(&name, it)).collect()
        };
        let (queries, keys, values) = (each("query"), each("key"), each("value"));
        let size = HIDDEN / HEADS;
        let mut out = Vec::new();
        for (token, query) in hidden.iter().zip(&queries) {
            let mut seen = vec![0.0; HIDDEN];
            for head in 0..HEADS {
                let part = head * size..(head + 1) * size;
                let score = |key: &Vec<f64>| -> f64 {
                    let dot: f64 = part.clone().map(|n| query[n] * key[n]).sum();
                    (dot / (size as f64).sqrt()).exp()
                };
                let scores: Vec<f64> = keys.iter().map(score).collect();
                let total: f64 = scores.iter().sum();
                for (score, value) in scores.iter().zip(&values) {
                    for it in part.clone() {
                        seen[it] += score / total * value[it];
                    }
                }
            }
            let seen = self.linear(&format!("{name}.attention.output.dense"), &seen);
            let token = self.norm(
                &format!("{name}.attention.output.LayerNorm"),
                add(token, &seen),
            );
            let wide = self.linear(&format!("{name}.intermediate.dense"), &token);
            let wide: Vec<f64> = wide.iter().map(|&it| self.activated(it)).collect();
            let thought = self.linear(&format!("{name}.output.dense"), &wide);
            out.push(self.norm(&format!("{name}.output.LayerNorm"), add(&token, &thought)));
        }
        out
    }

    fn activated(&self, x: f64) -> f64 {
        match self.variant.activation {
            "relu" => x.max(0.0),
            "gelu_new" => {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
                0.5 * x * (1.0 + inner.tanh())
            }
            _ => 0.5 * x * (1.0 + erf(x / 2_f64.sqrt())),
        }
    }

    fn linear(&self, name: &str, input: &[f64]) -> Vec<f64> {
        let weight = self.matrix(&format!("{name}.weight"));
        let bias = &self.tensors[&format!("{name}.bias")].1;
        let row = |(row, &bias): (&Vec<f64>, &f32)| {
            let dot: f64 = row.iter().zip(input).map(|(a, b)| a * b).sum();
            dot + f64::from(bias)
        };
        weight.iter().zip(bias).map(row).collect()
    }

    fn norm(&self, name: &str, input: Vec<f64>) -> Vec<f64> {
        let mean = input.iter().sum::<f64>() / HIDDEN as f64;
        let variance = input.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / HIDDEN as f64;
        let weight = &self.tensors[&format!("{name}.weight")].1;
        let bias = &self.tensors[&format!("{name}.bias")].1;
        let scaled = input
            .iter()
            .map(|it| (it - mean) / (variance + 1e-12).sqrt());
        let weighed = scaled.zip(weight.iter().zip(bias));
        weighed
            .map(|(it, (&w, &b))| it * f64::from(w) + f64::from(b))
            .collect()
    }

    fn matrix(&self, name: &str) -> Vec<Vec<f64>> {
        let (shape, values) = &self.tensors[name];
        let row = |it: &[f32]| it.iter().copied().map(f64::from).collect();
        values.chunks(shape[1]).map(row).collect()
    }
}

fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// By its series, which is exact enough for the small numbers that come up here.
fn erf(x: f64) -> f64 {
    assert!(x.abs() < 5.0, "the series does not serve {x}");
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    2.0 / std::f64::consts::PI.sqrt() * sum
}

/// A WordPiece tokenizer of these words, the first four of them special.
pub(crate) fn tokenizer(words: &[&str]) -> Value {
    let vocab: serde_json::Map<String, Value> = words
        .iter()
        .enumerate()
        .map(|(id, word)| (word.to_string(), json!(id)))
        .collect();
    let added = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
        .iter()
        .enumerate()
        .map(|(id, word)| {
            json!({ "id": id, "content": word, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true })
        });
    let special = |id: &str| json!({ "SpecialToken": { "id": id, "type_id": 0 } });
    json!({
        "version": "1.0",
        "truncation": { "direction": "Right", "max_length": 5, "strategy": "LongestFirst",
                        "stride": 0 },
        "padding": { "strategy": { "Fixed": 8 }, "direction": "Right", "pad_to_multiple_of": null,
                     "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]" },
        "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": { "type": "BertNormalizer", "clean_text": true,
                        "handle_chinese_chars": true, "strip_accents": null, "lowercase": true },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [special("[CLS]"), { "Sequence": { "id": "A", "type_id": 0 } },
                       special("[SEP]")],
            "pair": [],
            "special_tokens": {
                "[CLS]": { "id": "[CLS]", "ids": [2], "tokens": ["[CLS]"] },
                "[SEP]": { "id": "[SEP]", "ids": [3], "tokens": ["[SEP]"] },
            },
        },
        "decoder": null,
        "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                   "max_input_chars_per_word": 100, "vocab": vocab },
    })
}

#[expect(clippy::disallowed_methods, reason = "the test's own folder")]
pub(crate) fn put(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// A generator of numbers between -0.5 and 0.5, the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1 << 24) as f32 - 0.5
    }
}
