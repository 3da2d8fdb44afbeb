//! Orders the results, and limits what is shown.

use super::query::{Asked, Candidates, Keywords, VectorHit};
use super::{place_of, text_prop};
use crate::Kg;
use kenning_core::{Kind, NodeId, Result, Space};
use kenning_kernel::roots;
use kenning_search::collection_name;
use kenning_store::{Node, ReadTx, When};
use kenning_text::line::dotted;
use kenning_text::round::{self, Ties};
use serde_json::{Map, Value};

/// The weight of the vector in a hybrid search; the contract's.
const VECTOR_SHARE: f64 = 0.7;

/// The number of fields that are searched for keywords; the contract's.
const KEYWORD_FIELDS: usize = 4;

/// Words up to this length are ignored.
const SHORT_WORD: usize = 2;

/// The most numbers in an answer, and the most bytes of metadata of one result and of all.
const NUMBERS_MAX: usize = 20_000;
const METADATA_BYTES_MAX: usize = 8_000;
const ANSWER_BYTES_MAX: usize = 60_000;

/// Texts of a result are cut to this length.
const TEXT_CHARS_MAX: usize = 1_000;

impl Kg {
    /// The answer, as long as it may be.
    pub(super) fn hits(
        &self,
        tx: &dyn ReadTx,
        space: &Space,
        asked: &Asked<'_>,
        ranked: Vec<Ranked>,
        remarks: &mut Vec<String>,
    ) -> Result<Vec<VectorHit>> {
        let skip = asked.query.skip;
        let n_ranked = ranked.len().saturating_sub(skip);
        let library = self.library_in(space, tx)?;
        let (mut hits, mut n_numbers, mut n_bytes, mut is_cut) = (Vec::new(), 0, 0, false);
        for it in ranked.into_iter().skip(skip) {
            let Some(node) = tx.node(it.node, When::Now)? else {
                continue;
            };
            let vector = if asked.query.include_vectors {
                self.numbers(tx, space, &node)?
            } else {
                None
            };
            let document = library.by_node(node.id);
            let path = document.map_or_else(|| path_of(&node), |it| &it.path);
            let (metadata, was_cut) = shortened(metadata(&node, path));
            n_numbers += vector.as_ref().map_or(0, Vec::len);
            n_bytes += serde_json::to_string(&metadata).map_or(0, |it| it.len());
            if (n_numbers > NUMBERS_MAX || n_bytes > ANSWER_BYTES_MAX) && !hits.is_empty() {
                remarks.push(format!(
                    "the first {} of {n_ranked} results: more would be too long an answer; ask for \
                     fewer, or without `includeVectors`",
                    hits.len()
                ));
                break;
            }
            is_cut |= was_cut;
            hits.push(VectorHit {
                id: document.map_or_else(|| id_of(&node), |it| it.id.clone()),
                namespace: place_of(&node).map(|it| it.0.to_owned()),
                score: it.score,
                keywords: it.keywords,
                metadata,
                vector,
            });
        }
        if is_cut {
            remarks.push("long metadata is shown in part".to_owned());
        }
        Ok(hits)
    }

    fn numbers(&self, tx: &dyn ReadTx, space: &Space, node: &Node) -> Result<Option<Vec<f32>>> {
        if node.kind == Kind::Vector {
            return numbers_of(tx, node);
        }
        self.kernel.table_vector(space, tx, node.id)
    }
}

/// A node with its rank.
pub(super) struct Ranked {
    node: NodeId,
    score: f64,
    keywords: Option<Keywords>,
}

impl Ranked {
    fn order(&self) -> f64 {
        self.keywords.map_or(self.score, |it| it.combined)
    }
}

/// Four digits: more would be noise.
fn rounded(value: f64) -> f64 {
    round::rounded(value, 4, Ties::Away)
}

/// The candidates in the order of the answer.
pub(super) fn ranked(
    tx: &dyn ReadTx,
    asked: &Asked<'_>,
    candidates: &Candidates,
) -> Result<Vec<Ranked>> {
    let words = words(&asked.query.text);
    let mut ranked = Vec::new();
    for (&node, &score) in &candidates.scores {
        if rounded(score) < asked.query.min_score {
            continue;
        }
        let keywords = if asked.query.hybrid {
            let node = tx.node(node, When::Now)?;
            let matched = node.map_or(0.0, |it| keyword_score(&it, &words));
            Some(Keywords {
                score: rounded(matched),
                combined: rounded(VECTOR_SHARE * score + (1.0 - VECTOR_SHARE) * matched),
            })
        } else {
            None
        };
        ranked.push(Ranked {
            node,
            score: rounded(score),
            keywords,
        });
    }
    // Equal scores are ordered by the unrounded value, so that the nearest comes first.
    let exact = |it: &Ranked| candidates.scores.get(&it.node).copied().unwrap_or(0.0);
    ranked.sort_by(|a, b| {
        let by_order = b.order().total_cmp(&a.order());
        let by_exact = exact(b).total_cmp(&exact(a));
        by_order.then(by_exact).then(a.node.cmp(&b.node))
    });
    ranked.truncate(asked.query.limit);
    Ok(ranked)
}

/// The words of a query that count.
fn words(text: &str) -> Vec<String> {
    let words = text.split_whitespace().map(str::to_lowercase);
    words.filter(|it| it.chars().count() > SHORT_WORD).collect()
}

