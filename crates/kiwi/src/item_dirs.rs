//! The directories of items: `.ai` of a project, and the user's own directory.
//!
//! A caller may name another project than the one that the server was started in, if it is below a
//! directory that the operator allowed. The project comes before the user everywhere.

use super::ItemOptions;
use crate::Kiwi;
use kenning_core::{Code, Error, Result};
use kenning_items::{ItemType, Scope};
use kenning_kernel::Caller;
use kenning_vault::Dir;
use std::path::Path;

/// The directory of a project that holds its items.
pub(super) const PROJECT_DIR: &str = ".ai";

/// A directory with items of one type.
#[derive(Clone)]
pub(crate) struct ItemDir {
    pub(crate) item_type: ItemType,
    pub(crate) scope: Scope,
    /// The folder of the type.
    pub(crate) dir: Dir,
    /// The path of the project; empty for the user's directory.
    pub(crate) project: String,
}

/// A project whose items a caller may use.
#[derive(Clone)]
pub(crate) struct ItemProject {
    pub(crate) dir: Dir,
    /// Its absolute path, which its nodes carry.
    pub(crate) name: String,
}

impl ItemProject {
    fn new(dir: Dir) -> Self {
        let name = dir.path().to_string_lossy().into_owned();
        Self { dir, name }
    }
}

impl Kiwi {
    /// The project that a caller means; `None` if there is none.
    pub(crate) fn item_project(
        &self,
        caller: &Caller,
        named: Option<&str>,
    ) -> Result<Option<ItemProject>> {
        if caller.principal.space != *self.kernel.project().space() {
            return Ok(None);
        }
        let Some(named) = named else {
            let own = self.kernel.project().place();
            let own = own.map(|it| Dir::open(&it)).transpose()?;
            return Ok(own.map(ItemProject::new));
        };
        let path = Path::new(named);
        if !path.is_absolute() {
            return Err(Error::invalid(format!(
                "`project_path`: `{named}` is not an absolute path"
            ))
            .hint("give the absolute path of the project's directory"));
        }
        let dir = Dir::open(path).map_err(|error| match error.code {
            Code::NotFound => Error::invalid(format!("`project_path`: `{named}` does not exist"))
                .hint("name the directory of a project"),
            _ => error,
        })?;
        // Both paths are free of symbolic links, so a prefix is an ancestor.
        let own = self.kernel.project().place();
        let allowed = self.items.options.allow_roots.iter();
        let allowed = allowed.filter_map(|it| Some(Dir::open(it).ok()?.path().to_owned()));
        if own
            .into_iter()
            .chain(allowed)
            .any(|it| dir.path().starts_with(it))
        {
            return Ok(Some(ItemProject::new(dir)));
        }
        Err(Error::denied(format!(
            "`project_path`: `{named}` is outside the directories that this server may use"
        ))
        .hint("start it there, with `--project DIR`, or with `--allow-root DIR`"))
    }

    /// Every existing directory with items of a type, in the order in which they are searched.
    pub(crate) fn item_dirs(
        &self,
        caller: &Caller,
        item_type: ItemType,
        project: Option<&ItemProject>,
    ) -> Result<Vec<ItemDir>> {
        let mut item_dirs = Vec::new();
        if let Some(project) = project {
            let name = format!("{PROJECT_DIR}/{}", item_type.folder());
            if let Some(dir) = existing(project.dir.subdir(&name))? {
                item_dirs.push(ItemDir {
                    item_type,
                    scope: Scope::Project,
                    dir,
                    project: project.name.clone(),
                });
            }
        }
        if caller.principal.space != *self.kernel.project().space() {
            return Ok(item_dirs);
        }
        let ItemOptions {
            user,
            user_knowledge,
            ..
        } = &self.items.options;
        let own = user.as_ref().map(|it| it.join(item_type.folder()));
        let knowledge = user_knowledge.clone();
        let knowledge = knowledge.filter(|_| item_type == ItemType::Knowledge);
        for path in knowledge.into_iter().chain(own) {
            if let Some(dir) = existing(Dir::open(&path))? {
                item_dirs.push(ItemDir {
                    item_type,
                    scope: Scope::User,
                    dir,
                    project: String::new(),
                });
            }
        }
        Ok(item_dirs)
    }

    /// The directory for a new item of a type, created if it is missing.
    pub(crate) fn item_dir_for(
        &self,
        caller: &Caller,
        item_type: ItemType,
        scope: Scope,
        project: Option<&ItemProject>,
    ) -> Result<ItemDir> {
        let (dir, project) = match scope {
            Scope::Project => {
                let project = project.ok_or_else(|| {
                    Error::missing("`project_path` is required where the destination is `project`")
                        .hint("give the absolute path of the project, or use `user`")
                })?;
                let name = format!("{PROJECT_DIR}/{}", item_type.folder());
                (project.dir.create_subdir(&name)?, project.name.clone())
            }
            Scope::User => (self.user_item_dir(caller, item_type)?, String::new()),
        };
        Ok(ItemDir {
            item_type,
            scope,
            dir,
            project,
        })
    }

    /// The same without creating anything: if it is missing, the nearest existing directory above it.
    pub(crate) fn item_dir_if_made(
        &self,
        caller: &Caller,
        item_type: ItemType,
        scope: Scope,
        project: Option<&ItemProject>,
    ) -> Result<ItemDir> {
        let there = self.item_dirs(caller, item_type, project)?;
        if let Some(item_dir) = there.into_iter().find(|it| it.scope == scope) {
            return Ok(item_dir);
        }
        let above = match (scope, project) {
            (Scope::Project, Some(project)) => project.dir.clone(),
            // Everything else is checked without reading a directory.
            _ => self.kernel.data().clone(),
        };
        Ok(ItemDir {
            item_type,
            scope,
            dir: above,
            project: project.map(|it| it.name.clone()).unwrap_or_default(),
        })
    }

    fn user_item_dir(&self, caller: &Caller, item_type: ItemType) -> Result<Dir> {
        let space = &caller.principal.space;
        if space != self.kernel.project().space() {
            return Err(
                Error::denied(format!("the space `{space}` has no directory of items"))
                    .hint("publish them to the registry instead"),
            );
        }
        let options = &self.items.options;
        let own = || options.user.as_ref().map(|it| it.join(item_type.folder()));
        let path = match item_type {
            ItemType::Knowledge => options.user_knowledge.clone().or_else(own),
            ItemType::Directive | ItemType::Tool => own(),
        };
        let path = path.ok_or_else(|| {
            Error::unavailable("there is no directory for the user's own items")
                .hint("set USER_SPACE to the path of one, for example `~/.ai`")
        })?;
        Dir::create(&path)
    }
}

/// A missing directory is empty.
fn existing(opened: Result<Dir>) -> Result<Option<Dir>> {
    match opened {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
