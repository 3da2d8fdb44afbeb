//! A directive: steps that an agent follows.
//!
//! It can be written in three formats: Markdown with YAML frontmatter, Markdown with an XML block
//! (`xml`), and the `SKILL.md` of a skill folder. All become a [`Directive`]. A directive is never
//! executed here: it is text that is checked and passed on.

mod head;
mod inputs;
mod xml;

use crate::Faults;
use crate::grants::Permission;
use crate::kind::{Layout, Place};
use crate::mark::{self, Compared, Line, Style, original};
use serde_json::Value;

pub(crate) use head::inputs_at;
pub(crate) use inputs::check_against;
pub use inputs::{Input, InputFault, all_inputs, check_inputs, typed, with_defaults};
pub use xml::TIERS;

/// The format of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// YAML frontmatter.
    Frontmatter,
    /// An XML block.
    Xml,
    /// The `SKILL.md` of a folder.
    Skill,
}

/// A directive.
#[derive(Clone, Debug, PartialEq)]
pub struct Directive {
    /// Its name, which is also its id.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The category that it declares, otherwise the folders above it.
    pub category: String,
    /// What it is for.
    pub description: String,
    /// Who wrote it.
    pub author: Option<String>,
    /// Its inputs.
    pub inputs: Vec<Input>,
    /// A JSON Schema of all inputs together.
    pub input_schema: Option<Value>,
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// Its permissions.
    pub permissions: Vec<Permission>,
    /// The model that it asks for.
    pub model: Option<Model>,
    /// Related directives: the relation and the name.
    pub relationships: Vec<(String, String)>,
    /// Its outputs.
    pub outputs: Value,
    /// More context for the agent.
    pub context: Value,
    /// The MCP servers that it uses.
    pub mcps: Value,
    /// The whole text without the signature line.
    pub content: String,
    /// Its format.
    pub spelling: Spelling,
    /// The hash in the original's validation line, if there is one, compared with this text.
    pub validated: Option<Compared>,
}

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub description: String,
    /// The action.
    pub action: String,
}

/// The model that a directive asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// One of [`TIERS`].
    pub tier: String,
    /// A certain model.
    pub id: Option<String>,
    /// The model to use instead.
    pub fallback: Option<String>,
    /// Whether several agents may work in parallel.
    pub parallel: Option<bool>,
}

/// Reads a directive at `place`.
pub fn read(text: &str, place: &Place) -> Result<Directive, Faults> {
    let content = mark::strip(text, Style::Html);
    let mut directive = read_content(content, place)?;
    if let Some(Line::Validated(line)) = mark::read(text, Style::Html) {
        // The original hashed only the XML, so without XML there is nothing that it validated.
        let xml = xml::find(&directive.content).map_or("", |it| &directive.content[it]);
        let (name, version) = (&directive.name, &directive.version);
        let hash = original::directive_sha256(name, version, xml);
        directive.validated = Some(line.compare(&[hash]));
    }
    Ok(directive)
}

fn read_content(content: String, place: &Place) -> Result<Directive, Faults> {
    if matches!(place.layout, Layout::Directory(_)) {
        return head::skill(content, place);
    }
    if crate::yaml::frontmatter(&content).is_some() {
        return head::directive(content, place);
    }
    match xml::find(&content) {
        Some(found) => xml::read(&content, &found, place),
        None => Err(Faults::one(
            "content",
            "has neither frontmatter nor a `<directive>` block",
            "begin the file with `---`, the fields `name` and `version`, and `---`",
        )),
    }
}
