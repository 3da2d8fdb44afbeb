//! The lockfile of a tool: the chain that it had when it first ran successfully.

use super::super::item_dirs::{ItemProject, PROJECT_DIR};
use super::super::package::Package;
use super::super::person::sign_command;
use super::super::trust::seconds;
use super::super::{ItemFault, ItemResult};
use super::plan::Plan;
use crate::Kiwi;
use kenning_core::{Code, Error, Result};
use kenning_items::lockfile::Lockfile;
use kenning_items::{ItemType, Scope as ItemScope};
use kenning_vault::Dir;
use serde_json::json;

const LOCKFILE_BYTES_MAX: u64 = 256 * 1024;

/// Whether there is a lockfile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    Missing,
    Fits,
}

impl Kiwi {
    /// Refuses a chain that has changed.
    pub(super) fn check_lockfile(&self, plan: &Plan) -> ItemResult<Lock> {
        let Some(dir) = self.side_dir(plan.package.scope, plan.project.as_ref(), false)? else {
            return Ok(Lock::Missing);
        };
        let name = lockfile_name(&plan.package, &plan.tool.version);
        let bytes = match dir.read(&name, LOCKFILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.code == Code::NotFound => return Ok(Lock::Missing),
            Err(error) => return Err(error.into()),
        };
        let command = sign_command(ItemType::Tool, &plan.tool.id, plan.package.scope);
        let solution = format!(
            "A person looks at what runs the tool now, and signs it again with `{command}`"
        );
        let path = dir.path().join(&name).to_string_lossy().into_owned();
        let lockfile = serde_json::from_slice(&bytes)
            .map_err(|it| Error::corrupt("lockfile: not JSON").because(it))
            .and_then(|it| Lockfile::from_json(&it))
            .map_err(|error| {
                let error = Error::conflict(error.message).hint(solution.clone());
                ItemFault::with(error, json!({ "lockfile": path, "solution": solution }))
            })?;
        lockfile.check(&plan.chain).map_err(|fault| {
            let details = json!({
                "status": "locked", "lockfile": path, "position": fault.position,
                "field": fault.field, "locked": fault.locked, "found": fault.found,
                "chain": plan.chain.ids(), "solution": solution,
            });
            let error = Error::conflict(fault.to_string()).hint(solution.clone());
            ItemFault::with(error, details)
        })?;
        Ok(Lock::Fits)
    }

    /// Records the chain of a tool that ran successfully.
    pub(super) fn write_lockfile(&self, plan: &Plan) -> Result<()> {
        let dir = self.side_dir(plan.package.scope, plan.project.as_ref(), true)?;
        let Some(dir) = dir else { return Ok(()) };
        let at = seconds(self.kernel.log().clock().now_ms());
        let text = format!("{:#}\n", Lockfile::of(&plan.chain, at).to_json());
        dir.write(
            &lockfile_name(&plan.package, &plan.tool.version),
            text.as_bytes(),
        )
    }

    /// Signing a tool again accepts its current chain.
    pub(in super::super) fn forget_lockfile(
        &self,
        package: &Package,
        version: &str,
        project: Option<&ItemProject>,
    ) -> Result<()> {
        let Some(dir) = self.side_dir(package.scope, project, false)? else {
            return Ok(());
        };
        match dir.remove(&lockfile_name(package, version)) {
            Err(error) if error.code != Code::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The directory beside the items of a scope, for lockfiles and outputs.
    pub(super) fn side_dir(
        &self,
        scope: ItemScope,
        project: Option<&ItemProject>,
        make: bool,
    ) -> Result<Option<Dir>> {
        let opened = match (scope, project, &self.items.options.user) {
            (ItemScope::Project, Some(project), _) if make => {
                project.dir.create_subdir(PROJECT_DIR)
            }
            (ItemScope::Project, Some(project), _) => project.dir.subdir(PROJECT_DIR),
            (ItemScope::User, _, Some(user)) if make => Dir::create(user),
            (ItemScope::User, _, Some(user)) => Dir::open(user),
            _ => return Ok(None),
        };
        match opened {
            Ok(dir) => Ok(Some(dir)),
            Err(error) if error.code == Code::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn lockfile_name(package: &Package, version: &str) -> String {
    let name = format!("{}@{version}.lock.json", package.id());
    format!("lockfiles/{}", package.category().join(&name))
}
