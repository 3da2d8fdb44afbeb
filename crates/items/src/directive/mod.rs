//! A directive: steps that an agent follows.
//!
//! There are three spellings of one thing: Markdown with a head of YAML, Markdown around an XML block
//! (`xml`), and the `SKILL.md` of a skill folder. All become a [`Directive`]. Nothing that a directive
//! says is ever acted on here: it is text that is checked and handed on.

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

/// How a directive was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// A head of YAML.
    Frontmatter,
    /// A block of XML.
    Xml,
    /// The `SKILL.md` of a folder.
    Skill,
}

/// What a directive says.
#[derive(Clone, Debug, PartialEq)]
pub struct Directive {
    /// Its name, which is its id.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it says its category is, else the folders above it.
    pub category: String,
    /// What it is for.
    pub description: String,
    /// Who wrote it.
    pub author: Option<String>,
    /// What it wants to be told.
    pub inputs: Vec<Input>,
    /// A JSON Schema of all inputs together.
    pub input_schema: Option<Value>,
    /// What is to be done, in order.
    pub steps: Vec<Step>,
    /// What it may do.
    pub permissions: Vec<Permission>,
    /// Which model it wants.
    pub model: Option<Model>,
    /// Other directives: the relation's word, and the name.
    pub relationships: Vec<(String, String)>,
    /// What it gives.
    pub outputs: Value,
    /// What else is to be known.
    pub context: Value,
    /// Which MCP servers it uses.
    pub mcps: Value,
    /// The whole text without the mark.
    pub content: String,
    /// How it was written.
    pub spelling: Spelling,
    /// The hash of the original's line, if there is one, compared with this text.
    pub validated: Option<Compared>,
}

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub description: String,
    /// What is to be done.
    pub action: String,
}

/// Which model a directive wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// One of [`TIERS`].
    pub tier: String,
    /// A certain model.
    pub id: Option<String>,
    /// What to take instead.
    pub fallback: Option<String>,
    /// Whether several may work at once.
    pub parallel: Option<bool>,
}

/// Reads a directive that lies at `place`.
pub fn read(text: &str, place: &Place) -> Result<Directive, Faults> {
    let content = mark::strip(text, Style::Html);
    let mut directive = read_content(content, place)?;
    if let Some(Line::Validated(line)) = mark::read(text, Style::Html) {
        // The original hashed the XML alone, so a text without any is not what it validated.
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
