//! Directories whose files are also nodes.
//!
//! There are three: the vault with its notes, the directory of the current context, and the project
//! with its documents. Each belongs to one space; other spaces have none.

use crate::{Doctor, FileForm, FileNode, Forms, Kernel};
use kenning_core::{Code, Error, Result, Space};
use kenning_vault::Dir;
use std::path::PathBuf;

/// The name of a root, and how the operator sets its path.
#[derive(Debug)]
pub struct RootKind {
    /// The prefix of its nodes' keys.
    pub name: &'static str,
    /// For messages.
    what: &'static str,
    variable: &'static str,
    flag: &'static str,
    /// Whether it is created if it is missing. A vault belongs to somebody, and a missing one is a
    /// typing error.
    is_made: bool,
}

/// Markdown notes.
pub const VAULT: RootKind = RootKind {
    name: "vault",
    what: "vault",
    variable: "VAULT_PATH",
    flag: "--vault",
    is_made: false,
};

/// NOW.md, the daily logs and `config.yaml`.
pub const OMI: RootKind = RootKind {
    name: "omi",
    what: "directory for NOW.md",
    variable: "OMI_BASE_PATH",
    flag: "--omi-path",
    is_made: true,
};

/// The project whose documents make the graph. Nothing is written there.
pub const PROJECT: RootKind = RootKind {
    name: "project",
    what: "project",
    variable: "KENNING_PROJECT",
    flag: "--project",
    is_made: false,
};

/// The name of the root that a node's key begins with.
pub fn name_in_key(key: &str) -> Option<&'static str> {
    let (name, _) = key.split_once(':')?;
    let known = [VAULT.name, OMI.name];
    known.into_iter().find(|it| *it == name)
}

/// What is known of the files of the root with this name.
pub(crate) fn form_of(name: &str, forms: Forms) -> &'static dyn FileForm {
    if name == OMI.name {
        forms.omi
    } else {
        forms.vault
    }
}

/// A directory whose files are also nodes.
#[derive(Debug)]
pub struct Root {
    kind: &'static RootKind,
    form: &'static dyn FileForm,
    path: Option<PathBuf>,
    space: Space,
}

impl Root {
    pub(crate) fn new(
        kind: &'static RootKind,
        form: &'static dyn FileForm,
        path: Option<PathBuf>,
        space: Space,
    ) -> Self {
        Self {
            kind,
            form,
            path,
            space,
        }
    }

