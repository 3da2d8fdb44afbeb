//! What transports need of the kernel itself: authentication, tokens, the log, and the index.

use crate::{
    AgentView, AuthorView, Caller, CheckpointView, Choice, Done, EmbeddingStatus, Engine,
    EventView, Imported, LogPage, LogQuery, LogStats, NewPeer, NewToken, OpenConflict, Peer,
    PeerAnswer, PeerMessage, PeerSync, Principal, ProcessMemory, Proof, Reindexed, Restored, Scope,
    SyncStatus, TokenView, Transferred, Waited,
};
use kenning_audit::note::Note;
use kenning_audit::{CheckpointLabel, Roots};
use kenning_core::{Did, Result, Space};
use serde_json::Value;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

/// Running a call.
impl Engine {
    /// Runs a call: see [`kenning_kernel::Kernel::with_wait_limit`].
    pub fn with_wait_limit<T>(&self, waited: Waited, work: impl FnOnce() -> T) -> T {
        self.kernel.with_wait_limit(waited, work)
    }

    /// Checks that the caller may change things, and that this process may write.
    ///
    /// # Errors
    /// Denied if either may not.
    pub fn may_write(&self, caller: &Caller) -> Result<()> {
        self.kernel.may_write(caller)
    }

    /// How long this has been open, and what memory it holds.
    pub fn process(&self) -> (Duration, ProcessMemory) {
        self.kernel.process()
    }

    /// The time, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.kernel.log().clock().now_ms()
    }
}

/// Access tokens.
impl Engine {
    /// Makes a token and returns it. This is the only time that it can be seen.
    pub fn create_token(&self, caller: &Caller, new: NewToken) -> Result<String> {
        self.kernel.create_token(caller, new)
    }

    /// The valid tokens.
    pub fn tokens(&self, caller: &Caller) -> Result<Vec<TokenView>> {
        self.kernel.tokens(caller)
    }

    /// Revokes a token.
    pub fn revoke_token(&self, caller: &Caller, id: &str) -> Result<()> {
        self.kernel.revoke_token(caller, id)
    }

    /// The principal of a token.
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

    /// Everything in the database beside our own tables and indexes, one sentence each.
    pub fn schema_faults(&self) -> Result<Vec<String>> {
        self.kernel.log().store().schema_faults()
    }

    /// The key that signs here.
    pub fn did(&self) -> &Did {
        self.kernel.log().signer().did()
    }

    /// An identifier by the method that is shown (`KENNING_DID_METHOD`).
    pub fn show_did(&self, did: &Did) -> Result<Did> {
        self.kernel.show_did(did)
    }

    /// A peer as other programs see it.
    pub fn peer_json(&self, peer: &Peer) -> Result<Value> {
        self.kernel.peer_json(peer)
    }

    /// Calls `wake` after appends that the store is notified of, and returns how often to check for
    /// others.
    pub fn on_append(&self, wake: Arc<dyn Fn() + Send + Sync>) -> Duration {
        self.kernel.on_append(wake)
    }

    /// Events of the caller's space after a place in the log.
    pub fn events_after(&self, caller: &Caller, seq: u64, limit: usize) -> Result<Vec<EventView>> {
        self.kernel.events_after(caller, seq, limit)
    }

    /// The same, of these types only; gives also the place up to which was read.
    pub fn events_of_types_after(
        &self,
        caller: &Caller,
        seq: u64,
        limit: usize,
        types: &[String],
    ) -> Result<(u64, Vec<EventView>)> {
        self.kernel.events_of_types_after(caller, seq, limit, types)
    }

    /// Checkpoints of the caller's log, newest first, below a height.
    pub fn checkpoints(
        &self,
        caller: &Caller,
        below: Option<u64>,
        limit: usize,
    ) -> Result<Vec<CheckpointView>> {
        self.kernel.checkpoints(caller, below, limit)
    }

    /// Proves that an event is in the log by a checkpoint that is there already.
    pub fn prove_covered_event(&self, caller: &Caller, event: &str) -> Result<Value> {
        self.kernel.prove_covered_event(caller, event)
    }

    /// Events of the caller's space, by what they are.
    pub fn query_log(&self, caller: &Caller, query: &LogQuery) -> Result<LogPage> {
        self.kernel.query_log(caller, query)
    }