/// The contract's formula: the share of fields and words that match, from 0 to 1.
fn keyword_score(node: &Node, words: &[String]) -> f64 {
    if words.is_empty() {
        return 0.0;
    }
    let own = node.props.get("metadata").and_then(Value::as_object);
    let own = own.unwrap_or(&node.props);
    let tags = own.get("tags").and_then(Value::as_array);
    let tags: Vec<&str> = tags
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let fields: [String; KEYWORD_FIELDS] = [
        node.title.to_lowercase(),
        node.body.to_lowercase(),
        text_prop(own, "description")
            .unwrap_or_default()
            .to_lowercase(),
        tags.join(" ").to_lowercase(),
    ];
    let matches = fields
        .iter()
        .flat_map(|field| words.iter().map(move |word| field.contains(word.as_str())));
    let n_matches = matches.filter(|it| *it).count();
    n_matches as f64 / (words.len() * KEYWORD_FIELDS) as f64
}

/// The numbers of a caller's vector.
pub(super) fn numbers_of(tx: &dyn ReadTx, node: &Node) -> Result<Option<Vec<f32>>> {
    let Some((namespace, dimensions)) = place_of(node) else {
        return Ok(None);
    };
    let name = collection_name(namespace, dimensions);
    Ok(tx.vector(&name, &node.id.to_string())?.map(|it| it.numbers))
}

/// The name that an answer gives a node.
fn id_of(node: &Node) -> String {
    text_prop(&node.props, "id")
        .unwrap_or_else(|| path_of(node))
        .to_owned()
}

/// Where a document is, in the root that its key begins with.
fn path_of(node: &Node) -> &str {
    let root = roots::name_in_key(&node.key).map_or(0, |it| it.len() + 1);
    node.key.get(root..).unwrap_or(&node.key)
}

/// The metadata of a node.
fn metadata(node: &Node, path: &str) -> Map<String, Value> {
    if let Some(Value::Object(own)) = node.props.get("metadata")
        && node.kind == Kind::Vector
    {
        return own.clone();
    }
    let prop = |name: &str| node.props.get(name).cloned();
    Map::from_iter([
        ("title".to_owned(), node.title.as_str().into()),
        ("type".to_owned(), prop("type").unwrap_or(Value::Null)),
        ("path".to_owned(), path.into()),
        (
            "tags".to_owned(),
            prop("tags").unwrap_or_else(|| Value::Array(Vec::new())),
        ),
    ])
}

/// As much metadata as one result may show, and whether it was cut.
fn shortened(metadata: Map<String, Value>) -> (Map<String, Value>, bool) {
    let (mut shown, mut n_bytes, mut is_cut) = (Map::new(), 0, false);
    for (name, value) in metadata {
        let value = match value {
            Value::String(text) if text.chars().nth(TEXT_CHARS_MAX).is_some() => {
                is_cut = true;
                Value::String(dotted(&text, TEXT_CHARS_MAX))
            }
            other => other,
        };
        n_bytes += name.len() + value.to_string().len();
        if n_bytes > METADATA_BYTES_MAX {
            return (shown, true);
        }
        shown.insert(name, value);
    }
    (shown, is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::{Hash, Hlc};
    use serde_json::json;

    fn node(metadata: &Value) -> Node {
        let text = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
        Node {
            id: NodeId([0; 16]),
            kind: Kind::Vector,
            project: String::new(),
            key: "default/a".to_owned(),
            title: text("title"),
            body: text("content"),
            props: Map::from_iter([("metadata".to_owned(), metadata.clone())]),
            created: Hlc::default(),
            updated: Hlc::default(),
            hash: Hash::default(),
            rev: 1,
        }
    }

    #[test]
    fn keywords_count_once_for_each_field_that_has_them() {
        let all =
            json!({ "title": "Rust", "content": "rusty", "description": "RUST", "tags": ["rust"] });
        for (metadata, query, expected) in [
            (json!({}), "rust", 0.0),
            (json!({ "title": "Rust" }), "rust", 0.25),
            (json!({ "title": "Rust rust" }), "rust of it", 0.25),
            (json!({ "tags": ["a", "trust"] }), "RUST", 0.25),
            (json!({ "title": "Rust" }), "rust python", 0.125),
            (all.clone(), "rust", 1.0),
            (all.clone(), "of it", 0.0),
            (all, "", 0.0),
        ] {
            let score = keyword_score(&node(&metadata), &words(query));
            assert!(
                (score - expected).abs() < 1e-9,
                "{metadata} {query}: {score}"
            );
        }
    }

    #[test]
    fn long_metadata_is_cut_and_short_metadata_is_not() {
        let as_map = |value: Value| value.as_object().cloned().unwrap_or_default();
        let short = as_map(json!({ "title": "a", "list": [1, 2], "none": null }));
        assert_eq!(shortened(short.clone()), (short, false));
        let (cut, was_cut) = shortened(as_map(json!({ "title": "é".repeat(5_000), "n": 1 })));
        assert!(was_cut && cut["n"] == 1);
        assert_eq!(
            cut["title"].as_str().map(|it| it.chars().count()),
            Some(1_001)
        );
        let list = as_map(json!({ "title": "a", "list": vec![7; 9_000], "n": 1 }));
        let (cut, was_cut) = shortened(list);
        assert!(was_cut && cut["title"] == "a" && !cut.contains_key("list"));
    }
}
