//! Storing and removing vectors.

use super::{
    VECTOR_DIMENSIONS_MAX, is_name, key, namespace_or_default, not_a_name, place_of, total,
};
use crate::Kg;
use kenning_audit::foreign::Merged;
use kenning_audit::{Draft, Passages, Tx};
use kenning_core::{Error, Hash, Kind, Result};
use kenning_kernel::{Caller, Scope, VECTOR_ACCOUNTS};
use kenning_search::{
    Account, VECTOR_DELETED, collection_name, facet, of_collection_name, passages, row_props,
};
use kenning_store::{Node, Vector, When};
use serde_json::{Map, Value, json};

/// The most bytes of a vector's metadata.
const METADATA_BYTES_MAX: usize = 1 << 20;

/// Storing more vectors than this at once may take longer than a call usually waits.
const LONG_FROM: usize = 20;

/// A vector to store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewVector {
    /// Its id in the namespace.
    pub id: String,
    /// The namespace; the default if none is given.
    pub namespace: Option<String>,
    /// The numbers, all of them finite.
    pub numbers: Vec<f32>,
    /// Its metadata, which replaces the old one.
    pub metadata: Map<String, Value>,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpsertedVector {
    /// Its id.
    pub id: String,
    /// The namespace.
    pub namespace: String,
    /// How many numbers it has.
    pub dimensions: usize,
    /// Whether it has metadata.
    pub has_metadata: bool,
    /// Whether there was one with this id.
    pub was_update: bool,
}

impl Kg {
    /// Stores a vector, and returns how many can be searched.
    pub fn upsert_vector(&self, caller: &Caller, new: NewVector) -> Result<(UpsertedVector, u64)> {
        let mut put = self.upsert_vectors(caller, vec![new])?;
        let total = self.kernel.log().read(&caller.principal.space, total)?;
        let put = put.pop();
        Ok((
            put.ok_or_else(|| Error::internal("no vector was put"))?,
            total,
        ))
    }

    /// Stores vectors, all of them or none.
    pub fn upsert_vectors(
        &self,
        caller: &Caller,
        new: Vec<NewVector>,
    ) -> Result<Vec<UpsertedVector>> {
        caller.principal.require(Scope::Write)?;
        let checked = new.into_iter().map(Checked::of);
        let checked = checked.collect::<Result<Vec<_>>>()?;
        let has_text = checked.iter().any(Checked::has_text);
        let is_long = checked.len() > LONG_FROM;
        let space = &caller.principal.space;
        let put_all = move |tx: &mut Tx<'_>| {
            let put = checked.into_iter().map(|it| put(tx, it));
            put.collect::<Result<Vec<_>>>()
        };
        let put = if is_long {
            self.kernel.log().write_long(space, put_all)?
        } else {
            self.kernel.log().write(space, put_all)?
        };
        if has_text {
            self.kernel.embed_later(space);
        }
        Ok(put)
    }

    /// Removes a vector with everything that belongs to it; false if there was none.
    pub fn delete_vector(
        &self,
        caller: &Caller,
        namespace: Option<&str>,
        id: &str,
    ) -> Result<bool> {
        caller.principal.require(Scope::Destroy)?;
        let namespace = namespace_or_default(namespace)?.to_owned();
        let id = id.to_owned();
        self.kernel.log().write(&caller.principal.space, move |tx| {
            let node = tx.node_by_key("", Kind::Vector, &key(&namespace, &id), When::Now)?;
            let Some(node) = node else { return Ok(false) };
            let dimensions = place_of(&node).map_or(0, |it| it.1);
            let collection = collection_name(&namespace, dimensions);
            tx.remove_vector(&collection, &node.id.to_string())?;
            tx.remove_node(node.id)?;
            let account = Account::read(&**tx, &collection)?;
            let account = Account {
                count: account.count.saturating_sub(1),
                removed_seq: tx.next_seq(),
            };
            VECTOR_ACCOUNTS.set(tx, &collection, &account)?;
            let data = json!({ "id": id, "namespace": namespace, "dimensions": dimensions });
            tx.record(VECTOR_DELETED, data)?;
            Ok(true)
        })
    }
}

/// Brings the accounts of collections up to date with vectors that came from a peer.
pub(crate) fn count_merged(tx: &mut Tx<'_>, merged: &Merged) -> Result<()> {
    for (collection, change) in &merged.vectors {
        if of_collection_name(collection).is_none() {
            continue;
        }
        let account = Account::read(&**tx, collection)?;
        let count = account.count + change.n_added;
        let account = Account {
            count: count.saturating_sub(change.n_removed),
            // The event that applied the page is among the last ones.
            removed_seq: match change.n_removed {
                0 => account.removed_seq,
                _ => tx.next_seq() - 1,
            },
        };
        VECTOR_ACCOUNTS.set(tx, collection, &account)?;
    }
    Ok(())
}

/// A vector that may be stored.
struct Checked {
    id: String,
    namespace: String,
    numbers: Vec<f32>,
    metadata: Map<String, Value>,
    passages: Passages,
}

