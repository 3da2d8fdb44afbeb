//! What doors ask of the kernel itself: who calls, tokens, the log as it is shown, and the index.

use crate::{
    AuthorView, Caller, EmbeddingStatus, Engine, EventView, NewToken, Principal, ProcessMemory,
    Proof, Reindexed, Restored, Scope, TokenView, Transferred, Waited,
};
use kenning_audit::Roots;
use kenning_core::{Did, Result, Space};
use serde_json::Value;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

/// Calls.
impl Engine {
    /// Runs a call: see [`kenning_kernel::Kernel::patiently`].
    pub fn patiently<T>(&self, waited: Waited, work: impl FnOnce() -> T) -> T {
        self.kernel.patiently(waited, work)
    }

    /// Whether the caller may change things, and this process may write.
    ///
    /// # Errors
    /// Denied when either may not.
    pub fn may_write(&self, caller: &Caller) -> Result<()> {
        self.kernel.may_write(caller)
    }

    /// How long this has been open, and what memory it holds.
    pub fn process(&self) -> (Duration, ProcessMemory) {
        self.kernel.process()
    }

    /// What time it is, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.kernel.log().clock().now_ms()
    }
}

/// Tokens.
impl Engine {
    /// Makes a token and returns it. This is the only time that it can be seen.
    pub fn create_token(&self, caller: &Caller, new: NewToken) -> Result<String> {
        self.kernel.create_token(caller, new)
    }

    /// The tokens that hold.
    pub fn tokens(&self, caller: &Caller) -> Result<Vec<TokenView>> {
        self.kernel.tokens(caller)
    }

    /// Takes a token back.
    pub fn revoke_token(&self, caller: &Caller, id: &str) -> Result<()> {
        self.kernel.revoke_token(caller, id)
    }

    /// Whose token this is.
    pub fn authenticate(&self, token: &str) -> Result<Principal> {
        self.kernel.authenticate(token)
    }
}

/// The log, as it is shown and proved.
impl Engine {
    /// The spaces of the store.
    pub fn spaces(&self) -> Result<Vec<Space>> {
        self.kernel.log().store().spaces()
    }

    /// What is in the database beside the tables and indexes that belong there, one sentence each.
    pub fn schema_faults(&self) -> Result<Vec<String>> {
        self.kernel.log().store().schema_faults()
    }

    /// Whose key signs here.
    pub fn did(&self) -> &Did {
        self.kernel.log().signer().did()
    }

    /// Calls `wake` after appends that the store hears of, and gives how often to look for others.
    pub fn on_append(&self, wake: Arc<dyn Fn() + Send + Sync>) -> Duration {
        self.kernel.on_append(wake)
    }

    /// Events of the caller's space after a place in the log.
    pub fn events_after(&self, caller: &Caller, seq: u64, limit: usize) -> Result<Vec<EventView>> {
        self.kernel.events_after(caller, seq, limit)
    }

    /// A number that changes when the log of the caller's space is no continuation of what it was: after
    /// a failover that lost events, or a restore.
    pub fn log_generation(&self, caller: &Caller) -> Result<u64> {
        self.kernel.log_generation(caller)
    }

    /// Where the log of the caller's space stands.
    pub fn roots(&self, caller: &Caller) -> Result<Roots> {
        self.kernel.roots(caller)
    }

    /// Proves that an event, by its place or its id, is in the log as it is now.
    pub fn prove_inclusion(&self, caller: &Caller, event: &str) -> Result<Proof> {
        self.kernel.prove_inclusion(caller, event)
    }

    /// Proves that the log with `old` events is a prefix of the log as it is now.
    pub fn prove_consistency(&self, caller: &Caller, old: u64) -> Result<Proof> {
        self.kernel.prove_consistency(caller, old)
    }

    /// Signs what the log is now.
    pub fn checkpoint(&self, caller: &Caller) -> Result<Value> {
        self.kernel.checkpoint(caller)
    }

    /// Signs what the log of every space is now.
    pub fn checkpoint_all(&self, caller: &Caller) -> Result<Vec<Value>> {
        self.kernel.checkpoint_all(caller)
    }

    /// The keys that sign the logs of this store.
    pub fn authors(&self, caller: &Caller) -> Result<Vec<AuthorView>> {
        self.kernel.authors(caller)
    }

    /// Lets a key sign the logs of this store, or confirms one that added itself. Gives the spaces.
    pub fn add_author(&self, caller: &Caller, author: &str) -> Result<Vec<Space>> {
        self.kernel.add_author(caller, author)
    }

    /// Lets a key sign no longer. Gives the spaces.
    pub fn revoke_author(&self, caller: &Caller, author: &str) -> Result<Vec<Space>> {
        self.kernel.revoke_author(caller, author)
    }

    /// Replaces this node's key.
    pub fn rotate_key(&self, caller: &Caller) -> Result<Did> {
        self.kernel.rotate_key(caller)
    }

    /// Lets the log go on after a clock that was wrong.
    pub fn reset_clock(&self, caller: &Caller) -> Result<()> {
        self.kernel.reset_clock(caller)
    }
}

/// The index.
impl Engine {
    /// What makes vectors, and what is waiting.
    pub fn embedding_status(&self, caller: &Caller) -> Result<EmbeddingStatus> {
        self.kernel.embedding_status(caller)
    }

    /// Brings the kept index of a space up to date. Answers whether there was anything to do.
    pub fn renew_index(&self, caller: &Caller) -> Result<bool> {
        self.kernel.renew_index(caller)
    }

    /// Cuts every text into passages again and embeds what has no vector yet. Searches go on meanwhile.
    pub fn reindex(&self, caller: &Caller) -> Result<Reindexed> {
        self.kernel.reindex(caller)
    }
}

/// Everything, out and in.
impl Engine {
    /// Writes a consistent copy of every space.
    pub fn backup(&self, caller: &Caller, out: &mut dyn Write) -> Result<Transferred> {
        caller.principal.require(Scope::Admin)?;
        self.kernel
            .dump(caller, &caller.principal.space, || (), out)
    }

    /// Puts a backup into an empty store and verifies the whole: see [`kenning_kernel::Kernel::restore`].
    pub fn restore(
        &self,
        caller: &Caller,
        keep_tokens: bool,
        open: impl Fn() -> Result<Box<dyn BufRead + Send>>,
    ) -> Result<Restored> {
        let verify = |space: &Space| self.verify(space, &|_| ());
        self.kernel.restore(caller, keep_tokens, verify, open)
    }

    /// Writes the nodes and edges of the caller's space, one JSON object a line.
    pub fn export(&self, caller: &Caller, out: &mut dyn Write) -> Result<Transferred> {
        self.kernel.export(caller, out)
    }

    /// Reads what [`Engine::export`] wrote: see [`kenning_kernel::Kernel::import`].
    pub fn import(&self, caller: &Caller, input: &mut dyn BufRead) -> Result<Transferred> {
        self.kernel.import(caller, input, &*self.omi)
    }
}
