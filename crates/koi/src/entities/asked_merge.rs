//! Merges that a caller asks for.

use super::said::{MergeOutcome, StatedMerge, names_said};
use crate::Koi;
use kenning_core::{Code, Error, Result};
use kenning_entities::names::normalized;
use kenning_kernel::Caller;

impl Koi {
    /// Makes merges that a caller requested for a document, one after the other, and returns the
    /// result of each. One of the two must be from that document.
    pub(crate) fn merge_as_asked(
        &self,
        caller: &Caller,
        rid: &str,
        merges: &[StatedMerge],
    ) -> Result<Vec<MergeOutcome>> {
        if merges.is_empty() {
            return Ok(Vec::new());
        }
        let names = self
            .kernel
            .log()
            .read(&caller.principal.space, |tx| names_said(tx, rid))?;
        let is_of_document = |name: &str| names.contains(name) || names.contains(&normalized(name));
        let mut outcomes = Vec::new();
        for asked in merges {
            if !is_of_document(&asked.from) && !is_of_document(&asked.into) {
                let (from, into) = (&asked.from, &asked.into);
                let message = format!("neither `{from}` nor `{into}` is of this page");
                let error =
                    Error::invalid(message).hint("a person joins others with `kenning koi merge`");
                outcomes.push(refused(asked, &error));
                continue;
            }
            if let Some(one) = self.already_one(caller, asked)? {
                outcomes.push(one);
                continue;
            }
            let merged = match self.merge_entities(caller, &asked.from, &asked.into) {
                Ok(merged) => MergeOutcome {
                    from_name: merged.name,
                    from_uri: merged.uri,
                    into_name: merged.into_name,
                    into_uri: merged.into,
                    is_merged: true,
                    reason: ASKED.to_owned(),
                },
                Err(error) if is_of_the_caller(&error) => refused(asked, &error),
                Err(error) => return Err(error),
            };
            outcomes.push(merged);
        }
        Ok(outcomes)
    }

    /// The result for a merge that exists already.
    pub(super) fn already_one(
        &self,
        caller: &Caller,
        asked: &StatedMerge,
    ) -> Result<Option<MergeOutcome>> {
        let named = |name: &str| match self.entity(caller, name) {
            Err(error) if is_of_the_caller(&error) => Ok(None),
            found => found,
        };
        let (Some(from), Some(into)) = (named(&asked.from)?, named(&asked.into)?) else {
            return Ok(None);
        };
        Ok((from.uri == into.uri).then(|| MergeOutcome {
            from_name: asked.from.clone(),
            from_uri: from.uri,
            into_name: into.name,
            into_uri: into.uri,
            is_merged: true,
            reason: "they are one already".to_owned(),
        }))
    }
}

/// Why a requested merge was made.
pub(super) const ASKED: &str = "the caller said so";

pub(super) fn is_of_the_caller(error: &Error) -> bool {
    matches!(
        error.code,
        Code::NotFound | Code::Conflict | Code::InvalidInput
    )
}

pub(super) fn refused(asked: &StatedMerge, error: &Error) -> MergeOutcome {
    let hint = error.hint.as_ref().map(|it| format!(" ({it})"));
    MergeOutcome {
        from_name: asked.from.clone(),
        into_name: asked.into.clone(),
        reason: format!("{}{}", error.message, hint.unwrap_or_default()),
        ..MergeOutcome::default()
    }
}
