//! Which files make a tool run, each of them vouched for.

use super::super::package::{Item, Package};
use super::super::shelves::{ItemProject, Shelf};
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

/// A tool that was found and checked, with everything that runs it.
pub(super) struct Plan {
    pub(super) project: Option<ItemProject>,
    pub(super) shelf: Shelf,
    pub(super) package: Package,
    pub(super) tool: Tool,
    pub(super) chain: Chain,
    /// What the leaf and all that run it ask for together.
    pub(super) asks: Asks,
    /// What they declare of the environment; the leaf wins.
    pub(super) env: BTreeMap<String, Option<String>>,
}

impl Plan {
    pub(super) fn path(&self) -> String {
        let path = self.package.path_on(&self.shelf);
        path.to_string_lossy().into_owned()
    }
}

impl Kiwi {
    /// Finds a tool and all that runs it.
    pub(super) fn plan_tool(&self, caller: &Caller, target: &ItemTarget) -> ItemResult<Plan> {
        let project = self.item_project(caller, target.project_path.as_deref())?;
        let shelves = self.shelves(caller, ItemType::Tool, project.as_ref())?;
        let found = self.locate(&shelves, &target.id)?;
        let (shelf, package) = found.ok_or_else(|| not_found(ItemType::Tool, &target.id))?;
        let (tool, link) = self.vouched_link(caller, &shelf, &package)?;
        let mut asks = asked(&tool);
        let mut env = tool.env.clone();
        let mut details = Map::new();
        let chain = resolve(with_component(&tool, link), |id| {
            let Some((shelf, package)) = self.locate(&shelves, id)? else {
                return Ok(None);
            };
            let (tool, link) = self
                .vouched_link(caller, &shelf, &package)
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
            shelf,
            package,
            tool,
            chain,
            asks,
            env,
        })
    }

    /// A file of a chain, if somebody who is trusted vouches for it.
    fn vouched_link(
        &self,
        caller: &Caller,
        shelf: &Shelf,
        package: &Package,
    ) -> ItemResult<(Tool, Link)> {
        let item = package.valid_item()?;
        let mark = self.require_vouched(caller, package, shelf, &item)?;
        let Item::Tool(tool) = item else {
            return Err(Error::internal("a tool is a tool").into());
        };
        let integrity = match mark {
            Some(mark) => mark.sha256,
            None => package.subject(&tool.version).sha256(),
        };
        let link = Link::of(&tool, integrity);
        Ok((*tool, link))
    }
}

/// A component that is the tool's entry is what the sandbox runs, if nothing else is said.
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

/// What a tool asks for; a variable without a value is asked for wherever it is declared.
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

/// The fault of a chain with the fields that the contract's notes give.
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

/// Whether what was given is what the tool wants.
pub(super) fn check_inputs(tool: &Tool, inputs: &Map<String, Value>) -> ItemResult<()> {
    let mut given = inputs.clone();
    // Not the tool's own, but where it is to work.
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

/// The configuration of the primitive, its placeholders filled in.
pub(super) fn config(
    chain: &Chain,
    variables: &BTreeMap<String, String>,
) -> Result<Map<String, Value>, Box<ChainFault>> {
    chain.config(|name| variables.get(name).map(|it| it.as_str().into()))
}
