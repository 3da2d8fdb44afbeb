//! Resolves what runs a tool: the tool, the tool that runs it, and so on down to a primitive.
//!
//! [`resolve`] follows `executor_id` with a lookup function from the caller, who decides where links
//! come from and whether they are signed. [`Chain::config`] then merges the configurations of all
//! links, fills in variables and checks the result against the primitive's schema.
//!
//! The names of built-in links ([`builtin`]) are reserved: a file of that name never replaces one.

pub mod builtin;
pub mod template;

use crate::schema;
use crate::tool::{ChildSchema, Tool};
use kenning_core::{Code, Error};
use serde_json::{Map, Value, json};

/// The longest chain, the leaf and the primitive included.
pub const DEPTH_MAX: usize = 10;

/// One tool in a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its id.
    pub tool_id: String,
    /// Its version.
    pub version: String,
    /// What kind of tool.
    pub tool_type: String,
    /// What runs it; none for a primitive.
    pub executor_id: Option<String>,
    /// Its part of the configuration.
    pub config: Map<String, Value>,
    /// The schema of the configuration.
    pub config_schema: Option<Value>,
    /// What it requires of the tools that it runs.
    pub children: Children,
    /// The fields that the link that runs it checks.
    pub as_child: Value,
    /// The hash of the tool.
    pub integrity: String,
}

/// What a link requires of the tool that it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Children {
    /// It says nothing, so it runs nothing.
    None,
    /// Any tool.
    Any,
    /// A tool that matches one of these; the first match counts.
    Of(Vec<ChildSchema>),
}

impl Link {
    /// The link of a tool, with the hash of the tool.
    pub fn of(tool: &Tool, integrity: impl Into<String>) -> Self {
        let children = tool.child_schemas.clone();
        Self {
            tool_id: tool.id.clone(),
            version: tool.version.clone(),
            tool_type: tool.tool_type.clone(),
            executor_id: tool.executor_id.clone(),
            config: tool.config.clone(),
            config_schema: tool.config_schema.clone(),
            children: children.map_or(Children::None, Children::Of),
            as_child: tool.as_child(),
            integrity: integrity.into(),
        }
    }
}

/// A chain from the leaf to the primitive.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The leaf first, the primitive last.
    pub links: Vec<Link>,
    /// The primitive at its end.
    pub primitive: builtin::Primitive,
}

/// Why a chain cannot run, in the form that the contract gives.
#[derive(Debug)]
pub struct ChainFault {
    /// `TOOL_CHAIN_FAILED` or `CONFIG_VALIDATION_ERROR`.
    pub code: &'static str,
    /// What happened.
    pub message: String,
    /// The ids so far, the leaf first.
    pub chain: Vec<String>,
    /// The id of the link that failed.
    pub tool_id: String,
    /// The path in the configuration, if that is what failed.
    pub config_path: Option<String>,
    /// Everything that does not match.
    pub validation_errors: Vec<String>,
    /// What to do.
    pub hint: String,
    /// The error of the lookup.
    pub cause: Option<Error>,
}

const CHAIN_FAILED: &str = "TOOL_CHAIN_FAILED";
const CONFIG_INVALID: &str = "CONFIG_VALIDATION_ERROR";

impl ChainFault {
    fn new(chain: &[String], tool_id: &str, message: String, hint: &str) -> Box<Self> {
        Box::new(Self {
            code: CHAIN_FAILED,
            message,
            chain: chain.to_vec(),
            tool_id: tool_id.to_owned(),
            config_path: None,
            validation_errors: Vec::new(),
            hint: hint.to_owned(),
            cause: None,
        })
    }

    /// As JSON, for responses.
    pub fn to_json(&self) -> Value {
        json!({
            "code": self.code,
            "message": self.message,
            "chain": self.chain,
            "failed_at": {
                "tool_id": self.tool_id,
                "config_path": self.config_path,
                "validation_errors": self.validation_errors,
            },
            "cause": self.cause.as_ref().map(ToString::to_string),
        })
    }
}

