//! Directives that come with the program, found beside those of the project and the user; and what
//! can be told of a tool without running it.

use super::catalogue::Catalogue;
use super::package::Item;
use super::run::builtin_directive;
use super::titles::AskedWords;
use super::{FoundItem, ItemResult};
use crate::Kiwi;
use kenning_core::Result;
use kenning_items::{ItemType, builtin};
use kenning_kernel::{Caller, Scope};
use serde_json::Value;
use std::sync::OnceLock;

impl Kiwi {
    /// The directives that come with the program and answer a query, unless an item of the project or
    /// of the user has taken their names.
    pub fn builtin_directives(
        &self,
        caller: &Caller,
        query: &str,
        project_path: Option<&str>,
    ) -> Result<Vec<FoundItem>> {
        static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
        let catalogue = CATALOGUE.get_or_init(|| {
            let texts: Vec<(String, &str)> = builtin::DIRECTIVES
                .iter()
                .map(|it| {
                    let description = builtin_directive(it.id).map(|it| it.description);
                    let title = format!("{} {}", it.id, description.unwrap_or_default());
                    (title, it.text)
                })
                .collect();
            Catalogue::new(texts.iter().map(|entry| (entry.0.as_str(), entry.1)))
        });
        let found = catalogue.search(query, builtin::DIRECTIVES.len());
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let taken = self.item_ids(caller, ItemType::Directive, project_path)?;
        let words = AskedWords::of(query);
        let shown = found.into_iter().filter_map(|(place, relevance)| {
            let id = builtin::DIRECTIVES.get(place)?.id;
            let is_named = id == query.trim();
            let relevance = if is_named { 1.0 } else { relevance };
            if !Catalogue::is_answer(relevance) || taken.iter().any(|it| it == id) {
                return None;
            }
            let directive = builtin_directive(id)?;
            let called = format!("{id} {}", directive.name);
            let relevance = match is_named {
                true => relevance,
                false => words.weigh(&called, relevance),
            };
            Some(FoundItem {
                id: id.to_owned(),
                item_type: ItemType::Directive.word().to_owned(),
                name: directive.name,
                category: directive.category,
                description: directive.description,
                quality: None,
                source: "local",
                version: Some(directive.version),
                path: None,
                relevance,
                success_rate: None,
                parameters: None,
                updated_ms: 0,
            })
        });
        Ok(shown.collect())
    }

    /// The names of the directives that come with the program.
    pub fn builtin_directive_names(&self) -> impl Iterator<Item = &'static str> {
        builtin::DIRECTIVES.iter().map(|it| it.id)
    }

    /// What a tool that is an item says of itself: its description, and what it wants to be told.
    pub fn describe_item_tool(
        &self,
        caller: &Caller,
        id: &str,
        project_path: Option<&str>,
    ) -> ItemResult<Option<(String, Value)>> {
        caller.principal.require(Scope::Read)?;
        let project = self.item_project(caller, project_path)?;
        let item_dirs = self.item_dirs(caller, ItemType::Tool, project.as_ref())?;
        let Some((_, package)) = self.locate(&item_dirs, id)? else {
            return Ok(None);
        };
        Ok(match package.valid_item()? {
            Item::Tool(tool) => Some((tool.description.clone(), tool.input_schema())),
            _ => None,
        })
    }
}
