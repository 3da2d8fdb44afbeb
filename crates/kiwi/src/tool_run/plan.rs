//! The files that make a tool run, with their signatures checked.

use super::super::item_dirs::{ItemDir, ItemProject};
use super::super::package::{Item, Package};
use super::super::{ItemFault, ItemResult, ItemTarget, not_found};
use crate::Kiwi;
use kenning_core::{Error, Result};
use kenning_items::chain::builtin::Primitive;
use kenning_items::chain::{Chain, ChainFault, Link, resolve};
use kenning_items::grants::Asks;
use kenning_items::{ItemType, Tool};
use kenning_kernel::Caller;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A tool that was found and checked, with its chain.
pub(super) struct Plan {
    pub(super) project: Option<ItemProject>,
    pub(super) item_dir: ItemDir,
    pub(super) package: Package,
    pub(super) tool: Tool,
    pub(super) chain: Chain,
    /// What all links of the chain request together.
    pub(super) asks: Asks,
    /// The environment variables that they declare; the leaf wins.
    pub(super) env: BTreeMap<String, Option<String>>,
}

impl Plan {
    pub(super) fn path(&self) -> String {
        let path = self.package.path_on(&self.item_dir);
        path.to_string_lossy().into_owned()
    }
}

impl Kiwi {
    /// Finds a tool and its chain.
    pub(super) fn plan_tool(&self, caller: &Caller, target: &ItemTarget) -> ItemResult<Plan> {
        let project = self.item_project(caller, target.project_path.as_deref())?;
        let item_dirs = self.item_dirs(caller, ItemType::Tool, project.as_ref())?;
        let found = self.locate(&item_dirs, &target.id)?;
        let (item_dir, package) = found.ok_or_else(|| not_found(ItemType::Tool, &target.id))?;
        let (tool, link) = self.signed_link(caller, &item_dir, &package)?;
        let mut asks = asked(&tool);
        let mut env = tool.env.clone();
        let mut details = Map::new();
        let chain = resolve(with_component(&tool, link), |id| {
            let Some((item_dir, package)) = self.locate(&item_dirs, id)? else {
                return Ok(None);
            };
            let (tool, link) = self
                .signed_link(caller, &item_dir, &package)
                .map_err(|fault| {
                    details.extend(fault.details);
                    fault.error
                })?;
            join(&mut asks, asked(&tool));
            for (name, value) in tool.env {
                env.entry(name).or_insert(value);
            }
            Ok(Some(link))
        });
        let chain = chain.map_err(|fault| chain_fault(fault, details))?;
        Ok(Plan {
            project,
            item_dir,
            package,
            tool,
            chain,
            asks,
            env,
        })
    }

    /// A link of a chain, if it is signed by a trusted key.
    fn signed_link(
        &self,
        caller: &Caller,
        item_dir: &ItemDir,
        package: &Package,
    ) -> ItemResult<(Tool, Link)> {
        let item = package.valid_item()?;
        let mark = self.require_signed(caller, package, item_dir, &item)?;
        let Item::Tool(tool) = item else {
            return Err(Error::internal("the tool has another type").into());
        };
        let integrity = match mark {
            Some(mark) => mark.sha256,
            None => package.subject(&tool.version).sha256(),
        };
        let link = Link::of(&tool, integrity);
        Ok((*tool, link))
    }
}

/// If the tool's entry point is a component and nothing else is declared, the sandbox runs it.
fn with_component(tool: &Tool, mut link: Link) -> Link {
    let is_said = ["tool", "wasm"]
        .iter()
        .any(|it| link.config.contains_key(*it));
    let entry = tool.entrypoint.as_ref().filter(|it| it.ends_with(".wasm"));
    if let (false, Some(entry)) = (is_said, entry)
        && link.executor_id.as_deref() == Some(Primitive::Wasm.id())
    {
        link.config.insert("wasm".to_owned(), entry.as_str().into());
    }
    link
}

/// What a tool requests; a declared variable without a value is requested too.
fn asked(tool: &Tool) -> Asks {
    let mut asks = tool.asks.clone();
    let unset = tool.env.iter().filter(|it| it.1.is_none());
    for (name, _) in unset {
        if !asks.env.contains(name) {
            asks.env.push(name.clone());
        }
    }
    for host in &mut asks.net {
        host.make_ascii_lowercase();
    }
    asks
}

fn join(all: &mut Asks, more: Asks) {
    fn add<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
        for it in more {
            if !all.contains(&it) {
                all.push(it);
            }
        }
    }
    add(&mut all.read, more.read);
    add(&mut all.write, more.write);
    add(&mut all.net, more.net);
    add(&mut all.env, more.env);
}

/// The fault of a chain with the fields that the contract gives.
pub(super) fn chain_fault(
    fault: Box<ChainFault>,
    mut details: Map<String, Value>,
) -> Box<ItemFault> {
    let said = fault.to_json();
    for name in ["code", "chain", "failed_at", "cause"] {
        details.insert(name.to_owned(), said[name].clone());
    }
    details.insert("status".to_owned(), "error".into());
    ItemFault::with(Error::from(fault), Value::Object(details))
}

/// Checks the inputs of a tool.
pub(super) fn check_inputs(tool: &Tool, inputs: &Map<String, Value>) -> ItemResult<()> {
    let mut given = inputs.clone();
    // Not an input of the tool, but the directory where it works.
    given.remove("_project_path");
    let given = Value::Object(given);
    let Err(fault) = tool.check_parameters(&given) else {
        return Ok(());
    };
    let all: Vec<Value> = tool.parameters.iter().map(|it| it.to_json()).collect();
    let names: Vec<&String> = inputs.keys().collect();
    let solution = format!(
        "Provide them: execute(item_type='tool', action='run', item_id='{}', parameters={{'inputs': {{...}}}})",
        tool.id
    );
    let error = match fault.missing.as_slice() {
        [] => Error::invalid(format!(
            "Input validation failed: {}",
            fault.issues.join("; ")
        )),
        missing => Error::missing(format!(
            "Required tool inputs are missing: {}",
            missing.join(", ")
        )),
    };
    Err(ItemFault::with(
        error.hint(&*solution),
        json!({
            "missing_inputs": fault.missing, "validation_issues": fault.issues,
            "all_inputs": all, "provided_inputs": names, "solution": solution,
        }),
    ))
}

/// The configuration of the primitive, with placeholders filled in.
pub(super) fn config(
    chain: &Chain,
    variables: &BTreeMap<String, String>,
) -> Result<Map<String, Value>, Box<ChainFault>> {
    chain.config(|name| variables.get(name).map(|it| it.as_str().into()))
}
