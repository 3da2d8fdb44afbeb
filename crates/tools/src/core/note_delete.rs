//! `note_delete`

use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct NoteDelete;

/// Delete a note: remove it, throw it away; it goes to the trash of the vault.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The note
    pub path: String,
}

/// What was done.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Where it is now; `kenning koi restore` brings it back
    trash: String,
    /// Notes whose links lead nowhere now
    still_linking: Vec<String>,
}

impl Tool for NoteDelete {
    const NAME: &'static str = "note_delete";
    const TITLE: &'static str = "Delete a note";
    const TOOLSET: Toolset = Toolset::Core;
    const EFFECT: Effect = Effect::Destroy;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Throw a note away",
            input: r#"{"path": "Archive/Log.md"}"#,
            output: r#""trash": ".trash/Archive/Log.md""#,
        },
        Example {
            title: "A note that is not there",
            input: r#"{"path": "Nothing.md"}"#,
            output: "no note `Nothing.md`",
        },
    ];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let deleted = ctx.engine.koi().delete_note(ctx.caller, &input.path)?;
        Ok(Output {
            trash: deleted.trash,
            still_linking: deleted.linking,
        })
    }
}
