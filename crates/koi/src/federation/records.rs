//! The rows of the federation.
//!
//! Who this node is and what it shares, who its peers are and who subscribes to what are signed rows: they
//! decide what leaves this machine and what comes in. Queues, counters and copies of what was sent are not.

use kenning_core::{Error, Result};
use kenning_federation::{Bundle, Json, Limits, Manifest, NodeRid, PublicKey, Rid};
use kenning_kernel::{Bucket, Lease, Text};
use kenning_store::ReadTx;
use serde::{Deserialize, Serialize};

/// This node; one row.
pub(super) const NODE: Bucket<NodeRow> = Bucket::new("federation/node");
/// The key of that row.
pub(super) const SELF: &str = "self";
/// Other nodes, by their RIDs.
pub(super) const PEERS: Bucket<PeerRow> = Bucket::new("federation/peers");
/// Subscriptions, by their RIDs.
pub(super) const EDGES: Bucket<EdgeRow> = Bucket::new("federation/edges");
/// How it stands with each node, by its RID.
pub(super) const STATUS: Bucket<StatusRow> = Bucket::new("federation/status");
/// What this node provides, by RID.
pub(super) const PUBLISHED: Bucket<PublishedRow> = Bucket::new("federation/published");
/// The RID under which a node of the graph is provided, by its id.
pub(super) const PUBLISHED_AS: Bucket<Text> = Bucket::new("federation/published-as");
/// Messages that arrived and are not taken into the graph yet, by number.
pub(super) const INBOX: Bucket<InboxRow> = Bucket::new("federation/inbox");
/// Numbers: how far the log was read, and the last number that was given away.
pub(super) const COUNTS: Bucket<u64> = Bucket::new("federation/counts");
/// Who sends and polls.
pub(super) const LEASES: Bucket<Lease> = Bucket::new("federation/lease");
/// What peers state about an entity: keys of statements, one a line, by URI.
pub(super) const ABOUT: Bucket<Text> = Bucket::new("federation/about");

/// The row of [`COUNTS`] with the place in the log up to which changes were provided.
pub(super) const READ_LOG: &str = "log";
/// The row of [`COUNTS`] with the last number.
const NUMBER: &str = "number";
/// The rows of [`COUNTS`] with the messages of the inbox, and their bytes.
const INBOX_MESSAGES: &str = "inbox";
const INBOX_BYTES: &str = "inbox-bytes";

/// At most so many messages wait in the inbox, over all peers, with so many bytes.
const INBOX_MAX: (u64, u64) = (2_000, 256 * 1024 * 1024);
/// The same of one peer: nobody takes the room of the others.
const INBOX_OF_PEER_MAX: (u64, u64) = (256, 64 * 1024 * 1024);

/// What waits for a peer, by number.
pub(super) fn queue(peer: &str) -> Bucket<QueueRow> {
    Bucket::named(format!("federation/queue/{}", short(peer)))
}

/// What could not be delivered to a peer, by number.
pub(super) fn dead(peer: &str) -> Bucket<DeadRow> {
    Bucket::named(format!("federation/dead/{}", short(peer)))
}

/// What a peer provides, by RID.
pub(super) fn received(peer: &str) -> Bucket<ReceivedRow> {
    Bucket::named(format!("federation/received/{}", short(peer)))
}

/// Fingerprints of messages of a peer that were accepted, with their times.
pub(super) fn seen(peer: &str) -> Bucket<u64> {
    Bucket::named(format!("federation/seen/{}", short(peer)))
}

/// The rows of [`COUNTS`] with the nodes that introduced themselves lately, and since when they are counted.
const NEWCOMERS: &str = "newcomers";
const NEWCOMERS_SINCE: &str = "newcomers-since";
/// At most so many nodes are taken in that time: each leaves a line in the log, for ever.
const NEWCOMERS_MAX: u64 = 1_000;
const NEWCOMERS_MS: u64 = 3_600_000;

