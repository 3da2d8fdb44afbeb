//! What waits to be sent, one queue for each peer.

use super::records::{
    NodeRow, PUBLISHED, PeerRow, QueueRow, Queued, StoredBundle, next_number, queue, shared_with,
};
use kenning_audit::Tx;
use kenning_core::Result;
use kenning_federation::{Bundle, Event, EventType, Rid};
use kenning_store::ReadTx;

/// So many events are sent together.
const TOGETHER: usize = 100;

/// Adds events to the queue of a peer. Of profiles and subscriptions only the last word counts.
pub(super) fn enqueue(
    tx: &mut Tx<'_>,
    peer: &str,
    events: &[Queued],
    now_ms: u64,
    is_control: bool,
) -> Result<()> {
    if is_control {
        drop_earlier(tx, peer, events)?;
    }
    for events in events.chunks(TOGETHER) {
        let row = QueueRow {
            events: events.to_vec(),
            since_ms: now_ms,
            n_tries: 0,
            is_control,
            handed: None,
        };
        let number = next_number(tx)?;
        queue(peer).set(tx, &number, &row)?;
    }
    Ok(())
}

/// Removes what waits about the same profiles and subscriptions.
fn drop_earlier(tx: &mut Tx<'_>, peer: &str, later: &[Queued]) -> Result<()> {
    let queue = queue(peer);
    for (number, mut row) in queue.list_readable(&**tx)? {
        let n_before = row.events.len();
        row.events
            .retain(|it| !later.iter().any(|later| later.rid == it.rid));
        match row.events.len() {
            _ if !row.is_control => {}
            0 => queue.unset(tx, &number)?,
            n if n < n_before => {
                // What was handed out was counted with what is gone.
                row.handed = None;
                queue.set(tx, &number, &row)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the policy, as it is now, lets a peer have what waits for it.
pub(super) fn may_send(
    tx: &dyn ReadTx,
    node: &NodeRow,
    peer: &PeerRow,
    row: &QueueRow,
    queued: &Queued,
) -> Result<bool> {
    if row.is_control {
        return Ok(true);
    }
    if !peer.is_active() {
        return Ok(false);
    }
    if queued.event_type == EventType::Forget.as_str() {
        return Ok(true);
    }
    let published = PUBLISHED.get_readable(tx, &queued.rid)?;
    Ok(published.is_some_and(|it| shared_with(node, peer).contains(&it.kind)))
}

/// An event about a profile or a subscription.
pub(super) fn control(event_type: EventType, bundle: &Bundle) -> Queued {
    Queued {
        rid: bundle.manifest.rid.to_string(),
        event_type: event_type.as_str().to_owned(),
        bundle: Some(StoredBundle::of(bundle)),
    }
}

/// That something is to be forgotten.
pub(super) fn forget(rid: &str) -> Queued {
    Queued {
        rid: rid.to_owned(),
        event_type: EventType::Forget.as_str().to_owned(),
        bundle: None,
    }
}

/// The event as it is sent; `None` if what it was about is provided no more.
pub(super) fn event_of(
    queued: &Queued,
    current: impl FnOnce(&str) -> Result<Option<StoredBundle>>,
) -> Result<Option<Event>> {
    let event_type = EventType::parse(&queued.event_type).unwrap_or(EventType::Update);
    if event_type == EventType::Forget {
        return Ok(Some(Event::forget(Rid::parse(&queued.rid)?)));
    }
    let bundle = match &queued.bundle {
        Some(bundle) => Some(bundle.clone()),
        None => current(&queued.rid)?,
    };
    let bundle = bundle.map(|it| it.bundle(&queued.rid)).transpose()?;
    Ok(bundle.map(|it| Event::of(event_type, it)))
}
