//! Checkpoints against the log that was replayed.

use super::{Replay, Report};
use crate::checkpoint::checkpoint_hash;
use crate::identity::Origin;
use crate::key::is_signed_by;
use kenning_core::{Did, Space};
use kenning_store::CheckpointRow;

impl Replay {
    pub(super) fn check_checkpoint(
        &mut self,
        row: &CheckpointRow,
        previous: Option<&CheckpointRow>,
        space: &Space,
        report: &mut Report,
    ) {
        report.n_checkpoints += 1;
        let name = format!("checkpoint {}", row.height);
        if row.height != previous.map_or(0, |it| it.height + 1) {
            report.fault(format!("{name}: its height is out of order"));
        }
        self.check_signed(row, &name, space, report);
        if row.version > 1 {
            self.authors.note_checkpoint(row.height, &row.author);
        }
    }

    /// Checks a checkpoint that was kept elsewhere: the log up to it must be unchanged. False if it is
    /// not.
    pub(super) fn check_kept(
        &self,
        row: &CheckpointRow,
        space: &Space,
        report: &mut Report,
    ) -> bool {
        let before = report.faults.len();
        if !self.is_of_another(row, space, report) {
            self.check_signed(row, "the checkpoint that was kept", space, report);
        }
        report.faults.len() == before
    }

    /// Whether a checkpoint that was kept elsewhere belongs to another log or space; reports it.
    pub(super) fn is_of_another(
        &self,
        row: &CheckpointRow,
        space: &Space,
        report: &mut Report,
    ) -> bool {
        let (Some(identity), 2..) = (&self.identity, row.version) else {
            return false;
        };
        let what = match Origin::from_bytes(&row.origin) {
            Some(origin) if origin.space != space.as_str() => {
                format!("of the space `{}`", origin.space)
            }
            Some(origin) if origin.log != identity.id => {
                format!(
                    "of another log ({}; this log is {})",
                    origin.log, identity.id
                )
            }
            Some(_) => return false,
            None => "malformed: `origin`".to_owned(),
        };
        report.fault(format!("the checkpoint that was kept is {what}"));
        true
    }

    pub(super) fn check_signed(
        &self,
        row: &CheckpointRow,
        name: &str,
        space: &Space,
        report: &mut Report,
    ) {
        let mut fault = |what: &str| report.fault(format!("{name}: {what}"));
        if row.seq != self.frontier.size
            || row.event_root != self.frontier.root()
            || row.state_root != self.state.root()
            // Older programs signed the time of the last event.
            || row.hlc < self.latest
        {
            fault("it does not match the log");
        }
        let origin = self.identity.as_ref().map(|it| Origin::new(it.id, space));
        let is_ours = match row.version {
            1 => row.origin.is_empty() && origin.is_none(),
            _ => origin.is_some_and(|it| it.to_bytes() == row.origin),
        };
        if !is_ours {
            fault("it belongs to another log or another space");
        }
        let author = row.author.parse::<Did>();
        if !author.is_ok_and(|it| is_signed_by(&it, &checkpoint_hash(row), &row.signature)) {
            fault("the signature does not match");
        }
    }
}
