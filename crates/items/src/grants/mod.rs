//! What a directive's permissions allow the tools under it to do.
//!
//! A [`Permission`] is what an author wrote, [`Grants`] are what follows from it, [`Asks`] are what a
//! tool's manifest requests. What is not granted is denied. Grants only shrink: [`Grants::within`]
//! keeps what both have, and where two patterns overlap without one covering the other, it keeps
//! nothing.

mod common;
mod glob;

use crate::kind::shown;
use crate::{Faults, yaml};
use kenning_core::{Error, Result};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub use common::Common;
pub use glob::Glob;

/// The attribute that a bare value of a permission sets, and the resource that it implies.
const SHORT_FORMS: &[(&str, &str, Option<&str>)] = &[
    ("read", "path", Some("filesystem")),
    ("write", "path", Some("filesystem")),
    ("execute", "id", Some("tool")),
    ("tool", "id", None),
    ("spawn", "resource", None),
    ("registry", "action", None),
    ("kiwi-mcp", "action", None),
    ("net", "host", None),
    ("env", "name", None),
    ("mcp", "server", None),
];
/// The actions of Kiwi that each action includes.
const INCLUDES: &[(&str, &[&str])] = &[
    ("all", &["execute", "search", "load", "help"]),
    ("execute", &["search", "load", "help"]),
];
const EVERYTHING: &str = "**";

/// One permission as its author wrote it: `<read resource="filesystem" path="src/**"/>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The element's name.
    pub verb: String,
    /// Its attributes.
    pub attributes: BTreeMap<String, String>,
}

impl Permission {
    /// Checks what can be checked: paths. An unknown verb grants nothing.
    pub fn new(
        verb: &str,
        attributes: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Faults> {
        let permission = Self {
            verb: verb.to_owned(),
            attributes: attributes.into_iter().collect(),
        };
        for path in permission.paths() {
            if let Err(why) = Glob::parse(path) {
                return Err(Faults::one(
                    format!("permissions.{verb}.path"),
                    format!("`{}` {why}", shown(path)),
                    "use a path within the project, with `*` and `**`",
                ));
            }
        }
        Ok(permission)
    }

    /// From YAML: a list of `verb: {attributes}`, or a map of verbs to lists of values.
    pub fn list(value: &Value) -> Result<Vec<Self>, Faults> {
        let mut out = Vec::new();
        match value {
            Value::Null => {}
            Value::Object(map) => {
                for (verb, value) in map {
                    Self::push(&mut out, verb, value)?;
                }
            }
            Value::Array(list) => {
                for entry in list {
                    let Value::Object(map) = entry else {
                        return Err(Self::unclear("permissions", entry));
                    };
                    for (verb, value) in map {
                        Self::push(&mut out, verb, value)?;
                    }
                }
            }
            other => return Err(Self::unclear("permissions", other)),
        }
        Ok(out)
    }

    fn push(out: &mut Vec<Self>, verb: &str, value: &Value) -> Result<(), Faults> {
        match value {
            Value::Object(map) => {
                let texts = map.iter().map(|(key, value)| {
                    let text = yaml::text_of(value);
                    text.map(|text| (key.clone(), text))
                });
                let attributes = texts
                    .collect::<Option<Vec<_>>>()
                    .ok_or_else(|| Self::unclear(verb, value))?;
                out.push(Self::new(verb, attributes)?);
            }
            Value::Array(list) => {
                for value in list {
                    Self::push(out, verb, value)?;
                }
            }
            Value::Bool(false) => {}
            other => {
                let form = SHORT_FORMS.iter().find(|it| it.0 == verb);
                let text = yaml::text_of(other);
                let (Some((_, key, resource)), Some(text)) = (form, text) else {
                    return Err(Self::unclear(verb, other));
                };
                let resource = resource.map(|it| ("resource".to_owned(), it.to_owned()));
                let attributes = resource.into_iter().chain([((*key).to_owned(), text)]);
                out.push(Self::new(verb, attributes)?);
            }
        }
        Ok(())
    }

    fn unclear(field: &str, value: &Value) -> Faults {
        Faults::one(
            format!("permissions.{field}"),
            format!("`{}` is not a permission", shown(&value.to_string())),
            "write for example `read: [\"src/**\"]` or `- execute: {resource: tool, id: my_tool}`",
        )
    }

    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        let of_files = matches!(self.verb.as_str(), "read" | "write");
        let paths = self.attribute("path").or_else(|| self.attribute("paths"));
        let paths = paths.filter(|_| of_files).unwrap_or_default();
        paths.split(',').map(str::trim).filter(|it| !it.is_empty())
    }

