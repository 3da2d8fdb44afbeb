//! The table gives what the reference arithmetic gives.

use kenning_embed::{Embedder, Table};
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("golden-ext256.json")).unwrap()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn texts_have_the_same_tokens_and_vectors() {
    let table = Table::built_in();
    for case in golden()["texts"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let ids = table.ids(text);
        let expected: Vec<u16> = serde_json::from_value(case["ids"].clone()).unwrap();
        assert_eq!(ids, expected, "{text}");
        let words: Vec<&str> = ids.iter().map(|&id| table.word(id)).collect();
        assert_eq!(Value::from(words), case["tokens"], "{text}");
        let vector = table.passage(&ids);
        for (number, expected) in vector
            .iter()
            .zip(case["vector_first_8"].as_array().unwrap())
        {
            assert!(
                (f64::from(*number) - expected.as_f64().unwrap()).abs() < 5e-5,
                "{text}"
            );
        }
        let norm = f64::from(dot(&vector, &vector).sqrt());
        assert!(
            (norm - case["norm"].as_f64().unwrap()).abs() < 5e-5,
            "{text}"
        );
    }
}

#[test]
fn pairs_have_the_same_cosine() {
    for case in golden()["pairs"].as_array().unwrap() {
        let texts = [case["a"].as_str().unwrap(), case["b"].as_str().unwrap()];
        let vectors = Table::built_in().embed(&texts).unwrap();
        let cosine = f64::from(dot(&vectors[0], &vectors[1]));
        assert!(
            (cosine - case["cosine"].as_f64().unwrap()).abs() < 5e-5,
            "{texts:?}: {cosine}"
        );
    }
}

#[test]
fn every_word_of_the_table_is_found_by_itself() {
    let table = Table::built_in();
    for id in 0..u16::try_from(table.len()).unwrap() {
        assert_eq!(table.token(table.word(id).as_bytes()), Some(id));
    }
    assert_eq!(table.token(b"no such word in the table"), None);
}

#[test]
fn a_letter_is_the_same_however_it_is_composed() {
    let table = Table::built_in();
    assert_eq!(
        table.ids("nai\u{308}ve cafe\u{301}"),
        table.ids("naïve café")
    );
}

#[test]
fn only_the_first_tokens_of_a_long_text_count() {
    assert_eq!(Table::built_in().ids(&"word ".repeat(2_000)).len(), 512);
}

#[test]
fn a_token_is_like_itself_and_its_kin() {
    let table = Table::built_in();
    let probe = |word: &str| table.probe(table.token(word.as_bytes()).unwrap());
    let (cat, dog, tax) = (probe("cat"), probe("dog"), probe("tax"));
    assert!((cat.similarity(&cat) - 1.0).abs() < 1e-5);
    assert!(cat.similarity(&dog) > cat.similarity(&tax));
}
