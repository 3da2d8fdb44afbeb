//! A lockfile: the chain that a tool had when it was signed.
//!
//! A chain that differs in length, ids, versions or hashes is refused, with the position of the first
//! difference.

use crate::chain::Chain;
use kenning_core::{Error, Result};
use serde_json::{Value, json};

/// The version of the format.
pub const LOCKFILE_VERSION: u64 = 1;

/// A tool in a locked chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locked {
    /// Its id.
    pub tool_id: String,
    /// Its version.
    pub version: String,
    /// The hash of its content.
    pub integrity: String,
    /// The tool that ran it.
    pub executor: Option<String>,
}

/// A lockfile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lockfile {
    /// When it was made.
    pub generated_at: String,
    /// The chain, the leaf first.
    pub resolved_chain: Vec<Locked>,
    /// Where the tool came from, and when it was fetched.
    pub registry: Option<(String, String)>,
}

/// The first difference between a lockfile and a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockFault {
    /// Where in the chain, the leaf being 0.
    pub position: usize,
    /// What differs: `length`, `tool_id`, `version` or `integrity`.
    pub field: &'static str,
    /// What the lockfile says.
    pub locked: String,
    /// What was found.
    pub found: String,
}

impl std::fmt::Display for LockFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "lockfile: {} at position {} of the chain is `{}` and was `{}`",
            self.field, self.position, self.found, self.locked
        )
    }
}

impl std::error::Error for LockFault {}

impl From<LockFault> for Error {
    fn from(fault: LockFault) -> Self {
        Self::denied(fault.to_string()).hint("look at what changed, then sign the tool again")
    }
}

impl Lockfile {
    /// Makes a lockfile for a chain.
    pub fn of(chain: &Chain, generated_at: impl Into<String>) -> Self {
        let resolved_chain = chain.links.iter().map(|link| Locked {
            tool_id: link.tool_id.clone(),
            version: link.version.clone(),
            integrity: link.integrity.clone(),
            executor: link.executor_id.clone(),
        });
        Self {
            generated_at: generated_at.into(),
            resolved_chain: resolved_chain.collect(),
            registry: None,
        }
    }

    /// Checks that a chain is still the one that was locked.
    pub fn check(&self, chain: &Chain) -> Result<(), LockFault> {
        for (position, (locked, found)) in self.resolved_chain.iter().zip(&chain.links).enumerate()
        {
            for (field, locked, found) in [
                ("tool_id", &locked.tool_id, &found.tool_id),
                ("version", &locked.version, &found.version),
                ("integrity", &locked.integrity, &found.integrity),
            ] {
                if locked != found {
                    return Err(LockFault {
                        position,
                        field,
                        locked: locked.clone(),
                        found: found.clone(),
                    });
                }
            }
        }
        let (n_locked, n_found) = (self.resolved_chain.len(), chain.links.len());
        if n_locked != n_found {
            return Err(LockFault {
                position: n_locked.min(n_found),
                field: "length",
                locked: n_locked.to_string(),
                found: n_found.to_string(),
            });
        }
        Ok(())
    }

    /// The file's content.
    pub fn to_json(&self) -> Value {
        let entry = |locked: &Locked| {
            json!({
                "tool_id": locked.tool_id,
                "version": locked.version,
                "integrity": locked.integrity,
                "executor": locked.executor,
            })
        };
        let root = self.resolved_chain.first().map(
            |root| json!({"tool_id": root.tool_id, "version": root.version, "integrity": root.integrity}),
        );
        let registry = self.registry.as_ref();
        json!({
            "lockfile_version": LOCKFILE_VERSION,
            "generated_at": self.generated_at,
            "root": root,
            "resolved_chain": self.resolved_chain.iter().map(entry).collect::<Vec<_>>(),
            "registry": registry.map(|(url, at)| json!({"url": url, "fetched_at": at})),
        })
    }

