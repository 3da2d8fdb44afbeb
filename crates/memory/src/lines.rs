//! Line endings of files that people edit too.

use std::borrow::Cow;

/// The text without a byte order mark, and with `\
/// ` if every line ends with `\\r\
/// `. A text with both is left alone: a carriage return may be part of its content.
pub(crate) fn unix(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let n_all = text.matches('\n').count();
    if n_all > 0 && text.matches("\r\n").count() == n_all {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_has_no_plain_line_end_is_converted() {
        for (text, expected) in [
            ("a\r\nb\r\n", "a\nb\n"),
            ("a\r\nb\n", "a\r\nb\n"),
            ("a\rb", "a\rb"),
            ("\u{feff}a\r\n", "a\n"),
            ("", ""),
        ] {
            assert_eq!(unix(text), expected, "{text:?}");
        }
    }
}