impl From<Box<ChainFault>> for Error {
    fn from(fault: Box<ChainFault>) -> Self {
        let code = fault
            .cause
            .as_ref()
            .map_or(Code::InvalidInput, |it| it.code);
        let mut message = fault.message;
        if !fault.validation_errors.is_empty() {
            message = format!("{message}: {}", fault.validation_errors.join("; "));
        }
        Self::new(code, message).hint(fault.hint)
    }
}

/// Follows a chain from the leaf. `lookup` gives the link of an id that is not built in.
pub fn resolve(
    leaf: Link,
    mut lookup: impl FnMut(&str) -> Result<Option<Link>, Error>,
) -> Result<Chain, Box<ChainFault>> {
    let mut ids = vec![leaf.tool_id.clone()];
    let mut links = vec![leaf];
    loop {
        let Some(last) = links.last() else {
            return Err(ChainFault::new(
                &ids,
                "",
                "the chain is empty".to_owned(),
                "",
            ));
        };
        let Some(next) = last.executor_id.clone() else {
            return end(links, &ids);
        };
        let is_cycle = ids.contains(&next);
        ids.push(next.clone());
        let path = ids.join(" -> ");
        if is_cycle {
            let message = format!("the chain is circular: {path}");
            let hint = "set `executor_id` of one of them to a runtime or a primitive";
            return Err(ChainFault::new(&ids, &next, message, hint));
        }
        if ids.len() > DEPTH_MAX {
            let message = format!("the chain is longer than {DEPTH_MAX}: {path}");
            return Err(ChainFault::new(&ids, &next, message, "use fewer links"));
        }
        let found = match builtin::link(&next) {
            Some(link) => Ok(Some(link)),
            None => lookup(&next),
        };
        let parent = match found {
            Ok(Some(link)) => link,
            Ok(None) => {
                let message = format!("no tool `{next}` in the chain {path}");
                let hint = "load it first, or name another `executor_id`";
                let mut fault = ChainFault::new(&ids, &next, message, hint);
                fault.cause = Some(Error::not_found("tool", &next));
                return Err(fault);
            }
            Err(cause) => {
                let message = format!("tool `{next}` in the chain {path} cannot be used: {cause}");
                let hint = cause.hint.clone().unwrap_or_default();
                let mut fault = ChainFault::new(&ids, &next, message, &hint);
                fault.cause = Some(cause);
                return Err(fault);
            }
        };
        check_child(&parent, last, &ids)?;
        links.push(parent);
    }
}

/// Checks the last link: only built-in primitives can run something, whatever a link says.
fn end(links: Vec<Link>, ids: &[String]) -> Result<Chain, Box<ChainFault>> {
    let last = ids.last().map_or("", String::as_str);
    let Some(primitive) = builtin::Primitive::of(last) else {
        let message = format!("`{last}` is not a primitive and has no `executor_id`");
        let hint = "end the chain with `subprocess`, `http_client`, `wasm` or `mcp`";
        return Err(ChainFault::new(ids, last, message, hint));
    };
    Ok(Chain { links, primitive })
}

fn check_child(parent: &Link, child: &Link, ids: &[String]) -> Result<(), Box<ChainFault>> {
    let schemas = match &parent.children {
        Children::Any => return Ok(()),
        Children::None => {
            let message = format!(
                "`{}` does not say which tools it runs, so it does not run `{}`",
                parent.tool_id, child.tool_id
            );
            let hint = "add `validation.child_schemas` to it";
            return Err(ChainFault::new(ids, &parent.tool_id, message, hint));
        }
        Children::Of(schemas) => schemas,
    };
    let Some(schema) = schemas.iter().find(|it| matches(it, &child.as_child)) else {
        let message = format!(
            "`{}` does not run tools like `{}`",
            parent.tool_id, child.tool_id
        );
        let hint = "see its `validation.child_schemas`";
        return Err(ChainFault::new(ids, &child.tool_id, message, hint));
    };
    let Err(issues) = schema::validate(&schema.schema, &child.as_child) else {
        return Ok(());
    };
    let message = format!(
        "`{}` is not a tool that `{}` runs",
        child.tool_id, parent.tool_id
    );
    let hint = "see its `validation.child_schemas`";
    let mut fault = ChainFault::new(ids, &child.tool_id, message, hint);
    fault.validation_errors = issues.iter().map(ToString::to_string).collect();
    Err(fault)
}

