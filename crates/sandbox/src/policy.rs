//! What the operator permits, and which of a tool's requests are granted.
//!
//! A manifest is a request; the policy is a ceiling. It is one TOML file: `[default]` for every tool,
//! `[tools."id"]` for one, whose lines stand in place of the default's. A missing line sets no
//! ceiling, because the operator saw the tool's requests when installing it. Nothing in the policy
//! gives a tool more than it asked for.

use crate::hosts::Host;
use crate::manifest::{
    Asked, Checked, FsKind, Manifest, Security, Star, TOOL_MEMORY_MB_MAX, check_id, unreadable,
};
use kenning_core::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The operator's ceilings.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    default: Ceiling,
    tools: BTreeMap<String, Ceiling>,
}

#[derive(Clone, Debug, Default)]
struct Ceiling {
    most: Checked,
    allow_unsigned: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    default: Row,
    #[serde(default)]
    tools: BTreeMap<String, Row>,
}

/// A table of the file. The fields of [`Asked`] stand here once more, because flattening would let
/// unknown keys through.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    net_allow_list: Option<toml::Value>,
    fs_access: Option<toml::Value>,
    env_allow_list: Option<toml::Value>,
    max_memory_mb: Option<toml::Value>,
    max_execution_ms: Option<toml::Value>,
    max_fuel: Option<toml::Value>,
    allow_unsigned: Option<bool>,
}

impl Policy {
    /// Reads the file.
    pub fn parse(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text).map_err(|err| unreadable("policy", text, &err))?;
        let mut tools = BTreeMap::new();
        for (id, row) in file.tools {
            check_id(&id)?;
            tools.insert(id, row.check()?);
        }
        let default = file.default.check()?;
        Ok(Self { default, tools })
    }

    /// Whether a tool without a trusted signature may be installed; `None` if the policy does not
    /// say, so that it depends on where the tool comes from.
    pub fn allow_unsigned(&self, id: &str) -> Option<bool> {
        let own = self.tools.get(id).and_then(|it| it.allow_unsigned);
        own.or(self.default.allow_unsigned)
    }

    fn of<T>(&self, id: &str, field: impl Fn(&Checked) -> Option<T>) -> Option<T> {
        let own = self.tools.get(id).and_then(|it| field(&it.most));
        own.or_else(|| field(&self.default.most))
    }
}

impl Row {
    fn check(self) -> Result<Ceiling> {
        let fields = [
            ("net_allow_list", self.net_allow_list),
            ("fs_access", self.fs_access),
            ("env_allow_list", self.env_allow_list),
            ("max_memory_mb", self.max_memory_mb),
            ("max_execution_ms", self.max_execution_ms),
            ("max_fuel", self.max_fuel),
        ];
        let fields = fields.into_iter();
        let fields = fields.filter_map(|(name, it)| Some((name.to_owned(), it?)));
        let asked = toml::Value::Table(fields.collect());
        let asked: Asked = asked.try_into().map_err(|err: toml::de::Error| {
            Error::invalid(format!("`policy`: {}", err.message().replace('\n', " ")))
        })?;
        Ok(Ceiling {
            most: asked.check(Star::Permitted)?,
            allow_unsigned: self.allow_unsigned,
        })
    }
}

/// What a tool is granted, and what was reduced, a sentence each.
pub fn effective(manifest: &Manifest, policy: &Policy) -> (Security, Vec<String>) {
    let (id, asked) = (manifest.id.as_str(), &manifest.security);
    let mut cut = Vec::new();
    let hosts = policy.of(id, |it| it.net_allow_list.clone());
    let variables = policy.of(id, |it| it.env_allow_list.clone());
    let files = policy.of(id, |it| it.fs_access);
    let granted = Security {
        net_allow_list: match hosts {
            Some(most) => common_hosts(&asked.net_allow_list, &most, &mut cut),
            None => asked.net_allow_list.clone(),
        },
        fs_access: files.map_or(asked.fs_access, |most| most.min(asked.fs_access)),
        env_allow_list: match variables {
            Some(most) => common_variables(&asked.env_allow_list, &most, &mut cut),
            None => asked.env_allow_list.clone(),
        },
        max_memory_mb: lower(
            "max_memory_mb",
            asked.max_memory_mb,
            // The host's own ceiling holds without a policy too.
            Some(
                policy
                    .of(id, |it| it.max_memory_mb)
                    .map_or(TOOL_MEMORY_MB_MAX, |most| most.min(TOOL_MEMORY_MB_MAX)),
            ),
            &mut cut,
        ),
        max_execution_ms: lower(
            "max_execution_ms",
            asked.max_execution_ms,
            policy.of(id, |it| it.max_execution_ms),
            &mut cut,
        ),
        max_fuel: lower(
            "max_fuel",
            asked.max_fuel,
            policy.of(id, |it| it.max_fuel),
            &mut cut,
        ),
    };
    if granted.fs_access != asked.fs_access {
        let (from, to) = (asked.fs_access, granted.fs_access);
        cut.push(format!("`fs_access` was lowered from `{from}` to `{to}`"));
    }
    (granted, cut)
}

