//! Agents with keys of their own.
//!
//! An agent has a name and a key. What is written on its behalf carries its identifier beside the node's
//! (`kenning_audit::on_behalf_of`). Who calls with a token is the agent of the token's name; whoever started the process is
//! the one that `KENNING_AGENT` names. With its key an agent can also countersign: checkpoints, and writes
//! that wait for a second key.
//!
//! Names and identifiers are signed rows of the system's space; secrets are private files in the data
//! directory.

use crate::log_query::shown_did;
use crate::tokens::system_space;
use crate::{Bucket, Caller, CheckpointView, Kernel, Raw, Scope};
use kenning_audit::{Signer, Tx};
use kenning_core::{Did, Error, Hash, Result};
use kenning_store::ReadTx;
use serde_json::{Value, json};

const BUCKET: Bucket<Raw> = Bucket::new("agents");

/// Where the secrets are.
const FOLDER: &str = "agents";

/// The longest name of an agent.
const NAME_BYTES_MAX: usize = 64;

/// An agent that has, or had, a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentView {
    /// Its name.
    pub name: String,
    /// Its key.
    pub did: String,
    /// When the key was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it was revoked.
    pub revoked_ms: Option<u64>,
}

impl AgentView {
    fn to_bytes(&self) -> Vec<u8> {
        json!({ "did": self.did, "created_ms": self.created_ms, "revoked_ms": self.revoked_ms })
            .to_string()
            .into_bytes()
    }

    /// As it is shown to people.
    fn shown(self, method: &str) -> Self {
        let did = shown_did(&self.did, method);
        Self { did, ..self }
    }

    fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self> {
        let read = || {
            let value: Value = serde_json::from_slice(bytes).ok()?;
            Some(Self {
                name: name.to_owned(),
                did: value.get("did")?.as_str()?.to_owned(),
                created_ms: value.get("created_ms")?.as_u64()?,
                revoked_ms: value.get("revoked_ms").and_then(Value::as_u64),
            })
        };
        read().ok_or_else(|| Error::corrupt(format!("the row of the agent `{name}` is malformed")))
    }
}

impl Kernel {
    /// Makes a key for an agent. One whose key was revoked may get another.
    pub fn create_agent_key(&self, caller: &Caller, name: &str) -> Result<AgentView> {
        caller.principal.require(Scope::Admin)?;
        self.writable()?;
        check_name(name)?;
        if let Some(known) = self.find_agent(name)?
            && known.revoked_ms.is_none()
        {
            return Err(Error::conflict(format!(
                "the agent `{name}` has a key: {}",
                known.shown(&self.did_method()?).did
            ))
            .hint("revoke it first: `kenning agent-key revoke`"));
        }
        let signer = Signer::generate(self.log.random());
        let agent = AgentView {
            name: name.to_owned(),
            did: signer.did().to_string(),
            created_ms: self.log.clock().now_ms(),
            revoked_ms: None,
        };
        let folder = self.data.private_subdir(FOLDER)?;
        let secret = Hash(signer.secret()).to_string();
        folder.write_private(&file_of(name), secret.as_bytes())?;
        self.put_agent(caller, agent.clone(), "AgentKeyAdded")?;
        Ok(agent.shown(&self.did_method()?))
    }

    /// Takes the key of an agent back: nothing more is written for it.
    pub fn revoke_agent_key(&self, caller: &Caller, name: &str) -> Result<AgentView> {
        caller.principal.require(Scope::Admin)?;
        self.writable()?;
        check_name(name)?;
        let known = self.find_agent(name)?;
        let mut agent = known.ok_or_else(|| {
            Error::not_found("agent", name).hint("`kenning agent-key list` shows all")
        })?;
        if agent.revoked_ms.is_none() {
            agent.revoked_ms = Some(self.log.clock().now_ms());
            self.put_agent(caller, agent.clone(), "AgentKeyRevoked")?;
        }
        let folder = self.data.private_subdir(FOLDER)?;
        if folder.exists(&file_of(name))? {
            folder.remove(&file_of(name))?;
        }
        Ok(agent.shown(&self.did_method()?))
    }

