//! A card for each document: everything that is known of it but its text.
//!
//! Cards are derived, and stored beside the nodes so that a graph of thousands of documents is loaded
//! quickly. A card is written in the transaction that writes its node. It also has the stamp of the
//! file, which is the shadow cache: a file with the same stamp need not be read again.

use kenning_core::{Hash, NodeId};
use kenning_entities::ontology::Ontology;
use kenning_graph::{DocType, Document, Fault, Link, Status};
use kenning_kernel::{Bucket, roots};
use kenning_vault::Stamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::str::FromStr;
use std::sync::LazyLock;

/// The cards of the vault's notes, by the keys of their nodes.
pub(crate) const VAULT_CARDS: Bucket<Card> = Bucket::new("graph/cards/vault");

/// The cards of a project's documents, by their paths.
pub(crate) fn bucket(project: &str) -> Bucket<Card> {
    Bucket::named(format!("graph/cards/{}", short(project)))
}

/// Where the card of a document is.
pub(crate) fn bucket_of(path: &str, project: &str) -> Bucket<Card> {
    match path.starts_with("vault:") {
        true => VAULT_CARDS,
        false => bucket(project),
    }
}

/// A short name of a project: its path is too long for a key.
pub(crate) fn short(project: &str) -> String {
    Hash::of(project.as_bytes()).to_string()[..32].to_owned()
}

/// The version of the parser: when it changes, all files are read again.
const READING: u32 = 4;

/// Everything that is known of a document but its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// The version of the parser that made it.
    #[serde(rename = "v", default)]
    reading: u32,
    #[serde(rename = "n", with = "text")]
    pub node: NodeId,
    /// The folder that its id is relative to; empty for the whole project.
    #[serde(rename = "r", default, skip_serializing_if = "String::is_empty")]
    pub(crate) root: String,
    #[serde(rename = "t")]
    pub(crate) title: String,
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub(crate) heading: Option<String>,
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(rename = "y", with = "word")]
    pub(crate) doc_type: DocType,
    #[serde(rename = "s", with = "word")]
    pub(crate) status: Status,
    #[serde(rename = "g", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<String>,
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) aliases: Vec<String>,
    #[serde(rename = "w")]
    pub(crate) words: u64,
    /// Where the content begins, after the frontmatter.
    #[serde(rename = "b", default)]
    pub(crate) body_start: usize,
    #[serde(rename = "l", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) links: Vec<CardLink>,
    /// The anchors in it.
    #[serde(rename = "p", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) anchors: Vec<String>,
    /// What is wrong with the file: line and message.
    #[serde(rename = "f", default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<(u32, String)>,
    /// The hash of the whole file.
    #[serde(rename = "c", with = "text")]
    pub content: Hash,
    /// Size, content changed, file changed, file id.
    #[serde(rename = "m")]
    stamp: (u64, i64, i64, u64),
    /// When the file was last read, in milliseconds since 1970.
    #[serde(rename = "k")]
    pub(crate) cached_ms: u64,
}

/// A link, without the words around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CardLink {
    #[serde(rename = "t")]
    pub(crate) target: String,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub(crate) fragment: Option<String>,
    #[serde(rename = "x", default, skip_serializing_if = "String::is_empty")]
    pub(crate) text: String,
    #[serde(rename = "r", default, skip_serializing_if = "String::is_empty")]
    relation: String,
    #[serde(rename = "w", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_wiki: bool,
    /// Whether its target does not look like a document: then it counts only if it leads to one.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_other: bool,
    #[serde(rename = "l")]
    pub(crate) line: u32,
}

impl CardLink {
    /// Whether it is a link to a missing heading of its own document.
    pub(crate) const fn is_lost_within(&self) -> bool {
        self.target.is_empty()
    }
}

/// The relation of most links, which is not stored.
const LINK: &str = "link";

impl CardLink {
    fn of(link: &Link, is_other: bool) -> Self {
        let relation = link.relation.as_str();
        Self {
            target: link.target.clone(),
            fragment: link.fragment.clone(),
            text: link.text.clone(),
            relation: if relation == LINK {
                String::new()
            } else {
                relation.to_owned()
            },
            is_wiki: link.is_wiki,
            is_other,
            line: link.line,
        }
    }

    pub(crate) fn relation(&self) -> &str {
        if self.relation.is_empty() {
            LINK
        } else {
            &self.relation
        }
    }
}

impl Card {
    /// The card of a text, as the file `path` below `root`. Its node is not known yet.
    pub(crate) fn of(document: Document, root: &str, path: &str, content: Hash) -> Self {
        let in_docs = beneath(path, root);
        let heading = document.heading.as_ref();
        let name = || match heading.filter(|_| kenning_graph::is_generic(in_docs)) {
            // `README` does not say what it is about.
            Some(heading) => heading.clone(),
            // The title of a vault's note is its file name.
            None if root == roots::VAULT.name => kenning_graph::stem_of_path(in_docs).to_owned(),
            None => kenning_graph::title_of_path(in_docs),
        };
        let links = document.links.iter().map(|it| CardLink::of(it, false));
        let others = document.others.iter().map(|it| CardLink::of(it, true));
        let lost = document.lost.iter().map(|it| CardLink::of(it, false));
        let is_vault = root == roots::VAULT.name;
        let is_type_of_entity = is_vault || names_entity_type(&document);
        let is_own_word = |message: &str| {
            is_type_of_entity && message.starts_with(Fault::TYPE)
                || is_vault && message.starts_with(Fault::STATUS)
        };
        Self {
            reading: READING,
            links: links.chain(others).chain(lost).collect(),
            node: NodeId([0; 16]),
            root: root.to_owned(),
            title: document.title.clone().unwrap_or_else(name),
            heading: document.heading,
            description: document.description,
            doc_type: document
                .doc_type
                .unwrap_or_else(|| kenning_graph::type_of_path(in_docs)),
            status: document.status.unwrap_or(Status::Active),
            tags: document.tags,
            aliases: document.aliases,
            words: document.word_count,
            anchors: document.anchors,
            body_start: document.body_start,
            faults: document
                .faults
                .into_iter()
                .filter(|it| !is_own_word(&it.message))
                .map(|fault| (fault.line, fault.message))
                .collect(),
            content,
            stamp: (0, 0, 0, 0),
            cached_ms: 0,
        }
    }

