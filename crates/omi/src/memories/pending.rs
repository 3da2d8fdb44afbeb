//! Writes that wait for a second key.
//!
//! With `security.enable_consensus`, a memory that is called `foundational`, or that takes the place of such
//! a one, is not stored at once, whether a tool or an import brings it: it is kept aside, where no search and no tool sees it, until a second key
//! signs it. That key is another than the proposer's, and one that this store knows.

use super::store::{NewMemory, Prepared, StoredMemory, store};
use super::{Memory, find_memory, memory_id};
use crate::Omi;
use kenning_audit::{Draft, Signer, current_agent, is_text_signed_by};
use kenning_core::{Did, Error, Hash, Kind, Result, Space};
use kenning_kernel::{Bucket, Caller, Raw, Scope, timestamp};
use kenning_memory::types::MemoryType;
use kenning_store::{CREATED_ELSEWHERE_MS, ReadTx, When};
use kenning_text::hex;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Writes that wait, by their ids. Signed: whoever changes a row changes what will be stored.
const BUCKET: Bucket<Raw> = Bucket::new("omi/pending");

/// The tag that makes a memory foundational.
pub const FOUNDATIONAL: &str = "foundational";

/// So many writes wait at most in a space.
const PENDING_MAX: usize = 1_000;

/// A write that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingWrite {
    /// Its name.
    pub id: String,
    /// Who proposed it: the agent's key, else the node's.
    pub proposed_by: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What is to be stored.
    pub memories: Vec<NewMemory>,
    /// Lines of an import, if it came by one: they are read in place of the memories.
    pub lines: Vec<Value>,
    /// What the second key signs.
    pub text_to_sign: String,
}

impl Omi {
    /// Keeps memories aside if they need a second key. Gives the name of the write.
    pub(super) fn propose(&self, caller: &Caller, new: &[NewMemory]) -> Result<Option<String>> {
        // Where the file has a mistake, only what might need a second key is refused.
        let mistake = match self.kernel.memory_config() {
            Ok(config) if !config.needs_second_key => return Ok(None),
            Ok(_) => None,
            Err(error) => Some(error),
        };
        let space = &caller.principal.space;
        let is_needed = self.kernel.log().read(space, |tx| {
            for memory in new {
                if is_foundational(tx, memory)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })?;
        if !is_needed {
            return Ok(None);
        }
        if let Some(mistake) = mistake {
            return Err(mistake);
        }
        let memories: Vec<Value> = new.iter().map(to_json).collect();
        self.keep_aside(caller, memories, Vec::new()).map(Some)
    }

    /// Whether a node of an import waits: a foundational memory, or what would change one.
    pub(crate) fn import_needs_second_key(&self, caller: &Caller, draft: &Draft) -> Result<bool> {
        if draft.kind != Kind::Memory {
            return Ok(false);
        }
        let mistake = match self.kernel.memory_config() {
            Ok(config) if !config.needs_second_key => return Ok(false),
            Ok(_) => None,
            Err(error) => Some(error),
        };
        let known = self.kernel.log().read(&caller.principal.space, |tx| {
            tx.node_by_key(&draft.project, draft.kind, &draft.key, When::Now)
        })?;
        let is_same = known.as_ref().is_some_and(|known| {
            let own = |props: &Map<String, Value>| {
                let mut props = props.clone();
                props.remove(CREATED_ELSEWHERE_MS);
                props
            };
            (&known.title, &known.body, own(&known.props))
                == (&draft.title, &draft.body, own(&draft.props))
        });
        let was = known.is_some_and(|it| has_foundational(&Memory::of(&it).tags));
        let is_held = !is_same && (was || has_foundational(&tags_of(&draft.props)));
        match mistake {
            Some(mistake) if is_held => Err(mistake),
            _ => Ok(is_held),
        }
    }

    /// Keeps lines of an import aside. The same lines wait once.
    pub(crate) fn propose_import(&self, caller: &Caller, lines: Vec<Value>) -> Result<String> {
        for waiting in self.pending_writes(caller)? {
            if waiting.lines == lines {
                return Ok(waiting.id);
            }
        }
        let memories = lines
            .iter()
            .filter_map(|it| it.get("node"))
            .map(imported_json);
        let memories = memories.collect();
        self.keep_aside(caller, memories, lines)
    }

    fn keep_aside(
        &self,
        caller: &Caller,
        memories: Vec<Value>,
        lines: Vec<Value>,
    ) -> Result<String> {
        let space = &caller.principal.space;
        let node = self.kernel.log().signer().did().clone();
        let proposed_by = current_agent().unwrap_or(node).to_string();
        self.kernel.log().write(space, move |tx| {
            if BUCKET.list(&**tx)?.len() >= PENDING_MAX {
                return Err(
                    Error::conflict(format!("{PENDING_MAX} writes wait for a second key"))
                        .hint("confirm or reject some: `kenning omi pending list`"),
                );
            }
            let at_ms = tx.now().ms();
            let mut row = json!({ "memories": memories, "by": proposed_by, "at_ms": at_ms });
            if !lines.is_empty() {
                row["lines"] = lines.into();
            }
            let bytes = row.to_string().into_bytes();
            let id = format!("pending_{}", &Hash::of(&bytes).to_string()[..16]);
            BUCKET.set(tx, &id, &Raw(bytes))?;
            let data = json!({ "id": id, "memories": memories.len() });
            tx.record("WriteProposed", data)?;
            Ok(id)
        })
    }

    /// The writes that wait for a second key, oldest first.
    pub fn pending_writes(&self, caller: &Caller) -> Result<Vec<PendingWrite>> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let rows = self.kernel.log().read(space, |tx| BUCKET.list(tx))?;
        let mut writes = Vec::new();
        for (id, row) in rows {
            writes.push(parse(space, &id, &row.0)?);
        }
        writes.sort_by(|a, b| (a.at_ms, &a.id).cmp(&(b.at_ms, &b.id)));
        Ok(writes)
    }