    fn put_agent(&self, caller: &Caller, agent: AgentView, event: &'static str) -> Result<()> {
        let write = move |tx: &mut Tx<'_>| {
            BUCKET.set(tx, &agent.name, &Raw(agent.to_bytes()))?;
            let data = json!({ "name": agent.name, "did": agent.did });
            tx.record(event, data).map(drop)
        };
        self.with_wait_limit(caller.waited, || self.log.write(&system_space(), write))
    }

    /// The agents that have keys, and those that had.
    pub fn agents(&self, caller: &Caller) -> Result<Vec<AgentView>> {
        caller.principal.require(Scope::Read)?;
        let method = self.did_method()?;
        let read = |tx: &dyn ReadTx| {
            let rows = BUCKET.list(tx)?.into_iter();
            rows.map(|(name, row)| Ok(AgentView::from_bytes(&name, &row.0)?.shown(&method)))
                .collect()
        };
        self.with_wait_limit(caller.waited, || self.log.read(&system_space(), read))
    }

    fn find_agent(&self, name: &str) -> Result<Option<AgentView>> {
        self.log.read(&system_space(), |tx| {
            let row = BUCKET.get(tx, name)?;
            row.map(|it| AgentView::from_bytes(name, &it.0)).transpose()
        })
    }

    /// The agent on whose behalf a call writes, if it has a key.
    ///
    /// # Errors
    /// Denied when its key was revoked.
    pub fn agent_of(&self, caller: &Caller) -> Result<Option<Did>> {
        let named = match &caller.principal.token {
            Some(_) => Some(caller.principal.name.clone()),
            None => (self.environment)("KENNING_AGENT").filter(|it| !it.is_empty()),
        };
        let Some(name) = named else { return Ok(None) };
        if caller.principal.token.is_none() {
            check_name(&name)?;
        }
        match self.find_agent(&name)? {
            Some(agent) if agent.revoked_ms.is_some() => Err(Error::denied(format!(
                "the key of the agent `{name}` was revoked"
            ))
            .hint("give it another one: `kenning agent-key new`")),
            Some(agent) => Ok(agent.did.parse().ok()),
            None if caller.principal.token.is_some() => Ok(None),
            None => Err(Error::invalid(format!(
                "`KENNING_AGENT`: there is no agent `{name}` with a key"
            ))
            .hint("make one: `kenning agent-key new`")),
        }
    }

    /// The key of an agent, from the data directory of this machine.
    pub fn agent_signer(&self, caller: &Caller, name: &str) -> Result<Signer> {
        caller.principal.require(Scope::Admin)?;
        check_name(name)?;
        let known = self.find_agent(name)?.filter(|it| it.revoked_ms.is_none());
        let known = known.ok_or_else(|| {
            Error::not_found("agent", name).hint("`kenning agent-key list` shows all")
        })?;
        let folder = self.data.private_subdir(FOLDER)?;
        let signer = crate::read_key(&folder, &file_of(name))?;
        if signer.did().as_str() != known.did {
            return Err(Error::corrupt(format!(
                "the key file of the agent `{name}` is of another key than the store says"
            ))
            .hint("revoke the key and make a new one"));
        }
        Ok(signer)
    }

    /// Signs a checkpoint with the key of an agent.
    pub fn cosign_as_agent(
        &self,
        caller: &Caller,
        height: Option<u64>,
        name: &str,
    ) -> Result<CheckpointView> {
        let signer = self.agent_signer(caller, name)?;
        self.cosign_with(caller, height, &signer, &format!("kenning/agent/{name}"))
    }

    /// Whether a key may countersign here: that of an agent, or of an author of the caller's log.
    pub fn may_countersign(&self, caller: &Caller, key: &Did) -> Result<bool> {
        let key = &key.as_signed();
        let agents = self.log.read(&system_space(), |tx| BUCKET.list(tx))?;
        for (name, row) in agents {
            let agent = AgentView::from_bytes(&name, &row.0)?;
            if agent.did == key.as_str() {
                return Ok(agent.revoked_ms.is_none());
            }
        }
        let space = &caller.principal.space;
        let (authors, _) = self.log.read(space, kenning_audit::authors)?;
        Ok(authors.iter().any(|it| it == key.as_str()))
    }
}

fn file_of(name: &str) -> String {
    format!("{name}.key")
}

fn check_name(name: &str) -> Result<()> {
    let is_good = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.');
    if name.is_empty()
        || name.len() > NAME_BYTES_MAX
        || name.starts_with('.')
        || !name.bytes().all(is_good)
    {
        return Err(Error::invalid(format!(
            "`{}` is not a name for an agent",
            name.escape_debug()
        ))
        .hint(format!(
            "use 1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` and `.`, not beginning with `.`"
        )));
    }
    Ok(())
}
