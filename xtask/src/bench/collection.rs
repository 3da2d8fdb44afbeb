//! A judged test collection: documents, questions, and which document answers which.

use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// A folder with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`.
pub(super) struct Collection {
    pub(super) name: String,
    /// Id and text.
    pub(super) documents: Vec<(String, String)>,
    /// Id and text.
    pub(super) questions: Vec<(String, String)>,
    /// Question to documents with their gains, in the order of the file.
    pub(super) judged: HashMap<String, Vec<(String, f64)>>,
}

impl Collection {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let name = folder.file_name().context("the collection has no name")?;
        let documents = lines(&folder.join("corpus.jsonl"))?
            .into_iter()
            .map(|line| {
                let title = line["title"].as_str().unwrap_or_default();
                let text = format!("{title} {}", line["text"].as_str().unwrap_or_default());
                (id_of(&line), text.trim().to_owned())
            });
        let questions = lines(&folder.join("queries.jsonl"))?;
        let questions = questions.into_iter().map(|line| {
            (
                id_of(&line),
                line["text"].as_str().unwrap_or_default().to_owned(),
            )
        });
        let mut judged: HashMap<String, Vec<(String, f64)>> = HashMap::new();
        for line in read(&folder.join("qrels.tsv"))?.lines().skip(1) {
            let mut fields = line.split('\t');
            if let (Some(question), Some(document), Some(gain)) =
                (fields.next(), fields.next(), fields.next())
            {
                let gain: f64 = gain.trim().parse()?;
                let list = judged.entry(question.to_owned()).or_default();
                list.push((document.to_owned(), gain));
            }
        }
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            documents: documents.collect(),
            questions: questions.collect(),
            judged,
        })
    }
}

pub(super) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn lines(path: &Path) -> Result<Vec<Value>> {
    read(path)?
        .lines()
        .map(|it| serde_json::from_str(it).with_context(|| path.display().to_string()))
        .collect()
}

fn id_of(value: &Value) -> String {
    value["_id"].as_str().unwrap_or_default().to_owned()
}

/// Normalized discounted cumulative gain and recall of the first ten.
pub(super) fn judge(found: &[String], judged: &[(String, f64)]) -> (f64, f64) {
    let gains: HashMap<&str, f64> = judged
        .iter()
        .map(|judgement| (judgement.0.as_str(), judgement.1))
        .collect();
    let discounted = |gains: &[f64]| -> f64 {
        let places = gains.iter().zip(0_u32..);
        places
            .map(|(gain, place)| gain / f64::from(place + 2).log2())
            .sum()
    };
    let first: Vec<f64> = found
        .iter()
        .take(10)
        .map(|it| gains.get(it.as_str()).copied().unwrap_or(0.0))
        .collect();
    let mut ideal: Vec<f64> = gains.values().copied().collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    ideal.truncate(10);
    let hits = first.iter().filter(|it| **it > 0.0).count();
    (
        discounted(&first) / discounted(&ideal).max(1e-9),
        hits as f64 / gains.len().max(1) as f64,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_order_is_one_and_a_worse_one_less() {
        let judged = [("a".to_owned(), 2.0), ("b".to_owned(), 1.0)];
        let found = |ids: &[&str]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(judge(&found(&["a", "b", "c"]), &judged), (1.0, 1.0));
        let (worse, recall) = judge(&found(&["c", "b", "a"]), &judged);
        assert!(worse < 1.0 && (recall - 1.0).abs() < 1e-9);
        assert_eq!(judge(&found(&["c"]), &judged), (0.0, 0.0));
    }
}
