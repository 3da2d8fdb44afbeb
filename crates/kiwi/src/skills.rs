//! Directives as skills: folders with a `SKILL.md` that other programs use.
//!
//! A directive that is such a folder is passed on byte for byte, without our signature line. For
//! others a `SKILL.md` is generated.

use super::item_dirs::ItemDir;
use super::package::{Item, Package};
use super::{ItemFault, ItemResult, not_found};
use crate::Kiwi;
use kenning_core::{Code, Error, Result};
use kenning_items::directive::{self, Directive, Input, Spelling};
use kenning_items::mark::{self, Style};
use kenning_items::{ItemType, kind, skill};
use kenning_kernel::{Caller, Scope};
use kenning_vault::Dir;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A directive, as a skill.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Its version.
    pub version: String,
    /// Its inputs.
    pub inputs: Vec<Input>,
    /// The text of its `SKILL.md`.
    pub text: String,
    /// The other files of its folder: their paths within it, and how large they are.
    pub files: Vec<(String, u64)>,
}

/// What was exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportedSkills {
    /// The folders that were written.
    pub names: Vec<String>,
    /// How many files they hold together.
    pub n_files: usize,
    /// Directives that were not exported, and why.
    pub left_out: Vec<(String, String)>,
    /// What other programs may refuse in the exported ones: the folder and the fault.
    pub faults: Vec<(String, String)>,
}

/// A directive that may be used.
struct UsableDirective {
    item_dir: ItemDir,
    package: Package,
    directive: Box<Directive>,
}

impl UsableDirective {
    fn to_skill(&self) -> Skill {
        let others = self.package.files.iter();
        let others = others.filter(|it| it.0 != kind::SKILL && self.is_folder());
        Skill {
            name: self.directive.name.clone(),
            description: self.directive.description.clone(),
            version: self.directive.version.clone(),
            inputs: directive::all_inputs(&self.directive),
            text: self.text(&skill::name_of(&self.directive.name)),
            files: others
                .map(|(path, bytes)| (path.clone(), bytes.len() as u64))
                .collect(),
        }
    }

    fn is_folder(&self) -> bool {
        self.directive.spelling == Spelling::Skill
    }

    /// The text of its `SKILL.md`, as it was before it was signed.
    fn text(&self, name: &str) -> String {
        match (self.is_folder(), self.package.main_text()) {
            (true, Ok(text)) => mark::strip(text, Style::Html),
            _ => skill::text_of(&self.directive, name),
        }
    }

    /// The folder that it is exported to, and its `SKILL.md`.
    ///
    /// A skill must be in a folder with its name, so a folder with another name is renamed, not the
    /// skill. Only an invalid name is replaced.
    fn exported(&self) -> std::result::Result<(String, String), String> {
        let made = skill::name_of(&self.directive.name);
        if !self.is_folder() {
            return Ok((made.clone(), self.text(&made)));
        }
        let text = self.text(&made);
        match skill::declared_name(&text) {
            Some(name) if skill::is_name(&name) => Ok((name, text)),
            _ => match skill::renamed(&text, &made) {
                Some(text) => Ok((made, text)),
                None => Err(
                    "its `name` is not a valid name of a skill and is not on one line".to_owned(),
                ),
            },
        }
    }
}

impl Kiwi {
    /// Calls a function for every directive that may be used, by name; project before user. `refuse`
    /// gets the others, with the reason.
    fn each_usable(
        &self,
        caller: &Caller,
        mut refuse: impl FnMut(&str, String),
        mut visit: impl FnMut(UsableDirective) -> Result<()>,
    ) -> Result<()> {
        let project = self.item_project(caller, None)?;
        let mut seen = BTreeSet::new();
        for item_dir in self.item_dirs(caller, ItemType::Directive, project.as_ref())? {
            for place in self.places(&item_dir)? {
                caller.check()?;
                let id = place.id.as_str();
                if seen.contains(id) {
                    continue;
                }
                // A directive that cannot be read or used does not hide another.
                let package = match Package::read(&item_dir, &place) {
                    Ok(package) => package,
                    Err(error) => {
                        refuse(id, error.message);
                        continue;
                    }
                };
                match self.usable(caller, &item_dir, package) {
                    Ok(found) => {
                        seen.insert(id.to_owned());
                        visit(found)?;
                    }
                    Err(fault) => refuse(id, fault.error.message),
                }
            }
        }
        Ok(())
    }

    fn usable(
        &self,
        caller: &Caller,
        item_dir: &ItemDir,
        package: Package,
    ) -> ItemResult<UsableDirective> {
        let item = package.valid_item()?;
        self.require_signed(caller, &package, item_dir, &item)?;
        match item {
            Item::Directive(directive) => Ok(UsableDirective {
                item_dir: item_dir.clone(),
                package,
                directive,
            }),
            _ => Err(Error::internal("the directive has another type").into()),
        }
    }

    fn find_usable(&self, caller: &Caller, name: &str) -> ItemResult<UsableDirective> {
        caller.principal.require(Scope::Read)?;
        let project = self.item_project(caller, None)?;
        let item_dirs = self.item_dirs(caller, ItemType::Directive, project.as_ref())?;
        let found = self.locate(&item_dirs, name)?;
        let (item_dir, package) = found.ok_or_else(|| not_found(ItemType::Directive, name))?;
        self.usable(caller, &item_dir, package)
    }

