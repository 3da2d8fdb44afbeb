//! `federation_status`
//!
//! Nothing federates yet, and that is what it says: who this node is, that it has no peers and no queue, and
//! by which rules it would speak with any.

use super::api::{self, Api, Nothing, Place, Route, Verb};
use super::refusal::Refusal;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::{Caller, Engine, Scope, timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tool.
pub struct FederationStatus;

/// Get KOI-net federation status.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

/// Node identity, connected peers, event queue size, protocol policy.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// `disabled`: this node does not federate
    status: &'static str,
    node: Node,
    /// `{node_rid, node_name, last_seen}` each
    peers: Vec<Map<String, Value>>,
    event_queue_size: u64,
    pipeline_enabled: bool,
    protocol: Protocol,
    timestamp: String,
}

/// What is null does not exist before the node federates.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Node {
    node_rid: Option<String>,
    node_name: &'static str,
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

/// Answers a call, whoever makes it.
pub fn answer(engine: &Engine, caller: &Caller, _: Nothing) -> Result<Output, Refusal> {
    caller.principal.require(Scope::Read)?;
    Ok(Output {
        status: "disabled",
        node: Node {
            node_rid: None,
            node_name: "kenning",
            node_type: None,
            base_url: None,
            provides: Provides::default(),
            public_key: None,
            ontology_uri: Some("http://bkc.regen.network/ontology"),
            ontology_version: Some("1.0.0"),
            did: Some(engine.did().to_string()),
        },
        peers: Vec::new(),
        event_queue_size: 0,
        pipeline_enabled: false,
        protocol: Protocol {
            strict_mode: true,
            require_signed_envelopes: true,
            enforce_target_match: true,
            enforce_source_key_rid_binding: true,
            core_endpoints: vec![
                "/koi-net/events/broadcast",
                "/koi-net/events/poll",
                "/koi-net/rids/fetch",
                "/koi-net/manifests/fetch",
                "/koi-net/bundles/fetch",
            ],
            extensions: vec!["/koi-net/health"],
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