/// Counts a node that introduced itself.
///
/// # Errors
/// Limited if there were too many lately.
pub(super) fn count_newcomer(tx: &mut kenning_audit::Tx<'_>, now_ms: u64) -> Result<()> {
    let since = COUNTS
        .get_readable(&**tx, NEWCOMERS_SINCE)?
        .unwrap_or_default();
    let n = match now_ms.saturating_sub(since) < NEWCOMERS_MS {
        true => COUNTS.get_readable(&**tx, NEWCOMERS)?.unwrap_or_default(),
        false => {
            COUNTS.set(tx, NEWCOMERS_SINCE, &now_ms)?;
            0
        }
    };
    if n >= NEWCOMERS_MAX {
        return Err(Error::limited(format!(
            "{NEWCOMERS_MAX} nodes introduced themselves within an hour"
        ))
        .hint("try again later, or ask the operator to connect: `kenning federation connect`"));
    }
    COUNTS.set(tx, NEWCOMERS, &(n + 1))
}

/// So many fingerprints of a peer's messages are kept, and of a node that nobody approved.
const SEEN_MAX: usize = 10_000;
const SEEN_OF_STRANGER_MAX: usize = 32;

/// Notes that a message was taken, so that a copy of it is not.
pub(super) fn remember_message(
    tx: &mut kenning_audit::Tx<'_>,
    peer: &PeerRow,
    fingerprint: &str,
    now_ms: u64,
) -> Result<()> {
    let bucket = seen(&peer.rid);
    if !peer.is_approved {
        forget_messages(tx, &bucket, SEEN_OF_STRANGER_MAX)?;
    }
    bucket.set(tx, fingerprint, &now_ms)
}

/// Drops the oldest fingerprints of a peer's messages, beyond a bound.
pub(super) fn forget_old_messages(tx: &mut kenning_audit::Tx<'_>, peer: &str) -> Result<()> {
    forget_messages(tx, &seen(peer), SEEN_MAX)
}

fn forget_messages(
    tx: &mut kenning_audit::Tx<'_>,
    bucket: &Bucket<u64>,
    n_max: usize,
) -> Result<()> {
    let mut all = bucket.list_readable(&**tx)?;
    if all.len() < n_max {
        return Ok(());
    }
    all.sort_by_key(|it| it.1);
    all.truncate(all.len() - n_max / 2);
    all.iter().try_for_each(|it| bucket.unset(tx, &it.0))
}

/// The part of a node's RID that no other node has.
pub(super) fn short(peer: &str) -> &str {
    peer.rsplit('+').next().unwrap_or(peer)
}

/// A number that was not given away before, as a key whose order is that of the numbers.
pub(super) fn next_number(tx: &mut kenning_audit::Tx<'_>) -> Result<String> {
    let n = COUNTS.get_readable(&**tx, NUMBER)?.unwrap_or_default() + 1;
    COUNTS.set(tx, NUMBER, &n)?;
    Ok(format!("{n:020}"))
}

/// This node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeRow {
    /// The part of its RID that people read.
    pub(super) name: String,
    /// Where others call it; a node without one only calls others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) base_url: Option<String>,
    /// Types that peers may get, unless a peer has a list of its own.
    pub(super) provides: Vec<String>,
    /// Whether unsigned questions are refused wherever they come from.
    pub(super) is_strict: bool,
    /// When the profile last changed.
    pub(super) profile_ms: u64,
    /// The RID before the key was changed, and its signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) successor_of: Option<(String, String)>,
}

/// How a peer speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Dialect {
    /// As koi-net does.
    #[default]
    Reference,
    /// As Octo nodes do: bare names of types, numbered events that are confirmed.
    Octo,
}

/// Another node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PeerRow {
    pub(super) rid: String,
    /// Where it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) base_url: Option<String>,
    /// Whether the operator named that address: then it may be in a private network.
    #[serde(default)]
    pub(super) is_granted: bool,
    #[serde(default)]
    pub(super) public_key: String,
    #[serde(default)]
    pub(super) is_partial: bool,
    #[serde(default)]
    pub(super) provides_event: Vec<String>,
    #[serde(default)]
    pub(super) provides_state: Vec<String>,
    #[serde(default)]
    pub(super) dialect: Dialect,
    /// Whether the operator connected or approved it. Nothing is shared with others, and nothing taken.
    #[serde(default)]
    pub(super) is_approved: bool,
    /// Types that it may get; `None` for those of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shares: Option<Vec<String>>,
    /// Types that are taken from it; `None` for all that it provides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) accepts: Option<Vec<String>>,
    /// The manifest and the contents of its profile, as they came.
    #[serde(default)]
    pub(super) profile: Option<StoredBundle>,
    /// Who told of it, if it did not introduce itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) introduced_by: Option<String>,
    /// Why nothing is exchanged with it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cut_off: Option<String>,
    /// The key of its log, if it is a node of Kenning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kenning_did: Option<String>,
    /// Since when it is known.
    #[serde(default)]
    pub(super) known_ms: u64,
}

