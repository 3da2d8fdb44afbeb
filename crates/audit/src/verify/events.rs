//! Checks events that are in no store.

use super::{BATCH, Replay, Report, Roots, Verify, check_in_parallel};
use crate::identity::Origin;
use kenning_core::Result;
use kenning_store::{CheckpointRow, EventRow};

/// Gives events, in their order, to a visitor.
pub type EventSource<'a> = dyn FnMut(&mut dyn FnMut(EventRow)) -> Result<()> + 'a;

/// Checks all events of a log that come from elsewhere than a store: ids, signatures, order, authors, and
/// that they give the roots of these checkpoints, which are in the order of their sizes. Rows are not
/// compared: there are none.
pub fn verify_events(
    asked: &Verify<'_>,
    checkpoints: &[CheckpointRow],
    source: &mut EventSource<'_>,
) -> Result<Report> {
    let (mut replay, mut report) = (Replay::default(), Report::default());
    let mut left = checkpoints.iter().peekable();
    let mut batch: Vec<EventRow> = Vec::with_capacity(BATCH);
    let mut flush = |batch: &mut Vec<EventRow>, report: &mut Report| {
        for (row, checked) in batch.iter().zip(check_in_parallel(batch)) {
            match checked {
                Ok(event) => replay.apply(row, &event, asked.space, report),
                Err(fault) => {
                    report.fault(fault);
                    replay.place(row);
                }
            }
            while let Some(checkpoint) = left.next_if(|it| it.seq <= row.seq) {
                let name = format!("checkpoint {}", checkpoint.height);
                replay.check_signed(checkpoint, &name, asked.space, report);
                replay
                    .authors
                    .note_checkpoint(checkpoint.height, &checkpoint.author);
                report.n_checkpoints += 1;
            }
        }
        batch.clear();
    };
    source(&mut |row| {
        report.n_events += 1;
        batch.push(row);
        if batch.len() == BATCH {
            flush(&mut batch, &mut report);
        }
    })?;
    flush(&mut batch, &mut report);
    for checkpoint in left {
        report.fault(format!(
            "checkpoint {} covers {} events, more than there are",
            checkpoint.height, checkpoint.seq
        ));
    }
    report.roots = Some(Roots {
        seq: replay.frontier.size,
        event_root: replay.frontier.root(),
        state_root: replay.state.root(),
    });
    replay.erasures.check(&mut report);
    report.origin = replay.identity.map(|it| Origin::new(it.id, asked.space));
    replay.authors.judge(asked, &mut report);
    Ok(report)
}
