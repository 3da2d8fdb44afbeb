//! `vault_read_note`

use super::vault::in_contract_words;
use crate::{Call, Effect, Example, Text, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct VaultReadNote;

/// Read a markdown note from the vault.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Relative path within vault (e.g., 'People/Bill Baue.md')
    pub path: String,
}

impl Tool for VaultReadNote {
    const NAME: &'static str = "vault_read_note";
    const TITLE: &'static str = "Read a vault note";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Read a note",
            input: r#"{"path": "People/Bill Baue.md"}"#,
            output: "# Bill Baue",
        },
        Example {
            title: "A note that is not there",
            input: r#"{"path": "People/Nobody.md"}"#,
            output: "File not found: People/Nobody.md",
        },
        Example {
            title: "A path that leads outside",
            input: r#"{"path": "../secrets.md"}"#,
            output: "Path traversal rejected: ../secrets.md",
        },
    ];
    type Input = Input;
    type Output = Text;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Text> {
        let note = ctx.engine.koi().read_note(ctx.caller, &input.path);
        if let Ok(text) = &note {
            let fault = super::vault::frontmatter_fault(&input.path, text);
            fault.into_iter().for_each(|it| ctx.remark(it));
        }
        note.map(Text)
            .map_err(|error| in_contract_words(error, "File not found", "path", &input.path))
    }
}
