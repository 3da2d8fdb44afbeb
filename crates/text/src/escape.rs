//! Texts within formats of others.

/// A text in an XML document, between tags or in an attribute in double quotes.
///
/// Some characters may not stand there at all, not even escaped; they become U+FFFD.
#[must_use]
pub fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for it in text.chars() {
        match it {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Unescaped, a parser would make it a line feed.
            '\r' => out.push_str("&#13;"),
            '\n' | '\t' => out.push(it),
            it if it.is_control() || matches!(it, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}');
            }
            it => out.push(it),
        }
    }
    out
}

/// A text in double quotes in Graphviz's DOT. Backslashes and `&` have a meaning in labels, so they are
/// escaped wherever they stand.
#[must_use]
pub fn dot(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for it in text.chars() {
        match it {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '&' => out.push_str("&amp;"),
            '\n' => out.push_str("\\n"),
            it if it.is_control() => out.push(' '),
            it => out.push(it),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_the_place_where_it_stands() {
        let text = "a\"<b>&\\\r\n\u{1}\u{ffff}'";
        let xml = xml(text);
        assert_eq!(xml, "a&quot;&lt;b&gt;&amp;\\&#13;\n\u{fffd}\u{fffd}'");
        assert_eq!(dot(text), "\"a\\\"<b>&amp;\\\\ \\n \u{ffff}'\"");
    }
}
