//! Running a directive or a knowledge entry returns its text. Nothing in the text is executed here.

use super::package::Item;
use super::runs::{GRANTS, Grant, forget_old_grants};
use super::{ItemFault, ItemResult, ItemTarget, not_found};
use crate::Kiwi;
use kenning_core::{Error, Hash};
use kenning_items::directive::{self, Directive, check_inputs};
use kenning_items::{ItemType, Place, Scope as ItemScope, builtin};
use kenning_kernel::{Caller, Scope};
use serde_json::{Map, Value, json};

/// A step of a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectiveStep {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub description: String,
    /// The action.
    pub action: String,
}

/// A directive, ready to be followed.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectiveRun {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is for.
    pub description: String,
    /// Its category.
    pub category: String,
    /// Where it is kept; `None` for a built-in one.
    pub location: Option<ItemScope>,
    /// The path of its file, if it has one.
    pub path: Option<String>,
    /// Its inputs.
    pub inputs: Vec<Value>,
    /// A schema of all inputs together.
    pub input_schema: Option<Value>,
    /// The inputs that were given.
    pub provided: Map<String, Value>,
    /// In order.
    pub steps: Vec<DirectiveStep>,
    /// The whole text.
    pub content: String,
    /// The hash that was signed.
    pub integrity: Option<String>,
    /// Later calls with this id are limited to what the directive grants; none for a dry run.
    pub run_id: Option<String>,
    /// What it grants, as text.
    pub capabilities: Vec<String>,
}

/// A knowledge entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnowledgeRun {
    /// Its id.
    pub zettel_id: String,
    /// Its title.
    pub title: String,
    /// Its version.
    pub version: String,
    /// Everything after the frontmatter.
    pub content: String,
    /// One of the eight types.
    pub entry_type: String,
    /// Its category.
    pub category: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Where it is kept.
    pub location: ItemScope,
    /// The path of its file.
    pub path: String,
    /// The hash that was signed.
    pub integrity: Option<String>,
}

impl Kiwi {
    /// Checks a directive and its inputs, and returns its steps.
    pub fn run_directive(
        &self,
        caller: &Caller,
        target: &ItemTarget,
        parameters: &Map<String, Value>,
    ) -> ItemResult<DirectiveRun> {
        self.run_directive_within(caller, target, parameters, None)
    }

    /// The same as part of another directive's run: it gets no more grants, and none that last
    /// longer.
    pub fn run_directive_within(
        &self,
        caller: &Caller,
        target: &ItemTarget,
        parameters: &Map<String, Value>,
        parent: Option<&str>,
    ) -> ItemResult<DirectiveRun> {
        caller.principal.require(Scope::Read)?;
        let parent = parent.map(|it| self.run_grants(caller, it)).transpose()?;
        let project = self.item_project(caller, target.project_path.as_deref())?;
        let item_dirs = self.item_dirs(caller, ItemType::Directive, project.as_ref())?;
        let found = self.locate(&item_dirs, &target.id)?;
        let (directive, mark, dir_of, path) = match found {
            Some((item_dir, package)) => {
                let item = package.valid_item()?;
                let mark = self.require_signed(caller, &package, &item_dir, &item)?;
                let path = package.path_on(&item_dir).to_string_lossy().into_owned();
                (directive_of(item)?, mark, Some(item_dir), Some(path))
            }
            None => match builtin_directive(&target.id) {
                Some(directive) => (directive, None, None, None),
                None => return Err(not_found(ItemType::Directive, &target.id)),
            },
        };
        let provided = Value::Object(parameters.clone());
        check_inputs(&directive, &provided).map_err(|fault| {
            let all: Vec<Value> = directive.inputs.iter().map(|it| it.to_json()).collect();
            let solution = format!(
                "Provide them in parameters: execute(item_type='directive', action='run', item_id='{}', parameters={{...}})",
                directive.name
            );
            let names: Vec<&String> = parameters.keys().collect();
            if fault.missing.is_empty() {
                return ItemFault::with(
                    Error::invalid(format!("Input validation failed: {}", fault.issues.join("; "))).hint(&*solution),
                    json!({
                        "error": "Input validation failed", "validation_issues": fault.issues,
                        "all_inputs": all, "provided_inputs": names, "solution": solution,
                    }),
                );
            }
            ItemFault::with(
                Error::missing(format!("Required directive inputs are missing: {}", fault.missing.join(", "))).hint(&*solution),
                json!({
                    "error": "Required directive inputs are missing",
                    "missing_inputs": fault.missing, "validation_issues": fault.issues,
                    "all_inputs": all, "provided_inputs": names, "solution": solution,
                }),
            )
        })?;
        let mut grants = kenning_items::grants::Grants::of(&directive.permissions);
        let now_ms = self.kernel.log().clock().now_ms();
        let mut at_ms = now_ms;
        if let Some(parent) = &parent {
            grants = grants.within(&parent.grants);
            at_ms = parent.at_ms;
        }
        let capabilities = grants.capabilities();
        // Built-in directives run in the project of the call.
        let project_name = match &dir_of {
            Some(item_dir) => item_dir.project.clone(),
            None => project.map(|it| it.name).unwrap_or_default(),
        };
        let mut run_id = None;
        if !target.dry_run && !self.kernel.is_read_only() {
            let mut bytes = [0; 16];
            self.kernel.log().random().fill(&mut bytes);
            let id = format!("run_{}", &Hash::of(&bytes).to_string()[..24]);
            let row = Grant {
                directive: directive.name.clone(),
                version: directive.version.clone(),
                grants: grants.to_json(),
                at_ms,
                parent: parent.as_ref().map(|it| it.id.clone()),
                project: project_name,
            };
            let data = json!({
                "type": "directive", "id": directive.name, "version": directive.version,
                "runId": id, "success": true,
            });
            self.kernel.log().write(&caller.principal.space, {
                let id = id.clone();
                move |tx| {
                    forget_old_grants(tx, now_ms)?;
                    GRANTS.set(tx, &id, &row)?;
                    tx.record("ItemRun", data).map(drop)
                }
            })?;
            run_id = Some(id);
        }
        let steps = directive.steps.iter().map(|step| DirectiveStep {
            name: step.name.clone(),
            description: step.description.clone(),
            action: step.action.clone(),
        });
        Ok(DirectiveRun {
            steps: steps.collect(),
            inputs: directive.inputs.iter().map(|it| it.to_json()).collect(),
            location: dir_of.map(|it| it.scope),
            path,
            provided: parameters.clone(),
            integrity: mark.map(|it| it.sha256),
            run_id,
            capabilities,
            name: directive.name,
            version: directive.version,
            description: directive.description,
            category: directive.category,
            input_schema: directive.input_schema,
            content: directive.content,
        })
    }

