//! Conflicts that nobody has settled yet, as rows.

use crate::{Bucket, Raw};
use kenning_audit::Tx;
use kenning_audit::foreign::Conflict;
use kenning_core::Result;
use serde_json::json;

/// Open conflicts, by the beginning of the id of the event that lost.
pub(crate) const OPEN: Bucket<Raw> = Bucket::new("sync/conflicts");

/// So many conflicts are kept open; more are only events.
const OPEN_MAX: usize = 10_000;

/// The name of a conflict, by the event that lost.
pub(crate) fn id_of(loser: &str) -> String {
    loser.chars().take(12).collect()
}

/// Keeps conflicts until they are settled.
pub(crate) fn keep(tx: &mut Tx<'_>, conflicts: &[Conflict]) -> Result<()> {
    if conflicts.is_empty() || OPEN.keys(&**tx)?.len() + conflicts.len() > OPEN_MAX {
        return Ok(());
    }
    for conflict in conflicts {
        let mut data = conflict.to_json();
        data["at"] = json!(tx.now().0);
        let key = id_of(&conflict.loser.event.to_string());
        OPEN.set(tx, &key, &Raw(data.to_string().into_bytes()))?;
    }
    Ok(())
}