    /// From a file's content.
    pub fn from_json(value: &Value) -> Result<Self> {
        let broken = |what: &str| {
            Error::corrupt(format!("lockfile: {what}")).hint("remove it and sign the tool again")
        };
        if value.get("lockfile_version").and_then(Value::as_u64) != Some(LOCKFILE_VERSION) {
            return Err(broken("`lockfile_version` is not 1"));
        }
        let text = |value: &Value, name: &str| -> Result<String> {
            let text = value.get(name).and_then(Value::as_str).map(str::to_owned);
            text.ok_or_else(|| broken(&format!("`{name}` is missing")))
        };
        let entry = |value: &Value| -> Result<Locked> {
            Ok(Locked {
                tool_id: text(value, "tool_id")?,
                version: text(value, "version")?,
                integrity: text(value, "integrity")?,
                executor: text(value, "executor").ok(),
            })
        };
        let chain = value.get("resolved_chain").and_then(Value::as_array);
        let chain = chain.ok_or_else(|| broken("`resolved_chain` is missing"))?;
        let registry = value.get("registry").filter(|it| !it.is_null());
        let lockfile = Self {
            generated_at: text(value, "generated_at")?,
            resolved_chain: chain.iter().map(entry).collect::<Result<_>>()?,
            registry: registry
                .map(|it| Ok::<_, Error>((text(it, "url")?, text(it, "fetched_at")?)))
                .transpose()?,
        };
        // The root repeats the first link; a different one was tampered with.
        if value.get("root") != lockfile.to_json().get("root") {
            return Err(broken("`root` is not the first link of `resolved_chain`"));
        }
        Ok(lockfile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::{Children, Link, resolve};

    fn chain() -> Chain {
        let leaf = Link {
            tool_id: "leaf".to_owned(),
            version: "1.2.3".to_owned(),
            tool_type: "script".to_owned(),
            executor_id: Some("bash_runtime".to_owned()),
            config: serde_json::Map::new(),
            config_schema: None,
            children: Children::None,
            as_child: json!({}),
            integrity: "abc".to_owned(),
        };
        resolve(leaf, |_| Ok(None)).unwrap()
    }

    #[test]
    fn a_lockfile_reads_back_what_it_wrote() {
        let mut lockfile = Lockfile::of(&chain(), "2026-01-02T03:04:05Z");
        for registry in [
            None,
            Some(("https://r.example".to_owned(), "2026".to_owned())),
        ] {
            lockfile.registry = registry;
            assert_eq!(Lockfile::from_json(&lockfile.to_json()).unwrap(), lockfile);
        }
        let good = lockfile.to_json();
        assert_eq!(good["root"]["integrity"], "abc");
        assert_eq!(good["resolved_chain"][0]["executor"], "bash_runtime");
        assert_eq!(good["resolved_chain"][2]["executor"], Value::Null);
        for (key, value) in [
            ("lockfile_version", json!(2)),
            ("generated_at", json!(null)),
            ("resolved_chain", json!([{}])),
            ("resolved_chain", json!(null)),
            ("resolved_chain", json!([])),
            (
                "root",
                json!({"tool_id": "other", "version": "1.2.3", "integrity": "abc"}),
            ),
            ("registry", json!({"url": 1})),
        ] {
            let mut bad = good.clone();
            bad[key] = value;
            assert!(Lockfile::from_json(&bad).is_err(), "{key}");
        }
    }

    #[test]
    fn each_difference_is_found_at_its_position() {
        let locked = Lockfile::of(&chain(), "2026-01-02T03:04:05Z");
        assert_eq!(locked.check(&chain()), Ok(()));
        type Change = fn(&mut Chain);
        let cases: [(Change, usize, &str); 5] = [
            (|it| it.links[0].integrity.push('x'), 0, "integrity"),
            (|it| it.links[1].version = "2.0.0".to_owned(), 1, "version"),
            (
                |it| it.links[1].tool_id = "node_runtime".to_owned(),
                1,
                "tool_id",
            ),
            (|it| drop(it.links.pop()), 2, "length"),
            (|it| it.links.push(it.links[0].clone()), 3, "length"),
        ];
        for (change, position, field) in cases {
            let mut changed = chain();
            change(&mut changed);
            let fault = locked.check(&changed).unwrap_err();
            assert_eq!((fault.position, fault.field), (position, field));
            assert!(Error::from(fault).message.contains("position"));
        }
    }
}