/// What a new version asks for that the old one did not, a sentence each. An update that asks for more
/// needs the operator's approval again.
pub fn asks_more(old: &Security, new: &Security) -> Vec<String> {
    let mut more = Vec::new();
    for host in &new.net_allow_list {
        if !old.net_allow_list.iter().any(|it| it.covers(host)) {
            more.push(format!("it asks for the network host `{host}`"));
        }
    }
    if new.fs_access > old.fs_access {
        let (from, to) = (old.fs_access, new.fs_access);
        more.push(format!(
            "it asks for `fs_access = \"{to}\"` in place of `{from}`"
        ));
    }
    for name in &new.env_allow_list {
        if !permits_variable(&old.env_allow_list, name) {
            more.push(format!("it asks for the environment variable `{name}`"));
        }
    }
    let mut raised = |field: &str, old: u64, new: u64| {
        if new > old {
            more.push(format!("it asks for `{field} = {new}` in place of {old}"));
        }
    };
    raised(
        "max_memory_mb",
        old.max_memory_mb.into(),
        new.max_memory_mb.into(),
    );
    raised(
        "max_execution_ms",
        old.max_execution_ms,
        new.max_execution_ms,
    );
    raised("max_fuel", old.max_fuel, new.max_fuel);
    more
}

/// What an operator should consider before installing the tool, a sentence each.
pub fn concerns(asked: &Security) -> Vec<String> {
    let mut concerns = Vec::new();
    let wide = asked.net_allow_list.iter().any(Host::is_wide);
    if asked.net_allow_list.iter().any(|it| it.to_string() == "*") {
        concerns.push("it may send requests to every public host".to_owned());
    }
    for host in asked.net_allow_list.iter().filter(|it| it.is_literal()) {
        concerns.push(format!("it may reach `{host}`, which need not be public"));
    }
    if wide && !asked.env_allow_list.is_empty() {
        concerns.push("it sees environment variables and can send them anywhere".to_owned());
    }
    let secrets: Vec<&String> = asked
        .env_allow_list
        .iter()
        .filter(|it| is_secret(it))
        .collect();
    if !wide && !secrets.is_empty() && !asked.net_allow_list.is_empty() {
        let named = |all: &[String]| {
            let names: Vec<String> = all.iter().map(|it| format!("`{it}`")).collect();
            names.join(", ")
        };
        let secrets: Vec<String> = secrets.into_iter().cloned().collect();
        let hosts: Vec<String> = asked.net_allow_list.iter().map(Host::to_string).collect();
        let (secrets, hosts) = (named(&secrets), named(&hosts));
        concerns.push(format!(
            "it sees {secrets}, which looks like a secret, and can send it to {hosts}"
        ));
    }
    if wide && asked.fs_access != FsKind::None {
        concerns.push("it reads files and can send them anywhere".to_owned());
    }
    concerns
}

/// Whether the name of a variable suggests that its value is secret.
fn is_secret(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "TOKEN",
        "KEY",
        "KEYS",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWD",
        "PASS",
        "PASSPHRASE",
        "PWD",
        "CREDENTIAL",
        "CREDENTIALS",
        "AUTH",
        "PAT",
        "COOKIE",
        "SESSION",
        "JWT",
        "BEARER",
        "DSN",
        "PRIVATE",
        "SIGNATURE",
        "WEBHOOK",
    ];
    // Also where words are not parted, as in `GITHUBTOKEN`.
    const PARTS: &[&str] = &["TOKEN", "SECRET", "PASSWORD", "APIKEY", "CREDENTIAL"];
    let name = name.to_ascii_uppercase();
    let has_word = name
        .split(|it: char| !it.is_ascii_alphanumeric())
        .any(|word| WORDS.contains(&word));
    // Addresses of databases carry passwords.
    let is_address = [
        "DATABASE_URL",
        "DB_URL",
        "REDIS_URL",
        "MONGO_URL",
        "MONGODB_URI",
        "AMQP_URL",
    ]
    .iter()
    .any(|it| name.ends_with(it));
    has_word || is_address || PARTS.iter().any(|it| name.contains(it))
}

