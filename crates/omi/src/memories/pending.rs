//! Writes that wait for a second key.
//!
//! With `security.enable_consensus`, a memory that is called `foundational`, or that takes the place of such
//! a one, is not stored at once, whether a tool, an import or a peer brings it: it is kept aside, where no search and no
//! tool sees it, until a second key signs it. That key is another than the proposer's, and one that this store knows.

use super::proposed::{
    BUCKET, PENDING_MAX, PendingWrite, has_foundational, imported_json, parse, parse_held, tags_of,
    to_json,
};
use super::store::{NewMemory, Prepared, StoredMemory, store};
use super::{Memory, find_memory, held, memory_id};
use crate::Omi;
use kenning_audit::{Draft, Signer, current_agent, is_text_signed_by};
use kenning_core::{Did, Error, Hash, Kind, Result, Space};
use kenning_kernel::{Caller, Raw, Scope};
use kenning_store::{CREATED_ELSEWHERE_MS, ReadTx, When};
use kenning_text::hex;
use serde_json::{Map, Value, json};
use std::sync::Arc;

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
        let (rows, held) = self
            .kernel
            .log()
            .read(space, |tx| Ok((BUCKET.list(tx)?, held::list(tx)?)))?;
        // Peers write such rows too; one that is malformed hides no other.
        let rows = rows
            .iter()
            .filter_map(|(id, row)| parse(space, id, &row.0).ok());
        let held = held.iter().map(|(id, row)| parse_held(space, id, &row.0));
        let mut writes = held.collect::<Result<Vec<_>>>()?;
        writes.extend(rows);
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
            let mut stored = Vec::new();
            if let Some(entry) = &write.entry {
                let foreign = held::event_of(&named, entry)?;
                held::remove(tx, &named)?;
                let nodes = kernel.restate(tx, &foreign)?.into_iter();
                let memories = nodes.filter(|it| it.kind == Kind::Memory);
                stored.extend(memories.map(|node| StoredMemory {
                    id: memory_id(&node),
                    duplicate: false,
                    is_pending: false,
                }));
            } else if write.lines.is_empty() {
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
            // After what it says is stored: until then a peer can see that these memories were proposed.
            BUCKET.unset(tx, &named)?;
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
            match find(&**tx, &space, &named)?.entry {
                Some(_) => held::reject(tx, &named)?,
                None => BUCKET.unset(tx, &named)?,
            }
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

fn find(tx: &dyn ReadTx, space: &Space, id: &str) -> Result<PendingWrite> {
    if let Some(row) = held::get(tx, id)? {
        return parse_held(space, id, &row.0);
    }
    let row = BUCKET.get(tx, id)?.ok_or_else(|| {
        Error::not_found("pending write", id).hint("`kenning omi pending list` shows all")
    })?;
    parse(space, id, &row.0)
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
