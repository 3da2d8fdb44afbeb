//! `kg_sync_status`

use super::words::KgReply;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::{ExchangeView, PeerView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgSyncStatus;

/// Check the sync of the audit chain with peers: connections, history, errors.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Input {
    /// Default: all peers
    peer_id: Option<String>,
    /// With metrics and history
    #[serde(default)]
    detailed: bool,
}

/// One peer.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PeerRow {
    id: String,
    /// Where it is reached; empty for a node that only calls this one.
    endpoint: String,
    /// Its key.
    did: String,
    /// `connected`, `syncing`, `disconnected` or `error`.
    status: &'static str,
    last_sync_time: Option<String>,
    error_count: u64,
    last_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Metrics>,
    /// The last exchanges that brought something or failed, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<Exchange>>,
}

/// An exchange with a peer.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exchange {
    timestamp: String,
    events_received: u64,
    events_sent: u64,
    /// In milliseconds.
    duration: u64,
    error: Option<String>,
}

impl From<&ExchangeView> for Exchange {
    fn from(it: &ExchangeView) -> Self {
        Self {
            timestamp: it.at.clone(),
            events_received: it.n_received,
            events_sent: it.n_sent,
            duration: it.took_ms,
            error: it.error.clone(),
        }
    }
}

/// What was counted of one peer.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metrics {
    events_received: u64,
    events_sent: u64,
    events_refused: u64,
    conflicts: u64,
    /// Of the last answer, in milliseconds; 0 before the first.
    latency: u64,
    /// Of the last of its checkpoints that was checked here; -1 for none.
    last_checkpoint_height: i64,
    /// Entries of its log that are known to be missing here.
    lag: u64,
    /// Entries of this log that it is not known to have.
    unsent: u64,
}

/// The peers by their state.
#[derive(Serialize, JsonSchema)]
pub(super) struct ByStatus {
    connected: Vec<PeerRow>,
    syncing: Vec<PeerRow>,
    disconnected: Vec<PeerRow>,
    error: Vec<PeerRow>,
}

/// How many there are.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    total_peers: usize,
    connected_peers: usize,
    syncing_peers: usize,
    error_peers: usize,
}

/// What processes on this store do by themselves.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Service {
    /// Whether one of them exchanges with peers.
    running: bool,
    /// Whether it is set to call peers by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    auto_sync_enabled: Option<bool>,
    /// How often peers are called, in milliseconds; 0 for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    sync_interval: Option<u64>,
    syncing: bool,
}

/// Of all peers together.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Aggregate {
    total_events_received: u64,
    total_events_sent: u64,
    total_errors: u64,
}

/// How it stands.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncState {
    /// With `peerId`: that peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<PeerRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peers: Option<Vec<PeerRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peers_by_status: Option<ByStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Summary>,
    service_status: Service,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregate_metrics: Option<Aggregate>,
}

fn row(view: &PeerView, detailed: bool) -> PeerRow {
    PeerRow {
        id: view.peer.id.clone(),
        endpoint: view.peer.endpoint.clone(),
        did: view.did.clone(),
        status: view.status,
        last_sync_time: view.last_sync.clone(),
        error_count: view.n_errors,
        last_error: view.last_error.clone(),
        metrics: detailed.then(|| Metrics {
            events_received: view.n_received,
            events_sent: view.n_sent,
            events_refused: view.n_refused,
            conflicts: view.n_conflicts,
            latency: view.latency_ms.unwrap_or_default(),
            last_checkpoint_height: view
                .checkpoint
                .map_or(-1, |it| i64::try_from(it).unwrap_or(i64::MAX)),
            lag: view.lag,
            unsent: view.n_unsent,
        }),
        history: detailed.then(|| view.history.iter().map(Exchange::from).collect()),
    }
}

impl Tool for KgSyncStatus {
    const NAME: &'static str = "kg_sync_status";
    const TITLE: &'static str = "Sync status";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "How it stands with all peers",
            input: "{}",
            output: r#""totalPeers":"#,
        },
        Example {
            title: "With what was counted",
            input: r#"{"detailed":true}"#,
            output: r#""aggregateMetrics":"#,
        },
    ];
    type Input = Input;
    type Output = KgReply<SyncState>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<SyncState>> {
        let status = ctx
            .engine
            .sync_status(ctx.caller, input.peer_id.as_deref())?;
        let mut rows: Vec<PeerRow> = status
            .peers
            .iter()
            .map(|it| row(it, input.detailed || input.peer_id.is_some()))
            .collect();
        let is_one = input.peer_id.is_some();
        let service_status = Service {
            running: status.is_running,
            auto_sync_enabled: (!is_one).then_some(status.interval_ms > 0),
            sync_interval: (!is_one).then_some(status.interval_ms),
            syncing: status.is_syncing,
        };
        if is_one {
            return Ok(KgReply::new(SyncState {
                peer: rows.pop(),
                peers: None,
                peers_by_status: None,
                summary: None,
                service_status,
                aggregate_metrics: None,
            })
            .with("itemCount", 1));
        }
        let of = |status: &str| -> Vec<PeerRow> {
            rows.iter()
                .filter(|it| it.status == status)
                .cloned()
                .collect()
        };
        let by_status = ByStatus {
            connected: of("connected"),
            syncing: of("syncing"),
            disconnected: of("disconnected"),
            error: of("error"),
        };
        let summary = Summary {
            total_peers: rows.len(),
            connected_peers: by_status.connected.len(),
            syncing_peers: by_status.syncing.len(),
            error_peers: by_status.error.len(),
        };
        let sum = |of: fn(&PeerView) -> u64| status.peers.iter().map(of).sum();
        let aggregate_metrics = input.detailed.then(|| Aggregate {
            total_events_received: sum(|it| it.n_received),
            total_events_sent: sum(|it| it.n_sent),
            total_errors: sum(|it| it.n_errors),
        });
        let n = rows.len();
        Ok(KgReply::new(SyncState {
            peer: None,
            peers: Some(rows),
            peers_by_status: Some(by_status),
            summary: Some(summary),
            service_status,
            aggregate_metrics,
        })
        .with("itemCount", n))
    }
}
