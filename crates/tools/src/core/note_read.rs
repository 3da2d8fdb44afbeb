//! `note_read`

use crate::{Call, Effect, Example, Text, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct NoteRead;

/// Read or show the contents of a note, or one section of it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// e.g. 'People/Bill Baue.md'; a name that only one note has is enough
    pub path: String,
    /// Only what is under this heading
    pub heading: Option<String>,
}

impl Tool for NoteRead {
    const NAME: &'static str = "note_read";
    const TITLE: &'static str = "Read a note";
    const TOOLSET: Toolset = Toolset::Core;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Read a note",
            input: r#"{"path": "People/Bill Baue.md"}"#,
            output: "# Bill Baue",
        },
        Example {
            title: "The settings of the vault are no note",
            input: r#"{"path": ".obsidian/app.json"}"#,
            output: "not notes",
        },
    ];
    type Input = Input;
    type Output = Text;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Text> {
        let koi = ctx.engine.koi();
        let path = koi.find_note(ctx.caller, &input.path)?;
        if path != input.path {
            ctx.remark(format!("this is `{path}`"));
        }
        let text = match &input.heading {
            Some(heading) => koi.read_note_section(ctx.caller, &path, heading)?,
            None => koi.read_note(ctx.caller, &path)?,
        };
        let fault = kenning_engine::koi::frontmatter_fault(&path, &text);
        fault.into_iter().for_each(|it| ctx.remark(it));
        Ok(Text(text))
    }
}
