//! What one Markdown text says.

use crate::anchors::{anchors, leads_to_anchor};
use crate::{DocType, Fault, Link, Status};
use crate::{body, fields, frontmatter, tags::Tags};
use serde_json::{Map, Value};

/// What one Markdown text says.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The fields before the text; of a broken block those that can be read.
    pub frontmatter: Map<String, Value>,
    /// What is wrong with the text.
    pub faults: Vec<Fault>,
    /// The byte offset of the content: `text[body_start..]`.
    pub body_start: usize,
    /// `title:`.
    pub title: Option<String>,
    /// The first heading of the first level, as plain text.
    pub heading: Option<String>,
    /// `description:`.
    pub description: Option<String>,
    /// `type:`, if it is one of the eight.
    pub doc_type: Option<DocType>,
    /// `status:`, if it is one of the four.
    pub status: Option<Status>,
    /// Tags of the frontmatter, then of the text, each once and without `#`.
    pub tags: Vec<String>,
    /// `aliases:`: other names of the document.
    pub aliases: Vec<String>,
    /// Links to documents, from the frontmatter and then from the text. Links to URLs, to other files
    /// and within the page are not included.
    pub links: Vec<Link>,
    /// Links of the text to files that do not look like documents: `config.v1` means `config.v1.md`
    /// if that exists, and `src/lib.rs` is not a document.
    pub others: Vec<Link>,
    /// Links of the text to headings that it does not have: `[x](#missing)`. Their targets are empty.
    pub lost: Vec<Link>,
    /// Headings of every level, as plain text.
    pub headings: Vec<String>,
    /// The places that a link can lead to, as [`crate::anchor_key`] spells them.
    pub anchors: Vec<String>,
    /// Words of the content.
    pub word_count: u64,
}

/// Reads a Markdown text. This never fails: what is wrong is listed in its faults.
#[must_use]
pub fn parse(text: &str) -> Document {
    let frontmatter = frontmatter::read(text);
    let body = body::walk(text, frontmatter.body_start);
    let mut links = fields::links(text, &frontmatter);
    links.extend(body.links);
    let fields = frontmatter.fields;
    let mut faults = frontmatter.faults;
    let doc_type = word(&fields, "type", &DocType::ALL.map(DocType::as_str));
    let status = word(&fields, "status", &Status::ALL.map(Status::as_str));
    for problem in [&doc_type, &status]
        .into_iter()
        .filter_map(|it| it.as_ref().err())
    {
        let line = line_of_key(&text[frontmatter.block.clone()], problem.key);
        faults.push(Fault::new(line, problem.message.clone()));
    }
    if body.has_more_links {
        let max = body::LINKS_MAX;
        faults.push(Fault::new(
            1,
            format!("the text has more than {max} links: the rest is left out; split the file"),
        ));
    }
    let mut tags = Tags::default();
    for key in ["tags", "tag"] {
        fields
            .get(key)
            .into_iter()
            .for_each(|it| tags.push_field(it));
    }
    for (run, _) in &body.prose {
        tags.push_prose(text, run);
    }
    let anchors = anchors(&text[frontmatter.body_start..], &body.headings);
    let leads_nowhere = |it: &Link| {
        let place = it.fragment.as_deref().unwrap_or_default();
        !leads_to_anchor(place, &anchors)
    };
    let lost = body.within.into_iter().filter(leads_nowhere).collect();
    Document {
        faults,
        body_start: frontmatter.body_start,
        title: text_of(&fields, "title"),
        heading: body.heading,
        description: text_of(&fields, "description"),
        doc_type: doc_type.ok().flatten().and_then(DocType::parse),
        status: status.ok().flatten().and_then(Status::parse),
        tags: tags.into_list(),
        aliases: aliases(&fields),
        links,
        others: body.others,
        lost,
        anchors,
        headings: body.headings,
        word_count: word_count(&text[frontmatter.body_start..]),
        frontmatter: fields,
    }
}

/// What is wrong with the fields before a text.
#[must_use]
pub fn frontmatter_faults(text: &str) -> Vec<Fault> {
    frontmatter::read(text).faults
}

/// The readable text of a Markdown document: its prose, and the targets of its links.
///
/// Code, math, HTML, comments and fields are left out. Separate pieces are joined by `|`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readable {
    /// The prose, without links to documents: their text is the name of another document.
    pub prose: String,
    /// The targets of these links: names or paths, in the order of the text.
    pub links: Vec<String>,
}

