//! Who may sign items.
//!
//! A signature says that somebody read an item and allows its use. A caller over MCP or HTTP may be
//! an agent, and an agent that signs what it was refused would decide for the person. So items are
//! signed on the command line, unless the operator's policy says otherwise, and a refusal gives the
//! command to type.

use super::{ItemFault, ItemResult};
use crate::Kiwi;
use kenning_core::{Error, Result};
use kenning_items::{ItemType, Scope as ItemScope};
use kenning_kernel::Caller;
use serde_json::json;

/// The command that signs an item.
pub(super) fn sign_command(item_type: ItemType, id: &str, scope: ItemScope) -> String {
    // Quoted, so that the shell does not expand the pattern.
    let id = match id.contains(['*', '?']) {
        true => format!("'{id}'"),
        false => id.to_owned(),
    };
    match scope {
        ItemScope::Project => format!("kenning --project . kiwi sign {item_type} {id}"),
        ItemScope::User => format!("kenning kiwi sign {item_type} {id} --location user"),
    }
}

impl Kiwi {
    /// Whether this caller may sign.
    pub(super) fn may_sign(&self, caller: &Caller) -> Result<bool> {
        Ok(caller.is_person || self.item_policy()?.agents_may_sign)
    }

    /// Tells this caller how an item gets signed.
    pub(super) fn how_to_sign(
        &self,
        caller: &Caller,
        item_type: ItemType,
        id: &str,
        scope: ItemScope,
    ) -> Result<String> {
        let command = sign_command(item_type, id, scope);
        let place = match scope {
            ItemScope::Project => " in the project",
            ItemScope::User => "",
        };
        Ok(if caller.is_person {
            format!("Read it, then sign it with `{command}`{place}")
        } else if self.may_sign(caller)? {
            format!(
                "Use execute(item_type='{item_type}', action='sign', item_id='{id}') to validate and sign it"
            )
        } else {
            format!("A person has to read it and sign it: ask them to run `{command}`{place}")
        })
    }

    /// Refuses a signature by a caller who may not sign.
    pub(super) fn require_may_sign(
        &self,
        caller: &Caller,
        item_type: ItemType,
        id: &str,
        scope: ItemScope,
    ) -> ItemResult<()> {
        if self.may_sign(caller)? {
            return Ok(());
        }
        let command = sign_command(item_type, id, scope);
        let solution = self.how_to_sign(caller, item_type, id, scope)?;
        Err(ItemFault::with(
            Error::denied(format!(
                "A person signs items, on the command line: {item_type} '{id}' was not signed"
            ))
            .hint(solution.clone()),
            json!({
                "status": "person_required", "solution": solution, "command": command,
            }),
        ))
    }
}