/// Whether every path in the match has its value; a list means any of them.
fn matches(schema: &ChildSchema, child: &Value) -> bool {
    schema.matches.iter().all(|(path, wanted)| {
        let found = path.split('.').try_fold(child, |at, part| at.get(part));
        match (found, wanted) {
            (Some(found), Value::Array(choices)) => choices.contains(found) || found == wanted,
            (Some(found), wanted) => found == wanted,
            (None, _) => false,
        }
    })
}

impl Chain {
    /// The ids, the leaf first.
    pub fn ids(&self) -> Vec<String> {
        self.links.iter().map(|it| it.tool_id.clone()).collect()
    }

    /// The configuration of the primitive: merged so that the leaf wins, with variables from
    /// `variable`, and checked.
    pub fn config(
        &self,
        variable: impl Fn(&str) -> Option<Value>,
    ) -> Result<Map<String, Value>, Box<ChainFault>> {
        let mut merged = Map::new();
        for link in self.links.iter().rev() {
            merge(&mut merged, &link.config);
        }
        let leaf = self.links.first().map_or("", |it| it.tool_id.as_str());
        let fault = |message: String, hint: &str| {
            let mut fault = ChainFault::new(&self.ids(), leaf, message, hint);
            fault.code = CONFIG_INVALID;
            fault
        };
        let filled = template::fill(&Value::Object(merged), &variable).map_err(|missing| {
            let message = format!("variable `{}` is not set", missing.name);
            let hint = "declare it in `env` and set it, or write `${NAME:-default}`";
            let mut fault = fault(message, hint);
            fault.config_path = Some(missing.path);
            fault
        })?;
        let last = self.links.last();
        if let Some(wanted) = last.and_then(|it| it.config_schema.as_ref())
            && let Err(issues) = schema::validate(wanted, &filled)
        {
            let message = format!(
                "the configuration of `{leaf}` does not match the schema of `{}`",
                self.primitive
            );
            let hint = "change `config` of the tool or of its executor";
            let mut fault = fault(message, hint);
            fault.config_path = issues.first().map(|it| it.path.clone());
            fault.validation_errors = issues.iter().map(ToString::to_string).collect();
            return Err(fault);
        }
        match filled {
            Value::Object(config) => Ok(config),
            _ => Ok(Map::new()),
        }
    }
}

