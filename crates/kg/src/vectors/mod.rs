//! Vectors that callers bring.
//!
//! A collection is a namespace and a dimension. A vector is a node (its metadata, its text, its
//! history), a row of numbers in its collection, and an entry of that collection in memory, which
//! follows the log. `upsert` writes them; `search` finds them, by a vector, or by a text together
//! with the documents; `answer` orders the results.

mod answer;
mod database_index;
mod query;
mod search;
mod upsert;

pub use query::{FoundVectors, Keywords, VECTOR_RESULTS_MAX, VectorHit, VectorQuery};
pub(crate) use upsert::count_merged;
pub use upsert::{NewVector, UpsertedVector};

use crate::Kg;
use kenning_core::{Error, Kind, Result};
use kenning_kernel::{Caller, Scope, VECTOR_ACCOUNTS};
use kenning_search::of_collection_name;
use kenning_store::{Node, NodeFilter, ReadTx};
use serde_json::{Map, Value};

/// The most numbers that a vector may have.
pub const VECTOR_DIMENSIONS_MAX: usize = 4_096;

/// The default namespace.
pub const NAMESPACE_DEFAULT: &str = "default";

/// The namespace of the documents.
const NAMESPACE_DOCUMENTS: &str = "documents";

/// The longest name of a vector or a namespace.
const NAME_CHARS_MAX: usize = 256;

/// One collection of callers' vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorNamespace {
    /// The namespace.
    pub namespace: String,
    /// How many numbers its vectors have.
    pub dimensions: usize,
    /// How many vectors there are.
    pub vectors: u64,
}

impl Kg {
    /// Every collection of callers' vectors that has any, in the order of names.
    pub fn vector_namespaces(&self, caller: &Caller) -> Result<Vec<VectorNamespace>> {
        caller.principal.require(Scope::Read)?;
        self.kernel.log().read(&caller.principal.space, namespaces)
    }
}

fn namespaces(tx: &dyn ReadTx) -> Result<Vec<VectorNamespace>> {
    let accounts = VECTOR_ACCOUNTS.list_readable(tx)?;
    let mut found: Vec<VectorNamespace> = accounts
        .iter()
        .filter_map(|(name, account)| {
            let (namespace, dimensions) = of_collection_name(name)?;
            Some(VectorNamespace {
                namespace: namespace.to_owned(),
                dimensions,
                vectors: account.count,
            })
        })
        .filter(|it| it.vectors > 0)
        .collect();
    found.sort_by(|a, b| (&a.namespace, a.dimensions).cmp(&(&b.namespace, b.dimensions)));
    Ok(found)
}

/// How many vectors can be searched: those of callers, and one for each document.
fn total(tx: &dyn ReadTx) -> Result<u64> {
    let documents = NodeFilter {
        kinds: vec![Kind::Document],
        ..NodeFilter::default()
    };
    let callers: u64 = namespaces(tx)?.iter().map(|it| it.vectors).sum();
    Ok(tx.count_nodes(&documents)? + callers)
}

/// The key of a vector's node. A slash in the namespace is escaped, so that no two names share a key.
fn key(namespace: &str, id: &str) -> String {
    format!("{}/{id}", namespace.replace('/', "%2F"))
}

/// Letters and digits of any script, and `_ - : . /`.
fn is_name(text: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || "_-:./".contains(c);
    !text.is_empty() && text.chars().count() <= NAME_CHARS_MAX && text.chars().all(is_allowed)
}

/// The namespace, or the default.
fn namespace_or_default(namespace: Option<&str>) -> Result<&str> {
    match namespace {
        None | Some("") => Ok(NAMESPACE_DEFAULT),
        Some(name) if is_name(name) => Ok(name),
        Some(name) => Err(not_a_name("Namespace", name)),
    }
}

fn not_a_name(what: &str, name: &str) -> Error {
    let shown: String = name.chars().take(NAME_CHARS_MAX).collect();
    Error::invalid(format!("{what} {shown:?} is not a valid name")).hint(format!(
        "use 1 to {NAME_CHARS_MAX} letters, digits and `_ - : . /`"
    ))
}

fn text_prop<'a>(props: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    props.get(name).and_then(Value::as_str)
}

/// The collection of a node's vector: its namespace and dimension.
fn place_of(node: &Node) -> Option<(&str, usize)> {
    let dimensions = node.props.get("dimensions").and_then(Value::as_u64)?;
    let namespace = text_prop(&node.props, "namespace")?;
    Some((namespace, usize::try_from(dimensions).ok()?))
}