impl PeerRow {
    /// Its key, once it is known.
    pub(super) fn key(&self) -> Option<PublicKey> {
        PublicKey::parse(&self.public_key).ok()
    }

    /// Whether things are exchanged with it.
    pub(super) fn is_active(&self) -> bool {
        self.is_approved && self.cut_off.is_none()
    }

    /// The part of its RID that people read.
    pub(super) fn name(&self) -> String {
        NodeRid::parse(&self.rid).map_or_else(|_| self.rid.clone(), |it| it.name().to_owned())
    }
}

/// A bundle as it came: contents keep their order and digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredBundle {
    pub(super) timestamp: String,
    pub(super) sha256_hash: String,
    pub(super) contents: String,
}

impl StoredBundle {
    pub(super) fn of(bundle: &Bundle) -> Self {
        Self {
            timestamp: bundle.manifest.timestamp.clone(),
            sha256_hash: bundle.manifest.sha256_hash.clone(),
            contents: bundle.contents.to_text(),
        }
    }

    pub(super) fn manifest(&self, rid: &str) -> Result<Manifest> {
        Ok(Manifest {
            rid: Rid::parse(rid)?,
            timestamp: self.timestamp.clone(),
            sha256_hash: self.sha256_hash.clone(),
        })
    }

    pub(super) fn bundle(&self, rid: &str) -> Result<Bundle> {
        let contents = Json::parse(self.contents.as_bytes(), Limits::default());
        let contents = contents.map_err(|cause| {
            Error::corrupt(format!("the stored contents of `{rid}` are malformed")).because(cause)
        })?;
        let manifest = self.manifest(rid)?;
        Ok(Bundle { manifest, contents })
    }
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EdgeRow {
    /// The provider.
    pub(super) source: String,
    /// The subscriber.
    pub(super) target: String,
    pub(super) is_poll: bool,
    pub(super) is_approved: bool,
    pub(super) rid_types: Vec<String>,
    pub(super) bundle: StoredBundle,
    /// Whether the subscriber withdrew it: what it asked for is kept for a moment, in case it asks anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_withdrawn: bool,
    /// When that was, by this machine's clock.
    #[serde(default)]
    pub(super) noted_ms: u64,
}

impl EdgeRow {
    /// How it is dated, in milliseconds since 1970: no earlier than what the other side had said.
    pub(super) fn at_ms(&self) -> u64 {
        let micros = kenning_federation::time::read(&self.bundle.timestamp).unwrap_or_default();
        u64::try_from(micros / 1_000).unwrap_or_default()
    }
}

/// How it stands with a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StatusRow {
    /// When it was last heard of.
    pub(super) last_seen_ms: Option<u64>,
    /// Calls in a row that came to nothing.
    pub(super) n_failures: u32,
    /// Before that it is not called again.
    pub(super) next_ms: u64,
    pub(super) last_error: Option<String>,
    pub(super) n_received: u64,
    pub(super) n_sent: u64,
    pub(super) n_refused: u64,
    pub(super) n_duplicates: u64,
    /// When it was last told who this node is; 0 if never.
    pub(super) greeted_ms: u64,
    /// The time of the profile that it was told.
    pub(super) greeted_profile_ms: u64,
    /// When a process began to tell it for the first time; 0 if none is about to.
    pub(super) greeting_ms: u64,
    /// When everything that it has was last compared.
    pub(super) caught_up_ms: u64,
    /// When it was last polled.
    pub(super) polled_ms: u64,
    /// Messages of it that wait in the inbox, and their bytes.
    pub(super) inbox_messages: u64,
    pub(super) inbox_bytes: u64,
}