    /// As JSON, for responses and the store.
    pub fn to_json(&self) -> Value {
        json!({"tag": self.verb, "attrs": self.attributes})
    }
}

/// What a tool's manifest requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asks {
    /// Patterns of paths to read.
    pub read: Vec<Glob>,
    /// Patterns of paths to write.
    pub write: Vec<Glob>,
    /// Hosts to reach.
    pub net: Vec<String>,
    /// Environment variables to see.
    pub env: Vec<String>,
    /// Whether it lists what it reads. A tool that does not may read everything that is granted.
    pub says_read: bool,
}

impl Asks {
    /// From `permissions: {read: […], write: […], net: […], env: […]}`.
    pub fn read(value: &Value) -> Result<Self, Faults> {
        let mut faults = Faults::default();
        let mut asks = Self::default();
        let empty = Map::new();
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Null => &empty,
            other => {
                let message = format!("`{}` is not a mapping", shown(&other.to_string()));
                faults.add("permissions", message, ASKS_REMEDY);
                &empty
            }
        };
        for (name, value) in fields {
            let field = format!("permissions.{name}");
            let Some(texts) = yaml::texts(value) else {
                faults.add(field, "is not a list of strings", ASKS_REMEDY);
                continue;
            };
            match name.as_str() {
                "read" => {
                    asks.says_read = true;
                    asks.read = globs(&mut faults, &field, &texts);
                }
                "write" => asks.write = globs(&mut faults, &field, &texts),
                "net" => {
                    check_all(
                        &mut faults,
                        &field,
                        &texts,
                        is_host,
                        "name hosts such as `api.example.com`",
                    );
                    asks.net = texts;
                }
                "env" => {
                    check_all(
                        &mut faults,
                        &field,
                        &texts,
                        is_variable,
                        "name variables such as `API_KEY`",
                    );
                    asks.env = texts;
                }
                _ => faults.add(
                    field,
                    "is not a permission that a tool can request",
                    ASKS_REMEDY,
                ),
            }
        }
        faults.or(asks)
    }

    /// As JSON, for responses and the store.
    pub fn to_json(&self) -> Value {
        let texts = |it: &[Glob]| it.iter().map(Glob::to_string).collect::<Vec<_>>();
        json!({
            "read": texts(&self.read),
            "write": texts(&self.write),
            "net": self.net,
            "env": self.env,
        })
    }

    /// Whether it requests nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

const ASKS_REMEDY: &str = "write `permissions: {read: […], write: […], net: […], env: […]}`";

fn check_all(
    faults: &mut Faults,
    field: &str,
    texts: &[String],
    is_good: fn(&str) -> bool,
    remedy: &str,
) {
    for text in texts.iter().filter(|it| !is_good(it)) {
        faults.add(
            field,
            format!("`{}` is not valid here", shown(text)),
            remedy,
        );
    }
}

fn globs(faults: &mut Faults, field: &str, texts: &[String]) -> Vec<Glob> {
    let mut out = Vec::new();
    for text in texts {
        match Glob::parse(text) {
            Ok(glob) => out.push(glob),
            Err(why) => {
                let remedy = "use a path within the project, with `*` and `**`";
                faults.add(field, format!("`{}` {why}", shown(text)), remedy);
            }
        }
    }
    out
}

/// A host name or address, with `*` for a part or for all, optionally with a port.
fn is_host(text: &str) -> bool {
    let good =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '*' | ':' | '[' | ']');
    !text.is_empty() && text.len() <= 253 && text.chars().all(good)
}

