//! Where the signature line is, and in which kind of comment.
//!
//! In Markdown that begins with frontmatter the line follows the frontmatter: all other readers of
//! such files, especially of skills, expect `---` on the first line. Lines that were written on the
//! first line are still read.

use crate::kind::ItemType;
use crate::yaml;

/// How a comment of one line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `<!-- … -->`, in Markdown.
    Html,
    /// `# …`, in Python, shell and YAML.
    Hash,
    /// `// …`, in JavaScript.
    Slashes,
}

impl Style {
    /// The style of a file that may have a signature line.
    pub fn of(item_type: ItemType, name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        match (item_type, extension) {
            (ItemType::Directive | ItemType::Knowledge, "md") => Some(Self::Html),
            (ItemType::Tool, "py" | "sh" | "yaml" | "yml") => Some(Self::Hash),
            (ItemType::Tool, "js") => Some(Self::Slashes),
            _ => None,
        }
    }

    const fn around(self) -> (&'static str, &'static str) {
        match self {
            Self::Html => ("<!-- ", " -->"),
            Self::Hash => ("# ", ""),
            Self::Slashes => ("// ", ""),
        }
    }
}

/// A comment at the place of a signature line.
pub(super) struct Line<'a> {
    /// What is in the comment.
    pub(super) content: &'a str,
    /// Where the part begins that is removed with the line …
    pub(super) start: usize,
    /// … and where it ends.
    pub(super) end: usize,
    /// Whether the line ends as the first line of the remaining text does.
    pub(super) is_well_ended: bool,
}

/// The comments where a signature may be: the first line, then the line after the frontmatter.
pub(super) fn lines(text: &str, style: Style) -> impl Iterator<Item = Line<'_>> {
    let places = [
        Some(Place::at_start(text)),
        Place::after_frontmatter(text, style),
    ];
    let places = places.into_iter().flatten();
    places.filter_map(move |place| line(text, style, &place))
}

fn line<'a>(text: &'a str, style: Style, place: &Place) -> Option<Line<'a>> {
    let rest = &text[place.at..];
    let length = rest.find('\n').map_or(rest.len(), |at| at + 1);
    let bare = rest[..length].trim_end_matches('\n');
    let bare = bare.strip_suffix('\r').unwrap_or(bare);
    let (before, after) = style.around();
    let content = bare.strip_prefix(before)?.strip_suffix(after)?;
    let ending = &rest[bare.len()..length];
    let end = place.at + length;
    // After a line without a line end, the signature line brought one, which goes with it.
    let (start, is_well_ended) = if ending.is_empty() {
        let head = &text[..place.at];
        let head = head.strip_suffix('\n').unwrap_or(head);
        let is_well_ended = place.follows_line && !head.ends_with('\r');
        (head.len(), is_well_ended)
    } else {
        let remaining = [&text[..place.at], &text[end..]];
        (place.at, ending == ending_of(remaining))
    };
    Some(Line {
        content,
        start,
        end,
        is_well_ended,
    })
}

/// The text with a comment at the place of a signature line.
pub(super) fn insert(text: &str, style: Style, content: &str) -> String {
    let place = Place::after_frontmatter(text, style);
    let place = place.unwrap_or_else(|| Place::at_start(text));
    let (head, tail) = text.split_at(place.at);
    let (before, after) = style.around();
    if place.follows_line && !head.ends_with('\n') {
        return format!("{head}\n{before}{content}{after}");
    }
    let ending = ending_of([text, ""]);
    format!("{head}{before}{content}{after}{ending}{tail}")
}

struct Place {
    at: usize,
    /// Whether there is a line directly before it that must keep its place.
    follows_line: bool,
}

impl Place {
    /// After the byte order mark and the line that names the interpreter.
    fn at_start(text: &str) -> Self {
        let bom = if text.starts_with('\u{feff}') { 3 } else { 0 };
        let rest = &text[bom..];
        if !rest.starts_with("#!") {
            return Self {
                at: bom,
                follows_line: false,
            };
        }
        Self {
            at: bom + rest.find('\n').map_or(rest.len(), |at| at + 1),
            follows_line: true,
        }
    }

    /// After the frontmatter of Markdown, if there is any.
    fn after_frontmatter(text: &str, style: Style) -> Option<Self> {
        if style != Style::Html {
            return None;
        }
        let (_, body) = yaml::frontmatter(text)?;
        Some(Self {
            at: text.len() - body.len(),
            follows_line: true,
        })
    }
}

/// How the first line of a text in two pieces ends.
fn ending_of(pieces: [&str; 2]) -> &'static str {
    let first = pieces.iter().find_map(|it| it.split_once('\n'));
    match first {
        Some((line, _)) if line.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}