/// Something that this node provides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PublishedRow {
    /// Its type by the policy: an entity type, or `Document`.
    pub(super) kind: String,
    /// The node of the graph.
    pub(super) node: String,
    pub(super) bundle: StoredBundle,
    /// Hashes that it had before: by them an echo is recognized.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) earlier: Vec<String>,
}

impl PublishedRow {
    /// Whether somebody sends back what this node had sent.
    pub(super) fn is_echo(&self, hash: &str) -> bool {
        self.bundle.sha256_hash == hash || self.earlier.iter().any(|it| it == hash)
    }
}

/// An event that waits: its contents are looked up when it is sent, unless they stand here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Queued {
    pub(super) rid: String,
    pub(super) event_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bundle: Option<StoredBundle>,
}

/// Events that are sent together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueueRow {
    pub(super) events: Vec<Queued>,
    pub(super) since_ms: u64,
    pub(super) n_tries: u32,
    /// Whether they are about profiles and subscriptions, which are sent before anything was agreed.
    #[serde(default)]
    pub(super) is_control: bool,
    /// How many of them were handed out to a node that polls, and by which run of the program: they stay until it
    /// polls again, so that an answer that a crash swallowed is given again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) handed: Option<(usize, String)>,
}

/// Events that could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DeadRow {
    pub(super) row: QueueRow,
    pub(super) why: String,
    pub(super) at_ms: u64,
}

/// A message that arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InboxRow {
    pub(super) peer: String,
    pub(super) signature: String,
    pub(super) at_ms: u64,
    /// JSON of each event.
    pub(super) events: Vec<String>,
    /// How often it was tried to take it in.
    #[serde(default)]
    pub(super) n_tries: u32,
}

impl InboxRow {
    fn n_bytes(&self) -> u64 {
        self.events.iter().map(|it| it.len() as u64).sum()
    }
}

/// Puts a message into the inbox.
///
/// # Errors
/// Limited if there is no room for it.
pub(super) fn put_into_inbox(tx: &mut kenning_audit::Tx<'_>, row: &InboxRow) -> Result<()> {
    let of = |tx: &dyn ReadTx, name: &str| {
        Ok::<u64, Error>(COUNTS.get_readable(tx, name)?.unwrap_or_default())
    };
    let (n_messages, n_bytes) = (of(&**tx, INBOX_MESSAGES)?, of(&**tx, INBOX_BYTES)?);
    let status = STATUS.get_readable(&**tx, &row.peer)?.unwrap_or_default();
    if status.inbox_messages >= INBOX_OF_PEER_MAX.0 || status.inbox_bytes >= INBOX_OF_PEER_MAX.1 {
        return Err(Error::limited(format!(
            "it sends more than this node takes in: {} of its messages with {} bytes wait",
            status.inbox_messages, status.inbox_bytes
        ))
        .hint("send it again later"));
    }
    if n_messages >= INBOX_MAX.0 || n_bytes >= INBOX_MAX.1 {
        return Err(Error::limited("the inbox of this node is full").hint("send it again later"));
    }
    COUNTS.set(tx, INBOX_MESSAGES, &(n_messages + 1))?;
    COUNTS.set(tx, INBOX_BYTES, &(n_bytes + row.n_bytes()))?;
    note_status(tx, &row.peer, |it| {
        it.inbox_messages += 1;
        it.inbox_bytes += row.n_bytes();
    })?;
    let number = next_number(tx)?;
    INBOX.set(tx, &number, row)
}

/// Removes a message from the inbox.
pub(super) fn take_from_inbox(
    tx: &mut kenning_audit::Tx<'_>,
    number: &str,
    row: &InboxRow,
) -> Result<()> {
    if !INBOX.has(&**tx, number)? {
        return Ok(());
    }
    INBOX.unset(tx, number)?;
    for (name, less) in [(INBOX_MESSAGES, 1), (INBOX_BYTES, row.n_bytes())] {
        let n = COUNTS.get_readable(&**tx, name)?.unwrap_or_default();
        COUNTS.set(tx, name, &n.saturating_sub(less))?;
    }
    // Of a node that was forgotten meanwhile nothing is noted.
    if !STATUS.has(&**tx, &row.peer)? {
        return Ok(());
    }
    note_status(tx, &row.peer, |it| {
        it.inbox_messages = it.inbox_messages.saturating_sub(1);
        it.inbox_bytes = it.inbox_bytes.saturating_sub(row.n_bytes());
    })
}