/// A name that an environment variable may have.
pub(crate) fn is_variable(text: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty()
        && text.len() <= 128
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(good)
}

/// What a directive grants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    read: BTreeSet<Glob>,
    write: BTreeSet<Glob>,
    net: BTreeSet<String>,
    env: BTreeSet<String>,
    /// `tool.<id>`, `kiwi-mcp.<action>`, `registry.write`, `spawn.thread`, `mcp.<server>`.
    caps: BTreeSet<String>,
}

impl Grants {
    /// What a directive's permissions grant.
    pub fn of(permissions: &[Permission]) -> Self {
        let mut grants = Self::default();
        for permission in permissions {
            grants.add(permission);
        }
        grants.expanded()
    }

    fn add(&mut self, permission: &Permission) {
        let attribute = |name: &str| permission.attribute(name);
        let resource = attribute("resource");
        let is_file = matches!(resource, None | Some("filesystem" | "file" | "fs"));
        let id = attribute("id").or_else(|| attribute("name")).unwrap_or("*");
        let action = attribute("action");
        match (permission.verb.as_str(), resource) {
            ("read" | "write", Some("registry")) => {
                self.caps.insert(format!("registry.{}", permission.verb));
            }
            ("read", _) if is_file => self.read.extend(paths_of(permission)),
            ("write", _) if is_file => self.write.extend(paths_of(permission)),
            ("execute", Some("kiwi-mcp")) | ("kiwi-mcp", _) => {
                self.caps
                    .insert(format!("kiwi-mcp.{}", action.unwrap_or("all")));
            }
            ("execute", Some("registry")) | ("registry", _) => {
                self.caps
                    .insert(format!("registry.{}", action.unwrap_or("write")));
            }
            ("execute", Some("spawn")) | ("spawn", _) => {
                let what = resource.filter(|it| *it != "spawn").or(action);
                self.caps
                    .insert(format!("spawn.{}", what.unwrap_or("thread")));
            }
            ("execute", Some("mcp")) | ("mcp", _) => {
                let server = attribute("server").or_else(|| attribute("name"));
                self.caps.insert(format!("mcp.{}", server.unwrap_or("*")));
            }
            // A tool must be named; `*` means any.
            ("execute", None | Some("tool")) | ("tool", _) if attribute("id").is_some() => {
                self.caps.insert(format!("tool.{id}"));
            }
            ("net", _) => self.net.extend(attribute("host").map(str::to_owned)),
            ("env", _) => self.env.extend(attribute("name").map(str::to_owned)),
            _ => {}
        }
    }

    /// Adds what is included: writing includes reading, and an action its lesser ones.
    fn expanded(mut self) -> Self {
        self.read.extend(self.write.iter().cloned());
        for (action, lesser) in INCLUDES {
            if self.caps.contains(&format!("kiwi-mcp.{action}")) {
                let lesser = lesser.iter().map(|it| format!("kiwi-mcp.{it}"));
                self.caps.extend(lesser);
            }
        }
        self
    }

    /// The capabilities as the original names them, `fs.read` and `fs.write` among them.
    pub fn capabilities(&self) -> Vec<String> {
        let mut out: Vec<String> = self.caps.iter().cloned().collect();
        let files = [("fs.read", &self.read), ("fs.write", &self.write)];
        out.extend(
            files
                .iter()
                .filter(|it| !it.1.is_empty())
                .map(|it| it.0.to_owned()),
        );
        out.extend(self.net.iter().map(|it| format!("net.{it}")));
        out.extend(self.env.iter().map(|it| format!("env.{it}")));
        out.sort_unstable();
        out
    }

    /// Patterns of what may be read.
    pub fn reads(&self) -> Vec<Glob> {
        self.read.iter().cloned().collect()
    }

    /// Patterns of what may be written.
    pub fn writes(&self) -> Vec<Glob> {
        self.write.iter().cloned().collect()
    }