    /// Its name, which the keys of its nodes begin with.
    pub(crate) fn name(&self) -> &'static str {
        self.kind.name
    }

    /// The space that it belongs to.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Whether the operator set its path.
    pub fn is_named(&self) -> bool {
        self.path.is_some()
    }

    /// Its absolute path, if it is set and exists.
    pub fn place(&self) -> Option<PathBuf> {
        let dir = Dir::open(self.path.as_ref()?).ok()?;
        Some(dir.path().to_owned())
    }

    fn path(&self, space: &Space) -> Result<&PathBuf> {
        let RootKind {
            what,
            variable,
            flag,
            ..
        } = self.kind;
        if *space != self.space {
            return Err(Error::denied(format!("the space `{space}` has no {what}"))
                .hint(format!("serve it with `--space` and `{flag}` of its own")));
        }
        self.path.as_ref().ok_or_else(|| {
            if self.kind.name == PROJECT.name {
                // The graph's contract has its own message for it.
                return Error::unavailable(format!(
                    "Project root not configured. Set {variable} or start with `{flag} DIR`."
                ));
            }
            Error::unavailable(format!("{variable} environment variable must be set")).hint(
                format!("set it to the absolute path of the {what}, or start with `{flag} DIR`"),
            )
        })
    }

    /// Opens it, if it is set and belongs to this space.
    pub fn open(&self, space: &Space) -> Result<Dir> {
        Dir::open(self.path(space)?).map_err(|error| {
            let RootKind { what, variable, .. } = self.kind;
            Error::unavailable(format!("the {what} that {variable} names cannot be opened"))
                .hint(format!("set {variable} to a directory that exists"))
                .because(error)
        })
    }

    /// Opens it for writing, and creates it if that is allowed.
    pub fn create(&self, space: &Space) -> Result<Dir> {
        if !self.kind.is_made {
            return self.open(space);
        }
        Dir::create(self.path(space)?).map_err(|error| {
            let RootKind { what, variable, .. } = self.kind;
            Error::unavailable(format!("the {what} that {variable} names cannot be made"))
                .hint(format!("set {variable} to a directory that can be written"))
                .because(error)
        })
    }

    /// Opens it for reading; `None` if it does not exist yet.
    pub fn existing(&self, space: &Space) -> Result<Option<Dir>> {
        match Dir::open(self.path(space)?) {
            Ok(dir) => Ok(Some(dir)),
            Err(error) if error.code == Code::NotFound => Ok(None),
            Err(_) => self.open(space).map(Some),
        }
    }

    /// Its directory, if it is set and exists.
    pub fn existing_if_named(&self) -> Result<Option<Dir>> {
        if self.path.is_none() {
            return Ok(None);
        }
        self.existing(&self.space)
    }

    /// Why a file could not be written, with the directory to check.
    pub fn unwritable(&self, error: Error) -> Error {
        let variable = self.kind.variable;
        if !matches!(error.code, Code::Denied | Code::Unavailable) {
            return error;
        }
        let message = format!("{}, in the directory that {variable} names", error.message);
        let hint = error.hint.clone().unwrap_or_else(|| {
            format!("let it be written, or set {variable} to another directory")
        });
        Error::new(error.code, message).hint(hint).because(error)
    }

    /// A file of this root. The caller of this function checks the name.
    pub fn file(&self, name: &str, bytes_max: u64) -> FileNode {
        FileNode {
            source: self.kind.name,
            form: self.form,
            root: self.shown(),
            key: format!("{}:{name}", self.kind.name),
            name: name.to_owned(),
            bytes_max,
        }
    }

    /// Whether a file belongs to this directory.
    pub fn has(&self, file: &FileNode) -> bool {
        self.path.is_some() && self.kind.name == file.source && self.shown() == file.root
    }

    fn shown(&self) -> String {
        let path = self.path.as_ref();
        path.map_or_else(String::new, |it| it.to_string_lossy().into_owned())
    }

    /// Checks whether it can be opened.
    pub fn examine(&self, found: &mut Doctor) {
        let RootKind { name, variable, .. } = self.kind;
        let seen = match (&self.path, self.existing(&self.space)) {
            (None, _) => format!("none ({variable})"),
            (Some(path), Ok(Some(_))) => path.display().to_string(),
            (Some(path), Ok(None)) if self.kind.is_made => format!("{} (empty)", path.display()),
            (Some(_), Ok(None)) => {
                let error = self.open(&self.space).err();
                let error = error.map_or_else(String::new, |it| it.to_string());
                found.faults.push(format!("{name}: {error}"));
                return;
            }
            (Some(_), Err(error)) => {
                found.faults.push(format!("{name}: {error}"));
                return;
            }
        };
        found.seen.push(((*name).to_owned(), seen));
    }
}

impl Kernel {
    /// The root of this name.
    pub fn root(&self, name: &str) -> &Root {
        if name == OMI.name {
            &self.omi
        } else {
            &self.vault
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PlainForm;

    #[test]
    fn a_project_that_nobody_named_is_missed_in_the_words_of_the_contract() {
        let space = Space::default();
        let error = Root::new(&PROJECT, &PlainForm, None, space.clone()).open(&space);
        let text = error.unwrap_err().to_string();
        assert!(
            text.starts_with("Project root not configured. Set KENNING_PROJECT"),
            "{text}"
        );
        let error = Root::new(&VAULT, &PlainForm, None, space.clone()).open(&space);
        let text = error.unwrap_err().to_string();
        assert!(
            text.starts_with("VAULT_PATH environment variable must be set"),
            "{text}"
        );
    }
}
