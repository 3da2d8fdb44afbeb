//! A tiny transformer from a folder, against the same arithmetic in plain loops.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod tiny;

use kenning_core::{Code, Error};
use kenning_embed::Embedder;
use kenning_embed::transformer::{Folder, Lazy, Transformer};
use kenning_vault::Dir;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;
use tiny::{HIDDEN, PLAIN, POSITIONS, Tiny, Variant, WORDS, put};

/// The folder of a tiny model.
fn folder_of(tiny: &Tiny) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    tiny.write(folder.path());
    folder
}

fn read(path: &Path) -> Result<Folder, Error> {
    Folder::read(&Dir::open(path).unwrap())
}

fn load(path: &Path) -> Result<Transformer, Error> {
    Transformer::load(&read(path)?)
}

/// The ids of these words between the marks of beginning and end.
fn ids(words: &[&str]) -> Vec<usize> {
    let all = [&["[CLS]"], words, &["[SEP]"]].concat();
    let id = |word: &&str| WORDS.iter().position(|it| it == word).unwrap();
    all.iter().map(id).collect()
}

fn assert_close(found: &[f32], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        let off = (f64::from(*found) - expected).abs();
        assert!(off < 2e-5, "{what}: {found} instead of {expected}");
    }
}

#[test]
fn vectors_are_those_of_the_plain_computation() {
    for (seed, variant) in [
        PLAIN,
        Variant {
            first_token: true,
            ..PLAIN
        },
        Variant {
            prefix: "bert.",
            old_names: true,
            ..PLAIN
        },
        Variant {
            model_type: "roberta",
            prefix: "roberta.",
            ..PLAIN
        },
        Variant {
            model_type: "xlm-roberta",
            activation: "gelu_new",
            ..PLAIN
        },
        Variant {
            activation: "relu",
            first_token: true,
            ..PLAIN
        },
    ]
    .into_iter()
    .enumerate()
    {
        let tiny = Tiny::new(variant, seed as u64);
        let folder = folder_of(&tiny);
        let model = load(folder.path()).unwrap();
        // Of three lengths, so that two are padded, and longest first, so that the order is kept.
        let texts = ["The disk is full: rotate the logs", "Logs!", "rotate logs"];
        let words: [&[&str]; 3] = [
            &[
                "the", "disk", "is", "full", ":", "rot", "##ate", "the", "log", "##s",
            ],
            &["log", "##s", "[UNK]"],
            &["rot", "##ate", "log", "##s"],
        ];
        let vectors = model.embed(&texts).unwrap();
        for (words, vector) in words.iter().zip(&vectors) {
            assert_close(
                vector,
                &tiny.vector(&ids(words)),
                &format!("{variant:?} {words:?}"),
            );
        }
        let query = model.embed_query(texts[2]).unwrap();
        assert_close(&query, &tiny.vector(&ids(words[2])), "query");
    }
}

