//! The keys that may sign the logs of this store, and what to do when a key or a clock goes wrong.
//!
//! Every space has its own log. A key belongs to a node and not to a space, so a key is added,
//! revoked and replaced in the logs of all spaces.

use crate::log_query::shown_did;
use crate::{Caller, Doctor, KEY_FILE, Kernel, Scope, read_key};
use kenning_audit::{Author, Signer, Verify};
use kenning_core::{Did, Error, Hash, Result, Space};
use serde_json::json;
use std::collections::BTreeSet;

/// The new key while it replaces the old one.
const NEXT_KEY_FILE: &str = "node.key.next";

/// A key that signs, or signed, events of a space's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorView {
    /// The space.
    pub space: Space,
    /// The key, by the method that is shown.
    pub did: String,
    /// Whether it may sign further events. One that only signed events of version 1, which named no
    /// authors, may not until it is added.
    pub may_sign: bool,
    /// Whether it was revoked.
    pub is_revoked: bool,
    /// Whether it is the log's first author or this node's, or confirmed by one of those.
    pub is_confirmed: bool,
    /// Whether it is this node's.
    pub is_own: bool,
    /// Events that it signed.
    pub n_events: u64,
}

impl Kernel {
    /// The keys that sign the logs of this store.
    pub fn authors(&self, caller: &Caller) -> Result<Vec<AuthorView>> {
        caller.principal.require(Scope::Admin)?;
        let me = self.log.signer().did();
        let method = self.did_method()?;
        let mut found = Vec::new();
        for space in self.log.store().spaces()? {
            let (may_sign, revoked, signed) = self.log.read(&space, |tx| {
                let (may_sign, revoked) = kenning_audit::authors(tx)?;
                Ok((may_sign, revoked, self.survey_authors(&space, tx)?))
            })?;
            let dids = signed.iter().map(|it| &it.did);
            let dids: BTreeSet<&String> = dids.chain(&may_sign).chain(&revoked).collect();
            for did in dids {
                let events = signed.iter().find(|it| it.did == *did);
                found.push(AuthorView {
                    space: space.clone(),
                    may_sign: may_sign.contains(did),
                    is_revoked: revoked.contains(did),
                    is_confirmed: events.is_some_and(|it| it.is_trusted),
                    is_own: did == me.as_str(),
                    n_events: events.map_or(0, |it| it.n_events),
                    did: shown_did(did, &method),
                });
            }
        }
        Ok(found)
    }

    fn survey_authors(&self, space: &Space, tx: &dyn kenning_store::ReadTx) -> Result<Vec<Author>> {
        kenning_audit::survey_authors(tx, &Verify::of(space).by(self.log.signer().did()))
    }

    /// Reports keys that signed this space's log without being confirmed, or after they were revoked.
    pub fn examine_authors(&self, space: &Space, found: &mut Doctor) -> Result<()> {
        let me = self.log.signer().did();
        let method = self.did_method()?;
        let signed = self.log.read(space, |tx| {
            let (may_sign, revoked) = kenning_audit::authors(tx)?;
            // Reading the whole log is worth it only if other keys are named.
            match may_sign.iter().chain(&revoked).all(|it| it == me.as_str()) {
                true => Ok(Vec::new()),
                false => self.survey_authors(space, tx),
            }
        })?;
        for author in signed {
            let did = &shown_did(&author.did, &method);
            if author.signed_after_revocation() {
                found.faults.push(format!(
                    "space {space}: event {} is signed by {did}, who was revoked before \
                     (`kenning audit verify` says more)",
                    author.last_event
                ));
            } else if !author.is_trusted && author.revoked_at.is_none() {
                found.warnings.push(format!(
                    "space {space}: {} events are signed by {did}, which nobody has confirmed: if it is \
                     yours, `kenning audit authors add {did}`, else `kenning audit authors revoke {did}`",
                    author.n_events
                ));
            }
        }
        Ok(())
    }

