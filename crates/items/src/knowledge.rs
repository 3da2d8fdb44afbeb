//! A knowledge entry: Markdown with YAML frontmatter.

use crate::kind::{Place, shown};
use crate::mark::{self, Compared, Line, Style, Validated, original};
use crate::{Faults, version, yaml};
use serde_json::{Map, Value};

/// Every type of entry in the contract.
pub const ENTRY_TYPES: [&str; 8] = [
    "api_fact",
    "pattern",
    "concept",
    "learning",
    "experiment",
    "reference",
    "template",
    "workflow",
];
const TITLE_CHARS_MAX: usize = 500;

/// A knowledge entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knowledge {
    /// Its id, which is also the name of its file.
    pub zettel_id: String,
    /// Its title.
    pub title: String,
    /// One of [`ENTRY_TYPES`].
    pub entry_type: String,
    /// The category that it declares, otherwise the folders above it.
    pub category: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Its version; 1.0.0 if it declares none.
    pub version: String,
    /// Everything after the frontmatter.
    pub body: String,
    /// All fields of the frontmatter.
    pub fields: Map<String, Value>,
    /// The validation by the original program, from a line or from fields of the frontmatter.
    pub validated: Option<Validated>,
}

/// Reads an entry at `place`.
pub fn read(text: &str, place: &Place) -> Result<Knowledge, Faults> {
    let bare = mark::strip(text, Style::Html);
    let Some((block, body)) = yaml::frontmatter(&bare) else {
        return Err(Faults::one(
            "frontmatter",
            "there is none",
            "begin the file with `---`, the fields `zettel_id`, `title` and `entry_type`, and `---`",
        ));
    };
    let fields = yaml::fields("frontmatter", block)?;
    let mut faults = Faults::default();
    let zettel_id = zettel_id(&mut faults, &fields, place);
    let title = title(&mut faults, &fields);
    let entry_type = entry_type(&mut faults, &fields);
    let category = crate::declared_category(&mut faults, &fields, place);
    let tags = fields.get("tags").map_or(Some(Vec::new()), yaml::texts);
    if tags.is_none() {
        faults.add(
            "tags",
            "is not a list of strings",
            "write `tags: [one, two]`",
        );
    }
    let version = yaml::text_at(&fields, &["version"]).unwrap_or_else(|| version::DEFAULT.into());
    version::check(&mut faults, &version);
    if body.trim().is_empty() {
        faults.add(
            "content",
            "is empty",
            "write something after the frontmatter",
        );
    }
    let validated = match mark::read(text, Style::Html) {
        Some(Line::Validated(validated)) => Some(validated),
        Some(Line::Signed(_) | Line::Broken(_)) | None => Validated::of_frontmatter(&fields),
    };
    let body = body.to_owned();
    faults.or(Knowledge {
        zettel_id,
        title,
        entry_type,
        category,
        tags: tags.unwrap_or_default(),
        version,
        body,
        fields,
        validated,
    })
}

fn zettel_id(faults: &mut Faults, fields: &Map<String, Value>, place: &Place) -> String {
    let found = yaml::text_at(fields, &["zettel_id", "id"]);
    let written = fields.get("zettel_id").or_else(|| fields.get("id"));
    let is_number = written.is_some_and(Value::is_number);
    match &found {
        None => faults.add(
            "zettel_id",
            "is missing",
            format!("add `zettel_id: {}`", place.id),
        ),
        Some(it) if it != place.id.as_str() => faults.add(
            "zettel_id",
            format!(
                "`{}` differs from the name of the file, `{}`",
                shown(it),
                place.id
            ),
            match is_number {
                true => format!(
                    "YAML reads this as a number: write `zettel_id: \"{}\"`",
                    place.id
                ),
                false => "give both the same name".to_owned(),
            },
        ),
        Some(_) => {}
    }
    found.unwrap_or_default()
}

fn title(faults: &mut Faults, fields: &Map<String, Value>) -> String {
    let title = yaml::text_at(fields, &["title"]).unwrap_or_default();
    if title.is_empty() {
        faults.add("title", "is missing", "add `title: …`");
    } else if title.chars().nth(TITLE_CHARS_MAX).is_some() {
        let message = format!("`{}` is too long", shown(&title));
        faults.add("title", message, "say it in one line");
    }
    title
}

fn entry_type(faults: &mut Faults, fields: &Map<String, Value>) -> String {
    let found = yaml::text_at(fields, &["entry_type"]).unwrap_or_default();
    if !ENTRY_TYPES.contains(&found.as_str()) {
        let message = if found.is_empty() {
            "is missing".to_owned()
        } else {
            format!("`{}` is not a type of entry", shown(&found))
        };
        let remedy = format!("use one of {}", ENTRY_TYPES.join(", "));
        faults.add("entry_type", message, remedy);
    }
    found
}

impl Knowledge {
    /// The original's hash, if there is one, compared with the hashes that its formulas give for this
    /// entry.
    pub fn compared(&self) -> Option<Compared> {
        let validated = self.validated.as_ref()?;
        let (id, version, body) = (&self.zettel_id, &self.version, &self.body);
        let declared = yaml::text_at(&self.fields, &["category"]);
        let of_all = |category: Option<&str>| {
            original::knowledge_sha256(id, version, body, category, &self.entry_type, &self.tags)
        };
        let of_body = original::knowledge_sha256_of_body(id, version, body);
        let mut candidates = vec![of_all(declared.as_deref()), of_all(Some(&self.category))];
        let has_line = !self.fields.contains_key("content_hash");
        candidates.insert(usize::from(has_line), of_body);
        Some(validated.compare(&candidates))
    }
}
