//! What `kenning mcp` lists when nobody names a toolset: about a dozen tools, written for the question "which of
//! these do I call?". Everything else is found by `search` and run by `execute_read` or `execute`.
//!
//! A model pays for every word of every listing, so an entry may have a text of its own and may leave out
//! arguments that are seldom given. Arguments that are left out are accepted all the same; the reference has them.

use crate::{AnyTool, Toolset, lean};
use serde_json::Value;

/// The word that names this set.
pub(crate) const DEFAULT: &str = "default";

/// The tool that runs others which only read.
pub(crate) const READS: &str = "execute_read";

/// Whether a tool is one of those that find and run the others.
pub(crate) fn runs_others(tool: &dyn AnyTool) -> bool {
    tool.toolset() == Toolset::Kiwi || tool.name() == READS
}

/// How a tool is listed in this set.
pub(crate) struct Entry {
    name: &'static str,
    /// What a model reads, if it is not the tool's own description.
    text: Option<&'static str>,
    /// The arguments that are listed; none for all of them.
    fields: Option<&'static [&'static str]>,
}

const fn entry_of(
    name: &'static str,
    text: Option<&'static str>,
    fields: Option<&'static [&'static str]>,
) -> Entry {
    Entry { name, text, fields }
}

/// A name that no tool has is left out, so that a tool can be announced here before it is there.
#[rustfmt::skip]
const ENTRIES: &[Entry] = &[
    entry_of("find", None, None),
    entry_of("memory_recall",
        Some("Recall what you remember from before: what the user told you, what was decided and why, preferences, lessons learned, errors solved."),
        Some(&["query", "memory_type", "tags", "limit", "cursor"])),
    entry_of("memory_store",
        Some("Remember this: keep in mind, save or record a fact, preference, decision or lesson that the user states. Recall first; supersede what is outdated."),
        Some(&["content", "memory_type", "tags", "supersedes"])),
    entry_of("memory_forget", None, None),
    entry_of("now_read",
        Some("Where we left off: show the current task, focus, state of work and next step. Call it first in a session."),
        Some(&[])),
    entry_of("now_update",
        Some("Update the current task, focus or next step, and leave a handover of where work stopped."),
        None),
    entry_of("note_list", None, None),
    entry_of("note_read", None, Some(&["path", "heading"])),
    entry_of("note_write", None, None),
    entry_of("note_move", None, None),
    entry_of("note_delete", None, None),
    entry_of("get_entity_neighborhood",
        Some("How a person, company or project is related: who works with whom, which people, organizations and projects are connected to it."),
        Some(&["entity_uri", "cursor"])),
    entry_of("search",
        Some("Which tool, skill or directive is there for a task? Look for one that is not listed here: web pages, GitHub, code, workflows, links, the audit log."),
        Some(&["item_type", "query", "limit", "cursor"])),
    entry_of("load",
        Some("Copy a directive, tool or knowledge item from the registry into the project."),
        Some(&["item_type", "item_id", "destination"])),
    entry_of("execute_read", None, Some(&["tool", "input"])),
    entry_of("execute",
        Some("Run or execute a directive or tool with parameters; publish, create, update, sign, link or delete an item."),
        Some(&["item_type", "action", "item_id", "parameters"])),
];

/// How a tool is listed in this set, if it is.
pub(crate) fn entry(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|it| it.name == name)
}

/// Whether a tool is listed when nobody names a toolset.
pub fn in_default_set(tool: &dyn AnyTool) -> bool {
    entry(tool.name()).is_some()
}

/// What a model reads about a tool, in the default set or in another listing.
pub fn listed_description(tool: &dyn AnyTool, is_default_set: bool) -> String {
    let entry = entry(tool.name()).filter(|_| is_default_set);
    match entry.and_then(|it| it.text) {
        Some(text) => text.to_owned(),
        None => tool.description(),
    }
}

/// The arguments of a tool as they are listed, in the default set or in another listing.
pub fn listed_schema(tool: &dyn AnyTool, is_default_set: bool) -> Value {
    let mut schema = lean(tool.input_schema());
    let entry = entry(tool.name()).filter(|_| is_default_set);
    if let Some(fields) = entry.and_then(|it| it.fields)
        && let Some(properties) = schema["properties"].as_object_mut()
    {
        properties.retain(|name, _| fields.contains(&name.as_str()));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TOOLS;

    /// Made by another part of the program, which may come later.
    const ANNOUNCED: &str = "memory_forget";

    #[test]
    fn every_entry_is_a_tool_and_every_field_one_of_its_arguments() {
        for entry in ENTRIES {
            let tool = TOOLS.iter().find(|it| it.name() == entry.name);
            let Some(tool) = tool else {
                assert_eq!(entry.name, ANNOUNCED);
                continue;
            };
            let schema = tool.input_schema();
            let known = schema["properties"].as_object().unwrap();
            for field in entry.fields.into_iter().flatten() {
                assert!(known.contains_key(*field), "{}.{field}", entry.name);
            }
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let listed = listed_schema(*tool, true);
            for field in required {
                let field = field.as_str().unwrap();
                assert!(
                    listed["properties"].get(field).is_some(),
                    "{}.{field}",
                    entry.name
                );
            }
        }
    }
}
