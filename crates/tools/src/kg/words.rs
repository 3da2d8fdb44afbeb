//! What the graph tools share: their envelope, their enums and their clamped numbers.

use crate::Call;
use kenning_core::{Error, Result};
use kenning_engine::kg::{DocType, Document, DocumentName, Incoming, Outgoing, Status, Suggestion};
use kenning_engine::timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// An answer. The envelope adds `success` and the time it took.
#[derive(Debug, Serialize)]
pub struct KgReply<D, M = Map<String, Value>> {
    /// What was asked for.
    pub data: D,
    /// About the answer.
    pub metadata: M,
}

impl<D> KgReply<D> {
    /// Without metadata.
    pub(crate) fn new(data: D) -> Self {
        Self {
            data,
            metadata: Map::new(),
        }
    }

    /// Adds a field to the metadata.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(name.to_owned(), value.into());
        self
    }
}

impl<D: JsonSchema, M> JsonSchema for KgReply<D, M> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "KgReply".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let data = generator.subschema_for::<D>();
        json_schema!({
            "type": "object",
            "properties": {
                "success": { "type": "boolean" },
                "data": data,
                "error": { "type": "string" },
                "metadata": { "type": "object" },
            },
            "required": ["success"],
        })
    }
}

/// The members of an object, for answers whose schema says no more than that.
pub(crate) fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// A number without a range in its schema: whatever is given is clamped, and a listing is read by every model.
pub(crate) fn number_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "number" })
}

/// A number that is clamped to `MIN` and `MAX`, as in the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clamped<const MIN: u32, const MAX: u32> {
    number: u32,
    is_clamped: bool,
}

impl<const MIN: u32, const MAX: u32> Clamped<MIN, MAX> {
    /// The number.
    pub(crate) fn get(self) -> usize {
        self.number as usize
    }

    /// The number; says so beside the answer if it is not the one that was asked for.
    pub(crate) fn get_with_remark(self, ctx: &Call<'_>, field: &str) -> usize {
        if self.is_clamped {
            ctx.remark(format!(
                "`{field}` is from {MIN} to {MAX}: {} is used",
                self.number
            ));
        }
        self.get()
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Clamped<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        if number.is_nan() {
            return Err(de::Error::custom("not a number"));
        }
        let asked = number.floor();
        let number = asked.clamp(f64::from(MIN), f64::from(MAX));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is between two u32"
        )]
        Ok(Self {
            number: number as u32,
            is_clamped: number != asked,
        })
    }
}

impl<const MIN: u32, const MAX: u32> JsonSchema for Clamped<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Clamped{MIN}To{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": MIN, "maximum": MAX })
    }
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $inner:ident, $field:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub(crate) $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                $inner::parse(&text).map(Self).ok_or_else(|| {
                    let words = $inner::ALL.map(|it| it.as_str()).join(", ");
                    de::Error::custom(format!("`{text}` is not a {}: one of {words}", $field))
                })
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": $inner::ALL.map(|it| it.as_str()) })
            }
        }
    };
}

word! {
    /// The type of a document.
    TypeWord, DocType, "node type"
}
word! {
    /// The status of a document.
    StatusWord, Status, "node status"
}

/// The types that the contract knows.
pub(crate) const NODE_TYPES: [&str; 8] = [
    "concept",
    "technical",
    "feature",
    "primitive",
    "service",
    "guide",
    "standard",
    "integration",
];

/// The numbers of a vector, with the contract's error texts.
pub(crate) fn vector_of(value: &Value) -> Result<Vec<f32>> {
    let Value::Array(items) = value else {
        return Err(Error::invalid("Vector must be an array").hint("of numbers"));
    };
    let numbers = items.iter().enumerate().map(|(i, item)| {
        let number = item.as_f64().map(|it| it as f32);
        number.filter(|it| it.is_finite()).ok_or_else(|| {
            Error::invalid(format!(
                "Invalid vector element at index {i}: must be a finite number"
            ))
            .hint("numbers of single precision")
        })
    });
    numbers.collect()
}

/// A required text with the contract's own error, whatever value was given.
#[derive(Clone, Debug, Default)]
pub struct Required(Option<Value>);

impl Required {
    /// The text, or the contract's error.
    pub(crate) fn text(self, complaint: &str) -> Result<String> {
        match self.0 {
            Some(Value::String(text)) if !text.is_empty() => Ok(text),
            _ => Err(Error::invalid(complaint)),
        }
    }