/// Whether a list of names permits a variable. In the policy, `*` permits every one.
fn permits_variable(list: &[String], name: &str) -> bool {
    list.iter().any(|entry| entry == name || entry == "*")
}

fn common_hosts(asked: &[Host], most: &[Host], cut: &mut Vec<String>) -> Vec<Host> {
    let mut granted: Vec<Host> = Vec::new();
    for host in asked {
        if most.iter().any(|it| it.covers(host)) {
            granted.push(host.clone());
            continue;
        }
        let narrower: Vec<&Host> = most.iter().filter(|it| host.covers(it)).collect();
        if narrower.is_empty() {
            cut.push(format!("the network host `{host}` is not permitted"));
        } else {
            let names: Vec<String> = narrower.iter().map(|it| format!("`{it}`")).collect();
            cut.push(format!(
                "the network host `{host}` was narrowed to {}",
                names.join(", ")
            ));
        }
        granted.extend(narrower.into_iter().cloned());
    }
    granted.dedup();
    granted
}

fn common_variables(asked: &[String], most: &[String], cut: &mut Vec<String>) -> Vec<String> {
    let mut granted = Vec::new();
    for name in asked {
        if permits_variable(most, name) {
            granted.push(name.clone());
        } else {
            cut.push(format!(
                "the environment variable `{name}` is not permitted"
            ));
        }
    }
    granted
}

