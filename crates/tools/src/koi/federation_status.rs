//! `federation_status`
//!
//! Who this node is among others, how it stands with each, and by which rules it speaks with them. Where the
//! federation is off, it says so.

use super::Refusal;
use super::api::{self, Api, Nothing, Place, Route, Verb};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::koi::FederationPeer;
use kenning_engine::{Caller, Engine, Principal, Scope, timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The tool.
pub struct FederationStatus;

/// Get KOI-net federation status.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

/// Node identity, connected peers, event queue size, protocol policy.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// `healthy`, `degraded` if a peer is cut off or events could not be delivered, or `disabled`: this node does
    /// not federate
    status: &'static str,
    node: Node,
    /// `{node_rid, node_name, last_seen, …}` each
    peers: Vec<Map<String, Value>>,
    event_queue_size: u64,
    /// Events that could not be delivered; other implementations do not count them
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letters: Option<u64>,
    pipeline_enabled: bool,
    protocol: Protocol,
    timestamp: String,
}

/// What is null does not exist before the node federates.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Node {
    node_rid: Option<String>,
    node_name: String,
    node_type: Option<String>,
    base_url: Option<String>,
    provides: Provides,
    public_key: Option<String>,
    ontology_uri: Option<&'static str>,
    ontology_version: Option<&'static str>,
    /// Who signs this node's log; other implementations have none
    #[serde(skip_serializing_if = "Option::is_none")]
    did: Option<String>,
}

#[derive(Default, Serialize, JsonSchema)]
#[schemars(inline)]
struct Provides {
    event: Vec<String>,
    state: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Protocol {
    strict_mode: bool,
    require_signed_envelopes: bool,
    enforce_target_match: bool,
    enforce_source_key_rid_binding: bool,
    core_endpoints: Vec<&'static str>,
    extensions: Vec<&'static str>,
}

/// A peer, as `federation_status` and `GET /koi-net/nodes` show it.
#[must_use]
pub fn peer_json(it: &FederationPeer) -> Value {
    json!({
        "node_rid": it.rid, "node_name": it.name, "last_seen": it.last_seen, "state": it.state,
        "base_url": it.base_url, "dialect": it.dialect, "provides": it.provides, "shares": it.shares,
        "accepts": it.accepts, "queued": it.n_queued, "lag_ms": it.lag_ms, "dead_letters": it.n_dead,
        "known": it.n_known, "sent": it.n_sent, "received": it.n_received, "refused": it.n_refused,
        "duplicates": it.n_duplicates, "failures": it.n_failures, "last_error": it.last_error,
        "cut_off": it.cut_off, "introduced_by": it.introduced_by, "kenning_did": it.kenning_did,
    })
}

/// Who this node is, for whoever asks; `None` if it does not federate.
///
/// # Errors
/// Those of the store.
pub fn public(engine: &Engine) -> Result<Option<Value>> {
    if !engine.koi().is_federated()? {
        return Ok(None);
    }
    let caller = Caller::new(Principal::owner(Default::default()));
    let mut output = output(engine, &caller)?;
    // With whom it exchanges what is nobody else's business.
    output.peers.clear();
    (output.event_queue_size, output.dead_letters) = (0, None);
    let value = serde_json::to_value(output);
    value
        .map(Some)
        .map_err(|cause| kenning_core::Error::internal("an answer is not JSON").because(cause))
}

/// Answers a call, whoever makes it.
pub fn answer(engine: &Engine, caller: &Caller, _: Nothing) -> Result<Output, Refusal> {
    caller.principal.require(Scope::Read)?;
    Ok(output(engine, caller)?)
}

fn output(engine: &Engine, caller: &Caller) -> Result<Output> {
    let koi = engine.koi();
    let is_on = koi.is_federated()?;
    let status = koi.federation_status(caller)?;
    let identity = match is_on {
        true => Some(koi.federation_identity(caller)?),
        false => None,
    };
    let is_degraded = status.n_dead > 0 || status.peers.iter().any(|it| it.cut_off.is_some());
    let (is_strict, types) = match &identity {
        Some(it) => (it.is_strict, it.rid_types.clone()),
        None => (true, Vec::new()),
    };
    let peers = status.peers.iter().map(|it| match peer_json(it) {
        Value::Object(peer) => peer,
        _ => Map::new(),
    });
    Ok(Output {
        status: match (is_on, is_degraded) {
            (false, _) => "disabled",
            (true, true) => "degraded",
            (true, false) => "healthy",
        },
        node: Node {
            node_rid: identity.as_ref().map(|it| it.rid.clone()),
            node_name: identity
                .as_ref()
                .map_or_else(|| "kenning".to_owned(), |it| it.name.clone()),
            node_type: identity.as_ref().map(|it| match it.base_url {
                Some(_) => "FULL".to_owned(),
                None => "PARTIAL".to_owned(),
            }),
            base_url: identity.as_ref().and_then(|it| it.base_url.clone()),
            provides: Provides {
                event: types.clone(),
                state: types,
            },
            public_key: identity.map(|it| it.public_key),
            ontology_uri: Some("http://bkc.regen.network/ontology"),
            ontology_version: Some("1.0.0"),
            did: Some(engine.did().to_string()),
        },
        peers: peers.collect(),
        event_queue_size: status.n_queued as u64,
        dead_letters: is_on.then_some(status.n_dead as u64),
        pipeline_enabled: is_on,
        protocol: Protocol {
            strict_mode: is_strict,
            require_signed_envelopes: is_strict,
            enforce_target_match: true,
            enforce_source_key_rid_binding: true,
            core_endpoints: vec![
                "/koi-net/events/broadcast",
                "/koi-net/events/poll",
                "/koi-net/manifests/fetch",
                "/koi-net/bundles/fetch",
                "/koi-net/rids/fetch",
            ],
            extensions: vec![
                "/koi-net/handshake",
                "/koi-net/events/confirm",
                "/koi-net/health",
            ],
        },
        timestamp: timestamp(engine.now_ms()),
    })
}

impl Tool for FederationStatus {
    const NAME: &'static str = "federation_status";
    const TITLE: &'static str = "Look at the federation";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "A node that does not federate",
        input: r#"{}"#,
        output: r#""status": "disabled""#,
    }];
    type Input = Input;
    type Output = Output;
    const API: Option<Api<Input>> = Some(Api {
        routes: &[Route {
            verb: Verb::Get,
            path: "/koi-net/health",
            summary: "How this node stands among others",
            tool: Self::NAME,
            fixed: &[],
            place: Place::Nowhere,
            schema: api::fields::<Nothing>,
            answer: |engine, caller, request| api::via(engine, caller, request, answer),
        }],
        request: |_| api::written(&Nothing {}),
        complete: api::as_it_is,
    });

    fn call(ctx: &Call<'_>, _: Input) -> Result<Output> {
        Ok(answer(ctx.engine, ctx.caller, Nothing {})?)
    }
}