    /// A knowledge entry, with its signature checked.
    pub fn run_knowledge(&self, caller: &Caller, target: &ItemTarget) -> ItemResult<KnowledgeRun> {
        caller.principal.require(Scope::Read)?;
        let project = self.item_project(caller, target.project_path.as_deref())?;
        let item_dirs = self.item_dirs(caller, ItemType::Knowledge, project.as_ref())?;
        let found = self.locate(&item_dirs, &target.id)?;
        let (item_dir, package) =
            found.ok_or_else(|| not_found(ItemType::Knowledge, &target.id))?;
        let item = package.valid_item()?;
        let mark = self.require_signed(caller, &package, &item_dir, &item)?;
        let Item::Knowledge(entry) = item else {
            return Err(unexpected_type("knowledge entry", &item).into());
        };
        let data = json!({
            "type": "knowledge", "id": entry.zettel_id, "version": entry.version,
            "success": true,
        });
        if !target.dry_run && self.kernel.records_read() {
            self.kernel
                .later()
                .write(&caller.principal.space, move |tx| {
                    tx.record("ItemRun", data).map(drop)
                });
        }
        Ok(KnowledgeRun {
            location: item_dir.scope,
            path: package.path_on(&item_dir).to_string_lossy().into_owned(),
            integrity: mark.map(|it| it.sha256),
            zettel_id: entry.zettel_id,
            title: entry.title,
            version: entry.version,
            content: entry.body,
            entry_type: entry.entry_type,
            category: entry.category,
            tags: entry.tags,
        })
    }
}

fn directive_of(item: Item) -> kenning_core::Result<Box<Directive>> {
    match item {
        Item::Directive(directive) => Ok(directive),
        other => Err(unexpected_type("directive", &other)),
    }
}

fn unexpected_type(expected: &str, found: &Item) -> Error {
    let found = match found {
        Item::Directive(_) => "directive",
        Item::Tool(_) => "tool",
        Item::Knowledge(_) => "knowledge entry",
    };
    Error::internal(format!("expected a {expected}, found a {found}"))
}

/// A built-in directive.
pub(super) fn builtin_directive(id: &str) -> Option<Box<Directive>> {
    let builtin = builtin::directive(id)?;
    let path = format!("{}/{id}.md", builtin::CATEGORY);
    let place = Place::of(ItemType::Directive, &path)?;
    directive::read(builtin.text, &place).ok().map(Box::new)
}