/// How many messages wait in the inbox.
pub(super) fn count_inbox(tx: &dyn ReadTx) -> Result<usize> {
    let n = COUNTS.get_readable(tx, INBOX_MESSAGES)?.unwrap_or_default();
    Ok(usize::try_from(n).unwrap_or(usize::MAX))
}

/// Something that a peer provides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReceivedRow {
    pub(super) timestamp: String,
    pub(super) sha256_hash: String,
    /// The signature of the message that it came in.
    pub(super) signature: String,
    pub(super) at_ms: u64,
    /// Its name and its type, as stated.
    pub(super) name: String,
    pub(super) kind: String,
    /// `same_as`, `related_to` or `unresolved`.
    pub(super) relation: String,
    /// The entity that it is, or is similar to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) uri: Option<String>,
    /// How sure that is, in thousandths.
    pub(super) confidence: u32,
}

/// This node, if the operator turned the federation on.
pub(super) fn node(tx: &dyn ReadTx) -> Result<Option<NodeRow>> {
    NODE.get(tx, SELF)
}

/// The policy's name for notes.
pub(super) const DOCUMENT: &str = "Document";

/// The type of the RIDs of notes.
const DOCUMENT_TYPE: &str = "orn:kenning.document";

/// The type of the RIDs of things of a type of the policy.
pub(super) fn rid_type(kind: &str) -> String {
    match kind {
        DOCUMENT => DOCUMENT_TYPE.to_owned(),
        _ => format!("orn:koi-net.{}", kind.to_lowercase()),
    }
}

/// The same of all.
pub(super) fn rid_types(kinds: &[String]) -> Vec<String> {
    kinds.iter().map(|it| rid_type(it)).collect()
}

/// Lets everything be compared with what is provided, not only what changed.
pub(super) fn publish_anew(tx: &mut kenning_audit::Tx<'_>) -> Result<()> {
    COUNTS.unset(tx, READ_LOG)
}

/// Forgets every subscription: of a node with another name there are none.
pub(super) fn forget_edges(
    tx: &mut kenning_audit::Tx<'_>,
    is_meant: impl Fn(&EdgeRow) -> bool,
) -> Result<()> {
    for (key, edge) in EDGES.list_readable(&**tx)? {
        if is_meant(&edge) {
            EDGES.unset(tx, &key)?;
        }
    }
    Ok(())
}

/// Removes everything that is kept of a node, but for what it stated.
pub(super) fn drop_node(tx: &mut kenning_audit::Tx<'_>, rid: &str) -> Result<()> {
    fn clear<T: kenning_kernel::RowCodec>(
        tx: &mut kenning_audit::Tx<'_>,
        bucket: &Bucket<T>,
    ) -> Result<()> {
        let keys = bucket.keys(&**tx)?;
        keys.iter().try_for_each(|it| bucket.unset(tx, it))
    }
    PEERS.unset(tx, rid)?;
    STATUS.unset(tx, rid)?;
    forget_edges(tx, |it| it.source == rid || it.target == rid)?;
    clear(tx, &queue(rid))?;
    clear(tx, &dead(rid))?;
    clear(tx, &seen(rid))
}

/// The types of the policy that a peer may get.
pub(super) fn shared_with<'a>(node: &'a NodeRow, peer: &'a PeerRow) -> &'a [String] {
    match &peer.shares {
        _ if !peer.is_active() => &[],
        Some(shares) => shares,
        None => &node.provides,
    }
}

/// Changes what is known of how it stands with a node.
pub(super) fn note_status(
    tx: &mut kenning_audit::Tx<'_>,
    peer: &str,
    change: impl FnOnce(&mut StatusRow),
) -> Result<()> {
    let mut status = STATUS.get_readable(&**tx, peer)?.unwrap_or_default();
    let before = status.clone();
    change(&mut status);
    match status == before {
        true => Ok(()),
        false => STATUS.set(tx, peer, &status),
    }
}