    /// Adds a key that may sign the logs of this store, or confirms one that added itself. Returns
    /// the spaces.
    pub fn add_author(&self, caller: &Caller, author: &str) -> Result<Vec<Space>> {
        let author = self.author(caller, author)?;
        self.change_authors(|space| {
            let author = author.clone();
            self.log.write(space, move |tx| {
                if tx.revoked_authors().contains(&author) {
                    return Err(Error::conflict(format!("the key {author} was revoked"))
                        .hint("a revoked key stays revoked: give that node a new one"));
                }
                tx.add_author(&author);
                let data = json!({ "author": author.as_str() });
                tx.record("AuthorAdded", data).map(drop)
            })
        })
    }

    /// Revokes a key's right to sign further events. Returns the spaces.
    pub fn revoke_author(&self, caller: &Caller, author: &str) -> Result<Vec<Space>> {
        let author = self.author(caller, author)?;
        if &author == self.log.signer().did() {
            return Err(Error::invalid("this is the key of this node")
                .hint("`kenning audit authors rotate` replaces it; another node can revoke it"));
        }
        let shown = self.show_did(&author)?;
        if !self
            .authors(caller)?
            .iter()
            .any(|it| it.did == shown.as_str())
        {
            return Err(
                Error::not_found("author", shown).hint("`kenning audit authors list` lists them")
            );
        }
        self.change_authors(|space| {
            let author = author.clone();
            self.log.write(space, move |tx| {
                tx.revoke_author(&author);
                let data = json!({ "author": author.as_str() });
                tx.record("AuthorRevoked", data).map(drop)
            })
        })
    }

    /// Replaces the key of this node: the old one signs that the new one takes its place. Every
    /// process with the old key is refused from then on, this one included.
    pub fn rotate_key(&self, caller: &Caller) -> Result<Did> {
        caller.principal.require(Scope::Admin)?;
        self.writable()?;
        let secret = Signer::generate(self.log.random()).secret();
        // A key that a killed run left is used again: some logs may know it already.
        self.data
            .create_new_private(NEXT_KEY_FILE, Hash(secret).to_string().as_bytes())?;
        let next = read_key(&self.data, NEXT_KEY_FILE)?;
        let (new, old) = (next.did().clone(), self.log.signer().did().clone());
        self.change_authors(|space| {
            let (authors, _) = self.log.read(space, kenning_audit::authors)?;
            if authors.contains(&new.to_string()) {
                return Ok(());
            }
            let (new, old) = (new.clone(), old.clone());
            self.log.write(space, move |tx| {
                tx.add_author(&new);
                tx.revoke_author(&old);
                let data = json!({ "from": old.as_str(), "to": new.as_str() });
                tx.record("AuthorRotated", data).map(drop)
            })
        })?;
        let secret = Hash(next.secret()).to_string();
        self.data.write_private(KEY_FILE, secret.as_bytes())?;
        self.data.remove(NEXT_KEY_FILE)?;
        Ok(new)
    }

    /// Lets the log of a space continue at the time of this machine's clock.
    pub fn reset_clock(&self, caller: &Caller) -> Result<()> {
        caller.principal.require(Scope::Admin)?;
        self.writable()?;
        self.log.reset_clock(&caller.principal.space)
    }

    fn author(&self, caller: &Caller, author: &str) -> Result<Did> {
        caller.principal.require(Scope::Admin)?;
        self.writable()?;
        let did = author.parse::<Did>().map_err(|what| {
            Error::invalid(what).hint("`kenning doctor` on the other machine prints its `author`")
        })?;
        Ok(did.as_signed())
    }

    /// Applies a change to every log that has events.
    fn change_authors(&self, change: impl Fn(&Space) -> Result<()>) -> Result<Vec<Space>> {
        let mut changed = Vec::new();
        for space in self.log.store().spaces()? {
            if self.log.roots(&space)?.seq > 0 {
                change(&space)?;
                changed.push(space);
            }
        }
        Ok(changed)
    }
}