    /// Whether no name of the document changes with this card.
    pub(crate) fn is_called_like(&self, other: &Self) -> bool {
        self.title == other.title
            && self.heading == other.heading
            && self.aliases == other.aliases
            && self.root == other.root
            && self.node == other.node
    }

    /// Whether the current parser would read its text differently.
    pub(crate) fn is_outdated(&self) -> bool {
        !self.is_read_as_now()
    }

    pub(crate) fn is_of_vault(&self) -> bool {
        self.root == roots::VAULT.name
    }

    /// The stamp of the file when it was read.
    pub(crate) fn stamp(&self) -> Stamp {
        let (size_bytes, modified_ns, changed_ns, inode) = self.stamp;
        Stamp {
            size_bytes,
            modified_ns,
            changed_ns,
            inode,
        }
    }

    pub(crate) fn put_stamp(&mut self, stamp: Stamp, now_ms: u64) {
        let Stamp {
            size_bytes,
            modified_ns,
            changed_ns,
            inode,
        } = stamp;
        self.stamp = (size_bytes, modified_ns, changed_ns, inode);
        self.cached_ms = now_ms;
    }

    /// When the file was last written, in milliseconds since 1970; 0 if that is not known.
    pub fn modified_ms(&self) -> u64 {
        self.stamp().modified_ms()
    }

    /// Whether the current parser made it; otherwise its file is read again.
    pub(crate) const fn is_read_as_now(&self) -> bool {
        self.reading == READING
    }

    /// Whether a file with this stamp certainly has the content of the card. A file that was changed
    /// just before it was read may have been changed again in the same moment.
    pub(crate) fn is_surely_of(&self, stamp: Stamp) -> bool {
        const DOUBTFUL_NS: i64 = 2_000_000_000;
        let looked_ns = i64::try_from(self.cached_ms)
            .unwrap_or(i64::MAX)
            .saturating_mul(1_000_000);
        self.is_read_as_now()
            && self.stamp() == stamp
            && stamp
                .modified_ns
                .max(stamp.changed_ns)
                .saturating_add(DOUBTFUL_NS)
                < looked_ns
    }
}

/// Whether `type:` is the type of an entity, such as `Person`. In a vault it may be anything, and so
/// may `status:`: people have their own words there.
fn names_entity_type(document: &Document) -> bool {
    static ONTOLOGY: LazyLock<Ontology> = LazyLock::new(Ontology::default);
    let word = document.frontmatter.get("type").and_then(Value::as_str);
    word.is_some_and(|it| ONTOLOGY.kind(it).is_some())
}

/// A path relative to its folder.
pub(crate) fn beneath<'a>(path: &'a str, root: &str) -> &'a str {
    if root == roots::VAULT.name {
        return path.strip_prefix("vault:").unwrap_or(path);
    }
    match path.strip_prefix(root) {
        Some(rest) if !root.is_empty() => rest.trim_start_matches('/'),
        _ => path,
    }
}

/// Types with a text form.
mod text {
    use super::{Deserialize, Deserializer, FromStr, Serializer};
    use kenning_core::{Hash, NodeId};
    use std::fmt::Display;

    pub(super) trait Text: Display + Sized {
        fn read(text: &str) -> Option<Self>;
    }

    impl Text for NodeId {
        fn read(text: &str) -> Option<Self> {
            Self::from_str(text).ok()
        }
    }

    impl Text for Hash {
        fn read(text: &str) -> Option<Self> {
            Self::from_hex(text)
        }
    }

    pub(super) fn serialize<T: Text, S: Serializer>(it: &T, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(it)
    }

    pub(super) fn deserialize<'de, T: Text, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        T::read(&text).ok_or_else(|| serde::de::Error::custom("malformed"))
    }
}

/// Enums of the contract.
mod word {
    use super::{Deserialize, Deserializer, DocType, Serializer, Status};

    pub(super) trait Word: Sized {
        fn write(&self) -> &'static str;
        fn read(text: &str) -> Option<Self>;
    }

    impl Word for DocType {
        fn write(&self) -> &'static str {
            self.as_str()
        }
        fn read(text: &str) -> Option<Self> {
            Self::parse(text)
        }
    }

    impl Word for Status {
        fn write(&self) -> &'static str {
            self.as_str()
        }
        fn read(text: &str) -> Option<Self> {
            Self::parse(text)
        }
    }

    pub(super) fn serialize<T: Word, S: Serializer>(it: &T, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(it.write())
    }

    pub(super) fn deserialize<'de, T: Word, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        T::read(&text).ok_or_else(|| serde::de::Error::custom("unknown word"))
    }
}