    /// Stores what waited, because a second key signed it.
    pub fn confirm_write(
        &self,
        caller: &Caller,
        id: &str,
        key: &Did,
        signature: &[u8],
    ) -> Result<Vec<StoredMemory>> {
        self.kernel.may_write(caller)?;
        if !self.kernel.may_countersign(caller, key)? {
            return Err(Error::denied(format!("{key} may not countersign here")).hint(
                "use the key of an agent (`kenning agent-key new`), or of another author of the log",
            ));
        }
        let (space, named) = (caller.principal.space.clone(), id.to_owned());
        let (key, signature) = (key.clone(), signature.to_vec());
        let kernel = Arc::clone(&self.kernel);
        let stored = self.kernel.log().write(&space.clone(), move |tx| {
            let write = find(&**tx, &space, &named)?;
            if write.proposed_by == key.as_str() {
                return Err(
                    Error::denied("the key that proposed a write cannot confirm it")
                        .hint("let another key sign it"),
                );
            }
            if !is_text_signed_by(&key, write.text_to_sign.as_bytes(), &signature) {
                return Err(Error::denied(format!(
                    "the signature is not of {key}, or not of the write `{named}`"
                ))
                .hint("sign the text that `kenning omi pending show` prints"));
            }
            BUCKET.unset(tx, &named)?;
            let mut stored = Vec::new();
            if write.lines.is_empty() {
                for memory in write.memories {
                    stored.push(store(tx, Prepared::new(memory))?);
                }
            } else {
                let nodes = kernel.import_lines(tx, &write.lines)?;
                stored.extend(nodes.iter().map(|node| StoredMemory {
                    id: memory_id(node),
                    duplicate: false,
                    is_pending: false,
                }));
            }
            let ids: Vec<&str> = stored.iter().map(|it| it.id.as_str()).collect();
            let data = json!({
                "id": named, "memories": ids, "proposedBy": write.proposed_by,
                "confirmedBy": key.as_str(), "signature": hex::encode(&signature),
            });
            tx.record("WriteConfirmed", data)?;
            Ok(stored)
        })?;
        let space = &caller.principal.space;
        self.link_alike_later(space);
        self.kernel.embed_later(space);
        Ok(stored)
    }

    /// The same, signed with the key of an agent on this machine.
    pub fn confirm_write_as(
        &self,
        caller: &Caller,
        id: &str,
        agent: &str,
    ) -> Result<Vec<StoredMemory>> {
        let signer: Signer = self.kernel.agent_signer(caller, agent)?;
        let space = &caller.principal.space;
        let write = self.kernel.log().read(space, |tx| find(tx, space, id))?;
        let signature = signer.sign_text(write.text_to_sign.as_bytes());
        self.confirm_write(caller, id, signer.did(), &signature)
    }

    /// Drops what waited.
    pub fn reject_write(&self, caller: &Caller, id: &str) -> Result<()> {
        self.kernel.may_write(caller)?;
        let (space, named) = (caller.principal.space.clone(), id.to_owned());
        self.kernel.log().write(&space.clone(), move |tx| {
            find(&**tx, &space, &named)?;
            BUCKET.unset(tx, &named)?;
            tx.record("WriteRejected", json!({ "id": named })).map(drop)
        })
    }
}

