//! Routes for the operator of a node of KOI-net.

use super::facts::{Answer, bounded};
use kenning_engine::koi::{Connect, FederationHttp, PeerPolicyChange};
use kenning_engine::{Caller, Engine, Scope};
use kenning_tools::koi::api::Nothing;
use kenning_tools::koi::federation_status::peer_json;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// The default and the largest number of listed references.
const LISTED: (usize, usize) = (100, 1_000);

/// A node to connect to.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ConnectRequest {
    /// Its base URL
    url: String,
    /// Its RID; koi-net nodes do not tell it
    node_rid: Option<String>,
    /// Types that it may get, if not those of this node
    shares: Option<Vec<String>>,
    /// Types that are taken from it, if not all that it provides
    accepts: Option<Vec<String>>,
}

/// A node.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NodeRequest {
    /// Its RID or its name
    node_rid: String,
}

/// Which references.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ReferencesRequest {
    /// Of this node only
    node_rid: Option<String>,
    /// At most so many
    limit: Option<i64>,
}

pub(super) fn connect(engine: &Engine, caller: &Caller, request: ConnectRequest) -> Answer {
    let connect = Connect {
        url: request.url,
        rid: request.node_rid,
        shares: request.shares,
        accepts: request.accepts,
    };
    let (rid, error) = engine
        .koi()
        .connect_node(caller, &FederationHttp, connect)?;
    let warning = error.map(|it| it.message);
    Ok(
        json!({ "status": "connected", "node_rid": rid, "reached": warning.is_none(), "warning": warning }),
    )
}

pub(super) fn approve(engine: &Engine, caller: &Caller, request: NodeRequest) -> Answer {
    let change = PeerPolicyChange::default();
    let rid = engine
        .koi()
        .approve_node(caller, &request.node_rid, change)?;
    Ok(json!({ "status": "approved", "node_rid": rid }))
}

pub(super) fn nodes(engine: &Engine, caller: &Caller, _: Nothing) -> Answer {
    caller.principal.require(Scope::Admin)?;
    let status = engine.koi().federation_status(caller)?;
    let nodes: Vec<Value> = status.peers.iter().map(peer_json).collect();
    Ok(json!({ "count": nodes.len(), "nodes": nodes }))
}

pub(super) fn edges(engine: &Engine, caller: &Caller, _: Nothing) -> Answer {
    let edges = engine.koi().federation_edges(caller)?;
    let edges: Vec<Value> = edges
        .iter()
        .map(|it| {
            json!({
                "edge_rid": it.rid, "source": it.source, "target": it.target,
                "edge_type": it.edge_type, "status": it.status, "rid_types": it.rid_types,
            })
        })
        .collect();
    Ok(json!({ "count": edges.len(), "edges": edges }))
}

pub(super) fn references(engine: &Engine, caller: &Caller, request: ReferencesRequest) -> Answer {
    let limit = bounded(request.limit, LISTED);
    let node = request.node_rid.as_deref();
    let all = engine.koi().cross_references(caller, node, limit)?;
    let all: Vec<Value> = all
        .iter()
        .map(|it| {
            json!({
                "remote_rid": it.remote_rid, "remote_node": it.peer, "name": it.name, "entity_type": it.kind,
                "local_uri": it.local_uri, "relationship": it.relation,
                "confidence": f64::from(it.confidence) / 1_000.0, "received_at": it.received,
                "signature": it.signature,
            })
        })
        .collect();
    Ok(json!({ "count": all.len(), "cross_refs": all }))
}

pub(super) fn dead_letters(engine: &Engine, caller: &Caller, _: Nothing) -> Answer {
    let all = engine.koi().dead_letters(caller, None)?;
    let all: Vec<Value> = all
        .iter()
        .map(|it| {
            json!({
                "target_node": it.peer, "rid": it.rid, "event_type": it.event_type, "error": it.why,
                "failed_at": it.at,
            })
        })
        .collect();
    Ok(json!({ "count": all.len(), "dead_letters": all }))
}

pub(super) fn resend(engine: &Engine, caller: &Caller, _: Nothing) -> Answer {
    let n_messages = engine.koi().resend_dead_letters(caller, None)?;
    Ok(json!({ "status": "queued", "messages": n_messages }))
}