    /// Every directive that may be used, sorted by name; project before user.
    pub fn skills(&self, caller: &Caller) -> Result<Vec<Skill>> {
        caller.principal.require(Scope::Read)?;
        let mut found = Vec::new();
        let visit = |it: UsableDirective| {
            found.push(it.to_skill());
            Ok(())
        };
        self.each_usable(caller, |_, _| {}, visit)?;
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// One directive as a skill.
    pub fn skill(&self, caller: &Caller, name: &str) -> ItemResult<Skill> {
        Ok(self.find_usable(caller, name)?.to_skill())
    }

    /// A file in the folder of a skill, as it was signed.
    pub fn skill_file(&self, caller: &Caller, name: &str, path: &str) -> ItemResult<Vec<u8>> {
        let found = self.find_usable(caller, name)?;
        if path == kind::SKILL {
            return Ok(found.to_skill().text.into_bytes());
        }
        let bytes = found.package.file(path).filter(|_| found.is_folder());
        let missing = || {
            Error::new(
                Code::NotFound,
                format!("the skill `{name}` has no `{path}`"),
            )
        };
        Ok(bytes.ok_or_else(missing)?.to_vec())
    }

    /// A skill with its arguments, which are checked as for a run of the directive. Texts are
    /// converted to the declared types.
    pub fn skill_prompt(
        &self,
        caller: &Caller,
        name: &str,
        given: &Map<String, Value>,
    ) -> ItemResult<(Skill, Map<String, Value>)> {
        let found = self.find_usable(caller, name)?;
        let typed = directive::typed(&found.directive, given);
        let told = directive::with_defaults(&found.directive.inputs, &typed);
        directive::check_inputs(&found.directive, &Value::Object(typed)).map_err(|fault| {
            let missing = fault.missing.iter();
            let missing = missing.map(|it| format!("{it}: it is required and was not given"));
            let issues: Vec<String> = missing.chain(fault.issues.iter().cloned()).collect();
            ItemFault::with(
                Error::invalid(format!("the arguments are invalid: {}", issues.join("; "))),
                json!({ "missing_inputs": fault.missing, "validation_issues": fault.issues }),
            )
        })?;
        let told = match told {
            Value::Object(told) => told,
            _ => Map::new(),
        };
        Ok((found.to_skill(), told))
    }

    /// Writes every directive as a skill folder, with all its files. An existing file with other
    /// content is an error unless `replace` is set; other files are never removed.
    pub fn export_skills(
        &self,
        caller: &Caller,
        to: &Path,
        replace: bool,
    ) -> Result<ExportedSkills> {
        caller.principal.require(Scope::Read)?;
        let dir = Dir::create(to)?;
        let mut done = ExportedSkills::default();
        let mut left_out = Vec::new();
        let mut refused = Vec::new();
        let visit = |found: UsableDirective| {
            let id = found.directive.name.clone();
            let (folder, text) = match found.exported() {
                Ok(exported) => exported,
                Err(why) => {
                    left_out.push((id, why));
                    return Ok(());
                }
            };
            if done.names.contains(&folder) {
                let why = format!("another directive is exported as `{folder}` already");
                left_out.push((id, why));
                return Ok(());
            }
            let faults = skill::faults(&folder, &text).into_iter();
            done.faults.extend(faults.map(|it| (folder.clone(), it)));
            done.n_files += write_folder(&dir, &folder, &text, &found, replace)?;
            done.names.push(folder);
            Ok(())
        };
        let refuse = |id: &str, why: String| refused.push((id.to_owned(), why));
        self.each_usable(caller, refuse, visit)?;
        done.names.sort_unstable();
        refused.extend(left_out);
        done.left_out = refused;
        Ok(done)
    }
}

/// Writes one folder and returns the number of its files. Nothing is written if anything is in the
/// way.
fn write_folder(
    dir: &Dir,
    folder: &str,
    text: &str,
    found: &UsableDirective,
    replace: bool,
) -> Result<usize> {
    let mut files: Vec<(&str, &[u8])> = vec![(kind::SKILL, text.as_bytes())];
    if found.is_folder() {
        let others = found.package.files.iter().filter(|it| it.0 != kind::SKILL);
        files.extend(others.map(|file| (file.0.as_str(), file.1.as_slice())));
    }
    let mut missing = Vec::new();
    for (path, bytes) in &files {
        let name = format!("{folder}/{path}");
        match dir.read(&name, bytes.len() as u64) {
            Ok(same) if same == *bytes => {}
            Ok(_) if replace => missing.push((name, *path, *bytes, true)),
            Ok(_) => return Err(in_the_way(&name)),
            Err(error) if error.code == Code::TooLarge && replace => {
                missing.push((name, *path, *bytes, true));
            }
            Err(error) if error.code == Code::TooLarge => return Err(in_the_way(&name)),
            Err(error) if error.code == Code::NotFound => {
                missing.push((name, *path, *bytes, false));
            }
            Err(error) => return Err(error),
        }
    }
    for (name, path, bytes, is_there) in missing {
        // An executable script stays executable.
        match is_there {
            false if is_executable(found, path) => dir.put(&name, bytes, 0o755)?,
            _ => dir.write(&name, bytes)?,
        }
    }
    Ok(files.len())
}

fn is_executable(found: &UsableDirective, path: &str) -> bool {
    let name = format!("{}/{path}", found.package.root());
    let file = found.item_dir.dir.open_read(&name);
    let metadata = file.ok().and_then(|it| it.metadata().ok());
    metadata.is_some_and(|it| it.permissions().mode() & 0o111 != 0)
}

fn in_the_way(name: &str) -> Error {
    Error::conflict(format!("`{name}` exists with other content"))
        .hint("replace it with `--force`, or name another directory")
}