    /// The figures of that log that cost nothing to know, however long it is.
    pub fn log_summary(&self, caller: &Caller) -> Result<LogStats> {
        self.kernel.log_summary(caller)
    }

    /// Figures of the log of the caller's space.
    pub fn log_stats(&self, caller: &Caller) -> Result<LogStats> {
        self.kernel.log_stats(caller)
    }

    /// A number that changes when the log of the caller's space is not a continuation of what it was:
    /// after a failover that lost events, or a restore.
    pub fn log_generation(&self, caller: &Caller) -> Result<u64> {
        self.kernel.log_generation(caller)
    }

    /// The roots of the log of the caller's space.
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

    /// Signs what the log is now, under a name. Every call signs anew.
    pub fn create_checkpoint(
        &self,
        caller: &Caller,
        label: CheckpointLabel,
    ) -> Result<CheckpointView> {
        self.kernel.create_checkpoint(caller, label)
    }

    /// A checkpoint of this node as a signed note: of this height, or the newest.
    pub fn checkpoint_note(&self, caller: &Caller, height: Option<u64>) -> Result<Note> {
        self.kernel.checkpoint_note(caller, height)
    }

    /// Adds the signature of somebody else to a checkpoint.
    pub fn add_cosignature(
        &self,
        caller: &Caller,
        height: Option<u64>,
        line: &str,
        key: &Did,
    ) -> Result<CheckpointView> {
        self.kernel.add_cosignature(caller, height, line, key)
    }

    /// Signs a checkpoint with the key of an agent, as a witness does.
    pub fn cosign_as_agent(
        &self,
        caller: &Caller,
        height: Option<u64>,
        name: &str,
    ) -> Result<CheckpointView> {
        self.kernel.cosign_as_agent(caller, height, name)
    }

    /// Proves that an event is in the log as a signed checkpoint says it was.
    pub fn prove_event(&self, caller: &Caller, event: &str) -> Result<Value> {
        self.kernel.prove_event(caller, event)
    }

    /// The last line of an export that can be checked elsewhere, and how many events it covers.
    pub fn export_seal(&self, caller: &Caller) -> Result<(u64, Value)> {
        self.kernel.export_seal(caller)
    }

    /// Signs the current state of the log.
    pub fn checkpoint(&self, caller: &Caller) -> Result<Value> {
        self.kernel.checkpoint(caller)
    }

    /// Signs the current state of every space's log.
    pub fn checkpoint_all(&self, caller: &Caller) -> Result<Vec<Value>> {
        self.kernel.checkpoint_all(caller)
    }

    /// The keys that sign the logs of this store.
    pub fn authors(&self, caller: &Caller) -> Result<Vec<AuthorView>> {
        self.kernel.authors(caller)
    }

    /// Adds a key that may sign the logs of this store, or confirms one that added itself. Returns
    /// the spaces.
    pub fn add_author(&self, caller: &Caller, author: &str) -> Result<Vec<Space>> {
        self.kernel.add_author(caller, author)
    }

    /// Revokes a key. Returns the spaces.
    pub fn revoke_author(&self, caller: &Caller, author: &str) -> Result<Vec<Space>> {
        self.kernel.revoke_author(caller, author)
    }

    /// Replaces this node's key.
    pub fn rotate_key(&self, caller: &Caller) -> Result<Did> {
        self.kernel.rotate_key(caller)
    }

    /// Lets the log continue after a wrong clock.
    pub fn reset_clock(&self, caller: &Caller) -> Result<()> {
        self.kernel.reset_clock(caller)
    }
}

/// Keys of agents.
impl Engine {
    /// Makes a key for an agent.
    pub fn create_agent_key(&self, caller: &Caller, name: &str) -> Result<AgentView> {
        self.kernel.create_agent_key(caller, name)
    }

    /// Takes the key of an agent back.
    pub fn revoke_agent_key(&self, caller: &Caller, name: &str) -> Result<AgentView> {
        self.kernel.revoke_agent_key(caller, name)
    }

    /// The agents that have keys, and those that had.
    pub fn agents(&self, caller: &Caller) -> Result<Vec<AgentView>> {
        self.kernel.agents(caller)
    }

    /// The agent on whose behalf a call writes, if it has a key.
    pub fn agent_of(&self, caller: &Caller) -> Result<Option<Did>> {
        self.kernel.agent_of(caller)
    }
}

