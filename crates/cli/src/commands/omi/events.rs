//! `omi events`

use super::{Omi, limit, table};
use crate::output;
use clap::ArgMatches;
use kenning_core::Result;
use kenning_engine::omi::{EventQuery, EventType, MemoryEvent};
use kenning_engine::{parse_moment, timestamp};
use kenning_text::line::one_line;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// The number of events that are read at once.
const PAGE: usize = 500;

fn event_type(matches: &ArgMatches) -> Result<Option<&'static EventType>> {
    let given = matches.get_one::<String>("type");
    given.map(|it| EventType::find(it)).transpose()
}

fn moment(matches: &ArgMatches, name: &str) -> Result<Option<u64>> {
    let given = matches.get_one::<String>(name);
    given.map(|it| parse_moment(name, it)).transpose()
}

pub(super) fn list(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let query = EventQuery {
        event_type: event_type(matches)?,
        since_ms: moment(matches, "since")?,
        until_ms: moment(matches, "until")?,
        // One more shows whether there are more.
        limit: limit(matches) + 1,
    };
    let mut found = omi.engine.omi().memory_events(&omi.caller, &query)?;
    if found.len() == query.limit {
        found.remove(0);
        let (shown, first) = (found.len(), found.first().map_or(0, |it| it.at_ms));
        output::say(&format!(
            "more: these are the latest {shown}; `--limit` shows more, and `--until {}` those before them",
            timestamp(first)
        ));
    }
    if omi.settings.json {
        output::print_json(&found.iter().map(wire).collect());
        return Ok(0);
    }
    if found.is_empty() {
        output::chat("No events.");
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    output::print(&table::rows(&["seq", "when", "type", "what"], &rows));
    Ok(0)
}

pub(super) fn subscribe(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let event_type = event_type(matches)?;
    let mut left = matches.get_one::<u64>("count").copied();
    let mut seq = match matches.get_one::<u64>("after") {
        Some(&after) => after,
        None => omi.engine.roots(&omi.caller)?.seq,
    };
    let (wake, woken) = sync_channel(1);
    let poll = omi.engine.on_append(Arc::new(move || {
        // One pending signal is enough.
        let _waiting = wake.try_send(());
    }));
    output::say("listening; interrupt to stop");
    loop {
        let found = omi
            .engine
            .omi()
            .memory_events_after(&omi.caller, seq, PAGE, event_type)?;
        for event in &found.events {
            output::print(&if omi.settings.json {
                wire(event).to_string()
            } else {
                row(event).join("\t")
            });
            left = left.map(|it| it.saturating_sub(1));
            if left == Some(0) {
                return Ok(0);
            }
        }
        if found.seq == seq {
            // In either case it is time to look again.
            let _woken = woken.recv_timeout(poll.max(Duration::from_millis(10)));
        }
        seq = found.seq;
    }
}

fn wire(event: &MemoryEvent) -> Value {
    let mut json = json!({ "id": event.seq });
    if let (Some(json), Some(payload)) = (json.as_object_mut(), event.json.as_object()) {
        json.extend(payload.clone());
    }
    json
}

/// Place, time, kind, and the payload on one line.
fn row(event: &MemoryEvent) -> Vec<String> {
    let payload = event.json.as_object();
    let own = payload.into_iter().flatten().filter(|(name, value)| {
        !["event_type", "timestamp", "metadata", "top_results"].contains(&name.as_str())
            && !value.is_null()
    });
    let what: Vec<String> = own
        .map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), one_line);
            format!("{name}={value}")
        })
        .collect();
    vec![
        event.seq.to_string(),
        timestamp(event.at_ms),
        event.event_type.name.to_owned(),
        what.join(" "),
    ]
}