    /// Whether a file may be read, by its path within the project.
    pub fn may_read(&self, path: &str) -> bool {
        Glob::parse(path).is_ok_and(|path| any_covers(&self.read, &path))
    }

    /// Whether a file may be written.
    pub fn may_write(&self, path: &str) -> bool {
        Glob::parse(path).is_ok_and(|path| any_covers(&self.write, &path))
    }

    /// Whether a tool may be run.
    pub fn may_run(&self, tool_id: &str) -> bool {
        self.may("tool", tool_id)
    }

    /// Whether an action of Kiwi's may be called: `search`, `load`, `execute`, `help`.
    pub fn may_call(&self, action: &str) -> bool {
        self.may("kiwi-mcp", action)
    }

    /// Whether a capability of a family is granted, such as `may("registry", "write")`.
    pub fn may(&self, family: &str, name: &str) -> bool {
        self.caps.iter().any(|cap| {
            let pattern = cap.strip_prefix(family).and_then(|it| it.strip_prefix('.'));
            pattern.is_some_and(|pattern| glob::name_covers(pattern, name))
        })
    }

    /// Whether a host may be reached, optionally on one port. A grant without a port is for every
    /// port.
    pub fn may_reach(&self, host: &str) -> bool {
        let bare = host.rsplit_once(':').map(|it| it.0);
        let bare = bare.filter(|bare| !bare.contains(':') || bare.ends_with(']'));
        let mut forms = std::iter::once(host).chain(bare);
        forms.any(|it| any_name_covers(&self.net, it))
    }

    /// Whether a tool may run with everything that it requests; otherwise what is not granted.
    pub fn covers(&self, tool_id: &str, asks: &Asks) -> Result<(), Vec<String>> {
        let mut denied = Vec::new();
        if !self.may_run(tool_id) {
            denied.push(format!("tool.{tool_id}"));
        }
        for (name, granted, asked) in [
            ("fs.read", &self.read, &asks.read),
            ("fs.write", &self.write, &asks.write),
        ] {
            let missing = asked.iter().filter(|it| !any_covers(granted, it));
            denied.extend(missing.map(|it| format!("{name} {it}")));
        }
        let hosts = asks.net.iter().filter(|it| !self.may_reach(it));
        denied.extend(hosts.map(|it| format!("net.{it}")));
        let names = asks.env.iter();
        let names = names.filter(|it| !any_name_covers(&self.env, it));
        denied.extend(names.map(|it| format!("env.{it}")));
        if denied.is_empty() {
            Ok(())
        } else {
            Err(denied)
        }
    }

    /// The intersection with the parent's: a child never has more.
    #[must_use]
    pub fn within(&self, parent: &Self) -> Self {
        Self {
            read: shared(&self.read, &parent.read, Glob::covers),
            write: shared(&self.write, &parent.write, Glob::covers),
            net: shared(&self.net, &parent.net, |a, b| glob::name_covers(a, b)),
            env: shared(&self.env, &parent.env, |a, b| glob::name_covers(a, b)),
            caps: shared(&self.caps, &parent.caps, |a, b| glob::name_covers(a, b)),
        }
    }

    /// As JSON, for the store.
    pub fn to_json(&self) -> Value {
        let texts = |it: &BTreeSet<Glob>| it.iter().map(Glob::to_string).collect::<Vec<_>>();
        json!({
            "read": texts(&self.read),
            "write": texts(&self.write),
            "net": self.net,
            "env": self.env,
            "caps": self.caps,
        })
    }

    /// From the store. Refused unless it is exactly what [`Grants::to_json`] wrote.
    pub fn from_json(value: &Value) -> Result<Self> {
        let broken =
            |name: &str| Error::corrupt(format!("grants: `{name}` is not a list of strings"));
        let texts = |name: &str| -> Result<Vec<String>> {
            let list = value.get(name).and_then(Value::as_array);
            let texts = list.map(|list| {
                list.iter()
                    .map(|it| it.as_str().map(str::to_owned))
                    .collect::<Option<Vec<_>>>()
            });
            texts.flatten().ok_or_else(|| broken(name))
        };
        let globs = |name: &str| -> Result<BTreeSet<Glob>> {
            let globs = texts(name)?.into_iter().map(|it| Glob::parse(&it));
            globs.collect::<Result<_, _>>().map_err(|_| broken(name))
        };
        let grants = Self {
            read: globs("read")?,
            write: globs("write")?,
            net: texts("net")?.into_iter().collect(),
            env: texts("env")?.into_iter().collect(),
            caps: texts("caps")?.into_iter().collect(),
        };
        Ok(grants.expanded())
    }
}