/// The index.
impl Engine {
    /// The source of vectors, and what is waiting for one.
    pub fn embedding_status(&self, caller: &Caller) -> Result<EmbeddingStatus> {
        self.kernel.embedding_status(caller)
    }

    /// Brings the stored index of a space up to date; false if there was nothing to do.
    pub fn renew_index(&self, caller: &Caller) -> Result<bool> {
        self.kernel.renew_index(caller)
    }

    /// Cuts every text into passages again and embeds what has no vector yet. Searches go on meanwhile.
    pub fn reindex(&self, caller: &Caller) -> Result<Reindexed> {
        self.kernel.reindex(caller)
    }
}

/// Backups and exports.
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

    /// Erases in restored spaces what a newer backup says was erased since.
    pub fn erase_as_in(
        &self,
        caller: &Caller,
        spaces: &[Space],
        open: impl Fn() -> Result<Box<dyn BufRead + Send>>,
    ) -> Result<u64> {
        let erased = self.kernel.erase_as_in(caller, spaces, open)?;
        Ok(erased.nodes)
    }

    /// Writes the nodes and edges of the caller's space, one JSON object a line.
    pub fn export(&self, caller: &Caller, out: &mut dyn Write) -> Result<Transferred> {
        self.kernel.export(caller, out)
    }

    /// Reads what [`Engine::export`] wrote: see [`kenning_kernel::Kernel::import`].
    pub fn import(&self, caller: &Caller, input: &mut dyn BufRead) -> Result<Imported> {
        self.kernel.import(caller, input, &*self.omi)
    }
}

/// Projects, as the command line names them.
impl Engine {
    /// The id of the caller's project; empty if it works in none.
    pub fn project_of(&self, caller: &Caller) -> Result<String> {
        self.kernel.project_of(caller)
    }

    /// The id of a project that somebody named by its id, its name, its remote or its path.
    pub fn find_project(&self, caller: &Caller, named: &str) -> Result<String> {
        self.kernel.find_project(caller, named)
    }

    /// Gives a project another name.
    pub fn rename_project(&self, caller: &Caller, id: &str, name: &str) -> Result<()> {
        self.kernel.rename_project(caller, id, name)
    }
}

/// Other nodes.
impl Engine {
    /// The nodes that are known.
    pub fn peers(&self, caller: &Caller) -> Result<Vec<Peer>> {
        self.kernel.peers(caller)
    }

    /// Adds a node, or changes what a known one may do.
    pub fn add_peer(&self, caller: &Caller, new: NewPeer) -> Result<Peer> {
        self.kernel.add_peer(caller, new)
    }

    /// Forgets a node. What it wrote stays.
    pub fn remove_peer(&self, caller: &Caller, name: &str) -> Result<Peer> {
        self.kernel.remove_peer(caller, name)
    }

    /// Exchanges everything that is new with a node.
    pub fn sync_peer(&self, caller: &Caller, name: &str) -> Result<Done> {
        self.kernel.sync_peer(caller, name)
    }

    /// How it stands with one node or with all.
    pub fn sync_status(&self, caller: &Caller, name: Option<&str>) -> Result<SyncStatus> {
        self.kernel.sync_status(caller, name)
    }

    /// Refuses a message that no known node can have sent, before its body is read.
    pub fn check_peer(&self, peer: Option<&str>) -> Result<Did> {
        self.kernel.check_peer(peer)
    }

    /// Conflicts with other nodes' writes that nobody has settled.
    pub fn conflicts(&self, caller: &Caller) -> Result<Vec<OpenConflict>> {
        self.kernel.conflicts(caller)
    }

    /// Settles a conflict: the version that holds is confirmed, or the one that lost comes back.
    pub fn settle_conflict(
        &self,
        caller: &Caller,
        name: &str,
        choice: Choice,
    ) -> Result<OpenConflict> {
        self.kernel.settle_conflict(caller, name, choice)
    }

    /// Answers a message of another node.
    pub fn answer_peer(&self, message: &PeerMessage) -> Result<PeerAnswer> {
        self.kernel.answer_peer(message)
    }

    /// Exchanges by itself, until it is stopped.
    pub fn start_peer_sync(&self) -> PeerSync {
        PeerSync::start(&self.kernel)
    }
}
