//! Small pieces of Markdown.

use kenning_text::line::one_line;

/// The first line of a generated page.
pub(super) fn notice(source: &str) -> String {
    format!("<!-- Made from {source} by `cargo xtask codegen`. Edit that, not this. -->\n\n")
}

/// Text that stands in a cell of a table.
pub(super) fn cell(text: &str) -> String {
    let line = one_line(text);
    line.replace('|', "\\|")
}

/// One sentence a line: then a review shows which sentence changed.
pub(super) fn sentences(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(' ') {
        let after_end = [". ", "? ", "! "].iter().any(|end| out.ends_with(end));
        let abbreviation = ["e.g. ", "i.e. ", "etc. "]
            .iter()
            .any(|it| out.ends_with(it));
        if after_end && !abbreviation && word.starts_with(|c: char| !c.is_lowercase()) {
            out.pop();
            out.push('\n');
        }
        out.push_str(word);
        out.push(' ');
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_a_line() {
        assert_eq!(
            sentences("One thing. `Two` things? no"),
            "One thing.\n`Two` things? no"
        );
        assert_eq!(
            sentences("A list, e.g. Bill. Then more."),
            "A list, e.g. Bill.\nThen more."
        );
        assert_eq!(sentences(""), "");
    }

    #[test]
    fn a_cell_is_one_line_without_bars() {
        assert_eq!(cell("a |\n b"), "a \\| b");
    }
}
