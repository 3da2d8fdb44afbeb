//! `kg_audit_query`

use super::words::{Clamped, KgReply};
use crate::{Call, Effect, Example, Tool, Toolset, near};
use kenning_core::{Error, NodeId, Result};
use kenning_engine::{
    CONTRACT_KINDS, LogPage, LogQuery, LoggedEvent, parse_end, parse_moment, timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tool.
pub struct KgAuditQuery;

/// Query the signed audit log for events, oldest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Input {
    /// Filter by event type (e.g., NodeCreated, WorkflowCompleted,SyncStarted)
    #[serde(default)]
    pub event_type: Option<String>,
    /// Start time (ISO 8601)
    #[serde(default)]
    pub start_time: Option<String>,
    /// End time filter, inclusive; a date is that whole day
    #[serde(default)]
    pub end_time: Option<String>,
    /// Maximum number of results (default: 50)
    #[serde(default)]
    pub limit: Option<Clamped<1, 1000>>,
    /// Include the full event payload and signature
    #[serde(default)]
    pub include_payload: bool,
    /// DID of the key that signed, or of the agent
    #[serde(default)]
    pub author: Option<String>,
    /// Id of a node, or path of a document
    #[serde(default)]
    pub node_id: Option<String>,
    /// Text in the payload
    #[serde(default)]
    pub text: Option<String>,
    /// Newest first
    #[serde(default)]
    pub newest_first: bool,
}

/// What was found.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    events: Vec<EventOut>,
    count: usize,
    total_count: u64,
    has_more: bool,
    filters: Filters,
}

/// An event.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventOut {
    /// BLAKE3 of what is signed.
    id: String,
    /// The type that it was found by, or the kind that is signed.
    #[serde(rename = "type")]
    type_name: String,
    /// The kind that is signed, where it was found by another type.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// The key that signed it.
    author: String,
    /// The agent for whom it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    timestamp: String,
    hlc: HlcOut,
    parent_count: usize,
    /// Its place in this log.
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    payload: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parents: Option<Vec<String>>,
}

/// A hybrid time.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct HlcOut {
    physical_ms: u64,
    logical: u16,
}

/// What was asked for.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Filters {
    event_type: Option<String>,
    start_time: Option<String>,
    end_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Tool for KgAuditQuery {
    const NAME: &'static str = "kg_audit_query";
    const TITLE: &'static str = "Query the audit log";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Recent events with what they say",
            input: r#"{"limit": 100, "includePayload": true}"#,
            output: r#""hasMore":"#,
        },
        Example {
            title: "By type and time range",
            input: r#"{"eventType": "NodeCreated", "startTime": "2024-12-01T00:00:00Z", "endTime": "2024-12-31T23:59:59Z"}"#,
            output: r#""totalCount":0"#,
        },
        Example {
            title: "A time that is none",
            input: r#"{"startTime": "yesterday"}"#,
            output: "`startTime`: `yesterday` is not a time since 1970",
        },
    ];
    type Input = Input;
    type Output = KgReply<Found>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Found>> {
        let given = |text: &Option<String>| text.clone().filter(|it| !it.trim().is_empty());
        let filters = Filters {
            event_type: given(&input.event_type),
            start_time: given(&input.start_time),
            end_time: given(&input.end_time),
            author: given(&input.author),
            node_id: given(&input.node_id),
            text: given(&input.text),
        };
        let start = filters.start_time.as_deref().map(str::trim);
        let end = filters.end_time.as_deref().map(str::trim);
        let skip = ctx.skip("data.events");
        let mut query = LogQuery {
            types: types(filters.event_type.as_deref()),
            from_ms: start.map(|it| parse_moment("startTime", it)).transpose()?,
            to_ms: end.map(|it| parse_end("endTime", it)).transpose()?,
            author: filters.author.clone(),
            node: match &filters.node_id {
                Some(id) => Some(node(ctx, id)?),
                None => None,
            },
            text: filters.text.clone(),
            skip: skip as u64,
            limit: input
                .limit
                .map_or(50, |it| it.get_with_remark(ctx, "limit")),
            newest_first: input.newest_first,
        };
        if let (Some(from), Some(to)) = (query.from_ms, query.to_ms)
            && from > to
        {
            return Err(Error::invalid(format!(
                "`startTime` ({}) is after `endTime` ({})",
                timestamp(from),
                timestamp(to)
            ))
            .hint("exchange them"));
        }
        let found = find(ctx, &mut query)?;
        ctx.of_all(
            "data.events",
            usize::try_from(found.total).unwrap_or(usize::MAX),
        );
        let shown = found.events.into_iter();
        let shown = shown.map(|it| shown_event(it, input.include_payload));
        let events = readable(shown, ctx.caller.answer_chars_max);
        let count = events.len();
        let data = Found {
            count,
            total_count: found.total,
            has_more: query.skip + (count as u64) < found.total,
            events,
            filters,
        };
        Ok(KgReply::new(data).with("itemCount", count))
    }
}