fn is_foundational(tx: &dyn ReadTx, memory: &NewMemory) -> Result<bool> {
    if has_foundational(&memory.tags) {
        return Ok(true);
    }
    let Some(old) = &memory.supersedes else {
        return Ok(false);
    };
    let old = find_memory(tx, &memory.projects(), old)?;
    Ok(old.is_some_and(|node| has_foundational(&Memory::of(&node).tags)))
}

/// `#Foundational` and ` foundational ` are the same tag, as in the graph.
fn has_foundational(tags: &[String]) -> bool {
    tags.iter().any(|it| {
        let plain = it.trim().trim_start_matches('#').trim().to_lowercase();
        plain == FOUNDATIONAL
    })
}

fn tags_of(props: &Map<String, Value>) -> Vec<String> {
    let tags = props.get("tags").and_then(Value::as_array);
    let tags = tags.into_iter().flatten().filter_map(Value::as_str);
    tags.map(str::to_owned).collect()
}

/// A memory of an import, for those who look at what waits.
fn imported_json(node: &Value) -> Value {
    let props = node["props"].as_object().cloned().unwrap_or_default();
    let memory_type = props.get("memory_type").and_then(Value::as_str);
    json!({
        "content": node["body"].as_str().unwrap_or_default(),
        "memory_type": memory_type.unwrap_or(MemoryType::default().as_str()),
        "confidence": props.get("confidence"), "related_to": [], "supersedes": null,
        "memory_id": props.get("memory_id"), "tags": tags_of(&props),
        "session_id": props.get("session_id"),
    })
}

fn find(tx: &dyn ReadTx, space: &Space, id: &str) -> Result<PendingWrite> {
    let row = BUCKET.get(tx, id)?.ok_or_else(|| {
        Error::not_found("pending write", id).hint("`kenning omi pending list` shows all")
    })?;
    parse(space, id, &row.0)
}

fn parse(space: &Space, id: &str, bytes: &[u8]) -> Result<PendingWrite> {
    let read = || {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let memories = value.get("memories")?.as_array()?.iter();
        Some(PendingWrite {
            id: id.to_owned(),
            proposed_by: value.get("by")?.as_str()?.to_owned(),
            at_ms: value.get("at_ms")?.as_u64()?,
            memories: memories.map(from_json).collect::<Option<_>>()?,
            lines: match value.get("lines") {
                Some(lines) => lines.as_array()?.clone(),
                None => Vec::new(),
            },
            text_to_sign: format!(
                "kenning confirms a write\n{space}\n{id}\n{}\n",
                Hash::of(bytes)
            ),
        })
    };
    read().ok_or_else(|| Error::corrupt(format!("the pending write `{id}` is malformed")))
}

fn to_json(memory: &NewMemory) -> Value {
    json!({
        "content": memory.content, "memory_type": memory.memory_type.as_str(),
        "confidence": memory.confidence, "related_to": memory.related_to,
        "supersedes": memory.supersedes, "memory_id": memory.memory_id, "tags": memory.tags,
        "session_id": memory.session_id, "project": memory.project, "source": memory.source,
        "said_ms": memory.said_ms,
    })
}

fn from_json(value: &Value) -> Option<NewMemory> {
    let text = |field: &str| value[field].as_str().map(str::to_owned);
    let texts = |field: &str| {
        let list = value[field].as_array()?.iter();
        list.map(|it| it.as_str().map(str::to_owned))
            .collect::<Option<Vec<String>>>()
    };
    Some(NewMemory {
        content: text("content")?,
        memory_type: value["memory_type"].as_str()?.parse().ok()?,
        confidence: value["confidence"].as_f64(),
        related_to: texts("related_to")?,
        supersedes: text("supersedes"),
        memory_id: text("memory_id"),
        tags: texts("tags")?,
        session_id: text("session_id"),
        project: text("project"),
        source: text("source"),
        said_ms: value["said_ms"].as_u64(),
    })
}

impl PendingWrite {
    /// As JSON, for people and other programs.
    pub fn to_json(&self) -> Value {
        let memories: Vec<Value> = self.memories.iter().map(to_json).collect();
        json!({
            "id": self.id, "proposed_by": self.proposed_by, "proposed_at": timestamp(self.at_ms),
            "memories": memories, "imported": !self.lines.is_empty(),
            "text_to_sign": self.text_to_sign,
        })
    }
}

/// Evidence alone does not change what needs a second key.
pub(super) fn refuse_foundational(tx: &dyn ReadTx, projects: &[String], id: &str) -> Result<()> {
    let tags = find_memory(tx, projects, id)?.map(|it| Memory::of(&it).tags);
    let tags = tags.unwrap_or_default();
    if has_foundational(&tags) {
        return Err(Error::denied(format!(
            "`{id}` is foundational: evidence does not change it without a second key"
        ))
        .hint("store a memory that `supersedes` it, and let a second key confirm that"));
    }
    Ok(())
}
