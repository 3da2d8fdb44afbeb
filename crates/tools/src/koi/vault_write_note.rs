//! `vault_write_note`

use super::vault::in_contract_words;
use crate::{Call, Effect, Example, Text, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct VaultWriteNote;

/// Create or update a note in the vault.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Relative path (e.g., 'People/New Person.md')
    pub path: String,
    /// Full markdown content including YAML frontmatter
    pub content: String,
}

impl Tool for VaultWriteNote {
    const NAME: &'static str = "vault_write_note";
    const TITLE: &'static str = "Write a vault note";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Write { idempotent: true };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Create a note",
            input: r##"{"path": "People/New Person.md", "content": "---\ntype: Person\n---\n# New Person\n"}"##,
            output: "Written: People/New Person.md",
        },
        Example {
            title: "A path that leads outside",
            input: r#"{"path": "../outside.md", "content": "x"}"#,
            output: "Path traversal rejected: ../outside.md",
        },
    ];
    type Input = Input;
    type Output = Text;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Text> {
        let Input { path, content } = input;
        let fault = super::vault::frontmatter_fault(&path, &content);
        match ctx.engine.koi().write_note(ctx.caller, &path, content) {
            Ok(written) => {
                fault.into_iter().for_each(|it| ctx.remark(it));
                Ok(Text(format!("Written: {written}")))
            }
            Err(error) => Err(in_contract_words(error, "File not found", "path", &path)),
        }
    }
}
