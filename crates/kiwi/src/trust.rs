//! Trusted keys, and which items may be used.

use super::item_dirs::ItemDir;
use super::package::{Item, Package, SignatureCheck};
use super::{ItemFault, ItemResult};
use crate::Kiwi;
use kenning_core::{Code, Did, Error, Hash, Result};
use kenning_items::mark::{self, Mark};
use kenning_items::{ItemType, Scope as ItemScope};
use kenning_kernel::{Caller, timestamp};
use kenning_store::ReadTx;
use serde_json::json;
use std::collections::HashSet;

impl Kiwi {
    /// Whether a signer is this node or one that the operator trusts.
    pub(super) fn is_trusted(&self, caller: &Caller, signer: &Did) -> Result<bool> {
        let space = &caller.principal.space;
        let trusted = self
            .kernel
            .log()
            .read(space, |tx| self.trusted_signers(tx))?;
        Ok(trusted.contains(signer))
    }

    /// All trusted keys.
    pub(super) fn trusted_signers(&self, tx: &dyn ReadTx) -> Result<HashSet<Did>> {
        let keys = kenning_kami::trusted(tx)?;
        let keys = keys.iter().filter_map(|it| Hash::from_hex(&it.to_string()));
        let others = keys.map(|it| Did::of_key(&it.0));
        Ok(others
            .chain([self.kernel.log().signer().did().clone()])
            .collect())
    }

    /// Signs an item with this node's key, for its current place.
    pub(super) fn sign_package(&self, package: &mut Package, version: &str) -> Result<Mark> {
        let own = self.kernel.log().signer();
        let at = seconds(self.kernel.log().clock().now_ms());
        let subject = package.subject(version);
        let mark = mark::sign(&subject, &at, own.did(), |bytes| own.sign_text(bytes))?;
        package.embed(&mark)?;
        Ok(mark)
    }

    /// The signature of an item that may be used: signed by a trusted key and unchanged. `None` if
    /// the operator allows unsigned items of a project.
    pub(super) fn require_signed(
        &self,
        caller: &Caller,
        package: &Package,
        item_dir: &ItemDir,
        item: &Item,
    ) -> ItemResult<Option<Mark>> {
        let what = capital(package.item_type);
        let (id, version) = (package.id(), item.version());
        let path = package.path_on(item_dir).to_string_lossy().into_owned();
        let solution = self.how_to_sign(caller, package.item_type, id.as_str(), package.scope)?;
        let unsigned = |error: String, status: &str, hint: &str| {
            let details = json!({
                "status": status, "path": path, "hint": hint, "solution": solution,
            });
            ItemFault::with(
                Error::new(Code::Conflict, error).hint(solution.clone()),
                details,
            )
        };
        match package.check_signature(item) {
            SignatureCheck::Signed(mark) if self.is_trusted(caller, &mark.signer)? => {
                Ok(Some(mark))
            }
            SignatureCheck::Signed(mark) => Err(ItemFault::with(
                Error::new(
                    Code::Conflict,
                    format!("{what} '{id}' is signed by a key that you do not trust"),
                )
                .hint(trust_command(&mark.signer)),
                json!({
                    "status": "untrusted", "signer": mark.signer.to_string(), "path": path,
                    "solution": trust_command(&mark.signer),
                }),
            )),
            SignatureCheck::Changed(fault) => {
                let short = |hash: &str| hash.chars().take(12).collect::<String>();
                let error = format!("{what} content has been modified since last validation");
                Err(ItemFault::with(
                    Error::new(Code::Conflict, error).hint(solution.clone()),
                    json!({
                        "status": "modified",
                        "details": format!(
                            "Integrity mismatch for {id}@{version}: computed={}, stored={}",
                            short(&fault.computed), short(&fault.stored)
                        ),
                        "computed": fault.computed, "stored": fault.stored,
                        "path": path, "solution": solution,
                    }),
                ))
            }
            SignatureCheck::Broken(why) => Err(unsigned(
                format!("{what} has a signature that cannot be read"),
                "broken",
                why,
            )),
            // The user's own directory is shared by all projects: there unsigned items are never
            // allowed.
            _ if package.scope == ItemScope::Project && self.item_policy()?.allow_unsigned => {
                Ok(None)
            }
            SignatureCheck::Validated => Err(unsigned(
                format!("{what} is validated but not signed"),
                "validated",
                "Its line holds a hash that anybody can compute.",
            )),
            SignatureCheck::None => Err(unsigned(
                format!("{what} has no signature"),
                "missing",
                "Items must be validated before use.",
            )),
        }
    }
}

/// The command that makes a signer trusted.
pub(super) fn trust_command(signer: &Did) -> String {
    format!("A person who knows whose key it is trusts it with `kenning trust add {signer}`")
}

/// A type with a capital letter.
pub(super) fn capital(item_type: ItemType) -> &'static str {
    match item_type {
        ItemType::Directive => "Directive",
        ItemType::Tool => "Tool",
        ItemType::Knowledge => "Knowledge",
    }
}

/// `2026-01-02T03:04:05Z`
pub(super) fn seconds(ms: u64) -> String {
    let text = timestamp(ms);
    let whole = text.split(['.', 'Z']).next().unwrap_or_default();
    format!("{whole}Z")
}
