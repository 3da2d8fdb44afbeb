//! `load`

use super::words::{Answer, item_type, with_details};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::kiwi::{ItemScope, ItemTarget, LoadFrom, LoadItem};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The tool.
pub struct Load;

/// Download or retrieve items from registry
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Type of item
    #[schemars(extend("enum" = ["directive", "tool", "knowledge"]))]
    pub item_type: String,
    /// Item identifier (name or zettel_id)
    pub item_id: String,
    /// Where to save
    #[schemars(extend("enum" = ["project", "user"], "default" = "project"))]
    pub destination: Option<String>,
    /// Required if destination=project
    pub project_path: Option<String>,
    /// Specific version (defaults to latest)
    pub version: Option<String>,
    /// Where from
    #[schemars(extend("enum" = ["registry", "project", "user"], "default" = "registry"))]
    pub source: Option<String>,
    /// Replace a file that was changed here
    #[serde(default)]
    pub force: bool,
    /// Validate without writing
    #[serde(default)]
    pub dry_run: bool,
}

impl Tool for Load {
    const NAME: &'static str = "load";
    const TITLE: &'static str = "Load an item";
    const TOOLSET: Toolset = Toolset::Kiwi;
    const EFFECT: Effect = Effect::Write { idempotent: true };
    const EXAMPLES: &'static [Example] = &[Example {
        title: "An item that nobody published",
        input: r#"{"item_type": "tool", "item_id": "google_maps_scraper", "destination": "user"}"#,
        output: "Item not found in registry",
    }];
    type Input = Input;
    type Output = Answer;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Answer> {
        let item_type = item_type(ctx, &input.item_type)?;
        let destination = match input.destination.as_deref() {
            None => ItemScope::Project,
            Some(word) => scope("destination", word)?,
        };
        let from = match input.source.as_deref() {
            None | Some("registry") => LoadFrom::Registry,
            Some(word) => LoadFrom::Local(word.parse().map_err(|_: Error| {
                Error::invalid(format!("`source`: `{word}` is unknown"))
                    .hint("use `registry`, `project` or `user`")
            })?),
        };
        let what = LoadItem {
            target: ItemTarget {
                item_type,
                id: input.item_id,
                project_path: input.project_path,
                dry_run: input.dry_run,
            },
            from,
            destination,
            version: input.version,
            force: input.force,
        };
        let done = with_details(ctx, ctx.engine.kiwi().load_item(ctx.caller, &what))?;
        Ok(Answer::new(
            ctx,
            json!({
                "status": if input.dry_run { "validation_passed" } else { "loaded" },
                "name": done.id,
                "version": done.version,
                "destination": done.destination.word(),
                "path": done.path,
                "size_bytes": done.size_bytes,
                "signer": done.signer,
                "unchanged": done.is_unchanged.then_some(true),
            }),
        ))
    }
}

/// Parses a location of items; the error names the field.
pub(super) fn scope(field: &str, word: &str) -> Result<ItemScope> {
    word.parse().map_err(|_: Error| {
        Error::invalid(format!("`{field}`: `{word}` is unknown")).hint("use `project` or `user`")
    })
}
