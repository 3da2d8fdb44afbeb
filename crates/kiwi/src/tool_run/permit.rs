//! What a tool may access: what it requests, if both the operator's ceiling and the directive that it
//! runs under cover it. Nothing else exists for it.

use super::super::policy::{ItemPolicy, POLICY_FILE};
use super::super::runs::RunGrants;
use super::super::{ItemFault, ItemResult};
use super::places::{Looking, Places};
use super::plan::Plan;
use crate::Kiwi;
use kenning_core::{Error, Result};
use kenning_items::grants::{Asks, Common, Glob, Grants};
use kenning_kernel::Caller;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const SECRETS_BYTES_MAX: u64 = 1024 * 1024;
/// Refuses a tool that the directive of a run does not grant.
pub(super) fn require_may_run(run: &RunGrants, tool: &str) -> ItemResult<()> {
    if run.grants.may_run(tool) {
        return Ok(());
    }
    Err(beyond_run(run, tool, &[format!("tool.{tool}")]))
}

/// Shorter values are too common to be redacted.
const SECRET_BYTES_MIN: usize = 6;

/// What a tool may access.
pub(super) struct Permitted {
    pub(super) files: PermittedFiles,
    /// Whether it may use the packages of the project.
    pub(super) reads_packages: bool,
    /// Hosts that it may reach, as written by the tool and by the operator.
    pub(super) net: (Vec<String>, Vec<String>),
    /// Variables that are declared and have a value.
    pub(super) env: BTreeMap<String, String>,
    /// Values that are redacted in its output.
    pub(super) secrets: Vec<String>,
    /// What it does not get, and why.
    pub(super) warnings: Vec<String>,
    /// Names of variables that it may see.
    asks_env: Vec<String>,
}

/// Patterns for reading and for writing.
type Patterns = (Vec<Glob>, Vec<Glob>);

/// The files that a tool may access.
#[derive(Clone, Debug, Default)]
pub(super) struct PermittedFiles {
    pub(super) read: Places,
    pub(super) write: Places,
}

impl Permitted {
    /// Its permissions, for people and models: what is requested, granted and allowed.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "read": self.files.read.to_json(), "write": self.files.write.to_json(),
            "net": self.net.0, "env": self.asks_env,
        })
    }

    /// A text with secrets redacted.
    pub(super) fn redacted(&self, text: String) -> String {
        let long = self
            .secrets
            .iter()
            .filter(|it| it.len() >= SECRET_BYTES_MIN);
        long.fold(text, |text, secret| match text.contains(secret.as_str()) {
            true => text.replace(secret.as_str(), "***"),
            false => text,
        })
    }

    /// Whether a host may be reached: the tool requests it, and the operator allows it.
    pub(super) fn reaches(&self, host: &str, port: u16) -> bool {
        let address = format!("{}:{port}", host.to_ascii_lowercase());
        let covers = |patterns: &[String]| {
            let grants = Grants::from_json(&json!({
                "read": [], "write": [], "net": patterns, "env": [], "caps": [],
            }));
            grants.is_ok_and(|it| it.may_reach(&address))
        };
        covers(&self.net.0) && covers(&self.net.1)
    }
}

impl Kiwi {
    /// Refuses a tool of the server that the directive of a run does not grant.
    pub fn require_run_may(&self, caller: &Caller, run_id: &str, tool: &str) -> ItemResult<()> {
        require_may_run(&self.run_grants(caller, run_id)?, tool)
    }

    /// Refuses a run that is unknown or expired.
    pub fn require_run(&self, caller: &Caller, run_id: &str) -> ItemResult<()> {
        self.run_grants(caller, run_id).map(drop)
    }

    /// Refuses an action on items that the directive of a run does not grant.
    pub fn require_run_may_act(
        &self,
        caller: &Caller,
        run_id: &str,
        action: &str,
    ) -> ItemResult<()> {
        let run = self.run_grants(caller, run_id)?;
        if run.grants.may_call(action) {
            return Ok(());
        }
        Err(beyond_run(&run, action, &[format!("kiwi-mcp.{action}")]))
    }

