//! The projects that a store knows, and whose memories a caller sees.

use crate::project::{FOLDER, NAME_CHARS_MAX};
use crate::{Bucket, Caller, Kernel, Project};
use kenning_audit::Tx;
use kenning_core::{Code, Error, Kind, Result};
use kenning_store::{Node, ReadTx};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The known projects, by their ids.
const PROJECTS: Bucket<Known> = Bucket::new("projects");

/// Merges that lead from one project to the next.
const MERGES_MAX: usize = 16;

/// What is kept of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// The name that people read.
    pub name: String,
    /// The address of its remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Where it was seen.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The project that it was merged into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<String>,
}

impl Kernel {
    /// The id of the caller's project, after merges; empty if it works in none.
    pub fn project_of(&self, caller: &Caller) -> Result<String> {
        let Some(project) = &caller.principal.project else {
            return Ok(String::new());
        };
        let space = &caller.principal.space;
        self.log().read(space, |tx| current_id(tx, project))
    }

    /// The projects whose memories the caller sees: its own, and what belongs to none.
    pub fn projects_seen_by(&self, caller: &Caller) -> Result<Vec<String>> {
        let own = self.project_of(caller)?;
        let own = (!own.is_empty()).then_some(own);
        Ok(own.into_iter().chain([String::new()]).collect())
    }

    /// The known projects that were not merged into others, by their ids.
    pub fn projects(&self, caller: &Caller) -> Result<Vec<(String, Known)>> {
        let space = &caller.principal.space;
        let mut all = self.log().read(space, |tx| PROJECTS.list_readable(tx))?;
        all.retain(|it| it.1.merged_into.is_none());
        Ok(all)
    }

    /// The id of a project that somebody named by its id, its name, its remote or its path.
    ///
    /// # Errors
    /// Not found, or a conflict if several have the name.
    pub fn find_project(&self, caller: &Caller, named: &str) -> Result<String> {
        let named = named.trim();
        let space = &caller.principal.space;
        let all = self.projects(caller)?;
        if let Some((id, _)) = all.iter().find(|it| it.0 == named) {
            return Ok(id.clone());
        }
        if let Some(project) = Project::named(named) {
            let id = self.log().read(space, |tx| current_id(tx, &project))?;
            if all.iter().any(|it| it.0 == id) {
                return Ok(id);
            }
        }
        let with_name: Vec<&String> = all
            .iter()
            .filter(|it| {
                it.1.name.eq_ignore_ascii_case(named) || it.1.paths.iter().any(|it| it == named)
            })
            .map(|it| &it.0)
            .collect();
        match with_name[..] {
            [id] => Ok(id.clone()),
            [] => Err(Error::new(
                Code::NotFound,
                format!("no project `{named}` is known"),
            )
            .hint("`kenning project list` shows them; a project is known once something was stored in it")),
            _ => Err(Error::conflict(format!(
                "`{named}` is the name of {} projects",
                with_name.len()
            ))
            .hint("name one by its id: `kenning project list` shows them")),
        }
    }

    /// Gives a project another name.
    pub fn rename_project(&self, caller: &Caller, id: &str, name: &str) -> Result<()> {
        self.may_write(caller)?;
        let name = name.trim().to_owned();
        if name.is_empty()
            || name.chars().count() > NAME_CHARS_MAX
            || name.chars().any(char::is_control)
        {
            return Err(
                Error::invalid(format!("`{name}` cannot be the name of a project"))
                    .hint(format!("use 1 to {NAME_CHARS_MAX} characters in one line")),
            );
        }
        let id = id.to_owned();
        self.log().write(&caller.principal.space, move |tx| {
            let mut known = PROJECTS.get_readable(&**tx, &id)?.unwrap_or_default();
            known.name.clone_from(&name);
            PROJECTS.set(tx, &id, &known)?;
            tx.record("ProjectRenamed", json!({ "project": id, "name": name }))
                .map(drop)
        })
    }
}

/// The id of a project after merges. A repository that was known by its path before it had a remote stays the
/// project that it was.
fn current_id(tx: &dyn ReadTx, project: &Project) -> Result<String> {
    let mut id = project.id.clone();
    if project.remote.is_some()
        && PROJECTS.get_readable(tx, &id)?.is_none()
        && let Some(by_path) = project.id_by_path()
        && PROJECTS.get_readable(tx, &by_path)?.is_some()
    {
        id = by_path;
    }
    for _ in 0..MERGES_MAX {
        let known = PROJECTS.get_readable(tx, &id)?;
        match known.and_then(|it| it.merged_into) {
            Some(next) => id = next,
            None => break,
        }
    }
    Ok(id)
}

/// Whether a node may be shown to somebody who sees these projects. Only memories and files of the context belong to
/// projects in this sense.
pub fn is_seen(node: &Node, seen: &[String]) -> bool {
    let project = match node.kind {
        Kind::Memory => node.project.as_str(),
        _ => {
            let name = node.key.strip_prefix("omi:");
            let inner = name.and_then(|it| it.strip_prefix(FOLDER)?.strip_prefix('/'));
            match inner.and_then(|it| it.split_once('/')) {
                Some((project, _)) => project,
                None => return true,
            }
        }
    };
    seen.iter().any(|it| it == project)
}

/// Remembers a project that something is stored in, with its name and place.
pub fn remember(tx: &mut Tx<'_>, project: &Project, id: &str) -> Result<()> {
    let before = PROJECTS.get_readable(&**tx, id)?;
    let mut known = before.clone().unwrap_or_else(|| Known {
        name: project.name.clone(),
        ..Known::default()
    });
    if let Some(path) = &project.path
        && !known.paths.contains(path)
    {
        known.paths.push(path.clone());
    }
    if known.remote.is_none() {
        known.remote.clone_from(&project.remote);
    }
    if before.as_ref() != Some(&known) {
        PROJECTS.set(tx, id, &known)?;
    }
    Ok(())
}

/// Records that a project is another one from now on.
pub fn merge(tx: &mut Tx<'_>, from: &str, into: &str) -> Result<()> {
    let mut gone = PROJECTS.get_readable(&**tx, from)?.unwrap_or_default();
    let mut kept = PROJECTS.get_readable(&**tx, into)?.unwrap_or_default();
    for path in &gone.paths {
        if !kept.paths.contains(path) {
            kept.paths.push(path.clone());
        }
    }
    gone.merged_into = Some(into.to_owned());
    PROJECTS.set(tx, from, &gone)?;
    PROJECTS.set(tx, into, &kept)
}
