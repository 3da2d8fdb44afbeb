//! `vault_list_notes`

use super::vault::in_contract_words;
use crate::{Call, Effect, Example, Text, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct VaultListNotes;

/// At most this many names fit into one reply.
const NAMES_MAX: usize = 1_500;

/// List markdown notes in a vault folder.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Folder name (e.g., 'People', 'Organizations')
    pub folder: String,
    /// Continue after this name
    #[serde(default)]
    pub after: Option<String>,
}

impl Tool for VaultListNotes {
    const NAME: &'static str = "vault_list_notes";
    const TITLE: &'static str = "List vault notes";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "List a folder",
            input: r#"{"folder": "People"}"#,
            output: "Bill Baue.md",
        },
        Example {
            title: "A folder that is not there",
            input: r#"{"folder": "Nowhere"}"#,
            output: "Folder not found: Nowhere",
        },
    ];
    type Input = Input;
    type Output = Text;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Text> {
        let names = ctx.engine.koi().list_notes(ctx.caller, &input.folder);
        let mut names = names.map_err(|error| {
            in_contract_words(error, "Folder not found", "folder", &input.folder)
        })?;
        if let Some(after) = input.after {
            names.retain(|name| *name > after);
        }
        let n_more = names.len().saturating_sub(NAMES_MAX);
        names.truncate(NAMES_MAX);
        let mut text = names.join("\n");
        if n_more > 0
            && let Some(last) = names.last()
        {
            text += &format!("\n({n_more} more: call again with `after` = `{last}`)");
        }
        Ok(Text(text))
    }
}