impl Checked {
    fn of(new: NewVector) -> Result<Self> {
        let NewVector {
            id,
            namespace,
            numbers,
            metadata,
        } = new;
        if id.is_empty() {
            return Err(Error::invalid("ID cannot be empty").hint("give the vector a name"));
        }
        if !is_name(&id) {
            return Err(not_a_name("ID", &id));
        }
        let namespace = namespace_or_default(namespace.as_deref())?.to_owned();
        check_numbers(&numbers)?;
        let metadata_bytes = serde_json::to_vec(&metadata).map_or(0, |it| it.len());
        if metadata_bytes > METADATA_BYTES_MAX {
            return Err(Error::too_large(format!(
                "`metadata`: {metadata_bytes} bytes are more than the {METADATA_BYTES_MAX} that may \
                 belong to a vector"
            ))
            .hint("keep the text as a note, and its `path` here"));
        }
        let mut checked = Self {
            id,
            namespace,
            numbers,
            metadata,
            passages: Passages::default(),
        };
        if checked.has_text() {
            checked.passages = passages(checked.text("title"), checked.text("content")).into();
        }
        Ok(checked)
    }

    fn text(&self, name: &str) -> &str {
        super::text_prop(&self.metadata, name).unwrap_or_default()
    }

    fn has_text(&self) -> bool {
        !self.text("title").is_empty() || !self.text("content").is_empty()
    }

    fn props(&self, now_ms: u64) -> Map<String, Value> {
        let bytes: Vec<u8> = self
            .numbers
            .iter()
            .flat_map(|it| it.to_le_bytes())
            .collect();
        let mut props = Map::new();
        props.insert("id".to_owned(), self.id.as_str().into());
        props.insert("namespace".to_owned(), self.namespace.as_str().into());
        props.insert("dimensions".to_owned(), self.numbers.len().into());
        props.insert("vector".to_owned(), Hash::of(&bytes).to_string().into());
        for name in ["type", "tags"] {
            if let Some(value) = self.metadata.get(name) {
                props.insert(name.to_owned(), value.clone());
            }
        }
        props.insert("metadata".to_owned(), self.metadata.clone().into());
        props.insert(
            "updatedAt".to_owned(),
            kenning_kernel::timestamp(now_ms).into(),
        );
        props
    }
}

/// Numbers that a collection can hold.
pub(super) fn check_numbers(numbers: &[f32]) -> Result<()> {
    if numbers.is_empty() {
        return Err(Error::invalid("Vector cannot be empty")
            .hint(format!("1 to {VECTOR_DIMENSIONS_MAX} numbers")));
    }
    if numbers.len() > VECTOR_DIMENSIONS_MAX {
        return Err(Error::invalid(format!(
            "Vector dimension mismatch: expected at most {VECTOR_DIMENSIONS_MAX}, got {}",
            numbers.len()
        ))
        .hint("use a model with fewer dimensions, or cut the vector"));
    }
    match numbers.iter().position(|it| !it.is_finite()) {
        None => Ok(()),
        Some(at) => Err(Error::invalid(format!(
            "Invalid vector element at index {at}: must be a finite number"
        ))
        .hint("use single-precision numbers")),
    }
}

fn put(tx: &mut Tx<'_>, new: Checked) -> Result<UpsertedVector> {
    let key = key(&new.namespace, &new.id);
    let dimensions = new.numbers.len();
    let before = tx.node_by_key("", Kind::Vector, &key, When::Now)?;
    let answer = UpsertedVector {
        id: new.id.clone(),
        namespace: new.namespace.clone(),
        dimensions,
        has_metadata: !new.metadata.is_empty(),
        was_update: before.is_some(),
    };
    let props = new.props(tx.now().ms());
    if let Some(before) = &before {
        let expected = place_of(before).map_or(0, |it| it.1);
        if expected != dimensions {
            return Err(Error::invalid(format!(
                "Vector dimension mismatch: expected {expected}, got {dimensions}"
            ))
            .hint(format!(
                "`{}` in namespace `{}` has {expected}; choose another id or namespace",
                new.id, new.namespace
            )));
        }
        if is_same(before, &props) {
            return Ok(answer);
        }
    }
    let collection = collection_name(&new.namespace, dimensions);
    let node = tx.put_node(Draft {
        kind: Kind::Vector,
        project: String::new(),
        key,
        title: new.text("title").to_owned(),
        body: new.text("content").to_owned(),
        props,
    })?;
    tx.put_hashed_passages(node.id, &new.passages)?;
    tx.put_vector(Vector {
        collection: collection.clone(),
        id: node.id.to_string(),
        model: "caller".to_owned(),
        props: row_props(&facets(&new.metadata)),
        numbers: new.numbers,
        seq: 0,
    })?;
    if !answer.was_update {
        let account = Account::read(&**tx, &collection)?;
        let account = Account {
            count: account.count + 1,
            ..account
        };
        VECTOR_ACCOUNTS.set(tx, &collection, &account)?;
    }
    let operation = if answer.was_update {
        "updated"
    } else {
        "inserted"
    };
    tx.record(
        "VectorUpserted",
        json!({
            "id": answer.id, "namespace": answer.namespace, "dimensions": dimensions,
            "operation": operation,
        }),
    )?;
    Ok(answer)
}

/// Whether nothing but the time would change.
fn is_same(before: &Node, props: &Map<String, Value>) -> bool {
    let without_time = |props: &Map<String, Value>| {
        let mut props = props.clone();
        props.remove("updatedAt");
        props
    };
    without_time(&before.props) == without_time(props)
}

/// What a filter may ask for.
fn facets(metadata: &Map<String, Value>) -> Vec<u64> {
    let own = metadata.iter().filter_map(|(name, it)| facet(name, it));
    let tags = metadata.get("tags").and_then(Value::as_array);
    let tags = tags
        .into_iter()
        .flatten()
        .filter_map(|it| facet("tags", it));
    own.chain(tags).collect()
}
