//! `note_move`

use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct NoteMove;

/// Rename a note or move it to another folder, such as an archive; links to it are rewritten and none breaks.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The note
    pub path: String,
    /// Its new path, or a folder that ends with `/`
    pub to: String,
}

/// What was done.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Its path now
    path: String,
    /// How many links were rewritten
    links_rewritten: usize,
    /// Other notes that were changed for it
    notes_changed: Vec<String>,
}

impl Tool for NoteMove {
    const NAME: &'static str = "note_move";
    const TITLE: &'static str = "Rename or move a note";
    const TOOLSET: Toolset = Toolset::Core;
    const EFFECT: Effect = Effect::Write { idempotent: false };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Move a note to a folder",
            input: r#"{"path": "Log.md", "to": "Archive/"}"#,
            output: r#""path": "Archive/Log.md""#,
        },
        Example {
            title: "A note that is not there",
            input: r#"{"path": "Nothing.md", "to": "Archive/"}"#,
            output: "no note `Nothing.md`",
        },
    ];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let koi = ctx.engine.koi();
        let path = koi.find_note(ctx.caller, &input.path)?;
        let moved = koi.move_note(ctx.caller, &path, &input.to)?;
        Ok(Output {
            path: moved.path,
            links_rewritten: moved.n_links,
            notes_changed: moved.rewritten,
        })
    }
}
