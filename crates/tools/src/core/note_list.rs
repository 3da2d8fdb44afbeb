//! `note_list`

use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct NoteList;

/// The list that a cursor continues.
const LIST: &str = "notes";

/// So many notes are listed at once.
const NOTES_MAX: usize = 500;

/// List the folders and notes of the user's Obsidian vault, or of one folder and its subfolders.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Default: the whole vault
    pub folder: Option<String>,
    /// Subfolders too (default true)
    pub recursive: Option<bool>,
}

/// What is in a folder.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    folders: Vec<Folder>,
    /// Paths of notes
    notes: Vec<String>,
    /// How many notes there are
    total: usize,
    /// Where there are more: `cursor` of the same call for those
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Folder {
    path: String,
    /// How many notes are beneath it
    notes: usize,
}

impl Tool for NoteList {
    const NAME: &'static str = "note_list";
    const TITLE: &'static str = "List notes";
    const TOOLSET: Toolset = Toolset::Core;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "The whole vault",
            input: "{}",
            output: r#""People/Bill Baue.md""#,
        },
        Example {
            title: "A folder that is not there",
            input: r#"{"folder": "Nowhere"}"#,
            output: "no folder `Nowhere`",
        },
    ];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let folder = input.folder.unwrap_or_default();
        let deep = input.recursive.unwrap_or(true);
        let listed = ctx.engine.koi().list_vault(ctx.caller, &folder, deep)?;
        let folders = listed.folders.into_iter().map(|it| Folder {
            path: it.path,
            notes: it.n_notes,
        });
        Ok(Output {
            folders: folders.collect(),
            total: listed.notes.len(),
            notes: ctx.part(LIST, listed.notes, NOTES_MAX),
            next_cursor: None,
        })
    }
}
