//! The block of fields before a text: YAML between `---`, TOML between `+++`.

use std::ops::Range;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// What the fields are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Between lines `---`; the last may be `...`.
    Yaml,
    /// Between lines `+++`.
    Toml,
}

/// Where a block may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// In the first line, as Markdown has it.
    FirstLine,
    /// Also after empty lines, as the files of items have it.
    AfterEmptyLines,
}

/// A block of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What its fields are written in.
    pub language: Language,
    /// The lines between the delimiters.
    pub inside: Range<usize>,
    /// Where the text after it begins.
    pub body_start: usize,
}

/// What stands before a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// No block.
    Nothing,
    /// A line that begins a block which never ends.
    Unclosed {
        /// What the line says that the fields are written in.
        language: Language,
        /// Where the line after it begins.
        inside_start: usize,
    },
    /// A block.
    Closed(Block),
}

impl Language {
    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yaml => "YAML",
            Self::Toml => "TOML",
        }
    }

    /// The line that begins a block and ends it.
    #[must_use]
    pub const fn delimiter(self) -> &'static str {
        match self {
            Self::Yaml => "---",
            Self::Toml => "+++",
        }
    }

    fn closes(self, line: &str) -> bool {
        line == self.delimiter() || self == Self::Yaml && line == "..."
    }
}

/// Where a text begins after its byte order mark.
#[must_use]
pub fn text_start(text: &str) -> usize {
    if text.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len_utf8()
    } else {
        0
    }
}

/// The line that begins at `start`, with its end.
#[must_use]
pub fn line_at(text: &str, start: usize) -> Range<usize> {
    let rest = text.get(start..).unwrap_or_default();
    start..start + rest.find('\n').map_or(rest.len(), |it| it + 1)
}

/// What stands before a text.
#[must_use]
pub fn find(text: &str, head: Head) -> Found {
    let mut start = text_start(text);
    if head == Head::AfterEmptyLines {
        let rest = &text[start..];
        start += rest.len() - rest.trim_start_matches(['\r', '\n']).len();
    }
    let first = line_at(text, start);
    let language = match text[first.clone()].trim_end() {
        "---" => Language::Yaml,
        "+++" => Language::Toml,
        _ => return Found::Nothing,
    };
    let inside_start = first.end;
    let mut line = line_at(text, inside_start);
    while !line.is_empty() {
        if language.closes(text[line.clone()].trim_end()) {
            return Found::Closed(Block {
                language,
                inside: inside_start..line.start,
                body_start: line.end,
            });
        }
        line = line_at(text, line.end);
    }
    Found::Unclosed {
        language,
        inside_start,
    }
}

/// The lines of a block of YAML and the text after it, if there is such a block.
#[must_use]
pub fn yaml(text: &str, head: Head) -> Option<(&str, &str)> {
    match find(text, head) {
        Found::Closed(block) if block.language == Language::Yaml => {
            Some((text.get(block.inside)?, text.get(block.body_start..)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_ends_where_its_line_says() {
        for (text, found) in [
            ("---\na: 1\n---\nb\n", Some(("a: 1\n", "b\n"))),
            ("\u{feff}---\r\na: 1\r\n---\r\nb", Some(("a: 1\r\n", "b"))),
            ("---\na: 1\n...\nb", Some(("a: 1\n", "b"))),
            ("--- \n--- ", Some(("", ""))),
            ("+++\na = 1\n+++\nb", None),
            ("---\na: 1\n", None),
            ("---", None),
            (" ---\na: 1\n---\n", None),
            ("----\na: 1\n----\n", None),
            ("# b", None),
            ("", None),
        ] {
            assert_eq!(yaml(text, Head::FirstLine), found, "{text:?}");
            assert_eq!(yaml(text, Head::AfterEmptyLines), found, "{text:?}");
        }
    }

    #[test]
    fn empty_lines_before_a_block_are_allowed_where_that_is_asked() {
        for text in ["\n---\na: 1\n---", "\u{feff}\r\n\n---\na: 1\n---"] {
            assert_eq!(yaml(text, Head::FirstLine), None, "{text:?}");
            let found = yaml(text, Head::AfterEmptyLines);
            assert_eq!(found, Some(("a: 1\n", "")), "{text:?}");
        }
    }

    #[test]
    fn a_block_that_never_ends_is_told_from_none() {
        let unclosed = |language| Found::Unclosed {
            language,
            inside_start: 4,
        };
        let find = |text| find(text, Head::FirstLine);
        assert_eq!(find("---\na: 1"), unclosed(Language::Yaml));
        assert_eq!(find("+++\na = 1\n---\n"), unclosed(Language::Toml));
        assert_eq!(find("\u{feff}a"), Found::Nothing);
    }
}