#[test]
fn many_texts_keep_their_order() {
    let tiny = Tiny::new(PLAIN, 7);
    let folder = folder_of(&tiny);
    let model = load(folder.path()).unwrap();
    // More than fit into one pass.
    let texts: Vec<String> = (0..700).map(|it| "a b the ".repeat(it % 4 + 1)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = model.embed(&texts).unwrap();
    assert_eq!(vectors.len(), 700);
    let expected = [1, 2, 3, 4].map(|it| tiny.vector(&ids(&["a", "b", "the"].repeat(it))));
    for (idx, vector) in vectors.iter().enumerate() {
        assert_close(vector, &expected[idx % 4], &format!("text {idx}"));
    }
}

#[test]
fn a_text_is_cut_where_positions_or_training_end() {
    let tiny = Tiny::new(PLAIN, 3);
    let folder = folder_of(&tiny);
    let long = "log ".repeat(100);
    let cut_to = |tokens: usize| {
        assert_eq!(read(folder.path()).unwrap().tokens_max(), tokens);
        let vectors = load(folder.path()).unwrap().embed(&[&long]).unwrap();
        let words = vec!["log"; tokens - 2];
        assert_close(
            &vectors[0],
            &tiny.vector(&ids(&words)),
            &format!("{tokens} tokens"),
        );
    };
    cut_to(POSITIONS);
    put(
        folder.path(),
        "sentence_bert_config.json",
        r#"{"max_seq_length": 9}"#,
    );
    cut_to(9);
    put(
        folder.path(),
        "sentence_bert_config.json",
        r#"{"max_seq_length": 512}"#,
    );
    cut_to(POSITIONS);
}

#[test]
fn a_text_that_says_nothing_is_all_zeros() {
    let folder = folder_of(&Tiny::new(PLAIN, 3));
    let model = load(folder.path()).unwrap();
    let vectors = model.embed(&["", "log", " \n"]).unwrap();
    assert_eq!(vectors[0], [0.0; HIDDEN]);
    assert_ne!(vectors[1], [0.0; HIDDEN]);
    assert_eq!(vectors[2], [0.0; HIDDEN]);
    assert!(model.embed(&[]).unwrap().is_empty());
}

#[test]
fn a_model_gets_the_prompts_it_was_trained_with() {
    let tiny = Tiny::new(PLAIN, 5);
    let folder = folder_of(&tiny);
    let prompts = json!({ "prompts": { "query": "query: ", "document": "passage: " } });
    put(
        folder.path(),
        "config_sentence_transformers.json",
        prompts.to_string(),
    );
    let model = load(folder.path()).unwrap();
    let passage = model.embed(&["log"]).unwrap();
    assert_close(
        &passage[0],
        &tiny.vector(&ids(&["passage", ":", "log"])),
        "passage",
    );
    let query = model.embed_query("log").unwrap();
    assert_close(&query, &tiny.vector(&ids(&["query", ":", "log"])), "query");
    assert_eq!(model.embed_query("").unwrap(), [0.0; HIDDEN]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test's own folder")]
fn a_missing_file_is_named() {
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        let folder = folder_of(&Tiny::new(PLAIN, 3));
        std::fs::remove_file(folder.path().join(name)).unwrap();
        let error = read(folder.path()).unwrap_err();
        assert_eq!(error.code, Code::NotFound);
        assert_eq!(error.message, format!("no file `{name}`"));
        assert!(error.hint.unwrap().contains("`model.safetensors`"));
    }
}

#[test]
fn a_folder_that_cannot_work_says_why() {
    let with = |name: &str, value: Value| {
        let mut config = Tiny::new(PLAIN, 3).config();
        config[name] = value;
        config.to_string().into_bytes()
    };
    let mut thinner = Tiny::new(PLAIN, 3);
    thinner.tensors.remove("encoder.layer.1.output.dense.bias");
    let mut misshapen = Tiny::new(PLAIN, 3);
    let words = "embeddings.word_embeddings.weight";
    misshapen.tensors.get_mut(words).unwrap().0 = vec![HIDDEN, WORDS.len()];
    let whole = Tiny::new(PLAIN, 3).safetensors();
    let more_words = [WORDS, &["more", "words"]].concat();
    let nan = |mut tiny: Tiny| {
        let bias = "embeddings.LayerNorm.bias";
        tiny.tensors.get_mut(bias).unwrap().1[0] = f32::NAN;
        tiny.safetensors()
    };
    for (name, bytes, part) in [
        ("config.json", b"{".to_vec(), "`config.json` cannot be used"),
        ("config.json", b"{}".to_vec(), "missing field `vocab_size`"),
        (
            "config.json",
            with("model_type", json!("t5")),
            "`model_type` `t5`",
        ),
        (
            "config.json",
            with("hidden_act", json!("swish")),
            "`hidden_act` `swish`",
        ),
        (
            "config.json",
            with("position_embedding_type", json!("relative_key")),
            "`position_embedding_type` `relative_key`",
        ),
        (
            "config.json",
            with("num_attention_heads", json!(5)),
            "hidden size 32 cannot be divided by 5 heads",
        ),
        (
            "config.json",
            with("max_position_embeddings", json!(2)),
            "2 tokens",
        ),
        (
            "config.json",
            with("num_hidden_layers", json!(3)),
            "encoder.layer.2",
        ),
        (
            "1_Pooling/config.json",
            br#"{"pooling_mode_max_tokens": true}"#.to_vec(),
            "`1_Pooling/config.json` cannot be used",
        ),
        (
            "tokenizer.json",
            b"[]".to_vec(),
            "`tokenizer.json` cannot be used",
        ),
        (
            "tokenizer.json",
            tiny::tokenizer(&more_words).to_string().into_bytes(),
            "it has 19 words, but `config.json` declares 17",
        ),
        (
            "model.safetensors",
            whole[..whole.len() / 2].to_vec(),
            "`model.safetensors`",
        ),
        (
            "model.safetensors",
            thinner.safetensors(),
            "encoder.layer.1.output.dense.bias",
        ),
        (
            "model.safetensors",
            misshapen.safetensors(),
            "word_embeddings",
        ),
        ("model.safetensors", nan(Tiny::new(PLAIN, 3)), "not finite"),
    ] {
        let folder = folder_of(&Tiny::new(PLAIN, 3));
        put(folder.path(), name, &bytes);
        let embedded = load(folder.path()).and_then(|it| it.embed(&["log"]));
        let error = embedded.unwrap_err();
        assert_eq!(error.code, Code::InvalidInput, "{error}");
        assert!(error.message.contains(part), "{part}: {error}");
        let path = folder.path().to_str().unwrap();
        assert!(!error.to_string().contains(path), "{error}");
    }
}

#[test]
fn a_model_is_known_by_its_name_and_by_what_is_in_it() {
    let id = |tiny: &Tiny, file: Option<(&str, &str)>| {
        let around = tempfile::tempdir().unwrap();
        let folder = around.path().join("tiny-bert");
        tiny.write(&folder);
        if let Some((name, text)) = file {
            put(&folder, name, text);
        }
        read(&folder).unwrap().model().id.clone()
    };
    let plain = id(&Tiny::new(PLAIN, 3), None);
    assert!(plain.starts_with("local:tiny-bert:32:"), "{plain}");
    assert_eq!(id(&Tiny::new(PLAIN, 3), None), plain);
    let pooling = (
        "1_Pooling/config.json",
        r#"{"pooling_mode_cls_token": true}"#,
    );
    let trained = ("sentence_bert_config.json", r#"{"max_seq_length": 8}"#);
    for other in [
        id(&Tiny::new(PLAIN, 4), None),
        id(&Tiny::new(PLAIN, 3), Some(pooling)),
        id(&Tiny::new(PLAIN, 3), Some(trained)),
    ] {
        assert_ne!(other, plain);
    }
}

#[test]
fn a_lazy_model_says_that_it_is_loading_and_then_answers() {
    let tiny = Tiny::new(PLAIN, 3);
    let folder = folder_of(&tiny);
    let lazy = Lazy::new(read(folder.path()).unwrap());
    assert_eq!(lazy.model().dimensions, HIDDEN);
    let error = lazy.embed(&["log"]).unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.contains("is loading"), "{error}");
    lazy.wait().unwrap();
    let expected = tiny.vector(&ids(&["log"]));
    assert_close(&lazy.embed(&["log"]).unwrap()[0], &expected, "passage");
    assert_close(&lazy.embed_query("log").unwrap(), &expected, "query");
}

#[test]
fn a_lazy_model_that_cannot_load_says_why_every_time() {
    let folder = folder_of(&Tiny::new(PLAIN, 3));
    put(folder.path(), "model.safetensors", b"broken");
    let lazy = Lazy::new(read(folder.path()).unwrap());
    for _ in 0..2 {
        let error = lazy.wait().unwrap_err();
        assert_eq!(error.code, Code::InvalidInput);
        let again = lazy.embed(&["log"]).unwrap_err();
        assert_eq!(again.message, error.message);
        assert!(again.message.contains("`model.safetensors`"), "{again}");
        assert!(again.hint.is_some());
    }
}