fn types(text: Option<&str>) -> Vec<String> {
    let names = text.unwrap_or_default().split(',').map(str::trim);
    let names = names.filter(|it| !it.is_empty());
    names.map(str::to_owned).collect()
}

/// Characters of an answer that are not events.
const MARGIN_CHARS: usize = 8_000;

/// As many events as a model can read at once, so that `hasMore` is true of what is shown. One is shown
/// always.
fn readable(events: impl Iterator<Item = EventOut>, chars_max: Option<usize>) -> Vec<EventOut> {
    let chars_max = chars_max.map_or(usize::MAX, |it| it.saturating_sub(MARGIN_CHARS));
    let (mut shown, mut n_chars) = (Vec::new(), 0_usize);
    for event in events {
        let length = serde_json::to_string(&event).map_or(0, |it| it.len());
        n_chars = n_chars.saturating_add(length);
        if n_chars > chars_max && !shown.is_empty() {
            break;
        }
        shown.push(event);
    }
    shown
}

/// The node that somebody means: by its own id, a memory's, or a document's id or path.
fn node(ctx: &Call<'_>, id: &str) -> Result<NodeId> {
    let own = || id.parse::<NodeId>().ok();
    let memory = || {
        let digits = id.strip_prefix("mem_")?;
        let parts = [
            digits.get(..8)?,
            digits.get(8..12)?,
            digits.get(12..16)?,
            digits.get(16..20)?,
            digits.get(20..)?,
        ];
        parts.join("-").parse().ok()
    };
    if let Some(node) = own().or_else(memory) {
        return Ok(node);
    }
    let document = ctx.engine.kg().document(ctx.caller, Some(id), None);
    document.map(|it| it.document.node).map_err(|_| {
        Error::invalid(format!("`nodeId`: `{id}` is not a node"))
            .hint("give the `nodeId` of a payload, the id of a memory or a document, or `text`")
    })
}

/// Asks the log. A type in another case is read as the one that is there.
fn find(ctx: &Call<'_>, query: &mut LogQuery) -> Result<LogPage> {
    let found = ctx.engine.query_log(ctx.caller, query)?;
    if found.absent.is_empty() {
        return Ok(found);
    }
    let stats = ctx.engine.log_stats(ctx.caller)?;
    let there: Vec<&str> = stats.kinds.iter().map(|it| it.0.as_str()).collect();
    let known = || CONTRACT_KINDS.iter().chain(&there).copied();
    let (mut absent, mut is_other) = (Vec::new(), false);
    for name in found.absent {
        match known().find(|it| *it != name && it.eq_ignore_ascii_case(&name)) {
            Some(meant) => {
                let same = query.types.iter_mut().filter(|it| **it == name);
                same.for_each(|it| meant.clone_into(it));
                ctx.remark(format!("`eventType`: `{name}` is read as `{meant}`"));
                is_other = true;
            }
            None => absent.push(name),
        }
    }
    let found = match is_other {
        true => ctx.engine.query_log(ctx.caller, query)?,
        false => LogPage {
            absent: Vec::new(),
            ..found
        },
    };
    absent.extend(
        found
            .absent
            .iter()
            .filter(|it| !absent.contains(it))
            .cloned()
            .collect::<Vec<_>>(),
    );
    if !absent.is_empty() {
        let names = known().map(str::to_owned);
        explain_absence(ctx, &absent, &there, names.collect());
    }
    Ok(found)
}

/// Says which types there are, to somebody who asked for one that is not among them.
fn explain_absence(ctx: &Call<'_>, absent: &[String], there: &[&str], known: Vec<String>) {
    let is_documented = |it: &&String| CONTRACT_KINDS.contains(&it.as_str());
    let has = match there.is_empty() {
        true => "no events".to_owned(),
        false => there.join(", "),
    };
    let (documented, unknown): (Vec<&String>, Vec<&String>) =
        absent.iter().partition(is_documented);
    if !documented.is_empty() {
        let names: Vec<&str> = documented.iter().map(|it| it.as_str()).collect();
        let names = names.join(", ");
        ctx.remark(format!(
            "no event of type {names} has happened in this space yet; its log has {has}"
        ));
    }
    for name in unknown {
        let meant = near::sentence(&near::names(name, known.clone()));
        ctx.remark(format!(
            "`{name}` is not a type of event in this log.{meant} It has {has}"
        ));
    }
}

fn shown_event(event: LoggedEvent, with_payload: bool) -> EventOut {
    let parents = event.parents.iter().map(ToString::to_string);
    EventOut {
        id: event.id.to_string(),
        kind: (event.kind != event.type_name).then_some(event.kind),
        type_name: event.type_name,
        author: event.author,
        agent: event.agent,
        timestamp: timestamp(event.hlc.ms()),
        hlc: HlcOut {
            physical_ms: event.hlc.ms(),
            logical: event.hlc.counter(),
        },
        parent_count: event.parents.len(),
        seq: event.seq,
        parents: with_payload.then(|| parents.collect()),
        payload: with_payload.then_some(event.payload),
        signature: with_payload.then_some(event.signature),
    }
}