/// Merges `over` into `under`: maps are merged, everything else is replaced.
fn merge(under: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(Value::Object(under)), Value::Object(over)) => merge(under, over),
            _ => {
                under.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(id: &str, executor: Option<&str>, config: Value) -> Link {
        let Value::Object(config) = config else {
            panic!("not a map")
        };
        Link {
            tool_id: id.to_owned(),
            version: "1.0.0".to_owned(),
            tool_type: "script".to_owned(),
            executor_id: executor.map(str::to_owned),
            config,
            config_schema: None,
            children: Children::Any,
            as_child: json!({"tool_id": id, "tool_type": "script", "manifest": {"language": "python"}}),
            integrity: format!("hash of {id}"),
        }
    }

    fn found(links: &[Link]) -> impl Fn(&str) -> Result<Option<Link>, Error> {
        move |id| Ok(links.iter().find(|it| it.tool_id == id).cloned())
    }

    fn none(_: &str) -> Result<Option<Link>, Error> {
        Ok(None)
    }

    #[test]
    fn a_script_runs_by_its_runtime_and_that_by_a_primitive() {
        for (executor, command, primitive) in [
            ("python_runtime", "python3", builtin::Primitive::Subprocess),
            ("bash_runtime", "bash", builtin::Primitive::Subprocess),
            ("node_runtime", "node", builtin::Primitive::Subprocess),
        ] {
            let chain = resolve(link("leaf", Some(executor), json!({"timeout": 5})), none).unwrap();
            assert_eq!(chain.ids(), ["leaf", executor, "subprocess"]);
            assert_eq!(chain.primitive, primitive);
            let config = chain.config(|_| None).unwrap();
            assert_eq!(config["command"], command);
            assert_eq!(config["timeout"], 5);
        }
    }

    #[test]
    fn the_leaf_wins_and_maps_are_merged() {
        let middle = link(
            "middle",
            Some("subprocess"),
            json!({
                "command": "x", "args": ["a", "b"], "env": {"A": "1", "B": "1"},
            }),
        );
        let leaf = link(
            "leaf",
            Some("middle"),
            json!({"args": ["${N}"], "env": {"B": "${N}"}}),
        );
        let chain = resolve(leaf, found(&[middle])).unwrap();
        let config = chain
            .config(|name| (name == "N").then(|| json!("2")))
            .unwrap();
        assert_eq!(
            Value::Object(config),
            json!({"timeout": 300, "capture_output": true, "command": "x", "args": ["2"], "env": {"A": "1", "B": "2"}})
        );
    }

    #[test]
    fn a_circle_is_named_whole() {
        let links = [
            link("b", Some("c"), json!({})),
            link("c", Some("b"), json!({})),
        ];
        let fault = resolve(link("a", Some("b"), json!({})), found(&links)).unwrap_err();
        assert!(
            fault.message.contains("a -> b -> c -> b"),
            "{}",
            fault.message
        );
        assert_eq!(fault.to_json()["failed_at"]["tool_id"], "b");
        let own = resolve(link("a", Some("a"), json!({})), none).unwrap_err();
        assert!(own.message.contains("a -> a"), "{}", own.message);
    }

    #[test]
    fn ten_links_are_a_chain_and_eleven_are_not() {
        for (n_between, fits) in [(DEPTH_MAX - 2, true), (DEPTH_MAX - 1, false)] {
            let links: Vec<Link> = (0..n_between)
                .map(|i| {
                    let next = if i + 1 == n_between {
                        "subprocess".to_owned()
                    } else {
                        format!("t{}", i + 1)
                    };
                    link(&format!("t{i}"), Some(&next), json!({"command": "x"}))
                })
                .collect();
            let chain = resolve(link("leaf", Some("t0"), json!({})), found(&links));
            assert_eq!(chain.is_ok(), fits, "{n_between}");
        }
    }

    #[test]
    fn what_is_missing_unsigned_or_no_primitive_is_refused_with_the_chain() {
        let missing = resolve(link("leaf", Some("gone"), json!({})), none).unwrap_err();
        assert!(
            missing.message.contains("leaf -> gone"),
            "{}",
            missing.message
        );
        assert_eq!(Error::from(missing).code, Code::NotFound);
        let refused = resolve(link("leaf", Some("x"), json!({})), |_| {
            Err(Error::denied("it is not signed").hint("sign it"))
        });
        let refused = refused.unwrap_err();
        assert_eq!(refused.to_json()["cause"], "it is not signed (sign it)");
        assert_eq!(Error::from(refused).code, Code::Denied);
        let own = [link("mine", None, json!({}))];
        let fault = resolve(link("leaf", Some("mine"), json!({})), found(&own)).unwrap_err();
        assert!(fault.hint.contains("subprocess"), "{}", fault.hint);
    }

    #[test]
    fn a_file_never_stands_in_for_what_is_built_in() {
        let mut false_one = link("python_runtime", None, json!({"command": "evil"}));
        false_one.tool_type = "primitive".to_owned();
        let leaf = link("leaf", Some("python_runtime"), json!({}));
        let chain = resolve(leaf, found(&[false_one])).unwrap();
        assert_eq!(chain.config(|_| None).unwrap()["command"], "python3");
    }

    #[test]
    fn a_parent_says_what_it_runs() {
        let demands = |demand: Value| {
            let Value::Object(matches) = demand["match"].clone() else {
                panic!("no match")
            };
            let schema = demand["schema"].clone();
            Children::Of(vec![ChildSchema { matches, schema }])
        };
        let wants_entry = json!({
            "type": "object",
            "properties": {"manifest": {"type": "object", "required": ["entrypoint"]}},
        });
        for (children, part) in [
            (Children::Any, None),
            (Children::None, Some("does not say")),
            (
                demands(json!({"match": {"tool_type": "script"}, "schema": true})),
                None,
            ),
            (
                demands(json!({"match": {"tool_type": ["api", "script"]}, "schema": true})),
                None,
            ),
            (
                demands(json!({"match": {"manifest.language": "python"}, "schema": true})),
                None,
            ),
            (
                demands(json!({"match": {"tool_type": "api"}, "schema": true})),
                Some("does not run"),
            ),
            (
                demands(json!({"match": {"tool_type": "script"}, "schema": wants_entry})),
                Some("is not a tool that"),
            ),
        ] {
            let mut parent = link("parent", Some("subprocess"), json!({"command": "x"}));
            parent.children = children.clone();
            let chain = resolve(link("leaf", Some("parent"), json!({})), found(&[parent]));
            match part {
                None => assert!(chain.is_ok(), "{children:?}"),
                Some(part) => {
                    let message = chain.unwrap_err().message;
                    assert!(message.contains(part), "{message}");
                }
            }
        }
    }

    #[test]
    fn each_primitive_checks_its_configuration() {
        for (executor, config, path) in [
            (
                "subprocess",
                json!({"command": "x", "args": ["a"], "input_data": "y"}),
                None,
            ),
            ("subprocess", json!({}), Some("command")),
            (
                "subprocess",
                json!({"command": "x", "args": "a"}),
                Some("args"),
            ),
            (
                "subprocess",
                json!({"command": "x", "timeout": 0}),
                Some("timeout"),
            ),
            (
                "subprocess",
                json!({"command": "x", "env": {"A": 1}}),
                Some("env.A"),
            ),
            (
                "http_client",
                json!({"url": "https://a/{id}", "method": "POST", "body": {"a": 1}}),
                None,
            ),
            ("http_client", json!({"method": "GET"}), Some("url")),
            (
                "http_client",
                json!({"url": "x", "method": "FLY"}),
                Some("method"),
            ),
            (
                "http_client",
                json!({"url": "x", "retry": {"max_attempts": 0}}),
                Some("retry.max_attempts"),
            ),
            ("http_client", json!({"url": "x", "mode": "stream"}), None),
            ("wasm", json!({"tool": "my_tool"}), None),
            ("wasm", json!({"wasm": "tool.wasm"}), None),
            ("wasm", json!({}), Some("")),
            ("mcp", json!({"server": "everything", "tool": "echo"}), None),
            (
                "mcp",
                json!({"command": "npx", "args": ["x"], "tool": "echo"}),
                None,
            ),
            (
                "mcp",
                json!({"url": "http://127.0.0.1", "tool": "echo"}),
                None,
            ),
            (
                "mcp",
                json!({"server": "a", "url": "b", "tool": "echo"}),
                Some(""),
            ),
            ("mcp", json!({"server": "everything"}), Some("tool")),
        ] {
            let chain = resolve(link("leaf", Some(executor), config.clone()), none).unwrap();
            let fault = chain.config(|_| None).err();
            let found = fault.as_ref().and_then(|it| it.config_path.as_deref());
            assert_eq!(found, path, "{executor} {config}");
            if let Some(fault) = fault {
                assert_eq!(fault.to_json()["code"], "CONFIG_VALIDATION_ERROR");
                assert!(!fault.validation_errors.is_empty());
            }
        }
    }

    #[test]
    fn a_variable_that_is_not_set_is_named_with_its_place() {
        let config = json!({"command": "x", "env": {"KEY": "${API_KEY}"}});
        let chain = resolve(link("leaf", Some("subprocess"), config), none).unwrap();
        let fault = chain.config(|_| None).unwrap_err();
        assert!(fault.message.contains("`API_KEY`"), "{}", fault.message);
        assert_eq!(fault.config_path.as_deref(), Some("env.KEY"));
    }
}