    /// What a tool may access, or an error about what it requests beyond that.
    pub(super) fn permit_tool(
        &self,
        plan: &Plan,
        policy: &ItemPolicy,
        run: Option<&RunGrants>,
        dry_run: bool,
    ) -> ItemResult<Permitted> {
        let asks = &plan.asks;
        if let Some(run) = run {
            let here = plan.project.as_ref().map_or("", |it| it.name.as_str());
            if !run.project.is_empty() && run.project != here {
                return Err(Error::denied(format!(
                    "`run_id`: `{}` belongs to a directive of another project",
                    run.id
                ))
                .hint("name the project of the directive as `project_path`")
                .into());
            }
        }
        let mut warnings = Vec::new();
        let files = self.permit_files(plan, policy, run, dry_run, &mut warnings)?;
        let (env, secrets) = self.variables(plan, policy)?;
        Ok(Permitted {
            files,
            net: (
                asks.net.clone(),
                policy
                    .ceiling
                    .net
                    .iter()
                    .map(|it| it.to_ascii_lowercase())
                    .collect(),
            ),
            env,
            secrets,
            warnings,
            reads_packages: policy.ceiling.grants()?.may_read(".venv/lib")
                && !self.holds_our_data(&project_path(plan).join(".venv")),
            asks_env: asks.env.clone(),
        })
    }

    /// The files that it may access: what it requests, the directive grants and the operator allows.
    /// A tool that does not declare what it reads requests the project.
    fn permit_files(
        &self,
        plan: &Plan,
        policy: &ItemPolicy,
        run: Option<&RunGrants>,
        dry_run: bool,
        warnings: &mut Vec<String>,
    ) -> ItemResult<PermittedFiles> {
        let (id, asks) = (plan.tool.id.as_str(), &plan.asks);
        let project = plan.project.as_ref();
        let looking = Looking {
            project,
            own_user: self.jail().is_ok_and(|it| it.own_user),
            dry_run,
        };
        let ceiling = policy.ceiling.grants()?;
        let lists = |grants: &Grants| -> Result<Patterns> {
            Ok((
                looking.expand_folders(grants.reads())?,
                looking.expand_folders(grants.writes())?,
            ))
        };
        let allowed = lists(&ceiling)?;
        let granted = run.map(|it| lists(&it.grants)).transpose()?;
        let asked = (
            looking.expand_folders(asks.read.clone())?,
            looking.expand_folders(asks.write.clone())?,
        );
        // Everything but files has to be granted by name, and is requested as a whole.
        let others = Asks {
            read: Vec::new(),
            write: Vec::new(),
            ..asks.clone()
        };
        let beyond = |grants: &Grants, allowed: &Patterns| {
            let mut denied = grants.covers(id, &others).err().unwrap_or_default();
            let files = [
                ("fs.read", &asked.0, &asks.read, &allowed.0),
                ("fs.write", &asked.1, &asks.write, &allowed.1),
            ];
            for (name, meant, written, allowed) in files {
                let pairs = meant.iter().zip(written);
                let missing = pairs.filter(|it| !allowed.iter().any(|glob| glob.overlaps(it.0)));
                denied.extend(missing.map(|it| format!("{name} {}", it.1)));
            }
            denied
        };
        let denied = beyond(&ceiling, &allowed);
        if !denied.is_empty() {
            return Err(beyond_ceiling(id, asks, &denied));
        }
        if let (Some(run), Some(granted)) = (run, &granted) {
            let denied = beyond(&run.grants, granted);
            if !denied.is_empty() {
                return Err(beyond_run(run, id, &denied));
            }
        }
        let common = |asked: &[Glob], of: fn(&Patterns) -> &[Glob]| {
            let mut lists = vec![asked, of(&allowed)];
            lists.extend(granted.as_ref().map(of));
            Common::all(&lists)
        };
        let write = looking.write(&common(&asked.1, |it| &it.1))?;
        let mut read = looking.read(&common(&asked.0, |it| &it.0))?;
        self.refuse_own_data(id, read.paths.iter().chain(&write.paths))?;
        if !plan.tool.asks.says_read {
            let whole: Vec<Glob> = Glob::parse("**").into_iter().collect();
            let rest = looking.read(&common(&whole, |it| &it.0))?;
            if rest.paths.iter().any(|it| self.holds_our_data(it)) {
                warnings.push(
                    "the tool could not read the project, because the data directory, with the key of \
                     this node, lies in it"
                        .to_owned(),
                );
            } else {
                read.join(rest);
            }
        }
        if read.n_shut > 0 {
            warnings.push(
                "the tool could not read all that it was granted: Kenning runs as root, so tools run \
                 as a user without rights, whom the project's modes keep out (`chmod o+rX`, also \
                 above it)"
                    .to_owned(),
            );
        }
        Ok(PermittedFiles { read, write })
    }

