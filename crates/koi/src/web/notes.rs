//! Notes about pages and about the entities that they brought: what they are called and what is in them.
//!
//! Titles and names come from strangers. In a file's name they lose what a file system or a link would
//! understand differently; in the fields before a note they stand in quotes; in its text they make neither
//! links nor tags.

use super::pages::{PageEvaluation, StoredPage};
use crate::EntityView;
use crate::inert::line;
use kenning_text::line::one_line;
use serde_json::Value;

/// At most this many characters of a file name, before its number and extension.
const FILE_CHARS_MAX: usize = 60;
/// Texts are cut to this length.
const TEXT_CHARS_MAX: usize = 2_000;
/// What a page about nothing is called.
const UNTITLED: &str = "Untitled";
/// Devices, on systems where a vault may be opened too.
const RESERVED: &[&str] = &[
    "con", "prn", "aux", "nul", "com0", "com1", "com2", "com3", "com4", "com5", "com6", "com7",
    "com8", "com9", "lpt0", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

/// A title as the name of a file, without its extension.
pub(super) fn file_name(title: &str) -> String {
    let is_meant = |c: char| "/\\:*?\"<>|#^[]`%".contains(c);
    let spaced: String = title
        .chars()
        .map(|c| if is_meant(c) { ' ' } else { c })
        .collect();
    let name = line(&spaced, usize::MAX);
    let name: String = name
        .trim_start_matches(['.', ' ', '~', '-', '_'])
        .chars()
        .take(FILE_CHARS_MAX)
        .collect();
    let name = name.trim_end_matches(['.', ' ']);
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    if RESERVED.contains(&stem.to_ascii_lowercase().as_str()) {
        return format!("{name} page");
    }
    if name.is_empty() {
        UNTITLED.to_owned()
    } else {
        name.to_owned()
    }
}

/// The path of the `n`th note that could have this name: `Sources/Title (2).md`.
pub(super) fn path(folder: &str, name: &str, n: usize) -> String {
    match n {
        0 | 1 => format!("{folder}/{name}.md"),
        n => format!("{folder}/{name} ({n}).md"),
    }
}

/// An entity as the note about its page names it.
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    pub(super) kind: &'a str,
    /// The note about it.
    pub(super) path: Option<&'a str>,
}

/// The note about a page.
pub(super) fn of_page(page: &StoredPage, named: &[Named<'_>]) -> String {
    let mut text = fields(&[
        ("@type", "bkc:WebSource"),
        ("name", page.shown_title()),
        ("source", "web"),
        ("url", &page.url),
        ("rid", &page.rid),
    ]);
    if let Some(it) = &page.evaluation {
        let end = text.len() - "---\n".len();
        text.insert_str(end, &judgment(it));
    }
    let title = plain(&line(page.shown_title(), FILE_CHARS_MAX * 4));
    text += &format!("# {title}\n\nFrom the web: {}\n", quoted(&page.url));
    if let Some(said) = &page.metadata.description {
        let said = plain(&line(said, TEXT_CHARS_MAX));
        text += &format!("\n> {said}\n");
    }
    if !named.is_empty() {
        text.push_str("\n## Entities\n\n");
    }
    for it in named {
        let name = plain(&line(it.name, FILE_CHARS_MAX * 5));
        match it.path.and_then(|path| link(path, it.name)) {
            Some(link) => text += &format!("- {link} ({})\n", it.kind),
            None => text += &format!("- {name} ({})\n", it.kind),
        }
    }
    text
}

/// What somebody thinks of a page, as fields of the note about it.
fn judgment(it: &PageEvaluation) -> String {
    let mut text = String::new();
    if let Some(score) = it.relevance_score {
        text += &format!("relevance: {score}\n");
    }
    if let Some(why) = &it.relevance_reasoning {
        text += &format!("relevance_reasoning: {}\n", quoted(why));
    }
    if !it.bioregional_tags.is_empty() {
        let tags: Vec<String> = it.bioregional_tags.iter().map(|it| quoted(it)).collect();
        text += &format!("tags: [{}]\n", tags.join(", "));
    }
    text
}

/// What the note about an entity says.
pub(super) struct OfEntity<'a> {
    pub(super) name: &'a str,
    /// As JSON-LD has it.
    pub(super) kind: &'a str,
    pub(super) uri: &'a str,
    pub(super) description: &'a str,
    /// The note about the page that it is from.
    pub(super) source_note: &'a str,
}

/// The note about an entity that a page brought.
pub(super) fn of_entity(page: &StoredPage, it: &OfEntity<'_>) -> String {
    let description = line(it.description, TEXT_CHARS_MAX);
    let mut known = vec![
        ("@type", it.kind),
        ("name", it.name),
        ("source", "web"),
        ("url", &*page.url),
        ("rid", &*page.rid),
        ("uri", it.uri),
    ];
    if !description.is_empty() {
        known.push(("description", &description));
    }
    let mut text = fields(&known);
    text += &format!("# {}\n", plain(&line(it.name, FILE_CHARS_MAX * 5)));
    if !description.is_empty() {
        text += &format!("\n> {}\n", plain(&description));
    }
    if let Some(link) = link(it.source_note, page.shown_title()) {
        text += &format!("\nFrom {link}.\n");
    }
    text
}