fn lower<T>(field: &str, asked: T, most: Option<T>, cut: &mut Vec<String>) -> T
where
    T: Copy + PartialOrd + std::fmt::Display,
{
    match most.filter(|most| *most < asked) {
        Some(most) => {
            cut.push(format!("`{field}` was lowered from {asked} to {most}"));
            most
        }
        None => asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(security: &str) -> Manifest {
        let text = format!(
            "[tool]\nid = \"a.b\"\nname = \"b\"\nversion = \"1.0.0\"\nwasm = \"b.wasm\"\n[mcp]\ndescription = \"d\"\n[security]\n{security}"
        );
        Manifest::parse(&text).unwrap()
    }

    #[test]
    fn the_policy_is_a_ceiling() {
        let asked = manifest(
            "net_allow_list = [\"*.example.com\", \"evil.org\", \"api.github.com\"]\nfs_access = \"sandbox\"\nenv_allow_list = [\"A\", \"B\"]\nmax_memory_mb = 512\nmax_fuel = 10",
        );
        let policy = Policy::parse(
            "[default]\nnet_allow_list = [\"a.example.com\", \"*.github.com\"]\nfs_access = \"read-only\"\nenv_allow_list = [\"A\"]\nmax_memory_mb = 128\nmax_fuel = 1000\n[tools.\"a.b\"]\nmax_memory_mb = 256\n",
        )
        .unwrap();
        let (granted, cut) = effective(&asked, &policy);
        let hosts: Vec<String> = granted.net_allow_list.iter().map(Host::to_string).collect();
        assert_eq!(hosts, ["a.example.com", "api.github.com"]);
        assert_eq!(granted.fs_access, FsKind::ReadOnly);
        assert_eq!(granted.env_allow_list, ["A"]);
        assert_eq!((granted.max_memory_mb, granted.max_fuel), (256, 10));
        assert_eq!(
            cut,
            [
                "the network host `*.example.com` was narrowed to `a.example.com`",
                "the network host `evil.org` is not permitted",
                "the environment variable `B` is not permitted",
                "`max_memory_mb` was lowered from 512 to 256",
                "`fs_access` was lowered from `sandbox` to `read-only`",
            ]
        );
    }

    #[test]
    fn without_a_policy_a_tool_has_what_it_asked_for() {
        let asked = manifest("net_allow_list = [\"*\"]\nfs_access = \"sandbox\"\nmax_fuel = 5");
        let (granted, cut) = effective(&asked, &Policy::default());
        assert_eq!(granted, asked.security);
        assert!(cut.is_empty());
    }

    #[test]
    fn an_empty_list_in_the_policy_permits_nothing() {
        let asked = manifest("net_allow_list = [\"*\"]\nenv_allow_list = [\"A\"]");
        let policy =
            Policy::parse("[default]\nnet_allow_list = []\nenv_allow_list = []\n").unwrap();
        let (granted, cut) = effective(&asked, &policy);
        assert!(granted.net_allow_list.is_empty() && granted.env_allow_list.is_empty());
        assert_eq!(cut.len(), 2);
    }

    #[test]
    fn a_secret_that_can_leave_raises_a_concern_however_narrow_the_network_is() {
        for name in [
            "TOKEN",
            "GITHUB_TOKEN",
            "githubToken",
            "AWS_SECRET_ACCESS_KEY",
            "OPENAI_API_KEY",
            "DB_PASSWORD",
            "PGPASSWORD",
            "DATABASE_URL",
            "SENTRY_DSN",
            "GH_PAT",
        ] {
            let asked = manifest(&format!(
                "net_allow_list = [\"api.github.com\", \"b.org:8443\"]\nenv_allow_list = [\"LANG\", \"{name}\"]"
            ));
            assert_eq!(
                concerns(&asked.security),
                [format!(
                    "it sees `{name}`, which looks like a secret, and can send it to `api.github.com`, `b.org:8443`"
                )]
            );
        }
    }

    #[test]
    fn no_tool_is_granted_more_memory_than_a_tool_can_have() {
        let (granted, cut) = effective(&manifest("max_memory_mb = 4096"), &Policy::default());
        assert_eq!(granted.max_memory_mb, TOOL_MEMORY_MB_MAX);
        assert_eq!(cut, ["`max_memory_mb` was lowered from 4096 to 1024"]);
    }

    #[test]
    fn a_policy_with_a_fault_is_refused() {
        for (text, expected) in [
            ("[default]\nmax_fule = 1\n", "unknown field `max_fule`"),
            ("[defaults]\n", "unknown field `defaults`"),
            ("[tools.\"A\"]\nmax_fuel = 1\n", "`tool.id` is `A`"),
            ("[default]\nmax_fuel = 0\n", "`security.max_fuel` is 0"),
            (
                "[default]\nfs_access = \"root\"\n",
                "unknown variant `root`",
            ),
            ("[default]\nnet_allow_list = \"x\"\n", "invalid type"),
        ] {
            let error = Policy::parse(text).unwrap_err();
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn unsigned_tools_follow_the_nearest_word() {
        let policy = "[default]\nallow_unsigned = false\n[tools.\"a.b\"]\nallow_unsigned = true\n";
        let policy = Policy::parse(policy).unwrap();
        assert_eq!(policy.allow_unsigned("a.b"), Some(true));
        assert_eq!(policy.allow_unsigned("a.c"), Some(false));
        assert_eq!(Policy::default().allow_unsigned("a.b"), None);
    }

    #[test]
    fn an_update_that_asks_more_is_told_apart() {
        let old =
            manifest("net_allow_list = [\"*.a.com\"]\nenv_allow_list = [\"X\"]\nmax_fuel = 100");
        for (new, expected) in [
            ("net_allow_list = [\"b.a.com\"]\nmax_fuel = 100", vec![]),
            (
                "net_allow_list = [\"a.com\"]\nmax_fuel = 100",
                vec!["it asks for the network host `a.com`"],
            ),
            (
                "fs_access = \"sandbox\"\nmax_fuel = 100",
                vec!["it asks for `fs_access = \"sandbox\"` in place of `none`"],
            ),
            (
                "env_allow_list = [\"Y\"]\nmax_fuel = 101",
                vec![
                    "it asks for the environment variable `Y`",
                    "it asks for `max_fuel = 101` in place of 100",
                ],
            ),
        ] {
            assert_eq!(asks_more(&old.security, &manifest(new).security), expected);
        }
    }

    #[test]
    fn secrets_together_with_a_wide_network_raise_a_concern() {
        for quiet in [
            "net_allow_list = [\"api.github.com\"]\nenv_allow_list = [\"LANG\", \"MONKEY\", \"HOME\"]",
            "env_allow_list = [\"GITHUB_TOKEN\"]",
            "net_allow_list = [\"api.github.com\"]",
        ] {
            assert!(concerns(&manifest(quiet).security).is_empty(), "{quiet}");
        }
        let loud = manifest(
            "net_allow_list = [\"*\", \"127.0.0.1\"]\nenv_allow_list = [\"TOKEN\"]\nfs_access = \"sandbox\"",
        );
        assert_eq!(concerns(&loud.security).len(), 4);
    }
}
