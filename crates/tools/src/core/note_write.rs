//! `note_write`

use crate::{Call, Effect, Example, Text, Tool, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::koi::NoteEdit;
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct NoteWrite;

/// Write a note: create or add a new one, append a line, replace a section, set a frontmatter field or tag, or
/// overwrite the text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// e.g. 'People/Bill Baue.md'
    pub path: String,
    /// Markdown; for `field` a YAML value, empty to remove it
    pub content: String,
    /// Default `create`
    pub mode: Option<Mode>,
    /// Heading of the section, or name of the field
    pub target: Option<String>,
}

/// What becomes of the text that is there.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[allow(
    missing_docs,
    reason = "the words say it, and a schema with a text for each is three times as long"
)]
pub enum Mode {
    Create,
    Append,
    Section,
    Field,
    Overwrite,
}

impl Tool for NoteWrite {
    const NAME: &'static str = "note_write";
    const TITLE: &'static str = "Write a note";
    const TOOLSET: Toolset = Toolset::Core;
    const EFFECT: Effect = Effect::Write { idempotent: false };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Add to a note",
            input: r#"{"path": "Log.md", "content": "- met Bill", "mode": "append"}"#,
            output: "Written: Log.md",
        },
        Example {
            title: "Set a field",
            input: r#"{"path": "Log.md", "content": "open", "mode": "field", "target": "status"}"#,
            output: "Written: Log.md",
        },
        Example {
            title: "A note that exists is not overwritten by chance",
            input: r#"{"path": "Log.md", "content": "x"}"#,
            output: "`Log.md` exists",
        },
    ];
    type Input = Input;
    type Output = Text;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Text> {
        let Input {
            path,
            content,
            mode,
            target,
        } = input;
        let mode = mode.unwrap_or(Mode::Create);
        let named = |what: &str| {
            let target = target.clone().filter(|it| !it.trim().is_empty());
            target.ok_or_else(|| {
                Error::invalid("`target` is missing").hint(format!("name the {what}"))
            })
        };
        if target.is_some() && !matches!(mode, Mode::Section | Mode::Field) {
            return Err(Error::invalid("`target` means nothing in this `mode`")
                .hint("use `section` or `field`, or leave it out"));
        }
        let edit = match mode {
            Mode::Create => NoteEdit::Create(content),
            Mode::Overwrite => NoteEdit::Overwrite(content),
            Mode::Append => NoteEdit::Append(content),
            Mode::Section => NoteEdit::Section {
                heading: named("heading")?,
                content,
            },
            Mode::Field => NoteEdit::Field {
                key: named("field")?,
                value: Some(content).filter(|it| !it.trim().is_empty()),
            },
        };
        let written = ctx.engine.koi().edit_note(ctx.caller, &path, edit)?;
        Ok(Text(format!("Written: {written}")))
    }
}