    /// The value as given.
    pub(crate) fn value(self) -> Option<Value> {
        self.0
    }
}

impl<'de> Deserialize<'de> for Required {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Some(Value::deserialize(deserializer)?)))
    }
}

impl JsonSchema for Required {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// The error for a missing or wrong query.
pub(crate) const QUERY_REQUIRED: &str = "Query parameter is required and must be a string";

/// The longer form of the error before there is a graph.
pub(crate) fn run_generation_first(error: Error) -> Error {
    if error.message == "Database not initialized" {
        let message = "Database not initialized. Run graph generation first.".to_owned();
        return Error { message, ..error };
    }
    error
}

/// A link of a document.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OutgoingLink {
    /// The id of the document it leads to; of a broken link what it says.
    pub target: String,
    /// Its relation.
    #[serde(rename = "type")]
    pub relation: String,
    /// What the reader sees.
    pub text: String,
    /// The heading or block it leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// The line of the file.
    pub line: u32,
    /// Set for a link that leads nowhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broken: bool,
    /// What was perhaps meant by a broken link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl From<Outgoing> for OutgoingLink {
    fn from(link: Outgoing) -> Self {
        Self {
            target: link.target,
            relation: link.relation,
            text: link.text,
            heading: link.heading,
            line: link.line,
            broken: link.broken.is_some(),
            suggestion: link.broken.flatten(),
        }
    }
}

/// A link to a document.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct IncomingLink {
    /// The id of the document that has it.
    pub source: String,
    /// The same, for clients that look for it here.
    pub target: String,
    /// Always `backlink`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its relation as a link of its document.
    pub relation: String,
    /// What the reader sees.
    pub text: String,
}

impl From<Incoming> for IncomingLink {
    fn from(link: Incoming) -> Self {
        Self {
            target: link.source.clone(),
            source: link.source,
            kind: "backlink",
            relation: link.relation,
            text: link.text,
        }
    }
}

/// The links of a document, in both directions.
pub(crate) type Links = (Option<Vec<OutgoingLink>>, Option<Vec<IncomingLink>>);

/// The links as they are shown, if they were requested.
pub(crate) fn links(document: &mut Document) -> Links {
    match document.links.take() {
        Some((out, into)) => (
            Some(out.into_iter().map(OutgoingLink::from).collect()),
            Some(into.into_iter().map(IncomingLink::from).collect()),
        ),
        None => (None, None),
    }
}

/// The type of a document, or the kind of another node.
pub(crate) fn type_of(document: &Document) -> String {
    let doc_type = document.doc_type.map(DocType::as_str);
    doc_type
        .unwrap_or_else(|| document.kind.as_str())
        .to_owned()
}

/// The status of a document; other nodes are `active`.
pub(crate) fn status_of(document: &Document) -> String {
    document
        .status
        .unwrap_or(Status::Active)
        .as_str()
        .to_owned()
}

/// When a document was last changed.
pub(crate) fn modified(document: &Document) -> String {
    timestamp(document.modified_ms)
}

/// A document, by its names.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NodeName {
    id: String,
    title: String,
    path: String,
}

impl From<DocumentName> for NodeName {
    fn from(it: DocumentName) -> Self {
        Self {
            id: it.id,
            title: it.title,
            path: it.path,
        }
    }
}

/// A link that somebody could make.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SuggestedLink {
    #[serde(flatten)]
    node: NodeName,
    /// `mentioned-by`, `mentions` or `similar`.
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    context: String,
}

impl From<Suggestion> for SuggestedLink {
    fn from(it: Suggestion) -> Self {
        Self {
            node: it.document.into(),
            reason: it.reason.as_str(),
            line: it.line,
            context: it.context,
        }
    }
}

/// At most this many bytes of text in one reply: about 20,000 tokens.
pub(crate) const CONTENT_BYTES_MAX: usize = 60_000;

/// How the documents match a query: `words`, `meaning` if none has every word, `none`.
pub(crate) fn matched(ctx: &Call<'_>, by_meaning: bool, is_any: bool) -> &'static str {
    match (by_meaning, is_any) {
        (_, false) => "none",
        (false, true) => "words",
        (true, true) => {
            ctx.remark(
                "no document has every word of the query: these are the nearest in meaning, and may \
                 have nothing to do with it",
            );
            "meaning"
        }
    }
}