    fn refuse_own_data<'a>(
        &self,
        id: &str,
        mut paths: impl Iterator<Item = &'a PathBuf>,
    ) -> Result<()> {
        let Some(path) = paths.find(|it| self.holds_our_data(it)) else {
            return Ok(());
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Err(Error::denied(format!(
            "Tool '{id}' requests `{name}`, which contains the key of this node"
        ))
        .hint("move the data directory, or request less"))
    }

    /// A program that reads our key could sign anything.
    fn holds_our_data(&self, path: &Path) -> bool {
        let ours = self.kernel.data().path();
        let meets = |it: &Path| ours.starts_with(it) || it.starts_with(ours);
        // A symbolic link on the way may lead there too. A path that cannot be resolved does not
        // exist.
        meets(path) || kenning_vault::resolved(path).is_some_and(|it| meets(&it))
    }

    /// Variables that are declared and have a value, and which of the values are secrets.
    fn variables(
        &self,
        plan: &Plan,
        policy: &ItemPolicy,
    ) -> Result<(BTreeMap<String, String>, Vec<String>)> {
        let (mut env, mut secrets) = (BTreeMap::new(), Vec::new());
        let wants_secrets = plan.env.values().any(Option::is_none);
        let known = if wants_secrets {
            self.secrets(policy)?
        } else {
            BTreeMap::new()
        };
        for (name, value) in &plan.env {
            let value = match (value, known.get(name)) {
                (Some(value), _) => Some(value.clone()),
                (None, Some(secret)) => {
                    secrets.push(secret.clone());
                    Some(secret.clone())
                }
                (None, None) => (self.kernel.environment())(name),
            };
            env.extend(value.map(|it| (name.clone(), it)));
        }
        Ok((env, secrets))
    }

    fn secrets(&self, policy: &ItemPolicy) -> Result<BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        for path in &policy.secrets {
            let path = self.kernel.data().path().join(path);
            let read = kenning_vault::split(&path)
                .and_then(|(dir, name)| dir.read(&name, SECRETS_BYTES_MAX));
            let bytes = read.map_err(|error| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                Error::unavailable(format!("the file of secrets `{name}` cannot be read"))
                    .hint(format!("correct `secrets` in `{POLICY_FILE}`"))
                    .because(error)
            })?;
            all.extend(assignments(&String::from_utf8_lossy(&bytes)));
        }
        Ok(all)
    }
}

fn project_path(plan: &Plan) -> &Path {
    plan.project
        .as_ref()
        .map_or(Path::new("/"), |it| it.dir.path())
}

