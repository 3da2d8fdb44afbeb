//! Directives as skills: what other programs know as a folder with a `SKILL.md`.

use super::package::{Item, Package};
use super::{ItemResult, not_found};
use crate::{Caller, Engine, Scope};
use kenning_core::{Code, Error, Result};
use kenning_items::ItemType;
use kenning_items::directive::Directive;
use kenning_vault::Dir;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// A directive, as a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Its version.
    pub version: String,
    /// What it wants to be told: name, description, whether it must be.
    pub inputs: Vec<(String, String, bool)>,
    /// The text of its `SKILL.md`.
    pub text: String,
}

impl Skill {
    fn of(directive: Directive) -> Self {
        let inputs = directive.inputs.iter();
        Self {
            inputs: inputs
                .map(|it| (it.name.clone(), it.description.clone(), it.required))
                .collect(),
            text: text_of(&directive),
            name: directive.name,
            description: directive.description,
            version: directive.version,
        }
    }
}

/// A `SKILL.md`: a head with the two fields that every reader of skills knows, then the text.
fn text_of(directive: &Directive) -> String {
    let plain = directive.content.replace("\r\n", "\n");
    let body = plain.trim_start_matches('\u{feff}');
    let body = match body
        .strip_prefix("---\n")
        .and_then(|it| it.split_once("\n---\n"))
    {
        Some((_, body)) => body,
        None => body,
    };
    format!(
        "---\nname: {}\ndescription: {}\nversion: {}\n---\n\n{}\n",
        json!(directive.name),
        json!(directive.description),
        json!(directive.version),
        body.trim()
    )
}

impl Engine {
    /// Every directive that may be used, by its name; project before user.
    pub fn skills(&self, caller: &Caller) -> Result<Vec<Skill>> {
        caller.principal.require(Scope::Read)?;
        let project = self.item_project(caller, None)?;
        let mut found: BTreeMap<String, Skill> = BTreeMap::new();
        for shelf in self.shelves(caller, ItemType::Directive, project.as_ref())? {
            for place in self.places(&shelf)? {
                if found.contains_key(place.id.as_str()) {
                    continue;
                }
                // One that cannot be read, or that nobody vouches for, hides no other.
                let Ok(package) = Package::read(&shelf, &place) else {
                    continue;
                };
                let Ok(item) = package.item() else { continue };
                if self
                    .require_vouched(caller, &package, &shelf, &item)
                    .is_err()
                {
                    continue;
                }
                if let Item::Directive(directive) = item {
                    found.insert(place.id.as_str().to_owned(), Skill::of(*directive));
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// One of them.
    pub fn skill(&self, caller: &Caller, name: &str) -> ItemResult<Skill> {
        caller.principal.require(Scope::Read)?;
        let project = self.item_project(caller, None)?;
        let shelves = self.shelves(caller, ItemType::Directive, project.as_ref())?;
        let found = self.locate(&shelves, name)?;
        let (shelf, package) = found.ok_or_else(|| not_found(ItemType::Directive, name))?;
        let item = package.valid_item()?;
        self.require_vouched(caller, &package, &shelf, &item)?;
        match item {
            Item::Directive(directive) => Ok(Skill::of(*directive)),
            _ => Err(Error::internal("a directive is a directive").into()),
        }
    }

    /// Writes every directive as a skill folder and gives their names. Folders that hold something
    /// else are left alone.
    pub fn export_skills(&self, caller: &Caller, to: &Path) -> Result<Vec<String>> {
        let skills = self.skills(caller)?;
        let dir = Dir::create(to)?;
        let mut written = Vec::new();
        for skill in skills {
            let name = format!("{}/SKILL.md", skill.name);
            match dir.read(&name, skill.text.len() as u64) {
                Ok(same) if same == skill.text.as_bytes() => {}
                Ok(_) => return Err(in_the_way(&name)),
                Err(error) if error.code == Code::TooLarge => return Err(in_the_way(&name)),
                Err(error) if error.code == Code::NotFound => {
                    dir.write(&name, skill.text.as_bytes())?;
                }
                Err(error) => return Err(error),
            }
            written.push(skill.name);
        }
        Ok(written)
    }
}

fn in_the_way(name: &str) -> Error {
    Error::conflict(format!("`{name}` is there already and says something else"))
        .hint("remove it, or name another directory")
}
