//! The folder of documents that a caller means.

use kenning_core::{Code, Error, Result};
use kenning_vault::{Dir, Name};

/// The folder that a caller named, as a plain name beneath the project.
pub(super) fn docs_folder(project: &Dir, docs_path: &str) -> Result<String> {
    let path = std::path::Path::new(docs_path);
    let relative = if path.is_absolute() {
        let inside = path
            .strip_prefix(project.path())
            .ok()
            .and_then(|it| it.to_str());
        inside.ok_or_else(|| outside(docs_path))?
    } else {
        docs_path
    };
    let name = Name::parse(if relative.is_empty() { "." } else { relative }).map_err(|error| {
        if error.code == Code::Denied {
            outside(docs_path).because(error)
        } else {
            in_field(error)
        }
    })?;
    let folder = name.as_str().to_owned();
    let is_there = folder.is_empty() || project.metadata(&folder).is_ok_and(|it| it.is_dir);
    if !is_there {
        return Err(Error::not_found("folder of documents", docs_path)
            .hint("`docsPath` is relative to the project; `.` is the whole project"));
    }
    Ok(folder)
}

pub(super) fn outside(docs_path: &str) -> Error {
    Error::denied(format!("`docsPath`: `{docs_path}` is outside the project"))
        .hint("name a folder of the project, or start with `--project DIR`")
}

pub(super) fn in_field(error: Error) -> Error {
    let message = format!("`docsPath`: {}", error.message);
    Error { message, ..error }
}