/// The note about an entity that has none yet, and what its file is called. What is known of the entity may
/// be from anywhere, so it stands there as what a page says does.
#[must_use]
pub fn note_of_entity(it: &EntityView) -> (String, String) {
    let description = line(&it.description, TEXT_CHARS_MAX);
    let mut known = vec![
        ("@type", it.kind.as_str()),
        ("name", &it.name),
        ("source", &it.source),
        ("uri", &it.uri),
    ];
    if !description.is_empty() {
        known.push(("description", &description));
    }
    let mut text = fields(&known);
    if !it.aliases.is_empty() {
        let aliases: Vec<String> = it.aliases.iter().map(|it| quoted(it)).collect();
        let end = text.len() - "---\n".len();
        text.insert_str(end, &format!("aliases: [{}]\n", aliases.join(", ")));
    }
    text += &format!("# {}\n", plain(&line(&it.name, FILE_CHARS_MAX * 5)));
    if !description.is_empty() {
        text += &format!("\n> {}\n", plain(&description));
    }
    (format!("{}.md", file_name(&it.name)), text)
}

/// The fields before a note. Every value is a text in quotes, whatever it holds.
fn fields(all: &[(&str, &str)]) -> String {
    let mut text = "---\n".to_owned();
    for (name, value) in all {
        let name = if name.starts_with('@') {
            format!("\"{name}\"")
        } else {
            (*name).to_owned()
        };
        text += &format!("{name}: {}\n", quoted(value));
    }
    text + "---\n"
}

/// A text in double quotes, of letters that mean the same in JSON and in YAML.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for c in Value::from(line(text, TEXT_CHARS_MAX)).to_string().chars() {
        // What a reader of YAML may take for the end of a line.
        if matches!(
            c,
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}'
        ) {
            out += &format!("\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// A text that makes neither links nor tags nor markup.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '[' => out.push('('),
            ']' => out.push(')'),
            '<' => out.push('‹'),
            '>' => out.push('›'),
            '`' => out.push('\''),
            '#' | '\\' | '*' | '_' | '|' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A link to a note, if its path can stand in one.
fn link(path: &str, shown: &str) -> Option<String> {
    let target = path.strip_suffix(".md").unwrap_or(path);
    if target.contains(['[', ']', '|', '#', '^', '\n']) {
        return None;
    }
    let is_meant = ['[', ']', '|', '#', '^', '<', '>', '`'];
    let shown = line(shown, FILE_CHARS_MAX * 5).replace(is_meant, " ");
    Some(format!("[[{target}|{}]]", one_line(&shown)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_a_name_that_every_file_system_takes() {
        for (title, expected) in [
            ("Salish Sea Herring", "Salish Sea Herring"),
            ("a/b\\c:d", "a b c d"),
            ("../../etc/passwd", "etc passwd"),
            (".hidden", "hidden"),
            ("...", UNTITLED),
            ("", UNTITLED),
            ("CON", "CON page"),
            ("nul.txt", "nul.txt page"),
            ("line\nbreak\u{0}\u{1b}[2J", "line break 2J"),
            ("dots at the end...", "dots at the end"),
            ("[[link]] #tag ^block", "link tag block"),
            ("日本語", "日本語"),
        ] {
            assert_eq!(file_name(title), expected, "{title:?}");
        }
        assert_eq!(file_name(&"é".repeat(200)).chars().count(), 60);
        assert_eq!(path("Sources", "A", 1), "Sources/A.md");
        assert_eq!(path("Sources", "A", 3), "Sources/A (3).md");
    }

    #[test]
    fn a_field_is_read_back_as_it_was_meant() {
        for value in [
            "plain",
            "with: colon",
            "\"quoted\" and 'single'",
            "- list",
            "{flow: [1]}",
            "#no comment",
            "back\\slash",
            "yes",
            "日本: 語",
            "--- ",
            "!tag &anchor *alias",
        ] {
            let note = fields(&[("@type", "bkc:WebSource"), ("name", value), ("url", "u")]);
            let read = kenning_graph::parse(&note);
            let name = read.frontmatter.get("name").and_then(Value::as_str);
            assert_eq!(name, Some(value.trim()), "{note}");
            assert_eq!(read.frontmatter.len(), 3, "{note}");
        }
    }

    #[test]
    fn what_a_page_calls_itself_makes_no_links_and_no_tags() {
        let text = plain("[[People/Ann]] #tag <script>x</script> ![[a]] `b`");
        let read = kenning_graph::parse(&text);
        assert!(read.links.is_empty(), "{text}");
        assert!(!text.contains('<') && !text.contains("[["), "{text}");
        assert!(link("Sources/a]].md", "x").is_none());
        assert_eq!(
            link("People/Ann.md", "A|n[n").unwrap(),
            "[[People/Ann|A n n]]"
        );
    }
}