/// The policy line that would allow the request.
fn beyond_ceiling(id: &str, asks: &Asks, denied: &[String]) -> Box<ItemFault> {
    let listed = |prefix: &str| -> Vec<&str> {
        let of_kind = denied.iter().filter_map(|it| it.strip_prefix(prefix));
        of_kind.collect()
    };
    let kinds = [
        ("read", "fs.read "),
        ("write", "fs.write "),
        ("net", "net."),
        ("env", "env."),
    ];
    let lines: Vec<String> = kinds
        .iter()
        .map(|(name, prefix)| (name, listed(prefix)))
        .filter(|it| !it.1.is_empty())
        .map(|(name, values)| format!("{name} = {}", json!(values)))
        .collect();
    let hint = format!(
        "the operator decides: after a look at the tool, add to `[ceiling]` in `{POLICY_FILE}` of the data directory: {}",
        lines.join(", ")
    );
    ItemFault::with(
        Error::denied(format!(
            "Tool '{id}' asks for more than the policy allows: {}",
            denied.join(", ")
        ))
        .hint(hint.clone()),
        json!({ "status": "denied", "denied": denied, "asks": asks.to_json(), "solution": hint }),
    )
}

fn beyond_run(run: &RunGrants, tool: &str, denied: &[String]) -> Box<ItemFault> {
    let hint = format!(
        "a person decides whether `{0}` gets them: they add them to its `permissions` and sign it \
         with `kenning kiwi sign directive {0}`; until then, go on without",
        run.directive
    );
    ItemFault::with(
        Error::denied(format!(
            "The directive '{}' does not let '{tool}' have: {}",
            run.directive,
            denied.join(", ")
        ))
        .hint(hint.clone()),
        json!({
            "status": "denied", "denied": denied, "directive": run.directive,
            "run_id": run.id, "solution": hint,
        }),
    )
}

/// `NAME=value` lines, optionally with `export` and quotes.
fn assignments(text: &str) -> impl Iterator<Item = (String, String)> {
    text.lines().filter_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        if name.starts_with('#') || name.is_empty() {
            return None;
        }
        let bare = ['"', '\''].into_iter().find_map(|quote| {
            let inner = value.strip_prefix(quote)?;
            inner.strip_suffix(quote)
        });
        Some((name.to_owned(), bare.unwrap_or(value).to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_lines_of_names_and_values() {
        let text = "# A=1\nB=2\n export C = \"x = y\"\nD='z'\nE=\"half\n=none\nnothing\n";
        let read: Vec<_> = assignments(text).collect();
        let pairs: Vec<_> = read.iter().map(|it| (&*it.0, &*it.1)).collect();
        assert_eq!(
            pairs,
            [("B", "2"), ("C", "x = y"), ("D", "z"), ("E", "\"half")]
        );
    }

    #[test]
    fn a_host_is_reached_when_both_name_it() {
        let permitted = |asked: &str, allowed: &str| Permitted {
            files: PermittedFiles::default(),
            reads_packages: false,
            asks_env: Vec::new(),
            net: (vec![asked.to_owned()], vec![allowed.to_owned()]),
            env: BTreeMap::new(),
            secrets: vec!["hunter22".to_owned(), "ab".to_owned()],
            warnings: Vec::new(),
        };
        for (asked, allowed, host, port, reached) in [
            ("a.example", "a.example", "a.example", 443, true),
            ("a.example", "*.example", "A.example", 80, true),
            ("a.example:443", "*", "a.example", 443, true),
            ("a.example:443", "*", "a.example", 80, false),
            ("a.example", "b.example", "a.example", 443, false),
            ("*", "a.example:8080", "a.example", 8080, true),
            ("*.example", "*", "example", 443, false),
            ("a.example", "*", "a.example.evil", 443, false),
        ] {
            let found = permitted(asked, allowed).reaches(host, port);
            assert_eq!(found, reached, "{asked} {allowed} {host}:{port}");
        }
        let text = permitted("*", "*").redacted("ab hunter22hunter22".to_owned());
        assert_eq!(text, "ab ******");
    }
}