/// The readable text of a Markdown document.
#[must_use]
pub fn readable(text: &str) -> Readable {
    let body = body::walk(text, frontmatter::read(text).body_start);
    Readable {
        prose: body.readable.text,
        links: body.links.into_iter().map(|it| it.target).collect(),
    }
}

struct Problem {
    key: &'static str,
    message: String,
}

/// A field whose value is one of some words.
fn word<'a>(
    fields: &'a Map<String, Value>,
    key: &'static str,
    words: &[&str],
) -> Result<Option<&'a str>, Problem> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(it)) if it.trim().is_empty() => Ok(None),
        Some(Value::String(it))
            if words
                .iter()
                .any(|word| word.eq_ignore_ascii_case(it.trim())) =>
        {
            Ok(Some(it))
        }
        Some(it) => {
            let value: String = it.as_str().map_or_else(|| it.to_string(), str::to_owned);
            let value: String = value.chars().take(60).collect();
            let words = words.join(", ");
            let message = format!("`{key}: {value}` is unknown: use one of {words}");
            Err(Problem { key, message })
        }
    }
}

fn line_of_key(block: &str, key: &str) -> u32 {
    let starts = |it: &(u32, &str)| it.1.trim_start_matches(['"', '\'']).starts_with(key);
    let mut lines = (2u32..).zip(block.lines());
    lines.find(starts).map_or(1, |it| it.0)
}

fn text_of(fields: &Map<String, Value>, key: &str) -> Option<String> {
    let text = match fields.get(key)? {
        Value::String(it) => it.clone(),
        Value::Number(it) => it.to_string(),
        Value::Bool(it) => it.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    let text = body::words(&text, usize::MAX);
    Some(text).filter(|it| !it.is_empty())
}

fn aliases(fields: &Map<String, Value>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for value in ["aliases", "alias"]
        .into_iter()
        .filter_map(|it| fields.get(it))
    {
        for text in frontmatter::texts(value) {
            let names: Vec<&str> = if value.is_string() {
                text.split(',').collect()
            } else {
                vec![&text]
            };
            let names = names.iter().map(|it| body::words(it, 200));
            out.extend(names.filter(|it| !it.is_empty()));
        }
    }
    let mut known = std::collections::HashSet::new();
    out.retain(|it| known.insert(it.clone()));
    out
}

/// The number of words, without the characters ``#*`[]()``.
fn word_count(content: &str) -> u64 {
    let mut words = 0;
    let mut is_in_word = false;
    for it in content.chars() {
        if it.is_whitespace() {
            is_in_word = false;
        } else if !is_in_word && !matches!(it, '#' | '*' | '`' | '[' | ']' | '(' | ')') {
            is_in_word = true;
            words += 1;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_reads_has_no_code_no_comments_and_no_links() {
        for (text, prose, links) in [
            (
                "---\na: b\n---\nthe **Salish** Sea",
                " | the Salish Sea",
                &[][..],
            ),
            (
                "see [[Salish Sea Alliance|Salish Sea]] now",
                "see  |  now",
                &["Salish Sea Alliance"],
            ),
            (
                "by [Bill Baue](https://x.org), `Ann`",
                "by  | Bill Baue | , ",
                &[],
            ),
            ("a %%[[Ann]] Bo%% b", "a  |  b", &[]),
            ("a\n\n%%\n[[Ann]]\n\nBo\n%%\n\nb", "a | b", &[]),
            ("100%% sure of [[Ann]]", "100%% sure of ", &["Ann"]),
            ("```\n[[Ann]] %%\n```\nb %% c", " | b %% c", &[]),
            ("Ben &amp; Jo\nand Li", "Ben & Jo and Li", &[]),
            ("Salish\n\nSea", "Salish | Sea", &[]),
        ] {
            let read = readable(text);
            assert_eq!(
                read.prose.trim_start_matches(" | "),
                prose.trim_start_matches(" | "),
                "{text:?}"
            );
            assert_eq!(read.links, links, "{text:?}");
        }
    }

    #[test]
    fn what_stands_in_a_comment_is_neither_link_nor_tag_nor_heading() {
        let document = parse("%% [[A]] #x %%\n\n%%\n# B\n%%\n\n[[C]] #y\n");
        let targets: Vec<&str> = document.links.iter().map(|it| it.target.as_str()).collect();
        assert_eq!(targets, ["C"]);
        assert_eq!(document.tags, ["y"]);
        assert_eq!(document.heading, None);
    }
}
