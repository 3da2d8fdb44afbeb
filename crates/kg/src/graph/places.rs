//! Targets of links that are not documents: a license, a folder, a file outside the folder of
//! documents.
//!
//! Every run checks the paths where no document is, and records those where something else is. So a
//! link is broken only if nothing is there, and answers need no files.

use super::library::Library;
use super::survey::Tree;
use super::{LINKED, PLACES, cards};
use crate::Kg;
use kenning_core::{Code, Result};
use kenning_graph::Files;
use kenning_kernel::{Bucket, Caller};
use kenning_store::ReadTx;
use kenning_vault::Dir;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The bucket of what is there; the key is the project's short name, or the vault's.
const ROWS: Bucket<Row> = Bucket::new("graph/places");
const VAULT: &str = "vault";

/// Files and folders that are not documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub(super) project: Files,
    pub(super) vault: Files,
}

#[derive(Default, Serialize, Deserialize)]
struct Row {
    files: Vec<String>,
    folders: Vec<String>,
}

impl Places {
    pub(super) fn load(tx: &dyn ReadTx, project: &str) -> Result<Self> {
        let read = |key: &str| -> Result<Files> {
            let row = ROWS.get_readable(tx, key)?.unwrap_or_default();
            let mut files = Files::new();
            row.files.iter().for_each(|it| files.insert(it, false));
            row.folders.iter().for_each(|it| files.insert(it, true));
            Ok(files)
        };
        Ok(Self {
            project: read(&cards::short(project))?,
            vault: read(VAULT)?,
        })
    }
}

fn row(files: &Files) -> Row {
    let mut row = Row::default();
    for (path, is_folder) in files.iter() {
        let list = if is_folder {
            &mut row.folders
        } else {
            &mut row.files
        };
        list.push(path.to_owned());
    }
    row
}

/// Checks what exists, records it, and returns the library in which links lead there. With `anew`,
/// followers of the log are told to load again even if nothing changed.
pub(super) fn follow(
    engine: &Kg,
    caller: &Caller,
    library: Library,
    trees: &[Tree],
    project: &str,
    anew: bool,
) -> Result<Library> {
    let mut now = (*library.places).clone();
    for tree in trees {
        let files = look(&tree.dir, &library, tree.is_vault, caller)?;
        if tree.is_vault {
            now.vault = files;
        } else {
            now.project = files;
        }
    }
    let is_other = now != *library.places;
    if !is_other && !anew {
        return Ok(library);
    }
    let rows = [
        (cards::short(project), row(&now.project)),
        (VAULT.to_owned(), row(&now.vault)),
    ];
    let data = json!({ "project": project, PLACES: true });
    engine
        .kernel
        .log()
        .write_long(&caller.principal.space, move |tx| {
            for (key, row) in &rows {
                ROWS.set(tx, key, row)?;
            }
            tx.record(LINKED, data).map(drop)
        })?;
    Ok(if is_other {
        library.with_places(now)
    } else {
        library
    })
}

fn look(dir: &Dir, library: &Library, of_vault: bool, caller: &Caller) -> Result<Files> {
    let mut files = Files::new();
    for (n, path) in library.doubtful(of_vault).iter().enumerate() {
        if n % 256 == 0 {
            caller.check()?;
        }
        match dir.metadata(path) {
            Ok(it) => files.insert(path, it.is_dir),
            // Something is there, even if it must not be read.
            Err(error) if error.code == Code::Denied => files.insert(path, false),
            Err(_) => {}
        }
    }
    Ok(files)
}