/// Invalid paths grant nothing; a permission without paths grants the whole project.
fn paths_of(permission: &Permission) -> Vec<Glob> {
    let mut paths = permission.paths().peekable();
    if paths.peek().is_none() {
        return Glob::parse(EVERYTHING).into_iter().collect();
    }
    paths.filter_map(|it| Glob::parse(it).ok()).collect()
}

fn any_covers(granted: &BTreeSet<Glob>, asked: &Glob) -> bool {
    granted.iter().any(|it| it.covers(asked))
}

fn any_name_covers(granted: &BTreeSet<String>, asked: &str) -> bool {
    granted.iter().any(|it| glob::name_covers(it, asked))
}

fn shared<T: Ord + Clone>(
    a: &BTreeSet<T>,
    b: &BTreeSet<T>,
    covers: impl Fn(&T, &T) -> bool,
) -> BTreeSet<T> {
    let mut out = BTreeSet::new();
    for (wide, narrow) in [(a, b), (b, a)] {
        let kept = narrow
            .iter()
            .filter(|it| wide.iter().any(|wide| covers(wide, it)));
        out.extend(kept.cloned());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(permissions: &Value) -> Grants {
        Grants::of(&Permission::list(permissions).unwrap())
    }

    #[test]
    fn a_host_is_every_port_of_it_and_a_port_is_one() {
        let of = |host: &str| grants(&json!({"net": [host]}));
        for (granted, asked, may) in [
            ("a.example", "a.example", true),
            ("a.example", "a.example:443", true),
            ("a.example:443", "a.example:443", true),
            ("a.example:443", "a.example", false),
            ("a.example:443", "a.example:80", false),
            ("*", "a.example:80", true),
            ("*:80", "a.example:80", true),
            ("*.example", "a.example:80", true),
            ("*.example", "example:80", false),
            ("[::1]", "[::1]:80", true),
            ("fe80::", "fe80::1", false),
            ("a.example", "a.example.evil:443", false),
        ] {
            assert_eq!(of(granted).may_reach(asked), may, "{granted} {asked}");
        }
    }

    #[test]
    fn each_permission_becomes_the_capability_of_its_row() {
        for (permission, capabilities) in [
            (
                json!([{"read": {"resource": "filesystem", "path": "**"}}]),
                vec!["fs.read"],
            ),
            (
                json!([{"write": {"resource": "filesystem"}}]),
                vec!["fs.read", "fs.write"],
            ),
            (
                json!([{"execute": {"resource": "tool", "id": "x"}}]),
                vec!["tool.x"],
            ),
            (json!([{"execute": {"resource": "tool"}}]), vec![]),
            (
                json!([{"spawn": {"resource": "thread"}}]),
                vec!["spawn.thread"],
            ),
            (
                json!([{"registry": {"action": "write"}}]),
                vec!["registry.write"],
            ),
            (
                json!([{"write": {"resource": "registry"}}]),
                vec!["registry.write"],
            ),
            (
                json!([{"kiwi-mcp": {"action": "search"}}]),
                vec!["kiwi-mcp.search"],
            ),
            (
                json!([{"execute": {"resource": "kiwi-mcp", "action": "execute"}}]),
                vec![
                    "kiwi-mcp.execute",
                    "kiwi-mcp.help",
                    "kiwi-mcp.load",
                    "kiwi-mcp.search",
                ],
            ),
            (
                json!({"net": ["a.example"], "env": ["HOME"]}),
                vec!["env.HOME", "net.a.example"],
            ),
            (json!([{"fly": {"to": "moon"}}]), vec![]),
        ] {
            assert_eq!(
                grants(&permission).capabilities(),
                capabilities,
                "{permission}"
            );
        }
    }

    #[test]
    fn what_is_not_granted_is_denied() {
        let grants = grants(&json!({
            "read": ["docs/**"], "write": ["out/*"], "execute": ["fmt", "git_*"],
            "net": ["*.example.com"], "env": ["API_KEY"],
        }));
        for (path, may_read, may_write) in [
            ("docs/a.md", true, false),
            ("out/a", true, true),
            ("out/a/b", false, false),
            ("out/../docs/a.md", false, false),
            ("/etc/passwd", false, false),
            ("src/a", false, false),
        ] {
            assert_eq!(grants.may_read(path), may_read, "{path}");
            assert_eq!(grants.may_write(path), may_write, "{path}");
        }
        assert!(grants.may_run("fmt") && grants.may_run("git_log"));
        assert!(!grants.may_run("rm") && !grants.may_run(""));
        let asks = json!({"read": ["docs/*.md"], "net": ["api.example.com"], "env": ["API_KEY"]});
        assert_eq!(grants.covers("fmt", &Asks::read(&asks).unwrap()), Ok(()));
        let asks = json!({"write": ["docs/a"], "net": ["evil.com"], "env": ["HOME"]});
        assert_eq!(
            grants
                .covers("rm", &Asks::read(&asks).unwrap())
                .unwrap_err(),
            ["tool.rm", "fs.write docs/a", "net.evil.com", "env.HOME"]
        );
    }

    #[test]
    fn a_child_never_has_more_than_its_parent() {
        let parent =
            grants(&json!({"write": ["out/**"], "execute": ["git_*"], "kiwi-mcp": ["all"]}));
        let child = grants(&json!({
            "read": ["**"], "write": ["out/logs/**", "src/**"], "execute": ["git_log", "rm"],
            "kiwi-mcp": ["execute"], "net": ["*"],
        }));
        let both = child.within(&parent);
        assert_eq!(both, parent.within(&child));
        assert_eq!(both.within(&parent), both);
        for path in ["out/a", "out/logs/a", "src/a", "docs/a"] {
            assert_eq!(
                both.may_read(path),
                child.may_read(path) && parent.may_read(path),
                "{path}"
            );
            assert_eq!(
                both.may_write(path),
                child.may_write(path) && parent.may_write(path),
                "{path}"
            );
        }
        assert!(both.may_run("git_log") && !both.may_run("git_push") && !both.may_run("rm"));
        assert!(both.may_call("search") && !both.may_call("all"));
        assert_eq!(
            both.covers("git_log", &Asks::read(&json!({"net": ["a"]})).unwrap())
                .unwrap_err(),
            ["net.a"]
        );
    }

    #[test]
    fn grants_read_back_what_they_wrote() {
        let grants =
            grants(&json!({"write": ["out/**"], "execute": ["x"], "env": ["A"], "net": ["h"]}));
        assert_eq!(Grants::from_json(&grants.to_json()).unwrap(), grants);
        for broken in [json!({}), json!(null), json!({"read": [1]})] {
            assert!(Grants::from_json(&broken).is_err(), "{broken}");
        }
        let mut escaping = grants.to_json();
        escaping["read"] = json!(["../x"]);
        assert!(Grants::from_json(&escaping).is_err());
    }

    #[test]
    fn asking_for_what_there_is_not_is_a_fault() {
        for bad in [
            json!("all"),
            json!({"read": ["../x"]}),
            json!({"root": true}),
            json!({"env": ["A=B"]}),
            json!({"env": ["1A"]}),
            json!({"net": ["http://x/"]}),
            json!({"read": {"a": 1}}),
        ] {
            assert!(Asks::read(&bad).is_err(), "{bad}");
        }
        assert!(Permission::list(&json!({"read": ["../x"]})).is_err());
        assert!(Permission::list(&json!("all")).is_err());
    }
}
