//! Where the files of a caller's context are: those of its project in a folder of their own, and those of callers
//! without a project where the memory contract has them.

use crate::Omi;
use kenning_core::Result;
use kenning_kernel::{Caller, FileNode, PROJECTS_FOLDER as FOLDER, roots};

/// The folder of the files of one project, or of none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The id of the project; empty for none.
    pub(crate) project: String,
}

impl Place {
    pub(crate) fn of(project: &str) -> Self {
        Self {
            project: project.to_owned(),
        }
    }

    /// The name of a file in the directory of the context.
    pub(crate) fn name(&self, file: &str) -> String {
        match self.project.as_str() {
            "" => file.to_owned(),
            project => format!("{FOLDER}/{project}/{file}"),
        }
    }

    /// The folder of a file's project, and the name of the file in it.
    pub(crate) fn split(name: &str) -> (Self, &str) {
        let inner = name
            .strip_prefix(FOLDER)
            .and_then(|it| it.strip_prefix('/'))
            .and_then(|it| it.split_once('/'));
        match inner {
            Some((project, file)) => (Self::of(project), file),
            None => (Self::default(), name),
        }
    }

    /// The same for the key of a file's node.
    pub(crate) fn split_key(key: &str) -> Option<(Self, &str)> {
        let name = key.strip_prefix(roots::OMI.name)?.strip_prefix(':')?;
        Some(Self::split(name))
    }
}

impl Omi {
    /// Where the caller's context is.
    pub(crate) fn place(&self, caller: &Caller) -> Result<Place> {
        let project = self.kernel.project_of(caller)?;
        Ok(Place { project })
    }

    /// A file of a place.
    pub(crate) fn file_at(&self, place: &Place, name: &str, bytes_max: u64) -> FileNode {
        self.kernel.omi().file(&place.name(name), bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_back_to_its_place() {
        for (place, file) in [
            (Place::default(), "NOW.md"),
            (Place::of("shop-12"), "memory/2026-11-18.md"),
        ] {
            let name = place.name(file);
            assert_eq!(Place::split(&name), (place, file));
        }
        assert_eq!(Place::split("projects/x"), (Place::default(), "projects/x"));
        assert_eq!(Place::split_key("vault:NOW.md"), None);
    }
}
